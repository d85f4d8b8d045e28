"""The ten methods of the benchmark, each recomputed from its definition, and any other."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy.stats import norm
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import ARDRegression, LinearRegression

from howsure.core.errors import InputError, UnanswerableError
from howsure.core.rng import child
from howsure.inputs.distributions import located
from howsure_studies.engine import published
from howsure_studies.methods.conformal.inductive import SplitConformal
from howsure_studies.methods.interface import Fitted, Method, Predictions
from howsure_studies.methods.linear import LinearT
from howsure_studies.methods.selective import SHARE, GMMScore, KNNScore, Selective
from howsure_studies.shift import (
    INTERVAL_METHODS,
    SHIFT_METHODS,
    VARIATIONS,
    NetworkOutputs,
    SharedWork,
    ShiftMethod,
    ShiftResult,
    evaluate_shift,
    fit_shift,
    model_answers,
    network_answers,
    paper_runs,
    shift_method,
)
from howsure_studies.tasks import Part, Task, shift_task, table_task

FITTED: dict[tuple[str, str, str], np.ndarray] = {}
SIZES = {"train": 60, "val": 40, "full": 30, "step-1": 20}


def targets() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(1)
    return {part: rng.normal(size=n) for part, n in SIZES.items() if part != "train"}


def network(kind: str, seed: int) -> NetworkOutputs:
    rng = np.random.default_rng([seed, len(kind)])
    outputs = {}
    for part, y in targets().items():
        mean = y + rng.normal(0, 0.5, size=len(y))
        spread = rng.uniform(0.2, 1.0, size=len(y))
        outputs[part] = {
            "direct": np.stack([mean]),
            "gaussian": np.stack([mean, spread]),
            "quantile": np.stack([mean - spread, mean + spread - 0.5]),
        }[kind].astype(np.float32)
    features = {
        part: rng.normal(0.0 if part != "full" else 1.0, 1.0, size=(n, 3)).astype(np.float32)
        for part, n in SIZES.items()
    }
    return NetworkOutputs(outputs=outputs, features=features, name=f"{kind}/{seed}")


def networks_of(method: ShiftMethod) -> list[NetworkOutputs]:
    return [network(method.network, seed) for seed in range(5 if method.ensemble else 1)]


def expected(
    method: ShiftMethod,
    networks: list[NetworkOutputs],
    part: str,
    coverage: float,
    work: SharedWork,
) -> tuple[np.ndarray, ...]:
    """Point, lower, upper and score by loops over rows."""
    key = method.key
    z = norm.ppf(1 - (1 - coverage) / 2)
    columns = []
    for i in range(SIZES[part]):
        said = [one.outputs[part][:, i].astype(float) for one in networks]
        means = [said_by[0] for said_by in said]
        if key == "conformal":
            row = (means[0], means[0], means[0])
        elif key == "quantile":
            low, high = said[0]
            row = ((low + high) / 2, low, high)
        else:
            mean = sum(means) / len(means)
            variance = sum((m - mean) ** 2 for m in means) / len(means)
            if method.network == "gaussian":
                variance += sum(said_by[1] ** 2 for said_by in said) / len(means)
            row = (mean, mean - z * math.sqrt(variance), mean + z * math.sqrt(variance))
        columns.append((*row, _score(key, networks, part, i, said, work)))
    return tuple(np.array(column) for column in zip(*columns, strict=True))


def _score(
    key: str,
    networks: list[NetworkOutputs],
    part: str,
    i: int,
    said: list[np.ndarray],
    work: SharedWork,
) -> float:
    if key == "gaussian_variance":
        return said[0][1]
    if key == "gaussian_ensemble_variance":
        means = np.array([one[0] for one in said])
        return math.sqrt(np.mean((means - means.mean()) ** 2))
    if key == "gaussian_forecast":
        home = networks[0].outputs["val"][0].astype(float)
        if part == "val":
            home = np.delete(home, i)
        return np.sort(np.abs(said[0][0] - home))[:10].mean()
    if "knn" in key:
        score = shift_method(key).score
        train = networks[0].features["train"].astype(float)
        own = networks[0].features[part][i].astype(float)
        apart = np.linalg.norm(train - own, axis=1)
        if score.metric == "angular":
            cosine = train @ own / np.linalg.norm(train, axis=1) / np.linalg.norm(own)
            apart = np.sqrt(2 - 2 * cosine)
        return np.sort(apart)[: score.neighbours].mean()
    if "gmm" in key:
        densities = []
        for one in networks:
            score = shift_method(key).score
            rng = child(work.seed, "shift", "density", one.name, score.name)
            if (one.name, score.name, part) not in FITTED:
                fitted = score.fit(one.features["train"].astype(float), rng)
                FITTED[one.name, score.name, part] = fitted(one.features[part].astype(float))
            densities.append(math.exp(-FITTED[one.name, score.name, part][i]))
        return -math.log(np.mean(densities))
    return math.nan


@pytest.mark.parametrize("coverage", [0.9, 0.8])
@pytest.mark.parametrize("key", [*SHIFT_METHODS, *VARIATIONS])
def test_each_method_follows_its_definition(key: str, coverage: float) -> None:
    method = shift_method(key)
    own = networks_of(method)
    work = SharedWork()
    val, tests = network_answers(method, own, targets(), coverage=coverage, work=work)
    assert list(tests) == ["full", "step-1"]
    for part, found in {"val": val, **tests}.items():
        point, lower, upper, score = expected(method, own, part, coverage, work)
        np.testing.assert_allclose(found.point, point, rtol=1e-6)
        np.testing.assert_allclose(found.lower, lower, rtol=1e-6, atol=1e-9)
        np.testing.assert_allclose(found.upper, upper, rtol=1e-6, atol=1e-9)
        assert (found.score is None) == (key in INTERVAL_METHODS)
        if found.score is not None:
            np.testing.assert_allclose(found.score, score, rtol=1e-6)
        assert (found.y == targets()[part]).all()


def test_the_ten_and_the_published_variations_are_there() -> None:
    methods = list(dict.fromkeys(row.method for row in published("shift")))
    assert list(SHIFT_METHODS) == methods[:10]
    assert set(methods[10:]) <= set(VARIATIONS)
    assert tuple(SHIFT_METHODS)[:5] == INTERVAL_METHODS
    assert shift_method("gaussian_gmm").score == GMMScore(4)
    assert shift_method("gaussian_knn").score == KNNScore(10, "angular")
    assert [m.key for m in VARIATIONS.values() if m.spectral_norm] == ["gaussian_gmm_spectral"]


def test_densities_are_fitted_once_for_all_methods() -> None:
    work = SharedWork()
    members = [network("gaussian", seed) for seed in range(5)]
    y = targets()
    for key in ("gaussian_gmm", "gaussian_knn", "gaussian_gmm"):
        for one in members:
            network_answers(key, [one], y, work=work)
    assert work.fits == 10
    network_answers("gaussian_ensemble_gmm", members, y, work=work)
    network_answers("gaussian_gmm_spectral", [members[0]], y, coverage=0.8, work=work)
    assert work.fits == 10
    network_answers("gaussian_gmm_8", [members[0]], y, work=work)
    assert work.fits == 11


def test_answers_are_shared_by_methods_with_the_same_networks() -> None:
    work, one, y = SharedWork(), network("gaussian", 0), targets()
    plain, _ = network_answers("gaussian", [one], y, work=work)
    declining, _ = network_answers("gaussian_variance", [one], y, work=work)
    assert plain.lower is declining.lower
    other, _ = network_answers("gaussian", [one], y, coverage=0.8, work=work)
    assert (other.upper < plain.upper).all()


def test_a_density_does_not_depend_on_who_asks_first() -> None:
    y = targets()
    first, second = SharedWork(), SharedWork()
    members = [network("gaussian", seed) for seed in range(3)]
    network_answers("gaussian_ensemble_gmm", members, y, work=first)
    before = network_answers("gaussian_gmm", [members[2]], y, work=first)[0].score
    after = network_answers("gaussian_gmm", [members[2]], y, work=second)[0].score
    assert (before == after).all()
    other = network_answers("gaussian_gmm", [members[2]], y, work=SharedWork(seed=1))[0].score
    assert np.corrcoef(other, after)[0, 1] > 0.5


def over(key: str, runs: list[list[NetworkOutputs]], **options: Any) -> ShiftResult:
    """A method over runs of one network or one ensemble each."""
    tried = [evaluate_shift(*network_answers(key, own, targets()), **options) for own in runs]
    rule = options.get("rule", "paper")
    return ShiftResult(task="cells", method=key, coverage=0.9, rule=rule, runs=tuple(tried))


def test_a_network_that_diverged_has_no_numbers_and_harms_no_other() -> None:
    good, bad = network("gaussian", 0), network("gaussian", 1)
    for part in bad.outputs:
        bad.outputs[part][:] = np.nan
    for part in bad.features:
        bad.features[part][:] = np.inf
    for key in ("gaussian", "gaussian_gmm", "gaussian_knn", "gaussian_variance"):
        result = over(key, [[good], [bad]])
        value = result.value("test_empirical_coverage")
        assert value.by_run[0] == result.runs[0].tests["full"].empirical_coverage
        assert math.isnan(value.by_run[1])
        assert "1 of 2 runs have no answer" in value.reason
    for key in ("gaussian_ensemble_gmm", "gaussian_ensemble_variance"):
        value = over(key, [[good, bad]]).value("test_empirical_coverage")
        assert math.isnan(value.mean)
        assert value.reason


def test_results_are_those_of_each_run() -> None:
    runs = [[network("gaussian", seed)] for seed in range(3)]
    work = SharedWork()
    result = over("gaussian_gmm", runs, rule="conformal")
    assert result.tests == ("full", "step-1")
    for own, run in zip(runs, result.runs, strict=True):
        val, tests = network_answers("gaussian_gmm", own, targets(), work=work)
        again = evaluate_shift(val, tests, rule="conformal")
        assert again.q == run.q
        assert again.tests["full"].empirical_coverage == run.tests["full"].empirical_coverage


def test_one_network_is_calibrated_as_split_conformal() -> None:
    one, y = network("direct", 0), targets()
    run = over("conformal", [[one]]).runs[0]
    errors = np.sort(np.abs(y["val"] - one.outputs["val"][0].astype(float)))
    assert run.q == errors[36]
    assert run.val.width_all == pytest.approx(2 * errors[36])


def test_published_draws() -> None:
    drawn = paper_runs()
    assert [run[0] for run in drawn.single] == [7, 6, 19, 18, 0]
    assert drawn.ensembles == (
        (7, 2, 13, 11, 9),
        (6, 16, 8, 1, 12),
        (19, 2, 8, 14, 9),
        (18, 17, 0, 6, 13),
        (0, 1, 2, 15, 19),
    )
    assert paper_runs(runs=2).single == drawn.single[:2]


def test_draws_touch_no_global_state() -> None:
    np.random.seed(7)  # noqa: NPY002 - what must be left alone
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    paper_runs()
    assert (np.random.get_state()[1] == before).all()  # noqa: NPY002


@pytest.mark.parametrize(
    ("networks", "members", "ensembles"),
    [
        (5, 5, ((0, 1, 2, 3, 4),)),
        (3, 5, ((0, 1, 2),)),
        (11, 5, ((0, 1, 2, 3, 4), (5, 6, 7, 8, 9))),
        (6, 2, ((0, 1), (2, 3), (4, 5))),
        (1, 5, ((0,),)),
    ],
)
def test_few_networks_are_all_used(
    networks: int, members: int, ensembles: tuple[tuple[int, ...], ...]
) -> None:
    drawn = paper_runs(networks, members)
    assert drawn.single == tuple((place,) for place in range(networks))
    assert drawn.ensembles == ensembles


ONE = {"val": [0.0], "t": [0.0]}


def said(rows: int, n: int = 1) -> NetworkOutputs:
    return NetworkOutputs(outputs={"val": np.ones((rows, n)), "t": np.ones((rows, n))})


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: shift_method("gausian"), "method must be one of .*near: gaussian"),
        (lambda: network_answers("conformal", [], ONE), "one network for conformal, got 0"),
        (
            lambda: network_answers("conformal", [said(1), said(1)], ONE),
            "networks must contain one network for conformal, got 2",
        ),
        (lambda: network_answers("ensemble", [said(1)], ONE), "at least 2 networks for ensemble"),
        (
            lambda: network_answers("gaussian", [said(1)], ONE),
            r"outputs of a gaussian network must have shape \(2, n\), got \(1, 1\) for val",
        ),
        (
            lambda: network_answers("conformal", [said(1)], {"val": [0.0]}),
            "y must contain 'val' and",
        ),
        (lambda: network_answers("conformal", [said(1)], {"t": [0.0]}), "y must contain 'val' and"),
        (
            lambda: network_answers("conformal", [said(1)], {"val": [0.0], "u": [0.0]}),
            "part must be one of val, t, got 'u'",
        ),
        (
            lambda: network_answers("conformal", [said(1)], {"val": [0.0, 1.0], "t": [0.0]}),
            "point must have 2 rows, got 1",
        ),
        (
            lambda: network_answers("ensemble", [said(1), said(1, 2)], ONE),
            "outputs for val must have 1 rows, got 2",
        ),
        (
            lambda: network_answers(
                "gaussian",
                [NetworkOutputs(outputs={"val": -np.ones((2, 1)), "t": np.ones((2, 1))})],
                ONE,
            ),
            "must have sds of at least 0, in val",
        ),
        (
            lambda: network_answers("gaussian_gmm", [said(2)], ONE),
            "features must contain val, got none",
        ),
        (
            lambda: network_answers("gaussian", [said(2)], ONE, coverage=1.0),
            "coverage must be strictly between 0 and 1, got 1.0",
        ),
        (
            lambda: ShiftMethod(key="k", title="t", network="quantile", score="variance"),
            "score must not be the variance for quantile networks",
        ),
        (
            lambda: ShiftMethod(key="k", title="t", network="direct", score="ensemble_variance"),
            "'ensemble_variance' must belong to an ensemble",
        ),
        (lambda: ShiftMethod(key="k", title="t", network="deep"), "network must be one of direct"),
        (
            lambda: ShiftMethod(
                key="k", title="t", network="gaussian", ensemble=True, score=KNNScore()
            ),
            "score of an ensemble must be a GMM or a variance",
        ),
        (lambda: paper_runs(0), "networks must be a whole number of at least 1, got 0"),
    ],
)
def test_bad_input_is_told(make: object, words: str) -> None:
    with pytest.raises(InputError, match=words):
        make()


# Any other method


def bent(n: int = 1200, seed: int = 0) -> Task:
    """A line at home; elsewhere it bends away."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(0.0, 2.0, size=n)
    y = np.where(x < 1.0, x, 1.0 + 3.0 * (x - 1.0)) + 0.1 * rng.normal(size=n)
    table = {"x": x, "twice": 2.0 * x, "y": y, "where": np.where(x < 1.0, "home", "far")}
    return table_task(
        table, "y", split_by="where", home=["home"], features=["x"], name="bent", units="m"
    )


