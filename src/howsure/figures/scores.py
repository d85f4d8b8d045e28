"""What a score is made of, as bars, and skill by group, as intervals: models side by side."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from howsure.core import formats
from howsure.core.formats import listed
from howsure.core.records import Table
from howsure.core.text import distinct, one_line
from howsure.figures.columns import number, texts
from howsure.figures.figure import HIGHLIGHT, REFERENCE, Axis, Figure, Layer, Mark
from howsure.figures.layouts import layout_of
from howsure.figures.palette import SERIES_LIMIT

_REFERENCE = "distribution of y"
_BAR = 7.0
"""Thickness of a bar, as a multiple of that of an interval."""
_LANE = 0.17
_MOST = 12
"""The most groups, of one model; several have fewer, so that the figure fits a screen."""
_MARKS = 40
_FEWEST = 5
_WHOLE = ("score", "mcb", "dsc", "unc")
_PARTS = (*_WHOLE, "mcb_lower", "mcb_upper", "dsc_lower", "dsc_upper")


def parts_figures(tables: Sequence[Table], _: Mapping[str, int]) -> list[Figure]:
    """Those of models whose scores are of one measure, a figure for each measure."""
    return _alike(tables, "measure", _parts_figure)


def skill_figures(tables: Sequence[Table], places: Mapping[str, int]) -> list[Figure]:
    """Those of models whose skill is of one score, a figure for each score."""
    return _alike(tables, "score", partial(_skill_figure, places=places))


def _alike(
    tables: Sequence[Table], column: str, draw: Callable[[Sequence[Table]], Figure | None]
) -> list[Figure]:
    """A figure of the tables that tell of one thing, by the name of their models."""
    parts: dict[str, list[Table]] = {}
    for table in tables:
        if len(table):
            parts.setdefault(texts(table, column)[0], []).append(table)
    made = [
        replace(figure, label=listed([table.model for table in part], most=3))
        for part in parts.values()
        if (figure := draw(part)) is not None
    ]
    return made if len(made) > 1 else [replace(figure, label="") for figure in made]


def _parts_figure(tables: Sequence[Table]) -> Figure | None:
    """A bar for each model: what the recalibrated forecast scores, and MCB; below it DSC."""
    shown: dict[Table, dict[str, float]] = {}
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
    places, rest = np.arange(1.0, len(shown) + 1.0), score - mcb
    lead = Layer(mark=Mark.INTERVALS, size=_BAR, offset=-_LANE)
    layers = [
        replace(lead, y=places, lower=np.zeros(len(rest)), upper=rest, series="recalibrated"),
        replace(
            lead,
            y=places,
            lower=np.minimum(rest, score),
            upper=np.maximum(rest, score),
            series="MCB: lost to miscalibration",
            colour=HIGHLIGHT,
        ),
        replace(
            lead,
            y=places,
            lower=np.minimum(rest, unc),
            upper=np.maximum(rest, unc),
            series="DSC: what is known",
            colour=2,
            offset=_LANE,
        ),
    ]
    if np.allclose(unc, unc[0], rtol=1e-6, atol=0.0):
        bar = replace(lead, y=np.zeros(1), lower=np.zeros(1), upper=unc[:1])
        rule = Layer(mark=Mark.RULE, x=unc[:1], series="UNC", colour=REFERENCE)
        layers = [rule, replace(bar, series=_REFERENCE, colour=REFERENCE), *layers]
    hover = {"MCB": mcb, "DSC": dsc, "UNC": unc}
    point = Layer(mark=Mark.POINTS, x=score, y=places, series="score", colour=1, size=0.6)
    layers.append(replace(point, offset=-_LANE, labels=names[1:], hover=hover))
    sums = [_sum(parts) for parts in shown.values()]
    said = [f"{name}: {each}" for name, each in zip(names[1:], sums, strict=True)]
    told = said if len(shown) > 1 else sums
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
        notes=(*told, *notes),
        finding=" ".join(told),
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


def _skill_figure(tables: Sequence[Table], places: Mapping[str, int]) -> Figure | None:
    """Skill of each group, the worst first; `places` are the colours that models have elsewhere."""
    models: dict[str, dict[str, tuple[float, float, float, float]]] = {}
    columns: dict[str, None] = {}
    for table in tables[:SERIES_LIMIT]:
        found = [number(table, name) for name in ("skill", "lower", "upper", "n")]
        if any(column is None for column in found):
            continue
        columns |= dict.fromkeys(texts(table, "grouping"))
        heads = zip(texts(table, "grouping"), texts(table, "group"), strict=True)
        rows = np.stack([column for column in found if column is not None], axis=1)
        held = {
            f"{name}: {label}": tuple(row)
            for (name, label), row in zip(heads, rows.tolist(), strict=True)
        }
        models[table.model] = held
    every = {name: held[name][0] for held in reversed(models.values()) for name in held}
    for held in models.values():
        every |= {name: min(every[name], row[0]) for name, row in held.items()}
    if not every:
        return None
    limit = min(_MOST, max(_FEWEST, _MARKS // len(models)))
    chosen = sorted(every, key=every.__getitem__)[:limit]
    alone = f"{next(iter(columns))}: " if len(columns) == 1 else ""
    names = distinct([name.removeprefix(alone) for name in chosen], 60)
    layers = [Layer(mark=Mark.RULE, x=np.zeros(1), series="no skill", colour=REFERENCE)]
    for number_, (model, held) in enumerate(models.items()):
        at = [place for place, name in enumerate(chosen) if name in held]
        value, lower, upper, n = np.array([held[chosen[place]] for place in at]).reshape(-1, 4).T
        interval = Layer(
            mark=Mark.INTERVALS,
            y=np.array(at, dtype=np.float64),
            lower=lower,
            upper=upper,
            series=one_line(model, 60) or "skill",
            colour=places.get(model, number_),
            offset=(number_ - (len(models) - 1) / 2) * min(0.8 / len(models), 0.3),
            labels=tuple(names[place] for place in at),
        )
        layers += [interval, replace(interval, mark=Mark.POINTS, x=value, hover={"Rows": n})]
    notes = list(dict.fromkeys(one_line(table.notes, 400) for table in tables if table.notes))
    if len(chosen) < len(every):
        notes.append(f"Shown: the {len(chosen)} worst of {len(every):,} groups.")
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
