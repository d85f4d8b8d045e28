"""Conformal thresholds that hold for every population near the one that calibrates."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final, Literal, final

import numpy as np
import numpy.typing as npt
from scipy import special

from howsure.conformal.adapting import Adaptation, Calibration, OneForAll
from howsure.conformal.thresholds import Threshold, check_few
from howsure.core.arrays import FloatArray, as_vector, check_fraction
from howsure.core.classes import frozen
from howsure.core.convert import Checked
from howsure.core.errors import InputError
from howsure.core.registry import check_known
from howsure_studies.methods.conformal.weighted import Ratio, learnt_ratio

Divergence = Literal["kl", "chi2", "tv"]

_STEPS: Final = 60
"""Halvings of an interval within [0, 1]: as far as doubles near 1 can be told apart."""
_SURE: Final = 1e-12
"""How near to 1 a level is taken as 1, which no finite threshold reaches."""


def worst_coverage(coverage: float, radius: float, divergence: Divergence = "kl") -> float:
    """The least mass that a set of known mass keeps in any population within a divergence.

    Parameters
    ----------
    coverage : float
        β: the mass of the set in the population at hand, in (0, 1).
    radius : float
        ρ ≥ 0: how far the other population Q may be from the one at hand, P.
    divergence : {"kl", "chi2", "tv"}
        E_P f(dQ/dP) with f(t) = t log t, in nats; (t − 1)²; or |t − 1|/2.

    Returns
    -------
    float
        g(β) = inf {z ∈ [0, 1] : β f(z/β) + (1 − β) f((1 − z)/(1 − β)) ≤ ρ}.

    Raises
    ------
    InputError
        If β leaves (0, 1), ρ is negative or not finite, or there is no such divergence.

    Notes
    -----
    In closed form max(β − √(ρβ(1 − β)), 0) for χ² and max(β − ρ, 0) for the total variation; by
    bisection for Kullback and Leibler's. Source: Cauchois, Gupta, Ali and Duchi, "Robust
    validation: confident predictions even when distributions shift" (2020), section 2.

    Examples
    --------
    >>> round(worst_coverage(0.95, 0.05, "tv"), 4), round(worst_coverage(0.95, 0.05), 4)
    (0.9, 0.8678)
    """
    mass, reach = check_fraction(coverage, "coverage"), _radius(radius)
    check_known(divergence, _LEAST, "divergence")
    return _LEAST[divergence](mass, reach)


def robust_coverage(coverage: float, radius: float, divergence: Divergence = "kl") -> float:
    """The level at which to calibrate, so that no population within a divergence covers less.

    Parameters
    ----------
    coverage : float
        1 − α: what every such population shall have, in (0, 1).
    radius, divergence
        As in `worst_coverage`.

    Returns
    -------
    float
        g⁻¹(1 − α) = sup {β ∈ [0, 1] : g(β) ≤ 1 − α}, from 1 − α to 1; at 1 no finite threshold
        will do.

    Raises
    ------
    InputError
        As `worst_coverage`.

    Examples
    --------
    >>> round(robust_coverage(0.9, 0.05, "tv"), 4), round(robust_coverage(0.9, 0.05), 4)
    (0.95, 0.9687)
    """
    wanted, reach = check_fraction(coverage, "coverage"), _radius(radius)
    check_known(divergence, _LEAST, "divergence")
    if divergence == "tv":
        return min(wanted + reach, 1.0)
    if divergence == "chi2":
        half = wanted + reach / 2.0
        return float((half + math.sqrt(half**2 - (1.0 + reach) * wanted**2)) / (1.0 + reach))
    return _bisected(lambda mass: _kl_least(mass, reach) <= wanted, wanted, 1.0)


def divergence_of(ratios: npt.ArrayLike, divergence: Divergence = "kl") -> float:
    """The divergence of another population, estimated by its density ratios at rows at hand.

    Parameters
    ----------
    ratios : array-like of shape (n,)
        w(x) of rows at hand: density of the other population over that of theirs, up to a factor.
    divergence : {"kl", "chi2", "tv"}
        As in `worst_coverage`.

    Returns
    -------
    float
        Mean of f(w/mean w). It is that of x alone: if y given x is the same in both, that of
        (x, y) too, and at least that of any score of them.

    Raises
    ------
    InputError
        If a ratio is negative, missing or infinite, or all are 0.

    Examples
    --------
    >>> divergence_of([0.0, 2.0], "tv"), divergence_of([0.0, 2.0], "chi2")
    (0.5, 1.0)
    """
    check_known(divergence, _SIZES, "divergence")
    weights = as_vector(ratios, "ratios")
    if (weights < 0).any() or not weights.sum() > 0:
        raise InputError("ratios must be at least 0, and not all 0")
    return float(np.mean(_SIZES[divergence](weights / weights.mean())))


@final
@frozen
class DivergenceBall(Adaptation, Checked):
    """One threshold for all x, which covers in every population within a divergence.

    Parameters
    ----------
    radius : float, optional
        ρ of `worst_coverage`. If omitted, the divergence of the other population's inputs, as
        their density ratio at the calibration rows tells; see `divergence_of`.
    divergence : {"kl", "chi2", "tv"}
        As in `worst_coverage`.
    classifier : scikit-learn classifier, optional
        That of `density_ratio`, where the radius is estimated.

    Notes
    -----
    The conformal threshold at the coverage `robust_coverage`: in any population whose scores are
    within ρ, coverage is 1 − α at least on average over calibration rows, as g is convex. An
    estimated radius promises nothing, and knows nothing of a change of y given x. Source: as
    `worst_coverage`.

    Examples
    --------
    >>> DivergenceBall(0.05).label
    'robust'
    """

    radius: float | None = None
    divergence: Divergence = "kl"
    classifier: Any = None

    def __post_init__(self) -> None:
        Checked.__post_init__(self)
        if self.radius is not None:
            _radius(self.radius)

    @property
    def label(self) -> str:
        """What reports add to a method's name."""
        return "robust"

    @property
    def for_elsewhere(self) -> bool:
        """They are for another population."""
        return True

    def learn(self, calibration: Calibration) -> OneForAll:
        """One threshold a coverage, at its higher level.

        Raises
        ------
        InputError
            If the radius is to be estimated, and inputs of the other population are not at hand.
        """
        radius = self.radius
        if radius is None:
            ratio: Ratio = learnt_ratio(calibration, self.classifier)
            radius = divergence_of(ratio(calibration.x), self.divergence)
        return OneForAll(
            tuple(
                _threshold(calibration, column, robust_coverage(coverage, radius, self.divergence))
                for column, coverage in enumerate(calibration.coverages)
            )
        )


