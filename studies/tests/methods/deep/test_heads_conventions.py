"""The published calibration error of the discrete wave, under every convention that it may have.

What the page on heads says of the law that the data came from, and of a Poisson law of its mean.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from howsure.core.rng import child
from howsure.predictions import Distribution
from howsure.topics.calibration.curve import calibration_error
from howsure_studies.congruence.worlds import ConwayMaxwellPoisson

SETS, ROWS = 40, 100


def errors(law: str, convention: str, sets: int = SETS, **options: Any) -> np.ndarray:
    """Calibration errors of test sets of 100 rows, y = 30 − K with p(k) ∝ (λᵏ/k!)⁵."""
    found = []
    for seed in range(sets):
        rng = child(seed, "wave conventions")
        rate = np.maximum(10.0 * np.sin(rng.uniform(0.0, 2.0 * np.pi, ROWS)) + 10.0, 1e-9)
        below = ConwayMaxwellPoisson(rate, np.full(ROWS, 5.0))
        k = below.sample(rng, 1)[:, 0]
        right, left = 1.0 - below.cdf(k - 1.0), 1.0 - below.cdf(k)
        if law == "poisson":
            poisson = Distribution("poisson", {"mu": 30.0 - below.mean()})
            right, left = poisson.cdf(30.0 - k), poisson.cdf_left(30.0 - k)
        pit = {
            "at most": right,
            "below": left,
            "middle": (left + right) / 2.0,
            "drawn": left + rng.random(ROWS) * (right - left),
        }[convention]
        found.append(calibration_error(np.clip(pit, 0.0, 1.0), **options).value)
    return np.array(found)


@pytest.mark.parametrize(
    ("law", "convention", "weighting", "told"),
    [
        ("truth", "at most", "frequency", 0.198),
        ("truth", "at most", "uniform", 0.162),
        ("truth", "below", "frequency", 0.147),
        ("truth", "below", "uniform", 0.160),
        ("truth", "middle", "frequency", 0.044),
        ("truth", "drawn", "frequency", 0.031),
        ("poisson", "at most", "frequency", 0.125),
        ("poisson", "below", "frequency", 0.168),
    ],
)
def test_errors_are_those_told(law: str, convention: str, weighting: Any, told: float) -> None:
    """Within four standard errors of a mean of 40 sets; those told are means of 4,000."""
    found = errors(law, convention, weighting=weighting, levels=50)
    assert found.mean() == pytest.approx(told, abs=4.0 * found.std() / np.sqrt(SETS))


@pytest.mark.rate
def test_no_convention_gives_the_truth_what_is_published() -> None:
    """Of 600 sets 1.5 % are told to lie at 0.119 or below: 9 ± 3."""
    published = errors("truth", "at most", 600, weighting="frequency", levels=50)
    assert 0 < (published <= 0.119).sum() <= 21
    finer = errors("truth", "at most", weighting="frequency", levels=100)
    assert np.abs(finer - published[:SETS]).max() < 0.005
    nearest = errors("truth", "below", 600, weighting="frequency", levels=50)
    assert (nearest <= 0.119).mean() == pytest.approx(0.17, abs=0.06)
    poisson = errors("poisson", "below", 600, weighting="frequency", levels=50)
    assert (poisson <= 0.135).mean() < 0.015
