"""The studies of the conditional congruence error run, and show what the docs say."""

from __future__ import annotations

import importlib
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from scipy import stats
from threadpoolctl import threadpool_limits

from extras import needs
from howsure.core.errors import InputError
from howsure.core.rng import child

FOLDER = Path(__file__).parents[3] / "examples"
with pytest.MonkeyPatch.context() as patch:
    patch.syspath_prepend(FOLDER)
    sweeps = importlib.import_module("congruence_sweeps")
    congruence_studies = importlib.import_module("congruence_studies")


@pytest.fixture(scope="module")
def example() -> ModuleType:
    return congruence_studies


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("figures")


@pytest.fixture(scope="module")
def studies(example: ModuleType, drawn: Path) -> Mapping[str, Any]:
    needs("matplotlib")
    with threadpool_limits(1):
        found: Mapping[str, Any] = example.main(2, quick=True, folder=drawn)
    return found


def means(study: Any) -> list[float]:
    return [case.mean for case in study.cases]


def nulls(study: Any) -> list[float]:
    return [case.expected for case in study.cases]


def ratios(study: Any) -> list[float]:
    return [case.mean / case.expected for case in study.cases]


def rising(values: list[float]) -> bool:
    return bool((np.diff(values) > 0.0).all())


@pytest.mark.parametrize("name", ["equal spread", "growing spread"])
@pytest.mark.rate
def test_twelve_comparisons_agree_with_earlier_repetitions(
    studies: Mapping[str, Any], name: str
) -> None:
    cases = studies[name].cases
    for case in cases:
        centre, spread = case.checked
        assert abs(case.mean - centre) < 3.0 * spread, case.label
        assert case.means.shape == (2, 1)
    assert (
        np.argsort(means(studies[name])).tolist()
        == np.argsort([case.published for case in cases]).tolist()
    )


def test_how_many_draws_lie_as_far() -> None:
    """Of normal draws with known covariance, against the chi-squared law of the distance."""
    rng = np.random.default_rng(0)
    roots = rng.normal(size=(6, 6))
    draws = rng.normal(size=(4000, 6)) @ roots.T + 5.0
    for radius in (1.0, 2.5, 3.5):
        point = 5.0 + roots @ (radius * np.eye(6)[2])
        wanted = stats.chi2.sf(radius**2, 6)
        assert sweeps.as_far(draws, point) == pytest.approx(wanted, abs=0.02)


@pytest.mark.rate
def test_published_comparisons_are_one_draw_of_a_shared_truth() -> None:
    """Their deviations come together, and by other choices than stated they are out of reach."""
    with threadpool_limits(1):
        for setting in sweeps.BEHAVIOURS:
            means = sweeps.six_means(setting, 100)
            assert sweeps.as_far(means, setting.published) > 0.005
            assert np.corrcoef(means.T)[1, 3] < -0.2
            np.testing.assert_allclose(
                means.mean(axis=0), [centre for centre, _ in setting.checked], atol=0.01
            )
        for options in ({"bandwidth": 2.0}, {"regularization": 0.09}):
            other = sweeps.six_means(sweeps.BEHAVIOURS[0], 40, **options)
            assert sweeps.as_far(other, sweeps.BEHAVIOURS[0].published) == 0.0


@pytest.mark.slow
def test_figure_one_agrees_with_earlier_repetitions(studies: Mapping[str, Any]) -> None:
    checked = [
        case for name in ("figure 1", "calibration") for case in studies[name].cases if case.checked
    ]
    assert len(checked) == 3
    for case in checked:
        assert abs(case.mean - case.checked[0]) < 3.0 * case.checked[1], case.label


@pytest.mark.slow
def test_only_congruence_finds_the_model_that_ignores_x(studies: Mapping[str, Any]) -> None:
    for case in studies["calibration"].cases:
        assert case.mean < 2.0 * case.expected
    for case in studies["figure 1"].cases:
        if case.label.startswith("ignores x"):
            assert case.mean > 2.0 * case.expected
            assert max(case.p_values) == 1.0 / 20.0  # none of 19 replicates as large
        else:
            assert case.mean < 1.5 * case.expected
            assert min(case.p_values) > 0.05


@pytest.mark.slow
def test_choices_scale_value_and_null_together(studies: Mapping[str, Any]) -> None:
    strength, width = studies["lambda"], studies["gamma"]
    assert rising(means(strength)[::-1])
    assert rising(nulls(strength)[::-1])
    assert means(strength)[0] > 4.0 * means(strength)[-1]
    assert max(ratios(strength)) < 2.0 * min(ratios(strength))
    assert rising(nulls(width))
    assert rising(ratios(width)[::-1])


@pytest.mark.parametrize("name", ["kernel", "output kernel"])
def test_laplacian_of_public_code_is_the_gaussian_for_one_column(
    studies: Mapping[str, Any], name: str
) -> None:
    study = studies[name]
    np.testing.assert_allclose(
        study["squared laplacian"].values ** 2, study["rbf"].values ** 2, atol=1e-8
    )
    assert study["laplacian"].mean < 0.95 * study["rbf"].mean


