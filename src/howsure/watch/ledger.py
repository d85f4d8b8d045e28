"""What is kept of a watch: the promise, an entry for each time that rows or labels came, and names.

Entries are numbered, and never change. A writer makes the next number from all before it; where
another was faster, it reads on and tries again. So two writers are safe without a lock, and a
writer that dies leaves nothing that counts. Predictions that wait for their y stand apart, and so
do the names of rows that came. The last addition is taken back by an entry that says so. What it
settled is kept until the next one comes: then predictions whose y came are removed.
"""

from __future__ import annotations

import json
import os
import re
import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace
from hashlib import blake2b
from pathlib import Path
from typing import Any, Self, final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from howsure.core.arrays import BoolArray, FloatArray, IntArray
from howsure.core.classes import frozen
from howsure.core.convert import json_number, plain, read_json, restored
from howsure.core.errors import InputError, either
from howsure.core.files import LocalFolder, NamedBytes, RemoteFolder, SingleFile
from howsure.core.rng import row_hashes
from howsure.core.sizes import most_inflated
from howsure.inputs import values
from howsure.streaming.engine import stream_bytes, stream_table
from howsure.watch.promise import Promise
from howsure.watch.quantities import DaySums
from howsure.watch.running import CELLS_OF_RATIOS, RatioCell

_PROMISE = "promise.json"
# So that a ledger stays on any disk; six bytes each, packed.
MAX_NAMES_KEPT = 50_000_000
"""Names of booked days that are kept, some 300 MB of them; those of days still open always are."""
DayScores = tuple[int, float, float, float]
"""Of a day: its rows, and sums of the score without and with a correction."""
HASH, DAY = "name hash", "number of the day"
"""Columns of waiting predictions: what stands for their names, and their day; 0 without times."""


@frozen(kw_only=True)
class LedgerEntry:
    """What one addition brought."""

    sums: tuple[DaySums, ...] = ()
    latest: int | None = None  # the last day among its rows
    digests: tuple[str, ...] = ()  # of tables whose rows have no names
    rows: int = 0  # with y
    late: int = 0  # rows of days that were booked before
    names: str = ""  # where the names of all these stand; empty where they have none
    days: tuple[int, ...] = ()  # of rows with names; 0 without times
    resolved: int = 0  # of its rows those that had waited
    waits: tuple[str, ...] = ()  # where its predictions that wait stand
    undoes: bool = False  # whether it takes back the one before it
    correction: Mapping[str, Any] | None = None  # that holds from here on
    expected: Mapping[str, Any] | None = None  # of its predictions that wait, by their inputs
    # of days that are corrected: rows, and sums of the score uncorrected and corrected
    scores: tuple[DayScores, ...] = ()
    ratios: tuple[RatioCell, ...] = ()

    def to_bytes(self) -> bytes:
        """As an Arrow stream: sums as a table, the rest beside it."""
        fields_beside = {name: getattr(self, name) for name in _BESIDE}
        columns = {
            name: pa.array([getattr(cell, name) for cell in self.sums], kind)
            for name, kind in _KEYS.items()
        }
        rows = [cell.sums for cell in self.sums]
        for number, column in enumerate(np.transpose(rows) if rows else ()):
            columns[f"sum_{number}"] = pa.array(np.rint(column * _UNIT).astype(np.int64))
        metadata = {"howsure": json.dumps(plain(fields_beside, json_number))}
        return stream_bytes(pa.table(columns).replace_schema_metadata(metadata))

    @classmethod
    def from_bytes(cls, data: bytes) -> LedgerEntry:
        """What `to_bytes` made."""
        table = stream_table(data)
        fields_beside = read_json((table.schema.metadata or {})[b"howsure"])
        keys = [_without_gaps(table[name].cast(kind)).to_pylist() for name, kind in _KEYS.items()]
        names = [name for name in table.column_names if name.startswith("sum_")]
        sums = np.empty((len(table), len(names)))
        for number, name in enumerate(names):
            sums[:, number] = _without_gaps(table[name]).to_numpy() / _UNIT
        counts = np.array(keys[-2:])
        if not (np.isfinite(sums).all() and np.isfinite(counts).all() and (counts >= 0.0).all()):
            raise InputError("sums must be finite, and numbers of rows at least 0")
        cells = tuple(
            DaySums(**dict(zip(_KEYS, key, strict=True)), sums=total)
            for *key, total in zip(*keys, sums, strict=True)
        )
        entry: LedgerEntry = restored(fields_beside, cls, "entry")
        return replace(entry, sums=cells)


