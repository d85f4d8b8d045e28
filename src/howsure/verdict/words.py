"""From a finding to sentences; what follows what was seen depends on the state alone."""

from __future__ import annotations

import math
import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING

from howsure.core.formats import fixed, listed, p_words, percent
from howsure.engine.finding import FEWEST_ROWS, LEVEL, Draft, Finding, points
from howsure.recalibration.dispatch import METHODS
from howsure.verdict.findings import questions
from howsure.verdict.without_y import LACKING

if TYPE_CHECKING:
    from howsure.recalibration import FittedParameter
    from howsure.verdict.advice import Advice, RecalibrationTrial


def sentence(finding: Finding, draft: Draft, cause: str = "") -> str:
    """The finding in words."""
    question = questions()[finding.id]
    seen, fault, well, after, limit, _ = question.words(draft, finding)
    few = f"{FEWEST_ROWS} rows are the least by which a part of them is condemned."
    if not fault:
        told = f"{seen}."
    elif cause:
        told = f"{seen}; this is part of {questions()[cause].cause}."
    elif finding.state == "bad":
        told = f"{seen}: {fault}."
    elif finding.state == "negligible":
        told = f"{seen}: {fault}. This is within the tolerance of {_tolerated(finding)}."
    elif finding.state == "caution" and finding.p_adjusted < LEVEL:
        told = f"{seen}. {few}"
    elif finding.state == "caution" and limit:
        told = f"{seen}. {limit}"
    elif finding.state == "caution":
        told = (
            f"{seen}. Perhaps {fault}: {p_words(finding.p)} alone, not significant among all tests."
        )
    elif finding.state == "good":
        told = f"{seen}: {well}."
    else:
        more = more_rows(finding, draft)
        told = f"{seen}. No {question.sought} is proven."
        if more == math.inf:
            told = f"{seen}. {limit}"
        elif not math.isnan(more):
            told = f"{seen}. Too few rows to tell; about {more:,.0f} more would settle it."
    return f"{told} {after}".strip()


def clause(finding: Finding, draft: Draft) -> str:
    """The finding in a part of a sentence."""
    words = questions()[finding.id].words(draft, finding)
    return words.clause or words.fault or words.seen


def _tolerated(finding: Finding) -> str:
    return points(finding.tolerance) if finding.unit == "share" else percent(finding.tolerance)


def more_rows(finding: Finding, draft: Draft) -> float:
    """How many more rows would bring the interval within the margin, or prove what is seen.

    Of the worst of many parts it is not known: with more rows another part may be the worst.
    NaN of what is decided, too. Infinite where no number of rows would tell.
    """
    if finding.where or finding.state != "undecided":
        return math.nan
    if not draft.telling:
        return math.inf
    margin = max(questions()[finding.id].margin, finding.tolerance)
    spans = [(finding.effect, finding.lower, finding.upper), *draft.beside]
    pairs = [((high - low) / 2.0, abs(effect)) for effect, low, high in spans]
    known = all(math.isfinite(half) and half > 0 for half, _ in pairs)
    if math.isnan(margin) or not known or math.isnan(draft.n):
        return math.nan
    within = max(half / (margin - size) if size < margin else math.inf for half, size in pairs)
    proven = min(_JOINT * half / max(size, 1e-9) for half, size in pairs)
    more = draft.n * (min(within, proven) ** 2 - 1.0)
    return _rounded_up(more) if more > 0 else math.nan


def _rounded_up(rows: float) -> float:
    """To two digits."""
    digits = 10 ** max(math.floor(math.log10(max(rows, 1.0))) - 1, 0)
    return float(math.ceil(rows / digits) * digits)


_JOINT = 1.5
"""By what factor one of about ten tests needs a smaller error than a test alone."""


def step(
    advice: Advice,
    learnt: Sequence[FittedParameter],
    lifted: tuple[str, float, float] | None,
) -> str:
    """A recalibration in words: the way, its gain on held-out rows, and what it heals."""
    told = f"{_done(advice, learnt)}. In five-fold cross-validation {_gain(advice, advice.score)}."
    if lifted is not None:
        name, before, after = lifted
        told += f" Coverage of {name} goes from {percent(before)} to {percent(after)}."
    return " ".join([told, *_effect(advice)])


