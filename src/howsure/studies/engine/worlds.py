"""Worlds of a plan: named ones, and those made from a table."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

import numpy as np

from howsure.core.errors import InputError
from howsure.core.registry import check_known
from howsure.studies.engine.address import canonical
from howsure.studies.engine.entries import absolute, check_options, numbers_hash
from howsure.studies.tasks.worlds import (
    CutWorld,
    Draw,
    ForestWorld,
    Noise,
    World,
    noise_named,
    world_named,
)

_READING: Final = ("features", "missing", "encoding", "decimal")
_FOREST: Final = ("residuals", "noise", "trees", "depth", "leaf", "floor", "seed")
_OPTIONS: Final[Mapping[str, Sequence[str]]] = {"forest": _FOREST, "cut": ("rows",)}


def world_identity(
    label: str, entry: Mapping[str, Any], folder: Path
) -> tuple[dict[str, Any], dict[str, Any]]:
    """What decides a world, and the files that it needs.

    Parameters
    ----------
    label : str
        What the plan calls it, for messages.
    entry : mapping
        Its entry in the plan: ``world`` (a name) with ``noise``; or ``uci`` (a name) or
        ``table`` (a file) with ``target`` and options of `read_learning_table` (``features``,
        ``missing``, ``encoding``, ``decimal``), then ``source`` (``forest``, the default, or
        ``cut``) and options of `ForestWorld.from_data` or `CutWorld.from_data`.
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
    origins = [key for key in ("world", "uci", "table") if key in entry]
    if len(origins) != 1:
        raise InputError(f"world {label!r} must have one of world, uci or table, got {origins}")
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
        files = {"uci": str(entry["uci"])}
    return {"source": source, **options, "data": _numbers(_data(files))}, files


def make_world(identity: Mapping[str, Any], files: Mapping[str, Any]) -> World:
    """The world of an identity; the last few are remembered, for forests take time to grow.

    Raises
    ------
    InputError
        If the data are no longer those of the identity.
    """
    return _made(canonical(identity), canonical(files))


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
def _made(identity_text: str, files_text: str) -> World:
    identity, files = json.loads(identity_text), json.loads(files_text)
    if "world" in identity:
        return world_named(identity["world"], identity.get("noise"))
    data = _data(files)
    if _numbers(data) != identity["data"]:
        raise InputError(f"{_title(files)} has changed since the plan was read: run it again")
    options = {k: v for k, v in identity.items() if k not in ("source", "data")}
    name = files["uci"] if "uci" in files else Path(files["table"]).name.partition(".")[0]
    if identity["source"] == "cut":
        return CutWorld.from_data(data.x, data.y, name=name, **options)
    return ForestWorld.from_data(data.x, data.y, name=name, **options)


def _data(files: Mapping[str, Any]) -> Draw:
    if "uci" in files:
        from howsure.studies.tasks import uci

        table = uci(files["uci"])
        return Draw.checked(table.x, table.y)
    path = Path(files["table"])
    stamp = os.stat(path) if path.exists() else None
    return _read(canonical(files), stamp and (stamp.st_mtime_ns, stamp.st_size))


@lru_cache(maxsize=2)
def _read(files_text: str, stamp: object) -> Draw:
    """A table's numbers; read once while its file stays as it is."""
    from howsure.studies.tasks import read_learning_table

    files = json.loads(files_text)
    table = read_learning_table(Path(files.pop("table")), files.pop("target"), **files)
    return Draw.checked(table.x, table.y)


def _title(files: Mapping[str, Any]) -> str:
    return files["table"] if "table" in files else f"table {files['uci']!r}"


def _numbers(data: Draw) -> str:
    return numbers_hash(data.x, data.y)
