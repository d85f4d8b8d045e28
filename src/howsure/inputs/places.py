"""The files of a table that lies in one, in a folder, or where a pattern or an address says."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Any, Final
from urllib.parse import unquote

import pyarrow as pa

from howsure.core.errors import HowsureError, InputError, MissingDependencyError
from howsure.core.optional import require
from howsure.inputs.columns import as_number
from howsure.inputs.files import ARROW_ENDINGS, PARQUET_ENDINGS, check_sign, table_form
from howsure.inputs.source import listed

_WILD: Final = re.compile(r"[*?\[]")
_NULL: Final = "__HIVE_DEFAULT_PARTITION__"
_STAMPS: Final = ("mtime", "LastModified", "last_modified", "updated", "ETag", "etag", "created")


@dataclass(frozen=True, slots=True)
class Place:
    """A file, near or far.

    Attributes
    ----------
    path : str
        Its path or address.
    size : int
        Its bytes.
    stamp : str
        What changes when it does.
    partition : tuple of (str, str or number or None)
        What the names of its folders say, as columns.
    """

    path: str
    size: int
    stamp: str
    partition: tuple[tuple[str, str | float | None], ...] = ()

    @property
    def remote(self) -> bool:
        """Whether fsspec reads it."""
        return is_address(self.path)

    @property
    def form(self) -> str:
        """The kind of table that its ending says: parquet, arrow, .csv or .tsv."""
        ending, _ = table_form(self.path)
        if ending in PARQUET_ENDINGS:
            return "parquet"
        return "arrow" if ending in ARROW_ENDINGS else ending

    def open(self) -> pa.NativeFile:
        """The open file, its first bytes checked; an error where it is another than was found."""
        ending, packed = table_form(self.path)
        if self.remote:
            files, root = _far(self.path)
            with refusals(self.path):
                handler = pa.fs.FSSpecHandler(files)
                handle = pa.fs.PyFileSystem(handler).open_input_file(root)
        else:
            if _near(self.path).stamp != self.stamp:
                raise InputError(f"{self.path}: the file has changed since it was first looked at")
            handle = pa.OSFile(self.path)
        check_sign(handle.read(8), self.path, ending, packed)
        handle.seek(0)
        return handle


def is_address(path: str) -> bool:
    """Whether fsspec is asked for a path."""
    return "://" in path


def is_pattern(path: str) -> bool:
    """Whether a path stands for several: it holds a wildcard, and no file is called so."""
    return bool(_WILD.search(path)) and (is_address(path) or not os.path.exists(path))


def is_folder(path: str) -> bool:
    """Whether a path is that of a folder."""
    return not is_address(path) and os.path.isdir(path)


def places(source: str) -> tuple[str, tuple[Place, ...]]:
    """What to call the table, and its files in the order of their paths.

    Names that begin with a dot or an underscore are those of others in a folder: markers, and
    files that are still being written.
    """
    base, found = _listed_far(source) if is_address(source) else _listed_near(source)
    if base is None:
        return source, (replace(found[0], partition=()),)
    found = [place for place in found if not _is_hidden(place.path, base, source)]
    if not found:
        what = "no file matches" if _WILD.search(source) else "the folder holds no files"
        raise InputError(f"{source}: {what}, those whose names begin with '_' or '.' aside")
    found = sorted(found, key=lambda place: place.path)
    forms: dict[str, str] = {}
    for place in found:
        forms.setdefault(place.form, place.path)
    if len(forms) > 1:
        raise InputError(
            f"{source}: the files of one table must be of one kind, got "
            f"{' and '.join(forms)} (such as {listed(forms.values(), 3)}); a quoted pattern such "
            f"as '{source.rstrip('/')}/*{Path(found[0].path).suffix}' takes those of one"
        )
    count = f"{len(found):,} file{'s' * (len(found) > 1)}"
    folder = "/" * (not _WILD.search(source) and not source.endswith("/"))
    return f"{source}{folder} ({count})", tuple(_partitioned(found, base))


def _listed_near(source: str) -> tuple[str | None, list[Place]]:
    if not is_pattern(source):
        if not os.path.exists(source):
            raise InputError(f"{source}: there is no such file")
        if not os.path.isdir(source):
            if not os.path.isfile(source):
                raise InputError(f"{source}: a regular file is needed")
            return None, [_near(source)]
        return source, [_near(path) for path in _below(source)]
    base = _fixed(source)
    found: list[Place] = []
    for path in dict.fromkeys(glob.glob(source, recursive=True)):
        inner = _below(path) if os.path.isdir(path) and "**" not in source else [path]
        found += [_near(one) for one in inner if os.path.isfile(one)]
    return base, found


def _below(folder: str) -> list[str]:
    """All files in a folder, and in those within it."""
    return [os.path.join(top, name) for top, _, names in os.walk(folder) for name in names]


def _near(path: str) -> Place:
    held = os.stat(path)
    return Place(path, held.st_size, str(held.st_mtime_ns))


def _far(url: str) -> tuple[Any, str]:
    """The file system of an address, and the path within."""
    core = require("fsspec.core", extra="cluster")
    kind = url.partition("://")[0]
    try:
        with refusals(url):
            files, root = core.url_to_fs(url)
    except ImportError as error:
        raise MissingDependencyError(
            f"a table at {kind}:// needs a library that is not installed: {error}"
        ) from error
    return files, root


def _listed_far(url: str) -> tuple[str | None, list[Place]]:
    files, root = _far(url)
    with refusals(url):
        files.invalidate_cache()
        if _WILD.search(url):
            found = files.glob(root, detail=True)
            if "**" not in root:
                for folder in [path for path, info in found.items() if info["type"] != "file"]:
                    found |= files.find(folder, detail=True)
            base = _fixed(files.unstrip_protocol(root))
        elif files.isfile(root):
            info = files.info(root)
            return None, [Place(url, int(info["size"] or 0), _stamp(info))]
        elif files.isdir(root):
            found = files.find(root, detail=True)
            base = files.unstrip_protocol(root)
        else:
            raise InputError(f"{url}: there is no such file")
        kept = [info for info in found.values() if info.get("type") == "file"]
        return base, [
            Place(files.unstrip_protocol(info["name"]), int(info["size"] or 0), _stamp(info))
            for info in kept
        ]


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
        told = " ".join(f"{type(error).__name__}: {error}".rstrip(": ").split())
        raise InputError(f"{title} cannot be read: {told[:300]}") from error


def _fixed(pattern: str) -> str:
    """The folder before the first part that holds a wildcard."""
    whole = pattern.split("/")
    first = next(place for place, part in enumerate(whole) if _WILD.search(part))
    return "/".join(whole[:first])


def _is_hidden(path: str, base: str, source: str) -> bool:
    """Whether a name below the folder begins with a mark that the pattern does not ask for."""
    asked = {part[:1] for part in source.split("/")} & {".", "_"}
    return any(part[:1] in {".", "_"} - asked for part in _inner(path, base))


def _inner(path: str, base: str) -> tuple[str, ...]:
    """The parts of a path below a folder."""
    whole = Path(path).as_posix() if not is_address(path) else path
    start = Path(base).as_posix() if base and not is_address(base) else base
    within = whole[len(start) :] if start not in ("", ".") and whole.startswith(start) else whole
    return tuple(part for part in PurePosixPath(within.lstrip("/")).parts if part != "/")


def _partitioned(found: Sequence[Place], base: str) -> Iterator[Place]:
    """The files with what their folders say, as numbers where all values of a key are some."""
    said = [
        dict(part.split("=", 1) for part in _inner(place.path, base)[:-1] if "=" in part[1:])
        for place in found
    ]
    plain = [{key: _text(value) for key, value in one.items()} for one in said]
    keys = dict.fromkeys(key for one in plain for key in one)
    numeric = {key for key in keys if _all_numbers(one.get(key) for one in plain)}
    for place, one in zip(found, plain, strict=True):
        pairs = ((key, _number(text) if key in numeric else text) for key, text in one.items())
        yield replace(place, partition=tuple(pairs))


def _text(value: str) -> str | None:
    return None if value == _NULL else unquote(value)


def _all_numbers(found: Iterable[str | None]) -> bool:
    held = [text for text in found if text is not None]
    return bool(held) and all("_" not in text and as_number(text) is not None for text in held)


def _number(text: str | None) -> float | None:
    if text is None:
        return None
    return int(text) if re.fullmatch(r"[+-]?\d+", text.strip()) else float(text)
