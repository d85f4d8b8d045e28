"""Inputs of rows whose y is not known yet, or not for all of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Unpack

import numpy as np
import numpy.typing as npt

from howsure.core.arrays import FloatArray, IntArray
from howsure.core.brief import brief_repr
from howsure.core.errors import InputError
from howsure.core.labels import Categories
from howsure.inputs import values
from howsure.inputs.building import build
from howsure.inputs.cells import ParsedColumns, read_cells
from howsure.inputs.columns import assign_roles
from howsure.inputs.encoding import embedded
from howsure.inputs.long import refuse_long
from howsure.inputs.names import Roles
from howsure.inputs.roles import ROLES, Columns, Kind
from howsure.inputs.source import Source, quoted
from howsure.inputs.sources import sources
from howsure.inputs.tables import Loaded
from howsure.predictions import EvalSet

_NO_PREDICTION = "\0prediction"
"""Stands for a column of predictions, where a table needs none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unlabelled:
    """Rows to be scored, and the outcomes of those that have one already.

    Attributes
    ----------
    names : ndarray of shape (n,)
        Names of the rows; their numbers from 0 where the table names none.
    features : mapping of str to ndarray of shape (n,)
        The reference's features.
    embedding : ndarray of float, shape (n, e), optional
        Where the reference's embedding is held by columns or comes from an encoder.
    texts : mapping of str to ndarray of str, shape (n,)
        As in `Loaded`.
    images : ndarray of str, shape (n,), optional
        As in `Loaded`.
    labelled : EvalSet, optional
        Predictions and outcomes of the rows that have both.
    places : ndarray of int, shape (k,)
        Where the rows of `labelled` stand among all.
    groups : mapping of str to Categories
        Groups of the rows.
    time : ndarray, shape (n,), optional
        When each row came.
    """

    names: npt.NDArray[Any]
    features: Mapping[str, npt.NDArray[Any]]
    embedding: FloatArray | None = None
    texts: Mapping[str, npt.NDArray[Any]] = field(default_factory=dict)
    images: npt.NDArray[Any] | None = None
    labelled: EvalSet | None = None
    places: IntArray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    groups: Mapping[str, Categories] = field(default_factory=dict)
    time: npt.NDArray[Any] | None = None

    __repr__ = brief_repr


def load_unlabelled(
    source: Any,
    like: Loaded,
    *,
    encoding: str | None = None,
    decimal: str = ".",
    groups: Sequence[str] = (),
    time: str | None = None,
) -> Unlabelled:
    """Read the rows of a table as those of a labelled reference were read.

    The same columns serve as inputs, and a column of texts or images goes through the same
    encoder. Where the table holds the reference's y and predictions too, the rows that have them
    are labelled. `groups` and `time` name columns of the new table.
    """
    table = next(sources(source, encoding, decimal))
    refuse_long(table)
    (reference,) = like.evalsets
    roles = _input_roles(table, like.roles, reference)
    _check_present(table, groups, "groups", "")
    _check_present(table, () if time is None else (time,), "time", "")
    timed = {} if time is None else {"time": (time,)}
    roles = replace(roles, columns={**roles.columns, "groups": tuple(groups), **timed})
    cells = _whole_cells(table, roles)
    texts = {**cells.of("encode"), **cells.of("image")}
    vectors, images = embedded(texts, roles, folder=table.folder, title=table.title)
    held = list(cells.of("embedding").values())
    names = cells.one("rows")
    labelled, places = _labelled(table, like.roles)
    return Unlabelled(
        names=cells.places if names is None else names,
        features=_features(table, reference.features),
        embedding=np.hstack(held) if held else vectors,
        texts=texts,
        images=images,
        labelled=labelled,
        places=places,
        groups={name: held.categories() for name, held in cells.of("groups").items()},
        time=cells.one("time"),
    )


