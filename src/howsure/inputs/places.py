"""The files of a table: where they lie, and which of them were read."""

from __future__ import annotations

import errno
import os
import re
import stat
from codecs import getincrementaldecoder
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from fnmatch import fnmatch
from pathlib import Path, PurePosixPath
from typing import Any, Self
from urllib.parse import unquote

import numpy as np
import pyarrow as pa

from howsure.core.classes import frozen
from howsure.core.errors import HowsureError, InputError, MissingDependencyError
from howsure.core.optional import require
from howsure.core.records import ResultTable
from howsure.inputs.files import (
    ARROW_ENDINGS,
    PARQUET_ENDINGS,
    check_sign,
    source_form,
    table_form,
)
from howsure.inputs.names import as_number
from howsure.inputs.source import listed, split_sheet

_WILD = re.compile(r"[*?\[]")
_NULL = "__HIVE_DEFAULT_PARTITION__"
_STAMPS = ("mtime", "LastModified", "last_modified", "updated", "ETag", "etag", "created")


@frozen
class Place:
    """A file, near or far."""

    path: str  # its path or address
    size: int  # its bytes
    stamp: str  # what changes when it does
    # what the names of its folders say, as columns
    partition: tuple[tuple[str, str | float | None], ...] = ()
    linked: bool = False  # whether it, or a folder of the table that it lies in, is a link

    @property
    def remote(self) -> bool:
        """Whether fsspec reads it."""
        return is_address(self.path)

    @property
    def form(self) -> str:
        """The kind of table that its ending says: parquet, arrow, or the ending itself."""
        ending, _ = source_form(self.path)
        if ending in PARQUET_ENDINGS:
            return "parquet"
        return "arrow" if ending in ARROW_ENDINGS else ending

    def open(self) -> pa.NativeFile:
        """The open file, its first bytes checked; an error where it is another than was found."""
        ending, packed = source_form(self.path)
        if self.remote:
            files, root = _far(self.path)
            with refusals(self.path):
                handler = pa.fs.FSSpecHandler(files)
                handle = pa.fs.PyFileSystem(handler).open_input_file(root)
        else:
            self.check_unchanged()
            with refusals(self.path):
                handle = pa.OSFile(split_sheet(self.path)[0])
        check_sign(handle.read(8), self.path, ending, packed)
        handle.seek(0)
        return handle

    def check_unchanged(self) -> None:
        """Raise `InputError` where the file is no longer as it was when it was first looked at.

        Stores of objects tell times in more than one way, so that of these only sizes are compared.
        """
        if self.remote:
            files, root = _far(self.path)
            with refusals(self.path):
                files.invalidate_cache()
                changed = int(files.info(root)["size"] or 0) != self.size
        else:
            current = _near(self.path)
            changed = (current.size, current.stamp) != (self.size, self.stamp)
        if changed:
            raise InputError(f"{self.path}: the file has changed since it was first read")


def is_address(path: str) -> bool:
    """Whether fsspec is asked for a path."""
    return "://" in path


def is_pattern(path: str) -> bool:
    """Whether a path stands for several: it holds a wildcard, and no file is called so."""
    return bool(_WILD.search(path)) and (is_address(path) or not os.path.exists(path))


def is_folder(path: str) -> bool:
    """Whether a path is that of a folder."""
    return not is_address(path) and os.path.isdir(path)


@frozen
class Listing:
    """The files of a table."""

    title: str  # what to call the table
    places: tuple[Place, ...]  # its files, in the order of their paths
    skipped: tuple[tuple[str, str], ...] = ()  # what lies beside them and is not read, and why


NO_FILES = Listing("", ())
"""Of a table that is in no files."""


