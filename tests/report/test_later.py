"""What no sentence needs is computed when it is asked for, once, and changes nothing that was."""

from __future__ import annotations

import pickle
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import howsure
from howsure import Assessment, Distribution
from howsure.core.records import Record
from howsure.engine.catalogue import catalogue, key_measures
from howsure.report import measured

pytestmark = pytest.mark.few_draws


def table(rows: int = 400) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(3)
    mean, sd = rng.normal(size=rows), np.exp(rng.uniform(-0.5, 0.5, rows))
    side = np.where(rng.random(rows) < 0.5, "left", "right")
    return {"y": mean + 1.3 * sd * rng.normal(size=rows), "mean": mean, "sd": sd, "side": side}


@pytest.fixture(scope="module")
def result() -> Assessment:
    return howsure.assess(table(), groups="side")


def key(record: Record) -> tuple[str, str, str, str]:
    return record.metric, str(record.coverage), record.model, record.group


def same(one: Record, other: Record) -> bool:
    return repr(one) == repr(other)


def test_the_answer_is_part_of_everything(result: Assessment) -> None:
    whole = {key(record): record for record in result.records}
    for record in result.brief.records:
        other = whole[key(record)]
        if record.metric not in key_measures():  # what a perfect model shows is drawn later
            gone = {name: getattr(record, name) for name in ("null", "null_lower", "null_upper")}
            other = replace(other, **gone, options=record.options)
        assert same(record, other)
    assert len(result.records) > 4 * len(result.brief.records)
    names = [found.name for found in result.brief.tables]
    assert set(names) <= {found.name for found in result.tables}


@pytest.mark.parametrize("models", [1, 2])
@pytest.mark.rate
def test_the_verdict_is_that_of_everything(models: int, monkeypatch: pytest.MonkeyPatch) -> None:
    held = table()
    laws = {f"m{k}": Distribution.normal(held["mean"], held["sd"] * (1 + k)) for k in range(models)}
    x = {"x": held["mean"], "ease": -held["sd"]}
    asked = held["y"], (laws if models > 1 else laws["m0"])
    quick = howsure.assess(
        howsure.Table(*asked, groups={"side": held["side"]}, features=x, ease="ease")
    )
    every = tuple(name for name, entry in catalogue().items() if entry.forms)
    monkeypatch.setattr(measured, "key_measures", lambda: every)  # so that all is measured at once

    def all_of(beside: str = "") -> tuple[str, ...]:
        return tuple(name for name in every if catalogue()[name].beside == beside)

    monkeypatch.setattr(measured, "measures", all_of)
    slow = howsure.assess(
        howsure.Table(*asked, groups={"side": held["side"]}, features=x, ease="ease")
    )
    assert quick.lines == slow.lines
    assert repr(quick.findings) == repr(slow.findings)
    assert quick.to_json() == slow.to_json()


def test_a_screen_computes_nothing_more() -> None:
    result = howsure.assess(table(), groups="side")
    result.to_markdown()
    result.brief_document()
    str(result)
    repr(result)
    assert result.whole._made is None  # type: ignore[attr-defined]
    assert result.records is result.records
    assert result.whole._make is None  # type: ignore[attr-defined]


def test_rows_that_change_afterwards_change_no_number() -> None:
    held = table()
    expected = howsure.assess(held, groups="side").to_json()
    late = howsure.assess(held, groups="side")
    for column in ("y", "mean", "sd"):
        held[column] += 100.0
    assert late.to_json() == expected


def test_a_copy_on_disk_holds_everything(result: Assessment) -> None:
    again = pickle.loads(pickle.dumps(result))
    assert again.to_json() == result.to_json()


HEAVY = ("pandas", "narwhals", "scipy.stats", "scipy.signal", "pyarrow.dataset", "matplotlib")
RUN = """
import contextlib, io, sys
from howsure.cli.main import main
sys.argv = ["howsure", "assess", sys.argv[1], "--groups", "side", "--time", "day"]
with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):
    main()
print([name for name in {heavy} if name in sys.modules], "howsure.verdict.nulls" in sys.modules)
"""


@pytest.mark.parametrize("ending", ["csv", "parquet"])
@pytest.mark.rate
def test_a_verdict_loads_no_library_that_it_does_not_need(ending: str, tmp_path: Path) -> None:
    path = tmp_path / f"t.{ending}"
    days = np.datetime64("2024-01-01") + np.arange(400)
    howsure.inputs.write_table(pa.table({**table(), "day": days}), path)
    run = subprocess.run(
        [sys.executable, "-c", RUN.replace("{heavy}", repr(HEAVY)), str(path)],
        capture_output=True,
        text=True,
        check=True,
    )
    assert run.stdout.split("\n")[-2] == "[] True"


def test_an_interruption_is_gone_on_from(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = howsure.assess(table(), groups="side").to_json()
    late = howsure.assess(table(), groups="side")

    def interrupted(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    for stage in ("with_nulls", "curves_of"):
        with monkeypatch.context() as patched:
            patched.setattr(measured, stage, interrupted)
            with pytest.raises(KeyboardInterrupt):
                late.to_json()
    assert late.to_json() == expected
