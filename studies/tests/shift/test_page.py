"""The leaderboard under shift: verdicts, tables, what was published, figures, every form."""

from __future__ import annotations

import csv
import json
import math
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from howsure.core.errors import InputError
from howsure.core.records import Record
from howsure.report.document import Document
from howsure_studies.engine import published
from howsure_studies.shift import (
    MEASURES,
    Answers,
    ShiftResult,
    ShiftRun,
    evaluate_shift,
    shift_report,
)
from howsure_studies.shift.evaluate import run_measure
from howsure_studies.shift.figures import home_method
from howsure_studies.shift.methods import key_of
from howsure_studies.shift.page import compared, verdict_of
from report.words import check_words, figures, grid_of
from shift import shift_samples as samples

HOSTILE = "</script><script>window.pwned=1</script>"
GMM = "Gaussian + Selective GMM"
BESIDE = "Comparison with the published numbers"


@pytest.fixture(scope="module")
def page() -> Document:
    return shift_report(samples.benchmark(), title="A title", command="howsure bench report x")


@pytest.mark.parametrize(
    ("value", "low", "high", "nominal", "verdict"),
    [
        (0.9, 0.3, 1.0, 0.9, "undecided"),
        (0.88, 0.875, 0.89, 0.9, "covers"),
        (0.87, 0.86, 0.88, 0.9, "undecided"),
        (0.92, 0.91, 0.93, 0.9, "covers"),
        (0.86, 0.82, 0.88, 0.9, "undecided"),
        (0.86, 0.85, 0.865, 0.9, "under-covers"),
        (0.97, 0.95, 0.98, 0.9, "over-covers"),
        (0.97, 0.92, 0.98, 0.9, "undecided"),
        (0.93, 0.92, 0.934, 0.95, "under-covers"),
        (0.5, math.nan, math.nan, 0.9, "undecided"),
        (math.nan, math.nan, math.nan, 0.9, "not known"),
    ],
)
def test_verdicts(value: float, low: float, high: float, nominal: float, verdict: str) -> None:
    record = Record(
        metric="test_empirical_coverage", value=value, lower=low, upper=high, target=nominal
    )
    assert verdict_of(record) == verdict


def test_methods_are_known_by_key_and_title() -> None:
    assert key_of("gaussian + selective gmm") == "gaussian_gmm"
    assert key_of("Gaussian_KNN_L2") == "gaussian_knn_l2"
    assert key_of("CP") is None
    results = [samples.made("w", name) for name in ("mine", "CONFORMAL")]
    assert home_method(results) == "CONFORMAL"
    assert home_method(results[:1]) == "mine"


def test_what_is_compared_is_shared_by_all() -> None:
    def made(method: str, *tasks: str) -> list[ShiftResult]:
        return [samples.made(task, method, rows=20) for task in tasks]

    def shared(*results: ShiftResult) -> set[tuple[str, str]]:
        return {(result.method, result.task) for result in compared(results)}

    whole = [*made("a", "x", "y"), *made("b", "y", "z"), *made("c", "y")]
    assert shared(*whole) == {(method, "y") for method in "abc"}
    some = [*made("a", "x", "y"), *made("b", "z"), *made("c", "x", "y")]
    assert shared(*some) == {(method, task) for method in "ac" for task in "xy"}
    assert shared(dead()) == set()


def test_every_number_of_a_page_is_computed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    taken: Counter[tuple[int, str, str]] = Counter()

    def counted(run: ShiftRun, measure: str, test: str) -> Any:
        taken[id(run), measure, test] += 1
        return run_measure(run, measure, test)

    monkeypatch.setattr("howsure_studies.shift.results.run_measure", counted)
    results = samples.benchmark.__wrapped__()
    page = shift_report(results)
    assert {key[1] for key in taken} == set(MEASURES) - {"coverage_error"}
    assert set(taken.values()) == {1}
    assert len(page.records) > len(taken) / 3  # three runs a record, and coverage errors


