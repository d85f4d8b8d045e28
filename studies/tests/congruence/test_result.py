"""What the study gives: the form of stores, which must not change, and reliability."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from generated import examples
from howsure.core.errors import InputError
from howsure.topics.congruence.examples import rejection_curve
from howsure_studies.congruence import (
    CongruenceMeasure,
    CongruenceResult,
    CongruenceRun,
    CongruenceStudies,
    compare,
    published_reliability,
    wave_task,
)
from howsure_studies.congruence.page import reliability_of
from howsure_studies.congruence.reliability import Reliability, reliability, welch
from howsure_studies.congruence.result import (
    Diagnosis,
    ModelPredictions,
    Monotonicity,
    MonotonicityResult,
    Robustness,
)
from howsure_studies.congruence.sentences import TaskExperiments
from howsure_studies.congruence.stored import packed, unpacked
from howsure_studies.engine import Published, published, study_shipped
from howsure_studies.methods.linear import LinearT

ROWS = np.array([0.25, np.nan, -0.0, np.inf])
LOSSES = {"mae": np.array([1.0, 2.0, 3.0]), "nll": np.array([0.5, -0.5, 0.0])}
SCORES = np.array([0.1, 0.3, 0.2])

FACTS: dict[str, Any] = {
    "task": "wave",
    "units": "y",
    "counts": True,
    "seed": 4,
    "notes": ["one", "two"],
    "options": {"draws": 2.0, "kernel": "rbf"},
    "runs": [
        {
            "task": "wave",
            "model": "m",
            "seed": 4,
            "n": 4,
            "reasons": {"ece": "no law"},
            "values": ["cce", "ece"],
            "bootstraps": ["cce"],
            "rows": ["cce", "error"],
        }
    ],
    "rejections": [
        {
            "task": "wave",
            "model": "m",
            "units": "y",
            "options": {"draws": 2.0},
            "losses": ["mae", "nll"],
        }
    ],
    "monotonicity": {
        "options": {"trials": 2.0},
        "curves": [{"task": "wave", "model": "m", "kind": "noise", "values": ["cce", "mae"]}],
    },
    "diagnoses": [{"task": "wave", "model": "m", "options": {"draws": 1.0}}],
    "robustness": [{"model": "m", "settings": ["as is", "1 row"], "n": 3, "values": ["cce"]}],
    "beliefs": [
        {"model": "m", "seed": 4, "names": ["y", "point", "lower", "upper", "x"]},
        {"model": "k", "seed": 0, "names": ["y", "point", "lower", "upper", "pit"]},
    ],
}
ARRAYS: dict[str, Any] = {
    "runs/0/values": np.array([0.5, np.nan]),
    "runs/0/repeats": np.array([0.4, 0.6]),
    "runs/0/bootstraps/cce": np.array([0.1, 0.2]),
    "runs/0/rows/cce": ROWS,
    "runs/0/rows/error": ROWS[::-1],
    "rejections/0/scores": SCORES,
    "rejections/0/p_values": np.array([0.25, np.nan]),
    "rejections/0/losses/mae": LOSSES["mae"],
    "rejections/0/losses/nll": LOSSES["nll"],
    "monotonicity/0/severities": np.array([0.0, 1.0]),
    "monotonicity/0/values/cce": np.array([[1.0, 2.0], [3.0, 4.0]]),
    "monotonicity/0/values/mae": np.array([[0.0, 2.0], [0.5, 4.0]]),
    **{f"diagnoses/0/{name}": ROWS + k for k, name in enumerate(("x", "cce", "error", "nll"))},
    "robustness/0/spoilt": np.array([0, 1]),
    "robustness/0/values/cce": np.array([[1.0], [2.0]]),
    **{f"beliefs/0/{name}": ROWS for name in ("y", "point", "lower", "upper", "x")},
    **{f"beliefs/1/{name}": ROWS for name in ("y", "point", "lower", "upper", "pit")},
}


def test_studies_in_a_store_are_read() -> None:
    found = unpacked(ARRAYS, json.loads(json.dumps(FACTS)))
    assert isinstance(found, CongruenceStudies)
    assert (found.task, found.units, found.counts, found.seed) == ("wave", "y", True, 4)
    assert found.notes == ("one", "two")
    assert isinstance(found.result, CongruenceResult)
    assert found.result.options == {"draws": 2.0, "kernel": "rbf"}
    (run,) = found.result.runs
    assert isinstance(run, CongruenceRun)
    assert (run.task, run.model, run.seed, run.n) == ("wave", "m", 4, 4)
    assert run.reasons == {"ece": "no law"}
    assert list(run.values) == ["cce", "ece"]
    assert run.values["cce"] == 0.5
    assert type(run.values["ece"]) is float
    assert np.isnan(run.values["ece"])
    assert run.repeats is ARRAYS["runs/0/repeats"]
    assert list(run.bootstraps) == ["cce"]
    assert run.rows["error"] is ARRAYS["runs/0/rows/error"]
    (withheld,) = found.rejections
    assert withheld.scores is SCORES
    assert list(withheld.losses) == ["mae", "nll"]
    assert withheld.p_values["mae"] == 0.25
    assert np.isnan(withheld.p_values["nll"])
    for name, loss in LOSSES.items():
        assert withheld.curves[name].area == rejection_curve(SCORES, loss).area
    assert isinstance(found.monotonicity, MonotonicityResult)
    assert found.monotonicity.options == {"trials": 2.0}
    (curve,) = found.monotonicity.curves
    assert isinstance(curve, Monotonicity)
    assert (curve.task, curve.model, curve.kind) == ("wave", "m", "noise")
    assert curve.severities is ARRAYS["monotonicity/0/severities"]
    assert curve.values["mae"] is ARRAYS["monotonicity/0/values/mae"]
    (known,) = found.diagnoses
    assert isinstance(known, Diagnosis)
    assert known.nll is ARRAYS["diagnoses/0/nll"]
    (spoilt,) = found.robustness
    assert isinstance(spoilt, Robustness)
    assert spoilt.settings == ("as is", "1 row")
    assert spoilt.spoilt is ARRAYS["robustness/0/spoilt"]
    first, second = found.beliefs
    assert isinstance(first, ModelPredictions)
    assert first.pit is None
    assert second.x is None
    assert (first.seed, second.seed) == (4, 0)


def test_studies_are_kept_in_the_form_of_all_stores() -> None:
    arrays, facts = packed(unpacked(ARRAYS, FACTS))
    assert facts == FACTS
    assert json.loads(json.dumps(facts)) == FACTS
    assert set(arrays) == set(ARRAYS)
    for name, held in arrays.items():
        assert held.dtype == ARRAYS[name].dtype
        assert held.tobytes() == ARRAYS[name].tobytes()


def test_studies_without_perturbations_are_kept_too() -> None:
    facts = {**FACTS, "monotonicity": None}
    arrays = {k: v for k, v in ARRAYS.items() if not k.startswith("monotonicity")}
    kept, told = packed(unpacked(arrays, facts))
    assert told == facts
    assert set(kept) == set(arrays)


samples = st.lists(st.integers(-50, 50).map(float), min_size=2, max_size=12)


@examples(60)
@given(samples, samples)
def test_welch_is_that_of_scipy(first: list[float], second: list[float]) -> None:
    if len(set(first)) == 1 and len(set(second)) == 1:
        with pytest.raises(InputError, match="samples must vary"):
            welch(first, second)
        return
    if len(set(first)) == 1 or len(set(second)) == 1:
        return  # SciPy warns of lost precision
    found = welch(first, second)
    plain = stats.ttest_ind(first, second, equal_var=False)
    assert found.statistic == pytest.approx(plain.statistic, abs=1e-9)
    assert found.degrees == pytest.approx(plain.df)
    assert found.two_sided == pytest.approx(plain.pvalue, abs=1e-9)
    above = stats.ttest_ind(first, second, equal_var=False, alternative="greater")
    assert found.greater == pytest.approx(above.pvalue, abs=1e-9)


def test_welch_by_hand() -> None:
    found = welch([1.0, 2.0, 3.0], [2.0, 4.0, 6.0])
    assert found.statistic == pytest.approx(-2.0 / math.sqrt(1 / 3 + 4 / 3))
    assert found.degrees == pytest.approx((5 / 3) ** 2 / ((1 / 9 + 16 / 9) / 2))


def test_table_two_gives_the_published_p_values() -> None:
    """.378 and .811 are printed, from unrounded numbers; the table gives .377 and .812."""
    printed = {row.measure: row.value for row in published("congruence", table="table 1")}
    test = published_reliability().test
    assert test.two_sided == pytest.approx(0.377, abs=0.001)
    assert test.greater == pytest.approx(0.812, abs=0.001)
    assert test.two_sided == pytest.approx(printed["welch_two_sided"], abs=0.002)
    assert test.greater == pytest.approx(printed["welch_cce_varies_more"], abs=0.002)


def table_two() -> dict[tuple[str, str, str], Published]:
    rows = published("congruence", table="table 2")
    return {(row.task, row.method, row.measure): row for row in rows}


def test_cells_that_are_not_their_sd_by_mean() -> None:
    """Two rows of COCO-People stand in each other's place; one cell of AAF is another number."""
    rows = table_two()

    def far(held: Reliability) -> set[tuple[str, str]]:
        found = set()
        for task, model, cce in zip(held.task, held.model, held.cce, strict=True):
            mean, sd = rows[task, model, "cce"].value, rows[task, model, "cce"].sd
            low, high = (sd - 5e-4) / (mean + 5e-4), (sd + 5e-4) / (mean - 5e-4)
            if not low - 5e-4 <= cce <= high + 5e-4:
                found.add((task, model))
        return found

    swapped = {("COCO-People", "poisson"), ("COCO-People", "gaussian")}
    other = {("AAF", "gaussian")}
    assert far(published_reliability()) == swapped | other
    assert far(published_reliability(unswap=True)) == other
    for words, pairs in (("swapped", swapped), ("sd by mean", other)):
        noted = {(row.task, row.method) for row in rows.values() if words in row.note}
        assert noted == pairs