def tried(
    task: Task,
    method: Any,
    *,
    coverage: float = 0.9,
    share: float = SHARE,
    seed: int = 0,
) -> ShiftResult:
    """Any method fitted at home, calibrated there and tried on every test part."""
    fitted = fit_shift(method, task, np.random.default_rng(seed), (coverage,))
    answers = model_answers(fitted, task, coverage)
    run = evaluate_shift(*answers, coverage=coverage, share=share)
    return ShiftResult(
        task=task.name, method="m", coverage=coverage, rule="paper", runs=(run,), share=share
    )


@pytest.mark.parametrize("method", ["linear_t", LinearT(), LinearRegression(), ARDRegression()])
def test_empirical_coverage_holds_at_home_and_falls_elsewhere(method: object) -> None:
    result = tried(bent(), method)
    home, away = (
        result.value("test_empirical_coverage", "home"),
        result.value("test_empirical_coverage", "shift"),
    )
    assert home.low < 0.9 < home.high
    assert away.high < 0.4
    assert result.value("relative_mae_change", "shift").low > 1.0
    assert result.tests == ("shift", "home")


def test_numbers_are_those_of_the_method_fitted_by_hand() -> None:
    task = bent()
    fitted = LinearT().fit(task.train.x, task.train.y, np.random.default_rng(0))
    low, high = fitted.predict(task.val.x).outcome.interval(0.8)
    excess = np.sort(np.maximum(low - task.val.y, task.val.y - high))
    run = tried(task, LinearT(), coverage=0.8).runs[0]
    q = excess[(8 * len(excess)) // 10]
    assert run.q == q
    low, high = fitted.predict(task.test.x).outcome.interval(0.8)
    covered = (low - q <= task.test.y) & (task.test.y <= high + q)
    assert run.tests["shift"].empirical_coverage == covered.mean()


def test_a_selective_method_keeps_what_is_home() -> None:
    task = bent()
    result = tried(task, Selective(LinearT(), KNNScore(3, "euclidean")))
    home, away = result.value("prediction_rate", "home"), result.value("prediction_rate", "shift")
    assert abs(home.mean - 0.95) < 0.05
    assert away.mean < 0.1
    plain = tried(task, LinearT())
    assert (
        result.value("test_empirical_coverage_all").mean
        == plain.value("test_empirical_coverage").mean
    )
    assert result.runs[0].q == plain.runs[0].q
    tight = tried(task, Selective(LinearT(), KNNScore(3, "euclidean")), share=0.5)
    assert abs(tight.value("prediction_rate", "home").mean - 0.5) < 0.15
    named = tried(task, Selective(LinearT(), "gmm"), share=0.5)
    assert abs(named.value("prediction_rate", "home").mean - 0.5) < 0.15


def test_seeds_decide_what_is_drawn_alone() -> None:
    method = Selective(LinearT(), GMMScore(2))
    first, second = (tried(bent(), method, seed=seed).runs[0] for seed in (0, 1))
    assert tried(bent(), method, seed=1).runs[0].threshold == second.threshold
    assert first.q == second.q


@dataclass(frozen=True)
class Brightness(Method):
    """Counts by mean brightness; foreign where bright."""

    @property
    def name(self) -> str:
        return "brightness"

    def fit(self, x: npt.ArrayLike, y: npt.ArrayLike, rng: np.random.Generator) -> Fitted:
        light = np.asarray(x).mean(axis=(1, 2, 3))
        return Line(*np.polyfit(light, np.asarray(y), 1))


@dataclass(frozen=True)
class Line(Fitted):
    slope: float
    intercept: float

    def predict(self, x: npt.ArrayLike) -> Predictions:
        mean = self.slope * self.score(x) + self.intercept
        return Predictions(located("norm", mean, np.ones(len(mean))))

    def score(self, x: npt.ArrayLike) -> npt.NDArray[np.float64]:
        return np.asarray(x).mean(axis=(1, 2, 3))


def pictures() -> Task:
    rng = np.random.default_rng(2)

    def part(name: str) -> Part:
        top = {"train": 100, "val": 100, "full": 200}[name]
        light = rng.uniform(0, top, size=300)
        images = np.clip(light[:, None, None, None] + rng.normal(size=(300, 4, 4, 1)), 0, 255)
        return Part(x=images.astype(np.uint8), y=light, ids=np.arange(300).astype(str))

    return Task(
        name="lights",
        target="light",
        units="lx",
        tests=("full",),
        images=True,
        scaling="imagenet",
        read=lambda name: {name: part(name)},
    )


def test_images_and_a_score_of_ones_own() -> None:
    result = tried(pictures(), Brightness())
    assert abs(result.value("prediction_rate").mean - 0.475) < 0.1
    assert result.value("test_empirical_coverage").low < 0.9
    assert result.value("test_empirical_coverage").high > 0.9


def test_intervals_without_end_have_no_point_but_cover() -> None:
    x = np.linspace(0.0, 1.0, 30)
    task = table_task({"x": x, "y": x, "at": x}, "y", split_by="at", up_to=0.5)
    method = SplitConformal(LinearRegression(), calibration=3, coverages=(0.9,))
    fitted = method.fit(task.train.x, task.train.y, np.random.default_rng(0))
    answers = model_answers(fitted, task)[1]["shift"]
    assert np.isnan(answers.point).all()
    assert np.isinf(answers.upper).all()
    result = tried(task, method)
    assert math.isnan(result.value("test_mae").mean)
    assert "point forecasts are missing" in result.value("test_mae").reason


@dataclass(frozen=True)
class Mute(Method):
    @property
    def name(self) -> str:
        return "mute"

    def fit(self, x: npt.ArrayLike, y: npt.ArrayLike, rng: np.random.Generator) -> Fitted:
        return _Mute()


@dataclass(frozen=True)
class _Mute(Fitted):
    def predict(self, x: npt.ArrayLike) -> Predictions:
        from howsure.predictions import Intervals

        return Predictions(Intervals(np.zeros(len(x)), np.ones(len(x))))


def test_bad_methods_are_told() -> None:
    task = bent(200)
    with pytest.raises(InputError, match="coverage must be strictly between 0 and 1, got 90"):
        tried(task, "linear_t", coverage=90)
    with pytest.raises(InputError, match="near: linear_t"):
        tried(task, "linear")
    with pytest.raises(UnanswerableError, match=r"intervals were given at coverage 0.5, not 0.9"):
        tried(task, SplitConformal(LinearRegression(), coverages=(0.5,)))
    with pytest.raises(UnanswerableError, match="nominal coverage of the intervals is unknown"):
        tried(task, Mute())


@pytest.mark.parametrize(
    ("name", "folder", "least", "most"),
    [
        ("california", "shift_california_housing", 0.62, 0.74),
        ("bike-hours", "shift_bike_hour", 0.35, 0.55),
    ],
)
def test_real_tables_lose_coverage_elsewhere(
    name: str, folder: str, least: float, most: float, data_dir: Callable[[str], Path]
) -> None:
    task = shift_task(name, data_dir(folder))
    result = tried(task, SplitConformal(HistGradientBoostingRegressor(), coverages=(0.9,)))
    home, away = (
        result.value("test_empirical_coverage", "home"),
        result.value("test_empirical_coverage", "shift"),
    )
    assert home.low < 0.9 < home.high
    assert least < away.mean < most
    assert result.value("relative_mae_change", "shift").low > 0.5
