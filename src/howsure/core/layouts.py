"""How a curve or a table is shown, as a topic says it: its question, how to read it, its axes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from howsure.core.arrays import FloatArray
    from howsure.core.records import Table

AxisKind = Literal["number", "percent", "time", "category"]
TableFigure = Literal["", "cover", "parts", "skill", "differences", "leaves", "map", "intervals"]
UNIT = (0.0, 1.0)


class Mark(StrEnum):
    """How a layer is drawn."""

    LINE = "line"
    STEP = "step"
    BAND = "band"
    POINTS = "points"
    INTERVALS = "intervals"
    BARS = "bars"
    RULE = "rule"
    ZONE = "zone"
    TEXT = "text"


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """One axis of a figure.

    Attributes
    ----------
    title : str
        What it measures, with units.
    kind : {"number", "percent", "time", "category"}
        ``percent`` shows fractions as percentages; ``time`` takes seconds since 1970 (UTC);
        ``category`` takes positions 0, 1, … into `categories`.
    domain : (float, float), optional
        The range to show; the data's own where absent.
    zero : bool
        Whether a range taken from the data must reach zero.
    categories : tuple of str
        Names of the positions of a category axis, all different.
    clamp : bool
        Whether what lies beyond `domain` is drawn at its end.
    shown : bool
        Whether it is drawn.
    labelled : bool
        Whether its numbers are shown; ranks of rows tell a reader nothing.
    """

    title: str = ""
    kind: AxisKind = "number"
    domain: tuple[float, float] | None = None
    zero: bool = False
    categories: tuple[str, ...] = ()
    clamp: bool = False
    shown: bool = True
    labelled: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Companion:
    """A curve that stands behind another.

    Attributes
    ----------
    words : str
        What it is.
    dashed : bool
        Whether it is drawn like a reference, not fainter.
    crowd : bool
        Whether it is drawn even where the figure shows several curves.
    """

    words: str
    dashed: bool = False
    crowd: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Zone:
    """A range of y that a figure shades over its whole width."""

    of: str  # what y is, in words
    ends: tuple[float, float]  # its ends, unless a curve tells others
    curve: str  # the curve whose y go from one end of it to the other


@dataclass(frozen=True, slots=True, kw_only=True)
class TableLayout:
    """How a table is listed and drawn.

    Attributes
    ----------
    title : str
        It above the rows; the table's name in words, if omitted.
    listed : bool
        Whether a page lists the rows; else it shows them as figures or pictures alone.
    ranks : callable, optional
        Of a table a number for each row, the lowest for the worst, which is listed first; rows
        stay in their order, if omitted.
    columns : mapping of str to str, optional
        Of rows of the input, the titles of columns that are ours; all others keep their names.
    figure : {"", "cover", "parts", "skill", "differences", "leaves", "map", "intervals"}
        What it is drawn as; empty where it is not.
    curve : str
        A curve that shows the same: where it is, the table is drawn beside others of its kind
        alone.
    """

    title: str = ""
    listed: bool = True
    ranks: Callable[[Table], FloatArray] | None = None
    columns: Mapping[str, str] | None = None
    figure: TableFigure = ""
    curve: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """The words and habits of one kind of curve.

    Attributes
    ----------
    order : int
        Its place in a report.
    question, title, reading : str
        As in `Figure`.
    section : str
        Label of the section of the page where it stands; that of its topic, if omitted.
    banded : str
        What the reading adds where bands are drawn.
    x, y : Axis
        Axes; a curve's own axis titles win over these.
    mark : Mark
        How the curve itself is drawn; a curve with ``step`` set is a step all the same.
    data, reference : str
        What the curve and its reference are, in words; a model's name wins over the first.
    band_about : {"reference", "curve"}
        What the band surrounds.
    band : str
        What the band is, where the curve does not say.
    companions : mapping of str to Companion
        Other curves to draw behind this one, by name.
    points : (str, str, str), optional
        A table whose rows are marks on this figure: its name, its columns for x and for y.
    zone : Zone, optional
        A range of a percent y axis to shade.
    fits_curve : bool
        Whether the y range follows the curves alone, and cuts bands that reach past it.
    square : bool
        Whether both axes have one length, as diagrams with a diagonal do.
    read_at : float, optional
        The x whose y is told to a reader who does not see the figure; that of the farthest
        departure from the reference, if omitted.
    folded : bool
        Whether a page shows it only to who asks for more of its section.
    tail : float
        Share of the fall in y whose x range may be cut off when it would fill most of the figure.
    """

    order: int
    question: str
    title: str
    reading: str = ""
    section: str = ""
    banded: str = ""
    x: Axis = field(default_factory=Axis)
    y: Axis = field(default_factory=Axis)
    mark: Mark = Mark.LINE
    data: str = "observed"
    reference: str = "reference"
    band_about: Literal["reference", "curve"] = "curve"
    band: str = "band"
    companions: dict[str, Companion] = field(default_factory=dict)
    points: tuple[str, str, str] | None = None
    zone: Zone | None = None
    tail: float = 0.0
    fits_curve: bool = False
    square: bool = False
    read_at: float | None = None
    folded: bool = False
