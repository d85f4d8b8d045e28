"""Published numbers of real predictions, reproduced."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from pyarrow import csv

from howsure.engine.measure import evaluate
from howsure.inputs import load
from howsure.predictions import Distribution, EvalSet, Intervals
from howsure.topics.compare import standing
from howsure.topics.groups import assess_groups
from howsure.verdict.family import judge

Find = Callable[[str], Path]

CHEMISTRY = {
    "Diffusion_RF_Test": "PAL2022__Diffusion_RF_Test",
    "Perovskite_RF_Test": "PAL2022__Perovskite_RF_Test",
    "Diffusion_LR_Test": "PAL2022__Diffusion_LR_Test",
    "Perovskite_LR_Test": "PAL2022__Perovskite_LR_Test",
    "Diffusion_GPR_Bayesian_Test": "PAL2022__Diffusion_GPR_Bayesian_Test",
    "Perovskite_GPR_Bayesian_Test": "PAL2022__Perovskite_GPR_Bayesian_Test",
    "logP_150k_LS-GCN_test": "RAS2023__logP_150k_LS-GCN_test",
}


def chemistry(folder: Path, name: str) -> EvalSet:
    """Errors with their predicted standard deviations."""
    stem = CHEMISTRY[name]
    if stem.startswith("RAS"):
        table = csv.read_csv(folder / f"{stem}.csv.gz")
        y, mean, sd = (table[c].to_numpy() for c in ("logP", "y_pred", "uq"))
        return EvalSet.checked(y, Distribution.normal(mean, sd))
    table = csv.read_csv(folder / f"{stem}_cal.csv.gz")
    error, sd = table["E"].to_numpy(), table["uE"].to_numpy()
    real = sd > 1e-6  # the author leaves out rows whose sd is zero but for rounding: 2 and 18 rows
    return EvalSet.checked(error[real], Distribution.normal(np.zeros(real.sum()), sd[real]))


@pytest.mark.parametrize("name", CHEMISTRY)
def test_chemistry_scores_of_the_author(data_dir: Find, name: str) -> None:
    folder = data_dir("preds_chem_pernot")
    expected = csv.read_csv(folder / "expected_zetaScores_2024_RCE.csv").to_pylist()
    row = next(item for item in expected if item["set"] == name)
    metrics = ["mean_squared_z", "relative_calibration_error", "spearman"]
    found = {r.metric: r for r in evaluate(chemistry(folder, name), metrics=metrics).records}
    assert found["mean_squared_z"].value == pytest.approx(row["ZMS"], abs=1e-12)
    assert found["relative_calibration_error"].value == pytest.approx(row["RCE"], abs=1e-12)
    assert found["spearman"].value == pytest.approx(row["CC"], abs=1e-12)


def test_chemistry_intervals_agree_with_the_bootstrap_of_the_author(data_dir: Find) -> None:
    """The 95 % intervals of ZMS lie near the author's BCa intervals, where tails permit any."""
    folder = data_dir("preds_chem_pernot")
    withheld = {"Perovskite_RF_Test", "Perovskite_GPR_Bayesian_Test", "logP_150k_LS-GCN_test"}
    for row in csv.read_csv(folder / "expected_scores_2024_RCE.csv").to_pylist():
        if row["set"] not in CHEMISTRY:
            continue
        record = evaluate(chemistry(folder, row["set"]), metrics=["mean_squared_z"]).records[0]
        assert ("too heavy-tailed" in record.reason) == (row["set"] in withheld)
        if row["set"] in withheld:
            assert math.isnan(record.lower)
            continue
        width = row["ZMS_ci_hi"] - row["ZMS_ci_lo"]
        assert abs(record.lower - row["ZMS_ci_lo"]) < 0.25 * width
        assert abs(record.upper - row["ZMS_ci_hi"]) < 0.25 * width


def test_traffic_like_series(data_dir: Find) -> None:
    path = data_dir("preds_ucc_uq360") / "sample_predict.csv.gz"
    held = load(path, y="actual", point="pred", lower="lb", upper="ub").evalsets[0]
    for rows, miss in ((slice(0, 500), 0.3320), (slice(510, 830), 0.353125)):
        part = held.take(np.arange(held.n)[rows])
        found = {r.metric: r for r in evaluate(part).records}
        assert found["miss_rate"].value == pytest.approx(miss, abs=1e-12)
    band = found["bandwidth"].value / float(np.std(part.y))
    assert band == pytest.approx(0.2632, abs=5e-5)
    assert "unknown" in found["interval_score"].reason


