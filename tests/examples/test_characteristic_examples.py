"""The two case studies of the characteristics curve run, and show what the docs say."""

from __future__ import annotations

import gzip
import importlib
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from threadpoolctl import threadpool_limits

from extras import needs
from howsure.core.errors import InputError
from howsure.metrics.characteristic import CharacteristicCurve, characteristic_curve

FOLDER = Path(__file__).parents[2] / "examples"


@pytest.fixture(scope="module")
def load() -> Iterator[Callable[[str], ModuleType]]:
    """Import an example by name; one of them leans on the other, as scripts of one folder may."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(FOLDER)
        yield importlib.import_module


def symmetric(error: npt.ArrayLike, band: npt.ArrayLike) -> CharacteristicCurve:
    half = np.asarray(band, dtype=float)
    return characteristic_curve(error, 0 * half, -half, half)


def test_crossing_of_curves_known_by_hand(load: Callable[[str], ModuleType]) -> None:
    crossing = load("characteristic_gap").crossing_of
    # Bands 1, 1, 1, 9 with mean 3: critical scales 1, 1, 1, 1, so the model needs 3 throughout;
    # the constant band needs 9 below a miss rate of 1/4, and 1 above it.
    assert crossing(symmetric([1, -1, 1, 9], [1, 1, 1, 9])) == 0.25
    assert crossing(symmetric([1, 2, 3, 4], [1, 1, 1, 1])) == 0.0
    # Wide where the error is small: worse at every miss rate.
    assert crossing(symmetric([1, 2, 3, 4], [4, 3, 2, 1])) == 0.0
    # 1, 2, 3, 4 by errors 1, 2, 3, 4: all at 2.5; better for the errors 3 and 4.
    assert crossing(symmetric([1, 2, 3, 4], [1, 2, 3, 4])) == 0.5
    # Bands √e have critical scales √e, so the model needs mean(√e)·√e: less where √e > mean(√e).
    error = np.linspace(1, 9, 50)
    root = np.sqrt(error)
    assert crossing(symmetric(error, root)) == np.mean(root > root.mean())
    # Rows may be drawn again and again: here the last two alone, ten times.
    assert crossing(symmetric(error, error), np.repeat([48, 49], 10)) == 0.5


def test_crossing_saves_the_most_area_to_the_left(load: Callable[[str], ModuleType]) -> None:
    crossing = load("characteristic_gap").crossing_of
    rng = np.random.default_rng(3)
    sd = rng.uniform(0.2, 2.0, 200)
    curve = symmetric(rng.normal(0.0, sd), sd)
    saved = [
        curve.partial_gain(y_range=(0, share), reading="left") for share in np.arange(1, 201) / 200
    ]
    best = int(np.argmax([gain.constant.value - gain.area.value for gain in saved]))
    assert crossing(curve) == pytest.approx((best + 1) / 200)
    assert 0.05 < crossing(curve) < 0.5


def test_bootstrap_of_the_crossing(load: Callable[[str], ModuleType]) -> None:
    gap = load("characteristic_gap")
    rng = np.random.default_rng(4)
    sd = rng.uniform(0.2, 2.0, 400)
    curve = symmetric(rng.normal(0.0, sd), sd)
    rows = gap.bootstrap_crossing(curve, replicates=100)
    assert rows.units == 400
    assert rows.lower <= rows.value <= rows.upper
    assert 0 < rows.standard_error < 0.2
    one = gap.bootstrap_crossing(curve, cluster=np.zeros(400), replicates=10)
    assert (one.units, one.standard_error, one.lower) == (1, 0.0, one.value)


def test_gap_ensemble_shows_the_pattern(load: Callable[[str], ModuleType], tmp_path: Path) -> None:
    gap = load("characteristic_gap")
    file = tmp_path / "gap.png"
    with threadpool_limits(1):
        (study,) = gap.main(models=["ensemble"], quick=True, figure=file)
    check_gap(study)
    assert file.stat().st_size > 10_000
    text = study.table(gap.POINTS)
    assert "gain, all miss rates" in text
    assert "constant band" in text


def test_gap_network_shows_the_pattern(load: Callable[[str], ModuleType]) -> None:
    needs("numpyro")
    gap = load("characteristic_gap")
    (study,) = gap.main(models=["network"], quick=True)
    check_gap(study)
    assert "0 divergent" in study.notes


def check_gap(study: Any) -> None:
    """Crosses the constant band; a small gain over all, a large one at low miss rates."""
    whole, under, left = (found.gain.value for found in study.gains)
    assert abs(whole) < 30
    assert under > 40
    assert whole < left < under
    assert study.crossing.lower > 0.1
    assert study.crossing.upper < 0.4
    constant = study.curve.constant()
    assert study.curve.at(miss_rate=0.7).bandwidth > 1.2 * constant.at(miss_rate=0.7).bandwidth
    assert study.curve.at(miss_rate=0.1).bandwidth < constant.at(miss_rate=0.1).bandwidth


def test_gap_draws_are_functions_with_noise(load: Callable[[str], ModuleType]) -> None:
    gap = load("characteristic_gap")
    functions = gap.Functions(np.tile([[0.0, 10.0]], (5_000, 1)), np.array([1.0, 2.0]), "")
    draws = functions.draws(0, 50)
    assert draws.shape == (5_000, 2)
    np.testing.assert_allclose(draws.mean(axis=0), [0, 10], atol=0.1)
    np.testing.assert_allclose(draws.std(axis=0), [1, 2], rtol=0.05)
    assert functions.draws(0, 1).shape == (5_000, 1)
    bands = functions.curve(np.zeros(5_000)).bands
    np.testing.assert_allclose(bands.below, np.sqrt(25 + 2.5))  # spread of means, mean variance


def test_gap_repeats(load: Callable[[str], ModuleType]) -> None:
    with threadpool_limits(1):
        text = load("characteristic_gap").repeat(1, ["ensemble"], quick=True)
    assert text.splitlines()[1].startswith("ensemble")
    assert text.endswith("1/1")


def write_hours(folder: Path, lines: list[str]) -> None:
    header = "holiday,temp,rain_1h,snow_1h,clouds_all,weather_main,weather_description,date_time"
    (folder / "data.csv.gz").write_bytes(
        gzip.compress("\n".join([f"{header},traffic_volume", *lines]).encode())
    )


def test_traffic_reads_hours(load: Callable[[str], ModuleType], tmp_path: Path) -> None:
    traffic = load("characteristic_traffic")
    with pytest.raises(InputError, match=r"folder must hold data\.csv\.gz"):
        traffic.read(tmp_path)
    rest = "0.0,0,40,Clouds,scattered clouds"
    lines = [
        f"Labor Day,280.0,{rest},2018-09-03 00:00,100",
        f"None,0.0,{rest},2018-09-03 09:00,500",
        "None,280.0,0.0,0,40,Rain,light rain,2018-09-03 09:00,500",
        "None,281.0,9831.3,0,40,Rain,heavy rain,2018-09-04 09:00,600",
    ]
    write_hours(tmp_path, lines)
    hours = traffic.read(tmp_path)
    np.testing.assert_array_equal(hours.y, [100, 500, 600])
    np.testing.assert_array_equal(hours.x[:, 0], [0, 9, 9])  # hour
    np.testing.assert_array_equal(hours.x[:, 1], [0, 0, 1])  # a Monday, and the Tuesday after
    np.testing.assert_array_equal(hours.x[:, 3], [1, 1, 0])  # the holiday holds all day
    np.testing.assert_array_equal(hours.x[:, 4], [280, np.nan, 281])  # 0 K is a fault
    np.testing.assert_array_equal(hours.x[:, 5], [0, 0, np.nan])  # so is 9.8 m of rain
    np.testing.assert_array_equal(hours.x[:, 9], [np.nan, np.nan, 500])  # a day before


def test_traffic_shows_the_pattern(
    load: Callable[[str], ModuleType], data_dir: Callable[[str], Path], tmp_path: Path
) -> None:
    traffic = load("characteristic_traffic")
    file = tmp_path / "traffic.png"
    with threadpool_limits(1):
        studies = traffic.main(
            data_dir("metro_traffic"), every=4, rounds=60, replicates=40, figure=file
        )
    assert [study.model for study in studies] == [
        "quantile regressors",
        "their widths",
        "error model",
    ]
    assert file.stat().st_size > 10_000
    for study in studies[1:]:
        whole, under, left = (found.gain.value for found in study.gains)
        assert abs(whole) < 8
        assert under > 15
        assert whole < left < under
        assert 0.05 < study.crossing.value < 0.3
    assert studies[0].gains[0].gain.value < studies[1].gains[0].gain.value
