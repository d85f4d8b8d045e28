"""Thresholds for each bin of rows by ease: O-CPA, O-PAC, O-LAC and O-SAPS; and CP, CP-A, PAC."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy import stats

from howsure.core.arrays import FloatArray
from howsure.core.errors import InputError
from howsure.predictions import Distribution, EvalSet, Intervals, LabelSets, Samples
from howsure.recalibration import METHODS, recalibrate
from howsure.recalibration.base import POINT
from howsure.recalibration.group import ByEase, EaseCuts, bins_for
from howsure.recalibration.info import RecalibrationOptions
from howsure.recalibration.intervals_from_distributions import DerivedIntervals
from howsure.recalibration.sets import SetRecalibrator

KINDS = (Distribution.kind, Samples.kind)


def laws(seed: int, n: int, **more: Any) -> EvalSet:
    """Rows whose errors are larger where they are harder, and whose sds do not know it."""
    rng = np.random.default_rng([seed, n])
    hard = rng.uniform(size=n)
    mean, sd = rng.normal(size=n), rng.uniform(0.5, 2.0, n)
    y = mean + np.exp(2 * hard) * sd * rng.normal(size=n)
    return EvalSet.checked(
        y, Distribution.normal(mean, sd), features={"ease": -hard}, ease="ease", **more
    )


def classes(seed: int, n: int, labels: int = 4, ease: bool = True) -> EvalSet:
    """True classes of stated probabilities that are too sharp where rows are hard."""
    rng = np.random.default_rng([seed, n, labels])
    hard = rng.uniform(size=n)
    p = rng.dirichlet(np.full(labels, 0.5), size=n)
    y = (rng.uniform(size=(n, 1)) > np.cumsum(p, axis=1)).sum(axis=1).clip(max=labels - 1)
    stated = np.maximum(p, 1e-9) ** (1.0 + 2.0 * hard)[:, None]
    stated /= stated.sum(axis=1, keepdims=True)
    return EvalSet.checked(
        y.astype(float),
        LabelSets.likeliest(stated, 0.9),
        features={"ease": -hard} if ease else {},
    )


def ends(held: EvalSet, coverage: float = 0.9) -> tuple[FloatArray, FloatArray]:
    (made,) = held.predictions
    assert isinstance(made, Intervals)
    return made.interval(coverage)


def brute(scores: FloatArray, coverage: float, delta: float | None = None) -> float:
    """The threshold by its definition: a rank, or the most misses of a binomial law."""
    n = len(scores)
    rank = math.ceil((n + 1) * coverage - 1e-9)
    if delta is not None:
        allowed = [k for k in range(n) if stats.binom.cdf(k, n, 1 - coverage) <= delta]
        rank = n - max(allowed) if allowed else n + 1
    return float(np.sort(scores)[rank - 1]) if rank <= n else math.inf


@pytest.mark.parametrize(("method", "delta"), [("cp", None), ("cp_a", None), ("pac", 0.1)])
@pytest.mark.parametrize("coverage", [0.6, 0.9])
def test_intervals_around_a_forecast_are_those_of_the_definition(
    method: str, delta: float | None, coverage: float
) -> None:
    held, new = laws(0, 137), laws(1, 40)
    found = recalibrate(new, held, method=method, coverage=coverage, delta=delta or 0.05)
    law = held.predictions[0]
    size = np.ones(137) if method == "cp" else law.sd()
    threshold = brute(np.abs(held.y - law.point()) / size, coverage, delta)
    fresh = new.predictions[0]
    reach = threshold * (np.ones(40) if method == "cp" else fresh.sd())
    lower, upper = ends(found.evalset, coverage)
    np.testing.assert_allclose(lower, fresh.point() - reach, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(upper, fresh.point() + reach, rtol=1e-9, atol=1e-9)


def test_cp_of_a_point_forecast_is_split() -> None:
    held = EvalSet.checked(np.arange(20.0), point=np.zeros(20))
    one, other = (recalibrate(held, held, method=name, coverage=0.8) for name in ("cp", "split"))
    np.testing.assert_array_equal(ends(one.evalset, 0.8), ends(other.evalset, 0.8))
    assert one.methods == other.methods == {POINT: "split"}


@pytest.mark.parametrize(("method", "delta"), [("o_cpa", None), ("o_pac", 0.2)])
def test_bins_by_ease_are_those_of_the_definition(method: str, delta: float | None) -> None:
    """Edges are the eases of rows that do not calibrate; in between each bin has its threshold."""
    held, new = laws(2, 239), laws(3, 100)
    found = recalibrate(new, held, method=method, coverage=0.8, delta=delta or 0.05, bins=4)
    ease, fresh = held.features["ease"], new.features["ease"]
    edges = np.sort(ease)[[59, 119, 179]]  # 240/4 − 1, …
    law, new_law = held.predictions[0], new.predictions[0]
    scores = np.abs(held.y - law.point()) / law.sd()
    reach = np.empty(100)
    for place, (low, high) in enumerate(zip([-np.inf, *edges], [*edges, np.inf], strict=True)):
        own = (ease > low) & (ease < high)
        assert own.sum() == 59, place
        reach[(fresh >= low) & (fresh < high)] = brute(scores[own], 0.8, delta)
    lower, upper = ends(found.evalset, 0.8)
    np.testing.assert_allclose(upper - new_law.point(), reach * new_law.sd(), rtol=1e-9)
    np.testing.assert_allclose(new_law.point() - lower, reach * new_law.sd(), rtol=1e-9)
    (fitted,) = found.recalibrators
    assert [each.n for each in fitted.parameters] == [59.0] * 4


@pytest.mark.slow
def test_coverage_in_each_bin_is_exactly_what_is_said() -> None:
    """⌈(n_b + 1)(1 − α)⌉/(n_b + 1) over calibration sets, in every bin."""
    shares = []
    new = laws(5000, 20_000)
    scores = np.abs(new.y - new.predictions[0].point()) / new.predictions[0].sd()
    for seed in range(300):
        fitted = ByEase(coverages=[0.7], bins=3).fit(laws(1000 + seed, 59))
        codes = fitted.cells.find(new)
        inside = scores <= np.array([each.value for each in fitted.parameters])[codes]
        shares.append([inside[codes == code].mean() for code in range(3)])
    expected = math.ceil(20 * 0.7 - 1e-9) / 20  # 59 rows, 2 edges, 19 in each bin
    assert {each.expected for each in fitted.parameters} == {expected}
    spread = np.std(shares, axis=0) / np.sqrt(len(shares))
    assert (np.abs(np.mean(shares, axis=0) - expected) < 3.5 * spread).all()


@pytest.mark.slow
def test_pac_falls_short_for_no_more_than_its_share_of_calibration_sets() -> None:
    """The share covered is known of a normal law."""
    short, delta = [], 0.2
    for seed in range(300):
        rng = np.random.default_rng(seed)
        held = EvalSet.checked(rng.normal(size=80), Distribution.normal(np.zeros(80), np.ones(80)))
        made = DerivedIntervals("pac", coverages=[0.8], delta=delta).fit(held)
        factor = made.parameters[0].value
        short.append(2 * stats.norm.cdf(factor) - 1 < 0.8)
    worst = stats.binom.ppf(0.999, len(short), delta)
    assert sum(short) <= worst
    assert sum(short) > 0.5 * delta * len(short)  # and it is not far too careful


@pytest.mark.parametrize("method", ["o_lac", "o_saps", "raps", "saps", "aps"])
def test_the_order_of_rows_changes_nothing(method: str) -> None:
    held, new = classes(0, 300), classes(1, 80)
    twice = held.take(np.r_[np.arange(300), np.arange(40)])  # some rows are there two times
    order, other = np.random.default_rng(0).permutation(340), np.random.default_rng(1)
    mixed = other.permutation(80)
    one = recalibrate(new, twice, method=method, seed=3)
    again = recalibrate(new.take(mixed), twice.take(order), method=method, seed=3)
    sets, same = one.evalset.predictions[0], again.evalset.predictions[0]
    assert isinstance(sets, LabelSets)
    assert isinstance(same, LabelSets)
    np.testing.assert_array_equal(sets.members[mixed], same.members)
    assert one.guarantees == again.guarantees


def test_rows_of_one_softmax_and_different_classes_may_come_in_any_order() -> None:
    """Draws and halves go by all that a row holds, not by its place among equal softmaxes."""
    p = np.repeat([[0.7, 0.2, 0.1], [0.4, 0.35, 0.25]], 60, axis=0)
    y = np.random.default_rng(0).integers(0, 3, 120).astype(float)
    held = EvalSet.checked(y, LabelSets.likeliest(p, 0.9))
    order = np.random.default_rng(1).permutation(120)
    for method in ("aps", "saps"):
        one, other = (
            METHODS[method].make("label sets", RecalibrationOptions()).fit(r)
            for r in (held, held.take(order))
        )
        assert [e.value for e in one.parameters] == [e.value for e in other.parameters], method


def test_o_lac_has_the_quantile_of_each_bin() -> None:
    held, new = classes(4, 119), classes(5, 60)
    (fitted,) = recalibrate(new, held, method="o_lac", coverage=0.8, bins=3).recalibrators
    assert isinstance(fitted, SetRecalibrator)
    stated = held.predictions[0].probabilities  # type: ignore[attr-defined]
    scores = 1.0 - stated[np.arange(119), held.y.astype(int)]
    ease = held.features["ease"]
    edges = np.sort(ease)[[39, 79]]
    p = new.predictions[0].probabilities  # type: ignore[attr-defined]
    made = fitted.apply(new).predictions[0]
    assert isinstance(made, LabelSets)
    for low, high in zip([-np.inf, *edges], [*edges, np.inf], strict=True):
        threshold = brute(scores[(ease > low) & (ease < high)], 0.8)
        own = (new.features["ease"] >= low) & (new.features["ease"] < high)
        np.testing.assert_array_equal(made.members[own], 1.0 - p[own] <= threshold + 1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["o_lac", "o_saps"])
def test_label_sets_cover_in_every_bin_by_ease(method: str) -> None:
    """Of sets by one threshold the hard rows are covered too seldom."""
    gaps: dict[str, list[FloatArray]] = {"lac": [], method: []}
    for seed in range(8):
        held, new = classes(100 + seed, 1200), classes(200 + seed, 1500)
        hard = new.features["ease"] < -0.8
        for name, found in gaps.items():
            made = recalibrate(new, held, method=name, coverage=0.9, bins=5, penalty=0.1).evalset
            sets = made.predictions[0]
            assert isinstance(sets, LabelSets)
            inside = sets.contains(new.y)
            found.append(np.array([inside[hard].mean(), inside[~hard].mean()]))
    assert np.mean(gaps["lac"], axis=0)[0] < 0.86
    assert (np.abs(np.mean(gaps[method], axis=0) - 0.9) < 0.02).all()


def test_half_of_the_rows_choose_and_the_others_calibrate() -> None:
    held, new = classes(6, 400), classes(7, 20)
    tuned = recalibrate(new, held, method="saps")
    assert "200 calibration rows were used to choose λ = " in tuned.notes[0]
    assert "by T-SS" in tuned.notes[0]
    (fitted,) = tuned.recalibrators
    assert [each.n for each in fitted.parameters if each.name == "threshold"] == [200.0]
    blind = recalibrate(new, classes(6, 400, ease=False), method="raps")
    assert "by SSCV, because the rows have no varying ease scores" in blind.notes[0]
    (told,) = recalibrate(new, held, method="saps", penalty=0.3).recalibrators
    assert [each.n for each in told.parameters if each.name == "threshold"] == [400.0]
    assert isinstance(told, SetRecalibrator)
    assert told.score is not None
    assert told.score.penalty == 0.3  # type: ignore[union-attr]


def test_bins_are_fewer_where_eases_tie_and_as_many_as_rows_allow() -> None:
    held = laws(8, 200)
    steps = np.repeat([1.0, 2.0, 3.0], [100, 60, 40])
    tied = EvalSet.checked(held.y, held.predictions, features={"ease": steps})
    found = recalibrate(tied, tied, method="o_cpa", coverage=0.8, bins=5)
    assert any("Tied ease scores: 2 bins instead of 5" in note for note in found.notes)
    assert [bins_for(rows, 0.9) for rows in (50, 300, 1000, 10**6)] == [2, 3, 10, 10]
    cuts, kept = EaseCuts.between(tied, 3)
    assert cuts.edges == (2.0,)
    assert (np.bincount(cuts.find(tied)[kept]) > 0).all()


def test_bad_ease_and_few_rows_are_refused_in_words() -> None:
    held = laws(9, 100)
    none = EvalSet.checked(held.y, held.predictions)
    for name in ("o_cpa", "o_pac"):
        with pytest.raises(InputError, match=r"No ease scores found; .*ease=COLUMN"):
            recalibrate(held, none, method=name, coverage=0.9)
    with pytest.raises(
        InputError, match="must have the ease score 'ease', like the calibration rows"
    ):
        recalibrate(none, held, method="o_cpa", coverage=0.9)
    flat = EvalSet.checked(held.y, held.predictions, features={"ease": np.ones(100)})
    with pytest.raises(InputError, match=r"must differ between calibration rows .* all have 1"):
        recalibrate(held, flat, method="o_cpa", coverage=0.9)
    words = EvalSet.checked(held.y, held.predictions, features={"ease": np.repeat(["a", "b"], 50)})
    with pytest.raises(InputError, match="must be numbers"):
        recalibrate(held, words, method="o_cpa", coverage=0.9)
    gone = np.where(np.arange(100) == 7, np.nan, held.features["ease"])
    with pytest.raises(InputError, match="first at row 7"):
        EaseCuts("ease", (0.0,)).find(EvalSet(y=held.y, features={"ease": gone}))
    with pytest.raises(InputError, match="at least 101 rows for 51 ease bins, got 100"):
        recalibrate(held, held, method="o_cpa", coverage=0.9, bins=51)
    with pytest.raises(InputError, match=r"ease bin 1 of 20 .*coverage 0.9 needs 9; got 4"):
        recalibrate(held, held, method="o_cpa", coverage=0.9, bins=20, too_few="error")
    many = recalibrate(held, held, method="o_cpa", coverage=0.9, bins=20)
    assert any("are infinite: 9 calibration rows are needed" in note for note in many.notes)
    sets, few = classes(10, 60), classes(11, 20)
    with pytest.raises(InputError, match=r"ease bin 1 of 5: .*needs 9; got 3"):
        recalibrate(sets, few, method="o_lac", bins=5, too_few="error")
    whole = recalibrate(sets, few, method="o_lac", bins=5)
    assert any("contain all classes: 9 calibration rows are needed" in n for n in whole.notes)
    same = EvalSet.checked(sets.y, sets.predictions, features={"ease": np.ones(60)})
    for options in ({"bins": 5}, {}):
        with pytest.raises(InputError, match="must differ between calibration rows"):
            recalibrate(same, same, method="o_lac", **options)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["cp", "cp_a", "pac", "o_cpa", "o_pac"])
def test_a_frequency_is_a_repetition(kind: str, name: str) -> None:
    rng = np.random.default_rng(0)
    held = laws(12, 90)
    if kind == Samples.kind:
        law = held.predictions[0]
        draws = law.point()[:, None] + law.sd()[:, None] * rng.normal(size=(90, 15))
        held = EvalSet.checked(held.y, Samples(draws), features=held.features)
    counts = rng.integers(1, 4, 90)
    weighted = EvalSet.checked(
        held.y, held.predictions, features=held.features, weights=counts.astype(float)
    )
    repeated = held.take(np.repeat(np.arange(90), counts))
    one, other = (
        METHODS[name].make(kind, RecalibrationOptions(coverage=0.8, bins=3)).fit(rows)
        for rows in (weighted, repeated)
    )
    assert [e.value for e in one.parameters] == [e.value for e in other.parameters]
