"""Cuts of a table: no unit in two parts, sizes as asked, and only the seed decides."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from howsure.core.errors import InputError
from howsure_studies.tasks import SplitTable
from howsure_studies.which.cuts import Cut, cut_rows
from which.tables import reordered, split_of

ASKED: dict[str, Any] = {"seed": 0, "rows": 200, "calibration": 0.3, "test": 100, "shifted": False}
SHAPES: dict[str, dict[str, Any]] = {
    "alone": {},
    "units": {"units": 60},
    "late": {"late": 150},
    "late units": {"units": 60, "late": 20},
}


def parts(table: SplitTable, cut: Cut) -> tuple[list[str], list[str], list[str]]:
    """The ids of each part, in the order in which a method sees them."""
    train, calibration, test = (
        table.part.ids[rows].tolist() for rows in (cut.train, cut.calibration, cut.test)
    )
    return train, calibration, test


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("seed", range(3))
def test_no_row_and_no_unit_is_in_two_parts(shape: str, seed: int) -> None:
    table = split_of(**SHAPES[shape])
    cut = cut_rows(table, **{**ASKED, "seed": seed, "shifted": "late" in shape})
    every = np.concatenate([cut.train, cut.calibration, cut.test])
    assert len(set(every.tolist())) == len(every)
    assert sorted(cut.with_y) == sorted([*cut.train, *cut.calibration])
    if table.units is not None:
        seen = [set(table.units[rows]) for rows in (cut.train, cut.calibration, cut.test)]
        assert len(set.union(*seen)) == sum(map(len, seen))


@pytest.mark.parametrize(
    ("asked", "sizes"),
    [
        ({}, (140, 60, 100)),
        ({"test": 2000}, (140, 60, 120)),  # three tenths of 400
        ({"rows": 1000}, (210, 90, 100)),  # what the test leaves
        ({"rows": 1000, "test": 2000}, (196, 84, 120)),
        ({"calibration": 0.5}, (100, 100, 100)),
    ],
)
def test_parts_have_the_sizes_that_were_asked_for(
    asked: dict[str, Any], sizes: tuple[int, int, int]
) -> None:
    cut = cut_rows(split_of(), **{**ASKED, **asked})
    assert (len(cut.train), len(cut.calibration), len(cut.test)) == sizes


def test_a_part_ends_with_a_whole_unit() -> None:
    """The first units whose rows are not fewer than asked: one unit less would be too few."""
    table = split_of(units=60)
    cut = cut_rows(table, **ASKED)
    assert table.units is not None
    for rows, wanted in ((cut.test, 100), (cut.calibration, 60)):
        last = table.units[rows] == table.units[rows[-1]]
        assert len(rows) - last.sum() < wanted <= len(rows)
        whole = np.isin(table.units, table.units[rows])
        assert whole.sum() == len(rows)


def test_calibration_rows_past_two_thousand_are_for_training() -> None:
    cut = cut_rows(split_of(12_000), **{**ASKED, "rows": 8000})
    assert (len(cut.train), len(cut.calibration)) == (6000, 2000)


@pytest.mark.parametrize("shape", ["late", "late units"])
def test_shifted_rows_are_in_the_test_alone(shape: str) -> None:
    table = split_of(**SHAPES[shape])
    assert table.shifted is not None
    cut = cut_rows(table, **{**ASKED, "shifted": True})
    assert table.shifted[cut.test].all()
    assert not table.shifted[cut.with_y].any()
    assert len(cut.test) == 100
    mixed = cut_rows(table, **ASKED)  # where the shift is not asked for, rows are of both kinds
    assert 0 < table.shifted[mixed.test].mean() < 1
    assert 0 < table.shifted[mixed.with_y].mean() < 1


@pytest.mark.parametrize("shape", SHAPES)
def test_the_order_of_the_tables_rows_changes_nothing(shape: str) -> None:
    table = split_of(**SHAPES[shape])
    asked = {**ASKED, "shifted": "late" in shape}
    before = parts(table, cut_rows(table, **asked))
    for seed in range(3):
        other = reordered(table, np.random.default_rng(seed).permutation(len(table.part)))
        assert parts(other, cut_rows(other, **asked)) == before


@pytest.mark.parametrize("shape", SHAPES)
def test_another_seed_is_another_cut(shape: str) -> None:
    table = split_of(**SHAPES[shape])
    asked = {**ASKED, "shifted": "late" in shape}
    first, again, other = (cut_rows(table, **{**asked, "seed": seed}) for seed in (0, 0, 1))
    assert parts(table, first) == parts(table, again)
    for ours, theirs in zip(parts(table, first), parts(table, other), strict=True):
        assert set(ours) != set(theirs)


def test_each_row_is_as_likely_in_the_test() -> None:
    """Of 200 rows 60 are; over 200 cuts the counts spread as draws without repetition do."""
    table = split_of(200)
    hits = np.zeros(200)
    for seed in range(200):
        hits[cut_rows(table, **{**ASKED, "calibration": 0.4, "seed": seed}).test] += 1
    chi_squared = np.sum((hits - 60.0) ** 2) / (200 * 0.3 * 0.7)
    assert hits.sum() == 200 * 60
    assert 140 < chi_squared < 265  # 199 degrees of freedom: p between 0.001 and 0.999


@pytest.mark.parametrize(
    ("table", "asked", "words"),
    [
        (split_of(160), {}, "each part must have at least 50 rows, got 78, 34 and 48"),
        (split_of(), {"test": 49}, "got 140, 60 and 49"),
        (split_of(), {"rows": 100}, "got 70, 30 and 100"),
        (split_of(), {"calibration": 0.9}, "got 20, 180 and 100"),
        (split_of(late=40), {"shifted": True}, "got 140, 60 and 40"),
        (split_of(), {"shifted": True}, "must have shifted rows, got none"),
    ],
)
def test_too_few_rows_are_refused(table: SplitTable, asked: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        cut_rows(table, **{**ASKED, **asked})