def _without_gaps(column: pa.ChunkedArray) -> pa.ChunkedArray:
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
# A 20-bit fraction leaves 43 bits for whole parts: components of the PIT of 10¹² rows fit, each
# rounded by 10⁻⁶ at most.
_UNIT = 2.0**20


_BESIDE = tuple(field.name for field in fields(LedgerEntry) if field.name != "sums")


@dataclass(slots=True)
class LedgerState:
    """What all entries come to."""

    # by day, group and stratum: rows, rows with y, and sums of these
    sums: dict[tuple[int, str, int], FloatArray] = field(default_factory=dict)
    latest: int | None = None
    rows: int = 0
    late: int = 0
    written: int = 0  # entries, with those that were taken back
    undone: int = 0  # entries that were taken back
    shortened: bool = False  # whether nothing came since one was
    entries: list[LedgerEntry] = field(default_factory=list)  # all others, in order
    corrections: list[Mapping[str, Any]] = field(default_factory=list)  # in order
    scores: dict[int, FloatArray] = field(default_factory=dict)  # as of entries, by day
    ratios: dict[int, FloatArray] = field(default_factory=dict)  # by day: rows and widths by cell
    expected: dict[int, Mapping[str, Any]] = field(default_factory=dict)  # by the last day of each

    def add(self, entry: LedgerEntry) -> None:
        """One more."""
        self.written += 1
        self.shortened = False
        self.entries.append(entry)
        for cell in entry.sums:
            key = (cell.day, cell.group, cell.stratum)
            self.sums[key] = self.sums.get(key, 0.0) + np.array([cell.rows, cell.n, *cell.sums])
        self.corrections += filter(None, [entry.correction])
        if entry.expected is not None and entry.latest is not None:
            self.expected[entry.latest] = entry.expected
        for day, *scores in entry.scores:
            self.scores[day] = self.scores.get(day, 0.0) + np.array(scores)
        for day, number, *sums in entry.ratios:
            self.ratios.setdefault(day, np.zeros((2, CELLS_OF_RATIOS)))[:, number] += sums
        if entry.latest is not None:
            self.latest = max(entry.latest, entry.latest if self.latest is None else self.latest)
        self.rows += entry.rows
        self.late += entry.late

    def without_last(self) -> LedgerState:
        """All but the last of them, which was taken back."""
        state = LedgerState()
        for entry in self.entries[:-1]:
            state.add(entry)
        state.written, state.undone, state.shortened = self.written + 1, self.undone + 1, True
        return state


