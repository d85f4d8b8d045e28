"""The shift benchmark in a plan: what is trained, what is shared, and what comes out."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from extras import needs
from howsure.core.errors import HowsureWarning, InputError
from howsure.core.progress import subscribe
from howsure_studies.engine import (
    Plan,
    Store,
    combined,
    load_plan,
    run,
    study_of,
    survey,
    trials_of,
)
from howsure_studies.methods.deep.modules import train_module
from howsure_studies.shift import (
    SHIFT_METHODS,
    NetworkOutputs,
    ShiftResult,
    evaluate_shift,
    network_answers,
)
from howsure_studies.tasks import DataNotFoundError

needs("torch")

CELLS = {"world": "cells-gap", "train": 60, "val": 40, "test": 40}
TINY: dict[str, Any] = {
    "networks": 2,
    "members": 2,
    "epochs": 3,
    "warm_epochs": 1,
    "frozen_epochs": 1,
    "standardise": True,
    "backbone": {"name": "small", "widths": [4, 6]},
    "table_backbone": {"name": "mlp", "widths": [4]},
}


def plan_of(methods: Any, worlds: Any = None, folder: Path = Path(), **options: Any) -> Plan:
    return Plan(
        name="tiny",
        study="shift",
        worlds={"gap": CELLS} if worlds is None else worlds,
        methods=methods,
        options={**TINY, **options},
        folder=folder,
    )


def stage_counts(plan: Plan) -> Counter[str]:
    return Counter(trial.context["stage"] for trial in trials_of(plan))


@pytest.fixture(scope="module")
def ten(tmp_path_factory: pytest.TempPathFactory) -> tuple[Plan, Store]:
    """All ten methods on a few drawn images, run once."""
    plan = plan_of({key: key for key in SHIFT_METHODS})
    store = Store(tmp_path_factory.mktemp("store"))
    summary = run(plan, store)
    assert (summary.failed, summary.done) == (0, summary.trials)
    return plan, store


def test_networks_and_densities_are_shared_by_all_that_need_them() -> None:
    counts = stage_counts(plan_of({key: key for key in SHIFT_METHODS}))
    assert counts == {"network": 3 * 2, "density": 2 * 2, "method": 10}


def test_only_networks_of_quantiles_depend_on_the_coverage() -> None:
    methods = {key: key for key in ("conformal", "gaussian", "quantile")}
    assert stage_counts(plan_of(methods, coverages=[0.8, 0.9, 0.95]))["network"] == 2 + 2 + 3 * 2


def test_a_spectral_variation_has_networks_of_its_own() -> None:
    trials = trials_of(plan_of({"a": "gaussian_gmm", "b": "gaussian_gmm_spectral"}))
    plain, bound = (
        next(t for t in trials if t.labels.get("network") == name)
        for name in ("gaussian 0", "gaussian spectral 0")
    )
    assert plain.identity["training"]["backbone"]["spectral"] is None
    assert bound.identity["training"]["backbone"]["spectral"] == 3.0


def test_methods_need_their_networks_and_densities_need_theirs() -> None:
    trials = trials_of(plan_of({"a": "gaussian_gmm"}))
    by_stage = {
        stage: [t for t in trials if t.context["stage"] == stage]
        for stage in ("network", "density", "method")
    }
    networks = [t.address for t in by_stage["network"]]
    assert [t.needs for t in by_stage["density"]] == [(address,) for address in networks]
    wanted = {*networks, *(t.address for t in by_stage["density"])}
    assert set(by_stage["method"][0].needs) == wanted


def test_what_does_not_concern_a_network_leaves_its_address_alone() -> None:
    def networks(**options: Any) -> set[str]:
        trials = trials_of(plan_of({"a": "gaussian"}, **options))
        return {t.address for t in trials if t.context["stage"] == "network"}

    first = networks()
    assert networks(rule="conformal", coverages=[0.8], device="cpu") == first
    assert not networks(epochs=4) & first
    assert not networks(backbone={"name": "small", "widths": [4, 7]}) & first
    assert networks(networks=3) > first


def test_results_are_those_of_the_protocol_on_the_stored_networks(ten: tuple[Plan, Store]) -> None:
    plan, store = ten
    trials = {
        t.labels.get("network", ""): t for t in trials_of(plan) if t.context["stage"] == "network"
    }
    results = {r.method: r for r in combined(plan, survey(plan, store), store).results["gap"]}
    assert set(results) == set(SHIFT_METHODS)
    for key, method in SHIFT_METHODS.items():
        held = [store.arrays(trials[_name(method.network, k)].address) for k in range(2)]
        networks = [
            NetworkOutputs(
                outputs={p: a[f"outputs/{p}"] for p in ("val", "full")},
                features={p: a[f"features/{p}"] for p in ("train", "val", "full")},
                name=_name(method.network, k),
            )
            for k, a in enumerate(held)
        ]
        runs = [networks] if method.ensemble else [[one] for one in networks]
        y = {part: held[0][f"y/{part}"] for part in ("val", "full")}
        direct = [evaluate_shift(*network_answers(method, own, y)) for own in runs]
        wanted = ShiftResult(task="gap", method=key, coverage=0.9, rule="paper", runs=tuple(direct))
        _same(results[key], wanted)


def _name(kind: str, place: int) -> str:
    return f"quantile 0.9 {place}" if kind == "quantile" else f"{kind} {place}"


def _same(found: ShiftResult, wanted: ShiftResult) -> None:
    for measure in (
        "val_mae",
        "val_width",
        "test_empirical_coverage",
        "prediction_rate",
        "test_mae",
    ):
        np.testing.assert_array_equal(
            found.value(measure).by_run, wanted.value(measure).by_run, err_msg=measure
        )


def test_one_run_of_an_ensemble_takes_all_networks(ten: tuple[Plan, Store]) -> None:
    plan, store = ten
    results = {r.method: r for r in combined(plan, survey(plan, store), store).results["gap"]}
    assert len(results["gaussian"].runs) == 2
    assert len(results["gaussian_ensemble"].runs) == 1


def test_the_same_plan_again_has_nothing_to_do(ten: tuple[Plan, Store]) -> None:
    plan, store = ten
    again = run(plan, store)
    assert (again.done, again.skipped) == (0, again.trials)


def test_another_coverage_trains_only_networks_of_quantiles(ten: tuple[Plan, Store]) -> None:
    plan, store = ten
    more = replace(plan, options={**plan.options, "coverages": [0.8]})
    todo = [t for t in trials_of(more) if store.entry(t.address).status != "done"]
    stages = Counter(t.context["stage"] for t in todo)
    assert stages == {"network": 2, "method": 10}


def test_a_table_of_ones_own_and_a_method_of_ones_own(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    x, away = rng.normal(size=300), rng.random(300) < 0.3
    y = 2 * x + 5 * away + 0.1 * rng.normal(size=300)
    kind = np.where(away, "away", "home")
    lines = [f"{a},{k},{b}" for a, k, b in zip(x, kind, y, strict=True)]
    (tmp_path / "t.csv").write_text("\n".join(["x,where,y", *lines]) + "\n")
    table = {"table": "t.csv", "target": "y", "split_by": "where"}
    plan = plan_of({"line": "linear_t", "CP": "conformal"}, {"mine": table}, tmp_path, runs=2)
    assert stage_counts(plan) == {"network": 2, "method": 1, "own": 2}
    store = Store(tmp_path / "store")
    assert run(plan, store).failed == 0
    results = {r.method: r for r in combined(plan, survey(plan, store), store).results["mine"]}
    line = results["line"]
    assert line.value("test_empirical_coverage", "home").mean > 0.75
    assert line.value("test_empirical_coverage", "shift").mean < 0.05
    assert len(line.runs) == 2
    (tmp_path / "t.csv").write_text("x,where,y\n" + "\n".join(lines[:-1]) + "\n")
    assert {t.address for t in trials_of(plan)}.isdisjoint(store.addresses())


def test_a_selective_method_keeps_its_share_unless_the_plan_names_one(tmp_path: Path) -> None:
    rows = [f"{k % 60},{'ab'[k % 5 == 0]},{k % 7}" for k in range(600)]
    (tmp_path / "t.csv").write_text("\n".join(["x,where,y", *rows]) + "\n")
    table = {"table": "t.csv", "target": "y", "split_by": "where"}
    method = {"method": "selective", "inner": "linear_t", "share": 0.5}

    def result(**options: Any) -> ShiftResult:
        plan = plan_of({"half": method}, {"mine": table}, tmp_path, runs=1, **options)
        store = Store(tmp_path / "store")
        assert run(plan, store).failed == 0
        (one,) = combined(plan, survey(plan, store), store).results["mine"]
        return one

    half = result()
    assert half.share == 0.5
    assert abs(half.value("prediction_rate", "home").mean - 0.5) < 0.15
    assert result(share=0.9).share == 0.9


def test_a_table_that_changed_after_the_plan_was_read_is_told(tmp_path: Path) -> None:
    rows = [f"{k},{'ab'[k % 3 == 0]},{k}" for k in range(60)]
    file = tmp_path / "t.csv"
    file.write_text("\n".join(["x,where,y", *rows]) + "\n")
    table = {"table": "t.csv", "target": "y", "split_by": "where"}
    plan = plan_of({"line": "linear_t"}, {"mine": table}, tmp_path, runs=1)
    (trial,) = trials_of(plan)
    file.write_text("\n".join(["x,where,y", *rows[1:]]) + "\n")
    with pytest.raises(InputError, match="has changed since the plan was read"):
        study_of("shift").run(trial)


def test_training_that_was_cut_off_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = plan_of({"a": "gaussian"}, networks=1, epochs=6)
    saving = partial(train_module, every=0.0)
    monkeypatch.setattr("howsure_studies.shift.study.train_module", saving)
    whole, cut = Store(tmp_path / "whole"), Store(tmp_path / "cut")
    run(plan, whole)
    (trial,) = [t for t in trials_of(plan) if t.context["stage"] == "network"]
    told: list[int] = []

    def stop(stage: str, done: int, total: int) -> None:
        told.append(done)
        if done == 4:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), subscribe(stop):
        study_of("shift").run(trial, cut)
    scratch = cut.scratch(trial.address)
    assert scratch is not None
    assert scratch.exists()
    told.clear()
    with subscribe(lambda stage, done, total: told.append(done)):
        output = study_of("shift").run(trial, cut)
    assert told == [5, 6]
    cut.write(trial.address, trial.identity, output)
    assert not scratch.exists()
    wanted = whole.arrays(trial.address)
    for name, array in cut.arrays(trial.address).items():
        np.testing.assert_array_equal(array, wanted[name], err_msg=name)


def test_worlds_without_data_are_left_out_only_where_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOWSURE_DATA", str(tmp_path))
    worlds = {"gap": CELLS, "skin": "skin-lesion-pixels", "coast": "california"}
    with pytest.raises(DataNotFoundError, match="skin-lesion-pixels"):
        trials_of(plan_of({"a": "gaussian"}, worlds))
    with pytest.warns(HowsureWarning, match="not on this machine: skin, coast"):
        trials = trials_of(plan_of({"a": "gaussian"}, worlds, absent="skip"))
    assert {trial.labels["world"] for trial in trials} == {"gap"}
    with pytest.raises(DataNotFoundError, match="california"):
        trials_of(plan_of({"a": "gaussian"}, {"coast": "california"}, absent="skip"))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"options": {"networkz": 2}}, "near: networks"),
        ({"options": {"networks": 0}}, "networks must be a whole number"),
        ({"options": {"rule": "exact"}}, "rule must be"),
        ({"options": {"absent": "ignore"}}, "absent must be"),
        ({"options": {"epochs": 2, "warm_epochs": 2}}, "must leave epochs"),
        ({"options": {"coverages": 0.9}}, "coverages must be a list"),
        ({"options": {"backbone": "tiny"}}, "backbone must be one of"),
        ({"worlds": {"a": "cell"}}, "near: cells"),
        ({"worlds": {"a": {"world": "cells", "rows": 3}}}, "option of world 'a'"),
        ({"worlds": {"a": {"table": "t.csv", "target": "y"}}}, "split_by"),
        ({"methods": {"a": {"method": "gaussian", "k": 3}}}, "option of method 'a'"),
        ({"methods": {"a": "gausian"}}, "gausian"),
        (
            {"methods": {"a": {"method": "split_conformal", "coverages": [0.5]}}},
            r"coverages must be among those that .* gives \(0.5\), got 0.9",
        ),
    ],
)
def test_bad_plans_are_refused_before_anything_runs(change: Any, message: str) -> None:
    plan = plan_of({"a": "gaussian"})
    options = {**plan.options, **change.pop("options", {})}
    with pytest.raises(InputError, match=message):
        trials_of(replace(plan, **{"options": options, **change}))


def test_the_small_profile_trains_ninety_networks() -> None:
    counts = stage_counts(load_plan("shift_small"))
    assert counts == {"network": 6 * 15, "density": 6 * 15, "method": 6 * 11, "own": 6 * 3}
