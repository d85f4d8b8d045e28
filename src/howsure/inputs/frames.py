"""Tables held in memory: data frames, mappings of arrays, and draws as xarray holds them."""

from __future__ import annotations

import io
import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from howsure.core.arrays import AnyArray, FloatArray, as_matrix, as_numbers
from howsure.core.errors import InputError
from howsure.core.labels import Categories
from howsure.core.optional import require
from howsure.core.text import quoted
from howsure.inputs.array_inputs import PredictionInput
from howsure.inputs.files import check_flat, some_rows
from howsure.inputs.names import normal_form
from howsure.inputs.roles import BY_NAME, Kinds
from howsure.inputs.source import Source, listed, refusing
from howsure.inputs.values import arrow_of
from howsure.predictions import Samples


def _with_index(frame: Any) -> Any:
    """A frame of pandas with its index as a column, which a file of it has too.

    Without a name it is called ``index``; numbers without one are numbers of rows.
    """
    index: Any = getattr(frame, "index", None)
    if not hasattr(index, "nlevels"):
        return frame
    if type(index).__name__ == "PeriodIndex":
        index = index.to_timestamp()
    numbered = frame.reset_index(drop=True)
    for level in reversed(range(index.nlevels)):
        values = index.get_level_values(level)
        unnamed = values.name is None
        name = "index" if unnamed else values.name
        counts = unnamed and (index.nlevels > 1 or values.dtype.kind in "iufb")
        if not counts and name not in numbered.columns:
            numbered.insert(0, name, values)
    return numbered


def is_frame(value: object) -> bool:
    """Whether a value is a data frame; what a lazy one holds is not asked for."""
    return hasattr(type(value), "columns")


def library_classes(value: object, package: str) -> list[str]:
    """Names of the classes that a package made among those of a value."""
    classes = type(value).__mro__
    return [c.__name__ for c in classes if c.__module__.partition(".")[0] == package]


class FrameTable(Source):
    """A dataframe of any library; of a lazy one, the needed columns are collected."""

    def __init__(self, frame: Any, title: str = "the table") -> None:
        import narwhals as nw  # slow to load

        self.title = title
        if isinstance(frame, pa.RecordBatch):
            frame = pa.Table.from_batches([frame])
        pandas = type(frame).__module__.startswith("pandas")
        if pandas and getattr(getattr(frame, "columns", None), "nlevels", 1) > 1:
            frame = frame.set_axis(["_".join(filter(None, map(str, n))) for n in frame], axis=1)
        with refusing(title):
            self._frame: Any = nw.from_native(_with_index(frame))
            native_names = self._frame.collect_schema().names()
        self._native = {str(name): name for name in native_names}
        self.names = tuple(map(str, native_names))
        self.check_names()

    def read(self, kinds: Kinds) -> pa.Table:
        """The named columns."""
        import narwhals as nw

        with refusing(self.title):
            frame = self._frame.select([nw.col(self._native[name]) for name in kinds])
            if isinstance(frame, nw.LazyFrame):
                frame = frame.collect()
            columns = {}
            for name in kinds:
                series = frame.get_column(self._native[name])
                columns[name] = _arrow(series.to_arrow, series.to_list)
        table = some_rows(pa.table(columns), self.title)
        check_flat(table.schema, kinds, self.title)
        return table


class MappingTable(Source):
    """A mapping of names to arrays of one length."""

    def __init__(self, arrays: Mapping[Any, Any], title: str = "the table") -> None:
        self.title = title
        self._arrays = {str(name): values for name, values in arrays.items()}
        self.names = tuple(map(str, arrays))
        self.check_names()
        if not self.names:
            raise InputError(f"{title}: no columns")

    def read(self, kinds: Kinds) -> pa.Table:
        """The named columns."""
        table = self._columns(kinds)
        check_flat(table.schema, kinds, self.title)
        return table

    def read_all(self) -> pa.Table:
        """Every column; a matrix holds a list in each cell."""
        return self._columns(dict.fromkeys(self.names, "vector"))

    def _columns(self, kinds: Kinds) -> pa.Table:
        columns: dict[str, pa.ChunkedArray] = {}
        for name in kinds:
            with refusing(f"{self.title}: column {quoted(name)}"):
                vector = kinds[name] == "vector"
                columns[name] = _column(self._arrays[name], vector=vector)
            length = len(next(iter(columns.values())))
            if len(columns[name]) != length:
                raise InputError(
                    f"{self.title}: columns must have the same length, got {length} rows and "
                    f"{len(columns[name])} in {quoted(name)}"
                )
        return some_rows(pa.table(columns), self.title)