def test_poverty_predictions_lose_coverage_out_of_country(data_dir: Find) -> None:
    """A 90 % band fitted in-country covers less in countries that the model never saw."""
    folder = data_dir("preds_poverty_africa")
    inside, outside = (_poverty(folder / f"dhs_{name}.csv.gz") for name in ("incountry", "ooc"))
    half = np.arange(inside.n) % 2 == 0
    factor = _conformal_factor(inside.take(np.flatnonzero(half)))
    seen: dict[str, float] = {}
    for name, held in (("in", inside), ("out", outside)):
        test = _banded(held, factor).take(np.flatnonzero(~half))
        found = evaluate(test)
        record = next(r for r in found.records if r.metric == "empirical_coverage")
        seen[name] = record.value
        if name == "in":
            assert abs(record.value - 0.9) < 0.015
        groups = assess_groups(found)
        assert groups.table is not None
        seen[f"worst {name}"] = float(groups.table.columns["empirical_coverage"].min())
        differ = next(r for r in groups.records if r.metric == "groups_differ")
        assert differ.value < 0.001
    assert seen["out"] < seen["in"] - 0.005
    assert seen["worst out"] < 0.85


def _poverty(path: Path) -> EvalSet:
    """Mean of the models as the forecast, their spread as the uncertainty."""
    table = csv.read_csv(path)
    models = [name for name in table.column_names if name.startswith(("Resnet", "Ridge"))]
    members = np.stack([table[name].to_numpy() for name in models], axis=1)
    return EvalSet.checked(
        table["label"].to_numpy(),
        Distribution.normal(members.mean(axis=1), members.std(axis=1, ddof=1)),
        groups={"country": np.array(table["country"].to_pylist())},
    )


def _conformal_factor(held: EvalSet) -> float:
    (prediction,) = held.predictions
    scores = np.sort(np.abs(held.y - prediction.point()) / prediction.sd())
    return float(scores[int(np.ceil(0.9 * (held.n + 1))) - 1])


def _banded(held: EvalSet, factor: float) -> EvalSet:
    (prediction,) = held.predictions
    mean, reach = prediction.point(), factor * prediction.sd()
    groups = {"country": held.groups["country"].values()}
    return EvalSet.checked(
        held.y, Intervals(mean - reach, mean + reach, coverage=0.9), point=mean, groups=groups
    )


def test_the_best_of_nine_forests_is_the_one_of_most_rows(data_dir: Find) -> None:
    table = csv.read_csv(data_dir("preds_chem_pernot") / "RAS2023__logP_RF_UQ_results.csv.gz")
    y = table["logP"].to_numpy()
    sizes = [name[3:] for name in table.column_names if name.startswith("uq_")]
    done = []
    for size in sizes:
        mean, sd = (table[f"{part}_{size}"].to_numpy() for part in ("y_pred", "uq"))
        held = EvalSet.checked(y, Distribution.normal(mean, np.maximum(sd, 1e-3)), model=size)
        done.append(evaluate(held, metrics=["crps"]))
    found = standing(done)
    assert found is not None
    assert list(found.models) == sorted(sizes, key=int, reverse=True)
    assert found.best.tolist() == [True] + 8 * [False]


def test_the_leader_of_four_hourly_forecasters_is_named(data_dir: Find) -> None:
    """Rentals of 17,000 hours, by day: the fourth beats all."""
    table = csv.read_csv(data_dir("shift_bike_hour") / "data.csv.gz")
    y = np.sqrt(table["cnt"].to_numpy().astype(float))
    lagged = {lag: y[168 - lag : -lag or None] for lag in (1, 24, 168)}
    y = y[168:]
    change = np.r_[0.0, np.diff(lagged[168])]
    points = {
        "hour before": lagged[1],
        "day before": lagged[24],
        "week before": lagged[168],
        "hour before and last week's change": lagged[1] + change,
    }
    laws = {
        name: Distribution.normal(point, np.full(len(y), (y - point).std()))
        for name, point in points.items()
    }
    sets = [
        EvalSet.checked(y, law, model=name, cluster=np.arange(len(y)) // 24)
        for name, law in laws.items()
    ]
    found = standing([evaluate(held, metrics=["crps"]) for held in sets])
    assert found is not None
    assert found.models[0] == "hour before and last week's change"
    assert found.best.tolist() == [True, False, False, False]
    told, _ = judge((), sets[0], comparison=found)
    assert told[0].sentence == (
        f"hour before and last week's change has the lowest CRPS; {found.models[1]}, "
        f"{found.models[2]} and {found.models[3]} are significantly worse."
    )
