"""What a test of coverage at every point says: its numbers, its curves, and where it fails."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from scipy import special

from howsure.core import formats
from howsure.core.arrays import AnyArray, BoolArray, FloatArray, IntArray, as_vector
from howsure.core.convert import check_whole
from howsure.core.errors import InputError, UnanswerableError
from howsure.core.records import Curve, Direction, Notion, Record, ResultTable
from howsure.stats.binomial import clopper_pearson
from howsure_studies.pointwise.formulas import CoverageBand, coverage_band
from howsure_studies.pointwise.simulation import PointwiseResult, Which

BINS: Final = 12
"""The most parts of a column that has many values."""
_LEAVES: Final = 6
_LEAST_TRIALS: Final = 8
_CONFIDENCE: Final = 0.95
_ROUNDING: Final = 1e-13
"""Spread, as a share of a mean, below which all values are the same but for rounding."""
_OF: Final[Mapping[Which, str]] = {"picf": "coverage of a new y", "cicf": "coverage of the mean"}
_SCORES: Final = ("brier", "brier_corrected", "bias_squared", "variance", "points_off")


def records(result: PointwiseResult) -> tuple[Record, ...]:
    """Every number, at every coverage, with its Monte-Carlo error over trials.

    Parameters
    ----------
    result : PointwiseResult
        Of `pointwise`.

    Returns
    -------
    tuple of Record
        At each coverage: ``empirical_coverage`` (mean PICP), ``picf_mean``, ``picf_brier`` (raw,
        beside the ``null`` that Monte-Carlo error alone gives), ``picf_brier_corrected`` and its
        parts ``picf_bias_squared`` and ``picf_variance``, ``picf_points_off`` (share of the points
        whose simultaneous band excludes the nominal coverage), ``prediction_width``; the same of
        the CICF, with ``cicp`` (mean CICP), ``confidence_width``, and ``cicf_simultaneous`` (share
        of the trials whose intervals contain the mean at every test point). Then
        ``log_likelihood`` and ``failed_trials``. Test points are held fixed in every error; n
        counts trials. What cannot be known is NaN with its reason.

    Examples
    --------
    >>> from howsure_studies.methods.linear import LinearT
    >>> from howsure_studies.pointwise import pointwise
    >>> found = records(pointwise("linear", LinearT(), coverages=(0.8,), trials=20, n_test=9))
    >>> [record.metric for record in found if record.notion == "pointwise"][:3]
    ['picf_brier', 'picf_brier_corrected', 'picf_bias_squared']
    """
    return result.once(("records",), lambda: tuple(_records(result)))


def _records(result: PointwiseResult) -> Iterator[Record]:
    for coverage in result.coverages:
        yield from _at_coverage(result, coverage)
    why = result.reasons.get("log_likelihood", "")
    yield _mean(
        result,
        "log_likelihood",
        result.log_likelihood,
        why,
        direction=Direction.HIGHER,
        units="nats",
    )
    first = result.failures[0] if result.failures else None
    yield _record(
        result,
        metric="failed_trials",
        value=len(result.failures) / result.tried,
        n=float(result.tried),
        direction=Direction.LOWER,
        target=0.0,
        reason=f"first, in {first.stage}: {first.error}: {first.message}" if first else "",
    )


def _at_coverage(result: PointwiseResult, coverage: float) -> Iterator[Record]:
    numbers = per_trial(result, coverage)
    no_trial, no_mean = (result.reasons.get(name, "") for name in ("trials", "cicf"))
    width_unknown = "" if "confidence_width" in numbers else no_mean

    def mean(metric: str, why: str, **fields: Any) -> Record:
        values = numbers.get(metric, np.empty(0))
        return _mean(result, metric, values, why, coverage=coverage, **fields)

    share: dict[str, Any] = {"direction": Direction.TARGET, "target": coverage}
    width: dict[str, Any] = {"direction": Direction.LOWER, "units": "y"}
    picp = mean("empirical_coverage", no_trial, **share)
    yield _crossed(picp, result.covered(coverage))
    yield from _of(result, "picf", coverage)
    yield mean("prediction_width", no_trial, **width)
    yield mean("cicp", no_mean, **share)
    yield from _of(result, "cicf", coverage)
    yield mean("confidence_width", width_unknown, **width)
    yield _simultaneous(result, coverage, no_mean)


def _simultaneous(result: PointwiseResult, coverage: float, why: str) -> Record:
    """Share of the trials whose confidence intervals contain the mean at all points at once."""
    make = partial(_record, result, metric="cicf_simultaneous", coverage=coverage)
    if why or not result.trials:
        return make(value=math.nan, reason=why)
    hits = float((result.by_trial("cicf", coverage) > 0.5).all(axis=1).sum())
    low, high = clopper_pearson(hits, result.trials, _CONFIDENCE)
    return make(
        value=hits / result.trials,
        lower=float(low),
        upper=float(high),
        confidence=_CONFIDENCE,
        n=float(result.trials),
        notion=Notion.POINTWISE,
    )


def _of(result: PointwiseResult, which: Which, coverage: float) -> Iterator[Record]:
    """The numbers of PICF or CICF at one coverage; NaN with the reason where not known."""
    make = partial(_record, result, coverage=coverage, n=float(result.trials))
    why = result.reasons.get(which, "")
    if why:
        for name in ("mean", *_SCORES):
            yield make(metric=f"{which}_{name}", value=math.nan, reason=why)
        return
    yield _mean(
        result,
        f"{which}_mean",
        result.by_trial(which, coverage).mean(axis=1),
        "",
        direction=Direction.TARGET,
        coverage=coverage,
        target=coverage,
    )
    score = result.brier(which, coverage)
    share = math.nan
    if result.trials > 1:
        share = float((result.band(which, coverage).verdict(coverage) != 0).mean())
    values = (
        (score.raw, score.standard_error, score.noise),
        (score.corrected, score.standard_error, math.nan),
        (score.bias_squared, score.bias_squared_error, math.nan),
        (score.variance, score.variance_error, math.nan),
        (share, math.nan, math.nan),
    )
    for name, (value, error, null) in zip(_SCORES, values, strict=True):
        yield make(
            metric=f"{which}_{name}",
            value=value,
            standard_error=error,
            null=null,
            reason="" if result.trials > 2 else "fewer than three trials succeeded",
            direction=Direction.LOWER,
            notion=Notion.POINTWISE,
            target=0.0,
        )


def _mean(
    result: PointwiseResult, metric: str, values: FloatArray, why: str, **fields: Any
) -> Record:
    """Mean over trials with its t-interval; NaN with the reason where there are no values."""
    if why or not len(values):
        return _record(result, metric=metric, value=math.nan, reason=why, **fields)
    value, error = float(values.mean()), math.nan
    if len(values) > 1 and math.isfinite(value):
        error = float(values.std(ddof=1)) / math.sqrt(len(values))
        error = 0.0 if error < _ROUNDING * abs(value) else error
    reach = error * float(special.stdtrit(max(len(values) - 1, 1), 0.5 + 0.5 * _CONFIDENCE))
    return _record(
        result,
        metric=metric,
        value=value,
        standard_error=error,
        lower=value - reach,
        upper=value + reach,
        confidence=_CONFIDENCE,
        n=float(len(values)),
        reason="" if math.isfinite(value) else "some trials gave infinite values",
        **fields,
    )


def _crossed(record: Record, covered: BoolArray) -> Record:
    """The record of a mean over trials and rows, with an error that counts both as drawn.

    Every trial meets the same y, so the mean over trials keeps their chance: with V_S, V_n and
    V the variances of the trials' means, of the rows' means and of what neither explains,
    error² = V_S/S + V_n/n − V/(Sn), in Satterthwaite's degrees of freedom.
    """
    trials, rows = covered.shape
    if trials < 2 or rows < 2 or math.isnan(record.value):
        return record
    by_trial, by_row = covered.mean(axis=1), covered.mean(axis=0)
    total = float(covered.mean())
    ofs = float(by_trial.var(ddof=1)) / trials, float(by_row.var(ddof=1)) / rows
    squares = total * (1.0 - total) - float(by_trial.var()) - float(by_row.var())
    both = max(squares, 0.0) / ((trials - 1) * (rows - 1))
    variance = max(sum(ofs) - both, max(ofs))
    if variance == 0.0:
        return record
    degrees = variance**2 / (ofs[0] ** 2 / (trials - 1) + ofs[1] ** 2 / (rows - 1))
    error = math.sqrt(variance)
    reach = error * float(special.stdtrit(max(degrees, 1.0), 0.5 + 0.5 * record.confidence))
    low, high = max(record.value - reach, 0.0), min(record.value + reach, 1.0)
    return replace(record, standard_error=error, lower=low, upper=high)


def _record(result: PointwiseResult, **fields: Any) -> Record:
    options: dict[str, str | float] = {
        "world": result.world,
        "seed": float(result.seed),
        "covariates": result.covariates,
        "n_train": float(result.n_train),
        "n_test": float(len(result.y)),
    }
    return Record(model=result.method, options=options, **fields)


def curves(
    result: PointwiseResult, *, coverages: Sequence[float] | None = None
) -> tuple[Curve, ...]:
    """PICF and CICF along x where x has one column, and over the points in rising order always.

    Parameters
    ----------
    result : PointwiseResult
        Of `pointwise`.
    coverages : sequence of float, optional
        Which of its coverages; all if omitted.

    Returns
    -------
    tuple of Curve
        ``picf`` and ``cicf`` with their simultaneous bands, and ``picf_sorted`` and
        ``cicf_sorted``: the share of points on x, the coverage on y. Those that cannot be known
        are left out.

    Examples
    --------
    >>> from howsure_studies.methods.linear import LinearT
    >>> from howsure_studies.pointwise import pointwise
    >>> found = curves(pointwise("linear", LinearT(), coverages=(0.8,), trials=20, n_test=9))
    >>> [curve.name for curve in found]
    ['picf', 'picf_sorted', 'cicf', 'cicf_sorted']
    """
    return tuple(
        curve
        for coverage in (result.coverages if coverages is None else coverages)
        for which in _kinds_with_bands(result)
        for curve in _curves_of(result, which, coverage)
    )


def _kinds_with_bands(result: PointwiseResult) -> tuple[Which, ...]:
    """Which of PICF and CICF can be banded."""
    return tuple(which for which in _OF if result.trials >= 2 and which not in result.reasons)


def _curves_of(result: PointwiseResult, which: Which, coverage: float) -> Iterator[Curve]:
    band = result.band(which, coverage)
    nominal = np.full(len(band.value), coverage)
    words = f"{which.upper()}: {_OF[which]}, nominal {formats.level(coverage)}"
    group = f"nominal {formats.level(coverage)}"
    about = f"simultaneous {band.confidence:.0%} Monte-Carlo band over {len(nominal)} points"
    if result.x.shape[1] == 1:
        order = np.argsort(result.x[:, 0], kind="stable")
        yield Curve(
            name=which,
            x=result.x[order, 0],
            y=band.value[order],
            lower=band.lower[order],
            upper=band.upper[order],
            reference=nominal,
            x_label="x",
            y_label=words,
            band=about,
            model=result.method,
            group=group,
        )
    count = len(nominal)
    yield Curve(
        name=f"{which}_sorted",
        x=(np.arange(count) + 0.5) / count,
        y=np.sort(band.value),
        reference=nominal,
        x_label="share of test points",
        y_label=words,
        model=result.method,
        group=group,
        notes="Points sorted by coverage; Monte-Carlo error makes both ends steeper.",
    )


def points_table(result: PointwiseResult, coverage: float) -> ResultTable:
    """Every test point: x, y, the truth, coverage with its band, verdict and mean widths.

    A verdict is −1 where the band lies below the nominal coverage, +1 where above, 0 where it
    contains it.
    """
    columns: dict[str, AnyArray] = {
        f"x{column}": result.x[:, column] for column in range(result.x.shape[1])
    }
    columns["y"] = result.y
    if result.truth is not None:
        columns.update(mean=result.truth.mean, sd=result.truth.sd)
    for which in _kinds_with_bands(result):
        band = result.band(which, coverage)
        columns |= {
            which: band.value,
            f"{which}_se": band.standard_error,
            f"{which}_lower": band.lower,
            f"{which}_upper": band.upper,
            f"{which}_verdict": band.verdict(coverage),
        }
    for which in ("picf", "cicf") if result.trials else ():
        if which == "picf" or result.mean_ends is not None:
            columns[f"{which}_width"] = result.width(which, coverage).mean(axis=0)
    return ResultTable(name="pointwise_points", columns=columns, model=result.method)


def trials_table(result: PointwiseResult, coverage: float) -> ResultTable:
    """Every trial that succeeded: PICP, CICP, mean widths and log-likelihood."""
    numbers = dict(per_trial(result, coverage))
    columns = {
        "picp": numbers.pop("empirical_coverage"),
        "prediction_width": numbers.pop("prediction_width"),
        "log_likelihood": result.log_likelihood,
        **numbers,
    }
    return ResultTable(name="pointwise_trials", columns=columns, model=result.method)


def per_trial(result: PointwiseResult, coverage: float) -> Mapping[str, FloatArray]:
    """What can be known of each trial that succeeded, each of shape (S,), by the measure's name."""
    return result.once(("per_trial", coverage), lambda: _per_trial(result, coverage))


