"""TOML that came from outside: whatever is wrong with it is an `InputError`."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any, Final

from howsure.core.errors import InputError

_MOST: Final = 16_000_000
"""Bytes of a file; a device has no end."""


def read_toml(path: Path, title: str) -> dict[str, Any]:
    """The tables of a file; `title` is what a message calls it."""
    try:
        with path.open("rb") as file:
            content = file.read(_MOST + 1)
        if len(content) > _MOST:
            raise InputError(f"{title} must have at most {_MOST:,} bytes, got more")
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"{title} must be UTF-8 text: {error}") from error
    except OSError as error:
        raise InputError(f"{title} cannot be read: {error.strerror}") from error
    except InputError:
        raise
    except ValueError as error:  # a path with a NUL
        raise InputError(f"{title} cannot be read: {error}") from error
    return parse_toml(text, title)


def parse_toml(text: str, title: str) -> dict[str, Any]:
    """The tables of a text."""
    try:
        tables = tomllib.loads(text)
        _check_whole(tables)
        return tables
    except RecursionError as error:
        raise InputError(f"{title} must be TOML of few levels, got tables in tables") from error
    except ValueError as error:  # a decode error, or a number of too many digits
        raise InputError(f"{title} must be TOML: {error}") from error


def _check_whole(value: Any) -> None:
    """Refuse whole numbers past the 64 bits that TOML has."""
    if isinstance(value, dict | list):
        for each in value.values() if isinstance(value, dict) else value:
            _check_whole(each)
    elif isinstance(value, int) and not -(2**63) <= value < 2**63:
        digits = len(f"{abs(value)}")
        raise ValueError(f"whole numbers have at most 64 bits, got one of {digits} digits")
