"""A crew of processes: calls by key, errors as values, deaths and limits told."""

from __future__ import annotations

import operator
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from extras import needs
from howsure.core.errors import InputError
from howsure.core.workers import Crew, LostWorker, Processes, RaisedError, connected


@pytest.fixture
def crew() -> Iterator[Processes]:
    made = Processes(2)
    yield made
    made.close()


def heard(crew: Crew, count: int, seconds: float = 30.0) -> dict[Any, Any]:
    """What came of so many calls, by key."""
    ended: dict[Any, Any] = {}
    until = time.monotonic() + seconds
    while len(ended) < count:
        assert time.monotonic() < until
        if (one := crew.next(0.1)) is not None:
            ended[one[0]] = one[1]
    return ended


def test_results_come_by_key_and_errors_as_values(crew: Processes) -> None:
    for number in range(5):
        crew.submit(number, operator.truediv, 12, number)
    ended = heard(crew, 5)
    assert {key: ended[key] for key in range(1, 5)} == {1: 12.0, 2: 6.0, 3: 4.0, 4: 3.0}
    assert isinstance(ended[0], RaisedError)
    assert "ZeroDivisionError" in str(ended[0].error)
    assert crew.room == 2
    assert crew.next(0.01) is None


def test_a_process_takes_the_next_call_unasked(crew: Processes, tmp_path: Path) -> None:
    """While whoever gave the calls is busy with something else."""
    files = [tmp_path / str(number) for number in range(4)]
    for file in files:
        crew.submit(file, Path.touch, file)
    until = time.monotonic() + 120.0
    while not all(map(Path.exists, files)):
        assert time.monotonic() < until
        time.sleep(0.01)
    assert set(heard(crew, 4)) == set(files)


def test_a_death_is_told_in_words(crew: Processes) -> None:
    crew.submit("kills", os.kill, 0, signal.SIGKILL)  # all of its own group
    crew.submit("stays", operator.add, 1, 2)
    ended = heard(crew, 2)
    lost = ended["kills"]
    assert isinstance(lost, LostWorker)
    assert (lost.beside, lost.overdue, "SIGKILL" in lost.words) == (True, False, True)
    assert ended["stays"] == 3


def test_a_call_that_takes_too_long_is_ended() -> None:
    crew = Processes(limit=0.2)
    try:
        crew.submit("slow", time.sleep, 1000)
        crew.submit("quick", operator.add, 1, 2)
        ended = heard(crew, 2)
        assert ended == {"slow": LostWorker(overdue=True), "quick": 3}
    finally:
        crew.close()


@pytest.mark.parametrize("scheduler", ["nowhere", "tcp://host", "127.0.0.1", ""])
def test_an_address_without_a_port_is_refused_at_once(scheduler: str) -> None:
    needs("distributed")
    with pytest.raises(InputError, match=r"scheduler must be the address .*: it has no port$"):
        connected(scheduler)
