"""Scores of labels, and the sets of labels that score no more than a threshold.

In every row classes are ranked by falling probability; classes that tie share the last of their
ranks, so that renaming the classes changes nothing. Each score but one rises along the ranks: the
set is then the likeliest few classes, found from sorted values alone.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, final

import numpy as np
import numpy.typing as npt

from howsure.core.arrays import BoolArray, FloatArray, IntArray
from howsure.core.convert import Checked, Natural, NonNegative

Table = npt.NDArray[np.floating[Any]]

_ROUNDING = 1e-10
_BLOCK = 1 << 20


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

    @abstractmethod
    def of_labels(self, table: Table, labels: IntArray, draws: FloatArray) -> FloatArray:
        """Scores of one label a row, shape (n,).

        Parameters
        ----------
        table : ndarray of float, shape (n, classes)
            Probabilities.
        labels : ndarray of int, shape (n,)
            One class a row.
        draws : ndarray of float, shape (n,)
            The U of each row, in (0, 1).
        """

    @abstractmethod
    def sets(self, table: Table, thresholds: FloatArray, draws: FloatArray) -> BoolArray:
        """Which classes score at most the row's threshold, shape (n, classes).

        Parameters
        ----------
        table : ndarray of float, shape (n, classes)
            Probabilities.
        thresholds : ndarray of float, shape (n,)
            +inf gives all classes.
        draws : ndarray of float, shape (n,) or (n, classes)
            One U a row, or one a class.
        """


@final
@dataclass(frozen=True, slots=True)
class LAC(LabelScore):
    """1 − p_y: the smallest sets on average (least ambiguous set-valued classifiers).

    Notes
    -----
    Source: Sadinle, Lei and Wasserman 2019.

    Examples
    --------
    >>> p = np.array([[0.7, 0.2, 0.1]])
    >>> LAC().sets(p, np.array([0.8]), np.array([0.5]))
    array([[ True,  True, False]])
    """

    @property
    def name(self) -> str:
        """What reports call it."""
        return "LAC"

    def of_labels(self, table: Table, labels: IntArray, draws: FloatArray) -> FloatArray:
        """One less the probability of the label."""
        return 1.0 - table[np.arange(len(table)), labels].astype(np.float64)

    def sets(self, table: Table, thresholds: FloatArray, draws: FloatArray) -> BoolArray:
        """Classes of probability at least 1 − threshold."""
        return np.asarray(table >= (1.0 - _raised(thresholds))[:, None])


@final
@dataclass(frozen=True, slots=True)
class GivenScore(LabelScore):
    """The table's own entries: larger is stranger. For scores that come from elsewhere.

    Examples
    --------
    >>> GivenScore().sets(np.array([[1.0, 3.0]]), np.array([2.0]), np.array([0.5]))
    array([[ True, False]])
    """

    bounded: ClassVar[bool] = False

    @property
    def name(self) -> str:
        """What reports call it."""
        return "given score"

    def of_labels(self, table: Table, labels: IntArray, draws: FloatArray) -> FloatArray:
        """The entry of the label."""
        return table[np.arange(len(table)), labels].astype(np.float64)

    def sets(self, table: Table, thresholds: FloatArray, draws: FloatArray) -> BoolArray:
        """Entries of at most the threshold."""
        return np.asarray(table <= thresholds[:, None])


class RankedScore(LabelScore):
    """Scores by rank and by the probability of likelier classes, rising along the ranks."""

    __slots__ = ()
    randomized: bool

    @property
    def random(self) -> bool:
        """Whether the draws matter."""
        return self.randomized

    @abstractmethod
    def ranked(
        self, rank: FloatArray, reached: FloatArray, own: FloatArray, top: FloatArray, u: FloatArray
    ) -> FloatArray:
        """Scores of classes.

        Parameters
        ----------
        rank : ndarray of float
            From 1.
        reached : ndarray of float
            Probability of this and all likelier classes.
        own, top : ndarray of float
            Probability of the class, and of the likeliest.
        u : ndarray of float
            Draws in (0, 1); all broadcast.
        """

    def of_labels(self, table: Table, labels: IntArray, draws: FloatArray) -> FloatArray:
        """Scores of one label a row, shape (n,); no sorting is needed."""
        found = np.empty(len(table))
        for rows in _blocks(table):
            part = table[rows]
            own: Table = part[np.arange(len(part)), labels[rows]]
            likelier = part >= own[:, None]
            reached = np.asarray(np.where(likelier, part, 0).sum(axis=1, dtype=np.float64))
            rank = likelier.sum(axis=1).astype(np.float64)
            top = np.asarray(part.max(axis=1), dtype=np.float64)
            mine = np.asarray(own, dtype=np.float64)
            found[rows] = self.ranked(rank, reached, mine, top, draws[rows])
        return found

    def sets(self, table: Table, thresholds: FloatArray, draws: FloatArray) -> BoolArray:
        """Which classes score at most the row's threshold, shape (n, classes)."""
        members = np.empty(table.shape, dtype=np.bool_)
        levels = _raised(thresholds)
        choose = self._by_rank if draws.ndim == 1 else self._by_class
        for rows in _blocks(table):
            members[rows] = choose(table[rows], levels[rows], draws[rows])
        return members

    def _by_rank(self, part: Table, levels: FloatArray, u: FloatArray) -> BoolArray:
        """The likeliest few; classes that tie across the end are left out together."""
        falling = -np.sort(-part, axis=1)
        rank = np.arange(1.0, part.shape[1] + 1)
        own: FloatArray = falling.astype(np.float64)
        reached = np.cumsum(own, axis=1)
        scores = self.ranked(rank, reached, own, own[:, :1], u[:, None])
        kept = (scores <= levels[:, None]).sum(axis=1)
        first_out = np.take_along_axis(
            falling, np.minimum(kept, part.shape[1] - 1)[:, None], axis=1
        )
        return np.asarray((part > first_out) | (kept == part.shape[1])[:, None])

    def _by_class(self, part: Table, levels: FloatArray, u: FloatArray) -> BoolArray:
        """Every class with a draw of its own."""
        order = np.argsort(-part, axis=1, kind="stable")
        own: FloatArray = np.take_along_axis(part, order, axis=1).astype(np.float64)
        last = _ends_of_ties(own)
        reached = np.take_along_axis(np.cumsum(own, axis=1), last, axis=1)
        draws = np.take_along_axis(u, order, axis=1)
        rank: FloatArray = last.astype(np.float64) + 1.0
        scores = self.ranked(rank, reached, own, own[:, :1], draws)
        members = np.empty(part.shape, dtype=np.bool_)
        np.put_along_axis(members, order, scores <= levels[:, None], axis=1)
        return members


