"""The worlds that come with howsure, by name."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cache, partial
from types import MappingProxyType

import numpy as np

from howsure.core.arrays import FloatArray
from howsure.core.errors import InputError
from howsure.core.registry import Registry, unknown
from howsure_studies.tasks.worlds.base import (
    Box,
    FunctionWorld,
    KnownWorld,
    RowFunction,
    TwoModes,
    World,
)
from howsure_studies.tasks.worlds.noise import Noise

BROUGHT = Registry("world", "howsure.worlds")
"""Worlds of other packages, by entry points."""

_PAPER = "Sluijterman, Cator and Heskes, arXiv 2106.03395"
_HALF = Box((-0.5,), (0.5,))
_PI = math.pi


@cache
def worlds() -> Mapping[str, KnownWorld]:
    """Every world that comes with howsure, by name; all have normal noise.

    Returns
    -------
    mapping of str to KnownWorld

    Examples
    --------
    >>> worlds()["friedman1"].dimension
    10
    """
    return MappingProxyType({world.name: world for world in (*_toys(), *_lines(), *_functions())})


def world_named(name: str | World, noise: str | Noise | None = None) -> World:
    """The world of this name, with other noise if it is given; a world passes through.

    Parameters
    ----------
    name : str or World
        A name of `worlds`, or one that another package brings by an entry point of the group
        ``howsure.worlds``: a world, or what makes one when it is called.
    noise : str or Noise, optional
        Its noise law; see `noise_named`.

    Returns
    -------
    World

    Raises
    ------
    InputError
        If there is no such world or law (the message names the near ones), or the world has no
        noise law to change.
    PluginError
        If another package's world cannot be loaded.

    Examples
    --------
    >>> world_named("toy_bimodal", noise="laplace").noise.name
    'laplace'
    """
    world = name if isinstance(name, World) else _world_named(name)
    if noise is None:
        return world
    if not isinstance(world, KnownWorld):
        raise InputError(
            f"noise must be left out for world {world.name!r}, whose y is not simulated, "
            f"got {noise!r}"
        )
    return world.with_noise(noise)


def _world_named(name: object) -> World:
    """The world of this name: one of howsure's, or one that another package brings."""
    known, brought = worlds(), BROUGHT.names()
    if isinstance(name, str) and name in known:
        return known[name]
    if name not in brought:
        raise InputError(unknown(name, (*known, *brought), "world"))
    brought_world = BROUGHT.get(name)
    world = brought_world if isinstance(brought_world, World) else brought_world()
    if not isinstance(world, World):
        raise InputError(f"world {name!r} must be a World, got {type(world).__name__}")
    return world


def constant(value: float) -> RowFunction:
    """The function that is the same at every x.

    Examples
    --------
    >>> constant(2.0)(np.zeros((3, 1)))
    array([2., 2., 2.])
    """
    return partial(_same, float(value))  # unlike a lambda, it can be pickled


def _same(value: float, x: FloatArray) -> FloatArray:
    return np.full(len(x), value)


def _toys() -> tuple[FunctionWorld, ...]:
    return (
        FunctionWorld(
            name="toy_homoscedastic",
            inputs=_HALF,
            mean_function=_cube,
            scale_function=constant(0.2),
            description="(2x − 1)³, x uniform on [−0.5, 0.5], noise of sd 0.2",
            source=f"{_PAPER}, section 5.2",
        ),
        FunctionWorld(
            name="toy_heteroscedastic",
            inputs=_HALF,
            mean_function=_cube,
            scale_function=_bowl,
            description="(2x − 1)³, x uniform on [−0.5, 0.5], noise of sd 0.1 + x²",
            source=f"{_PAPER}, section 5.3",
        ),
        FunctionWorld(
            name="toy_bimodal",
            inputs=TwoModes((-0.4, 0.3), 0.07),
            mean_function=_cube,
            scale_function=constant(0.2),
            description="(2x − 1)³, x in two modes about −0.4 and 0.3, noise of sd 0.2",
            source=f"{_PAPER}, section 5.4 (the distribution of x is ours: the paper states none)",
        ),
    )


