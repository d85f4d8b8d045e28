"""Roles: flags decide, names decide where flags are silent, and two readings are an error."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import howsure
from generated import examples
from howsure.core.errors import InputError
from howsure.inputs import ColumnUse, load
from howsure.inputs.columns import assign_roles
from howsure.inputs.names import explain_models, parse_law
from howsure.inputs.roles import BY_NAME

SETTINGS = examples(150)


def roles_of(names: str, **said: Any) -> dict[str, Any]:
    """Roles of columns named in one text, with coverages and levels where they have some."""
    made = assign_roles(names.split(), said)  # type: ignore[arg-type]
    found: dict[str, Any] = {
        role: held if BY_NAME[role].many else held[0] for role, held in made.columns.items()
    }
    if "lower" in found:
        pairs = zip(found.pop("lower"), found.pop("upper"), made.coverages, strict=True)
        found["intervals"] = tuple(pairs)
    if "quantiles" in found:
        found["quantiles"] = tuple(zip(made.levels, found["quantiles"], strict=True))
    return found


@pytest.mark.parametrize(
    ("names", "roles"),
    [
        ("y pred", {"y": "y", "point": "pred"}),
        ("Actual Y-Hat", {"y": "Actual", "point": "Y-Hat"}),
        ("y mean sd", {"y": "y", "mean": "mean", "sd": "sd"}),
        ("y pred std", {"y": "y", "point": "pred", "mean": "pred", "sd": "std"}),
        ("y pred mu sigma", {"y": "y", "point": "pred", "mean": "mu", "sd": "sigma"}),
        ("y mean", {"y": "y", "point": "mean"}),
        ("y mean pred", {"y": "y", "point": "pred"}),
        ("y pred variance", {"y": "y", "point": "pred"}),
        (
            "y lower_90 upper_90 lower_50 upper_50",
            {
                "y": "y",
                "intervals": (
                    ("lower_90", "upper_90", 0.9),
                    ("lower_50", "upper_50", 0.5),
                ),
            },
        ),
        ("y lo hi", {"y": "y", "intervals": (("lo", "hi", None),)}),
        (
            "ds y yhat yhat_lower yhat_upper",
            {
                "y": "y",
                "point": "yhat",
                "intervals": (("yhat_lower", "yhat_upper", None),),
                "time": "ds",
            },
        ),
        (
            "y mean mean_se mean_ci_lower mean_ci_upper obs_ci_lower obs_ci_upper",
            {
                "y": "y",
                "point": "mean",
                "intervals": (("obs_ci_lower", "obs_ci_upper", None),),
            },
        ),
        (
            "y q95 q05 median",
            {"y": "y", "quantiles": ((0.05, "q05"), (0.5, "median"), (0.95, "q95"))},
        ),
        ("y s_1 s_2 s_10 s_north", {"y": "y", "samples": ("s_1", "s_2", "s_10")}),
        (
            "y pred group_a Group x1 x_b feature_c emb_0 emb_1 weight cluster time id model",
            {
                "y": "y",
                "point": "pred",
                "groups": ("group_a", "Group"),
                "features": ("x1", "x_b", "feature_c"),
                "embedding": ("emb_0", "emb_1"),
                "weights": "weight",
                "cluster": "cluster",
                "time": "time",
                "rows": "id",
                "model": "model",
            },
        ),
        ("y pred q10", {"y": "y", "point": "pred"}),
        ("y pred p1", {"y": "y", "point": "pred"}),
        ("y pred sd_of_x region month", {"y": "y", "point": "pred"}),
    ],
)
def test_names_decide(names: str, roles: dict[str, Any]) -> None:
    assert roles_of(names) == roles


@pytest.mark.parametrize(
    ("names", "flags", "roles"),
    [
        ("a b", {"y": "a", "point": "b"}, {"y": "a", "point": "b"}),
        ("y target pred", {"y": "y"}, {"y": "y", "point": "pred"}),
        (
            "y l u",
            {"lower": "l", "upper": "u", "coverage": 0.9},
            {"y": "y", "intervals": (("l", "u", 0.9),)},
        ),
        (
            "y lower upper",
            {"coverage": [0.9]},
            {"y": "y", "intervals": (("lower", "upper", 0.9),)},
        ),
        (
            "y lower_90 upper_90",
            {"lower": "lower_90", "upper": "upper_90"},
            {"y": "y", "intervals": (("lower_90", "upper_90", 0.9),)},
        ),
        (
            "y lower_90 upper_90",
            {"lower": "lower_90", "upper": "upper_90", "coverage": 0.8},
            {"y": "y", "intervals": (("lower_90", "upper_90", 0.8),)},
        ),
        (
            "y a b c d",
            {"lower": ["a", "c"], "upper": ["b", "d"], "coverage": [0.5, 0.9]},
            {
                "y": "y",
                "intervals": (("a", "b", 0.5), ("c", "d", 0.9)),
            },
        ),
        ("y pred lower", {"lower": ""}, {"y": "y", "point": "pred"}),
        ("y pred point", {"point": "pred"}, {"y": "y", "point": "pred"}),
        ("y q1 q2 pred", {"quantiles": ""}, {"y": "y", "point": "pred"}),
        (
            "y a b",
            {"quantiles": ["0.1=a", "0.9=b"]},
            {"y": "y", "quantiles": ((0.1, "a"), (0.9, "b"))},
        ),
        ("y a b", {"quantiles": {0.9: "b"}}, {"y": "y", "quantiles": ((0.9, "b"),)}),
        ("y m1 m2 k", {"samples": "m*"}, {"y": "y", "samples": ("m1", "m2")}),
        ("y pred time", {"time": ""}, {"y": "y", "point": "pred"}),
        (
            "y pred a b sd",
            {"features": "*"},
            {"y": "y", "point": "pred", "mean": "pred", "sd": "sd", "features": ("a", "b")},
        ),
        (
            "y pred a b",
            {"features": "a,b", "groups": ["b"]},
            {"y": "y", "point": "pred", "features": ("a", "b"), "groups": ("b",)},
        ),
        (
            "y pred x_1",
            {"groups": "x_1"},
            {"y": "y", "point": "pred", "groups": ("x_1",)},
        ),
    ],
)
def test_flags_decide_before_names(names: str, flags: Any, roles: dict[str, Any]) -> None:
    assert roles_of(names, **flags) == roles


def test_a_law_by_name() -> None:
    made = assign_roles(["y", "mu", "s", "sd"], {"law": "t:df=4,loc=mu,scale=s"})
    assert made.law is not None
    assert made.law.name == "t"
    assert dict(made.law.parameters) == {"df": 4.0, "loc": "mu", "scale": "s"}
    assert not made["sd"]
    assert made.notes["sd"] == "not used: the distribution is given by name"
    numbered = assign_roles(["y", "4"], {"law": "t:df=4"})
    assert numbered.law is not None
    assert dict(numbered.law.parameters) == {"df": "4"}


@pytest.mark.parametrize("law", ["t", "t:", ":df=4", "t:df", "t:df=", "t:=4", "t:df=4,df=5"])
def test_a_law_that_is_none_is_named(law: str) -> None:
    with pytest.raises(InputError, match="law must be NAME:PARAMETER=COLUMN"):
        parse_law(law)


@pytest.mark.parametrize(
    ("names", "flags", "said"),
    [
        (
            "a pred",
            {},
            r"No outcome column found; name it with .*y='a'\)\. Columns: 'a'",
        ),
        (
            "y a",
            {},
            r"No prediction column found; name it with .*point=COLUMN.* Columns: 'y', 'a'",
        ),
        ("y target pred", {}, "pass .*y='y'.* or .*y='target'"),
        ("Y y pred", {}, "'Y', 'y'; pass .*y='Y'.* or .*y='y'"),
        (
            "y pred forecast",
            {},
            "pass .*point='pred'.* or .*point='forecast'",
        ),
        ("y std sigma mean", {}, "sd must be one column"),
        ("y pred date time timestamp", {}, "time must be one column"),
        (
            "y lower",
            {},
            "'lower' looks like the lower end .* but the other end is missing: pass .*lower=COLUMN",
        ),
        ("y lower_90 upper_80", {}, "'lower_90' looks like the lower end"),
        ("y lower_05 upper_95", {}, "coverage in the name 'lower_05' is ambiguous"),
        ("y lower lb upper", {}, "lower must be one column"),
        ("y lower upper pi_lower pi_upper", {}, "several intervals must have different known"),
        ("y lower_90 upper_90 ci_lower_90 ci_upper_90", {}, "different known coverages"),
        ("y lower_90 upper_90", {"coverage": 0.8}, "imply a coverage of 0.9, but coverage is 0.8"),
        ("y lower upper", {"coverage": [0.8, 0.9]}, "coverage must be one number for the one pair"),
        (
            "y l u",
            {"lower": "l"},
            "lower and upper must have the same number of columns, got 1 and 0",
        ),
        ("y l u", {"lower": "l", "upper": "u", "coverage": 90}, "coverage must be strictly"),
        ("y l u", {"lower": "l", "upper": "u", "coverage": [0.8, 0.9]}, "one number for each of 1"),
        ("y l", {"lower": "l", "upper": "l"}, "lower and upper must be different columns"),
        ("y q5 q05 q95", {}, r"quantile 0\.05 must be one column, .*'q5', 'q05'"),
        ("y q0.05 p05", {}, r"quantile 0\.05 must be one column, .*'q0.05', 'p05'"),
        ("y median q50 q10", {}, r"quantile 0\.5 must be one column"),
        ("y q1 q2 q3", {}, "levels in the names 'q1', 'q2', 'q3' are ambiguous"),
        ("y q10", {}, "'q10': only one quantile; use it with .*quantiles={0.1: 'q10'}"),
        ("y a", {"quantiles": ["0.05"]}, "a quantile must be LEVEL=COLUMN"),
        ("y a", {"quantiles": ["x=a"]}, "a quantile must be LEVEL=COLUMN"),
        ("y a", {"quantiles": ["5=a"]}, "level of a quantile must be strictly between 0 and 1"),
        ("y a b", {"quantiles": ["0.5=a", "0.5=b"]}, r"quantile 0\.5 must be one column"),
        ("y a", {"quantiles": {0.5: "c"}}, "quantiles: no column of the table is called 'c'"),
        ("y pred", {"y": "target"}, "y: no column of the table is called 'target'"),
        ("y predicted_mean", {"point": "predicted_men"}, "perhaps 'predicted_mean'"),
        ("CRIM MEDV pred", {"y": "medv"}, "is called 'medv'; perhaps 'MEDV'; the columns are"),
        ("y y_pred", {"point": "Y Pred"}, "perhaps 'y_pred'"),
        ("y pred", {"samples": "s_*"}, r"no column matches the pattern 's_\*' of samples"),
        ("y pred", {"groups": [1]}, "groups must be a list of column names"),
        ("y pred", {"y": 3}, "y must be the name of a column, got 3"),
        ("y sd", {"sd": "sd"}, "sd needs a mean or a point forecast"),
        (
            "y mu sd",
            {"law": "norm:loc=mu", "sd": "sd"},
            "law= and sd= both define a distribution",
        ),
        ("y mu", {"law": "norm:loc=nu"}, "distribution parameter loc: no column of"),
        ("y sd", {"mean": "sd", "sd": "sd"}, "mean and sd must be different columns"),
        ("y sd", {"y": "y", "point": "y"}, "y cannot also be part of a prediction"),
        ("y", {"y": "y", "samples": "y"}, "y cannot also be part of a prediction"),
    ],
)
def test_what_cannot_be_decided_is_an_error(names: str, flags: Any, said: str) -> None:
    with pytest.raises(InputError, match=said):
        roles_of(names, **flags)


def test_spaces_at_the_ends_of_a_name_do_not_matter() -> None:
    made = assign_roles(["y", " my pred", "a,b"], {"point": "my pred", "groups": "a,b"})
    assert (made["point"], made["groups"]) == ((" my pred",), ("a,b",))


def test_a_missing_column_is_told_among_few() -> None:
    with pytest.raises(InputError) as caught:
        assign_roles([f"column {'x' * 200} {i}" for i in range(5000)])
    assert "and 4980 more" in str(caught.value)
    assert len(str(caught.value)) < 2000


def test_every_column_is_explained() -> None:
    names = ["y", "pred", "std", "lower_90", "upper_90", "q0.5", "note", "variance"]
    told = explain_models(names, [assign_roles(names)], "t.csv")
    assert told == (
        ColumnUse("y", "y", "", "t.csv"),
        ColumnUse("pred", "point forecast, mean of a normal distribution", "", "t.csv"),
        ColumnUse("std", "sd of a normal distribution", "", "t.csv"),
        ColumnUse("lower_90", "lower end at 90 %", "", "t.csv"),
        ColumnUse("upper_90", "upper end at 90 %", "", "t.csv"),
        ColumnUse("q0.5", "quantile 0.5", "", "t.csv"),
        ColumnUse(
            "note",
            "ignored",
            "name not recognised; use it with howsure.Table(…, groups='note') or "
            "howsure.Table(…, features='note')",
            "t.csv",
        ),
        ColumnUse(
            "variance",
            "ignored",
            "may be an uncertainty; use it with howsure.Table(…, sd='variance') or "
            "howsure.Table(…, variance='variance')",
            "t.csv",
        ),
    )


names = st.one_of(
    st.text(max_size=8),
    st.sampled_from(
        [
            *("y", "pred", "mean", "sd", "lower", "upper", "lower_90", "upper_90", "lo", "hi"),
            *("q05", "q5", "q95", "q1", "p50", "0.05", "median", "s_1", "s_2", "emb_1", "x_1"),
            *("group", "weight", "time", "date", "id", "model", "cluster"),
        ]
    ),
)
flag = st.one_of(st.none(), st.just(""), names)


@SETTINGS
@given(
    st.lists(names, unique=True, max_size=10),
    st.fixed_dictionaries(
        {},
        optional={
            "y": flag, "point": flag, "lower": flag, "upper": flag, "mean": flag, "sd": flag,
            "law": st.one_of(flag, st.text()), "groups": flag, "features": flag, "samples": flag,
            "quantiles": st.one_of(flag, st.lists(st.text(max_size=5), max_size=2)),
            "coverage": st.one_of(st.none(), st.floats(), st.lists(st.floats(), max_size=2)),
        },
    ),
)  # fmt: skip
def test_every_reading_is_sound_or_an_error(columns: list[str], flags: Any) -> None:
    try:
        made = assign_roles(columns, flags)
    except InputError:
        return
    used = made.by_column()
    assert set(used) <= set(columns)
    assert used[made["y"][0]][0] == "y"
    assert len(explain_models(columns, [made], "t.csv")) == len(columns)
    for lower, upper, share in zip(made["lower"], made["upper"], made.coverages, strict=True):
        assert lower != upper
        assert share is None or 0 < share < 1
    assert list(made.levels) == sorted(set(made.levels))
    assert len(made.levels) == len(made["quantiles"])


def test_a_melted_table_is_told_its_spellings() -> None:
    with pytest.raises(InputError, match=r"model='variable', point='value'.*quantile_level='vari"):
        assign_roles(["id", "y", "variable", "value"])
    assert assign_roles(["y", "variable", "value"], {"quantile_level": "variable"}).long
    assert assign_roles(["y", "variable", "value"], {"model": "variable", "point": "value"})


def test_variances_are_read_where_a_flag_names_them() -> None:
    table = {"y": [1.0, 2.0], "pred": [1.5, 1.0], "predict_var": [4.0, 0.25]}
    loaded = load(table, variance="predict_var")
    (made,) = loaded.evalsets[0].predictions
    np.testing.assert_array_equal(made.sd(), [2.0, 0.5])
    assert loaded.unread == ()
    assert load(table).unread == ("predict_var",)
    with pytest.raises(InputError, match="sd= and variance= both define a spread"):
        load({**table, "s": [1.0, 1.0]}, variance="predict_var", sd="s")
    with pytest.raises(InputError, match="must contain variances of at least 0, got -1"):
        load({**table, "v": [1.0, -1.0]}, variance="v")
    with pytest.raises(InputError, match="variance needs a mean"):
        load({"y": [1.0], "v": [1.0]}, variance="v")


@pytest.mark.parametrize(
    ("columns", "sentence"),
    [
        (
            ("uncertainty_total",),
            "Column 'uncertainty_total' may contain an uncertainty, but is",
        ),
        (("yhat_std", "variance"), "Columns 'yhat_std' and 'variance' may contain uncertainties"),
        (
            ("epistemicStd", "sigma2", "std(y)", "total uncertainty"),
            "Columns 'epistemicStd', 'sigma2', 'std(y)' and 1 more may contain uncertainties",
        ),
        (("standing", "room"), None),
        (("var_0", "var1", "variable", "stdlib", "uncle"), None),
    ],
)
def test_columns_that_may_state_uncertainty_are_told_in_the_verdict(
    columns: tuple[str, ...], sentence: str | None
) -> None:
    y = np.arange(40.0)
    table = {"y": y, "pred": y + 1.0, **{name: np.ones(40) for name in columns}}
    said = howsure.assess(table, options=howsure.Options(trials=False)).verdict
    assert (sentence or "may state") in said or sentence is None
    assert sentence is not None or "may state" not in said


def test_an_unknown_nominal_coverage_is_told_first() -> None:
    y = np.arange(40.0)
    table = {"y": y, "yhat_lower": y - 1.0, "yhat_upper": y + 1.0}
    answer, first, *_ = howsure.assess(
        table, options=howsure.Options(trials=False)
    ).verdict.splitlines()
    assert answer == "Inconclusive: the nominal coverage of the intervals is unknown."
    assert first.startswith("The nominal coverage of the intervals is unknown")
    assert "howsure.Table(…, coverage=0.9)" in first
    known = howsure.assess(table, coverage=0.9, options=howsure.Options(trials=False)).verdict
    assert "is unknown" not in known
