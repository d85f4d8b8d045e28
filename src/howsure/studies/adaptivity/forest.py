"""A task for studies of intervals from any table: two forests, one of y and one of its errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from howsure.core.arrays import FloatArray, as_matrix, as_vector
from howsure.core.convert import check_whole
from howsure.metrics.adaptivity import REPEATS, GaussianNoise
from howsure.studies.adaptivity.inputs import Regressed, regressed

_LEAST_TREES = 30
_FLOOR = 0.05


def forest_task(
    training: tuple[npt.ArrayLike, npt.ArrayLike],
    rest: tuple[npt.ArrayLike, npt.ArrayLike],
    *,
    noise: float = 0.2,
    trees: int = 60,
    repeats: int = REPEATS,
    seed: int = 0,
    name: str = "forests",
) -> Regressed:
    """Train a forest of y and a forest of its out-of-bag errors; run both on other rows.

    Parameters
    ----------
    training : (array-like of shape (k, d), array-like of shape (k,))
        Inputs and outcomes that train.
    rest : (array-like of shape (n, d), array-like of shape (n,))
        Those of the task.
    noise : float
        Noise on inputs that gives their ease, as a share of each column's standard deviation.
    trees : int
        Trees of each forest, at least 30, for every row must be out of the bag of some.
    repeats, seed
        Disturbances a row, and the seed of forests and noise.
    name : str
        What reports call it.

    Returns
    -------
    Regressed
        Its sd is the predicted absolute error, at least a twentieth of the mean one.

    Raises
    ------
    InputError
        If shapes differ, a value is not finite, or trees are too few.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> x = rng.uniform(-1, 1, (200, 2))
    >>> y = x[:, 0] + np.abs(x[:, 1]) * rng.normal(size=200)
    >>> task = forest_task((x[:120], y[:120]), (x[120:], y[120:]), trees=30, repeats=3)
    >>> bool(np.corrcoef(task.sd, np.abs(x[120:, 1]))[0, 1] > 0.5)
    True
    """
    check_whole(trees, "trees", _LEAST_TREES)
    from sklearn.ensemble import RandomForestRegressor

    x = as_matrix(training[0], "training inputs")
    y = as_vector(training[1], "training outcomes", length=len(x))

    def forest(leaf: int, shift: int) -> Any:
        return RandomForestRegressor(
            trees, min_samples_leaf=leaf, oob_score=True, random_state=seed + shift
        )

    mean = forest(2, 0).fit(x, y)
    errors = np.abs(y - mean.oob_prediction_)
    spread = forest(10, 1).fit(x, errors)
    least = max(_FLOOR * float(errors.mean()), np.finfo(np.float64).tiny)

    def sd(rows: FloatArray) -> FloatArray:
        return np.asarray(np.maximum(spread.predict(rows), least))

    return regressed(
        mean.predict,
        rest[0],
        rest[1],
        {f"noise {noise:g}": GaussianNoise.relative(x, noise)},
        spread=sd,
        repeats=repeats,
        seed=seed,
        name=name,
    )
