"""Where a model is wrong: a map of congruence errors, the extreme rows, a tree, rejection."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from howsure.core.arrays import AnyArray, BoolArray, FloatArray, IntArray, as_vector
from howsure.core.classes import frozen
from howsure.core.errors import UnanswerableError
from howsure.core.labels import InputColumn, is_numeric
from howsure.core.records import Curve, ResultTable
from howsure.core.rng import child, row_keys
from howsure.predictions import Distribution, EvalSet, Samples
from howsure.stats.bootstrap import subsample
from howsure.stats.trees import grow_tree
from howsure.topics.conditional.forests import edge_of, tree_inputs
from howsure.topics.congruence.null import NullReference
from howsure.topics.congruence_options import MapLayout

# Rows of a gallery: what is looked through at once.
WORST = 15
# The most rows of a t-SNE map: it takes seconds, and a figure shows 300.
MAX_ROWS_OF_MAP = 2_000
"""The most rows of a t-SNE map."""
# Chosen by hand; not tuned. Each label is a column for the tree.
MOST_LABELS = 20
"""The most labels of one column that a tree looks at."""
LOSSES = {"rejection": "|error|", "rejection_nll": "NLL"}
"""What each rejection curve is of."""
# Two lines of a table cell.
_MAX_CHARACTERS = 160
# More than the 120 points that a figure draws of one curve.
_MAX_POINTS = 200
# Tenths: enough to see a trend, few enough that each has rows. Not tuned.
_BINS_OF_INPUT = 10


def map_table(
    rows: FloatArray,
    values: FloatArray,
    null: NullReference | None,
    names: AnyArray,
    *,
    second: tuple[str, FloatArray],
    features: Mapping[str, AnyArray] | None = None,
    first: Sequence[str] = (),
    outside: BoolArray | None = None,
    layout: MapLayout = "inputs",
    model: str = "",
    seed: int = 0,
) -> ResultTable:
    """Congruence errors over a plane: of two inputs in their own units, where there are such.

    Features named by `first` go before those along which errors differ most. Rows `outside` a
    reference have a place and no error; without `null` no row has one.
    """
    notes = "Where the predictive distribution is far from the data; p-values are pointwise."
    if null is None:
        notes = "Rows outside the reference."
    chosen = np.arange(len(rows))
    telling = _telling(features or {}, values) if layout == "inputs" else []
    telling.sort(key=lambda axis: first.index(axis[0]) if axis[0] in first else len(first))
    if telling:
        axes = [*telling, second][:2]
        plane = np.stack([axis for _, axis in axes], axis=1)
        titles = (axes[0][0], axes[1][0])
    elif rows.shape[1] == 1:
        plane = np.stack([rows[:, 0], second[1]], axis=1)
        titles = ("input", second[0])
    elif layout == "t-sne" and len(rows) > 3:
        if len(rows) > MAX_ROWS_OF_MAP:
            keys = row_keys(rows, values)
            chosen = np.sort(subsample(keys, MAX_ROWS_OF_MAP, seed=seed, name="t-sne"))
            notes += f" t-SNE of {len(chosen):,} of {len(rows):,} rows, chosen at random."
        plane = _neighbours(rows[chosen], seed)
        titles = ("first t-SNE coordinate", "second t-SNE coordinate")
        notes += " t-SNE keeps neighbours together; distances between clusters mean nothing."
    else:
        plane = _principal(rows)
        titles = ("first principal coordinate", "second principal coordinate")
    columns = {
        "row": names[chosen],
        "first": plane[:, 0],
        "second": plane[:, 1],
        "cce": values[chosen],
    }
    if null is not None:
        columns["perfect"] = null.point_expected[chosen]
        columns["p_value"] = null.point_p_value[chosen]
    if outside is not None:
        columns["outside"] = outside[chosen]
    labels = {"first": titles[0], "second": titles[1]}
    labels |= {"cce": "CCE", "perfect": "CCE of a perfect model"}
    return ResultTable(name="cce_map", columns=columns, labels=labels, model=model, notes=notes)


def _telling(features: Mapping[str, AnyArray], values: FloatArray) -> list[tuple[str, FloatArray]]:
    """The numeric inputs, those first along which errors differ most: by ranks in bins."""
    finite = np.isfinite(values)
    order = np.argsort(values[finite], kind="stable")
    ranks = np.argsort(order, kind="stable").astype(np.float64)
    ranked = []
    for name, column in features.items():
        if column.dtype.kind not in "iuf" or len(np.unique(column)) < 3:
            continue
        number = column.astype(np.float64)
        edges = np.unique(np.quantile(number, np.linspace(0, 1, _BINS_OF_INPUT + 1)[1:-1]))
        bins = np.searchsorted(edges, number[finite], side="right")
        counts = np.bincount(bins)
        means = np.bincount(bins, weights=ranks) / np.maximum(counts, 1)
        between = float(counts @ np.square(means - ranks.mean())) if finite.any() else 0.0
        ranked.append((between, name, number))
    ranked.sort(key=lambda entry: -entry[0])
    return [(name, number) for _, name, number in ranked]


def extremes(values: FloatArray) -> IntArray:
    """Places of the highest errors, the highest first, then of the lowest, the lowest first."""
    order = np.argsort(values, kind="stable")
    count = min(WORST, len(order) // 2)
    return np.concatenate([order[::-1][:count], order[:count]])


def extremes_table(
    evalset: EvalSet,
    values: FloatArray,
    places: IntArray,
    further: Mapping[str, AnyArray],
) -> ResultTable:
    """The rows of the highest and the lowest error, with what is known of them."""
    count = len(places) // 2
    columns: dict[str, AnyArray] = {
        "kind": np.array(["worst"] * count + ["best"] * count, dtype=object),
        "row": evalset.row_names()[places],
        "cce": values[places],
        "y": evalset.y[places],
    }
    forecast = point_of(evalset)
    if forecast is not None:
        columns["prediction"] = forecast[places]
    for name, value in further.items():
        columns.setdefault(name, np.array([_short(value[i]) for i in places], dtype=object))
    for name, value in evalset.features.items():
        columns.setdefault(name, value[places])
    for name, group in evalset.groups.items():
        columns.setdefault(name, group.labels[group.codes[places]])
    return ResultTable(
        name="cce_rows",
        columns=columns,
        model=evalset.model,
        notes="Rows whose predictive distribution is farthest from the data and closest to it.",
    )


def tree_table(
    evalset: EvalSet, values: FloatArray, seed: int, proven: bool, notes: str = ""
) -> ResultTable | None:
    """Which features or groups explain high errors: leaves of a shallow tree.

    Errors differ among leaves of a right model too, for they are smooth and a tree looks for what
    differs. So a leaf is worse than the others only where the model is `proven` to be wrong.
    """
    named = _splittable(evalset)
    if not named or evalset.n < 100:
        return None
    table = np.stack(list(named.values()), axis=1)
    held_out = np.ones(evalset.n, dtype=np.bool_)
    held_out[subsample(row_keys(evalset.y, table), evalset.n // 2, seed=seed, name="tree")] = False
    inputs, levels = tree_inputs(table)
    least = max(evalset.n // 40, 10)
    tree = grow_tree(inputs[~held_out], values[~held_out], depth=2, least=least)
    leaf = tree.leaf_of(inputs)
    rules = _rules(tree, list(named), levels)
    rows = [(rules[int(n)], *_leaf(values, leaf == n, held_out)) for n in np.unique(leaf)]
    rows.sort(key=lambda row: -row[2])
    headings = ("rows", "cce", "standard_error", "cce_when_grown")
    where, *numbers = zip(*rows, strict=True)
    columns: dict[str, AnyArray] = {"where": np.array(where, dtype=object)}
    columns |= {head: np.array(values) for head, values in zip(headings, numbers, strict=True)}
    cce, finite = columns["cce"], np.isfinite(columns["cce"])
    overall = np.average(cce[finite], weights=columns["rows"][finite]) if finite.any() else math.nan
    columns["worse"] = proven & (cce - 1.96 * columns["standard_error"] > overall)
    how = "A shallow tree grown on half of the rows; cce is the mean on the other half."
    return ResultTable(
        name="cce_tree", columns=columns, model=evalset.model, notes=f"{how} {notes}".strip()
    )


def rejection_curves(evalset: EvalSet, scores: FloatArray) -> tuple[Curve, ...]:
    """Mean |error| and NLL of the rows kept when those of the highest CCE are withheld."""
    curves: list[Curve] = []
    surprise = _surprise(evalset)
    for name, losses in losses_of(evalset).items():
        notes = "Rows are rejected by their CCE, which needs no label."
        infinite = 0
        if name == "rejection" and surprise is not None:
            infinite = int((~np.isfinite(surprise)).sum())
        if infinite:
            plural = "rows" if infinite > 1 else "row"
            notes += f" The NLL is infinite at {infinite:,} {plural}, so that it has no curve."
        fall = rejection_curve(scores, losses)
        last = max(len(fall.rejected) - evalset.fewest, 0)  # where so many rows are kept
        places = np.unique(np.linspace(0, last, _MAX_POINTS).astype(np.int64))
        notes += (
            f" Mean over all shares: {fall.area:.4g}, in random order {fall.random_area:.4g}, in "
            f"oracle order {fall.oracle_area:.4g}."
        )
        draw = partial(
            Curve,
            x=fall.rejected[places],
            model=evalset.model,
            x_label="Share of rows rejected",
            y_label=f"Mean {LOSSES[name]} of rows kept",
        )
        reference = np.full(len(places), fall.random)
        by_score, by_loss = fall.error[places], fall.oracle[places]
        curves += [
            draw(name=name, y=by_score, reference=reference, area=fall.area, notes=notes),
            draw(name=f"{name}_oracle", y=by_loss, area=fall.oracle_area),
        ]
    return tuple(curves)


def losses_of(evalset: EvalSet) -> dict[str, FloatArray]:
    """What rejection may lower, row by row, under the names of its curves."""
    losses: dict[str, FloatArray] = {}
    forecast = point_of(evalset)
    if forecast is not None:
        losses["rejection"] = np.abs(evalset.y - forecast)
    surprise = _surprise(evalset)
    if surprise is not None and np.isfinite(surprise).all():
        losses["rejection_nll"] = surprise
    return losses


def point_of(evalset: EvalSet) -> FloatArray | None:
    """The point forecast: as given, else the law's mean, else its median."""
    if evalset.point is not None:
        return evalset.point
    for predictive in evalset.predictions:
        if isinstance(predictive, (Distribution, Samples)):
            try:
                return predictive.point()
            except UnanswerableError:  # a law without a mean has a median
                return predictive.quantile([0.5])[:, 0]
    return None


