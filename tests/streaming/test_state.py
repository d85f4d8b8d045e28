"""States merge into that of the whole, however the table was cut."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from generated import examples
from howsure.core.errors import InputError
from howsure.streaming import State, merged_states
from streaming.tables import by_parts, normal_table, state_of

TABLE = normal_table(2_000)
WHOLE = state_of(TABLE)


def same(one: State, other: State, tolerance: float = 1e-12) -> None:
    a = one.models[0]
    b = other.models[0].about(a.origin)
    assert (one.rows, a.n, a.mass) == (other.rows, b.n, b.mass)
    assert a.cells.labels == b.cells.labels
    np.testing.assert_array_equal(a.cells.codes, b.cells.codes)
    scale = np.sqrt(np.maximum(a.moments.second / a.moments.mass[:, None], 1e-12))
    assert (np.abs(a.moments.mean - b.moments.mean) <= tolerance * (1.0 + scale)).all()
    np.testing.assert_allclose(a.moments.second, b.moments.second, rtol=tolerance * 10, atol=1e-9)
    for name, held in a.joints.items():
        np.testing.assert_allclose(held.mean, b.joints[name].mean, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(held.second, b.joints[name].second, rtol=1e-10, atol=1e-9)
    np.testing.assert_allclose(a.pit, b.pit)
    first, second = one.sample.ranked(), other.sample.ranked()
    assert first.bound == second.bound
    assert first.table.equals(second.table)


@examples(15)
@given(st.lists(st.integers(1, 1_999), max_size=5, unique=True))
def test_however_it_is_cut(cuts: list[int]) -> None:
    same(state_of(TABLE, cuts), WHOLE)


@examples(5)
@given(st.integers(0, 2**32 - 1))
def test_whatever_the_order_of_rows(seed: int) -> None:
    order = np.random.default_rng(seed).permutation(TABLE.num_rows)
    held = state_of(TABLE.take(order), [700])
    first, second = (state.sample.ranked() for state in (held, WHOLE))
    names = ["y", "mean", "sd", "site"]
    assert first.table.select(names).equals(second.table.select(names))


def test_merging_in_any_grouping() -> None:
    a, b, c = (state_of(TABLE.slice(k * 600, 600)) for k in range(3))
    same(a.merged(b).merged(c), a.merged(b.merged(c)))
    same(merged_states([a, b, c]), c.merged(a, b))


def test_a_state_is_a_small_arrow_table(tmp_path: Path) -> None:
    WHOLE.save(tmp_path / "day.arrow")
    back = State.open(tmp_path / "day.arrow")
    same(back, WHOLE, 0.0)
    assert back.reading == WHOLE.reading
    assert WHOLE.to_arrow().num_rows == 1
    other = state_of(normal_table(500, seed=1))
    same(back.merged(other), WHOLE.merged(other))


@pytest.mark.slow
def test_squares_about_0_that_lost_their_digits_are_not_taken_for_those_of_all_rows(
    tmp_path: Path,
) -> None:
    """As 0.2.0 wrote them: near 0 they hold, far from it R² is the sample's, and that is said."""
    for shift, precise in ((0.0, True), (1e6, False)):
        moved = {name: pc.add(TABLE[name], shift) for name in ("y", "mean")}
        table = pa.table({**moved, "sd": TABLE["sd"]})
        parts = [state_of(table.slice(k * 1_000, 1_000), groups="") for k in range(2)]
        old = replace(parts[0], models=tuple(model.about(0.0) for model in parts[0].models))
        written = old.to_arrow()
        told = json.loads(written.schema.metadata[b"howsure"])
        told["howsure"] = "0.2.0"
        del told["facts"]["models"][0]["origin"]
        path = tmp_path / "old.arrow"
        with pa.ipc.new_file(path, written.schema) as writer:
            metadata = {"howsure": json.dumps(told)}
            writer.write_table(written.replace_schema_metadata(metadata))
        for one, two in ((State.open(path), parts[1]), (parts[1], State.open(path))):
            merged = one.merged(two)
            assert ("r_squared" in merged.models[0].joints) == precise
            assert any("R²" in note for note in merged.manifest.notes) == (not precise)
    record = next(r for r in by_parts(merged).records if r.metric == "r_squared")
    assert record.exact == "sample"
    assert record.upper - record.lower < 0.2


def test_other_files_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.arrow"
    with pa.ipc.new_file(path, TABLE.schema) as writer:
        writer.write_table(TABLE)
    with pytest.raises(InputError, match="must be a state"):
        State.open(path)
    path.write_bytes(b"no table")
    with pytest.raises(InputError, match="cannot be read as a state"):
        State.open(path)


def test_states_of_other_columns_are_refused() -> None:
    other = state_of(TABLE, groups="site")
    with pytest.raises(InputError, match=r"must agree in (models|forms)"):
        WHOLE.merged(other)


def test_a_label_that_only_one_part_has() -> None:
    rare = TABLE.set_column(5, "site", pa.array(["z"] * 5 + TABLE["site"].to_pylist()[5:]))
    held = state_of(rare, [5])
    assert held.models[0].cells.labels[0] == ("a", "b", "c", "d", "z")
    same(held, state_of(rare))
