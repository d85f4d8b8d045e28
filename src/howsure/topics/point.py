"""How good is the point forecast itself?"""

from __future__ import annotations

import math
from functools import partial

import numpy as np
import numpy.typing as npt

from howsure.core.arrays import FloatArray, as_vector, power_of_two
from howsure.core.errors import UnanswerableError
from howsure.core.records import Direction
from howsure.engine.metric import (
    BY_UNIT,
    POSITIVE,
    Array,
    Laws,
    Metric,
    Question,
    Sums,
    Topic,
    itself,
    of_rows,
    root_mean,
    row_mean,
    statistic,
)
from howsure.engine.view import View
from howsure.stats.estimate import Estimate, weighted_mean
from howsure.stats.moments import Joint


def error(y: npt.ArrayLike, point: npt.ArrayLike) -> FloatArray:
    """Forecast minus truth, in units of y; the mean is the bias, best at 0.

    Examples
    --------
    >>> error(np.array([1.0]), np.array([3.0]))
    array([2.])
    """
    truth, forecast = _rows(y, point)
    return forecast - truth


def absolute_error(y: npt.ArrayLike, point: npt.ArrayLike) -> FloatArray:
    """|y_i − ŷ_i| in units of y; the mean is the MAE, lower is better.

    Examples
    --------
    >>> absolute_error(np.array([1.0]), np.array([3.0]))
    array([2.])
    """
    return np.abs(error(y, point))


def root_mean_squared_error(
    y: npt.ArrayLike, point: npt.ArrayLike, *, weights: FloatArray | None = None
) -> Estimate:
    """√mean (y_i − ŷ_i)², in units of y; lower is better.

    Parameters
    ----------
    y, point : array-like of shape (n,)
        What happened and what was forecast.
    weights : ndarray of float, shape (n,), optional
        Multiplicities of the rows.

    Returns
    -------
    Estimate
        Influence (e_i² − RMSE²)/(2 RMSE).

    Raises
    ------
    InputError
        If a value is missing or infinite, or lengths differ.

    Examples
    --------
    >>> root_mean_squared_error(np.array([0.0, 0.0]), np.array([3.0, 4.0])).value
    3.5355
    """
    errors = error(y, point)
    unit = power_of_two(errors)  # so that squares neither vanish nor overflow
    squares = np.square(errors / unit)
    return of_rows(root_mean, (squares,), weights=weights, unit=unit, squares=squares)


@np.errstate(over="ignore")
def r_squared(
    y: npt.ArrayLike, point: npt.ArrayLike, *, weights: FloatArray | None = None
) -> Estimate:
    """Share of the variance of y that the forecast explains, at most 1; higher is better.

    Parameters
    ----------
    y, point : array-like of shape (n,)
        What happened and what was forecast.
    weights : ndarray of float, shape (n,), optional
        Multiplicities of the rows.

    Returns
    -------
    Estimate
        1 − mean e²/var y, with its delta-method influence; NaN where y is constant.

    Raises
    ------
    InputError
        If a value is missing or infinite, or lengths differ.

    Examples
    --------
    >>> r_squared(np.array([1.0, 2.0, 3.0]), np.array([1.0, 2.0, 3.0])).value
    1.0
    """
    truth, forecast = _rows(y, point)
    centred = truth - weighted_mean(truth, weights)
    unit = power_of_two(centred)  # so that squares of small numbers do not vanish
    off, squares = centred / unit, np.square((truth - forecast) / unit)
    columns = (off, np.square(off), squares)
    return of_rows(_explained, columns, weights=weights, squares=squares, cancels=True)


def _explained(sums: Joint) -> tuple[Estimate, FloatArray | None]:
    """Of y, its square and squared errors."""
    variance = float(sums.second[0, 0]) / sums.mass
    if sums.least[0] == sums.greatest[0]:
        return Estimate(math.nan, reason="y is constant, so it has no variance to explain"), None
    if variance == 0.0:
        return Estimate(math.nan, reason="y varies too little for its square to be summed"), None
    ratio = float(sums.mean[2]) / variance
    return Estimate(1.0 - ratio), np.array([-2.0 * sums.mean[0] * ratio, ratio, -1.0]) / variance


