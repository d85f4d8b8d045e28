"""Figures of one world: coverage along x, its spread, and the intervals of one trial."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import numpy as np

from howsure.core import formats
from howsure.core.arrays import FloatArray
from howsure.core.errors import UnanswerableError
from howsure.core.records import Curve
from howsure.figures import Figure
from howsure.report.document import Choice
from howsure.studies.engine import choice_of
from howsure.studies.pointwise.figures import (
    OneRun,
    Words,
    coverage_profile,
    intervals_along_x,
    intervals_over_truth,
    share_histogram,
)
from howsure.studies.pointwise.regions import (
    BINS,
    default_names,
    local_curve,
    principal_component,
)
from howsure.studies.pointwise.result import PointwiseResult, Which
from howsure.studies.pointwise.views import curves
from howsure.studies.pointwise.words import Finding

MOST_COLUMNS: Final = 12
"""The most columns of x along which coverage is shown."""
ALL: Final[tuple[Which, ...]] = ("picf", "cicf")


def choices(
    results: Sequence[PointwiseResult],
    held: Mapping[Which, Sequence[Finding]],
    coverage: float,
    names: Sequence[str] | None,
) -> tuple[Choice, ...]:
    """Every figure of one world."""
    places = {result.method: place for place, result in enumerate(results)}
    return (
        *_profiles(held, coverage, names, places),
        *_runs(held["picf"], coverage, names, places),
        *_histograms(results, held, coverage, places),
    )


def _profiles(
    held: Mapping[Which, Sequence[Finding]],
    coverage: float,
    names: Sequence[str] | None,
    places: Mapping[str, int],
) -> Iterator[Choice]:
    """Coverage along x: its only column, or the one chosen, or the first principal component."""
    if not held["picf"]:
        return
    first = held["picf"][0].result
    alone = (names or default_names(1))[0] if first.x.shape[1] == 1 else ""
    ways = [] if alone else _directions(held["picf"], names)
    for which in (which for which in ALL if held[which]):
        options = []
        if alone:
            made = [_along_x(found) for found in held[which]]
            options.append(("", _profile(which, made, coverage, alone, places, ())))
        for title, values, notes in ways:
            bins = _bins(len(values))
            made = [
                local_curve(found.result, which, coverage, values, name=title, bins=bins)
                for found in held[which]
            ]
            options.append((title, _profile(which, made, coverage, title, places, notes)))
        yield from choice_of("Along", options)


def _along_x(found: Finding) -> Curve:
    """The method's coverage at each point, in rising x."""
    wanted = f"{formats.level(found.coverage)}"
    for curve in curves(found.result, coverages=(found.coverage,)):
        if curve.name == found.which:
            return curve
    raise UnanswerableError(f"no curve at {wanted}")


def _directions(
    findings: Sequence[Finding], names: Sequence[str] | None
) -> list[tuple[str, FloatArray, tuple[str, ...]]]:
    """Columns by how much coverage differs along them, then the first principal component."""
    x = findings[0].result.x
    titles = tuple(names) if names is not None else default_names(x.shape[1])
    live = [column for column in range(x.shape[1]) if np.ptp(x[:, column]) > 0]
    spread = {
        column: sum(_spread_along(found, x[:, column]) for found in findings) for column in live
    }
    ranked = sorted(live, key=lambda column: -spread[column])[:MOST_COLUMNS]
    told = f"Shown: {len(ranked)} of {len(live)} columns, those along which coverage differs most."
    notes = (told,) if len(ranked) < len(live) else ()
    found = [(titles[column], x[:, column], notes) for column in ranked]
    component = principal_component(x)
    heavy = np.argsort(-np.abs(component.loadings))[:4]
    made_of = ", ".join(f"{component.loadings[j]:+.2f} {titles[j]}" for j in heavy).replace(
        "-", "−"
    )
    told = f"The component holds {component.share:.0%} of the variance; heaviest: {made_of}."
    return [*found, ("first principal component", component.values, (told,))]


