"""Several models on the same rows: aligned by name or by order, or refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from extras import needs
from generated import examples
from howsure.core.errors import InputError
from howsure.inputs import load, write_table

pd = needs("pandas")

SETTINGS = examples(50)
Y = [1.0, 2.0, 3.0]


def points(table: Any, **options: Any) -> dict[str, list[float]]:
    """Each model's forecasts, once y is checked to be the same."""
    loaded = load(table, **options)
    for made in loaded.evalsets:
        np.testing.assert_array_equal(made.y, loaded.evalsets[0].y)
    return {
        made.model: [] if made.point is None else made.point.tolist() for made in loaded.evalsets
    }


def long(*models: tuple[str, list[float], list[float]], **columns: Any) -> pd.DataFrame:
    parts = [pd.DataFrame({"model": m, "y": y, "pred": pred}) for m, y, pred in models]
    return pd.concat(parts, ignore_index=True).assign(**columns)


def test_a_long_table_is_split_in_order_of_appearance() -> None:
    table = long(("b", Y, [1, 2, 3]), ("a", Y, [4, 5, 6]))
    assert points(table) == {"b": [1, 2, 3], "a": [4, 5, 6]}
    mixed = table.iloc[[0, 3, 1, 4, 2, 5]]
    assert points(mixed) == {"b": [1, 2, 3], "a": [4, 5, 6]}


@SETTINGS
@given(st.permutations(range(3)), st.permutations(range(3)))
def test_names_of_rows_put_them_in_order(one: list[int], other: list[int]) -> None:
    table = long(
        ("a", [Y[i] for i in one], [float(i) for i in one]),
        ("b", [Y[i] for i in other], [float(10 + i) for i in other]),
        id=[f"r{i}" for i in (*one, *other)],
    )
    loaded = load(table)
    first, second = loaded.evalsets
    assert first.row_names().tolist() == second.row_names().tolist() == [f"r{i}" for i in one]
    assert first.point is not None
    assert second.point is not None
    np.testing.assert_array_equal(second.point, first.point + 10)


def test_files_are_models(tmp_path: Path) -> None:
    a, b = tmp_path / "forest.csv.gz", tmp_path / "ridge.parquet"
    write_table({"y": Y, "pred": [1, 2, 3], "region": ["n", "s", "n"], "weight": [1, 2, 1]}, a)
    write_table({"y": Y, "mean": [3, 2, 1], "sd": [1, 1, 1], "x_1": Y}, b)
    loaded = load([a, b], groups="region")
    first, second = loaded.evalsets
    assert (first.model, second.model) == ("forest", "ridge")
    assert second.groups["region"].values().tolist() == ["n", "s", "n"]
    assert second.weights is not None
    assert second.weights.values.tolist() == [1, 2, 1]
    assert not second.features
    assert {use.source for use in loaded.explanation} == {str(a), str(b)}
    assert first.rows is None


def test_ids_of_text_and_of_numbers_are_the_same(tmp_path: Path) -> None:
    a, b = tmp_path / "a.csv", tmp_path / "b.parquet"
    write_table({"y": Y, "pred": [1, 2, 3], "id": [7, 8, 9]}, a)
    write_table({"y": Y[::-1], "pred": [6, 5, 4], "id": [9, 8, 7]}, b)
    assert points([a, b]) == {"a": [1, 2, 3], "b": [4, 5, 6]}


def test_y_in_32_bits_is_the_same_y() -> None:
    y = np.array([0.1, 1e6 / 3, 0.0])
    tables = [{"y": y, "pred": y}, {"y": y.astype(np.float32), "pred": y}]
    first, second = load(tables).evalsets
    np.testing.assert_array_equal(first.y, second.y)


def test_models_of_several_tables_keep_their_names_apart(tmp_path: Path) -> None:
    for name in ("one", "two"):
        write_table({"y": [1, 1], "pred": [1, 2], "model": ["a", "b"]}, tmp_path / f"{name}.csv")
    found = points([tmp_path / "one.csv", tmp_path / "two.csv"])
    assert list(found) == ["one/a", "one/b", "two/a", "two/b"]
    with pytest.raises(InputError, match="models must have different names"):
        load([tmp_path / "one.csv", tmp_path / "one.csv"])


