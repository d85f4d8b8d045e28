"""What the house weighs, and a command that lowers figures: python tests/architecture/weigh.py.

Tokens are names, operators, numbers and strings: lines can be made denser, tokens cannot.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
FILE = Path(__file__).with_name("weight.toml")
SOURCES = ("src/howsure", "studies/src/howsure_studies")
TREES = (*SOURCES, "tests", "studies/tests")
ROOMS = "rooms of howsure"
ENTERED = "entered by the example of the README, with its page"
MANY = 12  # parameters, from which on a function has too many
FILLERS = re.compile(
    r"_*(told|tells?|said|says?|found|held|holds?|given|made|make|kept|part|place|one|each|known|"
    r"asked|seen|own|others|rest|whole|beside|apart|left|back)_*"
)
KINDS = frozenset({"Intervals", "Quantiles", "Distribution", "Samples", "LabelSets"})
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
    if event == "call" and code.co_filename.startswith(home) and "<" not in code.co_name:
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
print(len({file for file, _ in entered}), len(entered))
"""

Figures = dict[str, dict[str, int]]


def count_tokens(source: str) -> int:
    """Names, operators, numbers and strings; an f-string is one, on every version of Python."""
    return sum(not match["skipped"] for match in TOKEN.finditer(source))


def count_tokens_by_room(tree: Path) -> Counter[str]:
    """Tokens of each folder of a tree, and of the files beside them."""
    figures = Counter[str]()
    for path in tree.rglob("*.py"):
        room = path.relative_to(tree).parts[0]
        figures[room] += count_tokens(path.read_text(encoding="utf-8"))
    return figures


def count_burdens(tree: Path) -> Counter[str]:
    """Files, and what else makes a tree of Python files heavy to read."""
    figures = Counter[str]()
    for path in tree.rglob("*.py"):
        figures["files"] += 1
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            figures.update(_burdens(node))
    return figures


def _burdens(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.ClassDef():
            yield "classes"
        case ast.FunctionDef(name=name, args=args):
            if len([*args.posonlyargs, *args.args, *args.kwonlyargs]) >= MANY:
                yield "functions of many parameters"
            if FILLERS.fullmatch(name):
                yield "functions called by a filler"
        case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name):
            if FILLERS.fullmatch(name):
                yield "bindings called by a filler"
        case ast.Call(func=ast.Name(id="isinstance"), args=[_, kinds]):
            if KINDS & {each.id for each in ast.walk(kinds) if isinstance(each, ast.Name)}:
                yield "isinstance on kinds"


def weigh() -> Figures:
    """Every figure but what the example enters, which must be run."""
    rooms = {tree: count_tokens_by_room(ROOT / tree) for tree in TREES}
    figures: Figures = {tree: {"tokens": rooms[tree].total()} for tree in TREES}
    for tree in SOURCES:
        figures[tree] |= count_burdens(ROOT / tree)
    folders = {room: count for room, count in rooms[SOURCES[0]].items() if "." not in room}
    return figures | {ROOMS: folders}


def weigh_example() -> Figures:
    """Files and functions of howsure that one assessment with its page enters."""
    command = [sys.executable, "-c", EXAMPLE]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    files, functions = map(int, done.stdout.split()[-2:])
    return {ENTERED: {"files": files, "functions": functions}}


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
