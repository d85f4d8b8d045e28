"""The net under every measure: reasons pass, faults are told, and a strict caller sees them."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from howsure.core.errors import (
    DegenerateError,
    FaultError,
    InputError,
    MissingDependencyError,
    UnanswerableError,
    _strict,
    attempt,
    collected,
)


def raising(error: Exception) -> Callable[[], str]:
    def ask() -> str:
        raise error

    return ask


@pytest.fixture
def lenient() -> None:
    """As a user runs it."""
    _strict.set(False)


def test_an_answer_passes() -> None:
    assert attempt("x", lambda: "yes", str.upper) == "yes"


@pytest.mark.parametrize("kind", [UnanswerableError, MissingDependencyError, DegenerateError])
def test_a_declared_reason_is_the_reason_and_no_fault(kind: type[Exception]) -> None:
    with collected() as faults:
        assert attempt("x", raising(kind("no rows")), str.upper) == "NO ROWS"
    assert faults == []


@pytest.mark.parametrize("kind", [InputError, ValueError, ZeroDivisionError, OverflowError])
@pytest.mark.usefixtures("lenient")
def test_a_fault_is_told_in_one_line_and_gathered(kind: type[Exception]) -> None:
    with collected() as faults:
        told = attempt("mae of net", raising(kind("a\nb")), lambda reason: reason)
    assert told == f"fault in howsure ({kind.__name__}: a b); please report it"
    assert faults == [f"mae of net: {told}"]


def test_a_strict_caller_sees_the_fault() -> None:
    with pytest.raises(FaultError, match="mae of net: InputError: wrong"):
        attempt("mae of net", raising(InputError("wrong")), str.upper)


@pytest.mark.usefixtures("lenient")
def test_what_stops_a_program_is_not_held_up() -> None:
    def stop() -> str:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        attempt("x", stop, str.upper)
