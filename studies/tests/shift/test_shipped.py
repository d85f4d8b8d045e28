"""Results that ship with a plan serve whoever asks for just their trials, and no one else."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from howsure.core.errors import InputError, UnanswerableError
from howsure_studies.engine import (
    Combined,
    Plan,
    Store,
    combined,
    load_plan,
    run,
    study_of,
    survey,
)
from howsure_studies.engine import published as printed_numbers
from howsure_studies.engine import shipped as files
from howsure_studies.engine.shipped import plan_shipped
from howsure_studies.shift import ATTRIBUTED, SHIFT_METHODS, VARIATIONS, ShiftResult
from howsure_studies.shift.methods import key_of


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


SIMULATOR = ("simulator, four layers", "simulator, five layers")
GMM, L2 = "Gaussian + Selective GMM", "Gaussian + Selective kNN, L2, k=10"


@cache
def shipped_results(world: str, coverage: float = 0.9) -> Mapping[str, ShiftResult]:
    """What ships of a world, by method."""
    results = shipped_study().results[world]
    return {one.method: one for one in results if one.coverage == coverage}


@cache
def shipped_study() -> Combined:
    return files.study_shipped("shift")


def ends(result: ShiftResult, measure: str) -> tuple[float, float]:
    record = result.record(measure)
    return record.lower, record.upper


@pytest.mark.slow
@pytest.mark.parametrize("world", SIMULATOR)
def test_rejection_restores_coverage_where_networks_see_the_count(world: str) -> None:
    found = shipped_results(world)
    _, plain = ends(found["Gaussian"], "test_empirical_coverage")
    assert plain < 0.75
    for method in (GMM, L2):
        assert ends(found[method], "test_empirical_coverage")[0] > plain
    assert found[L2].value("test_empirical_coverage").mean > 0.85
    assert ends(found[L2], "prediction_rate")[1] < 0.6  # a perfect detector predicts 0.475


@pytest.mark.parametrize(("method", "printed"), [(GMM, 0.890), (L2, 0.899)])
def test_trained_as_the_paper_trains_density_restores_what_is_published(
    method: str, printed: float
) -> None:
    found = shipped_results("cells-tails, simulator, trained longer")
    low, high = ends(found[method], "test_empirical_coverage")
    assert low < printed < high
    assert ends(found["Gaussian"], "test_empirical_coverage")[1] < low
    assert ends(found[method], "prediction_rate")[1] < 0.68  # 0.475 for a perfect detector


@pytest.mark.parametrize("network", ["two layers", "four layers", "residual"])
def test_and_not_where_they_do_not(network: str) -> None:
    found, clear = shipped_results(f"micrographs, {network}"), shipped_results(SIMULATOR[0])
    for method in (GMM, "Gaussian + Selective kNN", L2):
        assert ends(found[method], "test_empirical_coverage")[1] < 0.8
        assert ends(found[method], "prediction_rate")[0] > 0.75
    assert 5.0 * clear["Gaussian"].value("val_mae").mean < found["Gaussian"].value("val_mae").mean


def test_the_forecast_sees_more_of_the_count_than_densities_do() -> None:
    found, clear = shipped_results("micrographs, two layers"), shipped_results(SIMULATOR[0])
    forecast = found["Gaussian + Selective forecast"]
    assert ends(forecast, "prediction_rate")[1] < ends(found[L2], "prediction_rate")[0]
    assert ends(forecast, "test_empirical_coverage")[1] < 0.7
    blind, seeing = (own["Gaussian"].value("val_mae").mean for own in (found, clear))
    assert 5.0 * seeing < blind < 25.0  # the error of a constant, of counts from 51 to 150
    assert forecast.value("val_mae").mean == blind


@pytest.mark.parametrize("coverage", [0.8, 0.9, 0.95])
def test_one_set_has_the_published_number_of_networks(coverage: float) -> None:
    found = shipped_results("cells-tails, simulator", coverage)
    known = {**SHIFT_METHODS, **VARIATIONS}
    keys = {key for method in found if (key := key_of(method)) is not None}
    printed = {row.method for row in printed_numbers("shift", task="cells-tails")}
    assert printed <= keys <= set(known)
    assert all(one.run_count == 5 for name, one in found.items() if key_of(name) is not None)
    for key, method in known.items():
        if key in keys and method.score is None:
            assert ends(found[method.title], "test_empirical_coverage")[1] < coverage


def test_the_page_of_the_tables_alone_ranks_methods_whose_intervals_end() -> None:
    found = plan_shipped(load_plan("shift_tables"))
    assert found is not None
    page = study_of("shift").page(found)
    (across,) = (section for section in page.sections if section.title == "Across datasets")
    widths, lost = (
        next(grid for grid in across.grids if grid.title == title)
        for title in ("Width by dataset", "Where coverage is lost")
    )
    cells = {row[0].text: [cell.text for cell in row[1:]] for row in widths.parts[0].rows}
    assert cells["Robust conformal, boosted ratio"][0] == "∞ (100.0 %)"
    assert [part.title for part in lost.parts] == ["california", "bike-hours", "traffic", "poverty"]
    for results in found.results.values():
        for result in results:
            below = 0.9 - result.value("test_empirical_coverage").mean
            terms = sum(result.value(name).mean for name in ATTRIBUTED[:4])
            assert terms == pytest.approx(below, abs=1e-9)
