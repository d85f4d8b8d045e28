"""The store: results of trials by address, written whole, never changed by a later version.

A store is a folder::

    store.json                       the version of this form
    trials/<address>/trial.json      what the trial was, how it ended, its files; written last
    trials/<address>/records.parquet and further tables
    trials/<address>/.claim          locked while a process works on the trial

A trial counts as done when its `trial.json` says so and its files are as that says. What a
process that died left behind does not count, and the next run writes over it. The folder
`artefacts/` is kept free for things that trials share.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, final

import pyarrow as pa

from howsure.core.errors import HowsureError, InputError
from howsure.results.address import canonical
from howsure.results.folder import LocalFolder
from howsure.results.tables import parquet_bytes, parquet_table, stacked, to_arrow
from howsure.results.trials import TrialEntry, TrialError, TrialOutput

FORMAT: Final = 1
"""Version of the store's form; part of every trial's address."""


class DamagedError(HowsureError):
    """A file of the store is not what was written."""


@final
class Store:
    """Results of trials, by address.

    Parameters
    ----------
    location : path
        A local folder. One that does not exist, or is empty, becomes a store when something is
        written.

    Raises
    ------
    InputError
        If the folder holds something else, its form is newer than this howsure knows, or the
        location is an address on the net.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from howsure.core.records import Table
    >>> store = Store(tempfile.mkdtemp())
    >>> numbers = Table(name="records", columns={"value": np.array([0.9])})
    >>> store.write("ab12", {"seed": 0}, TrialOutput(records=numbers))
    >>> store.entry("ab12").status
    'done'
    >>> store.table("ab12", "records").column_names
    ['trial', 'value']
    """

    __slots__ = ("_folder",)

    def __init__(self, location: str | os.PathLike[str]) -> None:
        if "://" in str(location):
            raise InputError(f"store must be a local folder, got {str(location)!r}")
        self._folder = LocalFolder(location)
        self._check_form()

    @property
    def root(self) -> Path:
        """The store's folder."""
        return self._folder.root

    def addresses(self) -> tuple[str, ...]:
        """Addresses of all trials that were ever begun, sorted."""
        return self._folder.names("trials")

    def entry(self, address: str, *, thorough: bool = False) -> TrialEntry:
        """What is known of a trial.

        Parameters
        ----------
        address : str
            The trial's address.
        thorough : bool
            Whether its tables are read whole and compared with their hashes, or only their sizes
            are looked at.

        Returns
        -------
        TrialEntry
        """
        data = self._folder.read(_file(address, "trial.json"))
        if data is None:
            return TrialEntry(address=address, status="missing")
        try:
            held = _parsed(data)
        except ValueError as error:
            problem = f"{self._path(address, 'trial.json')} is not readable: {error}"
            return TrialEntry(address=address, status="damaged", problem=problem)
        problem = self._problem(address, held["files"], thorough=thorough)
        failure = held["failure"]
        return TrialEntry(
            address=address,
            status="damaged" if problem else held["status"],
            identity=held["identity"],
            facts=held["facts"],
            failure=None if failure is None else TrialError(**failure),
            failed_parts=held["failed_parts"],
            tables=tuple(name.removesuffix(".parquet") for name in held["files"]),
            provenance=held["provenance"],
            problem=problem,
        )

    def table(self, address: str, name: str) -> pa.Table:
        """One table of a trial that is done.

        Parameters
        ----------
        address : str
            The trial's address.
        name : str
            ``records``, ``predictions`` or another of its tables.

        Returns
        -------
        pyarrow.Table

        Raises
        ------
        InputError
            If the trial has no such table.
        DamagedError
            If the file is not what was written; the message names it.
        """
        data = self._folder.read(_file(address, "trial.json"))
        try:
            files = {} if data is None else _parsed(data)["files"]
        except ValueError as error:
            path = self._path(address, "trial.json")
            raise DamagedError(f"{path} is not readable: {error}") from error
        file = f"{name}.parquet"
        if file not in files:
            given = ", ".join(files) or "no tables"
            raise InputError(f"trial {address[:12]} has {given}, got the name {name!r}")
        path = self._path(address, file)
        content = self._content(address, file, files[file])
        if content is None:
            raise DamagedError(f"{path} is not what was written: run its trial again")
        return parquet_table(content, path)

    def tables(self, name: str = "records", addresses: Iterable[str] | None = None) -> pa.Table:
        """One table of many trials, one below the other.

        Parameters
        ----------
        name : str
            As in `table`.
        addresses : iterable of str, optional
            Which trials; all that are done if omitted.

        Returns
        -------
        pyarrow.Table
            Trials that are not done, or lack the table, are left out.
        """
        entries = (self.entry(a) for a in (self.addresses() if addresses is None else addresses))
        chosen = [e.address for e in entries if e.status == "done" and name in e.tables]
        return stacked([self.table(address, name) for address in chosen])

    def write(
        self,
        address: str,
        identity: Mapping[str, Any],
        output: TrialOutput,
        provenance: Mapping[str, Any] | None = None,
    ) -> None:
        """Keep what a trial gave.

        Parameters
        ----------
        address : str
            The trial's address.
        identity : mapping
            What it is the hash of.
        output : TrialOutput
            What to keep.
        provenance : mapping, optional
            Where and with what it was made.

        Raises
        ------
        InputError
            If the system refuses, as a full disk does; then the trial is as it was before, or
            not done.
        """
        files: dict[str, dict[str, str | int]] = {}
        for name, held in output.named_tables().items():
            data = parquet_bytes(to_arrow(held, {"trial": address, **output.keys}))
            files[f"{name}.parquet"] = {
                "bytes": len(data),
                "sha256": hashlib.sha256(data).hexdigest(),
            }
            self._write(_file(address, f"{name}.parquet"), data)
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
        """Keep why a trial failed.

        Raises
        ------
        InputError
            As `write`.
        """
        told = {"error": failure.error, "message": failure.message, "trace": failure.trace}
        self._finish(
            address,
            status="failed",
            identity=identity,
            failure=told,
            provenance=provenance or {},
        )

    @contextmanager
    def claimed(self, address: str, note: Mapping[str, Any]) -> Iterator[bool]:
        """Claim a trial for this process; gives whether it is this process's.

        The claim ends with the block or the process, whichever is first. Two runs on one store
        share its trials so, and do none twice.

        Raises
        ------
        InputError
            If the system refuses to write.
        """
        self._ready()
        with self._folder.claimed(_file(address, ".claim"), canonical(note)) as mine:
            yield mine

    def claim_note(self, address: str) -> dict[str, Any]:
        """What the process says that works on a trial, or died at it; empty if neither."""
        try:
            told = json.loads(self._folder.noted(_file(address, ".claim")) or "{}")
        except ValueError:
            return {}
        return told if isinstance(told, dict) else {}

    def in_work(self, address: str) -> bool:
        """Whether some process works on a trial now."""
        return self._folder.held(_file(address, ".claim"))

    def _finish(self, address: str, **told: Any) -> None:
        """Write the file that makes a trial count."""
        blank: dict[str, Any] = {"facts": {}, "failure": None, "failed_parts": 0, "files": {}}
        content = {"format": FORMAT, "address": address, **blank, **told}
        self._write(_file(address, "trial.json"), json.dumps(content, indent=1).encode())

    def _write(self, name: str, data: bytes) -> None:
        self._ready()
        self._folder.write(name, data)

    def _ready(self) -> None:
        if self._folder.size("store.json") is None:
            told = {"format": FORMAT, "what": "howsure results"}
            self._folder.write("store.json", json.dumps(told).encode())

    def _problem(self, address: str, files: Mapping[str, Any], *, thorough: bool) -> str:
        for file, told in files.items():
            path = self._path(address, file)
            size = self._folder.size(_file(address, file))
            if size != told["bytes"]:
                found = "missing" if size is None else f"of {size} bytes"
                return f"{path} should be of {told['bytes']} bytes and is {found}"
            if thorough and self._content(address, file, told) is None:
                return f"{path} is not what was written"
        return ""

    def _content(self, address: str, file: str, told: Mapping[str, Any]) -> bytes | None:
        """A file's bytes, if they are those that were written."""
        content = self._folder.read(_file(address, file)) or b""
        return content if hashlib.sha256(content).hexdigest() == told["sha256"] else None

    def _path(self, address: str, file: str) -> str:
        return str(self.root / _file(address, file))

    def _check_form(self) -> None:
        data = self._folder.read("store.json")
        if data is None:
            others = self._folder.names()
            if others or (self.root.exists() and not self.root.is_dir()):
                what = "is not one" if not others else f"holds {others[0]!r} and no store.json"
                raise InputError(f"store must be a store or an empty folder: {self.root} {what}")
            return
        try:
            form = json.loads(data)["format"]
        except (ValueError, TypeError, KeyError) as error:
            raise InputError(f"{self.root / 'store.json'} is not readable: {error!r}") from error
        if not isinstance(form, int) or form > FORMAT:
            raise InputError(_newer(str(self.root), form))


def _file(address: str, name: str) -> str:
    return f"trials/{address}/{name}"


def _newer(path: str, form: object) -> str:
    return (
        f"{path} was written by a newer howsure (form {form}; this one reads up to {FORMAT}): "
        "update howsure, or choose another store"
    )


def _parsed(data: bytes) -> dict[str, Any]:
    """What a trial.json holds; ValueError where it is not whole."""
    held = json.loads(data)
    wanted = {"format", "status", "identity", "facts", "failure", "failed_parts", "files"}
    if not isinstance(held, dict) or not {*wanted, "provenance"} <= set(held):
        raise ValueError("it lacks what every trial.json holds")
    return held
