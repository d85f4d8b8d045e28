"""The functions of ``howsure.metrics``: found, documented, and usable on what people hold."""

from __future__ import annotations

import importlib
import inspect
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

import howsure
from extras import needs
from howsure import metrics
from howsure.stats.estimate import Estimate

RNG = np.random.default_rng(0)
Y = RNG.normal(size=60)
MEAN, SD = 0.1 * RNG.normal(size=60), np.exp(0.3 * RNG.normal(size=60))
LOWER, UPPER = MEAN - 1.5 * SD, MEAN + 1.5 * SD
CALLS: dict[str, Any] = {
    "covered": lambda f, a: f(a(Y), a(LOWER), a(UPPER)),
    "empirical_coverage": lambda f, a: f(a(Y), a(LOWER), a(UPPER)),
    "mean_width": lambda f, a: f(a(LOWER), a(UPPER)),
    "normalised_width": lambda f, a: f(a(Y), a(LOWER), a(UPPER)),
    "excess": lambda f, a: f(a(Y), a(LOWER), a(UPPER)),
    "deficit": lambda f, a: f(a(Y), a(LOWER), a(UPPER)),
    "interval_score": lambda f, a: f(a(Y), a(LOWER), a(UPPER), coverage=0.9),
    "pinball_loss": lambda f, a: f(a(Y), a(UPPER), level=0.9),
    "crps": lambda f, a: f(a(Y), howsure.Distribution.normal(a(MEAN), a(SD))),
    "twcrps": lambda f, a: f(a(Y), howsure.Distribution.normal(a(MEAN), a(SD)), lower=1.0),
    "log_score": lambda f, a: f(a(Y), howsure.Distribution.normal(a(MEAN), a(SD))),
    "squared_z": lambda f, a: f(a(Y), a(MEAN), a(SD)),
    "variance_ratio": lambda f, a: f(a(Y), a(MEAN), a(SD)),
    "relative_calibration_error": lambda f, a: f(a(Y), a(MEAN), a(SD)),
    "ence": lambda f, a: f(a(Y), a(MEAN), a(SD)),
    "sharpness": lambda f, a: f(a(SD)),
    "calibration_error": lambda f, a: f(a(stats.norm.cdf(Y, MEAN, SD))),
    "miscalibration_area": lambda f, a: f(a(stats.norm.cdf(Y, MEAN, SD))),
    "kendall_tau": lambda f, a: f(a(np.abs(Y - MEAN)), a(SD)),
    "spearman": lambda f, a: f(a(np.abs(Y - MEAN)), a(SD)),
    "binned_r2": lambda f, a: f(a(np.abs(Y - MEAN)), a(SD)),
    "aurc": lambda f, a: f(a(np.abs(Y - MEAN)), a(SD)),
    "excess_aurc": lambda f, a: f(a(np.abs(Y - MEAN)), a(SD)),
    "auucc": lambda f, a: f(a(Y), a(MEAN), a(LOWER), a(UPPER)),
    "root_mean_squared_error": lambda f, a: f(a(Y), a(MEAN)),
    "r_squared": lambda f, a: f(a(Y), a(MEAN)),
    "hsic": lambda f, a: f(a(LOWER < Y), a(SD), coverage=0.9, permutations=19),
    "width_correlation": lambda f, a: f(a(LOWER < Y), a(SD), coverage=0.9, permutations=19),
}
HOLDERS = {
    "list": lambda: list,
    "pandas": lambda: needs("pandas").Series,
    "polars": lambda: needs("polars").Series,
    "torch": lambda: needs("torch").tensor,
}


def number(value: Any) -> Any:
    found = getattr(value, "value", value)
    return getattr(found, "statistic", found)


@pytest.mark.parametrize("holder", HOLDERS)
@pytest.mark.parametrize("name", CALLS)
def test_functions_take_what_people_hold(name: str, holder: str) -> None:
    function = getattr(metrics, name)
    want = CALLS[name](function, np.asarray)
    got = CALLS[name](function, HOLDERS[holder]())
    np.testing.assert_array_equal(number(got), number(want))


def test_all_are_found() -> None:
    assert dir(metrics) == sorted(metrics.__all__)
    assert len(set(metrics.__all__)) == len(metrics.__all__) >= 40
    for name in metrics.__all__:
        function = getattr(metrics, name)
        assert function.__name__ == name
        for part in ("Parameters", "Returns", "Examples"):
            assert f"\n    {part}\n    ---" in function.__doc__, name
        assert getattr(importlib.import_module(function.__module__), name) is function


