"""The study of a package of its own: announced, run, shown and reported as howsure's are."""

from __future__ import annotations

import importlib
import tomllib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import betabinom, kstest
from typer.testing import CliRunner

from howsure.cli.main import app
from howsure_studies.engine import (
    Store,
    combined,
    load_plan,
    plan_names,
    run,
    study_of,
    survey,
    trials_of,
)
from report.words import check_words

FOLDER = Path(__file__).parents[2] / "examples" / "sixth_study"
PROJECT = tomllib.loads((FOLDER / "pyproject.toml").read_text(encoding="utf-8"))["project"]
NAME = "coverage_scatter"
SMALL = ["repeats=40", "n_test=200"]


@pytest.fixture(scope="module", autouse=True)
def announced(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """What pip would write of the package, on the path beside its source."""
    place = tmp_path_factory.mktemp("site")
    info = place / "coverage_scatter-0.1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: coverage-scatter\nVersion: 0.1.0\n"
    )
    points = PROJECT["entry-points"]
    lines = [
        f"[{group}]\n{key} = {at}" for group, held in points.items() for key, at in held.items()
    ]
    (info / "entry_points.txt").write_text("\n".join(lines))
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(FOLDER))
        patch.syspath_prepend(str(place))
        importlib.invalidate_caches()
        yield


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    store = Store(tmp_path_factory.mktemp("store"))
    summary = run(load_plan(NAME, SMALL), store)
    assert (summary.done, summary.failed) == (8, 0)
    return store


def test_the_package_is_one_folder_of_five_files() -> None:
    files = [
        path for path in FOLDER.rglob("*") if path.is_file() and "__pycache__" not in path.parts
    ]
    assert len(files) <= 5
    assert sum(1 for path in files if path.suffix == ".py" and path.stat().st_size) == 1


def test_it_is_found_by_its_entry_point() -> None:
    assert study_of(NAME).name == NAME
    assert NAME in plan_names()


@pytest.mark.rate
def test_it_runs_from_the_command_line(tmp_path: Path) -> None:
    def howsure(*words: str) -> str:
        flags = ["--store", str(tmp_path / "store"), *(f for s in SMALL for f in ("--set", s))]
        done = CliRunner().invoke(app, ["bench", *words, *flags])
        assert done.exit_code == 0, done.output
        return done.output

    assert "8 trials: 8 done" in howsure("run", NAME)
    assert "8 already done" in howsure("run", NAME)
    status = howsure("status", NAME).splitlines()
    assert len([line for line in status if line.endswith(" 1")]) == 8
    shown = howsure("show", NAME)
    assert "empirical_coverage" in shown
    assert "20 rows" in shown
    howsure("report", NAME, "-o", str(tmp_path / "page.html"))
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "How much does coverage differ from one data set to the next?" in page
    assert "differs most" in page


def test_hits_follow_the_closed_form(store: Store) -> None:
    """Coverage given n calibration rows is Beta(k, n + 1 − k); hits are beta-binomial."""
    plan = load_plan(NAME, SMALL)
    results = combined(plan, survey(plan, store), store).results
    for world in ("line", "fan"):
        for found in results[world]:
            if found.method == "Student t":
                assert found.known is None
                continue
            n = int(found.method.split()[-2])
            law = betabinom(200, int(np.ceil(0.9 * (n + 1))), n + 1 - int(np.ceil(0.9 * (n + 1))))
            assert found.known.mean() == pytest.approx(law.mean())
            # Jittered, hits are continuous with the jittered law, so the test is exact.
            rng = np.random.default_rng(0)
            hits = np.round(found.coverages * 200)
            at = law.cdf(hits - 1) + rng.uniform(size=len(hits)) * law.pmf(hits)
            assert kstest(at, "uniform").pvalue > 1e-3


def test_spread_shrinks_with_calibration_rows(store: Store) -> None:
    plan = load_plan(NAME, SMALL)
    table = combined(plan, survey(plan, store), store).table.to_pylist()
    held = {(row["world"], row["method"], row["metric"]): row for row in table}
    for world in ("line", "fan"):
        few, many = (held[world, f"split conformal, {n} rows", "coverage_sd"] for n in (20, 500))
        assert few["value"] > 1.5 * many["value"]
        for row in (few, many):
            assert abs(row["value"] - row["null"]) < 4 * row["standard_error"]
        mean = held[world, "split conformal, 100 rows", "empirical_coverage"]
        assert mean["null"] == pytest.approx(91 / 101)
        assert abs(mean["value"] - mean["null"]) < 4 * mean["standard_error"]


def test_a_run_broken_off_and_the_order_of_methods_change_nothing(
    store: Store, tmp_path: Path
) -> None:
    plan, other = load_plan(NAME, SMALL), Store(tmp_path)
    turned = replace(plan, methods=dict(reversed(plan.methods.items())))
    first = run(replace(turned, worlds={"fan": "fan"}), other)
    rest = run(turned, other)
    assert (first.done, rest.done, rest.skipped) == (4, 4, 4)
    for trial in trials_of(plan):
        one, two = (held.table(trial.address, "records") for held in (store, other))
        assert one.equals(two)


def test_the_page_keeps_the_rules(store: Store) -> None:
    plan = load_plan(NAME, SMALL)
    page = study_of(NAME).page(combined(plan, survey(plan, store), store))
    check_words(page)
    (choice,) = page.opening.choices
    assert [option.label for option in choice.options] == ["line", "fan"]
    assert len(page.sections) == 2
