"""Which threshold holds at which x: one for all, or one for each group of rows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Protocol, Self, final, runtime_checkable

import numpy as np

from howsure.conformal.ranks import DELTA, RankRule
from howsure.conformal.thresholds import (
    Threshold,
    TooFew,
    check_bounded,
    check_few,
    conformal_threshold,
)
from howsure.core.arrays import AnyArray, FloatArray, check_length
from howsure.core.classes import frozen
from howsure.core.convert import check_whole
from howsure.core.errors import InputError

Labels = AnyArray
Forecast = Callable[[FloatArray], FloatArray]


@frozen
class RankChoice:
    """How thresholds are chosen; see `conformal_threshold`."""

    rule: RankRule = "conformal"
    delta: float = DELTA
    too_few: TooFew = "infinite"

    def threshold(self, scores: FloatArray, coverage: float) -> Threshold:
        """The threshold of calibration scores.

        Raises
        ------
        InputError
            As `conformal_threshold`, or if intervals are too large already to learn from.
        """
        threshold = conformal_threshold(
            scores, coverage, rule=self.rule, delta=self.delta, too_few=self.too_few
        )
        check_bounded(threshold.value, coverage)
        return threshold


@frozen(eq=False)
class Calibration:
    """Calibration rows with their scores, and what was trained without them.

    Attributes
    ----------
    scores : ndarray of float, shape (n, c)
        One column a coverage.
    x : ndarray of float, shape (n, d)
        Inputs of the calibration rows.
    coverages : tuple of float
        Nominal coverages.
    choice : RankChoice
        How thresholds are chosen.
    training : ndarray of float, shape (k, d)
        Inputs of the rows that the model was trained on; k may be 0.
    forecast : callable
        The trained model's point forecast.
    rng : numpy.random.Generator
        The only source of randomness.
    elsewhere : ndarray of float, shape (m, d), optional
        Inputs of the population that thresholds are for, where it is another one; no y of theirs.
    """

    scores: FloatArray
    x: FloatArray
    coverages: tuple[float, ...]
    choice: RankChoice
    training: FloatArray
    forecast: Forecast
    rng: np.random.Generator
    elsewhere: FloatArray | None = None


class Thresholds(ABC):
    """Thresholds learnt from calibration rows."""

    __slots__ = ()

    @abstractmethod
    def at(self, x: FloatArray) -> FloatArray:
        """The thresholds that hold at each row of x, shape (m, c)."""


class Adaptation(ABC):
    """How thresholds depend on x. Subclasses are final."""

    __slots__ = ()

    @property
    @abstractmethod
    def label(self) -> str:
        """What reports add to a method's name; empty where thresholds are one for all x."""

    @property
    def for_elsewhere(self) -> bool:
        """Whether thresholds are for another population than that of the calibration rows."""
        return False

    @abstractmethod
    def learn(self, calibration: Calibration) -> Thresholds:
        """Learn thresholds from calibration rows."""


@final
@frozen
class Marginal(Adaptation):
    """One threshold for all x: coverage holds on average over x.

    Examples
    --------
    >>> Marginal().label
    ''
    """

    label: ClassVar[str] = ""

    def learn(self, calibration: Calibration) -> OneForAll:
        """One finite-sample quantile a coverage."""
        return OneForAll(_calibrate_each_coverage(calibration, calibration.scores))


@final
@frozen
class OneForAll(Thresholds):
    """Fitted `Marginal`."""

    thresholds: tuple[Threshold, ...]  # one a coverage, with what it guarantees

    def at(self, x: FloatArray) -> FloatArray:
        """The thresholds that hold at each row of x, shape (m, c)."""
        values = np.array([threshold.value for threshold in self.thresholds])
        return np.broadcast_to(values, (len(x), len(values)))


@runtime_checkable
class LearntGroups(Protocol):
    """Groups that must be learnt first, from rows that the model was trained on."""

    def learn(self, x: FloatArray, forecast: Forecast) -> Callable[[FloatArray], Labels]:
        """A rule that gives each row of inputs the label of its group."""


@final
@frozen
class Mondrian(Adaptation):
    """One threshold a group of rows: coverage holds within every group.

    Parameters
    ----------
    groups : callable or Grouping
        Maps inputs, shape (m, d), to labels, shape (m,); or learns such a rule first, as
        `UniformBins` does.

    Notes
    -----
    In a group with n_g calibration rows a new row is covered with probability
    ⌈(n_g + 1)(1 − α)⌉/(n_g + 1), where scores do not tie. Labels may depend on x and on anything
    learnt without the calibration rows. A group without enough calibration rows has an infinite
    threshold, or is refused, as ``too_few`` says. Source: Vovk, Gammerman and Shafer 2005,
    section 4.5.

    Examples
    --------
    >>> by_sign = Mondrian(lambda x: x[:, 0] > 0)
    >>> by_sign.label
    'by group'
    """

    groups: Callable[[FloatArray], Labels] | LearntGroups

    def __post_init__(self) -> None:
        if not callable(self.groups) and not isinstance(self.groups, LearntGroups):
            raise InputError(
                "groups must be a function from inputs to labels, or have a method that fits "
                f"one, got {self.groups!r}"
            )

    label: ClassVar[str] = "by group"

    def learn(self, calibration: Calibration) -> OneAGroup:
        """One finite-sample quantile a group and coverage.

        Raises
        ------
        InputError
            If labels are not one per row, or a group is too small and that is refused.
        """
        rule = _rule(self.groups, calibration)
        labels, places = np.unique(_labelled(rule, calibration.x), return_inverse=True)
        order = np.argsort(places, kind="stable")
        parts = np.split(order, np.cumsum(np.bincount(places))[:-1])
        thresholds = tuple(
            _calibrate_each_coverage(calibration, calibration.scores[rows]) for rows in parts
        )
        by_label = dict(zip(labels.tolist(), thresholds, strict=True))
        return OneAGroup(rule, labels, by_label, calibration.choice.too_few)


