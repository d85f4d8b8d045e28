"""Labels that are missing for a reason: told by what is known of rows without y.

Selected by x: labels may be missing by inputs and predictions, but not by y beside them. Rows are
divided into strata by a small tree, frozen from the reference, in which the mean of what is
watched differs. A day's labelled rows stand for all of its stratum; where there are none, the mean
of the reference stands for them. The sum of a day, over its N rows of which n have y, is

    Σ_s w_s Σ_labelled d + (N_s − w_s n_s) h_s,

w_s being one over the share of labels and h_s the mean of the reference. Its mean is that of all
rows if either is right (Robins, Rotnitzky and Zhao 1994).

What it proves: let z = θ d − ψ(θ), so that E exp(z) ≤ 1 for one row of all. A row is labelled (R)
with a probability π(x), and has the weight w = 1/π ≤ φ. As exp is convex and t = w R/φ lies in
[0, 1], exp(t z) ≤ 1 + t (exp(z) − 1); and E(t | x, y) = 1/φ, so E exp(t z) ≤ 1. Weighted bets are
thus bets if sums and counts are divided by the greatest weight. This is dear. To second order in θ
the variance of a day's sum over that of N rows does as well, is at most as large, and is what
`weighted` divides by; `benchmarks/watch_selected.py` measures both. Where rows depend, their worth
multiplies it, which is on the safe side: what the rows of a day share is not made larger by
weights that add up to N.

Selected by y: nothing but bounds can be said, by what the missing y may be.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Self, final

import numpy as np

from howsure.core.arrays import FloatArray, IntArray
from howsure.core.classes import frozen
from howsure.core.errors import InputError
from howsure.core.formats import percent
from howsure.predictions import EvalSet
from howsure.recalibration.inputs import DEPTH, Encoding, Input, Tree, one_leaf, tree_of
from howsure.topics.conditional.forests import tree_inputs
from howsure.watch.quantities import Watched, point_and_width

# With fewer, the mean of a stratum that stands for rows without y would be noise. By hand; not
# tuned.
MIN_SHARE, MIN_ROWS = 0.05, 30
"""Rows of the reference in a stratum, at least: as a share, and as a number."""
# Four whole weeks, so that no day of the week weighs more.
WINDOW = 28
"""Days, up to a row's own, that tell the share of labels."""
# A day's sum would else follow the y of single rows. By hand; not tuned.
MAX_WEIGHT = 20.0
"""The greatest weight: rarer labels speak for as many rows, and the reference for the others."""
# Rows by which the share of labels leans to that of more rows, of the stratum and of all: of five
# rows, half. By hand; not tuned.
_ROWS_BESIDE = 5.0
# A week and a day; three deviations are seen in 1 of 1,000 spans by chance, and a weight that is
# then too small does no harm.
_DAYS_OF_RISE, _SDS_OF_RISE = (7, 1), 3.0
# Rows by which the variance in a stratum leans to that in all strata: as many as the smallest has,
# so half there.
_ROWS_OF_VARIANCE = 30.0
# Standard errors of the reference's mean, where it stands for rows, that break no promise: one-
# sided 5 %.
_Z_OF_SLACK = 1.645


@final
@frozen(kw_only=True, eq=False)
class Strata:
    """A division of rows by inputs, and what the reference says of each part."""

    features: tuple[Input, ...]  # inputs beside the predictions
    tree: Tree  # over the columns of `inputs`; a leaf says its stratum
    rows: FloatArray  # shape (strata,): of the reference
    means: FloatArray  # shape (quantities, strata)
    variances: FloatArray  # shape (quantities, strata): within each

    def __post_init__(self) -> None:
        shape = (len(self.means), len(self.rows))
        leaves = self.tree.value[self.tree.leaves].tolist()
        if {self.means.shape, self.variances.shape} != {shape} or leaves != [*range(shape[1])]:
            raise InputError("strata must have rows, means and variances for each leaf of the tree")

    @classmethod
    def learnt(cls, reference: EvalSet, coverage: float, numbers: Watched) -> Self:
        """Strata of a reference, by what is watched of it."""
        features = Encoding.learnt(reference).inputs if reference.features else ()
        names, x = inputs(reference, coverage, features)
        variances = np.array([bound.variance for bound in numbers.bounds])
        return cls.grown(x, names, numbers.values, variances, reference.multiplicities, features)

    @classmethod
    def grown(
        cls,
        x: FloatArray,
        names: Sequence[str],
        values: FloatArray,
        variances: FloatArray,
        mass: FloatArray | None = None,
        features: tuple[Input, ...] = (),
    ) -> Self:
        """Leaves of a tree over the columns of x, shape (n, k), by values (quantities, n)."""
        mass = np.ones(len(x)) if mass is None else mass
        tree = _grown(x, names, values / np.sqrt(variances)[:, None], mass)
        strata = tree.at(x).astype(np.int64)
        size = int(tree.value.max()) + 1
        rows: FloatArray = np.bincount(strata, mass, size).astype(np.float64)
        first, second = (
            np.array([np.bincount(strata, mass * row, size) for row in table])
            for table in (values, values**2)
        )
        filled_rows = np.maximum(
            rows, 1.0
        )  # a stratum that rounding left empty has the mean of all
        means = np.where(
            rows > 0, first / filled_rows, first.sum(axis=1, keepdims=True) / rows.sum()
        )
        within = np.where(rows > 0, second / filled_rows - means**2, 0.0)
        common = (within @ rows / rows.sum())[:, None]
        leaning = (within * rows + _ROWS_OF_VARIANCE * common) / (rows + _ROWS_OF_VARIANCE)
        return cls(features=features, tree=tree, rows=rows, means=means, variances=leaning)

    @property
    def words(self) -> tuple[str, ...]:
        """What leads to each stratum."""
        return tuple(self.tree.rules[leaf] for leaf in self.tree.leaves)

    def of(self, evalset: EvalSet, coverage: float) -> IntArray:
        """The stratum of each row."""
        return self.at(inputs(evalset, coverage, self.features)[1])

    def at(self, x: FloatArray) -> IntArray:
        """The stratum of each row of inputs."""
        return self.tree.at(x).astype(np.int64)


