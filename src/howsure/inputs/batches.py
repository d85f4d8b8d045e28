"""Rows of a table too large to hold, some at a time: what was decided once, and what each gives."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import field, replace
from typing import Any, Self

import numpy as np
import pyarrow as pa

from howsure.core.arrays import AnyArray, IntArray
from howsure.core.classes import frozen
from howsure.core.errors import InputError
from howsure.core.registry import check_known
from howsure.core.text import quoted
from howsure.inputs import values
from howsure.inputs.cells import (
    Crossing,
    ParsedColumns,
    asked_of,
    build,
    kinds_of,
    read_cells,
    without_y,
)
from howsure.inputs.classes import moved
from howsure.inputs.files import check_flat
from howsure.inputs.matching import Missing, gaps_of, lacking_y
from howsure.inputs.names import LawColumns, Roles
from howsure.inputs.roles import NAMES_OUTSIDE, ROLES, CellKey, Kind, Kinds
from howsure.inputs.source import Source, counted, listed, perhaps
from howsure.inputs.values import Column, Labels
from howsure.predictions import EvalSet

# A million cells of 8 bytes are 8 MB with eight columns.
BATCH_ROWS = 131_072
"""Rows of a batch."""
_PLAIN = ("named", "crossing", "decimal")
_WORDS = {"i": "whole numbers", "f": "numbers", "b": "true or false", "O": "text"}


@frozen
class Batch:
    """Some rows of a table."""

    # one a model, on the same rows; none where every row was dropped or has no weight. Rows without
    # names are called by their numbers in the file.
    evalsets: tuple[EvalSet, ...]
    rows: int  # rows read, dropped ones included
    table: pa.Table  # the rows of the sets as they were read
    bare: pa.Table | None = None  # those that lack y alone
    dropped: int = 0  # rows left out because a cell was missing
    # for each column, in how many rows its cell was missing
    dropped_by: Mapping[str, int] = field(default_factory=dict)


@frozen
class ColumnForm:
    """What a column held in the rows that were read first: all others must hold the same."""

    labels: bool
    kind: str
    width: int = 1

    @classmethod
    def of(cls, column: Column) -> Self:
        """The form of a column."""
        if isinstance(column, Labels):
            return cls(True, column.labels.dtype.kind)
        kind = column.dtype.str if column.dtype.kind == "M" else column.dtype.kind
        return cls(False, kind, column.shape[1] if column.ndim == 2 else 1)

    def __str__(self) -> str:
        if self.kind.startswith(("<M", "M")):
            return "dates"
        return _WORDS.get(self.kind, "text") + f" in lists of {self.width}" * (self.width > 1)


@frozen(kw_only=True)
class ReadPlan:
    """How to read rows of a table: decided once, from its column names and its first rows."""

    roles: Roles  # the columns' roles; where a row holds several models, those of the first
    models: tuple[Roles, ...]  # the roles of each model
    names: tuple[str, ...]  # the name of each model
    # what each column held in the first rows
    forms: Mapping[CellKey, ColumnForm] = field(default_factory=dict)
    classes: tuple[str, ...] = ()  # the classes, where y is one
    named: str = ""  # what the column of the model's name holds, where there is one
    # as in `howsure.inputs.load`
    missing: Missing = "error"
    crossing: Crossing = "error"
    encoding: str | None = None
    decimal: str = "."
    batch_rows: int = BATCH_ROWS  # rows of a batch, at most
    zoned: bool | None = None  # whether times name a time zone; None where that is not known

    @property
    def kinds(self) -> dict[str, Kind]:
        """The columns to read, each with what it shall be read as."""
        return kinds_of([key for roles in self.models for key in asked_of(roles)])

    @property
    def moments(self) -> str | None:
        """The unit of times that are dates, as NumPy calls it; None where times are none."""
        time = self.roles.column("time")
        form = None if time is None else self.forms.get(("time", time))
        if form is None or str(form) != "dates":
            return None
        return np.datetime_data(np.dtype(form.kind))[0]

    def batches(self, source: Source) -> Generator[Batch]:
        """The rows of a table as evaluation sets, some at a time."""
        row, kinds = source.first_row, self.kinds
        with closing(source.batches(kinds, self.batch_rows)) as tables:
            plain = (with_numbers(table, kinds, self.decimal) for table in tables)
            for table in regrouped(plain, self.batch_rows):
                yield self.batch(table, source.file, row, from_text=source.from_text)
                row += table.num_rows

    def batch(
        self,
        table: pa.Table,
        title: str,
        first_row: int,
        *,
        from_text: bool,
        with_bare: bool = False,
    ) -> Batch:
        """The evaluation sets of some rows, the first of which has this number in its file.

        Rows that lack y alone come with it on demand, as sets beside.
        """
        table = self._in_one_zone(table, title)
        source = ReadRows(table, title, from_text=from_text, decimal=self.decimal)
        n = table.num_rows
        with counted(first_row, lines=from_text):
            parts = [self._cells(source, roles) for roles in self.models]
            gone = {name: absent for cells in parts for name, absent in cells.missing().items()}
            if gone and self.missing == "error":
                gaps_of(parts, self.missing)
        places = np.arange(n)
        lacking = lacking_y(parts)
        every, bare = parts, table.filter(pa.array(lacking)) if lacking.any() else None
        if gone:
            places = np.flatnonzero(~np.logical_or.reduce(list(gone.values())))
            parts = [cells.take(places) for cells in parts]
        weights = parts[0].column("weights")
        idle = len(places) == 0 or (weights is not None and not weights.any())
        bare_sets = without_y(every, lacking, int(places[0])) if with_bare and not idle else ()
        with counted(first_row, places, lines=from_text):
            evalsets = () if idle else self._built(parts, first_row + places, bare_sets)
        counts = {name: int(absent.sum()) for name, absent in gone.items()}
        if evalsets and evalsets[0].n < len(places):  # rows of weight 0 are in no set
            places = places[weights > 0]
        complete_rows = table if len(places) == n else table.take(pa.array(places))
        return Batch(evalsets, n, complete_rows, bare, n - len(places), counts)

    def to_dict(self) -> dict[str, Any]:
        """It as plain values; tables that are read alike say the same."""
        return {
            **{name: getattr(self, name) for name in _PLAIN},
            "names": list(self.names),
            "classes": list(self.classes),
            "forms": [[*key, f.labels, f.kind, f.width] for key, f in self.forms.items()],
            "models": [_roles_told(roles) for roles in self.models],
        }

    @classmethod
    def from_dict(cls, facts: Mapping[str, Any]) -> Self:
        """What `to_dict` made plain."""
        models = tuple(map(_roles_from, facts["models"]))
        return cls(
            roles=models[0],
            models=models,
            names=tuple(facts["names"]),
            classes=tuple(facts["classes"]),
            forms={(kind, name): ColumnForm(*form) for kind, name, *form in facts["forms"]},
            **{name: facts[name] for name in _PLAIN},
        )

    def _in_one_zone(self, table: pa.Table, title: str) -> pa.Table:
        """The rows with times of any zone in UTC; an error where some name one and others none."""
        time = self.roles.column("time")
        zoned = None if time is None else values.names_zone(table[time])
        if time is None or zoned is None:
            return table
        if self.zoned is not None and zoned != self.zoned:
            wording = {True: "have one", False: "have none"}
            raise InputError(
                f"{title}: column {quoted(time)} must have time zones in all parts or in none; "
                f"some times {wording[zoned]}, the first rows {wording[self.zoned]}"
            )
        kind = table.schema.field(time).type
        if not pa.types.is_timestamp(kind) or kind.tz in (None, "UTC"):
            return table
        moved = table[time].cast(pa.timestamp(kind.unit, "UTC"))
        return table.set_column(table.column_names.index(time), time, moved)

    def _cells(self, source: ReadRows, roles: Roles) -> ParsedColumns:
        """The cells of one model, in the form of the first rows."""
        cells = read_cells(source, roles)
        cells.check_finite()
        columns = {
            key: as_first(column, self.forms[key], key[1], source) if key in self.forms else column
            for key, column in cells.columns.items()
        }
        if cells.labels != self.classes:
            key: CellKey = ("number", roles["y"][0])
            strange = [label for label in cells.labels if label not in self.classes]
            if strange:
                raise InputError(
                    f"{source.title}: in a table read in parts, all classes must be in its first "
                    f"{self.batch_rows:,} rows ({listed(self.classes, 6)}), got "
                    f"{listed(strange, 3)} later; columns of class probabilities would name them "
                    "all"
                )
            columns[key] = moved(cells.columns[key], cells.labels, self.classes)
        models = cells.column("model")
        if models is not None:
            other_models = [
                str(label) for label in models.labels.tolist() if str(label) != self.named
            ]
            if other_models:
                raise InputError(
                    several_models(cells.title, cells.roles, (self.named, *other_models))
                )
        return replace(cells, columns=columns, labels=self.classes)

    def _built(
        self,
        parts: Sequence[ParsedColumns],
        places: IntArray,
        bare_sets: Iterable[EvalSet | None],
    ) -> tuple[EvalSet, ...]:
        named = [
            replace(cells, model=name, places=np.arange(len(places)))
            for cells, name in zip(parts, self.names, strict=True)
        ]
        evalsets = build(named, crossing=self.crossing, bare_sets=bare_sets)
        if parts[0].roles["rows"]:
            return evalsets
        return tuple(replace(evalset, rows=places[evalset.row_names()]) for evalset in evalsets)


_KEPT_ROLES = {role.name for role in ROLES} - NAMES_OUTSIDE
"""Roles of a table that is read in parts."""


def _roles_told(roles: Roles) -> dict[str, Any]:
    return {
        "columns": {name: list(column) for name, column in roles.columns.items() if column},
        "coverages": list(roles.coverages),
        "levels": list(roles.levels),
        "labels": list(roles.labels),
        "law": None if roles.law is None else [roles.law.name, dict(roles.law.parameters)],
        "weights_kind": roles.weights_kind,
        "guessed": sorted(roles.guessed),
        **({"missing_values": list(roles.missing_values)} if roles.missing_values else {}),
        "model": roles.model,
    }


def _roles_from(facts: Mapping[str, Any]) -> Roles:
    for name in facts["columns"]:
        check_known(name, _KEPT_ROLES, "role")
    return Roles(
        columns={name: tuple(column_names) for name, column_names in facts["columns"].items()},
        coverages=tuple(facts["coverages"]),
        levels=tuple(facts["levels"]),
        labels=tuple(facts["labels"]),
        law=None if facts["law"] is None else LawColumns(*facts["law"]),
        weights_kind=facts["weights_kind"],
        guessed=frozenset(facts["guessed"]),
        missing_values=tuple(facts.get("missing_values", ())),
        model=facts["model"],
    )


class ReadRows(Source):
    """Rows that were read, all of whose columns are at hand."""

    def __init__(self, table: pa.Table, title: str, *, from_text: bool, decimal: str) -> None:
        self.title = title
        self.names = tuple(table.column_names)
        self.from_text = from_text
        self.decimal = decimal
        self.rows = table.num_rows
        self._table = table

    @classmethod
    def of(cls, source: Source, table: pa.Table, first_row: int) -> Self:
        """Rows of a table, the first of which has this number in it."""
        rows = cls(table, source.file, from_text=source.from_text, decimal=source.decimal)
        rows.folder, rows.notes, rows.first_row = source.folder, source.notes, first_row
        return rows

    def read(self, kinds: Kinds) -> pa.Table:
        """The named columns."""
        check_flat(self._table.schema, kinds, self.title)
        return self._table.select(list(kinds))


def several_models(title: str, roles: Roles, names: Sequence[str]) -> str:
    """Why models under one another are not read in parts, and what to do."""
    return (
        f"{title}: a table read in parts must have its models side by side, but the column "
        f"{quoted(roles['model'][0])} names several ({listed(names, 3)}), whose rows may be in "
        "different parts: write a file for each, or all columns in one row, such as a_lower and "
        "b_lower"
    )


def forms_of(parts: Sequence[ParsedColumns]) -> dict[CellKey, ColumnForm]:
    """What the columns hold that tell anything of it; names of rows may be of any form."""
    return {
        key: ColumnForm.of(column)
        for cells in parts
        for key, column in cells.columns.items()
        if key[0] != "name" and not _is_void(column)
    }


def as_first(column: Column, form: ColumnForm, name: str, source: ReadRows) -> Column:
    """A column in the form that it had in the rows that were read first."""
    current_form = ColumnForm.of(column)
    if current_form == form:
        return column
    n = len(column.codes if isinstance(column, Labels) else column)
    if _is_void(column):
        return _void(form, n)
    if form.labels and source.from_text and not isinstance(column, Labels):
        column = values.labels(source.read({name: "label"})[name], name, from_text=True)
        current_form = ColumnForm.of(column)
    if isinstance(column, Labels) and form.labels:
        same = _labels_as(column.labels, form.kind, from_text=source.from_text)
        if same is not None:
            return Labels(column.codes, same)
    if not (isinstance(column, Labels) or form.labels):
        if form.kind.startswith("<M") and current_form.kind.startswith("<M"):
            return column.astype(form.kind)
        if form.kind == "f" == current_form.kind and current_form.width != form.width:
            raise InputError(
                f"{source.title}: column {quoted(name)} must contain lists of {form.width} "
                f"numbers, like the first rows, got {current_form.width}"
            )
    where = _first_unlike(column, form)
    text = "; in Parquet, columns have a stated type" * source.from_text
    raise InputError(
        f"{source.title}: column {quoted(name)} must contain {form}, like the first rows, got "
        f"{current_form}{where}{text}"
    )


def _labels_as(labels: AnyArray, kind: str, *, from_text: bool) -> AnyArray | None:
    """Labels as those of another kind, if they are the same."""
    own_kind = labels.dtype.kind
    if own_kind == kind:
        return labels
    if kind == "O" and own_kind == "i" and from_text:  # text that was whole numbers alone
        return np.array([str(label) for label in labels.tolist()], dtype=object)
    if kind == "f" and own_kind in "iu":
        return labels.astype(np.float64)
    if kind in "iu" and own_kind in "iu":
        return labels.astype(np.int64)
    return None


def _first_unlike(column: Column, form: ColumnForm) -> str:
    """Where the first label lies that is not of a form."""
    if not isinstance(column, Labels):
        return ""
    wrong = [
        code
        for code, label in enumerate(column.labels.tolist())
        if isinstance(label, str) == (form.kind != "O") and not _is_number(label)
    ]
    rows = np.isin(column.codes, wrong) if wrong else column.codes >= 0
    row = int(np.argmax(rows))
    return f" ({quoted(str(column.at(row)))} at row {row})"


def _is_number(label: object) -> bool:
    try:
        float(str(label))
    except ValueError:
        return False
    return True


def _is_void(column: Column) -> bool:
    """Whether a column misses every cell, so that it tells nothing of what it holds."""
    return bool(values.absent(column).all())


def _void(form: ColumnForm, n: int) -> Column:
    """A column of a form that misses every cell."""
    if form.labels:
        return Labels(np.full(n, -1), np.empty(0, dtype=object))
    if form.kind.startswith("<M"):
        return np.full(n, np.datetime64("NaT"), dtype=form.kind)
    return np.full((n, form.width) if form.width > 1 else n, np.nan)


def with_numbers(table: pa.Table, kinds: Kinds, decimal: str) -> pa.Table:
    """The table with numbers where text holds some, so that all parts are of one type.

    What is no number stays text: whoever reads it tells in which row.
    """
    for position, column in enumerate(table.schema):
        if kinds[column.name] != "number" or not pa.types.is_string(column.type):
            continue
        with suppress(InputError):
            parsed = values.numbers(table[column.name], column.name, decimal=decimal)
            table = table.set_column(position, column.name, pa.array(parsed))
    return table


def regrouped(parts: Iterable[pa.Table], rows: int) -> Iterator[pa.Table]:
    """The same rows in tables of so many, the last one aside; those of other types apart."""
    waiting: list[pa.Table] = []
    count = 0
    for table in parts:
        if waiting and not table.schema.equals(waiting[0].schema):
            yield pa.concat_tables(waiting)
            waiting, count = [], 0
        while table.num_rows:
            head = table.slice(0, rows - count)
            waiting.append(head)
            count += head.num_rows
            table = table.slice(head.num_rows)
            if count == rows:
                yield pa.concat_tables(waiting)
                waiting, count = [], 0
    if waiting:
        yield pa.concat_tables(waiting)


def check_names(columns: Sequence[str], wanted: Iterable[str], title: str) -> None:
    """Raise `InputError` where a part of a table lacks a column, or has one twice."""
    for name in wanted:
        count = list(columns).count(name)
        if count == 0:
            raise InputError(
                f"{title}: every part must have the columns that are used; one has no "
                f"{quoted(name)}{perhaps(name, columns)}"
            )
        if count > 1:
            raise InputError(
                f"{title}: column names must differ, but {quoted(name)} occurs more than once"
            )
