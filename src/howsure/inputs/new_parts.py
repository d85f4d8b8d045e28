"""New rows that come in many files, or in one that is too large to be held: some at a time."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path, PurePath
from typing import Any, final

import pyarrow as pa
import pyarrow.parquet as pq

from howsure.core.brief import brief_repr
from howsure.core.errors import InputError
from howsure.inputs.batches import ReadRows, regrouped
from howsure.inputs.files import TEXT_ENDINGS, table_form
from howsure.inputs.new import NewRows, load_new
from howsure.inputs.parts import ArrowPiece, FilePiece, ParquetPiece, TextPiece
from howsure.inputs.pieces import BATCH_ROWS, HUGE, is_huge
from howsure.inputs.places import Place, is_folder, places
from howsure.inputs.roles import Columns, Kind
from howsure.inputs.source import listed, refusing


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class NewFile:
    """A file of new rows.

    Attributes
    ----------
    place : Place
        Where it is, and what its folders say.
    name : PurePath
        Its path within the folder that was given; the name of the file otherwise.
    """

    place: Place
    name: PurePath

    __repr__ = brief_repr

    @property
    def path(self) -> str:
        """Its path or address."""
        return self.place.path

    @property
    def is_text(self) -> bool:
        """Whether its cells are text."""
        return self.place.form in TEXT_ENDINGS

    @property
    def rows(self) -> int:
        """Its rows, where that is known without reading it; 0 otherwise."""
        if self.place.form != "parquet":
            return 0
        with refusing(self.path), self.place.open() as file:
            return int(pq.read_metadata(file).num_rows)

    def piece(self, options: Mapping[str, Any]) -> FilePiece:
        """What reads it."""
        given: Any = {"title": self.path, "place": self.place, "identity": ""}
        if self.is_text:
            told = {name: options[name] for name in ("encoding", "decimal")}
            return TextPiece(**given, **told)
        return (ParquetPiece if self.place.form == "parquet" else ArrowPiece)(**given)


def is_large(source: str | os.PathLike[str]) -> bool:
    """Whether new rows are read some at a time: they are many, or not in one file at hand."""
    return is_huge(source, HUGE)


def parts_of(source: Any) -> tuple[NewFile, ...]:
    """The files that a path, folder, pattern or address names, or a sequence of these, in order."""
    if isinstance(source, list | tuple):
        found = tuple(part for each in source for part in parts_of(each))
        if not found:
            raise InputError("a file of new rows is needed, got none")
        return found
    if not isinstance(source, str | os.PathLike):
        raise InputError(f"new rows must be in files, got {type(source).__name__}")
    path = os.fspath(source)
    held = places(path).places
    above = [os.path.dirname(one.path) for one in held]
    base = path if is_folder(path) else os.path.commonpath(above)
    return tuple(NewFile(place=one, name=PurePath(os.path.relpath(one.path, base))) for one in held)


def skipped_of(source: Any) -> tuple[tuple[str, str], ...]:
    """What lies beside the files of `parts_of` and is not read, and why."""
    many = source if isinstance(source, list | tuple) else [source]
    return tuple(each for one in many for each in places(os.fspath(one)).skipped)


def targets(parts: Sequence[NewFile], output: Path) -> dict[Path, list[NewFile]]:
    """The files to write, and the parts that each holds: one, or in a folder one for each part."""
    folder = output.is_dir() or (len(parts) > 1 and not output.suffix)
    if not folder:
        table_form(output)
        return {output: list(parts)}
    found: dict[Path, list[NewFile]] = {}
    for part in parts:
        found.setdefault(output / part.name, []).append(part)
    twice = [str(path) for path, held in found.items() if len(held) > 1]
    if twice:
        raise InputError(f"parts must have different names in a folder, got two of {listed(twice)}")
    return found


@final
class NewBatch(ReadRows):
    """Some rows of a file as they are.

    Attributes
    ----------
    start, n : int
        The number of the first one in the file, and how many they are.
    told : tuple of str
        The columns that the file lacks, and that the names of its folders tell.
    """

    def __init__(self, opened: _Opened, table: pa.Table, start: int) -> None:
        piece = opened.piece
        super().__init__(table, piece.file, from_text=piece.from_text, decimal=opened.decimal)
        self.folder = None if piece.place.remote else Path(piece.file).parent
        self.notes = opened.notes
        self.told = opened.told
        self.start = start
        self.n = table.num_rows


@dataclass(frozen=True, slots=True)
class _Opened:
    """A file, and what is known of it before its rows are."""

    piece: FilePiece
    decimal: str
    notes: tuple[str, ...]
    told: tuple[str, ...]


def batches(
    part: NewFile, options: Mapping[str, Any], rows: int = BATCH_ROWS
) -> Iterator[NewBatch]:
    """The rows of a file as they are, so many at a time."""
    piece = part.piece(options)
    names = piece.names()
    told: tuple[str, ...] = ()
    if part.place.partition:
        own = replace(piece, place=replace(part.place, partition=())).names()
        told = tuple(name for name in names if name not in own)
    opened = _Opened(piece, options["decimal"], piece.notes(), told)
    kinds: dict[str, Kind] = dict.fromkeys(names, "text" if part.is_text else "key")
    start = 0
    with closing(piece.tables(kinds, rows)) as tables:
        for table in regrouped(tables, rows):
            yield NewBatch(opened, table, start)
            start += table.num_rows
    if not start:
        raise InputError(f"{part.path}: the table holds columns but no rows")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class NewReading:
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
    rows: int = BATCH_ROWS

    __repr__ = brief_repr

    def batches(self, part: NewFile) -> Iterator[NewBatch]:
        """The rows of a file as they are."""
        return batches(part, self.options, self.rows)

    def rows_of(self, batch: NewBatch) -> NewRows:
        """The predictions of a batch. A message on a row counts from the start of the file."""
        return load_new(batch, first_row=batch.start, **self.needs, **self.options, **self.columns)
