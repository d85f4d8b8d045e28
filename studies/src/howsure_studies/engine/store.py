"""The store: results of trials by address, written whole, never changed by a later version.

A store is a folder, on a disk or at a URL::

    store.json                       the version of this form
    trials/<address>/trial.json      what the trial was, how it ended, its files; written last
    trials/<address>/records.parquet and further tables
    trials/<address>/arrays.npz      arrays, where the trial gave any
    trials/<address>/.claim          locked, or renewed, while a process works on the trial
    trials/<address>/.scratch        what a trial saves of itself on its way, until it ends
    runs/<token>                     there while a run lends its work to other machines
    plans/<address>.json             trials of a plan that names a user's code, as last run

A trial counts as done when its `trial.json` says so and its files are as that says. What a
process that died left behind does not count, and the next run writes over it.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import types
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import field
from functools import partial
from pathlib import Path
from typing import Any, Final, Literal, final

import pyarrow as pa

from howsure.core.arrays import AnyArray, shortened
from howsure.core.classes import frozen
from howsure.core.errors import HowsureError, InputError
from howsure.core.files import LocalFolder, RemoteFolder
from howsure.core.records import ResultTable
from howsure_studies.engine.locks import FileLocks, Folder, Locks, SystemLocks
from howsure_studies.engine.tables import (
    arrays_bytes,
    arrays_of,
    parquet_bytes,
    parquet_table,
    stacked,
    to_arrow,
)

FORMAT: Final = 1
"""Version of the store's form; part of every trial's address."""

_ARRAYS: Final = "arrays.npz"
_AT_ONCE: Final = 16  # requests to a place at a URL
_FILE: Final = re.compile(r"\w[\w.-]*\.parquet|arrays\.npz")
_TEMPORARY: Final = re.compile(r"\.[0-9a-f]{16}(\.\w+)?")
_KINDS: Final[Mapping[str, type | types.UnionType]] = {
    "format": int,
    "status": str,
    "identity": dict,
    "facts": dict,
    "failure": dict | None,
    "failed_parts": int,
    "files": dict,
    "provenance": dict,
}


Status = Literal["missing", "done", "failed", "damaged"]
"""No result; a result; a recorded error; files that are not what was written."""


@final
@frozen(kw_only=True)
class TrialOutput:
    """What a trial gives, to be kept.

    Attributes
    ----------
    records : ResultTable, optional
        Its numbers, one a row, where someone reads them: what follows from arrays need not stand
        here too.
    predictions : ResultTable, optional
        What was believed, as far as results are made from it.
    tables : mapping of str to ResultTable
        Further tables by name.
    arrays : mapping of str to array
        What is no table: a network's outputs, its features, its own bytes. Numbers or booleans of
        any shape.
    keys : mapping of str to str or int
        Columns added to every table, the same in every row: the method's name and the like.
    facts : mapping
        Plain values beside the tables.
    failed_parts : int
        Parts of the trial that failed and were left out, where it has parts.
    """

    records: ResultTable | None = None
    predictions: ResultTable | None = None
    tables: Mapping[str, ResultTable] = field(default_factory=dict)
    arrays: Mapping[str, AnyArray] = field(default_factory=dict)
    keys: Mapping[str, str | int] = field(default_factory=dict)
    facts: Mapping[str, Any] = field(default_factory=dict)
    failed_parts: int = 0

    def named_tables(self) -> dict[str, ResultTable]:
        """All tables by name."""
        given = {"records": self.records, **self.tables, "predictions": self.predictions}
        return {name: table for name, table in given.items() if table is not None}


@final
@frozen(kw_only=True)
class TrialError:
    """Why a trial failed.

    Attributes
    ----------
    error, message, trace : str
        The error's class, its message, and the traceback.
    """

    error: str
    message: str
    trace: str = ""


@final
@frozen(kw_only=True)
class TrialEntry:
    """What a store says of a trial without reading its tables.

    Attributes
    ----------
    address : str
        The trial's address.
    status : {"missing", "done", "failed", "damaged"}
        Whether there is a result.
    identity : mapping
        What the address is the hash of.
    facts : mapping
        Plain values beside the tables.
    failure : TrialError, optional
        Why it failed.
    failed_parts : int
        Parts that failed and were left out.
    tables : tuple of str
        Names of its tables.
    provenance : mapping
        Versions, machine, start and seconds.
    problem : str
        What is wrong with its files.
    """

    address: str
    status: Status
    identity: Mapping[str, Any] = field(default_factory=dict)
    facts: Mapping[str, Any] = field(default_factory=dict)
    failure: TrialError | None = None
    failed_parts: int = 0
    tables: tuple[str, ...] = ()
    provenance: Mapping[str, Any] = field(default_factory=dict)
    problem: str = ""


def address_of(identity: Mapping[str, Any]) -> str:
    """The address of a trial.

    Parameters
    ----------
    identity : mapping
        What decides the outcome, as plain values: text, numbers, booleans, None, lists and
        mappings of text to these. Order of keys does not matter; an integer is not a float.

    Returns
    -------
    str
        SHA-256 of its canonical JSON, as 64 hexadecimal digits.

    Raises
    ------
    InputError
        If a value is of another kind, or a number is not finite.

    Examples
    --------
    >>> address_of({"seed": 0, "world": "linear"})[:12]
    'ec8b1b3a2901'
    >>> address_of({"world": "linear", "seed": 0}) == address_of({"seed": 0, "world": "linear"})
    True
    """
    return hashlib.sha256(canonical(identity).encode()).hexdigest()


def canonical(identity: Mapping[str, Any]) -> str:
    """The one JSON text of plain values; see `address_of`."""
    try:
        return json.dumps(identity, sort_keys=True, separators=(",", ":"), allow_nan=False)
    except (TypeError, ValueError) as error:
        raise InputError(
            f"the settings of a trial must be text, finite numbers, lists and tables: {error}"
        ) from error


class DamagedError(HowsureError):
    """A file of the store has changed since it was written."""


class OutputError(InputError):
    """What a trial gave cannot be kept."""


@final
class Store:
    """Results of trials, by address.

    Parameters
    ----------
    location : path or str
        A local folder, or a URL that fsspec knows: ``s3://bucket/folder``, ``memory://name``
        (this process's own). ``file:///folder`` is the local folder; ``local:///folder`` is one
        on a disk that offers no locks, where files take their place. One that does not exist, or is
        empty, becomes a store when something is written.

    Raises
    ------
    InputError
        If the place holds something else, its form is newer than this howsure knows, the kind of
        URL is not known, or the place refuses.
    MissingDependencyError
        If the library for this kind of URL is not installed.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from howsure.core.records import ResultTable
    >>> store = Store(tempfile.mkdtemp())
    >>> numbers = ResultTable(name="records", columns={"value": np.array([0.9])})
    >>> store.write("ab12", {"seed": 0}, TrialOutput(records=numbers))
    >>> store.entry("ab12").status
    'done'
    >>> store.table("ab12", "records").column_names
    ['trial', 'value']
    """

    __slots__ = ("_folder", "_locks")

    def __init__(self, location: str | os.PathLike[str]) -> None:
        self._folder, self._locks = _opened(str(location))
        self._check_form()

    @property
    def location(self) -> str:
        """Where the store is, as `Store` takes it."""
        return self._folder.location

    @property
    def shared(self) -> bool:
        """Whether other processes see what this one writes."""
        return self._folder.shared

    def scratch(self, address: str) -> Path | None:
        """A file for what a trial wants to find again if it is cut off; gone when it ends.

        None at URLs.
        """
        if not isinstance(self._folder, LocalFolder):
            return None
        path = self._folder.root / _file(address, ".scratch")
        path.parent.mkdir(parents=True, exist_ok=True)
        return path

    @property
    def root(self) -> Path:
        """The store's folder on a disk."""
        if not isinstance(self._folder, LocalFolder):
            raise InputError(f"store must be on a disk, got {self.location!r}")
        return self._folder.root

    def addresses(self) -> tuple[str, ...]:
        """Addresses of all trials that were ever begun, sorted."""
        return self._folder.names("trials")

    def entry(self, address: str, *, thorough: bool = False) -> TrialEntry:
        """What is known of a trial."""
        data = self._folder.read(_file(address, "trial.json"))
        if data is None:
            return TrialEntry(address=address, status="missing")
        try:
            content = _parsed(data)
        except ValueError as error:
            problem = f"{self._path(address, 'trial.json')} is not readable: {error}"
            return TrialEntry(address=address, status="damaged", problem=problem)
        problem = self._problem(address, content["files"], thorough=thorough)
        failure = content["failure"]
        return TrialEntry(
            address=address,
            status="damaged" if problem else content["status"],
            identity=content["identity"],
            facts=content["facts"],
            failure=None if failure is None else TrialError(**failure),
            failed_parts=content["failed_parts"],
            tables=tuple(n.removesuffix(".parquet") for n in content["files"] if n != _ARRAYS),
            provenance=content["provenance"],
            problem=problem,
        )

    def entries(self, addresses: Iterable[str], *, thorough: bool = False) -> dict[str, TrialEntry]:
        """What is known of many trials, as `entry` tells it; several at a time at a URL."""
        wanted = tuple(dict.fromkeys(addresses))
        look = partial(self.entry, thorough=thorough)
        if self._folder.near:
            return dict(zip(wanted, map(look, wanted), strict=True))
        with ThreadPoolExecutor(_AT_ONCE) as crew:
            return dict(zip(wanted, crew.map(look, wanted), strict=True))

    def table(self, address: str, name: str, columns: Sequence[str] | None = None) -> pa.Table:
        """One table of a trial that is done; of these columns, those that it has, or all."""
        files, file = self._files(address) or {}, f"{name}.parquet"
        if file not in files:
            given = ", ".join(files) or "no tables"
            raise InputError(f"trial {address[:12]} has {given}, got the name {name!r}")
        content = self._read_content(address, file, files[file])
        return parquet_table(content, self._path(address, file), columns)

    def arrays(self, address: str) -> dict[str, AnyArray]:
        """Arrays of a trial that is done."""
        files = self._files(address)
        if files is None:
            raise InputError(f"trial {address[:12]} must be done, got no results of it")
        if _ARRAYS not in files:
            return {}
        content = self._read_content(address, _ARRAYS, files[_ARRAYS])
        return arrays_of(content, self._path(address, _ARRAYS))

    def tables(self, name: str = "records", addresses: Iterable[str] | None = None) -> pa.Table:
        """One table of many trials, one below the other."""
        entries = self.entries(self.addresses() if addresses is None else addresses).values()
        chosen = [e.address for e in entries if e.status == "done" and name in e.tables]
        return stacked([self.table(address, name) for address in chosen])

    def write(
        self,
        address: str,
        identity: Mapping[str, Any],
        output: TrialOutput,
        provenance: Mapping[str, Any] | None = None,
    ) -> None:
        """Keep what a trial gave."""
        files: dict[str, dict[str, str | int]] = {}
        for file, data in _contents(address, output):
            files[file] = {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
            self._write(_file(address, file), data)
        self._finish(
            address,
            status="done",
            identity=identity,
            facts=output.facts,
            failed_parts=output.failed_parts,
            files=files,
            provenance=provenance or {},
        )

    def write_failure(
        self,
        address: str,
        identity: Mapping[str, Any],
        failure: TrialError,
        provenance: Mapping[str, Any] | None = None,
    ) -> None:
        """Keep why a trial failed."""
        fields = {"error": failure.error, "message": failure.message, "trace": failure.trace}
        self._finish(
            address,
            status="failed",
            identity=identity,
            failure=fields,
            provenance=provenance or {},
        )

    @contextmanager
    def claimed(self, address: str, note: Mapping[str, Any]) -> Iterator[bool]:
        """Claim a trial for this process; gives whether it is this process's.

        The claim ends with the block or the process, whichever is first; at a URL, a minute after
        the process's last sign of life. Two runs on one store share its trials so, and do none
        twice; at a URL two that claim one trial at the same moment may both do it.
        """
        self._ready()
        with self._locks.locked(_file(address, ".claim"), canonical(note)) as mine:
            yield mine

    def claim_note(self, address: str) -> dict[str, Any]:
        """What the process says that works on a trial, or died at it; empty if neither."""
        try:
            note = json.loads(self._locks.noted(_file(address, ".claim")) or "{}")
        except ValueError:
            return {}
        return note if isinstance(note, dict) else {}

    def in_work(self, address: str) -> bool:
        """Whether some process works on a trial now."""
        return self._locks.is_held(_file(address, ".claim"))

    def disclaim(self, address: str) -> None:
        """End the claim of a process that is known to be dead."""
        self._locks.release(_file(address, ".claim"))

    @contextmanager
    def shown(self, token: str) -> Iterator[None]:
        """Keep a mark in the store while the block lasts, by which others know this store."""
        self._ready()
        try:
            with self._locks.locked(f"runs/{token}", token):
                yield
        finally:
            self._folder.remove(f"runs/{token}")

    def sees(self, token: str) -> bool:
        """Whether a mark of `shown` is here."""
        return self._folder.size(f"runs/{token}") is not None

    def sweep(self) -> None:
        """Remove what runs that died were just writing, and the marks of `shown` that they left.

        What a process works on is left alone. At a URL files appear whole, and only marks stay.
        """
        for token in self._folder.names("runs"):
            with self._locks.locked(f"runs/{token}", "") as mine:
                if mine:
                    self._folder.remove(f"runs/{token}")
        if not isinstance(self._folder, LocalFolder):
            return
        left: dict[str, list[Path]] = {}
        for path in (self._folder.root / "trials").glob("*/.*"):
            if _TEMPORARY.fullmatch(path.name):
                left.setdefault(path.parent.name, []).append(path)
        for address, paths in left.items():
            with self._locks.locked(_file(address, ".claim"), "") as mine:
                if mine:
                    for path in paths:
                        path.unlink(missing_ok=True)

    def keep_plan(self, address: str, trials: Sequence[Mapping[str, Any]]) -> None:
        """Keep what the trials of a plan are, for those who look and do not load its code."""
        content: dict[str, Any] = json.loads(
            json.dumps({"format": FORMAT, "trials": trials}, default=str)
        )
        content["sha256"] = _seal(content)
        self._write(f"plans/{address}.json", json.dumps(content).encode())

    def kept_plan(self, address: str) -> list[dict[str, Any]] | None:
        """What `keep_plan` kept; None without it, or if the file has changed."""
        data = self._folder.read(f"plans/{address}.json")
        try:
            content = json.loads(data or b"null")
            return content["trials"] if content["sha256"] == _seal(content) else None
        except (ValueError, TypeError, KeyError, RecursionError):
            return None

    def _finish(self, address: str, **fields: Any) -> None:
        """Write the file that makes a trial count."""
        blank: dict[str, Any] = {"facts": {}, "failure": None, "failed_parts": 0, "files": {}}
        try:
            content = json.loads(
                json.dumps({"format": FORMAT, "address": address, **blank, **fields})
            )
        except (TypeError, ValueError, RecursionError) as error:
            raise OutputError(f"facts must be plain values: {error}") from error
        content["sha256"] = _seal(content)
        self._write(_file(address, "trial.json"), json.dumps(content, indent=1).encode())
        scratch = self.scratch(address)
        if scratch is not None:
            scratch.unlink(missing_ok=True)

    def _write(self, name: str, data: bytes) -> None:
        self._ready()
        self._folder.write(name, data)

    def _ready(self) -> None:
        if self._folder.size("store.json") is None:
            content = {"format": FORMAT, "what": "howsure results"}
            self._folder.write("store.json", json.dumps(content).encode())

    def _problem(self, address: str, files: Mapping[str, Any], *, thorough: bool) -> str:
        for file, expected in files.items():
            path = self._path(address, file)
            size = self._folder.size(_file(address, file))
            if size != expected["bytes"]:
                state = "missing" if size is None else f"of {size} bytes"
                return f"{path} should be of {expected['bytes']} bytes and is {state}"
            if thorough and self._folder.near and self._content(address, file, expected) is None:
                return f"{path} has changed since it was written"
        return ""

    def _files(self, address: str) -> dict[str, Any] | None:
        """Files of a trial, as its trial.json tells them; None where there is no result."""
        data = self._folder.read(_file(address, "trial.json"))
        try:
            content = {} if data is None else _parsed(data)
        except ValueError as error:
            path = self._path(address, "trial.json")
            raise DamagedError(f"{path} is not readable: {error}") from error
        return content["files"] if content.get("status") == "done" else None

    def _read_content(self, address: str, file: str, expected: Mapping[str, Any]) -> bytes:
        content = self._content(address, file, expected)
        if content is None:
            path = self._path(address, file)
            raise DamagedError(f"{path} has changed since it was written: run its trial again")
        return content

    def _content(self, address: str, file: str, expected: Mapping[str, Any]) -> bytes | None:
        """A file's bytes, if they are those that were written."""
        content = self._folder.read(_file(address, file)) or b""
        return content if hashlib.sha256(content).hexdigest() == expected["sha256"] else None

    def _path(self, address: str, file: str) -> str:
        return self._folder.path(_file(address, file))

    def _check_form(self) -> None:
        data = self._folder.read("store.json")
        if data is None:
            others = self._folder.names()
            if "store.json" in others:  # another process has just made it a store
                return self._check_form()
            if others or self._folder.is_file():
                what = f"contains {others[0]!r} but no store.json" if others else "is not one"
                raise InputError(
                    f"store must be a store or an empty folder: {self.location} {what}"
                )
            return
        path = self._folder.path("store.json")
        try:
            form = json.loads(data)["format"]
        except (ValueError, TypeError, KeyError, RecursionError) as error:
            raise InputError(
                f"{path} is not readable: {error!r}; restore it, or choose another store"
            ) from error
        if type(form) is not int:
            raise InputError(
                f"{path} is not readable: its format is {shortened(form)}; restore it, or choose "
                "another store"
            )
        if form != FORMAT:
            age, way = ("a newer", "update howsure") if form > FORMAT else ("an older", "use that")
            raise InputError(
                f"{self.location} was written by {age} howsure (form {shortened(form)}; this one "
                f"reads {FORMAT}): {way}, or choose another store"
            )


def _opened(location: str) -> tuple[Folder, Locks]:
    """A place, and how work is locked there."""
    kind, sign, rest = location.partition("://")
    if not sign:
        local = LocalFolder(location)
    elif kind in ("file", "local"):
        if not rest.strip("/"):
            raise InputError(f"store must name a folder, got {location!r}")
        local = LocalFolder(rest, "" if kind == "file" else location)
    else:
        remote = RemoteFolder(location)
        return remote, FileLocks(remote)
    return local, FileLocks(local) if kind == "local" else SystemLocks(local)


def _contents(address: str, output: TrialOutput) -> Iterator[tuple[str, bytes]]:
    """Files of an output and what they hold, one at a time, for they may be large."""
    keys = {"trial": address, **output.keys}
    for name, table in output.named_tables().items():
        if not isinstance(name, str) or not _FILE.fullmatch(f"{name}.parquet"):
            raise OutputError(
                f"names of tables must be letters, digits, '_', '-' and '.', got {name!r}"
            )
        yield f"{name}.parquet", _encoded(lambda table: parquet_bytes(to_arrow(table, keys)), table)
    if output.arrays:
        yield _ARRAYS, _encoded(arrays_bytes, output.arrays)


def _encoded(encode: Callable[[Any], bytes], given: object) -> bytes:
    try:
        return encode(given)
    except Exception as error:
        message = (
            str(error) if isinstance(error, HowsureError) else f"{type(error).__name__}: {error}"
        )
        raise OutputError(message) from error


def _file(address: str, name: str) -> str:
    return f"trials/{address}/{name}"


def _parsed(data: bytes) -> dict[str, Any]:
    """What a trial.json holds; ValueError where it is not whole, or not what is written there."""
    try:
        content = json.loads(data)
    except RecursionError as error:
        raise ValueError("it is nested too deep") from error
    if not isinstance(content, dict) or not _KINDS.keys() <= content.keys():
        raise ValueError("it lacks fields that every trial.json has")
    for key, kinds in _KINDS.items():
        if not isinstance(content[key], kinds) or isinstance(content[key], bool):
            raise ValueError(f"its {key} is {shortened(content[key])}")
    if "sha256" in content and content["sha256"] != _seal(content):
        raise ValueError("it has changed since it was written")
    failure = content["failure"]
    if content["status"] not in ("done", "failed") or (failure is None) != (
        content["status"] == "done"
    ):
        raise ValueError(f"its status is {content['status']!r}, beside its failure")
    if failure is not None and not _texts(failure, ("error", "message", "trace")):
        raise ValueError(f"its failure is {shortened(failure)}")
    for file, listed in content["files"].items():
        if not _FILE.fullmatch(file) or not isinstance(listed, dict):
            raise ValueError(f"it names the file {file!r}")
        if type(listed.get("bytes")) is not int or not isinstance(listed.get("sha256"), str):
            raise ValueError(f"its entry for {file} is {shortened(listed)}")
    return content


def _texts(fields: Mapping[str, Any], keys: tuple[str, ...]) -> bool:
    return set(fields) == set(keys) and all(isinstance(text, str) for text in fields.values())


def _seal(content: Mapping[str, Any]) -> str:
    """The hash of all else that a trial.json holds."""
    sealed = {key: value for key, value in content.items() if key != "sha256"}
    return hashlib.sha256(json.dumps(sealed, sort_keys=True).encode()).hexdigest()
