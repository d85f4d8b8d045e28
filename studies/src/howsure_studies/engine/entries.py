"""Entries of a plan: its worlds, named ones and those made from a table, and its methods."""

from __future__ import annotations

import hashlib
import json
import os
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar

import numpy as np

from howsure.core.arrays import AnyArray, FloatArray, IntArray
from howsure.core.errors import HowsureWarning, InputError
from howsure.core.registry import check_known, unknown
from howsure_studies.engine.store import canonical
from howsure_studies.methods.catalogue import method_named, method_spec
from howsure_studies.methods.interface import Method
from howsure_studies.methods.options import written
from howsure_studies.methods.regressors import as_method
from howsure_studies.tasks.files import DataNotFoundError
from howsure_studies.tasks.worlds import (
    CutWorld,
    Draw,
    ForestWorld,
    Noise,
    World,
    noise_named,
    world_named,
)

if TYPE_CHECKING:
    from howsure_studies.tasks import Part

T = TypeVar("T")
_READING: Final = ("features", "missing", "encoding", "decimal")
_FOREST: Final = ("residuals", "noise", "trees", "depth", "leaf", "floor", "seed")
_OPTIONS: Final[Mapping[str, Sequence[str]]] = {"forest": _FOREST, "cut": ("rows",)}
_NO_OPTIONS: Final = ("method", "options", "revision", "n_train")


def present(
    labels: Iterable[str], read: Callable[[str], T], absent: Callable[[str], str]
) -> dict[str, T]:
    """What is read of the worlds whose data are on this machine.

    A world without its data is an error, or, where `absent` says ``skip``, is left out with a
    warning as long as one is left.
    """
    there: dict[str, T] = {}
    lost: dict[str, DataNotFoundError] = {}
    for label in labels:
        try:
            there[label] = read(label)
        except DataNotFoundError as error:
            if absent(label) == "error":
                raise
            lost[label] = error
    if not there:
        raise next(iter(lost.values()))
    if lost:
        words = f"left out because their data are not on this machine: {', '.join(lost)}"
        warnings.warn(f"{words}; see howsure data get NAME", HowsureWarning, stacklevel=3)
    return there


def world_identity(
    label: str, entry: Mapping[str, Any], folder: Path
) -> tuple[dict[str, Any], dict[str, Any]]:
    """What decides a world, and the files that it needs.

    Parameters
    ----------
    label : str
        What the plan calls it, for messages.
    entry : mapping
        Its entry in the plan: ``world`` (a name) with ``noise``; or ``uci`` (a name),
        ``dataset`` (a name of `regression_names`) or ``table`` (a file) with ``target`` and
        options of `read_learning_table` (``features``, ``missing``, ``encoding``, ``decimal``),
        then ``source`` (``forest``, the default, or ``cut``) and options of
        `ForestWorld.from_data` or `CutWorld.from_data`.
    folder : Path
        Where relative paths start.

    Returns
    -------
    identity : dict
        Plain values; data stand there by the hash of their numbers.
    files : dict
        Absolute path of the table, if there is one, and how it is read.

    Raises
    ------
    InputError
        If a name or an option is not known, or the table cannot be read.

    Examples
    --------
    >>> world_identity("line", {"world": "linear"}, Path())
    ({'world': 'linear'}, {})
    """
    origins = [key for key in ("world", "uci", "dataset", "table") if key in entry]
    if len(origins) != 1:
        raise InputError(
            f"world {label!r} must have one of world, uci, dataset or table, got {origins}"
        )
    if origins == ["world"]:
        check_options(label, entry, ("world", "noise"))
        world_named(entry["world"], entry.get("noise"))
        return dict(entry), {}
    source = entry.get("source", "forest")
    check_known(source, _OPTIONS, f"source of world {label!r}")
    reading = ("target", *_READING) if "table" in entry else ()
    own = (*origins, "source", *_OPTIONS[source], *reading)
    check_options(label, entry, own)
    options = {key: entry[key] for key in entry if key in _OPTIONS[source]}
    noise_named(options.get("noise", "normal"))
    files: dict[str, Any] = {}
    if "table" in entry:
        if "target" not in entry:
            raise InputError(f"world {label!r} must name its target column, got none")
        files = {"table": absolute(folder, entry["table"]), "target": str(entry["target"])}
        files |= {key: entry[key] for key in _READING if key in entry}
    else:
        (origin,) = origins
        files = {origin: str(entry[origin])}
    return {"source": source, **options, "data": _numbers(_data(files))}, files


