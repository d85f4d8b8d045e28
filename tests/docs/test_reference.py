"""The reference holds what the program and its packages hold, and the gallery every figure."""

from __future__ import annotations

import importlib
import inspect
import json
import math
import re
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, get_args
from xml.etree import ElementTree

import numpy as np
import pytest
from typer.testing import CliRunner

import howsure
from extras import needs
from howsure.cli.main import app
from howsure.engine.catalogue import catalogue
from howsure.figures.layouts import companions, layouts, table_layouts
from howsure.verdict.words import Reply
from scripts import script

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
GALLERY = sorted((DOCS / "gallery").glob("plot_*.py"))
STUDIES = ("adaptivity", "characteristic", "congruence", "pointwise", "shift", "which")


def test_the_page_of_commands_is_current() -> None:
    held = (DOCS / "reference" / "commands.md").read_text(encoding="utf-8")
    assert held == script("docs/make_commands.py").page(), "run python docs/make_commands.py"


@pytest.mark.slow
def test_the_page_of_commands_names_every_command() -> None:
    made = script("docs/make_commands.py")
    names = [path for path, command, _ in made.commands() if not hasattr(command, "list_commands")]
    assert {"howsure assess", "howsure conformal", "howsure bench submit"} <= set(names)
    assert all(f"\n## `{name}`\n" in made.page().replace("###", "##") for name in names)


def test_the_reference_of_the_api_holds_every_exported_name() -> None:
    made = script("docs/make_api.py")
    held: dict[str, list[str]] = {}
    for topic in made.TOPICS.values():
        held.setdefault(topic.package, []).extend(made.names_of(topic))
    for package, names in held.items():
        exported = getattr(importlib.import_module(package), "__all__", names)
        assert sorted(names) == sorted(n for n in exported if not n.startswith("_")), package


def test_every_room_that_exports_names_has_a_page() -> None:
    pages = {topic.package for topic in script("docs/make_api.py").TOPICS.values()}
    studies = (ROOT / "studies" / "src" / "howsure_studies").glob("*/__init__.py")
    rooms = [f"howsure.{room}" for room in dir(howsure) if (ROOT / "src/howsure" / room).is_dir()]
    for name in [*rooms, *(f"howsure_studies.{path.parent.name}" for path in studies)]:
        exported = getattr(importlib.import_module(name), "__all__", ())
        assert not exported or name in pages, name


def test_the_index_of_the_api_links_every_name_once() -> None:
    made = script("docs/make_api.py")
    grouped = [name for names in made.GROUPS.values() for name in names]
    assert sorted(grouped) == sorted(made.TOPICS)
    first, rest = made.index().split("\n## All")
    links = re.findall(r"\{py:obj\}`(\w+) <[\w.]+>`", rest)
    names = [name for topic in made.TOPICS.values() for name in made.names_of(topic)]
    assert sorted(links) == sorted(names)
    lines = re.findall(r"\| \{py:obj\}`([\w.]+) <[\w.]+>` \| (.*) \|", first)
    assert [name for name, _ in lines] == list(made.FIRST)
    assert 15 <= len(lines) <= 25
    assert all(told.strip() for _, told in lines)
    assert dict(lines)["howsure.assess"].startswith("Assess the calibration")


def test_the_pages_of_the_api_have_a_line_for_every_name() -> None:
    made = script("docs/make_api.py")
    told: dict[str, str] = {}
    for topic in made.TOPICS.values():
        lines = re.findall(r"\| \{py:obj\}`(\w+) <[\w.]+>` \| (.*) \|", made.page(topic))
        assert [name for name, _ in lines] == made.names_of(topic)
        told |= dict(lines)
    assert all(line.strip() for line in told.values())
    assert told["METHODS"].startswith("Every way to recalibrate by its name")
    assert told["TOLERANCE"] == "``0.01``"


# Formats


def told(heading: str) -> set[str]:
    """The keys of the first table below a heading."""
    page = (DOCS / "reference" / "formats.md").read_text(encoding="utf-8")
    table = page.split(f"# {heading}\n")[1].split("|---|---|\n")[1].split("\n\n")[0]
    cells = [line.split("|")[1] for line in table.splitlines()]
    return {name for cell in cells for name in re.findall(r"`(\w+)`", cell)}


@pytest.fixture(scope="module")
def report() -> dict[str, Any]:
    rng = np.random.default_rng(0)
    y = rng.normal(size=800)
    prediction = howsure.Distribution.normal(mean=np.zeros(800), sd=np.full(800, 0.8))
    held: dict[str, Any] = json.loads(howsure.assess(y, prediction).to_json())
    return held


def test_a_report_has_the_keys_that_the_page_lists(report: dict[str, Any]) -> None:
    assert set(report) == told("Reports as JSON")
    assert report["advice"] is not None
    assert set(report["advice"]) == told("`advice`")
    for part in ("records", "curves", "tables"):
        assert report[part]
        assert all(set(each) == told(f"`{part}`") for each in report[part])


def test_the_page_names_the_format_and_the_inner_keys(report: dict[str, Any]) -> None:
    page = (DOCS / "reference" / "formats.md").read_text(encoding="utf-8")
    assert f"`{report['format']}`" in page
    for part in ("answer", "verdict", "glossary"):
        (row,) = (line for line in page.splitlines() if line.startswith(f"| `{part}` |"))
        held = report[part] if part == "answer" else report[part][0]
        assert set(re.findall(r"`(\w+)`", row.split("|")[2])) - REPLIES == set(held)


REPLIES = {*get_args(Reply), "null"}


