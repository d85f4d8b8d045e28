"""Every line of docs/what-goes-in.md does what it says."""

from __future__ import annotations

import re
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats
from sklearn.ensemble import GradientBoostingRegressor
from sklearn.linear_model import BayesianRidge, LinearRegression

import howsure
from extras import needs
from howsure.core.errors import InputError
from howsure.core.rng import child

PAGE = Path(__file__).parents[2] / "docs" / "what-goes-in.md"
ROWS = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in PAGE.read_text(encoding="utf-8").splitlines()
    if line.startswith("|") and "`howsure" in line
]
READ = [(code.strip("`"), kind) for _, code, kind in (row for row in ROWS if len(row) == 3)]
REFUSED = [(code.strip("`"), asked) for code, asked in (row for row in ROWS if len(row) == 2)]


N = 40


def models(code: str, x: Any, y: Any) -> dict[str, Any]:
    """The fitted models, and what came of them, that a line speaks of."""
    found: dict[str, Any] = {}
    if "mapie_model" in code:
        regression = needs("mapie.regression")
        made = regression.SplitConformalRegressor(LinearRegression().fit(x, y))
        found["mapie_model"] = made.conformalize(x, y)
    if "ngboost_model" in code:
        made = needs("ngboost").NGBRegressor(n_estimators=5, verbose=False)
        found["ngboost_model"] = made.fit(x, y)
    if "skpro_model" in code:
        made = needs("skpro.regression.residual").ResidualDouble(LinearRegression())
        pd = needs("pandas")
        found |= {"skpro_model": made.fit(pd.DataFrame(x), pd.DataFrame(y)), "X": pd.DataFrame(x)}
    if "forecaster" in code:
        naive = needs("sktime.forecasting.naive")
        found["forecaster"] = naive.NaiveForecaster(strategy="mean").fit(needs("pandas").Series(y))
        found["fh"] = np.arange(1, len(y) + 1)
    if "nixtla_frame" in code:
        table = {"unique_id": ["a"] * len(y), "ds": range(len(y)), "y": y, "linear": y}
        table |= {"linear-lo-90": y - 1, "linear-hi-90": y + 1}
        found["nixtla_frame"] = needs("pandas").DataFrame(table)
    if "idata" in code:
        drawn = x[:, 0] + 0.8 * child(0, "draws").normal(size=(2, 20, len(x)))
        made = needs("arviz")
        groups = {"posterior_predictive": {"demand": drawn}, "observed_data": {"demand": y}}
        found["idata"] = made.from_dict(**groups)
    if "summary" in code:
        api = needs("statsmodels.api")
        inputs = api.add_constant(x)
        predicted = api.OLS(y, inputs).fit().get_prediction(inputs)
        found["summary"] = predicted.summary_frame(alpha=0.1)
    if "prophet_frame" in code:
        days = np.arange("2024-01-01", len(y), dtype="datetime64[D]")
        table = {"ds": days, "trend": y, "trend_lower": y, "trend_upper": y}
        table |= {"yhat": y, "yhat_lower": y - 1, "yhat_upper": y + 1}
        found["prophet_frame"] = needs("pandas").DataFrame(table)
    if "ridge" in code:
        found["ridge"] = BayesianRidge().fit(x, y)
    for name, level in (("low", 0.05), ("middle", 0.5), ("high", 0.95)):
        if "middle" in code:
            made = GradientBoostingRegressor(loss="quantile", alpha=level, n_estimators=5)
            found[name] = made.fit(x, y)
    return found


def held(code: str) -> dict[str, Any]:
    """The names that the page speaks of."""
    n, rng = N, child(0, "page")
    mean = 4.0 + rng.normal(size=n)
    sd = np.full(n, 0.8)
    lower, upper = mean - 1.3, mean + 1.3
    samples = mean[:, None] + 0.8 * rng.normal(size=(n, 19))
    libraries = {"pd": "pandas", "pl": "polars", "torch": "torch"}
    used = {short: needs(name) for short, name in libraries.items() if f"{short}." in code}
    y = mean + 0.8 * rng.normal(size=n)
    known = {
        "howsure": howsure,
        "np": np,
        "stats": stats,
        "y": y,
        "X": mean[:, None],
        "point": mean,
        "mean": mean,
        "sd": sd,
        "lower": lower,
        "upper": upper,
        "ends": np.stack([np.stack([mean - 1, lower], 1), np.stack([mean + 1, upper], 1)], 1),
        "quantiles": np.column_stack([lower, mean, upper]),
        "samples": samples,
        "chains": samples.T[None],
        "square": rng.normal(size=(n, n)),
        "names": ["cat", "dog", "emu"],
        "label": np.array(["cat", "dog", "emu", "dog"] * (n // 4)),
        "proba": np.tile([0.2, 0.5, 0.3], (n, 1)),
        "members": np.tile([True, True, False], (n, 1)),
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of other libraries
        return known | used | models(code, mean[:, None], y)


def test_the_page_holds_lines() -> None:
    assert len(READ) > 25
    assert len(REFUSED) > 10
    assert len(READ) + len(REFUSED) == len(ROWS)


@pytest.mark.parametrize(("code", "kind"), READ, ids=[code for code, _ in READ])
@pytest.mark.rate
@pytest.mark.few_draws
def test_what_is_passed_is_read_as_the_page_says(code: str, kind: str) -> None:
    result = eval(code, held(code))  # the page's own words
    if kind.startswith("models "):
        assert {record.model for record in result.records} == set(re.split(r", | ", kind)[1:])
    else:
        assert result.facts["Predictions"] == kind


@pytest.mark.parametrize(("code", "asked"), REFUSED, ids=[code for code, _ in REFUSED])
def test_what_leaves_doubt_is_refused_as_the_page_says(code: str, asked: str) -> None:
    with pytest.raises(InputError, match=re.escape(asked)):
        eval(code, held(code))  # the page's own words
