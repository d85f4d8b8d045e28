"""Name the tests of what has changed: those of rooms at or above the lowest changed floor.

python -m pytest $(python tests/changed.py)       # since the last commit
python -m pytest $(python tests/changed.py main)  # since another one

Floors are those of `tests/architecture/test_floors.py`: a room imports lower ones only. A change of
docs, or of what else is in no room, runs the tests that are of no one room. What is left out is
printed to the standard error.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests" / "architecture"))

from test_floors import FLOORS, WING  # noqa: E402

HOUSES = {
    PurePosixPath("tests"): (PurePosixPath("src/howsure"), FLOORS),
    PurePosixPath("studies/tests"): (PurePosixPath("studies/src/howsure_studies"), WING),
}
"""The source that each tree of tests is of, and its floors."""
TOP = 99  # of each study, and of tests that are of no one room
NONE = TOP + 1  # where no file of a house has changed


def changed_files(since: str) -> set[PurePosixPath]:
    """Files that differ from a commit, and those that git does not know yet."""
    files: set[PurePosixPath] = set()
    for command in (["diff", "--name-only", since], ["ls-files", "--others", "--exclude-standard"]):
        run = subprocess.run(["git", *command], cwd=ROOT, capture_output=True, check=True)
        files.update(map(PurePosixPath, run.stdout.decode().splitlines()))
    return files


def lowest_floor(changed: set[PurePosixPath], source: PurePosixPath, floors: dict[str, int]) -> int:
    """The lowest floor with a changed file, past the top if there is none."""
    rooms = [path.relative_to(source).parts for path in changed if path.is_relative_to(source)]
    return min((floors.get(room[0], TOP) if room[1:] else 0 for room in rooms), default=NONE)


def choose_tests(
    changed: set[PurePosixPath], folders: dict[PurePosixPath, list[str]]
) -> tuple[list[str], list[str]]:
    """Paths of tests to run and to leave out, given the entries of each tree of tests."""
    chosen, left = [], []
    trees = {tree for house, (source, _) in HOUSES.items() for tree in (house, source)}
    elsewhere = any(not trees & set(path.parents) for path in changed)
    below = NONE
    for tree, (source, floors) in HOUSES.items():
        lowest = 0 if below < TOP else lowest_floor(changed, source, floors)
        below = lowest = min(lowest, TOP if elsewhere else NONE)
        helpers = {path for path in changed if path.suffix == ".py" and path.is_relative_to(tree)}
        helpers -= {path for path in helpers if path.name.startswith("test_")}
        shared = any(path.parent.name in ("tests", "oracles") for path in helpers)
        for name in folders[tree]:
            touched = any(path.is_relative_to(tree / name) for path in helpers)
            run = shared or touched or floors.get(name, TOP) >= lowest
            (chosen if run else left).append(tree / name)
    edited = {path for path in changed if path.name.startswith("test_")}
    chosen += sorted(path for path in edited if not set(path.parents) & set(chosen))
    return list(map(str, chosen)), list(map(str, left))


def main(since: str = "HEAD") -> None:
    """Print what to run, and to the standard error what is left out."""
    folders = {
        tree: sorted(
            path.name
            for path in (ROOT / tree).iterdir()
            if path.name.startswith("test_") or (path.is_dir() and list(path.rglob("test_*.py")))
        )
        for tree in HOUSES
    }
    changed = {path for path in changed_files(since) if (ROOT / path).exists()}
    chosen, left = choose_tests(changed, folders)
    sys.stdout.write(" ".join(chosen) + "\n")
    sys.stderr.write(f"left out: {' '.join(left)}\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
