"""Every stated level is judged, with one test for all; the sentence names the one that fails."""

from __future__ import annotations

import re

import numpy as np
import pytest
from scipy.special import ndtri

from howsure import Distribution, Intervals, Options, Quantiles, assess
from howsure.engine.finding import Finding
from howsure.engine.measure import evaluate
from howsure.predictions import EvalSet
from howsure.stats.binomial import binomial_test
from howsure.verdict.family import examine

LEVELS = np.array([0.025, 0.1, 0.25, 0.5, 0.75, 0.9, 0.975])


def bands(n: int, inner: float = float(ndtri(0.84)), above: float = 0.0) -> Intervals:
    """Of a standard normal y, at 68 and 95 %; the inner one of some half-width, moved up."""
    outer = float(ndtri(0.975))
    ends = np.tile([inner, outer], (n, 1))
    moved = np.array([above, 0.0])
    return Intervals(moved - ends, moved + ends, [0.68, 0.95])


def finding(y: np.ndarray, prediction: Intervals | Quantiles | Distribution, name: str) -> Finding:
    found, _ = examine(EvalSet.checked(y, prediction))
    return next(each for each in found if each.id == name)


def test_an_inner_level_that_fails_is_named() -> None:
    y = np.random.default_rng(0).normal(size=10_000)
    told = finding(y, bands(10_000, inner=0.95), "coverage")
    assert told.state == "bad"
    assert told.sentence == (
        "The 68 % intervals cover 65.7 % (64.7–66.6): they under-cover by 2.3 points."
    )
    hits = int((np.abs(y) <= 0.95).sum())
    assert told.p == pytest.approx(2 * float(binomial_test(hits, 10_000, 0.68)), rel=1e-9)


def test_all_levels_that_hold_are_told() -> None:
    y = np.random.default_rng(0).normal(size=10_000)
    told = finding(y, bands(10_000), "coverage")
    assert told.sentence.startswith("The 95 % intervals cover 95 % (94.6–95.4): in line with")
    assert told.sentence.endswith(", as are those at 68 %.")
    quantiles = Quantiles(LEVELS, np.tile(ndtri(LEVELS), (10_000, 1)))
    told = finding(y, quantiles, "coverage")
    assert told.state == "good"
    assert told.sentence.endswith(", as are those at 50 % and 80 %.")


def test_a_level_that_is_not_known_well_leaves_no_good() -> None:
    y = np.random.default_rng(1).normal(size=1_200)
    told = finding(y, bands(1_200), "coverage")
    assert told.state == "undecided"  # ±2.7 points at 68 %, though ±1.2 at 95 %
    assert told.sentence.startswith("The 95 % intervals cover")


def test_one_side_of_an_inner_level() -> None:
    y = np.random.default_rng(2).normal(size=20_000)
    told = finding(y, bands(20_000, above=0.1), "one_sided")
    assert told.state == "bad"
    assert "y is below its 68 % interval in 18" in told.sentence
    assert told.sentence.endswith("misses are mostly below.")


def test_a_quantile_table_fails_where_it_is_wrong() -> None:
    n = 10_000
    y = np.random.default_rng(3).normal(size=n)
    values = np.tile(ndtri(LEVELS), (n, 1)) + np.array([0, 0, -0.1, 0, 0.1, 0, 0])
    told = finding(y, Quantiles(LEVELS, values), "coverage")
    assert told.state == "bad"
    assert told.sentence.startswith("The 50 % intervals cover 5")


def test_what_is_asked_for_is_judged_alone() -> None:
    y = np.random.default_rng(3).normal(size=500)
    table = Quantiles(LEVELS, np.tile(ndtri(LEVELS), (500, 1)))
    held = EvalSet.checked(y, table)
    covers = [r.coverage for r in evaluate(held).records if r.metric == "empirical_coverage"]
    assert covers == pytest.approx([0.95, 0.8, 0.5])
    some = evaluate(held, coverages=[0.8]).records
    assert [r.coverage for r in some if r.metric == "empirical_coverage"] == [0.8]
    widths = [r.coverage for r in evaluate(held).records if r.metric == "mean_width"]
    assert widths == pytest.approx([0.95])  # all else is told at one level


def test_the_first_number_is_at_the_headline() -> None:
    y = np.random.default_rng(3).normal(size=500)
    table = Quantiles(LEVELS, np.tile(ndtri(LEVELS), (500, 1)))
    result = assess(y, table, options=Options(trials=False))
    assert result.record("picp").coverage == pytest.approx(0.95)
    assert result.record("picp", coverage=0.5).value == pytest.approx(
        float((np.abs(y) <= ndtri(0.75)).mean())
    )


@pytest.mark.parametrize("stated", [2, 9])
@pytest.mark.rate
def test_right_models_are_seldom_condemned(stated: int) -> None:
    shares = np.linspace(0.1, 0.95, stated)
    half = ndtri((1.0 + shares) / 2.0)
    rng = np.random.default_rng(stated)
    bad = 0
    for _ in range(150):
        y = rng.normal(size=300)
        ends = np.tile(half, (300, 1))
        found, _ = examine(EvalSet.checked(y, Intervals(-ends, ends, shares.tolist())))
        bad += any(each.state == "bad" for each in found)
    assert bad <= 0.05 * 150 + 3 * np.sqrt(150 * 0.05 * 0.95)


def test_the_rows_that_would_decide_do_so_at_every_level() -> None:
    """Of each level alone the rows that bring it within the margin; of all the most of them."""
    y = np.random.default_rng(1).normal(size=1_200)
    told = finding(y, bands(1_200), "coverage").sentence
    (rows,) = re.findall(r"about ([\d,]+) more rows should decide", told)
    alone = Intervals(*(end[:, None] for end in bands(1_200).interval(0.68)), [0.68])
    assert f"about {rows} more rows should decide" in finding(y, alone, "coverage").sentence
