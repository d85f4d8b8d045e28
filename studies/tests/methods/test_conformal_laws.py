"""Split conformal methods against the exact laws of their coverage."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special, stats
from sklearn.linear_model import BayesianRidge
from sklearn.neighbors import KNeighborsRegressor
from sklearn.tree import DecisionTreeRegressor

from generated import examples
from howsure.conformal import conformal_rank, conformal_threshold, pac_rank, rows_needed
from howsure.conformal.adapting import Mondrian, UniformBins
from howsure.core.rng import child
from howsure_studies.methods.conformal.inductive import InductiveConformal, SplitConformal
from howsure_studies.methods.conformal.normalized import NormalizedConformal
from howsure_studies.methods.conformal.quantile import Conformalized
from howsure_studies.methods.conformal.weighted import (
    CovariateShift,
    Localized,
    density_ratio,
    weighted_thresholds,
)
from howsure_studies.methods.linear import LinearT


def zero(x: np.ndarray) -> np.ndarray:
    return np.zeros(len(x))


def scale(x: np.ndarray) -> np.ndarray:
    return 0.5 + x[:, 0]


def slanted(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return -0.3 - x[:, 0], 0.8 + x[:, 0]


NEAREST = KNeighborsRegressor(2)
TREE = DecisionTreeRegressor(max_depth=2)
METHODS: dict[str, Callable[..., InductiveConformal]] = {
    "split": lambda **options: SplitConformal(zero, **options),
    "normalised": lambda **options: NormalizedConformal(zero, scale, **options),
    "moved": lambda **options: Conformalized(slanted, **options),
    "stretched": lambda **options: Conformalized(slanted, move="scale", **options),
}


def mass(method: InductiveConformal, n: int, rng: np.random.Generator) -> np.ndarray:
    """True coverage of a method calibrated on n rows, at each x of a fixed set, shape (m, c).

    The noise is normal with an sd of 0.2 + x; x is uniform.
    """
    x = rng.uniform(size=(n, 1))
    y = (0.2 + x[:, 0]) * rng.normal(size=n)
    grid = (np.arange(200)[:, None] + 0.5) / 200
    prediction = method.fit(x, y, rng).predict(grid).outcome
    sd = 0.2 + grid[:, 0]
    ends = [prediction.interval(coverage) for coverage in method.coverages]
    return np.stack(
        [special.ndtr(upper / sd) - special.ndtr(lower / sd) for lower, upper in ends], axis=1
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("rank", ["conformal", "pac"])
def test_coverage_given_the_calibration_rows_follows_the_beta_law(name: str, rank: str) -> None:
    """The mean mass over x is Beta(r, n + 1 − r); its rank test is uniform. Row 23 for PAC."""
    n, trials = 60, 400
    method = METHODS[name](coverages=(0.8, 0.9), rank=rank, delta=0.1)
    rng = child(0, "law", name, rank)
    covered = np.array([mass(method, n, rng).mean(axis=0) for _ in range(trials)])
    for column, coverage in enumerate(method.coverages):
        r = conformal_rank(n, coverage, method.rank, 0.1)
        assert stats.kstest(covered[:, column], stats.beta(r, n + 1 - r).cdf).pvalue > 0.01
        wrong = stats.beta(r - 2, n + 3 - r)
        assert stats.kstest(covered[:, column], wrong.cdf).pvalue < 1e-4
        if rank == "pac":
            enough = float((covered[:, column] >= coverage).mean())
            assert enough >= 0.9 - 3 * math.sqrt(0.09 / trials)


@pytest.mark.slow
@pytest.mark.parametrize("name", METHODS)
def test_rows_covered_in_each_group_follow_the_beta_binomial_law(name: str) -> None:
    """Row 22: with n_b calibration rows, coverage has the mean ⌈(n_b + 1)(1 − α)⌉/(n_b + 1)."""
    n, m, trials = 36, 20, 1500
    method = METHODS[name](coverages=(0.8,), adapt=Mondrian(lambda x: x[:, 0] > 0.5))
    rng = child(1, "groups", name)
    counts = np.zeros((trials, 2), dtype=int)
    x = np.r_[np.full(n // 3, 0.8), np.full(n - n // 3, 0.1)][:, None]
    new = np.r_[np.full(m, 0.8), np.full(m, 0.1)][:, None]
    for trial in range(trials):
        y, later = (scale(rows) * rng.standard_t(4, size=len(rows)) for rows in (x, new))
        lower, upper = method.fit(x, y, rng).predict(new).outcome.interval(0.8)
        inside = (lower <= later) & (later <= upper)
        counts[trial] = inside[:m].sum(), inside[m:].sum()
    for column, rows in ((0, n // 3), (1, n - n // 3)):
        r = math.ceil(0.8 * (rows + 1))
        law = stats.betabinom(m, r, rows + 1 - r)
        seen = counts[:, column].mean() / m
        assert abs(seen - r / (rows + 1)) < 3.5 * law.std() / m / math.sqrt(trials)
        cells = np.array([law.pmf(range(m - 3)).sum(), *law.pmf([m - 3, m - 2, m - 1, m])])
        found = np.bincount(np.clip(counts[:, column] - (m - 4), 0, 4), minlength=5)
        assert stats.chisquare(found, cells * trials).pvalue > 0.005


@pytest.mark.parametrize(
    "make",
    [
        lambda: SplitConformal(NEAREST, calibration=19, coverages=(0.8,)),
        lambda: NormalizedConformal(NEAREST, TREE, calibration=19, coverages=(0.8,)),
        lambda: NormalizedConformal(
            NEAREST, TREE, calibration=19, coverages=(0.8,), errors="training", floor=1e-9
        ),
        lambda: NormalizedConformal(
            NEAREST, TREE, calibration=19, coverages=(0.8,), errors="split"
        ),
        lambda: NormalizedConformal(BayesianRidge(), calibration=19, coverages=(0.8,)),
        lambda: Conformalized(LinearT(), calibration=19, coverages=(0.8,)),
        lambda: Conformalized(LinearT(), "scale", calibration=19, coverages=(0.8,)),
    ],
)
@pytest.mark.rate
def test_rows_that_train_do_not_calibrate(make: Callable[[], InductiveConformal]) -> None:
    """A model that knows its training rows by heart: 16 of 19 + 1 all the same."""
    rng, trials, method = child(10, "trained"), 250, make()
    found = []
    for _ in range(trials):
        x, new = rng.uniform(size=(49, 1)), rng.uniform(size=(40, 1))
        y, later = (scale(rows) * (1 + rng.normal(size=len(rows))) for rows in (x, new))
        lower, upper = method.fit(x, y, rng).predict(new).outcome.interval(0.8)
        found.append(((lower <= later) & (later <= upper)).mean())
    assert abs(np.mean(found) - 0.8) < 3.5 * np.std(found) / math.sqrt(trials)


@pytest.mark.parametrize("n", [10**6, 10**12, 2**53 - 1])
def test_ranks_among_huge_numbers_of_rows(n: int) -> None:
    """Whole-number arithmetic for the first rule; the normal limit of the binomial for PAC."""
    assert conformal_rank(n, 0.75) == -(-3 * (n + 1) // 4)
    assert conformal_rank(n, 0.75, "paper") == 3 * n // 4 + 1
    beyond = (pac_rank(n, 0.9) - 0.9 * n) / math.sqrt(0.09 * n)
    assert beyond == pytest.approx(stats.norm.isf(0.05), abs=0.01)


def test_pac_ranks_are_the_binomial_bound() -> None:
    """The most misses k with P(X ≤ k) ≤ δ, X binomial with n trials at rate α: rank n − k."""
    for n in [*range(1, 90), 500, 1280]:
        for coverage in (0.5, 0.8, 0.9, 0.95):
            for delta in (0.01, 0.05, 0.3):
                cdf = stats.binom(n, 1 - coverage).cdf(np.arange(n))
                misses = int((cdf <= delta).sum()) - 1
                expected = n - misses if misses >= 0 else n + 1
                assert pac_rank(n, coverage, delta) == expected, (n, coverage, delta)
    for coverage in (0.5, 0.8, 0.9, 0.99):
        first = next(n for n in range(1, 500) if pac_rank(n, coverage) <= n)
        assert rows_needed(coverage, "pac") == first


def test_groups_have_their_own_thresholds() -> None:
    rng = child(2, "groups")
    x = rng.uniform(size=(300, 1))
    y = scale(x) * rng.normal(size=300)
    by_forecast = SplitConformal(scale, coverages=(0.8,), adapt=Mondrian(UniformBins(bins=3)))
    fitted = by_forecast.fit(x, y, rng)
    edges = np.quantile(scale(x), [1 / 3, 2 / 3])
    for bin_, part in enumerate((x < 0.33, (x > 0.34) & (x < 0.65), x > 0.67)):
        own = np.searchsorted(edges, scale(x), side="right") == bin_
        expected = conformal_threshold(np.abs(y - scale(x))[own], 0.8).value
        lower, upper = fitted.predict(x[part][:, None]).outcome.interval(0.8)
        np.testing.assert_allclose((upper - lower) / 2, expected)


def test_labels_may_be_text_and_new_labels_are_infinite_or_refused() -> None:
    rng = child(3, "labels")
    x = np.array([0.0, 1.0] * 20)[:, None]
    y = rng.normal(size=40)

    def names(rows: np.ndarray) -> np.ndarray:
        return np.array(["none", "some", "more"])[rows[:, 0].astype(int)]

    prediction = SplitConformal(zero, adapt=Mondrian(names)).fit(x, y, rng).predict([[0.0], [2.0]])
    lower, upper = prediction.outcome.interval(0.8)
    assert np.isfinite([lower[0], upper[0]]).all()
    assert (lower[1], upper[1]) == (-math.inf, math.inf)
    strict = SplitConformal(zero, coverages=(0.8,), adapt=Mondrian(names), too_few="error")
    with pytest.raises(ValueError, match="no calibration row is in the group 'more'"):
        strict.fit(x, y, rng).predict([[2.0]])


@pytest.mark.parametrize("coverage", [0.5, 0.7, 0.8, 0.9, 0.95])
def test_equal_weights_give_the_conformal_rank(coverage: float) -> None:
    rng = child(4, "equal")
    for n in range(1, 120):
        scores = rng.normal(size=n)
        found = weighted_thresholds(scores, np.full(n, 0.3), [0.3], coverage)
        assert found[0] == conformal_threshold(scores, coverage).value


@examples(150)
@given(
    st.lists(st.tuples(st.integers(-5, 5), st.integers(0, 4)), min_size=1, max_size=12),
    st.lists(st.integers(0, 20), min_size=1, max_size=4),
    st.sampled_from([0.3, 0.5, 0.8, 0.95]),
)
def test_weighted_thresholds_are_the_definition(
    rows: list[tuple[int, int]], new: list[int], coverage: float
) -> None:
    scores, weights = np.array(rows, dtype=float).T
    found = weighted_thresholds(scores, weights, np.array(new, dtype=float), coverage)
    for beside, threshold in zip(new, found, strict=True):
        total = weights.sum() + beside
        fits = [
            s for s in sorted(set(scores)) if weights[scores <= s].sum() >= coverage * total - 1e-9
        ]
        assert threshold == (fits[0] if fits and total > 0 else math.inf)


def shifted_coverage(method: SplitConformal, n: int, trials: int, seed: int) -> tuple[float, float]:
    """Mean mass of intervals at new x ~ N(1, 1), calibrated at x ~ N(0, 1), and its error."""
    rng = child(seed, "shift")
    found = []
    for _ in range(trials):
        x = rng.normal(size=(n, 1))
        y = np.exp(x[:, 0] / 2) * rng.normal(size=n)
        new = rng.normal(1.0, size=(50, 1))
        lower, upper = method.fit(x, y, rng).predict(new).outcome.interval(0.8)
        sd = np.exp(new[:, 0] / 2)
        found.append((special.ndtr(upper / sd) - special.ndtr(lower / sd)).mean())
    return float(np.mean(found)), float(np.std(found) / math.sqrt(trials))


def test_weights_restore_coverage_under_covariate_shift() -> None:
    plain = shifted_coverage(SplitConformal(zero, coverages=(0.8,)), 80, 300, 5)
    assert plain[0] < 0.73
    ratio = CovariateShift(lambda x: np.exp(x[:, 0]))
    mean, error = shifted_coverage(SplitConformal(zero, coverages=(0.8,), adapt=ratio), 80, 600, 6)
    assert mean > 0.8 - 3 * error
    assert mean < 0.86  # the bound above: the expected largest share of weight in 81 rows
    rng = child(7, "learnt")
    learnt = density_ratio(rng.normal(size=(4000, 1)), rng.normal(1.0, size=(2000, 1)))
    grid = np.linspace(-2, 3, 11)[:, None]
    np.testing.assert_allclose(np.log(learnt(grid)), grid[:, 0] - 0.5, atol=0.25)


def test_local_weights_are_the_definition() -> None:
    rng = child(8, "local")
    x, new = rng.normal(size=(70, 2)), rng.normal(size=(9, 2))
    y = rng.normal(size=70)
    method = SplitConformal(zero, coverages=(0.5, 0.8), adapt=Localized(0.7))
    fitted = method.fit(x, y, rng)
    near = fitted.thresholds
    centers, unit = near._centers(new), x.std(axis=0) * 0.7  # type: ignore[attr-defined]
    for row, center in enumerate(centers):
        weights = stats.norm.pdf((x - center) / unit).prod(axis=1)
        beside = stats.norm.pdf((new[row] - center) / unit).prod()
        for column, coverage in enumerate(method.coverages):
            expected = weighted_thresholds(np.abs(y), weights, [beside], coverage)[0]
            assert near.at(new)[row, column] == pytest.approx(expected, rel=1e-12)
    assert np.array_equal(near.at(new[::-1])[::-1], near.at(new))
    spread = (centers - new) / unit
    assert 0.3 < spread.std() < 2


def test_randomised_local_weights_cover_on_average_and_follow_x() -> None:
    method = SplitConformal(zero, coverages=(0.8,), adapt=Localized(0.4))
    rng = child(9, "average")
    found = np.stack([mass(method, 80, rng)[:, 0] for _ in range(500)])
    per_trial = found.mean(axis=1)
    assert per_trial.mean() > 0.8 - 3 * per_trial.std() / math.sqrt(500)
    assert per_trial.mean() < 0.88
    plain = SplitConformal(zero, coverages=(0.8,))
    fixed = np.stack([mass(plain, 80, rng)[:, 0] for _ in range(200)])
    gap = np.abs(found.mean(axis=0) - found.mean()).max()
    assert gap < 0.6 * np.abs(fixed.mean(axis=0) - fixed.mean()).max()
