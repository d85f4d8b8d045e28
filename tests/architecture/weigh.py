"""What the house weighs, and a command that lowers figures: python tests/architecture/weigh.py.

Tokens are names, operators, numbers and strings: lines can be made denser, tokens cannot.
"""

from __future__ import annotations

import ast
import math
import re
import subprocess
import sys
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
FILE = Path(__file__).with_name("weight.toml")
SOURCES = ("src/howsure", "studies/src/howsure_studies")
TESTS = ("tests", "studies/tests")
ENTERED = "entered by the example of the README, with its page"
OF_ROOMS = ("files", "statements", "tokens")
MANY = 12  # parameters, from which on a function has too many
FILLERS = re.compile(
    r"_*(told|tells?|said|says?|found|held|holds?|given|made|make|kept|part|place|one|each|known|"
    r"asked|seen|own|others|rest|whole|beside|apart|left|back)_*"
)
KINDS = frozenset({"Intervals", "Quantiles", "Distribution", "Samples", "LabelSets"})
BURDENS = (ast.ClassDef, ast.FunctionDef, ast.Name, ast.arg, ast.Call, ast.Compare, ast.Assign)
TABLES = re.compile(r"t|\w*table")  # what variables of a table are called
SHIPPED = frozenset({".css", ".html", ".js", ".json", ".md", ".toml"})  # besides code
TOKEN = re.compile(
    r"""(?P<skipped> \#.* | \\\n )
    | [rRbBuUfF]{0,2} (?: \"{3} (?:[^\\]|\\(?s:.))*? \"{3} | \'{3} (?:[^\\]|\\(?s:.))*? \'{3} )
    | [rRbBuUfF]{0,2} (?: \" (?:[^"\\\n]|\\(?s:.))* \" | \' (?:[^'\\\n]|\\(?s:.))* \' )
    | 0[xXoObB]\w+ | (?: \d[\d_]*\.?[\d_]* | \.\d[\d_]* ) (?:[eE][-+]?\d+)? [jJ]?
    | \w+
    | \*\*=? | //=? | >>=? | <<=? | \.{3} | -> | := | [-+*/%&|^=<>!@]= | [^\w\s]""",
    re.VERBOSE,
)
EXAMPLE = """
import sys, tempfile
import numpy as np
import howsure, howsure.report.assess
home, entered = howsure.__path__[0], set()
def note(frame, event, _):
    code = frame.f_code
    function = code.co_flags & 1 and "<" not in code.co_name  # no body of a class or module
    if event == "call" and function and code.co_filename.startswith(home):
        entered.add((code.co_filename, code.co_qualname))
rng = np.random.default_rng(0)
x = rng.uniform(-1, 1, 1000)
y = np.sin(3 * x) + (0.1 + 0.3 * x**2) * rng.normal(size=1000)
prediction = howsure.Distribution.normal(mean=np.sin(3 * x), sd=np.full(1000, 0.2))
groups = {"side": np.where(x < 0, "left", "right")}
with tempfile.TemporaryDirectory() as folder:
    sys.setprofile(note)
    howsure.assess(y, prediction, features={"x": x}, groups=groups).save(f"{folder}/report.html")
    sys.setprofile(None)
owners = {(file, name.rpartition(".")[0].partition(".<locals>")[0]) for file, name in entered}
print(len({file for file, _ in entered}), len(entered), len({o for o in owners if o[1]}))
"""

Figures = dict[str, dict[str, int]]
Calls = tuple[dict[str, set[str]], Counter[str]]


def count_tokens(source: str) -> int:
    """Names, operators, numbers and strings; an f-string is one, on every version of Python."""
    return sum(not match["skipped"] for match in TOKEN.finditer(source))


@cache
def read_file(path: Path) -> tuple[str, tuple[ast.AST, ...]]:
    """A file's text, and all nodes of its syntax tree."""
    source = path.read_text(encoding="utf-8")
    return source, tuple(ast.walk(ast.parse(source)))


