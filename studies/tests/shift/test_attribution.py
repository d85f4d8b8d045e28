"""Where coverage is lost: worlds of a few inputs in which each term is known exactly."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from howsure.core.errors import InputError
from howsure.core.rng import child
from howsure_studies.engine import Plan, Store, combined, run, study_of, survey, trials_of
from howsure_studies.shift import Answers, ShiftResult, evaluate_shift
from howsure_studies.shift.attribution import ATTRIBUTED, SharedInputs, loss_terms

# Five inputs: their share at home and elsewhere, and how often y is missed there.
P = np.array([0.4, 0.3, 0.2, 0.1, 0.0])
Q = np.array([0.1, 0.1, 0.2, 0.3, 0.3])
MISSED_P = np.array([0.05, 0.1, 0.2, 0.1, 0.0])
MISSED_Q = np.array([0.05, 0.2, 0.2, 0.4, 0.8])


def exact() -> np.ndarray:
    """E_P R_P, and the terms of its change, by sums over the five inputs."""
    s = P * Q / (P + Q)
    s /= s.sum()
    steps = np.array([P @ MISSED_P, s @ MISSED_P, s @ MISSED_Q, Q @ MISSED_Q])
    return np.r_[steps[0], np.diff(steps)]


def drawn(n: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Inputs at home and elsewhere, and whether y is missed."""
    rng = child(seed, "drawn")
    x, new = rng.choice(5, size=n, p=P), rng.choice(5, size=2 * n, p=Q)
    return x, new, rng.uniform(size=n) < MISSED_P[x], rng.uniform(size=2 * n) < MISSED_Q[new]


def ratio(x: np.ndarray) -> np.ndarray:
    return np.where(P[x] > 0, Q[x] / np.maximum(P[x], 1e-12), 1e12)


def test_terms_of_a_table_of_inputs_are_exact() -> None:
    """Rows in just the shares of the world, each a mean loss: no chance is left."""
    x = np.repeat(np.arange(5), (1000 * P).astype(int))
    new = np.repeat(np.arange(5), np.rint(1000 * Q).astype(int))
    found = loss_terms(MISSED_P[x], MISSED_Q[new], ratio(x), ratio(new))
    np.testing.assert_allclose(found, exact(), atol=1e-9)
    assert found.sum() == pytest.approx(Q @ MISSED_Q)
    counted = loss_terms(
        MISSED_P, MISSED_Q, ratio(np.arange(5)), ratio(np.arange(5)), 1000 * P, 1000 * Q
    )
    np.testing.assert_allclose(counted, exact(), atol=1e-9)


@pytest.mark.parametrize(
    ("p", "q", "missed_p", "missed_q", "which"),
    [
        ([0.9, 0.1], [0.1, 0.9], [0.1, 0.5], [0.1, 0.5], (1, 3)),  # harder x, in both
        ([0.5, 0.5], [0.5, 0.5], [0.1, 0.1], [0.1, 0.7], (2,)),  # y given x
        ([1.0, 0.0], [0.5, 0.5], [0.1, 0.0], [0.1, 0.9], (3,)),  # an x that home has not
    ],
)
def test_a_single_cause_fills_its_own_term(
    p: list[float],
    q: list[float],
    missed_p: list[float],
    missed_q: list[float],
    which: tuple[int, ...],
) -> None:
    with np.errstate(divide="ignore"):
        r = np.minimum(np.array(q) / np.array(p), 1e15)
    found = loss_terms(missed_p, missed_q, r, r, p, q)
    others = [term for term in (1, 2, 3) if term not in which]
    np.testing.assert_allclose(found[others], 0.0, atol=1e-12)
    assert (found[list(which)] > 0.1).all()


@pytest.mark.slow
def test_learnt_ratios_give_the_terms_within_their_errors() -> None:
    """Classifiers that did not see a row; the mean over draws of the world is the truth."""
    found = []
    for seed in range(8):
        x, new, home, away = drawn(3000, seed)
        shared = SharedInputs.learnt(x[:, None], new[:, None], 0, child(seed, "shared"))
        assert np.log(shared.home[0][x == 1]).mean() == pytest.approx(np.log(1 / 3), abs=0.25)
        found.append(loss_terms(home, away, shared.home[0], shared.away[0]))
    terms = np.array(found)
    error = terms.std(axis=0, ddof=1) / np.sqrt(len(terms))
    assert (np.abs(terms.mean(axis=0) - exact()) < 3.5 * error + 0.003).all()


def result_of(seed: int, draws: int, n: int = 1500) -> ShiftResult:
    """A method whose intervals miss y as the world says."""
    x, new, home, away = drawn(n, seed)

    def part(missed: np.ndarray) -> Answers:
        y = np.where(missed, 2.0, 0.0)
        return Answers(y=y, point=0 * y, lower=0 * y - 1, upper=0 * y + 1)

    done = evaluate_shift(part(home), {"shift": part(away), "home": part(home)}, rule="own")
    shared = SharedInputs.learnt(x[:, None], new[:, None], draws, child(seed, "shared"))
    result = ShiftResult(task="five", method="mine", coverage=0.9, rule="own", runs=(done,))
    return replace(result, values=result.losses(shared, child(seed, "losses")))


