"""What a ledger says of its promise: kept so far, or broken, by what and since when."""

from __future__ import annotations

import io
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Self, final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyarrow import csv
from scipy import special

from howsure._version import __version__
from howsure.core.arrays import FloatArray, IntArray
from howsure.core.convert import json_number, plain
from howsure.core.errors import InputError
from howsure.core.formats import listed, percent, roughly
from howsure.core.records import Table
from howsure.figures.figure import REFERENCE, Axis, Figure, Layer, Mark
from howsure.metrics.calibration.components import legendre
from howsure.metrics.wording import between
from howsure.report.document import Choice, Document, Formed, Option, Section, Tone, VerdictLine
from howsure.stats.binomial import clopper_pearson
from howsure.stats.evidence import Bounds, by_closed_testing, change_point, evidence
from howsure.watch.ledger import LedgerState
from howsure.watch.quantities import ALL, COMPONENTS, day_in_words

LEVEL = 0.05
"""Chance that a promise that is kept is ever told broken."""
_ALL_ROWS = 0.5
"""Share of the capital on all rows; groups share the rest."""
_LATER = 0.2
"""Of that the share kept for groups that the reference has not, halved from one to the next."""
_FALL = 0.05
"""Fall of coverage of which it is told when it would have shown."""
_Z = 1.959964
_POINTS = 2_000
_NOTEWORTHY = 5.0


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Promise:
    """What the reference froze."""

    howsure: str  # version that wrote it
    model: str
    quantities: tuple[str, ...]
    bounds: tuple[Bounds, ...]  # of each quantity
    coverage: float  # nominal; NaN where none is watched
    tolerance: float
    mature: int  # days until a day is booked
    columns: Mapping[str, Any]  # as `howsure.load` is told
    reading: Mapping[str, str | None]  # crossing, encoding and decimal mark, as it is told too
    row_id: str  # column of names; empty where rows do not wait
    timed: bool  # whether rows have times; else each addition is a day
    dated: bool  # whether these are dates
    rows: int  # of the reference
    days: int
    groups: tuple[str, ...]  # as column=value
    # how many rows count as one, by group and quantity; of other groups as of all rows
    worth: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    flaw: str = ""  # in which way the reference itself does not keep it; empty where it does

    def as_dict(self) -> dict[str, Any]:
        """As values that JSON knows."""
        return dict(plain(asdict(self), json_number))

    @classmethod
    def from_dict(cls, told: Mapping[str, Any]) -> Self:
        """What `as_dict` made."""
        try:
            given = dict(told)
            given["bounds"] = tuple(Bounds(**each) for each in given["bounds"])
            given["quantities"], given["groups"] = map(
                tuple, (given["quantities"], given["groups"])
            )
            given["coverage"] = math.nan if given["coverage"] is None else given["coverage"]
            return cls(**given)
        except (KeyError, TypeError, ValueError) as error:
            raise InputError(
                f"the ledger holds no promise of this version of howsure: {error}"
            ) from error

    @property
    def sentence(self) -> str:
        """It in words."""
        told = [f"Frozen from {self.rows:,} rows. Watched: {listed(self.quantities)}."]
        worth = max(self.worth.get(ALL, {}).values(), default=1.0)
        if not self.timed:
            told.append("Without times, rows count as independent, and each addition as a day.")
        elif worth > _NOTEWORTHY:
            told.append(f"As rows may depend, up to {roughly(worth)} count as one.")
        if self.flaw:
            told.append(f"The reference itself does not keep the promise: {self.flaw}")
        return " ".join(told)

    @property
    def y(self) -> str:
        """The column of y."""
        return str(self.columns["y"])

    def needed(self) -> list[str]:
        """Columns of predictions."""
        made: list[str] = []
        for role in ("point", "mean", "sd", "variance"):
            made += [self.columns[role]] if role in self.columns else []
        for role in ("lower", "upper", "samples"):
            made += self.columns.get(role, [])
        made += [text.partition("=")[2] for text in self.columns.get("quantiles", [])]
        if "law" in self.columns:
            pairs = self.columns["law"].partition(":")[2].split(",")
            values = [pair.partition("=")[2] for pair in pairs]
            made += [value for value in values if not _is_number(value)]
        return list(dict.fromkeys(made))

    def beside(self) -> list[str]:
        """Columns of groups, time and weights."""
        made = [*self.columns.get("groups", [])]
        made += [self.columns[role] for role in ("time", "weights") if role in self.columns]
        return made

    def day_in_words(self, day: int) -> str:
        """A day for people."""
        return day_in_words(day, self.dated)

    def worth_of(self, group: str, quantity: str) -> float:
        """How many rows of a group count as one."""
        known = self.worth.get(group, self.worth.get(ALL, {}))
        return float(known.get(quantity, 1.0))


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Break:
    """What broke: in which group, since when, and what it is since then."""

    group: str  # as column=value; empty of all rows
    quantity: str
    since: int
    earliest: int
    latest: int
    value: float  # coverage since then; of components of the PIT their mean
    lower: float
    upper: float
    evidence: float  # log capital, of all sets that hold it
    sentence: str


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class WatchReport(Formed):
    """Whether the promise is kept; as a page, Markdown, JSON or CSV too.

    Attributes
    ----------
    kept : bool
        Whether it is not proven broken.
    sentence : str
        It in words.
    broken : tuple of Break
        What broke.
    day : int, optional
        The day on which that was proven; of dates, since 1970.
    days, rows : int
        What is booked.
    waiting : int
        Predictions that wait for their y.
    open_rows : int
        Rows with y of days that are not booked yet.
    late : int
        Rows that came after their day was booked.
    curve : ndarray of float, shape (days,)
        Log evidence against the whole promise after each day; it is broken at −log 0.05.
    """

    kept: bool
    sentence: str
    broken: tuple[Break, ...]
    day: int | None
    days: int
    rows: int
    waiting: int
    open_rows: int
    late: int
    curve: FloatArray
    booked: IntArray  # the days of the curve
    covered: FloatArray  # shape (days,): coverage of each; empty where none is watched
    promise: Promise

    def document(self) -> Document:
        """The report that every form is made of."""
        tone: Tone = "undecided" if not self.days else "good" if self.kept else "bad"
        line = VerdictLine(self.sentence, tone, "Is the promise kept?")
        broken = tuple(
            VerdictLine(each.sentence, "bad", "What broke, and since when?")
            for each in self.broken[1:]
        )
        opening = Section(title="", lines=(line, *broken), choices=self._figures())
        promise = self.promise
        facts = {
            "Model": promise.model,
            "Reference": f"{promise.rows:,} rows",
            "Watched": listed(promise.quantities),
            "Booked": f"{self.rows:,} rows of {self.days:,} days",
            "A day is booked": f"{promise.mature} days after it",
            "Chance that a promise that is kept is ever told broken": "at most 5 % for rows that "
            "are independent",
            "howsure": __version__,
        }
        return Document(
            title=f"Does {promise.model} keep its promise?",
            opening=opening,
            tables=self._tables(),
            facts=facts,
        )

    def _tables(self) -> tuple[Table, ...]:
        days = {"day": self._times(), "log_evidence": self.curve}
        if len(self.covered):
            days["coverage"] = self.covered
        names = ("group", "quantity", "since", "earliest", "latest", "value", "lower", "upper")
        broken: dict[str, npt.NDArray[Any]] = {}
        for name in names:
            cells = [getattr(each, name) for each in self.broken]
            if name in ("since", "earliest", "latest"):
                cells = [self.promise.day_in_words(day) for day in cells]
            kind = object if any(isinstance(cell, str) for cell in cells) else np.float64
            broken[name] = np.array(cells, dtype=kind)
        return Table(name="days", columns=days), Table(name="broken", columns=broken)

    def to_csv(self) -> str:
        """Each day that is booked as a line of CSV: evidence, and coverage."""
        table, _ = self._tables()
        sink = io.BytesIO()
        csv.write_csv(pa.table(dict(table.columns)), sink)
        return sink.getvalue().decode()

    def _times(self) -> npt.NDArray[Any]:
        """The days, as dates where they are."""
        return self.booked.astype("datetime64[D]") if self.promise.dated else self.booked

    def _figures(self) -> tuple[Choice, ...]:
        """Evidence, and coverage, over time."""
        if not self.days:
            return ()
        dated = self.promise.dated
        x = self.booked.astype(np.float64) * (86_400.0 if dated else 1.0)
        along = Axis(title="Day", kind="time") if dated else Axis(title="Day")
        limit = -math.log10(LEVEL)
        made = [
            Figure(
                name="watch_evidence",
                question="Is the promise kept?",
                title="Evidence against the promise",
                reading="At the line it is proven broken. A promise that is kept reaches it with "
                "probability 5 % at most, however often one looks.",
                x=along,
                y=Axis(title="Evidence (log₁₀)", domain=self._reach(limit), clamp=True),
                layers=(
                    Layer(mark=Mark.STEP, x=x, y=self.curve / math.log(10.0), series="evidence"),
                    Layer(
                        mark=Mark.RULE,
                        y=np.array([limit]),
                        series="proven broken",
                        colour=REFERENCE,
                    ),
                ),
            )
        ]
        if len(self.covered):
            level = np.array([self.promise.coverage])
            made.append(
                Figure(
                    name="watch_coverage",
                    question="Do the intervals cover as often as they claim?",
                    title="Coverage of each day",
                    reading="Single days scatter; only the evidence says whether that is chance.",
                    x=along,
                    y=Axis(title="Empirical coverage", kind="percent"),
                    layers=(
                        Layer(mark=Mark.POINTS, x=x, y=self.covered, series="coverage"),
                        Layer(mark=Mark.RULE, y=level, series="nominal", colour=REFERENCE),
                    ),
                )
            )
        names = ("Evidence", "Coverage")
        options = (Option(label=n, figures=(f,)) for n, f in zip(names, made, strict=False))
        return (Choice(label="Over time", options=tuple(options)),)

    def _reach(self, limit: float) -> tuple[float, float]:
        """The range of the evidence that is shown: beyond proof it grows without end."""
        low = min(float(self.curve.min()) / math.log(10.0), -1.0)
        return max(low, -3.0), max(2.0 * limit, min(float(self.curve.max()) / math.log(10.0), 6.0))


