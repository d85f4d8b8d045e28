"""Repeated splits as a study: its numbers, its page, tables cut in many, and their commands."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet
from typer.testing import CliRunner

from extras import needs
from howsure.cli.main import app
from howsure.core.errors import InputError
from howsure.core.progress import subscribe
from howsure.inputs.distributions import located
from howsure.report.document import Document
from howsure_studies.engine import (
    Combined,
    Plan,
    Store,
    gathered,
    load_plan,
    published,
    run,
    study_of,
    trials_of,
)
from howsure_studies.methods.interface import Fitted, Method, Predictions
from howsure_studies.methods.linear import LinearT
from howsure_studies.pointwise import (
    SplitsBesideTruth,
    over_splits,
    pointwise,
    published_splits,
    records,
    splits_report,
    time_splits,
    unit_splits,
)
from howsure_studies.pointwise.repeated import METRICS
from howsure_studies.tasks import tables, uci
from howsure_studies.tasks.worlds import ForestWorld
from report.words import check_words, grid_of

ROWS = 120


def columns(rows: int) -> dict[str, Any]:
    rng = np.random.default_rng(4)
    x = rng.uniform(-1, 1, (rows, 2))
    return {"a": x[:, 0], "b": x[:, 1], "y": x[:, 0] ** 2 + x[:, 1] + 0.3 * rng.normal(size=rows)}


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("tables") / "own.parquet"
    parquet.write_table(pa.table(columns(ROWS)), path)
    return path


def plan(table: Path, **changes: Any) -> Plan:
    given: dict[str, Any] = {
        "name": "mine",
        "study": "splits",
        "worlds": {"own": {"table": str(table), "target": "y", "trees": 20}},
        "methods": {"line": "linear_t", "ridge": "bayesian_ridge"},
        "options": {"splits": 4, "simulations": 8},
    }
    return Plan(**{**given, **changes})


@pytest.fixture(scope="module")
def found(table: Path, tmp_path_factory: pytest.TempPathFactory) -> Combined:
    return done(plan(table), Store(tmp_path_factory.mktemp("store")))


def done(made: Plan, store: Store) -> Combined:
    run(made, store)
    return gathered(made, trials_of(made), store)


def page(found: Combined) -> Document:
    return study_of("splits").page(found, command="howsure bench report mine")


def test_the_study_gives_what_the_functions_give(found: Combined) -> None:
    """Splits as `over_splits` has them, simulations as `pointwise` of a forest of the table."""
    held = columns(ROWS)
    x = np.column_stack([held["a"], held["b"]])
    line, ridge = found.results["own"]
    assert (line.splits.method, ridge.splits.method) == ("line", "ridge")
    cuts = published_splits(ROWS, 4)
    alone = over_splits(x, held["y"], LinearT(), splits=cuts, metrics=METRICS)
    for metric in METRICS:
        assert line.splits.values(metric).tolist() == alone.values(metric).tolist()
    assert line.splits.test_share == pytest.approx(12 / 108)
    world = ForestWorld.from_data(x, held["y"], trees=20)
    own = pointwise(world, LinearT(), coverages=(0.9,), trials=8, n_train=108, n_test=12)
    assert line.simulated is not None
    assert line.simulated.mass is not None
    assert own.mass is not None
    assert np.array_equal(line.simulated.mass, own.mass)
    rows = found.table.to_pylist()
    told = {row["metric"]: row["value"] for row in rows if row["method"] == "line"}
    brier = next(one for one in records(own) if one.metric == "picf_brier_corrected")
    assert told["picf_brier_corrected"] == brier.value
    assert told["rmse"] == alone.record("rmse").value
    assert set(told) >= set(study_of("splits").headline)


def test_further_measures_are_those_of_the_function(table: Path, tmp_path: Path) -> None:
    levels = [k / 20 for k in range(1, 20)]
    options = {"splits": 3, "simulations": 0, "metrics": ["CRPS", "rmse"], "levels": levels}
    asked = plan(table, methods={"line": "linear_t"}, options=options)
    store = Store(tmp_path)
    run(asked, store, jobs=0)
    rows = gathered(asked, trials_of(asked), store).table.to_pylist()
    told = {row["metric"]: row["value"] for row in rows}
    held = columns(ROWS)
    x = np.column_stack([held["a"], held["b"]])
    alone = over_splits(
        x, held["y"], LinearT(), splits=published_splits(ROWS, 3), metrics=["crps"], levels=levels
    )
    assert set(told) == {*METRICS, "crps", "pinball"}
    for metric in ("crps", "pinball"):
        assert told[metric] == alone.record(metric).value
    (plain,) = trials_of(replace(asked, options={"splits": 3, "simulations": 0}))
    assert set(plain.identity["options"]) == {"coverages", "splits", "share"}  # as ever


def test_a_table_with_one_division_is_divided_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Year Prediction MSD, here of few rows: its last rows test, once, whatever splits is."""
    few = replace(tables._FACTS["year"], rows=200, tests=40)
    monkeypatch.setattr(tables, "_FACTS", {**tables._FACTS, "year": few})
    monkeypatch.setenv("HOWSURE_DATA", str(tmp_path))
    rng = np.random.default_rng(0)
    x = rng.normal(size=(200, 90)).round(4)
    y = np.round(1990 + 5 * x[:, 0] + rng.normal(size=200))
    folder = tmp_path / "uci_year"
    folder.mkdir()
    np.savetxt(
        folder / "YearPredictionMSD.txt", np.c_[y, x], fmt=["%d", *["%.4f"] * 90], delimiter=","
    )
    year = load_plan("splits_year")
    short = replace(year, methods={"line": "linear_t", "ridge": "bayesian_ridge"})
    (trial, _) = trials_of(short)
    assert trial.identity["options"]["splits"] == 1
    assert trial.identity["options"]["share"] == 0.2
    made = done(short, Store(tmp_path / "store"))
    line = made.results["year"][0].splits
    cut = (np.arange(160), np.arange(160, 200))
    alone = over_splits(x, y, LinearT(), splits=[cut], metrics=METRICS)
    for metric in METRICS:
        assert line.values(metric).tolist() == alone.values(metric).tolist()
    assert np.isnan(line.record("rmse").standard_error)
    document = page(made)
    check_words(document)
    told = " ".join(shown.text for shown in document.lines)
    assert "nan" not in told.lower()
    assert "On the one split" in told


