"""Results that ship with a plan serve whoever asks for just their trials, and no one else."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from howsure.core.errors import InputError, UnanswerableError
from howsure_studies.engine import (
    Plan,
    Store,
    combined,
    grouped,
    load_plan,
    run,
    study_of,
    survey,
    trials_of,
)
from howsure_studies.engine import shipped as files
from howsure_studies.shift import ShiftResult


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rng = np.random.default_rng(5)
    year, x = rng.integers(2010, 2020, size=600), rng.normal(size=600)
    y = x + 0.3 * (year - 2010) + rng.normal(size=600)
    path = tmp_path_factory.mktemp("plan") / "rents.csv"
    rows = zip(year, x, y, strict=True)
    path.write_text("year,x,y\n" + "".join(f"{a},{b:.4f},{c:.4f}\n" for a, b, c in rows))
    return path


def plan_of(table: Path, methods: dict[str, str], **options: object) -> Plan:
    world = {"table": str(table), "target": "y", "split_by": "year", "up_to": 2014}
    return Plan(
        name="mine",
        study="shift",
        worlds={"rents": world},
        methods=methods,
        options={"coverages": [0.8, 0.9], "runs": 2, **options},
    )


@pytest.fixture(scope="module")
def ran(table: Path) -> Path:
    """A folder with a store of two methods, and a folder of plans with their results."""
    whole, store = plan_of(table, {"a": "linear_t", "b": "bayesian_ridge"}), table.parent / "first"
    run(whole, Store(store))
    (table.parent / "plans").mkdir()
    file = table.parent / "plans" / "mine.parquet"
    file.write_bytes(files.shipped_bytes(whole, Store(store)))
    return table.parent


@pytest.fixture
def folder(ran: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(files, "plan_folders", lambda: (ran / "plans",))
    return ran


def results_of(plan: Plan, store: Store) -> dict[tuple[str, float], ShiftResult]:
    found = combined(plan, survey(plan, store), store).results["rents"]
    return {(one.method, one.coverage): one for one in found}


def test_shipped_results_say_what_the_runs_said(folder: Path, table: Path) -> None:
    plan = plan_of(table, {"a": "linear_t", "b": "bayesian_ridge"})
    own, read = (results_of(plan, Store(folder / name)) for name in ("first", "none"))
    assert list(own) == list(read)
    for key, one in own.items():
        assert one.runs
        assert not read[key].runs
        assert repr(one.records()) == repr(read[key].records())
        assert one.value("test_mae_all").mean == read[key].value("test_mae_all").mean
    for name in ("first", "none"):
        store = Store(folder / name)
        page = study_of("shift").page(combined(plan, survey(plan, store), store))
        page.save(folder / f"{name}.json")
    assert (folder / "first.json").read_bytes() == (folder / "none.json").read_bytes()


def test_they_stand_beside_a_new_method_under_the_plans_own_names(
    folder: Path, table: Path
) -> None:
    plan = plan_of(table, {"first": "linear_t", "mine": "cqr"})
    store = Store(folder / "second")
    run(replace(plan, methods={"mine": plan.methods["mine"]}), store)
    found = combined(plan, survey(plan, store), store)
    assert [one.method for one in found.results["rents"]] == ["first", "first", "mine", "mine"]
    assert [bool(one.runs) for one in found.results["rents"]] == [False, False, True, True]
    assert set(found.table["method"].to_pylist()) == {"first", "mine"}
    (told,) = found.facts.values()
    assert told.startswith("plan mine, howsure ")


def test_a_plan_that_asks_for_other_trials_gets_none(folder: Path, table: Path) -> None:
    other = plan_of(table, {"a": "linear_t"}, rule="conformal")
    store = Store(folder / "none")
    with pytest.raises(UnanswerableError, match="no trial of plan 'mine' is done"):
        combined(other, survey(other, store), store)


def test_trials_of_the_store_come_first(folder: Path, table: Path) -> None:
    plan = plan_of(table, {"a": "linear_t"})
    found = combined(plan, survey(plan, Store(folder / "first")), Store(folder / "first"))
    assert found.facts == {}
    assert all(one.runs for one in found.results["rents"])


def test_kept_values_have_one_confidence(folder: Path, table: Path) -> None:
    one = results_of(plan_of(table, {"a": "linear_t"}), Store(folder / "none"))["a", 0.9]
    assert one.run_count == 2
    with pytest.raises(InputError, match=r"confidence must be 0\.95 without runs, got 0\.9"):
        one.value("test_mae", confidence=0.9)


def test_what_is_not_done_does_not_ship(folder: Path, table: Path) -> None:
    with pytest.raises(UnanswerableError, match="2 trials of plan 'mine' are not done"):
        files.shipped_bytes(plan_of(table, {"c": "cqr"}), Store(folder / "none"))


@pytest.mark.parametrize("name", ["shift_small", "shift_tables"])
@pytest.mark.rate
def test_what_ships_is_the_whole_of_its_plan(
    name: str, data_dir: Callable[[str], Path], tmp_path: Path
) -> None:
    """A change of what a trial's identity holds must not leave the plan without its results."""
    data_dir("shift_california_housing")
    plan = load_plan(name)
    wanted = grouped(trials_of(plan))
    held = files.shipped(plan, wanted)
    assert held is not None
    assert set(held.results) == set(wanted)
    # What needs no network is the same when it is run here.
    world = list(plan.worlds)[-1]
    label = "Baseline: constant"
    small = replace(plan, worlds={world: plan.worlds[world]}, methods={label: plan.methods[label]})
    run(small, Store(tmp_path))
    (here,) = combined(small, survey(small, Store(tmp_path)), Store(tmp_path)).results[world]
    (there,) = held.results[world, label, 0]
    assert here.value("test_empirical_coverage").mean == there.value("test_empirical_coverage").mean
    assert here.value("val_mae").mean == pytest.approx(there.value("val_mae").mean, rel=1e-9)
