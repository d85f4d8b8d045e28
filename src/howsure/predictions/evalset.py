"""What happened beside what was believed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from typing import Any, Literal, Self, TypeVar, final

import numpy as np
import numpy.typing as npt

from howsure.core.arrays import (
    AnyArray,
    BoolArray,
    FloatArray,
    IntArray,
    as_matrix,
    as_vector,
    plain_array,
)
from howsure.core.classes import brief, frozen, within_lines
from howsure.core.errors import InputError
from howsure.core.labels import Categories, as_labels, joint
from howsure.core.rng import row_hashes
from howsure.core.times import MIN_TIMES, Chronology, Units, steps_between
from howsure.core.weights import Weights
from howsure.predictions.base import Prediction, Rows

# Squares are 10²⁰⁰, and so may be multiplied by weights and added up; cubes are not needed at that
# size.
MAX_SIZE = 1e100

Labels = AnyArray
T = TypeVar("T")


@final
@frozen(kw_only=True, eq=False)
class EvalSet:
    """One model's predictions beside the observed y, with what else is known of each row.

    Attributes
    ----------
    y : ndarray of float, shape (n,)
        What happened.
    predictions : tuple of Prediction
        One prediction of each kind at most: an interval and a distribution may coexist.
    point : ndarray of float, shape (n,), optional
        The model's point forecast, where it was given apart from the predictions.
    uncertainty : ndarray of float, shape (n,), optional
        Any score of how unsure the model is of each row, given apart from the predictions.
    features : mapping of str to ndarray of shape (n,)
        Inputs of the model, by name; numbers or labels.
    embedding : ndarray of float, shape (n, e), optional
        A numeric representation of the inputs.
    groups : mapping of str to Categories of n rows
        Labels that divide the rows, by name.
    weights : Weights, optional
        How much each row counts.
    cluster : Categories of n rows, optional
        Rows with one label are not independent.
    time : ndarray of shape (n,), optional
        When each row happened; sortable.
    horizon : ndarray of float, shape (n,), optional
        By how many steps of time each row was predicted ahead.
    series : Categories of n rows, optional
        Of which series each row is, where a time comes up once in each.
    rows : ndarray of shape (n,), optional
        Names of the rows; their numbers from 0 if omitted.
    model : str
        Name of the model.
    ease : str
        The feature that says how easy each row is.
    share : float
        The share of the table's rows that these are a sample of; 1 where they are all.
    chronology : Chronology, optional
        When rows happened, where a test found that those near in time are alike.
    fewest : int
        The fewest rows of which anything may be told, such as the coverage of a group; 1 where
        each row may be shown.
    baselines : tuple of BaselineForecast
        Other forecasts of these rows, against which skill is measured.
    without_y : EvalSet, optional
        Further rows that were predicted and have no y, which is NaN there.
    """

    y: FloatArray
    predictions: tuple[Prediction, ...] = ()
    point: FloatArray | None = None
    uncertainty: FloatArray | None = None
    features: Mapping[str, Labels] = field(default_factory=dict)
    embedding: FloatArray | None = None
    groups: Mapping[str, Categories] = field(default_factory=dict)
    weights: Weights | None = None
    cluster: Categories | None = None
    time: Labels | None = None
    horizon: FloatArray | None = None
    series: Categories | None = None
    rows: Labels | None = None
    model: str = "model"
    ease: str = "ease"
    share: float = 1.0
    chronology: Chronology | None = None
    fewest: int = 1
    baselines: tuple[BaselineForecast, ...] = ()
    without_y: EvalSet | None = None

    @classmethod
    def checked(
        cls,
        y: npt.ArrayLike,
        predictions: Prediction | tuple[Prediction, ...] = (),
        *,
        point: npt.ArrayLike | None = None,
        uncertainty: npt.ArrayLike | None = None,
        features: Mapping[str, npt.ArrayLike] | None = None,
        embedding: npt.ArrayLike | None = None,
        groups: Mapping[str, npt.ArrayLike | Categories] | None = None,
        weights: npt.ArrayLike | Weights | None = None,
        weights_kind: str = "frequency",
        cluster: npt.ArrayLike | Categories | None = None,
        time: npt.ArrayLike | None = None,
        cutoff: npt.ArrayLike | None = None,
        horizon: npt.ArrayLike | None = None,
        series: npt.ArrayLike | Categories | None = None,
        rows: npt.ArrayLike | None = None,
        model: str = "model",
        ease: str = "ease",
    ) -> Self:
        """Check everything at the door, and drop rows of frequency zero.

        Raises
        ------
        InputError
            If lengths differ, a value is missing or not finite, two predictions are of one kind, y
            holds other than counts beside laws of counts, or a row happened before its cutoff.

        Examples
        --------
        >>> from howsure.predictions import Intervals
        >>> EvalSet.checked([1.0, 2.0], Intervals([0.0, 0.0], [3.0, 1.0], coverage=0.9)).n
        2
        """
        truth = as_vector(y, "y")
        n = len(truth)
        predictions = (predictions,) if isinstance(predictions, Prediction) else tuple(predictions)
        for prediction in predictions:
            if not isinstance(prediction, Prediction):
                raise InputError(
                    f"predictions must be predictions, got {type(prediction).__name__}"
                )
        kinds = [prediction.kind for prediction in predictions]
        if len(set(kinds)) < len(kinds):
            raise InputError(f"predictions must be of different kinds, got {', '.join(kinds)}")
        for prediction in predictions:
            if prediction.n != n:
                shape = next(
                    (array.shape for array in prediction.numbers().values()), (prediction.n,)
                )
                turned = shape[1:] == (n,)
                raise InputError(
                    f"{prediction.kind} must have {n} rows like y, got {prediction.n}"
                    + (f" (shape {shape})" if len(shape) > 1 else "")
                    + ("; they look transposed" if turned else "")
                    + (
                        ": give Samples(samples.T)"
                        if turned and prediction.kind == "samples"
                        else ""
                    )
                )
            prediction.check_outcomes(truth)
        if not predictions and point is None:
            raise InputError(
                "No prediction given: give at least one, such as intervals or a point forecast"
            )
        if weights is not None and not isinstance(weights, Weights):
            weights = Weights.checked(weights, weights_kind, length=n)
        if weights is not None and len(weights.values) != n:
            raise InputError(f"weights must have {n} rows, got {len(weights.values)}")

        def fitted(check: Callable[..., T], value: Any, name: str) -> T | None:
            return None if value is None else check(value, name, length=n)

        forecast = fitted(as_vector, point, "point")
        _check_sizes({"y": truth, "point": forecast}, predictions)
        times, starts = fitted(as_labels, time, "time"), fitted(as_labels, cutoff, "cutoff")
        ahead = fitted(as_vector, horizon, "horizon")
        if ahead is None and starts is not None and times is not None:
            ahead = steps_between(starts, times)
        checked = cls(
            y=truth,
            predictions=predictions,
            point=forecast,
            uncertainty=fitted(as_vector, uncertainty, "uncertainty"),
            features={
                name: _as_feature(value, f"feature {name!r}", n)
                for name, value in (features or {}).items()
            },
            embedding=fitted(as_matrix, embedding, "embedding"),
            groups={
                name: Categories.checked(value, f"group {name!r}", length=n)
                for name, value in (groups or {}).items()
            },
            weights=weights,
            cluster=fitted(Categories.checked, cluster, "cluster"),
            time=starts if times is None else times,
            horizon=ahead,
            series=fitted(Categories.checked, series, "series"),
            rows=fitted(as_labels, rows, "rows"),
            model=model,
            ease=ease,
        )
        if weights is not None and not weights.values.all():
            return checked.take(np.flatnonzero(weights.values))
        return checked

    def __repr__(self) -> str:
        shown = [f"n={self.n:,}", f"model={self.model!r}", f"predictions={list(self.predictions)}"]
        optional = (
            *("point", "uncertainty", "embedding", "weights"),
            *("cluster", "time", "horizon", "series", "rows"),
        )
        shown += [f"features={brief(list(self.features))}"] if self.features else []
        shown += [f"groups={brief(list(self.groups))}"] if self.groups else []
        present = [name for name in optional if getattr(self, name) is not None]
        return within_lines("EvalSet", shown + ([f"with {', '.join(present)}"] if present else []))

    @property
    def n(self) -> int:
        """Number of rows."""
        return len(self.y)

    @property
    def mass(self) -> FloatArray:
        """The weight of each row; ones where there are none."""
        return np.ones(self.n) if self.weights is None else self.weights.values

    @property
    def multiplicities(self) -> FloatArray | None:
        """Weights that sum to the rows that count: frequencies, or shares of Kish's n."""
        return None if self.weights is None else self.weights.multiplicities

    @property
    def units(self) -> Units:
        """The units of every error: times that follow each other, clusters, or None for rows."""
        if self.chronology is not None:
            return self.chronology
        return None if self.cluster is None else self.cluster.codes

    @property
    def independent(self) -> bool:
        """Whether rows are independent, so that shares are binomial."""
        return self.units is None and (self.weights is None or self.weights.kind == "frequency")

    @property
    def independent_n(self) -> int:
        """Rows that count, for bands that assume independent ones."""
        if self.cluster is not None:
            return len(self.cluster.labels)
        return round(self.n if self.weights is None else self.weights.effective_n)

    def take(self, rows: Rows) -> Self:
        """The rows chosen by an index or a mask, with all that belongs to them."""
        y = self.y[rows]
        chosen = {name: _rows_of(getattr(self, name), rows) for name in _BY_ROW}
        names, further = self.row_names()[rows], self._without_y_of(len(y))
        return replace(self, y=y, rows=names, without_y=further, **chosen)

    def _without_y_of(self, rows: int) -> EvalSet | None:
        """As large a share of the rows without y as so many are of all others."""
        further = self.without_y
        if further is None or rows >= self.n:
            return further
        order = np.argsort(row_hashes(further.y, *_numbers_of_predictions(further)), kind="stable")
        few = round(further.n * rows / self.n)
        return further.take(order[:few]) if few else None

    def row_names(self) -> Labels:
        """Names of the rows."""
        return self.rows if self.rows is not None else np.arange(self.n)


