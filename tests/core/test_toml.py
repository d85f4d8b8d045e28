"""TOML files of any content are read, or refused in words."""

from __future__ import annotations

from pathlib import Path

import pytest

from howsure.core.errors import InputError
from howsure.core.files import parse_toml, read_toml


@pytest.mark.parametrize(
    ("content", "rule"),
    [
        (b"a = " + b"[" * 3000 + b"]" * 3000, "must be TOML without deep nesting"),
        (b"a" + b".a" * 3000 + b" = 1", "must be TOML without deep nesting"),
        (b"a = " + b"9" * 5000, "must be valid TOML: Exceeds the limit"),
        (b"a = \xff", "must be UTF-8 text"),
        (b"a = \x00", "must be valid TOML: "),
        (b"a", "must be valid TOML: "),
    ],
)
def test_what_is_no_table_is_refused(tmp_path: Path, content: bytes, rule: str) -> None:
    path = tmp_path / "x.toml"
    path.write_bytes(content)
    with pytest.raises(InputError, match=f"^plan 'x' {rule}"):
        read_toml(path, "plan 'x'")


def test_a_mark_of_the_order_of_bytes_is_no_content(tmp_path: Path) -> None:
    path = tmp_path / "x.toml"
    path.write_bytes(b"\xef\xbb\xbfa = 1\n")
    assert read_toml(path, "limits") == {"a": 1}


@pytest.mark.parametrize(
    ("name", "rule"),
    [(".", "cannot be read: Is a dir"), ("no", "cannot be read: No such"), ("a" * 5000, "cannot")],
)
def test_what_cannot_be_opened_is_refused(tmp_path: Path, name: str, rule: str) -> None:
    with pytest.raises(InputError, match=f"^limits x {rule}"):
        read_toml(tmp_path / name, "limits x")
    with pytest.raises(InputError, match=r"^limits x cannot be read: embedded null"):
        read_toml(Path("a\0b"), "limits x")


def test_whole_numbers_have_64_bits() -> None:
    assert parse_toml(f"a = [{2**63 - 1}]", "x")["a"] == [2**63 - 1]
    with pytest.raises(InputError, match="at most 64 bits, got one of 400 digits"):
        parse_toml("a = [" + "9" * 400 + "]", "x")


def test_a_device_without_end_is_read_to_a_bound() -> None:
    with pytest.raises(InputError, match="limits x must have at most 16,000,000 bytes, got more"):
        read_toml(Path("/dev/zero"), "limits x")
