"""What `make test-changed` runs: rooms at or above the lowest changed floor, and changed tests."""

from __future__ import annotations

from pathlib import PurePosixPath

import pytest

from changed import FLOORS, choose_tests

FOLDERS = {
    PurePosixPath("tests"): ["cli", "core", "docs", "metrics", "report", "stats", "test_pace.py"],
    PurePosixPath("studies/tests"): ["engine", "methods", "shift"],
}
STUDIES = [f"studies/tests/{name}" for name in ("engine", "methods", "shift")]


@pytest.mark.parametrize(
    ("changed", "left"),
    [
        ([], [*(f"tests/{name}" for name in FOLDERS[PurePosixPath("tests")]), *STUDIES]),
        (["src/howsure/core/rng.py"], []),
        (["src/howsure/_version.py"], []),
        (["src/howsure/report/page.py"], ["tests/core", "tests/metrics", "tests/stats"]),
        (
            ["studies/src/howsure_studies/engine/plans.py"],
            [*(f"tests/{name}" for name in FOLDERS[PurePosixPath("tests")]), STUDIES[1]],
        ),
        (["tests/extras.py"], STUDIES),
        (["tests/oracles/scores.py"], STUDIES),
        (
            ["docs/index.md"],
            [
                *(f"tests/{name}" for name in FOLDERS[PurePosixPath("tests")] if name in FLOORS),
                *STUDIES[:2],
            ],
        ),
    ],
)
def test_rooms_at_or_above_the_lowest_changed_floor_are_run(
    changed: list[str], left: list[str]
) -> None:
    assert choose_tests(set(map(PurePosixPath, changed)), FOLDERS)[1] == left


def test_a_changed_test_is_run_with_what_else_is() -> None:
    changed = {PurePosixPath("tests/stats/test_ranks.py"), PurePosixPath("tests/cli/test_ci.py")}
    source = PurePosixPath("src/howsure/cli/main.py")
    assert choose_tests(changed, FOLDERS)[0] == [
        "tests/cli/test_ci.py",
        "tests/stats/test_ranks.py",
    ]
    chosen, _ = choose_tests(changed | {source}, FOLDERS)
    assert chosen[0] == "tests/cli"
    assert chosen[-1] == "tests/stats/test_ranks.py"
    assert "tests/cli/test_ci.py" not in chosen
