"""Draws are fixed by names, and by what a row holds; not by order, not by neighbours."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import stats

from generated import examples
from howsure.core.errors import InputError
from howsure.core.rng import child, row_keys, row_uniforms

SETTINGS = examples(100)
part = st.one_of(st.text(), st.integers(), st.floats(allow_nan=False))


@SETTINGS
@given(st.integers(0, 2**40), st.lists(part, max_size=4), st.lists(part, max_size=4))
def test_a_stream_belongs_to_its_names(
    seed: int, one: list[str | int | float], other: list[str | int | float]
) -> None:
    draw = child(seed, *one).integers(2**63)
    assert draw == child(seed, *one).integers(2**63)
    same = [(type(p), str(p)) for p in one] == [(type(p), str(p)) for p in other]
    assert (draw == child(seed, *other).integers(2**63)) == same
    assert draw != child(seed + 1, *one).integers(2**63)


def test_numbers_of_numpy_name_the_same_stream() -> None:
    for value, native in [(np.int64(3), 3), (np.float64(0.5), 0.5), (np.str_("a"), "a")]:
        assert child(np.int64(0), value).random() == child(0, native).random()


def test_no_two_names_share_a_stream() -> None:
    """Not even names that hold the mark which separates parts."""
    names = [("a", "b"), ("a\x1fstr:b",), ("a\\ustr:b",), ("ab",), ("b", "a"), ("a", "b", "")]
    assert len({child(0, *name).random() for name in names}) == len(names)
    assert child(0, "\ud800").random() != child(0, "\ud801").random()


@pytest.mark.parametrize("seed", [-1, 1.5, "0", None, True])
def test_seeds_are_whole_numbers(seed: object) -> None:
    with pytest.raises(InputError, match="seed must be an integer of at least 0"):
        child(seed)  # type: ignore[arg-type]


def test_nothing_global_is_touched() -> None:
    before = random.getstate(), np.random.get_state()[1].tolist()  # noqa: NPY002
    child(0, "a").random()
    row_uniforms(0, "a", row_keys([1.0, 2.0]))
    assert (random.getstate(), np.random.get_state()[1].tolist()) == before  # noqa: NPY002


columns = hnp.arrays(
    np.float64,
    st.tuples(st.integers(1, 25), st.integers(1, 3)),
    elements=st.sampled_from([0.0, 1.0, 2.0]),
)


@SETTINGS
@given(columns, st.randoms(use_true_random=False))
def test_keys_follow_their_rows(table: np.ndarray, order: random.Random) -> None:
    """Shuffled rows have shuffled keys; equal rows share a set of keys, and all keys differ."""
    keys = row_keys(table)
    assert len(set(keys.tolist())) == len(table)
    moved = list(range(len(table)))
    order.shuffle(moved)
    again = row_keys(table[moved])
    for row in np.unique(table, axis=0):
        here = (table == row).all(axis=1)
        assert set(keys[here].tolist()) == set(again[(table[moved] == row).all(axis=1)].tolist())


def test_columns_may_come_together_or_apart() -> None:
    table = np.random.default_rng(0).normal(size=(10, 3))
    np.testing.assert_array_equal(row_keys(table), row_keys(table[:, 0], table[:, 1:]))
    assert (row_keys(table) != row_keys(table[:, ::-1])).all()
    np.testing.assert_array_equal(row_keys([0.0]), row_keys([-0.0]))
    with pytest.raises(InputError, match="at least one column"):
        row_keys()


def test_row_draws_are_uniform_and_independent() -> None:
    """Even where the rows differ by little; names make independent draws."""
    keys = row_keys(np.arange(20_000) / 1e6)
    one, other = row_uniforms(0, "pit", keys), row_uniforms(0, "score", keys)
    assert ((one > 0) & (one < 1)).all()
    assert stats.kstest(one, "uniform").pvalue > 1e-3
    assert stats.kstest((one + other) % 1, "uniform").pvalue > 1e-3
    assert abs(np.corrcoef(one, other)[0, 1]) < 4 / np.sqrt(len(keys))
    assert abs(np.corrcoef(one[1:], one[:-1])[0, 1]) < 4 / np.sqrt(len(keys))
    assert (row_uniforms(1, "pit", keys) != one).all()
