"""Where coverage is off: bins along a column, and regions that a small tree names."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from generated import examples
from howsure.core.errors import InputError, UnanswerableError
from howsure.inputs.distributions import located
from howsure_studies.methods.interface import Fitted, Method, Predictions
from howsure_studies.methods.linear import LinearT
from howsure_studies.pointwise import PointwiseResult, pointwise
from howsure_studies.pointwise.measures import failing_regions, local_curve, principal_component
from howsure_studies.tasks.worlds import world_named


class Corner(Method, Fitted):
    """Right intervals, but half as wide where x₀ > 0.6 and x₁ ≤ 0.4; sure of a mean that is off."""

    @property
    def name(self) -> str:
        return "corner"

    def fit(self, x: Any, y: Any, rng: np.random.Generator) -> Fitted:
        self.wobble = 1 + 0.02 * rng.normal()
        return self

    def predict(self, x: Any) -> Predictions:
        truth = world_named("friedman1").truth(x)
        corner = (x[:, 0] > 0.6) & (x[:, 1] <= 0.4)
        sd = np.where(corner, 0.5, 1.0) * self.wobble
        return Predictions(
            located("norm", truth.mean, sd), located("norm", truth.mean + 9.0, np.full(len(x), 0.1))
        )


@pytest.fixture(scope="module")
def corner() -> PointwiseResult:
    return pointwise("friedman1", Corner(), coverages=(0.9,), trials=20, n_train=2, n_test=600)


NARROW = 2 * stats.norm.cdf(0.5 * stats.norm.ppf(0.95)) - 1


def test_a_tree_finds_the_corner_where_a_method_fails(corner: PointwiseResult) -> None:
    table = failing_regions(corner, "picf", 0.9, [f"c{j}" for j in range(10)])
    found = table.columns
    assert found["verdict"][0] == -1
    assert found["where"][0].startswith("c0 > 0.")
    assert "c1 ≤ 0." in found["where"][0]
    assert "c2" not in " ".join(found["where"])
    assert found["coverage"][0] == pytest.approx(NARROW, abs=0.02)
    assert found["points"].sum() == 600
    assert found["share"].sum() == pytest.approx(1.0)
    inside = (corner.x[:, 0] > 0.6) & (corner.x[:, 1] <= 0.4)
    assert found["points"][0] == pytest.approx(inside.sum(), abs=6)
    assert set(found["verdict"][1:].tolist()) == {0}


def test_regions_of_right_intervals_are_seldom_called_wrong() -> None:
    """Looking for the worst region does not make it look bad: 40 studies, none or few called."""
    called = 0
    for seed in range(40):
        result = pointwise("linear", LinearT(), coverages=(0.8,), trials=16, n_test=80, seed=seed)
        called += bool(failing_regions(result, "picf", 0.8).columns["verdict"].any())
    assert called <= 6  # 2 expected; 8 trials make t-bands a little too narrow


def test_regions_are_named_in_one_column_too() -> None:
    result = pointwise("toy_heteroscedastic", LinearT(), trials=20, n_train=200, n_test=300)
    words = failing_regions(result, "picf", 0.9, ["age"]).columns["where"].tolist()
    assert all("age" in word for word in words)
    assert any(word.count("age") == 1 and "< age ≤" in word for word in words)


def test_indicators_are_named_by_their_label() -> None:
    rng = np.random.default_rng(0)
    base = pointwise("friedman1", Corner(), coverages=(0.9,), trials=20, n_train=2, n_test=200)
    flag = (rng.uniform(size=200) > 0.5).astype(float)
    mass = np.where(flag[:, None] > 0, 0.5, 0.9) + 0 * base.mass
    result = replace(base, x=flag[:, None], mass=mass + 0.001 * rng.normal(size=(20, 1, 1)))
    found = failing_regions(result, "picf", 0.9, ["site=north"]).columns
    assert found["where"].tolist() == ["site=north", "not site=north"]
    assert found["coverage"] == pytest.approx([0.5, 0.9], abs=0.002)


def test_too_few_trials_or_names_are_refused() -> None:
    result = pointwise("linear", LinearT(), coverages=(0.8,), trials=7, n_test=20)
    with pytest.raises(UnanswerableError, match="at least 8 trials are needed, 7 succeeded"):
        failing_regions(result, "picf", 0.8)
    more = pointwise("linear", LinearT(), coverages=(0.8,), trials=8, n_test=20)
    with pytest.raises(InputError, match="names must have one name for each of 1"):
        failing_regions(more, "picf", 0.8, ["a", "b"])
    with pytest.raises(InputError, match="coverage must be one of"):
        failing_regions(more, "picf", 0.7)


def test_bins_hold_the_mean_of_their_points(corner: PointwiseResult) -> None:
    along = corner.x[:, 0]
    curve = local_curve(corner, "picf", 0.9, along, name="c0", bins=6)
    order = np.argsort(along)
    value = corner.by_trial("picf", 0.9).mean(axis=0)
    for place, rows in enumerate(np.array_split(order, 6)):
        assert curve.x[place] == pytest.approx(along[rows].mean())
        assert curve.y[place] == pytest.approx(value[rows].mean())
        assert curve.hover["points"][place] == 100
    assert curve.lower is not None
    assert curve.upper is not None
    assert (curve.lower <= curve.y).all()
    assert (curve.y <= curve.upper).all()
    assert curve.group == curve.x_label == "c0"


def test_equal_values_share_a_bin(corner: PointwiseResult) -> None:
    curve = local_curve(corner, "picf", 0.9, np.arange(600) % 3, bins=12)
    assert curve.x.tolist() == [0.0, 1.0, 2.0]
    mostly = np.where(np.arange(600) < 500, 0.0, np.arange(600))
    curve = local_curve(corner, "picf", 0.9, mostly, bins=4)
    assert curve.hover["points"][0] == 500
    assert curve.hover["points"].sum() == 600


def test_coverage_that_never_varies_keeps_a_band(corner: PointwiseResult) -> None:
    """The mean is never held in 20 trials: the band reaches above 0 as a binomial's does."""
    curve = local_curve(corner, "cicf", 0.9, corner.x[:, 0], bins=5)
    assert curve.upper is not None
    assert set(curve.y.tolist()) == {0.0}
    assert (curve.upper > 0.1).all()


