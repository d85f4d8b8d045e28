"""Conditional congruence against the dense formula, its laws, and its refusals."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from generated import examples
from howsure.core.errors import HowsureWarning, InputError
from howsure.core.progress import subscribe
from howsure.core.rng import child
from howsure.stats.kernels import RBF, GramOperator, Laplacian, Polynomial
from howsure.stats.ridge import RidgeSystem
from howsure.stats.solvers import SolverOptions
from howsure.topics.congruence.predictive import Draws, Empirical, Mixtures, Normals
from howsure.topics.congruence.reference import CongruenceReference, cce, mcmd
from howsure.topics.congruence.results import difference, require_comparable
from oracles.congruence import laplacian, polynomial, rbf, squared_cce, squared_mcmd

quick = examples(40)


@st.composite
def samples(draw):
    """Two samples of pairs with duplicates, constant outputs, different sizes and λ."""
    rng = child(draw(st.integers(0, 10**6)), "samples")
    n, m = draw(st.integers(2, 70)), draw(st.integers(2, 70))
    width, outputs = draw(st.integers(1, 9)), draw(st.integers(1, 3))
    x, x2 = rng.normal(size=(n, width)), rng.normal(size=(m, width))
    y, y2 = rng.normal(size=(n, outputs)), 2.0 * rng.normal(size=(m, outputs))
    kinds = draw(st.sets(st.sampled_from(["repeated", "shared", "constant", "alike"])))
    if "repeated" in kinds:
        x[: n // 2], y[: n // 3], x2[:] = x[0], y[0], x2[0]
    if "shared" in kinds:
        x2[: min(n, m)], y2[: min(n, m)] = x[: min(n, m)], y[: min(n, m)]
    if "constant" in kinds:
        y[:], y2[:] = 1.0, 1.0 if "alike" in kinds else -1.0
    pair = [10.0 ** draw(st.floats(-3.0, 0.0)) for _ in range(2)]
    return x, y, x2, y2, rng.normal(size=(9, width)), pair


@st.composite
def input_kernels(draw):
    """A kernel of inputs, its dense form, and whether rows are divided by their length."""
    gamma = draw(st.floats(0.05, 5.0))
    degree, offset = draw(st.integers(1, 4)), draw(st.floats(0.0, 1.0))
    return draw(
        st.sampled_from(
            [
                (RBF(gamma), rbf(gamma), False),
                (RBF(gamma), rbf(gamma), True),
                (Laplacian(gamma), laplacian(gamma), False),
                (
                    Polynomial(degree, min(gamma, 1.0), offset),
                    polynomial(degree, min(gamma, 1.0), offset),
                    True,
                ),
            ]
        )
    )


@st.composite
def output_kernels(draw):
    """A kernel of outputs with k(y, y) = 1, and its dense form."""
    gamma = draw(st.floats(0.05, 5.0))
    return draw(st.sampled_from([(RBF(gamma), rbf(gamma)), (Laplacian(gamma), laplacian(gamma))]))


@pytest.mark.parametrize("method", ["auto", "iterative", "dense"])
def test_mcmd_agrees_with_the_dense_formula(method):
    @examples(60)
    @given(samples(), input_kernels(), output_kernels())
    def check(case, inputs, outputs):
        x, y, x2, y2, grid, (first, second) = case
        kernel, dense, unit = inputs
        found = mcmd(
            x,
            y,
            x2,
            y2,
            grid,
            kernel=kernel,
            normalize=unit,
            output_kernel=outputs[0],
            regularization=first,
            regularization2=second,
            solver=SolverOptions(method=method),
        )
        if unit:
            x, x2, grid = (
                rows / np.linalg.norm(rows, axis=1, keepdims=True) for rows in (x, x2, grid)
            )
        truth = squared_mcmd(
            x,
            y,
            x2,
            y2,
            grid,
            inputs=dense,
            outputs=outputs[1],
            regularization=first,
            regularization2=second,
        )
        np.testing.assert_allclose(np.square(found.values), truth, rtol=0, atol=1e-10)
        assert np.isfinite(found.values).all()

    check()


@quick
@given(samples(), st.integers(1, 3), st.sampled_from(["auto", "dense"]))
def test_cce_of_draws_agrees_with_the_dense_formula_of_repeated_inputs(case, draws, method):
    x, y, _, _, grid, (regularization, _) = case
    drawn = child(draws, "draws").normal(size=(len(x), draws, y.shape[1]))
    found = cce(
        x,
        y,
        Draws(drawn),
        grid,
        bandwidth=0.4,
        output_bandwidth=0.6,
        regularization=regularization,
        solver=SolverOptions(method=method),
    )
    truth = squared_cce(
        x, y, drawn, grid, inputs=rbf(0.4), outputs=rbf(0.6), regularization=regularization
    )
    np.testing.assert_allclose(np.square(found.values), truth, rtol=0, atol=1e-10)
    assert found.diagnostics.squared_error < 1e-9


@pytest.mark.parametrize("method", ["iterative", "dense", "nystrom"])
@pytest.mark.parametrize(
    ("kernel", "bandwidth", "dense"),
    [
        ("rbf", 0.5, rbf(0.5)),
        ("laplacian", 0.5, laplacian(0.5)),
        ("polynomial", None, polynomial(3, 1.0, 1.0)),
        ("polynomial", "inverse-width", polynomial(3, 1.0 / 7.0, 1.0)),
        ("polynomial", 0.02, polynomial(3, 0.02, 1.0)),
    ],
)
def test_every_input_kernel_and_solver_agrees_with_the_dense_formula(
    method, kernel, bandwidth, dense
):
    rng = child(0, "kernels")
    x, grid = rng.normal(size=(200, 7)), rng.normal(size=(20, 7))
    y = np.sin(x[:, :1]) + 0.3 * rng.normal(size=(200, 1))
    drawn = np.sin(x[:, :1]) + 0.6 * rng.normal(size=(200, 1))
    found = cce(
        x,
        y,
        Draws(drawn),
        grid,
        kernel=kernel,
        bandwidth=bandwidth,
        output_bandwidth=1.0,
        solver=SolverOptions(method=method, landmarks=200),
    )
    unit = kernel == "polynomial"
    lengths = np.linalg.norm(x, axis=1, keepdims=True), np.linalg.norm(grid, axis=1, keepdims=True)
    seen, where = (x / lengths[0], grid / lengths[1]) if unit else (x, grid)
    truth = squared_cce(
        seen, y, drawn[:, :, None], where, inputs=dense, outputs=rbf(1.0), regularization=0.1
    )
    np.testing.assert_allclose(np.square(found.values), truth, rtol=0, atol=1e-10)


def test_unnormalised_embeddings_are_an_option():
    rng = child(1, "raw")
    x, y = rng.normal(size=(40, 3)), rng.normal(size=(40, 1))
    drawn = rng.normal(size=(40, 1))
    raw = cce(x, y, Draws(drawn), kernel="polynomial", normalize=False, output_bandwidth=1.0)
    truth = squared_cce(
        x,
        y,
        drawn[:, :, None],
        x,
        inputs=polynomial(3, 1.0, 1.0),
        outputs=rbf(1.0),
        regularization=0.1,
    )
    np.testing.assert_allclose(np.square(raw.values), truth, atol=1e-10)
    unit = cce(x, y, Draws(drawn), kernel="polynomial", output_bandwidth=1.0)
    assert np.abs(unit.values - raw.values).max() > 1e-3


def test_named_bandwidths_are_what_they_say():
    rng = child(2, "bandwidth")
    x, y, grid = rng.normal(size=50), 3.0 * rng.normal(size=50), 2.0 * rng.normal(size=30)
    predictive = Draws(rng.normal(size=50))

    def kernels(**options):
        found = cce(x, y, predictive, grid, **options)
        return found.kernel, found.output_kernel

    assert kernels() == (
        RBF(1.0 / (2.0 * x.var(ddof=1))).describe(),
        RBF(1.0 / (2.0 * y.var(ddof=1))).describe(),
    )
    gaps = np.abs(x[:, None] - x)[np.triu_indices(50, 1)]
    assert kernels(bandwidth="median")[0] == RBF(1.0 / (2.0 * np.median(gaps) ** 2)).describe()
    wanted = RBF(1.0 / (2.0 * grid.var(ddof=1))).describe()
    assert kernels(bandwidth="grid-variance")[0] == wanted
    half = kernels(output_bandwidth="half-variance")[1]
    assert half == RBF(y.var(ddof=1) / 2.0).describe()
    rough = kernels(output_kernel="laplacian", output_bandwidth="median")[1]
    spread = np.abs(y[:, None] - y)[np.triu_indices(50, 1)]
    assert rough == Laplacian(1.0 / np.median(spread)).describe()
    assert kernels(output_kernel="laplacian-squared")[1].startswith("laplacian-squared(gamma=")
    assert kernels(kernel=Polynomial(2, 0.5, 0.0))[0] == Polynomial(2, 0.5, 0.0).describe()


def test_the_squared_laplacian_is_the_gaussian_kernel_in_one_column():
    rng = child(3, "code")
    x, y, predictive = rng.normal(size=60), rng.normal(size=60), Draws(rng.normal(size=60))
    published = cce(x, y, predictive, output_kernel="laplacian-squared", output_bandwidth=0.7)
    gaussian = cce(x, y, predictive, output_kernel="rbf", output_bandwidth=0.7)
    np.testing.assert_allclose(published.values, gaussian.values, atol=1e-12)
    true = cce(x, y, predictive, output_kernel="laplacian", output_bandwidth=0.7)
    assert np.abs(true.values - gaussian.values).max() > 1e-3


def test_own_kernel_functions_are_taken():
    rng = child(4, "own")
    x, y, predictive = rng.normal(size=30), rng.normal(size=30), Draws(rng.normal(size=30))
    own = cce(
        x, y, predictive, kernel=lambda a, b: np.exp(-np.square(a - b.T)), output_bandwidth=1.0
    )
    named = cce(x, y, predictive, bandwidth=1.0, output_bandwidth=1.0)
    np.testing.assert_allclose(own.values, named.values, atol=1e-12)


@pytest.mark.parametrize(
    ("method", "memory"),
    [("auto", 2e9), ("auto", 0.0), ("iterative", 2e9), ("iterative", 0.0), ("dense", 2e9)],
)
@pytest.mark.parametrize("strengths", [(0.1, 0.1), (0.1, 0.3)])
def test_samples_with_the_same_inputs_agree_with_the_dense_formula(method, strengths, memory):
    rng = child(5, "shared inputs")
    x, y, y2 = rng.normal(size=(80, 3)), rng.normal(size=80), rng.normal(size=80) + 1.0
    grid = np.concatenate([x[:5], rng.normal(size=(4, 3))])
    for points in (x, grid):
        found = mcmd(
            *(x, y, x.copy(), y2, points),
            bandwidth=0.3,
            output_bandwidth=0.4,
            regularization=strengths[0],
            regularization2=strengths[1],
            solver=SolverOptions(method=method, memory=memory),
        )
        truth = squared_mcmd(
            *(x, y[:, None], x, y2[:, None], points),
            inputs=rbf(0.3),
            outputs=rbf(0.4),
            regularization=strengths[0],
            regularization2=strengths[1],
        )
        np.testing.assert_allclose(np.square(found.values), truth, rtol=0, atol=1e-10)


def test_samples_with_the_same_inputs_are_solved_as_the_congruence_error_is(monkeypatch):
    rng = child(5, "one solve")
    x, y, y2 = rng.normal(size=(60, 2)), rng.normal(size=60), rng.normal(size=60)
    solves = []
    solve = RidgeSystem.solve
    monkeypatch.setattr(RidgeSystem, "solve", lambda *told: solves.append(1) or solve(*told))
    same = mcmd(x, y, x.copy(), y2, x)
    assert len(solves) == 1
    np.testing.assert_array_equal(same.values, cce(x, y, Draws(y2)).values)
    almost = x.copy()
    almost[-1, -1] = np.nextafter(almost[-1, -1], 9.0)  # other inputs, by the last digit
    del solves[:]
    other = mcmd(x, y, almost, y2, x)
    assert len(solves) == 2
    np.testing.assert_allclose(np.square(other.values), np.square(same.values), atol=1e-10)


def test_a_kernel_matrix_that_fits_is_made_once_for_both_strengths(monkeypatch):
    rng = child(5, "made once")
    x, y, y2 = rng.normal(size=(50, 2)), rng.normal(size=50), rng.normal(size=50)
    made = []
    walk = GramOperator._tiles
    monkeypatch.setattr(GramOperator, "_tiles", lambda *told: made.append(1) or walk(*told))
    values = []
    for memory, once in ((8.0 * 50**2, True), (8.0 * 50**2 - 1.0, False)):
        del made[:]
        solver = SolverOptions(method="iterative", memory=memory)
        values.append(mcmd(x, y, x, y2, x, regularization2=0.2, solver=solver).values)
        assert (len(made) == 1) == once, len(made)
    np.testing.assert_allclose(values[0], values[1], rtol=0, atol=1e-12)


def test_swapping_the_samples_changes_nothing():
    rng = child(5, "swap")
    x, y, x2, y2 = (rng.normal(size=n) for n in (40, 40, 55, 55))
    options = {"bandwidth": 0.5, "output_bandwidth": 0.5}
    one = mcmd(x, y, x2, y2, x, regularization=0.1, regularization2=0.3, **options)
    two = mcmd(x2, y2, x, y, x, regularization=0.3, regularization2=0.1, **options)
    np.testing.assert_allclose(one.values, two.values, atol=1e-10)
    assert one.regularization == (0.1, 0.3)
    assert one.n == (40, 55)
    assert one.mean == pytest.approx(one.values.mean())


def test_order_of_rows_and_shifts_of_axes_change_nothing():
    rng = child(6, "order")
    x, y = rng.normal(size=(80, 2)), rng.normal(size=80)
    mean, sd = rng.normal(size=80), rng.uniform(0.5, 1.0, 80)
    grid = rng.normal(size=(7, 2))
    plain = cce(x, y, Normals(mean, sd), grid).values
    order = rng.permutation(80)
    shuffled = cce(x[order], y[order], Normals(mean[order], sd[order]), grid).values
    np.testing.assert_allclose(shuffled, plain, atol=1e-8)
    scaled = cce(5.0 * x + 3.0, 9.0 * y, Normals(9.0 * mean, 9.0 * sd), 5.0 * grid + 3.0).values
    np.testing.assert_allclose(scaled, plain, atol=1e-8)


def test_a_prediction_that_knows_the_outcomes_scores_zero():
    rng = child(7, "oracle")
    x, y = rng.normal(size=50), rng.normal(size=(50, 2))
    assert not cce(x, y, Normals(y, np.zeros((50, 2)))).values.any()
    assert not cce(x, y, Draws(y[:, None, :])).values.any()


def test_several_outputs_see_dependence_that_single_ones_do_not():
    rng = child(8, "outputs")
    x = rng.normal(size=400)
    first = rng.normal(size=400)
    y = np.column_stack([first, first])  # equal outputs; each is standard normal
    apart = cce(x, y, Normals(np.zeros((400, 2)), np.ones((400, 2)))).mean
    alone = cce(x, y[:, 0], Normals(np.zeros(400), np.ones(400))).mean
    assert apart > 3.0 * alone


def test_a_fitted_reference_scores_batches_as_one():
    rng = child(9, "monitor")
    x, y = rng.normal(size=(120, 2)), rng.normal(size=120)
    reference = CongruenceReference(x, y, Normals(np.zeros(120), np.full(120, 2.0)))
    new = rng.normal(size=(30, 2))
    whole = reference.score(new).values
    parts = [reference.score(new[rows]).values for rows in (slice(0, 7), slice(7, 30))]
    np.testing.assert_allclose(np.concatenate(parts), whole, atol=1e-12)
    np.testing.assert_allclose(reference.score().values, reference.score(x).values, atol=1e-10)


def test_far_from_all_references_nothing_is_known_and_nothing_is_found():
    rng = child(10, "far")
    x, y = rng.normal(size=60), rng.normal(size=60)
    found = cce(x, y, Draws(rng.normal(size=60)), [1e6])
    assert found.values.tolist() == [0.0]


@pytest.mark.parametrize("method", ["auto", "nystrom"])
def test_32_bits_are_close_to_64(method):
    rng = child(11, "bits")
    x, y = rng.normal(size=(500, 6)), rng.normal(size=500)
    predictive = Normals(np.full(500, 0.5), np.ones(500))
    options = {"method": method, "landmarks": 500}
    wide = cce(x, y, predictive, solver=SolverOptions(**options))
    narrow = cce(x, y, predictive, solver=SolverOptions(dtype="float32", **options))
    assert narrow.values.dtype == np.float64
    np.testing.assert_allclose(narrow.values, wide.values, atol=2e-4)


def test_nystrom_reports_landmarks_and_an_error_that_holds():
    rng = child(12, "nystrom")
    x = rng.normal(size=(1500, 5))
    y = np.sin(x[:, 0]) + 0.3 * rng.normal(size=1500)
    predictive = Normals(np.zeros(1500), np.ones(1500))
    exact = cce(x, y, predictive)
    options = SolverOptions(method="nystrom", landmarks=60)
    reference = CongruenceReference(x, y, predictive, solver=options)
    rough = reference.score()
    how = rough.diagnostics
    assert (how.solver, how.landmarks) == ("nystrom", 60)
    assert np.isnan(how.squared_error)
    gap = np.abs(rough.values - exact.values)
    assert 1e-5 < np.sqrt(np.mean(gap**2)) < 1.5 * how.typical_error
    assert gap.max() < 2.0 * how.largest_error
    assert exact.diagnostics.typical_error == 0.0


def test_a_rough_output_kernel_is_factored_whole_or_said_to_be_cut_off():
    rng = child(13, "rough")
    x, y, drawn = rng.normal(size=400), rng.normal(size=400), rng.normal(size=(400, 1))
    whole = cce(x, y, Draws(drawn), output_kernel="laplacian", output_bandwidth=1.0, bandwidth=1.0)
    truth = squared_cce(
        x[:, None],
        y[:, None],
        drawn[:, :, None],
        x[:, None],
        inputs=rbf(1.0),
        outputs=laplacian(1.0),
        regularization=0.1,
    )
    np.testing.assert_allclose(np.square(whole.values), truth, atol=1e-10)
    assert whole.diagnostics.rank > 100


def test_cutting_off_is_warned_about_and_bounded(monkeypatch):
    monkeypatch.setattr("howsure.topics.congruence.outputs._MAX_DENSE_ROWS", 100)
    rng = child(13, "rough")
    x, y, drawn = rng.normal(size=400), rng.normal(size=400), rng.normal(size=(400, 1))
    options = {"output_kernel": "laplacian", "output_bandwidth": 1.0, "bandwidth": 1.0}
    truth = squared_cce(
        x[:, None],
        y[:, None],
        drawn[:, :, None],
        x[:, None],
        inputs=rbf(1.0),
        outputs=laplacian(1.0),
        regularization=0.1,
    )
    with pytest.warns(HowsureWarning, match="too rough for 100 numbers"):
        cut = cce(x, y, Draws(drawn), **options)
    gap = truth - np.square(cut.values)
    assert gap.max() > 1e-8  # something is cut off
    assert gap.max() < cut.diagnostics.squared_error
    assert gap.min() > -1e-10  # values are low, never high
    assert cut.diagnostics.note.startswith("squared values may be low by up to")
    with pytest.warns(HowsureWarning, match="too rough"):
        mcmd(x, y, x, drawn, x, **options)


def test_many_atoms_are_searched_in_part_and_checked_in_full(monkeypatch):
    monkeypatch.setattr("howsure.topics.congruence.outputs._MAX_CANDIDATES", 200)
    rng = child(14, "atoms")
    x, y = rng.normal(size=60), rng.normal(size=60)
    cloud = rng.normal(size=(60, 15))
    cloud[7, 3] = 30.0  # one atom far from all others, likely left out at first
    in_part = cce(x, y, Empirical(cloud), output_bandwidth=0.5, bandwidth=0.5)
    truth = squared_cce(
        x[:, None],
        y[:, None],
        cloud[:, :, None],
        x[:, None],
        inputs=rbf(0.5),
        outputs=rbf(0.5),
        regularization=0.1,
    )
    np.testing.assert_allclose(np.square(in_part.values), truth, atol=1e-10)


def test_progress_is_told():
    stages = set()
    options = SolverOptions(method="iterative", memory=0.0)
    rng = child(15, "progress")
    with subscribe(lambda stage, done, total: stages.add((stage, done == total))):
        cce(
            rng.normal(size=(60, 9)),
            rng.normal(size=60),
            Draws(rng.normal(size=60)),
            rng.normal(size=(5, 9)),
            solver=options,
        )
    assert {("kernel product", True), ("kernel at new rows", True)} <= stages


def test_modes_draws_and_choices_are_never_mixed():
    rng = child(16, "modes")
    x, y = rng.normal(size=60), rng.normal(size=60)
    law = Normals(np.zeros(60), np.ones(60))
    exact, one = cce(x, y, law), cce(x, y, Draws(law.draw(rng)[:, 0]))
    five = cce(x, y, Draws(np.column_stack([law.draw(rng)[:, 0] for _ in range(5)])))
    assert (exact.mode, exact.draws, one.mode, one.draws) == ("exact", 0, "samples", 1)
    require_comparable(
        exact, exact, cce(x, y, Mixtures(np.ones((60, 1)), y[:, None], np.ones((60, 1))))
    )
    for other, what in (
        (one, "mode exact beside mode samples"),
        (cce(x, y, law, regularization=0.2), "regularization"),
        (cce(x, y, law, bandwidth=1.0), "kernel rbf"),
        (cce(x[1:], y[1:], Normals(np.zeros(59), np.ones(59)), bandwidth=1.0), "n 60 beside n 59"),
    ):
        with pytest.raises(InputError, match=what):
            require_comparable(exact, other)
        with pytest.raises(InputError, match="must have the same settings"):
            difference(exact, other)
    with pytest.raises(InputError, match="draws 1 beside draws 5"):
        require_comparable(one, five)
    with pytest.raises(InputError, match="same points, got 60 and 1"):
        difference(exact, cce(x, y, law, [0.0]))
    better = cce(x, y, Normals(y, np.zeros(60)))
    assert (difference(better, exact) < 0.0).all()
