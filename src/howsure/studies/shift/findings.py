"""Results under shift as a page needs them: every number, verdicts, what was published."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal, final

from howsure.core.records import Record
from howsure.report.document import Tone
from howsure.studies.shift.methods import SHIFT_METHODS, VARIATIONS
from howsure.studies.shift.published import (
    PUBLISHED_COVERAGES,
    PUBLISHED_DATASETS,
    PublishedValue,
    published,
)
from howsure.studies.shift.result import ShiftResult

Verdict = Literal["covers", "over-covers", "undecided", "under-covers", "not known"]

TOLERANCE: Final = 0.3
"""How far coverage may be off, as a share of the nominal miscoverage: 3 points at 90 %."""
TONE_OF: Final[Mapping[Verdict, Tone]] = {
    "covers": "good",
    "over-covers": "watch",
    "undecided": "undecided",
    "under-covers": "bad",
    "not known": "info",
}
"""How a verdict is shown."""


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Finding:
    """One method on one task at one coverage, with all its numbers.

    Attributes
    ----------
    world : str
        What the plan calls the task; `ShiftResult.task` may add a seed.
    result : ShiftResult
        The runs.
    records : mapping of (str, str) to Record
        By measure and test part; the part is empty for measures of validation rows.
    """

    world: str
    result: ShiftResult
    records: Mapping[tuple[str, str], Record]

    @classmethod
    def of(cls, world: str, result: ShiftResult) -> Finding:
        """Compute every number of a result."""
        held = {(r.metric, str(r.options["test"])): r for r in result.records()}
        return cls(world=world, result=result, records=held)

    @property
    def method(self) -> str:
        """What the plan calls the method."""
        return self.result.method

    @property
    def task(self) -> str:
        """The task's name."""
        return self.result.task

    @property
    def selective(self) -> bool:
        """Whether it may decline rows."""
        return any(run.cut is not None for run in self.result.runs)

    def record(self, measure: str, test: str | None = None) -> Record:
        """A number, on the main test if none is named."""
        if (measure, "") in self.records:
            return self.records[measure, ""]
        return self.records[measure, self.result.tests[0] if test is None else test]

    def verdict(self, test: str | None = None) -> Verdict:
        """Whether coverage is nominal on a test part."""
        return verdict_of(self.record("test_coverage", test))


def verdict_of(record: Record) -> Verdict:
    """Whether the whole interval of coverage lies within `TOLERANCE` of nominal."""
    if math.isnan(record.value):
        return "not known"
    reach = TOLERANCE * (1.0 - record.target) + 1e-12
    low, high = record.target - reach, record.target + reach
    if low <= record.lower and record.upper <= high:
        return "covers"
    if record.upper < low:
        return "under-covers"
    return "over-covers" if record.lower > high else "undecided"


def key_of(method: str) -> str | None:
    """The benchmark's key of a method that a plan calls by its key or its title; else None."""
    wanted = method.casefold()
    for known in (*SHIFT_METHODS.values(), *VARIATIONS.values()):
        if wanted in (known.key.casefold(), known.title.casefold()):
            return known.key
    return None


def published_of(found: Finding) -> tuple[PublishedValue, ...]:
    """What was published of a method on a set of this name, under the plan's own names."""
    key, dataset = key_of(found.method), found.world.casefold()
    level = next((c for c in PUBLISHED_COVERAGES if abs(c - found.result.coverage) < 1e-9), None)
    if key is None or level is None or dataset not in PUBLISHED_DATASETS:
        return ()
    return tuple(
        replace(value, method=found.method, dataset=found.task)
        for value in published(dataset, coverage=level)
        if value.method == key
    )


def shared_part(findings: Sequence[Finding]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Methods and tasks such that every one of the methods has an answer on each of the tasks."""
    held: dict[str, list[str]] = {}
    for found in findings:
        if math.isfinite(found.record("test_coverage").value):
            held.setdefault(found.method, []).append(found.task)
    if not held:
        return (), ()
    count = Counter(task for tasks in held.values() for task in tasks)
    if max(count.values()) < len(held):
        most = max(count, key=count.__getitem__)
        held = {method: tasks for method, tasks in held.items() if most in tasks}
        count = Counter(task for tasks in held.values() for task in tasks)
    return tuple(held), tuple(task for task in count if count[task] == len(held))


def kept_count(findings: Iterable[Finding], method: str, tasks: Sequence[str]) -> int:
    """On how many of these tasks a method's coverage is shown to be nominal."""
    return sum(
        found.verdict() == "covers"
        for found in findings
        if found.method == method and found.task in tasks
    )


def home_method(findings: Sequence[Finding]) -> str | None:
    """The method whose MAE measures the shift: conformal prediction, else the first."""
    names = list(dict.fromkeys(found.method for found in findings))
    named = [name for name in names if key_of(name) == "conformal"]
    return next(iter([*named, *names]), None)
