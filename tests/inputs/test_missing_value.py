"""Numbers that stand for missing values: read as missing, counted, and told."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import howsure
from howsure.cli.main import app
from howsure.core.errors import InputError
from howsure.core.rng import child
from howsure.inputs import load
from howsure.inputs.batches import ReadPlan
from howsure.inputs.tables import cut

N = 50
RNG = child(0, "missing value")
MEAN = RNG.normal(size=N)
Y = MEAN + RNG.normal(size=N)
LINES = np.column_stack([Y, MEAN, np.ones(N), RNG.normal(size=N)])


def table(y: tuple[int, ...] = (3, 7), x: tuple[int, ...] = (7, 9)) -> dict[str, Any]:
    held = LINES.copy()
    held[list(y), 0] = -9999
    held[list(x), 3] = 1e20
    return dict(zip(("y", "mean", "sd", "x"), held.T, strict=True))


def file(folder: Path, held: dict[str, Any]) -> Path:
    path = folder / "t.csv"
    body = np.column_stack(list(held.values()))
    np.savetxt(path, body, delimiter=",", header=",".join(held), comments="", fmt="%.10g")
    return path


def test_rows_with_a_mark_are_rows_with_a_gap(tmp_path: Path) -> None:
    held = table()
    gone = {name: np.where(np.isin(v, (-9999, 1e20)), np.nan, v) for name, v in held.items()}
    wanted = load(gone, missing="drop").evalsets[0]
    for source in (held, file(tmp_path, held)):
        loaded = load(source, missing_value=(-9999, 1e20), missing="drop")
        assert np.allclose(loaded.evalsets[0].y, wanted.y)
        assert np.allclose(loaded.evalsets[0].features["x"], wanted.features["x"])
        assert loaded.dropped == 3
        told = loaded.facts["Reading"]
        assert "-9999 and 1e20 stand for a missing value: 4 cells ('y' 2, 'x' 2)" in told


def test_they_are_an_error_unless_dropped() -> None:
    with pytest.raises(InputError, match=r"cells are missing: 2 in 'y' .first at row 3"):
        load(table(), missing_value=-9999)
    assert load(table()).evalsets[0].n == N


def test_one_that_stands_nowhere_is_told() -> None:
    loaded = load(table(), missing_value=-7)
    said = "-7 stands for a missing value: in no cell of a column that is used"
    assert said in loaded.facts["Reading"]


def test_single_precision_is_known() -> None:
    held = table() | {"x": np.array([*MEAN[1:], -9999.9], dtype=np.float32)}
    loaded = load(held, missing_value=[-9999.9, -9999], missing="drop")
    assert loaded.dropped_by == {"y": 2, "x": 1}


@pytest.mark.parametrize("value", ["x", float("nan"), float("inf"), True, [1, "y"]])
def test_what_is_no_number_is_refused(value: Any) -> None:
    with pytest.raises(InputError, match="missing_value must be a finite number, such as -9999"):
        load(table(), missing_value=value)


def test_arrays_say_it_by_nan() -> None:
    with pytest.raises(
        InputError, match="missing_value applies only to tables; in arrays, use NaN"
    ):
        howsure.assess(howsure.Table(Y, (MEAN, np.ones(N)), missing_value=-9999))
    result = howsure.assess(
        howsure.Table(table(x=()), missing_value=-9999, missing="drop"),
        options=howsure.Options(trials=False),
    )
    assert result.value("mae") == pytest.approx(np.abs(np.delete(Y - MEAN, (3, 7))).mean())


def test_a_table_in_parts_has_them_too(tmp_path: Path) -> None:
    plan = cut(file(tmp_path, table(x=())), missing_value=-9999, missing="drop")
    assert "read as a missing value: -9999" in " ".join(plan.notes)
    reading = plan.reading
    again = ReadPlan.from_dict(reading.to_dict())
    assert again.roles.missing_values == (-9999.0,)
    (piece,) = plan.pieces
    (batch,) = reading.batches(piece)
    assert batch.dropped == 2


def test_a_command_takes_several(tmp_path: Path) -> None:
    path = file(tmp_path, table())
    line = ["assess", str(path), "--missing", "drop", "--missing-value", "-9999"]
    line += ["--missing-value", "1e20", "-o", str(tmp_path / "o.json")]
    result = CliRunner().invoke(app, line)
    assert result.exit_code == 0, result.output
    assert "'y' 2, 'x' 2" in (tmp_path / "o.json").read_text(encoding="utf-8")
