"""The page on adaptivity: its sentences, its numbers, its figures, what was published."""

from __future__ import annotations

import csv
import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from extras import needs
from howsure.core.errors import InputError
from howsure.core.records import Curve
from howsure.figures import Figure, Mark, figures_of, plot, to_vega
from howsure.report.document import Document, Section
from howsure.topics.adaptivity.coverage import noise_floor
from howsure_studies.adaptivity import (
    INTERVAL_MEASURES,
    INTERVAL_METHODS,
    LABEL_MEASURES,
    LABEL_METHODS,
    VALIDATED,
    Classified,
    MeasureValidation,
    MethodComparison,
    MethodValidation,
    adaptivity_report,
    average_records,
    methods_figure,
    sensitivity_figure,
)
from howsure_studies.adaptivity.comparison import slope_floor
from howsure_studies.adaptivity.label_sets import RankByEase
from howsure_studies.engine import published, save_pages
from report.words import check_words, grid_of

HOSTILE = "</script><script>window.pwned=1</script>"
TABLES = Path(__file__).parent / "published"
NETS = {"labels": "ImageNet, nine nets", "y": "visual acuity, four nets"}


def printed(measure: str, units: str = "labels") -> dict[float, dict[str, float]]:
    """Published averages by coverage and method."""
    numbers: dict[float, dict[str, float]] = {}
    for row in published("adaptivity", task=NETS[units], measure=measure):
        numbers.setdefault(row.coverage, {})[row.method] = row.value
    return numbers


def beside(page: Document) -> dict[str, dict[str, list[str]]]:
    """By part of the table beside the published: what stands in each method's row."""
    grid = grid_of(page, "Comparison with the published numbers", "Published numbers")
    return {
        part.title: {row[0].text: [cell.text for cell in row[1:]] for row in part.rows}
        for part in grid.parts
    }


def comparison(coverage: float, *, labels: bool = True, task: str = "toy") -> MethodComparison:
    rng = np.random.default_rng(0)
    methods = LABEL_METHODS if labels else INTERVAL_METHODS
    measures = LABEL_MEASURES if labels else INTERVAL_MEASURES
    values = rng.uniform(0.2, 0.3, (12, len(methods), len(measures)))
    values[:, -1, 0] = rng.uniform(0.02, 0.05, 12)
    values[:, 0, 1] = np.nan
    return MethodComparison(
        task=task,
        methods=methods,
        measures=measures,
        values=values,
        coverage=coverage,
        calibration_rows=600,
        test_rows=1000,
        bins=20,
        seed=0,
        ease="noise 0.5",
        about={"Accuracy": "91.0 %"},
        reasons={(methods[0], "t_ss"): f"all cells agree {HOSTILE}"},
        units="labels" if labels else "y",
    )


@pytest.fixture(scope="module")
def page() -> Document:
    results = {
        "toy": [comparison(0.8), comparison(0.9)],
        f"widths {HOSTILE}": [comparison(0.8, labels=False), comparison(0.9, labels=False)],
    }
    return adaptivity_report(results, command="howsure bench report x")


def section(page: Document, title: str) -> Section:
    (found,) = (part for part in page.sections if part.title == title)
    return found


def test_the_title_and_the_headline_say_what_was_studied_and_found(page: Document) -> None:
    assert page.title.startswith("Is coverage equal for easy and hard inputs? 12 met")
    assert page.headline is not None
    assert page.headline.text == (
        "Not everywhere: in 10 of 12 tests, coverage at nominal 90 % differs significantly between "
        "easy and hard inputs. Label sets: least often for O-SAPS (0 of 1 task), most often for "
        "LAC, APS, RAPS and 2 more (1 of 1). Intervals: least often for O-PAC (0 of 1 task), most "
        "often for CP, CP-A, PAC and 2 more (1 of 1)."
    )
    assert page.headline.tone == "undecided"
    alone = adaptivity_report({"toy": [comparison(0.9)]})
    assert alone.title == "Is coverage equal for easy and hard inputs? 6 methods on toy"
    assert alone.headline is not None
    assert "1 of 6 methods on toy shows" in alone.headline.text
    assert "at nominal 90 %: O-SAPS." in alone.headline.text
    check_words(alone)


