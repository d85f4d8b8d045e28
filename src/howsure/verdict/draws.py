"""Outcomes of a perfect model: y drawn from its own prediction."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace

import numpy as np
from scipy import special

from howsure.core.arrays import FloatArray, IntArray
from howsure.core.classes import frozen
from howsure.core.errors import UnanswerableError
from howsure.core.labels import Categories
from howsure.core.rng import KeyArray, row_keys, row_uniforms
from howsure.engine.autocorrelation import Dependence
from howsure.engine.view import View
from howsure.predictions import Distribution, EvalSet, Prediction
from howsure.predictions.laws import NormalLaw, ScipyLaw
from howsure.verdict.copies import predicted_numbers

# Sorting 200,000 rows takes 20 ms; the few thousand that stand for all lie as evenly among these.
_ROWS_TO_SORT = 200_000
# Terms of the covariance of two scores in powers of ρ; what a fifth adds is ρ⁵ of a part that four
# left over. At ρ = 1 all rows would be one.
_HERMITE_ORDERS, _MAX_CORRELATION = 4, 0.99
# A correlation that adds nothing: all lags beyond that one add less than 1 % to what a mean costs,
# whatever ρ.
_NEGLIGIBLE_CORRELATION = 0.01
# Quantiles to compute, by kind of law: 200,000 of a normal law take 3 ms, 40,000 of gamma, t or
# beta laws 15 to 60 ms; of a law that is searched each takes at least ten times as long.
_NORMAL_QUANTILES, _CLOSED_QUANTILES, _SEARCHED_QUANTILES = 200_000, 40_000, 4_000


def draw_outcomes(
    prediction: Prediction,
    y: FloatArray,
    keys: KeyArray,
    draws: int,
    *,
    seed: int,
    together: Callable[[int], FloatArray] | None = None,
) -> Iterator[tuple[FloatArray, Prediction]]:
    """Outcomes of a perfect model, draw by draw, attached to what rows hold."""
    for number in range(draws):
        if together is None:
            uniforms = row_uniforms(seed, f"outcome {number}", keys)
        else:
            uniforms = together(number)
        yield prediction.redrawn(y, uniforms)


@frozen(eq=False)
class Copula:
    """Gaussian dependence of the rows of a set: autoregressive in time, or alike in clusters.

    In time, one number says what a mean is worth: the correlation with the row before, or with that
    of a season before, which has the same τ.

    It joins the normal scores of the PIT; where the size of errors alone has a memory, those of
    |2u − 1|, and sides are independent.
    """

    rho: float  # from one row to the next in time, or of any two rows of a cluster
    folded: bool  # whether it joins sizes
    serial: bool  # whether rows follow each other in time
    place: IntArray  # shape (n,): rank of each row's time, or number of its cluster
    keys: KeyArray  # shape (n,): hashes of the rows
    mass: FloatArray  # shape (n,): weights of the rows
    lag: int = 1  # rows from one season to the next; 1 where there is none
    # shape (n,): number of each row's series, where each has a memory of its own
    series: IntArray | None = None

    def uniforms(self, seed: int, name: str) -> FloatArray:
        """Uniforms of the rows, each attached to what they hold.

        >>> rows = np.arange(4000)
        >>> copula = Copula(0.8, False, True, rows, row_keys(rows), np.ones(4000))
        >>> u = copula.uniforms(0, "example")
        >>> round(float(np.corrcoef(u[1:], u[:-1])[0, 1]), 1)
        0.8
        """
        drawn = row_uniforms(seed, name, self.keys)
        x = self.scores(drawn)
        if self.serial:
            from scipy import signal  # slow to load, and for dependent rows alone

            order = self._order()
            fresh = x[order] * math.sqrt(1.0 - self.rho**2)
            fresh[: self.lag] = x[order[: self.lag]]
            filtered = np.r_[1.0, np.zeros(self.lag - 1), -self.rho]
            x[order] = signal.lfilter([1.0], filtered, fresh)
        else:
            clusters = np.zeros(int(self.place.max()) + 1, dtype=np.uint64)
            np.add.at(clusters, self.place, self.keys)
            shared = special.ndtri(row_uniforms(seed, f"{name} shared", row_keys(clusters)))
            x = math.sqrt(self.rho) * shared[self.place] + math.sqrt(1.0 - self.rho) * x
        u = special.ndtr(x)
        if self.folded:
            u = 0.5 + np.where(drawn < 0.5, -0.5, 0.5) * u
        return np.asarray(np.clip(u, 2.0**-54, 1.0 - 2.0**-53))

    def _order(self) -> IntArray:
        """Rows that follow each other: in time, one series after the other."""
        series = np.zeros_like(self.place) if self.series is None else self.series
        return np.lexsort((self.keys, self.place, series))

    def scores(self, uniforms: FloatArray) -> FloatArray:
        """Normal scores of what it joins."""
        joined = np.abs(2.0 * uniforms - 1.0) if self.folded else uniforms
        return np.asarray(special.ndtri(np.clip(joined, 2.0**-54, 1.0 - 2.0**-53)))

    def companions(self, codes: IntArray, groups: int) -> FloatArray:
        """Σ over a row's companions in its group of their correlation to the power 1 to 4.

        Companions are the other rows of its cluster, or those before and after it in time (by
        seasons), whose shares of one group are counted at 1, 2, 4, … of them, and between these
        interpolated.
        """
        orders = np.arange(1, _HERMITE_ORDERS + 1)
        if not self.serial:
            clusters = int(self.place.max()) + 1
            pairs, pair = np.unique(codes * clusters + self.place, return_inverse=True)
            sums = np.bincount(pair, weights=self.mass)
            together = np.bincount(pairs // clusters, weights=np.square(sums), minlength=groups)
            alone = np.bincount(codes, weights=np.square(self.mass), minlength=groups)
            companions = (together - alone) / np.maximum(alone, 1e-300)
            return np.asarray((self.rho**orders)[:, None] * companions)
        here = codes[self._order()]
        size = np.maximum(np.bincount(here, minlength=groups), 1)
        most = max((len(here) - 1) // self.lag, 1)
        longest = min(
            math.ceil(
                math.log(_NEGLIGIBLE_CORRELATION) / math.log(max(self.rho, _NEGLIGIBLE_CORRELATION))
            ),
            most,
        )
        lags = np.unique(np.minimum(2 ** np.arange(longest.bit_length() + 1), longest))
        shares = [
            np.bincount(here[lag:][here[lag:] == here[:-lag]], minlength=groups) / size
            for lag in lags * self.lag
        ]
        every = np.arange(1, longest + 1)
        decay = self.rho ** (orders[:, None] * every)
        stay = np.stack([np.interp(every, lags, share) for share in np.transpose(shares)], axis=1)
        return np.asarray(2.0 * decay @ stay)

    def hermite(self, scores: FloatArray, uniforms: FloatArray) -> FloatArray:
        """Each row's coefficients on Hermite polynomials of its normal score; (orders, m)."""
        x = self.scores(uniforms)
        before, now = np.ones_like(x), x
        coefficients = []
        off = scores - scores.mean(axis=0)
        for order in range(1, _HERMITE_ORDERS + 1):
            coefficients.append((off * now).mean(axis=0) / math.sqrt(math.factorial(order)))
            before, now = now, x * now - order * before
        return np.stack(coefficients)


