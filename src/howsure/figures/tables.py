"""Figures from tables: groups against the nominal coverage, differences between models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from howsure.core.arrays import BoolArray, FloatArray, IntArray
from howsure.core.records import Direction, Table
from howsure.figures.figure import HIGHLIGHT, REFERENCE, Axis, Figure, Layer, Mark
from howsure.figures.palette import SERIES_LIMIT
from howsure.figures.text import distinct, one_line

ROWS_LIMIT = 40
"""The most rows of a dot plot."""
POINTS = "operating points"
"""What the named points on a curve are."""


def figure_of_table(table: Table) -> Figure | None:
    """The figure of a table, where its name and columns allow one.

    ``groups`` needs the columns ``group``, ``empirical_coverage``, ``lower``, ``upper`` and
    ``nominal``. ``models`` needs ``difference`` (of ``model_a`` from ``model_b``), ``lower`` and
    ``upper``; ``metric``, ``coverage`` and the models name the row, and ``direction`` (as in
    `Record`) tells which model it favours.

    Parameters
    ----------
    table : Table
        What to draw.

    Returns
    -------
    Figure or None

    Examples
    --------
    >>> table = Table(name="worst_rows", columns={"row": np.arange(3)})
    >>> figure_of_table(table) is None
    True
    """
    if table.name == "groups":
        return _groups_figure(table)
    if table.name == "models":
        return _models_figure(table)
    return None


def mark_layers(tables: Sequence[Table], name: str, places: Mapping[str, int]) -> list[Layer]:
    """Named points to set on a curve's figure, one layer a table.

    Parameters
    ----------
    tables : sequence of Table
        Where to look.
    name : str
        The table's name. It holds a text column ``point`` and numbers ``x`` and ``y``, or
        ``bandwidth`` and ``miss_rate``.
    places : mapping of str to int
        The models that the figure shows, with their colours.

    Returns
    -------
    list of Layer
        Where there are several models, points have their model's colour and no legend.
    """
    layers: list[Layer] = []
    alone = len(places) == 1
    for table in tables:
        if not name or table.name != name or (table.model and table.model not in places):
            continue
        x, y = _first(table, "x", "bandwidth"), _first(table, "y", "miss_rate")
        if x is None or y is None:
            continue
        rows = np.flatnonzero(np.isfinite(x) & np.isfinite(y))
        names = distinct(_names(table), 60)
        model = one_line(table.model, 60)
        layers.append(
            Layer(
                mark=Mark.POINTS,
                x=x[rows],
                y=y[rows],
                series=POINTS if alone else f"{POINTS} · {model}",
                colour=SERIES_LIMIT - 1 if alone else places.get(table.model, 0),
                labels=tuple(names[row] for row in rows),
                listed=alone,
            )
        )
    return layers


def worst_first(table: Table) -> IntArray:
    """The order of a table's rows that puts the worst first.

    Groups are ordered by the upper end of their coverage's interval: first those whose low
    coverage is best proven. Any other table keeps its order.

    Parameters
    ----------
    table : Table
        What to order.

    Returns
    -------
    ndarray of int, shape (k,)

    Examples
    --------
    >>> upper = np.array([0.95, 0.8, 0.9])
    >>> worst_first(Table(name="groups", columns={"upper": upper}))
    array([1, 2, 0])
    """
    upper = _number(table, "upper") if table.name == "groups" else None
    if upper is None:
        return np.arange(len(table))
    return np.argsort(upper, kind="stable")


def _groups_figure(table: Table) -> Figure | None:
    value, nominal = _number(table, "empirical_coverage"), _number(table, "nominal")
    lower, upper = _number(table, "lower"), _number(table, "upper")
    if value is None or lower is None or upper is None or nominal is None or not len(table):
        return None
    level = float(nominal[0])
    same = (nominal == level) | (np.isnan(nominal) & np.isnan(level))
    order = worst_first(table)
    chosen = order[(same & np.isfinite(value))[order]]
    if not len(chosen):
        return None
    notes = [one_line(table.notes, 400)] if table.notes else []
    if len(chosen) > ROWS_LIMIT:
        notes.append(f"Shown: the {ROWS_LIMIT} worst of {len(chosen):,} groups.")
    rows = chosen[:ROWS_LIMIT]
    rows = rows[np.argsort(value[rows], kind="stable")]
    every = _names(table)
    told, column = _without_column([every[row] for row in rows])
    names = distinct(told, 60)
    below, above = upper[rows] < level, lower[rows] > level
    kinds: list[tuple[BoolArray, str, int]] = [
        (below, "below the nominal coverage", HIGHLIGHT),
        (~below & ~above, "empirical coverage" if np.isnan(level) else "consistent with it", 0),
        (above, "above it", 2),
    ]
    layers = []
    reading = "Each bar is a group's interval."
    if not np.isnan(level):
        rule = Layer(mark=Mark.RULE, x=np.array([level]), series="nominal", colour=REFERENCE)
        layers.append(rule)
        claim = f"{100 * level:.4g} %"
        reading += f" A bar wholly left of the line covers less often than the nominal {claim}."
    layers += _dot_layers(rows, names, value, lower, upper, kinds)
    return Figure(
        name="groups",
        question="Which groups are let down?" + _of_model(table),
        title=f"Coverage by {column or 'group'}",
        reading=reading,
        x=Axis(title="Empirical coverage", kind="percent"),
        y=Axis(kind="category", categories=names),
        layers=tuple(layers),
        notes=tuple(notes),
    )


def _without_column(names: list[str]) -> tuple[list[str], str]:
    """Names of groups without the column that all of them begin with, and that column."""
    columns = {name.partition("=")[0] if "=" in name else "" for name in names}
    if len(columns) > 1 or "" in columns:
        return names, ""
    return [name.partition("=")[2] for name in names], columns.pop()


def _models_figure(table: Table) -> Figure | None:
    value, lower, upper = (_number(table, name) for name in ("difference", "lower", "upper"))
    if value is None or lower is None or upper is None:
        return None
    rows = np.flatnonzero(np.isfinite(value) & np.isfinite(lower) & np.isfinite(upper))[:ROWS_LIMIT]
    if not len(rows):
        return None
    scale, unit = np.ones(len(value)), ""
    if len(set(_texts(table, "metric"))) > 1:
        half = (upper - lower) / 2
        scale, unit = np.where(half > 0, half, 1.0), " (half-widths of its interval)"
    pairs = set(zip(_texts(table, "model_a"), _texts(table, "model_b"), strict=True))
    pair = ": " + " − ".join(next(iter(pairs))) if len(pairs) == 1 else ""
    every = _names(table)
    names = distinct((every[row] for row in rows), 60)
    apart = (lower[rows] > 0) | (upper[rows] < 0)
    favoured = np.array([_favoured(table, row, float(value[row])) for row in rows], dtype=object)
    kinds: list[tuple[BoolArray, str, int]] = [
        (apart & (favoured == model), f"favours {model}" if model else "zero excluded", place)
        for place, model in enumerate(dict.fromkeys(favoured[apart].tolist()))
    ]
    kinds.append((~apart, "undecided", REFERENCE))
    layers = [Layer(mark=Mark.RULE, x=np.array([0.0]), series="no difference", colour=REFERENCE)]
    layers += _dot_layers(rows, names, value / scale, lower / scale, upper / scale, kinds)
    return Figure(
        name="models",
        question="Which model is better, and is it chance?",
        title=f"Paired differences{pair}",
        reading="An interval that crosses the line at zero leaves the choice open.",
        x=Axis(title=f"Difference{unit}", zero=True),
        y=Axis(kind="category", categories=names),
        layers=tuple(layers),
        notes=(one_line(table.notes, 400),) if table.notes else (),
    )


def _favoured(table: Table, row: int, difference: float) -> str:
    """The model that the difference of a row speaks for; empty where that is not known."""
    direction = _texts(table, "direction")[row]
    if difference == 0 or direction not in {Direction.LOWER.value, Direction.HIGHER.value}:
        return ""
    first_wins = (difference < 0) == (direction == Direction.LOWER.value)
    return _texts(table, "model_a" if first_wins else "model_b")[row]


def _dot_layers(
    rows: IntArray,
    names: tuple[str, ...],
    value: FloatArray,
    lower: FloatArray,
    upper: FloatArray,
    kinds: Sequence[tuple[BoolArray, str, int]],
) -> list[Layer]:
    """Intervals and points for each kind of row, at positions in the order of `rows`."""
    layers = []
    for chosen, words, colour in kinds:
        places = np.flatnonzero(chosen)
        if not len(places):
            continue
        picked = rows[places]
        labels = tuple(names[place] for place in places)
        position = places.astype(np.float64)
        interval = Layer(
            mark=Mark.INTERVALS,
            y=position,
            lower=lower[picked],
            upper=upper[picked],
            series=words,
            colour=colour,
            labels=labels,
        )
        layers += [interval, replace(interval, mark=Mark.POINTS, x=value[picked])]
    return layers


def _number(table: Table, name: str) -> FloatArray | None:
    column = table.columns.get(name)
    if column is None or column.dtype.kind not in "fiu":
        return None
    return column.astype(np.float64)


def _first(table: Table, *names: str) -> FloatArray | None:
    return next((found for name in names if (found := _number(table, name)) is not None), None)


def _texts(table: Table, name: str) -> list[str]:
    column = table.columns.get(name)
    if column is None:
        return [""] * len(table)
    return ["" if text is None else one_line(text, 60) for text in column.tolist()]


def _names(table: Table) -> list[str]:
    """What names each row: its group, its point, or its metric and its models."""
    for name in ("group", "point"):
        if name in table.columns:
            return _texts(table, name)
    metrics, first, second = (_texts(table, name) for name in ("metric", "model_a", "model_b"))
    several = len(set(zip(first, second, strict=True))) > 1
    coverage = _number(table, "coverage")
    if coverage is not None and len(np.unique(coverage[np.isfinite(coverage)])) < 2:
        coverage = None
    names = []
    for row, (metric, a, b) in enumerate(zip(metrics, first, second, strict=True)):
        pair = f"{a} − {b}" if several else ""
        words = metric.replace("_", " ")
        if coverage is not None and np.isfinite(coverage[row]):
            words += f" at {100 * coverage[row]:.4g} %"
        names.append(" · ".join(filter(None, (words, pair))) or f"row {row + 1}")
    return names


def _of_model(table: Table) -> str:
    return f" ({one_line(table.model, 60)})" if table.model else ""
