"""Tables as Arrow and Parquet, which pandas, Polars, DuckDB and R read; arrays as NumPy's files.

Nothing is pickled.
"""

from __future__ import annotations

import io
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
from pyarrow import parquet

from howsure.core.arrays import AnyArray
from howsure.core.errors import InputError
from howsure.core.records import Direction, Notion, Record, ResultTable

_FIELDS: Final = (
    *("metric", "coverage", "value", "standard_error", "lower", "upper", "confidence"),
    *("n", "target", "null", "direction", "notion", "units", "reason"),
)
_KINDS: Final = "biufc"
_SAMPLE: Final = 1 << 16  # bytes that tell whether an array is worth compressing
_WORTH: Final = 0.8  # compressed to at most this share


def to_arrow(table: ResultTable, keys: Mapping[str, str | int] | None = None) -> pa.Table:
    """An Arrow table of a table's columns, after columns that say one thing in every row.

    Parameters
    ----------
    table : ResultTable
        What is to be kept.
    keys : mapping of str to str or int, optional
        Columns that are the same in every row, such as the method's name.

    Returns
    -------
    pyarrow.Table
        Text of the keys is coded as a dictionary, so that repeats cost nothing.

    Raises
    ------
    InputError
        If a key is also a column, or columns differ in length.

    Examples
    --------
    >>> import numpy as np
    >>> table = ResultTable(name="records", columns={"value": np.array([0.9, 0.8])})
    >>> to_arrow(table, {"method": "line"}).column_names
    ['method', 'value']
    """
    twice = set(keys or {}) & set(table.columns)
    if twice:
        raise InputError(f"columns must not have the names of keys, got {', '.join(sorted(twice))}")
    columns = {name: _arrow(np.asarray(column)) for name, column in table.columns.items()}
    lengths = {len(column) for column in columns.values()}
    if len(lengths) > 1:
        raise InputError(f"columns of table {table.name!r} must have one length, got {lengths}")
    return pa.table({**_constant(keys or {}, lengths.pop() if lengths else 0), **columns})


def parquet_bytes(table: pa.Table, split: Sequence[str] = (), level: int | None = None) -> bytes:
    """A table as the bytes of a Parquet file; measured numbers rarely repeat, so have no codes.

    Of columns of `split`, by their whole path, the first bytes of all numbers stand together, and
    so on: numbers alike in size are smaller so. `level` is that of the compression.
    """
    sink = io.BytesIO()
    coded = [field.name for field in table.schema if not pa.types.is_floating(field.type)]
    parquet.write_table(
        table,
        sink,
        compression="zstd",
        compression_level=level,
        use_dictionary=coded,
        column_encoding=dict.fromkeys(split, "BYTE_STREAM_SPLIT"),
    )
    return sink.getvalue()


def parquet_table(data: bytes, title: str, columns: Sequence[str] | None = None) -> pa.Table:
    """The table that a Parquet file's bytes hold: of these columns, those that it has, or all."""
    try:
        file = parquet.ParquetFile(pa.BufferReader(data))  # `read_table` loads pandas
        return file.read(columns, use_threads=False)
    except (pa.ArrowException, OSError) as error:
        raise InputError(f"{title} is not a readable Parquet file: {error}") from error


def stacked(tables: Sequence[pa.Table]) -> pa.Table:
    """Tables one below the other; a column that one lacks is missing in its rows."""
    return pa.concat_tables(tables, promote_options="permissive") if tables else pa.table({})


def records_table(records: Sequence[Record], keys: Mapping[str, str | int]) -> pa.Table:
    """Records as a table: the keys, then one column a field.

    Parameters
    ----------
    records : sequence of Record
        One row each.
    keys : mapping of str to str or int
        Columns that are the same in every row.

    Returns
    -------
    pyarrow.Table

    Examples
    --------
    >>> found = records_table([Record(metric="mae", value=1.5)], {"method": "line"})
    >>> found.column_names[:4]
    ['method', 'metric', 'coverage', 'value']
    """
    columns: dict[str, Any] = {
        name: np.array([_plain(getattr(record, name)) for record in records]) for name in _FIELDS
    }
    return to_arrow(ResultTable(name="records", columns=columns), keys)


