"""After any scikit-learn regressor: trees as samples, a Gaussian process as a distribution.

A regressor that gives a point forecast alone gets its intervals from held-out rows.
"""

from __future__ import annotations

import numpy as np
from sklearn.datasets import make_friedman1
from sklearn.ensemble import RandomForestRegressor
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, WhiteKernel
from sklearn.linear_model import LinearRegression

import howsure


def main() -> howsure.Assessment:
    """Fit three models, and assess what they believe about the same rows."""
    X, y = make_friedman1(n_samples=900, noise=1.0, random_state=0)
    train, held_out, test = np.split(np.arange(900), [200, 600])

    forest = RandomForestRegressor(n_estimators=59, min_samples_leaf=3, random_state=0)
    forest.fit(X[train], y[train])
    trees = np.stack([tree.predict(X[test]) for tree in forest.estimators_], axis=1)

    process = GaussianProcessRegressor(RBF(3.0) + WhiteKernel(), normalize_y=True)
    mean, sd = process.fit(X[train], y[train]).predict(X[test], return_std=True)

    linear = LinearRegression().fit(X[train], y[train])
    calibration = howsure.EvalSet.checked(y[held_out], point=linear.predict(X[held_out]))
    asked = howsure.EvalSet.checked(y[test], point=linear.predict(X[test]))
    conformal = howsure.recalibrate(asked, calibration, coverage=0.9).evalset.predictions

    return howsure.assess(
        y[test],
        {
            "forest": howsure.Samples(trees),
            "Gaussian process": howsure.Distribution.normal(mean, sd),
            "linear + conformal": conformal,
        },
        features=X[test],
        coverage=0.9,
    )


if __name__ == "__main__":
    print(main().verdict)
