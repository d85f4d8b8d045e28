"""What names say: readings, and names that may be read in two ways."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from generated import examples
from howsure.inputs.names import bound, normal_form, quantile_levels
from howsure.inputs.roles import ROLES

SETTINGS = examples(200)


def test_no_name_has_two_roles() -> None:
    words = [word for role in ROLES for word in role.recognised]
    assert len(set(words)) == len(words) > 50
    for word in words:
        assert normal_form(word) == word
        assert bound(word) is None
        assert quantile_levels([word]) == {}
        assert sum(role.matches(word) for role in ROLES) == 1


@pytest.mark.parametrize(
    ("name", "side", "coverage"),
    [
        ("lower", "lower", None),
        ("Upper", "upper", None),
        ("lb", "lower", None),
        ("ub", "upper", None),
        ("lo", "lower", None),
        ("hi", "upper", None),
        ("lwr", "lower", None),
        ("upr", "upper", None),
        ("lower_90", "lower", 0.9),
        ("lower_0.9", "lower", 0.9),
        ("lower_0_9", "lower", 0.9),
        ("lower90", "lower", 0.9),
        ("lo90", "lower", 0.9),
        ("hi-80", "upper", 0.8),
        ("lower 95%", "lower", 0.95),
        ("lower_97.5", "lower", 0.975),
        ("upper_99.99", "upper", 0.9999),
        ("pi_lower_95", "lower", 0.95),
        ("pi_95_upper", "upper", 0.95),
        ("ci95_lower", "lower", 0.95),
        ("obs_ci_lower", "lower", None),
        ("yhat_lower", "lower", None),
        ("y_pred_upper_50", "upper", 0.5),
        ("lower_bound", "lower", None),
        ("upper_limit_90", "upper", 0.9),
    ],
)
def test_ends_of_intervals(name: str, side: str, coverage: float | None) -> None:
    end = bound(name)
    assert end is not None
    assert (end.side, end.coverage, end.unclear) == (side, coverage, False)


@pytest.mark.parametrize("name", ["lower_5", "lower_05", "upper_095", "hi_975", "lo_100", "lb_0"])
def test_ends_whose_number_is_unclear(name: str) -> None:
    end = bound(name)
    assert end is not None
    assert end.unclear
    assert end.coverage is None


@pytest.mark.parametrize(
    "name",
    ["lowland", "hit", "low", "high", "club", "hub", "slower", "mean_ci_lower", "90_lower_80"],
)
def test_names_that_are_no_ends(name: str) -> None:
    assert bound(name) is None


@pytest.mark.parametrize(
    ("names", "levels"),
    [
        (["0.05", ".5", "0.95"], [0.05, 0.5, 0.95]),
        (["5%", "2.5%", "50 %"], [0.05, 0.025, None]),
        (["q0.05", "q_0.5", "q-0.95"], [0.05, 0.5, 0.95]),
        (["Q05", "Q50", "Q95"], [0.05, 0.5, 0.95]),
        (["q5", "q50", "q95"], [0.05, 0.5, 0.95]),
        (["q1", "q99"], [0.01, 0.99]),
        (["p5", "p95"], [0.05, 0.95]),
        (["P05", "P95"], [0.05, 0.95]),
        (["q025", "q500", "q975"], [0.025, 0.5, 0.975]),
        (["q025", "q50", "q975"], [0.025, 0.5, 0.975]),
        (["q005", "q995"], [0.005, 0.995]),
        (["q2.5", "q50", "q97.5"], [0.025, 0.5, 0.975]),
        (["q0.5", "q50", "q99.5"], [0.005, 0.5, 0.995]),
        (["p0.1", "p0.9"], [0.1, 0.9]),
        (["quantile_0.05", "quantile_95"], [0.05, 0.95]),
        (["q_0_05", "q_0_95"], [0.05, 0.95]),
        (["pred_q05", "pred_q95"], [0.05, 0.95]),
        (["percentile_10", "pct90"], [0.1, 0.9]),
        (["q0.00001"], [0.00001]),
    ],
)
def test_levels_of_quantiles(names: list[str], levels: list[float | None]) -> None:
    found = quantile_levels(names)
    wanted = {name: level for name, level in zip(names, levels, strict=True) if level is not None}
    assert found == wanted


@pytest.mark.parametrize(
    "names",
    [
        ["q1", "q2", "q3"],
        ["q1", "q3"],
        ["q5"],
        ["q005", "q050", "q095"],
        ["q100"],
        ["p0.05", "p50"],
        [f"q{k}" for k in range(1, 10)],
    ],
)
def test_levels_that_are_unclear(names: list[str]) -> None:
    found = quantile_levels(names)
    assert None in found.values()


@pytest.mark.parametrize(
    "name",
    ["q", "quarter", "p", "q0", "q00", "q_x", "2020", "5", "1.5", "p2020", "q12345", "0", "150%"],
)
def test_names_that_are_no_quantiles(name: str) -> None:
    assert quantile_levels([name]) == {}


@SETTINGS
@given(st.integers(1, 999))
def test_two_and_three_digits_are_the_decimals(thousandths: int) -> None:
    level = thousandths / 1000
    names = [f"q{thousandths:03d}", "q975"]
    assert quantile_levels(names)[names[0]] == (None if thousandths == 100 else level)
    if thousandths % 10 == 0:
        short = f"q{thousandths // 10:02d}"
        assert quantile_levels([short]) == {short: level}
    assert quantile_levels([f"q{level}"]) == {f"q{level}": level}
    assert quantile_levels([f"{level}"]) == {f"{level}": level}


@SETTINGS
@given(st.lists(st.text(max_size=12), unique=True))
def test_any_text_has_a_reading_or_none(names: list[str]) -> None:
    for level in quantile_levels(names).values():
        assert level is None or 0 < level < 1
    for name in names:
        end = bound(name)
        assert end is None or end.coverage is None or 0 < end.coverage < 1
