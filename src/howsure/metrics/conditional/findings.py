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

_VAGUE = 0.5
"""P-value from which on no interval follows from it."""


def _region(case: Case) -> Draft:
    record = case.get("worst_region")
    where = str(record.options["where"])
    effect, lower, upper = (
        each - record.null for each in (record.value, record.lower, record.upper)
    )
    moved = MOVED.get(str(record.options["signal"]))
    if moved is not None:  # told by the PIT, which coverage alone may hide
        effect = moved * float(record.options["deviation"])
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
        n=record.n,
        within={"ease": math.inf} if _is_ease(case, where) else {},
        facts={"record": record},
    )


def _is_ease(case: Case, where: str) -> bool:
    """Whether a region is a part of the rows by ease alone."""
    conditions = where.split(" and ")
    return all(f" {case.evalset.ease} " in f" {each} " for each in conditions)


def _region_words(draft: Draft, _: Finding) -> Words:
    record: Record = draft.facts["record"]
    signal, off = str(record.options["signal"]), float(record.options["deviation"])
    if signal == "coverage":
        what = f"coverage is {percent(record.value)}"
        seen = f"{what}, where {percent(record.null)} is {FROM_ALL}"
        fault = "coverage depends on the inputs"
    elif signal == "bias":  # as of normal y
        way = "higher" if draft.effect > 0 else "lower"
        what = f"y averages {abs(shift_of(off)):.2f} {SDS} {way}"
        seen, fault = f"{what} beside its prediction than overall", "bias depends on the inputs"
    else:
        size = small(scale_of(off), 2, trim=False)
        what = f"errors are {size} times as large"
        seen, fault = f"{what} for their stated size as overall", "spread depends on the inputs"
    well = "the worst region found is in line"
    return Words(f"Where {draft.where}, {seen}", fault, well, clause=f"{what} where {draft.where}")


FINDINGS = (
    FindingQuestion(
        id="region",
        asked="Does coverage depend on the inputs?",
        label="Regions",
        draft=_region,
        words=_region_words,
        measures=("worst_region",),
        name="coverage given inputs",
        cause="what depends on the inputs",
        needs="For the inputs: a model that fits the rows better where {where}.",
        measured=False,  # its effect is of probabilities, its sentence of coverage
        healed="aimed",
    ),
)
