"""Records, curves and tables of a test of coverage at every point."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import special

from howsure.core import formats
from howsure.core.arrays import BoolArray, FloatArray
from howsure.core.errors import UnanswerableError
from howsure.core.records import Curve, Direction, Notion, Record, Table
from howsure.studies.pointwise.result import PointwiseResult, Which

_WORDS: dict[Which, str] = {
    "picf": "PICF: coverage of a new y",
    "cicf": "CICF: coverage of the mean",
}
_CONFIDENCE = 0.95
_ROUNDING = 1e-13
"""Spread, as a share of a mean, below which all values are the same but for rounding."""


def records(result: PointwiseResult) -> tuple[Record, ...]:
    """Every number, at every coverage, with its Monte-Carlo error over trials.

    Parameters
    ----------
    result : PointwiseResult
        Of `pointwise`.

    Returns
    -------
    tuple of Record
        At each coverage: `empirical_coverage` (mean PICP), `picf_mean`, `picf_brier` (raw, beside
        the `null` that Monte-Carlo error alone gives), `picf_brier_corrected` and its parts
        `picf_bias_squared` and `picf_variance`, `picf_points_off` (share of the points whose
        simultaneous band excludes the nominal coverage), `prediction_width`; the same of the
        CICF, with `cicp` (mean CICP) and `confidence_width`. Then `log_likelihood` and
        `failed_trials`. Test points are held fixed in every error; n counts trials. What cannot
        be known is NaN with its reason.

    Examples
    --------
    >>> from howsure.methods.linear import LinearT
    >>> from howsure.studies.pointwise.simulation import pointwise
    >>> found = records(pointwise("linear", LinearT(), coverages=(0.8,), trials=20, n_test=9))
    >>> [record.metric for record in found if record.notion == "pointwise"][:3]
    ['picf_brier', 'picf_brier_corrected', 'picf_bias_squared']
    """
    found = [record for c in result.coverages for record in _at_coverage(result, c)]
    likelihood, why = result.log_likelihood, result.reasons.get("log_likelihood", "")
    found.append(
        _mean(result, "log_likelihood", likelihood, why, Direction.HIGHER, units="nats"),
    )
    tried = result.trials + len(result.failures)
    first = result.failures[0] if result.failures else None
    found.append(
        _record(
            result,
            metric="failed_trials",
            value=len(result.failures) / tried,
            n=float(tried),
            direction=Direction.LOWER,
            target=0.0,
            reason=f"first, in {first.stage}: {first.error}: {first.message}" if first else "",
        )
    )
    return tuple(found)


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
    >>> from howsure.methods.linear import LinearT
    >>> from howsure.studies.pointwise.simulation import pointwise
    >>> found = curves(pointwise("linear", LinearT(), coverages=(0.8,), trials=20, n_test=9))
    >>> [curve.name for curve in found]
    ['picf', 'picf_sorted', 'cicf', 'cicf_sorted']
    """
    return tuple(
        curve
        for coverage in (result.coverages if coverages is None else coverages)
        for which in _known(result)
        for curve in _curves_of(result, which, coverage)
    )


def points_table(result: PointwiseResult, coverage: float) -> Table:
    """Every test point: x, y, the truth, coverage with its band, verdict and mean widths.

    Parameters
    ----------
    result : PointwiseResult
        Of `pointwise`.
    coverage : float
        One of its coverages.

    Returns
    -------
    Table
        One row a test point, in the test set's order. A verdict is −1 where the band lies below
        the nominal coverage, +1 where above, 0 where it holds it.

    Raises
    ------
    InputError
        If there is no such coverage.
    """
    columns: dict[str, npt.NDArray[Any]] = {
        f"x{column}": result.x[:, column] for column in range(result.x.shape[1])
    }
    columns["y"] = result.y
    if result.truth is not None:
        columns.update(mean=result.truth.mean, sd=result.truth.sd)
    for which in _known(result):
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
    return Table(name="pointwise_points", columns=columns, model=result.method)


def trials_table(result: PointwiseResult, coverage: float) -> Table:
    """Every trial that succeeded: PICP, CICP, mean widths and log-likelihood.

    Parameters
    ----------
    result : PointwiseResult
        Of `pointwise`.
    coverage : float
        One of its coverages.

    Returns
    -------
    Table

    Raises
    ------
    InputError
        If there is no such coverage.
    """
    columns: dict[str, npt.NDArray[Any]] = {
        "picp": result.picp(coverage),
        "prediction_width": result.width("picf", coverage).mean(axis=1),
        "log_likelihood": result.log_likelihood,
    }
    if "cicf" in _known(result):
        columns["cicp"] = result.cicp(coverage)
    if result.mean_ends is not None:
        columns["confidence_width"] = result.width("cicf", coverage).mean(axis=1)
    return Table(name="pointwise_trials", columns=columns, model=result.method)


