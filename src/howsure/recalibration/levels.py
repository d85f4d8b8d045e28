"""Which quantile levels calibration rows can reach, the ranks that serve them, and their table."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from howsure.conformal.ranks import coverage_range, level_ranks
from howsure.conformal.thresholds import TooFew, check_few, raise_until_kept
from howsure.core.arrays import BoolArray, FloatArray, IntArray, check_levels
from howsure.core.classes import frozen
from howsure.core.convert import checked
from howsure.core.errors import InputError
from howsure.predictions import Distribution, EvalSet, Quantiles, Samples
from howsure.recalibration.base import SPREAD, FittedParameter, Recalibrator

# As the hubs ask for, so that files fit.
DEFAULT_LEVELS: tuple[float, ...] = (
    0.01,
    0.025,
    *(round(0.05 * step, 2) for step in range(1, 20)),
    0.975,
    0.99,
)
"""The 23 levels of the forecast hubs: eleven central intervals and the median."""


@frozen
class LevelPlan:
    """Reachable levels, with the ranks whose order statistics stand for them."""

    levels: FloatArray  # shape (k,): reachable levels, rising
    # shape (k,): ranks from 1 whose order statistics are averaged; equal but at one half
    low: IntArray
    high: IntArray
    n: float  # calibration rows
    exact: bool  # whether the ranks carry a finite-sample guarantee
    notes: tuple[str, ...] = ()  # names the levels that were left out

    def keep(self, mask: BoolArray, why: str, too_few: TooFew) -> LevelPlan:
        """The plan without the levels where the mask is false, with a note that says why."""
        if mask.all():
            return self
        lost = ", ".join(f"{level:g}" for level in self.levels[~mask])
        check_few(too_few, f"levels {lost} {why}")
        if not mask.any():
            raise InputError(f"too few calibration rows for any level: levels {lost} {why}")
        note = f"Levels omitted, because their quantiles would be infinite: {lost} {why}."
        return replace(
            self,
            levels=self.levels[mask],
            low=self.low[mask],
            high=self.high[mask],
            notes=(*self.notes, note),
        )

    def learnt(self, name: str, values: FloatArray) -> tuple[FittedParameter, ...]:
        """One learnt number a level, with its guarantee where there is one."""
        parameters = []
        for level, low, high, value in zip(self.levels, self.low, self.high, values, strict=True):
            rank = (int(low) + int(high)) / 2.0
            sure = self.exact and low == high
            ends = coverage_range(rank, self.n) if sure else (math.nan, math.nan)
            parameters.append(
                FittedParameter(
                    name=name,
                    value=float(value),
                    nominal=float(level),
                    n=self.n,
                    rank=rank,
                    expected=rank / (self.n + 1) if sure else math.nan,
                    lower=ends[0],
                    upper=ends[1],
                )
            )
        return tuple(parameters)


def plan_levels(levels: npt.ArrayLike, n: float, too_few: TooFew, *, exact: bool) -> LevelPlan:
    """Choose ranks for levels, leaving out those that n calibration rows cannot reach."""
    checked(too_few, TooFew, "too_few")
    wanted = check_levels(levels)
    low, high = level_ranks(wanted, n)
    plan = LevelPlan(wanted, low, high, n, exact)
    return plan.keep((low >= 1) & (high <= n), f"need more than {n:g} calibration rows", too_few)


def levels_with(coverages: tuple[float, ...]) -> FloatArray:
    """The default levels, and the ends of central intervals at these coverages, rising."""
    tails = [(1.0 - coverage) / 2.0 for coverage in coverages]
    levels = np.array([*DEFAULT_LEVELS, *tails, *(1.0 - tail for tail in tails)])
    return np.asarray(np.unique(np.round(levels, 12)))


def level_words(n: float, what: str) -> str:
    """What holds of quantiles whose ranks are exact, in words; `what` must not tie."""
    return (
        f"A new row exchangeable with the {n:g} calibration rows is at or below its quantile at "
        "level p with probability rank/(n + 1). The rank is (n + 1)p rounded outward; with tied "
        f"{what} the probability may be higher"
    )


def hold_below(
    value: float,
    y: FloatArray,
    scores: FloatArray,
    end: Callable[[IntArray, float], FloatArray],
) -> float:
    """Raise a threshold by roundings until each row that scores at most it lies below its end."""
    captured = np.flatnonzero(scores <= value)
    above = captured[y[captured] > end(captured, value)]
    return raise_until_kept(value, lambda raised: bool((y[above] > end(above, raised)).any()))


@frozen(kw_only=True)
class TableRecalibrator(Recalibrator):
    """A fitted method that gives quantiles at the levels reached. Subclasses are final."""

    @property
    def columns(self) -> tuple[FittedParameter, ...]:
        """What was learnt for each level."""
        return tuple(learnt for learnt in self.parameters if not math.isnan(learnt.nominal))

    @abstractmethod
    def _quantiles(self, prediction: Distribution | Samples, learnt: FloatArray) -> FloatArray:
        """Quantiles of each row, shape (n, k), from what was learnt for each level."""

    @np.errstate(over="ignore", invalid="ignore")
    def transform(self, evalset: EvalSet) -> tuple[Quantiles, tuple[str, ...]]:
        """Quantiles at the levels reached."""
        prediction = self.matching_prediction(evalset, SPREAD)
        learnt = np.array([column.value for column in self.columns])
        values = self._quantiles(prediction, learnt)
        return Quantiles([column.nominal for column in self.columns], values), ()
