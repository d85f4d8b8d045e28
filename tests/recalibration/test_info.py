"""What is said of each way to recalibrate holds of what it makes."""

from __future__ import annotations

import pytest

from howsure.predictions import Distribution, Intervals, Samples
from howsure.recalibration import METHODS
from howsure.recalibration.info import INFOS, advised
from howsure.verdict import QUESTIONS


@pytest.mark.parametrize("name", INFOS)
def test_each_has_what_makes_it_and_aims_at_findings(name: str) -> None:
    info = INFOS[name]
    assert any(name in known for known in METHODS.values())
    assert info.aims <= set(QUESTIONS)
    assert bool(info.words) == bool(info.complexity) == bool(info.aims)
    assert info.label or info.words
    assert ("{by}" in info.words) == (info.needs == "groups")


@pytest.mark.parametrize("kind", METHODS)
def test_what_is_advised_of_a_kind_rises_in_complexity(kind: str) -> None:
    found = [info.complexity for info in advised(kind)]
    assert found == sorted(found)


def test_what_is_advised_of_intervals_and_laws() -> None:
    intervals = ["shift", "scale", "cqr", "multiply", "asymmetric", "widths"]
    laws = ["shift", "scale", "shift_scale", "multiply", "widths", "shape", "isotonic_variance"]
    for kind, own in ((Intervals, intervals), (Distribution, laws), (Samples, laws)):
        known = METHODS[kind.kind]
        told = [info.name for info in advised(kind.kind) if info.name in known]
        assert told == [*own, "group", "inputs"]