def failing_ranges(result: PointwiseResult, which: Which, coverage: float) -> Table:
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
    Table
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
        raise UnanswerableError("x has several columns, so its points have no order")
    band = result.band(which, coverage)
    order = np.argsort(result.x[:, 0], kind="stable")
    verdict = band.verdict(coverage)[order]
    starts = np.flatnonzero(np.r_[True, verdict[1:] != verdict[:-1]])
    ends = np.r_[starts[1:], len(verdict)]
    kept = verdict[starts] != 0
    starts, ends = starts[kept], ends[kept]
    x, value = result.x[order, 0], band.value[order]
    means = [value[a:b].mean() for a, b in zip(starts, ends, strict=True)]
    return Table(
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


def _known(result: PointwiseResult) -> tuple[Which, ...]:
    """Which of PICF and CICF can be banded."""
    enough = result.trials >= 2
    return tuple(which for which in _WORDS if enough and which not in result.reasons)


def _at_coverage(result: PointwiseResult, coverage: float) -> Iterator[Record]:
    none = result.reasons.get("trials", "")
    yield _crossed(
        _mean(
            result,
            "empirical_coverage",
            result.picp(coverage),
            none,
            Direction.TARGET,
            coverage=coverage,
            target=coverage,
        ),
        result.covered(coverage),
    )
    yield from _of(result, "picf", coverage)
    width = result.width("picf", coverage).mean(axis=1)
    yield _mean(
        result, "prediction_width", width, none, Direction.LOWER, units="y", coverage=coverage
    )
    why = result.reasons.get("cicf", "")
    cicp = np.empty(0) if why else result.cicp(coverage)
    yield _mean(result, "cicp", cicp, why, Direction.TARGET, coverage=coverage, target=coverage)
    yield from _of(result, "cicf", coverage)
    missing = result.mean_ends is None
    width = np.empty(0) if missing else result.width("cicf", coverage).mean(axis=1)
    yield _mean(
        result,
        "confidence_width",
        width,
        why if missing else "",
        Direction.LOWER,
        units="y",
        coverage=coverage,
    )


def _of(result: PointwiseResult, which: Which, coverage: float) -> Iterator[Record]:
    """The numbers of PICF or CICF at one coverage; NaN with the reason where not known."""
    common: dict[str, Any] = {"coverage": coverage, "n": float(result.trials)}
    names = ("brier", "brier_corrected", "bias_squared", "variance", "points_off")
    why = result.reasons.get(which, "")
    if why:
        for name in ("mean", *names):
            yield _record(result, metric=f"{which}_{name}", value=math.nan, reason=why, **common)
        return
    marginal = result.by_trial(which, coverage).mean(axis=1)
    yield _mean(
        result,
        f"{which}_mean",
        marginal,
        "",
        Direction.TARGET,
        coverage=coverage,
        target=coverage,
    )
    score = result.brier(which, coverage)
    few = "" if result.trials > 2 else "fewer than three trials succeeded"
    common |= {"direction": Direction.LOWER, "notion": Notion.POINTWISE, "target": 0.0}
    values = (
        (score.raw, score.standard_error, score.noise),
        (score.corrected, score.standard_error, math.nan),
        (score.bias_squared, score.bias_squared_error, math.nan),
        (score.variance, score.variance_error, math.nan),
    )
    for name, (value, error, null) in zip(names, values, strict=False):
        yield _record(
            result,
            metric=f"{which}_{name}",
            value=value,
            standard_error=error,
            null=null,
            reason=few,
            **common,
        )
    share = math.nan
    if result.trials > 1:
        share = float((result.band(which, coverage).verdict(coverage) != 0).mean())
    yield _record(result, metric=f"{which}_points_off", value=share, reason=few, **common)


def _mean(
    result: PointwiseResult,
    metric: str,
    values: FloatArray,
    why: str,
    direction: Direction,
    *,
    units: str = "1",
    coverage: float = math.nan,
    target: float = math.nan,
) -> Record:
    """Mean over trials with its t-interval; NaN with the reason where there are no values."""
    if why or not len(values):
        return _record(
            result,
            metric=metric,
            value=math.nan,
            units=units,
            coverage=coverage,
            direction=direction,
            target=target,
            reason=why,
        )
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
        direction=direction,
        units=units,
        coverage=coverage,
        target=target,
        reason="" if math.isfinite(value) else "some trials gave infinite values",
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


def _curves_of(result: PointwiseResult, which: Which, coverage: float) -> Iterator[Curve]:
    band = result.band(which, coverage)
    nominal = np.full(len(band.value), coverage)
    words = f"{_WORDS[which]}, nominal {formats.level(coverage)}"
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
        notes="Points in rising order of coverage; Monte-Carlo error steepens both ends.",
    )
