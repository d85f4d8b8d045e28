"""Any method on tables and images with a shift."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import ARDRegression, LinearRegression

from howsure.core.errors import InputError, UnanswerableError
from howsure.core.progress import listening
from howsure.core.rng import child
from howsure.methods.conformal.inductive import SplitConformal
from howsure.methods.interface import Beliefs, Fitted, Method, located
from howsure.methods.linear import LinearT
from howsure.methods.selective import GMMScore, KNNScore, Selective
from howsure.studies.shift.task import model_answers, run_shift
from howsure.studies.tasks import Part, Task, shift_task, table_task


def bent(n: int = 1200, seed: int = 0) -> Task:
    """A line at home; elsewhere it bends away."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(0.0, 2.0, size=n)
    y = np.where(x < 1.0, x, 1.0 + 3.0 * (x - 1.0)) + 0.1 * rng.normal(size=n)
    table = {"x": x, "twice": 2.0 * x, "y": y, "where": np.where(x < 1.0, "home", "far")}
    return table_task(
        table, "y", split_by="where", home=["home"], features=["x"], name="bent", units="m"
    )


@pytest.mark.parametrize("method", ["linear_t", LinearT(), LinearRegression(), ARDRegression()])
def test_coverage_holds_at_home_and_falls_elsewhere(method: object) -> None:
    result = run_shift(bent(), method)
    home, away = result.value("test_coverage", "home"), result.value("test_coverage", "shift")
    assert home.low < 0.9 < home.high
    assert away.high < 0.4
    assert result.value("relative_mae_change", "shift").low > 1.0
    assert result.tests == ("shift", "home")
    assert (result.task, result.units) == ("bent", "m")


