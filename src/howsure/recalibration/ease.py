"""Bins of rows by ease, between edges that are calibration rows themselves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from howsure.core.arrays import BoolArray, FloatArray, IntArray
from howsure.core.convert import check_whole
from howsure.core.errors import InputError
from howsure.predictions import EvalSet

MOST = 10
"""Bins, where nobody says how many."""
MISSES = 10.0
"""Misses that each of them is to expect."""


@dataclass(frozen=True, slots=True)
class EaseCuts:
    """Bins by ease, learnt from calibration rows."""

    column: str  # the feature that holds the ease
    edges: tuple[float, ...]  # inner edges; an ease on one belongs to the bin above

    @property
    def names(self) -> tuple[str, ...]:
        """The bins in words, from the hardest."""
        count = len(self.edges) + 1
        return tuple(f"ease bin {number} of {count}" for number in range(1, count + 1))

    def find(self, evalset: EvalSet) -> IntArray:
        """Each row's bin, from 0."""
        return np.searchsorted(self.edges, _numbers(evalset, self.column), side="right")

    @classmethod
    def between(cls, rows: EvalSet, bins: int) -> tuple[Self, BoolArray]:
        """Bins of equal numbers of rows, and which rows are no edge.

        An edge is the ease of one row, which must not calibrate: a new row then takes any place
        among the eases of its bin with one probability, and coverage holds exactly in each bin.
        """
        check_whole(bins, "bins", 2)
        column = ease_column(rows)
        ease = _numbers(rows, column)
        places = (np.arange(1, bins) * (rows.n + 1)) // bins - 1
        if bins > (rows.n + 1) // 2:
            raise InputError(
                f"calibration must hold at least {2 * bins - 1:,} rows for {bins} bins by ease, "
                f"got {rows.n:,}"
            )
        order = np.argsort(ease, kind="stable")
        edges, first = np.unique(ease[order][places], return_index=True)
        inner = edges > ease.min()
        edges = edges[inner]
        if not len(edges):
            raise one_ease(rows)
        calibrates = np.ones(rows.n, dtype=np.bool_)
        calibrates[order[places][first[inner]]] = False
        cuts = cls(column, tuple(edges.tolist()))
        rows_inside = np.bincount(cuts.find(rows)[calibrates], minlength=len(edges) + 1)
        return cuts, calibrates | (rows_inside == 0)[cuts.find(rows)]


def has_ease(rows: EvalSet) -> bool:
    """Whether rows say how easy each is."""
    return rows.ease in rows.features


def ease_column(rows: EvalSet) -> str:
    """The feature that holds the ease of each row."""
    if not has_ease(rows):
        raise InputError(
            "the ease of each row is needed: name its column, ease=COLUMN (--ease COLUMN)"
        )
    return rows.ease


def ease_of(rows: EvalSet) -> FloatArray:
    """The ease of each row."""
    return _numbers(rows, ease_column(rows))


def one_ease(rows: EvalSet) -> InputError:
    """The refusal of an ease that tells no rows apart."""
    return InputError(
        f"the ease ({rows.ease!r}) must differ between calibration rows to make bins, and "
        f"{float(ease_of(rows).min()):g} is that of nearly all of them"
    )


def bins_for(rows: int, coverage: float) -> int:
    """How many bins so many rows are cut into, where nobody says: at least 2."""
    return max(2, min(MOST, int(rows * (1.0 - coverage) / MISSES + 1e-9)))


def _numbers(rows: EvalSet, column: str) -> FloatArray:
    values = rows.features.get(column)
    if values is None:
        raise InputError(f"the rows must hold the ease {column!r} as the calibration rows do")
    if values.dtype.kind not in "biuf":
        raise InputError(f"the ease ({column!r}) must be numbers, got {values.dtype}")
    ease = values.astype(np.float64)
    if not np.isfinite(ease).all():
        wrong = ~np.isfinite(ease)
        raise InputError(
            f"the ease ({column!r}) must be finite, got {int(wrong.sum())} rows that are not "
            f"(first at row {int(np.argmax(wrong))})"
        )
    return ease
