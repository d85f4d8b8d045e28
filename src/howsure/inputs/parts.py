"""Pieces of tables: each reads its own rows by record batches, in whatever process it is asked."""

from __future__ import annotations

import hashlib
import json
import os
from abc import ABC, abstractmethod
from collections.abc import Generator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from howsure.inputs.batches import (
    Batch,
    ReadPlan,
    check_names,
    projected,
    regrouped,
    with_numbers,
)
from howsure.inputs.files import check_flat
from howsure.inputs.frames import FrameTable
from howsure.inputs.manifest import ReadFile
from howsure.inputs.places import Place, refusals
from howsure.inputs.roles import Kind
from howsure.inputs.source import refusing
from howsure.inputs.streams import Stream
from howsure.inputs.text import TextFile


class Piece(ABC):
    """Some rows of a table.

    Attributes
    ----------
    title : str
        What to call it: its file, with the row groups where it is a part of one.
    file : str
        What messages call the table that its rows are counted in.
    rows : int, optional
        How many they are, where that is known without reading them.
    first_row : int, optional
        The number of the first one in its file.
    identity : str
        What changes when the file does, and differs for every piece; empty where nothing tells.
    """

    __slots__ = ()

    title: str
    rows: int | None
    first_row: int | None
    identity: str

    @property
    def file(self) -> str:
        """What messages call the table that its rows are counted in."""
        return self.title

    @property
    def from_text(self) -> bool:
        """Whether its cells are text."""
        return False

    @abstractmethod
    def names(self) -> tuple[str, ...]:
        """All its columns."""

    def notes(self) -> tuple[str, ...]:
        """How it is read, where that is not what the ending says."""
        return ()

    @abstractmethod
    def tables(self, kinds: Mapping[str, Kind], rows: int) -> Generator[pa.Table]:
        """Its rows in order, the named columns of them; about so many at a time."""

    def read_file(self, rows: int, key: str) -> ReadFile:
        """What so many of its rows, with this key, were read of."""
        return ReadFile(found=self.title, rows=rows, key=key)

    def batches(self, reading: ReadPlan) -> Generator[Batch]:
        """Its rows as evaluation sets, some at a time.

        Raises
        ------
        InputError
            Naming the file, and the row counted in it, where a cell is not what its role needs.
        """
        row = self.first_row or 0
        kinds = reading.kinds
        with closing(self.tables(kinds, reading.batch_rows)) as tables:
            plain = (with_numbers(table, kinds, reading.decimal) for table in tables)
            for table in regrouped(plain, reading.batch_rows):
                yield reading.batch(table, self.file, row, from_text=self.from_text)
                row += table.num_rows