def report_of(promise: Promise, state: LedgerState, waiting: int) -> WatchReport:
    """What the sums of all days that are booked say."""
    booked_to = -math.inf if state.latest is None else state.latest - promise.mature
    days = np.array(sorted({day for day, _ in state.sums if day <= booked_to}), dtype=np.int64)
    groups = _groups(promise, sorted(key for key in state.sums if key[0] <= booked_to))
    size = len(promise.quantities)
    sums = np.zeros((len(groups), len(days), size))
    counts = np.zeros((len(groups), len(days)))
    place = {day: k for k, day in enumerate(days.tolist())}
    line = {group: k for k, group in enumerate(groups)}
    for (day, group), (n, total) in state.sums.items():
        if day in place:
            counts[line[group], place[day]] = n
            sums[line[group], place[day]] = total
    rows = int(counts[line[ALL]].sum()) if groups else 0
    open_rows = int(sum(n for (day, group), (n, _) in state.sums.items() if group == ALL)) - rows
    shares = _shares(promise, groups, size)
    logs = np.empty((len(groups), size, len(days)))
    for k, (name, bounds) in enumerate(zip(promise.quantities, promise.bounds, strict=True)):
        worth = np.array([promise.worth_of(group, name) for group in groups])
        logs[:, k] = evidence(sums[..., k], counts, bounds, worth, days)
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
                own, rows_by_day = sums[line[group], :, k], counts[line[group]]
                broken.append(_break(promise, group, k, days, own, rows_by_day, named[index]))
    kept = not len(alarms)
    proven = None if kept else int(days[alarms[0]])
    told = _kept(promise, days, counts[line[ALL]], shares) if kept and groups else ""
    if not groups:
        told = "Nothing is booked yet."
    elif not kept:
        told = _broken(promise, int(days[alarms[0]]), broken)
    rest = _rest(waiting, open_rows, state.late)
    return WatchReport(
        kept=kept,
        sentence=f"{told} {rest}".strip(),
        broken=tuple(broken),
        day=proven,
        days=len(days),
        rows=rows,
        waiting=waiting,
        open_rows=open_rows,
        late=state.late,
        curve=curve,
        booked=days,
        covered=_covered(promise, sums, counts, line),
        promise=promise,
    )


