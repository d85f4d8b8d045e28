"""What is concluded of conditional congruence."""

from __future__ import annotations

import math

from howsure.core.errors import UnanswerableError
from howsure.core.formats import number
from howsure.core.records import Record
from howsure.metrics.finding import HALF_WIDTH, Case, Draft, Finding, FindingQuestion, Words
from howsure.metrics.wording import small


def _congruence(case: Case) -> Draft:
    record = case.get("mean_cce")
    if not record.null > 0:
        raise UnanswerableError("no correctly specified model could be simulated to compare with")
    half = HALF_WIDTH * record.standard_error
    return Draft(
        effect=record.value / record.null - 1.0,
        lower=(record.value - half) / record.null - 1.0,
        upper=(record.value + half) / record.null - 1.0,
        p=record.p,
        n=record.n,
        facts={"record": record},
    )


def _congruence_words(draft: Draft, _: Finding) -> Words:
    record: Record = draft.facts["record"]
    seen = (
        f"Mean CCE is {number(record.value, 3)}; "
        f"a correctly specified model has {number(record.null, 3)}"
    )
    ratio = small(record.value / record.null, 1)
    clause = f"mean CCE is {ratio} times that of a correctly specified model"
    return Words(seen, "at some inputs the predictive distribution is wrong", clause=clause)


FINDINGS = (
    FindingQuestion(
        id="congruence",
        asked="Is the prediction right at every input?",
        label="Congruence",
        unit="ratio − 1",
        draft=_congruence,
        words=_congruence_words,
        tolerance=0.02,
        margin=math.nan,
        measures=("mean_cce",),
        healed="none",
        reported=True,
        times="a correct model's",
    ),
)
