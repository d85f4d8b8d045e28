"""Finished pieces of work that outlive a run which did not end well."""

from __future__ import annotations

import shutil
import struct
import time
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path
from types import TracebackType
from typing import Final, Self, final

import pyarrow as pa

from howsure._version import __version__
from howsure.core.errors import HowsureError
from howsure.core.files import atomic_write, cache_folder

_CHECK: Final = 16  # bytes of the hash at the end of a file
_DAYS: Final = 30  # for which what nobody went on with is kept


@final
class Kept:
    """The folder of a run's finished pieces: gone when the run ends well, else it stays.

    Two runs of one command may share it: a file appears whole, says what it must say whoever wrote
    it, and if it is taken away its piece is merely done again.
    """

    def __init__(self, folder: Path, *, resume: bool) -> None:
        self.folder = folder
        self._resume = resume

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
                if other.stat().st_mtime < time.time() - _DAYS * 86400:
                    shutil.rmtree(other, ignore_errors=True)
        if not self._resume:
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
    held = message.metadata.to_pybytes()

    def number(kind: str, at: int) -> int:
        return int(struct.unpack_from(kind, held, at)[0])

    def place_of(table: int, field: int) -> int:
        """Where a field of a table stands; 0 where it has its default."""
        known = table - number("<i", table)
        offset = number("<H", known + 4 + 2 * field) if 4 + 2 * field < number("<H", known) else 0
        return table + offset if offset else 0

    def inner(table: int, field: int) -> int:
        at = place_of(table, field)
        return at + number("<I", at)

    batch = inner(number("<I", 0), 2)  # the message's header
    if message.type == "dictionary":
        batch = inner(batch, 1)
    return place_of(batch, 3) > 0


def keep(folder: Path, identity: str, stream: bytes) -> None:
    """Keep a finished piece; where nothing can be written it is not kept, and the run goes on.

    A hash follows the stream: readers of Arrow stop before it, and `kept` sees what is broken.
    """
    with suppress(OSError, HowsureError):
        folder.mkdir(parents=True, exist_ok=True)
        atomic_write(folder / f"{identity}.arrow", stream + _check(stream))


def kept(folder: Path, identity: str) -> bytes | None:
    """A finished piece; None where there is none, or a broken one."""
    try:
        content = (folder / f"{identity}.arrow").read_bytes()
    except OSError:
        return None
    stream, check = content[:-_CHECK], content[-_CHECK:]
    return stream if check == _check(stream) else None


def _check(stream: bytes) -> bytes:
    return blake2b(stream, digest_size=_CHECK).digest()
