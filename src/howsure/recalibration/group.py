"""Recalibration by group or ease bin, fitted to its rows, or to all rows if these are too few."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Self, final

import numpy as np

from howsure.conformal import rows_needed
from howsure.conformal.ranks import DELTA, RankRule
from howsure.conformal.thresholds import TooFew
from howsure.core import formats
from howsure.core.arrays import BoolArray, FloatArray, IntArray
from howsure.core.classes import frozen
from howsure.core.convert import check_whole
from howsure.core.errors import InputError, within
from howsure.core.formats import counted
from howsure.inputs.roles import name_roles
from howsure.predictions import Distribution, EvalSet, Intervals, Prediction, Quantiles, Samples
from howsure.recalibration.base import (
    POINT,
    FittedParameter,
    Pieces,
    RecalibrationMethod,
    Recalibrator,
    bare,
    check_factor,
    effective_rows,
    fit_notes,
    prediction_of,
    repeated,
)
from howsure.recalibration.conformal import ConformalIntervals, ConformalQuantiles
from howsure.recalibration.info import FRAMED_KINDS, SHAPE, SPREAD_KINDS, MethodInfo
from howsure.recalibration.intervals_from_distributions import DerivedIntervals
from howsure.recalibration.location_scale import (
    Amounts,
    CalibrationRows,
    LocationScale,
    LocationScaleRecalibrator,
)

# A factor of ten rows is off by 22 % (1/√20) before it is shrunk. By hand; not tuned.
MIN_ROWS_OF_GROUP = 10
"""Rows of a group without which its shift and factor are those of all rows."""
# Rows of the median variance of all groups that help out the variance of each: a group of ten
# keeps two thirds of its own. By hand; not tuned.
_ROWS_OF_USUAL_VARIANCE = 5.0
# Standard deviations past which a group is like no other, whose shift would teach the rest: one
# that is broken lies far beyond, and of normal groups one in two million.
_SDS_OF_OUTLIER = 5.0
# A quantile with five rows beyond it is known to some 45 % of these. By hand; not tuned.
MIN_ROWS_BEYOND = 5.0
"""Rows of a group that must be expected beyond an end for that to have its own offset."""
# A line holds no more.
MAX_GROUPS_NAMED = 3
"""Groups that a note names; of more it gives the number."""
_INSIDE = {"o_cpa": "cp_a", "o_pac": "pac"}
"""What is done in each bin by ease."""


@frozen
class GroupCells:
    """The groups of the calibration rows: labels of one column, or of several that cross."""

    columns: tuple[str, ...]  # columns of groups
    labels: tuple[tuple[str, ...], ...]  # of each group, one label per column

    @property
    def names(self) -> tuple[str, ...]:
        """The groups in words."""
        return tuple(
            ", ".join(f"{c}={label}" for c, label in zip(self.columns, labels, strict=True))
            for labels in self.labels
        )

    def find(self, evalset: EvalSet) -> IntArray:
        """The place of each row's group; one past the last where calibration held none such."""
        missing = [name for name in self.columns if name not in evalset.groups]
        if missing:
            columns = ", ".join(evalset.groups) or "none"
            raise InputError(
                f"the rows must have the groups {', '.join(self.columns)}, like the calibration "
                f"rows, got {columns}"
            )
        labels, codes = _crossing(evalset, self.columns)
        numbers = {label: number for number, label in enumerate(self.labels)}
        places = [numbers.get(each, len(numbers)) for each in labels]
        return np.array(places, dtype=np.int64)[codes]


def cells_of(calibration: EvalSet, by: Sequence[str]) -> tuple[GroupCells, IntArray]:
    """The groups of calibration rows by columns, or by the only one; and each row's."""
    columns = tuple(calibration.groups)
    named = tuple(dict.fromkeys(by)) or columns
    if not columns:
        raise InputError("by must name group columns, but the calibration rows have none")
    if not by and len(columns) > 1:
        raise InputError(f"by must name at least one of the columns {', '.join(columns)}")
    for name in named:
        if name not in columns:
            raise InputError(f"by must name group columns ({', '.join(columns)}), got {name!r}")
    labels, codes = _crossing(calibration, named)
    return GroupCells(named, labels), codes


