"""What several tests of the engine share."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.chain import announce


@pytest.fixture
def chain(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The study ``chain``, known to this process and to those that it starts."""
    from joblib.externals.loky import get_reusable_executor

    folder = tmp_path / "packages"
    announce(folder)
    tests = str(Path(__file__).parents[1])
    monkeypatch.syspath_prepend(str(folder))
    path = os.pathsep.join([str(folder), tests, os.environ.get("PYTHONPATH", "")])
    monkeypatch.setenv("PYTHONPATH", path.rstrip(os.pathsep))
    get_reusable_executor().shutdown(wait=True)
    yield "chain"
    get_reusable_executor().shutdown(wait=True)