def _surprise(evalset: EvalSet) -> FloatArray | None:
    """Negative log likelihood of each row; None where no prediction holds a density."""
    for predictive in evalset.predictions:
        try:
            return -predictive.log_density(evalset.y)
        except UnanswerableError:
            continue
    return None


def _principal(rows: FloatArray) -> FloatArray:
    """The two principal coordinates, each axis pointing to where its largest loading is positive.

    From the covariance where there are more rows than columns: the map needs few digits.
    """
    centred = rows - rows.mean(axis=0)
    if len(rows) < rows.shape[1]:
        axes = np.linalg.svd(centred, full_matrices=False)[2][:2].T
    else:
        axes = np.linalg.eigh(centred.T @ centred)[1][:, ::-1][:, :2]
    largest = np.take_along_axis(axes, np.abs(axes).argmax(axis=0)[None], axis=0)
    plane = np.zeros((len(rows), 2))
    plane[:, : axes.shape[1]] = centred @ (axes * np.where(largest < 0.0, -1.0, 1.0))
    return plane


def _neighbours(rows: FloatArray, seed: int) -> FloatArray:
    from sklearn.manifold import TSNE
    from threadpoolctl import threadpool_limits

    state = int(child(seed, "t-sne").integers(2**31))
    perplexity = min(30.0, (len(rows) - 1) / 3)
    started = _principal(rows)
    scale = float(started[:, 0].std()) or 1.0
    # As scikit-learn scales a start of principal components: so near that all can still move.
    model = TSNE(random_state=state, perplexity=perplexity, init=1e-4 * started / scale)
    with threadpool_limits(1):  # of the OpenMP that was loaded just now
        return np.asarray(model.fit_transform(rows), dtype=np.float64)


