"""Chairs of 49 designs, drawn at any angle: a stand-in for RC-49, whose renderer is not public.

A design and an angle fix a picture; nothing else varies. As in RC-49 the ground is white, the
chair is centred, and the camera looks down a little. At yaw 0 the chair is seen from its side,
the seat pointing left; at 90 degrees from behind.

Solids of flat faces are seen without perspective: the nearest face wins, lit from the camera.
"""

from __future__ import annotations

import colorsys
from functools import lru_cache
from typing import Final, final

import numpy as np
import numpy.typing as npt

from howsure.core.arrays import FloatArray, as_vector
from howsure.core.classes import frozen
from howsure.core.errors import InputError
from howsure.core.rng import child

Point = tuple[float, float, float]

DESIGNS: Final = 49

_FILL: Final = 0.8
_ELEVATION: Final = np.deg2rad(25.0)
"""How far the camera looks down."""

_FACES: Final = np.array(
    [[0, 3, 2, 1], [4, 5, 6, 7], [0, 1, 5, 4], [1, 2, 6, 5], [2, 3, 7, 6], [3, 0, 4, 7]]
)
"""Corners of a block's faces, counter-clockwise from outside; 0-3 are its bottom, 4-7 its top."""

_LIGHT: Final = np.array([-0.35, 0.75, -0.56])
_AMBIENT: Final = 0.55


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
        raise InputError(f"design must be in 0 … {DESIGNS - 1}, got {which.min()} … {which.max()}")
    solids = [chair(seed, int(number)) for number in which]
    pairs = zip(solids, angles.tolist(), strict=True)
    return np.stack([render(solid, angle, size=size) for solid, angle in pairs])


@final
@frozen(eq=False)
class Solid:
    """Blocks of eight corners, each of one colour."""

    corners: FloatArray  # (b, 8, 3): front, left, up; 0-3 go round the bottom, 4-7 the top
    colours: FloatArray  # (b, 3): red, green and blue in [0, 1]


def block(start: Point, end: Point, wide: Point, deep: Point) -> FloatArray:
    """A bar between two points, with the half-axes of its cross-section."""
    u, v = np.array(wide, dtype=float), np.array(deep, dtype=float)
    along = np.array(end, dtype=float) - np.array(start, dtype=float)
    if np.dot(np.cross(u, v), along) < 0:
        v = -v
    ring = np.stack([-u - v, u - v, u + v, v - u])
    return np.concatenate([ring + np.array(start, dtype=float), ring + np.array(end, dtype=float)])


def framed(solid: Solid, fill: float) -> Solid:
    """Centre a solid and scale it, so that turned by any angle it fills this share of a frame."""
    points = solid.corners.reshape(-1, 3)
    middle = (points.min(axis=0) + points.max(axis=0)) / 2.0
    corners = solid.corners - middle
    views = np.stack([_project(corners, yaw)[..., :2] for yaw in np.deg2rad(np.arange(0, 91, 5))])
    return Solid(corners * (fill / float(np.abs(views).max())), solid.colours)


def render(solid: Solid, yaw: float, *, size: int = 64, finer: int = 4) -> npt.NDArray[np.uint8]:
    """Draw a solid on white ground, ``finer`` samples a pixel and direction averaged."""
    fine = size * finer
    faces = _project(solid.corners, yaw)[:, _FACES].reshape(-1, 4, 3)
    normal = np.cross(faces[:, 3] - faces[:, 0], faces[:, 1] - faces[:, 0])
    normal /= np.linalg.norm(normal, axis=1, keepdims=True)
    visible = np.flatnonzero(normal[:, 2] < -1e-6)
    lit = _AMBIENT + (1.0 - _AMBIENT) * np.maximum(normal[visible] @ _LIGHT, 0.0)
    shade = np.vstack([np.ones(3), np.repeat(solid.colours, 6, axis=0)[visible] * lit[:, None]])
    owner = _nearest(faces[visible], normal[visible], fine)
    table = np.asarray(shade * 255.0, dtype=np.float32)
    blocks = owner.reshape(size, finer, size, finer).transpose(0, 2, 1, 3).reshape(-1, finer**2)
    colours = table[blocks[:, 0]]
    mixed = np.flatnonzero((blocks != blocks[:, :1]).any(axis=1))
    colours[mixed] = table[blocks[mixed]].mean(axis=1)
    return np.asarray((colours + 0.5).astype(np.uint8)).reshape(size, size, 3)


def _project(points: FloatArray, yaw: float) -> FloatArray:
    """Points as the camera sees them: right, up and away."""
    front, left, up = points[..., 0], points[..., 1], points[..., 2]
    right = -front * np.cos(yaw) - left * np.sin(yaw)
    away = front * np.sin(yaw) - left * np.cos(yaw)
    cos, sin = np.cos(_ELEVATION), np.sin(_ELEVATION)
    return np.stack([right, up * cos + away * sin, away * cos - up * sin], axis=-1)


def _nearest(faces: FloatArray, normal: FloatArray, fine: int) -> npt.NDArray[np.int16]:
    """Which face each sample shows, 0 for none and k + 1 for face k, shape (fine, fine)."""
    half = fine / 2.0
    x = (faces[..., 0] + 1.0) * half - 0.5
    y = (1.0 - faces[..., 1]) * half - 0.5
    left, right = np.ceil(x.min(axis=1)).astype(int), np.floor(x.max(axis=1)).astype(int) + 1
    top, bottom = np.ceil(y.min(axis=1)).astype(int), np.floor(y.max(axis=1)).astype(int) + 1
    left, top = np.maximum(left, 0), np.maximum(top, 0)
    right, bottom = np.minimum(right, fine), np.minimum(bottom, fine)
    edge_x, edge_y = np.roll(x, -1, axis=1) - x, np.roll(y, -1, axis=1) - y
    turn = np.sign(edge_x[:, 0] * edge_y[:, 1] - edge_y[:, 0] * edge_x[:, 1])[:, None]
    slope_x, slope_y = -edge_y * turn, edge_x * turn
    offset = -(slope_x * x + slope_y * y)
    fall_x = -normal[:, 0] / normal[:, 2] / half
    fall_y = normal[:, 1] / normal[:, 2] / half
    level = faces[:, 0, 2] - fall_x * x[:, 0] - fall_y * y[:, 0]
    grid = np.arange(fine, dtype=np.float64)
    depth = np.full((fine, fine), np.inf)
    owner = np.zeros((fine, fine), dtype=np.int16)
    for k in range(len(faces)):
        if left[k] >= right[k] or top[k] >= bottom[k]:
            continue
        across, down = grid[left[k] : right[k]], grid[top[k] : bottom[k], None]
        far = fall_x[k] * across + (fall_y[k] * down + level[k])
        window = (slice(top[k], bottom[k]), slice(left[k], right[k]))
        wins = far < depth[window]
        for a, b, c in zip(slope_x[k], slope_y[k], offset[k], strict=True):
            wins &= a * across >= -(b * down + c)
        np.copyto(depth[window], far, where=wins)
        np.copyto(owner[window], np.int16(k + 1), where=wins)
    return owner


@lru_cache(maxsize=4 * DESIGNS)
def chair(seed: int, design: int) -> Solid:
    """One design: seat, legs, back, and perhaps arms, centred and scaled to fill a frame."""
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
    parts += _build_back(rng, half_deep, half_wide, high, cloth, wood)
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


def _build_back(
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
