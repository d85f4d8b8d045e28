"""Curves and tables in, figures out: one figure a question, models laid over each other."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from howsure.core.arrays import FloatArray
from howsure.core.errors import InputError
from howsure.core.faults import attempt
from howsure.core.formats import listed
from howsure.core.layouts import Layout
from howsure.core.records import Curve, Table
from howsure.figures.figure import Axis, Figure, Layer, Mark
from howsure.figures.groups import groups_figure
from howsure.figures.intervals import interval_figures
from howsure.figures.layouts import (
    INTERVALS_ORDER,
    MAP_ORDER,
    TABLE_ORDER,
    companions,
    layout_of,
)
from howsure.figures.maps import map_figures
from howsure.figures.marks import mark_layers
from howsure.figures.palette import SERIES_LIMIT
from howsure.figures.parts import (
    BANDS_LIMIT,
    band_layers,
    companion_layers,
    data_layers,
    reference_layers,
    zone_layers,
)
from howsure.figures.scores import parts_figures, skill_figures
from howsure.figures.tables import figure_of_table
from howsure.figures.telling import told
from howsure.figures.text import distinct, headed, one_line
from howsure.figures.thinning import placed, thinned

TIME_UNITS = {"ms since 1970": 1e-3, "seconds since 1970": 1.0}
"""Words in an x label that make a time axis, with the seconds in one unit of x."""


def figures_of(curves: Iterable[Curve] = (), tables: Iterable[Table] = ()) -> tuple[Figure, ...]:
    """Every figure that these curves and tables can make, in the order of a report.

    Curves of one name share a figure, one series a model (or a group). Where both models and
    groups vary, each group has its own figure. Tables of groups, of differences between models
    and of leaves become dot plots, maps become scatter plots; other tables make no figure.

    Parameters
    ----------
    curves : iterable of Curve
        What to draw as lines, steps and points.
    tables : iterable of Table
        What to draw as dot plots, or as marks on a curve's figure.

    Returns
    -------
    tuple of Figure

    Raises
    ------
    InputError
        If something else than curves and tables comes.

    Examples
    --------
    >>> levels = np.linspace(0.1, 0.9, 9)
    >>> curve = Curve(name="calibration", x=levels, y=levels**2, reference=levels)
    >>> [figure.question for figure in figures_of([curve])]
    ['Does y fall below each predicted quantile as often as it should?']
    """
    families: dict[str, list[Curve]] = {}
    curves = tuple(curves)
    for curve in curves:
        if not isinstance(curve, Curve):
            raise InputError(f"curves must hold Curve objects, got {type(curve).__name__}")
        families.setdefault(curve.name, []).append(curve)
    kept = tuple(tables)
    for table in kept:
        if not isinstance(table, Table):
            raise InputError(f"tables must hold Table objects, got {type(table).__name__}")
    ordered: list[tuple[int, Figure]] = []
    told = [*(curve.model for curve in curves), *(table.model for table in kept)]
    places = {model: place for place, model in enumerate(dict.fromkeys(filter(None, told)))}
    for name, family in families.items():
        if companions().get(name) in families:
            continue
        layout = layout_of(name)
        measured = {curve.y_label for curve in family}
        for part in _parts(family):
            make = partial(_figure_of_curves, name, part, layout, families, kept, places)
            figure = attempt(f"figure of {name}", make, lambda _: None)
            if figure is not None:
                if len(measured) > 1:  # then models are told apart
                    figure = replace(figure, label=listed([curve.model for curve in part], most=3))
                ordered.append((layout.order, figure))
    models = {*places, *(table.model for table in kept)}
    named = [replace(table, model="") for table in kept] if len(models - {""}) < 2 else kept
    maps: list[Figure] = attempt("maps", partial(map_figures, named), lambda _: [])
    ordered += [(MAP_ORDER, figure) for figure in maps]
    beside: list[Figure] = attempt("intervals", partial(interval_figures, named), lambda _: [])
    ordered += [(INTERVALS_ORDER, figure) for figure in beside]
    cover = [t for t in kept if t.name == "groups"]
    if cover or "interval_calibration" not in families:
        cover = [t for t in kept if t.name in {"coverage", "groups"}]
    dots = attempt("groups", partial(groups_figure, cover, places), lambda _: None)
    ordered += [] if dots is None else [(TABLE_ORDER, dots)]
    for name, make_dots in (
        ("score_parts", parts_figures),
        ("skill_by_group", partial(skill_figures, places=places)),
    ):
        chosen = [table for table in kept if table.name == name]
        made: list[Figure] = attempt(f"figures of {name}", partial(make_dots, chosen), lambda _: [])
        ordered += [(TABLE_ORDER, figure) for figure in made]
    for table in named:
        figure = attempt(
            f"figure of {table.name}", partial(figure_of_table, table, places), lambda _: None
        )
        if figure is not None:
            figure = replace(figure, label=table.model)
            order = MAP_ORDER if table.name.startswith("cce_") else TABLE_ORDER
            ordered.append((order, figure))
    return tuple(figure for _, figure in sorted(ordered, key=lambda pair: pair[0]))


def _parts(family: list[Curve]) -> list[list[Curve]]:
    """One thing varies in a figure: models, or groups, never both, nor what is measured."""
    models = {curve.model for curve in family}
    if len(models) < 2:
        return [family]
    parts: dict[tuple[str, str], list[Curve]] = {}
    for curve in family:
        parts.setdefault((curve.group, curve.y_label), []).append(curve)
    return list(parts.values())


def _figure_of_curves(
    name: str,
    family: list[Curve],
    layout: Layout,
    families: dict[str, list[Curve]],
    tables: Sequence[Table],
    places: Mapping[str, int],
) -> Figure | None:
    drawn = [_in_seconds(curve) for curve in map(placed, family) if len(curve.x)]
    if not drawn:
        return None
    shown = drawn[:SERIES_LIMIT]
    notes = _notes_of(shown)
    if len(shown) < len(drawn):
        notes.append(f"Shown: the first {len(shown)} of {len(drawn)}.")
    labels = _series_labels(shown, layout)
    x_axis, tail = _x_axis(shown, layout)
    y_axis = _y_axis(shown, layout)
    edge = x_axis.domain[1] if tail and x_axis.domain else math.inf
    shown = [thinned(_up_to(curve, edge)) for curve in shown]
    alone = len(shown) == 1
    grouped = len({curve.group for curve in shown}) > 1
    colours = [i if grouped else places.get(c.model, i) for i, c in enumerate(shown)]
    data = [
        layer
        for curve, label, colour in zip(shown, labels, colours, strict=True)
        for layer in data_layers(curve, label, colour, layout, alone=alone)
    ]
    beside = _companions(layout, families, edge)
    faint = companion_layers(shown, labels, layout, colours, beside)
    at = {curve.model: colour for curve, colour in zip(shown, colours, strict=True)}
    marks, shapes = mark_layers(tables, layout.points, at)
    zones = zone_layers(layout, y_axis, families)
    behind = [
        *band_layers(shown, labels, layout, colours),
        *reference_layers(shown, labels, layout, colours),
    ]
    layers = [*zones, *behind, *faint, *data, *marks]
    if data and data[0].mark is Mark.BARS:
        layers = [*data, *behind, *marks]
    notes += _told_of(layout, families, shown, labels)
    notes += _unlisted(layers, shown, layout)
    notes += [note for note in (shapes, tail) if note]
    banded = any(layer.mark is Mark.BAND for layer in layers)
    groups = {curve.group for curve in shown}
    place = f" ({one_line(next(iter(groups)))})" if len(groups) == 1 and "" not in groups else ""
    figure = Figure(
        name=name,
        question=layout.question,
        title=layout.title + place,
        reading=f"{layout.reading} {layout.banded if banded else ''}".strip(),
        x=x_axis,
        y=y_axis,
        layers=tuple(layers),
        notes=tuple(dict.fromkeys(notes)),
        square=layout.square,
    )
    return replace(figure, finding=told(figure, layout))


def _notes_of(curves: Sequence[Curve]) -> list[str]:
    """What curves say, under their model's name where that differs from model to model."""
    told = {curve.model: headed(curve.notes, 400) for curve in curves if curve.notes}
    if len(set(told.values())) < 2:
        return list(dict.fromkeys(told.values()))
    heads = {model: f"{one_line(model, 60)}: " for model in told}
    return [
        note if note.lower().startswith(heads[model].lower()) else heads[model] + note
        for model, note in told.items()
    ]


