"""What goes out of a result: values by name, frames, flat numbers, a few lines."""

from __future__ import annotations

import math
import re
import sys
from typing import Any

import numpy as np
import pytest

import howsure
from extras import needs
from howsure.core.errors import InputError, MissingDependencyError
from howsure.report.assessment import Assessment

Y = np.random.default_rng(0).normal(size=300)


def law(sd: float) -> howsure.Distribution:
    return howsure.Distribution.normal(np.zeros(300), np.full(300, sd))


@pytest.fixture(scope="module")
def one() -> Assessment:
    return howsure.assess(Y, law(0.5))


@pytest.fixture(scope="module")
def two() -> Assessment:
    return howsure.assess(
        Y,
        {"a b (1)": law(0.5), "ä": law(1.0), "ö": law(2.0)},
        options=howsure.Options(trials=False),
    )


def test_values_are_found_by_what_the_field_calls_them(one: Assessment) -> None:
    assert one.value("PICP") == one.value("empirical_coverage")
    assert one.record("Winkler score").metric == "interval_score"
    assert one.value("picp", coverage=0.9) == one.value("coverage")
    with pytest.raises(InputError, match="did you mean empirical_coverage"):
        one.value("pipc")
    with pytest.raises(InputError, match=r"was not assessed: 'CCE' \(mean_cce\)"):
        one.value("CCE")
    with pytest.raises(InputError, match=r"'picp' .empirical_coverage. at coverage 0.5"):
        one.value("picp", coverage=0.5)
    with pytest.raises(InputError, match="of model 'none'"):
        one.value("picp", model="none")


def test_of_several_models_one_is_named(two: Assessment) -> None:
    """Without a name, the first model's number would pass for that of all."""
    with pytest.raises(InputError, match=r"one of 'a b .1.', 'ä', 'ö' for 'CRPS'"):
        two.value("CRPS")
    assert two.value("CRPS", model="ä") < two.value("CRPS", model="ö")


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_records_go_to_a_frame(one: Assessment, library: str) -> None:
    module = needs(library)
    kind: Any = module.Table if library == "pyarrow" else module.DataFrame
    frame = one.to_frame(library)  # type: ignore[arg-type]
    assert isinstance(frame, kind)
    column = frame["metric"]
    names = column.to_pylist() if library == "pyarrow" else list(column)
    assert names == [record.metric for record in one.records]
    column = frame["value"]
    values = column.to_pylist() if library == "pyarrow" else list(column)
    np.testing.assert_array_equal(values, [record.value for record in one.records])
    if library == "pandas":
        assert isinstance(one.to_frame(), kind)


def test_a_frame_of_a_library_that_is_not_there(
    one: Assessment, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(MissingDependencyError, match=r"run pip install polars, or use .*pyarrow"):
        one.to_frame("polars")
    with pytest.raises(InputError, match="library must be one of pandas, polars, pyarrow"):
        one.to_frame("dask")  # type: ignore[arg-type]


def test_numbers_are_flat_finite_and_safely_named(one: Assessment, two: Assessment) -> None:
    for result in (one, two):
        numbers = result.numbers()
        for name, value in numbers.items():
            assert re.fullmatch(r"[A-Za-z0-9_./-]+", name)
            assert type(value) is float
            assert math.isfinite(value)
    numbers = one.numbers()
    assert numbers["empirical_coverage_0.9"] == one.value("picp")
    assert numbers["crps"] == one.value("crps")
    assert "weighted_interval_score" not in numbers  # not known of a law
    states = [finding.state for finding in one.findings]
    assert numbers["findings_bad"] == states.count("bad") > 0
    models = {name.partition("/")[0] for name in two.numbers() if "/" in name}
    assert models == {"a_b_1_", "_", "__2"}
    assert two.numbers()["__2/crps"] == two.value("crps", model="ö")


def test_the_repr_is_a_few_lines_and_the_text_the_verdict(one: Assessment) -> None:
    lines = repr(one).splitlines()
    assert 3 <= len(lines) <= 5
    assert lines[0] == "Assessment: Can the uncertainty of 300 predictions be trusted?"
    assert lines[1].startswith("  ✗ ")
    assert "print(result), result.value(name), result.to_frame()" in lines[-1]
    assert max(map(len, lines)) <= 110
    assert str(one) == one.verdict


def test_the_title_names_the_data() -> None:
    y, ends = [1.0, 2.0, 3.0], howsure.Intervals([0.0] * 3, [4.0] * 3, 0.9)

    def title(given: object, **options: str) -> str:
        return howsure.assess(y, given, **options, options=howsure.Options(trials=False)).title

    assert title(ends) == "Can the uncertainty of 3 predictions be trusted?"
    assert title(ends, model="trees") == "Can the uncertainty of trees be trusted?"
    assert title(dict.fromkeys("abc", ends)) == "Can the uncertainty of a, b and c be trusted?"
    assert title(dict.fromkeys("abcd", ends)) == "Can the uncertainty of 4 models be trusted?"
    assert title(y) == "Can the point forecast of 3 predictions be trusted?"
