"""New rows that come in many files, or in one that is too large to be held: part by part."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from glob import glob, has_magic
from pathlib import Path
from typing import Any, Final, final

import pyarrow as pa
import pyarrow.parquet as pq

from howsure.core.brief import brief_repr
from howsure.core.errors import InputError
from howsure.inputs.files import (
    ARROW_ENDINGS,
    PARQUET_ENDINGS,
    TEXT_ENDINGS,
    check_flat,
    open_table,
    table_form,
)
from howsure.inputs.new import NewRows, load_new
from howsure.inputs.roles import Columns, Kind
from howsure.inputs.source import Source, listed, refusing
from howsure.inputs.tables import NoneKeptError

PAST: Final = 2_000_000
"""Rows past which a table is read part by part."""
ROWS: Final = 1 << 17
"""Rows that are read at once."""
_HEAD: Final = 1 << 16  # bytes of a text that tell how long its rows are
_PACKED: Final = 4  # times that compressed text is longer
_AFTER_GAPS: Final = "counted after the dropped ones"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A file of new rows.

    Attributes
    ----------
    path : Path
        Where it is.
    name : Path
        Its path within the folder that was given; the name of the file otherwise.
    """

    path: Path
    name: Path

    __repr__ = brief_repr


def parts_of(source: Any) -> tuple[Part, ...]:
    """The files that a path, a folder, a pattern or a sequence of these names, in their order."""
    if isinstance(source, list | tuple):
        found = tuple(part for each in source for part in parts_of(each))
        if not found:
            raise InputError("a file of new rows is needed, got none")
        return found
    if not isinstance(source, str | os.PathLike):
        raise InputError(f"new rows must be files to be read in parts, got {type(source).__name__}")
    text = os.fspath(source)
    place = Path(text)
    if place.is_dir():
        names = sorted(each.relative_to(place) for each in place.rglob("*") if _holds_rows(each))
        if not any(_shown(name) for name in names):
            raise InputError(f"{text}: the folder holds no file of a table")
        return tuple(Part(path=place / name, name=name) for name in names if _shown(name))
    if not place.exists() and has_magic(text):
        files = [Path(each) for each in sorted(glob(text, recursive=True))]
        files = [each for each in files if _holds_rows(each)]
        if not files:
            raise InputError(f"{text}: no file of a table has such a name")
        root = Path(os.path.commonpath([each.parent for each in files]))
        return tuple(Part(path=each, name=each.relative_to(root)) for each in files)
    return (Part(path=place, name=Path(place.name)),)


def _holds_rows(path: Path) -> bool:
    try:
        table_form(path)
    except InputError:
        return False
    return path.is_file()


def _shown(name: Path) -> bool:
    """Whether a file is not put away, as what other programs leave beside tables is."""
    return not any(step.startswith((".", "_")) for step in name.parts)


def rows_in(path: Path) -> tuple[int, bool]:
    """The rows of a file, and whether that is their number or an estimate by its length."""
    ending, packed = table_form(path)
    with refusing(str(path)):
        if ending in PARQUET_ENDINGS:
            return int(pq.read_metadata(path).num_rows), True
        if ending in ARROW_ENDINGS:
            return _arrow_rows(path)
        size = path.stat().st_size
        with path.open("rb") as file:
            head = file.read(_HEAD)
        lines = max(head.count(b"\n"), 1)
        return int(size * (_PACKED if packed else 1) * lines / max(len(head), 1)), False


def _arrow_rows(path: Path) -> tuple[int, bool]:
    with pa.memory_map(os.fspath(path)) as file:
        try:
            reader = pa.ipc.open_file(file)
        except pa.ArrowInvalid:  # a stream, which tells of no number
            columns = len(pa.ipc.open_stream(file).schema)
            return file.size() // (8 * max(columns, 1)), False
        count = range(reader.num_record_batches)
        return sum(reader.get_batch(place).num_rows for place in count), True


