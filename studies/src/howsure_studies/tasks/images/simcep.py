"""Pictures of stained nuclei, as the simulator SIMCEP made Cell-200, to be counted.

Two recipes. ``faithful`` draws at 256 by 256 pixels, step by step as the simulator does, and
averages blocks of pixels. ``direct`` draws at 64 by 64 from nuclei prepared beforehand: many
times faster, with the same mean, spread and slope of brightness on the count.

The steps are nuclei (outlines filled with texture), the microscope (blur by depth, uneven light,
noise), and the two recipes. The ground's brightness is tied to that of all nuclei, so that the
mean brightness of a picture tells the count.

References
----------
Lehmussola, Ruusuvuori, Selinummi, Huttunen, Yli-Harja (2007), Computational framework for
simulating fluorescence microscope images with cell populations, IEEE Transactions on Medical
Imaging 26(7), with the settings of the authors of Cell-200 (Ding et al. 2021).
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Final, final

import numpy as np
import numpy.typing as npt
from scipy import ndimage

from howsure.core.arrays import BoolArray, FloatArray, IntArray
from howsure.core.classes import frozen
from howsure.core.rng import child

Image = npt.NDArray[np.float32]

CANVAS: Final = 256
SIZE: Final = 64
REFERENCE_COUNT: Final = 100
"""Without the shortcut, the ground is as bright as of this many nuclei."""

RADIUS: Final = 5.0
PATCH: Final = 15
"""Pixels a side of a nucleus's patch, at 256 pixels an image."""

SIGMAS: Final = np.array([0.5, 0.8, 1.2, 1.8, 2.8, 5.0])
"""Widths of blur that are computed, in pixels of 256; between them, light is shared."""


_KNOTS: Final = 10
_PIECES: Final = 8
_JITTER: Final = 0.1
_NUCLEI: Final = 2048
_BIAS: Final = 0.2

_DEPTH_SD: Final = 0.5
_ILLUMINATION: Final = 1.0
_AUTOFLUORESCENCE: Final = 0.05
_NOISE_SD: Final = 0.01
_REACH: Final = 4

_FACTOR: Final = CANVAS // SIZE
_MARGIN: Final = 10
_BLOCKS: Final = 6
_FORMS: Final = 8
_MOST_COVER: Final = 0.9999


@final
@frozen(eq=False)
class Bank:
    """Nuclei, each in its eight turned and mirrored forms."""

    light: Image  # (k, PATCH, PATCH): brightness in [0.2, 1] inside a nucleus, 0 outside
    mask: Image  # 1 inside, 0 outside


@lru_cache(maxsize=4)
def bank(seed: int, nuclei: int = _NUCLEI) -> Bank:
    """Nuclei of a seed: splines through ten knots near a circle of radius 5, textured."""
    rng = child(seed, "cells", "nuclei")
    outlines = _closed_spline(_knots(rng, nuclei))
    parts = range(0, nuclei, 128)
    mask = np.concatenate([_filled(outlines[start : start + 128]) for start in parts])
    inner = texture(rng, PATCH, nuclei, octaves=range(2, 7), persistence=0.5)
    light = mask * (_BIAS + (1.0 - _BIAS) * inner)
    return Bank(_eight_forms(light), _eight_forms(mask))


def _knots(rng: np.random.Generator, count: int) -> FloatArray:
    """Knots near a circle, shape (count, 10, 2)."""
    angle = 2.0 * np.pi * np.arange(_KNOTS) / _KNOTS
    shift = rng.uniform(-_JITTER, _JITTER, (4, count, _KNOTS))
    x = shift[0] + np.cos(angle + shift[1])
    y = shift[2] + np.sin(angle + shift[3])
    return RADIUS * np.stack([x, y], axis=-1)