@pytest.mark.parametrize(
    ("table", "said"),
    [
        (long(("a", Y, Y), ("b", Y[:2], Y[:2])), "got 3 rows of 'a' and 2 of 'b'"),
        (
            long(("a", Y, Y), ("b", [1.0, 9.0, 3.0], Y)),
            r"y of 'b' differs from y of 'a' in 1 rows \(first at row 1: 9, not 2\)",
        ),
        (
            long(("a", Y, Y), ("b", Y, Y), id=[1, 2, 3, 1, 2, 4]),
            r"got 1 rows of 'a' that 'b' lacks \('3'\) and 1 rows of 'b' that 'a' lacks \('4'\)",
        ),
        (
            long(("a", Y, Y), ("b", Y, Y), id=[1, 2, 2, 1, 2, 3]),
            "row names must differ within a model; '2' occurs twice in 'a'",
        ),
        (
            long(("a", Y, Y), ("b", Y, Y), group=["n", "s", "n", "n", "n", "n"]),
            r"the group 'group' of 'b' differs from that of 'a' in 1 rows \(first at row 1\)",
        ),
        (
            pd.DataFrame({"y": 1.0, "pred": 1.0, "model": [f"m{i}" for i in range(101)]}),
            "must contain at most 100 names, got 101",
        ),
    ],
)
def test_other_rows_are_refused(table: pd.DataFrame, said: str) -> None:
    with pytest.raises(InputError, match=said):
        load(table)


def test_a_row_that_one_model_misses_goes_for_all() -> None:
    table = long(("a", Y, [1, 2, 3]), ("b", Y, [None, 5, 6]))
    loaded = load(table, missing="drop")
    assert points(table, missing="drop") == {"a": [2, 3], "b": [5, 6]}
    assert loaded.dropped == 2
    assert dict(loaded.dropped_by) == {"pred": 1}
    assert loaded.evalsets[0].row_names().tolist() == [1, 2]


def test_rows_without_a_name_or_a_model_go() -> None:
    table = long(("a", Y, [1, 2, 3]), ("b", Y, [4, 5, 6]), id=["p", "q", None, "q", "p", None])
    table.loc[[3, 4], "y"] = [2.0, 1.0]
    assert points(table, missing="drop") == {"a": [1, 2], "b": [5, 4]}
    nameless = long(("a", Y, [1, 2, 3]), ("b", Y, [4, 5, 6]), model=["a", "a", "", "b", "b", ""])
    loaded = load(nameless, missing="drop")
    assert [made.model for made in loaded.evalsets] == ["a", "b"]
    assert loaded.dropped == 2


def test_a_broken_prediction_names_its_model() -> None:
    table = long(("a", Y, [1, 2, 3]), ("b", Y, [4, 5, 6]), sd=[1, 1, 1, 1, 0, 1])
    with pytest.raises(InputError, match=r"sd must be above 0.*rows of the model 'b'"):
        load(table)


def unequal() -> list[dict[str, Any]]:
    """Two tables that share rows 2 to 5 in another order."""
    first = {"id": [1, 2, 3, 4, 5], "y": [1.0, 2, 3, 4, 5], "pred": [1.0, 2, 3, 4, 5]}
    other = {"id": [9, 5, 4, 3, 2, 8], "y": [9.0, 5, 4, 3, 2, 8]}
    other["pred"] = [value + 10 for value in other["y"]]
    return [first, other]


def test_common_rows_are_those_that_all_models_hold() -> None:
    with pytest.raises(InputError, match="common_rows=True"):
        load(unequal())
    loaded = load(unequal(), common_rows=True)
    first, other = loaded.evalsets
    assert first.y.tolist() == other.y.tolist() == [2, 3, 4, 5]
    assert first.point is not None
    assert other.point is not None
    np.testing.assert_array_equal(other.point, first.point + 10)
    assert first.row_names().tolist() == [2, 3, 4, 5]
    assert loaded.notes == (
        "rows that some models do not have are omitted: 1 of 'model 1', 2 of 'model 2'",
    )
    assert loaded.dropped == 0


