"""One promise, from the day that a model is deployed to the day that it is retired."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, Self, Unpack, final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from howsure._version import __version__
from howsure.core.arrays import BoolArray, IntArray, check_fraction
from howsure.core.convert import check_whole
from howsure.core.errors import InputError
from howsure.core.text import CountedNote
from howsure.inputs import load
from howsure.inputs.assigned import Roles
from howsure.inputs.building import Crossing
from howsure.inputs.new import typed
from howsure.inputs.roles import Columns
from howsure.inputs.source import MISSING_WORDS, listed, quoted
from howsure.inputs.sources import sources
from howsure.metrics.view import View
from howsure.predictions import EvalSet
from howsure.stats.evidence import worth_of
from howsure.verdict import TOLERANCE
from howsure.watch.ledger import Ledger, LedgerEntry, LedgerState
from howsure.watch.quantities import DaySums, Watched, days_of, sums_by_day, watched
from howsure.watch.report import Promise, WatchReport, report_of

_FEWEST_DAYS = 8


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Booked:
    """What one addition came to.

    Attributes
    ----------
    rows : int
        Rows with y that it brought, those included that had waited.
    waiting : int
        Predictions that wait for their y.
    late : int
        Rows of days that were booked before, which are left out.
    unknown : int
        Labels of rows that are not waiting.
    """

    rows: int
    waiting: int
    late: int
    unknown: int

    @property
    def sentence(self) -> str:
        """It in words."""
        told = [CountedNote.of(self.rows, "row", " with y")]
        if self.waiting:
            told.append(CountedNote.of(self.waiting, "prediction", " without, which wait"))
        if self.late:
            told.append(CountedNote.of(self.late, "row", " too late, of days that are booked"))
        if self.unknown:
            told.append(CountedNote.of(self.unknown, "label", " of rows that do not wait"))
        return f"Added: {'; '.join(told)}."


@final
class Watch:
    """A promise that may be looked at every day, and the rows that have come since.

    The reference freezes the promise: the nominal coverage, the components of the PIT, and how
    many rows count as one where they depend. Rows that come later are added up by day, with y at
    once or when it arrives. Looking at it as often as one likes breaks a promise that is kept with
    probability 5 % at most over the whole life of the ledger, for independent rows.

    Parameters
    ----------
    ledger : path or URL
        A file, a folder, or a folder at a URL that fsspec knows, made by `Watch.init`.

    Attributes
    ----------
    promise : Promise
        What the reference froze.

    Raises
    ------
    InputError
        If there is no ledger.

    Examples
    --------
    >>> import tempfile
    >>> rng = np.random.default_rng(0)
    >>> def rows(first, last, sd=1.0):
    ...     day = np.repeat(np.arange(first, last), 50)
    ...     y = sd * rng.normal(size=len(day))
    ...     return {"day": day, "y": y, "mean": 0 * y, "sd": 0 * y + 1}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     watch = Watch.init(f"{folder}/model.watch", rows(0, 60), time="day")
    ...     _ = watch.add(rows(60, 90))
    ...     kept = watch.show().kept
    ...     _ = watch.add(rows(90, 120, sd=1.5))
    ...     kept, watch.show().kept
    (True, False)
    """

    __slots__ = ("_ledger", "promise")

    def __init__(self, ledger: str | os.PathLike[str]) -> None:
        self._ledger = Ledger(ledger)
        told = self._ledger.promise()
        if told is None:
            raise InputError(
                f"there is no ledger at {self._ledger.location!r}: begin one by "
                "howsure watch init LEDGER --reference TABLE"
            )
        self.promise = Promise.from_dict(told)

    @classmethod
    def init(
        cls,
        ledger: str | os.PathLike[str],
        reference: Any,
        *,
        mature: int = 0,
        tolerance: float = TOLERANCE,
        row_id: str | None = None,
        crossing: Crossing = "error",
        encoding: str | None = None,
        decimal: str = ".",
        **columns: Unpack[Columns],
    ) -> Self:
        """Freeze the promise of a reference: rows with y on which the model was found right.

        Parameters
        ----------
        ledger : path or URL
            Where to keep it: a new file; a folder where the path ends with ``/``; or a URL.
        reference : table
            Rows with y and predictions, as `howsure.load` takes them.
        mature : int
            Days after which a day is booked: rows of it that come later are left out. Where y
            comes late, and early y are not like late ones, it must be so long that all have come.
        tolerance : float
            Miscoverage that does no harm, as a share.
        row_id : str, optional
            Column of names, by which y finds its prediction where it comes later.
        crossing, encoding, decimal
            How tables are read, as in `howsure.load`.
        **columns
            What columns are, as in `howsure.load`: ``time`` (dates, or numbers of days).

        Returns
        -------
        Watch

        Raises
        ------
        InputError
            If the ledger holds a promise already, or the reference nothing that can be watched.
        """
        check_whole(mature, "mature", 0)
        check_fraction(tolerance, "tolerance")
        reading = {"crossing": crossing, "encoding": encoding, "decimal": decimal}
        loaded = load(reference, **reading, **columns)  # type: ignore[arg-type]
        if len(loaded.evalsets) != 1:
            names = listed(held.model for held in loaded.evalsets)
            raise InputError(f"the reference must hold one model, got {names}")
        (held,) = loaded.evalsets
        coverage = View(held).headline
        numbers = watched(held, coverage, tolerance)
        times = held.time
        days = np.zeros(held.n, dtype=np.int64) if times is None else days_of(times)
        promise = Promise(
            howsure=__version__,
            model=held.model,
            quantities=numbers.names,
            bounds=numbers.bounds,
            coverage=coverage,
            tolerance=tolerance,
            mature=mature,
            columns=_said(loaded.roles),
            reading=reading,
            row_id=row_id or "",
            timed=times is not None,
            dated=times is not None and times.dtype.kind == "M",
            rows=held.n,
            days=len(np.unique(days)),
            worth={} if times is None else _worth(held, days, numbers),
        )
        Ledger(ledger).begin(promise.as_dict())
        return cls(ledger)

    def add(self, *tables: Any) -> Booked:
        """Add rows: with y, without it, or y alone for rows that wait.

        Parameters
        ----------
        *tables
            Paths, folders or data frames. Rows without y wait for it, and need names.

        Returns
        -------
        Booked

        Raises
        ------
        InputError
            If a table lacks columns of the promise, came before, or is of days that are booked
            alone. Nothing of it is kept then.
        """
        rows = waiting = late = unknown = 0
        reading = self.promise.reading
        for given in tables:
            for source in sources(given, reading["encoding"], reading["decimal"] or "."):
                whole = source.whole()
                table = typed(whole, source.decimal) if source.from_text else whole
                done = self._add(table, source.title)
                rows, waiting, late = rows + done[0], waiting + done[1], late + done[2]
                unknown += done[3]
        return Booked(rows=rows, waiting=waiting, late=late, unknown=unknown)

    def show(self) -> WatchReport:
        """What all rows so far say of the promise; as often as one likes."""
        waiting = sum(table.num_rows for _, table in self._ledger.waiting())
        return report_of(self.promise, self._ledger.state(), waiting)

    def _add(self, table: pa.Table, title: str) -> tuple[int, int, int, int]:
        """One table: rows, predictions that wait, late rows, and labels of rows that do not."""
        promise, digest = self.promise, _digest(table)
        beliefs = promise.needed()
        lacking = [name for name in beliefs if name not in table.column_names]
        if len(lacking) == len(beliefs) and promise.y in table.column_names:
            return self._labels(table, title, digest)
        if lacking:
            raise InputError(
                f"{title} must hold the columns of the promise, and {quoted(lacking[0])} is not "
                f"there; it has {listed(table.column_names)}"
            )
        names = [*beliefs, *promise.beside(), *([promise.row_id] if promise.row_id else [])]
        for name in names:
            if name not in table.column_names:
                raise InputError(
                    f"{title} must hold the column {quoted(name)}, as the reference does"
                )
        without = _absent(table, promise.y)
        rows = table.select(names).append_column(promise.y, _filled(table, promise.y, without))
        held = self._read(rows, title)
        waits = None
        if without.any():
            if not (promise.row_id and (promise.mature or not promise.timed)):
                raise InputError(
                    f"{title} has {int(without.sum()):,} rows without y, which wait for it by "
                    "their names until their day is booked: begin the ledger with --row-id COLUMN "
                    "and --mature DAYS (row_id=, mature=)"
                )
            kept = table.select(names).filter(pa.array(without))
            waits = kept.append_column(HASH, _hashes(kept[promise.row_id]))
        days = self._days(held)

        def make(state: LedgerState) -> tuple[LedgerEntry, pa.Table | None]:
            dates = days if days is not None else np.full(held.n, state.entries + 1)
            entry = self._entry(state, digest, held, dates, np.flatnonzero(~without), title)
            if waits is None:
                return entry, None
            waiting = set(
                chain.from_iterable(each[HASH].to_pylist() for _, each in self._ledger.waiting())
            )
            twice = waiting.intersection(waits[HASH].to_pylist())
            if twice or len(set(waits[HASH].to_pylist())) < waits.num_rows:
                raise InputError(f"{title} holds rows that wait already: names must differ")
            return replace(entry, waiting=waits.num_rows), waits

        entry = self._ledger.append(make)
        return entry.rows, entry.waiting, entry.late, 0

    def _labels(self, table: pa.Table, title: str, digest: str) -> tuple[int, int, int, int]:
        """y alone, for rows that wait."""
        promise = self.promise
        if not promise.row_id or promise.row_id not in table.column_names:
            raise InputError(
                f"{title} holds y alone, which finds its predictions by names: begin the ledger "
                "with --row-id COLUMN, and give that column here too"
            )
        table = table.filter(pa.array(~_absent(table, promise.y)))
        names = _hashes(table[promise.row_id])
        if len(set(names.to_pylist())) < table.num_rows:
            raise InputError(f"{title} must name each row once")
        unknown = 0

        def make(state: LedgerState) -> tuple[LedgerEntry, pa.Table | None]:
            nonlocal unknown
            parts = [each for _, each in self._ledger.waiting()]
            known = dict(zip(names.to_pylist(), table[promise.y].to_pylist(), strict=True))
            joined = []
            for each in parts:
                there = np.array([name in known for name in each[HASH].to_pylist()], dtype=np.bool_)
                part = each.filter(pa.array(there))
                y = pa.array([known[name] for name in part[HASH].to_pylist()], pa.float64())
                joined.append(part.append_column(promise.y, y))
            rows = pa.concat_tables(joined) if joined else None
            if rows is None or not rows.num_rows:
                raise InputError(f"{title} holds y of no row that waits")
            unknown = table.num_rows - rows.num_rows
            resolved = tuple(rows[HASH].to_pylist())
            held = self._read(rows.drop_columns([HASH]), title)
            days = self._days(held)
            dates = days if days is not None else np.full(held.n, state.entries + 1)
            entry = self._entry(state, digest, held, dates, np.arange(held.n), title)
            return replace(entry, resolved=resolved), None

        entry = self._ledger.append(make)
        self._ledger.forget()
        return entry.rows, 0, entry.late, unknown

    def _entry(
        self,
        state: LedgerState,
        digest: str,
        held: EvalSet,
        days: IntArray,
        known: IntArray,
        title: str,
    ) -> LedgerEntry:
        """The entry of the rows whose y is known."""
        if digest in state.stood:
            raise InputError(f"{title} was added before: its rows are booked")
        late = np.zeros(len(known), dtype=np.bool_)
        if state.latest is not None:
            late = days[known] <= state.latest - self.promise.mature
        if len(known) and late.all():
            raise InputError(
                f"{title} holds days that are booked alone (up to "
                f"{self.promise.day_in_words(int(days.max()))}): a day is booked "
                f"{self.promise.mature} days after it, and once"
            )
        booked = known[~late]
        sums: tuple[DaySums, ...] = ()
        if len(booked):
            numbers = held.take(booked)
            seen = watched(numbers, self.promise.coverage, self.promise.tolerance)
            if seen.names != self.promise.quantities:
                raise InputError(
                    f"{title} must hold predictions such as those of the reference, of which "
                    f"{listed(self.promise.quantities)} are watched, got {listed(seen.names)}"
                )
            sums = tuple(sums_by_day(numbers, days[booked], seen))
        return LedgerEntry(
            sums=sums,
            latest=int(days.max()) if len(days) else None,
            digest=digest,
            rows=len(booked),
            late=int(late.sum()),
        )

    def _read(self, table: pa.Table, title: str) -> EvalSet:
        """An evaluation set of rows, read as the reference was."""
        try:
            crossing: Any = self.promise.reading["crossing"]
            loaded = load(table, crossing=crossing, **self.promise.columns)
        except InputError as error:
            raise InputError(f"{title}: {str(error).removeprefix('the table: ')}") from error
        if len(loaded.evalsets) != 1 or loaded.evalsets[0].n != table.num_rows:
            raise InputError(f"{title} must hold one model, and no row of weight 0")
        return loaded.evalsets[0]

    def _days(self, held: EvalSet) -> IntArray | None:
        """The day of each row; None where each addition is one."""
        if not self.promise.timed:
            return None
        if held.time is None:
            raise InputError("time must stand in each table, as it does in the reference")
        return days_of(held.time)


HASH = "name hash"
"""The column of waiting predictions that stands for their names."""


def _hashes(names: pa.ChunkedArray) -> pa.Array:
    """Of names of rows."""
    made = (
        int.from_bytes(hashlib.blake2b(str(name).encode(), digest_size=7).digest(), "little")
        for name in names.to_pylist()
    )
    return pa.array(made, pa.int64())


def _digest(table: pa.Table) -> str:
    """Of all cells of a table."""
    made = hashlib.blake2b(digest_size=12)
    for name in table.column_names:
        made.update(f"{name}\0{table[name].to_pylist()!r}\0".encode())
    return made.hexdigest()


def _absent(table: pa.Table, y: str) -> BoolArray:
    """Which rows have no y."""
    if y not in table.column_names:
        return np.ones(table.num_rows, dtype=np.bool_)
    column = table[y]
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        gone = pc.is_in(pc.utf8_trim_whitespace(column), value_set=pa.array(sorted(MISSING_WORDS)))
        gone = pc.or_(pc.is_null(column), gone)
    else:
        gone = pc.is_null(column, nan_is_null=True)
    return np.asarray(gone.combine_chunks().to_numpy(zero_copy_only=False), dtype=np.bool_)


def _filled(table: pa.Table, y: str, without: BoolArray) -> pa.ChunkedArray | pa.Array:
    """y, with 0 where there is none."""
    if without.all():
        return pa.array(np.zeros(table.num_rows))
    column = table[y]
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        column = pc.if_else(pa.array(without), "0", column).cast(pa.float64())
    return pc.if_else(pa.array(without), 0.0, column.cast(pa.float64()))


def _worth(held: EvalSet, days: IntArray, numbers: Watched) -> dict[str, dict[str, float]]:
    """How many rows count as one, for each group and quantity; of groups with few days, as all."""
    by_group: dict[str, list[Any]] = {}
    for each in sums_by_day(held, days, numbers):
        by_group.setdefault(each.group, []).append(each)
    made: dict[str, dict[str, float]] = {}
    for group, parts in by_group.items():
        if len(parts) < _FEWEST_DAYS:
            continue
        parts = sorted(parts, key=lambda each: each.day)
        sums, counts = np.array([p.sums for p in parts]), np.array([p.n for p in parts])
        made[group] = {
            name: worth_of(sums[:, k], counts, numbers.bounds[k].variance)
            for k, name in enumerate(numbers.names)
        }
    return made


def _said(roles: Roles) -> dict[str, Any]:
    """What columns are, as `howsure.load` is told, so that later tables are read alike."""
    held = {name: list(columns) for name, columns in roles.columns.items() if columns}
    made: dict[str, Any] = {
        name: held[name][0]
        for name in ("y", "point", "mean", "sd", "variance", "weights", "time")
        if name in held
    }
    made |= {name: held[name] for name in ("lower", "upper", "samples", "groups") if name in held}
    if "quantiles" in held:
        made["quantiles"] = [
            f"{level:.12g}={name}"
            for level, name in zip(roles.levels, held["quantiles"], strict=True)
        ]
    if roles.law is not None:
        parts = ",".join(f"{name}={value}" for name, value in roles.law.parameters.items())
        made["law"] = f"{roles.law.name}:{parts}"
    if "lower" in held:
        made["coverage"] = [share for share in roles.coverages if share is not None]
    if "weights" in made:
        made["weights_kind"] = roles.weights_kind
    return made
