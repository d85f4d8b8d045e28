"""Scores of labels, sets of labels that score no more than a threshold, and tempered scores.

In every row classes are ranked by falling probability; classes that tie share the last of their
ranks, so that renaming the classes changes nothing. Each score but one rises along the ranks: the
set is then the likeliest few classes, found from sorted values alone.

A score is kept as two numbers: its value, and what rounding took from it. Their sum tells scores
apart that differ by less than a rounding of one, as those of an overconfident softmax do: its
probabilities near 1 are known by the others' sum, its scores near 1 by what they lack. Scores are
compared exactly, first number first.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Any, ClassVar, NamedTuple, final

import numpy as np
import numpy.typing as npt

from howsure.core.arrays import BoolArray, FloatArray, IntArray, as_matrix, check_above
from howsure.core.classes import frozen
from howsure.core.convert import Checked, Natural, NonNegative
from howsure.core.errors import InputError
from howsure.stats.dominance import class_numbers
from howsure.stats.roots import minimum

Table = npt.NDArray[np.floating[Any]]

# A million numbers of 64 bits are 8 MB, for each of a few arrays at a time.
_NUMBERS_AT_ONCE = 1 << 20
# From here on the others' sum tells more than 1 − p, in single precision too: 1 − p has 12 of its
# 24 bits left.
_NEAR_CERTAIN = 1.0 - 2.0**-12

Parts = tuple[FloatArray, FloatArray]
"""Values of scores, and what rounding took from them."""


class LabelScore(ABC):
    """How strange a label is, given the probabilities of all classes. Subclasses are final."""

    __slots__ = ()
    bounded: ClassVar[bool] = True
    """Whether rows must be probabilities that sum to one."""

    @property
    @abstractmethod
    def name(self) -> str:
        """What reports call it."""

    @property
    def random(self) -> bool:
        """Whether the draws matter."""
        return False

    def of_labels(self, table: Table, labels: IntArray, draws: FloatArray) -> FloatArray:
        """Scores of one label per row, shape (n, 2): each is the sum of its two numbers.

        Parameters
        ----------
        table : ndarray of float, shape (n, classes)
            Probabilities.
        labels : ndarray of int, shape (n,)
            One class a row.
        draws : ndarray of float, shape (n,)
            The U of each row, in (0, 1).
        """
        scored = [self._label(table[rows], labels[rows], draws[rows]) for rows in _blocks(table)]
        return np.concatenate([np.stack(parts, axis=1) for parts in scored])

    def sets(self, table: Table, thresholds: FloatArray, draws: FloatArray) -> BoolArray:
        """Which classes score at most the row's threshold, shape (n, classes).

        Parameters
        ----------
        table : ndarray of float, shape (n, classes)
            Probabilities.
        thresholds : ndarray of float, shape (n, 2)
            Scores of two numbers; +inf as the first gives all classes.
        draws : ndarray of float, shape (n,) or (n, classes)
            One U per row, or one per class.
        """
        members = np.empty(table.shape, dtype=np.bool_)
        for rows in _blocks(table):
            members[rows] = self._members(table[rows], thresholds[rows], draws[rows])
        return members

    @abstractmethod
    def _label(self, table: Table, labels: IntArray, u: FloatArray) -> Parts:
        """Scores of one label per row, shape (n,)."""

    @abstractmethod
    def _members(self, table: Table, levels: FloatArray, u: FloatArray) -> BoolArray:
        """Which classes score at most their row's level, shape (n, classes)."""


@final
@frozen
class LAC(LabelScore):
    """1 − p_y: the smallest sets on average (least ambiguous set-valued classifiers).

    Notes
    -----
    Source: Sadinle, Lei and Wasserman 2019.

    Examples
    --------
    >>> p = np.array([[0.7, 0.2, 0.1]])
    >>> LAC().sets(p, np.array([[0.85, 0.0]]), np.array([0.5]))
    array([[ True,  True, False]])
    """

    name: ClassVar[str] = "LAC"

    def _label(self, table: Table, labels: IntArray, u: FloatArray) -> Parts:
        return self._scored(table[np.arange(len(table)), labels], _doubt(table))

    def _members(self, table: Table, levels: FloatArray, u: FloatArray) -> BoolArray:
        return _within(self._scored(table, _doubt(table)[:, None]), levels)

    def _scored(self, entries: Table, doubt: FloatArray) -> Parts:
        probability: FloatArray = np.asarray(entries, dtype=np.float64)
        value, rounding = _less(1.0, probability)
        certain = probability > _NEAR_CERTAIN  # such a class is its row's top
        return np.where(certain, doubt, value), np.where(certain, 0.0, rounding)


