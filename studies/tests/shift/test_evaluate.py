"""Calibration at home and numbers on each part, against their definitions."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from generated import examples
from howsure.core.errors import InputError
from howsure_studies.shift import Answers, ShiftRun, calibration_shift, evaluate_shift


def answers(seed: int, n: int, *, far: float = 0.0, score: bool = True) -> Answers:
    rng = np.random.default_rng(seed)
    x = rng.normal(far, 1.0, size=n)
    point, half = x + rng.normal(0.0, 0.2, size=n), rng.uniform(0.2, 1.5, size=n)
    return Answers(
        y=x + rng.normal(size=n),
        point=point,
        lower=point - half,
        upper=point + half,
        score=np.abs(x) if score else None,
    )


def offsets(*, excess: np.ndarray) -> Answers:
    """Answers whose excesses are these."""
    return Answers(y=excess, point=0 * excess, lower=0 * excess - 1e9, upper=0 * excess)


@pytest.mark.parametrize("alpha", ["0.1", "0.2", "0.05", "0.3", "0.01", "0.5"])
def test_ranks_are_those_of_exact_arithmetic(alpha: str) -> None:
    coverage = 1 - Fraction(alpha)
    for n in [*range(1, 120), 500, 999, 1000, 1288, 2000, 6116, 4410]:
        val = offsets(excess=np.arange(1.0, n + 1.0))
        paper = calibration_shift(val, float(coverage), "paper")
        assert paper == math.floor(coverage * n) + 1
        rank = math.ceil(coverage * (n + 1))
        usual = calibration_shift(val, float(coverage), "conformal")
        assert usual == (rank if rank <= n else math.inf)
        assert usual in (paper, paper + 1, math.inf)


def test_rounding_of_the_product_does_not_move_the_rank() -> None:
    # In floating point 0.29 · 100 is 28.999999999999996 and 0.57 · 100 is 56.99999999999999.
    val = offsets(excess=np.arange(1.0, 101.0))
    assert int(0.29 * 100) == 28
    assert calibration_shift(val, 0.29, "paper") == 30.0
    assert calibration_shift(val, 0.57, "paper") == 58.0
    scored = Answers(y=val.y, point=val.y, lower=val.y, upper=val.y, score=np.arange(100.0))
    assert evaluate_shift(scored, {"t": scored}, share=0.29).threshold == 29.0
    # In floating point (1 − 0.9) is 0.09999999999999998.
    assert calibration_shift(offsets(excess=np.arange(1.0, 10.0)), 1 - 0.9, "conformal") == 1.0


@pytest.mark.parametrize(
    ("n", "larger"),
    [(2000, False), (1288, True), (6116, True), (1164, True), (2702, True), (2797, True)],
)
def test_the_two_rules_differ_on_the_published_sizes(n: int, larger: bool) -> None:
    val = offsets(excess=np.arange(n + 0.0))
    difference = calibration_shift(val, 0.9, "conformal") - calibration_shift(val, 0.9)
    assert difference == float(larger)


@pytest.mark.parametrize("rule", ["paper", "conformal"])
@pytest.mark.parametrize("coverage", [0.8, 0.9, 0.95])
def test_numbers_follow_from_the_definitions(rule: str, coverage: float) -> None:
    val, near, far = answers(0, 211), answers(1, 90), answers(2, 140, far=1.0)
    run = evaluate_shift(val, {"near": near, "far": far}, coverage=coverage, rule=rule, share=0.8)
    excess = sorted(max(lo - y, y - up) for y, lo, up in zip(val.y, val.lower, val.upper))  # noqa: B905
    place = int(Fraction(str(coverage)) * 211)
    if rule == "conformal":
        place = math.ceil(Fraction(str(coverage)) * 212) - 1
    q, limit = excess[place], sorted(val.score)[int(0.8 * 211)]
    assert (run.q, run.threshold) == (q, limit)
    assert run.val.mae_all == pytest.approx(np.mean(np.abs(val.y - val.point)))
    assert run.val.width_all == pytest.approx(np.mean(val.upper - val.lower) + 2 * q)
    assert run.val.empirical_coverage_all == (place + 1) / 211
    assert list(run.tests) == ["near", "far"]
    for name, part in (("near", near), ("far", far)):
        kept = [i for i in range(len(part)) if part.score[i] <= limit]
        inside = [part.lower[i] - q <= part.y[i] <= part.upper[i] + q for i in range(len(part))]
        found = run.tests[name]
        assert found.n == len(part)
        assert found.prediction_rate == pytest.approx(len(kept) / len(part))
        assert found.empirical_coverage == pytest.approx(np.mean([inside[i] for i in kept]))
        assert found.width == pytest.approx(
            np.mean([part.upper[i] - part.lower[i] + 2 * q for i in kept])
        )
        assert found.mae == pytest.approx(np.mean([abs(part.y[i] - part.point[i]) for i in kept]))
        assert found.empirical_coverage_all == pytest.approx(np.mean(inside))
        assert found.mae_all == pytest.approx(np.mean(np.abs(part.y - part.point)))
        assert found.width_all == pytest.approx(np.mean(part.upper - part.lower) + 2 * q)
        assert (found.covered == inside).all()
        assert np.flatnonzero(found.accepted).tolist() == kept


def _numbers(run: ShiftRun) -> list[float]:
    test = run.tests["t"]
    return [run.val.mae_all, run.val.width_all, run.q, test.mae, test.width, test.mae_all]


def _shares(run: ShiftRun) -> list[float]:
    test = run.tests["t"]
    return [
        run.val.empirical_coverage_all,
        test.empirical_coverage,
        test.prediction_rate,
        test.empirical_coverage_all,
    ]


def changed(part: Answers, a: float, b: float) -> Answers:
    return Answers(
        y=a * part.y + b,
        point=a * part.point + b,
        lower=a * part.lower + b,
        upper=a * part.upper + b,
        score=part.score,
    )


@given(seed=st.integers(0, 500), a=st.sampled_from([0.5, 2.0, 1024.0]), b=st.integers(-8, 8))
@examples(40)
def test_units_and_origin_of_y_do_not_matter(seed: int, a: float, b: int) -> None:
    val, test = answers(seed, 80), answers(seed + 1, 60, far=0.5)
    plain = evaluate_shift(val, {"t": test})
    other = evaluate_shift(changed(val, a, b), {"t": changed(test, a, b)})
    np.testing.assert_allclose(_numbers(other), a * np.array(_numbers(plain)), rtol=1e-9)
    np.testing.assert_allclose(_shares(other), _shares(plain), atol=0.0126)  # one row by rounding
    scaled = evaluate_shift(changed(val, a, 0.0), {"t": changed(test, a, 0.0)})
    assert _shares(scaled) == _shares(plain)


@given(seed=st.integers(0, 500))
@examples(30)
def test_the_order_of_rows_does_not_matter(seed: int) -> None:
    val, test = answers(seed, 71), answers(seed + 1, 60, far=0.5)
    rng = np.random.default_rng(seed)

    def shuffled(part: Answers) -> Answers:
        order = rng.permutation(len(part))
        names = ("y", "point", "lower", "upper", "score")
        return Answers(**{name: getattr(part, name)[order] for name in names})

    plain = evaluate_shift(val, {"t": test})
    other = evaluate_shift(shuffled(val), {"t": shuffled(test)})
    np.testing.assert_allclose(_numbers(other), _numbers(plain), rtol=1e-12)
    np.testing.assert_allclose(_shares(other), _shares(plain), rtol=1e-12)


@given(seed=st.integers(0, 500))
@examples(30)
def test_a_rising_change_of_the_score_changes_nothing(seed: int) -> None:
    val, test = answers(seed, 71), answers(seed + 1, 60, far=0.5)

    def risen(part: Answers) -> Answers:
        score = np.exp(part.score) - 7.0
        return Answers(y=part.y, point=part.point, lower=part.lower, upper=part.upper, score=score)

    plain = evaluate_shift(val, {"t": test}, share=0.7)
    other = evaluate_shift(risen(val), {"t": risen(test)}, share=0.7)
    assert _shares(other) == _shares(plain)
    assert (other.tests["t"].accepted == plain.tests["t"].accepted).all()


@pytest.mark.parametrize("coverage", [0.8, 0.9, 0.95])
def test_a_perfect_model_covers_as_it_says(coverage: float) -> None:
    rng = np.random.default_rng(5)

    def part(n: int) -> Answers:
        x = rng.normal(size=n)
        y = x + np.exp(x / 3) * rng.normal(size=n)
        half = np.exp(x / 3)
        return Answers(y=y, point=x, lower=x - half, upper=x + half)

    run = evaluate_shift(part(4000), {"t": part(10000)}, coverage=coverage)
    noise = math.sqrt(coverage * (1 - coverage) * (1 / 4000 + 1 / 10000))
    assert abs(run.tests["t"].empirical_coverage - coverage) < 4 * noise
    assert run.val.empirical_coverage_all == pytest.approx((math.floor(coverage * 4000) + 1) / 4000)


def test_a_perfect_detector_keeps_nearly_half_of_a_half_and_half_test() -> None:
    rng = np.random.default_rng(6)

    def part(n: int, foreign: np.ndarray) -> Answers:
        y = rng.normal(size=n) + 50.0 * foreign
        score = rng.uniform(size=n) + 10.0 * foreign
        return Answers(y=y, point=0 * y, lower=0 * y, upper=0 * y, score=score)

    val = part(2000, np.zeros(2000))
    test = part(10000, np.arange(10000) % 2 == 1)
    found = evaluate_shift(val, {"t": test}).tests["t"]
    assert abs(found.prediction_rate - 0.475) < 4 * 0.5 * math.sqrt(0.05 * 0.95 / 2000) + 0.005
    assert abs(found.empirical_coverage - 0.9) < 0.03
    assert abs(found.empirical_coverage_all - 0.45) < 0.02


def test_one_validation_row_is_enough_to_calibrate() -> None:
    val = Answers(y=[1.0], point=[0.0], lower=[0.0], upper=[0.5], score=[2.0])
    test = Answers(y=[1.0, 2.0], point=[0.0, 0.0], lower=[0.0, 0.0], upper=[0.5, 0.5], score=[1, 3])
    run = evaluate_shift(val, {"t": test})
    assert (run.q, run.threshold, run.val.empirical_coverage_all) == (0.5, 2.0, 1.0)
    assert run.tests["t"].accepted.tolist() == [True, False]
    usual = evaluate_shift(val, {"t": test}, rule="conformal")
    assert usual.q == math.inf
    assert (usual.tests["t"].empirical_coverage, usual.tests["t"].width) == (1.0, math.inf)


def test_ties_are_all_covered_and_all_accepted() -> None:
    y = np.ones(20)
    part = Answers(y=y, point=y, lower=y, upper=y, score=y)
    run = evaluate_shift(part, {"t": part})
    assert run.q == 0.0
    assert (
        run.val.empirical_coverage_all
        == run.tests["t"].empirical_coverage
        == run.tests["t"].prediction_rate
        == 1.0
    )


def test_crossed_ends_are_left_as_they_are() -> None:
    y = np.zeros(10)
    part = Answers(y=y, point=y, lower=y + 1.0, upper=y - 1.0)
    run = evaluate_shift(part, {"t": part})
    assert (run.q, run.val.width_all, run.val.empirical_coverage_all) == (1.0, 0.0, 1.0)


def test_intervals_without_end_are_legal() -> None:
    y = np.arange(10.0)
    part = Answers(y=y, point=y, lower=np.full(10, -np.inf), upper=y + 1.0)
    run = evaluate_shift(part, {"t": part})
    assert (run.q, run.val.width_all) == (-1.0, math.inf)
    whole = Answers(y=y, point=y, lower=np.full(10, -np.inf), upper=np.full(10, np.inf))
    run = evaluate_shift(whole, {"t": whole})
    assert math.isnan(run.tests["t"].empirical_coverage)
    assert "offset is not known" in run.tests["t"].reason("empirical_coverage")


def test_nothing_accepted_is_missing_with_a_reason() -> None:
    val, test = answers(0, 50), answers(1, 30)
    far = Answers(
        y=test.y, point=test.point, lower=test.lower, upper=test.upper, score=test.score + 99.0
    )
    found = evaluate_shift(val, {"t": far}).tests["t"]
    assert found.prediction_rate == 0.0
    assert np.isnan([found.empirical_coverage, found.width, found.mae]).all()
    reasons = {name for name in MEANS if found.reason(name)}
    assert reasons == {"empirical_coverage", "width", "mae"}
    assert "no row is accepted" in found.reason("width")
    assert np.isfinite([found.empirical_coverage_all, found.width_all, found.mae_all]).all()


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_a_network_that_diverged_leaves_no_plausible_number(bad: float) -> None:
    lost = np.full(30, bad)
    val, test = answers(0, 50, score=False), answers(1, 30, score=False)
    gone = Answers(y=test.y, point=lost, lower=lost, upper=lost)
    found = evaluate_shift(val, {"t": gone}).tests["t"]
    assert np.isnan([found.empirical_coverage, found.width, found.mae]).all()
    assert found.reason("mae") == "30 of 30 point forecasts are missing or not finite"
    assert found.reason("empirical_coverage") == "30 of 30 intervals are missing or not finite"
    some = val.point.copy()
    some[3] = math.nan
    broken = Answers(y=val.y, point=some, lower=some - 1, upper=some + 1)
    run = evaluate_shift(broken, {"t": test})
    assert math.isnan(run.q)
    assert math.isnan(run.tests["t"].empirical_coverage)
    assert "offset is not known" in run.tests["t"].reason("empirical_coverage")
    assert run.tests["t"].mae == pytest.approx(np.mean(np.abs(test.y - test.point)))
    assert run.val.reason("mae_all") == "1 of 50 point forecasts are missing or not finite"


def test_missing_scores_accept_nobody_knows_whom() -> None:
    val, test = answers(0, 50), answers(1, 30)
    score = val.score.copy()
    score[0] = math.nan
    broken = Answers(y=val.y, point=val.point, lower=val.lower, upper=val.upper, score=score)
    found = evaluate_shift(broken, {"t": test}).tests["t"]
    assert np.isnan([found.empirical_coverage, found.prediction_rate]).all()
    assert found.reason("prediction_rate") == "the threshold is not known"
    assert math.isfinite(found.empirical_coverage_all)
    other = evaluate_shift(val, {"t": broken}).tests["t"]
    assert other.reason("empirical_coverage") == "1 of 50 scores are missing or not finite"


MEANS = tuple(
    f"{name}{rows}" for name in ("empirical_coverage", "width", "mae") for rows in ("", "_all")
)
ONE = {"y": [1.0], "point": [1.0], "lower": [0.0], "upper": [2.0]}


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Answers(y=[], point=[], lower=[], upper=[]), "y must have at least one row"),
        (lambda: Answers(**{**ONE, "y": [math.nan]}), "y must contain finite numbers"),
        (lambda: Answers(**{**ONE, "point": [1.0, 2.0]}), "point must have 1 rows, got 2"),
        (lambda: Answers(**{**ONE, "lower": ["a"]}), "lower must contain real numbers"),
        (lambda: Answers(**{**ONE, "upper": [[1.0]]}), "upper must have one dimension"),
        (lambda: Answers(**ONE, score=[1.0, 2.0]), "score must have 1 rows, got 2"),
        (lambda: evaluate_shift(Answers(**ONE), {}), "tests must contain at least one part"),
        (
            lambda: evaluate_shift(Answers(**ONE), {"t": Answers(**ONE, score=[1.0])}),
            "all parts must have scores or none, got them in t, not val",
        ),
        (
            lambda: evaluate_shift(Answers(**ONE, score=[1.0]), {"t": Answers(**ONE)}),
            "all parts must have scores or none, got them in val, not t",
        ),
        (lambda: calibration_shift(Answers(**ONE), 90), "coverage must be strictly between"),
        (
            lambda: calibration_shift(Answers(**ONE), 0.9, "pac"),
            "rule must be 'paper', 'conformal' or",
        ),
        (
            lambda: evaluate_shift(Answers(**ONE), {"t": Answers(**ONE)}, share=0),
            "share must be strictly between 0 and 1, got 0",
        ),
    ],
)
def test_bad_input_is_told(make: object, words: str) -> None:
    with pytest.raises(InputError, match=words):
        make()
