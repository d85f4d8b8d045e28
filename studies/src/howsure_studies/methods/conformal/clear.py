"""CLEAR: two factors, one for the noise of y and one for the uncertainty of the forecast."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Final, final

import numpy as np

from howsure.conformal.ranks import conformal_rank, order_statistics
from howsure.conformal.scores import Band, Scaled, Score
from howsure.core.arrays import FloatArray
from howsure.core.classes import frozen
from howsure.core.convert import Bound
from howsure.core.errors import InputError
from howsure.inputs.distributions import quantile_parameter
from howsure.predictions.base import tail_levels
from howsure_studies.methods.conformal.inductive import Bands, InductiveConformal, model_name
from howsure_studies.methods.interface import point_of, trained
from howsure_studies.methods.quantile_regression import boosted_quantiles

RATIOS: Final = np.concatenate([np.linspace(0.0, 0.09, 10), np.logspace(-1.0, 2.0, 4001)])
"""The ratios λ that are tried; those of the authors' package."""
_LEAST: Final = 1e-8
"""The least reach of a band, in the units of y over the mean reach: no y lies 0/0 away."""


@final
@frozen
class Clear(InductiveConformal):
    """CLEAR: intervals whose noise part and forecast part each have a factor of their own.

    Parameters
    ----------
    regressor : scikit-learn regressor
        What forecasts; a copy is trained on each of several bootstrap samples.
    quantiles : scikit-learn regressor, optional
        A regressor of one quantile, trained on what the forecast leaves of y; boosting of
        histograms if omitted.
    members : int
        Bootstrap samples, at least 2.
    calibration, coverages, rank, delta, adapt, clip, too_few
        As in `InductiveConformal`.

    Raises
    ------
    InputError
        If an option breaks its rule, or a regressor of quantiles has no level among its
        parameters.

    Notes
    -----
    f is the median of the members' forecasts, and e⁻ and e⁺ reach from it to their quantiles at
    α/2 and 1 − α/2: what is not known of the forecast. a⁻ and a⁺ reach from the regressed
    median of y − f to its quantiles at these levels, regressed on x and f(x): the noise. The
    interval is [f − γ(a⁻ + λe⁻), f + γ(a⁺ + λe⁺)]. For each of 4,011 λ from 0 to 100, γ is the
    conformal threshold of the critical scale; the λ is taken whose interval has the least
    mean pinball loss at the levels of its ends on the calibration rows. γ₁ = γ and γ₂ = γλ. As λ
    and γ come of the same rows, coverage is nearly but not surely 1 − α. Source: Azizi,
    Bodik, Heiss and Yu 2025, "CLEAR: Calibrated learning for epistemic and aleatoric risk"
    (arXiv 2507.08150), whose members are of several kinds and whose quantiles are bagged too.

    Examples
    --------
    >>> from sklearn.tree import DecisionTreeRegressor
    >>> rng = np.random.default_rng(0)
    >>> x = rng.uniform(size=(300, 1))
    >>> method = Clear(DecisionTreeRegressor(max_depth=3), members=5, coverages=(0.9,))
    >>> fitted = method.fit(x, x[:, 0] + rng.normal(size=300), rng)
    >>> lower, upper = fitted.predict([[0.5]]).outcome.interval(0.9)
    >>> bool(2.0 < upper[0] - lower[0] < 6.0)
    True
    """

    regressor: Any
    quantiles: Any = None
    members: Annotated[int, Bound(2)] = 20

    def __post_init__(self) -> None:
        InductiveConformal.__post_init__(self)
        if self.quantiles is not None and quantile_parameter(self.quantiles) is None:
            raise InputError(
                "quantiles must have the level of a quantile among its parameters, got "
                f"{model_name(self.quantiles)}"
            )

    def _base_name(self) -> str:
        return f"CLEAR ({model_name(self.regressor)})"

    def _trains(self) -> bool:
        return True

    def _prepared(
        self, x: FloatArray, y: FloatArray, rng: np.random.Generator
    ) -> tuple[Score, Bands]:
        n = len(y)
        samples = (rng.integers(n, size=n) for _ in range(self.members))
        members = tuple(trained(self.regressor, x[rows], y[rows], rng) for rows in samples)
        center = np.median([point_of(member, x) for member in members], axis=0)
        regressor = boosted_quantiles().regressor if self.quantiles is None else self.quantiles
        parameter = str(quantile_parameter(regressor))
        widened = np.column_stack([x, center])
        levels = sorted({0.5, *(end for c in self.coverages for end in tail_levels(c))})
        noise = {
            level: trained(regressor, widened, y - center, rng, **{parameter: float(level)})
            for level in levels
        }
        return Scaled(), TwoParts(members, noise, self.coverages, (0.0,) * len(self.coverages))

    def _tuned(self, bands: Bands, x: FloatArray, y: FloatArray) -> Bands:
        assert isinstance(bands, TwoParts)
        parts = bands.parts(x)
        ratios = tuple(
            best_ratio(y, noise, forecast, coverage)
            for coverage, (noise, forecast) in zip(self.coverages, parts, strict=True)
        )
        return TwoParts(bands.members, bands.noise, self.coverages, ratios)


