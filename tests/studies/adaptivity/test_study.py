"""Comparisons of adaptivity through bench: trials, what a store keeps, and what comes back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from howsure.core.errors import InputError
from howsure.studies.adaptivity import (
    AdaptivityStudy,
    compare_intervals,
    compare_label_sets,
    forest_task,
    given_probabilities,
)
from howsure.studies.engine import Plan, Store, combined, run, survey, trials_of
from howsure.studies.tasks.worlds import world_named


def softmax_file(folder: Path) -> Path:
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.full(5, 0.4), 400)
    y = (p.cumsum(axis=1) > rng.random(400)[:, None]).argmax(axis=1)
    path = folder / "outputs.npz"
    np.savez(path, predictions=p, ground_truth=y)
    return path


def plan(folder: Path, **changes: Any) -> Plan:
    given: dict[str, Any] = {
        "name": "test",
        "study": "adaptivity",
        "worlds": {"fan": "fan", "images": {"softmax": "outputs.npz"}},
        "methods": {"cp": "CP", "O-CPA": "O-CPA", "lac": "LAC", "APS": "APS"},
        "options": {
            **{"coverages": [0.7, 0.8], "repeats": 2, "rows": 300, "n_train": 120},
            **{"bins": 5, "groups": 3, "trees": 30},
        },
        "folder": folder,
    }
    return Plan(**{**given, **changes})


def test_what_comes_back_is_what_the_protocol_gives(tmp_path: Path) -> None:
    path = softmax_file(tmp_path)
    told = plan(tmp_path)
    store = Store(tmp_path / "store")
    summary = run(told, store)
    assert (summary.done, summary.failed) == (4, 0)
    found = combined(told, survey(told, store), store)
    world = world_named("fan")
    training, rest = world.training_set(0, 0, 120, n_test=300), world.test_set(0, 300)
    task = forest_task((training.x, training.y), (rest.x, rest.y), trees=30)
    by_hand = compare_intervals(
        task, coverages=(0.7, 0.8), methods=("CP", "O-CPA"), repeats=2, bins=5, groups=3
    )
    with np.load(path) as held:
        p = held["predictions"] / held["predictions"].sum(axis=1, keepdims=True)
        images = given_probabilities(p[:300], held["ground_truth"][:300])
    sets = compare_label_sets(
        images, coverages=(0.7, 0.8), methods=("LAC", "APS"), repeats=2, bins=5
    )
    for name, wanted in (("fan", by_hand), ("images", sets)):
        for given, expected in zip(found.results[name], wanted, strict=True):
            np.testing.assert_array_equal(given.values, expected.values)
            assert given.floor.median == expected.floor.median
            assert (given.coverage, given.bins, given.test_rows, given.units, given.surrogate) == (
                *(expected.coverage, expected.bins, expected.test_rows),
                *(expected.units, expected.surrogate),
            )
            assert given.task == name
    first = found.results["fan"][0]
    assert first.methods == ("cp", "O-CPA")
    assert first.reasons["cp", "t_ss"] == by_hand[0].reasons["CP", "t_ss"]
    table = found.table.to_pylist()
    (row,) = [
        r
        for r in table
        if (r["world"], r["method"], r["metric"], r["coverage"]) == ("fan", "cp", "width", 0.8)
    ]
    assert row["value"] == first.__class__.median(found.results["fan"][1], "width")[0]
    assert set(AdaptivityStudy.headline) <= {r["metric"] for r in table}


def test_only_methods_that_fit_a_world_are_run(tmp_path: Path) -> None:
    softmax_file(tmp_path)
    labels = [trial.labels for trial in trials_of(plan(tmp_path))]
    assert [tuple(told.values()) for told in labels] == [
        ("fan", "cp"),
        ("fan", "O-CPA"),
        ("images", "lac"),
        ("images", "APS"),
    ]
    with pytest.raises(InputError, match="fits one of its worlds"):
        trials_of(plan(tmp_path, worlds={"fan": "fan"}, methods={"lac": "LAC"}))


def test_all_that_decides_an_outcome_enters_the_address(tmp_path: Path) -> None:
    softmax_file(tmp_path)

    def addresses(**changes: Any) -> list[str]:
        return [trial.address for trial in trials_of(plan(tmp_path, **changes))]

    first = addresses()
    assert addresses(methods={"a": "CP", "b": "O-CPA", "c": "LAC", "d": "APS"}) == first
    options = plan(tmp_path).options
    for key, value in (("bins", 6), ("repeats", 3), ("rows", 200), ("coverages", [0.8])):
        assert not set(addresses(options={**options, key: value})) & set(first)
    changed = addresses(options={**options, "trees": 40})
    assert changed[2:] == first[2:]
    assert not set(changed[:2]) & set(first)
    again = addresses(methods={"a": {"method": "CP", "revision": 2}, "b": "O-CPA"})
    assert again[0] != first[0]
    assert again[1] == first[1]


def test_softmax_that_changes_is_told(tmp_path: Path) -> None:
    path = softmax_file(tmp_path)
    trial = trials_of(plan(tmp_path, methods={"lac": "LAC"}))[0]
    with np.load(path) as held:
        p, y = held["predictions"], held["ground_truth"]
    np.savez(path, predictions=p[::-1], ground_truth=y)
    with pytest.raises(InputError, match="has changed"):
        AdaptivityStudy().run(trial)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"methods": {"a": "ABS"}}, "method 'a'"),
        ({"methods": {"a": {"method": "CP", "trees": 3}}}, "option of method"),
        ({"options": {"reps": 3}}, "near: repeats"),
        ({"options": {"repeats": 0}}, "repeats must be"),
        ({"options": {"noise": -1}}, "noise must be"),
        ({"options": {"coverages": 0.9}}, "coverages must be a list"),
        ({"worlds": {"w": {"softmax": "outputs.npz", "rows": 3}}}, "softmax alone"),
        ({"worlds": {"w": {"softmax": "none.npz"}}}, "cannot be read"),
        ({"worlds": {"w": {"softmax": "bad.npz"}}}, "sum to one"),
        ({"worlds": {"w": {"softmax": "bare.npz"}}}, "must hold arrays"),
    ],
)
def test_bad_plans_are_refused(tmp_path: Path, changes: dict[str, Any], words: str) -> None:
    softmax_file(tmp_path)
    np.savez(tmp_path / "bad.npz", predictions=np.ones((3, 2)), ground_truth=np.zeros(3))
    np.savez(tmp_path / "bare.npz", predictions=np.ones((3, 2)))
    with pytest.raises(InputError, match=words):
        trials_of(plan(tmp_path, **changes))
