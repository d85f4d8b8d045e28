"""Predictions that other libraries make, each by a small adapter that never imports the library."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from howsure.core.arrays import as_matrix, as_vector
from howsure.core.errors import InputError
from howsure.inputs.bare import Given
from howsure.inputs.distributions import read_distribution
from howsure.inputs.forecasts import read_forecast
from howsure.predictions import Prediction, Quantiles

_TABPFN_LEVELS = tuple(round(0.1 * step, 1) for step in range(1, 10))


def adapted(
    value: Any, *, n: int, coverage: npt.ArrayLike | None, levels: npt.ArrayLike | None
) -> Given | dict[str, Given] | None:
    """A library's object as what is given, by model where it holds several; None of any other."""
    if isinstance(value, Given):
        return value
    if value is None or isinstance(value, (Prediction, np.ndarray)):
        return None
    found = read_distribution(value, n)
    if found is None:
        found = read_forecast(value, n)
    if found is not None:
        return found
    if isinstance(value, Mapping):
        return _of_tabpfn(value, n, levels)
    if isinstance(value, tuple) and coverage is None:
        _refuse_variance(value)
    outcome = getattr(value, "outcome", None)  # of what a fitted method of howsure predicts
    if isinstance(outcome, Prediction):
        return Given(predictions=(outcome,))
    if callable(getattr(value, "predict", None)) and hasattr(value, "fit"):
        raise InputError(
            f"prediction must be what a model predicts, got a model, {type(value).__name__}: say "
            "howsure.assess_model(model, X, y)"
        )
    return None


def _refuse_variance(value: tuple[Any, ...]) -> None:
    """Refuse a forecast beside a frame of one column, which is what ``predict_var`` gives."""
    from howsure.inputs.distributions import library_classes

    frame = len(value) == 2 and "DataFrame" in library_classes(value[1], "pandas")
    if frame and value[1].shape[1] == 1:
        raise InputError(
            "prediction holds a frame of one column, which may be a variance (of predict_var) or a "
            "standard deviation: give howsure.Distribution.normal(mean, variance**0.5), or the sd"
        )


def _of_tabpfn(
    value: Mapping[Any, Any], n: int, levels: npt.ArrayLike | None
) -> Given | dict[str, Given] | None:
    """TabPFN's mapping of mean, median, mode and a list of quantiles; None of any other."""
    if not {"mean", "median", "quantiles"} <= set(value):
        return None
    columns = list(value["quantiles"])
    if levels is None and len(columns) != len(_TABPFN_LEVELS):
        raise InputError(
            f"levels must say what the {len(columns)} quantiles of prediction are, got none"
        )
    given = _TABPFN_LEVELS if levels is None else np.atleast_1d(np.asarray(levels, dtype=float))
    return Given(
        predictions=(Quantiles(given, as_matrix(np.column_stack(columns), "quantiles", length=n)),),
        point=as_vector(value["mean"], "mean of prediction", length=n),
    )
