"""What a test of coverage at every point found, in plain words."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, final

import numpy as np

from howsure.core import formats
from howsure.core.arrays import FloatArray, IntArray
from howsure.core.errors import UnanswerableError
from howsure.core.records import Table
from howsure.metrics.pointwise import Brier
from howsure.protocols.pointwise_regions import default_names, failing_regions
from howsure.protocols.pointwise_result import PointwiseResult, Which
from howsure.protocols.pointwise_views import failing_ranges
from howsure.report.document import GlossaryEntry, Tone, VerdictLine

_APART: Final = 2.0
"""Standard errors of a difference past which methods are told apart."""
_NEAR: Final = 0.02
"""Distance from the nominal coverage that an average may have and look right."""
MARGIN: Final = 0.03
"""How near its claim coverage must be proven to lie, at half of the test points, to earn a ✓."""
_VERDICTS: Final = {-1: "seldom", 1: "often"}
_SUBJECT: Final[dict[Which, str]] = {
    "picf": "prediction intervals",
    "cicf": "confidence intervals",
}


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Finding:
    """How the intervals of one method cover at the points of one world, at one coverage.

    Attributes
    ----------
    result : PointwiseResult
        The test.
    which : {"picf", "cicf"}
        Coverage of a new y, or of the mean.
    coverage : float
        The nominal coverage.
    value : ndarray of float, shape (n,)
        Coverage at each test point.
    verdict : ndarray of int, shape (n,)
        Where it is surely off: −1 too seldom, +1 too often.
    reach : float
        How far coverage may still lie from the nominal one at half of the test points: the
        median over points of the far end of the interval.
    score : Brier
        Its distance from the nominal coverage over points.
    where : Table
        Regions where it is surely off, those that add most to the score first: where, points,
        coverage, verdict.
    """

    result: PointwiseResult
    which: Which
    coverage: float
    value: FloatArray
    verdict: FloatArray
    reach: float
    score: Brier
    where: Table

    @property
    def mean(self) -> float:
        """Coverage averaged over the test points."""
        return float(self.value.mean())

    @property
    def off(self) -> float:
        """Share of the test points at which coverage is surely off."""
        return float((self.verdict != 0).mean())

    @property
    def near(self) -> bool:
        """Whether at half of the test points coverage is proven near the nominal one."""
        return self.reach <= MARGIN

    @property
    def typical(self) -> float:
        """Typical distance from the nominal coverage: the root of the corrected Brier score."""
        return math.sqrt(max(self.score.corrected, 0.0))


def finding(
    result: PointwiseResult, which: Which, coverage: float, names: Sequence[str] | None = None
) -> Finding:
    """How the intervals of a method cover, as words and figures need it."""
    held = result.by_trial(which, coverage)
    if len(held) < 2:
        raise UnanswerableError(f"at least two trials are needed, {len(held)} succeeded")
    band = result.band(which, coverage)
    return Finding(
        result=result,
        which=which,
        coverage=coverage,
        value=band.value,
        verdict=band.verdict(coverage).astype(np.float64),
        reach=float(np.median(np.maximum(band.upper - coverage, coverage - band.lower))),
        score=result.brier(which, coverage),
        where=_where(result, which, coverage, names),
    )


def method_line(found: Finding, *, named: bool = False) -> VerdictLine:
    """What is to be said of the intervals of one method."""
    result, subject = found.result, _SUBJECT[found.which]
    what = "a new y" if found.which == "picf" else "the true mean"
    low, high = (_percent(float(end)) for end in np.quantile(found.value, [0.05, 0.95]))
    owner = f"{result.method}: the" if named else "The"
    average = (
        f"{owner} {_percent(found.coverage)} {subject} hold {what} with probability "
        f"{_percent(found.mean)} on average over x"
    )
    question = f"{result.method}: {subject}"
    if not found.off:
        text = (
            f"{average}, and coverage is surely off at none of {len(found.value):,} test points "
            f"after {result.trials:,} trials; nine in ten lie between {low} and {high}."
        )
        if not found.near:
            text += f" It may still be off by {_percent(found.reach)} at half of them."
        return VerdictLine(text, "good" if found.near else "undecided", question)
    shares = [(float((found.verdict == sign).mean()), words) for sign, words in _VERDICTS.items()]
    told = " and ".join(f"too {words} at {_percent(share)}" for share, words in shares if share)
    text = (
        f"{average}, but between {low} and {high} at nine in ten test points: surely {told} of them"
    )
    if len(found.where):
        where = found.where.columns
        there = _percent(float(where["coverage"][0]))
        text += f", chiefly where {where['where'][0]} ({there} there)"
    return VerdictLine(f"{text}.", "bad", question)


def failed_line(result: PointwiseResult, why: str) -> VerdictLine:
    """What to say of a method that cannot be judged."""
    tone: Tone = "info" if result.trials else "bad"
    return VerdictLine(f"{result.method} cannot be judged: {why}.", tone, result.method)


def comparison_line(found: Sequence[Finding]) -> VerdictLine | None:
    """Which method of a world comes nearest to its claim at single x; None for fewer than two."""
    if len(found) < 2:
        return None
    ranked = sorted(found, key=lambda item: item.score.corrected)
    best, second = ranked[0], ranked[1]
    told = ", ".join(
        f"{item.result.method} {100 * item.typical:.1f}" for item in ranked if item is not best
    )
    gap = second.score.corrected - best.score.corrected
    error = math.hypot(best.score.standard_error, second.score.standard_error)
    start = f"At {_percent(found[0].coverage)}, {best.result.method} comes nearest to its claim"
    text = (
        f"{start} at single x: its coverage is typically off by {100 * best.typical:.1f} "
        f"percentage points ({told})."
    )
    question = "Which method is right at every x?"
    if not gap > _APART * error:
        text += f" It is not surely ahead of {second.result.method}."
        return VerdictLine(text, "undecided", question)
    return VerdictLine(text, "info", question)


def headline(found: Sequence[Finding], worlds: int) -> VerdictLine | None:
    """The main message over all prediction intervals tested; None where nothing was."""
    if not found:
        return None
    if len(found) == 1:
        return method_line(found[0], named=True)
    holds = sum(not item.off for item in found)
    hidden = sum(bool(item.off) and abs(item.mean - item.coverage) <= _NEAR for item in found)
    nominal = _percent(found[0].coverage)
    places = f"{worlds} worlds" if worlds > 1 else f"world {found[0].result.world}"
    if holds == len(found):
        text = f"All {holds} methods tested in {places} cover {nominal} at every x, as far as seen."
        return VerdictLine(text, "good" if all(item.near for item in found) else "undecided")
    text = (
        f"In {len(found) - holds} of {len(found)} tests in {places}, {nominal} prediction "
        "intervals cover too seldom or too often at some x."
    )
    if hidden:
        text += (
            f" In {hidden} of them the average coverage is within {100 * _NEAR:.0f} points of "
            "the claim and hides it."
        )
    return VerdictLine(text, "bad")


def _where(
    result: PointwiseResult, which: Which, coverage: float, names: Sequence[str] | None
) -> Table:
    """Regions where coverage is surely off: runs along x, or the leaves of a tree."""
    if result.x.shape[1] == 1:
        name = (names or default_names(1))[0]
        runs = failing_ranges(result, which, coverage).columns
        words = [
            f"{name} is {formats.minus(formats.short(low))} to {formats.minus(formats.short(high))}"
            if low < high
            else f"{name} is {formats.minus(formats.short(low))}"
            for low, high in zip(runs["from"], runs["to"], strict=True)
        ]
        order = _heaviest(runs["points"], runs["coverage"], coverage)
        columns = {name: runs[name][order] for name in ("points", "coverage", "verdict")}
        told = np.array(words, dtype=object)[order]
        return Table(name=f"{which}_where", columns={"where": told, **columns})
    try:
        regions = failing_regions(result, which, coverage, names)
    except UnanswerableError:
        return Table(name=f"{which}_where", columns={})
    off = np.flatnonzero(regions.columns["verdict"] != 0)
    columns = {name: regions.columns[name][off] for name in ("points", "coverage")}
    off = off[_heaviest(columns["points"], columns["coverage"], coverage)]
    kept = ("where", "points", "coverage", "verdict")
    return Table(
        name=f"{which}_where",
        columns={name: regions.columns[name][off] for name in kept},
        notes=regions.notes,
    )


def _heaviest(points: FloatArray, value: FloatArray, coverage: float) -> IntArray:
    """Regions in the order of what they add to the Brier score."""
    return np.argsort(-points * np.square(value - coverage), kind="stable")


def _percent(share: float) -> str:
    return formats.percent(share).replace(" ", "\N{NO-BREAK SPACE}")


GLOSSARY: Final = (
    GlossaryEntry(
        name="picp",
        title="PICP",
        meaning=(
            "Prediction interval coverage probability: the share of one test set's y that the "
            "intervals of one trial hold. One number a trial, and an average over x."
        ),
        formula="PICP_s = mean_i 1{l_si ≤ y_i ≤ u_si}",
        source="Sluijterman, Cator and Heskes, arXiv 2106.03395, definition 5",
    ),
    GlossaryEntry(
        name="picf",
        title="PICF",
        meaning=(
            "Prediction interval coverage fraction: the probability that the interval at x holds "
            "a new y there, over training sets. One number a test point."
        ),
        formula="PICF(x) = mean_s P(l_s(x) ≤ Y ≤ u_s(x)), exact from the world's law of Y",
        source="the same, equation 6",
    ),
    GlossaryEntry(
        name="cicp",
        title="CICP",
        meaning=(
            "Share of the test points whose true mean the confidence intervals of one trial hold. "
            "Errors at neighbouring x go together, so single trials lie far from the nominal level "
            "even where the intervals are perfect."
        ),
        formula="CICP_s = mean_i 1{l_si ≤ f(x_i) ≤ u_si}",
        source="the same, definition 6",
    ),
    GlossaryEntry(
        name="cicf",
        title="CICF",
        meaning="Share of the trials whose confidence interval at x holds the true mean there.",
        formula="CICF(x) = mean_s 1{l_s(x) ≤ f(x) ≤ u_s(x)}",
        source="the same, section 4",
    ),
    GlossaryEntry(
        name="brier",
        title="Brier score of coverage",
        meaning=(
            "How far coverage at single x lies from the nominal level, squared and averaged; 0 is "
            "perfect. The raw score holds Monte-Carlo error, shown beside it; the corrected one "
            "does not, and may come out below 0. Bias² is what the average coverage accounts for, "
            "variance what differs between x. Its root is the typical distance."
        ),
        formula="mean_i (PICF(x_i) − (1 − α))²",
        source="the same, equation 8; the correction is howsure's",
        direction="lower is better",
    ),
    GlossaryEntry(
        name="points_off",
        title="Points surely off",
        meaning=(
            "Share of the test points where the nominal level lies outside a Monte-Carlo band "
            "that holds at all points together."
        ),
        direction="lower is better",
    ),
    GlossaryEntry(
        name="log_likelihood",
        title="Log-likelihood",
        meaning=(
            "Mean log density of the test set's y. A wrong interval may have the better one: look "
            "at coverage beside it."
        ),
        direction="higher is better",
        units="nats",
    ),
)
