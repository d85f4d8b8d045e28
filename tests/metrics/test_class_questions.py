"""Questions on class probabilities: sums by brute force, p-values by enumeration, faults found."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy import special, stats

from howsure.core.arrays import FloatArray, IntArray
from howsure.core.errors import InputError
from howsure.stats.binomial import holm
from howsure.topics.classes import questions
from howsure.topics.classes.questions import cut, draw_classes, judge_classes, to_normal

QUESTIONS = ("level", "sureness", "shape", "groups", "region")


def soft(z: FloatArray) -> FloatArray:
    return np.asarray(special.softmax(z, axis=1))


def outcomes(p: FloatArray, rng: np.random.Generator) -> IntArray:
    return draw_classes(p, rng.random((len(p), 1)))[:, 0]


def binary(claims: FloatArray) -> FloatArray:
    return np.column_stack([1 - claims, claims])


def dense_score(p: FloatArray, y: IntArray, column: FloatArray, simple: FloatArray) -> float:
    """A score beyond simpler ones: columns (n, k), residuals of a regression weighted by p."""
    x = column - (p * column).sum(1, keepdims=True)
    z = simple - np.einsum("ij,ijc->ic", p, simple)[:, None]
    root = np.sqrt(p).ravel()
    slopes = np.linalg.lstsq(root[:, None] * z.reshape(-1, z.shape[-1]), root * x.ravel())[0]
    x = x - z @ slopes
    variance, third = (p * x**2).sum(), (p * x**3).sum()
    score = x[np.arange(len(y)), y].sum() / np.sqrt(variance)
    return float(to_normal(np.array([score]), np.array([third / variance**1.5]))[0])


@pytest.mark.parametrize("k", [2, 4])
def test_sureness_is_the_score_of_a_temperature_beyond_shifts(k: int) -> None:
    rng = np.random.default_rng(k)
    p = soft(1.5 * rng.normal(size=(300, k)))
    y = outcomes(soft(np.log(p) / 1.3), rng)
    shifts = np.broadcast_to(np.eye(k)[None], (300, k, k))
    expected = dense_score(p, y, np.log(p), shifts)
    assert judge_classes(p, y).answers["sureness"].statistic == pytest.approx(expected, rel=1e-9)


def test_level_is_the_derivative_of_the_likelihood_by_a_shift() -> None:
    rng = np.random.default_rng(1)
    p = soft(rng.normal(size=(200, 3)))
    y = outcomes(soft(np.log(p) + np.array([0, 0, 0.8])), rng)

    def likelihood(shift: float) -> float:
        moved = soft(np.log(p) + np.array([0, 0, shift]))
        return float(np.log(moved[np.arange(200), y]).sum())

    slope = (likelihood(1e-5) - likelihood(-1e-5)) / 2e-5
    claims = p[:, 2]
    variance = (claims * (1 - claims)).sum()
    third = (claims * (1 - claims) * (1 - 2 * claims)).sum()
    score = to_normal(np.array([slope / variance**0.5]), np.array([third / variance**1.5]))
    answer = judge_classes(p, y).answers["level"]
    assert answer.class_code == 2
    assert answer.statistic == pytest.approx(score[0], rel=1e-6)
    assert answer.claim == pytest.approx(claims.mean())
    assert answer.happened == pytest.approx((y == 2).mean())


def test_shape_is_the_largest_run_by_brute_force() -> None:
    rng = np.random.default_rng(2)
    p = binary(rng.random(400))
    claims, n = p[:, 1], 400
    y = outcomes(np.where((claims > 0.6)[:, None] & (claims < 0.75)[:, None], p[:, ::-1], p), rng)
    simple = np.stack([np.repeat([[0.0, 1.0]], n, 0), np.log(p)], -1)
    cells = cut(claims, claims * (1 - claims))
    best = 0.0
    for length, first in itertools.product((1, 2, 4, 8), range(16)):
        if first + length <= cells.max() + 1:
            inside = (cells >= first) & (cells < first + length)
            x = np.column_stack([np.zeros(n), inside])
            x = x - (p * x).sum(1, keepdims=True)
            z = simple - np.einsum("ij,ijc->ic", p, simple)[:, None]
            covariance = np.einsum("ij,ija,ijb->ab", p, z, z)
            cross = np.einsum("ij,ij,ija->a", p, x, z)
            slopes = np.linalg.solve(covariance, cross)
            left = x - z @ slopes
            raw = (claims * (1 - claims))[inside]
            skewness = (raw * (1 - 2 * claims[inside])).sum() / raw.sum() ** 1.5
            score = left[np.arange(n), y].sum() / np.sqrt((p * left**2).sum())
            best = max(best, abs(float(to_normal(np.array([score]), np.array([skewness]))[0])))
    answer = judge_classes(p, y).answers["shape"]
    assert abs(answer.statistic) == pytest.approx(best, rel=1e-9)
    assert answer.p <= 0.001
    assert 0.55 < answer.low < answer.high < 0.8
    assert answer.rows is not None
    assert answer.happened == pytest.approx(y[answer.rows].mean())
    assert answer.lower < answer.happened < answer.upper < answer.claim


def test_p_value_of_level_by_enumeration() -> None:
    claims = np.array([0.1, 0.2, 0.3, 0.4, 0.6, 0.7, 0.85, 0.9])
    y = np.array([1, 1, 1, 0, 1, 1, 1, 1])
    variance = (claims * (1 - claims)).sum()
    skewness = (claims * (1 - claims) * (1 - 2 * claims)).sum() / variance**1.5

    def size(total: float) -> float:
        x = np.array([(total - claims.sum()) / variance**0.5])
        return abs(float(to_normal(x, np.array([skewness]))[0]))

    chance = 0.0
    for came in itertools.product([0, 1], repeat=8):
        if size(sum(came)) >= size(y.sum()) - 1e-9:
            chance += float(np.prod(np.where(came, claims, 1 - claims)))
    answer = judge_classes(binary(claims), y).answers["level"]
    assert answer.p == pytest.approx(chance, abs=4 * (chance / 1999) ** 0.5)


def test_p_value_of_skill_by_enumeration() -> None:
    """How often a perfect model is as far below the frequencies of the classes as this one."""
    claims = np.array([0.3, 0.35, 0.4, 0.45, 0.5, 0.55, 0.6, 0.8])
    y = np.array([1, 1, 1, 0, 1, 0, 1, 0])

    def worse(y: IntArray) -> float:
        brier = 2 * np.square(claims - y).mean()
        return float(max(brier - 2 * y.mean() * (1 - y.mean()), 0.0))

    chance = 0.0
    for came in itertools.product([0, 1], repeat=8):
        if worse(np.array(came)) >= worse(y) - 1e-9:
            chance += float(np.prod(np.where(came, claims, 1 - claims)))
    answer = judge_classes(binary(claims), y).answers["skill"]
    assert answer.statistic == pytest.approx(worse(y))
    assert answer.p == pytest.approx(chance, abs=4 * (chance / 1999) ** 0.5)
    better = judge_classes(binary(claims), (claims > 0.5).astype(np.int64)).answers["skill"]
    assert (better.statistic, better.p) == (0.0, 1.0)


def test_deviance_of_poisson_numbers() -> None:
    """Scores are the signed roots of the deviance, and nearly normal."""
    mean, count = 2.5, np.arange(30)
    x = (count - mean) / mean**0.5
    z = to_normal(x, np.full(30, mean**-0.5))
    root = np.sqrt(2 * (special.xlogy(count, count / mean) - count + mean))
    np.testing.assert_allclose(z, np.sign(x) * root + mean**-0.5 / 6, atol=1e-9)
    middle = stats.poisson.cdf(count, mean) - stats.poisson.pmf(count, mean) / 2
    np.testing.assert_allclose(special.ndtr(z), middle, atol=0.025)
    np.testing.assert_allclose(to_normal(-x, np.full(30, -(mean**-0.5))), -z)
    np.testing.assert_allclose(to_normal(x, np.full(30, 1e-9)), x, rtol=1e-6)


def test_cells_share_rows_and_information() -> None:
    rng = np.random.default_rng(3)
    values = rng.beta(0.2, 4.0, 2_000)
    information = values * (1 - values)
    mass = 1 / 2_000 + information / information.sum()
    cells = cut(values, information, 10)
    np.testing.assert_allclose(np.bincount(cells, mass), 0.2, atol=0.02)
    assert (np.diff(cells[np.argsort(values)]) >= 0).all()
    assert len(np.unique(cut(np.array([1.0, 1.0, 2.0]), np.ones(3), 3)[:2])) == 1


def test_drawn_classes_have_their_probabilities() -> None:
    p = np.array([[0.1, 0.2, 0.7], [0.0, 1.0, 0.0]])
    drawn = draw_classes(p, np.broadcast_to((np.arange(1000) + 0.5) / 1000, (2, 1000)))
    assert [list(np.bincount(row, minlength=3)) for row in drawn] == [[100, 200, 700], [0, 1000, 0]]


def test_order_of_rows_changes_nothing() -> None:
    rng = np.random.default_rng(4)
    p = soft(rng.normal(size=(150, 3)))
    y, group, x = outcomes(p, rng), rng.integers(0, 3, 150), rng.random(150)
    cluster, order = rng.integers(0, 40, 150), rng.permutation(150)
    for clusters in (None, cluster):
        first = judge_classes(p, y, groups={"g": group}, features={"x": x}, clusters=clusters)
        again = judge_classes(
            p[order],
            y[order],
            groups={"g": group[order]},
            features={"x": x[order]},
            clusters=None if clusters is None else clusters[order],
        )
        for question in QUESTIONS:
            one, other = first.answers[question], again.answers[question]
            assert one.p == pytest.approx(other.p, abs=1e-12)
            assert one.claim == pytest.approx(other.claim)


def test_a_weight_of_two_doubles_the_sums() -> None:
    rng = np.random.default_rng(5)
    p = binary(rng.random(100))
    y = outcomes(p, rng)
    doubled = judge_classes(p, y, weights=np.full(100, 2.0))
    plain = judge_classes(p, y)
    for question in ("level", "sureness", "shape"):
        assert doubled.answers[question].p == plain.answers[question].p
    assert doubled.n_effective == pytest.approx(100)


def test_faults_are_found_where_they_are() -> None:
    rng = np.random.default_rng(6)
    n = 1_500
    p = binary(rng.uniform(0.2, 0.8, n))
    group, x = rng.integers(0, 4, n), rng.random(n)
    shifted = soft(np.log(p) + np.outer(group == 2, [0.0, 1.2]))
    answer = judge_classes(p, outcomes(shifted, rng), groups={"g": group}).answers["groups"]
    assert (answer.p <= 0.001, answer.name, answer.low) == (True, "g", 2)
    assert answer.claim < answer.lower
    flipped = np.where(((x > 0.4) & (x < 0.6))[:, None], p[:, ::-1], p)
    answer = judge_classes(p, outcomes(flipped, rng), features={"x": x}).answers["region"]
    assert (answer.p <= 0.001, answer.name, answer.class_code) == (True, "x", -1)
    assert 0.3 < answer.low < answer.high < 0.7
    coin = np.full(60, 0.85)
    answer = judge_classes(binary(coin), rng.integers(0, 2, 60)).answers["level"]
    assert answer.p <= 0.001
    assert answer.upper < answer.claim == pytest.approx(0.85)


def test_what_cannot_be_seen_is_not_asked() -> None:
    rng = np.random.default_rng(7)
    rare = binary(rng.uniform(0.01, 0.05, 300))
    answers = judge_classes(rare, outcomes(rare, rng)).answers
    assert np.isnan(answers["sureness"].p)
    assert answers["sureness"].reason
    assert np.isfinite(answers["level"].p)
    assert answers["groups"].reason == "no groups are given"
    certain = judge_classes(np.eye(2)[[0, 1, 1]], np.array([0, 1, 1])).answers
    assert all(np.isnan(certain[question].p) for question in QUESTIONS)
    assert certain["impossible"].p == 1.0


def test_impossible_classes() -> None:
    p = binary(np.r_[0.0, np.linspace(1 / 3, 2 / 3, 99)])
    answer = judge_classes(p, np.ones(100, dtype=np.int64)).answers["impossible"]
    assert (answer.p, answer.n) == (0.0, 1)  # the rows with a class at 0 %
    assert answer.rows is not None
    assert list(answer.rows) == [0]
    # of 500 rows rounded to 0 %, with a grain of .01 up to 2.5 come
    rounded = binary(np.r_[np.zeros(500), np.full(500, 0.37)])
    y = np.r_[np.ones(2), np.zeros(498), np.arange(500) % 100 < 37].astype(np.int64)
    excused = judge_classes(rounded, y).answers
    assert excused["impossible"].p == pytest.approx(stats.poisson.sf(1, 2.5))
    assert excused["level"].p > 0.05


def test_clusters_cost_power() -> None:
    rng = np.random.default_rng(8)
    p = binary(np.repeat(rng.random(60), 10))
    y = np.repeat(outcomes(p[::10], rng), 10)
    alone = judge_classes(p, y)
    together = judge_classes(p, y, clusters=np.repeat(np.arange(60), 10))
    assert together.n_effective < 100 < alone.n_effective
    assert min(together.answers[question].p for question in ("level", "sureness")) > 0.01


def test_many_rows_are_sampled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(questions, "MAX_ROWS", 500)
    rng = np.random.default_rng(9)
    p = binary(rng.random(1_200))
    y = outcomes(p, rng)
    judged = judge_classes(p, y)
    assert (judged.n, judged.sampled) == (500, True)
    monkeypatch.setattr(questions, "MAX_ROWS", 2_000)
    whole = judge_classes(p, y)
    monkeypatch.setattr(questions, "MAX_ROWS", 500)
    for question in ("level", "sureness"):  # of all rows, though others are of a sample
        one, other = judged.answers[question], whole.answers[question]
        assert one.statistic == pytest.approx(other.statistic)
        assert one.p == pytest.approx(other.p, abs=0.06)
        assert one.n == other.n
        assert one.lower == pytest.approx(other.lower)
    clustered = judge_classes(p, y, clusters=np.arange(1_200) // 7)
    assert 490 <= clustered.n <= 500


@pytest.mark.parametrize(
    ("p", "y", "words"),
    [
        ([[0.5, 0.6]], [0], "sum to 1"),
        ([[-0.1, 1.1]], [0], "sum to 1"),
        ([[1.0]], [0], "two or more columns"),
        ([[0.5, 0.5]], [2], "from 0 to 1"),
        ([[0.5, 0.5]], [0.5], "whole numbers"),
        ([[0.5, 0.5]], [0, 1], "length|rows|values"),
    ],
)
def test_bad_input(p: list[list[float]], y: list[float], words: str) -> None:
    with pytest.raises(InputError, match=words):
        judge_classes(np.array(p), np.array(y))


def law(name: str, n: int, rng: np.random.Generator) -> FloatArray:
    """Probabilities of seven kinds."""
    if name.startswith("k"):
        return soft((1.5 if name == "k3" else 2.5) * rng.normal(size=(n, int(name[1:]))))
    return binary(
        {
            "uniform": lambda: rng.random(n),
            "u-shaped": lambda: np.clip(rng.beta(0.5, 0.5, n), 1e-9, 1 - 1e-9),
            "rare": lambda: rng.uniform(0.01, 0.05, n),
            "near-certain": lambda: special.expit(rng.choice([-1, 1], n) * rng.normal(5, 1, n)),
        }[name]()
    )


@pytest.mark.rate
@pytest.mark.parametrize("clustered", [False, True])
@pytest.mark.parametrize("n", [50, 200])
@pytest.mark.parametrize(
    "name", ["uniform", "u-shaped", "rare", "near-certain", "k3", "k10", "k50"]
)
def test_perfect_models_keep_their_five_percent(name: str, n: int, *, clustered: bool) -> None:
    """Any question significant in at most 5 % and three errors of 400 tables."""
    wrong, cluster = 0, np.arange(n) // 10
    for table in range(400):
        rng = np.random.default_rng([table, n, clustered])
        p = law(name, n, rng)
        group, x = rng.integers(0, 5, n), rng.random(n)
        uniforms = rng.random(n)
        if clustered:
            latent = np.sqrt(0.5) * rng.normal(size=n // 10)[cluster] + np.sqrt(0.5) * rng.normal(
                size=n
            )
            uniforms = special.ndtr(latent)
        answers = judge_classes(
            p,
            draw_classes(p, uniforms[:, None])[:, 0],
            groups={"g": group},
            features={"x": x},
            clusters=cluster if clustered else None,
        ).answers
        adjusted = holm([answers[question].p for question in QUESTIONS])
        wrong += bool((adjusted <= 0.05).any())
    assert wrong <= 400 * 0.05 + 3 * (400 * 0.05 * 0.95) ** 0.5
