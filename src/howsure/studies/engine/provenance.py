"""Where and with what a result was made."""

from __future__ import annotations

import platform
import sys
from datetime import UTC, datetime
from typing import Any

from howsure._version import __version__

_LIBRARIES = ("numpy", "scipy", "sklearn", "torch")


def provenance(started: datetime, seconds: float, cpu_seconds: float) -> dict[str, Any]:
    """Versions, machine, start and duration, as plain values.

    Parameters
    ----------
    started : datetime
        When the work began, with a time zone.
    seconds : float
        How long it took, by the wall clock.
    cpu_seconds : float
        What its process used of the processor meanwhile: on a busy machine, less.

    Returns
    -------
    dict
        Libraries are those that this process has loaded.

    Examples
    --------
    >>> provenance(datetime(2026, 1, 1, tzinfo=UTC), 1.5, 1.4)["started"]
    '2026-01-01T00:00:00+00:00'
    """
    loaded = {name: sys.modules[name] for name in _LIBRARIES if name in sys.modules}
    return {
        "howsure": __version__,
        "python": platform.python_version(),
        "libraries": {name: str(module.__version__) for name, module in loaded.items()},
        "platform": platform.platform(),
        "host": platform.node(),
        "started": started.astimezone(UTC).isoformat(timespec="seconds"),
        "seconds": round(seconds, 3),
        "cpu_seconds": round(cpu_seconds, 3),
    }