_BY_ROW = (
    *(
        "predictions",
        "point",
        "uncertainty",
        "features",
        "embedding",
        "groups",
        "weights",
        "cluster",
    ),
    *("time", "horizon", "series", "chronology", "baselines"),
)
"""Fields that hold something of every row, beside y and the rows' names."""


def _rows_of(value: Any, rows: Rows) -> Any:
    """What a field holds, of some rows."""
    if value is None or isinstance(value, np.ndarray):
        return value if value is None else value[rows]
    if isinstance(value, Mapping):
        return {name: _rows_of(column, rows) for name, column in value.items()}
    if isinstance(value, tuple):
        return tuple(_rows_of(member, rows) for member in value)
    return value.take(rows)


def _as_feature(value: npt.ArrayLike, name: str, n: int) -> Labels:
    """An input of the model: finite numbers, or labels."""
    array = plain_array(value, name, text=True)
    return (
        as_vector(array, name, length=n)
        if array.dtype.kind == "f"
        else as_labels(array, name, length=n)
    )


def check_same_rows(evalsets: Sequence[EvalSet]) -> None:
    """Refuse models that do not hold the same rows.

    Raises
    ------
    InputError
        Naming the first two models that differ in y.

    Examples
    --------
    >>> check_same_rows([EvalSet.checked([1.0], point=[0.0]), EvalSet.checked([1.0], point=[2.0])])
    """
    first = evalsets[0]
    for other in evalsets[1:]:
        if not np.array_equal(other.y, first.y):
            raise InputError(
                "models must have the same rows to be compared, but y differs between "
                f"{first.model} and {other.model}"
            )


