"""The null reference, uncertainty of the mean, and rejection."""

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from generated import examples
from howsure.core.errors import InputError
from howsure.core.rng import child
from howsure.stats.solvers import SolverOptions
from howsure.topics.congruence.examples import rejection_curve
from howsure.topics.congruence.null import mean_cce, null_reference
from howsure.topics.congruence.predictive import Draws, Empirical, Normals
from howsure.topics.congruence.reference import CongruenceReference, cce

quick = examples(60)


def world(rows, seed, *, shift=0.0, spread=0.5, **options):
    rng = child(seed, "world")
    x = rng.uniform(0.0, 6.0, rows)
    y = np.cos(x) + 0.5 * rng.standard_normal(rows)
    predictive = Normals(np.cos(x) + shift, np.full(rows, spread))
    return CongruenceReference(x, y, predictive, bandwidth=1.0, output_bandwidth=1.0, **options)


@pytest.mark.parametrize("kernel", ["rbf", "laplacian"])
@pytest.mark.parametrize("method", ["auto", "iterative", "nystrom"])
def test_replicates_are_errors_with_the_outcomes_exchanged(kernel, method):
    if kernel == "laplacian" and method == "iterative":
        method = "dense"
    options = SolverOptions(method=method)
    reference = world(60, 0, output_kernel=kernel, solver=options)
    rng = child(1, "outcomes")
    outcomes = np.column_stack([reference.predictive.draw(rng)[:, 0] for _ in range(5)])
    grid = np.linspace(0.0, 6.0, 9)
    found = null_reference(reference, grid, outcomes=outcomes)
    rows = reference.inputs.rows
    for number in range(5):
        alone = cce(
            rows,
            outcomes[:, number],
            reference.predictive,
            grid,
            bandwidth=1.0,
            output_kernel=kernel,
            output_bandwidth=1.0,
        )
        assert found.replicates[number] == pytest.approx(alone.mean, abs=1e-9)
    assert found.expected == pytest.approx(found.replicates.mean())
    assert found.observed == pytest.approx(reference.score(grid).mean)
    above = (found.replicates >= found.observed).sum()
    assert found.p_value == (1 + above) / 6
    assert found.point_p_value.shape == (9,)
    assert found.point_expected.mean() == pytest.approx(found.expected)


def test_p_values_of_right_models_are_uniform_and_of_wrong_ones_small():
    right = [null_reference(world(80, s), replicates=19, seed=s).p_value for s in range(40)]
    assert stats.kstest(right, "uniform").pvalue > 0.01
    wrong = [null_reference(world(80, s, shift=0.5), replicates=39, seed=s) for s in range(5)]
    assert max(found.p_value for found in wrong) <= 0.05
    assert all(found.observed > found.upper for found in wrong)
    narrow = null_reference(world(300, 0, spread=0.2), replicates=99)
    assert narrow.p_value == 0.01


def test_where_the_model_is_wrong_is_where_points_are_small():
    rng = child(2, "local")
    x = rng.uniform(0.0, 6.0, 400)
    y = 0.5 * rng.standard_normal(400) + np.where(x > 3.0, 1.0, 0.0)
    reference = CongruenceReference(x, y, Normals(np.zeros(400), np.full(400, 0.5)), bandwidth=2.0)
    found = null_reference(reference, [1.0, 5.0], replicates=99)
    assert found.point_p_value[0] > 0.05
    assert found.point_p_value[1] == 0.01
    assert found.point_observed[1] > 3.0 * found.point_upper[1]


def test_the_null_falls_with_more_rows_and_is_reproducible():
    small, large = (null_reference(world(n, 3), replicates=40) for n in (50, 800))
    assert large.expected < 0.5 * small.expected
    again = null_reference(world(50, 3), replicates=40)
    assert again.replicates.tolist() == small.replicates.tolist()
    assert null_reference(world(50, 3), replicates=40, seed=1).expected != small.expected


def test_samplers_draws_and_samples_mode():
    reference = world(40, 4)
    by_function = null_reference(
        reference, outcomes=lambda rng: reference.predictive.draw(rng), replicates=20
    )
    assert (
        by_function.replicates.tolist()
        == null_reference(reference, replicates=20).replicates.tolist()
    )
    drawn = CongruenceReference(
        reference.inputs.rows, reference.y, Draws(reference.predictive.draw(child(0, "draw"))[:, 0])
    )
    with pytest.raises(InputError, match="draws must be given"):
        null_reference(drawn, replicates=3)
    found = null_reference(drawn, outcomes=reference.predictive.draw, replicates=60)
    assert found.p_value > 0.02
    cloud = Empirical(
        np.stack([reference.predictive.draw(child(s, "c"))[:, 0] for s in range(50)], 1)
    )
    sampled = CongruenceReference(reference.inputs.rows, reference.y, cloud)
    assert null_reference(sampled, replicates=60).p_value > 0.02


