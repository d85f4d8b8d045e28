"""From a table to an evaluation set: every prediction, every role, and what is wrong with them."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from scipy import stats

from howsure.core.errors import InputError
from howsure.inputs import explain, load, write_table
from howsure.predictions import Distribution, EvalSet, Intervals, Quantiles, Samples
from howsure.predictions.columns import to_columns

N = 12
RNG = np.random.default_rng(0)
Y = RNG.normal(size=N)


def only(table: Any, **options: Any) -> EvalSet:
    (made,) = load(table, **options).evalsets
    return made


def test_intervals_at_several_coverages() -> None:
    made = only(
        {"y": Y, "upper_50": Y + 1, "lower_90": Y - 2, "lower_50": Y - 1, "upper_90": Y + 2}
    )
    (prediction,) = made.predictions
    assert isinstance(prediction, Intervals)
    assert prediction.coverages == (0.5, 0.9)
    np.testing.assert_array_equal(prediction.interval(0.9)[1], Y + 2)
    np.testing.assert_array_equal(prediction.interval(0.5)[0], Y - 1)


def test_an_unknown_coverage_stays_unknown() -> None:
    assert only({"y": Y, "lower": Y - 1, "upper": Y + 1}).predictions[0].coverages == ()
    told = only({"y": Y, "lower": Y - 1, "upper": Y + 1}, coverage=0.8)
    assert told.predictions[0].coverages == (0.8,)


def test_predictions_coexist() -> None:
    made = only({
        "y": Y, "point": Y + 0.1, "lower_90": Y - 1, "upper_90": Y + 1, "mean": Y, "sd": Y**2 + 1,
        "q0.1": Y - 1, "q0.9": Y + 1, "s_0": Y, "s_1": Y + 1,
    })  # fmt: skip
    assert [type(b) for b in made.predictions] == [Intervals, Distribution, Quantiles, Samples]
    assert made.point is not None
    np.testing.assert_array_equal(made.point, Y + 0.1)


def test_any_law_by_name() -> None:
    table = {"y": Y, "nu": np.arange(N) + 3.0, "m": Y, "s": np.full(N, 2.0)}
    (prediction,) = only(table, law="t:df=nu,loc=m,scale=s").predictions
    frozen = stats.t(table["nu"], table["m"], 2.0)
    np.testing.assert_allclose(prediction.interval(0.9), frozen.interval(0.9))
    (same,) = only(table, law="t:df=nu,loc=m,scale=2").predictions
    np.testing.assert_array_equal(same.interval(0.9), prediction.interval(0.9))
    (alone,) = only(table, law="norm:loc=0,scale=1").predictions
    assert alone.n == N


def test_everything_else_of_a_row() -> None:
    loaded = load(
        {
            "y": Y, "pred": Y, "importance_weight": np.full(N, 0.5), "group_a": np.arange(N) % 2,
            "cluster": [f"c{i // 3}" for i in range(N)], "x_1": Y, "x_kind": ["a", "b"] * 6,
            "emb_0": Y, "emb_1": -Y, "date": np.datetime64("2026-01-01") + np.arange(N),
            "id": [f"r{i}" for i in range(N)],
        }
    )  # fmt: skip
    (made,) = loaded.evalsets
    assert made.weights is not None
    assert made.weights.kind == "importance"
    assert made.groups["group_a"].labels.tolist() == [0, 1]
    assert made.cluster is not None
    assert made.cluster.labels.tolist() == ["c0", "c1", "c2", "c3"]
    np.testing.assert_array_equal(made.features["x_1"], Y)
    assert made.features["x_kind"].tolist() == ["a", "b"] * 6
    np.testing.assert_array_equal(made.embedding, np.column_stack([Y, -Y]))
    assert made.time is not None
    assert made.time.dtype.kind == "M"
    assert made.row_names()[3] == "r3"
    again = pickle.loads(pickle.dumps(loaded))
    assert again.explanation == loaded.explanation


def test_what_was_written_is_read(tmp_path: Path) -> None:
    """`to_columns` writes the names that the reader knows; every form of file keeps the values."""
    spread = np.array([0.5, 1.0])
    held = EvalSet.checked(
        Y,
        (
            Intervals(Y[:, None] - spread, Y[:, None] + spread, [0.5, 0.975]),
            Distribution.normal(Y, Y**2 + 1),
            Quantiles([0.005, 0.5], np.column_stack([Y - 2, Y])),
            Samples(RNG.normal(size=(N, 3))),
        ),
        point=Y,
        weights=np.arange(N) + 1,
        cluster=np.arange(N) // 2,
        time=np.datetime64("2026-01-01") + np.arange(N),
        rows=[f"r{i}" for i in range(N)],
        groups={"odd <b>name</b>, \"quoted\"\n": ["=a", "b,\n"] * 6},
        embedding=RNG.normal(size=(N, 2)),
    )  # fmt: skip
    columns = to_columns(held)
    for ending in (".csv", ".tsv", ".csv.gz", ".csv.zst", ".parquet", ".feather"):
        path = tmp_path / f"t{ending}"
        write_table(columns, path)
        made = only(path, groups=list(held.groups))
        again = to_columns(made)
        assert list(again) == list(columns)
        for name, values in columns.items():
            np.testing.assert_array_equal(again[name], values, err_msg=f"{name} in {ending}")
        assert [b.kind for b in made.predictions] == [b.kind for b in held.predictions]


@pytest.mark.parametrize(
    ("columns", "options", "said"),
    [
        (
            {"pred": [np.inf, 1]},
            {},
            r"'pred' must contain finite numbers, got 1 infinite \(first at r",
        ),
        ({"y": [1, -np.inf], "pred": [1, 1]}, {}, "'y' must contain finite numbers"),
        ({"mean": [1, np.inf], "sd": [1, 1]}, {}, "'mean' must contain finite numbers"),
        ({"mean": [1, 1], "sd": [1, np.inf]}, {}, "'sd' must contain finite numbers"),
        ({"q0.1": [1, -np.inf], "q0.9": [1, 1]}, {}, r"'q0\.1' must contain finite numbers"),
        ({"s_0": [1, np.inf], "s_1": [1, 1]}, {}, "'s_0' must contain finite numbers"),
        ({"pred": [1, 1], "x_1": [1, np.inf]}, {}, "'x_1' must contain finite numbers"),
        ({"pred": [1, 1], "time": [1, np.inf]}, {}, "'time' must contain finite numbers"),
        ({"lower": [0, 3], "upper": [1, 2]}, {}, r"crossed intervals \(first at row 1: lower 3, u"),
        ({"lower": [np.inf, 0], "upper": [np.inf, 1]}, {}, r"lower must not be \+inf"),
        ({"mean": [1, 1], "sd": [1, 0]}, {}, r"sd must be above 0, got 1 .*\(first at row 1: 0\)"),
        ({"mean": [1, 1], "sd": [-1, 1]}, {}, r"sd must be above 0, .*\(first at row 0: -1\)"),
        ({"q0.1": [1, 2], "q0.9": [2, 1]}, {}, "crossing='sort'"),
        ({"pred": [1, 1], "weight": [1, -1]}, {}, "weights must not be negative"),
        ({"pred": [1, 1], "weight": [0, 0]}, {}, "weights must not all be zero"),
        (
            {"pred": [1, 1], "weight": [1, 0.5]},
            {},
            "for other weights use .*weights_kind='importance'",
        ),
        ({"pred": [1, 1], "weight": [1, 1]}, {"weights_kind": "x"}, "weights kind must be"),
        ({"a": [1, -1]}, {"law": "gamma:a=a"}, "parameters of gamma must be in its domain"),
        ({"a": [1, 1]}, {"law": "nonsense:a=a"}, "law must be a distribution of scipy.stats"),
        ({"a": [1, 1]}, {"law": "norm:mean=a"}, "parameters of norm must be among loc, scale"),
        ({"pred": [1, 1]}, {"missing": "keep"}, "missing must be 'error' or 'drop', got 'keep'"),
        ({"pred": [1, 1]}, {"crossing": "keep"}, "crossing must be 'error' or 'sort', got 'keep'"),
        (
            {"pred": [1, 1], "model": ["", ""]},
            {"missing": "drop"},
            "model's name is missing in every row",
        ),
        (
            {"pred": [1, 1], "date": ["x", "y"]},
            {"time": "date"},
            "'date' must contain numbers or dates",
        ),
        (
            {"pred": [None, None]},
            {"missing": "drop"},
            "every row has missing cells: 2 cells missing in 'pred'",
        ),
    ],
)
def test_what_is_wrong_is_named(columns: Any, options: Any, said: str) -> None:
    with pytest.raises(InputError, match=said):
        load({"y": [1.0, 2.0], **columns}, **options)


def test_ends_of_intervals_may_be_infinite() -> None:
    made = only({"y": [1.0], "lower": [-np.inf], "upper": [np.inf]})
    assert made.predictions[0].lower.tolist() == [[-np.inf]]


def test_one_row_and_constant_y_are_tables_too() -> None:
    assert only({"y": [1.0], "pred": [2.0]}).n == 1
    assert only({"y": [1.0] * 3, "pred": [1.0] * 3}).n == 3


def test_crossing_quantiles_may_be_sorted() -> None:
    loaded = load({"y": [1.0, 2.0], "q0.1": [1, 2], "q0.9": [2, 1]}, crossing="sort")
    assert loaded.evalsets[0].predictions[0].quantile([0.1, 0.9]).tolist() == [[1.0, 2.0]] * 2
    assert loaded.notes == (
        "1 row of the model 'model' had quantiles that crossed; each was sorted",
    )


def test_missing_cells_are_counted_and_located() -> None:
    table = {
        "y": [1.0, None, 3.0, 4.0, 5.0],
        "pred": [1.0, 2.0, np.nan, np.nan, 5.0],
        "region": ["a", "b", "c", None, ""],
        "note": [None] * 5,
    }
    with pytest.raises(InputError) as caught:
        load(table, groups="region")
    assert str(caught.value) == (
        "the table: cells are missing: 1 in 'y' (first at row 1), 2 in 'pred' (first at row 2), "
        "2 in 'region' (first at row 3), rows counted from 0. howsure.Table(…, missing='drop') "
        "omits such rows"
    )
    loaded = load(table, groups="region", missing="drop")
    (made,) = loaded.evalsets
    assert made.y.tolist() == [1.0]
    assert made.groups["region"].labels.tolist() == ["a"]
    assert loaded.dropped == 4
    assert dict(loaded.dropped_by) == {"y": 1, "pred": 2, "region": 2}
    assert loaded.notes == (
        "4 rows are omitted because a value is missing ('y' 1, 'pred' 2, 'region' 2)",
    )


def test_rows_keep_their_numbers_when_others_go() -> None:
    table = {"y": [None, 1.0, 2.0, 3.0], "mean": [1.0] * 4, "sd": [1.0, 1.0, 0.5, 0.5]}
    assert only(table, missing="drop").row_names().tolist() == [1, 2, 3]
    with pytest.raises(InputError, match=r"sd must be above 0.* \(first at row 2: 0\)$"):
        load({**table, "sd": [1.0, 1.0, 0.0, 1.0]}, missing="drop")


def test_rows_of_text_are_told_as_lines_of_their_own_file(tmp_path: Path) -> None:
    first, second = tmp_path / "a.csv", tmp_path / "b.csv"
    first.write_text("y,mean,sd\n1,0,1\n2,0,1\n3,0,1\n")
    second.write_text("y,mean,sd\n1,0,1\n\n2,0,1\n3,0,-1\n")
    with pytest.raises(InputError, match=r"b\.csv: sd must be above 0.* \(first at line 5: -1\)"):
        load([first, second])
    second.write_text("y,mean,sd\n1,0,1\n,0,1\n3,0,-1\n")
    with pytest.raises(InputError, match=r"b\.csv: sd must be above 0.* \(first at line 4: -1\)"):
        load(second, missing="drop")
    second.write_text("y,mean,sd\n1,0,1\n9,0,1\n3,0,1\n")
    with pytest.raises(
        InputError, match=r"differs from y of 'a' in 1 rows \(first at line 3: 9, not 2\)"
    ):
        load([first, second])


def test_a_date_that_was_only_guessed_may_be_unreadable() -> None:
    loaded = load({"y": [1.0], "pred": [1.0], "date": ["03/14/2026"]})
    assert loaded.evalsets[0].time is None
    (use,) = [use for use in loaded.explanation if use.column == "date"]
    assert (use.role, use.note) == ("ignored", "cells that are not numbers or dates")


def test_the_explanation_needs_no_rows(tmp_path: Path) -> None:
    """It reads names alone, so it explains a table that cannot be read."""
    path = tmp_path / "t.csv"
    path.write_text("y,pred,region,note\nx,,,\n")
    told = explain(path, groups="region")
    assert [(use.column, use.role) for use in told] == [
        ("y", "y"), ("pred", "point forecast"), ("region", "group"), ("note", "ignored"),
    ]  # fmt: skip
    assert {use.source for use in told} == {str(path)}
    path.write_text("y,pred,region,note\n1,2,a,\n")
    assert load(path, groups="region").explanation == told


def test_a_column_may_have_two_roles(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("y,pred,site,day\n1,2,3,2026-01-01\n2,2,10,2026-01-02\n")
    made = only(path, groups="site,day", features="site", time="day", cluster="site", rows="site")
    assert made.groups["site"].values().tolist() == [3, 10]
    assert made.groups["day"].labels.tolist() == ["2026-01-01", "2026-01-02"]
    assert made.features["site"].tolist() == [3.0, 10.0]
    assert made.time is not None
    assert made.time.dtype.kind == "M"
    assert made.row_names().tolist() == ["3", "10"]


def test_hostile_names_are_only_names(tmp_path: Path) -> None:
    names = [
        "<script>alert(1)</script>",
        "a\nb",
        '"',
        "'; DROP TABLE",
        "=1+1",
        "a.b",
        "\u202e",
        "*",
    ]
    path = tmp_path / "t.parquet"
    write_table({"y": [1.0], "pred": [1.0], **{name: ["<b>"] for name in names}}, path)
    made = only(path, groups=names)
    assert list(made.groups) == names
    with pytest.raises(InputError) as caught:
        only(path, groups=["\n\x1b[31m<b>"])
    assert "\n" not in str(caught.value)
    assert "\x1b" not in str(caught.value)


def test_group_columns_of_parquet_come_as_codes(tmp_path: Path) -> None:
    """With several row groups, each of which has a dictionary of its own."""
    path = tmp_path / "t.parquet"
    region = [f"r{i % 7}" for i in range(1000)]
    table = pa.table({"y": np.arange(1000.0), "pred": np.arange(1000.0), "region": region})
    pa.parquet.write_table(table, path, row_group_size=90)
    assert only(path, groups="region").groups["region"].values().tolist() == region


def test_features_of_text_files_are_numbers_or_labels(tmp_path: Path) -> None:
    """Whatever the reader would infer of them: whole numbers, booleans, dates, text."""
    path = tmp_path / "t.csv"
    path.write_text(
        "y,pred,x_whole,x_part,x_flag,x_day,x_text,x_mixed,x_big\n"
        "1,2,3,0.5,true,2026-01-01,a,1,123456789012345678901\n"
        "2,2,-4,1e3,false,2026-01-02,NA,b,2\n"
    )
    features = {name: values.tolist() for name, values in only(path).features.items()}
    assert features == {
        "x_whole": [3.0, -4.0],
        "x_part": [0.5, 1000.0],
        "x_flag": ["true", "false"],
        "x_day": ["2026-01-01", "2026-01-02"],
        "x_text": ["a", "NA"],
        "x_mixed": ["1", "b"],
        "x_big": [1.2345678901234568e20, 2.0],
    }
    path.write_text("y,pred,x_1,x_text\n1,2,,\n2,2,NA,b\n")
    with pytest.raises(InputError, match=r"2 in 'x_1' \(first at line 2\), 1 in 'x_text'"):
        load(path)
