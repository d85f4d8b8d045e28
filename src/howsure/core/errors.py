"""The one base error, and its kinds."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


class HowsureError(Exception):
    """Base of every error that howsure raises on purpose.

    The message names the argument, the rule it breaks, and what came instead.

    Examples
    --------
    >>> raise HowsureError("coverage must lie strictly between 0 and 1, got 90")
    Traceback (most recent call last):
    ...
    howsure.core.errors.HowsureError: coverage must lie strictly between 0 and 1, got 90
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


@contextmanager
def within(title: str) -> Iterator[None]:
    """Begin the message of a wrong input with what it is part of."""
    try:
        yield
    except InputError as error:
        raise InputError(f"{title}: {error}") from error


def message_of(error: BaseException, most: int = 300) -> str:
    """What an error of somebody else's says, in one line, cut where nobody would read on.

    >>> message_of(ValueError("no " * 10**6), 6)
    'no no … (2,999,999 characters)'
    """
    try:
        return cut_text(" ".join(str(error).split()), most)
    except Exception as fault:  # noqa: BLE001 (whatever a class of others does)
        return f"no words, but {type(fault).__name__} from its __str__"


def cut_text(text: str, most: int = 300) -> str:
    """A text of somebody else's, cut where it is longer than anyone reads."""
    return text if len(text) <= most else f"{text[:most].rstrip()} … ({len(text):,} characters)"
