"""What describes a way to recalibrate: what makes it, what it is for, its words, what it saves."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, final

import numpy.typing as npt

from howsure.conformal.ranks import DELTA, RankRule
from howsure.conformal.thresholds import TooFew
from howsure.core.classes import frozen
from howsure.predictions import (
    Distribution,
    Intervals,
    LabelSets,
    Probabilities,
    Quantiles,
    Samples,
)
from howsure.recalibration.base import POINT, FittedParameter, RecalibrationMethod, Recalibrator
from howsure.recalibration.levels import DEFAULT_LEVELS

KINDS = (
    Intervals.kind,
    POINT,
    Distribution.kind,
    Quantiles.kind,
    Samples.kind,
    Probabilities.kind,
    LabelSets.kind,
)
"""What can be recalibrated, in the order in which the kinds of a table are reported."""

SPREAD_KINDS = (Distribution.kind, Samples.kind)
"""Those that have both quantiles and a spread."""
CENTRAL_KINDS = (*SPREAD_KINDS, Quantiles.kind)
"""Those that have intervals at any coverage."""
FRAMED_KINDS = (*CENTRAL_KINDS, Intervals.kind)
"""Those that have a centre and a spread of some sort."""

SIDES = frozenset(("coverage", "bias", "one_sided"))
"""Findings that a move heals."""
SIZE = frozenset(("coverage", "spread"))
"""Findings that a factor heals."""
WIDTHS = SIZE | {"width", "trade", "tails"}
"""Findings that other widths of each row heal."""
SHAPE = SIDES | SIZE | {"skew", "tails", "support"}
"""Findings that another law heals."""


@frozen(kw_only=True)
class RecalibrationOptions:
    """Choices that the methods share; each reads what concerns it.

    Attributes
    ----------
    coverage, too_few, rank, delta, levels
        As in `recalibrate`.
    coverages : tuple of float
        Nominal coverages of intervals that are made of laws, samples or quantiles; the one above
        if empty.
    bins : int, optional
        Bins by ease.
    penalty : float, optional
        λ of RAPS and SAPS.
    seed : int
        Of the draws of scores of labels, and of the rows that tune them.
    by : tuple of str
        Columns of groups, for ``group``.
    since : label, optional
        The time from which on rows are used, for ``recent``.
    """

    coverage: float | None = None
    coverages: tuple[float, ...] = ()
    too_few: TooFew = "infinite"
    rank: RankRule = "conformal"
    delta: float = DELTA
    levels: npt.ArrayLike = DEFAULT_LEVELS
    bins: int | None = None
    penalty: float | None = None
    seed: int = 0
    by: tuple[str, ...] = ()
    since: Any = None

    @property
    def wanted(self) -> tuple[float, ...]:
        """Nominal coverages of intervals that are made of something else."""
        return self.coverages or (() if self.coverage is None else (self.coverage,))

    @property
    def threshold(self) -> tuple[float | None, RankRule, TooFew, float]:
        """What conformal intervals take: coverage, rank, too_few and delta."""
        return self.coverage, self.rank, self.too_few, self.delta


@final
@frozen(kw_only=True)
class MethodInfo:
    """One way to recalibrate.

    Attributes
    ----------
    name : str
        The one name by which it is asked for, told and kept.
    kinds : tuple of str
        Kinds of prediction that it recalibrates, of `KINDS`.
    make : callable
        ``make(kind, options)`` gives the method, not yet fitted.
    saves : tuple of type
        What it becomes when it is fitted: the classes that a kept recalibration may hold.
    aliases : tuple of str
        Other names by which it may be asked for, where a kind has no method of that name.
    leads : tuple of str
        Kinds whose methods it leads when they are listed; the first of all is the default.
    gives : {"same", "quantiles", "levels", "intervals"}
        What it makes of laws, samples and quantiles: predictions of the same kind; quantiles, as
        far as its rows reach or at the levels asked for; or intervals.
    needs : {"", "groups", "inputs", "ease", "time"}
        What rows must hold for it.
    compared : bool
        Whether a comparison of methods has it where nobody names it.
    label : str
        How a model is called that it recalibrates, after "recalibrated"; empty where it serves
        tables alone.
    words : str
        What it does, as advice begins; of ``{by}`` columns. Empty where it is not advised.
    says : callable
        Of what was learnt the same words with its number; empty where `words` say it.
    complexity : int
        Of what is advised, the simplest first.
    turn : int
        Which of those of one complexity is tried first.
    aims : frozenset of str
        Ids of the findings that it can heal.
    only, but : str
        The one kind of prediction for which it is advised, or is not; any if empty.
    tried_of : {"", "spreads", "sign"}
        What predictions it is tried of: any, those whose spreads differ, or those of one sign.
    """

    name: str
    kinds: tuple[str, ...]
    make: Callable[[str, RecalibrationOptions], RecalibrationMethod]
    saves: tuple[type[Recalibrator], ...]
    aliases: tuple[str, ...] = ()
    leads: tuple[str, ...] = ()
    gives: Literal["same", "quantiles", "levels", "intervals"] = "same"
    needs: Literal["", "groups", "inputs", "ease", "time"] = ""
    compared: bool = True
    label: str = ""
    words: str = ""
    says: Callable[[Sequence[FittedParameter]], str] = lambda learnt: ""
    complexity: int = 0
    turn: int = 0
    aims: frozenset[str] = frozenset()
    only: str = ""
    but: str = ""
    tried_of: Literal["", "spreads", "sign"] = ""
