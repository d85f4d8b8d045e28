"""Exact embeddings of mixtures and of wide laws of counts, against sums and integrals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import integrate, stats

from howsure.core.rng import child
from howsure.predictions import Distribution, EvalSet
from howsure.predictions.distribution import mixture
from howsure.predictions.laws import ScipyLaw
from howsure.stats.kernels import RBF
from howsure.stats.solvers import SolverOptions
from howsure.topics.congruence import laws
from howsure.topics.congruence.laws import predictive_of
from howsure.topics.congruence.null import null_reference
from howsure.topics.congruence.outputs import DenseOutputs, as_law, law_gram
from howsure.topics.congruence.predictive import Mixtures, PredictiveLaw, Support
from howsure.topics.congruence.reference import CongruenceReference
from howsure.topics.congruence.view import congruence_mode, reference_rows


def rng() -> np.random.Generator:
    return child(0, "laws of congruence")


def embedded(predictive: PredictiveLaw, points: np.ndarray, gamma: float) -> np.ndarray:
    """Every row's mean embedding at some points, shape (n, g)."""
    return law_gram(RBF(gamma), predictive, as_law(points[:, None]))


# Mixtures of normal laws


def three_normals() -> Distribution:
    parts = [
        Distribution.normal([0.0, 1.0], [1.0, 0.3]),
        Distribution.normal([2.0, -1.0], [0.5, 2.0]),
        Distribution.normal([5.0, 0.0], [0.1, 1.0]),
    ]
    return mixture(parts, [[0.5, 0.3, 0.2], [0.0, 0.9, 0.1]])


def test_mixtures_of_normal_laws_embed_as_integrals_do() -> None:
    law, points, gamma = three_normals(), np.array([-2.0, 0.1, 3.0]), 0.7
    held = EvalSet.checked([0.0, 1.0], law)
    predictive = predictive_of(held, "exact")
    assert isinstance(predictive, Mixtures)
    found = embedded(predictive, points, gamma)
    for row in range(2):
        own = {name: value[row : row + 1] for name, value in law.parameters.items()}
        for at, point in enumerate(points):

            def integrand(y: float, own: Any = own, point: float = point) -> float:
                density = np.exp(law.law.log_density(np.array([y]), own))[0]
                return float(density * np.exp(-gamma * (y - point) ** 2))

            wanted = integrate.quad(integrand, -25, 25, points=[0, 1, 2, 4.7, 5, 5.3], limit=400)
            assert found[row, at] == pytest.approx(wanted[0], abs=1e-10)


def test_their_inner_products_are_the_limit_of_many_draws() -> None:
    law, gamma = three_normals(), 0.7
    predictive = predictive_of(EvalSet.checked([0.0, 1.0], law), "exact")
    first, second = law.sample(rng(), 400_000).T[:200_000], law.sample(rng(), 400_000).T[200_000:]
    pairs = np.exp(-gamma * (first[:, :, None] - second[:, None, :]) ** 2)
    error = pairs.std(axis=0) / np.sqrt(len(pairs))
    assert (
        np.abs(law_gram(RBF(gamma), predictive, predictive) - pairs.mean(axis=0)) < 4 * error
    ).all()
    assert error.max() < 1e-3


def test_mixtures_of_mixtures_are_flattened_and_others_are_not_exact() -> None:
    normal = Distribution.normal([0.0, 1.0], [1.0, 0.3])
    outer = mixture([three_normals(), normal], [0.25, 0.75])
    held = EvalSet.checked([0.0, 1.0], outer)
    predictive = predictive_of(held, "exact")
    assert isinstance(predictive, Mixtures)
    assert predictive.weights == pytest.approx(
        np.array([[0.125, 0.075, 0.05, 0.75], [0.0, 0.225, 0.025, 0.75]])
    )
    points = np.linspace(-3, 6, 7)
    inner = predictive_of(EvalSet.checked([0.0, 1.0], three_normals()), "exact")
    alone = predictive_of(EvalSet.checked([0.0, 1.0], normal), "exact")
    wanted = 0.25 * embedded(inner, points, 0.5) + 0.75 * embedded(alone, points, 0.5)
    assert embedded(predictive, points, 0.5) == pytest.approx(wanted, abs=1e-14)
    skewed = mixture([normal, Distribution.from_scipy(stats.gumbel_r([0.0, 1.0]))])
    assert congruence_mode([EvalSet.checked([0.0, 1.0], skewed)]) == "samples"