def test_the_title_says_what_was_studied(page: Document) -> None:
    assert page.title == "A title"
    plain = shift_report({"cells": samples.benchmark()["cells"][:1]})
    assert plain.title == "Does coverage survive a shift? 1 method on cells"
    both = shift_report(samples.benchmark())
    assert both.title == "Does coverage survive a shift? 10 methods on 5 datasets"
    check_words(both)


def test_the_headline_tells_who_keeps_coverage_and_what_it_costs(page: Document) -> None:
    assert page.facts["Nominal coverage shown"] == "90 %"
    assert page.headline is not None
    text = page.headline.text
    assert text.startswith("No. None of 10 methods is shown to have 90 % coverage within 3 poi")
    assert f"on every dataset. The best is 2 of 5, for {GMM} (accepts 6" in text
    _, every, some = page.opening.lines
    assert every.text.startswith("Methods that accept every row have an average coverage error")
    assert some.text.startswith("Methods that may reject rows")
    assert "The prediction rate is" in some.text
    alone = {"cells-gap": samples.benchmark()["cells-gap"][:1]}
    told = shift_report(alone).headline
    assert told is not None
    assert told.text.startswith("No. Conformal Prediction is not shown to have 90 % coverage")
    assert told.tone == "bad"
    good = shift_report({"cells": samples.benchmark()["cells"]}).headline
    assert good is not None
    assert good.tone == "caution"  # not all are shown to
    assert good.text.startswith("Partly. ")
    assert "methods are shown to have 90 % coverage within 3 points" in good.text
    none = shift_report({k: v[:5] for k, v in samples.benchmark().items()}).headline
    assert none is not None
    assert none.text.startswith("No. None of 5 methods is shown to have 90 % coverage")
    assert "The best is 1 of 5, for Conformal Prediction (accepts every row)" in none.text


def test_the_first_screen_counts_datasets(page: Document) -> None:
    (states,) = page.opening.grids
    assert [column.title for column in states.columns] == [
        "Method",
        "Nominal",
        "Below",
        "Undecided",
    ]
    for row in states.parts[0].rows:
        assert sum(int(cell.key) for cell in row[1:]) == 5
    assert states.parts[0].rows[0][1].text == "2 of 5"
    some = shift_report({k: v for k, v in samples.benchmark().items() if k != "cells-tails"})
    assert len(some.opening.grids[0].columns) == 4  # still more than three datasets
    few = {k: v for k, v in samples.benchmark().items() if k in ("cells", "cells-tails")}
    (states,) = shift_report(few).opening.grids
    assert [column.title for column in states.columns] == ["Method", "cells", "cells-tails"]
    held = {row[0].text: row for row in states.parts[0].rows}
    assert held["Ensemble"][2].tone == "bad"
    assert held["Ensemble"][2].small == ""


def test_the_leaderboard_stands_in_order_of_datasets_kept(page: Document) -> None:
    averages = grid_of(page, "Across datasets", "Averages")
    kept = [int(row[1].key) for row in averages.parts[0].rows]
    assert kept == sorted(kept, reverse=True)
    assert averages.parts[0].rows[0][1].text == "2 of 5"
    coverage = grid_of(page, "Across datasets", "Empirical coverage by dataset")
    assert [column.title for column in coverage.columns] == ["Method", *samples.WORLDS]
    held = {row[0].text: row for row in coverage.parts[0].rows}
    results = {r.method: r for r in samples.benchmark()["cells-tails"]}
    value = results["Ensemble"].value("test_empirical_coverage")
    cell = held["Ensemble"][2]
    assert float(cell.key) == value.mean
    assert cell.tone == "bad"
    assert cell.small == f"({100 * value.low:.1f}–{100 * value.high:.1f})"
    rates = grid_of(page, "Across datasets", "Prediction rate by dataset")
    assert len(rates.parts[0].rows) == 5


