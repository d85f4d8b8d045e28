"""Figures of a page on coverage under shift."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from howsure.core.records import Curve, Table
from howsure.figures import Figure
from howsure.figures.ranks import rank_figure
from howsure.report.document import Choice, Option
from howsure.studies.engine import choice_of
from howsure.studies.shift.figures import (
    change_figure,
    degree_figure,
    measure_figure,
    rank_scatter,
    short_names,
    trade_figure,
)
from howsure.studies.shift.findings import Finding, home_method, key_of
from howsure.studies.shift.views import (
    average_errors,
    degree_curves,
    shift_against_error,
    shift_ranks,
)

_STEP: Final = re.compile(r"step-(\d+)")
_FEW_RANKED: Final = 3
_DRAWN: Final = ("test_coverage", "prediction_rate", "test_width", "test_mae")
_RANKED: Final[Mapping[str, str]] = {
    "coverage_error": "coverage error",
    "val_width": "validation width",
    "val_mae": "validation MAE",
}


def across_choices(
    inside: Sequence[Finding], findings: Sequence[Finding], places: Mapping[str, int]
) -> tuple[Choice, ...]:
    """Figures over datasets."""
    return (*_ranks(inside, places), *_changes(inside), *_degrees(findings, places))


def curves_of(findings: Sequence[Finding]) -> tuple[Curve, ...]:
    """Coverage and prediction rate by degree of shift, of the tasks that have degrees."""
    found: list[Curve] = []
    for task in dict.fromkeys(f.task for f in findings):
        results = [f.result for f in findings if f.task == task]
        tests = [name for name in results[0].tests if _STEP.fullmatch(name)]
        if not tests:
            continue
        tests.sort(key=lambda name: int(name.removeprefix("step-")))
        tests.append(results[0].tests[0])
        complete = [result for result in results if set(tests) <= set(result.tests)]
        home = _home_of(next(f for f in findings if f.task == task), findings)
        at_home = [f.result for f in findings if f.task == home]
        for measure in ("test_coverage", "prediction_rate"):
            found += degree_curves(complete, tests, home=at_home, measure=measure)
    return tuple(found)


def _home_of(found: Finding, findings: Sequence[Finding]) -> str:
    """The task without shift of which a task is a variant, as cells is of cells-tails."""
    plain = {f.world for f in findings if found.world.startswith(f"{f.world}-")}
    seed = found.task.removeprefix(found.world)
    return max(plain, key=len) + seed if plain else ""


def trade_choice(findings: Sequence[Finding], places: Mapping[str, int]) -> tuple[Choice, ...]:
    """Coverage error against prediction rate."""
    if not findings:
        return ()
    figure = trade_figure(_with(findings, "prediction_rate", _rates(findings)), places)
    return choice_of("", [("", figure)])


def _rates(findings: Sequence[Finding]) -> dict[str, float]:
    names = dict.fromkeys(found.method for found in findings)
    return {
        name: float(
            np.mean([f.record("prediction_rate").value for f in findings if f.method == name])
        )
        for name in names
    }


def _with(findings: Sequence[Finding], column: str, values: Mapping[str, float]) -> Table:
    """Average coverage errors of the methods that have a value, with that value."""
    table = average_errors([f.result for f in findings if f.method in values])
    added = np.array([values[str(name)] for name in table.columns["method"]])
    return replace(table, columns={**table.columns, column: added})


def _ranks(findings: Sequence[Finding], places: Mapping[str, int]) -> tuple[Choice, ...]:
    """Critical differences, and mean ranks against coverage error; none for few methods."""
    every = [found for found in findings if not found.selective]
    options, scatters = [], []
    for measure, words in _RANKED.items():
        held = findings if measure == "coverage_error" else every
        names = dict.fromkeys(found.method for found in held)
        tasks = {found.task for found in held}
        lost = any(math.isnan(found.record(measure).value) for found in held)
        if len(names) < _FEW_RANKED or len(tasks) < 2 or lost:
            continue
        ranks = shift_ranks([found.result for found in held], measure)
        table = ranks.table(f"ranks_{measure}")
        short = short_names([str(name) for name in table.columns["method"]])
        shown = {**table.columns, "method": np.array(short, dtype=object)}
        figure = rank_figure(replace(table, columns=shown))
        title = f"{figure.title}, by {words}"
        options.append((words, replace(figure, title=title)))
        if measure != "coverage_error":
            values = dict(zip(ranks.names, ranks.mean_ranks.tolist(), strict=True))
            scatters.append(
                (words, rank_scatter(_with(held, "mean_rank", values), measure, places))
            )
    return (*choice_of("Ranked by", options), *choice_of("Ranked by", scatters))


def _changes(findings: Sequence[Finding]) -> tuple[Choice, ...]:
    method = home_method([found for found in findings if not found.selective])
    if method is None:
        return ()
    every = [found for found in findings if not found.selective]
    names = list(dict.fromkeys(found.method for found in every))
    known = [name for name in names if key_of(name) is not None]
    table = shift_against_error(
        [found.result for found in every], by=method, methods=known or names, every_test=True
    )
    columns = table.columns
    finite = np.isfinite(columns["relative_mae_change"]) & np.isfinite(columns["coverage_error"])
    if not finite.any():
        return ()
    told = f"MAE of {method}; errors of {', '.join(known or names)}. {table.notes}"
    figure = change_figure(replace(table, notes=told))
    return choice_of("", [("", figure)])


def _degrees(findings: Sequence[Finding], places: Mapping[str, int]) -> list[Choice]:
    """Coverage and prediction rate by degree of shift, those that accept every row first."""
    curves = curves_of(findings)
    selective = {found.method for found in findings if found.selective}
    options = []
    for group in dict.fromkeys(curve.group for curve in curves):
        own = [curve for curve in curves if curve.group == group]
        task = group.removeprefix("task=")
        for label, wanted in (("every row accepted", False), ("rows may be rejected", True)):
            chosen = [curve for curve in own if (curve.model in selective) == wanted]
            covered = [curve for curve in chosen if curve.reference is not None]
            rates = [curve for curve in chosen if curve.reference is None] if wanted else []
            figures = [degree_figure(part, places) for part in (covered, rates) if part]
            if figures:
                options.append(Option(label=f"{task}, {label}", figures=tuple(figures)))
    return [Choice(label="Degrees of shift", options=tuple(options))] if options else []


def task_choices(findings: Sequence[Finding]) -> tuple[Choice, ...]:
    """Dot plots of every measure, one test part at a time."""
    tests = dict.fromkeys(test for found in findings for test in found.result.tests)
    made: list[Choice] = []
    for measure in _DRAWN:
        shown = [f for f in findings if f.selective or measure != "prediction_rate"]
        made += choice_of("Test", [(test, _measured(shown, measure, test)) for test in tests])
    return tuple(made)


def _measured(findings: Sequence[Finding], measure: str, test: str) -> Figure | None:
    held = [found.record(measure, test) for found in findings if test in found.result.tests]
    return measure_figure(held) if any(math.isfinite(one.value) for one in held) else None
