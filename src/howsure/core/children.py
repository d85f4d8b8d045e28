"""Processes of our own, which do what they are sent for as long as this one lives.

A process is started by its own command line, not forked and not by `multiprocessing`: it inherits
no lock in an unknown state, imports nobody's main module, and may be started by a daemon. It leads
a group of its own, so that whatever it starts ends with it, and a Ctrl-C at the terminal reaches
the parent alone. It ends by itself when the parent is gone.
"""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from queue import SimpleQueue
from typing import Any, BinaryIO, Final, NoReturn

from howsure.core.errors import HowsureError, error_line
from howsure.core.progress import subscribe

_PATIENCE: Final = 0.5  # seconds in which a process that says no more is dead
_STEP: Final = 0.1  # seconds between words of how far work has come
_THREADS: Final = (
    *("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS"),
    *("VECLIB_MAXIMUM_THREADS", "NUMBA_NUM_THREADS", "NUMEXPR_NUM_THREADS"),
)  # Arrow goes by the first
_SERVE: Final = "import sys; sys.path[:] = {!r}; from howsure.core.children import serve; serve()"


class Child:
    """One process, as its parent sees it."""

    def __init__(self, one_thread: bool) -> None:
        limits = dict.fromkeys(_THREADS, "1") if one_thread else {}
        self.process = subprocess.Popen(
            [sys.executable, "-c", _SERVE.format(sys.path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, **limits},
            start_new_session=True,
        )

    def send(self, function: Callable[..., Any], *given: Any) -> None:
        """Have a function called; a process that is dead is heard of by `word`."""
        packed = pickle.dumps((function, given))
        with suppress(OSError, ValueError):  # broken, or closed
            pickle.dump(packed, _pipe(self.process.stdin))
            _pipe(self.process.stdin).flush()

    def word(self) -> tuple[str, Any]:
        """What it says next: begun, step, done or error, and then no more of that call.

        Raises whatever a broken stream makes pickle raise, once the process is dead.
        """
        kind, word = pickle.load(_pipe(self.process.stdout))
        return kind, word

    def hung_up(self) -> None:
        """Close the end from which its words came."""
        _pipe(self.process.stdout).close()

    def kill(self) -> None:
        """End it, and all that it has started."""
        if sys.platform == "win32":
            self.process.kill()
        else:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        with suppress(OSError):
            _pipe(self.process.stdin).close()

    def death(self) -> str:
        """How it died, in words."""
        try:
            code = self.process.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            code = -signal.SIGKILL if sys.platform != "win32" else 1
        self.kill()
        if code >= 0:
            return f"ended by itself, with status {code}"
        how = f"was ended by {signal.Signals(-code).name}"
        return f"{how}, perhaps for want of memory" if how.endswith("KILL") else how


def serve() -> NoReturn:
    """Do what comes by stdin, and say by stdout what came of it, for as long as the parent lives.

    What the work prints goes to stderr.
    """
    words, calls = os.fdopen(os.dup(1), "wb"), os.fdopen(os.dup(0), "rb")
    os.dup2(2, 1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    given: SimpleQueue[bytes] = SimpleQueue()
    threading.Thread(target=_receive, args=(calls, given), daemon=True).start()
    last = 0.0

    def say(kind: str, word: Any = None) -> None:
        pickle.dump((kind, word), words)
        words.flush()

    def step(*stage: Any) -> None:
        nonlocal last
        if time.monotonic() - last > _STEP:
            last = time.monotonic()
            say("step", stage)

    while True:
        packed = given.get()
        say("begun")
        try:
            function, arguments = pickle.loads(packed)
            with subscribe(step):
                result = function(*arguments)
            say("done", result)
        except Exception as error:  # noqa: BLE001 - the parent is told whatever it is
            kind = type(error) if isinstance(error, HowsureError) else HowsureError
            say("error", kind(error if kind is type(error) else error_line(error)))


def _receive(calls: BinaryIO, given: SimpleQueue[bytes]) -> None:
    """Take calls; when the parent is gone, end this process and all that it has started."""
    try:
        while True:
            given.put(pickle.load(calls))
    finally:
        if sys.platform != "win32":
            os.killpg(0, signal.SIGKILL)
        os._exit(1)


def _pipe(stream: Any) -> Any:
    assert stream is not None
    return stream
