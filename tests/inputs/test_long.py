"""Long tables, a row for each level or draw: the same evaluation set as the wide table's."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import howsure
from generated import examples
from howsure.core.errors import InputError
from howsure.inputs import explain, load, load_new, load_unlabelled, write_table
from howsure.predictions import EvalSet, Quantiles, Samples

SETTINGS = examples(60)
LEVELS = (0.05, 0.5, 0.95)
WIDE = {
    "place": ["DE", "DE", "FR", "FR"],
    "horizon": [1, 2, 1, 2],
    "observed": [10.0, 12.5, 7.0, 8.0],
}
Table = dict[str, Any]


def forecasts(shift: float = 0.0) -> np.ndarray:
    return np.array(WIDE["observed"])[:, None] + np.array([-2.0, 0.25, 3.0]) + shift


def melted(
    wide: Table, values: np.ndarray, parts: Any, *, part: str = "quantile_level", **constant: Any
) -> Table:
    """A long table, level by level."""
    n = len(values)
    made = {name: list(column) * len(parts) for name, column in wide.items()}
    made[part] = [level for level in parts for _ in range(n)]
    made["predicted"] = values.T.ravel().tolist()
    return made | {name: [value] * (n * len(parts)) for name, value in constant.items()}


def shuffled(table: Table, seed: int) -> Table:
    order = np.random.default_rng(seed).permutation(len(next(iter(table.values()))))
    return {name: [column[row] for row in order] for name, column in table.items()}


def stacked(*tables: Table) -> Table:
    return {name: [cell for t in tables for cell in t[name]] for name in tables[0]}


def without(table: Table, *rows: int) -> Table:
    return {
        name: [cell for row, cell in enumerate(column) if row not in rows]
        for name, column in table.items()
    }


def quantiles(made: EvalSet) -> Quantiles:
    (found,) = made.predictions
    assert isinstance(found, Quantiles)
    return found


def sets_by_y(made: EvalSet) -> list[tuple[float, ...]]:
    return sorted(zip(made.y.tolist(), *quantiles(made).values.T.tolist(), strict=True))


LONG = melted(WIDE, forecasts(), LEVELS)


def written(table: Table, folder: Path, ending: str) -> Any:
    if ending == "mapping":
        return table
    write_table(table, folder / f"t{ending}")
    return folder / f"t{ending}"


@pytest.mark.parametrize("ending", [".csv", ".csv.gz", ".parquet", ".arrow", "mapping"])
def test_quantiles_in_rows_are_quantiles(tmp_path: Path, ending: str) -> None:
    loaded = load(written(LONG, tmp_path, ending))
    (made,) = loaded.evalsets
    assert made.y.tolist() == WIDE["observed"]
    assert quantiles(made).levels.tolist() == list(LEVELS)
    np.testing.assert_array_equal(quantiles(made).values, forecasts())
    assert made.point is None
    assert made.row_names().tolist() == ["DE, 1", "DE, 2", "FR, 1", "FR, 2"]
    assert (
        "12 rows of a long table form 4 cases, distinguished by 'place', 'horizon'"
        in loaded.notes[0]
    )


def test_a_user_sees_coverage_and_no_ranking_of_points() -> None:
    rng = np.random.default_rng(1)
    y = rng.normal(size=300)
    values = np.tile([-1.645, 0.0, 1.645], (300, 1))
    result = howsure.assess(
        melted({"id": range(300), "observed": y}, values, LEVELS),
        options=howsure.Options(trials=False),
    )
    assert "The 90 % intervals cover" in result.verdict
    assert {record.n for record in result.records if record.metric == "empirical_coverage"} == {300}


@SETTINGS
@given(
    st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=12),
    st.sets(st.sampled_from([0.01, 0.025, 0.1, 1 / 3, 0.5, 0.9, 0.975]), min_size=2),
    st.integers(0, 99),
)
def test_a_wide_table_and_its_long_form_are_the_same(y: list[float], found: Any, seed: int) -> None:
    levels = sorted(found)
    rng = np.random.default_rng(seed)
    values = np.sort(rng.normal(size=(len(y), len(levels))), axis=1)
    wide = {"case": np.arange(len(y)), "y": y, "group_a": rng.choice(["p", "q"], len(y))}
    columns = {f"f{k}": values[:, k] for k in range(len(levels))}
    named = {level: f"f{k}" for k, level in enumerate(levels)}
    (one,) = load({**wide, **columns}, quantiles=named, rows="case").evalsets
    long = shuffled(melted(wide, values, levels), seed)
    (other,) = load(long, rows="case").evalsets
    assert quantiles(other).levels.tolist() == levels
    order = np.argsort(other.row_names())
    np.testing.assert_array_equal(other.row_names()[order], one.row_names())
    np.testing.assert_array_equal(other.y[order], one.y)
    np.testing.assert_array_equal(quantiles(other).values[order], quantiles(one).values)
    assert other.groups["group_a"].values()[order].tolist() == list(wide["group_a"])


@SETTINGS
@given(st.integers(2, 9), st.integers(2, 12), st.integers(0, 99))
def test_draws_in_rows_are_samples(n: int, m: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    y, draws = rng.normal(size=n), rng.normal(size=(n, m))
    wide = {"place": [f"p{i}" for i in range(n)], "observed": y}
    long = shuffled(melted(wide, draws, range(1, m + 1), part="sample_id"), seed)
    (made,) = load(long).evalsets
    (found,) = made.predictions
    assert isinstance(found, Samples)
    order = np.argsort([int(name[1:]) for name in made.row_names()])
    np.testing.assert_array_equal(made.y[order], y)
    np.testing.assert_array_equal(found.sorted_samples[order], np.sort(draws, axis=1))


def test_draws_may_be_numbered_through() -> None:
    draws = forecasts()
    long = melted(WIDE, draws, [1, 2, 3], part="sample_id")
    long["sample_id"] = list(range(12))
    (made,) = load(long, sample_id="sample_id", rows=None).evalsets
    (found,) = made.predictions
    assert isinstance(found, Samples)
    np.testing.assert_array_equal(found.sorted_samples, np.sort(draws, axis=1))


def test_names_that_number_the_rows_are_no_draws() -> None:
    table = {"sample_id": [1, 2, 3], "y": [1.0, 2.0, 3.0], "pred": [1.0, 2.0, 4.0]}
    loaded = load(table)
    assert loaded.evalsets[0].n == 3
    use = {use.column: use for use in loaded.explanation}["sample_id"]
    assert (use.role, use.note) == ("ignored", "its cells are not levels or draws of a long table")


@pytest.mark.parametrize("level", [["high", "low"] * 3, [1, 2, 3, 1, 2, 3], [5, 50, 95] * 2])
def test_levels_of_something_else_are_ignored_as_before(level: Any) -> None:
    y = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
    (made,) = load({"y": y, "pred": y, "level": level}).evalsets
    assert made.point is not None
    assert made.n == 6


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (0.0, "must have all 4 levels, .*first: level 0 of day"),
        (1.0, "must have all 4 levels, .*first: level 1 of day"),
        (50.0, "levels between 0 and 1.* got '50' .* at row 7"),
    ],
)
def test_one_wrong_level_does_not_turn_levels_into_rows(wrong: float, said: str) -> None:
    levels = np.tile([0.1, 0.5, 0.9], 20)
    y = np.repeat(np.arange(20.0), 3)
    table = {"y": y, "predicted": y + levels, "level": levels, "day": y}
    assert load(table).evalsets[0].n == 20
    levels[7] = wrong
    with pytest.raises(InputError, match=said):
        load(table)


def test_a_prediction_in_columns_goes_before_a_level() -> None:
    y = [1.0, 2.0, 3.0, 4.0]
    table = {"y": y, "pred": y, "level": [0.9, 0.9, 0.8, 0.8], "lower_90": y, "upper_90": y}
    assert load(table).evalsets[0].n == 4


def test_models_of_a_long_table_may_have_levels_of_their_own() -> None:
    one = melted(WIDE, forecasts(), LEVELS, model="a")
    two = melted(WIDE, forecasts(1.0)[:, [0, 2]], (0.05, 0.95), model="b")
    first, second = load(shuffled(stacked(one, two), 3)).evalsets
    assert (first.model, second.model) in (("a", "b"), ("b", "a"))
    np.testing.assert_array_equal(first.y, second.y)
    by_name = {made.model: quantiles(made) for made in (first, second)}
    np.testing.assert_array_equal(by_name["b"].values, by_name["a"].values[:, [0, 2]] + 1.0)


def test_files_of_long_tables_are_models(tmp_path: Path) -> None:
    write_table(shuffled(LONG, 1), tmp_path / "a.csv")
    write_table(shuffled(melted(WIDE, forecasts(1.0), LEVELS), 2), tmp_path / "b.csv")
    first, second = load([tmp_path / "a.csv", tmp_path / "b.csv"]).evalsets
    assert (first.model, second.model) == ("a", "b")
    np.testing.assert_allclose(quantiles(second).values, quantiles(first).values + 1.0)


def test_cases_that_a_model_lacks_are_told_or_left_out() -> None:
    one = melted(WIDE, forecasts(), LEVELS, model="a")
    two = melted({k: v[:3] for k, v in WIDE.items()}, forecasts()[:3], LEVELS, model="b")
    table = stacked(one, two)
    with pytest.raises(InputError, match=r"1 rows of 'a' that 'b' lacks \('FR, 2'\)"):
        load(table)
    assert [made.n for made in load(table, common_rows=True).evalsets] == [3, 3]


def hub(types: Any) -> Table:
    """A hub's table: quantiles, draws, or a middle, by (type, id, values)."""
    parts = []
    for kind, name, values in types:
        own = {k: v for k, v in WIDE.items() if k != "observed"} | {"observation": WIDE["observed"]}
        own |= {"output_type": [kind] * 4, "output_type_id": [name] * 4, "value": list(values)}
        parts.append(own | {"target": ["wk inc flu"] * 4, "model_id": ["m"] * 4})
    return stacked(*parts)