def _column(values: Any, *, vector: bool = False) -> pa.ChunkedArray:
    if isinstance(values, Categories):
        return pa.chunked_array([pa.array(values.values(), from_pandas=True)])
    if isinstance(values, str | bytes | set | frozenset | Mapping):
        raise TypeError(f"an array of shape (rows,) is needed, got {type(values).__name__}")
    if hasattr(values, "__array__") and not hasattr(values, "__arrow_array__"):
        values = values if isinstance(values, np.ma.MaskedArray) else np.asarray(values)
        if values.ndim == 2 and values.shape[1] == 1:
            values = values[:, 0]
        if values.ndim == 2 and vector:
            flat = pa.array(np.ascontiguousarray(values).reshape(-1))
            return pa.chunked_array([pa.FixedSizeListArray.from_arrays(flat, values.shape[1])])
        if values.ndim != 1:
            raise TypeError(f"an array of shape (rows,) is needed, got shape {values.shape}")
        if _is_plain(values):
            return pa.chunked_array([arrow_of(values)])
    return _arrow(lambda: pa.array(values, from_pandas=True), lambda: list(values))


def _is_plain(values: AnyArray) -> bool:
    """Whether an array holds numbers of this machine, and misses none."""
    kind = values.dtype
    if isinstance(values, np.ma.MaskedArray) or kind.kind not in "iuf" or not kind.isnative:
        return False
    return kind.itemsize <= 8 and not np.isnan(values).any()


def _arrow(direct: Callable[[], Any], items: Callable[[], list[Any]]) -> pa.ChunkedArray:
    """An Arrow column; values of mixed types become text, so that each can be looked at."""
    try:
        column = direct()
    except (pa.ArrowException, TypeError, NotImplementedError):
        text = [None if is_missing(item) else str(item) for item in items()]
        column = pa.array(text, type=pa.large_string())
    return column if isinstance(column, pa.ChunkedArray) else pa.chunked_array([column])


def is_missing(item: object) -> bool:
    if item is None or item is np.ma.masked or type(item).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(item, float | np.floating | np.datetime64) and bool(item != item)


# ---- posterior predictive draws: what ArviZ, xarray and netCDF hold, one row for each observation

_DRAWN = ("chain", "draw", "sample")
"""Dimensions that count draws; ArviZ's extract makes ``sample`` of the other two."""
_PREDICTED = ("posterior_predictive", "predictions")
_IN_SAMPLE = (
    "observed_data are the data that the model was fitted to: a model looks better on these "
    "rows than on new ones"
)


def is_inference(value: object) -> bool:
    """Whether a value holds groups of draws, as ArviZ keeps them."""
    return "InferenceData" in library_classes(value, "arviz") or "DataTree" in library_classes(
        value, "xarray"
    )


def read_posterior(value: Any, n: int) -> PredictionInput | None:
    """Draws of n rows that xarray or ArviZ holds; None of anything else."""
    if is_inference(value):
        return _of_groups(value, n)
    classes = library_classes(value, "xarray")
    if "Dataset" in classes:
        drawn = [name for name in value.data_vars if _is_drawn(value[name])]
        if len(drawn) > 1:
            raise InputError(
                f"prediction must be of one variable, got {listed(map(str, drawn))}: give one of "
                f"them, prediction[{str(drawn[0])!r}]"
            )
        return _samples(value[drawn[0]], n) if drawn else None
    if "DataArray" in classes and _is_drawn(value):
        return _samples(value, n)
    return None