def test_a_mixture_scores_as_its_draws_do_when_they_are_many() -> None:
    n = 150
    x = rng().uniform(-2, 2, n)
    law = mixture([Distribution.normal(np.sin(x) + a, np.full(n, 0.4)) for a in (-1.0, 1.0)])
    y = law.sample(rng(), 1)[:, 0]
    held = EvalSet.checked(y, law, embedding=x[:, None])
    exact = CongruenceReference(x, y, predictive_of(held, "exact")).score().values
    drawn = CongruenceReference(x, y, predictive_of(held, "samples", draws=4000)).score().values
    assert drawn == pytest.approx(exact, abs=2e-3)
    few = CongruenceReference(x, y, predictive_of(held, "samples", draws=1)).score().values
    assert np.abs(few - exact).mean() > 1e-2


# Wide laws of counts

ROWS = 8


def wide_laws() -> dict[str, Distribution]:
    even = np.linspace(0.8, 1.25, ROWS)
    of_scipy = {
        "binomial": stats.binom(np.full(ROWS, 10**5), 0.3 * even),
        "uniform": stats.randint(np.zeros(ROWS, int), 10_000 + np.arange(ROWS)),
        "a bath tub": stats.betabinom(np.full(ROWS, 4_000), 0.3, 0.2),
        "difference": stats.skellam(3e5 * even, 2e5 * even),
    }
    spread = np.geomspace(0.1, 50.0, ROWS)
    of_ours = {
        "poisson": ("poisson", {"mu": 2e6 * even}),
        "poisson of all sizes": ("poisson", {"mu": np.geomspace(3.0, 2e6, ROWS)}),
        "negative binomial": ("negative_binomial", {"mu": 2e3 * even, "dispersion": 1 / spread}),
        "double poisson": ("double_poisson", {"mu": 3e4 * even, "phi": spread}),
    }
    held = {name: Distribution.from_scipy(law) for name, law in of_scipy.items()}
    held |= {name: Distribution(family, own) for name, (family, own) in of_ours.items()}
    apart = [Distribution("poisson", {"mu": mean * even}) for mean in (4.0, 2e4, 1e6)]
    return held | {"mixture": mixture(apart, [0.2, 0.5, 0.3])}


