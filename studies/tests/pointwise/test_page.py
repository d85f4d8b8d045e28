"""The report on coverage at every point: its words, its numbers, its page."""

from __future__ import annotations

import importlib.util
import json
import math
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from html import unescape
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression

from extras import absent, needs
from howsure.core.errors import InputError
from howsure.figures import Mark
from howsure.inputs.distributions import located
from howsure.report.document import Document
from howsure.report.page import render
from howsure_studies.engine import published, study_of, study_shipped
from howsure_studies.methods.interface import Fitted, Method, Predictions
from howsure_studies.methods.linear import LinearT
from howsure_studies.methods.regressors import SplitConformal
from howsure_studies.pointwise import PointwiseResult, Precision, pointwise, pointwise_report
from howsure_studies.tasks.worlds import CutWorld, world_named
from report.words import check_words, grid_of

HOSTILE = "</script><script>window.pwned=1</script><img src=x onerror=pwned()>\"'`"


class Says(Method, Fitted):
    """The truth of a world, its sd times a factor; raises in the trials named."""

    def __init__(self, name: str, factor: float, world: str, bad: tuple[int, ...] = ()) -> None:
        self.called, self.factor, self.world, self.bad = name, factor, world, bad
        self.count = -1

    @property
    def name(self) -> str:
        return self.called

    def fit(self, x: Any, y: Any, rng: np.random.Generator) -> Fitted:
        self.count += 1
        if self.count in self.bad:
            raise ZeroDivisionError(f"no fit {HOSTILE}")
        self.wobble = 1 + 0.01 * rng.normal()
        return self

    def predict(self, x: Any) -> Predictions:
        truth = world_named(self.world).truth(x)
        return Predictions(located("norm", truth.mean, truth.sd * self.factor * self.wobble))


@pytest.fixture(scope="module")
def results() -> dict[str, list[PointwiseResult]]:
    conformal = SplitConformal(LinearRegression(), coverages=(0.8, 0.9))
    toy: dict[str, Any] = {"trials": 20, "n_train": 80, "n_test": 120, "coverages": (0.8, 0.9)}
    wide: dict[str, Any] = {"trials": 12, "n_train": 60, "n_test": 80, "coverages": (0.8, 0.9)}
    return {
        "toy": [pointwise("toy_heteroscedastic", m, **toy) for m in (LinearT(), conformal)],
        "ten columns": [pointwise("friedman1", m, **wide) for m in (LinearT(), conformal)],
        "exact": [pointwise("linear", LinearT(), trials=60, n_test=40, coverages=(0.8, 0.9))],
    }


@pytest.fixture(scope="module")
def report(results: dict[str, list[PointwiseResult]]) -> Document:
    names = {"ten columns": [f"c{j}" for j in range(10)]}
    return pointwise_report(results, title="A title", names=names, command="howsure simulate x")


@pytest.fixture(scope="module")
def page(report: Document) -> str:
    return report.to_html()


def text_of(page: str) -> str:
    bare = re.sub(r"<(script|style).*?</\1>", " ", page, flags=re.DOTALL)
    return " ".join(re.sub(r"<[^>]+>", " ", bare).split())


def test_the_main_message_counts_what_fails_and_what_hides(
    report: Document, results: dict[str, list[PointwiseResult]]
) -> None:
    assert report.facts["Nominal coverage shown"] == "90 %"
    assert report.headline is not None
    assert report.headline.tone == "bad"
    assert report.headline.text.startswith("No. In 4 of 5 tests on 3 worlds")
    every = [found for held in results.values() for found in held]
    judged = [
        (one.band("picf", 0.9).verdict(0.9) != 0, one.band("picf", 0.9).value) for one in every
    ]
    hidden = sum(off.any() and abs(value.mean() - 0.9) <= 0.02 for off, value in judged)
    assert f"In {hidden} of them average coverage" in report.headline.text


