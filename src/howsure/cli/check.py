"""`howsure check`: limits that a pipeline must hold, judged with the data's own uncertainty."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from howsure.cli.options import ReadOptions
from howsure.cli.terminal import SIGNS, Console, escape
from howsure.core.errors import InputError
from howsure.core.records import Record
from howsure.core.threads import one_thread
from howsure.metrics.catalogue import catalogue
from howsure.metrics.measure import Evaluation, evaluate
from howsure.predictions import EvalSet, content_order
from howsure.stats.estimate import one_more
from howsure.verdict import examine
from howsure.verdict.dependence import follow
from howsure.verdict.family import check_judging

State = Literal["holds", "fails", "undecided"]

_NAMED = {"coverage": "empirical_coverage", "drift": "coverage_drift"}


@dataclass(frozen=True, slots=True)
class Limit:
    """A bound on a measure: at least, or at most, a number."""

    metric: str
    side: Literal["min", "max"]
    value: float

    def __str__(self) -> str:
        return f"{self.metric} {'≥' if self.side == 'min' else '≤'} {self.value:g}"


def parse_limits(
    named: Mapping[str, float | None],
    least: Sequence[str],
    most: Sequence[str],
    *,
    none: bool = False,
) -> tuple[Limit, ...]:
    """Limits from flags such as ``--min-coverage 0.88`` and ``--max crps=2``."""
    limits: list[Limit] = []
    for flag, value in named.items():
        if value is not None:
            side, _, metric = flag.partition("_")
            limits.append(_limit(_NAMED.get(metric, metric), side, str(value)))
    for side, texts in (("min", least), ("max", most)):
        for text in texts:
            metric, sign, number = text.partition("=")
            if not sign:
                raise InputError(f"--{side} must look like MEASURE=LIMIT, got {text!r}")
            limits.append(_limit(_NAMED.get(metric, metric), side, number))
    if not limits and not none:
        raise InputError("check needs a limit, such as --min-coverage 0.88, or --verdict, got none")
    return tuple(limits)


def _limit(metric: str, side: str, number: str) -> Limit:
    if metric not in catalogue() or not catalogue()[metric].forms:
        raise InputError(f"limit must be on a measure that howsure metrics lists, got {metric!r}")
    try:
        value = float(number)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise InputError(f"limit on {metric} must be a number, got {number!r}")
    return Limit(metric, "min" if side == "min" else "max", value)


def judge(limit: Limit, record: Record, slack: tuple[float, float] = (0.0, 0.0)) -> State:
    """Whether one-sided confidence bounds prove that a limit holds, or fails, or neither.

    The record's interval is two-sided, so its ends must be computed at confidence 2c − 1 for a
    one-sided bound at confidence c. A limit only holds if one more row as bad as the worst would
    not break it: `slack` is how far the lowest and the highest row would move the value.
    """
    low, high, bound, worst = record.lower, record.upper, limit.value, slack[0]
    if limit.side == "max":
        low, high, bound, worst = -high, -low, -bound, -slack[1]
    if math.isnan(low):
        return "undecided"
    if low + worst >= bound:
        return "holds"
    return "fails" if high < bound else "undecided"


def slack_of(found: Evaluation, record: Record) -> tuple[float, float]:
    """How far one more row like the lowest and the highest moves a mean; 0 of bounded shares."""
    rows = found.row_scores(record.metric, record.coverage)
    if rows is None or rows.dtype == np.bool_:
        return 0.0, 0.0
    held = found.evalset
    cluster = None if held.cluster is None else held.cluster.codes
    return one_more(rows - record.value, held.weights, cluster)


@one_thread()
def run(
    files: Sequence[Path],
    limits: Sequence[Limit],
    require_proof: bool,
    judging: tuple[float, Sequence[str]] | None,
    confidence: float,
    seed: int,
    read: ReadOptions,
) -> bool:
    """Judge every limit for every model and coverage, and the verdict; true if one fails."""
    console = Console()
    if not 0.5 < confidence < 1:
        raise InputError(f"--confidence must lie between 0.5 and 1, got {confidence:g}")
    if judging is not None:
        check_judging(*judging)
    loaded = read.load(list(files))
    failed = False
    if judging is not None:
        for held in loaded.evalsets:
            failed |= _report_verdict(console, held, read, seed, judging)
    if not limits:
        return failed
    for held in follow(loaded.evalsets, content_order(loaded.evalsets))[0]:
        names = list(dict.fromkeys(limit.metric for limit in limits))
        found = evaluate(
            held,
            coverages=read.assessed,
            metrics=names,
            confidence=2 * confidence - 1,
            seed=seed,
            slow=names,
        )
        for limit in limits:
            failed |= _report(console, limit, found, require_proof)
    return failed


def _report_verdict(
    console: Console,
    held: EvalSet,
    read: ReadOptions,
    seed: int,
    judging: tuple[float, Sequence[str]],
) -> bool:
    """Tell every finding; true if one is bad."""
    tolerance, ignore = judging
    findings, _ = examine(
        held, coverages=read.assessed, seed=seed, tolerance=tolerance, ignore=ignore
    )
    for finding in findings:
        text = escape(f"{held.model}: {finding.sentence}")
        console.print(f"{SIGNS[finding.state]}  {text}", highlight=False, soft_wrap=True)
    return any(finding.state == "bad" for finding in findings)


def _report(console: Console, limit: Limit, found: Evaluation, require_proof: bool) -> bool:
    failed = False
    for record in found.records:
        if record.metric != limit.metric:
            continue
        if math.isnan(record.value):
            raise InputError(f"{limit} cannot be judged: {record.reason}")
        state = judge(limit, record, slack_of(found, record))
        broken = state == "fails" or (require_proof and state != "holds")
        failed |= broken
        mark = {"holds": "[green]holds[/green]", "fails": "[red]fails[/red]"}
        word = mark.get(state, "[yellow]undecided[/yellow]")
        if broken and state == "undecided":
            word += " [red](not proven)[/red]"
        at = "" if math.isnan(record.coverage) else f" at {record.coverage:g}"
        span = f" ({record.lower:.4g} … {record.upper:.4g})"
        if math.isnan(record.lower):
            span = f" ({record.reason or 'no interval is known'})"
        text = escape(f"{record.model}: {limit}{at}: {record.value:.4g}{span}, n {record.n:,.0f}")
        console.print(f"{word}  {text}", highlight=False, soft_wrap=True)
    return failed
