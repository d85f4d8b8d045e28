"""Tables written whole or not at all."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv
import pyarrow.feather as feather
import pyarrow.parquet as pq

from howsure.core.errors import InputError
from howsure.core.files import replacing
from howsure.inputs.files import ARROW_ENDINGS, PARQUET_ENDINGS, table_form
from howsure.inputs.frames import MappingTable
from howsure.inputs.source import COMPRESSION
from howsure.inputs.values import written_out


def unformulaic(text: str) -> str:
    """A text that no spreadsheet runs: an apostrophe goes before what would begin a formula."""
    return f"'{text}" if text.startswith(_FORMULA_STARTS) else text


_FORMULA_STARTS = tuple("=+-@\t\r\n＝＋－＠")
_NUMBER = re.compile(r"[+-]?\d+([.,]\d+)?([eE][+-]?\d+)?", re.ASCII)
# Rows that are text at once: 16,384 of ten cells are some 3 MB.
_ROWS_AT_ONCE = 1 << 14


def write_table(
    table: Mapping[str, Any] | pa.Table,
    path: str | os.PathLike[str],
    *,
    csv_safe: bool = False,
    bare: bool = False,
    decimal: str = ".",
) -> None:
    """Write a table to a file whose ending says the form.

    Data are written as they are: a text that a spreadsheet would take for a formula (one that
    starts with ``=``, ``+``, ``-`` or ``@``) is not altered, so what is read back is what was
    written. Write strangers' data that a spreadsheet shall open with ``csv_safe``.
    """
    file = Path(path)
    ending, compression = table_form(file)
    if not isinstance(table, pa.Table):
        source = MappingTable(table)
        table = source.read(dict.fromkeys(source.names, "any"))
    with replacing(file) as temporary, _refusing(file), ExitStack() as open_files:
        if ending in ARROW_ENDINGS:
            feather.write_feather(table, os.fspath(temporary))
        else:
            form = (ending, compression)
            _writer(open_files, temporary, form, table, csv_safe, bare, decimal)(table)


@contextmanager
def appending(
    path: Path, form: tuple[str, str], *, csv_safe: bool = False, bare: bool = False, decimal: str
) -> Iterator[Callable[[pa.Table], None]]:
    """Lend a function that writes tables of one schema one after the other to a file of a form.

    The file is as `write_table` makes it of all rows at once, but for its chunks, and for a
    dictionary, which in an Arrow file is written out: there its labels must be known at the start.
    """
    write: Any = None
    with ExitStack() as open_files:

        def append(table: pa.Table) -> None:
            nonlocal write
            if form[0] in ARROW_ENDINGS:
                table = written_out(table)
            with _refusing(path):
                write = write or _writer(open_files, path, form, table, csv_safe, bare, decimal)
                write(table)

        yield append


def _writer(
    open_files: ExitStack,
    path: Path,
    form: tuple[str, str],
    first: pa.Table,
    csv_safe: bool,
    bare: bool,
    decimal: str,
) -> Any:
    """What writes tables such as the first to a file of a form, which is open until the stack is.

    Parquet has checksums, and no dictionary of fractions: hardly two are equal, and it takes long.
    """
    schema, file = first.schema, os.fspath(path)
    ending, compression = form
    if ending in PARQUET_ENDINGS:
        coded = [field.name for field in schema if not pa.types.is_floating(field.type)]
        parquet = pq.ParquetWriter(file, schema, write_page_checksum=True, use_dictionary=coded)
        return open_files.enter_context(parquet).write_table
    if ending in ARROW_ENDINGS:
        options = pa.ipc.IpcWriteOptions(compression="lz4")
        return open_files.enter_context(pa.ipc.new_file(file, schema, options=options)).write_table
    stream = pa.output_stream(file, compression=COMPRESSION.get(compression))
    mark = "\t" if ending == ".tsv" else ";" if decimal == "," else ","
    lines = _lines(first, open_files.enter_context(stream), mark, csv_safe, bare)
    return open_files.enter_context(lines)


@contextmanager
def _lines(
    first: pa.Table, stream: Any, mark: str, csv_safe: bool, bare: bool
) -> Iterator[Callable[[pa.Table], None]]:
    """Write the names of the first table, and lend what writes the rows of all."""

    def plain(table: pa.Table) -> pa.Table:
        decoded = written_out(table)
        if not csv_safe:
            return decoded
        names = [unformulaic(name) for name in table.column_names]
        return pa.table([_safe(column) for column in decoded.columns], names=names)

    def bare_rows(table: pa.Table) -> None:
        for batch in plain(table).to_batches(_ROWS_AT_ONCE):
            stream.write(_bare_lines(batch.columns, mark))

    start = plain(first.slice(0, 0))
    if bare:
        stream.write(_bare_lines([pa.array([name]) for name in start.column_names], mark, ",;\t|"))
        yield bare_rows
        return
    options = pacsv.WriteOptions(delimiter=mark)
    with pacsv.CSVWriter(stream, start.schema, write_options=options) as writer:
        yield lambda table: writer.write_table(plain(table))


@contextmanager
def _refusing(path: Path) -> Iterator[None]:
    try:
        yield
    except (pa.ArrowException, ValueError, TypeError) as error:
        raise InputError(f"{str(path)!r} cannot be written: {error}") from error


def _bare_lines(columns: Sequence[pa.Array], mark: str, marks: str = "") -> bytes:
    """Rows as lines, whose cells are quoted where they hold what parts cells or rows.

    In a line of names, any mark that may part cells: readers look there for the one that does.
    """
    cells = []
    for column in columns:
        text = column.cast(pa.string())
        parts = pc.match_substring_regex(text, f'["\r\n{mark}{marks}]')
        inner = pc.replace_substring(text, '"', '""')
        quoted = pc.binary_join_element_wise('"', inner, '"', "")
        cells.append(pc.if_else(parts, quoted, text))
    lines = pc.binary_join_element_wise(*cells, mark, null_handling="replace", null_replacement="")
    return "".join(f"{line}\n" for line in lines.to_pylist()).encode()


def _safe(column: pa.ChunkedArray) -> pa.ChunkedArray:
    kind = column.type
    if not (pa.types.is_string(kind) or pa.types.is_large_string(kind)):
        return column
    texts = [
        text if text is None or _NUMBER.fullmatch(text) else unformulaic(text)
        for text in column.to_pylist()
    ]
    return pa.chunked_array([pa.array(texts, kind)])
