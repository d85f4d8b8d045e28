"""Means, ranks and power of methods over tables, by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from howsure_studies.which.judging import ALL, RAW
from howsure_studies.which.standing import (
    Crossed,
    MeanOf,
    MethodScores,
    Which,
    coverage,
    kind_of,
    log_ratio,
)
from which.results import many, result


def test_a_number_is_averaged_over_cuts_then_over_tables() -> None:
    given = [
        result("a", "m", {}, {ALL: 0.8}, seed=0),
        result("a", "m", {}, {ALL: 0.9}, seed=1),
        result("b", "m", {}, {ALL: 0.7}),
        result("b", "n", {}, {ALL: 0.5}),
    ]
    crossed = Crossed.of(given, coverage(ALL))
    np.testing.assert_allclose(crossed.values, [[0.85, np.nan], [0.7, 0.5]])
    mean = crossed.means()["m"]
    assert mean.value == pytest.approx(0.775)
    # t of one degree of freedom at .975, times sd/√2
    assert mean.upper - mean.value == pytest.approx(12.7062 * 0.106066 / math.sqrt(2), rel=1e-4)
    assert math.isnan(crossed.means()["n"].lower)


def test_the_log_ratio_is_of_the_score_to_that_of_climatology() -> None:
    one = result("a", "m", {RAW: 0.5, ALL: 0.25}, {})
    assert log_ratio(RAW)(one) == pytest.approx(math.log(0.5))
    assert log_ratio(ALL)(one) == pytest.approx(math.log(0.25))


def test_logarithms_become_per_cent_off_one() -> None:
    mean = MeanOf(value=math.log(0.8), lower=math.log(0.7), upper=math.log(1.1), tables=3)
    shown = mean.percent
    assert (shown.value, shown.lower, shown.upper) == pytest.approx((-20.0, -30.0, 10.0))


def test_cuts_are_told_apart_by_their_rows_and_their_shift() -> None:
    assert kind_of(result("a", "m", {}, {})) == "home"
    assert kind_of(result("a", "m", {}, {}, rows=(800, 201, 99))) == "large"
    assert kind_of(result("a", "m", {}, {}, shift="late", rows=(800, 201, 99))) == "shift"


def test_methods_that_cannot_be_ordered_lead_together() -> None:
    which = Which(many({"first": 0.0, "second": 0.001, "far": 0.3}, noise=0.05))
    standing = which.standing("home", ALL)
    assert standing is not None
    assert set(standing.leaders) == {"first", "second"}
    assert standing.scores.methods[-1] == "far"
    far = standing.scores.methods.index("far")
    assert (standing.ranks.lower[far], standing.ranks.upper[far]) == (3, 3)
    assert standing.gap("far").percent.value == pytest.approx(35.0, abs=8.0)
    assert "climatology" not in standing.scores.methods


def test_nothing_is_said_of_fewer_than_five_tables_or_two_methods() -> None:
    assert Which(many({"a": 0.0, "b": 0.1}, tables=4)).standing("home", ALL) is None
    assert Which(many({"a": 0.0}, tables=9)).standing("home", ALL) is None


def test_power_is_that_of_the_paired_t_test() -> None:
    """Brute force: with the gap that n tables show, four of five samples show it."""
    rng = np.random.default_rng(3)
    values = rng.normal([0.0, 0.02, 0.05, 0.4], 0.1, size=(30, 4))
    names = tuple("abcd")
    tables = tuple(map(str, range(30)))
    standing = MethodScores.of(Crossed(methods=names, tables=tables, values=values))
    assert standing is not None
    gap, sd = math.log1p(standing.separable(30)), standing.sd()
    draws = rng.normal(gap, sd, size=(20_000, 30))
    t = draws.mean(axis=1) / (draws.std(axis=1, ddof=1) / math.sqrt(30))
    assert float(np.mean(np.abs(t) > 2.04523)) == pytest.approx(0.8, abs=0.02)
    needed = standing.tables_needed("b")
    first, second = standing.scores.values[:, 0], standing.scores.values[:, 1]
    gap = float(np.mean(second - first))
    z = (1.959964 + 0.841621) * float(np.std(second - first, ddof=1)) / gap
    assert needed == pytest.approx(z * z + 2, rel=0.05)
