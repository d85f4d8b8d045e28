"""The miss rates of partial gains: one option, by one name, from records to figures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from howsure import Distribution, Options, assess
from howsure.cli.main import app
from howsure.core.errors import HowsureError
from howsure.core.records import Record
from howsure.core.rng import child
from howsure.engine.measure import evaluate
from howsure.engine.metric import MISS_RANGE, in_words
from howsure.figures.figure import Mark
from howsure.predictions import EvalSet
from howsure.report.check import Rules, check, limit_of, rules_from
from howsure.topics.characteristic.resampling import permutation_test
from howsure.topics.characteristic.trace import AreaRequest

PARTS = ("characteristic_partial_gain", "characteristic_left_gain")
RANGES = [(0.0, 0.2), (0.0, 0.5), (0.1, 0.6), (0.5, 1.0), (0.0, 1.0)]


def model(n: int, name: str = "model", *, follow: float = 1.0, seed: int = 0) -> EvalSet:
    """Errors of many sizes, and bands that follow these sizes more or less."""
    rng = child(seed, "miss range", n)
    size = rng.uniform(0.5, 2.0, n)
    y, zero = size * rng.normal(size=n), np.zeros(n)
    return EvalSet.checked(y, Distribution.normal(zero, size**follow), model=name)


def records(held: EvalSet, **options: Any) -> dict[str, Record]:
    return {r.metric: r for r in evaluate(held, metrics=PARTS, **options).records}


def areas(error: Any, band: Any, low: float, high: float) -> tuple[float, float]:
    """Under the curve and to its left, summed rectangle by rectangle from the definition."""
    at = np.sort(band.mean() * np.abs(error) / band)
    n, under, left = len(at), 0.0, 0.0
    for place in range(n):  # the miss rate falls from (n − place)/n to (n − place − 1)/n here
        top, bottom = (n - place) / n, (n - place - 1) / n
        left += at[place] * max(0.0, min(top, high) - max(bottom, low))
        before = at[place - 1] if place else 0.0
        if low + 1e-12 < top <= high + 1e-12:
            under += top * (at[place] - before)
    return under, left


@pytest.mark.parametrize("part", RANGES)
def test_both_readings_are_those_of_the_definition(part: tuple[float, float]) -> None:
    held = model(500)
    z = held.predictions[0].interval(0.9)
    band = (z[1] - z[0]) / 2.0
    own = areas(held.y, band, *part)
    constant = areas(held.y, np.ones(held.n), *part)
    found = records(held, miss_range=part)
    for place, name in enumerate(PARTS):
        gain = 100.0 * (constant[place] - own[place]) / constant[place]
        assert found[name].value == pytest.approx(gain, rel=1e-9, abs=1e-9)
        assert float(found[name].options["area"]) == pytest.approx(own[place], rel=1e-9)
        assert float(found[name].options["constant_area"]) == pytest.approx(constant[place])
        assert found[name].options["miss_range"] == f"{part[0]:g} to {part[1]:g}"


def test_the_default_is_up_to_a_fifth() -> None:
    plain, told = records(model(300)), records(model(300), miss_range=[0, 0.2])
    assert {n: r.value for n, r in plain.items()} == {n: r.value for n, r in told.items()}
    assert MISS_RANGE == (0.0, 0.2)


@pytest.mark.slow
@pytest.mark.parametrize("part", [(0.1, 0.6), (0.0, 0.5)])
def test_standard_errors_of_partial_gains(part: tuple[float, float]) -> None:
    drawn: dict[str, list[tuple[float, float]]] = {name: [] for name in PARTS}
    for seed in range(150):
        for name, record in records(model(300, seed=seed), miss_range=part).items():
            drawn[name].append((record.value, record.standard_error))
    for name in PARTS:
        values, errors = np.array(drawn[name]).T
        assert 0.8 < errors.mean() / values.std(ddof=1) < 1.25, name


BAD = [(0.5, 0.2), (0.2, 0.2), (-0.1, 0.2), (0.0, 1.2), (0.0, float("nan")), (0.1, 0.2, 0.3)]


@pytest.mark.parametrize("part", BAD)
def test_ranges_that_are_none_are_refused_by_name(part: Any) -> None:
    held = model(50)
    told = "miss_range must"
    with pytest.raises(HowsureError, match=told):
        evaluate(held, miss_range=part)
    with pytest.raises(HowsureError, match=told):
        assess(held.y, held.predictions[0], options=Options(miss_range=part))
    with pytest.raises(HowsureError, match=told):
        Rules(limits=(limit_of("mae", "max", 2.0),), miss_range=part)


def test_a_limit_on_a_partial_gain_is_judged_in_its_range() -> None:
    table = {"limits": [{"measure": "partial gain", "min": 5}], "miss_range": [0, 0.5]}
    held = model(1000)
    (outcome,) = check([held], rules_from(table, "rules")).outcomes
    assert outcome.value == records(held, miss_range=(0, 0.5))[PARTS[0]].value
    assert outcome.value != records(held)[PARTS[0]].value


def test_a_range_that_starts_at_0_has_one_end_in_words() -> None:
    assert in_words((0.0, 0.2)) == "up to 20 %"
    assert in_words((0.01, 0.5)) == "from 1 % to 50 %"


@pytest.mark.slow
def test_a_report_tells_compares_and_shades_the_range() -> None:
    first, second = model(200, "follows"), model(200, "even", follow=0.2)
    predictions = {"follows": first.predictions[0], "even": second.predictions[0]}
    part = (0.1, 0.6)
    told = assess(first.y, predictions, options=Options(miss_range=part, trials=False))
    assert told.facts["Miss rates of partial areas"] == "from 10 % to 60 %"
    (figure,) = [each for each in told.figures if each.name == "characteristic"]
    (zone,) = [layer for layer in figure.layers if layer.mark is Mark.ZONE]
    assert (zone.lower, zone.upper, zone.series) == (0.1, 0.6, "miss rate 10 % to 60 %")
    assert "characteristic_part" not in {each.name for each in told.figures}
    (table,) = [each for each in told.tables if each.name == "models"]
    rows = dict(zip(table.columns["metric"], table.columns["p_value"], strict=True))
    curves = [evaluate(held).view.get("characteristic") for held in (first, second)]
    for name, reading in zip(PARTS, ("under", "left"), strict=True):
        request = AreaRequest(y_range=part, reading=reading)
        truth = permutation_test(curves[0], curves[1], request, permutations=500)
        assert rows[name] == pytest.approx(truth.p_value, abs=0.08)
    plain = assess(first.y, predictions, options=Options(trials=False))
    (table,) = [each for each in plain.tables if each.name == "models"]
    assert not set(PARTS) & set(table.columns["metric"])
    assert "Miss rates of partial areas" not in plain.facts
    said = [next(f for f in held.findings if f.id == "trade").sentence for held in (told, plain)]
    assert "miss rates from 10 % to 60 %" in said[0]
    assert "miss rates up to 20 %" in said[1]


@pytest.mark.parametrize("command", ["assess", "check", "characteristic"])
def test_commands_refuse_a_range_that_is_none(command: str, tmp_path: Path) -> None:
    table = tmp_path / "table.csv"
    table.write_text("y,lower_90,upper_90\n1,0,2\n2,1,3\n", encoding="utf-8")
    page = tmp_path / "page.html"
    more = {"assess": ["-o", str(page)], "check": ["--max-mae", "2"]}.get(command, [])
    words = [command, str(table), "--miss-range", "0.5", "0.2", *more]
    found = CliRunner().invoke(app, words)
    assert found.exit_code != 0
    assert "--miss-range must be two rising numbers between 0 and 1" in str(found.exception)
    assert not page.exists()
