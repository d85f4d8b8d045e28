"""What is concluded of varying widths: what they gain over a constant band."""

from __future__ import annotations

import math

from scipy import special

from howsure.core.errors import UnanswerableError
from howsure.core.records import Record
from howsure.metrics.finding import HALF_WIDTH, Case, Draft, Finding, FindingQuestion, Words
from howsure.metrics.miss_range import in_words
from howsure.metrics.wording import small, span


def _is_loss(record: Record) -> bool:
    """Whether it is the partial gain, and one that a right model of few members may lose too."""
    return record.metric == "characteristic_partial_gain" and record.value < 0


def _trade(case: Case) -> Draft:
    low, whole = case.get("characteristic_partial_gain"), case.get("characteristic_gain")
    if not low.standard_error > 0:
        raise UnanswerableError("every row has the same width")
    p = float(special.stdtr(case.freedom, low.value / low.standard_error))
    if _is_loss(low) and low.null_lower < low.null_upper:
        spread = (low.null_upper - low.null_lower) / (2.0 * HALF_WIDTH)
        p = max(p, float(special.ndtr((low.value - low.null) / spread)))
    return Draft(
        effect=low.value / 100.0,
        lower=low.lower / 100.0,
        upper=low.upper / 100.0,
        p=p,
        n=low.n,
        good=low.lower > 0,
        facts={"record": low, "whole": whole},
    )


def _trade_words(draft: Draft, _: Finding) -> Words:
    low, whole = draft.facts["record"], draft.facts["whole"]
    interval = span(low, times=math.copysign(1.0, low.value))
    start, end = map(float, str(low.options["miss_range"]).split(" to "))
    part = in_words((start, end))
    seen = f"At miscoverage {part}, these widths are {_against(low)} than a constant band{interval}"
    more = f"Over all levels of miscoverage they are {_against(whole)}."
    return Words(seen, "a constant band is better", "the varying widths help", more)


def _against(gain: Record) -> str:
    way = "better" if gain.value >= 0 else "worse"
    return f"{small(abs(gain.value), 1)} % {way}"


FINDINGS = (
    FindingQuestion(
        id="trade",
        asked="Do varying widths help?",
        label="Gain of widths",
        unit="ratio − 1",
        draft=_trade,
        words=_trade_words,
        tolerance=0.02,
        margin=math.nan,
        measures=("characteristic_partial_gain", "characteristic_gain"),
        name="the trade-off of width and coverage",
        needs="For widths: inputs that tell easy rows from hard ones.",
        sought="gain",
        reads_null=_is_loss,
        healed="aimed",
    ),
)