def places(source: str) -> Listing:
    """The files of the table at a path, an address or a pattern, each of them once.

    Links are followed. Names that begin with a dot or an underscore are those of others in a
    folder (markers, and files that are still being written), and a text without the ending of a
    table is none.
    """
    base, files, skipped = _listed_far(source) if is_address(source) else _listed_near(source)
    if base is None:
        return Listing(source, (replace(files[0], partition=()),))
    wild = _WILD.search(source)
    if not files:
        what = "no file matches" if wild else "the folder has no table files"
        ignored = f"; skipped: {listed_skipped(skipped)}" if skipped else ""
        raise InputError(f"{source}: {what}{ignored}")
    files = sorted(files, key=lambda file: file.path)
    forms: dict[str, str] = {}
    for file in files:
        forms.setdefault(file.form, file.path)
    if len(forms) > 1:
        raise InputError(
            f"{source}: the files of one table must have one format, got {' and '.join(forms)} "
            f"(such as {listed(forms.values(), 3)}); a quoted pattern such as "
            f"'{source.rstrip('/')}/*{Path(files[0].path).suffix}' selects those of one format"
        )
    count = f"{len(files):,} file{'s' * (len(files) > 1)}"
    slash = "/" * (not wild and not source.endswith("/"))
    title = f"{source}{slash} ({count})"
    return Listing(title, tuple(_partitioned(files, base)), tuple(sorted(skipped)))


# Paths of one reason; twice as many reasons: a note of some lines.
_MAX_PATHS_SHOWN = 3


def listed_skipped(skipped: Sequence[tuple[str, str]]) -> str:
    """What is not read and why; of many for one reason the first ones."""
    reasons: dict[str, list[str]] = {}
    for path, why in skipped:
        reasons.setdefault(why, []).append(path)
    phrases, unnamed = [], len(skipped)
    for why, paths in sorted(reasons.items(), key=lambda item: len(item[1]))[
        : 2 * _MAX_PATHS_SHOWN
    ]:
        more = (
            f" and {len(paths) - _MAX_PATHS_SHOWN:,} more" if len(paths) > _MAX_PATHS_SHOWN else ""
        )
        phrases.append(f"{', '.join(map(_short, paths[:_MAX_PATHS_SHOWN]))}{more} ({why})")
        unnamed -= len(paths)
    return ", ".join(phrases) + (f" and {unnamed:,} more" if unnamed else "")


def _short(path: str) -> str:
    """The last name of a path; a folder keeps its slash."""
    name = os.path.basename(path.rstrip("/")) + "/" * path.endswith("/")
    return name if len(name) <= 60 else f"{name[:57]}..."


_Files = tuple[str | None, list[Place], list[tuple[str, str]]]


def _listed_near(source: str) -> _Files:
    if is_pattern(source):
        base = fixed_folder(source)
        inner = tuple(filter(None, source[len(base) :].split("/")))
        top = base or ("/" if source.startswith("/") else "")
        walk = _Walk(inner)
        if os.path.isdir(top or "."):
            walk.through(top)
        return base, *walk.files()
    try:
        os.lstat(split_sheet(source)[0])
    except (FileNotFoundError, NotADirectoryError, ValueError) as error:
        raise InputError(f"{_brief(source)}: no such file") from error
    except OSError as error:
        raise InputError(f"{_brief(source)} cannot be read: {error.strerror}") from error
    status = _status(split_sheet(source)[0])
    if stat.S_ISDIR(status.st_mode):
        walk = _Walk(_ALL)
        walk.through(source)
        return source, *walk.files()
    if not stat.S_ISREG(status.st_mode):
        raise InputError(f"{source}: a regular file is needed, got {_kind(status.st_mode)}")
    return None, [_near(source, status)], []


_ALL = ("**",)
_Key = tuple[int, int]
_Patterns = frozenset[tuple[str, ...]]


