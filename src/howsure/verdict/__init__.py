"""What may be concluded from the numbers: findings, their states, and sentences."""

from howsure.verdict.examine import examine
from howsure.verdict.family import TOLERANCE, judge
from howsure.verdict.findings import QUESTIONS, Finding, FindingQuestion
from howsure.verdict.mends import Advice, RecalibrationTrial, Trials, try_mends

__all__ = [
    "QUESTIONS",
    "TOLERANCE",
    "Advice",
    "Finding",
    "FindingQuestion",
    "RecalibrationTrial",
    "Trials",
    "examine",
    "judge",
    "try_mends",
]