@pytest.mark.parametrize("ending", [".csv", "mapping"])
def test_a_hubs_table(tmp_path: Path, ending: str) -> None:
    values = forecasts()
    rows = [("quantile", str(level), values[:, k]) for k, level in enumerate(LEVELS)]
    table = hub([*rows, ("median", "NA", values[:, 1]), ("cdf", "10", [0.1] * 4)])
    loaded = load(written(shuffled(table, 5), tmp_path, ending))
    (made,) = loaded.evalsets
    assert made.model == "m"
    order = np.argsort(made.row_names())
    np.testing.assert_array_equal(quantiles(made).values[order], values)
    assert made.point is not None
    np.testing.assert_array_equal(made.point[order], values[:, 1])
    assert any("4 rows of 'cdf', 'pmf' are not read" in note for note in loaded.notes)


def of_locations(**changed: Any) -> Table:
    """Weekly forecasts of two locations, made on two dates for up to three weeks ahead."""
    rows = [
        (place, made, ahead, level)
        for place in ("US", "01")
        for made in (6, 13)
        for ahead in (0, 1, 2)
        for level in (0.1, 0.5, 0.9)
    ]
    days = [np.datetime64("2024-01-01") + made + 7 * ahead for _, made, ahead, _ in rows]
    made: Table = {
        "model_id": ["ridge"] * len(rows),
        "location": [row[0] for row in rows],
        "reference_date": [str(np.datetime64("2024-01-01") + row[1]) for row in rows],
        "horizon": [row[2] for row in rows],
        "target_end_date": [str(day) for day in days],
        "target": ["wk inc flu hosp"] * len(rows),
        "output_type": ["quantile"] * len(rows),
        "output_type_id": [row[3] for row in rows],
        "value": [10.0 * row[3] for row in rows],
        "oracle_value": [
            float(int(str(day)[8:]) + (row[0] == "US")) for row, day in zip(rows, days, strict=True)
        ],
    }
    return {name: column for name, column in (made | changed).items() if column is not None}


