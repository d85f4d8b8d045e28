"""Every measure obeys the laws that it declares, and has its declared value for a perfect model."""

from __future__ import annotations

import math

import numpy as np
import pytest

from howsure.core.records import Record
from howsure.core.rng import child
from howsure.engine.catalogue import catalogue
from howsure.engine.measure import evaluate
from howsure.engine.metric import Question
from howsure.predictions import EvalSet
from howsure.verdict.nulls import with_nulls
from laws.worlds import COUNT_KINDS, KINDS, affine, make, make_counts, prediction

ENTRIES = catalogue()
PARTS = ("miscalibration", "discrimination", "outcome_uncertainty")
ASKED = [name for name in ENTRIES if not name.endswith(PARTS)]
"""All but parts of scores, for which y would be drawn anew: see metrics/test_decomposition."""
CLOSE = {"rel_tol": 1e-7, "abs_tol": 1e-9}


def records(held: EvalSet) -> dict[tuple[str, float | None], Record]:
    found = evaluate(held, slow=ASKED)
    return {
        (r.metric, None if math.isnan(r.coverage) else round(r.coverage, 9)): r
        for r in found.records
    }


def same(a: float, b: float) -> bool:
    return (math.isnan(a) and math.isnan(b)) or math.isclose(a, b, **CLOSE)


@pytest.fixture(scope="module", params=KINDS)
def held(request: pytest.FixtureRequest) -> EvalSet:
    return make(request.param, 157, child(0, "laws", request.param))


@pytest.fixture(scope="module", params=[*KINDS, *COUNT_KINDS])
def any_held(request: pytest.FixtureRequest) -> EvalSet:
    """Counts too, for laws that leave y as it is."""
    maker = make_counts if request.param in COUNT_KINDS else make
    return maker(request.param, 157, child(0, "laws", request.param))


def test_translation(held: EvalSet) -> None:
    before, after = records(held), records(affine(held, 11.0, 1.0))
    for key, record in before.items():
        if ENTRIES[key[0]].laws.translation == "invariant":
            assert same(record.value, after[key].value), key
            assert same(record.standard_error, after[key].standard_error), key


@pytest.mark.parametrize("factor", [0.01, 250.0])
def test_scale(held: EvalSet, factor: float) -> None:
    before, after = records(held), records(affine(held, 0.0, factor))
    for key, record in before.items():
        law = ENTRIES[key[0]].laws.scale
        if law == "log":
            assert same(record.value + math.log(factor), after[key].value), key
        elif law != "varies":
            power = factor ** float(law)
            assert same(record.value * power, after[key].value), key
            assert same(record.standard_error * power, after[key].standard_error), key


def test_reflection(held: EvalSet) -> None:
    before, after = records(held), records(affine(held, 0.0, -1.0))
    for key, record in before.items():
        law = ENTRIES[key[0]].laws.reflection
        if law == "negates":
            assert same(-record.value, after[key].value), key
        elif law in ENTRIES:
            assert same(record.value, after[law, key[1]].value), key
        elif law == "invariant":
            assert same(record.value, after[key].value), key


@pytest.mark.slow
def test_permutation(any_held: EvalSet) -> None:
    order = child(1, "permutation").permutation(any_held.n)
    before, after = records(any_held), records(any_held.take(order))
    for key, record in before.items():
        assert same(record.value, after[key].value), key
        assert same(record.standard_error, after[key].standard_error), key
        assert same(record.lower, after[key].lower), key


@pytest.mark.slow
def test_frequency_weights_equal_repetition(any_held: EvalSet) -> None:
    counts = child(2, "weights").integers(0, 4, any_held.n)
    weighted = EvalSet.checked(any_held.y, any_held.predictions, weights=counts)
    repeated = any_held.take(np.repeat(np.arange(any_held.n), counts))
    before, after = records(weighted), records(repeated)
    for key, record in before.items():
        other = after[key]
        assert record.n == other.n, key
        assert same(record.value, other.value), (key, record.value, other.value)
        assert same(record.standard_error, other.standard_error), key
        assert same(record.lower, other.lower), key
        assert same(record.null, other.null), key


@pytest.mark.slow
def test_weights_of_billions_write_nothing_out(any_held: EvalSet) -> None:
    """Past 1/n, values are those of the same shares, and errors shrink with √n."""
    counts, factor = child(2, "weights").integers(1, 4, any_held.n), 1e4
    light, heavy = (
        records(EvalSet.checked(any_held.y, any_held.predictions, weights=counts * times))
        for times in (1e8, 1e8 * factor)
    )
    n = 1e8 * float(counts.sum())
    shrunk = math.sqrt((n - 1.0) / (n * factor - 1.0))
    for key, record in light.items():
        other = heavy[key]
        assert other.n == n * factor
        assert math.isnan(record.value) == math.isnan(other.value), key
        if ENTRIES[key[0]].units == "p-value":
            continue  # the same departure of so many rows is sure
        assert same(record.value, other.value), (key, record.value, other.value)
        if key[0] != "median_width":  # its error looks at neighbours, and copies have no distance
            expected = record.standard_error * shrunk
            assert math.isnan(expected) or math.isclose(
                expected, other.standard_error, rel_tol=1e-4, abs_tol=1e-12
            ), (key, expected, other.standard_error)


