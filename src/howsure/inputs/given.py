"""What people hold beside y, as predictions: arrays, mappings, objects of other libraries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy.typing as npt

from howsure.core.arrays import FloatArray
from howsure.core.errors import InputError
from howsure.inputs.objects import adapted
from howsure.predictions import Distribution, Prediction


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """What one model predicts.

    Attributes
    ----------
    predictions : tuple of Prediction
        Its predictions with uncertainty.
    point : ndarray of float, shape (n,), optional
        Its point forecast.
    notes : tuple of str
        What the reader of a result should know of how it was read.
    """

    predictions: tuple[Prediction, ...] = ()
    point: FloatArray | None = None
    notes: tuple[str, ...] = ()


def read_given(
    value: Any,
    *,
    n: int,
    coverage: npt.ArrayLike | None = None,
    levels: npt.ArrayLike | None = None,
) -> dict[str, Given]:
    """What a caller gave as prediction, by the name of its model; "" is the one without a name.

    `coverage` and `levels` say what bare arrays are: ends of intervals, or quantiles.
    """
    found = adapted(value, n=n, coverage=coverage, levels=levels)
    if found is not None:
        return found if isinstance(found, dict) else {"": found}
    if isinstance(value, Mapping):
        made = {}
        for name, one in value.items():
            made[str(name)] = read_given(one, n=n, coverage=coverage, levels=levels)[""]
        return made
    return {"": Given(predictions=_predictions(value, n))}


def _predictions(value: Any, n: int) -> tuple[Prediction, ...]:
    if value is None:
        return ()
    if isinstance(value, Prediction):
        return (value,)
    if hasattr(value, "dist") and hasattr(value, "args"):
        return (Distribution.from_scipy(value, n=n),)
    if isinstance(value, Sequence) and all(isinstance(part, Prediction) for part in value):
        return tuple(value)
    raise InputError(
        "prediction must be Intervals, Quantiles, Distribution, Samples, LabelSets, a tuple of "
        f"them, or a frozen SciPy law, got {type(value).__name__}"
    )
