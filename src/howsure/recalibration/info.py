"""What is said of each way to recalibrate, in one place: its aims, its complexity, its words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, Literal, final

from howsure.predictions import Intervals


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class MethodInfo:
    """One way to recalibrate.

    Attributes
    ----------
    name : str
        As in `howsure.recalibration.METHODS`, which has what makes it.
    label : str
        How a model is called that it recalibrates, after "recalibrated"; empty where it serves
        tables alone.
    gives : {"same", "quantiles", "levels", "intervals"}
        What it makes of laws, samples and quantiles: predictions of the same kind; quantiles, as
        far as its rows reach or at the levels asked for; or intervals.
    words : str
        What it does, as advice begins; of ``{by}`` columns. Empty where it is not advised.
    complexity : int
        Of what is advised, the simplest first.
    aims : frozenset of str
        Ids of the findings that it can heal.
    needs : {"", "groups", "inputs"}
        What rows must hold for it.
    only, but : str
        The one kind of prediction for which it is advised, or is not; any if empty.
    """

    name: str
    label: str = ""
    gives: Literal["same", "quantiles", "levels", "intervals"] = "same"
    words: str = ""
    complexity: int = 0
    aims: frozenset[str] = frozenset()
    needs: Literal["", "groups", "inputs"] = ""
    only: str = ""
    but: str = ""


_SIDES: Final = ("coverage", "bias", "one_sided")
_SIZE: Final = ("coverage", "spread")
_WIDTHS: Final = frozenset((*_SIZE, "width", "trade", "tails"))
_SHAPE: Final = (*_SIDES, *_SIZE, "skew", "tails", "support")
INFOS: Final[Mapping[str, MethodInfo]] = MappingProxyType(
    {
        info.name: info
        for info in (
            MethodInfo(
                name="shift",
                label="shifted",
                words="shift every prediction",
                complexity=1,
                aims=frozenset(_SIDES),
            ),
            MethodInfo(
                name="scale",
                label="scaled",
                words="stretch every prediction",
                complexity=1,
                aims=frozenset(_SIZE),
            ),
            MethodInfo(
                name="cqr",
                label="by conformal offsets",
                gives="intervals",
                words="move both ends of every interval",
                complexity=1,
                aims=frozenset(_SIZE),
                only=Intervals.kind,
            ),
            MethodInfo(
                name="shift_scale",
                label="shifted and scaled",
                words="shift and stretch every prediction",
                complexity=2,
                aims=frozenset((*_SIDES, *_SIZE)),
                but=Intervals.kind,
            ),
            MethodInfo(
                name="multiply",
                label="multiplied",
                words="multiply every prediction by one number",
                complexity=2,
                aims=frozenset((*_SIDES, *_SIZE)),
            ),
            MethodInfo(
                name="asymmetric",
                label="by conformal offsets of each end",
                gives="intervals",
                words="move the lower and the upper ends of intervals by a constant each",
                complexity=2,
                aims=frozenset(_SIDES),
                only=Intervals.kind,
            ),
            MethodInfo(
                name="widths",
                label="by a power of its widths",
                words="make widths follow the size of the errors",
                complexity=2,
                aims=_WIDTHS,
            ),
            MethodInfo(
                name="shape",
                label="by its shape",
                gives="levels",
                words="map stated probabilities to observed frequencies",
                complexity=3,
                aims=frozenset(_SHAPE),
            ),
            MethodInfo(
                name="isotonic_variance",
                label="by isotonic variance",
                words="replace each variance by the mean squared error of rows like it",
                complexity=3,
                aims=_WIDTHS,
            ),
            MethodInfo(
                name="group",
                words="recalibrate within {by}",
                complexity=4,
                aims=frozenset((*_SHAPE, "groups", "width", "trade")),
                needs="groups",
            ),
            MethodInfo(
                name="inputs",
                words="recalibrate by the inputs",
                complexity=5,
                aims=frozenset((*_SHAPE, "region", "width", "trade")),
                needs="inputs",
            ),
            MethodInfo(name="isotonic", label="by its PIT", gives="quantiles"),
            MethodInfo(name="crude", label="by its z-scores", gives="quantiles"),
            MethodInfo(name="conformal", label="by conformal quantiles"),
            MethodInfo(name="ucc", label="by conformal factors", gives="intervals"),
        )
    }
)
"""By name; what is advised stands first, the simplest before all."""


def advised(kind: str) -> tuple[MethodInfo, ...]:
    """What is tried of predictions of a kind, the simplest first."""
    return tuple(
        info
        for info in INFOS.values()
        if info.complexity and kind != info.but and info.only in ("", kind)
    )
