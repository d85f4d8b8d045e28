"""The result of a ledger: no fault so far, or which faults since when."""

from __future__ import annotations

import io
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from typing import Any, final

import numpy as np
import pyarrow as pa
from pyarrow import csv
from scipy import special

from howsure._version import __version__
from howsure.core.arrays import AnyArray, FloatArray, IntArray
from howsure.core.classes import frozen
from howsure.core.convert import restored
from howsure.core.errors import InputError
from howsure.core.formats import counted, fixed, listed, percent
from howsure.core.records import ResultTable
from howsure.engine.finding import between
from howsure.figures.figure import REFERENCE, Axis, Figure, Layer, Mark
from howsure.report.document import Choice, Document, Formed, Option, Section, Tone, VerdictLine
from howsure.stats.binomial import clopper_pearson
from howsure.stats.ecdf import legendre
from howsure.stats.evidence import by_closed_testing, change_point, evidence
from howsure.watch.correction import RUNNING, Correction, gained
from howsure.watch.expected import Expected
from howsure.watch.ledger import LedgerState
from howsure.watch.promise import Promise
from howsure.watch.quantities import ALL, COMPONENTS
from howsure.watch.running import Running, ShadowGain, run
from howsure.watch.selected import bounds_sentence, missing_sentence, weighted

# The usual level, of all looks together.
LEVEL = 0.05
"""Chance that a promise that is kept is ever told broken."""
# Half costs log 2 = .7 nats, a few days, wherever the fault is.
_SHARE_OF_ALL_ROWS = 0.5
# Of that the share kept for groups that the reference has not, halved from one to the next, so
# that it never runs out. By hand; not tuned.
_SHARE_OF_LATER_GROUPS = 0.2
# Five points: half as many misses again at 90 %, a fault that users know.
_FALL_TOLD = 0.05
# 95 %, as all intervals.
_Z_95 = 1.959964
# A midpoint rule of 2,000 levels has more digits than a number of days needs.
_LEVELS_OF_MEAN = 2_000
_RUNNING_COMMAND = "howsure watch correct LEDGER ROWS --running"


@final
@frozen(kw_only=True)
class Break:
    """What broke: in which group, since when, and what it is since then."""

    group: str  # as column=value; empty of all rows
    quantity: str
    since: int
    earliest: int
    latest: int
    # coverage since then; of components of the PIT their mean; the error as a multiple of the usual
    value: float
    lower: float
    upper: float
    evidence: float  # log capital, of all sets that hold it
    sentence: str