def test_sentences_judge_by_the_floor(page: Document) -> None:
    lines = {line.question: line for line in section(page, "toy").lines}
    fair, gap = lines["No significant gap"], lines["Significant coverage gap"]
    assert (fair.tone, gap.tone) == ("undecided", "bad")
    medians = np.median(comparison(0.9).values[:, :, 0], axis=0)
    floor = comparison(0.9).floor
    assert fair.text.startswith(f"T-CV is {medians[5]:.3f} (O-SAPS).")
    assert f"T-CV is {medians[:5].min():.3f} (" in gap.text
    assert f"to {medians[:5].max():.3f} (" in gap.text
    assert f"{floor.median:.3f} (95 % of the time below {floor.upper:.3f})" in gap.text
    assert "T-SS of LAC is not known: all cells agree" in lines["Not known"].text


def test_the_first_screen_compares_methods_and_tasks(page: Document) -> None:
    (grid,) = page.opening.grids
    assert [column.title for column in grid.columns] == ["Method", "toy", f"widths {HOSTILE}"]
    rows = {row[0].text: row for row in grid.parts[0].rows}
    assert rows["O-SAPS"][1].tone == "undecided"
    assert rows["APS"][1].tone == "bad"
    assert float(rows["APS"][1].key) == np.median(comparison(0.9).values[:, 1, 0])
    assert rows["APS"][2].text == "–"
    (figure,) = page.opening.choices[0].options[0].figures
    assert [layer.series for layer in figure.layers] == [
        *("chance alone, at most", "toy", f"widths {HOSTILE}")
    ]
    many = adaptivity_report({f"task {k}": [comparison(0.9, task=f"t{k}")] for k in range(4)})
    (grid,) = many.opening.grids
    assert [column.title for column in grid.columns] == ["Method", "Gap", "No gap shown"]
    assert [cell.text for cell in grid.parts[0].rows[5]] == ["O-SAPS", "0 of 4", "4 of 4"]


def test_tables_hold_medians_and_shared_ranks(page: Document) -> None:
    toy = section(page, "toy")
    (medians,) = toy.grids
    assert [part.title for part in medians.parts] == ["Nominal 80 %", "Nominal 90 %"]
    row = medians.parts[1].rows[5]
    assert row[0].text == "O-SAPS"
    assert float(row[1].key) == np.median(comparison(0.9).values[:, 5, 0])
    titles = [column.title for column in medians.columns]
    assert row[titles.index("T-CV rank")].text == "1"
    assert titles[:7] == [
        "Method",
        *("T-CV", "T-CV by chance", "T-CV rank"),
        *("T-SS", "T-SS by chance", "T-SS rank"),
    ]
    assert {"Rank-CV", "Rank-SS"} < set(titles)
    assert (toy.facts["Ease"], toy.facts["Accuracy"]) == ("noise 0.5", "91.0 %")


def test_averages_stand_beside_the_published() -> None:
    tasks = [comparison(0.9, task="a"), comparison(0.9, task="b")]
    tasks[1] = replace(tasks[1], values=tasks[1].values + 0.25)
    surrogate = replace(comparison(0.9), ease="surrogate, noise 1")
    page = adaptivity_report({"a": [tasks[0]], "b": [tasks[1]], "c": [surrogate]})
    kind = "Label sets: averages over tasks"
    assert [part.title for part in page.sections] == [
        kind,
        *"abc",
        "Comparison with the published numbers",
    ]
    (grid,) = section(page, kind).grids
    (part,) = grid.parts
    assert part.title == "Nominal 90 %"
    columns = {column.title: k for k, column in enumerate(grid.columns)}
    rows = {row[0].text: row for row in part.rows}
    titles = {"t_cv": "T-CV", "t_cv_rank": "T-CV rank", "set_deficit": "Deficit"}
    for record in average_records(tasks):
        if (title := titles.get(record.metric)) is None:
            continue
        cell = rows[record.model][columns[title]]
        assert float(cell.key) == record.value
        ours = beside(page)[f"ImageNet, nine nets: {title}, nominal 90 %"]
        known = printed(record.metric)[0.9][record.model]
        assert ours[record.model][:2] == [cell.text, f"{known:g}"]
        assert f"{record.model}, by surrogate ease" in ours
    assert grid_of(page, kind, "Averages over tasks") == grid
    check_words(page)


