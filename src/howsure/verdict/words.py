"""From a finding to sentences: a table, and nothing else.

Each id has what was seen and the name of the fault; what follows depends on the state alone.
"""

from __future__ import annotations

import math
import shlex
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from howsure.core.formats import fixed, listed, minus, number, p_words, percent, roughly
from howsure.core.records import Record
from howsure.metrics.compare import Standing
from howsure.metrics.miss_range import in_words
from howsure.metrics.serial import Dependence
from howsure.recalibration.registry import METHODS
from howsure.stats.memory import HARDLY
from howsure.verdict.copies import RowFault
from howsure.verdict.findings import FROM_ALL, LEVEL, QUESTIONS, Draft, Finding

if TYPE_CHECKING:
    from howsure.recalibration import Learnt
    from howsure.verdict.mends import Advice


class Words(NamedTuple):
    """What was seen; the fault in words; what holds if all is well; a sentence that follows; and
    of what more than these rows it says nothing.
    """

    seen: str
    fault: str
    well: str
    more: str = ""
    limit: str = ""


def sentence(finding: Finding, draft: Draft, cause: str = "") -> str:
    """The finding in words."""
    seen, fault, well, more, limit = _WORDS[finding.id](draft, finding)
    if finding.id in ("comparison", "dependence", "rows"):
        told = f"{seen}."
    elif cause:
        told = f"{seen}; this is part of {_PART_OF[cause]}."
    elif finding.state == "bad":
        told = f"{seen}: {fault}."
    elif finding.state == "negligible":
        told = f"{seen}: {fault}. This is within the tolerance of {_tolerated(finding)}."
    elif finding.state == "caution" and limit:
        told = f"{seen}. {limit}"
    elif finding.state == "caution":
        told = (
            f"{seen}. Perhaps {fault}: {p_words(finding.p)} alone, not significant among all tests."
        )
    elif finding.state == "good":
        told = f"{seen}: {well}."
    else:
        none = "No gain" if finding.id == "trade" else "No departure"
        told = f"{seen}. {none} is proven{_rows_that_decide(finding, draft)}."
    return f"{told} {more}".strip()


_PART_OF = {
    "rows": "what is wrong with the rows",
    "skew": "the skew",
    "tails": "the tails",
    "width": "how errors depend on widths",
    "groups": "how groups differ",
    "region": "what depends on the inputs",
    "ease": "how coverage depends on ease",
    "drift": "the drift",
}


def _tolerated(finding: Finding) -> str:
    if finding.unit == "share":
        return _points(finding.tolerance)
    return percent(finding.tolerance)


def _margin(finding: Finding) -> float:
    return max(QUESTIONS[finding.id].margin, finding.tolerance)


def _rows_that_decide(finding: Finding, draft: Draft) -> str:
    """How many rows would bring the interval within the margin, or prove what is seen.

    Of the worst of many parts it is not known: with more rows another part may be the worst.
    """
    if finding.where:
        return ""
    margin = _margin(finding)
    spans = [(finding.effect, finding.lower, finding.upper), *draft.beside]
    pairs = [((high - low) / 2.0, abs(effect)) for effect, low, high in spans]
    known = all(math.isfinite(half) and half > 0 for half, _ in pairs)
    if math.isnan(margin) or not known or math.isnan(draft.n):
        return ""
    within = max(half / (margin - size) if size < margin else math.inf for half, size in pairs)
    proven = min(_JOINT * half / max(size, 1e-9) for half, size in pairs)
    need = draft.n * min(within, proven) ** 2
    digits = 10 ** max(math.floor(math.log10(max(need, 1.0))) - 1, 0)
    rows = math.ceil(need / digits) * digits
    return f"; about {rows:,} rows would decide" if rows > draft.n else ""


_JOINT = 1.5
"""By what factor one of about ten tests needs a smaller error than a test alone."""


def _small(value: float, places: int, *, trim: bool = True) -> str:
    """So many decimals; two digits where these would show 0; 0 below 0.0001."""
    if abs(value) >= 0.5 * 10.0**-places:
        return fixed(value, places, trim=trim)
    return number(value, 2) if abs(value) >= 1e-4 else "0"


