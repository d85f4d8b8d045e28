"""Curves and tables in, figures out: one figure a question, models laid over each other."""

from __future__ import annotations

import heapq
import itertools
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from howsure.core.arrays import BoolArray, FloatArray, IntArray
from howsure.core.classes import frozen
from howsure.core.errors import InputError, attempt
from howsure.core.formats import level, listed
from howsure.core.records import Curve, Layout, ResultTable, TableFigure
from howsure.core.text import distinct, headed, one_line
from howsure.figures.figure import (
    REFERENCE,
    Axis,
    Figure,
    Layer,
    Mark,
    number,
    sample_points,
    texts,
)
from howsure.figures.groups import groups_figures
from howsure.figures.layouts import companions, layout_of, layout_of_table
from howsure.figures.palette import SERIES_LIMIT, VEGA_SHAPES
from howsure.figures.rows import interval_figures, map_figures
from howsure.figures.tables import difference_figures, leaves_figures, parts_figures, skill_figures
from howsure.figures.telling import describe_figure

# How curves in time name their x.
TIME_UNITS = {"ms since 1970": 1e-3, "seconds since 1970": 1.0}
"""Words in an x label that make a time axis, with the seconds in one unit of x."""


def figures_of(
    curves: Iterable[Curve] = (), tables: Iterable[ResultTable] = ()
) -> tuple[Figure, ...]:
    """Every figure that these curves and tables can make, in the order of a report.

    Curves of one name share a figure, one series a model (or a group). Where both models and
    groups vary, each group has its own figure. Tables of groups, of differences between models
    and of leaves become dot plots, maps become scatter plots; other tables make no figure.

    Parameters
    ----------
    curves : iterable of Curve
        What to draw as lines, steps and points.
    tables : iterable of ResultTable
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
            raise InputError(f"curves must be Curve objects, got {type(curve).__name__}")
        families.setdefault(curve.name, []).append(curve)
    all_tables = tuple(tables)
    for table in all_tables:
        if not isinstance(table, ResultTable):
            raise InputError(f"tables must be ResultTable objects, got {type(table).__name__}")
    ordered: list[tuple[int, Figure]] = []
    names = [*(curve.model for curve in curves), *(table.model for table in all_tables)]
    places = {model: colour for colour, model in enumerate(dict.fromkeys(filter(None, names)))}
    for name, family in families.items():
        if companions().get(name) in families:
            continue
        layout = layout_of(name)
        measured = {curve.y_label for curve in family}
        for curves_of_figure in _parts(family):
            draw_curves = partial(
                _figure_of_curves, name, curves_of_figure, layout, families, all_tables, places
            )
            figure = attempt(f"figure of {name}", draw_curves, lambda _: None)
            if figure is not None:
                if len(measured) > 1:  # then models are told apart
                    figure = replace(
                        figure, label=listed([curve.model for curve in curves_of_figure], most=3)
                    )
                ordered.append((layout.order, figure))
    models = {*places, *(table.model for table in all_tables)}
    named = (
        [replace(table, model="") for table in all_tables] if len(models - {""}) < 2 else all_tables
    )
    for kind, (order, draw, names_models) in _DRAWERS.items():
        drawn = [
            (shown_as, table)
            for table in (all_tables if names_models else named)
            if (shown_as := layout_of_table(table.name)).figure == kind
        ]
        if any(shown_as.curve not in families for shown_as, _ in drawn):
            make_all = partial(draw, [table for _, table in drawn], places)
            figures: list[Figure] = attempt(f"figures of {kind}", make_all, lambda _: [])
            ordered += [(order, figure) for figure in figures]
    return tuple(figure for _, figure in sorted(ordered, key=lambda pair: pair[0]))


_Draw = Callable[[Sequence[ResultTable], Mapping[str, int]], list[Figure]]
# Places in a report, and whether one figure shows all models.
_DRAWERS: Mapping[TableFigure, tuple[int, _Draw, bool]] = {
    "cover": (8, groups_figures, True),
    "parts": (8, parts_figures, True),
    "skill": (8, skill_figures, True),
    "differences": (8, difference_figures, False),
    "map": (9, map_figures, False),
    "leaves": (9, leaves_figures, False),
    "intervals": (-1, interval_figures, False),
}


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
    tables: Sequence[ResultTable],
    places: Mapping[str, int],
) -> Figure | None:
    drawable = [_in_seconds(curve) for curve in map(placed, family) if len(curve.x)]
    if not drawable:
        return None
    shown = drawable[:SERIES_LIMIT]
    notes = _notes_of(shown)
    if len(shown) < len(drawable):
        notes.append(f"Shown: the first {len(shown)} of {len(drawable)}.")
    labels = _series_labels(shown, layout)
    x_axis, tail = _x_axis(shown, layout)
    y_axis = _y_axis(shown, layout)
    edge = x_axis.domain[1] if tail and x_axis.domain else math.inf
    groups = {curve.group for curve in shown}
    colours = [i if len(groups) > 1 else places.get(c.model, i) for i, c in enumerate(shown)]
    shown = [thinned(_up_to(curve, edge)) for curve in shown]
    drawing = _Drawing(layout, list(zip(shown, labels, colours, strict=True)))
    data = drawing.data_layers()
    faint = drawing.companion_layers(families, edge)
    at = {curve.model: colour for curve, _, colour in drawing.series}
    marks, shapes = mark_layers(tables, layout.points, at)
    behind = [*drawing.band_layers(), *drawing.reference_layers()]
    layers = [*zone_layers(layout, y_axis, families), *behind, *faint, *data, *marks]
    if data and data[0].mark is Mark.BARS:
        layers = [*data, *behind, *marks]
    notes += [*drawing.notes_of_companions(families), *drawing.notes_of_legend(layers)]
    notes += [note for note in (shapes, tail) if note]
    banded = any(layer.mark is Mark.BAND for layer in layers)
    of_group = f" ({one_line(next(iter(groups)))})" if len(groups) == 1 and "" not in groups else ""
    figure = Figure(
        name=name,
        question=layout.question,
        title=layout.title + of_group,
        reading=f"{layout.reading} {layout.banded if banded else ''}".strip(),
        x=x_axis,
        y=y_axis,
        layers=tuple(layers),
        notes=tuple(dict.fromkeys(notes)),
        square=layout.square,
    )
    return replace(figure, finding=describe_figure(figure, layout))


def _notes_of(curves: Sequence[Curve]) -> list[str]:
    """What curves say, under their model's name where that differs from model to model."""
    notes = {curve.model: headed(curve.notes, 400) for curve in curves if curve.notes}
    if len(set(notes.values())) < 2:
        return list(dict.fromkeys(notes.values()))
    heads = {model: f"{one_line(model, 60)}: " for model in notes}
    return [
        note if note.lower().startswith(heads[model].lower()) else heads[model] + note
        for model, note in notes.items()
    ]


