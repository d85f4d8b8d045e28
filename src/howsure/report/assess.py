"""From predictions to a verdict."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from howsure._version import __version__
from howsure.core.errors import InputError, UnanswerableError
from howsure.core.records import Curve, Record, Table
from howsure.metrics.evaluate import (
    CongruenceReport,
    Evaluation,
    assess_congruence,
    assess_groups,
    compare,
    congruence_mode,
    curves_of,
    evaluate,
    operating_points,
    worst_rows,
)
from howsure.metrics.evaluate.view import SLOW_ROWS
from howsure.predictions import Distribution, EvalSet, Prediction
from howsure.report.assessment import Assessment
from howsure.report.content import VerdictLine
from howsure.report.verdict import verdict

Progress = Callable[[str], None]


def assess(
    y: npt.ArrayLike,
    prediction: Any = None,
    *,
    point: npt.ArrayLike | None = None,
    x: Any = None,
    groups: Mapping[str, npt.ArrayLike] | npt.ArrayLike | None = None,
    weights: npt.ArrayLike | None = None,
    weights_kind: str = "frequency",
    cluster: npt.ArrayLike | None = None,
    time: npt.ArrayLike | None = None,
    coverage: float | Sequence[float] = (),
    confidence: float = 0.95,
    seed: int = 0,
    model: str = "model",
    slow: Iterable[str] = (),
) -> Assessment:
    """Say how sure predictions are, and whether they are right to be.

    Parameters
    ----------
    y : array-like of shape (n,)
        What happened.
    prediction : Prediction, tuple of Prediction, frozen SciPy law, or mapping
        What was believed. A mapping of model names to predictions compares models on these rows.
    point : array-like of shape (n,), optional
        A point forecast beside it.
    x : array-like of shape (n, d), mapping or data frame, optional
        Inputs of the model; shown with the worst rows.
    groups : mapping of str to array-like of shape (n,), or array-like of shape (n,), optional
        Labels that divide the rows.
    weights : array-like of shape (n,), optional
        How much rows count; `weights_kind` says in which sense.
    weights_kind : {"frequency", "importance"}
        ``frequency``: a weight of two is a row twice.
    cluster, time : array-like of shape (n,), optional
        Which rows depend on each other; when rows happened.
    coverage : float or sequence of float
        Nominal coverages to assess; those of the intervals, or 0.9, if omitted.
    confidence : float
        Confidence of every interval about a number.
    seed : int
        Fixes all draws.
    model : str
        Name of the model.
    slow : iterable of str
        Measures to compute past 50,000 rows that are slow there.

    Returns
    -------
    Assessment
        With ``.verdict``, ``.table()``, ``.records``, ``.figures`` and ``.to_html()``.

    Raises
    ------
    InputError
        If an argument breaks a rule; the message names it.

    Examples
    --------
    >>> from howsure.predictions import Intervals
    >>> rng = np.random.default_rng(0)
    >>> y = rng.normal(size=500)
    >>> result = assess(y, Intervals(np.full(500, -1.0), np.full(500, 1.0), coverage=0.9))
    >>> print(result.verdict.splitlines()[0])
    The 90 % intervals cover 66 % (61.7–70.1): overconfident, the intervals are too narrow.
    """
    shared: dict[str, Any] = {
        "point": point,
        "features": _features(x),
        "groups": _named(groups),
        "weights": weights,
        "weights_kind": weights_kind,
        "cluster": cluster,
        "time": time,
    }
    n = np.asarray(y).shape[0] if np.ndim(y) else 0
    models = prediction if isinstance(prediction, Mapping) else {model: prediction}
    sets = [
        EvalSet.checked(y, _beliefs(belief, n), model=str(name), **shared)
        for name, belief in models.items()
    ]
    wanted = [coverage] if isinstance(coverage, (int, float)) else list(coverage)
    return assess_sets(sets, coverages=wanted, confidence=confidence, seed=seed, slow=slow)


@np.errstate(over="ignore", invalid="ignore", divide="ignore")
def assess_sets(
    evalsets: Sequence[EvalSet],
    *,
    coverages: Sequence[float] = (),
    confidence: float = 0.95,
    seed: int = 0,
    slow: Iterable[str] = (),
    facts: Mapping[str, str] | None = None,
    command: str = "",
    progress: Progress = lambda _: None,
) -> Assessment:
    """Assess evaluation sets of one or several models, as `assess` does.

    Parameters
    ----------
    evalsets : sequence of EvalSet
        One a model; several must hold the same rows.
    coverages, confidence, seed, slow
        As in `assess`.
    facts : mapping of str to str, optional
        What else to state of the input.
    command : str
        What reproduces the assessment.
    progress : callable
        Told in words what is being done.

    Returns
    -------
    Assessment
    """
    if not evalsets:
        raise InputError("evalsets must hold at least one model, got none")
    asked = frozenset(slow)
    records: list[Record] = []
    curves: list[Curve] = []
    tables: list[Table] = []
    done: list[Evaluation] = []
    notes: list[str] = []
    for held in evalsets:
        progress(f"measuring {held.model}")
        found = evaluate(held, coverages=coverages, confidence=confidence, seed=seed, slow=asked)
        progress(f"looking at groups of {held.model}")
        grouped = assess_groups(
            found, confidence=confidence, seed=seed, statistics="group_statistics" in asked
        )
        curves.extend(curves_of(found, confidence=confidence))
        records.extend((*found.records, *grouped.records))
        notes.extend(grouped.notes)
        points = operating_points(found.view, found.coverages)
        made = (grouped.table, points, worst_rows(found))
        tables.extend(table for table in made if table is not None)
        done.append(found)
    progress("looking at every input")
    for report in _congruence(evalsets, seed, asked):
        records.append(report.record)
        tables.extend(report.tables)
        curves.extend(report.curves)
    comparison = None
    if len(done) > 1:
        progress("comparing models")
        comparison = compare(done, confidence=confidence, seed=seed)
        tables.append(comparison)
    lines = _lines(records, evalsets, comparison)
    return Assessment(
        lines=lines,
        records=tuple(records),
        curves=tuple(curves),
        tables=tuple(tables),
        facts={**_facts(done, confidence, seed), **(facts or {}), **_noted(notes)},
        command=command,
    )


def _congruence(
    evalsets: Sequence[EvalSet], seed: int, asked: frozenset[str]
) -> list[CongruenceReport]:
    """Conditional congruence of every model, in one mode; nothing without inputs."""
    if not any(held.features or held.embedding is not None for held in evalsets):
        return []
    wanted = "mean_cce" in asked
    if evalsets[0].n > SLOW_ROWS and not wanted:
        return []
    embedded = [with_embedding(held) for held in evalsets]
    try:
        mode = congruence_mode(embedded)
    except UnanswerableError:
        return []
    return [assess_congruence(held, mode, seed=seed, everything=wanted) for held in embedded]


def with_embedding(held: EvalSet) -> EvalSet:
    """The set with an embedding of its features: numbers scaled, labels as indicators."""
    if held.embedding is not None or not held.features:
        return held
    from howsure.inputs.encoders.tabular import tabular_encoder

    embedding = tabular_encoder(held.features).transform(held.features)
    return replace(held, embedding=embedding)


def _lines(
    records: Sequence[Record], evalsets: Sequence[EvalSet], comparison: Table | None
) -> tuple[VerdictLine, ...]:
    if len(evalsets) == 1:
        return verdict(records, model=evalsets[0].model)
    lines: list[VerdictLine] = []
    for position, held in enumerate(evalsets):
        last = position == len(evalsets) - 1
        for line in verdict(records, model=held.model, comparison=comparison if last else None):
            named = (
                line.text
                if line.question.startswith("Which model")
                else f"{held.model}: {line.text}"
            )
            lines.append(VerdictLine(named, line.tone, line.question))
    return tuple(lines)


def _beliefs(prediction: Any, n: int) -> tuple[Prediction, ...]:
    """Any legal form of a belief as a tuple of predictions."""
    if prediction is None:
        return ()
    if isinstance(prediction, Prediction):
        return (prediction,)
    if hasattr(prediction, "dist") and hasattr(prediction, "args"):
        return (Distribution.from_scipy(prediction, n=n),)
    if isinstance(prediction, (tuple, list)) and all(
        isinstance(part, Prediction) for part in prediction
    ):
        return tuple(prediction)
    raise InputError(
        "prediction must be Intervals, Quantiles, Distribution, Samples, LabelSets, a tuple of "
        f"them, or a frozen SciPy law, got {type(prediction).__name__}"
    )


def _features(x: Any) -> dict[str, npt.ArrayLike] | None:
    if x is None:
        return None
    if isinstance(x, Mapping):
        return {str(name): value for name, value in x.items()}
    if hasattr(x, "columns"):
        import narwhals as nw

        frame = nw.from_native(x, eager_only=True)
        return {name: frame[name].to_numpy() for name in frame.columns}
    table = np.asarray(x)
    table = table[:, None] if table.ndim == 1 else table
    if table.ndim != 2:
        raise InputError(f"x must have two dimensions, got shape {table.shape}")
    return {f"x{j}": table[:, j] for j in range(table.shape[1])}


def _named(groups: Any) -> dict[str, npt.ArrayLike] | None:
    if groups is None:
        return None
    if isinstance(groups, Mapping):
        return {str(name): value for name, value in groups.items()}
    return {str(getattr(groups, "name", None) or "group"): np.asarray(groups)}


def _facts(done: Sequence[Evaluation], confidence: float, seed: int) -> dict[str, str]:
    first = done[0].evalset
    known = [f"{c:g}" for c in done[0].coverages if not math.isnan(c)]
    kinds = [belief.kind for belief in first.beliefs]
    facts = {
        "Rows": f"{first.n:,}",
        "Models": ", ".join(found.evalset.model for found in done),
        "Beliefs": ", ".join([*kinds, *(["point"] if first.point is not None else [])]),
        "Nominal coverage": ", ".join(known) or "unknown",
        "Confidence of intervals": f"{confidence:g}",
        "Seed": str(seed),
        "howsure": __version__,
    }
    if first.groups:
        facts["Groups"] = ", ".join(first.groups)
    if first.weights is not None:
        facts["Weights"] = f"{first.weights.kind}, effective n {first.weights.effective_n:,.1f}"
    if first.cluster is not None:
        facts["Clusters"] = f"{len(first.cluster.labels):,}"
    return facts


def _noted(notes: Sequence[str]) -> dict[str, str]:
    return {"Notes": "; ".join(dict.fromkeys(notes))} if notes else {}
