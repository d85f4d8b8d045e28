"""Laws read from the names of their parameters' columns; what is written comes back."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from howsure.core.errors import InputError
from howsure.inputs import load
from howsure.inputs.columns import assign_roles, guessed_law
from howsure.predictions import Distribution, EvalSet
from howsure.predictions.columns import to_columns

PARTS = {
    "w1": [0.3, 0.5, 1.0],
    "mean1": [0.0, -1.0, 2.0],
    "sd1": [1.0, 0.5, 2.0],
    "w2": [0.7, 0.5, 0.0],
    "mean2": [3.0, 4.0, 5.0],
    "sd2": [0.2, 2.0, 1.0],
}


@pytest.mark.parametrize("law", ["gamma", "nbinom", "skewnorm", "double_poisson"])
def test_other_laws_come_back_too(law: str) -> None:
    given: dict[str, Any] = {
        "gamma": {"a": [2.0, 3.0], "scale": 0.5},
        "nbinom": {"n": [2.0, 3.0], "p": 0.5},
        "skewnorm": {"a": [2.0, -3.0], "loc": 1.0},
        "double_poisson": {"mu": [2.0, 3.0], "phi": 2.0},
    }[law]
    prediction = Distribution(law, given)
    (again,) = load(to_columns(EvalSet.checked([1.0, 2.0], prediction))).evalsets[0].predictions
    assert again.law.name == law
    np.testing.assert_array_equal(again.quantile([0.3]), prediction.quantile([0.3]))


@pytest.mark.parametrize(
    "spelling",
    [
        ("w{}", "mean{}", "sd{}", 1),
        ("weight_{}", "mu_{}", "sigma_{}", 0),
        ("pi_{}", "loc_{}", "scale_{}", 1),
        ("Prob-{}", "Mu {}", "STD{}", 0),
    ],
)
def test_mixtures_of_normal_laws_have_many_names(spelling: tuple[str, str, str, int]) -> None:
    *stems, first = spelling
    names = [stem.format(number + first) for number in (0, 1) for stem in stems]
    table = dict(zip(names, PARTS.values(), strict=True))
    loaded = load({"y": [0.0, 1.0, 2.0], **table})
    (prediction,) = loaded.evalsets[0].predictions
    expected = 0.3 * Distribution.normal([0.0], [1.0]).cdf(np.array([1.0])) + 0.7 * (
        Distribution.normal([3.0], [0.2]).cdf(np.array([1.0]))
    )
    assert prediction.cdf(np.ones(3))[0] == pytest.approx(expected[0])
    roles = {use.column: use.role for use in loaded.explanation}
    assert roles[names[-1]] == "scale_2 of the distribution norm+norm"


@pytest.mark.parametrize(
    "names",
    [
        "w1 mean1 sd1",  # one part
        "w1 w2 mean1 mean2 sd1",  # one sd too few
        "mean1 mean2 sd1 sd2",  # no weights
        "w2 w3 mean2 mean3 sd2 sd3",  # numbers that start nowhere
        "w1 w3 mean1 mean3 sd1 sd3",
        "t_df t_scale",  # no loc
        "user_loc user_scale",  # no law
        "double_poisson_mu",
        "norm+norm_weight_1 norm+norm_loc_1",
        "norm+poisson_weight_1",  # no mixture
    ],
)
def test_names_that_are_no_law_are_left(names: str) -> None:
    assert guessed_law(names.split()) is None


def test_flags_go_before_names() -> None:
    names = ["y", "mean", "sd", *PARTS]
    assert assign_roles(names).law is not None
    assert not assign_roles(names)["sd"]
    assert (
        assign_roles(names).notes["sd"]
        == "not used: the distribution is given through its parameters"
    )
    given = assign_roles(names, {"sd": "sd"})
    assert (given.law, given["mean"], given["sd"]) == (None, ("mean",), ("sd",))
    left = assign_roles(names, {"law": ""})
    assert (left.law, left["sd"]) == (None, ("sd",))
    named = assign_roles(names, {"law": "norm:loc=mean1,scale=sd1"})
    assert named.law is not None
    assert named.law.name == "norm"
    taken = assign_roles(names, {"features": "w1"})
    assert taken.law is None


def test_two_laws_are_refused() -> None:
    with pytest.raises(InputError, match=r"column names suggest 2"):
        assign_roles(["y", *PARTS, "poisson_mu"])
    with pytest.raises(InputError, match="law must be one"):
        assign_roles(["y", *PARTS, "mu1", "mu2"])


def test_weights_that_do_not_sum_to_one_are_refused() -> None:
    with pytest.raises(InputError, match=r"weights of norm\+norm must be at least 0 and sum to 1"):
        load({"y": [0.0, 1.0, 2.0], **PARTS, "w1": [0.3, 0.4, 1.0]})
