"""What people hold beside y, as predictions: arrays, mappings, objects of other libraries."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, get_args

import numpy as np
import numpy.typing as npt

from howsure.core.arrays import (
    AnyArray,
    BoolArray,
    FloatArray,
    as_vector,
    check_fraction,
    dimensions,
    to_host,
)
from howsure.core.classes import frozen
from howsure.core.errors import InputError, within
from howsure.core.registry import check_known
from howsure.inputs.array_inputs import Arrays, PredictionInput, numbers
from howsure.inputs.cells import Crossing, predictions_of, read_cells
from howsure.inputs.columns import assign_models
from howsure.inputs.dialects import idle_columns, is_prophet, refuse_mean_intervals, usual_coverage
from howsure.inputs.distributions import read_foreign
from howsure.inputs.frames import MappingTable, is_frame, is_inference, is_missing, library_classes
from howsure.inputs.matching import Missing
from howsure.inputs.names import (
    KEYS,
    Roles,
    bound,
    likely_ends,
    normal_form,
    quantile_levels,
    stated_spreads,
)
from howsure.inputs.roles import BY_NAME
from howsure.inputs.source import listed, refusing
from howsure.predictions import Distribution, Prediction
from howsure.predictions.base import stated_levels

__all__ = ["PredictionInput", "check_row_order", "complete_rows", "read_given"]

_COLUMNS = "lower_90 and upper_90; mean and sd; q0.05, q0.5 and q0.95; or sample_1, sample_2, …"


# Columns beyond which a note says how the first ones were read: two or three lines.
_MAX_USES = 9


def read_given(
    value: Any,
    *,
    n: int,
    coverage: npt.ArrayLike | None = None,
    levels: npt.ArrayLike | None = None,
    y: FloatArray | None = None,
    crossing: Crossing = "error",
) -> dict[str, PredictionInput]:
    """What a caller gave as prediction, by the name of its model; "" is the one without a name.

    `coverage` and `levels` say what bare arrays are: ends of intervals, or quantiles. What neither
    says is inferred from shapes and names, and told in the notes; where these leave doubt, the
    error says which argument settles it. `y`, if known, tells swapped ends from means and sds.
    `crossing` says what to do with ends or quantiles that cross.
    """
    shares = () if coverage is None else np.atleast_1d(np.asarray(coverage)).tolist()
    for share in shares:
        check_fraction(share, "coverage")
    stated = None if levels is None else stated_levels(levels)
    check_known(crossing, get_args(Crossing), "crossing")
    return _Reader(n, tuple(map(float, shares)), stated, y, crossing).read(value)


def check_row_order(y: Any, arguments: Mapping[str, Any]) -> None:
    """Refuse arrays by name whose index holds the labels of y's index in another order."""
    for name, value in arguments.items():
        _check_order(y, value, name)


def _check_order(y: Any, value: Any, name: str) -> None:
    index: Any = getattr(y, "index", None)
    other: Any = getattr(value, "index", None)
    if isinstance(value, Mapping):
        for key, element in value.items():
            _check_order(y, element, f"{name}[{key!r}]")
    elif isinstance(value, list | tuple):
        for position, element in enumerate(value[:1000]):
            if hasattr(element, "index"):
                _check_order(y, element, f"{name}[{position}]")
    elif hasattr(value, "dist") and hasattr(value, "args"):
        _check_order(y, tuple(value.args), f"{name}.args")
        _check_order(y, value.kwds, f"{name}.kwds")
    elif (row := _other_time(index, value)) is not None:
        raise InputError(
            f"{name}['ds'] must contain the times of y's index in the same order; row {row} has "
            f"{value['ds'].iloc[row]} and y has {index[row]}: give y.loc[{name}['ds']]"
        )
    elif _same_labels_moved(index, other):
        way = f"give {name}.loc[y.index]"
        if not index.is_unique:
            way = f"give np.asarray({name}) if rows match by position"
        raise InputError(
            f"{name} must have its rows in the order of y, but its index has y's labels in a "
            f"different order: {way}"
        )


def _other_time(index: Any, frame: Any) -> int | None:
    """The first row of a forecast of Prophet that is of another time than y, if there is one.

    Its frame is numbered, and its times stand in the column ``ds``.
    """
    named = getattr(frame, "columns", ())
    if type(index).__name__ != "DatetimeIndex" or not {"ds", "yhat"} <= set(named):
        return None
    times = type(index)(frame["ds"])
    if len(times) != len(index) or times.equals(index):
        return None
    return int(np.argmax(np.asarray(times != index)))


