"""What a reference froze: what is watched, how far off, its days, and how tables are read."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Annotated, Any, Literal, Self, final

import numpy as np
import pyarrow as pa

from howsure.core.arrays import AnyArray, IntArray
from howsure.core.classes import frozen
from howsure.core.convert import Bound, Finite, Natural, NonNegative, check_fields, checked
from howsure.core.errors import InputError
from howsure.core.formats import listed, roughly
from howsure.core.text import quoted
from howsure.inputs import values
from howsure.inputs.cells import Crossing
from howsure.inputs.matching import Missing
from howsure.predictions import EvalSet
from howsure.stats.evidence import Bounds
from howsure.watch.quantities import ALL, CLASSES, COMPONENTS, UsualError
from howsure.watch.running import Running
from howsure.watch.selected import Strata

# It decides words alone: when rows depend so much that it must be known.
_MIN_WORTH_TOLD = 5.0
_QUANTITIES = ("coverage", *COMPONENTS, *CLASSES, "error")
ROW_ROLES = ("weights", "time", "series", "ease", "cluster")
"""Roles of one column, of what is known of a row beside its prediction."""
SEVERAL_COLUMNS = ("lower", "upper", "samples", "quantiles", "softmax", "groups", "features")
COLUMN_ROLES = (
    *("y", "point", "mean", "sd", "variance", "stated_confidence"),
    *(*ROW_ROLES, *SEVERAL_COLUMNS),
)
"""Roles of columns of a reference, and those of which there may be several columns."""
_ROLES: Mapping[str, Any] = {
    **dict.fromkeys((*COLUMN_ROLES, "law", "weights_kind"), str),
    **dict.fromkeys(SEVERAL_COLUMNS, tuple[str, ...]),
    **dict.fromkeys(("coverage", "missing_value"), tuple[float, ...]),
}
"""Roles that `Watch.init` writes, which are those that are read: none names code."""
_READING: Mapping[str, Any] = {
    "missing": Missing,
    "crossing": Crossing,
    "encoding": str | None,
    "decimal": Literal[".", ","],
}


@final
@frozen(kw_only=True)
class Promise:
    """What the reference froze. A ledger may hold another's: nothing of it is taken unchecked."""

    howsure: str  # version that wrote it
    model: str
    quantities: tuple[str, ...]
    bounds: tuple[Bounds, ...]  # of each quantity
    coverage: float  # nominal; NaN where none is watched
    tolerance: NonNegative
    mature: Natural  # days until a day is booked
    columns: Mapping[str, Any]  # as `howsure.load` is told
    # what to do with missing cells and crossing quantiles, encoding and decimal mark, as it is too
    reading: Mapping[str, str | None]
    row_id: str  # column of names; empty where rows do not wait
    recurring: bool  # whether one name stands for rows of several days
    calendar: Calendar | None  # of times; None where there are none: then each addition is a day
    rows: Natural  # of the reference
    dropped: Natural  # rows of it that were left out, as cells are missing
    days: Natural
    groups: tuple[str, ...]  # as column=value
    # how many rows count as one, by group and quantity; of other groups as of all rows
    worth: Mapping[str, Mapping[str, Annotated[float, Bound(1.0)]]] = field(default_factory=dict)
    usual: UsualError | None = None  # of models of which nothing else can be watched
    centre: Finite = 0.0  # of class probabilities, the mean log-odds
    reference: str = ""  # where its inputs stand; empty where there are none
    names: str = ""  # where the names of its rows stand; empty where there are none
    digest: str = ""  # of its rows, where they have no names
    strata: Strata | None = None  # of promises whose rows may wait for y
    running: Running | None = None  # as it begins, where coverage is watched
    flaw: str = ""  # in which way the reference itself does not keep it; empty where it does

    def __post_init__(self) -> None:
        check_fields(self, " of the promise")
        for name, kinds in (("columns", _ROLES), ("reading", _READING)):
            values = getattr(self, name)
            if foreign := sorted(values.keys() - kinds.keys()):
                raise InputError(f"{name} of the promise must not contain {foreign[0]!r}")
            fitted = {key: checked(values[key], kinds[key], f"{key} of {name}") for key in values}
            object.__setattr__(self, name, fitted)
        strata = self.strata
        fits = {
            "y": "y" in self.columns,
            "calendar": getattr(self.calendar, "column", None) == self.columns.get("time")
            and len(getattr(self.calendar, "zone", ())) in (0, 2),
            "reading": self.reading.keys() == _READING.keys(),
            "quantities": len({*self.quantities} & {*_QUANTITIES}) == len(self.quantities) > 0,
            "bounds": len(self.bounds) == len(self.quantities),
            "coverage": "coverage" not in self.quantities or 0.0 < self.coverage < 1.0,
            "usual": "error" not in self.quantities or self.usual is not None,
            "strata": strata is None or len(strata.means) == len(self.quantities),
        }
        for name, is_right in fits.items():
            if not is_right:
                raise InputError(f"{name} of the promise must match the rest of it")

    @property
    def sentence(self) -> str:
        """What is monitored, in words."""
        text = f"Reference saved ({self.rows:,} rows). Monitored: {listed(self.quantities)}."
        if self.dropped:
            rows = "1 row is" if self.dropped == 1 else f"{self.dropped:,} rows are"
            text += f" {rows} left out because of missing cells."
        worth = max(self.worth.get(ALL, {}).values(), default=1.0)
        if not self.timed and not self.worth:
            text += " Without times, rows are taken as independent, and each addition as one day."
        elif worth > _MIN_WORTH_TOLD:
            text += f" Rows are dependent: up to {roughly(worth)} count as one independent row."
        if self.flaw:
            text += f" The reference itself has a fault: {self.flaw}"
        return text

    @property
    def timed(self) -> bool:
        """Whether rows have times."""
        return self.calendar is not None

    @property
    def dated(self) -> bool:
        """Whether these are dates."""
        return self.calendar is not None and self.calendar.dated

    @property
    def y(self) -> str:
        """The column of y."""
        return str(self.columns["y"])

    def needed(self) -> list[str]:
        """Columns of predictions."""
        names: list[str] = []
        for role in ("point", "mean", "sd", "variance", "stated_confidence"):
            names += [self.columns[role]] if role in self.columns else []
        for role in ("lower", "upper", "samples", "softmax"):
            names += self.columns.get(role, [])
        names += [text.partition("=")[2] for text in self.columns.get("quantiles", [])]
        if "law" in self.columns:
            pairs = self.columns["law"].partition(":")[2].split(",")
            values = [pair.partition("=")[2] for pair in pairs]
            names += [value for value in values if not _is_number(value)]
        return list(dict.fromkeys(names))

    def other_columns(self) -> list[str]:
        """Columns of groups, inputs, time, series, weights and clusters."""
        names = [*self.columns.get("groups", []), *self.columns.get("features", [])]
        names += [self.columns[role] for role in ROW_ROLES if role in self.columns]
        return list(dict.fromkeys(names))

    def cells(self) -> list[str]:
        """All columns that are read of rows, but for their names."""
        return list(dict.fromkeys([self.y, *self.needed(), *self.other_columns()]))

    def day_in_words(self, day: int) -> str:
        """A day for people."""
        return f"day {day}" if self.calendar is None else self.calendar.in_words(day)

    def strata_of(self, rows: EvalSet) -> IntArray | None:
        """The stratum of each row; None where there are none."""
        return None if self.strata is None else self.strata.of(rows, self.coverage)

    def booked_to(self, latest: int | None) -> float:
        """The last day that is booked once rows of some day were seen."""
        return -math.inf if latest is None else latest - self.mature

    def forgotten_to(self, latest: int | None) -> float:
        """The last day whose rows wait no more for y; without times they always do."""
        return self.booked_to(latest) if self.timed else -math.inf

    def worth_of(self, group: str, quantity: str) -> float:
        """How many rows of a group count as one."""
        worths = self.worth.get(group, self.worth.get(ALL, {}))
        return float(worths.get(quantity, 1.0))


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


