"""Chairs of 49 designs, drawn at any angle: a stand-in for RC-49, whose renderer is not public.

A design and an angle fix a picture; nothing else varies. As in RC-49 the ground is white, the
chair is centred, and the camera looks down a little. At yaw 0 the chair is seen from its side,
the seat pointing left; at 90 degrees from behind.
"""

from __future__ import annotations

import colorsys
from functools import lru_cache
from typing import Final

import numpy as np
import numpy.typing as npt

from howsure.core.arrays import as_vector
from howsure.core.errors import InputError
from howsure.core.rng import child
from howsure.studies.tasks.images.solids import FloatArray, Solid, block, framed, render

DESIGNS: Final = 49

_FILL: Final = 0.8


def draw_chairs(
    design: npt.ArrayLike, yaw: npt.ArrayLike, *, seed: int = 0, size: int = 64
) -> npt.NDArray[np.uint8]:
    """Draw chairs.

    Parameters
    ----------
    design : array-like of int, shape (n,)
        Which of the designs 0 … 48.
    yaw : array-like of float, shape (n,)
        Angles about the vertical, in degrees.
    seed : int
        Fixes the 49 designs.
    size : int
        Pixels a side.

    Returns
    -------
    ndarray of uint8, shape (n, size, size, 3)
        Red, green and blue.

    Raises
    ------
    InputError
        If there is no such design, or shapes differ.

    Examples
    --------
    >>> pictures = draw_chairs([0, 0], [10.0, 80.0])
    >>> pictures.shape, pictures[0, 0, 0].tolist()
    ((2, 64, 64, 3), [255, 255, 255])
    """
    angles = np.deg2rad(as_vector(yaw, "yaw"))
    which = as_vector(design, "design", length=len(angles)).astype(int)
    if (which < 0).any() or (which >= DESIGNS).any():
        raise InputError(f"design must lie in 0 … {DESIGNS - 1}, got {which.min()} … {which.max()}")
    solids = [chair(seed, int(number)) for number in which]
    pairs = zip(solids, angles.tolist(), strict=True)
    return np.stack([render(solid, angle, size=size) for solid, angle in pairs])


@lru_cache(maxsize=4 * DESIGNS)
def chair(seed: int, design: int) -> Solid:
    """One design: seat, legs, back, and perhaps arms, centred and scaled to fill a frame.

    Parameters
    ----------
    seed : int
        Fixes the designs.
    design : int
        Which.

    Returns
    -------
    Solid

    Examples
    --------
    >>> chair(0, 3).corners.shape[1:]
    (8, 3)
    """
    rng = child(seed, "chairs", design)
    cloth, wood = _colour(rng, 0.35, 0.95), _colour(rng, 0.3, 0.7)
    half_wide, half_deep = rng.uniform(0.2, 0.28), rng.uniform(0.2, 0.27)
    height, thick = rng.uniform(0.4, 0.5), rng.uniform(0.015, 0.05)
    seat = block(
        (0, 0, height - thick), (0, 0, height + thick), (half_deep, 0, 0), (0, half_wide, 0)
    )
    low, high = height - thick, height + thick
    support = (_four_legs, _sled, _pedestal)[rng.choice(3, p=[0.6, 0.2, 0.2])]
    parts = [(seat, cloth)]
    parts += [(leg, wood) for leg in support(rng, half_deep, half_wide, low)]
    parts += _back(rng, half_deep, half_wide, high, cloth, wood)
    if rng.random() < 0.4:
        parts += [(arm, wood) for arm in _arms(rng, half_deep, half_wide, high)]
    corners, colours = zip(*parts, strict=True)
    return framed(Solid(np.stack(corners), np.stack(colours)), _FILL)


def _colour(rng: np.random.Generator, least: float, most: float) -> FloatArray:
    hue, strength, value = rng.random(), rng.uniform(0.2, 0.9), rng.uniform(least, most)
    return np.array(colorsys.hsv_to_rgb(hue, strength, value))


def _four_legs(rng: np.random.Generator, deep: float, wide: float, low: float) -> list[FloatArray]:
    half, splay = rng.uniform(0.012, 0.03), rng.uniform(0.0, 0.08)
    return [
        block(
            (front * (deep - half + splay), left * (wide - half + splay), 0),
            (front * (deep - half), left * (wide - half), low),
            (half, 0, 0),
            (0, half, 0),
        )
        for front in (-1, 1)
        for left in (-1, 1)
    ]


