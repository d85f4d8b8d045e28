"""Whether rows are what they seem, as a finding: each thing that they are not, with what to do."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from howsure.core.errors import UnanswerableError
from howsure.core.formats import fixed, listed, minus, number, percent
from howsure.engine.finding import Case, Draft, Finding, FindingQuestion, Words, small
from howsure.verdict.copies import RowFault
from howsure.verdict.rows import row_faults
from howsure.verdict.without_y import NAME, WIDTHS, without_y


def _draft(case: Case) -> Draft:
    known = case.dependence
    faults = row_faults(case.evalset, 1.0 if isinstance(known, str) else known.tau)
    lacking = without_y(case)
    faults = faults if lacking is None else (lacking, *faults)
    fewest = case.evalset.fewest
    if fewest > 1:  # a mark of few rows is a value of single ones
        faults = tuple(fault for fault in faults if fault.rows >= fewest)
    if not faults:
        raise UnanswerableError("")  # of rows that are what they seem nothing is said
    return Draft(
        effect=faults[0].share,
        n=float(case.evalset.n),
        good=all(fault.harmless for fault in faults),
        facts={"found": faults, "bad": any(each.bad for each in faults)},
    )


def _words(draft: Draft, _: Finding) -> Words:
    said = " ".join(_FAULTS[each.name](each) for each in draft.facts["found"])
    return Words(said.removesuffix("."))


def _without_y(fault: RowFault) -> str:
    apart: Mapping[str, Any] = fault.facts["apart"]
    verb = "has" if fault.rows == 1 else "have"
    seen = f"{fault.rows:,.0f} of {fault.facts['n']:,.0f} rows {verb} no y"
    if "where" in apart:
        here, others = (percent(share, 0) for share in apart["shares"])
        seen += f": {here} of those in {apart['where']}, {others} of the others"
    elif apart and apart["ends"]:
        how = "more often extreme" if apart["outer"] else "less often extreme"
        seen += f"; their {apart['what']} is {how} than that of the rest"
    elif apart and apart["what"] in WIDTHS:
        times = small(apart["times"], 2 if apart["times"] < 1.0 else 1)
        wide = " as wide as" if apart["what"] == WIDTHS[1] else ""
        seen += f"; their {apart['what']} is {times} times{wide} that of the rest"
    elif apart:
        seen += f"; their {apart['what']} is above that of {percent(apart['above'], 0)} of the rest"
    elif fault.rows > 1:
        seen += "; nothing that was stated sets them apart"
    if "between" not in fault.facts:
        return f"{seen}."
    low, high = fault.facts["between"]
    ends = f"{math.floor(100.0 * low):.0f} and {math.ceil(100.0 * high):.0f} %"
    return f"{seen}. Over all rows coverage is between {ends}."


def _copies(fault: RowFault) -> str:
    n, distinct = int(fault.facts["n"]), int(fault.facts["distinct"])
    seen = f"{n:,} rows hold {distinct:,} different ones: y, inputs and predictions repeat."
    if not fault.harmless:
        return f"{seen} Remove copies, or name what they share with --cluster."
    return (
        f"{seen} Copies count as one cluster; remove them, or name what they share with --cluster."
    )


def _corrected(fault: RowFault) -> str:
    return (
        f"{int(fault.rows):,} rows were delivered twice: two rows of one time are alike but for "
        "small corrections. Keep one of them."
    )


def _variance(fault: RowFault) -> str:
    times = small(float(fault.facts["times"]), 2, trim=False)
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
    who = str(fault.facts["where"]) or "Predictions"
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
    if "same" in fault.facts:
        seen, why = f"{percent(float(fault.facts['same']), 0)} of predictions equal y", ""
    else:
        times = small(float(fault.facts["size"]), 2, trim=False)
        seen, why = f"Errors are {times} times their stated size", ", or stated far too much"
    return f"{seen}, as if the model had seen these y{why}. Judge it on rows that it never saw."


def _target(fault: RowFault) -> str:
    size = float(fault.facts["size"])
    near = f"gives y to within {small(size, 2)} stated sd" if size > _SAME else "is y itself"
    return (
        f"The input {fault.facts['column']} {near}. If the model was given it, it knew the "
        "answer; if not, leave it out of the inputs."
    )


_SAME = 1e-6  # stated sd by which numbers differ that were written with fewer digits


def _marks(fault: RowFault) -> str:
    values = listed([_plain(value) for value in fault.facts["values"]])
    written = [f"{value:.10g}".replace("e+", "e") for value in fault.facts["values"]]
    flags = " ".join(f"--missing-value {value}" for value in written)
    what = "y is" if fault.facts["what"] == "y" else "Predictions are"
    return (
        f"{what} {values} in {_of_rows(fault)}, far from all others: this looks like a mark of "
        f"missing values. If it is one, {flags} --missing drop leaves these rows out."
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
    size = f"{number(coarse, 2)} stated sd"
    if step == 1.0:
        return (
            f"y holds whole numbers, in steps of {size}. If they are counts, predict a "
            "distribution of counts, such as a Poisson; if not, give y unrounded."
        )
    return (
        f"y is rounded to {_plain(step)}, a step of {size}. "
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
    lag, where = int(fault.facts["lag"]), str(fault.facts["how"])
    here, there = (fixed(float(fault.facts[name]), 2) for name in ("here", "there"))
    how = f"moved by {abs(lag)} {'row' if abs(lag) == 1 else 'rows'}" if lag else "turned round"
    seen = f"y and predictions correlate by {there} if one is {how}"
    if where and lag:
        within = " within each series" if where == "series" else ""
        seen += f" in time{within}"
        remedy = "Check that both are of the same time, such as one time zone"
    else:
        remedy = "Bring both into one order, by a name that each row has"
    return f"{seen}, and by {here} as they stand. {remedy}."


def _exchanged(fault: RowFault) -> str:
    column, (one, other) = str(fault.facts["column"]), fault.facts["pair"]
    return (
        f"Predictions of {column}={one} and {column}={other} look swapped: exchanged, they fit y. "
        f"Check by which {column} they were joined to their rows."
    )


def _log(fault: RowFault) -> str:
    base = "decimal " if fault.facts["base"] == "decimal" else ""
    one, other = "y", "what was predicted"
    if fault.facts["of"] == "y":
        one, other = "What was predicted", "y"
    return f"{one} looks like the {base}logarithm of {other}. Give both on one scale."


def _multiple(fault: RowFault) -> str:
    factor = float(fault.facts["factor"])
    how = (
        f"divided by {number(factor, 3)}"
        if factor > 1
        else f"multiplied by {number(1.0 / factor, 3)}"
    )
    return (
        f"Predictions look {how}: y rises with them by that factor. If it is a unit, give both in "
        "one; howsure recalibrate --method multiply learns it."
    )


_FAULTS: Mapping[str, Callable[[RowFault], str]] = {
    NAME: _without_y,
    "copies": _copies,
    "corrected": _corrected,
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
    "exchanged": _exchanged,
    "log": _log,
    "multiple": _multiple,
}
"""Each thing that rows are not, with what to do."""


ROWS = FindingQuestion(
    id="rows",
    kind="data",
    asked="Are rows what they seem?",
    label="Rows",
    draft=_draft,
    words=_words,
    tolerance=0.0,
    margin=math.nan,
    cause="what is wrong with the rows",
    healed="none",
)
