"""One pass over a table: the states of its pieces, merged in their order."""

from __future__ import annotations

import hashlib
import math
import os
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from howsure.core.errors import InputError
from howsure.core.progress import tell
from howsure.inputs.batches import Batch, Reading
from howsure.inputs.parts import Piece
from howsure.inputs.pieces import Cut
from howsure.metrics.view import choose_coverages
from howsure.predictions import EvalSet
from howsure.streaming.engine import done_in_order
from howsure.streaming.sample import ROWS, Sample, first_bound
from howsure.streaming.state import State
from howsure.streaming.totals import Totals

ROW = "howsure_row"
"""The column of a sample that says where each row stands in its file."""
FILE = "howsure_file"
"""And the one that says in which, of several."""
BLOCKS = 2**16
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
    many: bool = False

    def told(self, from_text: bool = False) -> dict[str, Any]:
        """What states must share to be merged."""
        return {
            **self.reading.told(),
            "from_text": from_text,
            "coverages": list(self.coverages),
            "seed": self.seed,
            "sample": self.most,
        }

    def states(self, piece: Piece) -> Iterator[State]:
        """The state of each batch."""
        for batch in piece.batches(self.reading):
            if batch.evalsets:
                yield self.state(batch, piece)

    def state(self, batch: Batch, piece: Piece) -> State:
        """The state of some rows."""
        return State(
            models=tuple(Totals.of(held, self.coverages, self.block) for held in batch.evalsets),
            sample=Sample.of(
                self._named(batch, piece),
                batch.evalsets,
                most=self.most,
                seed=self.seed,
                block=self.block,
                bound=self.bound,
            ),
            rows=batch.rows,
            dropped=batch.dropped,
            dropped_by=batch.dropped_by,
            reading=self.told(piece.from_text),
        )

    def _named(self, batch: Batch, piece: Piece) -> pa.Table:
        """The rows of a batch with their places, where nothing else names them."""
        if self.reading.roles["rows"]:
            return batch.table
        held = batch.table.append_column(ROW, pa.array(batch.evalsets[0].row_names()))
        if not self.many:
            return held
        codes = pa.array(np.zeros(held.num_rows, dtype=np.int32))
        name = pa.array([os.path.basename(piece.file)])
        return held.append_column(FILE, pa.DictionaryArray.from_arrays(codes, name))

    def __call__(self, piece: Piece) -> pa.Table:
        """The state of a piece, as a table; an empty one of a piece without rows."""
        waiting: list[tuple[int, State]] = []
        for state in self.states(piece):
            size = 1  # equals are merged, as in a tree, so that no large state is merged often
            while waiting and waiting[-1][0] == size:
                state, size = waiting.pop()[1].merged(state), 2 * size
            waiting.append((size, state))
        if not waiting:
            return pa.table({})
        held = [state for _, state in waiting]
        return held[0].merged(*held[1:]).to_arrow()


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
    spans = cut.time_range, cut.reading.moments
    many = len({piece.file for piece in cut.pieces}) > 1

    def task_for(first: Sequence[EvalSet]) -> Task:
        return Task(
            reading=cut.reading,
            coverages=tuple(coverages) or choose_coverages(first[0]),
            seed=seed,
            most=most,
            block=block_width(*spans),
            bound=first_bound(most, cut.rows if cut.reading.missing == "error" else None),
            many=many,
        )

    merged: list[State] = []
    if not cut.again:  # only this process can read it
        task, done = None, 0
        for piece in cut.pieces:
            for batch in piece.batches(cut.reading):
                done += batch.rows
                tell("rows", done, cut.rows or 0)
                if batch.evalsets:
                    task = task or task_for(batch.evalsets)
                    _fold(merged, task.state(batch, piece))
    else:
        first = next(
            (b.evalsets for p in cut.pieces for b in p.batches(cut.reading) if b.evalsets), None
        )
        if first is None:
            raise InputError(f"{cut.title}: a row without missing cells is needed, got none")
        task = task_for(first)
        told = repr((task.told(), task.block, task.bound))
        tables = done_in_order(
            task,
            cut.pieces,
            identities=[_identity(piece.identity, told) for piece in cut.pieces],
            jobs=jobs,
            scheduler=scheduler,
            resume=resume,
            stage="rows",
            sizes=[piece.rows or 1 for piece in cut.pieces],
        )
        with closing(tables):
            for table in tables:
                if table.num_columns:
                    _fold(merged, State.from_arrow(table))
    if not merged:
        raise InputError(f"{cut.title}: a row without missing cells is needed, got none")
    return merged[0] if len(merged) == 1 else merged[0].merged(*merged[1:])


def _fold(merged: list[State], state: State) -> None:
    """Take a state in, and merge whenever a few wait: a sample is costly to merge."""
    merged.append(state)
    if len(merged) == 8:
        merged[:] = [merged[0].merged(*merged[1:])]


def block_width(span: tuple[float, float] | None, unit: str | None = None) -> float:
    """The width of blocks of time: a power of two, so that those of other tables fit into it.

    `unit` is that of dates; blocks of dates are in seconds.
    """
    if span is None or not span[1] > span[0]:
        return 1.0
    length = (span[1] - span[0]) / BLOCKS
    if unit is not None:
        length *= float(np.array(1, f"m8[{unit}]") / np.array(1, "m8[s]"))
    return float(2.0 ** round(math.log2(length)))


def _identity(piece: str, told: str) -> str:
    """What decides the state of a piece; empty where it cannot be kept."""
    return hashlib.sha256(f"{piece}\x1f{told}".encode()).hexdigest() if piece else ""