def test_sentences_say_what_of_the_published_pattern_is_there() -> None:
    known = [printed(measure)[0.9] for measure in ("t_cv", "t_ss")]
    values = np.zeros((3, 6, len(LABEL_MEASURES)))
    values[:, :, :2] = np.array([[numbers[name] for name in LABEL_METHODS] for numbers in known]).T
    toy = replace(comparison(0.9), values=values)

    def lines(result: MethodComparison) -> list[str]:
        page = adaptivity_report({"toy": [result], "again": [result]})
        return [line.text for line in page.sections[0].lines]

    by_cv, by_ss, chance = lines(toy)
    assert by_cv == (
        "By T-CV, O-SAPS is best and LAC worst; as published. 15 of 15 pairs of methods have the "
        "published order."
    )
    assert by_ss.startswith("By T-SS, O-LAC is best and LAC worst; as published. 15 of 15")
    floor = noise_floor([400] * 50, 0.9).median
    assert f"T-CV is {toy.floor.median:.3f} here, and {floor:.3f} in the paper" in chance
    swapped = values.copy()
    swapped[:, 5, 0] = 0.5  # O-SAPS is the worst
    by_cv, *_ = lines(replace(toy, values=swapped))
    assert "O-LAC is best and O-SAPS worst; published: O-SAPS and LAC. 10 of 15" in by_cv
    missing = values.copy()
    missing[:, 1:5, 1] = np.nan
    assert len(lines(replace(toy, values=missing))) == 2  # two methods show no pattern


def test_a_method_without_an_answer_on_some_tasks_is_no_best() -> None:
    whole, some = comparison(0.8, labels=False, task="a"), comparison(0.8, labels=False, task="b")
    values = whole.values.copy()
    values[:, 0, 1] = 0.99  # CP has a T-SS on one of the two tasks
    page = adaptivity_report({"a": [replace(whole, values=values)], "b": [some]})
    first = page.sections[0]
    assert "CP is best" not in "".join(line.text for line in first.lines)
    titles = [column.title for column in first.grids[0].columns]
    cell = first.grids[0].parts[0].rows[0][titles.index("T-SS")]
    assert (cell.text, cell.small) == ("0.99", "of 1 of 2 tasks")
    assert "Width" not in titles
    assert "Width" in [column.title for column in section(page, "a").grids[0].columns]
    clipped = replace(some, about={"Clipped to": "0 to 1"})
    apart = adaptivity_report({"a": [whole], "b": [clipped]})
    assert [part.title for part in apart.sections] == [
        "a",
        "b",
        "Comparison with the published numbers",
    ]
    rows = beside(apart)["visual acuity, four nets: T-SS, nominal 80 %"]
    assert list(rows)[:2] == ["CP", "CP, clipped"]
    *numbers, why = rows["CP"]
    assert numbers == ["–", "0.94", "–"]
    assert f"{why} all cells agree {HOSTILE}." in apart.sections[-1].grids[0].notes


def test_variants_are_averaged_apart_and_have_no_section_each() -> None:
    results = {
        name: [replace(comparison(0.9), task=name, bins=cells)]
        for name, cells in (("a", 20), ("b", 20), ("a, 20 cells", 20), ("b, 20 cells", 20))
    }
    page = adaptivity_report(results)
    assert [part.title for part in page.sections] == [
        *("Label sets: averages over tasks", "Label sets: variants", "a", "b"),
        "Comparison with the published numbers",
    ]
    (grid,) = section(page, "Label sets: variants").grids
    assert [part.title for part in grid.parts] == ["20 cells, nominal 90 %"]
    main = section(page, "Label sets: averages over tasks").grids[0]
    assert grid.parts[0].rows == main.parts[0].rows
    parts = beside(page)
    cells = parts["ImageNet, nine nets, 20 cells: T-CV, nominal 90 %"]
    assert next(iter(cells)) == "LAC, 20 cells"
    assert cells["APS, 20 cells"][1] == "0.05433"
    assert next(iter(parts["ImageNet, nine nets: T-CV, nominal 90 %"])) == "LAC"
    assert "of 12 tests" in page.headline.text  # type: ignore[union-attr]
    check_words(page)
    alone = adaptivity_report({"a, 20 cells": results["a, 20 cells"]})
    assert "a, 20 cells" in [part.title for part in alone.sections]


