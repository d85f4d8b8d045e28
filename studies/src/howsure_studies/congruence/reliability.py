"""Does CCE vary more from sample to sample than ECE? Young et al. 2025, section 4.5 and table 2."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import final

import numpy as np
import numpy.typing as npt
from scipy import special

from howsure.core.arrays import BoolArray, FloatArray, as_vector
from howsure.core.classes import frozen
from howsure.core.errors import InputError
from howsure.core.records import Record
from howsure_studies.congruence.result import CongruenceResult
from howsure_studies.engine import published
from howsure_studies.tasks.images.naming import REAL


@final
@frozen(kw_only=True)
class WelchTest:
    """Two means compared without the assumption of equal variances; `greater` is one-sided."""

    statistic: float
    degrees: float
    two_sided: float
    greater: float
    means: tuple[float, float]

    @property
    def p_values(self) -> dict[str, float]:
        """Of CCE against ECE, by the names of records and of what is published."""
        return {"welch_two_sided": self.two_sided, "welch_cce_varies_more": self.greater}


def welch(first: npt.ArrayLike, second: npt.ArrayLike) -> WelchTest:
    """Welch's t-test of two samples, with Welch's and Satterthwaite's degrees of freedom."""
    samples = [as_vector(first, "first"), as_vector(second, "second")]
    if min(len(sample) for sample in samples) < 2:
        raise InputError("samples must contain at least two numbers each, got fewer")
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
@dataclass(frozen=True, kw_only=True, eq=False)
class Reliability:
    """Coefficients of variation of CCE and ECE, of pairs of a task and a model."""

    task: tuple[str, ...]
    model: tuple[str, ...]
    # (pairs,): coefficients of variation, sd by mean, over bootstrap samples and draws
    cce: FloatArray
    ece: FloatArray
    # (pairs,): coefficient of variation of CCE over sets of draws alone, the data as they are
    cce_draws: FloatArray
    n: FloatArray  # (pairs,): rows that are judged
    ece_mean: FloatArray  # (pairs,): mean of ECE over bootstrap samples

    @property
    def answered(self) -> BoolArray:
        """Which pairs have an answer, shape (pairs,)."""
        return np.isfinite(self.cce) & np.isfinite(self.ece)

    @property
    def size(self) -> FloatArray:
        """ECE in units of 1/√n, shape (pairs,): the noise of a share of n rows is some of these."""
        return np.asarray(self.ece_mean * np.sqrt(self.n))

    def ece_expected(self, of: Reliability) -> FloatArray:
        """What a line through the pairs of others has for the coefficients of ECE of these.

        The line is of the logarithm of the coefficient on that of `size`, by least squares.
        """
        known = self.answered
        slope, start = np.polyfit(np.log(self.size[known]), np.log(self.ece[known]), 1)
        return np.asarray(np.exp(start + slope * np.log(of.size[of.answered])))

    @cached_property
    def test(self) -> WelchTest:
        """Welch's test of CCE against ECE; ``greater`` is against CCE that varies more."""
        known = self.answered
        if known.sum() < 2:
            raise InputError(f"at least two pairs must have an answer, got {int(known.sum())}")
        return welch(self.cce[known], self.ece[known])

    @cached_property
    def tested(self) -> tuple[WelchTest | None, str]:
        """The test, or None and why there is none."""
        try:
            return self.test, ""
        except InputError as error:
            return None, str(error)

    def records(self) -> tuple[Record, ...]:
        """Mean coefficients of variation, with the p-values of the test."""
        test, reason = self.tested
        options = {} if test is None else {"welch_t": test.statistic, **test.p_values}
        return tuple(
            Record(
                metric=f"{name}_variation",
                value=float(values.mean()),
                n=float(len(values)),
                reason=reason,
                options=options,
            )
            for name, values in (("cce", self.cce), ("ece", self.ece))
        )


def published_reliability(*, unswap: bool = False) -> Reliability:
    """Coefficients of variation of the paper's table 2, for 25 pairs of a task and a model.

    Parameters
    ----------
    unswap : bool
        Whether the two cells of COCO-People that stand in each other's place, in both columns,
        are put right. Welch's test takes no notice, since columns keep their numbers.

    Examples
    --------
    >>> test = published_reliability().test
    >>> round(test.two_sided, 3), round(test.greater, 3)
    (0.377, 0.812)
    """
    rows = {
        (row.task, row.method, row.measure): row.value
        for row in published("congruence", table="table 2")
    }
    pairs = list(dict.fromkeys((task, model) for task, model, _ in rows))
    swapped = {"poisson": "gaussian", "gaussian": "poisson"}
    cells = [  # where each pair's coefficients are printed
        (task, swapped.get(model, model) if unswap and task == "COCO-People" else model)
        for task, model in pairs
    ]
    return Reliability(
        task=tuple(task for task, _ in pairs),
        model=tuple(model for _, model in pairs),
        cce=np.array([rows[(*cell, "cce_cv")] for cell in cells]),
        ece=np.array([rows[(*cell, "ece_cv")] for cell in cells]),
        cce_draws=np.array([rows[(*p, "cce_draws_sd")] / rows[(*p, "cce")] for p in pairs]),
        n=np.array([REAL[task.lower()].published["test"] for task, _ in pairs], dtype=np.float64),
        ece_mean=np.array([rows[(*p, "ece")] for p in pairs]),
    )


def reliability(result: CongruenceResult) -> Reliability:
    """Coefficients of variation of every run of a comparison with bootstrap samples."""
    runs = result.runs
    if not any(run.bootstraps.get("ece", np.empty(0)).size > 1 for run in runs):
        raise InputError("result must have two or more bootstrap samples, got fewer")
    return Reliability(
        task=tuple(run.task for run in runs),
        model=tuple(run.model for run in runs),
        cce=np.array([run.variation("cce") for run in runs]),
        ece=np.array([run.variation("ece") for run in runs]),
        cce_draws=np.array([run.monte_carlo_sd / run.value("cce") for run in runs]),
        n=np.array([run.n for run in runs], dtype=np.float64),
        ece_mean=np.array([run.bootstrap_mean("ece") for run in runs]),
    )