# ---- the days of a watch: numbers of days, or dates as the clocks of their time zone show them ---

# Days without rows: a wrong date farther on would book all days up to it as empty. A year, as no
# table that is added yearly may be refused.
_MAX_DAYS_OF_GAP = 366
_MAX_DAYS_TO_FIRST = (
    5 * 366
)  # days from a reference to the first rows, as a model may be watched late
_MAX_DAY = 4_000_000  # to which days are numbered, so that seconds and 20240303 are none
_MINUTES_OF_SHIFT = 60  # minutes by which clocks may be set to another time in the year


@final
@frozen(kw_only=True)
class Calendar:
    """Of which kind a reference's times are, and its days."""

    column: str
    dated: bool  # whether they are dates; else numbers of days
    # of dates by how many minutes clocks are ahead of UTC, at least and at most; empty where no
    # time zone is named
    zone: tuple[int, ...]
    first: int
    last: int

    @classmethod
    def of(cls, times: pa.ChunkedArray, column: str) -> tuple[Self, IntArray]:
        """That of a reference's times, and the day of each."""
        dated, zone, days = _days_of(times, column)
        first, last = int(days.min()), int(days.max())
        return cls(column=column, dated=dated, zone=zone, first=first, last=last), days

    def days(self, times: pa.ChunkedArray) -> IntArray:
        """The day of each row; an error unless times are of the reference's kind and zone."""
        dated, zone, days = _days_of(times, self.column)
        wanted = ""
        if dated != self.dated:
            wanted = "dates such as 2024-02-29" if self.dated else "numbers of days"
        elif bool(zone) != bool(self.zone):
            wanted = f"times with{'' if self.zone else 'out'} a time zone"
        elif zone and (
            zone[0] < self.zone[0] - _MINUTES_OF_SHIFT or zone[1] > self.zone[1] + _MINUTES_OF_SHIFT
        ):
            wanted = "times of one time zone"
        if wanted:
            raise InputError(
                f"column {quoted(self.column)} must contain {wanted}, like the reference, got "
                f"{times[0].as_py()}"
            )
        return days

    def check_near(self, titles: Sequence[tuple[str, IntArray]], latest: int | None) -> None:
        """Refuse days of tables that lie far from all before."""
        days = np.unique(np.concatenate([table_days for _, table_days in titles]))
        before = self.last if latest is None else max(self.last, latest)
        most = _MAX_DAYS_TO_FIRST if latest is None else _MAX_DAYS_OF_GAP
        if days[0] < self.first - _MAX_DAYS_OF_GAP:
            (title, *_) = (title for title, title_days in titles if days[0] in title_days)
            raise InputError(
                f"{title} must not be more than {_MAX_DAYS_OF_GAP} days before the reference, "
                f"which begins on {self.in_words(self.first)}, got {self.in_words(int(days[0]))}"
            )
        for day in days[days > before].tolist():
            if day > before + most:
                (title, *_) = (title for title, title_days in titles if day in title_days)
                raise InputError(
                    f"{title} must not be more than {most:,} days after the last day before "
                    f"({self.in_words(before)}), got {self.in_words(day)}: days between would be "
                    "evaluated as empty"
                )
            before, most = day, _MAX_DAYS_OF_GAP

    def in_words(self, day: int) -> str:
        """A day for people."""
        return str(np.datetime64(day, "D")) if self.dated else f"day {day}"


def _days_of(column: pa.ChunkedArray, name: str) -> tuple[bool, tuple[int, ...], IntArray]:
    """Whether times are dates, how far clocks are ahead of UTC, and the number of each day."""
    times: AnyArray = values.times(column, name)
    if values.absent(times).any():
        raise InputError(f"column {quoted(name)} must have a time in each row")
    if times.dtype.kind != "M":
        far = np.abs(times) > _MAX_DAY
        if far.any():
            raise InputError(
                f"column {quoted(name)} must contain dates or numbers of days, at most "
                f"{_MAX_DAY:,}, got {times[far][0]:.15g}; write seconds and numbers such as "
                "20240229 as dates, 2024-02-29"
            )
        return False, (), np.floor(times).astype(np.int64)
    local = values.clock_times(column, name)
    if local is None:
        return True, (), times.astype("datetime64[D]").astype(np.int64)
    ahead = (local - times).astype("timedelta64[s]").astype(np.int64) / 60
    zone = (math.floor(ahead.min()), math.ceil(ahead.max()))
    return True, zone, local.astype("datetime64[D]").astype(np.int64)