def test_each_dataset_has_its_lines_and_all_its_tests(page: Document) -> None:
    (tails,) = (part for part in page.sections if part.title == "cells-tails")
    lines = {line.question: line for line in tails.lines}
    assert lines["Nominal coverage"].tone == "good"
    assert GMM in lines["Nominal coverage"].text
    assert lines["Under-covers"].tone == "bad"
    assert "5 methods that accept every row: " in lines["Under-covers"].text
    result = samples.benchmark()["cells-tails"][0]
    change = result.value("relative_mae_change").mean
    assert f"a change of {100 * change:.1f} %" in lines["Size of the shift"].text
    tests = grid_of(page, "cells-tails", "Test rows")
    assert [p.title for p in tests.parts] == [f"Test {t}" for t in result.tests]
    value = result.value("test_width", "step-2").mean
    assert float(tests.parts[2].rows[0][3].key) == value
    names = [choice.options[0].figures[0].name for choice in tails.choices]
    assert names == [
        *(
            "shift_test_empirical_coverage",
            "shift_prediction_rate",
            "shift_test_width",
            "shift_test_mae",
        )
    ]
    for choice in tails.choices:
        assert [option.label for option in choice.options] == list(result.tests)


def test_published_numbers_stand_beside_ours(page: Document) -> None:
    (section,) = (part for part in page.sections if part.title == BESIDE)
    (grid,) = section.grids
    assert [part.title for part in grid.parts][:4] == [
        f"cells: {title}, nominal 90 %"
        for title in (
            *("Validation MAE", "Validation width"),
            *("Empirical coverage in %", "Prediction rate in %"),
        )
    ]
    (part,) = (
        p for p in grid.parts if p.title == "cells-tails: Empirical coverage in %, nominal 90 %"
    )
    row = next(r for r in part.rows if r[0].text == GMM)
    (theirs,) = published(
        "shift",
        task="cells-tails",
        coverage=0.9,
        method="gaussian_gmm",
        measure="test_empirical_coverage",
    )
    result = next(r for r in samples.benchmark()["cells-tails"] if r.method == GMM)
    ours = result.record("test_empirical_coverage")
    assert float(row[1].key) == pytest.approx(100 * ours.value)
    assert (row[2].text, row[2].small) == ("89.0", "± 1.9")
    away = ours.value - theirs.value
    assert float(row[3].key) == pytest.approx(100 * away)
    parts = abs(away) > 1.96 * math.hypot(ours.standard_error, theirs.sd)
    assert row[4].text == ("(1)" if parts else "")
    assert grid.notes[1].startswith("(1) other networks")
    assert "tables A1, A2" in grid.notes[0]
    table = next(t for t in page.tables if t.name == "beside_published")
    assert len(table) == grid.size
    assert f"{sum(map(bool, table.columns['reason']))} of {len(table)} numbers differ" in (
        section.lines[0].text
    )


def test_nothing_is_published_of_other_names_and_coverages() -> None:
    def sections(world: str, method: str, coverage: float) -> list[str]:
        result = samples.made(world, method, coverage=coverage, rows=50)
        return [part.title for part in shift_report({world: [result]}).sections]

    for world, method, coverage in (
        ("mine", "gaussian", 0.9),
        ("cells", "mine", 0.9),
        ("cells", "Gaussian", 0.85),
    ):
        assert sections(world, method, coverage) == [world]
    assert sections("Cells", "Gaussian", 0.8) == ["Cells", BESIDE]
    page = shift_report({"mine": [samples.made("mine", "x")]})
    assert [grid.title for grid in page.sections[-1].grids] == [
        *("Test rows", "Validation rows", "Mean and sd over runs")
    ]