def _closed_spline(knots: FloatArray) -> FloatArray:
    """Points on periodic cubic splines whose steps are roots of chord lengths (centripetal)."""
    count, size, _ = knots.shape
    after = np.roll(knots, -1, axis=1)
    step = np.sqrt(np.linalg.norm(after - knots, axis=2))
    before = np.roll(step, 1, axis=1)
    slope = (after - knots) / step[..., None]
    row = np.arange(size)
    system = np.zeros((count, size, size))
    system[:, row, row] = 2.0 * (before + step)
    system[:, row, (row + 1) % size] = step
    system[:, row, (row - 1) % size] = before
    bend = np.linalg.solve(system, 6.0 * (slope - np.roll(slope, 1, axis=1)))
    bend_after = np.roll(bend, -1, axis=1)
    t = np.arange(_PIECES) / _PIECES
    u = 1.0 - t
    points = (
        np.einsum("t,nkd->nktd", u, knots)
        + np.einsum("t,nkd->nktd", t, after)
        + np.einsum("t,nkd->nktd", u**3 - u, bend * step[..., None] ** 2 / 6.0)
        + np.einsum("t,nkd->nktd", t**3 - t, bend_after * step[..., None] ** 2 / 6.0)
    )
    return np.asarray(points.reshape(count, size * _PIECES, 2))


def _filled(outline: FloatArray) -> Image:
    """Pixels whose centre lies inside a closed polygon, by crossings of a ray."""
    x, y = outline[..., 0], outline[..., 1]
    x_next, y_next = np.roll(x, -1, axis=1), np.roll(y, -1, axis=1)
    centres = np.arange(PATCH) - PATCH // 2
    inside = np.zeros((len(outline), PATCH, PATCH), dtype=bool)
    for line, height in enumerate(centres):
        crosses = (y <= height) != (y_next <= height)
        rise = np.where(crosses, y_next - y, 1.0)
        reach = np.where(crosses, x + (height - y) * (x_next - x) / rise, -np.inf)
        beyond = reach[:, :, None] > centres
        inside[:, line] = np.count_nonzero(beyond, axis=1) % 2 == 1
    return inside.astype(np.float32)


def _eight_forms(images: Image) -> Image:
    turned = [np.rot90(images, turns, axes=(1, 2)) for turns in range(4)]
    return np.concatenate([*turned, *(turn[:, :, ::-1] for turn in turned)])


def texture(
    rng: np.random.Generator, size: int, count: int, *, octaves: range, persistence: float
) -> Image:
    """Textures of SIMCEP (Lehmussola et al. 2007), each scaled to cover [0, 1]."""
    # In octave i, 2^i by 2^i uniform numbers are averaged over 3 by 3 neighbours, stretched by
    # cubic convolution and weighted by persistence^i; all steps are linear, so an octave is A Z Aᵀ.
    fields = [rng.random((count, 2**i, 2**i), dtype=np.float32) for i in octaves]
    return from_noise(fields, size, [persistence**i for i in octaves])


def from_noise(fields: list[Image], size: int, weights: list[float]) -> Image:
    """Textures from given noise, one array (count, 2^i, 2^i) an octave; see `texture`."""
    total = np.zeros((len(fields[0]), size, size), dtype=np.float32)
    for field, weight in zip(fields, weights, strict=True):
        stretch = _stretch(field.shape[1], size)
        total += np.float32(weight) * (stretch @ field @ stretch.T)
    total -= total.min(axis=(1, 2), keepdims=True)
    total /= total.max(axis=(1, 2), keepdims=True)
    return total


@lru_cache(maxsize=64)
def _stretch(cells: int, size: int) -> Image:
    """A 3-wide mean and then an interpolation from ``cells`` to ``size`` points."""
    grid = np.arange(cells)
    mean = np.zeros((cells, cells))
    for shift in (-1, 0, 1):
        np.add.at(mean, (grid, np.clip(grid + shift, 0, cells - 1)), 1.0 / 3.0)
    places = np.linspace(0.0, cells - 1.0, size)
    left = np.minimum(places.astype(int), max(cells - 2, 0))
    weights = np.zeros((size, cells))
    taps = (0, 1) if cells < 3 else (-1, 0, 1, 2)
    for tap in taps:
        away = np.abs(places - left - tap)
        share = np.maximum(1.0 - away, 0.0) if cells < 3 else _keys(away)
        np.add.at(weights, (np.arange(size), np.clip(left + tap, 0, cells - 1)), share)
    return np.asarray(weights @ mean, dtype=np.float32)


def _keys(away: FloatArray) -> FloatArray:
    """The kernel of cubic convolution (Keys 1981), a = -1/2."""
    near = 1.5 * away**3 - 2.5 * away**2 + 1.0
    far = -0.5 * away**3 + 2.5 * away**2 - 4.0 * away + 2.0
    return np.asarray(np.where(away <= 1.0, near, np.where(away < 2.0, far, 0.0)))