def load_bare(
    source: Any,
    *,
    encoding: str | None = None,
    decimal: str = ".",
    **columns: Unpack[Columns],
) -> Loaded | None:
    """Read a reference that holds inputs alone, without y or without a prediction.

    Its set has zeros for y and a point forecast. None where the table has both, or no inputs.
    """
    table = next(sources(source, encoding, decimal))
    given: Any = {name: value for name, value in columns.items() if value}
    if any(role.of in ("outcome", "belief", "long") and role.name in given for role in ROLES):
        return None
    try:
        assign_roles(table.names, given)
        return None
    except InputError:
        names = (*table.names, _NO_PREDICTION)
        given["point"] = _NO_PREDICTION
        roles = assign_roles(names, given, outcome=False)
    inputs = roles.only(lambda role: role.of == "inputs")
    if not inputs.by_column():
        return None
    cells = _whole_cells(table, inputs)
    texts = {**cells.of("encode"), **cells.of("image")}
    vectors, images = embedded(texts, inputs, folder=table.folder, title=table.title)
    absent = ("y",)
    bare = replace(
        cells,
        model=cells.model or "reference",
        columns={**cells.columns, ("number", "y"): np.zeros(cells.n)},
        roles=replace(inputs, columns={**inputs.columns, "y": absent, "point": absent}),
    )
    evalsets = build([bare], crossing="sort", embedding=vectors)
    return Loaded(evalsets=evalsets, roles=inputs, texts=texts, images=images)


def _whole_cells(table: Source, roles: Roles) -> ParsedColumns:
    """The cells of the columns that have roles, none of which may be missing or infinite."""
    cells = read_cells(table, roles)
    for name, gone in cells.missing().items():
        raise InputError(
            f"{table.title}: column {quoted(name)} must hold no missing cells, got "
            f"{int(gone.sum())} (first at row {int(np.argmax(gone))})"
        )
    cells.check_finite()
    return cells


def _features(table: Source, like: Mapping[str, npt.NDArray[Any]]) -> dict[str, npt.NDArray[Any]]:
    if not like:
        return {}
    numeric = {name: value.dtype.kind in "biuf" for name, value in like.items()}
    kinds: dict[str, Kind] = {name: "number" if numeric[name] else "label" for name in like}
    held = table.read(kinds)
    found: dict[str, npt.NDArray[Any]] = {}
    for name in like:
        try:
            if numeric[name]:
                column: Any = values.numbers(held[name], name, decimal=table.decimal)
                missing = ~np.isfinite(column)
            else:
                labels = values.labels(held[name], name, from_text=table.from_text)
                column, missing = labels.labels[labels.codes], labels.missing()
        except InputError as error:
            raise InputError(f"{table.title}: {error}") from error
        if missing.any():
            raise InputError(
                f"{table.title}: column {quoted(name)} must hold no missing cells, got "
                f"{int(missing.sum())} (first at row {int(np.argmax(missing))})"
            )
        found[name] = column
    return found


def _input_roles(table: Source, roles: Roles, reference: EvalSet) -> Roles:
    """The reference's roles of inputs alone."""
    features = tuple(reference.features)
    if not features and not roles["embedding"] and not roles["encode"]:
        raise InputError("the reference must hold features or an embedding, got neither")
    _check_present(table, features, "features")
    _check_present(table, (*roles["embedding"], *roles["encode"]), "embedding")
    _check_present(table, roles["image"], "images")
    named = tuple(name for name in roles["rows"] if name in table.names)
    inputs = roles.only(lambda role: role.of == "inputs")
    return replace(inputs, columns={**inputs.columns, "features": features, "rows": named})


def _check_present(
    table: Source, names: Sequence[str], what: str, whose: str = "the reference's "
) -> None:
    absent = [name for name in names if name not in table.names]
    if absent:
        said = ", ".join(quoted(name) for name in absent)
        raise InputError(f"{table.title} must hold {whose}{what}, got none of {said}")


def _labelled(table: Source, roles: Roles) -> tuple[EvalSet | None, IntArray]:
    """The rows that have y and a prediction, and where they stand; None where none does."""
    wanted = roles.only(lambda role: role.of in ("outcome", "belief"))
    nothing = np.zeros(0, dtype=np.int64)
    if not wanted.by_column() or not set(wanted.by_column()) <= set(table.names):
        return None, nothing
    cells = replace(read_cells(table, wanted), model="new rows")
    cells.check_finite()
    kept = np.ones(cells.n, dtype=np.bool_)
    for gone in cells.missing().values():
        kept &= ~gone
    places = np.flatnonzero(kept)
    if not len(places):
        return None, nothing
    (made,) = build([cells.take(kept)], crossing="sort")
    return made, places
