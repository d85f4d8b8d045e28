"""What a prediction claims of its own intervals, against brute force and simulation."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from generated import examples
from howsure.core.errors import UnanswerableError
from howsure.predictions import Distribution, Intervals, Prediction, Quantiles, Samples

SETTINGS = examples(150)


def place(m: int, coverage: float) -> int:
    """The rank whose interval claims nearest to the coverage; of two, the wider interval's."""
    ranks = range(1, m // 2 + 1)
    return min(ranks, key=lambda i: (round(abs((m + 1 - 2 * i) / (m + 1) - coverage), 9), i))


def misses(values: list[float], i: int) -> tuple[float, float]:
    """Shares of the values that lie below and above the interval of all others."""
    below = above = 0
    for j, value in enumerate(values):
        others = sorted(values[:j] + values[j + 1 :])
        below += value < others[i - 1]
        above += value > others[-i]
    return below / len(values), above / len(values)


def test_nothing_is_claimed_beyond_an_infinite_end() -> None:
    lower, upper = [-np.inf, -np.inf, 0.0, 0.0], [np.inf, 1.0, np.inf, 1.0]
    claims = Intervals(lower, upper, coverage=0.9).claimed_misses(np.full(4, 0.5), 0.9)
    below, above = (side[:, 0] for side in claims)
    np.testing.assert_allclose(below, [0.0, 0.0, 0.1, 0.05], atol=1e-15)
    np.testing.assert_allclose(above, [0.0, 0.1, 0.0, 0.05], atol=1e-15)


@SETTINGS
@given(
    st.lists(st.integers(0, 4), min_size=3, max_size=9),
    st.floats(0.02, 0.98),
)
def test_samples_claim_what_exchangeable_values_do(values: list[int], coverage: float) -> None:
    y, *members = map(float, values)
    m, prediction = len(members), Samples([members])
    if coverage > (m - 1) / (m + 1):
        with pytest.raises(UnanswerableError, match=f"{m} samples per row"):
            prediction.interval(coverage)
        return
    i = place(m, coverage)
    low, high = prediction.interval(coverage)
    assert (low[0], high[0]) == (sorted(members)[i - 1], sorted(members)[-i])
    below, above = prediction.claimed_misses(np.array([y]), coverage)
    expected = misses([y, *members], i)
    np.testing.assert_allclose(below, [[expected[0]] * 2], atol=1e-15)
    np.testing.assert_allclose(above, [[expected[1]] * 2], atol=1e-15)
    claimed = prediction.claimed(np.array([y]), coverage)
    np.testing.assert_allclose(claimed, [1 - sum(expected)], atol=1e-15)


@pytest.mark.parametrize(
    ("m", "coverage", "claim"), [(5, 0.5, 4 / 6), (15, 0.8, 12 / 16), (10, 9 / 11, 9 / 11)]
)
def test_a_perfect_ensemble_covers_what_it_claims(m: int, coverage: float, claim: float) -> None:
    """Where ranks interpolated on one scale cover 53 % at 50 %, and 81.7 % at 80 %."""
    n = 40_000
    drawn = np.random.default_rng(m).normal(size=(n, m + 1))
    y, prediction = drawn[:, 0], Samples(drawn[:, 1:])
    low, high = prediction.interval(coverage)
    claimed = prediction.claimed(y, coverage)
    np.testing.assert_allclose(claimed, claim)
    seen = ((low <= y) & (y <= high)).mean()
    assert abs(seen - claim) < 4 * np.sqrt(claim * (1 - claim) / n)


@pytest.mark.parametrize("m", [5, 10, 50])
def test_ensembles_of_whole_numbers_cover_what_they_claim(m: int) -> None:
    n = 20_000
    drawn = np.random.default_rng(m).poisson(2.0, size=(n, m + 1)).astype(float)
    y, prediction = drawn[:, 0], Samples(drawn[:, 1:])
    coverage = min(0.9, (m - 1) / (m + 1))
    low, high = prediction.interval(coverage)
    inside = (low <= y) & (y <= high)
    gaps = inside - prediction.claimed(y, coverage)
    assert abs(gaps.mean()) < 4 * gaps.std() / np.sqrt(n)
    assert inside.mean() > coverage + 0.02  # ties: the nominal coverage is not what they claim
    for side, miss in zip(prediction.claimed_misses(y, coverage), (y < low, y > high), strict=True):
        gaps = miss - side[:, 0]
        assert abs(gaps.mean()) < 4 * gaps.std() / np.sqrt(n)


def test_a_coverage_next_to_none_still_has_an_interval_of_some_probability() -> None:
    low, high = Samples([[1.0, 2.0, 3.0]]).interval(0.01)
    assert (low.tolist(), high.tolist()) == ([1.0], [3.0])
    with pytest.raises(UnanswerableError, match="one sample per row gives no interval"):
        Samples([[1.0]]).interval(0.01)


def most_claimed(prediction: Prediction, y: np.ndarray, coverage: float) -> np.ndarray:
    """The most that an interval claims to hold y, where `claimed` is the least."""
    below, above = prediction.claimed_misses(y, coverage)
    return 1.0 - (below[:, 0] + above[:, 0])


def counts(rates: np.ndarray, levels: list[float], shift: int = 0) -> Quantiles:
    """Quantile tables of Poisson laws, wider by ``shift`` on both sides."""
    table = stats.poisson.ppf(np.array(levels), rates[:, None])
    table[:, 0] -= shift
    table[:, -1] += shift
    return Quantiles(levels, table, crossing="sort")


@pytest.mark.slow
@pytest.mark.parametrize("rate", [0.5, 2.0, 30.0])
def test_quantiles_of_whole_numbers_claim_a_range(rate: float) -> None:
    """Beyond neither end for the right law; one unit wider on either side is beyond the most."""
    n, levels = 40_000, [0.05, 0.5, 0.95]
    rates = rate * np.exp(np.random.default_rng(0).normal(0.0, 0.3, n))
    y = np.random.default_rng(1).poisson(rates).astype(float)
    right, wide = counts(rates, levels), counts(rates, levels, shift=1)
    short = counts(rates, levels, shift=-1)

    def gaps(prediction: Quantiles) -> tuple[float, float]:
        low, high = prediction.interval(0.9)
        inside = (low <= y) & (y <= high)
        least, most = prediction.claimed(y, 0.9), most_claimed(prediction, y, 0.9)
        np.testing.assert_allclose(least, 0.9, atol=1e-14)
        return float((inside - least).mean()), float((inside - most).mean())

    error = 4 * np.sqrt(0.09 / n)
    under, over = gaps(right)
    assert under > -error
    assert over < error
    assert gaps(wide)[1] > error
    if rate > 1.0:
        assert gaps(short)[0] < -error


def test_quantiles_claim_between_their_own_levels() -> None:
    """At a level between two given ones a table of whole numbers claims what these do."""
    n = 40_000
    y = np.random.default_rng(1).poisson(3.0, n).astype(float)
    prediction = counts(np.full(n, 3.0), [0.05, 0.25, 0.75, 0.95])
    low, high = prediction.interval(0.8)
    inside = (low <= y) & (y <= high)
    np.testing.assert_allclose(prediction.claimed(y, 0.8), 0.5)
    assert inside.mean() < 0.8  # which is no fault: between whole numbers there is no quantile
    assert (inside - most_claimed(prediction, y, 0.8)).mean() < 0.0


def test_continuous_quantiles_and_given_intervals_claim_their_coverage() -> None:
    y = np.array([0.1, 0.7, 3.2])
    table = Quantiles([0.1, 0.3, 0.7, 0.9], np.tile([0.0, 0.5, 1.5, 2.0], (3, 1)))
    given = Intervals([0.0] * 3, [3.3] * 3, coverage=0.6)
    predictions: tuple[Prediction, ...] = (table, given, Distribution.normal(y, [1.0] * 3))
    for prediction in predictions:
        np.testing.assert_allclose(prediction.claimed(y, 0.6), 0.6)
        np.testing.assert_allclose(most_claimed(prediction, y, 0.6), 0.6)
        for side in prediction.claimed_misses(y, 0.6):
            np.testing.assert_allclose(side, 0.2)


def test_an_end_that_y_often_equals_claims_a_range() -> None:
    """Of a quantile only P(Y < q) ≤ p ≤ P(Y ≤ q) is claimed, also of bare intervals."""
    rng = np.random.default_rng(0)
    rate = np.full(20_000, 2.0)
    y = rng.poisson(rate).astype(float)
    ends = stats.poisson.ppf([[0.05], [0.95]], rate)
    given = Intervals(*ends, coverage=0.9)
    inside = ((ends[0] <= y) & (y <= ends[1])).mean()
    assert given.claimed(y, 0.9).mean() == pytest.approx(0.9)
    assert 0.9 < inside < most_claimed(given, y, 0.9).mean()


def test_count_laws_claim_their_own_mass() -> None:
    rate = np.array([0.3, 2.0, 40.0])
    law = stats.poisson(rate)
    prediction, y = Distribution.from_scipy(law), np.array([0.0, 1.0, 2.0])
    low, high = prediction.interval(0.9)
    below, above = prediction.claimed_misses(y, 0.9)
    np.testing.assert_allclose(below, np.stack([law.cdf(low - 1)] * 2, axis=1), atol=1e-15)
    np.testing.assert_allclose(above, np.stack([law.sf(high)] * 2, axis=1), atol=1e-15)
    mass = law.cdf(high) - law.cdf(low - 1)
    np.testing.assert_allclose(prediction.claimed(y, 0.9), mass)
    np.testing.assert_allclose(most_claimed(prediction, y, 0.9), mass)