def _lines() -> tuple[FunctionWorld, ...]:
    return (
        FunctionWorld(
            name="linear",
            inputs=Box((-2.0,), (2.0,)),
            mean_function=_first,
            scale_function=constant(0.1),
            rows=25,
            test_rows=500,
            description="a straight line, x uniform on [−2, 2], noise of sd 0.1",
            source=f"{_PAPER}, section 3.2",
        ),
        FunctionWorld(
            name="fan",
            inputs=Box((0.0,), (1.0,)),
            mean_function=constant(0.0),
            scale_function=_wave,
            description="constant 0, noise of sd 1 + 0.6 sin 2πx",
            source=f"{_PAPER}, figure 3 (its sd is not stated; this one is ours)",
        ),
        FunctionWorld(
            name="cubic",
            inputs=Box((-4.0,), (4.0,)),
            mean_function=_third_power,
            scale_function=constant(3.0),
            rows=20,
            description="x³, x uniform on [−4, 4], noise of sd 3",
            source="Hernández-Lobato and Adams 2015, section 5.1",
        ),
    )


def _functions() -> tuple[FunctionWorld, ...]:
    wide = Box((0.0, 40 * _PI, 0.0, 1.0), (100.0, 560 * _PI, 1.0, 11.0))
    return (
        FunctionWorld(
            name="friedman1",
            inputs=Box((0.0,) * 10, (1.0,) * 10),
            mean_function=_friedman1,
            scale_function=constant(1.0),
            description="10 sin(πx₁x₂) + 20(x₃ − ½)² + 10x₄ + 5x₅, ten inputs, noise of sd 1",
            source="Friedman 1991, section 4.3",
        ),
        FunctionWorld(
            name="friedman2",
            inputs=wide,
            mean_function=_friedman2,
            scale_function=constant(125.0),
            description="impedance of a circuit, four inputs, noise of sd 125",
            source="Friedman 1991, section 4.4",
        ),
        FunctionWorld(
            name="friedman3",
            inputs=wide,
            mean_function=_friedman3,
            scale_function=constant(0.1),
            description="phase angle of a circuit, four inputs, noise of sd 0.1",
            source="Friedman 1991, section 4.4",
        ),
        FunctionWorld(
            name="ishigami",
            inputs=Box((-_PI,) * 3, (_PI,) * 3),
            mean_function=_ishigami,
            scale_function=constant(1.0),
            description="sin x₁ + 7 sin² x₂ + 0.1 x₃⁴ sin x₁, three inputs, noise of sd 1",
            source="Ishigami and Homma 1990 (the noise is ours)",
        ),
        FunctionWorld(
            name="branin",
            inputs=Box((-5.0, 0.0), (10.0, 15.0)),
            mean_function=_branin,
            scale_function=constant(10.0),
            description="Branin's function, two inputs, noise of sd 10",
            source="Dixon and Szegö 1978 (the noise is ours)",
        ),
    )


def _cube(x: FloatArray) -> FloatArray:
    return np.asarray((2.0 * x[:, 0] - 1.0) ** 3)


def _bowl(x: FloatArray) -> FloatArray:
    return np.asarray(0.1 + x[:, 0] ** 2)


def _first(x: FloatArray) -> FloatArray:
    return np.asarray(x[:, 0])


def _third_power(x: FloatArray) -> FloatArray:
    return np.asarray(x[:, 0] ** 3)


def _wave(x: FloatArray) -> FloatArray:
    return np.asarray(1.0 + 0.6 * np.sin(2.0 * _PI * x[:, 0]))


def _friedman1(x: FloatArray) -> FloatArray:
    waves = 10.0 * np.sin(_PI * x[:, 0] * x[:, 1])
    return np.asarray(waves + 20.0 * (x[:, 2] - 0.5) ** 2 + 10.0 * x[:, 3] + 5.0 * x[:, 4])


def _reactance(x: FloatArray) -> FloatArray:
    return np.asarray(x[:, 1] * x[:, 2] - 1.0 / (x[:, 1] * x[:, 3]))


def _friedman2(x: FloatArray) -> FloatArray:
    return np.asarray(np.hypot(x[:, 0], _reactance(x)))


def _friedman3(x: FloatArray) -> FloatArray:
    return np.asarray(np.arctan2(_reactance(x), x[:, 0]))


def _ishigami(x: FloatArray) -> FloatArray:
    lift = 7.0 * np.sin(x[:, 1]) ** 2
    return np.asarray((1.0 + 0.1 * x[:, 2] ** 4) * np.sin(x[:, 0]) + lift)


def _branin(x: FloatArray) -> FloatArray:
    valley = x[:, 1] - 5.1 / (4.0 * _PI**2) * x[:, 0] ** 2 + 5.0 / _PI * x[:, 0] - 6.0
    return np.asarray(valley**2 + 10.0 * (1.0 - 1.0 / (8.0 * _PI)) * np.cos(x[:, 0]) + 10.0)
