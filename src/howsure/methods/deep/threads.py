"""Threads: operations on small tensors take one each, and several chunks run side by side.

Torch shares each operation among its threads, which wait for each other by spinning: for small
operations that gains nothing, and on a busy machine it costs ten times the time. So each
operation runs in one thread, and the threads that torch may use train chunks of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

from howsure.core.optional import require

Item = TypeVar("Item")
Result = TypeVar("Result")


@contextmanager
def one_thread_each() -> Iterator[int]:
    """One thread an operation inside; torch's number of threads, which comes back after.

    Raises
    ------
    MissingDependencyError
        If torch is not installed.

    Examples
    --------
    >>> import pytest
    >>> torch = pytest.importorskip("torch")
    >>> with one_thread_each() as threads:
    ...     torch.get_num_threads()
    1
    >>> torch.get_num_threads() == threads
    True
    """
    torch = require("torch", extra="deep")
    threads = int(torch.get_num_threads())
    torch.set_num_threads(1)
    try:
        yield threads
    finally:
        torch.set_num_threads(threads)


def side_by_side(
    work: Callable[[Item], Result], items: Iterable[Item], threads: int
) -> list[Result]:
    """Results in the order of the items, by so many threads.

    Examples
    --------
    >>> side_by_side(abs, [-1, 2, -3], threads=2)
    [1, 2, 3]
    """
    waiting = list(items)
    if threads == 1 or len(waiting) < 2:
        return [work(item) for item in waiting]
    with ThreadPoolExecutor(min(threads, len(waiting))) as pool:
        return list(pool.map(work, waiting))
