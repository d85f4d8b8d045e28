"""Recalibration by recent rows alone."""

from __future__ import annotations

from howsure.core.errors import InputError
from howsure.predictions import EvalSet


def since_rows(evalset: EvalSet, since: str) -> EvalSet:
    """The rows from a time on."""
    raise InputError(f"since must be a time of the rows, got {since!r} of {evalset.n} rows")
