"""One pass over a table: the states of its pieces, merged in their order."""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa

from howsure.core.errors import InputError
from howsure.core.progress import report_progress
from howsure.engine.view import choose_coverages
from howsure.inputs.batches import Batch, ReadPlan
from howsure.inputs.parts import Piece
from howsure.inputs.places import Manifest, ReadFile, key_of
from howsure.inputs.tables import Scan
from howsure.predictions import EvalSet
from howsure.streaming.engine import done_in_order
from howsure.streaming.overlap import Sketch
from howsure.streaming.sample import ROWS, Sample, content_hashes, first_bound
from howsure.streaming.state import State, added_up
from howsure.streaming.totals import SufficientStatistics

BLOCKS = 2**16
"""Blocks that the time from the first row to the last is cut into, about."""


@dataclass(frozen=True, slots=True)
class PieceWork:
    """What is done with every piece."""

    reading: ReadPlan
    coverages: tuple[float, ...]
    seed: int
    most: int
    block: float
    bound: float
    many: bool = False

    def to_dict(self, from_text: bool = False) -> dict[str, Any]:
        """What states must share to be merged."""
        return {
            **self.reading.to_dict(),
            "from_text": from_text,
            "coverages": list(self.coverages),
            "seed": self.seed,
            "sample": self.most,
        }

    def state(self, batch: Batch, piece: Piece) -> State:
        """The state of some rows."""
        hashes = content_hashes(batch.evalsets)
        lacking_y, without_y = _lacking_y(batch, self.most, self.seed)
        return State(
            models=tuple(
                SufficientStatistics.of(evalset, self.coverages, self.block)
                for evalset in batch.evalsets
            ),
            sample=Sample.of(
                self._named(batch, piece),
                batch.evalsets,
                most=self.most,
                seed=self.seed,
                block=self.block,
                bound=self.bound,
                hashes=hashes,
            ),
            manifest=Manifest(files=(piece.read_file(batch.rows, key_of(hashes)),)),
            sketch=Sketch.of(hashes),
            rows=batch.rows,
            dropped=batch.dropped,
            dropped_by=batch.dropped_by,
            reading=self.to_dict(piece.from_text),
            lacking_y=lacking_y,
            without_y=without_y,
        )

    def _named(self, batch: Batch, piece: Piece) -> pa.Table:
        """The rows of a batch with their places, where nothing else names them."""
        if self.reading.roles["rows"]:
            return batch.table
        row, file = place_names(self.reading)
        held = batch.table.append_column(row, pa.array(batch.evalsets[0].row_names()))
        if not self.many:
            return held
        codes = pa.array(np.zeros(held.num_rows, dtype=np.int32))
        name = pa.array([os.path.basename(piece.file)])
        return held.append_column(file, pa.DictionaryArray.from_arrays(codes, name))

    def __call__(self, piece: Piece) -> pa.Table:
        """The state of a piece, as a table; one of no columns where no row is left."""
        waiting: list[tuple[int, State]] = []
        unused = _NOTHING
        for batch in piece.batches(self.reading):
            if not batch.evalsets:
                unused = unused.joined(_Unused.of(batch, self.most, self.seed))
                continue
            state, size = self.state(batch, piece), 1
            # equals are merged, as in a tree, so that no large state is merged often
            while waiting and waiting[-1][0] == size:
                state, size = waiting.pop()[1].joined(state), 2 * size
            waiting.append((size, state))
        if not waiting:
            return unused.to_arrow()
        held = [state for _, state in waiting]
        whole = unused.added(held[0].joined(*held[1:]))
        read = Manifest(files=(piece.read_file(unused.rows, ""),))
        return replace(whole, manifest=whole.manifest.joined(read)).to_arrow()


def _lacking_y(batch: Batch, most: int, seed: int) -> tuple[int, Sample | None]:
    """How many rows of a batch lack y alone, and some of these."""
    if batch.bare is None:
        return 0, None
    return batch.bare.num_rows, Sample.of_cells(batch.bare, most=most, seed=seed)


_UNUSED: Final = b"unused"


