"""Results that ship are made in parts, and are those of a plan run at once."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

from howsure.core.errors import InputError, UnanswerableError
from howsure_studies.characteristic import CharacteristicStudy
from howsure_studies.engine import (
    Plan,
    Store,
    grouped,
    load_plan,
    plan_shipped,
    run,
    study_shipped,
    trials_of,
)
from howsure_studies.engine import plan as plans
from howsure_studies.engine import shipped as files
from howsure_studies.engine.shipped import carried, plan_hash, shipped, shipped_bytes
from scripts import script

OPTIONS = {"coverages": [0.8], "simulations": 3, "n_test": 9, "n_train": 12}
METHODS = {"t": "linear_t", "ridge": "bayesian_ridge"}
WORLDS = {"line": "linear", "fan": {"world": "fan"}}
PLAN = Plan(name="whole", study="pointwise", worlds=WORLDS, methods=METHODS, options=OPTIONS)
LINE = replace(PLAN, worlds={"line": PLAN.worlds["line"]})
T = replace(PLAN, methods={"t": PLAN.methods["t"]})
"""Two parts of the plan: one world, and one method."""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only folder of plans."""
    made = tmp_path / "plans"
    made.mkdir()
    monkeypatch.setattr(files, "plan_folders", lambda: (made,))
    monkeypatch.setattr(plans, "plan_folders", lambda: (made,))
    return made


@pytest.fixture
def ship(folder: Path, tmp_path: Path) -> Callable[..., Path]:
    """Ship a plan of which a fresh store holds a part, all if none is named."""

    def shipping(plan: Plan, part: Plan | None = None) -> Path:
        stores = len(list(tmp_path.glob("store*")))
        store = Store(tmp_path / f"store{stores}")
        run(part or plan, store)
        file = folder / f"{plan.name}.parquet"
        file.write_bytes(shipped_bytes(plan, store))
        return file

    return shipping


def facts_of(file: Path) -> dict[str, Any]:
    facts: dict[str, Any] = json.loads(parquet.read_schema(file).metadata[b"howsure"])
    return facts


def rows_of(file: Path) -> pa.Table:
    """All of a file but what made it."""
    return parquet.read_table(file).drop_columns("part").replace_schema_metadata()


def again(file: Path, **changes: Any) -> None:
    """Write a file with other facts of its first part."""
    table, facts = parquet.read_table(file), facts_of(file)
    facts["parts"][0] |= changes
    parquet.write_table(
        table.replace_schema_metadata({b"howsure": json.dumps(facts).encode()}), file
    )


@pytest.mark.parametrize("first", [LINE, T])
def test_a_plan_in_two_parts_is_the_plan_at_once(
    first: Plan, ship: Callable[..., Path], tmp_path: Path
) -> None:
    whole = rows_of(ship(PLAN))
    (file := tmp_path / "plans" / "whole.parquet").unlink()
    assert ship(PLAN, first) == file
    assert facts_of(file)["missing"] == 2
    again(file, howsure="0.0.1", finished="2020-01-02", cpu_seconds=3600)
    given = grouped(trials_of(PLAN))
    left = [group for group in given if group not in carried(PLAN, given)]
    assert len(left) == 2
    store = Store(tmp_path / "last")
    assert run(PLAN, store, results=left).trials == sum(len(given[group]) for group in left)
    file.write_bytes(shipped_bytes(PLAN, store))
    assert rows_of(file).equals(whole)
    facts = facts_of(file)
    assert facts["missing"] == 0
    assert facts["hash"] == plan_hash(PLAN)
    parts = {part["howsure"]: part for part in facts["parts"]}
    assert [parts["0.0.1"][name] for name in ("results", "finished")] == [2, "2020-01-02"]
    (new,) = (part for version, part in parts.items() if version != "0.0.1")
    spent = [store.entry(address).provenance["cpu_seconds"] for address in store.addresses()]
    assert (new["results"], new["trials"]) == (2, len(spent))
    assert new["cpu_seconds"] == round(sum(spent))
    made = dict.fromkeys(
        zip(*parquet.read_table(file, columns=KEYS).to_pydict().values(), strict=True)
    )
    old = next(n for n, part in enumerate(facts["parts"]) if part["howsure"] == "0.0.1")
    assert {key[:3] for key in made if key[3] == old} == set(given) - set(left)
    found = plan_shipped(PLAN)
    assert found is not None
    assert found.missing == 0
    (told,) = found.facts.values()
    hours = (3600 + new["cpu_seconds"]) / 3600
    assert told.startswith("plan whole, howsure ")
    assert "2020-01-02 to " in told
    assert float(told.split(", ")[-1].split()[0]) == pytest.approx(hours, abs=0.006)