def test_a_set_has_several_worlds_by_what_follows_a_comma(page: Document) -> None:
    tails, plain = samples.benchmark()["cells-tails"], samples.benchmark()["cells"]
    worlds = {"cells-tails": tails, **{f"{k}, wide": v for k, v in samples.benchmark().items()}}
    named = {
        world: [replace(result, task=world) for result in own] for world, own in worlds.items()
    }
    both = shift_report(named)
    (grid,) = both.sections[-1].grids
    (part,) = (p for p in grid.parts if p.title.startswith("cells-tails: Empirical coverage"))
    names = [row[0].text for row in part.rows]
    assert names.count(GMM) == names.count(f"{GMM} (wide)") == 1
    curves = {curve.group: curve for curve in both.curves if curve.model == GMM}
    assert curves["task=cells-tails"].x.tolist() == [1, 2, 3, 4]  # its own home is not there
    wide = next(c for c in both.curves if c.model == GMM and c.group == "task=cells-tails, wide")
    assert wide.x.tolist() == [0, 1, 2, 3, 4]
    home = {result.method: result for result in plain}[GMM]
    assert wide.y[0] == home.value("test_empirical_coverage").mean


def test_the_spread_over_runs_is_that_of_the_runs(page: Document) -> None:
    grid = grid_of(page, "cells-tails", "Mean and sd over runs")
    row = next(row for row in grid.parts[0].rows if row[0].text == GMM)
    result = {r.method: r for r in samples.benchmark()["cells-tails"]}[GMM]
    covered = [run.tests["full"].empirical_coverage for run in result.runs]
    rates = [run.tests["full"].prediction_rate for run in result.runs]
    for cell, shares in ((row[1], covered), (row[2], rates)):
        assert float(cell.key) == pytest.approx(100 * np.mean(shares))
        assert float(cell.small.removeprefix("± ")) == pytest.approx(
            100 * np.std(shares), rel=0.05, abs=0.005
        )
    one = shift_report({"cells": [samples.made("cells", "Ensemble", runs=1)]})
    assert "Mean and sd over runs" not in [grid.title for grid in one.sections[0].grids]


def test_degrees_begin_at_the_set_without_shift(page: Document) -> None:
    tails = [c for c in page.curves if c.group == "task=cells-tails" and c.model == GMM]
    covered, rate = tails
    assert covered.x.tolist() == [0, 1, 2, 3, 4]
    home, away = (samples.benchmark()[name] for name in ("cells", "cells-tails"))
    own = {r.method: r for r in away}[GMM]
    assert covered.y[0] == {r.method: r for r in home}[GMM].value("test_empirical_coverage").mean
    assert covered.y[4] == own.value("test_empirical_coverage", "full").mean
    assert rate.y[2] == own.value("prediction_rate", "step-2").mean
    seeds = {
        world: [samples.made(f"{world}, seed 1", "m", tests=tests)]
        for world, tests in (("cells", ("full",)), ("cells-tails", own.tests))
    }
    assert shift_report(seeds).curves[0].x.tolist() == [0, 1, 2, 3, 4]
    without = shift_report({"cells-tails": away})
    assert without.curves[0].x.tolist() == [1, 2, 3, 4]


def test_figures_across_datasets(page: Document) -> None:
    across = page.sections[0]
    assert [figure.name for figure in figures(page)][:8] == [
        *("shift_trade", "ranks_coverage_error", "ranks_val_width", "ranks_val_mae"),
        *("shift_rank_val_width", "shift_rank_val_mae", "shift_two_ranks"),
        "shift_against_error",
    ]
    degrees = across.choices[-1]
    assert [option.label for option in degrees.options] == [
        f"{task}, {kind}"
        for task in ("cells-tails", "chair-angle-gap")
        for kind in ("every row accepted", "rows may be rejected")
    ]
    assert [len(option.figures) for option in degrees.options] == [1, 2, 1, 2]


