"""Models on the same rows: paired differences of every measure that is a mean of row scores."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from howsure.core.arrays import FloatArray
from howsure.core.errors import InputError, UnanswerableError
from howsure.core.records import Table
from howsure.core.rng import child, row_keys
from howsure.metrics.catalogue import catalogue
from howsure.metrics.characteristic import bootstrap_gain_difference, permutation_test
from howsure.metrics.evaluate.measure import Evaluation
from howsure.stats.bootstrap import bootstrap_means, subsample
from howsure.stats.permutation import sign_flip_test

MOST_ROWS = 20_000


def compare(evaluations: Sequence[Evaluation], *, confidence: float = 0.95, seed: int = 0) -> Table:
    """Paired differences between all pairs of models on the same rows.

    Parameters
    ----------
    evaluations : sequence of Evaluation
        One a model; the rows and y must be the same.
    confidence : float
        Nominal confidence of the paired-bootstrap intervals.
    seed : int
        Fixes resamples and permutations.

    Returns
    -------
    Table
        Named ``models``: metric, coverage, model_a, model_b, value_a, value_b, difference (a − b),
        lower, upper, p_value (sign-flip permutation of paired differences), n, direction, note.

    Raises
    ------
    InputError
        If models hold different rows.
    """
    first = evaluations[0].evalset
    for other in evaluations[1:]:
        if other.evalset.n != first.n or not np.array_equal(other.evalset.y, first.y):
            raise InputError(
                f"models must hold the same rows to be compared, but {first.model} and "
                f"{other.evalset.model} differ in y"
            )
    rows: list[dict[str, Any]] = []
    for a, b in itertools.combinations(evaluations, 2):
        for key, scores in a.scores.items():
            other_scores = b.row_scores(*key)
            if other_scores is not None:
                rows.append(_paired(a, b, key, scores, other_scores, confidence, seed))
        trade = _characteristic(a, b, confidence, seed)
        if trade is not None:
            rows.append(trade)
    names = (
        "metric", "coverage", "model_a", "model_b", "value_a", "value_b", "difference",
        "lower", "upper", "p_value", "n", "direction", "note",
    )  # fmt: skip
    text = ("metric", "model_a", "model_b", "direction", "note")
    for row in rows:
        row["direction"] = catalogue()[row["metric"]].direction.value
    columns = {
        name: np.array([row[name] for row in rows], dtype=object if name in text else np.float64)
        for name in names
    }
    return Table(
        name="models",
        columns=columns,
        notes=(
            f"Difference is model a minus model b on the same rows, with a {confidence:.0%} paired "
            "bootstrap interval; the p-value permutes the signs of paired differences."
        ),
    )


def _paired(
    a: Evaluation,
    b: Evaluation,
    key: tuple[str, float],
    first: FloatArray,
    second: FloatArray,
    confidence: float,
    seed: int,
) -> dict[str, Any]:
    metric, coverage = key
    held = a.evalset
    cluster = None if held.cluster is None else held.cluster.codes
    scores = np.stack([first.astype(np.float64), second.astype(np.float64)], axis=1)
    row: dict[str, Any] = {
        "metric": metric,
        "coverage": coverage,
        "model_a": held.model,
        "model_b": b.evalset.model,
        "n": float(held.n) if held.weights is None else held.weights.effective_n,
        "note": "",
    }
    if not np.isfinite(scores).all():
        missing = ("value_a", "value_b", "difference", "lower", "upper", "p_value")
        return {**row, **dict.fromkeys(missing, math.nan), "note": "some rows score infinity"}
    difference = scores[:, 0] - scores[:, 1]
    parts = (metric, held.model, b.evalset.model)
    drawn = bootstrap_means(
        difference,
        child(seed, "paired bootstrap", *parts),
        weights=held.weights,
        cluster=cluster,
    )
    lower, upper = drawn.interval(confidence)
    tested = sign_flip_test(
        difference,
        child(seed, "sign flips", *parts),
        weights=held.weights,
        cluster=cluster,
    )
    weights = None if held.weights is None else held.weights.values
    means = np.average(scores, axis=0, weights=weights)
    return {
        **row,
        "value_a": float(means[0]),
        "value_b": float(means[1]),
        "difference": float(means[0] - means[1]),
        "lower": float(np.ravel(lower)[0]),
        "upper": float(np.ravel(upper)[0]),
        "p_value": tested.p_value,
        "note": "; ".join(note for note in (drawn.note, tested.note) if note),
    }


def _characteristic(
    a: Evaluation, b: Evaluation, confidence: float, seed: int
) -> dict[str, Any] | None:
    """Gain over a constant band: paired bootstrap of the difference, permutation of the areas."""
    try:
        first, second = (found.view.get("characteristic") for found in (a, b))
    except UnanswerableError:
        return None
    held, note = a.evalset, ""
    cluster = None if held.cluster is None else held.cluster.codes
    if held.n > MOST_ROWS:
        keys = row_keys(held.y, first.bands.error, second.bands.error)
        rows = subsample(keys, MOST_ROWS, seed=seed, name="compare curves")
        first, second = first.take(rows), second.take(rows)
        cluster = None if cluster is None else np.unique(cluster[rows], return_inverse=True)[1]
        note = f"on {MOST_ROWS:,} rows"
    drawn = bootstrap_gain_difference(
        first, second, confidence=confidence, replicates=500, cluster=cluster, seed=seed
    )
    tested = permutation_test(first, second, permutations=2_000, cluster=cluster, seed=seed)
    return {
        "metric": "characteristic_gain",
        "coverage": math.nan,
        "model_a": held.model,
        "model_b": b.evalset.model,
        "value_a": first.gain().value,
        "value_b": second.gain().value,
        "difference": drawn.value,
        "lower": drawn.lower,
        "upper": drawn.upper,
        "p_value": tested.p_value,
        "n": float(held.n) if held.weights is None else held.weights.effective_n,
        "note": "; ".join(part for part in (note, drawn.reason, tested.reason) if part),
    }
