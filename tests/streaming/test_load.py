"""A table of any size from the door to the report: small ones whole, large ones by parts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

import howsure
from extras import needs
from howsure.core.errors import InputError
from howsure.inputs import write_table
from howsure.streaming import Large, State, load_parts, merged_states
from streaming.tables import normal_table

TABLE = normal_table(3_000).select(["y", "mean", "sd", "site"])
FEW = Large(memory=1_000_000, jobs=1)
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
    held = load_parts(folder, groups="site", large=FEW)
    assert held.totals[0].n == 3_000
    assert held.facts["Rows"] == "3,000"


@pytest.mark.slow
def test_processes_make_the_same_state(folder: Path, tmp_path: Path) -> None:
    made = []
    for jobs in (1, 2):
        path = tmp_path / f"jobs{jobs}.arrow"
        load_parts(folder, groups="site", large=Large(jobs=jobs, state=path))
        made.append(path.read_bytes())
        path.unlink()
    assert made[0] == made[1]


def test_what_yields_batches(folder: Path) -> None:
    def parts() -> Iterator[pa.Table]:
        for start in range(0, 3_000, 700):
            yield TABLE.slice(start, 700)

    assert load_parts(parts(), groups="site").evalsets[0].n == 3_000
    held = load_parts(parts(), groups="site", large=FEW)
    assert held.totals[0].n == 3_000
    files = load_parts(folder, groups="site", large=FEW)
    assert held.totals[0].moments.mean == pytest.approx(files.totals[0].moments.mean, rel=1e-12)


@pytest.mark.rate
@pytest.mark.few_draws
def test_states_of_days_are_that_of_the_week(folder: Path, tmp_path: Path) -> None:
    for number in range(3):
        load_parts(
            folder / f"part{number}.parquet",
            groups="site",
            large=Large(state=tmp_path / f"{number}.arrow"),
        )
    merged = merged_states([State.open(tmp_path / f"{number}.arrow") for number in range(3)])
    whole = tmp_path / "whole.arrow"
    load_parts(folder / "*.parquet", groups="site", large=Large(state=whole))
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
        load_parts(folder, groups="site", large=FEW)
    held = load_parts(folder, groups="site", large=FEW, missing="drop")
    assert (held.dropped, dict(held.dropped_by)) == (1, {"y": 1})
    assert held.totals[0].n == 2_999


def test_parts_of_another_kind_are_refused(folder: Path) -> None:
    parquet.write_table(TABLE.select(["y", "mean"]), folder / "part9.parquet")
    with pytest.raises(InputError, match=r"part9\.parquet.*'sd'"):
        load_parts(folder, groups="site", large=FEW)
    (folder / "part9.parquet").write_bytes((folder / "part0.parquet").read_bytes()[:500])
    with pytest.raises(InputError, match=r"part9\.parquet"):
        load_parts(folder, groups="site", large=FEW)


@pytest.mark.slow
def test_no_half_written_state(folder: Path, tmp_path: Path) -> None:
    parquet.write_table(TABLE.select(["y", "mean"]), folder / "part9.parquet")
    out = tmp_path / "state" / "x.arrow"
    out.parent.mkdir()
    with pytest.raises(InputError):
        load_parts(folder, groups="site", large=Large(state=out))
    assert not list(out.parent.iterdir())


def test_rows_of_weight_zero(folder: Path) -> None:
    weights = np.arange(3_000) % 3
    table = TABLE.append_column("weight", pa.array(weights))
    held = load_parts(
        iter([table.slice(0, 1_500), table.slice(1_500)]), weights="weight", large=FEW
    )
    assert held.totals[0].mass == weights.sum()
    assert held.totals[0].n == (weights > 0).sum()


def test_memory_bounds_the_sample_and_the_processes() -> None:
    assert Large(memory="2GB").sample == 100_000
    assert Large(memory="700MB").sample < 100_000
    assert Large(memory="100MB").processes == 1
    with pytest.raises(InputError, match="jobs and scheduler cannot be combined"):
        Large(jobs=2, scheduler="tcp://x:1")
    with pytest.raises(InputError, match="memory must be a size"):
        Large(memory="much")


@pytest.mark.slow
def test_several_models_in_one_row() -> None:
    rng = np.random.default_rng(2)
    y = rng.normal(size=3_000)
    columns = {"y": y}
    for name, spread in (("a", 1.0), ("b", 2.0)):
        columns |= {f"{name}_mean": np.zeros(3_000), f"{name}_sd": np.full(3_000, spread)}
    table = pa.table(columns)
    result = howsure.assess(
        iter([table.slice(0, 1_000), table.slice(1_000)]),
        options=howsure.Options(trials=False),
        large=howsure.Large(memory=1_000_000),
    )
    found = {r.model: r.value for r in result.records if r.metric == "mean_squared_z"}
    assert found["a"] == pytest.approx(np.mean(y**2), rel=1e-9)
    assert found["b"] == pytest.approx(np.mean(y**2) / 4.0, rel=1e-9)


def test_a_part_of_the_totals_is_a_group(folder: Path) -> None:
    held = load_parts(folder, groups="site", large=FEW)
    part = held.totals[0].in_group("site", "c")
    rows = np.array(TABLE["site"].to_pylist()) == "c"
    assert part.n == rows.sum()
    assert held.totals[0].in_group("nowhere", "c") is None


def test_what_only_this_process_can_read_is_given_to_no_cluster() -> None:
    with pytest.raises(InputError, match="only this process can read it"):
        load_parts(iter([TABLE]), large=Large(memory=1_000_000, scheduler="tcp://nowhere:1"))


def dated(seed: int, zone: str | None, n: int = 200) -> pa.Table:
    times = np.arange(n).astype("M8[h]").astype("M8[us]")
    table = normal_table(n, seed=seed).select(["y", "mean", "sd"])
    return table.append_column("time", pa.array(times, pa.timestamp("us", zone)))


@pytest.mark.parametrize("state", [False, True])
def test_parts_in_several_zones_are_of_one_time(tmp_path: Path, state: bool) -> None:
    (tmp_path / "p").mkdir()
    for number, zone in enumerate(("Europe/Berlin", "UTC", "+05:30")):
        parquet.write_table(dated(number, zone), tmp_path / "p" / f"{number}.parquet")
    kept = tmp_path / "s.arrow" if state else None
    loaded = load_parts(tmp_path / "p", time="time", large=Large(jobs=1, state=kept))
    (held,) = loaded.evalsets
    assert held.time is not None
    assert sorted(held.time) == sorted(np.tile(np.arange(200).astype("M8[h]"), 3))


@pytest.mark.parametrize("state", [False, True])
@pytest.mark.parametrize("ending", [".parquet", ".csv"])
@pytest.mark.parametrize("first", ["UTC", None])
def test_times_with_and_without_a_zone_are_refused(
    tmp_path: Path, state: bool, ending: str, first: str | None
) -> None:
    (tmp_path / "p").mkdir()
    for number, zone in enumerate((first, None if first else "Europe/Berlin")):
        write_table(dated(number, zone), tmp_path / "p" / f"{number}{ending}")
    kept = tmp_path / "s.arrow" if state else None
    with pytest.raises(InputError, match=rf"1\{ending}: column 'time' must have time zones in"):
        load_parts(tmp_path / "p", time="time", large=Large(jobs=1, state=kept))


def test_groups_whose_types_do_not_go_together_are_refused() -> None:
    parts = [dated(0, "UTC"), dated(1, None)]
    with pytest.raises(InputError, match="columns must have compatible types"):
        load_parts(iter(parts), groups="time", time="")


@pytest.mark.parametrize("name", ["howsure_row", "howsure_file"])
@pytest.mark.parametrize("role", ["features", "groups", "rows", "cluster"])
@pytest.mark.parametrize("state", [False, True])
def test_a_column_may_be_called_as_ours_are(
    tmp_path: Path, name: str, role: Any, state: bool
) -> None:
    (tmp_path / "p").mkdir()
    for number in range(2):
        table = normal_table(200, seed=number).select(["y", "mean", "sd"])
        table = table.append_column(name, pa.array(np.arange(200) + 200 * number))
        parquet.write_table(table, tmp_path / "p" / f"{number}.parquet")
    kept = tmp_path / "s.arrow" if state else None
    roles: Any = {role: name}
    loaded = load_parts(tmp_path / "p", **roles, large=Large(jobs=1, state=kept))
    (held,) = loaded.evalsets
    values = {
        "features": lambda: held.features[name],
        "groups": lambda: held.groups[name].values(),
        "cluster": lambda: held.cluster.values(),
        "rows": held.row_names,
    }
    assert sorted(values[role]()) == list(range(400))
    if state and role != "rows":
        assert set(held.row_names()) == {f"{k}.parquet:{row}" for k in (0, 1) for row in range(200)}


def test_an_empty_relation_is_refused() -> None:
    rows = needs("duckdb").sql("select 1.0 as y, 2.0 as mean, 1.0 as sd limit 0")
    with pytest.raises(InputError, match="the table has columns but no rows"):
        load_parts(rows)


def test_parts_that_miss_every_cell_are_counted(tmp_path: Path) -> None:
    (tmp_path / "p").mkdir()
    for number in range(3):
        table = normal_table(100, seed=number).select(["y", "mean", "sd"])
        if number == 1:
            table = table.set_column(0, "y", pa.nulls(100, pa.float64()))
        parquet.write_table(table, tmp_path / "p" / f"{number}.parquet")
    for state in (None, tmp_path / "s.arrow"):
        loaded = load_parts(tmp_path / "p", missing="drop", large=Large(jobs=1, state=state))
        assert (loaded.dropped, loaded.dropped_by) == (100, {"y": 100})
        assert [each.rows for each in loaded.manifest.files] == [100, 100, 100]
        assert [bool(each.key) for each in loaded.manifest.files] == [True, False, True]
    assert State.open(tmp_path / "s.arrow").rows == 300


def test_copies_among_the_parts_are_told(tmp_path: Path) -> None:
    (tmp_path / "p").mkdir()
    for name in ("0", "copy"):
        parquet.write_table(normal_table(100), tmp_path / "p" / f"{name}.parquet")
    loaded = load_parts(tmp_path / "p")
    assert loaded.facts["Files"] == (
        f"2 files, 200 rows; {tmp_path}/p/0.parquet and {tmp_path}/p/copy.parquet have the same "
        "rows, which are counted twice"
    )


def test_a_few_rows_of_text_are_read_as_many_are(tmp_path: Path) -> None:
    """Labels that are whole numbers; and what is wrong is told by its row in its file."""
    (tmp_path / "p").mkdir()
    for number in range(2):
        table = normal_table(60, seed=number).select(["y", "mean", "sd", "hour"])
        write_table(table, tmp_path / "p" / f"{number}.csv")
    for state in (None, tmp_path / "s.arrow"):
        loaded = load_parts(tmp_path / "p", groups="hour", large=Large(jobs=1, state=state))
        assert loaded.evalsets[0].groups["hour"].labels.tolist() == [0, 1, 2]
    y = np.zeros(40)
    y[33] = np.nan
    table = pa.table({"y": y, "mean": np.zeros(40), "sd": np.ones(40)})
    parquet.write_table(table, tmp_path / "t.parquet", row_group_size=10)
    with pytest.raises(InputError, match=r"t\.parquet: .*\(.*33\)|t\.parquet.*row 33"):
        load_parts(f"{tmp_path}/t.par*")
