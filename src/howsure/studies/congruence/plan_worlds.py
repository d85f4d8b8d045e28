"""Tasks of the congruence studies in a plan: named ones, photographs, and tables of one's own."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from inspect import signature
from pathlib import Path
from typing import Any, Final

from howsure.core.arrays import FloatArray
from howsure.core.errors import InputError
from howsure.core.registry import unknown
from howsure.studies.congruence.tasks import (
    TASKS,
    CongruenceTask,
    array_task,
    congruence_task,
    image_parts_task,
)
from howsure.studies.engine import (
    absolute,
    canonical,
    check_options,
    complete_numbers,
    numbers_hash,
)
from howsure.studies.tasks import find_folder
from howsure.studies.tasks.images import BLOOD, DIGITS, image_names, image_task

NAMED: Final[Mapping[str, str]] = {"wave": "discrete-wave", **{name: name for name in TASKS}}
"""Tasks of `howsure.studies.congruence.tasks.TASKS` by the names that plans have for them."""
PHOTOGRAPHS: Final = image_names("congruence")
_REAL: Final = {"blood": ("bccd", BLOOD), "digits": ("mnist", DIGITS)}
_SIZES: Final = ("train", "val", "test", "side", "broken", "complete")
_PHOTOGRAPH: Final[Mapping[str, tuple[str, ...]]] = {
    "aaf": _SIZES,
    "eva": _SIZES,
    "fg-net": (*_SIZES, "grey", "persons"),
    "coco-people": (*_SIZES, "crowds"),
}
_TABLE: Final = ("target", "features", "counts", "units", "shares")


def task_identity(
    label: str,
    entry: Mapping[str, Any],
    folder: Path,
    *,
    seed: int,
    components: int,
) -> tuple[dict[str, Any], dict[str, str]]:
    """What decides a task, and where its files lie.

    Parameters
    ----------
    label : str
        What the plan calls it, for messages.
    entry : mapping
        Its entry in the plan, without options of the protocol: ``world``, a name of `NAMED` or
        `PHOTOGRAPHS`, with options of the maker; or ``table``, a file, with ``target``, and
        ``features`` (columns; all others if omitted), ``counts``, ``units`` and ``shares``.
    folder : Path
        Where relative paths start.
    seed : int
        Fixes what is drawn and split.
    components : int
        Principal components of the embedding of images.

    Returns
    -------
    identity : dict
        Plain values. Tables stand there by the hash of their numbers; published images by the
        options that choose them.
    files : dict of str to str
        Absolute paths, as far as the entry names any.

    Raises
    ------
    InputError
        If a name or an option is not known, or a table cannot be read.
    DataNotFoundError
        If a published set is not on this machine.

    Examples
    --------
    >>> task_identity("w", {"world": "wave", "rows": 60}, Path(), seed=3, components=64)
    ({'task': 'discrete-wave', 'rows': 60, 'seed': 3}, {})
    """
    if ("world" in entry) == ("table" in entry):
        raise InputError(f"world {label!r} must have one of world and table, got {list(entry)}")
    if "table" in entry:
        return _table_identity(label, entry, folder, seed)
    name = entry["world"]
    known = (*NAMED, *PHOTOGRAPHS)
    if name not in known:
        raise InputError(unknown(str(name), known, f"world {label!r}"))
    own = {key: value for key, value in entry.items() if key not in ("world", "folder")}
    files = {}
    if "folder" in entry:
        files["folder"] = absolute(folder, entry["folder"])
    if name in PHOTOGRAPHS:
        check_options(label, entry, ("world", "folder", *_PHOTOGRAPH[name]))
        image_task(name, seed=seed, folder=files.get("folder"), **own)
    else:
        options = set(signature(TASKS[NAMED[name]]).parameters) - {"seed", "components"}
        check_options(label, entry, ("world", *sorted(options)))
        if name in _REAL and not files:
            find_folder(*_REAL[name])
    identity = {"task": NAMED.get(name, name), **own}
    if name != "blood":
        identity["seed"] = seed
    if NAMED.get(name) != "discrete-wave":
        identity["components"] = components
    return identity, files


def make_task(identity: Mapping[str, Any], files: Mapping[str, str]) -> CongruenceTask:
    """The task of an identity; the last is remembered, for drawing and components take time.

    Raises
    ------
    InputError
        If a table is no longer that of the identity.

    Examples
    --------
    >>> make_task({"task": "discrete-wave", "rows": 60, "seed": 3}, {}).name
    'discrete wave'
    """
    return _made(canonical(identity), canonical(files))


def is_counted(identity: Mapping[str, Any]) -> bool:
    """Whether y of a task counts something, so that heads for counts fit it.

    Examples
    --------
    >>> is_counted({"task": "digits"}), is_counted({"task": "cells"})
    (False, True)
    """
    return bool(identity.get("counts", identity.get("task") not in (None, "digits", "eva")))


def is_simulated(identity: Mapping[str, Any]) -> bool:
    """Whether the law of y is known."""
    return identity.get("task") == "discrete-wave"


def is_pictured(identity: Mapping[str, Any]) -> bool:
    """Whether inputs are images."""
    return "task" in identity and not is_simulated(identity)


@lru_cache(maxsize=1)
def _made(identity_text: str, files_text: str) -> CongruenceTask:
    identity, files = json.loads(identity_text), json.loads(files_text)
    if "task" not in identity:
        return _table_task(identity, Path(files["table"]))
    own = {key: value for key, value in identity.items() if key != "task"} | files
    name = identity["task"]
    if name in PHOTOGRAPHS:
        return _photographs(name, counts=is_counted(identity), **own)
    return congruence_task(name, **own)


def _photographs(name: str, *, counts: bool, components: int, **options: Any) -> CongruenceTask:
    """Published photographs, one part after the other, as a task."""
    images = image_task(name, **options)
    parts = {which: images.part(which) for which in ("train", "val")} | {"test": images.test}
    return image_parts_task(name, parts, counts=counts, units=images.units, components=components)


def _table_identity(
    label: str, entry: Mapping[str, Any], folder: Path, seed: int
) -> tuple[dict[str, Any], dict[str, str]]:
    check_options(label, entry, ("table", *_TABLE))
    if "target" not in entry:
        raise InputError(f"world {label!r} must name its target column, got none")
    path = Path(absolute(folder, entry["table"]))
    counts = entry.get("counts", False)
    if not isinstance(counts, bool):
        raise InputError(f"counts of world {label!r} must be true or false, got {counts!r}")
    given = {key: value for key, value in entry.items() if key != "table"} | {"counts": counts}
    data = numbers_hash(*_columns(path, given))
    _table_task({**given, "seed": seed, "data": data}, path)
    return {**given, "seed": seed, "data": data}, {"table": str(path)}


def _table_task(identity: Mapping[str, Any], path: Path) -> CongruenceTask:
    x, y = _columns(path, identity)
    if numbers_hash(x, y) != identity["data"]:
        raise InputError(f"table {str(path)!r} has changed since the plan was read: run it again")
    options = {key: identity[key] for key in ("counts", "units", "seed") if key in identity}
    if "shares" in identity:
        options["shares"] = tuple(identity["shares"])
    return array_task(path.name.partition(".")[0], x, y, **options)


def _columns(path: Path, given: Mapping[str, Any]) -> tuple[FloatArray, FloatArray]:
    return complete_numbers(path, given["target"], given.get("features"))
