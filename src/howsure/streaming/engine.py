"""Independent pieces of work, done in this process, in several, or on a Dask cluster, in order.

What came of a piece is kept where that is asked, and a piece whose process died is done again.
"""

from __future__ import annotations

import shutil
import struct
import time
from collections import Counter
from collections.abc import Callable, Generator, Sequence
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self, TypeVar, final

import pyarrow as pa

from howsure._version import __version__
from howsure.core.classes import brief, frozen
from howsure.core.errors import HowsureError, InputError, Language, asked_in, error_line, language
from howsure.core.files import atomic_write, cache_folder
from howsure.core.progress import report_progress
from howsure.core.threads import one_thread
from howsure.core.workers import Cluster, Crew, LostWorker, Processes, RaisedError

Item = TypeVar("Item")

# Processes that may be lost at one piece: one by mischance, two by another's; a third says it is
# the piece.
_MAX_DEATHS = 3
# Pieces out, or done and not yet handed back, for each process: one at work and one waiting, so
# that none idles. More hold more memory.
_PIECES_PER_PROCESS = 2
# Pieces out on a cluster, whose workers may yet come: enough for a few that start. By hand.
_MIN_PIECES_OUT = 16
# Seconds between looks at a crew that says nothing: a lost process is seen as fast as a person
# waits, and looking costs nothing.
_SECONDS_BETWEEN_LOOKS = 0.5


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
        raise InputError("identities and sizes must have one entry per item")
    if jobs is not None and scheduler is not None:
        raise InputError(f"jobs cannot be combined with a scheduler, got {jobs}")
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
        from joblib import cpu_count

        jobs = min(jobs or int(cpu_count()), len(pieces))
    if jobs is not None and jobs <= 1:
        for piece in pieces:
            stream = read_kept(resume, piece.identity)
            yield stream_table(stream or keep(resume, piece.identity, _here(piece, language())))
        return
    crew: Crew = Processes(jobs) if jobs is not None else Cluster(scheduler)
    ahead = (
        _PIECES_PER_PROCESS * crew.room
        if jobs is not None
        else max(_PIECES_PER_PROCESS * crew.room, _MIN_PIECES_OUT)
    )
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
                stream = read_kept(resume, pieces[begun].identity)
                if stream is None:
                    how = _alone if isinstance(crew, Processes) else _here
                    crew.submit(begun, how, pieces[begun], language())
                else:
                    ended[begun] = stream
                begun += 1
            if turn in ended:
                break
            heard = crew.next(_SECONDS_BETWEEN_LOOKS)
            if isinstance(crew, Cluster) and crew.workers == 0:
                report_progress(f"{stage}: waiting for workers of {crew.name}")
            if heard is None:
                continue
            number, result = heard
            piece = pieces[number]
            if isinstance(result, LostWorker):
                deaths[number] += 1
                if result.words and deaths[number] < _MAX_DEATHS:
                    crew.submit(number, _alone, piece, language())
                else:
                    ended[number] = _lost(piece, result)
            elif isinstance(result, RaisedError):
                ended[number] = _refusal(piece, result.error, crew)
            else:
                ended[number] = keep(resume, piece.identity, bytes(result))
        stream_or_error = ended.pop(turn)
        if isinstance(stream_or_error, HowsureError):
            raise stream_or_error
        yield stream_table(stream_or_error)


def _lost(piece: _Call, lost: LostWorker) -> HowsureError:
    if not lost.words:
        return HowsureError(
            f"{piece.title}: every worker that tried it was lost, perhaps because memory ran out"
        )
    return HowsureError(
        f"{piece.title} was tried by {_MAX_DEATHS} processes in turn, and each was lost: the last "
        f"{lost.words}"
    )


def _refusal(piece: _Call, error: BaseException, crew: Crew) -> HowsureError:
    """What to raise of an error of the work, or of workers that cannot do it."""
    if isinstance(error, HowsureError) or not isinstance(crew, Cluster):
        return error if isinstance(error, HowsureError) else HowsureError(error_line(error))
    refusal = HowsureError(
        f"workers of {crew.name} cannot process {piece.title}; each needs howsure {__version__} "
        f"and access to the same files: {error_line(error)}"
    )
    refusal.__cause__ = error
    return refusal


def _here(piece: _Call, words: Language) -> bytes:
    """Do a piece in this process, whose threads are others' too."""
    with one_thread():
        return _alone(piece, words)


