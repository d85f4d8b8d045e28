"""Without an optional library, a command of the studies names the extra that brings it."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.test_optional import bare, names_the_extra  # noqa: F401


@pytest.mark.parametrize(
    ("command", "extra"),
    [
        ("simulate linear --method deep_ensemble --trials 2", "howsure[deep]"),
        ("bench run smoke --store memory://results", "howsure[cluster]"),
        ("bench run smoke --store results --scheduler tcp://localhost:1", "howsure[cluster]"),
    ],
)
def test_a_command_without_its_library_says_which_extra_to_install(
    bare: Path,  # noqa: F811
    command: str,
    extra: str,
) -> None:
    assert names_the_extra(command, extra)
