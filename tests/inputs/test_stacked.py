"""Models under one another, whatever the column of their names is called."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from generated import examples
from howsure.core.errors import InputError
from howsure.inputs import explain, load, open_table, write_table
from howsure.inputs.roles import BY_NAME

SETTINGS = examples(120)
Table = dict[str, Any]
RNG = np.random.default_rng(7)
Y = RNG.normal(size=40)


def stacked(name: str, labels: Any = ("ridge", "forest", "net"), **beside: Any) -> Table:
    """Each label's predictions of the same rows."""
    k = len(labels)
    made: Table = {"y": np.tile(Y, k), "mean": np.tile(Y, k) + np.repeat(np.arange(k), len(Y))}
    made |= {"sd": np.ones(len(Y) * k), name: np.repeat(labels, len(Y))}
    return made | {key: np.tile(value, k) for key, value in beside.items()}


def shuffled(table: Table, seed: int = 0) -> Table:
    order = np.random.default_rng(seed).permutation(len(table["y"]))
    return {name: np.asarray(column)[order] for name, column in table.items()}


@pytest.mark.parametrize("name", sorted(BY_NAME["model"].recognised))
def test_more_names_say_that_a_column_is_the_model(name: str) -> None:
    made = load(stacked(name)).evalsets
    assert [each.model for each in made] == ["ridge", "forest", "net"]
    np.testing.assert_array_equal(made[2].y, Y)


def test_a_column_called_model_goes_before_the_later_names() -> None:
    table = stacked("model", algorithm=np.repeat(["lbfgs", "sgd"], 20))
    assert [each.model for each in load(table).evalsets] == ["ridge", "forest", "net"]
    assert {use.column: use.role for use in explain(table)}["algorithm"] == "ignored"


@pytest.mark.parametrize("name", ["method", "system", "run", "flavour", "group_by", "Unnamed"])
@pytest.mark.parametrize("order", [None, 1])
def test_any_other_column_of_models_is_noticed(tmp_path: Path, name: str, order: Any) -> None:
    table = stacked(name) if order is None else shuffled(stacked(name), order)
    write_table(table, tmp_path / "t.csv")
    said = (
        rf"the labels of '{name}' \(.*\) each have the same rows, like models one below the other: "
        rf"pass .*model='{name}'\), or .*model=''\) if"
    )
    for source in (table, tmp_path / "t.csv"):
        with pytest.raises(InputError, match=said):
            load(source)
    assert load(table, model="").evalsets[0].n == 120
    if order is None:
        assert len(load(tmp_path / "t.csv", model=name).evalsets) == 3


def test_numbers_of_runs_are_noticed_too() -> None:
    with pytest.raises(InputError, match=r"pass .*model='seed'"):
        load(stacked("seed", (1, 2, 3)))


def test_names_of_rows_show_it_even_where_models_lack_some() -> None:
    table = stacked("flavour", id=np.arange(40))
    short = {name: np.delete(column, [3, 50, 51]) for name, column in table.items()}
    for each in (table, short, shuffled(short)):
        with pytest.raises(InputError, match=r"pass .*model='flavour'"):
            load(each)
    made = load(short, model="flavour", common_rows=True).evalsets
    assert [each.n for each in made] == [37, 37, 37]
    twice = {name: np.append(column, column[3]) for name, column in table.items()}
    odd = table | {"y": np.where(np.arange(120) == 50, 9.0, table["y"])}
    for each in (twice, odd):
        with pytest.raises(InputError, match=r"pass .*model='flavour'"):
            load(each)


@pytest.mark.parametrize("inputs", [False, True])
def test_rows_that_some_model_lacks_hide_no_models(inputs: bool) -> None:
    table = stacked("flavour", **({"x_1": RNG.normal(size=40)} if inputs else {}))
    short = {name: np.delete(column, [3, 50]) for name, column in table.items()}
    for each in (short, shuffled(short)):
        with pytest.raises(InputError, match=r"pass .*model='flavour'"):
            load(each)
    gone = table | {"y": np.where(np.arange(120) == 50, np.nan, table["y"])}
    with pytest.raises(InputError, match=r"pass .*model='flavour'"):
        load(gone, missing="drop")


def test_inputs_show_it_where_y_takes_few_values() -> None:
    counts = RNG.integers(0, 3, 40)
    table = stacked("flavour", x_1=RNG.normal(size=40)) | {"y": np.tile(counts, 3)}
    with pytest.raises(InputError, match=r"pass .*model='flavour'"):
        load(shuffled(table))


def test_a_rounded_y_in_the_same_order_shows_it() -> None:
    rounded = np.round(RNG.normal(size=40) * 5)
    assert 10 <= len(np.unique(rounded)) < 20
    table = stacked("flavour") | {"y": np.tile(rounded, 3)}
    with pytest.raises(InputError, match=r"pass .*model='flavour'"):
        load(table)


@pytest.mark.parametrize(
    "y",
    [np.zeros(40), np.arange(40) % 2, np.arange(40) % 4, np.sort(np.arange(40) % 10)],
    ids=["constant", "two values", "four values", "sorted classes"],
)
def test_a_y_of_few_values_shows_nothing(y: Any) -> None:
    table = {
        "y": np.tile(y, 2),
        "mean": np.ones(80),
        "sd": np.ones(80),
        "fold": [1] * 40 + [2] * 40,
    }
    assert load(table).evalsets[0].n == 80