def test_the_first_screen_compares_methods_over_worlds(
    report: Document, results: dict[str, list[PointwiseResult]]
) -> None:
    (grid,) = report.opening.grids
    assert [column.title for column in grid.columns] == ["Method", *results]
    first = grid.parts[0].rows[0]
    assert (first[0].text, first[3].tone) == ("linear t", "good")
    off = results["toy"][0].band("picf", 0.9).verdict(0.9) != 0
    assert (float(first[1].key), first[1].tone) == (off.mean(), "bad")
    (figure,) = report.opening.choices[0].options[0].figures
    assert figure.y.categories[0] == "toy: linear t"
    ranges = next(layer for layer in figure.layers if layer.mark is Mark.INTERVALS)
    value = results["toy"][0].band("picf", 0.9).value
    np.testing.assert_allclose((ranges.lower[0], ranges.upper[0]), np.quantile(value, [0.05, 0.95]))
    check_words(replace(report, title="A title", glossary=()))


def test_a_title_says_what_was_studied(results: dict[str, list[PointwiseResult]]) -> None:
    one = pointwise_report({"linear": results["exact"]})
    assert one.title == "Are prediction intervals right at every x? linear t on linear"
    assert one.headline is not None
    assert one.headline.text.endswith("do not cover significantly below or above nominal at any x.")
    many = pointwise_report(results)
    assert many.title == "Are prediction intervals right at every x? 2 methods on 3 worlds"
    bad = pointwise_report({"toy": results["toy"][:1]}).headline
    assert bad is not None
    off = results["toy"][0].band("picf", 0.9).verdict(0.9) != 0
    assert f"significantly at {100 * off.mean():.1f}" in bad.text


def test_sentences_tell_the_numbers_of_the_result(
    report: Document, results: dict[str, list[PointwiseResult]]
) -> None:
    line = next(found for found in results["toy"] if found.method == "linear t")
    band = line.band("picf", 0.9)
    verdict = band.verdict(0.9)
    text = next(
        found.text for found in report.sections[0].lines if found.question.startswith("linear t: p")
    )
    for number in (band.value.mean(), (verdict < 0).mean(), (verdict > 0).mean()):
        assert f"{100 * number:.1f}".removesuffix(".0") in text
    low = np.quantile(band.value, 0.05)
    assert f"between {100 * low:.1f}".removesuffix(".0") in text
    x = np.ravel(line.x)
    lowest = x[verdict < 0][np.argmin(band.value[verdict < 0])]
    least = re.search(r"It covers least where x is (\S+) to (\S+) ", text)
    assert least is not None
    low, high = (float(end.replace("−", "-")) for end in least.groups())
    assert low - 0.01 <= lowest <= high + 0.01
    exact = report.sections[2].lines[0]
    assert exact.tone == "good"
    assert "significantly from nominal at none of 40 (60 trials)" in exact.text


def test_regions_of_many_columns_are_named(report: Document) -> None:
    (grid,) = [grid for grid in report.sections[1].grids if grid.title.startswith("Where")]
    words = [row[0].text for part in grid.parts for row in part.rows]
    assert any(re.search(r"c\d+ (≤|>)", word) for word in words)
    place = [column.title for column in grid.columns].index("Mean coverage there")
    keys = [float(row[place].key) for part in grid.parts for row in part.rows]
    assert all(0.0 <= key <= 1.0 for key in keys)


def test_tables_hold_the_numbers_of_the_result(
    report: Document, results: dict[str, list[PointwiseResult]]
) -> None:
    grid = report.sections[0].grids[0]
    assert [part.title for part in grid.parts] == ["Nominal 80 %", "Nominal 90 %"]
    titles = [column.title for column in grid.columns]
    row = dict(zip(titles, grid.parts[1].rows[0], strict=True))
    found = results["toy"][0]
    score = found.brier("picf", 0.9)
    assert row["Method"].text == "linear t"
    assert float(row["Brier, corrected"].key) == score.corrected
    assert float(row["Brier, raw"].key) == score.raw
    assert float(row["Bias²"].key) + float(row["Variance"].key) == pytest.approx(score.corrected)
    assert float(row["Mean PICP"].key) == pytest.approx(found.picp(0.9).mean())
    assert float(row["Failing points"].key) == pytest.approx(
        (found.band("picf", 0.9).verdict(0.9) != 0).mean()
    )
    assert "MC" in row["Brier, raw"].small
    confidence = report.sections[0].grids[1]
    assert confidence.title == "Confidence intervals for the mean"
    assert [row[0].text for row in confidence.parts[0].rows] == ["linear t"]
    assert "split conformal (LinearRegression): gives no confidence intervals" in " ".join(
        confidence.notes
    )


