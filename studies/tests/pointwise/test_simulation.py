"""Coverage at every point: known answers, stopping, and methods that misbehave."""

from __future__ import annotations

import itertools
import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy import stats
from sklearn.linear_model import LinearRegression

from howsure.core.errors import InputError, UnanswerableError
from howsure.core.progress import subscribe
from howsure.inputs.distributions import located
from howsure.predictions import Intervals, Prediction
from howsure_studies.methods.interface import Fitted, Method, Predictions
from howsure_studies.methods.linear import LinearT
from howsure_studies.methods.quantile_regression import linear_quantiles
from howsure_studies.methods.regressors import SplitConformal
from howsure_studies.pointwise import PointwiseResult, Precision, joined, pointwise
from howsure_studies.pointwise.formulas import brier, cicf, cicp, picf, picp
from howsure_studies.tasks.worlds import (
    CutWorld,
    ForestWorld,
    KnownWorld,
    world_named,
    worlds,
)
from sameness import same

Answer = Callable[[int, np.ndarray], Any]


class Told(Method):
    """Answers what a function of the fit's number and x says; it counts its fits."""

    def __init__(self, answer: Answer, coverages: tuple[float, ...] | None = None) -> None:
        self.answer = answer
        self.count = -1
        self.seen: list[npt.NDArray[np.float64]] = []
        self.coverages = coverages
        self.drawn: list[float] = []

    @property
    def name(self) -> str:
        return "told"

    @property
    def fixed_coverages(self) -> tuple[float, ...] | None:
        return self.coverages

    def fit(self, x: Any, y: Any, rng: np.random.Generator) -> Fitted:
        self.count += 1
        self.drawn.append(rng.random())
        self.seen.append(np.column_stack([x, y]))
        if self.answer(self.count, x) == "fit":
            raise ZeroDivisionError("no fit")
        return Says(self.answer, self.count)


class Says(Fitted):
    def __init__(self, answer: Answer, number: int) -> None:
        self.answer = answer
        self.number = number

    def predict(self, x: Any) -> Predictions:
        return self.answer(self.number, x)


def oracle(world: KnownWorld) -> Told:
    """A method that knows the truth, and of the mean says the truth ± a coin that errs 1 in 4."""

    def answer(number: int, x: np.ndarray) -> Predictions:
        truth = world.truth(x)
        ends = [truth.interval(c) for c in (0.5, 0.8)]
        outcome = Intervals(
            np.stack([low for low, _ in ends], 1), np.stack([up for _, up in ends], 1), (0.5, 0.8)
        )
        center = truth.mean + (10.0 * truth.scale if number % 4 == 0 else 0.0)
        mean = Intervals(
            np.stack([center - truth.scale] * 2, 1),
            np.stack([center + truth.scale] * 2, 1),
            (0.5, 0.8),
        )
        return Predictions(outcome, mean)

    return Told(answer, (0.5, 0.8))


def normal(x: np.ndarray, sd: float = 1.0) -> Predictions:
    return Predictions(located("norm", np.zeros(len(x)), np.full(len(x), sd)))


def linear(**options: Any) -> PointwiseResult:
    """The paper's linear example: 25 rows, 500 test points."""
    return pointwise("linear", LinearT(), coverages=(0.8,), **options)


@pytest.mark.parametrize("name", worlds())
def test_a_method_that_knows_the_truth_covers_alike_everywhere(name: str) -> None:
    world = world_named(name)
    assert isinstance(world, KnownWorld)
    result = pointwise(world, oracle(world), trials=8, n_train=5, n_test=40)
    for coverage in (0.5, 0.8):
        np.testing.assert_allclose(result.by_trial("picf", coverage), coverage, atol=1e-9)
        assert result.brier("picf", coverage).raw < 1e-15
        assert not result.band("picf", coverage).verdict(coverage).any()
        np.testing.assert_allclose(result.by_trial("cicf", coverage).mean(axis=0), 0.75)
        assert result.cicp(coverage).tolist() == [0.0, 1.0, 1.0, 1.0] * 2


