"""What a test of coverage at every point found, in plain words."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, final

import numpy as np

from howsure.core import formats
from howsure.core.arrays import FloatArray, IntArray
from howsure.core.errors import UnanswerableError
from howsure.core.records import Table
from howsure.metrics.pointwise import Brier
from howsure.report.document import GlossaryEntry, Tone, VerdictLine
from howsure.studies.engine import named
from howsure.studies.pointwise.regions import default_names, failing_regions
from howsure.studies.pointwise.result import PointwiseResult, Which
from howsure.studies.pointwise.views import failing_ranges

_APART: Final = 2.0
"""Standard errors of a difference past which methods are told apart."""
_NEAR: Final = 0.02
"""Distance from the nominal coverage that an average may have and look right."""
MARGIN: Final = 0.03
"""How near nominal coverage must be shown to lie, at half of the test points, to earn a ✓."""
_VERDICTS: Final = {-1: "below", 1: "above"}
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
        Where it differs significantly from nominal: −1 below, +1 above.
    reach : float
        How far coverage may still lie from the nominal one at half of the test points: the
        median over points of the far end of the interval.
    score : Brier
        Its distance from the nominal coverage over points.
    where : Table
        Regions where it differs significantly from nominal, those that add most to the score
        first: where, points, coverage, verdict.
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
        """Share of the test points at which coverage differs significantly from nominal."""
        return float((self.verdict != 0).mean())

    @property
    def tone(self) -> Tone:
        """Whether it fails, is shown to be right, or neither."""
        return "bad" if self.off else "good" if self.near else "undecided"

    @property
    def near(self) -> bool:
        """Whether at half of the test points coverage is shown to be near the nominal one."""
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


def title_of(results: Mapping[str, Sequence[PointwiseResult]]) -> str:
    """What was studied."""
    methods = list(dict.fromkeys(one.method for held in results.values() for one in held))
    on = f"{named(methods, 'method')} on {named(list(map(str, results)), 'world')}"
    return f"Are prediction intervals right at every x? {on}"


def method_line(found: Finding) -> VerdictLine:
    """What is to be said of the intervals of one method."""
    result, subject = found.result, _SUBJECT[found.which]
    what = "a new y" if found.which == "picf" else "the true mean"
    low, high = (_percent(float(end)) for end in np.quantile(found.value, [0.05, 0.95]))
    average = (
        f"The {_percent(found.coverage)} {subject} contain {what} with probability "
        f"{_percent(found.mean)} on average over x."
    )
    question = f"{result.method}: {subject}"
    spread = f"between {low} and {high} at nine in ten test points"
    if not found.off:
        text = (
            f"{average} Coverage lies {spread}, and differs significantly from nominal at none of "
            f"{len(found.value):,} ({result.trials:,} trials)."
        )
        if not found.near:
            text += f" At half of them it may still be off by {_percent(found.reach)}."
        return VerdictLine(text, found.tone, question)
    shares = [(float((found.verdict == sign).mean()), words) for sign, words in _VERDICTS.items()]
    told = " and ".join(f"{words} at {_percent(share)}" for share, words in shares if share)
    text = f"{average} It lies {spread}: significantly {told} of them."
    if len(found.where):
        where = found.where.columns
        there = _percent(float(where["coverage"][0]))
        text += f" It fails most where {where['where'][0]} ({there} there)."
    return VerdictLine(text, found.tone, question)


def failed_line(result: PointwiseResult, why: str) -> VerdictLine:
    """What to say of a method that cannot be judged."""
    tone: Tone = "info" if result.trials else "bad"
    return VerdictLine(f"{result.method} cannot be judged: {why}.", tone, result.method)


def comparison_line(found: Sequence[Finding]) -> VerdictLine | None:
    """Which method of a world covers closest to nominal at single x; None for fewer than two."""
    if len(found) < 2:
        return None
    ranked = sorted(found, key=lambda item: item.score.corrected)
    best, second = ranked[0], ranked[1]
    told = ", ".join(
        f"{item.result.method} {100 * item.typical:.1f}" for item in ranked if item is not best
    )
    gap = second.score.corrected - best.score.corrected
    error = math.hypot(best.score.standard_error, second.score.standard_error)
    text = (
        f"{best.result.method} covers closest to nominal {_percent(found[0].coverage)}: at a given "
        f"x it is typically off by {100 * best.typical:.1f} percentage points ({told})."
    )
    question = "Which method covers best at every x?"
    if not gap > _APART * error:
        text += f" Its lead over {second.result.method} is not significant."
        return VerdictLine(text, "undecided", question)
    return VerdictLine(text, "info", question)


def headline(found: Sequence[Finding], worlds: int) -> VerdictLine | None:
    """The main message over all prediction intervals tested; None where nothing was."""
    if not found:
        return None
    failed = [item for item in found if item.off]
    hidden = sum(abs(item.mean - item.coverage) <= _NEAR for item in failed)
    nominal = _percent(found[0].coverage)
    first = found[0]
    places = f"{worlds} worlds" if worlds > 1 else f"world {first.result.world}"
    of = f"The {nominal} prediction intervals of {first.result.method}"
    near = f"average coverage, within {100 * _NEAR:.0f} points of nominal, hides it."
    if not failed:
        text = f"None of {len(found)} methods tested in {places} covers significantly below or "
        text += f"above {nominal} at any x."
        if len(found) == 1:
            text = f"{of} do not cover significantly below or above nominal at any x."
        return VerdictLine(text, "good" if all(item.near for item in found) else "undecided")
    if len(found) == 1:
        text = f"{of} under- or over-cover significantly at {_percent(first.off)} of test points."
        return VerdictLine(f"{text} {near[:1].upper()}{near[1:]}" if hidden else text, "bad")
    text = (
        f"In {len(failed)} of {len(found)} tests in {places}, {nominal} prediction intervals "
        "under- or over-cover significantly at some x."
    )
    return VerdictLine(f"{text} In {hidden} of them {near}" if hidden else text, "bad")


def _where(
    result: PointwiseResult, which: Which, coverage: float, names: Sequence[str] | None
) -> Table:
    """Regions of significant failure: runs along x, or the leaves of a tree."""
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
            "intervals of one trial contain. One number a trial, and an average over x."
        ),
        formula="PICP_s = mean_i 1{l_si ≤ y_i ≤ u_si}",
        source="Sluijterman, Cator and Heskes, arXiv 2106.03395, definition 5",
    ),
    GlossaryEntry(
        name="picf",
        title="PICF",
        meaning=(
            "Prediction interval coverage fraction: the probability that the interval at x "
            "contains a new y there, over training sets. One number a test point."
        ),
        formula="PICF(x) = mean_s P(l_s(x) ≤ Y ≤ u_s(x)), exact from the world's distribution of Y",
        source="the same, equation 6",
    ),
    GlossaryEntry(
        name="cicp",
        title="CICP",
        meaning=(
            "Share of the test points whose true mean the confidence intervals of one trial "
            "contain. Errors at neighbouring x go together, so single trials lie far from nominal "
            "even for correct intervals."
        ),
        formula="CICP_s = mean_i 1{l_si ≤ f(x_i) ≤ u_si}",
        source="the same, definition 6",
    ),
    GlossaryEntry(
        name="cicf",
        title="CICF",
        meaning="Share of the trials whose confidence interval at x contains the true mean there.",
        formula="CICF(x) = mean_s 1{l_s(x) ≤ f(x) ≤ u_s(x)}",
        source="the same, section 4",
    ),
    GlossaryEntry(
        name="brier",
        title="Brier score of coverage",
        meaning=(
            "Squared distance of coverage at single x from nominal, averaged; 0 is perfect. The "
            "raw score includes Monte Carlo error, shown beside it; the corrected one does not, "
            "and may be negative. Bias² is what average coverage accounts for, variance what "
            "differs between x. Its root is the typical distance."
        ),
        formula="mean_i (PICF(x_i) − (1 − α))²",
        source="the same, equation 8; the correction is howsure's",
        direction="lower is better",
    ),
    GlossaryEntry(
        name="points_off",
        title="Failing points",
        meaning=(
            "Share of the test points where coverage differs significantly from nominal: outside a "
            "simultaneous Monte Carlo band."
        ),
        direction="lower is better",
    ),
    GlossaryEntry(
        name="log_likelihood",
        title="Log-likelihood",
        meaning=(
            "Mean log density of the test set's y. A wrong interval may have the better one: "
            "compare coverage too."
        ),
        direction="higher is better",
        units="nats",
    ),
)
