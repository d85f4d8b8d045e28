"""What may be concluded from the numbers: findings, their states, and sentences."""

from howsure.verdict.examine import examine
from howsure.verdict.family import TOLERANCE, judge
from howsure.verdict.findings import QUESTIONS, Finding, Question
from howsure.verdict.mends import Advice, Trial, Trials, try_mends

__all__ = [
    "QUESTIONS",
    "TOLERANCE",
    "Advice",
    "Finding",
    "Question",
    "Trial",
    "Trials",
    "examine",
    "judge",
    "try_mends",
]