def test_tasks_with_other_measures_are_averaged_by_those_they_share() -> None:
    first = comparison(0.9)
    more = replace(
        first,
        measures=("ease_truth", *LABEL_MEASURES),
        values=np.concatenate([np.ones((12, 6, 1)), first.values], axis=2),
    )
    page = adaptivity_report({"a": [first], "b": [more]})
    rows = section(page, "Label sets: averages over tasks").grids[0].parts[0].rows
    same = adaptivity_report({"a": [first], "b": [first]})
    assert rows == section(same, "Label sets: averages over tasks").grids[0].parts[0].rows
    titles = [column.title for column in section(page, "b").grids[0].columns]
    assert "ρ of ease and true ease" in titles


def test_sentences_say_whether_groups_by_ease_help() -> None:
    rng = np.random.default_rng(0)

    def table(shift: float, name: str, **about: str) -> MethodComparison:
        base = comparison(0.8, labels=False, task=name)
        values = rng.normal(0.5, 0.01, base.values.shape)
        values[:, 4, :2] += shift  # O-CPA
        return replace(base, values=values, about=about)

    tables = {f"t{k}": [table(0.1, f"t{k}")] for k in range(5)}
    tables["drawn"] = [table(-9.0, "drawn", **{"Drawn world": "yes"})]
    tables["t0, clipped"] = [table(-9.0, "t0, clipped", **{"Clipped to": "0 to 1"})]
    page = adaptivity_report(tables)
    found = section(page, "Do groups by ease help intervals?")
    by_cv = next(line for line in found.lines if line.text.startswith("By T-CV, O-CPA"))
    assert "O-CPA is worse than CP-A: +0.10" in by_cv.text
    assert "better on 0 of 5 tables" in by_cv.text
    assert by_cv.tone == "bad"
    by_ss = next(line for line in found.lines if line.text.startswith("By T-SS, O-CPA"))
    assert "O-CPA is better than CP-A" in by_ss.text
    assert "better on 5 of 5 tables" in by_ss.text
    same = next(line for line in found.lines if line.text.startswith("By T-SS, O-PAC"))
    assert same.tone == "undecided"
    over, each = found.grids
    assert [row[0].text for row in over.parts[0].rows][:1] == ["O-CPA − CP-A"]
    assert [row[0].text for row in each.parts[0].rows] == [f"t{k}" for k in range(5)]
    check_words(page)


def test_what_was_never_published_stands_alone(page: Document) -> None:
    parts = [title for title in beside(page) if title.startswith("visual acuity")]
    assert parts
    assert all(title.endswith("nominal 80 %") for title in parts)
    none = adaptivity_report({"t": [comparison(0.5)]})
    assert [part.title for part in none.sections] == ["t"]
    both = adaptivity_report({"t": [comparison(0.5)], "u": [comparison(0.5)]})
    assert both.sections[0].title == "Label sets: averages over tasks"
    assert both.sections[0].lines == ()
    assert [part.title for part in both.sections[1:]] == ["t", "u"]


def test_figures_show_ours_alone(page: Document) -> None:
    toy = section(page, "toy")
    gap, size, by_cv, by_ss = (choice.options[0].figures[0] for choice in toy.choices)
    assert [layer.series for layer in gap.layers] == ["chance alone", "toy"]
    assert [layer.series for layer in size.layers] == ["chance alone", "toy"]
    assert size.layers[0].x.tolist() == [comparison(0.9).slope_floor]
    assert len(size.layers[1].x) == 5  # LAC has none
    assert by_cv.title == "Critical-difference diagram, by T-CV"
    assert by_ss.title.endswith("by T-SS")
    check_words(replace(page, title="A title", glossary=()))


