"""Docstrings as a task: what is read of a library, against a small one written here."""

from __future__ import annotations

import platform
from pathlib import Path

import numpy as np
import pytest

from howsure.core.errors import InputError
from howsure_studies.tasks import DataNotFoundError
from howsure_studies.tasks.texts import described, read_docstrings

LIBRARY = {
    "a.py": '''
def first(x):
    """Return twice the
    number given.

    No more of it.
    """
    y = x + x
    return y


class Thing:
    async def second(self):
        """Wait for something else."""

        def third():
            """Do the innermost thing."""
            pass

        return third


def empty():
    """Has a docstring and no body at all."""


def short():
    """Too short."""
    return 1


def same():
    """Return twice the number given."""
    return 0
''',
    "b/c.py": 'def d():\n    """Add a text from a folder."""\n    return "é"\n',
    "test/e.py": 'def f():\n    """Stand in a folder of tests."""\n    return 1\n',
    "broken.py": "def (:\n",
}


def test_what_is_read_of_a_library(tmp_path: Path) -> None:
    for name, source in LIBRARY.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(source, "utf-8")
    inner = len("def third():") + len('"""Do the innermost thing."""') + len("pass")
    assert set(described(str(tmp_path))) == {
        ("Return twice the number given.", len("y = x + x") + len("return y"), "a.py:first:2"),
        ("Wait for something else.", inner + len("return third"), "a.py:second:13"),
        ("Do the innermost thing.", len("pass"), "a.py:third:16"),
        ("Add a text from a folder.", len('return "é"'), "b/c.py:d:1"),
    }


@pytest.mark.slow
def test_parts_of_the_library_that_runs() -> None:
    parts = read_docstrings(3, train=50, val=20, test=30)
    texts = [set(part.x.tolist()) for part in parts.values()]
    assert [len(each) for each in texts] == [50, 20, 30]
    assert len(set.union(*texts)) == 100
    assert all(15 <= len(text) <= 400 for text in set.union(*texts))
    sizes = np.exp(parts["test"].y)
    np.testing.assert_allclose(sizes, np.rint(sizes))
    again, other = (read_docstrings(seed, train=50, val=20, test=30) for seed in (3, 4))
    np.testing.assert_array_equal(parts["test"].x, again["test"].x)
    assert set(other["test"].x) != texts[2]


@pytest.mark.slow
def test_another_python_has_no_data_here() -> None:
    running = platform.python_version()
    for version in (running, running.rpartition(".")[0], "3"):
        assert len(read_docstrings(python=version, train=2, val=2, test=2)["test"]) == 2
    for version in ("2.7", "3.1", f"{running}1"):
        with pytest.raises(DataNotFoundError, match=f"{version}, but Python {running} runs"):
            read_docstrings(python=version)
    with pytest.raises(InputError, match="rows must be"):
        read_docstrings(train=10**6)
    with pytest.raises(InputError, match="val must be"):
        read_docstrings(val=1)
