"""Any readable table ends with a report or with one line that says what is wrong with it."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from generated import examples
from howsure import assess
from howsure.core.errors import HowsureError, strict
from howsure.predictions import (
    Distribution,
    Intervals,
    LabelSets,
    Prediction,
    Quantiles,
    Samples,
)
from howsure.topics.conditional import forests
from howsure.topics.conditional import view as conditional

pytestmark = [pytest.mark.slow, pytest.mark.few_draws]

Floats = np.ndarray[Any, np.dtype[np.float64]]

KINDS = ("intervals", "quantiles", "samples", "normal", "law", "counts", "labels", "several")
LEVELS = (0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95)
SIZES = (1e-300, 1e-200, 1e-9, 1.0, 1.0, 1.0, 1e7, 1e99)
ODD = ("plain", "plain", "constant", "ties", "one huge", "one tiny", "two values")


def numbers(rng: np.random.Generator, n: int, odd: str, size: float) -> Floats:
    """Numbers of some size, odd in one way."""
    values = rng.normal(size=n)
    if odd == "constant":
        values[:] = 1.0
    elif odd == "ties":
        values = np.round(values)
    elif odd == "one huge":
        values[n // 2] = 1e12
    elif odd == "one tiny":
        values *= 1e12
        values[n // 2] = 1e-12
    elif odd == "two values":
        values = np.where(values > 0, 1.0, -1.0)
    return values * size


@st.composite
def predictions(draw: st.DrawFn, kind: str, n: int, size: float) -> Prediction:
    """One prediction of a kind."""
    rng = np.random.default_rng(draw(st.integers(0, 2**16)))
    centre = numbers(rng, n, draw(st.sampled_from(ODD)), size)
    spread = np.abs(numbers(rng, n, draw(st.sampled_from(ODD)), size))
    if kind == "intervals":
        columns = draw(st.sampled_from([1, 1, 2, 3]))
        reach = spread[:, None] * np.arange(1, columns + 1)
        reach[rng.random(n) < draw(st.sampled_from([0.0, 0.0, 0.3, 1.0]))] = 0.0
        lower, upper = centre[:, None] - reach, centre[:, None] + reach
        lower[rng.random(n) < draw(st.sampled_from([0.0, 0.0, 0.1, 1.0]))] = -np.inf
        upper[rng.random(n) < draw(st.sampled_from([0.0, 0.0, 0.1, 1.0]))] = np.inf
        unknown = columns == 1 and draw(st.sampled_from([False, False, True]))
        return Intervals(lower, upper, coverage=None if unknown else [0.5, 0.8, 0.9][-columns:])
    if kind == "quantiles":
        levels = sorted(draw(st.sets(st.sampled_from(LEVELS), min_size=1)))
        table = centre[:, None] + spread[:, None] * np.sort(rng.normal(size=(n, len(levels))))
        return Quantiles(np.array(levels), np.sort(table, axis=1))
    if kind == "samples":
        members = draw(st.sampled_from([1, 2, 5, 30]))
        table = centre[:, None] + spread[:, None] * rng.normal(size=(n, members))
        table[rng.random(n) < draw(st.sampled_from([0.0, 0.3, 1.0]))] = 0.1
        return Samples(table)
    scale = np.maximum(spread, draw(st.sampled_from([1e-300, 1e-9 * size, size])))
    if kind == "counts":
        mean = np.minimum(np.abs(centre) + 1e-3, 1e6)
        if draw(st.booleans()):
            return Distribution("poisson", {"mu": mean})
        return Distribution("nbinom", {"n": np.full(n, 3.0), "p": 3.0 / (3.0 + mean)})
    law = draw(st.sampled_from(["cauchy", "t", "laplace", "lognorm", "gamma", "uniform"]))
    if kind == "normal":
        return Distribution.normal(centre, scale)
    own = {"t": {"df": np.full(n, 2.5)}, "lognorm": {"s": np.full(n, 0.5)}}
    own["gamma"] = {"a": np.full(n, 2.0)}
    return Distribution(law, {**own.get(law, {}), "loc": centre, "scale": scale})


@st.composite
def columns(draw: st.DrawFn, n: int) -> dict[str, Any]:
    """What is known of rows besides."""
    rng = np.random.default_rng(draw(st.integers(0, 2**16)))
    known: dict[str, Any] = {}
    features = {}
    for name in draw(st.sampled_from(["", "", "a", "ab"])):
        odd = draw(st.sampled_from([*ODD, "labels", "names", "dates", "truth"]))
        if odd == "labels":
            features[name] = rng.choice(["x", "y", "z"], n)
        elif odd == "names":
            features[name] = np.array([f"row {i}" for i in range(n)])
        elif odd == "dates":
            features[name] = np.datetime64("2024-01-01") + rng.integers(0, 99, n)
        elif odd == "truth":
            features[name] = rng.random(n) < 0.5
        else:
            size = draw(st.sampled_from([*SIZES, 1e39, 1e308 / 1e13]))
            features[name] = numbers(rng, n, odd, size)
    if features:
        known["x"] = features
    width = draw(st.sampled_from([0, 0, 0, 1, 20, 60]))
    if width:
        known["embedding"] = rng.normal(size=(n, width)) * draw(st.sampled_from([0.0, 1.0, 1e90]))
    labels = draw(st.sampled_from([0, 0, 0, 1, 2, min(n, 5)]))
    if labels:
        known["groups"] = {"g": rng.integers(0, labels, n).astype(str)}
        if draw(st.booleans()):
            known["groups"]["h"] = np.where(rng.random(n) < 0.5, "left", "right")
    weights = draw(st.sampled_from(["", "", "frequency", "zeros", "importance", "uneven"]))
    if weights:
        known["weights_kind"] = "frequency" if weights in ("frequency", "zeros") else "importance"
        known["weights"] = {
            "frequency": rng.integers(1, 4, n),
            "zeros": rng.integers(0, 2, n),
            "importance": rng.uniform(0.1, 3.0, n),
            "uneven": 10.0 ** rng.uniform(-30, 30, n),
        }[weights]
    clusters = draw(st.sampled_from([0, 0, 0, 1, 2, n]))
    if clusters:
        known["cluster"] = rng.integers(0, clusters, n)
    when = draw(st.sampled_from(["", "", "numbers", "dates", "equal"]))
    if when:
        days = np.datetime64("2024-01-01") + rng.integers(0, 99, n)
        ways = {"numbers": rng.normal(size=n), "dates": days, "equal": np.ones(n)}
        known["time"] = ways[when]
    ahead = draw(st.sampled_from([0, 0, 1, 2, n]))
    if ahead:
        known["horizon"] = rng.integers(0, ahead, n)
    several = draw(st.sampled_from([0, 0, 1, 2, n]))
    if several:
        known["series"] = rng.integers(0, several, n)
    if draw(st.sampled_from([False, False, True])):
        known["coverage"] = draw(st.sampled_from([0.9, 0.5, [0.5, 0.9], [0.999]]))
    return known


@st.composite
def tables(draw: st.DrawFn, kind: str) -> tuple[Any, Any, dict[str, Any]]:
    """y, predictions, and what else `assess` takes."""
    n = draw(st.sampled_from([1, 2, 3, 5, 5, 9, 9, 14] * 4 + [60]))
    size = 1.0 if kind == "counts" else draw(st.sampled_from(SIZES))
    rng = np.random.default_rng(draw(st.integers(0, 2**16)))
    known = draw(columns(n))
    if kind == "labels":
        classes = draw(st.sampled_from([1, 2, 5]))
        members = rng.random((n, classes)) < draw(st.sampled_from([0.0, 0.5, 1.0]))
        if known.get("coverage") is not None:
            del known["coverage"]
        return rng.integers(0, classes, n), LabelSets(members, coverage=0.9), known
    y = numbers(rng, n, draw(st.sampled_from(ODD)), size)
    if kind == "counts":
        y = np.minimum(np.floor(np.abs(y)), 1e6)
    if draw(st.sampled_from([False, False, True])):
        known["point"] = numbers(rng, n, draw(st.sampled_from(ODD)), size)
    some = [k for k in KINDS[:5] if k != "law"]
    if kind != "several":
        return y, draw(predictions(kind, n, size)), known
    if draw(st.booleans()):
        pair = draw(st.lists(st.sampled_from(some[:4]), min_size=2, max_size=2, unique=True))
        return y, tuple(draw(predictions(one, n, size)) for one in pair), known
    pair = draw(st.lists(st.sampled_from(some), min_size=2, max_size=3))
    return y, {f"model {i}": draw(predictions(k, n, size)) for i, k in enumerate(pair)}, known


def check(table: tuple[Any, Any, dict[str, Any]], *, pages: bool) -> None:
    """A report whose every missing number has its reason, or one line."""
    y, prediction, known = table
    told: HowsureError | None = None
    try:
        with strict():
            result = assess(y, prediction, **known)
    except HowsureError as error:
        told = error
    if told is not None:
        assert len(str(told).splitlines()) == 1, told
        return
    for record in result.records:
        assert record.reason or not math.isnan(record.value), record
    told = result.verdict.splitlines()
    assert told
    assert all(line.strip() for line in told), told
    if pages:
        with strict():
            json.loads(result.to_json())
            assert result.to_html()
            assert result.to_markdown()
            assert result.to_csv()


@pytest.fixture(autouse=True)
def small_searches(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same code on fewer trees and directions."""
    monkeypatch.setattr(forests, "TREES", 2)
    monkeypatch.setattr(conditional, "DIRECTIONS", 5)


@pytest.mark.parametrize("kind", KINDS)
@examples(250, database=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
@pytest.mark.rate
def test_any_table_ends_with_a_report_or_one_line(kind: str, data: st.DataObject) -> None:
    table = data.draw(tables(kind))
    check(table, pages=data.draw(st.sampled_from([True] + 9 * [False])))
