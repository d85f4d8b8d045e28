"""What is published: archives, wheels, versions, bounds and the recipe of conda."""

from __future__ import annotations

import re
import shutil
import subprocess
import tarfile
import tomllib
import zipfile
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

import howsure
from extras import ROOT, needs
from lowest import declared, lowest

FOLDERS = {"howsure": ROOT, "howsure-studies": ROOT / "studies"}
CONDA = {
    "matplotlib": ["matplotlib-base"],
    "torch": ["pytorch"],
    "dask": ["dask", "distributed"],
}
"""Libraries that conda calls otherwise."""


def project(name: str) -> dict[str, Any]:
    """What a distribution declares."""
    text = (FOLDERS[name] / "pyproject.toml").read_text("utf-8")
    return dict(tomllib.loads(text)["project"])


def built(folder: Path, form: str, into: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A wheel or an archive of what lies in a folder."""
    backend = needs("hatchling.build")
    into.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.delenv("SOURCE_DATE_EPOCH", raising=False)
    return into / getattr(backend, f"build_{form}")(str(into))


def tracked() -> set[str]:
    """The files that git holds."""
    asked = ["git", "ls-files", "-z"]
    done = subprocess.run(asked, cwd=ROOT, capture_output=True, text=True, check=False)
    found = set(filter(None, done.stdout.split("\0")))
    if not found:
        pytest.skip("this is no checkout of git")
    return {name for name in found if (ROOT / name).is_file()}


@pytest.mark.slow
def test_the_archive_holds_all_that_git_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And so all that the tests of both distributions read."""
    wanted = tracked()
    with tarfile.open(built(ROOT, "sdist", tmp_path / "dist", monkeypatch)) as archive:
        found = {name.partition("/")[2] for name in archive.getnames()}
    assert wanted - found == {".ci/run"}
    assert "PKG-INFO" in found


@pytest.mark.parametrize("name", FOLDERS)
def test_two_builds_of_a_wheel_are_equal(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In two folders, of files of two ages."""
    other = tmp_path / "elsewhere"
    other.mkdir()
    for each in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copyfile(FOLDERS[name] / each, other / each)
    shutil.copytree(FOLDERS[name] / "src", other / "src", copy_function=shutil.copyfile)
    first = built(FOLDERS[name], "wheel", tmp_path / "one", monkeypatch)
    second = built(other, "wheel", tmp_path / "two", monkeypatch)
    assert first.name == second.name
    assert first.read_bytes() == second.read_bytes()
    with zipfile.ZipFile(first) as wheel:
        names = wheel.namelist()
    assert [each for each in names if each.endswith("/licenses/LICENSE")]
    assert {each.partition("/")[0] for each in names} == {
        name.replace("-", "_"),
        f"{name.replace('-', '_')}-{howsure.__version__}.dist-info",
    }


def test_one_version_and_one_licence() -> None:
    """Both distributions, the citation, the recipe and the newest release that is told."""
    studies = (ROOT / "studies/src/howsure_studies/_version.py").read_text("utf-8")
    citation = (ROOT / "CITATION.cff").read_text("utf-8")
    recipe = (ROOT / "conda/recipe.yaml").read_text("utf-8")
    changes = (ROOT / "CHANGELOG.md").read_text("utf-8")
    found = [
        re.findall(r'^__version__ = "(.*)"$', studies, flags=re.MULTILINE),
        re.findall(r"^version: (.*)$", citation, flags=re.MULTILINE),
        re.findall(r'^  version: "(.*)"$', recipe, flags=re.MULTILINE),
        re.findall(r"^## (\d\S*) ", changes, flags=re.MULTILINE)[:1],
    ]
    assert found == [[howsure.__version__]] * len(found)
    (needed,) = map(Requirement, project("howsure-studies")["dependencies"])
    major, minor, *_ = howsure.__version__.split(".")
    assert str(needed) == f"howsure>={major}.{minor}"
    assert (ROOT / "LICENSE").read_bytes() == (ROOT / "studies/LICENSE").read_bytes()


def test_the_lowest_versions_are_those_declared() -> None:
    """As packaging reads them: each is allowed, and nothing below it."""
    bounds = lowest()
    asked = [Requirement(each) for each in declared(*FOLDERS.values())]
    assert {each.name for each in asked} == {*bounds}
    for each in asked:
        assert each.specifier.contains(bounds[each.name]), each
        part = next(part for part in each.specifier if part.operator in (">=", "=="))
        assert Version(part.version) == Version(bounds[each.name])


def test_the_classifiers_name_what_is_allowed() -> None:
    for name in FOLDERS:
        told = project(name)
        found = re.findall(r"Python :: (3\.\d+)", " ".join(told["classifiers"]))
        assert found == ["3.11", "3.12", "3.13"]
        assert told["requires-python"] == f">={found[0]}"


def of_conda(requirement: str) -> list[str]:
    """A requirement as conda writes it."""
    each = Requirement(requirement)
    bounds = ",".join(sorted(map(str, each.specifier), reverse=True))
    return [f"{name} {bounds}" for name in CONDA.get(each.name, [each.name])]


def test_the_recipe_is_of_both_distributions() -> None:
    """It asks for what they declare; what an extra brings is bounded, for conda has no extras."""
    recipe = needs("yaml").safe_load((ROOT / "conda/recipe.yaml").read_text("utf-8"))
    whole = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    (backend,) = whole["build-system"]["requires"]
    for (name, folder), output in zip(FOLDERS.items(), recipe["outputs"], strict=True):
        told, held = project(name), output["requirements"]
        assert output["package"]["name"] == name
        assert output["about"]["summary"] == told["description"]
        assert output["about"]["license"] == told["license"]
        assert (folder / output["about"]["license_file"]).is_file()
        assert told["requires-python"] == f">={recipe['context']['python_min']}"
        assert held["host"] == ["python ${{ python_min }}.*", "pip", *of_conda(backend)]
        assert held["run"][0] == "python >=${{ python_min }}"
    howsure_, studies = recipe["outputs"]
    (script,) = howsure_["build"]["python"]["entry_points"]
    assert dict([script.split(" = ")]) == project("howsure")["scripts"]
    run, bounded = (howsure_["requirements"][each] for each in ("run", "run_constraints"))
    assert [*run[1:], *bounded] == [one for each in declared(ROOT) for one in of_conda(each)]
    assert len(run[1:]) == len(project("howsure")["dependencies"])
    assert studies["requirements"]["run"][1:] == ['${{ pin_subpackage("howsure", exact=True) }}']


def test_the_notes_are_the_section_of_a_release() -> None:
    page = (ROOT / "RELEASING.md").read_text("utf-8")
    (command,) = re.findall(r"^ *(awk .*)$", page, flags=re.MULTILINE)
    assert f"version={howsure.__version__} " in command
    done = subprocess.run(["sh", "-c", command], cwd=ROOT, capture_output=True, check=True)
    changes = (ROOT / "CHANGELOG.md").read_text("utf-8")
    section = changes.split(f"\n## {howsure.__version__} ")[1].partition("\n## ")[0]
    assert done.stdout.decode("utf-8").strip() == section.partition("\n")[2].strip()


def test_the_page_names_what_publishes() -> None:
    page = (ROOT / "RELEASING.md").read_text("utf-8")
    workflow = needs("yaml").safe_load((ROOT / ".github/workflows/release.yml").read_text("utf-8"))
    publish = workflow["jobs"]["publish"]
    assert publish["strategy"]["matrix"]["distribution"] == list(FOLDERS)
    for name in FOLDERS:
        assert f"`{publish['environment'].replace('${{ matrix.distribution }}', name)}`" in page
    makefile = (ROOT / "Makefile").read_text("utf-8")
    for target in re.findall(r"(?:^|`)make ([\w-]+)", page, flags=re.MULTILINE):
        assert re.search(rf"^({target}|.* {target})( .*)?:", makefile, flags=re.MULTILINE), target