def _covered(
    promise: Promise, sums: FloatArray, counts: FloatArray, line: Mapping[str, int]
) -> FloatArray:
    """Coverage of all rows of each day."""
    if "coverage" not in promise.quantities or ALL not in line:
        return np.empty(0)
    k, own = promise.quantities.index("coverage"), line[ALL]
    return np.asarray(promise.coverage + sums[own, :, k] / counts[own])


def _groups(promise: Promise, booked: list[tuple[int, str]]) -> list[str]:
    """All rows, the groups of the reference, and others in the order in which they came."""
    if not booked:
        return []
    return list(dict.fromkeys((ALL, *promise.groups, *(group for _, group in booked))))


def _shares(promise: Promise, groups: list[str], size: int) -> FloatArray:
    """Shares of the capital, which no later day changes: half on all rows, where there are groups.

    A group that the reference has not takes half of what is left for such groups when it comes.
    """
    known = len(promise.groups)
    if not known:  # as there is no column of groups
        return np.full(len(groups) * size, 1.0 / size)
    rest = 1.0 - _ALL_ROWS
    later = rest * _LATER * 0.5 ** np.arange(1.0, len(groups) - known)
    share = np.array([_ALL_ROWS, *[rest * (1.0 - _LATER) / known] * known, *later])
    return np.repeat(share[: len(groups)] / size, size)


