"""What one addition comes to, while its tables are read."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import final

import numpy as np
import pyarrow as pa

from howsure.core.arrays import BoolArray, FloatArray, IntArray
from howsure.core.classes import frozen
from howsure.core.text import CountedNote
from howsure.inputs.source import listed
from howsure.watch.ledger import DAY, HASH, LedgerEntry, LedgerState, RowNames, row_keys
from howsure.watch.quantities import DaySums


@final
@frozen(kw_only=True)
class Booked:
    """The result of one addition.

    Attributes
    ----------
    rows : int
        Added rows with y, including predictions whose y arrived.
    waiting : int
        Predictions that wait for y.
    late : int
        Rows of days that were already evaluated, which are left out.
    unknown : int
        Labels without a waiting prediction.
    again : int
        Rows that were added before, which change nothing.
    changed : int
        Of these, rows with a different y; the first is used.
    dropped : int
        Rows that are left out because of missing cells.
    """

    rows: int
    waiting: int
    late: int
    unknown: int
    again: int
    changed: int
    dropped: int

    @property
    def sentence(self) -> str:
        """The result in words."""
        more = (
            (self.waiting, "prediction", " without y yet"),
            (self.late, "row", " too late (their days were already evaluated)"),
            (self.unknown, "label", " without a waiting prediction"),
        )
        notes = [CountedNote.of(self.rows, "row", " with y")]
        notes += [CountedNote.of(*counted) for counted in more if counted[0]]
        if self.again:
            notes.append(self.came_before)
        if self.dropped:
            notes.append(CountedNote.of(self.dropped, "row", " left out because of missing cells"))
        return f"Added: {'; '.join(notes)}."

    @property
    def came_before(self) -> CountedNote:
        """Rows that came before, in words."""
        changed = f" ({self.changed:,} with a different y now; the first is used)"
        return CountedNote.of(self.again, "row", f" added before{changed if self.changed else ''}")


@final
@frozen(kw_only=True, eq=False)
class NamedOutcomes:
    """y alone, of rows by their names."""

    title: str  # of its table
    hashes: IntArray  # of names
    days: IntArray | None  # None where the table does not tell them
    y: FloatArray


@final
@dataclass(slots=True, kw_only=True, eq=False)
class Arrivals:
    """What the tables of an addition have brought so far."""

    waiting: list[pa.Table]  # predictions that waited before
    waits: list[pa.Table] = field(default_factory=list)  # predictions that wait now
    sums: LedgerState = field(default_factory=LedgerState)
    titles: list[str] = field(default_factory=list)  # of tables
    days: list[tuple[str, IntArray]] = field(default_factory=list)  # of each table by its title
    digests: list[str] = field(default_factory=list)  # of tables whose rows have no names
    names: list[RowNames] = field(default_factory=list)  # of rows that are booked or late
    named_days: set[int] = field(default_factory=set)  # of these
    known: dict[str, RowNames] = field(default_factory=dict)  # names that were read, by place
    # keys and y of rows that wait
    outcomes: list[tuple[IntArray, FloatArray]] = field(default_factory=list)
    resolved: int = 0
    unknown: int = 0
    again: int = 0
    changed: int = 0
    dropped: int = 0

    @property
    def title(self) -> str:
        """What to call the tables in messages."""
        return self.titles[0] if len(self.titles) == 1 else listed(self.titles)

    @property
    def waiting_names(self) -> tuple[IntArray, IntArray]:
        """Hashes and days of all predictions that wait."""
        tables = [*self.waiting, *self.waits]
        none = np.empty(0, dtype=np.int64)
        hashes, days = (
            np.concatenate([none, *(table[name].to_numpy() for table in tables)])
            for name in (HASH, DAY)
        )
        return hashes, days

    def waits_for(self, keys: IntArray) -> BoolArray:
        """Which rows wait for y."""
        return np.isin(keys, row_keys(*self.waiting_names))

    def add_names(self, keys: IntArray, days: IntArray, y: FloatArray) -> None:
        """Rows that are booked or came too late; their y is NaN where it is not known."""
        self.names.append(RowNames.of(keys, y))
        self.named_days.update(np.unique(days).tolist())

    def booked(self) -> Booked:
        """What it comes to."""
        return Booked(
            rows=self.sums.rows,
            waiting=sum(table.num_rows for table in self.waits),
            late=self.sums.late,
            unknown=self.unknown,
            again=self.again,
            changed=self.changed,
            dropped=self.dropped,
        )

    def entry(self) -> LedgerEntry:
        """The sums of all tables as one entry."""
        sums = self.sums
        return LedgerEntry(
            sums=tuple(
                DaySums(day=day, group=group, stratum=stratum, rows=rows, n=n, sums=np.array(total))
                for (day, group, stratum), (rows, n, *total) in sums.sums.items()
            ),
            latest=sums.latest,
            digests=tuple(self.digests),
            rows=sums.rows,
            late=sums.late,
            days=tuple(sorted(self.named_days)),
            resolved=self.resolved,
            scores=tuple((day, *total.tolist()) for day, total in sums.scores.items()),
            ratios=tuple(
                (day, cell, *ratio[:, cell].tolist())
                for day, ratio in sums.ratios.items()
                for cell in np.flatnonzero(ratio[0]).tolist()
            ),
        )