def test_parts_may_be_missing() -> None:
    results = samples.benchmark()
    some = {"cells": results["cells"], "cells-tails": results["cells-tails"][5:7]}
    page = shift_report(some)
    row = grid_of(page, "Across datasets", "Empirical coverage by dataset").parts[0].rows[-1]
    assert row[2].text == "–"
    assert page.sections[0].facts == {"Datasets compared": "cells", "Methods compared": "10"}
    assert page.headline is not None
    assert "on every dataset" in page.headline.text
    apart = {"cells": results["cells"][:1], "cells-tails": results["cells-tails"][5:7]}
    across = shift_report(apart).sections[0]
    assert across.facts["Left out"] == "Conformal Prediction"
    assert page.to_html()
    lost = dead()
    page = shift_report({"cells": [lost]})
    assert page.headline is None
    assert "Nothing could be judged" in page.to_html()
    (line,) = page.sections[-1].lines
    assert line.question == "Not known"
    assert "missing or not finite" in line.text
    assert shift_report({"cells": [lost, *results["cells"]]}).to_markdown()


def dead() -> ShiftResult:
    bad = Answers(
        y=np.zeros(9), point=np.zeros(9) * np.nan, lower=np.full(9, np.nan), upper=np.ones(9)
    )
    run = evaluate_shift(bad, {"full": bad})
    return ShiftResult(
        task="cells",
        method="diverged",
        coverage=0.9,
        rule="paper",
        runs=(run,),
        notes=(f"network 1 stopped {HOSTILE}",),
    )


def test_several_coverages_and_seeds() -> None:
    both = {
        "cells": [
            samples.made("cells", name, coverage=c) for c in (0.8, 0.9) for name in ("a", "b")
        ]
    }
    page = shift_report(both)
    tests = grid_of(page, "cells", "Test rows")
    assert [p.title for p in tests.parts] == [f"Test full, nominal {c} %" for c in (80, 90)]
    assert shift_report(both, coverage=0.8).facts["Nominal coverage shown"] == "80 %"
    seeds = {
        "cells": [samples.made(f"cells, seed {seed}", "conformal") for seed in (0, 1)],
    }
    page = shift_report(seeds)
    assert [part.title for part in page.sections][-3:] == ["cells, seed 0", "cells, seed 1", BESIDE]
    assert page.sections[-1].grids[0].size == 3  # means over both


def test_one_run_has_no_spread() -> None:
    one = {"cells": [samples.made("cells", "Ensemble", runs=1), samples.made("cells", "Gaussian")]}
    page = shift_report(one)
    tests = grid_of(page, "cells", "Test rows")
    assert tests.notes[1].startswith("Ensemble: only one run")


def test_every_form_holds_the_numbers(page: Document, tmp_path: Path) -> None:
    held = json.loads(page.to_json())
    count = 0
    for found in samples.benchmark().values():
        for result in found:
            count += 3 + (len(MEASURES) - 3) * len(result.tests)
    assert len(held["records"]) == count == len(page.records)
    assert [table["name"] for table in held["tables"]] == [
        *("shift_average_errors", "beside_published")
    ]
    assert len(list(csv.reader(page.to_csv().splitlines()))) == count + 1
    text = page.to_markdown()
    assert "## cells-tails" in text
    assert "| Method | cells | cells\\-tails |" in text.replace("cells-tails", "cells\\-tails")
    for ending in ("html", "md", "json", "csv"):
        page.save(tmp_path / f"report.{ending}")


def test_text_of_others_is_shown_never_run() -> None:
    names = {f"cells{HOSTILE}": [samples.made(f"cells{HOSTILE}", f"m{HOSTILE}"), dead()]}
    page = shift_report(names, title=HOSTILE)
    html = page.to_html()
    assert HOSTILE not in html
    assert "window.pwned=1" in html
    assert "<script" not in page.to_markdown()


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: shift_report({}), "at least one result"),
        (lambda: shift_report({"a": []}), "at least one result"),
        (lambda: shift_report({"a": [dead()]}, coverage=0.7), "was studied"),
        (lambda: shift_report({"a": [dead(), dead()]}), "once per coverage"),
        (lambda: shift_report({"a": [dead()]}).save("x.pdf"), "path must end"),
    ],
)
def test_bad_input_is_named(call: Any, words: str) -> None:
    with pytest.raises(InputError, match=words):
        call()
