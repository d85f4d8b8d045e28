"""Statistics over methods and runs of any study: numbers side by side, and how sure means are.

Ranks and critical differences of methods are in `howsure_studies.engine.ranks`, their figure in
`howsure_studies.engine.critical_difference`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final, final

import numpy as np
import pyarrow as pa
from scipy import special

from howsure.core.arrays import AnyArray, FloatArray
from howsure.core.classes import frozen
from howsure.core.records import Direction, Key
from howsure.stats.binomial import wilson

_Z: Final = 1.959964  # two-sided 95 %


@final
@frozen(kw_only=True)
class MethodNumber:
    """One method's number."""

    value: float  # NaN where not known, as is its error
    standard_error: float
    reason: str = ""  # why the value is missing, or what limits it


@final
@frozen(kw_only=True)
class Comparison:
    """One measure of all methods on one world.

    Attributes
    ----------
    world, metric : str
        What was measured where.
    coverage : float
        The nominal coverage that it belongs to; NaN where none.
    direction : Direction
        Which values are better.
    target : float
        The value of a perfect method.
    cells : mapping of str to Cell
        By method, and by seed where there are several.
    best : tuple of str
        The best method, and those within 1.96 standard errors of the difference (taken as if
        independent, which is wide where methods saw the same data). Empty where no direction is
        better.
    """

    world: str
    metric: str
    coverage: float
    direction: Direction
    target: float
    cells: Mapping[str, MethodNumber]
    best: tuple[str, ...]


def side_by_side(table: pa.Table, metrics: Sequence[str] | None = None) -> tuple[Comparison, ...]:
    """Methods beside each other, one comparison a world, measure and coverage.

    Parameters
    ----------
    table : pyarrow.Table
        Columns ``world``, ``method``, ``seed``, and those of `records_table`.
    metrics : sequence of str, optional
        Which measures, in this order; all if omitted.

    Returns
    -------
    tuple of Comparison
        World by world, in the table's order.

    Examples
    --------
    >>> from howsure.core.records import Record
    >>> from howsure_studies.engine.tables import records_table, stacked
    >>> def row(method, value):
    ...     error = Record(
    ...         metric="rmse", value=value, standard_error=0.1, direction=Direction.LOWER
    ...     )
    ...     return records_table([error], {"world": "line", "method": method, "seed": 0})
    >>> side_by_side(stacked([row("a", 1.0), row("b", 1.1), row("c", 2.0)]))[0].best
    ('a', 'b')
    """
    rows = table.to_pylist()
    many = len({row["seed"] for row in rows}) > 1
    groups: dict[tuple[str, Key], list[dict[str, Any]]] = {}
    for row in rows:
        key = Key.of(row["metric"], row["coverage"])
        groups.setdefault((row["world"], key), []).append(row)
    order = {name: rank for rank, name in enumerate(metrics or ())}
    keys = [key for key in groups if metrics is None or key[1].metric in order]
    if metrics is not None:
        worlds = list(dict.fromkeys(key[0] for key in keys))
        keys.sort(
            key=lambda key: (worlds.index(key[0]), order[key[1].metric], key[1].coverage or 0.0)
        )
    return tuple(_compared(key, groups[key], many=many) for key in keys)


def _compared(key: tuple[str, Key], rows: Sequence[Mapping[str, Any]], *, many: bool) -> Comparison:
    cells = {
        f"{row['method']}, seed {row['seed']}" if many else row["method"]: MethodNumber(
            value=row["value"], standard_error=row["standard_error"], reason=row["reason"]
        )
        for row in rows
    }
    direction, target = Direction(rows[0]["direction"]), rows[0]["target"]
    return Comparison(
        world=key[0],
        metric=key[1].metric,
        coverage=key[1].at,
        direction=direction,
        target=target,
        cells=cells,
        best=_best(cells, direction, target),
    )


def _best(
    cells: Mapping[str, MethodNumber], direction: Direction, target: float
) -> tuple[str, ...]:
    costs = {name: _cost(cell.value, direction, target) for name, cell in cells.items()}
    known = {name: cost for name, cost in costs.items() if not math.isnan(cost)}
    if not known:
        return ()
    winner = min(known, key=lambda name: known[name])

    def near(name: str) -> bool:
        errors = (cells[name].standard_error, cells[winner].standard_error)
        reach = _Z * math.hypot(*(0.0 if math.isnan(error) else error for error in errors))
        return known[name] == known[winner] or known[name] - known[winner] <= reach

    return tuple(name for name in known if near(name))


def _cost(value: float, direction: Direction, target: float) -> float:
    """What is to be small; NaN where nothing is better."""
    if direction is Direction.LOWER:
        return value
    if direction is Direction.HIGHER:
        return -value
    return abs(value - target) if direction is Direction.TARGET else math.nan


