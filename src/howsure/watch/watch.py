"""Monitoring of one model, from its deployment to its retirement."""

from __future__ import annotations

import math
import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, Self, final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from howsure._version import __version__
from howsure.core.arrays import AnyArray, BoolArray, FloatArray, IntArray, check_fraction
from howsure.core.convert import check_whole, json_number, plain
from howsure.core.errors import InputError, either, within
from howsure.core.rng import row_hashes
from howsure.core.text import CountedNote, quoted
from howsure.engine.view import View
from howsure.inputs import Loaded, explain, load, values
from howsure.inputs.cells import marks_of as marks_of_missing
from howsure.inputs.frames import FrameTable
from howsure.inputs.names import Roles
from howsure.inputs.parts import PiecedTable
from howsure.inputs.roles import Kind
from howsure.inputs.source import Source, in_lines, listed, no_column, refusing
from howsure.inputs.sources import HUGE_ROWS, PIECE_ROWS, is_huge, planned, sources
from howsure.inputs.values import typed
from howsure.predictions import EvalSet, Probabilities, content_order
from howsure.report.table import split_roles
from howsure.streaming.totals import hashed_labels
from howsure.verdict import TOLERANCE
from howsure.watch.booking import Arrivals, Booked, NamedOutcomes
from howsure.watch.correction import RUNNING, Correction, go_on, learn
from howsure.watch.expected import MOST_ROWS, Background
from howsure.watch.ledger import (
    DAY,
    HASH,
    UNKNOWN_MARK,
    Addition,
    DayScores,
    Ledger,
    LedgerEntry,
    LedgerState,
    RowNames,
    how_to_create,
    marks_of,
    name_hashes,
    row_keys,
)
from howsure.watch.promise import COLUMN_ROLES, SEVERAL_COLUMNS, Calendar, Promise
from howsure.watch.quantities import (
    ALL,
    DaySums,
    UsualError,
    sums_by_day,
    usual_logit,
    watched,
    worth_of_rows,
)
from howsure.watch.report import WatchReport, report_of
from howsure.watch.running import RatioCell, ratio_cells, run, running_of
from howsure.watch.selected import Strata