def content_order(evalsets: Sequence[EvalSet]) -> IntArray:
    """The order of rows by a hash of what they hold, whatever the order they came in.

    What models share (y, inputs, groups, weights, clusters, times) comes first; predictions only
    order the rows that are equal in it, those of the model whose name comes first before others,
    so that one more model hardly ever moves a row. Rows that are equal in everything are
    interchangeable; those that have names of their own stand in the order of these. Parameters
    ---------- evalsets : sequence of EvalSet One a model, on the same rows. Returns -------
    ndarray of int, shape (n,) Raises ------ InputError If models have different rows. Examples
    -------- >>> y, point = np.array([3.0, 1.0, 3.0]), np.array([0.0, 0.0, 1.0]) >>> order =
    content_order([EvalSet.checked(y, point=point)]) >>> again =
    content_order([EvalSet.checked(y[::-1], point=point[::-1])]) >>> bool((point[order] ==
    point[::-1][again]).all()) True
    """
    check_same_rows(evalsets)
    shared = row_hashes(*_shared_content(evalsets[0]))
    order = np.argsort(shared)
    if not (shared[order[1:]] == shared[order[:-1]]).any():
        return order
    keys = [shared]
    if evalsets[0].embedding is not None:  # an encoder's last digits may depend on the order
        keys.append(row_hashes(evalsets[0].embedding))
    ranked = sorted(evalsets, key=lambda evalset: evalset.model)
    keys += [row_hashes(evalset.y, *_numbers_of_predictions(evalset)) for evalset in ranked]
    if evalsets[0].rows is not None:
        keys.append(_numeric(evalsets[0].rows))
    return np.lexsort(keys[::-1])


def _shared_content(evalset: EvalSet) -> Iterator[AnyArray]:
    """What models share of the rows, as numbers."""
    yield evalset.y
    yield from (_numeric(evalset.features[name]) for name in sorted(evalset.features))
    yield from (evalset.groups[name].codes for name in sorted(evalset.groups))
    if evalset.weights is not None:
        yield evalset.weights.values
    if evalset.cluster is not None:
        yield evalset.cluster.codes
    if evalset.time is not None:
        yield _numeric(evalset.time)
    if evalset.horizon is not None:
        yield evalset.horizon
    if evalset.series is not None:
        yield evalset.series.codes


