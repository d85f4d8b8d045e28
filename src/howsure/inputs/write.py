"""Tables written whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.feather as feather
import pyarrow.parquet as pq

from howsure.core.errors import InputError
from howsure.core.files import replacing
from howsure.inputs.files import ARROW_ENDINGS, PARQUET_ENDINGS, TEXT_ENDINGS
from howsure.inputs.frames import MappingTable
from howsure.inputs.source import refusing
from howsure.inputs.text import COMPRESSION


def write_table(table: Mapping[str, Any] | pa.Table, path: str | os.PathLike[str]) -> None:
    """Write a table to a file whose ending says the form.

    Data are written as they are: a text that a spreadsheet would take for a formula (one that
    starts with ``=``, ``+``, ``-`` or ``@``) is not altered, so what is read back is what was
    written. Open such a file of strangers' data in a spreadsheet with that in mind.

    Parameters
    ----------
    table : mapping of str to array-like of shape (n,), or pyarrow.Table
        The columns.
    path : path
        A .csv or .tsv (also .gz, .zst), .parquet, .pq, .arrow, .feather or .ipc file. What was
        there is replaced at once, or, where something fails, left as it was.

    Raises
    ------
    InputError
        If the ending is unknown, columns differ in length or names repeat, or the system refuses.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "out.csv"
    >>> write_table({"y": [1.5, 2.0], "region": ["north", "a,b"]}, path)
    >>> print(path.read_text(), end="")
    "y","region"
    1.5,"north"
    2,"a,b"
    """
    file = Path(path)
    compressed = file.suffix.lower() in COMPRESSION
    ending = (Path(file.stem) if compressed else file).suffix.lower()
    known = TEXT_ENDINGS if compressed else (*TEXT_ENDINGS, *PARQUET_ENDINGS, *ARROW_ENDINGS)
    if ending not in known:
        raise InputError(
            f"{file}: the ending must be one of {', '.join(TEXT_ENDINGS)} (also with .gz or .zst), "
            f"{', '.join((*PARQUET_ENDINGS, *ARROW_ENDINGS))}, got {file.suffix!r}"
        )
    if not isinstance(table, pa.Table):
        source = MappingTable(table)
        table = source.read(dict.fromkeys(source.names, "any"))
    with replacing(file) as temporary, refusing(f"the table for {str(file)!r}"):
        if ending in PARQUET_ENDINGS:
            pq.write_table(table, temporary, write_page_checksum=True)
        elif ending in ARROW_ENDINGS:
            feather.write_feather(table, os.fspath(temporary))
        else:
            _write_text(table, temporary, COMPRESSION.get(file.suffix.lower()), ending)


def _write_text(table: pa.Table, path: Path, compression: str | None, ending: str) -> None:
    plain = [
        column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column
        for column in table.columns
    ]
    options = pacsv.WriteOptions(delimiter="\t" if ending == ".tsv" else ",")
    with pa.output_stream(os.fspath(path), compression=compression) as stream:
        pacsv.write_csv(pa.table(plain, names=table.column_names), stream, options)
