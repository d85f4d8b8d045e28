"""Tables whose rows come some at a time: pieces of files, and what other engines yield."""

from __future__ import annotations

import hashlib
import json
import os
from abc import ABC, abstractmethod
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any, final

import numpy as np
import pyarrow as pa

from howsure.core.errors import InputError
from howsure.inputs.batches import (
    Batch,
    ReadPlan,
    check_names,
    projected,
    regrouped,
    with_numbers,
)
from howsure.inputs.files import TEXT_ENDINGS, check_flat, table_of
from howsure.inputs.frames import FrameTable, is_frame
from howsure.inputs.places import Place, ReadFile, refusals
from howsure.inputs.roles import Kind
from howsure.inputs.source import Source, refusing


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


# ---- tables of other engines, as rows that come some at a time: what pieces need of each ---------
# Anything that yields Arrow batches will do: what has ``__arrow_c_stream__`` (a DuckDB relation, a
# reader of Arrow's), an iterable of record batches or data frames, a lazy frame of Polars, a Ray
# dataset. What can leave out columns is asked for the needed ones alone.


class Stream(ABC):
    """A table whose rows come some at a time."""

    title: str  # what to call it in messages
    names: tuple[str, ...]  # its columns

    @abstractmethod
    def head(self, rows: int) -> pa.Table:
        """The first rows, every column of them; `tables` yields them again."""

    @abstractmethod
    def tables(self, names: Sequence[str], rows: int) -> Iterator[pa.Table]:
        """All rows, at least the named columns of them, about so many at a time."""


@final
class OneShotStream(Stream):
    """What can be gone through once."""

    def __init__(self, tables: Iterable[pa.Table], title: str) -> None:
        self.title = title
        self._tables = filter(lambda table: table.num_rows, tables)
        self._first: list[pa.Table] = []
        with refusals(title):
            self._first += [next(self._tables, None)]
        if self._first == [None]:
            raise InputError(f"{title}: the table holds no rows")
        self.names = tuple(self._first[0].column_names)

    def head(self, rows: int) -> pa.Table:
        """The first rows, which are kept for `tables`."""
        with refusals(self.title):
            while sum(table.num_rows for table in self._first) < rows:
                more = next(self._tables, None)
                if more is None:
                    break
                self._first.append(more)
        first = [table for table in self._first if table.schema.equals(self._first[0].schema)]
        return pa.concat_tables(first).slice(0, rows)

    def tables(self, names: Sequence[str], rows: int) -> Iterator[pa.Table]:
        """All rows, once."""
        first, self._first = self._first, []
        if not first:
            raise InputError(
                f"{self.title}: what yields its rows once was read before; write it as Parquet, or "
                "give it anew"
            )
        first.reverse()
        with refusals(self.title):
            while first:  # each is let go of as soon as it was given
                yield first.pop()
            yield from self._tables


@final
class PolarsFrame(Stream):
    """A lazy frame of Polars."""

    def __init__(self, frame: Any, title: str) -> None:
        self.title = title
        self._frame = frame
        with refusals(title):
            self.names = tuple(frame.collect_schema().names())

    def head(self, rows: int) -> pa.Table:
        """What Polars takes for the first rows."""
        with refusals(self.title):
            return pa.table(self._frame.head(rows).collect())

    def tables(self, names: Sequence[str], rows: int) -> Iterator[pa.Table]:
        """The batches of Polars' streaming engine; before Polars 1.34, all rows at once."""
        with refusals(self.title):
            frame = self._frame.select(names)
            if hasattr(frame, "collect_batches"):
                yield from map(pa.table, frame.collect_batches(chunk_size=rows, lazy=True))
            else:
                yield pa.table(frame.collect())


