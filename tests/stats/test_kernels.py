"""Kernels against loops over pairs, and bandwidths against their definitions."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.distance import pdist

from generated import examples
from howsure.core.errors import InputError
from howsure.core.rng import child
from howsure.stats.kernels import (
    RBF,
    CustomKernel,
    Laplacian,
    Polynomial,
    check_positive_definite,
    median_distance,
    normalize_rows,
    total_variance,
)
from howsure.stats.namespace import as_rows

quick = examples(30)

PAIRWISE = {
    "rbf": (RBF(0.7), lambda u, v: np.exp(-0.7 * ((u - v) ** 2).sum())),
    "laplacian": (Laplacian(0.7), lambda u, v: np.exp(-0.7 * np.abs(u - v).sum())),
    "squared": (Laplacian(0.7, squared=True), lambda u, v: np.exp(-0.7 * np.abs(u - v).sum() ** 2)),
    "cubic": (Polynomial(), lambda u, v: (u @ v + 1.0) ** 3),
    "linear": (Polynomial(1, 0.5, 0.0), lambda u, v: 0.5 * (u @ v)),
    "quintic": (Polynomial(5, 0.2, 2.0), lambda u, v: (0.2 * (u @ v) + 2.0) ** 5),
    "custom": (CustomKernel(lambda a, b: a @ b.T), lambda u, v: u @ v),
}


@pytest.mark.parametrize("name", PAIRWISE)
@pytest.mark.parametrize("width", [1, 3, 9])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_gram_is_the_kernel_of_every_pair(name, width, dtype):
    kernel, pair = PAIRWISE[name]
    rng = child(0, "gram", name, width)
    a, b = rng.normal(size=(7, width)), rng.normal(size=(40, width))
    truth = np.array([[pair(u, v) for v in b] for u in a])
    gram = kernel.gram(a.astype(dtype), b.astype(dtype))
    assert gram.dtype == dtype
    tolerance = 1e-12 if dtype == np.float64 else 2e-4
    np.testing.assert_allclose(gram, truth, rtol=tolerance, atol=tolerance)
    own = kernel.diagonal(a.astype(dtype))
    np.testing.assert_allclose(own, [pair(u, u) for u in a], rtol=tolerance)


@pytest.mark.parametrize("name", ["rbf", "laplacian", "cubic"])
def test_gram_of_many_blocks_on_threads_is_that_of_few(name):
    kernel, _ = PAIRWISE[name]
    rows = child(1, "blocks").normal(size=(700, 8))
    whole = kernel.gram(rows, rows)
    parts = np.vstack([kernel.gram(rows[i : i + 3], rows) for i in range(0, 700, 3)])
    np.testing.assert_allclose(whole, parts, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("width", [2, 40])
def test_far_from_zero_loses_no_digits(width):
    rows = child(2, "far").normal(size=(30, width))
    near = RBF(0.05).gram(rows, rows)
    np.testing.assert_allclose(RBF(0.05).gram(rows + 1e6, rows + 1e6), near, atol=1e-8)


def test_exact_repeats_have_kernel_one():
    rows = np.repeat(child(3, "repeat").normal(size=(5, 60)), 2, axis=0)
    gram = RBF(3.0).gram(rows, rows)
    assert gram.max() <= 1.0
    np.testing.assert_allclose(gram[::2, 1::2].diagonal(), 1.0, atol=1e-12)


@quick
@given(st.integers(2, 25), st.integers(1, 9), st.integers(0, 10**6))
def test_named_kernels_have_no_negative_eigenvalue(rows, width, seed):
    x = child(seed, "psd").normal(size=(rows, width))
    for kernel in (RBF(0.5), Laplacian(0.5), Polynomial()):
        values = np.linalg.eigvalsh(kernel.gram(x, x))
        assert values[0] > -1e-10 * values[-1]


def test_squared_laplacian_is_caught_where_it_is_not_positive_definite():
    rows = np.array([[i, j] for i in range(6) for j in range(6)], dtype=float)
    kernel = Laplacian(0.05, squared=True)
    assert np.linalg.eigvalsh(kernel.gram(rows, rows))[0] < -1e-3
    with pytest.raises(InputError, match=r"kernel must be positive definite, got laplacian-sq"):
        check_positive_definite(kernel, rows)
    check_positive_definite(kernel, rows[:, :1])  # one column: the Gaussian kernel


def test_lopsided_and_broken_custom_kernels_are_refused():
    rows = np.arange(4.0)[:, None]
    with pytest.raises(InputError, match="must be symmetric"):
        check_positive_definite(CustomKernel(lambda a, b: a - b.T), rows)
    with pytest.raises(InputError, match="must return shape"):
        CustomKernel(lambda a, b: a).gram(rows, rows)
    with pytest.raises(InputError, match="must return finite numbers"):
        CustomKernel(lambda a, b: np.full((len(a), len(b)), np.nan)).gram(rows, rows)


@pytest.mark.parametrize(
    "make",
    [
        lambda: RBF(0.0),
        lambda: RBF(float("nan")),
        lambda: Laplacian(-1.0),
        lambda: Polynomial(degree=0),
        lambda: Polynomial(degree=1.5),
        lambda: Polynomial(gamma=-1.0),
        lambda: Polynomial(offset=-1.0),
    ],
)
def test_constants_outside_their_domain_are_refused(make):
    with pytest.raises(InputError, match="must be"):
        make()


def test_bandwidths_follow_their_definitions():
    rows = child(4, "bandwidth").normal(size=(60, 3))
    assert total_variance(rows) == pytest.approx(rows.var(axis=0, ddof=1).sum(), rel=1e-12)
    assert total_variance(rows) == pytest.approx((pdist(rows) ** 2).mean() / 2, rel=1e-12)
    assert median_distance(rows) == pytest.approx(np.median(pdist(rows)), rel=1e-12)
    absolute = np.median(pdist(rows, "cityblock"))
    assert median_distance(rows, absolute=True) == pytest.approx(absolute, rel=1e-12)


def test_median_of_many_rows_is_near_that_of_all():
    rows = child(5, "many").normal(size=(4000, 2))
    all_pairs = 2.0 * np.sqrt(np.log(2.0))  # the distance is Rayleigh with scale √2
    assert median_distance(rows) == pytest.approx(all_pairs, rel=0.03)


@pytest.mark.parametrize("measure", [total_variance, median_distance])
@pytest.mark.parametrize("rows", [[3.0, 3.0, 3.0], [0.1] * 10, [1.0]])
def test_equal_rows_and_one_row_set_no_bandwidth(measure, rows):
    with pytest.raises(InputError, match=r"y must .* for"):
        measure(rows, "y")


def test_normalised_rows_have_length_one_at_any_scale():
    rows = child(6, "unit").normal(size=(5, 4)) * np.array([[1e-200], [1.0], [1e200], [5.0], [9.0]])
    np.testing.assert_allclose(np.linalg.norm(normalize_rows(rows), axis=1), 1.0, rtol=1e-12)
    assert normalize_rows(rows[1:2].astype(np.float32)).dtype == np.float32


def test_a_row_of_zeros_cannot_be_normalised():
    with pytest.raises(InputError, match=r"no row of zeros .* got 2 \(first at row 1\)"):
        normalize_rows([[1.0, 0.0], [0.0, 0.0], [0.0, 0.0]], "embedding")


def test_rows_keep_their_number_type_and_are_checked():
    small = np.ones((3, 2), dtype=np.float32)
    assert as_rows(small, "x", dtype="float32") is small
    assert as_rows([1, 2], "x").shape == (2, 1)
    with pytest.raises(InputError, match="x must have 3 columns, got 2"):
        as_rows(small, "x", columns=3, dtype="float32")
    with pytest.raises(InputError, match="first at row 1"):
        as_rows(np.array([[1.0], [np.inf]]), "x")
    with pytest.raises(InputError, match="x must contain finite numbers"):
        as_rows(np.array([[1e300]]), "x", dtype="float32")  # infinite in 32 bits
