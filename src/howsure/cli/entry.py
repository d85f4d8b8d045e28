"""The command as a process: Ctrl-C ends it at any moment with one line and status 130."""

from __future__ import annotations

import _thread
import os
import signal
import sys
from types import FrameType

INTERRUPTED = 130


class Interrupted(SystemExit):
    """The end of a command that was interrupted, with more to say than that."""

    def __init__(self, words: str) -> None:
        super().__init__(INTERRUPTED)
        self.words = words


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
    words = "interrupted"
    try:
        from howsure.cli.main import main as run

        run()
    except SystemExit as leaving:
        status = leaving.code if isinstance(leaving.code, int | None) else 1
        words = getattr(leaving, "words", words)
    except BaseException:  # an import that is interrupted may fail in its own words
        if not seen:
            raise
    finally:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # what is left to do takes no time
    if seen:
        status = INTERRUPTED
        os.write(2, f"howsure: {words}\n".encode())
    sys.exit(status)


def _again(problem: sys.UnraisableHookArgs) -> None:
    """An interruption that fell where nothing may be raised comes again a moment later."""
    if issubclass(problem.exc_type, KeyboardInterrupt):
        _thread.interrupt_main()
    else:
        sys.__unraisablehook__(problem)