def _alone(piece: _Call, words: Language) -> bytes:
    """Do a piece in a process of our own, which has one thread."""
    with asked_in(words):
        return stream_bytes(piece.work(piece.item))


# ---- finished pieces of work that outlive a run which did not end well ---------------------------

# Bytes of the hash at the end of a file: 128 bits, which no damage meets by chance.
_BYTES_OF_HASH = 16
# For which what nobody went on with is kept: long beyond a holiday.
_DAYS_KEPT = 30


@final
@frozen
class Kept:
    """The folder of a run's finished pieces: gone when the run ends well, else it stays.

    Two runs of one command may share it: a file appears whole, says what it must say whoever wrote
    it, and if it is taken away its piece is merely done again.
    """

    folder: Path
    resume: bool

    @classmethod
    def of(cls, key: str, *, resume: bool) -> Self:
        """The folder in the user's cache for a run of this key, which says all that it does.

        With `resume` pieces that an earlier run left there are read, else they are taken away.
        """
        name = blake2b(f"{__version__} {key}".encode(), digest_size=16).hexdigest()
        return cls(cache_folder() / "streaming" / name, resume=resume)

    def __enter__(self) -> Self:
        for other in self.folder.parent.glob("*"):
            with suppress(OSError):  # another run may be quicker
                if other.stat().st_mtime < time.time() - _DAYS_KEPT * 86400:
                    shutil.rmtree(other, ignore_errors=True)
        if not self.resume:
            shutil.rmtree(self.folder, ignore_errors=True)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is None:
            shutil.rmtree(self.folder, ignore_errors=True)

    def __len__(self) -> int:
        """How many finished pieces are there."""
        return len(list(self.folder.glob("*.arrow")))


def stream_bytes(table: pa.Table) -> bytes:
    """A table as an Arrow stream."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


def stream_table(stream: bytes | pa.Buffer) -> pa.Table:
    """The table of an Arrow stream, checked.

    Refuses columns that are compressed, which ours never are: a few bytes could take all memory.
    """
    for message in pa.ipc.MessageReader.open_stream(stream):
        if message.type != "schema" and _is_compressed(message):
            raise pa.ArrowInvalid("its columns are compressed")
    table = pa.ipc.open_stream(stream).read_all()
    table.validate(full=True)
    return table


def _is_compressed(message: pa.Message) -> bool:
    """Whether the metadata of a batch or a dictionary state a compression.

    pyarrow does not tell. Source: Message.fbs of the Arrow format, and "FlatBuffers internals".
    """
    metadata = message.metadata.to_pybytes()

    def number(kind: str, at: int) -> int:
        return int(struct.unpack_from(kind, metadata, at)[0])

    def place_of(table: int, field: int) -> int:
        """Where a field of a table stands; 0 where it has its default."""
        vtable = table - number("<i", table)
        offset = number("<H", vtable + 4 + 2 * field) if 4 + 2 * field < number("<H", vtable) else 0
        return table + offset if offset else 0

    def inner(table: int, field: int) -> int:
        at = place_of(table, field)
        return at + number("<I", at)

    batch = inner(number("<I", 0), 2)  # the message's header
    if message.type == "dictionary":
        batch = inner(batch, 1)
    return place_of(batch, 3) > 0


def keep(folder: Path | None, identity: str, stream: bytes) -> bytes:
    """Keep a finished piece, if it has an identity, for a run that goes on from here.

    Where nothing can be written it is not kept, and the run goes on. A hash follows the stream:
    readers of Arrow stop before it, and `read_kept` sees what is broken.
    """
    if folder is not None and identity:
        with suppress(OSError, HowsureError):
            folder.mkdir(parents=True, exist_ok=True)
            atomic_write(folder / f"{identity}.arrow", stream + _check(stream))
    return stream


def read_kept(folder: Path | None, identity: str) -> bytes | None:
    """A finished piece; None where it is to be done: there is none, or a broken one."""
    if folder is None or not identity:
        return None
    try:
        content = (folder / f"{identity}.arrow").read_bytes()
    except OSError:
        return None
    stream, check = content[:-_BYTES_OF_HASH], content[-_BYTES_OF_HASH:]
    return stream if check == _check(stream) else None


def _check(stream: bytes) -> bytes:
    return blake2b(stream, digest_size=_BYTES_OF_HASH).digest()