def _same_labels_moved(index: Any, other: Any) -> bool:
    """Whether two values are indexes of pandas that hold the same labels in different orders."""
    if not (hasattr(index, "equals") and hasattr(other, "equals")) or len(index) != len(other):
        return False
    if index.equals(other):
        return False
    try:
        return bool(index.sort_values().equals(other.sort_values()))
    except TypeError:  # labels of several types have no order
        return Counter(index.tolist()) == Counter(other.tolist())


def complete_rows(
    arrays: Mapping[str, Any], missing: Missing
) -> tuple[dict[str, Any], dict[str, int], dict[str, Any]]:
    """Arrays by name without the rows where one of them is missing, and in how many each was.

    And those of the rows that lack y alone, as if they had the y of another row; none where there
    are none.

    ``y`` gives the number of rows. Arrays may lie in tuples, lists, mappings and frames, and have
    their rows along any axis; one number for all rows and texts stay as they are.
    """
    check_known(missing, get_args(Missing), "missing")
    arrays = dict(arrays)
    n = len(arrays["y"]) if dimensions(arrays["y"], "y") else 0
    wanted = arrays.items() if missing == "drop" else ()
    gone = {name: rows for name, value in wanted if (rows := _missing_rows(value, n)).any()}
    if not gone:
        return arrays, {}, {}
    nothing = np.zeros(n, dtype=np.bool_)
    lacking = gone.pop("y", nothing)
    counts = {"y": int(lacking.sum())} if lacking.any() else {}
    counts |= {name: int(rows.sum()) for name, rows in gone.items()}
    incomplete = np.logical_or.reduce([nothing, *gone.values()])

    def at(rows: BoolArray) -> dict[str, Any]:
        return {name: _rows_of(value, rows, name) for name, value in arrays.items()}

    complete, bare = at(~incomplete & ~lacking), {}
    if len(complete["y"]) and (lacking & ~incomplete).any():
        bare = at(lacking & ~incomplete)
        bare["y"] = np.repeat(np.asarray(complete["y"])[:1], len(bare["y"]))
    return complete, counts, bare


def _missing_rows(value: Any, n: int) -> BoolArray:
    """Which of n rows miss something of a value."""
    parts = _parts(value, n)
    if parts is not None:
        by_element = [_missing_rows(element, n) for element in parts]
        return np.asarray(np.logical_or.reduce([np.zeros(n, dtype=np.bool_), *by_element]))
    array = _array(value, n)
    if array is None:
        return np.zeros(n, dtype=np.bool_)
    if array.dtype.kind == "O":
        gone = np.reshape([is_missing(item) for item in array.flat], array.shape)
    elif array.dtype.kind in "fM":
        gone = np.isnan(array)
    else:
        return np.zeros(n, dtype=np.bool_)
    other_axes = tuple(axis for axis in range(array.ndim) if axis != array.shape.index(n))
    return np.asarray(gone.any(axis=other_axes), dtype=np.bool_)


def _rows_of(value: Any, chosen: BoolArray, name: str) -> Any:
    """A value at the rows that are kept."""
    n = len(chosen)
    if is_inference(value) or library_classes(value, "xarray"):
        raise InputError(
            f"missing='drop' does not drop rows of xarray objects: drop them from {name} before, "
            f"or give {name}.values"
        )
    if isinstance(value, Mapping):
        return {
            key: _rows_of(element, chosen, f"{name}[{key!r}]") for key, element in value.items()
        }
    if is_frame(value):
        import narwhals as nw

        return nw.from_native(value, eager_only=True).filter(chosen.tolist()).to_native()
    if isinstance(value, Prediction):
        return value.take(np.flatnonzero(chosen))
    parts = _parts(value, n)
    if parts is not None:
        return type(value)(
            _rows_of(element, chosen, f"{name}[{k}]") for k, element in enumerate(parts)
        )
    array = _array(value, n)
    if array is not None:
        return np.compress(chosen, array, axis=array.shape.index(n))
    if value is None or isinstance(value, str | int | float):
        return value
    raise InputError(
        f"missing='drop' drops rows of arrays, frames and predictions of howsure, but {name} has "
        f"type {type(value).__name__}: drop them before"
    )