class _Walk:
    """A walk through a folder after a pattern; links come last, and nothing is found twice."""

    def __init__(self, pattern: tuple[str, ...]) -> None:
        self._pattern = pattern
        self._hidden = {".", "_"} - {segment[:1] for segment in pattern}
        self._found: list[tuple[bool, str, os.stat_result]] = []
        self._skipped: list[tuple[str, str]] = []
        self._folders: dict[tuple[_Key, _Patterns], str] = {}
        self._links: deque[tuple[str, _Patterns, tuple[_Key, ...]]] = deque()

    def through(self, folder: str) -> None:
        """Walk through a folder, then through those that links in it lead to."""
        top = Path(os.path.realpath(folder or "."))
        above = [_status(str(parent)) for parent in top.parents]
        keys = tuple((status.st_dev, status.st_ino) for status in above)
        self._enter(folder, frozenset([self._pattern]), keys, linked=False)
        while self._links:
            self._enter(*self._links.popleft(), linked=True)

    def files(self) -> tuple[list[Place], list[tuple[str, str]]]:
        """The files, each once, and what is skipped; of two ways to one file no link is taken."""
        chosen: dict[_Key, Place] = {}
        for linked, path, status in sorted(self._found, key=lambda entry: entry[:2]):
            key = (status.st_dev, status.st_ino)
            if status.st_ino and key in chosen:
                self._skipped.append((path, f"the same file as {chosen[key].path}"))
            else:
                chosen[key if status.st_ino else (-1, len(chosen))] = _near(
                    path, status, linked=linked
                )
        return list(chosen.values()), self._skipped

    def _enter(
        self,
        folder: str,
        patterns: _Patterns,
        above: tuple[_Key, ...],
        *,
        linked: bool,
    ) -> None:
        status = _status(folder or ".")
        key = (status.st_dev, status.st_ino)
        if key in above:
            raise InputError(f"{folder}: the link leads back to a folder that contains it")
        if (key, patterns) in self._folders:
            self._skipped.append(
                (f"{folder}/", f"the same folder as {self._folders[key, patterns]}")
            )
            return
        self._folders[key, patterns] = folder
        try:
            names = sorted(os.listdir(folder or "."))
        except OSError as error:
            raise InputError(f"{folder} cannot be read: {error.strerror}") from error
        for name in names:
            self._see(os.path.join(folder, name), name, patterns, (*above, key), linked=linked)

    def _see(
        self,
        path: str,
        name: str,
        patterns: _Patterns,
        above: tuple[_Key, ...],
        *,
        linked: bool,
    ) -> None:
        """Take one name of a folder in, if the pattern asks for it."""
        matches, further = _matched(name, patterns)
        if not (matches or further):
            return
        if name[:1] in self._hidden:
            folder = os.path.isdir(path)
            if matches or folder:
                why = f"its name begins with {name[:1]!r}"
                self._skipped.append((path + "/" * folder, why))
            return
        link = os.path.islink(path)
        if link and not matches and "." in name and not os.path.exists(path):
            return  # the name is that of a file, and of none that is asked for
        status = _status(path)
        if stat.S_ISDIR(status.st_mode):
            inner = further | ({_ALL} if matches and "**" not in self._pattern else set())
            if inner and link:
                self._links.append((path, frozenset(inner), above))
            elif inner:
                self._enter(path, frozenset(inner), above, linked=linked)
        elif not matches:
            return
        elif stat.S_ISREG(status.st_mode) and _has_form(path):
            self._found.append((linked or link, path, status))
        elif stat.S_ISREG(status.st_mode):
            with open(path, "rb") as file:
                self._skipped.append(_no_table(path, file.read(_BYTES_LOOKED_AT)))
        elif _has_form(path):
            raise InputError(f"{path}: a regular file is needed, got {_kind(status.st_mode)}")
        else:
            self._skipped.append((path, f"{_kind(status.st_mode)} is not a table"))


def _matched(name: str, patterns: Iterable[tuple[str, ...]]) -> tuple[bool, set[tuple[str, ...]]]:
    """Whether patterns ask for a name, and what they ask for in the folder of this name."""
    matches, further = False, set[tuple[str, ...]]()
    for pattern in patterns:
        first, deeper = pattern[0], pattern[1:]
        if first == "**":
            further.add(pattern)
            inner_matches, more = _matched(name, [deeper]) if deeper else (True, set())
            matches, further = matches or inner_matches, further | more
        elif fnmatch(name, first):
            matches = matches or not deeper
            further |= {deeper} if deeper else set()
    return matches, further


