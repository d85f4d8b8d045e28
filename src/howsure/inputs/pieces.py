"""A table of any size, cut into pieces that are read by record batches."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Unpack

import pyarrow as pa
import pyarrow.parquet as pq

from howsure.core.convert import check_whole
from howsure.core.errors import InputError, within
from howsure.inputs import values
from howsure.inputs.batches import Batch as Batch
from howsure.inputs.batches import ReadPlan as ReadPlan
from howsure.inputs.batches import forms_of, several_models
from howsure.inputs.cells import Crossing, ParsedColumns
from howsure.inputs.columns import assign_models
from howsure.inputs.matching import Missing
from howsure.inputs.names import FEWEST_SERIES, KEYS, ColumnUse, explain_models, normal_form
from howsure.inputs.parts import Piece as Piece
from howsure.inputs.parts import StreamPiece
from howsure.inputs.places import Listing, Manifest, ReadFile
from howsure.inputs.roles import BY_NAME, LONG, Columns, Kind
from howsure.inputs.source import Source, quoted
from howsure.inputs.sources import BATCH_ROWS as BATCH_ROWS
from howsure.inputs.sources import PIECE_ROWS, TablePieces, begin, planned
from howsure.inputs.tables import check_choices, check_one_model, read_decided

_LOOKS: Final = 20  # pieces that are looked at to count series


@dataclass(frozen=True, slots=True)
class Scan:
    """A table of any size, in pieces."""

    title: str  # what to call the whole
    pieces: tuple[Piece, ...]  # its rows in order; one piece of what yields its rows once
    again: bool  # whether they may be read again, and by other processes
    rows: int | None  # how many rows there are, where that is known without reading them
    reading: ReadPlan  # how to read each
    explanation: tuple[ColumnUse, ...]  # how each column is read
    notes: tuple[str, ...] = ()  # what the reader of a result should know
    # the least and the greatest time, in the unit that evaluation sets hold it in, where the
    # statistics of Parquet files tell
    time_range: tuple[float, float] | None = None
    listing: Listing | None = None  # the files that the pieces are of, where they were listed

    def manifest(self, read: Iterable[ReadFile]) -> Manifest:
        """What was read, in the order of the files: files without rows and what was skipped too."""
        whole = Manifest(files=tuple(read)).joined()
        if self.listing is None:
            return whole
        held = {file.found: file for file in whole.files}
        for place in self.listing.places:
            place.check_unchanged()
        files = (held.get(place.path) or ReadFile.of(place) for place in self.listing.places)
        return Manifest(files=tuple(files), skipped=self.listing.skipped)


def cut(
    source: Any,
    *,
    missing: Missing = "error",
    crossing: Crossing = "error",
    encoding: str | None = None,
    decimal: str = ".",
    batch_rows: int = BATCH_ROWS,
    piece_rows: int = PIECE_ROWS,
    **columns: Unpack[Columns],
) -> Scan:
    """Cut a table into pieces, and decide how each is read.

    What names of columns tell is decided from the first file, what content tells from its first
    rows; all others must then hold the same.

    Parameters
    ----------
    source : path, address, or what yields Arrow batches
        A file as `howsure.inputs.load` takes it, a folder of such files (``key=value`` in names of
        folders becomes a column), a pattern such as ``'preds/*.parquet'``, any of these at an
        address that fsspec knows; what has ``__arrow_c_stream__``, an iterable of record batches
        or data frames, a dataset of pyarrow, a lazy frame of Polars, a data frame of dask, a Ray
        dataset.
    missing, crossing, encoding, decimal, **columns
        As `howsure.inputs.load` takes them.
    batch_rows : int
        Rows of a batch, at most.
    piece_rows : int
        Rows of a piece of a file that can be cut, at most, unless a row group holds more.

    Returns
    -------
    Cut

    Examples
    --------
    >>> rows = {"y": [1.0, 2.0], "lower_90": [0.0, 1.0], "upper_90": [2.0, 3.0]}
    >>> held = cut(iter([pa.table(rows)]))
    >>> [batch.rows for piece in held.pieces for batch in piece.batches(held.reading)]
    [2]
    """
    check_choices(missing, crossing)
    check_whole(batch_rows, "batch_rows")
    check_whole(piece_rows, "piece_rows")
    plan = planned(source, encoding, decimal, piece_rows)
    head = _head(plan, batch_rows)
    parts, notes = _read_head(head, columns)
    parts = [_with_series(part, plan.pieces, batch_rows) for part in parts]
    roles = [part.roles for part in parts]
    frozen = tuple(  # with nothing that content may change
        replace(model.only(lambda role: role.name != "image"), guessed=model.guessed & {"ease"})
        for model in roles
    )
    model = parts[0].one("model")
    named = "" if model is None else str(model.labels[0])
    time = frozen[0].one("time")
    zoned = None if time is None else values.names_zone(head.read({time: "time"})[time])
    reading = ReadPlan(
        roles=frozen[0],
        models=frozen,
        names=(named,) if named else tuple(m.model or plan.model or "model" for m in frozen),
        forms=forms_of(parts),
        classes=parts[0].labels,
        named=named,
        missing=missing,
        crossing=crossing,
        encoding=encoding,
        decimal=decimal,
        batch_rows=batch_rows,
        zoned=zoned,
    )
    counts = [piece.rows for piece in plan.pieces]
    return Scan(
        title=plan.title,
        pieces=plan.pieces,
        again=plan.again,
        rows=None if None in counts else sum(count or 0 for count in counts),
        reading=reading,
        explanation=explain_models(head.names, roles, plan.title),
        notes=notes,
        time_range=_time_range(plan.footers, reading),
        listing=plan.listing,
    )


class _Head(Source):
    """The first rows of a table, any columns of which can be read."""

    def __init__(self, piece: Piece, names: tuple[str, ...], first: pa.Table | int) -> None:
        self.title = piece.file
        self.names = names
        self.from_text = piece.from_text
        self.decimal = piece.decimal
        self.notes = piece.notes()
        self._piece = piece
        self._first = first
        self.check_names()

    def read(self, kinds: Mapping[str, Kind]) -> pa.Table:
        """The named columns."""
        if isinstance(self._first, int):
            return begin(self._piece, kinds, self._first)
        return self._first.select(list(kinds))


def _head(plan: TablePieces, rows: int) -> _Head:
    """The first rows of the first piece that holds any."""
    for piece in plan.pieces:
        names = piece.names()
        if isinstance(piece, StreamPiece):
            table = piece.head(rows)
            if table.num_rows:
                return _Head(piece, names, table)
        elif names and begin(piece, {names[0]: "key"}, rows) is not None:
            return _Head(piece, names, rows)
    what = "the table holds" if len(plan.pieces) == 1 else "the parts hold"
    raise InputError(f"{plan.title}: {what} columns but no rows")


def _read_head(head: _Head, said: Columns) -> tuple[list[ParsedColumns], tuple[str, ...]]:
    """The first rows of each model, with the roles that names and content give the columns."""
    with within(head.title):
        models = assign_models(head.names, said)
    parts = []
    for roles in models:
        if roles.encoder is not None:
            raise InputError(
                f"{head.title}: a column cannot be encoded in a table that is read in parts: "
                "encode it first, and give the columns of the embedding (embedding=, --embedding)"
            )
        cells = read_decided(head, roles, said)
        if cells.roles.long:
            role = next(role for role in LONG if roles[role])
            raise InputError(
                f"{head.title}: a table that is read in parts must hold a row for each case, and "
                f"{quoted(roles[role][0])} makes this a long table, with a row for each level or "
                f"draw: make it wide first, or pass {role}='' ({BY_NAME[role].option} \"\") where "
                "it is none"
            )
        names = cells.one("model")
        if names is not None and len(names.labels) != 1:
            raise InputError(several_models(head.title, cells.roles, names.labels.tolist()))
        check_one_model(head, cells, said)
        parts.append(cells)
    notes = dict.fromkeys(note for cells in parts for note in cells.notes)
    if marks := parts[0].roles.missing_values:
        stand = ", ".join(f"{value:.10g}" for value in marks)
        notes[f"{head.title}: read as a missing value: {stand}"] = None
    if parts[0].roles["image"]:
        notes[f"{head.title}: images are not shown of a table that is read in parts"] = None
    return parts, tuple(notes)


def _with_series(cells: ParsedColumns, pieces: Sequence[Piece], rows: int) -> ParsedColumns:
    """The first rows, with the series as clusters if those of some other pieces are many enough.

    Where series lie one after another, the first rows hold a few of all alone.
    """
    name = next((name for name in cells.roles.notes if normal_form(name) == KEYS[0]), None)
    if name is None or name in cells.roles["cluster"] or isinstance(pieces[0], StreamPiece):
        return cells
    step = max(len(pieces) // _LOOKS, 1)
    found: set[Any] = set()
    for piece in pieces[::step]:
        table = begin(piece, {name: "label"}, rows)
        if table is not None:
            labels = values.labels(table[name], name, from_text=piece.from_text)
            found.update(map(str, labels.labels.tolist()))
        if len(found) >= FEWEST_SERIES:
            roles = cells.roles
            groups = tuple(group for group in roles["groups"] if group != name)
            held = {**roles.columns, "groups": groups, "cluster": (name,)}
            notes = {key: note for key, note in roles.notes.items() if key != name}
            return replace(cells, roles=replace(roles, columns=held, notes=notes))
    return cells


def _time_range(
    footers: Sequence[pq.FileMetaData], reading: ReadPlan
) -> tuple[float, float] | None:
    """The least and the greatest time that statistics of all row groups tell."""
    if len(reading.roles["time"]) != 1:  # of dates and times of day, these tell the days alone
        return None
    (name,) = reading.roles["time"]
    ends: list[float] = []
    for footer in footers:
        names = [footer.schema.column(place).path for place in range(footer.num_columns)]
        if name not in names:
            return None
        place = names.index(name)
        scale = _scale(footer.schema.column(place), reading.moments)
        for group in range(footer.num_row_groups):
            column = footer.row_group(group).column(place)
            held = column.statistics
            if footer.row_group(group).num_rows == 0:
                continue
            if scale is None or held is None or not held.has_min_max:
                return None
            ends += [float(held.min_raw) * scale, float(held.max_raw) * scale]
    return (min(ends), max(ends)) if ends else None


_SECONDS: Final = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}


def _scale(column: Any, moments: str | None) -> float | None:
    """What the raw numbers of a column are times, in the unit of moments; None if unknown."""
    kind = column.logical_type.type
    if column.physical_type not in ("INT32", "INT64", "FLOAT", "DOUBLE"):
        return None
    if moments is None:
        return 1.0 if kind in ("NONE", "INT") else None
    if moments not in _SECONDS:
        return None
    if kind == "DATE":
        return 86_400 / _SECONDS[moments]
    if kind != "TIMESTAMP":
        return None
    unit = str(column.logical_type)
    found = next((short for word, short in _UNITS.items() if word in unit), None)
    return None if found is None else _SECONDS[found] / _SECONDS[moments]


_UNITS: Final = {"milliseconds": "ms", "microseconds": "us", "nanoseconds": "ns"}
