"""The command as a process: its streams, and the status and the one line that it ends with."""

from __future__ import annotations

import _thread
import codecs
import io
import os
import signal
import sys
import traceback
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import TextIO

# As the shells have it: 128 + 2, the number of SIGINT, and 128 + 13, that of SIGPIPE.
BROKEN, INTERRUPTED, UNREAD = 2, 130, 141
"""Status of what could not be done, of Ctrl-C, and, as of SIGPIPE, of a reader that left."""

_POORER = "howsure.poorer"
_STAND_INS = dict(zip("✓○✗≈→↓↑◎–−×…•±≤≥", (*"+ox=>v^o--x~*", "+-", "<=", ">="), strict=True))
"""For encodings that lack the marks of a verdict, which must not all be a question mark."""


class Interrupted(SystemExit):
    """The end of a command that was interrupted, with more to say than that."""

    def __init__(self, words: str) -> None:
        super().__init__(INTERRUPTED)
        self.words = words


def main() -> None:
    """Run the command line, interruptible from its first import to its last line."""
    was_interrupted = False

    def interrupt(number: int, frame: FrameType | None) -> None:
        nonlocal was_interrupted
        was_interrupted = True
        raise KeyboardInterrupt

    signal.signal(signal.SIGINT, interrupt)
    sys.unraisablehook = _again
    status, message, words = 0, "", "interrupted"
    try:
        _fill_closed()
        sys.stdout, sys.stderr = _Stream.over(sys.stdout), _Stream.over(sys.stderr)
        from howsure.cli.main import main as run

        status = run()
        for stream in filter(None, (sys.stdout, sys.stderr)):
            stream.flush()
    except BaseException as error:  # noqa: BLE001 (an interrupted import fails in its own words)
        status, message = ended(error)
        words = getattr(error, "words", words)
    finally:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # what is left to do takes no time
    if was_interrupted:
        status, message = INTERRUPTED, words
    if message and sys.stderr is not None:
        with suppress(Exception, _LostError):
            sys.stderr.write(f"howsure: {message}\n")
            sys.stderr.flush()
    sys.exit(status)


def _fill_closed() -> None:
    """Open what is closed of stdin, stdout and stderr, lest a table get its number."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # the lowest number that is free


class _LostError(BaseException):
    """A stream takes no more; the work shall not mistake this for an error of its own."""


class _Stream(io.TextIOWrapper):
    """A standard stream of any encoding: what that lacks is replaced, and its end is noticed."""

    @classmethod
    def over(cls, stream: TextIO) -> TextIO:
        """The same stream, minded; None, or what a program put in its place, as it is."""
        if type(stream) is not io.TextIOWrapper:
            return stream
        stream.flush()
        return cls(
            stream.buffer,
            encoding=stream.encoding,
            errors=_POORER,
            line_buffering=stream.line_buffering,
            write_through=stream.write_through,
        )

    def write(self, text: str) -> int:
        """As any, but for what is raised where it fails."""
        try:
            return super().write(text)
        except OSError as error:
            raise self._lost(error) from error

    def flush(self) -> None:
        """As any, but for what is raised where it fails."""
        try:
            super().flush()
        except OSError as error:
            raise self._lost(error) from error

    def _lost(self, error: OSError) -> _LostError:
        """What to raise; what is still unwritten goes nowhere when the process ends."""
        with suppress(OSError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), self.fileno())
        return _LostError(error)


def _poorer(error: UnicodeError) -> tuple[str, int]:
    """What stands for a character that the encoding lacks."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return _STAND_INS.get(error.object[error.start], "?"), error.start + 1


codecs.register_error(_POORER, _poorer)


def ended(error: BaseException) -> tuple[int, str]:
    """Status and words for what no command foresaw; status 1 is for commands alone to give."""
    if isinstance(error, KeyboardInterrupt):
        return INTERRUPTED, "interrupted"
    if isinstance(error, _LostError):
        cause = error.args[0]
        if isinstance(cause, BrokenPipeError):
            return UNREAD, ""
        return BROKEN, f"standard output cannot be written: {cause.strerror}"
    if isinstance(error, MemoryError):
        return BROKEN, "not enough memory"
    if sys.flags.dev_mode:
        traceback.print_exception(error)
    from howsure.core.errors import error_line

    steps = traceback.extract_tb(error.__traceback__)
    location = f" ({Path(steps[-1].filename).name}, line {steps[-1].lineno})" if steps else ""
    return BROKEN, (
        f"internal error: {error_line(error)}{location}; please report it to the developers with "
        "the output under PYTHONDEVMODE=1"
    )


def _again(problem: sys.UnraisableHookArgs) -> None:
    """An interruption that fell where nothing may be raised comes again a moment later."""
    if issubclass(problem.exc_type, KeyboardInterrupt):
        _thread.interrupt_main()
    else:
        sys.__unraisablehook__(problem)


def echo(text: object, *, error: bool = False) -> None:
    """One plain line, on stdout or stderr."""
    from howsure.core.text import legible

    stream = sys.stderr if error else sys.stdout
    if stream is not None:
        stream.write(f"{legible(str(text))}\n")
        stream.flush()