def ensemble(rows, members, seed, *, spread=1.0, kernel="rbf", method="auto"):
    """A world whose y and members come from one law of each row, the members' spread aside."""
    rng = child(seed, "ensemble")
    x = rng.uniform(0.0, 6.0, rows)
    mean, sd = np.cos(x), 0.3 + 0.1 * x
    y = rng.normal(mean, sd)
    samples = mean[:, None] + spread * sd[:, None] * rng.standard_normal((rows, members))
    return CongruenceReference(
        x,
        y,
        Empirical(samples),
        bandwidth=1.0,
        output_kernel=kernel,
        output_bandwidth=1.0,
        solver=SolverOptions(method=method),
    )


@pytest.mark.parametrize("kernel", ["rbf", "laplacian"])
@pytest.mark.parametrize("method", ["auto", "dense"])
@pytest.mark.parametrize("members", [1, 4])
def test_exchanged_worlds_are_errors_with_y_and_members_swapped(kernel, method, members):
    reference = ensemble(60, members, 0, kernel=kernel, method=method)
    x, y, samples = reference.inputs.rows, reference.y, reference.predictive.samples
    grid = np.linspace(0.0, 6.0, 9)
    found = null_reference(reference, grid, replicates=4, seed=3)
    for number in range(4):
        place = child(3, "congruence null", number).integers(0, members + 1, 60)
        outcome, others = y[:, 0].copy(), samples[:, :, 0].copy()
        for row in np.flatnonzero(place < members):
            outcome[row], others[row, place[row]] = others[row, place[row]], outcome[row]
        alone = cce(
            x,
            outcome,
            Empirical(others),
            grid,
            bandwidth=1.0,
            output_kernel=kernel,
            output_bandwidth=1.0,
        )
        assert found.replicates[number] == pytest.approx(alone.mean, abs=1e-9)


def rejected(members, rows, tables, **options):
    found = [
        null_reference(ensemble(rows, members, seed, **options), replicates=99, seed=seed).p_value
        for seed in range(tables)
    ]
    return np.mean(np.array(found) <= 0.05)


@pytest.mark.parametrize("members", [5, 10])
@pytest.mark.rate
def test_right_ensembles_of_few_members_are_rejected_as_often_as_promised(members):
    """Members drawn in y's place, y left out, would reject 12 to 24 %."""
    tables = 150
    assert rejected(members, 150, tables) <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / tables)


@pytest.mark.rate
def test_narrow_ensembles_are_found():
    assert rejected(5, 1000, 8, spread=0.8) == 1.0


def test_replicates_go_on_only_while_a_p_value_may_still_become_small():
    right, wrong = ensemble(100, 5, 2), ensemble(100, 5, 1, spread=0.2)
    plain = null_reference(right, replicates=199, most=9_999)
    assert (len(plain.replicates), plain.stopped) == (199, False)
    far = null_reference(wrong, replicates=199, most=999)
    assert (len(far.replicates), far.p_value, far.stopped) == (999, 0.001, False)
    first = null_reference(wrong, replicates=199)
    assert far.replicates[:199].tolist() == first.replicates.tolist()
    assert far.point_p_value.tolist() == first.point_p_value.tolist()
    assert far.range == tuple(np.quantile(far.replicates, [0.025, 0.975]))
    between = next(
        found
        for seed in range(200)
        if (
            found := null_reference(
                ensemble(60, 5, seed, spread=0.8), replicates=99, most=9_999, seed=seed
            )
        ).replicates.size
        not in (99, 9_999)
        and not found.stopped
    )
    larger = (between.replicates >= between.observed).sum()
    assert larger >= 10
    assert between.p_value == (1 + larger) / (1 + len(between.replicates))


def test_the_cost_of_further_replicates_is_bounded_and_said(monkeypatch):
    monkeypatch.setattr("howsure.topics.congruence.null._MAX_MULTIPLICATIONS", 1e8)
    reference = ensemble(100, 5, 1, spread=0.2)
    found = null_reference(reference, replicates=199, most=9_999)
    width = reference.target.shape[1]
    assert found.stopped
    assert len(found.replicates) == 199 + int(1e8 / (100 * (100 + 1500) * width))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"outcomes": "exchange"}, "outcomes may be 'exchange' only with samples"),
        ({"replicates": 9, "most": 5}, "most must be a whole number of at least 9"),
        ({"outcomes": np.zeros(40)}, r"outcomes must have shape \(n, R\) or \(n, R, p\)"),
        ({"outcomes": np.zeros((39, 5))}, "outcomes must have 40 rows, got 39"),
        ({"outcomes": np.zeros((40, 5, 2))}, "outcomes must have 1 columns, got 2"),
        ({"outcomes": lambda rng: np.full(40, np.nan)}, "outcomes must contain finite numbers"),
        ({"replicates": 0}, "replicates must be a whole number of at least 1"),
        ({"level": 95}, "level must be strictly between 0 and 1"),
    ],
)
def test_bad_null_requests_are_refused(options, message):
    with pytest.raises(InputError, match=message):
        null_reference(world(40, 5), **options)


