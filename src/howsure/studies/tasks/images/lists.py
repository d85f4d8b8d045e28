"""Reading of the lists (CSV files) that come with image sets."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyarrow import csv

from howsure.core.arrays import FloatArray
from howsure.core.errors import InputError


def read_list(path: Path, *, delimiter: str = ",") -> pa.Table:
    """Read a file of columns, parted by commas or another sign, with a header.

    Raises
    ------
    InputError
        If it is missing, is not text, or has no row.
    """
    try:
        table = csv.read_csv(path, parse_options=csv.ParseOptions(delimiter=delimiter))
        titles = table.column_names  # fails where they are no text
    except (OSError, UnicodeDecodeError, pa.ArrowException) as error:
        raise InputError(f"{path} cannot be read: {error}") from error
    if table.num_rows == 0 or not titles:
        raise InputError(f"{path} must have at least one row, got none")
    return table


def column(table: pa.Table, title: str, path: Path) -> npt.NDArray[np.str_]:
    """A column of text.

    Raises
    ------
    InputError
        If there is no such column, or it has missing values.
    """
    _check(table, title, path)
    try:
        return np.asarray(table[title].cast(pa.string()).to_numpy(), dtype=np.str_)
    except pa.ArrowException as error:
        raise InputError(f"{path}: column {title!r} must hold text: {error}") from error


def numbers(table: pa.Table, title: str, path: Path) -> FloatArray:
    """A column of numbers.

    Raises
    ------
    InputError
        If there is no such column, or it holds anything else than numbers.
    """
    _check(table, title, path)
    try:
        return np.asarray(table[title].cast(pa.float64()).to_numpy(), dtype=np.float64)
    except pa.ArrowException as error:
        raise InputError(f"{path}: column {title!r} must hold numbers: {error}") from error


def _check(table: pa.Table, title: str, path: Path) -> None:
    if title not in table.column_names:
        raise InputError(
            f"{path} must have the column {title!r}, got {', '.join(table.column_names)}"
        )
    missing = table[title].null_count
    if missing:
        raise InputError(f"{path}: column {title!r} must have no missing value, got {missing}")