@dataclass(frozen=True, slots=True, kw_only=True)
class FilePiece(Piece):
    """A file, or a part of one."""

    title: str
    place: Place
    rows: int | None = None
    first_row: int | None = 0
    groups: tuple[int, ...] | None = None
    identity: str

    @property
    def file(self) -> str:
        """Its path or address."""
        return self.place.path

    def read_file(self, rows: int, key: str) -> ReadFile:
        """Its file."""
        return ReadFile.of(self.place, rows, key)

    def all_names(self, own: Sequence[str]) -> tuple[str, ...]:
        """The columns of the file, and those that its folders say."""
        return (*own, *(key for key, _ in self.place.partition if key not in own))

    def own_kinds(self, own: Sequence[str], kinds: Mapping[str, Kind]) -> dict[str, Kind]:
        """Those of the asked columns that the file holds; an error where one is nowhere."""
        check_names(self.all_names(own), kinds, self.file)
        return {name: kind for name, kind in kinds.items() if name in own}

    @final
    def tables(self, kinds: Mapping[str, Kind], rows: int) -> Generator[pa.Table]:
        """Its rows; an error after the last where the file changed while it was read."""
        with closing(self.raw_tables(kinds, rows)) as tables:
            yield from tables
        self.place.check_unchanged()

    @abstractmethod
    def raw_tables(self, kinds: Mapping[str, Kind], rows: int) -> Generator[pa.Table]:
        """Its rows, whatever happens to the file meanwhile."""

    def completed(self, rows: pa.RecordBatch | pa.Table, names: Sequence[str]) -> pa.Table:
        """The named columns, those that the folders say among them."""
        table = pa.Table.from_batches([rows]) if isinstance(rows, pa.RecordBatch) else rows
        for key, value in self.place.partition:
            if key in names and key not in table.column_names:
                table = table.append_column(key, _constant(value, table.num_rows))
        return table.select(list(names))


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ParquetPiece(FilePiece):
    """Row groups of a Parquet file."""

    def names(self) -> tuple[str, ...]:
        """All its columns."""
        with refusing(self.file):
            return self.all_names(pq.read_schema(self.place.open()).names)

    def raw_tables(self, kinds: Mapping[str, Kind], rows: int) -> Generator[pa.Table]:
        """Its rows; labels that are text come as codes."""
        with refusing(self.file), self.place.open() as handle:
            held = pq.read_metadata(handle)
            schema = held.schema.to_arrow_schema()
            own = self.own_kinds(schema.names, kinds)
            check_flat(schema, own, self.file)
            texts = [
                name
                for name, kind in own.items()
                if kind == "label" and pa.types.is_string(schema.field(name).type)
            ]
            with pq.ParquetFile(
                handle,
                metadata=held,
                read_dictionary=texts,
                page_checksum_verification=True,
                pre_buffer=self.place.remote,
            ) as file:
                for batch in file.iter_batches(
                    rows, row_groups=self.groups, columns=list(own), use_threads=False
                ):
                    batch.validate(full=True)
                    yield self.completed(batch, list(kinds))


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ArrowPiece(FilePiece):
    """Record batches of an Arrow file, or an Arrow stream."""

    def names(self) -> tuple[str, ...]:
        """All its columns."""
        with refusing(self.file), arrow_reader(self.place.open()) as reader:
            return self.all_names(reader.schema.names)

    def raw_tables(self, kinds: Mapping[str, Kind], rows: int) -> Generator[pa.Table]:
        """Its rows."""
        with refusing(self.file), self.place.open() as handle:
            schema = arrow_reader(handle).schema
            own = self.own_kinds(schema.names, kinds)
            check_flat(schema, own, self.file)
            with arrow_reader(handle, [schema.names.index(name) for name in own]) as reader:
                for batch in _arrow_batches(reader, self.groups):
                    batch.validate(full=True)
                    if batch.num_rows:
                        yield self.completed(batch, list(kinds))


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class TextPiece(FilePiece):
    """A file of delimited text."""

    encoding: str | None = None
    decimal: str = "."

    @property
    def from_text(self) -> bool:
        """Its cells are text."""
        return True

    def names(self) -> tuple[str, ...]:
        """All its columns."""
        return self.all_names(self._opened().names)

    def notes(self) -> tuple[str, ...]:
        """Its delimiter and its encoding, where they are not the usual ones."""
        return self._opened().notes

    def raw_tables(self, kinds: Mapping[str, Kind], rows: int) -> Generator[pa.Table]:
        """Its rows."""
        opened = self._opened()
        own = self.own_kinds(opened.names, kinds)
        with closing(opened.batches(own)) as blocks:
            for block in blocks:
                yield self.completed(block, list(kinds))

    def _opened(self) -> TextFile:
        path = self.place.path
        with refusing(path):
            return TextFile(Path(path), self.place.open(), self.encoding, self.decimal, path)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class FragmentPiece(Piece):
    """A fragment of a dataset of pyarrow."""

    title: str
    fragment: Any
    schema: pa.Schema
    rows: int | None = None
    first_row: int | None = 0
    identity: str = ""

    def names(self) -> tuple[str, ...]:
        """All columns of the dataset."""
        return tuple(self.schema.names)

    def tables(self, kinds: Mapping[str, Kind], rows: int) -> Generator[pa.Table]:
        """Its rows, with what the dataset's partitions say of them."""
        check_flat(self.schema, kinds, self.title)
        with refusing(self.title):
            for batch in self.fragment.to_batches(
                schema=self.schema, columns=list(kinds), batch_size=rows, use_threads=False
            ):
                yield pa.Table.from_batches([batch])


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class FramePiece(Piece):
    """A partition of a data frame of dask, which is computed when it is read."""

    title: str
    frame: Any
    rows: int | None = None
    first_row: int | None = 0
    identity: str = ""

    def names(self) -> tuple[str, ...]:
        """All columns."""
        return tuple(map(str, self.frame.columns))

    def tables(self, kinds: Mapping[str, Kind], rows: int) -> Generator[pa.Table]:
        """Its rows."""
        check_names(self.names(), kinds, self.title)
        with refusals(self.title):
            chosen = [name for name in self.frame.columns if str(name) in kinds]
            frame = self.frame[chosen].compute()
            if len(frame):
                yield FrameTable(frame, self.title).read(kinds)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class StreamPiece(Piece):
    """All of what yields its rows, perhaps once."""

    title: str
    stream: Stream
    rows: int | None = None
    first_row: int | None = 0
    identity: str = ""

    def names(self) -> tuple[str, ...]:
        """All columns."""
        return self.stream.names

    def tables(self, kinds: Mapping[str, Kind], rows: int) -> Generator[pa.Table]:
        """Its rows."""
        for table in self.stream.tables(list(kinds), rows):
            found = projected(table, kinds, self.title)
            check_flat(found.schema, kinds, self.title)
            yield found


def identity_of(place: Place, groups: tuple[int, ...] | None) -> str:
    """A hash of what a piece of a file reads: path, size, time of the last change, row groups."""
    path = place.path if place.remote else os.path.abspath(place.path)
    held = [path, place.size, place.stamp, groups, place.partition]
    return hashlib.sha256(json.dumps(held).encode()).hexdigest()


def arrow_reader(handle: pa.NativeFile, places: Sequence[int] | None = None) -> Any:
    """The reader of an Arrow file or stream, of some of its columns."""
    handle.seek(0)
    whole = handle.read(6) == b"ARROW1"
    handle.seek(0)
    options = pa.ipc.IpcReadOptions(included_fields=list(places or ()))
    return (pa.ipc.open_file if whole else pa.ipc.open_stream)(handle, options=options)


def _arrow_batches(reader: Any, groups: Sequence[int] | None) -> Generator[pa.RecordBatch]:
    if not hasattr(reader, "num_record_batches"):
        yield from reader
        return
    every = range(reader.num_record_batches)
    yield from map(reader.get_batch, every if groups is None else groups)


def _constant(value: str | float | None, n: int) -> pa.Array:
    """A column that holds one value."""
    if value is None:
        return pa.nulls(n, pa.string())
    if isinstance(value, str):
        return pa.DictionaryArray.from_arrays(np.zeros(n, dtype=np.int32), [value])
    return pa.array(np.full(n, value))