def test_stopping_and_failures_are_told() -> None:
    good = pointwise(
        "linear",
        LinearT(),
        coverages=(0.8,),
        trials=400,
        n_test=20,
        stop=Precision(standard_error=0.02),
    )
    bad = pointwise(
        "linear", Says("bad", 1.0, "linear", bad=(1, 2)), coverages=(0.8,), trials=10, n_test=20
    )
    never = pointwise(
        "linear", Says("never", 1.0, "linear", bad=(0, 1)), coverages=(0.8,), trials=2, n_test=20
    )
    report = pointwise_report({"linear": [good, bad, never]})
    (trials,) = [grid for grid in report.sections[0].grids if grid.title == "Trials"]
    rows = {row[0].text: row for row in trials.parts[0].rows}
    assert "met after" in rows["linear t"][-1].text
    assert rows["bad"][4].text == "2"
    assert "fit: ZeroDivisionError: no fit" in rows["bad"][0].small
    lost = [line for line in report.sections[0].lines if line.question == "never"]
    assert lost[0].tone == "bad"
    assert "no trial succeeded" in lost[0].text
    assert "window.pwned=1</script><img" not in report.to_html()


def test_the_best_method_is_named_only_where_it_is_ahead() -> None:
    def tested(*factors: float, trials: int) -> Document:
        held = [
            pointwise(
                "linear", Says(f"m{f}", f, "linear"), coverages=(0.8,), trials=trials, n_test=30
            )
            for f in factors
        ]
        return pointwise_report({"linear": held})

    ahead = tested(0.5, 0.9, trials=10).sections[0].lines[0]
    assert ahead.tone == "info"
    assert ahead.text.startswith("m0.9 is closest to nominal 80\xa0%")
    near = tested(1.0, 1.0001, trials=5).sections[0].lines[0]
    assert near.tone == "undecided"
    assert "is not significant" in near.text


def test_no_failure_is_told_where_there_is_none() -> None:
    held = [
        pointwise("linear", Says(name, 1.0, "linear"), coverages=(0.8,), trials=10, n_test=30)
        for name in ("a", "b")
    ]
    message = pointwise_report({"linear": held}).headline
    assert message is not None
    assert message.tone == "good"
    assert message.text.startswith(
        "Yes: no problems found. None of 2 methods tested on linear has coverage significantly"
    )


def test_a_world_without_truth_is_reported_as_far_as_it_goes() -> None:
    draw = world_named("linear").test_set(0, 400)
    world = CutWorld.from_data(draw.x, draw.y, rows=20)
    found = pointwise(world, LinearT(), coverages=(0.8,), trials=5)
    report = pointwise_report({"cut": [found]})
    assert report.headline is None
    page = text_of(report.to_html())
    assert "Nothing could be judged" in page
    assert "does not know the distribution of y" in page
    assert "PICP over trials" in page


def test_a_coverage_that_all_answered_is_shown(results: dict[str, list[PointwiseResult]]) -> None:
    assert pointwise_report(results, coverage=0.8).facts["Nominal coverage shown"] == "80 %"
    with pytest.raises(InputError, match=r"coverage must be one that was studied \(0.8, 0.9"):
        pointwise_report(results, coverage=0.7)
    other = pointwise("linear", LinearT(), coverages=(0.5,), trials=3, n_test=9)
    with pytest.raises(InputError, match="must share a nominal coverage"):
        pointwise_report({**results, "other": [other]})
    assert pointwise_report({"other": [other]}).facts["Nominal coverage shown"] == "50 %"


def test_seeds_are_shown_apart_and_equal_names_numbered() -> None:
    given = [
        pointwise("linear", LinearT(), coverages=(0.8,), trials=4, n_test=9, seed=seed)
        for seed in (0, 0, 1)
    ]
    report = pointwise_report({"linear": given})
    assert [part.title for part in report.sections] == ["linear, seed 0", "linear, seed 1"]
    assert report.headline is not None
    assert "of 3 tests on linear" in report.headline.text
    assert [row[0].text for row in report.opening.grids[0].parts[0].rows] == [
        *("linear t", "linear t (2)")
    ]
    other = pointwise("linear", LinearT(), coverages=(0.8,), trials=4, n_test=8)
    with pytest.raises(InputError, match="must share its test set"):
        pointwise_report({"linear": [given[0], other]})
    with pytest.raises(InputError, match="at least one result"):
        pointwise_report({"linear": []})