@final
class DuckRelation(Stream):
    """A relation of DuckDB: a query that runs when its rows are asked for."""

    def __init__(self, relation: Any, title: str) -> None:
        self.title = title
        self._relation = relation
        self.names = tuple(relation.columns)

    def head(self, rows: int) -> pa.Table:
        """What DuckDB takes for the first rows."""
        with refusals(self.title):
            return pa.table(self._relation.limit(rows))

    def tables(self, names: Sequence[str], rows: int) -> Iterator[pa.Table]:
        """The batches of the query with the named columns alone."""
        chosen = ", ".join('"' + name.replace('"', '""') + '"' for name in names)
        with refusals(self.title):
            relation = self._relation.project(chosen)
            reader = getattr(relation, "to_arrow_reader", None) or relation.fetch_arrow_reader
            yield from (pa.Table.from_batches([batch]) for batch in reader(rows))


@final
class RayDataset(Stream):
    """A Ray dataset, run by its cluster."""

    def __init__(self, dataset: Any, title: str) -> None:
        self.title = title
        self._dataset = dataset
        with refusals(title):
            self.names = tuple(dataset.schema().names)

    def head(self, rows: int) -> pa.Table:
        """What Ray takes for the first rows."""
        with refusals(self.title):
            return self._dataset.take_batch(rows, batch_format="pyarrow")

    def tables(self, names: Sequence[str], rows: int) -> Iterator[pa.Table]:
        """The dataset's batches with the named columns alone."""
        with refusals(self.title):
            chosen = self._dataset.select_columns(list(names))
            yield from chosen.iter_batches(batch_size=rows, batch_format="pyarrow")


def is_dask(source: Any) -> bool:
    """Whether it is a data frame of Dask."""
    from narwhals.dependencies import is_dask_dataframe  # slow to load

    return is_dask_dataframe(source)


def is_lazy(source: Any) -> bool:
    """Whether something is a table whose rows come when they are asked for."""
    from narwhals import dependencies as known  # slow to load

    if known.is_into_dataframe(source) or known.is_into_series(source):
        return False
    return (
        isinstance(source, Iterator)
        or hasattr(source, "__arrow_c_stream__")
        or known.is_polars_lazyframe(source)
        or is_dask(source)
        or _is_ray(source)
    )


def stream_of(source: Any, title: str = "the table") -> Stream:
    """The stream of whatever yields Arrow batches."""
    from narwhals import dependencies as known  # slow to load

    if known.is_polars_lazyframe(source):
        return PolarsFrame(source, title)
    if known.is_duckdb_relation(source):
        return DuckRelation(source, title)
    if _is_ray(source):
        return RayDataset(source, title)
    if known.is_pandas_dataframe(source):
        return OneShotStream(iter([FrameTable(source, title).read_all()]), title)
    if hasattr(source, "__arrow_c_stream__"):
        with refusals(title):
            reader = pa.RecordBatchReader.from_stream(source)
        return OneShotStream((pa.Table.from_batches([batch]) for batch in reader), title)
    if is_frame(source):
        return OneShotStream(iter([FrameTable(source, title).read_all()]), title)
    if isinstance(source, Iterable) and not isinstance(source, str | bytes | dict):
        return OneShotStream(_converted(source, title), title)
    raise InputError(
        f"{title} must be a file, a folder, a pattern such as 'preds/*.parquet', an address, or "
        "what yields Arrow batches (an object with __arrow_c_stream__, an iterable of record "
        f"batches or data frames), got {type(source).__name__}"
    )


def _converted(items: Iterable[Any], title: str) -> Iterator[pa.Table]:
    for number, item in enumerate(items):
        what = f"batch {number} of {title}"
        if isinstance(item, pa.RecordBatch):
            yield pa.Table.from_batches([item])
        elif isinstance(item, pa.Table):
            yield item
        elif is_frame(item):
            if len(item):
                yield FrameTable(item, what).read_all()
        else:
            raise InputError(
                f"{what} must be a record batch, a table or a data frame, got {type(item).__name__}"
            )


def _is_ray(source: Any) -> bool:
    return type(source).__module__.startswith("ray.data") and hasattr(source, "iter_batches")
