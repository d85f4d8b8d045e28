"""Run targets of the Makefile one after the other, each to its end, then list what failed.

python tests/lanes.py "lint & docs" "test-quick THREADS=2"  # those joined by & at the same time
"""

from __future__ import annotations

import functools
import os
import shlex
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor


def failures(lane: str, *, alone: bool) -> list[str]:
    """What failed in a lane: the tests that its output names, or the lane itself."""
    command = [os.environ.get("MAKE", "make"), "--no-print-directory", *shlex.split(lane)]
    named, lines = [], []
    # without close_fds=False, make could not share its jobs with the lanes
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=None if alone else subprocess.STDOUT,
        text=True,
        errors="replace",
        close_fds=False,
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if alone:
                print(line, end="", flush=True)
            else:  # shown in one piece, not line by line among those of others
                lines.append(line)
            if line.startswith(("FAILED ", "ERROR ")):
                named.append(line.rstrip())
    print(end="".join(lines), flush=True)
    return (named or [f"exit status {process.returncode}"]) if process.returncode else []


def main(lanes: list[str]) -> int:
    """Run every lane; 1 where one is red."""
    red = {}
    for joined in lanes:
        together = joined.split(" & ")
        with ThreadPoolExecutor(len(together)) as pool:
            run = functools.partial(failures, alone=len(together) == 1)
            found = dict(zip(together, pool.map(run, together), strict=True))
        red |= {lane: names for lane, names in found.items() if names}
    for lane, found in red.items():
        print(f"\nRed: {lane}", *found, sep="\n  ", flush=True)
    return int(bool(red))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
