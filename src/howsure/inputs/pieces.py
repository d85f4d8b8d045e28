"""A table of any size in pieces, each read by batches of rows that become evaluation sets.

A table is a file, a folder or a pattern of files (with hive partitions), on a disk or at an address
that fsspec knows, or whatever yields Arrow batches. What columns mean is decided once, by the
names and the first rows; every other part is read alike, by names, whatever their order.
"""

from __future__ import annotations

import glob
import hashlib
import os
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, Unpack, final

import narwhals as nw
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from howsure.core.errors import InputError
from howsure.core.optional import require
from howsure.inputs.assigned import ColumnUse, LawColumns, Roles, explain_models
from howsure.inputs.building import Crossing, build
from howsure.inputs.cells import Cells, read_cells
from howsure.inputs.columns import assign_models
from howsure.inputs.files import ARROW_ENDINGS, PARQUET_ENDINGS, check_flat, table_form
from howsure.inputs.frames import FrameTable, is_frame
from howsure.inputs.roles import Columns, Kind
from howsure.inputs.source import Source, listed, quoted, refusing
from howsure.inputs.stacked import check_unstacked
from howsure.inputs.tables import Missing, gaps_of, in_one_order, kept_rows, read_told
from howsure.inputs.text import TextFile
from howsure.predictions import EvalSet

BATCH: Final = 32_768
"""Rows that are looked at together."""
PIECE: Final = 1_048_576
"""Rows that are one piece of work, about."""
HUGE: Final = 2_000_000
"""Rows past which a table is read by pieces."""
ROW: Final = "howsure_row"
"""The column of a batch that says where each row stands in its file."""
FILE: Final = "howsure_file"
"""And the one that says in which, of several."""
_PLAIN: Final = ("missing", "crossing", "encoding", "decimal", "from_text", "name")
_LISTS: Final = ("coverages", "levels", "labels")
_NULL: Final = "__HIVE_DEFAULT_PARTITION__"