def test_smaller_samples_keep_the_shape_and_raise_the_null(studies: Mapping[str, Any]) -> None:
    study = studies["down-sampling"]
    kept = list(sweeps.shape_kept(study).values())
    assert rising(kept)
    assert kept[0] > 0.9
    assert rising(nulls(study)[::-1])
    assert rising(ratios(study))


@pytest.mark.parametrize("name", ["right", "too wide", "other relation"])
def test_draws_approach_the_exact_embedding(studies: Mapping[str, Any], name: str) -> None:
    study = studies[f"draws, {name}"]
    null = nulls(study)
    assert (
        null[0] > null[1] > null[2] > null[-1]
    )  # later steps are within the noise of 19 replicates
    spread = [case.draw_sd for case in study.cases]
    assert spread[4] < 0.6 * spread[0]
    assert np.isnan(spread[-1])
    assert abs(study["ℓ = 20"].mean - study["exact"].mean) < 0.005


def test_draws_add_their_variance_to_the_squared_value(studies: Mapping[str, Any]) -> None:
    """E of the squared value is the exact one plus Σ αᵢ² (1 − ‖μᵢ‖²) / ℓ: by dense formulas."""
    study = studies["draws, right"]
    for seed in range(2):
        rng = child(seed, "congruence studies", "draws")
        x, y = sweeps.WAVE.pairs(rng, 200, 0.0, 2.0 * np.pi)
        grid = study["exact"].grid[seed]
        gram = np.exp(-0.5 * np.subtract.outer(x, x) ** 2)
        weights = np.linalg.solve(
            gram + 200 * 0.1 * np.eye(200), np.exp(-0.5 * np.subtract.outer(x, grid) ** 2)
        )
        gamma = 1.0 / (2.0 * y.var(ddof=1))
        length = 1.0 / np.sqrt(1.0 + 4.0 * gamma * 0.5**2)  # squared, of a normal law of sd 0.5
        added = (weights**2).sum(axis=0).mean() * (1.0 - length)
        exact = (study["exact"].values[seed] ** 2).mean()
        for count in (1, 2, 5):
            squares = (study[f"ℓ = {count}"].values[seed] ** 2).mean(axis=1)
            error = squares.std(ddof=1) / np.sqrt(len(squares))
            assert abs(squares.mean() - exact - added / count) < 3.0 * error


def test_tables_and_figures(example: ModuleType, studies: Mapping[str, Any], drawn: Path) -> None:
    text = example.tables(studies.values())
    for study in studies.values():
        assert study.title in text
        for case in study.cases:
            assert f"{case.mean:.4f}" in text
    assert "nan" not in text
    files = sorted(path.name for path in drawn.iterdir())
    assert files == [
        "congruence-behaviours.png",
        "congruence-choices.png",
        "congruence-draws.png",
    ]
    assert all(5_000 < path.stat().st_size < 120_000 for path in drawn.iterdir())


def test_a_single_set_of_data_has_no_spread() -> None:
    study = sweeps.behaviour(sweeps.BEHAVIOURS[0], 1)
    assert np.isnan(study.cases[0].data_sd)
    assert "nan" not in study.text()


def test_help_says_what_can_be_asked() -> None:
    done = subprocess.run(
        [sys.executable, FOLDER / "congruence_studies.py", "--help"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert "--plot" in done.stdout


def test_normal_worlds_draw_their_law() -> None:
    world = sweeps.NormalWorld(np.sin, sweeps.swelling(2.0))
    x, y = world.pairs(np.random.default_rng(0), 20_000, 0.0, 3.0)
    z = (y - np.sin(x)) / (2.0 * np.sqrt(np.maximum(x, 0.2)))
    assert abs(z.mean()) < 0.03
    assert abs(z.std() - 1.0) < 0.02
    np.testing.assert_allclose(world.at(x).sd[:, 0], 2.0 * np.sqrt(np.maximum(x, 0.2)))
    assert sweeps.always(3.0)(np.zeros(2)).tolist() == [3.0, 3.0]


def test_a_behaviour_study_is_near_earlier_repetitions() -> None:
    study = sweeps.behaviour(sweeps.BEHAVIOURS[1], 2)
    case = study.cases[3]
    assert abs(case.mean - case.checked[0]) < 3 * case.checked[1]
    assert [one.published for one in study.cases] == list(sweeps.BEHAVIOURS[1].published)
    with pytest.raises(InputError, match="case must be one of"):
        study["another law"]


def test_figure_one_tells_the_model_that_ignores_x() -> None:
    congruence, calibration = sweeps.ignoring_x(1, 9)
    wrong = congruence[f"{sweeps.IGNORING}, variance, exact"]
    assert wrong.mean > 5.0 * wrong.expected
    assert calibration[sweeps.IGNORING].mean < 3.0 * calibration[sweeps.IGNORING].expected


def test_studies_need_data() -> None:
    with pytest.raises(InputError, match="seeds must be"):
        sweeps.behaviour_studies(0)