def _points(share: float) -> str:
    told = _small(100.0 * abs(share), 1)
    return f"{told} point" if told == "1" else f"{told} points"


def _span(record: Record, *, times: float = 1.0, places: int = 1) -> str:
    """A record's interval in brackets."""
    return _between(times * record.lower, times * record.upper, places)


def _between(one: float, other: float, places: int) -> str:
    """An interval in brackets, the ends in order; empty where none is known."""
    ends = sorted((one, other))
    if any(map(math.isnan, ends)):
        return ""
    dash = "–" if ends[0] >= 0 else " to "
    return f" ({fixed(ends[0], places)}{dash}{fixed(ends[1], places)})"


def _share(record: Record) -> str:
    return f"{percent(record.value)}{_span(record, times=100.0)}"


def _rows(draft: Draft, _: Finding) -> Words:
    told = " ".join(_ROWS[each.name](each) for each in draft.facts["found"])
    return Words(told.removesuffix("."), "", "")


def _copies(fault: RowFault) -> str:
    n, distinct = int(fault.facts["n"]), int(fault.facts["distinct"])
    seen = f"{n:,} rows hold {distinct:,} different ones: y, inputs and predictions repeat."
    if not fault.facts["together"]:
        return f"{seen} Remove copies, or name what they share with --cluster."
    return (
        f"{seen} Copies count as one cluster; remove them, or name what they share with --cluster."
    )


def _variance(fault: RowFault) -> str:
    times = _small(float(fault.facts["times"]), 2, trim=False)
    seen = f"Errors are {times} times their stated size"
    read = str(fault.facts["read"])
    if read == "sd":
        return f"{seen} and go with its square: an sd was read as a variance. Read it with --sd."
    if fault.bad:
        why = "and go with its square root: this looks like a variance"
    else:
        why = "and as large as its square root: perhaps it is a variance"
    return f"{seen} {why}. Read that column with --variance, or give its square root."


def _units(fault: RowFault) -> str:
    factor, shift = float(fault.facts["factor"]), float(fault.facts["shift"])
    where = str(fault.facts["where"])
    who = f"Where {where}, predictions" if where else "Predictions"
    look = "look" if fault.bad else "may be"
    if shift and factor == 1.0:
        kelvin = "degrees Celsius, and y in kelvin" if shift > 0 else "kelvin, and y in Celsius"
        what = f"as if in {kelvin}" if fault.bad else kelvin
    elif shift:
        ways = ("Celsius, and y in Fahrenheit", "Fahrenheit, and y in Celsius")
        what = f"as if in degrees {ways[factor < 1.0]}"
    elif factor > 1.0:
        what = f"divided by {number(factor, 7)}"
    else:
        what = f"multiplied by {number(1.0 / factor, 7)}"
    remedy = "Give y and predictions in one unit"
    if fault.facts["multiply"]:
        remedy += "; howsure recalibrate --method multiply does it"
    return f"{who} {look} {what}. {remedy}."


def _leakage(fault: RowFault) -> str:
    ask = (
        "This is too good: make sure that these rows are new and that the model never saw their y."
    )
    if "same" in fault.facts:
        return f"{percent(float(fault.facts['same']), 0)} of predictions equal y. {ask}"
    size = _small(float(fault.facts["size"]), 2, trim=False)
    return f"Errors are {size} times their stated size. {ask}"


def _target(fault: RowFault) -> str:
    return (
        f"The input {fault.facts['column']} is y itself. If the model was given it, it knew the "
        "answer; if not, leave it out of the inputs."
    )


def _marks(fault: RowFault) -> str:
    values = listed([_plain(value) for value in fault.facts["values"]])
    what = "y is" if fault.facts["what"] == "y" else "Predictions are"
    return (
        f"{what} {values} in {_of_rows(fault)}, far from all others: this looks like a mark of "
        "missing values. Leave these rows out, or leave such cells empty and use --missing drop."
    )


