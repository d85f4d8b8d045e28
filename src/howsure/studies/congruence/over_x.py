"""Figures of the congruence studies over the only column of x: predictions, calibration, errors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, final

import numpy as np

from howsure.core import formats
from howsure.core.arrays import FloatArray
from howsure.core.errors import InputError
from howsure.core.records import Curve
from howsure.figures.figure import REFERENCE, Axis, Figure, Layer, Mark, sample_points
from howsure.figures.text import distinct, headed, one_line

MOST_POINTS: Final = 300
"""The most points of a line, or of one model's cloud."""


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LawOverX:
    """What one model predicts along the only column of x, beside what was observed.

    Attributes
    ----------
    model : str
        Whose predictions.
    x, y : ndarray of float, shape (n,)
        Inputs, in any order, and outcomes.
    point, lower, upper : ndarray of float, shape (n,)
        Point predictions, and the ends of each central prediction interval.
    coverage : float
        The nominal coverage of that interval.
    """

    model: str
    x: FloatArray
    y: FloatArray
    point: FloatArray
    lower: FloatArray
    upper: FloatArray
    coverage: float = 0.9


def law_figure(law: LawOverX, *, units: str = "y", colour: int = 0) -> Figure:
    """Data over x with one model's predictions and central intervals: the first row of figure 2.

    Figure 2 of Young et al. 2025.
    """
    columns = (law.x, law.y, law.point, law.lower, law.upper)
    if not len(law.x) or len({len(column) for column in columns}) > 1:
        raise InputError(
            f"law must have columns of one length, not empty, got {[len(c) for c in columns]}"
        )
    order = np.argsort(law.x, kind="stable")
    rows = order[sample_points(law.x[order], MOST_POINTS)]
    x, share = law.x[rows], f"{formats.level(law.coverage)}"
    name = one_line(law.model, 60)
    return Figure(
        name="congruence_law",
        question=f"What does the model predict, and what was observed? ({name})",
        title=f"Predictions over x, {name}",
        reading=f"The band should contain {share} of the rows at every x, not only overall.",
        x=Axis(title="x"),
        y=Axis(title=headed(units)),
        layers=(
            Layer(
                mark=Mark.BAND,
                x=x,
                lower=law.lower[rows],
                upper=law.upper[rows],
                series=f"central {share}",
                colour=colour,
            ),
            Layer(mark=Mark.LINE, x=x, y=law.point[rows], series="point prediction", colour=colour),
            Layer(
                mark=Mark.POINTS,
                x=x,
                y=law.y[rows],
                series="test rows",
                colour=REFERENCE,
                size=0.5,
            ),
        ),
        notes=shown(len(rows), len(law.x)),
        naming="Row",
    )


def calibration_figure(curves: Sequence[Curve], places: Mapping[str, int] | None = None) -> Figure:
    """Observed share by nominal level, one line a model: the second row of figure 2."""
    lines = _lines(curves, places)
    ends = np.array([0.0, 1.0])
    level = Layer(mark=Mark.LINE, x=ends, y=ends, series="perfect calibration", colour=REFERENCE)
    return Figure(
        name="congruence_calibration",
        question="Is the model calibrated over all rows?",
        title="Calibration over all rows",
        reading=(
            "ECE measures the distance from the diagonal; errors at different x may cancel. "
            "Predictive distributions of counts leave the diagonal even when correct."
        ),
        x=Axis(title="Nominal level", kind="percent", domain=(0.0, 1.0)),
        y=Axis(title="Observed share", kind="percent", domain=(0.0, 1.0)),
        layers=(level, *lines),
        notes=_told(curves),
    )


def input_figure(
    curves: Sequence[Curve],
    places: Mapping[str, int] | None = None,
    *,
    null: float = np.nan,
    yardstick: str = "a correctly specified model, on average",
) -> Figure:
    """CCE over the only column of x, one line a model with its band: the third row of figure 2."""
    lines = _lines(curves, places)
    first = curves[0]
    bands = [
        Layer(
            mark=Mark.BAND,
            x=line.x,
            lower=line.lower,
            upper=line.upper,
            series=f"band of {line.series}",
            colour=line.colour,
            listed=False,
        )
        for line in lines
        if len(line.lower)
    ]
    rules = []
    if np.isfinite(null):
        rules = [Layer(mark=Mark.RULE, y=np.array([null]), series=yardstick, colour=REFERENCE)]
    shaded = dict.fromkeys(f"Shaded: {one_line(c.band, 200)}." for c in curves if c.band)
    return Figure(
        name=first.name,
        question="Where are the predictive distributions wrong?",
        title=headed(first.y_label) or "CCE at x",
        reading="A line is high where the predictive distribution departs from the data.",
        x=Axis(title=headed(first.x_label) or "x"),
        y=Axis(title=headed(first.y_label) or "CCE at x", zero=True),
        layers=(*bands, *rules, *lines),
        notes=(*shaded, *_told(curves)),
    )


def _lines(curves: Sequence[Curve], places: Mapping[str, int] | None) -> list[Layer]:
    """A line a curve, thinned, with the ends of its band where it has one."""
    if not curves:
        raise InputError("curves must hold at least one, got none")
    names = distinct([curve.model or "model" for curve in curves])
    lines = []
    for place, (name, curve) in enumerate(zip(names, curves, strict=True)):
        finite = np.flatnonzero(np.isfinite(curve.x) & np.isfinite(curve.y))
        rows = finite[sample_points(curve.x[finite], MOST_POINTS)] if len(finite) else finite
        low, high = np.zeros(0), np.zeros(0)
        if curve.lower is not None and curve.upper is not None:
            ends = np.isfinite(curve.lower[rows]) & np.isfinite(curve.upper[rows])
            if len(rows) and ends.all():
                low, high = np.maximum(curve.lower[rows], 0.0), curve.upper[rows]
        lines.append(
            Layer(
                mark=Mark.LINE,
                x=curve.x[rows],
                y=curve.y[rows],
                lower=low,
                upper=high,
                series=name,
                colour=(places or {}).get(curve.model, place),
            )
        )
    return lines


def _told(curves: Sequence[Curve]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(one_line(curve.notes, 400) for curve in curves if curve.notes))


def shown(drawn: int, rows: int) -> tuple[str, ...]:
    """What to say where not all rows are drawn."""
    return (f"Shown: {drawn:,} of {rows:,} rows.",) if drawn < rows else ()
