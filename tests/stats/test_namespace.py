"""Arrays and tensors at the door, and the steps that the array API standard lacks."""

import subprocess
import sys

import numpy as np
import pytest

from extras import needs
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
from howsure.stats.namespace import (
    add_to_diagonal,
    as_rows,
    cholesky,
    cholesky_solve,
    like,
    namespace,
    on_host,
    row_parts,
    to_host,
    triangular_solve,
)
from howsure.stats.solvers import landmark_factor, pivoted_cholesky

WITHOUT = """
import sys
import numpy as np
from howsure.topics.congruence.predictive import Normals
from howsure.topics.congruence.reference import cce
cce(np.arange(5.0), np.arange(5.0), Normals(np.zeros(5), np.ones(5)))
print(sorted({"torch", "array_api_compat"} & set(sys.modules)))
"""


@pytest.fixture(scope="module")
def torch():
    needs("array_api_compat")
    return needs("torch")


def test_arrays_need_no_tensor_library():
    found = subprocess.run(
        [sys.executable, "-c", WITHOUT], capture_output=True, text=True, check=True
    )
    assert found.stdout.strip() == "[]"


@pytest.mark.parametrize("kind", ["float16", "float32", "int64", "bool", ">f4", ">f8"])
def test_number_types_of_arrays(kind):
    rows = np.array([[0.0, 1.0], [1.0, 1.0]]).astype(kind)
    kept = "float32" if kind in ("float32", ">f4") else "float64"
    assert as_rows(rows, "x", dtype=None).dtype == kept
    assert as_rows(rows, "x", dtype="float32").dtype == np.float32
    np.testing.assert_array_equal(as_rows(rows, "x"), [[0.0, 1.0], [1.0, 1.0]])
    assert as_rows(rows, "x", reference=np.zeros((1, 2), dtype=np.float32)).dtype == np.float32


@pytest.mark.parametrize("rows", [[[1.0], [1.0, 2.0]], [["a"]], [[1j]], [], [[]], [[[1.0]]]])
def test_what_is_no_matrix_of_numbers_is_refused(rows):
    with pytest.raises(InputError, match=r"x must"):
        as_rows(rows, "x")


def test_masked_rows_are_missing():
    with pytest.raises(InputError, match="x must contain finite numbers"):
        as_rows(np.ma.array([[1.0], [2.0]], mask=[[False], [True]]), "x")


def test_finite_rows_are_looked_at_in_every_part(monkeypatch):
    monkeypatch.setattr("howsure.stats.namespace._NUMBERS_AT_ONCE", 4)
    rows = np.ones((9, 2))
    assert [len(part) for part in row_parts(rows)] == [2, 2, 2, 2, 1]
    rows[8, 1] = np.nan
    with pytest.raises(InputError, match=r"1 missing or infinite value \(first at row 8\)"):
        as_rows(rows, "x")


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_tensors_pass_the_door_as_arrays_do(torch, dtype):
    kind = getattr(torch, dtype)
    tensor = torch.ones((3, 2), dtype=kind)
    assert as_rows(tensor, "x", dtype=dtype).data_ptr() == tensor.data_ptr()
    assert as_rows(tensor, "x", dtype=None).dtype == kind
    assert as_rows(torch.arange(3), "x", dtype=dtype).dtype == kind
    assert as_rows(torch.arange(3), "x").shape == (3, 1)
    assert as_rows(torch.ones(2, 2, dtype=torch.bfloat16), "x").dtype == torch.float64
    assert as_rows([[1.0, 2.0]], "x", reference=tensor).dtype == kind
    assert isinstance(as_rows(tensor, "x", reference=np.ones((1, 2))), np.ndarray)
    with pytest.raises(InputError, match="x must have 3 columns, got 2"):
        as_rows(tensor, "x", columns=3)
    with pytest.raises(InputError, match="first at row 1"):
        as_rows(torch.tensor([[1.0], [float("inf")]], dtype=kind), "x")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda torch: torch.ones(2, 2, dtype=torch.complex64), "dense tensor of real numbers"),
        (lambda torch: torch.ones(2, 2).to_sparse(), "dense tensor of real numbers, .*sparse_coo"),
        (lambda torch: torch.ones(2, 2, device="meta"), "a tensor without data"),
        (lambda torch: torch.ones(2, 2, 2), r"two dimensions, got shape \(2, 2, 2\)"),
        (lambda torch: torch.tensor(1.0), r"two dimensions, got shape \(\)"),
        (lambda torch: torch.ones(0, 2), "at least one row and one column"),
    ],
)
def test_tensors_that_hold_no_rows_are_refused(torch, make, message):
    with pytest.raises(InputError, match=message):
        as_rows(make(torch), "x")


