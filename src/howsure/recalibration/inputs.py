"""Recalibration by inputs: shallow trees say where the mean and the spread must change."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import field, replace
from typing import Any, Self, final

import numpy as np

from howsure.core.arrays import AnyArray, FloatArray, IntArray
from howsure.core.classes import frozen
from howsure.core.errors import InputError
from howsure.core.labels import InputColumn, is_numeric
from howsure.core.text import CountedNote
from howsure.predictions import EvalSet
from howsure.recalibration.base import FittedParameter, RecalibrationMethod, check_factor, counts
from howsure.recalibration.info import FRAMED_KINDS, SHAPE, MethodInfo
from howsure.recalibration.location_scale import (
    Amounts,
    CalibrationRows,
    LocationScale,
    LocationScaleRecalibrator,
)
from howsure.stats.trees import grow_tree
from howsure.topics.conditional.forests import edge_of, node_rules, tree_inputs
from howsure.topics.conditional.view import COMPONENTS, MOST_COLUMNS, MOST_LABELS

# Eight leaves: three inputs may act together, and a leaf of a twelfth of all rows at least leaves
# no more than twelve.
DEPTH = 3
"""Conditions that lead to a leaf, at most."""
# A spread from 30 rows is off by 13 % (1/√60), before it is shrunk. By hand; not tuned.
MIN_ROWS_OF_LEAF = 30
"""Rows of a leaf, at least; a twelfth of all rows if those are more."""
# Ten rows of all beside a leaf of 30: a quarter. By hand; not tuned: larger keeps more of what was
# predicted.
SHRINKAGE = 10.0
"""Rows of all that a leaf is taken together with."""
# Of d inputs the best split of noise gains some 2 log d variances; ten beside it are rare. By
# hand; not tuned.
LEAST_GAIN = 10.0
"""What a split must explain, in variances of one row; the more inputs compete, the more."""


@frozen
class Input:
    """One column of numbers that trees see."""

    name: str  # in words
    feature: str = ""  # which feature it is of; empty for a coordinate of the embedding
    # the label of which it is the indicator; None where numbers are taken as they are
    label: str | None = None
    known: tuple[str, ...] = ()  # the labels of the calibration rows
    coordinate: int = 0  # which coordinate of the embedding


@frozen(eq=False)
class Encoding:
    """How inputs become columns of numbers, as learnt from the calibration rows."""

    inputs: tuple[Input, ...]  # one per column
    width: int = 0  # columns of the embedding; 0 where features are used
    # shape (e,): what is subtracted from an embedding before it is turned
    center: FloatArray = field(default_factory=lambda: np.empty(0))
    # shape (e, k): principal axes of a wide embedding; empty where its own coordinates are used
    axes: FloatArray = field(default_factory=lambda: np.empty((0, 0)))

    @classmethod
    def learnt(cls, calibration: EvalSet) -> Self:
        """The encoding of features, or of an embedding where there are none."""
        mass = counts(calibration)
        if calibration.features:
            columns = calibration.features.items()
            return cls(tuple(column for pair in columns for column in _inputs_of(*pair, mass)))
        rows = calibration.embedding
        if rows is None:
            raise InputError(
                "recalibration by inputs needs features or an embedding, and the calibration "
                "rows have neither"
            )
        width = rows.shape[1]
        if width <= MOST_COLUMNS:
            return cls(tuple(Input(f"embedding {i}", coordinate=i) for i in range(width)), width)
        center = np.average(rows, axis=0, weights=mass)
        away = rows - center
        axes = np.linalg.eigh((away * mass[:, None]).T @ away)[1][:, ::-1][:, :COMPONENTS]
        axes = axes * np.sign(axes[np.abs(axes).argmax(axis=0), np.arange(axes.shape[1])])
        named = (Input(f"principal coordinate {i + 1}", coordinate=i) for i in range(axes.shape[1]))
        return cls(tuple(named), width, center, axes)

    @property
    def names(self) -> tuple[str, ...]:
        """The columns in words."""
        return tuple(column.name for column in self.inputs)

    def used(self, columns: Sequence[int]) -> Self:
        """The encoding of some columns alone."""
        inputs = tuple(self.inputs[column] for column in columns)
        if not len(self.axes):
            return replace(self, inputs=inputs)
        axes = self.axes[:, [column_input.coordinate for column_input in inputs]]
        turned = tuple(replace(column_input, coordinate=i) for i, column_input in enumerate(inputs))
        return replace(self, inputs=turned, axes=axes)

    def table(self, evalset: EvalSet) -> FloatArray:
        """The inputs of rows as columns of numbers, shape (n, k)."""
        table = np.empty((evalset.n, len(self.inputs)))
        texts: dict[str, AnyArray] = {}
        turned = None
        for column, source in enumerate(self.inputs):
            if not source.feature:
                turned = self._coordinates(evalset) if turned is None else turned
                table[:, column] = turned[:, source.coordinate]
            elif source.label is None:
                table[:, column] = _read_feature(evalset, source)
            else:
                if source.feature not in texts:
                    texts[source.feature] = _read_feature(evalset, source).astype(str)
                table[:, column] = texts[source.feature] == source.label
        return table

    def unknown(self, evalset: EvalSet) -> tuple[str, ...]:
        """Notes on labels that the calibration rows did not hold."""
        notes = []
        for source in {
            source.feature: source for source in self.inputs if source.label is not None
        }.values():
            labels = _read_feature(evalset, source).astype(str)
            strange = int((~np.isin(labels, source.known)).sum())
            if strange:
                warning = (
                    f" with labels of {source.feature} that calibration rows do not have: "
                    "treated as an unknown label."
                )
                notes.append(CountedNote.of(strange, "row", warning))
        return tuple(notes)

    def _coordinates(self, evalset: EvalSet) -> FloatArray:
        rows = evalset.embedding
        if rows is None or rows.shape[1] != self.width:
            came = "none" if rows is None else f"{rows.shape[1]} columns"
            raise InputError(
                f"the rows must have an embedding of {self.width} columns, like the calibration "
                f"rows, got {came}"
            )
        return np.asarray((rows - self.center) @ self.axes) if len(self.axes) else rows


def _inputs_of(name: str, values: AnyArray, mass: FloatArray) -> Iterator[Input]:
    labels = () if is_numeric(values) else tuple(np.unique(values.astype(str)).tolist())
    for column in InputColumn.columns_of(name, values, MOST_LABELS, mass=mass):
        yield Input(column.name, name, column.label, labels)


def _read_feature(evalset: EvalSet, wanted: Input) -> AnyArray:
    """A feature of the rows, of the type that calibration held."""
    values = evalset.features.get(wanted.feature)
    what = "numbers" if wanted.label is None else "labels"
    if values is None:
        came = ", ".join(evalset.features) or "none"
        raise InputError(
            f"the rows must have the input {wanted.feature}, like the calibration rows, got {came}"
        )
    if is_numeric(values) != (wanted.label is None):
        raise InputError(
            f"the input {wanted.feature} must contain {what}, as in the calibration rows, got "
            f"{'labels' if wanted.label is None else 'numbers'}"
        )
    return values


@frozen(eq=False)
class Tree:
    """A binary tree over columns of numbers."""

    feature: IntArray  # shape (k,): the column that each node asks for; −1 at a leaf
    threshold: FloatArray  # shape (k,): rows at or below it go left
    # shape (k,): nodes; −1 at a leaf
    left: IntArray
    right: IntArray
    value: FloatArray  # shape (k,): what a leaf says
    rules: tuple[str, ...]  # what leads to each node, in words

    def __post_init__(self) -> None:
        parts = (self.feature, self.threshold, self.left, self.right, self.value)
        size, asks = len(self.rules), self.feature >= 0
        if not size or any(column.shape != (size,) for column in parts):
            raise InputError("a tree must have a condition and children for each node")
        below = np.concatenate([self.left[asks], self.right[asks]])
        if ((below <= np.tile(np.flatnonzero(asks), 2)) | (below >= size)).any():
            raise InputError("the children of a node in a tree must come after it")

    @property
    def leaves(self) -> list[int]:
        """The nodes that ask nothing."""
        return [int(node) for node in np.flatnonzero(self.feature < 0)]

    def apply(self, x: FloatArray) -> IntArray:
        """The leaf of each row."""
        if self.feature.max() >= x.shape[1]:
            raise InputError(f"a tree uses more columns than the {x.shape[1]} of the rows")
        node = np.zeros(len(x), dtype=np.int64)
        rows = np.arange(len(x))
        for _ in range(DEPTH):
            columns = self.feature[node]
            if (columns < 0).all():
                break
            low = x[rows, np.maximum(columns, 0)] <= self.threshold[node]
            node = np.where(columns < 0, node, np.where(low, self.left[node], self.right[node]))
        return node

    def at(self, x: FloatArray) -> FloatArray:
        """What the tree says of each row."""
        return self.value[self.apply(x)]


@np.errstate(over="ignore", invalid="ignore")  # of infinite inputs
def grown(x: FloatArray, names: Sequence[str], target: FloatArray, mass: FloatArray) -> Tree:
    """A tree in whose leaves the mean of a target differs by more than chance.

    It is cut back to where each split saves `LEAST_GAIN` + 2·ln d variances of one row, with d
    the number of columns.
    """
    total = float(mass.sum())
    leaf = max(MIN_ROWS_OF_LEAF, math.floor(total) // 12)
    noise = float(np.average(np.square(target - np.average(target, weights=mass)), weights=mass))
    if 2 * leaf > total or not x.shape[1] or not noise > 0:
        return one_leaf()
    columns, levels = tree_inputs(x)
    fitted = grow_tree(columns, target, depth=DEPTH, least=leaf - 0.5, weights=mass)
    fitted = fitted.pruned((LEAST_GAIN + 2.0 * math.log(x.shape[1])) * noise / total)
    return tree_of(fitted, names, levels, fitted.value)


def one_leaf() -> Tree:
    """A tree that divides nothing."""
    nothing = np.full(1, -1)
    return Tree(nothing, np.zeros(1), nothing, nothing, np.zeros(1), ("all rows",))


def tree_of(
    fitted: Any, names: Sequence[str], levels: dict[int, FloatArray], values: FloatArray
) -> Tree:
    """What was grown over the columns of `tree_inputs`, with the value of each node."""
    rules = node_rules(fitted, names, levels)
    feature = np.where(fitted.children_left < 0, -1, fitted.feature).astype(np.int64)
    edges = [
        _edge(levels, int(column), float(edge)) if column >= 0 else 0.0
        for column, edge in zip(feature, fitted.threshold, strict=True)
    ]
    return Tree(
        feature,
        np.array(edges),
        fitted.children_left.astype(np.int64),
        fitted.children_right.astype(np.int64),
        np.asarray(values, dtype=np.float64),
        tuple(rules[node] for node in range(fitted.node_count)),
    )


def _edge(levels: dict[int, FloatArray], column: int, threshold: float) -> float:
    """A threshold in the units of the input; next to an infinite value, the value below it."""
    edge = edge_of(levels, column, threshold)
    return edge if math.isfinite(edge) else float(levels[column][int(threshold)])


def _renumbered(tree: Tree, columns: Sequence[int]) -> Tree:
    """The same tree over some of the columns."""
    numbers = {column: i for i, column in enumerate(columns)}
    return replace(tree, feature=np.array([numbers.get(c, -1) for c in tree.feature.tolist()]))


@final
@frozen
class ByInputs(RecalibrationMethod):
    """Predictions moved and stretched where their inputs say that they fail.

    One shallow tree divides the inputs by the mean of z = (y − centre)/spread, and one by the
    mean of ln z² about it. In each leaf the centre is shifted, in units of a row's spread, and
    all else stretched about it as its rows teach, together with ten rows of the whole. A tree
    that finds no more than chance has one leaf.

    Parameters
    ----------
    belief : {"distributions", "samples", "quantiles", "intervals"}
        What is recalibrated.

    Examples
    --------
    >>> from howsure.predictions import Distribution
    >>> x = np.linspace(0.0, 1.0, 400)
    >>> y = np.where(x > 0.5, 3.0, 1.0) * np.tile([-1.0, 1.0], 200)
    >>> held = Distribution.normal(np.zeros(400), np.ones(400))
    >>> held_out = EvalSet.checked(y, held, features={"x": x})
    >>> fitted = ByInputs("distributions").fit(held_out)
    >>> [(each.name, round(each.value, 1)) for each in fitted.parameters]
    [('shift, all rows', 0.0), ('factor, x ≤ 0.5', 1.1), ('factor, x > 0.5', 3.0)]
    """

    belief: str

    def fit(self, calibration: EvalSet) -> InputsLocationScale:
        """Learn the trees and their leaves.

        Raises
        ------
        InputError
            If the rows have no inputs, a prediction cannot be scaled, or every error is zero.
        """
        encoding = Encoding.learnt(calibration)
        taught = CalibrationRows.spread_out(calibration, self.belief)
        frame, mass, y = taught.frame, taught.mass, taught.y
        x = encoding.table(calibration)
        z = (y - frame.center) / frame.spread
        shift, _ = taught.location_scale()
        mean = grown(x, encoding.names, z, mass)
        leaves = mean.apply(x)
        for leaf in mean.leaves:
            rows = leaves == leaf
            weight = _weight(mass[rows])
            leaf_frame = frame.take(rows)
            of_leaf = leaf_frame.shift(y[rows], mass[rows], leaf_frame.spread)
            mean.value[leaf] = weight * of_leaf + (1.0 - weight) * shift
        center = frame.center + mean.value[leaves] * frame.spread
        square = np.square((y - center) / frame.spread)
        floor = 0.01 * float(np.average(square, weights=mass))
        spread = grown(x, encoding.names, np.log(square + floor), mass)
        leaves = spread.apply(x)
        all_rows = frame.factor(y, mass, center)
        for leaf in spread.leaves:
            rows = leaves == leaf
            weight = _weight(mass[rows])
            of_leaf = frame.take(rows).factor(y[rows], mass[rows], center[rows])
            both = weight * of_leaf**2 + (1.0 - weight) * all_rows**2
            spread.value[leaf] = check_factor(math.sqrt(both))
        split_columns = {
            int(column) for tree in (mean, spread) for column in tree.feature if column >= 0
        }
        columns = sorted(split_columns)
        return taught.mover(
            InputsLocationScale,
            "inputs",
            (
                *_learnt("shift", mean, mean.apply(x), mass),
                *_learnt("factor", spread, leaves, mass),
            ),
            "regions and amounts are estimated from the same rows. Conformal recalibration on "
            "further rows would give one",
            *_describe_trees(mean, spread),
            encoding=encoding.used(columns),
            mean=_renumbered(mean, columns),
            spread=_renumbered(spread, columns),
        )


def _weight(mass: FloatArray) -> float:
    rows = float(mass.sum())
    return rows / (rows + SHRINKAGE)


def _learnt(name: str, tree: Tree, leaves: IntArray, mass: FloatArray) -> Iterator[FittedParameter]:
    rows = np.bincount(leaves, mass, minlength=len(tree.feature))
    for leaf in tree.leaves:
        yield FittedParameter(
            name=f"{name}, {tree.rules[leaf]}", value=float(tree.value[leaf]), n=float(rows[leaf])
        )


def _describe_trees(mean: Tree, spread: Tree) -> Iterator[str]:
    if len(mean.leaves) == len(spread.leaves) == 1:
        yield "No dependence on the inputs was found: all rows get the same correction."
        return
    for what, tree in (("The mean", mean), ("The spread", spread)):
        if len(tree.leaves) > 1:
            yield f"{what} differs between: {'; '.join(tree.rules[leaf] for leaf in tree.leaves)}."


@final
@frozen(kw_only=True, eq=False)
class InputsLocationScale(LocationScaleRecalibrator):
    """Fitted `ByInputs`."""

    encoding: Encoding  # the inputs that the trees ask for
    mean: Tree  # shifts, in units of a row's spread
    spread: Tree  # factors of the spread

    def amounts(self, evalset: EvalSet, frame: LocationScale) -> Amounts:
        """What the trees say of each row, with a note on labels never seen."""
        x = self.encoding.table(evalset)
        return self.mean.at(x) * frame.spread, self.spread.at(x), self.encoding.unknown(evalset)


METHODS = (
    MethodInfo(
        name="inputs",
        kinds=FRAMED_KINDS,
        make=lambda kind, _: ByInputs(kind),
        saves=(InputsLocationScale,),
        needs="inputs",
        label="using its inputs",
        words="recalibrate depending on the inputs",
        complexity=5,
        aims=SHAPE | {"region", "width", "trade"},
    ),
)
