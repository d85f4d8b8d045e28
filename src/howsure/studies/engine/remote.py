"""Folders at a URL: object stores and other places that fsspec reads and writes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import final

from howsure.core.errors import HowsureError, InputError, MissingDependencyError
from howsure.core.optional import require


@final
class RemoteFolder:
    """A folder at a URL that fsspec knows.

    Files appear whole where the place writes whole objects, as object stores do. Keys and
    passwords are those of the place's own library, from its own settings.

    Parameters
    ----------
    url : str
        As ``s3://bucket/folder``. A bucket must exist.

    Raises
    ------
    InputError
        If no such kind of URL is known, or the place refuses.
    MissingDependencyError
        If fsspec, or its library for this kind of URL, is not installed.

    Examples
    --------
    >>> folder = RemoteFolder("memory://example")
    >>> folder.write("trials/ab/trial.json", b"{}")
    >>> folder.names("trials"), folder.size("trials/ab/trial.json")
    (('ab',), 2)
    """

    __slots__ = ("_files", "_root", "location", "shared")
    near = False

    def __init__(self, url: str) -> None:
        core = require("fsspec.core", extra="cluster")
        self.location = url.rstrip("/")
        kind = url.partition("://")[0]
        self.shared = kind != "memory"
        try:
            with self._refusals("", "opened"):
                self._files, self._root = core.url_to_fs(url)
        except ImportError as error:
            raise MissingDependencyError(
                f"a store at {kind}:// needs a library that is not installed: {error}"
            ) from error

    def read(self, name: str) -> bytes | None:
        """All that a file holds; None where there is none.

        Raises
        ------
        InputError
            If the place refuses.
        """
        with self._refusals(name, "read"):
            try:
                return bytes(self._files.cat_file(self._place(name)))
            except FileNotFoundError:
                return None

    def size(self, name: str) -> int | None:
        """Bytes of a file; None where there is none.

        Raises
        ------
        InputError
            If the place refuses.
        """
        place = self._place(name)
        with self._refusals(name, "read"):
            self._files.invalidate_cache(self._files._parent(place))
            try:
                return int(self._files.info(place)["size"])
            except FileNotFoundError:
                return None

    def write(self, name: str, data: bytes) -> None:
        """Write a whole file.

        Raises
        ------
        InputError
            If the place refuses.
        """
        with self._refusals(name, "written"):
            self._put(self._place(name), data, "overwrite")

    def create(self, name: str, data: bytes) -> bool:
        """Write a file if there is none; whether there was none.

        Raises
        ------
        InputError
            If the place refuses.
        """
        with self._refusals(name, "written"):
            try:
                self._put(self._place(name), data, "create")
            except FileExistsError:
                return False
        return True

    def remove(self, name: str) -> None:
        """Remove a file, if it is there.

        Raises
        ------
        InputError
            If the place refuses.
        """
        with self._refusals(name, "removed"):
            try:
                self._files.rm_file(self._place(name))
            except FileNotFoundError:
                return

    def names(self, name: str = "") -> tuple[str, ...]:
        """Names in a folder, sorted, hidden ones left out; none where there is no folder.

        Raises
        ------
        InputError
            If the place refuses.
        """
        place = self._place(name)
        with self._refusals(name, "read"):
            self._files.invalidate_cache(place)
            try:
                found = self._files.ls(place, detail=False)
            except (FileNotFoundError, NotADirectoryError):
                return ()
        inner = {path.rstrip("/") for path in found} - {place}
        names = (path.rpartition("/")[2] for path in inner)
        return tuple(sorted(name for name in names if name[0] != "."))

    def is_file(self) -> bool:
        """Whether the place is a file, and so no folder.

        Raises
        ------
        InputError
            If the place refuses.
        """
        with self._refusals("", "read"):
            return bool(self._files.isfile(self._root))

    def path(self, name: str) -> str:
        """What messages call a file."""
        return f"{self.location}/{name}" if name else self.location

    def _place(self, name: str) -> str:
        return f"{self._root.rstrip('/')}/{name}" if name else self._root.rstrip("/")

    def _put(self, place: str, data: bytes, mode: str) -> None:
        try:
            self._files.pipe_file(place, data, mode=mode)
        except FileNotFoundError:
            if not place.startswith("/"):
                raise  # an object store has no folders, and buckets are not made by accident
            self._files.makedirs(self._files._parent(place), exist_ok=True)
            self._files.pipe_file(place, data, mode=mode)

    @contextmanager
    def _refusals(self, name: str, done: str) -> Iterator[None]:
        """Say which file of which store was refused; every place has errors of its own."""
        try:
            yield
        except (HowsureError, FileExistsError, ImportError):
            raise
        except Exception as error:
            told = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
            raise InputError(f"{self.path(name)!r} cannot be {done}: {told}") from error
