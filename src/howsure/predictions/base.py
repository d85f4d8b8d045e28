"""What every prediction can be asked.

A prediction answers in rows. What its content does not permit raises `UnanswerableError`, whose
message is the reason shown to the reader.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import ClassVar, Self

import numpy as np
import numpy.typing as npt

from howsure.core.arrays import (
    AnyArray,
    BoolArray,
    FloatArray,
    IntArray,
    as_vector,
    check_fraction,
    in_percent,
)
from howsure.core.classes import brief, within_lines
from howsure.core.errors import InputError, UnanswerableError

Rows = AnyArray


class Prediction(ABC):
    """A model's prediction of each y. Subclasses are final.

    Every question has an answer in the subclass, or raises `UnanswerableError`.
    """

    __slots__ = ()
    kind: ClassVar[str]
    point_is: ClassVar[str] = ""
    """Which point of the prediction `point` is: its mean, median or midpoint."""

    @classmethod
    def answers(cls, question: str) -> bool:
        """Whether a question, the name of a method, has an answer of this kind's own."""
        if question == "cdf_left":  # which is the cdf where a kind says no other
            question = "cdf"
        return getattr(cls, question) is not getattr(Prediction, question)

    def __repr__(self) -> str:
        return within_lines(type(self).__name__, [f"n={self.n:,}", *self._shown_fields()])

    def _shown_fields(self) -> list[str]:
        """What to show of it besides its rows."""
        return [f"{name}: {brief(value)}" for name, value in self.numbers().items()]

    @property
    @abstractmethod
    def n(self) -> int:
        """Number of rows."""

    @abstractmethod
    def take(self, rows: Rows) -> Self:
        """The same prediction for the rows chosen by an index or a mask."""

    def numbers(self) -> Mapping[str, FloatArray]:
        """The numbers that the prediction holds, by name, shape (n,) or (n, k)."""
        return {}

    def described(self) -> str:
        """What it is, in words."""
        return self.kind

    @property
    def draws(self) -> int:
        """How many draws a row its answers are estimated from; 0 where they are stated."""
        return 0

    @property
    def own_coverages(self) -> tuple[float, ...]:
        """The coverages that it is bound to, NaN for an unknown one; none if any may be asked."""
        return ()

    @property
    def own_levels(self) -> tuple[float, ...]:
        """The levels of the quantiles that it is bound to; none if any may be asked."""
        return ()

    def check_outcomes(self, y: FloatArray) -> None:
        """Raise `InputError` where a y, shape (n,), is none that the prediction can be of."""
        return None

    def interval(self, coverage: float) -> tuple[FloatArray, FloatArray]:
        """Central interval at a nominal coverage: lower and upper, shape (n,)."""
        raise UnanswerableError(f"{self.kind} have no interval at coverage {coverage:g}")

    def intervals(self, coverages: Sequence[float]) -> tuple[FloatArray, FloatArray]:
        """Central intervals at several coverages: lower and upper ends, shape (n, c) each."""
        lower, upper = zip(*map(self.interval, coverages), strict=True)
        return np.stack(lower, axis=1), np.stack(upper, axis=1)

    @property
    def widest(self) -> float:
        """The highest coverage of a central interval; 1 where every coverage has one."""
        return 1.0

    def claimed_misses(self, y: FloatArray, coverage: float) -> tuple[FloatArray, FloatArray]:
        """Probabilities that y lies below and above `interval`, as the prediction claims them.

        Parameters
        ----------
        y : ndarray of float, shape (n,)
            What happened. Where a claim depends on it, the mean over rows of what happened less
            the claim is still 0 (or within the range) under a correctly specified model.
        coverage : float
            Nominal coverage.

        Returns
        -------
        below, above : ndarray of float, shape (n, 2)
            The least and the greatest that is claimed; equal where the claim is one number.

        Examples
        --------
        >>> from howsure.predictions import Distribution
        >>> Distribution.normal([0.0], [1.0]).claimed_misses(np.array([0.0]), 0.5)
        (array([[0.25, 0.25]]), array([[0.25, 0.25]]))
        """
        half = np.broadcast_to((1.0 - check_fraction(coverage, "coverage")) / 2.0, (self.n, 2))
        return half, half

    def claimed(self, y: FloatArray, coverage: float) -> FloatArray:
        """Probability that `interval` holds y, the least that is claimed, shape (n,)."""
        below, above = self.claimed_misses(y, coverage)
        return 1.0 - (below[:, 1] + above[:, 1])

    def quantile(self, levels: npt.ArrayLike) -> FloatArray:
        """Quantiles at the levels, shape (n, k)."""
        raise UnanswerableError(f"{self.kind} have no quantiles")

    def cdf(self, y: FloatArray) -> FloatArray:
        """P(Y ≤ y), shape (n,)."""
        raise UnanswerableError(f"{self.kind} have no cumulative probabilities")

    def cdf_left(self, y: FloatArray) -> FloatArray:
        """P(Y < y), shape (n,); equals `cdf` for continuous predictions."""
        return self.cdf(y)

    def log_density(self, y: FloatArray) -> FloatArray:
        """Log density or log probability at y, shape (n,)."""
        raise UnanswerableError(f"{self.kind} have no density")

    def point(self) -> FloatArray:
        """The point forecast that the prediction implies, shape (n,)."""
        raise UnanswerableError(f"{self.kind} have no point forecast")

    def sd(self) -> FloatArray:
        """Predicted standard deviation, shape (n,)."""
        raise UnanswerableError(f"{self.kind} have no standard deviation")

    def sample(self, rng: np.random.Generator, size: int) -> FloatArray:
        """Draws from the prediction, shape (n, size)."""
        raise UnanswerableError(f"{self.kind} cannot be sampled")

    def redrawn(self, y: FloatArray, uniforms: FloatArray) -> tuple[FloatArray, Self]:
        """A y drawn from the prediction, shape (n,), with the prediction that it then has.

        ``uniforms``, shape (n,), decide. A y outside by an unknown amount is infinite.
        """
        raise UnanswerableError(f"{self.kind} give only the coverage of y, not its distribution")

    def inside(self, coverage: float, uniforms: FloatArray) -> BoolArray:
        """Whether a drawn y lies inside, shape (n,), of a kind that says only how often."""
        raise UnanswerableError(f"{self.kind} give more than the coverage of y")


