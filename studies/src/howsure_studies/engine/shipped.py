"""Results that ship with the plans of a study: numbers of trials that were run elsewhere.

They lie beside the plans as Parquet files, a row a number. Each row has the address of its trials,
so that it serves any plan that asks for just these trials, and none that asks for others.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, final

import pyarrow as pa
from pyarrow import compute

from howsure.core import formats
from howsure.core.errors import UnanswerableError
from howsure_studies.engine.plan import Plan, plan_folders
from howsure_studies.engine.store import Store, address_of
from howsure_studies.engine.study import Combined, Trial, study_of, trials_of
from howsure_studies.engine.tables import parquet_bytes, parquet_table, stacked

_KEY: Final = b"howsure"
"""Where a file's metadata says what made it."""

Group = tuple[str, str, int]
"""World, method and seed, as the plan calls them."""


def grouped(trials: Iterable[Trial]) -> dict[Group, list[Trial]]:
    """Trials whose results make one result of a method: those labelled by one."""
    groups: dict[Group, list[Trial]] = {}
    for trial in trials:
        if {"world", "method"} <= set(trial.labels):
            key = (trial.labels["world"], trial.labels["method"], trial.identity.get("seed", 0))
            groups.setdefault(key, []).append(trial)
    return groups


def shipped_bytes(plan: Plan, store: Store) -> bytes:
    """The file of a plan's results, all of which the store must hold."""
    trials, study = trials_of(plan), study_of(plan.study)
    entries = store.entries([trial.address for trial in trials])
    undone = sum(entry.status != "done" for entry in entries.values())
    if undone:
        raise UnanswerableError(f"{undone} trials of plan {plan.name!r} are not done")
    parts = []
    for own in grouped(trials).values():
        results = study.combine(plan, own, store).results
        compact = study.compacted([result for of_world in results.values() for result in of_world])
        address = pa.array([_address(own)] * compact.num_rows).dictionary_encode()
        parts.append(compact.append_column("address", address))
    made = [entry.provenance for entry in entries.values()]
    facts = {
        "study": plan.study,
        "plan": plan.name,
        "trials": len(made),
        "cpu_seconds": round(sum(provenance["cpu_seconds"] for provenance in made)),
        "finished": max(provenance["started"] for provenance in made)[:10],
        **{name: made[-1][name] for name in ("howsure", "python", "libraries", "platform")},
    }
    whole = stacked(parts).unify_dictionaries()
    return parquet_bytes(whole.replace_schema_metadata({_KEY: json.dumps(facts).encode()}))


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Shipped:
    """What ships of a plan."""

    parts: Mapping[Group, Combined]  # results under the plan's own names
    facts: Mapping[str, str]  # what made them, for people


def shipped(plan: Plan, wanted: Mapping[Group, Sequence[Trial]]) -> Shipped | None:
    """What ships of these results of a plan; None where nothing does."""
    groups = {_address(trials): key for key, trials in wanted.items()}
    parts: dict[Group, Combined] = {}
    facts = []
    for file in sorted(file for folder in plan_folders() for file in folder.glob("*.parquet")):
        table = parquet_table(file.read_bytes(), str(file))
        made = json.loads((table.schema.metadata or {}).get(_KEY, b"{}"))
        addresses = table["address"].unique().to_pylist() if made.get("study") == plan.study else []
        here = {address: groups[address] for address in addresses if address in groups}
        for address, key in here.items():
            rows = table.filter(compute.equal(table["address"], address))
            parts[key] = study_of(plan.study).restored(plan, key, rows)
        if here:
            facts.append(_origin(made))
    if not parts:
        return None
    return Shipped(parts=parts, facts={"Results that ship with howsure": "; ".join(facts)})


def _origin(made: Mapping[str, Any]) -> str:
    hours = formats.number(made["cpu_seconds"] / 3600.0, 2)
    return (
        f"plan {made['plan']}, howsure {made['howsure']}, {made['finished']}, "
        f"{hours} hours of processor time"
    )


def _address(trials: Iterable[Trial]) -> str:
    """One address for all trials of a group."""
    return address_of({"trials": sorted(trial.address for trial in trials)})
