"""One net under every measure: whatever it raises, the others are answered all the same.

A measure that the content does not permit raises `UnanswerableError`, whose message is the reason.
Anything else that it raises is a fault in howsure: `attempt` turns it into a reason that says so,
and `collected` gathers the faults, so that a report can state them. Under `strict` a fault raises
`FaultError`, so that the net hides none from the tests.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

from howsure.core.errors import MissingDependencyError, UnanswerableError, error_line

_T = TypeVar("_T")

_strict: ContextVar[bool] = ContextVar("howsure_strict", default=False)
_collected: ContextVar[list[str] | None] = ContextVar("howsure_faults", default=None)


class FaultError(Exception):
    """A fault in howsure, where the caller is strict."""


def attempt(what: str, ask: Callable[[], _T], otherwise: Callable[[str], _T]) -> _T:
    """The answer to a question, or what takes its place, given the reason why there is none.

    >>> attempt("a ratio", lambda: 1 / 0, lambda reason: reason)
    'fault in howsure (ZeroDivisionError: division by zero); please report it'
    """
    try:
        return ask()
    except (UnanswerableError, MissingDependencyError) as error:
        return otherwise(str(error))
    except Exception as error:
        if _strict.get():
            raise FaultError(f"{what}: {type(error).__name__}: {error}") from error
        reason = f"fault in howsure ({error_line(error)}); please report it"
        faults = _collected.get()
        if faults is not None:
            faults.append(f"{what}: {reason}")
        return otherwise(reason)


@contextmanager
def collected() -> Iterator[list[str]]:
    """The faults met within, each with what it was a fault of."""
    faults: list[str] = []
    token = _collected.set(faults)
    try:
        yield faults
    finally:
        _collected.reset(token)


@contextmanager
def strict() -> Iterator[None]:
    """Within, faults are raised; declared reasons stay reasons."""
    token = _strict.set(True)
    try:
        yield
    finally:
        _strict.reset(token)