def check(task: str, method: str, rho: list[float]) -> MethodValidation:
    values = np.random.default_rng(1).normal(size=(8, 5))
    return MethodValidation(
        task=task,
        method=method,
        coverage=0.9,
        bins=20,
        found=MeasureValidation(
            measures=VALIDATED,
            values=values,
            rate=np.linspace(0.4, 0.6, 8),
            rho=np.array(rho),
            p_value=np.full(5, 0.01),
            rows=300,
            subset=100,
            pairs=4000,
        ),
        ways=("noise 0.5", "contrast 0.5"),
        t_cv=np.array([0.1, 0.2]),
        t_ss=np.array([0.9, 0.8]),
    )


def test_chance_stands_beside_every_number(page: Document) -> None:
    floor = noise_floor(np.full(20, 50), 0.9)
    grid = grid_of(page, "toy", "Methods")
    titles = [column.title for column in grid.columns]
    for row in grid.parts[-1].rows:
        assert row[titles.index("T-CV by chance")].text == f"{floor.median:.3f}"
        assert row[titles.index("T-SS by chance")].text == f"{slope_floor(20):.3f}"


def test_the_difference_to_the_published_is_divided_into_chance_and_the_rest() -> None:
    tasks = [comparison(0.9, task="one"), comparison(0.9, task="two")]
    page = adaptivity_report({each.task: [each] for each in tasks})
    (section,) = (part for part in page.sections if part.title == "Label sets: averages over tasks")
    (line,) = (line for line in section.lines if line.question == "Chance")
    here = average_records(tasks)
    known = printed("t_cv")[0.9]
    gap = np.mean([abs(r.value - known[r.model]) for r in here if r.metric == "t_cv"])
    floors = [
        noise_floor(np.full(cells, rows // cells), 0.9).median
        for cells, rows in ((20, 1000), (50, 20_000))
    ]
    assert f"On average T-CV is {gap:.3f} from the published; " in line.text
    assert f"chance explains up to {floors[0] - floors[1]:.3f} of it" in line.text


def test_ranks_fall_as_ease_rises_where_the_classifier_is_sure_of_easy_rows() -> None:
    rng = np.random.default_rng(0)
    ease = np.repeat(np.arange(4.0), 50)
    probabilities = rng.dirichlet(np.ones(5), 200)
    y = rng.integers(5, size=200)
    sure = ease == 3
    probabilities[sure] = np.eye(5)[y[sure]]
    found = RankByEase.of(
        Classified(name="toy", y=y, eases={"given": ease}, probabilities=probabilities), 4
    )
    ranks = 1.0 + (probabilities > probabilities[np.arange(200), y][:, None]).sum(axis=1)
    np.testing.assert_allclose(found.rank, ranks.reshape(4, 50).mean(axis=1))
    assert found.rank[-1] == 1.0
    assert found.error[-1] == 0.0
    page = adaptivity_report({"toy": [comparison(0.9), replace(found, task="toy")]})
    (section,) = (p for p in page.sections if p.title == "Do easier inputs have better ranks?")
    rho = stats.spearmanr(np.arange(4), found.rank).statistic
    assert f"−{abs(rho):.3f}" in section.lines[0].text
    (figure,) = section.choices[0].options[0].figures
    np.testing.assert_array_equal(figure.layers[0].y, found.rank)


def test_a_page_of_many_worlds_leaves_each_to_a_file_beside_it(tmp_path: Path) -> None:
    worlds = [f"task {k}" for k in range(13)]
    page = adaptivity_report({name: [comparison(0.9, task=name)] for name in worlds})
    assert save_pages(page, tmp_path / "few.html", worlds[:1]) == (tmp_path / "few.html",)
    main, each = save_pages(page, tmp_path / "all.html", worlds)
    assert each.name == "all-each.html"
    whole, rest = main.read_text("utf-8"), each.read_text("utf-8")
    assert each.name in whole
    assert main.name in rest
    for section in page.sections:
        own = f'id="{section.anchor}"'
        assert (own in rest) == (section.title in worlds)
        assert (own in whole) == (section.title not in worlds)
    assert save_pages(page, tmp_path / "all.md", worlds) == (tmp_path / "all.md",)


def test_validations_have_sections_of_their_own() -> None:
    checks = [
        check("toy", "LAC", [-0.8, 0.1, 0.2, np.nan, 0.9]),
        check("toy", "APS", [-0.9, 0.3, 0.2, 0.1, 0.8]),
    ]
    page = adaptivity_report({"toy": [comparison(0.9), *checks]})
    measures = section(page, "Which measure follows Property 1?")
    counts, correlations = measures.grids
    assert [row[0].text for row in counts.parts[0].rows][:2] == ["Deficit", "T-SS"]
    row = counts.parts[0].rows[1]
    assert [cell.text for cell in row[1:3]] == ["1", "1"]
    assert row[-1].text == "1.5"
    task = "Property 1, 36 settings"
    assert beside(page)[f"{task}: average rank"]["T-SS"] == ["1.50", "1.33", "0.17", ""]
    for rank, known in enumerate((24, 12, 0, 0, 0), 1):
        here, there, *_ = beside(page)[f"{task}: times at rank {rank}, of 36"]["T-SS"]
        assert (here, there) == ("18" if rank < 3 else "0", str(known))
    assert beside(page)[f"{task}: average rank"]["SSCV"][1] == "3.58"
    assert measures.lines[0].text.startswith("Deficit follows Property 1 most closely, T-SS next")
    assert [row[1].text for row in correlations.parts[0].rows] == ["LAC", "APS"]
    assert float(correlations.parts[0].rows[0][6].key) == 0.9
    ways = section(page, "Does the way of disturbing matter?")
    figure = ways.choices[0].options[0].figures[0]
    assert [layer.series for layer in figure.layers] == ["LAC", "APS"]
    assert figure.layers[0].x.tolist() == [0.1, 0.2]
    check_words(page)


def test_a_page_opens_on_the_coverage_that_it_speaks_of() -> None:
    levels = (0.5, 0.8, 0.9, 0.95)
    results = {"toy": [comparison(level) for level in levels]}
    for coverage, order in ((None, (90, 50, 80, 95)), (0.8, (80, 50, 90, 95))):
        found = adaptivity_report(results, coverage=coverage)
        labels = [f"Nominal {level} %" for level in order]
        for choice in section(found, "toy").choices:
            assert [option.label for option in choice.options] == labels
        page = found.to_html()
        chosen = re.findall(r'<input type="radio"[^>]* checked><span>([^<]+)', page)
        assert chosen == [labels[0]] * 4
        tables = [part.title for part in section(found, "toy").grids[0].parts]
        assert tables == [f"Nominal {100 * level:g} %" for level in levels]
        assert found.facts["Nominal coverage shown"] == labels[0].removeprefix("Nominal ")


def test_every_form_holds_the_numbers(page: Document, tmp_path: Path) -> None:
    held = json.loads(page.to_json())
    count = 2 * 6 * (len(LABEL_MEASURES) + len(INTERVAL_MEASURES) + 2 + 2)  # ranks
    assert len(held["records"]) == count == len(page.records)
    assert len(list(csv.reader(page.to_csv().splitlines()))) == count + 1
    text = page.to_markdown()
    assert "## toy" in text
    assert "**Nominal 90 %**" in text
    html = page.to_html()
    assert HOSTILE not in html
    assert "window.pwned=1" in html  # escaped, in words
    assert "Nominal 80 %" in html
    for ending in ("html", "md", "json", "csv"):
        page.save(tmp_path / f"report.{ending}")


def test_the_published_are_averages_of_the_tables() -> None:
    """The page's figures against the tables read off the paper."""

    def rows(name: str) -> list[dict[str, str]]:
        with (TABLES / f"adaptivity_{name}.csv").open(encoding="utf-8", newline="") as file:
            return list(csv.DictReader(file))

    names = {
        **{"coverage": "empirical_coverage", "size": "set_size"},
        **{"deficit": "set_deficit", "excess": "set_excess"},
    }
    labels = [r for r in rows("labels") if r["table"] in "2456" and "average" not in r["model"]]
    for row in rows("labels"):
        if row["table"] in "25" and row["model"] == "average rank":
            held = printed(f"{row['measure']}_rank")[float(row["coverage"])]
            assert held == {name: float(row[name]) for name in LABEL_METHODS}
    sizes = {"labels": "set_size", "y": "width"}
    for kind, units, methods in (
        (labels, "labels", LABEL_METHODS),
        (rows("intervals"), "y", INTERVAL_METHODS),
    ):
        own = ("set_deficit", "set_excess") if units == "labels" else ()
        for measure in ("t_cv", "t_ss", "empirical_coverage", sizes[units], *own):
            held = printed(measure, units)
            assert len(held) == (4 if units == "labels" else 3)
            for coverage, numbers in held.items():
                assert tuple(numbers) == methods
                table = [
                    [float(row[m]) for m in methods]
                    for row in kind
                    if float(row["coverage"]) == coverage
                    and names.get(row["measure"], row["measure"]) == measure
                ]
                assert len(table) in (4, 9)
                np.testing.assert_allclose(
                    [*numbers.values()], np.mean(table, axis=0), atol=0.00051
                )


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: adaptivity_report({}), "at least one comparison"),
        (lambda: adaptivity_report({"a": []}), "at least one comparison"),
        (lambda: adaptivity_report({"a": [comparison(0.9)]}, coverage=0.7), "was studied"),
        (lambda: adaptivity_report({"a": [comparison(0.9)]}).save("x.pdf"), "path must end"),
    ],
)
def test_bad_input_is_named(call, words: str) -> None:
    with pytest.raises(InputError, match=words):
        call()


