"""Tables of the tests, and cuts of them: small, made up, with units or shifted rows."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from howsure_studies.tasks import Part, SplitTable


def split_of(n: int = 400, *, units: int = 0, late: int = 0, labels: bool = False) -> SplitTable:
    """Rows of a line with normal noise; of so many units of unlike sizes; the last units late.

    Labels are two columns of them, ``kind`` of three labels and ``rare`` of a seldom one.
    """
    rng = np.random.default_rng(0)
    x = rng.normal(size=(n, 2))
    y = x[:, 0] + rng.normal(size=n)
    columns: tuple[str, ...] = ("x0", "x1")
    if labels:
        kind, rare = rng.integers(3, size=n), rng.random(n) < 0.05
        flags = [kind == 1, kind == 2, rare]
        x = np.column_stack([x, *(flag.astype(float) for flag in flags)])
        columns += ("kind=b", "kind=c", "rare=yes")
    own = np.sort(rng.integers(units, size=n) % max(units - 1, 1)) if units else None
    shifted = None
    if late:
        shifted = np.arange(n) >= n - late if own is None else own >= units - late
    return SplitTable(
        part=Part(x=x, y=y, ids=np.arange(n).astype(np.str_), columns=columns),
        units=None if own is None else np.array([f"unit {k}" for k in own]),
        shifted=shifted,
        shift="late" if late else "",
        by="the last rows" if late else "",
    )


def reordered(table: SplitTable, order: npt.NDArray[np.int64]) -> SplitTable:
    """The same table with its rows in another order; their ids go with them."""
    part = table.part

    def of(array: Any) -> Any:
        return None if array is None else array[order]

    return replace(
        table,
        part=replace(part, x=part.x[order], y=part.y[order], ids=part.ids[order]),
        units=of(table.units),
        shifted=of(table.shifted),
    )
