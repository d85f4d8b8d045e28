"""Plans: what they may hold, and what decides a trial's address."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from extras import needs
from howsure.core.errors import HowsureWarning, InputError
from howsure_studies.engine import Plan, load_plan, make_method, plan_names, study_of, trials_of
from howsure_studies.methods.catalogue import method_named


def plan(**changes: Any) -> Plan:
    given: dict[str, Any] = {
        "name": "test",
        "study": "pointwise",
        "worlds": {"line": "linear"},
        "methods": {"t": "linear_t"},
        "options": {"coverages": [0.8], "simulations": 4, "block": 2, "n_test": 5},
    }
    return Plan(**{**given, **changes})


def addresses(made: Plan) -> list[str]:
    return [trial.address for trial in trials_of(made)]


@pytest.mark.slow
# splits_year is tried on a small file of its form, as its table is at hand nowhere
@pytest.mark.parametrize("name", [name for name in plan_names() if name != "splits_year"])
def test_shipped_plans_hold_what_exists(name: str, data_dir: Callable[[str], Path]) -> None:
    trained = ("sluijterman", "boot", "boston", "uci_networks", "splits", "shift", "congruence")
    if name.startswith(trained):
        needs("torch")
    made = load_plan(name)
    tables = {"shift_tables": "shift_bike_hour", "adaptivity_cells": "img_mnist_t10k"}
    tables |= dict.fromkeys(("characteristic_traffic", "characteristic_recurrent"), "metro_traffic")
    tables |= dict.fromkeys(("which", "which_small"), "uci_energy")
    if name in tables:
        data_dir(tables[name])
    for world in made.worlds.values():
        if isinstance(world, Mapping) and "uci" in world:
            data_dir(f"uci_{world['uci']}")
    with warnings.catch_warnings():
        if made.options.get("absent") == "skip":
            warnings.simplefilter("ignore", HowsureWarning)
        trials = trials_of(made)
    assert made.description
    assert len({trial.address for trial in trials}) == len(trials)
    assert all(trial.identity["version"] == study_of(trial.study).version for trial in trials)


def test_labels_and_order_decide_nothing() -> None:
    first = addresses(plan())
    assert len(first) == 2
    assert addresses(plan(worlds={"other": {"world": "linear"}}, name="x")) == first
    assert addresses(plan(methods={"other": {"intercept": True, "method": "linear_t"}})) == first
    twice = plan(methods={"a": "linear_t", "b": {"method": "linear_t"}})
    assert addresses(twice) == first * 2


@pytest.mark.parametrize(
    "changes",
    [
        {"worlds": {"line": "fan"}},
        {"worlds": {"line": {"world": "linear", "noise": "laplace"}}},
        {"methods": {"t": {"method": "linear_t", "intercept": False}}},
        {"methods": {"t": {"method": "linear_t", "revision": 2}}},
        {"methods": {"t": {"method": "linear_t", "n_train": 30}}},
        {"seeds": (1,)},
        {"options": {"coverages": [0.8], "simulations": 4, "block": 2, "n_test": 6}},
        {"options": {"coverages": [0.9], "simulations": 4, "block": 2, "n_test": 5}},
        {"options": {"coverages": [0.8], "simulations": 9, "block": 3, "n_test": 5}},
    ],
)
def test_all_that_decides_an_outcome_enters_the_address(changes: dict[str, Any]) -> None:
    assert not set(addresses(plan())) & set(addresses(plan(**changes)))


def test_more_simulations_keep_the_blocks_there_are() -> None:
    options = {"coverages": [0.8], "block": 2, "n_test": 5}
    few, many = (addresses(plan(options={**options, "simulations": n})) for n in (4, 7))
    assert many[:2] == few
    last = trials_of(plan(options={**options, "simulations": 7}))[-1].identity
    assert (last["first_trial"], last["trials"]) == (6, 1)
    confident = {**options, "simulations": 4, "confidence": 0.9}
    assert addresses(plan(options=confident)) == few  # the band is drawn when results are read


def test_blocks_are_multiples_of_what_a_method_fits_at_once() -> None:
    needs("torch")
    network = {"method": "network_bootstrap", "members": 10, "chunk": 40, "validation": 5}
    made = plan(methods={"net": network}, options={"simulations": 30, "n_train": 20})
    batch = method_named(**{"name": network.pop("method"), **network}).batch
    size = trials_of(made)[0].identity["trials"]
    assert batch > 1
    assert (size % batch, size - batch < 10 <= size) == (0, True)
    line = plan(options={"simulations": 30})
    assert [trial.identity["trials"] for trial in trials_of(line)] == [10, 10, 10]


def test_a_table_enters_by_its_numbers(tmp_path: Path) -> None:
    """The path, the file's name and the form of numbers decide nothing; a cell does."""

    def write(name: str, cell: str) -> Path:
        rng = np.random.default_rng(0)
        rows = "\n".join(f"{a:.3f},{a * 2:.3f},{b:.3f}" for a, b in rng.random((40, 2)))
        path = tmp_path / name
        path.write_text(f"a,b,y\n{cell},1,2\n{rows}\n")
        return path

    def of(name: str, **options: Any) -> list[str]:
        entry = {"table": name, "target": "y", "trees": 30, **options}
        return addresses(plan(worlds={"w": entry}, folder=tmp_path))

    write("one.csv", "1.0")
    write("two.csv", "1")
    write("three.csv", "1.1")
    assert of("one.csv") == of("two.csv") == of(str(tmp_path / "one.csv"))
    assert not set(of("one.csv")) & set(of("three.csv"))
    assert not set(of("one.csv")) & set(of("one.csv", noise="laplace"))
    assert not set(of("one.csv")) & set(of("one.csv", target="b"))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"study": "pointwize"}, "near: pointwise"),
        ({"worlds": {}}, "at least one world"),
        ({"methods": {}}, "at least one method"),
        ({"worlds": {"a": 3}}, "must be a name or a table, got 3"),
        ({"worlds": {"a": "liner"}}, "near: linear"),
        ({"worlds": {"a": {"world": "linear", "noize": "x"}}}, "near: noise"),
        ({"worlds": {"a": {"world": "linear", "noise": "gama"}}}, "near: gamma"),
        ({"worlds": {"a": {"noise": "gamma"}}}, "must have one of world, uci, dataset or table"),
        ({"worlds": {"a": {"world": "linear", "uci": "boston"}}}, "must have one of world"),
        ({"worlds": {"a": {"uci": "bostn"}}}, "near: boston"),
        ({"worlds": {"a": {"table": "x.csv"}}}, "must name its target"),
        ({"worlds": {"a": {"table": "x.csv", "target": "y"}}}, "no such file"),
        ({"worlds": {"a": {"uci": "boston", "source": "forrest"}}}, "near: forest"),
        ({"worlds": {"a": {"uci": "boston", "source": "cut", "trees": 3}}}, "option of world 'a'"),
        ({"methods": {"a": "liner_t"}}, "near: linear_t"),
        ({"methods": {"a": {"intercept": True}}}, "must name its method"),
        ({"methods": {"a": {"method": "linear_t", "name": "x"}}}, "no option 'name'"),
        ({"methods": {"a": {"method": "linear_t", "intercpt": True}}}, "near: intercept"),
        ({"methods": {"a": {"method": "linear_t", "n_train": 0}}}, "n_train must be a whole"),
        ({"seeds": ()}, "seeds of a plan must be"),
        ({"seeds": (0, 0)}, "seeds of a plan must be"),
        ({"seeds": (-1,)}, "seeds of a plan must be"),
        ({"seeds": (True,)}, "seeds of a plan must be"),
        ({"seeds": (0.5,)}, "seeds of a plan must be"),
        ({"name": 3}, "name of a plan must be text"),
        ({"options": []}, "options of a plan must be a table"),
        ({"options": {"simulation": 3}}, "near: simulations"),
        ({"options": {"simulations": 0}}, "simulations must be a whole number"),
        ({"options": {"simulations": 2.5}}, "simulations must be a whole number"),
        ({"options": {"block": 0}}, "block must be a whole number"),
        ({"options": {"coverages": 0.9}}, "coverages must be a list"),
        ({"options": {"coverages": [90]}}, "coverages must be"),
        ({"options": {"covariates": "all"}}, "covariates must be"),
        ({"options": {"confidence": 1}}, "confidence must be"),
    ],
)
def test_bad_plans_are_refused(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        trials_of(plan(**changes))


def test_a_file_and_its_changes(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(
        '[plan]\nstudy = "pointwise"\n[worlds]\nline = "linear"\n'
        '[methods]\nt = "linear_t"\n[options]\nsimulations = 3\n'
    )
    made = load_plan(
        str(path),
        ["simulations=5", "seeds=[1, 2]", "methods.t.intercept=false", "worlds.line.noise=gamma"],
    )
    assert made.name == "mine"
    assert made.folder == tmp_path
    assert made.options == {"simulations": 5}
    assert made.seeds == (1, 2)
    assert made.methods == {"t": {"method": "linear_t", "intercept": False}}
    assert made.worlds == {"line": {"world": "linear", "noise": "gamma"}}
    assert load_plan(str(path), ["plan.name=other", "options.block = 7"]).name == "other"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[plan", "must be valid TOML"),
        ("[plan]\nname = 'x'\n", "must name its study"),
        ("[plan]\nstudy = 'pointwise'\n", "at least one world"),
        ("[plan]\nstduy = 'pointwise'\n", "near: study"),
        ("[world]\nx = 'y'\n", "near: worlds"),
        ("plan = 3\n", "plan must be a table"),
        ("\xff", "must be UTF-8"),
    ],
)
def test_bad_files_are_refused(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "bad.toml"
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(InputError, match=words):
        load_plan(str(path))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("simulations", "a change must be key=value"),
        ("=3", "a change must be key=value"),
        ("methods..x=3", "a change must be key=value"),
        ("methods.t=3", "must name one value"),
        ("methods=3", "must name one value"),
        ("options.a.b=3", "must name one value"),
        ("metods.line.x=3", "near: methods"),
        ("methods.lin.x=3", "near: line"),
        ("simulatons=3", "near: simulations"),
    ],
)
def test_bad_changes_are_refused(change: str, words: str) -> None:
    with pytest.raises(InputError, match=words):
        trials_of(load_plan("smoke", [change]))


