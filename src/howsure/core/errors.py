"""The one base error, and its kinds."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Literal, TypeVar


class HowsureError(Exception):
    """Base of every error that howsure raises on purpose.

    The message names the argument, the rule it breaks, and what came instead.

    Examples
    --------
    >>> raise HowsureError("coverage must be strictly between 0 and 1, got 90")
    Traceback (most recent call last):
    ...
    howsure.core.errors.HowsureError: coverage must be strictly between 0 and 1, got 90
    """


class InputError(HowsureError, ValueError):
    """An argument, a file or a table breaks a rule."""


class UnanswerableError(HowsureError):
    """The content given does not permit this answer; the message is the reason."""


class DegenerateError(InputError, UnanswerableError):
    """A legal argument whose content is too poor: too few rows, equal ones, numbers too large."""


class MissingDependencyError(HowsureError, ImportError):
    """An optional library is needed; the message says which extra installs it."""


class HowsureWarning(UserWarning):
    """Something the reader of a result must know."""


_MAX_CHARACTERS = 300  # characters, past which nobody reads on


@contextmanager
def within(title: str) -> Iterator[None]:
    """Begin the message of a wrong input with what it is part of."""
    try:
        yield
    except InputError as error:
        raise InputError(f"{title}: {error}") from error


def message_of(error: BaseException) -> str:
    """What an error of somebody else's says, in one line, cut where nobody would read on.

    Its class, where it says nothing.

    >>> message_of(ValueError("no such\\n device"))
    'no such device'
    """
    try:
        return cut_text(" ".join(str(error).split()), _MAX_CHARACTERS) or type(error).__name__
    except Exception as fault:  # noqa: BLE001 (whatever a class of others does)
        return f"no message ({type(fault).__name__} in its __str__)"


def error_line(error: BaseException) -> str:
    """The class of somebody else's error, and what it says, in one line.

    >>> error_line(ValueError("no such\\n device")), error_line(KeyError())
    ('ValueError: no such device', 'KeyError')
    """
    name, message = type(error).__name__, message_of(error)
    return name if message == name else f"{name}: {message}"


def system_line(error: OSError) -> str:
    """What the system says of a file, in one line.

    >>> system_line(FileNotFoundError(2, "No such file or directory", "a.csv"))
    "'a.csv': No such file or directory"
    """
    file = f"{str(error.filename)[:80]!r}: " if error.filename else ""
    return f"{file}{error.strerror or error}"


def cut_text(text: str, most: int = 300) -> str:
    """A text of somebody else's, cut where it is longer than anyone reads."""
    return text if len(text) <= most else f"{text[:most].rstrip()} … ({len(text):,} characters)"


# ---- what an error proposes: in the language in which howsure was asked --------------------------

Language = Literal["python", "command", "fields"]
"""Python, the command line, or the JSON fields of an agent's call."""

_language: ContextVar[Language] = ContextVar("howsure_language", default="python")


@contextmanager
def asked_in(language: Language) -> Iterator[None]:
    """Within, what is proposed is written in another language than Python."""
    token = _language.set(language)
    try:
        yield
    finally:
        _language.reset(token)


def language() -> Language:
    """The language in which howsure was asked."""
    return _language.get()


def either(python: str, command: str) -> str:
    """What to propose to who writes Python, and to all others.

    >>> either("howsure.Options(lead=N)", "--lead N")
    'howsure.Options(lead=N)'
    """
    return python if language() == "python" else command


# ---- one net under every measure: whatever it raises, the others are answered all the same -------
# A measure that the content does not permit raises `UnanswerableError`, whose message is the
# reason. Anything else that it raises is a fault in howsure: `attempt` turns it into a reason that
# says so, and `collected` gathers the faults, so that a report can state them. Under `strict` a
# fault raises `FaultError`, so that the net hides none from the tests.

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
