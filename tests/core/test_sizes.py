"""Sizes of memory as people write them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from howsure.core.errors import InputError
from howsure.core.sizes import as_bytes


@pytest.mark.parametrize(
    ("size", "wanted"),
    [
        ("500MB", 500_000_000),
        ("2 GB", 2_000_000_000),
        (" 2gb ", 2_000_000_000),
        ("1.5GiB", 3 << 29),
        ("0.1GB", 100_000_000),
        ("4k", 4000),
        ("4Ki", 4096),
        ("1TiB", 1 << 40),
        ("100", 100),
        ("100 B", 100),
        (100, 100),
    ],
)
def test_a_size_is_read(size: str | int, wanted: int) -> None:
    assert as_bytes(size) == wanted


@pytest.mark.parametrize(
    "size",
    [
        *("", "GB", "two GB", "2 gigs", "-2GB", "2PB", "1e9", "nan", "inf", "1,5GB", "2GBGB"),
        *("0", "0GB", "0.5", "5iB", "٢GB", 0, -1, True, 2.5e300, None, b"2GB"),
    ],
)
def test_what_is_no_size_is_refused(size: Any) -> None:
    with pytest.raises(InputError, match=r"^memory must be a size such as 500MB, .*, got"):
        as_bytes(size)


@given(st.integers(1, 10**12), st.sampled_from(["", "k", "M", "g", "T"]))
def test_units_are_a_thousand_or_1024_apart(number: int, letter: str) -> None:
    power = ["", "k", "M", "g", "T"].index(letter)
    assert as_bytes(f"{number}{letter}B") == number * 1000**power
    if letter:
        assert as_bytes(f"{number} {letter}iB") == number * 1024**power
