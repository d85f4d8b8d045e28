"""What is said of a stored fit, against definitions, closed forms and the corrections by hand."""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy import integrate, stats

import howsure
from howsure.core.errors import UnanswerableError
from howsure.predictions import Distribution, EvalSet, Intervals, Quantiles, Samples
from howsure.recalibration import recalibrate
from howsure_studies.tasks import SplitTable
from howsure_studies.which.cuts import Cut, cut_rows
from howsure_studies.which.judging import (
    ALL,
    ARMS,
    BEST,
    COVERAGES,
    FINDINGS,
    INTERVALS,
    LEVELS,
    RAW,
    WAYS,
    FitVerdict,
    judged_fit,
    quantile_table,
)
from which.tables import split_of

Array = npt.NDArray[Any]
Z = stats.norm.ppf(LEVELS)


def test_quantiles_of_laws_are_theirs() -> None:
    center, scale = np.array([0.0, 3.0]), np.array([1.0, 0.5])
    given = quantile_table(Distribution("norm", {"loc": center, "scale": scale}))
    np.testing.assert_allclose(given, center[:, None] + scale[:, None] * Z, rtol=1e-12)
    law = Distribution("gamma", {"a": np.array([2.0]), "scale": np.array([3.0])})
    np.testing.assert_allclose(quantile_table(law)[0], stats.gamma.ppf(LEVELS, 2.0, scale=3.0))


def test_quantiles_of_samples_are_draws_of_these_ranks() -> None:
    """Of 99 draws the one of rank 5 is at 0.05; of 19 each; 18 do not reach so far."""
    draws = np.random.default_rng(0).normal(size=(4, 99))
    np.testing.assert_array_equal(quantile_table(Samples(draws)), np.sort(draws)[:, 4:95:5])
    few = quantile_table(Samples(draws[:, :19]))
    np.testing.assert_array_equal(few, np.sort(draws[:, :19]))
    with pytest.raises(UnanswerableError, match="18 samples per row reach levels from"):
        quantile_table(Samples(draws[:, :18]))


def test_between_given_quantiles_they_are_on_straight_lines() -> None:
    levels = [0.02, 0.25, 0.4, 0.6, 0.75, 0.98]  # none of the middle
    values = np.sort(np.random.default_rng(0).normal(size=(5, 6)))
    wanted = [np.interp(LEVELS, levels, row) for row in values]
    np.testing.assert_allclose(quantile_table(Quantiles(levels, values)), wanted, rtol=1e-12)


def test_ends_of_intervals_are_quantiles_and_the_middle_of_the_narrowest_the_median() -> None:
    lower, upper = -np.array([INTERVALS]), 2.0 * np.array([INTERVALS])
    given = quantile_table(Intervals(lower, upper, INTERVALS))[0]
    below = [-0.9, -0.8, -0.7, -0.6, -0.5, -0.4, -0.3, -0.2, -0.1]
    above = [0.2, 0.4, 0.6, 0.8, 1.0, 1.2, 1.4, 1.6, 1.8]
    np.testing.assert_allclose(given, [*below, 0.05, *above])
    crossing = np.flip(lower, axis=1), np.flip(upper, axis=1)  # the widest states the least
    np.testing.assert_allclose(
        quantile_table(Intervals(*crossing, INTERVALS))[0], sorted([*below, 0.45, *above])
    )


def made(shape: str = "plain", n: int = 900) -> tuple[SplitTable, Cut]:
    table = split_of(n, labels=shape == "labels", units=300 if shape == "units" else 0)
    asked: dict[str, Any] = {"rows": 500, "calibration": 0.5, "test": 400, "shifted": False}
    return table, cut_rows(table, seed=0, **asked)


def stated(table: SplitTable, rows: Array, scale: float = 1.0, shift: float = 0.0) -> Array:
    """What a model of the right mean states, whose law is as wide and as far off as that."""
    return table.part.x[rows, :1] + shift + scale * Z


@cache
def judged(shape: str = "plain", scale: float = 1.0, n: int = 900) -> FitVerdict:
    table, cut = made(shape, n)
    return judged_fit(
        table,
        cut,
        calibration=stated(table, cut.calibration, scale),
        test=stated(table, cut.test, scale),
        whole=stated(table, cut.test, 1.1 * scale),
    )