def test_a_hubs_location_is_a_series() -> None:
    (made,) = load(of_locations()).evalsets
    assert made.n == 12
    assert made.series is not None
    assert made.series.labels.tolist() == ["01", "US"]
    assert made.horizon is not None
    assert sorted(made.horizon.tolist()) == [0.0] * 4 + [1.0] * 4 + [2.0] * 4
    assert made.time is not None
    assert str(made.time.max())[:10] == "2024-01-28"
    assert made.model == "ridge"
    uses = {use.column: use.role for use in load(of_locations()).explanation}
    assert (uses["location"], uses["horizon"]) == ("series", "steps ahead")
    assert (uses["target_end_date"], uses["oracle_value"]) == ("time", "y")


@pytest.mark.parametrize(
    ("table", "said", "held"),
    [
        (of_locations(horizon=None), {}, False),
        (of_locations(target_end_date=None), {}, False),
        (of_locations(), {"series": ""}, False),
        (of_locations(), {"groups": ["location"]}, True),
    ],
)
def test_a_location_is_a_series_only_of_a_hub(table: Table, said: Any, held: bool) -> None:
    (made,) = load(table, **said).evalsets
    assert (made.series is not None) == held
    assert ("location" in made.groups) == ("groups" in said)


def test_a_hubs_older_table() -> None:
    """Rows of points have no level; its target is what is forecast, not y."""
    rows = [("quantile", level, forecasts()[:, k]) for k, level in enumerate(LEVELS)]
    table = hub([*rows, ("point", None, forecasts()[:, 1])])
    table["type"], table["quantile"] = table.pop("output_type"), table.pop("output_type_id")
    with pytest.raises(InputError, match=r"got '' in column 'quantile' .*output_type=COLUMN"):
        load(table)
    (made,) = load(table, output_type="type").evalsets
    np.testing.assert_array_equal(quantiles(made).values, forecasts())
    np.testing.assert_array_equal(made.point, forecasts()[:, 1])


