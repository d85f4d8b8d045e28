"""Drafts of every finding, with facts as real tables give them."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from howsure.core.records import Record
from howsure.engine.autocorrelation import Dependence, Kind
from howsure.engine.finding import Draft, Finding, SharedScore, Standing, State
from howsure.verdict.copies import RowFault
from howsure.verdict.findings import questions

STATES: tuple[State, ...] = ("good", "caution", "bad", "negligible", "undecided")

WHERE = "temperature > 21.5 and wind ≤ 3.2"


NAMES = ("forest", "linear model", "boosted trees", "old model", *(f"m{k}" for k in range(5, 11)))
"""Models, the one of the lowest score first."""


def standing(models: int, *behind: tuple[int, int], **left_out: str) -> Standing:
    """Models of which these are provably worse than those."""
    worse = np.zeros((models, models), dtype=bool)
    for low, high in behind:
        worse[low, high] = True
    values = 0.5 + 0.01 * np.arange(models)
    return Standing(
        score=SharedScore("crps"),
        models=NAMES[:models],
        values=values,
        lower=values - 0.02,
        upper=values + 0.02,
        best=~worse.any(axis=1),
        behind=worse,
        difference=-0.01,
        difference_lower=-0.02,
        difference_upper=0.01,
        p=0.01,
        p_adjusted=0.04,
        left_out=left_out,
    )


STANDINGS = (
    standing(2, (1, 0)),
    standing(2),
    standing(4, (1, 0), (2, 0), (3, 0)),
    standing(3, (2, 0), (2, 1)),
    standing(3, (2, 1)),
    standing(4, (3, 0), (3, 1), (3, 2)),
    standing(4),
    standing(10, *((low, 0) for low in range(7, 10))),
    standing(10, *((low, 0) for low in range(1, 10))),
    standing(2, (1, 0), ridge="it gives intervals at 80 %"),
    standing(2, (1, 0), ridge="it gives label sets", lasso="it gives label sets"),
)
"""Each wording of `comparison`."""


def row_fault(name: str, *, bad: bool = False, harmless: bool = False, **facts: Any) -> RowFault:
    return RowFault(name=name, rows=30.0, share=0.03, bad=bad, harmless=harmless, facts=facts)


ROW_FAULTS = (
    row_fault("copies", n=1_000, distinct=200, harmless=True),
    row_fault("copies", n=1_000, distinct=200),
    row_fault("corrected"),
    row_fault("variance", bad=True, read="variance", times=20.512),
    row_fault("variance", read="variance", times=20.512),
    row_fault("variance", bad=True, read="sd", times=0.05),
    *(
        row_fault("units", bad=bad, where=where, factor=factor, shift=0.0, multiply=not where)
        for bad in (True, False)
        for where in ("Where plant=C, predictions", "")
        for factor in (1_000.0, 1 / 25.4)
    ),
    *(
        row_fault("units", bad=True, where=where, factor=factor, shift=shift, multiply=False)
        for where in ("From row 500 on, predictions", "")
        for factor, shift in ((1.8, 32.0), (1 / 1.8, -160 / 9), (1.0, 273.15), (1.0, -273.15))
    ),
    row_fault("leakage", bad=True, size=0.1),
    row_fault("leakage", bad=True, same=0.7),
    row_fault("target", column="price", size=0.0),
    row_fault("target", column="price", size=0.034),
    row_fault("marks", what="y", values=(-9999.0,)),
    row_fault("marks", what="prediction", values=(-9999.0, 1e20)),
    row_fault("clipped", ends=((0.0, False),)),
    row_fault("clipped", ends=((0.0, False), (12.4326, True))),
    row_fault("clipped_predictions", value=10.0, high=True, beyond=25),
    row_fault("rounded", step=0.5, coarse=0.98),
    row_fault("rounded", step=1.0, coarse=1.0),
    row_fault("censored", column="event"),
    row_fault("mean_and_sd"),
    row_fault("swapped"),
    row_fault("one_prediction", column="age", correlation=0.85),
    *(
        row_fault("order", lag=lag, how=how, here=0.12, there=0.85)
        for lag, how in ((0, ""), (1, ""), (-7, "time"), (1, "series"))
    ),
    row_fault("exchanged", column="plant", pair=("B", "C")),
    *(
        row_fault("log", bad=True, of=of, base=base)
        for of, base in (("predictions", "natural"), ("y", "decimal"))
    ),
    *(row_fault("multiple", factor=factor) for factor in (1.5, 0.667)),
    row_fault("without_y", n=120.0, apart={}, between=(0.683, 0.925)),
    *(
        row_fault("without_y", n=120.0, apart=apart)
        for apart in (
            {"where": "site=B", "shares": [0.58, 0.03]},
            *(
                {"what": what, "ends": False, "times": times, "above": 0.78, "outer": True}
                for what, times in (("predicted sd", 1.8), ("interval", 0.73), ("age", 1.1))
            ),
            {"what": "age", "ends": True, "times": 1.0, "above": 0.5, "outer": False},
        )
    ),
)
"""Each thing that rows are not."""


def record(metric: str, value: float, half: float = 0.02, **more: Any) -> Record:
    ends = {"lower": value - half, "upper": value + half, "standard_error": half / 2, "n": 300.0}
    return Record(metric=metric, value=value, **{**ends, **more})


def drafts(name: str, sign: float, p: float = 0.01) -> list[Draft]:
    """What a finding may show on one side of what is right, in each of its wordings."""
    effect = 0.06 * sign

    def draft(
        effect: float, record: Record | None = None, *, where: str = "", **facts: Any
    ) -> Draft:
        held = facts if record is None else {"record": record, **facts}
        lower, upper = effect - 0.02, effect + 0.02
        return Draft(
            id=name, effect=effect, lower=lower, upper=upper, p=p, n=300, where=where, facts=held
        )

    match name:
        case "rows":
            return [draft(each.share, found=(each,), bad=each.bad) for each in ROW_FAULTS]
        case "ends":
            some = {"no bounds": 0.3 + effect, "no lower bound": 0.0, "no upper bound": 0.02}
            whole = {"no bounds": 1.0, "no lower bound": 0.0, "no upper bound": 0.0}
            return [
                draft(0.32 + effect, kinds=some, others=0.873, bad=False),
                draft(1.0, kinds=whole, others=math.nan, bad=True),
                draft(1.0, kinds={"no lower bound": 1.0}, others=math.nan, bad=False),
            ]
        case "coverage":
            seen = record("empirical_coverage", 0.9 + effect, null=0.9)
            other = record("empirical_coverage", 0.833 + effect, null=0.833)
            return [
                draft(effect, seen, coverage=0.9, claims=(0.9, 0.9), sets=False),
                draft(effect, seen, coverage=0.9, claims=(0.9, 0.9), sets=True),
                draft(effect, other, coverage=0.9, claims=(0.833, 0.833), sets=False),
                draft(effect, other, coverage=0.9, claims=(0.9, 1.0), sets=False),
                replace(
                    draft(effect, seen, coverage=0.9, claims=(0.995, 0.995), sets=True),
                    telling=False,
                ),
                draft(effect, seen, coverage=0.9, claims=(0.9, 0.9), sets=False, quantile=0.9),
                draft(effect, seen, coverage=0.9, claims=(0.9, 0.9), sets=False, quantile=0.1),
            ]
        case "bias":
            return [
                draft(effect, record("pit_bias", effect * 0.8)),
                draft(effect, record("bias", -effect * 12345.6), point=True),
            ]
        case "spread":
            return [draft(effect, record("pit_spread", 1 + effect))]
        case "skew" | "tails":
            outer = {"stated_below": 0.1, "stated_above": 0.1, "seen_below": 0.13}
            uneven = {"stated_below": 0.1, "stated_above": 0.25, "seen_below": 0.2}
            return [
                draft(effect, record(f"pit_{name}", effect, options={**told, "seen_above": 0.22}))
                for told in (outer, uneven)
            ]
        case "one_sided":
            return [draft(effect, record("miss_imbalance", effect), below=0.075 - effect / 2)]
        case "level" | "sureness" | "shape" | "class_groups" | "class_region" | "impossible":
            where = {"class_groups": "site=north", "class_region": "age"}.get(name, "")
            claim = {"claim": 0.5, "happened": 0.5 + effect, "low": 0.4, "high": 0.6}
            claim |= {"lower": 0.48 + effect, "upper": 0.52 + effect, "statistic": sign * 3.0}
            claim |= {"certain": 0.5, "came": 3.0}
            two = {"names": ("no", "yes"), "code": 1.0}
            ten = {"names": ("cat", "dog", "elk"), "code": 1.0}
            return [
                draft(effect, where=where, **claim, **two),
                draft(effect, where=where, **claim, **ten),
                draft(effect, where=where, **claim, **{**ten, "code": -1.0}),
                draft(effect, where=where, **claim, **{**two, "names": ("wrong", "right")}),
            ]
        case "class_skill":
            return [draft(effect, record("class_skill", effect))]
        case "decision":
            gain = {"threshold": 0.2, "fitted": 0.24, "fitted_lower": 0.2, "fitted_upper": 0.28}
            gain |= {"of_all": -0.1, "beyond": effect, "others": 0.0}
            gain |= {"beyond_lower": effect - 0.02, "beyond_upper": effect + 0.02}
            other = {f"{key}_0": value for key, value in gain.items()}
            both = {**gain, **other, "threshold_0": 0.5, "of_all_0": 0.1, "others": 1.0}
            return [
                draft(effect, record("net_benefit_gain", effect, options=each))
                for each in (gain, both)
            ]
        case "support":
            return [draft(abs(effect) / 10, record("impossible_share", abs(effect) / 10))]
        case "groups":
            chosen: dict[str, Any] = {"value": 0.88 + effect, "expected": 0.88, "rows": 1234.0}
            chosen |= {"sets": False}
            least = {**chosen, "claimed": True}
            chosen |= {"claimed": False, "overall": 0.88}
            apart = {**chosen, "overall": 0.9}
            claim = {"claimed": 0.9}
            off = {"errors": True, "rows": 400.0}
            bias = {**off, "signal": "bias", "size": 0.4 * sign, "overall": 0.1}
            other = {"where_2": "season=summer", "signal_2": "bias", "size_2": -0.48 * sign}
            wide = {**off, "signal": "spread", "size": 1.25, "overall": 1.06}
            more = {"where_2": "season=summer", "signal_2": "spread", "size_2": 0.8}
            worst = record("worst_group_shortfall", 0.1, group="season=winter", options=claim)
            return [
                draft(effect, where="season=winter", worst=worst, **chosen),
                draft(effect, where="region=north west", worst=worst, **chosen),
                draft(effect, where="season=winter", worst=None, **chosen),
                draft(effect, where="season=winter", worst=worst, **apart),
                draft(effect, where="season=winter", worst=worst, **least),
                *(
                    draft(effect, where="season=winter", worst=worst, **told)
                    for told in (
                        bias,
                        {**bias, **other, "overall": 0.01},
                        wide,
                        {**wide, **more},
                        {**bias, "spells": 3.0, "p_here": 0.001},
                    )
                ),
            ]
        case "region":
            low = ("coverage", record("worst_region", 0.86, options={"where": "wind > 7.2"}))
            return [
                draft(
                    effect,
                    where=WHERE,
                    told={
                        "signal": signal,
                        "deviation": effect,
                        "value": 0.88 + effect,
                        "expected": 0.88,
                    },
                    worst=worst,
                )
                for signal, worst in (("coverage", None), ("bias", None), ("spread", None), low)
            ]
        case "ease":
            seen = {"value": 0.88 + effect, "expected": 0.88, "rows": 1234.0}
            found = record("t_cv", 0.15, null=0.1042)
            parts = ("ease ≤ 0.9312", "0.9312 < ease ≤ 0.9756", "ease > 0.0000123")
            return [draft(effect, found, where=where, **seen) for where in parts]
        case "drift":
            times = ("2024-03-01", "2024-03-01 12:00", "time 1234.5")
            told = {"way": "up" if sign > 0 else "down", "after_lower": 0.83, "after_upper": 0.91}
            levels = {"before": 0.873 - effect, "after": 0.873, "latest": 0.95}
            claims = {"claimed_before": 0.901, "claimed_after": 0.953}
            return [
                draft(
                    effect,
                    record(f"{signal}_drift", abs(effect), options={**told, **levels, **more}),
                    where=f"from {more['when']} on",
                    signal=signal,
                )
                for signal in ("coverage", "spread", "bias")
                for more in (*({"when": when} for when in times), {"when": times[1], "latest": 0.9})
            ] + [
                draft(
                    effect,
                    record(
                        "coverage_drift",
                        abs(effect),
                        options={**told, **levels, **claims, "when": when},
                    ),
                    where=f"from {when} on",
                    signal="coverage",
                )
                for when in times
            ]
        case "lead_time":
            told = {"short": "1 step", "long": "17–24 steps", "short_coverage": 0.931}
            told |= {"long_coverage": 0.931 + effect, "short_claim": 0.9, "long_claim": 0.9}
            drops = [
                record("lead_time_drop", -effect, options={**told, **more})
                for more in ({}, {"long": "2 steps", "long_claim": 0.95})
            ]
            seen = {"value": 0.88 + effect, "expected": 0.88, "rows": 1234.0}
            return [
                *(draft(effect, drop=drop) for drop in drops),
                draft(effect, where="3–4 steps", drop=None, **seen),
            ]
        case "sets":
            seen = {"value": 0.88 + effect, "expected": 0.88, "rows": 1234.0}
            return [
                draft(effect, where=where, empty=empty, size=1.8, free=where == "2", **seen)
                for where, empty in (("1", 0.0), ("2", 0.012), ("4 to 9", 0.012), ("0", 0.11))
            ]
        case "congruence":
            return [draft(abs(effect), record("mean_cce", 0.3212 * (1 + abs(effect)), null=0.3212))]
        case "width":
            told = record(
                "width_response", 1 + effect, options={"widest": 1.23 + effect, "narrowest": 1.21}
            )
            noise = record("noise_given_inputs", 1 + abs(effect))
            return [
                draft(effect, told, equal=False),
                draft(abs(effect), noise, equal=True, where=WHERE),
                draft(abs(effect), noise, equal=True),
            ]
        case "trade":
            part = {"miss_range": "0 to 0.2"}
            low = record("characteristic_partial_gain", 100 * effect, 2.0, options=part)
            whole = record("characteristic_gain", -50 * effect, 2.0)
            return [draft(effect, low, whole=whole)]
        case "skill":
            seen = [record(f"{score}_skill", effect) for score in ("crps", "interval")]
            within = record("crps_skill_within", -0.26, options={"within": "hour"})
            names = ("persistence (24 steps before)", "the seasonal naive forecast (a week before)")
            naive = [
                record(f"{kind}_skill", value, options={"baseline": name, "score": "pinball loss"})
                for kind, value, name in zip(
                    ("persistence", "seasonal"), (0.3, effect), names, strict=True
                )
            ]
            made = [
                draft(effect, seen[0], informed=True, within=None, beside=[]),
                draft(effect, seen[1], informed=False, within=None, beside=[]),
                draft(effect, seen[0], informed=False, within=within, beside=[]),
            ]
            made.append(replace(made[1], caution=True))
            return [*made, draft(effect, naive[1], informed=False, within=None, beside=naive[:1])]
        case "dependence":
            shown: list[tuple[Kind, str, int]] = [
                ("time", "side", 50),
                ("time", "size", 1),
                ("clusters", "side", 0),
                ("file", "size", 0),
            ]
            return [
                draft(
                    abs(effect),
                    found=Dependence(
                        by=by,
                        signal=signal,
                        correlation=abs(effect),
                        tau=1.0 + abs(effect) * 20,
                        effect=abs(effect),
                        lower=0.0,
                        upper=0.2,
                        p=p,
                        n=3000.0,
                        found=True,
                        batches=batches,
                    ),
                )
                for by, signal, batches in shown
            ]
        case "comparison":
            return [draft(effect, standing=held) for held in STANDINGS]
    raise AssertionError(name)


def finding(draft: Draft, state: State) -> Finding:
    """A draft in a state."""
    question = questions()[draft.id]
    return Finding(
        id=draft.id,
        question=question.asked,
        state=state,
        effect=draft.effect,
        unit=question.unit,
        lower=draft.lower,
        upper=draft.upper,
        p=draft.p,
        p_adjusted=min(10 * draft.p, 1.0),
        tolerance=question.tolerance,
        cost=abs(draft.effect) / question.tolerance if question.tolerance else math.inf,
        where=draft.where,
        sentence="",
    )


def possible(name: str) -> tuple[State, ...]:
    """States that a finding can take."""
    match name:
        case "support":
            return ("bad",)
        case "class_skill" | "decision":
            return ("good", "bad", "negligible", "undecided")
        case "congruence":
            return tuple(state for state in STATES if state != "good")
        case "dependence":
            return ("good", "caution", "undecided")
        case "rows":
            return ("bad", "caution", "negligible")
        case "ends":
            return ("bad", "caution")
        case "comparison":
            return ("good", "undecided")
    return STATES