def test_plans_that_are_not_there_are_told() -> None:
    with pytest.raises(InputError, match="near: sluijterman"):
        load_plan("sluiterman")
    with pytest.raises(InputError, match="cannot be read: No such file"):
        load_plan("none.toml")


def test_a_plan_in_several_profiles_stands_for_the_small_one() -> None:
    assert load_plan("shift").name == "shift_small"
    assert load_plan("shift", profile="paper").name == "shift_paper"
    assert load_plan("shift", ["networks=2"], profile="tables").options["networks"] == 2


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (
            "shift",
            "profile of plan 'shift' must be one of cells, longer, nuclei, paper, scale, small",
        ),
        ("smoke", "none"),
    ],
)
def test_profiles_that_are_not_there_are_refused(name: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        load_plan(name, profile="large")


def test_a_method_that_fixes_its_coverages_otherwise_is_not_asked_for_them() -> None:
    needs("torch")
    entry = {"method": "head_regressor", "head": "quantile"}
    made = make_method("q", entry, (0.9,))
    assert made.fixed_coverages is not None
    assert 0.9 in made.fixed_coverages


def test_the_docs_tell_what_an_address_holds(chain: str) -> None:
    """The table of keys, and the keys that the study pointwise adds."""
    text = (Path(__file__).parents[3] / "docs" / "benchmarks.md").read_text()
    section = text.partition("## What a trial is")[2].partition("## What is kept")[0]
    table, own = section.split("A study adds its own keys.")
    common = re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE)
    study = study_of(chain)
    assert common == list(study.trial({}, {}, needs=["ab"]).identity)
    assert [key for key in common if key != "needs"] == list(study.trial({}, {}).identity)
    (smoke, *_) = trials_of(load_plan("smoke"))
    keys = re.findall(r"`(\w+)`", own.partition(". A world")[0].partition("adds")[2])
    assert keys == [key for key in smoke.identity if key not in common]
    assert smoke.address.startswith("139d727706a5")  # stores that exist are read
