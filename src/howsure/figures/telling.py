"""What a figure shows, in a sentence with its numbers, for a reader who does not see it."""

from __future__ import annotations

from datetime import UTC, datetime

import numpy as np

from howsure.core import formats
from howsure.core.arrays import BoolArray, FloatArray
from howsure.core.records import Layout
from howsure.figures.figure import REFERENCE, Axis, Figure, Layer, Mark

# A description that is read aloud must end.
MAX_SERIES_TOLD = 4
"""The most series that are told one by one."""
_LINES = (Mark.LINE, Mark.STEP)
# A departure from a reference, as a share of the range of y, that is none but rounding.
_RELATIVE_ROUNDING = 1e-9


def describe_figure(figure: Figure, layout: Layout | None = None) -> str:
    """What a figure shows: its own sentence, else one made of what is drawn.

    The layout of a curve says what judges it, and where it is read.
    """
    if figure.finding:
        return figure.finding
    if figure.is_horizontal():
        parts = _rows_told(figure)
    else:
        parts = [*_lines_told(figure, layout), *_bars_told(figure)]
        parts += _inside_told(figure) or ([] if parts else _points_told(figure))
    shown = parts[:MAX_SERIES_TOLD]
    if len(parts) > len(shown):
        shown.append(f"{len(parts) - len(shown)} more in the table")
    return f"{'; '.join(shown)}." if shown else "It shows 0 values."


def _rows_told(figure: Figure) -> list[str]:
    """Of each series of a dot plot, its lowest and its highest row; then what they are against."""
    places: dict[str, list[tuple[float, str]]] = {}
    for layer in figure.layers:
        if layer.mark is not Mark.POINTS or not len(layer.x):
            continue
        rows = [
            (float(x), figure.y.categories[int(y)]) for x, y in zip(layer.x, layer.y, strict=True)
        ]
        places.setdefault(layer.series, []).extend(rows)
    parts = []
    for series, rows in places.items():
        ends = [f"{_value(x, figure.x)} ({name})" for x, name in (min(rows), max(rows))]
        values = ends[0] if len(rows) == 1 else f"from {ends[0]} to {ends[1]}"
        parts.append(f"{series or figure.title} ({len(rows):,}): {_with_title(figure.x)}{values}")
    return parts and [*parts, *_rules_told(figure)]


def _rules_told(figure: Figure) -> list[str]:
    """Lines across a figure, at places on x."""
    rules = [layer for layer in figure.layers if layer.mark is Mark.RULE and len(layer.x)]
    return [_valued(rule.series, float(rule.x[0]), figure.x, "{} {}") for rule in rules]


def _valued(words: str, value: float, axis: Axis, form: str = "{} ({})") -> str:
    """What something is called with its value, unless its name tells that."""
    number = _value(value, axis)
    return words if number in words else form.format(words, number)


def _lines_told(figure: Figure, layout: Layout | None) -> list[str]:
    """Of each line, where it is read or lies farthest from what judges it; else its ends."""
    parts = []
    lines = _data(figure, _LINES)
    for layer in lines:
        head = f"{layer.series}: " if len(lines) > 1 else ""
        head += _with_title(figure.y, first=len(lines) == 1)
        judged = _reference(figure, layer, layout)
        if judged is None or not np.isfinite(layer.y - judged[1]).any():
            first, last = _point(figure, layer, 0), _point(figure, layer, len(layer.x) - 1)
            parts.append(f"{head}goes from {first} to {last}")
            continue
        reference, expected = judged
        bars = layout is not None and layout.mark is Mark.BARS  # an outline repeats its last
        departures = (layer.y - expected)[: len(layer.x) - bars]
        if layout is not None and layout.read_at is not None:
            point, words = int(np.argmin(np.abs(layer.x - layout.read_at))), "against"
        else:
            point, words = int(np.nanargmax(np.abs(departures))), "farthest from"
        parts.append(
            f"{head}{_point(figure, layer, point)}, {words} "
            f"{_valued(reference, float(expected[point]), figure.y)}; {_side(departures, layer.y)}"
            f"{_beyond(figure, layer, expected, len(departures))}"
        )
    return parts