def make_world(identity: Mapping[str, Any], files: Mapping[str, Any]) -> World:
    """The world of an identity; the last few are remembered, for forests take time to grow.

    Raises
    ------
    InputError
        If the data are no longer those of the identity.
    """
    return _make_world(canonical(identity), canonical(files))


def noise_of(identity: Mapping[str, Any], files: Mapping[str, Any]) -> Noise:
    """The noise law of a world that knows its truth, without growing a forest.

    Examples
    --------
    >>> noise_of({"world": "linear", "noise": "laplace"}, {}).name
    'laplace'
    """
    if "world" not in identity:
        return noise_named(identity.get("noise", "normal"))
    world = make_world(identity, files)
    return world.truth(np.zeros((1, world.dimension))).noise


@lru_cache(maxsize=4)
def _make_world(identity_text: str, files_text: str) -> World:
    identity, files = json.loads(identity_text), json.loads(files_text)
    if "world" in identity:
        return world_named(identity["world"], identity.get("noise"))
    data = table_data(identity, files)
    options = {k: v for k, v in identity.items() if k not in ("source", "data")}
    name = _named(files) or Path(files["table"]).name.partition(".")[0]
    if identity["source"] == "cut":
        return CutWorld.from_data(data.x, data.y, name=name, **options)
    return ForestWorld.from_data(data.x, data.y, name=name, **options)


def table_data(identity: Mapping[str, Any], files: Mapping[str, Any]) -> Draw:
    """The rows of a table, as `world_identity` names it; an error if they are others by now."""
    data = _data(files)
    if _numbers(data) != identity["data"]:
        raise InputError(f"{_title(files)} has changed since the plan was read: run it again")
    return data


def _data(files: Mapping[str, Any]) -> Draw:
    if "uci" in files:
        from howsure_studies.tasks import uci

        table = uci(files["uci"])
        return Draw.checked(table.x, table.y)
    if "dataset" in files:
        return _packaged(files["dataset"])
    part = _read_table(files)
    return Draw.checked(part.x, part.y)


def table_column(files: Mapping[str, Any], name: str, kind: Literal["label", "time"]) -> IntArray:
    """A column of a table's file at the rows of `table_data`, as codes of what is equal.

    Parameters
    ----------
    files : mapping
        The table, as `world_identity` names it.
    name : str
        The column.
    kind : {"label", "time"}
        What the column holds.

    Returns
    -------
    ndarray of int, shape (n,)
        From 0 without gaps: labels in the order in which they first come, times in their own.

    Raises
    ------
    InputError
        If the column is not there, holds something else, or misses a cell in these rows.
    """
    from howsure.inputs import open_table, values

    mark = files.get("decimal", ".")
    source = open_table(files["table"], encoding=files.get("encoding"), decimal=mark)
    check_known(name, source.names, f"column of {files['table']}")
    cells = source.read({name: kind})[name]
    column = values.as_kind(kind, cells, name, source)
    rows = _read_table(files).ids.astype(np.int64)
    gaps = int(values.absent(column)[rows].sum())
    if gaps:
        raise InputError(f"column {name!r} must be complete, got {gaps} missing")
    held = column[rows] if isinstance(column, np.ndarray) else column.codes[rows]
    _, first, codes = np.unique(held, return_index=True, return_inverse=True)
    if kind == "label":
        codes = np.argsort(np.argsort(first))[codes]
    return codes.astype(np.int64)


def _read_table(files: Mapping[str, Any]) -> Part:
    """What is read of a table's file."""
    path = Path(files["table"])
    stamp = os.stat(path) if path.exists() else None
    return _read(canonical(files), stamp and (stamp.st_mtime_ns, stamp.st_size))


@lru_cache(maxsize=2)
def _read(files_text: str, stamp: object) -> Part:
    """A table's numbers; read once while its file stays as it is."""
    from howsure_studies.tasks import read_learning_table

    files = json.loads(files_text)
    return read_learning_table(Path(files.pop("table")), files.pop("target"), **files)


@lru_cache(maxsize=2)
def _packaged(name: str) -> Draw:
    """A table by name; read once, for some hold a third of a million rows."""
    from howsure_studies.tasks import regression_table

    table = regression_table(name)
    return Draw.checked(table.x, table.y)


def _named(files: Mapping[str, Any]) -> str:
    """The name of a table that has one; nothing of a file."""
    return str(files.get("uci") or files.get("dataset") or "")


def _title(files: Mapping[str, Any]) -> str:
    return files["table"] if "table" in files else f"table {_named(files)!r}"


def _numbers(data: Draw) -> str:
    return numbers_hash(data.x, data.y)


