"""Reliability: does CCE vary more from sample to sample than ECE does?

For each task and model, ten bootstrap samples of the data with five sets of draws each give 50
values of CCE, and ten of ECE. Their coefficients of variation, sd by mean, are compared by
Welch's t-test. Source: Young et al. 2025, section 4.5 and table 2.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, final

import numpy as np
import numpy.typing as npt
from scipy import special

from howsure.core.arrays import FloatArray, as_vector
from howsure.core.errors import InputError
from howsure.core.records import Record, Table
from howsure.studies.congruence.result import CongruenceResult


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class WelchTest:
    """Two means compared without the assumption of equal variances.

    Attributes
    ----------
    statistic : float
        t = (m₁ − m₂)/√(s₁²/n₁ + s₂²/n₂).
    degrees : float
        Welch's and Satterthwaite's degrees of freedom.
    two_sided : float
        p-value against any difference.
    greater : float
        p-value against a larger first mean.
    means : tuple of two floats
        m₁ and m₂.
    """

    statistic: float
    degrees: float
    two_sided: float
    greater: float
    means: tuple[float, float]


def welch(first: npt.ArrayLike, second: npt.ArrayLike) -> WelchTest:
    """Welch's t-test of two samples.

    Parameters
    ----------
    first, second : array-like of shape (n₁,) and (n₂,)
        At least two numbers each.

    Returns
    -------
    WelchTest

    Raises
    ------
    InputError
        If a sample has fewer than two numbers, one is not finite, or both are constant.

    Examples
    --------
    >>> found = welch([1.0, 2.0, 3.0], [2.0, 4.0, 6.0])
    >>> round(found.statistic, 4), round(found.two_sided, 4)
    (-1.5492, 0.2209)
    """
    samples = [as_vector(first, "first"), as_vector(second, "second")]
    if min(len(sample) for sample in samples) < 2:
        raise InputError("samples must hold at least two numbers each, got fewer")
    means = [float(sample.mean()) for sample in samples]
    errors = [float(sample.var(ddof=1)) / len(sample) for sample in samples]
    if sum(errors) == 0.0:
        raise InputError("samples must vary, got two constants")
    statistic = (means[0] - means[1]) / math.sqrt(sum(errors))
    degrees = sum(errors) ** 2 / sum(
        error**2 / (len(sample) - 1) for error, sample in zip(errors, samples, strict=True)
    )
    return WelchTest(
        statistic=statistic,
        degrees=degrees,
        two_sided=float(2.0 * special.stdtr(degrees, -abs(statistic))),
        greater=float(special.stdtr(degrees, -statistic)),
        means=(means[0], means[1]),
    )


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Reliability:
    """Coefficients of variation of CCE and of ECE, one a task and model.

    Attributes
    ----------
    task, model : tuple of str
        Of each pair.
    cce, ece : ndarray of float, shape (pairs,)
        Coefficients of variation.
    cce_draws : ndarray of float, shape (pairs,)
        Coefficient of variation of CCE over sets of draws alone, the data as they are.
    """

    task: tuple[str, ...]
    model: tuple[str, ...]
    cce: FloatArray
    ece: FloatArray
    cce_draws: FloatArray

    @property
    def test(self) -> WelchTest:
        """Welch's test of CCE against ECE; ``greater`` is against CCE that varies more.

        Raises
        ------
        InputError
            If there are fewer than two pairs with an answer.
        """
        known = np.isfinite(self.cce) & np.isfinite(self.ece)
        if known.sum() < 2:
            raise InputError(f"at least two pairs must have an answer, got {int(known.sum())}")
        return welch(self.cce[known], self.ece[known])

    def records(self) -> tuple[Record, ...]:
        """Mean coefficients of variation, with the p-values of the test."""
        try:
            found, reason = self.test, ""
            told = {
                "welch_t": found.statistic,
                "welch_two_sided": found.two_sided,
                "welch_cce_varies_more": found.greater,
            }
        except InputError as error:
            reason, told = str(error), {}
        return tuple(
            Record(
                metric=f"{name}_variation",
                value=float(values.mean()),
                n=float(len(values)),
                reason=reason,
                options=told,
            )
            for name, values in (("cce", self.cce), ("ece", self.ece))
        )

    def table(self) -> Table:
        """One row a pair."""
        columns: dict[str, npt.NDArray[Any]] = {
            "task": np.array(self.task, dtype=object),
            "model": np.array(self.model, dtype=object),
            "cce_cv": self.cce,
            "cce_draws_cv": self.cce_draws,
            "ece_cv": self.ece,
        }
        return Table(
            name="congruence_reliability",
            columns=columns,
            labels={
                "cce_cv": "coefficient of variation of CCE",
                "cce_draws_cv": "the same over draws alone",
                "ece_cv": "coefficient of variation of ECE",
            },
        )


def reliability(result: CongruenceResult) -> Reliability:
    """Coefficients of variation of every run of a comparison.

    Parameters
    ----------
    result : CongruenceResult
        Of `howsure.studies.congruence.suite.compare`, with bootstrap samples.

    Raises
    ------
    InputError
        If no run has two bootstrap samples.
    """
    runs = result.runs
    if not any(run.bootstraps.get("ece", np.empty(0)).size > 1 for run in runs):
        raise InputError("result must have two or more bootstrap samples, got fewer")
    draws = [run.monte_carlo_sd / run.value("cce") for run in runs]
    return Reliability(
        task=tuple(run.task for run in runs),
        model=tuple(run.model for run in runs),
        cce=np.array([run.variation("cce") for run in runs]),
        ece=np.array([run.variation("ece") for run in runs]),
        cce_draws=np.array(draws),
    )
