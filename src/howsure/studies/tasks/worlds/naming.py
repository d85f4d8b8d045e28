"""Things by name, and the near names where there is none."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, TypeVar

from howsure.core.errors import InputError
from howsure.core.registry import Registry, unknown

BROUGHT: Final = Registry("world", "howsure.worlds")
"""Worlds of other packages, by entry points of the group ``howsure.studies.tasks.worlds``."""

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
    raise InputError(unknown(name, known, argument))