def _parts(value: Any, n: int) -> list[Any] | None:
    """The values that a collection holds; None of what is one value."""
    if isinstance(value, Mapping):
        return list(value.values())
    if is_frame(value):
        import narwhals as nw

        frame = nw.from_native(value, eager_only=True)
        return [column.to_numpy() for column in frame.iter_columns()]
    several = isinstance(value, tuple) or (isinstance(value, list) and len(value) != n)
    return list(value) if several else None


def _array(value: Any, n: int) -> AnyArray | None:
    """An array with n rows along one of its axes; None of anything else."""
    if (
        value is None
        or isinstance(value, str | Prediction | Mapping)
        or dimensions(value, "an array") == 0
    ):
        return None
    array = np.asarray(to_host(value, "value"))
    return array if n in array.shape else None


@frozen
class _Reader(Arrays):
    """How whatever stands for a prediction of n rows is read, bare arrays among it."""

    def read(self, value: Any) -> dict[str, PredictionInput]:
        """The models that a value holds."""
        if isinstance(value, PredictionInput):
            return {"": value}
        if not (value is None or isinstance(value, Prediction | np.ndarray)):
            library_prediction = read_foreign(value, self.n, self.coverages or None, self.levels)
            if library_prediction is not None:
                return {"": library_prediction}
        if (kinds := self._explicit(value)) is not None:
            if self.levels is not None and self.name == "prediction":
                raise InputError(
                    "levels are for plain arrays, and prediction needs none: omit levels"
                )
            return {"": PredictionInput(predictions=kinds)}
        if isinstance(value, Mapping):
            return self._mapping(value)
        if is_frame(value):
            return self._frame(value)
        return {"": self.read_array(value)}

    def _explicit(self, value: Any) -> tuple[Prediction, ...] | None:
        """What says itself which kind of prediction it is."""
        if value is None:
            return ()
        if isinstance(value, Prediction):
            return (value,)
        if hasattr(value, "dist") and hasattr(value, "args"):
            return (Distribution.from_scipy(value, n=self.n),)
        if not isinstance(value, list | tuple):
            return None
        if not value:
            return ()
        if not any(isinstance(element, Prediction) for element in value):
            _refuse_objects(value, self.name)
            return None
        for element in value:
            if not isinstance(element, Prediction):
                raise InputError(
                    f"{self.name} must contain only predictions if it contains one, but also has "
                    f"{type(element).__name__}; give a point forecast as "
                    "howsure.Table(…, point=forecast)"
                )
        return tuple(value)

    def _mapping(
        self, value: Mapping[Any, Any], *, frame: bool = False
    ) -> dict[str, PredictionInput]:
        """Quantiles by level, columns of one model, or models by name."""
        if not value:
            raise InputError(f"{self.name} must contain a prediction, but is empty")
        levels = [key for key in value if _is_level(key)]
        if len(levels) == len(value):
            return {"": self._by_level(value)}
        if levels:
            other = next(key for key in value if not _is_level(key))
            raise InputError(
                f"{self.name} must have only numbers (levels of quantiles) or only text (models "
                f"or columns) as keys, got {levels[0]!r} and {other!r}"
            )
        columns = {str(key): column for key, column in value.items()}
        if all(_is_column(column) for column in columns.values()):
            models = self._recognised(list(columns))
            if models:
                return {m.model: self._columns(columns, m, frame=frame) for m in models}
            self._check_spreads(list(columns))
            if len(columns) > 2 or not frame:
                self._check_ends(list(columns))
        if frame:
            return {"": self._unnamed(columns)}
        inputs: dict[str, PredictionInput] = {}
        for key, column in columns.items():
            title = f"{self.name}[{key!r}]"
            if column is None:
                raise InputError(f"{title} must be a prediction, got None")
            if bound(key) is not None and _is_column(column):
                raise InputError(
                    f"{title} is named like an interval end, but there are also models: give "
                    "both ends as one model, {'name': {'lower_90': …, 'upper_90': …}, …}"
                )
            for inner, prediction in replace(self, name=title).read(column).items():
                inputs[f"{key}/{inner}" if inner else key] = prediction
        return inputs

    def _check_spreads(self, names: Sequence[str]) -> None:
        """Refuse a forecast beside what may be its spread: they are no two models, nor two ends."""
        spreads = stated_spreads(names)
        roles = BY_NAME["mean"], BY_NAME["point"]
        if spreads and any(role.matches(normal_form(name)) for name in names for role in roles):
            raise InputError(
                f"{self.name}[{spreads[0]!r}] may be an uncertainty: name it 'sd' (for a "
                "variance, its square root), or omit it; give any other uncertainty score as "
                "howsure.Table(…, uncertainty=score)"
            )

    def _check_ends(self, names: Sequence[str]) -> None:
        """Refuse what may be ends of intervals: they are no rival point forecasts."""
        likely = likely_ends(names)
        if likely is None and (len(names) < 2 or not self.coverages):
            return
        ends, points = "name them 'lower' and 'upper'", "omit coverage"
        if likely is not None:
            ends = (
                f"give ({self.name}[{likely[0]!r}], {self.name}[{likely[1]!r}]) with coverage=0.9"
            )
            points = "give them other names, without coverage"
        raise InputError(
            f"{self.name} of {listed(names)} may be interval ends or point forecasts of models: "
            f"for ends {ends}, for point forecasts {points}"
        )

    def _by_level(self, value: Mapping[Any, Any]) -> PredictionInput:
        """Quantiles whose keys are their levels."""
        keys = [float(key) for key in value]
        try:
            levels = stated_levels(keys)
        except InputError as error:
            raise InputError(
                f"{error}. Numbers as keys of {self.name} are levels of quantiles; names of models "
                "are text"
            ) from error
        if self.levels is not None and sorted(keys) != sorted(self.levels.tolist()):
            raise InputError(
                f"omit levels, because the keys of {self.name} are levels: got "
                f"{self.levels.tolist()} and {keys}"
            )
        for key, column in value.items():
            if isinstance(column, tuple) and len(column) == 2 and self.n != 2:
                raise InputError(
                    f"{self.name}[{key!r}] must be one array, because numeric keys are levels of "
                    "quantiles, got two. Give interval ends as (lower, upper) with "
                    f"coverage={key!r}"
                )
        table = [
            as_vector(column, f"{self.name}[{key!r}]", length=self.n)
            for key, column in value.items()
        ]
        return self.quantiles(levels, np.column_stack(table))

    def _recognised(self, names: Sequence[str]) -> list[Roles]:
        """The roles of columns of predictions with uncertainty, by model; none if none is."""
        flags: Any = {"coverage": self.coverages or None}
        idle = idle_columns(names)
        keys = [*_keys(names), *idle]
        refuse_mean_intervals(names, self.name)
        outcomes = [column for column in names if BY_NAME["y"].matches(normal_form(column))]
        if outcomes:
            raise InputError(
                f"{self.name} has a column of y, {outcomes[0]!r}: give a table with y alone, as "
                "howsure.assess(table), or omit that column"
            )
        try:
            assigned = assign_models(names, flags, outcome=False)
        except InputError as error:
            if any(map(_tells_uncertainty, names)):
                raise InputError(
                    f"{self.name}: {error}; in place of … give the table {{'y': y, **{self.name}}}"
                ) from error
            return []
        models = [roles.only(lambda role: role.of in ("prediction", "doubt")) for roles in assigned]
        for roles in models:
            stated = any(roles[role] for role in ("lower", "sd", "variance", "samples"))
            if not (stated or roles.law or roles.classes or len(roles.levels) > 1):
                return []
        used = [column for roles in models for column in roles.by_column()]
        unused = [column for column in names if column not in used and column not in keys]
        if unused and len(models) > 1:
            titles = listed(roles.model for roles in models)
            raise InputError(
                f"{self.name} has columns of models ({titles}) and others ({listed(unused)}): "
                "omit those, or include y as a column, as howsure.assess(table)"
            )
        if unused:
            raise InputError(
                f"{self.name} has columns of one model ({listed(used)}) and others "
                f"({listed(unused)}): give only the columns of one model, or several models as "
                f"{{'name': {{{used[0]!r}: …}}, …}}"
            )
        return models

    def _columns(self, columns: Mapping[str, Any], roles: Roles, *, frame: bool) -> PredictionInput:
        """One model's columns, by the road of tables."""
        if roles["lower"] and None in roles.coverages:
            usual, why = usual_coverage(columns)
            raise InputError(
                f"{self.name} has interval ends of unknown coverage: pass coverage={usual}"
                + f", {why}" * bool(why)
            )
        if self.levels is not None and self.name == "prediction":
            raise InputError(
                f"levels are for plain arrays, and the names in {self.name} state them: omit "
                "levels, or give howsure.Quantiles(levels, …)"
            )
        table = {
            column: to_host(array, f"{self.name}[{column!r}]") for column, array in columns.items()
        }
        cells = read_cells(MappingTable(table, self.name), roles)
        for column, gone in cells.missing().items():
            raise InputError(
                f"{self.name}[{column!r}] must contain no missing values, got {int(gone.sum())} "
                f"(first at row {int(np.argmax(gone))})"
            )
        cells.check_finite()
        if cells.n != self.n:
            raise InputError(f"{self.name} must have {self.n} rows like y, got {cells.n}")
        with within(self.name):
            predictions = predictions_of(cells, self.crossing)
        every = [f"{column} {' and '.join(words)}" for column, words in roles.by_column().items()]
        more = len(every) - _MAX_USES
        uses = ", ".join(every[:_MAX_USES]) + (f" and {more} more" if more > 0 else "")
        notes = [f"{'columns' if frame else 'keys'} of {self.name} read as: {uses}"]
        if keys := _keys(list(columns)):
            notes.append(
                f"{', '.join(keys)} {'is' if len(keys) == 1 else 'are'} not used if y is given "
                "separately; with y as a column of the frame, results are by series and time"
            )
        whys: dict[str, list[str]] = {}
        for column, why in idle_columns(columns).items():
            whys.setdefault(why, []).append(column)
        notes += [f"not read: {', '.join(names)} ({why})" for why, names in whys.items()]
        return PredictionInput(
            predictions=predictions,
            point=cells.column("point"),
            uncertainty=cells.column("uncertainty"),
            notes=tuple(notes),
        )

    def _frame(self, value: Any) -> dict[str, PredictionInput]:
        """A data frame: as a mapping of its columns, which are never models."""
        import narwhals as nw

        with refusing(self.name):
            native = nw.from_native(value)
            frame: nw.DataFrame[Any] = (
                native.collect() if isinstance(native, nw.LazyFrame) else native
            )
            columns = {key: frame.get_column(key).to_numpy() for key in frame.columns}
        bare = ([*range(len(columns))], [f"column_{position}" for position in range(len(columns))])
        if list(columns) in bare:
            return {"": self.parse_array(numbers(list(columns.values()), self.name).T)}
        return self._mapping(columns, frame=True)

    def _unnamed(self, columns: Mapping[str, Any]) -> PredictionInput:
        """A frame whose columns' names say nothing of uncertainty."""
        wanted = 2 if self.levels is None else len(self.levels)
        settled = self.levels is not None or len(self.coverages) == 1
        if len(columns) == 1 or (settled and len(columns) == wanted):
            return self.parse_array(numbers(list(columns.values()), self.name).T)
        raise InputError(
            f"{self.name} has the columns {listed(columns, 6)}, whose names are not recognised. "
            f"Recognised names are {_COLUMNS}. Or give one column, or an array with coverage= or "
            f"levels=. If each column is a model's forecast, give {{c: {self.name}[c] for c in "
            f"{self.name}.columns}}"
        )


