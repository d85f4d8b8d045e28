"""Pictures of stained nuclei to be counted, by one of three recipes."""

from __future__ import annotations

from functools import partial
from typing import Final, Literal, get_args

import numpy as np
import numpy.typing as npt

from howsure.core.arrays import IntArray
from howsure.core.errors import InputError
from howsure.core.registry import check_known
from howsure_studies.tasks.images.micrographs import draw_micrographs
from howsure_studies.tasks.images.simcep import CANVAS, REFERENCE_COUNT, draw_direct, draw_faithful

Recipe = Literal["direct", "faithful", "micrograph"]
RECIPE: Final = "micrograph"
"""How cells are drawn unless another recipe is asked for."""

_BATCH: Final = 32
_SIZES: Final = (64, 128, 256)


def draw_cells(
    counts: npt.ArrayLike,
    *,
    seed: int = 0,
    index: npt.ArrayLike | None = None,
    recipe: Recipe = RECIPE,
    shortcut: bool = True,
    size: int = 64,
) -> npt.NDArray[np.uint8]:
    """Draw pictures that hold given numbers of nuclei.

    Parameters
    ----------
    counts : array-like of int, shape (n,)
        Nuclei in each picture, at least 1. All count, also those that the border cuts and those
        that others cover.
    seed : int
        With ``index``, count and recipe it fixes a picture, whatever others are drawn with it.
    index : array-like of int, shape (n,), optional
        Which of all possible pictures; 0, 1, 2, … if omitted.
    recipe : {"direct", "faithful", "micrograph"}
        ``direct`` and ``faithful`` follow the simulator SIMCEP, as Cell-200 does, where the mean
        brightness tells the count: the former at 64 by 64 pixels, the latter at 256 by 256,
        averaged. ``micrograph``: exposure, stain, focus, ground, haze, fibres, droplets, noise
        and nuclear size are drawn for each picture, so that global statistics say little.
    shortcut : bool
        Of ``direct`` and ``faithful`` alone: whether the ground's brightness grows with the
        nuclei's, as in the original; if not, it is that of 100 nuclei everywhere.
    size : int
        Pixels a side: 64, or with the faithful recipe 64, 128 or 256.

    Returns
    -------
    ndarray of uint8, shape (n, size, size)

    Raises
    ------
    InputError
        If a count is below 1, or the recipe or size is unknown.

    Notes
    -----
    The original ties the energy (the sum of squares) of uneven light to that of the sharp
    nuclei, and of autofluorescence to a twentieth of it; hence the shortcut. Of SIMCEP's recipes,
    nuclei come from a bank of 2,048 a seed, each in eight turned and mirrored forms. Not
    repeated: the original's one pass of JPEG at quality 100.

    Examples
    --------
    >>> pictures = draw_cells([10, 150], seed=1)
    >>> pictures.shape, pictures.dtype
    ((2, 64, 64), dtype('uint8'))
    """
    many, which = _checked(counts, index)
    check_recipe(recipe, shortcut)
    if size not in (_SIZES if recipe == "faithful" else _SIZES[:1]):
        raise InputError(
            f"size must be 64, or 64, 128 or 256 with the faithful recipe, got {size!r}"
        )
    if recipe == "faithful":
        drawn = draw_faithful(many, which, seed, shortcut, CANVAS // size)
        return np.concatenate(list(drawn))
    if recipe == "direct":
        steady = None if shortcut else REFERENCE_COUNT
        draw = partial(draw_direct, seed=seed, steady=steady)
    else:
        draw = partial(draw_micrographs, seed=seed)
    starts = range(0, len(many), _BATCH)
    return np.concatenate(
        [draw(many[start : start + _BATCH], which[start : start + _BATCH]) for start in starts]
    )


def check_recipe(recipe: Recipe, shortcut: bool) -> None:
    """Raise `InputError` for an unknown recipe, or one that has no shortcut to switch off."""
    check_known(recipe, get_args(Recipe), "recipe")
    if not shortcut and recipe == "micrograph":
        raise InputError(
            "shortcut must be True with the recipe micrograph, which has none to switch off, "
            "got False; the recipes direct and faithful have it"
        )


def _checked(counts: npt.ArrayLike, index: npt.ArrayLike | None) -> tuple[IntArray, IntArray]:
    many = _whole_numbers(counts, "counts", 1)
    which = np.arange(len(many)) if index is None else _whole_numbers(index, "index", 0)
    if len(which) != len(many):
        raise InputError(f"index must have {len(many)} rows, got {len(which)}")
    return many, which


def _whole_numbers(value: npt.ArrayLike, name: str, least: int) -> IntArray:
    array = np.asarray(value)
    if array.ndim != 1 or array.dtype.kind not in "iuf" or len(array) == 0:
        raise InputError(f"{name} must be a list of whole numbers, got {value!r}")
    whole = array.astype(np.int64)
    if (whole != array).any() or (whole < least).any():
        raise InputError(f"{name} must be whole numbers of at least {least}, got {array.min():g}")
    return whole
