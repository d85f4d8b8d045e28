"""A measure added by the recipe of CONTRIBUTING stands beside the others, and nothing is edited."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import stats

import howsure
from howsure.core.records import Direction, Record
from howsure.engine import catalogue
from howsure.engine.metric import BY_UNIT, POSITIVE, Array, Form, Laws, Metric, Question, itself
from howsure.engine.view import View
from howsure.topics import point
from streaming.tables import at_once, by_parts, normal_table, state_of

CUBED = math.sqrt(8.0 / math.pi)  # E|z|³


def _cubed(view: View, _: float) -> np.ndarray:
    return np.abs(view.get("y") - view.get("point")) ** 3


def _half_width(view: View, coverage: float) -> np.ndarray:
    lower, upper = view.get("ends", coverage)
    return (upper - lower) / 2.0


def entry(name: str, array: str, **more: Any) -> Metric:
    kept: dict[str, Any] = {"laws": BY_UNIT, "bounds": POSITIVE, "direction": Direction.LOWER}
    return Metric(
        name=name,
        title=name.replace("_", " "),
        synonyms=(),
        question=Question.POINT,
        meaning="A measure by the recipe.",
        formula=name,
        source="definition",
        units="y",
        forms=(Form(needs=(array,), function=itself),),
        **{**kept, **more},
    )


@pytest.fixture
def added(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Two measures more in the topic of the point forecast: one of y, one of the prediction."""
    topic = replace(
        point.TOPIC,
        entries=(
            *point.TOPIC.entries,
            entry("cubed_error", "cubed", standard_normal=CUBED, laws=Laws(scale=3.0)),
            entry("half_width", "half_width", standard_normal=1.645, per_coverage=True),
        ),
        arrays=(
            *point.TOPIC.arrays,
            Array("cubed", _cubed),
            Array("half_width", _half_width, per_coverage=True, predicted=True),
        ),
    )
    topics = [topic if each is point.TOPIC else each for each in catalogue.own_topics()]
    monkeypatch.setattr(catalogue, "own_topics", lambda: tuple(topics))
    kept = (catalogue.catalogue, catalogue.arrays, catalogue._spellings)
    for each in kept:
        each.cache_clear()
    yield
    monkeypatch.undo()
    for each in kept:
        each.cache_clear()


def named(result: howsure.Assessment, name: str) -> Record:
    return next(r for r in result.records if r.metric == name and not r.group)


@pytest.mark.usefixtures("added")
def test_a_measure_by_the_recipe_has_its_error_and_a_perfect_models_value() -> None:
    rng = np.random.default_rng(8)
    mean, n = rng.normal(size=4_000), 4_000
    y = mean + rng.normal(size=n)
    result = howsure.assess(
        y, howsure.Distribution.normal(mean, np.ones(n)), options=howsure.Options(trials=False)
    )
    cubed, half = named(result, "cubed_error"), named(result, "half_width")
    errors = np.abs(y - mean) ** 3
    assert cubed.value == pytest.approx(errors.mean(), rel=1e-12)
    assert cubed.standard_error == pytest.approx(stats.sem(errors), rel=1e-9)
    assert "no_null" not in cubed.options
    assert cubed.null == pytest.approx(CUBED, rel=0.03)
    assert cubed.null_lower < CUBED < cubed.null_upper
    spread = math.sqrt((15.0 - CUBED**2) / n)  # E z⁶ = 15
    assert (cubed.null_upper - cubed.null_lower) / 3.92 == pytest.approx(spread, rel=0.25)
    assert half.value == pytest.approx(stats.norm.ppf(0.95), rel=1e-9)
    assert half.options["no_null"] == "does not depend on y"


@pytest.mark.usefixtures("added")
@pytest.mark.rate
@pytest.mark.few_draws
def test_a_measure_by_the_recipe_is_told_of_parts_and_groups() -> None:
    table = normal_table(1_500)
    whole, parts = at_once(table), by_parts(state_of(table, [400, 900]))
    one, two = named(whole, "cubed_error"), named(parts, "cubed_error")
    assert two.exact == "rows"
    assert (two.value, two.standard_error) == pytest.approx((one.value, one.standard_error))
    groups = [r.group for r in parts.records if r.metric == "cubed_error" and r.group]
    assert "site=a" in groups
