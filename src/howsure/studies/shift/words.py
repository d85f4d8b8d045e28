"""What a page on coverage under shift says: who keeps nominal coverage, and at what cost."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from howsure.core import formats
from howsure.core.formats import counted, listed
from howsure.report.document import GlossaryEntry, Tone, VerdictLine
from howsure.studies.engine import named
from howsure.studies.shift.findings import (
    TOLERANCE,
    TONE_OF,
    Finding,
    Verdict,
    home_method,
    kept_count,
    shared_part,
)

_QUESTIONS: Final[Mapping[Verdict, str]] = {
    "covers": "Nominal coverage",
    "over-covers": "Over-covers",
    "undecided": "Undecided",
    "under-covers": "Under-covers",
    "not known": "Not known",
}
_KINDS: Final[Mapping[bool, str]] = {
    False: "Methods that accept every row",
    True: "Methods that may reject rows",
}
"""What to call methods, by whether they are selective."""
_NAMED: Final = 3

_SOURCE = "Gustafsson, Danelljan and Schön, TMLR 2023"
GLOSSARY: Final = (
    GlossaryEntry(
        name="test_coverage",
        title="Coverage",
        meaning="Share of accepted test rows whose calibrated interval contains y.",
        source=_SOURCE,
        direction="closer to the nominal coverage is better",
        notion="marginal",
    ),
    GlossaryEntry(
        name="prediction_rate",
        title="Prediction rate",
        meaning="Share of test rows that a method accepts; it may reject unfamiliar ones.",
        source=_SOURCE,
        direction="higher is better",
    ),
    GlossaryEntry(
        name="coverage_error",
        title="Coverage error",
        meaning="Distance of the mean coverage over runs from the nominal coverage.",
        formula="|coverage − nominal|",
        source=_SOURCE,
        direction="lower is better",
        notion="marginal",
    ),
    GlossaryEntry(
        name="test_width",
        title="Width",
        meaning="Mean width of the calibrated intervals of the accepted test rows.",
        direction="lower is better",
    ),
    GlossaryEntry(
        name="test_mae",
        title="MAE",
        meaning="Mean absolute error of the accepted test rows.",
        direction="lower is better",
    ),
    GlossaryEntry(
        name="val_coverage",
        title="Validation coverage",
        meaning="Coverage of the calibration rows; the calibration rule fixes it, but for ties.",
    ),
    GlossaryEntry(
        name="val_width",
        title="Validation width",
        meaning="Mean width of the calibrated intervals of all validation rows.",
        direction="lower is better",
    ),
    GlossaryEntry(
        name="val_mae",
        title="Validation MAE",
        meaning="Mean absolute error of all validation rows.",
        direction="lower is better",
    ),
    GlossaryEntry(
        name="relative_mae_change",
        title="Change of MAE",
        meaning="Rise of the mean absolute error of all rows from validation to test.",
        formula="(MAE of test − MAE of validation)/MAE of validation",
        source=_SOURCE,
    ),
)


def title_of(methods: int, datasets: Sequence[str]) -> str:
    """What was studied."""
    on = f"{counted(methods, 'method')} on {named(datasets, 'dataset')}"
    return f"Does coverage survive a shift? {on}"


def headline(findings: Sequence[Finding]) -> VerdictLine | None:
    """Which methods keep their coverage under shift, and what it costs in rows accepted."""
    methods, tasks = shared_part(findings)
    if not methods:
        return None
    inside = [f for f in findings if f.method in methods and f.task in tasks]
    coverage = inside[0].result.coverage
    kept = {method: kept_count(inside, method, tasks) for method in methods}
    full = [method for method in methods if kept[method] == len(tasks)]
    where = _where(len(tasks))
    if len(tasks) < len({found.task for found in findings}):
        where += " that they all answer"
    goal = f"its {formats.level(coverage)} coverage within {_points(TOLERANCE * (1.0 - coverage))}"
    if len(methods) == 1:
        text = f"{methods[0]} is{'' if full else ' not'} shown to keep {goal} {where}."
    else:
        count = f"{len(full) or 'None'} of {len(methods)} methods"
        verb = "are" if len(full) > 1 else "is"
        their = goal.replace("its", "their", 1) if len(full) > 1 else goal
        text = f"{count} {verb} shown to keep {their} {where}."
        best = max(kept.values())
        if full:
            told = [f"{full[0]} ({_rate_words(inside, full[0])})"]
            told += [
                f"{m} ({formats.share(_mean_of(inside, m, 'prediction_rate'))})" for m in full[1:]
            ]
            text = f"{text[:-1]}: {listed(told, _NAMED)}."
        elif best:
            first = next(method for method in methods if kept[method] == best)
            text += f" The most is {best}, by {first} ({_rate_words(inside, first)})."
    broken = any(found.verdict() == "under-covers" for found in inside)
    tone: Tone = "good" if len(full) == len(methods) else "info" if full else "bad"
    if tone == "bad" and not broken:
        tone = "undecided"
    return VerdictLine(text=text, tone=tone)


def cost_lines(findings: Sequence[Finding]) -> tuple[VerdictLine, ...]:
    """How far coverage is from nominal with and without rejection, and the prediction rates."""
    methods, tasks = shared_part(findings)
    inside = [f for f in findings if f.method in methods and f.task in tasks]
    lines = []
    for selective, kind in _KINDS.items():
        held = [found for found in inside if found.selective == selective]
        if not held:
            continue
        names = dict.fromkeys(found.method for found in held)
        off = {method: _mean_of(held, method, "coverage_error") for method in names}
        best, worst = min(off, key=off.__getitem__), max(off, key=off.__getitem__)
        null = float(np.mean([found.record("coverage_error").null for found in held]))
        text = f"{kind} have an average coverage error of {_points(off[best])} ({best})"
        if len(off) > 1:
            text += f" to {_points(off[worst])} ({worst})"
        text += f". Chance alone would show {_points(null)}."
        if selective:
            rates = [_mean_of(held, method, "prediction_rate") for method in names]
            text += f" The prediction rate is {_range(rates)}."
        lines.append(VerdictLine(text=text, question="Coverage error"))
    return tuple(lines)


def task_lines(findings: Sequence[Finding]) -> tuple[VerdictLine, ...]:
    """What is to be said of one task at one coverage: methods by verdict, and the shift's size."""
    lines = []
    for verdict, question in _QUESTIONS.items():
        group = [found for found in findings if found.verdict() == verdict]
        if not group:
            continue
        told = " ".join(f"{words}." for kind in _KINDS if (words := _group_words(group, kind)))
        lines.append(VerdictLine(text=told, tone=TONE_OF[verdict], question=question))
    size = _shift_words(findings)
    if size:
        lines.append(VerdictLine(text=size, tone="info", question="Size of the shift"))
    return tuple(lines)


