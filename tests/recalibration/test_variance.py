"""Isotonic variance against pooling by hand and by scikit-learn, and on real tables."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow.csv
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import optimize
from sklearn.isotonic import IsotonicRegression

from generated import examples
from howsure.core.errors import HowsureError
from howsure.core.rng import child
from howsure.engine.measure import evaluate
from howsure.predictions import Distribution, EvalSet, Samples
from howsure.recalibration.scaling import SpreadScaling, VarianceScaling
from howsure.recalibration.variance import IsotonicVariance, _blocks, rising_blocks
from howsure.topics.crps import crps_samples
from howsure.topics.crps_closed import crps_normal

Find = Callable[[str], Path]


def drawn(n: int, seed: int, *, size: int = 0) -> EvalSet:
    """Variances that rank rows rightly and say nothing else: sd' = 1 + e^sd."""
    rng = child(seed, "variance")
    center, sd = rng.normal(size=n), rng.gamma(2.0, size=n) + 0.1
    y = center + sd * rng.normal(size=n)
    law = Distribution.normal(center, 1.0 + np.exp(sd / 2.0))
    return EvalSet.checked(y, Samples(law.sample(rng, size)) if size else law)


def pooled(variance: np.ndarray, square: np.ndarray, mass: np.ndarray) -> list[list[float]]:
    """Pool adjacent violators as the textbooks tell it: (rows, mean variance, mean square)."""
    blocks: list[list[float]] = []
    for place in np.unique(variance):
        here = variance == place
        rows = mass[here].sum()
        blocks.append([rows, float(place), float(mass[here] @ square[here] / rows)])
        while len(blocks) > 1 and blocks[-2][2] >= blocks[-1][2]:
            last, before = blocks.pop(), blocks.pop()
            total = last[0] + before[0]
            blocks.append(
                [total] + [(last[0] * last[k] + before[0] * before[k]) / total for k in (1, 2)]
            )
    return blocks


def joined(blocks: list[list[float]], least: float) -> list[list[float]]:
    """Blocks from the left until they are large enough; what is left over goes to the last."""
    made: list[list[list[float]]] = [[]]
    for block in blocks:
        if sum(one[0] for one in made[-1]) >= least * (1 - 1e-9) and any(
            one[2] > 0 for one in made[-1]
        ):
            made.append([])
        made[-1].append(block)
    if len(made) > 1 and sum(one[0] for one in made[-1]) < least * (1 - 1e-9):
        last = made.pop()
        made[-1] += last
    means = []
    for group in made:
        rows = sum(one[0] for one in group)
        means.append([rows, *(sum(one[0] * one[k] for one in group) / rows for k in (1, 2))])
    return means


@examples(200)
@given(
    st.lists(
        st.tuples(st.integers(1, 9), st.integers(0, 9), st.integers(1, 3)), min_size=2, max_size=80
    )
)
def test_blocks_are_those_of_pooling_by_hand(rows: list[tuple[int, int, int]]) -> None:
    variance, square, mass = (np.array(column, dtype=float) for column in zip(*rows, strict=True))
    if not square.any():
        square[0] = 1.0
    wanted = joined(pooled(variance, square, mass), min(30.0, 0.1 * mass.sum()))
    found = _blocks(variance, square, mass, mass)
    np.testing.assert_allclose(found[2], [one[0] for one in wanted])
    np.testing.assert_allclose(found[0], [one[1] for one in wanted])
    np.testing.assert_allclose(found[1], [one[2] for one in wanted])
    assert (np.diff(found[1]) >= 0).all()
    assert (np.diff(found[0]) > 0).all()


@pytest.mark.parametrize("n", [1, 2, 7, 300, 20_000])
def test_blocks_begin_where_scipys_do(n: int) -> None:
    rng = np.random.default_rng(n)
    mass = rng.exponential(size=n)
    for means in (
        rng.normal(size=n),
        np.arange(n) + 0.0,
        -np.arange(n) - 0.0,
        np.arange(n) / n + rng.normal(size=n),
    ):
        expected = optimize.isotonic_regression(means, weights=mass).blocks[:-1]
        np.testing.assert_array_equal(rising_blocks(means, mass), expected)


def test_at_the_blocks_the_map_is_that_of_scikit_learn() -> None:
    """Where a block of scikit-learn's fit has 30 rows and more it stays; its mean is the map's."""
    held = drawn(3000, 0)
    variance = held.predictions[0].sd() ** 2
    square = (held.y - held.predictions[0].point()) ** 2
    fit = IsotonicRegression().fit(variance, square).predict(variance)
    _, at = np.unique(fit, return_inverse=True)
    rows = np.bincount(at)
    given, learnt, count, _ = _blocks(variance, square, np.ones(3000), np.ones(3000))
    assert learnt @ count == pytest.approx(square.sum())
    alone = [k for k in range(len(rows)) if rows[k] >= 30 and (k == 0 or rows[k - 1] >= 30)]
    assert alone
    for block in alone:
        close = np.argmin(np.abs(given - variance[at == block].mean()))
        assert given[close] == pytest.approx(variance[at == block].mean())
        assert learnt[close] == pytest.approx(fit[at == block][0])


