"""How each kind draws y, and what follows of tests."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from howsure.core.errors import UnanswerableError
from howsure.core.rng import row_keys
from howsure.engine.view import View
from howsure.predictions import (
    Distribution,
    EvalSet,
    Intervals,
    LabelSets,
    Quantiles,
    Samples,
)
from howsure.stats.permutation import p_value, sequential
from howsure.verdict.draws import Population, draw_outcomes, strata
from verdict.worlds import LEVELS, WORLDS, spreads

UNIFORM = (np.arange(10_000) + 0.5) / 10_000


def test_a_distribution_gives_its_quantiles_and_stays() -> None:
    held = Distribution.normal(np.full(10_000, 2.0), np.full(10_000, 3.0))
    y, same = held.redrawn(np.zeros(10_000), UNIFORM)
    np.testing.assert_allclose(y, stats.norm(2, 3).ppf(UNIFORM), rtol=1e-12)
    assert same is held


def test_counts_are_drawn_with_their_probabilities() -> None:
    held = Distribution.from_scipy(stats.poisson(np.full(10_000, 3.0)))
    y, _ = held.redrawn(np.zeros(10_000), UNIFORM)
    shares = np.bincount(y.astype(int), minlength=12)[:12] / 10_000
    np.testing.assert_allclose(shares, stats.poisson(3.0).pmf(np.arange(12)), atol=1.1e-4)


def test_a_quantile_table_is_linear_within_and_knows_nothing_outside() -> None:
    table = Quantiles([0.1, 0.5, 0.9], np.tile([1.0, 2.5, 4.0], (10_000, 1)))
    y, same = table.redrawn(np.zeros(10_000), UNIFORM)
    inside = (UNIFORM >= 0.1) & (UNIFORM <= 0.9)
    expected = np.interp(UNIFORM[inside], [0.1, 0.5, 0.9], [1.0, 2.5, 4.0])
    np.testing.assert_allclose(y[inside], expected, rtol=1e-12)
    assert (y[UNIFORM < 0.1] == -np.inf).all()
    assert (y[UNIFORM > 0.9] == np.inf).all()
    assert same is table


def test_one_quantile_says_on_which_side() -> None:
    y, _ = Quantiles([0.3], np.full((10_000, 1), 1.5)).redrawn(np.zeros(10_000), UNIFORM)
    assert (y == -np.inf).mean() == pytest.approx(0.3)


def test_a_table_of_whole_numbers_is_not_drawn_from() -> None:
    with pytest.raises(UnanswerableError, match="whole numbers"):
        Quantiles([0.1, 0.9], [[1.0, 4.0]]).redrawn(np.ones(1), np.full(1, 0.5))
    Quantiles([0.1, 0.9], [[1.0, 4.0]]).redrawn(np.full(1, 0.5), np.full(1, 0.5))


def test_samples_and_y_are_exchangeable() -> None:
    """Each of the m + 1 values becomes y equally often, and the others are its members."""
    values = np.array([5.0, 1.0, 3.0, 2.0])
    held = Samples(np.tile(values[1:], (10_000, 1)))
    y, others = held.redrawn(np.full(10_000, values[0]), UNIFORM)
    assert {float(v): int((y == v).sum()) for v in values} == dict.fromkeys(values, 2500)
    together = np.sort(np.column_stack([y, others.sorted_samples]), axis=1)
    np.testing.assert_array_equal(together, np.tile(np.sort(values), (10_000, 1)))
    np.testing.assert_array_equal(held.sorted_samples[0], np.sort(values[1:]))


def test_nested_intervals_share_one_coin() -> None:
    held = Intervals(
        np.tile([-1.0, -2.0], (10_000, 1)), np.tile([1.0, 2.0], (10_000, 1)), coverage=[0.5, 0.9]
    )
    narrow, wide = (held.inside(c, UNIFORM) for c in (0.5, 0.9))
    assert narrow.mean() == 0.5
    assert wide.mean() == 0.9
    assert not (narrow & ~wide).any()
    with pytest.raises(UnanswerableError, match="intervals give only the coverage"):
        held.redrawn(np.zeros(10_000), UNIFORM)


def test_what_nothing_can_miss_is_always_covered() -> None:
    unbounded = Intervals([-np.inf, -np.inf], [np.inf, 0.0], coverage=0.5)
    assert unbounded.inside(0.5, np.full(2, 0.9)).tolist() == [True, False]
    full = LabelSets([[True, True], [True, False]], coverage=0.5)
    assert full.inside(0.5, np.full(2, 0.9)).tolist() == [True, False]


def test_draws_are_attached_to_rows() -> None:
    mean, sd = spreads(np.random.default_rng(0), 50)
    order = np.random.default_rng(1).permutation(50)
    first = draw_outcomes(Distribution.normal(mean, sd), mean, row_keys(mean), 3, seed=4)
    moved = Distribution.normal(mean[order], sd[order])
    second = draw_outcomes(moved, mean[order], row_keys(mean[order]), 3, seed=4)
    seen = []
    for (one, _), (other, _) in zip(first, second, strict=True):
        np.testing.assert_array_equal(one[order], other)
        seen.append(one)
    assert not np.isclose(seen[0], seen[1]).any()


def test_strata_hold_every_stratum_twice() -> None:
    u = strata(row_keys(np.arange(2000.0)), 20, seed=1)
    for half in (u[:10], u[10:]):
        np.testing.assert_array_equal(
            np.sort(np.floor(10 * half), axis=0), np.tile(np.arange(10.0)[:, None], 2000)
        )
    assert stats.kstest(u[3], "uniform").pvalue > 0.001
    assert abs(np.corrcoef(u[0], u[10])[0, 1]) < 4 / np.sqrt(2000)


def test_a_part_has_the_spread_of_the_whole() -> None:
    mean, sd = spreads(np.random.default_rng(3), 5000)
    held = EvalSet.checked(mean, Distribution.normal(mean, sd))
    part = Population(View(held), 0).stand(500)
    assert len(np.unique(part.rows)) == 500
    assert part.n == 5000
    assert not part.whole
    np.testing.assert_allclose(np.sort(sd[part.rows]), np.sort(sd)[5::10], rtol=0.02)
    order = np.random.default_rng(4).permutation(5000)
    again = Population(View(held.take(order)), 0).stand(500)
    assert set(order[again.rows].tolist()) == set(part.rows.tolist())


def test_a_part_of_counted_rows_takes_them_by_their_counts() -> None:
    mean, sd = spreads(np.random.default_rng(3), 100)
    counts = np.repeat([1.0, 99.0], 50)
    held = EvalSet.checked(mean, Distribution.normal(mean, sd), weights=counts)
    whole = Population(View(held), 0).stand(5000)
    np.testing.assert_array_equal(np.bincount(whole.rows), counts)
    part = Population(View(held), 0).stand(500)
    taken = np.bincount(part.rows, minlength=100)
    np.testing.assert_allclose(taken, counts / 10, atol=1.0)


def test_p_values_count_the_observed_table() -> None:
    drawn = np.arange(1.0, 200.0)
    assert p_value(200.0, drawn) == 1 / 200
    assert p_value(100.0, drawn) == 101 / 200
    assert p_value(0.0, drawn) == 1.0


def test_p_values_of_a_perfect_model_are_uniform() -> None:
    rng = np.random.default_rng(5)
    p = [p_value(rng.normal(), rng.normal(size=19)) for _ in range(4000)]
    shares = np.bincount(np.round(20 * np.array(p)).astype(int), minlength=21)[1:] / 4000
    np.testing.assert_allclose(shares, 0.05, atol=4 * np.sqrt(0.05 * 0.95 / 4000))


@pytest.mark.parametrize(
    ("observed", "draws"), [(0.0, 199), (3.9, 9_999), (2.0, 199), (3.2, 9_999)]
)
def test_draws_go_on_while_a_finding_may_turn_red(observed: float, draws: int) -> None:
    rng = np.random.default_rng(6)
    values = rng.normal(size=9_999)
    drawn = sequential(lambda a, b: values[a:b], observed, level=0.005)
    assert len(drawn) == draws or (draws == 199 and len(drawn) < 9_999)
    np.testing.assert_array_equal(drawn, values[: len(drawn)])
    if draws == 9_999:
        assert p_value(observed, drawn) == pytest.approx(stats.norm.sf(observed), abs=5e-4)


def test_every_world_has_an_independent_sampler() -> None:
    """The oracle's own y and the kind's draws follow one law: two-sample tests of ranks."""
    rng = np.random.default_rng(7)
    for name, world in WORLDS.items():
        if name in ("intervals", "label sets"):
            continue
        held, draw = world(rng, 3000)
        theirs = draw(rng)
        ours, _ = next(draw_outcomes(held, theirs, row_keys(theirs), 1, seed=8))
        inside = np.isfinite(ours)
        if name == "quantiles":
            table = held.values  # type: ignore[attr-defined]
            inside &= (theirs > table[:, 0]) & (theirs < table[:, -1])
            assert np.isinf(ours).mean() == pytest.approx(2 * LEVELS[0], abs=0.01)
        assert stats.ks_2samp(ours[inside], theirs[inside]).pvalue > 0.001, name
