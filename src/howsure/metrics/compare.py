"""Models on the same rows: paired differences of every measure that is a mean of row scores.

Resamples, sign patterns and swaps are drawn once for all models: a resampled mean of a
difference is the difference of two resampled means, so pairs cost next to nothing.
"""

from __future__ import annotations

import contextlib
import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from howsure.core.arrays import IntArray
from howsure.core.errors import UnanswerableError
from howsure.core.records import Table
from howsure.core.rng import child, row_keys
from howsure.metrics.catalogue import catalogue
from howsure.metrics.characteristic import CharacteristicCurve
from howsure.metrics.characteristic.resampling import gain_differences
from howsure.metrics.characteristic.significance import permutation_tests
from howsure.metrics.measure import Evaluation
from howsure.predictions import check_same_rows, content_order
from howsure.stats.bootstrap import bootstrap_means, subsample
from howsure.stats.permutation import sign_flip_tests

MOST_ROWS = 20_000
MOST_MODELS = 10
"""The most models of which all pairs are compared, and all of which are shown in detail."""
BEST = 3
"""With more models than that, how many of the best all others are compared with."""
DECIDING = ("crps", "interval_score", "weighted_interval_score", "mae")
"""The measures that decide which model is best: the first that all models have."""

Pair = tuple[int, int]
Key = tuple[str, float]


def compare(evaluations: Sequence[Evaluation], *, confidence: float = 0.95, seed: int = 0) -> Table:
    """Paired differences between models on the same rows."""
    sets = [found.evalset for found in evaluations]
    check_same_rows(sets)
    order = content_order(sets)
    pairs, about = _pairs(evaluations)
    by_pair: dict[Pair, list[dict[str, Any]]] = {pair: [] for pair in pairs}
    for key in dict.fromkeys(_label(key) for found in evaluations for key in found.scores):
        for pair, row in _paired(evaluations, key, pairs, order, confidence, seed):
            by_pair[pair].append(row)
    for pair, row in _trades(evaluations, pairs, confidence, seed):
        by_pair[pair].append(row)
    rows = [
        {**row, "model_a": sets[a].model, "model_b": sets[b].model, "n": _rows_that_count(sets[a])}
        for (a, b), found in by_pair.items()
        for row in found
    ]
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
            f"bootstrap interval; the p-value permutes the signs of paired differences.{about}"
        ),
    )


def leaders(evaluations: Sequence[Evaluation]) -> tuple[list[int], str]:
    """The places of the models, those of the lowest mean score first, and which score that is."""
    for metric in DECIDING:
        means = []
        for found in evaluations:
            values = [r.value for r in found.records if r.metric == metric]
            means.append(values[0] if values else math.nan)
        if np.isfinite(means).all():
            return np.argsort(means, kind="stable").tolist(), metric
    return list(range(len(evaluations))), ""


def _pairs(evaluations: Sequence[Evaluation]) -> tuple[list[Pair], str]:
    """Which models to compare, and what to say of the choice."""
    every = list(itertools.combinations(range(len(evaluations)), 2))
    if len(evaluations) <= MOST_MODELS:
        return every, ""
    order, metric = leaders(evaluations)
    best = order[:BEST]
    how = f"of lowest mean {catalogue()[metric].title}" if metric else "that came first"
    names = ", ".join(evaluations[place].evalset.model for place in best)
    about = (
        f" With more than {MOST_MODELS} models, all {len(evaluations):,} are compared with the "
        f"{BEST} {how} alone ({names}), not with each other."
    )
    return [pair for pair in every if set(pair).intersection(best)], about


def _rows_that_count(held: Any) -> float:
    return float(held.n) if held.weights is None else float(held.weights.effective_n)


def _label(key: Key) -> Key:
    """The key of a measure, that of an unknown coverage equal to itself."""
    return key[0], math.nan if math.isnan(key[1]) else key[1]


