"""What the docs say of results is what ships, and what ships belongs to the plans as they are."""

from __future__ import annotations

from pathlib import Path

import pytest

from figures.test_telling import tells_a_number
from howsure_studies.engine import load_plan, plan_file, plan_names, study_of, study_shipped
from howsure_studies.engine.shipped import _shipped_files, plan_hash
from scripts import script

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
def test_results_in_the_docs_are_those_that_ship() -> None:
    made = script("docs/make_studies.py")
    held = {page: page.read_text("utf-8") for page in made.pages()}
    assert held
    for page, text in held.items():
        assert made.current(text) == text, f"{page}: run python docs/make_studies.py"


def test_what_ships_belongs_to_the_plan_as_it_stands() -> None:
    ours = [(file, made) for file, made in _shipped_files() if file.is_relative_to(ROOT)]
    assert ours
    for file, made in ours:
        plan = load_plan(made["plan"]["name"])
        assert plan_file(plan.name) == file.with_suffix(".toml")
        assert made["hash"] == plan_hash(plan), f"run make papers PAPERS={plan.name}"
        assert file.stat().st_size < 500_000


@pytest.mark.slow
@pytest.mark.parametrize(
    "study", ["shift", "pointwise", "splits", "adaptivity", "congruence", "characteristic"]
)
def test_every_paper_shows_a_page_without_data_or_a_run(
    study: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("HOWSURE_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    page = study_of(study).page(study_shipped(study))
    assert page.headline is not None
    assert page.sections[-1].title == "Comparison with the published numbers"
    parts = (page.opening, *page.sections)
    drawn = [f for part in parts for c in part.choices for o in c.options for f in o.figures]
    assert [figure.title for figure in drawn if not tells_a_number(figure)] == []
    assert not list(tmp_path.iterdir())
    assert study not in plan_names() or study == "splits"