def test_a_hubs_draws() -> None:
    values = forecasts()
    table = hub([("sample", f"s{k}", values[:, k]) for k in range(3)])
    (found,) = load(table).evalsets[0].predictions
    assert isinstance(found, Samples)
    np.testing.assert_array_equal(found.sorted_samples, values)


@pytest.mark.parametrize("name", ["range", "interval_range"])
@pytest.mark.parametrize("percent", [True, False])
def test_intervals_in_rows(name: str, percent: bool) -> None:
    """Old tables of scoringutils: both ends of the range 0 are the median."""
    ends = forecasts()[:, [0, 2, 1, 1]]
    table = melted(WIDE, ends, range(4), part="part")
    del table["part"]
    table |= {"boundary": [side for side in ("lower", "upper") * 2 for _ in range(4)]}
    table |= {name: [90 if percent else 0.9] * 8 + [0] * 8}
    (made,) = load(shuffled(table, 1)).evalsets
    order = np.argsort(made.row_names())
    np.testing.assert_allclose(quantiles(made).levels, LEVELS)
    np.testing.assert_array_equal(quantiles(made).values[order], forecasts())
    with pytest.raises(InputError, match=r"or coverages with a boundary .* got '(90|0\.9)"):
        load(
            {**table, "boundary": ["low"] * 8 + ["up"] * 8},
            boundary="boundary",
            quantile_level=name,
        )


def test_columns_that_number_rows_or_follow_the_level_tell_no_cases_apart() -> None:
    table = {**LONG, "": range(12), "Unnamed: 0": range(12), "index": range(12)}
    table |= {
        "run_no": range(12),
        "interval_range": [90 if q != 0.5 else 0 for q in LONG["quantile_level"]],
    }
    (made,) = load(shuffled(table, 2)).evalsets
    assert made.n == 4


