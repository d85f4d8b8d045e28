"""Worlds of other packages."""

from __future__ import annotations

from typing import Any

import pytest

from core.test_registry import package  # noqa: F401
from howsure.core.errors import InputError
from howsure_studies.tasks.worlds import world_named


def test_worlds_come_from_other_packages(package: Any) -> None:  # noqa: F811
    text = (
        "from howsure_studies.tasks.worlds import world_named\n"
        "made = world_named('linear', 'laplace')\n"
        "def maker():\n    return made\n"
        "def other():\n    return 3\n"
    )
    points = "[howsure.worlds]\nready = brings:made\nmade = brings:maker\nwrong = brings:other\n"
    package("bringer", {"brings": text}, points)
    assert world_named("ready") is world_named("made")
    with pytest.raises(InputError, match="'wrong' must be a World, got int"):
        world_named("wrong")
    with pytest.raises(InputError, match="near: ready"):
        world_named("redy")
    with pytest.raises(InputError, match="world must be one of"):
        world_named(["linear"])  # type: ignore[arg-type]
