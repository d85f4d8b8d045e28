"""Methods by name, options as plain values, and specs that make a method again."""

from __future__ import annotations

import json
import sys
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from extras import needs
from howsure.conformal.adapting import Mondrian, UniformBins
from howsure.core.errors import InputError, MissingDependencyError
from howsure_studies.methods.bootstrap import NaiveBootstrap
from howsure_studies.methods.catalogue import method_named, method_spec, methods
from howsure_studies.methods.conformal.inductive import SplitConformal
from howsure_studies.methods.conformal.quantile import Conformalized
from howsure_studies.methods.conformal.weighted import CovariateShift, Localized
from howsure_studies.methods.interface import Method
from howsure_studies.methods.linear import LinearT
from howsure_studies.methods.options import attribute, path_of, written
from howsure_studies.methods.quantile_forest import QuantileForest
from howsure_studies.methods.regressors import PredictedSd

MODULE = """
from sklearn.base import BaseEstimator, RegressorMixin
from howsure_studies.methods.linear import LinearT

class Mean(RegressorMixin, BaseEstimator):
    def __init__(self, shift=0.0):
        self.shift = shift
    def fit(self, x, y):
        self.mean_ = float(y.mean()) + self.shift
        return self
    def predict(self, x):
        return x[:, 0] * 0 + self.mean_

class Sure(Mean):
    def predict(self, x, return_std=False):
        point = super().predict(x)
        return (point, point * 0 + 1.0) if return_std else point

class Picky:
    def __init__(self, level):
        raise ValueError("level is never right")
    def fit(self, x, y):
        return self

def line(intercept: bool = True) -> LinearT:
    return LinearT(intercept)

def unsaid():
    raise AssertionError("called")

class Unfit:
    def __init__(self, level=0):
        raise AssertionError("called")

ready = LinearT()
number = 3

def ratio(x):
    return 1 + x[:, 0] ** 2
"""


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A module of the user's own."""
    (tmp_path / "my_own_models.py").write_text(MODULE, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    yield "my_own_models"
    sys.modules.pop("my_own_models", None)


@pytest.mark.parametrize("name", methods())
def test_every_name_makes_a_method_that_its_spec_makes_again(name: str) -> None:
    try:
        method = method_named(name)
    except MissingDependencyError:
        needs("torch")
        raise
    assert isinstance(method, Method)
    spec = method_spec(method)
    text = json.dumps(spec, allow_nan=False, sort_keys=True)
    read = json.loads(text)
    again = method_named(read["name"], **read["options"])
    assert again.name == method.name
    assert json.dumps(method_spec(again), sort_keys=True) == text


def test_coverages_reach_every_method_that_fixes_them() -> None:
    for name in methods():
        if "network" in name or "dropout" in name or "ensemble" in name:
            continue
        if method_named(name).fixed_coverages is not None:
            method = method_named(name, coverages=[0.5, 0.6])
            assert method.fixed_coverages == (0.5, 0.6), name
            inner = getattr(method, "inner" if name == "recalibrated" else "method", None)
            assert inner is None or inner.fixed_coverages in (None, (0.5, 0.6))


def test_options_are_plain_values_or_text() -> None:
    made = method_named(
        "split_conformal",
        regressor={"name": "tree", "max_depth": 3},
        calibration="0.3",
        coverages="0.5, 0.9",
        adapt={"name": "mondrian", "groups": {"name": "uniform_bins", "by": "1", "bins": "4"}},
        clip=[0, "inf"],
        too_few="error",
    )
    assert isinstance(made, SplitConformal)
    assert made.calibration == 0.3
    assert made.coverages == (0.5, 0.9)
    assert made.clip == (0.0, np.inf)
    assert made.adapt == Mondrian(UniformBins(1, 4))
    assert made.regressor.max_depth == 3
    rows = method_named("split_conformal", calibration="30", clip="none")
    assert isinstance(rows, SplitConformal)
    assert rows.calibration == 30
    assert rows.clip is None
    local = method_named("local_conformal", adapt={"name": "localized", "bandwidth": 2})
    assert isinstance(local, SplitConformal)
    assert local.adapt == Localized(2)
    bootstrap = method_named("naive_bootstrap", regressor=Ridge(), members=np.int64(9))
    assert isinstance(bootstrap, NaiveBootstrap)
    assert bootstrap.members == 9
    nested = method_named("conformalized", method={"name": "quantile_forest", "trees": 7})
    assert isinstance(nested, Conformalized)
    assert isinstance(nested.method, QuantileForest)
    assert nested.method.trees == 7


@pytest.mark.parametrize(
    ("name", "options", "words"),
    [
        ("linear", {}, "near: linear_t"),
        ("naive_bootstrop", {}, "near: naive_bootstrap"),
        (
            "linear_t",
            {"intercpt": True},
            "method 'linear_t': option must be one of intercept, .*nea",
        ),
        ("linear_t", {"intercept": "perhaps"}, "intercept must be true or false, got 'perhaps'"),
        ("linear_t", {"intercept": 1}, "intercept must be true or false, got 1"),
        ("linear_t", {"coverages": [0.9]}, "coverages must be left out"),
        ("naive_bootstrap", {"members": 2.5}, "members must be a whole number, got 2.5"),
        ("naive_bootstrap", {"members": True}, "members must be a whole number, got True"),
        ("naive_bootstrap", {"members": 1}, "members must be a whole number, at least 2"),
        ("naive_bootstrap", {"convention": "bde"}, "must be one of paper, code, got 'bde'"),
        ("naive_bootstrap", {"regressor": "forrest"}, "near: forest"),
        ("naive_bootstrap", {"regressor": {"name": "tree", "depth": 3}}, "option must be one of"),
        ("naive_bootstrap", {"regressor": {"max_depth": 3}}, "must have a name"),
        ("cv_plus", {"coverages": "high"}, "coverages must be a list of numbers, got 'high'"),
        ("cv_plus", {"coverages": [90]}, "coverages must be strictly between"),
        ("cv_plus", {"clip": [0, 1, 2]}, "clip must be a list of 2 numbers or none"),
        ("mondrian_conformal", {"adapt": {"name": "mondrain"}}, "near: mondrian"),
        ("mondrian_conformal", {"adapt": 3}, "adapt must be of type Adaptation, got 3"),
        ("conformalized", {"method": "quantile_forrest"}, "near: quantile_forest"),
        ("conformalized", {"method": {"trees": 3}}, "must have a name"),
        ("gaussian_process", {"restarts": None}, "restarts must be a whole number, got None"),
        ("sklearn.linear_model:Rigde", {}, "near: Ridge"),
        ("sklearn.linear_modle:Ridge", {}, "cannot be imported"),
        (":Ridge", {}, "must have the form module:attribute"),
        ("sklearn.linear_model:Ridge", {"alhpa": 1}, "near: alpha"),
        ("math:pi", {}, "must be a class with fit, .*got 3.14.*not called"),
        ("math:sqrt", {}, "must be a class with fit, .*got <built-in function sqrt>.*not called"),
        ("json:loads", {"s": "3"}, "must be a class with fit"),
        (LinearT(), {"intercept": True}, "options must be left out"),
        (3, {}, "fit and predict, got int"),
    ],
)
def test_bad_names_and_options_are_refused(name: Any, options: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        method_named(name, **options)


def test_a_users_own_models(module: str) -> None:
    point = method_named(f"{module}:Mean", shift=2.0, coverages=[0.8])
    assert isinstance(point, SplitConformal)
    assert point.coverages == (0.8,)
    assert point.regressor.shift == 2.0
    assert isinstance(method_named(f"{module}:Sure"), PredictedSd)
    assert method_named(f"{module}:line", intercept="false") == LinearT(intercept=False)
    assert method_named(f"{module}:ready") == LinearT()
    spec = method_spec(point)
    assert spec["options"]["regressor"] == {"name": f"{module}:Mean", "shift": 2.0}
    assert method_spec(method_named(**{"name": spec["name"]}, **spec["options"])) == spec
    shifted = method_named(
        "split_conformal",
        regressor=f"{module}:Mean",
        adapt={"name": "covariate_shift", "ratio": f"{module}:ratio"},
    )
    assert isinstance(shifted, SplitConformal)
    assert isinstance(shifted.adapt, CovariateShift)
    assert method_spec(shifted)["options"]["adapt"]["ratio"] == {"name": f"{module}:ratio"}
    with pytest.raises(InputError, match="cannot be made: level is never right"):
        method_named(f"{module}:Picky", level=0.3)
    for name in ("number", "unsaid", "Unfit"):
        with pytest.raises(InputError, match=r"must be a class with fit.*it was not called"):
            method_named(f"{module}:{name}")
    for name in ("Unfit", {"name": "Unfit", "level": 1}):
        path = f"{module}:{name}" if isinstance(name, str) else {**name, "name": f"{module}:Unfit"}
        for part in ("regressor", "adapt"):
            with pytest.raises(InputError, match=rf"{part} must be a class with fit.*not called"):
                method_named("split_conformal", **{part: path})
    adapt = {"name": "covariate_shift", "ratio": {"name": f"{module}:ratio", "alpha": 1}}
    with pytest.raises(InputError, match="takes no options, got alpha"):
        method_named("split_conformal", adapt=adapt)


@pytest.mark.parametrize("part", ["name", "regressor", "adapt", "difficulty", "method"])
def test_what_cannot_be_fitted_is_not_called(part: str, tmp_path: Path) -> None:
    """A plan or a flag names a program to run, as a method or within one: it does not run."""
    flag = tmp_path / "flag"
    spec = {"name": "subprocess:Popen", "args": ["touch", str(flag)]}
    outer = "conformalized" if part == "method" else "normalized_conformal"
    given = spec if part == "name" else {"name": outer, part: spec}
    with pytest.raises(InputError, match=r"'subprocess:Popen' .*it was not called"):
        method_named(**given)
    assert not flag.exists()


def test_other_packages_bring_methods(module: str, monkeypatch: pytest.MonkeyPatch) -> None:
    point = EntryPoint("my_line", f"{module}:line", "howsure.methods")
    monkeypatch.setattr(
        "howsure.core.registry.entry_points",
        lambda group: (point,) if group == "howsure.methods" else (),
    )
    assert methods()[-1] == "my_line"
    assert method_named("my_line", intercept=False) == LinearT(intercept=False)


def test_pipelines_are_written_down_and_made_again() -> None:
    model = make_pipeline(StandardScaler(with_mean=False), Ridge(alpha=0.3))
    spec = json.loads(json.dumps(method_spec(SplitConformal(model))))
    again = method_named(spec["name"], **spec["options"])
    assert isinstance(again, SplitConformal)
    assert method_spec(again) == spec
    x = np.random.default_rng(0).normal(size=(40, 2))
    first, second = (
        method.fit(x, x[:, 0], np.random.default_rng(0)).predict(x).outcome.interval(0.8)
        for method in (SplitConformal(model), again)
    )
    assert np.array_equal(first, second)


@pytest.mark.parametrize(
    ("now", "then"),
    [
        ("regressors:OwnMethod", "own:OwnMethod"),
        ("deep.networks:DeepEnsemble", "deep.ensembles:DeepEnsemble"),
        ("deep.networks:HeadNetwork", "deep.head_network:HeadNetwork"),
        ("deep.networks:MCDropout", "deep.montecarlo:MCDropout"),
        ("deep.networks:NetworkBootstrap", "deep.bootstrap:NetworkBootstrap"),
        ("deep.heads.normal:StudentTHead", "deep.heads.shapes:StudentT"),
        ("deep.heads.counts:PoissonHead", "deep.heads.counts:Poisson"),
        ("deep.heads.normal:NormalMixture", "deep.heads.shapes:NormalMixture"),
        ("deep.heads.quantiles:PairHead", "deep.heads.pair:PairHead"),
        ("deep.training:ModuleTraining", "deep.modules.recipe:Recipe"),
    ],
)
def test_a_class_that_moved_is_written_as_before_and_read_by_both_paths(
    now: str, then: str
) -> None:
    here, before = f"howsure_studies.methods.{now}", f"howsure.methods.{then}"
    assert attribute(here, "class") is attribute(before, "class")
    assert path_of(attribute(here, "class"), "class") == before


@pytest.mark.parametrize(
    ("now", "then"),
    [
        ("howsure_studies.methods.linear:LinearT", "howsure.methods.linear:LinearT"),
        ("howsure_studies.shift.baselines:Constant", "howsure.studies.shift.baselines:Constant"),
        ("howsure.conformal.adapting:Binned", "howsure.methods.conformal.adapting:Binned"),
        ("howsure.conformal:Offset", "howsure.methods.conformal:Offset"),
        (
            "howsure_studies.methods.conformal.cross:CVPlus",
            "howsure.methods.conformal.cross:CVPlus",
        ),
        (
            "howsure_studies.methods.recalibrated:RecalibratedMethod",
            "howsure.recalibration.wrapper:RecalibratedMethod",
        ),
        ("howsure.recalibration.shape:Shape", "howsure.recalibration.shape:Shape"),
        ("howsure_studies_of_mine:Method", "howsure_studies_of_mine:Method"),
    ],
)
def test_targets_are_written_as_version_0_2_wrote_them(now: str, then: str) -> None:
    assert written(now) == written(then) == then
    if "of_mine" not in now:
        assert attribute(then, "class") is attribute(now, "class")


def test_an_option_that_came_later_is_not_written_at_its_default() -> None:
    written = method_spec(method_named("head_regressor"))["options"]
    assert "combine" not in written
    assert written["head"] == {"name": "howsure.methods.deep.heads.normal:Gaussian"}
    moments = method_named("head_regressor", combine="moments")
    spec = method_spec(moments)
    assert spec["options"] == {**written, "combine": "moments"}
    assert method_named(spec["name"], **spec["options"]) == moments
    assert method_spec(method_named("deep_ensemble"))["options"]["combine"] == "mixture"


def test_specs_tell_options_apart_and_refuse_what_has_no_name() -> None:
    specs = [
        json.dumps(method_spec(method_named("cqr", calibration=share))) for share in (0.3, 0.4)
    ]
    assert specs[0] != specs[1]
    with pytest.raises(InputError, match="must be importable to be written down"):
        method_spec(SplitConformal(lambda x: x[:, 0]))

    class Local(LinearRegression):
        pass

    with pytest.raises(InputError, match="must be importable"):
        method_spec(SplitConformal(Local()))
    with pytest.raises(InputError, match="must be a dataclass, have get_params, or keep"):
        method_spec(SplitConformal(json.JSONDecoder()))