def posterior_table(value: Any, title: str) -> MappingTable:
    """Groups of draws as a table: y, one column per draw, and what is known of the rows besides.

    Where several variables were observed, each is a column of its own name, and its draws are
    called ``NAME.1``, ``NAME.2``, ….
    """
    groups = _groups(value)
    predictive = groups.get("posterior_predictive", {})
    observed = groups.get("observed_data", {})
    shared = [name for name in observed if name in predictive]
    if not shared:
        raise InputError(f"{title}: {_lacking(groups, observed, predictive)}")
    columns: dict[str, AnyArray] = {}
    notes = []
    for name in shared:
        y = observed[name]
        if _size(predictive[name]) != y.size:
            raise InputError(
                f"{title}: posterior_predictive[{str(name)!r}] must have draws of the {y.size:,} "
                f"rows of observed_data, got {_shape(predictive[name])}"
            )
        draws = _rows(predictive[name], y.dims, f"{title}: posterior_predictive[{str(name)!r}]")
        columns["y" if len(shared) == 1 else str(name)] = np.asarray(y.values).reshape(-1)
        stem = "sample_" if len(shared) == 1 else f"{name}."
        width = len(str(draws.shape[1]))
        columns |= {f"{stem}{k:0{width}}": values for k, values in enumerate(draws.T, 1)}
        notes.append(_describe_reshaping(predictive[name], draws))
    for name, values in _columns_along_rows(
        observed[shared[0]], groups.get("constant_data", {})
    ).items():
        columns.setdefault(name, values)
    lengths = {str(name): observed[name].size for name in shared}
    if len(set(lengths.values())) > 1:
        counts_told = ", ".join(f"{name!r} {count:,}" for name, count in lengths.items())
        raise InputError(
            f"{title}: several outcomes were observed: {counts_told} rows. Choose one and give y "
            f"and draws: howsure.assess(y, idata.posterior_predictive[{str(shared[0])!r}])"
        )
    table = MappingTable(columns, title)
    table.notes = (*notes, _IN_SAMPLE)
    return table


def posterior_file(title: str, file: pa.NativeFile) -> MappingTable:
    """The table of an open netCDF file."""
    xarray = require("xarray", extra="netcdf")
    require("h5netcdf", extra="netcdf")
    with refusing(title):
        tree = xarray.open_datatree(io.BufferedReader(file), engine="h5netcdf")
        try:
            return posterior_table(tree, title)
        finally:
            tree.close()


def _groups(value: Any) -> dict[str, Any]:
    """The datasets of a tree or of what ArviZ calls InferenceData, by the name of their group."""
    if "DataTree" in library_classes(value, "xarray"):
        return {str(name): child.dataset for name, child in value.children.items()}
    return {str(name): value[name] for name in value.groups()}


def _lacking(groups: Mapping[str, Any], observed: Iterable[Any], drawn: Iterable[Any]) -> str:
    """Why groups hold nothing to assess."""
    group_names = listed(groups) or "none"
    if not groups:
        return "no groups of ArviZ, such as posterior_predictive"
    if "predictions" in groups and not list(drawn):
        return (
            f"predictions are for new rows, but no group has their y (groups: {group_names}): "
            "give it, as howsure.assess(y, idata)"
        )
    if not list(drawn):
        return (
            "draws of y are needed, but there is no group posterior_predictive (groups: "
            f"{group_names}); PyMC adds it with pm.sample_posterior_predictive(idata, "
            "extend_inferencedata=True)"
        )
    if not list(observed):
        return (
            f"y is needed, but there is no group observed_data (groups: {group_names}): give it, "
            "as howsure.assess(y, idata)"
        )
    return (
        "a variable must be in both observed_data and posterior_predictive, got "
        f"{listed(map(str, observed))} and {listed(map(str, drawn))}: give y and draws, as "
        "howsure.assess(y, idata.posterior_predictive[NAME])"
    )