@cache
def weigh_file(path: Path) -> Counter[str]:
    """The size of a Python file, and what makes it heavy to read."""
    source, nodes = read_file(path)
    figures = Counter(files=1, tokens=count_tokens(source))
    for node in nodes:
        if isinstance(node, ast.stmt):
            figures["statements"] += 1
        if isinstance(node, BURDENS):
            figures.update(_burdens(node))
    return figures


def weigh_files(paths: Iterable[Path]) -> Counter[str]:
    """The same of several files."""
    return sum(map(weigh_file, paths), Counter[str]())


def count_largest_signature(paths: Iterable[Path]) -> int:
    """Parameters of the function that has most."""
    nodes = (node for path in paths for node in read_file(path)[1])
    return max(len(_parameters(node)) for node in nodes if isinstance(node, ast.arguments))


def _burdens(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.ClassDef():
            yield "classes"
        case ast.FunctionDef(name=name, args=args):
            if len(_parameters(args)) >= MANY:
                yield "functions of many parameters"
            if FILLERS.fullmatch(name):
                yield "functions called by a filler"
        case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name):
            if FILLERS.fullmatch(name):
                yield "bindings called by a filler"
        case ast.Call(func=ast.Name(id="isinstance"), args=[_, kinds]):
            if KINDS & {name.id for name in ast.walk(kinds) if isinstance(name, ast.Name)}:
                yield "isinstance on kinds"
        case ast.Compare(left=ast.Attribute(value=ast.Name(id=name), attr="name")):
            if TABLES.fullmatch(name):
                literals = (isinstance(part, ast.Constant) for part in ast.walk(node))
                yield from ["literals of a table's name"] * sum(literals)
        case ast.Assign(targets=[ast.Name(id="__all__")], value=ast.List(elts=names)):
            yield from ["public names"] * len(names)
        case ast.Assign(targets=[ast.Name(id="_HOMES")], value=homes):
            for names in ast.literal_eval(homes).values():
                yield from ["public names"] * len(names.split())


def _parameters(args: ast.arguments) -> list[ast.arg]:
    return [*args.posonlyargs, *args.args, *args.kwonlyargs]


def read_calls(paths: Iterable[Path]) -> Calls:
    """By the name of what is called: keywords that are passed, and how many arguments by place."""
    keywords, positions = defaultdict[str, set[str]](set), Counter[str]()
    for path in paths:
        for call in read_file(path)[1]:
            if isinstance(call, ast.Call):
                function, *args = [call.func, *call.args]
                if getattr(function, "id", "") == "partial":
                    function, *args = args
                name: str = getattr(function, "id", "") or getattr(function, "attr", "")
                keywords[name] |= {keyword.arg or "**" for keyword in call.keywords}
                unpacked = any(isinstance(arg, ast.Starred) for arg in args)
                positions[name] = max(positions[name], 99 if unpacked else len(args))
    return keywords, positions


def find_unpassed(paths: Iterable[Path], calls: Calls) -> Iterator[str]:
    """Parameters with a default that no call of their function's name passes."""
    keywords, positions = calls
    for path in paths:
        for name, args in _called_functions(path):
            for parameter, position in _defaulted(args):
                if not ({parameter, "**"} & keywords[name] or positions[name] > position):
                    yield f"{path}: {name}({parameter})"


def _called_functions(path: Path) -> Iterator[tuple[str, ast.arguments]]:
    """Functions and methods by the name that calls use, without the command line's commands."""
    for owner in read_file(path)[1]:
        for node in ast.iter_child_nodes(owner):
            match node:
                case ast.FunctionDef(
                    decorator_list=[*_, ast.Call(func=ast.Attribute(attr="callback" | "command"))]
                    | [ast.Call(func=ast.Attribute(attr="callback" | "command")), *_]
                    | [ast.Call(func=ast.Name(id="command")), *_]
                ):
                    pass
                case ast.FunctionDef(name="__init__") if isinstance(owner, ast.ClassDef):
                    yield owner.name, node.args
                case ast.FunctionDef():
                    yield node.name, node.args