@dataclass(frozen=True, slots=True)
class Batch:
    """Some rows of a table.

    Attributes
    ----------
    evalsets : tuple of EvalSet
        One a model, on the same rows; none where no row is left.
    table : pyarrow.Table
        The same rows, in the columns that have roles.
    rows : int
        Rows read, dropped ones included.
    dropped : int
        Rows left out because a cell is missing.
    dropped_by : mapping of str to int
        By column, in how many rows its cell is missing.
    """

    evalsets: tuple[EvalSet, ...]
    table: pa.Table
    rows: int
    dropped: int = 0
    dropped_by: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """How every part of a table is read.

    Attributes
    ----------
    models : tuple of Roles
        The columns' roles, for each model.
    missing, crossing, encoding, decimal
        As in `howsure.load`.
    from_text : bool
        Whether cells are text, so that ``1`` may be a number or a label.
    name : str
        What the model is called where no column says so.
    many : bool
        Whether rows come from several files.
    """

    models: tuple[Roles, ...]
    missing: Missing = "error"
    crossing: Crossing = "error"
    encoding: str | None = None
    decimal: str = "."
    from_text: bool = False
    name: str = ""
    many: bool = False

    @property
    def kinds(self) -> dict[str, Kind]:
        """The columns that are read, each with what it is read as."""
        asked = _Asked(())
        for roles in self.models:
            asked.note(roles)
        return asked.kinds

    def told(self) -> dict[str, Any]:
        """It as plain values, the same for tables that are read alike."""
        own = {name: getattr(self, name) for name in _PLAIN}
        models = [
            {
                "columns": {name: list(held) for name, held in roles.columns.items() if held},
                "law": None if roles.law is None else [roles.law.name, dict(roles.law.parameters)],
                **{name: list(getattr(roles, name)) for name in _LISTS},
                "weights_kind": roles.weights_kind,
                "model": roles.model,
            }
            for roles in self.models
        ]
        return {**own, "models": models}

    @classmethod
    def from_told(cls, facts: Mapping[str, Any]) -> Reading:
        """What `told` made plain."""
        models = tuple(
            Roles(
                columns={name: tuple(held) for name, held in one["columns"].items()},
                law=None if one["law"] is None else LawColumns(*one["law"]),
                coverages=tuple(one["coverages"]),
                levels=tuple(one["levels"]),
                labels=tuple(one["labels"]),
                weights_kind=one["weights_kind"],
                model=one["model"],
            )
            for one in facts["models"]
        )
        return cls(models=models, **{name: facts[name] for name in _PLAIN})

    def build(self, table: pa.Table, title: str, first: int = 0) -> Batch:
        """The evaluation sets of some rows, whose first one has this number in its file."""
        names = [name for name in table.column_names if name not in (ROW, FILE)]
        source = _Rows(table.select(names), title, self.from_text, self.decimal)
        with _counted_from(first):
            parts = [
                replace(cells, model=roles.model or self.name or "model")
                for roles in self.models
                for cells in (read_cells(source, roles),)
            ]
            for cells in parts:
                cells.check_finite()
            gaps = gaps_of(parts, self.missing)
            parts = in_one_order(parts)
            rows = table.num_rows
            if gaps:
                if not any_left(parts):
                    return Batch((), table.slice(0, 0), rows, rows, gaps)
                kept = kept_rows(parts, gaps)
                parts = [part.take(kept) for part in parts]
                table = table.filter(pa.array(kept))
            parts = [_placed(part, first) for part in parts]
            made = build(parts, crossing=self.crossing)
        own = table.select([*names, *(n for n in (ROW, FILE) if n in table.column_names)])
        return Batch(made, own, rows, rows - table.num_rows, gaps)

    def sets(self, table: pa.Table, title: str) -> tuple[EvalSet, ...]:
        """The evaluation sets of chosen rows, which bear their places as names."""
        made = self.build(table, title).evalsets
        if any(roles["rows"] for roles in self.models) or ROW not in table.column_names:
            return made
        names: npt.NDArray[Any] = table[ROW].to_numpy()
        if FILE in table.column_names:
            files = table[FILE].to_pylist()
            told = [f"{file}:{row}" for file, row in zip(files, names.tolist(), strict=True)]
            names = np.array(told, dtype=object)
        return tuple(replace(held, rows=names) for held in made)


def any_left(parts: Sequence[Cells]) -> bool:
    """Whether some row misses nothing."""
    kept = np.ones(parts[0].n, dtype=np.bool_)
    for part in parts:
        for gone in part.missing().values():
            kept &= ~gone
    return bool(kept.any())


def _placed(part: Cells, first: int) -> Cells:
    return replace(part, places=part.places + first) if first else part


@contextmanager
def _counted_from(first: int) -> Iterator[None]:
    """Number the rows in messages as their file does."""
    try:
        yield
    except InputError as error:
        if not first:
            raise
        moved = re.sub(
            r"\brow (\d[\d,]*)", lambda m: f"row {int(m[1].replace(',', '')) + first}", str(error)
        )
        raise type(error)(moved) from error


@final
class _Asked(Source):
    """A table without rows that notes which columns are asked for, and as what."""

    def __init__(self, names: Sequence[str]) -> None:
        self.names = tuple(names)
        self.kinds: dict[str, Kind] = {}

    def note(self, roles: Roles) -> None:
        for role, name, _ in roles.uses():
            if role.kind is not None:
                label = roles.classes and role.name == "y"
                self.kinds.setdefault(name, "label" if label else role.kind)

    def read(self, kinds: Mapping[str, Kind]) -> pa.Table:
        raise NotImplementedError

    def whole(self) -> pa.Table:
        raise NotImplementedError