def _refuse_objects(value: Sequence[Any], name: str) -> None:
    """Refuse a list of models, or of laws for a row each."""
    if callable(getattr(value[0], "predict", None)):
        raise InputError(
            f"{name} must be the output of models, got {len(value)} models: use "
            f"howsure.assess_model({name}, X, y)"
        )
    if hasattr(value[0], "dist") and hasattr(value[0], "args"):
        raise InputError(
            f"{name} must be a single distribution with arrays as parameters, such as "
            f"stats.norm(mean, sd), got {len(value)} distributions"
        )


def _is_level(key: object) -> bool:
    """Whether a key is a number."""
    return isinstance(key, int | float | np.number) and not isinstance(key, bool)


def _is_column(value: Any) -> bool:
    """Whether a value is one number per row."""
    if isinstance(value, Prediction | Mapping | str) or is_frame(value):
        return False
    try:
        shape = np.shape(to_host(value))
    except (TypeError, ValueError):
        return False
    return len(shape) == 1 or (len(shape) == 2 and shape[1] == 1)


def _keys(names: Sequence[str]) -> list[str]:
    """Columns that say which row of nixtla's it is: they play no role beside a y of its own."""
    name_of = {normal_form(name): name for name in names}
    if not (name_of.keys() >= set(KEYS[:2]) or is_prophet(name_of)):
        return []
    return [name_of[plain] for plain in KEYS if plain in name_of]


def _tells_uncertainty(name: str) -> bool:
    """Whether a column's name alone says that it is part of a prediction with uncertainty."""
    sure = any(BY_NAME[role].matches(normal_form(name)) for role in ("sd", "samples"))
    return sure or bound(name) is not None or bool(quantile_levels([name]))