def pinball_by_definition(y: Array, quantiles: Array) -> float:
    losses = [
        level * (target - q) if target >= q else (1.0 - level) * (q - target)
        for target, row in zip(y, quantiles, strict=True)
        for level, q in zip(LEVELS, row, strict=True)
    ]
    return 2.0 * math.fsum(losses) / len(losses)


@pytest.mark.slow
def test_scores_coverages_and_widths_are_those_of_their_definitions() -> None:
    table, cut = made()
    y, found = table.part.y[cut.test], judged(scale=0.7)
    for arm, quantiles in (
        (RAW, stated(table, cut.test, 0.7)),
        (ALL, stated(table, cut.test, 1.1 * 0.7)),
    ):
        place = ARMS.index(arm)
        assert found.score[place] == pytest.approx(pinball_by_definition(y, quantiles), rel=1e-12)
        within = [
            np.mean([low <= t <= high for t, low, high in zip(y, *ends, strict=True)])
            for ends in (quantiles.T[[4, 14]], quantiles.T[[1, 17]], quantiles.T[[0, 18]])
        ]
        np.testing.assert_allclose(found.coverage[place], within, rtol=1e-12)
    known = np.concatenate([table.part.y[cut.train], table.part.y[cut.calibration]])
    reference = np.quantile(known, np.arange(1, 20) / 20.0)
    always = np.tile(reference, (len(y), 1))
    assert found.climatology == pytest.approx(pinball_by_definition(y, always), rel=1e-12)
    width = 2.0 * 0.7 * stats.norm.ppf(0.95) / (reference[-1] - reference[0])
    assert found.width[ARMS.index(RAW)] == pytest.approx(width, rel=1e-12)


def expected_pinball(level: float, q: float, sd: float) -> float:
    """Of y from N(0, sd²), by quadrature."""

    def loss(y: float) -> float:
        off = y - q
        return max(level * off, (level - 1.0) * off) * float(stats.norm.pdf(y, scale=sd))

    return sum(integrate.quad(loss, *ends)[0] for ends in ((-12.0 * sd, q), (q, 12.0 * sd)))


@pytest.mark.slow
def test_a_perfect_model_has_the_score_of_its_law() -> None:
    """y = x + e, both standard normal: climatology is N(0, 2), and scores are φ(z) times the sd."""
    densities = stats.norm.pdf(Z)
    ours = np.mean([expected_pinball(a, q, 1.0) for a, q in zip(LEVELS, Z, strict=True)])
    wide = math.sqrt(2.0)
    theirs = [expected_pinball(a, wide * q, wide) for a, q in zip(LEVELS, Z, strict=True)]
    assert ours == pytest.approx(densities.mean(), rel=1e-6)
    assert ours / np.mean(theirs) == pytest.approx(1.0 / math.sqrt(2.0), rel=1e-6)
    table, found = split_of(8000), judged(n=8000)
    cut = made(n=8000)[1]
    place, n = ARMS.index(RAW), len(cut.test)
    off = table.part.y[cut.test, None] - stated(table, cut.test)
    losses = 2.0 * np.mean(np.maximum(LEVELS * off, (np.array(LEVELS) - 1.0) * off), axis=1)
    error = float(np.std(losses)) / math.sqrt(n)
    assert abs(found.score[place] - 2.0 * densities.mean()) < 3.0 * error
    assert found.score[place] / found.climatology == pytest.approx(1 / math.sqrt(2), abs=0.04)
    for share, nominal in zip(found.coverage[place], COVERAGES, strict=True):
        assert abs(share - nominal) < 3.0 * math.sqrt(nominal * (1.0 - nominal) / n)


def rows_by_hand(table: SplitTable, rows: Array, quantiles: Array, *, labels: bool) -> EvalSet:
    x = table.part.x[rows]
    kind = np.where(x[:, 2] > 0, "0", np.where(x[:, 3] > 0, "1", "2")) if labels else None
    return EvalSet.checked(
        table.part.y[rows],
        Quantiles(LEVELS, quantiles),
        features=dict(zip(table.part.columns, x.T, strict=True)),
        groups={} if kind is None else {"kind": kind},
        cluster=None if table.units is None else table.units[rows],
    )


