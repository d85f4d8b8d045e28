"""Tables whose rows come some at a time: pieces of files, and what other engines yield."""

from __future__ import annotations

import hashlib
import json
import os
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing
from itertools import islice
from pathlib import Path
from typing import Any, Final, final

import numpy as np
import pyarrow as pa

from howsure.core.classes import frozen
from howsure.core.errors import InputError
from howsure.inputs.batches import Batch, ReadPlan, check_names, regrouped, with_numbers
from howsure.inputs.files import (
    NETCDF,
    PARQUET_ENDINGS,
    TEXT_ENDINGS,
    ArrowTable,
    ParquetTable,
    check_flat,
    source_form,
)
from howsure.inputs.frames import FrameTable, is_frame, posterior_file
from howsure.inputs.places import Place, ReadFile, refusals
from howsure.inputs.roles import Kinds
from howsure.inputs.source import WORKBOOK_ENDINGS, Source, refusing
from howsure.inputs.text import TextFile


@frozen(kw_only=True)
class Piece(ABC):
    """Some rows of a table."""

    title: str  # what to call it: its file, with the row groups where it is a part of one
    rows: int | None = None  # how many they are, where that is known without reading them
    first_row: int | None = 0  # the number of the first one in its file
    # what changes when the file does, and differs for every piece; empty where nothing tells
    identity: str = ""
    decimal: str = "."  # the decimal mark of numbers in text
    columns: tuple[str, ...] = ()  # all its columns, where they are known without opening it

    @property
    def file(self) -> str:
        """What messages call the table that its rows are counted in."""
        return self.title

    @property
    def from_text(self) -> bool:
        """Whether its cells are text."""
        return False

    def names(self) -> tuple[str, ...]:
        """All its columns."""
        return self.columns

    def notes(self) -> tuple[str, ...]:
        """How it is read, where that is not what the ending says."""
        return ()

    @abstractmethod
    def tables(self, kinds: Kinds, rows: int) -> Generator[pa.Table]:
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
@frozen(kw_only=True)
class FilePiece(Piece):
    """A file, or some row groups of one in Parquet, or some batches of one in Arrow."""

    place: Place
    groups: tuple[int, ...] | None = None
    encoding: str | None = None

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
        """Its file, open, by the reader that its ending asks for."""
        path, remote = self.file, self.place.remote
        ending, _ = source_form(path)
        source: Source
        with refusing(path):
            handle = self.place.open()
            if ending == NETCDF:
                source = posterior_file(path, handle)
            elif ending in WORKBOOK_ENDINGS:
                from howsure.inputs.workbook import sheet_table  # which readers of XML make slow

                source = sheet_table(path, handle, decimal=self.decimal)
            elif ending in TEXT_ENDINGS:
                source = TextFile(path, handle, self.encoding, self.decimal)
            elif ending in PARQUET_ENDINGS:
                source = ParquetTable(path, handle, self.groups, ahead=remote)
            else:
                source = ArrowTable(path, handle, self.groups)
        source.folder = None if remote else Path(path).parent
        return source

    def names(self) -> tuple[str, ...]:
        """All its columns, those that its folders say among them."""
        columns = self.opened().names
        return (*columns, *self.folder_columns(columns))

    def notes(self) -> tuple[str, ...]:
        """As its file says."""
        return self.opened().notes

    def tables(self, kinds: Kinds, rows: int) -> Generator[pa.Table]:
        """Its rows; an error after the last where the file changed while it was read."""
        source = self.opened()
        added = self.folder_columns(source.names)
        check_names((*source.names, *added), kinds, self.file)
        in_file = {name: kind for name, kind in kinds.items() if name in source.names}
        with closing(source.tables(in_file, rows)) as tables:
            for table in tables:
                for name, value in self.place.partition:
                    if name in added and name in kinds:
                        table = table.append_column(name, _constant(value, table.num_rows))
                yield table.select(list(kinds))
        self.place.check_unchanged()

    def folder_columns(self, columns: Sequence[str]) -> tuple[str, ...]:
        """The columns that its folders say and the file lacks."""
        return tuple(key for key, _ in self.place.partition if key not in columns)


