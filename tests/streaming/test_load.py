"""A table of any size from the door to the report: small ones whole, large ones by parts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

import howsure
from howsure.core.errors import InputError
from howsure.streaming import Resources, State, load_parts, merged_states
from streaming.tables import normal_table

TABLE = normal_table(3_000).select(["y", "mean", "sd", "site"])
FEW = Resources(memory=1_000_000, jobs=1)
"""So little memory that a thousand rows are too many to be assessed at once."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for number in range(3):
        part = TABLE.slice(1_000 * number, 1_000)
        parquet.write_table(part, tmp_path / f"part{number}.parquet", row_group_size=300)
    return tmp_path


def test_a_folder_of_few_rows_is_read_whole(folder: Path) -> None:
    held = load_parts(folder, groups="site")
    assert not held.totals
    assert held.evalsets[0].n == 3_000
    assert held.evalsets[0].model == folder.name


def test_a_folder_of_many_rows_is_read_by_parts(folder: Path) -> None:
    held = load_parts(folder, groups="site", resources=FEW)
    assert held.totals[0].n == 3_000
    assert held.facts["Rows"] == "3,000"


def test_processes_make_the_same_state(folder: Path, tmp_path: Path) -> None:
    made = []
    for jobs in (1, 2):
        path = tmp_path / f"jobs{jobs}.arrow"
        load_parts(folder, groups="site", resources=Resources(jobs=jobs), state=path)
        made.append(path.read_bytes())
        path.unlink()
    assert made[0] == made[1]


def test_what_yields_batches(folder: Path) -> None:
    def parts() -> Iterator[pa.Table]:
        for start in range(0, 3_000, 700):
            yield TABLE.slice(start, 700)

    assert load_parts(parts(), groups="site").evalsets[0].n == 3_000
    held = load_parts(parts(), groups="site", resources=FEW)
    assert held.totals[0].n == 3_000
    files = load_parts(folder, groups="site", resources=FEW)
    assert held.totals[0].moments.mean == pytest.approx(files.totals[0].moments.mean, rel=1e-12)


def test_states_of_days_are_that_of_the_week(folder: Path, tmp_path: Path) -> None:
    for number in range(3):
        load_parts(
            folder / f"part{number}.parquet", groups="site", state=tmp_path / f"{number}.arrow"
        )
    merged = merged_states([State.open(tmp_path / f"{number}.arrow") for number in range(3)])
    whole = tmp_path / "whole.arrow"
    load_parts(folder / "*.parquet", groups="site", state=whole)
    assert merged.models[0].n == 3_000
    assert merged.models[0].moments.mean == pytest.approx(
        State.open(whole).models[0].moments.mean, rel=1e-12
    )


@pytest.mark.parametrize("place", [0, 2_730])
def test_a_missing_cell_is_named_by_its_file_and_row(folder: Path, place: int) -> None:
    y = TABLE["y"].to_numpy().copy()
    y[place] = np.nan
    broken = TABLE.set_column(0, "y", pa.array(y)).slice(1_000 * (place // 1_000), 1_000)
    name = folder / f"part{place // 1_000}.parquet"
    parquet.write_table(broken, name, row_group_size=300)
    with pytest.raises(InputError, match=rf"{name.name}.*row {place % 1_000}\b"):
        load_parts(folder, groups="site", resources=FEW)
    held = load_parts(folder, groups="site", resources=FEW, missing="drop")
    assert (held.dropped, dict(held.dropped_by)) == (1, {"y": 1})
    assert held.totals[0].n == 2_999


def test_parts_of_another_kind_are_refused(folder: Path) -> None:
    parquet.write_table(TABLE.select(["y", "mean"]), folder / "part9.parquet")
    with pytest.raises(InputError, match=r"part9\.parquet.*'sd'"):
        load_parts(folder, groups="site", resources=FEW)
    (folder / "part9.parquet").write_bytes((folder / "part0.parquet").read_bytes()[:500])
    with pytest.raises(InputError, match=r"part9\.parquet"):
        load_parts(folder, groups="site", resources=FEW)


def test_no_half_written_state(folder: Path, tmp_path: Path) -> None:
    parquet.write_table(TABLE.select(["y", "mean"]), folder / "part9.parquet")
    out = tmp_path / "state" / "x.arrow"
    out.parent.mkdir()
    with pytest.raises(InputError):
        load_parts(folder, groups="site", state=out)
    assert not list(out.parent.iterdir())


def test_rows_of_weight_zero(folder: Path) -> None:
    weights = np.arange(3_000) % 3
    table = TABLE.append_column("weight", pa.array(weights))
    held = load_parts(
        iter([table.slice(0, 1_500), table.slice(1_500)]), weights="weight", resources=FEW
    )
    assert held.totals[0].mass == weights.sum()
    assert held.totals[0].n == (weights > 0).sum()


def test_memory_bounds_the_sample_and_the_processes() -> None:
    assert Resources.of("2GB").sample == 100_000
    assert Resources.of("700MB").sample < 100_000
    assert Resources.of("100MB").processes == 1
    with pytest.raises(InputError, match="jobs and scheduler contradict"):
        Resources.of(jobs=2, scheduler="tcp://x:1")
    with pytest.raises(InputError, match="memory must be a size"):
        Resources.of("much")


def test_several_models_in_one_row() -> None:
    rng = np.random.default_rng(2)
    y = rng.normal(size=3_000)
    columns = {"y": y}
    for name, spread in (("a", 1.0), ("b", 2.0)):
        columns |= {f"{name}_mean": np.zeros(3_000), f"{name}_sd": np.full(3_000, spread)}
    table = pa.table(columns)
    result = howsure.assess(
        iter([table.slice(0, 1_000), table.slice(1_000)]), memory=1_000_000, trials=False
    )
    found = {r.model: r.value for r in result.records if r.metric == "mean_squared_z"}
    assert found["a"] == pytest.approx(np.mean(y**2), rel=1e-9)
    assert found["b"] == pytest.approx(np.mean(y**2) / 4.0, rel=1e-9)


def test_a_part_of_the_totals_is_a_group(folder: Path) -> None:
    held = load_parts(folder, groups="site", resources=FEW)
    part = held.totals[0].part("site", "c")
    rows = np.array(TABLE["site"].to_pylist()) == "c"
    assert part.n == rows.sum()
    assert held.totals[0].part("nowhere", "c") is None


def test_what_only_this_process_can_read_is_given_to_no_cluster() -> None:
    with pytest.raises(InputError, match="only this process can read it"):
        load_parts(
            iter([TABLE]), resources=Resources(memory=1_000_000, scheduler="tcp://nowhere:1")
        )