def records_of(table: pa.Table) -> tuple[Record, ...]:
    """The records of a study's table, one a row: the method as the model, world and seed as group.

    The seed is left out where there is one.
    """
    rows = table.to_pylist()
    seeds = len({row["seed"] for row in rows}) > 1
    records = []
    for row in rows:
        given = {name: row[name] for name in _FIELDS if row.get(name) is not None}
        given["direction"] = Direction(given.get("direction", Direction.NONE))
        given["notion"] = Notion(given.get("notion", Notion.MARGINAL))
        group = f"world={row['world']}" + (f", seed={row['seed']}" if seeds else "")
        named = {"model": row["method"], "group": group, "options": {"world": row["world"]}}
        records.append(Record(**given, **named))
    return tuple(records)


def _plain(value: float | str) -> float | str:
    return str(value) if isinstance(value, str) else float(value)


def _constant(keys: Mapping[str, str | int], rows: int) -> dict[str, pa.Array]:
    columns = {}
    for name, value in keys.items():
        if isinstance(value, str):
            codes = _arrow(np.zeros(rows, dtype=np.int32))
            columns[name] = pa.DictionaryArray.from_arrays(codes, _arrow(np.array([value])))
        else:
            columns[name] = _arrow(np.full(rows, value, dtype=np.int64))
    return columns


def _arrow(column: AnyArray) -> pa.Array:
    """A column as Arrow's; numbers and text pass by their bytes, for `pa.array` loads pandas."""
    if column.ndim != 1 or not column.dtype.isnative or column.dtype.kind not in "iufU":
        return pa.array(column)
    if column.dtype.kind == "U":
        texts = [text.encode() for text in column.tolist()]
        ends = np.cumsum([0, *map(len, texts)], dtype=np.int32)
        return pa.StringArray.from_buffers(
            len(texts), pa.py_buffer(ends), pa.py_buffer(b"".join(texts))
        )
    data = pa.py_buffer(np.ascontiguousarray(column))
    return pa.Array.from_buffers(pa.from_numpy_dtype(column.dtype), len(column), [None, data])


def arrays_bytes(arrays: Mapping[str, AnyArray]) -> bytes:
    """Arrays as the bytes of an ``.npz`` file."""
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w") as archive:
        for name, given in arrays.items():
            if not (isinstance(name, str) and name and name.isprintable()) or name.endswith(".npy"):
                raise InputError(
                    f"names of arrays must be printable text without the end .npy, got {name!r}"
                )
            array = np.asarray(given)
            if array.dtype.kind not in _KINDS:
                raise InputError(
                    f"array {name!r} must contain numbers or booleans, got type {array.dtype}"
                )
            entry = zipfile.ZipInfo(f"{name}.npy")
            entry.compress_type = zipfile.ZIP_DEFLATED if _shrinks(array) else zipfile.ZIP_STORED
            with archive.open(entry, "w", force_zip64=True) as file:
                np.lib.format.write_array(file, array, allow_pickle=False)
    return sink.getvalue()


def arrays_of(data: bytes, title: str) -> dict[str, AnyArray]:
    """The arrays that a file's bytes hold."""
    try:
        with np.lib.npyio.NpzFile(io.BytesIO(data), allow_pickle=False) as archive:
            return {name: archive[name] for name in archive.files}
    except (OSError, ValueError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        raise InputError(f"{title} is not a readable file of arrays: {error}") from error


def _shrinks(array: AnyArray) -> bool:
    """Whether the first bytes of an array are worth compressing."""
    count = _SAMPLE // max(array.itemsize, 1)
    sample = array.flat[:count].tobytes()
    return len(zlib.compress(sample, 1)) <= _WORTH * len(sample) if sample else False
