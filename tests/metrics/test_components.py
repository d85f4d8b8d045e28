"""Components of the PIT against integrals, brute force and simulation."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate, special, stats

from generated import examples
from howsure.core.errors import HowsureError
from howsure.core.rng import child
from howsure.engine.measure import evaluate
from howsure.engine.view import View
from howsure.predictions import Distribution, EvalSet, Intervals, Quantiles, Samples
from howsure.stats.ecdf import cell_polynomials, legendre
from howsure.topics.calibration import shape
from howsure.topics.calibration.components import (
    DISTORTION,
    Components,
    Right,
    miss_imbalance,
    over_cells,
    over_jumps,
    scale_of,
    shift_of,
    width_rank,
    width_response,
)
from howsure.topics.calibration.shape import _outcomes

NODES, WEIGHTS = np.polynomial.legendre.leggauss(60)
UNIT, HALF = (NODES + 1.0) / 2.0, WEIGHTS / 2.0
PARTS = ("bias", "spread", "skew", "tails")

Maker = Callable[[np.random.Generator, int], EvalSet]


# Polynomials


def test_legendre_polynomials_are_orthonormal() -> None:
    phi = legendre(UNIT)
    np.testing.assert_allclose((phi * HALF) @ phi.T, np.eye(4), atol=1e-12)
    np.testing.assert_allclose(phi @ HALF, 0.0, atol=1e-12)
    for order in range(1, 5):
        plain = math.sqrt(2 * order + 1) * special.eval_sh_legendre(order, UNIT)
        np.testing.assert_allclose(phi[order - 1], plain, atol=1e-12)


SHARES = st.lists(st.floats(0.02, 1.0), min_size=2, max_size=9).map(lambda s: np.array(s) / sum(s))


@examples(80)
@given(share=SHARES)
def test_cell_polynomials_are_those_of_gram_and_schmidt(share: np.ndarray) -> None:
    phi = cell_polynomials(share)
    assert phi.shape == (min(4, len(share) - 1), len(share))
    np.testing.assert_allclose((phi * share) @ phi.T, np.eye(len(phi)), atol=1e-7)
    np.testing.assert_allclose(phi @ share, 0.0, atol=1e-7)
    middle = np.cumsum(share) - share / 2
    basis = [np.ones(len(share))]
    for order, got in enumerate(phi, start=1):
        left = middle**order
        for _ in range(2):  # twice is enough
            for known in basis:
                left = left - (share * left) @ known * known
        left /= math.sqrt((share * left) @ left)
        np.testing.assert_allclose(got, left, atol=1e-4)
        basis.append(left)


def test_many_equal_cells_are_legendre() -> None:
    middle = (np.arange(5000) + 0.5) / 5000
    np.testing.assert_allclose(
        cell_polynomials(np.full(5000, 1 / 5000)), legendre(middle), atol=1e-4
    )


@examples(60)
@given(a=st.floats(0.0, 1.0), b=st.floats(0.0, 1.0))
def test_jumps_take_the_mean_of_polynomials(a: float, b: float) -> None:
    low, high = min(a, b), max(a, b)
    got = over_jumps(np.array([[low], [high]]))[:, 0]
    np.testing.assert_allclose(got, legendre(low + (high - low) * UNIT) @ HALF, atol=1e-6)


@examples(60)
@given(share=SHARES, a=st.floats(0.0, 1.0), b=st.floats(0.0, 1.0))
def test_jumps_over_cells_take_the_mean_of_cells(share: np.ndarray, a: float, b: float) -> None:
    low, high = min(a, b), max(a, b)
    table = cell_polynomials(share)
    got = over_cells(table, share, np.array([[low], [high]]))[:, 0]
    edges = np.r_[0.0, np.cumsum(share)]
    lap = np.clip(np.minimum(edges[1:], high) - np.maximum(edges[:-1], low), 0.0, None)
    if high - low > 1e-6:
        np.testing.assert_allclose(got, table @ lap / lap.sum(), atol=1e-6)
    else:
        assert any(np.allclose(got, column) for column in table.T)


def test_the_outermost_values_lie_in_the_outermost_cells() -> None:
    share = np.full(6, 1 / 6)
    table = cell_polynomials(share)
    got = over_cells(table, share, np.array([[0.0, 1.0], [0.0, 1.0]]))
    np.testing.assert_allclose(got, table[:, [0, -1]])


@pytest.mark.parametrize("shift", [-2.0, -0.3, 0.0, 0.05, 1.5])
def test_shift_of_inverts_the_mean_of_the_first(shift: float) -> None:
    first = normal_mean(0, shift, 1.0)
    assert shift_of(first) == pytest.approx(shift, abs=1e-9)


@pytest.mark.parametrize("scale", [0.1, 0.5, 1.0, 1.3, 4.0])
def test_scale_of_inverts_the_mean_of_the_second(scale: float) -> None:
    assert scale_of(normal_mean(1, 0.0, scale)) == pytest.approx(scale, rel=1e-8)


def normal_mean(order: int, shift: float, scale: float) -> float:
    """E φ(Φ(scale Z + shift)) by quadrature."""

    def integrand(z: float) -> float:
        u = np.atleast_1d(special.ndtr(scale * z + shift))
        return float(legendre(u)[order, 0] * stats.norm.pdf(z))

    return float(integrate.quad(integrand, -9, 9, epsabs=1e-12, epsrel=1e-12, limit=300)[0])


def test_distortion_is_the_largest_integral() -> None:
    grid = np.linspace(0.0, 1.0, 200_001)
    for order, unit in zip((2, 3), DISTORTION, strict=True):
        reached = integrate.cumulative_trapezoid(legendre(grid)[order], grid, initial=0.0)
        assert np.abs(reached).max() == pytest.approx(unit, abs=1e-7)


@pytest.mark.parametrize("mu", [0.01, 0.3, 3.0, 30.0, 1000.0])
def test_outcomes_of_counts_have_their_moments(mu: float) -> None:
    """Against the sum over all counts; skipped values of wide laws leave half a percent."""
    law = Distribution("poisson", {"mu": np.array([mu])})
    ends, shares = _outcomes(law)
    values = over_jumps(ends.reshape(2, -1)).reshape(-1, *shares.shape)
    counts = np.arange(int(mu + 12 * mu**0.5 + 20))
    cdf = stats.poisson.cdf(counts, mu)
    each = over_jumps(np.stack([np.r_[0.0, cdf[:-1]], cdf]))
    true = (each * stats.poisson.pmf(counts, mu)) @ each.T
    assert shares.sum() == pytest.approx(1.0)
    np.testing.assert_allclose(Right(values, shares).covariance(), true, atol=6e-3)
    np.testing.assert_allclose((values * shares).sum(axis=(1, 2)), 0.0, atol=6e-3)


# Levels


def place_and_size(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
    return rng.normal(size=n), rng.uniform(0.5, 2.0, n)


def normal(rng: np.random.Generator, n: int, sd: float = 1.0, bias: float = 0.0) -> EvalSet:
    mean, size = place_and_size(rng, n)
    return EvalSet.checked(
        mean + size * (bias + rng.normal(size=n)), Distribution.normal(mean, sd * size)
    )


def ensemble(members: int) -> Maker:
    def make(rng: np.random.Generator, n: int) -> EvalSet:
        mean, size = place_and_size(rng, n)
        drawn = mean[:, None] + size[:, None] * rng.normal(size=(n, members + 1))
        return EvalSet.checked(drawn[:, 0], Samples(drawn[:, 1:]))

    return make


def poisson(low: float, high: float) -> Maker:
    def make(rng: np.random.Generator, n: int) -> EvalSet:
        mu = np.exp(rng.uniform(math.log(low), math.log(high), n))
        return EvalSet.checked(rng.poisson(mu).astype(float), Distribution("poisson", {"mu": mu}))

    return make


def poisson_samples(rng: np.random.Generator, n: int, mu: float = 1.0) -> EvalSet:
    drawn = rng.poisson(mu, (n, 21)).astype(float)
    return EvalSet.checked(drawn[:, 0], Samples(drawn[:, 1:]))


def table_of(levels: list[float]) -> Maker:
    def make(rng: np.random.Generator, n: int) -> EvalSet:
        mean, size = place_and_size(rng, n)
        values = mean[:, None] + size[:, None] * special.ndtri(levels)
        return EvalSet.checked(mean + size * rng.normal(size=n), Quantiles(levels, values))

    return make


def important(rng: np.random.Generator, n: int) -> EvalSet:
    held = normal(rng, n)
    weights = rng.exponential(size=n)
    return EvalSet.checked(held.y, held.predictions, weights=weights, weights_kind="importance")


def clustered(rng: np.random.Generator, n: int) -> EvalSet:
    """Errors share half their variance within 50 clusters."""
    mean, size = place_and_size(rng, n)
    cluster = np.arange(n) % 50
    z = math.sqrt(0.5) * (rng.normal(size=50)[cluster] + rng.normal(size=n))
    return EvalSet.checked(mean + size * z, Distribution.normal(mean, size), cluster=cluster)


def student(rng: np.random.Generator, n: int, sd: float = 1.0, bias: float = 0.0) -> EvalSet:
    return EvalSet.checked(
        bias + rng.standard_t(3, n), Distribution.from_scipy(stats.t(3, scale=sd), n)
    )


PERFECT: dict[str, Maker] = {
    "normal": normal,
    "student": student,
    "5 members": ensemble(5),
    "10 members": ensemble(10),
    "50 members": ensemble(50),
    "poisson": poisson(0.4, 20.0),
    "poisson of mean 3": poisson(3.0, 3.0001),
    "poisson samples": poisson_samples,
    "3 levels": table_of([0.1, 0.5, 0.9]),
    "5 levels": table_of([0.05, 0.25, 0.5, 0.75, 0.95]),
    "importance": important,
    "clusters": clustered,
}


def found(held: EvalSet) -> Components:
    made = View(held).get("components")
    assert isinstance(made, Components)
    return made


def p_values(made: Components) -> list[float]:
    return [getattr(made, part).p for part in PARTS]


def values(made: Components) -> list[float]:
    return [getattr(made, part).value for part in PARTS]


@pytest.mark.parametrize("n", [30, 300])
@pytest.mark.parametrize("kind", PERFECT)
@pytest.mark.rate
def test_a_right_model_is_rejected_as_often_as_stated(kind: str, n: int) -> None:
    """Each p-value below .05 in at most 5 % of 200 tables, and four binomial errors."""
    rng = child(0, "components", kind, n)
    made = np.array([p_values(found(PERFECT[kind](rng, n))) for _ in range(200)])
    answered = ~np.isnan(made)
    assert answered[:, :2].mean() > 0.9
    for level in (0.05, 0.01):
        rejected = ((made < level) & answered).mean(axis=0)
        most = level + 4.0 * math.sqrt(level * (1.0 - level) / 200)
        assert (rejected <= most).all(), (level, rejected)
    if n == 300:  # and they do reject: not so small that nothing is ever found
        assert (made[:, 0] < 0.2).mean() > 0.08


# Faults


def repeated(make: Callable[[np.random.Generator], EvalSet], name: str, times: int = 60) -> tuple:
    rng = child(0, "components faults", name)
    made = [found(make(rng)) for _ in range(times)]
    return np.array([p_values(each) for each in made]), np.array([values(each) for each in made])


def few(rejected: np.ndarray, times: int = 60) -> None:
    """No more than 5 % and four errors."""
    assert (rejected < 0.05).mean() <= 0.05 + 4.0 * math.sqrt(0.05 * 0.95 / times)


@pytest.mark.slow
@pytest.mark.parametrize("maker", [normal, student])
@pytest.mark.parametrize(("sd", "bias"), [(0.7, 0.0), (1.0, 0.5), (0.7, 0.5)])
def test_spread_and_bias_are_told_apart(maker: Callable, sd: float, bias: float) -> None:
    p, value = repeated(
        lambda rng: maker(rng, 1000, sd=sd, bias=bias), f"{maker.__name__} {sd} {bias}"
    )
    low, high = special.ndtr([-1.0, 1.0])
    unit = (stats.t(3).ppf(high) - stats.t(3).ppf(low)) / 2 if maker is student else 1.0
    error = value.std(axis=0) / math.sqrt(len(value))
    assert abs(value[:, 0].mean() - bias / sd / unit) < 4 * error[0] + 0.01
    assert abs(value[:, 1].mean() - 1 / sd) < 4 * error[1] + 0.01
    for place, faulty in enumerate([bias > 0, sd < 1, False, False]):
        if faulty:
            assert (p[:, place] < 0.001).all()
        else:
            few(p[:, place])


@pytest.mark.slow
def test_a_narrow_ensemble_of_a_skewed_law_is_narrow_and_not_skewed() -> None:
    def make(rng: np.random.Generator) -> EvalSet:
        drawn = rng.gamma(4.0, size=(1000, 21)) - 4.0
        return EvalSet.checked(drawn[:, 0], Samples(0.7 * drawn[:, 1:]))

    p, value = repeated(make, "gamma ensemble")
    assert value[:, 1].mean() == pytest.approx(1 / 0.7, abs=0.05)
    assert (p[:, 1] < 0.001).all()
    few(p[:, 2])
    few(p[:, 3])


def test_heavy_tails_are_found_where_they_are() -> None:
    def make(rng: np.random.Generator) -> EvalSet:
        return EvalSet.checked(
            rng.standard_t(3, 1000) / math.sqrt(3), Distribution.normal(np.zeros(1000), 1.0)
        )

    p, value = repeated(make, "heavy", 40)
    assert (value[:, 3] > 0).all()
    assert (p[:, 3] < 0.01).all()
    few(p[:, 2], 40)


def test_skew_is_found_on_its_side() -> None:
    def make(rng: np.random.Generator, side: float = 1.0) -> EvalSet:
        y = side * (rng.gamma(4.0, size=1000) - 4.0) / 2.0
        return EvalSet.checked(y, Distribution.normal(np.zeros(1000), 1.0))

    p, value = repeated(make, "gamma", 40)
    assert (value[:, 2] > 0).all()
    assert (p[:, 2] < 0.01).all()
    assert found(make(child(0, "left"), -1.0)).skew.value < 0


def test_skew_is_the_largest_shift_of_a_stated_probability() -> None:
    """Against the distance of the PIT's distribution from uniform, where φ_3 alone is at work."""
    rng = child(0, "distortion")
    size = 0.3
    u = rng.random(400_000)
    keep = rng.random(400_000) < (1 + size * legendre(u)[2]) / (1 + size * math.sqrt(7.0))
    pit = u[keep]
    held = EvalSet.checked(
        special.ndtri(pit), Distribution.normal(np.zeros(len(pit)), np.ones(len(pit)))
    )
    made = found(held)
    grid = np.linspace(0.0, 1.0, 1001)
    gap = np.searchsorted(np.sort(pit), grid) / len(pit) - grid
    assert abs(gap).max() == pytest.approx(size * DISTORTION[0], abs=0.005)
    assert made.skew.value == pytest.approx(size * DISTORTION[0], rel=0.1)