# Bytes that tell whether a file is text: a page of a disk, read at once.
_BYTES_LOOKED_AT = 4096


def _has_form(path: str) -> bool:
    """Whether the ending is that of a table."""
    try:
        return bool(table_form(path))
    except InputError:
        return False


def _no_table(path: str, start: bytes) -> tuple[str, str]:
    """Why a text without the ending of a table is skipped; an error where it is no text."""
    try:
        getincrementaldecoder("utf-8")().decode(start)
    except UnicodeDecodeError:
        start = b"\0"
    if b"\0" in start:  # it may hold rows
        table_form(path)
    return path, "its ending is not one of a table"


def _status(path: str) -> os.stat_result:
    """What is at the end of a path, links followed; an error that names a link to nothing."""
    try:
        return os.stat(path)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise InputError(f"{path}: the link leads to itself") from error
        if os.path.islink(path):
            target = os.readlink(path)
            raise InputError(
                f"{path}: the link is broken; {_brief(target)} does not exist"
            ) from error
        raise InputError(f"{_brief(path)} cannot be read: {error.strerror}") from error


def _kind(mode: int) -> str:
    """What a file is that is not regular."""
    kinds = {"a FIFO": stat.S_ISFIFO, "a socket": stat.S_ISSOCK, "a folder": stat.S_ISDIR}
    return next((words for words, test in kinds.items() if test(mode)), "a device")


def _brief(path: str) -> str:
    """A path for a message, cut where it is long."""
    return path if len(path) <= 300 else f"{path[:297]}..."


def _near(path: str, status: os.stat_result | None = None, *, linked: bool = False) -> Place:
    status = status or _status(split_sheet(path)[0])
    return Place(path, status.st_size, str(status.st_mtime_ns), linked=linked)


def _far(url: str) -> tuple[Any, str]:
    """The file system of an address, and the path within."""
    core = require("fsspec.core", extra="cluster")
    kind = url.partition("://")[0]
    try:
        with refusals(url):
            files, root = core.url_to_fs(split_sheet(url)[0])
    except ImportError as error:
        raise MissingDependencyError(
            f"a table at {kind}:// needs a library that is not installed: {error}"
        ) from error
    return files, root


def _listed_far(url: str) -> _Files:
    files, root = _far(url)
    with refusals(url):
        files.invalidate_cache()
        if _WILD.search(url):
            infos = files.glob(root, detail=True)
            if "**" not in root:
                for folder in [path for path, info in infos.items() if info["type"] != "file"]:
                    infos |= files.find(folder, detail=True)
            base = fixed_folder(files.unstrip_protocol(root))
        elif files.isfile(root):
            info = files.info(root)
            return None, [Place(url, int(info["size"] or 0), _stamp(info))], []
        elif files.isdir(root):
            infos = files.find(root, detail=True)
            base = files.unstrip_protocol(root)
        else:
            raise InputError(f"{url}: no such file")
        pattern = _inner(files.unstrip_protocol(root), base) if _WILD.search(url) else ()
        initials = {name[:1] for name in pattern}
        chosen: list[Place] = []
        skipped: list[tuple[str, str]] = []
        for info in infos.values():
            if info.get("type") != "file":
                continue
            path = files.unstrip_protocol(info["name"])
            marks = [name[0] for name in _inner(path, base) if name[0] in {".", "_"} - initials]
            if marks:
                skipped.append((path, f"its name begins with {marks[0]!r}"))
            elif _has_form(path):
                chosen.append(Place(path, int(info["size"] or 0), _stamp(info)))
            else:
                skipped.append(_no_table(path, files.cat_file(info["name"], 0, _BYTES_LOOKED_AT)))
        return base, chosen, skipped


