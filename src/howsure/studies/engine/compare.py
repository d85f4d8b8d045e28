"""Numbers of several methods side by side."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, final

import pyarrow as pa

from howsure.core.records import Direction

_Z: Final = 1.959964  # two-sided 95 %


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One method's number.

    Attributes
    ----------
    value, standard_error : float
        NaN where not known.
    reason : str
        Why the value is missing, or what limits it.
    """

    value: float
    standard_error: float
    reason: str = ""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """One measure of all methods on one world.

    Attributes
    ----------
    world, metric : str
        What was measured where.
    coverage : float
        The nominal coverage that it belongs to; NaN where none.
    direction : Direction
        Which values are better.
    target : float
        The value of a perfect method.
    cells : mapping of str to Cell
        By method, and by seed where there are several.
    best : tuple of str
        The best method, and those within 1.96 standard errors of the difference (taken as if
        independent, which is wide where methods saw the same data). Empty where no direction is
        better.
    """

    world: str
    metric: str
    coverage: float
    direction: Direction
    target: float
    cells: Mapping[str, Cell]
    best: tuple[str, ...]


def side_by_side(table: pa.Table, metrics: Sequence[str] | None = None) -> tuple[Comparison, ...]:
    """Methods beside each other, one comparison a world, measure and coverage.

    Parameters
    ----------
    table : pyarrow.Table
        Columns ``world``, ``method``, ``seed``, and those of `records_table`.
    metrics : sequence of str, optional
        Which measures, in this order; all if omitted.

    Returns
    -------
    tuple of Comparison
        World by world, in the table's order.

    Examples
    --------
    >>> from howsure.core.records import Record
    >>> from howsure.studies.engine.tables import records_table, stacked
    >>> def row(method, value):
    ...     error = Record(
    ...         metric="rmse", value=value, standard_error=0.1, direction=Direction.LOWER
    ...     )
    ...     return records_table([error], {"world": "line", "method": method, "seed": 0})
    >>> side_by_side(stacked([row("a", 1.0), row("b", 1.1), row("c", 2.0)]))[0].best
    ('a', 'b')
    """
    rows = table.to_pylist()
    many = len({row["seed"] for row in rows}) > 1
    groups: dict[tuple[str, str, float | None], list[dict[str, Any]]] = {}
    for row in rows:
        coverage = None if math.isnan(row["coverage"]) else row["coverage"]
        groups.setdefault((row["world"], row["metric"], coverage), []).append(row)
    order = {name: place for place, name in enumerate(metrics or ())}
    keys = [key for key in groups if metrics is None or key[1] in order]
    if metrics is not None:
        worlds = list(dict.fromkeys(key[0] for key in keys))
        keys.sort(key=lambda key: (worlds.index(key[0]), order[key[1]], key[2] or 0.0))
    return tuple(_compared(key, groups[key], many=many) for key in keys)


def _compared(
    key: tuple[str, str, float | None], rows: Sequence[Mapping[str, Any]], *, many: bool
) -> Comparison:
    cells = {
        f"{row['method']}, seed {row['seed']}" if many else row["method"]: Cell(
            value=row["value"], standard_error=row["standard_error"], reason=row["reason"]
        )
        for row in rows
    }
    direction, target = Direction(rows[0]["direction"]), rows[0]["target"]
    return Comparison(
        world=key[0],
        metric=key[1],
        coverage=math.nan if key[2] is None else key[2],
        direction=direction,
        target=target,
        cells=cells,
        best=_best(cells, direction, target),
    )


def _best(cells: Mapping[str, Cell], direction: Direction, target: float) -> tuple[str, ...]:
    costs = {name: _cost(cell.value, direction, target) for name, cell in cells.items()}
    known = {name: cost for name, cost in costs.items() if not math.isnan(cost)}
    if not known:
        return ()
    winner = min(known, key=lambda name: known[name])

    def near(name: str) -> bool:
        errors = (cells[name].standard_error, cells[winner].standard_error)
        reach = _Z * math.hypot(*(0.0 if math.isnan(error) else error for error in errors))
        return known[name] == known[winner] or known[name] - known[winner] <= reach

    return tuple(name for name in known if near(name))


def _cost(value: float, direction: Direction, target: float) -> float:
    """What is to be small; NaN where nothing is better."""
    if direction is Direction.LOWER:
        return value
    if direction is Direction.HIGHER:
        return -value
    return abs(value - target) if direction is Direction.TARGET else math.nan
