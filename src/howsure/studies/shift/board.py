"""Methods × tasks: what each covers and how often it answers, beside what was published."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final, Protocol

from howsure.core.records import Table
from howsure.studies.engine import columns_of
from howsure.studies.shift.result import ShiftResult

LABELS: Final[Mapping[str, str]] = {
    "test_coverage": "coverage of accepted rows",
    "prediction_rate": "prediction rate",
    "coverage_error": "|coverage − nominal|",
    "val_mae": "validation MAE",
    "val_width": "validation width",
    "mae_change": "change of MAE from validation to test",
    "relative_mae_change": "change of MAE from validation to test, as a share",
}
"""What measures are called in tables and on axes."""


class Printed(Protocol):
    """A published number: `howsure.studies.shift.published.PublishedValue`, or alike."""

    @property
    def dataset(self) -> str:
        """A task's name."""

    @property
    def method(self) -> str:
        """A method's key."""

    @property
    def coverage(self) -> float:
        """Nominal coverage."""

    @property
    def quantity(self) -> str:
        """``val_mae``, ``val_width``, ``test_coverage`` or ``prediction_rate``."""

    @property
    def mean(self) -> float:
        """Over runs."""

    @property
    def sd(self) -> float:
        """Over runs, with ddof 0."""


def leaderboard(
    results: Sequence[ShiftResult], published: Sequence[Printed] = (), *, every_test: bool = False
) -> Table:
    """Methods × tasks: coverage and prediction rate, beside published numbers where there are.

    Parameters
    ----------
    results : sequence of ShiftResult
        In any number.
    published : sequence of Printed
        As `howsure.studies.shift.published.published` gives them; they belong to main tests.
    every_test : bool
        Whether each test part is a row, or main tests alone.

    Returns
    -------
    Table
        One row a result, or test part. For each of ``test_coverage``, ``prediction_rate``,
        ``coverage_error``, ``val_mae`` and ``val_width``: the mean over runs, ``…_sd``, and the
        interval over models and rows, ``…_low`` and ``…_high``; for those published also
        ``…_published``, ``…_published_sd`` and ``…_difference``, ours less theirs.

    Examples
    --------
    >>> from howsure.studies.shift.networks import NetworkView, network_shift
    >>> from howsure.studies.shift.published import published
    >>> y = {"val": np.arange(20.0), "full": np.arange(20.0) + 1.0}
    >>> view = NetworkView(outputs={part: np.arange(20.0)[None] + 1.0 for part in y})
    >>> ours = network_shift("cells-tails", "conformal", [[view]], y)
    >>> leaderboard([ours], published("cells-tails")).columns["test_coverage_difference"]
    array([0.446])
    """
    printed = {
        (one.dataset, one.method, round(one.coverage, 9), one.quantity): one for one in published
    }
    rows = [
        _leader(result, test, printed if place == 0 else {})
        for result in results
        for place, test in enumerate(result.tests if every_test else result.tests[:1])
    ]
    return Table(name="shift_leaderboard", columns=columns_of(rows), labels=LABELS)


_LEADING: Final = ("test_coverage", "prediction_rate", "coverage_error", "val_mae", "val_width")


def _leader(
    result: ShiftResult, test: str, printed: Mapping[tuple[str, str, float, str], Printed]
) -> dict[str, Any]:
    row: dict[str, Any] = {
        "task": result.task,
        "test": test,
        "method": result.method,
        "nominal": result.coverage,
        "rule": result.rule,
        "runs": len(result.runs),
    }
    reasons = []
    for measure in _LEADING:
        found = result.value(measure, test)
        row |= {
            measure: found.mean,
            f"{measure}_sd": found.sd,
            f"{measure}_low": found.low,
            f"{measure}_high": found.high,
        }
        if math.isnan(found.mean):
            reasons.append(f"{measure}: {found.reason}")
        if measure == "coverage_error":
            continue
        theirs = printed.get((result.task, result.method, round(result.coverage, 9), measure))
        row |= {
            f"{measure}_published": math.nan if theirs is None else theirs.mean,
            f"{measure}_published_sd": math.nan if theirs is None else theirs.sd,
            f"{measure}_difference": math.nan if theirs is None else found.mean - theirs.mean,
        }
    return row | {"units": result.units, "reason": "; ".join(reasons)}
