"""The verdict's words and numbers, each from records that are known."""

from __future__ import annotations

import math

import pytest
from scipy import stats

from howsure.core.records import Record
from howsure.report.content import VerdictLine
from howsure.report.verdict import verdict


def said(question: str, *records: Record) -> VerdictLine:
    """The line that answers a question."""
    return next(line for line in verdict(records, model="") if line.question.startswith(question))


def covering(value: float, coverage: float, n: int, reach: float) -> Record:
    return Record(
        metric="empirical_coverage",
        value=value,
        coverage=coverage,
        n=float(n),
        lower=value - reach,
        upper=value + reach,
    )


@pytest.mark.parametrize("coverage", [0.5, 0.75, 0.8, 0.9, 0.95, 0.99])
def test_the_rows_that_tell_coverage_to_two_points(coverage: float) -> None:
    line = said("What to do next?", covering(coverage, coverage, 40, 0.09))
    z = stats.norm.ppf(0.975)
    need = next(n for n in range(1, 10_000) if z * stats.bernoulli(coverage).std() / n**0.5 <= 0.02)
    assert line.text == (
        f"Best next step: collect more rows: about {need:,} tell coverage to ±2 points, "
        "40 are here."
    )


def test_rows_are_asked_for_only_where_the_interval_is_wide() -> None:
    assert "collect" in said("What to do next?", covering(0.9, 0.9, 1_000, 0.051)).text
    assert "collect" not in said("What to do next?", covering(0.9, 0.9, 1_000, 0.049)).text


@pytest.mark.parametrize(
    ("tau", "lower", "strength"),
    [
        (0.5, 0.4, "much"),
        (0.3, 0.01, "much"),
        (0.299, 0.2, "some"),
        (0.1, 0.05, "some"),
        (0.099, 0.05, "little"),
        (0.01, 0.001, "little"),
        (0.5, 0.0, "no"),
        (0.5, -0.1, "no"),
        (0.5, math.nan, "no"),
        (-0.4, -0.5, "no"),
    ],
)
def test_how_much_the_width_tells(tau: float, lower: float, strength: str) -> None:
    cover = covering(0.9, 0.9, 1_000, 0.02)
    width = Record(metric="kendall_tau", value=tau, lower=lower, upper=tau + 0.1)
    line = said("Does the width mean anything?", cover, width)
    want = f"Width carries {strength} information on the error (Kendall τ = {tau:.2f})."
    assert line.text == want
    assert line.tone == ("bad" if strength == "no" else "good")
    advice = said("What to do next?", cover, width).text
    assert ("width depends on the input" in advice) == (strength == "no")
