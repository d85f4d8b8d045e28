"""Optional libraries: a missing one is named with the extra that installs it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from howsure.core.errors import HowsureError, MissingDependencyError
from howsure.core.optional import require


def test_a_missing_library_names_its_extra() -> None:
    with pytest.raises(MissingDependencyError, match=r'pip install "howsure\[plots\]"') as caught:
        require("no_such_library.part", extra="plots")
    assert isinstance(caught.value, HowsureError)
    assert isinstance(caught.value, ImportError)


def test_a_broken_library_is_not_called_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "broken_library.py").write_text("import no_such_dependency\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(ModuleNotFoundError, match="no_such_dependency") as caught:
        require("broken_library", extra="plots")
    assert not isinstance(caught.value, HowsureError)
    sys.modules.pop("broken_library", None)