@pytest.mark.parametrize("sd", [1e-3, 1e-2, 0.1, 10.0, 100.0, 1000.0])
@pytest.mark.parametrize("bias", [0.0, 3.0])
def test_spreads_that_are_wrong_by_orders_of_magnitude_are_measured(sd: float, bias: float) -> None:
    made = found(normal(child(0, "orders", sd, bias), 500, sd=sd, bias=bias))
    assert made.spread.value * sd == pytest.approx(1.0, rel=0.15)
    assert made.spread.p < 1e-6
    assert made.bias.value * sd == pytest.approx(bias, abs=0.25)
    assert min(made.skew.p, made.tails.p) > 0.001


def test_no_outer_shares_are_shown_of_a_right_model() -> None:
    """Of counts too, whose PIT jumps over the outer tenth: nothing there departs clearly."""
    for maker in (normal, poisson(0.5, 3.0), poisson_samples):
        made = found(maker(child(0, "outer"), 20_000))
        assert (made.tails.details, made.skew.details) == ({}, {})


def test_outer_shares_count_whole_units_of_rows() -> None:
    """A row stated 25 times over says no more than it does once."""
    held = student(child(0, "outer units"), 60)
    rows = np.repeat(np.arange(60), 25)
    alone = found(held.take(rows))
    units = found(EvalSet.checked(held.y[rows], held.take(rows).predictions, cluster=rows))
    assert alone.tails.details or alone.skew.details
    assert (units.tails.details, units.skew.details) == ({}, {})