def test_a_panel_is_no_stack() -> None:
    """The same names each month with a new y; the same y, but other inputs."""
    month = np.repeat([1, 2, 3], 40)
    panel = {"id": np.tile(np.arange(40), 3), "y": RNG.normal(size=120), "mean": np.ones(120)}
    assert load({**panel, "sd": np.ones(120), "month": month}).evalsets[0].n == 120
    own = stacked("month", (1, 2, 3)) | {"x_1": RNG.normal(size=120)}
    assert load(own).evalsets[0].n == 120


def test_a_group_that_the_caller_names_is_a_group() -> None:
    table = stacked("region", ("n", "s", "w"))
    assert load(table, groups="region").evalsets[0].n == 120


@SETTINGS
@given(
    st.integers(10, 60),
    st.integers(2, 4),
    st.sampled_from(["normal", "rounded", "counts", "classes", "paired"]),
    st.integers(0, 10_000),
)
def test_random_groups_are_no_models(n: int, k: int, kind: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    y = {
        "normal": rng.normal(size=n),
        "rounded": np.round(rng.normal(size=n), 1),
        "counts": rng.poisson(3, n),
        "classes": rng.integers(0, 2, n),
        "paired": np.repeat(rng.normal(size=n), 2)[:n],
    }[kind]
    table = {"y": y, "mean": np.zeros(n), "sd": np.ones(n), "group_a": rng.integers(0, k, n)}
    table |= {
        "half": np.arange(n) < n // 2,
        "turn": np.arange(n) % k,
        "note": rng.choice([*"abc"], n),
    }
    if kind == "paired":  # which turn by turn would be two models
        del table["turn"]
    assert load(table).evalsets[0].n == n


def test_levels_under_a_name_that_is_not_known() -> None:
    table = stacked("alpha", (0.05, 0.5, 0.95))
    table["pred"] = table.pop("mean")
    del table["sd"]
    with pytest.raises(InputError, match=r"as shares, pass .*quantile_level='alpha'"):
        load(table)
    assert load(table, quantile_level="alpha").evalsets[0].n == 40
    with pytest.raises(InputError, match=r"if they are not models$"):
        load(stacked("alpha", (0.05, 0.5, 0.95)))


def test_small_tables_of_few_models() -> None:
    for labels, rows, order in (
        (("a", "b"), 5, None),
        (("a", "b", "c"), 5, 3),
        (("a", "b"), 10, 2),
    ):
        table = {name: np.asarray(column) for name, column in stacked("how", labels).items()}
        kept = np.tile(np.arange(len(Y)) < rows, len(labels))
        table = {name: column[kept] for name, column in table.items()}
        with pytest.raises(InputError, match=r"pass .*model='how'"):
            load(table if order is None else shuffled(table, order))


Find = Callable[[str], Path]


@pytest.mark.parametrize(
    "name",
    ["uci_boston", "uci_concrete", "uci_energy", "uci_power", "uci_wine_red", "uci_yacht"],
)
def test_real_tables_raise_no_alarm(data_dir: Find, name: str) -> None:
    """Whichever column is y, a design of experiments among them."""
    (path,) = data_dir(name).glob("data.csv*")
    columns = list(open_table(path).names)
    for y, point in ((columns[-1], columns[0]), (columns[0], columns[-1])):
        assert load(path, y=y, point=point, lower="").evalsets


@pytest.mark.parametrize(
    ("name", "levels", "match"),
    [
        ("q", (0.05, 0.5, 0.95), r"'q' \('0.05', '0.5', '0.95'\) .*pass .*quantile_level='q'"),
        ("quantile", (5, 50, 95), r"'quantile'.*pass .*quantile_level='quantile'"),
    ],
)
def test_levels_beside_a_column_of_models(name: str, levels: Any, match: str) -> None:
    parts = [stacked(name, levels) | {"model": [m] * (40 * len(levels))} for m in ("a", "b")]
    table: dict[str, Any] = {key: [*parts[0][key], *parts[1][key]] for key in parts[0]}
    table["pred"] = table.pop("mean")
    del table["sd"]
    with pytest.raises(InputError, match=match):
        load(table)
    assert len(load(table, quantile_level="").evalsets) == 2
    if levels[0] < 1:
        first, second = load(table, quantile_level=name).evalsets
        assert first.n == second.n == 40


def test_folds_and_horizons_beside_a_column_of_models_are_no_levels() -> None:
    parts = [stacked("horizon", (1, 2, 3)) | {"model": [m] * 120} for m in ("a", "b")]
    table = {key: [*parts[0][key], *parts[1][key]] for key in parts[0]}
    assert len(load(table).evalsets) == 2


def test_levels_in_percent_are_told() -> None:
    table = stacked("quantile_level", (5, 50, 95))
    table["pred"] = table.pop("mean")
    del table["sd"]
    with pytest.raises(InputError, match=r"did you mean 0\.05\? Divide the column by 100"):
        load(table)
