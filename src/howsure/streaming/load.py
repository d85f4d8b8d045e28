"""A table of any size as what assessments take: whole, or a sample with the totals of all rows."""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple, Unpack

import numpy as np
import pyarrow as pa

from howsure.core.arrays import AnyArray
from howsure.core.classes import frozen
from howsure.core.errors import InputError
from howsure.core.progress import report_progress
from howsure.core.weights import Weights
from howsure.engine.view import choose_coverages
from howsure.inputs import Loaded, load
from howsure.inputs.batches import Batch, ReadPlan
from howsure.inputs.cells import Crossing
from howsure.inputs.matching import Missing
from howsure.inputs.parts import Piece, StreamPiece
from howsure.inputs.places import Manifest, ReadFile, key_of
from howsure.inputs.roles import Columns
from howsure.inputs.sources import extent, is_huge
from howsure.inputs.tables import Scan, cut
from howsure.inputs.values import together, written_out
from howsure.predictions import EvalSet
from howsure.streaming.engine import Kept, done_in_order
from howsure.streaming.large import ROWS_AT_ONCE
from howsure.streaming.large import Large as Large
from howsure.streaming.sample import ROWS_OF_SAMPLE, Sample, Sketch, content_hashes, first_bound
from howsure.streaming.state import State, added_up
from howsure.streaming.totals import SufficientStatistics


def load_parts(
    source: Any,
    *,
    large: Large | None = None,
    seed: int = 0,
    at: Sequence[float] = (),
    missing: Missing = "error",
    crossing: Crossing = "error",
    encoding: str | None = None,
    decimal: str = ".",
    **columns: Unpack[Columns],
) -> Loaded:
    """Read a table of any size: whole if it is small, else a sample and the totals of all rows.

    Parameters
    ----------
    source : path, pattern, address, dataset, lazy frame or iterator
        A file; a folder of files, or a pattern such as ``preds/*.parquet``, with hive partitions;
        any of these at an address that fsspec knows; or what yields Arrow batches: a relation of
        DuckDB, a lazy frame of Polars, a data frame of Dask, a dataset of Ray or Arrow, an
        iterator of batches or data frames.
    large : Large, optional
        Memory, processes, a cluster; where the state is kept.
    seed : int
        Fixes the sample.
    at : sequence of float
        Coverages to assess, where the predictions allow any.
    missing, crossing, encoding, decimal, columns
        As in `howsure.load`.

    Returns
    -------
    Loaded

    Raises
    ------
    InputError
        If a part cannot be read, or is read otherwise than the first.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> def days():
    ...     for day in range(3):
    ...         y = rng.normal(size=1000)
    ...         yield pa.table({"y": y, "mean": np.zeros(1000), "sd": np.ones(1000)})
    >>> load_parts(days()).evalsets[0].n
    3000
    """
    large = large or Large()
    state = large.state
    coverage = columns.get("coverage")
    assessed = at or ((coverage,) if isinstance(coverage, float) else coverage) or ()
    options: dict[str, Any] = {
        "missing": missing,
        "crossing": crossing,
        "encoding": encoding,
        "decimal": decimal,
        **columns,
    }
    if state is None and not is_huge(source, large.rows):
        return load(source, **options)
    scan = cut(source, batch_rows=ROWS_AT_ONCE, **options)
    if state is None and (not scan.again or _rows_of(scan) <= large.rows):
        few, scan = _begun(scan, large.rows)
        if few is not None:
            return _load_all(scan, few)
    if not scan.again and large.scheduler is not None:
        raise InputError(
            f"{scan.title}: only this process can read it, so a scheduler cannot; use files or "
            "an address that its workers can read"
        )
    key = repr((scan.title, scan.reading.to_dict(), seed, tuple(at)))
    with Kept.of(key, resume=large.resume) as folder:
        whole_state = scan_table(
            scan,
            coverages=assessed,
            seed=seed,
            most=large.sample,
            jobs=large.processes,
            scheduler=large.scheduler,
            resume=folder.folder if scan.again else None,
        )
    if state is not None:
        whole_state.save(state)
    return replace(loaded_state(whole_state), explanation=scan.explanation, notes=scan.notes)