def test_single_test_sets_scatter_about_the_nominal_coverage() -> None:
    """Row 7: mean .80 ± .01, least .50–.59, greatest .94–.97; the paper prints .58 to .92."""
    shares = linear(trials=500).picp(0.8)
    assert shares.mean() == pytest.approx(0.80, abs=0.01)
    assert 0.50 <= shares.min() <= 0.59
    assert 0.94 <= shares.max() <= 0.97


def test_one_line_covers_the_mean_at_all_points_or_at_none() -> None:
    """Row 8: without an intercept CICP is 0 or 1, though the intervals are exact."""
    line = LinearT(intercept=False)
    result = pointwise("linear", line, coverages=(0.8, 0.95), trials=300, n_test=100)
    for coverage in (0.8, 0.95):
        shares = result.cicp(coverage)
        assert set(shares.tolist()) == {0.0, 1.0}
        assert abs(shares.mean() - coverage) < 3 * math.sqrt(coverage * (1 - coverage) / 300)
    ends = linear(trials=300, n_test=100).cicp(0.8)
    assert ((ends == 0) | (ends == 1)).mean() > 0.5  # nearly so with an intercept
    assert ends.std() > 0.2


def test_t_intervals_are_exact_at_every_point() -> None:
    for covariates in ("random", "fixed"):
        result = linear(trials=400, n_test=60, covariates=covariates)
        for which in ("picf", "cicf"):
            band = result.band(which, 0.8)
            assert not band.verdict(0.8).any()
            assert np.ptp(band.upper - band.lower) < 0.12
            score = result.brier(which, 0.8)
            assert abs(score.corrected) < 3 * score.standard_error


@pytest.mark.rate
def test_the_corrected_score_of_exact_intervals_is_zero_and_the_raw_is_not() -> None:
    """Over 150 studies of 15 trials. Their law is skewed, so errors come from theory.

    Where coverage is right everywhere the corrected score has sd √2 × the noise at most.
    """
    studies, trials = 150, 15
    results = [linear(trials=trials, n_test=12, n_train=12, seed=seed) for seed in range(studies)]
    for which in ("picf", "cicf"):
        scores = [result.brier(which, 0.8) for result in results]
        noise = float(np.mean([score.noise for score in scores]))
        slack = 3 * math.sqrt(2 / studies) * noise
        assert abs(np.mean([score.corrected for score in scores])) < slack
        assert abs(np.mean([score.raw for score in scores]) - noise) < slack < 0.4 * noise
        beyond = [abs(score.corrected) > 3 * score.standard_error for score in scores]
        assert np.mean(beyond) < 0.03
    assert noise == pytest.approx(0.16 / trials, rel=0.1)


@pytest.mark.parametrize(("coverage", "score"), [(0.9, 0.0118), (0.8, 0.0228)])
def test_a_band_of_equal_width_covers_on_average_alone(coverage: float, score: float) -> None:
    """Row 10's bootstrap Brier (.011, .020) is that of equal noise, whatever the network.

    The true mean with the root mean square sd: mean_x (2Φ(z·0.1979/σ(x)) − 1 − (1−α))².
    """
    world = world_named("toy_heteroscedastic")
    assert isinstance(world, KnownWorld)
    grid = np.linspace(-0.5, 0.5, 20001)[:, None]
    sd = math.sqrt(np.square(world.scale(grid)).mean())
    z = stats.norm.ppf(0.5 + coverage / 2)
    exact = 2 * stats.norm.cdf(z * sd / world.scale(grid)) - 1
    assert np.square(exact - coverage).mean() == pytest.approx(score, abs=5e-5)

    def answer(number: int, x: np.ndarray) -> Predictions:
        return Predictions(located("norm", world.mean(x), np.full(len(x), sd)))

    told = Told(answer)
    result = pointwise(world, told, coverages=(coverage,), trials=3, n_train=2, n_test=4000)
    found = result.brier("picf", coverage)
    assert found.corrected == pytest.approx(score, abs=0.001)
    assert result.picp(coverage).mean() == pytest.approx(coverage, abs=0.05)
    assert found.bias_squared < 0.1 * found.variance
    assert (result.band("picf", coverage).verdict(coverage) != 0).mean() > 0.95


