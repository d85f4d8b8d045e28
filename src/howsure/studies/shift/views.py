"""Results under shift side by side: averages and ranks over tasks, degrees of shift, leaders."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from howsure.core.arrays import FloatArray
from howsure.core.errors import InputError
from howsure.core.records import Curve, Table
from howsure.stats.ranks import PostHoc, RankComparison, compare_ranks
from howsure.studies.engine import columns_of
from howsure.studies.shift.board import LABELS, leaderboard
from howsure.studies.shift.methods import INTERVAL_METHODS
from howsure.studies.shift.result import ShiftResult, ShiftValue

__all__ = ["average_errors", "degree_curves", "leaderboard", "shift_against_error", "shift_ranks"]


def average_errors(results: Sequence[ShiftResult]) -> Table:
    """Average coverage error of each method over tasks, on their main tests.

    Parameters
    ----------
    results : sequence of ShiftResult
        At one coverage, one a method and task.

    Returns
    -------
    Table
        One row a method, in the order given: ``coverage_error``, the mean over tasks of
        |mean coverage − nominal|; its ``standard_error``, tasks being held fixed; ``null``, the
        mean expected of a model that covers just so; ``tasks``, the number behind it, being all
        that the method has an answer for.

    Raises
    ------
    InputError
        If there is no result, coverages differ, or a method meets a task twice.

    Notes
    -----
    Means of different tasks are not comparable: see ``tasks``. Source: Gustafsson, Danelljan and
    Schön (TMLR 2023), section 5.

    Examples
    --------
    >>> from howsure.studies.shift.networks import NetworkView, network_shift
    >>> y = {"val": np.arange(20.0), "far": np.arange(20.0) + 2.0}
    >>> said = {part: np.arange(20.0)[None] + 1.0 for part in y}
    >>> home = network_shift("line", "conformal", [[NetworkView(outputs=said)]], y)
    >>> average_errors([home]).columns["coverage_error"]
    array([0.1])
    """
    grid = _grid(results)
    rows = []
    for method, held in grid.items():
        found = [(result, result.value("coverage_error")) for result in held.values()]
        known = [(result, one) for result, one in found if not math.isnan(one.mean)]
        errors = np.array([one.standard_error for _, one in known])
        rows.append(
            {
                "method": method,
                "coverage_error": _mean([one.mean for _, one in known]),
                "standard_error": float(np.linalg.norm(errors)) / len(known) if known else math.nan,
                "null": _mean([result.null_error(one.n) for result, one in known]),
                "tasks": len(known),
            }
        )
    tasks = list(dict.fromkeys(result.task for result in results))
    return Table(
        name="shift_average_errors",
        columns=columns_of(rows),
        labels={"coverage_error": "average coverage error", "null": "expected of a perfect model"},
        notes=f"Nominal coverage {results[0].coverage:g}; tasks: {', '.join(tasks)}.",
    )


def shift_ranks(
    results: Sequence[ShiftResult],
    measure: str = "val_mae",
    *,
    method: PostHoc = "nemenyi",
    confidence: float = 0.95,
) -> RankComparison:
    """Rank methods over tasks, ties averaged, and find who shares a rank.

    Parameters
    ----------
    results : sequence of ShiftResult
        At one coverage, one a method and task; every method on every task.
    measure : {"val_mae", "val_width", "coverage_error"}
        What to rank by; lower is better.
    method : {"wilcoxon-holm", "nemenyi"}
        The test of pairs.
    confidence : float
        1 − level of all tests.

    Returns
    -------
    RankComparison
        Its `table` has the mean ranks and the cliques.

    Raises
    ------
    InputError
        If there are fewer than three methods or two tasks, a method misses a task, or a measure
        has no answer.

    Examples
    --------
    >>> from howsure.studies.shift.networks import NetworkView, ShiftMethod, network_shift
    >>> y = {"val": np.arange(20.0), "far": np.arange(20.0) + 2.0}
    >>> results = [
    ...     network_shift(
    ...         task,
    ...         ShiftMethod(key=key, title=key, network="direct"),
    ...         [[NetworkView(outputs={part: y["val"][None] + off for part in y})]],
    ...         y,
    ...     )
    ...     for task in ("first", "second")
    ...     for key, off in (("near", 0.1), ("far", 2.0), ("as far", 2.0))
    ... ]
    >>> shift_ranks(results).mean_ranks
    array([1. , 2.5, 2.5])
    """
    if measure not in ("val_mae", "val_width", "coverage_error"):
        raise InputError(
            f"measure must be 'val_mae', 'val_width' or 'coverage_error', got {measure!r}"
        )
    grid = _grid(results)
    tasks = list(dict.fromkeys(result.task for result in results))
    scores = np.full((len(tasks), len(grid)), np.nan)
    for column, (name, held) in enumerate(grid.items()):
        for row, task in enumerate(tasks):
            if task not in held:
                raise InputError(
                    f"results must hold every method on every task, {name} lacks {task}"
                )
            scores[row, column] = held[task].value(measure).mean
    if measure == "coverage_error":
        scores = scores.round(12)  # |0.95 − 0.9| and |0.85 − 0.9| differ by rounding alone
    return compare_ranks(scores, list(grid), method=method, confidence=confidence)


def degree_curves(
    results: Sequence[ShiftResult],
    tests: Sequence[str],
    *,
    home: Sequence[ShiftResult] = (),
    measure: str = "test_coverage",
) -> tuple[Curve, ...]:
    """A measure against the degree of shift, one curve a method.

    Parameters
    ----------
    results : sequence of ShiftResult
        Of one task, one a method.
    tests : sequence of str
        Names of its tests, from the mildest shift to the strongest.
    home : sequence of ShiftResult
        Of a task without shift, whose main test stands at degree 0; methods that are not among
        them have no point there.
    measure : str
        A measure of test parts.

    Returns
    -------
    tuple of Curve
        ``degree_of_shift``: x counts the degrees from 0, or from 1 without a home; the band is
        the interval over models and rows; ``hover`` has n, and the sd over runs.

    Raises
    ------
    InputError
        If there are no tests, results are of several tasks or coverages, or a test is unknown.

    Examples
    --------
    >>> from howsure.studies.shift.networks import NetworkView, network_shift
    >>> y = {"val": np.arange(20.0), "far": np.arange(20.0) + 2.0}
    >>> said = {part: np.arange(20.0)[None] + 1.0 for part in y}
    >>> home = network_shift("line", "conformal", [[NetworkView(outputs=said)]], y)
    >>> degree_curves([home], ["far"], home=[home])[0].x
    array([0., 1.])
    """
    if not tests:
        raise InputError("tests must hold at least one name, got none")
    if len({result.task for result in results}) != 1:
        raise InputError("results must be of one task, to compare degrees of shift")
    grid, at_home = _grid(results), _grid(home) if home else {}
    curves = []
    for method, held in grid.items():
        result = next(iter(held.values()))
        values = [result.value(measure, test) for test in tests]
        first = next(iter(at_home.get(method, {}).values()), None)
        if first is not None:
            values.insert(0, first.value(measure))
        start = len(tests) + 1 - len(values)
        curves.append(_degree_curve(result, values, start, measure, tests))
    return tuple(curves)


def shift_against_error(
    results: Sequence[ShiftResult],
    *,
    by: str = "conformal",
    methods: Sequence[str] = INTERVAL_METHODS,
    every_test: bool = False,
) -> Table:
    """How much a task shifts, against how far its coverage is off.

    Parameters
    ----------
    results : sequence of ShiftResult
        At one coverage, one a method and task.
    by : str
        The method whose MAE measures the shift.
    methods : sequence of str
        Those whose coverage errors are averaged; all must be at hand for a task.
    every_test : bool
        Whether each test part is a row, or main tests alone.

    Returns
    -------
    Table
        One row a task, or test: ``relative_mae_change`` = (MAE of all test rows − MAE of
        validation rows)/MAE of validation rows with its interval, ``mae_change`` in the units of
        y, ``coverage_error``, the mean over the methods of |coverage − nominal|, and ``null``,
        what a perfect model would show. Notes tell Spearman's correlation of the two.

    Raises
    ------
    InputError
        If no task has all methods.

    Notes
    -----
    Source: Gustafsson, Danelljan and Schön (TMLR 2023), figures A16 and A17, which do not say
    whether the change is divided by the MAE; scales of y differ by 10³ between tasks.

    Examples
    --------
    >>> from howsure.studies.shift.networks import NetworkView, network_shift
    >>> y = {"val": np.arange(20.0), "far": np.arange(20.0) + 2.0}
    >>> said = {part: np.arange(20.0)[None] + 1.0 for part in y}
    >>> home = network_shift("line", "conformal", [[NetworkView(outputs=said)]], y)
    >>> table = shift_against_error([home], methods=["conformal"])
    >>> table.columns["relative_mae_change"], table.columns["coverage_error"]
    (array([0.]), array([0.1]))
    """
    grid = _grid(results)
    needed = list(dict.fromkeys((by, *methods)))
    missing = [name for name in needed if name not in grid]
    if missing:
        raise InputError(f"results must hold {', '.join(needed)}, got none of {', '.join(missing)}")
    tasks = [task for task in grid[by] if all(task in grid[name] for name in needed)]
    if not tasks:
        raise InputError(f"results must hold a task with all of {', '.join(needed)}, got none")
    rows = []
    for task in tasks:
        first = grid[by][task]
        for test in first.tests if every_test else first.tests[:1]:
            change = first.value("relative_mae_change", test)
            errors = [grid[name][task].value("coverage_error", test) for name in methods]
            rows.append(
                {
                    "task": task,
                    "test": test,
                    "relative_mae_change": change.mean,
                    "low": change.low,
                    "high": change.high,
                    "mae_change": first.value("mae_change", test).mean,
                    "coverage_error": float(np.mean([one.mean for one in errors])),
                    "null": first.null_error(change.n),
                }
            )
    columns = columns_of(rows)
    return Table(
        name="shift_against_error",
        columns=columns,
        labels=LABELS,
        notes=_correlation(columns["relative_mae_change"], columns["coverage_error"]),
    )


def _degree_curve(
    result: ShiftResult,
    values: Sequence[ShiftValue],
    start: int,
    measure: str,
    tests: Sequence[str],
) -> Curve:
    y = np.array([one.mean for one in values])
    nominal = np.full(len(y), result.coverage) if measure.startswith("test_coverage") else None
    return Curve(
        name="degree_of_shift",
        x=np.arange(start, start + len(y), dtype=np.float64),
        y=y,
        lower=np.array([one.low for one in values]),
        upper=np.array([one.high for one in values]),
        reference=nominal,
        x_label="degree of shift",
        y_label=LABELS.get(measure, measure),
        band="95 % interval over models and rows",
        model=result.method,
        group=f"task={result.task}",
        notes=f"Degrees: {'none, ' if start == 0 else ''}{', '.join(tests)}.",
        hover={
            "sd": np.array([one.sd for one in values]),
            "n": np.array([one.n for one in values]),
        },
    )


def _grid(results: Sequence[ShiftResult]) -> dict[str, dict[str, ShiftResult]]:
    """Results by method and task."""
    if not results:
        raise InputError("results must hold at least one result, got none")
    coverages = sorted({result.coverage for result in results})
    if len(coverages) > 1:
        raise InputError(f"results must be of one coverage, got {coverages}")
    grid: dict[str, dict[str, ShiftResult]] = {}
    for result in results:
        held = grid.setdefault(result.method, {})
        if result.task in held:
            raise InputError(
                f"results must hold {result.method} on {result.task} once, got it twice"
            )
        held[result.task] = result
    return grid


def _mean(values: Sequence[float]) -> float:
    return float(np.mean(values)) if len(values) else math.nan


def _correlation(change: FloatArray, error: FloatArray) -> str:
    known = np.isfinite(change) & np.isfinite(error)
    change, error = change[known], error[known]
    if len(change) < 3 or np.ptp(change) == 0 or np.ptp(error) == 0:
        return "Too few different points for a correlation."
    from scipy.stats import spearmanr

    found = spearmanr(change, error)
    return f"Spearman's correlation {found.statistic:.2f} over {len(change)} points."
