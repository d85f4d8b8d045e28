"""Files of tables, opened once: which reader an ending asks for, and the binary ones."""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from howsure.core.errors import InputError
from howsure.core.text import quoted
from howsure.inputs.roles import Kinds
from howsure.inputs.source import COMPRESSION, WORKBOOK_ENDINGS, Source, name_parts, refusing

TEXT_ENDINGS = (".csv", ".tsv")
PARQUET_ENDINGS = (".parquet", ".pq")
ARROW_ENDINGS = (".arrow", ".feather", ".ipc")
NETCDF = ".nc"
JSON_LINES = (".jsonl", ".ndjson")
READ_ENDINGS = (NETCDF, *WORKBOOK_ENDINGS, *JSON_LINES)
"""Of files that are read whole by their own names: never written, nor parts of a larger table."""
_ZIP = "zip; if it is a spreadsheet, name it .xlsx"
_SIGNS = (
    (b"PAR1", "Parquet"),
    (b"ARROW1", "Arrow"),
    (b"FEA1", "Feather version 1, which is outdated: save it again"),
    (b"\x1f\x8b", "gzip"),
    (b"\x28\xb5\x2f\xfd", "zstd"),
    (b"\x89HDF\r\n\x1a\n", "netCDF"),
    (b"CDF", "netCDF of version 3, which has no groups: save it as version 4"),
    (b"PK\x03\x04", _ZIP),
    (b"\xd0\xcf\x11\xe0", "an old spreadsheet: save it as .xlsx or .csv"),
    (b"%PDF", "PDF"),
)


_OTHER_WORKBOOKS = (".xls", ".xlsb", ".ods", ".numbers")


def table_form(path: str | os.PathLike[str], *, further: Sequence[str] = ()) -> tuple[str, str]:
    """The ending of a file that may hold a table, and that of its compression if any.

    The error states what else may be given.
    """
    _, ending, packed = name_parts(Path(path))
    endings = TEXT_ENDINGS if packed else (*TEXT_ENDINGS, *PARQUET_ENDINGS, *ARROW_ENDINGS)
    if ending not in endings:
        anew = "; save the workbook as .xlsx" if ending in _OTHER_WORKBOOKS else ""
        raise InputError(
            f"{path}: the ending must be one of {', '.join(TEXT_ENDINGS)} (also with .gz or .zst), "
            f"{', '.join((*PARQUET_ENDINGS, *ARROW_ENDINGS, *further))}, got {Path(path).suffix!r}"
            f"{anew}"
        )
    return ending, packed


def source_form(path: str | os.PathLike[str]) -> tuple[str, str]:
    """The same of a file that is read, which may be of a kind that is never written."""
    _, ending, _ = name_parts(Path(path))
    return (ending, "") if ending in READ_ENDINGS else table_form(path, further=READ_ENDINGS)


class ParquetTable(Source):
    """An open Parquet file, or some row groups; only the asked columns leave the disk."""

    def __init__(
        self, title: str, file: pa.NativeFile, groups: Sequence[int] | None, *, ahead: bool
    ) -> None:
        self.title = title
        self._file = file
        self._groups = groups
        self._ahead = ahead  # whether what is asked for is fetched in few large parts
        with refusing(title), pq.ParquetFile(file) as parts:
            self._metadata = parts.metadata
            self._schema = parts.schema_arrow
            of_pandas = (self._schema.pandas_metadata or {}).get("index_columns", ())
            index = [name for name in of_pandas if name in self._schema.names]
            self.names = (*index, *(name for name in self._schema.names if name not in index))
        self.check_names()

    def read(self, kinds: Kinds) -> pa.Table:
        """The named columns; labels that are text come as codes."""
        check_flat(self._schema, kinds, self.title)
        return self._columns(kinds, list(kinds)).select(list(kinds))

    def batches(self, kinds: Kinds, rows: int) -> Generator[pa.Table]:
        """The rows of `read`, so many at a time, by one thread."""
        check_flat(self._schema, kinds, self.title)
        with refusing(self.title), self._opened(kinds) as parts:
            for batch in parts.iter_batches(
                rows, row_groups=self._groups, columns=list(kinds), use_threads=False
            ):
                batch.validate(full=True)
                yield pa.Table.from_batches([batch])

    def read_all(self) -> pa.Table:
        """Every column, in the order of the file."""
        return self._columns({}, None)

    def _columns(self, kinds: Kinds, names: list[str] | None) -> pa.Table:
        with refusing(self.title), self._opened(kinds) as parts:
            groups = range(parts.num_row_groups) if self._groups is None else self._groups
            table = parts.read_row_groups(list(groups), columns=names)
            table.validate(full=True)
        return some_rows(table, self.title)

    def _opened(self, kinds: Kinds) -> pq.ParquetFile:
        texts = [
            name
            for name, kind in kinds.items()
            if kind == "label" and pa.types.is_string(self._schema.field(name).type)
        ]
        return pq.ParquetFile(
            self._file,
            metadata=self._metadata,
            read_dictionary=texts,
            page_checksum_verification=True,
            pre_buffer=self._ahead,
        )