def _crossing(
    evalset: EvalSet, columns: Sequence[str]
) -> tuple[tuple[tuple[str, ...], ...], IntArray]:
    """The distinct combinations of labels, and each row's."""
    codes = np.zeros(evalset.n, dtype=np.int64)
    first = np.zeros(1, dtype=np.int64)
    for name in columns:
        group = evalset.groups[name]
        crossed = codes * len(group.labels) + group.codes
        _, first, codes = np.unique(crossed, return_index=True, return_inverse=True)
    firsts = [evalset.groups[name].values()[first] for name in columns]
    return tuple(
        zip(*([_text(label) for label in labels] for labels in firsts), strict=True)
    ), codes


def _text(label: Any) -> str:
    """A label as text: a whole number is the same in every type of number."""
    plain = label.item() if isinstance(label, np.generic) else label
    if isinstance(plain, float) and plain.is_integer():
        plain = int(plain)
    return str(plain)


@final
@frozen
class ByGroup(RecalibrationMethod):
    """Each group recalibrated by its own rows.

    Of distributions and samples each group has its own shift, in units of the row's spread, and
    factor of the spread. Both are shrunk towards those of all rows, as much as chance explains
    the groups' differences (DerSimonian and Laird 1986, "Meta-analysis in clinical trials"). Of
    quantiles each level has its own conformal offset in each group, and so have intervals and a
    point forecast: one for each end where five rows are expected beyond it, else one for both.
    That is Mondrian conformal prediction (Vovk, Gammerman and Shafer 2005, section 4.5). Groups
    with too few rows for it, and groups without any, use the fit to all rows.

    Parameters
    ----------
    belief : {"distributions", "samples", "quantiles", "intervals", "point"}
        What is recalibrated.
    by : sequence of str
        Columns of groups; of several their crossing. The only column if empty.
    coverage, rank, too_few, delta
        As in `ConformalIntervals`, for intervals and a point forecast.

    Examples
    --------
    >>> season = np.repeat(["summer", "winter"], 50)
    >>> y = np.where(season == "winter", 3.0, 1.0) * np.tile([-1.0, 1.0], 50)
    >>> held = Distribution.normal(np.zeros(100), np.ones(100))
    >>> held_out = EvalSet.checked(y, held, groups={"season": season})
    >>> fitted = ByGroup("distributions").fit(held_out)
    >>> fitted.apply(held_out).predictions[0].sd()[[0, -1]]
    array([1., 3.])
    """

    belief: str
    by: Sequence[str] = ()
    coverage: float | None = None
    rank: RankRule = "conformal"
    too_few: TooFew = "infinite"
    delta: float = DELTA

    def fit(self, calibration: EvalSet) -> GroupLocationScale | GroupRecalibrator:
        """Fit to the rows of each group.

        Raises
        ------
        InputError
            If the groups are not there, or what is done in a group cannot be done of all rows.
        """
        cells, codes = cells_of(calibration, self.by)
        if self.belief in (Distribution.kind, Samples.kind):
            return _fit_moments(CalibrationRows.spread_out(calibration, self.belief), cells, codes)
        return self._fit_parts(calibration, cells, codes)

    def _fit_parts(
        self, calibration: EvalSet, cells: GroupCells, codes: IntArray
    ) -> GroupRecalibrator:
        of_all = self._of_rows(calibration).fit(calibration)
        rows = bare(calibration, self.belief)
        needed = self._needed(of_all)
        parts: list[Recalibrator] = [of_all]
        serving: list[int] = []
        for cell in range(len(cells.labels)):
            group_rows = rows.take(np.flatnonzero(codes == cell))
            large = effective_rows(group_rows)[0] >= needed
            serving.append(len(parts) if large else 0)
            if large:
                parts.append(self._of_rows(group_rows).fit(group_rows))
        names = cells.names
        few = [name for name, where in zip(names, serving, strict=True) if where == 0]
        learnt = tuple(
            replace(parameter, name=f"{parameter.name}, {name}" if name else parameter.name)
            for name, where in zip((*names, ""), (*serving, 0), strict=True)
            for parameter in parts[where].parameters
            if where or not name
        )
        return GroupRecalibrator(
            belief=self.belief,
            method="group",
            parameters=learnt,
            guarantee=_guarantee(calibration, parts, few),
            notes=(*of_all.notes, *_few_note(few, needed)),
            cells=cells,
            parts=tuple(parts),
            place=tuple(serving),
        )

    def _of_rows(self, rows: EvalSet) -> RecalibrationMethod:
        """What suits a group of so many rows; what y is decides nothing."""
        if self.belief == Quantiles.kind:
            return ConformalQuantiles(self.too_few)
        widest = self.coverage
        if widest is None and self.belief == Intervals.kind:
            widest = max(prediction_of(rows, Intervals).coverages, default=None)
        beyond = 0.0 if widest is None else effective_rows(rows)[0] * (1.0 - widest) / 2.0
        return ConformalIntervals(
            "asymmetric" if beyond >= MIN_ROWS_BEYOND else "cqr",
            self.belief,
            self.coverage,
            self.rank,
            self.too_few,
            self.delta,
        )

    def _needed(self, of_all: Recalibrator) -> int:
        """Rows that a group needs to reach every level or coverage that all rows reach."""
        wanted = np.array([parameter.nominal for parameter in of_all.parameters])
        if self.belief == Quantiles.kind:
            tail = float(np.minimum(wanted, 1.0 - wanted).min())  # (n + 1)·tail ≥ 1
            return max(math.ceil(1.0 / tail - 1.0 - 1e-9), 1)
        end = 1.0 - (1.0 - float(wanted.max())) / 2.0  # so one row is expected beyond it
        return max(rows_needed(end, self.rank, self.delta), rows_needed(end))


