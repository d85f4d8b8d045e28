"""Files of tables, opened once: which reader an ending asks for, and the binary ones."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from howsure.core.errors import InputError
from howsure.inputs.roles import Kind
from howsure.inputs.source import COMPRESSION, Source, name_parts, quoted, refusing
from howsure.inputs.text import TextFile

TEXT_ENDINGS: Final = (".csv", ".tsv")
PARQUET_ENDINGS: Final = (".parquet", ".pq")
ARROW_ENDINGS: Final = (".arrow", ".feather", ".ipc")
_SIGNS: Final = (
    (b"PAR1", "Parquet"),
    (b"ARROW1", "Arrow"),
    (b"FEA1", "Feather version 1, which is no longer written: save it anew"),
    (b"\x1f\x8b", "gzip"),
    (b"\x28\xb5\x2f\xfd", "zstd"),
    (b"PK\x03\x04", "zip, as a spreadsheet is: save it as CSV"),
    (b"\xd0\xcf\x11\xe0", "an old spreadsheet: save it as CSV"),
    (b"%PDF", "PDF"),
)


def table_form(path: str | os.PathLike[str]) -> tuple[str, str]:
    """The ending of a file that may hold a table, and that of its compression if any."""
    _, ending, packed = name_parts(Path(path))
    known = TEXT_ENDINGS if packed else (*TEXT_ENDINGS, *PARQUET_ENDINGS, *ARROW_ENDINGS)
    if ending not in known:
        raise InputError(
            f"{path}: the ending must be one of {', '.join(TEXT_ENDINGS)} (also with .gz or .zst), "
            f"{', '.join((*PARQUET_ENDINGS, *ARROW_ENDINGS))}, got {Path(path).suffix!r}"
        )
    return ending, packed


def open_table(
    path: str | os.PathLike[str], *, encoding: str | None = None, decimal: str = "."
) -> Source:
    """Open a file of a table by its ending, and read its column names."""
    title = str(path)
    with refusing(title):
        file = Path(path)
        if file.is_dir():
            raise InputError(f"{title}: a file is needed, got a folder")
        if not file.exists():
            raise InputError(f"{title}: there is no such file")
        if not file.is_file():
            raise InputError(f"{title}: a regular file is needed")
        ending, packed = table_form(path)
        handle = pa.OSFile(os.fspath(file))
        check_sign(handle.read(8), title, ending, packed)
        if ending in TEXT_ENDINGS:
            return TextFile(file, handle, encoding, decimal)
        return (ParquetTable if ending in PARQUET_ENDINGS else ArrowTable)(file, handle)


class ParquetTable(Source):
    """An open Parquet file; only the columns that are asked for leave the disk."""

    def __init__(self, path: Path, file: pa.NativeFile) -> None:
        self.title = str(path)
        self.folder = path.parent
        self._file = file
        with refusing(self.title), pq.ParquetFile(file) as parts:
            self._schema = parts.schema_arrow
            self.names = tuple(self._schema.names)
        self.check_names()

    def read(self, kinds: Mapping[str, Kind]) -> pa.Table:
        """The named columns; labels that are text come as codes."""
        check_flat(self._schema, kinds, self.title)
        texts = [
            name
            for name, kind in kinds.items()
            if kind == "label" and pa.types.is_string(self._schema.field(name).type)
        ]
        return self._columns(texts, list(kinds)).select(list(kinds))

    def whole(self) -> pa.Table:
        """Every column."""
        return self._columns([], None)

    def _columns(self, texts: list[str], names: list[str] | None) -> pa.Table:
        with (
            refusing(self.title),
            pq.ParquetFile(
                self._file, read_dictionary=texts, page_checksum_verification=True, pre_buffer=False
            ) as parts,
        ):
            table = parts.read(columns=names)
            table.validate(full=True)
        return some_rows(table, self.title)


class ArrowTable(Source):
    """An open Arrow (Feather version 2) file, or an Arrow stream."""

    def __init__(self, path: Path, file: pa.NativeFile) -> None:
        self.title = str(path)
        self.folder = path.parent
        self._file = file
        with refusing(self.title), self._open() as reader:
            self._schema = reader.schema
            self.names = tuple(self._schema.names)
        self.check_names()

    def read(self, kinds: Mapping[str, Kind]) -> pa.Table:
        """The named columns."""
        check_flat(self._schema, kinds, self.title)
        places = [self.names.index(name) for name in kinds]
        return self._columns(pa.ipc.IpcReadOptions(included_fields=places)).select(list(kinds))

    def whole(self) -> pa.Table:
        """Every column."""
        return self._columns(None)

    def _columns(self, options: Any) -> pa.Table:
        with refusing(self.title), self._open(options) as reader:
            table = reader.read_all()
            table.validate(full=True)
        return some_rows(table, self.title)

    def _open(self, options: Any = None) -> AbstractContextManager[Any]:
        self._file.seek(0)
        whole = self._file.read(6) == b"ARROW1"
        self._file.seek(0)
        reader = pa.ipc.open_file if whole else pa.ipc.open_stream
        opened: AbstractContextManager[Any] = reader(self._file, options=options)
        return opened


def check_flat(schema: pa.Schema, wanted: Mapping[str, Kind], title: str) -> None:
    """Raise `InputError` where a column holds lists or records, lists of a vector aside."""
    for name, wish in wanted.items():
        kind = schema.field(name).type
        listed = wish in ("vector", "sets") and is_list(kind)
        if wish != "key" and pa.types.is_nested(kind) and not listed:
            raise InputError(
                f"{title}: column {quoted(name)} must hold one value a row, got nested type {kind}"
            )


def is_list(kind: pa.DataType) -> bool:
    """Whether a type holds lists, of one length or of several."""
    tests = (pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list)
    return any(test(kind) for test in tests)


def some_rows(table: pa.Table, title: str) -> pa.Table:
    """The table, if it has rows."""
    if table.num_rows == 0:
        raise InputError(f"{title}: the table holds columns but no rows")
    return table


def check_sign(start: bytes, title: str, ending: str, packed: str) -> None:
    """Raise `InputError` where the first bytes are those of another kind of file."""
    if not start:
        raise InputError(f"{title}: the file is empty")
    found = next((name for sign, name in _SIGNS if start.startswith(sign)), None)
    expected: tuple[str | None, ...] = (None,)
    if packed:
        expected = (COMPRESSION[packed],)
    elif ending in PARQUET_ENDINGS:
        expected = ("Parquet",)
    elif ending in ARROW_ENDINGS:
        expected = ("Arrow", None)
    if found not in expected:
        says = "compressed " * bool(packed) + f"{ending} file"
        raise InputError(
            f"{title}: the ending says {says}, but the content is {found or 'something else'}"
        )
