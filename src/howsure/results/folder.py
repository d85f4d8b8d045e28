"""Where a store's bytes live: a local folder, with files that appear whole, and claims.

A store needs no more than this: read, write whole, list, and claim. Another place (an object
store, say) is another class with these methods.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import final

from howsure.core.errors import InputError
from howsure.core.files import atomic_write

if sys.platform == "win32":
    import msvcrt

    def _take(handle: int) -> None:
        os.lseek(handle, 2**30, os.SEEK_SET)
        msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
else:
    import fcntl

    def _take(handle: int) -> None:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)


@final
class LocalFolder:
    """A folder on a local or shared disk.

    Parameters
    ----------
    root : path
        The folder; it is made when something is first written.
    """

    __slots__ = ("root",)

    def __init__(self, root: str | os.PathLike[str]) -> None:
        self.root = Path(root)

    def read(self, name: str) -> bytes | None:
        """All that a file holds; None where there is none.

        Raises
        ------
        InputError
            If the system refuses.
        """
        path = self.root / name
        try:
            return path.read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise InputError(f"{str(path)!r} cannot be read: {error.strerror}") from error

    def size(self, name: str) -> int | None:
        """Bytes of a file; None where there is none."""
        try:
            return (self.root / name).stat().st_size
        except OSError:
            return None

    def write(self, name: str, data: bytes) -> None:
        """Write a whole file, or leave everything as it was; folders are made.

        Raises
        ------
        InputError
            If the system refuses, as a full disk does.
        """
        path = self.root / name
        self._prepare(path)
        atomic_write(path, data)

    def names(self, name: str = "") -> tuple[str, ...]:
        """Names in a folder, sorted, hidden ones left out; none where there is no folder."""
        try:
            return tuple(sorted(p.name for p in (self.root / name).iterdir() if p.name[0] != "."))
        except (FileNotFoundError, NotADirectoryError):
            return ()

    @contextmanager
    def claimed(self, name: str, note: str) -> Iterator[bool]:
        """Claim a piece of work for this process, if no other has it.

        The claim is the system's lock on a file: it ends with the block or with the process,
        however that ends, so that no claim outlives who made it.

        Parameters
        ----------
        name : str
            File of the claim.
        note : str
            What the file says while the claim lasts. It is wiped when the block ends well, and
            stays where the process died: see `noted`.

        Yields
        ------
        bool
            Whether the claim is this process's.
        """
        path = self.root / name
        self._prepare(path)
        try:
            handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        except OSError as error:
            raise _refused(path, error) from error
        try:
            try:
                _take(handle)
            except OSError:
                yield False
                return
            _note(handle, path, note)
            yield True
            os.ftruncate(handle, 0)
        finally:
            os.close(handle)

    def noted(self, name: str) -> str:
        """What a claim's file says: empty where the work ended well or never began."""
        return (self.read(name) or b"").decode(errors="replace")

    def held(self, name: str) -> bool:
        """Whether some process holds the claim now."""
        try:
            handle = os.open(self.root / name, os.O_RDWR)
        except OSError:
            return False
        try:
            _take(handle)
        except OSError:
            return True
        finally:
            os.close(handle)
        return False

    def _prepare(self, path: Path) -> None:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise _refused(path, error) from error


def _note(handle: int, path: Path, note: str) -> None:
    try:
        os.ftruncate(handle, 0)
        os.lseek(handle, 0, os.SEEK_SET)
        os.write(handle, note.encode())
    except OSError as error:
        raise _refused(path, error) from error


def _refused(path: Path, error: OSError) -> InputError:
    return InputError(f"{str(path)!r} cannot be written: {error.strerror or error}")