def _plain(value: float) -> str:
    """A value as it stands in a file."""
    return minus(f"{value:.7g}".replace("e+", "e"))


def _of_rows(fault: RowFault) -> str:
    count = int(fault.rows)
    return f"{count:,} {'row' if count == 1 else 'rows'} ({percent(fault.share)})"


def _clipped(fault: RowFault) -> str:
    ends = [
        f"{number(value)} and never {'above' if high else 'below'}"
        for value, high in fault.facts["ends"]
    ]
    return (
        f"y is {' or '.join(ends)} in {_of_rows(fault)}: it looks clipped there. "
        "Judge y before it was clipped, or predict a distribution with a share at that value."
    )


def _clipped_predictions(fault: RowFault) -> str:
    high, value = bool(fault.facts["high"]), number(float(fault.facts["value"]))
    return (
        f"Predictions are {value} and never {'above' if high else 'below'} in {_of_rows(fault)}, "
        f"and y lies beyond in {int(fault.facts['beyond']):,}. "
        "They look clipped: give them as the model made them."
    )


def _rounded(fault: RowFault) -> str:
    step, coarse = float(fault.facts["step"]), float(fault.facts["coarse"])
    return (
        f"y is rounded to {_plain(step)}, a step of {number(coarse, 2)} stated sd. "
        "Give y unrounded, or predict a distribution of rounded values."
    )


def _censored(fault: RowFault) -> str:
    return (
        f"y seems censored in {_of_rows(fault)}, by the column {fault.facts['column']}: there it "
        "is a lower bound. No measure here allows for that; without these rows, small y prevail."
    )


def _swapped(fault: RowFault) -> str:
    if fault.name == "mean_and_sd":
        what, flags = "The mean and the sd", "--mean and --sd"
    else:
        what, flags = "y and its prediction", "--y and --point or --mean"
    return f"{what} look swapped: the other way round they agree. Name their columns by {flags}."


def _one_prediction(fault: RowFault) -> str:
    size = fixed(float(fault.facts["correlation"]), 2)
    return (
        f"All rows have one prediction, though y follows {fault.facts['column']} (r = {size}). "
        "Give the prediction of each row."
    )


def _order(fault: RowFault) -> str:
    lag = int(fault.facts["lag"])
    here, there = (fixed(float(fault.facts[name]), 2) for name in ("here", "there"))
    how = f"moved by {abs(lag)} {'row' if abs(lag) == 1 else 'rows'}" if lag else "turned round"
    return (
        f"y and predictions correlate by {there} if one is {how}, and by {here} as they stand. "
        "Bring both into one order, by a name that each row has."
    )


_ROWS: Mapping[str, Callable[[RowFault], str]] = {
    "copies": _copies,
    "variance": _variance,
    "units": _units,
    "leakage": _leakage,
    "target": _target,
    "marks": _marks,
    "clipped": _clipped,
    "clipped_predictions": _clipped_predictions,
    "rounded": _rounded,
    "censored": _censored,
    "mean_and_sd": _swapped,
    "swapped": _swapped,
    "one_prediction": _one_prediction,
    "order": _order,
}
"""Each thing that rows are not, with what to do."""


def _coverage(draft: Draft, _: Finding) -> Words:
    cover, facts = draft.facts["record"], draft.facts
    what = "sets" if facts["sets"] else "intervals"
    seen = f"The {percent(facts['coverage'])} {what} cover {_share(cover)}"
    least, most = facts["claims"]
    if most - least > 5e-4:
        seen += f", where the predictions claim {percent(least)} to {percent(most)}"
    elif abs(least - facts["coverage"]) > 5e-4:
        seen += f", where the predictions claim {percent(least)}"
    way = "under-cover" if draft.effect < 0 else "over-cover"
    well = "in line with the nominal coverage"
    return Words(seen, f"they {way} by {_points(draft.effect)}", well + _as_others(draft, what))


