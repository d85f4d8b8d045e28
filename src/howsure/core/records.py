"""What every measure returns, a `Record`, a `Curve` or a `ResultTable`, and how a curve is drawn.

A report is drawn from these three alone, and a store keeps them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import field, fields
from enum import StrEnum
from typing import Any, Literal, Self

from howsure.core.arrays import AnyArray, FloatArray
from howsure.core.classes import frozen
from howsure.core.convert import json_number, plain


class Direction(StrEnum):
    """Which values of a measure are better."""

    LOWER = "lower is better"
    HIGHER = "higher is better"
    TARGET = "closer to the target is better"
    NONE = "descriptive"


class Notion(StrEnum):
    """What a measure tests: over all rows, in groups, near a point, or at a point."""

    MARGINAL = "marginal"
    GROUP = "group"
    LOCAL = "local"
    POINTWISE = "pointwise"


@frozen(kw_only=True)
class Record:
    """One number, with all that is needed to judge it.

    Attributes
    ----------
    metric : str
        Name in the catalogue.
    value : float
        The number; NaN where it cannot be computed, and then `reason` says why.
    standard_error : float
        Its sampling standard error; NaN where none is known.
    lower, upper : float
        Its confidence interval at `confidence`.
    confidence : float
        Nominal confidence of the interval.
    n : float
        Rows behind the number (Kish's effective number for importance weights).
    direction, units, notion
        Which way is better, the units, and the notion tested.
    target : float
        The value of a perfect model; NaN where it depends on the data.
    null : float
        The value expected of a perfect model *at this n*, where that differs from `target`.
    null_lower, null_upper : float
        Ends of the range that a perfect model keeps to; one is NaN where it is one-sided.
    p : float
        Probability that a perfect model departs as far.
    coverage : float
        The nominal coverage that the number belongs to; NaN where none.
    model : str
        Which model's predictions.
    group : str
        Which group of rows, as ``column=value``; empty for all rows.
    source : str
        Which prediction answered: ``intervals``, ``distribution``, …
    reason : str
        Why the number is missing, or what limits it.
    options : mapping
        The choices that decided the number.
    exact : {"rows", "histogram", "sample"}
        What the number was computed of: all rows, a histogram of all of them, or the `n` rows of
        a sample.
    added_error : float
        What a histogram or a sample adds to the error: a bound, or a standard error.
    """

    metric: str
    value: float
    standard_error: float = math.nan
    lower: float = math.nan
    upper: float = math.nan
    confidence: float = 0.95
    n: float = 0.0
    direction: Direction = field(default=Direction.NONE, repr=False)  # as its metric has it
    units: str = "1"
    notion: Notion = Notion.MARGINAL
    target: float = math.nan
    null: float = math.nan
    null_lower: float = math.nan
    null_upper: float = math.nan
    p: float = math.nan
    coverage: float = math.nan
    model: str = ""
    group: str = ""
    source: str = ""
    reason: str = ""
    options: Mapping[str, str | float] = field(default_factory=dict)
    exact: Literal["rows", "histogram", "sample"] = "rows"
    added_error: float = 0.0

    @property
    def key(self) -> Key:
        """Its measure and coverage."""
        return Key.of(self.metric, self.coverage)

    def as_dict(self) -> dict[str, Any]:
        """The record as plain values, NaN as None, for JSON and tables.

        Examples
        --------
        >>> Record(metric="mae", value=1.5, units="y").as_dict()["value"]
        1.5
        """
        names = (attribute.name for attribute in fields(self))
        return {name: plain(getattr(self, name), json_number, str) for name in names}


@frozen
class Key:
    """Which number a record is: a measure at a coverage, or at none.

    Examples
    --------
    >>> Key.of("mae", math.nan) == Key.of("mae", math.nan), Key.of("misses", 0.9).at
    (True, 0.9)
    """

    metric: str
    coverage: float | None = None

    @classmethod
    def of(cls, metric: str, coverage: float) -> Self:
        """The key of a coverage that is NaN where there is none, and so no number's equal."""
        return cls(metric, None if math.isnan(coverage) else float(coverage))

    @property
    def at(self) -> float:
        """The coverage; NaN where there is none."""
        return math.nan if self.coverage is None else self.coverage

    def __str__(self) -> str:
        return self.metric if self.coverage is None else f"{self.metric} {self.coverage:g}"


@frozen(kw_only=True, eq=False)
class Curve:
    """A trade-off or a profile: y against x, with a band and what it is judged against.

    Attributes
    ----------
    name : str
        What the curve is, in the catalogue's words.
    x, y : ndarray of float, shape (k,)
        Its points.
    lower, upper : ndarray of float, shape (k,), optional
        A band about the curve, or about the reference (see `band`).
    reference : ndarray of float, shape (k,), optional
        What a perfect (or a constant) model would show at the same x.
    x_label, y_label : str
        Axis titles, with units.
    band : str
        What the band is, in words.
    model, group : str
        As in `Record`.
    step : bool
        Whether the curve is constant between its points.
    area : float
        Area under it, where that means something.
    notes : str
        One sentence for the reader.
    hover : mapping of str to ndarray of float, shape (k,)
        Further numbers of each point, by name, to show where a reader points at it.
    """

    name: str
    x: FloatArray
    y: FloatArray
    lower: FloatArray | None = None
    upper: FloatArray | None = None
    reference: FloatArray | None = None
    x_label: str = ""
    y_label: str = ""
    band: str = ""
    model: str = ""
    group: str = ""
    step: bool = False
    area: float = math.nan
    notes: str = ""
    hover: Mapping[str, FloatArray] = field(default_factory=dict)


@frozen(kw_only=True, eq=False)
class ResultTable:
    """A small table: the worst rows, groups with their tests, a map.

    Attributes
    ----------
    name : str
        What the table is.
    columns : mapping of str to array of shape (k,)
        Columns of one length, in order. One called ``row`` names single rows of the data, and one
        called ``n`` or ``rows`` says of how many a line is: by these `no_rows` leaves out.
    labels : mapping of str to str
        A title for each column that needs one.
    model : str
        As in `Record`.
    notes : str
        One sentence for the reader.
    """

    name: str
    columns: Mapping[str, AnyArray]
    labels: Mapping[str, str] = field(default_factory=dict)
    model: str = ""
    notes: str = ""

    def __len__(self) -> int:
        return len(next(iter(self.columns.values()))) if self.columns else 0


# ---- how curves and tables are shown, as a topic says it: question, how to read them, axes -------

AxisKind = Literal["number", "percent", "time", "category"]
TableFigure = Literal["", "cover", "parts", "skill", "differences", "leaves", "map", "intervals"]
# Of shares.
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


@frozen(kw_only=True)
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
        Whether its numbers are shown; ranks of rows do not inform a reader.
    """

    title: str = ""
    kind: AxisKind = "number"
    domain: tuple[float, float] | None = None
    zero: bool = False
    categories: tuple[str, ...] = ()
    clamp: bool = False
    shown: bool = True
    labelled: bool = True


@frozen(kw_only=True)
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


@frozen(kw_only=True)
class Zone:
    """A range of y that a figure shades over its whole width."""

    of: str  # what y is, in words
    ends: tuple[float, float]  # its ends, unless a curve tells others
    curve: str  # the curve whose y go from one end of it to the other


@frozen(kw_only=True)
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
    ranks: Callable[[ResultTable], FloatArray] | None = None
    columns: Mapping[str, str] | None = None
    figure: TableFigure = ""
    curve: str = ""


@frozen(kw_only=True)
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
        The x whose y is stated for a reader who does not see the figure; that of the farthest
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