@pytest.mark.rate
def test_the_errors_are_those_of_other_draws_of_the_world() -> None:
    every = [result_of(seed, 25) for seed in range(20, 36)]
    for measure, truth in zip(ATTRIBUTED[1:4], exact()[1:], strict=True):
        values = [result.value(measure) for result in every]
        means = np.array([value.mean for value in values])
        told = np.array([value.standard_error for value in values])
        assert 0.55 < told.mean() / means.std(ddof=1) < 1.9, measure
        inside = sum(value.low <= truth <= value.high for value in values)
        assert inside >= 13, measure
    common = 2 * (P * Q / (P + Q)).sum()
    means = np.array([result.value("inputs_in_common").mean for result in every])
    assert means.mean() == pytest.approx(common, abs=0.02)


def test_the_chance_of_validation_rows_is_in_the_errors() -> None:
    """Home as it is calibrated: √(.09 (1/n + 1/m)) for n test and m validation rows."""
    found = []
    for seed in range(6):
        rng = child(seed, "home")
        val, away, home = (
            Answers(y=rng.normal(size=n), point=np.zeros(n), lower=np.zeros(n), upper=np.zeros(n))
            for n in (500, 1000, 2000)
        )
        done = evaluate_shift(val, {"shift": away, "home": home})
        redrawn = SharedInputs(
            home=np.ones((151, 2000)),
            away=np.ones((151, 1000)),
            home_counts=rng.multinomial(2000, np.full(2000, 1 / 2000), size=151),
            away_counts=rng.multinomial(1000, np.full(1000, 1 / 1000), size=151),
        )
        result = ShiftResult(task="t", method="m", coverage=0.9, rule="paper", runs=(done,))
        told = {value.measure: value.standard_error for value in result.losses(redrawn, rng)}
        found.append([told["loss_home"], told["loss_y_given_x"]])
    means = np.sqrt(np.square(found).mean(axis=0))
    assert means[0] == pytest.approx(np.sqrt(0.09 * (1 / 2000 + 1 / 500)), rel=0.15)
    assert means[1] == pytest.approx(np.sqrt(0.09 * (1 / 2000 + 1 / 1000)), rel=0.15)


def test_terms_of_a_result_make_up_what_is_below_nominal() -> None:
    result = result_of(5, 4)
    below = 0.9 - result.value("test_empirical_coverage").mean
    terms = [result.value(name).mean for name in ATTRIBUTED[:4]]
    assert sum(terms) == pytest.approx(below, abs=1e-12)
    assert terms[0] == pytest.approx(0.9 - result.value("test_empirical_coverage", "home").mean)
    short = result.without_runs()
    assert [short.value(name).mean for name in ATTRIBUTED[:4]] == terms
    assert {record.metric for record in result.records()} > set(ATTRIBUTED)
    assert repr(short.records()) == repr(result.records())
    none = replace(result, values=())
    assert "not requested" in none.value("loss_x").reason
    assert not {record.metric for record in none.records()} & set(ATTRIBUTED)


def test_rejected_rows_leave_the_ratio_of_those_that_are_accepted() -> None:
    """Inputs 3 and 4 are rejected: what is left is the world of the first three."""
    x, new, home, away = drawn(4000, 6)

    def part(at: np.ndarray, missed: np.ndarray) -> Answers:
        y = np.where(missed, 2.0, 0.5)
        return Answers(y=y, point=0 * y, lower=0 * y - 1, upper=0 * y + 1, score=(at > 2) * 1.0)

    val = part(np.repeat([0, 4], [99, 1]), np.zeros(100, dtype=bool))
    done = evaluate_shift(val, {"shift": part(new, away), "home": part(x, home)}, rule="own")
    exactly = SharedInputs(
        home=np.stack([ratio(x)] * 3),
        away=np.stack([ratio(new)] * 3),
        home_counts=np.ones((3, len(x)), dtype=int),
        away_counts=np.ones((3, len(new)), dtype=int),
    )
    result = ShiftResult(task="t", method="m", coverage=0.9, rule="own", runs=(done,), share=0.9)
    found = {value.measure: value.mean for value in result.losses(exactly, child(0, "none"))}
    kept_x, kept_new = x[x < 3], new[new < 3]
    p, q = P[:3] / P[:3].sum(), Q[:3] / Q[:3].sum()
    expected = loss_terms(home[x < 3], away[new < 3], (q / p)[kept_x], (q / p)[kept_new])
    assert found["loss_y_given_x"] == pytest.approx(expected[2], abs=0.01)
    assert found["loss_support"] == pytest.approx(expected[3], abs=0.01)
    assert found["inputs_in_common"] == pytest.approx(2 * (p * q / (p + q)).sum(), abs=0.02)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (([0.0], [1.0, 0.0], [1.0], [1.0]), "away_ratio must have 2"),
        (([0.0], [1.0], [-1.0], [1.0]), "must be at least 0, got a negative one"),
        (([0.0], [np.nan], [1.0], [1.0]), "away must contain finite numbers"),
        (([0.0], [1.0], [1.0], [1.0], [1.0, 1.0]), "home_counts must have 1"),
    ],
)
def test_what_cannot_be_weighed_is_refused(given: tuple[list[float], ...], words: str) -> None:
    with pytest.raises(InputError, match=words):
        loss_terms(*given)  # type: ignore[arg-type]