def test_a_column_of_another_length_is_refused(corner: PointwiseResult) -> None:
    with pytest.raises(InputError, match="along"):
        local_curve(corner, "picf", 0.9, np.zeros(5))
    with pytest.raises(InputError, match="bins must be a whole number of at least 2"):
        local_curve(corner, "picf", 0.9, corner.x[:, 0], bins=1)


@examples(40)
@given(
    rows=st.integers(3, 30),
    columns=st.integers(1, 5),
    seed=st.integers(0, 99),
    constant=st.booleans(),
)
def test_the_first_component_holds_most_variance(
    rows: int, columns: int, seed: int, constant: bool
) -> None:
    x = np.random.default_rng(seed).normal(size=(rows, columns)) * 10.0 ** np.arange(columns)
    if constant and columns > 1:
        x[:, 0] = 5.0
    values, share, loadings = principal_component(x)
    live = x.std(axis=0) > 0
    scaled = (x[:, live] - x[:, live].mean(axis=0)) / x[:, live].std(axis=0)
    largest = np.linalg.eigvalsh(scaled.T @ scaled / rows)[-1]
    assert values.var() == pytest.approx(largest)
    assert share == pytest.approx(largest / live.sum())
    assert np.linalg.norm(loadings) == pytest.approx(1.0)
    assert loadings[np.argmax(np.abs(loadings))] > 0
    assert (loadings[~live] == 0).all()


def test_points_that_are_all_the_same_have_no_direction() -> None:
    with pytest.raises(UnanswerableError, match="all test points are the same"):
        principal_component(np.full((4, 2), 3.0))