@final
@frozen(kw_only=True)
class RunVariance:
    """Variance of a mean over runs, by where it comes from, and the interval that follows.

    Attributes
    ----------
    models : float
        From the runs: other models would give other numbers. It holds what the chance of rows
        does to each run alone. 0 for a single run, of whose models nothing is known.
    rows, calibration : float
        From the test rows and from the validation rows, as far as all runs share their chance.
    degrees : float
        Degrees of freedom of the sum, by Satterthwaite's approximation.
    """

    models: float
    rows: float
    calibration: float
    degrees: float

    @property
    def variance(self) -> float:
        """The sum of the parts; NaN where one cannot be known."""
        return self.models + self.rows + self.calibration

    @property
    def standard_error(self) -> float:
        """Its root."""
        return math.sqrt(self.variance)

    def interval(self, value: float, confidence: float) -> tuple[float, float]:
        """value ± t · standard error."""
        reach = self._quantile(confidence) * self.standard_error
        return value - reach, value + reach

    def share_interval(self, value: float, n: float, confidence: float) -> tuple[float, float]:
        """Wilson's interval for a share, at the n that a binomial share of this variance has.

        Parameters
        ----------
        value : float
            The share.
        n : float
            The n to take where the variance is 0, as for a share of 0 or 1.
        confidence : float
            Of the interval.

        Returns
        -------
        low, high : float

        Notes
        -----
        With z and t the normal and the t quantile, n* = p(1 − p)/V · (z/t)²: the effective n of
        E. L. Korn and B. I. Graubard, Survey Methodology 24 (1998), which they put into the
        exact interval.
        """
        if math.isnan(self.variance):
            return math.nan, math.nan
        z = float(special.ndtri(0.5 + 0.5 * confidence))
        alike = n if self.variance <= 0.0 else value * (1.0 - value) / self.variance
        if alike <= 0.0:
            alike = n
        effective = alike * (z / self._quantile(confidence)) ** 2
        low, high = wilson(value * effective, effective, confidence)
        return float(low), float(high)

    def _quantile(self, confidence: float) -> float:
        return float(special.stdtrit(self.degrees, 0.5 + 0.5 * confidence))


def crossed_spread(
    values: FloatArray,
    rows: Sequence[FloatArray],
    calibration: Sequence[FloatArray],
    degrees: float = math.inf,
) -> RunVariance:
    """Variance of the mean of runs that meet the same rows.

    Parameters
    ----------
    values : ndarray of float, shape (r,)
        One number a run.
    rows, calibration : sequence of r ndarrays of float, each of shape (n,) and (m,)
        For each run, how each test row and each validation row moves its number: influence
        values with mean 0. Empty where such rows play no part.
    degrees : float
        Degrees of freedom of the calibration part, where less than its rows allow.

    Returns
    -------
    Spread

    Notes
    -----
    A two-way layout of random effects, runs × rows: run r's number is θ + A_r + mean_i ψ_ri. With
    v the sample variance of the numbers and c the mean covariance of two runs' numbers that comes
    from the rows they share, the mean of R runs has the variance v/R + c: the idiosyncratic part
    of each run, also of its rows, is within v. c is the mean over pairs of runs of the sample
    covariance of their ψ over rows, over n, and 0 where that is negative; one run's own variance
    where there is one run. Runs that share models, as ensembles drawn with overlap do, are taken
    as independent.

    Examples
    --------
    >>> moved = np.array([0.5, -0.5, 0.5, -0.5])
    >>> crossed_spread(np.array([0.5]), [moved], []).rows
    0.0833
    """
    count = len(values)
    models = float(np.var(values, ddof=1)) / count if count > 1 else 0.0
    parts = [(models, count - 1.0)]
    for influences, most in ((rows, math.inf), (calibration, degrees)):
        n = len(influences[0]) if len(influences) else 0
        parts.append((_common(influences), min(n - 1.0, most)))
    total = sum(variance for variance, _ in parts)
    below = sum(
        variance * variance / most for variance, most in parts if variance > 0.0 and most > 0.0
    )
    free = total * total / below if below > 0.0 else math.inf
    return RunVariance(models=models, rows=parts[1][0], calibration=parts[2][0], degrees=free)


def _common(influences: Sequence[FloatArray]) -> float:
    """What shared rows add to the variance of a mean of runs; NaN where they are fewer than 2."""
    if not len(influences):
        return 0.0
    n, count = len(influences[0]), len(influences)
    if n < 2:
        return math.nan
    own = sum(float(np.square(influence).sum()) for influence in influences)
    if count == 1:
        return own / (n * (n - 1.0))
    together = float(np.square(np.sum(influences, axis=0)).sum())
    pairs = (together - own) / (count * (count - 1.0))
    return max(pairs / (n * (n - 1.0)), 0.0)


def columns_of(rows: Sequence[Mapping[str, Any]]) -> dict[str, AnyArray]:
    """Columns of rows that hold the same names; text as objects.

    Examples
    --------
    >>> columns_of([{"a": 1.0}, {"a": 2.0}])["a"]
    array([1., 2.])
    """
    if not rows:
        return {}
    return {
        name: np.array(
            [row[name] for row in rows], dtype=object if isinstance(value, str) else None
        )
        for name, value in rows[0].items()
    }
