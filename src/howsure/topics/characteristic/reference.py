"""What a gain is read beside: that of a perfectly specified model, and those of other models."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from howsure.core.arrays import FloatArray, as_vector
from howsure.core.classes import frozen
from howsure.core.convert import check_whole
from howsure.core.errors import InputError, UnanswerableError
from howsure.core.rng import child, row_keys
from howsure.engine.metric import MISS_RANGE
from howsure.stats.bootstrap import subsample
from howsure.topics.characteristic.bands import Bands
from howsure.topics.characteristic.curve import CharacteristicCurve, curve_of
from howsure.topics.characteristic.resampling import gain_differences, permutation_tests
from howsure.topics.characteristic.trace import (
    AreaRequest,
    axes_needed,
    resampling_request,
)

if TYPE_CHECKING:
    from howsure.engine.measure import Evaluation

Draws = Callable[[np.random.Generator], npt.ArrayLike] | npt.ArrayLike
# A 90 % range, as of the intervals that a gain is about.
TAIL_OF_RANGE = 0.05
# Copies are permuted one by one: 100,000 take 1 ms a permutation and 800 kB.
MAX_COPIES = 100_000


@frozen(kw_only=True, eq=False)
class PerfectGain:
    """Gains that a perfectly specified model of the same widths shows at this n.

    Attributes
    ----------
    value : float
        Their mean, in percent; NaN where `reason` says why.
    lower, upper : float
        Their 90 % range: the 5 % and 95 % quantiles.
    gains : ndarray of float, shape (replicates,)
        One per replicate.
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

    Examples
    --------
    >>> from howsure.topics.characteristic.bands import bands_from_sd
    >>> from howsure.topics.characteristic.curve import characteristic_curve
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
        elif bands.copies is not None and bands.copies.sum() > MAX_COPIES:
            reason = f"more than {MAX_COPIES:,} copies of rows, too many to permute"
        else:
            bands, signed = _one_entry_a_row(bands, signed)
        errors = _permuted_errors(bands, signed, replicates, rng)
    shown = curve.x_axis, curve.y_axis
    axes = axes_needed(*shown)
    gains, value, lower, upper = np.full(1, math.nan), math.nan, math.nan, math.nan
    if not reason:
        drawn = (curve_of(replace(bands, error=error), *shown, axes) for error in errors)
        gains = np.array([model.gain_by(request).value for model in drawn])
        if np.isfinite(gains).all():
            value = float(gains.mean())
            lower, upper = map(float, np.quantile(gains, [TAIL_OF_RANGE, 1.0 - TAIL_OF_RANGE]))
        else:
            reason = "some replicates have no gain, as an area is infinite or 0"
    return PerfectGain(
        value=value,
        lower=lower,
        upper=upper,
        gains=gains,
        method=method,
        request=request,
        reason=reason,
    )


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


def _one_entry_a_row(bands: Bands, signed: FloatArray) -> tuple[Bands, FloatArray]:
    """Frequency weights written out, so that copies of a row get scales of their own."""
    if bands.copies is None:
        return bands, signed
    row = np.repeat(np.arange(len(bands.copies)), bands.copies.astype(np.int64))
    entry = row[:, None] * bands.outputs
    entry = (entry + np.arange(bands.outputs)).ravel()
    written = replace(bands.entries(entry), weights=None)
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


# ---- whether models differ in their gain over a constant band ------------------------------------

# The most rows of which curves are compared: each permutation sorts them. Not tuned; larger is
# slower and proves smaller differences.
_MAX_ROWS_COMPARED = 20_000


def compared(
    evaluations: Sequence[Evaluation],
    pairs: Sequence[tuple[int, int]],
    confidence: float,
    seed: int,
) -> Iterator[tuple[tuple[int, int], dict[str, Any]]]:
    """Gain over a constant band: paired bootstrap of the difference, permutation of the areas."""
    curves: dict[int, CharacteristicCurve] = {}
    for model, evaluation in enumerate(evaluations):
        with contextlib.suppress(UnanswerableError):
            if not len(evaluation.view.get("recentred_rows")):
                curves[model] = evaluation.view.get("characteristic")
    answerable = [(a, b) for a, b in pairs if a in curves and b in curves]
    if not answerable:
        return
    evalset, note = evaluations[0].evalset, ""
    cluster = None if evalset.cluster is None else evalset.cluster.codes
    if evalset.n > _MAX_ROWS_COMPARED:
        keys = row_keys(evalset.y, *(curve.bands.error for curve in curves.values()))
        rows = subsample(keys, _MAX_ROWS_COMPARED, seed=seed, name="compare curves")
        curves = {model: curve.take(rows) for model, curve in curves.items()}
        cluster = None if cluster is None else np.unique(cluster[rows], return_inverse=True)[1]
        note = f"on {_MAX_ROWS_COMPARED:,} rows"
    places, every = list(curves), list(curves.values())
    columns = [(places.index(a), places.index(b)) for a, b in answerable]
    requests = {"characteristic_gain": AreaRequest()}
    miss_range = evaluations[0].view.miss_range
    if (
        miss_range != MISS_RANGE
    ):  # each partial area needs a curve for every swap: only where asked for
        requests |= {
            "characteristic_partial_gain": AreaRequest(y_range=miss_range),
            "characteristic_left_gain": AreaRequest(y_range=miss_range, reading="left"),
        }
    for metric, request in requests.items():
        # p = .05 is known to .005 and .01; a swap of a partial area sorts a curve: fewer are drawn.
        swaps = 2_000 if request.y_range is None else 500
        common: dict[str, Any] = {"cluster": cluster, "seed": seed}
        gains = gain_differences(
            every, columns, request, confidence=confidence, replicates=500, **common
        )
        tests = permutation_tests(every, columns, request, permutations=swaps, **common)
        values = {model: curve.gain_by(request).value for model, curve in curves.items()}
        for pair, drawn, tested in zip(answerable, gains, tests, strict=True):
            yield (
                pair,
                {
                    "metric": metric,
                    "coverage": math.nan,
                    "value_a": values[pair[0]],
                    "value_b": values[pair[1]],
                    "difference": drawn.value,
                    "lower": drawn.lower,
                    "upper": drawn.upper,
                    "p_value": tested.p_value,
                    "note": "; ".join(p for p in (note, drawn.reason, tested.reason) if p),
                },
            )
