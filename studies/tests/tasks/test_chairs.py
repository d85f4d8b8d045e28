"""Drawn chairs: pixels against rays through the solids, and how they stand."""

from __future__ import annotations

import numpy as np
import pytest

from howsure.core.errors import InputError
from howsure_studies.tasks.images import draw_chairs
from howsure_studies.tasks.images.chairs import (
    _FACES,
    DESIGNS,
    Solid,
    _project,
    block,
    chair,
    framed,
    render,
)


def by_rays(solid: Solid, yaw: float, size: int) -> np.ndarray:
    """Which block each pixel's ray meets first, and on which side: cut rays by planes."""
    seen = _project(solid.corners, yaw)
    centre = seen.mean(axis=1)
    owner = np.zeros((size, size), dtype=int)
    for row in range(size):
        for column in range(size):
            right, up = (column + 0.5) * 2 / size - 1, 1 - (row + 0.5) * 2 / size
            best = np.inf
            for number, corners in enumerate(seen):
                enter, leave, side = -np.inf, np.inf, -1
                for face, four in enumerate(corners[_FACES]):
                    normal = np.cross(four[1] - four[0], four[3] - four[0])
                    normal *= -np.sign(normal @ (centre[number] - four[0]))
                    gap = normal @ (four[0] - np.array([right, up, 0.0]))
                    if abs(normal[2]) < 1e-12:
                        leave = -np.inf if gap < 0 else leave
                    elif normal[2] < 0 and gap / normal[2] > enter:
                        enter, side = gap / normal[2], face
                    elif normal[2] > 0:
                        leave = min(leave, gap / normal[2])
                if enter < leave and enter < best:
                    best, owner[row, column] = enter, 1 + 6 * number + side
    return owner


def test_pixels_show_what_rays_meet_first() -> None:
    bars = [
        block((0, 0, -0.4), (0.1, 0, 0.4), (0.3, 0, 0), (0, 0.2, 0)),
        block((-0.5, 0.1, 0), (0.5, 0.2, 0.1), (0, 0.1, 0), (0, 0, 0.1)),
        block((0.3, -0.4, -0.5), (0.3, -0.3, 0.5), (0.1, 0, 0), (0, 0.1, 0)),
    ]
    colours = np.array([[1.0, 0, 0], [0, 1.0, 0], [0, 0, 1.0]])
    solid = framed(Solid(np.stack(bars), colours), 0.9)
    picture = render(solid, 0.6, size=40, finer=1)
    owner = by_rays(solid, 0.6, 40)
    which = np.where((picture == 255).all(axis=2), 0, 1 + picture.argmax(axis=2))
    block_of = np.where(owner > 0, 1 + (owner - 1) // 6, 0)
    assert np.mean(which != block_of) < 0.002
    for face in np.unique(owner[owner > 0]):
        shades = picture[(owner == face) & (which == block_of)].max(axis=1)
        assert np.ptp(shades.astype(int)) == 0


def mass(picture: np.ndarray) -> np.ndarray:
    return 255.0 - picture.astype(float).mean(axis=2)


@pytest.mark.parametrize("design", range(0, DESIGNS, 6))
def test_seen_from_the_side_the_back_is_on_the_right(design: int) -> None:
    ink = mass(draw_chairs([design], [0.1])[0])
    rows = np.flatnonzero(ink.any(axis=1))
    top = ink[rows[0] : rows[0] + 4].sum(axis=0)
    assert (top * np.arange(64)).sum() / top.sum() > 36


@pytest.mark.parametrize("design", range(0, DESIGNS, 6))
def test_seen_from_behind_nothing_but_a_star_base_is_lopsided(design: int) -> None:
    ink = mass(draw_chairs([design], [90.0])[0])[:36]
    assert np.abs(ink - ink[:, ::-1]).sum() < 0.35 * ink.sum()


def test_chairs_fill_most_of_the_frame_on_white_ground() -> None:
    drawn = draw_chairs(np.repeat(np.arange(DESIGNS), 2), np.tile([20.0, 70.0], DESIGNS))
    assert (drawn[:, [0, -1]] == 255).all()
    assert (drawn[:, :, [0, -1]] == 255).all()
    tall = [np.ptp(np.flatnonzero((part < 255).any(axis=(1, 2)))) / 64 for part in drawn]
    assert 0.6 < np.mean(tall) < 0.85
    assert max(tall) <= 0.85


def test_a_chair_turns_smoothly_and_designs_differ() -> None:
    drawn = draw_chairs([5] * 90, np.arange(0.5, 90)).astype(float)
    steps = np.abs(np.diff(drawn, axis=0)).mean(axis=(1, 2, 3))
    far = np.abs(drawn[0] - drawn[-1]).mean()
    assert steps.max() < 0.5 * far
    each = draw_chairs(np.arange(DESIGNS), np.full(DESIGNS, 45.0)).reshape(DESIGNS, -1)
    assert len(np.unique(each, axis=0)) == DESIGNS


def test_a_picture_is_fixed_by_seed_design_and_angle() -> None:
    both = draw_chairs([3, 8], [12.3, 77.7], seed=2)
    assert np.array_equal(draw_chairs([8], [77.7], seed=2)[0], both[1])
    assert not np.array_equal(draw_chairs([8], [77.7], seed=3)[0], both[1])
    assert chair(0, 1).corners.shape[0] == len(chair(0, 1).colours)


def test_wrong_wishes_are_refused() -> None:
    with pytest.raises(InputError, match="design must be in 0 … 48, got 49"):
        draw_chairs([49], [1.0])
    with pytest.raises(InputError, match="design must have 2 rows, got 1"):
        draw_chairs([1], [1.0, 2.0])
