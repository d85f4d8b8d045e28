"""Figures of a test of coverage at every point: histograms, profiles, intervals over the truth."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, final

import numpy as np

from howsure.core import formats
from howsure.core.arrays import BoolArray, FloatArray, IntArray
from howsure.core.classes import frozen
from howsure.core.records import Curve
from howsure.core.text import distinct, headed, one_line
from howsure.figures.figure import HIGHLIGHT, REFERENCE, Axis, Figure, Layer, Mark, sample_points
from howsure_studies.pointwise.simulation import PointwiseResult

MOST_BINS = 24
"""The most bars of a histogram."""
MOST_POINTS = 400
"""The most points of a line."""
MOST_INTERVALS = 90
"""The most intervals that are drawn one by one."""
_NONE = np.zeros(0)
_STEPS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05)


@final
@frozen(kw_only=True)
class FigureWords:
    """What a figure says around its drawing; as in `Figure`."""

    name: str
    question: str
    title: str
    reading: str
    x: str
    notes: tuple[str, ...] = ()

    def figure(self, *layers: Layer, notes: Sequence[str] = (), **drawing: Any) -> Figure:
        """A figure with these words around it."""
        return Figure(
            name=self.name,
            question=self.question,
            title=self.title,
            reading=self.reading,
            layers=layers,
            notes=(*self.notes, *notes),
            **drawing,
        )


def share_histogram(
    shares: Mapping[str, FloatArray],
    coverage: float,
    words: FigureWords,
    *,
    places: Mapping[str, int],
    of: str,
) -> Figure:
    """How coverages are spread: filled bars of one method, outlines of several."""
    edges = _edges([*shares.values(), np.array([coverage])])
    layers = []
    told = [
        f"{method}: {words.x} {formats.percent(float(values.mean()))} on average, from "
        f"{formats.percent(float(values.min()))} to {formats.percent(float(values.max()))}"
        for method, values in shares.items()
    ]
    for method, values in shares.items():
        heights = np.histogram(values, edges)[0] / len(values)
        if len(shares) == 1:
            middle = 0.5 * (edges[1:] + edges[:-1])
            layers.append(
                Layer(
                    mark=Mark.BARS,
                    x=middle,
                    y=heights,
                    lower=edges[:-1],
                    upper=edges[1:],
                    series=method,
                    colour=places.get(method, 0),
                )
            )
            continue
        outline = np.concatenate([[0.0], heights, [0.0]])
        left = np.concatenate([[edges[0]], edges])
        layers.append(
            Layer(mark=Mark.STEP, x=left, y=outline, series=method, colour=places.get(method, 0))
        )
    rule = Layer(mark=Mark.RULE, x=np.array([coverage]), series=_nominal(coverage), colour=-1)
    return words.figure(
        *layers,
        rule,
        x=Axis(title=words.x, kind="percent", domain=(float(edges[0]), float(edges[-1]))),
        y=Axis(title=f"Share of {of}", kind="percent", zero=True),
        finding=f"{'; '.join(told)}. {headed(_nominal(coverage))}.",
    )


def coverage_profile(
    curves: Sequence[Curve], coverage: float, words: FigureWords, *, places: Mapping[str, int]
) -> Figure:
    """Coverage along x, one line with its band a method, over the nominal level."""
    bands, lines = [], []
    for curve in curves:
        index = sample_points(curve.x, MOST_POINTS)
        colour = places.get(curve.model, 0)
        x, y = curve.x[index], curve.y[index]
        low, high = _NONE, _NONE
        if curve.lower is not None and curve.upper is not None:
            low, high = curve.lower[index], curve.upper[index]
            bands.append(
                Layer(
                    mark=Mark.BAND,
                    x=x,
                    lower=low,
                    upper=high,
                    series=f"band of {curve.model}",
                    colour=colour,
                    listed=False,
                )
            )
        line = Layer(
            mark=Mark.LINE,
            x=x,
            y=y,
            lower=low,
            upper=high,
            series=curve.model,
            colour=colour,
            hover={headed(title): column[index] for title, column in curve.hover.items()},
        )
        lines.append(line)
    every = np.concatenate([curve.x for curve in curves])
    across = np.array([every.min(), every.max()])
    level = Layer(
        mark=Mark.LINE,
        x=across,
        y=np.full(2, coverage),
        series=_nominal(coverage),
        colour=REFERENCE,
    )
    shaded = {one_line(curve.band, 200) for curve in curves if curve.band}
    notes = (f"Shaded: {'; '.join(sorted(shaded))}.",) if shaded else ()
    return words.figure(
        *(*bands, level, *lines),
        x=Axis(title=headed(words.x)),
        y=Axis(title="Coverage", kind="percent"),
        notes=notes,
    )


def spread_figure(names: Sequence[str], values: Sequence[FloatArray], coverage: float) -> Figure:
    """Coverage over test points: its mean, and the range of nine in ten, a row a method."""
    names = distinct(names)
    rows = np.arange(len(names), dtype=np.float64)
    ends = np.array([np.quantile(shares, [0.05, 0.95]) for shares in values])
    level = Layer(
        mark=Mark.RULE, x=np.array([coverage]), series=_nominal(coverage), colour=REFERENCE
    )
    ranges = Layer(
        mark=Mark.INTERVALS, y=rows, lower=ends[:, 0], upper=ends[:, 1], series="mean over x"
    )
    means = Layer(
        mark=Mark.POINTS,
        x=np.array([shares.mean() for shares in values]),
        y=rows,
        series="mean over x",
        labels=names,
        hover={"5 % of points below": ends[:, 0], "5 % of points above": ends[:, 1]},
    )
    return Figure(
        name="picf_spread",
        question="How much does coverage vary over x?",
        title="Coverage over x",
        reading=(
            "Points: coverage averaged over x. Lines: range of coverage at 90 % of test points."
        ),
        x=Axis(title="Coverage", kind="percent"),
        y=Axis(kind="category", categories=names),
        layers=(level, ranges, means),
        naming="Method",
    )


@final
@frozen(kw_only=True, eq=False)
class OneRun:
    """Intervals of one trial over a test set whose truth is known, each of shape (n,)."""

    x: FloatArray  # a column of x, or the true mean
    y: FloatArray
    lower: FloatArray
    upper: FloatArray
    mean: FloatArray
    true_lower: FloatArray
    true_upper: FloatArray
    mean_lower: FloatArray | None = None
    mean_upper: FloatArray | None = None


def one_run(result: PointwiseResult, coverage: float) -> OneRun | None:
    """The intervals of the first trial that succeeded; None without a truth."""
    if result.truth is None or not result.trials:
        return None
    column = int(np.argmin(np.abs(np.array(result.coverages) - coverage)))
    ends = result.mean_ends
    low, high = result.truth.interval(coverage)
    return OneRun(
        x=result.x[:, 0] if result.x.shape[1] == 1 else result.truth.mean,
        y=result.y,
        lower=result.lower[0, :, column],
        upper=result.upper[0, :, column],
        mean=result.truth.mean,
        true_lower=low,
        true_upper=high,
        mean_lower=None if ends is None else ends[0][0, :, column],
        mean_upper=None if ends is None else ends[1][0, :, column],
    )


def intervals_along_x(run: OneRun, words: FigureWords, *, colour: int) -> Figure:
    """Intervals of one run along the only column of x, over the true mean and the data."""
    order = np.argsort(run.x, kind="stable")
    order = order[sample_points(run.x[order], MOST_POINTS)]
    x = run.x[order]

    def band(low: FloatArray, high: FloatArray, series: str, tone: int) -> Layer:
        return Layer(
            mark=Mark.BAND, x=x, lower=low[order], upper=high[order], series=series, colour=tone
        )

    layers = [band(run.lower, run.upper, "prediction interval", colour)]
    if run.mean_lower is not None and run.mean_upper is not None:
        layers.append(band(run.mean_lower, run.mean_upper, "confidence interval", colour + 1))
    edges = (run.true_lower, run.true_upper)
    layers += [
        Layer(
            mark=Mark.LINE,
            x=x,
            y=edge[order],
            series="true interval",
            colour=REFERENCE,
            faint=True,
        )
        for edge in edges
    ]
    layers.append(
        Layer(mark=Mark.LINE, x=x, y=run.mean[order], series="true mean", colour=REFERENCE)
    )
    drawn = order[np.linspace(0, len(order) - 1, min(len(order), 150)).round().astype(np.int64)]
    return words.figure(
        *(*layers, *_points(run, drawn, colour)), x=Axis(title=headed(words.x)), y=Axis(title="y")
    )


def intervals_over_truth(run: OneRun, words: FigureWords, *, colour: int) -> Figure:
    """Intervals of one run at single test points, in the order of their true means."""
    order = np.argsort(run.mean, kind="stable")
    count = min(len(order), MOST_INTERVALS)
    chosen = order[np.linspace(0, len(order) - 1, count).round().astype(np.int64)]
    finite = chosen[np.isfinite(run.lower[chosen]) & np.isfinite(run.upper[chosen])]
    mean = run.mean[finite]
    layers = [
        Layer(
            mark=Mark.INTERVALS,
            x=mean,
            lower=run.lower[finite],
            upper=run.upper[finite],
            series="prediction interval",
            colour=colour,
            listed=False,
        ),
        Layer(mark=Mark.LINE, x=mean, y=mean, series="true mean", colour=REFERENCE),
    ]
    y = run.y[finite]
    inside = int(((run.lower[finite] <= y) & (y <= run.upper[finite])).sum())
    left_out = len(finite) < len(order)
    return words.figure(
        *(*layers, *_points(run, finite, colour)),
        x=Axis(title="True mean of y"),
        y=Axis(title="y"),
        finding=f"{inside:,} of {len(finite):,} intervals shown contain y.",
        notes=[f"Shown: {len(finite)} of {len(order):,} test points."] if left_out else [],
    )


def _points(run: OneRun, chosen: IntArray, colour: int) -> list[Layer]:
    """Observations, told apart by whether the intervals contain them."""
    x, y = run.x[chosen], run.y[chosen]
    inside = (run.lower[chosen] <= y) & (y <= run.upper[chosen])
    kinds: list[tuple[BoolArray, str, int, int]] = [
        (inside, "y inside its interval", colour, 0),
        (~inside, "y outside it", HIGHLIGHT, 3),
    ]
    return [
        Layer(
            mark=Mark.POINTS,
            x=x[kind],
            y=y[kind],
            series=series,
            colour=tone,
            shape=shape,
            size=0.5,
            labels=tuple(f"test point {row}" for row in chosen[kind]),
            hover={
                "Lower end": run.lower[chosen][kind],
                "Upper end": run.upper[chosen][kind],
                "True mean": run.mean[chosen][kind],
            },
        )
        for kind, series, tone, shape in kinds
        if kind.any()
    ]


def _nominal(coverage: float) -> str:
    return f"nominal {formats.level(coverage)}"


def _edges(values: Sequence[FloatArray]) -> FloatArray:
    """Round edges of at most so many equal bins over all values, within [0, 1]."""
    low = max(min(float(shares.min()) for shares in values), 0.0)
    high = min(max(float(shares.max()) for shares in values), 1.0)
    most = min(max(2.0 * max(map(len, values)) ** (1 / 3), 10.0), MOST_BINS)
    step = next((s for s in _STEPS if (high - low) / s <= most), 0.05)
    first, last = math.floor(low / step - 1e-9), math.ceil(high / step + 1e-9)
    first, last = max(first, 0), min(max(last, first + 2), round(1 / step))
    first = min(first, last - 2)
    return np.round(np.arange(first, last + 1) * step, 6)