def copula_of(view: View, known: Dependence | str) -> Copula | None:
    """How draws of a perfect model depend; None where rows are taken as independent."""
    evalset = view.evalset
    if isinstance(known, str) or known.by == "file" or known.tau <= 1.0:
        return None
    serial = known.by == "time"
    if serial and not known.batches:
        return None
    if serial and evalset.time is not None:
        place = Categories.checked(evalset.time, "time").codes
    elif evalset.cluster is not None:
        place = evalset.cluster.codes
    else:
        return None
    times, lag = evalset.chronology, known.lag
    series = None if times is None or known.common > 0.5 else times.series
    if times is not None and series is None and lag > 1:  # in rows
        lag = max(round(lag * evalset.n / times.places()[1]), 1)
    numbers = (
        table for prediction in evalset.predictions for table in prediction.numbers().values()
    )
    keys, folded = row_keys(evalset.y, *numbers), known.signal == "size"
    rho = (known.tau - 1.0) / (known.tau + 1.0)
    copula = Copula(1.0, folded, serial, place, keys, evalset.mass, lag, series)
    if not serial:
        companions = copula.companions(np.zeros(evalset.n, dtype=np.int64), 1)[0, 0]
        rho = (known.tau - 1.0) / float(companions) if companions > 0 else 0.0
    return replace(copula, rho=min(rho, _MAX_CORRELATION))


