"""Where in x coverage is off: along one column, and in named regions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, final

import numpy as np
import numpy.typing as npt

from howsure.core import formats
from howsure.core.arrays import BoolArray, FloatArray, IntArray, as_vector
from howsure.core.convert import check_whole
from howsure.core.errors import InputError, UnanswerableError
from howsure.core.records import Curve, Table
from howsure.metrics.pointwise import CoverageBand, coverage_band
from howsure.stats.binomial import clopper_pearson
from howsure.studies.pointwise.result import PointwiseResult, Which

BINS: Final = 12
"""Parts of a column that has many values."""
_LEAVES: Final = 6
_LEAST_TRIALS: Final = 8
_WORDS: Final[Mapping[Which, str]] = {"picf": "coverage of a new y", "cicf": "coverage of the mean"}


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Principal:
    """The direction in which the test points differ most, all columns counted alike.

    Attributes
    ----------
    values : ndarray of float, shape (n,)
        Where each test point lies along it.
    share : float
        Its share of the variance of the standardised columns.
    loadings : ndarray of float, shape (d,)
        Weight of each standardised column, of length one in all; the largest is positive.
    """

    values: FloatArray
    share: float
    loadings: FloatArray


def principal_component(x: FloatArray) -> Principal:
    """First principal component of standardised columns; constant columns count for nothing.

    Parameters
    ----------
    x : ndarray of float, shape (n, d)
        Test points.

    Returns
    -------
    Principal

    Raises
    ------
    UnanswerableError
        If no column varies.

    Examples
    --------
    >>> found = principal_component(np.array([[0.0, 0.0, 1.0], [1.0, 2.0, 1.0], [2.0, 4.0, 1.0]]))
    >>> found.share, found.loadings.round(2)
    (1.0, array([0.71, 0.71, 0.  ]))
    """
    centred = x - x.mean(axis=0)
    spread = centred.std(axis=0)
    live = spread > 1e-12 * np.maximum(np.abs(x).max(axis=0), 1.0)
    if not live.any():
        raise UnanswerableError("all test points are the same")
    scaled = centred[:, live] / spread[live]
    _, sizes, directions = np.linalg.svd(scaled, full_matrices=False)
    heaviest = directions[0, np.argmax(np.abs(directions[0]))]
    direction = directions[0] if heaviest > 0 else -directions[0]
    loadings = np.zeros(x.shape[1])
    loadings[live] = direction
    return Principal(
        values=scaled @ direction,
        share=float(sizes[0] ** 2 / np.square(sizes).sum()),
        loadings=loadings,
    )


def local_curve(
    result: PointwiseResult,
    which: Which,
    coverage: float,
    along: npt.ArrayLike,
    *,
    name: str = "x",
    bins: int = BINS,
) -> Curve:
    """Coverage along one number a test point has, such as a column of x, in bins of like values.

    Parameters
    ----------
    result : PointwiseResult
        Of `pointwise`.
    which : {"picf", "cicf"}
        Coverage of a new y, or of the mean.
    coverage : float
        One of its coverages.
    along : array-like of shape (n,)
        The number, for each test point.
    name : str
        What it is.
    bins : int
        The most bins, at least 2. They hold like numbers of points; equal values share one.

    Returns
    -------
    Curve
        Named ``picf_local`` or ``cicf_local``: the mean of the number in each bin, the mean
        coverage of the bin's points, and a band that is simultaneous over bins. Its group is
        `name`; hovering tells how many points a bin has.

    Raises
    ------
    InputError
        If an argument breaks its rule.
    UnanswerableError
        If coverage cannot be known, or fewer than two trials succeeded.

    Examples
    --------
    >>> from howsure.methods.linear import LinearT
    >>> from howsure.studies.pointwise.simulation import pointwise
    >>> result = pointwise("friedman1", LinearT(), trials=5, n_train=50, n_test=40)
    >>> local_curve(result, "picf", 0.9, result.x[:, 3], name="x3", bins=4).hover["points"]
    array([10., 10., 10., 10.])
    """
    values = as_vector(along, "along", length=len(result.y))
    check_whole(bins, "bins", 2)
    held = _enough(result, which, coverage, 2)
    part = _parts(values, bins)
    sizes = np.bincount(part).astype(np.float64)
    band = _banded(held, part, sizes, result, which)
    return Curve(
        name=f"{which}_local",
        x=np.bincount(part, weights=values) / sizes,
        y=band.value,
        lower=band.lower,
        upper=band.upper,
        reference=np.full(len(sizes), coverage),
        x_label=name,
        y_label=f"{which.upper()}: {_WORDS[which]}, nominal {formats.level(coverage)}",
        band=f"simultaneous {band.confidence:.0%} Monte-Carlo band over {len(sizes)} bins",
        model=result.method,
        group=name,
        hover={"points": sizes},
    )


def failing_regions(
    result: PointwiseResult,
    which: Which,
    coverage: float,
    names: Sequence[str] | None = None,
) -> Table:
    """Named regions of x, and whether coverage differs significantly on average over each.

    Parameters
    ----------
    result : PointwiseResult
        Of `pointwise`, with at least 8 trials.
    which : {"picf", "cicf"}
        Coverage of a new y, or of the mean.
    coverage : float
        One of its coverages.
    names : sequence of str, optional
        Names of the columns of x; ``x0``, ``x1``, … (``x`` for one column) if omitted. A name
        with ``=``, such as ``site=north``, is that of a column of 0 and 1.

    Returns
    -------
    Table
        Named ``picf_regions`` or ``cicf_regions``, one row a region, the farthest from the
        nominal coverage first: where (in words), points, share (of the test points), coverage,
        lower and upper (a band that is simultaneous over the regions), verdict (−1 below,
        +1 above, 0 compatible).

    Raises
    ------
    UnanswerableError
        If coverage cannot be known, or there are too few trials.

    Notes
    -----
    The regions are the leaves of a small regression tree grown on coverages from every second
    trial; coverage and band come from the other trials, so that looking for the worst region
    does not make it look worse than it is.

    Examples
    --------
    >>> from howsure.methods.linear import LinearT
    >>> from howsure.studies.pointwise.simulation import pointwise
    >>> result = pointwise("toy_heteroscedastic", LinearT(), trials=20, n_train=200, n_test=300)
    >>> failing_regions(result, "picf", 0.9).columns["where"][0]
    'x ≤ −0.4475'
    """
    from sklearn.tree import DecisionTreeRegressor

    held = _enough(result, which, coverage, _LEAST_TRIALS)
    count, columns = result.x.shape
    titles = tuple(names) if names is not None else default_names(columns)
    if len(titles) != columns:
        raise InputError(
            f"names must have one name for each of {columns} columns of x, got {names}"
        )
    tree = DecisionTreeRegressor(
        max_leaf_nodes=_LEAVES, min_samples_leaf=max(count // 20, 3), random_state=0
    )
    tree.fit(result.x, held[::2].mean(axis=0))
    leaf = tree.apply(result.x)
    nodes, part = np.unique(leaf, return_inverse=True)
    sizes = np.bincount(part).astype(np.float64)
    band = _banded(held[1::2], part.astype(np.int64), sizes, result, which)
    words = _rules(tree.tree_, titles)
    order = np.argsort(-np.abs(band.value - coverage), kind="stable")
    return Table(
        name=f"{which}_regions",
        columns={
            "where": np.array([words[int(node)] for node in nodes[order]], dtype=object),
            "points": sizes[order].astype(np.int64),
            "share": sizes[order] / count,
            "coverage": band.value[order],
            "lower": band.lower[order],
            "upper": band.upper[order],
            "verdict": band.verdict(coverage)[order],
        },
        model=result.method,
        notes=(
            "Regions are the leaves of a small tree grown on every second trial; coverage comes "
            f"from the other {len(held[1::2])}, with a band that is simultaneous over the regions."
        ),
    )


def default_names(columns: int) -> tuple[str, ...]:
    """Names of columns that have none: ``x``, or ``x0``, ``x1``, …

    Examples
    --------
    >>> default_names(1), default_names(2)
    (('x',), ('x0', 'x1'))
    """
    return ("x",) if columns == 1 else tuple(f"x{j}" for j in range(columns))


def _enough(result: PointwiseResult, which: Which, coverage: float, least: int) -> FloatArray:
    held = result.by_trial(which, coverage)
    if len(held) < least:
        raise UnanswerableError(f"at least {least} trials are needed, {len(held)} succeeded")
    return held


def _parts(values: FloatArray, bins: int) -> IntArray:
    """Bin of each value: near-equal numbers of points, equal values together, no bin empty."""
    known, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    if len(known) <= bins:
        return np.asarray(place, dtype=np.int64)
    middle = np.cumsum(counts) - 0.5 * counts
    coarse = np.minimum((middle * bins / len(values)).astype(np.int64), bins - 1)
    return np.asarray(np.unique(coarse, return_inverse=True)[1][place], dtype=np.int64)


def _banded(
    held: FloatArray, part: IntArray, sizes: FloatArray, result: PointwiseResult, which: Which
) -> CoverageBand:
    """Mean coverage of each part with its band, from values of shape (trials, points)."""
    member = np.zeros((len(part), len(sizes)))
    member[np.arange(len(part)), part] = 1.0 / sizes[part]
    means = np.clip(held @ member, 0.0, 1.0)
    band = coverage_band(means, confidence=result.confidence, seed=result.seed)
    stuck: BoolArray = band.standard_error == 0
    if which == "picf" or not stuck.any():
        return band
    hits = np.round(band.value * len(means))
    low, high = clopper_pearson(hits, len(means), band.pointwise_confidence)
    return CoverageBand(
        band.value,
        band.standard_error,
        np.where(stuck, low, band.lower),
        np.where(stuck, high, band.upper),
        band.confidence,
        band.pointwise_confidence,
    )


def _rules(tree: Any, names: Sequence[str]) -> dict[int, str]:
    """The leaves of a fitted scikit-learn tree in words, each column named once."""
    limits: dict[int, dict[int, tuple[float, float]]] = {0: {}}
    words: dict[int, str] = {}
    for node in range(tree.node_count):
        held = limits[node]
        left, right = int(tree.children_left[node]), int(tree.children_right[node])
        if left < 0:
            told = [_limit(names[column], *ends) for column, ends in sorted(held.items())]
            words[node] = ", ".join(told) or "everywhere"
            continue
        column, edge = int(tree.feature[node]), float(tree.threshold[node])
        low, high = held.get(column, (-np.inf, np.inf))
        limits[left] = {**held, column: (low, min(high, edge))}
        limits[right] = {**held, column: (max(low, edge), high)}
    return words


def _limit(name: str, low: float, high: float) -> str:
    if "=" in name and (low, high) in ((-np.inf, 0.5), (0.5, np.inf)):
        return name if low == 0.5 else f"not {name}"
    if np.isinf(low):
        return f"{name} ≤ {_short(high)}"
    if np.isinf(high):
        return f"{name} > {_short(low)}"
    return f"{_short(low)} < {name} ≤ {_short(high)}"


def _short(number: float) -> str:
    return formats.minus(formats.short(number, 4))
