"""Checks at the door: every array of numbers that enters howsure passes through here.

Each check raises `InputError` with a message that names the argument, the rule and what came;
what passes becomes a plain float64 array.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from howsure.core.errors import InputError
from howsure.core.optional import require

AnyArray = npt.NDArray[Any]
FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]

# Half a megabyte of 64 bits stays in the cache.
_NUMBERS_AT_ONCE = 1 << 16


def as_vector(
    value: npt.ArrayLike,
    name: str,
    *,
    length: int | None = None,
    finite: bool = True,
    scalar: bool = False,
) -> FloatArray:
    """Check a one-dimensional numeric array."""
    array = as_numbers(value, name)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim == 0 and scalar:
        array = array.reshape(1)
    if array.ndim != 1:
        raise InputError(f"{name} must have one dimension, got shape {array.shape}")
    check_length(array, name, length)
    _check_finite(array, name, finite=finite)
    return array


def as_matrix(
    value: npt.ArrayLike,
    name: str,
    *,
    length: int | None = None,
    columns: int | None = None,
    finite: bool = True,
) -> FloatArray:
    """Check a two-dimensional numeric array; one dimension counts as one column."""
    array = as_numbers(value, name)
    if array.ndim == 1:
        array = array[:, None]
    if array.ndim != 2:
        raise InputError(f"{name} must have two dimensions, got shape {array.shape}")
    if array.shape[1] == 0:
        raise InputError(f"{name} must have at least one column, got shape {array.shape}")
    if columns is not None and array.shape[1] != columns:
        raise InputError(f"{name} must have {columns} columns, got {array.shape[1]}")
    check_length(array, name, length)
    _check_finite(array, name, finite=finite)
    return array


def check_interval(
    lower: npt.ArrayLike, upper: npt.ArrayLike, *, length: int | None = None
) -> tuple[FloatArray, FloatArray]:
    """Check the two ends of closed intervals; infinite ends are legal, crossed ends are not."""
    low = as_vector(lower, "lower", length=length, finite=False)
    high = as_vector(upper, "upper", length=len(low), finite=False)
    crossed = low > high
    if crossed.any():
        first = int(np.argmax(crossed))
        raise InputError(
            f"lower must not exceed upper, got {int(crossed.sum())} crossed intervals "
            f"(first at row {first}: lower {low[first]:g}, upper {high[first]:g})"
            + ("; lower and upper look swapped" if crossed.all() else "")
        )
    return low, high


def check_fraction(value: float, name: str) -> float:
    """Check a number strictly between 0 and 1, such as a coverage or a level."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = float("nan")
    if not 0.0 < number < 1.0:
        raise InputError(
            f"{name} must be strictly between 0 and 1, got {value!r}{in_percent([number])}"
        )
    return number


def check_fractions(values: float | Iterable[float], name: str) -> tuple[float, ...]:
    """One number strictly between 0 and 1, or several, as several."""
    several = values if isinstance(values, Iterable) else (values,)
    return tuple(check_fraction(value, name) for value in several)


def in_percent(values: npt.ArrayLike) -> str:
    """What to add of shares that were given in percent; nothing of others.

    >>> in_percent([5, 50, 95]), in_percent([0.5, 2.0]), in_percent(90)
    ('; did you mean 0.05, 0.5, 0.95?', '', '; did you mean 0.9?')
    """
    numbers = np.atleast_1d(np.asarray(values, dtype=np.float64))
    percentages = (numbers == np.round(numbers)).all() or (numbers > 2).all()
    if not (percentages and ((numbers > 0) & (numbers < 100)).all() and (numbers > 1).any()):
        return ""
    return f"; did you mean {', '.join(f'{share / 100:g}' for share in numbers)}?"


def check_levels(value: npt.ArrayLike, name: str = "levels") -> FloatArray:
    """Check strictly rising probabilities inside (0, 1)."""
    levels = as_vector(value, name)
    if (levels <= 0).any() or (levels >= 1).any() or (np.diff(levels) <= 0).any():
        raise InputError(
            f"{name} must increase strictly and be strictly between 0 and 1, got "
            f"{levels.tolist()}{in_percent(levels)}"
        )
    return levels