@frozen(kw_only=True)
class Addition:
    """What is added."""

    entry: LedgerEntry
    waits: Sequence[pa.Table] = ()  # predictions that wait, without their names
    names: RowNames | None = None  # of its rows


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
        data = self._place.read(_PROMISE)
        if data is None:
            return None
        with self._reading(_PROMISE):
            promised: Promise = restored(read_json(data), Promise, "promise")
        return promised

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
                f"{self.location!r} already has a reference: use another path for a new ledger"
            )

    def keep(self, table: pa.Table) -> str:
        """Write rows of a reference; their name."""
        return self._keep("reference", stream_bytes(table))

    def keep_names(self, names: RowNames) -> str:
        """Write names of rows; what to find them by."""
        return self._keep("names", names.to_bytes())

    def _keep(self, kind: str, data: bytes) -> str:
        name = f"{kind}-{secrets.token_hex(8)}"
        self._place.write(name, data)
        return name

    def read_table(self, name: str) -> pa.Table:
        """What `keep` wrote."""
        data = self._place.read(name)
        with self._reading(name):
            if data is None:
                raise InputError("it is missing")
            return stream_table(data)

    def names(self, name: str) -> RowNames:
        """What `keep_names` wrote; none where they are kept no longer."""
        data = self._place.read(name) if name else None
        with self._reading(name):
            return RowNames.joined([] if data is None else [RowNames.from_bytes(data)])

    def state(self) -> LedgerState:
        """All entries so far."""
        while (data := self._place.read(name := _entry(self._state.written + 1))) is not None:
            with self._reading(name):
                entry = LedgerEntry.from_bytes(data)
                if not entry.undoes:
                    self._state.add(entry)
            if entry.undoes:
                self._state = self._state.without_last()
        return self._state

    @contextmanager
    def _reading(self, name: str) -> Iterator[None]:
        """Turn what is raised where a piece lacks what it must hold into an `InputError`."""
        try:
            yield
        except (LookupError, TypeError, ValueError, OverflowError, pa.ArrowException) as error:
            raise InputError(
                f"{self.location!r} is damaged: {name!r} has invalid content "
                f"({str(error)[:200]}): {how_to_create()}"
            ) from error

    def append(self, addition_to: Callable[[LedgerState], Addition]) -> None:
        """Add what is made of all before; it is made again where another writer was faster."""
        while True:
            state = self.state()
            addition = addition_to(state)
            # which are read once the entry stands
            waits = tuple(self._keep("waiting", stream_bytes(table)) for table in addition.waits)
            names = "" if addition.names is None else self.keep_names(addition.names)
            entry = replace(addition.entry, waits=waits, names=names)
            if self._place.create(_entry(state.written + 1), entry.to_bytes()):
                self.state()
                return
            self._remove(entry)

    def undo(self) -> LedgerEntry:
        """Take the last addition back; what it was."""
        state = self.state()
        if not state.entries:
            raise InputError(f"{self.location!r} has no addition to undo")
        if state.shortened:
            raise InputError(
                "the last addition was already undone, and the one before it can no longer be "
                "undone"
            )
        last, entry = state.entries[-1], LedgerEntry(undoes=True)
        if not self._place.create(_entry(state.written + 1), entry.to_bytes()):
            raise InputError("the ledger changed meanwhile: check its last addition")
        self.state()
        self._remove(last)
        return last

    def _remove(self, entry: LedgerEntry) -> None:
        """What stands beside an entry."""
        for name in filter(None, (*entry.waits, entry.names)):
            self._place.remove(name)

    def waiting(self, booked_to: float) -> Iterator[pa.Table]:
        """Tables of predictions that wait.

        Without those whose y came, and without those of days that are booked.
        """
        for _, table, waits in self._waiting(self.state().entries, booked_to):
            yield table.filter(pa.array(waits))

    def _waiting(
        self, entries: Sequence[LedgerEntry], booked_to: float
    ) -> Iterator[tuple[str, pa.Table, BoolArray]]:
        """Tables of predictions after some entries, each with its name, and whether rows wait."""
        there = set(self._place.names())
        names = [name for entry in entries for name in entry.waits if name in there]
        came = RowNames.joined(
            self.names(entry.names)
            for entry in entries
            if names and entry.resolved and max(entry.days, default=booked_to) > booked_to
        )
        for name in names:
            data = self._place.read(name)
            if data is not None:
                with self._reading(name):
                    table = stream_table(data)
                    hashes, days = (
                        _without_gaps(table[column].cast(pa.int64())).to_numpy()
                        for column in (HASH, DAY)
                    )
                yield name, table, ~came.contains(row_keys(hashes, days)) & (days > booked_to)

    def forget(self, booked_to: Callable[[int | None], float]) -> None:
        """Remove what was settled before the last addition, which may be taken back."""
        *before, _ = entries = self.state().entries
        latest = max((e.latest for e in before if e.latest is not None), default=None)
        settled = booked_to(latest)
        for name, table, waits in self._waiting(before, settled):
            if not waits.any():
                self._place.remove(name)
            elif not waits.all():
                self._place.write(name, stream_bytes(table.filter(pa.array(waits))))
        sizes = np.cumsum([entry.rows + entry.late for entry in reversed(entries)])
        for entry in entries[: int((sizes > MAX_NAMES_KEPT).sum())]:
            if entry.names and max(entry.days, default=settled) <= settled:
                self._place.remove(entry.names)


