"""A test of coverage at every point as tables, and back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyarrow import compute as pc

from howsure.core.arrays import FloatArray
from howsure.core.records import Table
from howsure.studies.engine import TrialOutput
from howsure.studies.pointwise.result import Failure, PointwiseResult
from howsure.studies.tasks.worlds import Noise, Truth

_FACTS = (
    *("world", "method", "seed", "covariates", "n_train", "confidence"),
    *("trials_planned", "stop", "first_trial"),
)


def to_output(result: PointwiseResult) -> TrialOutput:
    """A result as what a store keeps; `from_tables` is the way back.

    Parameters
    ----------
    result : PointwiseResult
        Of `pointwise`.

    Returns
    -------
    TrialOutput
        ``predictions`` has one row a simulation, test point and coverage: ends of the prediction
        interval (``lower``, ``upper``) and of the confidence interval (``mean_lower``,
        ``mean_upper``), and ``mass``, the probability that the former holds a new y. ``points``
        has the test set and the truth. ``records`` has one row a simulation and coverage.
    """
    facts: dict[str, Any] = {name: getattr(result, name) for name in _FACTS}
    facts |= {
        "coverages": list(result.coverages),
        "failures": [asdict(failure) for failure in result.failures],
        "warnings": dict(result.warnings),
        "reasons": dict(result.reasons),
        "dimension": result.x.shape[1],
        "knows_mean": result.mean_ends is not None,
    }
    return TrialOutput(
        records=_records(result),
        predictions=Table(name="predictions", columns=_predictions(result)),
        tables={"points": Table(name="points", columns=_points(result))},
        keys={"world": result.world, "method": result.method, "seed": result.seed},
        facts=facts,
        failed_parts=len(result.failures),
    )


def from_tables(
    facts: Mapping[str, Any], tables: Mapping[str, pa.Table], noise: Noise | None
) -> PointwiseResult:
    """The result that a store kept.

    Parameters
    ----------
    facts : mapping
        Those of the trial.
    tables : mapping of str to pyarrow.Table
        Its ``records``, ``predictions`` and ``points``.
    noise : Noise, optional
        The law of the world's noise; None where the world knows no truth.

    Returns
    -------
    PointwiseResult
        Equal to what was kept, arrays bit by bit.
    """
    predictions, points, records = (tables[n] for n in ("predictions", "points", "records"))
    x = np.column_stack([_column(points, f"x{k}") for k in range(facts["dimension"])])
    truth = None if noise is None else _truth(points, noise)
    coverages = tuple(facts["coverages"])
    shape = (-1, len(x), len(coverages))

    def cube(name: str) -> FloatArray:
        return _column(predictions, name).reshape(shape)

    found = {name: facts[name] for name in _FACTS}
    return PointwiseResult(
        **found,
        coverages=coverages,
        x=x,
        y=_column(points, "y"),
        truth=truth,
        lower=cube("lower"),
        upper=cube("upper"),
        mass=None if truth is None else cube("mass"),
        mean_ends=(cube("mean_lower"), cube("mean_upper")) if facts["knows_mean"] else None,
        log_likelihood=_column(
            records.filter(pc.equal(records["metric"], "log_likelihood")), "value"
        ),
        failures=tuple(Failure(**failure) for failure in facts["failures"]),
        warnings=facts["warnings"],
        reasons=facts["reasons"],
    )


def _records(result: PointwiseResult) -> Table:
    """One row a simulation and number: PICP, CICP and widths at each coverage, likelihood."""
    numbers = _simulations(result)
    parts: list[tuple[str, float, FloatArray]] = []
    for coverage in result.coverages:
        parts.append(("empirical_coverage", coverage, result.picp(coverage)))
        width = result.width("picf", coverage).mean(axis=1)
        parts.append(("prediction_width", coverage, width))
        if "cicf" not in result.reasons:
            parts.append(("cicp", coverage, result.cicp(coverage)))
        if result.mean_ends is not None:
            width = result.width("cicf", coverage).mean(axis=1)
            parts.append(("confidence_width", coverage, width))
    parts.append(("log_likelihood", np.nan, result.log_likelihood))
    count = len(numbers)
    columns: dict[str, npt.NDArray[Any]] = {
        "simulation": np.tile(numbers, len(parts)),
        "metric": np.repeat([metric for metric, _, _ in parts], count),
        "coverage": np.repeat([coverage for _, coverage, _ in parts], count),
        "value": np.concatenate([values for _, _, values in parts]),
    }
    return Table(name="records", columns=columns)


def _predictions(result: PointwiseResult) -> dict[str, npt.NDArray[Any]]:
    shape = result.lower.shape
    number, point, coverage = np.broadcast_arrays(
        _simulations(result)[:, None, None],
        np.arange(shape[1])[:, None],
        np.array(result.coverages),
    )
    columns: dict[str, npt.NDArray[Any]] = {
        "simulation": number,
        "point": point,
        "coverage": coverage,
        "lower": result.lower,
        "upper": result.upper,
    }
    if result.mean_ends is not None:
        columns |= {"mean_lower": result.mean_ends[0], "mean_upper": result.mean_ends[1]}
    if result.mass is not None:
        columns["mass"] = result.mass
    return {name: held.ravel() for name, held in columns.items()}


def _points(result: PointwiseResult) -> dict[str, npt.NDArray[Any]]:
    columns: dict[str, npt.NDArray[Any]] = {"point": np.arange(len(result.y))}
    columns |= {f"x{k}": result.x[:, k] for k in range(result.x.shape[1])}
    columns["y"] = result.y
    if result.truth is not None:
        columns |= {"mean": result.truth.mean, "scale": result.truth.scale}
    return columns


def _simulations(result: PointwiseResult) -> npt.NDArray[np.int64]:
    """Numbers of the simulations that succeeded."""
    failed = [failure.trial for failure in result.failures]
    tried = np.arange(result.first_trial, result.first_trial + result.trials + len(failed))
    return np.setdiff1d(tried, failed)


def _truth(points: pa.Table, noise: Noise) -> Truth:
    return Truth(_column(points, "mean"), _column(points, "scale"), noise)


def _column(table: pa.Table, name: str) -> FloatArray:
    return np.array(table[name].to_numpy(), dtype=np.float64)