@pytest.fixture
def unlisted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Counts are not listed, though they are few enough to be summed by hand here."""
    monkeypatch.setattr(laws, "MAX_COUNTS_LISTED", 1)


def embedding_by_hand(law: Distribution, row: int, points: np.ndarray, gamma: float) -> np.ndarray:
    """A sum over every count that matters."""
    own = law.take(slice(row, row + 1))
    low, high = own.quantile([1e-14, 1 - 1e-14])[0]
    counts = np.arange(low, high + 1.0)
    column = {name: value[:, None] for name, value in own.parameters.items()}
    masses = np.exp(own.law.log_density(counts[None], column))[0]
    assert masses.sum() == pytest.approx(1.0, abs=1e-9)  # SciPy's own are no closer
    masses /= masses.sum()
    return np.array([masses @ np.exp(-gamma * (counts - point) ** 2) for point in points])


@pytest.mark.parametrize("name", list(wide_laws()))
@pytest.mark.usefixtures("unlisted")
@pytest.mark.rate
def test_wide_counts_embed_as_sums_over_every_count_do(name: str) -> None:
    law = wide_laws()[name]
    y = law.sample(rng(), 1)[:, 0]
    predictive = predictive_of(EvalSet.checked(y, law), "exact")
    assert isinstance(predictive, Support)
    ends = law.quantile([1e-12, 1 - 1e-12])
    assert predictive.probabilities.shape[1] <= (ends[:, 1] - ends[:, 0]).max() / 2
    assert np.array_equal(predictive.values, np.floor(predictive.values))
    points = np.linspace(ends.min(), ends.max(), 9)
    noise = 1e-10 if name in ("a bath tub", "binomial") else 1e-11  # of SciPy's probabilities
    for sharper in (1.0, 2.0):
        gamma = sharper**2 / (2.0 * y.var(ddof=1))
        found = embedded(predictive, points, gamma)
        for row in (0, 3, ROWS - 1):
            wanted = embedding_by_hand(law, row, points, gamma)
            assert found[row] == pytest.approx(wanted, abs=noise)


@pytest.mark.usefixtures("unlisted")
def test_moments_are_those_of_the_law() -> None:
    law = wide_laws()["negative binomial"]
    y = law.sample(rng(), 1)[:, 0]
    predictive = predictive_of(EvalSet.checked(y, law), "exact")
    assert isinstance(predictive, Support)
    mean = (predictive.probabilities * predictive.values).sum(axis=1)
    variance = (predictive.probabilities * (predictive.values - mean[:, None]) ** 2).sum(axis=1)
    assert mean == pytest.approx(law.point(), rel=1e-9)
    assert np.sqrt(variance) == pytest.approx(law.sd(), rel=1e-8)


def test_errors_and_their_null_are_those_of_all_counts_listed() -> None:
    n = 300
    x = rng().uniform(-2, 2, n)
    mean = 1e5 * np.exp(0.3 * np.sin(x))
    law = Distribution.from_scipy(stats.poisson(mean))
    y = law.sample(rng(), 1)[:, 0]
    some = predictive_of(EvalSet.checked(y, law), "exact")
    ends = law.quantile([1e-12, 1 - 1e-12])
    values = ends[:, :1] + np.arange((ends[:, 1] - ends[:, 0]).max() + 1)
    assert values.size > laws.MAX_COUNTS_LISTED
    masses = stats.poisson(mean[:, None]).pmf(values)
    every = Support(values, masses / masses.sum(axis=1, keepdims=True))
    assert len(some.atoms()) < len(every.atoms()) / 4
    references = [CongruenceReference(x, y, predictive) for predictive in (some, every)]
    scores = [reference.score().values for reference in references]
    assert scores[0] == pytest.approx(scores[1], abs=1e-9)
    nulls = [null_reference(reference, replicates=99, seed=1) for reference in references]
    assert nulls[0].expected == pytest.approx(nulls[1].expected, rel=0.03)


class EvenCounts(stats.rv_discrete):
    """Twice a Poisson count: half of all counts are impossible."""

    def _pmf(self, k: Any, mu: Any) -> Any:
        return np.where(k % 2 == 0, stats.poisson.pmf(k // 2, mu), 0.0)

    def _cdf(self, k: Any, mu: Any) -> Any:
        return stats.poisson.cdf(np.floor(k / 2), mu)

    def _ppf(self, q: Any, mu: Any) -> Any:
        return 2.0 * stats.poisson.ppf(q, mu)

    def _stats(self, mu: Any) -> Any:
        return 2.0 * mu, 4.0 * mu, None, None


def test_laws_that_are_not_smooth_are_listed_or_drawn() -> None:
    law = Distribution(ScipyLaw(EvenCounts(name="even")), {"mu": np.full(200, 3e5),
                                                          "loc": np.zeros(200)})  # fmt: skip
    y = 6e5 + 1e3 * rng().standard_normal(200).round(3)
    predictive = predictive_of(EvalSet.checked(y, law), "exact")
    assert isinstance(predictive, Support)
    assert predictive.probabilities.shape[1] > 10_000
    more = Distribution(law.law, {"mu": np.full(900, 3e5), "loc": np.zeros(900)})
    assert congruence_mode([EvalSet.checked(np.resize(y, 900), more)]) == "samples"
    kinked = Distribution.from_scipy(stats.dlaplace(np.full(900, 1e-3)))
    assert congruence_mode([EvalSet.checked(np.resize(y, 900), kinked)]) == "samples"


@pytest.mark.slow
@pytest.mark.parametrize("mean", [1e5, 1e7, 1e11])
def test_counts_of_any_size_are_exact_in_number(mean: float) -> None:
    n = 2000
    means = mean * np.exp(0.2 * rng().standard_normal(n))
    law = Distribution("negative_binomial", {"mu": means, "dispersion": np.full(n, 0.01)})
    held = EvalSet.checked(law.sample(rng(), 1)[:, 0], law)
    assert congruence_mode([held]) == "exact"
    predictive = predictive_of(held, "exact")
    assert isinstance(predictive, Support)
    assert predictive.probabilities.shape[1] < 1000


def test_counts_that_need_too_many_runs_are_drawn() -> None:
    parameters = {"mu": np.full(900, 1e9), "dispersion": np.full(900, 0.01)}
    law = Distribution("negative_binomial", parameters)
    narrow = 1e9 + np.arange(900) % 3
    assert congruence_mode([EvalSet.checked(narrow, law)]) == "samples"
    still = np.full(900, 1e9)
    assert congruence_mode([EvalSet.checked(still, law)]) == "samples"


@pytest.mark.slow
def test_the_mode_is_decided_on_the_rows_that_are_used() -> None:
    """Narrow laws of counts at 50,000 rows are too many to list; those at 2,000 are not."""
    n = 50_000
    mean = np.exp(rng().uniform(3.0, 6.0, n))
    law = Distribution("negative_binomial", {"mu": mean, "dispersion": np.full(n, 0.1)})
    y = law.sample(rng(), 1)[:, 0]
    held = EvalSet.checked(y, law, embedding=np.log(mean)[:, None])
    assert congruence_mode([held], everything=True) == "samples"
    assert congruence_mode([held]) == "exact"
    assert congruence_mode([held], draws=3) == "samples"
    part = reference_rows(held, seed=4)
    assert part.n == 2_000
    assert congruence_mode([part], everything=True) == congruence_mode([held], seed=4)


def overdispersed(scale: float) -> tuple[np.ndarray, np.ndarray, Distribution]:
    """Inputs and outcomes of thirty rows, and negative binomial laws that are far too low."""
    draws = rng()
    mean = scale * draws.gamma(2.0, 1.0, 30) + 0.5
    law = Distribution.from_scipy(stats.nbinom(3, 3 / (3 + mean)))
    return draws.normal(size=(30, 20)), law.sample(draws, 1)[:, 0] + 3 * scale, law


@pytest.mark.parametrize("scale", [100.0, 1e4])
def test_few_rows_of_wide_counts_need_no_gram_matrix_of_all_counts(scale: float) -> None:
    """A Gram matrix of each count of each row with each took two minutes for thirty rows."""
    x, y, law = overdispersed(scale)
    predictive = predictive_of(EvalSet.checked(y, law), "exact")
    assert len(predictive.atoms()) <= laws.MAX_COUNTS_LISTED
    reference = CongruenceReference(x, y, predictive)
    assert not isinstance(reference.outputs, DenseOutputs)
    assert null_reference(reference, replicates=19).p_value == 0.05


def test_landmarks_of_few_rows_of_counts_are_right() -> None:
    x, y, law = overdispersed(3.0)
    predictive = predictive_of(EvalSet.checked(y, law), "exact")
    few, whole = (
        CongruenceReference(x, y, predictive, solver=SolverOptions(method=method))
        for method in ("auto", "dense")
    )
    dense = (isinstance(reference.outputs, DenseOutputs) for reference in (few, whole))
    assert tuple(dense) == (False, True)
    assert few.score().values == pytest.approx(whole.score().values, abs=1e-9)
    nulls = [null_reference(reference, replicates=19).replicates for reference in (few, whole)]
    assert nulls[0] == pytest.approx(nulls[1], abs=1e-9)
