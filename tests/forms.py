"""Every JSON that a test has howsure write in its own process is held to its schema."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from functools import cache, wraps
from importlib.util import find_spec
from typing import Any
from unittest import mock

import pyarrow as pa
import pytest

import howsure
from extras import named, needs
from howsure.core.schemas import SchemaName


@cache
def _validator(name: SchemaName) -> Any:
    return needs("jsonschema").Draft202012Validator(howsure.schema(name))


def faults(name: SchemaName, held: Any) -> list[str]:
    """Where plain values are not of a form."""
    return [
        f"{each.json_path}: {each.message[:200]}" for each in _validator(name).iter_errors(held)
    ]


def of_text(name: SchemaName, text: str) -> list[str]:
    """Where JSON is not of a form; NaN is no JSON."""

    def refuse(constant: str) -> Any:
        raise AssertionError(f"{constant} is no JSON")

    return faults(name, json.loads(text, parse_constant=refuse))


def metadata(path: str | os.PathLike[str]) -> str:
    """The JSON in a state's file."""
    with pa.memory_map(os.fspath(path)) as file:
        return str(pa.ipc.open_file(file).schema.metadata[b"howsure"], "utf-8")


def _held(name: SchemaName, write: Callable[..., str]) -> Callable[..., str]:
    """What writes JSON, held to a schema."""

    @wraps(write)
    def written(*given: Any) -> str:
        text = write(*given)
        assert of_text(name, text) == []
        return text

    return written


@pytest.fixture(scope="session", autouse=True)
def forms_are_kept() -> Iterator[None]:
    """What is written to be read by programs has the form that its schema says."""
    if "jsonschema" in named("HOWSURE_WITHOUT") or find_spec("jsonschema") is None:
        yield
        return
    from howsure.cli import check
    from howsure.recalibration import FittedRecalibration
    from howsure.report import plain
    from howsure.report.improve import Improvement
    from howsure.streaming import State

    save = State.save

    def saved(state: State, path: str | os.PathLike[str]) -> None:
        save(state, path)
        assert of_text("state", metadata(path)) == []

    kept = _held("recalibration", FittedRecalibration.to_json)
    with (
        mock.patch.object(plain, "to_json", _held("report", plain.to_json)),
        mock.patch.object(check, "outcome", _held("check", check.outcome)),
        mock.patch.object(FittedRecalibration, "to_json", kept),
        mock.patch.object(Improvement, "to_json", _held("improvement", Improvement.to_json)),
        mock.patch.object(State, "save", saved),
    ):
        yield
