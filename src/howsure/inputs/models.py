"""What regressors of any library tell: what their predict takes, their parameters, normal laws."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from howsure.core.arrays import FloatArray, as_vector
from howsure.core.errors import InputError
from howsure.predictions import Distribution
from howsure.predictions.base import tail_levels

_TINY: Final = 1e-90


def located(family: str, mean: FloatArray, sd: FloatArray, **shape: npt.ArrayLike) -> Distribution:
    """Laws of a family at these means and scales; a scale of 0 is a law at a point."""
    parameters: dict[str, npt.ArrayLike] = dict(shape)
    return Distribution(family, {**parameters, "loc": mean, "scale": np.maximum(sd, _TINY)})


def told_normals(made: Any, n: int, of: str = "") -> Distribution:
    """Normal laws by the means and sds that ``predict(x, return_std=True)`` gives."""
    mean, sd = made
    spread = as_vector(sd, f"{of}sd", length=n)
    if (spread < 0).any():
        raise InputError(f"{of}sd must not be negative, got {spread.min():g}")
    return located("norm", as_vector(mean, f"{of}mean", length=n), spread)


def predict_options(regressor: Any) -> set[str]:
    """Names of what a regressor's predict takes; a pipeline hands options to its last step."""
    steps = getattr(regressor, "steps", None)
    last = steps[-1][1] if steps else regressor
    predict = getattr(last, "predict", None)
    return set(inspect.signature(predict).parameters) if callable(predict) else set()


def parameters_of(regressor: Any) -> dict[str, Any]:
    """A regressor's parameters by name, those of its parts too; none where it tells none."""
    return dict(regressor.get_params()) if hasattr(regressor, "get_params") else {}


def quantile_parameter(regressor: Any) -> str | None:
    """A regressor's or a step's parameter ``quantile``, where its loss allows it; None without."""
    held = parameters_of(regressor)
    names = [
        key
        for key in held
        if (key == "quantile" or key.endswith("__quantile"))
        and loss_beside(held, key) in (None, "quantile")
    ]
    return names[0] if len(names) == 1 else None


def loss_beside(held: Mapping[str, Any], parameter: str) -> Any:
    """The loss beside a parameter; None where there is no choice."""
    prefix = parameter.rpartition("__")[0]
    return held.get(f"{prefix}__loss" if prefix else "loss")


def central_levels(coverages: tuple[float, ...]) -> FloatArray:
    """The levels that bound the central intervals, in rising order."""
    return np.array(sorted({level for c in coverages for level in tail_levels(c)}))
