"""What one model's rows add up to: moments in cells of its groups, joint moments, its PIT.

Totals of parts merge into those of the whole, whatever the parts: every sum is kept as a mean with
moments about it, so that merging loses no digits.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from howsure.core.arrays import AnyArray, FloatArray, IntArray
from howsure.core.classes import frozen
from howsure.core.errors import UnanswerableError
from howsure.core.labels import Categories
from howsure.core.records import Key
from howsure.core.rng import row_hashes
from howsure.engine.catalogue import catalogue, from_sums, sorting_arrays
from howsure.engine.measure import apply_form, find_form, refuse_open_side
from howsure.engine.metric import MOST_LABELS, Metric
from howsure.engine.view import View
from howsure.predictions import EvalSet, Quantiles
from howsure.stats.ecdf import grid_sums
from howsure.stats.moments import Joint, Moments

# The error that they add, 1/65,536, is far below that of any sample; 512 kB in 64 bits.
PIT_CELLS = 2**16
"""Cells of the histogram of the PIT."""
# A cell holds the moments of each measure, some kB: 100,000 are a few hundred MB.
MAX_CELLS = 100_000
"""Cells of all group columns together, past which the column with the most labels leaves them."""
# As many sums of some measures as fit into tens of MB; errors follow from 65,536 units as well as
# from more.
MAX_UNITS = 2**16
"""Units (clusters, blocks of time), alone or in cells, past which they are bundled."""
# The spread of 1,024 bundles is known to 2 %, 1/√(2·1,024).
BUNDLES = 1024
"""Bundles of rows of importance weights, whose spread tells the error."""
# Standard deviations from the origin, past which a cube of squares keeps few digits: 10⁸ of 10¹⁶
# are gone in a square.
_MAX_DISTANCE_OF_ORIGIN = 1e4
CLAIMED = "claimed"
"""The column of cells with the nominal coverage of rows."""


@frozen(eq=False)
class CrossedGroups:
    """How the rows are divided by all group columns together."""

    names: tuple[str, ...]  # the columns, in their order
    labels: tuple[tuple[Any, ...], ...]  # the labels of each, in rising order
    codes: IntArray  # shape (c, columns): the labels of each cell that occurs
    # columns without cells, and why
    left_out: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, groups: Mapping[str, Categories], n: int) -> tuple[CrossedGroups, IntArray]:
        """Of rows, and the cell of each."""
        columns = {
            name: group for name, group in groups.items() if len(group.labels) <= MOST_LABELS
        }
        left_out = {
            name: _many(len(column.labels))
            for name, column in groups.items()
            if name not in columns
        }
        codes = [column.codes for column in columns.values()]
        sizes = [len(column.labels) for column in columns.values()]
        cells, cell = _distinct(codes, sizes, n)
        labels = tuple(tuple(column.labels.tolist()) for column in columns.values())
        return cls(tuple(columns), labels, cells, left_out), cell

    def merged(self, other: CrossedGroups) -> tuple[CrossedGroups, IntArray, IntArray]:
        """The cells of both, and where those of each are among them."""
        left_out = {**self.left_out, **other.left_out}
        names = [name for name in self.names if name not in left_out]
        labels = {name: _united(self.of_column(name), other.of_column(name)) for name in names}
        for name in names:
            if len(labels[name]) > MOST_LABELS:
                left_out[name] = _many(len(labels[name]))
        while True:
            names = [name for name in names if name not in left_out]
            codes = [
                np.concatenate([groups.placed(name, labels[name]) for groups in (self, other)])
                for name in names
            ]
            sizes = [len(labels[name]) for name in names]
            cells, cell = _distinct(codes, sizes, len(self.codes) + len(other.codes))
            if len(cells) <= MAX_CELLS:
                break
            widest = max(names, key=lambda name: len(labels[name]))
            left_out[widest] = (
                f"with the other columns it makes more than {MAX_CELLS:,} groups: its groups "
                "are assessed from a sample"
            )
        crossed = CrossedGroups(
            tuple(names), tuple(labels[name] for name in names), cells, left_out
        )
        return crossed, cell[: len(self.codes)], cell[len(self.codes) :]

    def of_column(self, name: str) -> tuple[Any, ...]:
        """The labels of a column."""
        return self.labels[self.names.index(name)]

    def placed(self, name: str, among: Sequence[Any]) -> IntArray:
        """Of each cell the place of its label among these."""
        places = {label: number for number, label in enumerate(among)}
        moved = np.array([places[label] for label in self.of_column(name)], dtype=np.int64)
        return np.asarray(moved[self.codes[:, self.names.index(name)]])

    def groups(self) -> dict[str, Categories]:
        """The group columns of a table that has one row for each cell."""
        return {
            name: Categories.from_codes(self.codes[:, column], _labels(self.labels[column]))
            for column, name in enumerate(self.names)
        }


def _many(count: int) -> str:
    return f"column has {count:,} labels or more; the limit for groups is {MOST_LABELS:,}"


def _labels(labels: Sequence[Any]) -> AnyArray:
    if any(isinstance(label, str) for label in labels):
        objects = np.empty(len(labels), dtype=object)
        objects[:] = labels
        return objects
    return np.array(labels)


def _united(first: tuple[Any, ...], second: tuple[Any, ...]) -> tuple[Any, ...]:
    """Labels of both in rising order; text where one of them has text."""
    if first == second:
        return first
    if any(isinstance(label, str) for label in (*first[:1], *second[:1])):
        return tuple(sorted({*map(str, first), *map(str, second)}))
    return tuple(sorted({*first, *second}))


def _distinct(codes: Sequence[IntArray], sizes: Sequence[int], n: int) -> tuple[IntArray, IntArray]:
    """The combinations of codes that occur, shape (c, columns), and which each row has."""
    joint = np.zeros(n, dtype=np.int64)
    for column, size in zip(codes, sizes, strict=True):
        joint = joint * size + column
    most = math.prod(sizes)
    if most <= max(4 * n, 1024):  # counting is quicker than sorting
        joint_codes = np.flatnonzero(np.bincount(joint, minlength=most))
        number = np.zeros(most, dtype=np.int64)
        number[joint_codes] = np.arange(len(joint_codes))
        cell = number[joint]
    else:
        joint_codes, cell = np.unique(joint, return_inverse=True)
    cells = np.empty((len(joint_codes), len(codes)), dtype=np.int64)
    for place_of in range(len(codes) - 1, -1, -1):
        joint_codes, cells[:, place_of] = np.divmod(joint_codes, sizes[place_of])
    return cells, cell.astype(np.int64, copy=False)


@frozen(eq=False)
class ClusterSums:
    """Sums within units of rows that go together: clusters, blocks of time, bundles of rows."""

    by: str  # {"clusters", "time", "rows"}: what they are
    # of a block of time; of clusters and rows, in how many bundles they are at most (2^width)
    width: float
    key: IntArray  # shape (u,): the unit: the block's number, or a hash
    cell: IntArray  # shape (u,): the cell; a unit has an entry for each cell that it has rows of
    mass: FloatArray  # shape (u,): sum of the weights
    # shape (u, p): weighted sums of the columns of the cells, then of those of the joint moments
    sums: FloatArray

    @classmethod
    def of(
        cls,
        by: str,
        width: float,
        keys: IntArray,
        cell: IntArray,
        columns: Sequence[FloatArray],
        weights: FloatArray | None,
    ) -> ClusterSums:
        """Of rows with their units and cells."""
        units, unit = np.unique(keys, return_inverse=True)
        pairs, pair = _distinct([unit, cell], [len(units), int(cell.max(initial=0)) + 1], len(cell))
        size = len(pairs)
        mass = np.bincount(pair, weights=weights, minlength=size).astype(np.float64)
        sums = np.empty((size, len(columns)))
        for number, values in enumerate(columns):
            weighted = values if weights is None else values * weights
            sums[:, number] = np.bincount(pair, weights=weighted, minlength=size)
        return cls(by, width, units[pairs[:, 0]], pairs[:, 1], mass, sums).bundled()

    def merged(self, other: ClusterSums, here: IntArray, there: IntArray) -> ClusterSums:
        """The sums of both, whose cells are at these places."""
        first, second = self.coarser(other.width), other.coarser(self.width)
        both = replace(
            first,
            key=np.concatenate([first.key, second.key]),
            cell=np.concatenate([here[first.cell], there[second.cell]]),
            mass=np.concatenate([first.mass, second.mass]),
            sums=np.concatenate([first.sums, second.sums]),
        )
        return both.joined().bundled()

    def coarser(self, width: float) -> ClusterSums:
        """In blocks or bundles as coarse as these, if they are not already."""
        if self.by == "time":
            if width <= self.width:
                return self
            return replace(self, width=width, key=self.key // round(width / self.width))
        if width >= self.width:
            return self
        return replace(self, width=width, key=self.key >> round(self.width - width))

    def joined(self) -> ClusterSums:
        """With one entry for a unit and cell."""
        units, unit = np.unique(self.key, return_inverse=True)
        sizes = [len(units), int(self.cell.max(initial=0)) + 1]
        pairs, pair = _distinct([unit, self.cell], sizes, len(unit))
        rows = np.arange(len(pair))  # a product adds up all columns of a row at once
        entries = csr_array((np.ones(len(pair)), (pair, rows)))
        mass, sums = np.asarray(entries @ self.mass), np.asarray(entries @ self.sums)
        return replace(self, key=units[pairs[:, 0]], cell=pairs[:, 1], mass=mass, sums=sums)

    def bundled(self) -> ClusterSums:
        """In so coarse units that there are not too many."""
        if len(self.key) <= MAX_UNITS:
            return self
        low, high = 0, 62  # by how many bits keys are shortened: the fewest that suffice
        while low < high:
            bits = (low + high) // 2
            entries = (self.key >> bits) * (int(self.cell.max()) + 1) + self.cell
            low, high = (low, bits) if len(np.unique(entries)) <= MAX_UNITS else (bits + 1, high)
        width = self.width * 2.0**low if self.by == "time" else self.width - low
        return self.coarser(width).joined()


def unit_keys(evalset: EvalSet, block: float) -> tuple[str, float, IntArray] | None:
    """What the units are, their width, and the unit of each row; None of independent rows."""
    if evalset.cluster is not None:
        labels = evalset.cluster.labels
        hashes = hashed_labels(labels) >> np.uint64(2)  # which fits a signed number
        return "clusters", 62.0, hashes.astype(np.int64)[evalset.cluster.codes]
    times = None if evalset.time is None else numbers_of_time(evalset.time)
    if times is not None:
        return "time", block, np.floor(times / block).astype(np.int64)
    if evalset.weights is not None and evalset.weights.kind == "importance":
        keys = row_hashes(evalset.y, evalset.weights.values) >> np.uint64(2)
        bits = math.log2(BUNDLES)
        return "rows", bits, (keys >> np.uint64(62 - round(bits))).astype(np.int64)
    return None


def numbers_of_time(times: AnyArray) -> FloatArray | None:
    """Times as numbers, dates as seconds; None of text."""
    if times.dtype.kind == "M":
        return times.astype("datetime64[us]").astype(np.int64) / 1e6
    return times.astype(np.float64) if times.dtype.kind in "biuf" else None


def hashed_labels(labels: AnyArray) -> npt.NDArray[np.uint64]:
    """A hash of each label, the same whatever other labels there are."""
    if labels.dtype.kind in "biuf":
        return row_hashes(labels)
    if labels.dtype.kind == "M":
        return row_hashes(labels.astype("datetime64[us]").astype(np.int64))
    digests = [hashlib.blake2b(str(label).encode(), digest_size=8).digest() for label in labels]
    return np.frombuffer(b"".join(digests), dtype="<u8").astype(np.uint64)


@frozen(eq=False, kw_only=True)
class SufficientStatistics:
    """What one model's rows add up to."""

    model: str  # its name
    n: int  # rows
    # sums of their weights and of the squares of these; both n where there are none
    mass: float
    squares: float
    coverages: tuple[float, ...]  # the nominal coverages assessed
    # the columns of `moments`: row scores of means, then what rows claim at each coverage
    keys: tuple[Key, ...]
    sources: Mapping[str, str]  # which predictions answered for a measure
    reasons: Mapping[str, str]  # why a measure has no answer
    # how group columns divide the rows, and moments of each column in each cell
    cells: CrossedGroups
    moments: Moments
    joints: Mapping[str, Joint]  # what statistics rest on
    # what rows claim at a coverage: least and most of misses below, above and on both sides
    claims: Mapping[str, Joint]
    # where rows depend, or have importance weights; of all cells together
    units: ClusterSums | None
    crossed: ClusterSums | None  # the same cell by cell, where there are several
    # weights in each cell of the histogram of the PIT; None where there is no PIT
    pit: FloatArray | None
    # weights of the rows between any two quantiles of a table of quantiles
    among: FloatArray | None
    # what `joints` take from y where they square it; near the mean of some rows
    origin: float = 0.0

    @classmethod
    @np.errstate(over="ignore", invalid="ignore", divide="ignore")
    def of(
        cls, evalset: EvalSet, coverages: Sequence[float], block: float = 1.0
    ) -> SufficientStatistics:
        """Of some rows; `block` is the width of blocks of time."""
        view = View(evalset)
        weights = None if evalset.weights is None else evalset.weights.values
        keys: list[Key] = []
        columns: list[FloatArray] = []
        rows: dict[str, tuple[FloatArray, ...]] = {}
        joints: dict[str, Joint] = {}
        sums_of: dict[tuple[Any, ...], tuple[tuple[FloatArray, ...], Joint]] = {}
        sources: dict[str, str] = {}
        reasons: dict[str, str] = {}
        origin = float(np.mean(evalset.y))
        for metric, coverage in measures(coverages):
            key = Key.of(metric.name, coverage)
            try:
                form = find_form(view, metric, coverage, without=sorting_arrays())
                if form.reduce == "statistic":
                    statistic = from_sums()[metric.name]
                    same = statistic.columns, statistic.beside, str(coverage)
                    if same not in sums_of:  # several statistics may rest on the same sums
                        row_values = statistic.rows(view, coverage, origin)
                        sums_of[same] = (
                            row_values,
                            Joint.of(row_values, statistic.beside(view, coverage), weights),
                        )
                    rows[str(key)], joints[str(key)] = sums_of[same]
                else:
                    scores = np.asarray(apply_form(view, form, coverage), dtype=np.float64)
                    refuse_open_side(view, metric, coverage, scores)
                    columns.append(scores)
                    keys.append(key)
                needs = [*form.needs, "ends"] if metric.per_coverage else form.needs
                sources[str(key)] = view.source(needs, coverage)
            except UnanswerableError as error:
                reasons[str(key)] = str(error)
        claims: dict[str, Joint] = {}
        for coverage in coverages:
            try:
                claims_of = view.get("claims", coverage)
            except UnanswerableError:
                continue
            ends = [claims_of[side][:, k] for side in ("below", "above", "missed") for k in (0, 1)]
            claims[str(float(coverage))] = Joint.of((), ends, weights)
            keys.append(Key.of(CLAIMED, coverage))
            columns.append(np.ascontiguousarray(claims_of["covered"][:, 0]))
        cells, cell = CrossedGroups.of(evalset.groups, evalset.n)
        units_of = unit_keys(evalset, block)
        units = crossed = None
        if units_of is not None:
            by, width, unit = units_of
            every = [*columns, *(score for row in rows.values() for score in row)]
            units = ClusterSums.of(by, width, unit, np.zeros_like(cell), every, weights)
            if len(cells.codes) > 1 and by != "rows":
                crossed = ClusterSums.of(by, width, unit, cell, columns, weights)
        return cls(
            model=evalset.model,
            n=evalset.n,
            mass=float(evalset.n if weights is None else weights.sum()),
            squares=float(evalset.n if weights is None else np.square(weights).sum()),
            coverages=tuple(coverages),
            keys=tuple(keys),
            sources=sources,
            reasons=reasons,
            cells=cells,
            moments=Moments.of(columns, cell, len(cells.codes), weights),
            joints=joints,
            claims=claims,
            units=units,
            crossed=crossed,
            pit=_histogram(view, weights),
            among=_among(view, weights),
            origin=origin,
        )

    @np.errstate(over="ignore", invalid="ignore", divide="ignore")
    def merged(self, other: SufficientStatistics) -> SufficientStatistics:
        """Of the rows of both."""
        reasons = {**other.reasons, **self.reasons}
        first_part, second_part = self.without(reasons), other.without(reasons).about(self.origin)
        cells, here, there = first_part.cells.merged(second_part.cells)
        none = np.zeros(1, dtype=np.int64)
        units = crossed = None
        if first_part.units is not None and second_part.units is not None:
            units = first_part.units.merged(second_part.units, none, none)
            if len(cells.codes) > 1 and units.by != "rows":
                crossed = first_part.by_cell().merged(second_part.by_cell(), here, there)
        size = len(cells.codes)
        return replace(
            first_part,
            n=first_part.n + second_part.n,
            mass=first_part.mass + second_part.mass,
            squares=first_part.squares + second_part.squares,
            reasons=reasons,
            cells=cells,
            moments=first_part.moments.placed(here, size).merged(
                second_part.moments.placed(there, size)
            ),
            joints={
                name: joint.merged(second_part.joints[name])
                for name, joint in first_part.joints.items()
            },
            claims={
                name: claim.merged(second_part.claims[name])
                for name, claim in first_part.claims.items()
                if name in second_part.claims
            },
            units=units,
            crossed=crossed,
            pit=None
            if first_part.pit is None or second_part.pit is None
            else first_part.pit + second_part.pit,
            among=None
            if first_part.among is None or second_part.among is None
            else first_part.among + second_part.among,
        )

    def about(self, origin: float) -> SufficientStatistics:
        """The same, with squares of y about another origin."""
        by = origin - self.origin
        if by == 0.0:
            return self
        joints, units = dict(self.joints), self.units
        if units is not None:
            units = replace(units, sums=units.sums.copy())
        for name, columns in self.joint_columns().items():
            squared = _squared(name)
            if squared is None:
                continue
            joints[name] = joints[name].moved(squared, by)
            if units is not None:
                y, square = units.sums[:, columns].T[squared : squared + 2]
                square += by * (by * units.mass - 2.0 * y)
                y -= by * units.mass
        return replace(self, joints=joints, units=units, origin=origin)

    def joint_columns(self) -> dict[str, slice]:
        """Where the columns of each joint moment stand among the sums within units."""
        columns, start = {}, len(self.keys)
        for name, joint in self.joints.items():
            columns[name] = slice(start, start + len(joint.second))
            start = columns[name].stop
        return columns

    def imprecise(self) -> dict[str, str]:
        """Statistics whose squares are so far from their origin that digits are gone, and why."""
        reasons = {}
        for name, joint in self.joints.items():
            squared = _squared(name)
            if squared is not None:
                squares = float(joint.second[squared, squared])
                if joint.mass * joint.mean[squared] ** 2 > _MAX_DISTANCE_OF_ORIGIN**2 * squares:
                    reasons[name] = "sums about 0 lost digits because y is far from 0"
        return reasons

    def by_cell(self) -> ClusterSums:
        """The sums within units cell by cell, those of means alone."""
        if self.crossed is not None:
            return self.crossed
        assert self.units is not None
        return replace(self.units, sums=self.units.sums[:, : len(self.keys)])

    def relabelled(self, groups: Mapping[str, Categories]) -> SufficientStatistics:
        """The same, with other labels of the groups of each cell, some of which are one now."""
        cells, cell = CrossedGroups.of(groups, len(self.cells.codes))
        crossed = self.crossed
        if crossed is not None:
            crossed = replace(crossed, cell=cell[crossed.cell]).joined()
        return replace(
            self,
            cells=replace(cells, left_out=self.cells.left_out),
            moments=self.moments.placed(cell, len(cells.codes)),
            crossed=crossed,
        )

    def in_group(self, column: str, label: str) -> SufficientStatistics | None:
        """Of the rows of one group, by its name; None where cells do not tell them apart."""
        if column not in self.cells.names:
            return None
        column_number = self.cells.names.index(column)
        of_label = np.array(
            [str(cell_label) == label for cell_label in self.cells.labels[column_number]]
        )
        cells = np.flatnonzero(of_label[self.cells.codes[:, column_number]])
        moments = self.moments
        units = None
        if self.units is not None and self.units.by != "rows":
            units = self.by_cell()
            entries = np.isin(units.cell, cells)
            units = replace(
                units,
                key=units.key[entries],
                cell=np.zeros(int(entries.sum()), dtype=np.int64),
                mass=units.mass[entries],
                sums=units.sums[entries],
            ).joined()
        merged_moments = Moments(
            moments.mass[cells], moments.mean[cells], moments.second[cells], moments.third[cells]
        ).placed(np.zeros(len(cells), dtype=np.int64), 1)
        mass = float(merged_moments.mass[0])
        return replace(
            self,
            n=round(mass),
            mass=mass,
            squares=mass,
            cells=CrossedGroups((), (), np.zeros((1, 0), dtype=np.int64)),
            moments=merged_moments,
            joints={},
            claims={},
            units=units,
            crossed=None,
            pit=None,
            among=None,
        )

    def without(self, reasons: Mapping[str, str]) -> SufficientStatistics:
        """Without the measures that some rows cannot answer."""
        gone = {str(key) for key in self.keys} | set(self.joints)
        gone &= set(reasons)
        if not gone:
            return self
        columns_left = [position for position, key in enumerate(self.keys) if str(key) not in gone]
        moments_of = self.moments
        moments = Moments(
            moments_of.mass,
            moments_of.mean[:, columns_left],
            moments_of.second[:, columns_left],
            moments_of.third[:, columns_left],
        )
        units = self.units
        if units is not None:
            columns = list(columns_left)
            for name, span in self.joint_columns().items():
                columns += [] if name in gone else range(span.start, span.stop)
            units = replace(units, sums=units.sums[:, columns])
        crossed = self.crossed
        if crossed is not None:
            crossed = replace(crossed, sums=crossed.sums[:, columns_left])
        return replace(
            self,
            reasons={**reasons, **self.reasons},
            keys=tuple(self.keys[position] for position in columns_left),
            moments=moments,
            joints={name: joint for name, joint in self.joints.items() if name not in gone},
            units=units,
            crossed=crossed,
        )


