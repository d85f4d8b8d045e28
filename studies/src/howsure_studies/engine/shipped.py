"""Results that ship with plans: a Parquet file beside each plan, one row a result.

A result of a method on a world under a seed is found by the addresses of its trials, so that it
serves every plan that asks for just these, and none that asks for others. Without data, from which
addresses follow, a file serves by the plan that made it, whose hash it has.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, TypeVar, final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyarrow import compute, parquet

from howsure.core.arrays import FloatArray
from howsure.core.classes import frozen
from howsure.core.convert import (
    Arrays,
    Count,
    Natural,
    NonNegative,
    checked,
    packed,
    plain,
    unpacked,
)
from howsure.core.errors import InputError, UnanswerableError
from howsure.core.formats import listed, number
from howsure.core.registry import check_known
from howsure_studies.engine.plan import Plan, plan_folders, studies
from howsure_studies.engine.store import Store, address_of
from howsure_studies.engine.study import (
    Combined,
    Group,
    Study,
    Trial,
    grouped,
    needed_by,
    study_of,
    trials_of,
)
from howsure_studies.engine.tables import parquet_bytes, parquet_table

T = TypeVar("T")
FORM: Final = 1
"""Version of what is written; files of before say none."""
_KEY: Final = b"howsure"
"""Where a file's metadata says what made it."""
_PLAN: Final = ("name", "study", "worlds", "methods", "seeds", "options")
"""What a file keeps of its plan."""
_MADE: Final = (
    *("trials", "cpu_seconds", "finished", "howsure", "python", "platform", "libraries"),
)
"""What a file keeps of what made it, beside the number of results."""
_PART: Final = {"results": Count, "cpu_seconds": NonNegative, "howsure": str, "finished": str}
"""What is read of a part."""


def plan_hash(plan: Plan) -> str:
    """What ties shipped results to their plan: the hash of all that it asks for."""
    return address_of({name: plain(getattr(plan, name)) for name in _PLAN})


def shipped_bytes(plan: Plan, store: Store, trials: Sequence[Trial] | None = None) -> bytes:
    """The file of a plan's results: the store's, and of the others those that ship already.

    Parameters
    ----------
    plan : Plan
        Whose results they are.
    store : Store
        Where trials are that are done.
    trials : sequence of Trial, optional
        All of the plan, where they are known.

    Returns
    -------
    bytes
        Each result has the part of the file that it was made in: when, by what, in what time. How
        many results of the plan are in neither place, the file tells.

    Raises
    ------
    UnanswerableError
        If there is no result, or one is missing of a study whose results need each other
        (`Study.shipping`), or a world ships whose data are not here.
    """
    trials = trials_of(plan) if trials is None else trials
    study, groups = study_of(plan.study), grouped(trials)
    _check_data(plan, groups)
    entries = store.entries([trial.address for trial in trials])
    undone = {address for address, entry in entries.items() if entry.status != "done"}
    done = {
        group: own
        for group, own in groups.items()
        if not any(trial.address in undone for trial in own)
    }
    rows = carried(plan, {group: own for group, own in groups.items() if group not in done})
    whole = len(groups) in (len(done), len(rows))
    if not (whole or ((done or rows) and in_parts(study))):
        raise UnanswerableError(f"{len(undone)} trials of plan {plan.name!r} are not done")
    if done:
        every = {trial.address: trial for trial in trials}
        used = set(needed_by((trial for own in done.values() for trial in own), every)) - undone
        made = _provenance_of(
            [entries[address].provenance for address in entries if address in used], done
        )
        read = {group: study.read(plan, own, store) for group, own in done.items()}
        for group, results in study.shipping(read).items():
            rows[group] = [(made, _row(study, result)) for result in results]
    parts: list[Mapping[str, Any]] = []
    table = []
    for group, own in groups.items():
        for part, row in rows.get(group, ()):
            if part not in parts:
                parts.append(part)
            names = dict(zip(("world", "method", "seed"), group, strict=True))
            place = {"address": _address(own), "part": parts.index(part)}
            table.append({**row, **names, **place})
    facts = {
        "form": FORM,
        "plan": {name: plain(getattr(plan, name)) for name in _PLAN},
        "hash": plan_hash(plan),
        "missing": len(groups) - len(rows),
        "parts": parts,
    }
    columns = pa.Table.from_pylist(table, schema=_SCHEMA)
    columns = columns.replace_schema_metadata({_KEY: json.dumps(facts).encode()})
    split = [f"arrays.list.element.{each}.list.element" for each in _FLOATS]
    return parquet_bytes(columns, split, level=22)


