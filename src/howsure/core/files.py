"""Files that appear whole or not at all, and TOML that came from outside."""

from __future__ import annotations

import os
import secrets
import sqlite3
import tomllib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from hashlib import blake2b
from pathlib import Path
from typing import Any, Protocol, final

from howsure.core.errors import HowsureError, InputError, MissingDependencyError, error_line
from howsure.core.optional import require


def cache_folder() -> Path:
    """The user's cache of howsure: ``XDG_CACHE_HOME`` or ``~/.cache``, and ``howsure`` in it."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "howsure"


def remembered(name: str, compose: Callable[[], str]) -> str:
    """A text that is dear to make, by its name in the user's cache; if not whole there, made."""
    path: Path | None = None
    with suppress(OSError, RuntimeError, UnicodeError):  # such as a user without a home
        path = cache_folder() / "made" / name
        check, _, text = path.read_bytes().decode().partition("\n")
        if check == _digest(text):
            return text
    text = compose()
    with suppress(OSError, HowsureError):  # where nothing can be written it is made each time
        if path is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            atomic_write(path, f"{_digest(text)}\n{text}")
    return text


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Lend a new file beside the wanted one, and put it in its place when the block ends well."""
    try:
        with _temporary_for(path) as (target, temporary):
            if target.exists():
                temporary.chmod(target.stat().st_mode & 0o7777)
            yield temporary
            _flush(temporary)
            temporary.replace(target)
    except OSError as error:
        raise refused(path, error) from error


def check_outputs(outputs: Sequence[Path], inputs: Sequence[Path] = ()) -> None:
    """Refuse outputs that cannot be written, or that would replace what is read, before work."""
    for number, path in enumerate(outputs):
        for read in inputs:
            if _same(path, read):
                raise InputError(
                    f"the output must not overwrite an input, but {str(path)!r} is the input "
                    f"{str(read)!r}"
                )
        for other in outputs[:number]:
            if _same(path, other):
                raise InputError(
                    f"outputs must be different files, got {str(other)!r} and {str(path)!r}"
                )
        try:
            with _temporary_for(path):
                pass
        except OSError as error:
            raise refused(path, error) from error


@contextmanager
def new_folders(paths: Iterable[Path]) -> Iterator[None]:
    """Make the folders that are not there; if the block fails, take back those that stay empty."""
    created: list[Path] = []
    try:
        for path in paths:
            missing = [folder for folder in (path, *path.parents) if not folder.exists()]
            for folder in reversed(missing):
                folder.mkdir()
                created.append(folder)
    except OSError as error:
        raise refused(path, error) from error
    try:
        yield
    except BaseException:
        for folder in reversed(created):
            with suppress(OSError):
                folder.rmdir()
        raise


def atomic_write(path: str | os.PathLike[str], data: bytes | str) -> None:
    """Write a whole file, or leave everything as it was."""
    try:
        content = data.encode() if isinstance(data, str) else data
    except UnicodeError as error:
        raise refused(path, error) from error
    with replacing(path) as temporary:
        temporary.write_bytes(content)


def create_whole(path: Path, data: bytes) -> bool:
    """Write a whole file where there is none; whether there was none."""
    with _temporary_for(path) as (target, temporary):
        temporary.write_bytes(data)
        _flush(temporary)
        try:
            os.link(temporary, target)
        except FileExistsError:
            return False
        except OSError:  # disks without links
            with suppress(FileExistsError), target.open("xb") as file:
                file.write(data)
                return True
            return False
    return True


@contextmanager
def _temporary_for(path: str | os.PathLike[str]) -> Iterator[tuple[Path, Path]]:
    """The regular file, there or not, that a path leads to, and a new one beside it for a while."""
    try:
        target = Path(os.path.realpath(path))
    except ValueError as error:
        raise refused(path, error) from error
    if target.is_dir():
        raise InputError(f"the output must be a file, got the folder {str(path)!r}")
    if target.exists() and not target.is_file():
        raise InputError(f"the output must be a regular file, got {str(path)!r}")
    if not target.parent.is_dir():
        raise InputError(f"the folder of the output must exist, got {str(path)!r}")
    temporary = target.with_name(f".{secrets.token_hex(8)}{target.suffix}")
    try:
        os.close(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
        yield target, temporary
    finally:
        temporary.unlink(missing_ok=True)


def _same(first: Path, other: Path) -> bool:
    """Whether two paths lead to one file, or would once it is there."""
    try:
        if os.path.normcase(os.path.realpath(first)) == os.path.normcase(os.path.realpath(other)):
            return True
        return os.path.samefile(first, other)
    except (OSError, ValueError):
        return False


def _flush(path: Path) -> None:
    """Wait until the content is on the disk, so that a crash cannot leave an empty file."""
    with path.open("rb") as handle:
        os.fsync(handle.fileno())


def _digest(text: str) -> str:
    return blake2b(text.encode(), digest_size=16).hexdigest()


# ---- where named bytes live: a folder on a disk, one at a URL that fsspec knows, or a single file
# Folders on a disk are not fsspec's: its local files do not appear whole (a full disk leaves
# halves), and it would have to come with every install, for 35 ms more at each start.


class NamedBytes(Protocol):
    """Bytes by name; refusals are `InputError`.

    Names are relative, with ``/`` between their parts.
    """

    @property
    def location(self) -> str:
        """The place, as a user says it."""

    def read(self, name: str) -> bytes | None:
        """The content of a file; None where there is none."""

    def write(self, name: str, data: bytes) -> None:
        """Write a whole file."""

    def create(self, name: str, data: bytes) -> bool:
        """Write a file if there is none; whether there was none."""

    def remove(self, name: str) -> None:
        """Remove a file, if it is there."""

    def names(self, name: str = "") -> tuple[str, ...]:
        """Names in a folder, sorted, hidden ones left out; none where there is no folder."""


@final
class LocalFolder:
    """A folder on a local or shared disk."""

    __slots__ = ("location", "root")
    near = True
    shared = True

    def __init__(self, root: str | os.PathLike[str], location: str = "") -> None:
        self.root = Path(root)
        self.location = location or str(self.root)

    def read(self, name: str) -> bytes | None:
        path = self.root / name
        try:
            return path.read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise InputError(f"{str(path)!r} cannot be read: {error.strerror}") from error

    def size(self, name: str) -> int | None:
        try:
            return (self.root / name).stat().st_size
        except OSError:
            return None

    def write(self, name: str, data: bytes) -> None:
        atomic_write(self.prepared(name), data)

    def create(self, name: str, data: bytes) -> bool:
        path = self.prepared(name)
        try:
            return create_whole(path, data)
        except OSError as error:
            raise refused(path, error) from error

    def remove(self, name: str) -> None:
        path = self.root / name
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            raise refused(path, error) from error

    def names(self, name: str = "") -> tuple[str, ...]:
        try:
            return tuple(sorted(p.name for p in (self.root / name).iterdir() if p.name[0] != "."))
        except (FileNotFoundError, NotADirectoryError):
            return ()

    def is_file(self) -> bool:
        return self.root.exists() and not self.root.is_dir()

    def path(self, name: str) -> str:
        return str(self.root / name)

    def prepared(self, name: str) -> Path:
        """A file's path, in a folder that is there."""
        path = self.root / name
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise refused(path, error) from error
        return path