def _of_groups(value: Any, n: int) -> PredictionInput:
    """The draws beside a y of its own: of the group whose rows it has."""
    groups = _groups(value)
    predicted_groups = {name: groups[name] for name in _PREDICTED if name in groups}
    if not predicted_groups:
        raise InputError(f"prediction: {_lacking(groups, (), ())}")
    fits: dict[str, Any] = {}
    for group, dataset in predicted_groups.items():
        drawn = [name for name in dataset.data_vars if _is_drawn(dataset[name])]
        fits |= {f"{group}[{str(name)!r}]": dataset[name] for name in drawn}
    wanted = {name: draws for name, draws in fits.items() if _size(draws) == n}
    if len(wanted) != 1:
        shapes = ", ".join(f"{name} has {_size(draws):,}" for name, draws in fits.items())
        what = "several have them" if wanted else "none has them"
        raise InputError(
            f"one variable of prediction must have draws of the {n:,} rows of y, but {what}: "
            f"{shapes or 'no draws'}; give one, such as idata.{next(iter(wanted or fits), '…')}"
        )
    return _samples(next(iter(wanted.values())), n)


def _is_drawn(array: Any) -> bool:
    return any(dim in _DRAWN for dim in array.dims)


def _size(array: Any) -> int:
    """The rows of draws."""
    return math.prod(length for dim, length in array.sizes.items() if dim not in _DRAWN)


def _rows(array: Any, dims: Iterable[Any], name: str) -> FloatArray:
    """Draws as a matrix, shape (rows, draws): dimensions of rows in the order that is given."""
    dims = tuple(dims)
    draw_dims = tuple(dim for dim in array.dims if dim in _DRAWN)
    if set(array.dims) - set(draw_dims) != set(dims) or not draw_dims:
        raise InputError(
            f"{name} must have the dimensions of y and those of draws ({', '.join(_DRAWN)}), got "
            f"{', '.join(map(str, array.dims))}; y has {', '.join(map(str, dims)) or 'none'}"
        )
    turned = array.transpose(*dims, *draw_dims)
    rows = math.prod(turned.shape[: len(dims)])
    draws = as_numbers(np.asarray(turned.values), name).reshape(rows, -1)
    gone = int(np.isnan(draws).all(axis=0).sum())
    if 0 < gone < draws.shape[1]:
        raise InputError(
            f"{name} must not contain missing draws; {gone:,} of {draws.shape[1]:,} are missing "
            "in every row: chains of unequal length were padded; cut all to the shortest, as "
            "idata.isel(draw=slice(K))"
        )
    return as_matrix(draws, name, finite=False)


def _samples(array: Any, n: int) -> PredictionInput:
    dims = [dim for dim in array.dims if dim not in _DRAWN]
    name = "prediction" if array.name is None else f"prediction {quoted(str(array.name))}"
    if BY_NAME["mean"].matches(normal_form(str(array.name))):
        raise InputError(
            f"{name} may contain draws of the mean of y, whose spread excludes the noise of y: "
            "give draws of y, as idata.posterior_predictive[NAME], or prediction.rename('y') if "
            "these are"
        )
    draws = _rows(array, dims, name)
    if len(draws) != n:
        raise InputError(
            f"{name} must have draws of {n:,} rows like y, got {_shape(array)}: {len(draws):,} rows"
        )
    note = _describe_reshaping(array, draws)
    return PredictionInput.of(Samples(as_matrix(draws, name)), note)


def _shape(array: Any) -> str:
    return ", ".join(f"{dim} {length:,}" for dim, length in array.sizes.items())


def _describe_reshaping(array: Any, draws: FloatArray) -> str:
    """How draws were turned."""
    name = "" if array.name is None else f" of {quoted(str(array.name))}"
    return (
        f"posterior predictive draws{name} ({_shape(array)}) read as {draws.shape[1]:,} samples of "
        f"each of {len(draws):,} rows"
    )


def _columns_along_rows(y: Any, constant: Mapping[Any, Any]) -> dict[str, AnyArray]:
    """What is known of rows besides: coordinates of y, and constant data of its dimensions."""
    arrays = {str(name): coord for name, coord in y.coords.items()}
    arrays |= {str(name): constant[name] for name in constant}
    columns = {}
    for name, array in arrays.items():
        if array.dims and set(array.dims) <= set(y.dims):
            columns[name] = np.asarray(array.broadcast_like(y).transpose(*y.dims).values).reshape(
                -1
            )
    return columns