def test_swapping_changes_no_p_value_but_recomputing_does() -> None:
    first, second = published_reliability().test, published_reliability(unswap=True).test
    assert first.two_sided == pytest.approx(second.two_sided, abs=1e-12)
    rows = table_two()
    pairs = list(dict.fromkeys((task, model) for task, model, _ in rows))
    again = [[rows[(*p, m)].sd / rows[(*p, m)].value for p in pairs] for m in ("cce", "ece")]
    assert welch(*again).two_sided == pytest.approx(0.400, abs=0.001)


def test_published_numbers_are_whole() -> None:
    rows = table_two()
    assert len(rows) + sum(math.isfinite(row.sd) for row in rows.values()) == 25 * 10
    assert {row.task for row in rows.values()} == {"AAF", "EVA", "FG-Net", "COCO-People"}
    (runtimes, figure) = (published("congruence", table=t) for t in ("table 3", "figure 14"))
    assert [row.value for row in runtimes] == [0.014, 0.224, 1.796, 5.743, 15.406]
    assert len(figure) == 8
    (one,) = published("congruence", table="figure 1", measure="cce")
    assert one.value == 0.209
    with pytest.raises(InputError, match="table must be one of"):
        published("congruence", table="table 9")


def test_variations_of_a_comparison() -> None:
    tasks = [wave_task(seed, rows=100) for seed in range(2)]
    how = CongruenceMeasure(draws=1, samplings=2, bootstraps=3)
    result = compare({"line": LinearT()}, tasks, measure=how, truth=True)
    found = reliability(result)
    assert found.cce.shape == (4,)
    first = result.runs[0]
    assert found.cce[0] == first.variation("cce")
    assert found.cce_draws[0] == pytest.approx(first.repeats.std(ddof=1) / first.repeats.mean())
    record = found.records()[0]
    assert record.options["welch_two_sided"] == found.test.two_sided
    with pytest.raises(InputError, match="two or more bootstrap samples"):
        reliability(compare({"line": LinearT()}, tasks, measure=CongruenceMeasure(bootstraps=0)))