KEYS = ["world", "method", "seed", "part"]


def test_without_a_store_a_file_is_made_of_itself(
    ship: Callable[..., Path], tmp_path: Path
) -> None:
    file = ship(PLAN)
    assert shipped_bytes(PLAN, Store(tmp_path / "none")) == file.read_bytes()
    with pytest.raises(UnanswerableError, match="trials of plan 'whole' are not done"):
        shipped_bytes(replace(PLAN, seeds=(1,)), Store(tmp_path / "none"))


def test_results_go_on_under_the_names_of_the_plan_at_hand(
    ship: Callable[..., Path], tmp_path: Path
) -> None:
    file = ship(PLAN)
    twice = {"first": METHODS["t"], "second": METHODS["t"]}
    other = replace(PLAN, name="other", worlds={"straight": "linear"}, methods=twice)
    beside = file.with_stem("other")
    beside.write_bytes(shipped_bytes(other, Store(tmp_path / "none")))
    rows, before = parquet.read_table(beside).to_pylist(), parquet.read_table(file).to_pylist()
    (held,) = (row for row in before if (row["world"], row["method"]) == ("line", "t"))
    assert rows == [{**held, "world": "straight", "method": name} for name in twice]
    there = shipped(other, grouped(trials_of(other)))
    assert there is not None
    assert {group: len(own) for group, own in there.results.items()} == {
        ("straight", "first", 0): 1,
        ("straight", "second", 0): 1,
    }


def test_of_a_part_taken_in_part_its_share_of_the_time_is_told(
    ship: Callable[..., Path], folder: Path, tmp_path: Path
) -> None:
    again(ship(PLAN), cpu_seconds=7200)
    (folder / "part.parquet").write_bytes(
        shipped_bytes(replace(LINE, name="part"), Store(tmp_path / "none"))
    )
    found = plan_shipped(replace(LINE, name="part"))
    assert found is not None
    assert next(iter(found.facts.values())).endswith(", 1 hours of processor time")


def test_a_file_of_before_is_read_and_taken_over(ship: Callable[..., Path], tmp_path: Path) -> None:
    file = ship(PLAN)
    new, made = parquet.read_table(file), facts_of(file)
    page = study_shipped("pointwise").table
    (part,) = made.pop("parts")
    assert part.pop("results") == 4
    del made["missing"]
    old = new.drop_columns("part").replace_schema_metadata(
        {b"howsure": json.dumps({**made, **part}).encode()}
    )
    parquet.write_table(old, file)
    assert repr(study_shipped("pointwise").table.to_pylist()) == repr(page.to_pylist())
    file.write_bytes(shipped_bytes(PLAN, Store(tmp_path / "none")))
    assert rows_of(file).equals(new.drop_columns("part").replace_schema_metadata())
    assert facts_of(file)["parts"] == [{"results": 4, **part}]


def test_a_file_tells_what_it_lacks(ship: Callable[..., Path]) -> None:
    ship(PLAN, LINE)
    for found in (plan_shipped(PLAN), study_shipped("pointwise")):
        assert found is not None
        assert found.missing == 2
        assert next(iter(found.facts.values())).endswith(", 2 of 4 results not done")