def curve(name: str, model: str, shift: float = 0.0) -> Curve:
    x = np.array([0.125, 0.375, 0.625, 0.875])
    return Curve(
        name=name,
        x=x,
        y=0.9 + shift * x,
        lower=np.full(4, 0.85),
        upper=np.full(4, 0.95),
        reference=np.full(4, 0.9),
        x_label="share of rows",
        y_label="coverage",
        band="95% band",
        model=model,
        hover={"Rows": np.full(4, 10.0)},
    )


def figures() -> list[Figure]:
    pair = [curve("coverage_by_ease", "A"), curve("coverage_by_ease", "B", 0.1)]
    bare = {"lower": None, "upper": None, "reference": None}
    sizes = [replace(curve("size_by_difficulty", m, s), **bare) for m, s in (("A", 0), ("B", 0.2))]
    return [
        *figures_of(pair),
        *figures_of(sizes),
        methods_figure(
            {"digits": {"LAC": 0.3, "APS": np.nan}, "photos": {"LAC": 0.4, "APS": 0.1}},
            "t_cv",
            rules={"perfect": 0.04, "none": np.nan},
        ),
        sensitivity_figure(
            ["noise", "contrast"], {"LAC": np.array([0.5, np.nan])}, "t_ss", title="type"
        ),
    ]


