"""Who works on what: the system's locks, and files in their place where it has none.

These are not filelock's: its ``FileLock`` empties the file when someone merely looks whether it is
free, and with it the note that tells whose trial died; and it makes each start 44 ms longer.
"""

from __future__ import annotations

import errno
import json
import os
import secrets
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, Protocol, final

from howsure.core.errors import InputError
from howsure.core.files import LocalFolder, NamedBytes, refused

if sys.platform == "win32":
    import msvcrt

    def _take(handle: int) -> None:
        os.lseek(handle, 2**30, os.SEEK_SET)
        msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
else:
    import fcntl

    def _take(handle: int) -> None:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)


_TAKEN: Final = {errno.EAGAIN, errno.EWOULDBLOCK, errno.EACCES, errno.EDEADLK}
_BEAT: Final = 15.0  # seconds between signs of life
_EXPIRY: Final = 60.0  # seconds without one after which a lock seems void
_PROOF: Final = 2  # beats without a sign of life, by the clock of who looks, that prove it void
_SETTLE: Final = 0.25  # seconds until all see who wrote last
_WRITING: Final = threading.Lock()  # threads of one process write their locks in turn


class Folder(NamedBytes, Protocol):
    """What a store needs of a place besides."""

    @property
    def near(self) -> bool:
        """Whether reading costs little."""

    @property
    def shared(self) -> bool:
        """Whether other processes see what this one writes."""

    def size(self, name: str) -> int | None:
        """Bytes of a file; None where there is none."""

    def is_file(self) -> bool:
        """Whether the place is a file, and so no folder."""

    def path(self, name: str) -> str:
        """What messages call a file."""


class Locks(Protocol):
    """How work in a folder is locked; each lock has a file."""

    def locked(self, name: str, note: str) -> Any:
        """Lock a piece of work, as a context that gives whether the lock is this one's.

        The note stands in the lock's file while the lock lasts. It is wiped when the block ends
        well, and stays where the process died: see `noted`.
        """

    def noted(self, name: str) -> str:
        """What a lock's file says: empty where the work ended well or never began."""

    def is_held(self, name: str) -> bool:
        """Whether someone holds the lock now."""

    def release(self, name: str) -> None:
        """Release the lock of a process that is known to be dead."""


@final
class SystemLocks:
    """The system's locks on files, on a local or shared disk.

    A lock ends with the block or with the process, however that ends, so that none outlives who
    took it.
    """

    __slots__ = ("_folder",)

    def __init__(self, folder: LocalFolder) -> None:
        self._folder = folder

    @contextmanager
    def locked(self, name: str, note: str) -> Iterator[bool]:
        path = self._folder.prepared(name)
        try:
            handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        except OSError as error:
            raise refused(path, error) from error
        try:
            if not self._taken(handle, path):
                yield False
                return
            _note(handle, path, note)
            yield True
            os.ftruncate(handle, 0)
        finally:
            os.close(handle)

    def noted(self, name: str) -> str:
        return (self._folder.read(name) or b"").decode(errors="replace")

    def is_held(self, name: str) -> bool:
        path = self._folder.root / name
        try:
            handle = os.open(path, os.O_RDWR)
        except OSError:
            return False
        try:
            return not self._taken(handle, path)
        finally:
            os.close(handle)

    def release(self, name: str) -> None:
        """Nothing: the system has released the lock of a process that is dead."""

    def _taken(self, handle: int, path: Path) -> bool:
        try:
            _take(handle)
        except OSError as error:
            if error.errno in _TAKEN:
                return False
            raise InputError(
                f"{str(path)!r} cannot be locked ({error.strerror or error}): if the disk does not "
                f"support locks, name the store as local://{self._folder.root.absolute()}"
            ) from error
        return True


@final
class FileLocks:
    """Locks of a place whose system has none: files that say who works, and show signs of life.

    A lock is a file with a random token. It is written where there is none, or a void one; then
    it is read back, and who finds the own token has the lock. While the work lasts a thread
    renews the sign of life. A lock whose last sign is a minute old seems void, but clocks differ
    and jump: it is taken over only if it stays as it is for two beats more, which its owner would
    not let pass. Where the place makes no file twice (S3, Google Cloud), a first lock is one
    process's. Else, or where two take over a void lock at once, two may do the same work if
    their writes lie further apart than a reading back.
    """

    __slots__ = ("_folder",)

    def __init__(self, folder: Folder) -> None:
        self._folder = folder

    @contextmanager
    def locked(self, name: str, note: str) -> Iterator[bool]:
        token = secrets.token_hex(8)
        if not self._won(name, token, note):
            yield False
            return
        stop, ended = threading.Event(), False
        beating = threading.Thread(
            target=self._beat, args=(name, token, note, stop), daemon=True, name="howsure-lock"
        )
        beating.start()
        try:
            yield True
            ended = True
        finally:
            stop.set()
            beating.join()
            if self._content(name).get("token") == token:
                if ended:
                    self._folder.remove(name)
                else:
                    self._folder.write(name, _sign(token, note, 0.0))

    def noted(self, name: str) -> str:
        return str(self._content(name).get("note", ""))

    def is_held(self, name: str) -> bool:
        return _seems_alive(self._content(name))

    def release(self, name: str) -> None:
        self._folder.remove(name)

    def _won(self, name: str, token: str, note: str) -> bool:
        before = self._content(name)
        if before and not self._void(name, before):
            return False
        with _WRITING:
            content = self._content(name)
            if content != before:
                return False
            sign = _sign(token, note, time.time())
            if content:
                self._folder.write(name, sign)
            elif not self._folder.create(name, sign):
                return False
        if self._folder.shared:
            time.sleep(_SETTLE)
        return self._content(name).get("token") == token

    def _void(self, name: str, content: dict[str, Any]) -> bool:
        """Whether nobody is behind a lock: it was given up, or stays without a sign of life."""
        if _seems_alive(content):
            return False
        until = time.monotonic() + _PROOF * _BEAT
        while content["beat"] and time.monotonic() < until:
            time.sleep(_BEAT / 5)
            if self._content(name) != content:
                return False
        return True

    def _content(self, name: str) -> dict[str, Any]:
        """What a lock's file holds; nothing if there is none."""
        data = self._folder.read(name)
        if data is None:
            return {}
        try:
            content = json.loads(data)
            return {
                "token": content["token"],
                "note": content["note"],
                "beat": float(content["beat"]),
            }
        except (ValueError, TypeError, KeyError, OverflowError, RecursionError):
            return {"beat": 0.0}  # written in part by a process that died

    def _beat(self, name: str, token: str, note: str, stop: threading.Event) -> None:
        while not stop.wait(_BEAT):
            try:
                if self._content(name).get("token") != token:
                    return
                self._folder.write(name, _sign(token, note, time.time()))
            except InputError:
                continue  # the next one may come through


def _seems_alive(content: dict[str, Any]) -> bool:
    return bool(abs(time.time() - content.get("beat", 0.0)) < _EXPIRY)


def _sign(token: str, note: str, beat: float) -> bytes:
    return json.dumps({"token": token, "beat": beat, "note": note}).encode()


def _note(handle: int, path: Path, note: str) -> None:
    try:
        os.ftruncate(handle, 0)
        os.lseek(handle, 0, os.SEEK_SET)
        os.write(handle, note.encode())
    except OSError as error:
        raise refused(path, error) from error