def _few_note(names: Sequence[str], needed: int) -> tuple[str, ...]:
    if not names:
        return ()
    named = "; ".join(names[:MAX_GROUPS_NAMED])
    if len(names) > MAX_GROUPS_NAMED:
        named += f" and {len(names) - MAX_GROUPS_NAMED} more"
    return (f"Groups with fewer than {needed} calibration rows use the fit to all rows: {named}.",)


def _unseen_note(places: IntArray, cells: GroupCells | EaseCuts) -> tuple[str, ...]:
    unseen = int((places == len(cells.names)).sum())
    if not unseen:
        return ()
    return (
        f"{counted(unseen, 'row')} in groups without calibration rows use the fit to all rows.",
    )


def _guarantee(
    calibration: EvalSet, parts: Sequence[Recalibrator], few: Sequence[str], what: str = "group"
) -> str:
    if not effective_rows(calibration)[1]:
        return (
            f"Approximate within each {what} (weighted quantiles of its errors); no "
            "finite-sample guarantee."
        )
    groups = parts[1:]
    if not groups:
        return f"No group has enough rows for a separate guarantee. {parts[0].guarantee}"
    quantiles = groups[0].belief == Quantiles.kind
    words = []
    for nominal in sorted({parameter.nominal for parameter in groups[0].parameters}):
        expected = [
            e.expected for group in groups for e in group.parameters if e.nominal == nominal
        ]
        low, high = f"{min(expected):.5g}", f"{max(expected):.5g}"
        span = low if low == high else f"{low} to {high}"
        name = f"level {nominal:g}" if quantiles else f"{formats.level(nominal)} intervals"
        if not math.isnan(expected[0]):  # the median is the mean of two
            words.append(f"{name} with probability {span}")
    sentence = (
        f"Within {counted(len(groups), what)}, new rows are "
        f"{'at or below' if quantiles else 'covered'}: {', '.join(words)} (or more with tied "
        f"scores). New rows must be exchangeable with the calibration rows of their {what}."
    )
    return sentence + (" Other groups have no separate guarantee." if few else "")