def test_formulas_of_the_result_are_those_on_arrays() -> None:
    result = pointwise("toy_heteroscedastic", LinearT(), trials=6, n_train=20, n_test=30)
    assert result.coverages == (0.7, 0.8, 0.9, 0.95)
    truth = result.truth
    assert truth is not None
    assert result.mean_ends is not None
    for k, coverage in enumerate(result.coverages):
        lower, upper = result.lower[:, :, k], result.upper[:, :, k]
        low, high = (ends[:, :, k] for ends in result.mean_ends)
        assert result.picp(coverage).tolist() == picp(result.y, lower, upper).tolist()
        assert result.cicp(coverage).tolist() == cicp(truth.mean, low, high).tolist()
        mass = picf(lower, upper, lambda y: truth.cdf(y.T).T)
        np.testing.assert_allclose(result.by_trial("picf", coverage).mean(axis=0), mass)
        held = result.by_trial("cicf", coverage)
        np.testing.assert_allclose(held.mean(axis=0), cicf(truth.mean, low, high))
        assert result.brier("cicf", coverage) == brier(held, coverage)
        assert np.array_equal(result.width("picf", coverage), upper - lower)
        assert np.array_equal(result.width("cicf", coverage), high - low)


def test_many_coverages_in_one_pass_are_those_of_single_passes() -> None:
    many = pointwise("linear", LinearT(), coverages=(0.95, 0.5), trials=10, n_test=9)
    assert many.coverages == (0.5, 0.95)
    for coverage in (0.5, 0.95):
        one = pointwise("linear", LinearT(), coverages=(coverage,), trials=10, n_test=9)
        assert np.array_equal(one.by_trial("picf", coverage), many.by_trial("picf", coverage))
        assert np.array_equal(one.picp(coverage), many.picp(coverage))


def test_a_likelihood_comes_with_a_density() -> None:
    world = world_named("linear")
    assert isinstance(world, KnownWorld)

    def answer(number: int, x: np.ndarray) -> Predictions:
        return Predictions(located("norm", world.mean(x), world.scale(x)))

    result = pointwise(world, Told(answer), trials=2, n_test=4000)
    assert result.log_likelihood[0] == pytest.approx(
        -0.5 * math.log(2 * math.pi * 0.01 * math.e), abs=0.05
    )
    conformal = pointwise(world, SplitConformal(LinearRegression()), trials=2, n_test=5)
    assert np.isnan(conformal.log_likelihood).all()
    assert "gives no density" in conformal.reasons["log_likelihood"]


def test_methods_compared_under_one_seed_see_the_same_data() -> None:
    first, second = Told(lambda n, x: normal(x)), Told(lambda n, x: normal(x, 2.0))
    runs = [
        pointwise("friedman1", m, trials=3, n_train=9, n_test=7, seed=4) for m in (first, second)
    ]
    assert np.array_equal(runs[0].x, runs[1].x)
    assert np.array_equal(runs[0].y, runs[1].y)
    assert np.array_equal(np.stack(first.seen), np.stack(second.seen))
    other = pointwise("friedman1", first, trials=1, n_train=9, n_test=7, seed=5)
    assert not np.array_equal(other.y, runs[0].y)


def test_trials_do_not_depend_on_how_many_follow() -> None:
    short, long = (linear(trials=n, n_test=11, seed=2) for n in (5, 9))
    assert np.array_equal(short.lower, long.lower[:5])
    assert np.array_equal(short.y, long.y)