def _as_others(draft: Draft, what: str) -> str:
    """That what holds at one stated level holds at the others too."""
    others = sorted(draft.facts.get("others", ()))
    if not others:
        return ""
    if len(others) > _FEW_LEVELS:
        return f", as are the {what} of the {len(others)} other levels"
    return f", as are those at {listed([percent(each) for each in others])}"


_FEW_LEVELS = 3


def _bias(draft: Draft, _: Finding) -> Words:
    found: Record = draft.facts["record"]
    low = draft.effect > 0
    if draft.facts.get("point"):
        seen = (
            f"The point forecast is {'below' if low else 'above'} y by "
            f"{number(abs(found.value), 3)} on average, "
            f"{percent(abs(draft.effect), 0)} of its mean error"
        )
    else:
        far = f"{abs(found.value):.2f} stated sd {'above' if low else 'below'}"
        if abs(found.value) < 0.005:
            far = "within 0.01 stated sd of"
        seen = f"y lies {far} its prediction on average"
    way = "low" if low else "high"
    return Words(seen, f"predictions are too {way}", "predictions are centred")


def _spread(draft: Draft, _: Finding) -> Words:
    found: Record = draft.facts["record"]
    times = _small(found.value, 2, trim=False)
    seen = f"Errors are {times} times their stated size{_span(found, places=2)}"
    way = "small" if draft.effect > 0 else "large"
    return Words(seen, f"the stated spread is too {way}", "the stated spread is right")


def _skew(draft: Draft, finding: Finding) -> Words:
    seen = f"Skew moves stated probabilities by up to {_points(draft.effect)}"
    way = "upper" if draft.effect > 0 else "lower"
    fault = f"the {way} tail is longer than stated"
    return Words(seen, fault, "the stated skew is right", _outside(draft, finding))


def _tails(draft: Draft, finding: Finding) -> Words:
    seen = f"Tails move stated probabilities by up to {_points(draft.effect)}"
    way = "heavier" if draft.effect > 0 else "lighter"
    fault = f"tails are {way} than stated"
    return Words(seen, fault, "the stated tails are right", _outside(draft, finding))


def _outside(draft: Draft, finding: Finding) -> str:
    """What is seen in the outermost cells, of a fault alone: bias and spread move it too."""
    told = draft.facts["record"].options
    if finding.state != "bad" or "seen_below" not in told:
        return ""
    low, high = float(told["stated_below"]), 1.0 - float(told["stated_above"])
    below, above = (percent(float(told[f"seen_{side}"])) for side in ("below", "above"))
    return (
        f"Of y, {below} lie below the stated {percent(low)} quantile "
        f"and {above} above the {percent(high)} quantile."
    )


def _one_sided(draft: Draft, _: Finding) -> Words:
    below = float(draft.facts["below"])
    above = below + draft.facts["record"].value
    level = f"{percent(draft.facts['coverage'])} " if draft.facts.get("others") else ""
    seen = (
        f"y lies below its {level}interval in {percent(below)} of rows and above it in "
        f"{percent(above)}"
    )
    side = "above" if draft.effect > 0 else "below"
    return Words(seen, f"misses are mostly {side}", "misses are balanced")


def _support(draft: Draft, _: Finding) -> Words:
    told = _small(100.0 * draft.effect, 1)
    seen = f"{told} % of y have probability 0 under their prediction"
    return Words(seen, "the predictive distribution rules out values that occurred", "")


def _groups(draft: Draft, finding: Finding) -> Words:
    facts = draft.facts
    where = draft.where
    spells, limit = int(facts.get("spells", 0)), ""
    stretches = "1 spell" if spells == 1 else f"{spells:,} spells"
    seen = (
        f"{where} covers {percent(float(facts['value']))} of its {float(facts['rows']):,.0f} rows"
        f"{f' in {stretches}' if spells else ''}; "
        f"{percent(float(facts['expected']))} is {facts['by']}"
    )
    if float(facts.get("p_here", 1.0)) < LEVEL <= finding.p:
        limit = f"{stretches} cannot show whether {where} is so in general."
    worst, more = facts.get("worst"), ""
    if finding.state == "bad" and isinstance(worst, Record) and worst.lower > 0:
        who = "It" if worst.group == where else worst.group
        more = f"{who} is at least {_points(worst.lower)} short of its claim."
    margin = _points(QUESTIONS[finding.id].margin)
    if facts["by"] != FROM_ALL:
        return Words(seen, "it falls short", f"no group falls {margin} short", more)
    well = f"no group differs by more than {margin}"
    return Words(seen, "groups differ in coverage", well, more, limit)


