"""Columns between NumPy and Arrow by ways that do not load pandas, which is slow."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from howsure.core.errors import InputError


def numpy_of(column: pa.ChunkedArray) -> npt.NDArray[Any]:
    """A column as an array: as `to_numpy` makes it, where missing numbers are NaN.

    >>> numpy_of(pa.chunked_array([[1.5, None], [2.5]]))
    array([1.5, nan, 2.5])
    """
    plain = column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
    if pa.types.is_floating(plain.type):
        if plain.null_count:
            plain = pc.coalesce(plain, arrow_of(np.array([np.nan])).cast(plain.type)[0])
        return np.from_dlpack(plain)
    if pa.types.is_integer(plain.type) and not plain.null_count:
        return np.from_dlpack(plain)
    return np.asarray(column.to_numpy())


def arrow_of(numbers: npt.NDArray[Any]) -> pa.Array:
    """Numbers as a column that misses nothing; NaN stays NaN.

    >>> arrow_of(np.array([1.5, 2.5])).to_pylist()
    [1.5, 2.5]
    """
    held = np.ascontiguousarray(numbers)
    kind = pa.from_numpy_dtype(held.dtype)
    return pa.Array.from_buffers(kind, len(held), [None, pa.py_buffer(held)])


def words_of(texts: Sequence[str], kind: pa.DataType | None = None) -> pa.Array:
    """Texts as a column of some type of text.

    >>> words_of(["a", "", "bc"]).to_pylist()
    ['a', '', 'bc']
    """
    parts = [text.encode() for text in texts]
    starts = np.cumsum([0, *map(len, parts)], dtype=np.int64)
    buffers = [None, pa.py_buffer(starts), pa.py_buffer(b"".join(parts))]
    made = pa.Array.from_buffers(pa.large_string(), len(parts), buffers)
    return made if kind is None else made.cast(kind)


def missing_of(kind: pa.DataType) -> pa.Scalar:
    """What is missing of a type."""
    return pa.nulls(1, kind)[0]


def written_out(table: pa.Table) -> pa.Table:
    """The table without dictionaries."""
    for place, column in enumerate(table.columns):
        if pa.types.is_dictionary(column.type):
            name = table.column_names[place]
            table = table.set_column(place, name, column.cast(column.type.value_type))
    return table


def together(tables: Sequence[pa.Table]) -> pa.Table:
    """The rows of all; an error where a column is of types that do not go together."""
    try:
        return pa.concat_tables(tables, promote_options="permissive")
    except pa.ArrowException as error:
        raise InputError(
            f"all parts must hold columns of types that go together, got {error}"
        ) from error


def is_text(kind: pa.DataType) -> bool:
    """Whether a type is of text, long or short."""
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))
