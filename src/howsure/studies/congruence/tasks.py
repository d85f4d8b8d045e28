"""Tasks of the congruence studies: three parts, how inputs are embedded, and what is known.

Every study takes any task; those here are the discrete wave, drawn cells, pictures of blood,
rotated digits, any `howsure.studies.tasks.Task` of images, and tables or images of one's own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, final

import numpy as np
import numpy.typing as npt

from howsure.core.arrays import FloatArray
from howsure.core.convert import check_whole
from howsure.core.errors import InputError
from howsure.core.registry import check_known
from howsure.core.rng import child
from howsure.methods.options import made
from howsure.predictions import Distribution
from howsure.studies.congruence.worlds import draw_wave, wave_law
from howsure.studies.tasks import Part
from howsure.studies.tasks.images import image_task, read_blood, rotated_digits

Embedding = Callable[[npt.NDArray[Any]], FloatArray]
Which = Literal["train", "val", "test"]

COMPONENTS: Final = 64
PARTS: Final = ("train", "val", "test")


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CongruenceTask:
    """What is predicted from what, in three parts, and in which space inputs are alike.

    Attributes
    ----------
    name : str
        What reports call it.
    train, val, test : Part
        Rows to fit, to choose an epoch or a reference by, and to judge by.
    embed : callable
        Inputs of shape (n, …) to embeddings of shape (n, e).
    counts : bool
        Whether y counts something.
    units : str
        Of y.
    kernel : str
        Of embeddings, as in `howsure.metrics.congruence.cce`; ``auto`` is ``polynomial`` for more
        than 16 columns and ``rbf`` otherwise.
    bandwidth : str or float, optional
        Of that kernel; a number is γ.
    truth : callable, optional
        The law of y at inputs, where the world is simulated.

    Raises
    ------
    InputError
        If y of a task of counts holds anything else.

    Examples
    --------
    >>> task = wave_task(rows=50)
    >>> len(task.train), len(task.val), len(task.test), task.counts
    (40, 5, 5, True)
    """

    name: str
    train: Part
    val: Part
    test: Part
    embed: Embedding
    counts: bool = False
    units: str = "y"
    kernel: str = "auto"
    bandwidth: str | float | None = None
    truth: Callable[[npt.NDArray[Any]], Distribution] | None = None

    def __post_init__(self) -> None:
        for which in PARTS:
            y = self.part(which).y
            if self.counts and ((y < 0) | (y != np.floor(y))).any():
                raise InputError(f"y of {which} must hold counts (0, 1, 2, …), got others")

    def part(self, which: str) -> Part:
        """A part by name.

        Raises
        ------
        InputError
            If there is no such part.
        """
        check_known(which, PARTS, "part")
        found: Part = getattr(self, which)
        return found

    @property
    def images(self) -> bool:
        """Whether inputs are images."""
        return bool(self.train.x.ndim == 4)


@final
@dataclass(frozen=True, slots=True, eq=False)
class PixelPCA:
    """Principal components of images (or rows), fitted once.

    Attributes
    ----------
    center : ndarray of float, shape (p,)
        Mean of the numbers of each row.
    axes : ndarray of float, shape (p, e)
        Directions of largest variance, in falling order.
    """

    center: FloatArray
    axes: FloatArray

    @classmethod
    def of(cls, x: npt.NDArray[Any], components: int = COMPONENTS) -> PixelPCA:
        """Fit.

        Parameters
        ----------
        x : ndarray, shape (n, …)
            Rows, images or not.
        components : int
            How many, at most; never more than rows or numbers a row.

        Raises
        ------
        InputError
            If it is not at least 1, or there are fewer than two rows.

        Examples
        --------
        >>> PixelPCA.of(np.eye(5), 2)(np.eye(5)).shape
        (5, 2)
        """
        check_whole(components, "components")
        flat = _flat(x)
        if len(flat) < 2:
            raise InputError(f"x must have at least 2 rows, got {len(flat)}")
        from sklearn.decomposition import PCA

        most = min(int(components), min(flat.shape))
        solver = "full" if most >= 0.5 * min(flat.shape) else "randomized"
        fitted = PCA(most, svd_solver=solver, random_state=0).fit(flat)
        return cls(np.asarray(fitted.mean_), np.asarray(fitted.components_.T))

    def __call__(self, x: npt.NDArray[Any]) -> FloatArray:
        """Scores of rows, shape (n, e).

        Raises
        ------
        InputError
            If rows hold another number of numbers than those fitted.
        """
        flat = _flat(x)
        if flat.shape[1] != len(self.center):
            raise InputError(f"x must hold {len(self.center)} numbers a row, got {flat.shape[1]}")
        scores: FloatArray = (flat - self.center) @ self.axes
        return scores


def plain_rows(x: npt.NDArray[Any]) -> FloatArray:
    """Inputs as they are, one row each: the embedding of tables.

    Examples
    --------
    >>> plain_rows(np.arange(3)).shape
    (3, 1)
    """
    return _flat(x)


def _flat(x: npt.NDArray[Any]) -> FloatArray:
    array = np.asarray(x)
    return np.asarray(array.reshape(len(array), -1), dtype=np.float64)


def wave_task(seed: int = 0, *, rows: int = 1000) -> CongruenceTask:
    """The discrete wave: 80 per cent to train on, 10 to choose the epoch by, 10 to judge by.

    Parameters
    ----------
    seed : int
        Fixes the data.
    rows : int
        Rows in all, at least 30.

    Raises
    ------
    InputError
        If there are fewer rows.

    Notes
    -----
    Of the authors of the double Poisson network; x is one column, and γ of x is 0.5, as in figure
    2 of Young et al. 2025.

    Examples
    --------
    >>> wave_task(rows=100).bandwidth
    0.5
    """
    check_whole(rows, "rows", 30)
    x, y, rng = draw_wave(seed, rows)
    order = rng.permutation(rows)
    parts = _cut(x[:, None], y, order, (int(0.8 * rows), int(0.9 * rows)))
    return CongruenceTask(
        name="discrete wave",
        train=parts["train"],
        val=parts["val"],
        test=parts["test"],
        embed=plain_rows,
        counts=True,
        units="counts",
        kernel="rbf",
        bandwidth=0.5,
        truth=wave_law,
    )


def array_task(
    name: str,
    x: npt.NDArray[Any],
    y: npt.ArrayLike,
    *,
    counts: bool = False,
    units: str = "y",
    seed: int = 0,
    embed: Embedding | None = None,
    shares: tuple[float, float] = (0.7, 0.1),
) -> CongruenceTask:
    """A task of rows or images of one's own, split at random.

    Parameters
    ----------
    name : str
        What reports call it.
    x : ndarray, shape (n, d) or (n, height, width, channels)
        Inputs.
    y : array-like of shape (n,)
        What happened.
    counts, units
        As in `CongruenceTask`.
    seed : int
        Fixes the split.
    embed : callable, optional
        Inputs to embeddings; by default 64 principal components of training images, or the rows
        themselves, each column divided by its standard deviation in training.
    shares : tuple of two floats
        Of the training and of the validation part; the rest is the test part.

    Raises
    ------
    InputError
        If a part would hold fewer than two rows, or lengths differ.

    Examples
    --------
    >>> task = array_task("line", np.arange(100.0)[:, None], np.arange(100.0))
    >>> len(task.train), len(task.val), len(task.test)
    (70, 10, 20)
    """
    inputs, rows = np.asarray(x), len(x)
    cuts = (round(shares[0] * rows), round((shares[0] + shares[1]) * rows))
    if min(cuts[0], cuts[1] - cuts[0], rows - cuts[1]) < 2:
        raise InputError(f"shares must leave at least 2 of {rows} rows to each part, got {shares}")
    target = np.asarray(y, dtype=np.float64)
    if target.shape != (rows,):
        raise InputError(f"y must have shape ({rows},), got {target.shape}")
    parts = _cut(inputs, target, child(seed, "congruence split").permutation(rows), cuts)
    chosen = embed or _embedding(parts["train"].x)
    return CongruenceTask(
        name=name,
        train=parts["train"],
        val=parts["val"],
        test=parts["test"],
        embed=chosen,
        counts=counts,
        units=units,
    )


def image_parts_task(
    name: str,
    parts: Mapping[str, Part],
    *,
    counts: bool,
    units: str,
    components: int = COMPONENTS,
) -> CongruenceTask:
    """A task of images already split, embedded by principal components of the training part.

    Parameters
    ----------
    name : str
        What reports call it.
    parts : mapping of str to Part
        ``train``, ``val`` and ``test``, such as readers of `howsure.studies.tasks.images` give.
    counts, units
        As in `CongruenceTask`.
    components : int
        Components, at most.

    Raises
    ------
    InputError
        If a part is missing.
    """
    missing = [which for which in PARTS if which not in parts]
    if missing:
        raise InputError(f"parts must hold train, val and test, got none called {missing[0]!r}")
    return CongruenceTask(
        name=name,
        train=parts["train"],
        val=parts["val"],
        test=parts["test"],
        embed=PixelPCA.of(parts["train"].x, components),
        counts=counts,
        units=units,
    )


def cells_task(
    seed: int = 0,
    *,
    train: int = 2000,
    val: int = 500,
    test: int = 1000,
    shortcut: bool = True,
    components: int = COMPONENTS,
) -> CongruenceTask:
    """Drawn fluorescent cells, to be counted; see `howsure.studies.tasks.images.image_task`.

    Parameters
    ----------
    seed : int
        Fixes the images.
    train, val, test : int
        Images of each part.
    shortcut : bool
        Whether the ground grows brighter with their number.
    components : int
        Principal components of the embedding.
    """
    task = image_task("cells", seed=seed, train=train, val=val, test=test, shortcut=shortcut)
    parts = {which: task.part(which) for which in ("train", "val")} | {"test": task.test}
    return image_parts_task("cells", parts, counts=True, units="cells", components=components)


def blood_task(
    folder: str | None = None, *, shrink: int = 5, components: int = COMPONENTS
) -> CongruenceTask:
    """Pictures of blood with red cells to be counted; see `read_blood`."""
    parts = read_blood(folder, shrink=shrink)
    return image_parts_task("blood", parts, counts=True, units="red cells", components=components)


def digits_task(
    seed: int = 0,
    *,
    folder: str | None = None,
    rows: int | None = None,
    most: float = 60.0,
    components: int = COMPONENTS,
) -> CongruenceTask:
    """Rotated digits, whose angle is to be predicted; see `rotated_digits`."""
    parts = rotated_digits(folder, rows=rows, most=most, seed=seed)
    return image_parts_task("digits", parts, counts=False, units="degrees", components=components)


TASKS: Final[Mapping[str, Callable[..., CongruenceTask]]] = {
    "discrete-wave": wave_task,
    "cells": cells_task,
    "digits": digits_task,
    "blood": blood_task,
}
"""Makers of tasks by name; all but ``blood`` take a seed."""


def congruence_task(name: str, *, seed: int = 0, **options: Any) -> CongruenceTask:
    """A task by name, with the options of its maker.

    Raises
    ------
    InputError
        If there is no such task, or it does not take an option.

    Examples
    --------
    >>> congruence_task("discrete-wave", rows=100).name
    'discrete wave'
    """
    check_known(name, TASKS, "task")
    given = options if name == "blood" else {"seed": seed, **options}
    found: CongruenceTask = made(TASKS[name], given, f"task {name!r}")
    return found


def _embedding(x: npt.NDArray[Any]) -> Embedding:
    if x.ndim > 2:
        return PixelPCA.of(x)
    sd = _flat(x).std(axis=0, ddof=1)
    unit = np.where(sd > 0, sd, 1.0)
    return lambda rows: np.asarray(_flat(rows) / unit)


def _cut(
    x: npt.NDArray[Any],
    y: FloatArray,
    order: npt.NDArray[np.int64],
    cuts: Sequence[int],
) -> dict[Which, Part]:
    """The rows of each part, in a random order."""
    names: tuple[Which, ...] = ("train", "val", "test")
    places = np.split(order, list(cuts))
    return {
        name: Part(x=x[rows], y=y[rows], ids=rows.astype(np.str_))
        for name, rows in zip(names, places, strict=True)
    }
