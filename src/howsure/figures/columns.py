"""Columns of a table, as the figures need them."""

from __future__ import annotations

import numpy as np

from howsure.core.arrays import FloatArray
from howsure.core.formats import one_line
from howsure.core.records import Table


def number(table: Table, name: str) -> FloatArray | None:
    """A column of numbers; None where the table has none of this name."""
    column = table.columns.get(name)
    if column is None or column.dtype.kind not in "fiu":
        return None
    return column.astype(np.float64)


def texts(table: Table, name: str, limit: int = 60) -> list[str]:
    """A column as short texts; empty ones where the table has none of this name."""
    column = table.columns.get(name)
    if column is None:
        return [""] * len(table)
    return ["" if text is None else one_line(text, limit) for text in column.tolist()]


def of_model(table: Table) -> str:
    """The table's model in brackets, to end a title with; empty where it has none."""
    return f" ({one_line(table.model, 60)})" if table.model else ""
