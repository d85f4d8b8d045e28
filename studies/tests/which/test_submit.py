"""A method of one's own is ranked in a plan of the study: regressors as they come, own classes."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from extras import needs
from howsure.cli.main import app
from howsure.core.errors import HowsureWarning
from howsure_studies.tasks.files import DataNotFoundError
from howsure_studies.which import study
from which.tables import split_of

TABLES = {"line": split_of(300), "later": split_of(300, units=60, late=20)}
PLAN = """
[plan]
name = "tiny"
study = "which"
[options]
rows = 200
test = 80
[worlds]
line = "line"
"later, late" = {world = "later", shifted = true}
gone = "lost"
[methods]
climatology = "constant"
line = "linear_t"
"""
OWN = """
import numpy as np

class Near:
    def __init__(self, neighbours=30, ends=False):
        self.neighbours, self.ends = neighbours, ends

    def fit(self, x, y, rng):
        self.x, self.y = x, y
        return self

    def predict(self, x):
        away = np.abs(x[:, None, :] - self.x[None]).sum(axis=2)
        near = self.y[np.argsort(away, axis=1)[:, : self.neighbours]]
        return tuple(np.quantile(near, [0.05, 0.95], axis=1)) if self.ends else near
"""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder with a plan and a method, where the study knows two tables that are made up."""

    def table_of(name: str) -> object:
        if name not in TABLES:
            raise DataNotFoundError(f"table {name!r} is not here")
        return TABLES[name]

    monkeypatch.setattr(study, "split_names", lambda: (*TABLES, "lost"))
    monkeypatch.setattr(study, "split_table", table_of)
    study._table.cache_clear()
    (tmp_path / "tiny.toml").write_text(PLAN, encoding="utf-8")
    (tmp_path / "near_methods.py").write_text(OWN, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield tmp_path
    study._table.cache_clear()
    sys.modules.pop("near_methods", None)


def submit(method: str, *arguments: str) -> Result:
    told = ("bench", "submit", method, "--plan", "tiny.toml", "--store", "kept", "--jobs", "0")
    return CliRunner().invoke(app, [*told, *arguments], env={"COLUMNS": "120"})


def scores(path: Path) -> dict[str, float]:
    """The mean score ratio of each method that a page holds."""
    records = json.loads(path.read_text(encoding="utf-8"))["records"]
    found: dict[str, list[float]] = {}
    for record in records:
        if record["metric"] == "score_ratio":
            found.setdefault(record["model"], []).append(record["value"])
    return {name: sum(values) / len(values) for name, values in found.items()}


@pytest.mark.slow
def test_a_forest_of_another_package_is_ranked_beside_the_plan(place: Path) -> None:
    needs("quantile_forest")
    forest = "quantile_forest:RandomForestQuantileRegressor"
    small = ("--label", "forest", "--option", "n_estimators=30", "--option", "min_samples_leaf=5")
    with pytest.warns(HowsureWarning, match="left out because their data are not .*: gone") as seen:
        told = submit(forest, *small, "--with-plan", "-o", "ranks.json")
    assert len(seen) == 1
    assert told.exit_code == 0, told.output
    assert "no results of" not in told.stderr
    assert "note: forest is run as RandomForestQuantileRegressor" in told.stderr
    found = scores(place / "ranks.json")
    assert set(found) == {"climatology", "line", "forest"}
    assert found["line"] < found["forest"] < found["climatology"] == pytest.approx(1.0, abs=1e-6)
    with pytest.warns(HowsureWarning, match="gone"):
        again = submit(forest, *small, "-o", "again.json")
    assert again.exit_code == 0
    assert "no results of" not in again.stderr
    assert scores(place / "again.json") == found


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:left out")
@pytest.mark.parametrize(
    ("method", "options", "runs_as"),
    [
        ("sklearn.linear_model:BayesianRidge", (), ""),  # return_std
        (
            "sklearn.linear_model:QuantileRegressor",  # a parameter quantile
            ("alpha=0.0", "solver=highs"),
            "quantile regression (QuantileRegressor)",
        ),
        (
            "sklearn.linear_model:LinearRegression",  # points alone
            (),
            "split conformal (LinearRegression)",
        ),
        ("near_methods:Near", ("neighbours=40",), ""),  # samples
    ],
)
def test_what_says_something_of_y_suffices(
    place: Path, method: str, options: tuple[str, ...], runs_as: str
) -> None:
    given = [part for option in options for part in ("--option", option)]
    told = submit(method, *given, "--world", "line", "-o", "ranks.json")
    assert told.exit_code == 0, told.output
    assert "kept has no results of climatology, line; --with-plan runs them" in told.stderr
    assert ("is run as" in told.stderr) == bool(runs_as)
    assert runs_as in told.stderr
    ((name, score),) = scores(place / "ranks.json").items()
    assert name == method.partition(":")[2]
    assert 0.6 < score < 0.9


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:left out")
def test_a_method_that_fails_says_why_and_runs_again_when_asked(place: Path) -> None:
    """One interval is too little: quantiles are asked for."""
    one = ("near_methods:Near", "--option", "ends=true", "--world", "line")
    told = submit(*one)
    assert told.exit_code == 1
    reason = "coverage must be one number for one pair of ends in prediction"
    assert f"failed: Near on line: InputError: Near.predict(x): {reason}" in told.stderr
    assert "quantiles, samples or a distribution work at any coverage" in told.stderr
    assert "--retry-failed runs them again" in told.stderr
    assert submit(*one).exit_code == 1
    (place / "near_methods.py").write_text(OWN.replace("if self.ends", "if 0"), encoding="utf-8")
    sys.modules.pop("near_methods")
    assert submit(*one).exit_code == 1
    assert submit(*one, "--retry-failed").exit_code == 0


@pytest.mark.filterwarnings("ignore:left out")
def test_labels_and_worlds_are_checked_before_any_work(place: Path) -> None:
    told = submit("linear_t", "--label", "line", "--world", "line")
    assert "--label must differ" in str(told.exception)
    told = submit("linear_t", "--label", "mine", "--world", "lime")
    assert "near: line" in str(told.exception)
    assert not (place / "kept").exists()
