"""Label sets made anew from class probabilities."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

import howsure
from howsure.core.arrays import FloatArray
from howsure.core.errors import InputError
from howsure.predictions import EvalSet, LabelSets
from howsure.recalibration import methods_of, recalibrate
from howsure.recalibration.sets import ProbabilitySets

CONFORMAL = ("lac", "aps", "raps", "saps")


def drawn(seed: int, n: int, sharp: float = 1.0, classes: int = 5) -> EvalSet:
    """True classes of probabilities that are stated with another sharpness."""
    rng = np.random.default_rng([seed, n])
    p = rng.dirichlet(np.full(classes, 0.7), size=n)
    y = (rng.uniform(size=(n, 1)) > np.cumsum(p, axis=1)).sum(axis=1)
    stated = np.maximum(p, 1e-12) ** sharp
    stated /= stated.sum(axis=1, keepdims=True)
    return EvalSet.checked(y.astype(float), LabelSets(stated > 0.3, 0.9, stated))


def covered(held: EvalSet) -> FloatArray:
    sets = held.predictions[0]
    assert isinstance(sets, LabelSets)
    return sets.contains(held.y).astype(np.float64)


def test_lac_is_the_quantile_of_one_less_the_true_probability() -> None:
    held, new = drawn(0, 300), drawn(1, 50)
    found = ProbabilitySets("lac").fit(held)
    p = held.predictions[0].probabilities  # type: ignore[attr-defined]
    scores = np.sort(1.0 - p[np.arange(300), held.y.astype(int)])
    threshold = scores[int(np.ceil(301 * 0.9)) - 1]
    assert found.parameters[0].value == pytest.approx(threshold, abs=1e-12)
    made = found.apply(new).predictions[0]
    assert isinstance(made, LabelSets)
    np.testing.assert_array_equal(
        made.members,
        1.0 - new.predictions[0].probabilities <= threshold + 1e-12,  # type: ignore[attr-defined]
    )
    assert found.parameters[0].expected == 271 / 301


@pytest.mark.slow
@pytest.mark.parametrize("name", CONFORMAL)
def test_coverage_of_the_conformal_ones_follows_its_law(name: str) -> None:
    shares = []
    for seed in range(60):
        made = recalibrate(drawn(seed + 100, 400, 2.0), drawn(seed, 99, 2.0), method=name)
        shares.append(covered(made.evalset).mean())
    rank = 90
    spread = np.sqrt(stats.beta(rank, 100 - rank).var() + 0.9 * 0.1 / 400)
    assert abs(np.mean(shares) - 0.9) < 3.5 * spread / np.sqrt(60)


@pytest.mark.parametrize("sharp", [0.5, 1.0, 2.0])
def test_temperature_undoes_what_was_sharpened(sharp: float) -> None:
    found = ProbabilitySets("temperature").fit(drawn(2, 4_000, sharp))
    assert found.parameters[0].value == pytest.approx(sharp, rel=0.06)
    new = found.apply(drawn(3, 4_000, sharp))
    made = new.predictions[0]
    assert isinstance(made, LabelSets)
    assert made.probabilities is not None
    held = (made.members * made.probabilities).sum(axis=1)
    assert held.min() >= 0.9 - 1e-9
    smallest = np.where(made.members, made.probabilities, 2.0).min(axis=1)
    assert (held - smallest < 0.9).all()  # no class too many
    assert covered(new).mean() == pytest.approx(held.mean(), abs=0.02)


@pytest.mark.parametrize("name", [*CONFORMAL, "temperature"])
def test_a_frequency_weight_is_a_repetition_and_order_does_not_matter(name: str) -> None:
    held = drawn(4, 80, 1.5)
    counts = np.random.default_rng(0).integers(1, 4, 80)
    weighted = EvalSet.checked(held.y, held.predictions, weights=counts.astype(float))
    repeated = held.take(np.repeat(np.arange(80), counts))
    fits = [ProbabilitySets(name).fit(each).parameters[0].value for each in (weighted, repeated)]
    if name == "lac":  # the others draw a uniform for each row
        assert fits[0] == fits[1]
    mixed = ProbabilitySets(name).fit(held.take(np.random.default_rng(1).permutation(80)))
    assert mixed.parameters[0].value == pytest.approx(
        ProbabilitySets(name).fit(held).parameters[0].value, rel=1e-9
    )


def test_they_serve_new_rows_through_the_door() -> None:
    held, new = drawn(5, 500, 2.0), drawn(6, 200, 2.0)
    assert recalibrate(new, held).methods == {"label sets": "lac"}
    found = howsure.recalibrate(new, held, method="temperature")
    assert found.methods == {"label sets": "temperature"}
    assert isinstance(found.evalset.predictions[0], LabelSets)
    with pytest.raises(
        InputError, match=r"for label sets, method must be one of lac, .*temperature"
    ):
        howsure.recalibrate(new, held, method="best")


def test_bad_sets_are_refused() -> None:
    held = drawn(7, 50)
    bare = EvalSet.checked(held.y, LabelSets(np.ones((50, 5), dtype=bool), 0.9))
    for new, known in ((bare, held), (held, bare)):
        with pytest.raises(InputError, match="need class probabilities"):
            recalibrate(new, known)
    with pytest.raises(InputError, match=r"the 5 classes of the calibration rows .*, got 4"):
        recalibrate(drawn(8, 20, classes=4), held)
    with pytest.raises(InputError, match="must apply to the predictions"):
        recalibrate(held, held, method="scale")
    with pytest.raises(InputError, match="method must be one of lac"):
        ProbabilitySets("scale").fit(held)
    with pytest.raises(InputError, match="sum to 1 in each row; 1 rows"):
        LabelSets([[True, False]], 0.9, [[0.5, 0.6]])
    with pytest.raises(InputError, match="probabilities must have"):
        LabelSets([[True, False]], 0.9, [[0.5, 0.3, 0.2]])
    few = ProbabilitySets("lac").fit(held.take(np.arange(5)))
    made = few.apply(held).predictions[0]
    assert isinstance(made, LabelSets)
    assert made.members.all()  # five rows know no 90 %


def test_a_real_classifier_is_cooled(data_dir: Callable[[str], Path]) -> None:
    path = data_dir("preds_cifar_softmax") / "lenet-5-cifar-10.npz"
    with np.load(path) as data:
        stated, y = data["predictions"].astype(np.float64), data["ground_truth"].ravel()
    stated = np.maximum(stated, 1e-12)
    stated /= stated.sum(axis=1, keepdims=True)
    sure = {"ease": stated.max(axis=1)}
    whole = EvalSet.checked(y.astype(float), LabelSets(stated > 0.1, 0.9, stated), features=sure)
    held, new = whole.take(np.arange(0, 10_000, 2)), whole.take(np.arange(1, 10_000, 2))
    for name in methods_of("label sets"):
        made = recalibrate(new, held, method=name)
        sets = made.evalset.predictions[0]
        assert isinstance(sets, LabelSets)
        assert sets.probabilities is not None
        claimed = 0.9
        if name == "temperature":  # whose sets hold at least that much
            assert made.recalibrators[0].parameters[0].value == pytest.approx(1.4, abs=0.05)
            claimed = float((sets.members * sets.probabilities).sum(axis=1).mean())
        assert covered(made.evalset).mean() == pytest.approx(claimed, abs=0.015), name