def strata(keys: KeyArray, draws: int, *, seed: int) -> FloatArray:
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


@frozen(eq=False)
class Subsample:
    """Rows that stand for all of an evaluation set, with nothing that no draw needs."""

    # of m rows: frequency weights are written out, a part lies evenly in rising uncertainty
    view: View
    rows: IntArray  # shape (m,): which rows of the set they are
    keys: KeyArray  # shape (m,): hashes of them
    weights: FloatArray | None  # shape (m,): importance weights
    n: float  # rows stood for: a sum of frequencies, or Kish's number
    whole: bool  # whether these are all rows
    times: float = 1.0  # by what n exceeds the rows of the set, where this is a sample itself

    @property
    def size(self) -> float:
        """Rows that count here, as n counts them."""
        weights = self.view.evalset.weights
        return float(len(self.rows)) if weights is None else weights.effective_n


class Population:
    """Rows of a view from which some may be taken to stand for all, or for so many more."""

    def __init__(self, view: View, seed: int, n: float | None = None) -> None:
        self.view, self.seed, self.n = view, seed, n
        self._rising: IntArray | None = None

    def stand(self, most: int) -> Subsample:
        """At most so many rows that stand for all, the same whatever the order of rows."""
        evalset = self.view.evalset
        weights, every = evalset.weights, np.arange(evalset.n)
        frequent = weights is not None and weights.kind == "frequency"
        counts = evalset.mass if frequent else None
        total = float(evalset.n) if counts is None else float(counts.sum())
        if total > most:
            rows = self._evenly(counts, most)
        else:
            rows = every if counts is None else np.repeat(every, counts.astype(np.int64))
        lean = EvalSet(
            y=evalset.y,
            predictions=evalset.predictions,
            point=evalset.point,
            groups=evalset.groups,
            weights=None if frequent else weights,
            model=evalset.model,
        )
        lean = lean if rows is every else lean.take(rows)
        codes = [evalset.groups[name].codes[rows] for name in sorted(evalset.groups)]
        counted = total if weights is None or frequent else weights.effective_n
        n = counted if self.n is None else self.n
        return Subsample(
            self.view.on(lean),
            rows,
            row_keys(lean.y, *predicted_numbers(lean), *codes),
            None if lean.weights is None else lean.weights.values,
            n,
            total <= most and n == counted,
            n / counted,
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
        pool = np.arange(n) if n <= _ROWS_TO_SORT else np.flatnonzero(mixed < _ROWS_TO_SORT / n)
        return np.asarray(pool[np.lexsort((mixed[pool], unsure[pool]))])


def _unsure(view: View) -> FloatArray:
    """How unsure the model is of each row, by whatever says so."""
    for name in ("uncertainty", "set_sizes"):
        with suppress(UnanswerableError):
            return np.asarray(view.get(name), dtype=np.float64)
    return np.zeros(view.evalset.n)


def reach(evalset: EvalSet, kind: type[Prediction] | None) -> int:
    """How many drawn rows may be computed: fewer where a draw is dear."""
    prediction = next(
        (prediction for prediction in evalset.predictions if type(prediction) is kind), None
    )
    if prediction is None:
        return _NORMAL_QUANTILES
    width = sum(column.size for column in prediction.numbers().values()) / max(prediction.n, 1)
    if not isinstance(prediction, Distribution):
        return max(int(10 * _NORMAL_QUANTILES / max(width, 10.0)), 1)
    if isinstance(prediction.law, NormalLaw):
        return _NORMAL_QUANTILES
    return (
        _SEARCHED_QUANTILES
        if isinstance(prediction.law, ScipyLaw) and prediction.law.searched
        else _CLOSED_QUANTILES
    )
