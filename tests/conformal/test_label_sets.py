"""Conformal sets of labels: the scores' definitions, the exact law of coverage, and groups."""

from decimal import Decimal, localcontext
from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from generated import examples
from howsure.conformal.adapting import Mondrian
from howsure.conformal.labels import (
    APS,
    LAC,
    RAPS,
    SAPS,
    EaseBins,
    GivenScore,
    LabelConformal,
    LabelScore,
    TunedLabels,
    fit_temperature,
    tempered,
)
from howsure.core.errors import InputError

SCORES = [
    LAC(),
    APS(),
    APS(randomized=False),
    RAPS(0.02, 2),
    RAPS(0.02, 2, randomized=False),
    SAPS(0.1),
    SAPS(0.1, randomized=False),
]


def by_definition(score: LabelScore, p: np.ndarray, label: int, u: float) -> float:
    """The score of one label, from sorted probabilities; classes that tie take the last rank."""
    own = p[label]
    rank = sum(q >= own for q in p)
    reached = sum(q for q in p if q >= own)
    if isinstance(score, LAC):
        return 1 - own
    if isinstance(score, SAPS):
        u = u if score.randomized else 1.0
        return u * max(p) if rank == 1 else max(p) + score.penalty * (rank - 2 + u)
    value = reached - (u * own if score.randomized else 0.0)
    return value + (score.penalty * max(0, rank - score.free) if isinstance(score, RAPS) else 0.0)


def tables(seed: int, n: int, classes: int, *, ties: bool = False) -> np.ndarray:
    rng = np.random.default_rng(seed)
    if ties:
        counts = rng.integers(0, 4, size=(n, classes)).astype(float)
        counts[:, 0] += counts.sum(axis=1) == 0
        return counts / counts.sum(axis=1, keepdims=True)
    return rng.dirichlet(np.full(classes, 0.4), size=n)


@pytest.mark.slow
@pytest.mark.parametrize("score", SCORES, ids=lambda s: s.name)
@examples(25)
@given(st.integers(0, 9999), st.booleans(), st.booleans())
def test_scores_and_sets_follow_the_definition(
    score: LabelScore, seed: int, ties: bool, single: bool
) -> None:
    p = tables(seed, 12, 7, ties=ties)
    rng = np.random.default_rng(seed)
    labels, u = rng.integers(0, 7, 12), rng.random(12)
    expected = [by_definition(score, p[i], labels[i], u[i]) for i in range(12)]
    table = p.astype(np.float32) if single else p
    found = score.of_labels(table, labels, u).sum(axis=1)
    assert found == pytest.approx(expected, abs=1e-6 if single else 1e-12)
    q = rng.uniform(0.2, 1.2, 12)
    at = np.column_stack((q, np.zeros(12)))
    members = score.sets(p, at, u)
    per_class = score.sets(p, at, np.repeat(u[:, None], 7, axis=1))
    for i in range(12):
        scores = [by_definition(score, p[i], k, u[i]) for k in range(7)]
        clear = [abs(s - q[i]) > 1e-8 for s in scores]
        want = [s <= q[i] for s in scores]
        assert all(members[i, k] == want[k] for k in range(7) if clear[k])
        assert all(per_class[i, k] == want[k] for k in range(7) if clear[k])


@pytest.mark.parametrize("score", SCORES, ids=lambda s: s.name)
def test_a_label_lies_in_the_set_of_its_own_score(score: LabelScore) -> None:
    p = tables(1, 3000, 30).astype(np.float32)
    rng = np.random.default_rng(1)
    labels, u = rng.integers(0, 30, 3000), rng.random(3000)
    members = score.sets(p, score.of_labels(p, labels, u), u)
    assert members[np.arange(3000), labels].all()


