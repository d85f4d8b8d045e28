"""The named methods of the study of adaptivity: CP-A, PAC, SSCP, O-CPA, O-PAC."""

from __future__ import annotations

import json

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression

from howsure.conformal.adapting import Mondrian
from howsure.conformal.labels import EaseBins, EaseColumn, LabelConformal, TunedLabels
from howsure.core.errors import InputError
from howsure.stats.ease import GaussianNoise
from howsure_studies.methods.catalogue import method_named, method_spec
from howsure_studies.methods.conformal.normalized import NormalizedConformal, ReconstructionLoss


@pytest.mark.parametrize("name", ["cpa", "pac", "sscp", "o_cpa", "o_pac"])
def test_named_methods_are_made_with_their_options_and_again_from_their_spec(name: str) -> None:
    method = method_named(name, coverages=[0.8], clip=[0.0, 1.0])
    assert isinstance(method, NormalizedConformal)
    assert method.rank == ("pac" if "pac" in name else "conformal")
    assert isinstance(method.feature, ReconstructionLoss) == (name == "sscp")
    assert method.clip == (0.0, 1.0)
    grouped = isinstance(method.adapt, Mondrian)
    assert grouped == name.startswith("o_")
    if isinstance(method.adapt, Mondrian):
        assert method.adapt.groups == EaseBins(5)
    spec = json.loads(json.dumps(method_spec(method)))
    again = method_named(spec["name"], **spec["options"])
    assert method_spec(again) == spec


def test_thresholds_by_ease_hold_coverage_where_the_model_is_unsteady() -> None:
    """Errors are four times as large where the function is steep, which σ̂ = 1 does not know."""
    rng = np.random.default_rng(0)

    def forecast(x: np.ndarray) -> np.ndarray:
        return np.where(x[:, 0] > 0, 8 * x[:, 0], x[:, 0])

    def ones(x: np.ndarray) -> np.ndarray:
        return np.ones(len(x))

    def draw(n: int) -> tuple[np.ndarray, np.ndarray]:
        x = rng.uniform(-1, 1, (n, 1))
        return x, forecast(x) + rng.normal(size=n) * np.where(x[:, 0] > 0, 4.0, 1.0)

    x, y = draw(4000)
    new, truth = draw(8000)
    gaps = {}
    for name in ("cpa", "o_cpa", "o_pac"):
        options: dict = {"regressor": forecast, "difficulty": ones, "coverages": [0.9]}
        if name.startswith("o_"):
            options["adapt"] = Mondrian(EaseBins(2, 0.05))
        fitted = method_named(name, **options).fit(x, y, rng)
        lower, upper = fitted.predict(new).outcome.interval(0.9)
        inside = (lower <= truth) & (truth <= upper)
        gaps[name] = [inside[new[:, 0] > 0].mean() - 0.9, inside[new[:, 0] <= 0].mean() - 0.9]
    assert gaps["cpa"][0] < -0.05
    assert gaps["cpa"][1] > 0.05
    assert np.abs(gaps["o_cpa"]).max() < 0.03
    assert min(gaps["o_pac"]) > 0
    assert max(gaps["o_pac"]) < 0.05


def test_ease_given_as_a_column_makes_the_groups_that_computing_it_makes() -> None:
    rng = np.random.default_rng(1)
    x = rng.normal(size=(600, 4))
    y = rng.integers(0, 4, 600)
    noise = GaussianNoise(0.3)

    def model(rows: np.ndarray) -> np.ndarray:
        raised = np.exp(rows[:, :4])
        return np.asarray(raised / raised.sum(axis=1, keepdims=True))

    ways = EaseBins(3, noise, seed=5)
    ease = ways.learn(x, model).values(x)
    wide = np.column_stack((x, ease))
    base = LabelConformal(model=model, coverage=0.8)
    for family in ("o_lac", "o_saps"):
        options = {"base": base, "family": family, "bins": (2, 4), "penalties": (0.1, 0.3)}
        one = TunedLabels(groups=ways, **options).calibrate(x, y)
        other = TunedLabels(groups=EaseColumn(4), **options).calibrate(wide, y)
        assert [value for _, value in one.tried] == [value for _, value in other.tried]
        np.testing.assert_array_equal(one.predict(x).members, other.predict(wide).members)


def test_several_ways_of_disturbing_are_tried_and_the_best_is_kept() -> None:
    """One way is noise that tells nothing; the other follows the errors."""
    rng = np.random.default_rng(2)
    sharp = rng.uniform(0.1, 3.0, 3000)
    logits = rng.normal(size=(3000, 8)) * sharp[:, None]
    p = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    y = (p.cumsum(axis=1) > rng.random(3000)[:, None]).argmax(axis=1)
    x = np.column_stack((p, sharp, rng.random(3000)))

    def model(rows: np.ndarray) -> np.ndarray:
        return rows[:, :8]

    tuned = TunedLabels(
        base=LabelConformal(model=model),
        family="o_lac",
        bins=(2, 5),
        groups=(EaseColumn(8), EaseColumn(9)),
    ).calibrate(x, y)
    assert [groups for (_, groups), _ in tuned.tried] == [
        EaseColumn(8, 2),
        EaseColumn(8, 5),
        EaseColumn(9, 2),
        EaseColumn(9, 5),
    ]
    chosen = tuned.chosen.method.adapt
    assert isinstance(chosen, Mondrian)
    best = max(tuned.tried, key=lambda item: item[1])[0][1]
    assert chosen.groups == best
    assert isinstance(best, EaseColumn)
    assert best.column == 8


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: EaseColumn(-1), "column must be"),
        (lambda: EaseColumn(0, 1), "bins must be"),
        (lambda: EaseColumn(3).learn(np.ones((4, 2)), len), "x has no column 3"),
        (lambda: TunedLabels(groups=()), "groups must be"),
        (lambda: TunedLabels(groups=(3,)), "groups must be"),
        (lambda: method_named("o_cpa", regressor=LinearRegression(), delta=2.0), "delta"),
    ],
)
def test_bad_input_is_named(call, words: str) -> None:
    with pytest.raises(InputError, match=words):
        call()
