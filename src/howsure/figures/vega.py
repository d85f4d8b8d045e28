"""Figure → Vega-Lite: plain dictionaries, with every text of the user as data, never as code."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from typing import Any, Literal

import numpy as np

from howsure.core.arrays import FloatArray
from howsure.core.text import distinct
from howsure.figures.figure import HIGHLIGHT, Axis, AxisKind, Figure, Layer, Mark, Shades
from howsure.figures.palette import LIGHT, VEGA_SHAPES, Palette, dash_of

Spec = dict[str, Any]
SCHEMA = "https://vega.github.io/schema/vega-lite/v6.json"
FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif"
# Pixels of a figure; of labels, which leave half the width to the drawing; of rows, so that a line
# of text fits, with more air where there are few; and of marks side by side. By eye.
HEIGHT = 320
MAX_LABEL_PIXELS = 260
ROW_HEIGHT = 22
FEW_ROW_HEIGHT = 32
LANE_HEIGHT = 10
# 320 pixels are told apart by three digits; four leave one for a reader of the value.
MIN_DIGITS = 4
"""Significant digits of numbers that begin near zero; those far from it have more."""
# Pixels between a mark and its label, by side: so that they do not touch.
_ALIGNMENT = {"start": ("left", 4), "middle": ("center", 0), "end": ("right", -4)}
_FORMATS = {"number": ",.4~g", "percent": ".1%"}


def to_vega(
    figure: Figure,
    *,
    palette: Palette = LIGHT,
    legend: bool = True,
    width: int | str = "container",
) -> Spec:
    """The Vega-Lite specification of a figure.

    Parameters
    ----------
    figure : Figure
        What to draw.
    palette : Palette
        Its colours.
    legend : bool
        Whether the drawing holds its own legend.
    width : int or "container"
        Width in pixels, or that of the element that holds the drawing.

    Returns
    -------
    dict
        Plain values, ready for JSON.

    Examples
    --------
    >>> import numpy as np
    >>> line = Layer(mark=Mark.LINE, x=np.array([0.0, 1.0]), y=np.array([0.0, 0.9]), series="A")
    >>> spec = to_vega(Figure(name="calibration", question="?", layers=(line,)))
    >>> spec["layer"][0]["mark"]["type"]
    'line'
    """
    if figure.shades is None:
        colour = _series_channel(figure, palette, legend)
    else:
        colour = _shade_channel(figure.shades, palette, legend)
        plain = [layer for layer in figure.layers if not len(layer.shade)]
    layers = [_layer(figure, number, palette) for number in range(len(figure.layers))]
    hovered = _hovered(figure)
    if figure.shades is not None:
        for layer, drawn in zip(figure.layers, layers, strict=True):
            own_colour = {"value": palette.colour(layer.colour)}
            drawn["encoding"]["color"] = colour if len(layer.shade) else own_colour
        if plain:
            shaded = {"test": "isValid(datum.shade)", **colour}
            colour = {"condition": shaded, "value": palette.colour(plain[0].colour)}
    layers.append(_hover_layer(figure, colour, {name for row in hovered for name in row}))
    names = [layer.series for layer in figure.layers]
    if any(names):
        series = f"{json.dumps(names)}[datum.at]" if len(names) > 1 else json.dumps(names[0])
        layers[-1]["transform"] = [{"calculate": series, "as": "series"}]
    horizontal = figure.is_horizontal()
    height = figure.height or HEIGHT
    if figure.square and not isinstance(width, str):
        height = width
    return {
        "$schema": SCHEMA,
        "width": width,
        "height": _height_of_rows(figure) if horizontal else height,
        "autosize": {"type": "fit-x", "contains": "padding"},
        "datasets": {"hovered": hovered},
        "layer": layers,
        "config": config_of(palette),
    }


def _series_channel(figure: Figure, palette: Palette, legend: bool) -> Spec:
    """A colour for each series."""
    listed = [item.label for item in figure.legend()]
    colours = {layer.series: palette.colour(layer.colour) for layer in figure.layers}
    scale = {"domain": list(colours), "range": list(colours.values())}
    legend_spec: Spec | None = None
    if legend and len(listed) > 1:
        legend_spec = {"title": None, "orient": "top", "symbolType": "stroke", "columns": 3}
        legend_spec["values"] = listed
    return {"field": "series", "type": "nominal", "scale": scale, "legend": legend_spec}


def _shade_channel(shades: Shades, palette: Palette, legend: bool) -> Spec:
    """A colour for each class of a number."""
    scale = {
        "type": "threshold",
        "domain": list(shades.edges[1:-1]),
        "range": list(palette.shades(shades.classes)),
    }
    legend_spec: Spec | None = None
    if legend:
        legend_spec = {"title": shades.title, "orient": "top", "gradientLength": 240}
        legend_spec["labelOverlap"] = "greedy"
    return {"field": "shade", "type": "quantitative", "scale": scale, "legend": legend_spec}


def _height_of_rows(figure: Figure) -> int:
    edge = 0 if figure.lanes() > 1 else 10
    return _row_height(figure) * len(figure.y.categories) + edge


def _row_height(figure: Figure) -> int:
    """Pixels of a row of a category axis."""
    usual = ROW_HEIGHT if len(figure.y.categories) > 8 else FEW_ROW_HEIGHT
    return max(usual, LANE_HEIGHT * figure.lanes() + 8)


def config_of(palette: Palette) -> Spec:
    """The Vega-Lite configuration that gives every figure its look."""
    return {
        "background": "transparent",
        "font": FONT,
        "aria": False,
        "padding": {"left": 2, "right": 10, "top": 6, "bottom": 2},
        "view": {"stroke": None},
        "axis": {
            "labelColor": palette.reference,
            "labelFontSize": 12,
            "titleColor": palette.ink,
            "titleFontSize": 13,
            "titleFontWeight": 500,
            "titlePadding": 10,
            "titleLimit": 300,
            "gridColor": palette.grid,
            "domain": False,
            "ticks": False,
            "labelPadding": 8,
            "labelLimit": 150,
            "labelOverlap": "greedy",
            "labelSeparation": 8,
            "tickCount": 5,
        },
        "legend": {
            "labelColor": palette.ink,
            "labelFontSize": 12,
            "labelLimit": 240,
            "symbolOpacity": 1,
            "symbolSize": 260,
            "symbolStrokeWidth": 2.25,
        },
    }


def _layer(figure: Figure, number: int, palette: Palette) -> Spec:
    """One layer; what can be pointed at shares its data with the hover text."""
    layer = figure.layers[number]
    encoding: Spec = {}
    if layer.series and layer.mark is not Mark.TEXT:
        encoding["color"] = {"datum": layer.series}
    mark = _mark(layer, palette, clip=_is_cut(figure, layer))
    encoding |= _position(figure, layer)
    if not _is_hovered(layer):
        data: Spec = {"data": {"values": _rows(figure, layer)}}
    elif len(figure.layers) == 1:
        data = {"data": {"name": "hovered"}}
    else:
        chosen = {"filter": {"field": "at", "equal": number}}
        data = {"data": {"name": "hovered"}, "transform": [chosen]}
    return {**data, "mark": mark, "encoding": encoding}


def _is_hovered(layer: Layer) -> bool:
    """Whether marks of a layer can be pointed at."""
    if layer.mark not in {Mark.LINE, Mark.STEP, Mark.POINTS, Mark.BARS}:
        return False
    return layer.colour >= 0 or layer.colour == HIGHLIGHT or bool(layer.labels)


def _is_cut(figure: Figure, layer: Layer) -> bool:
    """Whether a layer reaches past the right or the upper edge, so that it must be cut there."""
    edges = ((figure.x.domain, (layer.x,)), (figure.y.domain, (layer.lower, layer.upper)))
    return any(
        len(ends) and (ends.max() > domain[1] or ends.min() < domain[0])
        for domain, parts in edges
        if domain is not None
        for ends in parts
    )


def _mark(layer: Layer, palette: Palette, *, clip: bool) -> Spec:
    dash = {"strokeDash": list(dash_of(layer.colour, faint=layer.faint))}
    shape = VEGA_SHAPES[layer.shaped % len(VEGA_SHAPES)]
    thickness = 1.5 if layer.colour < 0 or layer.faint else 2.25
    match layer.mark:
        case Mark.LINE | Mark.STEP:
            path = {"interpolate": "step-after"} if layer.mark is Mark.STEP else {}
            return {"type": "line", "clip": clip, "strokeWidth": thickness, **dash, **path}
        case Mark.BAND:
            return {"type": "area", "clip": clip, "opacity": 0.16, "line": False}
        case Mark.POINTS if len(layer.shade):
            return {"type": "point", "filled": True, "opacity": 0.9, "size": 36, "shape": shape}
        case Mark.POINTS:
            return {
                "type": "point",
                "filled": True,
                "opacity": 1,
                "size": 64 * layer.size,
                "shape": shape,
                "stroke": palette.surface,
                "strokeWidth": 1,
            }
        case Mark.INTERVALS:
            width, opacity = (1.5, 0.35) if layer.faint else (1.75, 0.75)
            return {"type": "rule", "strokeWidth": width * layer.size, "opacity": opacity}
        case Mark.BARS:
            return {"type": "bar", "opacity": 0.55, "stroke": palette.surface, "strokeWidth": 1}
        case Mark.RULE:
            return {"type": "rule", "strokeWidth": 1.5, **dash}
        case Mark.ZONE:
            return {"type": "rect", "opacity": 0.1}
        case Mark.TEXT:
            return {
                "type": "text",
                "align": _ALIGNMENT[layer.anchor][0],
                "dx": _ALIGNMENT[layer.anchor][1],
                "dy": {"expr": "indexof(datum.label, '\\n') < 0 ? 0 : -7"},
                "baseline": "middle",
                "color": palette.reference if layer.colour < 0 else palette.ink,
                "fontSize": 12,
                "lineBreak": "\n",
            }


def _position(figure: Figure, layer: Layer) -> Spec:
    x, (y, dodge) = _channel(figure.x, "x"), _rows_channel(figure, lanes=len(layer.y) > 0)
    match layer.mark:
        case Mark.RULE:
            return {"x": x} if len(layer.x) else {"y": y}
        case Mark.ZONE:
            return {"y": _channel(figure.y, "lo"), "y2": {"field": "hi"}}
        case Mark.BARS:
            ends = {"x": _channel(figure.x, "lo"), "x2": {"field": "hi"}}
            return {**ends, "y": y, "y2": {"datum": 0}}
        case Mark.BAND | Mark.INTERVALS:
            if figure.lies_along_x(layer):
                return {"x": _channel(figure.x, "lo"), "x2": {"field": "hi"}, "y": y, **dodge}
            return {"x": x, "y": _channel(figure.y, "lo"), "y2": {"field": "hi"}}
        case Mark.TEXT:
            return {"x": x, "y": y, "text": {"field": "label", "type": "nominal"}}
    return {"x": x, "y": y, **dodge}


def _rows_channel(figure: Figure, *, lanes: bool = True) -> tuple[Spec, Spec]:
    """The channel of y; of rows with lanes that which fills their height, and that of the shift."""
    y = _channel(figure.y, "y")
    if not lanes or figure.lanes() <= 1:
        return y, {}
    offset = {"field": "dodge", "type": "quantitative", "scale": None}
    return {**y, "scale": {**y["scale"], "padding": 0}}, {"yOffset": offset}


def _channel(axis: Axis, field: str) -> Spec:
    title = axis.title or None
    if axis.kind == "category":
        return {
            "field": field,
            "type": "ordinal",
            "scale": {"domain": list(axis.categories)},
            "axis": {
                "title": title,
                "grid": False,
                "labelOverlap": False,
                "labelLimit": MAX_LABEL_PIXELS,
            },
        }
    scale: Spec = {"zero": axis.zero}
    if axis.domain is not None:
        scale = {"domain": list(axis.domain), **({"clamp": True} if axis.clamp else {})}
    if axis.kind == "time":
        return {
            "field": field,
            "type": "temporal",
            "scale": {"type": "utc"},
            "axis": {"title": title, "grid": False},
        }
    drawn: Spec | None = {"title": title} if axis.shown else None
    if drawn is not None and not axis.labelled:
        drawn |= {"labels": False, "grid": False}
    elif drawn is not None and axis.kind == "percent":
        drawn["format"] = ".0%" if axis.domain is not None else ".3~p"
    return {"field": field, "type": "quantitative", "scale": scale, "axis": drawn}


def _rows(figure: Figure, layer: Layer) -> list[Spec]:
    names = ("x", "y", "lo", "hi")
    parts = (layer.x, layer.y, layer.lower, layer.upper)
    horizontal = figure.is_horizontal()
    columns: dict[str, Iterable[Any]] = {}
    for name, values in zip(names, parts, strict=True):
        if not len(values):
            continue
        if name == "y" and horizontal:
            columns["y"] = [figure.y.categories[int(place)] for place in values]
        elif figure.x.kind == "time" and name == "x":
            columns["x"] = _plain(np.round(values) * 1000.0, 15)
        else:
            along_x = name == "x" or (name != "y" and (horizontal or layer.mark is Mark.BARS))
            columns[name] = _plain(values, _digits(figure, "x" if along_x else "y"))
    if layer.labels:
        columns["label"] = layer.labels
    if figure.lanes() > 1 and len(layer.y):
        place = round(_row_height(figure) * (0.5 + layer.offset), 1)
        columns["dodge"] = [place] * len(layer)
    if len(layer.shade):
        columns["shade"] = _plain(layer.shade)
    titles = _hover_titles(figure)
    for title, values in layer.hover.items():
        columns[f"more{titles.index(title)}"] = _plain(values)
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def _hover_titles(figure: Figure) -> list[str]:
    """Titles of the further numbers that the hover text shows."""
    return list(dict.fromkeys(title for layer in figure.layers for title in layer.hover))


def _digits(figure: Figure, axis: Literal["x", "y"]) -> int:
    """Significant digits that place a mark within a ten-thousandth of what an axis shows."""
    parts = [getattr(layer, axis) for layer in figure.layers]
    if not figure.is_horizontal() or axis == "x":
        across = figure.is_horizontal() == (axis == "x")
        bars = [layer for layer in figure.layers if layer.mark is Mark.BARS]
        parts += [layer.lower for layer in (figure.layers if across and not bars else bars)]
        parts += [layer.upper for layer in (figure.layers if across and not bars else bars)]
    every = np.concatenate([np.zeros(0), *parts])
    every = every[np.isfinite(every)]
    spread = float(np.ptp(every)) if len(every) else 0.0
    if spread == 0:
        return 7
    far = float(np.abs(every).max()) / spread
    return min(15, MIN_DIGITS + max(0, math.ceil(math.log10(far))))


def _plain(values: FloatArray, digits: int = MIN_DIGITS) -> list[float | int | None]:
    """Numbers with so many significant digits; NaN and infinity as None."""
    return [_short(number, digits) if math.isfinite(number) else None for number in values.tolist()]


def _short(number: float, digits: int) -> float | int:
    """A number as JSON writes it with the fewest signs."""
    rounded = float(f"{number:.{digits}g}")
    return int(rounded) if rounded.is_integer() and abs(rounded) < 1e15 else rounded


def _hovered(figure: Figure) -> list[Spec]:
    """A row for each mark that can be pointed at."""
    rows: list[Spec] = []
    for number, layer in enumerate(figure.layers):
        if not _is_hovered(layer):
            continue
        at = {"at": number} if len(figure.layers) > 1 else {}
        rows += [{**row, **at} for row in _rows(figure, layer)]
    return rows


def _hover_layer(figure: Figure, colour: Spec, present: set[str]) -> Spec:
    """Unseen points over the data: the nearest one lights up and names itself.

    It alone holds the scale of the series' colours; the other layers share it.
    """
    select = {"type": "point", "nearest": True, "on": "pointerover", "clear": "pointerout"}
    lit = {"param": "hover", "empty": False, "value": 1}
    y, dodge = _rows_channel(figure)
    return {
        "data": {"name": "hovered"},
        "params": [{"name": "hover", "select": select}],
        "mark": {
            "type": "point",
            "filled": True,
            "size": 90,
            "clip": True,
            "tooltip": {"expr": _hover_text(figure, present)},
        },
        "encoding": {
            "x": _channel(figure.x, "x"),
            "y": y,
            **dodge,
            "color": colour,
            "opacity": {"condition": lit, "value": 0},
        },
    }


def _hover_text(figure: Figure, present: set[str]) -> str:
    """A Vega expression that makes the hover text of a row.

    Vega-Lite's own hover text reads a nominal field from the wrong place where the nearest point
    is sought (it takes the mark for the row), so the row is found here. Titles enter as string
    literals; the values are read from the data.
    """
    x_kind, y_kind = figure.x.kind, figure.y.kind
    parts: list[tuple[str, str, AxisKind]] = []
    if "label" in present and not figure.is_horizontal():
        parts.append((figure.naming, "label", "category"))
    if any(layer.series for layer in figure.layers):
        parts.append(("Series", "series", "category"))
    parts.append((figure.x.title or "x", "x", x_kind))
    if figure.y.shown:
        parts.append((figure.y.title or ("Row" if y_kind == "category" else "y"), "y", y_kind))
    if "lo" in present:
        bars = any(layer.mark is Mark.BARS for layer in figure.layers)
        along = x_kind if figure.is_horizontal() or bars else y_kind
        parts += [("From", "lo", along), ("To", "hi", along)]
    more = [(title, f"more{number}") for number, title in enumerate(_hover_titles(figure))]
    parts += [(title, field, "number") for title, field in more if field in present]
    titles = distinct([title for title, _, _ in parts], 48)
    titled = zip(titles, parts, strict=True)
    return (
        "{"
        + ", ".join(f"{json.dumps(t)}: {_format_expression(f, k)}" for t, (_, f, k) in titled)
        + "}"
    )


def _format_expression(field: str, kind: AxisKind) -> str:
    """A Vega expression that writes one field of a row, empty where it is missing."""
    value = f"(datum.datum ? datum.datum.{field} : datum.{field})"
    if kind == "category":
        return f"isValid({value}) ? {value} : ''"
    if kind == "time":
        return f"isValid({value}) ? utcFormat({value}, '%Y-%m-%d %H:%M') : ''"
    return f"isValid({value}) ? format({value}, '{_FORMATS[kind]}') : ''"