def _rows(y: npt.ArrayLike, point: npt.ArrayLike) -> tuple[FloatArray, FloatArray]:
    truth = as_vector(y, "y")
    return truth, as_vector(point, "point", length=len(truth))


def _point(view: View, coverage: float) -> FloatArray:
    if view.evalset.point is not None:
        view.note_source("point", "point")
        return view.evalset.point
    found: FloatArray = view.ask("point", "point")
    return found


def _mean_point(view: View, _: float) -> FloatArray:
    """The point forecast where it is a mean: given as one, or derived as one."""
    point: FloatArray = view.get("point")
    answered = view.answered("point")
    said = "" if answered is None else answered.point_is
    if said not in ("", "mean"):
        raise UnanswerableError(f"the point is a derived {said}, whose mean error need not be 0")
    return point


def _y(view: View, _: float) -> FloatArray:
    return view.evalset.y


def _squared_error(view: View) -> FloatArray:
    return np.asarray(np.square(view.evalset.y - view.get("point")))


def _absolute_error(view: View, _: float) -> FloatArray:
    return np.asarray(np.abs(view.evalset.y - view.get("point")))


_POINT_ALONE = "It does not measure uncertainty."
_entry = partial(
    Metric,
    question=Question.POINT,
    direction=Direction.LOWER,
    units="y",
    laws=BY_UNIT,
    bounds=POSITIVE,
)

_ENTRIES = (
    _entry(
        name="mae",
        title="Mean absolute error",
        meaning="Average distance of the point forecast from y.",
        formula="mean |y − ŷ|",
        forms=(row_mean(itself, "absolute_error"),),
        standard_normal=0.7979,
        key_number=6,
        compares=6,
        beware=f"{_POINT_ALONE} It is minimised by a median, not by a mean.",
    ),
    _entry(
        name="rmse",
        title="Root mean squared error",
        synonyms=("root mean square error", "RMS error", "RMSD"),
        meaning="Root of the mean squared error of the point forecast; large errors count more.",
        formula="√mean (y − ŷ)²",
        forms=(statistic(root_mean_squared_error, "y", "point", squares=True),),
        standard_normal=1.0,
        key_number=7,
        beware=f"{_POINT_ALONE} A few large errors dominate it.",
    ),
    Metric(
        name="bias",
        title="Bias",
        synonyms=("mean error", "ME", "mean bias error", "MBE"),
        question=Question.POINT,
        meaning="Average of forecast minus y: above 0 where forecasts are too high.",
        formula="mean (ŷ − y)",
        direction=Direction.TARGET,
        units="y",
        forms=(row_mean(error, "y", "point"),),
        laws=Laws(scale=1.0, reflection="negates"),
        standard_normal=0.0,
        target=0.0,
        supposes="mean_point",
        beware="Predictions that are too high and too low cancel. Check groups as well.",
    ),
    Metric(
        name="r_squared",
        title="R²",
        synonyms=("R2", "coefficient of determination", "r2 score"),
        question=Question.POINT,
        meaning="Share of the variance of y that the point forecast explains.",
        formula="1 − Σ(y − ŷ)²/Σ(y − ȳ)²",
        direction=Direction.HIGHER,
        forms=(statistic(r_squared, "y", "point", squares=True),),
        standard_normal=0.0,
        bounds=(-math.inf, 1.0),
        key_number=17,
        beware=f"{_POINT_ALONE} It rises with the spread of y in the rows chosen.",
    ),
)

TOPIC = Topic(
    entries=_ENTRIES,
    arrays=(
        Array("y", _y),
        Array("point", _point, predicted=True, by_row=True),
        Array("mean_point", _mean_point, predicted=True),
        Array("absolute_error", _absolute_error),
    ),
    sums={
        "rmse": Sums(lambda view, _: (_squared_error(view),), root_mean),
        "r_squared": Sums(
            lambda view, _: (view.evalset.y, _squared_error(view)), _explained, squared=0
        ),
    },
)
