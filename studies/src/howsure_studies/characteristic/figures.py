"""Figures of the study: curves beside constant bands, and the bands themselves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from howsure.core import formats
from howsure.core.errors import InputError
from howsure.core.records import Curve, Record
from howsure.engine.metric import in_words
from howsure.figures import Axis, Figure, Layer, Mark
from howsure.figures.figure import REFERENCE
from howsure_studies.characteristic.results import TAIL, MethodResult

TOLD = 0.1
"""The miss rate at which the half-widths of bands are told."""


def curves_figure(results: Sequence[MethodResult]) -> Figure:
    """The curve of each method, and of the constant band about its forecasts.

    Parameters
    ----------
    results : sequence of MethodResult
        One a method, of one world.

    Returns
    -------
    Figure

    Raises
    ------
    InputError
        If there is none.
    """
    if not results:
        raise InputError("results must contain at least one method, got none")
    low, high = results[0].options.miss_range
    layers = [
        Layer(
            mark=Mark.ZONE,
            lower=np.array([low]),
            upper=np.array([high]),
            series=f"miss rate {in_words((low, high))}",
            colour=REFERENCE,
        )
    ]
    pictures = {result.method: result.picture() for result in results}
    known = {method: picture for method, picture in pictures.items() if picture is not None}
    for colour, (name, picture) in enumerate(known.items()):
        model, constant = picture.curves
        for drawn, series in ((constant, f"{name}, constant band"), (model, name)):
            layers.append(
                Layer(
                    mark=Mark.STEP,
                    x=drawn.x,
                    y=drawn.y,
                    series=series,
                    colour=colour,
                    faint=series != name,
                    listed=series == name,
                )
            )
    tails = [picture.tail for picture in known.values() if np.isfinite(picture.tail)]
    return Figure(
        name="characteristic",
        question="How much width does a lower miss rate cost?",
        title="Uncertainty characteristics curves",
        reading=(
            "Bands are scaled from nothing to wide enough for every row; lower is better. Dotted: "
            "a constant band about the same forecasts."
        ),
        x=Axis(
            title="Mean half-width (bandwidth)",
            domain=(0.0, 1.05 * max(tails)) if tails else None,
            zero=True,
        ),
        y=Axis(title="Miss rate", kind="percent", domain=(0.0, 1.0)),
        layers=tuple(layers),
        notes=(f"Drawn to where the miss rate is {formats.level(TAIL)}.",) if tails else (),
        finding="; ".join(
            f"{name}: half-width {_width_at(model)} at a miss rate of {formats.level(TOLD)}, "
            f"constant band {_width_at(constant)}"
            for name, (model, constant) in ((n, picture.curves) for n, picture in known.items())
        )
        + ".",
    )


def _width_at(curve: Curve) -> str:
    """The least half-width at which no more rows are missed than are told of."""
    return formats.number(float(curve.x[np.argmax(curve.y <= TOLD)]), 3)


def gains_figure(gains: Mapping[str, Mapping[str, Record]]) -> Figure:
    """Gains at low miss rates, with their intervals: a row a method, a colour a world."""
    methods = list(dict.fromkeys(name for by_method in gains.values() for name in by_method))
    layers = [Layer(mark=Mark.RULE, x=np.zeros(1), series="constant band", colour=REFERENCE)]
    for colour, (world, by_method) in enumerate(gains.items()):
        values, lower, upper = np.array(
            [(gain.value, gain.lower, gain.upper) for gain in by_method.values()]
        ).T
        rows = np.array([methods.index(name) for name in by_method], dtype=np.float64)
        shift = 0.5 * (colour - 0.5 * (len(gains) - 1)) / len(gains)
        common: dict[str, Any] = {
            "series": world,
            "colour": colour,
            "offset": shift,
            "labels": tuple(by_method),
        }
        layers += [
            Layer(mark=Mark.INTERVALS, y=rows, lower=lower, upper=upper, listed=False, **common),
            Layer(mark=Mark.POINTS, x=values, y=rows, **common),
        ]
    return Figure(
        name="gains",
        question="Which bands need less bandwidth than a constant band?",
        title="Gain at low miss rates",
        reading="Right of the line, adaptive widths beat a constant width.",
        x=Axis(title="Gain, %"),
        y=Axis(kind="category", categories=tuple(methods)),
        layers=tuple(layers),
        naming="Method",
    )


def bands_figure(result: MethodResult, *, constant: bool = False) -> Figure | None:
    """Forecasts with their bands, scaled to the operating points; None where rows have no place.

    Parameters
    ----------
    result : MethodResult
        One method.
    constant : bool
        Whether to draw the constant band in place of the model's.

    Returns
    -------
    Figure or None
    """
    picture = result.picture()
    if picture is None or not len(picture.place):
        return None
    ends = result.window or (float(picture.place.min()), float(picture.place.max()))
    layers = [
        Layer(
            mark=Mark.BAND,
            x=picture.place,
            lower=picture.point - scale * picture.below[int(constant)],
            upper=picture.point + scale * picture.above[int(constant)],
            series=f"miss rate {formats.level(miss_rate)}",
            colour=colour,
        )
        for colour, (miss_rate, scale) in enumerate(
            zip(result.options.miss_rates, picture.scales[int(constant)], strict=True)
        )
        if np.isfinite(scale)
    ]
    layers += [
        Layer(
            mark=Mark.LINE,
            x=picture.place,
            y=picture.point,
            series="forecast",
            colour=len(result.options.miss_rates),
        ),
        Layer(
            mark=Mark.POINTS,
            x=picture.place,
            y=picture.y,
            series="test rows",
            colour=REFERENCE,
            size=0.4,
        ),
    ]
    return Figure(
        name="bands",
        question="Where are the bands wide?",
        title="Constant band" if constant else "Bands",
        reading="Bands of the model, scaled to the stated share outside.",
        label=result.method,
        x=Axis(title=result.axis, domain=ends),
        y=Axis(title="y"),
        layers=tuple(layers),
    )