def _region(draft: Draft, _: Finding) -> Words:
    found: Record = draft.facts["record"]
    seen = (
        f"Where {draft.where}, coverage is {percent(found.value)} "
        f"against an expected {percent(found.null)}"
    )
    high = draft.effect > 0
    fault = {
        "coverage": "coverage depends on the inputs",
        "bias": f"y lies {'above' if high else 'below'} its prediction there",
        "spread": f"errors are too {'large' if high else 'small'} for their stated size there",
    }[str(found.options["signal"])]
    return Words(seen, fault, "the worst region found is in line")


def _ease(draft: Draft, finding: Finding) -> Words:
    facts = draft.facts
    found: Record = facts["record"]
    seen = (
        f"Where {draft.where}, {percent(float(facts['value']))} of "
        f"{float(facts['rows']):,.0f} rows are covered; "
        f"{percent(float(facts['expected']))} is {FROM_ALL}"
    )
    margin = _points(QUESTIONS[finding.id].margin)
    more = (
        f"T-CV is {fixed(found.value, 3)}, of a correctly specified model {fixed(found.null, 3)}."
    )
    fault = "coverage depends on ease"
    return Words(seen, fault, f"no part differs by more than {margin}", more)


def _congruence(draft: Draft, _: Finding) -> Words:
    found: Record = draft.facts["record"]
    seen = (
        f"Mean CCE is {number(found.value, 3)}; "
        f"a correctly specified model has {number(found.null, 3)}"
    )
    return Words(seen, "at some inputs the predictive distribution is wrong", "")


def _width(draft: Draft, _: Finding) -> Words:
    found: Record = draft.facts["record"]
    if draft.facts["equal"]:
        fault = "the noise varies with the inputs"
        if not draft.where:
            seen = "Every row has the same width"
            return Words(seen, fault, "the inputs do not predict the size of errors")
        seen = (
            "Every row has the same width. "
            f"Where {draft.where}, errors are {found.value:.2f} times those elsewhere"
        )
        return Words(seen, fault, "constant noise, as stated")
    wide, narrow = (
        _small(float(found.options[name]), 2, trim=False) for name in ("widest", "narrowest")
    )
    seen = (
        f"Errors are {wide} times their stated size where widths are large, "
        f"{narrow} times where small"
    )
    way = "overreact" if draft.effect < 0 else "react too little"
    return Words(seen, f"widths {way}", "widths follow the errors")


def _trade(draft: Draft, _: Finding) -> Words:
    low, whole = draft.facts["record"], draft.facts["whole"]
    span = _span(low, times=math.copysign(1.0, low.value))
    start, end = map(float, str(low.options["miss_range"]).split(" to "))
    part = in_words((start, end))
    seen = f"At miscoverage {part}, these widths are {_against(low)} than a constant band{span}"
    more = f"Over all levels of miscoverage they are {_against(whole)}."
    return Words(seen, "a constant band is better", "the varying widths help", more)


def _against(gain: Record) -> str:
    way = "better" if gain.value >= 0 else "worse"
    return f"{_small(abs(gain.value), 1)} % {way}"


def _sets(draft: Draft, _: Finding) -> Words:
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
    fault = "coverage depends on the size of the set"
    return Words(seen, fault, "sets of all sizes cover alike", more)


