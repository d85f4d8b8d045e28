"""Parts of a task: inputs beside targets, and where each row comes from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np
import numpy.typing as npt

from howsure.core.arrays import BoolArray, FloatArray, as_vector
from howsure.core.brief import brief_repr
from howsure.core.errors import InputError


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Part:
    """The training, validation or a test part of a task.

    Attributes
    ----------
    x : ndarray, shape (n, …)
        Inputs: numbers of shape (n, d), or images of shape (n, height, width, channels).
    y : ndarray of float, shape (n,)
        Targets, in the task's units.
    ids : ndarray of str, shape (n,)
        Where each row comes from.
    in_range : ndarray of bool, shape (n,), optional
        Whether a test row lies where training rows do; None where that is not known.
    notes : tuple of str
        What was left out, and what else the reader of a result must know.

    Raises
    ------
    InputError
        If there is no row, lengths differ, or y holds a missing or infinite value.

    Examples
    --------
    >>> part = Part(x=np.eye(3), y=[1, 2, 3], ids=["a", "b", "c"])
    >>> len(part), part.take([2, 0]).ids.tolist()
    (3, ['c', 'a'])
    """

    x: npt.NDArray[Any]
    y: FloatArray
    ids: npt.NDArray[np.str_]
    in_range: BoolArray | None = None
    notes: tuple[str, ...] = ()

    __repr__ = brief_repr

    def __post_init__(self) -> None:
        """Check lengths, and that targets are finite."""
        object.__setattr__(self, "y", as_vector(self.y, "y", length=len(self.x)))
        object.__setattr__(self, "ids", np.asarray(self.ids, dtype=np.str_))
        if len(self.ids) != len(self.y):
            raise InputError(f"ids must have {len(self.y)} rows, got {len(self.ids)}")
        if self.in_range is not None and len(self.in_range) != len(self.y):
            raise InputError(f"in_range must have {len(self.y)} rows, got {len(self.in_range)}")

    def __len__(self) -> int:
        """The number of rows."""
        return len(self.y)

    def take(self, rows: npt.ArrayLike) -> Part:
        """The rows chosen by numbers or by a mask, in that order."""
        chosen = np.asarray(rows)
        return Part(
            x=self.x[chosen],
            y=self.y[chosen],
            ids=self.ids[chosen],
            in_range=None if self.in_range is None else self.in_range[chosen],
            notes=self.notes,
        )
