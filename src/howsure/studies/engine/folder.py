"""Where a store's bytes live: a local folder, with files that appear whole.

A store needs no more of a place than `Folder`; how its work is claimed is a matter of `claims`.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Protocol, final

from howsure.core.errors import InputError
from howsure.core.files import atomic_write


class Folder(Protocol):
    """What a store needs of a place. Names are relative, with ``/`` between their parts.

    Attributes
    ----------
    location : str
        The place, as `howsure.studies.engine.Store` takes it.
    near : bool
        Whether reading costs little.
    shared : bool
        Whether other processes see what this one writes.
    """

    @property
    def location(self) -> str: ...

    @property
    def near(self) -> bool: ...

    @property
    def shared(self) -> bool: ...

    def read(self, name: str) -> bytes | None:
        """All that a file holds; None where there is none."""

    def size(self, name: str) -> int | None:
        """Bytes of a file; None where there is none."""

    def write(self, name: str, data: bytes) -> None:
        """Write a whole file."""

    def create(self, name: str, data: bytes) -> bool:
        """Write a file if there is none; whether there was none."""

    def remove(self, name: str) -> None:
        """Remove a file, if it is there."""

    def names(self, name: str = "") -> tuple[str, ...]:
        """Names in a folder, sorted, hidden ones left out; none where there is no folder."""

    def is_file(self) -> bool:
        """Whether the place is a file, and so no folder."""

    def path(self, name: str) -> str:
        """What messages call a file."""


@final
class LocalFolder:
    """A folder on a local or shared disk.

    Parameters
    ----------
    root : path
        The folder; it is made when something is first written.
    location : str, optional
        What it is called; the path if omitted.

    Examples
    --------
    >>> import tempfile
    >>> folder = LocalFolder(tempfile.mkdtemp())
    >>> folder.write("trials/ab/trial.json", b"{}")
    >>> folder.names("trials"), folder.read("trials/ab/trial.json")
    (('ab',), b'{}')
    """

    __slots__ = ("location", "root")
    near = True
    shared = True

    def __init__(self, root: str | os.PathLike[str], location: str = "") -> None:
        self.root = Path(root)
        self.location = location or str(self.root)

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
        atomic_write(self.prepared(name), data)

    def create(self, name: str, data: bytes) -> bool:
        """Write a file if there is none; whether there was none.

        Raises
        ------
        InputError
            If the system refuses.
        """
        path = self.prepared(name)
        try:
            with path.open("xb") as file:
                file.write(data)
        except FileExistsError:
            return False
        except OSError as error:
            raise refused(path, error) from error
        return True

    def remove(self, name: str) -> None:
        """Remove a file, if it is there.

        Raises
        ------
        InputError
            If the system refuses.
        """
        path = self.root / name
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            raise refused(path, error) from error

    def names(self, name: str = "") -> tuple[str, ...]:
        """Names in a folder, sorted, hidden ones left out; none where there is no folder."""
        try:
            return tuple(sorted(p.name for p in (self.root / name).iterdir() if p.name[0] != "."))
        except (FileNotFoundError, NotADirectoryError):
            return ()

    def is_file(self) -> bool:
        """Whether the place is a file, and so no folder."""
        return self.root.exists() and not self.root.is_dir()

    def path(self, name: str) -> str:
        """What messages call a file."""
        return str(self.root / name)

    def prepared(self, name: str) -> Path:
        """A file's path, in a folder that is there.

        Raises
        ------
        InputError
            If the system refuses.
        """
        path = self.root / name
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise refused(path, error) from error
        return path


def refused(path: Path, error: OSError) -> InputError:
    """What is told where the system refuses to write."""
    return InputError(f"{str(path)!r} cannot be written: {error.strerror or error}")
