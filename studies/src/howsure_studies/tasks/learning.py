"""A user's table as inputs and target: numbers as they are, labels as columns of 0 and 1."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np
import numpy.typing as npt

from howsure.core.arrays import BoolArray, FloatArray
from howsure.core.errors import InputError, within
from howsure.core.registry import check_known
from howsure_studies.tasks.task import Part

if TYPE_CHECKING:
    from howsure.inputs.source import Source
    from howsure.inputs.values import Labels

RARE: Final = "(other)"
"""What stands for labels that are too rare for a column of their own."""
Missing = Literal["error", "drop"]


def read_learning_table(
    table: Any,
    target: str,
    *,
    features: Sequence[str] = (),
    missing: Missing = "error",
    encoding: str | None = None,
    decimal: str = ".",
    flag: str = "",
) -> Part:
    """Read a table whose rows a model shall learn from.

    Parameters
    ----------
    table : path or data frame
        A file that `howsure.inputs.open_table` reads, or a table in memory.
    target : str
        The column of y.
    features : sequence of str
        Columns of x; all but the target if omitted. Columns that do not vary are left out.
    missing : {"error", "drop"}
        Whether rows with missing cells are an error, or are left out.
    encoding, decimal : str
        Of a text table.
    flag : str
        What stands before options in messages, as ``--`` of a command.

    Returns
    -------
    Part
        Its ids are numbers of rows, its notes what was left out, and why.

    Raises
    ------
    InputError
        If a column is not there, the target is not of numbers, a cell is missing, or nothing is
        left.
    """
    from howsure.core.text import quoted
    from howsure.inputs import open_table
    from howsure.inputs.frames import FrameTable
    from howsure.inputs.source import listed, no_column

    check_known(missing, ("error", "drop"), f"{flag}missing")
    if isinstance(features, str):
        raise InputError(f"{flag}features must be a list of columns, got {features!r}")
    if isinstance(table, str | os.PathLike):
        source: Source = open_table(table, encoding=encoding, decimal=decimal)
    else:
        source = FrameTable(table)
    for name in (target, *features):
        if name not in source.names:
            option = "target" if name == target else "features"
            raise InputError(no_column(name, source.names, f"{flag}{option}", source.title))
    wanted = [name for name in features or source.names if name != target]
    if not wanted:
        raise InputError(f"{source.title} must have a column beside {quoted(target)}, got none")
    y, columns = _columns(source, target, wanted)
    gaps = {name: _gap(column) for name, column in {target: y, **columns}.items()}
    gaps = {name: gone for name, gone in gaps.items() if gone.any()}
    notes = []
    kept = np.ones(len(y), dtype=np.bool_)
    for gone in gaps.values():
        kept &= ~gone
    if gaps:
        counts = ", ".join(f"{int(gone.sum())} in {quoted(name)}" for name, gone in gaps.items())
        if missing == "error":
            raise InputError(
                f"{source.title}: no cell may be missing or infinite, got {counts}; "
                f"{flag}missing drop leaves out these rows"
            )
        notes.append(f"{int((~kept).sum())} rows with missing cells are left out ({counts})")
    if not kept.any():
        raise InputError(f"{source.title} must have a row without missing cells, got none")
    parts: dict[str, FloatArray] = {}
    silent = []
    for name, column in columns.items():
        encoded = _encoded(name, column, kept)
        parts |= encoded
        if not encoded:
            silent.append(name)
    if silent:
        notes.append(f"columns without variation are left out: {listed(silent)}")
    if not parts:
        raise InputError(f"{source.title} must have a column that varies, got {listed(silent)}")
    return Part(
        x=np.column_stack(list(parts.values())),
        y=np.asarray(y[kept], dtype=np.float64),
        ids=np.flatnonzero(kept).astype(np.str_),
        columns=tuple(parts),
        notes=tuple(notes),
    )


def _columns(
    source: Source, target: str, wanted: Sequence[str]
) -> tuple[FloatArray, dict[str, FloatArray | Labels]]:
    from howsure.inputs import values

    columns = source.read({**dict.fromkeys(wanted, "any"), target: "number"})
    text, mark = source.from_text, source.decimal
    with within(source.title):
        y = values.numbers(columns[target], target, decimal=mark)
        return y, {
            name: values.feature(columns[name], name, from_text=text, decimal=mark)
            for name in wanted
        }


def _gap(column: FloatArray | Labels) -> BoolArray:
    return ~np.isfinite(column) if isinstance(column, np.ndarray) else column.missing()


def _encoded(name: str, column: FloatArray | Labels, kept: BoolArray) -> Mapping[str, FloatArray]:
    """A column as numbers by name; nothing where it says nothing."""
    from howsure.inputs.encoders.tabular import tabular_encoder

    if isinstance(column, np.ndarray):
        numbers = column[kept]
        return {name: numbers} if np.ptp(numbers) > 0 else {}
    text = column.labels.astype(str)[column.codes[kept]]
    if len(np.unique(text)) < 2:
        return {}
    labels = np.asarray(text, dtype=object)
    try:
        indicators = tabular_encoder({name: labels}).transform({name: labels}) > 0
    except InputError:  # its labels are all rare
        return {}
    reference = int(np.argmax(indicators.sum(axis=0)))
    return {
        f"{name}={_label(labels[chosen])}": chosen.astype(np.float64)
        for number, chosen in enumerate(indicators.T)
        if number != reference
    }


def _label(labels: npt.NDArray[np.object_]) -> str:
    known = set(labels.tolist())
    return str(known.pop()) if len(known) == 1 else RARE
