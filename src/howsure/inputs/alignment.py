"""Several models on the same rows: splitting long tables, matching rows, dropping missing ones."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from howsure.core.arrays import BoolArray
from howsure.core.errors import InputError
from howsure.inputs.cells import Cells
from howsure.inputs.source import listed, quoted
from howsure.inputs.values import Labels, absent

MOST_MODELS: Final = 100
_TOLERANCE: Final = 1e-6


def split_models(cells: Cells) -> list[Cells]:
    """One part for each label of the model column, in order of appearance; all without one."""
    column = cells.one("model")
    if column is None:
        return [cells]
    used, first = np.unique(column.codes, return_index=True)
    order = [int(code) for code in used[np.argsort(first)] if code >= 0]
    if len(order) > MOST_MODELS:
        raise InputError(
            f"{cells.title}: the model column {quoted(cells.roles['model'][0])} must hold at most "
            f"{MOST_MODELS} names, got {len(order)}"
        )
    return [
        replace(cells.take(np.flatnonzero(column.codes == code)), model=str(column.labels[code]))
        for code in order
    ]


def align(parts: Sequence[Cells]) -> list[Cells]:
    """Put the rows of every part in the order of the first.

    Rows are matched by their names where both parts have them, by their order otherwise.
    """
    named = [_with_names(part) for part in parts]
    return [named[0], *(_aligned(named[0], other) for other in named[1:])]


def check_same_rows(parts: Sequence[Cells], kept: BoolArray) -> None:
    """Raise `InputError` where aligned parts differ in y or in a group column.

    Values of y may differ by a millionth of themselves, as they do after 32-bit storage.
    """
    if len(parts) == 1:
        return
    first = parts[0]
    truth = first.one("y")
    size = float(np.abs(truth[kept]).max(initial=0.0))
    for other in parts[1:]:
        same = other.one("y")
        with np.errstate(over="ignore", invalid="ignore"):
            near = np.abs(same - truth) <= _TOLERANCE * np.abs(truth) + 1e-12 * size
        wrong = kept & ~near
        if wrong.any():
            row = int(np.argmax(wrong))
            raise InputError(
                f"models must be given on the same rows, got {int(wrong.sum())} rows where y of "
                f"{quoted(other.model)} is not y of {quoted(first.model)} (first at row "
                f"{first.places[row]}: {same[row]:g}, not {truth[row]:g}); a column of row "
                "names (rows=, --rows) puts them in order"
            )
        ours, theirs = first.of("groups"), other.of("groups")
        for name in ours.keys() & theirs.keys():
            differ = kept & ~_equal(ours[name], theirs[name])
            if differ.any():
                row = int(first.places[np.argmax(differ)])
                raise InputError(
                    f"models must be given on the same rows, got {int(differ.sum())} rows where "
                    f"the group {quoted(name)} of {quoted(other.model)} is not that of "
                    f"{quoted(first.model)} (first at row {row})"
                )


def _with_names(part: Cells) -> Cells:
    """The rows that do not miss their name."""
    names = part.one("rows")
    return part if names is None or not absent(names).any() else part.take(~absent(names))


def _aligned(first: Cells, other: Cells) -> Cells:
    ours, theirs = _keys(first), _keys(other)
    if ours is not None and theirs is not None:
        place = {name: row for row, name in enumerate(theirs)}
        missing = [name for name in ours if name not in place]
        if missing or len(ours) != len(theirs):
            extra = sorted(set(theirs) - set(ours))
            raise InputError(
                f"models must be given on the same rows, got {len(missing)} rows of "
                f"{quoted(first.model)} that {quoted(other.model)} lacks ({listed(missing, 3)}) "
                f"and {len(extra)} that it has besides ({listed(extra, 3)})"
            )
        return other.take(np.asarray([place[name] for name in ours], dtype=np.int64))
    if first.n != other.n:
        raise InputError(
            f"models must be given on the same rows, got {first.n} rows of "
            f"{quoted(first.model)} and {other.n} of {quoted(other.model)}"
        )
    return other


def _keys(part: Cells) -> list[str] | None:
    """Names of the rows as text, so that 1 in one table is 1 in another."""
    names = part.one("rows")
    if names is None:
        return None
    keys = [str(name) for name in names]
    if len(set(keys)) < len(keys):
        ((twice, _),) = Counter(keys).most_common(1)
        raise InputError(
            f"names of rows must differ within a model, got {quoted(twice)} twice in "
            f"{quoted(part.model)}"
        )
    return keys


def _equal(one: Labels, other: Labels) -> BoolArray:
    """Whether each row has the same label in both."""
    place = {str(label): code for code, label in enumerate(one.labels.tolist())}
    moved = np.asarray([place.get(str(label), -2) for label in other.labels.tolist()] + [-1])
    return np.asarray(one.codes == moved[other.codes])
