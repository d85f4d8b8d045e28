"""The study through bench: what a trial keeps, what comes back, its page and its figures."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from howsure.core import formats
from howsure.core.errors import InputError
from howsure.core.rng import child
from howsure.report.document import Document
from howsure.topics.characteristic.bands import bands_from_sd
from howsure.topics.characteristic.curve import characteristic_curve
from howsure_studies.characteristic import (
    CharacteristicStudy,
    MethodResult,
    bands_figure,
    characteristic_report,
    compare,
    curves_figure,
    gap,
)
from howsure_studies.characteristic.measures import AXES
from howsure_studies.engine import (
    Combined,
    Plan,
    Store,
    combined,
    load_plan,
    plan_names,
    run,
    shipped,
    survey,
    trials_of,
)
from howsure_studies.methods import method_named
from report.words import check_words, figures, grid_of

FLAT = {"method": "linear_t"}
HERE = "howsure_studies.characteristic"


def plan(**changes: Any) -> Plan:
    given: dict[str, Any] = {
        "name": "test",
        "study": "characteristic",
        "worlds": {"gap": "gap", "fan": "fan"},
        "methods": {
            "line": "linear_t",
            "ridge": "bayesian_ridge",
            "trees": {"method": f"{HERE}:QuantileBoosting", "rounds": 5},
        },
        "options": {
            **{"miss_range": [0.0, 0.4], "miss_rates": [0.1, 0.6], "replicates": 20},
            **{"n_train": 100, "n_test": 200},
        },
    }
    return Plan(**{**given, **changes})


def found(told: Plan, store: Store) -> Combined:
    return combined(told, survey(told, store), store)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Combined:
    store = Store(tmp_path_factory.mktemp("store"))
    summary = run(plan(), store)
    assert (summary.done, summary.failed) == (6, 0)
    return found(plan(), store)


def own(made: Combined, method: str, world: str = "gap") -> MethodResult:
    (result,) = (held for held in made.results[world] if held.method == method)
    return result


def test_areas_are_those_of_the_formulas_on_the_same_rows(made: Combined) -> None:
    """The method fitted by hand, its bands traced by hand, against what the store gives back."""
    rows = gap(0, n_train=100, n_test=200)
    fitted = method_named("bayesian_ridge").fit(rows.x, rows.y, child(0, "characteristic", "fit"))
    outcome = fitted.predict(rows.x_test).outcome
    curve = characteristic_curve(rows.y_test, *bands_from_sd(outcome.point(), outcome.sd()))
    given = own(made, "ridge")
    np.testing.assert_array_equal(given.y, rows.y_test)
    np.testing.assert_array_equal(given.place, rows.x_test[:, 0])
    for x, y_axis in AXES:
        ending = "" if (x, y_axis) == AXES[0] else f"_{x}_{y_axis}"
        one = curve.on(x=x, y_axis=y_axis)
        area, gain = given.record(f"auucc{ending}"), given.record(f"characteristic_gain{ending}")
        assert area.value == pytest.approx(one.area().value, rel=1e-9)
        assert gain.value == pytest.approx(one.gain().value, rel=1e-6, abs=1e-6)
        again = given.curve().on(x=x, y_axis=y_axis)
        assert area.value == pytest.approx(again.area().value, rel=1e-12)


def test_a_run_that_was_broken_off_gives_what_a_whole_one_does(
    made: Combined, tmp_path: Path
) -> None:
    store = Store(tmp_path)
    first = run(plan(worlds={"gap": "gap"}), store)
    rest = run(plan(), store)
    assert (first.done, rest.done, rest.skipped) == (3, 3, 3)
    again = found(plan(), store)
    assert repr(again.table.to_pylist()) == repr(made.table.to_pylist())


def test_the_order_of_methods_changes_nothing(made: Combined, tmp_path: Path) -> None:
    told = plan(methods=dict(reversed(plan().methods.items())))
    store = Store(tmp_path)
    run(told, store)
    turned = found(told, store)
    for world, results in made.results.items():
        for result in results:
            other = own(turned, result.method, world)
            assert repr(other.records) == repr(result.records)
            np.testing.assert_array_equal(other.lower, result.lower)
    assert {t.address for t in trials_of(told)} == {t.address for t in trials_of(plan())}


def test_an_address_holds_what_decides_a_trial() -> None:
    def addresses(**changes: Any) -> set[str]:
        return {trial.address for trial in trials_of(plan(**changes))}

    options = plan().options
    assert len(addresses()) == 6
    assert addresses(seeds=(0, 1)) > addresses()
    changed = {"miss_range": [0, 0.3], "replicates": 30, "n_train": 90, "miss_rates": [0.1]}
    for name, value in changed.items():
        assert not addresses(options={**options, name: value}) & addresses()
    assert addresses(options={**options, "miss_rates": [0.6, 0.1]}) == addresses()
    assert not addresses(methods={"a": {**FLAT, "intercept": False}}) & addresses()
    assert addresses(methods={"other label": FLAT}) < addresses()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"mis_range": [0, 0.2]}, "miss_range"),
        ({"miss_range": [0.5, 0.2]}, "miss_range must be two rising numbers between 0 and 1"),
        ({"miss_range": [0, 1.2]}, "miss_range must be two rising numbers between 0 and 1"),
        ({"miss_range": 0.2}, "miss_range must be"),
        ({"miss_rates": []}, "miss_rates must not be empty"),
        ({"miss_rates": [0.0]}, "miss_rates must be strictly between 0 and 1"),
        ({"replicates": 1}, "replicates must be a whole number of at least 2"),
    ],
)
def test_options_that_break_their_rule_are_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        trials_of(plan(options=options))


def test_plans_of_the_study_are_known_by_name() -> None:
    names = [name for name in plan_names() if name.startswith("characteristic_")]
    profiles = ("gap", "recurrent", "small", "traffic")
    assert names == [f"characteristic_{profile}" for profile in profiles]
    assert load_plan("characteristic").name == "characteristic_small"
    assert load_plan("characteristic", profile="gap").seeds == tuple(range(20))
    assert len(trials_of(load_plan("characteristic"))) == 6


@pytest.fixture(scope="module")
def page(made: Combined) -> Document:
    return CharacteristicStudy().page(made, facts={"Plan": "test"}, command="howsure bench")


def test_the_page_says_where_widths_pay(page: Document, made: Combined) -> None:
    check_words(page)
    assert page.title == "Where do adaptive widths beat a constant width? 3 methods on 2 worlds"
    gains = [r.record("characteristic_left_gain") for held in made.results.values() for r in held]
    good = sum(gain.lower > 0 for gain in gains)
    assert page.headline is not None
    assert page.headline.text.startswith(f"In {good or 'none'} of 6 tests on 2 worlds")
    bad = sum(gain.upper < 0 for gain in gains)
    assert "constant band at miss rates up to 40 %." in page.headline.text
    assert page.headline.text.endswith(f" In {bad} they need more.") == (bad > 0)
    better = [r for r in made.results["gap"] if r.record("characteristic_left_gain").lower > 0]
    assert (f"gap ({better[0].method}" in page.headline.text) if better else True
    tones = {(True, True): "caution", (True, False): "good", (False, True): "bad"}
    assert page.headline.tone == tones.get((good > 0, bad > 0), "undecided")
    gap_lines = {line.question: line for line in page.sections[0].lines}
    trees = own(made, "trees").record("characteristic_left_gain")
    tone = "good" if trees.lower > 0 else "bad" if trees.upper < 0 else "undecided"
    assert gap_lines["trees"].tone == tone
    assert f"need {abs(trees.value):.1f} %" in gap_lines["trees"].text
    assert "Methods compared" in gap_lines


def test_tables_of_the_page_hold_the_numbers(page: Document, made: Combined) -> None:
    grid = grid_of(page, "gap", "Areas and gains")
    for row in grid.parts[0].rows:
        given = own(made, row[0].text)
        assert float(row[1].key) == given.record("auucc").value
        assert float(row[2].key) == given.record("characteristic_gain").value
        assert float(row[-1].key) == given.record("crossing").value
    points = grid_of(page, "gap", "Operating points").parts[0].rows
    assert float(points[0][1].key) == own(made, "line").record("bandwidth", 0.9).value
    tests = grid_of(page, "gap", "Methods compared").parts[0].rows
    assert len(tests) == 3
    assert len(page.records) == sum(len(r.records) for held in made.results.values() for r in held)


def test_the_page_is_written_in_every_form(page: Document) -> None:
    assert "<html" in page.to_html()
    assert "trees" in page.to_markdown()
    assert "auucc" in page.to_csv()
    assert '"characteristic_left_gain"' in page.to_json()


def test_figures_draw_curves_and_scaled_bands(page: Document, made: Combined) -> None:
    names = [figure.name for figure in figures(page)]
    assert names.count("gains") == 1
    assert (names.count("characteristic"), names.count("bands")) == (2, 8)
    trees = own(made, "trees")
    figure = bands_figure(trees)
    assert figure is not None
    bands = [layer for layer in figure.layers if layer.mark == "band"]
    scale = trees.curve().at(miss_rate=0.1).knob
    width = scale * (trees.upper - trees.lower)
    order = np.argsort(trees.place, kind="stable")
    np.testing.assert_allclose(bands[0].upper - bands[0].lower, width[order], rtol=1e-9)
    constant = bands_figure(trees, constant=True)
    assert constant is not None
    flat = next(layer for layer in constant.layers if layer.mark == "band")
    assert np.ptp(flat.upper - flat.lower) == pytest.approx(0, abs=1e-9)
    curves = curves_figure(made.results["gap"])
    drawn = {layer.series: layer for layer in curves.layers if layer.mark == "step"}
    own_curve = trees.curve()
    at = np.searchsorted(own_curve.x, drawn["trees"].x[5], side="right") - 1
    assert drawn["trees"].y[5] == own_curve.y[at]
    with pytest.raises(InputError, match="results must contain at least one"):
        curves_figure([])


def test_several_data_sets_are_told_by_their_medians(tmp_path: Path) -> None:
    told = plan(worlds={"gap": "gap"}, seeds=(0, 1, 2))
    store = Store(tmp_path)
    run(told, store)
    made = found(told, store)
    page = characteristic_report(made.results)
    check_words(page)
    own = [r for r in made.results["gap"] if r.method == "trees"]
    values = [r.record("characteristic_left_gain").value for r in own]
    line = next(line for line in page.lines if line.question == "gap, trees")
    text = f"{np.median(values):.1f} %".replace("-", "−")
    assert f"the median gain over 3 data sets is {text}" in line.text
    row = grid_of(page, "gap", "Areas and gains").parts[0].rows[-1]
    assert float(row[6].key) == np.median(values)


def test_a_report_needs_results() -> None:
    with pytest.raises(InputError, match="results must contain at least one method for each world"):
        characteristic_report({"gap": []})


@pytest.mark.parametrize("part", [(0.0, 0.4), (0.0, 0.5)])
@pytest.mark.parametrize("seeds", [(0,), (0, 1)])
def test_the_page_sets_the_papers_problem_beside_its_numbers(
    part: tuple[float, float], seeds: tuple[int, ...], made: Combined
) -> None:
    """Only a world of the paper has published numbers, and a partial gain only in their range."""
    results = {
        world: [
            replace(each, options=replace(each.options, miss_range=part), seed=seed)
            for each in held
            for seed in seeds
        ]
        for world, held in made.results.items()
    }
    page = characteristic_report(results)
    check_words(page)
    grid = grid_of(page, "Comparison with the published numbers", "Published numbers")
    parts = {
        part.title: {row[0].text: row[1:] for row in part.rows if part.title} for part in grid.parts
    }
    whole = parts["gap: gain over all miss rates, %"]
    partial = "gap, miss rates 0 to 0.5: gain by the area under the curve, %"
    assert (partial in parts) == (part == (0.0, 0.5))
    assert parts["gap: crossing"]["ridge"][1].text == "between 0.2 and 0.7"
    for method in ("line", "ridge", "trees"):
        record = own(made, method).record("characteristic_gain")
        here, there, away, _ = whole[method]
        assert float(here.key) == record.value
        _, error = formats.estimate(record.value, record.standard_error)
        assert here.small == (f"± {error}" if len(seeds) == 1 else "± 0")
        assert (there.text, float(away.key)) == ("6.1", record.value - 6.1)
        low, crossing = (
            own(made, method).record(name).value
            for name in ("characteristic_partial_gain", "crossing")
        )
        crossed = low > max(record.value, 0.0) and 0.0 < crossing < 1.0
        shown = parts["gap: share of data sets with the pattern"][method]
        assert float(shown[0].key) == crossed
        assert shown[1].text.startswith("shown: the curves cross")
    (line,) = [line for line in page.lines if line.question == "gap, Comparison with the paper"]
    assert line.text.startswith("Data sets with the published pattern: ")
    assert not [title for title in parts if title.startswith("fan")]


def ships(told: Plan, store: Store, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Combined:
    """What ships of a plan, as it is read without its store."""
    (folder / "test.parquet").write_bytes(shipped.shipped_bytes(told, store))
    monkeypatch.setattr(shipped, "plan_folders", lambda: (folder,))
    return shipped.study_shipped("characteristic")


@pytest.mark.slow
@pytest.mark.parametrize("seeds", [(0,), (0, 1)])
def test_what_ships_makes_the_page_that_the_run_does(
    seeds: tuple[int, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = plan(worlds={"gap": "gap"}, seeds=seeds)
    store = Store(tmp_path / "store")
    run(told, store)
    ran, read = found(told, store), ships(told, store, tmp_path, monkeypatch)
    assert not any(len(result.y) for result in read.results["gap"])
    pages = [CharacteristicStudy().page(each) for each in (ran, read)]
    assert pages[0].to_json() == pages[1].to_json()
    assert pages[0].to_html() == pages[1].to_html()
    # Under names of one's own, and with fewer methods, pairs are those of the methods left.
    other = replace(told, methods={"b": plan().methods["ridge"], "a": plan().methods["line"]})
    both = [combined(other, survey(other, each), each) for each in (store, Store(tmp_path / "no"))]
    first, second = (compare(each.results["gap"]) for each in both)
    assert [(pair.first, pair.second) for pair in first] in ([("a", "b")], [("b", "a")])
    assert repr(first) == repr(second)
    # Of seeds beyond the first no figure ships; numbers do.
    last, missing = replace(told, seeds=seeds[-1:]), Store(tmp_path / "no")
    page = CharacteristicStudy().page(combined(last, survey(last, missing), missing))
    names = {figure.name for figure in figures(page)}
    assert names == ({"gains", "characteristic", "bands"} if len(seeds) == 1 else {"gains"})
    assert grid_of(page, "gap", "Areas and gains").parts[0].rows
    # A method of one's own, which has test rows, stands beside what ships.
    mine = replace(told, methods={**other.methods, "mine": {**FLAT, "intercept": False}})
    run(replace(mine, methods={"mine": mine.methods["mine"]}), Store(tmp_path / "mine"))
    beside = combined(mine, survey(mine, Store(tmp_path / "mine")), Store(tmp_path / "mine"))
    assert len(compare(beside.results["gap"])) == (1 if len(seeds) == 1 else 3)
    assert CharacteristicStudy().page(beside).to_html()


@pytest.mark.rate
def test_a_cell_of_what_ships_is_found_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = load_plan("characteristic_small")
    (line,) = [
        result
        for result in shipped.study_shipped("characteristic").results["fan"]
        if result.method == "line"
    ]
    few = replace(told, worlds={"fan": "fan"}, methods={"line": told.methods["line"]})
    run(few, Store(tmp_path))
    monkeypatch.setattr(shipped, "plan_folders", tuple)
    (again,) = found(few, Store(tmp_path)).results["fan"]
    for ours, theirs in zip(again.records, line.records, strict=True):
        assert (ours.metric, ours.value) == (theirs.metric, pytest.approx(theirs.value, rel=1e-6))
