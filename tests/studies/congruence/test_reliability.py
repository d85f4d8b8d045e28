"""Reliability: Welch's test against SciPy, and the published p-values from the published table."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from howsure.core.errors import InputError
from howsure.methods.linear import LinearT
from howsure.studies.congruence import (
    CongruenceMeasure,
    compare,
    published_numbers,
    published_reliability,
    wave_task,
)
from howsure.studies.congruence.result import Reliability, reliability, welch

samples = st.lists(st.integers(-50, 50).map(float), min_size=2, max_size=12)


@settings(derandomize=True, deadline=None, max_examples=60)
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
    printed = {row.measure: row.value for row in published_numbers("table 1")}
    test = published_reliability().test
    assert test.two_sided == pytest.approx(0.377, abs=0.001)
    assert test.greater == pytest.approx(0.812, abs=0.001)
    assert test.two_sided == pytest.approx(printed["welch_two_sided"], abs=0.002)
    assert test.greater == pytest.approx(printed["welch_cce_varies_more"], abs=0.002)


def test_cells_that_are_not_their_sd_by_mean() -> None:
    """Two rows of COCO-People stand in each other's place; one cell of AAF is another number."""
    rows = {(row.task, row.model, row.measure): row.value for row in published_numbers("table 2")}

    def far(held: Reliability) -> set[tuple[str, str]]:
        found = set()
        for task, model, cce in zip(held.task, held.model, held.cce, strict=True):
            mean, sd = rows[task, model, "cce"], rows[task, model, "cce_sd"]
            low, high = (sd - 5e-4) / (mean + 5e-4), (sd + 5e-4) / (mean - 5e-4)
            if not low - 5e-4 <= cce <= high + 5e-4:
                found.add((task, model))
        return found

    swapped = {("COCO-People", "poisson"), ("COCO-People", "gaussian")}
    other = {("AAF", "gaussian")}
    assert far(published_reliability()) == swapped | other
    assert far(published_reliability(unswap=True)) == other
    for words, pairs in (("swapped", swapped), ("sd by mean", other)):
        noted = {(row.task, row.model) for row in published_numbers("table 2") if words in row.note}
        assert noted == pairs


def test_swapping_changes_no_p_value_but_recomputing_does() -> None:
    first, second = published_reliability().test, published_reliability(unswap=True).test
    assert first.two_sided == pytest.approx(second.two_sided, abs=1e-12)
    rows = {(row.task, row.model, row.measure): row.value for row in published_numbers("table 2")}
    pairs = list(dict.fromkeys((task, model) for task, model, _ in rows))
    again = [[rows[(*p, f"{m}_sd")] / rows[(*p, m)] for p in pairs] for m in ("cce", "ece")]
    assert welch(*again).two_sided == pytest.approx(0.400, abs=0.001)


def test_published_numbers_are_whole() -> None:
    assert len(published_numbers("table 2")) == 25 * 10
    assert {row.task for row in published_numbers("table 2")} == {
        "AAF",
        "EVA",
        "FG-Net",
        "COCO-People",
    }
    assert [row.value for row in published_numbers("table 3")] == [
        0.014,
        0.224,
        1.796,
        5.743,
        15.406,
    ]
    assert len(published_numbers("figure 14")) == 8
    (one,) = published_numbers("figure 1", measure="cce")
    assert one.value == 0.209
    with pytest.raises(InputError, match="source must be one of"):
        published_numbers("table 9")


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
    assert len(found.table()) == 4
    with pytest.raises(InputError, match="two or more bootstrap samples"):
        reliability(compare({"line": LinearT()}, tasks, measure=CongruenceMeasure(bootstraps=0)))


def test_a_single_pair_has_no_test() -> None:
    one = Reliability(
        task=("t",),
        model=("m",),
        cce=np.array([0.1]),
        ece=np.array([0.2]),
        cce_draws=np.array([0.1]),
    )
    with pytest.raises(InputError, match="at least two pairs"):
        _ = one.test
    assert "at least two pairs" in one.records()[0].reason
    with pytest.raises(InputError, match="at least two numbers"):
        welch([1.0], [1.0, 2.0])