def check_quantiles(
    y: npt.ArrayLike, quantiles: npt.ArrayLike, levels: npt.ArrayLike
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Check y against a table of quantiles, one column per level."""
    truth = as_vector(y, "y")
    grid = check_levels(levels)
    return truth, as_matrix(quantiles, "quantiles", length=len(truth), columns=len(grid)), grid


def check_above(values: FloatArray, name: str, bound: float) -> None:
    """Check that every number lies above a bound, as an sd lies above 0."""
    wrong = values <= bound
    if wrong.any():
        row = int(np.argmax(wrong))
        raise InputError(
            f"{name} must be above {bound:g}, got {int(wrong.sum())} that are not "
            f"(first at row {row}: {values[row]:g})"
        )


def power_of_two(values: FloatArray) -> float:
    """The power of two next to the largest size, by which division is exact; 1 where none is.

    >>> power_of_two(np.array([3.0, -5e-200])), power_of_two(np.zeros(2))
    (2.0, 1.0)
    """
    largest = float(np.abs(values).max(initial=0.0))
    if not math.isfinite(largest) or largest == 0.0:
        return 1.0
    return math.ldexp(1.0, math.frexp(largest)[1] - 1)


def row_blocks(rows: int, width: int) -> Iterator[slice]:
    """Slices of the rows of a table, each of so few numbers that copies of it are small."""
    step = max(_NUMBERS_AT_ONCE // max(width, 1), 1)
    return (slice(start, start + step) for start in range(0, rows, step))


def plain_array(value: npt.ArrayLike, name: str, *, text: bool = False) -> npt.NDArray[Any]:
    """Make an ordinary array of any kind: a mask becomes missing values."""
    if isinstance(value, np.ma.MaskedArray) and np.ma.getmaskarray(value).any():
        return np.asarray(np.ma.filled(value.astype(object), np.nan))
    value = to_host(value, name)
    try:
        array = np.asarray(value)
        if text and array.dtype.kind in "SU" and not hasattr(value, "__array__"):
            return np.asarray(value, dtype=object)
    except (TypeError, ValueError) as error:
        raise InputError(f"{name} must be one rectangular array, got {shortened(value)}") from error
    return array


def dimensions(value: Any, name: str) -> int:
    """How many dimensions an array or nested lists have; those of several shapes are refused."""
    try:
        return np.ndim(value)
    except (TypeError, ValueError) as error:
        raise InputError(f"{name} must be one rectangular array, got {shortened(value)}") from error


def check_length(array: npt.NDArray[Any], name: str, length: int | None) -> None:
    """Check that an array has rows, and as many as it must."""
    if len(array) == 0:
        raise InputError(f"{name} must have at least one row, but is empty")
    if length is not None and len(array) != length:
        raise InputError(f"{name} must have {length} rows, got {len(array)}")


def shortened(value: object) -> str:
    """What came, for a message, in at most 60 characters on one line."""
    try:
        text = _describe_value(value)
    except Exception:  # noqa: BLE001 - of any object; a whole number may have too many digits
        text = f"an object of type {type(value).__name__}"
    return text if len(text) <= 60 else text[:57] + "..."


def _describe_value(value: Any) -> str:
    """A frame by its columns, arrays by their shapes, anything else as Python shows it."""
    if hasattr(type(value), "columns"):
        return f"a data frame of columns {', '.join(map(repr, value.columns))}"
    if isinstance(value, list | tuple) and any(getattr(member, "ndim", 0) for member in value):
        return f"arrays of shapes {', '.join(str(np.shape(member)) for member in value)}"
    return " ".join(repr(value).split())


def as_numbers(value: npt.ArrayLike, name: str) -> FloatArray:
    """Check a numeric array of any shape; numbers may be missing or infinite."""
    array = plain_array(value, name)
    if array.dtype.kind not in "biufO":
        raise InputError(f"{name} must contain real numbers, got dtype {array.dtype}")
    if array.dtype.kind == "O" and any(isinstance(item, str | bytes) for item in array.flat):
        raise InputError(f"{name} must contain real numbers, got text: {shortened(value)}")
    try:
        return np.ascontiguousarray(array, dtype=np.float64).reshape(array.shape)
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(f"{name} must contain real numbers, got {shortened(value)}") from error


def _check_finite(array: npt.NDArray[Any], name: str, *, finite: bool) -> None:
    bad = ~np.isfinite(array) if finite else np.isnan(array)
    count = int(bad.sum())
    if count:
        row = int(np.argmax(bad.reshape(len(array), -1).any(axis=1)))
        rule = "finite numbers" if finite else "no missing values"
        what = "missing or infinite" if finite else "missing"
        raise InputError(
            f"{name} must contain {rule}, got {count} {what} value{'s' * (count > 1)} (first at "
            f"row {row})"
        )


# ---- PyTorch tensors at the door: what they are, where they lie, and how they become NumPy arrays
# What only looks at tensors never imports PyTorch: a tensor proves that it is there. `placed` is
# the one way by which numbers get to a device, and `to_host` the one way back.


def is_tensor(value: object) -> bool:
    """Whether something is a PyTorch tensor."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, getattr(torch, "Tensor", ()))


def to_host(value: npt.ArrayLike, name: str = "array") -> npt.ArrayLike:
    """A tensor as a NumPy array, wherever it lives; anything else as it came."""
    if not is_tensor(value):
        return value
    tensor = plain_tensor(value, name)
    tensor = tensor.float() if str(tensor.dtype) == "torch.bfloat16" else tensor
    array: npt.ArrayLike = tensor.cpu().numpy()
    return array


def plain_tensor(value: Any, name: str) -> Any:
    """A tensor without its gradient, if it holds real numbers."""
    if value.is_meta:
        raise InputError(f"{name} must contain numbers, got a tensor without data (device meta)")
    if value.is_complex() or value.is_quantized or "strided" not in str(value.layout):
        kind = f"{value.dtype}, layout {value.layout}"
        raise InputError(f"{name} must be a dense tensor of real numbers, got {kind}")
    return value.detach()


def device_named(name: str | None = "auto", *, extra: str = "deep") -> Any:
    """The torch device of a name; ``auto`` or None: a GPU where torch finds one, else the CPU."""
    torch = require("torch", extra=extra)
    has_gpu = bool(torch.cuda.is_available())
    if name in (None, "auto"):
        name = "cuda" if has_gpu else "cpu"
    why = "torch finds no GPU"
    try:
        chosen = torch.device(name)
        if has_gpu or chosen.type != "cuda":
            torch.empty(1, device=chosen)
            return chosen
    except (RuntimeError, AssertionError, TypeError, NotImplementedError) as error:
        why = str(error).strip().partition("\n")[0]
    raise InputError(f"device must be one that torch can use here, got {name!r}: {why}")


def placed(values: Any, device: Any = "cpu", dtype: Any = None) -> Any:
    """Numbers, or a tensor, as a tensor on a device; it shares memory with an array on the CPU."""
    if not is_tensor(values):
        # PyTorch warns of arrays that must not be written to
        array = np.require(np.asarray(values), requirements="W")
        values = require("torch", extra="deep").from_numpy(array)
    return values.to(device=device, dtype=dtype)
