"""Several models on the same rows: splitting long tables, matching rows, dropping missing ones."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from howsure.core.arrays import BoolArray, IntArray
from howsure.core.errors import InputError
from howsure.inputs.cells import Cells
from howsure.inputs.source import listed, quoted
from howsure.inputs.values import Labels, unnamed

MOST_MODELS: Final = 100
_TOLERANCE: Final = 1e-6


@dataclass(frozen=True, slots=True)
class Part:
    """One model's rows.

    Attributes
    ----------
    model : str
        The model's name.
    cells : Cells
        Its rows.
    places : ndarray of int, shape (n,)
        Where each row stood in its table.
    """

    model: str
    cells: Cells
    places: IntArray

    def take(self, rows: npt.NDArray[Any]) -> Part:
        """The same of some rows."""
        return Part(self.model, self.cells.take(rows), self.places[rows])


def split_models(cells: Cells, name: str) -> list[Part]:
    """One part for each label of the model column, in order of appearance.

    Parameters
    ----------
    cells : Cells
        A table.
    name : str
        The model's name where there is no such column.

    Raises
    ------
    InputError
        If there are more than 100 models.
    """
    if cells.roles.model is None:
        return [Part(name, cells, np.arange(cells.n))]
    column = cells.labels[cells.roles.model]
    used, first = np.unique(column.codes, return_index=True)
    order = [int(code) for code in used[np.argsort(first)] if code >= 0]
    if len(order) > MOST_MODELS:
        raise InputError(
            f"{cells.title}: the model column {quoted(cells.roles.model)} must hold at most "
            f"{MOST_MODELS} names, got {len(order)}"
        )
    rows = [np.flatnonzero(column.codes == code) for code in order]
    return [
        Part(str(column.labels[code]), cells.take(place), place)
        for code, place in zip(order, rows, strict=True)
    ]


def align(parts: Sequence[Part]) -> list[Part]:
    """Put the rows of every part in the order of the first.

    Rows are matched by their names where both parts have them, by their order otherwise.

    Raises
    ------
    InputError
        If names repeat or differ, or the parts have not as many rows.
    """
    named = [_with_names(part) for part in parts]
    return [named[0], *(_aligned(named[0], other) for other in named[1:])]


def check_same_rows(parts: Sequence[Part], kept: BoolArray) -> None:
    """Raise `InputError` where aligned parts differ in y or in a group column.

    Values of y may differ by a millionth of themselves, as they do after 32-bit storage.
    """
    if len(parts) == 1:
        return
    first = parts[0]
    truth = first.cells.numbers[first.cells.roles.y]
    size = float(np.abs(truth[kept]).max(initial=0.0))
    for other in parts[1:]:
        same = other.cells.numbers[other.cells.roles.y]
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
        for name in set(first.cells.roles.groups) & set(other.cells.roles.groups):
            differ = kept & ~_equal(first.cells.labels[name], other.cells.labels[name])
            if differ.any():
                row = int(first.places[np.argmax(differ)])
                raise InputError(
                    f"models must be given on the same rows, got {int(differ.sum())} rows where "
                    f"the group {quoted(name)} of {quoted(other.model)} is not that of "
                    f"{quoted(first.model)} (first at row {row})"
                )


def _with_names(part: Part) -> Part:
    """The rows that do not miss their name."""
    if part.cells.names is None:
        return part
    absent = unnamed(part.cells.names)
    return part.take(~absent) if absent.any() else part


def _aligned(first: Part, other: Part) -> Part:
    if first.cells.names is not None and other.cells.names is not None:
        ours, theirs = _keys(first), _keys(other)
        place = {name: row for row, name in enumerate(theirs)}
        absent = [name for name in ours if name not in place]
        if absent or len(ours) != len(theirs):
            extra = sorted(set(theirs) - set(ours))
            raise InputError(
                f"models must be given on the same rows, got {len(absent)} rows of "
                f"{quoted(first.model)} that {quoted(other.model)} lacks ({listed(absent, 3)}) "
                f"and {len(extra)} that it has besides ({listed(extra, 3)})"
            )
        return other.take(np.asarray([place[name] for name in ours], dtype=np.int64))
    if first.cells.n != other.cells.n:
        raise InputError(
            f"models must be given on the same rows, got {first.cells.n} rows of "
            f"{quoted(first.model)} and {other.cells.n} of {quoted(other.model)}"
        )
    return other


def _keys(part: Part) -> list[str]:
    """Names of the rows as text, so that 1 in one table is 1 in another."""
    keys = [str(name) for name in (part.cells.names if part.cells.names is not None else ())]
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
