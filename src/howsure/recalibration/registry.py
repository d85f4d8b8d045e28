"""All ways to recalibrate, gathered from the files that they stand in."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final

from howsure.predictions import EvalSet
from howsure.recalibration import (
    affine,
    conformal,
    crude,
    group,
    inputs,
    intervals,
    intervals_from_distributions,
    isotonic,
    recent,
    scaling,
    sets,
    shape,
    variance,
)
from howsure.recalibration.ease import has_ease
from howsure.recalibration.info import KINDS, MethodInfo

_FILES: Final = (
    scaling,
    affine,
    variance,
    shape,
    isotonic,
    crude,
    conformal,
    intervals,
    intervals_from_distributions,
    group,
    inputs,
    recent,
    sets,
)

_LISTED: Final = tuple(info for file in _FILES for info in file.METHODS)

METHODS: Final[Mapping[str, MethodInfo]] = MappingProxyType(
    {
        info.name: info
        for info in sorted(_LISTED, key=lambda info: (info.complexity or math.inf, info.turn))
    }
)
"""Every way to recalibrate by its name; what is advised stands first, the simplest before all."""

BEST: Final = "best"
"""The method that is chosen by trying all that are advised."""


def methods_of(kind: str) -> dict[str, MethodInfo]:
    """The methods of a kind of prediction by name, the default first, but see `recalibrate`.

    Examples
    --------
    >>> from howsure.recalibration.info import RecalibrationOptions
    >>> next(iter(methods_of("samples")))
    'scale'
    >>> methods_of("samples")["scale"].make("samples", RecalibrationOptions())
    SpreadScaling()
    """
    suiting = [info for info in _LISTED if kind in info.kinds]
    suiting.sort(key=lambda info: kind not in info.leads)
    return {info.name: info for info in suiting}


def method_of(kind: str, name: str | None) -> MethodInfo | None:
    """The method of a kind by its name or an alias; None where the kind has none such."""
    known = methods_of(kind)
    return known.get(name or "") or next(
        (info for info in known.values() if name in info.aliases), None
    )


def method_names() -> tuple[str, ...]:
    """Every name and alias, those of each kind together."""
    listed = [info for kind in KINDS for info in methods_of(kind).values()]
    return tuple(dict.fromkeys(name for info in listed for name in (info.name, *info.aliases)))


def advised(kind: str) -> tuple[MethodInfo, ...]:
    """What is tried of predictions of a kind, the simplest first."""
    return tuple(
        info
        for info in METHODS.values()
        if info.complexity and kind in info.kinds
        if kind != info.but and info.only in ("", kind)
    )


def can_teach(info: MethodInfo, calibration: EvalSet, by: Sequence[str] = ()) -> bool:
    """Whether rows hold what a method looks at beside the predictions, with no more said."""
    if info.needs == "groups":
        return bool(by) or len(calibration.groups) == 1
    if info.needs == "ease":
        return has_ease(calibration)
    if info.needs == "inputs":
        return bool(calibration.features) or calibration.embedding is not None
    return info.needs != "time" or calibration.time is not None
