"""The constant: quantiles of y whatever x is, and its address, which is as it was."""

from __future__ import annotations

import numpy as np
import pytest

from howsure.core.errors import InputError
from howsure_studies.engine import make_method, method_identity
from howsure_studies.methods import method_named, method_spec
from howsure_studies.methods.constant import Constant
from howsure_studies.methods.options import attribute, path_of
from howsure_studies.shift.methods import BASELINES

RNG = np.random.default_rng(0)
BEFORE = "howsure.studies.shift.baselines:Constant"


def test_it_answers_with_quantiles_of_training() -> None:
    y = RNG.normal(size=500)
    fitted = Constant((0.5, 0.9)).fit(np.zeros((500, 4, 4)), y, RNG)
    prediction = fitted.predict(np.ones((3, 4, 4))).outcome
    for coverage in (0.5, 0.9):
        ends = np.quantile(y, [0.5 - coverage / 2, 0.5 + coverage / 2])
        assert np.allclose(np.stack(prediction.interval(coverage), axis=1), ends)
    assert np.allclose(prediction.point(), np.median(y))


def test_it_draws_nothing() -> None:
    rng = np.random.default_rng(3)
    Constant().fit(np.zeros((5, 1)), np.arange(5.0), rng)
    assert rng.integers(2**31) == np.random.default_rng(3).integers(2**31)


def test_there_must_be_a_row_and_a_coverage_between_0_and_1() -> None:
    with pytest.raises(InputError, match="y must have at least one row"):
        Constant().fit(np.zeros((0, 1)), [], RNG)
    with pytest.raises(InputError, match="strictly between 0 and 1"):
        Constant((1.0,))


@pytest.mark.parametrize(
    "name",
    [
        "constant",
        BEFORE,
        "howsure_studies.shift.baselines:Constant",
        "howsure_studies.methods.constant:Constant",
    ],
)
def test_every_path_that_it_had_makes_it(name: str) -> None:
    method = method_named(name, coverages=[0.8])
    assert method == Constant((0.8,))
    assert method_spec(method) == {"name": "constant", "options": {"coverages": [0.8]}}


def test_its_address_in_the_shift_study_is_that_before_it_moved() -> None:
    entry = BASELINES["constant"]
    wanted = {"method": BEFORE, "options": {"coverages": [0.9]}}
    assert method_identity(make_method("c", entry, (0.9,)), entry) == wanted
    assert path_of(attribute(BEFORE, "class"), "class") == BEFORE
