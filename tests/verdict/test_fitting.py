"""Evidence fits the claim: what a sentence shows has the sign, the level and the signal of it."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
import pytest

import howsure
from howsure.conformal.labels import LAC, LabelConformal
from howsure.core.arrays import FloatArray
from howsure.core.rng import child
from howsure.engine.autocorrelation import Dependence
from howsure.engine.finding import MIN_ROWS_OF_PART, Draft, Finding
from howsure.report.assessment import Assessment
from howsure.verdict.family import _finding
from howsure.verdict.words import sentence

N = 4_000
SHOWN = re.compile(
    r"Of y, ([\d.]+) % are below the predicted ([\d.]+) % quantile and ([\d.]+) % above the "
    r"([\d.]+) % quantile\."
)
SHAPES: dict[str, Callable[[np.random.Generator], FloatArray]] = {
    "t3": lambda rng: rng.standard_t(3, N) / 3**0.5,
    "t3, shifted": lambda rng: rng.standard_t(3, N) / 3**0.5 + 0.3,
    "t5, too wide": lambda rng: 0.7 * rng.standard_t(5, N),
    "uniform": lambda rng: rng.uniform(-(3**0.5), 3**0.5, N),
    "uniform, too narrow": lambda rng: rng.uniform(-2.2, 2.2, N),
    "exponential": lambda rng: rng.exponential(size=N) - 1.0,
    "exponential, turned": lambda rng: 1.0 - rng.exponential(size=N),
    "gamma, too wide": lambda rng: 0.8 * (rng.gamma(4.0, size=N) - 4.0) / 2.0,
    "two humps": lambda rng: np.where(rng.random(N) < 0.5, -0.9, 0.9) + 0.4 * rng.normal(size=N),
}


def states(y: FloatArray, **options: object) -> dict[str, Finding]:
    zero = np.zeros(len(y))
    law = howsure.Distribution.normal(zero, zero + 1.0)
    result = howsure.assess(y, law, **options, options=howsure.Options(trials=False))  # type: ignore[arg-type]
    return {each.id: each for each in result.findings}


@pytest.mark.slow
@pytest.mark.parametrize("form", ["distribution", "quantiles"])
@pytest.mark.parametrize("name", SHAPES)
def test_tails_and_skew_are_shown_where_they_show(name: str, form: str) -> None:
    y = SHAPES[name](child(0, "fitting", name))
    law = howsure.Distribution.normal(np.zeros(N), np.ones(N))
    levels = [0.025, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.975]
    given = law if form == "distribution" else howsure.Quantiles(levels, law.quantile(levels))
    found = {
        each.id: each
        for each in howsure.assess(y, given, options=howsure.Options(trials=False)).findings
    }
    shown = 0
    for which in ("skew", "tails"):
        if found[which].state != "bad":
            continue
        told = SHOWN.search(found[which].sentence)
        if told is None:
            continue
        shown += 1
        below, low, above, high = (float(each) / 100.0 for each in told.groups())
        over = (below - low, above - (1.0 - high))
        way = over[0] + over[1] if which == "tails" else over[1] - over[0]
        assert way * found[which].effect > 0, found[which].sentence
        seen = (y < law.quantile([low])[:, 0]).mean()
        assert seen == pytest.approx(below, abs=6e-4)
    # of nine quantiles none lies so far out that those of t3 of unit variance are heavier
    if name in ("uniform", "exponential", "exponential, turned") or (name, form) == (
        "t3",
        "distribution",
    ):
        assert shown


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fault", "seen", "claim"),
    [
        ("bias", r"predictions are ([\d.]+) predicted sd lower relative to y than", "bias depends"),
        ("spread", r"errors relative to the predicted spread are ([\d.]+) ×", "spread depends"),
    ],
)
def test_a_region_names_its_own_signal(fault: str, seen: str, claim: str) -> None:
    rng = child(1, "fitting", fault)
    x, e = rng.uniform(size=N), rng.normal(size=N)
    y = np.where(x > 0.7, e + 0.9, e) if fault == "bias" else np.where(x > 0.7, 0.5 * e, e)
    region = states(y, features={"x": x})["region"]
    assert region.state == "bad"
    assert claim in region.sentence
    assert "overall" in region.sentence
    told = re.search(seen, region.sentence)
    assert told is not None, region.sentence
    assert "x > 0.7" in region.where or "x > 0.6" in region.where
    # beside all rows, of which the region is three in ten
    assert float(told[1]) == pytest.approx(0.63 if fault == "bias" else 0.6, abs=0.1)


def test_empty_sets_are_explained_and_the_floor_does_what_it_says() -> None:
    rng = child(3, "fitting")
    scores = np.exp(3.0 * rng.normal(size=(4_000, 5)))
    shares = scores / scores.sum(axis=1, keepdims=True)
    y = (rng.random((4_000, 1)) > shares.cumsum(axis=1)).sum(axis=1)
    held, new = slice(0, 2_000), slice(2_000, None)

    def assessed(*, allow_empty: bool) -> Assessment:
        method = LabelConformal(score=LAC(), coverage=0.7, allow_empty=allow_empty)
        sets = method.calibrate(shares[held], y[held]).predict(shares[new])
        return howsure.assess(y[new], sets, options=howsure.Options(trials=False))

    before, after = assessed(allow_empty=True), assessed(allow_empty=False)
    (told,) = (each for each in before.findings if each.id == "sets")
    assert told.state == "bad"
    assert "accuracy exceeds the nominal coverage" in told.sentence
    assert "Requiring at least one label fills them and raises coverage" in told.sentence
    assert before.value("empty_sets") > 0.05
    assert after.value("empty_sets") == 0
    assert after.value("empirical_coverage") > before.value("empirical_coverage")
    assert all(each.state != "bad" for each in after.findings if each.id == "sets")


@pytest.mark.parametrize("rows", [2, 4, MIN_ROWS_OF_PART - 1, MIN_ROWS_OF_PART])
def test_no_part_of_a_few_rows_is_condemned(rows: int) -> None:
    y = child(2, "fitting").normal(size=2_000)
    y[:rows] += 9.0
    group = np.where(np.arange(2_000) < rows, "few", np.where(np.arange(2_000) % 2, "a", "b"))
    groups = states(y, groups={"g": group})["groups"]
    if groups.where == "g=few":
        assert (groups.state == "bad") == (rows >= MIN_ROWS_OF_PART)
    else:
        assert rows < MIN_ROWS_OF_PART  # the test of groups did not even choose it


def test_the_least_number_is_stated() -> None:
    facts = {"value": 0.0, "expected": 0.9, "overall": 0.9, "rows": 4.0, "claimed": False}
    draft = Draft(
        id="groups",
        effect=-0.9,
        lower=-0.99,
        upper=-0.4,
        p=1e-6,
        where="g=few",
        n=4.0,
        good=False,
        facts={**facts, "sets": False},
    )
    made = _finding(draft, 1e-6, 0.01, "model")
    assert made.state == "caution"
    assert sentence(made, draft).endswith("A part of the rows needs at least 10 rows to fail.")


@pytest.mark.parametrize("r", [0.004, 0.0004, 0.00002, -0.003])
def test_what_is_correlated_has_no_correlation_of_zero(r: float) -> None:
    found = Dependence(
        by="time",
        signal="side",
        correlation=r,
        tau=2.0,
        effect=0.5,
        lower=0.2,
        upper=0.8,
        p=1e-4,
        n=1e6,
        found=True,
        batches=50,
    )
    draft = Draft(id="dependence", effect=0.5, p=1e-4, n=1e6, caution=True, facts={"found": found})
    told = sentence(_finding(draft, 1e-4, 0.01, "model"), draft)
    assert "are correlated in time" in told
    assert not re.search(r"r = −?0(\.0+)?\b[^.\d]", told), told