@pytest.mark.parametrize("of", ["picf", "cicf", "brier"])
def test_trials_stop_when_precise_enough(of: Any) -> None:
    wanted = {"picf": 0.02, "cicf": 0.06, "brier": 0.0001}[of]
    stop = Precision(standard_error=wanted, of=of, least=10, every=5)
    result = linear(trials=400, n_test=30, stop=stop)
    assert 10 < result.trials < 400
    assert result.trials % 5 == 0
    assert f"met after {result.trials} trials" in result.stop
    fixed = linear(trials=result.trials, n_test=30)
    assert np.array_equal(fixed.lower, result.lower)

    def reached(trials: int) -> float:
        held = fixed.by_trial("cicf" if of == "cicf" else "picf", 0.8)[:trials]
        if of == "brier":
            return brier(held, 0.8).standard_error
        if of == "picf":
            return float(held.std(axis=0, ddof=1).max() / math.sqrt(trials))
        share = (held.sum(axis=0) + 2) / (trials + 4)
        return float(np.sqrt(share * (1 - share) / trials).max())

    assert reached(result.trials) <= wanted
    assert all(reached(n) > wanted for n in range(10, result.trials, 5))


def test_a_lucky_start_does_not_end_the_run() -> None:
    """All covered so far: the error is that of (S + 2)/(S + 4), not 0."""
    world = world_named("linear")

    def answer(number: int, x: np.ndarray) -> Predictions:
        mean = located("norm", world.truth(x).mean, np.ones(len(x)))
        return Predictions(mean, mean)

    stop = Precision(standard_error=0.062, of="cicf", least=10, every=10)
    assert math.sqrt(12 / 14 * 2 / 14 / 10) > 0.062 > math.sqrt(22 / 24 * 2 / 24 / 20)
    assert pointwise(world, Told(answer), trials=50, n_test=5, stop=stop).trials == 20


def test_trials_that_do_not_suffice_tell_how_many_would() -> None:
    result = linear(trials=40, n_test=10, stop=Precision(standard_error=0.005))
    assert result.trials == result.trials_planned == 40
    assert "not met in 40 trials: about" in result.stop
    needed = int(result.stop.rpartition("about ")[2].split()[0])
    error = result.by_trial("picf", 0.8).std(axis=0, ddof=1).max() / math.sqrt(40)
    assert needed == math.ceil(40 * (error / 0.005) ** 2)


def test_a_run_reports_its_progress() -> None:
    steps: list[tuple[str, int, int]] = []
    with subscribe(lambda *step: steps.append(step)):
        linear(trials=2, n_test=5)
    assert steps == [("trials", 0, 2), ("trials", 1, 2), ("trials", 2, 2)]


def swapped(x: np.ndarray) -> Predictions:
    return Predictions(Intervals(np.ones(len(x)), np.zeros(len(x)), 0.8))


def missing(x: np.ndarray) -> Predictions:
    return Predictions(located("norm", np.full(len(x), np.nan), np.ones(len(x))))


def short(x: np.ndarray) -> Predictions:
    return normal(x[1:])


class Wild(Prediction):
    """A prediction of the user's own that checks nothing."""

    kind = "wild"

    def __init__(self, lower: float, upper: float, n: int) -> None:
        self.ends = np.full(n, lower), np.full(n, upper)

    @property
    def n(self) -> int:
        return len(self.ends[0])

    def take(self, rows: Any) -> Wild:
        return self

    def interval(self, coverage: float) -> tuple[np.ndarray, np.ndarray]:
        return self.ends