def test_tensors_on_another_device_are_refused(torch):
    elsewhere = torch.ones(2, 2, device="meta")
    with pytest.raises(InputError, match=r"grid must be on device cpu as .* got one on meta"):
        as_rows(elsewhere, "grid", reference=torch.ones(2, 2))
    with pytest.raises(InputError, match=r"grid must be a NumPy array or on the CPU .* meta"):
        as_rows(elsewhere, "grid", reference=np.ones((2, 2)))


def test_gradients_are_left_behind(torch):
    leaf = torch.ones(2, 2, requires_grad=True)
    assert not as_rows(leaf, "x").requires_grad
    assert on_host(leaf * 2.0).tolist() == [[2.0, 2.0], [2.0, 2.0]]
    assert leaf.grad is None


def test_to_and_from_the_host(torch):
    assert to_host([1, 2]) == [1, 2]
    half = torch.tensor([1.5, 2.5], dtype=torch.bfloat16)
    assert to_host(half).tolist() == [1.5, 2.5]
    frozen = np.arange(3.0)
    frozen.setflags(write=False)
    moved = like(frozen, torch.ones(1, dtype=torch.float32))  # warns of no unwritable array
    assert moved.dtype == torch.float32
    assert moved.tolist() == [0.0, 1.0, 2.0]
    assert isinstance(like(moved, frozen), np.ndarray)
    with pytest.raises(InputError, match="y must contain numbers, got a tensor without data"):
        to_host(torch.ones(2, device="meta"), "y")


def test_linear_algebra_of_tensors_is_that_of_arrays(torch):
    rng = child(0, "algebra")
    root = rng.normal(size=(6, 6))
    matrix, right = root @ root.T, rng.normal(size=(6, 3))
    tensors = like(matrix.copy(), torch.ones(1, dtype=torch.float64)), torch.from_numpy(right)
    add_to_diagonal(matrix, 0.5)
    add_to_diagonal(tensors[0], 0.5)
    np.testing.assert_array_equal(tensors[0], matrix)
    truth = np.linalg.solve(matrix, right)
    np.testing.assert_allclose(cholesky_solve(cholesky(tensors[0]), tensors[1]), truth, atol=1e-11)
    lower = np.linalg.cholesky(matrix)
    np.testing.assert_allclose(
        triangular_solve(torch.from_numpy(lower), tensors[1]),
        np.linalg.solve(lower, right),
        atol=1e-12,
    )
    with pytest.raises(np.linalg.LinAlgError):
        cholesky(-tensors[0])