def test_csv_has_the_columns_of_a_record(tmp_path: Path) -> None:
    y = np.random.default_rng(0).normal(size=50)
    howsure.assess(y, (y - 1, y + 1), coverage=0.9, options=howsure.Options(trials=False)).save(
        tmp_path / "report.csv"
    )
    head = (tmp_path / "report.csv").read_text(encoding="utf-8").splitlines()[0]
    assert set(head.split(",")) == told("`records`")


def test_a_kept_recalibration_has_the_keys_that_the_page_lists(tmp_path: Path) -> None:
    y = np.random.default_rng(0).normal(size=200)
    held = {"y": y, "lower_90": y * 0 - 1, "upper_90": y * 0 + 1}
    howsure.recalibrate(held, held).fitted.save(tmp_path / "fit.json")
    assert set(json.loads((tmp_path / "fit.json").read_text())) == told("A kept recalibration")


@pytest.mark.slow
def test_a_trial_has_the_keys_that_the_page_lists(tmp_path: Path) -> None:
    store, page = tmp_path / "store", tmp_path / "page.md"
    sizes = ("--trials", "2", "--train-rows", "20", "--test-rows", "10", "--jobs", "0")
    asked = ("simulate", "linear", "--method", "linear_t", *sizes, "--store", store, "-o", page)
    done = CliRunner().invoke(app, [str(word) for word in asked])
    assert done.exit_code == 0, done.output
    trial = next(store.glob("trials/*/trial.json"))
    assert set(json.loads(trial.read_text())) == told("Stores of results")
    assert set(json.loads((store / "store.json").read_text())) == {"format", "what"}


# Figures


def figures() -> set[str]:
    """Names of every curve and table that is drawn, and of every function that gives a figure."""
    curves = (
        set(layouts()) - set(companions()) - {"characteristic_curve"}
    )  # the latter a second name
    tables = {
        name for name, layout in table_layouts().items() if layout.figure and not layout.curve
    }
    functions = set()
    rooms = (f"howsure_studies.{room}" for room in ("engine", *STUDIES))
    for module in map(importlib.import_module, ("howsure.figures", *rooms)):
        for name in module.__all__:
            value = getattr(module, name)
            if inspect.isfunction(value):
                given = str(value.__annotations__.get("return", ""))
                functions |= {name} if re.fullmatch(r"Figure( \| None)?", given) else set()
    return curves | tables | functions


def test_figures_were_found() -> None:
    assert {"calibration", "cce_map", "groups", "rank_figure", "share_histogram"} <= figures()


def test_the_gallery_draws_every_figure() -> None:
    scripts = "".join(path.read_text(encoding="utf-8") for path in GALLERY)
    drawn = r'(?:plot\(|made\[)"{0}"|plot\((?:\w+\.)?{0}\(|# {0}$'
    lacking = [
        name for name in figures() if not re.search(drawn.format(name), scripts, flags=re.MULTILINE)
    ]
    assert not lacking, lacking


# Measures


@pytest.mark.rate
@pytest.mark.few_draws
def test_weights_are_taken_where_the_page_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each measure has a value on some table, and keeps it with weights only where that is told."""
    made = script("docs/make_measures.py")
    counts = np.random.default_rng(1).integers(1, 3, 500)
    table, assess = howsure.Table, howsure.assess
    weighted = partial(table, weights=counts, weights_kind="frequency")

    def assess_weighted(*data: Any, options: Any = None, **roles: Any) -> Any:
        rows = data[0] if isinstance(data[0], table) else weighted(*data, **roles)
        return assess(rows, options=replace(options or howsure.Options(), trials=False))

    monkeypatch.setattr(howsure, "Table", weighted)
    monkeypatch.setattr(howsure, "assess", assess_weighted)
    seen: dict[str, bool] = {}
    for name, code in made.EXAMPLES.items():
        held: dict[str, Any] = {}
        exec(compile(code, name, "exec"), held)
        for record in held["result"].records:
            if not math.isnan(record.value):
                seen[record.metric] = True
    assert set(catalogue()) - set(seen) == {
        name for name, metric in catalogue().items() if not made.weighted(metric)
    }


def test_every_measure_has_its_traps() -> None:
    assert all(metric.beware for metric in catalogue().values())


@pytest.mark.parametrize(
    ("formula", "latex"),
    [
        ("mean 1{l ≤ y ≤ u}", r"\text{mean} \mathbf{1}\{l \le y \le u\}"),
        ("√mean (y − ŷ)²", r"\sqrt{\text{mean} (y - \hat{y})^{2}}"),
        ("∫_t^∞ F(z)² dz", r"\int_{t}^{\infty} F(z)^{2} \,dz"),
        (
            "Σ_b (n_b/n) |mean y|, 15 bins",
            r"\sum_{b} (n_{b}/n) \vert \text{mean} y\vert , 15 \text{bins}",
        ),
        ("(A_const − A)/√(1 + x)", r"(A_{\text{const}} - A)/\sqrt{1 + x}"),
        (
            "S_s a mean score, y from a to b",
            r"S_{s} \text{a mean score}, y \text{from} a \text{to} b",
        ),
    ],
)
def test_a_formula_is_set_as_mathematics(formula: str, latex: str) -> None:
    needs("latex2mathml")
    made = script("docs/formulas.py").to_latex(formula)
    assert re.sub(r"\\? +", " ", made).replace(" }", "}").replace(" _", "_") == latex


@pytest.mark.slow
def test_every_formula_is_mathematics_that_a_browser_reads() -> None:
    needs("latex2mathml")
    made = script("docs/formulas.py")
    for metric in catalogue().values():
        tree = ElementTree.fromstring(made.convert(made.to_latex(metric.formula)))
        text = "".join(tree.itertext())
        words = set(re.findall(r"[a-z]{4,}", metric.formula))
        assert all(word in text for word in words), (metric.name, text)
        assert not re.search(r"[_√]|\\[a-z]", text), (metric.name, text)
