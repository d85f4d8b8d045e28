"""Bad input of every kind is refused with a message that names it; nothing is ever NaN."""

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from generated import examples
from howsure.core.errors import HowsureError, HowsureWarning, InputError
from howsure.core.rng import child
from howsure.stats.kernels import RBF, CustomKernel, Polynomial
from howsure.stats.solvers import SolverOptions
from howsure.topics.congruence.predictive import Draws, Normals
from howsure.topics.congruence.reference import cce, mcmd

GOOD = {"x": [0.0, 1.0, 2.0], "y": [0.0, 1.0, 0.5], "predictive": Draws([0.0, 1.0, 2.0])}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"x": [[0.0], [1.0], [np.nan]]}, r"x must contain finite numbers.*row 2"),
        ({"x": [0.0, 1.0]}, "y must have 2 rows, got 3"),
        ({"x": [1.0, 1.0, 1.0]}, "x must vary"),
        (
            {"x": [0.0], "y": [0.0], "predictive": Draws([0.0])},
            "x must have at least 2 rows, got 1",
        ),
        ({"y": [3.0, 3.0, 3.0]}, "y must vary for its variance to set a bandwidth"),
        ({"y": [3.0, 3.0, 3.0], "output_bandwidth": "median"}, "y must have mostly different rows"),
        ({"y": [0.0, 1.0, np.inf]}, "y must contain finite numbers"),
        ({"predictive": Draws([0.0, 1.0])}, "predictive must have 3 rows, got 2"),
        (
            {"predictive": Draws(np.zeros((3, 1, 2)))},
            "predictive must have 1 outputs as y has, got 2",
        ),
        ({"predictive": [0.0, 1.0, 2.0]}, "predictive must be Normals, Mixtures, .* got list"),
        ({"grid": [[0.0, 1.0]]}, "grid must have 1 columns, got 2"),
        ({"grid": [np.nan]}, "grid must contain finite numbers"),
        ({"grid": [[]]}, "grid must have at least one column"),
        ({"grid": []}, "grid must have at least one row"),
        ({"kernel": "sinc"}, "kernel must be one of rbf, laplacian, .* got 'sinc'"),
        ({"bandwidth": "silverman"}, "bandwidth must be a positive number, variance, .*silverman"),
        ({"bandwidth": -1.0}, "gamma must be a positive number"),
        ({"kernel": "polynomial", "bandwidth": "variance"}, "bandwidth of a polynomial kernel"),
        ({"kernel": RBF(1.0), "bandwidth": 1.0}, "must not be given with a kernel"),
        ({"regularization": 0.0}, "regularization must be a positive number"),
        ({"x": [0.0, 1.0, 1e200]}, "x must be numbers of at most .* got 1e.200"),
        ({"x": [[0.0] * 9, [1.0] * 9, [1e200] * 9]}, "x must be numbers of at most"),
        ({"y": [0.0, 1.0, 1e200]}, "y must be numbers of at most .* got 1e.200"),
        ({"predictive": Draws([0.0, 1.0, 1e300])}, "predictive must be numbers for which rbf"),
        (
            {"predictive": Normals([0.0] * 3, [1.0, 1.0, 1e300])},
            "predicted standard deviations must be numbers for which rbf",
        ),
        ({"bandwidth": 1e307}, "x must be numbers for which rbf.*1e.307. stays in the range"),
        ({"x": [0.0, 1e-155, 2e-155]}, "gamma must be a positive number, got inf"),
        ({"x": [0.0, 1e-155, 2e-155], "bandwidth": "median"}, "gamma must be .* got inf"),
        (
            {"x": [1.0, 2.0, 1e60], "kernel": Polynomial(6)},
            "x must be numbers for which polynomial.* stays in the range of float64",
        ),
        (
            {
                "x": [1.0, 2.0, 1e12],
                "kernel": Polynomial(),
                "solver": SolverOptions(dtype="float32"),
            },
            "kernel must be smaller for sums over 3 rows in float32|stays in the range of float32",
        ),
        (
            {"solver": SolverOptions(dtype="float32", method="dense"), "regularization": 1e-12}
            | {"x": [1.0, 1.0, 1.0], "bandwidth": 1.0},
            "regularization must be larger to outweigh rounding in float32",
        ),
        (
            {"x": [[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]], "kernel": "polynomial"},
            r"x must have no row of zeros.*row 0",
        ),
        (
            {
                "x": [[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]],
                "grid": [[0.0, 0.0]],
                "kernel": "polynomial",
            },
            "grid must have no row of zeros",
        ),
        ({"kernel": lambda a, b: np.tanh(a @ b.T - 1.0)}, "kernel must be positive definite"),
        ({"x": [0.0, 0.0, 0.0], "kernel": Polynomial(1, 1.0, 0.0)}, "kernel must be positive at"),
        ({"output_kernel": lambda a, b: -(a @ b.T)}, "output_kernel must be positive definite"),
        (
            {"predictive": Normals([0.0] * 3, [1.0] * 3), "output_kernel": "polynomial"},
            "output_kernel must be rbf or laplacian for the exact embedding of normal dist",
        ),
    ],
)
def test_bad_input_is_refused(change, message):
    arguments = {**GOOD, **change}
    with pytest.raises(InputError, match=message):
        cce(arguments.pop("x"), arguments.pop("y"), arguments.pop("predictive"), **arguments)