class ArrowTable(Source):
    """An open Arrow (Feather version 2) file, some batches of one, or an Arrow stream."""

    def __init__(self, title: str, file: pa.NativeFile, groups: Sequence[int] | None) -> None:
        self.title = title
        self._file = file
        self._groups = groups
        with refusing(title), arrow_reader(file) as reader:
            self._schema = reader.schema
            self.names = tuple(self._schema.names)
        self.check_names()

    def read(self, kinds: Kinds) -> pa.Table:
        """The named columns."""
        with refusing(self.title), self._opened(kinds) as reader:
            table = pa.Table.from_batches(self._batches(reader), reader.schema)
            table.validate(full=True)
        return some_rows(table.select(list(kinds)), self.title)

    def batches(self, kinds: Kinds, rows: int) -> Generator[pa.Table]:
        """The rows of `read`, batch by batch of the file."""
        with refusing(self.title), self._opened(kinds) as reader:
            for batch in self._batches(reader):
                batch.validate(full=True)
                if batch.num_rows:
                    yield pa.Table.from_batches([batch]).select(list(kinds))

    def _opened(self, kinds: Kinds) -> Any:
        check_flat(self._schema, kinds, self.title)
        return arrow_reader(self._file, [self.names.index(name) for name in kinds])

    def _batches(self, reader: Any) -> Iterator[pa.RecordBatch]:
        if not hasattr(reader, "num_record_batches"):
            return iter(reader)
        every = range(reader.num_record_batches)
        return map(reader.get_batch, every if self._groups is None else self._groups)


def arrow_reader(handle: pa.NativeFile, places: Sequence[int] | None = None) -> Any:
    """The reader of an Arrow file or stream, of some of its columns."""
    handle.seek(0)
    is_file = handle.read(6) == b"ARROW1"
    handle.seek(0)
    options = pa.ipc.IpcReadOptions(included_fields=list(places or ()))
    return (pa.ipc.open_file if is_file else pa.ipc.open_stream)(handle, options=options)


def check_flat(schema: pa.Schema, wanted: Kinds, title: str) -> None:
    """Raise `InputError` if a column has lists or records, except lists of a vector."""
    for name, wish in wanted.items():
        kind = schema.field(name).type
        listed = wish in ("vector", "sets") and is_list(kind)
        if wish != "key" and pa.types.is_nested(kind) and not listed:
            raise InputError(
                f"{title}: column {quoted(name)} must have one value per row, got nested type "
                f"{kind}"
            )


def is_list(kind: pa.DataType) -> bool:
    """Whether a type holds lists, of one length or of several."""
    tests = (pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list)
    return any(test(kind) for test in tests)


def some_rows(table: pa.Table, title: str) -> pa.Table:
    """The table, if it has rows."""
    if table.num_rows == 0:
        raise InputError(f"{title}: the table has columns but no rows")
    return table


def check_sign(start: bytes, title: str, ending: str, packed: str) -> None:
    """Raise `InputError` where the first bytes are those of another kind of file."""
    if not start:
        raise InputError(f"{title}: the file is empty")
    content = next((name for sign, name in _SIGNS if start.startswith(sign)), None)
    expected: tuple[str | None, ...] = (None,)
    if packed:
        expected = (COMPRESSION[packed],)
    elif ending in PARQUET_ENDINGS:
        expected = ("Parquet",)
    elif ending in ARROW_ENDINGS:
        expected = ("Arrow", None)
    elif ending == NETCDF:
        expected = ("netCDF",)
    elif ending in WORKBOOK_ENDINGS:
        expected = (_ZIP,)
    if content not in expected:
        claim = "compressed " * bool(packed) + f"{ending} file"
        raise InputError(
            f"{title}: the ending says {claim}, but the content is {content or 'something else'}"
        )