def _where(tasks: int) -> str:
    names = {1: "on the one dataset", 2: "on both datasets"}
    return names.get(tasks, f"on all {tasks} datasets")


def _points(distance: float) -> str:
    return f"{formats.fixed(100.0 * distance, 1, trim=True)} points"


def _mean(findings: Sequence[Finding], measure: str) -> float:
    return float(np.mean([found.record(measure).value for found in findings]))


def _mean_of(findings: Sequence[Finding], method: str, measure: str) -> float:
    return _mean([found for found in findings if found.method == method], measure)


def _rate_words(findings: Sequence[Finding], method: str) -> str:
    if not any(found.selective for found in findings if found.method == method):
        return "accepts every row"
    return f"accepts {formats.share(_mean_of(findings, method, 'prediction_rate'))} of rows"


def _null(found: Finding) -> float:
    return found.record("coverage_error").null


def _group_words(findings: Sequence[Finding], selective: bool) -> str:
    """Methods of one verdict and kind, each where they are few, else the ends of their range."""
    held = [found for found in findings if found.selective == selective]
    known = [f for f in held if math.isfinite(f.record("test_coverage").value)]
    if len(held) < _NAMED or len(known) < len(held):
        return ". ".join(map(_method_words, held))
    low, *_, high = sorted(held, key=lambda found: found.record("test_coverage").value)
    kind = _KINDS[selective].removeprefix("Methods ")
    ends = (f"{formats.share(f.record('test_coverage').value)} ({f.method})" for f in (low, high))
    rates = [found.record("prediction_rate").value for found in held]
    told = f"{len(held)} methods {kind}: {' to '.join(ends)}"
    return f"{told}, accepting {_range(rates)}" if selective else told


def _range(shares: Sequence[float]) -> str:
    low, high = min(shares), max(shares)
    if high - low < 5e-4:
        return formats.share(low)
    return f"{formats.fixed(100.0 * low, 1)} to {formats.share(high)}"


def _method_words(found: Finding) -> str:
    record = found.record("test_coverage")
    if math.isnan(record.value):
        return f"{found.method}, for {record.reason or 'there is no answer'}"
    rate = found.record("prediction_rate").value
    of = f" of the {formats.share(rate)} accepted" if found.selective else ""
    return f"{found.method} {formats.share(record.value)}{formats.between(record)}{of}"


def _shift_words(findings: Sequence[Finding]) -> str:
    method = home_method(findings)
    found = next((f for f in findings if f.method == method), None)
    if found is None:
        return ""
    change, home = found.record("relative_mae_change"), found.record("val_mae").value
    if math.isnan(change.value):
        return ""
    away = home + found.record("mae_change").value
    units = "" if found.result.units == "1" else f" {found.result.units}"
    told = (
        f"The MAE of {found.method} is {formats.number(home, 3)} on validation rows and "
        f"{formats.number(away, 3)}{units} on all test rows. That is a change of "
        f"{formats.share(change.value)}{formats.between(change)}"
    )
    return f"{told}."