def overconfident(seed: int, n: int, heat: float) -> tuple[np.ndarray, np.ndarray]:
    """Logits of 100 classes, and labels drawn as if they were `heat` times as large."""
    rng = np.random.default_rng(seed)
    logits = 40.0 * rng.normal(size=(n, 100))
    p = np.exp(heat * (logits - logits.max(axis=1, keepdims=True)))
    y = (p.cumsum(axis=1) > rng.random(n)[:, None] * p.sum(axis=1)[:, None]).argmax(axis=1)
    return logits, y


def softmax(logits: np.ndarray) -> np.ndarray:
    raised = np.exp(logits - logits.max(axis=1, keepdims=True))
    return raised / raised.sum(axis=1, keepdims=True)


@cache
def exact_softmax(seed: int, n: int, heat: float) -> list[list[Decimal]]:
    """The softmax of the same logits, in 200 digits."""
    found = []
    for row in overconfident(seed, n, heat)[0]:
        raised = [Decimal(float(z)).exp() for z in row - row.max()]
        total = sum(raised)
        found.append([value / total for value in raised])
    return found


def exact_scores(score: LabelScore, p: list[Decimal], u: float) -> list[Decimal]:
    """Scores of all classes by their definitions."""
    order = sorted(range(len(p)), key=lambda k: -p[k])
    found, reached, top = [Decimal(0)] * len(p), Decimal(0), p[order[0]]
    draw = Decimal(u) if score.random else Decimal(isinstance(score, SAPS))
    for rank, k in enumerate(order, 1):
        reached += p[k]
        found[k] = reached - draw * p[k]
        if isinstance(score, LAC):
            found[k] = 1 - p[k]
        elif isinstance(score, SAPS):
            after = top + Decimal(score.penalty) * (rank - 2 + draw)
            found[k] = draw * top if rank == 1 else after
        elif isinstance(score, RAPS):
            found[k] += Decimal(score.penalty) * max(0, rank - score.free)
    return found


@pytest.mark.parametrize("score", SCORES, ids=lambda s: s.name)
def test_sets_of_overconfident_softmax_follow_the_definition(score: LabelScore) -> None:
    """Scores differ by far less than a rounding of 1, and sets are those of the definition."""
    world, n = (8, 40, 0.05), 40
    logits, y = overconfident(*world)
    p, u = softmax(logits), np.random.default_rng(9).random(n)
    with localcontext(prec=200):
        exact = [exact_scores(score, row, u[i]) for i, row in enumerate(exact_softmax(*world))]
        own = [exact[i][y[i]] for i in range(n)]
        found = score.of_labels(p, y, u)
        assert found.sum(axis=1) == pytest.approx([float(s) for s in own], rel=1e-9)
        for place in (15, 30, 38):
            level = sorted(range(n), key=lambda i: own[i])[place]
            members = score.sets(p, np.tile(found[level], (n, 1)), u)
            want = [[s <= own[level] for s in row] for row in exact]
            assert (members == np.array(want)).all()


@pytest.mark.parametrize("score", SCORES[:-1], ids=lambda s: s.name)
def test_coverage_of_overconfident_softmax(score: LabelScore) -> None:
    """As asked at .99 and .50, where scores all but tie; few sets hold all labels."""
    logits, y = overconfident(10, 4000, 0.05)
    p = softmax(logits)
    for coverage in (0.99, 0.5):
        method = LabelConformal(score=score, coverage=coverage).calibrate(p[:2000], y[:2000])
        sets = method.predict(p[2000:])
        held = sets.contains(y[2000:].astype(float)).mean()
        loss = np.sqrt(2 * coverage * (1 - coverage) / 2000)  # of both halves
        assert held == pytest.approx(coverage, abs=4 * loss)
        assert sets.sizes.mean() < (80 if coverage == 0.99 else 10)


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_nearly_certain_tops_are_told_apart(kind: type) -> None:
    """p = 1 as rounded, in three rows of four: the others' sum ranks them."""
    rng = np.random.default_rng(11)
    odds = -rng.uniform(2.0, 60.0, 4000)
    p = softmax(np.column_stack((np.zeros(4000), odds))).astype(kind)
    y = np.zeros(4000)
    method = LabelConformal(score=LAC(), coverage=0.5).calibrate(p[:2000], y[:2000])
    held = method.predict(p[2000:]).contains(y[2000:]).mean()
    assert held == pytest.approx(0.5, abs=4 * np.sqrt(0.5 / 2000))


