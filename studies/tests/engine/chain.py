"""A protocol whose methods read what its networks gave, for plans to name."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, final

import numpy as np

from howsure.core.records import Record, ResultTable
from howsure_studies.engine import (
    Combined,
    Group,
    Plan,
    Store,
    Study,
    Trial,
    TrialOutput,
    records_table,
    stacked,
)

ENTRY = "[howsure.studies]\nchain = engine.chain:ChainStudy\n"
META = "Metadata-Version: 2.1\nName: howsure-chain\nVersion: 0\n"


def announce(folder: Path) -> None:
    """Metadata of a package that brings the protocol, in a folder of the path."""
    place = folder / "howsure_chain-0.dist-info"
    place.mkdir(parents=True)
    (place / "METADATA").write_text(META)
    (place / "entry_points.txt").write_text(ENTRY)


@final
class ChainStudy(Study):
    """Networks draw numbers; a method sums those of all networks of its world and seed.

    Options: ``networks`` (of each world and seed), ``seconds`` (that a network takes), ``fail``,
    ``kill`` and ``hang`` (number of the network that raises, kills its process, or never ends),
    ``log`` (a folder that gets a file for every trial begun).
    """

    __slots__ = ()
    name: ClassVar[str] = "chain"
    version: ClassVar[int] = 1
    headline: ClassVar[tuple[str, ...]] = ("total",)

    def trials(self, plan: Plan) -> tuple[Trial, ...]:
        options: Mapping[str, Any] = plan.options
        context = {key: options[key] for key in options if key != "networks"}
        methods, networks = [], []
        for world in plan.worlds:
            for seed in plan.seeds:
                made = [
                    self.trial(
                        {"world": world, "seed": seed, "network": number},
                        {"world": world, "network": str(number)},
                        context,
                    )
                    for number in range(options.get("networks", 2))
                ]
                networks += made
                methods += [
                    self.trial(
                        {"world": world, "seed": seed, "method": method},
                        {"world": world, "method": method},
                        context,
                        needs=[trial.address for trial in made],
                    )
                    for method in plan.methods
                ]
        return (*methods, *networks)  # needs come after those that need them

    def run(self, trial: Trial, store: Store | None = None) -> TrialOutput:
        assert store is not None
        told, context = trial.identity, trial.context
        if "log" in context:
            mark = f"{trial.address}-{os.getpid()}-{time.monotonic_ns()}"
            (Path(context["log"]) / mark).touch()
        if "method" in told:
            total = sum(int(store.arrays(need)["drawn"].sum()) for need in trial.needs)
            return TrialOutput(records=numbers(total), keys={**trial.labels, "seed": told["seed"]})
        time.sleep(context.get("seconds", 0.0))
        if told["network"] == context.get("fail"):
            raise ZeroDivisionError("no network today")
        if told["network"] == context.get("kill"):
            os.kill(os.getpid(), signal.SIGKILL)
        if told["network"] == context.get("hang"):
            time.sleep(1000)
        drawn = np.arange(told["network"] + 3, dtype=np.int16) * (1 + told["seed"])
        return TrialOutput(records=numbers(0), arrays={"drawn": drawn}, keys=trial.labels)

    def read(self, plan: Plan, trials: Sequence[Trial], store: Store) -> list[float]:
        tables = [store.table(trial.address, "records") for trial in trials]
        return [float(table["value"][0].as_py()) for table in tables]

    def combine(self, plan: Plan, results: Mapping[Group, Sequence[float]]) -> Combined:
        tables = []
        for (world, method, seed), values in results.items():
            keys: dict[str, str | int] = {"world": world, "method": method, "seed": seed}
            records = [Record(metric="total", value=value) for value in values]
            tables.append(records_table(records, keys))
        return Combined(table=stacked(tables), results={})


def numbers(total: int) -> ResultTable:
    return ResultTable(name="records", columns={"value": np.array([float(total)])})