@final
@frozen
class ByEase(RecalibrationMethod):
    """Intervals around a forecast, by a threshold for each bin of rows by ease: O-CPA, O-PAC.

    Mondrian conformal prediction with bins of equal numbers of calibration rows. The rows at the
    edges do not calibrate, so that coverage holds within each bin, exactly if eases do not tie.
    Source: Jang and Lee 2025, Algorithm 2; their edges come from the calibration rows.

    Parameters
    ----------
    method : {"o_cpa", "o_pac"}
        ``o_cpa``: ``cp_a`` of `DerivedIntervals` in each bin; ``o_pac``: ``pac``.
    belief : {"distributions", "samples"}
        What is recalibrated; it becomes intervals.
    coverages : sequence of float
        Nominal coverages to reach.
    rank, too_few, delta
        As in `ConformalIntervals`.
    bins : int, optional
        How many; if omitted as many as expect ten misses each, from 2 to 10. Fewer where eases
        tie.

    Examples
    --------
    >>> ease = np.arange(100.0)
    >>> y = np.where(ease < 50, 3.0, 1.0) * np.tile([-1.0, 1.0], 50)
    >>> held = Distribution.normal(np.zeros(100), np.ones(100))
    >>> held_out = EvalSet.checked(y, held, features={"ease": ease})
    >>> fitted = ByEase("o_cpa", coverages=[0.9], bins=2).fit(held_out)
    >>> fitted.apply(held_out).predictions[0].interval(0.9)[1][[0, -1]]
    array([3., 1.])
    """

    method: str = "o_cpa"
    belief: str = Distribution.kind
    coverages: Sequence[float] = ()
    rank: RankRule = "conformal"
    too_few: TooFew = "infinite"
    delta: float = DELTA
    bins: int | None = None

    def fit(self, calibration: EvalSet) -> GroupRecalibrator:
        """Learn a factor of the sd in each bin."""
        if self.method not in _INSIDE:
            raise InputError(f"method must be one of {', '.join(_INSIDE)}, got {self.method!r}")
        inner = DerivedIntervals(
            _INSIDE[self.method], self.belief, self.coverages, self.rank, self.too_few, self.delta
        )
        rows = repeated(calibration)
        wanted = self.bins or bins_for(rows.n, max(inner.coverages))
        cells, calibrates = EaseCuts.between(rows, wanted)
        codes = cells.find(rows)
        evalset = bare(rows, self.belief)
        parts: list[Recalibrator] = []
        for code, name in enumerate(cells.names):
            with within(f"{name} ({calibration.n:,} calibration rows)"):
                parts.append(inner.fit(evalset.take(np.flatnonzero(calibrates & (codes == code)))))
        notes = list(fit_notes(calibration))
        if len(parts) < wanted:
            notes.append(f"Tied ease scores: {len(parts)} bins instead of {wanted}.")
        notes += [
            f"{name}: {note}"
            for recalibrator, name in zip(parts, cells.names, strict=True)
            for note in recalibrator.notes
            if note not in notes
        ]
        guarantee = _guarantee(calibration, [parts[0], *parts], [], "ease bin")
        if inner.method == "pac" and effective_rows(calibration)[1]:
            shares = ", ".join(formats.level(coverage) for coverage in inner.coverages)
            guarantee += (
                f" In each, at least {shares} of rows are covered for all but "
                f"{100 * inner.delta:g} of 100 calibration sets."
            )
        return GroupRecalibrator(
            belief=self.belief,
            method=self.method,
            parameters=tuple(
                replace(parameter, name=f"{parameter.name}, {name}")
                for recalibrator, name in zip(parts, cells.names, strict=True)
                for parameter in recalibrator.parameters
            ),
            guarantee=guarantee,
            notes=tuple(notes),
            cells=cells,
            parts=tuple(parts),
            place=tuple(range(len(parts))),
        )