@pytest.mark.parametrize("score", SCORES, ids=lambda s: s.name)
def test_renaming_classes_and_reordering_rows_change_nothing(score: LabelScore) -> None:
    p, rng = tables(2, 80, 6, ties=True), np.random.default_rng(2)
    y = rng.integers(0, 6, 80)
    rename, order = rng.permutation(6), rng.permutation(40)
    method = LabelConformal(score=score, coverage=0.7)
    first = method.calibrate(p[:40], y[:40])
    again = method.calibrate(p[:40][order], y[:40][order])
    assert (first.predict(p[40:]).members == again.predict(p[40:]).members).all()
    u = rng.random(40)
    inverse = np.argsort(rename)
    renamed = score.of_labels(p[:40][:, rename], inverse[y[:40]], u)
    assert (renamed == score.of_labels(p[:40], y[:40], u)).all()


@pytest.mark.parametrize(
    ("score", "draws"),
    [(LAC(), "row"), (APS(), "row"), (RAPS(0.02, 2), "row"), (SAPS(0.1), "row"), (APS(), "class")],
    ids=["LAC", "APS", "RAPS", "SAPS", "APS by class"],
)
def test_coverage_has_the_exact_law(score: LabelScore, draws: str) -> None:
    """Given calibration, covered ~ Binomial(m, C), C ~ Beta(k, n + 1 − k): a beta-binomial."""
    n, m, runs = 59, 40, 250
    law = stats.betabinom(m, 54, 6)  # k = ⌈60 · 0.9⌉
    counts = []
    for run in range(runs):
        p = tables(1000 + run, n + m, 8)
        rng = np.random.default_rng(run)
        y = (p.cumsum(axis=1) > rng.random(n + m)[:, None]).argmax(axis=1)
        method = LabelConformal(score=score, coverage=0.9, seed=run, draws=draws)
        sets = method.calibrate(p[:n], y[:n]).predict(p[n:])
        counts.append(sets.contains(y[n:].astype(float)).sum())
    edges = [0, 33, 35, 36, 37, 38, 39, 40, 41]
    seen = np.histogram(counts, edges)[0]
    expected = runs * np.diff(law.cdf(np.array(edges) - 1))
    assert stats.chisquare(seen, expected * runs / expected.sum()).pvalue > 0.001
    assert np.mean(counts) / m == pytest.approx(54 / 60, abs=4 * law.std() / m / np.sqrt(runs))


def test_each_group_is_covered_by_its_own_threshold() -> None:
    """The mean coverage of a group of n_g is ⌈(n_g + 1)(1 − α)⌉/(n_g + 1)."""
    sizes, runs, m = (19, 45), 300, 40
    held = np.zeros((runs, 2))
    for run in range(runs):
        rng = np.random.default_rng(run)
        group = np.r_[np.repeat([0, 1], sizes), np.repeat([0, 1], m)]
        p = tables(run, len(group), 5)
        sharp = p ** np.where(group == 0, 1.0, 0.3)[:, None]
        truth = sharp / sharp.sum(axis=1, keepdims=True)
        y = (truth.cumsum(axis=1) > rng.random(len(p))[:, None]).argmax(axis=1)
        marked = np.column_stack((p, group))
        n = sum(sizes)
        method = LabelConformal(
            model=lambda x: x[:, :-1], score=LAC(), adapt=Mondrian(lambda x: x[:, -1])
        )
        sets = method.calibrate(marked[:n], y[:n]).predict(marked[n:])
        inside = sets.contains(y[n:].astype(float))
        held[run] = inside[:m].mean(), inside[m:].mean()
    for g, size in enumerate(sizes):
        expected = np.ceil((size + 1) * 0.9) / (size + 1)
        error = held[:, g].std() / np.sqrt(runs)
        assert held[:, g].mean() == pytest.approx(expected, abs=3 * error)


