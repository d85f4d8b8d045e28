"""Where data sets lie on this machine."""

from __future__ import annotations

import os
from pathlib import Path

from howsure.studies.tasks.tables import DataNotFoundError


def cache_folder() -> Path:
    """The user's cache of howsure: ``XDG_CACHE_HOME`` or ``~/.cache``, and ``howsure`` in it."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "howsure"


def places(folder: str) -> list[Path]:
    """Where a data set's folder is looked for: under ``HOWSURE_DATA``, then in the cache."""
    root = os.environ.get("HOWSURE_DATA")
    return [Path(base) / folder for base in (root, cache_folder()) if base]


def found(name: str, folder: str) -> Path:
    """The folder of a data set.

    Parameters
    ----------
    name : str
        The data set's name, for the message.
    folder : str
        The name of its folder.

    Returns
    -------
    Path

    Raises
    ------
    DataNotFoundError
        If it is in none of the places; the message lists them.

    Examples
    --------
    >>> found("moon", "no_such_folder")
    Traceback (most recent call last):
    ...
    howsure.studies.tasks.tables.DataNotFoundError: data set 'moon' is ...
    """
    looked = places(folder)
    for place in looked:
        if place.is_dir():
            return place
    unset = "" if os.environ.get("HOWSURE_DATA") else " (HOWSURE_DATA is not set)"
    raise DataNotFoundError(
        f"data set {name!r} is not on this machine: looked for "
        f"{', '.join(map(str, looked))}{unset}; howsure data get {name} shows how to get it"
    )
