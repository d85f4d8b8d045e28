"""Low-rank factors against the matrices that they stand for."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from generated import examples
from howsure.core.errors import InputError
from howsure.core.rng import child
from howsure.stats.kernels import RBF, CustomKernel, Laplacian, Polynomial
from howsure.stats.solvers import dense_factor, landmark_factor, pivoted_cholesky

quick = examples(40)


def factored(matrix, **options):
    return pivoted_cholesky(np.diagonal(matrix), lambda row: matrix[row], **options)


@quick
@given(st.integers(1, 20), st.integers(1, 20), st.integers(0, 10**6))
def test_factor_gives_back_the_matrix_and_its_rank(size, rank, seed):
    root = child(seed, "root").normal(size=(size, min(size, rank)))
    matrix = root @ root.T
    found = factored(matrix)
    scale = np.abs(matrix).max()
    np.testing.assert_allclose(found.factor @ found.factor.T, matrix, atol=1e-7 * scale)
    assert found.rank <= min(size, rank) + 1
    np.testing.assert_array_equal(np.tril(found.triangle), found.triangle)
    assert not found.residual[found.pivots].any()
    factor, left = dense_factor(matrix.copy())
    np.testing.assert_allclose(factor @ factor.T, matrix, atol=1e-12 * scale * size)
    assert 0.0 <= left <= 1e-11 * scale * size


def test_residual_is_the_diagonal_left_and_its_sum_meets_the_tolerance():
    x = np.sort(child(0, "x").normal(size=(80, 1)), axis=0)
    matrix = RBF(2.0).gram(x, x)
    for tolerance in (1.0, 1e-3, 1e-8):
        found = factored(matrix, tolerance=tolerance)
        left = matrix - found.factor @ found.factor.T
        np.testing.assert_allclose(found.residual, np.diagonal(left), atol=1e-12)
        assert found.residual.sum() <= tolerance
        assert np.linalg.eigvalsh(left)[0] > -1e-12
        assert found.rank < 40


def test_weights_decide_which_rows_count():
    matrix = np.eye(4)
    found = factored(matrix, weights=np.array([0.0, 3.0, 1.0, 0.0]), max_rank=2)
    assert found.pivots.tolist() == [1, 2]
    assert factored(matrix, weights=np.array([0.0, 3.0, 1.0, 0.0])).rank == 2


@pytest.mark.parametrize("factor", [factored, lambda m: dense_factor(m.copy())])
def test_indefinite_matrices_are_refused(factor):
    for matrix in (np.array([[1.0, 2.0], [2.0, 1.0]]), np.diag([1.0, -1e-3])):
        with pytest.raises(InputError, match="positive definite"):
            factor(matrix)


def test_a_matrix_of_zeros_has_an_empty_or_zero_factor():
    assert factored(np.zeros((3, 3))).rank == 0
    factor, left = dense_factor(np.zeros((3, 3)))
    assert not factor.any()
    assert left == 0.0


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("kernel", [RBF(1.0), Laplacian(2.0), Polynomial()])
def test_landmark_factor_leaves_out_what_it_says(kernel, dtype):
    rows = child(1, "rows").normal(size=(200, 2)).astype(dtype)
    gram = kernel.gram(rows, rows)
    small = float(np.finfo(dtype).eps) * np.abs(gram).max()
    for rank in (1, 5, 40):
        factor, residual = landmark_factor(kernel, rows, tolerance=0.0, max_rank=rank)
        assert factor.dtype == dtype
        assert factor.shape[1] <= rank
        left = gram - factor @ factor.T
        np.testing.assert_allclose(residual, np.diagonal(left), atol=100 * small)
        assert np.linalg.eigvalsh(left)[0] > -200 * small


def test_landmark_factor_of_a_smooth_kernel_meets_its_tolerance_on_every_row():
    rows = np.append(child(2, "rows").normal(size=3000), [9.0, -7.0])[:, None]  # two far away
    kernel = RBF(0.5)
    factor, residual = landmark_factor(kernel, rows, tolerance=1e-9, max_rank=100)
    assert residual.sum() <= 1e-9
    assert factor.shape[1] < 60
    np.testing.assert_allclose(
        factor[-50:] @ factor[-50:].T, kernel.gram(rows[-50:], rows[-50:]), atol=1e-9
    )


def test_landmark_factor_refuses_an_indefinite_kernel_and_takes_a_zero_one():
    rows = np.arange(1.0, 30.0)[:, None]
    with pytest.raises(InputError, match="positive definite"):
        landmark_factor(
            CustomKernel(lambda a, b: np.abs(a - b.T) + 1.0), rows, tolerance=0.0, max_rank=20
        )
    factor, residual = landmark_factor(
        Polynomial(1, 1.0, 0.0), 0.0 * rows, tolerance=0.0, max_rank=3
    )
    assert not factor.any()
    assert not residual.any()
