"""Simulators that know their own truth: mean, noise and quantiles at every x.

Three sources of data, as Sluijterman, Cator and Heskes propose: a function and a noise term
(`FunctionWorld`), a simulation fitted to a real table (`ForestWorld`), and a huge real table cut
in many (`CutWorld`), which knows no truth.
"""

from howsure_studies.tasks.worlds.base import (
    Box,
    Covariates,
    Draw,
    FunctionWorld,
    InputLaw,
    KnownWorld,
    Truth,
    TwoModes,
    World,
)
from howsure_studies.tasks.worlds.catalogue import constant, world_named, worlds
from howsure_studies.tasks.worlds.noise import (
    NOISES,
    CentredGamma,
    Laplace,
    Mixture,
    Noise,
    Normal,
    Skewed,
    StudentT,
    Uniform,
    noise_named,
)
from howsure_studies.tasks.worlds.tables import CutWorld, ForestWorld

__all__ = [
    "NOISES",
    "Box",
    "CentredGamma",
    "Covariates",
    "CutWorld",
    "Draw",
    "ForestWorld",
    "FunctionWorld",
    "InputLaw",
    "KnownWorld",
    "Laplace",
    "Mixture",
    "Noise",
    "Normal",
    "Skewed",
    "StudentT",
    "Truth",
    "TwoModes",
    "Uniform",
    "World",
    "constant",
    "noise_named",
    "world_named",
    "worlds",
]
