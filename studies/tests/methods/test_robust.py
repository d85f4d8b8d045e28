"""Levels that hold within a divergence: beside populations that are sought one by one."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy import optimize, special

from howsure.conformal import conformal_threshold
from howsure.conformal.adapting import Calibration, RankChoice
from howsure.core.errors import InputError
from howsure.core.rng import child
from howsure_studies.methods.conformal.robust import (
    DivergenceBall,
    divergence_of,
    robust_coverage,
    worst_coverage,
)

DIVERGENCES = {
    "kl": lambda ratio: special.xlogy(ratio, ratio),
    "chi2": lambda ratio: np.square(ratio - 1.0),
    "tv": lambda ratio: np.abs(ratio - 1.0) / 2.0,
}


@pytest.mark.parametrize("divergence", DIVERGENCES)
@pytest.mark.parametrize(
    ("rows", "inside", "radius"), [(10, 9, 0.02), (10, 7, 0.15), (20, 19, 0.3)]
)
def test_no_population_of_many_cells_covers_less(
    divergence: Any, rows: int, inside: int, radius: float
) -> None:
    """A solver that moves the mass of each of `rows` equal cells finds the same least coverage."""
    size = DIVERGENCES[divergence]
    covered = np.arange(rows) < inside
    if divergence == "tv":  # linear in the mass and in how far each cell is from its own
        eye, ones = np.eye(rows), np.ones(rows)
        found = optimize.linprog(
            np.r_[covered, 0 * ones],
            A_ub=np.block([[eye, -eye], [-eye, -eye], [0 * ones, ones / 2]]),
            b_ub=np.r_[ones / rows, -ones / rows, radius],
            A_eq=np.r_[ones, 0 * ones][None],
            b_eq=[1.0],
        )
        least = float(found.fun)
    else:
        rule: dict[str, Any] = {
            "type": "ineq",
            "fun": lambda q: radius - size(np.maximum(q, 0.0) * rows).mean(),
        }
        found = optimize.minimize(
            lambda q: q[covered].sum(),
            np.full(rows, 1 / rows) + 1e-3 * child(rows, "start").normal(size=rows),
            bounds=[(0.0, 1.0)] * rows,
            constraints=[rule, {"type": "eq", "fun": lambda q: q.sum() - 1}],
            method="SLSQP",
            options={"maxiter": 500, "ftol": 1e-12},
        )
        least = float(found.fun)
        # Where it stops is a population within the radius, whatever it says of its last step.
        assert rule["fun"](found.x) > -1e-8
        assert found.x.sum() == pytest.approx(1.0)
    assert worst_coverage(inside / rows, radius, divergence) == pytest.approx(least, abs=1e-5)
    rng = child(rows, "any")
    for _ in range(2000):  # and none that is drawn covers less
        q = rng.dirichlet(np.full(rows, rng.uniform(0.5, 20)))
        reach = float(size(q * rows).mean())
        assert q[covered].sum() >= worst_coverage(inside / rows, reach, divergence) - 1e-9


@pytest.mark.parametrize("divergence", DIVERGENCES)
def test_the_robust_level_is_the_inverse_of_the_worst(divergence: Any) -> None:
    for coverage in (0.5, 0.8, 0.9, 0.99):
        for radius in (0.0, 0.003, 0.05, 0.4, 5.0):
            level = robust_coverage(coverage, radius, divergence)
            assert coverage - 1e-12 <= level <= 1.0
            if level < 1.0 - 1e-9:
                assert worst_coverage(level, radius, divergence) == pytest.approx(
                    coverage, abs=1e-7
                )
                assert worst_coverage(level + 1e-4 * (1 - level), radius, divergence) > coverage
    assert robust_coverage(0.9, 0.0, divergence) == pytest.approx(0.9)


def test_the_divergence_of_ratios_is_that_of_the_two_laws() -> None:
    """x ~ N(0, 1) at home and N(m, 1) elsewhere: KL m²/2, χ² exp(m²) − 1, TV 2Φ(m/2) − 1."""
    x, shift = child(1, "x").normal(size=400_000), 0.6
    ratio = 7.0 * np.exp(shift * x)
    assert divergence_of(ratio, "kl") == pytest.approx(shift**2 / 2, abs=0.004)
    assert divergence_of(ratio, "chi2") == pytest.approx(math.exp(shift**2) - 1, abs=0.02)
    assert divergence_of(ratio, "tv") == pytest.approx(2 * special.ndtr(shift / 2) - 1, abs=0.002)


def calibration(scores: np.ndarray, **given: Any) -> Calibration:
    n = len(scores)
    options: dict[str, Any] = {
        "x": np.arange(n)[:, None].astype(float),
        "training": np.zeros((0, 1)),
        "choice": RankChoice(),
        **given,
    }
    return Calibration(
        scores=scores[:, None],
        coverages=(0.9,),
        forecast=lambda x: x[:, 0],
        rng=child(0, "none"),
        **options,
    )


def test_the_ball_takes_the_conformal_threshold_at_the_higher_level() -> None:
    scores = child(2, "scores").normal(size=999)
    at = np.zeros((3, 1))
    for divergence, radius in (("kl", 0.05), ("chi2", 0.1), ("tv", 0.04)):
        level = robust_coverage(0.9, radius, divergence)  # type: ignore[arg-type]
        ball = DivergenceBall(radius, divergence)  # type: ignore[arg-type]
        expected = conformal_threshold(scores, level).value
        assert np.array_equal(ball.learn(calibration(scores)).at(at), np.full((3, 1), expected))
    assert np.isinf(DivergenceBall(0.2, "tv").learn(calibration(scores)).at(at)).all()
    with pytest.raises(InputError, match="too few calibration rows for a finite result"):
        DivergenceBall(0.2, "tv").learn(calibration(scores, choice=RankChoice(too_few="error")))


def test_the_worst_population_is_covered_as_promised() -> None:
    """Mass is moved to the largest scores as far as a χ² of .1 lets: 90 % are left."""
    rng, radius, reached = child(3, "worst"), 0.1, []
    level = robust_coverage(0.9, radius, "chi2")
    for _ in range(400):
        threshold = float(
            DivergenceBall(radius, "chi2")
            .learn(calibration(rng.uniform(size=199)))
            .at(np.zeros((1, 1)))[0, 0]
        )
        reached.append(threshold)  # of uniform scores it is the mass at home
    assert np.mean(reached) == pytest.approx(math.ceil(200 * level) / 200, abs=0.003)
    worst = [worst_coverage(min(mass, 1 - 1e-9), radius, "chi2") for mass in reached]
    error = float(np.std(worst)) / math.sqrt(len(worst))
    assert 0.9 - 3 * error <= np.mean(worst) <= 0.91


def test_an_estimated_radius_is_that_of_the_inputs() -> None:
    rng = child(4, "inputs")
    training, elsewhere = rng.normal(size=(3000, 1)), rng.normal(0.5, size=(3000, 1))
    scores, x = rng.uniform(size=2000), rng.normal(size=(2000, 1))
    known = calibration(scores, x=x, training=training, elsewhere=elsewhere)
    found = float(DivergenceBall().learn(known).at(x[:1])[0, 0])
    assert found == pytest.approx(robust_coverage(0.9, 0.125), abs=0.015)
    with pytest.raises(InputError, match="ratio must be given, or inputs of the training rows"):
        DivergenceBall().learn(calibration(scores))


@pytest.mark.parametrize(
    ("made", "words"),
    [
        (lambda: worst_coverage(1.0, 0.1), "coverage must"),
        (lambda: worst_coverage(0.9, -0.1), "radius must be finite and at least 0, got -0.1"),
        (lambda: robust_coverage(0.9, math.inf), "radius must be finite"),
        (lambda: robust_coverage(0.9, 0.1, "js"), "divergence must be"),  # type: ignore[arg-type]
        (lambda: divergence_of([1.0, -1.0]), "ratios must be at least 0"),
        (lambda: divergence_of([0.0, 0.0]), "ratios must be at least 0, and not all 0"),
        (lambda: DivergenceBall(-1.0), "radius must be finite"),
        (lambda: DivergenceBall(0.1, "js"), "divergence must be"),  # type: ignore[arg-type]
    ],
)
def test_what_cannot_be_is_refused(made: Any, words: str) -> None:
    with pytest.raises(InputError, match=words):
        made()
