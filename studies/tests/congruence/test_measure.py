"""The core of the congruence protocol: measures against direct formulas, spreads, failures."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
import pytest

import howsure
from extras import needs
from howsure.core.errors import InputError, UnanswerableError
from howsure.core.progress import subscribe
from howsure.core.rng import child
from howsure.predictions import Distribution, EvalSet, Intervals, Samples
from howsure.predictions.counts import DoublePoisson
from howsure.topics.calibration.curve import calibration_error
from howsure.topics.congruence.predictive import Normals
from howsure.topics.congruence.reference import cce
from howsure_studies.congruence import (
    TRUTH,
    CongruenceMeasure,
    CongruenceRun,
    answer,
    compare,
    fit_methods,
    head_methods,
    wave_task,
)
from howsure_studies.congruence.measure import calibration_of, congruence_at, evaluate, losses
from howsure_studies.congruence.networks import OnFeatures
from howsure_studies.congruence.worlds import array_task
from howsure_studies.methods.interface import Fitted, Predictions
from howsure_studies.methods.linear import LinearT

DRAWN = CongruenceMeasure(draws=1)
EXACT = CongruenceMeasure(draws=None, bootstraps=0, bandwidth=1.0, kernel="rbf")


def normal_set(n: int = 80, *, bias: float = 0.0, seed: int = 0) -> EvalSet:
    rng = child(seed, "test congruence")
    x = rng.uniform(0.0, 6.0, n)
    y = np.cos(x) + 0.5 * rng.standard_normal(n)
    law = Distribution.normal(np.cos(x) + bias, np.full(n, 0.5))
    return EvalSet.checked(y, law, embedding=x, model="normal")


@pytest.mark.slow
def test_a_study_and_an_assessment_tell_one_number() -> None:
    """Both take the exact embedding, one kernel and one λ by default."""
    held = normal_set(120, bias=0.3)
    study = evaluate(held, measure=CongruenceMeasure(bootstraps=0)).values["cce"]
    told = howsure.assess(
        howsure.Table(held.y, held.predictions[0], embedding=held.embedding, model="normal")
    )
    assert study == pytest.approx(told.value("mean_cce"), rel=1e-8)


def dense_cce(held: EvalSet, grid: np.ndarray, gamma: float, ridge: float) -> np.ndarray:
    """‖Σ αᵢ (φ(yᵢ) − μᵢ)‖ by dense formulas for normal predictions."""
    assert held.embedding is not None
    x, y, n = held.embedding[:, 0], held.y, held.n
    mean, sd = held.predictions[0].point(), held.predictions[0].sd()
    k = 1.0 / (2.0 * y.var(ddof=1))

    def average(m: np.ndarray, s: np.ndarray, m2: np.ndarray, s2: np.ndarray) -> np.ndarray:
        wide = 1.0 + 2.0 * k * np.add.outer(s**2, s2**2)
        return np.asarray(np.exp(-k * np.subtract.outer(m, m2) ** 2 / wide) / np.sqrt(wide))

    zero = np.zeros(n)
    gram = (
        average(y, zero, y, zero)
        - average(y, zero, mean, sd)
        - average(mean, sd, y, zero)
        + average(mean, sd, mean, sd)
    )
    near = np.exp(-gamma * np.subtract.outer(x, x) ** 2)
    alpha = np.linalg.solve(
        near + n * ridge * np.eye(n), np.exp(-gamma * np.subtract.outer(x, grid) ** 2)
    )
    return np.asarray(np.sqrt(np.einsum("ig,ij,jg->g", alpha, gram, alpha)))


def test_exact_measure_is_the_dense_formula() -> None:
    held, grid = normal_set(bias=0.4), np.linspace(0.0, 6.0, 9)
    found = congruence_at(held, grid, EXACT, np.random.default_rng(0))
    np.testing.assert_allclose(found, dense_cce(held, grid, 1.0, 0.1), atol=1e-6)


def test_run_holds_what_its_parts_say() -> None:
    held = normal_set(bias=0.4)
    run = evaluate(held, measure=EXACT, task="t", seed=3)
    assert held.embedding is not None
    direct = cce(held.embedding, held.y, Normals(held.predictions[0].point(), np.full(80, 0.5)))
    alike = cce(
        held.embedding,
        held.y,
        Normals(held.predictions[0].point(), np.full(80, 0.5)),
        bandwidth=1.0,
    )
    assert direct.mean != alike.mean
    assert run.value("cce") == pytest.approx(alike.mean, abs=1e-9)
    z = (held.y - held.predictions[0].point()) / 0.5
    nll = 0.5 * z**2 + np.log(0.5) + 0.5 * np.log(2 * np.pi)
    np.testing.assert_allclose(run.rows["nll"], nll)
    assert run.value("nll") == pytest.approx(nll.mean())
    assert run.value("mae") == pytest.approx(np.abs(z * 0.5).mean())
    plain = calibration_error(held.predictions[0].cdf(held.y), levels=50, weighting="frequency")
    assert run.value("ece") == plain.value == run.value("ece_exact")
    assert math.isnan(run.value("cce_null"))
    assert math.isnan(run.monte_carlo_sd)
    assert math.isnan(run.data_sd("cce"))


def test_a_null_is_that_of_a_right_model() -> None:
    right = CongruenceMeasure(draws=None, bootstraps=0, replicates=49)
    good, bad = (
        evaluate(normal_set(200), measure=right),
        evaluate(normal_set(200, bias=1.0), measure=right),
    )
    assert good.value("cce") < 2.0 * good.value("cce_null")
    assert bad.value("cce") > 4.0 * bad.value("cce_null")
    drawn = evaluate(
        normal_set(200), measure=CongruenceMeasure(draws=1, bootstraps=0, replicates=9, samplings=2)
    )
    assert drawn.value("cce_null") > good.value("cce_null")


def test_spreads_are_over_draws_and_over_bootstrap_samples() -> None:
    held = normal_set()
    run = evaluate(held, measure=CongruenceMeasure(draws=1, samplings=3, bootstraps=4))
    assert run.repeats.shape == (3,)
    assert run.bootstraps["cce"].shape == (4, 3)
    assert run.bootstraps["ece"].shape == run.bootstraps["nll"].shape == (4,)
    values = run.bootstraps["cce"].ravel()
    mean = values.sum() / 12
    sd = math.sqrt(((values - mean) ** 2).sum() / 11)
    assert run.variation("cce") == pytest.approx(sd / mean)
    assert run.monte_carlo_sd == pytest.approx(float(np.std(run.repeats, ddof=1)))
    rows = child(0, "congruence bootstrap", 2).integers(80, size=80)
    sample = held.take(rows)
    assert run.bootstraps["ece"][2] == calibration_of(sample, DRAWN, exact=False)
    drawn = congruence_at(
        sample,
        None,
        CongruenceMeasure(draws=1),
        child(0, "congruence bootstrap draws", "normal", 2, 1),
    )
    assert run.bootstraps["cce"][2, 1] == pytest.approx(drawn.mean())


def test_a_fixed_grid_gives_a_band_at_the_rows() -> None:
    run = evaluate(
        normal_set(), measure=CongruenceMeasure(draws=1, grid="fixed", bootstraps=3, samplings=2)
    )
    assert run.rows["cce"].shape == run.rows["cce_sd"].shape == (80,)
    assert (run.rows["cce_sd"] > 0.0).all()
    assert run.rows["cce"].mean() == pytest.approx(run.bootstrap_mean("cce"))


def test_another_reference_needs_no_labels_of_the_rows_judged() -> None:
    val, test = normal_set(60, seed=1), normal_set(80)
    unlabelled = EvalSet.checked(
        np.zeros(80), test.predictions, embedding=test.embedding, model="normal"
    )
    how = CongruenceMeasure(draws=1, bootstraps=2, samplings=2)
    first, second = (evaluate(held, reference=val, measure=how) for held in (test, unlabelled))
    np.testing.assert_array_equal(first.rows["cce"], second.rows["cce"])
    np.testing.assert_array_equal(first.bootstraps["cce"], second.bootstraps["cce"])
    assert first.value("nll") != second.value("nll")


def test_another_reference_is_resampled_on_its_own() -> None:
    val, test = normal_set(60, seed=1), normal_set(40)
    assert test.embedding is not None
    how = CongruenceMeasure(draws=1, bootstraps=3, samplings=1)
    run = evaluate(test, reference=val, measure=how)
    for number in range(3):
        rng = child(0, "congruence bootstrap", number)
        rows, chosen = rng.integers(40, size=40), rng.integers(60, size=60)
        drawn = child(0, "congruence bootstrap draws", "normal", number, 0)
        alone = congruence_at(val.take(chosen), test.embedding[rows], how, drawn)
        assert run.bootstraps["cce"][number, 0] == pytest.approx(alone.mean())


def test_double_poisson_likelihood_as_published_lacks_its_constant() -> None:
    law = Distribution("double_poisson", {"mu": [3.0, 8.0], "phi": [2.0, 0.5]})
    held = EvalSet.checked([2.0, 9.0], law, embedding=[0.0, 1.0])
    found = losses(held)
    frozen = DoublePoisson([3.0, 8.0], [2.0, 0.5])
    np.testing.assert_allclose(found["nll"], -frozen.log_pmf([2.0, 9.0]))
    np.testing.assert_allclose(found["nll_unnormalised"], -frozen.log_pmf([2.0, 9.0], "none"))
    samples = EvalSet.checked([2.0, 9.0], Samples([[1.0, 2.0], [8.0, 9.0]]), embedding=[0.0, 1.0])
    assert set(losses(samples)) == {"error"}


class Broken(Fitted):
    """Has failed."""

    def predict(self, x: object) -> Predictions:
        raise UnanswerableError("it failed")


class Bands(Fitted):
    """Knows intervals alone."""

    def predict(self, x: object) -> Predictions:
        n = len(np.asarray(x))
        return Predictions(Intervals(np.zeros(n), np.ones(n), coverage=0.9))


def test_methods_without_an_answer_have_a_reason() -> None:
    task = wave_task(rows=60)
    fits = [{"broken": Broken(), "bands": Bands()}]
    how = CongruenceMeasure(draws=1, bootstraps=0, samplings=1)
    result = compare({}, [task], fits=fits, measure=how, truth=True)
    assert result.models == ("broken", "bands", TRUTH)
    for model, reason in (("broken", "it failed"), ("bands", "needs distributions or samples")):
        assert math.isnan(result.mean(model, "cce"))
        (record,) = [
            one for one in result.records() if one.model == model and one.metric == "mean_cce"
        ]
        assert reason in record.reason
    assert 0.0 < result.mean(TRUTH, "cce") < 0.3
    assert len(result.table()) == 3


def test_any_method_and_any_embedding() -> None:
    rng = np.random.default_rng(0)
    images = rng.random((120, 4, 4, 1))
    task = array_task("sums", images, images.sum(axis=(1, 2, 3)), seed=1)
    methods = {"linear": OnFeatures(method=LinearT(), components=3)}
    told: list[tuple[str, int, int]] = []
    with subscribe(lambda *step: told.append(step)):
        fits = fit_methods(methods, [task])
    held = answer(fits[0]["linear"], task.test, model="linear")
    assert held.embedding is not None
    assert held.embedding.shape == (24, 3)
    how = CongruenceMeasure(draws=1, bootstraps=2, samplings=2)
    with subscribe(lambda *step: told.append(step)):
        result = compare(methods, [task], measure=how, reference="val")
    assert math.isfinite(result.mean("linear", "cce"))
    stages = {stage.partition(": ")[0] for stage, _, _ in told}
    assert stages == {"fitting linear", "congruence of linear"}
    assert all(0 <= done <= total for _, done, total in told)
    with pytest.raises(InputError, match="embed must be given"):
        answer(Broken(), task.test)


def test_adding_a_method_changes_no_other() -> None:
    task = wave_task(rows=60)
    how = CongruenceMeasure(draws=1, bootstraps=2, samplings=2)
    one = {"linear": LinearT()}
    two = {"other": LinearT(), **one}
    first, second = (compare(given, [task], measure=how) for given in (one, two))
    np.testing.assert_array_equal(
        first.of("linear")[0].bootstraps["cce"], second.of("linear")[0].bootstraps["cce"]
    )


def test_records_have_the_error_of_the_mean_over_runs() -> None:
    def run(seed: int, value: float) -> CongruenceRun:
        values: Mapping[str, float] = {"cce": value, "cce_null": 0.1}
        return CongruenceRun(
            task="t",
            model="m",
            seed=seed,
            n=10,
            values=values,
            repeats=np.array([value]),
            bootstraps={"cce": np.array([[0.1], [0.3]])},
            rows={},
        )

    from howsure_studies.congruence import CongruenceResult

    both = CongruenceResult(runs=(run(0, 0.2), run(1, 0.4)))
    record = next(one for one in both.records() if one.metric == "mean_cce")
    assert record.value == pytest.approx(0.3)
    assert record.standard_error == pytest.approx(math.sqrt(0.02) / math.sqrt(2))
    assert record.null == pytest.approx(0.1)
    alone = CongruenceResult(runs=(run(0, 0.2),))
    record = next(one for one in alone.records() if one.metric == "mean_cce")
    assert record.standard_error == pytest.approx(math.sqrt(0.02))
    with pytest.raises(InputError, match="model must be one of"):
        both.of("other")
    with pytest.raises(InputError, match="measure must be one of"):
        run(0, 0.2).value("crps")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"draws": 0}, "draws must be"),
        ({"samplings": 0}, "samplings must be"),
        ({"bootstraps": -1}, "bootstraps must be"),
        ({"grid": "free"}, "grid must be"),
    ],
)
def test_bad_options_are_refused(options: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        CongruenceMeasure(**options)  # type: ignore[arg-type]


def test_bad_studies_are_refused() -> None:
    task = wave_task(rows=60)
    with pytest.raises(InputError, match="reference must be"):
        compare({"linear": LinearT()}, [task], reference="train")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="at least one"):
        fit_methods({}, [task])
    with pytest.raises(InputError, match="seeds one per task"):
        fit_methods({"linear": LinearT()}, [task], seeds=[1, 2])
    with pytest.raises(UnanswerableError, match="embedding"):
        evaluate(EvalSet.checked([0.0, 1.0], Distribution.normal([0.0, 1.0], [1.0, 1.0])))


def test_heads_train_as_one_and_as_alone() -> None:
    needs("torch")
    tasks = [wave_task(seed, rows=100) for seed in range(2)]
    options = {"epochs": 3, "layers": (8, 8)}
    many = fit_methods(head_methods(["poisson", "gaussian"], **options), tasks)
    alone = fit_methods(head_methods(["gaussian"], **options), tasks[1:], seeds=[1])
    x = tasks[1].test.x
    one, other = (fit["gaussian"].predict(x).outcome for fit in (many[1], alone[0]))
    np.testing.assert_allclose(one.point(), other.point(), rtol=1e-4)
    assert (many[0]["poisson"].predict(x).outcome.point() != one.point()).all()


def test_correctness_on_the_wave_runs_and_tells_the_truth_from_a_line() -> None:
    how = CongruenceMeasure(draws=5, grid="fixed", samplings=2, bootstraps=2)
    tasks = [wave_task(seed, rows=300) for seed in range(2)]
    result = compare({"line": LinearT()}, tasks, measure=how, truth=True)
    assert result.models == ("line", TRUTH)
    assert result.mean("line", "cce") > 2.0 * result.mean(TRUTH, "cce")
    assert [run.seed for run in result.of("line")] == [0, 1]
    assert result.options["draws"] == 5.0
