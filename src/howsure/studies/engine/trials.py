"""What a trial leaves in a store."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, final

import numpy.typing as npt

from howsure.core.records import Table

Status = Literal["missing", "done", "failed", "damaged"]
"""No result; a result; a recorded error; files that are not what was written."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class TrialOutput:
    """What a trial gives, to be kept.

    Attributes
    ----------
    records : Table, optional
        Its numbers, one a row, where someone reads them: what follows from arrays need not stand
        here too.
    predictions : Table, optional
        What was believed, as far as results are made from it.
    tables : mapping of str to Table
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

    records: Table | None = None
    predictions: Table | None = None
    tables: Mapping[str, Table] = field(default_factory=dict)
    arrays: Mapping[str, npt.NDArray[Any]] = field(default_factory=dict)
    keys: Mapping[str, str | int] = field(default_factory=dict)
    facts: Mapping[str, Any] = field(default_factory=dict)
    failed_parts: int = 0

    def named_tables(self) -> dict[str, Table]:
        """All tables by name."""
        given = {"records": self.records, **self.tables, "predictions": self.predictions}
        return {name: table for name, table in given.items() if table is not None}


@final
@dataclass(frozen=True, slots=True, kw_only=True)
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
@dataclass(frozen=True, slots=True, kw_only=True)
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
