"""`howsure simulate` as a user runs it."""

from __future__ import annotations

import importlib
import json
import math
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv
from sklearn.linear_model import LinearRegression
from typer.testing import CliRunner

from howsure.cli.entry import Interrupted
from howsure.cli.main import app
from howsure.core.errors import InputError
from howsure_studies.engine import Plan, make_world, trials_of, world_identity
from howsure_studies.methods.linear import LinearT
from howsure_studies.pointwise import PointwiseResult, Precision, pointwise, records
from howsure_studies.pointwise.command import parse_method, world_entry
from howsure_studies.tasks import read_learning_table
from howsure_studies.tasks.worlds import ForestWorld, World, world_named
from sameness import same

RUN = [sys.executable, "-c", "from howsure.cli.entry import main; main()"]
QUICK = ("--trials", "4", "--train-rows", "40", "--test-rows", "30")
MODULE = """
import numpy as np
from sklearn.linear_model import Ridge


class Spread(Ridge):
    def fit(self, X, y):
        super().fit(X, y)
        self.sd_ = np.std(y - super().predict(X))
        return self

    def predict(self, X, return_std=False):
        mean = super().predict(X)
        return (mean, np.full(len(mean), self.sd_)) if return_std else mean


class Broken(Spread):
    def fit(self, X, y):
        raise RuntimeError("this model is broken")


class Point(Ridge):
    pass
"""

OWN = """
import numpy as np
from howsure import Distribution


class Mine:
    def __init__(self, factor=1.0):
        self.factor = factor

    def fit(self, x, y, rng):
        self.mean, self.sd = np.mean(y), self.factor * np.std(y)

    def predict(self, x):
        return Distribution.normal(np.full(len(x), self.mean), np.full(len(x), self.sd))
"""