@pytest.mark.parametrize(
    ("bad", "stage", "words"),
    [
        (lambda x: "fit", "fit", "no fit"),
        (swapped, "predict", "lower must not exceed upper"),
        (missing, "predict", "must contain finite numbers"),
        (short, "intervals", "prediction intervals must have 6 rows, got 5"),
        (lambda x: None, "intervals", "NoneType"),
        (
            lambda x: Predictions(Intervals(-np.ones(6), np.ones(6), 0.5)),
            "intervals",
            "coverage 0.5",
        ),
        (lambda x: Predictions(normal(x).outcome, swapped(x).outcome), "predict", "crossed"),
        (lambda x: Predictions(Wild(1.0, 0.0, 6)), "intervals", "got 6 missing or crossed"),
        (lambda x: Predictions(Wild(0.0, math.nan, 6)), "intervals", "got 6 missing or crossed"),
        (
            lambda x: Predictions(normal(x).outcome, Wild(1, 0, 6)),
            "intervals",
            "confidence intervals",
        ),
    ],
)
def test_bad_trials_are_kept_apart(bad: Any, stage: str, words: str) -> None:
    """Trials 1 and 3 go wrong; the others count as if those had not been."""
    method = Told(lambda n, x: bad(x) if n in (1, 3) and len(x) == 6 else normal(x))
    if stage == "fit":
        method = Told(lambda n, x: "fit" if n in (1, 3) else normal(x))
    result = pointwise("friedman1", method, coverages=(0.8,), trials=5, n_train=9, n_test=6)
    assert result.trials == 3
    assert [f.trial for f in result.failures] == [1, 3]
    for failure in result.failures:
        assert failure.stage == stage
        assert words in failure.message
        assert failure.error in failure.trace
    good = Told(lambda n, x: normal(x))
    whole = pointwise("friedman1", good, coverages=(0.8,), trials=5, n_train=9, n_test=6)
    assert np.array_equal(result.lower, whole.lower[[0, 2, 4]])
    assert method.drawn == good.drawn
    assert len(set(good.drawn)) == 5


def test_a_method_that_always_fails_gives_reasons() -> None:
    result = pointwise("linear", Told(lambda n, x: "fit"), trials=4, n_test=5)
    assert result.trials == 0
    assert len(result.failures) == 4
    for which in ("picf", "cicf"):
        with pytest.raises(UnanswerableError, match="no trial succeeded; the first failed in fit"):
            result.brier(which, 0.8)


def test_interrupts_pass() -> None:
    def answer(number: int, x: np.ndarray) -> Predictions:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        pointwise("linear", Told(answer), trials=3, n_test=5)


def test_warnings_are_counted_by_trial() -> None:
    def answer(number: int, x: np.ndarray) -> Predictions:
        for _ in range(1 + number):
            warnings.warn("did not converge", RuntimeWarning, stacklevel=1)
        return normal(x)

    result = pointwise("linear", Told(answer), trials=3, n_test=5)
    assert result.warnings == {"RuntimeWarning: did not converge": 3}
    assert result.trials == 3


def test_unbounded_intervals_cover_all() -> None:
    method = SplitConformal(LinearRegression(), calibration=3, coverages=(0.9,))
    result = pointwise("linear", method, trials=3, n_test=5)
    assert result.by_trial("picf", 0.9).tolist() == [[1.0] * 5] * 3
    assert np.isinf(result.width("picf", 0.9)).all()


def test_a_cut_table_answers_for_its_rows_alone() -> None:
    draw = world_named("linear").test_set(0, 600)
    world = CutWorld.from_data(draw.x, draw.y, rows=20)
    result = pointwise(world, LinearT(), coverages=(0.8,), trials=20, n_test=200)
    assert result.picp(0.8).mean() == pytest.approx(0.8, abs=0.05)
    assert result.width("cicf", 0.8).shape == (20, 200)
    for which in ("picf", "cicf"):
        with pytest.raises(UnanswerableError, match="does not know the distribution of y"):
            result.brier(which, 0.8)
    with pytest.raises(InputError, match="trials must be at most 20"):
        pointwise(world, LinearT(), trials=21, n_test=200)
    with pytest.raises(InputError, match="stop must be left out"):
        pointwise(world, LinearT(), trials=5, stop=Precision(standard_error=0.1))