def test_the_docs_list_them() -> None:
    page = (Path(__file__).parents[2] / "docs/measures/README.md").read_text(encoding="utf-8")
    for name in metrics.__all__:
        parameters = ", ".join(inspect.signature(getattr(metrics, name)).parameters)
        assert f"`{name}({parameters})`" in page


def test_a_name_that_is_near_is_told() -> None:
    code = "import howsure.metrics; howsure.metrics.interval_scor"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "has no attribute 'interval_scor'. Did you mean: 'interval_score'?" in told.stderr


def test_nothing_is_loaded_before_it_is_asked_for() -> None:
    code = (
        "import sys, howsure, howsure.metrics; dir(howsure), dir(howsure.metrics); "
        "print([m for m in ('numpy', 'scipy', 'pyarrow', 'sklearn') if m in sys.modules])"
    )
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert told.stdout.strip() == "[]"


def test_the_face_finds_names_and_submodules() -> None:
    found = dir(howsure)
    assert {"assess", "Intervals", "metrics", "predictions", "conformal"} <= set(found)
    assert not {"cli", "core", "_version", "methods", "studies"} & set(found)
    for name in found:
        getattr(howsure, name)
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        howsure.nonsense  # noqa: B018


def test_an_estimate_is_a_number() -> None:
    found = metrics.ence([1.0, -1.0, 4.0, -4.0], [0.0] * 4, [1.0, 1.0, 2.0, 2.0], bins=2)
    assert isinstance(found, Estimate)
    assert float(found) == 0.5


def test_the_main_ones_agree_with_scoringrules() -> None:
    scoringrules = needs("scoringrules")
    alpha, located = 0.1, {"loc": MEAN, "scale": SD}
    normal, logistic, laplace, t = (
        howsure.Distribution(family, located | shape)
        for family, shape in (
            *(("norm", {}), ("logistic", {}), ("laplace", {})),
            ("t", {"df": np.full(60, 5.0)}),
        )
    )
    for got, want in (
        (metrics.crps(Y, normal), scoringrules.crps_normal(Y, MEAN, SD)),
        (metrics.crps(Y, logistic), scoringrules.crps_logistic(Y, MEAN, SD)),
        (metrics.crps(Y, laplace), scoringrules.crps_laplace(Y, MEAN, SD)),
        (metrics.crps(Y, t), scoringrules.crps_t(Y, 5.0, MEAN, SD)),
        (metrics.log_score(Y, normal), scoringrules.logs_normal(Y, MEAN, SD)),
        (metrics.log_score(Y, t), scoringrules.logs_t(Y, 5.0, MEAN, SD)),
        (
            metrics.interval_score(Y, LOWER, UPPER, coverage=1 - alpha),
            scoringrules.interval_score(Y, LOWER, UPPER, alpha),
        ),
        (metrics.pinball_loss(Y, UPPER, level=0.9), scoringrules.quantile_score(Y, UPPER, 0.9)),
    ):
        np.testing.assert_allclose(got, want, rtol=1e-10)


def test_reductions_are_means_of_their_rows() -> None:
    held = metrics.empirical_coverage(Y, LOWER, UPPER)
    assert held.value == np.mean((LOWER <= Y) & (Y <= UPPER))
    assert metrics.mean_width(LOWER, UPPER).value == pytest.approx(np.mean(UPPER - LOWER))
    twice = metrics.mean_width([0, 0], [1, 4], weights=[2, 1])
    assert twice.value == pytest.approx(2.0)
    result = howsure.assess(Y, howsure.Intervals(LOWER, UPPER, 0.9))
    assert result.value("empirical_coverage") == held.value
    assert result.value("mean_width") == pytest.approx(np.mean(UPPER - LOWER))
    assert metrics.auucc(Y, (LOWER + UPPER) / 2, LOWER, UPPER) == pytest.approx(
        result.value("auucc")
    )


@pytest.mark.parametrize("name", ["covered", "mean_width", "excess", "deficit", "r_squared"])
def test_what_is_wrong_is_told(name: str) -> None:
    bad = LOWER.copy()
    bad[3] = np.nan
    wrong = {"covered": (Y, bad, UPPER), "mean_width": (bad, UPPER), "excess": (Y, bad, UPPER)}
    wrong |= {"deficit": (Y, bad, UPPER), "r_squared": (Y, bad)}
    with pytest.raises(howsure.HowsureError, match="missing"):
        getattr(metrics, name)(*wrong[name])
    short = [np.nan_to_num(value) for value in wrong[name]]
    short[1] = short[1][:59]
    with pytest.raises(howsure.HowsureError, match="must have"):
        getattr(metrics, name)(*short)
