"""Findings in words: what was seen, what to do next, and whether a model can be trusted."""

from __future__ import annotations

import math
import shlex
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal, final

from howsure.core.classes import frozen
from howsure.core.formats import fixed, listed, number, p_words, percent
from howsure.core.text import capitalized
from howsure.engine.finding import LEVEL, MIN_ROWS_OF_PART, Draft, Finding, Standing, State, points
from howsure.recalibration.dispatch import METHODS
from howsure.topics.compare import per_cent
from howsure.verdict.findings import questions
from howsure.verdict.without_y import LACKING

if TYPE_CHECKING:
    from howsure.recalibration import FittedParameter
    from howsure.recalibration.info import MethodInfo
    from howsure.verdict.advice import Advice, RecalibrationTrial


def sentence(finding: Finding, draft: Draft, cause: str = "") -> str:
    """The finding in words."""
    question = questions()[finding.id]
    seen, fault, well, after, limit, _ = question.words(draft, finding)
    few = f"A part of the rows needs at least {MIN_ROWS_OF_PART} rows to fail."
    if not fault:
        told = f"{seen}."
    elif cause:
        told = f"{seen}; this is part of {questions()[cause].cause}."
    elif finding.state == "bad":
        told = f"{seen}: {fault}."
    elif finding.state == "negligible":
        in_points = finding.unit == "share"
        tolerance = points(finding.tolerance) if in_points else percent(finding.tolerance)
        told = f"{seen}: {fault}. This is within the tolerance of {tolerance}."
    elif finding.state == "caution" and finding.p_adjusted < LEVEL:
        told = f"{seen}. {few}"
    elif finding.state == "caution" and limit:
        told = f"{seen}. {limit}"
    elif finding.state == "caution":
        told = (
            f"{seen}. Possibly {fault}: {p_words(finding.p)}, not significant after correction "
            "for all tests."
        )
    elif finding.state == "good":
        told = f"{seen}: {well}."
    else:
        more = more_rows(finding, draft)
        told = f"{seen}. No significant {question.sought}."
        if more == math.inf:
            told = f"{seen}. {limit}"
        elif not math.isnan(more):
            told = f"{seen}. Inconclusive; about {more:,.0f} more rows should decide."
    return f"{told} {after}".strip()


def clause(finding: Finding, draft: Draft) -> str:
    """The finding in a part of a sentence."""
    words = questions()[finding.id].words(draft, finding)
    return words.clause or words.fault or words.seen


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
    proven = min(_FACTOR_OF_JOINT_TEST * half / max(size, 1e-9) for half, size in pairs)
    more = draft.n * (min(within, proven) ** 2 - 1.0)
    return _rounded_up(more) if more > 0 else math.nan


def _rounded_up(rows: float) -> float:
    """To two digits."""
    digits = 10 ** max(math.floor(math.log10(max(rows, 1.0))) - 1, 0)
    return float(math.ceil(rows / digits) * digits)


# By what factor one of about ten tests needs a smaller error than a test alone: 2.8/1.96.
_FACTOR_OF_JOINT_TEST = 1.5


def step(
    advice: Advice,
    learnt: Sequence[FittedParameter],
    lifted: tuple[str, float, float] | None,
    info: MethodInfo | None = None,
) -> str:
    """A recalibration in words: the way, its gain on held-out rows, and what it heals."""
    told = f"{_done(advice, learnt, info)}. "
    told += f"In five-fold cross-validation {_gain(advice, advice.score)}."
    if lifted is not None:
        name, before, after = lifted
        told += f" Coverage of {name} goes from {percent(before)} to {percent(after)}."
    return " ".join([told, *_effect(advice)])


def proof(
    advice: Advice,
    learnt: Sequence[FittedParameter],
    trial: RecalibrationTrial,
    info: MethodInfo | None = None,
) -> str:
    """What rows that had no part in it say of a recalibration that others advise."""
    told = f"{capitalized(_done(advice, learnt, info))}."
    if trial.reason:
        return f"{told} It could not be tested on the held-out rows: {trial.reason}."
    told += f" On the held-out rows {_gain(trial, advice.score)}."
    if trial.accepted:
        return " ".join([told, *_effect(trial)])
    why = f": it worsens {trial.harms}" if trial.harms else ""
    return f"{told} The test did not confirm it{why}, so it was not applied."


def _done(advice: Advice, learnt: Sequence[FittedParameter], info: MethodInfo | None = None) -> str:
    """What a recalibration does, and from which rows."""
    info = info or METHODS[advice.method]  # with the one number that it learnt if there is one
    what = (info.says(learnt) if learnt else "") or info.words
    return what.format(by=" and ".join(advice.by)) + (
        f", from rows since {advice.since} alone" if advice.since else ""
    )


def _gain(found: Advice | RecalibrationTrial, score: str) -> str:
    """By how much a score falls, with its error."""
    places = 2 if abs(found.upper) < 0.01 else 1
    ends = f"{fixed(100 * found.lower, places)} to {fixed(100 * found.upper, places)}"
    share = f"{fixed(100 * found.gain, places)} %"
    if math.isnan(found.lower):
        return f"this cuts the {score} by {share}; too few independent times to estimate its error"
    if found.lower > 0:
        return f"this cuts the {score} by {share} ({ends})"
    return f"the {score} does not change significantly (gain {share}, {ends})"


