"""Solvers of kernel systems against dense linear algebra."""

import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from generated import examples
from howsure.core.errors import InputError, UnanswerableError
from howsure.core.progress import subscribe
from howsure.core.rng import child
from howsure.stats.kernels import (
    RBF,
    CustomKernel,
    GramOperator,
    Laplacian,
    Polynomial,
    cross_product,
    total_variance,
)
from howsure.stats.namespace import as_rows
from howsure.stats.ridge import NystromSystem, RidgeSystem, kernel_system
from howsure.stats.solvers import (
    NegativeCurvatureError,
    Preconditioner,
    SolverOptions,
    block_cg,
    pivoted_cholesky,
)

quick = examples(25)
KERNELS = [RBF(0.3), RBF(30.0), Laplacian(1.0), Polynomial()]


def dense(kernel, x, targets, regularization, counts=None):
    """Coefficients by solving; repeated rows written out."""
    rows = np.arange(len(x)) if counts is None else np.repeat(np.arange(len(x)), counts)
    gram = kernel.gram(x[rows], x[rows])
    ridge = len(rows) * regularization * np.eye(len(rows))
    solved = np.linalg.solve(gram + ridge, targets[rows])
    gathered = np.zeros_like(targets)
    np.add.at(gathered, rows, solved)
    return gathered


@quick
@given(st.integers(1, 30), st.integers(1, 12), st.integers(0, 10**6), st.booleans())
def test_block_cg_solves_dependent_right_hand_sides(size, columns, seed, dependent):
    rng = child(seed, "cg")
    root = rng.normal(size=(size, size))
    matrix = root @ root.T + np.eye(size)
    columns = min(columns, size)
    targets = rng.normal(size=(size, columns))
    if dependent:
        targets[:, -1] = 2.0 * targets[:, 0]
        targets[:, 0] = 0.0
    found, steps, converged = block_cg(lambda v: matrix @ v, targets, stop=1e-10)
    assert converged
    assert steps <= size + 10
    np.testing.assert_allclose(found, np.linalg.solve(matrix, targets), atol=1e-8)


def test_block_cg_reports_failure_and_negative_curvature(monkeypatch):
    rng = child(0, "cg")
    matrix = np.diag(np.geomspace(1.0, 1e6, 50))
    targets = rng.normal(size=(50, 2))
    with pytest.raises(InputError, match="negative curvature"):
        block_cg(lambda v: -v, targets, stop=1e-12)
    monkeypatch.setattr("howsure.stats.solvers._MAX_ITERATIONS", 3)
    assert block_cg(lambda v: matrix @ v, targets, stop=1e-12)[1:] == (3, False)