def refused(path: str | os.PathLike[str], error: Exception) -> InputError:
    """The message if the system refuses to write."""
    number = getattr(error, "errno", None)
    reason = error if number is None else os.strerror(number)
    return InputError(f"{str(path)!r} cannot be written: {reason}")


@final
class RemoteFolder:
    """A folder at a URL that fsspec knows.

    Files appear whole where the place writes whole objects, as object stores do. Keys and
    passwords are those of the place's own library, from its own settings.
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
                f"an address {kind}:// needs a library that is not installed: {error}"
            ) from error

    def read(self, name: str) -> bytes | None:
        with self._refusals(name, "read"):
            try:
                return bytes(self._files.cat_file(self._path_of(name)))
            except FileNotFoundError:
                return None

    def size(self, name: str) -> int | None:
        path = self._path_of(name)
        with self._refusals(name, "read"):
            self._files.invalidate_cache(self._files._parent(path))
            try:
                return int(self._files.info(path)["size"])
            except FileNotFoundError:
                return None

    def write(self, name: str, data: bytes) -> None:
        with self._refusals(name, "written"):
            self._put(self._path_of(name), data, "overwrite")

    def create(self, name: str, data: bytes) -> bool:
        with self._refusals(name, "written"):
            try:
                self._put(self._path_of(name), data, "create")
            except FileExistsError:
                return False
        return True

    def remove(self, name: str) -> None:
        with self._refusals(name, "removed"):
            try:
                self._files.rm_file(self._path_of(name))
            except FileNotFoundError:
                return

    def names(self, name: str = "") -> tuple[str, ...]:
        folder = self._path_of(name)
        with self._refusals(name, "read"):
            self._files.invalidate_cache(folder)
            try:
                listed = self._files.ls(folder, detail=False)
            except (FileNotFoundError, NotADirectoryError):
                return ()
        inner = {path.rstrip("/") for path in listed} - {folder}
        names = (path.rpartition("/")[2] for path in inner)
        return tuple(sorted(name for name in names if name[0] != "."))

    def is_file(self) -> bool:
        with self._refusals("", "read"):
            return bool(self._files.isfile(self._root))

    def path(self, name: str) -> str:
        return f"{self.location}/{name}" if name else self.location

    def _path_of(self, name: str) -> str:
        return f"{self._root.rstrip('/')}/{name}" if name else self._root.rstrip("/")

    def _put(self, path: str, data: bytes, mode: str) -> None:
        try:
            self._files.pipe_file(path, data, mode=mode)
        except FileNotFoundError:
            if not path.startswith("/"):
                raise  # an object store has no folders, and buckets are not made by accident
            self._files.makedirs(self._files._parent(path), exist_ok=True)
            self._files.pipe_file(path, data, mode=mode)

    @contextmanager
    def _refusals(self, name: str, done: str) -> Iterator[None]:
        """Say which file of which store was refused; every place has errors of its own."""
        try:
            yield
        except (HowsureError, FileExistsError, ImportError):
            raise
        except Exception as error:
            raise InputError(
                f"{self.path(name)!r} cannot be {done}: {error_line(error)}"
            ) from error


@final
class SingleFile:
    """Named bytes in a database of SQLite: whole after any crash, and safe for two writers.

    A file that is there and is none of these is left as it is.
    """

    __slots__ = ("location",)

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.location = os.fspath(path)

    def read(self, name: str) -> bytes | None:
        rows = self._query("SELECT data FROM held WHERE name = ?", name)
        return bytes(rows[0][0]) if rows else None

    def write(self, name: str, data: bytes) -> None:
        self._done("INSERT OR REPLACE INTO held VALUES (?, ?)", name, data)

    def create(self, name: str, data: bytes) -> bool:
        try:
            self._done("INSERT INTO held VALUES (?, ?)", name, data)
        except sqlite3.IntegrityError:
            return False
        return True

    def remove(self, name: str) -> None:
        self._done("DELETE FROM held WHERE name = ?", name)

    def names(self, name: str = "") -> tuple[str, ...]:
        start = f"{name}/" if name else ""
        stored = [str(row[0]) for row in self._query("SELECT name FROM held")]
        inner = {
            entry[len(start) :].partition("/")[0] for entry in stored if entry.startswith(start)
        }
        return tuple(sorted(inner))

    def _query(self, query: str, *values: object) -> list[tuple[Any, ...]]:
        if not Path(self.location).exists():
            return []
        # not read-only: what a writer that died has begun must be taken back first
        with self._refusals(), closing(self._opened("rw")) as base:
            return [] if _is_blank(base) else base.execute(query, values).fetchall()

    def _done(self, query: str, *values: object) -> None:
        with self._refusals(), closing(self._opened("rwc")) as base, base:
            if _is_blank(base):
                base.execute(
                    "CREATE TABLE IF NOT EXISTS held (name TEXT PRIMARY KEY, data BLOB NOT NULL)"
                )
            base.execute(query, values)

    def _opened(self, mode: str) -> sqlite3.Connection:
        address = f"{Path(self.location).absolute().as_uri()}?mode={mode}"
        return sqlite3.connect(address, timeout=_SECONDS_TO_WAIT, uri=True)

    @contextmanager
    def _refusals(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.IntegrityError:
            raise
        except sqlite3.Error as error:
            reason = "it is not a howsure file" if "no such table" in str(error) else str(error)
            raise InputError(f"{self.location!r} cannot be used: {reason}") from error


def _is_blank(base: sqlite3.Connection) -> bool:
    """Whether a file is empty, or nothing was written after it was made."""
    return not base.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchall()


# Seconds that a writer waits for another: an addition to a ledger takes seconds.
_SECONDS_TO_WAIT = 60.0


# ---- TOML that came from outside: whatever is wrong with it is an `InputError` -------------------

# Bytes of a file, far more than anybody writes; a device has no end.
_MAX_BYTES_OF_TOML = 16_000_000


def read_toml(path: Path, title: str) -> dict[str, Any]:
    """The tables of a file; `title` is what a message calls it."""
    try:
        with path.open("rb") as file:
            content = file.read(_MAX_BYTES_OF_TOML + 1)
    except (OSError, ValueError) as error:  # a path with a NUL
        raise InputError(f"{title} cannot be read: {getattr(error, 'strerror', error)}") from error
    if len(content) > _MAX_BYTES_OF_TOML:
        raise InputError(f"{title} must have at most {_MAX_BYTES_OF_TOML:,} bytes, got more")
    try:
        return parse_toml(content.decode("utf-8-sig"), title)
    except UnicodeDecodeError as error:
        raise InputError(f"{title} must be UTF-8 text: {error}") from error


def parse_toml(text: str, title: str) -> dict[str, Any]:
    """The tables of a text."""
    try:
        tables = tomllib.loads(text)
        _check_whole(tables)
        return tables
    except RecursionError as error:
        raise InputError(
            f"{title} must be TOML without deep nesting, got tables in tables"
        ) from error
    except ValueError as error:  # a decode error, or a number of too many digits
        raise InputError(f"{title} must be valid TOML: {error}") from error


def _check_whole(value: Any) -> None:
    """Refuse whole numbers past the 64 bits that TOML has."""
    if isinstance(value, dict | list):
        for member in value.values() if isinstance(value, dict) else value:
            _check_whole(member)
    elif isinstance(value, int) and not -(2**63) <= value < 2**63:
        digits = len(f"{abs(value)}")
        raise ValueError(f"whole numbers have at most 64 bits, got one of {digits} digits")
