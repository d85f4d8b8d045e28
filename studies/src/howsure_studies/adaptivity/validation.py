"""Which measure of adaptivity follows the property that is wanted, and what ease depends on.

The property: of two random subsets of rows, the harder one has the larger sets. In every trial
rows are drawn, its rate and all measures are computed on them, and over the trials each measure
is correlated with the rate. Source: Jang and Lee 2025, section 3.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final, final

import numpy as np
import numpy.typing as npt

from howsure.core.arrays import FloatArray, IntArray, as_vector, check_fraction
from howsure.core.classes import frozen
from howsure.core.convert import check_whole
from howsure.core.errors import InputError
from howsure.core.progress import report_progress
from howsure.core.records import ResultTable
from howsure.core.rng import child
from howsure.stats.cells import EaseCells
from howsure.stats.permutation import Resampling
from howsure.topics.adaptivity.association import satisfaction_rate, t_ss
from howsure.topics.adaptivity.coverage import noise_floor, t_cv
from howsure.topics.association import spearman
from howsure_studies.adaptivity.label_sets import Classified, LabelMethod, first_sets, set_measures
from howsure_studies.engine import columns_of

VALIDATED: Final = ("set_deficit", "set_excess", "sscv", "escv", "t_ss")
"""The measures that are validated."""
_QUIET: Final = Resampling(replicates=0, permutations=0)
_ROWS: Final = 500
_SUBSET: Final = 100
_PAIRS: Final = 4000
_CELLS: Final = 20
"""Of a method's validation: rows of a trial, rows of a subset, pairs of subsets, cells of T-SS."""


@final
@frozen(kw_only=True, eq=False)
class MeasureValidation:
    """Measures beside the rate at which the property holds, trial by trial.

    Attributes
    ----------
    measures : tuple of str
        `VALIDATED`.
    values : ndarray of float, shape (trials, measures)
        Each measure in each trial; NaN where it has no answer.
    rate : ndarray of float, shape (trials,)
        Share of pairs of subsets for which the property holds.
    rho, p_value : ndarray of float, shape (measures,)
        Spearman's correlation with the rate, and its two-sided p-value; NaN where a measure, or
        the rate, is the same in all trials. Trials share rows, so that p-values are too small.
    rows, subset, pairs : int
        Rows of a trial, rows of a subset, pairs of subsets.
    """

    measures: tuple[str, ...]
    values: FloatArray
    rate: FloatArray
    rho: FloatArray
    p_value: FloatArray
    rows: int
    subset: int
    pairs: int

    @property
    def reliability(self) -> float:
        """Share of the rate's variance over trials that is not noise of drawing pairs.

        1 − mean(r(1 − r)/pairs)/Var(r), at least 0; no correlation with the rate can be expected
        to exceed its root. More pairs, or fewer rows a trial, raise it.
        """
        spread = float(self.rate.var(ddof=1))
        noise = float((self.rate * (1 - self.rate)).mean()) / self.pairs
        return max(1.0 - noise / spread, 0.0) if spread > 0 else 0.0

    def table(self) -> ResultTable:
        """One row a measure: correlation, p-value, and rank by size of the correlation."""
        return ResultTable(
            name="adaptivity_validation",
            columns={
                "measure": np.array(self.measures, dtype=object),
                "rho": self.rho,
                "p_value": self.p_value,
                "rank": correlation_ranks(self.rho[None])[0],
            },
            notes=(
                f"Spearman's correlation with the rate of the property over {len(self.rate)} "
                f"trials of {self.rows:,} rows: {self.pairs:,} pairs of subsets of {self.subset}; "
                f"at most about {self.reliability**0.5:.2f} because of few pairs."
            ),
        )


