"""An evaluation set written as columns and read back by their names."""

from __future__ import annotations

import re

import numpy as np
import pytest

from howsure.core.errors import InputError, UnanswerableError
from howsure.predictions import (
    Distribution,
    EvalSet,
    Intervals,
    LabelSets,
    Prediction,
    Quantiles,
    Samples,
)
from howsure.predictions.columns import to_columns


def read_back(columns: dict[str, np.ndarray]) -> EvalSet:
    """Rebuild the evaluation set from the agreed names alone."""

    def matched(pattern: str) -> dict[str, np.ndarray]:
        found = {re.fullmatch(pattern, name): values for name, values in columns.items()}
        return {match[1]: values for match, values in found.items() if match}

    beliefs: list[Prediction] = []
    lower, upper = matched(r"lower_([\d.]+)"), matched(r"upper_([\d.]+)")
    if lower:
        assert list(lower) == list(upper)
        coverage = [float(name) / 100 for name in lower]
        ends = (np.stack(list(side.values()), axis=1) for side in (lower, upper))
        beliefs.append(Intervals(*ends, coverage))
    elif "lower" in columns:
        beliefs.append(Intervals(columns["lower"], columns["upper"]))
    if "mean" in columns:
        beliefs.append(Distribution.normal(columns["mean"], columns["sd"]))
    if gamma := matched(r"gamma_(\w+)"):
        beliefs.append(Distribution("gamma", gamma))
    if quantiles := matched(r"q([\d.]+)"):
        levels = [float(name) for name in quantiles]
        beliefs.append(Quantiles(levels, np.stack(list(quantiles.values()), axis=1)))
    if samples := matched(r"s_(\d+)"):
        beliefs.append(Samples(np.stack(list(samples.values()), axis=1)))
    return EvalSet.checked(
        columns["y"],
        tuple(beliefs),
        point=columns.get("point"),
        weights=columns.get("weight"),
        groups={name: columns[name] for name in ("site", "<b>odd name</b>") if name in columns},
        cluster=columns.get("cluster"),
        time=columns.get("time"),
        rows=columns.get("row"),
    )


def test_everything_comes_back_by_its_name() -> None:
    rng = np.random.default_rng(0)
    n = 30
    center = rng.normal(size=n)
    wide = np.array([0.5, 1.0, 2.0, 3.0])
    beliefs = (
        Intervals(
            center[:, None] - wide, center[:, None] + wide, [0.5, 0.8, 0.975, 1 - 0.07 - 0.9 + 0.9]
        ),
        Distribution.normal(center, 1.0 + center**2),
        Quantiles([0.005, 0.05, 0.1 + 0.2, 0.5, 0.95], np.sort(rng.normal(size=(n, 5)), axis=1)),
        Samples(rng.normal(size=(n, 12))),
    )
    made = EvalSet.checked(
        rng.normal(size=n),
        beliefs,
        point=center,
        weights=rng.integers(1, 4, n),
        groups={"site": rng.choice(["north", "south"], n), "<b>odd name</b>": np.arange(n) % 3},
        cluster=np.arange(n) // 2,
        time=np.datetime64("2026-01-01") + np.arange(n),
        rows=[f"row {i}" for i in range(n)],
    )
    columns = to_columns(made)
    again = read_back(columns)
    again_columns = to_columns(again)
    assert list(again_columns) == list(columns)
    for name, values in columns.items():
        np.testing.assert_array_equal(again_columns[name], values, err_msg=name)
    for coverage in beliefs[0].coverages:
        np.testing.assert_array_equal(
            again.beliefs[0].interval(coverage), beliefs[0].interval(coverage)
        )
    np.testing.assert_allclose(again.beliefs[2].levels, beliefs[2].levels, rtol=1e-9)


def test_names_are_plain_decimals() -> None:
    ends = np.zeros((1, 3))
    belief = Intervals(ends, ends, [0.9, 0.29, 0.9999])
    table = Quantiles([1e-5, 0.07, 0.3], ends)
    names = list(to_columns(EvalSet.checked([0.0], (belief, table))))
    assert [name for name in names if name.startswith("lower")] == [
        "lower_29", "lower_90", "lower_99.99",
    ]  # fmt: skip
    assert names[-3:] == ["q0.00001", "q0.07", "q0.3"]


def test_laws_name_their_family() -> None:
    belief = Distribution("gamma", {"a": [2.0, 3.0], "scale": 0.5})
    columns = to_columns(EvalSet.checked([1.0, 2.0], belief))
    assert list(columns) == ["y", "gamma_a", "gamma_loc", "gamma_scale"]
    again = read_back(columns).beliefs[0]
    np.testing.assert_array_equal(again.quantile([0.3]), belief.quantile([0.3]))


def test_unknown_coverage_has_bare_names() -> None:
    columns = to_columns(EvalSet.checked([1.0], Intervals([0.0], [2.0])))
    assert list(columns) == ["y", "lower", "upper"]
    assert read_back(columns).beliefs[0].coverages == ()


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
    with pytest.raises(InputError, match="two that would be called 'y'"):
        to_columns(clash)


def test_label_sets_have_no_columns() -> None:
    with pytest.raises(UnanswerableError, match="label sets"):
        to_columns(EvalSet.checked([0.0], LabelSets([[True, False]], 0.9)))
