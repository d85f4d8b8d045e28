"""An evaluation set as flat, named columns, for writing a table that readers recognise."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence

import numpy as np

from howsure.core.arrays import AnyArray, BoolArray, FloatArray
from howsure.core.errors import InputError, UnanswerableError
from howsure.core.labels import Categories
from howsure.predictions.base import Prediction
from howsure.predictions.distribution import Distribution
from howsure.predictions.evalset import EvalSet
from howsure.predictions.intervals import Intervals
from howsure.predictions.labelsets import LabelSets
from howsure.predictions.laws import NormalLaw
from howsure.predictions.probabilities import Probabilities
from howsure.predictions.quantiles import Quantiles
from howsure.predictions.samples import Samples

Column = AnyArray
_ODD = re.compile(r"[|;,\[\]{}()'\"]|^\s|\s$|^$")
"""What a label may not hold that stands bare in a cell."""
_NUMBER = re.compile(r"[+-]?[\d.]+%?")
"""A label that a reader takes for the level of a quantile."""


def to_columns(evalset: EvalSet) -> dict[str, Column]:
    """Flatten an evaluation set into columns, named as the readers of tables expect.

    ``y``; ``point``; intervals ``lower_90`` and ``upper_90`` (the nominal coverage in per cent,
    below ten the share itself; ``lower`` and ``upper`` where it is unknown); normal laws ``mean``
    and ``sd``, other laws ``gamma_a``, ``gamma_loc``, ``gamma_scale`` (the family, then its
    parameter; mixtures ``norm+norm_weight_1``, ``norm+norm_loc_1``, …); quantiles ``q0.05``;
    samples ``s_0``, ``s_1``, … in rising order; label sets ``label_set_90`` (``cat|dog``, empty
    ones ``{}``) and class probabilities ``p_cat``, with the label as ``y``, of two classes ``p`` or
    ``p_yes`` alone; ``weight`` (or ``importance_weight``), ``cluster``, ``time``, ``row``;
    ``embedding_0``, …; groups and features under their own names. The model's name is not a column.

    Parameters
    ----------
    evalset : EvalSet
        n rows.

    Returns
    -------
    dict of str to ndarray of shape (n,)
        In the order above. A group and a feature of one name and one content are one column.

    Examples
    --------
    >>> prediction = Intervals([0.0, 1.0], [2.0, 3.0], coverage=0.9)
    >>> list(to_columns(EvalSet.checked([1.0, 2.0], prediction, groups={"site": ["a", "b"]})))
    ['y', 'lower_90', 'upper_90', 'site']
    """
    columns: dict[str, Column] = {}
    for name, values in _named(evalset):  # sets come with the probabilities that stand beside
        if name in columns and not _same(columns[name], values):
            raise InputError(
                f"column names must differ, but two columns would be called {name!r}: rename the "
                "group or feature"
            )
        columns[name] = values
    return columns


def prediction_columns(evalset: EvalSet) -> dict[str, Column]:
    """The predictions alone, under the names that `to_columns` gives; else the point forecast.

    Examples
    --------
    >>> list(prediction_columns(EvalSet.checked([1.0], Intervals([0.0], [2.0], coverage=0.9))))
    ['lower_90', 'upper_90']
    """
    columns = dict(
        pair for prediction in evalset.predictions for pair in _columns_of_prediction(prediction)
    )
    if not columns and evalset.point is not None:
        return {"point": evalset.point}
    return columns


def _named(evalset: EvalSet) -> Iterator[tuple[str, Column]]:
    yield "y", _outcomes(evalset)
    if evalset.point is not None:
        yield "point", evalset.point
    for prediction in evalset.predictions:
        yield from _columns_of_prediction(prediction)
    if evalset.uncertainty is not None:
        yield "uncertainty", evalset.uncertainty
    if evalset.weights is not None:
        kind = "" if evalset.weights.kind == "frequency" else "importance_"
        yield f"{kind}weight", evalset.weights.values
    for name in ("cluster", "time", "horizon", "series", "rows"):
        values = getattr(evalset, name)
        if values is not None:
            values = values.values() if isinstance(values, Categories) else values
            yield name.removesuffix("s") if name == "rows" else name, values
    for name, group in evalset.groups.items():
        yield name, group.values()
    yield from evalset.features.items()
    if evalset.embedding is not None:
        yield from _numbered("embedding", evalset.embedding)


def _outcomes(evalset: EvalSet) -> Column:
    """What happened; classes by their labels."""
    for prediction in evalset.predictions:
        classes = None
        if isinstance(prediction, LabelSets):
            classes = prediction.labels
        elif isinstance(prediction, Probabilities):
            classes = prediction.classes
        if classes is not None:
            return np.array(classes, dtype=object)[evalset.y.astype(np.int64)]
    return evalset.y


def _columns_of_prediction(prediction: Prediction) -> Iterator[tuple[str, Column]]:
    if isinstance(prediction, Intervals):
        for column in range(prediction.lower.shape[1]):
            end = f"_{_coverage(prediction.coverages[column])}" if prediction.coverages else ""
            yield f"lower{end}", prediction.lower[:, column]
            yield f"upper{end}", prediction.upper[:, column]
    elif isinstance(prediction, Distribution) and isinstance(prediction.law, NormalLaw):
        yield "mean", prediction.parameters["loc"]
        yield "sd", prediction.parameters["scale"]
    elif isinstance(prediction, Distribution):
        for name, values in prediction.parameters.items():
            yield f"{prediction.law.name}_{name}", values
    elif isinstance(prediction, Quantiles):
        for column, level in enumerate(prediction.levels):
            yield f"q{_digits(float(level))}", prediction.values[:, column]
        for level, bound in enumerate(() if prediction.bounds is None else prediction.bounds.T):
            if np.isfinite(bound).all():
                yield f"q{level}", bound
    elif isinstance(prediction, Samples):
        yield from _numbered("s", prediction.sorted_samples)
    elif isinstance(prediction, Probabilities):
        yield from _of_classes(prediction.names, prediction.table)
    elif isinstance(prediction, LabelSets):
        labels = prediction.names
        sets = [written_set(row, labels) for row in prediction.members]
        yield f"label_set_{_coverage(prediction.coverage)}", np.array(sets, dtype=object)
        if prediction.probabilities is not None:
            for column, label in enumerate(labels):
                yield f"p_{label}", prediction.probabilities[:, column]
    else:
        raise UnanswerableError(f"{prediction.kind} cannot be written as columns")


def _of_classes(labels: Sequence[str], table: FloatArray) -> Iterator[tuple[str, Column]]:
    """A column of each class; of two, the second's alone where its name says so to a reader."""
    second = labels[1]
    if labels == ("0", "1"):
        yield "p", table[:, 1]
    elif len(labels) == 2 and (second == "1" or not _NUMBER.fullmatch(second)):
        yield f"p_{second}", table[:, 1]
    else:
        yield from zip((f"p_{label}" for label in labels), table.T, strict=True)


def written_set(members: BoolArray, labels: Sequence[str]) -> str:
    """A set as one cell: ``cat|dog``; a list in JSON where a label holds a mark."""
    chosen = [labels[column] for column in np.flatnonzero(members).tolist()]
    if any(_ODD.search(label) for label in labels):
        return json.dumps(chosen, ensure_ascii=False)
    return "|".join(chosen) if chosen else "{}"


def _numbered(prefix: str, table: FloatArray) -> Iterator[tuple[str, Column]]:
    for column in range(table.shape[1]):
        yield f"{prefix}_{column}", table[:, column]


def _coverage(coverage: float) -> str:
    """Per cent; below ten, where a reader could take one digit for a level, the share itself."""
    return _digits(100 * coverage if coverage >= 0.1 else coverage)


def _digits(number: float) -> str:
    """The number in plain decimals, without noise from binary fractions."""
    return np.format_float_positional(round(number, 10), trim="-")


def _same(first: Column, other: Column) -> bool:
    return first.shape == other.shape and bool(np.all(first == other))