@final
class _Rows(Source):
    """Rows of a table that are in memory already."""

    def __init__(self, table: pa.Table, title: str, from_text: bool, decimal: str) -> None:
        self.title = title
        self.names = tuple(table.column_names)
        self.from_text = from_text
        self.decimal = decimal
        self._table = table

    def read(self, kinds: Mapping[str, Kind]) -> pa.Table:
        check_flat(self._table.schema, kinds, self.title)
        return self._table.select(list(kinds))

    def whole(self) -> pa.Table:
        return self._table


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece(ABC):
    """A part of a table that is one piece of work.

    Attributes
    ----------
    path : str
        Its file, or address.
    title : str
        What to call it in messages.
    rows : int, optional
        How many it has, where that is known.
    first : int
        The number of its first row in its file.
    partition : tuple of (str, str)
        Columns that the names of its folders give, with their values.
    identity : str
        A hash of what it reads; empty where it cannot be read again.
    """

    path: str
    title: str
    rows: int | None = None
    first: int = 0
    partition: tuple[tuple[str, Any], ...] = ()
    identity: str = ""

    @abstractmethod
    def tables(self, kinds: Mapping[str, Kind], rows: int) -> Iterator[pa.Table]:
        """Its rows in these columns, about so many at a time."""

    @abstractmethod
    def names(self) -> tuple[str, ...]:
        """The names of its columns, those of its folders too."""

    def span_of(self, column: str) -> tuple[float, float] | None:
        """The least and the greatest value of a column, if the file says so."""
        return None

    def tables_of(self, kinds: Mapping[str, Kind], rows: int) -> Iterator[pa.Table]:
        """Its rows in these columns, some of which its folders give."""
        given = {name for name, _ in self.partition}
        own: dict[str, Kind] = {name: kind for name, kind in kinds.items() if name not in given}
        for table in self.tables(own, rows):
            for name, value in self.partition:
                if name in kinds:
                    table = table.append_column(name, _constant(value, table.num_rows))
            yield table.select(list(kinds))

    def batches(self, reading: Reading, rows: int = BATCH) -> Iterator[Batch]:
        """Its rows as evaluation sets."""
        first = self.first
        with refusing(self.title):
            for held in self.tables_of(reading.kinds, rows):
                if not held.num_rows:
                    continue
                at = pa.array(np.arange(first, first + held.num_rows))
                held = held.append_column(ROW, at)
                if reading.many:
                    held = held.append_column(FILE, _constant(self.path, held.num_rows))
                yield reading.build(held, self.title, first)
                first += held.num_rows


def _constant(value: Any, n: int) -> pa.Array:
    if not isinstance(value, str):
        return pa.array(np.full(n, value))
    return pa.DictionaryArray.from_arrays(pa.array(np.zeros(n, dtype=np.int32)), pa.array([value]))