@final
@frozen(kw_only=True)
class FragmentPiece(Piece):
    """A fragment of a dataset of pyarrow."""

    fragment: Any
    schema: pa.Schema

    def tables(self, kinds: Kinds, rows: int) -> Generator[pa.Table]:
        """Its rows, with what the dataset's partitions say of them."""
        check_flat(self.schema, kinds, self.title)
        with refusing(self.title):
            for batch in self.fragment.to_batches(
                schema=self.schema, columns=list(kinds), batch_size=rows, use_threads=False
            ):
                yield pa.Table.from_batches([batch])


@final
@frozen(kw_only=True)
class FramePiece(Piece):
    """A partition of a data frame of dask, which is computed when it is read."""

    frame: Any

    def tables(self, kinds: Kinds, rows: int) -> Generator[pa.Table]:
        """Its rows."""
        check_names(self.columns, kinds, self.title)
        with refusals(self.title):
            chosen = [name for name in self.frame.columns if str(name) in kinds]
            frame = self.frame[chosen].compute()
            if len(frame):
                yield FrameTable(frame, self.title).read(kinds)


@final
@frozen(kw_only=True)
class StreamPiece(Piece):
    """All of what yields its rows, perhaps once."""

    first: Callable[[int], pa.Table]  # the first rows, all columns of them; they come again
    # all rows, at least the named columns of them, about so many at a time
    read: Callable[[list[str], int], Iterable[pa.Table]]

    def head(self, rows: int) -> pa.Table:
        """The first rows, every column of them; `tables` yields them again."""
        with refusals(self.title):
            return self.first(rows)

    def tables(self, kinds: Kinds, rows: int) -> Generator[pa.Table]:
        """Its rows."""
        with refusals(self.title):
            for table in self.read(list(kinds), rows):
                check_names(table.column_names, kinds, self.title)
                chosen = table.select(list(kinds))
                check_flat(chosen.schema, kinds, self.title)
                yield chosen


def identity_of(place: Place, groups: tuple[int, ...] | None) -> str:
    """A hash of what a piece of a file reads: path, size, time of the last change, row groups."""
    path = place.path if place.remote else os.path.abspath(place.path)
    facts = [path, place.size, place.stamp, groups, place.partition]
    return hashlib.sha256(json.dumps(facts).encode()).hexdigest()


def _constant(value: str | float | None, n: int) -> pa.Array:
    """A column with one value."""
    if value is None:
        return pa.nulls(n, pa.string())
    if isinstance(value, str):
        return pa.DictionaryArray.from_arrays(np.zeros(n, dtype=np.int32), [value])
    return pa.array(np.full(n, value))


# ---- tables of other engines: what can leave out columns is asked for the needed ones alone ------

_TITLE: Final = "the table"


def is_dask(source: Any) -> bool:
    """Whether it is a data frame of Dask."""
    from narwhals.dependencies import is_dask_dataframe  # slow to load

    return is_dask_dataframe(source)


def is_lazy(source: Any) -> bool:
    """Whether something is a table whose rows come when they are asked for."""
    from narwhals import dependencies as libraries  # slow to load

    if libraries.is_into_dataframe(source) or libraries.is_into_series(source):
        return False
    return (
        isinstance(source, Iterator)
        or hasattr(source, "__arrow_c_stream__")
        or libraries.is_polars_lazyframe(source)
        or is_dask(source)
        or _is_ray(source)
    )


