"""A file far larger than what is asked of it: only the needed columns take room."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

SIZE = 150 << 20
SCRIPT = """
import resource, sys
from howsure.inputs import load
load({"y": [1.0], "pred": [1.0]})
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
(made,) = load(sys.argv[1], groups="region").evalsets
after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(made.n, (after - before) * 1024)
"""


@pytest.mark.rate
def test_a_wide_file_is_read_in_blocks(tmp_path: Path) -> None:
    """Forty columns of which four are needed take less room than half the file."""
    path = tmp_path / "wide.csv"
    table = np.random.default_rng(0).random((1000, 39)).round(12)
    block = "".join(",".join(map(str, row)) + ",north\n" for row in table.tolist()).encode()
    header = ["y", "pred", "sd", *(f"c{i}" for i in range(36)), "region"]
    with path.open("wb") as file:
        file.write((",".join(header) + "\n").encode())
        for _ in range(SIZE // len(block)):
            file.write(block)
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(path)], capture_output=True, text=True, check=True
    )
    rows, room = map(int, done.stdout.split())
    assert rows == 1000 * (SIZE // len(block))
    assert room < SIZE / 2
    path.unlink()
