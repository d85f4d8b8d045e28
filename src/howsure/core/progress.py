"""How far long work has come: reported where the work is done, to whoever subscribes.

The listener is a context variable, so it goes through no function's arguments. Threads and
processes that the work starts have contexts of their own, in which there is none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

T = TypeVar("T")
Listener = Callable[[str, int, int], object]
"""Called with a stage in words, the steps done, and the steps in all (0 where not known)."""

_LISTENER: ContextVar[Listener | None] = ContextVar("howsure_listener", default=None)


def listener() -> Listener | None:
    """The listener of this context, if there is one."""
    return _LISTENER.get()


@contextmanager
def subscribe(listener: Listener | None) -> Iterator[None]:
    """Report how far all work in a block is to a listener."""
    token = _LISTENER.set(_LISTENER.get() if listener is None else listener)
    try:
        yield
    finally:
        _LISTENER.reset(token)


@contextmanager
def part_of(task: str, done: int = 0, total: int = 0) -> Iterator[None]:
    """Report a whole, and name it before the stages of a block, which is its next step."""
    outer = _LISTENER.get()
    if outer is None:
        yield
        return

    def inner(stage: str, *steps: int) -> None:
        outer(f"{task}: {stage}", *((done, total) if total else steps))

    outer(task, done, total)
    with subscribe(inner):
        yield


def report_progress(stage: str, done: int = 0, total: int = 0) -> None:
    """Report a stage, the steps done, and the steps in all to the listener."""
    listener = _LISTENER.get()
    if listener is not None:
        listener(stage, done, total)


def reported(items: Sequence[T], stage: str) -> Iterator[T]:
    """Pass items on, and report the stage before the first and after each."""
    report_progress(stage, 0, len(items))
    for done, item in enumerate(items, start=1):
        yield item
        report_progress(stage, done, len(items))
