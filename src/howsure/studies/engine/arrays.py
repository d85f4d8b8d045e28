"""Arrays by name as the bytes of one file, which NumPy reads, and back; nothing is pickled."""

from __future__ import annotations

import io
import re
import zipfile
import zlib
from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from howsure.core.errors import InputError

_NAME: Final = re.compile(r"[\w/-]+")
_KINDS: Final = "biufc"
_SAMPLE: Final = 1 << 16  # bytes that tell whether an array is worth compressing
_WORTH: Final = 0.8  # compressed to at most this share


def arrays_bytes(arrays: Mapping[str, npt.NDArray[Any]]) -> bytes:
    """Arrays as the bytes of an ``.npz`` file.

    Parameters
    ----------
    arrays : mapping of str to array
        By name: numbers or booleans, of any shape.

    Returns
    -------
    bytes
        The same for the same arrays. An array is compressed if a sample of it shrinks to 80 % or
        less: masks and counts do, the outputs of a network do not.

    Raises
    ------
    InputError
        If a name has other signs than letters, digits, ``_``, ``-`` and ``/``, or an array holds
        something else.

    Examples
    --------
    >>> held = arrays_bytes({"covered": np.ones(1000, dtype=bool)})
    >>> arrays_of(held, "held")["covered"].shape, len(held) < 500
    ((1000,), True)
    """
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w") as archive:
        for name, given in arrays.items():
            if not isinstance(name, str) or not _NAME.fullmatch(name):
                raise InputError(
                    f"names of arrays must be letters, digits, '_', '-' and '/', got {name!r}"
                )
            array = np.asarray(given)
            if array.dtype.kind not in _KINDS:
                raise InputError(
                    f"array {name!r} must hold numbers or booleans, got type {array.dtype}"
                )
            entry = zipfile.ZipInfo(f"{name}.npy")
            entry.compress_type = zipfile.ZIP_DEFLATED if _shrinks(array) else zipfile.ZIP_STORED
            with archive.open(entry, "w", force_zip64=True) as file:
                np.lib.format.write_array(file, array, allow_pickle=False)
    return sink.getvalue()


def arrays_of(data: bytes, title: str) -> dict[str, npt.NDArray[Any]]:
    """The arrays that a file's bytes hold.

    Parameters
    ----------
    data : bytes
        Of `arrays_bytes`.
    title : str
        What a message calls the file.

    Returns
    -------
    dict of str to ndarray

    Raises
    ------
    InputError
        If they are not those of a file of arrays.
    """
    try:
        with np.lib.npyio.NpzFile(io.BytesIO(data), allow_pickle=False) as held:
            return {name: held[name] for name in held.files}
    except (OSError, ValueError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        raise InputError(f"{title} is not a readable file of arrays: {error}") from error


def _shrinks(array: npt.NDArray[Any]) -> bool:
    """Whether the first bytes of an array are worth compressing."""
    count = _SAMPLE // max(array.itemsize, 1)
    sample = array.flat[:count].tobytes()
    return len(zlib.compress(sample, 1)) <= _WORTH * len(sample) if sample else False