def _companions(
    layout: Layout, families: dict[str, list[Curve]], edge: float
) -> dict[str, list[Curve]]:
    """The curves that may stand behind a figure's own, ready to be drawn."""
    return {
        name: [
            thinned(_up_to(curve, edge))
            for curve in map(placed, families.get(name, ()))
            if len(curve.x)
        ]
        for name in layout.companions
    }


def _told_of(
    layout: Layout,
    families: dict[str, list[Curve]],
    curves: Sequence[Curve],
    labels: Sequence[str],
) -> list[str]:
    """What dashed companions say of themselves, under their model's name where there are more."""
    names = {(c.model, c.group): label for c, label in zip(curves, labels, strict=True)}
    told = []
    for name, companion in layout.companions.items():
        for other in families.get(name, ()):
            label = names.get((other.model, other.group))
            if companion.dashed and other.notes and label is not None:
                whose = f"{label}: " if len(curves) > 1 else ""
                told.append(whose + headed(other.notes, 400))
    return told


def _in_seconds(curve: Curve) -> Curve:
    unit = next((unit for words, unit in TIME_UNITS.items() if words in curve.x_label.lower()), 1.0)
    return curve if unit == 1.0 else replace(curve, x=curve.x * unit)


def _up_to(curve: Curve, edge: float) -> Curve:
    """The curve cut at the right edge: points far outside would spoil a drawing's precision."""
    if curve.x[-1] <= edge:
        return curve
    inside = max(int(np.searchsorted(curve.x, edge, side="right")), 1)

    def cut(part: FloatArray) -> FloatArray:
        last = part[inside - 1] if curve.step else np.interp(edge, curve.x, part)
        return np.append(part[:inside], last)

    return replace(
        curve,
        x=np.append(curve.x[:inside], edge),
        y=cut(curve.y),
        lower=None if curve.lower is None else cut(curve.lower),
        upper=None if curve.upper is None else cut(curve.upper),
        reference=None if curve.reference is None else cut(curve.reference),
        hover={n: np.append(part[:inside], math.nan) for n, part in curve.hover.items()},
    )


