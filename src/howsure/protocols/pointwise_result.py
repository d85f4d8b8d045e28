"""What a test of coverage at every point gives."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

from howsure.core.arrays import FloatArray, check_fraction
from howsure.core.errors import InputError, UnanswerableError
from howsure.metrics.pointwise import Brier, CoverageBand, brier, coverage_band
from howsure.worlds import Truth

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
        Warnings, with the number of trials that gave each.
    trials_planned : int
        Trials at most.
    stop : str
        Why trials ended, in words.
    reasons : mapping of str to str
        Why ``picf``, ``cicf``, ``trials`` or ``log_likelihood`` is not known.
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
        column = self._column(coverage)
        inside = (self.lower[:, :, column] <= self.y) & (self.y <= self.upper[:, :, column])
        return np.asarray(inside.mean(axis=1))

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
