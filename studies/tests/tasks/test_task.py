"""A task is its parts: those that are there, and those that are read when used."""

from __future__ import annotations

import pickle
from dataclasses import replace

import numpy as np
import pytest

from howsure.core.errors import InputError
from howsure_studies.tasks import Part, Space, Task

PARTS = {
    name: Part(x=np.eye(3) + at, y=[at, 1.5, 2.0], ids=list("abc"), columns=("u", "v", "w"))
    for at, name in enumerate(("train", "val", "near", "far"))
}


def test_parts_that_are_there_make_a_task_that_can_be_sent() -> None:
    task = Task.of(PARTS, name="three")
    assert task.tests == ("near", "far")
    assert (task.test, task.columns) == (PARTS["near"], ("u", "v", "w"))
    sent = pickle.loads(pickle.dumps(task))
    np.testing.assert_array_equal(sent.part("far").x, PARTS["far"].x)
    np.testing.assert_array_equal(task.space.embed(task.val.x), task.val.x)
    assert replace(task, space=Space(np.negative)).space.embed(task.val.x)[0, 0] == -2.0
    assert PARTS["far"].take([2]).columns == task.columns


@pytest.mark.parametrize("gone", [("val",), ("train",), ("near", "far")])
def test_a_task_lacks_no_part(gone: tuple[str, ...]) -> None:
    with pytest.raises(InputError, match="parts must contain train, val and a test, got"):
        Task.of({name: part for name, part in PARTS.items() if name not in gone}, name="")


def test_counts_are_whole_whenever_they_are_read() -> None:
    with pytest.raises(InputError, match="y of train must contain counts"):
        Task.of(PARTS, name="", counts=True)
    whole = replace(PARTS["train"], y=[0, 1, 2])
    late = Task(
        name="", tests=("near",), counts=True, read=lambda n: {n: whole if n == "val" else PARTS[n]}
    )
    assert late.val is whole
    for _ in range(2):
        with pytest.raises(InputError, match="y of near must contain counts"):
            _ = late.test