def make_method(
    label: str, entry: Mapping[str, Any], coverages: tuple[float, ...] | None
) -> Method:
    """The method of a plan's entry.

    Parameters
    ----------
    label : str
        What the plan calls it, for messages.
    entry : mapping
        ``method`` (a name, as `method_named` has them) and the method's options, beside it or in a
        table ``options``, where one may be called ``method`` too. Some keys are no options:
        ``revision`` only enters the trial's address, so that a change of the method's own code
        can be told; ``n_train`` is the study's.
    coverages : tuple of float or None
        For methods that fix them when they are made, where the entry names none; None for their
        own.

    Returns
    -------
    Method

    Raises
    ------
    InputError
        If there is no such method or option.

    Examples
    --------
    >>> make_method("t", {"method": "linear_t", "revision": 2}, (0.9,)).name
    'linear t'
    """
    options = {key: value for key, value in entry.items() if key not in _NO_OPTIONS}
    own = entry.get("options", {})
    if not isinstance(own, Mapping):
        raise InputError(f"options of method {label!r} of a plan must be a table, got {own!r}")
    options |= own
    name = entry.get("method")
    if not isinstance(name, str):
        raise InputError(f"method {label!r} of a plan must name its method, got {dict(entry)!r}")
    if "name" in options:
        raise InputError(f"method {label!r} of a plan has no option 'name'")
    made = method_named(name, **options)
    asks = made.fixed_coverages is not None and hasattr(made, "coverages")
    if asks and coverages is not None and "coverages" not in options:
        made = method_named(name, **options, coverages=list(coverages))
    return as_method(made, coverages)


def method_identity(method: Method, entry: Mapping[str, Any]) -> dict[str, Any]:
    """What decides a method: all its options where it can tell them, else the plan's words.

    Examples
    --------
    >>> method_identity(make_method("t", {"method": "linear_t"}, (0.9,)), {"method": "linear_t"})
    {'method': 'linear_t', 'options': {'intercept': True}}
    """
    words = {key: value for key, value in entry.items() if key not in ("n_train", "options")}
    own = dict(entry.get("options", {}))
    if "method" in own:  # as plans of 0.2.0 said it, so that addresses stay
        own["by" if "inner" in own else "inner"] = own.pop("method")
    words |= own
    if isinstance(words.get("method"), str):
        words["method"] = written(words["method"])
    try:
        options = method_spec(method)["options"]
    except InputError:
        return words
    return {key: words[key] for key in ("method", "revision") if key in words} | {
        "options": options
    }


def check_options(label: str, entry: Mapping[str, Any], known: Sequence[str]) -> None:
    """Raise `InputError` where the entry of a world has an option that is not known."""
    for key in entry:
        check_known(key, known, f"option of world {label!r}")


def absolute(folder: Path, path: object) -> str:
    """A path of a plan as an absolute one; relative ones start at the plan's folder."""
    return str((folder / str(path)).expanduser().resolve())


def numbers_hash(*arrays: AnyArray) -> str:
    """The SHA-256 of the shape of the first of some arrays, and of the numbers of all.

    Examples
    --------
    >>> numbers_hash(np.zeros(2))[:8]
    '45e2f25e'
    """
    digest = hashlib.sha256(str(arrays[0].shape).encode())
    for array in arrays:
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


def complete_numbers(
    path: Path, target: str, features: Sequence[str] | None = None
) -> tuple[FloatArray, FloatArray]:
    """Inputs and target of a file, all complete numbers.

    Parameters
    ----------
    path : Path
        A table that `howsure.inputs.open_table` reads.
    target : str
        The column of y.
    features : sequence of str, optional
        Columns of x; all but the target if omitted.

    Returns
    -------
    x : ndarray of float, shape (n, d)
    y : ndarray of float, shape (n,)

    Raises
    ------
    InputError
        If a column is not there, is not of numbers or is incomplete, or none is left for x.
    """
    from howsure.inputs import open_table
    from howsure.inputs.values import numbers

    source = open_table(path)
    check_known(target, source.names, f"target of {path}")
    given = [name for name in source.names if name != target]
    inputs = given if features is None else list(features)
    for name in inputs:
        if name not in source.names:
            raise InputError(unknown(str(name), source.names, f"column of {path}"))
    if not inputs or target in inputs:
        raise InputError(f"{path} must have columns beside the target {target!r}, got {inputs}")
    read = source.read(dict.fromkeys((*inputs, target), "number"))
    columns: dict[str, FloatArray] = {name: numbers(read[name], name) for name in (*inputs, target)}
    for name, column in columns.items():
        missing = int(np.isnan(column).sum())
        if missing:
            raise InputError(f"{path}: column {name!r} must be complete, got {missing} missing")
    return np.column_stack([columns[name] for name in inputs]), columns[target]