def test_inputs_must_be_told_apart_in_the_same_columns() -> None:
    with pytest.raises(InputError, match="away must have 1 column"):
        SharedInputs.learnt(np.zeros((5, 1)), np.zeros((5, 2)), 0, child(0, "none"))
    with pytest.raises(InputError, match="at least 2 rows"):
        SharedInputs.learnt(np.zeros((1, 1)), np.zeros((5, 1)), 0, child(0, "none"))


# In a plan


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Errors grow with x, and x with the years: all that is lost, is lost to x."""
    rng = np.random.default_rng(7)
    year = rng.integers(2010, 2020, size=3000)
    x = rng.normal(size=3000) + (year > 2014)
    y = np.exp(0.7 * x) * rng.normal(size=3000)
    path = tmp_path_factory.mktemp("plan") / "errors.csv"
    rows = zip(year, x, y, strict=True)
    path.write_text("year,x,y\n" + "".join(f"{a},{b:.4f},{c:.4f}\n" for a, b, c in rows))
    return path


def plan_of(table: Path, **options: object) -> Plan:
    world = {"table": str(table), "target": "y", "split_by": "year", "up_to": 2014}
    weighted = {"method": "weighted_conformal", "regressor": "linear"}
    return Plan(
        name="mine",
        study="shift",
        worlds={"errors": world},
        methods={
            "plain": {"method": "split_conformal", "regressor": "linear"},
            "weighed": weighted,
        },
        options={"coverages": [0.9], "runs": 1, **options},
    )


@pytest.mark.slow
def test_a_plan_tells_what_is_lost_and_weights_win_it_back(table: Path, tmp_path: Path) -> None:
    plan, store = plan_of(table, folds=3, draws=10), Store(tmp_path)
    assert run(plan, store).failed == 0
    plain, weighed = combined(plan, survey(plan, store), store).results["errors"]
    assert (plain.rule, plain.run_count) == ("paper", 1)
    assert (weighed.rule, weighed.run_count) == ("own", 3)
    assert all(each.q == 0.0 for each in weighed.runs)
    assert plain.value("test_empirical_coverage").mean < 0.82
    assert weighed.record("test_empirical_coverage").upper > 0.9
    assert weighed.value("test_empirical_coverage").mean > 0.86
    to_x, to_y = plain.value("loss_x"), plain.value("loss_y_given_x")
    assert to_x.mean + plain.value("loss_support").mean > 0.06
    assert to_y.low < 0.0 < to_y.high
    page = study_of("shift").page(combined(plan, survey(plan, store), store))
    assert "loss_x" in {record.metric for record in page.records}


def test_methods_keep_their_addresses_whether_or_not_losses_are_asked(table: Path) -> None:
    def addresses(plan: Plan) -> dict[str, str]:
        return {
            f"{trial.title} {trial.identity.get('run')}": trial.address for trial in trials_of(plan)
        }

    without, asked = addresses(plan_of(table)), addresses(plan_of(table, draws=3))
    assert set(asked) - set(without) == {"inputs home and elsewhere on errors None"}
    assert all(asked[title] == address for title, address in without.items())
    assert len(without) == 1 + 4


def test_each_run_of_a_method_for_elsewhere_has_its_own_validation_rows(table: Path) -> None:
    from howsure_studies.shift.methods import fold_of
    from howsure_studies.shift.study import make_task

    trial = next(trial for trial in trials_of(plan_of(table)) if trial.labels["method"] == "plain")
    task = make_task(trial.identity["world"], trial.context["files"])
    folds = [fold_of(task, number, 0) for number in range(4)]
    held = [set(fold.val.ids) for fold in folds]
    assert all(len(ids) == len(task.val) for ids in held)
    assert len(set.union(*held)) == 4 * len(task.val)
    home = set(task.train.ids) | set(task.val.ids)
    for fold, ids in zip(folds, held, strict=True):
        assert set(fold.train.ids) == home - ids
        assert np.array_equal(fold.test.x, task.test.x)
    with pytest.raises(InputError, match="folds must be at most 4 for"):
        fold_of(task, 4, 0)
