"""Rows of several models: those that miss cells, and all others in one order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Literal

import numpy as np

from howsure.core.arrays import BoolArray
from howsure.core.errors import InputError
from howsure.core.text import quoted
from howsure.inputs.cells import ParsedColumns
from howsure.inputs.classes import moved, ordered
from howsure.inputs.long import MAX_MODELS
from howsure.inputs.roles import CellKey, name_roles
from howsure.inputs.source import listed
from howsure.inputs.values import Labels, absent

Missing = Literal["error", "drop"]


class NoneKeptError(InputError):
    """Every row of a table misses a cell; `gaps` counts them by column."""

    def __init__(self, message: str, gaps: Mapping[str, int]) -> None:
        super().__init__(message)
        self.gaps = gaps


def left_out(dropped: int, gaps: Mapping[str, int]) -> str:
    """A note on rows that were left out, by how many each column or argument misses."""
    rows = "1 row is" if dropped == 1 else f"{dropped:,} rows are"
    return f"{rows} omitted because a value is missing ({counts_by_name(gaps)})"


def counts_by_name(gaps: Mapping[str, int]) -> str:
    """How many cells each column misses, for a message."""
    return ", ".join(f"{quoted(name)} {count}" for name, count in gaps.items())


def gaps_of(tables: Sequence[ParsedColumns], missing: Missing) -> dict[str, int]:
    """Number of missing cells by column; an error where they are one."""
    counts = Counter[str]()
    for cells in tables:
        rows = {name: int(gone.sum()) for name, gone in cells.missing().items()}
        if rows and missing == "error":
            where = ", ".join(
                f"{rows[name]} in {quoted(name)} (first at row {int(np.argmax(gone))})"
                for name, gone in cells.missing().items()
            )
            raise InputError(
                f"{cells.title}: cells are missing: {where}, rows counted from 0. "
                f"{name_roles(missing='drop')} omits such rows"
            )
        counts.update(rows)
    return dict(counts)


def in_one_order(parts: Sequence[ParsedColumns]) -> list[ParsedColumns]:
    """The parts with classes of one order, where some say of classes what others do not."""
    every = list(dict.fromkeys(cells.labels for cells in parts))
    if len(every) == 1:
        return list(parts)
    if () in every or any(cells.roles["softmax"] for cells in parts):
        lacking = next(cells for cells in parts if cells.labels != parts[0].labels)
        raise InputError(
            f"models must have the same classes, got {listed(parts[0].labels, 6) or 'none'} of "
            f"{quoted(parts[0].model)} and {listed(lacking.labels, 6) or 'none'} of "
            f"{quoted(lacking.model)}"
        )
    labels = ordered(label for classes in every for label in classes)
    reordered = []
    for cells in parts:
        key: CellKey = ("number", cells.roles["y"][0])
        y = moved(cells.columns[key], cells.labels, labels)
        reordered.append(replace(cells, columns={**cells.columns, key: y}, labels=labels))
    return reordered


def in_common(parts: Sequence[ParsedColumns]) -> tuple[list[ParsedColumns], dict[str, int]]:
    """The rows that all parts hold, in the order of the first; how many each holds besides."""
    named = [_with_names(cells) for cells in parts]
    keys = []
    for cells in named:
        row_names = _keys(cells)
        if row_names is None:
            raise InputError(
                "models are compared on common rows by a column of row names in every table; none "
                f"found in {quoted(cells.title)}: name it with "
                f"{name_roles(rows=...)}"
            )
        keys.append(row_names)
    shared = set(keys[0]).intersection(*keys[1:])
    if not shared:
        raise InputError(
            "common_rows needs rows that all models have; no row name is common to "
            f"{listed(cells.model for cells in parts)}"
        )
    order = [name for name in keys[0] if name in shared]
    taken = []
    for cells, row_names in zip(named, keys, strict=True):
        row_of = {name: row for row, name in enumerate(row_names)}
        taken.append(cells.take(np.asarray([row_of[name] for name in order], dtype=np.int64)))
    return taken, {cells.model: cells.n - len(order) for cells in named}


def kept_rows(parts: Sequence[ParsedColumns], gaps: Mapping[str, int]) -> BoolArray:
    """The aligned rows that miss nothing in any model."""
    complete = np.logical_and.reduce([cells.complete() for cells in parts])
    if not complete.any():
        gaps_told = ", ".join(
            f"{count} cells missing in {quoted(name)}" for name, count in gaps.items()
        )
        raise NoneKeptError(f"every row has missing cells: {gaps_told}", gaps)
    return np.asarray(complete)


def lacking_y(parts: Sequence[ParsedColumns]) -> BoolArray:
    """The aligned rows that miss y, and in no model anything else."""
    lacking, elsewhere = np.zeros((2, parts[0].n), dtype=np.bool_)
    for cells in parts:
        for name, gone in cells.missing().items():
            which = lacking if name in cells.roles["y"] else elsewhere
            which |= gone
    return lacking & ~elsewhere


# y that was written with six digits, or in single precision, is the same y.
_Y_TOLERANCE = 1e-6


def split_models(cells: ParsedColumns) -> list[ParsedColumns]:
    """One part for each label of the model column, in order of appearance; all without one."""
    column = cells.column("model")
    if column is None:
        return [cells]
    used, first = np.unique(column.codes, return_index=True)
    order = [int(code) for code in used[np.argsort(first)] if code >= 0]
    if len(order) > MAX_MODELS:
        raise InputError(
            f"{cells.title}: the model column {quoted(cells.roles['model'][0])} must contain at "
            f"most {MAX_MODELS} names, got {len(order)}"
        )
    return [
        replace(cells.take(np.flatnonzero(column.codes == code)), model=str(column.labels[code]))
        for code in order
    ]


def align(parts: Sequence[ParsedColumns]) -> list[ParsedColumns]:
    """Put the rows of every part in the order of the first.

    Rows are matched by their names where both parts have them, by their order otherwise.
    """
    named = [_with_names(cells) for cells in parts]
    return [named[0], *(_aligned(named[0], other) for other in named[1:])]


def check_same_rows(parts: Sequence[ParsedColumns], complete: BoolArray) -> None:
    """Raise `InputError` where aligned parts differ in y or in a group column.

    Values of y may differ by a millionth of themselves, as they do after 32-bit storage.
    """
    if len(parts) == 1:
        return
    first = parts[0]
    truth = first.column("y")
    size = float(np.abs(truth[complete]).max(initial=0.0))
    for other in parts[1:]:
        same = other.column("y")
        with np.errstate(over="ignore", invalid="ignore"):
            near = np.abs(same - truth) <= _Y_TOLERANCE * np.abs(truth) + 1e-12 * size
        wrong = complete & ~near
        if wrong.any():
            row = int(np.argmax(wrong))
            raise InputError(
                f"models must have the same rows, but y of {quoted(other.model)} differs from y "
                f"of {quoted(first.model)} in {int(wrong.sum())} rows (first at row "
                f"{first.places[row]}: {same[row]:g}, not {truth[row]:g}); "
                f"{name_roles(rows=...)} aligns them by a column of row names"
            )
        ours, theirs = first.of("groups"), other.of("groups")
        for name in ours.keys() & theirs.keys():
            differ = complete & ~_equal(ours[name], theirs[name])
            if differ.any():
                row = int(first.places[np.argmax(differ)])
                raise InputError(
                    f"models must have the same rows, but the group {quoted(name)} of "
                    f"{quoted(other.model)} differs from that of {quoted(first.model)} in "
                    f"{int(differ.sum())} rows (first at row {row})"
                )


def _with_names(cells: ParsedColumns) -> ParsedColumns:
    """The rows that do not miss their name."""
    names = cells.column("rows")
    return cells if names is None or not absent(names).any() else cells.take(~absent(names))


def _aligned(first: ParsedColumns, other: ParsedColumns) -> ParsedColumns:
    ours, theirs = _keys(first), _keys(other)
    if ours is not None and theirs is not None:
        row_of = {name: row for row, name in enumerate(theirs)}
        missing = [name for name in ours if name not in row_of]
        if missing or len(ours) != len(theirs):
            extra = sorted(row_of.keys() - ours)
            differences = [
                f"{len(names):,} rows of {quoted(holder.model)} that {quoted(lacker.model)} lacks "
                f"({listed(names, 3)})"
                for holder, lacker, names in ((first, other, missing), (other, first, extra))
                if names
            ]
            raise InputError(
                f"models must have the same rows, got {' and '.join(differences)}; "
                f"{name_roles(common_rows=True)} compares those that all have{_no_models(first)}"
            )
        return other.take(np.asarray([row_of[name] for name in ours], dtype=np.int64))
    if first.n != other.n:
        raise InputError(
            f"models must have the same rows, got {first.n} rows of {quoted(first.model)} and "
            f"{other.n} of {quoted(other.model)}; with a column of row names, "
            f"{name_roles(rows=..., common_rows=True)} compares those that all have"
            f"{_no_models(first)}"
        )
    return other


def _no_models(cells: ParsedColumns) -> str:
    """How to say that the labels of a column are no models, where only its name says so."""
    model_columns = cells.roles["model"]
    if not model_columns or "model" not in cells.roles.guessed:
        return ""
    return f"; {name_roles(model='')} states that {quoted(model_columns[0])} does not name models"


def _keys(cells: ParsedColumns) -> list[str] | None:
    """Names of the rows as text, so that 1 in one table is 1 in another."""
    names = cells.column("rows")
    if names is None:
        return None
    keys = [str(name) for name in names]
    if len(set(keys)) < len(keys):
        ((twice, _),) = Counter(keys).most_common(1)
        raise InputError(
            f"row names must differ within a model; {quoted(twice)} occurs twice in "
            f"{quoted(cells.model)}"
        )
    return keys


def _equal(first: Labels, other: Labels) -> BoolArray:
    """Whether each row has the same label in both."""
    code_of = {str(label): code for code, label in enumerate(first.labels.tolist())}
    moved = np.asarray([code_of.get(str(label), -2) for label in other.labels.tolist()] + [-1])
    return np.asarray(first.codes == moved[other.codes])