def test_without_other_columns_order_tells_cases_if_y_agrees() -> None:
    rng = np.random.default_rng(0)
    y = rng.normal(size=20)
    values = y[:, None] + np.array([-1.0, 0.0, 1.0])
    blocks = melted({"y": y}, values, LEVELS)
    order = np.arange(60).reshape(3, 20).T.ravel()
    inward = {name: [column[row] for row in order] for name, column in blocks.items()}
    for table in (blocks, inward):
        (made,) = load(table).evalsets
        np.testing.assert_array_equal(quantiles(made).values, values)
        np.testing.assert_array_equal(made.y, y)
    with pytest.raises(InputError, match="y must be one number for each case of a long table"):
        load(shuffled(blocks, 1))


def test_columns_that_are_constant_within_cases_serve() -> None:
    table = {**LONG, "date": [f"2021-01-0{1 + row % 4}" for row in range(12)]}
    table |= {"weight": [1.0, 2.0, 3.0, 4.0] * 3, "x_a": [5.0, 6.0, 7.0, 8.0] * 3}
    (made,) = load(shuffled(table, 4), groups="place").evalsets
    order = np.argsort(made.row_names())
    assert made.groups["place"].values()[order].tolist() == WIDE["place"]
    assert made.features["x_a"][order].tolist() == [5, 6, 7, 8]
    assert made.weights is not None
    assert made.weights.values[order].tolist() == [1, 2, 3, 4]
    assert made.time is not None
    assert made.time[order].astype(str).tolist()[0].startswith("2021-01-01")


def changed(name: str, row: int, value: Any) -> Table:
    column = list(LONG[name])
    column[row] = value
    return {**LONG, name: column}


@pytest.mark.parametrize(
    ("table", "options", "said"),
    [
        (
            changed("observed", 5, 99.0),
            {},
            r"y must be one number for each case .* several in 1 of 4 cases distinguished by "
            r"'place', 'horizon' \(first: 12\.5 and 99\); perhaps a column",
        ),
        (
            stacked(LONG, {name: column[:1] for name, column in LONG.items()}),
            {},
            r"must have each level once, got level 0\.05 twice for place 'DE', horizon '1'; cases "
            r"are distinguished by 'place', 'horizon': perhaps a column .*rows=COLUMN",
        ),
        (
            without(LONG, 1, 6),
            {},
            r"every case must have all 3 levels, but 2 of 4 cases are incomplete \(first: level "
            r"0\.5 of place 'FR', horizon '1'\).*missing='drop'",
        ),
        (
            without(melted(WIDE, forecasts(), [1, 2, 3], part="sample_id"), 11),
            {},
            r"all 3 draws, but 1 of 4 cases are incomplete \(first: draw 3 of place 'FR', hor",
        ),
        (
            changed("quantile_level", 5, 50),
            {},
            r"levels between 0 and 1, got '50' in column 'quantile_level' at row 5, ",
        ),
        (
            {**LONG, "group_z": [*"abcdefgh", *"abcd"]},
            {"rows": "horizon"},
            "y must be one number",
        ),
        (
            {**LONG, "id": [1, 2, 3, 4] * 3, "group_z": [*"abcd", *"abcd", *"abce"]},
            {},
            r"groups must be the same in all rows of a case, but 'group_z' differs.*groups=''",
        ),
        (
            {**LONG, "sample_id": [1] * 12},
            {"sample_id": "sample_id"},
            r"quantile_level \('quantile_level'\) and sample_id \('sample_id'\) both",
        ),
        (LONG, {"sd": "horizon", "quantile_level": "quantile_level"}, "omit sd"),
        (
            {name: column for name, column in LONG.items() if name != "predicted"},
            {"quantile_level": "quantile_level"},
            r"No prediction column found in the long table; name it with .*point=COLUMN",
        ),
        (LONG, {"quantile_level": "quantil_level"}, "perhaps 'quantile_level'"),
        (
            hub([("quantile", "x", [1.0] * 4)]),
            {},
            "levels between 0 and 1, got 'x'",
        ),
        (
            hub([("quantiles", "0.5", [1.0] * 4)]),
            {"output_type": "output_type"},
            "output_type must contain 'quantile', 'sample', .* got 'quantiles'",
        ),
    ],
)  # fmt: skip
def test_what_is_no_sound_long_table_is_told(table: Table, options: Any, said: str) -> None:
    with pytest.raises(InputError, match=said):
        load(table, **options)