def _lacking(kinds: Mapping[str, Kind], names: Sequence[str], title: str) -> None:
    """Refuse a part that lacks a column of the first one."""
    gone = [name for name in kinds if name not in names]
    if gone:
        raise InputError(
            f"{title}: every part must have the columns of the first, got none called "
            f"{listed(gone)}; it has {listed(names)}"
        )


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ParquetPiece(Piece):
    """Row groups of a Parquet file."""

    groups: tuple[int, ...] = ()

    def names(self) -> tuple[str, ...]:
        with opened(self.path) as file, refusing(self.title), pq.ParquetFile(file) as held:
            return (*held.schema_arrow.names, *(name for name, _ in self.partition))

    def span_of(self, column: str) -> tuple[float, float] | None:
        with opened(self.path) as file, refusing(self.title), pq.ParquetFile(file) as held:
            places = [
                k
                for k in range(held.metadata.num_columns)
                if held.metadata.schema.column(k).path == column
            ]
            found = [
                held.metadata.row_group(group).column(place).statistics
                for group in self.groups
                for place in places
            ]
        if not found or any(each is None or not each.has_min_max for each in found):
            return None
        ends = np.array([[each.min, each.max] for each in found])
        if ends.dtype.kind in "OM":
            ends = ends.astype("datetime64[us]").astype(np.int64) / 1e6
        return (float(ends.min()), float(ends.max())) if ends.dtype.kind in "biuf" else None

    def tables(self, kinds: Mapping[str, Kind], rows: int) -> Iterator[pa.Table]:
        with opened(self.path) as file:
            with refusing(self.title), pq.ParquetFile(file) as held:
                schema = held.schema_arrow
                _lacking(kinds, schema.names, self.title)
                texts = [
                    name
                    for name, kind in kinds.items()
                    if kind == "label" and pa.types.is_string(schema.field(name).type)
                ]
            with (
                refusing(self.title),
                pq.ParquetFile(
                    file, read_dictionary=texts, page_checksum_verification=True
                ) as held,
            ):
                found = held.iter_batches(
                    rows, row_groups=list(self.groups), columns=list(kinds), use_threads=False
                )
                for batch in found:
                    batch.validate(full=True)
                    yield pa.Table.from_batches([batch])


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ArrowPiece(Piece):
    """Record batches of an Arrow file, or a whole Arrow stream."""

    numbers: tuple[int, ...] | None = None

    def names(self) -> tuple[str, ...]:
        with opened(self.path) as file, refusing(self.title):
            reader = (pa.ipc.open_stream if self.numbers is None else pa.ipc.open_file)(file)
            return (*reader.schema.names, *(name for name, _ in self.partition))

    def tables(self, kinds: Mapping[str, Kind], rows: int) -> Iterator[pa.Table]:
        with opened(self.path) as file, refusing(self.title):
            if self.numbers is None:
                reader = pa.ipc.open_stream(file)
                parts: Iterator[pa.RecordBatch] = iter(reader)
            else:
                reader = pa.ipc.open_file(file)
                parts = (reader.get_batch(number) for number in self.numbers)
            _lacking(kinds, reader.schema.names, self.title)
            for part in parts:
                part.validate(full=True)
                yield from _sliced(pa.Table.from_batches([part.select(list(kinds))]), rows)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class TextPiece(Piece):
    """A delimited text file."""

    encoding: str | None = None
    decimal: str = "."

    def names(self) -> tuple[str, ...]:
        with opened(self.path) as file:
            held = TextFile(Path(self.path), file, self.encoding, self.decimal)
        return (*held.names, *(name for name, _ in self.partition))

    def tables(self, kinds: Mapping[str, Kind], rows: int) -> Iterator[pa.Table]:
        with opened(self.path) as file:
            held = TextFile(Path(self.path), file, self.encoding, self.decimal)
            _lacking(kinds, held.names, self.title)
            for table in held.blocks(kinds):
                yield from _sliced(table, rows)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Given(Piece):
    """Whatever yields tables, once."""

    source: Callable[[], Iterator[Any]]

    def names(self) -> tuple[str, ...]:
        return tuple(_as_table(next(self.source()), self.title).column_names)

    def tables(self, kinds: Mapping[str, Kind], rows: int) -> Iterator[pa.Table]:
        for table in self.source():
            held = _as_table(table, self.title)
            _lacking(kinds, held.column_names, self.title)
            yield from _sliced(held.select(list(kinds) or held.column_names), rows)


def _as_table(given: Any, title: str) -> pa.Table:
    if isinstance(given, pa.Table):
        return given
    if isinstance(given, pa.RecordBatch):
        return pa.Table.from_batches([given])
    return FrameTable(given, title).whole()


def _sliced(table: pa.Table, rows: int) -> Iterator[pa.Table]:
    for start in range(0, table.num_rows, rows):
        yield table.slice(start, rows)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """A table in pieces.

    Attributes
    ----------
    title : str
        What to call it.
    pieces : tuple of Piece
        In order.
    reading : Reading
        How each is read.
    rows : int, optional
        Their rows, where that is known.
    again : bool
        Whether pieces may be read again, and by other processes.
    first : tuple of EvalSet
        Of the first rows.
    explanation : tuple of ColumnUse
        How each column is read.
    notes : tuple of str
        What the reader of a result should know.
    time_range : tuple of float, optional
        The first and the last time, dates in seconds, where the files say so.
    """

    title: str
    pieces: tuple[Piece, ...]
    reading: Reading
    rows: int | None
    again: bool
    first: tuple[EvalSet, ...]
    explanation: tuple[ColumnUse, ...] = ()
    notes: tuple[str, ...] = ()
    time_range: tuple[float, float] | None = None


