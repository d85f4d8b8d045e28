"""One promise, from the day that a model is deployed to the day that it is retired."""

from __future__ import annotations

import hashlib
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from typing import Any, Self, Unpack, final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from howsure._version import __version__
from howsure.core.arrays import BoolArray, FloatArray, IntArray, check_fraction
from howsure.core.convert import check_whole, json_number, plain
from howsure.core.errors import InputError
from howsure.core.rng import row_hashes
from howsure.core.text import CountedNote
from howsure.inputs import Loaded, load, values
from howsure.inputs.assigned import Roles
from howsure.inputs.building import Crossing
from howsure.inputs.new import typed
from howsure.inputs.roles import Columns, Kind
from howsure.inputs.source import Source, listed, quoted
from howsure.inputs.sources import (
    HUGE,
    PIECE_ROWS,
    PiecedTable,
    is_huge,
    planned,
    sources,
)
from howsure.metrics.view import View
from howsure.predictions import EvalSet, content_order
from howsure.streaming.totals import hashed_labels
from howsure.verdict import TOLERANCE
from howsure.watch.correction import RUNNING, Correction, go_on, learn, stretched
from howsure.watch.expected import MOST_ROWS, Background
from howsure.watch.ledger import DAY, HASH, DayScores, Ledger, LedgerEntry, LedgerState
from howsure.watch.promise import Promise
from howsure.watch.quantities import (
    ALL,
    DaySums,
    UsualError,
    days_of,
    sums_by_day,
    watched,
    worth_by_group,
)
from howsure.watch.report import WatchReport, report_of
from howsure.watch.running import RatioCell, ratio_cells, run, running_of
from howsure.watch.selected import strata_of


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

    __slots__ = ("_backgrounds", "_ledger", "promise")

    def __init__(self, ledger: str | os.PathLike[str]) -> None:
        self._ledger = Ledger(ledger)
        promise = self._ledger.promise()
        if promise is None:
            raise InputError(
                f"there is no ledger at {self._ledger.location!r}: begin one by "
                "howsure watch init LEDGER --reference TABLE"
            )
        self.promise = promise
        self._backgrounds: dict[str, Background] = {}  # of references, by where they stand

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
            What columns are, as in `howsure.load`: ``time`` (dates, or numbers of days),
            ``groups``, and ``features``, the inputs by which rows are judged before y comes; the
            point forecast and the width of the interval if omitted.

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
        _check_readable(loaded)
        (held,) = loaded.evalsets
        coverage = View(held).headline
        times = held.time
        days = np.zeros(held.n, dtype=np.int64) if times is None else days_of(times)
        usual = UsualError.of(held, days)
        numbers = watched(held, coverage, tolerance, usual)
        coverage = coverage if "coverage" in numbers.names else math.nan
        sums = tuple(sums_by_day(held, days, numbers))
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
            groups=tuple(sorted({each.group for each in sums} - {ALL})),
            running=running_of(held, coverage, mature),
            usual=usual if "error" in numbers.names else None,
            worth={} if times is None else worth_by_group(sums, numbers),
        )
        known = LedgerState()
        known.add(LedgerEntry(sums=sums, latest=int(days.max())))
        own = report_of(replace(promise, mature=0), known, 0)
        if not own.kept:
            promise = replace(promise, flaw=own.broken[0].sentence if own.broken else own.sentence)
        if row_id and times is not None and len(promise.groups) <= _MOST_GROUPS:
            promise = replace(promise, strata=strata_of(held, coverage, numbers))
        place = Ledger(ledger)
        place.check_empty()
        with suppress(InputError):  # without inputs nothing is expected before labels
            kept = place.keep(Background.of(held, coverage).to_table())
            promise = replace(promise, reference=kept)
        place.begin(promise)
        return cls(ledger)

    def add(self, *tables: Any) -> Booked:
        """Add rows: with y, without it, or y alone for rows that wait.

        Parameters
        ----------
        *tables
            Paths, folders or data frames. Rows without y wait for it, and need names; what their
            inputs let expect is told by `show`.

        Returns
        -------
        Booked

        Raises
        ------
        InputError
            If a table lacks columns of the promise, came before, or is of days that are booked
            alone. Nothing of it is kept then.
        """
        done = [self._add(source) for source in self._sources(tables)]
        names = [each.name for each in fields(Booked)]
        return Booked(**{name: sum(getattr(each, name) for each in done) for name in names})

    def show(self) -> WatchReport:
        """What all rows so far say of the promise; as often as one likes."""
        state = self._ledger.state()
        waiting = len([*self._waiting(state)])
        return report_of(self.promise, state, waiting, self._corrections(state))

    def correct(self, *tables: Any, since: Any = None, running: bool = False) -> Correction:
        """Correct the predictions of all days to come, by rows with y since the change.

        Every recalibration that suits them is tried, as in `howsure.assess`, and the one is taken
        that is proven to help on rows it did not learn from. It begins a new promise with fresh
        evidence. Go on to add predictions as they come from the model: they are corrected here,
        and their score is kept beside that without correction. Where predictions are right again
        as they are, the correction in use ends.

        Parameters
        ----------
        *tables
            Paths, folders or data frames with the columns of the reference.
        since : number, date or str, optional
            The first day to learn from; that of the change if omitted.
        running : bool
            Whether the correction runs on: half-widths are multiplied by a factor that follows the
            rows whose y has come. For series that keep changing, where y comes soon; `show` offers
            it once it would have been better than none.

        Returns
        -------
        Correction
            Save its `fitted` to correct what is published: `howsure.recalibrate` takes it.

        Raises
        ------
        InputError
            If the promise is kept, or no correction is proven to help. Nothing changes then.
        """
        first = self.show().since if since is None else self._day(since)
        if first is None:
            raise InputError(
                "the promise must be broken for its correction to begin with the change, and no "
                "departure is proven: name the first day to learn from (--since, since=)"
            )
        rows = self._with_y(tables)
        state = self._ledger.state()
        days = self._days(rows, state)
        inside = days >= first if self.promise.timed else np.ones(rows.n, dtype=np.bool_)
        if not inside.any():
            raise InputError(
                f"rows must be of {self.promise.day_in_words(first)} or later, got rows up to "
                f"{self.promise.day_in_words(int(days.max()))}"
            )
        last = int(days.max()) if self.promise.timed else state.entries
        after = last if state.latest is None else max(last, state.latest)
        rows, days = rows.take(np.flatnonzero(inside)), days[inside]
        present = next(reversed(self._corrections(state)), None)
        if running:
            found = self._going_on(state, rows, days, after)
            corrected = stretched(rows, np.full(rows.n, found.factor))
        else:
            found = learn(rows, days, self.promise, after=after, present=present)
            corrected = found.apply(rows)
        with suppress(InputError):
            table = Background.of(corrected, found.promise.coverage).to_table()
            promise = replace(found.promise, reference=self._ledger.keep(table))
            found = replace(found, promise=promise)

        def make(now: LedgerState) -> tuple[LedgerEntry, pa.Table | None]:
            if len(now.stood) != len(state.stood):
                raise InputError("the ledger changed while the correction was learnt: do it again")
            return LedgerEntry(correction=found.as_dict()), None

        self._ledger.append(make)
        return found

    def _going_on(
        self, state: LedgerState, rows: EvalSet, days: IntArray, after: int
    ) -> Correction:
        """The correction that runs on, where it would have been better than none."""
        told = report_of(self.promise, state, 0, self._corrections(state))
        if told.running is None or told.gain_of_running is None:
            raise InputError(
                "running needs intervals at a nominal coverage, and days that are booked"
            )
        if not told.gain_of_running.offered:
            raise InputError(
                "running must be proven better than no correction, which it is not yet, over "
                f"{told.gain_of_running.days:,} days: the gain so far is "
                f"{100.0 * told.gain_of_running.value:.1f} %"
            )
        return go_on(
            rows,
            days,
            self.promise,
            after=after,
            running=told.running,
            gain=told.gain_of_running,
        )

    def _corrections(self, state: LedgerState) -> list[Correction]:
        return [Correction.from_dict(told) for told in state.corrections]

    def _day(self, since: Any) -> int:
        """The number of a day that was named."""
        try:
            if self.promise.dated:
                return int(np.datetime64(str(since), "D").astype(np.int64))
            return math.floor(float(since))
        except (TypeError, ValueError) as error:
            kind = "a date" if self.promise.dated else "a number"
            raise InputError(f"since must be {kind}, as time is, got {since!r}") from error

    def _sources(self, tables: Sequence[Any]) -> Iterator[Source]:
        """Each table that was given, in pieces where it is huge."""
        encoding, decimal = self.promise.reading["encoding"], self.promise.reading["decimal"] or "."
        for given in tables:
            huge = isinstance(given, str | os.PathLike) and is_huge(given, HUGE)
            opened = [PiecedTable(planned(given, encoding, decimal, PIECE_ROWS))] if huge else None
            yield from opened or sources(given, encoding, decimal)

    def _with_y(self, tables: Sequence[Any]) -> EvalSet:
        """The rows of tables whose y is known."""
        parts: list[pa.Table] = []
        outcomes: list[FloatArray] = []
        titles: list[str] = []
        for source in self._sources(tables):
            titles.append(source.title)
            for table in _parts(source):
                y = self._outcomes(table)
                known = np.flatnonzero(~np.isnan(y))
                parts.append(self._chosen(table, source.title).take(pa.array(known)))
                outcomes.append(y[known])
            if not any(map(len, outcomes)):
                name = quoted(self.promise.y)
                raise InputError(f"{source.title} must hold y, in the column {name}")
        if not parts:
            raise InputError("rows must be given, with y, from the change on; got none")
        rows = pa.concat_tables(parts, promote_options="permissive")
        return self._read(rows, np.concatenate(outcomes), listed(titles))

    def _chosen(self, table: pa.Table, title: str) -> pa.Table:
        """The columns of a table that the reference has too."""
        promise = self.promise
        names = [*promise.needed(), *promise.beside(), *filter(None, [promise.row_id])]
        for name in names:
            if name not in table.column_names:
                raise InputError(
                    f"{title} must hold the columns of the reference, and {quoted(name)} is not "
                    f"there; it has {listed(table.column_names)}"
                )
        return table.select(names)

    def _add(self, source: Source) -> Booked:
        """One table, whatever it holds."""
        promise, title, names = self.promise, source.title, source.names
        if promise.y in names and not any(name in names for name in promise.needed()):
            return self._labels(source)
        waiting = 0

        def make(state: LedgerState) -> tuple[LedgerEntry, pa.Table | None]:
            nonlocal waiting
            sums, digest = LedgerState(), 0
            hashes: list[IntArray] = []
            open_: list[IntArray] = []
            waits: list[pa.Table] = []
            expected: Mapping[str, Any] | None = None
            before = np.array([*self._waiting(state)], dtype=np.int64)
            for table in _parts(source):
                y = self._outcomes(table)
                rows = self._chosen(table, title)
                known, new = ~np.isnan(y), np.ones(len(y), dtype=np.bool_)
                held = self._read(rows, np.nan_to_num(y), title)
                own = np.empty(0, dtype=np.int64)
                if promise.row_id:
                    own = _hashes(table[promise.row_id])
                    hashes.append(own)
                    new = ~np.isin(own, before)
                part, late = self._entry(state, held, known, new, title)
                sums.add(part)
                digest += _content(table)
                there = np.flatnonzero(~known & ~late)
                if expected is None and len(there):
                    expected = self._expected(state, held.take(there))
                if promise.row_id:
                    open_.append(own[there])
                    days = self._days(held, state)[there]
                    left = rows.take(pa.array(there)).append_column(HASH, pa.array(own[there]))
                    waits.append(left.append_column(DAY, pa.array(days)))
                elif not known.all():
                    open_.append(there)
            waiting = sum(map(len, open_))
            entry = _as_entry(sums, digest)
            self._check_whole(state, entry, waiting, title)
            if not promise.row_id:
                return entry, None
            every, left_open = np.concatenate(hashes), np.concatenate(open_)
            if np.isin(left_open, before).any() or len(np.unique(every)) < len(every):
                raise InputError(
                    f"{title} must name each row once, and no row that waits already without y"
                )
            came = before[np.isin(before, every)]
            whole = pa.concat_tables(waits, promote_options="permissive")
            entry = replace(entry, resolved=tuple(came.tolist()), expected=expected)
            return entry, whole

        entry = self._ledger.append(make)
        if entry.resolved:
            self._forget()
        return Booked(rows=entry.rows, waiting=waiting, late=entry.late, unknown=0)

    def _expected(self, state: LedgerState, rows: EvalSet) -> Mapping[str, Any] | None:
        """What is expected of rows without y, by a reference whose y given inputs are theirs."""
        corrections, days = self._corrections(state), self._days(rows, state)
        today = rows.take(np.flatnonzero(days == days.max()))
        promise = self.promise
        for correction in corrections[-1:]:
            if days.max() > correction.after:
                last = np.full(today.n, days.max())
                factors = self._factors(state, correction, last)
                promise, today = correction.promise, correction.apply(today, factors)
        if not promise.reference or not report_of(self.promise, state, 0, corrections).kept:
            return None
        today = today.take(content_order([today])[:MOST_ROWS])
        worth = promise.worth_of(ALL, promise.quantities[0])
        found = self._background(promise.reference).expected(today, worth=worth)
        told: Mapping[str, Any] = plain(
            replace(found, rows_inside=np.empty(0, np.bool_)), json_number
        )
        return told

    def _background(self, name: str) -> Background:
        """What is kept of a reference, with what was fitted to it."""
        if name not in self._backgrounds:
            self._backgrounds[name] = Background.from_table(self._ledger.kept(name))
        return self._backgrounds[name]

    def _check_whole(self, state: LedgerState, new: LedgerEntry, waiting: int, title: str) -> None:
        """Refuse a table that came before, that cannot wait, or whose days are booked."""
        promise = self.promise
        if new.digest in state.stood:
            raise InputError(f"{title} was added before: its rows are booked")
        if waiting and not (promise.row_id and (promise.mature or not promise.timed)):
            raise InputError(
                f"{title} has {waiting:,} rows without y, which wait for it by their names "
                "until their day is booked: begin the ledger with --row-id COLUMN and "
                "--mature DAYS (row_id=, mature=)"
            )
        if new.late and not new.rows and not waiting:
            raise InputError(
                f"{title} holds days that are booked alone (up to "
                f"{promise.day_in_words(new.latest or 0)}): a day is booked "
                f"{promise.mature} days after it, and once"
            )

    def _labels(self, source: Source) -> Booked:
        """y alone, for rows that wait."""
        promise, title = self.promise, source.title
        table = pa.concat_tables(_parts(source), promote_options="permissive")
        if not promise.row_id or promise.row_id not in table.column_names:
            raise InputError(
                f"{title} holds y alone, which finds its predictions by names: begin the ledger "
                "with --row-id COLUMN, and give that column here too"
            )
        y = self._outcomes(table)
        hashes = _hashes(table[promise.row_id])
        outcomes = {h: v for h, v in zip(hashes.tolist(), y.tolist(), strict=True) if v == v}
        if len(np.unique(hashes)) < len(hashes):
            raise InputError(f"{title} must name each row once")

        def make(state: LedgerState) -> tuple[LedgerEntry, pa.Table | None]:
            forgotten = promise.forgotten_to(state.latest)
            left = [each for _, each in self._ledger.waiting(forgotten)]
            rows = pa.concat_tables(left) if left else pa.table({HASH: pa.array([], pa.int64())})
            there = [each in outcomes for each in rows[HASH].to_pylist()]
            if not any(there):
                raise InputError(f"{title} holds y of no row that waits")
            rows = rows.filter(pa.array(there))
            names = rows[HASH].to_pylist()
            known = np.array([outcomes[name] for name in names])
            held = self._read(rows.drop_columns([HASH, DAY]), known, title)
            every = np.ones(held.n, dtype=np.bool_)
            sums = LedgerState()
            sums.add(self._entry(state, held, every, ~every, title)[0])
            entry = _as_entry(sums, _content(table))
            self._check_whole(state, entry, 0, title)
            return replace(entry, resolved=tuple(names)), None

        entry = self._ledger.append(make)
        self._forget()
        unknown = len(outcomes) - len(entry.resolved)
        return Booked(rows=entry.rows, waiting=0, late=entry.late, unknown=unknown)

    def _waiting(self, state: LedgerState) -> Iterator[int]:
        """Hashes of the names of rows that wait."""
        for _, table in self._ledger.waiting(self.promise.forgotten_to(state.latest)):
            yield from table[HASH].to_pylist()

    def _forget(self) -> None:
        self._ledger.forget(self.promise.forgotten_to(self._ledger.state().latest))

    def _outcomes(self, table: pa.Table) -> FloatArray:
        """y, NaN where there is none."""
        y = self.promise.y
        if y not in table.column_names:
            return np.full(table.num_rows, np.nan)
        return values.numbers(table[y], y, decimal=self.promise.reading["decimal"] or ".")

    def _entry(
        self, state: LedgerState, held: EvalSet, known: BoolArray, new: BoolArray, title: str
    ) -> tuple[LedgerEntry, BoolArray]:
        """The entry of some rows, and which of them are of days that are booked.

        Those whose y is known add to the sums, new ones to the number of rows.
        """
        days = self._days(held, state)
        newest, late = int(days.max()), np.zeros(held.n, dtype=np.bool_)
        if state.latest is not None:
            late = days <= state.latest - self.promise.mature
            if newest > state.latest + _LONGEST_GAP:
                raise InputError(
                    f"{title} must not reach over {_LONGEST_GAP} days beyond the last day that "
                    f"was seen ({self.promise.day_in_words(state.latest)}), got "
                    f"{self.promise.day_in_words(newest)}: days before it would be booked as empty"
                )
        corrections = self._corrections(state)
        ends = np.array([each.after for each in corrections], dtype=np.int64)
        place = np.where(late, -1, np.searchsorted(ends, days))  # corrections before each day
        sums: list[DaySums] = []
        scores: list[DayScores] = []
        ratios: list[RatioCell] = []
        for count in np.unique(place[place >= 0]).tolist():
            there = np.flatnonzero(place == count)
            rows, promise = held.take(there), self.promise
            told, base = np.flatnonzero(known[there]), rows
            if count:
                correction = corrections[count - 1]
                promise = correction.promise
                factors = self._factors(state, correction, days[there])
                corrected = correction.apply(rows, factors)
                if len(told):
                    pair = rows.take(told), corrected.take(told)
                    scores += correction.scores(*pair, days[there][told])
                base, rows = rows if factors is not None else corrected, corrected
            if promise.running is not None and len(told):
                ratios += ratio_cells(base.take(told), promise.coverage, days[there][told])
            seen = watched(rows, promise.coverage, promise.tolerance, promise.usual)
            if seen.names != promise.quantities or seen.bounds != promise.bounds:
                raise InputError(
                    f"{title} must hold predictions such as those of the reference, of which "
                    f"{listed(promise.quantities)} are watched, got {listed(seen.names)}"
                )
            sums += sums_by_day(
                rows,
                days[there],
                seen.of(self.promise.quantities),
                strata=promise.strata_of(rows),
                known=known[there],
                new=new[there],
            )
        entry = LedgerEntry(
            sums=tuple(sums),
            latest=newest,
            rows=int((known & ~late).sum()),
            late=int(late.sum()),
            scores=tuple(scores),
            ratios=tuple(ratios),
        )
        return entry, late

    def _factors(
        self, state: LedgerState, correction: Correction, days: IntArray
    ) -> FloatArray | None:
        """The factor of each row, of a correction that runs on."""
        running = correction.promise.running
        if correction.method != RUNNING or running is None:
            return None
        booked = correction.promise.booked_to(state.latest)
        known = [day for day in sorted(state.ratios) if correction.after < day <= booked]
        running, _ = run(running, state.ratios, np.array(known, dtype=np.int64))
        dates, place = np.unique(days, return_inverse=True)
        return np.array([running.factor_on(day) for day in dates.tolist()])[place]

    def _read(self, rows: pa.Table, y: FloatArray, title: str) -> EvalSet:
        """An evaluation set of rows, read as the reference was."""
        table = rows.append_column(self.promise.y, pa.array(y))
        try:
            crossing: Any = self.promise.reading["crossing"]
            loaded = load(table, crossing=crossing, **self.promise.columns)
        except InputError as error:
            raise InputError(f"{title}: {str(error).removeprefix('the table: ')}") from error
        if len(loaded.evalsets) != 1 or loaded.evalsets[0].n != table.num_rows:
            raise InputError(f"{title} must hold one model, and no row of weight 0")
        return loaded.evalsets[0]

    def _days(self, held: EvalSet, state: LedgerState) -> IntArray:
        """The day of each row; without times each addition is one."""
        if not self.promise.timed:
            return np.full(held.n, state.entries + 1, dtype=np.int64)
        if held.time is None:
            raise InputError("time must stand in each table, as it does in the reference")
        return days_of(held.time)


