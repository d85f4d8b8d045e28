"""What a trial measures: areas, gains over a constant band, operating points, the crossing.

The formulas are those of `howsure.topics.characteristic`; here they are asked for together, with
bootstrap errors and with what a well-specified model of the same widths would show.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Annotated, Final

import numpy as np
import numpy.typing as npt

from howsure.core.arrays import FloatArray, IntArray, check_fraction
from howsure.core.classes import frozen
from howsure.core.convert import Bound, Checked, Fraction, filled
from howsure.core.records import Direction, Notion, Record
from howsure.core.rng import child
from howsure.engine.metric import MISS_RANGE, MissRange, check_miss_range
from howsure.topics.characteristic.bands import XAxis, YAxis
from howsure.topics.characteristic.curve import CharacteristicCurve
from howsure.topics.characteristic.reference import Draws, gain_of_perfect_model
from howsure.topics.characteristic.resampling import (
    BootstrapCurve,
    Bootstrapped,
    bootstrap_curve,
    units_of,
)
from howsure.topics.characteristic.trace import AreaRequest

AXES: Final[tuple[tuple[XAxis, YAxis], ...]] = (
    ("bandwidth", "miss_rate"),
    ("excess", "miss_rate"),
    ("bandwidth", "deficit"),
    ("excess", "deficit"),
)
"""The pairs of axes of the paper; the first is the one that figures show."""


def _shares(values: tuple[float, ...], name: str) -> tuple[float, ...]:
    return tuple(sorted({check_fraction(value, name) for value in filled(values, name)}))


@frozen(kw_only=True)
class Measuring(Checked):
    """What is measured of a model's bands.

    Attributes
    ----------
    miss_range : (float, float)
        The low miss rates, of partial areas and gains.
    miss_rates : tuple of float
        Operating points.
    replicates : int
        Of the bootstrap, and of the well-specified model.
    confidence : float
        Of bootstrap intervals.
    """

    miss_range: Annotated[MissRange, check_miss_range] = MISS_RANGE
    miss_rates: Annotated[tuple[float, ...], _shares] = (0.1, 0.5)
    replicates: Annotated[int, Bound(2)] = 200
    confidence: Fraction = 0.95


def measure(
    curve: CharacteristicCurve,
    options: Measuring | None = None,
    *,
    draws: Draws | None = None,
    cluster: npt.ArrayLike | None = None,
    seed: int = 0,
) -> tuple[Record, ...]:
    """Everything that the study says of a model's bands.

    Parameters
    ----------
    curve : CharacteristicCurve
        Of bandwidth and miss rate.
    options : Measuring, optional
        What is measured.
    draws : callable or array, optional
        Draws of y from the model, as `gain_of_perfect_model` takes them; without them, its
        critical scales are permuted.
    cluster : array-like of shape (n,), optional
        Rows that depend on each other are resampled together.
    seed : int
        Of bootstrap and draws.

    Returns
    -------
    tuple of Record
        ``auucc`` and ``characteristic_gain`` on all pairs of axes (the others have the axes in
        their names), ``characteristic_partial_gain`` (area under the curve where the miss rate is
        low) and ``characteristic_left_gain`` (area to its left), ``crossing``, and at each
        operating point, as the coverage 1 − miss rate, ``bandwidth`` and ``constant_bandwidth``.

    Examples
    --------
    >>> from howsure.topics.characteristic.curve import characteristic_curve
    >>> error, band = np.array([1, -2, 0.5, 3]), np.array([1, 1, 1, 2])
    >>> curve = characteristic_curve(error, np.zeros(4), -band, band)
    >>> found = measure(curve, Measuring(replicates=50))
    >>> found[0].metric, found[0].value
    ('auucc', 1.5625)
    """
    measuring = options or Measuring()

    def resampled(of: CharacteristicCurve, request: AreaRequest | None = None) -> BootstrapCurve:
        return bootstrap_curve(
            of,
            request,
            replicates=measuring.replicates,
            confidence=measuring.confidence,
            cluster=cluster,
            seed=seed,
        )

    low = measuring.miss_range
    first = resampled(curve)
    records = [_record("auucc", first.area, curve.n, "y", Direction.LOWER)]
    for name, request in (
        ("characteristic_gain", AreaRequest()),
        ("characteristic_partial_gain", AreaRequest(y_range=low)),
        ("characteristic_left_gain", AreaRequest(y_range=low, reading="left")),
    ):
        gain = first.gain if request == AreaRequest() else resampled(curve, request).gain
        null = gain_of_perfect_model(
            curve, request, draws=draws, replicates=measuring.replicates, seed=seed
        )
        made = _record(name, gain, curve.n)
        records.append(replace(made, null=null.value, null_lower=null.lower, null_upper=null.upper))
    for x, y_axis in AXES[1:]:
        rotated, ending = curve.on(x=x, y_axis=y_axis), f"_{x}_{y_axis}"
        bootstrap, units = resampled(rotated), rotated.area().units
        records.append(_record(f"auucc{ending}", bootstrap.area, curve.n, units, Direction.LOWER))
        records.append(_record(f"characteristic_gain{ending}", bootstrap.gain, curve.n))
    crossing = bootstrap_crossing(curve, measuring, cluster=cluster, seed=seed)
    records.append(_record("crossing", crossing, curve.n, "1", Direction.HIGHER))
    constant = curve.constant()
    for miss_rate in measuring.miss_rates:
        for name, each in (("bandwidth", curve), ("constant_bandwidth", constant)):
            point = each.at(miss_rate=miss_rate)
            records.append(
                Record(
                    metric=name,
                    value=point.bandwidth,
                    coverage=1.0 - miss_rate,
                    n=float(curve.n),
                    direction=Direction.LOWER,
                    units="y",
                    reason=point.reason,
                )
            )
    return tuple(records)


def _record(
    name: str,
    estimate: Bootstrapped,
    n: int,
    units: str = "%",
    direction: Direction = Direction.HIGHER,
) -> Record:
    same = ("value", "standard_error", "lower", "upper", "confidence", "reason")
    return Record(
        metric=name,
        n=float(n),
        direction=direction,
        units=units,
        notion=Notion.LOCAL,
        **{field: getattr(estimate, field) for field in same},
    )


def crossing_of(curve: CharacteristicCurve, rows: IntArray | None = None) -> float:
    """The miss rate below which the model needs less bandwidth than a constant band.

    Two empirical curves may cross many times in their tails. The bandwidth saved, summed over miss
    rates from 0 upwards, has one maximum: up to there the model is worth choosing. Where the curves
    cross once, it is the crossing.

    Parameters
    ----------
    curve : CharacteristicCurve
        Of bandwidth and miss rate, without weights.
    rows : ndarray of int, optional
        Rows to take in place of all, with repeats.

    Returns
    -------
    float
        0 where the model saves nothing from there on up, 1 where it saves throughout.

    Examples
    --------
    >>> from howsure.topics.characteristic.curve import characteristic_curve
    >>> band = np.array([1.0, 2.0, 3.0, 4.0])
    >>> crossing_of(characteristic_curve(band, 0 * band, -band, band))
    0.5
    """
    bands = curve.bands
    chosen = slice(None) if rows is None else rows
    half_width = float((0.5 * (bands.below + bands.above)[chosen]).mean())
    scale = np.sort(bands.critical()[chosen])
    bandwidth = np.full(len(scale), np.inf)  # of rows that no scale captures, whatever the mean
    np.multiply(half_width, scale, out=bandwidth, where=np.isfinite(scale))
    flat = bands.constant()
    constant = flat.mean_band() * np.sort(flat.critical()[chosen])
    saved = np.cumsum((constant - bandwidth)[::-1])
    best = int(np.argmax(saved))
    return 0.0 if saved[best] <= 0 else (best + 1) / len(saved)


def bootstrap_crossing(
    curve: CharacteristicCurve,
    measuring: Measuring,
    *,
    cluster: npt.ArrayLike | None = None,
    seed: int = 0,
) -> Bootstrapped:
    """`crossing_of` with its bootstrap error, over rows or clusters of rows."""
    units, rng = units_of(curve.bands, cluster), child(seed, "characteristic", "crossing")
    rows = np.arange(curve.n)
    resamples = (units.resample(rng).astype(np.int64) for _ in range(measuring.replicates))
    drawn = np.array([crossing_of(curve, np.repeat(rows, times)) for times in resamples])
    tail = 0.5 * (1.0 - measuring.confidence)
    lower, upper = np.quantile(drawn, [tail, 1.0 - tail])
    return Bootstrapped(
        value=crossing_of(curve),
        standard_error=float(drawn.std(ddof=1)),
        lower=float(lower),
        upper=float(upper),
        confidence=measuring.confidence,
        replicates=measuring.replicates,
        units=units.count,
    )


def joint_draws(
    fitted: object, x: FloatArray, outcome: object, *, replicates: int, seed: int
) -> Draws | None:
    """Draws of y from a model: of all rows together where it can, else row by row, else none.

    Only a distribution is drawn from; intervals and quantiles say too little of the tails.
    """
    from howsure.predictions import Distribution, Samples

    joint: Callable[..., FloatArray] | None = getattr(fitted, "joint", None)
    if joint is not None:
        return joint(x, child(seed, "characteristic", "draws"), replicates)
    if isinstance(outcome, Distribution | Samples):
        return lambda rng: outcome.sample(rng, 1)[:, 0]
    return None
