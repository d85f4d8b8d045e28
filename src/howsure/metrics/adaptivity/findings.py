"""What is concluded of coverage by ease, and by the size of label sets."""

from __future__ import annotations

from dataclasses import replace

from howsure.core.errors import UnanswerableError
from howsure.core.formats import fixed, percent
from howsure.core.records import Record
from howsure.metrics.finding import (
    FROM_ALL,
    MARGIN,
    Case,
    Draft,
    Finding,
    FindingQuestion,
    Words,
    apart,
)
from howsure.metrics.wording import points


def _ease(case: Case) -> Draft:
    record = case.get("t_cv")
    if "where" not in record.options:
        raise UnanswerableError("parts of the rows by ease were not compared")
    return apart(replace(record, p=float(record.options["ease_differ"])), {"record": record})


def _ease_words(draft: Draft, _: Finding) -> Words:
    facts = draft.facts
    record: Record = facts["record"]
    seen = (
        f"Where {draft.where}, {percent(float(facts['value']))} of "
        f"{float(facts['rows']):,.0f} rows are covered; "
        f"{percent(float(facts['expected']))} is {FROM_ALL}"
    )
    more = (
        f"T-CV is {fixed(record.value, 3)}, of a correctly specified model {fixed(record.null, 3)}."
    )
    well = f"no part differs by more than {points(MARGIN)}"
    clause = f"coverage is {percent(float(facts['value']))} where {draft.where}"
    return Words(seen, "coverage depends on ease", well, more, clause=clause)


_SAME = 1e-6
"""Shares that differ by less are one."""


def _sets(case: Case) -> Draft:
    if not case.of_sets:
        raise UnanswerableError("the table has no label sets")
    record, empty = case.get("sscv"), case.get("empty_sets")
    if "where" not in record.options:
        raise UnanswerableError("the sizes of sets were not compared")
    seen, expected = case.get("empirical_coverage").value, float(record.options["expected"])
    facts = {
        "empty": empty.value,
        "size": case.get("set_size").value,
        "free": abs(seen - expected) > _SAME,
    }
    return apart(replace(record, p=float(record.options["sizes_differ"])), facts)


def _sets_words(draft: Draft, _: Finding) -> Words:
    facts = draft.facts
    labels = "label" if draft.where == "1" else "labels"
    seen = (
        f"Sets of {draft.where} {labels} cover {percent(float(facts['value']))} of "
        f"{float(facts['rows']):,.0f} rows"
    )
    due = percent(float(facts["expected"]))
    seen += f"; {due} is {FROM_ALL}" if facts["free"] else f", all sets {due}"
    empty = float(facts["empty"])
    more = f"{percent(empty)} of sets are empty." if empty else ""
    if draft.where == "0":  # as of one threshold for an accurate model, by LAC or randomised APS
        more += (
            " They arise where a model is more accurate than the nominal coverage asks. A floor of "
            "one label fills them and lifts coverage: LabelConformal(allow_empty=False)."
        )
    fault = "coverage depends on the size of the set"
    clause = f"sets of {draft.where} {labels} cover {percent(float(facts['value']))}"
    return Words(seen, fault, "sets of all sizes cover alike", more, clause=clause)


FINDINGS = (
    FindingQuestion(
        id="ease",
        asked="Does coverage hold where rows are hard?",
        label="Ease",
        draft=_ease,
        words=_ease_words,
        measures=("t_cv",),
        name="coverage by ease",
        cause="how coverage depends on ease",
        needs="For ease: calibration within parts of the rows by ease.",
    ),
    FindingQuestion(
        id="sets",
        asked="Do sets of every size cover alike?",
        label="Set sizes",
        draft=_sets,
        words=_sets_words,
        measures=("sscv", "empty_sets", "set_size", "empirical_coverage"),
        section="Coverage",
        needs="For label sets: class probabilities, from which new sets can be built.",
    ),
)