def _threshold(calibration: Calibration, column: int, level: float) -> Threshold:
    scores, choice = calibration.scores[:, column], calibration.choice
    if level < 1.0 - _SURE:
        return choice.threshold(scores, level)
    check_few(choice.too_few, "so far a population may put all its rows where none is covered")
    return Threshold(math.inf, len(scores) + 1, len(scores))


def _radius(radius: float) -> float:
    if not 0.0 <= radius < math.inf:
        raise InputError(f"radius must be finite and at least 0, got {radius!r}")
    return float(radius)


def _kl_least(mass: float, radius: float) -> float:
    """The least z whose binary divergence from β is at most ρ."""

    def within(kept: float) -> bool:
        return bool(
            special.rel_entr(kept, mass) + special.rel_entr(1.0 - kept, 1.0 - mass) <= radius
        )

    return 0.0 if within(0.0) else mass - _bisected(lambda lost: within(mass - lost), 0.0, mass)


def _bisected(holds: Callable[[float], bool], low: float, high: float) -> float:
    """The largest number up to which a rule holds, which does at `low`."""
    if holds(high):
        return high
    for _ in range(_STEPS):
        middle = (low + high) / 2.0
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low


_LEAST: Final[Mapping[str, Callable[[float, float], float]]] = MappingProxyType(
    {
        "kl": _kl_least,
        "chi2": lambda mass, reach: max(mass - math.sqrt(reach * mass * (1.0 - mass)), 0.0),
        "tv": lambda mass, reach: max(mass - reach, 0.0),
    }
)
_SIZES: Final[Mapping[str, Callable[[FloatArray], FloatArray]]] = MappingProxyType(
    {
        "kl": lambda ratio: np.asarray(special.xlogy(ratio, ratio), dtype=np.float64),
        "chi2": lambda ratio: np.square(ratio - 1.0),
        "tv": lambda ratio: np.abs(ratio - 1.0) / 2.0,
    }
)
