"""Rows that are copies of each other, beyond what chance ties."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any

import numpy as np
from scipy import special

from howsure.core.arrays import AnyArray, FloatArray, IntArray
from howsure.core.classes import frozen
from howsure.core.labels import Categories, joint
from howsure.core.rng import KeyArray, row_hashes
from howsure.predictions import EvalSet, LabelSets
from howsure.stats.dominance import places_in_order

OTHERS = ""
"""Findings that a fault does not name."""


@frozen(kw_only=True)
class RowFault:
    """One thing that rows are not, as they seem.

    `explains` names the findings that it moves, each with the effect there that a unit of `share`
    explains; under `OTHERS`, that of all that are not named. `facts` are for the sentence. Only a
    fault of predictions is `bad`.
    """

    name: str
    rows: float  # how many
    share: float  # of all
    bad: bool = False
    harmless: bool = False  # tests allow for it, or nothing shows that it matters
    explains: Mapping[str, float] = field(default_factory=dict)
    facts: Mapping[str, Any] = field(default_factory=dict)


# A pair or two may be chance, or one row entered twice.
_MIN_COPIES = 3
# Share of rows that are copies below which no test is misled: n falls by 1 %, errors rise by .5 %.
_MIN_SHARE_COPIED = 0.01
# P-value of as many ties by chance. So small as the chance of a tie is itself only roughly known.
CERTAIN_P = 1e-6
"""P-value of as many ties by chance."""
# Ten neighbours give ten times the pairs of one to estimate ties from, and predict nearly the
# same; not tuned. More would reach rows whose y is elsewhere.
_NEIGHBOURS = 10
# How much more often rows of one prediction may tie than rows of neighbouring ones. Chosen by
# hand; not tuned. Larger, fewer copies are found among rounded y.
_SAFETY_FACTOR = 3.0
# Different predictions (or triples of y) without which neighbours say nothing. Not tuned.
_MIN_PREDICTIONS = 8
# The simplest ratios: in a lattice (rounded y, counts) neighbours are one or two steps apart.
_FRACTIONS = np.array([1 / 3, 1 / 2, 2 / 3])
# Small, so that ratios of a continuous law hit one of the three in 3 % of the triples alone.
_FRACTION_TOLERANCE = 0.005
# A ratio is uniform for a continuous law: the width of what counts as near.
_SHARE_BY_CHANCE = 2 * _FRACTION_TOLERANCE * len(_FRACTIONS)
# The usual level. A lattice that is suspected wrongly leaves copies unnamed, the safer mistake.
_LEVEL_OF_LATTICE = 0.05
# Nine digits write any number of single precision; numbers with more are measured, not rounded.
_MAX_DECIMALS = 9
# Different values for each different row from which on a column is no count. By hand; not tuned.
_MIN_SHARE_DISTINCT = 0.5
# How often two values of a law of unit sd are within a unit of each other, nearly at most: .28 of
# a normal law, .35 of Laplace's, .5 of an exponential one.
_DENSITY_OF_DIFFERENCE = 0.5


@frozen
class Copies:
    """Which rows have one content, and how much there is of it."""

    clusters: Categories
    fault: RowFault


def copies(evalsets: Sequence[EvalSet]) -> Copies | None:
    """Rows that are equal in y, inputs and all predictions, where chance does not explain them.

    None where what they share is named, as clusters that hold them and others.

    Chance ties what is counted or rounded: as many ties are expected among rows of one prediction
    as neighbouring predictions have, or, where predictions hardly differ, if y stands on a lattice.

    Examples
    --------
    >>> y = np.random.default_rng(0).normal(size=50)
    >>> copies([EvalSet.checked(np.repeat(y, 2), point=np.repeat(y, 2) + 1)]).fault.rows
    50.0
    """
    first = evalsets[0]
    n = first.n
    fewest = max(_MIN_COPIES, int(np.ceil(_MIN_SHARE_COPIED * n)))
    if n - len(np.unique(first.y)) < fewest:
        return None
    if any(
        isinstance(prediction, LabelSets)
        for evalset in evalsets
        for prediction in evalset.predictions
    ):
        return None
    said = _columns_beside_y(evalsets)
    beside = row_hashes(*said)
    codes = _codes(row_hashes(first.y, beside))
    distinct = int(codes.max()) + 1
    if not any(_measured(values, distinct) for values in (first.y, *said)):
        return None
    if n - distinct < fewest or not _beyond_chance(first.y, beside, codes, _centre_of(first)):
        return None
    units = codes if first.cluster is None else first.cluster.codes
    named = len(np.unique(units)) < distinct
    if named and len(np.unique(codes * (int(units.max()) + 1) + units)) == distinct:
        return None  # what copies share is named: they lie within clusters
    fault = RowFault(
        name="copies",
        rows=float(n - distinct),
        share=(n - distinct) / n,
        harmless=not named and first.share == 1.0,
        facts={"n": n, "distinct": distinct},
    )
    return Copies(Categories(codes, np.arange(1, distinct + 1)), fault)


def corrected(evalset: EvalSet) -> RowFault | None:
    """Rows that were delivered twice: of one time, and nearly but not quite alike.

    What else tells them apart, series, lead time or group, must be the same, and so must
    predictions, but for as small a part of an error.
    """
    if evalset.time is None:
        return None
    names = [Categories.checked(evalset.time, "time"), *evalset.groups.values()]
    names += [] if evalset.series is None else [evalset.series]
    names += [] if evalset.horizon is None else [Categories.checked(evalset.horizon, "horizon")]
    code = joint(*(name.codes for name in names))
    centre = _centre_of(evalset)
    size = float(np.std(evalset.y - centre))
    order = np.lexsort((evalset.y, code))
    pairs = np.diff(code[order]) == 0
    pairs &= np.bincount(code)[code[order][1:]] <= _MAX_DELIVERIES
    apart, moved = (np.abs(np.diff(each[order])) for each in (evalset.y, centre))
    near = pairs & (apart > 0.0) & (np.maximum(apart, moved) <= _MAX_CORRECTION * size)
    count = int(near.sum())
    if count < max(_MIN_CORRECTED, _MIN_SHARE_COPIED * evalset.n) or 2 * count < pairs.sum():
        return None
    return RowFault(name="corrected", rows=float(count), share=count / evalset.n)


# Two deliveries and a correction; rows of one time that are more are something else.
_MAX_DELIVERIES = 3
# With 1 pair of 35 near by chance, ten that are half of all pairs are no chance.
_MIN_CORRECTED = 10
# Part of the sd of errors; two of independent errors are as near in one pair of 35.
_MAX_CORRECTION = 0.05


def _measured(values: AnyArray, distinct: int) -> bool:
    """Whether numbers differ wherever rows do, nearly: of counts alone any content may repeat."""
    first = values.reshape(len(values), -1)[:, 0]
    return len(np.unique(first)) >= _MIN_SHARE_DISTINCT * distinct


def _columns_beside_y(evalsets: Sequence[EvalSet]) -> list[Any]:
    """All of rows but y."""
    first = evalsets[0]
    columns: list[Any] = []
    for values in first.features.values():
        numeric = values.dtype.kind in "biuf"
        columns.append(values if numeric else Categories.checked(values, "labels").codes)
    if first.embedding is not None:
        columns.append(first.embedding)
    for evalset in evalsets:
        columns += predicted_numbers(evalset)
    return columns or [np.zeros(first.n)]


def _centre_of(evalset: EvalSet) -> FloatArray:
    """A number of each row by which rows of like predictions are neighbours."""
    if evalset.point is not None:
        return evalset.point
    for prediction in evalset.predictions:
        for numbers in prediction.numbers().values():
            if np.isfinite(numbers).all():
                return np.asarray(np.mean(numbers.reshape(evalset.n, -1), axis=1))
    return np.zeros(evalset.n)


def predicted_numbers(evalset: EvalSet) -> list[FloatArray]:
    """The point forecast, if there is one, and all numbers of predictions."""
    points = [] if evalset.point is None else [evalset.point]
    return points + [
        numbers for prediction in evalset.predictions for numbers in prediction.numbers().values()
    ]


def _codes(keys: KeyArray) -> IntArray:
    """Equal keys have one number, in the order of the rows that show them first."""
    _, firsts, codes = np.unique(keys, return_index=True, return_inverse=True)
    return places_in_order(firsts)[codes.ravel()]


def _beyond_chance(y: FloatArray, beside: KeyArray, codes: IntArray, centre: FloatArray) -> bool:
    """Whether rows of one prediction share y more often than chance has it."""
    times = np.bincount(codes)
    repeated = int((times > 1).sum())
    if repeated < max(_MIN_COPIES, _MIN_SHARE_COPIED * len(times)):
        return False  # an atom or two
    kinds = np.unique(beside, return_inverse=True)[1].ravel()
    sizes = np.bincount(kinds)
    ties, alike = _pairs(times), _pairs(sizes)
    firsts = np.unique(codes, return_index=True)[1]
    y, kinds, centre = y[firsts], kinds[firsts], centre[firsts]
    whole = bool((y == np.round(y)).all())
    if len(sizes) < _MIN_PREDICTIONS or 2 * sizes.max() > sizes.sum():
        by_digits = (
            _SAFETY_FACTOR
            * alike
            * step_of(y)
            * _DENSITY_OF_DIFFERENCE
            / max(float(y.std()), 1e-300)
        )
        return not _on_lattice(y, kinds) and _more_than(ties, by_digits)
    if whole and ties < 0.9 * alike:
        return False
    order = np.lexsort((kinds, centre))
    y, kinds = y[order], kinds[order]
    pairs = tied = 0
    for lag in range(1, min(_NEIGHBOURS, len(y) - 1) + 1):
        apart = kinds[lag:] != kinds[:-lag]
        pairs += int(apart.sum())
        tied += int((apart & (y[lag:] == y[:-lag])).sum())
    expected = _SAFETY_FACTOR * alike * (tied + 3.0) / max(pairs, 1)
    return _more_than(ties, expected)


def _more_than(ties: float, expected: float) -> bool:
    return bool(special.pdtrc(ties - 1.0, expected) < CERTAIN_P)


def step_of(y: FloatArray) -> float:
    """What all y are multiples of: a power of ten; 0 where none is."""
    for digits in range(_MAX_DECIMALS):
        if np.array_equal(y, np.round(y, digits)):
            return 10.0**-digits
    return 0.0


def _pairs(times: IntArray) -> float:
    return float((times * (times - 1.0)).sum()) / 2.0


def _on_lattice(y: FloatArray, kinds: IntArray) -> bool:
    """Whether gaps between values of y within a kind are in simple ratios: then ties are natural.

    Of three values of a continuous law next to each other, the second lies anywhere between.
    """
    order = np.lexsort((y, kinds))
    y, kinds = y[order], kinds[order]
    within = kinds[2:] == kinds[:-2]
    low, high = np.diff(y)[:-1][within], np.diff(y)[1:][within]
    if len(low) < _MIN_PREDICTIONS:
        return True
    off = np.abs((low / (low + high))[:, None] - _FRACTIONS).min(axis=1)
    return bool(
        special.pdtrc((off < _FRACTION_TOLERANCE).sum() - 1.0, _SHARE_BY_CHANCE * len(low))
        < _LEVEL_OF_LATTICE
    )