def test_the_page_sets_averages_beside_single_points(found: Combined, tmp_path: Path) -> None:
    document = page(found)
    check_words(document)
    document.save(tmp_path / "page.html")
    assert "Coverage over splits" in (tmp_path / "page.html").read_text()
    assert document.headline is not None
    assert document.headline.tone in ("bad", "undecided", "info")
    grid = grid_of(document, "own", "Over the splits, and where the truth is known, at 90 %")
    assert [row[0].text for row in grid.parts[0].rows] == ["line", "ridge"]
    line = found.results["own"][0]
    assert grid.parts[0].rows[0][2].key == repr(-line.splits.record("log_score").value)
    told = " ".join(held.text for held in document.lines)
    assert "has the best log-likelihood over the splits" in told
    assert "Over 4 splits the 90\N{NO-BREAK SPACE}% intervals cover" in told
    alone = splits_report({"own": [found.results["own"][0]]})
    check_words(alone)
    assert alone.headline is not None
    assert alone.headline.text.startswith("Over 4 splits")


def test_without_simulations_the_page_says_what_splits_say(table: Path, tmp_path: Path) -> None:
    made = plan(table, options={"splits": 3, "simulations": 0}, seeds=(0, 1))
    found = done(made, Store(tmp_path))
    assert [one.splits.method for one in found.results["own"]][:2] == [
        "line, seed 0",
        "line, seed 1",
    ]
    document = page(found)
    check_words(document)
    assert document.headline is not None
    assert document.headline.tone == "info"
    grid = grid_of(document, "own", "Over the splits, and where the truth is known, at 90 %")
    assert grid.parts[0].rows[0][-1].text == "–"


def test_a_part_that_is_done_serves(table: Path, tmp_path: Path) -> None:
    made, store = plan(table), Store(tmp_path)
    run(made, store)
    trials = trials_of(made)
    splits = [trial for trial in trials if trial.study == "splits"]
    some = gathered(made, splits[:1], store)
    assert len(some.results["own"]) == 1
    assert some.results["own"][0].simulated is None
    assert gathered(made, trials[len(splits) :], store).results == {}


