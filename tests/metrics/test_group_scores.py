"""Groups whose bias or spread is not that of all rows."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
import pytest
from scipy import stats

from howsure.core.rng import child
from howsure.engine.view import View
from howsure.predictions import Distribution, EvalSet, Prediction, Quantiles, Samples
from howsure.stats.estimate import Estimate
from howsure.topics.group_scores import _by_three_moments, errors_differ
from howsure.topics.groups import groupings
from howsure.verdict.family import examine
from howsure.verdict.words import answer

LEVELS = np.array([0.05, 0.25, 0.5, 0.75, 0.95])


def stated(kind: str, rng: np.random.Generator, n: int) -> tuple[Prediction, npt.ArrayLike]:
    """Predictions of one kind, with the sd of each row."""
    mean, sd = rng.normal(size=n), np.exp(0.5 * rng.normal(size=n))
    if kind == "samples":
        return Samples(mean[:, None] + sd[:, None] * rng.normal(size=(n, 5))), (mean, sd)
    if kind == "quantiles":
        return Quantiles(LEVELS, mean[:, None] + sd[:, None] * stats.norm.ppf(LEVELS)), (mean, sd)
    return Distribution.normal(mean, sd), (mean, sd)


def table(
    name: str,
    n: int,
    *,
    kind: str = "normal",
    shift: dict[str, float] | None = None,
    scale: dict[str, float] | None = None,
    together: int = 1,
    memory: float = 0.0,
    **known: npt.ArrayLike,
) -> EvalSet:
    """Four sites and two sexes; errors of some sites are shifted, in sds, or scaled.

    Errors agree in part within clusters of `together` rows, which are of one site, or follow an AR.
    """
    rng = child(0, "groups in errors", name, n)
    held, (mean, sd) = stated(kind, rng, n)
    z, cluster = rng.normal(size=n), np.arange(n) // together
    if together > 1:
        z = math.sqrt(0.7) * z + math.sqrt(0.3) * rng.normal(size=n)[cluster]
        known["cluster"] = cluster
    for row in range(1, n) if memory else ():
        z[row] = memory * z[row - 1] + math.sqrt(1.0 - memory**2) * z[row]
    if memory:
        known["time"] = np.arange(n)
    site = rng.choice(list("ABCD"), n)[cluster]
    moved, times = (
        np.array([(each or {}).get(label, plain) for label in site.tolist()])
        for each, plain in ((shift, 0.0), (scale, 1.0))
    )
    groups = {"site": site, "sex": rng.choice(["f", "m"], n)}
    return EvalSet.checked(mean + sd * (z * times + moved), held, groups=groups, **known)


def differ(held: EvalSet) -> Estimate:
    return errors_differ(View(held), groupings(held)[0])


def named(found: Estimate) -> dict[str, float]:
    """The groups that are named, each with its size."""
    ends = [end for end in ("", "_2") if f"where{end}" in found.details]
    return {str(found.details[f"where{end}"]): float(found.details[f"size{end}"]) for end in ends}


@pytest.mark.parametrize("kind", ["normal", "samples", "quantiles"])
def test_opposite_biases_are_named_with_their_size(kind: str) -> None:
    found = differ(table(kind, 3_000, kind=kind, shift={"B": 0.4, "C": -0.4}))
    assert found.p < 1e-6
    sizes = named(found)
    assert set(sizes) == {"site=B", "site=C"}
    assert sizes["site=B"] == pytest.approx(0.4, abs=0.12)
    assert sizes["site=C"] == pytest.approx(-0.4, abs=0.12)
    assert float(found.details["overall"]) == pytest.approx(0.0, abs=0.06)


def test_where_all_p_values_are_0_the_clearest_are_named() -> None:
    found = differ(table("clear", 100_000, shift={"C": 1.0, "D": -1.0}))
    assert found.p == 0.0
    assert set(named(found)) == {"site=C", "site=D"}


def test_the_answer_is_no_yes_where_biases_cancel() -> None:
    held = table("cancel", 1_600, shift={"B": 0.4, "C": -0.4})
    findings, _ = examine(held)
    (groups,) = (each for each in findings if each.id == "groups")
    assert groups.state == "bad"
    assert groups.sentence.endswith("groups differ in bias. The biases cancel overall.")
    assert answer(findings, held.n).reply == "partly"


def test_one_wrong_group_makes_no_other_look_wrong() -> None:
    """The others lie 0.1 sd beside the mean of all rows, which 10,000 rows show."""
    found = differ(table("one", 10_000, shift={"B": 0.4}))
    assert named(found) == {"site=B": pytest.approx(0.4, abs=0.06)}
    assert float(found.details["overall"]) == pytest.approx(0.1, abs=0.04)


def test_the_spread_of_a_group_is_named() -> None:
    found = differ(table("spread", 4_000, scale={"A": 1.4}))
    assert named(found) == {"site=A": pytest.approx(1.4, abs=0.1)}
    assert found.details["signal"] == "spread"


@pytest.mark.parametrize(
    "wrong", [{"shift": dict.fromkeys("ABCD", 0.5)}, {"scale": dict.fromkeys("ABCD", 1.5)}]
)
def test_a_fault_of_all_rows_is_none_of_groups(wrong: dict[str, dict[str, float]]) -> None:
    assert differ(table("all", 2_000, **wrong)).p > 0.05


def test_sizes_are_found_where_all_rows_fall_into_one_cell() -> None:
    """Errors of 1.1 stated sds, all beyond the 75 % quantile, and of .6 sds, all within."""
    sign = np.where(np.arange(80) % 4 < 2, 1.0, -1.0)
    place = np.where(np.arange(80) % 2, "DE", "FR")
    table = Quantiles(LEVELS, np.tile(stats.norm.ppf(LEVELS), (80, 1)))
    y = sign * np.where(place == "DE", 1.1, 0.6)
    sizes = named(differ(EvalSet.checked(y, table, groups={"place": place})))
    assert sizes == {"place=FR": pytest.approx(0.6 / stats.norm.ppf(0.75), abs=0.01)}


def test_counts_are_judged_at_a_draw_within_their_jump() -> None:
    rng = child(0, "groups in errors", "counts")
    rate = np.exp(rng.uniform(-2.0, 2.0, 3_000))
    site = np.where(rate > 2.0, "A", rng.choice(["B", "C"], 3_000))
    law, groups = Distribution.from_scipy(stats.poisson(rate)), {"site": site}
    right = EvalSet.checked(rng.poisson(rate).astype(float), law, groups=groups)
    assert differ(right).p > 0.05
    more = np.where(site == "B", 1.5, 1.0)
    wrong = EvalSet.checked(rng.poisson(more * rate).astype(float), law, groups=groups)
    assert differ(wrong).details["where"] == "site=B"


def test_the_p_value_is_the_smallest_of_all_groups_times_their_number() -> None:
    """By the definition: z of each group less all others, the long tail of φ_2 by a gamma law."""
    held = table("oracle", 400)
    u = held.predictions[0].cdf(held.y)  # type: ignore[attr-defined]
    x = 2.0 * u - 1.0
    smallest, tests = 1.0, 0
    for row, skewness in ((math.sqrt(3) * x, 0.0), (math.sqrt(5) / 2 * (3 * x * x - 1), 0.6389)):
        off = row - row.mean()
        for grouping in groupings(held)[0]:
            for code in range(len(grouping.labels)):
                inside = grouping.codes == code
                m, a = inside.sum(), inside.mean()
                part = np.where(inside, 1.0 - a, -a)
                own = off - np.where(inside, off[inside].mean(), off[~inside].mean())
                seen = (np.square(part * own)).sum() * m / (m - 1)
                z = (part @ off) / math.sqrt(max(seen, (np.square(part)).sum()))
                skew = skewness * (part**3).sum() / (np.square(part).sum()) ** 1.5
                tail = stats.norm.sf(abs(z))
                if z * skew > 0 and abs(skew) > 1e-3:
                    tail = stats.pearson3.sf(abs(z), abs(skew))
                smallest, tests = min(smallest, 2.0 * tail), tests + 1
    assert differ(held).p == pytest.approx(min(1.0, smallest * tests), rel=1e-3)


def test_the_long_tail_is_that_of_a_gamma_law() -> None:
    t, skew = np.array([2.0, -2.0, 2.0]), np.array([0.5, 0.5, -0.3])
    told = _by_three_moments(t, skew)
    assert told[0] == pytest.approx(2.0 * stats.pearson3.sf(2.0, 0.5), rel=1e-9)
    assert told[1:] == pytest.approx(2.0 * stats.norm.sf(2.0), rel=1e-9)


@pytest.mark.parametrize("kind", ["normal", "samples", "together"])
def test_right_models_keep_their_error_rate(kind: str) -> None:
    tables, more = 150, {"together": 5} if kind == "together" else {"kind": kind}
    told = [differ(table(f"{kind} {k}", 200, **more)).p <= 0.05 for k in range(tables)]  # type: ignore[arg-type]
    assert np.mean(told) <= 0.05 + 3.0 * math.sqrt(0.05 * 0.95 / tables)


def test_groups_of_rows_that_follow_each_other_are_judged_by_their_memory() -> None:
    held = table("time", 800, memory=0.8)
    bad = {each.id for each in examine(held)[0] if each.state == "bad"}
    assert "groups" not in bad
    wrong = table("time", 800, memory=0.8, shift={"B": 0.8, "C": -0.8})
    (groups,) = (each for each in examine(wrong)[0] if each.id == "groups")
    assert groups.state == "bad"
    assert groups.where in ("site=B", "site=C")
