"""Figures of the study: score beside coverage, ranks with intervals, and coverage under a shift."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from howsure.core.arrays import FloatArray
from howsure.figures import Axis, Figure, Layer, Mark
from howsure.figures.figure import REFERENCE
from howsure_studies.which.standing import CLIMATOLOGY, MeanOf, MethodScores

NOMINAL = 0.9


def score_figure(
    points: Mapping[str, tuple[Mapping[str, MeanOf], Mapping[str, MeanOf]]],
) -> Figure:
    """Score against coverage: a point a method, in a colour for each way that it is used.

    Parameters
    ----------
    points : mapping of str to (mapping, mapping)
        By what was done: by method, how far its score is off that of climatology, in per cent,
        and its coverage.

    Returns
    -------
    Figure
    """
    layers = [Layer(mark=Mark.RULE, x=np.array([NOMINAL]), series="nominal", colour=REFERENCE)]
    for colour, (done, (scores, covered)) in enumerate(points.items()):
        names = [method for method in scores if method != CLIMATOLOGY]
        layers.append(
            Layer(
                mark=Mark.POINTS,
                x=np.array([covered[name].value for name in names]),
                y=np.array([scores[name].value for name in names]),
                series=done,
                colour=colour,
                labels=tuple(names),
            )
        )
    return Figure(
        name="which_score",
        question="Do methods with a low score have nominal coverage?",
        title="Score against coverage",
        reading=(
            "One point per method, averaged over tables; the best are at the bottom, on the line. "
            "A correction needs rows, which are then not used to train."
        ),
        x=Axis(title="Coverage of 90 % intervals", kind="percent"),
        y=Axis(title="Score relative to climatology, %"),
        layers=tuple(layers),
        naming="Method",
    )


def rank_intervals_figure(standings: Mapping[str, MethodScores]) -> Figure:
    """Which ranks a method may have, a row a method, a colour for each number of rows."""
    first = next(iter(standings.values()))
    methods = first.scores.methods
    layers = []
    for colour, (rows, standing) in enumerate(standings.items()):
        names = [method for method in methods if method in standing.scores.methods]
        at = [standing.scores.methods.index(method) for method in names]
        layers.append(
            Layer(
                mark=Mark.INTERVALS,
                y=_rows(methods, names),
                lower=standing.ranks.lower[at].astype(np.float64),
                upper=standing.ranks.upper[at].astype(np.float64),
                labels=tuple(names),
                size=2.0,
                **_series_looks(rows, colour, len(standings)),
            )
        )
    return Figure(
        name="which_ranks",
        question="Which ranks are possible for each method?",
        title="Intervals of ranks",
        reading=(
            "Intervals of one colour are simultaneous, with 95 % confidence over samples of "
            "tables. Methods whose intervals overlap cannot be ordered."
        ),
        x=Axis(title="Rank by score"),
        y=Axis(kind="category", categories=methods),
        layers=tuple(layers),
        naming="Method",
    )


def shift_figure(methods: Sequence[str], covered: Mapping[str, Mapping[str, MeanOf]]) -> Figure:
    """Coverage at home and on late or foreign rows, with intervals: a row a method."""
    layers = [Layer(mark=Mark.RULE, x=np.array([NOMINAL]), series="nominal", colour=REFERENCE)]
    for colour, (where, by_method) in enumerate(covered.items()):
        names = [method for method in methods if method in by_method]
        means = [by_method[method] for method in names]
        common = _series_looks(where, colour, len(covered))
        common |= {"y": _rows(methods, names), "labels": tuple(names)}
        layers += [
            Layer(
                mark=Mark.INTERVALS,
                lower=np.array([mean.lower for mean in means]),
                upper=np.array([mean.upper for mean in means]),
                **{**common, "listed": False},
            ),
            Layer(
                mark=Mark.POINTS,
                x=np.array([mean.value for mean in means]),
                **common,
            ),
        ]
    return Figure(
        name="which_shift",
        question="Is coverage nominal on later and foreign rows?",
        title="Coverage of 90 % intervals",
        reading="Means over tables with 95 % intervals.",
        x=Axis(title="Coverage of 90 % intervals", kind="percent"),
        y=Axis(kind="category", categories=tuple(methods)),
        layers=tuple(layers),
        naming="Method",
    )


def _rows(methods: Sequence[str], names: Sequence[str]) -> FloatArray:
    return np.array([methods.index(name) for name in names], dtype=np.float64)


def _series_looks(series: str, colour: int, count: int) -> dict[str, Any]:
    """The looks of one of several series of a row."""
    offset = 0.5 * (colour - 0.5 * (count - 1)) / count
    return {"series": series, "colour": colour, "offset": offset}