def cut(
    source: Any,
    *,
    missing: Missing = "error",
    crossing: Crossing = "error",
    encoding: str | None = None,
    decimal: str = ".",
    **columns: Unpack[Columns],
) -> Cut:
    """Cut a table into pieces, and decide how all of them are read; arguments as in `load`."""
    if isinstance(source, str | os.PathLike):
        files = list_files(os.fspath(source))
        title = files[0].path if len(files) == 1 else f"{os.fspath(source)} ({len(files):,} files)"
        pieces = tuple(piece for file in files for piece in _pieces_of(file, encoding, decimal))
        again = True
    else:
        title, again = "the table", False
        pieces = (Given(path=title, title=title, source=_yielding(source)),)
    known = [piece for piece in pieces if piece.rows != 0]
    if not known:
        raise InputError(f"{title}: the table holds columns but no rows")
    if not again:
        (whole,) = known
        ahead = _Ahead(whole)
        known, pieces = [ahead.peeked()], (ahead.rest(),)
    reading, first, uses, notes = _decided(
        known[0],
        Reading(
            models=(),
            missing=missing,
            crossing=crossing,
            encoding=encoding,
            decimal=decimal,
            from_text=isinstance(known[0], TextPiece),
            many=len({piece.path for piece in pieces}) > 1,
        ),
        columns,
    )
    counts = [piece.rows for piece in pieces]
    return Cut(
        title=title,
        pieces=pieces,
        reading=reading,
        rows=None if None in counts else sum(count or 0 for count in counts),
        again=again,
        first=first,
        explanation=uses,
        notes=notes,
        time_range=_time_range(pieces, reading),
    )


def _decided(
    piece: Piece, reading: Reading, said: Columns
) -> tuple[Reading, tuple[EvalSet, ...], tuple[ColumnUse, ...], tuple[str, ...]]:
    """How a table is read, by the names of its columns and its first rows."""
    names = piece.names()
    models = assign_models(names, said)
    if any(roles.long for roles in models):
        raise InputError(
            f"{piece.title}: a long table, with a row for each part of a prediction, cannot be "
            "read by pieces: make it wide, a column for each level or draw, or name its columns"
        )
    if any(roles["model"] for roles in models):
        column = models[0].one("model") or ""
        raise InputError(
            f"{piece.title}: a table is read by pieces for one model, or several in columns of "
            f'their own, got the model column {quoted(column)}; --model "" leaves it out'
        )
    if any(roles["encode"] or roles["image"] for roles in models):
        raise InputError(f"{piece.title}: texts and images cannot be encoded by pieces")
    if len(models) == 1 and not models[0].model:
        reading = replace(reading, name=_stem(piece.path) if not reading.many else "")
    kinds = replace(reading, models=tuple(models)).kinds
    table = next((t for t in piece.tables_of(kinds, BATCH) if t.num_rows), None)
    if table is None:
        raise InputError(f"{piece.title}: the table holds columns but no rows")
    source = _Rows(table, piece.title, reading.from_text, reading.decimal)
    cells = [read_told(source, roles, said) for roles in models]
    for each in cells:
        if said.get("model") is None:
            check_unstacked(source, each)
    reading = replace(reading, models=tuple(each.roles for each in cells))
    first = reading.build(table, piece.title, piece.first).evalsets
    if not first:
        raise InputError(f"{piece.title}: a row without missing cells is needed, got none at first")
    uses = explain_models(names, reading.models, piece.title)
    notes = dict.fromkeys(note for each in cells for note in each.notes)
    return reading, first, uses, tuple(notes)


def _stem(path: str) -> str:
    return Path(path).name.split(".")[0]


