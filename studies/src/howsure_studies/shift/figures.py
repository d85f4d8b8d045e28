"""Figures of methods under shift, and which of them a page shows."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from howsure.core import formats
from howsure.core.arrays import FloatArray
from howsure.core.errors import InputError
from howsure.core.records import Curve, Direction, Record, ResultTable
from howsure.core.text import distinct, headed, one_line
from howsure.figures.figure import REFERENCE, Axis, Figure, Layer, Mark, number, texts
from howsure.report.document import Choice, Option
from howsure_studies.engine import choice_of
from howsure_studies.engine.critical_difference import rank_figure
from howsure_studies.shift.methods import is_baseline, key_of
from howsure_studies.shift.results import (
    ShiftResult,
    average_errors,
    degree_curves,
    shift_against_error,
    shift_ranks,
)

CHANCE: Final = "chance alone"
_SHARES: Final = ("test_empirical_coverage", "prediction_rate", "val_empirical_coverage")
_OF_ACCEPTED: Final = ("test_empirical_coverage", "test_width", "test_mae")
_TITLES: Final[Mapping[str, tuple[str, str]]] = {
    "test_empirical_coverage": ("Empirical coverage", "Which methods have nominal coverage?"),
    "prediction_rate": ("Prediction rate", "How many rows do the methods accept?"),
    "test_width": ("Mean width", "How wide are the intervals?"),
    "test_mae": ("MAE", "How large are the errors?"),
    "val_empirical_coverage": (
        "Validation empirical coverage",
        "Is coverage nominal on validation rows?",
    ),
    "val_mae": ("Validation MAE", "How large are the errors on validation rows?"),
    "val_width": ("Validation width", "How wide are the intervals on validation rows?"),
}
"""By measure: its title, and the question that it answers."""
_ERROR_AXIS: Final = Axis(title="Average |empirical − nominal coverage|", kind="percent", zero=True)
_STEP: Final = re.compile(r"step-(\d+)")
_FEW_RANKED: Final = 3
_RANKED: Final[Mapping[str, str]] = {
    "coverage_error": "coverage error",
    "val_width": "validation width",
    "val_mae": "validation MAE",
}


# Figures


def measure_figure(records: Sequence[Record]) -> Figure:
    """One measure of several methods on one test as a dot plot with intervals."""
    metrics = list(dict.fromkeys(record.metric for record in records))
    if len(metrics) != 1:
        raise InputError(f"records must be of one measure, got {', '.join(metrics) or 'none'}")
    first = records[0]
    title, question = _TITLES.get(first.metric, (headed(first.metric.replace("_", " ")), ""))
    names = short_names([record.model for record in records])
    values = np.array([record.value for record in records])
    ends = np.array([(record.lower, record.upper) for record in records])
    known = np.flatnonzero(np.isfinite(values))
    bounded = np.flatnonzero(np.isfinite(values) & np.isfinite(ends).all(axis=1))
    layers = []
    if first.direction is Direction.TARGET and np.isfinite(first.target):
        level = np.array([first.target])
        layers.append(Layer(mark=Mark.RULE, x=level, series="nominal", colour=REFERENCE))
    layers += [
        Layer(
            mark=Mark.INTERVALS,
            y=bounded.astype(np.float64),
            lower=ends[bounded, 0],
            upper=ends[bounded, 1],
            series=title,
        ),
        Layer(
            mark=Mark.POINTS,
            x=values[known],
            y=known.astype(np.float64),
            series=title,
            labels=tuple(names[row] for row in known),
        ),
    ]
    share = first.metric in _SHARES
    units = "" if share or first.units == "1" else f" ({one_line(first.units, 40)})"
    return Figure(
        name=f"shift_{first.metric}",
        question=question or title,
        title=title,
        reading=(
            f"{'Of the accepted rows. ' if first.metric in _OF_ACCEPTED else ''}"
            f"Lines: {formats.level(first.confidence)} intervals over models and rows."
        ),
        x=Axis(title=title + units, kind="percent" if share else "number"),
        y=Axis(kind="category", categories=names),
        layers=tuple(layers),
        naming="Method",
    )


def short_names(methods: Sequence[str]) -> tuple[str, ...]:
    """Names of methods for axes, all different, without the word that the selective ones share."""
    return distinct([method.replace(" + Selective ", " + ") for method in methods])


def trade_figure(table: ResultTable, places: Mapping[str, int] | None = None) -> Figure:
    """Coverage error against prediction rate, averaged over tasks: a point a method.

    Figure A6 of Gustafsson, Danelljan and Schön (TMLR 2023).
    """
    layers = _points(table, "prediction_rate", "coverage_error", places)
    return Figure(
        name="shift_trade",
        question="What does coverage cost in prediction rate?",
        title="Coverage error against prediction rate",
        reading=(
            "Averages over datasets, with 95 % intervals for these datasets. Best is the lower "
            "right corner: every row is accepted, and coverage is nominal."
        ),
        x=Axis(title="Average prediction rate", kind="percent"),
        y=_ERROR_AXIS,
        layers=(*_null(table), *layers),
        notes=_notes(table),
        naming="Method",
    )


def rank_scatter(
    table: ResultTable, measure: str = "val_width", places: Mapping[str, int] | None = None
) -> Figure:
    """Average coverage error against mean rank by a validation measure: a point a method.

    Figures A1 and A2 of Gustafsson, Danelljan and Schön (TMLR 2023).
    """
    words = {
        "val_width": ("width", "Do methods with narrow validation intervals maintain coverage?"),
        "val_mae": ("MAE", "Do methods with small validation errors maintain coverage?"),
    }
    if measure not in words:
        raise InputError(f"measure must be 'val_width' or 'val_mae', got {measure!r}")
    what, question = words[measure]
    return Figure(
        name=f"shift_rank_{measure}",
        question=question,
        title=f"Coverage error against rank by validation {what}",
        reading="Mean ranks over datasets; 1 is the smallest. Best is the lower left corner.",
        x=Axis(title=f"Mean rank by validation {what}"),
        y=_ERROR_AXIS,
        layers=(*_null(table), *_points(table, "mean_rank", "coverage_error", places)),
        notes=_notes(table),
        naming="Method",
    )


def two_ranks(table: ResultTable, places: Mapping[str, int] | None = None) -> Figure:
    """Mean rank by validation width against that by validation MAE: a point a method.

    Figure A3 of Gustafsson, Danelljan and Schön (TMLR 2023). The table has a row a method, with
    columns ``rank_val_mae`` and ``rank_val_width``.
    """
    return Figure(
        name="shift_two_ranks",
        question="Do methods with small validation errors have narrow intervals?",
        title="Rank by validation width against rank by validation MAE",
        reading="Mean ranks over datasets; 1 is the smallest. Best is the lower left corner.",
        x=Axis(title="Mean rank by validation MAE"),
        y=Axis(title="Mean rank by validation width"),
        layers=tuple(_points(table, "rank_val_mae", "rank_val_width", places)),
        notes=_notes(table),
        naming="Method",
    )


def degree_figure(curves: Sequence[Curve], places: Mapping[str, int] | None = None) -> Figure:
    """A measure against the degree of shift, one line a method, with intervals.

    Figure 4 of Gustafsson, Danelljan and Schön (TMLR 2023).
    """
    if not curves:
        raise InputError("curves must contain at least one, got none")
    first = curves[0]
    names = distinct([curve.model or "empirical coverage" for curve in curves])
    layers = []
    if first.reference is not None and len(first.x):
        longest = max(curves, key=lambda curve: len(curve.x))
        layers.append(
            Layer(
                mark=Mark.LINE,
                x=longest.x,
                y=np.full(len(longest.x), first.reference[0]),
                series="nominal",
                colour=REFERENCE,
            )
        )
    for index, (name, curve) in enumerate(zip(names, curves, strict=True)):
        layers += _degree_layers(curve, name, (places or {}).get(curve.model, index))
    task = one_line(first.group.removeprefix("task="), 60)
    return Figure(
        name=f"degree_of_shift_{'coverage' if first.reference is not None else 'rate'}",
        question=f"How do the methods change as the shift grows? ({task})",
        title=f"{headed(first.y_label)} by degree of shift",
        reading="The shift grows to the right. Vertical lines are intervals.",
        x=Axis(title=headed(first.x_label)),
        y=Axis(title=headed(first.y_label), kind="percent"),
        layers=tuple(layers),
        notes=(one_line(first.notes, 400),) if first.notes else (),
    )


def change_figure(table: ResultTable) -> Figure:
    """Coverage error against the change of the MAE, a point a test and a colour a task.

    Figures A16 and A17 of Gustafsson, Danelljan and Schön (TMLR 2023).
    """
    change, error = _two(table, "relative_mae_change", "coverage_error", "task")
    tasks, tests = texts(table, "task"), texts(table, "test")
    known = np.isfinite(change) & np.isfinite(error)
    layers = []
    for index, task in enumerate(dict.fromkeys(tasks)):
        rows = [row for row in np.flatnonzero(known) if tasks[row] == task]
        layers.append(
            Layer(
                mark=Mark.POINTS,
                x=change[rows],
                y=error[rows],
                series=task or "(empty)",
                colour=index,
                labels=tuple(tests[row] for row in rows),
            )
        )
    return Figure(
        name="shift_against_error",
        question="Does an increase in error predict a loss of coverage?",
        title="Coverage error against change of MAE",
        reading=(
            "Each point is a test set. Coverage error is the average over the methods that "
            "accept every row."
        ),
        x=Axis(title="Change of MAE from validation to test", kind="percent"),
        y=_ERROR_AXIS,
        layers=tuple(layers),
        notes=_notes(table),
        naming="Test",
    )


def _two(table: ResultTable, x: str, y: str, name: str) -> tuple[FloatArray, FloatArray]:
    """Two columns of numbers, of which some row has both."""
    first, second = number(table, x), number(table, y)
    if first is None or second is None or name not in table.columns:
        given = ", ".join(table.columns) or "no column"
        raise InputError(f"table must have columns {name}, {x} and {y}, got {given}")
    if not (np.isfinite(first) & np.isfinite(second)).any():
        raise InputError(f"table must have a row with {x} and {y}, got none")
    return first, second


def _points(table: ResultTable, x: str, y: str, places: Mapping[str, int] | None) -> list[Layer]:
    """A point a method, with its interval where the table has a standard error."""
    across, up = _two(table, x, y, "method")
    names = distinct(texts(table, "method"))
    given = [str(name) for name in table.columns["method"].tolist()]
    errors = number(table, "standard_error") if y == "coverage_error" else None
    layers = []
    for row, name in enumerate(names):
        if not (np.isfinite(across[row]) and np.isfinite(up[row])):
            continue
        colour = (places or {}).get(given[row], row)
        here = slice(row, row + 1)
        if errors is not None and np.isfinite(errors[row]):
            reach = 1.959964 * errors[here]
            layers.append(
                Layer(
                    mark=Mark.INTERVALS,
                    x=across[here],
                    lower=np.maximum(up[here] - reach, 0.0),
                    upper=up[here] + reach,
                    series=name,
                    colour=colour,
                )
            )
        layers.append(
            Layer(
                mark=Mark.POINTS,
                x=across[here],
                y=up[here],
                series=name,
                colour=colour,
                labels=(name,),
                size=1.6,
            )
        )
    return layers


def _degree_layers(curve: Curve, name: str, colour: int) -> list[Layer]:
    finite = np.isfinite(curve.x) & np.isfinite(curve.y)
    x, y = curve.x[finite], curve.y[finite]
    line = Layer(mark=Mark.LINE, x=x, y=y, series=name, colour=colour)
    dots = Layer(mark=Mark.POINTS, x=x, y=y, series=name, colour=colour)
    if curve.lower is None or curve.upper is None:
        return [line, dots]
    ends = Layer(
        mark=Mark.INTERVALS,
        x=x,
        lower=curve.lower[finite],
        upper=curve.upper[finite],
        series=name,
        colour=colour,
    )
    return [ends, line, dots]


def _null(table: ResultTable) -> list[Layer]:
    """A level line at what chance alone would show on average."""
    null = number(table, "null")
    if null is None or not np.isfinite(null).any():
        return []
    level = np.array([float(np.nanmean(null))])
    return [Layer(mark=Mark.RULE, y=level, series=CHANCE, colour=REFERENCE)]


def _notes(table: ResultTable) -> tuple[str, ...]:
    return (one_line(table.notes, 400),) if table.notes else ()


# Choices of figures on a page; `places` are the colours of methods


def trade_choice(results: Sequence[ShiftResult], places: Mapping[str, int]) -> tuple[Choice, ...]:
    """Coverage error against prediction rate."""
    if not results:
        return ()
    names = dict.fromkeys(result.method for result in results)
    rates = {
        name: float(np.mean([r.value("prediction_rate").mean for r in results if r.method == name]))
        for name in names
    }
    return choice_of("", [("", trade_figure(_with(results, "prediction_rate", rates), places))])


def _with(results: Sequence[ShiftResult], column: str, values: Mapping[str, float]) -> ResultTable:
    """Average coverage errors of the methods that have a value, with that value."""
    table = average_errors([result for result in results if result.method in values])
    added = np.array([values[str(name)] for name in table.columns["method"]])
    return replace(table, columns={**table.columns, column: added})


def across_choices(
    compared: Sequence[ShiftResult],
    results: Sequence[ShiftResult],
    curves: Sequence[Curve],
    places: Mapping[str, int],
) -> tuple[Choice, ...]:
    """Figures over datasets: ranks, size of the shift, and `degrees_of` these results."""
    return (
        *_ranks(compared, places),
        *_changes([result for result in compared if not result.selective]),
        *_degrees(results, curves, places),
    )


def _ranks(results: Sequence[ShiftResult], places: Mapping[str, int]) -> tuple[Choice, ...]:
    """Critical differences, and mean ranks against coverage error; of no baselines."""
    differences, scatters = [], []
    both: dict[str, Mapping[str, float]] = {}
    judged = [result for result in results if not is_baseline(result.method)]
    for measure, words in _RANKED.items():
        ranked = [r for r in judged if measure == "coverage_error" or not r.selective]
        # intervals without end have no width to rank by, and some methods no point forecast
        lost = {r.method for r in ranked if not math.isfinite(r.value(measure).mean)}
        ranked = [r for r in ranked if r.method not in lost]
        names, tasks = {r.method for r in ranked}, {r.task for r in ranked}
        if len(names) < _FEW_RANKED or len(tasks) < 2:
            continue
        ranks = shift_ranks(ranked, measure)
        table = ranks.table(f"ranks_{measure}")
        short = short_names([str(name) for name in table.columns["method"]])
        shown = {**table.columns, "method": np.array(short, dtype=object)}
        figure = rank_figure(replace(table, columns=shown))
        differences.append((words, replace(figure, title=f"{figure.title}, by {words}")))
        if measure != "coverage_error":
            values = dict(zip(ranks.names, ranks.mean_ranks.tolist(), strict=True))
            table = _with(ranked, "mean_rank", values)
            scatters.append((words, rank_scatter(table, measure, places)))
            both[f"rank_{measure}"] = values
    if len(both) > 1:
        scatters.append(("width and MAE", two_ranks(_ranks_table(both, table.notes), places)))
    return (*choice_of("Ranked by", differences), *choice_of("Ranked by", scatters))


def _ranks_table(ranks: Mapping[str, Mapping[str, float]], notes: str) -> ResultTable:
    """Mean ranks of the same methods by several measures."""
    names = list(next(iter(ranks.values())))
    columns = {key: np.array([own[name] for name in names]) for key, own in ranks.items()}
    return ResultTable(
        name="shift_ranks",
        columns={"method": np.array(names, dtype=object), **columns},
        notes=notes,
    )


def home_method(results: Sequence[ShiftResult]) -> str | None:
    """The method whose MAE measures the shift: conformal prediction, else the first."""
    names = list(dict.fromkeys(result.method for result in results))
    first = [name for name in names if key_of(name) == "conformal"]
    return next(iter([*first, *names]), None)


def _changes(results: Sequence[ShiftResult]) -> tuple[Choice, ...]:
    method = home_method(results)
    if method is None:
        return ()
    names = list(dict.fromkeys(result.method for result in results))
    names = [name for name in names if key_of(name) is not None] or names
    table = shift_against_error(results, by=method, methods=names, every_test=True)
    columns = table.columns
    if not (np.isfinite(columns["relative_mae_change"] + columns["coverage_error"])).any():
        return ()
    notes = f"MAE of {method}; errors of {', '.join(names)}. {table.notes}"
    return choice_of("", [("", change_figure(replace(table, notes=notes)))])


def degrees_of(results: Sequence[ShiftResult], worlds: Mapping[str, str]) -> tuple[Curve, ...]:
    """Coverage and prediction rate by degree of shift, of the tasks that have degrees.

    `worlds` are what the plan calls the tasks, whose names may add a seed.
    """
    curves: list[Curve] = []
    for task in dict.fromkeys(result.task for result in results):
        own = [result for result in results if result.task == task]
        steps = [name for name in own[0].tests if _STEP.fullmatch(name)]
        if not steps:
            continue
        steps.sort(key=lambda name: int(name.removeprefix("step-")))
        tests = [*steps, own[0].tests[0]]
        complete = [result for result in own if set(tests) <= set(result.tests)]
        home = _home_of(task, worlds)
        at_home = [result for result in results if result.task == home]
        for measure in ("test_empirical_coverage", "prediction_rate"):
            curves += degree_curves(complete, tests, home=at_home, measure=measure)
    return tuple(curves)


def _home_of(task: str, worlds: Mapping[str, str]) -> str:
    """The task without shift of which a task is a variant, as cells is of cells-tails.

    After a comma their names must agree: "cells, simulator" is that of "cells-tails, simulator".
    """
    name, _, which = (world := worlds[task]).partition(", ")
    plain = {
        other
        for other in worlds.values()
        if other.partition(", ")[2] == which and name.startswith(f"{other.partition(', ')[0]}-")
    }
    return max(plain, key=len) + task.removeprefix(world) if plain else ""


def _degrees(
    results: Sequence[ShiftResult], curves: Sequence[Curve], places: Mapping[str, int]
) -> list[Choice]:
    """Coverage and prediction rate by degree of shift, those that accept every row first."""
    selective = {result.method for result in results if result.selective}
    options = []
    for group in dict.fromkeys(curve.group for curve in curves):
        task = group.removeprefix("task=")
        for label, wanted in (("every row accepted", False), ("rows may be rejected", True)):
            own = [c for c in curves if c.group == group and (c.model in selective) == wanted]
            covered = [curve for curve in own if curve.reference is not None]
            rates = [curve for curve in own if curve.reference is None] if wanted else []
            figures = [degree_figure(drawn, places) for drawn in (covered, rates) if drawn]
            if figures:
                options.append(Option(label=f"{task}, {label}", figures=tuple(figures)))
    return [Choice(label="Degrees of shift", options=tuple(options))] if options else []


def task_choices(results: Sequence[ShiftResult]) -> tuple[Choice, ...]:
    """Dot plots of every measure, one test part at a time."""
    tests = dict.fromkeys(test for result in results for test in result.tests)
    choices: list[Choice] = []
    for measure in ("test_empirical_coverage", "prediction_rate", "test_width", "test_mae"):
        options: list[tuple[str, Figure | None]] = []
        for test in tests:
            records = [
                result.record(measure, test)
                for result in results
                if test in result.tests and (result.selective or measure != "prediction_rate")
            ]
            known = any(math.isfinite(record.value) for record in records)
            options.append((test, measure_figure(records) if known else None))
        choices += choice_of("Test", options)
    return tuple(choices)
