"""Draw solids of flat faces: orthographic view, nearest face wins, light from the camera."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, final

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]

ELEVATION: Final = np.deg2rad(25.0)
"""How far the camera looks down."""

_FACES: Final = np.array(
    [[0, 3, 2, 1], [4, 5, 6, 7], [0, 1, 5, 4], [1, 2, 6, 5], [2, 3, 7, 6], [3, 0, 4, 7]]
)
"""Corners of a block's faces, counter-clockwise from outside; 0-3 are its bottom, 4-7 its top."""

_LIGHT: Final = np.array([-0.35, 0.75, -0.56])
_AMBIENT: Final = 0.55


@final
@dataclass(frozen=True, slots=True, eq=False)
class Solid:
    """Blocks of eight corners, each of one colour.

    Attributes
    ----------
    corners : ndarray of float, shape (b, 8, 3)
        Front, left and up of each corner, in metres; corners 0-3 go round the bottom, 4-7 the top.
    colours : ndarray of float, shape (b, 3)
        Red, green and blue in [0, 1].
    """

    corners: FloatArray
    colours: FloatArray


def block(
    start: tuple[float, float, float],
    end: tuple[float, float, float],
    wide: tuple[float, float, float],
    deep: tuple[float, float, float],
) -> FloatArray:
    """A bar between two points, with the half-axes of its cross-section.

    Returns
    -------
    ndarray of float, shape (8, 3)
        Its corners, as `Solid` orders them.

    Examples
    --------
    >>> bar = block((0, 0, 0), (0, 0, 1), (0.1, 0, 0), (0, 0.1, 0))
    >>> bar.shape, float(bar[:, 2].max())
    ((8, 3), 1.0)
    """
    u, v = np.array(wide, dtype=float), np.array(deep, dtype=float)
    along = np.array(end, dtype=float) - np.array(start, dtype=float)
    if np.dot(np.cross(u, v), along) < 0:
        v = -v
    ring = np.stack([-u - v, u - v, u + v, v - u])
    return np.concatenate([ring + np.array(start, dtype=float), ring + np.array(end, dtype=float)])


def framed(solid: Solid, fill: float) -> Solid:
    """Centre a solid and scale it, so that turned by any angle it fills this share of a frame.

    Examples
    --------
    >>> cube = block((0, 0, 0), (0, 0, 1), (0.5, 0, 0), (0, 0.5, 0))
    >>> solid = framed(Solid(cube[None], np.ones((1, 3))), 0.8)
    >>> bool(abs(_seen(solid.corners, 0.7)[..., 1]).max() <= 0.8)
    True
    """
    points = solid.corners.reshape(-1, 3)
    middle = (points.min(axis=0) + points.max(axis=0)) / 2.0
    corners = solid.corners - middle
    views = np.stack([_seen(corners, yaw)[..., :2] for yaw in np.deg2rad(np.arange(0, 91, 5))])
    return Solid(corners * (fill / float(np.abs(views).max())), solid.colours)


def render(solid: Solid, yaw: float, *, size: int = 64, finer: int = 4) -> npt.NDArray[np.uint8]:
    """Draw a solid on white ground.

    Parameters
    ----------
    solid : Solid
        Within [-1, 1] on the screen; see `framed`.
    yaw : float
        Radians about the vertical. At 0 its front points to the left; at π/2, away.
    size : int
        Pixels a side.
    finer : int
        Samples a pixel and direction, which are averaged.

    Returns
    -------
    ndarray of uint8, shape (size, size, 3)

    Examples
    --------
    >>> cube = block((0, 0, -0.5), (0, 0, 0.5), (0.5, 0, 0), (0, 0.5, 0))
    >>> picture = render(Solid(cube[None], np.array([[1.0, 0.0, 0.0]])), 0.3)
    >>> picture.shape, picture[0, 0].tolist(), bool(picture[32, 32, 0] > picture[32, 32, 1])
    ((64, 64, 3), [255, 255, 255], True)
    """
    fine = size * finer
    faces = _seen(solid.corners, yaw)[:, _FACES].reshape(-1, 4, 3)
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


def _seen(points: FloatArray, yaw: float) -> FloatArray:
    """Points as the camera sees them: right, up and away."""
    front, left, up = points[..., 0], points[..., 1], points[..., 2]
    right = -front * np.cos(yaw) - left * np.sin(yaw)
    away = front * np.sin(yaw) - left * np.cos(yaw)
    cos, sin = np.cos(ELEVATION), np.sin(ELEVATION)
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