def _squared(name: str) -> int | None:
    """Which of a statistic's columns has its square beside it."""
    return from_sums()[name.partition(" ")[0]].squared


def measures(coverages: Sequence[float]) -> list[tuple[Metric, float]]:
    """Every measure that sums tell, at every coverage."""
    return [
        (metric, coverage)
        for metric in catalogue().values()
        if metric.merges == "sums" and not metric.beside and metric.forms
        for coverage in (coverages if metric.per_coverage else (math.nan,))
    ]


def _histogram(view: View, weights: FloatArray | None) -> FloatArray | None:
    """Weights of the rows whose PIT lies in each cell; where it jumps, its parts in each."""
    try:
        right, cdf_left = view.get("cdf"), view.get("left")
    except UnanswerableError:
        return None
    if cdf_left is None:
        cell = np.minimum((right * PIT_CELLS).astype(np.int64), PIT_CELLS - 1)
        return np.bincount(cell, weights=weights, minlength=PIT_CELLS).astype(np.float64)
    edges = np.arange(1, PIT_CELLS) / PIT_CELLS
    total = float(len(right) if weights is None else weights.sum())
    return np.diff(grid_sums(cdf_left, right, edges, weights), prepend=0.0, append=total)


def _among(view: View, weights: FloatArray | None) -> FloatArray | None:
    """Weights of the rows with so many quantiles below y."""
    table = view.find_prediction(Quantiles)
    if table is None:
        return None
    below = (table.values < view.evalset.y[:, None]).sum(axis=1)
    size = len(table.levels) + 1
    return np.bincount(below, weights=weights, minlength=size).astype(np.float64)
