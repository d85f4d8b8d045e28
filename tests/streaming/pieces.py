"""Work for other processes to do, well or badly."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pyarrow as pa
from threadpoolctl import threadpool_info

from howsure.core.errors import DegenerateError


def square(number: int) -> pa.Table:
    return pa.table({"number": [number], "square": [number * number]})


def slow(number: int) -> pa.Table:
    """The later, the sooner done."""
    time.sleep(max(0.0, 0.2 - 0.05 * number))
    return square(number)


def who(number: int) -> pa.Table:
    """Which process did it, and with how many threads."""
    threads = max((pool["num_threads"] for pool in threadpool_info()), default=1)
    return pa.table({"pid": [os.getpid()], "blas": [threads], "arrow": [pa.cpu_count()]})


def bad(number: int) -> pa.Table:
    """Work to which every third number from 2 on is too poor."""
    if number % 3 == 2:
        raise DegenerateError(f"row 73 of part {number} has no y")
    return square(number)


def odd(number: int) -> pa.Table:
    raise KeyError("no such column")


def dies(item: tuple[int, Path, int]) -> pa.Table:
    """Work whose process is killed so many times at a number of choice."""
    number, folder, times = item
    marks = len(list(folder.glob(f"{number}-*")))
    (folder / f"{number}-{marks}").touch()
    if marks < times:
        os.kill(os.getpid(), signal.SIGKILL)
    return square(number)


def logged(item: tuple[int, Path, float]) -> pa.Table:
    """Work that leaves a mark of its process when it begins."""
    number, folder, seconds = item
    (folder / f"{number}-{os.getpid()}").touch()
    time.sleep(seconds)
    return square(number)
