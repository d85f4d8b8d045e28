"""Tables of other engines, as rows that come some at a time: what pieces need of each.

Anything that yields Arrow batches will do: what has ``__arrow_c_stream__`` (a DuckDB relation, a
reader of Arrow's), an iterable of record batches or data frames, a lazy frame of Polars, a Ray
dataset. What can leave out columns is asked for the needed ones alone.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, final

import pyarrow as pa

from howsure.core.errors import InputError
from howsure.inputs.frames import FrameTable, is_frame
from howsure.inputs.places import refusals


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
