"""Safe loading of pretrained models: errors that name them, and no global state left changed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from howsure.core.errors import HowsureError, InputError, message_of
from howsure.core.optional import require

_FAILURES = (
    *(OSError, ValueError, LookupError, TypeError, AttributeError, RuntimeError),
    *(ImportError, AssertionError),
)


@contextmanager
def opening(name: str) -> Iterator[None]:
    """Load a model: failures become `InputError`, and torch's random state stays as it was."""
    torch = require("torch", extra="text")
    broken = require("safetensors", extra="text").SafetensorError
    try:
        with torch.random.fork_rng(devices=[]):
            yield
    except HowsureError:
        raise
    except (broken, *_FAILURES) as error:
        raise InputError(f"encoder {name!r} cannot be loaded: {message_of(error)}") from error


@contextmanager
def working(name: str) -> Iterator[None]:
    """Encode with a model: its failures become `InputError`."""
    try:
        yield
    except HowsureError:
        raise
    except _FAILURES as error:
        raise InputError(f"encoder {name!r} fails on these items: {message_of(error)}") from error


@contextmanager
def quiet(log: Any) -> Iterator[None]:
    """Hold back the loading reports of `transformers`, and then let it speak as before."""
    verbosity, bars = log.get_verbosity(), log.is_progress_bar_enabled()
    log.set_verbosity_error()
    log.disable_progress_bar()
    try:
        yield
    finally:
        log.set_verbosity(verbosity)
        if bars:
            log.enable_progress_bar()