_MOST_GROUPS = 50
"""Groups past which rows are not kept by strata, as each holds as many sums."""
_LONGEST_GAP = 366
"""Days by which a table may reach beyond all before: a wrong date would close all days to it."""


def _hashes(names: pa.ChunkedArray) -> IntArray:
    """Of names of rows."""
    made = (hashlib.blake2b(str(name).encode(), digest_size=7) for name in names.to_pylist())
    return np.array([int.from_bytes(each.digest(), "little") for each in made], dtype=np.int64)


def _parts(source: Source) -> Iterator[pa.Table]:
    """Tables of some rows each, with cells of plain numbers as numbers."""
    kind: Kind = "text" if source.from_text else "key"
    kinds = dict.fromkeys(source.names, kind)
    pieced = isinstance(source, PiecedTable)
    for table in source.tables(kinds, PIECE_ROWS) if pieced else [source.whole()]:
        yield typed(table, source.decimal) if source.from_text else table


def _content(table: pa.Table) -> int:
    """A hash of all cells, the same in whatever order and parts the rows come."""
    columns: list[npt.NDArray[Any]] = []
    for name in sorted(table.column_names):
        column = table[name].combine_chunks()
        if pa.types.is_integer(column.type) or pa.types.is_floating(column.type):
            numbers = column.cast(pa.float64(), safe=False)
            columns.append(numbers.to_numpy(zero_copy_only=False))
            continue
        if pa.types.is_nested(column.type):
            column = pa.array([repr(each) for each in column.to_pylist()])
        coded = column.cast(pa.string()).dictionary_encode()
        labels = hashed_labels(np.array([name, *coded.dictionary.to_pylist()], dtype=object))
        columns.append(labels[pc.fill_null(coded.indices, -1).to_numpy() + 1])
    return int(row_hashes(*columns).sum(dtype=np.uint64)) if table.num_rows else 0