def in_parts(study: Study) -> bool:
    """Whether no result that ships needs the others, so that a file may be made in parts."""
    return type(study).shipping is Study.shipping


def carried(
    plan: Plan, wanted: Mapping[Group, Sequence[Trial]]
) -> dict[Group, list[tuple[Mapping[str, Any], dict[str, Any]]]]:
    """Rows of those of these results that ship already, each with the part it was made in.

    Of a study whose results need each other these are all of one plan as it stands, or none.
    """
    held = _find_files(plan.study, wanted)
    if not in_parts(study_of(plan.study)):
        same = plan_hash(plan)
        if len(held) < len(wanted) or any(f.made["hash"] != same for f, _ in held.values()):
            return {}
    return {
        group: [(file.parts[row["part"]], row) for row in rows]
        for group, (file, rows) in held.items()
    }


def _check_data(plan: Plan, groups: Iterable[Group]) -> None:
    """No world of the plan ships whose trials are not known, as its data are not here."""
    known = {world for world, _, _ in groups}
    for file in _files(plan.study):
        if file.made["plan"]["name"] == plan.name:
            for world in dict.fromkeys(file.table["world"].to_pylist()):
                if world in plan.worlds and world not in known:
                    raise UnanswerableError(
                        f"results of world {world!r} ship with plan {plan.name!r}, and its data "
                        "are not here"
                    )


def _provenance_of(
    provenances: Iterable[Mapping[str, Any]], results: Collection[Group]
) -> dict[str, Any]:
    """What made results in one go."""
    made = sorted(provenances, key=lambda provenance: provenance["started"])
    return {
        "results": len(results),
        "trials": len(made),
        "cpu_seconds": round(sum(provenance["cpu_seconds"] for provenance in made)),
        "finished": made[-1]["started"][:10],
        **{name: made[-1][name] for name in ("howsure", "python", "platform")},
        "libraries": {name: v for each in made for name, v in each["libraries"].items()},
    }


