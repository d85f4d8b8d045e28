"""The columns that roles ask for, as arrays, what is missing still in its place."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from howsure.core.arrays import BoolArray, FloatArray
from howsure.core.errors import InputError
from howsure.inputs import values
from howsure.inputs.roles import Roles
from howsure.inputs.source import MISSING_WORDS, Kind, Source, quoted
from howsure.inputs.values import Labels


@dataclass(frozen=True, slots=True, kw_only=True)
class Cells:
    """What a table holds in the columns that have roles.

    Attributes
    ----------
    title : str
        What to call the table in messages.
    roles : Roles
        The columns' roles.
    n : int
        Number of rows.
    numbers : mapping of str to ndarray of float, shape (n,)
        Columns of numbers, NaN where missing.
    labels : mapping of str to Labels
        Groups, cluster and model.
    features : mapping of str to ndarray of float or Labels
        Inputs of the model.
    vectors : mapping of str to ndarray of float, shape (n, e)
        Columns of the embedding, NaN where missing.
    texts : mapping of str to ndarray of str, shape (n,)
        Texts and paths, None where missing.
    time : ndarray of shape (n,), optional
        When each row happened.
    names : ndarray of shape (n,), optional
        Names of the rows, None where missing.
    """

    title: str
    roles: Roles
    n: int
    numbers: Mapping[str, FloatArray]
    labels: Mapping[str, Labels]
    features: Mapping[str, FloatArray | Labels]
    vectors: Mapping[str, FloatArray] = field(default_factory=dict)
    texts: Mapping[str, npt.NDArray[Any]] = field(default_factory=dict)
    time: npt.NDArray[Any] | None = None
    names: npt.NDArray[Any] | None = None

    def take(self, rows: npt.NDArray[Any]) -> Cells:
        """The same of some rows, by an index or a mask."""
        return replace(
            self,
            n=len(np.arange(self.n)[rows]),
            numbers={name: column[rows] for name, column in self.numbers.items()},
            labels={name: column.take(rows) for name, column in self.labels.items()},
            features={
                name: column.take(rows) if isinstance(column, Labels) else column[rows]
                for name, column in self.features.items()
            },
            vectors={name: column[rows] for name, column in self.vectors.items()},
            texts={name: column[rows] for name, column in self.texts.items()},
            time=None if self.time is None else self.time[rows],
            names=None if self.names is None else self.names[rows],
        )

    def missing(self) -> dict[str, BoolArray]:
        """For each column with missing cells, which rows miss them."""
        found: dict[str, BoolArray] = {}
        for name, gone in self._gaps():
            if gone.any():
                found[name] = found[name] | gone if name in found else gone
        return found

    def check_finite(self) -> None:
        """Raise `InputError` where a number is infinite that is no end of an interval."""
        ends = {name for pair in self.roles.intervals for name in (pair.lower, pair.upper)}
        columns = {name: column for name, column in self.numbers.items() if name not in ends}
        columns |= {n: c for n, c in self.features.items() if not isinstance(c, Labels)}
        columns |= self.vectors
        if self.time is not None and self.time.dtype.kind == "f" and self.roles.time is not None:
            columns[self.roles.time] = self.time
        for name, column in columns.items():
            infinite = np.isinf(column).reshape(len(column), -1).any(axis=1)
            if infinite.any():
                raise InputError(
                    f"{self.title}: column {quoted(name)} must hold finite numbers, got "
                    f"{int(infinite.sum())} infinite (first at row {int(np.argmax(infinite))}, "
                    "counting from 0); only lower and upper may be infinite"
                )

    def _gaps(self) -> Iterator[tuple[str, BoolArray]]:
        for name, column in self.numbers.items():
            yield name, np.isnan(column)
        for name, label in self.labels.items():
            yield name, label.missing()
        for name, item in self.features.items():
            yield name, item.missing() if isinstance(item, Labels) else np.isnan(item)
        for name, vector in self.vectors.items():
            yield name, np.asarray(np.isnan(vector).any(axis=1))
        for name, text in self.texts.items():
            yield name, values.unnamed(text)
        if self.time is not None:
            dated = self.time.dtype.kind == "M"
            yield self.roles.time or "time", np.isnat(self.time) if dated else np.isnan(self.time)
        if self.names is not None:
            yield self.roles.rows or "rows", values.unnamed(self.names)


def read_cells(source: Source, roles: Roles) -> tuple[Cells, tuple[str, ...]]:
    """Read the columns that have roles.

    Parameters
    ----------
    source : Source
        The table.
    roles : Roles
        The columns' roles.

    Returns
    -------
    cells : Cells
        What they hold. A time that was only guessed from its name and cannot be read loses its
        role, with a note on the column.
    notes : tuple of str
        What the reader of a result should know.

    Raises
    ------
    InputError
        If a column does not hold what its role needs.
    """
    numeric, coded = _number_columns(roles), _label_columns(roles)
    kinds: dict[str, Kind] = dict.fromkeys(roles.features, "any")
    kinds |= dict.fromkeys(numeric, "number")
    texts = _text_columns(roles)
    kinds |= dict.fromkeys(roles.embedding, "vector")
    kinds |= {name: "text" for name in (roles.time, roles.rows, *texts) if name is not None}
    kinds |= dict.fromkeys(coded, "label")
    table = source.read(kinds)
    try:
        time = None if roles.time is None else values.times(table[roles.time], roles.time)
    except InputError as error:
        if "time" not in roles.guessed or roles.time is None:
            raise InputError(f"{source.title}: {error}") from error
        notes = {**roles.notes, roles.time: "cells that are neither numbers nor ISO dates"}
        roles, time = replace(roles, time=None, notes=notes), None
    text, mark = source.from_text, source.decimal
    try:
        cells = Cells(
            title=source.title,
            roles=roles,
            n=table.num_rows,
            numbers={name: values.numbers(table[name], name, decimal=mark) for name in numeric},
            labels={name: values.labels(table[name], name, from_text=text) for name in coded},
            features={
                name: values.feature(table[name], name, from_text=text, decimal=mark)
                for name in roles.features
            },
            vectors={
                name: values.vectors(table[name], name, decimal=mark) for name in roles.embedding
            },
            texts={name: values.texts(table[name], name) for name in texts},
            time=time,
            names=None if roles.rows is None else values.names(table[roles.rows], roles.rows),
        )
    except InputError as error:
        raise InputError(f"{source.title}: {error}") from error
    return cells, _remarks(cells) if text else ()


def _number_columns(roles: Roles) -> tuple[str, ...]:
    parameters = roles.law.parameters.values() if roles.law else ()
    wanted = [
        roles.y,
        roles.point,
        *(name for pair in roles.intervals for name in (pair.lower, pair.upper)),
        roles.mean,
        roles.sd,
        *(name for _, name in roles.quantiles),
        *roles.samples,
        *(value for value in parameters if isinstance(value, str)),
        roles.weights,
    ]
    return tuple(dict.fromkeys(name for name in wanted if name))


def _text_columns(roles: Roles) -> tuple[str, ...]:
    wanted = (None if roles.encode is None else roles.encode[0], roles.image)
    return tuple(dict.fromkeys(name for name in wanted if name is not None))


def _label_columns(roles: Roles) -> tuple[str, ...]:
    wanted = (*roles.groups, roles.cluster, roles.model)
    return tuple(dict.fromkeys(name for name in wanted if name is not None))


def _remarks(cells: Cells) -> tuple[str, ...]:
    """Labels that another program may have meant as missing."""
    return tuple(
        f"column {quoted(name)}: {quoted(word)} is read as a label, not as a missing cell"
        for name, column in cells.labels.items()
        for word in column.labels.tolist()
        if word in MISSING_WORDS
    )
