"""Tables whose rows come some at a time: pieces of files, and what other engines yield."""

from __future__ import annotations

import hashlib
import json
import os
from abc import abstractmethod
from collections import deque
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import islice
from pathlib import Path
from typing import Any, final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from howsure.core.classes import frozen
from howsure.core.errors import InputError, within
from howsure.inputs.batches import BATCH_ROWS, check_names, regrouped, with_numbers
from howsure.inputs.files import (
    JSON_LINES,
    NETCDF,
    PARQUET_ENDINGS,
    TEXT_ENDINGS,
    ArrowTable,
    ParquetTable,
    check_flat,
    is_list,
    some_rows,
    source_form,
)
from howsure.inputs.frames import FrameTable, is_frame, posterior_file
from howsure.inputs.logs import log_table
from howsure.inputs.places import NO_FILES, Listing, Place, ReadFile, listed_skipped, refusals
from howsure.inputs.roles import Kinds
from howsure.inputs.source import WORKBOOK_ENDINGS, Source, refusing
from howsure.inputs.text import TextFile
from howsure.inputs.values import is_text, together, written_out


class Piece(Source):
    """Rows that come some at a time: all of a table, or some of one."""

    @abstractmethod
    def batches(self, kinds: Kinds, rows: int) -> Generator[pa.Table]:
        """Its rows in order, the named columns of them; about so many at a time."""

    def read(self, kinds: Kinds) -> pa.Table:
        """The named columns of all rows."""
        tables = list(self.batches(kinds, BATCH_ROWS))
        return some_rows(joined(tables, self.title, from_text=self.from_text), self.title)

    def read_file(self, rows: int, key: str) -> ReadFile:
        """What so many of its rows, with this key, were read of."""
        return ReadFile(found=self.title, rows=rows, key=key)