def test_a_world_whose_data_are_gone_is_not_lost(
    ship: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ship(PLAN)
    monkeypatch.setattr(files, "trials_of", lambda plan: trials_of(LINE))
    with pytest.raises(UnanswerableError, match="world 'fan' ship with plan 'whole', and its data"):
        shipped_bytes(PLAN, Store(tmp_path / "none"))


def test_results_that_need_each_other_are_not_made_in_parts(
    ship: Callable[..., Path], tmp_path: Path
) -> None:
    plan = Plan(
        name="gaps",
        study="characteristic",
        worlds={"gap": "gap"},
        methods={"a": "constant", "b": "constant", "c": "linear_t"},
        options={"miss_range": [0.0, 0.5], "miss_rates": [0.2], "replicates": 5},
    )
    assert not files.in_parts(CharacteristicStudy())
    one = replace(plan, methods={"a": plan.methods["a"]}, seeds=(1,))
    both = replace(plan, seeds=(0, 1))
    file = ship(plan)
    assert shipped_bytes(plan, Store(tmp_path / "none")) == file.read_bytes()
    run(one, Store(tmp_path / "one"))
    for seeds in (both, replace(plan, seeds=(1,))):
        with pytest.raises(UnanswerableError, match="are not done"):
            shipped_bytes(seeds, Store(tmp_path / "one"))


def test_what_two_plans_share_is_shown_once(ship: Callable[..., Path], folder: Path) -> None:
    whole = ship(PLAN)
    table = study_shipped("pointwise").table
    small = replace(LINE, name="whole_small")
    ship(small)
    both = study_shipped("pointwise")
    assert repr(both.table.to_pylist()) == repr(table.to_pylist())
    assert next(iter(both.facts.values())).count("plan ") == 1
    # the rest of a world that is shared stands beside it
    ship(replace(small, seeds=(0, 1)))
    columns = study_shipped("pointwise").table.select(KEYS[:3]).to_pydict()
    keys = Counter(zip(*columns.values(), strict=True))
    assert {key[0] for key in keys} == {"line", "fan"}
    assert keys["line", "t", 0] == keys["line", "t", 1] == keys["fan", "t", 0]
    assert next(iter(study_shipped("pointwise").facts.values())).count("plan ") == 2
    # what shares no result is another world
    other = replace(small, options={**OPTIONS, "n_train": 13})
    ship(other)
    assert set(study_shipped("pointwise").results) == {"fan", "line (whole_small)", "line (whole)"}
    # nor may one name stand for two things
    swapped = replace(small, methods={"t": METHODS["ridge"], "ridge": METHODS["t"]})
    ship(swapped)
    assert set(study_shipped("pointwise").results) == {"fan", "line (whole_small)", "line (whole)"}
    assert whole.exists()


def test_a_run_does_what_the_results_asked_for_need(chain: str, tmp_path: Path) -> None:
    plan = Plan(name="c", study=chain, worlds={"a": "a", "b": "b"}, methods={"m": "m", "n": "n"})
    store = Store(tmp_path / "store")
    assert run(plan, store, results=[("a", "m", 0)]).done == 3  # it and two networks
    done = {trial.title for trial in trials_of(plan) if trial.address in set(store.addresses())}
    assert done == {"m on a", "network 0 on a", "network 1 on a"}
    assert run(plan, store, results=[]).trials == 0
    assert run(plan, store).done == 5
    with pytest.raises(InputError, match=r"results must be of plan 'c', got \('a', 'm', 1\)"):
        run(plan, store, results=[("a", "m", 1)])


TOML = """[plan]
study = "pointwise"
[options]
coverages = [0.8]
simulations = 2
n_test = 5
n_train = 8
[worlds]
line = "linear"
fan = "fan"
[methods]
t = "linear_t"
"""


def test_papers_run_what_does_not_ship(
    folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (folder / "tiny.toml").write_text(TOML)
    papers = script("benchmarks/papers.py")
    papers.made("tiny", Store(tmp_path / "one"), worlds=["line"])
    held = plan_shipped(load_plan("tiny"))
    assert held is not None
    assert (set(held.results), held.missing) == ({"line"}, 1)
    second = Store(tmp_path / "two")
    assert papers.made("tiny", second) == 0
    assert "tiny: 1 of 2 results shipped before, 1 trials run, 0 failed" in capsys.readouterr().out
    held = plan_shipped(load_plan("tiny"))
    assert held is not None
    assert (set(held.results), held.missing) == ({"line", "fan"}, 0)
    assert len(second.addresses()) == 1
    third = Store(tmp_path / "three")
    file = (folder / "tiny.parquet").read_bytes()
    papers.made("tiny", third)
    assert (folder / "tiny.parquet").read_bytes() == file
    assert not third.addresses()
    papers.made("tiny", third, anew=True)
    assert len(third.addresses()) == 2
    with pytest.raises(InputError, match="world of plan 'tiny' must be"):
        papers.made("tiny", third, worlds=["lines"])
    # killed in its second world, a run leaves the first
    (folder / "tiny.parquet").unlink()
    shown = papers.run_shown

    def dies(plan: Plan, store: Store, **options: Any) -> Any:
        if "fan" in plan.worlds:
            raise KeyboardInterrupt
        return shown(plan, store, **options)

    monkeypatch.setattr(papers, "run_shown", dies)
    with pytest.raises(KeyboardInterrupt):
        papers.made("tiny", Store(tmp_path / "four"))
    held = plan_shipped(load_plan("tiny"))
    assert held is not None
    assert set(held.results) == {"line"}
