"""Numbers as text keep what they say, to the digits that they show."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from generated import examples
from howsure.core import formats
from howsure.core.records import Record

QUIET = examples(200)


def read(text: str) -> float:
    return float(text.replace(",", "").replace("−", "-"))


@QUIET
@given(st.floats(-1e300, 1e300), st.integers(2, 6))
def test_numbers_keep_their_significant_digits(value: float, digits: int) -> None:
    text = formats.number(value, digits).replace(",", "").replace("−", "-")
    assert float(text) == pytest.approx(value, rel=0.51 * 10.0 ** (1 - digits), abs=1e-320)


@QUIET
@given(st.floats(-1e6, 1e6), st.floats(1e-5, 1e3))
def test_estimates_are_exact_to_a_tenth_of_their_error(value: float, error: float) -> None:
    shown, told = formats.estimate(value, error)
    read = float(shown.replace(",", "").replace("−", "-"))
    assert abs(read - value) <= 0.0501 * error + 1e-9
    assert float(told.replace(",", "")) == pytest.approx(error, rel=0.051)


@QUIET
@given(st.floats(-1e5, 1e5), st.floats(1e-4, 1e4))
def test_ends_of_an_interval_are_told_apart(lower: float, width: float) -> None:
    left, right = formats.interval(lower, lower + width).split(" to ")
    read = [float(end.replace(",", "").replace("−", "-")) for end in (left, right)]
    assert read[0] < read[1]
    assert abs(read[0] - lower) <= 0.051 * width


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"),
        (-0.0, "0"),
        (-1.5, "−1.5"),
        (math.inf, "∞"),
        (-math.inf, "−∞"),
        (math.nan, "–"),
        (1e7, "1e+07"),
        (9999.6, "10,000"),
        (-2.5e-7, "−2.5e-07"),
    ],
)
def test_unusual_numbers(value: float, text: str) -> None:
    assert formats.number(value) == text


@QUIET
@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=20))
def test_a_column_shows_each_number_to_a_thousandth_of_the_largest(values: list[float]) -> None:
    largest = max(map(abs, values))
    for value, text in zip(values, formats.column(values), strict=True):
        read = float(text.replace(",", "").replace("−", "-"))
        assert abs(read - value) <= 0.00051 * max(largest, 1e-300)
        assert (read == 0) == (value == 0)


def test_the_numbers_of_a_column_stand_under_each_other() -> None:
    """What would be shown as 0 keeps digits of its own."""
    for values, texts in (
        ([0.5, 0.0756, 9.8726], ["0.500", "0.076", "9.873"]),
        ([20.0, 1.5, 0.25], ["20.00", "1.50", "0.25"]),
        ([9.8726, 0.0006, 0.0004], ["9.873", "0.001", "0.0004"]),
    ):
        assert formats.column(values) == texts


def test_cells_of_every_kind() -> None:
    cells = [
        None,
        True,
        np.bool_(False),
        3,
        np.int64(-4000),
        "text",
        np.datetime64("NaT"),
        math.nan,
    ]
    assert formats.column(cells) == ["–", "yes", "no", "3", "−4,000", "text", "–", "–"]


@QUIET
@given(st.floats(-1e6, 1e6), st.integers(0, 4))
def test_decimals_are_rounded_with_true_minus_signs(value: float, places: int) -> None:
    plain = formats.fixed(value, places)
    assert abs(read(plain) - value) <= 0.5001 * 10.0**-places
    assert "-" not in plain
    assert not plain.startswith("−0.") or float(f"{value:.{places}f}") != 0
    assert read(formats.fixed(value, places, trim=True)) == read(plain)
    assert formats.fixed(value, places, plus=True)[0] in "+−"


@QUIET
@given(st.floats(-2.0, 2.0))
def test_shares_in_sentences_and_in_columns_are_the_same_number(value: float) -> None:
    aligned, plain = formats.share(value), formats.percent(value)
    assert aligned.removesuffix(" %")[-2] == "."
    assert read(aligned.removesuffix(" %")) == read(plain.removesuffix(" %"))
    assert abs(read(plain.removesuffix(" %")) - 100 * value) <= 0.0501


def test_shares_that_are_not_known() -> None:
    nothing = Record(metric="empirical_coverage", value=0.9)
    shown = [formats.share(math.nan), formats.percent(math.nan), formats.between(nothing)]
    assert shown == ["–", "–", ""]


def test_an_interval_below_zero_has_no_dash_beside_its_minus_signs() -> None:
    change = Record(metric="relative_mae_change", value=-0.1, lower=-0.2, upper=0.0499)
    assert formats.between(change) == " (−20.0 to 5.0)"


def test_parts_are_listed_as_people_do() -> None:
    for count, text in ((1, "a"), (2, "a and b"), (3, "a, b and c"), (4, "a, b, c and d")):
        assert formats.listed("abcd"[:count]) == text
    assert formats.listed("abcd", 2, last="or") == "a, b or 2 more"


def test_names_with_commas_stay_apart() -> None:
    assert formats.joined(["a", "b"]) == "a, b"
    assert formats.joined(["a, old", "b"]) == "a, old; b"
    assert formats.listed(["a, old", "b", "c"]) == "a, old; b and c"
