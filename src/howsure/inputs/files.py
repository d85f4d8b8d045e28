"""Files of tables: which reader an ending asks for, and the binary ones."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from howsure.core.errors import InputError
from howsure.inputs.source import Kind, Source, quoted, refusing
from howsure.inputs.text import COMPRESSION, TextFile

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


def open_table(
    path: str | os.PathLike[str], *, encoding: str | None = None, decimal: str = "."
) -> Source:
    """Open a file of a table by its ending, and read its column names.

    Parameters
    ----------
    path : path
        A .csv or .tsv (also .gz, .zst), .parquet, .pq, .arrow, .feather or .ipc file.
    encoding : str, optional
        Encoding of a text file; UTF-8, or what its byte order mark says, if omitted.
    decimal : {".", ","}
        Decimal mark of a text file.

    Returns
    -------
    Source
        Its names, and a way to read some columns.

    Raises
    ------
    InputError
        If there is no such file, it is a folder or empty, its ending is unknown, its content is
        not what the ending says, or its column names repeat.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "made.csv"
    >>> _ = path.write_text("y,pred\\n1,2\\n")
    >>> open_table(path).names
    ('y', 'pred')
    """
    title = str(path)
    with refusing(title):
        file = Path(path)
        compressed = file.suffix.lower() in COMPRESSION
        ending = (Path(file.stem) if compressed else file).suffix.lower()
        if file.is_dir():
            raise InputError(f"{title}: a file is needed, got a folder")
        if not file.exists():
            raise InputError(f"{title}: there is no such file")
        if not file.is_file():
            raise InputError(f"{title}: a regular file is needed")
        known = TEXT_ENDINGS if compressed else (*TEXT_ENDINGS, *PARQUET_ENDINGS, *ARROW_ENDINGS)
        if ending not in known:
            raise InputError(
                f"{title}: the ending must be one of {', '.join(TEXT_ENDINGS)} (also with .gz or "
                f".zst), {', '.join((*PARQUET_ENDINGS, *ARROW_ENDINGS))}, got {file.suffix!r}"
            )
        _check_signs(file, compressed=compressed, ending=ending)
        if ending in TEXT_ENDINGS:
            return TextFile(file, encoding, decimal)
        return ParquetTable(file) if ending in PARQUET_ENDINGS else ArrowTable(file)


class ParquetTable(Source):
    """A Parquet file; only the columns that are asked for leave the disk."""

    def __init__(self, path: Path) -> None:
        self.title = str(path)
        self.folder = path.parent
        self._path = path
        with refusing(self.title), pq.ParquetFile(path) as file:
            self._schema = file.schema_arrow
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
        with (
            refusing(self.title),
            pq.ParquetFile(
                self._path, read_dictionary=texts, page_checksum_verification=True
            ) as file,
        ):
            table = file.read(columns=list(kinds)).select(list(kinds))
            table.validate(full=True)
        return some_rows(table, self.title)


class ArrowTable(Source):
    """An Arrow (Feather version 2) file, or an Arrow stream."""

    def __init__(self, path: Path) -> None:
        self.title = str(path)
        self.folder = path.parent
        self._path = path
        with refusing(self.title), self._open() as reader:
            self._schema = reader.schema
            self.names = tuple(self._schema.names)
        self.check_names()

    def read(self, kinds: Mapping[str, Kind]) -> pa.Table:
        """The named columns."""
        check_flat(self._schema, kinds, self.title)
        places = [self.names.index(name) for name in kinds]
        with (
            refusing(self.title),
            self._open(pa.ipc.IpcReadOptions(included_fields=places)) as reader,
        ):
            table = reader.read_all().select(list(kinds))
            table.validate(full=True)
        return some_rows(table, self.title)

    def _open(self, options: Any = None) -> AbstractContextManager[Any]:
        with self._path.open("rb") as handle:
            whole = handle.read(6) == b"ARROW1"
        file = pa.OSFile(os.fspath(self._path))
        reader = pa.ipc.open_file if whole else pa.ipc.open_stream
        opened: AbstractContextManager[Any] = reader(file, options=options)
        return opened


def check_flat(schema: pa.Schema, wanted: Mapping[str, Kind], title: str) -> None:
    """Raise `InputError` where a column holds lists or records, lists of a vector aside."""
    for name, wish in wanted.items():
        kind = schema.field(name).type
        if pa.types.is_nested(kind) and not (wish == "vector" and is_list(kind)):
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


def _check_signs(path: Path, *, compressed: bool, ending: str) -> None:
    """Raise `InputError` where the first bytes are those of another kind of file."""
    with path.open("rb") as handle:
        start = handle.read(8)
    if not start:
        raise InputError(f"{path}: the file is empty")
    found = next((name for sign, name in _SIGNS if start.startswith(sign)), None)
    expected: tuple[str | None, ...] = (None,)
    if compressed:
        expected = ("gzip",) if path.suffix.lower() == ".gz" else ("zstd",)
    elif ending in PARQUET_ENDINGS:
        expected = ("Parquet",)
    elif ending in ARROW_ENDINGS:
        expected = ("Arrow", None)
    if found not in expected:
        says = "compressed " * compressed + f"{ending} file"
        raise InputError(
            f"{path}: the ending says {says}, but the content is {found or 'something else'}"
        )
