"""Which of several models is better, as a finding."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from howsure.core.errors import UnanswerableError
from howsure.core.formats import listed, number, p_words
from howsure.engine.finding import Case, Draft, Finding, FindingQuestion, Standing, Words
from howsure.topics.compare import per_cent


def _draft(case: Case) -> Draft:
    standing = case.comparison
    if standing is None:
        raise UnanswerableError("there is one model")
    return Draft(
        effect=standing.difference,
        lower=standing.difference_lower,
        upper=standing.difference_upper,
        p=standing.p,
        p_adjusted=standing.p_adjusted,  # whose pairs are a family of their own
        good=bool(standing.best.sum() == 1),
        facts={"standing": standing},
    )


def _words(draft: Draft, finding: Finding) -> Words:
    standing: Standing = draft.facts["standing"]
    title, count = standing.score.title, len(standing.models)
    best = [name for name, held in zip(standing.models, standing.best, strict=True) if held]
    rest = [name for name, held in zip(standing.models, standing.best, strict=True) if not held]
    p = "as no row differs" if math.isnan(finding.p_adjusted) else p_words(finding.p_adjusted)
    if count == 2 and rest:
        size = abs(draft.effect)
        share = size * per_cent(standing.score.metric, float(standing.values[1]))
        told = number(size, 3) + ("" if math.isnan(share) else f", or {number(share, 2)} %")
        seen = f"{best[0]} beats {rest[0]} in {title} by {told} ({p})"
    elif count == 2:
        seen = f"{best[0]} and {best[1]} cannot be told apart in {title} ({p})"
    elif count > _NAMED:
        seen = f"{standing.models[0]} has the lowest {title}; "
        if len(best) == 1:
            seen += f"the other {len(rest)} models are provably worse"
        else:
            seen += f"{len(best)} of {count} models remain, which cannot be told apart"
    elif len(best) == 1:
        seen = f"{best[0]} has the lowest {title}; {listed(rest)} are provably worse"
    else:
        seen = f"{listed(best)} cannot be told apart in {title}"
        if rest:
            by_all = all(
                standing.behind[low, high]
                for low in np.flatnonzero(~standing.best)
                for high in np.flatnonzero(standing.best)
            )
            each = "both beat" if len(best) == 2 else "all beat"
            verb = "is" if len(rest) == 1 else "are"
            told = f"{each} {listed(rest)}" if by_all else f"{listed(rest)} {verb} provably worse"
            seen += f"; {told}"
    return Words(seen, more=_not_compared(standing.left_out))


_NAMED = 4
"""The most models that are all named in one sentence."""


def _not_compared(left_out: Mapping[str, str]) -> str:
    """Who does not have the score, and why if it is one."""
    if not left_out:
        return ""
    if len(left_out) == 1:
        ((name, why),) = left_out.items()
        return f"{name} cannot be compared: {why}."
    return f"{len(left_out)} models cannot be compared; the table says why."


COMPARISON = FindingQuestion(
    id="comparison",
    kind="setting",
    asked="Which model is better?",
    label="Best model",
    unit="y",
    draft=_draft,
    words=_words,
    margin=math.nan,
    reported=True,
)