def _stamp(info: Mapping[str, Any]) -> str:
    return next((str(info[key]) for key in _STAMPS if info.get(key) is not None), "")


@contextmanager
def refusals(title: str) -> Iterator[None]:
    """Say which table was refused; every kind of place and every engine has errors of its own."""
    try:
        yield
    except (HowsureError, ImportError):
        raise
    except Exception as error:
        reason = " ".join(f"{type(error).__name__}: {error}".rstrip(": ").split())
        raise InputError(f"{title} cannot be read: {reason[:300]}") from error


def fixed_folder(pattern: str) -> str:
    """The folder before the first part that holds a wildcard."""
    names = pattern.split("/")
    first = next(position for position, name in enumerate(names) if _WILD.search(name))
    return "/".join(names[:first])


def _inner(path: str, base: str) -> tuple[str, ...]:
    """The parts of a path below a folder."""
    plain_path = Path(path).as_posix() if not is_address(path) else path
    start = Path(base).as_posix() if base and not is_address(base) else base
    within = (
        plain_path[len(start) :]
        if start not in ("", ".") and plain_path.startswith(start)
        else plain_path
    )
    return tuple(name for name in PurePosixPath(within.lstrip("/")).parts if name != "/")


def _partitioned(files: Sequence[Place], base: str) -> Iterator[Place]:
    """The files with what their folders say, as numbers where all values of a key are some."""
    stated: list[dict[str, str | None]] = []
    for file in files:
        pairs = [name.split("=", 1) for name in _inner(file.path, base)[:-1] if "=" in name[1:]]
        stated.append({key: None if text == _NULL else unquote(text) for key, text in pairs})
    texts: dict[str, list[str]] = {}
    for key, text in (pair for values in stated for pair in values.items() if pair[1] is not None):
        texts.setdefault(key, []).append(str(text))
    numeric = {key for key, values in texts.items() if all(map(_is_number, values))}
    for file, values in zip(files, stated, strict=True):
        facts = ((key, _number(text) if key in numeric else text) for key, text in values.items())
        yield replace(file, partition=tuple(facts))


def _is_number(text: str) -> bool:
    return "_" not in text and as_number(text) is not None


def _number(text: str | None) -> float | None:
    if text is None:
        return None
    return int(text) if re.fullmatch(r"[+-]?\d+", text.strip()) else float(text)


# ---- what was read of a table: its files, and what lies beside them and was not read -------------

# Sums of hashes of 64 bits.
_KEY_RANGE = 2**64
MIN_ROWS_OF_KEY = 10  # rows whose key tells them from others, even where they take few values
# What is noted of states that it tells of: as paths.
_MAX_NOTES = 3
# Files that a report lists: more than a folder of a few years of days holds; a list of millions
# would be the report.
_MAX_FILES_LISTED = 10_000


@frozen(kw_only=True)
class ReadFile:
    """A file that was read, or what yields rows and is no file."""

    found: str  # the path, address or name that it was found under
    path: str = ""  # the path with all links followed; empty where it is none
    linked: bool = False  # whether a link leads to it from the table's folder
    size: int = 0  # its bytes, before and after it was read
    # when it was last changed, before and after it was read, as far as that is told
    modified: str = ""
    rows: int = 0  # rows that were read, dropped ones included
    # the sum of the hashes of its kept rows: the same for the same rows in any order, whatever file
    # they lie in; empty where there are none
    key: str = ""

    @classmethod
    def of(cls, file: Place, rows: int = 0, key: str = "") -> Self:
        """Of a file as it was found."""
        if file.remote:
            path, modified = file.path, file.stamp
        else:
            folder, name = os.path.split(file.path)
            path = os.path.join(os.path.realpath(folder), name)
            path = os.path.realpath(path) if file.linked else path
            seconds = int(file.stamp) / 1e9
            modified = datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")
        return cls(
            found=file.path,
            path=path,
            linked=file.linked,
            size=file.size,
            modified=modified,
            rows=rows,
            key=key,
        )

    def joined(self, other: Self) -> Self:
        """With further rows of the same file."""
        key = (int(self.key or "0", 16) + int(other.key or "0", 16)) % _KEY_RANGE
        return replace(self, rows=self.rows + other.rows, key=f"{key:016x}")

    @property
    def origin(self) -> tuple[str, ...]:
        """What tells a file from what is written in its place later; nothing where it is none."""
        return (self.path, str(self.size), self.modified) if self.path else ()


