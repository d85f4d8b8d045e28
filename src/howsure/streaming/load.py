"""A table of any size as what assessments take: whole, or a sample with the totals of all rows."""

from __future__ import annotations

import math
import os
import re
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Self, Unpack

import pyarrow as pa
import pyarrow.parquet as pq

from howsure.core.convert import check_whole
from howsure.core.errors import InputError
from howsure.core.sizes import as_bytes
from howsure.core.weights import Weights
from howsure.inputs import Loaded, load
from howsure.inputs.building import Crossing
from howsure.inputs.files import ARROW_ENDINGS, PARQUET_ENDINGS, table_form
from howsure.inputs.pieces import (
    BATCH,
    HUGE,
    Cut,
    Given,
    Reading,
    cut,
    is_address,
    is_stream,
    opened,
)
from howsure.inputs.roles import Columns
from howsure.inputs.tables import Missing
from howsure.streaming.kept import Kept
from howsure.streaming.sample import ROWS, written_out
from howsure.streaming.scan import scan_table
from howsure.streaming.state import State

_MAGIC: Final = re.compile(r"[*?\[]")
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
    if state is None and not _is_large(source, resources):
        return load(source, **options)
    found = cut(source, **options)
    if state is None and not found.again:
        few, found = _begun(found, resources.rows)
        if few is not None:
            return load(few, **options)
    elif state is None and _rows_of(found) <= resources.rows:
        return _whole(found)
    key = repr((os.fspath(source) if found.again else "", found.reading.told(), seed, tuple(at)))
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
    reading = Reading.from_told(state.reading)
    sample = state.sample.ranked()
    sets = reading.sets(sample.table, "the sample")
    if sets[0].weights is not None and sets[0].weights.kind == "frequency":
        weights = Weights(sample.taken)
        sets = tuple(replace(held, weights=weights) for held in sets)
    return Loaded(
        evalsets=sets,
        dropped=state.dropped,
        dropped_by=state.dropped_by,
        roles=reading.models[0],
        totals=state.models,
    )


def _is_large(source: Any, resources: Resources) -> bool:
    """Whether a source may be too large to be read at once, or is more than a table."""
    if is_stream(source):
        return True
    if not isinstance(source, str | os.PathLike):
        return False
    path = os.fspath(source)
    if is_address(path) or os.path.isdir(path):
        return True
    if not os.path.exists(path):
        return _MAGIC.search(path) is not None
    return _rows_about(path) > resources.rows


def _rows_about(path: str) -> float:
    """How many rows a file has, or about."""
    try:
        ending, packed = table_form(path)
        if ending in PARQUET_ENDINGS:
            with opened(path) as file, pq.ParquetFile(file) as held:
                return float(held.metadata.num_rows)
        size = os.path.getsize(path)
        if ending in ARROW_ENDINGS:
            with opened(path) as file:
                whole = file.read(6) == b"ARROW1"
                file.seek(0)
                reader = (pa.ipc.open_file if whole else pa.ipc.open_stream)(file)
                width = max(8 * len(reader.schema.names), 1)
            return size / width
        with open(path, "rb") as text:
            head = text.read(1 << 16)
        lines = max(head.count(b"\n"), 1)
        return size * (5.0 if packed else 1.0) * lines / max(len(head), 1)
    except (InputError, OSError, pa.ArrowException):
        return 0.0  # what is wrong with it is told by who reads it


def _rows_of(found: Cut) -> float:
    """How many rows the files of a table have, or about; of an address unknown."""
    if found.rows is not None:
        return found.rows
    paths = {piece.path for piece in found.pieces}
    return math.inf if any(map(is_address, paths)) else sum(map(_rows_about, paths))


def _begun(found: Cut, most: int) -> tuple[pa.Table | None, Cut]:
    """All rows of what is read once, if these are few; else the cut, which has lost none."""
    (piece,) = found.pieces
    tables = piece.tables({}, BATCH)
    kept: deque[pa.Table] = deque()
    n = 0
    for table in tables:
        kept.append(table)
        n += table.num_rows
        if n > most:
            break
    else:
        return pa.concat_tables(kept, promote_options="permissive"), found

    def every() -> Iterator[pa.Table]:
        while kept:
            yield kept.popleft()
        yield from tables

    whole = Given(path=piece.path, title=piece.title, source=every)
    return None, replace(found, pieces=(whole,))


def _whole(found: Cut) -> Loaded:
    """All rows of a table in parts."""
    reading = found.reading
    batches = [batch for piece in found.pieces for batch in piece.batches(reading)]
    table = pa.concat_tables(
        [written_out(batch.table) for batch in batches], promote_options="permissive"
    )
    gaps = Counter[str]()
    for batch in batches:
        gaps.update(batch.dropped_by)
    return Loaded(
        evalsets=reading.sets(table, found.title),
        explanation=found.explanation,
        dropped=sum(batch.dropped for batch in batches),
        dropped_by=dict(gaps),
        notes=found.notes,
        roles=reading.models[0],
    )