def _side(departures: FloatArray, y: FloatArray, reference: str = "it") -> str:
    """On which side of a reference a line lies, and how often."""
    slack = _RELATIVE_ROUNDING * (float(np.ptp(y)) or 1.0)
    above, below = int((departures > slack).sum()), int((departures < -slack).sum())
    if not above and not below:
        return f"always on {reference}"
    if not above or not below:
        return f"never {'below' if above else 'above'} {reference}"
    word, count = ("above", above) if above > below else ("below", below)
    return f"{word} {reference} at {count} of {len(departures)} points"


def _beyond(figure: Figure, layer: Layer, expected: FloatArray, count: int) -> str:
    """At how many points chance does not explain a departure, where there is a band."""
    if len(layer.lower) == len(layer.x):
        outside: BoolArray = (expected < layer.lower) | (expected > layer.upper)
        return f", outside its interval at {int(outside[:count].sum())} of {count}"
    bands = [
        layer_drawn
        for layer_drawn in figure.layers
        if layer_drawn.mark is Mark.BAND and layer_drawn.colour in (REFERENCE, layer.colour)
    ]
    if not bands:
        return ""
    lower, upper = (_at(layer.x, bands[0].x, end) for end in (bands[0].lower, bands[0].upper))
    around = bool(((layer.y >= lower) & (layer.y <= upper)).all()) and bands[0].colour >= 0
    outside = expected < lower if around else layer.y < lower
    outside |= expected > upper if around else layer.y > upper
    words = "which is outside the band" if around else "outside the band"
    return f", {words} at {int(outside[:count].sum())} of {count}"


def _bars_told(figure: Figure) -> list[str]:
    """Of each histogram, its highest and its lowest bar, and how many leave the band."""
    parts = []
    bars = _data(figure, (Mark.BARS,))
    for layer in bars:
        highest, lowest = (
            f"{_value(layer.y[k], figure.y)} at {_with_title(figure.x)}"
            f"{_value(layer.lower[k], figure.x)} to {_value(layer.upper[k], figure.x)}"
            for k in (int(np.argmax(layer.y)), int(np.argmin(layer.y)))
        )
        head = f"{layer.series}: " if len(bars) > 1 else ""
        first = not (head or _data(figure, _LINES))
        text = f"{head}{_with_title(figure.y, first=first)}from {lowest} up to {highest}"
        judged = _reference(figure, layer, None)
        if judged is not None:
            text += f", against {_valued(judged[0], float(judged[1][0]), figure.y)}"
        for band in (drawn for drawn in figure.layers if drawn.mark is Mark.BAND):
            position = np.clip(np.searchsorted(band.x, layer.x, "right") - 1, 0, len(band.x) - 1)
            outside = (layer.y < band.lower[position]) | (layer.y > band.upper[position])
            text += f", outside the band at {int(outside.sum())} of {len(layer.y)}"
        parts.append(text)
    return parts and [*parts, *_rules_told(figure)]


def _inside_told(figure: Figure) -> list[str]:
    """How many of the points lie inside each band of a model."""
    points = [drawn for drawn in figure.layers if drawn.mark is Mark.POINTS and len(drawn.y)]
    bands = [
        drawn for drawn in figure.layers if drawn.mark is Mark.BAND and drawn.colour != REFERENCE
    ]
    if not points or any(layer.mark in _LINES and len(layer.lower) for layer in figure.layers):
        return []
    x, y = (np.concatenate([getattr(point, axis) for point in points]) for axis in ("x", "y"))
    parts = []
    for band in bands:
        lower, upper = _at(x, band.x, band.lower), _at(x, band.x, band.upper)
        count = int(((y >= lower) & (y <= upper)).sum())
        share = formats.percent(count / len(x))
        parts.append(f"{band.series}: {count:,} of {len(x):,} points inside ({share})")
    return parts