def test_between_blocks_linear_and_constant_beyond() -> None:
    sd = np.repeat([1.0, 2.0], 40)
    held = EvalSet.checked(
        np.tile([-1.0, 1.0], 40) * np.repeat([2.0, 6.0], 40), Distribution.normal(np.zeros(80), sd)
    )
    fitted = IsotonicVariance().fit(held)
    assert [one.value for one in fitted.parameters] == pytest.approx([2.0, 6.0])
    assert [one.name for one in fitted.parameters] == ["sd near 1", "sd near 2"]
    test = EvalSet.checked(
        np.zeros(4), Distribution.normal(np.zeros(4), [0.1, 1.0, np.sqrt(2.0), 9.0])
    )
    np.testing.assert_allclose(
        fitted.apply(test).predictions[0].sd() ** 2, [4.0, 4.0, 4.0 + 32.0 / 3.0, 36.0]
    )


def test_samples_of_one_variance_are_scaled_as_by_the_fair_ratio() -> None:
    table = np.tile([-1.0, 0.0, 1.0], (80, 1))
    held = EvalSet.checked(np.tile([-2.0, 2.0], 40), Samples(table))
    fitted = IsotonicVariance("samples").fit(held)
    made = fitted.apply(held).predictions[0]
    np.testing.assert_allclose(made.sd() ** 2 * (4.0 / 3.0), 4.0)
    table[0] = 0.0
    mended, notes = fitted.transform(EvalSet.checked(held.y, Samples(table)))
    np.testing.assert_array_equal(mended.sorted_samples[0], 0.0)
    assert notes == ("1 row without a spread: unchanged.",)


def test_blocks_of_samples_are_those_of_members_left_out_one_by_one() -> None:
    rng = child(7, "left out")
    table = rng.normal(size=(40, 4)) * rng.uniform(0.5, 3.0, (40, 1))
    y = 1.5 * rng.normal(size=40)
    pairs = []
    for row in range(40):
        for member in range(4):
            others = np.delete(table[row], member)
            center = others.mean()
            own = (table[row, member] - center) ** 2
            pairs.append((others.var(ddof=1), (y[row] - center) ** 2, own))
    variance, square, own = np.array(pairs).T
    blocks = joined(pooled(variance, square, np.full(160, 0.25)), 4.0)
    fitted = IsotonicVariance("samples").fit(EvalSet.checked(y, Samples(table)))
    np.testing.assert_allclose(fitted.given, [one[1] for one in blocks])
    order, start = np.argsort(variance), 0
    for found, (rows, place, mean) in zip(fitted.learnt, blocks, strict=True):
        inside = order[start : start + round(4 * rows)]
        ratio = mean / own[inside].mean()
        assert found == pytest.approx(place * max(1.0 + (ratio - 1.0) * 16.0 / 15.0, ratio / 4.0))
        start += len(inside)


@pytest.mark.parametrize("size", [5, 10])
def test_a_perfect_ensemble_is_not_drawn_to_its_mean_spread(size: int) -> None:
    """Fair scores of 20 tables of 1,000 rows: no gain, where the plain regression gains 4.5 %."""
    gains = []
    for seed in range(20):
        rng = child(seed, "perfect", size)
        table = rng.normal(size=(3000, size + 1))
        rows = EvalSet.checked(table[:, 0], Samples(table[:, 1:]))
        held, fresh = rows.take(np.arange(1000)), rows.take(np.arange(1000, 3000))
        made = IsotonicVariance("samples").fit(held).apply(fresh).predictions[0]
        before, after = (
            crps_samples(fresh.y, each.sorted_samples, fair=True).mean()
            for each in (fresh.predictions[0], made)
        )
        gains.append(1.0 - after / before)
    assert np.mean(gains) < 0.005


def test_ranks_alone_are_enough_on_fresh_rows() -> None:
    """The variance is any rising function of the truth: the score is nearly that of the truth."""
    held, fresh = drawn(4000, 1), drawn(20_000, 2)
    fitted, scaled = IsotonicVariance().fit(held), VarianceScaling().fit(held)
    law = fitted.apply(fresh).predictions[0]
    truth = 2.0 * np.log(fresh.predictions[0].sd() - 1.0)
    best = crps_normal(fresh.y, law.point(), truth).mean()
    mended = crps_normal(fresh.y, law.point(), law.sd()).mean()
    other = scaled.apply(fresh).predictions[0]
    beaten = crps_normal(fresh.y, other.point(), other.sd()).mean()
    assert 0 < mended - best < 0.15 * (beaten - best)
    np.testing.assert_array_equal(law.point(), fresh.predictions[0].point())
    again = IsotonicVariance().fit(fitted.apply(held)).apply(fitted.apply(fresh)).predictions[0]
    assert np.sqrt(np.mean(np.log(again.sd() / law.sd()) ** 2)) < 0.05


