"""What was read of a table: its files, and what lies beside them and was not read."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Final, Self

import numpy as np

from howsure.core.records import Table
from howsure.inputs.places import Place, listed_skipped

_KEY: Final = 2**64
FEWEST: Final = 10  # rows whose key tells them from others, even where they take few values
_NOTES: Final = 3  # and what is noted of states that it tells of
_MOST: Final = 10_000  # files that a report lists


@dataclass(frozen=True, slots=True, kw_only=True)
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
    def of(cls, place: Place, rows: int = 0, key: str = "") -> Self:
        """Of a file as it was found."""
        if place.remote:
            path, modified = place.path, place.stamp
        else:
            folder, name = os.path.split(place.path)
            path = os.path.join(os.path.realpath(folder), name)
            path = os.path.realpath(path) if place.linked else path
            seconds = int(place.stamp) / 1e9
            modified = datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")
        return cls(
            found=place.path,
            path=path,
            linked=place.linked,
            size=place.size,
            modified=modified,
            rows=rows,
            key=key,
        )

    def joined(self, other: Self) -> Self:
        """With further rows of the same file."""
        key = sum(int(each.key or "0", 16) for each in (self, other)) % _KEY
        return replace(self, rows=self.rows + other.rows, key=f"{key:016x}")

    @property
    def origin(self) -> tuple[str, ...]:
        """What tells a file from what is written in its place later; nothing where it is none."""
        return (self.path, str(self.size), self.modified) if self.path else ()


def key_of(hashes: np.ndarray) -> str:
    """The key of rows with these hashes."""
    return f"{int(hashes.sum(dtype=np.uint64)):016x}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """All that was read of a table."""

    files: tuple[ReadFile, ...] = ()  # in their order; a file once
    skipped: tuple[tuple[str, str], ...] = ()  # what lies beside them and was not read, and why
    notes: tuple[str, ...] = ()  # what else the reader of a result should know of them

    def joined(self, *others: Manifest) -> Manifest:
        """Of all, where they are of one table: what is read of a file in several is one."""
        files: dict[tuple[str, ...], ReadFile] = {}
        for held in (self, *others):
            for file in held.files:
                place = (file.found, *file.origin)
                files[place] = files[place].joined(file) if place in files else file
        return replace(self.beside(*others), files=tuple(files.values()))

    def beside(self, *others: Manifest) -> Manifest:
        """Of all, where they are of different tables."""
        parts = (self, *others)
        return Manifest(
            files=tuple(file for held in parts for file in held.files),
            skipped=tuple(dict.fromkeys(each for held in parts for each in held.skipped)),
            notes=tuple(dict.fromkeys(note for held in parts for note in held.notes)),
        )

    def fact(self) -> str:
        """What to state of it in a report; nothing of one file that is all there is."""
        if len(self.files) < 2 and not self.skipped and not self.notes:
            return ""
        rows = sum(file.rows for file in self.files)
        count = len(self.files)
        told = [f"{count:,} file{'s' * (count != 1)}, {rows:,} rows"] if count else []
        links = sum(each.linked for each in self.files)
        told += [f"{links:,} of them by links"] * bool(links)
        told += [f"not read: {listed_skipped(self.skipped)}"] * bool(self.skipped)
        told += [
            f"{one.found} and {other.found} hold the same rows, which count twice"
            for one, other in list(self.equals())[:3]
        ]
        left = len(self.notes) - _NOTES
        told += [*self.notes[:_NOTES], *[f"and {left:,} more such notes"] * (left > 0)]
        return "; ".join(told)

    def equals(self) -> Iterator[tuple[ReadFile, ReadFile]]:
        """Files that hold the same rows as an earlier one."""
        first: dict[tuple[str, int], ReadFile] = {}
        for file in self.files:
            if file.rows >= FEWEST and file.key:
                other = first.setdefault((file.key, file.rows), file)
                if other is not file:
                    yield other, file

    def table(self) -> Table:
        """The files as a table of a report."""
        files = self.files[:_MOST]
        columns: dict[str, Sequence[object]] = {
            "file": [file.path or file.found for file in files],
            "found_as": [each.found for each in files],
            "bytes": [each.size for each in files],
            "modified": [each.modified for each in files],
            "rows": [each.rows for each in files],
            "key": [each.key for each in files],
        }
        notes = [f"{note}." for note in self.notes]
        notes += [f"{path} was not read: {why}." for path, why in self.skipped[:_MOST]]
        return Table(
            name="files",
            columns={name: np.array(values) for name, values in columns.items()},
            notes=" ".join(notes),
        )