def loaded_state(state: State) -> Loaded:
    """A state as what assessments take.

    Examples
    --------
    >>> import numpy as np
    >>> y = np.random.default_rng(0).normal(size=500)
    >>> table = pa.table({"y": y, "mean": np.zeros(500), "sd": np.ones(500)})
    >>> state = scan_table(cut(iter([table.slice(0, 300), table.slice(300)])))
    >>> loaded_state(state).totals[0].n
    500
    """
    reading = ReadPlan.from_dict(state.reading)
    sample, without_y = state.sample.ranked(), state.without_y
    table = sample.table
    if without_y is not None:  # read beside the others, as in `_load_all`
        table = together([table, without_y.ranked().table])
        reading = replace(reading, missing="drop")
    sets = _sets(reading, table, from_text=state.reading["from_text"])
    if sets[0].weights is not None and sets[0].weights.kind == "frequency":
        weights = Weights(sample.taken)
        sets = tuple(replace(evalset, weights=weights) for evalset in sets)
    sets = tuple(_as_part_of(evalset, state) for evalset in sets)
    return Loaded(
        evalsets=sets,
        dropped=state.dropped,
        dropped_by=state.dropped_by,
        roles=reading.models[0],
        totals=state.models,
        manifest=state.manifest,
    )


def _as_part_of(evalset: EvalSet, state: State) -> EvalSet:
    """The set of a sample, with what share of all rows it is."""
    weights, lacking = evalset.weights, evalset.without_y
    share = evalset.n / state.models[0].n
    if weights is not None and weights.kind == "frequency":
        share = float(weights.values.sum()) / state.models[0].mass
    if lacking is not None:
        lacking = replace(lacking, share=min(lacking.n / state.lacking_y, 1.0))
    return replace(evalset, share=min(share, 1.0), without_y=lacking)


def _sets(reading: ReadPlan, table: pa.Table, *, from_text: bool) -> tuple[EvalSet, ...]:
    """The evaluation sets of chosen rows, which are called by their places."""
    row, file = place_names(reading)
    names = [name for name in table.column_names if name not in (row, file)]
    rows = table.select(names)
    evalsets = reading.batch(rows, "the table", 0, from_text=from_text, with_bare=True).evalsets
    if row not in table.column_names:
        return evalsets
    table = table.slice(0, evalsets[0].n)  # what lacks y comes last
    called: AnyArray = table[row].to_numpy()
    if file in table.column_names:
        named_rows = zip(table[file].to_pylist(), called.tolist(), strict=True)
        called = np.array([f"{name}:{number}" for name, number in named_rows], dtype=object)
    return tuple(replace(evalset, rows=called) for evalset in evalsets)


def _rows_of(scan: Scan) -> float:
    """How many rows a table has, or about; infinitely many where nothing tells."""
    if scan.rows is not None:
        return scan.rows
    counts = [extent(file).rows for file in {piece.file for piece in scan.pieces}]
    return math.inf if None in counts else sum(rows or 0 for rows in counts)


def _begun(scan: Scan, most: int) -> tuple[list[tuple[Piece, Batch]] | None, Scan]:
    """All batches of a table, if they hold few rows; else the cut, of which none is lost."""
    first = scan.pieces[0]
    if isinstance(first, StreamPiece) and first.head:  # all rows, which come once
        coming = first.batches(scan.reading.kinds, ROWS_AT_ONCE)
        ahead: deque[pa.Table] = deque()
        rows = 0
        for table in coming:
            ahead.append(table)
            rows += table.num_rows
            if rows > most:
                break
        scan = replace(scan, pieces=(replace(first, query=lambda *_: _drained(ahead, coming)),))
        if rows > most:
            return None, scan
    batches: list[tuple[Piece, Batch]] = []
    rows = 0
    for piece in scan.pieces:
        for batch in scan.reading.batches(piece):
            batches.append((piece, batch))
            rows += batch.rows
            if rows > most:
                return None, scan
    return batches, scan


def _drained(ahead: deque[pa.Table], coming: Iterator[pa.Table]) -> Iterator[pa.Table]:
    """The tables that were read, none of which is held on to, and those to come."""
    while ahead:
        yield ahead.popleft()
    yield from coming