def test_a_method_that_fails_everywhere_is_told(table: Path, tmp_path: Path) -> None:
    methods = {
        "line": "linear_t",
        "few": {"method": "naive_bootstrap", "members": 2, "validation": 500},
    }
    found = done(plan(table, methods=methods), Store(tmp_path))
    line, few = found.results["own"]
    assert len(line.splits.done) == 4
    assert not few.splits.done
    assert len(few.splits.failures) == 4
    document = page(found)
    check_words(document)
    told = [held.text for held in document.lines if held.question == "own, few"]
    assert told == ["4 of 4 splits failed, the first with UnanswerableError."]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"worlds": {"w": {"world": "linear"}}}, "world 'w' must be a table to be split"),
        ({"methods": {"line": {"method": "linear_t", "n_train": 9}}}, "must leave out n_train"),
        ({"options": {"splits": 0}}, "splits"),
        ({"options": {"share": 1.0}}, "share"),
        ({"options": {"trials": 3}}, "option of study 'splits'"),
        ({"options": {"metrics": ["crsp"]}}, "metrics must be a measure .* did you mean crps"),
        ({"options": {"levels": [0.5, 1.0]}}, "levels must be strictly between 0 and 1"),
    ],
)
def test_a_plan_that_cannot_be_is_refused(table: Path, changes: Any, words: str) -> None:
    with pytest.raises(InputError, match=words):
        trials_of(plan(table, **changes))


def test_a_cut_table_is_no_table_to_split(table: Path) -> None:
    cut = {"table": str(table), "target": "y", "source": "cut"}
    with pytest.raises(InputError, match="world 'w' must be a table to be split"):
        trials_of(plan(table, worlds={"w": cut}))


