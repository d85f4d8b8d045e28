"""Ease against its definition, and disturbances that belong to rows."""

import numpy as np
import pytest

from howsure.core.errors import InputError
from howsure.core.rng import row_keys, row_normals
from howsure.stats.ease import GaussianNoise, ease, surrogate_ease


def softmax(x: np.ndarray) -> np.ndarray:
    raised = np.exp(x - x.max(axis=1, keepdims=True))
    return raised / raised.sum(axis=1, keepdims=True)


def test_normal_draws_are_normal_and_independent() -> None:
    from scipy import stats

    keys = row_keys(np.arange(20_000.0))
    draws = row_normals(1, "test", keys, 5)
    assert stats.kstest(draws.ravel(), "norm").pvalue > 0.001
    away = np.corrcoef(draws.T) - np.eye(5)
    assert np.abs(away).max() < 4 / np.sqrt(20_000)
    assert np.abs(np.corrcoef(np.square(draws).T) - np.eye(5)).max() < 4.5 / np.sqrt(20_000)
    assert not np.isclose(draws, row_normals(2, "test", keys, 5)).any()
    assert (row_normals(1, "test", keys, 3) == draws[:, :3]).all()


def test_ease_is_the_mean_cosine_of_disturbed_predictions() -> None:
    x = np.random.default_rng(0).normal(size=(30, 4))
    noise = GaussianNoise(0.3)
    keys = row_keys(x)
    expected = np.zeros(30)
    for m in range(5):
        first, second = softmax(x), softmax(noise.apply(x, keys, 9, m))
        for i in range(30):
            norms = np.linalg.norm(first[i]) * np.linalg.norm(second[i])
            expected[i] += first[i] @ second[i] / norms / 5
    assert ease(softmax, x, noise, repeats=5, seed=9) == pytest.approx(expected, abs=1e-12)


def test_ease_belongs_to_the_row(monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.random.default_rng(1).normal(size=(50, 3))
    shuffle = np.random.default_rng(2).permutation(50)
    noise = GaussianNoise.relative(x, 0.2)
    whole = ease(softmax, x, noise, seed=3)
    shuffled = ease(softmax, x[shuffle], noise, seed=3)
    assert shuffled == pytest.approx(whole[shuffle], abs=1e-14)
    assert ease(softmax, x[:10], noise, seed=3) == pytest.approx(whole[:10], abs=1e-14)
    monkeypatch.setattr("howsure.stats.ease._DISTURBED_ROWS_AT_ONCE", 7)
    assert ease(softmax, x, noise, seed=3) == pytest.approx(whole, abs=1e-14)


def test_similarity_of_regressors() -> None:
    x = np.random.default_rng(4).normal(size=(2000, 1))
    found = ease(lambda rows: 3 * rows[:, 0], x, GaussianNoise(0.5), repeats=50)
    assert found.mean() == pytest.approx(-3 * 0.5 * np.sqrt(2 / np.pi), rel=0.02)
    both = ease(
        lambda rows: np.column_stack((3 * rows[:, 0], 4 * rows[:, 0])),
        x,
        GaussianNoise(0.5),
        repeats=50,
        similarity="wasserstein",
    )
    assert both == pytest.approx(found * 5 / 3, rel=1e-9)
    mine = ease(
        lambda rows: rows[:, 0], x, GaussianNoise(1.0), similarity=lambda a, b: -np.square(a - b)
    )
    assert mine.mean() == pytest.approx(-1.0, abs=0.05)


def test_noise_has_the_scale_asked_for() -> None:
    x = np.random.default_rng(5).normal(size=(4000, 2)) * [1.0, 10.0]
    noise = GaussianNoise.relative(x, 0.1)
    added = noise.apply(x, row_keys(x), 0, 0) - x
    assert added.std(axis=0) == pytest.approx([0.1, 1.0], rel=0.06)
    shared = GaussianNoise.relative(x, 0.1, each_column=False)
    assert float(shared.sd) == pytest.approx(0.1 * x.std())


def test_surrogate_tells_sure_from_unsure_and_bears_zeros() -> None:
    found = surrogate_ease([[1.0, 0.0, 0.0], [0.4, 0.35, 0.25]])
    assert found[0] == pytest.approx(1.0)
    assert found[1] < 0.95


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: ease(softmax, [[np.nan]], GaussianNoise(1.0)), "x must be finite"),
        (lambda: ease(softmax, [1.0], GaussianNoise(1.0)), "shape"),
        (lambda: ease(softmax, [["a"]], GaussianNoise(1.0)), "numbers"),
        (lambda: ease(softmax, [[1.0]], GaussianNoise(1.0), repeats=0), "repeats"),
        (lambda: ease(lambda x: x[:1, 0], [[1.0], [2.0]], GaussianNoise(1.0)), "2 rows"),
        (lambda: ease(lambda x: x[:, 0] * np.nan, [[1.0]], GaussianNoise(1.0)), "finite outputs"),
        (lambda: ease(lambda x: x * 0, [[1.0]], GaussianNoise(1.0)), "row of zeros"),
        (
            lambda: ease(softmax, [[1.0]], GaussianNoise(1.0), similarity="dot"),
            "similarity must be one of",
        ),
        (
            lambda: ease(softmax, [[1.0]], GaussianNoise(1.0), similarity="absolute"),
            "does not fit",
        ),
        (lambda: GaussianNoise(-1.0), "sd"),
        (lambda: GaussianNoise.relative([[1.0]], np.nan), "share"),
        (lambda: surrogate_ease([[-0.1, 1.1]]), "negative"),
    ],
)
def test_bad_input_is_named(call, words: str) -> None:
    with pytest.raises(InputError, match=words):
        call()
