"""Drafts of every finding, with facts as real tables give them."""

from __future__ import annotations

import math
from typing import Any

from howsure.core.records import Record
from howsure.verdict.findings import FROM_ALL, QUESTIONS, Draft, Finding, State

STATES: tuple[State, ...] = ("good", "watch", "bad", "negligible", "undecided")
TOLD = tuple(name for name in QUESTIONS if name != "dependence")
"""Findings that are told today."""
WHERE = "temperature > 21.5, wind ≤ 3.2"


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
        case "coverage":
            seen = record("empirical_coverage", 0.9 + effect, null=0.9)
            other = record("empirical_coverage", 0.833 + effect, null=0.833)
            return [
                draft(effect, seen, coverage=0.9, claims=(0.9, 0.9), sets=False),
                draft(effect, seen, coverage=0.9, claims=(0.9, 0.9), sets=True),
                draft(effect, other, coverage=0.9, claims=(0.833, 0.833), sets=False),
                draft(effect, other, coverage=0.9, claims=(0.9, 1.0), sets=False),
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
        case "support":
            return [draft(abs(effect) / 10, record("impossible_share", abs(effect) / 10))]
        case "groups":
            chosen: dict[str, Any] = {"value": 0.88 + effect, "expected": 0.88, "rows": 1234.0}
            least = {**chosen, "by": "claimed at least"}
            chosen["by"] = FROM_ALL
            worst = record("worst_group_shortfall", 0.1, group="season=winter")
            return [
                draft(effect, where="season=winter", worst=worst, **chosen),
                draft(effect, where="region=north west", worst=worst, **chosen),
                draft(effect, where="season=winter", worst=None, **chosen),
                draft(effect, where="season=winter", worst=worst, **least),
            ]
        case "region":
            return [
                draft(
                    effect,
                    record("worst_region", 0.88 + effect, null=0.88, options={"signal": signal}),
                    where=WHERE,
                )
                for signal in ("coverage", "bias", "spread")
            ]
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
        case "sets":
            seen = {"value": 0.88 + effect, "expected": 0.88, "rows": 1234.0}
            return [
                draft(effect, where=where, empty=empty, size=1.8, **seen)
                for where, empty in (("1", 0.0), ("2", 0.012), ("4 to 9", 0.012))
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
            low = record("characteristic_partial_gain", 100 * effect, 2.0)
            whole = record("characteristic_gain", -50 * effect, 2.0)
            return [draft(effect, low, whole=whole)]
        case "comparison":
            told = {"a": "forest", "b": "linear model", "metric": "CRPS"}
            return [draft(effect, models=models, **told) for models in (2, 3)]
    raise AssertionError(name)


def finding(draft: Draft, state: State) -> Finding:
    """A draft in a state."""
    question = QUESTIONS[draft.id]
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
        case "congruence":
            return tuple(state for state in STATES if state != "good")
        case "comparison":
            return ("good", "undecided")
    return STATES
