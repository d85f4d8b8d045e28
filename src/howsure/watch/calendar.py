"""The days of a watch: numbers of days, or dates as the clocks of their time zone show them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self, final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from howsure.core.arrays import IntArray
from howsure.core.errors import InputError
from howsure.inputs import values
from howsure.inputs.source import quoted

_LONGEST_GAP = 366
"""Days without rows: a wrong date farther on would book all days up to it as empty."""
_FIRST_GAP = 5 * 366  # days from a reference to the first rows, as a model may be watched late
_MOST_DAYS = 4_000_000  # to which days are numbered, so that seconds and 20240303 are none
_SHIFT = 60  # minutes by which clocks may be set to another time in the year


@final
@dataclass(frozen=True, slots=True, kw_only=True)
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
        elif zone and (zone[0] < self.zone[0] - _SHIFT or zone[1] > self.zone[1] + _SHIFT):
            wanted = "times of one time zone"
        if wanted:
            raise InputError(
                f"column {quoted(self.column)} must hold {wanted}, as the reference does, got "
                f"{times[0].as_py()}"
            )
        return days

    def check_near(self, titles: Sequence[tuple[str, IntArray]], latest: int | None) -> None:
        """Refuse days of tables that lie far from all before."""
        days = np.unique(np.concatenate([each for _, each in titles]))
        before = self.last if latest is None else max(self.last, latest)
        most = _FIRST_GAP if latest is None else _LONGEST_GAP
        if days[0] < self.first - _LONGEST_GAP:
            (title, *_) = (title for title, own in titles if days[0] in own)
            raise InputError(
                f"{title} must not lie over {_LONGEST_GAP} days before the reference, which begins "
                f"with {self.in_words(self.first)}, got {self.in_words(int(days[0]))}"
            )
        for day in days[days > before].tolist():
            if day > before + most:
                (title, *_) = (title for title, own in titles if day in own)
                raise InputError(
                    f"{title} must not reach over {most:,} days beyond the last day before "
                    f"({self.in_words(before)}), got {self.in_words(day)}: days between would be "
                    "booked as empty"
                )
            before, most = day, _LONGEST_GAP

    def in_words(self, day: int) -> str:
        """A day for people."""
        return str(np.datetime64(day, "D")) if self.dated else f"day {day}"


def _days_of(column: pa.ChunkedArray, name: str) -> tuple[bool, tuple[int, ...], IntArray]:
    """Whether times are dates, how far clocks are ahead of UTC, and the number of each day."""
    times: npt.NDArray[Any] = values.times(column, name)
    if values.absent(times).any():
        raise InputError(f"column {quoted(name)} must hold a time in each row")
    if times.dtype.kind != "M":
        far = np.abs(times) > _MOST_DAYS
        if far.any():
            raise InputError(
                f"column {quoted(name)} must hold dates or numbers of days, which are at most "
                f"{_MOST_DAYS:,}, got {times[far][0]:.15g}; write seconds and numbers such as "
                "20240229 as dates, 2024-02-29"
            )
        return False, (), np.floor(times).astype(np.int64)
    local = values.clock_times(column, name)
    if local is None:
        return True, (), times.astype("datetime64[D]").astype(np.int64)
    ahead = (local - times).astype("timedelta64[s]").astype(np.int64) / 60
    zone = (math.floor(ahead.min()), math.ceil(ahead.max()))
    return True, zone, local.astype("datetime64[D]").astype(np.int64)
