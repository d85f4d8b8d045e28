"""A small version of `benchmarks/verdict.py`: right models are not condemned, faults are named."""

from __future__ import annotations

import math
from types import ModuleType

import pytest

from howsure.core.rng import child
from scripts import script

TABLES = 8


@pytest.fixture(scope="module")
def bench() -> ModuleType:
    return script("benchmarks/verdict.py")


@pytest.mark.rate
def test_right_models_of_every_kind_are_seldom_condemned(bench: ModuleType) -> None:
    """Any ✗ in at most 5 % of the tables, three binomial standard errors allowed."""
    red: list[str] = []
    tables = 0
    for place, cell in enumerate(bench.CELLS):
        if cell.named:
            continue
        n = min(size for size in cell.sizes if size >= 100)
        for number in range(TABLES):
            states = bench.table((place, n, number))[2]
            tables += 1
            if "bad" in states.values():
                red.append(cell.name)
    assert tables >= 180
    assert len(red) <= tables * (0.05 + 3 * math.sqrt(0.05 * 0.95 / tables)), red


@pytest.mark.rate
def test_large_faults_are_named_by_their_own_line(bench: ModuleType) -> None:
    named = tables = 0
    for place, cell in enumerate(bench.CELLS):
        if not cell.large:
            continue
        for number in range(3):
            states = bench.table((place, 1_000, number))[2]
            tables += 1
            named += any(states.get(name) == "bad" for name in cell.named)
    assert named >= 0.9 * tables


def test_what_cannot_be_seen_is_not_judged_bad(bench: ModuleType) -> None:
    for name, finding, world in bench.UNSEEN:
        told, silent = bench.examine(world(child(0, "unseen", name), 2_000))
        states = {each.id: each.state for each in told}
        assert states.get(finding) != "bad", name
        assert (finding in states) != (finding in silent), name


@pytest.mark.slow
def test_the_best_set_holds_the_best_model(bench: ModuleType) -> None:
    """Of 2, 3, 10 and 12 models, tied or nearly, in 95 % of tables."""
    assert {race.name.split()[0] for race in bench.RACES} >= {"2", "3", "10", "12"}
    held = tables = 0
    for place, race in enumerate(bench.RACES):
        for number in range(TABLES):
            kept = bench.race((place, 300, number))[2]
            held += bool(kept[0])
            tables += 1
            assert kept.any()
            if race.name == "10, one better":
                assert not kept.all()
    assert held >= tables * (0.95 - 3 * math.sqrt(0.05 * 0.95 / tables))
