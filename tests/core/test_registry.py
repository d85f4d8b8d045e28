"""Things by name, from howsure and from other packages."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from howsure.core.errors import HowsureError, InputError
from howsure.core.registry import PluginError, Registry, imported, unknown


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Install a package: modules by name, and entry points as its metadata has them."""

    def install(name: str, modules: dict[str, str], points: str) -> None:
        folder = tmp_path / name
        meta = folder / f"{name}-1.0.dist-info"
        meta.mkdir(parents=True)
        (meta / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        (meta / "entry_points.txt").write_text(points)
        for module, text in modules.items():
            (folder / f"{module}.py").write_text(text)
        monkeypatch.syspath_prepend(folder)

    return install


def test_a_built_in_loads_when_it_is_asked_for() -> None:
    registry = Registry("codec", "howsure.none", {"json": "json:dumps", "lost": "no_such_module:x"})
    assert registry.names() == ("json", "lost")
    assert registry.get("json")({}) == "{}"
    with pytest.raises(ModuleNotFoundError):
        registry.get("lost")


@pytest.mark.parametrize("name", ["jsno", "", 3, None, ["json"]])
def test_an_unknown_name_lists_what_there_is(name: object) -> None:
    with pytest.raises(InputError, match="codec must be one of json, got"):
        Registry("codec", "howsure.none", {"json": "json:dumps"}).get(name)


def test_other_packages_add_by_entry_points(package: Any) -> None:
    points = "[howsure.test_things]\nsquare = made_here:square\njson = made_here:square\n"
    package("adder", {"made_here": "def square(x):\n    return x * x\n"}, points)
    registry = Registry("thing", "howsure.test_things", {"json": "json:dumps"})
    assert registry.names() == ("json", "square")
    assert "made_here" not in sys.modules
    assert registry.get("square")(3) == 9
    assert registry.get("json")([]) == "[]"  # a built-in keeps its name
    with pytest.raises(InputError, match="near: square"):
        registry.get("sqare")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("raise RuntimeError('half done')", "RuntimeError: half done"),
        ("import no_such_module_at_all", "ModuleNotFoundError"),
        ("other = 1", "AttributeError"),
    ],
)
def test_a_broken_package_harms_only_who_uses_it(package: Any, text: str, words: str) -> None:
    points = "[howsure.test_things]\nbad = broken_here:thing\n"
    sys.modules.pop("broken_here", None)
    package("breaker", {"broken_here": text}, points)
    registry = Registry("thing", "howsure.test_things", {"json": "json:dumps"})
    assert registry.names() == ("json", "bad")
    assert registry.get("json")([]) == "[]"
    with pytest.raises(PluginError, match=f"thing 'bad' .* package breaker .*{words}"):
        registry.get("bad")
    assert issubclass(PluginError, HowsureError)


def test_two_packages_may_not_claim_one_name(package: Any) -> None:
    for owner in ("first", "second"):
        package(
            owner, {f"of_{owner}": "thing = 1\n"}, f"[howsure.test_things]\nx = of_{owner}:thing"
        )
    with pytest.raises(PluginError, match="defined by package first and package second"):
        Registry("thing", "howsure.test_things").get("x")


def test_near_names_are_told() -> None:
    assert unknown("FRIEDMAN", ["friedman1", "linear"], "world").endswith("near: friedman1")
    assert "near" not in unknown("zzz", ["friedman1"], "world")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("raise RuntimeError('no such\\ndevice' + 'x' * 10**6)", "RuntimeError: no such device"),
        ("def broken(:", "SyntaxError: invalid syntax"),
        ("import sys; sys.exit(0)", "SystemExit: 0"),
        ("import no_such_library", "No module named 'no_such_library'"),
    ],
)
def test_a_module_that_fails_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, told: str
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    name = f"module_{len(text)}"
    (tmp_path / f"{name}.py").write_text(text)
    with pytest.raises(InputError, match=r"encode .* cannot be imported") as caught:
        imported(f"{name}:thing", "encode")
    assert told in str(caught.value)
    assert len(str(caught.value)) < 600
