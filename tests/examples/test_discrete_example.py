"""The calibration error of right discrete distributions: its limit, its size, and its page."""

from __future__ import annotations

import importlib
import math
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from extras import needs
from howsure.core.errors import InputError
from howsure.core.progress import subscribe
from howsure.predictions import Distribution
from howsure.topics.calibration.curve import calibration_error
from howsure_studies.engine import published

FOLDER = Path(__file__).parents[2] / "examples"
with pytest.MonkeyPatch.context() as patch:
    patch.syspath_prepend(FOLDER)
    example = importlib.import_module("discrete_ece")

HEADS = {
    "Gaussian": "gaussian",
    "Poisson": "poisson",
    "negative binomial": "negative_binomial",
    "double Poisson": "double_poisson",
}


def test_limit_is_half_the_chance_that_two_draws_agree() -> None:
    for mean in (0.3, 2.0, 25.0):
        masses = stats.poisson(mean).pmf(np.arange(400))
        assert example.bias_by_mean([mean])[0] == pytest.approx(0.5 * (masses**2).sum())
    assert example.bias_by_mean([400.0])[0] == pytest.approx(
        1 / (4 * 20 * math.sqrt(math.pi)), rel=1e-3
    )
    assert example.discrete_bias(Distribution.normal([0.0], [1.0])).tolist() == [0.0]


def test_limit_is_that_of_the_calibration_error_itself() -> None:
    """By the law of P(Y ≤ y): its shares below many levels, and a sample of a million rows."""
    law = stats.poisson(3.0)
    steps = law.cdf(np.arange(60))
    levels = (np.arange(200_000) + 0.5) / 200_000
    reached = np.concatenate([[0.0], steps])[np.searchsorted(steps, levels + 1e-12, side="right")]
    assert float((levels - reached).mean()) == pytest.approx(
        example.bias_by_mean([3.0])[0], abs=1e-5
    )
    y = law.rvs(1_000_000, random_state=np.random.default_rng(0))
    sampled = calibration_error(law.cdf(y), levels=2000).value
    assert sampled == pytest.approx(example.bias_by_mean([3.0])[0], abs=2e-3)


def test_limit_of_laws_over_x_is_the_mean_of_theirs() -> None:
    rng = np.random.default_rng(1)
    x = rng.uniform(1.0, 10.0, 400_000)
    law = Distribution("poisson", {"mu": x})
    pit = law.cdf(law.sample(rng, 1)[:, 0])
    grid = Distribution("poisson", {"mu": 1.0 + 9.0 * (np.arange(3000) + 0.5) / 3000})
    expected = float(example.discrete_bias(grid).mean())
    assert calibration_error(pit, levels=1000).value == pytest.approx(expected, abs=2e-3)


def test_errors_are_near_their_limit_and_as_published() -> None:
    """A set of 2,000 rows has an error of sd 0.006 (0.0065 for the NB); printed are single sets."""
    found = example.discrete_errors(seeds=3, weighting="uniform", replicates=0)
    assert found.laws == tuple(example.LAWS)
    for place, law in enumerate(found.laws):
        rows = published("congruence", table="figure 14", method=HEADS[law])
        printed = {row.measure: row.value for row in rows}
        ours = {name: found.values[name][place].mean() for name in found.values}
        floor = ours["ece_null"] if law == "Gaussian" else 0.0
        assert ours["ece"] == pytest.approx(found.limit[place] + floor, abs=3 * 0.0065 / 3**0.5)
        assert ours["ece"] == pytest.approx(printed["ece"], abs=3 * 0.0065 * (4 / 3) ** 0.5)
        assert ours["cce"] == pytest.approx(printed["cce"], abs=0.008)
        for name in ("ece_exact", "ece_randomised"):
            assert ours[name] < 2.0 * ours["ece_null"]
    np.testing.assert_allclose(found.limit[1], found.limit[3], rtol=1e-6)
    assert found.limit[0] == 0.0
    np.testing.assert_allclose(found.values["ece"][0], found.values["ece_exact"][0])
    assert len(found.table()) == 4
    record = next(r for r in found.records() if r.model == "Poisson" and r.metric == "ece")
    assert record.value == pytest.approx(found.values["ece"][1].mean())


def test_right_laws_have_the_cce_of_right_models() -> None:
    told: list[tuple[str, int, int]] = []
    with subscribe(lambda *step: told.append(step)):
        found = example.discrete_errors(n=400, seeds=2, replicates=9)
    ratio = found.values["cce"].mean(axis=1) / found.values["cce_null"].mean(axis=1)
    assert (ratio < 1.6).all()
    assert [done for stage, done, _ in told if stage.count(":") == 1] == list(range(8))
    assert all(total == 8 for _, _, total in told)


def test_laws_have_the_mean_and_variance_of_the_figure() -> None:
    x = np.array([1.0, 4.2, 9.9])
    for name, law_at in example.LAWS.items():
        law = law_at(x)
        np.testing.assert_allclose(law.point(), x, rtol=0.05, err_msg=name)
        np.testing.assert_allclose(law.sd() ** 2, x, atol=0.15, err_msg=name)
    scipys = stats.nbinom(np.round(x**2 / 0.1), x / (x + 0.1))
    k = np.array([0.0, 3.0, 8.0])
    np.testing.assert_allclose(
        example.LAWS["negative binomial"](x).log_density(k), scipys.logpmf(k)
    )


@pytest.mark.parametrize("options", [{"n": 9}, {"seeds": 0}, {"replicates": -1}])
def test_bad_sizes_are_refused(options: dict[str, int]) -> None:
    with pytest.raises(InputError):
        example.discrete_errors(**options)


def test_laws_that_span_too_much_are_refused() -> None:
    wide = Distribution("negative_binomial", {"mu": [1e6], "dispersion": [5.0]})
    with pytest.raises(InputError, match="at most a million values"):
        example.discrete_bias(wide)


def test_the_study_runs_and_draws(tmp_path: Path) -> None:
    needs("matplotlib")
    path = tmp_path / "figure.png"
    errors, means = example.main(600, 2, replicates=2, path=path)
    assert 5_000 < path.stat().st_size < 150_000
    assert (np.abs(means["ece"] - means["limit"]) < 0.03).all()
    assert (means["ece_exact"] < 0.03).all()
    told = example.text(errors, means)
    assert "negative binomial" in told
    assert f"{means['limit'][1]:.4f}" in told


def test_help_says_what_can_be_asked() -> None:
    done = subprocess.run(
        [sys.executable, FOLDER / "discrete_ece.py", "--help"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert "--plot" in done.stdout
