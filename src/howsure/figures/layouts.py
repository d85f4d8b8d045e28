"""How each known curve is drawn: its question, how to read it, its axes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from howsure.core import formats
from howsure.figures.figure import Axis, Mark
from howsure.metrics.characteristic.view import LOW_MISS_RATE

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
    lower, upper : float
        Its ends.
    words : str
        What it is.
    """

    lower: float
    upper: float
    words: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """The words and habits of one kind of curve.

    Attributes
    ----------
    order : int
        Its place in a report.
    question, title, reading : str
        As in `Figure`.
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
    tail : float
        Share of the fall in y whose x range may be cut off when it would fill most of the figure.
    """

    order: int
    question: str
    title: str
    reading: str = ""
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


INTERVALS_ORDER = -1
TABLE_ORDER = 8
MAP_ORDER = 9
PLAIN_ORDER = 10
"""Places in a report of intervals, dot plots, maps, and curves that have no layout."""

LAYOUTS: dict[str, Layout] = {
    "calibration": Layout(
        order=0,
        question="Do the stated levels hold?",
        title="Calibration curve",
        reading=(
            "On the diagonal, values fall below each stated level exactly as often as claimed. "
            "A departure that stays inside the shaded band may be chance."
        ),
        x=Axis(title="Nominal level", kind="percent", domain=UNIT),
        y=Axis(title="Observed share", kind="percent", domain=UNIT),
        reference="perfect calibration",
        band_about="reference",
        band="simultaneous band",
    ),
    "interval_calibration": Layout(
        order=1,
        question="Do intervals cover as often as they claim?",
        title="Interval calibration",
        reading=(
            "Below the diagonal the intervals are too narrow: the model is overconfident. "
            "Above it they are wider than they need to be."
        ),
        x=Axis(title="Nominal coverage", kind="percent", domain=UNIT),
        y=Axis(title="Empirical coverage", kind="percent", domain=UNIT),
        reference="perfect calibration",
        band="interval",
    ),
    "pit_ecdf": Layout(
        order=2,
        question="Where do the truths fall in the predicted distributions?",
        title="PIT, distance from uniform",
        reading=(
            "Flat at zero is calibrated. A curve that leaves the shaded band is not chance: "
            "first above then below means too narrow, the reverse too wide, one-sided means biased."
        ),
        x=Axis(title="Probability integral transform", domain=UNIT),
        y=Axis(title="ECDF − uniform"),
        reference="uniform",
        band_about="reference",
        band="simultaneous band",
    ),
    "pit_histogram": Layout(
        order=3,
        question="What is the shape of the misfit?",
        title="PIT histogram",
        reading=(
            "Flat is calibrated. A bowl means distributions too narrow, a hill too wide, "
            "a slope biased."
        ),
        x=Axis(title="Probability integral transform", domain=UNIT),
        y=Axis(title="Density", zero=True),
        mark=Mark.BARS,
        reference="uniform",
        band_about="reference",
        band="simultaneous band",
    ),
    "error_by_width": Layout(
        order=4,
        question="Are wide predictions really the uncertain ones?",
        title="Error by predicted width",
        reading=(
            "Each point is a bin of rows of similar width. Rising points mean that width tells "
            "easy rows from hard ones; level points mean that it does not."
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
            "Rows are kept from the most certain on. The further the curve lies below the level "
            "of random order, the better uncertainty picks out the errors."
        ),
        x=Axis(title="Prediction rate (share of rows kept)", kind="percent", domain=UNIT),
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
            "The bands are scaled from nothing to wide enough for every row. "
            "Lower is better; where the constant band lies lower, the model's widths do not pay. "
            "The gain at low miss rates is that of the shaded part."
        ),
        x=Axis(title="Bandwidth", zero=True),
        y=Axis(title="Miss rate", kind="percent", domain=UNIT),
        data="the model's band",
        reference="constant band",
        companions={"characteristic_constant": Companion(words="constant band")},
        points=("characteristic_points", "bandwidth", "miss_rate"),
        zone=Zone(
            lower=0.0,
            upper=LOW_MISS_RATE,
            words=f"miss rate at most {formats.level(LOW_MISS_RATE)}",
        ),
        tail=0.01,
    ),
    "characteristic_deficit": Layout(
        order=7,
        question="Is the scale of the bands right?",
        title="Bandwidth against deficit",
        reading=(
            "The interval score adds up bandwidth and deficit, so it is the same all along the "
            "straight line, and worse above it. The curve touches the line at the scale that "
            "scores best; a model that stands elsewhere would gain by scaling its bands."
        ),
        x=Axis(title="Bandwidth", zero=True),
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
    "rejection": Layout(
        order=10,
        question="Does it help to withhold suspect rows?",
        title="Rejection by CCE",
        reading=(
            "Rows are withheld from the highest CCE on. A curve that falls below the level of "
            "random order withholds the rows with the larger errors."
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
            "Rows are withheld from the highest CCE on. A curve that falls below the level of "
            "random order withholds the rows whose outcomes surprised the model."
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
            "A level beside the dashed line is a wrong claim; a level that moves is drift. "
            "Single windows leave the line by chance."
        ),
        x=Axis(title="Time"),
        y=Axis(title="Empirical coverage", kind="percent"),
        data="in the window",
        reference="nominal",
        band="band",
    ),
    **{
        f"{name}{form}": Layout(
            order=13,
            question=f"{question} ({where})",
            title=f"{name.upper()} {where}",
            reading="Right intervals follow the dashed line; where a band leaves it they are off.",
            x=axis,
            y=Axis(title="Coverage", kind="percent"),
            reference="nominal",
            band="simultaneous band",
        )
        for name, question in (
            ("picf", "Do prediction intervals hold a new y at every x?"),
            ("cicf", "Do confidence intervals hold the mean at every x?"),
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
COMPANIONS = {name for layout in LAYOUTS.values() for name in layout.companions}
"""Curves that are drawn behind others, never alone when the other is there."""


def layout_of(name: str) -> Layout:
    """The layout of a curve; a plain one for a name that is not known."""
    known = LAYOUTS.get(name)
    if known is not None:
        return known
    words = name.replace("_", " ").strip() or "Curve"
    return Layout(order=PLAIN_ORDER, question=words[:1].upper() + words[1:], title=words)