def key_of(hashes: np.ndarray) -> str:
    """The key of rows with these hashes."""
    return f"{int(hashes.sum(dtype=np.uint64)):016x}"


@frozen(kw_only=True)
class Manifest:
    """All that was read of a table."""

    files: tuple[ReadFile, ...] = ()  # in their order; a file once
    skipped: tuple[tuple[str, str], ...] = ()  # what lies beside them and was not read, and why
    notes: tuple[str, ...] = ()  # what else the reader of a result should know of them

    def joined(self, *manifests: Manifest) -> Manifest:
        """Of all, where they are of one table: what is read of a file in several is one."""
        files: dict[tuple[str, ...], ReadFile] = {}
        for manifest in (self, *manifests):
            for file in manifest.files:
                mark = (file.found, *file.origin)
                files[mark] = files[mark].joined(file) if mark in files else file
        return replace(self.merged(*manifests), files=tuple(files.values()))

    def merged(self, *manifests: Manifest) -> Manifest:
        """Of all, where they are of different tables."""
        parts = (self, *manifests)
        return Manifest(
            files=tuple(file for manifest in parts for file in manifest.files),
            skipped=tuple(
                dict.fromkeys(
                    path_and_reason for manifest in parts for path_and_reason in manifest.skipped
                )
            ),
            notes=tuple(dict.fromkeys(note for manifest in parts for note in manifest.notes)),
        )

    def fact(self) -> str:
        """What to state of it in a report; nothing of one file that is all there is."""
        if len(self.files) < 2 and not self.skipped and not self.notes:
            return ""
        rows = sum(file.rows for file in self.files)
        count = len(self.files)
        facts = [f"{count:,} file{'s' * (count != 1)}, {rows:,} rows"] if count else []
        if links := sum(file.linked for file in self.files):
            facts.append(f"{links:,} of them through links")
        if self.skipped:
            facts.append(f"not read: {listed_skipped(self.skipped)}")
        for first, second in list(self.equals())[:3]:
            facts.append(
                f"{first.found} and {second.found} have the same rows, which are counted twice"
            )
        facts += self.notes[:_MAX_NOTES]
        if len(self.notes) > _MAX_NOTES:
            facts.append(f"and {len(self.notes) - _MAX_NOTES:,} more such notes")
        return "; ".join(facts)

    def equals(self) -> Iterator[tuple[ReadFile, ReadFile]]:
        """Files that hold the same rows as an earlier one."""
        first: dict[tuple[str, int], ReadFile] = {}
        for file in self.files:
            if file.rows >= MIN_ROWS_OF_KEY and file.key:
                other = first.setdefault((file.key, file.rows), file)
                if other is not file:
                    yield other, file

    def table(self) -> ResultTable:
        """The files as a table of a report."""
        files = self.files[:_MAX_FILES_LISTED]
        columns: dict[str, Sequence[object]] = {
            "file": [file.path or file.found for file in files],
            "found_as": [file.found for file in files],
            "bytes": [file.size for file in files],
            "modified": [file.modified for file in files],
            "rows": [file.rows for file in files],
            "key": [file.key for file in files],
        }
        notes = [f"{note}." for note in self.notes]
        notes += [f"{path} was not read: {why}." for path, why in self.skipped[:_MAX_FILES_LISTED]]
        return ResultTable(
            name="files",
            columns={name: np.array(values) for name, values in columns.items()},
            notes=" ".join(notes),
        )