class _Unused(NamedTuple):
    """Rows of batches that hold none to assess."""

    rows: int = 0
    dropped: int = 0
    dropped_by: Mapping[str, int] = MappingProxyType({})
    lacking_y: int = 0
    without_y: Sample | None = None

    @classmethod
    def of(cls, batch: Batch, most: int, seed: int) -> _Unused:
        """Those of one batch."""
        lacking_y = _lacking_y(batch, most, seed)
        return cls(batch.rows, batch.dropped, batch.dropped_by, *lacking_y)

    def joined(self, other: _Unused) -> _Unused:
        """With those of other batches."""
        return _Unused(**added_up((self, other)))

    def added(self, state: State) -> State:
        """A state with these rows counted."""
        return replace(state, **added_up((state, self)))

    def to_arrow(self) -> pa.Table:
        """The sample of rows without y, with the counts in its metadata."""
        counts = [self.rows, self.dropped, dict(self.dropped_by), self.lacking_y]
        rows = pa.table({}) if self.without_y is None else self.without_y.table
        return rows.replace_schema_metadata({_UNUSED: json.dumps(counts)})

    @classmethod
    def from_arrow(cls, table: pa.Table, most: int, seed: int) -> _Unused:
        """What `to_arrow` made a table of; rows have the numbers that they had."""
        rows, dropped, dropped_by, lacking_y = json.loads(table.schema.metadata[_UNUSED])
        sample = Sample.of_cells(table, most=most, seed=seed) if table.num_columns else None
        return cls(rows, dropped, dropped_by, lacking_y, sample)


_NOTHING: Final = _Unused()


def scan_table(
    cut: Scan,
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

    def task_for(first: Sequence[EvalSet]) -> PieceWork:
        return PieceWork(
            reading=cut.reading,
            coverages=tuple(coverages) or choose_coverages(first[0]),
            seed=seed,
            most=most,
            block=block_width(*spans),
            bound=first_bound(most, cut.rows if cut.reading.missing == "error" else None),
            many=many,
        )

    merged: list[State] = []
    read: list[ReadFile] = []
    unused = _NOTHING

    def take(state: State) -> None:
        read.extend(state.manifest.files)  # put together at last, for they may be many
        _fold(merged, replace(state, manifest=Manifest()))

    def count(rows: _Unused, piece: Piece) -> None:
        nonlocal unused
        unused = unused.joined(rows)
        read.append(piece.read_file(rows.rows, ""))

    if not cut.again:  # only this process can read it
        task, done = None, 0
        for piece in cut.pieces:
            for batch in piece.batches(cut.reading):
                done += batch.rows
                report_progress("rows", done, cut.rows or 0)
                if batch.evalsets:
                    task = task or task_for(batch.evalsets)
                    take(task.state(batch, piece))
                else:
                    count(_Unused.of(batch, most, seed), piece)
    else:
        first = next(
            (b.evalsets for p in cut.pieces for b in p.batches(cut.reading) if b.evalsets), None
        )
        if first is None:
            raise InputError(f"{cut.title}: a row without missing cells is needed, got none")
        task = task_for(first)
        work = repr((task.to_dict(), task.block, task.bound))
        tables = done_in_order(
            task,
            cut.pieces,
            identities=[identity_with(piece.identity, work) for piece in cut.pieces],
            jobs=jobs,
            scheduler=scheduler,
            resume=resume,
            stage="rows",
            sizes=[piece.rows or 1 for piece in cut.pieces],
        )
        with closing(tables):
            for piece, table in zip(cut.pieces, tables, strict=True):
                if _UNUSED in table.schema.metadata:
                    count(_Unused.from_arrow(table, most, seed), piece)
                else:
                    take(State.from_arrow(table))
    if not merged:
        raise InputError(f"{cut.title}: a row without missing cells is needed, got none")
    whole = unused.added(merged[0].joined(*merged[1:]))
    return replace(whole, manifest=cut.manifest(read))


def place_names(reading: ReadPlan) -> tuple[str, str]:
    """The columns of a sample for where a row stands in its file, and for which file that is."""
    row, file = "howsure_row", "howsure_file"
    while {row, file} & reading.kinds.keys():
        row, file = f"{row}_", f"{file}_"
    return row, file


def _fold(merged: list[State], state: State) -> None:
    """Take a state in, and merge whenever a few wait: a sample is costly to merge."""
    merged.append(state)
    if len(merged) == 8:
        merged[:] = [merged[0].joined(*merged[1:])]


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


def identity_with(piece: str, told: str) -> str:
    """What decides the state of a piece; empty where it cannot be kept."""
    return hashlib.sha256(f"{piece}\x1f{told}".encode()).hexdigest() if piece else ""