@final
@frozen(kw_only=True)
class GroupRecalibrator(Recalibrator):
    """Fitted `ByGroup` of quantiles, intervals or a point forecast, or `ByEase`."""

    cells: GroupCells | EaseCuts  # the groups of the calibration rows
    parts: tuple[Recalibrator, ...]  # the fit to all rows, then that to each large group
    place: tuple[int, ...]  # of each group, which part serves it

    def transform(self, evalset: EvalSet) -> tuple[Prediction, tuple[str, ...]]:
        """Each row recalibrated by its group's part, with a note on groups never seen."""
        places = self.cells.find(evalset)
        served = np.array([*self.place, 0], dtype=np.int64)[places]
        rows = bare(evalset, self.belief)
        names = dict(zip(self.place, self.cells.names, strict=True))
        predictions: list[tuple[IntArray, Prediction]] = []
        notes: dict[str, list[str]] = defaultdict(list)
        for number in np.unique(served).tolist():
            chosen = np.flatnonzero(served == number)
            prediction, row_notes = self.parts[number].transform(rows.take(chosen))
            predictions.append((chosen, prediction))
            for note in row_notes:
                notes[note].append(names[number] if number else "")
        words = [
            note
            if len(groups) == len(predictions) or groups == [""]
            else f"{'; '.join(groups)}: {note}"
            for note, groups in notes.items()
        ]
        pieces = Pieces(predictions[0][1], evalset.n)
        for chosen, prediction in predictions:
            pieces.put(chosen, prediction)
        return pieces.join(), (*words, *_unseen_note(places, self.cells))


@final
@frozen(kw_only=True, eq=False)
class GroupLocationScale(LocationScaleRecalibrator):
    """Fitted `ByGroup` of distributions or samples."""

    cells: GroupCells  # the groups of the calibration rows
    # shape (g + 1,): of each group, and last of all rows, in units of a row's spread
    shifts: FloatArray
    factors: FloatArray  # shape (g + 1,): by which spreads are multiplied

    def amounts(self, evalset: EvalSet, frame: LocationScale) -> Amounts:
        """Those of each row's group, with a note on groups never seen."""
        places = self.cells.find(evalset)
        notes = _unseen_note(places, self.cells)
        return self.shifts[places] * frame.spread, self.factors[places], notes


def _fit_moments(rows: CalibrationRows, cells: GroupCells, codes: IntArray) -> GroupLocationScale:
    frame, y, mass = rows.frame, rows.y, rows.mass
    shifts = _shrunk(*frame.shift_parts(y, frame.spread), mass, codes)
    square, expected = frame.factor_parts(y, frame.center + shifts[codes] * frame.spread)
    check_factor(float(square.max()))
    factors = np.sqrt(_shrunk(square, expected, mass, codes, ratio=True))
    n = np.append(np.bincount(codes, mass), mass.sum())
    learnt = tuple(
        FittedParameter(
            name=f"{what}, {name}" if name else what, value=float(value), n=float(count)
        )
        for what, values in (("shift", shifts), ("factor", factors))
        for name, value, count in zip((*cells.names, ""), values, n, strict=True)
    )
    few = [
        name for name, count in zip(cells.names, n[:-1], strict=True) if count < MIN_ROWS_OF_GROUP
    ]
    return rows.mover(
        GroupLocationScale,
        "group",
        learnt,
        "the shift and factor of each group are estimated from its rows and shrunk towards "
        "those of all rows, as far as the difference may be noise",
        *_few_note(few, MIN_ROWS_OF_GROUP),
        cells=cells,
        shifts=shifts,
        factors=factors,
    )