def _per_trial(result: PointwiseResult, coverage: float) -> dict[str, FloatArray]:
    numbers = {
        "empirical_coverage": result.picp(coverage),
        "prediction_width": result.width("picf", coverage).mean(axis=1),
    }
    if "cicf" not in result.reasons:
        numbers["cicp"] = result.cicp(coverage)
    if result.mean_ends is not None:
        numbers["confidence_width"] = result.width("cicf", coverage).mean(axis=1)
    return numbers


def failing_ranges(result: PointwiseResult, which: Which, coverage: float) -> ResultTable:
    """Where along x coverage differs significantly: runs of test points of one verdict.

    Parameters
    ----------
    result : PointwiseResult
        Of `pointwise`, on a world whose x has one column.
    which : {"picf", "cicf"}
        Coverage of a new y, or of the mean.
    coverage : float
        One of its coverages.

    Returns
    -------
    ResultTable
        One row a run, in rising x: its first and last x, its number of points, its mean coverage
        and its verdict (−1 below, +1 above). Empty where the band contains the nominal
        coverage everywhere.

    Raises
    ------
    InputError
        If there is no such coverage or measure.
    UnanswerableError
        If it cannot be known, or x has several columns.
    """
    if result.x.shape[1] != 1:
        raise UnanswerableError("x has several columns, so points have no order")
    band = result.band(which, coverage)
    order = np.argsort(result.x[:, 0], kind="stable")
    verdict = band.verdict(coverage)[order]
    starts = np.flatnonzero(np.r_[True, verdict[1:] != verdict[:-1]])
    ends = np.r_[starts[1:], len(verdict)]
    kept = verdict[starts] != 0
    starts, ends = starts[kept], ends[kept]
    x, value = result.x[order, 0], band.value[order]
    means = [value[a:b].mean() for a, b in zip(starts, ends, strict=True)]
    return ResultTable(
        name=f"{which}_failing",
        columns={
            "from": x[starts],
            "to": x[ends - 1],
            "points": ends - starts,
            "coverage": np.array(means, dtype=np.float64),
            "verdict": verdict[starts],
        },
        model=result.method,
    )


