"""Whether states share rows, told by the keys of their files and by sketches of their rows.

The sketch of rows is the least hashes of what they hold (bottom-k, Cohen and Kaplan, 2007): below
the bound of two sketches every row that both tables hold is in both. Rows of few values are equal
by chance, so that a share of common rows tells something only where rows of one table differ.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Self

import numpy as np

from howsure.core.arrays import FloatArray, IntArray
from howsure.core.brief import brief_repr
from howsure.core.errors import InputError
from howsure.core.rng import KeyArray
from howsure.inputs.places import FEWEST, ReadFile

_SIZE: Final = 8192
_SAME: Final = 0.5  # the share of common rows from which on they are taken for the same
_EQUAL: Final = 0.05  # the most rows that may have an equal in their own table, for that
_TIMES: Final = 5.0  # so much more than their own equals tell makes common rows worth a note
_LAST: Final = float(2**64)


@dataclass(frozen=True, slots=True, eq=False)
class Sketch:
    """The least hashes of what rows hold, in rising order, and how many rows have each."""

    hashes: KeyArray
    counts: IntArray

    __repr__ = brief_repr

    @classmethod
    def of(cls, hashes: KeyArray) -> Self:
        """Of rows with these hashes."""
        return cls.counted(hashes, np.ones(len(hashes), dtype=np.int64))

    @classmethod
    def counted(cls, hashes: KeyArray, counts: IntArray) -> Self:
        """Of hashes of so many rows each, some of which may be equal."""
        least, place = np.unique(hashes, return_inverse=True)
        whole = np.bincount(place, weights=counts, minlength=len(least)).astype(np.int64)
        return cls(least[:_SIZE], whole[:_SIZE])

    def joined(self, *others: Sketch) -> Sketch:
        """Of the rows of all."""
        every = (self, *others)
        return Sketch.counted(
            np.concatenate([each.hashes for each in every]),
            np.concatenate([each.counts for each in every]),
        )

    @property
    def bound(self) -> float:
        """Below this hash every row is in the sketch."""
        return float(self.hashes[-1]) if len(self.hashes) == _SIZE else _LAST

    @property
    def equals(self) -> float:
        """The share of different rows that come more than once, about."""
        return float(np.mean(self.counts > 1)) if len(self.counts) else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Contents:
    """What tells the rows of a state from those of others."""

    name: str
    files: tuple[ReadFile, ...]
    sketch: Sketch
    numbers: FloatArray  # of the rows of its sample


def shared_rows(states: Sequence[Contents]) -> tuple[str, ...]:
    """Notes on rows that states may have in common."""
    seen: dict[tuple[object, ...], tuple[int, ReadFile]] = {}
    for number, state in enumerate(states):
        if not len(state.sketch.hashes) and len(state.numbers) >= FEWEST:  # of an earlier version
            unknown = ReadFile(found=state.name)
            sample = (np.sort(state.numbers).tobytes(),)
            earlier, _ = seen.setdefault(sample, (number, unknown))
            if earlier != number:
                raise InputError(_twice(states[earlier].name, unknown, state.name, unknown))
        for file in state.files:
            for mark in _marks(file, state):
                earlier, other = seen.setdefault(mark, (number, file))
                if earlier != number:
                    raise InputError(_twice(states[earlier].name, other, state.name, file))
    return _common(states)


def _marks(file: ReadFile, state: Contents) -> list[tuple[object, ...]]:
    """What no two files share unless they hold the same rows."""
    found: list[tuple[object, ...]] = [file.origin] if file.origin and file.rows else []
    if file.key and file.rows >= FEWEST <= len(state.sketch.hashes):
        found.append((file.key, file.rows))
    return found


def _twice(name: str, one: ReadFile, other_name: str, other: ReadFile) -> str:
    files = dict.fromkeys(each.found for each in (one, other) if each.path)
    of = f" (of {' and '.join(files)})" if files else ""
    return (
        f"states must be of different rows to be merged, got the same rows{of} in {name} and in "
        f"{other_name}"
    )


def _common(states: Sequence[Contents]) -> tuple[str, ...]:
    """Notes on shares of rows that two states hold; states that share a hash are compared."""
    sketches = [state.sketch for state in states]
    hashes = np.concatenate([sketch.hashes for sketch in sketches])
    place = np.repeat(np.arange(len(states)), [len(each.hashes) for each in sketches])
    order = np.lexsort((place, hashes))
    hashes, place = hashes[order], place[order]
    again = np.flatnonzero(hashes[1:] == hashes[:-1])
    pairs = Counter(zip(place[again].tolist(), place[again + 1].tolist(), strict=True))
    notes = []
    for (first, second), count in sorted(pairs.items()):
        one, other = states[first], states[second]
        both = (one.sketch, other.sketch)
        bound = min(each.bound for each in both)
        sizes = [int(np.searchsorted(each.hashes, bound, "right")) for each in both]
        share, equals = count / min(sizes), max(each.equals for each in both)
        if count < FEWEST or share <= _TIMES * equals:
            continue
        fewer, more = (one, other) if sizes[0] <= sizes[1] else (other, one)
        told = "all" if share == 1.0 else f"about {100 * share:.0f} %"
        if share >= _SAME and equals <= _EQUAL:
            raise InputError(
                f"states must be of different rows to be merged, got {told} of the rows of "
                f"{fewer.name} in {more.name} too; a column of times tells equal rows of different "
                "days apart"
            )
        notes.append(
            f"{told} of the rows of {fewer.name} are equal to rows of {more.name}, and count twice"
        )
    return tuple(notes)