@pytest.mark.slow
def test_one_seed_one_answer(any_held: EvalSet) -> None:
    before, after = records(any_held), records(any_held)
    for key, record in before.items():
        assert same(record.value, after[key].value), key


def test_every_measure_is_reached_by_some_kind() -> None:
    reached: set[str] = {"set_size", "empty_sets", "sscv"}  # see metrics/test_label_sets
    reached |= {"coverage_drift", "bias_drift", "spread_drift"}  # see metrics/test_drift
    reached |= {"crps_skill_within"}  # see metrics/test_skill
    reached |= {"persistence_skill", "seasonal_skill", "baseline_skill"}  # metrics/test_baseline
    reached |= {  # see metrics/test_backtests
        f"{test}_{end}"
        for test in ("christoffersen", "christoffersen_coverage")
        for end in ("below", "above")
    }
    reached |= {"lead_time_drop", "lead_times_differ"}  # see metrics/test_lead_time
    reached |= {name for name, entry in ENTRIES.items() if entry.question is Question.CLASSES}
    reached |= {
        "relative_score",
        "rmsse",
    }  # see metrics/test_many_series; classes: report/test_classes
    for kind in KINDS:
        found = records(make(kind, 157, child(0, "laws", kind)))
        reached |= {key[0] for key, record in found.items() if not math.isnan(record.value)}
    assert reached == {name for name, entry in ENTRIES.items() if not entry.beside}


@pytest.mark.slow
def test_a_perfect_model_has_the_declared_value() -> None:
    """y and prediction are standard normal; means over replicates sit at the declared value."""
    rng = child(3, "perfect")
    n, replicates = 400, 60
    values: dict[str, list[float]] = {}
    nulls: dict[str, float] = {}
    for _ in range(replicates):
        zero, one = np.zeros(n), np.ones(n)
        held = EvalSet.checked(rng.normal(size=n), prediction("normal", zero, one, rng))
        for (name, _coverage), record in records(held).items():
            values.setdefault(name, []).append(record.value)
    for record in with_nulls(evaluate(held))[0]:  # of these predictions, whatever y was
        nulls[record.metric] = record.null
    for name, seen in values.items():
        declared = ENTRIES[name].standard_normal
        expected = nulls[name] if not math.isnan(nulls[name]) else declared
        if math.isnan(declared):
            continue
        mean, spread = float(np.mean(seen)), float(np.std(seen, ddof=1))
        bias = 1.5 / n if ENTRIES[name].forms[0].reduce == "statistic" else 0.0  # of order 1/n
        assert abs(mean - expected) <= 4.5 * spread / math.sqrt(replicates) + 6e-5 + bias, (
            name,
            mean,
            expected,
        )


@pytest.mark.slow
def test_standard_errors_are_right() -> None:
    """The spread over replicates agrees with the mean standard error, measure by measure."""
    rng = child(4, "errors")
    replicates = 150
    values: dict[tuple[str, float | None], list[float]] = {}
    errors: dict[tuple[str, float | None], list[float]] = {}
    for _ in range(replicates):
        for key, record in records(make("normal", 300, rng)).items():
            values.setdefault(key, []).append(record.value)
            errors.setdefault(key, []).append(record.standard_error)
    low, high = 0.8, 1.25  # the sd of 150 values is known to ±6 %; three of these, and skewness
    wide = {
        "median_width": (0.7, 1.6),  # its error needs the density of widths at the median
        "normalised_width": (0.0, high),  # the range of y is taken as known: too small, never large
        "binned_r2": (low, 1.5),  # near its bound of 1 it is quadratic in the noise
        "ence": (low, 1.75),  # absolute values fold at the noise floor: sd × √(1 − 2/π)
        # the largest |W| of a Brownian motion has an sd of .52, and W(1), where it often is, of 1
        "tail_miscalibration_left": (low, 1.95),
        "tail_miscalibration_right": (low, 1.95),
        # most of it is what is not known of learning the recalibration, alike in every table
        **dict.fromkeys(("miscalibration", "mean_miscalibration"), (low, 8.0)),
        **dict.fromkeys(("discrimination", "mean_discrimination"), (low, 1.75)),
    }
    for key, seen in values.items():
        claimed = float(np.mean(errors[key]))
        if math.isnan(claimed) or np.std(seen) == 0:
            continue
        bottom, top = wide.get(key[0], (low, high))
        ratio = claimed / float(np.std(seen, ddof=1))
        assert bottom <= ratio <= top, (key, ratio)