@pytest.mark.slow
def test_sets_by_ease_hold_coverage_where_one_threshold_does_not() -> None:
    rng = np.random.default_rng(3)

    def world(n: int) -> tuple[np.ndarray, np.ndarray]:
        x = rng.normal(size=(n, 2))
        return x, (x[:, 0] + rng.normal(size=n) * np.abs(x[:, 1]) > 0).astype(int)

    def model(x: np.ndarray) -> np.ndarray:
        share = 1 / (1 + np.exp(-3 * x[:, 0]))
        return np.column_stack((1 - share, share))

    x, y = world(20_000)
    new, truth = world(20_000)
    gaps = {}
    for name, adapt in (("all", None), ("ease", Mondrian(EaseBins(8, 0.3)))):
        options = {} if adapt is None else {"adapt": adapt}
        method = LabelConformal(model=model, score=LAC(), coverage=0.85, **options)
        inside = method.calibrate(x, y).predict(new).contains(truth.astype(float))
        rule = EaseBins(8, 0.3).learn(x, model)
        shares = [inside[rule(new) == b].mean() for b in range(8)]
        gaps[name] = np.abs(np.array(shares) - 0.85).max()
        assert inside.mean() == pytest.approx(0.85, abs=0.03)
    assert gaps["ease"] < 0.04  # four standard deviations of 2,500 rows on both sides
    assert gaps["all"] > 0.08


@pytest.mark.parametrize("family", ["raps", "saps", "o_lac", "o_saps"])
@pytest.mark.parametrize("criterion", ["t_ss", "sscv", "size"])
def test_tuning_takes_the_best_candidate_and_keeps_coverage(family: str, criterion: str) -> None:
    rng = np.random.default_rng(4)
    x = rng.normal(size=(1600, 6))
    p = np.exp(2 * x) / np.exp(2 * x).sum(axis=1, keepdims=True)
    y = (p.cumsum(axis=1) > rng.random(1600)[:, None]).argmax(axis=1)

    def model(rows: np.ndarray) -> np.ndarray:
        raised = np.exp(2.5 * rows)
        return raised / raised.sum(axis=1, keepdims=True)

    tuned = TunedLabels(
        base=LabelConformal(model=model, coverage=0.8),
        family=family,
        criterion=criterion,
        bins=(2, 5),
        penalties=(0.05, 0.2, 0.4),
    ).calibrate(x[:1000], y[:1000])
    values = [value for _, value in tuned.tried]
    chosen = tuned.tried[int(np.nanargmax(values))][0][0]
    assert tuned.chosen.method.score == chosen
    sets = tuned.predict(x[1000:])
    assert sets.contains(y[1000:].astype(float)).mean() == pytest.approx(0.8, abs=0.07)


def test_a_fitted_classifier_and_its_names_of_classes() -> None:
    from sklearn.datasets import load_digits
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    x, y = load_digits(return_X_y=True)
    names = np.array([f"digit {k}" for k in range(10)])[y]
    model = make_pipeline(StandardScaler(), LogisticRegression(C=0.01)).fit(x[:600], names[:600])
    for score in SCORES:
        fitted = LabelConformal(model=model, score=score).calibrate(x[600:1200], names[600:1200])
        covered = fitted.predict(x[1200:]).contains(y[1200:].astype(float)).mean()
        assert 0.84 < covered <= (1.0 if not score.random and score != LAC() else 0.96)


def test_too_few_rows_give_all_labels_or_an_error() -> None:
    p = tables(5, 6, 4)
    y = np.zeros(6)
    assert LabelConformal(coverage=0.9).calibrate(p, y).predict(p).members.all()
    with pytest.raises(InputError, match="needs 9; got 6"):
        LabelConformal(coverage=0.9, too_few="error").calibrate(p, y)