@pytest.mark.parametrize("figure", figures(), ids=lambda f: f.name)
def test_every_renderer_draws_them(figure: Figure) -> None:
    needs("matplotlib")
    from matplotlib import pyplot

    assert to_vega(figure)
    axes = plot(figure)
    assert axes.get_xlabel() == figure.x.title
    pyplot.close("all")


def test_layers_hold_what_was_given() -> None:
    by_ease, by_size, methods, ways = figures()
    lines = [layer for layer in by_ease.layers if layer.mark is Mark.LINE]
    assert [layer.series for layer in lines] == ["nominal", "A", "B"]
    np.testing.assert_allclose(lines[2].y, 0.9 + 0.1 * lines[2].x)
    (band,) = (layer for layer in by_ease.layers if layer.mark is Mark.BAND)
    assert (band.series, band.lower.tolist()) == ("95% band", [0.85] * 4)
    assert {layer.mark for layer in by_size.layers} == {Mark.POINTS}
    assert [layer.series for layer in by_size.layers] == ["A", "B"]
    rule, digits, photos = methods.layers
    assert rule.x.tolist() == [0.04]
    assert (digits.x.tolist(), digits.labels) == ([0.3], ("LAC",))
    assert (photos.x.tolist(), photos.y.tolist()) == ([0.4, 0.1], [0.0, 1.0])
    assert ways.layers[0].labels == ("noise",)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: methods_figure({}, "t_cv"), "0 series"),
        (lambda: methods_figure({"a": {"b": 1.0}}, "nothing"), "measure be one of"),
        (lambda: sensitivity_figure(["a"], {"b": np.ones(2)}, "t_ss", title="t"), "must be 1"),
    ],
)
def test_bad_figures_are_named(call, words: str) -> None:
    with pytest.raises(InputError, match=words):
        call()
