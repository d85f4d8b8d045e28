"""A task: what is predicted from what, in parts for training, validation and tests.

Whose data are drawn anew, with their truth known, is a `World` instead.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, Self, final

import numpy as np
import numpy.typing as npt

from howsure.core.arrays import AnyArray, BoolArray, FloatArray, as_vector
from howsure.core.classes import frozen
from howsure.core.errors import InputError
from howsure.core.registry import check_known

if TYPE_CHECKING:
    from howsure.predictions import Distribution
    from howsure_studies.methods.deep.modules.inputs import Scaling

Source = Literal["drawn", "original"]
"""Whether images are drawn anew or those of the original data set."""
Embedding = Callable[[AnyArray], FloatArray]
"""Inputs of shape (n, …) to vectors of shape (n, e)."""


@final
@frozen(kw_only=True, eq=False)
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
    columns : tuple of str
        Names of the columns of x, where it is of a table; that of a label is ``column=label``.
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

    x: AnyArray
    y: FloatArray
    ids: npt.NDArray[np.str_]
    in_range: BoolArray | None = None
    columns: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

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


def plain_rows(x: AnyArray) -> FloatArray:
    """Inputs as they are, one row each."""
    array = np.asarray(x)
    return np.asarray(array.reshape(len(array), -1), dtype=np.float64)


@final
@frozen(eq=False)
class Space:
    """In which space inputs are alike.

    Attributes
    ----------
    embed : callable
        Inputs of shape (n, …) to embeddings of shape (n, e); as they are by default.
    kernel : str
        Of embeddings, as in `howsure.topics.congruence.cce`; ``auto`` is ``polynomial`` for more
        than 16 columns and ``rbf`` otherwise.
    bandwidth : str or float, optional
        Of that kernel; a number is γ.

    Examples
    --------
    >>> Space().embed(np.zeros((5, 4, 4, 3))).shape
    (5, 48)
    """

    embed: Embedding = plain_rows
    kernel: str = "auto"
    bandwidth: str | float | None = None


@final
@frozen(kw_only=True, eq=False)
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
    counts : bool
        Whether y counts something, so that a part with any other y is refused.
    space : Space
        In which space inputs are alike.
    truth : callable, optional
        The law of y at inputs, where it is known.
    images : bool
        Whether x are images, of shape (n, height, width, channels), and not rows of a table.
    scaling : {"imagenet", "none"}
        What networks do to images; see `howsure_studies.tasks.images.network_input`.
    source : {"original", "drawn"}
        Whether rows are read from published files or one's own, or drawn here.
    published : mapping of str to int
        Rows of the parts in the paper, or by its rule from the published number of images.

    Examples
    --------
    >>> from howsure_studies.tasks.images import image_task
    >>> task = image_task("cells-tails", train=20, val=10, test=10)
    >>> task.train.x.shape, task.target, task.tests
    ((20, 64, 64, 1), 'nuclei', ('full', 'step-1', 'step-2', 'step-3'))
    """

    name: str
    target: str = "y"
    units: str = "1"
    tests: tuple[str, ...]
    read: Callable[[str], Mapping[str, Part]]
    counts: bool = False
    space: Space = field(default_factory=Space)
    truth: Callable[[AnyArray], Distribution] | None = None
    images: bool = False
    scaling: Scaling = "none"
    source: Source = "original"
    published: Mapping[str, int] = field(default_factory=dict)
    _parts: dict[str, Part] = field(default_factory=dict, init=False, repr=False)

    @classmethod
    def of(cls, parts: Mapping[str, Part], **options: Any) -> Self:
        """A task of parts that are all there: ``train``, ``val``, and its tests by other names.

        Raises
        ------
        InputError
            If there is no part ``train`` or ``val``, or no test, or y should hold counts and
            does not.

        Examples
        --------
        >>> part = Part(x=np.eye(3), y=[1, 2, 3], ids=["a", "b", "c"])
        >>> parts = {"train": part, "val": part, "test": part}
        >>> Task.of(parts, name="three", target="apples", units="1", counts=True).tests
        ('test',)
        """
        tests = tuple(name for name in parts if name not in ("train", "val"))
        if len(parts) != len(tests) + 2 or not tests:
            raise InputError(f"parts must contain train, val and a test, got {', '.join(parts)}")
        task = cls(tests=tests, read=partial(_all_parts, parts), **options)
        task.part("train")  # so that parts that break a rule are refused here
        return task

    def part(self, name: str) -> Part:
        """A part by name: ``train``, ``val``, or one of `tests`.

        Raises
        ------
        InputError
            If there is no such part, or what is read breaks a rule.
        """
        check_known(name, ("train", "val", *self.tests), "part")
        if name not in self._parts:
            parts = self.read(name)
            for title, part in parts.items():
                if self.counts and ((part.y < 0) | (part.y != np.floor(part.y))).any():
                    raise InputError(f"y of {title} must contain counts (0, 1, 2, …), got others")
            self._parts.update(parts)
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
    def columns(self) -> tuple[str, ...]:
        """Names of a table's inputs."""
        return self.train.columns

    @property
    def notes(self) -> tuple[str, ...]:
        """What was left out of the parts that were read so far, each said once."""
        return tuple(dict.fromkeys(note for part in self._parts.values() for note in part.notes))


def _all_parts(parts: Mapping[str, Part], _: str) -> Mapping[str, Part]:
    """All parts, whichever is asked for; a function of its own, so that tasks can be pickled."""
    return parts
