"""A table of any size as what assessments take: whole, or a sample with the totals of all rows."""

from __future__ import annotations

import math
import os
from collections import Counter, deque
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Self, Unpack, final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from howsure.core.convert import check_whole
from howsure.core.errors import InputError
from howsure.core.sizes import as_bytes
from howsure.core.weights import Weights
from howsure.inputs import Loaded, load
from howsure.inputs.batches import Batch, ReadPlan
from howsure.inputs.cells import Crossing
from howsure.inputs.matching import Missing
from howsure.inputs.parts import Piece
from howsure.inputs.places import ReadFile, key_of
from howsure.inputs.roles import Columns, Kind
from howsure.inputs.sources import HUGE, PIECE_ROWS, extent, is_huge
from howsure.inputs.tables import Scan, cut
from howsure.inputs.values import together, written_out
from howsure.predictions import EvalSet
from howsure.streaming.kept import Kept
from howsure.streaming.sample import ROWS, content_hashes
from howsure.streaming.scan import place_names, scan_table
from howsure.streaming.state import State

BATCH: Final = 32_768
"""Rows that are looked at together: what is made of so many stays near the processor."""
_ROW_BYTES: Final = 1_000
"""Memory that a row takes where all are assessed at once, about."""
_BASE: Final = 600 << 20
"""Memory that a run takes whatever the table: this process and one more."""
_JOB: Final = 350 << 20
"""Memory of each further process."""
_SAMPLED: Final = 4_000
"""Memory of a row of the sample."""
_FEWEST: Final = 20_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Resources:
    """What reading a huge table may take, and who reads it.

    Attributes
    ----------
    memory : int, optional
        Bytes; a table that needs more is read by pieces. Without it, one of more than 2,000,000
        rows is.
    jobs : int, optional
        Processes; as many as there are cores, if omitted.
    scheduler : str or Client, optional
        Address of a Dask scheduler, or a client of one.
    resume : bool
        Whether pieces that an interrupted run finished are taken over.
    """

    memory: int | None = None
    jobs: int | None = None
    scheduler: Any = None
    resume: bool = False

    @classmethod
    def of(
        cls,
        memory: str | int | None = None,
        jobs: int | None = None,
        scheduler: Any = None,
        resume: bool = False,
    ) -> Self:
        """Check what people say of it."""
        if jobs is not None:
            check_whole(jobs, "jobs", 1)
        if jobs is not None and scheduler is not None:
            raise InputError("jobs and scheduler contradict each other: give one of them")
        size = None if memory is None else as_bytes(memory)
        return cls(memory=size, jobs=jobs, scheduler=scheduler, resume=resume)

    @property
    def rows(self) -> int:
        """Rows that may be assessed at once."""
        return HUGE if self.memory is None else self.memory // _ROW_BYTES

    @property
    def piece_rows(self) -> int:
        """Rows of a piece of which each process holds a few at once."""
        return max(min(PIECE_ROWS, self.rows // (4 * (self.processes or 1))), BATCH)

    @property
    def sample(self) -> int:
        """Rows of the sample."""
        if self.memory is None:
            return ROWS
        return max(min((self.memory - _BASE) // _SAMPLED, ROWS), _FEWEST)

    @property
    def processes(self) -> int | None:
        """Processes that the memory has room for."""
        if self.memory is None or self.scheduler is not None:
            return self.jobs
        from joblib import cpu_count

        room = 1 + max(self.memory - _BASE, 0) // _JOB
        return int(min(room, self.jobs or cpu_count()))


def load_parts(
    source: Any,
    *,
    resources: Resources | None = None,
    state: str | os.PathLike[str] | None = None,
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
    resources : Resources, optional
        Memory, processes, a cluster.
    state : path, optional
        Where the state of the table is kept, to be merged with others; ``.arrow``.
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
    resources = resources or Resources()
    said = columns.get("coverage")
    assessed = at or ((said,) if isinstance(said, float) else said) or ()
    options: dict[str, Any] = {
        "missing": missing,
        "crossing": crossing,
        "encoding": encoding,
        "decimal": decimal,
        **columns,
    }
    if state is None and not is_huge(source, resources.rows):
        return load(source, **options)
    found = cut(source, batch_rows=BATCH, **options)
    if state is None and (not found.again or _rows_of(found) <= resources.rows):
        few, found = _begun(found, resources.rows)
        if few is not None:
            return _load_all(found, few)
    if not found.again and resources.scheduler is not None:
        raise InputError(
            f"{found.title}: only this process can read it, so it cannot be given to a scheduler: "
            "name files, or an address, that its workers reach"
        )
    key = repr((found.title, found.reading.to_dict(), seed, tuple(at)))
    with Kept.of(key, resume=resources.resume) as kept:
        made = scan_table(
            found,
            coverages=assessed,
            seed=seed,
            most=resources.sample,
            jobs=resources.processes,
            scheduler=resources.scheduler,
            resume=kept.folder if found.again else None,
        )
    if state is not None:
        made.save(state)
    return replace(loaded_state(made), explanation=found.explanation, notes=found.notes)


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
        sets = tuple(replace(held, weights=weights) for held in sets)
    sets = tuple(_as_part_of(held, state) for held in sets)
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
    made = reading.batch(rows, "the table", 0, from_text=from_text, with_bare=True).evalsets
    if row not in table.column_names:
        return made
    table = table.slice(0, made[0].n)  # what lacks y comes last
    called: npt.NDArray[Any] = table[row].to_numpy()
    if file in table.column_names:
        told = zip(table[file].to_pylist(), called.tolist(), strict=True)
        called = np.array([f"{name}:{number}" for name, number in told], dtype=object)
    return tuple(replace(held, rows=called) for held in made)


def _rows_of(scan: Scan) -> float:
    """How many rows a table has, or about; infinitely many where nothing tells."""
    if scan.rows is not None:
        return scan.rows
    known = [extent(file).rows for file in {piece.file for piece in scan.pieces}]
    return math.inf if None in known else sum(rows or 0 for rows in known)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class _Again(Piece):
    """A piece whose first rows were read, and come again."""

    piece: Piece
    first: deque[pa.Table]
    coming: Iterator[pa.Table]

    @property
    def file(self) -> str:
        return self.piece.file

    @property
    def from_text(self) -> bool:
        return self.piece.from_text

    def names(self) -> tuple[str, ...]:
        return self.piece.names()

    def read_file(self, rows: int, key: str) -> ReadFile:
        return self.piece.read_file(rows, key)

    def tables(self, kinds: Mapping[str, Kind], rows: int) -> Generator[pa.Table]:
        while self.first:
            yield self.first.popleft()
        yield from self.coming


def _begun(scan: Scan, most: int) -> tuple[list[tuple[Piece, Batch]] | None, Scan]:
    """All batches of a table, if they hold few rows; else the cut, of which none is lost."""
    batches: list[tuple[Piece, Batch]] = []
    kept: deque[pa.Table] = deque()
    n = 0
    for piece in scan.pieces:
        tables = piece.tables(scan.reading.kinds, BATCH)
        again = _Again(
            title=piece.title, first_row=piece.first_row, piece=piece, first=kept, coming=tables
        )
        for table in tables:
            kept.append(table)
            n += table.num_rows
            if n > most:
                return None, replace(scan, pieces=scan.pieces if scan.again else (again,))
        batches += ((piece, batch) for batch in again.batches(scan.reading))
    return batches, scan


def _load_all(scan: Scan, read: Sequence[tuple[Piece, Batch]]) -> Loaded:
    """All rows of a table in parts."""
    reading, gaps = scan.reading, Counter[str]()
    batches = [batch for _, batch in read]
    files = []
    for piece, batch in read:
        gaps.update(batch.dropped_by)
        key = key_of(content_hashes(batch.evalsets)) if batch.evalsets else ""
        files.append(piece.read_file(batch.rows, key))
    held = [
        written_out(batch.table).replace_schema_metadata() for batch in batches if batch.evalsets
    ]
    if not held:
        raise InputError(f"{scan.title}: a row without missing cells is needed, got none")
    bare = (written_out(b.bare).replace_schema_metadata() for b in batches if b.bare is not None)
    table = together([*held, *bare])
    return Loaded(
        evalsets=_sets(reading, table, from_text=scan.pieces[0].from_text),
        explanation=scan.explanation,
        dropped=sum(batch.dropped for batch in batches),
        dropped_by=dict(gaps),
        notes=scan.notes,
        roles=reading.models[0],
        manifest=scan.manifest(files),
    )
