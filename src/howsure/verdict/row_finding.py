"""Whether rows are what they seem, as a finding: each thing that they are not, with what to do."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from howsure.core.errors import UnanswerableError, either
from howsure.core.formats import fixed, listed, minus, number, percent
from howsure.core.text import capitalized
from howsure.engine.finding import Case, Draft, Finding, FindingQuestion, Words, small
from howsure.inputs.roles import name_roles
from howsure.verdict.copies import RowFault
from howsure.verdict.rows import row_faults
from howsure.verdict.without_y import NAME, WIDTHS, without_y


def _draft_rows(case: Case) -> Draft:
    tau = 1.0 if isinstance(case.dependence, str) else case.dependence.tau
    missing = without_y(case)
    faults = row_faults(case.evalset, tau)
    faults = faults if missing is None else (missing, *faults)
    fewest = case.evalset.fewest
    if fewest > 1:  # a mark of few rows is a value of single ones
        faults = tuple(fault for fault in faults if fault.rows >= fewest)
    if not faults:
        raise UnanswerableError("")  # of rows that are what they seem nothing is said
    return Draft(
        effect=faults[0].share,
        n=float(case.evalset.n),
        good=all(fault.harmless for fault in faults),
        facts={"found": faults, "bad": any(fault.bad for fault in faults)},
    )


def _describe_rows(draft: Draft, _: Finding) -> Words:
    faults = [_FAULTS[fault.name](fault, **fault.facts) for fault in draft.facts["found"]]
    (clause, more), *others = faults
    after = [more, *(f"{capitalized(seen)}. {remedy}" for seen, remedy in others)]
    return Words(capitalized(clause), more=" ".join(after).strip(), clause=clause)


_Fault = tuple[str, str]
"""What was seen, as a part of a sentence; and what to do, or what follows, in sentences."""


def _without_y(
    fault: RowFault,
    n: float,
    apart: Mapping[str, Any],
    between: tuple[float, float] | None = None,
) -> _Fault:
    verb = "has" if fault.rows == 1 else "have"
    seen = f"{fault.rows:,.0f} of {n:,.0f} rows {verb} no y"
    if "where" in apart:
        inside, outside = (percent(share, 0) for share in apart["shares"])
        seen += f": {inside} of those in {apart['where']}, {outside} of the others"
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
        seen += "; in all columns they are like the other rows"
    if between is None:
        return seen, ""
    ends = f"{math.floor(100.0 * between[0]):.0f} and {math.ceil(100.0 * between[1]):.0f} %"
    return seen, f"Coverage over all rows is between {ends}."


def _copies(fault: RowFault, n: int, distinct: int) -> _Fault:
    name = f"name the column they share with {name_roles(cluster=...)}"
    remedy = f"Remove the copies, or {name}."
    if fault.harmless:
        remedy = f"Copies count as one cluster; remove them, or {name}."
    seen = f"only {distinct:,} of {n:,} rows are distinct: y, inputs and predictions repeat"
    return seen, remedy


def _corrected(fault: RowFault) -> _Fault:
    return (
        f"{int(fault.rows):,} rows were delivered twice: pairs of rows with the same time differ "
        "only by small corrections",
        "Keep one of each pair.",
    )


def _variance(fault: RowFault, read: str, times: float) -> _Fault:
    seen = f"actual errors are {small(times, 2, trim=False)} × the predicted spread"
    if read == "sd":
        seen += " and proportional to its square: an sd was read as a variance"
        return seen, f"Give it with {name_roles(sd=...)}."
    if fault.bad:
        why = "and proportional to its square root: it looks like a variance"
    else:
        why = "and as large as its square root: it may be a variance"
    return f"{seen} {why}", f"Give its square root, or that column with {name_roles(variance=...)}."


def _multiply() -> str:
    """The recalibration by a factor."""
    python = "howsure.recalibrate(new, calibration, method='multiply')"
    return either(python, "howsure recalibrate --method multiply")


def _units(fault: RowFault, where: str, factor: float, shift: float, multiply: bool) -> _Fault:
    look = "look" if fault.bad else "may be"
    if shift and factor == 1.0:
        kelvin = "degrees Celsius, and y in kelvin" if shift > 0 else "kelvin, and y in Celsius"
        what = f"as if in {kelvin}" if fault.bad else kelvin
    elif shift:
        ways = ("Celsius, and y in Fahrenheit", "Fahrenheit, and y in Celsius")
        what = f"as if in degrees {ways[factor < 1.0]}"
    else:
        what = _times(factor, 7)
    remedy = "Use the same unit for y and predictions"
    if multiply:
        remedy += f"; {_multiply()} does it"
    return f"{where or 'predictions'} {look} {what}", f"{remedy}."


def _times(factor: float, digits: int) -> str:
    """What was done to predictions that y exceeds by a factor."""
    if factor > 1.0:
        return f"divided by {number(factor, digits)}"
    return f"multiplied by {number(1.0 / factor, digits)}"


def _leakage(_: RowFault, same: float = 0.0, size: float = math.nan) -> _Fault:
    seen, why = f"{percent(same, 0)} of predictions equal y", ""
    if not same:
        times = small(size, 2, trim=False)
        seen, why = (
            f"actual errors are {times} × the predicted spread",
            ", or its predicted spread is far too large",
        )
    seen += f": the model may have seen these y{why}"
    return seen, "Evaluate on rows that the model never saw."


def _target(_: RowFault, column: str, size: float) -> _Fault:
    near = (
        f"predicts y to within {small(size, 2)} predicted sd"
        if size > _MAX_DIFFERENCE_OF_EQUALS
        else "is y itself"
    )
    return (
        f"the input {column} {near}",
        "If it is an input of the model, this is leakage; if not, remove it from the inputs.",
    )


# Stated sd by which numbers differ that were written with fewer digits: six are usual.
_MAX_DIFFERENCE_OF_EQUALS = 1e-6


def _marks(fault: RowFault, what: str, values: Sequence[float]) -> _Fault:
    named = listed([_plain(value) for value in values])
    way = name_roles(missing_value=[*map(float, values)], missing="drop")
    return (
        f"{'y is' if what == 'y' else 'predictions are'} {named} in {_of_rows(fault)}, far from "
        "all others: this looks like a code for missing values",
        f"If so, {way} omits these rows.",
    )


def _plain(value: float) -> str:
    """A value as it stands in a file."""
    return minus(f"{value:.7g}".replace("e+", "e"))


def _of_rows(fault: RowFault) -> str:
    count = int(fault.rows)
    return f"{count:,} {'row' if count == 1 else 'rows'} ({percent(fault.share)})"


def _end(value: float, high: bool) -> str:
    return f"{number(value)} and never {'above' if high else 'below'}"


def _clipped(fault: RowFault, ends: Sequence[tuple[float, bool]]) -> _Fault:
    return (
        f"y is {' or '.join(_end(*end) for end in ends)} in {_of_rows(fault)}: it looks clipped "
        "there",
        "Use y before it was clipped, or predict a distribution with probability mass at that "
        "value.",
    )


def _clipped_predictions(fault: RowFault, value: float, high: bool, beyond: int) -> _Fault:
    return (
        f"predictions are {_end(value, high)} in {_of_rows(fault)}, and y is beyond in {beyond:,}",
        "They look clipped: give the model's original predictions.",
    )


def _rounded(_: RowFault, step: float, coarse: float) -> _Fault:
    size = f"{number(coarse, 2)} predicted sd"
    if step == 1.0:
        return (
            f"y contains whole numbers, in steps of {size}",
            "If they are counts, predict a distribution of counts, such as a Poisson; if not, give "
            "y unrounded.",
        )
    return (
        f"y is rounded to {_plain(step)}, a step of {size}",
        "Give y unrounded, or predict a distribution of rounded values.",
    )


def _censored(fault: RowFault, column: str) -> _Fault:
    return (
        f"y seems censored in {_of_rows(fault)}, by the column {column}: there it is a lower bound",
        "No measure here accounts for that; without these rows, small y are over-represented.",
    )


def _swapped(fault: RowFault) -> _Fault:
    what, roles = "y and its prediction", {"y": ..., "point": ...}
    if fault.name == "mean_and_sd":
        what, roles = "the mean and the sd", {"mean": ..., "sd": ...}
    return f"{what} look swapped: exchanged, they agree", f"Name them with {name_roles(**roles)}."


def _one_prediction(_: RowFault, column: str, correlation: float) -> _Fault:
    return (
        f"all rows have the same prediction, though y depends on {column} (r = "
        f"{fixed(correlation, 2)})",
        "Give one prediction per row.",
    )


def _order(_: RowFault, lag: int, how: str, here: float, there: float) -> _Fault:
    way = f"moved by {abs(lag)} {'row' if abs(lag) == 1 else 'rows'}" if lag else "reversed"
    seen = f"y and predictions have a correlation of {fixed(there, 2)} if one is {way}"
    remedy = "Sort both into the same order, using an identifier per row"
    if how and lag:
        seen += f" in time{' within each series' if how == 'series' else ''}"
        remedy = "Check that both refer to the same times, for example in one time zone"
    return f"{seen}, but of {fixed(here, 2)} as given", f"{remedy}."


def _exchanged(_: RowFault, column: str, pair: tuple[str, str]) -> _Fault:
    first, second = pair
    return (
        f"predictions of {column}={first} and {column}={second} look swapped: exchanged, they fit "
        "y",
        f"Check how predictions were joined to rows on {column}.",
    )


def _log(_: RowFault, of: str, base: str) -> _Fault:
    decimal = "decimal " if base == "decimal" else ""
    log, values = ("what was predicted", "y") if of == "y" else ("y", "what was predicted")
    seen = f"{log} looks like the {decimal}logarithm of {values}"
    return seen, "Use the same scale for both."


def _multiple(_: RowFault, factor: float) -> _Fault:
    return (
        f"predictions look {_times(factor, 3)}: y rises with them by that factor",
        f"If units differ, use the same unit for both; {_multiply()} estimates it.",
    )


_FAULTS: Mapping[str, Callable[..., _Fault]] = {
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
    asked="Do the rows have data problems?",
    label="Rows",
    draft=_draft_rows,
    words=_describe_rows,
    tolerance=0.0,
    margin=math.nan,
    cause="the problems of the rows",
    healed="none",
)
