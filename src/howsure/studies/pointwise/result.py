"""What a test of coverage at every point gives."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Literal

import numpy as np

from howsure.core.arrays import BoolArray, FloatArray, check_fraction
from howsure.core.brief import brief_repr
from howsure.core.errors import InputError, UnanswerableError
from howsure.metrics.pointwise import Brier, CoverageBand, brier, coverage_band
from howsure.studies.tasks.worlds import Truth

Stage = Literal["fit", "predict", "intervals"]
Which = Literal["picf", "cicf"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """A trial that gave no intervals.

    Attributes
    ----------
    trial : int
        Which trial.
    stage : {"fit", "predict", "intervals"}
        Where it ended: in the method's fit or predict, or because its intervals were missing,
        crossed or too few.
    error, message, trace : str
        The error's class, its message, and the traceback.
    """

    trial: int
    stage: Stage
    error: str
    message: str
    trace: str = ""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PointwiseResult:
    """Intervals of many trials on one test set, and how they cover at each of its points.

    Arrays have S trials that succeeded, n test points and c coverages.

    Attributes
    ----------
    world, method : str
        Their names.
    seed : int
        The experiment's seed.
    covariates : str
        Whether trials drew their own x (``random``) or shared it (``fixed``).
    n_train : int
        Rows of a training set.
    coverages : tuple of float
        Nominal coverages in rising order.
    confidence : float
        Of the bands over test points.
    x, y : ndarray of float, shape (n, d) and (n,)
        The test set.
    truth : Truth, optional
        The true law of y at each test point; None where the world knows none.
    lower, upper : ndarray of float, shape (S, n, c)
        Ends of the prediction intervals.
    mass : ndarray of float, shape (S, n, c), optional
        Probability that a new y falls in each; None without a truth.
    mean_ends : tuple of two ndarrays of float, shape (S, n, c), optional
        Ends of the confidence intervals; None where the method gives none.
    log_likelihood : ndarray of float, shape (S,)
        Mean log density at the test set's y, in nats; NaN without a density.
    failures : tuple of Failure
        Trials left out.
    warnings : mapping of str to int
        Warnings, with the number of trials that gave each; trials fitted together count once.
    trials_planned : int
        Trials at most.
    stop : str
        Why trials ended, in words.
    reasons : mapping of str to str
        Why ``picf``, ``cicf``, ``trials`` or ``log_likelihood`` is not known.
    first_trial : int
        Number of the first trial.
    """

    world: str
    method: str
    seed: int
    covariates: str
    n_train: int
    coverages: tuple[float, ...]
    confidence: float
    x: FloatArray
    y: FloatArray
    truth: Truth | None
    lower: FloatArray
    upper: FloatArray
    mass: FloatArray | None
    mean_ends: tuple[FloatArray, FloatArray] | None
    log_likelihood: FloatArray
    failures: tuple[Failure, ...]
    warnings: Mapping[str, int]
    trials_planned: int
    stop: str
    reasons: Mapping[str, str]
    first_trial: int = 0

    __repr__ = brief_repr

    @property
    def trials(self) -> int:
        """Trials that succeeded."""
        return len(self.lower)

    def by_trial(self, which: Which, coverage: float) -> FloatArray:
        """Coverage of each trial at each point, shape (S, n): what PICF and CICF are means of.

        For the PICF the probability that the interval holds a new y, for the CICF whether it
        holds the mean (0 or 1).

        Raises
        ------
        InputError
            If there is no such coverage or measure.
        UnanswerableError
            If it cannot be known; the message says why.
        """
        column = self._column(coverage)
        if which not in ("picf", "cicf"):
            raise InputError(f"which must be 'picf' or 'cicf', got {which!r}")
        why = self.reasons.get(which, "")
        if which == "picf" and self.mass is not None and not why:
            return self.mass[:, :, column]
        if which == "cicf" and self.mean_ends is not None and self.truth is not None and not why:
            low, high = (ends[:, :, column] for ends in self.mean_ends)
            return ((low <= self.truth.mean) & (self.truth.mean <= high)).astype(np.float64)
        raise UnanswerableError(why)

    def band(self, which: Which, coverage: float) -> CoverageBand:
        """PICF or CICF at each point, with a band that is simultaneous over points.

        Raises
        ------
        InputError, UnanswerableError
            As `by_trial`; also where fewer than two trials succeeded.
        """
        return coverage_band(
            self.by_trial(which, coverage),
            binary=which == "cicf",
            confidence=self.confidence,
            seed=self.seed,
        )

    def brier(self, which: Which, coverage: float) -> Brier:
        """Brier score of the PICF or the CICF, raw and corrected for Monte-Carlo error.

        Raises
        ------
        InputError, UnanswerableError
            As `by_trial`.
        """
        return brier(self.by_trial(which, coverage), coverage)

    def picp(self, coverage: float) -> FloatArray:
        """Share of the test set's y covered in each trial, shape (S,)."""
        return np.asarray(self.covered(coverage).mean(axis=1))

    def covered(self, coverage: float) -> BoolArray:
        """Whether the test set's y are covered, shape (S, n)."""
        column = self._column(coverage)
        return (self.lower[:, :, column] <= self.y) & (self.y <= self.upper[:, :, column])

    def cicp(self, coverage: float) -> FloatArray:
        """Share of the test points' means covered in each trial, shape (S,).

        Raises
        ------
        UnanswerableError
            If it cannot be known; the message says why.
        """
        return np.asarray(self.by_trial("cicf", coverage).mean(axis=1))

    def width(self, which: Which, coverage: float) -> FloatArray:
        """Width of the prediction (PICF) or confidence (CICF) intervals, shape (S, n)."""
        column = self._column(coverage)
        if which == "picf":
            return np.asarray(self.upper[:, :, column] - self.lower[:, :, column])
        if self.mean_ends is None:
            raise UnanswerableError(self.reasons.get("cicf", "there are no confidence intervals"))
        return np.asarray(self.mean_ends[1][:, :, column] - self.mean_ends[0][:, :, column])

    def _column(self, coverage: float) -> int:
        distances = np.abs(np.array(self.coverages) - check_fraction(coverage, "coverage"))
        column = int(np.argmin(distances))
        if distances[column] > 1e-9:
            given = ", ".join(f"{c:g}" for c in self.coverages)
            raise InputError(f"coverage must be one of {given}, got {coverage:g}")
        return column


