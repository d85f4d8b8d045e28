"""The verdict: what the records say, in words that a person can act on."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

import numpy as np

from howsure.core.faults import attempt
from howsure.core.formats import between, p_words, percent
from howsure.core.records import Record, Table
from howsure.metrics.compare import DECIDING
from howsure.report.content import VerdictLine

Calibration = Literal["good", "overconfident", "underconfident", "undecided", "unknown"]


@dataclass(frozen=True, slots=True)
class Findings:
    """The records of one model that a verdict rests on, found once.

    Attributes
    ----------
    records : mapping of metric to Record
        Records of all rows, at the headline coverage where there is one.
    coverage : float
        The headline coverage; NaN if unknown.
    """

    records: dict[str, Record]
    coverage: float

    def get(self, name: str) -> Record | None:
        """The record of a metric, if it was answered."""
        record = self.records.get(name)
        return record if record is not None and not math.isnan(record.value) else None


def headline_coverage(coverages: Iterable[float]) -> float:
    """The coverage that a verdict speaks of: 0.9 if assessed, else the one nearest to it."""
    known = [c for c in coverages if not math.isnan(c)]
    return min(known, key=lambda c: (abs(c - 0.9), -c)) if known else math.nan


def findings(records: Sequence[Record], model: str) -> Findings:
    """Pick the records that a verdict on one model rests on."""
    mine = [r for r in records if r.model == model]
    answered = [r for r in mine if not math.isnan(r.value)]
    coverage = headline_coverage({r.coverage for r in answered if r.metric == "empirical_coverage"})
    chosen: dict[str, Record] = {}
    for record in mine:
        special = record.metric in ("groups_differ", "worst_group_shortfall")
        if record.group and not special:
            continue
        if math.isnan(record.coverage) or math.isnan(coverage) or record.coverage == coverage:
            chosen.setdefault(record.metric, record)
    return Findings(chosen, coverage)


def verdict(
    records: Sequence[Record], *, model: str, comparison: Table | None = None
) -> tuple[VerdictLine, ...]:
    """Say in words what the records of one model show, the most important first."""
    found = findings(records, model)
    state = calibration_state(found)
    makers: tuple[Callable[[], VerdictLine | None], ...] = (
        partial(_coverage_line, found, state),
        partial(_distribution_line, found),
        partial(_group_line, found),
        partial(_difference_line, found),
        partial(_width_line, found),
        partial(_trade_line, found),
        partial(_inputs_line, found),
        partial(_congruence_line, found),
        partial(_point_line, found),
        partial(_comparison_line, comparison),
        partial(_next_step, found, state),
    )
    lines = [attempt(f"verdict on {model}", make, _untold) for make in makers]
    return tuple(line for line in lines if line is not None)


def _untold(reason: str) -> VerdictLine:
    return VerdictLine(f"A sentence is missing here: {reason}.", "undecided")


def calibration_state(found: Findings) -> Calibration:
    """Whether the intervals are proven too narrow, too wide, or neither."""
    cover = found.get("empirical_coverage")
    if cover is None or math.isnan(found.coverage):
        return "unknown"
    claimed = found.coverage if math.isnan(cover.null) else cover.null
    if cover.upper < claimed:
        return "overconfident"
    if cover.lower > claimed:
        return "underconfident"
    if math.isnan(cover.lower) or cover.upper - cover.lower > 0.1:
        return "undecided"
    return "good"


def _coverage_line(found: Findings, state: Calibration) -> VerdictLine:
    question = "Do the intervals cover as often as they claim?"
    cover = found.get("empirical_coverage")
    if cover is None:
        missing = found.records.get("empirical_coverage")
        why = missing.reason if missing is not None and missing.reason else "no intervals"
        return VerdictLine(f"Coverage cannot be assessed: {why}.", "undecided", question)
    seen = f"{percent(cover.value)}{between(cover)}"
    if state == "unknown":
        text = (
            f"The intervals cover {seen}. Their nominal coverage was not given, so nothing can "
            "be said of their calibration."
        )
        return VerdictLine(text, "info", question)
    what = f"The {percent(found.coverage)} intervals cover {seen}"
    if not math.isnan(cover.null):
        what += f", where laws of whole numbers claim {percent(cover.null)}"
    if state == "overconfident":
        return VerdictLine(f"{what}: overconfident, the intervals are too narrow.", "bad", question)
    if state == "underconfident":
        text = f"{what}: underconfident, the intervals are wider than they need to be."
        return VerdictLine(text, "bad", question)
    if state == "undecided":
        rows = "1 row is" if cover.n == 1 else f"{cover.n:,.0f} rows are"
        text = f"{what}: {rows} too few to tell whether that is right."
        return VerdictLine(text, "undecided", question)
    return VerdictLine(f"{what}: in line with the claim.", "good", question)


def _distribution_line(found: Findings) -> VerdictLine | None:
    question = "Do the stated probabilities come true?"
    squares = found.get("mean_squared_z")
    if squares is not None and not math.isnan(squares.lower):
        ratio = math.sqrt(squares.value)
        span = f"{squares.value:.2f} ({squares.lower:.2f}–{squares.upper:.2f}, ideal 1)"
        if squares.lower > 1:
            text = f"Mean squared z-score {span}: errors are {ratio:.2f} times the stated sd."
            return VerdictLine(text, "bad", question)
        if squares.upper < 1:
            text = f"Mean squared z-score {span}: errors are only {ratio:.2f} times the stated sd."
            return VerdictLine(text, "bad", question)
    shape = found.get("pit_uniformity")
    if shape is not None:
        if shape.value < 0.05:
            text = (
                "The probability integral transform is not uniform "
                f"({p_words(shape.value)}): the predictive law has the wrong shape or spread."
            )
            return VerdictLine(text, "bad", question)
        text = f"The stated probabilities come true as far as {shape.n:,.0f} rows can tell"
        return VerdictLine(f"{text} ({p_words(shape.value)}).", "good", question)
    return None


def _group_line(found: Findings) -> VerdictLine | None:
    worst = found.get("worst_group_shortfall")
    if worst is None:
        return None
    question = "Do the intervals cover in every group?"
    cover = found.coverage - worst.value
    span = (
        f" ({100 * (found.coverage - worst.upper):.1f}–{100 * (found.coverage - worst.lower):.1f})"
    )
    where = f"Worst group {worst.group}, {percent(cover)}{span} of {worst.n:,.0f} rows"
    if not worst.reason:
        text = f"{where}: proven {100 * worst.value:.1f} points short of {percent(found.coverage)}."
        return VerdictLine(text, "bad", question)
    if worst.value <= 0:
        text = f"No group falls short; the lowest is {worst.group}, {percent(cover)}{span}."
        return VerdictLine(text, "good", question)
    note = ""
    if not math.isnan(worst.null):
        note = f"; a perfect model's worst would be about {100 * worst.null:.1f} points short"
    text = f"{where}: not proven to fall short{note}."
    return VerdictLine(text, "info", question)


def _difference_line(found: Findings) -> VerdictLine | None:
    test = found.get("groups_differ")
    if test is None:
        return None
    question = "Do groups differ in coverage at all?"
    if test.value < 0.05:
        text = f"Coverage differs between groups beyond chance ({p_words(test.value)})."
        return VerdictLine(text, "bad", question)
    text = f"Differences between groups are within chance ({p_words(test.value)})."
    return VerdictLine(text, "good", question)


_EQUAL = "widths are equal"
"""What the reason of a missing τ says where no width differs from another."""


def _width_line(found: Findings) -> VerdictLine | None:
    question = "Does the width mean anything?"
    tau = found.get("kendall_tau")
    if tau is None:
        missing = found.records.get("kendall_tau")
        if missing is not None and _EQUAL in missing.reason:
            text = "Every row has the same width, so the width says nothing of a row's error."
            return VerdictLine(text, "bad", question)
        return None
    strength = _strength(tau)
    text = f"Width carries {strength} information on the error (Kendall τ = {tau.value:.2f})"
    half, mean = found.get("error_most_certain_50"), found.get("mae")
    if half is not None and mean is not None and mean.value > 0:
        change = half.value / mean.value - 1.0
        way = "lower" if change < 0 else "higher"
        text += f": the most certain half has {percent(abs(change), 0)} {way} error than all rows"
    tone: Literal["good", "bad"] = "bad" if strength == "no" else "good"
    return VerdictLine(f"{text}.", tone, question)


def _strength(tau: Record) -> str:
    if not tau.lower > 0:
        return "no"
    return "little" if tau.value < 0.1 else "some" if tau.value < 0.3 else "much"


def _trade_line(found: Findings) -> VerdictLine | None:
    gain = found.get("characteristic_partial_gain")
    if gain is None or math.isnan(gain.lower) or abs(gain.value) < 1e-6:
        return None
    way = "better" if gain.value >= 0 else "worse"
    text = (
        f"At miss rates up to 20 %, these widths are {percent(abs(gain.value) / 100)} {way} than a "
        f"constant band ({gain.lower:.1f} to {gain.upper:.1f})"
    )
    if not math.isnan(gain.null):
        low, high = gain.null_lower, gain.null_upper
        text += (
            f"; a perfectly specified model of the same widths would be {gain.null:.1f} % better "
            f"({low:.1f} to {high:.1f})"
        )
    tone: Literal["good", "bad", "info"] = "info"
    if gain.lower > 0 or gain.upper < 0:
        tone = "good" if gain.lower > 0 else "bad"
    return VerdictLine(f"{text}.", tone, "What does covering more rows cost in width?")


def _inputs_line(found: Findings) -> VerdictLine | None:
    slab = found.get("worst_slab")
    if slab is None:
        return None
    question = "Does coverage hold for every kind of input?"
    p = slab.p
    seen = f"{percent(slab.value)}{between(slab)}, {p_words(p)}"
    if p < 0.05 and slab.value < slab.null:
        text = f"Coverage fails for some inputs: {seen}, where {slab.options['where']}."
        return VerdictLine(text, "bad", question)
    text = f"Where one half of the rows finds coverage worst, the other half covers {seen}."
    return VerdictLine(text, "info", question)


def _congruence_line(found: Findings) -> VerdictLine | None:
    error = found.get("mean_cce")
    if error is None:
        return None
    question = "Is the belief right at every input?"
    p = error.p
    seen = f"mean CCE {error.value:.3g}, a right model's would be {error.null:.3g}, {p_words(p)}"
    if p < 0.05:
        text = f"At some inputs the belief is far from what happens there ({seen})."
        return VerdictLine(text, "bad", question)
    text = f"The belief fits what happens at every input, as far as {error.n:,.0f} rows can tell"
    return VerdictLine(f"{text} ({seen}).", "good", question)


def _point_line(found: Findings) -> VerdictLine | None:
    bias, error = found.get("bias"), found.get("mae")
    if bias is None or error is None or math.isnan(bias.lower) or bias.lower <= 0 <= bias.upper:
        return None
    if abs(bias.value) < 0.05 * error.value:
        return None
    way = "too high" if bias.value > 0 else "too low"
    text = (
        f"The point forecast is {way} by {abs(bias.value):.3g} on average, "
        f"{percent(abs(bias.value) / error.value, 0)} of its mean absolute error."
    )
    return VerdictLine(text, "bad", "How good is the point forecast?")


def _comparison_line(table: Table | None) -> VerdictLine | None:
    if table is None or len(table) == 0:
        return None
    columns = table.columns
    for metric in DECIDING:
        rows = np.flatnonzero((columns["metric"] == metric) & np.isfinite(columns["difference"]))
        if not np.isfinite(columns["p_value"][rows]).any():
            continue
        levels = np.nan_to_num(columns["coverage"][rows], nan=-1.0)  # none, or unknown
        kinds, pairs_of = np.unique(levels, return_counts=True)
        rows = rows[levels == kinds[pairs_of.argmax()]]  # the level that most models have
        means: dict[str, float] = {}
        for side in "ab":
            pairs = zip(columns[f"model_{side}"][rows], columns[f"value_{side}"][rows], strict=True)
            for model, mean in pairs:
                means.setdefault(str(model), float(mean))
        two = sorted(means, key=lambda model: means[model])[:2]
        first, second = columns["model_a"][rows], columns["model_b"][rows]
        both = rows[np.isin(first, two) & np.isin(second, two)]
        if not len(both):
            continue
        i = both[0]
        difference, p = float(columns["difference"][i]), float(columns["p_value"][i])
        a, b = str(columns["model_a"][i]), str(columns["model_b"][i])
        better, worse = (a, b) if difference < 0 else (b, a)
        title = metric.replace("_", " ")
        many = len(means) > 2
        if p < 0.05:
            rank = f", the next best of {len(means):,}," if many else ""
            text = (
                f"{better} beats {worse}{rank} in {title} by {abs(difference):.3g} ({p_words(p)})."
            )
            return VerdictLine(text, "info", "Which model is better?")
        rank = f", the best of {len(means):,}," if many else ""
        seen = "as no row differs" if math.isnan(p) else p_words(p)
        text = f"{a} and {b}{rank} cannot be told apart in {title} ({seen})."
        return VerdictLine(text, "undecided", "Which model is better?")
    return None


def _next_step(found: Findings, state: Calibration) -> VerdictLine:
    question = "What to do next?"
    worst, test = found.get("worst_group_shortfall"), found.get("groups_differ")
    uneven = (test is not None and test.value < 0.05) or (worst is not None and not worst.reason)
    if state in ("overconfident", "underconfident"):
        way = "widen" if state == "overconfident" else "narrow"
        text = f"{way} the intervals on held-out rows with howsure recalibrate"
        if uneven:
            text += ", then look at the groups again: one correction for all cannot mend each"
    elif uneven and worst is not None:
        column = worst.group.partition("=")[0]
        text = (
            f"calibrate within {column} on held-out rows, since coverage is right only on average"
        )
    elif state == "undecided":
        cover = found.get("empirical_coverage")
        spread = math.sqrt(found.coverage * (1 - found.coverage))
        need = math.ceil((1.96 * spread / 0.02) ** 2)
        have = cover.n if cover is not None else 0
        text = f"collect more rows: about {need:,} tell coverage to ±2 points, {have:,.0f} are here"
    elif state == "unknown":
        text = "say which coverage the intervals claim (--coverage 0.9), or give probabilities"
        if found.get("empirical_coverage") is None:
            text = "give intervals, quantiles, an sd or samples beside the point forecast"
    elif _flat(found):
        text = (
            "use a model whose width depends on the input: calibration is right, sharpness is not"
        )
    else:
        text = "nothing to mend on these rows; repeat on rows from where the model will be used"
    return VerdictLine(f"Best next step: {text}.", "info", question)


def _flat(found: Findings) -> bool:
    """Whether widths are proven equal, or seen to say nothing of the errors."""
    tau = found.records.get("kendall_tau")
    if tau is None:
        return False
    return _EQUAL in tau.reason if math.isnan(tau.value) else _strength(tau) == "no"