def test_a_forest_is_a_world_like_any_other() -> None:
    draw = world_named("toy_heteroscedastic").training_set(0, 0, 150)
    world = ForestWorld.from_data(draw.x, draw.y, trees=30)
    result = pointwise(world, oracle(world), trials=4)
    assert result.n_train == 120
    assert len(result.y) == 30
    np.testing.assert_allclose(result.by_trial("picf", 0.8), 0.8, atol=1e-9)
    fixed = pointwise(world, oracle(world), trials=2, covariates="fixed", n_train=50)
    assert fixed.n_train == 50


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"trials": 0}, "trials must be"),
        ({"trials": 2.0}, "trials must be"),
        ({"coverages": (0.8, 0.8)}, "distinct"),
        ({"coverages": (80,)}, "coverages must be"),
        ({"confidence": 1.0}, "confidence must be"),
        ({"seed": -1}, "seed must be"),
        ({"n_train": 0}, "n_train must be"),
        ({"n_test": 0}, "n_test must be"),
        ({"covariates": "both"}, "covariates must be"),
        ({"world": "liner"}, "near: linear"),
        ({"method": object()}, "an object with fit and predict"),
        ({"method": linear_quantiles((0.5,)), "coverages": (0.8,)}, "among those of quantile"),
        (
            {
                "method": linear_quantiles((0.5,)),
                "trials": 4,
                "stop": Precision(standard_error=0.1, of="cicf", least=3),
            },
            "no confidence intervals",
        ),
    ],
)
def test_bad_options_are_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        pointwise(**{"world": "linear", "method": LinearT(), "trials": 2, "n_test": 5, **options})


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"standard_error": 0.0}, "standard_error must be"),
        ({"standard_error": math.nan}, "standard_error must be"),
        ({"standard_error": 0.1, "of": "picp"}, "of must be"),
        ({"standard_error": 0.1, "least": 2}, "least must be"),
        ({"standard_error": 0.1, "every": 0}, "every at least 1"),
    ],
)
def test_bad_precisions_are_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        Precision(**options)


def test_bad_questions_to_a_result_are_refused() -> None:
    result = linear(trials=2, n_test=5)
    with pytest.raises(InputError, match=r"coverage must be one of 0\.8, got 0\.9"):
        result.picp(0.9)
    with pytest.raises(InputError, match="which must be"):
        result.by_trial("picp", 0.8)
    silent = pointwise("linear", linear_quantiles((0.5,)), trials=2, n_test=5)
    with pytest.raises(UnanswerableError, match="gives no confidence intervals"):
        silent.cicp(0.5)
    with pytest.raises(UnanswerableError, match="gives no confidence intervals"):
        silent.width("cicf", 0.5)


class Batched(Told):
    """Fits up to `size` data sets at once; keeps the numbers of each batch."""

    def __init__(self, answer: Answer, size: int, poison: float = math.inf) -> None:
        super().__init__(answer)
        self.size = size
        self.poison = poison
        self.batches: list[int] = []

    @property
    def batch(self) -> int:
        return self.size

    def fit(self, x: Any, y: Any, rng: np.random.Generator) -> Fitted:
        if abs(float(y[0])) > self.poison:
            raise ZeroDivisionError("poisoned")
        return super().fit(x, y, rng)

    def fit_many(self, data: Any, rngs: Any) -> Any:
        self.batches.append(len(data))
        return super().fit_many(data, rngs)


def shifted(number: int, x: np.ndarray) -> Predictions:
    return normal(x, 1.0 + 0.1 * number)


def test_batches_give_what_single_fits_give() -> None:
    """Batches begin at multiples of their size; each trial keeps its own random numbers."""
    single, many = Told(shifted), Batched(shifted, 4)
    one, other = (pointwise("linear", m, trials=9, n_test=5, first_trial=2) for m in (single, many))
    same(one, other)
    assert many.batches == [2, 4, 3]
    assert many.drawn == single.drawn
    assert np.array_equal(np.stack(many.seen), np.stack(single.seen))


def test_a_batch_of_fits_may_hold_one_that_fails() -> None:
    """Only the guilty trials fail, and the others' random numbers are as ever."""
    alone = Batched(lambda n, x: normal(x), 1, poison=1.8)
    many = Batched(lambda n, x: normal(x), 5, poison=1.8)
    one, other = (pointwise("linear", m, trials=20, n_test=5) for m in (alone, many))
    same(one, other)
    assert 0 < len(other.failures) < 10
    assert many.batches == [5, 5, 5, 5]
    assert other.failures[0].message == "poisoned"
    wanted = pointwise("linear", Told(lambda n, x: normal(x)), trials=20, n_test=5)
    kept = np.setdiff1d(np.arange(20), [f.trial for f in other.failures])
    assert np.array_equal(other.lower, wanted.lower[kept])


