"""The synthetic tasks' variants: which counts or angles are trained on, and which tested.

Boundaries are those of Gustafsson, Danelljan and Schön (2023). In a variant, training and
validation see a part of the range (Tails: its middle; Gap: its two ends) and the main test the
whole. Three steps widen the test range towards the whole one: tests named ``step-1`` to
``step-3``, beside ``full``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final, final

import numpy as np

from howsure.core.arrays import BoolArray, FloatArray, IntArray
from howsure.core.errors import InputError
from howsure.core.rng import child
from howsure.studies.tasks.images.pools import Pool
from howsure.studies.tasks.parts import Part

Ranges = tuple[tuple[float, float], ...]
"""Closed intervals; a label lies in the range if it lies in one of them."""

FULL: Final = "full"
_PER_ANGLE: Final = 25


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """What is trained on, and what each test covers.

    Attributes
    ----------
    inside : Ranges
        Labels of training and validation.
    tests : mapping of str to Ranges
        Labels of each test part.
    """

    inside: Ranges
    tests: Mapping[str, Ranges] = field(default_factory=lambda: {FULL: ((0.0, np.inf),)})


_TINY: Final = 1e-6
_WHOLE: Final[Ranges] = ((0.0, np.inf),)


def _open(low: float, high: float) -> tuple[float, float]:
    """Bounds of angles between two angles that are both left out."""
    return low + _TINY, high - _TINY


CELLS: Final[Mapping[str, Variant]] = MappingProxyType(
    {
        "cells": Variant(inside=((1, 200),)),
        "cells-tails": Variant(
            inside=((51, 150),),
            tests={
                FULL: _WHOLE,
                "step-1": ((37.5, 163.5),),
                "step-2": ((25, 176),),
                "step-3": ((12.5, 188.5),),
            },
        ),
        "cells-gap": Variant(inside=((1, 49), (151, 200))),
    }
)

CHAIRS: Final[Mapping[str, Variant]] = MappingProxyType(
    {
        "chair-angle": Variant(inside=(_open(0, 90),)),
        "chair-angle-tails": Variant(inside=(_open(15, 75),)),
        "chair-angle-gap": Variant(
            inside=(_open(0, 30), _open(60, 90)),
            tests={
                FULL: _WHOLE,
                "step-1": (_open(0, 33.75), _open(56.25, 90)),
                "step-2": (_open(0, 37.5), _open(52.5, 90)),
                "step-3": (_open(0, 41.25), _open(48.75, 90)),
            },
        ),
    }
)

CELLS_SIZES: Final = MappingProxyType({"train": 10_000, "val": 2_000, FULL: 10_000})
CHAIRS_SIZES: Final = MappingProxyType({"train": 17_640, "val": 4_410, FULL: 11_225})
CHAIRS_SHIFTED_SIZES: Final = MappingProxyType({"train": 11_760, "val": 2_940, FULL: 11_225})

_EDGE_OF_CODE: Final[Ranges] = ((1, 49), (150, 200))


def within(labels: FloatArray, ranges: Ranges) -> BoolArray:
    """Which labels lie in a range.

    Examples
    --------
    >>> within(np.array([49.0, 50.0, 151.0]), ((1, 49), (151, 200))).tolist()
    [True, False, True]
    """
    hits = [(labels >= low) & (labels <= high) for low, high in ranges]
    return np.asarray(np.any(hits, axis=0))


def cells_variant(name: str, *, edge: str = "paper") -> Variant:
    """A variant of Cells.

    Parameters
    ----------
    name : str
        One of `CELLS`.
    edge : {"paper", "code"}
        Whether the upper end of Cells-Gap starts after 150, as the paper writes, or at 150, as
        its code does.

    Raises
    ------
    InputError
        If ``edge`` is neither.

    Examples
    --------
    >>> cells_variant("cells-gap", edge="code").inside
    ((1, 49), (150, 200))
    """
    if edge not in ("paper", "code"):
        raise InputError(f"edge must be paper or code, got {edge!r}")
    if name == "cells-gap" and edge == "code":
        return Variant(inside=_EDGE_OF_CODE)
    return CELLS[name]


def cells_rows(
    pool: Pool, variant: Variant, name: str, seed: int, sizes: Mapping[str, int]
) -> IntArray:
    """Rows of a part of a Cells task.

    In-range rows are shuffled once: validation rows are the first, then comes the in-range half
    of every test, and training rows are the last, so that the number of training rows changes
    no other part. The other half of a test is drawn from out of range, as the benchmark's code
    does; the plain task's test is all in range.

    Raises
    ------
    InputError
        If the pool holds too few images.
    """
    inside = within(pool.labels, variant.inside)
    order = child(seed, "cells", "in range").permutation(np.flatnonzero(inside))
    n_train, n_val, n_test = (sizes[key] for key in ("train", "val", FULL))
    shifted = not inside.all()
    near = n_test - n_test // 2 if shifted else n_test
    _enough(len(order), n_train + n_val + near, "in range")
    if name == "train":
        return order[len(order) - n_train :]
    if name == "val":
        return order[:n_val]
    rows = order[n_val : n_val + near]
    if not shifted:
        return rows
    beyond = np.flatnonzero(~inside & within(pool.labels, variant.tests[name]))
    _enough(len(beyond), n_test // 2, "out of range")
    far = child(seed, "cells", "out of range", name).permutation(beyond)[: n_test // 2]
    mixed = np.concatenate([rows, far])
    return child(seed, "cells", "mix", name).permutation(mixed)


def chairs_rows(pool: Pool, variant: Variant, name: str, seed: int) -> IntArray:
    """Rows of a part of a ChairAngle task.

    Training and validation rows are those that may be trained on and are in range, cut at 80
    per cent. A test has at most 25 images of each other angle of its range.

    Raises
    ------
    InputError
        If none remains.
    """
    whole = within(pool.labels, (_open(0, 90),))
    if name in ("train", "val"):
        rows = np.flatnonzero(pool.training & whole & within(pool.labels, variant.inside))
        rows = child(seed, "chairs", "in range").permutation(rows)
        cut = int(0.8 * len(rows))
        chosen = rows[:cut] if name == "train" else rows[cut:]
    else:
        order = child(seed, "chairs", "test").permutation(np.flatnonzero(~pool.training & whole))
        sorted_rows = order[np.argsort(pool.labels[order], kind="stable")]
        angles, starts = np.unique(pool.labels[sorted_rows], return_index=True)
        rank = np.arange(len(order)) - starts[np.searchsorted(angles, pool.labels[sorted_rows])]
        few = sorted_rows[rank < _PER_ANGLE]
        few = few[within(pool.labels[few], variant.tests[name])]
        chosen = child(seed, "chairs", "mix", name).permutation(few)
    if len(chosen) == 0:
        raise InputError(f"part {name!r} has no image: zero images remain")
    return chosen


def fetched(pool: Pool, rows: IntArray, variant: Variant, *, test: bool) -> Part:
    """Images of chosen rows, with their labels; test rows know whether they are in range."""
    images, kept, notes = pool.fetch(rows)
    return Part(
        x=images,
        y=pool.labels[kept],
        ids=pool.ids(kept),
        in_range=within(pool.labels[kept], variant.inside) if test else None,
        notes=notes,
    )


def _enough(there: int, wanted: int, where: str) -> None:
    if there < wanted:
        raise InputError(f"sizes must not exceed the {there} images {where}, got {wanted}")