def test_incomplete_cases_go_when_asked() -> None:
    loaded = load(without(LONG, 1, 6), missing="drop")
    (made,) = loaded.evalsets
    assert made.row_names().tolist() == ["DE, 1", "FR, 2"]
    np.testing.assert_array_equal(quantiles(made).values, forecasts()[[0, 3]])
    assert loaded.dropped == 2
    loaded = load(changed("predicted", 5, None), missing="drop")
    assert loaded.evalsets[0].row_names().tolist() == ["DE, 1", "FR, 1", "FR, 2"]
    with pytest.raises(InputError, match=r"cells are missing: 1 in 'predicted at 0\.5'"):
        load(changed("predicted", 5, None))


def test_names_of_other_kinds_are_said() -> None:
    table = {("probs" if k == "quantile_level" else k): v for k, v in LONG.items()}
    (made,) = load(table, quantile_level="probs", point="predicted").evalsets
    np.testing.assert_array_equal(quantiles(made).values, forecasts())


def test_levels_in_32_bits_and_with_a_decimal_comma(tmp_path: Path) -> None:
    levels = np.asarray(LONG["quantile_level"], dtype=np.float32)
    assert quantiles(load({**LONG, "quantile_level": levels}).evalsets[0]).levels.tolist() == list(
        LEVELS
    )
    lines = [[*LONG], *zip(*LONG.values(), strict=True)]
    rows = [";".join(str(cell).replace(".", ",") for cell in cells) for cells in lines]
    (tmp_path / "t.csv").write_text("\n".join(rows))
    (made,) = load(tmp_path / "t.csv", decimal=",").evalsets
    assert quantiles(made).levels.tolist() == list(LEVELS)


def test_commands_that_need_a_row_for_each_case_refuse_it() -> None:
    said = "each row must be a case, but 'quantile_level' makes this a long table"
    with pytest.raises(InputError, match=said):
        load_new(LONG)
    with pytest.raises(InputError, match=said):
        load_new({name: column for name, column in LONG.items() if name != "observed"})
    wide = {"y": [1.0, 2.0], "mean": [1.0, 2.0], "sd": [1.0, 1.0], "x_a": [1.0, 2.0]}
    with pytest.raises(InputError, match=said):
        load_unlabelled({**LONG, "x_a": range(12)}, load(wide))


def test_new_rows_with_a_level_that_is_none_are_read() -> None:
    assert load_new({"mean": [1.0, 2.0], "sd": [1.0, 1.0], "level": [0.5, 0.5]}).n == 2
    assert load_new({"pred": [1.0, 2.0], "sample": ["a", "b"]}).n == 2


def test_a_long_table_is_explained() -> None:
    uses = {use.column: (use.role, use.note) for use in explain(LONG)}
    assert uses["quantile_level"] == (
        "level of the quantile in this row",
        "if its cells are levels or draws of a long table",
    )
    assert uses["predicted"][0] == "prediction, one part per row"
    assert uses["horizon"][0] == "steps ahead"


def test_order_of_rows_decides_nothing() -> None:
    found = [sets_by_y(load(shuffled(LONG, seed)).evalsets[0]) for seed in range(5)]
    assert all(one == other for one, other in itertools.pairwise(found))


def test_levels_that_a_sum_made_are_one_level() -> None:
    third = [0.1 + 0.2 if row % 2 else 0.3 for row in range(4)]
    table = {**melted(WIDE, forecasts()[:, :2], (0.1, 0.3)), "quantile_level": [0.1] * 4 + third}
    assert quantiles(load(table).evalsets[0]).levels.tolist() == [0.1, 0.3]
