"""Columns that are named after models: nixtla's frames, and prefixes or suffixes that are alike."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import howsure
from extras import needs
from howsure.core.errors import InputError
from howsure.inputs import explain, load, load_new, write_table
from howsure.inputs.columns import assign_roles
from howsure.predictions import Distribution, Intervals, Quantiles

RNG = np.random.default_rng(3)
N = 30
Y = RNG.normal(size=N)


def frame(*models: str, ids: Any = ("a", "b"), coverages: Any = (90, 50), **beside: Any) -> Any:
    """A frame as nixtla's libraries write it: the further the model, the wider its intervals."""
    table: dict[str, Any] = {
        "unique_id": np.repeat(ids, N // len(ids)),
        "ds": [f"2024-01-{1 + k % (N // len(ids)):02d}" for k in range(N)],
        "cutoff": ["2023-12-31"] * N,
        "y": Y,
    }
    for place, model in enumerate(models):
        table[model] = Y + place
        for coverage in coverages:
            table[f"{model}-lo-{coverage}"] = Y - place - float(coverage) / 50
            table[f"{model}-hi-{coverage}"] = Y + place + float(coverage) / 50
    return table | beside


@pytest.mark.parametrize("ending", [".csv", ".parquet", "mapping"])
def test_a_frame_of_nixtla_is_several_models(tmp_path: Path, ending: str) -> None:
    table = frame("LGBM", "ETS", ids=tuple("abcdefghij"))
    source: Any = table
    if ending != "mapping":
        source = tmp_path / f"cv{ending}"
        write_table(table, source)
    loaded = load(source)
    assert [made.model for made in loaded.evalsets] == ["LGBM", "ETS"]
    for place, made in enumerate(loaded.evalsets):
        (held,) = made.predictions
        assert isinstance(held, Intervals)
        assert sorted(held.coverages) == [0.5, 0.9]
        at = list(held.coverages).index(0.9)
        np.testing.assert_allclose(held.upper[:, at], Y + place + 1.8)
        np.testing.assert_allclose(held.lower[:, at], Y - place - 1.8)
        np.testing.assert_array_equal(made.point, Y + place)
        np.testing.assert_array_equal(made.y, Y)
        assert made.time is not None
        assert made.cluster is not None
        assert made.cluster.labels.tolist() == list("abcdefghij")
    uses = {use.column: (use.role, use.note) for use in loaded.explanation}
    assert len(uses) == len(table) == len(loaded.explanation)
    assert uses["ETS"][0] == "point forecast of ETS"
    assert uses["LGBM-hi-50"][0] == "upper end at 50 % of LGBM"
    assert uses["cutoff"][0] == "cutoff"
    assert uses["unique_id"][0] == "cluster, series"
    assert loaded.explanation == explain(source)


def test_one_series_is_no_cluster() -> None:
    loaded = load(frame("LGBM", ids=("a",)))
    (made,) = loaded.evalsets
    assert made.model == "LGBM"
    assert made.cluster is None
    assert {use.column: use.note for use in loaded.explanation}["unique_id"].startswith(
        "only one series"
    )


def test_few_series_are_groups() -> None:
    loaded = load(frame("LGBM", ids=("a", "b")))
    (made,) = loaded.evalsets
    assert made.cluster is None
    assert list(made.groups) == ["unique_id"]
    (use,) = (use for use in loaded.explanation if use.column == "unique_id")
    assert (use.role, use.note[:9]) == ("group, series", "2 series,")
    assert load(frame("LGBM"), cluster="unique_id").evalsets[0].cluster is not None


def test_forecasts_of_two_models_beside_y() -> None:
    table = frame("LGBM", "ETS")
    y = table.pop("y")
    result = howsure.assess(y, table, options=howsure.Options(trials=False))
    assert {record.model for record in result.records} == {"LGBM", "ETS"}
    both = howsure.assess(
        {"y": y, **table}, groups="", time="", options=howsure.Options(trials=False)
    )
    assert result.value("mean_width", model="ETS") == both.value("mean_width", model="ETS")
    assert "unique_id, ds, cutoff are not used" in result.facts["Reading"]


def test_names_of_neuralforecast() -> None:
    table = frame("NHITS", coverages=("90.0", "99.5"))
    table["NHITS-median"] = table.pop("NHITS")
    (made,) = load(table).evalsets
    intervals, median = made.predictions
    assert isinstance(intervals, Intervals)
    assert sorted(intervals.coverages) == [0.9, 0.995]
    assert isinstance(median, Quantiles)
    assert median.levels.tolist() == [0.5]
    table = {"unique_id": ["a"] * N, "ds": range(N), "y": Y}
    table |= {f"MLP-ql{level}": Y + level for level in (0.05, 0.5, 0.95)}
    (made,) = load(table).evalsets
    (held,) = made.predictions
    assert isinstance(held, Quantiles)
    assert held.levels.tolist() == [0.05, 0.5, 0.95]
    np.testing.assert_allclose(held.values[:, 2], Y + 0.95)


def test_a_user_sees_both_models_compared() -> None:
    result = howsure.assess(
        frame("LGBM", "ETS", ids=tuple("abcdefghij")), options=howsure.Options(trials=False)
    )
    assert {record.model for record in result.records} == {"LGBM", "ETS"}


def test_the_library_itself() -> None:
    pd = needs("pandas")
    forecast = needs("mlforecast")
    from mlforecast.utils import PredictionIntervals
    from sklearn.linear_model import LinearRegression, Ridge

    days = pd.date_range("2022-01-01", periods=80)
    y = np.sin(np.arange(80) / 5) + RNG.normal(size=80) * 0.3
    rows = pd.concat([pd.DataFrame({"unique_id": u, "ds": days, "y": y}) for u in "ab"])
    models = {"ols": LinearRegression(), "ridge": Ridge(10)}
    made = forecast.MLForecast(models=models, freq="D", lags=[1, 7])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tried = made.cross_validation(
            rows,
            n_windows=3,
            h=5,
            prediction_intervals=PredictionIntervals(n_windows=2, h=5),
            level=[50, 90],
        )
    ols, ridge = load(tried).evalsets
    assert (ols.model, ridge.model) == ("ols", "ridge")
    (held,) = ridge.predictions
    assert isinstance(held, Intervals)
    at = list(held.coverages).index(0.9)
    np.testing.assert_array_equal(held.upper[:, at], tried["ridge-hi-90"])
    np.testing.assert_array_equal(ols.point, tried["ols"])


@pytest.mark.parametrize("mark", ["_", "-", ".", " "])
@pytest.mark.parametrize("first", [True, False])
def test_names_that_are_alike_are_several_models(mark: str, first: bool) -> None:
    def name(model: str, part: str) -> str:
        return f"{model}{mark}{part}" if first else f"{part}{mark}{model}"

    table: dict[str, Any] = {"y": Y, "region": ["n"] * N}
    for width, model in enumerate(("ridge", "grad_boost"), 1):
        table |= {name(model, "lower_90"): Y - width, name(model, "upper_90"): Y + width}
        table |= {name(model, "pred"): Y}
    ridge, boost = load(table, groups="region").evalsets
    assert (ridge.model, boost.model) == ("ridge", "grad_boost")
    (held,) = boost.predictions
    assert isinstance(held, Intervals)
    assert held.coverages == (0.9,)
    np.testing.assert_array_equal(held.upper[:, 0], Y + 2)
    assert boost.point is not None


def test_means_and_sds_of_several_models() -> None:
    table = {"y": Y, "a_mean": Y, "a_sd": Y * 0 + 1, "b_mean": Y + 1, "b_sd": Y * 0 + 2}
    first, second = load(table).evalsets
    assert (first.model, second.model) == ("a", "b")
    (law,) = second.predictions
    assert isinstance(law, Distribution)
    np.testing.assert_array_equal(law.sd(), Y * 0 + 2)
    np.testing.assert_array_equal(law.point(), Y + 1)


def test_a_coverage_that_is_told_is_that_of_each() -> None:
    names = [f"{m}_{end}" for m in ("ridge", "net") for end in ("lower", "upper")]
    table = {"y": Y} | {n: Y + (1 if n.endswith("upper") else -1) for n in names}
    for made in load(table, coverage=0.8).evalsets:
        (held,) = made.predictions
        assert isinstance(held, Intervals)
        assert held.coverages == (0.8,)


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (
            "y a_lower_90 a_upper_90 b_lower_90 b_upper_90 c_lower_90",
            r"suggest the models 'a', 'b', 'c', but 'c' has no 'upper_90': add the columns or "
            r"drop the model, or pass .*lower=COLUMN, upper=COLUMN, coverage=0.9\) of one",
        ),
        (
            "y LGBM LGBM-lo-90 LGBM-hi-80 LGBM-hi-90",
            r"columns of the model 'LGBM' \('LGBM', 'LGBM-lo-90', .*\): column 'upper_0.8' looks "
            r"like the upper end of intervals, but the other end is missing",
        ),
        ("y temp_mean temp_sd", "No prediction column found"),
        ("y temp_mean hum_mean", "No prediction column found"),
        ("y a_mean a_sd b_lower b_upper", "No prediction column found"),
        ("y a_mean a_sd b_mean b_sd", "only one model can be used here, .* suggest 2: 'a', 'b'"),
    ],
)
def test_what_leaves_doubt_is_told(names: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        assign_roles(names.split())


@pytest.mark.parametrize(
    "names", ["y pred LGBM-lo-90 LGBM-hi-90", "y mu sigma a_mean a_sd b_mean b_sd"]
)
def test_a_prediction_without_a_models_name_goes_before(names: str) -> None:
    assert not assign_roles(names.split()).model


def test_what_the_caller_says_goes_before() -> None:
    roles = assign_roles([*frame("LGBM", "ETS")], {"point": "LGBM"})
    assert (roles["point"], roles["lower"], roles.model) == (("LGBM",), (), "")


def test_new_rows_of_one_model_are_read_and_of_several_refused() -> None:
    table = {name: column for name, column in frame("LGBM").items() if name != "y"}
    assert load_new(table).evalset.predictions[0].upper.shape == (N, 2)  # type: ignore[attr-defined]
    with pytest.raises(InputError, match=r"only one model can be used here, .* 'LGBM', 'ETS'"):
        load_new(frame("LGBM", "ETS"))


def test_frames_of_several_files_keep_their_names_apart(tmp_path: Path) -> None:
    for name in ("one", "two"):
        write_table(frame("LGBM", "ETS"), tmp_path / f"{name}.csv")
    made = load([tmp_path / "one.csv", tmp_path / "two.csv"]).evalsets
    assert [each.model for each in made] == ["one/LGBM", "one/ETS", "two/LGBM", "two/ETS"]


def test_a_cutoff_says_how_far_ahead_rows_were_predicted() -> None:
    table = frame("LGBM", ids=tuple("abcdefghij"))
    (made,) = load(table).evalsets
    assert made.horizon is not None
    np.testing.assert_array_equal(made.horizon, np.tile(np.arange(1.0, N // 10 + 1), 10))
    assert made.series is not None
    assert made.series.labels.tolist() == list("abcdefghij")


def test_a_horizon_is_guessed_where_it_holds_numbers() -> None:
    table = {"y": Y, "lower": Y - 1, "upper": Y + 1, "horizon": np.arange(N)}
    (made,) = load(table, coverage=0.9).evalsets
    assert made.horizon is not None
    named = load(table | {"horizon": ["topsoil"] * N}, coverage=0.9)
    assert named.evalsets[0].horizon is None
    assert {use.column: use.note for use in named.explanation}["horizon"] == (
        "cells that are not numbers"
    )
    with pytest.raises(InputError, match="'horizon' must contain numbers"):
        load(table | {"horizon": ["topsoil"] * N}, coverage=0.9, horizon="horizon")


def test_a_frame_of_autogluon_has_its_series_and_times() -> None:
    table: dict[str, Any] = {
        "item_id": np.repeat(["a", "b", "c"], N // 3),
        "timestamp": [f"2024-01-{1 + k % (N // 3):02d}" for k in range(N)],
        "target": Y,
        "mean": Y + 0.1,
        **{f"0.{k}": Y + k / 10 - 0.5 for k in range(1, 10)},
    }
    loaded = load(table)
    (made,) = loaded.evalsets
    (prediction,) = made.predictions
    assert isinstance(prediction, Quantiles)
    np.testing.assert_allclose(prediction.levels, np.arange(1, 10) / 10)
    assert made.series is not None
    assert made.series.labels.tolist() == ["a", "b", "c"]
    assert made.time is not None
    assert made.horizon is None
    uses = {use.column: use.role for use in loaded.explanation}
    assert (uses["item_id"], uses["timestamp"], uses["target"]) == ("series", "time", "y")


@pytest.mark.parametrize(
    ("cutoff", "message"),
    [
        (np.arange(N) + 1, r"cutoff must not be after time; got 1 for a row of 0 \(first at row 0"),
        (["2024-01-01"] * N, "cutoff and time must be of the same type"),
    ],
)
def test_a_cutoff_that_is_none_is_refused(cutoff: Any, message: str) -> None:
    table = {"y": Y, "lower": Y - 1, "upper": Y + 1, "time": np.arange(N), "c": cutoff}
    with pytest.raises(InputError, match=message):
        load(table, coverage=0.9, cutoff="c")