def wanted_levels(levels: npt.ArrayLike) -> FloatArray:
    """Levels that a caller asks for, in any order, each strictly between 0 and 1.

    Examples
    --------
    >>> wanted_levels(0.5)
    array([0.5])
    """
    wanted = as_vector(levels, "levels", scalar=True)
    if ((wanted <= 0) | (wanted >= 1)).any():
        raise InputError(
            f"levels must be strictly between 0 and 1, got {wanted.tolist()}{in_percent(wanted)}"
        )
    return wanted


def stated_levels(levels: npt.ArrayLike) -> FloatArray:
    """Levels of quantiles that are given; those at 0 and 1 are bounds of y.

    Examples
    --------
    >>> stated_levels([0, 0.5])
    array([0. , 0.5])
    """
    stated = as_vector(levels, "levels", scalar=True)
    inner = stated[(stated != 0) & (stated != 1)]
    if len(inner):
        wanted_levels(inner)
    elif len(stated):
        raise InputError(
            "levels must include one strictly between 0 and 1, because levels 0 and 1 are only "
            f"bounds; got {stated.tolist()}"
        )
    return stated


def interpolated(
    table: FloatArray, left: IntArray, right: IntArray, share: FloatArray
) -> FloatArray:
    """Between columns of sorted rows; rises with the level, which rounding alone might break."""
    between: FloatArray = table[:, left] * (1 - share) + table[:, right] * share
    order = np.argsort(left + share, kind="stable")
    between[:, order] = np.maximum.accumulate(between[:, order], axis=1)
    return between


def tail_levels(coverage: float) -> tuple[float, float]:
    """The two levels that bound a central interval.

    Examples
    --------
    >>> tail_levels(0.9)
    (0.05, 0.95)
    """
    tail = (1.0 - check_fraction(coverage, "coverage")) / 2.0
    return round(tail, 12), round(1.0 - tail, 12)


def levels_in_words(levels: Sequence[float] | FloatArray) -> str:
    """Levels in words, the first and the last of many.

    Examples
    --------
    >>> levels_in_words([0.5]), levels_in_words([k / 10 for k in range(1, 10)])
    ('level 0.5', '9 levels from 0.1 to 0.9')
    """
    words = [f"{level:g}" for level in levels]
    if len(words) > 5:
        return f"{len(words)} levels from {words[0]} to {words[-1]}"
    return f"{'levels' if len(words) > 1 else 'level'} {', '.join(words)}"


def listed_numbers(values: Sequence[float]) -> str:
    """Numbers for a `repr`, those in the middle left out where there are many.

    Examples
    --------
    >>> listed_numbers([0.05, 0.5, 0.95]), listed_numbers([k / 100 for k in range(1, 100)])
    ('0.05, 0.5, 0.95', '0.01, 0.02, …, 0.99 (99)')
    """
    texts = [f"{value:g}" for value in values]
    if len(texts) < 10:
        return ", ".join(texts)
    return f"{texts[0]}, {texts[1]}, …, {texts[-1]} ({len(texts):,})"
