"""What several tests of the engine share."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from studies.engine.chain import announce


@pytest.fixture(autouse=True)
def interrupts_are_heard() -> Iterator[None]:
    """Where the tests themselves were started in the background, Ctrl-C is ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def chain(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The study ``chain``, known to this process and to those that it starts."""
    from joblib.externals.loky import get_reusable_executor

    folder = tmp_path / "packages"
    announce(folder)
    tests = str(Path(__file__).parents[2])
    monkeypatch.syspath_prepend(str(folder))
    path = os.pathsep.join([str(folder), tests, os.environ.get("PYTHONPATH", "")])
    monkeypatch.setenv("PYTHONPATH", path.rstrip(os.pathsep))
    get_reusable_executor().shutdown(wait=True)
    yield "chain"
    get_reusable_executor().shutdown(wait=True)