def validate_measures(
    size: npt.ArrayLike,
    rank: npt.ArrayLike,
    covered: npt.ArrayLike,
    ease: npt.ArrayLike,
    *,
    coverage: float,
    rows: int = 5000,
    subset: int = 100,
    pairs: int = 1000,
    trials: int = 1000,
    bins: int = 50,
    seed: int = 0,
) -> MeasureValidation:
    """Correlate each measure with the rate at which harder subsets have larger sets.

    Parameters
    ----------
    size, rank, covered, ease : array-like of shape (n,)
        Of each row: labels in its set, rank of the true label, whether it was covered, its ease.
    coverage : float
        Nominal coverage.
    rows : int
        Rows of a trial, drawn without replacement: at most n. Jang and Lee do not say theirs.
    subset, pairs : int
        Rows of a subset, and pairs of subsets in a trial; theirs are not known either.
    trials : int
        At least 3; they have 1,000.
    bins : int
        Cells of T-SS, from 3 to the rows of a trial.
    seed : int
        Fixes all draws.

    Returns
    -------
    MeasureValidation

    Raises
    ------
    InputError
        If lengths differ, a value is not finite, or a number leaves its range.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> rank = 1.0 + rng.poisson(2.0, 500)
    >>> size = rank + rng.integers(0, 3, 500)
    >>> found = validate_measures(
    ...     size, rank, size >= rank, -rank, coverage=0.9, rows=100, trials=20, pairs=50, bins=10
    ... )
    >>> found.rho.shape
    (5,)
    """
    difficulty = as_vector(rank, "rank")
    n = len(difficulty)
    columns = np.column_stack(
        (
            as_vector(size, "size", length=n),
            difficulty,
            as_vector(np.asarray(covered, dtype=np.float64), "covered", length=n),
            as_vector(ease, "ease", length=n),
        )
    )
    target = check_fraction(coverage, "coverage")
    check_whole(rows, "rows", 3, n)
    check_whole(bins, "bins", 3, rows)
    check_whole(trials, "trials", 3)
    values = np.empty((trials, len(VALIDATED)))
    rate = np.empty(trials)
    for trial in range(trials):
        rng = child(seed, "adaptivity", "validation", trial)
        drawn = columns[rng.choice(n, rows, replace=False)]
        draws = Resampling(replicates=0, permutations=0, seed=int(rng.integers(2**31 - 1)))
        rate[trial] = satisfaction_rate(
            drawn[:, 0], drawn[:, 1], subset=subset, pairs=pairs, resampling=draws
        ).estimate.value
        cells = EaseCells(drawn[:, 3], bins)
        measures = set_measures(drawn[:, 0], drawn[:, 1], drawn[:, 2], target, cells)
        values[trial] = [measures[name] for name in VALIDATED]
        report_progress("validation", trial + 1, trials)
    correlations = [_spearman(column, rate) for column in values.T]
    return MeasureValidation(
        measures=VALIDATED,
        values=values,
        rate=rate,
        rho=np.array([rho for rho, _ in correlations]),
        p_value=np.array([p for _, p in correlations]),
        rows=rows,
        subset=subset,
        pairs=pairs,
    )


@final
@frozen(kw_only=True, eq=False)
class MethodValidation:
    """What the measures say of the sets of one method on the test rows of one split.

    Attributes
    ----------
    task, method : str
        The classifier and its rows; the method.
    coverage : float
        Nominal coverage.
    bins : int
        Cells of `t_cv` and `t_ss`.
    found : MeasureValidation
        Measures beside the rate at which Property 1 holds.
    ways : tuple of str
        Where ease came from.
    t_cv, t_ss : ndarray of float, shape (ways,)
        T-CV and T-SS of the same sets in cells by each of these eases.
    """

    task: str
    method: str
    coverage: float
    bins: int
    found: MeasureValidation
    ways: tuple[str, ...]
    t_cv: FloatArray
    t_ss: FloatArray