def stream_of(source: Any) -> StreamPiece:
    """Whatever yields Arrow batches.

    What has ``__arrow_c_stream__`` (a DuckDB relation, a reader of Arrow's), an iterable of record
    batches or data frames, a lazy frame of Polars, a Ray dataset.
    """
    from narwhals import dependencies as libraries  # slow to load

    with refusals(_TITLE):
        if libraries.is_polars_lazyframe(source):
            return _stream_of_polars(source)
        if libraries.is_duckdb_relation(source):
            return _stream_of_duckdb(source)
        if _is_ray(source):
            return _stream_of_ray(source)
        streams = hasattr(source, "__arrow_c_stream__")
        if libraries.is_pandas_dataframe(source) or (is_frame(source) and not streams):
            return _one_shot([FrameTable(source, _TITLE).read_all()])
        if streams:
            return _one_shot(_converted(pa.RecordBatchReader.from_stream(source)))
        if isinstance(source, Iterable) and not isinstance(source, str | bytes | dict):
            return _one_shot(_converted(source))
    raise InputError(
        f"{_TITLE} must be a file, a folder, a pattern such as 'preds/*.parquet', an address, or "
        "a source of Arrow batches (an object with __arrow_c_stream__, an iterable of record "
        f"batches or data frames), got {type(source).__name__}"
    )


def _stream_of_polars(frame: Any) -> StreamPiece:
    """A lazy frame by Polars' streaming engine; before Polars 1.34, all rows at once."""

    def read(names: list[str], rows: int) -> Iterator[pa.Table]:
        chosen = frame.select(names)
        if hasattr(chosen, "collect_batches"):
            yield from map(pa.table, chosen.collect_batches(chunk_size=rows, lazy=True))
        else:
            yield pa.table(chosen.collect())

    return StreamPiece(
        title=_TITLE,
        columns=tuple(frame.collect_schema().names()),
        first=lambda rows: pa.table(frame.head(rows).collect()),
        read=read,
    )


def _stream_of_duckdb(relation: Any) -> StreamPiece:
    """A relation of DuckDB: a query that runs when its rows are asked for."""

    def read(names: list[str], rows: int) -> Iterator[pa.Table]:
        projected = relation.project(", ".join('"' + n.replace('"', '""') + '"' for n in names))
        reader = getattr(projected, "to_arrow_reader", None) or projected.fetch_arrow_reader
        yield from (pa.Table.from_batches([batch]) for batch in reader(rows))

    return StreamPiece(
        title=_TITLE,
        columns=tuple(relation.columns),
        first=lambda rows: pa.table(relation.limit(rows)),
        read=read,
    )


def _stream_of_ray(dataset: Any) -> StreamPiece:
    """A Ray dataset, run by its cluster."""
    return StreamPiece(
        title=_TITLE,
        columns=tuple(dataset.schema().names),
        first=lambda rows: dataset.take_batch(rows, batch_format="pyarrow"),
        read=lambda names, rows: dataset.select_columns(names).iter_batches(
            batch_size=rows, batch_format="pyarrow"
        ),
    )


def _one_shot(tables: Iterable[pa.Table]) -> StreamPiece:
    """What can be gone through once, whose first rows are kept until then."""
    coming = filter(lambda table: table.num_rows, tables)
    ahead = deque(islice(coming, 1))
    if not ahead:
        raise InputError(f"{_TITLE}: the table has no rows")

    def first(rows: int) -> pa.Table:
        while sum(table.num_rows for table in ahead) < rows:
            more = next(coming, None)
            if more is None:
                break
            ahead.append(more)
        alike = [table for table in ahead if table.schema.equals(ahead[0].schema)]
        return pa.concat_tables(alike).slice(0, rows)

    def read(names: list[str], rows: int) -> Iterator[pa.Table]:
        waiting = ahead.copy()
        ahead.clear()
        if not waiting:
            raise InputError(
                f"{_TITLE}: its rows can be read only once and were already read; write it as "
                "Parquet, or create it again"
            )
        while waiting:  # each is let go of as soon as it was given
            yield waiting.popleft()
        yield from coming

    names = tuple(ahead[0].column_names)
    return StreamPiece(title=_TITLE, columns=names, first=first, read=read)


def _converted(items: Iterable[Any]) -> Iterator[pa.Table]:
    for number, item in enumerate(items):
        what = f"batch {number} of {_TITLE}"
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