@final
@frozen(eq=False)
class OneAGroup(Thresholds):
    """Fitted `Mondrian`."""

    groups: Callable[[FloatArray], Labels]  # maps inputs to labels
    labels: Labels  # shape (g,): the labels that calibration rows have, sorted
    # for each label, one threshold a coverage, with what it guarantees
    thresholds: Mapping[Any, tuple[Threshold, ...]]
    too_few: TooFew  # {"infinite", "error"}: what holds for labels that no calibration row has

    def at(self, x: FloatArray) -> FloatArray:
        """The thresholds that hold at each row of x, shape (m, c)."""
        wanted = _labelled(self.groups, x)
        values = np.array([[t.value for t in row] for row in self.thresholds.values()])
        places = np.minimum(np.searchsorted(self.labels, wanted), len(self.labels) - 1)
        familiar = self.labels[places] == wanted
        if not familiar.all():
            first = wanted[int(np.argmin(familiar))]
            check_few(self.too_few, f"no calibration row is in the group {str(first)!r}")
        return np.where(familiar[:, None], values[places], np.inf)


@final
@frozen
class UniformBins:
    """Groups of equal numbers of training rows, by a column of x or by what is computed from it.

    Parameters
    ----------
    by : int or callable
        A column, or a function from inputs, shape (m, d), to one number per row; ``"forecast"`` is
        the model's own point forecast.
    bins : int
        Number of groups, at least 2; fewer where values tie.

    Notes
    -----
    The inner edges are quantiles of the training rows, so that the groups do not depend on the
    calibration rows, and coverage within each group is exact. Where a model comes trained, and no
    training rows are at hand, calibration rows give the edges, and within groups coverage is
    approximate.

    Examples
    --------
    >>> x = np.arange(10.0)[:, None]
    >>> UniformBins(0, 2).learn(x, lambda rows: rows[:, 0])(x)
    array([0, 0, 0, 0, 0, 1, 1, 1, 1, 1])
    """

    by: int | str | Callable[[FloatArray], FloatArray] = "forecast"
    bins: int = 5

    def __post_init__(self) -> None:
        check_whole(self.bins, "bins", 2)
        column = isinstance(self.by, int) and not isinstance(self.by, bool) and self.by >= 0
        if not column and self.by != "forecast" and not callable(self.by):
            raise InputError(
                f"by must be a column's number, 'forecast' or a function, got {self.by!r}"
            )

    def learn(self, x: FloatArray, forecast: Forecast) -> Binned:
        """Put the edges at quantiles of training rows.

        Raises
        ------
        InputError
            If there is no such column.
        """
        return Binned.learnt(forecast if self.by == "forecast" else self.by, x, self.bins)


@final
@frozen(eq=False)
class Binned:
    """Learnt `UniformBins`, or groups by ease: the number of the bin of each row."""

    by: Any  # what is binned
    edges: FloatArray  # shape (b − 1,): inner edges; a value on one belongs to the bin above

    @classmethod
    def learnt(cls, by: Any, x: FloatArray, bins: int) -> Self:
        """Edges at quantiles of these rows."""
        inner = np.arange(1, bins) / bins
        return cls(by, np.unique(np.quantile(_numbered(by, x), inner)))

    def values(self, x: FloatArray) -> FloatArray:
        """What is binned, shape (m,)."""
        return _numbered(self.by, x)

    def __call__(self, x: FloatArray) -> Labels:
        """Numbers of bins from 0, shape (m,)."""
        return np.searchsorted(self.edges, self.values(x), side="right")


def _calibrate_each_coverage(calibration: Calibration, scores: FloatArray) -> tuple[Threshold, ...]:
    """One threshold a coverage; `scores` are rows of the calibration."""
    choice = calibration.choice
    return tuple(
        choice.threshold(scores[:, column], coverage)
        for column, coverage in enumerate(calibration.coverages)
    )


def _rule(
    groups: Callable[[FloatArray], Labels] | LearntGroups, calibration: Calibration
) -> Callable[[FloatArray], Labels]:
    if not isinstance(groups, LearntGroups):
        return groups
    rows = calibration.training if len(calibration.training) else calibration.x
    return groups.learn(rows, calibration.forecast)


def _labelled(groups: Callable[[FloatArray], Labels], x: FloatArray) -> Labels:
    labels = np.asarray(groups(x))
    if labels.ndim != 1:
        raise InputError(f"groups needs one label per row; got shape {labels.shape}")
    check_length(labels, "groups", len(x))
    if labels.dtype.kind == "f" and np.isnan(labels).any():
        raise InputError(f"groups must have no missing labels, got {int(np.isnan(labels).sum())}")
    return labels


def _numbered(by: Any, x: FloatArray) -> FloatArray:
    if callable(by):
        values = np.asarray(by(x), dtype=np.float64)
        if values.shape != (len(x),) or np.isnan(values).any():
            raise InputError(f"by must return one number per row; got shape {values.shape}")
        return values
    if x.ndim != 2 or by >= x.shape[1]:
        raise InputError(f"x has no column {by}; its shape is {x.shape}")
    return np.asarray(x[:, by], dtype=np.float64)
