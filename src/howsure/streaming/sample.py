"""A sample of rows, the same whatever the order of rows and however the table is cut.

Every row has a number in (0, 1) that what it holds decides, and the rows with the smallest numbers
are the sample (a bottom-k sample). Rows that are equal in everything are distinguished by how many
came before and by the batch they lie in: otherwise all of them were in it, or none. A row with a
frequency weight w stands for w rows, of which a binomial number is in the sample. Where rows
belong to clusters, or to blocks of time, these are taken whole: first as few of them as need be,
and where a few are still too many rows, some rows of each.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Self

import numpy as np
import pyarrow as pa
from scipy import special

from howsure.core.arrays import AnyArray, FloatArray, IntArray
from howsure.core.classes import frozen
from howsure.core.errors import InputError
from howsure.core.rng import KeyArray, row_hashes, row_keys, row_uniforms
from howsure.inputs.places import MIN_ROWS_OF_KEY, ReadFile
from howsure.inputs.values import is_number, together, written_out
from howsure.predictions import EvalSet
from howsure.streaming.totals import hashed_labels, numbers_of_time, unit_keys

# A share of 90 % is known to .2 points (95 %), and 400 MB hold what is made of it.
ROWS_OF_SAMPLE = 100_000
"""Rows of the sample."""
# A variance between 200 units is known to 10 %.
MIN_UNITS = 200
"""Clusters or blocks of time that the sample keeps at least, however many rows they have."""
# Beside six deviations of the number of rows: 1.2 times allows for a count of rows that is only
# about right.
_ROOM_OF_BOUND = 1.2


@frozen(eq=False)
class Sample:
    """Rows of a table with the numbers that chose them."""

    table: pa.Table  # the rows, as the table has them
    # shape (n,): the number of each row and that of its cluster or block of time; 0 where it has
    # none
    number: FloatArray
    unit: FloatArray
    copies: FloatArray  # shape (n,): frequency weights; 1 where there are none
    most: int  # rows that the sample may have
    # rows and units below these are in the sample
    bound: float
    unit_bound: float

    @classmethod
    def of(
        cls,
        table: pa.Table,
        evalsets: Sequence[EvalSet],
        *,
        most: int = ROWS_OF_SAMPLE,
        seed: int = 0,
        block: float = 1.0,
        bound: float = 1.0,
        hashes: KeyArray | None = None,
    ) -> Sample:
        """Of some rows, one evaluation set a model; `bound` is a first one.

        `hashes` are those of `content_hashes`, where they are at hand.
        """
        first = evalsets[0]
        if hashes is None:
            hashes = content_hashes(evalsets)
        number = row_uniforms(seed, "sample", told_apart(hashes))
        by, width, keys = unit_keys(first, block) or ("rows", 0.0, None)
        unit = np.zeros(first.n)
        if keys is not None and by != "rows":
            unit = row_uniforms(seed, f"sample {by}", row_hashes(keys, np.full(first.n, width)))
            bound = 1.0  # of a few clusters it might leave none
        weights = first.weights
        copies = np.ones(first.n)
        if weights is not None and weights.kind == "frequency":
            copies = weights.values
        sample = cls(table, number, unit, copies, most, bound, 1.0).within()
        return replace(sample, table=written_out(sample.table).replace_schema_metadata())

    @classmethod
    def of_cells(cls, table: pa.Table, *, most: int, seed: int) -> Sample:
        """Of rows that need not be understood, by what their cells say."""
        rows = written_out(table).replace_schema_metadata()
        cells = (
            column.to_numpy()
            if is_number(column.type)
            else np.array(list(map(str, column.to_pylist())), dtype=object)
            for column in rows.columns
        )
        hashes = row_hashes(*map(_hashed, cells))
        return cls.of_lone(rows, row_uniforms(seed, "sample", told_apart(hashes)), most).within()

    @classmethod
    def of_lone(cls, table: pa.Table, number: FloatArray, most: int, bound: float = 1.0) -> Sample:
        """Of rows that are chosen one by one, by their numbers."""
        n = len(number)
        return cls(table, number, np.zeros(n), np.ones(n), most, bound, 1.0)

    @property
    def taken(self) -> FloatArray:
        """How many copies of each row are in the sample."""
        return copies_below(self.number, self.copies, self.bound)

    def merged(self, *samples: Sample) -> Sample:
        """The sample of the rows of all."""
        parts = (self, *samples)
        bounds = min(p.bound for p in parts), min(p.unit_bound for p in parts)
        cut_samples = [
            replace(sample, bound=bounds[0], unit_bound=bounds[1]).cut() for sample in parts
        ]
        table = together([sample.table for sample in cut_samples])
        number, unit, copies = (
            np.concatenate([getattr(sample, name) for sample in cut_samples])
            for name in ("number", "unit", "copies")
        )
        return Sample(table, number, unit, copies, self.most, *bounds).within()

    def cut(self) -> Sample:
        """Without the rows that the bounds leave out."""
        chosen = (self.taken > 0) & (self.unit < self.unit_bound)
        return self if chosen.all() else self._of(chosen)

    def within(self) -> Sample:
        """With so low bounds that there are not too many rows."""
        sample = self.cut()
        if sample.unit.any() and sample.taken.sum() > sample.most:
            sample = replace(sample, unit_bound=sample._of_units()).cut()
        if sample.taken.sum() > sample.most:
            sample = replace(sample, bound=sample._of_rows()).cut()
        return sample

    def ranked(self) -> Sample:
        """In the order of their numbers, which no cut of the table changes."""
        order = np.lexsort((self.copies, self.number, self.unit))
        return self._of(order)

    def _of(self, rows: AnyArray) -> Sample:
        picked = pa.array(np.flatnonzero(rows) if rows.dtype == bool else rows)
        return replace(
            self,
            table=self.table.take(picked),
            number=self.number[rows],
            unit=self.unit[rows],
            copies=self.copies[rows],
        )

    def _of_units(self) -> float:
        """The bound of units that leaves few enough rows, or few units."""
        units, unit_of = np.unique(self.unit, return_inverse=True)
        upto = np.cumsum(np.bincount(unit_of, weights=self.taken))
        count = max(int(np.searchsorted(upto, self.most, side="right")), MIN_UNITS)
        return float(units[count]) if count < len(units) else self.unit_bound

    def _of_rows(self) -> float:
        """The bound of rows that leaves few enough."""
        if (self.copies == 1.0).all():
            return float(np.partition(self.number, self.most)[self.most])
        low, high = 0.0, self.bound
        # Halvings of [0, 1]: as many as doubles near 1 can be told apart by, and more.
        for _ in range(60):
            middle = (low + high) / 2.0
            if copies_below(self.number, self.copies, middle).sum() > self.most:
                high = middle
            else:
                low = middle
        return low


def copies_below(number: FloatArray, copies: FloatArray, bound: float) -> FloatArray:
    """How many of so many copies are in the sample: binomial, and more where the bound is higher.

    >>> copies_below(np.array([0.2, 0.8]), np.array([1.0, 1.0]), 0.5)
    array([1., 0.])
    """
    taken = (number < bound).astype(np.float64)
    many = np.flatnonzero(copies > 1.0)
    if len(many) and bound < 1.0:
        drawn = special.bdtrik(1.0 - number[many], copies[many], bound)
        taken[many] = np.clip(np.ceil(np.nan_to_num(drawn, nan=0.0)), 0.0, copies[many])
    elif len(many):
        taken[many] = copies[many]
    return taken


def first_bound(most: int, rows: int | None) -> float:
    """A bound above that of the whole, where its rows are known: what it leaves out may go."""
    return 1.0 if not rows else min(1.0, _ROOM_OF_BOUND * (most + 6.0 * most**0.5) / rows)


def content_hashes(evalsets: Sequence[EvalSet]) -> KeyArray:
    """Hashes of what rows hold, with labels as they are, whatever part of a table they lie in."""
    first = evalsets[0]
    columns: list[AnyArray] = [first.y]
    columns += (_hashed(first.features[name]) for name in sorted(first.features))
    for name in sorted(first.groups):
        group = first.groups[name]
        columns.append(_number(hashed_labels(group.labels))[group.codes])
    if first.time is not None:
        times = numbers_of_time(first.time)
        columns.append(_hashed(first.time) if times is None else times)
    if first.cluster is not None:
        columns.append(_number(hashed_labels(first.cluster.labels))[first.cluster.codes])
    if first.weights is not None and first.weights.kind == "importance":
        columns.append(first.weights.values)
    model = min(evalsets, key=lambda ranked: ranked.model)  # whatever other models there are
    columns += [] if model.point is None else [model.point]
    for prediction in sorted(model.predictions, key=lambda ranked: ranked.kind):
        columns += prediction.numbers().values()
    return row_hashes(*columns)


def told_apart(hashes: KeyArray) -> KeyArray:
    """The same hashes where all differ; else others, in which equal rows are distinguished."""
    ranked = np.sort(hashes)
    if (ranked[1:] != ranked[:-1]).all():
        return hashes
    batch = np.full(len(hashes), _number(hashes.sum(keepdims=True))[0])
    return row_keys(_number(hashes), batch)


def _number(hashes: KeyArray) -> FloatArray:
    """A hash as a whole number that a float holds."""
    return (hashes >> np.uint64(12)).astype(np.float64)


def _hashed(values: AnyArray) -> AnyArray:
    if values.dtype.kind in "biuf":
        return values
    labels, codes = np.unique(values.astype(str), return_inverse=True)
    return _number(hashed_labels(labels.astype(object)))[codes]


# ---- whether states share rows, told by the keys of their files and by sketches of their rows ----
# The sketch of rows is the least hashes of what they hold (bottom-k, Cohen and Kaplan, 2007): below
# the bound of two sketches every row that both tables hold is in both. Rows of few values are equal
# by chance, so that a share of common rows tells something only where rows of one table differ.

# 8,192 hashes are 64 kB, and tell a share of common rows to half a point.
_HASHES_OF_SKETCH = 8192
# Shares of common rows from which on they are taken for the same, of rows that may have an equal
# in their own table for that, and by how many times a share must exceed what their own equals make
# for a note. By hand: half of all rows in common is no chance, while tables that were added twice
# are refused.
_SHARE_OF_SAME = 0.5
_MAX_SHARE_OF_EQUALS = 0.05  # the most rows that may have an equal in their own table, for that
_TIMES_OWN_EQUALS = 5.0  # so much more than their own equals tell makes common rows worth a note
_LAST_HASH = float(2**64)


@frozen(eq=False)
class Sketch:
    """The least hashes of the content of rows, in rising order, and how many rows have each."""

    hashes: KeyArray
    counts: IntArray

    @classmethod
    def of(cls, hashes: KeyArray) -> Self:
        """Of rows with these hashes."""
        return cls.counted(hashes, np.ones(len(hashes), dtype=np.int64))

    @classmethod
    def counted(cls, hashes: KeyArray, counts: IntArray) -> Self:
        """Of hashes of so many rows each, some of which may be equal."""
        least, code = np.unique(hashes, return_inverse=True)
        copies = np.bincount(code, weights=counts, minlength=len(least)).astype(np.int64)
        return cls(least[:_HASHES_OF_SKETCH], copies[:_HASHES_OF_SKETCH])

    def joined(self, *sketches: Sketch) -> Sketch:
        """Of the rows of all."""
        every = (self, *sketches)
        return Sketch.counted(
            np.concatenate([sketch.hashes for sketch in every]),
            np.concatenate([sketch.counts for sketch in every]),
        )

    @property
    def bound(self) -> float:
        """Below this hash every row is in the sketch."""
        return float(self.hashes[-1]) if len(self.hashes) == _HASHES_OF_SKETCH else _LAST_HASH

    @property
    def equals(self) -> float:
        """The share of different rows that come more than once, about."""
        return float(np.mean(self.counts > 1)) if len(self.counts) else 0.0


@frozen(kw_only=True)
class Contents:
    """What tells the rows of a state from those of others."""

    name: str
    files: tuple[ReadFile, ...]
    sketch: Sketch
    numbers: FloatArray  # of the rows of its sample


def shared_rows(states: Sequence[Contents]) -> tuple[str, ...]:
    """Notes on rows that states may have in common."""
    files_by_mark: dict[tuple[object, ...], tuple[int, ReadFile]] = {}
    for number, state in enumerate(states):
        if (
            not len(state.sketch.hashes) and len(state.numbers) >= MIN_ROWS_OF_KEY
        ):  # of an earlier version
            unknown = ReadFile(found=state.name)
            sample = (np.sort(state.numbers).tobytes(),)
            earlier, _ = files_by_mark.setdefault(sample, (number, unknown))
            if earlier != number:
                raise InputError(_twice(states[earlier].name, unknown, state.name, unknown))
        for file in state.files:
            for mark in _marks(file, state):
                earlier, other = files_by_mark.setdefault(mark, (number, file))
                if earlier != number:
                    raise InputError(_twice(states[earlier].name, other, state.name, file))
    return _common(states)


def _marks(file: ReadFile, state: Contents) -> list[tuple[object, ...]]:
    """What no two files share unless they hold the same rows."""
    marks: list[tuple[object, ...]] = [file.origin] if file.origin and file.rows else []
    if file.key and file.rows >= MIN_ROWS_OF_KEY <= len(state.sketch.hashes):
        marks.append((file.key, file.rows))
    return marks


def _twice(name: str, file: ReadFile, other_name: str, other: ReadFile) -> str:
    files = dict.fromkeys(source.found for source in (file, other) if source.path)
    of = f" (of {' and '.join(files)})" if files else ""
    return (
        f"states must be of different rows to be merged, got the same rows{of} in {name} and in "
        f"{other_name}"
    )


def _common(states: Sequence[Contents]) -> tuple[str, ...]:
    """Notes on shares of rows that two states hold; states that share a hash are compared."""
    sketches = [state.sketch for state in states]
    hashes = np.concatenate([sketch.hashes for sketch in sketches])
    state_of = np.repeat(np.arange(len(states)), [len(sketch.hashes) for sketch in sketches])
    order = np.lexsort((state_of, hashes))
    hashes, state_of = hashes[order], state_of[order]
    again = np.flatnonzero(hashes[1:] == hashes[:-1])
    pairs = Counter(zip(state_of[again].tolist(), state_of[again + 1].tolist(), strict=True))
    notes = []
    for (first, second), count in sorted(pairs.items()):
        first_state, second_state = states[first], states[second]
        both = (first_state.sketch, second_state.sketch)
        bound = min(sketch.bound for sketch in both)
        sizes = [int(np.searchsorted(sketch.hashes, bound, "right")) for sketch in both]
        share, equals = count / min(sizes), max(sketch.equals for sketch in both)
        if count < MIN_ROWS_OF_KEY or share <= _TIMES_OWN_EQUALS * equals:
            continue
        fewer, more = (
            (first_state, second_state) if sizes[0] <= sizes[1] else (second_state, first_state)
        )
        words = "all" if share == 1.0 else f"about {100 * share:.0f} %"
        if share >= _SHARE_OF_SAME and equals <= _MAX_SHARE_OF_EQUALS:
            raise InputError(
                f"states must be of different rows to be merged, got {words} of the rows of "
                f"{fewer.name} in {more.name} too; a column of times distinguishes equal rows of "
                "different days"
            )
        notes.append(
            f"{words} of the rows of {fewer.name} are equal to rows of {more.name}, and are "
            "counted twice"
        )
    return tuple(notes)