def _shrunk(
    top: FloatArray, bottom: FloatArray, mass: FloatArray, codes: IntArray, *, ratio: bool = False
) -> FloatArray:
    """Σ top/Σ bottom of each group, shrunk towards what groups have in common, which comes last.

    A group's weight is τ²/(τ² + s²), with s² the variance of its own value, and τ² that between
    groups (DerSimonian and Laird 1986); 0 where it holds too few rows. What is in common is the
    mean of all with weights 1/(τ² + s²). A ratio's logarithm is what is shrunk, for its variance
    is alike in groups of any spread. A group that is far from all others is what its rows say,
    and tells nothing of the others.
    """
    rows = np.bincount(codes, mass).astype(np.float64)
    below, above = np.bincount(codes, mass * bottom), np.bincount(codes, mass * top)
    values, overall = above / below, float(above.sum() / below.sum())
    large = (rows >= MIN_ROWS_OF_GROUP) & ((values > 0) | (not ratio))
    if large.sum() < 2:
        return np.append(np.full(len(rows), overall), overall)
    values = np.where(large, values, overall)
    deviations = (top - values[codes] * bottom) / (below / rows)[codes]
    if ratio:
        deviations, values = deviations / values[codes], np.log(values)
    squares = np.bincount(codes, mass * np.square(deviations)).astype(np.float64)[large]
    noise = _noise(squares, rows[large]) / rows[large]
    usual = _usual(values[large], noise, rows[large])
    alike = np.flatnonzero(large)[usual]
    share = large.astype(np.float64)
    share[alike], centre = _shared(values[alike], noise[usual])
    shrunk = np.append(share * values + (1.0 - share) * centre, centre)
    return np.exp(shrunk) if ratio else shrunk


def _noise(squares: FloatArray, rows: FloatArray) -> FloatArray:
    """The variance of each group's rows, few of which are helped by the median of all groups."""
    free = rows - 1.0
    usual = float(np.median(squares / free))
    return np.asarray(
        (squares + _ROWS_OF_USUAL_VARIANCE * usual) / (free + _ROWS_OF_USUAL_VARIANCE)
    )


def _usual(values: FloatArray, noise: FloatArray, rows: FloatArray) -> BoolArray:
    """Groups that differ as the others do: within five sds of the one in the middle of all rows."""
    order = np.argsort(values, kind="stable")
    upto = np.cumsum(rows[order])
    middle = float(values[order[int(np.searchsorted(upto, upto[-1] / 2.0))]])
    away = np.abs(values - middle)
    spread = 1.4826 * float(np.median(away))
    return np.asarray(away <= _SDS_OF_OUTLIER * np.sqrt(noise + spread**2))


def _shared(values: FloatArray, noise: FloatArray) -> tuple[FloatArray, float]:
    """The weight of each group's own value, of known variance, and what all have in common."""
    if not (noise > 0).all():  # such a group is known without error
        return np.ones_like(values), float(values.mean())
    precise = 1.0 / noise
    excess = float(precise @ np.square(values - np.average(values, weights=precise))) - (
        len(values) - 1.0
    )
    between = max(excess / (precise.sum() - float(precise @ precise) / precise.sum()), 0.0)
    centre = float(np.average(values, weights=1.0 / (between + noise)))
    return between / (between + noise), centre


# ---- bins of rows by ease, between edges that are calibration rows themselves --------------------

# Tenths, as usual. By hand; not tuned.
MAX_BINS = 10
"""Bins, where nobody says how many."""
# An offset that rests on ten misses is known to a third of these. By hand; not tuned.
MISSES_PER_BIN = 10.0
"""Misses that each of them is to expect."""


