"""Tables in, evaluation sets out: whole, or cut into pieces that are read by record batches."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from inspect import Parameter, signature
from typing import Any, Unpack

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from howsure.core.arrays import AnyArray
from howsure.core.classes import frozen
from howsure.core.convert import check_whole
from howsure.core.errors import InputError, within
from howsure.core.progress import Listener, subscribe
from howsure.core.text import quoted
from howsure.inputs import values
from howsure.inputs.batches import BATCH_ROWS, ReadPlan, forms_of, several_models
from howsure.inputs.cells import (
    Crossing,
    ParsedColumns,
    build,
    crossing_notes,
    read_cells,
    read_embedding,
    told_of_marks,
    without_y,
)
from howsure.inputs.classes import MisfitError, without_classes
from howsure.inputs.columns import assign_models, assign_roles
from howsure.inputs.long import check_unstacked, is_long, refuse_long, widened, without_long
from howsure.inputs.matching import (
    Missing,
    align,
    check_same_rows,
    gaps_of,
    in_common,
    in_one_order,
    kept_rows,
    lacking_y,
    left_out,
    split_models,
)
from howsure.inputs.names import (
    KEYS,
    MIN_SERIES,
    ColumnUse,
    Roles,
    censoring,
    encoder_name,
    explain_models,
    normal_form,
    stated_spreads,
)
from howsure.inputs.parts import FirstRows, Piece, PiecedTable, begin, count_rows
from howsure.inputs.places import NO_FILES, Listing, Manifest, ReadFile
from howsure.inputs.roles import BY_NAME, LONG, ROLES, Columns, name_roles
from howsure.inputs.source import Source, in_lines, listed
from howsure.inputs.sources import PIECE_ROWS, planned, sources
from howsure.predictions import EvalSet

SAMPLE = "Sample"
"""The fact that says how many rows a sample has."""
FILES = "Files"
"""The fact that says which files were read, and what lies beside them and was not."""


@frozen(kw_only=True)
class Loaded:
    """Evaluation sets, with what is known of their rows besides.

    Attributes
    ----------
    evalsets : tuple of EvalSet
        One for each model, on the same rows in the same order.
    explanation : tuple of ColumnUse
        How each column was read.
    dropped : int
        Rows of the tables left out because a cell was missing; a row that one model misses is
        left out for all.
    dropped_by : mapping of str to int
        For each column, in how many rows of the tables its cell was missing.
    notes : tuple of str
        What the reader of a result should know.
    roles : Roles
        The columns' roles in the first table.
    texts : mapping of str to ndarray of str, shape (n,)
        The column of texts or paths that was encoded or named as images, as it stands in the
        table, for the rows of the sets.
    images : ndarray of str, shape (n,), optional
        The image file of each row, as an absolute path; it need not exist.
    totals : tuple
        What all rows of each model add up to (`howsure.streaming`), where those of the sets are a
        sample of them.
    manifest : Manifest
        The files that were read, if the table has several files or is read in parts.
    """

    evalsets: tuple[EvalSet, ...]
    explanation: tuple[ColumnUse, ...] = ()
    dropped: int = 0
    dropped_by: Mapping[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    roles: Roles = field(default_factory=lambda: Roles(columns={"y": ("y",)}))
    texts: Mapping[str, AnyArray] = field(default_factory=dict)
    images: AnyArray | None = None
    totals: tuple[Any, ...] = ()
    manifest: Manifest = field(default_factory=Manifest)

    @property
    def unread(self) -> tuple[str, ...]:
        """Columns that state no spread, though their names say that they state an uncertainty."""
        alone = not any(evalset.predictions for evalset in self.evalsets)
        roles = {"ignored", BY_NAME["uncertainty"].told} if alone else {"ignored"}
        return tuple(stated_spreads(u.column for u in self.explanation if u.role in roles))

    @property
    def censoring(self) -> tuple[str, ...]:
        """Columns that play no role, though their names say that they mark censored rows."""
        return tuple(censoring(u.column for u in self.explanation if u.role == "ignored"))

    @property
    def facts(self) -> dict[str, str]:
        """What to state of the input in a report."""
        facts = {}
        if self.totals:
            rows, few = self.totals[0].n, self.evalsets[0].n
            facts["Rows"] = f"{rows:,}"
            facts[SAMPLE] = (
                f"{few:,} of {rows:,} rows, for results that need more than sums over all rows"
            )
        if files_told := self.manifest.fact():
            facts[FILES] = files_told
        if self.dropped:
            facts["Dropped rows"] = f"{self.dropped:,}"
        if self.notes:
            facts["Reading"] = "; ".join(self.notes)
        if self.roles.encoder is not None:
            (column,) = self.roles["encode"]
            facts["Embedding"] = f"{column} by {encoder_name(self.roles.encoder)}"
        return facts


def load(
    source: Any,
    *,
    missing: Missing = "error",
    common_rows: bool = False,
    crossing: Crossing = "error",
    encoding: str | None = None,
    decimal: str = ".",
    progress: Listener | None = None,
    **columns: Unpack[Columns],
) -> Loaded:
    """Read a table, or several, into evaluation sets.

    Parameters
    ----------
    source : path, dataframe, mapping of str to array, or sequence of these
        A file (.csv, .tsv, also .gz and .zst; .parquet; .arrow, .feather; .nc, .jsonl), any
        dataframe that narwhals takes, arrays by name, or what ArviZ calls InferenceData. Several
        are several models on the same rows; each is called after its file. What is known of the
        rows besides (groups, features, weights, cluster, time) comes from the first.
    missing : {"error", "drop"}
        What to do with rows where a cell is missing.
    common_rows : bool
        Whether models on unequal rows are compared on those that all share, by the column `rows`
        of names; otherwise unequal rows are an error.
    crossing : {"error", "sort"}
        What to do with rows whose quantiles, or ends of intervals, cross.
    encoding : str, optional
        Encoding of text files; UTF-8, or what a byte order mark says, if omitted.
    decimal : {".", ","}
        Decimal mark of text files.
    progress : callable, optional
        Called with a stage's name, steps done and steps in all, where a column is encoded.
    y, point, mean, sd, ease, image, weights, cluster, time, model, rows : str, optional
        The column of a role. For all roles: names decide where nothing is said (docs/inputs.md
        lists them), and ``""`` leaves a role empty. Paths of images start from the table's folder.
    quantile_level, sample_id, output_type, boundary : str, optional
        Columns of a long table, a row for each level or draw, whose values `point` holds.
    points : str or sequence of str, optional
        Columns that are each the point forecast of a model, called after its column; names or
        patterns such as ``DNN*``.
    lower, upper : str or sequence of str, optional
        Columns of the ends of intervals, in one order.
    coverage : float or sequence of float, optional
        Nominal coverage of each pair of them.
    quantiles : mapping of float to str, or sequence of "LEVEL=COLUMN", optional
        Columns of quantiles.
    law : str, optional
        ``NAME:PARAMETER=COLUMN,…``; a number may stand for a column.
    softmax : str or sequence of str, optional
        Columns of class probabilities, or a pattern such as ``p_*`` that leaves the class open;
        y holds the class. Without label sets, the likeliest classes that together reach the
        coverage (0.9 if none is given) are judged.
    label_set : str, optional
        Column of label sets, each as ``cat|dog`` or a list.
    samples, embedding, groups, features : str or sequence of str, optional
        Names or patterns such as ``s_*``; a text may hold several with commas between. A pattern
        of features takes columns that have no other role. A column of the embedding may hold a
        list of numbers in each cell.
    encode : mapping of str to encoder, "COLUMN=ENCODER", or a sequence of one such, optional
        A column of texts or of paths of images, and what turns it into the embedding.
    weights_kind : {"frequency", "importance"}, optional
        What weights mean: ``frequency`` unless the column is called ``importance_weight``.
    missing_value : float or sequence of float, optional
        Numbers that stand for missing values, such as -9999.

    Returns
    -------
    Loaded

    Raises
    ------
    InputError
        If a table cannot be read, its columns cannot be told apart, a cell is missing or is not
        what its role needs, a prediction is impossible, models do not share their rows, or a column
        cannot be encoded.

    Examples
    --------
    >>> loaded = load({"y": [1.0, 2.0], "lower_90": [0.0, 1.0], "upper_90": [2.0, 3.0]})
    >>> loaded.evalsets[0].predictions[0].coverages
    (0.9,)
    >>> [f"{use.column}: {use.role}" for use in loaded.explanation]
    ['y: y', 'lower_90: lower end at 90 %', 'upper_90: upper end at 90 %']
    """
    check_choices(missing, crossing)
    with in_lines(sources(source, encoding, decimal)) as tables:
        many = isinstance(source, list | tuple) and len(source) > 1
        loaded = _loaded(tables, missing, common_rows, crossing, progress, columns, many)
    pa.default_memory_pool().release_unused()  # half of all memory else, of a large table
    return loaded


def check_choices(missing: str, crossing: str) -> None:
    """Raise `InputError` for any other way to treat missing cells, or ends that cross."""
    for name, value, other in (("missing", missing, "drop"), ("crossing", crossing, "sort")):
        if value not in ("error", other):
            raise InputError(f"{name} must be 'error' or {other!r}, got {value!r}")


def _loaded(
    opened: Iterator[Source],
    missing: Missing,
    common_rows: bool,
    crossing: Crossing,
    progress: Listener | None,
    columns: Columns,
    many: bool,
) -> Loaded:
    """What `load` gives, of tables that are opened one by one."""
    read = list(_read(opened, columns, many=many))
    tables: list[ParsedColumns] = []
    for cells in read:
        tables += _by_case(cells, missing, several=many) if cells.roles.long else [cells]
    gaps = gaps_of(tables, missing)
    parts, unshared = _named_parts(tables, common=common_rows)
    parts = in_one_order(parts)
    complete = kept_rows(parts, gaps)
    check_same_rows(parts, complete)
    bare_sets = without_y(parts, lacking_y(parts), int(np.argmax(complete)))
    parts = parts if complete.all() else [cells_of_model.take(complete) for cells_of_model in parts]
    roles = tables[0].roles
    with subscribe(progress):
        texts, vectors, images = read_embedding(parts[0])
    evalsets = build(parts, crossing=crossing, embedding=vectors, bare_sets=bare_sets)
    notes = list(dict.fromkeys(note for cells in tables for note in cells.notes))
    notes += told_of_marks(read)
    if columns.get("weights_kind") and not roles["weights"]:
        notes.append("weights_kind is not used because there are no weights")
    not_shared = sum(unshared.values())
    dropped = (
        sum(cells.n for cells in tables)
        - sum(cells_of_model.n for cells_of_model in parts)
        - not_shared
    )
    if dropped:
        notes.append(left_out(dropped, gaps))
    if not_shared:
        counts_told = ", ".join(
            f"{count:,} of {quoted(name)}" for name, count in unshared.items() if count
        )
        notes.append(f"rows that some models do not have are omitted: {counts_told}")
    return Loaded(
        evalsets=evalsets,
        explanation=_explained((cells.names, cells.title, cells.roles) for cells in read),
        dropped=dropped,
        dropped_by=gaps,
        notes=(*notes, *crossing_notes(evalsets)),
        roles=roles,
        texts=texts,
        images=images,
    )


_source, *_others, _ = signature(load).parameters.values()
_keywords = [
    Parameter(
        role.name,
        Parameter.KEYWORD_ONLY,
        default=None,
        annotation=Columns.__annotations__[role.name].__forward_arg__,
    )
    for role in ROLES
]
load.__signature__ = signature(load).replace(  # type: ignore[attr-defined]
    parameters=[_source, *_keywords, *_others]
)
"""What editors and `help` show: every role by name."""


def explain(
    source: Any, *, encoding: str | None = None, decimal: str = ".", **columns: Unpack[Columns]
) -> tuple[ColumnUse, ...]:
    """How the columns of a table would be read, from their names alone; arguments as in `load`."""
    pairs = _with_roles(sources(source, encoding, decimal), columns)
    return _explained((table.names, table.title, roles) for table, roles, _ in pairs)


def _explained(
    read: Iterable[tuple[Sequence[str], str, Roles]],
) -> tuple[ColumnUse, ...]:
    """How the columns of each table were read, by its models."""
    tables: dict[str, tuple[Sequence[str], list[Roles]]] = {}
    for names, title, roles in read:
        tables.setdefault(title, (names, []))[1].append(roles)
    return tuple(
        use
        for title, (names, models) in tables.items()
        for use in explain_models(names, models, title)
    )


def _with_roles(
    tables: Iterator[Source], flags: Columns
) -> Iterator[tuple[Source, Roles, Columns]]:
    """Roles of each table, and what is said of it.

    After the first, only those that tell of a model, and its groups.
    """
    first: Roles | None = None
    for table in tables:
        if first is not None:
            emptied: Any = {role.name: "" for role in ROLES if role.of in ("inputs", "rows")}
            emptied["groups"] = [name for name in first["groups"] if name in table.names]
            flags = {**flags, **emptied}
        with within(table.title):
            models = assign_models(table.names, flags)
        first = first or models[0]
        for roles in models:
            yield table, roles, flags


def _read(tables: Iterator[Source], flags: Columns, *, many: bool) -> Iterator[ParsedColumns]:
    """The cells of each table, none of a model that no column names."""
    for table, roles, columns in _with_roles(tables, flags):
        cells, _ = read_decided(table, roles, columns)
        if not cells.roles.long:
            check_one_model(table, cells, columns)
        if many and roles.model:
            cells = replace(cells, model=f"{table.stem}/{roles.model}".lstrip("/"))
        yield cells


def check_one_model(table: Source, cells: ParsedColumns, flags: Columns) -> None:
    """Raise `InputError` where models are one below the other, unless that is denied."""
    denied = flags.get("quantile_level" if cells.roles["model"] else "model")
    if denied is None:
        check_unstacked(table, cells)


def read_decided(
    table: Source,
    roles: Roles,
    flags: Any,
    needed: Callable[[Roles], Roles] = lambda roles: roles,
    *,
    outcome: bool = True,
) -> tuple[ParsedColumns, Roles]:
    """The cells of the roles that are needed, all finite, and all roles, as content settles them.

    It must be what names alone take for classes or a long table; what is none is read as if its
    names did not say so.
    """

    def again(names: Sequence[str], why: str) -> tuple[ParsedColumns, Roles]:
        decided = assign_roles(table.names, flags, outcome=outcome)
        notes = dict.fromkeys(names, why) | dict(decided.notes)
        return read_cells(table, needed(replace(decided, notes=notes))), decided

    try:
        cells = read_cells(table, needed(roles))
    except MisfitError as error:
        flags = without_classes(flags)
        names = (*roles["softmax"], *roles["label_set"])
        try:
            cells, roles = again(names, f"not read as class probabilities: {error}")
        except InputError:
            raise InputError(str(error)) from None
    if roles.long and not is_long(cells):
        flags = without_long(flags)
        names = tuple(name for role in LONG for name in roles[role])
        cells, roles = again(names, "its cells are not levels or draws of a long table")
    cells.check_finite()
    return cells, roles


def _by_case(cells: ParsedColumns, missing: Missing, *, several: bool) -> list[ParsedColumns]:
    """A long table as one with one row per case, for each model."""
    order = cells.roles.only(lambda role: role.name != "model")
    parts = [replace(model, roles=order) for model in _models(cells, several=several)]
    return widened(cells, parts, missing)


def _models(cells: ParsedColumns, *, several: bool) -> list[ParsedColumns]:
    """The models of a table, called after it too where there are several tables."""
    models = split_models(cells)
    if several and cells.roles["model"]:
        models = [
            replace(cells_of_model, model=f"{cells.model}/{cells_of_model.model}")
            for cells_of_model in models
        ]
    return models


def _named_parts(
    tables: Sequence[ParsedColumns], *, common: bool
) -> tuple[list[ParsedColumns], dict[str, int]]:
    """The models of all tables, each under a name of its own, their rows in one order.

    And how many rows of each are left out, if those in `common` alone are wanted.
    """
    parts: list[ParsedColumns] = []
    several = len(tables) > 1
    for number, cells in enumerate(tables, 1):
        stem = cells.model or (f"model {number}" if several else "model")
        parts += _models(replace(cells, model=stem), several=several)
    names = [cells_of_model.model for cells_of_model in parts]
    if len(set(names)) < len(names):
        raise InputError(
            f"models must have different names, got {listed(names)}; a model has the name of its "
            "file or the name in the model column"
        )
    if not parts:
        raise InputError("the model's name is missing in every row")
    if len(parts) == 1:
        return parts, {}
    return in_common(parts) if common else (align(parts), {})


# ---- a table of any size, cut into pieces that are read by record batches ------------------------

# Pieces that are looked at to count series: series are spread over a table, and fewer than ten are
# soon ten. By hand.
_PIECES_LOOKED_AT = 20


@frozen
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
    # statistics of Parquet files show
    time_range: tuple[float, float] | None = None
    listing: Listing = NO_FILES  # the files that the pieces are of, where they were listed

    def manifest(self, read: Iterable[ReadFile]) -> Manifest:
        """What was read, in the order of the files: files without rows and what was skipped too."""
        manifest = Manifest(files=tuple(read)).joined()
        if not self.listing.places:
            return manifest
        file_read = {file.found: file for file in manifest.files}
        for location in self.listing.places:
            location.check_unchanged()
        files = (
            file_read.get(location.path) or ReadFile.of(location)
            for location in self.listing.places
        )
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
    >>> [batch.rows for piece in held.pieces for batch in held.reading.batches(piece)]
    [2]
    """
    check_choices(missing, crossing)
    check_whole(batch_rows, "batch_rows")
    check_whole(piece_rows, "piece_rows")
    plan = planned(source, encoding, decimal, piece_rows)
    head = _head(plan, batch_rows)
    parts, notes = _read_head(head, columns)
    parts = [_with_series(cells, plan.pieces, batch_rows) for cells in parts]
    roles = [cells.roles for cells in parts]
    frozen = tuple(  # with nothing that content may change
        replace(model.only(lambda role: role.name != "image"), guessed=model.guessed & {"ease"})
        for model in roles
    )
    model = parts[0].column("model")
    named = "" if model is None else str(model.labels[0])
    time = frozen[0].column("time")
    zoned = None if time is None else values.names_zone(head.read({time: "time"})[time])
    reading = ReadPlan(
        roles=frozen[0],
        models=frozen,
        names=(named,) if named else tuple(m.model or plan.stem or "model" for m in frozen),
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
    return Scan(
        title=plan.title,
        pieces=plan.pieces,
        again=plan.again,
        rows=count_rows(plan.pieces),
        reading=reading,
        explanation=explain_models(head.names, roles, plan.title),
        notes=notes,
        time_range=_time_range(plan.footers, reading),
        listing=plan.listing,
    )


def _head(table: PiecedTable, rows: int) -> FirstRows:
    """The first rows of the first piece that holds any."""
    for piece in table.pieces:
        if piece.names and begin(piece, {piece.names[0]: "key"}, rows) is not None:
            return FirstRows(piece, rows)
    what = "the table has" if len(table.pieces) == 1 else "the parts have"
    raise InputError(f"{table.title}: {what} columns but no rows")


def _read_head(head: FirstRows, flags: Columns) -> tuple[list[ParsedColumns], tuple[str, ...]]:
    """The first rows of each model, with the roles that names and content give the columns."""
    with within(head.title):
        models = assign_models(head.names, flags)
    parts = []
    for roles in models:
        if roles.encoder is not None:
            raise InputError(
                f"{head.title}: columns cannot be encoded in a table read in parts: encode it "
                f"first, and pass the columns of the embedding with {name_roles(embedding=...)}"
            )
        cells, _ = read_decided(head, roles, flags)
        refuse_long(cells, "a table read in parts must have one row per case")
        names = cells.column("model")
        if names is not None and len(names.labels) != 1:
            raise InputError(several_models(head.title, cells.roles, names.labels.tolist()))
        check_one_model(head, cells, flags)
        parts.append(cells)
    notes = dict.fromkeys(note for cells in parts for note in cells.notes)
    if marks := parts[0].roles.missing_values:
        stand = ", ".join(f"{value:.10g}" for value in marks)
        notes[f"{head.title}: read as a missing value: {stand}"] = None
    if parts[0].roles["image"]:
        notes[f"{head.title}: images are not shown for a table read in parts"] = None
    return parts, tuple(notes)


def _with_series(cells: ParsedColumns, pieces: Sequence[Piece], rows: int) -> ParsedColumns:
    """The first rows, with the series as clusters if those of some other pieces are many enough.

    Where series lie one after another, the first rows hold a few of all alone.
    """
    name = next((name for name in cells.roles.notes if normal_form(name) == KEYS[0]), None)
    if name is None or name in cells.roles["cluster"]:
        return cells
    step = max(len(pieces) // _PIECES_LOOKED_AT, 1)
    series: set[Any] = set()
    for piece in pieces[::step]:
        table = begin(piece, {name: "label"}, rows)
        if table is not None:
            labels = values.labels(table[name], name, from_text=piece.from_text)
            series.update(map(str, labels.labels.tolist()))
        if len(series) >= MIN_SERIES:
            roles = cells.roles
            groups = tuple(group for group in roles["groups"] if group != name)
            columns = {**roles.columns, "groups": groups, "cluster": (name,)}
            notes = {key: note for key, note in roles.notes.items() if key != name}
            return replace(cells, roles=replace(roles, columns=columns, notes=notes))
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
        names = [footer.schema.column(position).path for position in range(footer.num_columns)]
        if name not in names:
            return None
        position = names.index(name)
        stored = footer.schema.column(position).physical_type
        kind = footer.schema.to_arrow_schema().field(name).type
        scale = _scale(stored, kind, reading.moments)
        for group in range(footer.num_row_groups):
            column = footer.row_group(group).column(position)
            statistics = column.statistics
            if footer.row_group(group).num_rows == 0:
                continue
            if scale is None or statistics is None or not statistics.has_min_max:
                return None
            ends += [float(statistics.min_raw) * scale, float(statistics.max_raw) * scale]
    return (min(ends), max(ends)) if ends else None


# By the unit of Arrow's times.
_SECONDS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}


def _scale(stored: str, kind: pa.DataType, moments: str | None) -> float | None:
    """What the raw numbers of a column are times, in the unit of moments; None if unknown."""
    if stored not in ("INT32", "INT64", "FLOAT", "DOUBLE"):
        return None
    if moments is None:
        return 1.0 if values.is_number(kind) else None
    if moments not in _SECONDS:
        return None
    if pa.types.is_date(kind):
        return 86_400 / _SECONDS[moments]
    return _SECONDS[kind.unit] / _SECONDS[moments] if pa.types.is_timestamp(kind) else None