def _break(
    promise: Promise,
    group: str,
    k: int,
    days: IntArray,
    sums: FloatArray,
    counts: FloatArray,
    log: float,
) -> Break:
    """One quantity of one group, since its change."""
    name, bounds = promise.quantities[k], promise.bounds[k]
    worth = promise.worth_of(group, name)
    at, mean, (first, last) = change_point(sums, counts, bounds.variance, worth)
    n = float(counts[at:].sum())
    value, lower, upper = mean, *(mean + sign * _Z * math.sqrt(worth / n) for sign in (-1.0, 1.0))
    if name == "coverage":
        value += promise.coverage
        alike = n / worth
        lower, upper = map(float, clopper_pearson(value * alike, alike, confidence=0.95))
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
        evidence=log,
        sentence=f"{where}{_fault(promise, name, mean, value, lower, upper)} since {since}.",
    )


def _fault(
    promise: Promise, name: str, mean: float, value: float, lower: float, upper: float
) -> str:
    if name == "coverage":
        span = between(100.0 * lower, 100.0 * upper, 1)
        return f"{percent(promise.coverage)} intervals cover {percent(value)}{span}"
    higher = mean > 0
    return {
        "bias": f"y lies {'above' if higher else 'below'} its predictions",
        "spread": f"errors are {'larger' if higher else 'smaller'} than stated",
        "skew": f"y is skewed more to {'higher' if higher else 'lower'} values than stated",
        "tails": f"tails are {'heavier' if higher else 'lighter'} than stated",
    }[name]


def _broken(promise: Promise, day: int, broken: list[Break]) -> str:
    when = promise.day_in_words(day)
    if not broken:
        return f"Broken on {when}: the promise fails as a whole; no single part is proven to."
    others = len(broken) - 1
    more = f" {others} more fault{'s are' if others > 1 else ' is'} proven." if others else ""
    return f"Broken on {when}: {broken[0].sentence}{more}"


def _kept(promise: Promise, days: IntArray, counts: FloatArray, shares: FloatArray) -> str:
    rows = f"{len(days):,} day{'s' * (len(days) != 1)}, {int(counts.sum()):,} rows"
    told = f"Kept so far: {rows}, no departure proven"
    if "coverage" not in promise.quantities:
        return f"{told}."
    fallen = np.full(len(days), -math.inf)
    for k, mean in enumerate(_means_of_fall(promise)):
        name, bounds = promise.quantities[k], promise.bounds[k]
        worth = promise.worth_of(ALL, name)
        logs = evidence(mean * counts, counts, bounds, worth, days)
        fallen = np.logaddexp(fallen, logs + math.log(float(shares[k])))
    shown = np.flatnonzero(fallen >= -math.log(LEVEL))
    least = percent(_fallen(promise))
    if not len(shown):
        return f"{told}; had coverage fallen to {least}, this might not have shown yet."
    count = int(shown[0]) + 1
    return (
        f"{told}; had coverage fallen to {least}, this would probably have shown after {count:,} "
        f"day{'s' * (count != 1)}."
    )


def _fallen(promise: Promise) -> float:
    """The coverage of which it is told when it would have shown."""
    return max(promise.coverage - _FALL, promise.coverage / 2.0)


def _means_of_fall(promise: Promise) -> list[float]:
    """Means of all quantities where coverage falls as normal errors grow."""
    here, there = (
        float(special.ndtri((1.0 + share) / 2.0)) for share in (promise.coverage, _fallen(promise))
    )
    z = (np.arange(_POINTS) + 0.5) / _POINTS
    components = legendre(special.ndtr(special.ndtri(z) * here / there)).mean(axis=1)
    known = {
        "coverage": _fallen(promise) - promise.coverage,
        **dict(zip(COMPONENTS, components.tolist(), strict=True)),
    }
    return [known[name] for name in promise.quantities]


def _rest(waiting: int, open_rows: int, late: int) -> str:
    """What is not in the evidence, a sentence each."""
    told = []
    if open_rows:
        told.append(
            f"{open_rows:,} row{' is' if open_rows == 1 else 's are'} of days not booked yet."
        )
    if waiting:
        told.append(f"{waiting:,} prediction{' waits' if waiting == 1 else 's wait'} for y.")
    if late:
        rows = "row came too late and counts" if late == 1 else "rows came too late and count"
        told.append(f"{late:,} {rows} for nothing.")
    return " ".join(told)
