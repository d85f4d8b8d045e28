"""How libraries write intervals and distributions: as the numbers that were written, or refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import howsure
from extras import needs
from howsure.core.errors import InputError
from howsure.core.rng import child
from howsure.inputs import explain, load
from howsure.predictions import Samples

N = 30
RNG = child(0, "dialects")
MEAN = RNG.normal(size=N).round(3)
Y = (MEAN + RNG.normal(size=N)).round(3)


# ---- statsmodels ---------------------------------------------------------------------------------


def regression() -> tuple[Any, Any]:
    api = needs("statsmodels.api")
    x = np.column_stack([np.ones(N), MEAN])
    return api, x


def test_intervals_of_y_are_not_those_of_its_mean() -> None:
    api, x = regression()
    frame = api.OLS(Y, x).fit().get_prediction(x).summary_frame(alpha=0.1)
    for result in (
        howsure.assess(Y, frame, coverage=0.9, options=howsure.Options(trials=False)),
        howsure.assess(frame.assign(y=Y), coverage=0.9, options=howsure.Options(trials=False)),
    ):
        inside = (frame["obs_ci_lower"] <= Y) & (frame["obs_ci_upper"] >= Y)
        assert result.value("empirical_coverage") == pytest.approx(inside.mean())
        assert result.value("mae") == pytest.approx(np.abs(Y - frame["mean"]).mean())
    told = {use.column: use.note for use in explain(frame.assign(y=Y))}
    assert told["mean_ci_lower"] == "of the mean of y; for y itself use obs_ci"
    assert told["obs_ci_lower"].startswith("howsure.Table(…, coverage=0.95), s")
    with pytest.raises(InputError, match=r"pass coverage=0\.95, summary_frame's default"):
        howsure.assess(Y, frame)


def test_intervals_that_may_be_of_the_mean_are_never_taken_silently() -> None:
    api, x = regression()
    frame = api.GLM(Y, x).fit().get_prediction(x).summary_frame()
    with pytest.raises(InputError, match="may be intervals of the mean of y") as refused:
        howsure.assess(Y, frame)
    assert "(prediction['mean_ci_lower'], prediction['mean_ci_upper'])" in str(refused.value)
    table = frame.assign(y=Y)
    with pytest.raises(InputError, match=r"then pass .*lower=''"):
        load(table)
    (alone,) = load(table, lower="").evalsets
    assert alone.predictions == ()
    (held,) = load(table, lower="mean_ci_lower", upper="mean_ci_upper", coverage=0.95).evalsets
    assert held.predictions[0].coverages == (0.95,)
    (spread,) = load(table, sd="mean_se").evalsets
    assert np.allclose(spread.predictions[0].parameters["scale"], frame["mean_se"])


# ---- Prophet -------------------------------------------------------------------------------------


def prophet_frame() -> dict[str, Any]:
    days = np.arange("2024-01-01", N, dtype="datetime64[D]")
    zero = np.zeros(N)
    return {
        "ds": days,
        "trend": MEAN,
        "yhat_lower": MEAN - 1,
        "yhat_upper": MEAN + 1,
        "trend_lower": MEAN,
        "trend_upper": MEAN,
        "weekly": zero,
        "weekly_lower": zero,
        "weekly_upper": zero,
        "yhat": MEAN,
    }


def test_a_forecast_of_prophet_beside_y_and_with_y() -> None:
    pd = needs("pandas")
    frame = pd.DataFrame(prophet_frame())
    share = (np.abs(Y - MEAN) <= 1).mean()
    beside = howsure.assess(Y, frame, coverage=0.8, options=howsure.Options(trials=False))
    whole = howsure.assess(frame.assign(y=Y), coverage=0.8, options=howsure.Options(trials=False))
    for result in (beside, whole):
        assert result.value("empirical_coverage") == pytest.approx(share)
    assert "not read: trend, trend_lower, trend_upper, weekly" in beside.facts["Reading"]
    told = {use.column: (use.role, use.note) for use in explain(frame.assign(y=Y))}
    assert told["ds"] == ("time", "")
    assert told["weekly_upper"] == ("ignored", "a component of Prophet's forecast")
    assert (
        told["yhat_lower"][1] == "howsure.Table(…, coverage=0.8), Prophet's default interval_width"
    )
    with pytest.raises(InputError, match=r"pass coverage=0\.8, Prophet's default interval_width"):
        howsure.assess(Y, frame)


# ---- tidybayes -----------------------------------------------------------------------------------

WIDTHS = {0.5: 0.7, 0.9: 1.6}


def tidy(widths: dict[float, float], value: str = ".prediction") -> list[dict[str, Any]]:
    return [
        {
            **{".row": row + 1, "y": Y[row], value: MEAN[row]},
            **{".lower": MEAN[row] - half, ".upper": MEAN[row] + half, ".width": width},
            **{".point": "median", ".interval": "qi"},
        }
        for width, half in widths.items()
        for row in range(N)
    ]


def table_of(rows: list[dict[str, Any]]) -> dict[str, list[Any]]:
    return {name: [row[name] for row in rows] for name in rows[0]}


def as_csv(path: Path, table: dict[str, Any]) -> Path:
    import csv

    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(table)
        writer.writerows(zip(*table.values(), strict=True))
    return path


@pytest.mark.parametrize("shuffled", [False, True])
def test_a_row_for_each_width_becomes_a_row_for_each_case(tmp_path: Path, shuffled: bool) -> None:
    rows = tidy(WIDTHS)
    if shuffled:
        child(0, "dialects", "shuffled").shuffle(rows)
    for source in (table_of(rows), as_csv(tmp_path / "tidy.csv", table_of(rows))):
        loaded = load(source)
        (held,) = loaded.evalsets
        assert held.n == N
        order = np.argsort(np.asarray(held.row_names(), dtype=int))
        assert np.allclose(held.y[order], Y)
        (intervals,) = held.predictions
        assert intervals.coverages == (0.5, 0.9)
        for k, half in enumerate(WIDTHS.values()):
            assert np.allclose(intervals.lower[order, k], MEAN - half)
            assert np.allclose(intervals.upper[order, k], MEAN + half)
        assert "60 rows as 30 cases" in loaded.facts["Reading"]


def test_one_width_is_the_coverage() -> None:
    (held,) = load(table_of(tidy({0.9: 1.6}))).evalsets
    assert held.predictions[0].coverages == (0.9,)
    assert held.n == N


def test_bad_widths_are_refused() -> None:
    with pytest.raises(InputError, match=r"one row for each of the widths 0.5, 0.9; 1 of 30"):
        load(table_of(tidy(WIDTHS)[1:]))
    with pytest.raises(
        InputError, match=r"'\.width' must contain coverages between 0 and 1, got 90"
    ):
        load(table_of(tidy({90: 1.6})))
    with pytest.raises(InputError, match=r"the intervals with '\.epred' are of the mean of y"):
        load(table_of(tidy(WIDTHS, ".epred")))


@pytest.mark.parametrize("name", [".epred", ".linpred", ".value"])
def test_draws_of_the_mean_are_not_read_as_draws_of_y(name: str) -> None:
    draws = {".draw": np.tile(np.arange(20), N), ".row": np.repeat(np.arange(N), 20)}
    draws |= {"y": np.repeat(Y, 20), name: np.repeat(MEAN, 20)}
    for said in ({}, {"point": name}, {"sample_id": ".draw"}):
        with pytest.raises(InputError, match=f"draws in '{name}' are of the mean .* add_predicted"):
            load(draws, **said)
    (held,) = load({**draws, ".prediction": draws[name]}).evalsets
    assert isinstance(held.predictions[0], Samples)


# ---- fable and distributional --------------------------------------------------------------------


def fable(**more: Any) -> dict[str, Any]:
    return {
        ".model": ["ets"] * N,
        "demand": [f"N({mean:.3f}, 2.25)" for mean in MEAN],
        ".mean": MEAN,
        "actual": Y,
        **more,
    }


def hilo(half: float, percent: int) -> list[str]:
    return [f"[{mean - half:.6f}, {mean + half:.6f}]{percent}" for mean in MEAN]


def test_the_second_number_of_a_printed_normal_distribution_is_its_variance(tmp_path: Path) -> None:
    for source in (fable(), as_csv(tmp_path / "fable.csv", fable())):
        loaded = load(source)
        (held,) = loaded.evalsets
        assert np.allclose(held.predictions[0].parameters["loc"], MEAN)
        assert np.allclose(held.predictions[0].parameters["scale"], 1.5)
        assert "the second number of N(" in loaded.facts["Reading"]
        assert "as the variance; text has few digits" in loaded.facts["Reading"]


def test_printed_intervals_are_unpacked() -> None:
    table = {"y": Y, "80%": hilo(1.2, 80), "95%": hilo(1.9, 95)}
    (held,) = load(table).evalsets
    (intervals,) = held.predictions
    assert intervals.coverages == (0.8, 0.95)
    assert np.allclose(intervals.upper, MEAN[:, None] + [1.2, 1.9], atol=1e-6)


def test_plain_quantiles_called_by_percent_stay_quantiles() -> None:
    (held,) = load({"y": Y, "5%": MEAN - 1, "95%": MEAN + 1, "note": ["N/A (x)"] * N}).evalsets
    assert list(held.predictions[0].levels) == [0.05, 0.95]


def test_missing_and_broken_cells() -> None:
    cells = hilo(1.9, 95)
    with pytest.raises(InputError, match=r"cells such as \[1.2, 3.4\]95, got 'oops' at row 3"):
        load({"y": Y, "95%": [*cells[:3], "oops", *cells[4:]]})
    gone = {"y": Y, "95%": [*cells[:3], None, *cells[4:]]}
    with pytest.raises(InputError, match=r"missing: 1 in 'lower_0\.95' \(first at row 3\)"):
        load(gone)
    assert load(gone, missing="drop").evalsets[0].n == N - 1
    with pytest.raises(InputError, match="must contain intervals of one coverage, got '80', '95'"):
        load({"y": Y, "95%": [*cells[:-1], hilo(1.2, 80)[-1]]})


@pytest.mark.parametrize("cell", ["t(N(3, 1))", "sample[5000]", "Pois(3)"])
def test_other_printed_distributions_are_refused(cell: str) -> None:
    with pytest.raises(
        InputError, match="is not a normal one: in R, write its quantiles, intervals"
    ):
        load(fable(demand=[cell] * N))


def test_a_printed_table_is_shown_by_lines(tmp_path: Path) -> None:
    cells = hilo(1.9, 95)
    path = as_csv(tmp_path / "t.csv", {"y": Y, "95%": [*cells[:3], "oops", *cells[4:]]})
    with pytest.raises(InputError, match="'oops' at line 5"):
        load(path)


def test_two_columns_of_distributions_are_refused() -> None:
    table = fable(other=[f"N({mean:.3f}, 1)" for mean in MEAN])
    with pytest.raises(InputError, match="'demand', 'other' define mean and sd more than once"):
        load(table)