# Weights, order, parts


@pytest.mark.parametrize(
    "maker", [normal, ensemble(10), poisson_samples, poisson(0.3, 2.0), table_of([0.05, 0.5, 0.95])]
)
def test_frequency_weights_are_repetition(maker: Maker) -> None:
    rng = child(0, "repetition")
    held = maker(rng, 60)
    counts = rng.integers(1, 4, 60)
    once = found(EvalSet.checked(held.y, held.predictions, weights=counts))
    often = found(held.take(rng.permutation(np.repeat(np.arange(60), counts))))
    np.testing.assert_allclose(values(once), values(often), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(p_values(once), p_values(often), rtol=1e-7)
    for part in ("skew", "tails"):
        told, again = (getattr(made, part).details for made in (once, often))
        assert told == pytest.approx(again)


def test_importance_weights_alike_change_nothing() -> None:
    held = normal(child(0, "alike"), 200)
    same = EvalSet.checked(
        held.y, held.predictions, weights=np.full(200, 0.3), weights_kind="importance"
    )
    np.testing.assert_allclose(values(found(held)), values(found(same)), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(p_values(found(held)), p_values(found(same)), rtol=0.05)


@pytest.mark.parametrize("maker", [normal, ensemble(5), poisson_samples])
def test_large_tables_are_fitted_on_a_part(maker: Maker, monkeypatch: pytest.MonkeyPatch) -> None:
    """Shift and scale of a part, carried on to all rows, are those of all rows: errors are 1/√n."""
    held = maker(child(0, "part"), 6000)
    whole = values(found(held))
    monkeypatch.setattr(shape, "MAX_ROWS_OF_FIT", 3000)
    part = values(found(held))
    np.testing.assert_allclose(part, whole, atol=0.3 / math.sqrt(6000))


def test_rare_ties_in_a_part_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether y ties members is decided once, on all rows."""
    rng = child(0, "rare ties")
    drawn = rng.normal(size=(4000, 10))
    y = rng.normal(size=4000)
    y[:41] = drawn[:41, 0]  # just over one percent of all rows
    monkeypatch.setattr(shape, "MAX_ROWS_OF_FIT", 300)
    for seed in range(6):
        made = View(EvalSet.checked(y, Samples(drawn)), seed=seed).get("components")
        assert made.spread.value == pytest.approx(1.0, abs=0.1)


# Degenerate input

ONES = np.ones(40)
DEGENERATE: dict[str, EvalSet] = {
    "constant y": EvalSet.checked(0 * ONES, Distribution.normal(0 * ONES, ONES)),
    "all below": EvalSet.checked(-100 * ONES, Distribution.normal(0 * ONES, ONES)),
    "far above": EvalSet.checked(1e90 * ONES, Distribution.normal(0 * ONES, 1e-90 * ONES)),
    "two rows": EvalSet.checked([0.0, 1.0], Distribution.normal([0.0, 0.0], [1.0, 2.0])),
    "one row": EvalSet.checked([0.0], Distribution.normal([0.0], [1.0])),
    "rare counts": EvalSet.checked(
        child(0, "rare").poisson(0.01, 100).astype(float),
        Distribution("poisson", {"mu": np.full(100, 0.01)}),
    ),
    "no count": EvalSet.checked(0 * ONES, Distribution("poisson", {"mu": 0.01 * ONES})),
    "one count": EvalSet.checked([2.0], Distribution("poisson", {"mu": [2.0]})),
    "equal members": EvalSet.checked(0 * ONES, Samples(np.zeros((40, 5)))),
    "y apart from equal members": EvalSet.checked(ONES, Samples(np.zeros((40, 5)))),
    "beyond all members": EvalSet.checked(9 * ONES, Samples(np.arange(200.0).reshape(40, 5) / 99)),
    "one member": EvalSet.checked(ONES, Samples(np.zeros((40, 1)))),
    "two members": EvalSet.checked(ONES, Samples(np.arange(80.0).reshape(40, 2))),
    "one ensemble": EvalSet.checked([2.0], Samples([[1.0, 2.5, 3.0]])),
    "one level": EvalSet.checked(0 * ONES, Quantiles([0.5], np.ones((40, 1)))),
    "equal quantiles": EvalSet.checked(0 * ONES, Quantiles([0.1, 0.5, 0.9], np.ones((40, 3)))),
    "beyond all quantiles": EvalSet.checked(
        9 * ONES, Quantiles([0.1, 0.5, 0.9], np.tile([0.0, 1.0, 2.0], (40, 1)))
    ),
    "y on a quantile": EvalSet.checked(
        ONES, Quantiles([0.1, 0.5, 0.9], np.tile([0.0, 1.0, 2.0], (40, 1)))
    ),
    "bare intervals": EvalSet.checked(0 * ONES, Intervals(-ONES, ONES, coverage=0.9)),
    "all missed": EvalSet.checked(
        3 * ONES, Intervals(-ONES, ONES * np.linspace(1, 2, 40), coverage=0.9)
    ),
    "unknown coverage": EvalSet.checked(0 * ONES, Intervals(-ONES, np.linspace(1, 2, 40))),
    "one cluster": EvalSet.checked(
        np.arange(40.0) / 10, Distribution.normal(0 * ONES, ONES), cluster=0 * ONES
    ),
    "one heavy row": EvalSet.checked(
        [0.1, 0.2, 0.3, 0.4],
        Distribution.normal(np.zeros(4), np.arange(1, 5)),
        weights=[1e-9, 1.0, 1e-9, 1e-9],
        weights_kind="importance",
    ),
    "impossible": EvalSet.checked(
        np.linspace(-1, 5, 40), Distribution.from_scipy(stats.gamma(2), 40)
    ),
}
NAMES = [f"pit_{part}" for part in PARTS]
NAMES += ["width_response", "miss_imbalance", "impossible_share"]


@pytest.mark.parametrize("case", DEGENERATE)
def test_degenerate_input_has_a_value_or_a_reason(case: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            records = evaluate(DEGENERATE[case], metrics=NAMES).records
        except HowsureError:
            return
    for record in records:
        assert math.isfinite(record.value) or record.reason, record
        assert math.isnan(record.p) or 0.0 <= record.p <= 1.0, record
        assert "inf" not in record.reason, record


def test_what_is_wrong_with_degenerate_input_is_found() -> None:
    below = found(DEGENERATE["all below"])
    assert below.bias.value == pytest.approx(-100.0, abs=0.1)
    assert below.bias.p < 1e-6
    assert below.bias.null_lower == pytest.approx(-below.bias.null_upper)
    assert 0.0 < below.bias.null_upper < 1.0
    assert "too similar" in below.spread.reason
    assert found(DEGENERATE["equal members"]).bias.p == 1.0
    assert found(DEGENERATE["y apart from equal members"]).bias.p < 1e-3
    assert found(DEGENERATE["no count"]).bias.p > 0.5
    assert found(DEGENERATE["one row"]).bias.p == 1.0


# Width response


def responses(power: float, n: int = 1000, times: int = 40) -> tuple[np.ndarray, np.ndarray]:
    rng = child(0, "widths", power)
    made = []
    for _ in range(times):
        size = np.exp(rng.normal(0.0, 0.5, n))
        held = EvalSet.checked(
            size * rng.normal(size=n), Distribution.normal(np.zeros(n), size**power)
        )
        made.append(View(held).get("width_response", 0.9))
    return np.array([each.value for each in made]), np.array([each.p for each in made])


def test_widths_that_follow_the_errors() -> None:
    value, p = responses(1.0)
    assert abs(value.mean() - 1.0) < 4 * value.std() / math.sqrt(len(value)) + 0.005
    few(p, 40)


def test_widths_that_overreact_or_react_too_little() -> None:
    """σ believed to be σ^power: errors over the stated size go as width^(1/power − 1)."""
    for power in (2.0, 0.5):
        value, p = responses(power, times=10)
        assert (p < 0.001).all()
        # a rank moved by one sd either way is some ±1 sd of log width, which is power/2
        expected = math.exp(2 * 0.5 * (1 - power))
        assert np.log(value) == pytest.approx(math.log(expected), abs=0.35)
        assert ((value < 1) == (power > 1)).all()


def test_bare_intervals_answer_through_their_misses() -> None:
    rng = child(0, "misses")
    size = np.exp(rng.normal(0.0, 0.5, 4000))
    y = size * rng.normal(size=4000)
    reach = special.ndtri(0.95)
    made = {}
    for power in (0.5, 1.0, 2.0):
        half = reach * size**power
        held = EvalSet.checked(y, Intervals(-half, half, coverage=0.9))
        made[power] = View(held).get("width_response", 0.9)
    assert made[2.0].value < 0.6
    assert made[2.0].p < 1e-6
    assert made[0.5].value > 1.3
    assert made[0.5].p < 1e-6
    assert made[1.0].lower < 1.0 < made[1.0].upper
    assert made[1.0].p > 0.01


def test_width_response_of_two_halves_by_hand() -> None:
    """Two widths, each half of the rows: rank ±1, so k(±1) are those of the halves' means."""
    signal = np.r_[np.full(50, 0.3), np.full(50, -0.3), np.full(60, 0.5), np.full(40, -0.2)]
    uncertainty = np.r_[np.ones(100), np.full(100, 3.0)]
    rank = width_rank(uncertainty)(uncertainty)
    np.testing.assert_allclose(rank, np.r_[-np.ones(100), np.ones(100)])
    made = width_response(signal, rank, lambda second: math.log(scale_of(second)))
    assert made.details["narrowest"] == pytest.approx(scale_of(0.0))
    assert made.details["widest"] == pytest.approx(scale_of(0.22))
    assert made.value == pytest.approx(scale_of(0.22) / scale_of(0.0))


def test_width_response_of_misses_by_hand() -> None:
    missed = np.r_[np.arange(200) < 10, np.arange(200) < 40]
    half = np.r_[np.linspace(1.0, 1.001, 200), np.linspace(3.0, 3.001, 200)]
    held = EvalSet.checked(np.where(missed, 9.0, 0.0), Intervals(-half, half, coverage=0.9))
    made = View(held).get("width_response", 0.9)
    rank = stats.rankdata(half)
    rank = (rank - rank.mean()) / rank.std()
    slope = float((rank * missed).mean())
    mean = float(missed.mean())
    k = [special.ndtri(0.95) / special.ndtri(1 - each / 2) for each in (mean - slope, mean + slope)]
    assert made.details["narrowest"] == pytest.approx(k[0])
    assert made.details["widest"] == pytest.approx(k[1])


@pytest.mark.parametrize("factor", [1.0, 1.0 + 1e-12, 1.0 - 1e-12])
def test_a_width_made_in_another_way_finds_its_own_rank(factor: float) -> None:
    uncertainty = child(0, "ranks").uniform(1.0, 2.0, 50)
    rank = stats.rankdata(uncertainty)
    rank = (rank - rank.mean()) / rank.std()
    np.testing.assert_allclose(width_rank(uncertainty)(uncertainty * factor), rank, rtol=1e-9)


@pytest.mark.parametrize(
    ("case", "reason"),
    [
        ("constant y", "every row has the same width"),
        ("bare intervals", "every row has the same width"),
        ("all missed", "all rows have the same"),
        ("unknown coverage", "unknown"),
    ],
)
def test_widths_that_tell_nothing_say_why(case: str, reason: str) -> None:
    (record,) = [
        each
        for each in evaluate(DEGENERATE[case], metrics=["width_response"]).records
        if not each.coverage < 0.9
    ]
    assert math.isnan(record.value)
    assert reason in record.reason


# Misses on one side, impossible outcomes


@pytest.mark.parametrize(("below", "above"), [(0, 10), (3, 9), (5, 5), (20, 41), (1, 0)])
def test_miss_imbalance_is_the_binomial_test(below: int, above: int) -> None:
    rows = np.arange(100)
    made = miss_imbalance(rows < below, rows >= 100 - above)
    p = stats.binomtest(below, below + above, 0.5).pvalue
    assert made.value == pytest.approx((above - below) / 100)
    assert made.p == pytest.approx(p, rel=1e-9)


def test_miss_imbalance_of_intervals() -> None:
    rng = child(0, "imbalance")
    y = rng.normal(size=800)
    reach = special.ndtri(0.95)
    shifted = EvalSet.checked(y, Intervals(-reach - 1 + 0 * y, reach - 1 + 0 * y, coverage=0.9))
    (made,) = evaluate(shifted, metrics=["miss_imbalance"]).records
    assert made.value == pytest.approx((y > reach - 1).mean() - (y < -reach - 1).mean())
    assert made.p < 1e-6
    one_sided = EvalSet.checked(y, Intervals(np.full(800, -np.inf), reach + 0 * y, coverage=0.95))
    (made,) = evaluate(one_sided, metrics=["miss_imbalance"]).records
    assert "one-sided" in made.reason


def test_impossible_outcomes_are_counted() -> None:
    (made,) = evaluate(DEGENERATE["impossible"], metrics=["impossible_share"]).records
    assert made.value == np.mean(np.linspace(-1, 5, 40) <= 0)
    law = Distribution.from_scipy(stats.uniform(0, 1), 4)
    held = EvalSet.checked([0.5, 1.5, 0.2, -0.1], law, weights=[1, 2, 3, 2])
    (made,) = evaluate(held, metrics=["impossible_share"]).records
    assert made.value == 0.5


@pytest.mark.slow
def test_widths_of_tied_members_keep_their_level() -> None:
    """Members that lie close by chance are missed; whole numbers too are exchanged for it."""
    rejected = 0
    for number in range(60):
        rng = child(number, "tied members")
        rate = np.exp(0.8 + 0.8 * rng.uniform(-1, 1, 1_000))
        members = Samples(rng.poisson(rate[:, None], (1_000, 20)).astype(float))
        held = EvalSet.checked(rng.poisson(rate).astype(float), members)
        rejected += View(held).get("width_response", 0.9).p < 0.05
    assert rejected <= 60 * (0.05 + 3 * math.sqrt(0.05 * 0.95 / 60))