def _leaf(
    values: FloatArray, inside: BoolArray, held_out: BoolArray
) -> tuple[float, float, float, float]:
    fresh, grown = values[inside & held_out], values[inside & ~held_out]
    error = float(fresh.std(ddof=1) / math.sqrt(len(fresh))) if len(fresh) > 1 else math.nan
    mean = float(fresh.mean()) if len(fresh) else math.nan
    return float(len(fresh)), mean, error, float(grown.mean()) if len(grown) else math.nan


def _splittable(evalset: EvalSet) -> dict[str, FloatArray]:
    """Inputs as columns of numbers, those that are numbers first; then groups."""
    features = sorted(evalset.features.items(), key=lambda pair: not is_numeric(pair[1]))
    groups = [
        (name, group.values().astype(str))
        for name, group in evalset.groups.items()
        if name not in evalset.features
    ]
    return {
        column.name: column.read(values)
        for name, values in (*features, *groups)
        for column in InputColumn.columns_of(name, values, MOST_LABELS, both=True)
    }


def _rules(tree: Any, names: list[str], levels: dict[int, FloatArray]) -> dict[int, str]:
    """What leads to each node of a fitted tree, in words."""
    rules = {0: "all rows"}
    for node in range(tree.node_count):
        left, right = int(tree.children_left[node]), int(tree.children_right[node])
        if left < 0:
            continue
        column = int(tree.feature[node])
        name, edge = names[column], edge_of(levels, column, float(tree.threshold[node]))
        before = "" if node == 0 else f"{rules[node]}, "
        low, high = f"{name} ≤ {edge:.4g}", f"{name} > {edge:.4g}"
        if "=" in name and edge == 0.5:
            low, high = f"not {name}", name
        rules[left], rules[right] = before + low, before + high
    return rules