def _effect(found: Advice | RecalibrationTrial) -> list[str]:
    """Which faults it heals, and which it leaves."""
    told = []
    if found.heals:
        told.append(f"No fault of {_named(found.heals)} was detected afterwards.")
    if found.leaves:
        told.append(f"It does not correct {_named(found.leaves)}.")
    return told


def _named(ids: Sequence[str]) -> str:
    return listed([questions()[each].name or each for each in ids], last="or")


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
        why = f"it would harm {refused.harms}"
        if refused.harms == LACKING:
            why = f"{LACKING} may have the largest errors"
        told = (
            f"Recalibration with {refused.method} would cut the {score} by "
            f"{percent(refused.gain)}. It was refused because {why}."
        )
    else:
        told = "No recalibration gave a significant improvement."
    if nearest is not None:
        method, gain, rows = nearest
        told += (
            f" The closest is {method}, with a gain of {percent(gain)}. About "
            f"{_rounded_up(rows):,.0f} rows would make it significant."
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


# ---- the answer to the one question of an assessment: can the uncertainty be trusted? ------------

Reply = Literal["yes", "partly", "no", "unknown"]

STATES: Mapping[Reply, State] = MappingProxyType(
    {"yes": "good", "partly": "caution", "no": "bad", "unknown": "undecided"}
)
"""The state that has the colour of a reply."""
# Faults that an answer names. A sentence of 25 words holds no more.
_MAX_FAULTS_NAMED = 2
# Models that an answer names where they do not differ: a sentence of 25 words holds no more.
_MAX_MODELS_NAMED = 3
_HOLDS: tuple[State, ...] = ("good", "negligible")
_CALIBRATION = frozenset({"bias", "spread", "skew", "tails"})
"""What must hold, beside coverage, for a model to be called calibrated."""


@final
@frozen(kw_only=True)
class TrustAnswer:
    """Whether the uncertainty of a model can be trusted, in a sentence or two.

    Attributes
    ----------
    reply : {"yes", "partly", "no", "unknown"}
        ``no``: coverage is significantly wrong or, for predictions without intervals, anything
        else is. ``partly``: rows or predictions have a fault, but coverage over all rows is not
        significantly wrong; or there is no fault, and the forecast has no skill against
        climatology. ``yes``: no fault, and coverage is right within the margin. ``unknown``:
        inconclusive, because there are too few rows or they have data problems.
    sentence : str
        The answer in words.
    model : str
        Which of several models it is about; empty where there is one.
    choice : str
        Which of several models to use, in a sentence; empty where there is one.
    """

    reply: Reply
    sentence: str
    model: str = ""
    choice: str = ""


def answer(
    findings: Sequence[Finding],
    rows: int,
    *,
    reason: str = "",
    standing: Standing | None = None,
    models: Sequence[str] = (),
    recalibrates: bool = False,
) -> TrustAnswer:
    """Answer by what was found of a model, the best of several.

    Examples
    --------
    >>> answer((), 10, reason="the predictions state no uncertainty").sentence
    'Inconclusive: the predictions state no uncertainty.'
    """
    reply, told = _of_one(findings, rows, reason)
    of = f" for {models[0]}" if len(models) > 1 else ""
    begins = {
        "yes": f"Yes{of}: no problems found in {_counted(rows)}; ",
        "partly": f"Partly{of}: ",
        "no": f"No{of}. ",
        "unknown": f"Inconclusive{of}: ",
    }[reply]
    sentence = f"{begins}{capitalized(told) if reply == 'no' else told}."
    if len(models) < 2:
        return TrustAnswer(reply=reply, sentence=sentence)
    if recalibrates and reply in ("no", "partly"):
        sentence += " Recalibrate it first." if reply == "no" else " Recalibrating it helps."
    elif reply == "no":
        sentence += " Do not rely on it as it is."
    return TrustAnswer(
        reply=reply, sentence=sentence, model=models[0], choice=_chosen(standing, models)
    )


def _of_one(findings: Sequence[Finding], rows: int, reason: str) -> tuple[Reply, str]:
    """The reply of one model, and what it rests on."""
    stated = {each.id: each for each in findings if each.id in _OF_PROBABILITIES}
    if stated:
        return _of_probabilities(findings, stated, rows)
    coverage = next((each for each in findings if each.id == "coverage"), None)
    about_rows = [finding for finding in findings if finding.id == "rows"]
    doubted = [each for each in about_rows if each.state == "caution"]  # whatever the model is
    bad = [each for each in findings if each.state == "bad" and each is not coverage]
    ends = next((each for each in findings if each.id == "ends"), None)
    named = [*doubted, *bad]
    faults = "; ".join(each.clause for each in named[:_MAX_FAULTS_NAMED])
    if coverage is None:
        if bad:
            return "no", faults
        return "unknown", faults or reason or "the predictions state no uncertainty"
    if ends is not None and ends.state == "bad":
        return "no", ends.clause
    if coverage.state == "bad":
        return "no", f"{coverage.clause}; {faults}" if named else coverage.clause
    if bad and coverage.state == "caution":  # of which a fault is the cause
        if bad[0].id == "rows":
            return "unknown", faults
        if any(each.id == "drift" and each.effect < 0 for each in bad):
            return "no", faults
    if bad or (doubted and coverage.state in _HOLDS):
        return "partly", f"{coverage.clause}, but {faults}"
    if doubted:  # more rows of this kind would not settle it
        return "unknown", faults
    idle = next(filter(_is_idle, findings), None)
    if coverage.state in _HOLDS and ends is not None:
        return "partly", f"{coverage.clause}, but {ends.clause}"
    if coverage.state in _HOLDS and idle is not None:
        well = all(each.state in _HOLDS for each in findings if each.id in _CALIBRATION)
        told = "calibrated" if well else coverage.clause
        return "partly", f"{told}, but {idle.clause}"
    if coverage.state in _HOLDS:
        though = [f", though {each.clause}" for each in about_rows]
        though += [
            f", though possibly {each.clause} (not significant)"
            for each in findings
            if _doubtful(each)
        ]
        return "yes", coverage.clause + "".join(though[:1])
    if coverage.more_rows == math.inf:
        return "unknown", f"{coverage.clause}, and more rows would not decide"
    more = f"; about {coverage.more_rows:,.0f} more should decide"
    return "unknown", f"{coverage.clause} in {_counted(rows)}" + (
        ": too few to decide" if math.isnan(coverage.more_rows) else more
    )


_OF_PROBABILITIES = ("sureness", "level", "shape", "class_groups", "class_region", "impossible")
"""Findings on class probabilities; the first two say how right they are."""


def _of_probabilities(
    findings: Sequence[Finding], stated: Mapping[str, Finding], rows: int
) -> tuple[Reply, str]:
    """The reply of class probabilities: sets made of them may cover whatever these are."""
    lead = next(stated[name] for name in _OF_PROBABILITIES if name in stated)
    doubted = [each for each in findings if each.id == "rows" and each.state in ("caution", "bad")]
    bad = [each for each in findings if each.state == "bad" and each not in doubted]
    wrong = [stated[name] for name in _OF_PROBABILITIES if stated.get(name) in bad]
    # of faults of all rows, which overlap, the first alone
    told = [*wrong[:1], *(each for each in wrong[1:] if each.id not in _OF_PROBABILITIES[:3])]
    faults = "; ".join(each.clause for each in [*(told or bad), *doubted][:_MAX_FAULTS_NAMED])
    if any(each.id not in ("class_skill", "decision") for each in bad):
        return "no", faults
    if bad:
        return "partly", f"{lead.clause}, but {faults}"
    if doubted:
        return "unknown", faults
    right = [stated[name].state in _HOLDS for name in _OF_PROBABILITIES[:2] if name in stated]
    if right and all(right):
        possible = any(each.state == "caution" for each in stated.values())
        though = ", though not in every respect (not significant)" if possible else ""
        return "yes", f"{lead.clause}{though}"
    counted = f"no fault found, but {_counted(rows)} {'is' if rows == 1 else 'are'} too few"
    return "unknown", f"{counted}: {lead.clause}"


def _is_idle(finding: Finding) -> bool:
    """Whether a model is shown to know no more than the distribution of y, nor less."""
    return (
        finding.id == "skill"
        and finding.state == "caution"
        and abs(finding.effect) <= finding.tolerance
    )


def _doubtful(finding: Finding) -> bool:
    """Whether it is seen by itself alone, not among all tests."""
    return finding.state == "caution" and questions()[finding.id].kind == "model"


def _counted(rows: int) -> str:
    return "1 row" if rows == 1 else f"{rows:,} rows"


def _chosen(standing: Standing | None, models: Sequence[str]) -> str:
    """Which of several models to use, and by how much it is better."""
    if standing is None:
        return f"The {len(models)} models have no score in common; {models[0]} is listed first."
    best = [name for name, is_best in zip(standing.models, standing.best, strict=True) if is_best]
    title = standing.score.title
    if len(best) == 1:
        return f"Use {best[0]}: its {title} is lower by {_lead(standing)}."
    named = (
        listed(best) if len(best) <= _MAX_MODELS_NAMED else f"{len(best)} of {len(models):,} models"
    )
    return f"{named} do not differ significantly in {title}; {best[0]} has the lowest."


def _lead(standing: Standing) -> str:
    """By how much the first model is ahead of the next, with the interval."""
    size, unit = -standing.difference, per_cent(standing.score.metric, float(standing.values[1]))
    ends = sorted((-standing.difference_lower, -standing.difference_upper))
    if math.isnan(unit):
        lead, low, high = (number(difference, 3) for difference in (size, *ends))
        return f"{lead} ({low} to {high})"
    share = unit * size
    places = 0 if share >= 1.0 else 1 - math.floor(math.log10(max(share, 1e-9)))
    lead, low, high = (fixed(unit * difference, places) for difference in (size, *ends))
    return f"{lead} % ({low} to {high})"