@pytest.fixture(autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of its own, which no other test has filled."""
    folder = tmp_path_factory.mktemp("cache")
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder))
    return folder / "howsure" / "simulate"


def command(*arguments: object, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """A real process, as its exit status and its streams are what is promised."""
    told = [*RUN, "simulate", *map(str, arguments)]
    return subprocess.run(told, capture_output=True, text=True, check=False, cwd=cwd)


def inside(*arguments: object) -> str:
    """The same in this process, for speed."""
    told = ["simulate", *map(str, arguments)]
    result = CliRunner().invoke(app, told, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


def refused(*arguments: object) -> str:
    """The message of a refusal: our own, or that of an option whose value is none of its values."""
    told = ["simulate", *map(str, arguments)]
    try:
        result = CliRunner().invoke(app, told, catch_exceptions=False)
    except InputError as error:
        return str(error)
    assert result.exit_code == 2
    return result.output


def columns(rows: int = 120) -> dict[str, Any]:
    rng = np.random.default_rng(1)
    size = rng.uniform(size=rows)
    site = rng.choice(["north", "south"], rows)
    return {
        "size": size,
        "site": site,
        "unit": ["m"] * rows,
        "name": [f"row {i}" for i in range(rows)],
        "old": rng.uniform(size=rows) < 0.3,
        "price": 3 * size + (site == "north") + 0.1 * rng.normal(size=rows),
    }


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "houses.csv"
    csv.write_csv(pa.table(columns()), path)
    return path


def test_a_world_is_simulated_and_every_form_written(tmp_path: Path) -> None:
    outputs = [tmp_path / f"r.{ending}" for ending in ("html", "md", "json", "csv")]
    flags = [part for path in outputs for part in ("-o", path)]
    told = inside("heteroscedastic", "--method", "linear_t", "--coverage", "0.8", *QUICK, *flags)
    assert "The 80\xa0% prediction intervals of linear t" in " ".join(told.split(" "))
    assert "Nominal 80 %" in told
    for path in outputs:
        assert f"written: {path}" in told
        assert path.stat().st_size > 200
    held = json.loads(outputs[2].read_text(encoding="utf-8"))
    expected = pointwise(
        "toy_heteroscedastic", LinearT(), coverages=(0.8,), trials=4, n_train=40, n_test=30
    )
    found = {r["metric"]: r["value"] for r in held["records"]}
    assert found["picf_brier"] == pytest.approx(expected.brier("picf", 0.8).raw)
    assert held["facts"]["World"] == world_named("toy_heteroscedastic").description
    assert "heteroscedastic" in held["command"] or held["command"].startswith("howsure")


@pytest.mark.rate
def test_a_table_becomes_a_world_with_the_users_own_model(table: Path) -> None:
    """A module beside the table is found, as `python -m` would find it, by child processes too."""
    (table.parent / "mypkg.py").write_text(MODULE, encoding="utf-8")
    done = command(
        table.name,
        *("--target", "price", "--method", "mypkg:Spread:alpha=2.0", "--trials", "12"),
        *("--method", "split_conformal:regressor=mypkg:Point", "--coverage", "0.9"),
        *("--noise", "laplace", "--residuals", "in-sample", "-o", "out.md", "--jobs", "1"),
        cwd=table.parent,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    written = (table.parent / "out.md").read_text(encoding="utf-8")
    words = ("Spread", "split conformal (Point)", "houses", "Where coverage differs significantly")
    for word in words:
        assert word in written


def test_the_table_is_encoded_and_what_says_nothing_named(table: Path) -> None:
    found = read_learning_table(table, "price")
    plain = columns()
    rarer = min(("north", "south"), key=lambda site: (plain["site"] == site).sum())
    assert found.columns == ("size", f"site={rarer}", "old=true")
    held = dict(zip(found.columns, found.x.T, strict=True))
    np.testing.assert_allclose(held["size"], plain["size"])
    np.testing.assert_array_equal(held[f"site={rarer}"], plain["site"] == rarer)
    np.testing.assert_array_equal(held["old=true"], plain["old"])
    np.testing.assert_allclose(found.y, plain["price"])
    (note,) = found.notes
    assert "'unit', 'name'" in note
    chosen = read_learning_table(table, "price", features=["old", "size"])
    assert chosen.columns == ("old=true", "size")


def test_rare_labels_share_a_column(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    labels = ["a"] * 60 + ["b"] * 58 + ["c", "d"]
    csv.write_csv(pa.table({"kind": labels, "y": np.arange(120.0)}), path)
    found = read_learning_table(path, "y")
    assert found.columns == ("kind=b", "kind=(other)")
    np.testing.assert_array_equal(found.x[:, 0], np.array(labels) == "b")
    assert np.flatnonzero(found.x[:, 1]).tolist() == [118, 119]


def test_rows_with_missing_cells_are_refused_or_left_out(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("x,z,y\n1,a,1\n,b,2\n3,,3\n4,a,\n5,b,5\n6,a,6\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"1 in 'y', 1 in 'x', 1 in 'z'; --missing drop"):
        read_learning_table(path, "y", flag="--")
    found = read_learning_table(path, "y", missing="drop")
    assert (found.y.tolist(), found.ids.tolist()) == ([1, 5, 6], ["0", "4", "5"])
    assert "3 rows with missing cells are left out" in found.notes[0]


@pytest.mark.parametrize(
    ("text", "target", "words"),
    [
        ("x,y\n1,a\n2,b\n", "y", "column 'y' must contain numbers"),
        (
            "x,y\n1,1\n2,2\n",
            "z",
            "--target: no column of .* is called 'z'; the columns are 'x', 'y'",
        ),
        ("y\n1\n2\n", "y", "must have a column beside 'y'"),
        ("x,y\nm,1\nm,2\n", "y", "must have a column that varies, got 'x'"),
        ("x,y\n,1\n,2\n", "y", "must have a row without missing cells"),
    ],
)
def test_a_table_that_cannot_serve_is_refused(
    tmp_path: Path, text: str, target: str, words: str
) -> None:
    path = tmp_path / "t.csv"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=words):
        read_learning_table(path, target, missing="drop", flag="--")


def test_a_table_with_labels_and_gaps_is_read_as_asked(tmp_path: Path) -> None:
    """Its numbers alone enter the address: a label is a column, a gap is left out."""
    rng = np.random.default_rng(0)
    rows = [
        f"{size:.3f};{site};same;{size + 0.1 * noise:.3f}".replace(".", ",")
        for size, site, noise in zip(
            rng.random(60), rng.choice(["Nö", "Sü"], 60), rng.normal(size=60), strict=True
        )
    ]
    (tmp_path / "all.csv").write_text(
        "\n".join(["size;site;unit;y", *rows, ";Nö;same;1,0", ""]), encoding="latin-1"
    )
    entry: dict[str, Any] = {"table": "all.csv", "target": "y", "trees": 30, "encoding": "latin-1"}

    def of(**options: Any) -> list[str]:
        worlds = {"w": {**entry, "missing": "drop", "decimal": ",", **options}}
        plan = Plan(
            name="t",
            study="pointwise",
            worlds=worlds,
            methods={"line": "linear_t"},
            options={"simulations": 2, "block": 2},
            folder=tmp_path,
        )
        return [trial.address for trial in trials_of(plan)]

    assert of() == of(features=["size", "site"]) == of(features=["size", "site", "unit"])
    assert not set(of()) & set(of(features=["size"]))
    (tmp_path / "known.csv").write_text("\n".join(["size;site;unit;y", *rows]), encoding="latin-1")
    assert of() == of(table="known.csv", missing="error")
    for options, words in (
        ({"missing": "error"}, "no cell may be missing or infinite, got 1 in 'size'; missing drop"),
        ({"missing": "fill"}, "missing must be one of error, drop, got 'fill'"),
        ({"features": ["sise"]}, "features: no column of .* is called 'sise'"),
        ({"features": "size"}, "features must be a list of columns, got 'size'"),
        ({"target": "site"}, "column .site. must contain numbers"),
        ({"targets": "y"}, "near: target"),
    ):
        with pytest.raises(InputError, match=words):
            of(**options)


def test_residuals_and_noise_decide_the_world(table: Path) -> None:
    def made(residuals: str, noise: str | None) -> tuple[World, tuple[str, ...], dict[str, str]]:
        label, entry, names, facts = world_entry(
            str(table), "price", noise=noise, residuals=residuals, seed=0, reading={"features": []}
        )
        return make_world(*world_identity(label, entry, Path())), names, facts

    outer, names, facts = made("out-of-bag", None)
    inner, _, _ = made("in-sample", "student_t3")
    assert isinstance(outer, ForestWorld)
    assert isinstance(inner, ForestWorld)
    assert inner.row_scale.mean() < outer.row_scale.mean()
    assert inner.noise.name == "student_t"
    assert outer.name == "houses"
    assert names[0] == "size"
    assert facts["Noise"] == "normal, from out-of-bag residuals"
    assert "'unit'" in facts["Reading"]


@pytest.mark.parametrize(
    ("spec", "name", "options"),
    [
        ("linear_t", "linear_t", {}),
        ("linear_t:intercept=false", "linear_t", {"intercept": False}),
        ("pkg.mod:Class", "pkg.mod:Class", {}),
        ("pkg.mod:Class:a=1,b=x", "pkg.mod:Class", {"a": 1, "b": "x"}),
        ("m:coverages=[0.8,0.9],k=2", "m", {"coverages": [0.8, 0.9], "k": 2}),
        ("m:regressor=a.b:C", "m", {"regressor": "a.b:C"}),
        (
            "m:regressor=forest,regressor.max_depth=8",
            "m",
            {"regressor": {"name": "forest", "max_depth": 8}},
        ),
        ("m:w=a=b", "m", {"w": "a=b"}),
    ],
)
def test_methods_are_written_in_one_way(spec: str, name: str, options: dict[str, Any]) -> None:
    assert parse_method(spec) == (name, options)


@pytest.mark.parametrize("spec", ["", ":a=1", "m:a=1,b", "m:=1"])
def test_a_method_that_cannot_be_read_is_refused(spec: str) -> None:
    with pytest.raises(InputError, match="--method must"):
        parse_method(spec)


def test_methods_of_one_name_are_called_by_what_was_asked() -> None:
    told = inside(
        "linear",
        *("--method", "naive_bootstrap:members=4", "--method", "naive_bootstrap:members=6"),
        *QUICK,
        *("--coverage", "0.9"),
    )
    plain = "".join(told.split())
    assert "naive_bootstrap:members=4" in plain
    assert "naive_bootstrap:members=6" in plain


def test_a_wanted_error_ends_the_trials() -> None:
    told = inside(
        *("linear", "--method", "linear_t", "--coverage", "0.8", "--trials", "300"),
        *("--test-rows", "20", "--until-se", "0.03"),
    )
    assert "standard error 0.03 of the picf met after" in " ".join(told.split())


@pytest.mark.rate
def test_a_model_that_breaks_is_reported(table: Path) -> None:
    (table.parent / "mypkg.py").write_text(MODULE, encoding="utf-8")
    done = command(
        table.name,
        *("--target", "price", "--method", "mypkg:Broken", "--method", "linear_t", "--trials", "3"),
        cwd=table.parent,
    )
    assert done.returncode == 0, done.stderr
    told = " ".join(done.stdout.split())
    assert "no trial succeeded" in told
    assert "fit: RuntimeError: this model is broken" in told
    alone = command(
        table.name,
        *("--target", "price", "--method", "mypkg:Broken", "--trials", "2"),
        cwd=table.parent,
    )
    assert alone.returncode == 1
    assert (
        "Broken: all 2 trials failed; first in fit: RuntimeError: this model is broken"
        in " ".join(alone.stderr.split())
    )


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("linear",), "--method must name at least one method"),
        (("linaer", "--method", "linear_t"), "near: linear"),
        (("linear", "--method", "linaer_t"), "near: linear_t"),
        (("linear", "--method", "linear_t", "--target", "y"), "--target is for a table"),
        (("linear", "--method", "linear_t", "--noise", "gama"), "near: gamma"),
        (("linear", "--method", "linear_t", "--trials", "0"), "greater than or equal to 1"),
        (("linear", "--method", "linear_t", "--covariates", "odd"), "not one of 'random', 'fixed'"),
        (
            ("linear", "--method", "linear_t", "--until-se", "0.1", "--of", "x"),
            "not one of 'picf', 'cicf', 'brier'",
        ),
        (("linear", "--method", "linear_t", "-o", "x.pdf"), "must end in"),
        (("none.csv", "--method", "linear_t", "--target", "y"), "none.csv"),
        (("linear", "--method", "no_such_module:X"), "cannot be imported"),
        (("linear", "--method", "math:pi"), "math:pi"),
    ],
)
def test_bad_flags_are_refused(arguments: tuple[str, ...], words: str) -> None:
    assert words in refused(*arguments)


def test_a_table_needs_its_target_and_known_words(table: Path) -> None:
    assert "--target must name" in refused(table, "--method", "linear_t")
    common = (table, "--method", "linear_t", "--target", "price")
    assert "not one of 'out-of-bag', 'in-sample'" in refused(*common, "--residuals", "out")
    assert "not one of 'error', 'drop'" in refused(*common, "--missing", "fill")


@pytest.mark.slow
def test_an_error_of_input_is_one_line_and_exit_2() -> None:
    done = command("linear", "--method", "linaer_t")
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    assert "Traceback" not in done.stderr


@pytest.mark.rate
def test_ctrl_c_leaves_nothing_behind(tmp_path: Path) -> None:
    told = [*RUN, "simulate", "friedman1", "--method", "gaussian_process", "--trials", "9999"]
    running = subprocess.Popen(
        [*told, "-o", str(tmp_path / "r.html")],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    time.sleep(4.0)
    running.send_signal(signal.SIGINT)
    out, err = running.communicate(timeout=60)
    assert running.returncode == 130
    assert "Traceback" not in out + err
    assert list(tmp_path.iterdir()) == []


def test_any_regressor_of_a_table_is_as_in_python(table: Path) -> None:
    """The command and the library give one answer."""
    told = table.parent / "r.json"
    inside(
        *(table, "--target", "price", "--method", "split_conformal:regressor=linear"),
        *("--coverage", "0.9", "--trials", "3", "-o", told),
    )
    from howsure_studies.methods.regressors import SplitConformal

    held = read_learning_table(table, "price")
    world = ForestWorld.from_data(held.x, held.y, name="houses")
    method = SplitConformal(LinearRegression(), coverages=(0.9,))
    expected = pointwise(world, method, coverages=(0.9,), trials=3)
    records = json.loads(told.read_text(encoding="utf-8"))["records"]
    found = {r["metric"]: r["value"] for r in records}
    assert found["picf_brier"] == pytest.approx(expected.brier("picf", 0.9).raw)


@pytest.mark.slow
def test_a_class_of_its_own_is_simulated(tmp_path: Path) -> None:
    """README's interface and no more: no base class, nothing imported but a prediction."""
    (tmp_path / "mypkg.py").write_text(OWN, encoding="utf-8")
    told = command("linear", *QUICK, "--method", "mypkg:Mine:factor=2", cwd=tmp_path)
    assert told.returncode == 0, told.stderr
    assert "Mine" in told.stdout
    assert "failed" not in told.stdout


@pytest.mark.rate
def test_quantiles_that_do_not_reach_a_coverage_name_the_flag(tmp_path: Path) -> None:
    (tmp_path / "mypkg.py").write_text(
        "class Quantiles:\n"
        "    def fit(self, x, y, rng):\n"
        "        pass\n"
        "    def predict(self, x):\n"
        "        return {0.05: x[:, 0] - 2, 0.5: x[:, 0], 0.95: x[:, 0] + 2}\n",
        encoding="utf-8",
    )
    asked = ("linear", "--trials", "2", "--method", "mypkg:Quantiles")
    told = command(*asked, cwd=tmp_path)
    assert told.returncode == 1
    assert "0.025" in told.stderr
    assert "--coverage asks for others" in " ".join(told.stderr.split())
    assert command(*asked, "--coverage", "0.9", cwd=tmp_path).returncode == 0


SLOW = """
import os
import time

import numpy as np
from howsure import Distribution


class Slow:
    def fit(self, x, y, rng):
        time.sleep(0.03)
        with open("fits.txt", "a") as file:
            file.write(f"{os.getpid()}\\n")
        self.mean, self.sd = y.mean() + 0.01 * rng.normal(), y.std()

    def predict(self, x):
        return Distribution.normal(np.full(len(x), self.mean), np.full(len(x), self.sd))
"""


def numbers(path: Path) -> dict[tuple[str, str, float], float]:
    """Every number that a file of results holds, by method, measure and coverage."""
    records = json.loads(path.read_text(encoding="utf-8"))["records"]
    none = {None: math.nan}
    return {
        (r["model"], r["metric"], r["coverage"] or 0.0): none.get(r["value"], r["value"])
        for r in records
    }


def numbers_of(result: PointwiseResult) -> dict[tuple[str, str, float], float]:
    """The same of a result."""
    return {
        (r.model, r.metric, 0.0 if math.isnan(r.coverage) else r.coverage): r.value
        for r in records(result)
    }


def agree(found: dict[Any, float], expected: dict[Any, float]) -> None:
    assert found.keys() == expected.keys()
    np.testing.assert_allclose(
        [found[key] for key in expected], list(expected.values()), rtol=1e-12, atol=1e-15
    )


def kept(folder: Path) -> list[Path]:
    return list(folder.glob("*/trials/*/trial.json"))


@pytest.mark.rate
def test_an_interrupted_run_goes_on_where_it_stopped(tmp_path: Path, cache: Path) -> None:
    """What was done is read, not done again, and the numbers are those of a run in one piece."""
    (tmp_path / "mypkg.py").write_text(SLOW, encoding="utf-8")
    told = [*RUN, "simulate", "linear", "--method", "mypkg:Slow", "--trials", "60"]
    told += ["--test-rows", "9", "--coverage", "0.8", "-o", "r.json"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(told, cwd=tmp_path, text=True, **pipes) as running:
        while not kept(cache) and running.poll() is None:
            time.sleep(0.02)
        running.send_signal(signal.SIGINT)
        _, err = running.communicate(timeout=60)
    assert running.returncode == 130
    (place,) = cache.iterdir()
    assert err == (
        f"howsure: interrupted: finished trials are kept in {place}; to resume, repeat the "
        "command\n"
    )
    blocks, log = len(kept(cache)), tmp_path / "fits.txt"
    assert 1 <= blocks < 6
    log.unlink()
    assert subprocess.run(told, cwd=tmp_path, capture_output=True, check=False).returncode == 0
    assert len(log.read_text().splitlines()) == 60 - 10 * blocks
    assert not list(cache.iterdir())
    log.unlink()
    several = [*told[:-1], "two.json", "--jobs", "2", "--store", "kept"]
    assert subprocess.run(several, cwd=tmp_path, capture_output=True, check=False).returncode == 0
    assert len(set(log.read_text().split())) == 2
    agree(numbers(tmp_path / "r.json"), numbers(tmp_path / "two.json"))


def test_a_store_of_ones_own_keeps_trials_until_their_code_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    code, log = tmp_path / "kept_by_code.py", tmp_path / "fits.txt"
    code.write_text(SLOW.replace("0.03", "0.0"), encoding="utf-8")

    def fits(trials: int) -> int:
        log.write_text("")
        inside(
            *("linear", "--method", "kept_by_code:Slow", "--test-rows", "9", "--store", "kept"),
            *("--trials", trials),
        )
        return len(log.read_text().splitlines())

    assert [fits(10), fits(20), fits(20)] == [10, 10, 0]
    code.write_text(SLOW.replace("0.03", "0.001"), encoding="utf-8")
    assert fits(10) == 10


def test_stopping_early_gives_what_python_gives(tmp_path: Path) -> None:
    """By looks after one block and after several, and where the limit ends inside a block."""
    for error, of, most in ((0.03, "picf", 300), (0.004, "cicf", 47), (0.0004, "brier", 300)):
        path = tmp_path / "r.json"
        told = inside(
            *("linear", "--method", "linear_t", "--coverage", "0.8", "--trials", most),
            *("--test-rows", "20", "--until-se", error, "--of", of, "-o", path),
        )
        stop = Precision(standard_error=error, of=of)
        given: dict[str, Any] = {"coverages": (0.8,), "trials": most, "n_test": 20, "stop": stop}
        result = pointwise("linear", LinearT(), **given)
        agree(numbers(path), numbers_of(result))
        assert result.stop in " ".join(told.split())


def test_a_wish_that_is_met_inside_a_block_leaves_out_the_rest() -> None:
    whole = pointwise("linear", LinearT(), coverages=(0.8,), trials=50, n_test=20)
    stop = Precision(standard_error=0.03)
    met = stop.first_met(whole)
    assert met is not None
    assert met.trials < 50
    same(met, pointwise("linear", LinearT(), coverages=(0.8,), trials=50, n_test=20, stop=stop))
    assert stop.first_met(whole, after=met.trials - 1) is not None
    nothing = Precision(standard_error=1e-6)
    assert nothing.first_met(whole) is None
    assert "not met in 50 trials: about" in nothing.not_met(whole).stop


SOME = """
import numpy as np
from howsure import Distribution


class Some:
    fits = 0

    def fit(self, x, y, rng):
        Some.fits += 1
        self.drawn = rng.random()
        if Some.fits in (3, 11, 12):
            raise ValueError(f"fit {Some.fits} is not to be")

    def predict(self, x):
        return Distribution.normal(np.full(len(x), self.drawn), np.ones(len(x)))
"""


def test_every_simulation_of_a_failed_block_is_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of twelve, in blocks of ten: one fails in the first block, and both of the second."""
    (tmp_path / "some_of_it.py").write_text(SOME, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    module = importlib.import_module("some_of_it")
    result = pointwise("linear", module.Some(), trials=12, n_test=9)
    module.Some.fits = 0
    path = tmp_path / "r.json"
    told = inside(
        *("linear", "--method", "some_of_it:Some", "--trials", "12", "--test-rows", "9"),
        *("-o", path),
    )
    assert "Some: 3 trials failed; first in fit: ValueError: fit 3 is not to be" in told
    assert [failure.trial for failure in result.failures] == [2, 10, 11]
    agree(numbers(path), numbers_of(result))


@pytest.mark.slow
def test_where_the_cache_is_closed_the_command_says_how_it_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A folder made for this run alone is not found again by the command as it was."""

    def interrupted(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr("howsure_studies.pointwise.command.simulated", interrupted)
    result = CliRunner().invoke(app, ["simulate", "linear", "--method", "linear_t"])
    (place,) = tmp_path.glob("howsure-simulate-*")
    assert isinstance(result.exception, Interrupted)
    assert result.exception.words == (
        f"interrupted: finished trials are kept in {place}; to resume, repeat the "
        f"command with --store {place}"
    )