def test_each_published_order_is_there_with_the_reason_where_ours_is_another() -> None:
    shipped = study_shipped("pointwise")
    document = study_of("pointwise").page(shipped)
    check_words(document)
    grid = grid_of(document, "Comparison with the published numbers", "Dropout less the bootstrap")
    told = {(part.title, row[0].text): row for part in grid.parts for row in part.rows}
    printed = [
        row
        for row in published("pointwise")
        if row.method == "dropout" and math.isfinite(row.value) and row.measure != "pattern"
    ]
    assert len(told) == 2 * len(printed) == 14
    assert {row[3].text for row in told.values()} == {
        "as published",
        "other",
        "no significant difference",
    }
    assert all(bool(row[4].text) == (row[3].text == "other") for row in told.values())

    first, second = (
        next(
            record
            for summary in shipped.results["bimodal"]
            if summary.method == method
            for record in summary.records
            if record.metric == "log_likelihood"
        )
        for method in ("bootstrap", "dropout")
    )
    row = told["bimodal: log-likelihood", "dropout"]
    assert float(row[1].key) == pytest.approx(second.value - first.value)
    assert float(row[2].key) == pytest.approx(0.14 - 0.12)
    assert row[3].text == "other"
    sd = 10 * math.hypot(first.standard_error, second.standard_error)  # of 100 runs
    off = (0.02 - (second.value - first.value)) / sd
    assert f"has sd {sd:.3f}, and the published one is {off:.1f} sd off" in row[4].text
    (same,) = (r for (title, m), r in told.items() if (title[:6], m) == ("hetero", "dropout"))
    assert same[3].text == "as published"


def test_every_form_is_written_whole(
    report: Document, results: dict[str, list[PointwiseResult]], tmp_path: Path
) -> None:
    for ending in ("html", "md", "json", "csv"):
        report.save(tmp_path / f"r.{ending}")
    markdown = (tmp_path / "r.md").read_text(encoding="utf-8")
    assert markdown.startswith("# A title\n")
    assert "### Where coverage differs significantly from nominal 90 %" in markdown
    widths = {line.count("|") for line in markdown.split("### Trials")[1].splitlines()[2:5]}
    assert len(widths) == 1
    told = json.loads((tmp_path / "r.json").read_text(encoding="utf-8"))
    assert len(told["records"]) == len(report.records)
    assert {table["name"] for table in told["tables"]} == {"pointwise_points", "pointwise_trials"}
    assert "toy, linear t: prediction intervals" in {line["question"] for line in told["verdict"]}
    lines = (tmp_path / "r.csv").read_text(encoding="utf-8").splitlines()
    assert len(lines) == len(report.records) + 1
    with pytest.raises(InputError, match=r"path must end in \.html"):
        report.save(tmp_path / "page.pdf")


def test_the_page_asks_for_nothing_and_runs_only_its_own_code(page: str) -> None:
    needs("vl_convert")
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page)
    assert policy is not None
    assert policy[1].count("sha256-") == 2
    assert unescape(policy[1]).startswith("default-src 'none'; script-src 'sha256-")
    markup = re.sub(r"<(script|style).*?</\1>", "", page, flags=re.DOTALL)
    assert not re.search(r"<(link|iframe|object|embed|img)\b|\ssrc=", markup)
    ids = re.findall(r'\sid="([^"]+)"', markup)
    assert len(ids) == len(set(ids))
    for target in re.findall(r'href="#([^"]+)"', markup):
        assert target in ids
    specs = re.findall(r'data-spec="([^"]+)"', markup)
    held = re.findall(r'<script type="text/plain" id="([^"]+)">', page)
    assert [*specs, "library"] == held
    # 1-d: 2 profiles, 4 histograms, a run a method; 10 columns and a component, 2 profiles each
    assert len(specs) == 1 + (2 + 4 + 2) + (2 * 11 + 4 + 2) + (2 + 4 + 1)