def _as_entry(sums: LedgerState, digest: int) -> LedgerEntry:
    """The sums of several parts as one entry."""
    return LedgerEntry(
        sums=tuple(
            DaySums(day=day, group=group, stratum=stratum, rows=rows, n=n, sums=np.array(total))
            for (day, group, stratum), (rows, n, *total) in sums.sums.items()
        ),
        latest=sums.latest,
        digest=f"{digest % (1 << 64):016x}",
        rows=sums.rows,
        late=sums.late,
        scores=tuple((day, *total.tolist()) for day, total in sums.scores.items()),
        ratios=tuple(
            (day, cell, *held[:, cell].tolist())
            for day, held in sums.ratios.items()
            for cell in np.flatnonzero(held[0]).tolist()
        ),
    )


def _check_readable(loaded: Loaded) -> None:
    """Refuse a reference whose like could not be read or watched later."""
    if len(loaded.evalsets) != 1:
        names = listed(held.model for held in loaded.evalsets)
        raise InputError(f"the reference must hold one model, got {names}")
    roles, weights = loaded.roles, loaded.evalsets[0].weights
    if roles.classes:
        raise InputError("the reference must predict numbers: label sets are not watched")
    beliefs = [column for role, column, _ in roles.uses() if role.of == "belief"]
    if not {use.column for use in loaded.explanation}.issuperset(beliefs):
        raise InputError(
            "the reference must have a column for each part of a prediction, got a long table, or "
            "one whose cells hold several"
        )
    if weights is not None and weights.kind == "importance":
        raise InputError("weights of the reference must be frequencies, got importance weights")


def _said(roles: Roles) -> dict[str, Any]:
    """What columns are, as `howsure.load` is told, so that later tables are read alike."""
    held = {name: list(columns) for name, columns in roles.columns.items() if columns}
    made: dict[str, Any] = {
        name: held[name][0]
        for name in ("y", "point", "mean", "sd", "variance", "weights", "time")
        if name in held
    }
    several = ("lower", "upper", "samples", "groups", "features")
    made |= {name: held[name] for name in several if name in held}
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