def _sled(rng: np.random.Generator, deep: float, wide: float, low: float) -> list[FloatArray]:
    half = rng.uniform(0.01, 0.02)
    out = []
    for side in (-(wide - half), wide - half):
        ends = [(front * (deep - half), side) for front in (-1, 1)]
        out += [block((f, s, 0), (f, s, low), (half, 0, 0), (0, half, 0)) for f, s in ends]
        out.append(block((-deep, side, half), (deep, side, half), (0, half, 0), (0, 0, half)))
    return out


def _pedestal(rng: np.random.Generator, deep: float, wide: float, low: float) -> list[FloatArray]:
    half, feet = rng.uniform(0.025, 0.045), int(rng.integers(4, 6))
    reach, start = rng.uniform(0.8, 1.1) * min(deep, wide), rng.uniform(0.0, 2.0 * np.pi)
    out = [block((0, 0, 0.05), (0, 0, low), (half, 0, 0), (0, half, 0))]
    for angle in start + 2.0 * np.pi * np.arange(feet) / feet:
        cos, sin = float(np.cos(angle)), float(np.sin(angle))
        aside = (-0.02 * sin, 0.02 * cos, 0.0)
        out.append(block((0, 0, 0.07), (reach * cos, reach * sin, 0.02), aside, (0, 0, 0.02)))
    return out


def _back(
    rng: np.random.Generator,
    deep: float,
    wide: float,
    high: float,
    cloth: FloatArray,
    wood: FloatArray,
) -> list[tuple[FloatArray, FloatArray]]:
    """A back that leans, bends, and is a panel, or posts with slats or rungs."""
    tall, half = rng.uniform(0.35, 0.6), rng.uniform(0.01, 0.025)
    lean, bend = np.deg2rad(rng.uniform(2.0, 12.0)), np.deg2rad(rng.uniform(0.0, 14.0))
    steps = 4
    angles = lean + bend * np.arange(steps) / (steps - 1)
    line = np.zeros((steps + 1, 2))
    line[:, 0], line[:, 1] = -(deep - half), high
    line[1:, 0] -= np.cumsum(np.sin(angles)) * tall / steps
    line[1:, 1] += np.cumsum(np.cos(angles)) * tall / steps
    style = rng.choice(["panel", "slats", "rungs"], p=[0.4, 0.3, 0.3])

    def strip(left: float, width: float, colour: FloatArray) -> list[tuple[FloatArray, FloatArray]]:
        return [
            (
                block(
                    (line[k, 0], left, line[k, 1]),
                    (line[k + 1, 0], left, line[k + 1, 1]),
                    (half, 0, 0),
                    (0, width, 0),
                ),
                colour,
            )
            for k in range(steps)
        ]

    if style == "panel":
        return strip(0.0, wide * rng.uniform(0.8, 1.0), cloth)
    post = max(half, 0.015)
    parts = strip(wide - post, post, wood) + strip(-(wide - post), post, wood)
    top = block(
        (line[-1, 0], -wide, line[-1, 1]),
        (line[-1, 0], wide, line[-1, 1]),
        (half, 0, 0),
        (0, 0, rng.uniform(0.02, 0.05)),
    )
    parts.append((top, wood))
    if style == "slats":
        for left in np.linspace(-wide, wide, int(rng.integers(4, 8)))[1:-1]:
            parts += strip(float(left), 0.012, cloth)
        return parts
    for share in np.linspace(0.3, 0.8, int(rng.integers(2, 4))):
        at = np.array([np.interp(share * steps, np.arange(steps + 1), line[:, i]) for i in (0, 1)])
        rung = block((at[0], -wide, at[1]), (at[0], wide, at[1]), (half, 0, 0), (0, 0, 0.03))
        parts.append((rung, cloth))
    return parts


def _arms(rng: np.random.Generator, deep: float, wide: float, high: float) -> list[FloatArray]:
    rise, half = rng.uniform(0.15, 0.24), rng.uniform(0.012, 0.025)
    front = deep * rng.uniform(0.4, 0.9)
    out = []
    for side in (-wide, wide):
        out.append(
            block((front, side, high), (front, side, high + rise), (half, 0, 0), (0, half, 0))
        )
        out.append(
            block(
                (-deep, side, high + rise),
                (front + half, side, high + rise),
                (0, half, 0),
                (0, 0, half),
            )
        )
    return out