def _numbers_of_predictions(evalset: EvalSet) -> Iterator[AnyArray]:
    """What one model says of the rows, as numbers."""
    yield from (column for column in (evalset.point, evalset.uncertainty) if column is not None)
    for prediction in sorted(evalset.predictions, key=lambda prediction: prediction.kind):
        yield from prediction.numbers().values()


def _numeric(values: Labels) -> AnyArray:
    """Numbers as they are; of anything else the places among the sorted distinct ones."""
    if values.dtype.kind in "biuf":
        return values
    return np.asarray(Categories.checked(values, "labels").codes)


def _check_sizes(
    outcomes: Mapping[str, FloatArray | None], predictions: Sequence[Prediction]
) -> None:
    """Refuse finite numbers so large that sums of their squares would overflow."""
    columns = dict(outcomes)
    for prediction in predictions:
        columns |= {
            f"{prediction.kind}: {name}": value for name, value in prediction.numbers().items()
        }
    for name, values in columns.items():
        if values is None or (
            values.min(initial=0.0) >= -MAX_SIZE and values.max(initial=0.0) <= MAX_SIZE
        ):
            continue
        big = np.isfinite(values) & (np.abs(values) > MAX_SIZE)
        if big.any():
            row = int(np.argmax(big.reshape(len(values), -1).any(axis=1)))
            raise InputError(
                f"{name} must contain numbers of size at most {MAX_SIZE:g}, because their squares "
                f"are summed; {int(big.sum())} are larger (first at row {row})"
            )


# ---- which rows of one time are of which series, where an evaluation set says so -----------------


def series_of(evalset: EvalSet, times: IntArray) -> IntArray | None:
    """The number of each row's series, where several are known at one time.

    They are stated, or the column that has one row of each level at a time, whose levels have a
    quarter of all times. Clusters stay clusters, unless they are these series and times are enough.
    """
    count = int(times.max()) + 1
    if 2 * evalset.n < 3 * count:
        return None

    def are_distinct(codes: IntArray) -> bool:
        levels = int(codes.max()) + 1
        cells = np.unique(codes * count + times)
        return levels > 1 and len(cells) == len(times) and 4 * len(times) >= levels * count

    if evalset.cluster is not None:
        stated = evalset.series is not None or are_distinct(evalset.cluster.codes)
        codes = evalset.cluster.codes if evalset.series is None else evalset.series.codes
        levels = {
            int(labels.max())
            for labels in (codes, evalset.cluster.codes, joint(codes, evalset.cluster.codes))
        }
        return codes if stated and len(levels) == 1 and count >= MIN_TIMES else None
    if evalset.series is not None:
        return evalset.series.codes if len(evalset.series.labels) > 1 else None
    columns = [group.codes for group in evalset.groups.values()]
    columns += [
        Categories.checked(feature, "labels").codes
        for feature in evalset.features.values()
        if feature.dtype.kind not in "biufM"
    ]
    return min((column for column in columns if are_distinct(column)), key=np.max, default=None)


def unnamed(evalset: EvalSet, times: IntArray, series: IntArray | None) -> bool:
    """Whether times have several rows each, and as many as the next: of series without a name.

    Of rows that come by chance the mean squared difference of numbers is twice the mean. Rows of
    different lead times are no series.
    """
    rows = np.bincount(np.unique(times, return_inverse=True)[1])
    if series is not None or evalset.horizon is not None or len(rows) < 2 or rows.mean() < 1.5:
        return False
    return bool(np.mean(np.square(np.diff(rows))) < rows.mean() / 2.0)


def lone(evalset: EvalSet, times: IntArray, series: IntArray | None) -> bool:
    """Whether such times are too few by themselves."""
    return unnamed(evalset, times, series) and len(np.unique(times)) < MIN_TIMES


# ---- another forecast of the same rows, beside which a model is judged ---------------------------


@final
@frozen(kw_only=True, eq=False)
class BaselineForecast:
    """What anyone could have predicted at the time, or another model did."""

    kind: Literal["persistence", "seasonal", "model"]
    name: str  # in sentences
    predictions: tuple[Prediction, ...]
    known: BoolArray  # shape (n,): the rows that it predicts; what it states of others is void
    asked: bool = False  # whether the verdict is to be by it, in place of the distribution of y

    def take(self, rows: Rows) -> Self:
        """That of some of the rows."""
        return type(self)(
            kind=self.kind,
            name=self.name,
            predictions=tuple(prediction.take(rows) for prediction in self.predictions),
            known=np.asarray(self.known[rows]),
            asked=self.asked,
        )