def failing_regions(
    result: PointwiseResult,
    which: Which,
    coverage: float,
    names: Sequence[str] | None = None,
) -> ResultTable:
    """Named regions of x, and whether coverage differs significantly on average over each.

    A row a region, the farthest from nominal first: where (in words), points, share, coverage,
    lower and upper (a band that is simultaneous over the regions), verdict (−1 below, +1 above).
    The regions are the leaves of a small regression tree grown on coverages from every second
    trial; coverage and band come from the other trials, so that looking for the worst region
    does not make it look worse than it is. A name with ``=``, such as ``site=north``, is that of
    a column of 0 and 1.
    """
    from sklearn.tree import DecisionTreeRegressor

    covered = _enough(result, which, coverage, _LEAST_TRIALS)
    count, columns = result.x.shape
    titles = tuple(names) if names is not None else default_names(columns)
    if len(titles) != columns:
        raise InputError(
            f"names must have one name for each of {columns} columns of x, got {names}"
        )
    tree = DecisionTreeRegressor(
        max_leaf_nodes=_LEAVES, min_samples_leaf=max(count // 20, 3), random_state=0
    )
    tree.fit(result.x, covered[::2].mean(axis=0))
    leaf = tree.apply(result.x)
    nodes, region = np.unique(leaf, return_inverse=True)
    sizes = np.bincount(region).astype(np.float64)
    band = _banded(covered[1::2], region.astype(np.int64), sizes, result, which)
    words = _rules(tree.tree_, titles)
    order = np.argsort(-np.abs(band.value - coverage), kind="stable")
    return ResultTable(
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
            "Regions are the leaves of a small tree fitted to every second trial; coverage uses "
            f"the other {len(covered[1::2])}, with a band that is simultaneous over the "
            "regions."
        ),
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
    """Coverage along a number of each test point, such as a column of x, in bins of like values.

    Bins hold like numbers of points, and equal values share one. The band is simultaneous over
    bins; hovering tells how many points a bin has.
    """
    values = as_vector(along, "along", length=len(result.y))
    check_whole(bins, "bins", 2)
    covered = _enough(result, which, coverage, 2)
    bin_of = _parts(values, bins)
    sizes = np.bincount(bin_of).astype(np.float64)
    band = _banded(covered, bin_of, sizes, result, which)
    return Curve(
        name=f"{which}_local",
        x=np.bincount(bin_of, weights=values) / sizes,
        y=band.value,
        lower=band.lower,
        upper=band.upper,
        reference=np.full(len(sizes), coverage),
        x_label=name,
        y_label=f"{which.upper()}: {_OF[which]}, nominal {formats.level(coverage)}",
        band=f"simultaneous {band.confidence:.0%} Monte-Carlo band over {len(sizes)} bins",
        model=result.method,
        group=name,
        hover={"points": sizes},
    )


def principal_component(x: FloatArray) -> tuple[FloatArray, float, FloatArray]:
    """First principal component of standardised columns: points along it, its share, loadings.

    Constant columns count for nothing; the largest loading is positive.
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
    return scaled @ direction, float(sizes[0] ** 2 / np.square(sizes).sum()), loadings


def default_names(columns: int) -> tuple[str, ...]:
    """Names of columns that have none: ``x``, or ``x0``, ``x1``, …"""
    return ("x",) if columns == 1 else tuple(f"x{j}" for j in range(columns))


def bins_for(points: int) -> int:
    """As many bins as leave some twenty points in each."""
    return int(np.clip(points // 20, 3, BINS))


def spread_along(
    result: PointwiseResult, which: Which, coverage: float, along: FloatArray
) -> float:
    """Variance of mean coverage over bins, less what bins of points drawn at random would show."""
    values = result.by_trial(which, coverage)
    bin_of = _parts(along, bins_for(len(along)))
    sizes = np.bincount(bin_of).astype(np.float64)
    means = _part_means(values, bin_of, sizes).mean(axis=0)
    weights = sizes / sizes.sum()
    between = float(weights @ np.square(means - weights @ means))
    chance = (len(means) - 1) / max(len(along) - 1, 1)
    return between - chance * float(values.mean(axis=0).var())


def _enough(result: PointwiseResult, which: Which, coverage: float, least: int) -> FloatArray:
    covered = result.by_trial(which, coverage)
    if len(covered) < least:
        raise UnanswerableError(f"at least {least} trials are needed, {len(covered)} succeeded")
    return covered


def _parts(values: FloatArray, bins: int) -> IntArray:
    """Bin of each value: near-equal numbers of points, equal values together, no bin empty."""
    known, code, counts = np.unique(values, return_inverse=True, return_counts=True)
    if len(known) <= bins:
        return np.asarray(code, dtype=np.int64)
    middle = np.cumsum(counts) - 0.5 * counts
    coarse = np.minimum((middle * bins / len(values)).astype(np.int64), bins - 1)
    return np.asarray(np.unique(coarse, return_inverse=True)[1][code], dtype=np.int64)


def _banded(
    covered: FloatArray, part_of: IntArray, sizes: FloatArray, result: PointwiseResult, which: Which
) -> CoverageBand:
    """Mean coverage of each part with its band, from values of shape (trials, points)."""
    means = _part_means(covered, part_of, sizes)
    band = coverage_band(means, confidence=result.confidence, seed=result.seed)
    stuck: BoolArray = band.standard_error == 0
    if which == "picf" or not stuck.any():
        return band
    hits = np.round(band.value * len(means))
    low, high = clopper_pearson(hits, len(means), band.pointwise_confidence)
    return replace(
        band, lower=np.where(stuck, low, band.lower), upper=np.where(stuck, high, band.upper)
    )


def _part_means(covered: FloatArray, part_of: IntArray, sizes: FloatArray) -> FloatArray:
    """Mean over the points of each part, shape (trials, parts)."""
    member = np.zeros((len(part_of), len(sizes)))
    member[np.arange(len(part_of)), part_of] = 1.0 / sizes[part_of]
    return np.clip(covered @ member, 0.0, 1.0)


def _rules(tree: Any, names: Sequence[str]) -> dict[int, str]:
    """The leaves of a fitted scikit-learn tree in words, each column named once."""
    limits: dict[int, dict[int, tuple[float, float]]] = {0: {}}
    words: dict[int, str] = {}
    for node in range(tree.node_count):
        ranges = limits[node]
        left, right = int(tree.children_left[node]), int(tree.children_right[node])
        if left < 0:
            limited = [_limit(names[column], *ends) for column, ends in sorted(ranges.items())]
            words[node] = ", ".join(limited) or "everywhere"
            continue
        column, edge = int(tree.feature[node]), float(tree.threshold[node])
        low, high = ranges.get(column, (-np.inf, np.inf))
        limits[left] = {**ranges, column: (low, min(high, edge))}
        limits[right] = {**ranges, column: (max(low, edge), high)}
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