def inputs(
    evalset: EvalSet, coverage: float, features: tuple[Input, ...] = ()
) -> tuple[tuple[str, ...], FloatArray]:
    """Point and log width of predictions, as far as there are any, and features; shape (n, k)."""
    columns = point_and_width(evalset, coverage)
    encoding = Encoding(features)
    x = np.column_stack([*columns.values(), encoding.table(evalset)])
    # half-open intervals have a width all the same: a threshold must be between two numbers
    return (*columns, *encoding.names), np.clip(x, -_MAX_NUMBER, _MAX_NUMBER)


# Thresholds of a tree are midpoints: of larger numbers the sum is infinite.
_MAX_NUMBER = 1e300


def _grown(x: FloatArray, names: Sequence[str], values: FloatArray, mass: FloatArray) -> Tree:
    from sklearn.tree import DecisionTreeRegressor

    total = float(mass.sum())
    least = max(MIN_ROWS, MIN_SHARE * total)
    if 2.0 * least > total or not x.shape[1]:
        return one_leaf()
    columns, levels = tree_inputs(x)
    fitted = DecisionTreeRegressor(
        max_depth=DEPTH, min_weight_fraction_leaf=(least - 0.5) / total, random_state=0
    ).fit(columns, values.T, sample_weight=mass)
    leaf = fitted.tree_.children_left < 0
    return tree_of(fitted.tree_, names, levels, np.where(leaf, np.cumsum(leaf) - 1.0, -1.0))


@frozen(kw_only=True)
class WeightedDays:
    """Days of groups as if all their rows had y, in rows that tell as much as one."""

    # shape (quantities, groups, days): what `evidence` takes, whatever else makes rows depend
    sums: FloatArray
    counts: FloatArray
    worth: FloatArray  # shape (quantities, groups, days): rows of all that tell as much as one
    # shape (quantities, groups, days): how far the mean may be off as the reference may be
    slack: FloatArray
    unseen: FloatArray  # shape (groups, days): share of rows for which the reference stands


def weighted(
    sums: FloatArray, labelled: FloatArray, rows: FloatArray, days: IntArray, strata: Strata
) -> WeightedDays:
    """Sums of labelled rows, weighted so that they stand for all rows of their days.

    Without missing labels it is the sums themselves. Weights follow from the rows of `WINDOW`
    days up to each: what was made of a day stays when later ones come.

    Parameters
    ----------
    sums : ndarray of float, shape (quantities, groups, strata, days)
        Of rows with y.
    labelled, rows : ndarray of float, shape (groups, strata, days)
        How many rows have y, and how many there are; the first group is all rows.
    days : ndarray of int, shape (days,)
        Their numbers, in order.
    strata : Strata
        Of the reference.

    Returns
    -------
    WeightedDays
    """
    first = np.searchsorted(days, days - WINDOW + 1)
    recent, all_rows = (_recent(counts_of_days, first) for counts_of_days in (labelled, rows))
    usual = _weights(recent, all_rows)
    weights = _followed(usual, labelled, rows, days)
    means, within = (table[:, None, :, None] for table in (strata.means, strata.variances))
    total = (weights * sums + (rows - weights * labelled) * means).sum(axis=2)
    size = all_rows.sum(axis=1)
    # of the sum over that of as many rows: 1 without weights, and at most the greatest weight
    added = (all_rows * np.maximum(weights - 1.0, 0.0) * within).sum(axis=2)
    worth = 1.0 + added / np.maximum((all_rows * (within + means**2)).sum(axis=2), _MIN_DIVISOR)
    filled = np.maximum(all_rows - usual * recent, 0.0) / np.maximum(size, 1.0)[:, None]
    error = np.sqrt((filled**2 * within / np.maximum(strata.rows, 1.0)[:, None]).sum(axis=2))
    # where no row of a window has y, nothing is said
    counts = np.where(recent.sum(axis=1) > 0, rows.sum(axis=1), 0.0)
    return WeightedDays(
        sums=np.where(counts > 0, total, 0.0) / worth,
        counts=counts / worth,
        worth=worth,
        slack=_Z_OF_SLACK * error,
        unseen=filled.sum(axis=1),
    )