@frozen
class EaseCuts:
    """Bins by ease, learnt from calibration rows."""

    column: str  # the feature that holds the ease
    edges: tuple[float, ...]  # inner edges; an ease on one belongs to the bin above

    @property
    def names(self) -> tuple[str, ...]:
        """The bins in words, from the hardest."""
        count = len(self.edges) + 1
        return tuple(f"ease bin {number} of {count}" for number in range(1, count + 1))

    def find(self, evalset: EvalSet) -> IntArray:
        """Each row's bin, from 0."""
        return np.searchsorted(self.edges, _numbers(evalset, self.column), side="right")

    @classmethod
    def between(cls, rows: EvalSet, bins: int) -> tuple[Self, BoolArray]:
        """Bins of equal numbers of rows, and which rows are no edge.

        An edge is the ease of one row, which must not calibrate: a new row then takes any place
        among the eases of its bin with one probability, and coverage holds exactly in each bin.
        """
        check_whole(bins, "bins", 2)
        column = ease_column(rows)
        ease = _numbers(rows, column)
        places = (np.arange(1, bins) * (rows.n + 1)) // bins - 1
        if bins > (rows.n + 1) // 2:
            raise InputError(
                f"calibration must have at least {2 * bins - 1:,} rows for {bins} ease bins, got "
                f"{rows.n:,}"
            )
        order = np.argsort(ease, kind="stable")
        edges, first = np.unique(ease[order][places], return_index=True)
        inner = edges > ease.min()
        edges = edges[inner]
        if not len(edges):
            raise one_ease(rows)
        calibrates = np.ones(rows.n, dtype=np.bool_)
        calibrates[order[places][first[inner]]] = False
        cuts = cls(column, tuple(edges.tolist()))
        rows_inside = np.bincount(cuts.find(rows)[calibrates], minlength=len(edges) + 1)
        return cuts, calibrates | (rows_inside == 0)[cuts.find(rows)]


def has_ease(rows: EvalSet) -> bool:
    """Whether rows say how easy each is."""
    return rows.ease in rows.features


def ease_column(rows: EvalSet) -> str:
    """The feature that holds the ease of each row."""
    if not has_ease(rows):
        raise InputError(f"No ease scores found; name their column with {name_roles(ease=...)}")
    return rows.ease


def ease_of(rows: EvalSet) -> FloatArray:
    """The ease of each row."""
    return _numbers(rows, ease_column(rows))


def one_ease(rows: EvalSet) -> InputError:
    """The refusal of an ease that tells no rows apart."""
    return InputError(
        f"the ease ({rows.ease!r}) must differ between calibration rows to make bins; nearly all "
        f"have {float(ease_of(rows).min()):g}"
    )


def bins_for(rows: int, coverage: float) -> int:
    """How many bins so many rows are cut into, where nobody says: at least 2."""
    return max(2, min(MAX_BINS, int(rows * (1.0 - coverage) / MISSES_PER_BIN + 1e-9)))


def _numbers(rows: EvalSet, column: str) -> FloatArray:
    values = rows.features.get(column)
    if values is None:
        raise InputError(f"the rows must have the ease score {column!r}, like the calibration rows")
    if values.dtype.kind not in "biuf":
        raise InputError(f"the ease ({column!r}) must be numbers, got {values.dtype}")
    ease = values.astype(np.float64)
    if not np.isfinite(ease).all():
        wrong = ~np.isfinite(ease)
        raise InputError(
            f"the ease ({column!r}) must be finite; {int(wrong.sum())} rows are not (first at "
            f"row {int(np.argmax(wrong))})"
        )
    return ease


# ---- the methods ---------------------------------------------------------------------------------


def _by_ease(name: str) -> MethodInfo:
    return MethodInfo(
        name=name,
        kinds=SPREAD_KINDS,
        make=lambda kind, options: ByEase(
            name,
            kind,
            options.wanted,
            *options.threshold[1:],
            options.bins,
        ),
        saves=(GroupRecalibrator,),
        gives="intervals",
        needs="ease",
        compared=False,
    )


METHODS = (
    *(_by_ease(name) for name in _INSIDE),
    MethodInfo(
        name="group",
        kinds=(*FRAMED_KINDS, POINT),
        make=lambda kind, options: ByGroup(kind, options.by, *options.threshold),
        saves=(GroupLocationScale, GroupRecalibrator),
        needs="groups",
        label="by group",
        words="recalibrate within {by}",
        complexity=4,
        aims=SHAPE | {"groups", "width", "trade"},
    ),
)