def _entry(number: int) -> str:
    return f"entry-{number:08d}"


def how_to_create() -> str:
    """What to do where there is no ledger that can be read."""
    python = "howsure.watch.Watch.init(new, reference)"
    return f"create one with {either(python, 'howsure watch init NEW --reference TABLE')}"


def _place_of(address: str | os.PathLike[str]) -> NamedBytes:
    text = os.fspath(address)
    if "://" in text:
        return RemoteFolder(text)
    path = Path(text)
    if path.is_dir() or text.endswith(("/", os.sep)):
        return LocalFolder(path)
    return SingleFile(path)


# ---- pieces of a ledger as they are stored: each with its form, its size, and a hash of it -------
# So damage is seen before anything is read from it, by whatever it came. A hash keeps nobody out
# who wants to write another: what is read is checked all the same, and nothing in it names code.

# Raised when what is written changes so that this program could not read it.
FORM = 3
"""Version of what is written. `tests/kept` holds a ledger of each, which opens or is refused."""
# Bytes of the hash: 128 bits, which no damage meets by chance.
_BYTES_OF_HASH = 16
# Bytes of the first line: its longest form has 48, and damage must not be searched to the end.
_MAX_BYTES_OF_LINE = 64


@final
@frozen
class SealedPlace:
    """A place of named bytes, all of which are sealed."""

    place: NamedBytes

    @property
    def location(self) -> str:
        return self.place.location

    def read(self, name: str) -> bytes | None:
        data = self.place.read(self._checked(name))
        return None if data is None else self._opened(name, data)

    def write(self, name: str, data: bytes) -> None:
        self.place.write(self._checked(name), _sealed(name, data))

    def create(self, name: str, data: bytes) -> bool:
        return self.place.create(self._checked(name), _sealed(name, data))

    def remove(self, name: str) -> None:
        self.place.remove(self._checked(name))

    def names(self, name: str = "") -> tuple[str, ...]:
        return self.place.names(name)

    def _checked(self, name: str) -> str:
        """A name that leads to no other place."""
        if not re.fullmatch(r"\w[\w.-]*", name):
            raise self._refusal(f"is damaged: {name!r} is not a valid name of a piece")
        return name

    def _refusal(self, words: str) -> InputError:
        return InputError(f"{self.location!r} {words}: {how_to_create()}")

    def _opened(self, name: str, data: bytes) -> bytes:
        """What was sealed."""
        line = data[:_MAX_BYTES_OF_LINE].partition(b"\n")[0]
        match = re.fullmatch(rb"howsure ledger (\d{1,9}) (zstd|none) (\d{1,18})", line)
        if match is None or int(match[1]) != FORM:
            raise self._refusal("is not a ledger of this version of howsure")
        start = len(line) + 1 + _BYTES_OF_HASH
        check, packed, size = data[len(line) + 1 : start], memoryview(data)[start:], int(match[3])
        if check != _hash(name, line, packed):
            raise self._refusal(f"is damaged: {name!r} was changed since it was written")
        if match[2] == b"none":
            return bytes(packed)
        if size > most_inflated(len(packed)):
            raise self._refusal(
                f"is damaged: the {len(packed):,} bytes of {name!r} would expand to {size:,}"
            )
        try:
            return bytes(pa.decompress(packed, decompressed_size=size, codec="zstd", asbytes=True))
        except OSError as error:
            raise self._refusal(f"is damaged: {name!r} cannot be read ({error})") from error


def _sealed(name: str, data: bytes) -> bytes:
    content = pa.compress(data, codec="zstd", asbytes=True)
    # what repeats more than may grow again is stored as it is
    packed = len(data) <= most_inflated(len(content))
    content = content if packed else data
    line = f"howsure ledger {FORM} {'zstd' if packed else 'none'} {len(data)}".encode()
    return b"".join((line, b"\n", _hash(name, line, content), content))


def _hash(name: str, line: bytes, packed: bytes | memoryview) -> bytes:
    digest = blake2b(name.encode() + b"\n" + line + b"\n", digest_size=_BYTES_OF_HASH)
    digest.update(packed)
    return digest.digest()