def is_large(source: Any) -> bool:
    """Whether new rows are to be read part by part: several files, or one of many rows."""
    if not isinstance(source, str | os.PathLike | list | tuple):
        return False
    parts = parts_of(source)
    if len(parts) > 1:
        return True
    path = parts[0].path
    return path.is_file() and _holds_rows(path) and rows_in(path)[0] > PAST


@final
class Batch(Source):
    """Some rows of a table, from `start` on."""

    def __init__(self, whole: Source, table: pa.Table, start: int) -> None:
        self.title = whole.title
        self.names = whole.names
        self.notes = whole.notes
        self.from_text = whole.from_text
        self.decimal = whole.decimal
        self.folder = whole.folder
        self.start = start
        self.table = table

    def read(self, kinds: Mapping[str, Kind]) -> pa.Table:
        """The named columns."""
        check_flat(self.table.schema, kinds, self.title)
        return self.table.select(list(kinds))

    def whole(self) -> pa.Table:
        """Every column."""
        return self.table


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """Rows of a batch that have their prediction, or none that does.

    Attributes
    ----------
    batch : Batch
        All rows.
    rows : NewRows, optional
        Those with a prediction; None if every row misses a cell.
    gaps : mapping of str to int
        In how many rows each column misses a cell.
    """

    batch: Batch
    rows: NewRows | None
    gaps: Mapping[str, int]

    __repr__ = brief_repr


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """How new rows are read.

    Attributes
    ----------
    needs : mapping
        What a recalibration needs of them, as `load_new` takes it.
    columns : mapping
        Columns by role.
    options : mapping
        How cells and files are read, as `howsure.load` takes it.
    rows : int
        Rows that are read at once.
    """

    needs: Mapping[str, Any]
    columns: Columns
    options: Mapping[str, Any]
    rows: int = ROWS

    __repr__ = brief_repr

    def batches(self, part: Part) -> Iterator[Batch]:
        """The rows of a file as they are."""
        return batches(part.path, self.options, self.rows)

    def served(self, batch: Batch, before: int) -> Served:
        """The predictions of a batch, before which so many rows had one.

        A message on a row counts from the start of the file.
        """
        try:
            rows = load_new(batch, part=True, **self.needs, **self.options, **self.columns)
        except NoneKeptError as error:
            return Served(batch=batch, rows=None, gaps=error.gaps)
        except InputError as error:
            start = before if _AFTER_GAPS in str(error) else batch.start
            raise InputError(_moved(str(error), start)) from error
        return Served(batch=batch, rows=rows, gaps=rows.gaps)


def batches(path: Path, options: Mapping[str, Any], rows: int = ROWS) -> Iterator[Batch]:
    """The rows of a file as they are, so many at a time."""
    source = open_table(path, encoding=options["encoding"], decimal=options["decimal"])
    start = 0
    for table in source.batches(rows):
        yield Batch(source, table, start)
        start += table.num_rows
    if not start:
        raise InputError(f"{source.title}: the table holds columns but no rows")


def _moved(message: str, start: int) -> str:
    """A message whose numbers of rows count from so many rows earlier."""
    return re.sub(r"\b(row )(\d+)", lambda found: f"{found[1]}{int(found[2]) + start}", message)


def targets(parts: Sequence[Part], output: Path) -> dict[Path, list[Part]]:
    """The files to write, and the parts that each holds: one, or in a folder one for each part."""
    folder = output.is_dir() or (len(parts) > 1 and not output.suffix)
    if not folder:
        table_form(output)
        return {output: list(parts)}
    found: dict[Path, list[Part]] = {}
    for part in parts:
        found.setdefault(output / part.name, []).append(part)
    twice = [str(path) for path, held in found.items() if len(held) > 1]
    if twice:
        raise InputError(f"parts must have different names in a folder, got two of {listed(twice)}")
    return found


def are_text(parts: Sequence[Part]) -> bool:
    """Whether all parts are files of text."""
    return all(table_form(part.path)[0] in TEXT_ENDINGS for part in parts)