@pytest.mark.parametrize("width", [1, 3, 9])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize(
    "kernel",
    [
        RBF(np.float64(0.7)),
        Laplacian(np.float64(0.7)),
        Laplacian(0.7, squared=True),
        Polynomial(),
        Polynomial(2, np.float64(0.2), 2),
        CustomKernel(lambda a, b: a @ b.T),
    ],
    ids=lambda kernel: kernel.describe(),
)
def test_kernels_of_tensors_are_those_of_arrays(torch, kernel, width, dtype):
    rng = child(0, "kernels of tensors", width)
    a, b = (rng.normal(size=(n, width)).astype(dtype) for n in (7, 40))
    gram = kernel.gram(torch.from_numpy(a), torch.from_numpy(b))
    assert gram.dtype == getattr(torch, dtype)
    close = {"rtol": 1e-13, "atol": 1e-13} if dtype == "float64" else {"rtol": 1e-5, "atol": 1e-5}
    np.testing.assert_allclose(gram, kernel.gram(a, b), **close)
    np.testing.assert_allclose(kernel.diagonal(torch.from_numpy(a)), kernel.diagonal(a), **close)
    check_positive_definite(Laplacian(0.1), torch.from_numpy(a))


def test_own_kernels_of_tensors_are_checked_as_those_of_arrays(torch):
    rows = torch.arange(4.0, dtype=torch.float64)[:, None]
    weight = torch.ones(1, requires_grad=True, dtype=torch.float64)
    learnt = CustomKernel(lambda a, b: weight * (a @ b.T))
    assert not learnt.gram(rows, rows).requires_grad
    with pytest.raises(InputError, match=r"must return shape \(4, 4\), got \(4, 1\)"):
        CustomKernel(lambda a, b: a).gram(rows, rows)
    with pytest.raises(InputError, match="must return finite numbers"):
        CustomKernel(lambda a, b: a @ b.T + float("nan")).gram(rows, rows)
    with pytest.raises(InputError, match="must be positive definite"):
        check_positive_definite(CustomKernel(lambda a, b: -(a @ b.T)), rows)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_bandwidths_of_tensors_are_those_of_arrays(torch, dtype):
    rows = (child(1, "bandwidths").normal(size=(2000, 3)) + 100.0).astype(dtype)
    tensor = torch.from_numpy(rows)
    assert total_variance(tensor) == pytest.approx(total_variance(rows), rel=1e-12)
    assert median_distance(tensor) == pytest.approx(median_distance(rows), rel=1e-12)
    unit = normalize_rows(tensor)
    assert unit.dtype == getattr(torch, dtype)
    np.testing.assert_allclose(unit, normalize_rows(rows), rtol=1e-6)
    with pytest.raises(InputError, match=r"no row of zeros .* got 1 \(first at row 0\)"):
        normalize_rows(0.0 * tensor[:1])


def test_variance_of_32_bit_rows_keeps_its_digits():
    rows = (child(2, "digits").normal(size=(5000, 2)) + 4096.0).astype(np.float32)
    wide = rows.astype(np.float64)
    assert total_variance(rows) == pytest.approx(wide.var(axis=0, ddof=1).sum(), rel=1e-12)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_low_rank_factors_of_tensors(torch, dtype):
    rows = child(3, "factors").normal(size=(80, 2)).astype(dtype)
    tensor, kernel = torch.from_numpy(rows), RBF(0.5)
    found = pivoted_cholesky(
        kernel.diagonal(tensor),
        lambda row: kernel.gram(tensor[row : row + 1], tensor)[0],
        max_rank=20,
        weights=np.ones(80),
    )
    gram = kernel.gram(rows, rows)
    left = np.diagonal(gram - on_host(found.factor @ found.factor.T))
    close = 1e-12 if dtype == "float64" else 1e-5
    np.testing.assert_allclose(found.residual, left, atol=close)
    assert found.triangle.shape == (20, 20)
    factor, residual = landmark_factor(kernel, tensor, tolerance=0.0, max_rank=20)
    assert namespace(factor) is not np
    left = np.diagonal(gram - on_host(factor @ factor.T))
    np.testing.assert_allclose(residual, left, atol=close)
    zero, nothing = landmark_factor(
        Polynomial(1, 1.0, 0.0), 0.0 * tensor, tolerance=0.0, max_rank=2
    )
    assert not zero.any()
    assert not nothing.any()