def test_empty_sets_are_legal_or_filled() -> None:
    p = np.tile([[0.9, 0.1]], (40, 1))
    y = np.zeros(40)
    new = np.array([[0.5, 0.5], [0.95, 0.05]])
    assert LabelConformal(score=LAC()).calibrate(p, y).predict(new).sizes.tolist() == [0, 1]
    filled = LabelConformal(score=LAC(), allow_empty=False).calibrate(p, y).predict(new)
    assert filled.sizes.tolist() == [1, 1]


def test_scores_from_elsewhere() -> None:
    scores = np.arange(40.0).reshape(20, 2)
    sets = LabelConformal(score=GivenScore(), coverage=0.5).calibrate(scores, np.zeros(20))
    assert sets.predict([[10.0, 25.0]]).members.tolist() == [[True, False]]


def test_unrandomised_saps_scores_a_label_once() -> None:
    """A top label scores p₁ in calibration as in prediction, so that coverage is not lost."""
    rng = np.random.default_rng(6)
    p = rng.dirichlet(np.full(5, 0.5), size=4000)
    y = (p.cumsum(axis=1) > rng.random(4000)[:, None]).argmax(axis=1)
    method = LabelConformal(score=SAPS(0.1, randomized=False), coverage=0.9)
    covered = method.calibrate(p[:2000], y[:2000]).predict(p[2000:]).contains(y[2000:] + 0.0)
    assert 0.88 < covered.mean() < 0.93


def test_temperature_of_the_highest_likelihood() -> None:
    rng = np.random.default_rng(7)
    p = rng.dirichlet(np.full(4, 1.0), size=20_000)
    y = (p.cumsum(axis=1) > rng.random(20_000)[:, None]).argmax(axis=1)
    overconfident = tempered(p, 0.5)
    assert fit_temperature(overconfident, y) == pytest.approx(2.0, rel=0.05)
    assert tempered(overconfident, 2.0) == pytest.approx(p, abs=1e-9)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: LabelConformal(coverage=1.0), "coverage"),
        (lambda: LabelConformal(draws="label"), "draws"),
        (lambda: LabelConformal(score="APS"), "score must be of type LabelScore"),
        (lambda: LabelConformal().calibrate([[0.5, 0.6]], [0]), "sum to one, got 1.1 at row 0"),
        (lambda: LabelConformal().calibrate([[np.nan, 1.0]], [0]), "finite"),
        (lambda: LabelConformal().calibrate([[-0.5, 1.5]], [0]), "negative"),
        (lambda: LabelConformal().calibrate([[1.0]], [0]), "two classes"),
        (lambda: LabelConformal().calibrate([[0.5, 0.5]], [2]), "class numbers from 0 to 1"),
        (lambda: LabelConformal().calibrate([[0.5, 0.5]], [0.5]), "class numbers"),
        (lambda: LabelConformal(model=3).calibrate([[0.5, 0.5]], [0]), "predict_proba"),
        (
            lambda: LabelConformal().calibrate([[0.5, 0.5]], [0]).predict([[0.2, 0.3, 0.5]]),
            "2 classes",
        ),
        (lambda: RAPS(-1.0), "penalty"),
        (lambda: RAPS(0.1, -1), "free"),
        (lambda: SAPS(np.inf), "penalty"),
        (lambda: EaseBins(1), "bins"),
        (lambda: TunedLabels(family="aps"), "family"),
        (lambda: TunedLabels(criterion="best"), "criterion"),
        (lambda: TunedLabels(share=1.5), "share"),
        (lambda: tempered([[0.5, 0.5]], 0.0), "temperature"),
        (lambda: fit_temperature([[0.0, 1.0]], [0]), "true classes"),
    ],
)
def test_bad_input_is_named(call, words: str) -> None:
    with pytest.raises(InputError, match=words):
        call()
