"""The state of a part of a table: all that an assessment of the whole needs of it.

A state is a small Arrow table of one row: a list a column, and what is no number in the metadata of
its schema. States merge in any grouping; the state of a year is that of its days.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Any

import pyarrow as pa

from howsure._version import __version__
from howsure.core.arrays import FloatArray
from howsure.core.brief import brief_repr
from howsure.core.convert import packed, unpacked
from howsure.core.errors import InputError
from howsure.core.files import replacing
from howsure.streaming.sample import Sample
from howsure.streaming.totals import Totals

_FORM = "howsure state 1"
_ROW = "row "
"""How the names of columns begin that hold the sample's rows."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Facts:
    """What a state holds but for the rows of its sample, as it is packed."""

    models: tuple[Totals, ...]
    number: FloatArray
    unit: FloatArray
    copies: FloatArray
    most: int
    bound: float
    unit_bound: float
    rows: int
    dropped: int
    dropped_by: dict[str, int]
    reading: dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class State:
    """What a part of a table must keep.

    Attributes
    ----------
    models : tuple of Totals
        What the rows of each model add up to.
    sample : Sample
        Rows chosen by what they hold, for what sums do not tell.
    rows : int
        Rows that were read, dropped ones included.
    dropped : int
        Rows left out because a cell is missing.
    dropped_by : mapping of str to int
        By column, in how many rows its cell is missing.
    reading : mapping
        How the columns are read, and what else states must share to be merged.
    """

    models: tuple[Totals, ...]
    sample: Sample
    rows: int
    dropped: int = 0
    dropped_by: Mapping[str, int] = field(default_factory=dict)
    reading: Mapping[str, Any] = field(default_factory=dict)

    __repr__ = brief_repr

    def merged(self, *others: State) -> State:
        """The state of the rows of all.

        Raises
        ------
        InputError
            If the states are of other columns, models or coverages.
        """
        parts = _under_one_name((self, *others))
        for other in parts[1:]:
            _check_alike(parts[0], other)
        models = zip(*(part.models for part in parts), strict=True)
        return replace(
            parts[0],
            models=tuple(reduce(Totals.merged, each) for each in models),
            sample=self.sample.merged(*(part.sample for part in others)),
            rows=sum(part.rows for part in parts),
            dropped=sum(part.dropped for part in parts),
            dropped_by=dict(sum((Counter(part.dropped_by) for part in parts), Counter())),
        )

    def to_arrow(self) -> pa.Table:
        """The state as an Arrow table of one row."""
        sample = self.sample
        arrays, facts = packed(
            _Facts(
                models=self.models,
                number=sample.number,
                unit=sample.unit,
                copies=sample.copies,
                most=sample.most,
                bound=sample.bound,
                unit_bound=sample.unit_bound,
                rows=self.rows,
                dropped=self.dropped,
                dropped_by=dict(self.dropped_by),
                reading=dict(self.reading),
            )
        )
        columns = {name: pa.array(array.ravel()) for name, array in arrays.items()}
        for name in sample.table.column_names:
            columns[_ROW + name] = _whole(sample.table[name])
        told = {
            "form": _FORM,
            "howsure": __version__,
            "facts": facts,
            "shapes": {name: array.shape for name, array in arrays.items()},
        }
        lists = [
            pa.LargeListArray.from_arrays(pa.array([0, len(each)], pa.int64()), each)
            for each in columns.values()
        ]
        schema = pa.schema(
            [pa.field(name, each.type) for name, each in zip(columns, lists, strict=True)],
            metadata={"howsure": json.dumps(told)},
        )
        return pa.table(lists, schema=schema)

    @classmethod
    def from_arrow(cls, table: pa.Table, title: str = "the table") -> State:
        """The state that `to_arrow` made a table of.

        Raises
        ------
        InputError
            If it is no such table, or of another version.
        """
        told = _told(table, title)
        lists = {name: _whole(table[name]) for name in table.column_names}
        values = {name: each.values for name, each in lists.items()}
        arrays = {
            name: values[name].to_numpy(zero_copy_only=False).reshape(shape)
            for name, shape in told["shapes"].items()
        }
        facts = unpacked(_Facts, arrays, told["facts"])
        rows = {
            name.removeprefix(_ROW): each for name, each in values.items() if name.startswith(_ROW)
        }
        sample = Sample(
            pa.table(rows),
            facts.number,
            facts.unit,
            facts.copies,
            facts.most,
            facts.bound,
            facts.unit_bound,
        )
        return cls(
            models=facts.models,
            sample=sample,
            rows=facts.rows,
            dropped=facts.dropped,
            dropped_by=facts.dropped_by,
            reading=facts.reading,
        )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the state as an Arrow file, ``.arrow``."""
        table = self.to_arrow()
        with replacing(path) as file, pa.ipc.new_file(os.fspath(file), table.schema) as writer:
            writer.write_table(table)

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> State:
        """Read what `save` wrote."""
        try:
            with pa.memory_map(os.fspath(path)) as file:
                table = pa.ipc.open_file(file).read_all()
        except (pa.ArrowException, OSError) as error:
            raise InputError(f"{path} cannot be read as a state: {error}") from error
        return cls.from_arrow(table, str(path))


def merged_states(states: Sequence[State]) -> State:
    """The state of all parts, in their order."""
    if not states:
        raise InputError("a state is needed, got none")
    return states[0].merged(*states[1:])


def _under_one_name(states: Sequence[State]) -> tuple[State, ...]:
    """States of one model each, which is called after its file: with one name for all."""
    names = {state.models[0].model for state in states}
    if len(names) == 1 or any(len(state.models) > 1 for state in states):
        return tuple(states)
    return tuple(
        replace(
            state,
            models=(replace(state.models[0], model="model"),),
            reading={**state.reading, "names": ["model"]},
        )
        for state in states
    )


def _whole(column: pa.ChunkedArray) -> pa.Array:
    """A column in one piece."""
    held = column.combine_chunks()
    return held.chunk(0) if isinstance(held, pa.ChunkedArray) else held


def _told(table: pa.Table, title: str) -> dict[str, Any]:
    """What the schema's metadata says."""
    found = (table.schema.metadata or {}).get(b"howsure")
    try:
        told: dict[str, Any] = json.loads(found or "")
    except ValueError:
        told = {}
    if told.get("form") != _FORM:
        raise InputError(
            f"{title} must be a state that howsure assess --state wrote, got another table"
        )
    return told


def _check_alike(one: State, other: State) -> None:
    """Refuse states that are of other columns, models or coverages."""
    for name in one.reading.keys() | other.reading.keys():
        here, there = (json.dumps(each.reading.get(name)) for each in (one, other))
        if here != there:
            raise InputError(f"states must agree in {name} to be merged, got {here} and {there}")
    own, others = (", ".join(each.model for each in state.models) for state in (one, other))
    if own != others:
        raise InputError(f"states must be of the same models to be merged, got {own} and {others}")