@pytest.mark.slow
@pytest.mark.parametrize("shape", ["plain", "labels", "units"])
def test_every_arm_is_the_correction_by_hand(shape: str) -> None:
    table, cut = made(shape)
    labels = shape == "labels"
    held, given = (
        rows_by_hand(table, rows, stated(table, rows, 0.7), labels=labels)
        for rows in (cut.calibration, cut.test)
    )
    found = judged(shape, 0.7)
    for way in WAYS:
        place = ARMS.index(way)
        if way == "group" and not labels:
            assert np.isnan(found.score[place])
            assert np.isnan(found.coverage[place]).all()
            continue
        (prediction,) = recalibrate(given, held, method=way).evalset.predictions
        score = pinball_by_definition(given.y, prediction.quantile(LEVELS))
        assert found.score[place] == pytest.approx(score, rel=1e-12), way
        low, high = prediction.interval(0.9)
        covered = float(np.mean((low <= given.y) & (given.y <= high)))
        assert found.coverage[place, COVERAGES.index(0.9)] == covered


@pytest.mark.slow
@pytest.mark.parametrize("shape", ["plain", "labels", "units"])
@pytest.mark.parametrize("scale", [0.6, 1.0])
def test_the_best_is_that_of_howsure_recalibrate(shape: str, scale: float) -> None:
    """A law too narrow is mended; of a right one nothing is advised, and it stays as it is."""
    table, cut = made(shape)
    held, given = (
        rows_by_hand(table, rows, stated(table, rows, scale), labels=shape == "labels")
        for rows in (cut.calibration, cut.test)
    )
    ours = judged(shape, scale)
    theirs = howsure.recalibrate(given, held, method="best")
    (prediction,) = theirs.evalset.predictions
    score = pinball_by_definition(given.y, prediction.quantile(LEVELS))
    assert ours.score[ARMS.index(BEST)] == pytest.approx(score, rel=1e-12)
    assert ours.advised == theirs.methods.get("quantiles", "")
    assert bool(ours.advised) == (scale == 0.6)
    if not ours.advised:
        raw, best = ARMS.index(RAW), ARMS.index(BEST)
        assert ours.score[best] == ours.score[raw]
        np.testing.assert_array_equal(ours.coverage[best], ours.coverage[raw])


@pytest.mark.slow
@pytest.mark.parametrize(("shape", "scale"), [("labels", 0.6), ("plain", 1.0)])
def test_states_are_those_of_the_verdict(shape: str, scale: float) -> None:
    table, cut = made(shape)
    given = rows_by_hand(table, cut.test, stated(table, cut.test, scale), labels=shape == "labels")
    said = howsure.assess(
        given.y,
        given.predictions[0],
        features=dict(given.features),
        groups=dict(given.groups),
        options=howsure.Options(trials=False),
    )
    codes = {"good": 1, "negligible": 2, "undecided": 2, "caution": 3, "bad": 4}
    wanted = {each.id: codes[each.state] for each in said.findings}
    raw = dict(zip(FINDINGS, judged(shape, scale).states[ARMS.index(RAW)].tolist(), strict=True))
    assert raw == {name: wanted.get(name, 0) for name in FINDINGS}
    assert (raw["groups"] > 0) == (shape == "labels")
    if scale == 0.6:
        assert raw["coverage"] == raw["spread"] == 4
    inner = [k for k, arm in enumerate(ARMS) if arm in WAYS]
    assert not judged(shape, scale).states[inner].any()
    assert np.isnan(judged(shape, scale).worst[inner]).all()


@pytest.mark.slow
def test_rows_are_grouped_by_the_labels_that_divide_them_most_evenly() -> None:
    """Each third of the rows is off by its own amount: what knows the column mends it."""
    table, cut = made("labels")
    off = np.where(table.part.x[:, 2] > 0, 1.5, np.where(table.part.x[:, 3] > 0, -1.5, 0.0))

    def wrong(rows: Array) -> Array:
        return stated(table, rows) + off[rows, None]

    found = judged_fit(
        table,
        cut,
        calibration=wrong(cut.calibration),
        test=wrong(cut.test),
        whole=wrong(cut.test),
    )
    right = judged("labels").score[ARMS.index(RAW)]
    group, raw = (found.score[ARMS.index(arm)] for arm in ("group", RAW))
    assert raw > 1.5 * right
    assert group < 1.05 * right
    assert found.advised in ("group", "inputs")
