"""New rows need no y, keep every column, and recalibrated columns go before plain ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import feather, parquet

from howsure.core.errors import InputError
from howsure.inputs import explain, load, load_new, write_table
from howsure.inputs.columns import RECALIBRATED, assign_roles
from howsure.inputs.values import typed
from howsure.predictions import Distribution, EvalSet, Intervals, Quantiles, Samples
from howsure.predictions.columns import prediction_columns, to_columns

PLAIN = {"id": ["007", "010", "011"], "mean": [1.0, 2.0, 3.0], "sd": [1.0, 2.0, 3.0]}


def predictions() -> dict[str, EvalSet]:
    y, rng = np.arange(4.0), np.random.default_rng(0)
    made: dict[str, Any] = {
        "normal": Distribution.normal(y, y + 1),
        "gamma": Distribution("gamma", {"a": y + 1, "loc": 0.0 * y, "scale": y + 2}),
        "mixture": Distribution(
            "norm+norm",
            {
                "weight_1": y * 0 + 0.5,
                "loc_1": y,
                "scale_1": y + 1,
                "weight_2": y * 0 + 0.5,
                "loc_2": y + 1,
                "scale_2": y + 2,
            },
        ),
        "known": Intervals(np.stack([y - 2, y - 1], 1), np.stack([y + 2, y + 1], 1), [0.9, 0.5]),
        "unknown": Intervals(y - 2, y + 2),
        "quantiles": Quantiles([0.05, 0.5, 0.95], y[:, None] + [-1.0, 0.0, 1.0]),
        "samples": Samples(rng.normal(size=(4, 5))),
    }
    return {name: EvalSet.checked(y, held) for name, held in made.items()}


@pytest.mark.parametrize("name", predictions())
def test_what_recalibration_writes_is_read_as_the_prediction(name: str) -> None:
    """The plain columns beside it say something else, and are left aside with a note."""
    held = predictions()[name]
    plain = {key: values * 3.0 for key, values in prediction_columns(held).items()}
    made = {RECALIBRATED + key: values for key, values in prediction_columns(held).items()}
    table = {"y": held.y, **plain, **made, "x1": held.y}
    (found,) = load(table).evalsets
    np.testing.assert_equal(
        dict(found.predictions[0].numbers()), dict(held.predictions[0].numbers())
    )
    assert list(found.features) == ["x1"]
    uses = {use.column: use for use in explain(table)}
    for key in plain:
        assert uses[key].role == "ignored"
        assert "recalibrated" in uses[key].note
        assert uses[RECALIBRATED + key].role != "ignored"


def test_flags_read_the_originals() -> None:
    names = ["y", "mean", "sd", "recalibrated_mean", "recalibrated_sd"]
    assert assign_roles(names)["sd"] == ("recalibrated_sd",)
    roles = assign_roles(names, {"mean": "mean", "sd": "sd"})
    assert (roles["mean"], roles["sd"]) == (("mean",), ("sd",))
    both = [*names, "recalibrated_lower_90", "recalibrated_upper_90"]
    kept = assign_roles(both, {"lower": "", "upper": ""})
    assert (kept["lower"], kept["sd"]) == ((), ("recalibrated_sd",))


def test_a_point_forecast_serves_on_beside_recalibrated_intervals() -> None:
    names = ["y", "pred", "lower_90", "upper_90"]
    names += [RECALIBRATED + name for name in names[2:]]
    roles = assign_roles(names)
    assert (roles["point"], roles["lower"]) == (("pred",), ("recalibrated_lower_90",))
    assert assign_roles(["y", "pred", "sd", "recalibrated_mean", "recalibrated_sd"])["point"] == ()


def test_what_is_called_recalibrated_and_is_no_prediction_changes_nothing() -> None:
    roles = assign_roles(["y", "mean", "sd", "recalibrated_by"])
    assert roles["mean"] == ("mean",)


def test_features_by_a_pattern_take_no_prediction_that_is_left_aside() -> None:
    names = ["y", "mean", "sd", "recalibrated_mean", "recalibrated_sd", "age"]
    assert assign_roles(names, {"features": "*"})["features"] == ("age",)


def test_y_may_be_absent_partly_there_or_none() -> None:
    assert not load_new(PLAIN).labelled
    whole = load_new({**PLAIN, "y": [1.0, 2.0, 4.0]})
    assert whole.labelled
    assert whole.evalset.y.tolist() == [1.0, 2.0, 4.0]
    part = load_new({**PLAIN, "y": [1.0, None, 4.0]})
    assert not part.labelled
    assert "'y' is missing in 1 rows" in part.notes[-1]
    odd = load_new({**PLAIN, "y": ["pending", "1", "2"]})
    assert not odd.labelled
    assert "pending" in odd.notes[-1]


def test_what_is_said_of_columns_that_new_rows_lack_is_not_held_against_them() -> None:
    said: Any = {"y": "out", "weights": "w", "time": "t", "groups": "region,site", "features": "a"}
    found = load_new(PLAIN, **said)
    assert not found.labelled
    with pytest.raises(InputError, match="sd: no column of"):
        load_new(PLAIN, sd="sigma")


@pytest.mark.parametrize("ending", [".csv", ".tsv.gz", ".parquet", ".arrow"])
def test_every_cell_is_kept(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"new{ending}"
    text = {
        "id": ["007", "08", "9"],
        "day": ["2024-02-01", "", "2024-02-03"],
        "note": ['a "b", c', "=1+1", "NA"],
        "empty": ["", "", ""],
        "mean": ["1.50", "2", "3e0"],
        "sd": ["1", "1", "1"],
        "": ["0", "1", "2"],
    }
    table = pa.table({name: pa.array(cells) for name, cells in text.items()})
    if ending == ".parquet":
        table = table.append_column("list", pa.array([[1], [2, 3], []]))
        table = table.append_column("when", pa.array([1, 2, None], pa.timestamp("us", "UTC")))
        table = table.append_column("code", pa.array(["a", "b", "a"]).dictionary_encode())
        parquet.write_table(table, path)
    elif ending == ".arrow":
        feather.write_feather(table, str(path))
    else:
        write_table(table, path)
    found = load_new(path)
    assert found.table is not None
    assert found.table.equals(table)
    assert found.is_text == (ending in (".csv", ".tsv.gz"))


def test_plain_numbers_are_typed_and_names_are_not() -> None:
    table = pa.table(
        {
            "id": ["007", "008"],
            "count": ["1", "-20"],
            "price": ["1.50", "2e3"],
            "gap": ["1", "NA"],
            "day": ["2024-01-01", "2024-01-02"],
            "word": ["NA", "a"],
            "long": ["12345678901234567890", "1"],
            "none": ["", ""],
        }
    )
    found = typed(table, ".")
    kinds = {field.name: str(field.type) for field in found.schema}
    assert kinds == {
        "id": "string",
        "count": "int64",
        "price": "double",
        "gap": "int64",
        "day": "string",
        "word": "string",
        "long": "string",
        "none": "string",
    }
    assert found["gap"].to_pylist() == [1, None]
    assert typed(pa.table({"a": ["1,5"]}), ",")["a"].to_pylist() == [1.5]


def test_rows_without_a_prediction() -> None:
    broken = {**PLAIN, "sd": [1.0, None, 3.0]}
    with pytest.raises(InputError, match=r"1 in 'sd' \(first at row 1\)"):
        load_new(broken)
    found = load_new(broken, missing="drop")
    assert (found.places.tolist(), found.n, found.evalset.n) == ([0, 2], 3, 2)
    assert "1 of 3 rows get no" in found.notes[-1]
    with pytest.raises(InputError, match="every row has missing cells"):
        load_new({**PLAIN, "sd": [None, None, None]}, missing="drop")


def test_columns_that_the_recalibration_needs() -> None:
    table = {**PLAIN, "region": ["n", "s", None], "age": [1.0, 2.0, 3.0]}
    with pytest.raises(InputError, match="must have the column 'size', which the recalibration"):
        load_new(table, by=["size"])
    with pytest.raises(InputError, match=r"1 in 'region' \(first at row 2\)"):
        load_new(table, by=["region"])
    with pytest.raises(InputError, match="'age' must contain labels, as in the calibration table"):
        load_new(table, like={"age": "label"})
    found = load_new(table, by=["region"], like={"age": "number"}, missing="drop").evalset
    assert list(found.groups) == ["region"]
    assert list(found.features) == ["age"]
    assert load_new(table).n == 3  # what is not needed may be missing


def test_recalibrated_columns_are_not_recalibrated_again() -> None:
    with pytest.raises(InputError, match="already has recalibrated columns"):
        load_new({**PLAIN, "recalibrated_mean": [1.0, 2.0, 3.0]})


def test_one_table_of_one_model() -> None:
    with pytest.raises(InputError, match="give one table of new rows, got 2"):
        load_new([PLAIN, PLAIN])
    with pytest.raises(InputError, match="must have exactly one model"):
        load_new({**PLAIN, "model": ["a", "b", "b"]})


def test_weights_of_zero_leave_no_row_out() -> None:
    found = load_new({**PLAIN, "y": [1.0, 2.0, 3.0], "weight": [1, 0, 2]})
    assert found.evalset.n == 3
    assert found.evalset.weights is not None


def test_prediction_columns_are_those_of_the_whole() -> None:
    for held in predictions().values():
        alone, whole = prediction_columns(held), to_columns(held)
        assert list(alone) == [name for name in whole if name != "y"]
    assert list(prediction_columns(EvalSet.checked([1.0], point=[2.0]))) == ["point"]


def test_an_error_names_the_row_of_the_table_where_others_are_left_out() -> None:
    lower = [None, 0.0, 0.0, 5.0, 0.0, 0.0]
    with pytest.raises(InputError, match=r"first at row 3: lower 5"):
        load_new({"lower_90": lower, "upper_90": [1.0] * 6}, missing="drop")
