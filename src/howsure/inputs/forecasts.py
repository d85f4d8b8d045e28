"""What other libraries predict, each by a small adapter that never imports the library."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from howsure.core.arrays import FloatArray, as_matrix, as_vector
from howsure.core.errors import InputError
from howsure.inputs.array_inputs import PredictionInput
from howsure.inputs.distributions import library_classes, read_distribution
from howsure.inputs.posterior import read_posterior
from howsure.predictions import Distribution, Intervals, Prediction, Quantiles, Samples

_TABPFN_LEVELS = tuple(round(0.1 * step, 1) for step in range(1, 10))
_DARTS_QUANTILE = re.compile(r"(.*)_q(0?\.\d+)")


def read_foreign(
    value: Any, n: int, coverage: npt.ArrayLike | None = None, levels: npt.ArrayLike | None = None
) -> PredictionInput | None:
    """A library's predictions of n rows; None of anything else."""
    found = read_distribution(value, n) or read_posterior(value, n)
    if found is not None:
        return found
    if "DataFrame" in library_classes(value, "pandas") and value.columns.nlevels > 1:
        return _of_frame(value, list(value.columns))
    if "TimeSeries" in library_classes(value, "darts"):
        return _of_darts(value)
    series = list(value) if isinstance(value, (list, tuple, Iterator)) else [value]
    if series and all("Forecast" in library_classes(one, "gluonts") for one in series):
        return _of_gluonts(series, n)
    if isinstance(value, Mapping):
        return _of_tabpfn(value, n, levels)
    if isinstance(value, tuple) and coverage is None:
        _refuse_variance(value)
    outcome = getattr(value, "outcome", None)  # of what a fitted method of howsure predicts
    if isinstance(outcome, Prediction):
        return PredictionInput(predictions=(outcome,))
    if callable(getattr(value, "predict", None)) and hasattr(value, "fit"):
        raise InputError(
            f"prediction must be what a model predicts, got a model, {type(value).__name__}: use "
            "howsure.assess_model(model, X, y)"
        )
    return None


def _one_variable(names: Sequence[Any]) -> None:
    found = list(dict.fromkeys(map(str, names)))
    if len(found) > 1:
        raise InputError(
            f"prediction must be of one variable, got {', '.join(found)}: give one alone, "
            f"prediction[[{found[0]!r}]]"
        )


def _of_frame(value: Any, columns: list[tuple[Any, ...]]) -> PredictionInput | None:
    """The frame of ``predict_interval`` or ``predict_quantiles``; None of any other."""
    numbers = [_number(column[1]) for column in columns]
    if any(number is None for number in numbers):
        return None
    table = np.asarray(value, dtype=np.float64)
    if all(len(column) == 2 for column in columns):
        _one_variable([column[0] for column in columns])
        return PredictionInput(predictions=(Quantiles(np.array(numbers, dtype=np.float64), table),))
    sides = [str(column[-1]) for column in columns]
    if any(len(column) != 3 for column in columns) or not set(sides) <= {"lower", "upper"}:
        return None
    _one_variable([column[0] for column in columns])
    at = {(number, side): j for j, (number, side) in enumerate(zip(numbers, sides, strict=True))}
    coverages = list(dict.fromkeys(numbers))
    if len(at) != 2 * len(coverages):
        raise InputError(
            "prediction must hold one lower and one upper column a coverage, got "
            f"{', '.join(map(str, columns))}"
        )
    low, high = (table[:, [at[c, side] for c in coverages]] for side in ("lower", "upper"))
    return PredictionInput(
        predictions=(Intervals(low, high, np.array(coverages, dtype=np.float64)),)
    )


def _number(value: Any) -> float | None:
    try:
        return float(value)
    except (TypeError, ValueError):
        return None


def _of_darts(value: Any) -> PredictionInput:
    """A TimeSeries of samples, of quantiles as components, or of a point forecast."""
    table = np.asarray(value.all_values(copy=False), dtype=np.float64)
    names = [str(name) for name in value.components]
    parts = [_DARTS_QUANTILE.fullmatch(name) for name in names]
    if all(parts) and table.shape[2] == 1:
        found = [part for part in parts if part is not None]
        _one_variable([part[1] for part in found])
        return PredictionInput(
            predictions=(Quantiles([float(part[2]) for part in found], table[:, :, 0]),)
        )
    if len(names) > 1:
        raise InputError(
            f"prediction must be of one component, got {', '.join(names)}: give one alone, "
            f"prediction[{names[0]!r}]"
        )
    if table.shape[2] == 1:
        return PredictionInput(point=as_vector(table[:, 0, 0], "prediction"))
    return PredictionInput(predictions=(Samples(table[:, 0, :]),))


