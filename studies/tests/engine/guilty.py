"""Methods that misbehave, for plans to name."""

from __future__ import annotations

import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

import numpy as np
from threadpoolctl import threadpool_info

from howsure_studies.methods.interface import Fitted, Method
from howsure_studies.methods.linear import LinearT


@final
@dataclass(frozen=True, slots=True)
class Killer(Method):
    """A line whose process dies at some data sets: each time, or the first time.

    Which data sets: those whose first y has a fractional part (of 1000 y) below `share`.
    """

    flags: str
    share: float = 0.2
    once: bool = True

    @property
    def name(self) -> str:
        return "killer"

    def fit(self, x: Any, y: Any, rng: np.random.Generator) -> Fitted:
        if abs(float(y[0])) * 1000 % 1 < self.share:
            flag = Path(self.flags) / f"{float(y[0])!r}"
            if not (self.once and flag.exists()):
                flag.touch()
                os.kill(os.getpid(), signal.SIGKILL)
        return LinearT().fit(x, y, rng)


@final
@dataclass(frozen=True, slots=True)
class Slow(Method):
    """A line that takes its time."""

    seconds: float = 0.05

    @property
    def name(self) -> str:
        return "slow"

    def fit(self, x: Any, y: Any, rng: np.random.Generator) -> Fitted:
        time.sleep(self.seconds)
        return LinearT().fit(x, y, rng)


class UnspeakableError(Exception):
    """An error that cannot say what it is."""

    def __str__(self) -> str:
        raise ValueError("no words")


@final
@dataclass(frozen=True, slots=True)
class Bad(Method):
    """A method that goes wrong in a way of choice, at data sets as `Killer` chooses them."""

    how: str
    share: float = 2.0

    @property
    def name(self) -> str:
        return f"bad {self.how}"

    def fit(self, x: Any, y: Any, rng: np.random.Generator) -> Fitted:
        fitted = LinearT().fit(x, y, rng)
        if abs(float(y[0])) * 1000 % 1 >= self.share:
            return fitted
        if self.how in ERRORS:
            raise ERRORS[self.how]
        if self.how == "status":
            os._exit(7)
        if self.how == "abort":
            os.abort()
        if self.how == "segfault":
            os.kill(os.getpid(), signal.SIGSEGV)
        if self.how == "hang":  # as does what it has started, which holds all that it holds
            if os.fork():
                time.sleep(1000)
            time.sleep(1000)
        return Odd(self.how, fitted)  # type: ignore[return-value]


ERRORS = {
    "error": RuntimeError("no"),
    "loud": RuntimeError("no " * 350_000),
    "exit": SystemExit(3),
    "exit 0": SystemExit(0),
    "interrupt": KeyboardInterrupt(),
    "base": BaseException("odd"),
    "unspeakable": UnspeakableError(),
}


@dataclass
class Odd:
    """What was fitted, but for what it predicts; nobody can pickle it."""

    how: str
    fitted: Fitted

    def __reduce__(self) -> Any:
        raise TypeError("not to be pickled")

    def predict(self, x: Any) -> Any:
        found = self.fitted.predict(x[1:] if self.how == "rows" else x)
        return None if self.how == "none" else found


@final
@dataclass(frozen=True, slots=True)
class Threads(Method):
    """A line that fails where linear algebra has more than one thread."""

    @property
    def name(self) -> str:
        return "threads"

    def fit(self, x: Any, y: Any, rng: np.random.Generator) -> Fitted:
        counts = {pool["num_threads"] for pool in threadpool_info()}
        if counts != {1}:
            raise RuntimeError(f"threads: {counts}")
        return LinearT().fit(x, y, rng)
