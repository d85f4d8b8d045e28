"""What a microscope adds: blur by depth, uneven light, and the sum that a camera sees."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

import numpy as np
import numpy.typing as npt
from scipy import ndimage

Image = npt.NDArray[np.float32]
FloatArray = npt.NDArray[np.float64]

SIGMAS: Final = np.array([0.5, 0.8, 1.2, 1.8, 2.8, 5.0])
"""Widths of blur that are computed, in pixels of 256; between them, light is shared."""

DEPTH_SD: Final = 0.5
ILLUMINATION: Final = 1.0
AUTOFLUORESCENCE: Final = 0.05
NOISE_SD: Final = 0.01
_REACH: Final = 4


def blurred(images: Image) -> Image:
    """Blur one image by each width, with Gaussian windows of nine pixels.

    Parameters
    ----------
    images : ndarray of float32, shape (len(SIGMAS), ..., h, w)
        What is blurred by each width; values at the border are repeated beyond it.

    Returns
    -------
    ndarray of float32, of the same shape

    Examples
    --------
    >>> flat = np.ones((6, 12, 12), dtype=np.float32)
    >>> bool(np.allclose(blurred(flat), 1.0))
    True
    """
    parts = zip(images, _kernels(), strict=True)
    return np.stack([_smoothed(_smoothed(part, -1, half), -2, half) for part, half in parts])


def focus_blur(light: Image, inside: npt.NDArray[np.bool_], rng: np.random.Generator) -> Image:
    """Spread the light of each connected piece by the piece's own depth.

    A piece has a depth, the size of a draw from N(0, 0.5²); depths, with the ground at 0, are
    stretched to the widths 0.5 … 5. A piece between two widths of `SIGMAS` shares its light
    between them.

    Parameters
    ----------
    light : ndarray of float32, shape (h, w)
        The sharp image, 0 outside the pieces.
    inside : ndarray of bool, shape (h, w)
        Where nuclei are.
    rng : numpy.random.Generator
        Where depths come from.

    Returns
    -------
    ndarray of float32, shape (h, w)

    Examples
    --------
    >>> light = np.zeros((20, 20), dtype=np.float32)
    >>> light[8:12, 8:12] = 1.0
    >>> seen = focus_blur(light, light > 0, np.random.default_rng(0))
    >>> bool(seen[10, 10] < 1.0), bool(seen[10, 13] > 0.0), f"{seen.sum():.3f}"
    (True, True, '16.000')
    """
    pieces, count = ndimage.label(inside, structure=np.ones((3, 3)))
    depth = np.abs(rng.normal(0.0, DEPTH_SD, max(count, 1)))
    place = np.interp(widths(depth, depth.max()), SIGMAS, np.arange(len(SIGMAS)))
    low = np.minimum(place.astype(int), len(SIGMAS) - 2)
    at = np.flatnonzero(inside)
    piece = pieces.ravel()[at] - 1
    bright = light.ravel()[at]
    upper = bright * (place - low).astype(np.float32)[piece]
    shared = np.zeros((len(SIGMAS), light.size), dtype=np.float32)
    shared[low[piece], at] = bright - upper
    shared[low[piece] + 1, at] = upper
    return np.asarray(blurred(shared.reshape(-1, *light.shape)).sum(axis=0))


def widths(depth: FloatArray, deepest: float | FloatArray) -> FloatArray:
    """Widths of blur of depths, in pixels: 0 gives 0.5, the deepest 5.

    Examples
    --------
    >>> widths(np.array([0.0, 0.4]), 0.4)
    array([0.5, 5. ])
    """
    return np.asarray(SIGMAS[0] + (SIGMAS[-1] - SIGMAS[0]) * depth / deepest)


@lru_cache(maxsize=4)
def illumination(size: int) -> Image:
    """A paraboloid of light of mean square 1, brightest in the middle.

    Parameters
    ----------
    size : int
        Pixels a side.

    Returns
    -------
    ndarray of float32, shape (size, size)

    Examples
    --------
    >>> light = illumination(64)
    >>> bool(light[32, 32] > light[0, 0]), float(np.mean(light**2))
    (True, 1.0)
    """
    fine = 256 // size * size
    along = np.arange(-fine, fine, 2.0)
    square = along[:, None] ** 2 + along**2
    light = 1.0 - square / square.max()
    light /= np.sqrt(np.mean(light**2))
    reduced = shrunk(light[None].astype(np.float32), fine // size)[0]
    return np.asarray(reduced / np.sqrt(np.mean(reduced.astype(float) ** 2)), dtype=np.float32)


def shrunk(images: Image, factor: int) -> Image:
    """Average blocks of pixels, shape (n, h, w) to (n, h / factor, w / factor).

    Examples
    --------
    >>> shrunk(np.arange(4.0, dtype=np.float32).reshape(1, 2, 2), 2)
    array([[[1.5]]], dtype=float32)
    """
    if factor == 1:
        return images
    n, height, width = images.shape
    blocks = images.reshape(n, height // factor, factor, width // factor, factor)
    return np.asarray(blocks.sum(axis=(2, 4)) / np.float32(factor**2), dtype=np.float32)


def quantised(images: Image) -> npt.NDArray[np.uint8]:
    """Clip to [0, 1] and round to 8 bits.

    Examples
    --------
    >>> quantised(np.array([-1.0, 0.5, 2.0], dtype=np.float32)).tolist()
    [0, 128, 255]
    """
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
