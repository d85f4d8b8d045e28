"""The ten methods of the benchmark, each recomputed from its definition."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import norm

from howsure.core.errors import InputError
from howsure.core.rng import child
from howsure.methods.selective import GMMScore, KNNScore
from howsure.studies.shift.evaluate import evaluate_shift
from howsure.studies.shift.methods import (
    INTERVAL_METHODS,
    SHIFT_METHODS,
    VARIATIONS,
    ShiftMethod,
    paper_runs,
    shift_method,
)
from howsure.studies.shift.networks import (
    NetworkView,
    SharedWork,
    network_answers,
    network_shift,
)
from howsure.studies.shift.published import PUBLISHED_METHODS

FITTED: dict[tuple[str, str, str], np.ndarray] = {}
SIZES = {"train": 60, "val": 40, "full": 30, "step-1": 20}


def targets() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(1)
    return {part: rng.normal(size=n) for part, n in SIZES.items() if part != "train"}


def view(kind: str, seed: int) -> NetworkView:
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
    return NetworkView(outputs=outputs, features=features, name=f"{kind}/{seed}")


def views_of(method: ShiftMethod) -> list[NetworkView]:
    return [view(method.network, seed) for seed in range(5 if method.ensemble else 1)]


def expected(
    method: ShiftMethod, views: list[NetworkView], part: str, coverage: float, work: SharedWork
) -> tuple[np.ndarray, ...]:
    """Point, lower, upper and score by loops over rows."""
    key = method.key
    z = norm.ppf(1 - (1 - coverage) / 2)
    columns = []
    for i in range(SIZES[part]):
        said = [one.outputs[part][:, i].astype(float) for one in views]
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
        columns.append((*row, _score(key, views, part, i, said, work)))
    return tuple(np.array(column) for column in zip(*columns, strict=True))


def _score(
    key: str,
    views: list[NetworkView],
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
    if "knn" in key:
        score = shift_method(key).score
        train = views[0].features["train"].astype(float)
        own = views[0].features[part][i].astype(float)
        apart = np.linalg.norm(train - own, axis=1)
        if score.metric == "angular":
            cosine = train @ own / np.linalg.norm(train, axis=1) / np.linalg.norm(own)
            apart = np.sqrt(2 - 2 * cosine)
        return np.sort(apart)[: score.neighbours].mean()
    if "gmm" in key:
        densities = []
        for one in views:
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
    own = views_of(method)
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
    assert tuple(SHIFT_METHODS) == PUBLISHED_METHODS[:10]
    assert set(PUBLISHED_METHODS[10:]) <= set(VARIATIONS)
    assert tuple(SHIFT_METHODS)[:5] == INTERVAL_METHODS
    assert shift_method("gaussian_gmm").score == GMMScore(4)
    assert shift_method("gaussian_knn").score == KNNScore(10, "angular")
    assert [m.key for m in VARIATIONS.values() if m.spectral_norm] == ["gaussian_gmm_spectral"]


def test_densities_are_fitted_once_for_all_methods() -> None:
    work = SharedWork()
    members = [view("gaussian", seed) for seed in range(5)]
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
    work, one, y = SharedWork(), view("gaussian", 0), targets()
    plain, _ = network_answers("gaussian", [one], y, work=work)
    declining, _ = network_answers("gaussian_variance", [one], y, work=work)
    assert plain.lower is declining.lower
    other, _ = network_answers("gaussian", [one], y, coverage=0.8, work=work)
    assert (other.upper < plain.upper).all()


def test_a_density_does_not_depend_on_who_asks_first() -> None:
    y = targets()
    first, second = SharedWork(), SharedWork()
    members = [view("gaussian", seed) for seed in range(3)]
    network_answers("gaussian_ensemble_gmm", members, y, work=first)
    before = network_answers("gaussian_gmm", [members[2]], y, work=first)[0].score
    after = network_answers("gaussian_gmm", [members[2]], y, work=second)[0].score
    assert (before == after).all()
    other = network_answers("gaussian_gmm", [members[2]], y, work=SharedWork(seed=1))[0].score
    assert np.corrcoef(other, after)[0, 1] > 0.5


def test_a_network_that_diverged_has_no_numbers_and_harms_no_other() -> None:
    good, bad = view("gaussian", 0), view("gaussian", 1)
    for part in bad.outputs:
        bad.outputs[part][:] = np.nan
    for part in bad.features:
        bad.features[part][:] = np.inf
    for key in ("gaussian", "gaussian_gmm", "gaussian_knn", "gaussian_variance"):
        result = network_shift("cells", key, [[good], [bad]], targets())
        value = result.value("test_coverage")
        assert value.by_run[0] == result.runs[0].tests["full"].coverage
        assert math.isnan(value.by_run[1])
        assert "1 of 2 runs have no answer" in value.reason
    for key in ("gaussian_ensemble_gmm", "gaussian_ensemble_variance"):
        value = network_shift("cells", key, [[good, bad]], targets()).value("test_coverage")
        assert math.isnan(value.mean)
        assert value.reason


def test_results_are_those_of_each_run() -> None:
    y = targets()
    runs = [[view("gaussian", seed)] for seed in range(3)]
    result = network_shift(
        "cells", "gaussian_gmm", runs, y, rule="conformal", units="nuclei", options={"epochs": 3.0}
    )
    assert (result.task, result.method, result.rule, result.units) == (
        "cells",
        "gaussian_gmm",
        "conformal",
        "nuclei",
    )
    assert result.tests == ("full", "step-1")
    for views, run in zip(runs, result.runs, strict=True):
        val, tests = network_answers("gaussian_gmm", views, y)
        again = evaluate_shift(val, tests, rule="conformal")
        assert again.q == run.q
        assert again.tests["full"].coverage == run.tests["full"].coverage
    assert result.records()[0].options["epochs"] == 3.0


def test_one_network_is_calibrated_as_split_conformal() -> None:
    one, y = view("direct", 0), targets()
    run = network_shift("cells", "conformal", [[one]], y).runs[0]
    errors = np.sort(np.abs(y["val"] - one.outputs["val"][0].astype(float)))
    assert run.q == errors[36]
    assert run.val_width == pytest.approx(2 * errors[36])


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


def said(rows: int, n: int = 1) -> NetworkView:
    return NetworkView(outputs={"val": np.ones((rows, n)), "t": np.ones((rows, n))})


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: shift_method("gausian"), "method must be one of .*near: gaussian"),
        (lambda: network_answers("conformal", [], ONE), "one network for conformal, got 0"),
        (
            lambda: network_answers("conformal", [said(1), said(1)], ONE),
            "views must hold one network for conformal, got 2",
        ),
        (lambda: network_answers("ensemble", [said(1)], ONE), "at least 2 networks for ensemble"),
        (
            lambda: network_answers("gaussian", [said(1)], ONE),
            r"outputs of a gaussian network must have shape \(2, n\), got \(1, 1\) for val",
        ),
        (lambda: network_answers("conformal", [said(1)], {"val": [0.0]}), "y must hold 'val' and"),
        (lambda: network_answers("conformal", [said(1)], {"t": [0.0]}), "y must hold 'val' and"),
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
                [NetworkView(outputs={"val": -np.ones((2, 1)), "t": np.ones((2, 1))})],
                ONE,
            ),
            "must hold sds of at least 0, in val",
        ),
        (
            lambda: network_answers("gaussian_gmm", [said(2)], ONE),
            "features must hold val, got none",
        ),
        (
            lambda: network_answers("gaussian", [said(2)], ONE, coverage=1.0),
            "coverage must lie strictly between 0 and 1, got 1.0",
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
