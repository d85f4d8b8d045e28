"""The state of a part of a table: all that an assessment of the whole needs of it.

A state is a small Arrow table of one row: one list per column, and all other values in the
metadata of its schema. States merge in any grouping; the state of a year is that of its days.
"""

from __future__ import annotations

import json
import math
import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import field, replace
from functools import reduce
from hashlib import blake2b
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from howsure._version import __version__
from howsure.core.arrays import FloatArray
from howsure.core.classes import frozen
from howsure.core.convert import packed, unpacked
from howsure.core.errors import InputError, either
from howsure.core.files import replacing
from howsure.inputs.files import is_list
from howsure.inputs.places import Manifest
from howsure.inputs.values import is_number
from howsure.streaming.engine import stream_table
from howsure.streaming.sample import Contents, Sample, Sketch, shared_rows
from howsure.streaming.totals import SufficientStatistics

# Raised when what is written changes so that this program could not read it.
VERSION = 1
_KIND = "howsure state"
_FORM = f"{_KIND} {VERSION}"
_NAME, _HASH = "howsure", "hash"
"""Where the metadata stands in a table's schema, and in it the hash of the whole."""
# The last version that wrote states without a hash: history, not a choice.
_LAST_WITHOUT_HASH = (0, 2, 0)
_ROW, _WITHOUT_Y = "row ", "without y "
"""How the names of columns begin that hold rows of the sample, and of that of rows without y."""


@frozen(kw_only=True, eq=False)
class _Facts:
    """What a state holds but for the rows of its sample, as it is packed."""

    models: tuple[SufficientStatistics, ...]
    number: FloatArray
    unit: FloatArray
    copies: FloatArray
    # rows that lack y alone, and below what number they are in their sample; those numbers
    lacking_y: FloatArray
    without_y: FloatArray
    most: int
    bound: float
    unit_bound: float
    rows: int
    dropped: int
    dropped_by: dict[str, int]
    reading: dict[str, Any]
    manifest: Manifest = field(default_factory=Manifest)
    sketch: Sketch = field(default_factory=lambda: Sketch.of(np.empty(0, dtype=np.uint64)))


_OF_SAMPLE = ("number", "unit", "copies", "most", "bound", "unit_bound")
_OF_STATE = ("models", "rows", "dropped", "dropped_by", "reading", "manifest", "sketch")
"""What a state is packed with of its sample, in its order, and of itself."""