def _in_seconds(curve: Curve) -> Curve:
    unit = next((unit for words, unit in TIME_UNITS.items() if words in curve.x_label.lower()), 1.0)
    return curve if unit == 1.0 else replace(curve, x=curve.x * unit)


def _up_to(curve: Curve, edge: float) -> Curve:
    """The curve cut at the right edge: points far outside would spoil a drawing's precision."""
    if curve.x[-1] <= edge:
        return curve
    inside = max(int(np.searchsorted(curve.x, edge, side="right")), 1)

    def cut(values: FloatArray) -> FloatArray:
        last = values[inside - 1] if curve.step else np.interp(edge, curve.x, values)
        return np.append(values[:inside], last)

    return replace(
        curve,
        x=np.append(curve.x[:inside], edge),
        y=cut(curve.y),
        lower=None if curve.lower is None else cut(curve.lower),
        upper=None if curve.upper is None else cut(curve.upper),
        reference=None if curve.reference is None else cut(curve.reference),
        hover={n: np.append(column[:inside], math.nan) for n, column in curve.hover.items()},
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
    note = f"The last {layout.tail:.0%} of the decrease, up to {end:.4g}, is not shown."
    return replace(axis, domain=(0.0, 1.05 * cut)), note


def _y_axis(curves: Sequence[Curve], layout: Layout) -> Axis:
    title = headed(curves[0].y_label) or layout.y.title
    if layout.fits_curve:
        parts = [
            values
            for curve in curves
            for values in (curve.y, curve.reference)
            if values is not None
        ]
        top = max(float(values.max()) for values in parts)
        if top > 0 and min(float(values.min()) for values in parts) >= 0:
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


# ---- the layers of a curve's figure: the curve, its band, what it is judged against --------------

# Three washes of colour over each other are four shades; more are mud. Chosen by eye.
MAX_BANDS = 3
"""The most bands that can be told apart where they lie over each other."""


@frozen
class _Drawing:
    """The curves of one figure, each with its label and colour."""

    layout: Layout
    series: Sequence[tuple[Curve, str, int]]

    @property
    def alone(self) -> bool:
        """Whether there is one curve."""
        return len(self.series) == 1

    def data_layers(self) -> list[Layer]:
        """The curves themselves, with their intervals where they are made of points."""
        layers: list[Layer] = []
        for curve, label, colour in self.series:
            mark = self.layout.mark
            if curve.step and mark is not Mark.BARS:
                mark = Mark.STEP
            layer = Layer(mark=mark, x=curve.x, y=curve.y, series=label, colour=colour)
            if mark is Mark.BARS:
                left_edges, right = _bar_ends(curve.x)
                tops = curve.y[: len(left_edges)]
                if self.alone:
                    middle = (left_edges + right) / 2
                    layers.append(replace(layer, x=middle, y=tops, lower=left_edges, upper=right))
                else:
                    edges, outline = np.append(left_edges, right[-1]), np.append(tops, tops[-1])
                    layers.append(replace(layer, mark=Mark.STEP, x=edges, y=outline))
                continue
            titles = distinct(map(headed, curve.hover), 40)
            layer = replace(layer, hover=dict(zip(titles, curve.hover.values(), strict=True)))
            if (
                self.layout.band_about != "reference"
                and curve.lower is not None
                and curve.upper is not None
            ):
                layer = replace(layer, lower=curve.lower, upper=curve.upper)
                if mark is Mark.POINTS:
                    layers.append(replace(layer, mark=Mark.INTERVALS))
            layers.append(layer)
        return layers

    def band_layers(self) -> list[Layer]:
        """The bands; one neutral band where it surrounds the reference and all curves share it."""
        layout = self.layout
        if layout.mark is Mark.POINTS:
            return []
        bands = []
        for curve, label, colour in self.series:
            if curve.lower is None or curve.upper is None:
                continue
            finite = np.isfinite(curve.lower) & np.isfinite(curve.upper)
            words = one_line(curve.band, 120) or layout.band
            bands.append(
                ((curve.x[finite], curve.lower[finite], curve.upper[finite]), words, label, colour)
            )
        same = _same([ends for ends, *_ in bands])
        if len(bands) > MAX_BANDS and not same:
            return []
        shared = same and layout.band_about == "reference"
        layers = []
        for (x, lower, upper), words, label, colour in bands[:1] if shared else bands:
            if layout.mark is Mark.BARS and len(x):
                left_edges, right = _bar_ends(x)
                x = np.append(left_edges, right[-1])
                lower, upper = (np.append(end, end[-1])[: len(x)] for end in (lower, upper))
            unnamed = shared or self.alone
            layers.append(
                Layer(
                    mark=Mark.BAND,
                    x=x,
                    lower=lower,
                    upper=upper,
                    series=words if unnamed else f"{words} · {label}",
                    colour=REFERENCE if shared else colour,
                    listed=unnamed,
                )
            )
        return layers

    def reference_layers(self) -> list[Layer]:
        """What the curves are judged against; one neutral line where all share it."""
        layout = self.layout
        judged = [
            (curve.x, curve.reference, label, colour)
            for curve, label, colour in self.series
            if curve.reference is not None
        ]
        shared = _same([(x[[0, -1]], reference[[0, -1]]) for x, reference, _, _ in judged])
        stepped = all(curve.step for curve, *_ in self.series) and layout.mark is not Mark.BARS
        layers = []
        for x, reference, label, colour in judged[:1] if shared else judged:
            if layout.mark is Mark.BARS:
                x, reference = np.array([0.0, 1.0]), reference[[0, -1]]
            layers.append(
                Layer(
                    mark=Mark.STEP if stepped else Mark.LINE,
                    x=x,
                    y=reference,
                    series=layout.reference if shared else f"{layout.reference} · {label}",
                    colour=REFERENCE if shared else colour,
                    faint=not shared,
                    listed=shared,
                )
            )
        return layers

    def companion_layers(self, families: Mapping[str, Sequence[Curve]], edge: float) -> list[Layer]:
        """Curves that stand behind those of their model and group, up to the right edge."""
        alone = self.alone
        return [
            Layer(
                mark=Mark.STEP if behind.step else Mark.LINE,
                x=behind.x,
                y=behind.y,
                series=companion.words if alone else f"{companion.words} · {label}",
                colour=REFERENCE if alone else colour,
                faint=not (alone and companion.dashed),
                listed=alone,
            )
            for name, companion in self.layout.companions.items()
            if alone or companion.crowd
            for curve, label, colour in self.series
            for other in map(placed, families.get(name, ()))
            if len(other.x) and (other.model, other.group) == (curve.model, curve.group)
            for behind in (thinned(_up_to(other, edge)),)
        ]

    def notes_of_companions(self, families: Mapping[str, Sequence[Curve]]) -> list[str]:
        """What dashed companions say of themselves, under the name of their model."""
        labels = {(curve.model, curve.group): label for curve, label, _ in self.series}
        notes = []
        for name, companion in self.layout.companions.items():
            for other in families.get(name, ()):
                label = labels.get((other.model, other.group))
                if companion.dashed and other.notes and label is not None:
                    notes.append(("" if self.alone else f"{label}: ") + headed(other.notes, 400))
        return notes

    def notes_of_legend(self, layers: Sequence[Layer]) -> list[str]:
        """What the legend leaves to words, as it would say it once for each model."""
        layout, hidden, notes = self.layout, [layer for layer in layers if not layer.listed], []
        banded = sum(curve.lower is not None for curve, *_ in self.series)
        about = layout.mark is not Mark.POINTS and banded > MAX_BANDS
        if about and not any(layer.mark is Mark.BAND for layer in layers):
            notes.append(f"Bands are shown for at most {MAX_BANDS} models.")
        if any(layer.mark is Mark.BAND for layer in hidden):
            notes.append(f"Shaded: {one_line(self.series[0][0].band, 120) or layout.band}.")
        if any(layer.faint for layer in hidden):
            has_own_reference = any(
                layer.series.startswith(f"{layout.reference} · ") for layer in hidden
            )
            crowd = [companion.words for companion in layout.companions.values() if companion.crowd]
            named = dict.fromkeys([*([layout.reference] if has_own_reference else []), *crowd])
            notes.append(f"Dotted: {', '.join(named)}.")
        return [" ".join(notes)] if notes else []


def _bar_ends(x: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Ends of the bars: x holds their centres, or (where it begins at 0) their edges."""
    if len(x) > 1 and x[0] == 0.0:
        edges = x if x[-1] >= 1.0 else np.append(x, 1.0)
    elif len(x) > 1:
        middle = (x[1:] + x[:-1]) / 2
        edges = np.concatenate([[2 * x[0] - middle[0]], middle, [2 * x[-1] - middle[-1]]])
        edges = np.where(np.abs(edges) < 1e-12, 0.0, edges)
    else:
        edges = np.array([0.0, 1.0])
    return edges[:-1], edges[1:]


def zone_layers(layout: Layout, y: Axis, families: Mapping[str, Sequence[Curve]]) -> list[Layer]:
    """The range of y that a layout shades, where the figure has the layout's axis."""
    zone = layout.zone
    if zone is None or y.kind != layout.y.kind:
        return []
    curves = families.get(zone.curve)
    low, high = np.sort(curves[0].y[[0, -1]]).tolist() if curves else zone.ends
    ends = f"at most {level(high)}" if low == 0 else f"{level(low)} to {level(high)}"
    return [
        Layer(
            mark=Mark.ZONE,
            lower=np.array([low]),
            upper=np.array([high]),
            series=f"{zone.of} {ends}",
            colour=REFERENCE,
        )
    ]


def _same(parts: Sequence[tuple[FloatArray, ...]]) -> bool:
    """Whether every curve brings the same arrays, so that one drawing stands for all."""
    return all(
        a.shape == b.shape and np.allclose(a, b)
        for arrays in parts[1:]
        for a, b in zip(arrays, parts[0], strict=True)
    )


# ---- a curve of any length as few points that keep its shape -------------------------------------

# 120 points of a curve 600 pixels wide are one in 5 pixels, and keep pages small. By eye.
MAX_POINTS = 120
"""The most points drawn of one curve that has more than these."""
# Of these, the points spread evenly, so that a reader finds one to point at everywhere: a third,
# the rest go where the curve bends. By eye.
_POINTS_SPREAD = 40
# Points looked at: more than a figure has pixels by ten times, so that none in between shows.
_MAX_POINTS_LOOKED_AT = 10_000
# Share of the height below which a departure from the drawn line cannot be seen: a third of a
# pixel of 320.
_MIN_DEPARTURE = 1e-3

Places = IntArray


def placed(curve: Curve) -> Curve:
    """The curve without points that have no place."""
    return points_of(curve, np.flatnonzero(np.isfinite(curve.x) & np.isfinite(curve.y)))


def thinned(curve: Curve) -> Curve:
    """The curve with no more points than can be seen.

    Steps so many that they are left out are drawn as the line through their corners.
    """
    if len(curve.x) <= MAX_POINTS:
        return curve
    curve = points_of(curve, sample_points(curve.x, _MAX_POINTS_LOOKED_AT))
    if curve.step:
        count = len(curve.x)
        after, before = np.repeat(np.arange(count), 2)[1:], np.repeat(np.arange(count), 2)[:-1]
        hover = {name: values[after] for name, values in curve.hover.items()}
        curve = replace(points_of(curve, before), x=curve.x[after], hover=hover, step=False)
    parts = [values for values in (curve.y, curve.lower, curve.upper) if values is not None]
    return points_of(curve, shape_points(curve.x, np.array(parts), MAX_POINTS))


def shape_points(x: FloatArray, parts: FloatArray, limit: int) -> Places:
    """Indices of at most `limit` points through which lines follow each of the parts, shape (p, n).

    From points spread evenly on, the one that lies farthest from the lines is added, until none
    can be seen beside them.
    """
    low, high = (bound(parts[np.isfinite(parts)]) for bound in (np.min, np.max))
    scaled = np.where(np.isfinite(parts), parts - low, 0.0) / ((high - low) or 1.0)
    spread = np.linspace(x[0], x[-1], _POINTS_SPREAD)
    start = np.unique(np.r_[0, np.searchsorted(x, spread[1:-1]), len(x) - 1]).astype(np.int64)
    heap = [_farthest(x, scaled, a, b) for a, b in itertools.pairwise(start)]
    heapq.heapify(heap)
    chosen = set(start.tolist())
    while len(chosen) < limit and heap and -heap[0][0] > _MIN_DEPARTURE:
        _, point, first, last = heapq.heappop(heap)
        chosen.add(point)
        heapq.heappush(heap, _farthest(x, scaled, first, point))
        heapq.heappush(heap, _farthest(x, scaled, point, last))
    return np.array(sorted(chosen), dtype=np.int64)


def _farthest(x: FloatArray, parts: FloatArray, a: int, b: int) -> tuple[float, int, int, int]:
    """The departure (negative, for the heap) and place of the farthest point between two."""
    if b - a < 2:
        return 0.0, int(a), int(a), int(b)
    width = x[b] - x[a]
    share = (x[a + 1 : b] - x[a]) / width if width > 0 else np.zeros(b - a - 1)
    line = parts[:, [a]] + share * (parts[:, [b]] - parts[:, [a]])
    away = np.abs(parts[:, a + 1 : b] - line).max(axis=0)
    point = int(np.argmax(away))
    return -float(away[point]), int(a + 1 + point), int(a), int(b)


def points_of(curve: Curve, index: Places | BoolArray) -> Curve:
    """The curve at some of its points."""

    def pick(values: FloatArray | None) -> FloatArray | None:
        return None if values is None else values[index]

    return replace(
        curve,
        x=curve.x[index],
        y=curve.y[index],
        lower=pick(curve.lower),
        upper=pick(curve.upper),
        reference=pick(curve.reference),
        hover={name: column[index] for name, column in curve.hover.items()},
    )


# ---- named points on a curve's figure: where a model stands, and where it might ------------------

POINTS = "operating points"
"""What named points are, where they are of too many kinds to be told apart."""
# By shape, for one model: the last of the palette first, as the first is that of the curve.
_COLOURS_OF_SHAPES = (SERIES_LIMIT - 1, 1, 2, 3, 4, 5)
# By shape: a wanted miss rate and the least score nearly coincide, so one frames the other.
_SIZES_OF_SHAPES = (1.0, 2.0, 0.7, 1.0, 1.0, 1.0)
_NUMBERED = re.compile(r"(.*\S)\s+([-+\d.]+)")


def mark_layers(
    tables: Sequence[ResultTable], points: tuple[str, str, str] | None, places: Mapping[str, int]
) -> tuple[list[Layer], str]:
    """Named points to set on a curve's figure, one layer a model and kind of point."""
    layers: list[Layer] = []
    shapes: dict[str, int] = {}
    alone = len(places) == 1
    for table in tables:
        if points is None or table.name != points[0] or (table.model and table.model not in places):
            continue
        x, y, knob = (number(table, name) for name in (points[1], points[2], "k"))
        if x is None or y is None:
            continue
        names = distinct(texts(table, "point"), 60)
        model = one_line(table.model, 60)
        for words, rows in _kinds(names):
            drawn = [row for row in rows if np.isfinite(x[row]) and np.isfinite(y[row])]
            if not drawn:
                continue
            shape = shapes.setdefault(words, len(shapes) % len(VEGA_SHAPES))
            layers.append(
                Layer(
                    mark=Mark.POINTS,
                    x=x[drawn],
                    y=y[drawn],
                    series=words if alone else f"{words} · {model}",
                    colour=_COLOURS_OF_SHAPES[shape] if alone else places.get(table.model, 0),
                    shape=shape,
                    size=_SIZES_OF_SHAPES[shape],
                    labels=tuple(names[row] for row in drawn),
                    hover={} if knob is None else {"k": knob[drawn]},
                    listed=alone,
                )
            )
    if alone or not layers:
        return layers, ""
    shapes_in_words = (
        f"{VEGA_SHAPES[shape].partition('-')[0]}: {words}" for words, shape in shapes.items()
    )
    return layers, f"Points, {'; '.join(shapes_in_words)}."


def _kinds(names: Sequence[str]) -> list[tuple[str, list[int]]]:
    """What the legend calls each kind of point, and the rows of the kind."""
    kinds: dict[tuple[str, bool], list[int]] = {}
    for row, name in enumerate(names):
        numbered = _NUMBERED.fullmatch(name)
        stem = numbered[1] if numbered else name
        kinds.setdefault((stem, numbered is not None), []).append(row)
    if len(kinds) > len(VEGA_SHAPES):
        return [(POINTS, list(range(len(names))))]
    return [(_words(stem, [names[row] for row in rows]), rows) for (stem, _), rows in kinds.items()]


def _words(stem: str, names: Sequence[str]) -> str:
    """The name of the only one, or what the names share with their numbers."""
    if len(names) == 1:
        return names[0]
    return one_line(f"{stem} {', '.join(name[len(stem) :].strip() for name in names)}", 60)