@final
@frozen(kw_only=True)
class WatchReport(Formed):
    """Whether the promise is kept; also as a page, Markdown, JSON or CSV.

    Attributes
    ----------
    kept : bool
        Whether no fault is significant.
    sentence : str
        The result in words.
    broken : tuple of Break
        The significant faults.
    day : int, optional
        The day on which a fault became significant; dates are days since 1970.
    days, rows : int
        Evaluated days, and their rows.
    waiting : int
        Predictions that wait for y.
    open_rows : int
        Rows with y of days that are not evaluated yet.
    late : int
        Rows that arrived after their day was evaluated.
    curve : ndarray of float, shape (days,)
        Log evidence against the whole promise after each day; it is significant at −log 0.05.
    missing : tuple of str
        Which y of evaluated days are missing, in words.
    past : tuple of WatchReport
        The results before each correction.
    correction : Correction, optional
        For a past result, the correction that ended it.
    gain : tuple of float, optional
        By which share the current correction has lowered the score, with its 95 % interval.
    running : Running, optional
        The running correction: `running.factor` multiplies half-widths.
    gain_of_running : ShadowGain, optional
        The gain that it would have given.
    expected : Expected, optional
        What is expected of the predictions of the last day, from inputs, while these wait for y.
    expected_by_day : mapping of int to Expected
        The same for each day.
    """

    kept: bool
    sentence: str
    broken: tuple[Break, ...]
    day: int | None
    days: int
    rows: int
    curve: FloatArray
    booked: IntArray  # the days of the curve
    covered: FloatArray  # shape (days,): coverage of each; empty where none is watched
    promise: Promise
    missing: tuple[str, ...] = ()
    waiting: int = 0
    open_rows: int = 0
    late: int = 0
    past: tuple[WatchReport, ...] = ()
    correction: Correction | None = None
    gain: tuple[float, float, float] | None = None
    running: Running | None = None
    gain_of_running: ShadowGain | None = None
    expected: Expected | None = None
    expected_by_day: Mapping[int, Expected] = field(default_factory=dict)

    @property
    def since(self) -> int | None:
        """The first day of the change; None where none is significant."""
        return min((fault.since for fault in self.broken), default=self.day)

    def document(self) -> Document:
        """The report that every form is made of."""
        tone: Tone = "undecided" if not self.days else "good" if self.kept else "bad"
        lines = (
            VerdictLine(self.sentence, tone, "Is a fault detected?"),
            *(
                VerdictLine(fault.sentence, "bad", "Which other faults are there, and since when?")
                for fault in self.broken[1:]
            ),
            *self._next(),
            *(VerdictLine(text, "info", "Are labels missing at random?") for text in self.missing),
            *self._of_today(),
            *self._worth_of_correction(),
            *self._offer(),
            *self._history(),
        )
        opening = Section(title="", lines=lines, choices=self._figures())
        promise = self.promise
        facts = {
            "Model": promise.model,
            "Reference": f"{promise.rows:,} rows",
            "Monitored": listed(promise.quantities),
            "Evaluated": f"{self.rows:,} rows of {self.days:,} days",
            "Label delay": counted(promise.mature, "day"),
            "False alarms": "at most 5 % for independent rows",
            "howsure": __version__,
        }
        return Document(
            title=f"Does {promise.model} still perform as promised?",
            opening=opening,
            tables=self._tables(),
            facts=facts,
        )

    def _next(self) -> Iterator[VerdictLine]:
        """What to try once a fault is significant."""
        if self.since is not None:
            day = self.promise.day_in_words(self.since)
            yield VerdictLine(
                f"A correction can be fitted to rows with y since {day}. It is applied only if "
                "its improvement is significant.",
                question="What next?",
                command="howsure watch correct LEDGER ROWS",
            )

    def _of_today(self) -> Iterator[VerdictLine]:
        """What is expected before labels come."""
        if self.expected is None or not self.kept:
            return
        coverage, factor = self.expected.coverage, self.expected.factor
        less = coverage.upper < self.promise.coverage - self.promise.tolerance
        text = self.expected.sentence
        if factor.lower > 1.0 or factor.upper < 1.0:
            text += f" {self.expected.width_sentence}"
        if not self.expected.reason:
            text += f" {self.expected.beware}"
        tone: Tone = "caution" if less else "info"
        yield VerdictLine(text, tone, "What is expected before labels arrive?")

    def _worth_of_correction(self) -> Iterator[VerdictLine]:
        """Whether the correction in use is better than none, which runs beside it."""
        latest = self._latest
        if self.gain is None or latest is None or not latest.method:
            return
        share, lower, upper = (100.0 * number for number in self.gain)
        if not math.isfinite(lower):
            return
        score = latest.score.title
        tone: Tone = "good" if lower > 0 else "bad" if upper < 0 else "undecided"
        if lower > 0:
            ends = between(lower, upper, 1)
            text = f"The correction lowers the {score} by {fixed(share, 1)} %{ends}."
        elif upper < 0:
            ends = between(-upper, -lower, 1)
            text = (
                f"The correction raises the {score} by {fixed(-share, 1)} %{ends}: fit a new one."
            )
        else:
            ends = f"{fixed(-upper, 1)} to {fixed(-lower, 1)}"
            text = (
                f"Inconclusive: the correction changes the {score} by {fixed(-share, 1)} % "
                f"({ends})."
            )
        yield VerdictLine(text, tone, "Does the correction help?")

    @property
    def _latest(self) -> Correction | None:
        """The last correction."""
        return self.past[-1].correction if self.past else None

    def _offer(self) -> Iterator[VerdictLine]:
        """The running correction, where its gain is significant."""
        gain, running, latest = self.gain_of_running, self.running, self._latest
        if gain is None or running is None or not gain.offered:
            return
        if latest is None or latest.method != RUNNING:
            text = gain.sentence(self.promise.day_in_words(int(self.booked[0])), running.factor)
            question = "Would a running correction help?"
            yield VerdictLine(text, question=question, command=_RUNNING_COMMAND)

    def _history(self) -> Iterator[VerdictLine]:
        """What came before, the latest first."""
        for report in reversed(self.past):
            if report.correction is not None:
                yield VerdictLine(
                    report.correction.sentence, question="Which corrections were made?"
                )
            yield VerdictLine(report.sentence, question="What was the result before?")

    def _tables(self) -> tuple[ResultTable, ...]:
        reports = (*self.past, self)
        lengths = [report.days for report in reports]
        days = {
            "day": np.concatenate([report.booked for report in reports]),
            "log_evidence": np.concatenate([report.curve for report in reports]),
        }
        if self.promise.dated:
            days["day"] = days["day"].astype("datetime64[D]")
        if any(len(report.covered) for report in reports):
            days["coverage"] = np.concatenate(
                [r.covered if len(r.covered) else np.full(r.days, np.nan) for r in reports]
            )
        if self.past:
            days["corrections"] = np.repeat(np.arange(len(reports)), lengths)
        names = ["group", "quantity", "since", "earliest", "latest", "value", "lower", "upper"]
        tables = [ResultTable(name="days", columns=days), self._table("broken", names, self.broken)]
        corrections = [report.correction for report in self.past if report.correction is not None]
        if corrections:
            names = ["after", "method", "rows", "gain", "lower", "upper"]
            tables.append(self._table("corrections", names, corrections))
        if self.expected_by_day:
            tables.append(self._table_of_expectations())
        if self.gain_of_running is not None and self.running is not None:
            names = ["days", "value", "low", "high", "covered", "covered_unchanged", "offered"]
            table = self._table("running", names, [self.gain_of_running])
            factor = np.array([self.running.factor])
            tables.append(replace(table, columns={"factor": factor, **table.columns}))
        return tuple(tables)

    def _table_of_expectations(self) -> ResultTable:
        """What was expected on each day before its labels came."""
        expected = [*self.expected_by_day.values()]
        columns: dict[str, AnyArray] = {
            "day": np.array([self.promise.day_in_words(day) for day in self.expected_by_day]),
            **{
                name: np.array([getattr(today, name) for today in expected])
                for name in ("rows", "inside", "effective", "reason")
            },
        }
        for name in ("coverage", "score", "factor"):
            for end in ("value", "lower", "upper", "seen_lower", "seen_upper", "least", "most"):
                cells = np.array([getattr(getattr(today, name), end) for today in expected])
                if not np.isnan(cells).all():
                    columns[name if end == "value" else f"{name}_{end}"] = cells
        return ResultTable(name="expected", columns=columns)

    def _table(self, name: str, columns: Sequence[str], rows: Sequence[Any]) -> ResultTable:
        """Attributes of some rows as a table."""
        table: dict[str, AnyArray] = {}
        for column in columns:
            cells = [getattr(row, column) for row in rows]
            if column in ("since", "earliest", "latest", "after"):
                cells = [self.promise.day_in_words(day) for day in cells]
            kind = object if any(isinstance(cell, str) for cell in cells) else np.float64
            table[column] = np.array(cells, dtype=kind)
        return ResultTable(name=name, columns=table)

    def to_csv(self) -> str:
        """Each day that is booked as a line of CSV: evidence, and coverage."""
        table = self._tables()[0]
        sink = io.BytesIO()
        csv.write_csv(pa.table(dict(table.columns)), sink)
        return sink.getvalue().decode()

    def _figures(self) -> tuple[Choice, ...]:
        """Evidence, and coverage, over time: of each promise since the first."""
        reports = (*self.past, self)
        names = [f", correction {k}" if k else ", uncorrected" for k in range(len(reports))]
        drawn = [(name, r) for name, r in zip(names, reports, strict=True) if r.days]
        if not drawn:
            return ()
        dated = self.promise.dated
        seconds = 86_400.0 if dated else 1.0

        def layers(mark: Mark, title: str, values: Callable[[WatchReport], FloatArray]) -> Any:
            return [
                Layer(
                    mark=mark,
                    x=report.booked.astype(np.float64) * seconds,
                    y=values(report),
                    series=f"{title}{name if self.past else ''}",
                    colour=colour,
                )
                for colour, (name, report) in enumerate(drawn)
            ]

        def rule(value: float, title: str) -> Layer:
            return Layer(mark=Mark.RULE, y=np.array([value]), series=title, colour=REFERENCE)

        along = Axis(title="Day", kind="time") if dated else Axis(title="Day")
        limit = -math.log10(LEVEL)
        evidence = layers(Mark.STEP, "evidence", lambda report: report.curve / math.log(10.0))
        figures = [
            Figure(
                name="watch_evidence",
                question="Is a fault detected?",
                title="Evidence of a fault",
                reading="Above the line, a fault is significant. Without a fault, the evidence "
                "crosses the line with probability 5 % at most, for any number of looks.",
                x=along,
                y=Axis(
                    title="Evidence (log₁₀)",
                    domain=_reach([layer.y for layer in evidence], limit),
                    clamp=True,
                ),
                layers=(*evidence, rule(limit, "significant")),
            )
        ]
        if any(len(report.covered) for report in reports):
            points = layers(Mark.POINTS, "coverage", lambda report: report.covered)
            points += self._expectations(seconds, len(drawn))
            figures.append(
                Figure(
                    name="watch_coverage",
                    question="Is empirical coverage at its nominal level?",
                    title="Coverage per day",
                    reading="Single days vary by chance; the evidence shows whether a deviation is "
                    "significant.",
                    x=along,
                    y=Axis(title="Empirical coverage", kind="percent"),
                    layers=(*points, rule(self.promise.coverage, "nominal")),
                )
            )
        titles = ("Evidence", "Coverage")
        options = (
            Option(label=title, figures=(figure,))
            for title, figure in zip(titles, figures, strict=False)
        )
        return (Choice(label="Over time", options=tuple(options)),)

    def _expectations(self, seconds: float, colour: int) -> list[Layer]:
        """The coverage that was expected of each day before its labels came."""
        coverages = {day: today.coverage for day, today in self.expected_by_day.items()}
        coverages = {day: c for day, c in coverages.items() if not math.isnan(c.value)}
        if not coverages:
            return []
        x = np.array([*coverages], dtype=np.float64) * seconds
        y, lower, upper = (
            np.array([getattr(coverage, name) for coverage in coverages.values()], dtype=np.float64)
            for name in ("value", "lower", "upper")
        )
        layer = Layer(mark=Mark.POINTS, x=x, y=y, series="expected before labels", colour=colour)
        ends = replace(layer, mark=Mark.INTERVALS, y=np.empty(0), lower=lower, upper=upper)
        return [replace(ends, faint=True), layer]