@final
class Watch:
    """A ledger that monitors a deployed model; safe to check every day.

    The reference defines what is monitored: the nominal coverage, the components of the PIT, and
    the effective sample size of dependent rows. Later rows are summed per day, with y at once or
    when it arrives. You may look as often as you like: for independent rows, the probability of
    any false alarm over the life of the ledger is 5 % at most.

    Parameters
    ----------
    ledger : path or URL
        A file, a folder, or a folder at a URL that fsspec supports, made by `Watch.init`.

    Attributes
    ----------
    promise : Promise
        What is monitored, from the reference.

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
            raise InputError(f"there is no ledger at {self._ledger.location!r}: {how_to_create()}")
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
        **columns: Any,
    ) -> Self:
        """Create a ledger from a reference: rows with y on which the model was calibrated.

        Parameters
        ----------
        ledger : path or URL
            Where to write it: a new file; a folder where the path ends with ``/``; or a URL.
        reference : table
            Rows with y and predictions: a `howsure.Table`, or what it takes.
        mature : int
            Label delay: days after which a day is evaluated; later rows of it are left out.
            If early labels differ from late ones, choose it so long that all have arrived.
        tolerance : float
            Largest coverage error to ignore, as a share.
        row_id : str, optional
            Column of row names, used to match a later y to its prediction and to recognise
            rows that are added twice. Names may recur on other days.
        **columns
            Roles of the reference and of all later tables, as in `howsure.Table`: ``time``
            (dates, or numbers of days), ``groups``, and ``features``, the inputs used to evaluate
            rows before y arrives; the default is the point forecast and the width of the interval.

        Returns
        -------
        Watch

        Raises
        ------
        InputError
            If the ledger already has a reference, or nothing in the reference can be monitored.
        """
        check_whole(mature, "mature", 0)
        check_fraction(tolerance, "tolerance")
        _, reference, reading, columns = split_roles(None, reference, columns)
        if unused := sorted(name for name in _UNUSED if columns.get(name)):
            raise InputError(f"{listed(unused)} must be left out: a watch does not use it")
        row_id = columns.pop("rows", None) or row_id
        text = {name: reading[name] for name in ("encoding", "decimal")}
        with in_lines(sources(reference, **text)) as tables:
            source, *more = tables
            if more:
                names = listed(each.title for each in (source, *more))
                raise InputError(f"the reference must contain one model, got {names}")
            explained = explain(source, **text, **columns)
            used = [use.column for use in explained if use.role != "ignored"]
            ((table, raw),) = _parts(source, [*used, row_id or ""], in_one=True)
            loaded, places = _placed(table, source.title, reading, columns)
            _check_readable(loaded)
        (evalset,) = loaded.evalsets
        if not loaded.roles.model and source.stem:
            evalset = replace(evalset, model=source.stem)
        calendar, days = None, np.zeros(evalset.n, dtype=np.int64)
        if (time := loaded.roles.column("time")) is not None:
            with within(source.title):
                calendar, days = Calendar.of(table[time].take(pa.array(places)), time)
        coverage = View(evalset).headline
        usual = UsualError.of(evalset, days)
        centre = usual_logit(evalset)
        numbers = watched(evalset, coverage, tolerance, usual, centre)
        coverage = coverage if "coverage" in numbers.names else math.nan
        sums = tuple(sums_by_day(evalset, days, numbers))
        keys, hashes = None, np.empty(0, dtype=np.int64)
        if row_id:
            if row_id not in source.names:
                raise InputError(
                    no_column(row_id, source.names, either("row_id", "--row-id"), source.title)
                )
            with within(source.title):
                hashes = name_hashes(raw[row_id], row_id)[places]
            keys = RowNames.of(row_keys(hashes, days), evalset.y)
            if len(keys.keys) < evalset.n:
                raise InputError(f"{source.title} must have each row name once per day")
        promise = Promise(
            howsure=__version__,
            model=evalset.model,
            quantities=numbers.names,
            bounds=numbers.bounds,
            coverage=coverage,
            tolerance=tolerance,
            mature=mature,
            columns=_reading_choices(loaded.roles),
            reading=reading,
            row_id=row_id or "",
            recurring=len(np.unique(hashes)) < len(hashes),
            calendar=calendar,
            rows=evalset.n,
            dropped=loaded.dropped,
            days=len(np.unique(days)),
            groups=tuple(sorted({each.group for each in sums} - {ALL})),
            running=running_of(evalset, coverage, mature),
            usual=usual if "error" in numbers.names else None,
            centre=centre,
            worth=worth_of_rows(evalset, None if calendar is None else days, numbers),
        )
        state = LedgerState()
        state.add(LedgerEntry(sums=sums, latest=int(days.max())))
        report = report_of(replace(promise, mature=0), state, 0)
        if not report.kept:
            promise = replace(
                promise, flaw=report.broken[0].sentence if report.broken else report.sentence
            )
        if not row_id:
            promise = replace(promise, digest=_digest(_content(table.select(promise.cells()))))
        if row_id and calendar is not None and len(promise.groups) <= _MAX_GROUPS:
            promise = replace(promise, strata=Strata.learnt(evalset, coverage, numbers))
        target = Ledger(ledger)
        target.check_empty()
        if keys is not None:
            promise = replace(promise, names=target.keep_names(keys))
        with suppress(InputError):  # without inputs nothing is expected before labels
            address = target.keep(Background.of(evalset, coverage).to_table())
            promise = replace(promise, reference=address)
        target.begin(promise)
        return cls(ledger)

    def add(self, *tables: Any) -> Booked:
        """Add rows: with y, without it, or y alone for rows that wait.

        Parameters
        ----------
        *tables
            Paths, folders or data frames; all are added, or none. Rows without y wait for it,
            and need names; `show` reports their expected coverage. A row that is added twice
            counts once, if it has a name.

        Returns
        -------
        Booked

        Raises
        ------
        InputError
            If a table lacks columns of the reference, or has another type of times; or if
            nothing is new: rows were added before, or their days were evaluated. The ledger is
            then unchanged.
        """
        readable: list[Any] = []  # what may be read twice
        for table in tables:
            readable += [table] if isinstance(table, str | os.PathLike) else sources(table)
        done: Booked

        def book_rows(state: LedgerState) -> Addition:
            nonlocal done
            done, addition = self._booked(state, readable)
            return addition

        self._ledger.append(book_rows)
        self._ledger.forget(self.promise.forgotten_to)
        return done

    def undo(self) -> str:
        """Undo the last addition or correction, and describe it in words.

        Only the last one can be undone, until the next one is added.

        Raises
        ------
        InputError
            If nothing was added, or the last addition was already undone.
        """
        last = self._ledger.undo()
        if last.correction is not None:
            what = "the last correction"
        else:
            waits = ", and its waiting predictions" if last.waits else ""
            what = f"the last addition: {CountedNote.of(last.rows, 'row', ' with y')}{waits}"
        return f"Undone: {what}."

    def show(self) -> WatchReport:
        """The result of all rows so far; safe to call as often as you like."""
        state = self._ledger.state()
        waiting = sum(table.num_rows for table in self._waiting(state))
        return report_of(self.promise, state, waiting, self._corrections(state))

    def correct(self, *tables: Any, since: Any = None, running: bool = False) -> Correction:
        """Fit a correction of all future predictions to rows with y since the change.

        Every suitable recalibration is tried, as in `howsure.assess`; the chosen one gives a
        significant improvement on held-out rows. Monitoring then restarts with fresh evidence.
        Continue to add the model's original predictions: the ledger corrects them and compares
        their score with and without correction. Once the original predictions are calibrated
        again, the current correction ends.

        Parameters
        ----------
        *tables
            Paths, folders or data frames with the columns of the reference.
        since : number, date or str, optional
            The first day to fit on; the day of the change if omitted.
        running : bool
            Whether to use a running correction: half-widths are multiplied by a factor that is
            updated as y arrives. It suits series that keep changing and labels with a short
            delay; `show` offers it once its gain is significant.

        Returns
        -------
        Correction
            Save its `fitted` to correct what you publish: `howsure.recalibrate` accepts it.

        Raises
        ------
        InputError
            If no fault is significant, or no correction improves significantly. The ledger is
            then unchanged.
        """
        first = self.show().since if since is None else self._day(since)
        if first is None:
            raise InputError(
                "a correction starts at a significant fault, and there is none: "
                f"give the first day to fit on, {either('since=DAY', '--since DAY')}"
            )
        state = self._ledger.state()
        written = state.written
        rows, days = self._with_y(tables, state)
        inside = days >= first if self.promise.timed else np.ones(rows.n, dtype=np.bool_)
        if not inside.any():
            raise InputError(
                f"rows must be from {self.promise.day_in_words(first)} or later, got rows up to "
                f"{self.promise.day_in_words(int(days.max()))}"
            )
        last = int(days.max()) if self.promise.timed else written
        after = last if state.latest is None else max(last, state.latest)
        rows, days = rows.take(np.flatnonzero(inside)), days[inside]
        corrections = self._corrections(state)
        if running:
            report = report_of(self.promise, state, 0, corrections)
            track, gain = report.running, report.gain_of_running
            correction = go_on(rows, days, self.promise, after=after, running=track, gain=gain)
            corrected = correction.apply(rows, np.full(rows.n, correction.factor))
        else:
            present = corrections[-1] if corrections else None
            correction = learn(rows, days, self.promise, after=after, present=present)
            corrected = correction.apply(rows)
        with suppress(InputError):
            table = Background.of(corrected, correction.promise.coverage).to_table()
            promise = replace(correction.promise, reference=self._ledger.keep(table))
            correction = replace(correction, promise=promise)

        def add_correction(now: LedgerState) -> Addition:
            if now.written != written:
                raise InputError("the ledger changed while the correction was fitted: run it again")
            return Addition(entry=LedgerEntry(correction=correction.as_dict()))

        self._ledger.append(add_correction)
        return correction

    def _corrections(self, state: LedgerState) -> list[Correction]:
        return [Correction.from_dict(correction) for correction in state.corrections]

    def _day(self, since: Any) -> int:
        """The number of a day that was named."""
        try:
            if self.promise.dated:
                return int(np.datetime64(str(since), "D").astype(np.int64))
            return math.floor(float(since))
        except (TypeError, ValueError) as error:
            kind = "a date" if self.promise.dated else "a number"
            raise InputError(f"since must be {kind}, like the times, got {since!r}") from error

    def _sources(self, tables: Sequence[Any]) -> Iterator[Source]:
        """Each table that was given, in pieces where it is huge."""
        encoding, decimal = self.promise.reading["encoding"], self.promise.reading["decimal"] or "."
        for table in tables:
            if isinstance(table, str | os.PathLike) and is_huge(table, HUGE_ROWS):
                yield planned(table, encoding, decimal, PIECE_ROWS)
            else:
                yield from sources(table, encoding, decimal)

    def _with_y(self, tables: Sequence[Any], state: LedgerState) -> tuple[EvalSet, IntArray]:
        """The rows of tables whose y is known, and their days."""
        parts: list[pa.Table] = []
        outcomes: list[FloatArray] = []
        titles: list[str] = []
        for source in self._sources(tables):
            titles.append(source.title)
            for table, _ in _parts(source, self.promise.cells()):
                y = self._outcomes(table)
                labelled = np.flatnonzero(~np.isnan(y))
                parts.append(self._chosen(table, source).take(pa.array(labelled)))
                outcomes.append(y[labelled])
            if not any(map(len, outcomes)):
                name = quoted(self.promise.y)
                raise InputError(f"{source.title} must have y, in the column {name}")
        if not parts:
            raise InputError("rows with y since the change must be given, got none")
        title = listed(titles)
        with refusing(title):  # as files of two forms may not fit together
            rows = pa.concat_tables(parts, promote_options="permissive")
        evalset, _, days = self._read(rows, np.concatenate(outcomes), title, state)
        return evalset, days

    def _chosen(self, table: pa.Table, source: Source) -> pa.Table:
        """The columns of a table that tell of its predictions."""
        promise = self.promise
        names = [*promise.needed(), *promise.other_columns()]
        for name in (*names, *filter(None, [promise.row_id])):
            if name not in source.names:
                raise InputError(
                    f"{source.title} must have the columns of the reference, but {quoted(name)} "
                    f"is missing; it has {listed(source.names)}"
                )
        return table.select(names)

    def _booked(self, state: LedgerState, tables: Sequence[Any]) -> tuple[Booked, Addition]:
        """What some tables add to all before: rows first, then y alone."""
        came = Arrivals(waiting=[*self._waiting(state)])
        labels: list[NamedOutcomes] = []
        for source in self._sources(tables):
            came.titles.append(source.title)
            needed = any(name in source.names for name in self.promise.needed())
            if self.promise.y in source.names and not needed:
                labels.append(self._labels(source))
            else:
                self._take_rows(source, state, came)
        for label in labels:
            self._match(label, state, came)
        self._resolve(state, came)
        done = came.booked()
        if self.promise.calendar is not None and came.days:
            self.promise.calendar.check_near(came.days, state.latest)
        self._check_new(done, state, came)
        expected = self._expected(state, came.waits, came.title)
        names = RowNames.joined(came.names) if came.names else None
        return done, Addition(
            entry=replace(came.entry(), expected=expected), waits=came.waits, names=names
        )

    def _take_rows(self, source: Source, state: LedgerState, came: Arrivals) -> None:
        """Rows with predictions: those that are new are added up, or wait."""
        promise, title = self.promise, source.title
        every = [np.empty(0, dtype=np.int64)]
        digest = 0
        for table, raw in _parts(source, [*promise.cells(), promise.row_id]):
            y = self._outcomes(table)
            chosen = self._chosen(table, source)
            evalset, places, days = self._read(chosen, y, title, state)
            y = y[places]
            labelled, fresh = ~np.isnan(y), np.ones(evalset.n, dtype=np.bool_)
            came.dropped += table.num_rows - evalset.n
            came.days.append((title, np.unique(days)))
            named = days if promise.timed else np.zeros_like(days)
            keys = hashes = named
            if promise.row_id:
                with within(title):
                    hashes = name_hashes(raw[promise.row_id], promise.row_id)[places]
                keys = row_keys(hashes, named)
                every.append(keys)
                waits = came.waits_for(keys)
                before = self._came_before(keys, named, y, state, came)
                came.again += int((waits & ~labelled).sum())
                came.outcomes.append((keys[waits & labelled], y[waits & labelled]))
                fresh = ~before & ~waits
            else:
                digest += _content(table)
            there = np.flatnonzero(fresh)
            if not len(there):
                continue
            new = np.ones(len(there), dtype=np.bool_)
            entry, late = self._entry(
                state, evalset.take(there), days[there], labelled[there], new, title
            )
            came.sums.add(entry)
            settled = there[labelled[there] | late]
            if promise.row_id:
                came.add_names(keys[settled], named[settled], y[settled])
            unlabelled = there[~labelled[there] & ~late]
            came.waits.append(
                chosen.take(pa.array(places[unlabelled]))
                .append_column(HASH, pa.array(hashes[unlabelled]))
                .append_column(DAY, pa.array(named[unlabelled]))
            )
        if promise.row_id and len(np.unique(np.concatenate(every))) < sum(map(len, every)):
            raise InputError(f"{title} must have each row name once per day")
        if not promise.row_id:
            came.digests.append(_digest(digest))

    def _came_before(
        self, keys: IntArray, days: IntArray, y: FloatArray, state: LedgerState, came: Arrivals
    ) -> BoolArray:
        """Which rows were booked before, or came too late; they are counted as they are found."""
        marks, before = marks_of(y), np.zeros(len(keys), dtype=np.bool_)
        for known_names in self._names(set(days.tolist()), state, came):
            places = known_names.places(keys)
            there = places >= 0
            before |= there
            first = known_names.marks[places[there]]
            came.changed += int(
                (
                    (first != marks[there])
                    & (first != UNKNOWN_MARK)
                    & (marks[there] != UNKNOWN_MARK)
                ).sum()
            )
        came.again += int(before.sum())
        return before

    def _names(self, days: set[int], state: LedgerState, came: Arrivals) -> Iterator[RowNames]:
        """Names of all rows that came on some days: with the reference, since, and just now."""
        calendar = self.promise.calendar
        sets = [entry.names for entry in state.entries if not days.isdisjoint(entry.days)]
        if calendar is None or min(days, default=math.inf) <= calendar.last:
            sets.append(self.promise.names)
        for name in sets:
            if name not in came.known:
                came.known[name] = self._ledger.names(name)
            yield came.known[name]
        yield from came.names

    def _labels(self, source: Source) -> NamedOutcomes:
        """y alone, with names, and days where the column of times is there."""
        promise, title = self.promise, source.title
        calendar = promise.calendar
        if not promise.row_id or promise.row_id not in source.names:
            raise InputError(
                f"{title} contains only y, which is matched to predictions by row name: create the "
                f"ledger with {either('row_id=COLUMN', '--row-id COLUMN')}, and include that "
                "column here too"
            )
        dated = calendar is not None and calendar.column in source.names
        if promise.recurring and calendar is not None and not dated:
            raise InputError(
                f"{title} must have the column {quoted(calendar.column)} too: in the reference, "
                "names recur from day to day"
            )
        names: list[IntArray] = []
        dates: list[IntArray] = []
        outcomes: list[FloatArray] = []
        for table, raw in _parts(source, [promise.y, promise.row_id, *promise.other_columns()]):
            y = self._outcomes(table)
            labelled = ~np.isnan(y)
            outcomes.append(y[labelled])
            with within(title):
                names.append(name_hashes(raw[promise.row_id], promise.row_id)[labelled])
                if calendar is None:
                    dates.append(np.zeros_like(names[-1]))
                elif dated:
                    dates.append(calendar.days(table[calendar.column])[labelled])
        hashes = np.concatenate(names)
        days = np.concatenate(dates) if dates else None
        keys = hashes if days is None else row_keys(hashes, days)
        if len(np.unique(keys)) < len(keys):
            raise InputError(f"{title} must have each row name once")
        return NamedOutcomes(title=title, hashes=hashes, days=days, y=np.concatenate(outcomes))

    def _match(self, labels: NamedOutcomes, state: LedgerState, came: Arrivals) -> None:
        """Find the rows that labels are of, which wait or came before."""
        hashes, y = labels.hashes, labels.y
        if labels.days is not None:
            keys = row_keys(hashes, labels.days)
            there = came.waits_for(keys)
        else:
            names, dates = came.waiting_names
            order = np.argsort(names, kind="stable")
            names, dates = names[order], dates[order]
            first, last = (np.searchsorted(names, hashes, side=end) for end in ("left", "right"))
            if (last - first > 1).any() and self.promise.calendar is not None:
                raise InputError(
                    f"{labels.title} must have the column {quoted(self.promise.calendar.column)} "
                    "too: rows of several days wait under the same name"
                )
            there = last > first
            keys = row_keys(hashes, np.append(dates, 0)[first])
        came.outcomes.append((keys[there], y[there]))
        unmatched = np.flatnonzero(~there)
        if labels.days is not None:
            unmatched = unmatched[
                ~self._came_before(
                    keys[unmatched], labels.days[unmatched], y[unmatched], state, came
                )
            ]
        elif len(unmatched):
            for day in sorted({day for entry in state.entries for day in entry.days}):
                days = np.full(len(unmatched), day)
                again = self._came_before(
                    row_keys(hashes[unmatched], days), days, y[unmatched], state, came
                )
                unmatched = unmatched[~again]
        came.unknown += len(unmatched)

    def _resolve(self, state: LedgerState, came: Arrivals) -> None:
        """Add up the predictions whose y came."""
        none = np.empty(0)
        keys = np.concatenate([none.astype(np.int64), *(each for each, _ in came.outcomes)])
        y = np.concatenate([none, *(each for _, each in came.outcomes)])
        keys, first = np.unique(keys, return_index=True)
        came.again += len(y) - len(keys)
        labels = RowNames(keys, np.empty(0, np.uint8))
        still_waiting: list[pa.Table] = []
        waited = len(came.waiting)
        for number, table in enumerate([*came.waiting, *came.waits]):
            table_keys = row_keys(table[HASH].to_numpy(), table[DAY].to_numpy())
            places = labels.places(table_keys)
            there = places >= 0
            if number >= waited:
                still_waiting.append(table.filter(pa.array(~there)))
            if not there.any():
                continue
            outcomes = y[first[places[there]]]
            rows = table.filter(pa.array(there))
            evalset, _, days = self._read(
                rows.drop_columns([HASH, DAY]), outcomes, came.title, state
            )
            every = np.ones(evalset.n, dtype=np.bool_)
            came.sums.add(self._entry(state, evalset, days, every, ~every, came.title)[0])
            came.add_names(table_keys[there], rows[DAY].to_numpy(), outcomes)
            came.resolved += evalset.n
        came.waits = [each for each in still_waiting if each.num_rows]

    def _check_new(self, done: Booked, state: LedgerState, came: Arrivals) -> None:
        """Refuse tables that bring nothing new, or rows that cannot wait."""
        promise, title = self.promise, came.title
        digests = {
            promise.digest,
            *(known_digest for entry in state.entries for known_digest in entry.digests),
        }
        for name, digest in zip(came.titles, came.digests, strict=False):
            if digest in digests:
                what = "is the reference" if digest == promise.digest else "was added before"
                raise InputError(f"{name} {what}: its rows are already counted")
            digests.add(digest)
        if done.waiting and not (promise.row_id and (promise.mature or not promise.timed)):
            raise InputError(
                f"{title} has {done.waiting:,} rows without y; they can wait for y only with row "
                "names and a label delay: create the ledger with "
                f"{either('row_id=COLUMN, mature=DAYS', '--row-id COLUMN --mature DAYS')}"
            )
        if done.rows or done.waiting:
            return
        if done.late:
            raise InputError(
                f"{title} contains only days that were already evaluated (up to "
                f"{promise.day_in_words(came.sums.latest or 0)}): a day is evaluated once, "
                f"{promise.mature} days after it"
            )
        if done.again:
            raise InputError(
                f"{title} has no new row: {done.came_before}, in the reference or since"
            )
        raise InputError(f"{title} has no y for a waiting row")

    def _expected(
        self, state: LedgerState, waits: Sequence[pa.Table], title: str
    ) -> Mapping[str, Any] | None:
        """What is expected of rows without y, by a reference whose y given inputs are theirs."""
        if not waits:
            return None
        latest = max(int(pc.max(table[DAY]).as_py()) for table in waits)
        last = [table.filter(pc.equal(table[DAY], latest)) for table in waits]
        try:
            rows = pa.concat_tables(last, promote_options="permissive")
        except pa.ArrowException:  # where files of one day are of several forms
            return None
        today, _, days = self._read(
            rows.drop_columns([HASH, DAY]), np.full(rows.num_rows, np.nan), title, state
        )
        corrections, promise = self._corrections(state), self.promise
        for correction in corrections[-1:]:
            if days.max() > correction.after:
                factors = self._factors(state, correction, days)
                promise, today = correction.promise, correction.apply(today, factors)
        if not promise.reference or not report_of(self.promise, state, 0, corrections).kept:
            return None
        today = today.take(content_order([today])[:MOST_ROWS])
        worth = promise.worth_of(ALL, promise.quantities[0])
        name = promise.reference
        if name not in self._backgrounds:  # with what was fitted to it
            self._backgrounds[name] = Background.from_table(self._ledger.read_table(name))
        expected = self._backgrounds[name].expected(today, worth=worth)
        fields: Mapping[str, Any] = plain(
            replace(expected, rows_inside=np.empty(0, np.bool_)), json_number
        )
        return fields

    def _waiting(self, state: LedgerState) -> Iterator[pa.Table]:
        """Rows that wait."""
        return self._ledger.waiting(self.promise.forgotten_to(state.latest))

    def _outcomes(self, table: pa.Table) -> FloatArray:
        """y, NaN where there is none."""
        promise = self.promise
        if promise.y not in table.column_names:
            return np.full(table.num_rows, np.nan)
        y = values.numbers(table[promise.y], promise.y, decimal=promise.reading["decimal"] or ".")
        return np.where(np.isin(y, marks_of_missing(self._missing_values)), np.nan, y)

    @property
    def _missing_values(self) -> list[float]:
        """Numbers that stand for missing values."""
        return list(self.promise.columns.get("missing_value", []))

    def _entry(
        self,
        state: LedgerState,
        evalset: EvalSet,
        days: IntArray,
        labelled: BoolArray,
        new: BoolArray,
        title: str,
    ) -> tuple[LedgerEntry, BoolArray]:
        """The entry of some rows, and which of them are of days that are booked.

        Those whose y is known add to the sums, new ones to the number of rows.
        """
        late = days <= self.promise.booked_to(state.latest)
        corrections = self._corrections(state)
        ends = np.array([correction.after for correction in corrections], dtype=np.int64)
        corrections_before = np.where(
            late, -1, np.searchsorted(ends, days)
        )  # corrections before each day
        sums: list[DaySums] = []
        scores: list[DayScores] = []
        ratios: list[RatioCell] = []
        for count in np.unique(corrections_before[corrections_before >= 0]).tolist():
            there = np.flatnonzero(corrections_before == count)
            rows, promise = evalset.take(there), self.promise
            labelled_rows, base = np.flatnonzero(labelled[there]), rows
            if count:
                correction = corrections[count - 1]
                promise = correction.promise
                factors = self._factors(state, correction, days[there])
                corrected = correction.apply(rows, factors)
                if len(labelled_rows):
                    pair = rows.take(labelled_rows), corrected.take(labelled_rows)
                    scores += correction.scores(*pair, days[there][labelled_rows])
                base, rows = rows if factors is not None else corrected, corrected
            if promise.running is not None and len(labelled_rows):
                ratios += ratio_cells(
                    base.take(labelled_rows), promise.coverage, days[there][labelled_rows]
                )
            quantities = watched(
                rows, promise.coverage, promise.tolerance, promise.usual, promise.centre
            )
            if quantities.names != promise.quantities or quantities.bounds != promise.bounds:
                raise InputError(
                    f"{title} must have the same type of predictions as the reference, for which "
                    f"{listed(promise.quantities)} are monitored, got {listed(quantities.names)}"
                )
            sums += sums_by_day(
                rows,
                days[there],
                quantities.of(self.promise.quantities),
                strata=promise.strata_of(rows),
                has_y=labelled[there],
                new=new[there],
            )
        entry = LedgerEntry(
            sums=tuple(sums),
            latest=int(days.max()),
            rows=int((labelled & ~late).sum()),
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
        booked_days = [day for day in sorted(state.ratios) if correction.after < day <= booked]
        running, _ = run(running, state.ratios, np.array(booked_days, dtype=np.int64))
        dates, codes = np.unique(days, return_inverse=True)
        return np.array([running.factor_on(day) for day in dates.tolist()])[codes]

    def _read(
        self, rows: pa.Table, y: FloatArray, title: str, state: LedgerState
    ) -> tuple[EvalSet, IntArray, IntArray]:
        """An evaluation set of rows, read as the reference was; their places, and their days.

        Without times each addition is a day.
        """
        promise = self.promise
        unknown = 1.0 + max(map(abs, self._missing_values), default=-1.0)  # which is y of no row
        table = rows.append_column(promise.y, pa.array(np.where(np.isnan(y), unknown, y)))
        loaded, places = _placed(table, title, promise.reading, promise.columns)
        evalset = loaded.evalsets[0]
        if len(loaded.evalsets) != 1 or evalset.n + loaded.dropped != table.num_rows:
            raise InputError(f"{title} must contain one model, and no row of weight 0")
        if promise.calendar is None:
            return evalset, places, np.full(evalset.n, state.written + 1, dtype=np.int64)
        with within(title):
            days = promise.calendar.days(table[promise.calendar.column].take(pa.array(places)))
        return evalset, places, days


# Groups past which rows are not kept by strata, as each holds as many sums: a tree of 20 leaves
# would make 1,000 sums a day.
_MAX_GROUPS = 50
_UNUSED = ("embedding", "encode", "image", "cutoff", "horizon")
"""Roles of which a watch makes nothing."""


def _placed(
    table: pa.Table, title: str, reading: Mapping[str, Any], columns: Mapping[str, Any]
) -> tuple[Loaded, IntArray]:
    """A table as it is read, and where the rows stand in it that are left."""
    source = FrameTable(table, title)
    source.decimal = reading["decimal"] or "."
    how: Any = {name: reading[name] for name in ("missing", "crossing")}
    loaded = load(source, **how, **{**columns, "rows": ""})  # so that rows have numbers for names
    return loaded, np.asarray(loaded.evalsets[0].row_names(), dtype=np.int64)


def _parts(
    source: Source, names: Collection[str], *, in_one: bool = False
) -> Iterator[tuple[pa.Table, pa.Table]]:
    """Columns that are there: with cells of plain numbers as numbers, and as they came.

    A huge table comes in parts, unless it shall be whole.
    """
    kind: Kind = "text" if source.from_text else "key"
    kinds = dict.fromkeys([name for name in source.names if name in names], kind)
    pieced = isinstance(source, PiecedTable) and not in_one
    for table in source.batches(kinds, PIECE_ROWS) if pieced else [source.read(kinds)]:
        yield typed(table, source.decimal) if source.from_text else table, table


def _content(table: pa.Table) -> int:
    """A hash of all cells, the same in whatever order and parts the rows come."""
    columns: list[AnyArray] = []
    for name in sorted(table.column_names):
        column = table[name].combine_chunks()
        if pa.types.is_integer(column.type) or pa.types.is_floating(column.type):
            numbers = column.cast(pa.float64(), safe=False)
            columns.append(numbers.to_numpy(zero_copy_only=False))
            continue
        if pa.types.is_nested(column.type):
            column = pa.array([repr(cell) for cell in column.to_pylist()])
        coded = column.cast(pa.string()).dictionary_encode()
        labels = hashed_labels(np.array([name, *coded.dictionary.to_pylist()], dtype=object))
        columns.append(labels[pc.fill_null(coded.indices, -1).to_numpy() + 1])
    return int(row_hashes(*columns).sum(dtype=np.uint64)) if table.num_rows else 0


def _digest(content: int) -> str:
    """A sum of hashes as text."""
    return f"{content % (1 << 64):016x}"


def _check_readable(loaded: Loaded) -> None:
    """Refuse a reference whose like could not be read or watched later."""
    if len(loaded.evalsets) != 1:
        names = listed(evalset.model for evalset in loaded.evalsets)
        raise InputError(f"the reference must contain one model, got {names}")
    roles, weights = loaded.roles, loaded.evalsets[0].weights
    stated = View(loaded.evalsets[0]).find_prediction(Probabilities)
    if stated is not None and not roles["stated_confidence"]:
        numbers = tuple(map(str, range(len(stated.names))))
        if stated.names != numbers:
            raise InputError(
                "with class probabilities, y of a watch must have class numbers "
                f"({listed(numbers, 4)}), got {listed(stated.names, 4)}: number classes from 0, in "
                "y and in column names"
            )
    if roles["label_set"]:
        raise InputError(
            "the reference must predict numbers or class probabilities: sets of labels are not "
            "monitored; assess each period with howsure assess"
        )
    predictions = [column for role, column, _ in roles.uses() if role.of == "prediction"]
    if not {use.column for use in loaded.explanation}.issuperset(predictions):
        raise InputError(
            "the reference must have a column for each part of a prediction, got a long table, or "
            "one whose cells contain several"
        )
    if weights is not None and weights.kind == "importance":
        raise InputError("weights of the reference must be frequencies, got importance weights")


def _reading_choices(roles: Roles) -> dict[str, Any]:
    """What columns are, as `howsure.load` is told, so that later tables are read alike."""
    columns_of = {name: list(columns) for name, columns in roles.columns.items() if columns}
    choices: dict[str, Any] = {}
    for name, columns in columns_of.items():
        if name in COLUMN_ROLES:
            choices[name] = columns if name in SEVERAL_COLUMNS else columns[0]
    if "quantiles" in columns_of:
        choices["quantiles"] = [
            f"{level:.12g}={name}"
            for level, name in zip(roles.levels, columns_of["quantiles"], strict=True)
        ]
    if roles.law is not None:
        parts = ",".join(f"{name}={value}" for name, value in roles.law.parameters.items())
        choices["law"] = f"{roles.law.name}:{parts}"
    if "lower" in columns_of:
        choices["coverage"] = [share for share in roles.coverages if share is not None]
    if "weights" in choices:
        choices["weights_kind"] = roles.weights_kind
    if roles.missing_values:
        choices["missing_value"] = list(roles.missing_values)
    return choices