@final
@dataclass(frozen=True, slots=True)
class APS(RankedScore):
    """Probability of all classes as likely as the label, less U of its own (adaptive sets).

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
    >>> APS(randomized=False).of_labels(p, np.array([1]), np.array([0.5]))
    array([0.9])
    """

    randomized: bool = True

    @property
    def name(self) -> str:
        """What reports call it."""
        return "APS" if self.randomized else "APS, not randomised"

    def ranked(
        self, rank: FloatArray, reached: FloatArray, own: FloatArray, top: FloatArray, u: FloatArray
    ) -> FloatArray:
        """Probability reached, less U of the class's own."""
        return reached - u * own if self.randomized else reached


@final
@dataclass(frozen=True, slots=True)
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
    >>> RAPS(0.5, 1, randomized=False).of_labels(p, np.array([1]), np.array([0.5]))
    array([1.4])
    """

    penalty: NonNegative = 0.01
    free: Natural = 5
    randomized: bool = True

    @property
    def name(self) -> str:
        """What reports call it."""
        return "RAPS" if self.randomized else "RAPS, not randomised"

    def ranked(
        self, rank: FloatArray, reached: FloatArray, own: FloatArray, top: FloatArray, u: FloatArray
    ) -> FloatArray:
        """Probability reached, less U of the class's own, and the penalty."""
        aps = reached - u * own if self.randomized else reached
        return np.asarray(aps + self.penalty * np.maximum(rank - self.free, 0.0))


@final
@dataclass(frozen=True, slots=True)
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
    >>> SAPS(0.1).of_labels(p, np.array([1]), np.array([0.5]))
    array([0.75])
    """

    penalty: NonNegative = 0.1
    randomized: bool = True

    @property
    def name(self) -> str:
        """What reports call it."""
        return "SAPS" if self.randomized else "SAPS, not randomised"

    def ranked(
        self, rank: FloatArray, reached: FloatArray, own: FloatArray, top: FloatArray, u: FloatArray
    ) -> FloatArray:
        """U of the top class, or the top and a weight for each rank after."""
        share = u if self.randomized else np.ones_like(u)
        return np.where(rank == 1, share * top, top + self.penalty * (rank - 2.0 + share))


def _blocks(table: Table) -> list[slice]:
    step = max(1, _BLOCK // table.shape[1])
    return [slice(start, start + step) for start in range(0, len(table), step)]


def _raised(thresholds: FloatArray) -> FloatArray:
    """Thresholds raised past rounding: sums run in another order when sets are formed."""
    return thresholds + _ROUNDING


def _ends_of_ties(falling: FloatArray) -> IntArray:
    """For each place in sorted rows, the last place with the same value."""
    n, classes = falling.shape
    ends = np.ones((n, classes), dtype=np.bool_)
    ends[:, :-1] = falling[:, 1:] != falling[:, :-1]
    places = np.where(ends, np.arange(classes), classes)
    return np.asarray(np.minimum.accumulate(places[:, ::-1], axis=1)[:, ::-1])