@final
@frozen(kw_only=True)
class FilePiece(Piece):
    """A file, or some row groups of one in Parquet, or some batches of one in Arrow."""

    title: str
    place: Place
    rows: int | None = None
    first_row: int = 0
    groups: tuple[int, ...] | None = None
    identity: str = ""
    encoding: str | None = None
    decimal: str = "."

    @cached_property
    def from_text(self) -> bool:  # type: ignore[override]
        """Whether its cells are text."""
        return self.place.form in TEXT_ENDINGS

    @property
    def file(self) -> str:
        """Its path or address."""
        return self.place.path

    @property
    def folder(self) -> Path | None:  # type: ignore[override]
        """The folder of its file, where that is near."""
        return None if self.place.remote else Path(self.file).parent

    def read_file(self, rows: int, key: str) -> ReadFile:
        """Its file."""
        return ReadFile.of(self.place, rows, key)

    def opened(self) -> Source:
        """Its file, open, by the reader that its ending asks for."""
        path = self.file
        ending, _ = source_form(path)
        source: Source
        with refusing(path):
            handle = self.place.open()
            if ending == NETCDF:
                source = posterior_file(path, handle)
            elif ending in WORKBOOK_ENDINGS:
                from howsure.inputs.workbook import sheet_table  # which readers of XML make slow

                source = sheet_table(path, handle, decimal=self.decimal)
            elif ending in JSON_LINES:
                source = log_table(path, handle)
            elif ending in TEXT_ENDINGS:
                source = TextFile(path, handle, self.encoding, self.decimal)
            elif ending in PARQUET_ENDINGS:
                source = ParquetTable(path, handle, self.groups, ahead=self.place.remote)
            else:
                source = ArrowTable(path, handle, self.groups)
        source.folder = self.folder
        return source

    @cached_property
    def _header(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        source = self.opened()
        return source.names, source.notes

    @cached_property
    def names(self) -> tuple[str, ...]:  # type: ignore[override]
        """All its columns, those that its folders say among them."""
        return (*self._header[0], *self.folder_columns)

    @cached_property
    def notes(self) -> tuple[str, ...]:  # type: ignore[override]
        """As its file says."""
        return self._header[1]

    @property
    def folder_columns(self) -> tuple[str, ...]:
        """The columns that its folders say and the file lacks."""
        partition = self.place.partition
        return tuple(key for key, _ in partition if key not in self._header[0])

    def batches(self, kinds: Kinds, rows: int) -> Generator[pa.Table]:
        """Its rows; an error after the last where the file changed while it was read."""
        source = self.opened()
        added = dict(self.place.partition)
        for name in source.names:
            added.pop(name, None)
        check_names((*source.names, *added), kinds, self.file)
        in_file = {name: kind for name, kind in kinds.items() if name not in added}
        with closing(source.batches(in_file, rows)) as tables:
            for table in tables:
                for name in added.keys() & kinds.keys():
                    table = table.append_column(name, _constant(added[name], table.num_rows))
                yield table.select(list(kinds))
        self.place.check_unchanged()

    def line(self, row: int) -> int | str:
        """The line of a row in the file, and its name."""
        return f"{self.opened().line(row)} of {os.path.basename(self.file)}"


@final
@frozen(kw_only=True)
class StreamPiece(Piece):
    """What an engine yields when it is asked: all rows of a table, perhaps once, or some."""

    title: str
    names: tuple[str, ...]
    # all rows, at least the named columns of them, about so many at a time
    query: Callable[[list[str], int], Iterable[pa.Table]]
    # of all that there is, the first rows with every column; `batches` yields them again
    head: Callable[[int], pa.Table] | None = None
    rows: int | None = None
    identity: str = ""

    def batches(self, kinds: Kinds, rows: int) -> Generator[pa.Table]:
        """Its rows."""
        with refusals(self.title):
            for table in self.query(list(kinds), rows):
                check_names(table.column_names, kinds, self.title)
                chosen = table.select(list(kinds))
                check_flat(chosen.schema, kinds, self.title)
                yield chosen


@final
@dataclass(eq=False)
class PiecedTable(Piece):
    """A table in pieces: their rows one after the other."""

    title: str
    pieces: tuple[Piece, ...]
    stem: str = ""  # what to call the model
    again: bool = True  # whether its rows may be read again, and by other processes
    footers: tuple[pq.FileMetaData, ...] = ()
    listing: Listing = NO_FILES  # its files, if it has any

    def __post_init__(self) -> None:
        self._counts: list[int] = []  # the rows of each piece, as it was read
        self.from_text, self.decimal = self.pieces[0].from_text, self.pieces[0].decimal
        files = self.listing.places
        folders = {None if file.remote else Path(file.path).parent for file in files}
        self.folder = folders.pop() if len(folders) == 1 else None

    @cached_property
    def names(self) -> tuple[str, ...]:  # type: ignore[override]
        """As its first piece's."""
        return self.pieces[0].names

    @cached_property
    def notes(self) -> tuple[str, ...]:  # type: ignore[override]
        """As its first piece's, and what lies beside them and is not read."""
        skipped = self.listing.skipped
        unread = (f"not read: {listed_skipped(skipped)}",) if skipped else ()
        return (*self.pieces[0].notes, *unread)

    def batches(self, kinds: Kinds, rows: int) -> Generator[pa.Table]:
        """The rows of all pieces in their order."""
        self._counts.clear()
        for piece in self.pieces:
            count = 0
            with closing(piece.batches(kinds, rows)) as tables:
                for table in tables:
                    count += table.num_rows
                    yield with_numbers(table, kinds, self.decimal) if self.from_text else table
            self._counts.append(count)

    def line(self, row: int) -> int | str:
        """The line of a row in its own file, and that file."""
        for piece, count in zip(self.pieces, self._counts, strict=False):
            if row < count:
                return piece.line(row)
            row -= count
        return row + 2


def joined(tables: Sequence[pa.Table], title: str, *, from_text: bool) -> pa.Table:
    """Tables under one another; of files of text, what is no number in one is text in all."""
    if not tables:
        return pa.table({})
    if any(not table.schema.equals(tables[0].schema) for table in tables):
        tables = [written_out(table) for table in tables]
    if from_text:
        texts = {field.name for table in tables for field in table.schema if is_text(field.type)}
        tables = [_as_text(table, texts) for table in tables]
    with within(title):
        return together(tables)


def _as_text(table: pa.Table, names: Collection[str]) -> pa.Table:
    for position, name in enumerate(table.column_names):
        column = table.column(position)
        if name in names and not (is_text(column.type) or is_list(column.type)):
            table = table.set_column(position, name, column.cast(pa.string()))
    return table


def count_rows(pieces: Iterable[Source]) -> int | None:
    """The rows of pieces, where that is known without reading them."""
    counts = [piece.rows for piece in pieces]
    return None if None in counts else sum(filter(None, counts))


def begin(source: Source, kinds: Kinds, rows: int) -> pa.Table | None:
    """The first rows of a table, which come again; None where it holds none."""
    if isinstance(source, StreamPiece) and source.head:
        with refusals(source.title):
            table = source.head(rows).select(list(kinds))
        return table if table.num_rows else None
    with closing(source.batches(kinds, rows)) as tables:
        return next(regrouped(tables, rows), None)


@final
class FirstRows(Source):
    """The first rows of a table, any columns of which can be read."""

    def __init__(self, source: Source, rows: int) -> None:
        self.title, self.names, self.notes = source.file, source.names, source.notes
        self.from_text, self.decimal = source.from_text, source.decimal
        self._source, self._rows = source, rows
        self.check_names()

    def read(self, kinds: Kinds) -> pa.Table:
        """The named columns."""
        return begin(self._source, kinds, self._rows)


def identity_of(file: Place, groups: tuple[int, ...] | None) -> str:
    """A hash of what a piece of a file reads: path, size, time of the last change, row groups."""
    path = file.path if file.remote else os.path.abspath(file.path)
    facts = [path, file.size, file.stamp, groups, file.partition]
    return hashlib.sha256(json.dumps(facts).encode()).hexdigest()


def _constant(value: str | float | None, n: int) -> pa.Array:
    """A column with one value."""
    if value is None:
        return pa.nulls(n, pa.string())
    if isinstance(value, str):
        return pa.DictionaryArray.from_arrays(np.zeros(n, dtype=np.int32), [value])
    return pa.array(np.full(n, value))


# ---- tables of other engines: what can leave out columns is asked for the needed ones alone ------

_TITLE = "the table"


def is_dask(source: Any) -> bool:
    """Whether it is a data frame of Dask."""
    from narwhals.dependencies import is_dask_dataframe  # slow to load

    return is_dask_dataframe(source)


def dask_pieces(frame: Any) -> Iterator[StreamPiece]:
    """The partitions of a data frame of Dask, each computed when it is read."""
    names = tuple(map(str, frame.columns))
    for number in range(frame.npartitions):
        title = f"partition {number} of the table"
        query = partial(_computed, frame.partitions[number], title)
        yield StreamPiece(title=title, names=names, query=query)


def _computed(frame: Any, title: str, names: list[str], rows: int) -> Iterator[pa.Table]:
    check_names(list(map(str, frame.columns)), names, title)
    computed = frame[[name for name in frame.columns if str(name) in names]].compute()
    if len(computed):
        yield FrameTable(computed, title).read(dict.fromkeys(names, "key"))


def fragment_rows(
    fragment: Any, schema: pa.Schema, names: list[str], rows: int
) -> Iterator[pa.Table]:
    """The rows of a fragment of a dataset of pyarrow, with what its partitions say of them."""
    for batch in fragment.to_batches(
        schema=schema, columns=names, batch_size=rows, use_threads=False
    ):
        yield pa.Table.from_batches([batch])


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

    def query(names: list[str], rows: int) -> Iterator[pa.Table]:
        chosen = frame.select(names)
        if hasattr(chosen, "collect_batches"):
            yield from map(pa.table, chosen.collect_batches(chunk_size=rows, lazy=True))
        else:
            yield pa.table(chosen.collect())

    return StreamPiece(
        title=_TITLE,
        names=tuple(frame.collect_schema().names()),
        head=lambda rows: pa.table(frame.head(rows).collect()),
        query=query,
    )


def _stream_of_duckdb(relation: Any) -> StreamPiece:
    """A relation of DuckDB: a query that runs when its rows are asked for."""

    def query(names: list[str], rows: int) -> Iterator[pa.Table]:
        projected = relation.project(", ".join('"' + n.replace('"', '""') + '"' for n in names))
        reader = getattr(projected, "to_arrow_reader", None) or projected.fetch_arrow_reader
        yield from (pa.Table.from_batches([batch]) for batch in reader(rows))

    return StreamPiece(
        title=_TITLE,
        names=tuple(relation.columns),
        head=lambda rows: pa.table(relation.limit(rows)),
        query=query,
    )


def _stream_of_ray(dataset: Any) -> StreamPiece:
    """A Ray dataset, run by its cluster."""
    return StreamPiece(
        title=_TITLE,
        names=tuple(dataset.schema().names),
        head=lambda rows: dataset.take_batch(rows, batch_format="pyarrow"),
        query=lambda names, rows: dataset.select_columns(names).iter_batches(
            batch_size=rows, batch_format="pyarrow"
        ),
    )


def _one_shot(tables: Iterable[pa.Table]) -> StreamPiece:
    """What can be gone through once, whose first rows are kept until then."""
    coming = filter(lambda table: table.num_rows, tables)
    ahead = deque(islice(coming, 1))
    if not ahead:
        raise InputError(f"{_TITLE}: the table has no rows")

    def head(rows: int) -> pa.Table:
        while sum(table.num_rows for table in ahead) < rows:
            more = next(coming, None)
            if more is None:
                break
            ahead.append(more)
        alike = [table for table in ahead if table.schema.equals(ahead[0].schema)]
        return pa.concat_tables(alike).slice(0, rows)

    def query(names: list[str], rows: int) -> Iterator[pa.Table]:
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
    return StreamPiece(title=_TITLE, names=names, query=query, head=head)


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
