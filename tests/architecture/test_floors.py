"""The house: rooms import lower floors only, and optional libraries arrive late."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCE, STUDIES = ROOT / "src" / "howsure", ROOT / "studies" / "src" / "howsure_studies"
FLOORS = {
    "core": 0,
    "stats": 1,
    "predictions": 1,
    "engine": 2,
    "inputs": 2,
    "topics": 3,
    "metrics": 4,
    "conformal": 4,
    "recalibration": 5,
    "figures": 5,
    "verdict": 6,
    "streaming": 7,
    "report": 8,
    "watch": 9,
    "sklearn": 9,
    "cli": 10,
}
WING = {"methods": 0, "tasks": 1, "engine": 2, "cli": 3}
"""The floors of the second house; each study stands on the first three, alone."""
OPTIONAL = {
    "PIL",
    "altair",
    "av",
    "dask",
    "h5py",
    "matplotlib",
    "nibabel",
    "numpyro",
    "open_clip",
    "pandas",
    "polars",
    "tifffile",
    "torch",
    "transformers",
    "vl_convert",
}
FORMULA_FLOORS = {"core", "stats"}
BESIDE_TOPICS = {
    *("groups", "group_scores", "compare", "shared", "interval_rows"),
    *("view", "laws", "examples", "skce"),  # which take predictions
}
FILES = sorted(SOURCE.rglob("*.py"))
BOTH = [*FILES, *sorted(STUDIES.rglob("*.py"))]


@cache
def parsed(path: Path) -> ast.Module:
    """The tree of a file, which all tests here share."""
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def imports(path: Path, *, top_only: bool) -> set[str]:
    """Dotted names that a file imports; at its top alone, or anywhere."""
    nodes = _top(parsed(path)) if top_only else list(statements(parsed(path)))
    found: set[str] = set()
    for node in nodes:
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are absolute here"
            found.add(node.module or "")
            found.update(f"{node.module}.{alias.name}" for alias in node.names)
    return found


def statements(node: ast.AST) -> Iterator[ast.AST]:
    """All statements below a node: imports stand in no expression, which are most of a tree."""
    for field in ("body", "orelse", "finalbody", "handlers", "cases"):
        for inner in getattr(node, field, ()):
            yield inner
            yield from statements(inner)


def _top(tree: ast.Module) -> list[ast.AST]:
    nodes: list[ast.AST] = []
    for node in tree.body:
        guarded = isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
        if not guarded:
            nodes.append(node)
    return nodes


def room(path: Path) -> str:
    parts = path.relative_to(SOURCE).parts
    return parts[0] if len(parts) > 1 else "face"


def rooms_imported(path: Path) -> set[str]:
    names = {
        name.split(".")[1]
        for name in imports(path, top_only=False)
        if name.count(".") and name.startswith("howsure.")
    }
    return {name for name in names if name in FLOORS}


def test_a_room_imports_lower_floors_only() -> None:
    wrong = [
        f"{path.relative_to(SOURCE)} must not import {other}"
        for path in FILES
        for other in rooms_imported(path) - {room(path)}
        if room(path) != "face" and FLOORS[other] >= FLOORS[room(path)]
    ]
    assert not wrong, wrong


def studies_imported(path: Path) -> set[str]:
    parts = (name.split(".") for name in imports(path, top_only=False))
    return {part[1] for part in parts if part[0] == "howsure_studies" and len(part) > 1}


def test_a_study_stands_alone() -> None:
    """Methods know no task, tasks no engine, the engine no study, and no study another."""
    rooms, wrong = {p.name for p in STUDIES.iterdir() if p.is_dir()}, []
    for path in BOTH[len(FILES) :]:
        home = path.relative_to(STUDIES).parts[0].removesuffix(".py")
        allowed = {home, *(name for name, floor in WING.items() if floor <= WING.get(home, 2))}
        wrong += [f"{path}: {name}" for name in (studies_imported(path) & rooms) - allowed]
    assert not wrong, wrong


def test_the_judge_knows_no_study() -> None:
    wrong = [str(path) for path in FILES if studies_imported(path)]
    assert not wrong, wrong


def test_every_room_has_a_floor() -> None:
    rooms = {p.name for p in SOURCE.iterdir() if p.is_dir() and p.name != "__pycache__"}
    assert rooms <= set(FLOORS)


def test_optional_libraries_are_not_imported_at_the_top() -> None:
    wrong = [
        f"{path.relative_to(ROOT)}: {name}"
        for path in BOTH
        for name in imports(path, top_only=True)
        if name.partition(".")[0] in OPTIONAL
    ]
    assert not wrong, wrong


def test_pytest_is_known_to_its_plugin_alone() -> None:
    """Which every session of pytest loads, so nothing that weighs anything is at its top."""
    heads = {p: {name.partition(".")[0] for name in imports(p, top_only=False)} for p in BOTH}
    plugin = SOURCE / "pytest_plugin.py"
    assert [path for path, names in heads.items() if "pytest" in names] == [plugin]
    light = {"pytest", *sys.stdlib_module_names}
    assert {name.partition(".")[0] for name in imports(plugin, top_only=True)} <= light


def test_formulas_are_usable_alone() -> None:
    """Formulas know arrays; a topic's own account of itself, and what is beside it, containers."""
    for path in FILES:
        parts = path.relative_to(SOURCE).parts
        if parts[0] != "topics" or parts == ("topics", "__init__.py") or path.stem in BESIDE_TOPICS:
            continue
        if "\nTOPIC = Topic(" not in path.read_text(encoding="utf-8"):
            assert rooms_imported(path) <= FORMULA_FLOORS | {"engine", "topics"}, path


