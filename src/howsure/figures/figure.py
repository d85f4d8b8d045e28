"""A `Figure`: what a plot says, as layers of data. No plotting library is known here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Literal

import numpy as np

from howsure.core.arrays import FloatArray
from howsure.core.classes import frozen
from howsure.core.records import Axis as Axis
from howsure.core.records import AxisKind as AxisKind
from howsure.core.records import Mark as Mark
from howsure.core.records import ResultTable
from howsure.core.text import one_line

# Below 0, where no index of a palette is.
REFERENCE = -1
"""Colour index of what the data are judged against, drawn in a neutral grey."""
# The same.
HIGHLIGHT = -2
"""Colour index of what the reader must see first: groups that are let down."""


def _nothing() -> FloatArray:
    return np.zeros(0)


@frozen(kw_only=True)
class Shades:
    """What the colours of shaded marks measure, in classes of one width from faint to strong.

    Attributes
    ----------
    title : str
        What they measure.
    edges : tuple of float
        Rising ends of the classes, one more than there are classes.

    Examples
    --------
    >>> Shades(title="CCE", edges=(0.0, 0.1, 0.2)).classes
    2
    """

    title: str
    edges: tuple[float, ...]

    @property
    def classes(self) -> int:
        """How many classes there are."""
        return len(self.edges) - 1


@frozen(kw_only=True, eq=False)
class Layer:
    """Marks of one kind that belong to one series.

    Attributes
    ----------
    mark : Mark
        How they are drawn. A step holds each value until the next x. A rule has only one of
        x (vertical) and y (horizontal). A bar reaches from zero to y, between `lower` and
        `upper` on the x axis. A zone fills the figure's width from `lower` to `upper`. A text
        is a label at x and y.
    x, y : ndarray of float, shape (k,)
        Positions; empty where the mark needs none.
    lower, upper : ndarray of float, shape (k,)
        Empty, or the ends of a band or an interval: along y, or along x where the y axis holds
        categories or an interval has no x. For bars, the ends of each bar on the x axis.
    series : str
        What the marks are, for the legend and the hover text.
    colour : int
        Index into the palette, or `REFERENCE` or `HIGHLIGHT`.
    labels : tuple of str
        The name of each mark (a row, a group), for the hover text; what a text says.
    faint : bool
        Whether it stands behind the others: thinner, dotted; intervals are paler.
    listed : bool
        Whether the legend names its series.
    shape : int, optional
        Index of the shape of points; that of the colour where absent.
    size : float
        Area of points, or thickness of intervals, as a multiple of the usual one.
    anchor : {"start", "middle", "end"}
        Which part of a text stands at x.
    shade : ndarray of float, shape (k,)
        Empty, or numbers that colour the points by the figure's `Shades`.
    hover : mapping of str to ndarray of float, shape (k,)
        Further numbers of each mark for the hover text, by their titles.
    offset : float
        Shift along a category axis, as a share of a row: models stand below one another.
    """

    mark: Mark
    x: FloatArray = field(default_factory=_nothing)
    y: FloatArray = field(default_factory=_nothing)
    lower: FloatArray = field(default_factory=_nothing)
    upper: FloatArray = field(default_factory=_nothing)
    series: str = ""
    colour: int = 0
    labels: tuple[str, ...] = ()
    faint: bool = False
    listed: bool = True
    shape: int | None = None
    size: float = 1.0
    anchor: Literal["start", "middle", "end"] = "middle"
    shade: FloatArray = field(default_factory=_nothing)
    hover: Mapping[str, FloatArray] = field(default_factory=dict)
    offset: float = 0.0

    def __len__(self) -> int:
        return max(len(self.x), len(self.y), len(self.lower))

    @property
    def shaped(self) -> int:
        """Index of the shape of its points: a circle for what has no colour of its own."""
        return max(self.colour, 0) if self.shape is None else self.shape


@frozen(kw_only=True, eq=False)
class Figure:
    """A plot that answers one question.

    Attributes
    ----------
    name : str
        The curve's or the table's name.
    question : str
        What the reader wants to know.
    title : str
        What is drawn, in the field's words.
    reading : str
        How to read it, in a sentence or two.
    x, y : Axis
        Its axes.
    layers : tuple of Layer
        What is drawn, the hindmost first.
    notes : tuple of str
        What else the reader should know: what was left out, what the band is.
    shades : Shades, optional
        What the colours of its shaded layers measure.
    naming : str
        What the labels of points name.
    height : int
        Height of the drawing in pixels; by its kind where 0.
    label : str
        Which of several figures of one name it is, such as a model.
    square : bool
        Whether both axes are drawn with one length.
    finding : str
        What it shows, with its numbers, for a reader who does not see it; made of its layers by
        `howsure.figures.telling.told` where it is empty.

    Examples
    --------
    >>> line = Layer(mark=Mark.LINE, x=np.array([0.0, 1.0]), y=np.array([0.0, 0.9]), series="A")
    >>> figure = Figure(name="calibration", question="Do the levels hold?", layers=(line,))
    >>> [item.label for item in figure.legend()]
    ['A']
    """

    name: str
    question: str
    title: str = ""
    reading: str = ""
    x: Axis = field(default_factory=Axis)
    y: Axis = field(default_factory=Axis)
    layers: tuple[Layer, ...] = ()
    notes: tuple[str, ...] = ()
    shades: Shades | None = None
    naming: str = "Point"
    height: int = 0
    label: str = ""
    square: bool = False
    finding: str = ""

    def legend(self) -> tuple[LegendItem, ...]:
        """One item for each series, and for each kind of mark that is not its main one.

        Returns
        -------
        tuple of LegendItem
            Series first, then what they are judged against.
        """
        items: dict[str, LegendItem] = {}
        for layer in self.layers:
            if not layer.series or not layer.listed:
                continue
            present = items.get(layer.series)
            if present is None or _RANK[layer.mark] < _RANK[present.mark]:
                items[layer.series] = LegendItem(
                    label=layer.series,
                    mark=layer.mark,
                    colour=layer.colour,
                    faint=layer.faint,
                    shape=layer.shaped,
                )
        return tuple(
            sorted(
                items.values(),
                key=lambda item: (
                    item.colour == REFERENCE,
                    item.faint,
                    _RANK[item.mark] > _RANK[Mark.BARS],
                ),
            )
        )

    def is_horizontal(self) -> bool:
        """Whether the y axis holds categories, so that values lie along x."""
        return self.y.kind == "category"

    def lies_along_x(self, layer: Layer) -> bool:
        """Whether the ends of a band or an interval are places on the x axis."""
        return self.is_horizontal() or (layer.mark is Mark.INTERVALS and not len(layer.x))

    def lanes(self) -> int:
        """How many marks stand below one another in a row of a category axis."""
        return len({layer.offset for layer in self.layers if len(layer.y)}) or 1


@frozen(kw_only=True)
class LegendItem:
    """What one colour and mark mean."""

    label: str
    mark: Mark
    colour: int
    faint: bool = False
    shape: int = 0


_RANK = {mark: rank for rank, mark in enumerate((Mark.LINE, Mark.STEP, Mark.POINTS, Mark.BARS))}
_RANK |= {Mark.RULE: 4, Mark.BAND: 5, Mark.INTERVALS: 6, Mark.ZONE: 7, Mark.TEXT: 8}


def sample_points(x: FloatArray, limit: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Indices of at most `limit` points that keep the shape of a curve."""
    if len(x) <= limit:
        return np.arange(len(x))
    half = limit // 2
    by_rank = np.linspace(0, len(x) - 1, half).round().astype(np.int64)
    by_place = np.searchsorted(x, np.linspace(x[0], x[-1], half)).astype(np.int64)
    return np.unique(np.concatenate([by_rank, np.minimum(by_place, len(x) - 1)]))


# ---- columns of a table, as the figures need them ------------------------------------------------


def number(table: ResultTable, name: str) -> FloatArray | None:
    """A column of numbers; None where the table has none of this name."""
    column = table.columns.get(name)
    if column is None or column.dtype.kind not in "fiu":
        return None
    return column.astype(np.float64)


def texts(table: ResultTable, name: str, limit: int = 60) -> list[str]:
    """A column as short texts; empty ones where the table has none of this name."""
    column = table.columns.get(name)
    if column is None:
        return [""] * len(table)
    return ["" if text is None else one_line(text, limit) for text in column.tolist()]


def of_model(table: ResultTable) -> str:
    """The table's model in brackets, to end a title with; empty where it has none."""
    return f" ({one_line(table.model, 60)})" if table.model else ""
