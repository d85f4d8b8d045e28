"""Results that ship with plans: a Parquet file beside each plan, one row a result.

A result of a method on a world under a seed is found by the addresses of its trials, so that it
serves every plan that asks for just these, and none that asks for others. Without data, from which
addresses follow, a file serves by the plan that made it, whose hash it has.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeVar, final

import numpy as np
import pyarrow as pa
from pyarrow import compute, parquet

from howsure.core import formats
from howsure.core.convert import Arrays, packed, plain, unpacked
from howsure.core.errors import UnanswerableError
from howsure.core.registry import check_known
from howsure_studies.engine.plan import Plan, plan_folders, studies
from howsure_studies.engine.store import Store, address_of
from howsure_studies.engine.study import Combined, Group, Study, Trial, grouped, study_of, trials_of
from howsure_studies.engine.tables import parquet_bytes, parquet_table

T = TypeVar("T")
_KEY: Final = b"howsure"
"""Where a file's metadata says what made it."""
_PLAN: Final = ("name", "study", "worlds", "methods", "seeds", "options")
"""What a file keeps of its plan."""


def plan_hash(plan: Plan) -> str:
    """What ties shipped results to their plan: the hash of all that it asks for."""
    return address_of({name: plain(getattr(plan, name)) for name in _PLAN})


def shipped_bytes(plan: Plan, store: Store) -> bytes:
    """The file of a plan's results, all of which the store must hold."""
    trials, study = trials_of(plan), study_of(plan.study)
    entries = store.entries([trial.address for trial in trials])
    undone = sum(entry.status != "done" for entry in entries.values())
    if undone:
        raise UnanswerableError(f"{undone} trials of plan {plan.name!r} are not done")
    groups = grouped(trials)
    results = {group: study.read(plan, own, store) for group, own in groups.items()}
    rows = [
        {
            **dict(zip(("world", "method", "seed"), group, strict=True)),
            "address": _address(groups[group]),
            **_row(study, result),
        }
        for group, own in study.shipping(results).items()
        for result in own
    ]
    made = [entry.provenance for entry in entries.values()]
    facts = {
        "plan": {name: plain(getattr(plan, name)) for name in _PLAN},
        "hash": plan_hash(plan),
        "trials": len(made),
        "cpu_seconds": round(sum(provenance["cpu_seconds"] for provenance in made)),
        "finished": max(provenance["started"] for provenance in made)[:10],
        **{name: made[-1][name] for name in ("howsure", "python", "libraries", "platform")},
    }
    table = pa.Table.from_pylist(rows, schema=_SCHEMA)
    return parquet_bytes(table.replace_schema_metadata({_KEY: json.dumps(facts).encode()}))


_SCHEMA: Final = pa.schema(
    [
        *((name, pa.string()) for name in ("world", "method")),
        ("seed", pa.int64()),
        *((name, pa.string()) for name in ("address", "kind", "facts")),
        (
            "arrays",
            pa.list_(
                pa.struct(
                    [
                        ("name", pa.string()),
                        ("type", pa.string()),
                        ("shape", pa.list_(pa.int32())),
                        ("doubles", pa.list_(pa.float64())),
                        ("singles", pa.list_(pa.float32())),
                        ("integers", pa.list_(pa.int64())),
                    ]
                )
            ),
        ),
    ]
)
_STORED: Final = {"f8": "doubles", "f4": "singles", "i8": "integers"}
"""The column of an array's numbers, by its type; booleans and short integers are integers."""


def _row(study: Study, result: Any) -> dict[str, Any]:
    """A result as its kind, facts and arrays."""
    if type(result) not in study.kinds:
        raise UnanswerableError(f"results of study {study.name!r} do not ship")
    arrays, facts = packed(result)
    return {
        "kind": type(result).__name__,
        "facts": json.dumps(facts),
        "arrays": [
            {
                "name": name,
                "type": array.dtype.str[1:],
                "shape": list(array.shape),
                _STORED.get(array.dtype.str[1:], "integers"): array.ravel(),
            }
            for name, array in arrays.items()
        ],
    }


def _result(study: Study, row: Mapping[str, Any]) -> Any:
    """The result that `_row` was given."""
    arrays: Arrays = {
        array["name"]: np.array(
            array[_STORED.get(array["type"], "integers")], dtype=array["type"]
        ).reshape(array["shape"])
        for array in row["arrays"]
    }
    kinds = {kind.__name__: kind for kind in study.kinds}
    check_known(row["kind"], kinds, "kind of a result that ships")
    return unpacked(kinds[row["kind"]], arrays, json.loads(row["facts"]))