def test_block_cg_tells_how_far_it_has_come():
    rng = child(0, "share")
    matrix = np.diag(np.geomspace(1.0, 1e4, 60))
    shares = []
    _, steps, converged = block_cg(
        lambda v: matrix @ v, rng.normal(size=(60, 2)), stop=1e-9, progress=shares.append
    )
    assert converged
    assert len(shares) == steps
    assert shares[-1] == 1.0
    assert all(0.0 <= share <= 1.0 for share in shares)
    assert 0.0 < shares[len(shares) * 3 // 4] < 1.0


def test_block_cg_gives_up_where_rounding_lets_it_diverge():
    rng = child(1, "diverge")
    targets = rng.normal(size=(40, 2)).astype(np.float32)

    def skew(vectors):  # hardly any curvature in any direction, so that steps are far too long
        return 1e-6 * vectors + np.roll(vectors, 1, axis=0) - np.roll(vectors, -1, axis=0)

    _, steps, converged = block_cg(skew, targets, stop=1e-30)
    assert not converged
    assert steps < 20
    infinite = block_cg(lambda v: v * np.inf, targets, stop=1e-30)
    assert infinite[1:] == (1, False)


def test_preconditioner_is_the_inverse_root():
    rng = child(1, "whiten")
    factor = rng.normal(size=(20, 4))
    matrix = factor @ factor.T + 0.7 * np.eye(20)
    white = Preconditioner(factor, 0.7)
    vectors = rng.normal(size=(20, 3))
    twice = white.whiten(white.whiten(vectors))
    np.testing.assert_allclose(twice, np.linalg.solve(matrix, vectors), atol=1e-12)
    np.testing.assert_allclose(white.solve(vectors), twice, atol=1e-12)


def test_preconditioner_leaves_small_directions_alone_but_solves_with_them():
    rng = child(1, "small")
    factor = np.linalg.qr(rng.normal(size=(20, 3)))[0] * [10.0, 1.0, 1e-3]
    matrix = factor @ factor.T + 0.7 * np.eye(20)
    white = Preconditioner(factor, 0.7)
    vectors = rng.normal(size=(20, 3))
    exact = np.linalg.solve(matrix, vectors)
    np.testing.assert_allclose(white.solve(vectors), exact, atol=1e-13)
    twice = white.whiten(white.whiten(np.eye(20)))
    assert 1e-9 < np.abs(twice - np.linalg.inv(matrix)).max() < 1e-5
    assert np.linalg.eigvalsh(twice - np.linalg.inv(matrix))[0] > -1e-13  # never too small


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize(
    ("method", "tiled"),
    [("iterative", False), ("iterative", True), ("dense", False), ("auto", False), ("auto", True)],
)
def test_ridge_system_agrees_with_dense_algebra(kernel, method, tiled):
    rng = child(2, "ridge")
    x, grid = rng.normal(size=(150, 2)), rng.normal(size=(9, 2))
    targets = rng.normal(size=(150, 6))
    options = SolverOptions(method=method, tolerance=1e-12, memory=0.0 if tiled else 1e9)
    system = RidgeSystem(kernel, x, 0.05, options)
    found = system.solve(targets)
    truth = dense(kernel, x, targets, 0.05)
    np.testing.assert_allclose(found.coefficients, truth, atol=1e-11)
    np.testing.assert_allclose(system.fitted(found), kernel.gram(x, x) @ truth, atol=1e-10)
    np.testing.assert_allclose(
        system.predict(grid, found), kernel.gram(grid, x) @ truth, atol=1e-10
    )
    assert found.residual < 1e-11
    assert found.solver == ("cholesky" if method == "dense" else found.solver)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("method", ["iterative", "dense"])
def test_counts_stand_for_repeated_rows(kernel, method):
    rng = child(3, "counts")
    x, targets = rng.normal(size=(90, 1)), rng.normal(size=(90, 3))
    counts = np.bincount(rng.integers(0, 90, 90), minlength=90)
    options = SolverOptions(method=method, tolerance=1e-12)
    system = RidgeSystem(kernel, x, 0.1, options)
    found = system.solve(targets, counts.astype(float))
    np.testing.assert_allclose(
        found.coefficients, dense(kernel, x, targets, 0.1, counts), atol=1e-11
    )
    assert found.residual < 1e-11
    nystrom = NystromSystem(RBF(0.3), x, 0.1, SolverOptions(tolerance=1e-12, landmarks=90))
    again = nystrom.predict(x, nystrom.solve(targets, counts.astype(float)))
    truth = RBF(0.3).gram(x, x) @ dense(RBF(0.3), x, targets, 0.1, counts)
    np.testing.assert_allclose(again, truth, atol=1e-7)


@pytest.mark.parametrize("tolerance", [1e-4, 1e-8])
@pytest.mark.parametrize("kernel", KERNELS)
def test_reported_error_bounds_the_error_anywhere(kernel, tolerance):
    rng = child(4, "bound")
    x, grid = rng.normal(size=(300, 2)), rng.normal(size=(50, 2))
    targets = rng.normal(size=(300, 4))
    system = RidgeSystem(kernel, x, 0.02, SolverOptions(method="iterative", tolerance=tolerance))
    found = system.solve(targets)
    truth = kernel.gram(grid, x) @ dense(kernel, x, targets, 0.02)
    error = np.linalg.norm(system.predict(grid, found) - truth, axis=1)
    assert (error <= found.error * np.sqrt(kernel.diagonal(grid)) + 1e-12).all()
    assert found.error <= tolerance


def test_a_smooth_kernel_needs_no_products_and_a_rough_one_few():
    x = child(5, "products").uniform(0.0, 6.0, (400, 1))
    targets = child(5, "targets").normal(size=(400, 5))
    smooth = RidgeSystem(RBF(1.0), x, 0.1).solve(targets)
    assert (smooth.solver, smooth.iterations) == ("low-rank factor", 0)
    options = SolverOptions(method="iterative")
    rough = RidgeSystem(Laplacian(50.0), x, 0.1, options).solve(targets)
    assert 1 <= rough.iterations <= 12


def test_the_spectrum_of_a_smooth_kernel_solves_many_targets_and_then_counts():
    rng = child(17, "spectrum")
    x, targets = rng.normal(size=(600, 2)), rng.normal(size=(600, 150))
    counts = np.bincount(rng.integers(0, 600, 600), minlength=600)
    system, gram = RidgeSystem(RBF(0.3), x, 0.1), RBF(0.3).gram(x, x)
    for seen in (None, counts):
        found, truth = system.solve(targets, seen), dense(RBF(0.3), x, targets, 0.1, seen)
        assert found.solver == "spectrum"
        np.testing.assert_allclose(found.coefficients, truth, atol=1e-12)
        wrong = np.linalg.norm(system.fitted(found) - gram @ truth, axis=1).max()
        assert wrong <= found.error + 1e-12 < 1e-8
        assert found.residual < 1e-9
    for size in (1e-60, 1e60):
        scaled = system.solve(size * targets).coefficients
        np.testing.assert_allclose(scaled / size, system.solve(targets).coefficients, atol=1e-15)
    assert RidgeSystem(Laplacian(5.0), x, 0.1).solve(targets).solver == "cholesky"


def test_products_by_tiles_are_those_of_the_whole_matrix():
    x = child(6, "tiles").normal(size=(4500, 2))
    vectors = child(6, "vectors").normal(size=(4500, 2))
    kernel = Laplacian(1.0)
    calls = []
    operator = GramOperator(kernel, x, memory=0.0)
    with subscribe(lambda *step: calls.append(step)):
        by_tiles = operator.product(vectors)
    np.testing.assert_allclose(by_tiles, cross_product(kernel, x, x, vectors), atol=1e-10)
    some = kernel.gram(x[:5], x) @ vectors
    np.testing.assert_allclose(by_tiles[:5], some, atol=1e-10)
    assert calls[0] == ("kernel product", 0, 15)
    assert calls[-1] == ("kernel product", 15, 15)
    with pytest.raises(UnanswerableError, match="more than allowed"):
        operator.matrix()


def test_32_bits_come_out_in_32_bits_and_close():
    rng = child(7, "float32")
    x, targets = rng.normal(size=(500, 3)), rng.normal(size=(500, 4))
    small = RidgeSystem(
        RBF(1.0), as_rows(x, "x", dtype="float32"), 0.1, SolverOptions(dtype="float32")
    ).solve(targets)
    assert small.coefficients.dtype == np.float32
    truth = dense(RBF(1.0), x, targets, 0.1)
    assert np.abs(small.coefficients - truth).max() < 1e-6


def test_nystrom_is_exact_where_the_kernel_is_smooth():
    rng = child(8, "nystrom")
    x, targets = rng.uniform(0.0, 6.0, (900, 1)), rng.normal(size=(900, 4))
    system = NystromSystem(RBF(1.0), x, 0.1)
    truth = RBF(1.0).gram(x, x) @ dense(RBF(1.0), x, targets, 0.1)
    np.testing.assert_allclose(system.predict(x, system.solve(targets)), truth, atol=1e-9)
    assert system.landmarks < 60


def test_nystrom_with_all_rows_as_landmarks_is_exact():
    rng = child(9, "nystrom")
    x, targets = rng.normal(size=(60, 4)), rng.normal(size=(60, 2))
    system = NystromSystem(RBF(1.0), x, 0.1, SolverOptions(landmarks=60))
    truth = RBF(1.0).gram(x, x) @ dense(RBF(1.0), x, targets, 0.1)
    np.testing.assert_allclose(system.predict(x, system.solve(targets)), truth, atol=1e-10)


def test_nystrom_estimates_its_own_error():
    rng = child(10, "nystrom")
    x = rng.normal(size=(1200, 6))
    targets = np.column_stack([np.sin(x[:, 0]), np.cos(x[:, 1])]) + 0.3 * rng.normal(size=(1200, 2))
    system = NystromSystem(RBF(0.1), x, 0.1, SolverOptions(landmarks=80))
    approximate = system.predict(x[:500], system.solve(targets))
    exact = RidgeSystem(RBF(0.1), x, 0.1)
    gap = np.linalg.norm(approximate - exact.predict(x[:500], exact.solve(targets)), axis=1)
    typical, largest = system.estimate_error(targets, x)
    assert typical == pytest.approx(np.sqrt(np.mean(gap**2)), rel=0.5)
    assert largest > gap.max() / 3
    assert typical > 1e-4  # an approximation that is not exact, or the test says nothing
    far = 2.0 * x[:400]
    apart = system.predict(far, system.solve(targets)) - exact.predict(far, exact.solve(targets))
    found = system.estimate_error(targets, far)
    assert found[0] == pytest.approx(np.sqrt(np.mean(np.sum(apart**2, axis=1))), rel=0.5)
    assert found != (typical, largest)


def test_32_bit_rows_are_never_copied_whole_in_64_bits():
    x = child(15, "memory").normal(size=(60_000, 256)).astype(np.float32)
    targets = x[:, :2].astype(np.float64)
    tracemalloc.start()
    try:
        rows = as_rows(x, "x", dtype="float32")
        kernel = RBF(1.0 / (2.0 * total_variance(rows)))
        system = NystromSystem(kernel, rows, 0.1, SolverOptions(dtype="float32", landmarks=50))
        system.predict(rows, system.solve(targets))
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert most < x.nbytes


def test_which_system_is_chosen():
    x = np.zeros((3, 1))
    assert isinstance(kernel_system(RBF(1.0), x, 0.1, SolverOptions()), RidgeSystem)
    chosen = kernel_system(RBF(1.0), x, 0.1, SolverOptions(method="nystrom"))
    assert isinstance(chosen, NystromSystem)
    many = np.zeros((50_001, 1))
    assert isinstance(kernel_system(RBF(1.0), many, 0.1, SolverOptions()), NystromSystem)
    insisted = kernel_system(RBF(1.0), many, 0.1, SolverOptions(method="iterative"))
    assert isinstance(insisted, RidgeSystem)


def test_a_system_in_small_memory_that_does_not_converge_says_so(monkeypatch):
    monkeypatch.setattr("howsure.stats.ridge.block_cg", lambda *a, **k: (a[1], 500, False))
    x, targets = child(11, "x").normal(size=(100, 8)), child(11, "t").normal(size=(100, 2))
    options = SolverOptions(method="iterative", memory=0.0)
    with pytest.raises(UnanswerableError, match="did not converge in float64"):
        RidgeSystem(RBF(1.0), x, 0.1, options).solve(targets)
    fallback = RidgeSystem(RBF(1.0), x, 0.1, SolverOptions(method="iterative")).solve(targets)
    assert fallback.solver == "cholesky"
    truth = dense(RBF(1.0), x, targets, 0.1)
    np.testing.assert_allclose(fallback.coefficients, truth, atol=1e-11)


def test_curvature_lost_to_rounding_is_no_fault_of_a_certain_kernel(monkeypatch):
    def lost(*arguments, **options):
        raise NegativeCurvatureError("kernel must be positive definite, got a direction")

    monkeypatch.setattr("howsure.stats.ridge.block_cg", lost)
    x, targets = child(16, "x").normal(size=(100, 8)), child(16, "t").normal(size=(100, 2))
    options = SolverOptions(method="iterative")
    assert RidgeSystem(RBF(1.0), x, 0.1, options).solve(targets).solver == "cholesky"
    with pytest.raises(UnanswerableError, match="did not converge in float64"):
        RidgeSystem(RBF(1.0), x, 0.1, SolverOptions(method="iterative", memory=0.0)).solve(targets)
    own = CustomKernel(lambda a, b: np.exp(-np.square(a[:, None] - b[None]).sum(axis=2)))
    with pytest.raises(NegativeCurvatureError, match="positive definite"):
        RidgeSystem(own, x, 0.1, options).solve(targets)


def test_an_indefinite_kernel_that_a_sample_hides_is_still_caught():
    def hidden(a, b):  # indefinite only between rows 1 and 2, which the sample leaves out
        gram = np.exp(-np.square(a - b.T))
        return gram - 3.0 * ((a == 1.0) & (b.T == 2.0)) - 3.0 * ((a == 2.0) & (b.T == 1.0))

    x = np.arange(600.0)[:, None]
    targets = child(12, "t").normal(size=(600, 2))
    for method in ("dense", "iterative"):
        with pytest.raises(InputError, match="positive definite"):
            RidgeSystem(CustomKernel(hidden), x, 1e-4, SolverOptions(method=method)).solve(targets)


@pytest.mark.parametrize("regularization", [0.0, -0.1, float("nan"), float("inf")])
@pytest.mark.parametrize("system", [RidgeSystem, NystromSystem])
def test_regularization_must_be_positive(system, regularization):
    with pytest.raises(InputError, match="regularization must be a positive number"):
        system(RBF(1.0), np.zeros((2, 1)), regularization)


@pytest.mark.parametrize(
    "choice",
    [{"method": "magic"}, {"dtype": "int8"}, {"tolerance": 0.0}, {"landmarks": 0}],
)
def test_solver_options_are_checked(choice):
    with pytest.raises(InputError, match="must"):
        SolverOptions(**choice)


def test_pivots_of_a_custom_kernel_serve_the_preconditioner():
    x = child(13, "custom").normal(size=(120, 2))
    kernel = CustomKernel(lambda a, b: (a @ b.T + 1.0) ** 2)
    found = pivoted_cholesky(kernel.diagonal(x), lambda row: kernel.gram(x[row : row + 1], x)[0])
    assert found.rank == 6  # 1, two linear and three quadratic functions of two columns
    targets = child(13, "targets").normal(size=(120, 2))
    solved = RidgeSystem(kernel, x, 0.1, SolverOptions(method="iterative")).solve(targets)
    assert (solved.solver, solved.iterations) == ("low-rank factor", 0)
    np.testing.assert_allclose(solved.coefficients, dense(kernel, x, targets, 0.1), atol=1e-10)


def test_one_landmark_is_enough_to_ask_for() -> None:
    assert SolverOptions(landmarks=1).landmarks == 1
    with pytest.raises(InputError, match="landmarks"):
        SolverOptions(landmarks=0)


def test_the_exact_system_gets_the_options() -> None:
    x, y = np.linspace(0.0, 1.0, 60)[:, None], np.sin(np.arange(60.0))[:, None]
    loose = SolverOptions(method="iterative", tolerance=0.5)
    wanted = RidgeSystem(RBF(1.0), x, 0.001, loose)
    found = kernel_system(RBF(1.0), x, 0.001, loose)
    exact = kernel_system(RBF(1.0), x, 0.001, SolverOptions())
    fits = [system.fitted(system.solve(y)) for system in (found, wanted, exact)]
    np.testing.assert_array_equal(fits[0], fits[1])
    assert np.abs(fits[0] - fits[2]).max() > 1e-6
