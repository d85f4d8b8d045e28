"""Tables written whole or not at all."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

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


def unformulaic(text: str) -> str:
    """A text that no spreadsheet runs: an apostrophe goes before what would begin a formula."""
    return f"'{text}" if text.startswith(_FORMULA_STARTS) else text


_FORMULA_STARTS: Final = tuple("=+-@\t\r\n＝＋－＠")
_NUMBER: Final = re.compile(r"[+-]?\d+([.,]\d+)?([eE][+-]?\d+)?", re.ASCII)
_BATCH: Final = 1 << 14  # rows that are text at once


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
    with replacing(file) as temporary:
        try:
            if ending in PARQUET_ENDINGS:
                pq.write_table(table, temporary, write_page_checksum=True)
            elif ending in ARROW_ENDINGS:
                feather.write_feather(table, os.fspath(temporary))
            else:
                mark = "\t" if ending == ".tsv" else ";" if decimal == "," else ","
                _write_text(table, temporary, COMPRESSION.get(compression), mark, csv_safe, bare)
        except (pa.ArrowException, ValueError, TypeError) as error:
            raise InputError(f"{str(file)!r} cannot be written: {error}") from error


def _write_text(
    table: pa.Table,
    path: Path,
    compression: str | None,
    mark: str,
    csv_safe: bool,
    bare: bool,
) -> None:
    plain = [
        column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column
        for column in table.columns
    ]
    names = table.column_names
    if csv_safe:
        plain = [_safe(column) for column in plain]
        names = [unformulaic(name) for name in names]
    with pa.output_stream(os.fspath(path), compression=compression) as stream:
        if not bare:
            options = pacsv.WriteOptions(delimiter=mark)
            pacsv.write_csv(pa.table(plain, names=names), stream, options)
            return
        stream.write(_bare_lines([pa.array([name]) for name in names], mark, ",;\t|"))
        for batch in pa.table(plain, names=names).to_batches(_BATCH):
            stream.write(_bare_lines(batch.columns, mark))


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
