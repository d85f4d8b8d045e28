"""Run targets of the Makefile one after the other, each to its end, then list what failed.

python tests/lanes.py lint docs "test-quick THREADS=2"
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys


def failures(lane: str) -> list[str]:
    """What failed in a lane: the tests that its output names, or the lane itself."""
    command = [os.environ.get("MAKE", "make"), "--no-print-directory", *shlex.split(lane)]
    named = []
    # without close_fds=False, make could not share its jobs with the lanes
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, errors="replace", close_fds=False
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            print(line, end="", flush=True)
            if line.startswith(("FAILED ", "ERROR ")):
                named.append(line.rstrip())
    return (named or [f"exit status {process.returncode}"]) if process.returncode else []


def main(lanes: list[str]) -> int:
    """Run every lane; 1 where one is red."""
    red = {lane: found for lane in lanes if (found := failures(lane))}
    for lane, found in red.items():
        print(f"\nRed: {lane}", *found, sep="\n  ", flush=True)
    return int(bool(red))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