def test_names_from_outside_are_shown_and_never_run() -> None:
    found = pointwise("friedman1", Says(HOSTILE, 0.5, "friedman1"), trials=9, n_test=30)
    report = pointwise_report(
        {HOSTILE: [found]}, title=HOSTILE, names={HOSTILE: [f"{HOSTILE}{j}" for j in range(10)]}
    )
    page = report.to_html()
    assert "<img src=x" not in re.sub(r"<script.*?</script>", "", page, flags=re.DOTALL)
    assert page.count("window.pwned=1</script>") == 0
    assert "&lt;img src=x" in page
    assert "<img" not in report.to_markdown()


def test_a_page_without_the_drawing_library_holds_the_data(
    report: Document, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(render, "_drawing_library", lambda: "")
    page = report.to_html()
    assert "data-spec" not in page
    assert 'pip install "howsure[report]"' in page.replace("&#34;", '"')
    assert page.count('<details class="data" open>') > 10


@pytest.fixture(scope="module")
def browser(chromium: str) -> Iterator[Any]:
    for library in ("playwright", "vl_convert"):
        if importlib.util.find_spec(library) is None:
            absent("browser", f"{library} is not installed")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as play:
        flags = ["--no-sandbox", "--disable-background-networking"]
        running = play.chromium.launch(executable_path=chromium, args=flags)
        yield running
        running.close()


@pytest.fixture
def opened(browser: Any, page: str, tmp_path: Path) -> Iterator[Callable[..., Any]]:
    contexts: list[Any] = []
    troubles: list[str] = []

    def show(**choices: Any) -> Any:
        path = tmp_path / "page.html"
        path.write_text(page, encoding="utf-8")
        context = browser.new_context(**{"viewport": {"width": 1280, "height": 900}, **choices})
        contexts.append(context)
        tab = context.new_page()
        tab.on("console", lambda message: troubles.append(message.text))
        tab.on("pageerror", lambda error: troubles.append(str(error)))
        tab.on(
            "request",
            lambda sent: sent.url == path.as_uri() or troubles.append(f"asked for {sent.url}"),
        )
        tab.goto(path.as_uri())
        if choices.get("java_script_enabled", True):
            tab.wait_for_selector("html.ready")
        return tab

    yield show
    for context in contexts:
        context.close()
    assert troubles == []


def test_a_reader_chooses_the_column(opened: Callable[..., Any]) -> None:
    page = opened()
    world = page.locator("section", has=page.get_by_role("heading", name="ten columns", exact=True))
    switch = world.locator(".switch").first
    shown = world.locator(".option:visible figure h3")
    labels = switch.locator("label").all_inner_texts()
    assert len(labels) == 11
    assert labels[-1] == "first principal component"
    assert f"along {labels[0]}" in shown.first.inner_text()
    switch.get_by_role("radio", name=labels[-1]).check()
    assert "along first principal component" in shown.first.inner_text()
    switch.get_by_role("radio", name="c3").check()
    assert "along c3" in shown.first.inner_text()
    plot = world.locator(".option:visible .plot svg").first
    plot.wait_for()
    box = plot.bounding_box()
    assert box["width"] > 400
    assert box["height"] > 250


def test_a_page_shows_one_figure_a_world_and_folds_the_rest(opened: Callable[..., Any]) -> None:
    page = opened()
    assert page.locator("figure:visible").count() == 1 + 3
    fold = page.locator("details.more").first
    assert fold.locator("figure:visible").count() == 0
    fold.locator("> summary").click()
    assert fold.locator("figure:visible").count() > 0


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_fits_a_phone(opened: Callable[..., Any], scheme: str) -> None:
    page = opened(viewport={"width": 360, "height": 740}, color_scheme=scheme)
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    box = page.locator(".headline").bounding_box()
    assert box["y"] + box["height"] < 740


def test_without_scripts_every_option_is_there(opened: Callable[..., Any]) -> None:
    page = opened(java_script_enabled=False)
    world = page.locator("#section-ten-columns")
    assert world.locator("figure:visible").count() == 11
    assert world.locator("figure").count() == 2 * 11 + 4 + 2


@pytest.mark.rate
def test_percentages_are_rounded_once() -> None:
    from howsure_studies.pointwise.finding import percent

    assert percent(0.9) == "90\xa0%"
    assert percent(0.99949) == "99.9\xa0%"
    assert math.isclose(float(percent(1 / 3).split("\xa0")[0]), 33.3)
