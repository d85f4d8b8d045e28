"""Bare arrays as predictions, by their shapes and by what is said of coverages and levels."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal, Self

import numpy as np

from howsure.core.arrays import (
    FloatArray,
    as_matrix,
    as_numbers,
    as_vector,
    dimensions,
    is_tensor,
    plain_array,
    to_host,
)
from howsure.core.classes import frozen
from howsure.core.errors import InputError, within
from howsure.predictions import (
    Distribution,
    Intervals,
    Prediction,
    Probabilities,
    Quantiles,
    Samples,
)

_NORMAL = "howsure.Distribution.normal(mean, sd)"
# Share of rows below which a first array that exceeds the second may be crossed ends: a mean
# exceeds its sd far more often, or never. By hand; not tuned.
_MAX_SHARE_CROSSED = 0.05
# Share of rows above which y between two arrays says that they may be ends: an sd is there by
# chance in fewer. By hand; not tuned.
_MIN_SHARE_BETWEEN = 0.75
# Root mean squares of (y − first)/second between which the second is likely to be an sd: of a good
# one 1, and a factor of two either way. By hand.
_LIKELY_RANGE = (0.5, 2.0)
# Those between which it may be one that is wrong: sds are understated more often than over. By
# hand.
_POSSIBLE_RANGE = (1 / 3, 10.0)
# How far from a half the share of y below the first may be, for this to be a mean: y of an
# exponential law is below its mean in .63. By hand.
_MAX_DISTANCE_FROM_HALF = 0.15
# Rows from which on such a root mean square says something: of eight it is off by 25 %, far less
# than the ranges above.
_MIN_ROWS = 8
# Columns from which on bare ones are samples; fewer may be a mean and its variances as well. By
# hand.
_MIN_SAMPLES = 5
# Share in one order of pairs of columns, half of all apart, from which on they are quantiles. Of
# quantiles that cross now and then it is above, of paths of a random walk at most about this.
_MIN_SHARE_IN_ORDER = 0.98
# How far rows of probabilities in single precision may be from summing to 1.
_MAX_ERROR_OF_SUM = 1e-3


@frozen(kw_only=True)
class PredictionInput:
    """What one model predicts."""

    predictions: tuple[Prediction, ...] = ()  # its predictions with uncertainty
    point: FloatArray | None = None  # shape (n,): its point forecast
    uncertainty: FloatArray | None = None  # shape (n,): how unsure it is of each row
    notes: tuple[str, ...] = ()  # what the reader of a result should know of how it was read

    @classmethod
    def of(cls, prediction: Prediction, *notes: str) -> Self:
        """One prediction with uncertainty."""
        return cls(predictions=(prediction,), notes=notes)


@frozen
class Arrays:
    """How bare arrays beside n rows of y are read, by the coverages and levels that are stated."""

    n: int
    coverages: tuple[float, ...]
    levels: FloatArray | None
    y: FloatArray | None = None
    crossing: Literal["error", "sort"] = "error"
    name: str = "prediction"  # what a message calls the value

    def read_array(self, value: Any) -> PredictionInput:
        """An array, or a list or tuple of arrays."""
        if isinstance(value, list | tuple):
            if (pair := self._pair(value)) is not None:
                return self._two(*pair)
            if (
                len(value) == 2
                and dimensions(value[0], self.name) == 1
                and dimensions(value[1], self.name) == 0
            ):
                raise InputError(
                    f"{self.name}[1] must have {self.n} rows like y, got one number; for the "
                    f"same sd in all rows give howsure.Distribution.normal(mean, {value[1]})"
                )
            if isinstance(value, tuple) and self.levels is None and _holds_arrays(value):
                raise InputError(
                    f"{self.name} of {len(value)} arrays may be quantiles or samples: pass "
                    f"levels=[…] with {len(value)} levels, or give "
                    f"howsure.Samples(np.column_stack({self.name})){self._point_beside(len(value))}"
                )
        return self.parse_array(numbers(value, self.name))

    def _pair(self, value: Sequence[Any]) -> tuple[FloatArray, FloatArray] | None:
        """The two arrays of a pair; None of a sequence that is one array."""
        if len(value) != 2 or any(dimensions(array, self.name) == 0 for array in value):
            return None
        if isinstance(value, list) and not _holds_arrays(value) and self.n == 2:
            return None
        parts = [numbers(array, f"{self.name}[{position}]") for position, array in enumerate(value)]
        if isinstance(value, list) and len(parts[0]) != self.n:
            return None
        first, second = (array[:, 0] if array.shape[1:] == (1,) else array for array in parts)
        if first.shape == (self.n,) and second.shape[1:] == (self.n,) and len(second) != self.n:
            second = second.T  # (point, (lower, upper)), or one row per level
        for position, array in enumerate((first, second)):
            if len(array) != self.n:
                raise InputError(
                    f"{self.name}[{position}] must have {self.n} rows like y, got shape "
                    f"{array.shape}"
                )
        return first, second

    def _two(self, first: FloatArray, second: FloatArray) -> PredictionInput:
        """A pair of arrays of n rows each."""
        if first.ndim == 1 and second.ndim == 1:
            return self._ends_or_moments(first, second)
        if first.ndim == 1:
            second_part = replace(self, name=f"{self.name}[1]").parse_array(second)
            point = as_vector(first, f"{self.name}[0]")
            note = f"{self.name}[0] of shape {first.shape} read as the point forecast"
            return replace(second_part, point=point, notes=(note, *second_part.notes))
        if first.ndim == 2 and first.shape == second.shape:
            if len(self.coverages) != first.shape[1] or self.levels is not None:
                subject = f"{self.name} of two arrays of shape {first.shape}"
                raise self._coverages_needed(subject, first.shape[1])
            return self._intervals(first, second)
        raise InputError(
            f"{self.name} of two arrays must be (lower, upper), (mean, sd) or (point, intervals), "
            f"got shapes {first.shape} and {second.shape}"
        )

    def _ends_or_moments(self, first: FloatArray, second: FloatArray) -> PredictionInput:
        """Two arrays of shape (n,): ends of intervals, two quantiles, or means and sds."""
        if self.levels is not None:
            return self.parse_array(np.column_stack([first, second]))
        if self.coverages:
            return self._one_interval(first, second)
        for position, array in enumerate((first, second)):
            if np.isnan(array).any():
                as_vector(array, f"{self.name}[{position}]", finite=False)  # which says where
        crossed = float((first > second).mean())
        positive = bool((second > 0).all())
        both = f"pass coverage=0.9 for (lower, upper), or give {_NORMAL}"
        if crossed >= _MAX_SHARE_CROSSED and positive:
            self._check_no_ends(first, second)
            mean, sd = as_vector(first, f"{self.name}[0]"), as_vector(second, f"{self.name}[1]")
            note = (
                f"{self.name} of two arrays read as (mean, sd) of normal distributions, because "
                f"the first exceeds the second in {int((first > second).sum())} rows"
            )
            return PredictionInput.of(Distribution.normal(mean, sd), note)
        if not crossed and not positive:
            raise InputError(
                f"{self.name} of two arrays can only be (lower, upper), because the second is "
                "not always above 0: pass their coverage, such as coverage=0.9"
            )
        if not crossed:
            raise InputError(
                f"{self.name} of two arrays may be (lower, upper) or (mean, sd): {both}"
            )
        row = int(np.argmax(first > second))
        raise InputError(
            f"{self.name} of two arrays must be (lower, upper) or (mean, sd), but the first "
            f"exceeds the second in {int((first > second).sum())} rows (first at row {row}): "
            f"{both}"
        )

    def _check_no_ends(self, first: FloatArray, second: FloatArray) -> None:
        """Refuse what may be ends, swapped or crossed: y lies between mean and sd less often."""
        if self.y is None:
            return
        low, high = np.minimum(first, second), np.maximum(first, second)
        between = int(((low <= self.y) & (self.y <= high)).sum())
        if between > _MIN_SHARE_BETWEEN * self.n:
            raise InputError(
                f"{self.name} of two arrays may be (mean, sd) or (upper, lower), because y is "
                f"between them in {between} of {self.n} rows: give {_NORMAL}, or put the lower "
                "ends first and pass coverage=0.9"
            )

    def parse_array(self, array: FloatArray) -> PredictionInput:
        """One array, by its shape and what is said of it."""
        n, shape = self.n, array.shape
        if array.ndim == 3 and shape[:2] == (n, 2) and (self.levels is None or shape[2] > 1):
            if len(self.coverages) != shape[2] or self.levels is not None:
                raise self._coverages_needed(f"{self.name} of shape {shape}", shape[2])
            return self._intervals(array[:, 0, :], array[:, 1, :])
        if array.ndim == 3 and 1 in shape[1:]:
            array = array.squeeze(axis=1 if shape[1] == 1 else 2)
        if array.ndim == 3 and shape[2] == n and n not in shape[:2] and self.levels is None:
            return self._draws(array)
        if array.ndim == 2 and array.shape == (n, 1):
            array = array[:, 0]
        if (probabilities := self._probabilities(array)) is not None:
            return probabilities
        if array.ndim == 1 and len(array) == n:
            return self._column(array, shape)
        if array.ndim != 2 or n not in array.shape:
            raise self._misfit(shape)
        if self.levels is not None:
            return self._table_of_quantiles(array, self.levels, shape)
        upright = array if len(array) == n else array.T
        turned = "" if upright is array else ".T"
        if upright.shape[1] == 2:
            if n == 2 and self.coverages and _rises(array) and _rises(array.T):
                raise InputError(
                    f"{self.name} of shape (2, 2) may have the ends in rows or in columns: give "
                    "the tuple (lower, upper)"
                )
            if not self.coverages:
                raise InputError(
                    f"{self.name} of shape {shape} may be intervals, two quantiles or two "
                    "samples: pass coverage=0.9, levels=[0.05, 0.95], or give "
                    f"howsure.Samples({self.name}{turned}). For means and sds use {_NORMAL}"
                )
            if n == 2 and not _rises(upright) and _rises(upright.T):
                upright = upright.T
            return self._one_interval(upright[:, 0], upright[:, 1])
        if upright.shape[1] == 1:
            raise self._misfit(shape)
        if array.shape == (n, n):
            raise InputError(
                f"{self.name} of shape {shape} may have samples in rows or in columns: give "
                f"howsure.Samples({self.name}) with one row per y, or "
                f"howsure.Samples({self.name}.T)"
            )
        table = as_matrix(upright, self.name)
        ordered, few = _are_in_order(table), table.shape[1] < _MIN_SAMPLES
        if ordered or few:
            why = "may be samples, quantiles, or a mean and its variances"
            if ordered:
                why = "has columns in the same order in nearly every row, like quantiles"
            raise InputError(
                f"{self.name} of shape {shape} {why}: pass levels=[…] with {table.shape[1]} "
                f"levels, or give howsure.Samples({self.name}{turned}){f', or {_NORMAL}' * few}"
                f"{self._point_beside(table.shape[1])}"
            )
        note = f"{self.name} of shape {shape} read as {table.shape[1]} samples per row"
        return PredictionInput.of(Samples(table), note)

    def _probabilities(self, array: FloatArray) -> PredictionInput | None:
        """Probabilities of the classes that y has, from 0 on; None where the array is other."""
        if self.y is None or self.levels is not None or self.coverages or array.ndim > 2:
            return None
        classes = 2 if array.ndim == 1 else array.shape[1]
        if len(array) != self.n or not np.isin(self.y, np.arange(classes)).all():
            return None
        if not ((array >= 0) & (array <= 1)).all() or len(np.unique(self.y)) < 2:
            return None
        if array.ndim == 1 and np.isin(array, (0.0, 1.0)).all():  # the classes themselves
            return None
        if array.ndim == 2 and np.abs(array.sum(axis=1) - 1.0).max() > _MAX_ERROR_OF_SUM:
            return None
        what = "class 1" if array.ndim == 1 else f"classes 0 to {classes - 1}"
        note = (
            f"{self.name} of shape {array.shape} read as probabilities of {what}, because y is the "
            "number of a class; for a point forecast give point="
        )
        return PredictionInput.of(Probabilities(array), note)

    def _draws(self, array: FloatArray) -> PredictionInput:
        """Draws of chains, shape (chains, draws, n)."""
        chains, draws, n = array.shape
        table = as_matrix(array.reshape(chains * draws, n).T, self.name)
        note = (
            f"{self.name} of shape {array.shape} read as {chains} chains of {draws:,} draws: "
            f"{self.name}.reshape(-1, {n}).T, {chains * draws:,} samples per row"
        )
        return PredictionInput.of(Samples(table), note)

    def _column(self, array: FloatArray, shape: tuple[int, ...]) -> PredictionInput:
        """One number a row: the point forecast, or one quantile."""
        values = as_vector(array, self.name)
        if self.levels is None:
            note = f"{self.name} of shape {shape} read as the point forecast"
            return PredictionInput(point=values, notes=(note,))
        return self._table_of_quantiles(values[:, None], self.levels, shape)

    def _table_of_quantiles(
        self, table: FloatArray, levels: FloatArray, shape: tuple[int, ...]
    ) -> PredictionInput:
        """One column per level, or one row per level."""
        k = len(levels)
        if table.shape not in ((self.n, k), (k, self.n)):
            raise InputError(
                f"{self.name} must have shape ({self.n}, {k}) or ({k}, {self.n}), one column or "
                f"row per level, got {shape}"
            )
        return self.quantiles(levels, table if table.shape == (self.n, k) else table.T)

    def quantiles(self, levels: FloatArray, table: FloatArray) -> PredictionInput:
        table = as_matrix(table, self.name)
        with within(self.name):
            return PredictionInput.of(Quantiles(levels, table, self.crossing))

    def _one_interval(self, lower: FloatArray, upper: FloatArray) -> PredictionInput:
        """Ends of intervals at the one coverage that is said."""
        if len(self.coverages) != 1:
            raise InputError(
                f"coverage must be one number for one pair of ends in {self.name}, got "
                f"{list(self.coverages)}"
            )
        try:
            read_intervals = self._intervals(lower, upper)
        except InputError as error:
            if (lower > upper).any():
                raise InputError(f"{error}. For (mean, sd) give {_NORMAL}") from error
            raise
        return replace(read_intervals, notes=self._ends_not_moments(lower, upper))

    def _ends_not_moments(self, lower: FloatArray, upper: FloatArray) -> tuple[str, ...]:
        """A note that ends might be means and sds too; refuse them where y fits these better.

        Half of the rows exceed a mean, so that y lies between it and an sd above it in at most half
        of them: two standard errors more, or all rows, say that these are ends, as does another
        share below the first.
        """
        positive = (upper > 0) & np.isfinite(upper) & np.isfinite(lower)  # as moments are
        if self.y is None or positive.mean() <= 1.0 - _MAX_SHARE_CROSSED:
            return ()
        with np.errstate(over="ignore"):
            sizes = (self.y - lower)[positive] / upper[positive]
            spread = float(np.sqrt(np.mean(np.square(sizes))))
        below = float((self.y < lower).mean())
        between = int(((lower <= self.y) & (self.y <= upper)).sum())
        surely = max(
            _MIN_SHARE_BETWEEN * self.n, self.n / 2 + 2 * math.sqrt(self.n)
        )  # 4 standard errors
        possible = _POSSIBLE_RANGE[0] <= spread <= _POSSIBLE_RANGE[1] and between <= surely
        if not possible and self.n >= _MIN_ROWS:
            return ()
        likely = _LIKELY_RANGE[0] <= spread <= _LIKELY_RANGE[1]
        likely = likely and abs(below - 0.5) <= _MAX_DISTANCE_FROM_HALF + 1.0 / math.sqrt(self.n)
        covered = f"y is between them in {between} of {self.n} rows"
        if likely and between < min(self.n, self.n / 2 + math.sqrt(self.n)):
            raise InputError(
                f"{self.name} may be (lower, upper) or (mean, sd), because {covered} and the "
                "first is never above the second: give howsure.Intervals(lower, upper, "
                f"{self.coverages[0]:g}), or {_NORMAL}"
            )
        return (f"{self.name} read as (lower, upper), not (mean, sd), because {covered}",)

    def _intervals(self, lower: FloatArray, upper: FloatArray) -> PredictionInput:
        """Intervals at the coverages that are said, in their order."""
        if np.isnan(lower).any() or np.isnan(upper).any():
            as_matrix(np.column_stack([lower, upper]), self.name, finite=False)  # which says where
        with within(self.name):
            return PredictionInput.of(Intervals(lower, upper, self.coverages, self.crossing))

    def _coverages_needed(self, argument: str, count: int) -> InputError:
        """The error for ends at several coverages."""
        if self.levels is not None:
            return InputError(f"{argument} contains interval ends: pass coverage=, not levels=")
        such = "0.9" if count == 1 else "[0.8, 0.9]" if count == 2 else "[0.8, 0.9, …]"
        came = len(self.coverages) or "none"
        return InputError(
            f"{argument} contains interval ends at {count} coverages: pass them in the same order, "
            f"such as coverage={such}, got {came}"
        )

    def _point_beside(self, count: int) -> str:
        """How a message on three arrays goes on where a coverage is said."""
        if not self.coverages or count != 3:
            return ""
        ends = "(lower, upper) and howsure.Table(…, point=point)"
        return f". For ends and a point forecast give {ends}"

    def _misfit(self, shape: tuple[int, ...]) -> InputError:
        n = self.n
        if not shape:
            return InputError(
                f"{self.name} must have {n} rows like y: an array, a mapping, a table or a "
                "prediction such as howsure.Quantiles, got one number"
            )
        return InputError(
            f"{self.name} of shape {shape} cannot be interpreted with {n} rows of y. A point "
            f"forecast has shape ({n},); intervals ({n}, 2), with coverage=0.9. Quantiles have "
            f"shape ({n}, k), with levels=[…] of k numbers; samples ({n}, m). Intervals at k "
            f"coverages have shape ({n}, 2, k), draws of chains (chains, draws, {n})"
        )


def numbers(value: Any, name: str) -> FloatArray:
    """Numbers of any shape, as they came."""
    if isinstance(value, list | tuple):
        value = [to_host(row_values, name) for row_values in value]
    array = plain_array(value, name)
    if array.dtype.kind == "b":
        raise InputError(
            f"{name} must contain numbers, got booleans; for membership of classes in label sets "
            f"use howsure.LabelSets({name}, coverage=0.9)"
        )
    if array.ndim == 0 and array.dtype.kind not in "iuf":
        raise InputError(
            f"{name} must be an array of numbers, a mapping, a data frame, a frozen SciPy "
            "distribution, Intervals, Quantiles, Distribution, Samples or LabelSets, got "
            f"{type(value).__name__}{_with_frame(value, name)}"
        )
    return as_numbers(array, name)


def _with_frame(value: Any, name: str) -> str:
    """How a message goes on of results of statsmodels: by what tells of y, not of its mean."""
    module, expression, has_frame = type(value).__module__, name, hasattr(value, "summary_frame")
    if hasattr(value, "get_forecast"):
        expression = f"{name}.get_forecast(steps)"
    elif not has_frame and hasattr(value, "get_prediction"):
        expression = f"{name}.get_prediction(X)"
    elif not has_frame:
        return ""
    if ".exponential_smoothing.ets" in module or ".regression." in module:
        return f": give {expression}.summary_frame(), with its coverage"
    if ".tsa." in module:  # whose sd is that of a new y
        f, of = (name, "") if expression == name else ("f", f" of f = {expression}")
        return f": give howsure.Distribution.normal({f}.predicted_mean, {f}.se_mean){of}"
    mean = (
        "predicted_mean" if expression != name or hasattr(value, "predicted_mean") else "predicted"
    )
    return f": its intervals are of the mean; give {expression}.{mean} as a point forecast"


def _holds_arrays(value: Sequence[Any]) -> bool:
    """Whether a part is an array of some library rather than a list."""
    return any(
        (hasattr(array, "__array__") or is_tensor(array)) and np.ndim(array) > 0 for array in value
    )


def _rises(ends: FloatArray) -> bool:
    """Whether no row of two numbers falls."""
    return bool((ends[:, 0] <= ends[:, 1]).all())


def _are_in_order(table: FloatArray) -> bool:
    """Whether columns are above others in nearly all rows, as of samples only few are."""
    ranked = table[:, np.argsort(table.mean(axis=0), kind="stable")]
    half = table.shape[1] // 2
    above = np.count_nonzero(ranked[:, half:] > ranked[:, :-half])
    below = np.count_nonzero(ranked[:, half:] < ranked[:, :-half])
    return bool(above >= _MIN_SHARE_IN_ORDER * (above + below))