def test_samples_score_nearly_as_those_stretched_by_the_truth() -> None:
    held, fresh, true = drawn(4000, 1, size=30), drawn(20_000, 2, size=30), drawn(20_000, 2)
    kinds = [
        way.fit(held).apply(fresh).predictions[0]
        for way in (IsotonicVariance("samples"), SpreadScaling())
    ]
    sd = true.predictions[0].sd()
    away = fresh.predictions[0].sorted_samples - fresh.predictions[0].point()[:, None]
    factor = 2.0 * np.log(sd - 1.0) / sd
    kinds.append(Samples(fresh.predictions[0].point()[:, None] + factor[:, None] * away))
    mended, scaled, best = (
        crps_samples(fresh.y, each.sorted_samples, fair=True).mean() for each in kinds
    )
    assert mended - best < 0.15 * (scaled - best)
    np.testing.assert_allclose(kinds[0].point(), fresh.predictions[0].point(), atol=1e-12)


@examples(50)
@given(st.integers(0, 10_000), st.integers(2, 60))
def test_a_greater_variance_stays_greater(seed: int, n: int) -> None:
    held, test = drawn(n, seed), drawn(50, seed + 1)
    given = test.predictions[0].sd()
    made = IsotonicVariance().fit(held).apply(test).predictions[0].sd()
    made = made[np.argsort(given)]
    assert (np.diff(made) >= -1e-12 * made[1:]).all()
    assert (made > 0).all()


@pytest.mark.parametrize("unit", [3.0, -0.1])
def test_units_of_y_are_free(unit: float) -> None:
    held, test = drawn(300, 3), drawn(30, 4)

    def seen(rows: EvalSet) -> EvalSet:
        law = rows.predictions[0]
        return EvalSet.checked(
            2.0 + unit * rows.y,
            Distribution.normal(2.0 + unit * law.point(), abs(unit) * law.sd()),
        )

    plain = IsotonicVariance().fit(held).apply(test).predictions[0]
    other = IsotonicVariance().fit(seen(held)).apply(seen(test)).predictions[0]
    np.testing.assert_allclose(other.sd(), abs(unit) * plain.sd(), rtol=1e-9)


def test_equal_variances_are_scaled_and_bad_rows_refused() -> None:
    y = child(5, "equal").normal(size=200)
    held = EvalSet.checked(y, Distribution.normal(np.zeros(200), np.full(200, 3.0)))
    fitted, scaled = IsotonicVariance().fit(held), VarianceScaling().fit(held)
    np.testing.assert_allclose(
        fitted.apply(held).predictions[0].sd(), scaled.apply(held).predictions[0].sd()
    )
    for rows, words in (
        (EvalSet.checked([1.0], Distribution.normal([0.0], [1.0])), "at least 2 rows"),
        (
            EvalSet.checked([0.0] * 9, Distribution.normal([0.0] * 9, 1.0)),
            "all errors in the calibration rows are zero",
        ),
        (EvalSet.checked([0.0] * 2, Distribution("poisson", {"mu": [1.0, 2.0]})), "use 'shape'"),
        (EvalSet.checked([0.0] * 2, Distribution("cauchy", {"loc": [1.0, 2.0]})), "no mean"),
    ):
        with pytest.raises(HowsureError, match=words):
            IsotonicVariance().fit(rows)


def test_half_the_rows_without_an_error_leave_a_variance_above_zero() -> None:
    sd = np.linspace(1.0, 2.0, 400)
    y = np.where(np.arange(400) < 200, 0.0, sd)
    held = EvalSet.checked(y, Distribution.normal(np.zeros(400), sd))
    assert (IsotonicVariance().fit(held).apply(held).predictions[0].sd() > 0).all()


def test_real_molecules_whose_uncertainties_only_rank(data_dir: Find) -> None:
    """Perovskites by linear regression: variances that no factor and no power can mend."""
    folder = data_dir("preds_chem_pernot")
    table = pyarrow.csv.read_csv(folder / "PAL2022__Perovskite_LR_Test_uncal.csv.gz")
    error, sd = (table[name].to_numpy() for name in ("E", "uE"))
    rows = EvalSet.checked(error, Distribution.normal(np.zeros(len(sd)), sd))
    order = child(0, "halves").permutation(rows.n)
    held, fresh = rows.take(order[: rows.n // 2]), rows.take(order[rows.n // 2 :])

    def told(test: EvalSet) -> dict[str, float]:
        records = evaluate(test, metrics=["ence", "crps"]).records
        return {one.metric: one.value for one in records}

    before = told(fresh)
    scaled = told(VarianceScaling().fit(held).apply(fresh))
    mended = told(IsotonicVariance().fit(held).apply(fresh))
    assert mended["ence"] < 0.7 * scaled["ence"] < before["ence"]
    assert mended["crps"] < scaled["crps"] < before["crps"]
