"""Where data sets lie, and opening what others have packed: never beyond a size, never run.

Folders are looked for under ``HOWSURE_DATA``, then in the user's cache. What a file says of its
own size is compared to a bound before room is made for it, and nothing is unpickled.
"""

from __future__ import annotations

import gzip
import math
import os
import zlib
from collections.abc import Sequence
from pathlib import Path
from tokenize import TokenError
from typing import Any, Final
from zipfile import BadZipFile, ZipFile

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyarrow import csv

from howsure.core.arrays import AnyArray, FloatArray
from howsure.core.errors import HowsureError, InputError
from howsure.core.files import cache_folder as cache_folder

BROKEN: Final = (
    *(OSError, EOFError, ValueError, TypeError, LookupError, AttributeError, SyntaxError),
    *(RuntimeError, ArithmeticError, MemoryError, TokenError, BadZipFile, zlib.error),
)
"""What readers of other libraries raise on a file that is broken."""

_BLOCK: Final = 1 << 20
_MOST: Final = 1 << 28  # bytes of a list when unpacked


class DataNotFoundError(HowsureError):
    """A named data set is not on this machine."""


class UnreadableError(InputError):
    """A file does not hold what its name promises."""


def places(folder: str) -> list[Path]:
    """Where a data set's folder is looked for: under ``HOWSURE_DATA``, then in the cache."""
    root = os.environ.get("HOWSURE_DATA")
    return [Path(base) / folder for base in (root, cache_folder()) if base]


def located(folder: str) -> Path | None:
    """Where a data set's folder lies: the first of `places` that there is, or None."""
    return next((path for path in places(folder) if path.is_dir()), None)


def find_folder(name: str, folder: str) -> Path:
    """The folder of a data set, as `located` finds it.

    Raises
    ------
    DataNotFoundError
        If it is in none of the places; the message lists them.

    Examples
    --------
    >>> find_folder("moon", "no_such_folder")
    Traceback (most recent call last):
    ...
    howsure_studies.tasks.files.DataNotFoundError: data set 'moon' is ...
    """
    path = located(folder)
    if path is not None:
        return path
    unset = "" if os.environ.get("HOWSURE_DATA") else " (HOWSURE_DATA is not set)"
    raise DataNotFoundError(
        f"data set {name!r} is not on this machine: looked for "
        f"{', '.join(map(str, places(folder)))}{unset}; howsure data get {name} shows how to get it"
    )


def bounded(size: int, most: int, what: object) -> None:
    """Raise `UnreadableError` where something says that it will take more room than it may."""
    if not 0 <= size <= most:
        raise UnreadableError(f"{what} must take at most {most:,} bytes, got {size:,}")


def gunzipped(path: Path, most: int) -> bytes:
    """What a gzip file holds, if that is at most so many bytes."""
    content = bytearray()
    try:
        with gzip.open(path, "rb") as file:
            while len(content) <= most and (block := file.read(_BLOCK)):
                content += block
    except (OSError, EOFError, zlib.error) as error:
        raise UnreadableError(f"{path} cannot be read: {error}") from error
    if len(content) > most:
        raise UnreadableError(f"{path} must unpack to at most {most:,} bytes, got more")
    return bytes(content)


def arrays(path: Path, most: int = _MOST) -> dict[str, AnyArray]:
    """The arrays of a .npz file, if they take at most so many bytes; nothing is unpickled."""
    try:
        with ZipFile(path) as packed:
            bounded(sum(member.file_size for member in packed.infolist()), most, path)
            for member in packed.infolist():
                with packed.open(member) as file:
                    _check_declared(file, most, path)
        with path.open("rb") as handle, np.load(handle, allow_pickle=False) as archive:
            return {name: np.asarray(archive[name]) for name in archive.files}
    except UnreadableError:
        raise
    except (*BROKEN, NotImplementedError) as error:
        raise UnreadableError(f"{path} cannot be read: {error}") from error


def _check_declared(file: Any, most: int, path: Path) -> None:
    """Compare an array's header to the bound: NumPy makes room for it before it reads."""
    version = np.lib.format.read_magic(file)
    read = np.lib.format.read_array_header_1_0
    shape, _, kind = (read if version == (1, 0) else np.lib.format.read_array_header_2_0)(file)
    if kind.hasobject:
        raise UnreadableError(f"{path} must contain plain numbers, got pickled objects")
    bounded(math.prod(shape) * kind.itemsize, most, path)


def read_list(
    path: Path, *, delimiter: str = ",", text: Sequence[str] = (), titles: Sequence[str] = ()
) -> pa.Table:
    """A file of columns, packed by gzip or not; it must have a row, and a header or given titles.

    Columns named as text stay so, though all their cells look like numbers, as ``0X1F`` does.
    """
    try:
        source = pa.BufferReader(gunzipped(path, _MOST)) if path.suffix == ".gz" else path
        table = csv.read_csv(
            source,
            read_options=csv.ReadOptions(column_names=list(titles)),
            parse_options=csv.ParseOptions(delimiter=delimiter),
            convert_options=csv.ConvertOptions(column_types=dict.fromkeys(text, pa.string())),
        )
        names = table.column_names  # fails where they are no text
    except (OSError, UnicodeDecodeError, pa.ArrowException) as error:
        raise InputError(f"{path} cannot be read: {error}") from error
    if table.num_rows == 0 or not names:
        raise InputError(f"{path} must have at least one row, got none")
    return table


def column(table: pa.Table, title: str, path: Path) -> npt.NDArray[np.str_]:
    """A column of text without missing values."""
    return np.asarray(_cast(table, title, path, pa.string(), "text"), dtype=np.str_)


def numbers(table: pa.Table, title: str, path: Path) -> FloatArray:
    """A column of numbers without missing values."""
    return np.asarray(_cast(table, title, path, pa.float64(), "numbers"), dtype=np.float64)


def _cast(table: pa.Table, title: str, path: Path, kind: pa.DataType, what: str) -> Any:
    if title not in table.column_names:
        raise InputError(
            f"{path} must have the column {title!r}, got {', '.join(table.column_names)}"
        )
    if missing := table[title].null_count:
        raise InputError(f"{path}: column {title!r} must have no missing value, got {missing}")
    try:
        return table[title].cast(kind).to_numpy()
    except pa.ArrowException as error:
        raise InputError(f"{path}: column {title!r} must contain {what}: {error}") from error