def _spread_along(found: Finding, values: FloatArray) -> float:
    """Variance of mean coverage over bins, less what bins of points drawn at random would show."""
    bins = _bins(len(values))
    curve = local_curve(found.result, found.which, found.coverage, values, bins=bins)
    weights = curve.hover["points"] / curve.hover["points"].sum()
    between = float(weights @ np.square(curve.y - weights @ curve.y))
    chance = (len(curve.y) - 1) / max(len(values) - 1, 1) * float(found.value.var())
    return between - chance


def _bins(points: int) -> int:
    """As many bins as leave some twenty points in each."""
    return int(np.clip(points // 20, 3, BINS))


def _profile(
    which: Which,
    made: Sequence[Curve],
    coverage: float,
    title: str,
    places: Mapping[str, int],
    notes: tuple[str, ...],
) -> Figure:
    whole = "prediction intervals" if which == "picf" else "confidence intervals for the mean"
    words = Words(
        name=f"{which}_profile",
        question=f"Where along {title} do {whole} under- or over-cover?",
        title=f"Coverage of {whole} along {title}",
        reading=(
            "Correct intervals follow the dashed line. Where a band lies below it they "
            "under-cover significantly, where it lies above they over-cover."
        ),
        x=title,
        notes=notes,
    )
    return coverage_profile(made, coverage, words, places=places)


def _histograms(
    results: Sequence[PointwiseResult],
    held: Mapping[Which, Sequence[Finding]],
    coverage: float,
    places: Mapping[str, int],
) -> tuple[Choice, ...]:
    """Coverage over test points, and over trials, for new y and for the mean."""
    shares = {
        "PICF": {found.result.method: found.value for found in held["picf"]},
        "CICF": {found.result.method: found.value for found in held["cicf"]},
        "PICP": {r.method: r.picp(coverage) for r in results if r.trials},
        "CICP": {f.result.method: f.result.cicp(coverage) for f in held["cicf"]},
    }
    options = []
    for name, values in shares.items():
        of, question, reading = _SPREADS[name]
        words = Words(
            name=f"{name.lower()}_histogram",
            question=question,
            title=f"{name} over {'test points' if of == 'points' else of}",
            reading=reading,
            x=name,
        )
        if values:
            figure = share_histogram(values, coverage, words, places=places, of=of)
            options.append((figure.title, figure))
    return choice_of("Histogram of", options)


_POINTS: Final = (
    "Correct intervals stand close to the line, apart from Monte Carlo error. A wide spread is "
    "coverage that varies with x."
)
_SPREADS: Final[Mapping[str, tuple[str, str, str]]] = {
    "PICF": ("points", "Is coverage the same at every x?", _POINTS),
    "CICF": ("points", "Do confidence intervals cover the mean at every x?", _POINTS),
    "PICP": (
        "trials",
        "What would a single test set show?",
        "Even correct intervals scatter here. An average at the line can hide coverage that "
        "varies with x.",
    ),
    "CICP": (
        "trials",
        "What would a single test set show of confidence intervals?",
        "Errors at neighbouring x go together. Even correct intervals cover the mean at most "
        "points in some trials and at few in others.",
    ),
}
"""By measure: over what it is spread, the question, and how to read it."""


def _runs(
    findings: Sequence[Finding],
    coverage: float,
    names: Sequence[str] | None,
    places: Mapping[str, int],
) -> tuple[Choice, ...]:
    """The intervals of the first trial over the truth, one method at a time."""
    options = []
    for found in findings:
        run = one_run(found.result, coverage)
        if run is None:
            continue
        alone = found.result.x.shape[1] == 1
        words = Words(
            name="one_run",
            question=f"What do the intervals of one trial look like? ({found.result.method})",
            title=f"{formats.level(coverage)} intervals from one training set",
            reading=(
                "Shaded: the intervals. Dashed: the true mean; dotted: the true interval."
                if alone
                else "Each interval belongs to one test point, placed by its true mean. The dashed "
                "line is that mean."
            ),
            x=(names or default_names(1))[0] if alone else "",
        )
        draw = intervals_along_x if alone else intervals_over_truth
        figure = draw(run, words, colour=places[found.result.method])
        options.append((found.result.method, figure))
    return choice_of("Method", options)


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