def test_a_column_that_only_its_name_makes_the_model_can_be_none() -> None:
    table = long(("a", Y, Y), ("b", Y[:2], Y[:2])).rename(columns={"model": "algo"})
    with pytest.raises(InputError, match=r"model=''\) states that 'algo' does not"):
        load(table)
    assert load(table, model="").evalsets[0].n == 5


def test_common_rows_of_a_long_table_and_with_missing_cells() -> None:
    one, two = map(pd.DataFrame, unequal())
    one["model"], two["model"] = "a", "b"
    table = pd.concat([one, two], ignore_index=True)
    table.loc[2, "pred"] = None
    loaded = load(table, common_rows=True, missing="drop")
    assert loaded.evalsets[0].y.tolist() == [2, 4, 5]
    assert loaded.dropped == 2
    assert any("1 of 'a', 2 of 'b'" in note for note in loaded.notes)


def test_common_rows_need_names_rows_and_one_y() -> None:
    nameless = [{k: v for k, v in table.items() if k != "id"} for table in unequal()]
    with pytest.raises(InputError, match=r"got 5 rows of .* and 6 .*rows=COLUMN, common_rows=True"):
        load(nameless)
    with pytest.raises(InputError, match=r"by a column of row names .*rows=COLUMN"):
        load(nameless, common_rows=True)
    first, other = unequal()
    with pytest.raises(InputError, match="needs rows that all models have"):
        load([first, {**other, "id": [11, 12, 13, 14, 15, 16]}], common_rows=True)
    with pytest.raises(InputError, match=r"y of 'model 2' differs from y of 'model 1' in 1 rows"):
        load([first, {**other, "y": [9.0, 5, 4, 3.5, 2, 8]}], common_rows=True)


# ---- models side by side -------------------------------------------------------------------------

SIDE = {"Price": Y, "Date": ["a", "b", "c"], "DNN 1": [1, 2, 3], "DNN 2": [2, 3, 4], "LEAR": Y}


def test_columns_of_point_forecasts_are_models() -> None:
    assert points(SIDE, y="Price", points="DNN*") == {"DNN 1": [1, 2, 3], "DNN 2": [2, 3, 4]}
    assert points(SIDE, y="Price", points=["LEAR", "DNN 2"]) == {"LEAR": Y, "DNN 2": [2, 3, 4]}
    assert points(SIDE, y="Price", points="LEAR") == {"LEAR": Y}
    told = {use.column: use.role for use in load(SIDE, y="Price", points="DNN*").explanation}
    assert told["DNN 2"] == "point forecast of DNN 2"
    assert told["LEAR"] == "ignored"


def test_what_points_cannot_name_is_refused() -> None:
    with pytest.raises(InputError, match=r"no column matches the pattern 'CNN\*' of points"):
        load(SIDE, y="Price", points="CNN*")
    with pytest.raises(InputError, match="points has one model per column, and point is the pred"):
        load(SIDE, y="Price", points="DNN*", point="LEAR")
    with pytest.raises(InputError, match="points: no column of the table is called 'CNN'"):
        load(SIDE, y="Price", points="CNN")


@pytest.mark.parametrize("levels", [("0.05", "0.5", "0.95"), ("q05", "q50", "q95")])
@pytest.mark.parametrize("mark", [" ", "_"])
def test_quantiles_side_by_side_are_models(levels: tuple[str, ...], mark: str) -> None:
    table: dict[str, Any] = {"y": Y}
    for model in ("DNN 1", "LEAR 56"):
        table |= {f"{model}{mark}{level}": np.array(Y) + k for k, level in enumerate(levels)}
    loaded = load(table)
    assert [held.model for held in loaded.evalsets] == ["DNN 1", "LEAR 56"]
    for held in loaded.evalsets:
        assert list(held.predictions[0].levels) == [0.05, 0.5, 0.95]
        assert np.array_equal(held.predictions[0].values[:, 2], np.array(Y) + 2)