def _points_told(figure: Figure) -> list[str]:
    """Of each cloud of points, its ranges, and whether y rises with x."""
    parts = []
    clouds = _data(figure, (Mark.POINTS,))
    for layer in clouds:
        placed = np.flatnonzero(np.isfinite(layer.x) & np.isfinite(layer.y))
        head = f"{layer.series}: " if len(clouds) > 1 else ""
        if len(placed) < 2:
            at = placed.tolist()
            title = _with_title(figure.y, first=not head)
            parts += [f"{head}{title}{_point(figure, layer, k)}" for k in at]
            continue
        x, y = layer.x[placed], layer.y[placed]
        ranges = (
            f"{_with_title(axis)}{_value(values.min(), axis)} to {_value(values.max(), axis)}"
            for values, axis in ((y, figure.y), (x, figure.x))
        )
        text = f"{head}{len(placed):,} points, {', '.join(ranges)}"
        if len(placed) > 2 and np.ptp(x) > 0 and np.ptp(y) > 0:
            text += f", rank correlation {formats.fixed(_rank_correlation(x, y), 2)}"
        judged = _reference(figure, layer, None)
        if judged is not None:
            text += f", {_side(y - judged[1][placed], y, judged[0])}"
        parts.append(text)
    return parts


def _rank_correlation(x: FloatArray, y: FloatArray) -> float:
    """Spearman's coefficient, ties by their mean rank."""
    ranks = []
    for values in (x, y):
        _, places, counts = np.unique(values, return_inverse=True, return_counts=True)
        ranks.append((np.cumsum(counts) - (counts - 1) / 2)[places])
    return float(np.corrcoef(ranks[0], ranks[1])[0, 1])


def _data(figure: Figure, marks: tuple[Mark, ...]) -> list[Layer]:
    """Layers that show what was seen, not what it is judged by."""
    placed = [
        layer for layer in figure.layers if layer.mark in marks and len(layer.x) and len(layer.y)
    ]
    return [drawn for drawn in placed if drawn.colour != REFERENCE and not drawn.faint] or [
        drawn for drawn in placed if drawn.mark is Mark.POINTS
    ]


def _reference(
    figure: Figure, layer: Layer, layout: Layout | None
) -> tuple[str, FloatArray] | None:
    """What judges a series, and its values at the places of the series."""
    reference = "" if layout is None else layout.reference
    own_reference = f"{reference} · {layer.series}"
    for other in figure.layers:
        shared = other.colour == REFERENCE and other.series.startswith(reference)
        if other is layer or not len(other.y) or not (shared or other.series == own_reference):
            continue
        words = other.series.removesuffix(own_reference) or reference
        if other.mark is Mark.RULE:
            return words, np.full(len(layer.x), other.y[0])
        if other.mark in _LINES and len(other.x) == len(other.y):
            return words, _at(layer.x, other.x, other.y, step=other.mark is Mark.STEP)
    return None


def _at(x: FloatArray, places: FloatArray, values: FloatArray, *, step: bool = False) -> FloatArray:
    """The values of a line at x."""
    order = np.argsort(places, kind="stable")
    places, values = places[order], values[order]
    if step:
        last = np.searchsorted(places, x, side="right") - 1
        return values[np.clip(last, 0, len(places) - 1)]
    return np.asarray(np.interp(x, places, values))


def _point(figure: Figure, layer: Layer, point: int) -> str:
    """The value of a mark with its interval, and where on x it stands."""
    value = _value(layer.y[point], figure.y)
    if len(layer.lower) == len(layer.y) and np.isfinite(layer.lower[point]):
        ends = (_value(end[point], figure.y) for end in (layer.lower, layer.upper))
        value += f" ({' to '.join(ends)})"
    return f"{value} at {_with_title(figure.x)}{_value(layer.x[point], figure.x)}"


def _with_title(axis: Axis, *, first: bool = False) -> str:
    """The title of an axis inside a sentence, or `first` in it, before a number."""
    title = axis.title
    if not first and title[1:2].islower():
        title = title[0].lower() + title[1:]
    return f"{title} " if title else ""


def _value(value: float, axis: Axis) -> str:
    """A number as its axis shows it."""
    if axis.kind == "percent":
        return formats.percent(float(value))
    if axis.kind == "time" and np.isfinite(value):
        return datetime.fromtimestamp(float(value), UTC).isoformat(" ", "minutes")[:16]
    return formats.number(float(value), 3)
