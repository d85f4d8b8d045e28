"""One pass over a table: the states of its pieces, merged in their order."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from howsure.core.errors import InputError
from howsure.core.progress import tell
from howsure.inputs.pieces import Cut, Piece, Reading
from howsure.metrics.view import choose_coverages
from howsure.streaming.engine import done_in_order
from howsure.streaming.sample import ROWS, Sample, first_bound
from howsure.streaming.state import State
from howsure.streaming.totals import Totals

BLOCKS = 4096
"""Blocks that the time from the first row to the last is cut into, about."""


@dataclass(frozen=True, slots=True)
class Task:
    """What is done with every piece."""

    reading: Reading
    coverages: tuple[float, ...]
    seed: int
    most: int
    block: float
    bound: float

    def told(self) -> dict[str, Any]:
        """What states must share to be merged."""
        return {
            **self.reading.told(),
            "coverages": list(self.coverages),
            "seed": self.seed,
            "sample": self.most,
        }

    def states(self, piece: Piece) -> Iterator[State]:
        """The state of each batch."""
        for batch in piece.batches(self.reading):
            if not batch.evalsets or batch.evalsets[0].n == 0:
                continue
            yield State(
                models=tuple(
                    Totals.of(held, self.coverages, self.block) for held in batch.evalsets
                ),
                sample=Sample.of(
                    batch.table,
                    batch.evalsets,
                    most=self.most,
                    seed=self.seed,
                    block=self.block,
                    bound=self.bound,
                ),
                rows=batch.rows,
                dropped=batch.dropped,
                dropped_by=batch.dropped_by,
                reading=self.told(),
            )

    def __call__(self, piece: Piece) -> pa.Table:
        """The state of a piece, as a table; an empty one of a piece without rows."""
        found: State | None = None
        for state in self.states(piece):
            found = state if found is None else found.merged(state)
        return pa.table({}) if found is None else found.to_arrow()


def scan_table(
    cut: Cut,
    *,
    coverages: Sequence[float] = (),
    seed: int = 0,
    most: int = ROWS,
    jobs: int | None = None,
    scheduler: Any = None,
    resume: Path | None = None,
) -> State:
    """The state of a whole table, by pieces, on all cores or on a cluster.

    Raises
    ------
    InputError
        If a piece cannot be read, or no row is left.
    """
    if not coverages:
        coverages = choose_coverages(cut.first[0])
    task = Task(
        reading=cut.reading,
        coverages=tuple(coverages),
        seed=seed,
        most=most,
        block=block_width(cut.time_range),
        bound=first_bound(most, cut.rows),
    )
    merged: list[State] = []
    if cut.again:
        pieces = list(cut.pieces)
        told = repr((task.told(), task.block, task.bound))
        tables = done_in_order(
            task,
            pieces,
            identities=[_identity(piece.identity, told) for piece in pieces],
            jobs=jobs,
            scheduler=scheduler,
            resume=resume,
            stage="rows",
            sizes=[piece.rows or 1 for piece in pieces],
        )
        for table in tables:
            if table.num_columns:
                _fold(merged, State.from_arrow(table))
    else:
        done = 0
        for piece in cut.pieces:
            for state in task.states(piece):  # which only this process can read
                done += state.rows
                tell("rows", done, cut.rows or 0)
                _fold(merged, state)
    if not merged:
        raise InputError(f"{cut.title}: the table holds columns but no rows")
    return merged[0] if len(merged) == 1 else merged[0].merged(*merged[1:])


def _fold(merged: list[State], state: State) -> None:
    """Take a state in, and merge whenever a few wait: a sample is costly to merge."""
    merged.append(state)
    if len(merged) == 8:
        merged[:] = [merged[0].merged(*merged[1:])]


def block_width(span: tuple[float, float] | None) -> float:
    """The width of blocks of time: a power of two, so that those of other tables fit into it."""
    if span is None or not span[1] > span[0]:
        return 1.0
    return float(2.0 ** round(math.log2((span[1] - span[0]) / BLOCKS)))


def _identity(piece: str, told: str) -> str:
    """What decides the state of a piece; empty where it cannot be kept."""
    return hashlib.sha256(f"{piece}\x1f{told}".encode()).hexdigest() if piece else ""
