"""Plain values in which one thing after another is made something else, or is gone."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from typing import Any

GONE = object()
"""In place of what is left out."""


def places(told: Any, most: int = 99) -> Iterator[tuple[Any, ...]]:
    """Where each value within stands, down to so many steps; of a list the first and the last."""
    keys: Any = {0: None, len(told) - 1: None} if told and isinstance(told, list) else ()
    for key in told if isinstance(told, dict) else keys:
        yield (key,)
        if most > 1:
            yield from ((key, *further) for further in places(told[key], most - 1))


def damaged(told: Any, place: Sequence[Any], put: Any) -> Any:
    """The same with something else in one place."""
    whole = inner = copy.deepcopy(told)
    for key in place[:-1]:
        inner = inner[key]
    if put is GONE:
        del inner[place[-1]]
    else:
        inner[place[-1]] = put
    return whole
