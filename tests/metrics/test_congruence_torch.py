"""Conditional congruence of tensors equals that of arrays, and refuses what it cannot take."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from extras import needs
from generated import examples
from howsure.core.errors import InputError
from howsure.core.rng import child
from howsure.stats.kernels import Polynomial
from howsure.stats.solvers import SolverOptions
from howsure.topics.congruence.null import mean_cce, null_reference
from howsure.topics.congruence.predictive import Draws, Normals
from howsure.topics.congruence.reference import CongruenceReference, cce, mcmd

needs("array_api_compat")
torch = needs("torch")

DEVICES = ["cpu", "cuda"] if torch.cuda.is_available() else ["cpu"]
METHODS = ["auto", "iterative", "dense", "nystrom"]
LARGE = ("dense", True)  # a Cholesky factor needs the whole matrix
KERNELS = ["rbf", "laplacian", "polynomial", Polynomial(2, 0.5, 1.0)]
CLOSE = {"float64": 1e-10, "float32": 5e-5}  # of squared values; 32 bits promise 1e-4


def samples(seed, width=7):
    """Two samples of different sizes and inputs, and a grid."""
    rng = child(seed, "tensors")
    x, x2 = rng.normal(size=(230, width)), rng.normal(size=(170, width))
    y = np.sin(x[:, :1]) + 0.3 * rng.normal(size=(230, 1))
    y2 = np.cos(x2[:, :1]) + 0.6 * rng.normal(size=(170, 1))
    return x, y, x2, y2, rng.normal(size=(40, width))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_discrepancies_of_tensors_are_those_of_arrays(kernel, method, dtype, device):
    arrays = samples(0)
    options = {
        "kernel": kernel,
        "regularization": 0.1,
        "regularization2": 0.03,
        "solver": SolverOptions(method=method, dtype=dtype, landmarks=230),
    }
    truth = mcmd(*arrays, **options)
    tensors = [torch.tensor(part, device=device) for part in arrays]
    found = mcmd(*tensors, **options)
    assert isinstance(found.values, np.ndarray)
    assert found.values.dtype == np.float64
    np.testing.assert_allclose(found.values**2, truth.values**2, rtol=0, atol=CLOSE[dtype])
    assert found.kernel == truth.kernel
    assert found.diagnostics.solver == truth.diagnostics.solver
    # In 32 bits, rounding decides whether the last pivots are above the tolerance.
    apart = 0 if dtype == "float64" else 2
    assert abs(found.diagnostics.landmarks - truth.diagnostics.landmarks) <= apart


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("strength", [0.1, 0.03])
def test_tensors_with_the_same_inputs_share_one_system(strength, device):
    x, y, _, _, grid = samples(0)
    arrays = (x, y, x, y + 0.5, grid)
    truth = mcmd(*arrays, regularization2=strength)
    tensors = [torch.tensor(part, device=device) for part in arrays]
    found = mcmd(*tensors, regularization2=strength)
    np.testing.assert_allclose(found.values**2, truth.values**2, rtol=0, atol=CLOSE["float64"])


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize(
    ("method", "tiled"),
    [(method, tiled) for method in METHODS for tiled in (False, True) if (method, tiled) != LARGE],
)
def test_errors_of_tensors_are_those_of_arrays(method, tiled, dtype, device):
    x, y, _, _, grid = samples(1, width=2)
    predictive = Normals(np.sin(x[:, 0]), np.full(len(x), 0.5))
    solver = SolverOptions(method=method, dtype=dtype, memory=0.0 if tiled else 2e9)
    truth = cce(x, y, predictive, grid, bandwidth=2.0, solver=solver)
    inputs = [torch.tensor(part, device=device) for part in (x, y, grid)]
    reference = CongruenceReference(*inputs[:2], predictive, bandwidth=2.0, solver=solver)
    found = reference.score(inputs[2])
    np.testing.assert_allclose(found.values**2, truth.values**2, rtol=0, atol=CLOSE[dtype])
    own = cce(x, y, predictive, bandwidth=2.0, solver=solver)
    np.testing.assert_allclose(
        reference.score().values ** 2, own.values**2, rtol=0, atol=CLOSE[dtype]
    )


@examples(40)
@given(
    st.integers(0, 10**6),
    st.integers(2, 60),
    st.integers(2, 60),
    st.integers(1, 8),
    st.floats(-3.0, 0.0),
    st.sampled_from(METHODS),
    st.booleans(),
)
def test_tensors_agree_with_arrays_whatever_comes(seed, n, m, width, strength, method, repeated):
    rng = child(seed, "tensors by chance")
    x, x2, grid = (rng.normal(size=(size, width)) for size in (n, m, 5))
    y, y2 = rng.normal(size=(n, 2)), rng.normal(size=(m, 2))
    if repeated:
        x[: n // 2], y[:], x2[:] = x[0], 1.0, x2[0]
    options = {
        "bandwidth": 0.5,
        "output_bandwidth": 0.5,
        "regularization": 10.0**strength,
        "solver": SolverOptions(method=method),
    }
    arrays = (x, y, x2, y2, grid)
    truth = mcmd(*arrays, **options)
    found = mcmd(*(torch.from_numpy(part) for part in arrays), **options)
    np.testing.assert_allclose(found.values**2, truth.values**2, rtol=0, atol=1e-10)


@pytest.mark.parametrize("method", METHODS)
def test_null_references_and_bootstraps_of_tensors(method):
    x, y, _, _, grid = samples(2, width=2)
    predictive = Normals(np.sin(x[:, 0]), np.full(len(x), 0.5))
    pair = [
        CongruenceReference(rows, y, predictive, solver=SolverOptions(method=method))
        for rows in (x, torch.from_numpy(x))
    ]
    one, two = (null_reference(part, grid, replicates=9) for part in pair)
    np.testing.assert_allclose(two.replicates, one.replicates, atol=1e-9)
    assert two.p_value == one.p_value
    again = null_reference(pair[1], grid, outcomes=torch.from_numpy(y))
    assert again.replicates == pytest.approx([one.observed])
    first, second = (mean_cce(part, bootstraps=3) for part in pair)
    np.testing.assert_allclose(second.bootstraps, first.bootstraps, atol=1e-9)


def test_what_is_no_tensor_is_moved_to_the_tensors():
    x, y, _, _, grid = samples(3)
    predictive = Draws(y + 1.0)
    truth = cce(x, y, predictive, grid)
    rows = torch.from_numpy(x)
    for points in (grid, grid.tolist(), torch.from_numpy(grid)):
        found = cce(rows, torch.from_numpy(y), predictive, points)
        np.testing.assert_allclose(found.values, truth.values, atol=1e-10)
    reverse = cce(x, y, predictive, torch.from_numpy(grid))
    np.testing.assert_allclose(reverse.values, truth.values, atol=1e-12)
    scaled = cce(rows, y, predictive, torch.from_numpy(grid), bandwidth="grid-variance")
    assert scaled.kernel == cce(x, y, predictive, grid, bandwidth="grid-variance").kernel


def test_other_number_types_are_converted_and_gradients_are_not_followed():
    rng = child(4, "types")
    whole = rng.integers(-3, 4, size=(60, 2))
    y, predictive = rng.normal(size=60), Draws(rng.normal(size=60))
    truth = cce(whole, y, predictive, bandwidth=0.3).values
    for kind in (torch.int64, torch.int8, torch.float16, torch.bfloat16, torch.float32):
        found = cce(torch.tensor(whole, dtype=kind), y, predictive, bandwidth=0.3)
        np.testing.assert_allclose(found.values, truth, atol=1e-12)  # small whole numbers fit
    leaf = torch.tensor(whole, dtype=torch.float64, requires_grad=True)
    target = torch.tensor(y, requires_grad=True)
    followed = cce(leaf, target, predictive, leaf * 1.0, bandwidth=0.3)
    np.testing.assert_allclose(followed.values, truth, atol=1e-12)
    assert leaf.grad is None


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"x": torch.ones(5, 1, device="meta")},
            "x must contain numbers, got a tensor without data",
        ),
        ({"x": torch.ones(5, 1, dtype=torch.complex128)}, "x must be a dense tensor of real"),
        ({"x": torch.tensor([0.0, 1.0, 2.0, float("nan"), 4.0])}, "x must contain finite .*row 3"),
        ({"x": torch.arange(4.0)}, "y must have 4 rows, got 5"),
        ({"x": torch.ones(5)}, "x must vary for its variance"),
        ({"y": torch.ones(5, device="meta")}, "y must contain numbers, got a tensor without data"),
        ({"y": torch.tensor([0.0, 1.0, 2.0, 3.0, float("inf")])}, "y must contain finite numbers"),
        (
            {"grid": torch.ones(1, 1, device="meta")},
            "grid must be on device cpu .* got one on meta",
        ),
        ({"grid": torch.ones(1, 2)}, "grid must have 1 columns, got 2"),
        ({"grid": torch.ones(1, 1).to_sparse()}, "grid must be a dense tensor"),
        ({"kernel": lambda a, b: -(a @ b.T)}, "kernel must be positive definite"),
    ],
)
def test_bad_tensors_are_refused(change, message):
    arguments = {
        "x": torch.arange(5.0),
        "y": torch.arange(5.0),
        "predictive": Draws(np.zeros(5)),
        **change,
    }
    with pytest.raises(InputError, match=message):
        cce(**arguments)


def test_a_reference_of_arrays_refuses_a_grid_elsewhere():
    reference = CongruenceReference(np.arange(5.0), np.arange(5.0), Draws(np.zeros(5)))
    with pytest.raises(InputError, match="must be a NumPy array or on the CPU"):
        reference.score(torch.ones(1, 1, device="meta"))


def test_own_kernels_see_tensors_of_inputs_and_arrays_of_outputs():
    seen = set()

    def smooth(a, b):
        seen.add(type(a).__name__)
        exp = np.exp if isinstance(a, np.ndarray) else torch.exp
        return exp(-((a - b.T) ** 2))

    x, y = torch.linspace(0.0, 1.0, 20), np.linspace(0.0, 1.0, 20)
    cce(x, y, Draws(y + 1.0), kernel=smooth, output_kernel=smooth)
    assert seen == {"Tensor", "ndarray"}