@final
@frozen(eq=False)
class TwoParts:
    """Bands of noise and of the forecast around its median, put together by a ratio a coverage."""

    members: tuple[Any, ...]
    noise: dict[float, Any]
    coverages: tuple[float, ...]
    ratios: tuple[float, ...]  # λ a coverage

    def __call__(self, x: FloatArray) -> Sequence[Band]:
        return [
            joined(noise, forecast, ratio)
            for ratio, (noise, forecast) in zip(self.ratios, self.parts(x), strict=True)
        ]

    def parts(self, x: FloatArray) -> list[tuple[Band, Band]]:
        """Bands of the noise and of the forecast, a pair a coverage, around one centre."""
        forecasts = np.stack([point_of(member, x) for member in self.members])
        center = np.median(forecasts, axis=0)
        widened = np.column_stack([x, center])
        left = {level: point_of(model, widened) for level, model in self.noise.items()}
        pairs = []
        for coverage in self.coverages:
            low, high = tail_levels(coverage)
            below, above = np.quantile(forecasts, (low, high), axis=0)
            noise = _band(center, left[0.5] - left[low], left[high] - left[0.5])
            pairs.append((noise, _band(center, center - below, above - center)))
        return pairs


def _band(center: FloatArray, below: FloatArray, above: FloatArray) -> Band:
    """A band that reaches so far, and never inward."""
    return Band(center - np.maximum(below, 0.0), center + np.maximum(above, 0.0), center)


def joined(noise: Band, forecast: Band, ratio: float) -> Band:
    """The sum of two bands around one centre, the second times a ratio.

    Examples
    --------
    >>> at = np.array([0.0])
    >>> band = joined(Band(at - 1, at + 2, at), Band(at - 3, at + 1, at), 0.5)
    >>> band.lower, band.upper
    (array([-2.5]), array([2.5]))
    """
    center = noise.center
    below = (center - noise.lower) + ratio * (center - forecast.lower)
    above = (noise.upper - center) + ratio * (forecast.upper - center)
    least = _LEAST * float(np.mean(below + above))
    return Band(center - np.maximum(below, least), center + np.maximum(above, least), center)


def best_ratio(y: FloatArray, noise: Band, forecast: Band, coverage: float) -> float:
    """λ of the least mean pinball loss of the interval's ends, each calibrated on these rows.

    Examples
    --------
    >>> y = np.array([-1.0, 1.0, -4.0, 4.0])
    >>> flat, right = np.ones(4), np.abs(y)
    >>> best_ratio(y, Band(-flat, flat, 0 * y), Band(-right, right, 0 * y), 0.5)
    100.0
    """
    rank = min(conformal_rank(len(y), coverage), len(y))
    low, high = tail_levels(coverage)
    losses = []
    for ratio in RATIOS:
        band = joined(noise, forecast, float(ratio))
        scale = float(order_statistics(Scaled().score(y, band), np.array([rank]))[0])
        lower, upper = Scaled().region(band, scale)
        losses.append(_pinball(y - lower, low) + _pinball(y - upper, high))
    return float(RATIOS[int(np.argmin(losses))])


def _pinball(above: FloatArray, level: float) -> float:
    """Mean pinball loss of rows that lie so far above a quantile."""
    return float(np.mean(np.where(above > 0.0, level, level - 1.0) * above))