def joined(blocks: Sequence[PointwiseResult], *, planned: int | None = None) -> PointwiseResult:
    """One result from several of other trials of the same test.

    Parameters
    ----------
    blocks : sequence of PointwiseResult
        Of `pointwise` with one world, method, seed and options, and each with its own
        `first_trial`; in any order.
    planned : int, optional
        Trials that there shall be in the end; those of the blocks if omitted.

    Returns
    -------
    PointwiseResult
        What one run of all the trials gives.

    Raises
    ------
    InputError
        If there is none, they are not of one test, or two hold the same trial.

    Examples
    --------
    >>> from howsure.methods.linear import LinearT
    >>> from howsure.studies.pointwise.simulation import pointwise
    >>> whole = pointwise("linear", LinearT(), trials=5, n_test=9)
    >>> head = pointwise("linear", LinearT(), trials=3, n_test=9)
    >>> rest = pointwise("linear", LinearT(), trials=2, first_trial=3, n_test=9)
    >>> bool((joined([rest, head]).lower == whole.lower).all())
    True
    """
    if not blocks:
        raise InputError("blocks must hold at least one result, got none")
    parts = sorted(blocks, key=lambda part: part.first_trial)
    first = parts[0]
    for before, after in pairwise(parts):
        _check_one_test(before, after)
    succeeded = [part for part in parts if part.trials]
    failures = [failure for part in parts for failure in part.failures]
    likelihood = np.concatenate([part.log_likelihood for part in parts])
    mean_ends = _mean_ends(succeeded)
    tried = len(likelihood) + len(failures)
    wanted = sum(part.trials_planned for part in parts) if planned is None else planned
    complete = tried == wanted
    return replace(
        first,
        lower=np.concatenate([part.lower for part in parts]),
        upper=np.concatenate([part.upper for part in parts]),
        mass=_stacked([part.mass for part in parts]),
        mean_ends=mean_ends,
        log_likelihood=likelihood,
        failures=tuple(failures),
        warnings=dict(sum((Counter(part.warnings) for part in parts), Counter())),
        trials_planned=wanted,
        stop="all trials planned" if complete else f"{tried} of {wanted} trials at hand",
        reasons=why_unknown(
            first.method,
            failures=failures,
            knows_truth=first.truth is not None,
            knows_mean=mean_ends is not None,
            log_likelihood=likelihood,
        ),
    )


def why_unknown(
    method: str,
    *,
    failures: Sequence[Failure],
    knows_truth: bool,
    knows_mean: bool,
    log_likelihood: FloatArray,
) -> dict[str, str]:
    """Why something cannot be known, by what it is: the `reasons` of a result.

    Examples
    --------
    >>> known = {"knows_truth": True, "knows_mean": True, "log_likelihood": np.ones(2)}
    >>> why_unknown("line", failures=(), **known)
    {}
    """
    if not len(log_likelihood):
        first = failures[0]
        failed = f"no trial succeeded; the first failed in {first.stage}: {first.message}"
        return dict.fromkeys(("picf", "cicf", "trials", "log_likelihood"), failed)
    reasons = {}
    if not knows_truth:
        reasons = dict.fromkeys(("picf", "cicf"), "the world does not know the distribution of y")
    elif not knows_mean:
        reasons["cicf"] = no_mean(method)
    if np.isnan(log_likelihood).any():
        reasons["log_likelihood"] = f"{method} gives no density"
    return reasons


def no_mean(method: str) -> str:
    """The reason where a method speaks of y alone."""
    return f"{method} gives no confidence intervals for the mean"


def _check_one_test(before: PointwiseResult, after: PointwiseResult) -> None:
    for name in ("world", "method", "seed", "covariates", "n_train", "coverages", "confidence"):
        one, other = getattr(before, name), getattr(after, name)
        if one != other:
            raise InputError(f"blocks must be of one test, got {name} {one!r} and {other!r}")
    if not (np.array_equal(before.x, after.x) and np.array_equal(before.y, after.y)):
        raise InputError("blocks must be of one test, got different test sets")
    if after.first_trial < before.first_trial + before.trials + len(before.failures):
        raise InputError(f"blocks must hold a trial once, got trial {after.first_trial} twice")


def _mean_ends(parts: Sequence[PointwiseResult]) -> tuple[FloatArray, FloatArray] | None:
    """Ends of the confidence intervals of all parts; None unless all have them."""
    ends = [part.mean_ends for part in parts if part.mean_ends is not None]
    if not ends or len(ends) < len(parts):
        return None
    return np.concatenate([low for low, _ in ends]), np.concatenate([high for _, high in ends])


def _stacked(tables: Sequence[FloatArray | None]) -> FloatArray | None:
    known = [table for table in tables if table is not None]
    return np.concatenate(known) if known else None
