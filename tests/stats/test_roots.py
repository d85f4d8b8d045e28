"""Roots and minima: against closed forms and SciPy."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import numpy as np
import pytest
from scipy import optimize

from howsure.stats.roots import minimum, root

ROOTS = {
    "cube": (lambda x: x**3 - 2.0, 0.0, 2.0, 2.0 ** (1 / 3)),
    "cosine": (lambda x: math.cos(x) - x, -5.0, 5.0, 0.7390851332151607),
    "flat": (lambda x: (x - 1.0) ** 9, -2.0, 7.0, 1.0),
    "steep": (lambda x: math.atan(1e6 * (x - 0.123)), -1.0, 1.0, 0.123),
    "falls": (lambda x: 1.0 - math.exp(x), -40.0, 1.0, 0.0),
    "step": (lambda x: 1.0 if x > 0.7 else -1.0, 0.0, 1.0, 0.7),
    "at an end": (lambda x: x, 0.0, 3.0, 0.0),
    "at an end, falling": (lambda x: -x, 0.0, 3.0, 0.0),
}


@pytest.mark.parametrize("name", ROOTS)
def test_roots(name: str) -> None:
    function, low, high, expected = ROOTS[name]
    calls = []

    def counted(x: float) -> float:
        calls.append(x)
        return function(x)

    for ends in ((low, high), (high, low)):
        calls.clear()
        found = root(counted, *ends, 1e-12)
        assert abs(found - expected) < 2e-12
        assert len(calls) < 100
        assert all(low <= x <= high for x in calls)


def test_no_change_of_sign_has_no_root() -> None:
    with pytest.raises(ValueError, match="no change of sign from 1 "):
        root(lambda x: x, 1.0, 2.0, 1e-9)


def test_minima_are_scipys() -> None:
    """The same points are visited: the algorithm is the same."""
    rng = np.random.default_rng(0)
    functions = [
        lambda x: (x - 0.3) ** 2,
        lambda x: abs(x - 0.3),
        lambda x: x,
        lambda x: -x,
        lambda x: max(math.exp(x), 2.0 - x),
        lambda x: float(np.abs(draws - x).mean()),
    ]
    draws = rng.normal(size=41)
    for function in functions:
        for low, high in ((-1.0, 4.0), (-0.5, 0.5), (0.2, 0.9)):
            ours: list[float] = []
            theirs: list[float] = []

            def kept(x: float, into: list[float], of: Callable[[float], float]) -> float:
                into.append(float(x))
                return float(of(x))

            found = minimum(partial(kept, into=ours, of=function), low, high, 1e-8)
            peer = optimize.minimize_scalar(
                partial(kept, into=theirs, of=function),
                bounds=(low, high),
                method="bounded",
                options={"xatol": 1e-8},
            )
            assert found == pytest.approx(peer.x, abs=1e-9)
            np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-9)
