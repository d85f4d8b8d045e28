"""An evaluation set written as columns and read back by their names."""

from __future__ import annotations

import numpy as np
import pytest

from howsure.core.errors import InputError
from howsure.inputs import load
from howsure.predictions import (
    Distribution,
    EvalSet,
    Intervals,
    LabelSets,
    Quantiles,
    Samples,
)
from howsure.predictions.columns import to_columns


def read_back(columns: dict[str, np.ndarray], **flags: str) -> EvalSet:
    """Read the columns by their names alone."""
    return load(columns, **flags).evalsets[0]


def test_everything_comes_back_by_its_name() -> None:
    rng = np.random.default_rng(0)
    n = 30
    center = rng.normal(size=n)
    wide = np.array([0.5, 1.0, 2.0, 3.0])
    predictions = (
        Intervals(
            center[:, None] - wide, center[:, None] + wide, [0.5, 0.8, 0.975, 1 - 0.07 - 0.9 + 0.9]
        ),
        Distribution.normal(center, 1.0 + center**2),
        Quantiles([0.005, 0.05, 0.1 + 0.2, 0.5, 0.95], np.sort(rng.normal(size=(n, 5)), axis=1)),
        Samples(rng.normal(size=(n, 12))),
    )
    made = EvalSet.checked(
        rng.normal(size=n),
        predictions,
        point=center,
        weights=rng.integers(1, 4, n),
        groups={"site": rng.choice(["north", "south"], n), "<b>odd name</b>": np.arange(n) % 3},
        cluster=np.arange(n) // 2,
        time=np.datetime64("2026-01-01") + np.arange(n),
        rows=[f"row {i}" for i in range(n)],
    )
    columns = to_columns(made)
    again = read_back(columns, groups="site,<b>odd name</b>")
    again_columns = to_columns(again)
    assert list(again_columns) == list(columns)
    for name, values in columns.items():
        np.testing.assert_array_equal(again_columns[name], values, err_msg=name)
    intervals, _, quantiles, _ = again.predictions
    for coverage in predictions[0].coverages:
        np.testing.assert_array_equal(
            intervals.interval(coverage), predictions[0].interval(coverage)
        )
    np.testing.assert_allclose(quantiles.levels, predictions[2].levels, rtol=1e-9)


def test_names_are_plain_decimals_that_readers_understand() -> None:
    coverages = [0.005, 0.05, 0.1, 0.29, 0.9, 0.9999]
    ends = np.zeros((2, 6))
    prediction = Intervals(ends, ends, coverages)
    table = Quantiles([1e-5, 0.07, 0.3], ends[:, :3])
    columns = to_columns(EvalSet.checked([0.0, 1.0], (prediction, table)))
    assert [name for name in columns if name.startswith("lower")] == [
        "lower_0.005", "lower_0.05", "lower_10", "lower_29", "lower_90", "lower_99.99",
    ]  # fmt: skip
    assert list(columns)[-3:] == ["q0.00001", "q0.07", "q0.3"]
    again = read_back(columns).predictions
    assert again[0].coverages == pytest.approx(coverages)
    assert again[1].levels == pytest.approx([1e-5, 0.07, 0.3])


@pytest.mark.parametrize("kind", ["frequency", "importance"])
def test_the_kind_of_weights_is_in_their_name(kind: str) -> None:
    made = EvalSet.checked([1.0, 2.0], point=[1.0, 2.0], weights=[1.0, 3.0], weights_kind=kind)
    again = read_back(to_columns(made)).weights
    assert again is not None
    assert again.kind == kind


def test_laws_name_their_family() -> None:
    prediction = Distribution("gamma", {"a": [2.0, 3.0], "scale": 0.5})
    columns = to_columns(EvalSet.checked([1.0, 2.0], prediction))
    assert list(columns) == ["y", "gamma_a", "gamma_loc", "gamma_scale"]
    law = "gamma:a=gamma_a,loc=gamma_loc,scale=gamma_scale"
    again = read_back(columns, law=law).predictions[0]
    np.testing.assert_array_equal(again.quantile([0.3]), prediction.quantile([0.3]))


def test_unknown_coverage_has_bare_names() -> None:
    columns = to_columns(EvalSet.checked([1.0], Intervals([0.0], [2.0])))
    assert list(columns) == ["y", "lower", "upper"]
    assert read_back(columns).predictions[0].coverages == ()


def test_a_group_that_is_a_feature_is_one_column() -> None:
    site = ["a", "b"]
    shared = EvalSet.checked(
        [1.0, 2.0], point=[1.0, 2.0], groups={"site": site}, features={"site": site, "x": [3, 4]},
        embedding=[[1.0, 2.0], [3.0, 4.0]],
    )  # fmt: skip
    columns = to_columns(shared)
    assert list(columns) == ["y", "point", "site", "x", "embedding_0", "embedding_1"]
    assert columns["embedding_1"].tolist() == [2.0, 4.0]


def test_clashing_names_are_refused() -> None:
    clash = EvalSet.checked([1.0, 2.0], point=[1.0, 2.0], groups={"y": ["a", "b"]})
    with pytest.raises(InputError, match="two columns would be called 'y'"):
        to_columns(clash)


def test_label_sets_are_written_as_text() -> None:
    members = [[True, True], [False, True], [False, False]]
    p = [[0.5, 0.5], [0.1, 0.9], [0.2, 0.8]]
    y = [0.0, 1.0, 1.0]
    plain = to_columns(EvalSet.checked(y, LabelSets(members, 0.9)))
    assert {name: list(column) for name, column in plain.items()} == {
        "y": y,
        "label_set_90": ["0|1", "1", "{}"],
    }
    named = to_columns(EvalSet.checked(y, LabelSets(members, 0.85, p, ["a|b", "c"])))
    assert list(named) == ["y", "label_set_85", "p_a|b", "p_c"]
    assert named["y"].tolist() == ["a|b", "c", "c"]
    assert named["label_set_85"].tolist() == ['["a|b", "c"]', '["c"]', "[]"]
    assert named["p_c"].tolist() == [0.5, 0.9, 0.8]