def _paired(
    evaluations: Sequence[Evaluation],
    key: Key,
    pairs: Sequence[Pair],
    order: IntArray,
    confidence: float,
    seed: int,
) -> Iterator[tuple[Pair, dict[str, Any]]]:
    """One measure's differences, of every pair whose two models have it."""
    first = evaluations[0].evalset
    known = {place: found.row_scores(*key) for place, found in enumerate(evaluations)}
    scores = {place: held.astype(np.float64) for place, held in known.items() if held is not None}
    row = {"metric": key[0], "coverage": key[1], "note": ""}
    numbers = ("value_a", "value_b", "difference", "lower", "upper", "p_value")
    row |= dict.fromkeys(numbers, math.nan)
    usable = [place for place, held in scores.items() if np.isfinite(held).all()]
    asked = [pair for pair in pairs if pair[0] in usable and pair[1] in usable]
    for pair in pairs:
        if pair not in asked and pair[0] in scores and pair[1] in scores:
            yield pair, {**row, "note": "some rows score infinity"}
    if not asked:
        return
    weights = None if first.weights is None else first.weights.take(order)
    cluster = None if first.cluster is None else first.cluster.codes[order]
    # Equal models share a column, so that they differ by exactly 0. The first model's comes last,
    # where it decides the order of units: one more model leaves that as it is.
    alike: dict[bytes, int] = {}
    column = {p: alike.setdefault(scores[p][order].tobytes(), len(alike)) for p in usable}
    table = np.stack([np.frombuffer(held) for held in alike], axis=1)
    values = np.average(table, axis=0, weights=None if weights is None else weights.values)
    columns = [(column[a], column[b]) for a, b in asked]
    tests = sign_flip_tests(
        table, columns, child(seed, "sign flips", key[0]), weights=weights, cluster=cluster
    )
    drawn = bootstrap_means(
        table[:, ::-1],
        child(seed, "paired bootstrap", key[0]),
        weights=weights,
        cluster=cluster,
    )
    ahead, behind = (-1 - np.array(side) for side in zip(*columns, strict=True))
    gaps = replace(
        drawn,
        estimate=drawn.estimate[ahead] - drawn.estimate[behind],
        replicates=drawn.replicates[:, ahead] - drawn.replicates[:, behind],
    )
    for place, (lower, upper) in enumerate(zip(*gaps.interval(confidence), strict=True)):
        (one, two), tested = columns[place], tests[place]
        yield (
            asked[place],
            {
                **row,
                "value_a": float(values[one]),
                "value_b": float(values[two]),
                "difference": float(values[one] - values[two]),
                "lower": float(lower),
                "upper": float(upper),
                "p_value": tested.p_value,
                "note": "; ".join(note for note in (drawn.note, tested.note) if note),
            },
        )


def _trades(
    evaluations: Sequence[Evaluation], pairs: Sequence[Pair], confidence: float, seed: int
) -> Iterator[tuple[Pair, dict[str, Any]]]:
    """Gain over a constant band: paired bootstrap of the difference, permutation of the areas."""
    curves: dict[int, CharacteristicCurve] = {}
    for place, found in enumerate(evaluations):
        with contextlib.suppress(UnanswerableError):
            if not len(found.view.get("recentred_rows")):
                curves[place] = found.view.get("characteristic")
    asked = [(a, b) for a, b in pairs if a in curves and b in curves]
    if not asked:
        return
    held, note = evaluations[0].evalset, ""
    cluster = None if held.cluster is None else held.cluster.codes
    if held.n > MOST_ROWS:
        keys = row_keys(held.y, *(curve.bands.error for curve in curves.values()))
        rows = subsample(keys, MOST_ROWS, seed=seed, name="compare curves")
        curves = {place: curve.take(rows) for place, curve in curves.items()}
        cluster = None if cluster is None else np.unique(cluster[rows], return_inverse=True)[1]
        note = f"on {MOST_ROWS:,} rows"
    column = {place: index for index, place in enumerate(curves)}
    columns = [(column[a], column[b]) for a, b in asked]
    every = list(curves.values())
    gains = gain_differences(
        every, columns, confidence=confidence, replicates=500, cluster=cluster, seed=seed
    )
    tests = permutation_tests(every, columns, permutations=2_000, cluster=cluster, seed=seed)
    values = {place: curve.gain().value for place, curve in curves.items()}
    for pair, drawn, tested in zip(asked, gains, tests, strict=True):
        yield (
            pair,
            {
                "metric": "characteristic_gain",
                "coverage": math.nan,
                "value_a": values[pair[0]],
                "value_b": values[pair[1]],
                "difference": drawn.value,
                "lower": drawn.lower,
                "upper": drawn.upper,
                "p_value": tested.p_value,
                "note": "; ".join(part for part in (note, drawn.reason, tested.reason) if part),
            },
        )