def test_bad_second_samples_are_refused():
    x, y = [0.0, 1.0, 2.0], [0.0, 1.0, 0.5]
    with pytest.raises(InputError, match="x2 must have at least 2 rows, got 1"):
        mcmd(x, y, [0.0], [0.0], x)
    with pytest.raises(InputError, match="y2 must have 1 columns, got 2"):
        mcmd(x, y, x, [[0.0, 1.0]] * 3, x)
    with pytest.raises(InputError, match="x2 must have 1 columns, got 2"):
        mcmd(x, y, [[0.0, 1.0]] * 3, y, x)


def test_squared_laplacian_of_several_outputs_is_found_out():
    places = np.array([[i, j] for i in range(6) for j in range(6)], dtype=float)
    with pytest.raises(InputError, match="output_kernel must be positive definite"):
        cce(
            np.arange(36.0),
            places,
            Draws(places[:, None, :]),
            output_kernel="laplacian-squared",
            output_bandwidth=0.05,
        )


def test_constant_outputs_are_fine_with_a_bandwidth():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = cce([0.0, 1.0, 2.0], [3.0] * 3, Draws([3.0] * 3), output_bandwidth=1.0)
    assert found.values.tolist() == [0.0, 0.0, 0.0]


@pytest.mark.parametrize("method", ["auto", "iterative", "dense", "nystrom"])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_whatever_comes_is_refused_or_scored_with_finite_numbers(method, dtype):
    @examples(120)
    @given(
        st.integers(0, 10**6),
        st.tuples(st.integers(2, 25), st.sampled_from([1, 2, 7])),
        st.tuples(st.integers(-25, 25), st.integers(-25, 25)),
        st.floats(-12.0, 6.0),
        st.sampled_from(["rbf", "laplacian", "laplacian-squared", "polynomial"]),
        st.sampled_from([None, 1.0, 1e-9, 1e9, "median", "half-variance"]),
        st.sampled_from(["plain", "equal inputs", "equal outputs", "tiny columns"]),
    )
    def check(seed, shape, scales, strength, kernel, bandwidth, kind):
        rng = child(seed, "whatever")
        x = rng.normal(size=shape) * 10.0 ** scales[0]
        y = rng.normal(size=shape[0]) * 10.0 ** scales[1]
        x[:] = x[0] if kind == "equal inputs" else x
        y[:] = y[0] if kind == "equal outputs" else y
        x[:, 1:] *= 1e-30 if kind == "tiny columns" else 1.0
        gaussian = seed % 2 == 0
        predictive = Normals(0.5 * y, np.abs(y)) if gaussian else Draws(rng.permutation(y))
        try:
            found = cce(
                x,
                y,
                predictive,
                kernel=kernel,
                bandwidth=bandwidth,
                output_kernel="rbf" if gaussian else kernel,
                output_bandwidth=bandwidth,
                regularization=10.0**strength,
                solver=SolverOptions(method=method, dtype=dtype),
            )
        except HowsureError:
            return
        assert np.isfinite(found.values).all()
        assert (found.values >= 0.0).all()
        assert np.isfinite(found.diagnostics.typical_error)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", HowsureWarning)  # of rough kernels; all others are errors
        check()


def test_outcomes_that_equal_their_predictions_but_for_rounding_are_no_indefinite_kernel():
    rng = child(17, "rounding")
    x, y = rng.normal(size=40), rng.normal(size=40)
    found = cce(x, y, Normals(y + 1e-9, np.full(40, 1e-9)), solver=SolverOptions(method="dense"))
    assert found.mean < 1e-7


def test_rows_far_apart_on_the_scale_of_a_kernel_keep_a_kernel_of_one_with_themselves():
    x = child(18, "far apart").normal(size=(30, 9)).astype(np.float32)
    gram = RBF(1e9).gram(x, x)
    np.testing.assert_array_equal(gram, np.eye(30))


def test_rows_of_zeros_under_a_linear_kernel_are_no_trouble():
    x = np.zeros((900, 2))
    x[7] = 1.0
    y = child(19, "zeros").normal(size=900)
    linear = {"kernel": Polynomial(1, 1.0, 0.0), "output_bandwidth": 1.0}
    truth = cce(x, y, Draws(y + 1.0), solver=SolverOptions(method="dense"), **linear)
    for options in ({"method": "iterative"}, {"method": "nystrom", "landmarks": 100}):
        found = cce(x, y, Draws(y + 1.0), solver=SolverOptions(**options), **linear)
        np.testing.assert_allclose(found.values, truth.values, atol=1e-10)
    blind = cce(x, y, Draws(y + 1.0), solver=SolverOptions(method="nystrom", landmarks=1), **linear)
    assert not blind.values.any()
    assert blind.diagnostics.largest_error >= 0.0


def test_an_ill_conditioned_system_is_said_to_be_one():
    x = np.repeat(np.linspace(0.0, 1.0, 50), 4)
    y = child(20, "ill").normal(size=200)
    found = cce(
        x,
        y,
        Draws(y + 1.0),
        kernel=CustomKernel(lambda a, b: 1e5 * np.exp(-np.abs(a - b.T)), "large"),
        regularization=1e-3,
        solver=SolverOptions(method="dense", dtype="float32"),
    )
    assert "from rounding of the system" in found.diagnostics.note
    assert found.diagnostics.squared_error > 1e-3