@pytest.mark.parametrize("method", ["iterative", "dense", "nystrom"])
@pytest.mark.parametrize("own_grid", [True, False])
def test_bootstrap_means_are_those_of_the_rows_written_out(method, own_grid):
    reference = world(50, 6, solver=SolverOptions(method=method))
    grid = None if own_grid else np.linspace(1.0, 5.0, 7)
    found = mean_cce(reference, grid, bootstraps=3, seed=2)
    law = reference.predictive
    for number in range(3):
        rng = child(2, "congruence bootstrap", number)
        rows = rng.integers(0, 50, 50)
        where = reference.inputs.rows[rows] if own_grid else grid[rng.integers(0, 7, 7)]
        alone = cce(
            reference.inputs.rows[rows],
            reference.y[rows],
            Normals(law.mean[rows], law.sd[rows]),
            where,
            bandwidth=1.0,
            output_bandwidth=1.0,
        )
        assert found.bootstraps[number, 0] == pytest.approx(alone.mean, abs=1e-8)
    assert found.data_sd == pytest.approx(found.bootstraps.std(ddof=1))
    assert found.mean == pytest.approx(reference.score(grid).mean)
    assert found.monte_carlo_sd == 0.0


def test_repeats_measure_monte_carlo_noise():
    base = world(80, 7)
    drawn = [Draws(base.predictive.draw(child(s, "repeat"))[:, 0]) for s in range(5)]
    reference = CongruenceReference(
        base.inputs.rows, base.y, drawn[0], bandwidth=1.0, output_bandwidth=1.0
    )
    found = mean_cce(reference, repeats=drawn[1:], bootstraps=4)
    alone = [
        cce(base.inputs.rows, base.y, one, bandwidth=1.0, output_bandwidth=1.0).mean
        for one in drawn
    ]
    np.testing.assert_allclose(found.repeats, alone, atol=1e-9)
    assert found.monte_carlo_sd == pytest.approx(np.std(alone, ddof=1), abs=1e-9)
    assert found.bootstraps.shape == (4, 5)
    assert np.isnan(mean_cce(reference, bootstraps=2).monte_carlo_sd)
    with pytest.raises(InputError, match="samples with 2 beside samples with 1"):
        mean_cce(reference, repeats=[Draws(np.zeros((80, 2)))])
    with pytest.raises(InputError, match="exact with 0 beside samples with 1"):
        mean_cce(reference, repeats=[base.predictive])
    with pytest.raises(InputError, match="bootstraps must be a whole number of at least 2"):
        mean_cce(reference, bootstraps=1)


def test_the_bootstrap_spread_is_near_that_of_fresh_data():
    fresh = np.std([world(80, s, shift=0.5).score().mean for s in range(80)], ddof=1)
    found = np.mean([mean_cce(world(80, s, shift=0.5), bootstraps=15).data_sd for s in range(5)])
    assert found == pytest.approx(fresh, rel=0.4)


@quick
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 4)), min_size=1, max_size=6))
def test_rejection_is_the_average_over_orders_of_ties(rows):
    scores, errors = np.array(rows, dtype=float).T
    orders = [o for o in permutations(range(len(rows))) if (np.diff(scores[list(o)]) >= 0).all()]
    kept = np.mean(
        [[errors[list(o[: k + 1])].mean() for k in range(len(rows))] for o in orders], axis=0
    )
    curve = rejection_curve(scores, errors)
    np.testing.assert_allclose(curve.error, kept[::-1], atol=1e-12)
    np.testing.assert_allclose(curve.rejected, np.arange(len(rows)) / len(rows))
    assert curve.area == pytest.approx(kept.mean())
    assert (curve.oracle <= curve.error + 1e-12).all()
    assert curve.random == pytest.approx(errors.mean())
    assert curve.random_area == curve.random


def test_rejection_by_error_itself_gains_all_and_by_nothing_gains_nothing():
    errors = child(8, "errors").exponential(size=500)
    assert rejection_curve(errors, errors).gain == pytest.approx(1.0)
    assert rejection_curve(np.zeros(500), errors).gain == pytest.approx(0.0)
    assert rejection_curve(-errors, errors).gain < 0.0
    assert np.isnan(rejection_curve(errors, np.ones(500)).gain)


def test_congruence_errors_withhold_the_rows_that_are_wrong():
    rng = child(10, "monitor")
    x, new = rng.uniform(0.0, 6.0, 600), rng.uniform(0.0, 6.0, 600)

    def outcome(at):
        return np.where(at > 4.0, 2.0, 0.0) + 0.3 * rng.standard_normal(len(at))

    reference = CongruenceReference(x, outcome(x), Normals(np.zeros(600), np.full(600, 0.3)))
    curve = rejection_curve(reference.score(new).values, np.abs(outcome(new)))
    assert curve.gain > 0.8
    with pytest.raises(InputError, match="errors must have 2 rows, got 1"):
        rejection_curve([1.0, 2.0], [1.0])
