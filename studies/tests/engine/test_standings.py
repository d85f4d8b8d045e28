"""Methods over all worlds: scores by hand, who is left out, and the grid of a page."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from scipy import stats

from howsure.core.errors import UnanswerableError
from howsure.core.records import Direction, Record
from howsure.core.rng import child
from howsure_studies.engine import (
    Standings,
    over_worlds,
    records_table,
    stacked,
    standings_grid,
    study_of,
)
from howsure_studies.engine.confidence_sets import confidence_set, rank_intervals
from howsure_studies.engine.page import with_standings
from report.words import check_words

WORLDS = 8


def row(world: str, method: str, value: float, seed: int = 0, **fields: Any) -> pa.Table:
    part_of = fields.pop("part_of", "")
    given = {"metric": "mae", "direction": Direction.LOWER, **fields}
    keys = {"world": world, "method": method, "seed": seed}
    record = Record(value=value, **given)
    return records_table([record], {**keys, "part_of": part_of} if part_of else keys)


def table(values: Mapping[str, Any], **fields: Any) -> pa.Table:
    """A value a world of each method."""
    return stacked(
        [
            row(f"w{world}", method, value, **fields)
            for method, own in values.items()
            for world, value in enumerate(own)
        ]
    )


def drawn(shifts: Mapping[str, float], worlds: int = WORLDS) -> dict[str, np.ndarray]:
    """Positive numbers, each world with a unit of its own."""
    rng = child(0, "standings")
    units = np.exp(rng.normal(scale=3.0, size=worlds))
    return {
        name: units * np.exp(shift + 0.2 * rng.normal(size=worlds))
        for name, shift in shifts.items()
    }


def test_positive_numbers_are_scored_by_log_ratios() -> None:
    values = drawn({"b": 0.5, "a": 0.0, "c": 1.5})
    found = Standings.of(table(values), "mae")
    assert (found.scale, found.methods, found.left_out) == ("ratio", ("a", "b", "c"), ())
    assert len(found.worlds) == found.parts == WORLDS
    logs = np.log(np.column_stack([values[name] for name in "abc"]))
    assert found.mean_rank == pytest.approx(stats.rankdata(logs, axis=1).mean(axis=0))
    for i in (1, 2):
        low, high = stats.ttest_rel(logs[:, i], logs[:, 0]).confidence_interval()
        assert found.gap[i] == pytest.approx((logs[:, i] - logs[:, 0]).mean())
        assert (found.gap_lower[i], found.gap_upper[i]) == pytest.approx((low, high))
    assert found.gap[0] == found.gap_lower[0] == found.gap_upper[0] == 0.0
    rng = child(1, "other draws")
    assert found.lower.tolist() == rank_intervals(logs, rng).lower.tolist()
    assert found.upper.tolist() == rank_intervals(logs, rng).upper.tolist()
    assert found.best.tolist() == confidence_set(logs, rng).member.tolist() == [True, False, False]


def test_shares_are_scored_by_their_distance_to_the_target() -> None:
    values = {"near": [0.89, 0.92] * 4, "far": [0.8, 0.99] * 4}
    fields = {"direction": Direction.TARGET, "target": 0.9, "coverage": 0.9}
    found = Standings.of(table(values, **fields), "mae", 0.9)
    assert (found.scale, found.methods) == ("share", ("near", "far"))
    assert found.gap[1] == pytest.approx((0.1 + 0.09) / 2 - (0.01 + 0.02) / 2)
    with pytest.raises(UnanswerableError, match="values of mae have no better direction"):
        Standings.of(table(values, **fields), "mae", 0.8)


@pytest.mark.parametrize(
    ("values", "fields"),
    [
        ({"a": [2.0, -1.0] * 4, "b": [1.0, -2.0] * 4}, {"direction": Direction.HIGHER}),
        ({"a": [0.0, 1.0] * 4, "b": [0.1, 5.0] * 4}, {}),
        ({"a": [1.0, 1.0] * 4, "b": [2.0, math.inf] * 4}, {}),
        (
            {"a": [-0.1, 0.1] * 4, "b": [3.0, -3.0] * 4},
            {"direction": Direction.TARGET, "target": 0.0},
        ),
    ],
)
def test_other_numbers_are_scored_by_ranks(values: dict[str, Any], fields: dict[str, Any]) -> None:
    found = Standings.of(table(values, **fields), "mae")
    assert (found.scale, found.methods) == ("rank", ("a", "b"))
    assert found.mean_rank.tolist() == [1.0, 2.0]
    assert found.lower.tolist() == found.upper.tolist() == [1, 2]
    assert found.best.tolist() == [True, False]


def test_seeds_and_parts_of_a_world_are_averaged() -> None:
    values = drawn({"a": 0.0, "b": 0.1})
    whole = [
        row(f"w{world}", method, own[world] * (2.0 if seed else 0.5), seed)
        for method, own in values.items()
        for world in range(WORLDS)
        for seed in (0, 1)
    ]
    assert Standings.of(stacked(whole), "mae").gap == pytest.approx(
        Standings.of(table(values), "mae").gap
    )
    parts = [
        row(f"w{w}: {part}", method, own[w] * factor[part], part_of=f"w{w}")
        for method, own, factor in (("a", values["a"], (1.0, 1.0)), ("b", values["b"], (1.0, 9.0)))
        for w in range(WORLDS)
        for part in (0, 1)
    ]
    found, alone = Standings.of(stacked(parts), "mae"), Standings.of(table(values), "mae")
    assert (len(found.worlds), found.parts) == (WORLDS, 2 * WORLDS)
    assert found.gap[1] == pytest.approx(alone.gap[1] + math.log(3.0))
    assert found.gap_upper[1] - found.gap_lower[1] == pytest.approx(
        alone.gap_upper[1] - alone.gap_lower[1]
    )
    mixed = stacked([stacked(parts), *(row(f"v{w}", m, 1.0) for w in range(2) for m in "ab")])
    assert len(Standings.of(mixed, "mae").worlds) == WORLDS + 2


def test_methods_without_a_number_on_a_world_are_left_out_and_said() -> None:
    values = drawn({"a": 0.0, "b": 0.1, "c": 0.2})
    values["c"][3] = math.nan
    found = Standings.of(table(values), "mae")
    assert (found.methods, found.left_out) == (("a", "b"), ("c",))
    assert len(found.worlds) == WORLDS
    assert "Methods without a number on some of these worlds: c." in standings_grid(found).notes


def test_where_no_two_methods_share_all_worlds_the_most_that_some_share_is_taken() -> None:
    own = drawn({"a": 0.0, "b": 0.1, "c": 0.2, "d": 0.3}, 12)
    rows = [
        row(f"w{world}", method, own[method][world])
        for method, worlds in {"a": 12, "b": 9, "c": 9, "d": 5}.items()
        for world in range(worlds)
    ]
    found = Standings.of(stacked(rows), "mae")
    assert (sorted(found.methods), found.left_out) == (["a", "b", "c"], ("d",))
    assert found.worlds == tuple(f"w{world}" for world in range(9))


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (table(drawn({"a": 0.0, "b": 0.0}, 4)), "no 2 methods have numbers on the same 5 worlds"),
        (table(drawn({"a": 0.0})), "no 2 methods"),
        (
            table(drawn({"a": 0.0, "b": 0.0}), direction=Direction.NONE),
            "mae have no better direction",
        ),
        (table({"a": [math.nan] * 8, "b": [math.nan] * 8}), "no 2 methods"),
    ],
)
def test_nothing_is_said_of_too_little(given: pa.Table, words: str) -> None:
    with pytest.raises(UnanswerableError, match=words):
        Standings.of(given, "mae")
    assert over_worlds(given, ["mae"]) == []


def test_measures_are_taken_at_the_coverage_that_sentences_speak_of() -> None:
    values = {"a": [0.9] * 8, "b": [0.7] * 8}
    several = stacked(
        [
            *(
                table(values, metric="hit", direction=Direction.TARGET, target=at, coverage=at)
                for at in (0.8, 0.9, 0.95)
            ),
            table(drawn({"a": 0.0, "b": 0.0})),
        ]
    )
    found = over_worlds(several, ["hit", "none", "mae"])
    assert [(each.metric, each.coverage) for each in found[:1]] == [("hit", 0.9)]
    assert [each.metric for each in found] == ["hit", "mae"]
    assert over_worlds(pa.table({}), ["mae"]) == []


def test_the_grid_orders_no_methods_that_may_be_best() -> None:
    grid = standings_grid(Standings.of(table(drawn({"a": 0.0, "b": 0.01, "c": 2.0})), "mae"))
    assert grid.title == "Methods over 8 worlds, by mae"
    assert [column.title for column in grid.columns] == [
        *("Method", "Mean rank", "Rank, 95 %", "May be best", "Above the first, %")
    ]
    (part,) = grid.parts
    told = [(line[0].text, line[2].text, line[3].text) for line in part.rows]
    assert sorted(told[:2]) == [("a", "1–2", "yes"), ("b", "1–2", "yes")]
    assert told[2] == ("c", "3", "no")
    low, high = (float(end) for end in part.rows[2][4].small.strip("()").split(" to "))
    assert low < float(part.rows[2][4].text) < high
    assert 100.0 * math.expm1(1.5) < low
    assert any("cannot be ordered" in note for note in grid.notes)
    few = standings_grid(Standings.of(table(drawn({"a": 0.0, "b": 9.0}, 5)), "mae"))
    assert {line[2].text for line in few.parts[0].rows} == {"1–2"}
    assert "So few worlds cannot separate ranks." in few.notes


def test_a_page_ends_with_methods_over_all_worlds_before_what_was_published() -> None:
    study = study_of("splits")
    values = table(drawn({"a": 0.0, "b": 1.0}), metric=study.headline[0])
    from howsure_studies.engine.page import side_by_side_page

    page = side_by_side_page(study, values, facts={})
    made = with_standings(page, study, values)
    assert [s.title for s in made.sections[:-1]] == [s.title for s in page.sections]
    assert made.sections[-1].title == "Methods over all worlds"
    held = made.tables[-1]
    assert held.name == "standings"
    assert held.columns["method"].tolist() == ["a", "b"]
    assert held.columns["rank_upper"].tolist() == [1, 2]
    check_words(made)
    few = table(drawn({"a": 0.0, "b": 1.0}, 3), metric=study.headline[0])
    page = side_by_side_page(study, few, facts={})
    assert with_standings(page, study, few) is page
