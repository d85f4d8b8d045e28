"""Tables held in memory: any dataframe that narwhals takes, or a mapping of arrays."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from howsure.core.errors import InputError
from howsure.core.labels import Categories
from howsure.inputs.files import check_flat, some_rows
from howsure.inputs.roles import Kind
from howsure.inputs.source import Source, quoted, refusing
from howsure.inputs.values import arrow_of


def _with_index(frame: Any) -> Any:
    """A frame of pandas with its index as a column, which a file of it has too.

    Without a name it is called ``index``; numbers without one are numbers of rows.
    """
    index: Any = getattr(frame, "index", None)
    if not hasattr(index, "nlevels"):
        return frame
    if type(index).__name__ == "PeriodIndex":
        index = index.to_timestamp()
    kept = frame.reset_index(drop=True)
    for level in reversed(range(index.nlevels)):
        values = index.get_level_values(level)
        unnamed = values.name is None
        name = "index" if unnamed else values.name
        counts = unnamed and (index.nlevels > 1 or values.dtype.kind in "iufb")
        if not counts and name not in kept.columns:
            kept.insert(0, name, values)
    return kept


def is_frame(value: object) -> bool:
    """Whether a value is a data frame; what a lazy one holds is not asked for."""
    return hasattr(type(value), "columns")


def library_classes(value: object, package: str) -> list[str]:
    """Names of the classes that a package made among those of a value."""
    classes = type(value).__mro__
    return [c.__name__ for c in classes if c.__module__.partition(".")[0] == package]


class FrameTable(Source):
    """A dataframe of any library; of a lazy one, the needed columns are collected."""

    def __init__(self, frame: Any, title: str = "the table") -> None:
        import narwhals as nw  # slow to load

        self.title = title
        if isinstance(frame, pa.RecordBatch):
            frame = pa.Table.from_batches([frame])
        pandas = type(frame).__module__.startswith("pandas")
        if pandas and getattr(getattr(frame, "columns", None), "nlevels", 1) > 1:
            frame = frame.set_axis(["_".join(filter(None, map(str, n))) for n in frame], axis=1)
        with refusing(title):
            self._frame: Any = nw.from_native(_with_index(frame))
            found = self._frame.collect_schema().names()
        self._native = {str(name): name for name in found}
        self.names = tuple(str(name) for name in found)
        self.check_names()

    def read(self, kinds: Mapping[str, Kind]) -> pa.Table:
        """The named columns."""
        import narwhals as nw

        with refusing(self.title):
            frame = self._frame.select([nw.col(self._native[name]) for name in kinds])
            if isinstance(frame, nw.LazyFrame):
                frame = frame.collect()
            columns = {}
            for name in kinds:
                series = frame.get_column(self._native[name])
                columns[name] = _arrow(series.to_arrow, series.to_list)
        table = some_rows(pa.table(columns), self.title)
        check_flat(table.schema, kinds, self.title)
        return table


class MappingTable(Source):
    """A mapping of names to arrays of one length."""

    def __init__(self, arrays: Mapping[Any, Any], title: str = "the table") -> None:
        self.title = title
        self._arrays = {str(name): values for name, values in arrays.items()}
        self.names = tuple(str(name) for name in arrays)
        self.check_names()
        if not self.names:
            raise InputError(f"{title}: columns are needed, got none")

    def read(self, kinds: Mapping[str, Kind]) -> pa.Table:
        """The named columns."""
        table = self._columns(kinds)
        check_flat(table.schema, kinds, self.title)
        return table

    def read_all(self) -> pa.Table:
        """Every column; a matrix holds a list in each cell."""
        return self._columns(dict.fromkeys(self.names, "vector"))

    def _columns(self, kinds: Mapping[str, Kind]) -> pa.Table:
        columns: dict[str, pa.ChunkedArray] = {}
        for name in kinds:
            with refusing(f"{self.title}: column {quoted(name)}"):
                vector = kinds[name] == "vector"
                columns[name] = _column(self._arrays[name], vector=vector)
            length = len(next(iter(columns.values())))
            if len(columns[name]) != length:
                raise InputError(
                    f"{self.title}: columns must have one length, got {length} rows and "
                    f"{len(columns[name])} in {quoted(name)}"
                )
        return some_rows(pa.table(columns), self.title)


def _column(values: Any, *, vector: bool = False) -> pa.ChunkedArray:
    if isinstance(values, Categories):
        return pa.chunked_array([pa.array(values.values(), from_pandas=True)])
    if isinstance(values, str | bytes | set | frozenset | Mapping):
        raise TypeError(f"an array of shape (rows,) is needed, got {type(values).__name__}")
    if hasattr(values, "__array__") and not hasattr(values, "__arrow_array__"):
        values = values if isinstance(values, np.ma.MaskedArray) else np.asarray(values)
        if values.ndim == 2 and values.shape[1] == 1:
            values = values[:, 0]
        if values.ndim == 2 and vector:
            flat = pa.array(np.ascontiguousarray(values).reshape(-1))
            return pa.chunked_array([pa.FixedSizeListArray.from_arrays(flat, values.shape[1])])
        if values.ndim != 1:
            raise TypeError(f"an array of shape (rows,) is needed, got shape {values.shape}")
        if _is_plain(values):
            return pa.chunked_array([arrow_of(values)])
    return _arrow(lambda: pa.array(values, from_pandas=True), lambda: list(values))


def _is_plain(values: npt.NDArray[Any]) -> bool:
    """Whether an array holds numbers of this machine, and misses none."""
    kind = values.dtype
    if isinstance(values, np.ma.MaskedArray) or kind.kind not in "iuf" or not kind.isnative:
        return False
    return kind.itemsize <= 8 and not np.isnan(values).any()


def _arrow(direct: Callable[[], Any], items: Callable[[], list[Any]]) -> pa.ChunkedArray:
    """An Arrow column; values of mixed types become text, so that each can be looked at."""
    try:
        made = direct()
    except (pa.ArrowException, TypeError, NotImplementedError):
        text = [None if is_missing(item) else str(item) for item in items()]
        made = pa.array(text, type=pa.large_string())
    return made if isinstance(made, pa.ChunkedArray) else pa.chunked_array([made])


def is_missing(item: object) -> bool:
    if item is None or item is np.ma.masked or type(item).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(item, float | np.floating | np.datetime64) and bool(item != item)
