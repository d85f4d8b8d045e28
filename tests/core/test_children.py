"""Processes of our own: what they say, and how they end."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from operator import truediv
from typing import Any

import pytest

from howsure.core.errors import HowsureError
from howsure.core.sizes import as_bytes
from howsure.core.workers import Child


@pytest.fixture
def child() -> Iterator[Child]:
    made = Child(one_thread=True)
    yield made
    made.kill()
    made.hung_up()


def words(child: Child) -> list[tuple[str, Any]]:
    """What it says of one call."""
    found = [child.word()]
    while found[-1][0] not in ("done", "error"):
        found.append(child.word())
    return found


def test_a_child_does_what_it_is_sent_one_after_another(child: Child) -> None:
    child.send(truediv, 6, 3)
    child.send(os.getpid)
    assert words(child) == [("begun", None), ("done", 2.0)]
    assert words(child)[-1] == ("done", child.process.pid)


def test_errors_are_said_and_the_child_lives(child: Child) -> None:
    child.send(truediv, 1, 0)
    child.send(as_bytes, "no")
    child.send(os.getenv, "OMP_NUM_THREADS")
    (_, error), (_, own) = words(child)[-1], words(child)[-1]
    assert (type(error), str(error)) == (HowsureError, "ZeroDivisionError: division by zero")
    assert type(own).__name__ == "InputError"
    assert words(child)[-1] == ("done", "1")


@pytest.mark.parametrize(
    ("function", "given", "how"),
    [
        (os._exit, (7,), "exited with status 7"),
        (os.abort, (), "was terminated by SIGABRT"),
        (time.sleep, (1000,), "was terminated by SIGKILL, perhaps because memory ran out"),
    ],
)
def test_how_it_died_is_told(child: Child, function: Any, given: tuple[Any], how: str) -> None:
    child.send(function, *given)
    assert child.word() == ("begun", None)
    if function is time.sleep:
        os.kill(child.process.pid, signal.SIGKILL)
    with pytest.raises(EOFError):
        child.word()
    assert child.death() == how
    child.send(os.getpid)  # nobody hears it
    with pytest.raises(EOFError):
        child.word()