def test_a_line_of_coefficients_by_size_is_found_again() -> None:
    """Where the sd of ECE is 0.25/√n exactly, one set of pairs tells what another varies by."""
    rng = np.random.default_rng(0)

    def pairs(count: int, least: float, most: float) -> Reliability:
        n, ece = rng.integers(least, most, count).astype(float), rng.uniform(0.02, 0.3, count)
        nothing = np.full(count, 0.1)
        return Reliability(
            task=("t",) * count,
            model=("m",) * count,
            cce=nothing,
            ece=0.25 / np.sqrt(n) / ece,
            cce_draws=nothing,
            n=n,
            ece_mean=ece,
        )

    few, many = pairs(9, 50, 100), pairs(30, 5_000, 9_000)
    np.testing.assert_allclose(many.ece_expected(few), few.ece)
    np.testing.assert_allclose(many.size * many.ece, 0.25)


def test_ece_varies_as_its_size_has_it_here_as_published() -> None:
    """Shipped: coefficients far larger than the published are those that their line has."""
    theirs = published_reliability(unswap=True)
    worlds = [
        TaskExperiments(name=name, studies=tuple(own))
        for name, own in study_shipped("congruence").results.items()
        if not name.startswith("nuclei-")  # which the paper does not have
    ]
    ours = reliability_of(worlds)
    assert ours is not None
    assert ours.ece[ours.answered].mean() > 2.0 * theirs.ece.mean()
    for pairs, of in ((theirs, ours), (ours, theirs)):
        expected, seen = pairs.ece_expected(of).mean(), of.ece[of.answered].mean()
        assert abs(np.log(expected / seen)) < np.log(1.25)
        assert np.corrcoef(np.log(of.size[of.answered]), np.log(of.ece[of.answered]))[0, 1] < -0.85


def test_a_single_pair_has_no_test() -> None:
    one = Reliability(
        task=("t",),
        model=("m",),
        cce=np.array([0.1]),
        ece=np.array([0.2]),
        cce_draws=np.array([0.1]),
        n=np.array([100.0]),
        ece_mean=np.array([0.1]),
    )
    with pytest.raises(InputError, match="at least two pairs"):
        _ = one.test
    assert "at least two pairs" in one.records()[0].reason
    with pytest.raises(InputError, match="at least two numbers"):
        welch([1.0], [1.0, 2.0])
