"""Rows that were predicted and have no y: told first, and no reason to narrow."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest
from scipy import stats

import howsure
from howsure.core.rng import child
from howsure.engine.finding import Case
from howsure.inputs import load
from howsure.predictions import Distribution, EvalSet
from howsure.streaming import Large, State, load_parts, loaded_state, merged_states
from howsure.verdict.advice import try_recalibrations
from howsure.verdict.family import examine
from howsure.verdict.without_y import _largest, least_width, without_y

N = 400


def frame(name: str, n: int = N, *, times: float = 1.0) -> pd.DataFrame:
    """A right model, but for stated sds that are so many times too large."""
    rng = child(0, "rows without y", name, n)
    mean, sd = rng.normal(size=n), np.exp(0.5 * rng.normal(size=n))
    return pd.DataFrame(
        {
            "y": mean + sd * rng.normal(size=n),
            "mean": mean,
            "sd": times * sd,
            "site": rng.choice(list("ABC"), n),
            "age": rng.uniform(20, 80, n),
        }
    )


def lacking(table: pd.DataFrame, gone: npt.ArrayLike) -> pd.DataFrame:
    return table.assign(y=table["y"].where(~np.asarray(gone)))


def read(table: pd.DataFrame, **said: Any) -> EvalSet:
    return load(table, missing="drop", groups="site", features="age", **said).evalsets[0]


def said_of(held: EvalSet) -> str:
    (first, *_), _ = examine(held)
    assert first.id == "rows"
    alike = any(words in first.sentence for words in ("like the other rows", "has no y."))
    assert first.state == ("negligible" if alike else "caution")
    return first.sentence


def widest(table: pd.DataFrame, few: int) -> npt.NDArray[np.bool_]:
    return np.asarray(table["sd"].rank() > len(table) - few)


def by_size(table: pd.DataFrame, share: float) -> npt.NDArray[np.bool_]:
    z = np.abs(table["y"] - table["mean"]) / table["sd"]
    return np.asarray(z.rank() > (1.0 - share) * len(table))


def test_all_doors_say_how_many_rows_have_no_y(tmp_path: Path) -> None:
    table = frame("doors")
    table = lacking(table, widest(table, 100))
    whole = table.dropna()
    hits = int((np.abs(whole["y"] - whole["mean"]) <= stats.norm.ppf(0.95) * whole["sd"]).sum())
    ratio = table["sd"][table["y"].isna()].median() / whole["sd"].median()
    told = (
        f"100 of 400 rows have no y; their predicted sd is {ratio:.1f} times that of the rest. "
        f"Coverage over all rows is between {math.floor(hits / 4)} and "
        f"{math.ceil((hits + 100) / 4)} %."
    )
    table.to_csv(tmp_path / "rows.csv", index=False)
    table.to_parquet(tmp_path / "rows.parquet")
    (tmp_path / "many").mkdir()
    for name, part in (("a", table[:150]), ("b", table[150:])):
        part.to_parquet(tmp_path / "many" / f"{name}.parquet")
    named = {"groups": "site", "features": "age", "missing": "drop"}
    quick = howsure.Options(trials=False)
    doors = [
        *(
            howsure.assess(howsure.Table(each, **named), options=quick)
            for each in (table, *sorted(tmp_path.iterdir()))
        ),
        howsure.assess(
            howsure.Table(
                table["y"],
                Distribution.normal(table["mean"].to_numpy(), table["sd"].to_numpy()),
                groups=table[["site"]],
                features=table[["age"]],
                missing="drop",
            ),
            options=howsure.Options(trials=False),
        ),
    ]
    for found in doors:
        assert found.findings[0].sentence == told
        assert found.verdict.splitlines()[1].endswith(told)
    assert said_of(read(table)) == told


def test_parts_of_the_rows_keep_their_share_of_those_without_y() -> None:
    held = read(lacking(frame("share"), np.arange(N) < 100))
    sizes = [
        0 if part.without_y is None else part.without_y.n
        for part in (held.take(np.arange(n)[::-1]) for n in (300, 150, 1))
    ]
    assert sizes == [100, 50, 0]


def test_rows_that_lack_more_than_y_are_no_such_rows() -> None:
    table = frame("blank")
    blank = lacking(table, np.arange(N) < 50).assign(
        mean=table["mean"].where(np.arange(N) >= 20), sd=table["sd"].where(np.arange(N) >= 20)
    )
    rest = read(blank).without_y
    assert rest is not None
    assert rest.n == 30
    assert np.isnan(rest.y).all()
    assert rest.groups["site"].values().tolist() == table["site"][20:50].tolist()


def test_several_models_keep_what_each_predicted() -> None:
    table = lacking(frame("models"), np.arange(N) < 50)
    both = load(
        {"y": table["y"], "a": table["mean"], "b": table["mean"] + 1.0},
        points=["a", "b"],
        missing="drop",
    ).evalsets
    for held, more in zip(both, (0.0, 1.0), strict=True):
        assert held.without_y is not None
        assert held.without_y.point == pytest.approx(table["mean"][:50] + more)


def test_text_and_counts_without_y_are_read() -> None:
    names = np.array(["cat", "dog", None], dtype=object)[np.arange(60) % 3]
    share = np.where(np.arange(60) % 2, 0.8, 0.3)
    held = load({"y": names, "p_cat": share, "p_dog": 1.0 - share}, softmax="p_*", missing="drop")
    rest = held.evalsets[0].without_y
    assert rest is not None
    assert rest.n == 20
    assert said_of(held.evalsets[0]).startswith("20 of 60 rows have no y")
    counts = np.where(np.arange(60) % 3, 2.0, np.nan)
    law = howsure.Distribution.from_scipy(stats.poisson(np.full(60, 2.0)))
    found = howsure.assess(
        howsure.Table(counts, law, missing="drop"), options=howsure.Options(trials=False)
    )
    assert found.findings[0].sentence.startswith("20 of 60 rows have no y")


@pytest.mark.parametrize(
    ("gone", "told"),
    [
        (lambda t, u: (t["site"] == "B") & (u < 0.5), " % of those in site=B, 0 % of the others."),
        (lambda t, u: (t["age"] > 60) & (u < 0.8), "; their age is above that of "),
        (lambda t, u: np.abs(t["age"] - 50) > 24, "; their age is more often extreme than that "),
        (lambda t, u: u < 0.25, "; in all columns they are like the other rows."),
    ],
)
def test_what_sets_rows_without_y_apart_is_named(gone: Any, told: str) -> None:
    table = frame("apart")
    drawn = child(0, "which rows lack y").uniform(size=N)
    assert told in said_of(read(lacking(table, gone(table, drawn))))


def test_neither_the_order_of_rows_nor_more_rows_of_one_kind_changes_the_words() -> None:
    table = frame("order")
    table = lacking(table, widest(table, 60))
    assert said_of(read(table.iloc[::-1])) == said_of(read(table))


def test_lack_at_random_hardly_ever_looks_like_a_difference() -> None:
    rng, tables = child(0, "lack at random"), 200
    columns = rng.normal(size=(6, 150))
    told = [_largest(columns, rng.uniform(size=150) < 0.2, turned=False)[1] for _ in range(tables)]
    assert np.mean(np.array(told) < 0.05) <= 0.05 + 3.0 * math.sqrt(0.05 * 0.95 / tables)


def test_lack_in_spells_is_turned_round_in_time() -> None:
    """Spells of ten rows beside numbers that remember: permuted, nearly all would be told."""
    rng, told = child(0, "spells"), {True: 0, False: 0}
    for _ in range(100):
        column = np.convolve(rng.normal(size=430), np.ones(31) / 31, "valid")
        gone = np.repeat(rng.uniform(size=40) < 0.2, 10)
        column = (column - column.mean()) / column.std()
        for turned in told:
            told[turned] += _largest(column[None], gone, turned=turned)[1] < 0.05
    assert told[True] <= 12
    assert told[False] > 40


def test_turns_are_those_of_the_definition() -> None:
    rng = child(0, "turns")
    column, gone = rng.normal(size=(2, 100)), rng.uniform(size=100) < 0.3
    drawn = np.array([column @ np.roll(gone, k) for k in range(5, 95)]).T
    sd = np.maximum(np.sqrt(np.square(drawn).mean(axis=1)), 0.05 * math.sqrt(gone.sum()))
    z = np.abs(column @ gone) / sd
    reached = (np.abs(drawn) / sd[:, None]).max(axis=0) >= z.max()
    assert _largest(column, gone, turned=True) == (
        int(z.argmax()),
        pytest.approx((1 + reached.sum()) / 91),
    )


def test_bounds_count_rows_as_often_as_their_frequency_says() -> None:
    table = lacking(frame("frequencies"), np.arange(N) < 40).assign(weight=1 + np.arange(N) % 3)
    held = read(table, weights="weight")
    fault = without_y(Case(held, {}, 0.9))
    assert fault is not None
    z = np.abs(table["y"] - table["mean"]) / table["sd"]
    total, hits = table["weight"].sum(), table["weight"][z <= stats.norm.ppf(0.95)].sum()
    gone = table["weight"][:40].sum()
    assert fault.facts["between"] == pytest.approx((hits / total, (hits + gone) / total))


@pytest.mark.parametrize("gone", [lambda t: by_size(t, 0.25), lambda t: np.arange(N) % 4 == 0])
def test_a_right_model_is_not_narrowed_whatever_lacks_y(gone: Any) -> None:
    tables = 40
    found = [frame(f"right {k}") for k in range(tables)]
    wrong = sum(least_width(read(lacking(each, gone(each))), 0.9) < 1.0 for each in found)
    assert wrong <= 3  # of 1 %, 3 or fewer in 99.9 % of all times


def test_predictions_too_wide_for_the_few_rows_without_y_may_be_narrowed() -> None:
    table = frame("wide", 1_000, times=1.4)
    few, many = (np.arange(1_000) % each == 0 for each in (50, 2))
    assert 0.5 < least_width(read(lacking(table, few)), 0.9) < 1.0 / 1.4
    assert least_width(read(lacking(table, many)), 0.9) == 1.0
    assert least_width(read(table), 0.9) == 0.0


def test_what_all_rows_allow_is_not_what_those_with_small_errors_teach() -> None:
    """Stated sds are a fifth too large, and those with y seem to be half as large as stated."""
    table = frame("both", 1_000, times=1.2)
    held = read(lacking(table, by_size(table, 0.25)))
    assert least_width(held, 0.9) == pytest.approx(1.2**-1.5, abs=0.1)
    trials = try_recalibrations(held)
    assert trials.advice is not None
    assert not trials.advice.method


def test_no_narrowing_is_advised_where_labels_may_be_missing_by_the_size_of_errors() -> None:
    """What is left covers 100 % with light tails; a narrower model would cover new rows less."""
    table = frame("by size", 800)
    held = read(lacking(table, by_size(table, 0.25)))
    trials = try_recalibrations(held)
    assert trials.advice is not None
    assert not trials.advice.method
    assert "rows without y" in {each.harms for each in trials.trials}
    said = "It was refused because rows without y may have the largest errors."
    assert said in trials.advice.sentence
    wide = frame("few", 800, times=1.5)
    rare = read(lacking(wide, np.arange(800) % 80 == 0))
    assert try_recalibrations(rare).advice.method  # type: ignore[union-attr]


FEW = Large(memory=1_000_000, jobs=1)
"""So little memory that a table is read by parts, of which a sample is kept."""


def test_a_table_read_by_parts_says_the_same(tmp_path: Path) -> None:
    """Whole, by parts and from states, where whole parts have no y."""
    rows, starts = 70_000, (0, 29_000)
    table = frame("by parts", rows)
    gone = child(0, "lacks by parts").random(rows) < np.where(table["site"] == "B", 0.5, 0.1)
    gone[30_000:66_000] = True
    table = lacking(table, gone)
    columns = {"missing": "drop", "groups": "site", "features": "age"}
    states = []
    for start, end in zip(starts, (*starts[1:], rows), strict=True):
        part, path = tmp_path / f"{start}.csv", tmp_path / f"{start}.arrow"
        table.iloc[start:end].to_csv(part, index=False)
        load_parts(part, **columns, large=replace(FEW, state=path))
        states.append(State.open(path))
    table.to_csv(tmp_path / "all.csv", index=False)
    (by_parts,) = load_parts(tmp_path / "all.csv", large=FEW, **columns).evalsets
    (merged,) = loaded_state(merged_states(states)).evalsets
    whole = read(table)
    assert by_parts.n < whole.n
    pattern = rf"{gone.sum():,} of 70,000 rows have no y: (\d+) % of those in site=B, (\d+) % of"
    shares = [re.match(pattern, said_of(held)) for held in (whole, by_parts, merged)]
    found = np.array([match.groups() if match else (0, 0) for match in shares], dtype=float)
    assert found[0] == pytest.approx([76.0, 56.0], abs=1.0)
    assert found[1:] == pytest.approx(np.tile(found[0], (2, 1)), abs=1.0)
    assert least_width(whole, 0.9) == least_width(by_parts, 0.9) == 1.0


def test_rows_that_stand_for_several_are_counted_so_by_parts(tmp_path: Path) -> None:
    table = frame("weights by parts", 25_000)
    rng = child(0, "weights by parts")
    table = lacking(table.assign(w=rng.integers(1, 4, len(table))), rng.random(len(table)) < 0.1)
    table.to_csv(tmp_path / "all.csv", index=False)
    columns = {"missing": "drop", "groups": "site", "weights": "w"}
    (by_parts,) = load_parts(tmp_path / "all.csv", large=FEW, **columns).evalsets
    total, without = (int(table["w"][some].sum()) for some in (table["w"] > 0, table["y"].isna()))
    assert by_parts.n < len(table) - table["y"].isna().sum()
    assert said_of(by_parts).startswith(f"{without:,} of {total:,} rows have no y; ")
