"""Pictures of stained nuclei whose global statistics say little of their number.

Exposure, stain, focus, background, noise, nuclear size and the share of nuclei that touch are
drawn for each picture, independent of the count. So are haze (light from other planes), fibres and
droplets, which are as sharp and as bright as nuclei: sums, histograms and edges are theirs too.
What tells nuclei apart is their shape, which a network sees and a statistic of the whole does not;
see `benchmarks/images.py`.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from howsure.core.arrays import FloatArray, IntArray
from howsure.core.rng import child
from howsure_studies.tasks.images.simcep import SIZE, Image, from_noise, quantised

# Ranges of what is drawn for each picture. Lengths are pixels, light is a share of white.
_RADIUS: Final = (1.2, 1.3)
_RADIUS_SD: Final = 0.1
_STRETCH_SD: Final = 0.2
_TOUCHING: Final = (0.0, 0.3)
_GAP: Final = (0.8, 1.15)
_FOCUS: Final = (0.48, 0.55)
_DEPTH_SD: Final = 0.1
_STAIN: Final = (0.94, 1.0)
_STAIN_SD: Final = (0.05, 0.15)
_GROUND: Final = (0.0, 0.3)
_CLOUDS: Final = (0.0, 0.3)
_HAZE: Final = 6
_HAZE_LIGHT: Final = (0.1, 0.6)
_HAZE_WIDTH: Final = (3.0, 9.0)
_FIBRES: Final = 20
_FIBRE_LIGHT: Final = (0.4, 1.0)
_FIBRE_SD: Final = 0.2
_FIBRE_WIDTH: Final = (0.6, 0.9)
_FIBRE_HALF: Final = (10.0, 30.0)
_BEND_SD: Final = 0.012
_DROPLETS: Final = 16
_DROPLET_LIGHT: Final = (0.5, 1.0)
_DROPLET_RADIUS: Final = (2.5, 6.0)
_DROPLET_EDGE: Final = 2.0
_SHADE: Final = (0.0, 0.2)
_EXPOSURE: Final = (0.37, 0.39)
_NOISE: Final = (0.003, 0.02)
_DARK: Final = 0.3

_PATCH: Final = 9
"""Pixels a side of the patch to which a nucleus gives light."""
_ALONG: Final = np.arange(SIZE, dtype=np.float32)


def draw_micrographs(counts: IntArray, index: IntArray, *, seed: int) -> npt.NDArray[np.uint8]:
    """Draw a batch of pictures of 64 by 64; see `howsure_studies.tasks.images.draw_cells`."""
    pictures = [
        _draw_picture(int(count), child(seed, "cells", "micrograph", int(number), int(count)))
        for count, number in zip(counts, index, strict=True)
    ]
    return quantised(np.stack(pictures))


def _draw_picture(count: int, rng: np.random.Generator) -> Image:
    """One picture: nuclei, fibres, droplets and grounds, as a camera sees them."""
    light = _nuclei(count, rng)
    light += _fibres(rng)
    light += _droplets(rng)
    light += _ground(rng)
    light *= _shade(rng) * np.float32(_log_uniform(rng, _EXPOSURE))
    noise = np.float32(_log_uniform(rng, _NOISE))
    grain = rng.standard_normal(light.shape, dtype=np.float32)
    return np.asarray(light + noise * np.sqrt(np.float32(_DARK) + light) * grain)


def _nuclei(count: int, rng: np.random.Generator) -> Image:
    """Light of ellipsoids, seen through a Gaussian window; where they overlap, it adds."""
    focus, stain_sd = rng.uniform(*_FOCUS), rng.uniform(*_STAIN_SD)
    size = _log_uniform(rng, _RADIUS) * np.exp(_RADIUS_SD * rng.standard_normal(count))
    stretch = np.exp(_STRETCH_SD * rng.standard_normal(count))
    stain = _log_uniform(rng, _STAIN) * np.exp(stain_sd * rng.standard_normal(count))
    blur = focus + _DEPTH_SD * np.abs(rng.standard_normal(count))
    turn = rng.uniform(0.0, np.pi, count)
    centre = _places(size, rng)
    # A projected ellipsoid of half-axes a and b has the variances a²/5 and b²/5.
    first = size**2 * stretch / 5.0 + blur**2
    second = size**2 / stretch / 5.0 + blur**2
    height = stain * size**3 / 5.0 / np.sqrt(first * second)
    cos, sin = np.cos(turn), np.sin(turn)
    down = cos**2 / first + sin**2 / second
    right = sin**2 / first + cos**2 / second
    cross = 2.0 * cos * sin * (1.0 / first - 1.0 / second)
    corner = np.floor(centre).astype(np.int64) - _PATCH // 2
    grid = np.arange(_PATCH)
    y = (corner[:, 0, None] + grid + 0.5 - centre[:, 0, None]).astype(np.float32)
    x = (corner[:, 1, None] + grid + 0.5 - centre[:, 1, None]).astype(np.float32)
    steep = (down[:, None] * y**2)[:, :, None] + (right[:, None] * x**2)[:, None, :]
    steep += (cross[:, None] * y)[:, :, None] * x[:, None, :]
    patches = height[:, None, None] * np.exp(-0.5 * steep)
    wide = SIZE + 2 * _PATCH
    row, column = corner[:, 0, None] + _PATCH + grid, corner[:, 1, None] + _PATCH + grid
    at = row[:, :, None] * wide + column[:, None, :]
    whole = np.bincount(at.ravel(), patches.ravel(), minlength=wide * wide).reshape(wide, wide)
    return whole[_PATCH : _PATCH + SIZE, _PATCH : _PATCH + SIZE].astype(np.float32)


def _places(size: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Centres anywhere, but of a random share beside a nucleus placed before, shape (n, 2)."""
    count = len(size)
    centre = rng.uniform(0.0, SIZE, (count, 2))
    beside = rng.random(count) < rng.uniform(*_TOUCHING)
    other = (rng.random(count) * np.arange(count)).astype(np.int64)
    way = rng.uniform(0.0, 2.0 * np.pi, count)
    apart = rng.uniform(*_GAP, count) * (size + size[other])
    step = apart[:, None] * np.stack([np.cos(way), np.sin(way)], axis=1)
    for row in np.flatnonzero(beside[1:]) + 1:
        centre[row] = (centre[other[row]] + step[row]) % SIZE
    return np.asarray(centre)


