"""How far long work has come is told to whoever listens, and to nobody else."""

from __future__ import annotations

import threading

import pytest

from howsure.core.progress import part_of, report_progress, reported, subscribe

Steps = list[tuple[str, int, int]]


def test_nobody_need_listen() -> None:
    report_progress("alone", 1, 2)
    assert list(reported("ab", "alone")) == ["a", "b"]
    with part_of("whole", 1, 2), subscribe(None):
        report_progress("alone")


def test_a_block_within_another_has_its_own_listener_and_none_keeps_the_outer() -> None:
    outer: Steps = []
    inner: Steps = []
    with subscribe(lambda *step: outer.append(step)):
        report_progress("one")
        with subscribe(None):
            report_progress("two", 1, 2)
        with subscribe(lambda *step: inner.append(step)):
            report_progress("three", 2, 3)
        report_progress("four")
    report_progress("five")
    assert outer == [("one", 0, 0), ("two", 1, 2), ("four", 0, 0)]
    assert inner == [("three", 2, 3)]


def test_items_are_told_before_the_first_and_after_each() -> None:
    steps: Steps = []
    with subscribe(lambda *step: steps.append(step)):
        for item in reported("ab", "items"):
            report_progress(item)
        assert list(reported([], "none")) == []
    told = [("items", 0, 2), ("a", 0, 0), ("items", 1, 2), ("b", 0, 0), ("items", 2, 2)]
    assert steps == [*told, ("none", 0, 0)]


def test_a_part_tells_the_steps_of_the_whole_where_they_are_known() -> None:
    steps: Steps = []
    with subscribe(lambda *step: steps.append(step)):
        with part_of("known", 2, 7):
            report_progress("inner", 50, 100)
        with part_of("unknown"):
            report_progress("inner", 50, 100)
        report_progress("after", 1, 1)
    assert steps == [
        ("known", 2, 7),
        ("known: inner", 2, 7),
        ("unknown", 0, 0),
        ("unknown: inner", 50, 100),
        ("after", 1, 1),
    ]


def test_what_a_listener_raises_ends_the_work_and_the_listening() -> None:
    def stop(stage: str, done: int, total: int) -> None:
        raise RuntimeError(f"enough of {stage}")

    with pytest.raises(RuntimeError, match="enough of work"), subscribe(stop), part_of("work"):
        raise AssertionError("not reached")
    report_progress("nobody hears this")


def test_threads_are_not_heard() -> None:
    steps: Steps = []
    with subscribe(lambda *step: steps.append(step)):
        thread = threading.Thread(target=report_progress, args=("elsewhere",))
        thread.start()
        thread.join()
    assert steps == []
