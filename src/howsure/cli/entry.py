"""The command as a process: Ctrl-C ends it at any moment with one line and status 130."""

from __future__ import annotations

import _thread
import os
import signal
import sys
from types import FrameType

INTERRUPTED = 130


def main() -> None:
    """Run the command line, interruptible from its first import to its last line."""
    seen = False

    def interrupt(number: int, frame: FrameType | None) -> None:
        nonlocal seen
        seen = True
        raise KeyboardInterrupt

    signal.signal(signal.SIGINT, interrupt)
    sys.unraisablehook = _again
    status: int | str | None = 0
    try:
        from howsure.cli.main import main as run

        run()
    except SystemExit as leaving:
        status = leaving.code if isinstance(leaving.code, int | None) else 1
    except BaseException:  # an import that is interrupted may fail in its own words
        if not seen:
            raise
    finally:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # what is left to do takes no time
    if seen and status != INTERRUPTED:  # a command that ends so has told more
        status = INTERRUPTED
        os.write(2, b"howsure: interrupted\n")
    sys.exit(status)


def _again(problem: sys.UnraisableHookArgs) -> None:
    """An interruption that fell where nothing may be raised comes again a moment later."""
    if issubclass(problem.exc_type, KeyboardInterrupt):
        _thread.interrupt_main()
    else:
        sys.__unraisablehook__(problem)
