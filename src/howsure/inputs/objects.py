"""Predictions that other libraries make, each by a small adapter that never imports the library."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy.typing as npt

if TYPE_CHECKING:
    from howsure.inputs.given import Given


def adapted(
    value: Any, *, n: int, coverage: npt.ArrayLike | None, levels: npt.ArrayLike | None
) -> Given | dict[str, Given] | None:
    """A library's object as what is given, by model where it holds several; None of any other."""
    return None
