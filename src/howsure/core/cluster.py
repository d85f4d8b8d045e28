"""A Dask scheduler, and how its workers are asked for work: what both wings need of one."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any, Final

from howsure.core.errors import InputError
from howsure.core.optional import require

TIMEOUT: Final = 10  # seconds in which a scheduler must answer


def connected(scheduler: str) -> Any:
    """A client of a Dask scheduler."""
    distributed = require("distributed", extra="cluster")
    try:
        return distributed.Client(scheduler, timeout=TIMEOUT, set_as_default=False)
    except (OSError, TimeoutError, ValueError, TypeError) as error:
        raise InputError(
            f"scheduler must be the address of a Dask scheduler that answers, as "
            f"tcp://host:8786, got {scheduler!r}: {error}"
        ) from error


def killed_worker() -> type[Exception]:
    """What tells that all workers died that ran a task."""
    killed: type[Exception] = require("distributed.scheduler", extra="cluster").KilledWorker
    return killed


def submitted(client: Any, key: str, function: Callable[..., Any], *given: Any) -> Any:
    """The future of a call on some worker.

    It goes as code, and only the call itself needs howsure: a worker without howsure then says so.
    It would end without a word if it met a function of howsure's in the message.
    """
    return client.submit(_caller(), pickle.dumps((function, given)), key=key, pure=False)


def _caller() -> Callable[[bytes], Any]:
    """What a worker is sent to call."""

    def call(packed: bytes) -> Any:
        import pickle

        function, given = pickle.loads(packed)
        return function(*given)

    return call