def _dependence(draft: Draft, finding: Finding) -> Words:
    found: Dependence = draft.facts["found"]
    size = found.signal == "size"
    later = f" at lag {found.lag}" if found.lag > 1 else ""
    seen = f"(r = {fixed(found.correlation, 2)}{later})"
    if found.by == "file":
        told = (
            f"{'Sizes of e' if size else 'E'}rrors of neighbouring rows in the file are correlated"
        )
        more = "If rows stand in the order of time, name that column with --time."
        return Words(f"{told} {seen}", "", "", more)
    how = "correlated in time" if found.by == "time" else "correlated within clusters"
    verb = {"caution": "are", "good": "are not"}.get(finding.state, "may be")
    told = f"{'Sizes of errors' if size else 'Errors'} {verb} {how} {seen}"
    if finding.state == "caution":
        count = f"{found.n:,.0f} rows count as about {roughly(found.effective)}"
        few = "These are too few for any test." if found.effective < HARDLY else ""
        return Words(f"{told}: {count}", "", "", few)
    more = "" if finding.state == "good" else "Rows are too few to tell."
    return Words(told, "", "", more)


def _drift(draft: Draft, finding: Finding) -> Words:
    told, signal = draft.facts["record"].options, str(draft.facts["signal"])
    before, after, latest = (float(told[name]) for name in ("before", "after", "latest"))
    low, high = float(told["after_lower"]), float(told["after_upper"])
    what, unit = {
        "coverage": ("coverage", ""),
        "spread": ("errors", " times their stated size"),
        "bias": ("y", " stated sd above its prediction"),
    }[signal]
    times, places = (100.0, 1) if signal == "coverage" else (1.0, 2)

    def say(value: float) -> str:
        return percent(value) if signal == "coverage" else fixed(value, 2)

    way = "rose" if draft.effect > 0 else "fell"
    moved = {"coverage": way, "spread": "went", "bias": "moved"}[signal]
    span = _between(times * low, times * high, places)
    levels = f"from {say(before)} to {say(after)}{span}{unit}"
    if "claimed_after" in told:
        one, other = (percent(float(told[f"claimed_{side}"])) for side in ("before", "after"))
        what = "coverage against its claim"
        levels = f"from {say(before)} ({one} claimed) to {say(after)} ({other} claimed)"
    fault = {"coverage": "coverage", "spread": "the spread", "bias": "the bias"}[signal] + " drifts"
    well = f"changes stay within {_points(_margin(finding))}"
    if signal != "coverage":
        well = f"no probability moves by {_points(_margin(finding))}"
    if finding.state not in ("bad", "negligible"):
        seen = f"The clearest change, around {told['when']}, is of {what} {levels}"
        return Words(seen, fault, well)
    seen = f"Around {told['when']} {what} {moved} {levels}"
    if finding.state == "negligible":
        return Words(seen, fault, well)
    sure = _points(draft.facts["record"].lower)
    more = f"It {way} by at least {sure}."
    if signal != "coverage":
        more = f"Stated probabilities moved by at least {sure}."
    if not low <= latest <= high:
        more += f" Over the last tenth of rows it is {say(latest)}."
    return Words(seen, fault, well, more)


def _comparison(draft: Draft, finding: Finding) -> Words:
    found: Standing = draft.facts["standing"]
    title, count = found.score.title, len(found.models)
    best = [name for name, held in zip(found.models, found.best, strict=True) if held]
    rest = [name for name, held in zip(found.models, found.best, strict=True) if not held]
    p = "as no row differs" if math.isnan(finding.p_adjusted) else p_words(finding.p_adjusted)
    if count == 2 and rest:
        seen = f"{best[0]} beats {rest[0]} in {title} by {number(abs(draft.effect), 3)} ({p})"
    elif count == 2:
        seen = f"{best[0]} and {best[1]} cannot be told apart in {title} ({p})"
    elif count > _NAMED:
        seen = f"{found.models[0]} has the lowest {title}; "
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
                found.behind[low, high]
                for low in np.flatnonzero(~found.best)
                for high in np.flatnonzero(found.best)
            )
            each = "both beat" if len(best) == 2 else "all beat"
            verb = "is" if len(rest) == 1 else "are"
            told = f"{each} {listed(rest)}" if by_all else f"{listed(rest)} {verb} provably worse"
            seen += f"; {told}"
    return Words(seen, "", "", _not_compared(found.left_out))


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


