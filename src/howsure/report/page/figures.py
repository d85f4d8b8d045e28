"""A figure as a page shows it: its drawing as JSON, its legend, its data as a table."""

from __future__ import annotations

import base64
import json
import math
import zlib
from datetime import UTC, datetime

import numpy as np
from markupsafe import Markup

from howsure.core import formats
from howsure.core.arrays import FloatArray
from howsure.core.classes import frozen
from howsure.figures import Axis, Figure, Layer, Mark, to_vega
from howsure.figures.figure import Shades, sample_points
from howsure.figures.palette import CSS, VEGA_SHAPES, dash_of
from howsure.figures.telling import describe_figure
from howsure.report.document import Cell, Column, Grid

# A curve at 41 places has steps of 2.5 %, round numbers of a percentage axis.
MAX_ROWS = 41
"""The most rows of each line in a figure's table."""
# Signs that have room below a scale of colours of its width. By eye.
SIGNS_OF_RAMP = 36
"""Signs that have room below a scale of colours."""
# A third of its points, the strongest: a table of all would be the page.
MAX_ROWS_OF_MAP = 100
"""The most rows of a map in its table."""
_PATHS = {
    "circle": "M12 2.6a3.4 3.4 0 1 0 .01 0z",
    "square": "M9 3h6v6H9z",
    "triangle-up": "M12 2l4 7.5H8z",
    "diamond": "M12 1.5L16 6l-4 4.5L8 6z",
    "cross": "M10.8 2h2.4v2.8H16v2.4h-2.8V10h-2.4V7.2H8V4.8h2.8z",
    "triangle-down": "M12 10L8 2.5h8z",
}


@frozen(kw_only=True)
class Swatch:
    """One item of a legend: its class, its words, and how its small picture is drawn."""

    label: str
    tone: str
    kind: str
    dash: str
    path: str


@frozen(kw_only=True)
class Ramp:
    """The legend of a scale of colours: its title, its colours, the ends of its classes."""

    title: str
    colours: tuple[str, ...]
    ends: tuple[str, ...]  # empty where there is no room for one
    told: str


@frozen(kw_only=True)
class Block:
    """A figure with all that stands around it."""

    figure: Figure
    spec: Markup
    legend: tuple[Swatch, ...]
    data: Grid
    described: str
    ramp: Ramp | None = None
    number: int = 0


def block_of(figure: Figure) -> Block:
    """What the page needs to show one figure."""
    spec = to_vega(figure, palette=CSS, legend=False)
    items = figure.legend()
    named = figure.title or figure.question
    colour = "" if figure.shades is None else f" Colour: {figure.shades.title}."
    return Block(
        figure=figure,
        spec=packed(json.dumps(spec, allow_nan=False, separators=(",", ":"))),
        legend=tuple(
            Swatch(
                label=item.label,
                tone=tone_of(item.colour),
                kind=_swatch_kind(item.mark),
                dash=" ".join(map(str, dash_of(item.colour, faint=item.faint))),
                path=_PATHS[VEGA_SHAPES[item.shape % len(VEGA_SHAPES)]],
            )
            for item in items
        ),
        data=_data_grid(figure),
        described=f"{named}. {describe_figure(figure)}{colour} The data follow as a table.",
        ramp=None if figure.shades is None else _ramp(figure.shades),
    )


def _ramp(shades: Shades) -> Ramp:
    """As many ends of classes in writing as stand side by side without touching."""
    ends = tuple(map(formats.number, shades.edges))
    every = math.ceil(max(map(len, ends)) * len(ends) / SIGNS_OF_RAMP)
    return Ramp(
        title=shades.title,
        colours=CSS.shades(shades.classes),
        told=f"{shades.title} from {ends[0]} to {ends[-1]}, from faint to strong",
        ends=tuple("" if position % every else end for position, end in enumerate(ends)),
    )


def packed(text: str) -> Markup:
    """A text deflated, in base64: no character of it can end a script element or open markup."""
    return Markup(base64.b64encode(zlib.compress(text.encode(), 9)).decode("ascii"))


def tone_of(colour: int) -> str:
    """The CSS class of a layer's colour."""
    name = CSS.colour(colour)
    return name.removeprefix("var(--").removesuffix(")")


def _swatch_kind(mark: Mark) -> str:
    if mark in {Mark.BAND, Mark.BARS, Mark.ZONE}:
        return "area"
    return "point" if mark in {Mark.POINTS, Mark.INTERVALS} else "line"


def _data_grid(figure: Figure) -> Grid:
    """The figure's numbers, each line thinned to few rows, the strongest points of a map."""
    layers = [layer for layer in figure.layers if layer.mark not in {Mark.INTERVALS, Mark.TEXT}]
    horizontal = figure.is_horizontal()
    has_series = any(layer.series for layer in layers)
    has_labels = any(layer.labels for layer in layers) and not horizontal
    has_ends = any(len(layer.lower) for layer in layers)
    titles = tuple(dict.fromkeys(title for layer in layers for title in layer.hover))
    columns = [
        *([Column("Series")] if has_series else []),
        *([Column(figure.naming)] if has_labels else []),
        Column(figure.x.title or "x", numeric=True),
        Column(figure.y.title or "Row", numeric=figure.y.kind != "category"),
        *([Column(end, numeric=True) for end in ("From", "To")] if has_ends else []),
        *(Column(title, numeric=True) for title in titles),
    ]
    rows = []
    for layer in layers:
        across = figure.x if horizontal or layer.mark is Mark.BARS else figure.y
        numbers = [(layer.x, figure.x), (layer.y, figure.y)]
        numbers += [(layer.lower, across), (layer.upper, across)] if has_ends else []
        numbers += [(layer.hover.get(title, np.zeros(0)), Axis()) for title in titles]
        for position in _listed(layer):
            label = layer.labels[position] if layer.labels else ""
            texts = [layer.series] * has_series + [label] * has_labels
            points = (_point(values, position, axis) for values, axis in numbers)
            rows.append((*map(Cell, texts), *points))
    notes: tuple[str, ...] = ()
    if figure.shades is not None and any(len(layer) > MAX_ROWS_OF_MAP for layer in layers):
        notes = (f"The {MAX_ROWS_OF_MAP} points with the highest {figure.shades.title}.",)
    return Grid.of("", columns, rows, notes)


def _listed(layer: Layer) -> list[int]:
    """Places of the marks that a figure's table lists."""
    if len(layer.shade):
        strongest = np.argsort(-layer.shade, kind="stable")[:MAX_ROWS_OF_MAP]
        return [int(position) for position in strongest]
    if len(layer) > MAX_ROWS and len(layer.x) and layer.mark is not Mark.POINTS:
        return [int(position) for position in sample_points(layer.x, MAX_ROWS)]
    return list(range(len(layer)))


def _point(values: FloatArray, position: int, axis: Axis) -> Cell:
    if not len(values) or math.isnan(values[position]):
        return Cell("")
    value = float(values[position])
    if axis.kind == "category":
        return Cell(axis.categories[int(value)])
    if axis.kind == "time":
        return Cell(datetime.fromtimestamp(value, UTC).isoformat(" ", "minutes"))
    if axis.kind == "percent":
        return Cell(formats.share(value))
    return Cell(formats.number(value))