@final
@frozen
class GivenScore(LabelScore):
    """The table's own entries: larger is stranger. For scores that come from elsewhere.

    Examples
    --------
    >>> GivenScore().sets(np.array([[1.0, 3.0]]), np.array([[2.0, 0.0]]), np.array([0.5]))
    array([[ True, False]])
    """

    bounded: ClassVar[bool] = False

    name: ClassVar[str] = "given score"

    def _label(self, table: Table, labels: IntArray, u: FloatArray) -> Parts:
        entries = table[np.arange(len(table)), labels].astype(np.float64)
        return entries, np.zeros_like(entries)

    def _members(self, table: Table, levels: FloatArray, u: FloatArray) -> BoolArray:
        return np.asarray(table <= levels[:, :1])


class RankedClasses(NamedTuple):
    """Classes as scores by rank see them."""

    rank: FloatArray  # from 1, the likeliest
    behind: FloatArray  # the probability of all less likely ones
    probability: FloatArray
    doubt: FloatArray  # one less the largest probability of the row
    u: FloatArray  # the draws


class RankedScore(LabelScore):
    """Scores by rank and by the probability of other classes, rising along the ranks."""

    __slots__ = ()
    randomized: bool

    @property
    def name(self) -> str:
        """What reports call it."""
        return f"{type(self).__name__}{'' if self.randomized else ', not randomised'}"

    @property
    def random(self) -> bool:
        """Whether the draws matter."""
        return self.randomized

    @abstractmethod
    def ranked(self, classes: RankedClasses) -> Parts:
        """Scores of classes."""

    def _less_than(self, most: FloatArray | float, classes: RankedClasses) -> Parts:
        """A number, less the probability of less likely classes and U of the class's own."""
        share = classes.u * classes.probability if self.randomized else 0.0
        return _less(most, classes.behind + share)

    def _label(self, table: Table, labels: IntArray, u: FloatArray) -> Parts:
        of_label: Table = table[np.arange(len(table)), labels]
        behind = (table < of_label[:, None]).sum(axis=1)
        sums = np.take_along_axis(_sums_before(np.sort(table, axis=1)), behind[:, None], axis=1)
        rank = (table.shape[1] - behind).astype(np.float64)
        probability = np.asarray(of_label, dtype=np.float64)
        return self.ranked(RankedClasses(rank, sums[:, 0], probability, _doubt(table), u))

    def _members(self, table: Table, levels: FloatArray, u: FloatArray) -> BoolArray:
        return self._by_rank(table, levels, u) if u.ndim == 1 else self._by_class(table, levels, u)

    def _by_rank(self, table: Table, levels: FloatArray, u: FloatArray) -> BoolArray:
        """The likeliest few; classes that tie across the end are left out together."""
        rising = np.sort(table, axis=1)
        rank = np.arange(float(table.shape[1]), 0.0, -1.0)
        probability: FloatArray = rising.astype(np.float64)
        doubt = _doubt(table)[:, None]
        scores = self.ranked(
            RankedClasses(rank, _sums_before(rising), probability, doubt, u[:, None])
        )
        left_out = table.shape[1] - _within(scores, levels).sum(axis=1)
        last_out = np.take_along_axis(rising, np.maximum(left_out - 1, 0)[:, None], axis=1)
        return np.asarray((table > last_out) | (left_out == 0)[:, None])

    def _by_class(self, table: Table, levels: FloatArray, u: FloatArray) -> BoolArray:
        """Every class with a draw of its own."""
        order = np.argsort(table, axis=1, kind="stable")
        rising = np.take_along_axis(table, order, axis=1)
        first = _starts_of_ties(rising)
        classes = RankedClasses(
            rank=table.shape[1] - first.astype(np.float64),
            behind=np.take_along_axis(_sums_before(rising), first, axis=1),
            probability=rising.astype(np.float64),
            doubt=_doubt(table)[:, None],
            u=np.take_along_axis(u, order, axis=1),
        )
        scores = self.ranked(classes)
        members = np.empty(table.shape, dtype=np.bool_)
        np.put_along_axis(members, order, _within(scores, levels), axis=1)
        return members