@frozen(kw_only=True, eq=False)
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
    manifest : Manifest
        What was read.
    sketch : Sketch
        The least hashes of the content of rows: two states of the same rows share them.
    lacking_y : int
        Rows left out that lack y alone.
    without_y : Sample, optional
        Some of these.
    """

    models: tuple[SufficientStatistics, ...]
    sample: Sample
    rows: int
    dropped: int = 0
    dropped_by: Mapping[str, int] = field(default_factory=dict)
    reading: Mapping[str, Any] = field(default_factory=dict)
    manifest: Manifest = field(default_factory=Manifest)
    sketch: Sketch = field(default_factory=lambda: Sketch.of(np.empty(0, dtype=np.uint64)))
    lacking_y: int = 0
    without_y: Sample | None = None

    def merged(self, *states: State) -> State:
        """The state of the rows of all, as `merged_states` gives it."""
        return merged_states((self, *states))

    def joined(self, *states: State) -> State:
        """The state of the rows of all, where these are parts of one table.

        Raises
        ------
        InputError
            If the states are of other columns, models or coverages.
        """
        parts = _under_one_name((self, *states))
        for other in parts[1:]:
            _check_alike(parts[0], other)
        models = zip(*(state.models for state in parts), strict=True)
        return replace(
            parts[0],
            models=tuple(reduce(SufficientStatistics.merged, model) for model in models),
            sample=self.sample.merged(*(state.sample for state in states)),
            manifest=self.manifest.joined(*(state.manifest for state in states)),
            sketch=self.sketch.joined(*(state.sketch for state in states)),
            **added_up(parts),
        )

    def to_arrow(self) -> pa.Table:
        """The state as an Arrow table of one row."""
        sample, without_y = self.sample, self.without_y
        arrays, facts = packed(
            _Facts(
                lacking_y=np.array([self.lacking_y, 1.0 if without_y is None else without_y.bound]),
                without_y=np.empty(0) if without_y is None else without_y.number,
                **{name: getattr(sample, name) for name in _OF_SAMPLE},
                **{name: getattr(self, name) for name in _OF_STATE},
            )
        )
        columns = {name: pa.array(array.ravel()) for name, array in arrays.items()}
        tables = {_ROW: sample.table}
        if without_y is not None:
            tables[_WITHOUT_Y] = without_y.table
        for prefix, rows in tables.items():
            for name in rows.column_names:
                columns[prefix + name] = _one_chunk(rows[name])
        metadata = {
            "form": _FORM,
            _NAME: __version__,
            "facts": facts,
            "shapes": {name: array.shape for name, array in arrays.items()},
        }
        lists = [
            pa.LargeListArray.from_arrays(pa.array([0, len(column)], pa.int64()), column)
            for column in columns.values()
        ]
        schema = pa.schema(
            [pa.field(name, column.type) for name, column in zip(columns, lists, strict=True)],
            metadata={_NAME: json.dumps(metadata)},
        )
        return pa.table(lists, schema=schema)

    @classmethod
    def from_arrow(cls, table: pa.Table, title: str = "the table") -> State:
        """The state that `to_arrow` made a table of.

        Raises
        ------
        InputError
            If it is no such table, is of a later version, or was changed since it was written.
        """
        with _damage(title):
            table.validate(full=True)
            return cls._from_dict(table, _read_facts(table, title))

    @classmethod
    def _from_dict(cls, table: pa.Table, metadata: Mapping[str, Any]) -> State:
        """The state of a table whose metadata is read."""
        lists = {name: _one_chunk(table[name]) for name in table.column_names}
        values = {name: array.values for name, array in lists.items()}
        arrays = {"lacking_y": np.array([0.0, 1.0]), "without_y": np.empty(0)}  # of first states
        arrays |= {
            name: values[name].to_numpy(zero_copy_only=False).reshape(shape)
            for name, shape in metadata["shapes"].items()
        }
        facts = unpacked(_Facts, arrays, metadata["facts"])
        rows, without_y = (
            pa.table({n.removeprefix(prefix): v for n, v in values.items() if n.startswith(prefix)})
            for prefix in (_ROW, _WITHOUT_Y)
        )
        count, bound = facts.lacking_y.tolist()
        lone = Sample.of_lone(without_y, facts.without_y, facts.most, bound)
        return cls(
            sample=Sample(rows, *(getattr(facts, name) for name in _OF_SAMPLE)),
            **{name: getattr(facts, name) for name in _OF_STATE},
            lacking_y=int(count),
            without_y=lone if count else None,
        )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the state as an Arrow file, ``.arrow``, with a hash of all that it holds."""
        table = self.to_arrow()
        metadata = _metadata(table)
        metadata[_HASH] = _hash_of(table, metadata)
        table = table.replace_schema_metadata({_NAME: json.dumps(metadata)})
        with replacing(path) as file, pa.ipc.new_file(os.fspath(file), table.schema) as writer:
            writer.write_table(table)

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> State:
        """Read what `save` wrote."""
        if os.path.exists(path) and not os.path.isfile(path):
            raise InputError(f"{path} cannot be read as a state: a regular file is needed")
        try:
            with pa.memory_map(os.fspath(path)) as file:
                file_table = pa.ipc.open_file(file)
                file.seek(8)  # after its mark the file is a stream
                table = stream_table(file.read_buffer())
                if not table.schema.equals(file_table.schema, check_metadata=True):
                    raise pa.ArrowInvalid("its end does not match its beginning")
        except (pa.ArrowException, OSError, UnicodeError) as error:
            raise InputError(f"{path} cannot be read as a state: {error}") from error
        from howsure.streaming.load import loaded_state  # which imports this module

        state = cls.from_arrow(table, str(path))
        metadata = _metadata(table)
        if _HASH in metadata:
            return state
        if _version(metadata["howsure"]) > _LAST_WITHOUT_HASH:
            raise InputError(f"{path} has changed since it was written: its hash is missing")
        with _damage(str(path)):
            state.joined(state)  # this and the next ask for all that it must hold
            loaded_state(state)
            if state._is_impossible():
                raise InputError("it contains counts or weights below 0")
            lost = [model.imprecise() for model in state.models]
        name = os.path.basename(path)
        notes = [
            f"{name} was written by howsure {metadata['howsure']}, which wrote no hash: changes "
            "to it, or rows shared with others, cannot be detected"
        ]
        if any(lost):
            notes.append(
                f"{name} has sums about 0, far from its y: R² and relative widths come from the "
                "sample"
            )
        models = tuple(map(SufficientStatistics.without, state.models, lost))
        manifest = replace(state.manifest, notes=tuple(notes))
        return replace(state, models=models, manifest=manifest)

    def _is_impossible(self) -> bool:
        """Whether it holds what no rows add up to."""
        counts: list[float] = [self.rows, self.dropped, self.lacking_y]
        for model in self.models:
            weights = (model.moments.mass, model.pit, model.among)
            counts += [model.n, model.mass, model.squares]
            counts += [float(weight.min(initial=0.0)) for weight in weights if weight is not None]
        return not all(math.isfinite(count) and count >= 0 for count in counts)


def added_up(parts: Sequence[Any]) -> dict[str, Any]:
    """How many rows of all parts were read and left out, with a sample of those without y."""
    samples = [summand.without_y for summand in parts if summand.without_y is not None]
    return {
        "rows": sum(summand.rows for summand in parts),
        "dropped": sum(summand.dropped for summand in parts),
        "dropped_by": dict(sum((Counter(summand.dropped_by) for summand in parts), Counter())),
        "lacking_y": sum(summand.lacking_y for summand in parts),
        "without_y": samples[0].merged(*samples[1:]) if samples else None,
    }


