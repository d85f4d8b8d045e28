"""What is kept of a watch: the promise, and an entry for each time that rows or labels came.

Entries are numbered, and never change. A writer makes the next number from all before it; where
another was faster, it reads on and tries again. So two writers are safe without a lock, and a
writer that dies leaves nothing that counts. Predictions that wait for their y stand apart, and are
written anew without those whose y came; until then an entry says which these are.
"""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, final

import numpy as np
import pyarrow as pa

from howsure.core.arrays import FloatArray
from howsure.core.convert import json_number, plain, read_json, restored
from howsure.core.errors import InputError
from howsure.core.folders import LocalFolder, NamedBytes, RemoteFolder, SingleFile
from howsure.streaming.kept import stream_bytes, stream_table
from howsure.watch.promise import Promise
from howsure.watch.quantities import DaySums
from howsure.watch.running import RATIOS, RatioCell
from howsure.watch.sealed import ANEW, SealedPlace

_PROMISE = "promise.json"
DayScores = tuple[int, float, float, float]
"""Of a day: its rows, and sums of the score without and with a correction."""
HASH, DAY = "name hash", "number of the day"
"""Columns of waiting predictions: what stands for their names, and their day."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerEntry:
    """What one addition brought."""

    sums: tuple[DaySums, ...] = ()
    latest: int | None = None  # the last day among its rows
    digest: str = ""  # of what came
    rows: int = 0  # with y
    late: int = 0  # rows of days that were booked before
    # hashes of the names of rows that waited, and whose y it brought
    resolved: tuple[int, ...] = ()
    waits: str = ""  # where its predictions that wait stand; empty where there are none
    correction: Mapping[str, Any] | None = None  # that holds from here on
    expected: Mapping[str, Any] | None = None  # of its predictions that wait, by their inputs
    # of days that are corrected: rows, and sums of the score uncorrected and corrected
    scores: tuple[DayScores, ...] = ()
    ratios: tuple[RatioCell, ...] = ()

    def to_bytes(self) -> bytes:
        """As an Arrow stream: sums as a table, the rest beside it."""
        beside = {name: getattr(self, name) for name in _BESIDE}
        columns = {
            **{
                name: pa.array([getattr(each, name) for each in self.sums], kind)
                for name, kind in _KEYS.items()
            },
            **{
                name: pa.array(np.rint(column * _UNIT).astype(np.int64))
                for name, column in _numbered([each.sums for each in self.sums])
            },
        }
        told = {"howsure": json.dumps(plain(beside, json_number))}
        return stream_bytes(pa.table(columns).replace_schema_metadata(told))

    @classmethod
    def from_bytes(cls, data: bytes) -> LedgerEntry:
        """What `to_bytes` made."""
        table = stream_table(data)
        beside = read_json((table.schema.metadata or {})[b"howsure"])
        told = [_whole(table[name].cast(kind)).to_pylist() for name, kind in _KEYS.items()]
        names = [name for name in table.column_names if name.startswith("sum_")]
        sums = np.empty((len(table), len(names)))
        for place, name in enumerate(names):
            sums[:, place] = _whole(table[name]).to_numpy() / _UNIT
        made = tuple(
            DaySums(**dict(zip(_KEYS, keys, strict=True)), sums=total)
            for *keys, total in zip(*told, sums, strict=True)
        )
        return replace(restored(beside, cls, "entry"), sums=made)


def _whole(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """A column in which nothing is missing."""
    if column.null_count:
        raise InputError("a cell is missing")
    return column


_KEYS = {
    "day": pa.int64(),
    "group": pa.string(),
    "stratum": pa.int8(),
    "rows": pa.float64(),
    "n": pa.float64(),
}
_UNIT = 2.0**20
"""Sums are kept as whole numbers of its inverse, which add up to the same in any order."""


def _numbered(rows: Sequence[FloatArray]) -> Iterator[tuple[str, FloatArray]]:
    for place, column in enumerate(np.transpose(rows) if rows else ()):
        yield f"sum_{place}", column


_BESIDE = tuple(each.name for each in fields(LedgerEntry) if each.name != "sums")


@dataclass(slots=True)
class LedgerState:
    """What all entries come to."""

    # by day, group and stratum: rows, rows with y, and sums of these
    sums: dict[tuple[int, str, int], FloatArray] = field(default_factory=dict)
    resolved: set[int] = field(default_factory=set)
    latest: int | None = None
    rows: int = 0
    late: int = 0
    stood: list[str] = field(default_factory=list)  # digests of the entries, in order
    waits: list[str] = field(default_factory=list)  # where predictions that wait stand
    corrections: list[Mapping[str, Any]] = field(default_factory=list)  # in order
    scores: dict[int, FloatArray] = field(default_factory=dict)  # as of entries, by day
    ratios: dict[int, FloatArray] = field(default_factory=dict)  # by day: rows and widths by cell
    expected: dict[int, Mapping[str, Any]] = field(default_factory=dict)  # by the last day of each

    @property
    def entries(self) -> int:
        """How many there are."""
        return len(self.stood)

    def add(self, entry: LedgerEntry) -> None:
        """One more."""
        for each in entry.sums:
            key = (each.day, each.group, each.stratum)
            added = np.array([each.rows, each.n, *each.sums])
            self.sums[key] = self.sums[key] + added if key in self.sums else added
        self.stood.append(entry.digest)
        self.waits += filter(None, [entry.waits])
        self.resolved.update(entry.resolved)
        self.corrections += filter(None, [entry.correction])
        if entry.expected is not None and entry.latest is not None:
            self.expected[entry.latest] = entry.expected
        for day, *more in entry.scores:
            self.scores[day] = self.scores.get(day, np.zeros(len(more))) + np.array(more)
        for day, cell, *both in entry.ratios:
            self.ratios.setdefault(day, np.zeros((2, RATIOS)))[:, cell] += both
        if entry.latest is not None:
            self.latest = entry.latest if self.latest is None else max(self.latest, entry.latest)
        self.rows += entry.rows
        self.late += entry.late


Addition = Callable[[LedgerState], tuple[LedgerEntry, pa.Table | None]]
"""What is added, made of all before: its entry, and predictions that wait."""


@final
class Ledger:
    """The promise and the entries of one watch, in a file, a folder, or a folder at a URL."""

    __slots__ = ("_place", "_state")

    def __init__(self, address: str | os.PathLike[str]) -> None:
        self._place = SealedPlace(_place_of(address))
        self._state = LedgerState()

    @property
    def location(self) -> str:
        """Where it lies."""
        return self._place.location

    def promise(self) -> Promise | None:
        """What was promised; None where there is no ledger."""
        held = self._place.read(_PROMISE)
        if held is None:
            return None
        with self._reading(_PROMISE):
            made: Promise = restored(read_json(held), Promise, "promise")
        return made

    def begin(self, promise: Promise) -> None:
        """Write the promise, where there is none yet."""
        self.check_empty()
        text = json.dumps(plain(promise, json_number), sort_keys=True).encode()
        if not self._place.create(_PROMISE, text):
            self.check_empty()

    def check_empty(self) -> None:
        """Refuse a place that holds a promise."""
        if self._place.read(_PROMISE) is not None:
            raise InputError(
                f"{self.location!r} holds a promise already: a new one needs a ledger of its own"
            )

    def keep(self, table: pa.Table) -> str:
        """Write rows of a reference; their name."""
        name = f"reference-{secrets.token_hex(8)}"
        self._place.write(name, stream_bytes(table))
        return name

    def kept(self, name: str) -> pa.Table:
        """What `keep` wrote."""
        with self._reading(name):
            data = self._place.read(name)
            if data is None:
                raise InputError("it is gone")
            return stream_table(data)

    def state(self) -> LedgerState:
        """All entries so far."""
        while (data := self._place.read(name := _entry(self._state.entries + 1))) is not None:
            with self._reading(name):
                self._state.add(LedgerEntry.from_bytes(data))
        return self._state

    @contextmanager
    def _reading(self, name: str) -> Iterator[None]:
        """Turn what is raised where a piece lacks what it must hold into an `InputError`."""
        try:
            yield
        except (LookupError, TypeError, ValueError, OverflowError, pa.ArrowException) as error:
            told = str(error)
            if told.startswith(repr(self.location)):
                raise
            raise InputError(
                f"{self.location!r} is damaged: {name!r} does not hold what it must "
                f"({told[:200]}): {ANEW}"
            ) from error

    def append(self, make: Addition) -> LedgerEntry:
        """Add what is made of all before; it is made again where another writer was faster."""
        while True:
            state = self.state()
            entry, table = make(state)
            if table is not None and table.num_rows:  # which is read once the entry stands
                entry = replace(entry, waits=f"waiting-{secrets.token_hex(8)}")
                self._place.write(entry.waits, stream_bytes(table))
            if self._place.create(_entry(state.entries + 1), entry.to_bytes()):
                self.state()
                return entry
            if entry.waits:
                self._place.remove(entry.waits)

    def waiting(self, booked_to: float) -> Iterator[tuple[str, pa.Table]]:
        """Tables of predictions that wait, each with its name.

        Without those whose y came, and without those of days that are booked.
        """
        state = self.state()
        there = set(self._place.names())
        for name in state.waits:
            data = self._place.read(name) if name in there else None
            if data is not None:
                with self._reading(name):
                    table = stream_table(data)
                    names, days = (_whole(table[each]).to_pylist() for each in (HASH, DAY))
                kept = [
                    name not in state.resolved and day > booked_to
                    for name, day in zip(names, days, strict=True)
                ]
                yield name, table.filter(pa.array(kept, pa.bool_()))

    def forget(self, booked_to: float) -> None:
        """Write what waits anew, without predictions that wait no more."""
        for name, table in self.waiting(booked_to):
            if table.num_rows:
                self._place.write(name, stream_bytes(table))
            else:
                self._place.remove(name)


def _entry(number: int) -> str:
    return f"entry-{number:08d}"


def _place_of(address: str | os.PathLike[str]) -> NamedBytes:
    text = os.fspath(address)
    if "://" in text:
        return RemoteFolder(text)
    path = Path(text)
    if path.is_dir() or text.endswith(("/", os.sep)):
        return LocalFolder(path)
    return SingleFile(path)