def blurred(images: Image) -> Image:
    """Blur one image by each width, with Gaussian windows of nine pixels."""
    parts = zip(images, _kernels(), strict=True)
    return np.stack([_smoothed(_smoothed(image, -1, half), -2, half) for image, half in parts])


def focus_blur(light: Image, inside: BoolArray, rng: np.random.Generator) -> Image:
    """Spread the light of each connected piece by the piece's own depth."""
    # A depth is the size of a draw from N(0, 0.5²); with the ground at 0, depths are stretched to
    # the widths 0.5 … 5. A piece between two widths of SIGMAS shares its light between them.
    pieces, count = ndimage.label(inside, structure=np.ones((3, 3)))
    depth = np.abs(rng.normal(0.0, _DEPTH_SD, max(count, 1)))
    level = np.interp(widths(depth, depth.max()), SIGMAS, np.arange(len(SIGMAS)))
    low = np.minimum(level.astype(int), len(SIGMAS) - 2)
    at = np.flatnonzero(inside)
    piece = pieces.ravel()[at] - 1
    bright = light.ravel()[at]
    upper = bright * (level - low).astype(np.float32)[piece]
    shared = np.zeros((len(SIGMAS), light.size), dtype=np.float32)
    shared[low[piece], at] = bright - upper
    shared[low[piece] + 1, at] = upper
    return np.asarray(blurred(shared.reshape(-1, *light.shape)).sum(axis=0))


def widths(depth: FloatArray, deepest: float | FloatArray) -> FloatArray:
    """Widths of blur of depths, in pixels: 0 gives 0.5, the deepest 5."""
    return np.asarray(SIGMAS[0] + (SIGMAS[-1] - SIGMAS[0]) * depth / deepest)