@final
@frozen
class APS(RankedScore):
    """Probability of all classes as likely as the label, less U of its own (adaptive sets).

    Computed as one less the probability of less likely classes and U of the label's own.

    Parameters
    ----------
    randomized : bool
        Whether U is drawn; otherwise U = 0, and sets cover more than asked.

    Notes
    -----
    Source: Romano, Sesia and Candès 2020.

    Examples
    --------
    >>> p = np.array([[0.7, 0.2, 0.1]])
    >>> APS(randomized=False).of_labels(p, np.array([1]), np.array([0.5])).sum(axis=1)
    array([0.9])
    """

    randomized: bool = True

    def ranked(self, classes: RankedClasses) -> Parts:
        """One, less the probability of less likely classes and U of the class's own."""
        return self._less_than(1.0, classes)


@final
@frozen
class RAPS(RankedScore, Checked):
    """`APS` with a penalty λ for each rank past the first few (regularised adaptive sets).

    Parameters
    ----------
    penalty : float
        λ, at least 0.
    free : int
        Ranks without a penalty (k_reg), at least 0.
    randomized : bool
        As `APS`.

    Raises
    ------
    InputError
        If an option breaks its rule.

    Notes
    -----
    Source: Angelopoulos, Bates, Malik and Jordan 2021.

    Examples
    --------
    >>> p = np.array([[0.7, 0.2, 0.1]])
    >>> RAPS(0.5, 1, randomized=False).of_labels(p, np.array([1]), np.array([0.5])).sum(axis=1)
    array([1.4])
    """

    penalty: NonNegative = 0.01
    free: Natural = 5
    randomized: bool = True

    def ranked(self, classes: RankedClasses) -> Parts:
        """As `APS`, and the penalty."""
        most = 1.0 + self.penalty * np.maximum(classes.rank - self.free, 0.0)
        return self._less_than(most, classes)


@final
@frozen
class SAPS(RankedScore, Checked):
    """The largest probability, and a weight λ for each rank after (sorted adaptive sets).

    Parameters
    ----------
    penalty : float
        λ, at least 0.
    randomized : bool
        Whether U is drawn; otherwise U = 1 throughout.

    Raises
    ------
    InputError
        If λ is negative or not finite.

    Notes
    -----
    Rank 1 scores U·p₁, rank r > 1 scores p₁ + λ(r − 2 + U). Without randomisation a label scores
    the same when thresholds are learnt and when sets are formed. Source: Huang, Xi, Zhang, Yao,
    Qiu and Wei 2024.

    Examples
    --------
    >>> p = np.array([[0.7, 0.2, 0.1]])
    >>> SAPS(0.1).of_labels(p, np.array([1]), np.array([0.5])).sum(axis=1)
    array([0.75])
    """

    penalty: NonNegative = 0.1
    randomized: bool = True

    def ranked(self, classes: RankedClasses) -> Parts:
        """U of the top class, or the top and a weight for each rank after."""
        share = classes.u if self.randomized else np.ones_like(classes.u)
        value, rounded = _less(1.0 + self.penalty * (classes.rank - 2.0 + share), classes.doubt)
        top, lost = _less(1.0, classes.doubt)
        first = classes.rank == 1
        return np.where(first, share * top, value), np.where(first, share * lost, rounded)