def merged_states(states: Sequence[State], names: Sequence[str] = ()) -> State:
    """The state of all parts, in their order.

    Parameters
    ----------
    states : sequence of State
        Of different rows.
    names : sequence of str
        What messages call each; ``state 1`` and so on, if omitted.

    Raises
    ------
    InputError
        If the states are of other columns, models or coverages, or share rows: the same state or
        file twice, a copy of it, or a month beside one of its days.
    """
    if not states:
        raise InputError("no state given; at least one is needed")
    names = names or [f"state {number}" for number in range(1, len(states) + 1)]
    merged = states[0].joined(*states[1:])
    notes = shared_rows(
        [
            Contents(
                name=name,
                files=state.manifest.files,
                sketch=state.sketch,
                numbers=state.sample.number,
            )
            for name, state in zip(names, states, strict=True)
        ]
    )
    manifest = states[0].manifest.merged(*(state.manifest for state in states[1:]))
    return replace(merged, manifest=replace(manifest, notes=(*manifest.notes, *notes)))


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


def _one_chunk(column: pa.ChunkedArray) -> pa.Array:
    """A column in one piece."""
    chunks = column.combine_chunks()
    return chunks.chunk(0) if isinstance(chunks, pa.ChunkedArray) else chunks


@contextmanager
def _damage(title: str) -> Iterator[None]:
    """Turn what is raised where a state lacks what it must hold into an `InputError`."""
    try:
        yield
    except InputError as error:
        if str(error).startswith(title):
            raise
        raise type(error)(f"{title} is damaged: {error}") from error
    except (LookupError, TypeError, ValueError, AttributeError, pa.ArrowException) as error:
        raise InputError(
            f"{title} is damaged: its content is not that of a state ({type(error).__name__}: "
            f"{str(error)[:100]})"
        ) from error


def _metadata(table: pa.Table) -> dict[str, Any]:
    """What the schema's metadata says; nothing where it is no state's."""
    try:
        metadata = json.loads((table.schema.metadata or {}).get(_NAME.encode(), b""))
    except ValueError:
        return {}
    return metadata if isinstance(metadata, dict) else {}


def _how_to_create() -> str:
    python = "howsure.assess(table, large=howsure.Large(state=FILE))"
    return f"recreate it with {either(python, 'howsure assess TABLE --state FILE')}"


def _read_facts(table: pa.Table, title: str) -> dict[str, Any]:
    """What the schema's metadata says, checked."""
    metadata = _metadata(table)
    form = metadata.get("form")
    if form != _FORM:
        raise InputError(
            f"{title} must be a state that howsure assess --state wrote, got "
            + (
                f"one of a different form: {_how_to_create()}"
                if str(form).startswith(_KIND)
                else "another table"
            )
        )
    wrote = metadata.get("howsure")
    if not isinstance(wrote, str) or not _version(wrote):
        raise InputError(f"{title} is damaged: it does not state the howsure version that wrote it")
    if _version(wrote) > _version(__version__):
        raise InputError(
            f"{title} must be a state of howsure {__version__} or earlier, got one of {wrote}: "
            f"{_how_to_create()}"
        )
    if _HASH in metadata and metadata[_HASH] != _hash_of(table, metadata):
        raise InputError(f"{title} has changed since it was written: its hash differs")
    return metadata


def _version(text: str) -> tuple[int, ...]:
    """The numbers that a version begins with."""
    numbers = re.match(r"\d+(\.\d+)*", text)
    return tuple(map(int, numbers[0].split("."))) if numbers else ()


def _hash_of(table: pa.Table, metadata: Mapping[str, Any]) -> str:
    """A hash of the content of a state's table, of the metadata what is not the hash itself."""
    digest = blake2b(digest_size=16)
    facts = {name: fact for name, fact in metadata.items() if name != _HASH}
    digest.update(json.dumps(facts, sort_keys=True).encode())
    for name in table.column_names:
        digest.update(name.encode())
        _feed(digest, _one_chunk(table[name]))
    return digest.hexdigest()


def _feed(digest: blake2b, column: pa.Array) -> None:
    """Hash the content of a column, however it is stored in memory."""
    kind = column.type
    digest.update(f"{kind} {len(column)} ".encode())
    digest.update(np.packbits(column.is_valid().to_numpy(zero_copy_only=False)).tobytes())
    if is_list(kind):
        digest.update(pc.list_value_length(column).fill_null(0).to_numpy().tobytes())
        _feed(digest, column.flatten())
    elif is_number(kind):
        digest.update(column.fill_null(0).to_numpy().tobytes())
    else:
        digest.update(json.dumps(column.to_pylist(), default=str).encode())


def _check_alike(first: State, second: State) -> None:
    """Refuse states that are of other columns, models or coverages."""
    for name in first.reading.keys() | second.reading.keys():
        here, there = (json.dumps(one_state.reading.get(name)) for one_state in (first, second))
        if here != there:
            raise InputError(f"states must agree in {name} to be merged, got {here} and {there}")
    models, theirs = (", ".join(model.model for model in state.models) for state in (first, second))
    if models != theirs:
        raise InputError(
            f"states must be of the same models to be merged, got {models} and {theirs}"
        )
