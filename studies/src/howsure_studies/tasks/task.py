"""A task: what is predicted from what, in parts for training, validation and tests."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, Literal, final

import numpy as np
import numpy.typing as npt

from howsure.core.arrays import BoolArray, FloatArray, as_vector
from howsure.core.brief import brief_repr
from howsure.core.errors import InputError
from howsure.core.registry import check_known

if TYPE_CHECKING:
    from howsure_studies.methods.deep.modules.inputs import Scaling

Family = Literal["shift", "congruence"]
Source = Literal["drawn", "original"]

FAMILIES: Final[tuple[Family, ...]] = ("shift", "congruence")


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
        for name, value in (("ids", self.ids), ("in_range", self.in_range)):
            if value is not None and len(value) != len(self.y):
                raise InputError(f"{name} must have {len(self.y)} rows, got {len(value)}")

    def __len__(self) -> int:
        """The number of rows."""
        return len(self.y)

    def take(self, rows: npt.ArrayLike) -> Part:
        """The rows chosen by numbers or by a mask, in that order."""
        chosen = np.asarray(rows)
        kept = None if self.in_range is None else self.in_range[chosen]
        return replace(
            self, x=self.x[chosen], y=self.y[chosen], ids=self.ids[chosen], in_range=kept
        )


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Task:
    """Images or rows of a table beside a number each, in named parts that are read when used.

    Attributes
    ----------
    name : str
        What to call it.
    target, units : str
        What y is, and its units.
    tests : tuple of str
        Names of the test parts; the first is the main one.
    read : callable
        Gives a part by name, with those that come along with it.
    title : str
        The name that its paper gives it; that of the task if empty.
    images : bool
        Whether x are images, of shape (n, height, width, channels), and not rows of a table.
    scaling : {"imagenet", "none"}
        What networks do to images; see `howsure_studies.tasks.images.network_input`.
    family : {"shift", "congruence"}
        Whose task it is: the shift benchmark's of Gustafsson, Danelljan and Schön (2023), or the
        conditional congruence's of Young et al. (2025).
    source : {"original", "drawn"}
        Whether rows are read from published files or one's own, or drawn here.
    published : mapping of str to int
        Rows of the parts in the paper, or by its rule from the published number of images.
    columns : tuple of str
        Names of a table's inputs.

    Examples
    --------
    >>> from howsure_studies.tasks.images import image_task
    >>> task = image_task("cells-tails", train=20, val=10, test=10)
    >>> task.train.x.shape, task.target, task.tests
    ((20, 64, 64, 1), 'nuclei', ('full', 'step-1', 'step-2', 'step-3'))
    """

    name: str
    target: str
    units: str
    tests: tuple[str, ...]
    read: Callable[[str], Mapping[str, Part]]
    title: str = ""
    images: bool = False
    scaling: Scaling = "none"
    family: Family = "shift"
    source: Source = "original"
    published: Mapping[str, int] = field(default_factory=dict)
    columns: tuple[str, ...] = ()
    _parts: dict[str, Part] = field(default_factory=dict, init=False, repr=False)

    __repr__ = brief_repr

    def part(self, name: str) -> Part:
        """A part by name: ``train``, ``val``, or one of `tests`.

        Raises
        ------
        InputError
            If there is no such part, or what is read breaks a rule.
        """
        check_known(name, ("train", "val", *self.tests), "part")
        if name not in self._parts:
            self._parts.update(self.read(name))
        return self._parts[name]

    @property
    def train(self) -> Part:
        """The part that models are fitted to."""
        return self.part("train")

    @property
    def val(self) -> Part:
        """The part that intervals are calibrated on."""
        return self.part("val")

    @property
    def test(self) -> Part:
        """The main test part."""
        return self.part(self.tests[0])

    @property
    def notes(self) -> tuple[str, ...]:
        """What was left out of the parts that were read so far, each said once."""
        return tuple(dict.fromkeys(note for part in self._parts.values() for note in part.notes))
