"""The uncertainty characteristics curve: width against misses over all operating points."""

from howsure.topics.characteristic.bands import Bands, bands_from_sd
from howsure.topics.characteristic.curve import CharacteristicCurve, auucc, characteristic_curve
from howsure.topics.characteristic.operating import (
    ConformalPromise,
    Cost,
    OperatingPoint,
    ToolkitCurve,
)
from howsure.topics.characteristic.reference import PerfectGain, gain_of_perfect_model
from howsure.topics.characteristic.resampling import (
    BootstrapCurve,
    Bootstrapped,
    PermutationTest,
    bootstrap_curve,
    bootstrap_gain_difference,
    permutation_test,
)
from howsure.topics.characteristic.trace import Area, AreaRequest, Gain

__all__ = [
    "Area",
    "AreaRequest",
    "Bands",
    "BootstrapCurve",
    "Bootstrapped",
    "CharacteristicCurve",
    "ConformalPromise",
    "Cost",
    "Gain",
    "OperatingPoint",
    "PerfectGain",
    "PermutationTest",
    "ToolkitCurve",
    "auucc",
    "bands_from_sd",
    "bootstrap_curve",
    "bootstrap_gain_difference",
    "characteristic_curve",
    "gain_of_perfect_model",
    "permutation_test",
]
