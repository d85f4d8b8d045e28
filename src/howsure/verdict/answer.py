"""The answer to the one question of an assessment: can the uncertainty be trusted?"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal, final

from howsure.core.formats import fixed, listed, number
from howsure.engine.finding import Finding, Standing, State
from howsure.topics.compare import per_cent
from howsure.verdict.findings import questions

Reply = Literal["yes", "partly", "no", "unknown"]

STATES: Mapping[Reply, State] = MappingProxyType(
    {"yes": "good", "partly": "caution", "no": "bad", "unknown": "undecided"}
)
"""The state that has the colour of a reply."""
_MOST = 2
"""Faults that an answer names."""
_NAMED = 3
"""Models that an answer names where they cannot be told apart."""
_HOLDS: tuple[State, ...] = ("good", "negligible")
_CALIBRATION = frozenset({"bias", "spread", "skew", "tails"})
"""What must hold, beside coverage, for a model to be called calibrated."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class TrustAnswer:
    """Whether the uncertainty of a model can be trusted, in a sentence or two.

    Attributes
    ----------
    reply : {"yes", "partly", "no", "unknown"}
        ``no``: coverage is proven to be off, or of predictions without intervals anything else.
        ``partly``: something is wrong, with rows or predictions, but coverage over all rows is not
        proven to be; or nothing is, and the forecast knows no more than the distribution of y.
        ``yes``: nothing is, and coverage is right within the margin. ``unknown``: the rows do not
        tell, as too few or not what they seem.
    sentence : str
        The answer in words; of several models, also which to use.
    model : str
        That model; empty where there is one.
    """

    reply: Reply
    sentence: str
    model: str = ""


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

    Parameters
    ----------
    findings : sequence of Finding
        Of that model, what is bad first.
    rows : int
        Rows that were assessed.
    reason : str
        Why coverage is not judged, where it is not.
    standing : Standing, optional
        How several models compare.
    models : sequence of str
        Several models, that whose findings these are first; none where there is one.
    recalibrates : bool
        Whether a recalibration that helps was found.

    Returns
    -------
    TrustAnswer
        The reply and its words.

    Examples
    --------
    >>> answer((), 10, reason="the predictions state no uncertainty").sentence
    'Cannot be told: the predictions state no uncertainty.'
    """
    reply, told = _of_one(findings, rows, reason)
    if len(models) < 2:
        begins = {
            "yes": f"Yes, as far as {_counted(rows)} can tell: ",
            "partly": "Partly: ",
            "no": "No. ",
            "unknown": "Cannot be told: ",
        }[reply]
        if reply == "unknown" and any(finding.more_rows == math.inf for finding in findings):
            begins = "Inconclusive: "
        return TrustAnswer(
            reply=reply, sentence=f"{begins}{_capital(told) if reply == 'no' else told}."
        )
    own = f"Its {told[4:]}" if told.startswith("the ") else f"With it, {told}"
    if recalibrates and reply in ("no", "partly"):
        own += ": recalibrate it first" if reply == "no" else "; recalibrating it helps"
    elif reply == "no":
        own += ": do not rely on it as it is"
    return TrustAnswer(reply=reply, sentence=f"{_chosen(standing, models)} {own}.", model=models[0])


def _of_one(findings: Sequence[Finding], rows: int, reason: str) -> tuple[Reply, str]:
    """The reply of one model, and what it rests on."""
    coverage = next((each for each in findings if each.id == "coverage"), None)
    about_rows = [finding for finding in findings if finding.id == "rows"]
    doubted = [each for each in about_rows if each.state == "caution"]  # whatever the model is
    bad = [each for each in findings if each.state == "bad" and each is not coverage]
    ends = next((each for each in findings if each.id == "ends"), None)
    named = [*doubted, *bad]
    faults = "; ".join(_first(each.clause) for each in named[:_MOST])
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
        rest = [each.state in _HOLDS for each in findings if each.id in _CALIBRATION]
        told = "calibrated" if all(rest) else coverage.clause
        return "partly", f"{told}, but {idle.clause}"
    if coverage.state in _HOLDS:
        though = [f", though {_first(each.clause)}" for each in about_rows]
        though += [f", though perhaps {each.clause}" for each in findings if _doubtful(each)]
        return "yes", coverage.clause + "".join(though[:1])
    if coverage.more_rows == math.inf:
        return "unknown", f"{coverage.clause}, and more rows would not settle it"
    few = f"{_counted(rows)} {'is' if rows == 1 else 'are'} too few"
    if not math.isnan(coverage.more_rows):
        few += f"; about {coverage.more_rows:,.0f} more would settle it"
    return "unknown", f"{coverage.clause}, and {few}"


def _is_idle(finding: Finding) -> bool:
    """Whether a model is shown to know no more than the distribution of y, nor less."""
    known = finding.id == "skill" and finding.state == "caution"
    return known and abs(finding.effect) <= finding.tolerance


def _doubtful(finding: Finding) -> bool:
    """Whether it is seen by itself alone, not among all tests."""
    return finding.state == "caution" and questions()[finding.id].kind == "model"


def _counted(rows: int) -> str:
    return "1 row" if rows == 1 else f"{rows:,} rows"


def _capital(told: str) -> str:
    """Words as a sentence begins, unless with y."""
    return told if told.startswith("y ") else told[:1].upper() + told[1:]


def _first(clause: str) -> str:
    """The first sentence of several, as it stands within another."""
    told = clause.partition(". ")[0]
    return told if told[1:2].isupper() else told[:1].lower() + told[1:]


def _chosen(standing: Standing | None, models: Sequence[str]) -> str:
    """Which of several models to use, and by how much it is better."""
    if standing is None:
        return f"The {len(models)} models share no score; {models[0]} stands first."
    best = [name for name, held in zip(standing.models, standing.best, strict=True) if held]
    title = standing.score.title
    if len(best) > _NAMED:
        told = f"{len(best)} of {len(models):,} models cannot be told apart in {title}"
        return f"{told}; that of {best[0]} is lowest."
    if len(best) > 1:
        told = f"{listed(best)} cannot be told apart in {title}"
        return f"{told}; that of {best[0]} is lowest."
    return f"Use {best[0]}: its {title} is lower by {_lead(standing)}."


def _lead(standing: Standing) -> str:
    """By how much the first model is ahead of the next, with the interval."""
    ends = sorted(-each for each in (standing.difference_lower, standing.difference_upper))
    size, unit = -standing.difference, per_cent(standing.score.metric, float(standing.values[1]))
    if math.isnan(unit):
        told, low, high = (number(each, 3) for each in (size, *ends))
        return f"{told} ({low} to {high})"
    share = unit * size
    places = 0 if share >= 1.0 else 1 - math.floor(math.log10(max(share, 1e-9)))
    told, low, high = (fixed(unit * each, places) for each in (size, *ends))
    return f"{told} % ({low} to {high})"
