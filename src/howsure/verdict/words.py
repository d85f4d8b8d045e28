"""From a finding to a sentence: a table, and nothing else.

Each id has what was seen and the name of the fault; what follows depends on the state alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from howsure.core.formats import fixed, p_words, percent
from howsure.core.records import Record
from howsure.verdict.findings import QUESTIONS, Draft, Finding

Words = tuple[str, str, str]
"""What was seen; the fault in words; what holds if all is well."""


def sentence(finding: Finding, draft: Draft, cause: str = "") -> str:
    """The finding in words."""
    seen, fault, well = _WORDS[finding.id](draft, finding)
    if finding.id == "comparison":
        return f"{seen}."
    if cause:
        return f"{seen}; this is part of {_PART_OF[cause]}."
    if finding.state == "bad":
        return f"{seen}: {fault}."
    if finding.state == "negligible":
        return f"{seen}: {fault}, but within the tolerance of {_tolerated(finding)}."
    if finding.state == "watch":
        return f"{seen}: {fault}? Suggested ({p_words(finding.p)}), not proven among all tests."
    if finding.state == "good":
        return f"{seen}: {well}."
    none = "no gain" if finding.id == "trade" else "no departure"
    return f"{seen}: {none} is proven{_rows_that_decide(finding, draft)}."


_PART_OF = {"skew": "the skew", "tails": "the tails", "width": "how widths and errors go together"}


def _tolerated(finding: Finding) -> str:
    if finding.unit == "share":
        return _points(finding.tolerance)
    return percent(finding.tolerance)


def _rows_that_decide(finding: Finding, draft: Draft) -> str:
    """How many rows would bring the interval within the margin, or prove what is seen."""
    margin = max(QUESTIONS[finding.id].margin, finding.tolerance)
    half = (finding.upper - finding.lower) / 2.0
    size = abs(finding.effect)
    if math.isnan(margin) or not math.isfinite(half) or not half > 0 or math.isnan(draft.n):
        return ""
    ways = (half / (margin - size) if size < margin else math.inf, _JOINT * half / max(size, 1e-9))
    need = draft.n * min(ways) ** 2
    digits = 10 ** max(math.floor(math.log10(max(need, 1.0))) - 1, 0)
    rows = math.ceil(need / digits) * digits
    return f"; about {rows:,} rows would decide" if rows > draft.n else ""


_JOINT = 1.5
"""By what factor one of about ten tests needs a smaller error than a test alone."""


def _points(share: float) -> str:
    told = fixed(100.0 * abs(share), 1, trim=True)
    return f"{told} point" if told == "1" else f"{told} points"


def _span(record: Record, *, times: float = 1.0, places: int = 1) -> str:
    """The interval in brackets, the ends in order; empty where none is known."""
    ends = sorted((times * record.lower, times * record.upper))
    if any(map(math.isnan, ends)):
        return ""
    dash = "–" if ends[0] >= 0 else " to "
    return f" ({fixed(ends[0], places)}{dash}{fixed(ends[1], places)})"


def _share(record: Record) -> str:
    return f"{percent(record.value)}{_span(record, times=100.0)}"


def _coverage(draft: Draft, _: Finding) -> Words:
    cover, facts = draft.facts["record"], draft.facts
    what = "sets" if facts["sets"] else "intervals"
    seen = f"The {percent(facts['coverage'])} {what} cover {_share(cover)}"
    if abs(facts["claimed"] - facts["coverage"]) > 5e-4:
        seen += f", where the predictions claim {percent(facts['claimed'])}"
    way = "under-cover" if draft.effect < 0 else "over-cover"
    return seen, f"they {way} by {_points(draft.effect)}", "in line with the claim"


def _bias(draft: Draft, _: Finding) -> Words:
    found: Record = draft.facts["record"]
    low = draft.effect > 0
    if draft.facts.get("point"):
        seen = (
            f"The point forecast is {'below' if low else 'above'} y by {abs(found.value):.3g} "
            f"on average, {percent(abs(draft.effect), 0)} of its mean error"
        )
    else:
        side = "above" if low else "below"
        seen = f"y lies {abs(found.value):.2f} stated sd {side} its prediction on average"
    way = "low" if low else "high"
    return seen, f"predictions are too {way}", "predictions are centred"


def _spread(draft: Draft, _: Finding) -> Words:
    found: Record = draft.facts["record"]
    seen = f"Errors are {found.value:.2f} times their stated size{_span(found, places=2)}"
    way = "small" if draft.effect > 0 else "large"
    return seen, f"the stated spread is too {way}", "the stated spread is right"


def _skew(draft: Draft, _: Finding) -> Words:
    seen = f"Skew moves stated probabilities by up to {_points(draft.effect)}"
    way = "upper" if draft.effect > 0 else "lower"
    return f"{seen}{_outside(draft)}", f"the {way} tail is longer than stated", "no skew is missed"


def _tails(draft: Draft, _: Finding) -> Words:
    seen = f"Tails move stated probabilities by up to {_points(draft.effect)}"
    way = "heavier" if draft.effect > 0 else "lighter"
    return f"{seen}{_outside(draft)}", f"tails are {way} than stated", "the stated tails are right"


def _outside(draft: Draft) -> str:
    """What is seen in the outermost cells, where it tells."""
    options = draft.facts["record"].options
    if "seen_below" not in options:
        return ""
    below, above = (percent(float(options[f"seen_{side}"]), 0) for side in ("below", "above"))
    stated = [float(options[f"stated_{side}"]) for side in ("below", "above")]
    if stated[0] != stated[1]:
        return ""
    return f" (outer {percent(stated[0], 0)}: {below} below, {above} above)"


def _one_sided(draft: Draft, _: Finding) -> Words:
    below = float(draft.facts["below"])
    above = below + draft.facts["record"].value
    seen = f"{percent(below)} of rows are missed below and {percent(above)} above"
    side = "above" if draft.effect > 0 else "below"
    return seen, f"misses are mostly {side}", "both sides miss alike"


def _support(draft: Draft, _: Finding) -> Words:
    seen = f"{percent(draft.effect, 2)} of y have probability 0 under their prediction"
    return seen, "the predictive distribution is wrong for them", ""


def _groups(draft: Draft, _: Finding) -> Words:
    facts = draft.facts
    where = draft.where
    seen = (
        f"{where} covers {percent(float(facts['value']))} of {float(facts['rows']):,.0f} rows; "
        f"{percent(float(facts['expected']))} is expected from all rows"
    )
    worst = facts.get("worst")
    fault = "groups differ in coverage"
    if isinstance(worst, Record) and worst.lower > 0:
        who = "it" if worst.group == where else worst.group
        fault += f", {who} is at least {_points(worst.lower)} short of its claim"
    return seen, fault, "no group differs by more than 3 points"


def _region(draft: Draft, _: Finding) -> Words:
    found: Record = draft.facts["record"]
    seen = (
        f"Where {draft.where}, {percent(found.value)} of rows are covered; "
        f"{percent(found.null)} is expected from all rows"
    )
    high = draft.effect > 0
    fault = {
        "coverage": "coverage depends on the inputs",
        "bias": f"y lies {'above' if high else 'below'} its prediction there",
        "spread": f"errors are too {'large' if high else 'small'} for their stated size there",
    }[str(found.options["signal"])]
    return seen, fault, "the worst region found is in line"


def _congruence(draft: Draft, _: Finding) -> Words:
    found: Record = draft.facts["record"]
    seen = f"Mean CCE is {found.value:.3g}; a right model's would be {found.null:.3g}"
    return seen, "at some inputs the prediction is far from what happens", ""


def _width(draft: Draft, _: Finding) -> Words:
    found: Record = draft.facts["record"]
    if draft.facts["equal"]:
        if not draft.where:
            return "Every row has the same width", "", "inputs do not tell errors apart"
        seen = (
            "Every row has the same width; in the half that inputs single out "
            f"({draft.where}) errors are {found.value:.2f} times the others"
        )
        return seen, "the noise varies with the inputs", "constant noise, as stated"
    wide, narrow = (float(found.options[name]) for name in ("widest", "narrowest"))
    seen = (
        f"Errors are {wide:.2f} times their stated size where widths are large, "
        f"{narrow:.2f} times where small"
    )
    way = "overreact" if draft.effect < 0 else "react too little"
    return seen, f"widths {way}", "widths follow the errors"


def _trade(draft: Draft, _: Finding) -> Words:
    low, whole = draft.facts["record"], draft.facts["whole"]
    span = _span(low, times=math.copysign(1.0, low.value))
    seen = (
        f"At miss rates up to 20 %, these widths are {_against(low)} a constant band{span}; "
        f"over all miss rates {_against(whole)} it"
    )
    return seen, "a constant band serves better", "varying widths pay"


def _against(gain: Record) -> str:
    way = "better than" if gain.value >= 0 else "worse than"
    return f"{fixed(abs(gain.value), 1, trim=True)} % {way}"


def _sets(draft: Draft, _: Finding) -> Words:
    facts = draft.facts
    labels = "label" if draft.where == "1" else "labels"
    seen = (
        f"Sets of {draft.where} {labels} cover {percent(float(facts['value']))} of "
        f"{float(facts['rows']):,.0f} rows, all {percent(float(facts['expected']))}"
    )
    if facts["empty"]:
        seen += f"; {percent(float(facts['empty']))} of sets are empty"
    return seen, "coverage depends on the size of the set", "sets of all sizes cover alike"


def _none(draft: Draft, _: Finding) -> Words:
    return "", "", ""


def _comparison(draft: Draft, finding: Finding) -> Words:
    facts = draft.facts
    a, b, title, models = facts["a"], facts["b"], facts["metric"], facts["models"]
    if finding.state == "good":
        better, worse = (a, b) if draft.effect < 0 else (b, a)
        rank = f", the next best of {models:,}," if models > 2 else ""
        seen = f"{better} beats {worse}{rank} in {title} by {abs(draft.effect):.3g}"
        return f"{seen} ({p_words(draft.p)})", "", ""
    rank = f", the best of {models:,}," if models > 2 else ""
    seen = "as no row differs" if math.isnan(draft.p) else p_words(draft.p)
    return f"{a} and {b}{rank} cannot be told apart in {title} ({seen})", "", ""


_WORDS: Mapping[str, Callable[[Draft, Finding], Words]] = {
    "coverage": _coverage,
    "bias": _bias,
    "spread": _spread,
    "skew": _skew,
    "tails": _tails,
    "one_sided": _one_sided,
    "support": _support,
    "groups": _groups,
    "region": _region,
    "congruence": _congruence,
    "width": _width,
    "trade": _trade,
    "sets": _sets,
    "dependence": _none,
    "drift": _none,
    "comparison": _comparison,
}
