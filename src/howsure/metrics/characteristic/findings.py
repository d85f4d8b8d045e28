"""What is concluded of varying widths: what they gain over a constant band."""

from __future__ import annotations

import math

from scipy import special

from howsure.core.errors import UnanswerableError
from howsure.core.formats import fixed, number
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


def _trade_words(draft: Draft, finding: Finding) -> Words:
    low, whole = draft.facts["record"], draft.facts["whole"]
    start, end = map(float, str(low.options["miss_range"]).split(" to "))
    where = f"at miscoverage {in_words((start, end))}"
    more = f"Over all levels of miscoverage they are {_against(whole)}."
    if finding.state == "undecided":
        seen = f"Varying widths bring no provable gain over one constant width {where}"
        return Words(f"{seen}: {fixed(low.value, 1)} %{span(low)}", more=more)
    interval = span(low, times=math.copysign(1.0, low.value)) if low.value > -_PERCENT else ""
    seen = f"Varying widths are {_against(low)} than one constant width {where}{interval}"
    return Words(seen, "a constant width is better", "they help", more)


def _against(gain: Record) -> str:
    if gain.value <= -_PERCENT:
        return f"worse by a factor of {number(1.0 - gain.value / _PERCENT, 2)}"
    way = "better" if gain.value >= 0 else "worse"
    return f"{small(abs(gain.value), 1)} % {way}"


_PERCENT = 100.0


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
