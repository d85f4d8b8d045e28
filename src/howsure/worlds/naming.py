"""Things by name, and the near names where there is none."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import TypeVar

from howsure.core.errors import InputError

T = TypeVar("T")


def lookup(known: Mapping[str, T], name: object, argument: str) -> T:
    """The thing of this name.

    Parameters
    ----------
    known : mapping of str to T
        Things by name.
    name : object
        What came.
    argument : str
        The argument's name, for the message.

    Returns
    -------
    T

    Raises
    ------
    InputError
        If there is none; the message lists the names, and the near ones.

    Examples
    --------
    >>> lookup({"linear": 1}, "linaer", "world")
    Traceback (most recent call last):
    ...
    howsure.core.errors.InputError: world must be one of linear, got 'linaer'; near: linear
    """
    if isinstance(name, str) and name in known:
        return known[name]
    near = difflib.get_close_matches(str(name).lower(), known, n=3, cutoff=0.5)
    hint = f"; near: {', '.join(near)}" if near else ""
    raise InputError(f"{argument} must be one of {', '.join(known)}, got {name!r}{hint}")