def _of_gluonts(series: list[Any], n: int) -> PredictionInput:
    """One forecast a series, one after the other."""
    kinds = {library_classes(one, "gluonts")[0] for one in series}
    if len(kinds) > 1:
        raise InputError(
            f"prediction must hold forecasts of one kind, got {', '.join(sorted(kinds))}"
        )
    if hasattr(series[0], "samples"):
        return _of_samples([np.asarray(one.samples, dtype=np.float64) for one in series])
    if hasattr(series[0], "forecast_array"):
        return _of_quantiles(series)
    return _of_distributions(series, n)


def _of_samples(tables: list[FloatArray]) -> PredictionInput:
    if len({(table.ndim, table.shape[0]) for table in tables}) > 1 or tables[0].ndim != 2:
        shapes = ", ".join(sorted({str(table.shape) for table in tables}))
        raise InputError(
            "prediction must hold equally many samples of one number a step, shape "
            f"(samples, steps), in each forecast, got {shapes}"
        )
    return PredictionInput(predictions=(Samples(np.hstack(tables).T),))


def _of_quantiles(series: list[Any]) -> PredictionInput:
    keys = [str(key) for key in series[0].forecast_keys]
    for one in series:
        if [str(key) for key in one.forecast_keys] != keys or np.ndim(one.forecast_array) != 2:
            raise InputError(
                "prediction must hold the same quantiles of one number a step in each forecast, "
                f"got {', '.join(keys)} and {', '.join(map(str, one.forecast_keys))}, shape "
                f"{np.shape(one.forecast_array)}"
            )
    table = np.hstack([np.asarray(one.forecast_array, dtype=np.float64) for one in series]).T
    levels = {j: number for j, key in enumerate(keys) if (number := _number(key)) is not None}
    point = table[:, keys.index("mean")] if "mean" in keys else None
    held = (Quantiles(list(levels.values()), table[:, list(levels)]),) if levels else ()
    return PredictionInput(predictions=held, point=point)


def _of_distributions(series: list[Any], n: int) -> PredictionInput:
    """Forecasts that each hold a distribution of all steps."""
    found: list[PredictionInput] = []
    for one in series:
        steps = int(getattr(one, "prediction_length", 0)) or n // len(series)
        given = read_distribution(getattr(one, "distribution", None), steps)
        if given is None:
            raise InputError(
                f"prediction of GluonTS must hold samples, quantiles or a distribution, got "
                f"{type(one).__name__}: give forecast.to_sample_forecast()"
            )
        found.append(given)
    notes = tuple(dict.fromkeys(note for given in found for note in given.notes))
    held = [given.predictions[0] for given in found]
    return PredictionInput(predictions=(_stacked(held),), notes=notes)


def _stacked(held: Sequence[Any]) -> Distribution | Quantiles:
    """Predictions of one kind, one after the other."""
    if all(isinstance(one, Quantiles) for one in held):
        return Quantiles(held[0].levels, np.vstack([one.values for one in held]))
    families = sorted({one.law.name if isinstance(one, Distribution) else one.kind for one in held})
    if len(families) > 1:
        raise InputError(
            f"prediction must hold distributions of one family, got {', '.join(families)}"
        )
    parameters: dict[str, npt.ArrayLike] = {
        name: np.concatenate([one.parameters[name] for one in held]) for name in held[0].parameters
    }
    return Distribution(held[0].law, parameters)


def _refuse_variance(value: tuple[Any, ...]) -> None:
    """Refuse a forecast beside a frame of one column, which is what ``predict_var`` gives."""
    frame = len(value) == 2 and "DataFrame" in library_classes(value[1], "pandas")
    if frame and value[1].shape[1] == 1:
        raise InputError(
            "prediction holds a frame of one column, which may be a variance (of predict_var) or a "
            "standard deviation: give howsure.Distribution.normal(mean, variance**0.5), or the sd"
        )


def _of_tabpfn(
    value: Mapping[Any, Any], n: int, levels: npt.ArrayLike | None
) -> PredictionInput | None:
    """TabPFN's mapping of mean, median, mode and a list of quantiles; None of any other."""
    if not {"mean", "median", "quantiles"} <= set(value):
        return None
    columns = list(value["quantiles"])
    if levels is None and len(columns) != len(_TABPFN_LEVELS):
        raise InputError(
            f"levels must say what the {len(columns)} quantiles of prediction are, got none"
        )
    given = _TABPFN_LEVELS if levels is None else np.atleast_1d(np.asarray(levels, dtype=float))
    return PredictionInput(
        predictions=(Quantiles(given, as_matrix(np.column_stack(columns), "quantiles", length=n)),),
        point=as_vector(value["mean"], "mean of prediction", length=n),
    )
