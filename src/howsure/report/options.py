"""How predictions are judged: every option of an assessment, described and checked once."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any, Self

from howsure.core.arrays import check_fraction
from howsure.core.classes import frozen
from howsure.core.convert import check_whole
from howsure.engine.catalogue import asked_for
from howsure.engine.metric import MISS_RANGE, check_miss_range
from howsure.verdict import TOLERANCE
from howsure.verdict.family import check_judging

if TYPE_CHECKING:
    from howsure.topics.congruence.view import CongruenceOptions


@frozen(kw_only=True)
class Options:
    """What is judged, and how.

    Attributes
    ----------
    confidence : float
        Confidence level of all confidence intervals.
    seed : int
        Fixes all draws.
    tolerance : float
        Largest coverage error to ignore (0.01 = 1 point); a significant fault within it is
        negligible. The tolerances of spread, bias and others scale with it.
    ignore : collection of str
        Ids of findings to omit from the verdict, such as ``{"width"}``.
    trials : bool
        Whether recalibration methods are tried in five-fold cross-validation, for the next step.
        Of several models, only the one with the lowest mean score is recalibrated.
    also : collection of str
        Slow measures to compute beyond 50,000 rows, and measures whose figures are drawn only on
        request, such as ``tail_miscalibration_right``.
    congruence : CongruenceOptions, optional
        Kernel, λ, draws and map of the conditional congruence error.
    miss_range : (float, float)
        Range of miss rates for gains over a constant width, ``(0, 0.2)``. With another range,
        models are also compared by these gains.
    cells : int, optional
        Cells by ease for T-CV and T-SS, from 3 to a fifth of the rows; 50 if omitted, or as many
        as have five rows each. More cells detect finer differences, but are noisier.
    baseline : str
        Baseline for skill: ``"climatology"``, the distribution of y (the default),
        ``"persistence"``, ``"seasonal"``, or the name of one of the models.
    lead : int, optional
        Lead time of all rows, in steps of their times, if there is no `horizon`. Skill is then
        also reported against persistence and the seasonal naive forecast.
    season : int, optional
        Steps per season; if omitted, derived from the dates (a week of hours or days, a year of
        weeks, months or quarters).
    no_rows : bool
        For personal data: whether to omit names, values and pictures of single rows, and all
        results on fewer than 10 rows. Labels of groups and features with fewer rows are pooled as
        ``others``.

    Raises
    ------
    InputError
        If an option breaks a rule.

    Examples
    --------
    >>> Options(tolerance=0.02, ignore={"width"}).confidence
    0.95
    """

    confidence: float = 0.95
    seed: int = 0
    tolerance: float = TOLERANCE
    ignore: Collection[str] = ()
    trials: bool = True
    also: Collection[str] = ()
    congruence: CongruenceOptions | None = None
    miss_range: Sequence[float] = MISS_RANGE
    cells: int | None = None
    baseline: str = ""
    lead: int | None = None
    season: int | None = None
    no_rows: bool = False

    def __post_init__(self) -> None:
        check_fraction(self.confidence, "confidence")
        check_whole(self.seed, "seed", 0)
        check_judging(self.tolerance, self.ignore)
        check_miss_range(self.miss_range)
        if self.cells is not None:
            check_whole(self.cells, "cells", 3)
        object.__setattr__(self, "also", frozenset(asked_for(self.also, "also")))


@frozen(kw_only=True)
class Settings(Options):
    """Options, with what one assessment needs besides.

    `recalibration` says how the command begins that recalibrates each model; without it, it is a
    call in Python.
    """

    coverages: Sequence[float] = ()
    recalibration: Mapping[str, str] | None = None

    @classmethod
    def of(cls, options: Options, **more: Any) -> Self:
        """Options with the rest."""
        return cls(
            **{field.name: getattr(options, field.name) for field in fields(options)}, **more
        )
