"""What entries of a plan have in common: options that are known, paths, and tables of numbers."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from howsure.core.arrays import FloatArray
from howsure.core.errors import InputError
from howsure.core.registry import check_known, unknown


def check_options(label: str, entry: Mapping[str, Any], known: Sequence[str]) -> None:
    """Raise `InputError` where the entry of a world has an option that is not known."""
    for key in entry:
        check_known(key, known, f"option of world {label!r}")


def absolute(folder: Path, path: object) -> str:
    """A path of a plan as an absolute one; relative ones start at the plan's folder."""
    return str((folder / str(path)).expanduser().resolve())


def numbers_hash(*arrays: npt.NDArray[Any]) -> str:
    """The SHA-256 of the shape of the first of some arrays, and of the numbers of all.

    Examples
    --------
    >>> numbers_hash(np.zeros(2))[:8]
    '45e2f25e'
    """
    digest = hashlib.sha256(str(arrays[0].shape).encode())
    for array in arrays:
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


def complete_numbers(
    path: Path, target: str, features: Sequence[str] | None = None
) -> tuple[FloatArray, FloatArray]:
    """Inputs and target of a file, all complete numbers.

    Parameters
    ----------
    path : Path
        A table that `howsure.inputs.open_table` reads.
    target : str
        The column of y.
    features : sequence of str, optional
        Columns of x; all but the target if omitted.

    Returns
    -------
    x : ndarray of float, shape (n, d)
    y : ndarray of float, shape (n,)

    Raises
    ------
    InputError
        If a column is not there, is not of numbers or is incomplete, or none is left for x.
    """
    from howsure.inputs import open_table
    from howsure.inputs.values import numbers

    source = open_table(path)
    check_known(target, source.names, f"target of {path}")
    given = [name for name in source.names if name != target]
    inputs = given if features is None else list(features)
    for name in inputs:
        if name not in source.names:
            raise InputError(unknown(str(name), source.names, f"column of {path}"))
    if not inputs or target in inputs:
        raise InputError(f"{path} must have columns beside the target {target!r}, got {inputs}")
    read = source.read(dict.fromkeys((*inputs, target), "number"))
    columns: dict[str, FloatArray] = {name: numbers(read[name], name) for name in (*inputs, target)}
    for name, column in columns.items():
        missing = int(np.isnan(column).sum())
        if missing:
            raise InputError(f"{path}: column {name!r} must be complete, got {missing} missing")
    return np.column_stack([columns[name] for name in inputs]), columns[target]
