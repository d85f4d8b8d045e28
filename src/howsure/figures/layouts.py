"""How each known curve is drawn: its question, how to read it, its axes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from howsure.figures.figure import Axis, Mark
from howsure.metrics.catalogue import brought
from howsure.metrics.miss_range import MISS_RANGE

UNIT = (0.0, 1.0)


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
    """A range of y that a figure shades over its whole width.

    Attributes
    ----------
    of : str
        What y is, in words.
    ends : (float, float)
        Its ends, unless a curve tells others.
    curve : str
        The curve whose y go from one end of it to the other.
    """

    of: str
    ends: tuple[float, float]
    curve: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """The words and habits of one kind of curve.

    Attributes
    ----------
    order : int
        Its place in a report.
    question, title, reading : str
        As in `Figure`.
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
    tail : float
        Share of the fall in y whose x range may be cut off when it would fill most of the figure.
    """

    order: int
    question: str
    title: str
    reading: str = ""
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


INTERVALS_ORDER = -1
TABLE_ORDER = 8
MAP_ORDER = 9
PLAIN_ORDER = 10
"""Places in a report of intervals, dot plots, maps, and curves that have no layout."""

LAYOUTS: dict[str, Layout] = {
    "calibration": Layout(
        order=0,
        question="Does y fall below each predicted quantile as often as it should?",
        title="Reliability diagram (calibration curve)",
        reading=(
            "On the diagonal, y falls below each predicted quantile as often as its level says. "
            "A departure inside the shaded band may be chance."
        ),
        x=Axis(title="Nominal level", kind="percent", domain=UNIT),
        y=Axis(title="Observed frequency", kind="percent", domain=UNIT),
        square=True,
        reference="perfect calibration",
        band_about="reference",
        band="simultaneous band",
    ),
    "interval_calibration": Layout(
        order=1,
        question="Do intervals cover as often as they claim?",
        title="Interval calibration",
        reading="Below the diagonal the intervals under-cover; above it they over-cover.",
        banded="Where a shaded band contains the diagonal, the difference may be chance.",
        x=Axis(title="Nominal coverage", kind="percent", domain=UNIT),
        y=Axis(title="Empirical coverage", kind="percent", domain=UNIT),
        reference="perfect calibration",
        band="interval",
        square=True,
    ),
    "pit_ecdf": Layout(
        order=2,
        question="Is the PIT uniform?",
        title="PIT ECDF, difference from uniform",
        reading=(
            "A curve inside the shaded band is consistent with calibration. "
            "Above then below zero means predictive distributions too narrow, below then above "
            "too wide, one side biased."
        ),
        x=Axis(title="PIT", domain=UNIT),
        y=Axis(title="ECDF − uniform"),
        reference="uniform",
        band_about="reference",
        band="simultaneous band",
    ),
    "pit_histogram": Layout(
        order=3,
        question="What shape does the PIT have?",
        title="PIT histogram",
        reading=(
            "A flat histogram is calibrated. A U shape means predictive distributions too narrow, "
            "a hump too wide, a slope biased."
        ),
        x=Axis(title="PIT", domain=UNIT),
        y=Axis(title="Density", zero=True),
        mark=Mark.BARS,
        reference="uniform",
        band_about="reference",
        band="simultaneous band",
    ),
    "error_by_width": Layout(
        order=4,
        question="Are errors larger where the predicted uncertainty is?",
        title="Error by predicted uncertainty",
        reading=(
            "Each point is a bin of rows of similar uncertainty. "
            "Rising points mean that it tells easy rows from hard ones."
        ),
        x=Axis(title="Mean width", zero=True),
        y=Axis(title="Mean |error|", zero=True),
        mark=Mark.POINTS,
        data="bins of rows",
        reference="ideal",
        band="interval",
    ),
    "risk_coverage": Layout(
        order=5,
        question="Does keeping only the most certain rows lower the error?",
        title="Risk–coverage curve",
        reading=(
            "Rows are kept from the most certain on. "
            "The further the curve lies below random order, the better uncertainty ranks errors."
        ),
        x=Axis(title="Prediction rate", kind="percent", domain=UNIT),
        y=Axis(title="Mean |error| of the rows kept", zero=True),
        data="most certain first",
        reference="random order",
        band="band",
        fits_curve=True,
        companions={"risk_coverage_oracle": Companion(words="oracle order")},
    ),
    "characteristic": Layout(
        order=6,
        question="What does a lower miss rate cost in width?",
        title="Uncertainty characteristics curve",
        reading=(
            "All intervals are scaled from nothing to wide enough for every row; lower is better. "
            "Where the constant band lies lower, varying widths do not pay."
        ),
        x=Axis(title="Mean half-width (bandwidth)", zero=True),
        y=Axis(title="Miss rate", kind="percent", domain=UNIT),
        data="the model's band",
        reference="constant band",
        companions={"characteristic_constant": Companion(words="constant band")},
        points=("characteristic_points", "bandwidth", "miss_rate"),
        zone=Zone(of="miss rate", ends=MISS_RANGE, curve="characteristic_part"),
        tail=0.01,
    ),
    "characteristic_deficit": Layout(
        order=7,
        question="Would scaling the intervals improve their score?",
        title="Half-width against deficit",
        reading=(
            "The interval score is the same all along the straight line, and worse above it. "
            "The curve touches the line at the scale that scores best."
        ),
        x=Axis(title="Mean half-width (bandwidth)", zero=True),
        y=Axis(title="Deficit", zero=True),
        data="the model's band",
        reference="constant band",
        companions={
            "characteristic_deficit_constant": Companion(words="constant band", crowd=False),
            "characteristic_isocost": Companion(words="equal interval score", dashed=True),
        },
        points=("characteristic_points", "bandwidth", "deficit"),
        tail=0.01,
    ),
    "local_pit": Layout(
        order=9,
        question="Where among the inputs is the PIT least uniform?",
        title="Local PIT, difference from uniform",
        reading=(
            "Each curve is the PIT in the part of the inputs where it departs most. "
            "Inside its shaded band it is consistent with calibration."
        ),
        x=Axis(title="PIT", domain=UNIT),
        y=Axis(title="ECDF − uniform"),
        reference="uniform",
        band_about="reference",
        band="simultaneous band",
    ),
    "rejection": Layout(
        order=10,
        question="Does it help to withhold suspect rows?",
        title="Rejection by CCE",
        reading=(
            "Rows are withheld from the highest CCE on. "
            "A curve below random order withholds the rows with the larger errors."
        ),
        x=Axis(title="Share of rows rejected", kind="percent", domain=UNIT),
        y=Axis(title="Mean |error| of the rows kept", zero=True),
        data="highest CCE first",
        reference="random order",
        companions={"rejection_oracle": Companion(words="oracle order")},
        fits_curve=True,
    ),
    "rejection_nll": Layout(
        order=11,
        question="Does it help the likelihood to withhold suspect rows?",
        title="Rejection by CCE, likelihood",
        reading=(
            "Rows are withheld from the highest CCE on. "
            "A curve below random order withholds the rows that were least likely."
        ),
        x=Axis(title="Share of rows rejected", kind="percent", domain=UNIT),
        y=Axis(title="Mean NLL of the rows kept"),
        data="highest CCE first",
        reference="random order",
        companions={"rejection_nll_oracle": Companion(words="oracle order")},
    ),
    "rolling_coverage": Layout(
        order=12,
        question="Does coverage hold over time?",
        title="Rolling coverage",
        reading=(
            "Below the dashed line the intervals under-cover, above it they over-cover. "
            "Single windows stray by chance; a level that moves and stays is drift."
        ),
        x=Axis(title="Time"),
        y=Axis(title="Empirical coverage", kind="percent"),
        data="in the window",
        reference="nominal",
        band="band",
    ),
    "coverage_by_ease": Layout(
        order=14,
        question="Do easy and hard inputs have the same coverage?",
        title="Coverage by ease",
        reading=(
            "Rows are sorted from hard to easy, in cells of equal size. A line that leaves "
            "the band is significantly below or above nominal coverage."
        ),
        x=Axis(kind="percent", domain=UNIT),
        y=Axis(kind="percent"),
        reference="nominal",
        band_about="reference",
        band="chance alone",
    ),
    "size_by_difficulty": Layout(
        order=15,
        question="Do sets or intervals grow with difficulty?",
        title="Size by difficulty",
        reading=(
            "Each point is a cell of rows of similar difficulty. T-SS is the signed R² of a line "
            "through the points of one colour."
        ),
        mark=Mark.POINTS,
        data="cells",
    ),
    **{
        f"{name}{form}": Layout(
            order=13,
            question=f"{question} ({where})",
            title=f"{name.upper()} {where}",
            reading="Correct intervals follow the dashed line, within their band.",
            x=axis,
            y=Axis(title="Coverage", kind="percent"),
            reference="nominal",
            band="simultaneous band",
        )
        for name, question in (
            ("picf", "Do prediction intervals cover a new y at every x?"),
            ("cicf", "Do confidence intervals cover the mean at every x?"),
        )
        for form, where, axis in (
            ("", "along x", Axis(title="x")),
            ("_local", "in bins", Axis(title="x")),
            ("_sorted", "in rising order", Axis(title="Share of points", kind="percent")),
        )
    },
}
"""Layouts by the curve's name."""

LAYOUTS["characteristic_curve"] = LAYOUTS["characteristic"]
COMPANIONS = {
    companion: name
    for name, layout in reversed(LAYOUTS.items())
    for companion in (*layout.companions, *([layout.zone.curve] if layout.zone else []))
}
"""Curves that are drawn behind another, never alone when that is there, and which it is."""


def layout_of(name: str) -> Layout:
    """The layout of a curve; a plain one for a name that is not known."""
    own = (topic.layouts.get(name) for topic in brought())
    known = LAYOUTS.get(name) or next(filter(None, own), None)
    if known is not None:
        return known
    words = name.replace("_", " ").strip() or "Curve"
    return Layout(order=PLAIN_ORDER, question=words[:1].upper() + words[1:], title=words)
