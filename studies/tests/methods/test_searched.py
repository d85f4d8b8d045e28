"""The searched method takes the candidate of the lowest loss on rows held out, and refits it."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pytest
from scipy import stats

from howsure.core.errors import InputError
from howsure.predictions import Distribution
from howsure_studies.methods import method_named, method_spec
from howsure_studies.methods.interface import Fitted, Method, Predictions
from howsure_studies.methods.linear import LinearT
from howsure_studies.methods.quantile_regression import QuantileRegression
from howsure_studies.methods.searched import Searched


@dataclass(frozen=True)
class Law(Method):
    """Whatever it is fitted to, it states one normal law; it keeps how many rows it saw."""

    name: ClassVar[str] = "law"
    center: float = 0.0
    scale: float = 1.0

    def fit(self, x: Any, y: Any, rng: np.random.Generator) -> LawFitted:
        return LawFitted(self.center, self.scale, len(y), np.asarray(y))


@dataclass(frozen=True)
class LawFitted(Fitted):
    center: float
    scale: float
    rows: int
    y: np.ndarray

    def predict(self, x: Any) -> Predictions:
        given = {"loc": np.full(len(x), self.center), "scale": self.scale}
        return Predictions(Distribution("norm", given))


def rows(n: int = 80, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 2))
    return x, x[:, 0] + 0.5 * rng.normal(size=n)


def loss_by_definition(law: Law, y: np.ndarray, coverages: tuple[float, ...]) -> float:
    """The mean pinball loss over rows and ends of intervals."""
    losses = []
    for coverage in coverages:
        for level in ((1.0 - coverage) / 2.0, (1.0 + coverage) / 2.0):
            end = law.center + law.scale * stats.norm.ppf(level)
            losses += [max(level * (t - end), (level - 1.0) * (t - end)) for t in y]
    return float(np.mean(losses))


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("coverages", [(0.9,), (0.5, 0.9)])
def test_it_takes_the_lowest_loss_on_the_rows_held_out(
    seed: int, coverages: tuple[float, ...]
) -> None:
    x, y = rows(seed=seed)
    laws = [Law(c, s) for c in (-0.2, 0.0, 0.2) for s in (0.6, 1.0, 1.4)]
    method = Searched(candidates=laws, validation=0.4, coverages=coverages)
    fitted = method.fit(x, y, np.random.default_rng(seed))
    held = np.random.default_rng(seed).permutation(80)[:32]  # what is drawn first
    losses = [loss_by_definition(law, y[held], coverages) for law in laws]
    assert isinstance(fitted, LawFitted)
    best = laws[int(np.argmin(losses))]
    assert (fitted.center, fitted.scale) == (best.center, best.scale)
    np.testing.assert_array_equal(fitted.y, y)  # all rows


def test_candidates_do_not_see_the_rows_held_out(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[np.ndarray] = []
    fit = Law.fit

    def kept(self: Law, x: Any, y: Any, rng: np.random.Generator) -> LawFitted:
        seen.append(np.asarray(y))
        return fit(self, x, y, rng)

    monkeypatch.setattr(Law, "fit", kept)
    x, y = rows()
    Searched(candidates=[Law(), Law(1.0)], validation=30).fit(x, y, np.random.default_rng(5))
    held = y[np.random.default_rng(5).permutation(80)[:30]]
    assert [len(each) for each in seen] == [50, 50, 80]
    assert not np.isin(held, seen[0]).any()
    assert not np.isin(held, seen[1]).any()


def test_what_is_chosen_is_fitted_as_it_would_be_alone() -> None:
    """With the generator as the candidates left it; those here draw a seed for each fit."""
    x, y = rows()
    forests = [
        method_named("quantile_forest", trees=5, min_leaf=leaf, coverages=[0.9]) for leaf in (2, 30)
    ]
    rng = np.random.default_rng(7)
    fitted = Searched(candidates=forests, coverages=(0.9,)).fit(x, y, rng)
    alone = np.random.default_rng(7)
    held = np.zeros(80, dtype=bool)
    held[alone.permutation(80)[:20]] = True
    for forest in forests:
        forest.fit(x[~held], y[~held], alone)
    ends = fitted.predict(x).outcome.interval(0.9)
    same = [
        np.array_equal(ends, each.fit(x, y, copy.deepcopy(alone)).predict(x).outcome.interval(0.9))
        for each in forests
    ]
    assert same == [True, False]


def test_candidates_that_fix_coverages_have_those_of_the_search() -> None:
    from sklearn.linear_model import LinearRegression, QuantileRegressor

    linear = QuantileRegression(QuantileRegressor(solver="highs"), "quantile", (0.5,))
    method = Searched(candidates=[linear, LinearRegression(), LinearT()], coverages=(0.8, 0.9))
    assert [each.fixed_coverages for each in method.candidates] == [(0.8, 0.9), (0.8, 0.9), None]
    assert method.fixed_coverages == (0.8, 0.9)
    assert method.name == f"{linear.name}, searched"
    assert Searched(candidates=[LinearT(), Law()]).fixed_coverages is None


def test_its_spec_makes_it_again() -> None:
    spec = method_spec(
        method_named(
            "searched",
            candidates=[
                {"name": "howsure_studies.methods.linear:LinearT", "intercept": False},
                {"name": "sklearn.linear_model:BayesianRidge"},
            ],
            coverages=[0.8],
        )
    )
    again = method_named(spec["name"], **spec["options"])
    assert method_spec(again) == spec
    assert again.candidates[0] == LinearT(intercept=False)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, "candidates must be at least 2 methods"),
        ({"candidates": [LinearT()]}, "candidates must be at least 2 methods"),
        ({"candidates": LinearT()}, "candidates must be at least 2 methods"),
        ({"candidates": [LinearT(), 3]}, "fit and predict, got int"),
        ({"candidates": [LinearT(), LinearT()], "coverages": (1.5,)}, "strictly between 0 and 1"),
    ],
)
def test_what_breaks_a_rule_is_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        Searched(**options)
    with pytest.raises(InputError, match="validation must leave at least 2 of 80 rows"):
        Searched(candidates=[LinearT(), LinearT()], validation=79).fit(
            *rows(), np.random.default_rng(0)
        )