def test_numbers_are_those_of_the_method_fitted_by_hand() -> None:
    task = bent()
    fitted = LinearT().fit(task.train.x, task.train.y, child(0, "shift", "bent"))
    low, high = fitted.predict(task.val.x).outcome.interval(0.8)
    excess = np.sort(np.maximum(low - task.val.y, task.val.y - high))
    run = run_shift(task, LinearT(), coverage=0.8).runs[0]
    q = excess[(8 * len(excess)) // 10]
    assert run.q == q
    low, high = fitted.predict(task.test.x).outcome.interval(0.8)
    covered = (low - q <= task.test.y) & (task.test.y <= high + q)
    assert run.tests["shift"].coverage == covered.mean()


def test_a_selective_method_keeps_what_is_home() -> None:
    task = bent()
    result = run_shift(task, Selective(LinearT(), KNNScore(3, "euclidean")))
    home, away = result.value("prediction_rate", "home"), result.value("prediction_rate", "shift")
    assert abs(home.mean - 0.95) < 0.05
    assert away.mean < 0.1
    plain = run_shift(task, LinearT())
    assert result.value("test_coverage_all").mean == plain.value("test_coverage").mean
    assert result.runs[0].q == plain.runs[0].q
    tight = run_shift(task, Selective(LinearT(), KNNScore(3, "euclidean"), share=0.5))
    assert abs(tight.value("prediction_rate", "home").mean - 0.5) < 0.15
    assert tight.share == 0.5
    by_hand = run_shift(task, Selective(LinearT(), "gmm"), share=0.5)
    assert abs(by_hand.value("prediction_rate", "home").mean - 0.5) < 0.15


def test_seeds_are_runs_and_each_is_told() -> None:
    told = []
    method = Selective(LinearT(), GMMScore(2))
    with listening(lambda *step: told.append(step)):
        result = run_shift(bent(), method, seeds=(0, 1, 2))
    assert told == [("bent", done, 3) for done in range(4)]
    assert len(result.runs) == 3
    assert result.options["seeds"] == "0, 1, 2"
    again = run_shift(bent(), method, seeds=(1,))
    assert again.runs[0].threshold == result.runs[1].threshold
    assert result.runs[0].q == result.runs[1].q


@dataclass(frozen=True)
class Brightness(Method):
    """Counts by mean brightness; foreign where bright."""

    @property
    def name(self) -> str:
        return "brightness"

    def fit(self, x: npt.ArrayLike, y: npt.ArrayLike, rng: np.random.Generator) -> Fitted:
        light = np.asarray(x).mean(axis=(1, 2, 3))
        return Line(*np.polyfit(light, np.asarray(y), 1))


@dataclass(frozen=True)
class Line(Fitted):
    slope: float
    intercept: float

    def predict(self, x: npt.ArrayLike) -> Beliefs:
        mean = self.slope * self.score(x) + self.intercept
        return Beliefs(located("norm", mean, np.ones(len(mean))))

    def score(self, x: npt.ArrayLike) -> npt.NDArray[np.float64]:
        return np.asarray(x).mean(axis=(1, 2, 3))


def pictures() -> Task:
    rng = np.random.default_rng(2)

    def part(name: str) -> Part:
        top = {"train": 100, "val": 100, "full": 200}[name]
        light = rng.uniform(0, top, size=300)
        images = np.clip(light[:, None, None, None] + rng.normal(size=(300, 4, 4, 1)), 0, 255)
        return Part(x=images.astype(np.uint8), y=light, ids=np.arange(300).astype(str))

    return Task(
        name="lights",
        title="Lights",
        target="light",
        units="lx",
        tests=("full",),
        images=True,
        scaling="imagenet",
        read=lambda name: {name: part(name)},
    )


def test_images_and_a_score_of_ones_own() -> None:
    result = run_shift(pictures(), Brightness())
    assert abs(result.value("prediction_rate").mean - 0.475) < 0.1
    assert result.value("test_coverage").low < 0.9
    assert result.value("test_coverage").high > 0.9


def test_intervals_without_end_have_no_point_but_cover() -> None:
    x = np.linspace(0.0, 1.0, 30)
    task = table_task({"x": x, "y": x, "at": x}, "y", split_by="at", up_to=0.5)
    method = SplitConformal(LinearRegression(), calibration=3, coverages=(0.9,))
    fitted = method.fit(task.train.x, task.train.y, np.random.default_rng(0))
    answers = model_answers(fitted, task.test, 0.9)
    assert np.isnan(answers.point).all()
    assert np.isinf(answers.upper).all()
    result = run_shift(task, method)
    assert math.isnan(result.value("test_mae").mean)
    assert "point forecasts are missing" in result.value("test_mae").reason


@dataclass(frozen=True)
class Mute(Method):
    @property
    def name(self) -> str:
        return "mute"

    def fit(self, x: npt.ArrayLike, y: npt.ArrayLike, rng: np.random.Generator) -> Fitted:
        return _Mute()


@dataclass(frozen=True)
class _Mute(Fitted):
    def predict(self, x: npt.ArrayLike) -> Beliefs:
        from howsure.predictions import Intervals

        return Beliefs(Intervals(np.zeros(len(x)), np.ones(len(x))))


def test_bad_input_is_told() -> None:
    task = bent(200)
    with pytest.raises(InputError, match="seeds must hold at least one seed"):
        run_shift(task, "linear_t", seeds=())
    with pytest.raises(InputError, match=r"coverage must be one that .* gives \(0.5\), got 0.9"):
        run_shift(task, SplitConformal(LinearRegression(), coverages=(0.5,)))
    with pytest.raises(InputError, match="coverage must lie strictly between 0 and 1, got 90"):
        run_shift(task, "linear_t", coverage=90)
    with pytest.raises(InputError, match="near: linear_t"):
        run_shift(task, "linear")
    with pytest.raises(UnanswerableError, match="nominal coverage of the intervals is unknown"):
        run_shift(task, Mute())


@pytest.mark.parametrize(
    ("name", "folder", "least", "most"),
    [
        ("california", "shift_california_housing", 0.62, 0.74),
        ("bike-hours", "shift_bike_hour", 0.35, 0.55),
    ],
)
def test_real_tables_lose_coverage_elsewhere(
    name: str, folder: str, least: float, most: float, data_dir: Callable[[str], Path]
) -> None:
    task = shift_task(name, data_dir(folder))
    result = run_shift(task, SplitConformal(HistGradientBoostingRegressor(), coverages=(0.9,)))
    home, away = result.value("test_coverage", "home"), result.value("test_coverage", "shift")
    assert home.low < 0.9 < home.high
    assert least < away.mean < most
    assert result.value("relative_mae_change", "shift").low > 0.5
