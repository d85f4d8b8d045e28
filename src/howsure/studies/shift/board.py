"""Columns of rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt


def columns_of(rows: Sequence[Mapping[str, Any]]) -> dict[str, npt.NDArray[Any]]:
    """Columns of rows that hold the same names; text as objects.

    Examples
    --------
    >>> columns_of([{"a": 1.0}, {"a": 2.0}])["a"]
    array([1., 2.])
    """
    if not rows:
        return {}
    return {
        name: np.array([row[name] for row in rows], dtype=object if isinstance(one, str) else None)
        for name, one in rows[0].items()
    }