def _reach(curves: Sequence[FloatArray], limit: float) -> tuple[float, float]:
    """The range of the evidence that is shown: beyond proof it grows without end."""
    logs = np.concatenate(curves)
    low, high = min(float(logs.min()), -1.0), float(logs.max())
    return max(low, -3.0), max(2.0 * limit, min(high, 6.0))


def report_of(
    promise: Promise, state: LedgerState, waiting: int, corrections: Sequence[Correction] = ()
) -> WatchReport:
    """What the sums of all days that are booked say: of the days since the last correction."""
    past: list[WatchReport] = []
    current, first = promise, -math.inf
    for correction in corrections:
        ended = _of_days(current, promise, state, (first, correction.after))
        past.append(replace(ended, correction=correction))
        current, first = correction.promise, correction.after
    kept_words = "No fault detected so far"
    if corrections:
        latest = corrections[-1]
        day = promise.day_in_words(latest.after)
        what = "the correction" if latest.method else "the end of the correction"
        kept_words = f"No fault detected since {what} after {day}"
    report = _of_days(current, promise, state, (first, math.inf), kept_words)
    text = report.sentence
    if corrections and not report.days:
        what = "Corrected" if latest.method else "Correction ended"
        text = f"{what} after {day}; no day has been evaluated since."
    expected = {
        day: restored(fields_of_day, Expected, "expected")
        for day, fields_of_day in state.expected.items()
    }
    labelled = sum(sums[1] for (_, group, _), sums in state.sums.items() if group == ALL)
    open_rows = int(labelled) - sum(period.rows for period in (*past, report))
    late, undone = state.late, state.undone
    text += f" {_describe_not_counted(waiting, open_rows, late, undone, promise.mature)}"
    booked = report.booked.tolist()
    scores = [state.scores[day] for day in booked if day > first and day in state.scores]
    # it counts from the promise's first day on, which no later row has chosen
    running, shadow = (
        (None, None)
        if current.running is None
        else run(current.running, state.ratios, report.booked)
    )
    if shadow is not None and shadow.sums[:, 2].sum() <= 0.0:
        shadow = None
    return replace(
        report,
        sentence=text.strip(),
        waiting=waiting,
        open_rows=open_rows,
        late=state.late,
        past=tuple(past),
        expected=None if not waiting else expected.get(state.latest or 0),
        expected_by_day=expected,
        gain=gained(np.array(scores)) if scores else None,
        running=None if shadow is None else running,
        gain_of_running=None if shadow is None else shadow.gain(),
    )