def _fibres(rng: np.random.Generator) -> Image:
    """Light of bent fibres, each as sharp and as bright as a nucleus."""
    many = int(rng.integers(0, _FIBRES + 1))
    middle = rng.uniform(0.0, SIZE, (many, 2, 1, 1)).astype(np.float32)
    turn = rng.uniform(0.0, np.pi, (many, 1, 1))
    cos, sin = np.cos(turn).astype(np.float32), np.sin(turn).astype(np.float32)
    half = rng.uniform(*_FIBRE_HALF, (many, 1, 1)).astype(np.float32)
    width = rng.uniform(*_FIBRE_WIDTH, (many, 1, 1)).astype(np.float32)
    bend = (_BEND_SD * rng.standard_normal((many, 1, 1))).astype(np.float32)
    light = _log_uniform(rng, _FIBRE_LIGHT) * np.exp(_FIBRE_SD * rng.standard_normal(many))
    y, x = _ALONG[:, None] - middle[:, 0], _ALONG - middle[:, 1]
    along = x * cos + y * sin
    off = (y * cos - x * sin - bend * along**2) / width
    slope = np.float32(1.0) + (2.0 * bend * along) ** 2
    ends = np.maximum(np.abs(along) - half, np.float32(0.0))
    shape = np.exp(np.float32(-0.5) * (off**2 / slope + ends**2))
    return np.asarray(np.einsum("k,kij->ij", light.astype(np.float32), shape))


def _droplets(rng: np.random.Generator) -> Image:
    """Light of round discs, larger than a nucleus and as sharp and as bright."""
    many = int(rng.integers(0, _DROPLETS + 1))
    middle = rng.uniform(0.0, SIZE, (many, 2, 1)).astype(np.float32)
    radius = rng.uniform(*_DROPLET_RADIUS, (many, 1, 1)).astype(np.float32)
    light = rng.uniform(*_DROPLET_LIGHT, many).astype(np.float32)
    down, right = (_ALONG - middle[:, 0]) ** 2, (_ALONG - middle[:, 1]) ** 2
    far = np.sqrt(down[:, :, None] + right[:, None, :])
    inside = np.clip((radius - far) / np.float32(_DROPLET_EDGE) + np.float32(0.5), 0.0, 1.0)
    return np.asarray(np.einsum("k,kij->ij", light, inside))


def _ground(rng: np.random.Generator) -> Image:
    """An even ground, clouds of autofluorescence, and haze from other planes."""
    rough = [rng.random((1, size, size), dtype=np.float32) for size in (2, 4)]
    clouds = from_noise(rough, SIZE, [1.0, 1.0])[0]
    light = rng.uniform(*_GROUND) + rng.uniform(*_CLOUDS) * clouds
    for _ in range(int(rng.integers(0, _HAZE + 1))):
        middle, bright = rng.uniform(0.0, SIZE, 2), rng.uniform(*_HAZE_LIGHT)
        width = rng.uniform(*_HAZE_WIDTH)
        down, right = np.exp(-0.5 * ((_ALONG - middle[:, None]) / width) ** 2)
        light += bright * np.outer(down, right)
    return np.asarray(light, dtype=np.float32)


def _shade(rng: np.random.Generator) -> Image:
    """Uneven light: brightest anywhere, and falling with the squared distance."""
    middle = rng.uniform(0.2 * SIZE, 0.8 * SIZE, 2)
    down, right = ((_ALONG - middle[:, None]) / SIZE) ** 2
    return np.asarray(1.0 - rng.uniform(*_SHADE) * (down[:, None] + right), dtype=np.float32)


def _log_uniform(rng: np.random.Generator, bounds: tuple[float, float]) -> float:
    return float(np.exp(rng.uniform(*np.log(bounds))))