# Keeps a division by 0 rows from being one by 0.
_MIN_DIVISOR = 1e-300


def _recent(counts: FloatArray, first: IntArray) -> FloatArray:
    """Counts from a first day up to each."""
    total = np.concatenate([np.zeros((*counts.shape[:-1], 1)), np.cumsum(counts, axis=-1)], axis=-1)
    return np.asarray(total[..., 1:] - total[..., first])


def _weights(labelled_counts: FloatArray, rows: FloatArray) -> FloatArray:
    """Rows for which each labelled one stands; few rows lean to their stratum, and it to all."""
    labelled_rows, all_rows = (
        labelled_counts[:1].sum(axis=1, keepdims=True),
        rows[:1].sum(axis=1, keepdims=True),
    )
    share = labelled_rows / np.maximum(all_rows, 1.0)
    for labelled, size in ((labelled_counts[:1], rows[:1]), (labelled_counts, rows)):
        share = (labelled + _ROWS_BESIDE * share) / (size + _ROWS_BESIDE)
    return np.where(
        labelled_counts > 0, np.clip(1.0 / np.maximum(share, _MIN_DIVISOR), 1.0, MAX_WEIGHT), 0.0
    )


def _followed(
    weights: FloatArray, labelled: FloatArray, rows: FloatArray, days: IntArray
) -> FloatArray:
    """Weights no greater than a share of labels that has risen allows.

    Weights of a time with few labels would make the sums of one with many vary far more than
    their worth says. Weights that are too small do no harm: the reference stands for the rest.
    """
    for span in _DAYS_OF_RISE:
        first = np.searchsorted(days, days - span + 1)
        recent, size = (_recent(counts_of_days, first) for counts_of_days in (labelled, rows))
        risen = weights * recent > size + _SDS_OF_RISE * np.sqrt(weights * size)
        weights = np.where(risen, np.maximum(size / np.maximum(recent, 1.0), 1.0), weights)
    return weights


def missing_by_stratum(labelled: FloatArray, rows: FloatArray) -> FloatArray:
    """Log of the evidence after each day that the share of labels differs between strata.

    Of shares p_s that days before tell, each row's is bet against their mean over a day's rows,
    p̄: the product of p_s/p̄ (with y) and (1 − p_s)/(1 − p̄) (without) has mean 1 at most if all
    strata of a day have one share, whatever it is (Turner, Ly and Grünwald 2024). By Ville's
    inequality it may be looked at every day.

    Parameters
    ----------
    labelled, rows : ndarray of float, shape (strata, days)

    Returns
    -------
    ndarray of float, shape (days,)
    """
    before, size = (np.cumsum(counts, axis=1) - counts for counts in (labelled, rows))
    common = (before.sum(axis=0) + 0.5) / (size.sum(axis=0) + 1.0)
    share = (before + common) / (size + 1.0)
    mean = (share * rows).sum(axis=0) / np.maximum(rows.sum(axis=0), 1.0)
    mean = np.where(rows.sum(axis=0) > 0, mean, 0.5)
    gain = labelled * np.log(share / mean) + (rows - labelled) * np.log((1 - share) / (1 - mean))
    return np.asarray(np.cumsum(gain.sum(axis=0)))


def missing_sentence(labelled: FloatArray, rows: FloatArray, strata: Strata) -> str:
    """Where labels are missing more often; empty where this is not shown."""
    if not len(labelled.T) or missing_by_stratum(labelled, rows).max() < math.log(20.0):
        return ""
    labelled_rows, size = labelled.sum(axis=1), rows.sum(axis=1)
    share = float(labelled_rows.sum() / size.sum())
    lacking = (size * share - labelled_rows) / np.sqrt(np.maximum(size, 1.0))
    worst = int(np.argmax(lacking))
    return (
        f"Labels are missing more often where {strata.words[worst]}: "
        f"{percent(float(labelled_rows[worst] / size[worst]), 0)} of these rows have y, compared "
        f"with {percent(share, 0)} of all rows."
    )


def bounds_sentence(covered: float, labelled: float, rows: float) -> str:
    """What holds of all rows, for whatever reason y are missing; empty where none are."""
    if labelled >= rows:
        return ""
    low, high = covered / rows, (covered + rows - labelled) / rows
    return (
        f"{percent(1.0 - labelled / rows, 0)} of the rows of evaluated days have no y. Whatever "
        f"their values, between {math.floor(100 * low)} and {math.ceil(100 * high)} % of all rows "
        "are covered."
    )
