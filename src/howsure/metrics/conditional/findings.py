"""What is concluded of coverage given the inputs."""

from __future__ import annotations

import math

from scipy import special

from howsure.core.formats import percent
from howsure.core.records import Record
from howsure.metrics.calibration.components import MOVED, scale_of, shift_of
from howsure.metrics.finding import (
    FROM_ALL,
    HALF_WIDTH,
    Case,
    Draft,
    Finding,
    FindingQuestion,
    Words,
)
from howsure.metrics.wording import SDS, small

_WELL = "no region is out of line"
_VAGUE = 0.5
"""P-value from which on no interval follows from it."""


def _region(case: Case) -> Draft:
    record = case.get("regions_differ")
    told = record.options
    where = str(told["where"])
    effect, lower, upper = (
        float(told[name]) - float(told["expected"]) for name in ("value", "lower", "upper")
    )
    moved = MOVED.get(str(told["signal"]))
    if moved is not None:  # told by the PIT, which coverage alone may hide
        effect = moved * float(told["deviation"])
        reach = math.nan
        if record.p < _VAGUE:
            reach = abs(effect) * HALF_WIDTH / -float(special.ndtri(record.p / 2.0))
        lower, upper = effect - reach, effect + reach
    return Draft(
        effect=effect,
        lower=lower,
        upper=upper,
        p=record.p,
        where=where,
        n=float(told["rows"]),
        within={"ease": math.inf} if _is_ease(case, where) else {},
        facts={"told": told, "worst": case.records.get("worst_region")},
    )


def _is_ease(case: Case, where: str) -> bool:
    """Whether a region is a part of the rows by ease alone."""
    conditions = where.split(" and ")
    return all(f" {case.evalset.ease} " in f" {each} " for each in conditions)


def _region_words(draft: Draft, finding: Finding) -> Words:
    told, worst = draft.facts["told"], draft.facts["worst"]
    signal, off = str(told["signal"]), float(told["deviation"])
    cover, expected = percent(float(told["value"])), percent(float(told["expected"]))
    if signal == "coverage":
        what, fault = f"coverage is {cover}", "coverage depends on the inputs"
        seen = f"{what}, where {expected} is {FROM_ALL}"
        if draft.effect > 0 and isinstance(worst, Record) and worst.value < float(told["value"]):
            lowest = f"is {percent(worst.value)} where {worst.options['where']}"
            seen = f"Coverage {lowest}, {cover} where {draft.where}; {expected} is {FROM_ALL}"
            return Words(seen, fault, _WELL, clause=f"coverage {lowest}")
    elif signal == "bias":  # as of normal y
        way = "higher" if draft.effect > 0 else "lower"
        what = f"y averages {abs(shift_of(off)):.2f} {SDS} {way}"
        seen, fault = f"{what} beside its prediction than overall", "bias depends on the inputs"
    else:
        size = small(scale_of(off), 2, trim=False)
        what = f"errors are {size} times as large"
        seen, fault = f"{what} for their stated size as overall", "spread depends on the inputs"
    short = signal != "coverage" and float(told["value"]) < float(told["expected"])
    more = f"Coverage there is {cover}." if short and finding.state == "bad" else ""
    clause = f"{what} where {draft.where}"
    return Words(f"Where {draft.where}, {seen}", fault, _WELL, more, clause=clause)


FINDINGS = (
    FindingQuestion(
        id="region",
        asked="Does coverage depend on the inputs?",
        label="Regions",
        draft=_region,
        words=_region_words,
        measures=("regions_differ",),
        told_by=("worst_region",),
        name="coverage given inputs",
        cause="what depends on the inputs",
        needs="For the inputs: a model that fits the rows better where {where}.",
        measured=False,  # its effect is of probabilities, its sentence of coverage
        healed="aimed",
    ),
)
