"""Figures of adaptivity: coverage and size over ease, methods by a measure, sensitivity."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, final

import numpy as np

from howsure.core.arrays import FloatArray
from howsure.core.errors import InputError
from howsure.core.records import Curve
from howsure.figures.figure import REFERENCE, Axis, Figure, Layer, Mark
from howsure.figures.text import distinct, headed

TITLES: Final[Mapping[str, str]] = {
    "t_cv": "T-CV",
    "t_ss": "T-SS",
    "sscv": "SSCV",
    "escv": "ESCV",
    "set_deficit": "Deficit",
    "set_excess": "Excess",
    "binned_r2": "R² of error on width",
    "kendall_tau": "Kendall τ of error and width",
    "empirical_coverage": "Coverage",
    "set_size": "Set size",
    "width": "Width",
}
"""What figures and tables call the measures."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """A vertical line: what values are judged against.

    Attributes
    ----------
    at : float
        Where it stands.
    label : str
        What it is.
    """

    at: float
    label: str


def ease_figure(curves: Sequence[Curve]) -> Figure:
    """Coverage over ease, one line a model or method, with the band that chance would show."""
    first = _first(curves)
    if first.lower is None or first.upper is None or first.reference is None:
        raise InputError("curves must begin with one that has a band and a reference, got none")
    band = Layer(
        mark=Mark.BAND,
        x=first.x,
        lower=first.lower,
        upper=first.upper,
        series="chance alone",
        colour=REFERENCE,
    )
    level = Layer(mark=Mark.LINE, x=first.x, y=first.reference, series="nominal", colour=REFERENCE)
    names = distinct([curve.model or "coverage" for curve in curves])
    lines = [
        Layer(
            mark=Mark.LINE,
            x=curve.x,
            y=curve.y,
            series=name,
            colour=place,
            hover=dict(curve.hover),
        )
        for place, (name, curve) in enumerate(zip(names, curves, strict=True))
    ]
    return Figure(
        name="coverage_by_ease",
        question="Do easy and hard inputs have the same coverage?",
        title="Coverage by ease",
        reading=(
            "Test rows are sorted from hard to easy, in cells of equal size. A line that leaves "
            "the band is significantly below or above nominal coverage."
        ),
        x=Axis(title=headed(first.x_label), kind="percent", domain=(0.0, 1.0)),
        y=Axis(title=headed(first.y_label), kind="percent"),
        layers=(band, level, *lines),
        notes=(f"Shaded: {first.band}.",) if first.band else (),
    )


def size_figure(curves: Sequence[Curve]) -> Figure:
    """Mean size over mean difficulty, a point a cell and a colour a model or method."""
    first = _first(curves)
    names = distinct([curve.model or "cells" for curve in curves])
    return Figure(
        name="size_by_difficulty",
        question="Do sets or intervals grow with difficulty?",
        title="Size by difficulty",
        reading=(
            "Each point is a cell of rows of similar difficulty. T-SS is the signed R² of a line "
            "through the points of one colour."
        ),
        x=Axis(title=headed(first.x_label)),
        y=Axis(title=headed(first.y_label)),
        layers=tuple(
            Layer(
                mark=Mark.POINTS,
                x=curve.x,
                y=curve.y,
                series=name,
                colour=place,
                hover=dict(curve.hover),
            )
            for place, (name, curve) in enumerate(zip(names, curves, strict=True))
        ),
        naming="Cell",
    )


def methods_figure(
    values: Mapping[str, Mapping[str, float]],
    measure: str,
    *,
    rules: Sequence[Rule] = (),
    note: str = "",
) -> Figure:
    """One measure of several methods as a dot plot, a colour a task or a source."""
    if not values or measure not in TITLES:
        raise InputError(
            f"values must hold a series and measure be one of {', '.join(TITLES)}, "
            f"got {len(values)} series and {measure!r}"
        )
    methods = list(dict.fromkeys(name for series in values.values() for name in series))
    layers = []
    for place, (series, held) in enumerate(values.items()):
        rows = [(k, held[name]) for k, name in enumerate(methods) if name in held]
        known = [(k, value) for k, value in rows if math.isfinite(value)]
        layers.append(
            Layer(
                mark=Mark.POINTS,
                x=np.array([value for _, value in known], dtype=np.float64),
                y=np.array([k for k, _ in known], dtype=np.float64),
                series=series,
                colour=place,
                labels=tuple(methods[k] for k, _ in known),
            )
        )
    lines = [
        Layer(mark=Mark.RULE, x=np.array([rule.at]), series=rule.label, colour=REFERENCE)
        for rule in rules
        if math.isfinite(rule.at)
    ]
    title = TITLES[measure]
    return Figure(
        name=f"methods_{measure}",
        question=_QUESTIONS.get(measure, "How do the methods compare?"),
        title=f"{title} of each method",
        reading=_READINGS.get(measure, ""),
        x=Axis(title=title),
        y=Axis(kind="category", categories=distinct(methods)),
        layers=(*lines, *layers),
        notes=(note,) if note else (),
        naming="Method",
    )


def sensitivity_figure(
    x: Sequence[str], values: Mapping[str, FloatArray], measure: str, *, title: str
) -> Figure:
    """One measure of several methods over ways to perturb inputs."""
    for name, column in values.items():
        if len(column) != len(x):
            raise InputError(f"values of {name!r} must be {len(x)}, got {len(column)}")
    ways = distinct(x)
    place = np.arange(len(ways), dtype=np.float64)
    return Figure(
        name=f"sensitivity_{measure}",
        question="Does the measure depend on how inputs are perturbed?",
        title=f"{TITLES[measure]} by {title}",
        reading="The choice does not matter where points of one colour share a vertical line.",
        x=Axis(title=TITLES[measure]),
        y=Axis(kind="category", categories=ways),
        layers=tuple(
            Layer(
                mark=Mark.POINTS,
                x=column[np.isfinite(column)],
                y=place[np.isfinite(column)],
                series=name,
                colour=number,
                labels=tuple(ways[k] for k in np.flatnonzero(np.isfinite(column))),
            )
            for number, (name, column) in enumerate(values.items())
        ),
        naming="Way",
    )


_QUESTIONS: Final[Mapping[str, str]] = {
    "t_cv": "Which methods cover easy and hard inputs alike?",
    "t_ss": "Whose sets or intervals grow with difficulty?",
    "empirical_coverage": "Do the methods reach nominal coverage?",
    "set_size": "How large are the sets?",
    "width": "How wide are the intervals?",
}
_READINGS: Final[Mapping[str, str]] = {
    "t_cv": (
        "The largest gap between coverage and its nominal level over cells of similar "
        "difficulty; lower is better. Chance alone would show the value of the line."
    ),
    "t_ss": "Signed R² of mean size on mean difficulty over cells; higher is better.",
}


def _first(curves: Sequence[Curve]) -> Curve:
    if not curves:
        raise InputError("curves must hold at least one, got none")
    return curves[0]
