"""Inputs of rows whose y is not known yet."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from howsure.core.errors import InputError
from howsure.inputs import values
from howsure.inputs.source import Kind, Source, quoted
from howsure.inputs.tables import sources


def load_inputs(
    source: Any,
    like: Mapping[str, npt.NDArray[Any]],
    *,
    encoding: str | None = None,
    decimal: str = ".",
) -> dict[str, npt.NDArray[Any]]:
    """Read the columns of a table that a labelled reference calls features.

    Parameters
    ----------
    source : path, dataframe or mapping of str to array
        One table; other columns, y among them, are not read.
    like : mapping of str to ndarray
        The reference's features: each column must be there and hold the same kind of content.
    encoding, decimal
        As in `load`.

    Returns
    -------
    dict of str to ndarray of shape (n,)

    Raises
    ------
    InputError
        If a column is absent, holds other content, or a cell is missing.

    Examples
    --------
    >>> load_inputs({"x": [1.0, 2.0], "note": ["a", "b"]}, {"x": np.zeros(1)})
    {'x': array([1., 2.])}
    """
    table: Source = sources(source, encoding, decimal)[0]
    absent = [name for name in like if name not in table.names]
    if absent:
        listed = ", ".join(quoted(name) for name in absent)
        raise InputError(f"{table.title} must hold the reference's features, got none of {listed}")
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