def _series_labels(curves: Sequence[Curve], layout: Layout) -> tuple[str, ...]:
    """One name a curve, none of which is the name of something else in the figure."""
    if len({curve.model for curve in curves}) > 1:
        names = [curve.model or "unnamed" for curve in curves]
    elif len({curve.group for curve in curves}) > 1:
        names = [curve.group or "all rows" for curve in curves]
    else:
        names = [curve.model or layout.data for curve in curves]
    bands = [one_line(curve.band, 120) for curve in curves]
    behind = [companion.words for companion in layout.companions.values()]
    taken = {layout.reference, layout.band, *behind, *bands}
    return distinct([*taken, *names], 120)[len(taken) :]


def _x_axis(curves: Sequence[Curve], layout: Layout) -> tuple[Axis, str]:
    title = headed(curves[0].x_label) or layout.x.title
    if any(words in title.lower() for words in TIME_UNITS):
        return Axis(title="Time (UTC)", kind="time"), ""
    axis = replace(layout.x, title=title)
    if not layout.tail:
        return axis, ""
    end = max(float(curve.x[-1]) for curve in curves)
    cut = max(_bulk_end(curve, layout.tail) for curve in curves)
    if not 0 < 1.3 * cut < end:
        return axis, ""
    note = f"The last {layout.tail:.0%} of the fall, out to {end:.4g}, lies beyond the right edge."
    return replace(axis, domain=(0.0, 1.05 * cut)), note


def _y_axis(curves: Sequence[Curve], layout: Layout) -> Axis:
    title = headed(curves[0].y_label) or layout.y.title
    if layout.fits_curve:
        parts = [
            part for curve in curves for part in (curve.y, curve.reference) if part is not None
        ]
        top = max(float(part.max()) for part in parts)
        if top > 0 and min(float(part.min()) for part in parts) >= 0:
            return replace(layout.y, title=title, domain=(0.0, 1.08 * top))
    share = any(word in title.lower() for word in _SHARES)
    if layout.y.kind == "percent" and not share:
        return Axis(title=title, zero=True)
    return replace(layout.y, title=title)


_SHARES = ("rate", "coverage", "share", "level", "frequency", "probability")


def _bulk_end(curve: Curve, tail: float) -> float:
    top, bottom = float(curve.y.max()), float(curve.y.min())
    below = np.flatnonzero(curve.y <= bottom + tail * (top - bottom))
    return float(curve.x[below[0]])


def _unlisted(layers: Sequence[Layer], curves: Sequence[Curve], layout: Layout) -> list[str]:
    """What the legend leaves to words, as it would say it once for each model."""
    hidden = [layer for layer in layers if not layer.listed]
    told = []
    banded = sum(curve.lower is not None for curve in curves)
    about = layout.mark is not Mark.POINTS and banded > BANDS_LIMIT
    if about and not any(layer.mark is Mark.BAND for layer in layers):
        told.append(f"Bands are drawn for at most {BANDS_LIMIT} models.")
    if any(layer.mark is Mark.BAND for layer in hidden):
        told.append(f"Shaded: {one_line(curves[0].band, 120) or layout.band}.")
    if any(layer.faint for layer in hidden):
        own = any(layer.series.startswith(f"{layout.reference} · ") for layer in hidden)
        crowd = [companion.words for companion in layout.companions.values() if companion.crowd]
        named = dict.fromkeys([*([layout.reference] if own else []), *crowd])
        told.append(f"Dotted: {', '.join(named)}.")
    return [" ".join(told)] if told else []