def test_a_batch_that_returns_too_few_is_fitted_one_by_one() -> None:
    class Short(Batched):
        def fit_many(self, data: Any, rngs: Any) -> Any:
            return []

    method = Short(lambda n, x: normal(x), 3)
    assert pointwise("linear", method, trials=6, n_test=5).trials == 6


def test_a_wish_is_met_inside_a_batch() -> None:
    """What the rest of the batch gave is left out, as if it had not been fitted."""
    stop = Precision(standard_error=0.05, least=3, every=1)
    one, other = (
        pointwise("linear", m, trials=30, n_test=5, stop=stop)
        for m in (Told(lambda n, x: normal(x)), Batched(lambda n, x: normal(x), 8))
    )
    same(one, other)
    assert other.trials == 3


@pytest.mark.parametrize("cuts", [(0, 12), (0, 1, 12), (0, 3, 4, 9, 12)])
@pytest.mark.parametrize("size", [1, 3])
def test_parts_join_to_the_whole(cuts: tuple[int, ...], size: int) -> None:
    """In any order, with failures and warnings, also where the mean is believed of."""

    def run(**options: Any) -> PointwiseResult:
        method = Batched(lambda n, x: normal(x), size, poison=1.8)
        return pointwise("linear", method, n_test=7, seed=3, **options)

    parts = [run(first_trial=a, trials=b - a) for a, b in itertools.pairwise(cuts)]
    same(joined(parts[::-1]), run(trials=12))
    if len(cuts) == 2:
        line = pointwise("linear", LinearT(), trials=6, n_test=7)
        halves = [
            pointwise("linear", LinearT(), trials=3, n_test=7, first_trial=first)
            for first in (0, 3)
        ]
        same(joined(halves), line)


def test_parts_with_gaps_say_how_many_are_at_hand() -> None:
    parts = [linear(trials=2, n_test=5, first_trial=first) for first in (0, 6)]
    result = joined(parts, planned=10)
    assert (result.trials, result.trials_planned) == (4, 10)
    assert result.stop == "4 of 10 trials at hand"


def test_a_part_in_which_all_trials_failed_joins_the_others() -> None:
    bad = pointwise("linear", Told(lambda n, x: "fit"), trials=2, n_test=5)
    good = pointwise("linear", Told(lambda n, x: normal(x)), trials=2, n_test=5, first_trial=2)
    result = joined([bad, good])
    assert (result.trials, len(result.failures)) == (2, 2)
    assert "trials" not in result.reasons
    assert result.by_trial("picf", 0.8).shape == (2, 5)
    assert "no trial succeeded" in joined([bad]).reasons["picf"]


def test_a_table_without_truth_joins() -> None:
    world = CutWorld.from_data(np.arange(200.0), np.arange(200.0), rows=10)
    whole = pointwise(world, LinearT(), trials=6)
    same(joined([pointwise(world, LinearT(), trials=3, first_trial=k) for k in (0, 3)]), whole)
    with pytest.raises(InputError, match=r"trials must be at most 1, .* from number 18"):
        pointwise(world, LinearT(), trials=2, first_trial=18)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"first_trial": 2}, "contain a trial once, got trial 2 twice"),
        ({"first_trial": 3, "seed": 1}, "one test, got seed 0 and 1"),
        ({"first_trial": 3, "n_train": 7}, "one test, got n_train"),
        ({"first_trial": 3, "n_test": 6}, "different test sets"),
    ],
)
def test_parts_of_other_tests_do_not_join(options: dict[str, Any], words: str) -> None:
    first = linear(trials=3, n_test=5)
    with pytest.raises(InputError, match=words):
        joined([first, linear(**{"trials": 2, "n_test": 5, **options})])
    with pytest.raises(InputError, match="at least one"):
        joined([])


@pytest.mark.parametrize("first", [-1, 1.5, True])
def test_bad_first_trials_are_refused(first: Any) -> None:
    with pytest.raises(InputError, match="first_trial must be a whole number"):
        linear(trials=2, first_trial=first)
