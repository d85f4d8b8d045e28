"""Nearest reference rows: whether a row lies where they do, and weights on those around it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from howsure.core.arrays import FloatArray, IntArray
from howsure.core.classes import frozen
from howsure.core.rng import row_hashes, row_keys, row_uniforms
from howsure.stats.kernels import tiles

# Chosen by hand; not tuned. Higher, a distance varies less and small gaps within the reference are
# overlooked; at 1 a single odd reference row would make its surroundings known.
NEAREST = 10
"""Rank of the neighbour whose distance tells how far out a row lies."""
_MIN_POSITIVE = float(np.finfo(np.float64).tiny)


@frozen
class Neighbours:
    """Reference rows and the nearest of each; made by `fit_neighbours`."""

    rows: FloatArray  # shape (n, d): in the order of `order`, a random one that settles ties
    order: IntArray  # shape (n,): places of the rows as they were given
    near: IntArray  # shape (n, k): the k nearest other rows, the nearest first
    # shape (n,): distances of the k-th and the one before it
    radius: FloatArray
    inner: FloatArray
    priority: FloatArray  # shape (n,): rises; of equally distant rows the lower is the nearer
    labels: IntArray  # shape (n, f): codes of labels

    def outside(
        self, grid: FloatArray, labels: IntArray | None = None
    ) -> tuple[FloatArray, FloatArray]:
        """how surprisingly far each new row is from the reference.

        Parameters
        ----------
        grid : ndarray of float, shape (g, d)
            New rows, judged one by one.
        labels : ndarray of int, shape (g, f), optional
            Codes of their labels; −1 for one that no reference row has.

        Returns
        -------
        p : ndarray of float, shape (g,)
            Conformal p-values, (1 + #{reference rows as far out})/(n + 1).
        distance : ndarray of float, shape (g,)
            To the k-th nearest reference row.

        Notes
        -----
        A row's score is its distance to its k-th nearest row over the sum of the mean of the same
        of its k nearest rows and the median of it over all rows: sparse edges of the reference are
        no farther out than dense ones, and a lone pair of repeats does not make a scale of zero.
        Rows with more labels of their own score higher whatever their distance. Every score is
        computed among all n + 1 rows, the new one among them, so that under exchangeability p is
        at most α with probability at most α, exactly, also with ties and repeats.

        Examples
        --------
        >>> found = fit_neighbours(np.linspace(0.0, 1.0, 99)[:, None])
        >>> p, distance = found.outside(np.array([[0.5], [3.0]]))
        >>> p.round(2).tolist(), distance.round(2).tolist()
        ([0.9, 0.01], [0.05, 2.09])
        """
        codes = np.zeros((len(grid), 0), np.int64) if labels is None else labels
        priority = row_uniforms(0, "new neighbour", row_hashes(grid))
        p, distance = np.empty(len(grid)), np.empty(len(grid))
        for row, away in _distances(grid, self.rows):
            p[row], distance[row] = self._judge(away, priority[row], codes[row])
        return p, distance

    def _judge(
        self, distances: FloatArray, priority: float, codes: IntArray
    ) -> tuple[float, float]:
        """p-value and distance of a new row that lies so far from the reference's."""
        count = self.near.shape[1]
        closest, distance = _closest(distances, count)
        last = self.near[:, -1]
        joins = (distances < self.radius) | (
            (distances == self.radius) & (priority < self.priority[last])
        )
        radius = np.where(joins, np.maximum(self.inner, distances), self.radius)
        around = radius[self.near].sum(axis=1) + np.where(joins, distance - radius[last], 0.0)
        middle = float(np.median(np.append(radius, distance)))
        with np.errstate(over="ignore"):
            scores = radius / (np.maximum(around, 0.0) / count + middle + _MIN_POSITIVE)
            score = distance / (float(radius[closest].mean()) + middle + _MIN_POSITIVE)
        as_far = scores >= score * (1.0 - 1e-12)
        if self.labels.shape[1]:
            unlike = ((_counts(self.labels) == 1) & (self.labels != codes)).sum(axis=1)
            news = int((codes < 0).sum())
            as_far = (unlike > news) | ((unlike == news) & as_far)
        return (1.0 + float(as_far.sum())) / (len(distances) + 1.0), distance

    def weights(self, grid: FloatArray, count: int) -> Any:
        """Weights on the reference rows around each new row, a sparse matrix of shape (g, n).

        Epanechnikov's, 1 − (d/h)² with h the distance of the first row that is left out; columns
        stand in the order in which the reference rows were given.
        """
        from scipy.sparse import csr_array

        count = min(count, len(self.rows) - 1)
        places = np.empty((len(grid), count), dtype=np.int64)
        values = np.empty((len(grid), count))
        for row, away in _distances(grid, self.rows):
            closest, reach = _closest(away, count + 1)
            closest = closest[np.argsort(away[closest], kind="stable")][:count]
            value = 1.0 - np.square(away[closest] / reach) if reach > 0 else np.ones(count)
            places[row] = self.order[closest]
            values[row] = value / value.sum() if value.sum() > 0 else 1.0 / count
        starts = np.arange(0, places.size + 1, count)
        return csr_array(
            (values.ravel(), places.ravel(), starts), shape=(len(grid), len(self.rows))
        )


def fit_neighbours(rows: FloatArray, labels: IntArray | None = None) -> Neighbours:
    """Find each reference row's nearest others."""
    codes = np.zeros((len(rows), 0), np.int64) if labels is None else labels
    priority = row_uniforms(0, "neighbour", row_keys(rows, codes) if codes.size else row_keys(rows))
    order = np.argsort(priority, kind="stable")
    ordered = rows[order]
    count = min(NEAREST, len(rows) - 1)
    near = np.empty((len(rows), count), dtype=np.int64)
    distances = np.empty((len(rows), count))
    for row, away in _distances(ordered, ordered):
        away[row] = math.inf
        closest, _ = _closest(away, count)
        near[row] = closest[np.argsort(away[closest], kind="stable")]
        distances[row] = away[near[row]]
    inner = distances[:, -2] if count > 1 else np.zeros(len(rows))
    return Neighbours(ordered, order, near, distances[:, -1], inner, priority[order], codes[order])


def more_outside(p: FloatArray, n: int, level: float) -> float:
    """p-value of so many conformal p-values up to a level, of n reference rows shared by all.

    The number among m exchangeable new rows beyond the reference's t-th farthest, t = ⌊α(n + 1)⌋,
    is beta-binomial (m; t, n + 1 − t): its spread holds that of the one reference.
    """
    from scipy.stats import betabinom

    rank = rank_of(n, level)
    count = int((p <= share_outside(n, level)).sum())
    return float(betabinom.sf(count - 1, len(p), rank, n + 1 - rank))


def rank_of(n: int, level: float) -> int:
    """How many of n + 1 exchangeable rows may lie outside: ⌊α(n + 1)⌋, and one at least."""
    return max(1, math.floor(level * (n + 1) * (1.0 + 1e-12)))


def share_outside(n: int, level: float) -> float:
    """Share of rows of the reference's own law that lie outside: those whose p is at most this."""
    return rank_of(n, level) / (n + 1.0)


def _counts(labels: IntArray) -> IntArray:
    """How many rows share each label, shape (n, f)."""
    counts = [np.bincount(column)[column] for column in labels.T]
    return np.stack(counts, axis=1)


def _closest(distances: FloatArray, count: int) -> tuple[IntArray, float]:
    """The `count` lowest distances, of equal ones the first, and the largest of them."""
    reach = float(np.partition(distances, count - 1)[count - 1])
    below = np.flatnonzero(distances < reach)
    level = np.flatnonzero(distances == reach)
    return np.concatenate([below, level[: count - len(below)]]), reach


def _distances(grid: FloatArray, rows: FloatArray) -> Iterator[tuple[int, FloatArray]]:
    """Of each row of a grid, by differences, so that repeats are at 0 and equal ones are equal."""
    from scipy.spatial.distance import cdist

    for tile in tiles(len(grid)):
        yield from enumerate(cdist(grid[tile], rows), tile.start)