_WORDS: Mapping[str, Callable[[Draft, Finding], Words]] = {
    "rows": _rows,
    "coverage": _coverage,
    "bias": _bias,
    "spread": _spread,
    "skew": _skew,
    "tails": _tails,
    "one_sided": _one_sided,
    "support": _support,
    "groups": _groups,
    "region": _region,
    "ease": _ease,
    "congruence": _congruence,
    "width": _width,
    "trade": _trade,
    "sets": _sets,
    "dependence": _dependence,
    "drift": _drift,
    "comparison": _comparison,
}


_NAMES = {
    "coverage": "overall coverage",
    "one_sided": "the balance of misses",
    "groups": "coverage in groups",
    "region": "coverage given inputs",
    "ease": "coverage by ease",
    "width": "widths",
    "trade": "the trade-off of width and coverage",
    "support": "impossible outcomes",
}
"""Findings within a sentence, where their ids are no words."""


def next_step(
    advice: Advice,
    learnt: Sequence[Learnt],
    lifted: tuple[str, float, float] | None,
) -> str:
    """What to do next, in words: the mend, its gain on held-out rows, and what it heals."""
    what = _mended(advice.method, learnt).format(by=" and ".join(advice.by))
    since = f", from rows since {advice.since} alone" if advice.since else ""
    places = 1 if abs(advice.upper) >= 0.01 else 2
    ends = f"{fixed(100 * advice.lower, places)} to {fixed(100 * advice.upper, places)}"
    share = f"{fixed(100 * advice.gain, places)} %"
    if advice.lower > 0:
        gain = f"this cuts the {advice.score} by {share} ({ends})"
    else:
        gain = f"the {advice.score} does not change beyond its error (gain {share}, {ends})"
    told = f"Best next step: {what}{since}. On held-out fifths {gain}."
    if lifted is not None:
        name, before, after = lifted
        told += f" Coverage of {name} goes from {percent(before)} to {percent(after)}."
    if advice.heals:
        told += f" It brings {_named(advice.heals)} in line."
    if advice.leaves:
        told += f" It does not correct {_named(advice.leaves)}."
    return told


def _mended(method: str, learnt: Sequence[Learnt]) -> str:
    """What a mend does, with the one number that it learnt if there is one."""
    info = METHODS[method]
    return (info.says(learnt) if learnt else "") or info.words


def _named(ids: Sequence[str]) -> str:
    return listed([_NAMES.get(each, each) for each in ids])


def nothing_helps(
    red: Sequence[Finding], nearest: tuple[str, float, int] | None, reason: str
) -> str:
    """That nothing that was tried helps, and what the bad findings need instead."""
    if reason:
        told = f"No next step was found: {reason}."
    else:
        told = "Nothing that was tried helps beyond chance."
    if nearest is not None:
        method, gain, rows = nearest
        digits = 10 ** max(math.floor(math.log10(max(rows, 1))) - 1, 0)
        told += (
            f" The nearest is {method}, with a gain of {percent(gain)}. "
            f"About {math.ceil(rows / digits) * digits:,} rows would prove it."
        )
    needs = [_NEEDS[each.id].format(where=each.where) for each in red if each.id in _NEEDS]
    return " ".join([told, *dict.fromkeys(needs)])


_NEEDS: Mapping[str, str] = {
    "groups": "For groups: more rows of {where}, or a model that uses this column.",
    "region": "For the inputs: a model that fits the rows better where {where}.",
    "ease": "For ease: calibration within parts of the rows by ease.",
    "width": "For widths: inputs that tell easy rows from hard ones.",
    "trade": "For widths: inputs that tell easy rows from hard ones.",
    "drift": "For drift: a longer history since the change, or a model trained on recent rows.",
    "sets": "For label sets: class probabilities, from which new sets can be built.",
    "support": "For impossible outcomes: a predictive distribution that allows them.",
}


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
