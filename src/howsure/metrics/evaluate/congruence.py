"""Conditional congruence of an evaluation set: is the belief right at every input, and where not?

Needs inputs (an embedding) beside the beliefs. One mode serves all models of a comparison.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from howsure.core.arrays import FloatArray
from howsure.core.errors import InputError, UnanswerableError
from howsure.core.records import Curve, Direction, Notion, Record, Table
from howsure.core.rng import child, row_keys
from howsure.metrics.catalogue import catalogue
from howsure.metrics.congruence import (
    Belief,
    CongruenceReference,
    Draws,
    Empirical,
    Normals,
    NullReference,
    Support,
    mean_cce,
    null_reference,
    rejection_curve,
)
from howsure.predictions import Distribution, EvalSet, Prediction, Samples
from howsure.stats.bootstrap import subsample

Mode = Literal["exact", "samples"]

MOST_ROWS = 2_000
DRAWS = 5
REPLICATES = 99
BOOTSTRAPS = 10
WIDE = 16
MOST_SUPPORT = 4_000_000
WORST = 15


@dataclass(frozen=True, slots=True)
class CongruenceReport:
    """What conditional congruence tells of one model: its record, and where it is wrong."""

    record: Record
    tables: tuple[Table, ...] = ()
    curves: tuple[Curve, ...] = ()


def congruence_mode(evalsets: Sequence[EvalSet]) -> Mode:
    """The mode that serves all models: exact where every belief embeds exactly."""
    return "exact" if all(_exact(held) is not None for held in evalsets) else "samples"


def belief_of(held: EvalSet, mode: Mode, *, seed: int = 0) -> Belief:
    """The predictive laws of an evaluation set in the form that congruence takes.

    Parameters
    ----------
    held : EvalSet
        With a distribution or samples.
    mode : {"exact", "samples"}
        No Monte-Carlo noise, or five draws a row.
    seed : int
        Fixes the draws.

    Returns
    -------
    Belief

    Raises
    ------
    UnanswerableError
        If the content holds no predictive law, or none that embeds exactly.

    Examples
    --------
    >>> held = EvalSet.checked([0.0, 1.0], Distribution.normal([0.0, 1.0], [1.0, 2.0]))
    >>> type(belief_of(held, "exact")).__name__
    'Normals'
    """
    if mode == "exact":
        found = _exact(held)
        if found is None:
            raise UnanswerableError("the beliefs have no exact embedding")
        return found
    return Draws(_law(held).sample(child(seed, "congruence draws", held.model), DRAWS))


def _law(held: EvalSet) -> Prediction:
    for belief in held.beliefs:
        if isinstance(belief, (Distribution, Samples)):
            return belief
    raise UnanswerableError("congruence needs a predictive law: a distribution or samples")


def _exact(held: EvalSet) -> Belief | None:
    """The exact embedding, where there is one; None for continuous laws other than normal."""
    law = _law(held)
    if isinstance(law, Samples):
        return Empirical(law.sorted_samples)
    assert isinstance(law, Distribution)
    if law.law.name == "norm":
        return Normals(law.parameters["loc"], law.parameters["scale"])
    if not law.discrete:
        return None
    ends = law.quantile([1e-12, 1.0 - 1e-12])
    width = int((ends[:, 1] - ends[:, 0]).max()) + 1
    if width * held.n > MOST_SUPPORT:
        return None
    values = ends[:, :1] + np.arange(width)
    parameters = {name: value[:, None] for name, value in law.parameters.items()}
    masses = np.exp(law.law.log_density(values, parameters))
    return Support(values, masses / masses.sum(axis=1, keepdims=True))


def assess_congruence(
    held: EvalSet, mode: Mode, *, seed: int = 0, everything: bool = False
) -> CongruenceReport:
    """Mean CCE beside that of a perfectly congruent model, and where the model is wrong.

    Parameters
    ----------
    held : EvalSet
        With an embedding of its inputs.
    mode : {"exact", "samples"}
        One for all models that are compared.
    seed : int
        Fixes draws and the choice of rows.
    everything : bool
        Past 2,000 rows, rows are chosen at random unless this is true.

    Returns
    -------
    CongruenceReport
        Tables ``cce_map`` (two principal coordinates of the inputs, and CCE), ``cce_rows`` (best
        and worst) and ``cce_tree`` (which features explain high CCE, with held-out means).
    """
    try:
        part = reference_rows(held, seed=seed, everything=everything)
        reference = fitted_reference(part, mode, seed=seed)
        null = right_model(reference, part, mode, seed=seed)
        spread = mean_cce(reference, bootstraps=BOOTSTRAPS, seed=seed)
    except (UnanswerableError, InputError) as error:
        return CongruenceReport(_record(held, math.nan, str(error)))
    score = reference.score()
    record = _record(
        held,
        null.observed,
        f"on {part.n:,} of {held.n:,} rows" if part.n < held.n else "",
        n=float(part.n),
        standard_error=spread.data_sd,
        null=null.expected,
        options={
            **score.options,
            "p_value": null.p_value,
            "perfect_upper": null.upper,
            "draws": float(score.draws),
        },
    )
    names = part.row_names()
    tables = [_map(part, score.values, null, names), _extremes(part, score.values, names)]
    tree = _tree(part, score.values, seed)
    tables = [*tables, *([] if tree is None else [tree])]
    return CongruenceReport(record, tuple(tables), _rejection(part, score.values))


def reference_rows(held: EvalSet, *, seed: int = 0, everything: bool = False) -> EvalSet:
    """The rows that a reference is fitted on: all, or 2,000 chosen by their content.

    Raises
    ------
    UnanswerableError
        If there are no inputs or no predictive law, or rows are weighted or clustered.
    """
    if held.embedding is None:
        raise UnanswerableError("congruence needs inputs: features or an embedding")
    if held.weights is not None or held.cluster is not None:
        raise UnanswerableError("congruence needs independent, unweighted rows")
    _law(held)
    if everything or held.n <= MOST_ROWS:
        return held
    keys = row_keys(held.y, held.embedding)
    return held.take(np.sort(subsample(keys, MOST_ROWS, seed=seed, name="congruence")))


def fitted_reference(part: EvalSet, mode: Mode, *, seed: int = 0) -> CongruenceReference:
    """Fit a reference on labelled rows; it scores any inputs without labels."""
    assert part.embedding is not None
    kernel = "polynomial" if part.embedding.shape[1] > WIDE else "rbf"
    belief = belief_of(part, mode, seed=seed)
    return CongruenceReference(part.embedding, part.y, belief, kernel=kernel)


def right_model(
    reference: CongruenceReference,
    part: EvalSet,
    mode: Mode,
    *,
    grid: FloatArray | None = None,
    seed: int = 0,
) -> NullReference:
    """What the errors would be if every y were drawn from its belief."""
    outcomes: FloatArray | None = None
    if mode == "samples":
        outcomes = _law(part).sample(child(seed, "congruence null", part.model), REPLICATES)
    return null_reference(reference, grid, outcomes=outcomes, replicates=REPLICATES, seed=seed)


def _record(held: EvalSet, value: float, reason: str, **known: Any) -> Record:
    metric = catalogue()["mean_cce"]
    return Record(
        metric=metric.name,
        value=value,
        direction=Direction.LOWER,
        units=metric.units,
        notion=Notion.POINTWISE,
        model=held.model,
        reason=reason,
        source="embedding",
        **{"n": float(held.n), **known},
    )


def _map(part: EvalSet, values: FloatArray, null: NullReference, names: npt.NDArray[Any]) -> Table:
    assert part.embedding is not None
    centred = part.embedding - part.embedding.mean(axis=0)
    if centred.shape[1] == 1:
        plane = np.stack([part.embedding[:, 0], part.y], axis=1)
        titles = {"first": "input", "second": "y"}
    else:
        left, scale, _ = np.linalg.svd(centred, full_matrices=False)
        plane = left[:, :2] * scale[:2]
        titles = {"first": "first principal coordinate", "second": "second principal coordinate"}
    return Table(
        name="cce_map",
        columns={
            "row": names,
            "first": plane[:, 0],
            "second": plane[:, 1],
            "cce": values,
            "perfect": null.point_expected,
            "p_value": null.point_p_value,
        },
        labels={**titles, "cce": "CCE", "perfect": "CCE of a right model"},
        model=part.model,
        notes="Where the predictive law is far from the data; the p-values are pointwise.",
    )


def _rejection(part: EvalSet, values: FloatArray) -> tuple[Curve, ...]:
    """Mean |error| of the rows kept when those with the highest CCE are withheld."""
    errors = np.abs(part.y - _law(part).point())
    found = rejection_curve(values, errors)
    kept = np.unique(np.linspace(0, len(found.rejected) - 1, 200).astype(np.int64))
    x_label, y_label = "Share of rows rejected", "Mean |error| of rows kept"
    return (
        Curve(
            name="rejection",
            x=found.rejected[kept],
            y=found.error[kept],
            reference=np.full(len(kept), found.random),
            model=part.model,
            area=found.area,
            x_label=x_label,
            y_label=y_label,
            notes="Rows are withheld by their CCE, which needs no label.",
        ),
        Curve(
            name="rejection_oracle",
            x=found.rejected[kept],
            y=found.oracle[kept],
            model=part.model,
            area=found.oracle_area,
            x_label=x_label,
            y_label=y_label,
        ),
    )


def _extremes(part: EvalSet, values: FloatArray, names: npt.NDArray[Any]) -> Table:
    order = np.argsort(values)
    count = min(WORST, len(order) // 2)
    rows = np.r_[order[::-1][:count], order[:count]]
    columns: dict[str, npt.NDArray[Any]] = {
        "kind": np.array(["worst"] * count + ["best"] * count, dtype=object),
        "row": names[rows],
        "cce": values[rows],
        "y": part.y[rows],
    }
    columns |= {name: value[rows] for name, value in part.features.items() if name not in columns}
    return Table(
        name="cce_rows",
        columns=columns,
        model=part.model,
        notes="Rows where the predictive law is farthest from the data, and nearest to it.",
    )


def _tree(part: EvalSet, values: FloatArray, seed: int) -> Table | None:
    """Leaves of a shallow tree grown on half of the rows, with their means on the other half."""
    named = _numeric_features(part)
    if not named or part.n < 100:
        return None
    from sklearn.tree import DecisionTreeRegressor

    table = np.stack(list(named.values()), axis=1)
    keys = row_keys(part.y, table)
    held_out = np.ones(part.n, dtype=np.bool_)
    held_out[subsample(keys, part.n // 2, seed=seed, name="tree")] = False
    tree = DecisionTreeRegressor(max_depth=2, min_samples_leaf=max(part.n // 20, 10))
    tree.fit(table[~held_out], values[~held_out])
    leaf, seen = tree.apply(table), np.unique(tree.apply(table))
    rules = _rules(tree.tree_, list(named))
    rows = [(rules[int(node)], *_leaf(values, leaf == node, held_out)) for node in seen]
    rows.sort(key=lambda row: -row[2])
    headings = ("rows", "cce", "standard_error", "cce_when_grown")
    columns: dict[str, npt.NDArray[Any]] = {
        "where": np.array([row[0] for row in rows], dtype=object)
    }
    for place, heading in enumerate(headings, start=1):
        columns[heading] = np.array([row[place] for row in rows])
    return Table(
        name="cce_tree",
        columns=columns,
        model=part.model,
        notes="A shallow tree grown on half of the rows; cce is the mean on the other half.",
    )


def _leaf(
    values: FloatArray, inside: npt.NDArray[np.bool_], held_out: npt.NDArray[np.bool_]
) -> tuple[float, float, float, float]:
    fresh, grown = values[inside & held_out], values[inside & ~held_out]
    error = float(fresh.std(ddof=1) / math.sqrt(len(fresh))) if len(fresh) > 1 else math.nan
    mean = float(fresh.mean()) if len(fresh) else math.nan
    return float(len(fresh)), mean, error, float(grown.mean()) if len(grown) else math.nan


def _numeric_features(part: EvalSet) -> dict[str, FloatArray]:
    """Numbers as they are; each common label of other features as an indicator."""
    found: dict[str, FloatArray] = {}
    for name, value in part.features.items():
        if value.dtype.kind in "biuf":
            found[name] = value.astype(np.float64)
            continue
        labels, counts = np.unique(value.astype(str), return_counts=True)
        for label in labels[np.argsort(-counts)][:10]:
            found[f"{name}={label}"] = (value.astype(str) == label).astype(np.float64)
    return found


def _rules(tree: Any, names: list[str]) -> dict[int, str]:
    """What leads to each node of a fitted scikit-learn tree, in words."""
    rules = {0: "all rows"}
    for node in range(tree.node_count):
        left, right = int(tree.children_left[node]), int(tree.children_right[node])
        if left < 0:
            continue
        name, edge = names[int(tree.feature[node])], float(tree.threshold[node])
        before = "" if node == 0 else f"{rules[node]}, "
        low, high = f"{name} ≤ {edge:.4g}", f"{name} > {edge:.4g}"
        if "=" in name and edge == 0.5:
            low, high = f"not {name}", name
        rules[left], rules[right] = before + low, before + high
    return rules