def _short(value: object) -> str:
    text = " ".join(str(value).split())
    return text if len(text) <= _MAX_CHARACTERS else text[: _MAX_CHARACTERS - 1] + "…"


# ---- rejection: how error falls as the rows that score worst are withheld ------------------------


@frozen(kw_only=True)
class RejectionCurve:
    """Mean error of the rows kept against the share rejected.

    Attributes
    ----------
    rejected : ndarray of float, shape (n,)
        Share rejected, 0, 1/n, …, (n−1)/n.
    error : ndarray of float, shape (n,)
        Mean error of the rows kept, those with the highest scores rejected first.
    random : float
        Mean error of all rows: what random rejection keeps in expectation.
    oracle : ndarray of float, shape (n,)
        The same with the largest errors rejected first.
    area, random_area, oracle_area : float
        Means of the three over the shares; lower is better.
    gain : float
        (random_area − area) / (random_area − oracle_area): 1 for the oracle, 0 for random
        rejection, negative for worse; NaN where all errors are equal.
    """

    rejected: FloatArray
    error: FloatArray
    random: float
    oracle: FloatArray
    area: float
    random_area: float
    oracle_area: float
    gain: float


def rejection_curve(scores: npt.ArrayLike, errors: npt.ArrayLike) -> RejectionCurve:
    """Error of the rows kept when the rows with the highest scores are withheld.

    Examples
    --------
    >>> curve = rejection_curve([1.0, 2.0, 3.0], [0.0, 1.0, 5.0])
    >>> curve.error.tolist(), curve.gain
    ([2.0, 0.5, 0.0], 1.0)
    """
    score = as_vector(scores, "scores")
    loss = as_vector(errors, "errors", length=len(score))
    kept_errors = _kept_means(score, loss)
    oracle = _kept_means(loss, loss)
    overall = float(loss.mean())
    area, best = float(kept_errors.mean()), float(oracle.mean())
    flat = np.ptp(loss) == 0.0
    return RejectionCurve(
        rejected=np.arange(len(loss)) / len(loss),
        error=kept_errors[::-1],
        random=overall,
        oracle=oracle[::-1],
        area=area,
        random_area=overall,
        oracle_area=best,
        gain=float("nan") if flat else (overall - area) / (overall - best),
    )


def _kept_means(score: FloatArray, loss: FloatArray) -> FloatArray:
    """Expected mean loss of the 1, 2, …, n rows with the lowest scores."""
    order = np.argsort(score, kind="stable")
    ranked = score[order]
    starts = np.flatnonzero(np.r_[True, ranked[1:] != ranked[:-1]])
    sizes = np.diff(np.r_[starts, len(ranked)])
    tied = np.add.reduceat(loss[order], starts) / sizes
    return np.cumsum(np.repeat(tied, sizes)) / np.arange(1, len(loss) + 1)
