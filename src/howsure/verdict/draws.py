"""Outcomes of a perfect model: y drawn from its own prediction."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from howsure.core.arrays import FloatArray, IntArray
from howsure.core.errors import UnanswerableError
from howsure.core.rng import row_keys, row_uniforms
from howsure.metrics.view import View
from howsure.predictions import Distribution, EvalSet, Prediction
from howsure.predictions.laws import NormalLaw, ScipyLaw

_THIN = 200_000
_QUICK, _PLAIN, _SLOW = 200_000, 40_000, 4_000  # quantiles to compute of a kind of law


def draw_outcomes(
    prediction: Prediction,
    y: FloatArray,
    keys: npt.NDArray[np.uint64],
    draws: int,
    *,
    seed: int,
    name: str = "outcome",
) -> Iterator[tuple[FloatArray, Prediction]]:
    """Outcomes of a perfect model, draw by draw, attached to what rows hold.

    Parameters
    ----------
    prediction : Prediction
        Of n rows.
    y : ndarray of float, shape (n,)
        What happened; samples exchange it for one of their own.
    keys : ndarray of uint64, shape (n,)
        Hashes of the rows (`howsure.core.rng.row_keys`).
    draws : int
        How many.
    seed : int
        Fixes them.
    name : str
        Tells apart consumers that must not share draws.

    Yields
    ------
    tuple of ndarray of float, shape (n,), and Prediction
        A y, infinite where it lies outside by an unknown amount, and the prediction it has then.

    Raises
    ------
    UnanswerableError
        If the prediction says only how often y lies inside.

    Examples
    --------
    >>> held = Distribution.normal(np.zeros(3), np.ones(3))
    >>> [y.shape for y, _ in draw_outcomes(held, np.zeros(3), row_keys(np.arange(3.0)), 2, seed=0)]
    [(3,), (3,)]
    """
    for number in range(draws):
        yield prediction.redrawn(y, row_uniforms(seed, f"{name} {number}", keys))


def strata(keys: npt.NDArray[np.uint64], draws: int, *, seed: int) -> FloatArray:
    """Uniforms of shape (draws, n): each half of the draws takes every stratum once a row.

    >>> u = strata(row_keys(np.arange(3.0)), 8, seed=0)
    >>> np.sort(np.floor(4 * u[:4]), axis=0)[:, 0]
    array([0., 1., 2., 3.])
    """
    half = draws // 2
    steps = (np.arange(half) / half)[:, None]
    halves = [
        np.mod(row_uniforms(seed, f"strata {side}", keys) + steps, 1.0) for side in ("one", "two")
    ]
    return np.asarray(np.clip(np.concatenate(halves), 2.0**-54, 1.0 - 2.0**-53))


@dataclass(frozen=True, slots=True, eq=False)
class Stand:
    """Rows that stand for all of an evaluation set, with nothing that no draw needs.

    Attributes
    ----------
    view : View
        Of m rows: frequency weights are written out, a part lies evenly in rising uncertainty.
    rows : ndarray of int, shape (m,)
        Which rows of the set they are.
    keys : ndarray of uint64, shape (m,)
        Hashes of them.
    weights : ndarray of float, shape (m,), optional
        Importance weights.
    n : float
        Rows stood for: a sum of frequencies, or Kish's number.
    whole : bool
        Whether these are all rows.
    """

    view: View
    rows: IntArray
    keys: npt.NDArray[np.uint64]
    weights: FloatArray | None
    n: float
    whole: bool

    @property
    def size(self) -> float:
        """Rows that count here, as n counts them."""
        held = self.view.evalset.weights
        return float(len(self.rows)) if held is None else held.effective_n


class Pool:
    """Rows of a view from which some may be taken to stand for all."""

    def __init__(self, view: View, seed: int) -> None:
        self.view, self.seed = view, seed
        self._rising: IntArray | None = None

    def stand(self, most: int) -> Stand:
        """At most so many rows that stand for all, the same whatever the order of rows."""
        view, held = self.view, self.view.evalset
        weights = held.weights
        frequent = weights is not None and weights.kind == "frequency"
        counts = weights.values if frequent and weights is not None else None
        total = float(held.n) if counts is None else float(counts.sum())
        if total > most:
            rows = self._evenly(counts, most)
        elif counts is None:
            rows = np.arange(held.n)
        else:
            rows = np.repeat(np.arange(held.n), counts.astype(np.int64))
        lean = EvalSet(
            y=held.y,
            beliefs=held.beliefs,
            point=held.point,
            weights=None if frequent else weights,
            model=held.model,
        )
        if total > most or counts is not None:
            lean = lean.take(rows)
        columns: list[npt.NDArray[Any]] = [lean.y]
        columns += [] if lean.point is None else [lean.point]
        columns += [each for belief in lean.beliefs for each in belief.numbers().values()]
        columns += [held.groups[name].codes[rows] for name in sorted(held.groups)]
        return Stand(
            View(lean, seed=view.seed, confidence=view.confidence, slow=view.slow),
            rows,
            row_keys(*columns),
            None if lean.weights is None else lean.weights.values,
            total if weights is None or frequent else weights.effective_n,
            total <= most,
        )

    def _evenly(self, counts: FloatArray | None, size: int) -> IntArray:
        """So many rows by their counts, evenly spread in rising uncertainty."""
        if self._rising is None:
            self._rising = self._in_order()
        rising = self._rising
        upto = np.cumsum(np.ones(len(rising)) if counts is None else counts[rising])
        places = (np.arange(size) + 0.5) * (upto[-1] / size)
        return np.asarray(rising[np.minimum(np.searchsorted(upto, places), len(rising) - 1)])

    def _in_order(self) -> IntArray:
        """Rows in rising uncertainty, of very many a random part; ties by their content."""
        n, unsure = self.view.evalset.n, _unsure(self.view)
        mixed = row_uniforms(self.seed, "stands for all", row_keys(self.view.evalset.y, unsure))
        pool = np.arange(n) if n <= _THIN else np.flatnonzero(mixed < _THIN / n)
        return np.asarray(pool[np.lexsort((mixed[pool], unsure[pool]))])


def _unsure(view: View) -> FloatArray:
    """How unsure the model is of each row, by whatever says so."""
    try:
        return np.asarray(view.get("uncertainty"), dtype=np.float64)
    except UnanswerableError:
        pass
    try:
        return np.asarray(view.get("set_sizes"), dtype=np.float64)
    except UnanswerableError:
        return np.zeros(view.evalset.n)


def reach(held: EvalSet, kind: type[Prediction] | None) -> int:
    """How many drawn rows may be computed: fewer where a draw is dear."""
    belief = next((each for each in held.beliefs if type(each) is kind), None)
    if belief is None:
        return _QUICK
    width = sum(column.size for column in belief.numbers().values()) / max(belief.n, 1)
    if not isinstance(belief, Distribution):
        return max(int(10 * _QUICK / max(width, 10.0)), 1)
    if isinstance(belief.law, NormalLaw):
        return _QUICK
    return _SLOW if isinstance(belief.law, ScipyLaw) and _by_search(belief.law.family) else _PLAIN


def _by_search(family: Any) -> bool:
    """Whether SciPy finds this family's quantiles by a search for each number."""
    from scipy import stats

    kind = type(family)
    return kind._ppf in (stats.rv_continuous._ppf, stats.rv_discrete._ppf)
