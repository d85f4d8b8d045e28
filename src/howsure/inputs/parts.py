"""Pieces of tables: each reads its own rows by record batches, in whatever process it is asked."""

from __future__ import annotations

import hashlib
import json
import os
from abc import ABC, abstractmethod
from collections.abc import Generator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any, final

import numpy as np
import pyarrow as pa

from howsure.inputs.batches import (
    Batch,
    ReadPlan,
    check_names,
    projected,
    regrouped,
    with_numbers,
)
from howsure.inputs.files import TEXT_ENDINGS, check_flat, table_of
from howsure.inputs.frames import FrameTable
from howsure.inputs.manifest import ReadFile
from howsure.inputs.places import Place, refusals
from howsure.inputs.roles import Kind
from howsure.inputs.source import Source, refusing
from howsure.inputs.streams import Stream


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
        """Its rows as evaluation sets, some at a time."""
        row = self.first_row or 0
        kinds = reading.kinds
        with closing(self.tables(kinds, reading.batch_rows)) as tables:
            plain = (with_numbers(table, kinds, reading.decimal) for table in tables)
            for table in regrouped(plain, reading.batch_rows):
                yield reading.batch(table, self.file, row, from_text=self.from_text)
                row += table.num_rows


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class FilePiece(Piece):
    """A file, or some row groups of one in Parquet, or some batches of one in Arrow."""

    title: str
    place: Place
    rows: int | None = None
    first_row: int | None = 0
    groups: tuple[int, ...] | None = None
    identity: str
    encoding: str | None = None
    decimal: str = "."

    @property
    def from_text(self) -> bool:
        """Whether its cells are text."""
        return self.place.form in TEXT_ENDINGS

    @property
    def file(self) -> str:
        """Its path or address."""
        return self.place.path

    def read_file(self, rows: int, key: str) -> ReadFile:
        """Its file."""
        return ReadFile.of(self.place, rows, key)

    def opened(self) -> Source:
        """Its file, open."""
        with refusing(self.file):
            return table_of(
                self.file,
                self.place.open(),
                groups=self.groups,
                encoding=self.encoding,
                decimal=self.decimal,
                remote=self.place.remote,
            )

    def names(self) -> tuple[str, ...]:
        """All its columns, those that its folders say among them."""
        return self._named(self.opened().names)

    def notes(self) -> tuple[str, ...]:
        """As its file says."""
        return self.opened().notes

    def tables(self, kinds: Mapping[str, Kind], rows: int) -> Generator[pa.Table]:
        """Its rows; an error after the last where the file changed while it was read."""
        opened = self.opened()
        check_names(self._named(opened.names), kinds, self.file)
        own = {name: kind for name, kind in kinds.items() if name in opened.names}
        with closing(opened.tables(own, rows)) as tables:
            for table in tables:
                yield self._completed(table, list(kinds))
        self.place.check_unchanged()

    def told(self, own: Sequence[str]) -> tuple[str, ...]:
        """The columns that its folders say and the file lacks."""
        return tuple(key for key, _ in self.place.partition if key not in own)

    def _named(self, own: Sequence[str]) -> tuple[str, ...]:
        """The columns of the file, and those that its folders say."""
        return (*own, *self.told(own))

    def _completed(self, table: pa.Table, names: Sequence[str]) -> pa.Table:
        """The named columns, those that the folders say among them."""
        for key, value in self.place.partition:
            if key in names and key not in table.column_names:
                table = table.append_column(key, _constant(value, table.num_rows))
        return table.select(list(names))


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


def _constant(value: str | float | None, n: int) -> pa.Array:
    """A column that holds one value."""
    if value is None:
        return pa.nulls(n, pa.string())
    if isinstance(value, str):
        return pa.DictionaryArray.from_arrays(np.zeros(n, dtype=np.int32), [value])
    return pa.array(np.full(n, value))
