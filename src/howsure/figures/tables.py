"""Dots and bars of tables: differences between models, leaves, parts of scores, skill."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from howsure.core import formats
from howsure.core.arrays import BoolArray, FloatArray, IntArray
from howsure.core.errors import attempt
from howsure.core.formats import listed
from howsure.core.records import Direction, ResultTable
from howsure.core.text import distinct, one_line
from howsure.engine.catalogue import comparing_scores
from howsure.figures.figure import (
    HIGHLIGHT,
    REFERENCE,
    Axis,
    Figure,
    Layer,
    Mark,
    number,
    of_model,
    texts,
)
from howsure.figures.groups import lane_offset, most_groups
from howsure.figures.layouts import layout_of
from howsure.figures.palette import SERIES_LIMIT

# 880 pixels of 22, a screen; more is a table. By eye.
MAX_ROWS = 40
"""The most rows of a dot plot."""
DIFFER = "different, neither is better"
"""What is said of a difference beyond chance in a measure that favours no side."""
# Farther ones would press all that may be chance into a point. By eye.
MAX_HALF_WIDTHS = 20.0
"""Half-widths from zero past which a difference is drawn at the edge."""
# What rounding leaves of a difference that is the same in every row.
MAX_RELATIVE_HALF_WIDTH = 1e-9
"""Half-width, as a share of a difference, below which the difference has no spread."""


def difference_figures(tables: Sequence[ResultTable], places: Mapping[str, int]) -> list[Figure]:
    """A figure of each table of differences between models, where its columns allow one.

    `places` are the colours that models have elsewhere.
    """
    return _draw_each(tables, partial(_models_figure, places=places))


def leaves_figures(tables: Sequence[ResultTable], _: Mapping[str, int]) -> list[Figure]:
    """A figure of the leaves of each tree."""
    return _draw_each(tables, _leaves_figure)


def _draw_each(
    tables: Sequence[ResultTable], draw: Callable[[ResultTable], Figure | None]
) -> list[Figure]:
    figures = []
    for table in tables:
        figure = attempt(f"figure of {table.name}", partial(draw, table), lambda _: None)
        if figure is not None:
            figures.append(replace(figure, label=table.model))
    return figures


def _models_figure(table: ResultTable, places: Mapping[str, int]) -> Figure | None:
    value, lower, upper = (number(table, name) for name in ("difference", "lower", "upper"))
    if value is None or lower is None or upper is None:
        return None
    drawable = np.isfinite(value) & np.isfinite(lower) & np.isfinite(upper)
    every = _names(table)
    notes = [one_line(table.notes, 400)] if table.notes else []
    hover = {"In per cent": number(table, "per_cent"), "p-value": number(table, "p_value")}
    reading = "If an interval crosses the line at zero, the difference is not significant."
    scale, axis = np.ones(len(value)), Axis(title="Difference", zero=True)
    pairs = set(zip(texts(table, "model_a"), texts(table, "model_b"), strict=True))
    metrics = set(texts(table, "metric"))
    what = ""
    if len(pairs) > 1 and len(metrics) > 1:  # else a row for each measure and pair
        chosen = _headline(table, drawable)
        drawable &= chosen
        metrics = {texts(table, "metric")[row] for row in np.flatnonzero(drawable)[:1]}
        what = "".join(f" in {_words_of(metric)}" for metric in metrics)
        every = [name.partition(" · ")[2] or name for name in every]
    if len(metrics) > 1:
        scale, axis, drawable, left_out = _in_half_widths(
            value, (upper - lower) / 2, drawable, every
        )
        notes += left_out
        hover = {"In its own units": value, **hover}
        reading += " Each difference is in units of half the width of its interval."
    rows = np.flatnonzero(drawable)[:MAX_ROWS]
    if not len(rows):
        return None
    pair = ": " + " − ".join(next(iter(pairs))) if len(pairs) == 1 else ""
    names = distinct((every[row] for row in rows), 60)
    layers = [Layer(mark=Mark.RULE, x=np.array([0.0]), series="no difference", colour=REFERENCE)]
    kinds = _decisions(table, rows, value, (lower > 0) | (upper < 0), places)
    scaled = (value / scale, lower / scale, upper / scale)
    layers += _dot_layers(rows, names, *scaled, kinds, hover)
    return Figure(
        name=table.name,
        question="Which model is significantly better?",
        title=f"Paired differences{what}{pair}",
        reading=reading,
        x=axis,
        y=Axis(kind="category", categories=names),
        layers=tuple(layers),
        notes=tuple(notes),
    )


def _headline(table: ResultTable, drawable: BoolArray) -> BoolArray:
    """The rows of the one measure that tells which model is better, at one coverage."""
    metrics = np.array(texts(table, "metric"), dtype=object)
    metrics_known = set(metrics[drawable].tolist())
    named = next(
        (name for name in comparing_scores() if name in metrics_known),
        next(iter(metrics[drawable]), ""),
    )
    rows: BoolArray = metrics == named
    coverage = number(table, "coverage")
    if coverage is not None and np.isfinite(coverage[rows & drawable]).any():
        off = np.where(rows & drawable, np.abs(coverage - 0.9), np.inf)
        rows &= off == np.nanmin(off)
    return rows


def _words_of(metric: str) -> str:
    return metric.upper() if metric in {"crps", "mae"} else metric.replace("_", " ")


def _in_half_widths(
    value: FloatArray, half: FloatArray, drawable: BoolArray, names: list[str]
) -> tuple[FloatArray, Axis, BoolArray, list[str]]:
    """Divisors that bring differences in several units on one axis, and which rows they serve."""
    certain = drawable & (half <= MAX_RELATIVE_HALF_WIDTH * np.abs(value)) & (value != 0)
    scale = np.where(half > 0, half, 1.0)
    far = drawable & ~certain & (np.abs(value) > MAX_HALF_WIDTHS * scale)
    notes = [
        *_told_apart("Left out, as the same in every row", names, certain),
        *_told_apart(f"At the edge, beyond {MAX_HALF_WIDTHS:g} half-widths", names, far),
    ]
    axis = Axis(title="Difference (half-widths)", zero=True)
    if far.any():
        axis = replace(axis, domain=(-MAX_HALF_WIDTHS, MAX_HALF_WIDTHS), clamp=True)
    return scale, axis, drawable & ~certain, notes


def _decisions(
    table: ResultTable,
    rows: IntArray,
    value: FloatArray,
    significant: BoolArray,
    places: Mapping[str, int],
) -> list[tuple[BoolArray, str, int]]:
    """Which model each row favours beyond chance, in the colour that the model has elsewhere."""
    beyond = significant[rows]
    favoured = np.array(_favoured(table, value), dtype=object)[rows]
    models = dict.fromkeys([*_raw(table, "model_a"), *_raw(table, "model_b")])
    colours = {one_line(model, 60): places.get(model, i) for i, model in enumerate(models)}
    return [
        *(
            (beyond & (favoured == model), f"favours {model}", colour)
            for model, colour in colours.items()
            if model
        ),
        (beyond & (favoured == ""), DIFFER, len({*places.values(), *colours.values()})),
        (~beyond, "undecided", REFERENCE),
    ]


def _raw(table: ResultTable, name: str) -> list[str]:
    column = table.columns.get(name)
    return [] if column is None else [str(text) for text in column.tolist()]


def _told_apart(words: str, names: list[str], chosen: BoolArray) -> list[str]:
    """A note on the rows chosen, if any."""
    names_chosen = ", ".join(names[row] for row in np.flatnonzero(chosen))
    return [one_line(f"{words}: {names_chosen}.", 400)] if names_chosen else []


def _favoured(table: ResultTable, value: FloatArray) -> list[str]:
    """The model that the difference of each row speaks for; empty where that is not known."""
    columns = (texts(table, name) for name in ("direction", "model_a", "model_b"))
    favoured = []
    for difference, direction, first, second in zip(value, *columns, strict=True):
        lower = direction == Direction.LOWER.value
        has_favourite = difference != 0 and (lower or direction == Direction.HIGHER.value)
        favoured.append("" if not has_favourite else first if (difference < 0) == lower else second)
    return favoured


def _leaves_figure(table: ResultTable) -> Figure | None:
    """Mean CCE in the leaves of a tree, against the mean over all of them."""
    value, error = number(table, "cce"), number(table, "standard_error")
    if value is None or error is None or "where" not in table.columns:
        return None
    rows = np.flatnonzero(np.isfinite(value) & np.isfinite(error))[:MAX_ROWS]
    if not len(rows):
        return None
    size = number(table, "rows")
    overall = float(np.average(value[rows], weights=None if size is None else size[rows]))
    every = texts(table, "where", 120)
    names = distinct((every[row] for row in rows), 120)
    lower, upper = value - 1.96 * error, value + 1.96 * error
    worse = table.columns["worse"][rows].astype(np.bool_)
    kinds: list[tuple[BoolArray, str, int]] = [
        (worse, "significantly worse than the mean", HIGHLIGHT),
        (~worse, "not significantly worse", 0),
    ]
    rule = Layer(mark=Mark.RULE, x=np.array([overall]), series="overall mean", colour=REFERENCE)
    return Figure(
        name=table.name,
        question="In which input regions is the error larger?",
        title="Congruence error by input region" + of_model(table),
        reading=(
            "Each row is an input region found with a shallow tree, with its 95 % interval. "
            "A region entirely right of the line is worse, if the overall error is significant."
        ),
        x=Axis(title="Mean CCE", zero=True),
        y=Axis(kind="category", categories=names),
        layers=(rule, *_dot_layers(rows, names, value, lower, upper, kinds)),
        notes=(one_line(table.notes, 400),) if table.notes else (),
    )


def _dot_layers(
    rows: IntArray,
    names: tuple[str, ...],
    value: FloatArray,
    lower: FloatArray,
    upper: FloatArray,
    kinds: Sequence[tuple[BoolArray, str, int]],
    hover: Mapping[str, FloatArray | None] | None = None,
) -> list[Layer]:
    """Intervals and points for each kind of row, at positions in the order of `rows`."""
    layers = []
    for chosen, words, colour in kinds:
        places = np.flatnonzero(chosen)
        if not len(places):
            continue
        picked = rows[places]
        labels = tuple(names[row] for row in places)
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
        more = {
            name: column[picked] for name, column in (hover or {}).items() if column is not None
        }
        layers += [interval, replace(interval, mark=Mark.POINTS, x=value[picked], hover=more)]
    return layers


def _names(table: ResultTable) -> list[str]:
    """What names each row: its metric and its models."""
    metrics, first, second = (texts(table, name) for name in ("metric", "model_a", "model_b"))
    several = len(set(zip(first, second, strict=True))) > 1
    coverage = number(table, "coverage")
    if coverage is not None and len(np.unique(coverage[np.isfinite(coverage)])) < 2:
        coverage = None
    names = []
    for row, (metric, a, b) in enumerate(zip(metrics, first, second, strict=True)):
        pair = f"{a} − {b}" if several else ""
        words = _words_of(metric)
        if coverage is not None and np.isfinite(coverage[row]):
            words += f" at {formats.level(coverage[row])}"
        names.append(" · ".join(filter(None, (words, pair))) or f"row {row + 1}")
    return names


# ---- what a score is made of, as bars, and skill by group, as intervals: models side by side -----

_REFERENCE = "distribution of y"
# Thickness of a bar, as a multiple of that of an interval. By eye.
_THICKNESS_OF_BAR = 7.0
# Two bars side by side in a row, without touching. By eye.
_OFFSET_OF_LANE = 0.17
_WHOLE = ("score", "mcb", "dsc", "unc")
_PARTS = (*_WHOLE, "mcb_lower", "mcb_upper", "dsc_lower", "dsc_upper")


def parts_figures(tables: Sequence[ResultTable], _: Mapping[str, int]) -> list[Figure]:
    """Those of models whose scores are of one measure, a figure for each measure."""
    return _alike(tables, "measure", _parts_figure)


def skill_figures(tables: Sequence[ResultTable], places: Mapping[str, int]) -> list[Figure]:
    """Those of models whose skill is of one score, a figure for each score."""
    return _alike(tables, "score", partial(_skill_figure, places=places))


def _alike(
    tables: Sequence[ResultTable],
    column: str,
    draw: Callable[[Sequence[ResultTable]], Figure | None],
) -> list[Figure]:
    """A figure of the tables that tell of one thing, by the name of their models."""
    parts: dict[str, list[ResultTable]] = {}
    for table in tables:
        if len(table):
            parts.setdefault(texts(table, column)[0], []).append(table)
    figures = [
        replace(figure, label=listed([table.model for table in alike], most=3))
        for alike in parts.values()
        if (figure := draw(alike)) is not None
    ]
    return figures if len(figures) > 1 else [replace(figure, label="") for figure in figures]


def _parts_figure(tables: Sequence[ResultTable]) -> Figure | None:
    """A bar for each model: what the recalibrated forecast scores, and MCB; below it DSC."""
    shown: dict[ResultTable, dict[str, float]] = {}
    for table in tables[:SERIES_LIMIT]:
        parts = {
            name: float(column[0])
            for name in _PARTS
            if (column := number(table, name)) is not None and len(column)
        }
        if all(np.isfinite(parts.get(name, np.nan)) for name in _WHOLE):
            shown[table] = parts
    if not shown:
        return None
    first = next(iter(shown))
    names = distinct([_REFERENCE, *(table.model or "forecast" for table in shown)], 60)
    score, mcb, dsc, unc = (np.array([parts[name] for parts in shown.values()]) for name in _WHOLE)
    places, recalibrated = np.arange(1.0, len(shown) + 1.0), score - mcb
    lead = Layer(mark=Mark.INTERVALS, size=_THICKNESS_OF_BAR, offset=-_OFFSET_OF_LANE)
    layers = [
        replace(
            lead,
            y=places,
            lower=np.zeros(len(recalibrated)),
            upper=recalibrated,
            series="recalibrated",
        ),
        replace(
            lead,
            y=places,
            lower=np.minimum(recalibrated, score),
            upper=np.maximum(recalibrated, score),
            series="MCB: loss from miscalibration",
            colour=HIGHLIGHT,
        ),
        replace(
            lead,
            y=places,
            lower=np.minimum(recalibrated, unc),
            upper=np.maximum(recalibrated, unc),
            series="DSC: information in the forecast",
            colour=2,
            offset=_OFFSET_OF_LANE,
        ),
    ]
    if np.allclose(unc, unc[0], rtol=1e-6, atol=0.0):
        bar = replace(lead, y=np.zeros(1), lower=np.zeros(1), upper=unc[:1])
        rule = Layer(mark=Mark.RULE, x=unc[:1], series="UNC", colour=REFERENCE)
        layers = [rule, replace(bar, series=_REFERENCE, colour=REFERENCE), *layers]
    hover = {"MCB": mcb, "DSC": dsc, "UNC": unc}
    point = Layer(mark=Mark.POINTS, x=score, y=places, series="score", colour=1, size=0.6)
    layers.append(replace(point, offset=-_OFFSET_OF_LANE, labels=names[1:], hover=hover))
    sums = [_sum(parts) for parts in shown.values()]
    named_sums = [f"{name}: {total}" for name, total in zip(names[1:], sums, strict=True)]
    sums_in_words = named_sums if len(shown) > 1 else sums
    notes = dict.fromkeys(one_line(table.notes, 400) for table in shown if table.notes)
    measure, layout = texts(first, "measure")[0], layout_of(first.name)
    return Figure(
        name=first.name,
        question=layout.question,
        title=f"Parts of the {measure}",
        reading=layout.reading,
        x=Axis(title=measure.capitalize(), zero=True),
        y=Axis(kind="category", categories=names),
        layers=tuple(layers),
        notes=(*sums_in_words, *notes),
        finding=" ".join(sums_in_words),
    )


def _sum(parts: Mapping[str, float]) -> str:
    """S = UNC − DSC + MCB, in numbers with the ends of their intervals."""
    score, unc = (formats.number(parts[name]) for name in ("score", "unc"))
    dsc, mcb = (_with_interval(parts, name) for name in ("dsc", "mcb"))
    return f"score {score} = UNC {unc} − DSC {dsc} + MCB {mcb}."


def _with_interval(parts: Mapping[str, float], name: str) -> str:
    """A part, and the ends of its interval where it has one."""
    value = formats.number(parts[name])
    ends = [parts.get(f"{name}_{end}", np.nan) for end in ("lower", "upper")]
    return f"{value} ({formats.interval(*ends)})" if np.isfinite(ends).all() else value


def _skill_figure(tables: Sequence[ResultTable], places: Mapping[str, int]) -> Figure | None:
    """Skill of each group, the worst first; `places` are the colours that models have elsewhere."""
    models: dict[str, dict[str, tuple[float, float, float, float]]] = {}
    columns: dict[str, None] = {}
    for table in tables[:SERIES_LIMIT]:
        columns_found = [number(table, name) for name in ("skill", "lower", "upper", "n")]
        if any(column is None for column in columns_found):
            continue
        columns |= dict.fromkeys(texts(table, "grouping"))
        heads = zip(texts(table, "grouping"), texts(table, "group"), strict=True)
        rows = np.stack([column for column in columns_found if column is not None], axis=1)
        groups = {
            f"{name}: {label}": tuple(row)
            for (name, label), row in zip(heads, rows.tolist(), strict=True)
        }
        models[table.model] = groups
    every = {name: groups[name][0] for groups in reversed(models.values()) for name in groups}
    for groups in models.values():
        every |= {name: min(every[name], row[0]) for name, row in groups.items()}
    if not every:
        return None
    chosen = sorted(every, key=every.__getitem__)[: most_groups(len(models))]
    alone = f"{next(iter(columns))}: " if len(columns) == 1 else ""
    names = distinct([name.removeprefix(alone) for name in chosen], 60)
    layers = [Layer(mark=Mark.RULE, x=np.zeros(1), series="no skill", colour=REFERENCE)]
    for number_, (model, groups) in enumerate(models.items()):
        at = [position for position, name in enumerate(chosen) if name in groups]
        value, lower, upper, n = (
            np.array([groups[chosen[position]] for position in at]).reshape(-1, 4).T
        )
        interval = Layer(
            mark=Mark.INTERVALS,
            y=np.array(at, dtype=np.float64),
            lower=lower,
            upper=upper,
            series=one_line(model, 60) or "skill",
            colour=places.get(model, number_),
            offset=lane_offset(number_, len(models)),
            labels=tuple(names[position] for position in at),
        )
        layers += [interval, replace(interval, mark=Mark.POINTS, x=value, hover={"Rows": n})]
    notes = list(dict.fromkeys(one_line(table.notes, 400) for table in tables if table.notes))
    if len(chosen) < len(every):
        notes.append(f"Shown: the worst {len(chosen)} of {len(every):,} groups.")
    layout = layout_of(tables[0].name)
    return Figure(
        name=tables[0].name,
        question=layout.question,
        title=layout.title,
        reading=layout.reading,
        x=Axis(title=f"Skill in {texts(tables[0], 'score')[0]}", kind="percent"),
        y=Axis(title=one_line(alone.removesuffix(": "), 60), kind="category", categories=names),
        layers=tuple(layers),
        notes=tuple(notes),
    )