@lru_cache(maxsize=4)
def illumination(size: int) -> Image:
    """A paraboloid of light of mean square 1, brightest in the middle."""
    fine = 256 // size * size
    along = np.arange(-fine, fine, 2.0)
    square = along[:, None] ** 2 + along**2
    light = 1.0 - square / square.max()
    light /= np.sqrt(np.mean(light**2))
    reduced = shrunk(light[None].astype(np.float32), fine // size)[0]
    return np.asarray(reduced / np.sqrt(np.mean(reduced.astype(float) ** 2)), dtype=np.float32)


def shrunk(images: Image, factor: int) -> Image:
    """Average blocks of pixels, shape (n, h, w) to (n, h / factor, w / factor)."""
    if factor == 1:
        return images
    n, height, width = images.shape
    blocks = images.reshape(n, height // factor, factor, width // factor, factor)
    return np.asarray(blocks.sum(axis=(2, 4)) / np.float32(factor**2), dtype=np.float32)


def quantised(images: Image) -> npt.NDArray[np.uint8]:
    """Clip to [0, 1] and round to 8 bits."""
    return np.asarray(np.clip(images * 255.0 + 0.5, 0.0, 255.0).astype(np.uint8))


@lru_cache(maxsize=1)
def _kernels() -> FloatArray:
    """Half windows, from the middle outwards, shape (len(SIGMAS), 5)."""
    away = np.arange(_REACH + 1)
    half = np.exp(-0.5 * (away / SIGMAS[:, None]) ** 2)
    return np.asarray(half / (2.0 * half.sum(axis=1, keepdims=True) - 1.0))


def _smoothed(image: Image, axis: int, half: FloatArray) -> Image:
    """Convolve along one axis by a symmetric window, given from the middle outwards."""
    size = image.shape[axis]
    pad = [(0, 0)] * image.ndim
    pad[axis] = (_REACH, _REACH)
    padded = np.pad(image, pad, mode="edge")

    def window(start: int) -> Image:
        cut = [slice(None)] * image.ndim
        cut[axis] = slice(start, start + size)
        return padded[tuple(cut)]

    total = np.float32(half[0]) * image
    for away in range(1, _REACH + 1):
        if half[away] > 1e-6:
            pair = window(_REACH - away) + window(_REACH + away)
            pair *= np.float32(half[away])
            total += pair
    return np.asarray(total)


def draw_faithful(
    counts: IntArray, index: IntArray, seed: int, shortcut: bool, factor: int
) -> Iterator[npt.NDArray[np.uint8]]:
    nuclei = bank(seed)
    energy_of_one = float(np.square(nuclei.light).sum(axis=(1, 2)).mean())
    steady = None if shortcut else REFERENCE_COUNT * energy_of_one
    for count, number in zip(counts.tolist(), index.tolist(), strict=True):
        rng = child(seed, "cells", "faithful", number, count)
        whole = quantised(_microscoped(count, nuclei, steady, rng))
        yield quantised(shrunk(whole[None].astype(np.float32), factor) / np.float32(255.0))


def _microscoped(count: int, nuclei: Bank, steady: float | None, rng: np.random.Generator) -> Image:
    """One picture of 256 by 256, brightness in [0, 1] before clipping."""
    light, inside = _composed(count, nuclei, rng)
    energy = float(np.vdot(light, light)) if steady is None else steady
    ground = illumination(CANVAS) * np.float32(np.sqrt(_ILLUMINATION * energy) / CANVAS)
    glow = texture(rng, CANVAS, 1, octaves=range(1, 3), persistence=1.0)[0]
    glow *= np.float32(np.sqrt(_AUTOFLUORESCENCE * energy / np.vdot(glow, glow)))
    seen = focus_blur(light, inside, rng)
    seen += ground
    seen += glow
    seen += np.float32(_NOISE_SD) * rng.standard_normal(seen.shape, dtype=np.float32)
    return seen


def _composed(count: int, nuclei: Bank, rng: np.random.Generator) -> tuple[Image, BoolArray]:
    """Nuclei anywhere on the canvas; where they overlap, their average."""
    corner = rng.integers(0, CANVAS, (count, 2))
    which = rng.integers(0, len(nuclei.light), count)
    wide = CANVAS + PATCH - 1
    offsets = (np.arange(PATCH)[:, None] * wide + np.arange(PATCH)).ravel()
    at = ((corner[:, 0] * wide + corner[:, 1])[:, None] + offsets).ravel()
    cut = slice(PATCH // 2, PATCH // 2 + CANVAS)

    def laid(images: Image) -> Image:
        total = np.bincount(at, images[which].ravel(), minlength=wide * wide)
        return np.asarray(total.reshape(wide, wide)[cut, cut], dtype=np.float32)

    cover = laid(nuclei.mask)
    light = laid(nuclei.light) / np.maximum(cover, np.float32(1.0))
    return np.asarray(light, dtype=np.float32), cover > 0


@final
@frozen(eq=False)
class _Prepared:
    """Small patches of nuclei by depth and by phase of the fine grid within a pixel."""

    light: Image  # (widths · nuclei · 16, 36)
    cover: Image  # (nuclei · 16, 36), the share of a pixel inside
    hidden: Image  # -log(1 - cover)
    energy: Image  # (nuclei,), the sum of squares on the fine grid


def draw_direct(
    counts: IntArray, index: IntArray, *, seed: int, steady: int | None
) -> npt.NDArray[np.uint8]:
    """Draw a batch of pictures of 64 by 64, with the ground of ``steady`` nuclei or their own."""
    prepared = _prepared(seed)
    n, total = len(counts), int(counts.sum())
    corners = np.empty((total, 2), dtype=np.int64)
    which, level = np.empty(total, dtype=np.int64), np.empty(total)
    noise = np.empty((n, SIZE, SIZE), dtype=np.float32)
    rough = [np.empty((n, 2, 2), np.float32), np.empty((n, 4, 4), np.float32)]
    ends = np.cumsum(counts)
    for row, end in enumerate(ends.tolist()):
        many = int(counts[row])
        rng = child(seed, "cells", "direct", int(index[row]), many)
        own = slice(end - many, end)
        corners[own] = rng.integers(0, CANVAS, (many, 2))
        which[own] = rng.integers(0, len(prepared.energy), many)
        depth = np.abs(rng.standard_normal(many)) * _DEPTH_SD
        level[own] = widths(depth, depth.max())
        noise[row] = rng.standard_normal((SIZE, SIZE), dtype=np.float32)
        rough[0][row], rough[1][row] = rng.random((2, 2)), rng.random((4, 4))
    owner = np.repeat(np.arange(n), counts)
    light, share = _laid(prepared, n, owner, corners, which, level)
    energy = np.bincount(owner, prepared.energy[which], minlength=n) * share
    if steady is not None:
        energy[:] = steady * prepared.energy.mean()
    return quantised(_lit(light, energy, noise, rough))


def _laid(
    prepared: _Prepared,
    n: int,
    owner: IntArray,
    corners: IntArray,
    which: IntArray,
    width: FloatArray,
) -> tuple[Image, FloatArray]:
    """Light of each picture, and which share of the nuclei's own area is seen."""
    corner, phase = np.divmod(corners + (2 * _FACTOR * _BLOCKS - _MARGIN), _FACTOR)
    corner -= _BLOCKS
    wide = SIZE + 2 * _BLOCKS
    offsets = (np.arange(_BLOCKS)[:, None] * wide + np.arange(_BLOCKS)).ravel()
    at = (((owner * wide + corner[:, 0]) * wide + corner[:, 1])[:, None] + offsets).ravel()
    form = which * _FACTOR**2 + phase[:, 0] * _FACTOR + phase[:, 1]
    level = np.rint(np.interp(width, SIGMAS, np.arange(len(SIGMAS)))).astype(np.int64)

    def laid(patches: Image) -> FloatArray:
        total = np.bincount(at, patches.ravel(), minlength=n * wide * wide)
        return np.asarray(total, dtype=np.float64).reshape(n, wide, wide)

    # Shares of a pixel that several nuclei cover combine as if independent, 1 - Π(1 - c), and a
    # pixel's light is that share times the nuclei's mean light.
    cover = laid(prepared.cover[form])
    seen = -np.expm1(-laid(prepared.hidden[form]))
    light = laid(prepared.light[level * len(prepared.cover) + form])
    light *= np.divide(seen, cover, out=np.ones_like(seen), where=cover > 0)
    middle = slice(_BLOCKS, _BLOCKS + SIZE)
    inside = seen[:, middle, middle].sum(axis=(1, 2)) / cover.sum(axis=(1, 2))
    return light[:, middle, middle].astype(np.float32), inside


def _lit(light: Image, energy: FloatArray, noise: Image, rough: list[Image]) -> Image:
    """Add the ground, whose energy on the fine grid is tied to the nuclei's, and noise."""
    level = np.sqrt(energy / CANVAS**2).astype(np.float32)[:, None, None]
    glow = from_noise(rough, SIZE, [1.0, 1.0])
    glow /= np.sqrt(np.einsum("nij,nij->n", glow, glow) / SIZE**2)[:, None, None]
    light += level * np.float32(np.sqrt(_ILLUMINATION)) * illumination(SIZE)
    light += level * np.float32(np.sqrt(_AUTOFLUORESCENCE)) * glow
    light += np.float32(_NOISE_SD / _FACTOR) * noise
    return light


@lru_cache(maxsize=4)
def _prepared(seed: int) -> _Prepared:
    nuclei = bank(seed)
    each = len(nuclei.light) // _FORMS
    number = np.arange(each)
    chosen = (number % _FORMS) * each + number
    sharp, mask = nuclei.light[chosen], nuclei.mask[chosen]
    reach = _MARGIN - PATCH // 2
    pad = ((0, 0), (reach, reach), (reach, reach))
    sharp, mask = np.pad(sharp, pad), np.pad(mask, pad)
    cover = _phases(mask[None])
    return _Prepared(
        light=_phases(blurred(np.stack([sharp] * len(SIGMAS)))),
        cover=cover,
        hidden=-np.log1p(-np.minimum(cover, np.float32(_MOST_COVER))),
        energy=np.square(sharp).sum(axis=(1, 2)),
    )


def _phases(images: Image) -> Image:
    """Block means at all 16 phases, shape (levels · nuclei · 16, 36)."""
    levels, count, side, _ = images.shape
    fine = _BLOCKS * _FACTOR
    out = np.empty((levels, count, _FACTOR, _FACTOR, _BLOCKS, _BLOCKS), dtype=np.float32)
    for down in range(_FACTOR):
        for right in range(_FACTOR):
            room = np.zeros((levels, count, fine, fine), dtype=np.float32)
            room[:, :, down : down + side, right : right + side] = images
            blocks = room.reshape(levels, count, _BLOCKS, _FACTOR, _BLOCKS, _FACTOR)
            out[:, :, down, right] = blocks.mean(axis=(3, 5))
    return out.reshape(-1, _BLOCKS * _BLOCKS)