def _defaulted(args: ast.arguments) -> Iterator[tuple[str, float]]:
    """Parameters with a default, each with its place, which is none for keywords."""
    by_place = [*args.posonlyargs, *args.args]
    bound = bool(by_place) and by_place[0].arg in {"self", "cls"}
    for place in range(len(by_place) - len(args.defaults), len(by_place)):
        yield by_place[place].arg, place - bound
    for parameter, default in zip(args.kwonlyargs, args.kw_defaults, strict=True):
        if default is not None:
            yield parameter.arg, math.inf


def weigh() -> Figures:
    """Every figure but what the example enters, which must be run."""
    files = {tree: sorted((ROOT / tree).rglob("*.py")) for tree in (*SOURCES, *TESTS)}
    calls = read_calls(path for tree in SOURCES for path in files[tree])
    figures: Figures = {}
    for tree in TESTS:
        sources = (path.read_text(encoding="utf-8") for path in files[tree])
        figures[tree] = {"tokens": sum(map(count_tokens, sources))}
    for tree in SOURCES:
        unpassed = find_unpassed(files[tree], calls)
        figures[tree] = {
            **weigh_files(files[tree]),
            "largest signature": count_largest_signature(files[tree]),
            "characters of strings": count_characters(files[tree]),
            "bytes of templates and schemas": count_shipped(ROOT / tree),
            "parameters with a default that nothing passes": len(list(unpassed)),
        }
    for path in files[SOURCES[0]]:
        room, *inside = path.relative_to(ROOT / SOURCES[0]).parts
        if inside:
            weights = figures.setdefault(f"{SOURCES[0]}/{room}", dict.fromkeys(OF_ROOMS, 0))
            for figure in OF_ROOMS:
                weights[figure] += weigh_file(path)[figure]
    return figures


def count_characters(paths: Iterable[Path]) -> int:
    """Characters of strings, without docstrings."""
    count = 0
    for node in (node for path in paths for node in read_file(path)[1]):
        match node:
            case ast.Constant(value=str(text)):
                count += len(text)
            case ast.Expr(value=ast.Constant(value=str(docstring))):
                count -= len(docstring)
    return count


def count_shipped(tree: Path) -> int:
    """Bytes of what ships besides code."""
    files = (path for path in tree.rglob("*") if path.suffix in SHIPPED)
    return sum(path.stat().st_size for path in files)


def weigh_example() -> Figures:
    """Files and functions of howsure that one assessment with its page enters."""
    command = [sys.executable, "-c", EXAMPLE]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    counts = map(int, done.stdout.split()[-3:])
    return {ENTERED: dict(zip(("files", "functions", "classes"), counts, strict=True))}


def read_limits(content: dict[str, Any]) -> Figures:
    """Each figure as it stood, and what entries give."""
    limits = {place: dict(figures) for place, figures in content["figures"].items()}
    for entry in content.get("given", ()):
        assert entry["what"].strip(), "an entry says what came"
        assert entry["instead_of"].strip(), "an entry says what left for it"
        limits[entry["place"]][entry["figure"]] += entry["by"]
    return limits


def lower(figures: Figures, content: str) -> str:
    """The file with figures as they are where they have fallen."""
    kept = tomllib.loads(content)
    limits = read_limits(kept)
    for place, found in figures.items():
        section = content.index(f'[figures."{place}"]')
        for figure, value in kept["figures"][place].items():
            fallen = limits[place][figure] - found.get(figure, 0)
            line = content.index(f'"{figure}" = {value}\n', section)
            if fallen > 0:
                head, tail = content[:line], content[line:]
                tail = tail.replace(f"= {value}\n", f"= {value - fallen}\n", 1)
                content = head + tail
    return content


if __name__ == "__main__":
    FILE.write_text(lower(weigh() | weigh_example(), FILE.read_text("utf-8")), encoding="utf-8")
