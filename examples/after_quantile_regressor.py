"""After quantile regressors: one model a level gives a table of quantiles."""

from __future__ import annotations

import numpy as np
from sklearn.ensemble import HistGradientBoostingRegressor

import howsure

LEVELS = (0.05, 0.25, 0.5, 0.75, 0.95)


def main() -> howsure.Assessment:
    """Fit a gradient boosting model at each level, and assess their quantiles together."""
    rng = np.random.default_rng(0)
    x = rng.uniform(-2, 2, (3_000, 1))
    y = np.sin(2 * x[:, 0]) + (0.1 + 0.3 * np.abs(x[:, 0])) * rng.normal(size=3_000)
    train, test = slice(0, 2_000), slice(2_000, None)

    columns = []
    for level in LEVELS:
        model = HistGradientBoostingRegressor(
            loss="quantile", quantile=level, max_iter=40, max_leaf_nodes=8, random_state=0
        )
        columns.append(model.fit(x[train], y[train]).predict(x[test]))

    prediction = howsure.Quantiles(LEVELS, np.stack(columns, axis=1), crossing="sort")
    side = np.where(x[test, 0] < 0, "left", "right")
    return howsure.assess(y[test], prediction, features={"x": x[test, 0]}, groups={"side": side})


if __name__ == "__main__":
    print(main().verdict)