@pytest.fixture(scope="module")
def visits(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Rows of 24 patients on days in no order, one of which lacks a cell of x."""
    rng = np.random.default_rng(7)
    held = columns(ROWS)
    held["patient"] = [f"p{number}" for number in rng.integers(0, 24, ROWS)]
    held["day"] = np.datetime64("2024-01-01") + rng.integers(0, 90, ROWS).astype("timedelta64[D]")
    held["a"] = [None, *held["a"][1:]]
    path = tmp_path_factory.mktemp("tables") / "visits.parquet"
    parquet.write_table(pa.table(held), path)
    return path


@pytest.mark.parametrize("way", ["unit", "time"])
def test_a_plan_splits_by_a_column_of_its_table(visits: Path, tmp_path: Path, way: str) -> None:
    """The same as by hand: rows without the missing one, and x without the column."""
    column = {"unit": "patient", "time": "day"}[way]
    entry = {"table": str(visits), "target": "y", "missing": "drop", "trees": 20}
    by = {**entry, "features": ["a", "b"], "split": way, "split_by": column}
    made = plan(visits, worlds={"own": by}, options={"splits": 4, "simulations": 2})
    found = done(made, Store(tmp_path))
    held = parquet.read_table(visits).slice(1)
    x = np.column_stack([held["a"].to_numpy(), held["b"].to_numpy()])
    labels = np.array(held[column].to_pylist())
    _, first, codes = np.unique(labels, return_index=True, return_inverse=True)
    cuts = (
        time_splits(labels, 4)
        if way == "time"
        else unit_splits(np.argsort(np.argsort(first))[codes], 4, share=0.1)
    )
    for train, test in cuts:
        if way == "time":
            assert labels[train].max() < labels[test].min()
        else:
            assert not set(labels[train]) & set(labels[test])
    alone = over_splits(x, held["y"].to_numpy(), LinearT(), splits=cuts, metrics=METRICS)
    line = found.results["own"][0]
    assert line.splits.way == way
    for metric in METRICS:
        assert line.splits.values(metric).tolist() == alone.values(metric).tolist()
    assert line.simulated is not None
    assert (line.simulated.n_train, len(line.simulated.y)) == tuple(map(len, cuts[-1]))
    document = page(found)
    check_words(document)
    told = " ".join(held.text for held in document.lines)
    (section,) = (part for part in document.sections if part.title == "own")
    assert section.facts["Divided"].startswith(f"by {way}: ")
    (note, _) = section.grids[0].notes
    cell = section.grids[0].parts[0].rows[0][1]
    if way == "time":
        assert "No standard error is shown" in note
        assert cell.small == ""
        covered = 100 * alone.values("empirical_coverage")
        assert f"On single splits they cover {covered.min():.1f}" in told
        assert "nan" not in told.lower()
    else:
        assert "corrected for the units that splits share" in note
        assert cell.small.startswith("±")
        assert "On single splits" not in told
    short = study_of("splits").shortened(line)
    assert short.splits.way == way


def test_the_address_tells_how_a_table_is_divided(visits: Path, tmp_path: Path) -> None:
    """A column's name tells nothing; what it says of the rows does, and at random neither."""
    entry = {"table": str(visits), "target": "y", "missing": "drop"}

    def identity(**changes: Any) -> Any:
        options = {"splits": 4, "simulations": 0}
        made = plan(visits, worlds={"own": {**entry, **changes}}, options=options)
        return trials_of(made)[0].identity

    at_random = identity(features=["a", "b"])
    assert at_random["options"] == {"coverages": [0.9], "splits": 4, "share": 0.1}
    by_unit = identity(features=["a", "b"], split="unit", split_by="patient")
    assert by_unit["world"] == at_random["world"]
    assert by_unit["options"]["split"] == "unit"
    assert identity(split="unit", split_by="patient")["world"] != by_unit["world"]  # x has the day
    held = parquet.read_table(visits)
    codes = np.unique(held["patient"].to_pylist(), return_inverse=True)[1]
    other = tmp_path / "other.parquet"
    parquet.write_table(held.drop(["patient"]).append_column("who", pa.array(codes)), other)
    again = identity(table=str(other), features=["a", "b"], split="unit", split_by="who")
    assert again == by_unit
    by_time = identity(features=["a", "b"], split="time", split_by="day")
    assert by_time["options"]["split_by"] != by_unit["options"]["split_by"]
    text = tmp_path / "visits.csv"
    lines = zip(held["a"].to_pylist(), held["b"].to_pylist(), held["y"].to_pylist(), strict=True)
    told = zip(lines, codes.tolist(), held["day"].to_pylist(), strict=True)
    cells = [(*numbers, who, day.strftime("%Y-%m-%d")) for numbers, who, day in told]
    written = [",".join("" if c is None else str(c) for c in row) for row in cells]
    text.write_text("\n".join(["a,b,y,who,day", *written]))
    for column, known in (("who", by_unit), ("day", by_time)):
        changes = {"split": known["options"]["split"], "split_by": column}
        assert identity(table=str(text), features=["a", "b"], **changes) == known


def test_a_column_that_changes_before_a_run_is_told(visits: Path, tmp_path: Path) -> None:
    path = tmp_path / "visits.parquet"
    held = parquet.read_table(visits).slice(1)
    parquet.write_table(held, path)
    by = {"table": str(path), "target": "y", "features": ["b"], "split": "time", "split_by": "day"}
    (trial, *_) = trials_of(plan(path, worlds={"own": by}, options={"splits": 3, "simulations": 0}))
    backwards = held["day"].to_numpy().max() - held["day"].to_numpy()
    moved = pa.array(np.datetime64("2024-01-01") + backwards)
    parquet.write_table(held.drop(["day"]).append_column("day", moved), path)
    with pytest.raises(InputError, match="column 'day' has changed since the plan was read"):
        study_of("splits").run(trial)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"split": "time"}, "must be a table of a file with split and split_by"),
        ({"split_by": "day"}, "must be a table of a file with split and split_by"),
        ({"split": "date", "split_by": "day"}, "split of world 'w' must be .*unit.*time"),
        ({"split": "time", "split_by": "date"}, "split_by of world 'w' must be one of"),
        ({"split": "unit", "split_by": "a"}, "column 'a' must contain labels"),
        ({"split": "unit", "split_by": "gap"}, "column 'gap' must be complete, got 1 missing"),
        ({"split": "time", "split_by": "patient"}, "column 'patient'"),
        ({"split": "unit", "split_by": "few"}, "column 'few': share must leave units on both"),
        ({"split": "time", "split_by": "few"}, "column 'few': times must differ enough"),
        ({"table": None, "uci": "yacht", "split": "unit", "split_by": "few"}, "table of a file"),
    ],
)
def test_divisions_that_a_table_cannot_have_are_refused(
    visits: Path, tmp_path: Path, changes: Any, words: str
) -> None:
    path = tmp_path / "visits.parquet"
    held = parquet.read_table(visits)
    held = held.append_column("few", pa.array([0, 1, 2] * (ROWS // 3)))
    parquet.write_table(held.append_column("gap", pa.array([None, *range(1, ROWS)])), path)
    entry = {"table": str(path), "target": "y", "features": ["b"], **changes}
    entry = {key: value for key, value in entry.items() if value is not None}
    with pytest.raises(InputError, match=words):
        trials_of(plan(path, worlds={"w": entry}))


def test_a_table_of_a_target_and_a_time_has_no_x(tmp_path: Path) -> None:
    path = tmp_path / "bare.parquet"
    parquet.write_table(pa.table({"y": np.arange(9.0), "day": np.arange(9)}), path)
    entry = {"table": str(path), "target": "y", "split": "time", "split_by": "day"}
    with pytest.raises(InputError, match="world 'w' must have a column beside"):
        trials_of(plan(path, worlds={"w": entry}))


def test_an_empty_report_is_refused() -> None:
    with pytest.raises(InputError, match="results must contain at least one"):
        splits_report({})
    with pytest.raises(InputError, match="results must contain at least one"):
        splits_report({"t": []})


class Batched(Method, Fitted):
    """Fits in batches of four, and may break where it does."""

    batch = 4  # type: ignore[assignment]

    def __init__(self, breaks: bool = False) -> None:
        self.breaks, self.sizes = breaks, []

    @property
    def name(self) -> str:
        return "batched"

    def fit(self, x: Any, y: Any, rng: np.random.Generator) -> Fitted:
        one = Batched()
        one.mean, one.sd = float(np.mean(y)) + 0.1 * rng.normal(), float(np.std(y))
        return one

    def fit_many(self, data: Any, rngs: Any) -> list[Fitted]:
        self.sizes.append(len(data))
        if self.breaks:
            raise ZeroDivisionError
        return [self.fit(x, y, rng) for (x, y), rng in zip(data, rngs, strict=True)]

    def predict(self, x: Any) -> Predictions:
        return Predictions(located("norm", np.full(len(x), self.mean), np.full(len(x), self.sd)))


def test_splits_of_a_batch_are_fitted_together_and_come_out_the_same() -> None:
    held = columns(60)
    x, y = held["a"][:, None], held["y"]
    cuts = published_splits(60, 6)
    steps: list[int] = []
    together, apart = Batched(), Batched(breaks=True)
    with subscribe(lambda stage, done, of: steps.append(done)):
        whole = over_splits(x, y, together, splits=cuts, metrics=["rmse"])
    alone = over_splits(x, y, apart, splits=cuts, metrics=["rmse"])
    assert together.sizes == [4, 2] == apart.sizes
    assert whole.values("rmse").tolist() == alone.values("rmse").tolist()
    assert whole.done == alone.done == tuple(range(6))
    assert steps == sorted(steps)


def inside(*arguments: object) -> str:
    told = ["simulate", *map(str, arguments), "--method", "linear_t", "--coverage", "0.9"]
    result = CliRunner().invoke(app, told, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return " ".join(result.output.split())


def refused(*arguments: object) -> str:
    with pytest.raises(InputError) as caught:
        inside(*arguments)
    return str(caught.value)


@pytest.fixture(autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))


def test_a_table_is_split_from_the_command_line(table: Path, tmp_path: Path) -> None:
    written = tmp_path / "page.md"
    told = inside(table, "--target", "y", "--splits", "--trials", 3, "-o", written)
    assert "Over 3 splits the 90 % intervals of linear t cover" in told
    text = written.read_text()
    assert "random splits of the table; for comparison" in text
    assert "Points that differ" in text


def test_a_method_that_fails_on_every_split_is_told_and_exits_1(table: Path) -> None:
    flags = ("--splits", "--trials", "2", "--method", "naive_bootstrap:validation=500")
    told = ["simulate", str(table), "--target", "y", *flags]
    result = CliRunner().invoke(app, told, catch_exceptions=False)
    assert result.exit_code == 1
    words = " ".join(result.output.split())
    assert "naive bootstrap" in words
    assert "2 splits failed; first: UnanswerableError: all 2 splits failed" in words
    assert "validation must leave at least 2 of 108 rows, got 500" in words


def test_a_table_of_the_repository_is_known_by_name(
    data_dir: Callable[[str], Path], tmp_path: Path
) -> None:
    data_dir("uci_yacht")
    written = tmp_path / "page.md"
    told = inside("yacht", "--splits", "--trials", 2, "-o", written)
    assert "Over 2 splits" in told
    text = written.read_text()
    assert "UCI table yacht, 308 rows" in text
    assert "yacht: RMSE, beside MC dropout on the same splits" in text
    (printed,) = published("splits", task="yacht", measure="rmse")
    reference = uci("yacht").reference["test_MC_rmse"]
    assert printed.value == pytest.approx(reference.mean(), rel=1e-3)
    assert f"{printed.value:.3f}" in text
    assert "PICF" in inside("yacht", "--trials", 3, "--test-rows", 20)
    assert "--target is for a table" in refused("yacht", "--target", "y")


def test_a_huge_table_is_cut_in_many(tmp_path: Path) -> None:
    path = tmp_path / "huge.parquet"
    parquet.write_table(pa.table(columns(1200)), path)
    written = tmp_path / "page.md"
    told = inside(path, "--target", "y", "--cut", "--trials", 11, "-o", written)
    assert "on average over 11 training sets. Coverage at single x cannot be assessed" in told
    assert "CICP" not in told
    assert "Mean PICF" not in told
    text = written.read_text()
    assert "Test points: 100; Training rows: 100" in text
    assert "the table cut into a test set and disjoint training sets" in text
    assert "Confidence intervals" not in text.partition("## Glossary")[0]
    rows = ("--train-rows", 50, "--test-rows", 200, "--trials", 20)
    inside(path, "--target", "y", "--cut", *rows, "-o", tmp_path / "other.md")
    assert "Test points: 200; Training rows: 50" in (tmp_path / "other.md").read_text()
    assert "trials must be at most 20, the training sets that world 'huge' holds, got 21" in (
        refused(path, "--target", "y", "--cut", *rows[:4], "--trials", 21)
    )


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (("--cut",), "needs 1,010 rows, got 120; fewer --trials need fewer"),
        (("--cut", "--test-rows", "119"), "needs 1,119 rows, got 120"),
        (("--cut", "--splits"), "--cut must be left out with --splits"),
        (("--cut", "--until-se", "0.1"), "--until-se must be left out with --cut"),
        (("--cut", "--noise", "gamma"), "--noise must be left out with --cut"),
        (("--cut", "--residuals", "in-sample"), "--residuals must be left out with --cut"),
        (("--cut", "--covariates", "fixed"), "--covariates must be left out with --cut"),
        (("--splits", "--train-rows", "9"), "--train-rows must be left out with --splits"),
        (("--splits", "--until-se", "0.1"), "--until-se must be left out with --splits"),
    ],
)
def test_flags_that_do_not_go_together_are_refused(
    table: Path, flags: tuple[str, ...], words: str
) -> None:
    assert words in refused(table, "--target", "y", *flags)


@pytest.mark.parametrize("flag", ["--splits", "--cut"])
def test_worlds_are_neither_split_nor_cut(flag: str) -> None:
    assert refused("linear", flag) == f"{flag} is for a table, but linear is a world of howsure's"


def test_a_plan_that_cuts_a_small_table_is_refused_before_it_runs(table: Path) -> None:
    cut = {"table": str(table), "target": "y", "source": "cut", "rows": 20}
    options = {"coverages": [0.9], "simulations": 6}
    made = plan(table, study="pointwise", worlds={"w": cut}, options=options)
    with pytest.raises(InputError, match="trials must be at most 5, the training sets"):
        trials_of(made)
    with pytest.raises(InputError, match="covariates must be 'random' in a cut table"):
        trials_of(
            plan(table, study="pointwise", worlds={"w": cut}, options={"covariates": "fixed"})
        )


def test_the_plan_of_the_papers_networks_is_there(data_dir: Callable[[str], Path]) -> None:
    needs("torch")
    made = load_plan("splits")
    assert set(made.methods) == {"mc_dropout", "concrete_dropout", "deep_ensemble", "bootstrap"}
    for name in made.worlds:
        data_dir(f"uci_{name}")
    trials = trials_of(made)
    splits = [trial for trial in trials if trial.study == "splits"]
    assert len(splits) == 20
    first = next(trial for trial in trials if trial.study == "pointwise")
    assert first.identity["options"]["n_train"] == 455


@pytest.mark.slow
def test_networks_of_the_plan_run_on_a_small_scale(
    data_dir: Callable[[str], Path], tmp_path: Path
) -> None:
    """Two splits of the smallest table: networks of a few epochs, and what was published."""
    needs("torch")
    data_dir("uci_yacht")
    changes = [f"methods.{name}.epochs=8" for name in load_plan("splits").methods]
    small = load_plan("splits", ["splits=2", "simulations=2", *changes])
    made = Plan(
        name="small",
        study="splits",
        worlds={"yacht": small.worlds["yacht"]},
        methods=small.methods,
        options=small.options,
    )
    found = done(made, Store(tmp_path))
    for one in found.results["yacht"]:
        assert isinstance(one, SplitsBesideTruth)
        assert one.splits.done == (0, 1)
        assert 0.3 < one.splits.record("rmse").value < 18
        assert set(one.published) == {"test_MC_rmse", "test_ll"}
    check_words(page(found))