def singles(value: T) -> T:
    """A dataclass whose arrays of floats have seven digits, and half the size."""
    arrays, facts = packed(value)
    short = {
        name: array.astype(np.float32) if array.dtype == np.float64 else array
        for name, array in arrays.items()
    }
    return unpacked(type(value), short, facts)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Shipped:
    """What ships of a plan."""

    results: Mapping[Group, Sequence[Any]]  # under the plan's own names
    facts: Mapping[str, str]  # what made them, for people


def shipped(plan: Plan, wanted: Mapping[Group, Sequence[Trial]]) -> Shipped | None:
    """What ships of these results of a plan; None where nothing does."""
    groups = {_address(trials): key for key, trials in wanted.items()}
    study = study_of(plan.study)
    results: dict[Group, Sequence[Any]] = {}
    facts = []
    for made, table in _files(plan.study):
        here = table.filter(compute.is_in(table["address"], pa.array(list(groups))))
        if here.num_rows:
            facts.append(_origin(made))
        found: dict[Group, list[Any]] = {}
        for row in here.to_pylist():
            found.setdefault(groups[row["address"]], []).append(_result(study, row))
        results |= found
    return Shipped(results=results, facts=_told(facts)) if results else None


def study_shipped(name: str) -> Combined:
    """All results that ship with plans of a study, as one: no data, store or network is read.

    Parameters
    ----------
    name : str
        Of the study. A world that two of its plans call alike has the plan's name beside it.

    Raises
    ------
    UnanswerableError
        If none ships.
    """
    every = list(_files(name))
    if not every:
        raise UnanswerableError(f"no results of study {name!r} ship with it")
    return _together(study_of(name), every)


def plan_shipped(plan: Plan) -> Combined | None:
    """The results that ship with just this plan, whose data need not be there; None without any."""
    own = [(made, table) for made, table in _files(plan.study) if made["hash"] == plan_hash(plan)]
    return _together(study_of(plan.study), own) if own else None


def _together(study: Study, files: Sequence[tuple[dict[str, Any], pa.Table]]) -> Combined:
    """Results of several files as one."""
    every = [(Plan(**made["plan"]), made, table) for made, table in files]
    count: dict[str, int] = {}
    for plan, _, _ in every:
        for world in plan.worlds:
            count[world] = count.get(world, 0) + 1
    parts = []
    for plan, _, table in every:
        results: dict[Group, list[Any]] = {}
        for row in table.to_pylist():
            world = f"{row['world']} ({plan.name})" if count[row["world"]] > 1 else row["world"]
            group = (world, row["method"], row["seed"])
            results.setdefault(group, []).append(_result(study, row))
        parts.append(study.combine(plan, results))
    return Combined.of(parts, _told(_origin(made) for _, made, _ in every))


def shipped_studies() -> tuple[str, ...]:
    """Names of the studies with results that ship."""
    there = {made["plan"]["study"] for _, made in _made()}
    return tuple(name for name in studies.names() if name in there)


def _made() -> Iterator[tuple[Path, dict[str, Any]]]:
    """Each file of results, and what made it."""
    for file in sorted(file for folder in plan_folders() for file in folder.glob("*.parquet")):
        made = json.loads((parquet.read_schema(file).metadata or {}).get(_KEY, b"{}"))
        if "plan" in made:
            yield file, made


def _files(study: str) -> Iterator[tuple[dict[str, Any], pa.Table]]:
    """What made each file of a study's results, and its rows."""
    for file, made in _made():
        if made["plan"]["study"] == study:
            yield made, parquet_table(file.read_bytes(), str(file))


def _told(origins: Iterable[str]) -> dict[str, str]:
    return {"Results that ship with howsure": "; ".join(origins)}


def _origin(made: Mapping[str, Any]) -> str:
    hours = formats.number(made["cpu_seconds"] / 3600.0, 2)
    return (
        f"plan {made['plan']['name']}, howsure {made['howsure']}, {made['finished']}, "
        f"{hours} hours of processor time"
    )


def _address(trials: Iterable[Trial]) -> str:
    """One address for all trials of a group."""
    return address_of({"trials": sorted(trial.address for trial in trials)})
