"""A trial's address: a hash of everything that decides its outcome."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from howsure.core.errors import InputError


def address_of(identity: Mapping[str, Any]) -> str:
    """The address of a trial.

    Parameters
    ----------
    identity : mapping
        What decides the outcome, as plain values: text, numbers, booleans, None, lists and
        mappings of text to these. Order of keys does not matter; an integer is not a float.

    Returns
    -------
    str
        SHA-256 of its canonical JSON, as 64 hexadecimal digits.

    Raises
    ------
    InputError
        If a value is of another kind, or a number is not finite.

    Examples
    --------
    >>> address_of({"seed": 0, "world": "linear"})[:12]
    'ec8b1b3a2901'
    >>> address_of({"world": "linear", "seed": 0}) == address_of({"seed": 0, "world": "linear"})
    True
    """
    return hashlib.sha256(canonical(identity).encode()).hexdigest()


def canonical(identity: Mapping[str, Any]) -> str:
    """The one JSON text of plain values; see `address_of`."""
    try:
        return json.dumps(identity, sort_keys=True, separators=(",", ":"), allow_nan=False)
    except (TypeError, ValueError) as error:
        raise InputError(
            f"what decides a trial must be text, finite numbers, lists and tables: {error}"
        ) from error