def _blocks(table: Table) -> list[slice]:
    step = max(1, _NUMBERS_AT_ONCE // table.shape[1])
    return [slice(start, start + step) for start in range(0, len(table), step)]


def _less(larger: FloatArray | float, smaller: FloatArray) -> Parts:
    """The difference as two numbers, without loss; the whole must be the larger."""
    value = np.asarray(larger - smaller)
    return value, np.asarray((larger - value) - smaller)


def _within(scores: Parts, levels: FloatArray) -> BoolArray:
    """Whether scores, shape (n, classes), are at most their row's level, shape (n, 2)."""
    value, rounding = scores
    level = levels[:, :1]
    return np.asarray((value < level) | ((value == level) & (rounding <= levels[:, 1:])))


def _doubt(table: Table) -> FloatArray:
    """One less the largest probability of each row; the sum of the others where that is near 1."""
    doubt: FloatArray = 1.0 - table.max(axis=1).astype(np.float64)
    near = np.flatnonzero(doubt < 1.0 - _NEAR_CERTAIN)
    less_likely = _sums_before(np.sort(table[near], axis=1))[:, -1]
    doubt[near] = np.minimum(less_likely, 1.0 - _NEAR_CERTAIN)
    return doubt


def _sums_before(rising: Table) -> FloatArray:
    """Sums of all smaller values of sorted rows, from the small end."""
    sums: FloatArray = np.zeros(rising.shape)
    np.cumsum(rising[:, :-1], axis=1, dtype=np.float64, out=sums[:, 1:])
    return sums


def _starts_of_ties(rising: Table) -> IntArray:
    """For each place in sorted rows, the first place with the same value."""
    starts = np.ones(rising.shape, dtype=np.bool_)
    starts[:, 1:] = rising[:, 1:] != rising[:, :-1]
    places = np.where(starts, np.arange(rising.shape[1]), 0)
    return np.asarray(np.maximum.accumulate(places, axis=1))


# ---- temperature scaling: one number that makes class probabilities sharper or flatter -----------


def tempered(probabilities: npt.ArrayLike, temperature: float) -> FloatArray:
    """Probabilities proportional to p^(1/T).

    Parameters
    ----------
    probabilities : array-like of shape (n, classes)
        Not negative; zeros stay zero.
    temperature : float
        T, above 0: above 1 flattens, below 1 sharpens.

    Returns
    -------
    ndarray of float, shape (n, classes)

    Raises
    ------
    InputError
        If a probability is negative, a row has none above 0, or T is not above 0.

    Examples
    --------
    >>> tempered([[0.8, 0.2]], 2.0)
    array([[0.667, 0.333]])
    """
    if not 0 < temperature < math.inf:
        raise InputError(f"temperature must be above 0, got {temperature!r}")
    logs = _logs(probabilities) / temperature
    raised = np.exp(logs - logs.max(axis=1, keepdims=True))
    return np.asarray(raised / raised.sum(axis=1, keepdims=True))


def fit_temperature(probabilities: npt.ArrayLike, y: npt.ArrayLike) -> float:
    """The temperature of the highest likelihood on labelled rows.

    Parameters
    ----------
    probabilities : array-like of shape (n, classes)
        Above 0 for every true class.
    y : array-like of shape (n,)
        The true class, a whole number from 0.

    Returns
    -------
    float
        Between 1/100 and 100.

    Raises
    ------
    InputError
        If a probability is negative or 0 for a true class, or y is no class.

    Notes
    -----
    The log-likelihood is concave in 1/T. Source: Guo, Pleiss, Sun and Weinberger 2017.

    Examples
    --------
    >>> fit_temperature([[0.99, 0.01], [0.99, 0.01], [0.01, 0.99]], [0, 1, 1])
    6.63
    """
    logs = _logs(probabilities)
    of_true_class = logs[np.arange(len(logs)), class_numbers(y, *logs.shape)]
    check_above(np.exp(of_true_class), "probabilities of true classes", 0.0)

    def loss(log_inverse: float) -> float:
        sharp = logs * math.exp(log_inverse)
        top = sharp.max(axis=1)
        total = np.log(np.exp(sharp - top[:, None]).sum(axis=1)) + top
        return float((total - of_true_class * math.exp(log_inverse)).mean())

    # Beyond a hundredth and 100 times a network is not miscalibrated but another one; 10⁻⁵ of a
    # log is more than any digit that is shown.
    return math.exp(-minimum(loss, -math.log(100), math.log(100), 1e-5))


def _logs(probabilities: npt.ArrayLike) -> FloatArray:
    table = as_matrix(probabilities, "probabilities")
    if (table < 0).any() or not table.any(axis=1).all():
        raise InputError("probabilities must not be negative or all 0 in a row")
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(table))
