"""What the verdict says of coverage given inputs, and of laws of whole numbers."""

import numpy as np
import pytest

from howsure import Options
from howsure.predictions import Distribution, Intervals
from howsure.report.assess import assess


def test_the_region_where_coverage_fails_is_named() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(3000, 3))
    y = np.where(x[:, 0] > 1, 2.5, 1.0) * rng.normal(size=3000)
    width = np.full(3000, np.quantile(np.abs(y), 0.9))
    found = assess(y, Intervals(-width, width, coverage=0.9), features=x)
    states = {finding.id: finding for finding in found.findings}
    assert states["coverage"].state == "good"
    assert states["region"].state == "bad"
    assert "x0" in states["region"].where
    assert "x0" in states["region"].sentence
    regions = next(table for table in found.tables if table.name == "conditional_regions")
    assert any("x0" in where for where in regions.columns["where"])


@pytest.mark.rate
def test_a_right_model_is_not_accused_by_region() -> None:
    rng = np.random.default_rng(1)
    x = rng.normal(size=(1500, 3))
    sd = np.exp(0.5 * x[:, 0])
    found = assess(sd * rng.normal(size=1500), Distribution("norm", {"scale": sd}), features=x)
    assert {finding.id: finding.state for finding in found.findings}["region"] != "bad"


@pytest.mark.slow
def test_counts_are_judged_by_what_their_law_claims() -> None:
    """A 90 % interval of whole numbers must hold more: its law's own mass is the claim."""
    rng = np.random.default_rng(2)
    mu = np.exp(rng.normal(size=4000))
    law = Distribution("poisson", {"mu": mu})
    found = assess(rng.poisson(mu).astype(float), law, options=Options(trials=False))
    record = found.record("empirical_coverage")
    assert record.lower > 0.9
    assert record.lower <= record.null <= record.upper
    assert "in line with the expected coverage" in found.lines[1].text
    halved = assess(rng.poisson(2 * mu).astype(float), law, options=Options(trials=False))
    assert "under-cover" in halved.verdict