def _of_days(
    promise: Promise,
    of_all: Promise,
    state: LedgerState,
    between_days: tuple[float, float],
    kept_words: str = "No fault detected so far",
) -> WatchReport:
    """What the sums of some days say of a promise: after the first, up to the last."""
    after, last = between_days
    booked_to = min(promise.booked_to(state.latest), last)
    inside = sorted(key for key in state.sums if after < key[0] <= booked_to)
    days = np.array(sorted({key[0] for key in inside}), dtype=np.int64)
    groups = _groups(promise, inside)
    size = len(promise.quantities)
    booked = _Cells.of(promise, of_all, {key: state.sums[key] for key in inside}, groups, days)
    rows = int(booked.labelled[:1].sum())
    shares = _shares(promise, groups, size)
    sums, counts, slack = booked.weighted(promise, days)
    logs = np.empty((len(groups), size, len(days)))
    for k, (name, bounds) in enumerate(zip(promise.quantities, promise.bounds, strict=True)):
        worth = np.array([promise.worth_of(group, name) for group in groups])
        logs[:, k] = evidence(sums[k], counts[k], bounds, worth, days, slack[k])
    flat = logs.reshape(len(groups) * size, len(days))
    idle = max(1.0 - float(shares.sum()), 0.0)  # kept for groups that have not come
    curve = np.empty(0)
    if len(days):
        curve = np.logaddexp.reduce(flat + np.log(shares)[:, None], axis=0)
        curve = np.logaddexp(curve, math.log(idle) if idle > 0.0 else -math.inf)
    line_of_alarm = -math.log(LEVEL)
    alarms = np.flatnonzero(curve >= line_of_alarm)
    broken: list[Break] = []
    if len(alarms):
        named = np.maximum(
            *(by_closed_testing(flat[:, at], shares) for at in (int(curve.argmax()), -1))
        )
        for index in np.argsort(-named).tolist():
            if named[index] >= line_of_alarm:
                group, k = groups[index // size], index % size
                group_days = sums[k, groups.index(group)], counts[k, groups.index(group)]
                broken.append(
                    _break(promise, group, k, days, group_days, flat[index], named[index])
                )
    is_kept = not len(alarms)
    proven = None if is_kept else int(days[alarms[0]])
    if not groups:
        sentence = "No day has been evaluated yet."
    elif is_kept:
        sentence = (
            f"{kept_words}: {_describe_kept_promise(promise, days, rows, counts[:, 0], shares)}"
        )
    else:
        sentence = _broken(promise, int(days[alarms[0]]), broken)
    return WatchReport(
        kept=is_kept,
        sentence=sentence,
        broken=tuple(broken),
        day=proven,
        days=len(days),
        rows=rows,
        curve=curve,
        booked=days,
        covered=_covered(promise, sums, counts),
        missing=booked.sentences(promise),
        promise=promise,
    )


@frozen(kw_only=True)
class _Cells:
    """Sums of days by group and stratum."""

    sums: FloatArray  # shape (quantities, groups, strata, days)
    labelled: FloatArray  # shape (groups, strata, days): rows with y
    rows: FloatArray  # shape (groups, strata, days)

    @classmethod
    def of(
        cls,
        promise: Promise,
        of_all: Promise,
        sums_by_key: Mapping[tuple[int, str, int], FloatArray],
        groups: list[str],
        days: IntArray,
    ) -> _Cells:
        strata = 1 if promise.strata is None else len(promise.strata.rows)
        sizes = {len(sums) - 2 for sums in sums_by_key.values()} | {len(of_all.quantities)}
        if len(sizes) > 1 or not {stratum for *_, stratum in sums_by_key} <= {*range(strata)}:
            raise InputError("the ledger is damaged: an entry does not fit the promise")
        columns = [2 + of_all.quantities.index(name) for name in promise.quantities]
        numbers = {day: k for k, day in enumerate(days.tolist())}
        lines = {group: k for k, group in enumerate(groups)}
        every = np.zeros((2 + len(columns), len(groups), strata, len(days)))
        for (day, group, stratum), sums in sums_by_key.items():
            every[:, lines[group], stratum, numbers[day]] = sums[[0, 1, *columns]]
        return cls(rows=every[0], labelled=every[1], sums=every[2:])

    def weighted(
        self, promise: Promise, days: IntArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Sums, rows and slack of each quantity, group and day, as if no y were missing."""
        if promise.strata is None or not (self.labelled < self.rows).any():
            counts = np.broadcast_to(self.labelled.sum(axis=1), self.sums.sum(axis=2).shape)
            return self.sums.sum(axis=2), counts, np.zeros(counts.shape)
        balanced = weighted(self.sums, self.labelled, self.rows, days, promise.strata)
        return balanced.sums, balanced.counts, balanced.slack

    def sentences(self, promise: Promise) -> tuple[str, ...]:
        """What is missing of the rows of booked days, and what it may hide."""
        if promise.strata is None or not len(self.rows):
            return ()
        labelled, rows = self.labelled[0], self.rows[0]
        texts = [missing_sentence(labelled, rows, promise.strata)]
        if "coverage" in promise.quantities:
            labelled_rows = float(labelled.sum())
            index = promise.quantities.index("coverage")
            hits = promise.coverage * labelled_rows + float(self.sums[index, 0].sum())
            texts.append(bounds_sentence(hits, labelled_rows, float(rows.sum())))
        return tuple(filter(None, texts))


def _covered(promise: Promise, sums: FloatArray, counts: FloatArray) -> FloatArray:
    """Coverage of all rows of each day; NaN of a day without y."""
    if "coverage" not in promise.quantities or not counts.size:
        return np.empty(0)
    k = promise.quantities.index("coverage")
    labelled = np.where(counts[k, 0] > 0, counts[k, 0], np.nan)
    return np.asarray(promise.coverage + sums[k, 0] / labelled)


def _groups(promise: Promise, booked: list[tuple[int, str, int]]) -> list[str]:
    """All rows, the groups of the reference, and others in the order in which they came."""
    if not booked:
        return []
    return list(dict.fromkeys((ALL, *promise.groups, *(group for _, group, _ in booked))))


def _shares(promise: Promise, groups: list[str], size: int) -> FloatArray:
    """Shares of the capital, which no later day changes: half on all rows, where there are groups.

    A group that the reference has not takes half of what is left for such groups when it comes.
    """
    known_groups = len(promise.groups)
    if not known_groups:  # as there is no column of groups
        return np.full(len(groups) * size, 1.0 / size)
    left_for_groups = 1.0 - _SHARE_OF_ALL_ROWS
    later = (
        left_for_groups * _SHARE_OF_LATER_GROUPS * 0.5 ** np.arange(1.0, len(groups) - known_groups)
    )
    share = np.array(
        [
            _SHARE_OF_ALL_ROWS,
            *[left_for_groups * (1.0 - _SHARE_OF_LATER_GROUPS) / known_groups] * known_groups,
            *later,
        ]
    )
    return np.repeat(share[: len(groups)] / size, size)


def _break(
    promise: Promise,
    group: str,
    k: int,
    days: IntArray,
    group_days: tuple[FloatArray, FloatArray],
    logs: FloatArray,
    log: float,
) -> Break:
    """One quantity of one group, since its change, which came before it was proven."""
    name, bounds = promise.quantities[k], promise.bounds[k]
    worth = promise.worth_of(group, name)
    sums, counts = group_days
    proven = int(np.argmax(logs >= -math.log(LEVEL)))
    at, mean, (first, last) = change_point(sums, counts, bounds, worth, proven)
    n = float(counts[at:].sum())
    reach = _Z_95 * math.sqrt(worth * bounds.variance / n)
    value, lower, upper = mean, mean - reach, mean + reach
    if name == "coverage":
        value += promise.coverage
        alike = n / worth
        lower, upper = map(float, clopper_pearson(value * alike, alike, confidence=0.95))
    if promise.usual is not None and name == "error":
        value, lower, upper = (
            1.0 + number / promise.usual.mean for number in (value, lower, upper)
        )
    since = promise.day_in_words(int(days[at]))
    where = f"{group}: " if group else ""
    return Break(
        group=group,
        quantity=name,
        since=int(days[at]),
        earliest=int(days[first]),
        latest=int(days[last]),
        value=value,
        lower=lower,
        upper=upper,
        evidence=float(log),
        sentence=f"{where}{_fault(promise, name, mean, value, lower, upper)} since {since}.",
    )


def _fault(
    promise: Promise, name: str, mean: float, value: float, lower: float, upper: float
) -> str:
    if name == "coverage":
        span = between(100.0 * lower, 100.0 * upper, 1)
        return f"{percent(promise.coverage)} intervals cover {percent(value)}{span}"
    if name == "error":
        share, low, high = (100.0 * (ratio - 1.0) for ratio in (value, lower, upper))
        return f"errors are {fixed(share, 1)} % larger{between(low, high, 1)} than in the reference"
    higher = mean > 0
    often = "more" if higher else "less"
    return {
        "bias": f"predictions are too {'low' if higher else 'high'} on average",
        "spread": f"errors are {'larger' if higher else 'smaller'} than predicted",
        "skew": f"y is skewed more to {'higher' if higher else 'lower'} values than predicted",
        "tails": f"tails are {'heavier' if higher else 'lighter'} than predicted",
        "level": f"events happen {often} often than stated, as with a changed base rate"
        if 0 < len(promise.columns.get("softmax", ())) < 3
        else f"the likeliest answer is right {often} often than stated",
        "sureness": f"probabilities are {'not confident enough' if higher else 'too confident'}",
    }[name]


def _broken(promise: Promise, day: int, broken: list[Break]) -> str:
    when = promise.day_in_words(day)
    if not broken:
        return (
            f"Fault detected on {when}: the evidence as a whole is significant; no single "
            "quantity is."
        )
    more_faults = len(broken) - 1
    more = (
        f" {more_faults} more fault{'s are' if more_faults > 1 else ' is'} significant."
        if more_faults
        else ""
    )
    return f"Fault detected on {when}: {broken[0].sentence}{more}"


def _describe_kept_promise(
    promise: Promise, days: IntArray, rows: int, counts: FloatArray, shares: FloatArray
) -> str:
    text = f"{counted(len(days), 'day')}, {counted(rows, 'row')}"
    if "coverage" not in promise.quantities:
        return f"{text}."
    fallen = np.full(len(days), -math.inf)
    for k, mean in enumerate(_means_of_fall(promise)):
        name, bounds = promise.quantities[k], promise.bounds[k]
        worth = promise.worth_of(ALL, name)
        logs = evidence(mean * counts[k], counts[k], bounds, worth, days)
        fallen = np.logaddexp(fallen, logs + math.log(float(shares[k])))
    shown = np.flatnonzero(fallen >= -math.log(LEVEL))
    fall = f"{text}. A drop of coverage to {percent(_fallen(promise))}"
    if not len(shown):
        return f"{fall} could still be undetected."
    return f"{fall} would probably be detected after {counted(int(shown[0]) + 1, 'day')}."


def _fallen(promise: Promise) -> float:
    """The coverage whose detection delay is reported."""
    return max(promise.coverage - _FALL_TOLD, promise.coverage / 2.0)


def _means_of_fall(promise: Promise) -> list[float]:
    """Means of all quantities where coverage falls as normal errors grow."""
    here, there = (
        float(special.ndtri((1.0 + share) / 2.0)) for share in (promise.coverage, _fallen(promise))
    )
    z = (np.arange(_LEVELS_OF_MEAN) + 0.5) / _LEVELS_OF_MEAN
    components = legendre(special.ndtr(special.ndtri(z) * here / there)).mean(axis=1)
    means = {
        "coverage": _fallen(promise) - promise.coverage,
        **dict(zip(COMPONENTS, components.tolist(), strict=True)),
    }
    return [means[name] for name in promise.quantities]


def _describe_not_counted(waiting: int, open_rows: int, late: int, undone: int, mature: int) -> str:
    """What is not in the evidence, one sentence each."""
    is_open = f"{counted(open_rows, 'row')} await{'s' * (open_rows == 1)}"
    waits = f"{counted(waiting, 'prediction')} wait{'s' * (waiting == 1)}"
    too_late = f"{counted(late, 'row')} arrived too late and {'is' if late == 1 else 'are'}"
    taken = f"{counted(undone, 'addition')} {'was' if undone == 1 else 'were'}"
    sentences = {
        f"{is_open} the {mature:,}-day label delay.": open_rows,
        f"{waits} for y.": waiting,
        f"{too_late} not used.": late,
        f"{taken} undone.": undone,
    }
    return " ".join(sentence for sentence, count in sentences.items() if count)
