"""Tasks of the shift benchmark in a plan: named images and tables, and tables of one's own."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from howsure.core.errors import InputError
from howsure.core.registry import unknown
from howsure.studies.engine import absolute, canonical, check_options, numbers_hash
from howsure.studies.tasks import Task, shift_names, shift_task, table_task
from howsure.studies.tasks.images import image_names, image_task

_ROWS: Final = ("train", "val", "test")
_DRAWN: Final = ("recipe", "shortcut", "edge")
_REAL: Final = ("order", "frames", "broken", "complete")
_IMAGES: Final = ("folder", *_ROWS, *_DRAWN, *_REAL)
_CUT: Final = ("target", "split_by", "home", "up_to", "features", "missing", "units")
_TABLE: Final = ("table", *_CUT)


def task_identity(
    label: str, entry: Mapping[str, Any], folder: Path, seed: int
) -> tuple[dict[str, Any], dict[str, str]]:
    """What decides a task, and where its files lie.

    Parameters
    ----------
    label : str
        What the plan calls it, for messages.
    entry : mapping
        Its entry in the plan: ``world``, a name of `image_names` or `shift_names`
        of `howsure.studies.tasks`, with options of `image_task` or a ``folder``; or ``table``, a
        file, with ``target``, ``split_by`` and further options of `table_task`.
    folder : Path
        Where relative paths start.
    seed : int
        Fixes what is drawn and split.

    Returns
    -------
    identity : dict
        Plain values. Tables stand there by the hash of their numbers; images by the options that
        draw them, or by those that choose them from a published set.
    files : dict of str to str
        Absolute paths, as far as the entry names any.

    Raises
    ------
    InputError
        If a name or an option is not known, or a table cannot be read.

    Examples
    --------
    >>> task_identity("c", {"world": "cells", "train": 100}, Path(), 0)
    ({'images': 'cells', 'train': 100, 'seed': 0}, {})
    """
    if ("world" in entry) == ("table" in entry):
        raise InputError(f"world {label!r} must have one of world and table, got {list(entry)}")
    if "table" in entry:
        check_options(label, entry, _TABLE)
        for key in ("target", "split_by"):
            if key not in entry:
                raise InputError(f"world {label!r} must name its {key} column, got none")
        given: dict[str, Any] = {key: entry[key] for key in entry if key != "table"}
        files = {"table": absolute(folder, entry["table"])}
    elif entry["world"] in image_names():
        check_options(label, entry, ("world", *_IMAGES))
        own: dict[str, Any] = {key: entry[key] for key in entry if key not in ("world", "folder")}
        files = {"folder": absolute(folder, entry["folder"])} if "folder" in entry else {}
        image_task(entry["world"], seed=seed, folder=files.get("folder"), **own)
        return {"images": entry["world"], **own, "seed": seed}, files
    elif entry["world"] in shift_names():
        check_options(label, entry, ("world", "folder"))
        given = {"shift": entry["world"]}
        files = {"folder": absolute(folder, entry["folder"])} if "folder" in entry else {}
    else:
        names = (*image_names(), *shift_names())
        raise InputError(unknown(str(entry["world"]), names, f"world {label!r}"))
    identity = {**given, "seed": seed}
    return {**identity, "data": _hash(_table_task(identity, files))}, files


def make_task(identity: Mapping[str, Any], files: Mapping[str, str]) -> Task:
    """The task of an identity; the last few are remembered, for drawing takes time.

    Raises
    ------
    InputError
        If a table is no longer that of the identity.

    Examples
    --------
    >>> make_task({"images": "cells", "train": 4, "val": 4, "test": 4, "seed": 0}, {}).name
    'cells'
    """
    return _made(canonical(identity), canonical(files))


@lru_cache(maxsize=2)
def _made(identity_text: str, files_text: str) -> Task:
    identity, files = json.loads(identity_text), json.loads(files_text)
    if "images" in identity:
        own = {key: value for key, value in identity.items() if key != "images"}
        return image_task(identity["images"], **own, **files)
    task = _table_task({k: v for k, v in identity.items() if k != "data"}, files)
    if _hash(task) != identity["data"]:
        named = files.get("table", identity.get("shift"))
        raise InputError(f"table {named!r} has changed since the plan was read: run it again")
    return task


def _table_task(given: Mapping[str, Any], files: Mapping[str, str]) -> Task:
    if "shift" in given:
        return shift_task(given["shift"], files.get("folder"), seed=given["seed"])
    path = Path(files["table"])
    named = path.name.partition(".")[0]
    return table_task(_columns(path), name=named, **given)


def _columns(path: Path) -> dict[str, Any]:
    """A file's columns: numbers where every cell is one or is missing, and text otherwise."""
    from howsure.inputs import open_table
    from howsure.inputs.values import numbers

    source = open_table(path)
    read = source.read(dict.fromkeys(source.names, "any"))
    found: dict[str, Any] = {}
    for name in source.names:
        try:
            found[name] = numbers(read[name], name, decimal=source.decimal)
        except InputError:
            found[name] = read[name].cast(pa.string())
    return found


def _hash(task: Task) -> str:
    parts = [task.part(name) for name in ("train", "val", *task.tests)]
    return numbers_hash(*(array for part in parts for array in (part.x, part.y)))
