"""Figures of one world: coverage along x, its spread, and the intervals of one trial."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from howsure.core import formats
from howsure.core.arrays import FloatArray
from howsure.core.errors import UnanswerableError
from howsure.core.records import Curve
from howsure.figures import Figure
from howsure.figures.pointwise import (
    OneRun,
    Words,
    coverage_profile,
    intervals_along_x,
    intervals_over_truth,
    share_histogram,
)
from howsure.protocols.pointwise_regions import (
    BINS,
    default_names,
    local_curve,
    principal_component,
)
from howsure.protocols.pointwise_result import PointwiseResult, Which
from howsure.protocols.pointwise_views import curves
from howsure.report.document import Choice, Option
from howsure.report.pointwise_words import Finding

MOST_COLUMNS: Final = 12
"""The most columns of x along which coverage is shown."""
ALL: Final[tuple[Which, ...]] = ("picf", "cicf")


def panels(
    results: Sequence[PointwiseResult],
    held: Mapping[Which, Sequence[Finding]],
    coverage: float,
    names: Sequence[str] | None,
) -> tuple[Choice, ...]:
    """Every figure of one world."""
    places = {result.method: place for place, result in enumerate(results)}
    found = [
        _profiles(held, coverage, names, places),
        _histograms(results, held, coverage, places),
        _runs(held["picf"], coverage, names, places),
    ]
    return tuple(panel for panel in found if panel is not None)


def _profiles(
    held: Mapping[Which, Sequence[Finding]],
    coverage: float,
    names: Sequence[str] | None,
    places: Mapping[str, int],
) -> Choice | None:
    """Coverage along x: its only column, or the one chosen, or the first principal component."""
    if not held["picf"]:
        return None
    first = held["picf"][0].result
    if first.x.shape[1] == 1:
        title = (names or default_names(1))[0]
        figures = [
            _profile(which, [_along_x(found) for found in held[which]], coverage, title, places, ())
            for which in ALL
            if held[which]
        ]
        return Choice(label="", options=(Option(label="", figures=tuple(figures)),))
    options = []
    for title, values, notes in _directions(held["picf"], names):
        figures = [
            _profile(
                which,
                [
                    local_curve(
                        found.result,
                        which,
                        coverage,
                        values,
                        name=title,
                        bins=_bins(len(values)),
                    )
                    for found in held[which]
                ],
                coverage,
                title,
                places,
                notes,
            )
            for which in ALL
            if held[which]
        ]
        options.append(Option(label=title, figures=tuple(figures)))
    return Choice(label="Along", options=tuple(options))


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
    subject = "a new y" if which == "picf" else "the true mean"
    whole = "prediction" if which == "picf" else "confidence"
    words = Words(
        name=f"{which}_profile",
        question=f"Where along {title} do {whole} intervals hold {subject} as claimed?",
        title=f"{which.upper()} along {title}",
        reading=(
            "Right intervals follow the dashed line. Below it they are too narrow or in the wrong "
            "place, above it too wide. Where a band leaves the line, coverage is surely off."
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
) -> Choice | None:
    """Coverage over test points, and over trials, for new y and for the mean."""
    figures = []
    points: dict[Which, tuple[str, str]] = {
        "picf": ("Is coverage the same at every x?", "PICF over test points"),
        "cicf": ("Do confidence intervals hold the mean at every x?", "CICF over test points"),
    }
    for which in ALL:
        values = {found.result.method: found.value for found in held[which]}
        if values:
            question, title = points[which]
            words = Words(
                name=f"{which}_histogram",
                question=question,
                title=title,
                reading=(
                    "Right intervals stand close about the line; Monte-Carlo error widens them a "
                    "little. A wide spread is coverage that differs from x to x."
                ),
                x=which.upper(),
            )
            figures.append(share_histogram(values, coverage, words, places=places, of="points"))
    shares = {
        "PICP": {r.method: r.picp(coverage) for r in results if r.trials},
        "CICP": {f.result.method: f.result.cicp(coverage) for f in held["cicf"]},
    }
    readings = {
        "PICP": (
            "What a single test set would show. Even right intervals scatter here, and an average "
            "at the line hides what differs from x to x."
        ),
        "CICP": (
            "Errors at neighbouring x go together: even right confidence intervals hold the mean "
            "at most points in some trials and at few in others."
        ),
    }
    for title, values in shares.items():
        if values:
            words = Words(
                name=f"{title.lower()}_histogram",
                question=f"What would one data set say? ({title})",
                title=f"{title} over trials",
                reading=readings[title],
                x=title,
            )
            figures.append(share_histogram(values, coverage, words, places=places, of="trials"))
    if not figures:
        return None
    return Choice(label="", options=(Option(label="", figures=tuple(figures)),))


def _runs(
    findings: Sequence[Finding],
    coverage: float,
    names: Sequence[str] | None,
    places: Mapping[str, int],
) -> Choice | None:
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
                "The shaded intervals against the true mean (dashed) and the true interval "
                "(dotted). Points are the test set."
                if alone
                else "Each interval belongs to one test point, placed by its true mean: the "
                "dashed line is the mean itself. Points are the test set."
            ),
            x=(names or default_names(1))[0] if alone else "",
        )
        draw = intervals_along_x if alone else intervals_over_truth
        figure = draw(run, words, colour=places[found.result.method])
        options.append(Option(label=found.result.method, figures=(figure,)))
    return Choice(label="Method", options=tuple(options)) if options else None


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
