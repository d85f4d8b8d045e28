"""What may be concluded from the numbers: findings, their states, and sentences."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from howsure.engine.finding import Finding, FindingQuestion
from howsure.verdict.advice import Advice, RecalibrationTrial, Trials, try_recalibrations
from howsure.verdict.family import TOLERANCE, examine, judge
from howsure.verdict.findings import questions
from howsure.verdict.words import TrustAnswer

if TYPE_CHECKING:
    QUESTIONS: Mapping[str, FindingQuestion]

__all__ = [
    "QUESTIONS",
    "TOLERANCE",
    "Advice",
    "Finding",
    "FindingQuestion",
    "RecalibrationTrial",
    "Trials",
    "TrustAnswer",
    "examine",
    "judge",
    "try_recalibrations",
]


def __getattr__(name: str) -> Any:
    if name == "QUESTIONS":  # topics of other packages are asked when it is, not on import
        return questions()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