def proof(advice: Advice, learnt: Sequence[FittedParameter], trial: RecalibrationTrial) -> str:
    """What rows that had no part in it say of a recalibration that others advise."""
    done = _done(advice, learnt)
    told = f"{done[0].upper()}{done[1:]}."
    if trial.reason:
        return f"{told} It could not be tested on the held-back rows: {trial.reason}."
    told += f" On the held-back rows {_gain(trial, advice.score)}."
    if trial.accepted:
        return " ".join([told, *_effect(trial)])
    why = f": it worsens {trial.harms}" if trial.harms else ""
    return f"{told} They do not confirm it{why}, so it was not applied."


def _done(advice: Advice, learnt: Sequence[FittedParameter]) -> str:
    """What a recalibration does, and from which rows."""
    what = _mended(advice.method, learnt).format(by=" and ".join(advice.by))
    return what + (f", from rows since {advice.since} alone" if advice.since else "")


def _gain(found: Advice | RecalibrationTrial, score: str) -> str:
    """By how much a score falls, with its error."""
    places = 2 if abs(found.upper) < 0.01 else 1
    ends = f"{fixed(100 * found.lower, places)} to {fixed(100 * found.upper, places)}"
    share = f"{fixed(100 * found.gain, places)} %"
    if math.isnan(found.lower):
        return f"this cuts the {score} by {share}; too few independent times tell its error"
    if found.lower > 0:
        return f"this cuts the {score} by {share} ({ends})"
    return f"the {score} does not change beyond its error (gain {share}, {ends})"


def _effect(found: Advice | RecalibrationTrial) -> list[str]:
    """Which faults it heals, and which it leaves."""
    told = []
    if found.heals:
        told.append(f"After it, no fault of {_named(found.heals)} remains.")
    if found.leaves:
        told.append(f"It does not correct {_named(found.leaves)}.")
    return told


def _mended(method: str, learnt: Sequence[FittedParameter]) -> str:
    """What a recalibration does, with the one number that it learnt if there is one."""
    info = METHODS[method]
    return (info.says(learnt) if learnt else "") or info.words


def _named(ids: Sequence[str]) -> str:
    return listed([questions()[each].name or each for each in ids], last="or")


def _why_harmful(part: str) -> str:
    if part == LACKING:
        return f"{LACKING} may be those of the largest errors"
    return f"it would harm {part}"


def nothing_helps(
    red: Sequence[Finding],
    nearest: tuple[str, float, int] | None,
    refused: RecalibrationTrial | None,
    score: str,
    reason: str,
) -> str:
    """That nothing that was tried helps, and what the bad findings need instead."""
    if reason:
        told = f"No next step was found: {reason}."
    elif refused is not None:
        told = (
            f"Recalibration by {refused.method} would cut the {score} by {percent(refused.gain)}. "
            f"It was refused, because {_why_harmful(refused.harms)}."
        )
    else:
        told = "Nothing that was tried helps beyond chance."
    if nearest is not None:
        method, gain, rows = nearest
        told += (
            f" The nearest is {method}, with a gain of {percent(gain)}. "
            f"About {_rounded_up(rows):,.0f} rows would prove it."
        )
    needs = [questions()[each.id].needs.format(where=each.where) for each in red]
    return " ".join([told, *dict.fromkeys(filter(None, needs))])


def command(prefix: str | None, advice: Advice) -> str:
    """What does it: a line for the shell that begins so, or a call in Python; nothing of None."""
    if prefix is None:
        return ""
    if prefix:
        by = f" --by {shlex.quote(','.join(advice.by))}" if advice.by else ""
        since = f" --since {shlex.quote(advice.since)}" if advice.since else ""
        return f"{prefix} --method {advice.method}{by}{since} -o recalibrated.csv"
    by = f", by={','.join(advice.by)!r}" if advice.by else ""
    since = f", since={advice.since!r}" if advice.since else ""
    return f"howsure.recalibrate(new, calibration, method={advice.method!r}{by}{since})"
