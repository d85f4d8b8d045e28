"""Independent pieces of work, done in this process, in several, or on a Dask cluster, in order.

What came of a piece is kept where that is asked, and a piece whose process died is done again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Generator, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar

import pyarrow as pa

from howsure._version import __version__
from howsure.core.brief import brief
from howsure.core.errors import HowsureError, InputError, error_line
from howsure.core.progress import report_progress
from howsure.core.threads import one_thread
from howsure.core.workers import Cluster, Crew, LostWorker, Processes, RaisedError
from howsure.streaming.kept import keep, kept, stream_bytes, stream_table

Item = TypeVar("Item")

_DEATHS: Final = 3  # of processes at one piece
_AHEAD: Final = 2  # pieces out, or done and not yet handed back, for each process
_FEWEST: Final = 16  # pieces out on a cluster, whose workers may yet come
_LOOK: Final = 0.5  # seconds between looks at a crew that says nothing


class _Call(NamedTuple):
    """One call of the work."""

    work: Callable[[Any], pa.Table]
    item: Any
    identity: str
    title: str


def done_in_order(
    work: Callable[[Item], pa.Table],
    items: Sequence[Item],
    *,
    identities: Sequence[str],
    jobs: int | None = None,
    scheduler: Any = None,
    resume: Path | None = None,
    stage: str = "rows",
    sizes: Sequence[int] | None = None,
) -> Generator[pa.Table, None, None]:
    """What the work makes of each item, in order, whoever does it; a few pieces are out at a time.

    `jobs` are processes: None as many as there are cores, 1 this process alone. `scheduler` is the
    address of a Dask scheduler, or a client of one. In the folder `resume` each piece is kept under
    its identity, if it has one, and is read if it is there. The first error by order of the items
    ends all. Close the generator to end what is out.
    """
    if len(identities) != len(items) or (sizes is not None and len(sizes) != len(items)):
        raise InputError("identities and sizes must be as many as items")
    if jobs is not None and scheduler is not None:
        raise InputError(f"jobs must be left out with a scheduler, got {jobs}")
    if jobs is not None and jobs < 1:
        raise InputError(f"jobs must be a whole number of at least 1, got {jobs}")
    pieces = [
        _Call(work, item, identity, f"piece {number:,} of {len(items):,} ({brief(item)})")
        for number, (item, identity) in enumerate(zip(items, identities, strict=True), start=1)
    ]
    return _reporting_rows(
        _done(pieces, jobs, scheduler, resume, stage), stage, sizes or [1] * len(items)
    )


def _reporting_rows(
    tables: Generator[pa.Table, None, None], stage: str, sizes: Sequence[int]
) -> Generator[pa.Table, None, None]:
    """Tables, telling how many rows are done."""
    done, total = 0, sum(sizes)
    report_progress(stage, done, total)
    try:
        for size, table in zip(sizes, tables, strict=True):
            done += size
            report_progress(stage, done, total)
            yield table
    finally:
        tables.close()


def _done(
    pieces: Sequence[_Call], jobs: int | None, scheduler: Any, resume: Path | None, stage: str
) -> Generator[pa.Table, None, None]:
    if scheduler is None:
        jobs = min(jobs or _cores(), len(pieces))
    if jobs is not None and jobs <= 1:
        for piece in pieces:
            yield stream_table(_kept_piece(piece, resume) or _keeping(piece, resume, _here(piece)))
        return
    crew: Crew = Processes(jobs) if jobs is not None else Cluster(scheduler)
    ahead = _AHEAD * crew.room if jobs is not None else max(_AHEAD * crew.room, _FEWEST)
    try:
        yield from _in_order(crew, pieces, resume, ahead, stage)
    finally:
        crew.close()


def _in_order(
    crew: Crew, pieces: Sequence[_Call], resume: Path | None, ahead: int, stage: str
) -> Generator[pa.Table, None, None]:
    """What a crew makes of the pieces; so many are out, or done and wait for their turn."""
    deaths = Counter[int]()
    ended: dict[int, bytes | HowsureError] = {}
    begun = 0
    for turn in range(len(pieces)):
        while True:
            while begun < min(turn + ahead, len(pieces)):
                stream = _kept_piece(pieces[begun], resume)
                if stream is None:
                    crew.submit(
                        begun, _alone if isinstance(crew, Processes) else _here, pieces[begun]
                    )
                else:
                    ended[begun] = stream
                begun += 1
            if turn in ended:
                break
            heard = crew.next(_LOOK)
            if isinstance(crew, Cluster) and crew.workers == 0:
                report_progress(f"{stage}: waiting for workers of {crew.name}")
            if heard is None:
                continue
            number, result = heard
            piece = pieces[number]
            if isinstance(result, LostWorker):
                deaths[number] += 1
                if result.words and deaths[number] < _DEATHS:
                    crew.submit(number, _alone, piece)
                else:
                    ended[number] = _lost(piece, result)
            elif isinstance(result, RaisedError):
                ended[number] = _refusal(piece, result.error, crew)
            else:
                ended[number] = _keeping(piece, resume, bytes(result))
        stream_or_error = ended.pop(turn)
        if isinstance(stream_or_error, HowsureError):
            raise stream_or_error
        yield stream_table(stream_or_error)


def _kept_piece(piece: _Call, resume: Path | None) -> bytes | None:
    """A piece as it is kept; None where it is to be done."""
    return None if resume is None or not piece.identity else kept(resume, piece.identity)


def _keeping(piece: _Call, resume: Path | None, stream: bytes) -> bytes:
    """A piece, which is kept for a run that goes on from here."""
    if resume is not None and piece.identity:
        keep(resume, piece.identity, stream)
    return stream


def _lost(piece: _Call, lost: LostWorker) -> HowsureError:
    if not lost.words:
        return HowsureError(
            f"{piece.title}: every worker that tried it was lost, perhaps for want of memory"
        )
    return HowsureError(
        f"{piece.title} was tried by {_DEATHS} processes in turn, and each was lost: the last "
        f"{lost.words}"
    )


def _refusal(piece: _Call, error: BaseException, crew: Crew) -> HowsureError:
    """What to raise of an error of the work, or of workers that cannot do it."""
    if isinstance(error, HowsureError) or not isinstance(crew, Cluster):
        return error if isinstance(error, HowsureError) else HowsureError(error_line(error))
    made = HowsureError(
        f"workers of {crew.name} cannot do {piece.title}; each must have howsure {__version__} "
        f"and see the same files: {error_line(error)}"
    )
    made.__cause__ = error
    return made


def _here(piece: _Call) -> bytes:
    """Do a piece in this process, whose threads are others' too."""
    with one_thread():
        return _alone(piece)


def _alone(piece: _Call) -> bytes:
    """Do a piece in a process of our own, which has one thread."""
    return stream_bytes(piece.work(piece.item))


def _cores() -> int:
    from joblib import cpu_count

    return int(cpu_count())
