"""Rows that predictions were made for: read with no need of y, beside every column as it is.

All at once, or some at a time where they come in many files, or in one too large to be held.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import field, replace
from pathlib import Path, PurePath
from types import MappingProxyType
from typing import Any, Unpack, final

import numpy as np
import pyarrow as pa

from howsure.core.arrays import AnyArray, BoolArray, IntArray
from howsure.core.classes import frozen
from howsure.core.errors import InputError, within
from howsure.core.text import quoted
from howsure.core.weights import Weights
from howsure.inputs import values
from howsure.inputs.batches import BATCH_ROWS, ReadRows, regrouped
from howsure.inputs.cells import (
    Crossing,
    ParsedColumns,
    build,
    crossing_notes,
    read_cells,
    read_embedding,
    told_of_marks,
)
from howsure.inputs.columns import RECALIBRATED, assign_roles
from howsure.inputs.files import TEXT_ENDINGS, table_form
from howsure.inputs.long import is_long, refuse_long
from howsure.inputs.matching import Missing, counts_by_name, gaps_of, kept_rows, split_models
from howsure.inputs.names import Roles
from howsure.inputs.parts import FilePiece, count_rows
from howsure.inputs.places import Place, is_folder, places
from howsure.inputs.roles import ROLES, Columns, Kind
from howsure.inputs.source import Source, counted, listed, perhaps
from howsure.inputs.sources import file_pieces, sources
from howsure.inputs.tables import Loaded, read_decided
from howsure.inputs.values import Labels
from howsure.predictions import EvalSet

_ZEROS = "\0zeros"  # the name of a column that no file has
_WHEN = ("time", "cutoff", "horizon", "series")  # roles that say when a row came


@frozen(kw_only=True)
class NewRows:
    """Predictions of new rows.

    Attributes
    ----------
    evalset : EvalSet
        The rows that have their prediction; y is 0 where `labelled` is false.
    labelled : bool
        Whether y is known of all of them.
    places : ndarray of int
        Where the rows of `evalset` stand among all.
    n : int
        Number of all rows.
    table : pyarrow.Table, optional
        Every row and column as it is; None where no table was given.
    is_text : bool
        Whether the cells of the table are text, as in a text file.
    decimal : str
        The decimal mark of numbers that are text.
    gaps : mapping of str to int
        In how many rows each column misses a cell.
    notes : tuple of str
        What the reader of a result should know.
    """

    evalset: EvalSet
    labelled: bool
    places: IntArray
    n: int
    table: pa.Table | None = None
    is_text: bool = False
    decimal: str = "."
    gaps: Mapping[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def load_new(
    source: Any,
    *,
    by: Sequence[str] = (),
    like: Mapping[str, str] | None = None,
    vectors: Sequence[str] = (),
    missing: Missing = "error",
    crossing: Crossing = "error",
    encoding: str | None = None,
    decimal: str = ".",
    outcomes: bool = True,
    **columns: Unpack[Columns],
) -> NewRows:
    """Read one table of predictions that need no y.

    Without `outcomes`, as of some rows of one, neither y nor gaps are reported.
    """
    if isinstance(source, list | tuple):
        raise InputError(f"give one table of new rows, got {len(source)}")
    table = next(sources(source, encoding, decimal))
    features = like or {}
    corrected = [name for name in table.names if name.startswith(RECALIBRATED)]
    if corrected:
        raise InputError(
            f"{table.title} already has recalibrated columns: {listed(corrected)}; drop or "
            "rename them"
        )
    for name in (*by, *features, *vectors):
        if name not in table.names:
            raise InputError(
                f"{table.title} must have the column {quoted(name)}, which the recalibration "
                f"needs{perhaps(name, table.names)}"
            )
    needs = {"groups": tuple(by), "features": tuple(features), "embedding": tuple(vectors)}

    def needed(roles: Roles) -> Roles:
        wanted = ("prediction", "order", "long", *["outcome"] * roles.long)  # y tells cases
        return roles.only(lambda role: role.of in wanted and role.name != "rows").having(needs)

    flags: Any = _without_absent(table, columns, needs)
    with counted(table.first_row, lines=table.from_text):
        with within(table.title):
            roles = assign_roles(table.names, flags, outcome=False)
        cells, roles = read_decided(table, roles, flags, needed, outcome=False)
        refuse_long(cells)
        cells = as_reference(cells, features, table)
        models = split_models(cells)
        if len(models) != 1:
            raise InputError(
                f"{table.title} must have exactly one model to recalibrate, got "
                f"{listed(model.model for model in models) or 'none'}"
            )
        gaps = gaps_of([cells], missing)
        complete = kept_rows([cells], gaps)
        chosen = replace(cells.take(complete), model=models[0].model or "model")
        weights = None
        notes: tuple[str, ...] = ()
        if outcomes:
            chosen, weights, notes = _with_outcomes(chosen, table, roles, complete)
            gaps_told = gap_notes(chosen.n, len(complete), gaps)
            notes = (*told_of_marks([cells]), *notes, *gaps_told)
        if not (labelled := bool(chosen.roles["y"])):
            chosen = _with_zeros(chosen, "y")
        (evalset,) = build([chosen], crossing=crossing)
    if weights is not None:
        evalset = replace(evalset, weights=weights)
    return NewRows(
        evalset=evalset,
        labelled=labelled,
        places=np.flatnonzero(complete),
        n=len(complete),
        table=table.read_all(),
        is_text=table.from_text,
        decimal=table.decimal,
        gaps=gaps,
        notes=(*cells.notes, *notes, *crossing_notes([evalset])),
    )


def gap_notes(served: int, n: int, gaps: Mapping[str, int]) -> tuple[str, ...]:
    """What to say of rows that miss a cell."""
    if served == n:
        return ()
    return (
        f"{n - served:,} of {n:,} rows get no recalibrated prediction because a cell is missing "
        f"({counts_by_name(gaps)}).",
    )


def _without_absent(table: Source, columns: Columns, needs: Mapping[str, tuple[str, ...]]) -> Any:
    """What is said of columns, of a table that may lack those that are not needed."""
    flags: dict[str, Any] = {name: value for name, value in columns.items() if value is not None}
    for role in ROLES:
        if role.of == "prediction" or role.kind is None or role.name not in flags:
            continue
        stated = flags[role.name]
        if role.name in ("groups", "features"):
            names = stated.split(",") if isinstance(stated, str) else stated
            flags[role.name] = [name for name in names if name in table.names]
        elif role.many or role.name == "encode" or stated not in table.names:
            flags[role.name] = ""
    for name, names in needs.items():
        if names:
            flags[name] = [*dict.fromkeys((*names, *(flags.get(name) or ())))]
    return flags


def as_reference(cells: ParsedColumns, kinds: Mapping[str, str], table: Source) -> ParsedColumns:
    """The cells, if each feature holds what it held; text that could be numbers may be labels."""
    columns = dict(cells.columns)
    for name, kind in kinds.items():
        actual = "label" if isinstance(columns["any", name], Labels) else "number"
        if actual != kind and not table.from_text:
            raise InputError(
                f"{cells.title}: column {quoted(name)} must contain {kind}s, as in the "
                f"calibration table, got {actual}s"
            )
        if actual != kind:
            text = table.read({name: "text"})[name]
            with within(cells.title):
                columns["any", name] = (
                    values.labels(text, name)
                    if kind == "label"
                    else values.numbers(text, name, decimal=table.decimal)
                )
    cells = replace(cells, columns=columns)
    cells.check_finite()
    return cells


def _with_outcomes(
    cells: ParsedColumns, table: Source, roles: Roles, complete: BoolArray
) -> tuple[ParsedColumns, Weights | None, tuple[str, ...]]:
    """The rows with what happened, how much it counts, and what else is known; or why not."""

    def read(*names: str) -> ParsedColumns:
        columns = read_cells(table, roles.only(lambda role: role.name in names)).take(complete)
        columns.check_finite()
        return columns

    if not roles["y"]:
        return cells, None, ()
    try:
        outcomes = read("y", "weights", *(("softmax", "label_set") if roles.classes else ()))
    except InputError as error:
        return cells, None, (f"y was not read: {error}",)
    for name, gone in outcomes.missing().items():
        why = f"{quoted(name)} is missing in {int(gone.sum())} rows, so the result is not assessed."
        return cells, None, (why,)
    y, weights = outcomes.column("y"), outcomes.column("weights")
    if weights is not None:
        weights = Weights.checked(weights, roles.weights_kind)
    cells = cells.with_columns({("number", roles["y"][0]): y}, {"y": roles["y"]})
    with suppress(InputError):
        context = read("groups", "features", "cluster", "rows", *_WHEN)
        incomplete = context.missing()
        assigned = {
            role: tuple(name for name in names if name not in incomplete)
            for role, names in context.roles.columns.items()
        }
        if len(assigned.get("time", ())) < len(context.roles["time"]):  # a part of it is none
            assigned["time"] = ()
        cells = cells.with_columns(context.columns, assigned)
    return cells, weights, ()


@final
@frozen(kw_only=True)
class NewFile:
    """A file of new rows."""

    place: Place  # where it is, and what its folders say
    name: PurePath  # its path within the folder that was given; that of the file otherwise
    pieces: tuple[FilePiece, ...]

    @property
    def path(self) -> str:
        """Its path or address."""
        return self.place.path

    @property
    def is_text(self) -> bool:
        """Whether its cells are text."""
        return self.place.form in TEXT_ENDINGS

    def folder_columns(self) -> tuple[str, ...]:
        """The columns that its folders say and it lacks."""
        return self.pieces[0].folder_columns if self.place.partition else ()

    @property
    def rows(self) -> int:
        """Its rows, where that is known without reading it; 0 otherwise."""
        return count_rows(self.pieces) or 0


def new_files(source: Any, **reading: Any) -> tuple[NewFile, ...]:
    """The files that a path, folder, pattern or address names, or a sequence of these, in order.

    They are read as `file_pieces` says.
    """
    if isinstance(source, list | tuple):
        files = tuple(file for item in source for file in new_files(item, **reading))
        if not files:
            raise InputError("no file of new rows given")
        return files
    if not isinstance(source, str | os.PathLike):
        raise InputError(f"new rows must be in files, got {type(source).__name__}")
    path = os.fspath(source)
    near = places(path).places
    above = [os.path.dirname(location.path) for location in near]
    base = path if is_folder(path) else os.path.commonpath(above)
    pieces: dict[Place, list[FilePiece]] = {location: [] for location in near}
    for piece in file_pieces(near, **reading):
        pieces[piece.place].append(piece)
    for location, own_pieces in pieces.items():
        if not own_pieces:
            raise InputError(f"{location.path}: the table has columns but no rows")
    return tuple(
        NewFile(
            place=location,
            name=PurePath(os.path.relpath(location.path, base)),
            pieces=tuple(own_pieces),
        )
        for location, own_pieces in pieces.items()
    )


def skipped_of(source: Any) -> tuple[tuple[str, str], ...]:
    """What lies beside the files of `new_files` and is not read, and why."""
    many = source if isinstance(source, list | tuple) else [source]
    return tuple(skipped for path in many for skipped in places(os.fspath(path)).skipped)


def targets(files: Sequence[NewFile], output: Path) -> dict[Path, list[NewFile]]:
    """The files to write, and those that each holds: one, or in a folder one for each file."""
    folder = output.is_dir() or (len(files) > 1 and not output.suffix)
    if not folder:
        table_form(output)
        return {output: list(files)}
    plan: dict[Path, list[NewFile]] = {}
    for file in files:
        plan.setdefault(output / file.name, []).append(file)
    twice = [str(path) for path, joined in plan.items() if len(joined) > 1]
    if twice:
        raise InputError(
            f"parts must have different names in a folder; {listed(twice)} occur twice"
        )
    return plan


@final
@frozen(kw_only=True)
class NewReading:
    """How new rows are read."""

    needs: Mapping[str, Any]  # what a recalibration needs of them, as `load_new` takes it
    columns: Columns  # by role
    options: Mapping[str, Any]  # how cells and files are read, as `howsure.load` takes it
    rows: int = BATCH_ROWS  # that are read at once

    def batches(self, piece: FilePiece) -> Iterator[ReadRows]:
        """The rows of a file, or of a part of one, as they are."""
        kinds: dict[str, Kind] = dict.fromkeys(piece.names, "text" if piece.from_text else "key")
        first_row = piece.first_row
        with closing(piece.batches(kinds, self.rows)) as tables:
            for table in regrouped(tables, self.rows):
                yield ReadRows.of(piece, table, first_row)
                first_row += table.num_rows
        if not first_row:
            raise InputError(f"{piece.file}: the table has columns but no rows")

    def load(self, source: Any, *, outcomes: bool) -> NewRows:
        """The predictions of a table, or of a batch of one."""
        return load_new(source, outcomes=outcomes, **self.needs, **self.options, **self.columns)


# ---- inputs of rows whose y is not known yet, or not for all of them -----------------------------


@frozen(kw_only=True)
class Unlabelled:
    """Rows to be scored, and the outcomes of those that have one already.

    Attributes
    ----------
    inputs : EvalSet
        Names, features, embedding, groups and times of the rows; y and the point forecast are 0.
    texts : mapping of str to ndarray of str, shape (n,)
        As in `Loaded`.
    images : ndarray of str, shape (n,), optional
        As in `Loaded`.
    labelled : EvalSet, optional
        Predictions and outcomes of the rows that have both.
    places : ndarray of int, shape (k,)
        Where the rows of `labelled` stand among all.
    """

    inputs: EvalSet
    texts: Mapping[str, AnyArray] = field(default_factory=dict)
    images: AnyArray | None = None
    labelled: EvalSet | None = None
    places: IntArray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))


def load_unlabelled(
    source: Any,
    like: Loaded,
    *,
    encoding: str | None = None,
    decimal: str = ".",
    groups: Sequence[str] = (),
    time: str | None = None,
) -> Unlabelled:
    """Read the rows of a table as those of a labelled reference were read.

    The same columns serve as inputs, and a column of texts or images goes through the same
    encoder. Where the table holds the reference's y and predictions too, the rows that have them
    are labelled. `groups` and `time` name columns of the new table.
    """
    table = next(sources(source, encoding, decimal))
    _refuse_long(table)
    (reference,) = like.evalsets
    inputs = _input_roles(table, like.roles, reference)
    wanted = {"groups": tuple(groups), "time": () if time is None else (time,)}
    for role, names in wanted.items():
        _check_present(table, names, role, "")
    kinds = {
        name: "number" if column.dtype.kind in "biuf" else "label"
        for name, column in reference.features.items()
    }
    rows = _read_inputs(table, inputs.having(wanted), kinds)
    labelled, places = _labelled(table, like.roles)
    return Unlabelled(
        inputs=rows.evalsets[0],
        texts=rows.texts,
        images=rows.images,
        labelled=labelled,
        places=places,
    )


def _refuse_long(table: Source) -> None:
    try:
        roles = assign_roles(table.names, outcome=False)
    except InputError:
        return
    if roles.long and is_long(cells := read_cells(table, roles)):
        refuse_long(cells)


def load_bare(
    source: Any,
    *,
    encoding: str | None = None,
    decimal: str = ".",
    **columns: Unpack[Columns],
) -> Loaded | None:
    """Read a reference that holds inputs alone, without y or without a prediction.

    Its set has zeros for y and a point forecast. None where the table has both, or no inputs.
    """
    table = next(sources(source, encoding, decimal))
    flags: Any = {name: value for name, value in columns.items() if value}
    if any(role.of in ("outcome", "prediction", "long") and role.name in flags for role in ROLES):
        return None
    try:
        assign_roles(table.names, flags)
        return None
    except InputError:
        flags["point"] = _ZEROS
        roles = assign_roles((*table.names, _ZEROS), flags, outcome=False)
    inputs = roles.only(lambda role: role.of == "inputs")
    return _read_inputs(table, inputs) if inputs.by_column() else None


def _read_inputs(
    table: Source, roles: Roles, kinds: Mapping[str, str] = MappingProxyType({})
) -> Loaded:
    """The columns that have roles, none of them missing; y and a point forecast are 0."""
    cells = read_cells(table, roles)
    for name, gone in cells.missing().items():
        raise InputError(
            f"{table.title}: column {quoted(name)} must not contain missing cells, got "
            f"{int(gone.sum())} (first at row {int(np.argmax(gone))})"
        )
    cells = as_reference(cells, kinds, table)
    texts, vectors, images = read_embedding(cells)
    rows = replace(_with_zeros(cells, "y", "point"), model=cells.model or "reference")
    evalsets = build([rows], crossing="sort", embedding=vectors)
    return Loaded(evalsets=evalsets, roles=roles, texts=texts, images=images)


def _with_zeros(cells: ParsedColumns, *roles: str) -> ParsedColumns:
    """The rows with zeros for roles that no column plays."""
    return cells.with_columns(
        {("number", _ZEROS): np.zeros(cells.n)}, dict.fromkeys(roles, (_ZEROS,))
    )


def _input_roles(table: Source, roles: Roles, reference: EvalSet) -> Roles:
    """The reference's roles of inputs alone."""
    features = tuple(reference.features)
    if not features and not roles["embedding"] and not roles["encode"]:
        raise InputError("the reference has neither features nor an embedding, and one is needed")
    _check_present(table, features, "features")
    _check_present(table, (*roles["embedding"], *roles["encode"]), "embedding")
    _check_present(table, roles["image"], "images")
    named = tuple(name for name in roles["rows"] if name in table.names)
    inputs = roles.only(lambda role: role.of == "inputs")
    return inputs.having({"features": features, "rows": named})


def _check_present(
    table: Source, names: Sequence[str], what: str, whose: str = "the reference's "
) -> None:
    absent = [name for name in names if name not in table.names]
    if absent:
        names_told = ", ".join(quoted(name) for name in absent)
        raise InputError(f"{table.title} must have {whose}{what}, but has none of {names_told}")


def _labelled(table: Source, roles: Roles) -> tuple[EvalSet | None, IntArray]:
    """The rows that have y and a prediction, and where they stand; None where none does."""
    wanted = roles.only(lambda role: role.of in ("outcome", "prediction"))
    nothing = np.zeros(0, dtype=np.int64)
    if not wanted.by_column() or not set(wanted.by_column()) <= set(table.names):
        return None, nothing
    cells = replace(read_cells(table, wanted), model="new rows")
    cells.check_finite()
    places = np.flatnonzero(cells.complete())
    if not len(places):
        return None, nothing
    (evalset,) = build([cells.take(places)], crossing="sort")
    return evalset, places