def _load_all(scan: Scan, read: Sequence[tuple[Piece, Batch]]) -> Loaded:
    """All rows of a table in parts."""
    reading, gaps = scan.reading, Counter[str]()
    batches = [batch for _, batch in read]
    files = []
    for piece, batch in read:
        gaps.update(batch.dropped_by)
        key = key_of(content_hashes(batch.evalsets)) if batch.evalsets else ""
        files.append(piece.read_file(batch.rows, key))
    tables = [
        written_out(batch.table).replace_schema_metadata() for batch in batches if batch.evalsets
    ]
    if not tables:
        raise InputError(
            f"{scan.title}: every row has missing cells; at least one complete row is needed"
        )
    bare = (written_out(b.bare).replace_schema_metadata() for b in batches if b.bare is not None)
    table = together([*tables, *bare])
    return Loaded(
        evalsets=_sets(reading, table, from_text=scan.pieces[0].from_text),
        explanation=scan.explanation,
        dropped=sum(batch.dropped for batch in batches),
        dropped_by=dict(gaps),
        notes=scan.notes,
        roles=reading.models[0],
        manifest=scan.manifest(files),
    )


# ---- one pass over a table: the states of its pieces, merged in their order ----------------------

# As many as units that are summed (MAX_UNITS in `howsure.streaming.totals`).
BLOCKS = 2**16
"""Blocks that the time from the first row to the last is cut into, about."""


@frozen
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
        table = batch.table.append_column(row, pa.array(batch.evalsets[0].row_names()))
        if not self.many:
            return table
        codes = pa.array(np.zeros(table.num_rows, dtype=np.int32))
        name = pa.array([os.path.basename(piece.file)])
        return table.append_column(file, pa.DictionaryArray.from_arrays(codes, name))

    def __call__(self, piece: Piece) -> pa.Table:
        """The state of a piece, as a table; one of no columns where no row is left."""
        waiting: list[tuple[int, State]] = []
        unused = _NOTHING
        for batch in self.reading.batches(piece):
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
        states = [state for _, state in waiting]
        state_of_piece = unused.added(states[0].joined(*states[1:]))
        read = Manifest(files=(piece.read_file(unused.rows, ""),))
        return replace(state_of_piece, manifest=state_of_piece.manifest.joined(read)).to_arrow()


def _lacking_y(batch: Batch, most: int, seed: int) -> tuple[int, Sample | None]:
    """How many rows of a batch lack y alone, and some of these."""
    if batch.bare is None:
        return 0, None
    return batch.bare.num_rows, Sample.of_cells(batch.bare, most=most, seed=seed)


_UNUSED = b"unused"


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


_NOTHING = _Unused()


def scan_table(
    cut: Scan,
    *,
    coverages: Sequence[float] = (),
    seed: int = 0,
    most: int = ROWS_OF_SAMPLE,
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
        merged.append(replace(state, manifest=Manifest()))
        if len(merged) == 8:  # a sample is costly to merge
            merged[:] = [merged[0].joined(*merged[1:])]

    def count(rows: _Unused, piece: Piece) -> None:
        nonlocal unused
        unused = unused.joined(rows)
        read.append(piece.read_file(rows.rows, ""))

    if not cut.again:  # only this process can read it
        task, done = None, 0
        for piece in cut.pieces:
            for batch in cut.reading.batches(piece):
                done += batch.rows
                report_progress("rows", done, cut.rows or 0)
                if batch.evalsets:
                    task = task or task_for(batch.evalsets)
                    take(task.state(batch, piece))
                else:
                    count(_Unused.of(batch, most, seed), piece)
    elif first := next(
        (b.evalsets for p in cut.pieces for b in cut.reading.batches(p) if b.evalsets), None
    ):
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
        raise InputError(
            f"{cut.title}: every row has missing cells; at least one complete row is needed"
        )
    state_of_table = unused.added(merged[0].joined(*merged[1:]))
    return replace(state_of_table, manifest=cut.manifest(read))


def place_names(reading: ReadPlan) -> tuple[str, str]:
    """The columns of a sample for where a row stands in its file, and for which file that is."""
    row, file = "howsure_row", "howsure_file"
    while {row, file} & reading.kinds.keys():
        row, file = f"{row}_", f"{file}_"
    return row, file


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


def identity_with(piece: str, work: str) -> str:
    """What decides the state of a piece; empty where it cannot be kept."""
    return hashlib.sha256(f"{piece}\x1f{work}".encode()).hexdigest() if piece else ""