_SCHEMA: Final = pa.schema(
    [
        *((name, pa.string()) for name in ("world", "method")),
        ("seed", pa.int64()),
        ("part", pa.int32()),
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
_FLOATS: Final = ("doubles", "singles")
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
    with _reading(f"a result of study {study.name!r} that ships"):
        arrays: Arrays = {
            array["name"]: np.array(
                array[_STORED.get(array["type"], "integers")], dtype=array["type"]
            ).reshape(array["shape"])
            for array in row["arrays"]
        }
        kinds = {kind.__name__: kind for kind in study.kinds}
        check_known(row["kind"], kinds, "kind of a result that ships")
        return unpacked(kinds[row["kind"]], arrays, json.loads(row["facts"]))


@contextmanager
def _reading(title: str) -> Iterator[None]:
    """Turn what is raised where a file lacks what it must contain into an `InputError`."""
    try:
        yield
    except (LookupError, TypeError, ValueError, AttributeError, OverflowError, OSError) as error:
        raise InputError(
            f"{title} is damaged, or has another format: {str(error)[:200]}; create it again with "
            "make papers"
        ) from error


def singles(value: T, bits: int = 24) -> T:
    """A dataclass whose arrays of floats have seven digits and half the size, or fewer bits."""
    arrays, facts = packed(value)
    short = {
        name: in_bits(array, bits) if array.dtype == np.float64 else array
        for name, array in arrays.items()
    }
    return unpacked(type(value), short, facts)


def in_bits(values: FloatArray, bits: int) -> npt.NDArray[np.float32]:
    """Numbers of single precision with so many bits at most, which pack well."""
    share, power = np.frexp(values)
    near = np.ldexp(np.round(np.ldexp(share, bits)), power - bits)
    return np.asarray(near, dtype=np.float32)


@final
@frozen(kw_only=True)
class Shipped:
    """What ships of a plan."""

    results: Mapping[Group, Sequence[Any]]  # under the plan's own names
    facts: Mapping[str, str]  # what made them, for people


def shipped(plan: Plan, wanted: Mapping[Group, Sequence[Trial]]) -> Shipped | None:
    """What ships of these results of a plan; None where nothing does."""
    study, held = study_of(plan.study), _find_files(plan.study, wanted)
    if not held:
        return None
    files = {id(file): file for file, _ in held.values()}
    return Shipped(
        results={group: [_result(study, row) for row in rows] for group, (_, rows) in held.items()},
        facts=_origin_facts(file.origin() for file in files.values()),
    )


def shipped_by_name(plan: Plan, methods: Collection[str]) -> Shipped:
    """What ships of methods whose libraries are not here, from which addresses would follow.

    A file serves where its plan calls the method, the world and all options the same.
    """
    asked_for = json.loads(json.dumps({each: plain(getattr(plan, each)) for each in _PLAN}))
    found: dict[Group, list[Any]] = {}
    used: list[_ShippedFile] = []
    for file in _files(plan.study):
        made = file.made["plan"]
        if made["options"] != asked_for["options"]:
            continue
        alike = {
            part: {k for k, v in asked_for[part].items() if made[part].get(k) == v}
            for part in ("worlds", "methods")
        }
        own: dict[Group, list[Any]] = {}
        for row in file.rows():
            world, method, seed = group = _group(row)
            here = method in methods and seed in plan.seeds and group not in found
            if here and world in alike["worlds"] and method in alike["methods"]:
                own.setdefault(group, []).append(_result(study_of(plan.study), row))
        found |= own
        used += [file] if own else []
    return Shipped(
        results=found, facts=_origin_facts(file.origin() for file in used) if used else {}
    )


def _find_files(
    study: str, wanted: Mapping[Group, Sequence[Trial]]
) -> dict[Group, tuple[_ShippedFile, list[dict[str, Any]]]]:
    """By the names of those who ask: the first file that holds a result, and its rows there."""
    addresses = {group: _address(trials) for group, trials in wanted.items()}
    left = set(addresses.values())
    found: dict[str, tuple[_ShippedFile, dict[Group, list[dict[str, Any]]]]] = {}
    for file in _files(study):
        for row in file.rows(left):
            _, own = found.setdefault(row["address"], (file, {}))
            own.setdefault(_group(row), []).append(row)
        left -= found.keys()
    held = {}
    for group, address in addresses.items():
        if address in found:
            file, own = found[address]
            held[group] = file, own.get(group) or next(iter(own.values()))  # labels of one thing
    return held


def _group(row: Mapping[str, Any]) -> Group:
    return row["world"], row["method"], row["seed"]


def study_shipped(name: str) -> Combined:
    """All results that ship with plans of a study, as one: no data, store or network is read.

    Parameters
    ----------
    name : str
        Of the study. What two of its plans share is shown once. A world that they call alike and
        share nothing of has the plan's name beside it.

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
    own = [file for file in _files(plan.study) if file.made["hash"] == plan_hash(plan)]
    return _together(study_of(plan.study), own) if own else None


def _together(study: Study, files: Sequence[_ShippedFile]) -> Combined:
    """Results of several files as one."""
    worlds: dict[str, list[_SharedWorld]] = {}
    shown = []
    for file in files:
        own: dict[str, _Rows] = {}
        for row in file.rows():
            key = (row["method"], row["seed"])
            own.setdefault(row["world"], {}).setdefault(key, []).append(row)
        plan = Plan(**file.made["plan"])
        shown.append((file, plan, [_placed(worlds, label, plan, own[label]) for label in own]))
    parts, origins = [], []
    for file, plan, placed in shown:
        results = {
            (f"{label} ({world.plan})" if len(worlds[label]) > 1 else label, *key): [
                _result(study, row) for row in rows
            ]
            for label, world, new in placed
            for key, rows in new.items()
        }
        if results:
            parts.append(study.combine(plan, results))
            origins.append(file.origin())
    return Combined.of(parts, _origin_facts(origins), sum(file.missing for file in files))


_Rows = dict[tuple[str, int], list[dict[str, Any]]]
"""Rows of a world, by method and seed."""


@final
@frozen(kw_only=True)
class _SharedWorld:
    """A world of one label, in all plans that share results on it."""

    plan: str
    """The first of them."""
    addresses: dict[tuple[str, int], str]
    """By method and seed."""

    def has(self, given: Mapping[tuple[str, int], str]) -> bool:
        """Whether a plan's world is this one: a result is shared, and none is called as another."""
        shared = not set(given.values()).isdisjoint(self.addresses.values())
        return shared and all(self.addresses.get(key, own) == own for key, own in given.items())


def _placed(
    worlds: dict[str, list[_SharedWorld]], label: str, plan: Plan, rows: _Rows
) -> tuple[str, _SharedWorld, _Rows]:
    """Which of the worlds of a label a plan's is, and the rows that it adds to it."""
    addresses = {key: own[0]["address"] for key, own in rows.items()}
    known = worlds.setdefault(label, [])
    world = next((each for each in known if each.has(addresses)), None)
    if world is None:
        world = _SharedWorld(plan=plan.name, addresses={})
        known.append(world)
    there = set(world.addresses.values())
    new = {key: own for key, own in rows.items() if addresses[key] not in there}
    world.addresses.update((key, addresses[key]) for key in new)
    return label, world, new


def shipped_studies() -> tuple[str, ...]:
    """Names of the studies with results that ship."""
    there = {made["plan"]["study"] for _, made in _shipped_files()}
    return tuple(name for name in studies.names() if name in there)


def _shipped_files() -> Iterator[tuple[Path, dict[str, Any]]]:
    """Each file of results, and what made it."""
    for file in sorted(file for folder in plan_folders() for file in folder.glob("*.parquet")):
        with _reading(str(file)):
            made = json.loads((parquet.read_schema(file).metadata or {}).get(_KEY, b"{}"))
            ours = "plan" in made
            if ours:
                form = made.get("form", FORM)
                if form != FORM or made["plan"].keys() != {*_PLAN}:
                    raise InputError(f"its format is {form}")
        if ours:
            yield file, made


@final
@frozen(kw_only=True)
class _ShippedFile:
    """What ships with one plan."""

    made: Mapping[str, Any]
    parts: Sequence[Mapping[str, Any]]  # what made results in one go
    table: pa.Table

    @property
    def missing(self) -> int:
        """Results of the plan that it lacks."""
        return int(self.made.get("missing", 0))

    def rows(self, addresses: Iterable[str] | None = None) -> list[dict[str, Any]]:
        """All rows, or those of some addresses."""
        if addresses is None:
            chosen = self.table
        else:
            wanted = pa.array(list(addresses), pa.string())
            chosen = self.table.filter(compute.is_in(self.table["address"], wanted))
        rows: list[dict[str, Any]] = chosen.to_pylist()
        return rows

    def origin(self) -> str:
        """What made it, for people: of a part that is here in part, its share of the time."""
        here = Counter(part for _, part in _results_of(self.table))
        seconds = sum(
            part["cpu_seconds"] * here[place] / part["results"]
            for place, part in enumerate(self.parts)
        )
        versions = listed(dict.fromkeys(part["howsure"] for part in self.parts))
        days = sorted({part["finished"] for part in self.parts})
        told = (
            f"plan {self.made['plan']['name']}, howsure {versions}, "
            f"{' to '.join(dict.fromkeys((days[0], days[-1])))}, "
            f"{number(seconds / 3600.0, 2)} hours of processor time"
        )
        if self.missing:
            told += f", {self.missing} of {here.total() + self.missing} results not done"
        return told


def _files(study: str) -> Iterator[_ShippedFile]:
    """Each file of a study's results."""
    for file, made in _shipped_files():
        if made["plan"]["study"] == study:
            with _reading(str(file)):
                found = _shipped_file(made, parquet_table(file.read_bytes(), str(file)))
            yield found


def _shipped_file(made: Mapping[str, Any], table: pa.Table) -> _ShippedFile:
    """A file's results, and in which parts they were made."""
    if "parts" in made:
        parts = made["parts"]
    else:  # a file of before was made in one
        table = table.append_column("part", pa.repeat(pa.scalar(0, pa.int32()), len(table)))
        parts = [{"results": len(_results_of(table)), **{name: made[name] for name in _MADE}}]
    checked(made.get("missing", 0), Natural, "missing")
    for part in parts:
        for name, kind in _PART.items():
            checked(part[name], kind, name)
    if {part for _, part in _results_of(table)} - {*range(len(parts))}:
        raise InputError("a part is missing")
    return _ShippedFile(made=made, parts=parts, table=table.select(_SCHEMA.names))


def _results_of(table: pa.Table) -> set[tuple[Group, int]]:
    """Results of a table, each with the number of its part."""
    keys = table.select(["world", "method", "seed", "part"]).to_pylist()
    return {(_group(row), row["part"]) for row in keys}


def _origin_facts(origins: Iterable[str]) -> dict[str, str]:
    return {"Results that ship with howsure": "; ".join(origins)}


def _address(trials: Iterable[Trial]) -> str:
    """One address for all trials of a group."""
    return address_of({"trials": sorted(trial.address for trial in trials)})
