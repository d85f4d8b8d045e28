"""What ships of the study: small, and its page is that of the store."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from extras import needs
from howsure.report.document import Document
from howsure_studies.congruence import TRUTH, CongruenceStudies, CongruenceStudy
from howsure_studies.congruence.sentences import TaskExperiments
from howsure_studies.congruence.stored import unpacked
from howsure_studies.engine import (
    Plan,
    Store,
    combined,
    load_plan,
    run,
    study_of,
    survey,
    trials_of,
)
from howsure_studies.engine import shipped as files
from howsure_studies.engine.shipped import study_shipped
from howsure_studies.engine.study import grouped
from report.words import check_words

needs("torch")

FOLDER = Path(files.__file__).parents[1] / "congruence" / "plans"
TINY = Plan(
    name="tiny",
    study="congruence",
    worlds={
        "wave": {"world": "wave", "rows": 120},
        "cells": {"world": "cells", "train": 40, "val": 30, "test": 30},
    },
    methods={"normal": "gaussian", "counted": "poisson", "line": "bayesian_ridge"},
    seeds=(4, 5),
    options={
        **{"draws": 2, "samplings": 2, "bootstraps": 2, "replicates": 3, "grid": "fixed"},
        **{"epochs": 2, "layers": [8], "trials": 2, "orders": 19, "components": 5},
    },
)


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a store of a tiny plan, and a folder of plans with what ships of it."""
    folder = tmp_path_factory.mktemp("ran")
    summary = run(TINY, Store(folder / "store"))
    assert summary.failed == 0
    (folder / "plans").mkdir()
    file = folder / "plans" / "tiny.parquet"
    file.write_bytes(files.shipped_bytes(TINY, Store(folder / "store")))
    return folder


def differences(one: Any, other: Any, path: str = "") -> Iterator[str]:
    """Where two values of JSON part by more than a millionth."""
    if isinstance(one, dict) and isinstance(other, dict) and one.keys() == other.keys():
        for key in one:
            yield from differences(one[key], other[key], f"{path}/{key}")
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        for place, pair in enumerate(zip(one, other, strict=True)):
            yield from differences(*pair, f"{path}/{place}")
    elif isinstance(one, float) and isinstance(other, float):
        if one != pytest.approx(other, rel=1e-6, abs=1e-7):
            yield f"{path}: {one}, {other}"
    elif one != other:
        yield f"{path}: {one}, {other}"


def told(page: Document) -> dict[str, Any]:
    """All of a page but where its results come from."""
    held: dict[str, Any] = json.loads(page.to_json())
    del held["facts"]
    return held


@pytest.mark.slow
def test_the_page_of_what_ships_is_that_of_the_store(
    ran: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "plan_folders", lambda: (ran / "plans",))
    study, store = study_of("congruence"), Store(ran / "store")
    own = study.page(combined(TINY, survey(TINY, store), store))
    there = study.page(study_shipped("congruence"))
    assert list(differences(told(own), told(there))) == []
    assert own.to_markdown().split("##", 1)[1] == there.to_markdown().split("##", 1)[1]


@pytest.mark.slow
def test_rows_that_no_figure_draws_stay_behind(ran: Path) -> None:
    store, study = Store(ran / "store"), CongruenceStudy()
    whole: dict[str, CongruenceStudies] = {
        world: result
        for (world, method, seed), trials in grouped(trials_of(TINY)).items()
        if seed == 4 and method == "line"
        for result in study.read(TINY, trials, store)
    }
    wave, cells = (study.shortened(whole[name]) for name in ("wave", "cells"))
    assert len(wave.beliefs) == 1
    assert wave.beliefs[0].x.dtype == np.float32
    assert list(wave.result.runs[0].rows) == ["cce", "cce_sd"]
    assert cells.beliefs == ()
    (given,) = whole["cells"].result.runs
    np.testing.assert_allclose(
        cells.result.runs[0].rows["cce"],
        np.quantile(given.rows["cce"], np.linspace(0.0, 1.0, 21)),
        rtol=1e-6,
    )
    assert cells.result.runs[0].bootstraps["cce"].tobytes() == given.bootstraps["cce"].tobytes()
    order = np.argsort(whole["cells"].rejections[0].scores)
    np.testing.assert_array_equal(cells.rejections[0].scores, np.arange(30))
    np.testing.assert_allclose(
        cells.rejections[0].losses["mae"], whole["cells"].rejections[0].losses["mae"][order]
    )
    bare = replace(whole["wave"], rejections=(), monotonicity=None, diagnoses=(), robustness=())
    assert study.shortened(bare).monotonicity is None


def test_the_small_plan_has_a_page_without_data_or_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOWSURE_DATA", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    assert (FOLDER / "congruence_small.parquet").stat().st_size < 400_000
    page = study_of("congruence").page(study_shipped("congruence"))
    assert [part.title for part in page.sections] == [
        *("nuclei-home", "nuclei-experiment", "nuclei-magnified", "nuclei-stained"),
        *("docstrings-words", "docstrings-sentences", "blood-encoded", "digits-encoded"),
        *("blood-fixed", "wave", "cells", "blood", "digits"),
        *("Reliability", "Methods over all worlds", "Comparison with the published numbers"),
    ]
    assert page.headline is not None
    assert page.headline.text.startswith("Not all: CCE finds a model misspecified at some x in 44")
    check_words(page)


def test_noise_on_blood_shows_where_gamma_of_y_stays() -> None:
    """γ set anew for noisy y, as published, hides what γ of the unperturbed rows shows."""
    rising = {}
    results = study_shipped("congruence").results
    for world in ("blood", "blood-fixed"):
        whole = TaskExperiments(name=world, studies=tuple(results[world])).combined
        assert whole.monotonicity is not None
        curves = [curve for curve in whole.monotonicity.curves if curve.kind == "label_noise"]
        rising[world] = [curve.pages["cce"][1] <= 0.05 for curve in curves]
    assert (sum(rising["blood"]), sum(rising["blood-fixed"])) == (2, 7)


@pytest.mark.rate
def test_what_ships_is_what_its_plan_gives(data_dir: Callable[[str], Path]) -> None:
    """All of the plan is there, and its cheapest trial gives the same when it is run again."""
    for name in ("img_bccd_cell_count", "img_mnist_t10k"):
        data_dir(name)
    plan = load_plan("congruence_small")
    groups = grouped(trials_of(plan))
    held = files.shipped(plan, groups)
    assert held is not None
    assert set(held.results) == set(groups)
    key = ("wave", TRUTH, 0)
    output = study_of("congruence").run(groups[key][0])
    here, (there,) = unpacked(output.arrays, output.facts), held.results[key]
    for mine, kept in zip(here.records(), there.records(), strict=True):
        assert (mine.metric, mine.model) == (kept.metric, kept.model)
        assert kept.value == pytest.approx(mine.value, rel=1e-6, nan_ok=True)
        assert kept.standard_error == pytest.approx(mine.standard_error, rel=1e-6, nan_ok=True)
