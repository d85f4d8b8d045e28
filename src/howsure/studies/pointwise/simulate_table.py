"""A user's own table as inputs and target: numbers as they are, labels as columns of 0 and 1."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, final

import numpy as np
import numpy.typing as npt

from howsure.core.arrays import BoolArray, FloatArray
from howsure.core.errors import InputError, within
from howsure.inputs import open_table, values
from howsure.inputs.encoders.tabular import tabular_encoder
from howsure.inputs.roles import Kind
from howsure.inputs.source import Source, listed, no_column, quoted

RARE: Final = "(other)"
"""What stands for labels that are too rare for a column of their own."""
Missing = Literal["error", "drop"]


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LearningTable:
    """Rows to learn from.

    Attributes
    ----------
    x : ndarray of float, shape (n, d)
        Inputs.
    y : ndarray of float, shape (n,)
        The target.
    names : tuple of str
        Names of the columns of x; that of a label is ``column=label``.
    notes : tuple of str
        What was left out, and why.
    """

    x: FloatArray
    y: FloatArray
    names: tuple[str, ...]
    notes: tuple[str, ...]


def read_learning_table(
    path: Path,
    target: str,
    *,
    features: Sequence[str] = (),
    missing: Missing = "error",
    encoding: str | None = None,
    decimal: str = ".",
) -> LearningTable:
    """Read a table whose rows a model shall learn from."""
    source = open_table(path, encoding=encoding, decimal=decimal)
    for name in (target, *features):
        if name not in source.names:
            flag = "--target" if name == target else "--features"
            raise InputError(no_column(name, source.names, flag, source.title))
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
                f"{source.title}: no cell may be missing or infinite, got {counts}; --missing "
                "drop leaves such rows out"
            )
        notes.append(f"{int((~kept).sum())} rows with missing cells are left out ({counts})")
    if not kept.any():
        raise InputError(f"{source.title} must have a row without missing cells, got none")
    parts: dict[str, FloatArray] = {}
    silent = []
    for name, column in columns.items():
        found = _encoded(name, column, kept)
        parts |= found
        if not found:
            silent.append(name)
    if silent:
        notes.append(f"columns without variation are left out: {listed(silent)}")
    if not parts:
        raise InputError(f"{source.title} must have a column that varies, got {listed(silent)}")
    return LearningTable(
        x=np.column_stack(list(parts.values())),
        y=np.asarray(y[kept], dtype=np.float64),
        names=tuple(parts),
        notes=tuple(notes),
    )


def _columns(
    source: Source, target: str, wanted: Sequence[str]
) -> tuple[FloatArray, dict[str, FloatArray | values.Labels]]:
    kinds: dict[str, Kind] = {**dict.fromkeys(wanted, "any"), target: "number"}
    held = source.read(kinds)
    text, mark = source.from_text, source.decimal
    with within(source.title):
        y = values.numbers(held[target], target, decimal=mark)
        return y, {
            name: values.feature(held[name], name, from_text=text, decimal=mark) for name in wanted
        }


def _gap(column: FloatArray | values.Labels) -> BoolArray:
    return column.missing() if isinstance(column, values.Labels) else ~np.isfinite(column)


def _encoded(
    name: str, column: FloatArray | values.Labels, kept: BoolArray
) -> Mapping[str, FloatArray]:
    """A column as numbers by name; nothing where it says nothing."""
    if not isinstance(column, values.Labels):
        numbers = column[kept]
        return {name: numbers} if np.ptp(numbers) > 0 else {}
    told = column.labels.astype(str)[column.codes[kept]]
    if len(np.unique(told)) < 2:
        return {}
    labels = np.asarray(told, dtype=object)
    try:
        indicators = tabular_encoder({name: labels}).transform({name: labels}) > 0
    except InputError:  # its labels are all rare
        return {}
    reference = int(np.argmax(indicators.sum(axis=0)))
    return {
        f"{name}={_label(labels[chosen])}": chosen.astype(np.float64)
        for place, chosen in enumerate(indicators.T)
        if place != reference
    }


def _label(labels: npt.NDArray[np.object_]) -> str:
    known = set(labels.tolist())
    return str(known.pop()) if len(known) == 1 else RARE
