"""Figure → matplotlib Axes. Nothing global is touched."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import numpy as np

from howsure.core.arrays import FloatArray
from howsure.core.errors import InputError
from howsure.core.optional import require
from howsure.core.records import Curve, ResultTable
from howsure.figures.build import figures_of
from howsure.figures.figure import Axis, Figure, Layer, Mark, Shades
from howsure.figures.palette import LIGHT, MPL_SHAPES, dash_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# A label of 44 characters takes half the width of a figure. By eye.
MAX_CHARACTERS = 44
# Points between a mark and its label, by side: so that they do not touch.
_ALIGNMENT = {"start": ("left", 3), "middle": ("center", 0), "end": ("right", -3)}


def draw(figure: Figure, ax: Axes | None = None) -> Axes:
    """Draw a figure."""
    if ax is None:
        pyplot = require("matplotlib.pyplot", extra="plots")
        rows = len(figure.y.categories)
        high = max(0.3, 0.12 * figure.lanes() + 0.12)
        plain = (6.0, figure.height / 80 or 4.5)
        size = (6.4, max(2.4, high * rows + 1.2)) if rows else plain
        ax = pyplot.subplots(figsize=size, layout="constrained")[1]
    for layer in figure.layers:
        _draw_layer(ax, figure, layer)
    ax.set_title(_plain(figure.title), loc="left")
    ax.grid(visible=True, axis="x" if figure.is_horizontal() else "both", color=LIGHT.grid)
    ax.set_axisbelow(True)
    if figure.square:
        ax.set_box_aspect(1.0)
    ax.spines[["top", "right"]].set_visible(False)
    _dress(ax, figure.x, "x")
    _dress(ax, figure.y, "y")
    for axis, spine, target in ((figure.x, "bottom", ax.xaxis), (figure.y, "left", ax.yaxis)):
        ax.spines[spine].set_visible(axis.shown)
        target.set_visible(axis.shown)
    if len(figure.legend()) > (figure.shades is None):
        handles, labels = ax.get_legend_handles_labels()
        drawn = dict(zip(labels, handles, strict=True))
        named = [name for item in figure.legend() if (name := _plain(item.label)) in drawn]
        short = [_short(name) for name in named]
        look: dict[str, Any] = {"frameon": False, "fontsize": "small"}
        if any(layer.mark is Mark.INTERVALS and layer.size > 4.0 for layer in figure.layers):
            look |= {"loc": "upper left", "bbox_to_anchor": (1.0, 1.0)}  # beside thick bars
        ax.legend([drawn[name] for name in named], short, **look)
    return ax


def _draw_layer(ax: Axes, figure: Figure, layer: Layer) -> None:
    colour = LIGHT.colour(layer.colour)
    label = (_plain(layer.series) or None) if layer.listed else None
    layer = _clamped(layer, figure.x)
    x, y = _places(layer.x, figure.x), layer.y + layer.offset
    reference = layer.colour < 0
    dash = dash_of(layer.colour, faint=layer.faint)
    line: dict[str, Any] = {
        "color": colour,
        "linewidth": 1.2 if reference or layer.faint else 1.8,
        "linestyle": (0, dash) if dash else "-",
    }
    match layer.mark:
        case Mark.LINE:
            ax.plot(x, layer.y, label=label, **line)
        case Mark.STEP:
            ax.step(x, layer.y, where="post", label=label, **line)
        case Mark.BAND:
            ax.fill_between(
                x, layer.lower, layer.upper, color=colour, alpha=0.16, linewidth=0, label=label
            )
        case Mark.POINTS if figure.shades is not None and len(layer.shade):
            _draw_shaded(ax, layer, figure.shades)
        case Mark.POINTS:
            shape = MPL_SHAPES[layer.shaped % len(MPL_SHAPES)]
            look: dict[str, Any] = {"markeredgecolor": "white", "markeredgewidth": 0.6}
            look |= {"markersize": 6.0 * layer.size**0.5, "clip_on": not figure.x.clamp}
            ax.plot(x, y, shape, color=colour, label=label, zorder=3, **look)
        case Mark.INTERVALS:
            along_x = figure.lies_along_x(layer)
            lines, place = (ax.hlines, y) if along_x else (ax.vlines, x)
            look = {"linewidth": 1.4 * layer.size, "alpha": 0.35 if layer.faint else 0.75}
            if all(
                other.mark is layer.mark for other in figure.layers if other.series == layer.series
            ):
                look["label"] = label
            lines(place, layer.lower, layer.upper, color=colour, **look)
        case Mark.BARS:
            width = layer.upper - layer.lower
            ax.bar(
                layer.lower,
                layer.y,
                width,
                align="edge",
                color=colour,
                alpha=0.55,
                edgecolor="white",
                label=label,
            )
        case Mark.RULE:
            for place in x:
                ax.axvline(place, label=label, **line)
            for place in layer.y:
                ax.axhline(place, label=label, **line)
        case Mark.ZONE:
            for lower, upper in zip(layer.lower, layer.upper, strict=True):
                ax.axhspan(lower, upper, color=colour, alpha=0.1, linewidth=0, label=label)
        case Mark.TEXT:
            ink = colour if reference else LIGHT.ink
            for left, height, words in zip(x, layer.y, layer.labels, strict=True):
                side, away = _ALIGNMENT[layer.anchor]
                ax.annotate(
                    _plain(words),
                    (left, height),
                    (away, 0),
                    textcoords="offset points",
                    annotation_clip=False,
                    color=ink,
                    fontsize="small",
                    ha=side,
                    va="center",
                )


def _draw_shaded(ax: Axes, layer: Layer, shades: Shades) -> None:
    """Points coloured by a number, with a bar that tells the classes."""
    colours = require("matplotlib.colors", extra="plots")
    points = ax.scatter(
        layer.x,
        layer.y,
        c=layer.shade,
        s=16,
        cmap=colours.ListedColormap(LIGHT.shades(shades.classes)),
        norm=colours.BoundaryNorm(shades.edges, shades.classes),
        linewidths=0.0,
        zorder=3,
    )
    figure = ax.get_figure()
    assert figure is not None
    figure.colorbar(points, ax=ax, label=_plain(shades.title), ticks=list(shades.edges))


def _clamped(layer: Layer, axis: Axis) -> Layer:
    """The layer with what lies beyond a clamped x axis brought to its ends."""
    if not axis.clamp or axis.domain is None:
        return layer
    parts = (layer.x, layer.lower, layer.upper)
    x, lower, upper = (np.clip(values, *axis.domain) for values in parts)
    return replace(layer, x=x, lower=lower, upper=upper)


def _places(x: FloatArray, axis: Axis) -> Any:
    if axis.kind != "time":
        return x
    return np.array([datetime.fromtimestamp(second, UTC) for second in x.tolist()])


def _dress(ax: Axes, axis: Axis, which: str) -> None:
    """Set the title, the range and the tick labels of one axis."""
    target = ax.xaxis if which == "x" else ax.yaxis
    target.set_label_text(_plain(axis.title))
    set_limits = ax.set_xlim if which == "x" else ax.set_ylim
    if axis.kind == "category":
        shown = [_plain(_short(name)) for name in axis.categories]
        target.set_ticks(range(len(shown)), labels=shown)
        set_limits(len(shown) - 0.5, -0.5)
        return
    if not axis.labelled:
        target.set_ticks([])
    elif axis.kind == "percent":
        ticker = require("matplotlib.ticker", extra="plots")
        target.set_major_formatter(ticker.PercentFormatter(1.0, decimals=None))
    if axis.domain is not None:
        set_limits(*axis.domain)
    elif axis.zero:
        low, high = ax.get_xlim() if which == "x" else ax.get_ylim()
        least = ax.dataLim.x0 if which == "x" else ax.dataLim.y0
        set_limits(0.0 if least >= 0 else low, max(high, 0.0))


def _short(text: str) -> str:
    """Text of a length that leaves room for the drawing."""
    return text if len(text) <= MAX_CHARACTERS else text[: MAX_CHARACTERS - 1] + "…"


def _plain(text: str) -> str:
    """Text without the dollar signs and underscores that matplotlib would take as mathematics."""
    return text.replace("$", r"\$").lstrip("_")


# ---- curves and tables drawn with matplotlib -----------------------------------------------------


def plot(
    item_or_items: Curve | ResultTable | Figure | Iterable[Curve | ResultTable],
    ax: Axes | None = None,
) -> Axes:
    """Draw a curve, a table or several curves of one name with matplotlib.

    Parameters
    ----------
    item_or_items : Curve, ResultTable, Figure or iterable of Curve and ResultTable
        What to draw; together they must make one figure.
    ax : matplotlib Axes, optional
        Where to draw; new axes where absent.

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    InputError
        If the items make no figure, or more than one.
    MissingDependencyError
        If matplotlib is not installed.

    Examples
    --------
    >>> import numpy as np
    >>> levels = np.linspace(0, 1, 5)
    >>> axes = plot(Curve(name="calibration", x=levels, y=levels, reference=levels))
    >>> axes.get_xlabel()
    'Nominal level'
    """
    if isinstance(item_or_items, Figure):
        return draw(item_or_items, ax)
    if isinstance(item_or_items, Curve | ResultTable):
        item_or_items = (item_or_items,)
    items = tuple(item_or_items)
    figures = figures_of(
        [item for item in items if not isinstance(item, ResultTable)],
        [item for item in items if isinstance(item, ResultTable)],
    )
    if len(figures) != 1:
        names = ", ".join(f"{figure.name} {figure.label}".strip() for figure in figures) or "none"
        raise InputError(f"item_or_items must make one figure, got {len(figures)} ({names})")
    return draw(figures[0], ax)