def validate_method(
    task: Classified,
    method: str,
    *,
    coverage: float,
    trials: int,
    bins: int = 50,
    own: Mapping[str, LabelMethod] | None = None,
    seed: int = 0,
) -> MethodValidation:
    """Validate the measures on the sets that one method gives to the first split's test rows.

    Trials draw 500 of these rows, at most half, and 4,000 pairs of subsets of 100, at most a third.
    """
    sets, test = first_sets(task, method, coverage=coverage, bins=bins, own=own, seed=seed)
    covered = sets.contains(task.y[test].astype(np.float64))
    rank, rows = task.rank[test], min(_ROWS, len(test) // 2)
    validation = validate_measures(
        *(sets.sizes, rank, covered, task.ease[test]),
        coverage=coverage,
        rows=rows,
        subset=min(_SUBSET, rows // 3),
        pairs=_PAIRS,
        trials=trials,
        bins=min(_CELLS, rows // 3),
        seed=seed,
    )
    eases = {way: ease[test] for way, ease in task.eases.items()}
    table = ease_sensitivity(sets.sizes, rank, covered, eases, coverage=coverage, bins=(bins,))
    return MethodValidation(
        task=task.name,
        method=method,
        coverage=coverage,
        bins=bins,
        found=validation,
        ways=tuple(eases),
        t_cv=table.columns["t_cv"],
        t_ss=table.columns["t_ss"],
    )


def correlation_ranks(rho: npt.ArrayLike) -> IntArray:
    """Ranks of measures by the size of their correlations, in each setting.

    Parameters
    ----------
    rho : array-like of shape (N, k)
        Correlations of k measures in N settings; NaN where one is missing.

    Returns
    -------
    ndarray of int, shape (N, k)
        1 is the largest; missing ones come last.

    Examples
    --------
    >>> correlation_ranks([[0.9, 0.1], [0.2, -0.8]])
    array([[1, 2],
           [2, 1]])
    """
    sizes = np.abs(np.asarray(rho, dtype=np.float64))
    falling = -np.where(np.isnan(sizes), -1.0, sizes)
    order = np.argsort(falling, axis=1, kind="stable")
    return np.asarray(np.argsort(order, axis=1, kind="stable") + 1, dtype=np.int64)


def ease_sensitivity(
    size: npt.ArrayLike,
    difficulty: npt.ArrayLike,
    covered: npt.ArrayLike,
    eases: Mapping[str, npt.ArrayLike],
    *,
    coverage: float,
    bins: Sequence[int] = (20, 50, 100),
) -> ResultTable:
    """T-CV and T-SS of the same predictions, by the way of disturbing and the number of cells.

    Parameters
    ----------
    size, difficulty, covered : array-like of shape (n,)
        Of each row: size of its set, difficulty, whether it was covered.
    eases : mapping of str to array-like of shape (n,)
        Ease by the way of disturbing: its type, its size, the number of disturbances.
    coverage : float
        Nominal coverage.
    bins : sequence of int
        Numbers of cells, each from 3 to n.

    Returns
    -------
    ResultTable
        One row a way and a number of cells: ``ease``, ``bins``, ``t_cv``, ``t_cv_floor`` (of a
        perfect model, median), ``t_ss``, and ``agreement``, Spearman's correlation with the
        first ease.

    Raises
    ------
    InputError
        If lengths differ, a value is not finite, or there is no ease.

    Examples
    --------
    >>> ease = np.arange(60.0)
    >>> found = ease_sensitivity(
    ...     60 - ease, 60 - ease, ease > 5, {"a": ease, "b": -ease}, coverage=0.9, bins=(5,)
    ... )
    >>> found.columns["t_ss"], found.columns["agreement"]
    (array([1., 1.]), array([ 1., -1.]))
    """
    if not eases:
        raise InputError("eases must contain at least one, got none")
    first = next(iter(eases.values()))
    rows = []
    for name, given in eases.items():
        agreement = spearman(first, given).value
        for cells in bins:
            violation = t_cv(covered, given, coverage=coverage, bins=cells, resampling=_QUIET)
            slope = t_ss(size, difficulty, given, bins=cells, resampling=_QUIET)
            rows.append(
                {
                    "ease": name,
                    "bins": cells,
                    "t_cv": violation.estimate.value,
                    "t_cv_floor": noise_floor(violation.cells.n, coverage).median,
                    "t_ss": slope.estimate.value,
                    "agreement": agreement,
                }
            )
    return ResultTable(
        name="adaptivity_sensitivity",
        columns=columns_of(rows),
        labels={"ease": "way of disturbing", "t_cv_floor": "T-CV of a perfect model, median"},
        notes=f"The same predictions at coverage {coverage:g}, cut into cells in several ways.",
    )


def _spearman(values: FloatArray, rate: FloatArray) -> tuple[float, float]:
    from scipy.stats import spearmanr

    known = np.isfinite(values)
    x, y = values[known], rate[known]
    if len(x) < 3 or np.ptp(x) == 0 or np.ptp(y) == 0:
        return math.nan, math.nan
    correlation = spearmanr(x, y)
    return float(correlation.statistic), float(correlation.pvalue)