def _time_range(pieces: Sequence[Piece], reading: Reading) -> tuple[float, float] | None:
    """The first and the last time, by what Parquet files state of their columns."""
    column = reading.models[0].one("time")
    spans = [piece.span_of(column) for piece in pieces] if column else [None]
    if None in spans:
        return None
    lows, highs = zip(*(span for span in spans if span is not None), strict=True)
    return min(lows), max(highs)


@final
class _Ahead:
    """A source that is read once: its first table is looked at, and comes again."""

    def __init__(self, piece: Piece) -> None:
        self._piece = piece
        self._tables = piece.tables({}, BATCH)
        self._first = next(self._tables, None)

    def peeked(self) -> Piece:
        """The first table alone."""
        held = [] if self._first is None else [self._first]
        return Given(path=self._piece.path, title=self._piece.title, source=lambda: iter(held))

    def rest(self) -> Piece:
        """All tables, the first one too."""

        def every() -> Iterator[pa.Table]:
            if self._first is not None:
                yield self._first
            yield from self._tables

        return Given(path=self._piece.path, title=self._piece.title, source=every)


def is_stream(source: Any) -> bool:
    """Whether a source yields tables, and is none itself."""
    if isinstance(source, str | os.PathLike | Mapping | list | tuple):
        return False
    return not nw.dependencies.is_into_dataframe(source) and _streams(source) is not None


def _yielding(source: Any) -> Callable[[], Iterator[Any]]:
    """What yields the tables of a source that is no file."""
    found = _streams(source)
    if found is None:
        raise InputError(
            "a table must be a file, a folder, a data frame or yield Arrow batches, got "
            f"{type(source).__name__}"
        )
    return found


def _streams(source: Any) -> Callable[[], Iterator[Any]] | None:
    """How a source yields tables: Arrow's stream, or the way of its library."""
    if hasattr(source, "iter_batches"):  # Ray
        return lambda: iter(source.iter_batches(batch_format="pyarrow", batch_size=BATCH))
    if hasattr(source, "collect_batches"):  # a lazy frame of Polars
        return lambda: iter(source.collect_batches(chunk_size=BATCH))
    if hasattr(source, "to_delayed") and hasattr(source, "partitions"):  # Dask
        return lambda: (part.compute() for part in source.partitions)
    if hasattr(source, "to_batches") and not is_frame(source):  # a dataset of Arrow
        return lambda: iter(source.to_batches(batch_size=BATCH))
    if hasattr(source, "__arrow_c_stream__"):
        return lambda: iter(pa.RecordBatchReader.from_stream(source))
    return (lambda: source) if isinstance(source, Iterator) else None


@dataclass(frozen=True, slots=True)
class _File:
    """A file of a table, with its size, when it changed, and what its folders say."""

    path: str
    size: int
    changed: str
    partition: tuple[tuple[str, Any], ...] = ()


def is_address(path: str) -> bool:
    """Whether a path is an address that fsspec may know."""
    return "://" in path


def list_files(source: str) -> list[_File]:
    """The files of a table: one, or those of a folder or a pattern, in the order of their names.

    Names that begin with a dot or an underscore are left out in folders, as others do.
    """
    find = _found_at_address if is_address(source) else _found_on_disk
    files, root = find(source)
    if not files:
        raise InputError(f"{source}: no file of a table is there")
    for file in files:
        table_form(file.path)
    endings = {table_form(file.path)[0] for file in files}
    groups = [set(PARQUET_ENDINGS), set(ARROW_ENDINGS), {".csv", ".tsv"}]
    if sum(bool(endings & group) for group in groups) > 1:
        raise InputError(f"{source}: files must be of one kind, got {listed(sorted(endings))}")
    return [replace(file, partition=_partition(file.path, root)) for file in files]


def _found_on_disk(source: str) -> tuple[list[_File], str]:
    path = Path(source).expanduser()
    if path.is_dir():
        names = [each for each in path.rglob("*") if each.is_file() and not _hidden(each, path)]
        root = str(path)
    elif path.exists() or not glob.has_magic(source):
        if not path.exists():
            raise InputError(f"{source}: there is no such file")
        names, root = [path], str(path.parent)
    else:
        names = [Path(each) for each in glob.glob(str(path), recursive=True)]
        names = [each for each in names if each.is_file()]
        root = source[: re.search(r"[*?\[]", source).start()]  # type: ignore[union-attr]
    stats = [(str(each), each.stat()) for each in sorted(names)]
    return [_File(name, stat.st_size, str(stat.st_mtime_ns)) for name, stat in stats], root


