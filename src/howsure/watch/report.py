"""What a ledger says of its promise: kept so far, or broken, by what and since when."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Self, final

import numpy as np
import numpy.typing as npt
from scipy import special

from howsure._version import __version__
from howsure.core.arrays import FloatArray, IntArray
from howsure.core.convert import json_number, plain
from howsure.core.formats import listed, percent, roughly
from howsure.core.records import Table
from howsure.figures.figure import REFERENCE, Axis, Figure, Layer, Mark
from howsure.metrics.calibration.components import legendre
from howsure.report.document import Choice, Document, Formed, Option, Section, Tone, VerdictLine
from howsure.stats.evidence import Bounds, by_closed_testing, change_point, evidence
from howsure.watch.ledger import LedgerState
from howsure.watch.quantities import ALL, COMPONENTS, day_in_words

LEVEL = 0.05
"""Chance that a promise that is kept is ever told broken."""
_ALL_ROWS = 0.5
"""Share of the capital on all rows; groups share the rest."""
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
    # how many rows count as one, by group and quantity; of other groups as of all rows
    worth: Mapping[str, Mapping[str, float]] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """As values that JSON knows."""
        return dict(plain(asdict(self), json_number))

    @classmethod
    def from_dict(cls, told: Mapping[str, Any]) -> Self:
        """What `as_dict` made."""
        given = dict(told)
        given["bounds"] = tuple(Bounds(**each) for each in given["bounds"])
        given["quantities"] = tuple(given["quantities"])
        given["coverage"] = math.nan if given["coverage"] is None else given["coverage"]
        return cls(**given)

    @property
    def sentence(self) -> str:
        """It in words."""
        told = f"Frozen: {self.rows:,} rows of {self.days:,} days; watched are "
        told += f"{listed(self.quantities)}"
        worth = max(self.worth.get(ALL, {}).values(), default=1.0)
        if not self.timed:
            return (
                f"{told}. Without times, rows are taken as independent, and each addition is a day."
            )
        if worth > _NOTEWORTHY:
            told += f"; as rows may depend, about {roughly(worth)} count as one"
        return f"{told}."

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
            "Reference": f"{promise.rows:,} rows of {promise.days:,} days",
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
        broken = {
            name: np.array(
                [getattr(each, name) for each in self.broken],
                dtype=object if name in names[:2] else np.float64,
            )
            for name in names
        }
        return Table(name="days", columns=days), Table(name="broken", columns=broken)

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
    groups = sorted({group for day, group in state.sums if day <= booked_to})
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
    shares = _shares(groups, size)
    logs = np.empty((len(groups), size, len(days)))
    for k, (name, bounds) in enumerate(zip(promise.quantities, promise.bounds, strict=True)):
        worth = np.array([promise.worth_of(group, name) for group in groups])
        logs[:, k] = evidence(sums[..., k], counts, bounds, worth, days)
    flat = logs.reshape(len(groups) * size, len(days))
    curve = (
        np.logaddexp.reduce(flat + np.log(shares)[:, None], axis=0) if len(days) else np.empty(0)
    )
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


def _shares(groups: list[str], size: int) -> FloatArray:
    """Shares of the capital: half on all rows, where there are groups besides."""
    others = len(groups) - 1
    own = 1.0 if others <= 0 else _ALL_ROWS
    share = [own if group == ALL else (1.0 - own) / max(others, 1) for group in groups]
    return np.repeat(np.array(share) / size, size)


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
    middle = promise.coverage if name == "coverage" else 0.0
    value = middle + mean
    spread = value * (1.0 - value) if name == "coverage" else bounds.variance
    reach = _Z * math.sqrt(max(spread, 1.0 / n) * worth / n)
    lower, upper = value - reach, value + reach
    if name == "coverage":
        lower, upper = max(lower, 0.0), min(upper, 1.0)
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
        span = f"{100 * lower:.0f}–{100 * upper:.0f}"
        return f"{percent(promise.coverage)} intervals cover {percent(value)} ({span})"
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
        return f"Broken on {when}: the promise does not hold as a whole, and no part is proven."
    more = (
        f" {len(broken) - 1} more {'is' if len(broken) == 2 else 'are'} proven."
        if broken[1:]
        else ""
    )
    first = broken[0].sentence
    return f"Broken on {when}: {first}{more}"


def _kept(promise: Promise, days: IntArray, counts: FloatArray, shares: FloatArray) -> str:
    rows = f"{len(days):,} day{'s' * (len(days) != 1)}, {int(counts.sum()):,} rows"
    told = f"Kept so far: {rows}, no departure"
    if "coverage" not in promise.quantities:
        return f"{told}."
    fallen = np.full(len(days), -math.inf)
    for k, mean in enumerate(_means_of_fall(promise)):
        name, bounds = promise.quantities[k], promise.bounds[k]
        worth = promise.worth_of(ALL, name)
        logs = evidence(mean * counts, counts, bounds, worth, days)
        fallen = np.logaddexp(fallen, logs + math.log(float(shares[k])))
    shown = np.flatnonzero(fallen >= -math.log(LEVEL))
    least = percent(promise.coverage - _FALL)
    if not len(shown):
        return f"{told}; had coverage fallen to {least}, this might not have shown yet."
    count = int(shown[0]) + 1
    return (
        f"{told}; had coverage fallen to {least}, this would probably have shown after {count:,} "
        f"day{'s' * (count != 1)}."
    )


def _means_of_fall(promise: Promise) -> list[float]:
    """Means of all quantities where coverage falls as normal errors grow."""
    here, there = (float(special.ndtri((1.0 + c) / 2.0)) for c in _fallen(promise.coverage))
    z = (np.arange(_POINTS) + 0.5) / _POINTS
    components = legendre(special.ndtr(special.ndtri(z) * here / there)).mean(axis=1)
    known = {"coverage": -_FALL, **dict(zip(COMPONENTS, components.tolist(), strict=True))}
    return [known[name] for name in promise.quantities]


def _fallen(coverage: float) -> tuple[float, float]:
    return coverage, max(coverage - _FALL, coverage / 2.0)


def _rest(waiting: int, open_rows: int, late: int) -> str:
    parts = []
    if open_rows:
        parts.append(f"{open_rows:,} rows are of days that are not booked yet")
    if waiting:
        parts.append(f"{waiting:,} predictions wait for y")
    if late:
        parts.append(f"{late:,} rows came too late and are left out")
    told = listed(parts) if parts else ""
    return f"{told[:1].upper()}{told[1:]}." if told else ""