def test_modules_have_no_cycles() -> None:
    graph: dict[str, set[str]] = {}
    modules = {_module(path): path for path in BOTH}
    for name, path in modules.items():
        graph[name] = {m for m in imports(path, top_only=True) if m in modules and m != name}
    state: dict[str, int] = {}

    def visit(name: str, trail: tuple[str, ...]) -> None:
        if state.get(name) == 2:
            return
        assert state.get(name) != 1, " → ".join((*trail, name))
        state[name] = 1
        for other in graph[name]:
            if not name.startswith(f"{other}."):
                visit(other, (*trail, name))
        state[name] = 2

    for name in graph:
        visit(name, ())


def _module(path: Path) -> str:
    top = SOURCE if path.is_relative_to(SOURCE) else STUDIES
    parts = path.relative_to(top.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@pytest.mark.slow
@pytest.mark.parametrize(
    "code", ["import howsure", "import howsure.report.assess, howsure.verdict"]
)
def test_tables_need_neither_studies_nor_tensors_nor_pictures(code: str) -> None:
    """Not even where all is installed."""
    heavy = ("howsure_studies", "torch", "PIL", "dask", "matplotlib")
    code = f"import sys; {code}; print([name for name in {heavy} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_no_class_name_stands_twice() -> None:
    """One name, one meaning, in both houses; nested classes and private ones too."""
    homes: dict[str, list[str]] = {}
    for path in BOTH:
        for node in ast.walk(parsed(path)):
            if isinstance(node, ast.ClassDef):
                homes.setdefault(node.name, []).append(str(path.relative_to(ROOT)))
    assert {name: where for name, where in homes.items() if len(where) > 1} == {}


def test_both_houses_have_one_version() -> None:
    told = [
        re.search(r'__version__ = "(.*)"', (house / "_version.py").read_text())[1]  # type: ignore[index]
        for house in (SOURCE, STUDIES)
    ]
    assert told[0] == told[1]


def test_the_check_sees_a_breach(tmp_path: Path) -> None:
    """The instruments above are not blind."""
    file = tmp_path / "bad.py"
    file.write_text("import torch\nfrom howsure.report import x\n", encoding="utf-8")
    assert "torch" in imports(file, top_only=True)
    assert rooms_imported(file) == {"report"}
