"""Rules that sum over runs of counts, against sums over every count."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from generated import examples
from howsure.topics.congruence.laws import PLACES_OF_RUN, lattice_nodes, lattice_rule, lattice_runs


@pytest.mark.parametrize("length", [1, 2, 9, 15, 16])
def test_short_runs_are_counted_one_by_one(length: int) -> None:
    places, weights = lattice_rule(length)
    assert places[weights > 0].tolist() == list(range(length))
    assert set(weights[weights > 0]) == {1.0}
    assert places.max() == length - 1


@pytest.mark.parametrize("power", range(5, 61))
def test_places_are_whole_and_distinct_and_weights_positive(power: int) -> None:
    places, weights = lattice_rule(1 << power)
    assert np.array_equal(places, np.floor(places))
    assert (np.diff(places) > 0).all()
    assert places[0] >= 0
    assert int(places[-1]) <= (1 << power) - 1
    assert weights.min() > 0.01 * 2.0**power / PLACES_OF_RUN
    assert weights.sum() == pytest.approx(2.0**power, rel=1e-13)


@pytest.mark.parametrize("length", [32, 64, 128, 1024, 4096])
def test_the_rule_is_exact_for_polynomials_of_degree_15(length: int) -> None:
    places, weights = lattice_rule(length)
    half = (length - 1) / 2
    every = (np.arange(length) - half) / half
    for degree in range(PLACES_OF_RUN):
        some = weights @ ((places - half) / half) ** degree
        assert some == pytest.approx((every**degree).sum(), abs=2e-14 * length)
    sixteen = weights @ ((places - half) / half) ** PLACES_OF_RUN - (every**PLACES_OF_RUN).sum()
    assert abs(sixteen) > 1e-16 * length


@pytest.mark.parametrize(("span", "error"), [(1.0, 2e-15), (2.0, 2e-13), (3.0, 2e-10)])
def test_a_bump_is_summed_as_well_as_promised(span: float, error: float) -> None:
    for length in (32, 64, 512, 8192):
        places, weights = lattice_rule(length)
        sd = length / span
        for centre in np.linspace(-length, 2 * length, 31):
            every = np.exp(-0.5 * ((np.arange(length) - centre) / sd) ** 2).sum()
            some = weights @ np.exp(-0.5 * ((places - centre) / sd) ** 2)
            assert abs(some - every) < error * sd * np.sqrt(2 * np.pi)


@examples(80)
@given(
    st.lists(
        st.tuples(
            st.integers(-(10**6), 10**9),
            st.integers(0, 10**6),
            st.floats(0.1, 1e7),
            st.booleans(),
            st.booleans(),
        ),
        min_size=1,
        max_size=5,
    )
)
def test_runs_cover_every_count_once(rows: list[tuple[int, int, float, bool, bool]]) -> None:
    low = np.array([float(row[0]) for row in rows])
    high = low + [row[1] for row in rows]
    longest = np.array([row[2] if row[1] / row[2] < 1e4 else 1e7 for row in rows])
    below, above = (np.array([row[at] for row in rows]) for at in (3, 4))
    starts, lengths = lattice_runs(low, high, longest=longest, stops_below=below, stops_above=above)
    for row in range(len(rows)):
        own = lengths[row] > 0
        begin, size = starts[row][own], lengths[row][own]
        assert begin[0] == low[row]
        assert np.array_equal(begin[1:], (begin + size)[:-1])
        assert (begin + size)[-1] == high[row] + 1
        assert (size <= max(PLACES_OF_RUN, longest[row])).all()
        if below[row]:
            assert (size <= np.maximum(begin - low[row], PLACES_OF_RUN)).all()
        if above[row]:
            assert (size <= np.maximum((high[row] + 1 - begin) / 2, PLACES_OF_RUN)).all()
    values, weights = lattice_nodes(starts, lengths)
    assert weights.sum(axis=(1, 2)) == pytest.approx(high - low + 1, rel=1e-12)
    middle = (weights * (values - low[:, None, None])).sum(axis=(1, 2))
    assert middle == pytest.approx((high - low) * (high - low + 1) / 2, rel=1e-12)
