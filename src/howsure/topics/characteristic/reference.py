"""The gain that a perfectly specified model of the same widths would show."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from howsure.core.arrays import FloatArray, as_vector
from howsure.core.convert import check_whole
from howsure.core.errors import InputError
from howsure.core.rng import child
from howsure.topics.characteristic.area import AreaRequest, area_of, path_of
from howsure.topics.characteristic.bands import Bands, XAxis, YAxis
from howsure.topics.characteristic.curve import CharacteristicCurve
from howsure.topics.characteristic.trace import axes_needed, find_kinks, trace

Draws = Callable[[np.random.Generator], npt.ArrayLike] | npt.ArrayLike
TAIL = 0.05
MOST_COPIES = 100_000


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PerfectGain:
    """Gains that a perfectly specified model of the same widths shows at this n.

    Attributes
    ----------
    value : float
        Their mean, in percent; NaN where `reason` says why.
    lower, upper : float
        Their 90 % range: the 5 % and 95 % quantiles.
    gains : ndarray of float, shape (replicates,)
        One a replicate.
    method : {"draws", "permuted scales"}
        y drawn from the model's own distribution, or its signed critical scales put on other
        rows.
    request : AreaRequest
        Convention, part and reading.
    reason : str
        Why there is no value.
    """

    value: float
    lower: float
    upper: float
    gains: FloatArray
    method: str
    request: AreaRequest
    reason: str = ""


def gain_of_perfect_model(
    curve: CharacteristicCurve,
    request: AreaRequest | None = None,
    *,
    draws: Draws | None = None,
    replicates: int = 200,
    seed: int = 0,
) -> PerfectGain:
    """Simulate the gain of a perfectly specified model with the same points and widths.

    A gain is not a proper score: a perfect model's expected overall gain is 0 %, and its gain at
    low miss rates is positive by an amount that depends on how the widths vary. The measured gain
    is to be read beside this one.

    Where the model gives a distribution, y is drawn from it. Bare intervals say nothing of the
    law within them, so each row is given the signed critical scale of another, drawn without
    replacement (with importance weights: with replacement, in proportion to weight): errors then
    follow the widths perfectly, with the law that the rows show. Copies of a row, by frequency
    weights, get scales of their own, so past 100,000 of them there is no answer.

    Parameters
    ----------
    curve : CharacteristicCurve
        Of the model.
    request : AreaRequest, optional
        Which area; by default the whole, exactly.
    draws : callable or array-like, optional
        Takes a generator and returns draws of y, in the shape of y; or draws of y with the
        replicates along the last axis, shape (n, replicates).
    replicates : int
        How many, at least 1; the array's where one is given.
    seed : int
        Of the randomness.

    Returns
    -------
    PerfectGain

    Raises
    ------
    InputError
        If the convention is ``uq360``, or draws have another shape than y.

    Examples
    --------
    >>> from howsure.topics.characteristic import bands_from_sd, characteristic_curve
    >>> rng = np.random.default_rng(1)
    >>> sd = rng.uniform(0.5, 2.0, 1000)
    >>> curve = characteristic_curve(rng.normal(0.0, sd), *bands_from_sd(np.zeros(1000), sd))
    >>> perfect = gain_of_perfect_model(curve, draws=lambda rng: rng.normal(0.0, sd))
    >>> perfect.lower < curve.gain().value < perfect.upper
    True
    """
    request = resampling_request(request, curve.y_axis)
    check_whole(replicates, "replicates")
    rng = child(seed, "characteristic", "perfect model")
    bands = curve.bands
    signed = np.sign(bands.error) * replace(bands, move="scale").critical()
    if draws is not None:
        errors, method, reason = _drawn_errors(bands, draws, replicates, rng), "draws", ""
    else:
        method, reason = "permuted scales", ""
        if not np.isfinite(signed).all():
            reason = "rows that no scale captures have no critical scale to permute"
        elif _copies(bands) > MOST_COPIES:
            reason = f"more than {MOST_COPIES:,} copies of rows, too many to permute"
        else:
            bands, signed = _one_entry_a_row(bands, signed)
        errors = _permuted_errors(bands, signed, replicates, rng)
    if reason:
        gains = np.full(1, math.nan)
    else:
        gains = np.array(
            [
                _gain(replace(bands, error=error), curve.x_axis, curve.y_axis, request)
                for error in errors
            ]
        )
        if not np.isfinite(gains).all():
            reason = "some replicates have no gain, as an area is infinite or 0"
    if reason:
        lower = value = upper = math.nan
    else:
        value = float(gains.mean())
        lower, upper = map(float, np.quantile(gains, [TAIL, 1.0 - TAIL]))
    return PerfectGain(
        value=value,
        lower=lower,
        upper=upper,
        gains=gains,
        method=method,
        request=request,
        reason=reason,
    )


def resampling_request(request: AreaRequest | None, y_axis: YAxis) -> AreaRequest:
    """Check a request whose area is computed many times."""
    request = (request or AreaRequest()).checked(y_axis)
    if request.convention == "uq360":
        raise InputError("convention must be 'exact' or 'paper' here, got 'uq360'")
    return request


def _gain(bands: Bands, x_axis: XAxis, y_axis: YAxis, request: AreaRequest) -> float:
    axes = axes_needed(x_axis, y_axis)
    areas = []
    for one in (bands, bands.constant(lopsided=request.convention == "exact")):
        path = path_of(trace(find_kinks(one, axes), one, axes), x_axis, y_axis, request.convention)
        area, complete = area_of(path, request)
        areas.append(area if complete else math.nan)
    model, constant = areas
    return 100.0 * (constant - model) / constant if constant > 0 else math.nan


def _drawn_errors(
    bands: Bands, draws: Draws, replicates: int, rng: np.random.Generator
) -> Iterator[FloatArray]:
    if callable(draws):
        for _ in range(replicates):
            yield _error(bands, np.asarray(draws(rng), dtype=np.float64).ravel())
        return
    table = np.asarray(draws, dtype=np.float64)
    if table.ndim < 2:
        raise InputError(f"draws must have replicates along a last axis, got shape {table.shape}")
    table = table.reshape(-1, table.shape[-1])
    for index in range(table.shape[1]):
        yield _error(bands, table[:, index])


def _error(bands: Bands, drawn: FloatArray) -> FloatArray:
    """Errors of drawn y; what rounding alone sets apart from the point is 0, as bands may be 0."""
    point = bands.y - bands.error
    error = as_vector(drawn, "draws", length=len(bands)) - point
    error[np.abs(error) <= 4.0 * np.finfo(np.float64).eps * np.abs(point)] = 0.0
    return error


def _copies(bands: Bands) -> float:
    """How many rows frequency weights stand for; 0 without any."""
    if bands.weights is None or bands.weights_kind == "importance":
        return 0.0
    return float(bands.weights[:: bands.outputs].sum())


def _one_entry_a_row(bands: Bands, signed: FloatArray) -> tuple[Bands, FloatArray]:
    """Frequency weights written out, so that copies of a row get scales of their own."""
    if bands.weights is None or bands.weights_kind == "importance":
        return bands, signed
    copies = bands.weights[:: bands.outputs].astype(np.int64)
    entry = np.repeat(np.arange(len(copies)), copies)[:, None] * bands.outputs
    entry = (entry + np.arange(bands.outputs)).ravel()
    written = replace(
        bands,
        y=bands.y[entry],
        error=bands.error[entry],
        below=bands.below[entry],
        above=bands.above[entry],
        weights=None,
    )
    return written, signed[entry]


def _permuted_errors(
    bands: Bands, signed: FloatArray, replicates: int, rng: np.random.Generator
) -> Iterator[FloatArray]:
    """Errors made of other rows' signed scales; the outputs of a row move together."""
    table = signed.reshape(-1, bands.outputs)
    chance = None
    if bands.weights is not None:
        chance = bands.weights[:: bands.outputs] / bands.weights[:: bands.outputs].sum()
    for _ in range(replicates):
        if chance is None:
            row = rng.permutation(len(table))
        else:
            row = rng.choice(len(table), size=len(table), p=chance)
        scale = table[row].ravel()
        yield scale * np.where(scale >= 0, bands.above, bands.below)
