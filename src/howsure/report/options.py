"""How predictions are judged: every option of an assessment and of a check, described once."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import fields
from functools import partial
from typing import Any, Literal, Self

from howsure.core.options import MISS_RANGE, SHARE, TOLERANCE, Described, described, option
from howsure.topics.congruence_options import CongruenceOptions

FailOn = Literal["never", "caution", "bad"]
_FINDINGS = "Findings"
_finding = partial(option, panel=_FINDINGS, verbs="assess")
_limit = partial(option, panel="Limits")


@described
class JudgingOptions(Described):
    """How findings are judged, in an assessment or a check."""

    tolerance: float = option(
        "Largest coverage error to ignore (0.01 = 1 point).",
        "A significant fault within it is negligible. The tolerances of spread, bias and "
        "others scale with it.",
        panel=_FINDINGS,
        verbs="assess merge init",
        tools="assess",
        rule=SHARE,
        default=TOLERANCE,
    )
    ignore: Collection[str] = option(
        "Ids of findings to leave out of the verdict, such as width.",
        panel=_FINDINGS,
        verbs="assess merge",
        metavar="ID",
        rule="howsure.verdict.family:check_ignored",
        default=(),
    )
    miss_range: Sequence[float] = _finding(
        "Range of miss rates for gains over a constant width.",
        "With another range, models are also compared by these gains.",
        metavar="LOW HIGH",
        kind=tuple[float, float],
        rule="howsure.engine.metric:check_miss_range",
        default=MISS_RANGE,
    )
    baseline: str = _finding(
        "Baseline for skill: climatology (the distribution of y; the default), persistence, "
        "seasonal, or the name of a model.",
        tools="assess",
        metavar="NAME",
        default="",
    )
    threshold: float | Sequence[float] = _finding(
        "Probability of the event from which on one acts: net benefit of the decision, beside "
        "acting on all and on none.",
        tools="assess",
        metavar="P",
        kind=list[float],
        rule="howsure.core.arrays:check_fractions",
        default=(),
    )
    lead: int | None = _finding(
        "Lead time of all rows, in steps of {time}, if there is no {horizon}; needed for "
        "skill against persistence.",
        "Skill is then also reported against the seasonal naive forecast.",
        metavar="N",
    )
    season: int | None = _finding(
        "Steps of {time} per season; if omitted, derived from the dates.",
        "It is a week of hours or days, and a year of weeks, months or quarters.",
        metavar="N",
    )
    confidence: float = option(
        "Confidence level of all intervals and bounds.",
        verbs="assess merge",
        rule=SHARE,
        default=0.95,
    )


@described
class Options(JudgingOptions):
    """What is judged, and how.

    Raises
    ------
    InputError
        If an option breaks a rule.

    Examples
    --------
    >>> Options(tolerance=0.02, ignore={"width"}).confidence
    0.95
    """

    cells: int | None = _finding(
        "Cells by ease for T-CV and T-SS, from 3 to a fifth of the rows; 50 if omitted, or "
        "as many as have five rows each.",
        "More cells detect finer differences, but are noisier.",
        metavar="N",
        least=3,
    )
    trials: bool = option(
        "Try recalibration methods and measure their gain in five-fold cross-validation.",
        "Of several models, only the one with the lowest mean score is recalibrated.",
        panel=_FINDINGS,
        verbs="assess merge",
        default=True,
    )
    seed: int = option(
        "Seed of all random draws.",
        usual=True,
        verbs="assess merge check recalibrate improve conformal characteristic",
        least=0,
        default=0,
    )
    also: Collection[str] = option(
        "Slow measures to compute beyond 50,000 rows, and measures whose figures are drawn "
        "only on request, such as tail_miscalibration_right.",
        verbs="assess",
        metavar="MEASURE",
        rule="howsure.engine.catalogue:asked_for",
        default=(),
    )
    congruence: CongruenceOptions | None = option(
        "Kernel, λ, draws and map of the conditional congruence error.", verbs="assess"
    )
    no_rows: bool = option(
        "For personal data: omit names, values and pictures of single rows, and results on "
        "fewer than 10 rows.",
        "Labels of groups and features with fewer rows are pooled as ``others``.",
        panel="Output",
        verbs="assess merge check",
        tools="assess check",
        default=False,
    )


@described
class CheckOptions(JudgingOptions):
    """How limits and findings are judged; the keys of a file of limits."""

    by: tuple[str, ...] = _limit(
        "Apply the limits to each group of these columns.",
        usual=True,
        default=(),
    )
    undecided: Literal["pass", "fail"] = _limit(
        "Treat an inconclusive limit as pass or fail.", usual=True, default="pass"
    )
    sided: Literal["one", "two"] = _limit(
        "Judge limits with one-sided bounds or two-sided intervals.", default="one"
    )
    fail_on: FailOn = option(
        "Also fail on findings: on faults (bad ✗), or also possible problems (caution ○).",
        panel=_FINDINGS,
        usual=True,
        default="never",
    )
    findings: tuple[str, ...] = option(
        "Judge only these findings, such as groups,region,drift.",
        panel=_FINDINGS,
        default=(),
    )


@described
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
