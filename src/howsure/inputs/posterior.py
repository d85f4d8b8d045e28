"""Posterior predictive draws: what ArviZ, xarray and netCDF hold, one row for each observation."""

from __future__ import annotations

import io
import math
from collections.abc import Iterable, Mapping
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from howsure.core.arrays import FloatArray, as_matrix, as_numbers
from howsure.core.errors import InputError
from howsure.core.optional import require
from howsure.inputs.array_inputs import PredictionInput
from howsure.inputs.frames import MappingTable, library_classes
from howsure.inputs.names import normal_form
from howsure.inputs.roles import BY_NAME
from howsure.inputs.source import listed, quoted, refusing
from howsure.predictions import Samples

_DRAWN: Final = ("chain", "draw", "sample")
"""Dimensions that count draws; ArviZ's extract makes ``sample`` of the other two."""
_PREDICTED: Final = ("posterior_predictive", "predictions")
_IN_SAMPLE: Final = (
    "observed_data is what ArviZ keeps of the data that the model was fitted to: on rows that it "
    "has seen, a model looks better than on new ones"
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
        return _samples(value[_only(drawn, "prediction")], n) if drawn else None
    if "DataArray" in classes and _is_drawn(value):
        return _samples(value, n)
    return None


def posterior_table(value: Any, title: str) -> MappingTable:
    """Groups of draws as a table: y, one column a draw, and what is known of the rows besides.

    Where several variables were observed, each is a column of its own name, and its draws are
    called ``NAME.1``, ``NAME.2``, ….
    """
    groups = _groups(value)
    predictive = groups.get("posterior_predictive", {})
    observed = groups.get("observed_data", {})
    shared = [name for name in observed if name in predictive]
    if not shared:
        raise InputError(f"{title}: {_lacking(groups, observed, predictive)}")
    columns: dict[str, npt.NDArray[Any]] = {}
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
        columns |= {f"{stem}{k:0{width}}": held for k, held in enumerate(draws.T, 1)}
        notes.append(_describe_reshaping(predictive[name], draws))
    for name, held in _columns_along_rows(
        observed[shared[0]], groups.get("constant_data", {})
    ).items():
        columns.setdefault(name, held)
    lengths = {str(name): observed[name].size for name in shared}
    if len(set(lengths.values())) > 1:
        said = ", ".join(f"{name!r} {count:,}" for name, count in lengths.items())
        raise InputError(
            f"{title}: one outcome is assessed at a time, and several were observed: {said} rows. "
            f"Give y and draws: howsure.assess(y, idata.posterior_predictive[{str(shared[0])!r}])"
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
    held = listed(groups) or "none"
    if not groups:
        return "groups as ArviZ makes them are needed, such as posterior_predictive, got none"
    if "predictions" in groups and not list(drawn):
        return (
            f"predictions are of new rows, and y of new rows is in no group (groups: {held}): give "
            "it, as howsure.assess(y, idata)"
        )
    if not list(drawn):
        return (
            f"draws of y are needed, and there is no group posterior_predictive (groups: {held}); "
            "PyMC adds it by pm.sample_posterior_predictive(idata, extend_inferencedata=True)"
        )
    if not list(observed):
        return (
            f"y is needed, and there is no group observed_data (groups: {held}): give it, as "
            "howsure.assess(y, idata)"
        )
    return (
        "a variable must stand in observed_data and in posterior_predictive, got "
        f"{listed(map(str, observed))} and {listed(map(str, drawn))}: give y and draws, as "
        "howsure.assess(y, idata.posterior_predictive[NAME])"
    )


def _of_groups(value: Any, n: int) -> PredictionInput:
    """The draws beside a y of its own: of the group whose rows it has."""
    groups = _groups(value)
    held = {name: groups[name] for name in _PREDICTED if name in groups}
    if not held:
        raise InputError(f"prediction: {_lacking(groups, (), ())}")
    fits: dict[str, Any] = {}
    for group, dataset in held.items():
        drawn = [name for name in dataset.data_vars if _is_drawn(dataset[name])]
        fits |= {f"{group}[{str(name)!r}]": dataset[name] for name in drawn}
    wanted = {name: draws for name, draws in fits.items() if _size(draws) == n}
    if len(wanted) != 1:
        shapes = ", ".join(f"{name} has {_size(draws):,}" for name, draws in fits.items())
        what = "several have" if wanted else "none has"
        raise InputError(
            f"prediction must hold draws of the {n:,} rows of y once, and {what} as many: "
            f"{shapes or 'no draws'}; give one, such as idata.{next(iter(wanted or fits), '…')}"
        )
    return _samples(next(iter(wanted.values())), n)


def _only(names: list[Any], what: str) -> Any:
    if len(names) > 1:
        raise InputError(
            f"{what} must be of one variable, got {listed(map(str, names))}: give one alone, "
            f"{what}[{str(names[0])!r}]"
        )
    return names[0]


def _is_drawn(array: Any) -> bool:
    return any(dim in _DRAWN for dim in array.dims)


def _size(array: Any) -> int:
    """The rows of draws."""
    return math.prod(length for dim, length in array.sizes.items() if dim not in _DRAWN)


def _rows(array: Any, dims: Iterable[Any], name: str) -> FloatArray:
    """Draws as a matrix, shape (rows, draws): dimensions of rows in the order that is given."""
    dims = tuple(dims)
    rest = tuple(dim for dim in array.dims if dim in _DRAWN)
    if set(array.dims) - set(rest) != set(dims) or not rest:
        raise InputError(
            f"{name} must have the dimensions of y and those of draws ({', '.join(_DRAWN)}), got "
            f"{', '.join(map(str, array.dims))} beside {', '.join(map(str, dims)) or 'none'} of y"
        )
    turned = array.transpose(*dims, *rest)
    rows = math.prod(turned.shape[: len(dims)])
    draws = as_numbers(np.asarray(turned.values), name).reshape(rows, -1)
    gone = int(np.isnan(draws).all(axis=0).sum())
    if 0 < gone < draws.shape[1]:
        raise InputError(
            f"{name} must hold no missing draws, got {gone:,} of {draws.shape[1]:,} that are "
            "missing in every row: chains of unequal length were filled up; cut all to the "
            "shortest, as idata.isel(draw=slice(K))"
        )
    return as_matrix(draws, name, finite=False)


def _samples(array: Any, n: int) -> PredictionInput:
    dims = [dim for dim in array.dims if dim not in _DRAWN]
    name = "prediction" if array.name is None else f"prediction {quoted(str(array.name))}"
    if BY_NAME["mean"].matches(normal_form(str(array.name))):
        raise InputError(
            f"{name} may hold draws of the mean of y, whose spread lacks its noise: give draws of "
            "y, as idata.posterior_predictive[NAME], or prediction.rename('y') if these are"
        )
    draws = _rows(array, dims, name)
    if len(draws) != n:
        raise InputError(
            f"{name} must hold draws of {n:,} rows as y has, got {_shape(array)}: "
            f"{len(draws):,} rows"
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


def _columns_along_rows(y: Any, constant: Mapping[Any, Any]) -> dict[str, npt.NDArray[Any]]:
    """What is known of rows besides: coordinates of y, and constant data of its dimensions."""
    known = {str(name): coord for name, coord in y.coords.items()}
    known |= {str(name): constant[name] for name in constant}
    found = {}
    for name, held in known.items():
        if held.dims and set(held.dims) <= set(y.dims):
            found[name] = np.asarray(held.broadcast_like(y).transpose(*y.dims).values).reshape(-1)
    return found
