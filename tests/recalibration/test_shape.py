"""Shape: the map of levels and of columns by hand, its tails, its order and what it mends."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from generated import examples
from howsure.core.errors import HowsureError
from howsure.core.rng import child
from howsure.predictions import Distribution, EvalSet, Prediction, Quantiles, Samples
from howsure.recalibration.levels import DEFAULT_LEVELS
from howsure.recalibration.shape import Isotonic, Shape

LEVELS = np.array(DEFAULT_LEVELS)
KINDS = ("distributions", "samples", "quantiles")


def drawn(kind: str, n: int, seed: int, fault: str = "none") -> EvalSet:
    """Normal predictions; y is t3, gamma, twice as wide or moved, or as predicted."""
    rng = child(seed, "shape", kind)
    center, sd = rng.normal(size=n), np.exp(0.5 * rng.normal(size=n))
    noise = {
        "none": lambda: rng.normal(size=n),
        "t3": lambda: rng.standard_t(3, n) / np.sqrt(3.0),
        "skew": lambda: (rng.gamma(2.0, size=n) - 2.0) / np.sqrt(2.0),
        "narrow": lambda: 1.5 * rng.normal(size=n),
        "moved": lambda: 0.5 + rng.normal(size=n),
    }[fault]()
    return EvalSet.checked(center + sd * noise, predicted(kind, center, sd, rng))


def predicted(
    kind: str, center: np.ndarray, sd: np.ndarray, rng: np.random.Generator
) -> Prediction:
    law = Distribution.normal(center, sd)
    if kind == "samples":
        return Samples(law.sample(rng, 19))
    return Quantiles(LEVELS, law.quantile(LEVELS)) if kind == "quantiles" else law


def table(prediction: Prediction) -> np.ndarray:
    return (
        prediction.sorted_samples
        if isinstance(prediction, Samples)
        else prediction.quantile(LEVELS)
    )


def score(rows: EvalSet) -> float:
    """Mean pinball loss at the levels that all kinds reach."""
    levels = LEVELS[2:-2]
    below = rows.y[:, None] - rows.predictions[0].quantile(levels)
    return float(np.where(below >= 0, levels * below, (levels - 1.0) * below).mean())


# By hand.


def shrunk(wanted: float, given: float, rows: float) -> float:
    """What k rows beyond a level say, against two that go on as given."""
    return (rows * wanted + 2.0 * given) / (rows + 2.0)


def test_levels_are_those_of_the_pit_with_few_rows_drawn_to_the_tail() -> None:
    pit = np.array([0.04, 0.2, 0.3, 0.4, 0.45, 0.6, 0.7, 0.75, 0.97])
    held = EvalSet.checked(stats.norm.ppf(pit), Distribution.normal(np.zeros(9), np.ones(9)))
    fitted = Shape(levels=[0.01, 0.1, 0.2, 0.5, 0.85, 0.999]).fit(held)
    found = [one.value for one in fitted.parameters]
    middle = shrunk(0.45, 0.5, 5.0)  # rank 5 of 9
    low = shrunk(0.2, 0.2 * middle / 0.5, 2.0)
    lowest = shrunk(0.04, 0.1 * low / 0.2, 1.0)
    high = 1.0 - shrunk(1.0 - 0.86, 0.15 * (1.0 - middle) / 0.5, 1.5)  # rank 8.5
    assert found == pytest.approx(
        [0.01 * lowest / 0.1, lowest, low, middle, high, 1.0 - 0.001 * (1.0 - high) / 0.15]
    )
    assert [one.nominal for one in fitted.parameters] == [0.01, 0.1, 0.2, 0.5, 0.85, 0.999]
    assert fitted.notes == (
        "The given tail is unchanged at 2 levels that 9 calibration rows cannot reach.",
    )
    made = fitted.apply(held).predictions[0]
    np.testing.assert_allclose(made.values[0], stats.norm.ppf(found))


def test_with_many_rows_the_levels_are_those_of_isotonic() -> None:
    held = drawn("distributions", 20_000, 0, "skew")
    mine = [one.value for one in Shape().fit(held).parameters]
    theirs = [one.value for one in Isotonic().fit(held).parameters]
    np.testing.assert_allclose(mine, theirs, rtol=0.02)


def test_columns_move_by_quantiles_of_their_own_errors() -> None:
    """Three columns at 0.25, 0.5 and 0.75; 39 rows, so that 10 lie beyond the outer two."""
    rng = child(1, "columns")
    center, wide = rng.normal(size=39), rng.uniform(0.5, 2.0, 39)
    values = center[:, None] + wide[:, None] * np.array([-1.0, 0.0, 1.5])
    y = center + 0.3 + wide * rng.normal(size=39)
    held = EvalSet.checked(y, Quantiles([0.25, 0.5, 0.75], values))
    found = [one.value for one in Shape("quantiles").fit(held).parameters]
    spread = 1.25 * wide
    unit = np.maximum(spread, 0.1 * spread.mean())
    own = [np.sort((y - values[:, k]) / unit)[rank - 1] for k, rank in enumerate((10, 20, 30))]
    place = np.array([((values[:, k] - center) / unit).mean() for k in range(3)])
    middle = own[1] * 20.0 / 22.0
    outer = [
        shrunk(place[k] + own[k], place[1] + middle + (place[k] - place[1]), 10.0) - place[k]
        for k in (0, 2)
    ]
    assert found == pytest.approx([outer[0], middle, outer[1]])
    made = Shape("quantiles").fit(held).apply(held).predictions[0]
    np.testing.assert_allclose(
        made.values, np.sort(values + unit[:, None] * np.array(found), axis=1)
    )


@pytest.mark.parametrize("near", [0.495, 0.505])
def test_a_level_beside_the_median_is_none(near: float) -> None:
    """By hand at 199 rows: its own quantile, and for two rows as far as the median moves."""
    levels = np.array([0.25, near, 0.75])
    errors = child(2, "beside the median").normal(size=199)
    table = np.tile([-1.0, 0.0, 1.0], (199, 1))
    rows = EvalSet.checked(errors, Quantiles(levels, table))
    moves = Shape("quantiles").fit(rows).apply(rows).predictions[0].values[0] - table[0]
    own = np.sort(errors)[np.rint(200 * levels).astype(int) - 1] - table[0]
    beyond = 200 * np.minimum(levels, 1 - levels)
    weight = beyond / (beyond + 2.0)
    median = np.interp(0.5, levels, weight * own)
    assert moves[1] == pytest.approx(weight[1] * own[1] + (1 - weight[1]) * median, rel=1e-9)


def test_members_beyond_all_rows_stretch_as_those_within() -> None:
    """Nine rows reach levels from 0.1 on; of 39 members the outer three go on."""
    table = np.tile(stats.norm.ppf(np.arange(1, 40) / 40.0), (9, 1))
    y = 2.0 * stats.norm.ppf(np.arange(1, 10) / 10.0)
    fitted = Shape("samples").fit(EvalSet.checked(y, Samples(table)))
    made = table[0] + table[0].std(ddof=1) * np.array([one.value for one in fitted.parameters])
    ratio = made / np.where(table[0] == 0, 1.0, table[0])
    np.testing.assert_allclose(ratio[:3], ratio[3])
    np.testing.assert_allclose(ratio[-3:], ratio[-4])
    assert 1.0 < ratio[0] < 2.1  # a chord between two quantiles lies outside of them


# What it mends, and what it leaves.


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("fault", ["t3", "skew", "narrow", "moved"])
def test_faults_of_shape_come_right_on_fresh_rows(kind: str, fault: str) -> None:
    held, fresh = drawn(kind, 4000, 2, fault), drawn(kind, 20_000, 3, fault)
    mended = Shape(kind).fit(held).apply(fresh)
    for level in (0.05, 0.25, 0.5, 0.75, 0.95):
        share = (fresh.y <= mended.predictions[0].quantile([level])[:, 0]).mean()
        assert share == pytest.approx(
            level, abs=4.0 * np.sqrt(level * (1 - level) * (1 / 4000 + 1 / 20_000)) + 1 / 4000
        )
    assert score(mended) < score(fresh)


@pytest.mark.parametrize("kind", KINDS)
def test_a_right_prediction_stays_nearly_as_it_is(kind: str) -> None:
    held, fresh = drawn(kind, 4000, 4), drawn(kind, 20_000, 5)
    assert score(Shape(kind).fit(held).apply(fresh)) < 1.001 * score(fresh)


@pytest.mark.parametrize("kind", ["samples", "quantiles"])
def test_a_second_time_nothing_is_left_to_mend(kind: str) -> None:
    """Standard errors at 0.05 of a t3 law are about 0.06 spreads at 2,000 rows."""
    held = drawn(kind, 2000, 6, "t3")
    once = Shape(kind).fit(held).apply(held)
    moves = [one.value for one in Shape(kind).fit(once).parameters]
    assert np.abs(moves).max() < 0.02


def test_distributions_become_quantiles_that_need_no_more() -> None:
    held = drawn("distributions", 2000, 6, "t3")
    once = Shape(levels=LEVELS[2:-2]).fit(held).apply(held)
    assert np.abs([one.value for one in Shape("quantiles").fit(once).parameters]).max() < 0.02


def test_few_rows_cost_less_than_the_bare_pit() -> None:
    """At 100 rows of a right prediction, over 100 tables, as was tried for the two rows."""
    loss = {"shape": 0.0, "isotonic": 0.0}
    fresh = drawn("distributions", 2000, 7)
    levels = LEVELS[2:-2]
    for seed in range(60):
        held = drawn("distributions", 100, 100 + seed)
        loss["shape"] += score(Shape(levels=levels).fit(held).apply(fresh))
        loss["isotonic"] += score(Isotonic(levels=levels).fit(held).apply(fresh))
    assert loss["shape"] < loss["isotonic"]


def test_counts_are_mended_too() -> None:
    rng = child(8, "counts")
    mean = rng.uniform(3.0, 30.0, 6000)
    y = rng.poisson(rng.gamma(mean / 2.0, 2.0)).astype(float)
    rows = EvalSet.checked(y, Distribution("poisson", {"mu": mean}))
    held, fresh = rows.take(np.arange(2000)), rows.take(np.arange(2000, 6000))
    mended = Shape().fit(held).apply(fresh)
    assert mended.predictions[0].kind == "quantiles"
    assert score(mended) < 0.99 * score(fresh)


# Laws.


@examples(60)
@given(
    st.sampled_from(KINDS),
    st.integers(0, 10_000),
    st.integers(2, 40),
    st.sampled_from(["none", "t3", "skew", "narrow", "moved"]),
)
def test_order_is_kept(kind: str, seed: int, n: int, fault: str) -> None:
    held, test = drawn(kind, n, seed, fault), drawn(kind, 20, seed + 1)
    fitted = Shape(kind).fit(held)
    made = table(fitted.apply(test).predictions[0])
    assert (np.diff(made, axis=1) >= 0).all()
    if kind == "distributions":
        levels = [one.value for one in fitted.parameters]
        assert (np.diff(levels) >= 0).all()
        assert 0 < levels[0] <= levels[-1] < 1


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("unit", [3.0, -0.5])
def test_stretching_moving_and_reflecting_y_moves_the_answer(kind: str, unit: float) -> None:
    def seen(rows: EvalSet) -> EvalSet:
        prediction = rows.predictions[0]
        if isinstance(prediction, Distribution):
            center, sd = prediction.point(), prediction.sd()
            other: Prediction = Distribution.normal(7.0 + unit * center, abs(unit) * sd)
        elif isinstance(prediction, Samples):
            other = Samples(7.0 + unit * prediction.sorted_samples)
        else:
            step = 1 if unit > 0 else -1
            other = Quantiles(LEVELS, 7.0 + unit * prediction.quantile(LEVELS)[:, ::step])
        return EvalSet.checked(7.0 + unit * rows.y, other)

    held, test = drawn(kind, 201, 9, "skew"), drawn(kind, 30, 10)
    plain = table(Shape(kind).fit(held).apply(test).predictions[0])
    other = table(Shape(kind).fit(seen(held)).apply(seen(test)).predictions[0])
    np.testing.assert_allclose(
        other, 7.0 + unit * plain[:, :: 1 if unit > 0 else -1], rtol=1e-9, atol=1e-9
    )


def test_rows_without_a_spread_move_by_the_least_unit() -> None:
    flat = Quantiles([0.25, 0.75], np.zeros((50, 2)))
    y = child(11, "flat").normal(size=50)
    made = Shape("quantiles").fit(EvalSet.checked(y, flat)).apply(EvalSet.checked(y, flat))
    np.testing.assert_allclose(
        made.predictions[0].values, np.tile(made.predictions[0].values[0], (50, 1))
    )
    assert np.ptp(made.predictions[0].values[0]) > 0.5
    mixed = np.zeros((50, 2))
    mixed[1:] = [-1.0, 1.0]
    held = EvalSet.checked(3.0 + y, Quantiles([0.25, 0.75], mixed))
    moved = Shape("quantiles").fit(held).apply(held).predictions[0].values - mixed
    np.testing.assert_allclose(moved[0], np.sort(0.1 * 0.98 * moved[1]))


def test_what_cannot_be_done_says_why() -> None:
    for rows, kind, words in (
        (drawn("distributions", 1, 0), "distributions", "at least 2 rows"),
        (EvalSet.checked([0.0, 1.0], Samples([[0.0], [1.0]])), "samples", "one sample per row"),
        (drawn("samples", 9, 0), "quantiles", "must have quantiles"),
        (drawn("samples", 9, 0), "intervals", "prediction must be"),
    ):
        with pytest.raises(HowsureError, match=words):
            Shape(kind).fit(rows)
    with pytest.raises(HowsureError, match=r"quantiles at levels .*, like the calibration rows"):
        Shape("quantiles").fit(drawn("quantiles", 9, 0)).apply(
            EvalSet.checked([0.0], Quantiles([0.5], [[0.0]]))
        )


def test_y_beyond_the_support_says_nothing_of_levels() -> None:
    """A uniform law whose rows lie outside half the time: its tails end at its ends."""
    law = Distribution("uniform", {"loc": np.zeros(40), "scale": np.ones(40)})
    y = np.r_[np.full(10, -1.0), np.linspace(0.1, 0.9, 20), np.full(10, 2.0)]
    made = Shape().fit(EvalSet.checked(y, law)).apply(EvalSet.checked(y, law)).predictions[0]
    assert (made.values >= 0).all()
    assert (made.values <= 1).all()
    assert made.values[0, 0] < 0.05