def _found_at_address(source: str) -> tuple[list[_File], str]:
    core = require("fsspec.core", extra="cluster")
    with refusing(source):
        system, path = core.url_to_fs(source)
        if system.isdir(path):
            names = [n for n in system.find(path) if not _hidden(Path(n), Path(path))]
        elif glob.has_magic(path):
            names = [name for name in system.glob(path) if system.isfile(name)]
        else:
            names = [path] if system.exists(path) else []
        facts = [(name, system.info(name)) for name in sorted(names)]
    return [
        _File(
            system.unstrip_protocol(name),
            int(info.get("size") or 0),
            str(info.get("ETag") or info.get("mtime") or info.get("created") or ""),
        )
        for name, info in facts
    ], str(path)


def _hidden(path: Path, root: Path) -> bool:
    return any(part.startswith((".", "_")) for part in path.relative_to(root).parts)


def _partition(path: str, root: str) -> tuple[tuple[str, Any], ...]:
    """The columns that folders called ``name=value`` give."""
    held = []
    inner = path[len(root) :] if path.startswith(root) else path
    for part in Path(inner).parts[:-1]:
        name, equals, value = part.partition("=")
        if equals and name:
            number = re.fullmatch(r"-?\d{1,15}", value)
            held.append((name, int(value) if number else "" if value == _NULL else value))
    return tuple(held)


@contextmanager
def opened(path: str) -> Iterator[pa.NativeFile]:
    """A file for reading, wherever it lies."""
    if not is_address(path):
        with refusing(path), pa.OSFile(path) as file:
            yield file
        return
    core = require("fsspec.core", extra="cluster")
    with refusing(path):
        system, inner = core.url_to_fs(path)
        with system.open(inner, "rb") as handle, pa.PythonFile(handle, mode="r") as file:
            yield file


def _pieces_of(file: _File, encoding: str | None, decimal: str) -> Iterator[Piece]:
    """The pieces of one file."""
    ending, _ = table_form(file.path)
    told: dict[str, Any] = {"path": file.path, "partition": file.partition}

    def identity(*part: object) -> str:
        return hashlib.sha256(repr((file, *part)).encode()).hexdigest()

    if ending in PARQUET_ENDINGS:
        with opened(file.path) as handle, refusing(file.path), pq.ParquetFile(handle) as held:
            sizes = [held.metadata.row_group(k).num_rows for k in range(held.num_row_groups)]
        first = 0
        for groups in _together(sizes):
            rows = sum(sizes[k] for k in groups)
            yield ParquetPiece(
                **told,
                title=file.path,
                rows=rows,
                first=first,
                groups=tuple(groups),
                identity=identity(tuple(groups)),
            )
            first += rows
    elif ending in ARROW_ENDINGS:
        with opened(file.path) as handle, refusing(file.path):
            whole = handle.read(6) == b"ARROW1"
            handle.seek(0)
            numbers = range(pa.ipc.open_file(handle).num_record_batches) if whole else None
        yield ArrowPiece(
            **told,
            title=file.path,
            numbers=None if numbers is None else tuple(numbers),
            identity=identity(),
        )
    else:
        yield TextPiece(
            **told, title=file.path, encoding=encoding, decimal=decimal, identity=identity()
        )


def _together(sizes: Sequence[int]) -> Iterator[list[int]]:
    """Row groups in pieces of at least so many rows; an empty file is one without any."""
    held: list[int] = []
    total = 0
    for place, size in enumerate(sizes):
        held.append(place)
        total += size
        if total >= PIECE:
            yield held
            held, total = [], 0
    if held or not sizes:
        yield held
