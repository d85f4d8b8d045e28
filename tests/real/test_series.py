"""An hourly series whose bands are half as wide as stated: it is said, and what helps."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from pyarrow import csv

from howsure import assess
from howsure.predictions import Intervals


def test_half_a_year_that_covers_57_percent_is_judged_and_mended(
    data_dir: Callable[[str], Path],
) -> None:
    """Misses enough tell their own memory; that of the errors' size made it 15.7 to 92 %."""
    table = csv.read_csv(data_dir("preds_ucc_uq360") / "sample_predict.csv.gz")
    y, lower, upper = (table[name].to_numpy()[:4_403] for name in ("actual", "lb", "ub"))
    found = assess(y, Intervals(lower, upper, coverage=0.9), time=np.arange(len(y)))
    coverage = next(each for each in found.findings if each.id == "coverage")
    assert coverage.state == "bad"
    record = next(r for r in found.records if r.metric == "empirical_coverage" and not r.group)
    assert record.value == pytest.approx(np.mean((lower <= y) & (y <= upper)))
    assert 0.04 < record.upper - record.value < 0.1
    assert found.advice is not None
    assert (found.advice.method, found.advice.heals) == ("scale", ("coverage",))
    assert found.advice.lower > 0.1
