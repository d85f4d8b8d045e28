"""Tables with a planted defect that groups, inputs or times tell of; and their scores."""

from __future__ import annotations

import numpy as np
from scipy import stats

from howsure.core.rng import child
from howsure.predictions import Distribution, EvalSet, Intervals, Prediction, Quantiles, Samples

KINDS = ("distributions", "samples", "quantiles", "intervals")
LEVELS = np.array([0.025, 0.05, 0.25, 0.5, 0.75, 0.95, 0.975])
MEMBERS = 20


def world(kind: str, n: int, name: object, defect: str = "none") -> EvalSet:
    """Normal errors of known size; what is wrong is wrong in a group, a region or late rows."""
    rng = child(0, "conditional", kind, n, str(name))
    x = rng.uniform(-1, 1, (n, 3))
    group = rng.choice(list("abcde"), n, p=[0.05, 0.2, 0.25, 0.25, 0.25])
    mean, sd, time = np.sin(2 * x[:, 0]), np.exp(0.5 * x[:, 1]), np.arange(n)
    y = mean + sd * rng.normal(size=n) * (1 + (defect == "late") * (time >= 0.8 * n))
    inside = bad_rows(defect, x[:, 2], group, time)
    if defect.endswith("bias"):
        mean = mean - 0.7 * sd * inside
    elif defect in ("group", "region"):
        sd = sd * np.where(inside, 0.5, 1.0)
    made: Prediction = Distribution.normal(mean, sd)
    if kind == "samples":
        made = Samples(mean[:, None] + sd[:, None] * rng.normal(size=(n, MEMBERS)))
    elif kind == "quantiles":
        made = Quantiles(LEVELS, mean[:, None] + sd[:, None] * stats.norm.ppf(LEVELS))
    elif kind == "intervals":
        half = stats.norm.ppf(0.95) * sd
        made = Intervals(mean - half, mean + half, 0.9)
    inputs = {f"x{i}": x[:, i] for i in range(3)}
    return EvalSet.checked(y, made, features=inputs, groups={"g": group}, time=time)


def bad_rows(defect: str, x: np.ndarray, group: np.ndarray, time: np.ndarray) -> np.ndarray:
    """Where a defect is."""
    if defect.startswith("group"):
        return group == "b"
    if defect == "late":
        return time >= 0.8 * len(time)
    return x > 0.5 if defect.startswith("region") else np.zeros(len(x), dtype=bool)


def is_bad(rows: EvalSet, defect: str) -> np.ndarray:
    """Where a defect is, in rows of a world."""
    return bad_rows(defect, rows.features["x2"], rows.groups["g"].values(), rows.time)


def covered(rows: EvalSet) -> np.ndarray:
    """Whether y lies in the central interval at 90 %, at the places (m + 1)p of samples."""
    prediction = rows.predictions[0]
    if isinstance(prediction, Samples):
        ends = np.quantile(prediction.sorted_samples, [0.05, 0.95], axis=1, method="weibull")
    else:
        ends = prediction.interval(0.9)
    return (ends[0] <= rows.y) & (rows.y <= ends[1])


def score(rows: EvalSet) -> float:
    """The mean proper score: CRPS, fair CRPS, pinball loss, interval score; smaller is better."""
    prediction, y = rows.predictions[0], rows.y
    if isinstance(prediction, Samples):
        held = prediction.sorted_samples
        m = held.shape[1]
        spread = (held * (2 * np.arange(1, m + 1) - m - 1)).sum(axis=1) / (m * (m - 1))
        return float((np.abs(held - y[:, None]).mean(axis=1) - spread).mean())
    if isinstance(prediction, Quantiles):
        error = y[:, None] - prediction.values
        return float((error * (prediction.levels - (error < 0))).mean())
    if isinstance(prediction, Intervals):
        low, high = prediction.interval(0.9)
        beyond = np.maximum(low - y, 0) + np.maximum(y - high, 0)
        return float((high - low + 20 * beyond).mean())
    sd = prediction.sd()
    z = (y - prediction.point()) / sd
    terms = z * (2 * stats.norm.cdf(z) - 1) + 2 * stats.norm.pdf(z) - 1 / np.sqrt(np.pi)
    return float((sd * terms).mean())


def rescaled(rows: EvalSet, a: float, c: float, order: np.ndarray | None = None) -> EvalSet:
    """The same table with y and predictions in other units: a·y + c."""
    prediction = rows.predictions[0]
    made: Prediction
    if isinstance(prediction, Samples):
        made = Samples(a * prediction.sorted_samples + c)
    elif isinstance(prediction, Quantiles):
        values = a * prediction.values + c
        made = Quantiles(LEVELS, values if a > 0 else values[:, ::-1])
    elif isinstance(prediction, Intervals):
        ends = a * prediction.lower + c, a * prediction.upper + c
        made = Intervals(*(ends if a > 0 else ends[::-1]), prediction.coverages)
    else:
        made = Distribution.normal(a * prediction.point() + c, abs(a) * prediction.sd())
    return EvalSet.checked(
        a * rows.y + c, made, features=rows.features, groups=rows.groups, time=rows.time
    )


def weighted(rows: EvalSet, copies: np.ndarray) -> EvalSet:
    """The same table with frequencies."""
    return EvalSet.checked(
        rows.y,
        rows.predictions,
        features=rows.features,
        groups=rows.groups,
        time=rows.time,
        weights=copies,
    )


def numbers(prediction: Prediction) -> np.ndarray:
    """All that a prediction holds, shape (n, k)."""
    return np.concatenate(
        [table.reshape(prediction.n, -1) for table in prediction.numbers().values()], 1
    )