# ---- which rows came before: names of rows by day, so that a row that comes again counts once ----
# A row is known by its name and its day. A set of 10⁶ takes 5.7 MB, one of 10⁷ 53 MB: numbers of 56
# bits in their order, of which only the steps are kept, and 8 bits that tell whether y is another.
# That a new row is taken for one of 10⁷ others has a probability of 10⁻¹⁰.

MarkArray = npt.NDArray[np.uint8]
# Of a hash of 64 bits; with a mark of 8 a name takes 9 bytes, sorted by byte. That two of 10⁶
# names of a day meet has a chance of 10⁻⁵.
_BITS_OF_KEY = 56
_APART = 0x9E3779B97F4A7C15 & (
    (1 << _BITS_OF_KEY) - 1
)  # by which the keys of one name differ by day
# No hash of y is 0, as 1 is added to each.
UNKNOWN_MARK = 0
"""The mark of rows without y."""
_WIDTH = 9  # bytes of a key and its mark


def name_hashes(column: pa.ChunkedArray, role: str) -> IntArray:
    """Of names of rows."""
    names = values.names(column, role).tolist()
    if None in names:
        raise InputError(
            f"column {role!r} must have a name in each row, got none at row {names.index(None)}, "
            "counting from 0"
        )
    digests = (blake2b(str(name).encode(), digest_size=8).digest() for name in names)
    return np.frombuffer(b"".join(digests), dtype="<i8").astype(np.int64) & (
        (1 << _BITS_OF_KEY) - 1
    )


def row_keys(hashes: IntArray, days: IntArray | int) -> IntArray:
    """What stands for rows: their names' hashes, and their days."""
    with np.errstate(over="ignore"):
        return np.asarray((hashes + np.int64(_APART) * days) & ((1 << _BITS_OF_KEY) - 1))


def marks_of(y: FloatArray) -> MarkArray:
    """By which y is known again, in single or double precision; 0 where it is NaN."""
    if not len(y):
        return np.empty(0, np.uint8)
    with np.errstate(over="ignore"):
        hashed = row_hashes(y.astype(np.float32).astype(np.float64) + 0.0) % np.uint64(255)
    return np.where(np.isnan(y), UNKNOWN_MARK, hashed + np.uint64(1)).astype(np.uint8)


@final
@frozen(eq=False)
class RowNames:
    """Keys of rows, rising, and a mark of the y of each."""

    keys: IntArray
    marks: MarkArray

    @classmethod
    def of(cls, keys: IntArray, y: FloatArray) -> Self:
        """Those of some rows."""
        distinct, first = np.unique(keys, return_index=True)
        return cls(distinct, marks_of(y)[first])

    @classmethod
    def joined(cls, every: Iterable[RowNames]) -> Self:
        """All of several sets."""
        parts = [*every]
        keys = np.concatenate([np.empty(0, np.int64), *(names.keys for names in parts)])
        marks = np.concatenate([np.empty(0, np.uint8), *(names.marks for names in parts)])
        order = np.argsort(keys, kind="stable")
        return cls(keys[order], marks[order])

    def places(self, keys: IntArray) -> IntArray:
        """Where each key stands; −1 where it is not."""
        if not len(self.keys):
            return np.full(len(keys), -1)
        positions = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
        return np.where(self.keys[positions] == keys, positions, -1)

    def contains(self, keys: IntArray) -> BoolArray:
        """Whether each key is there."""
        return np.asarray(self.places(keys) >= 0)

    def to_bytes(self) -> bytes:
        """Steps from key to key, whose bytes of one place lie together, then the marks."""
        steps = np.diff(self.keys, prepend=0).astype("<i8").view(np.uint8).reshape(-1, 8)
        return np.concatenate([steps.T.ravel(), self.marks]).tobytes()

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """What `to_bytes` made."""
        cells = np.frombuffer(data, np.uint8)
        count = len(cells) // _WIDTH
        if len(cells) != _WIDTH * count:
            raise InputError(f"names of rows must take {_WIDTH} bytes each, got {len(cells)}")
        steps = np.ascontiguousarray(cells[: 8 * count].reshape(8, -1).T).view("<i8").ravel()
        return cls(np.cumsum(steps, dtype=np.int64), cells[8 * count :])
