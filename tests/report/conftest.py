"""What tests of the report have in common."""

from __future__ import annotations

import pytest

from howsure.verdict import nulls


@pytest.fixture
def few_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same code on fewer draws of perfect models: for tests that assess hundreds of tables."""
    few = {"_DRAWS": 5, "_OF_PART": 5, "_FEW": 4, "_FEWEST": 3, "_MOST": 10, "_MANY_TABLES": 19}
    for name, draws in few.items():
        monkeypatch.setattr(nulls, name, draws)
