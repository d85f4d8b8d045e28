"""What may be concluded from the numbers: findings, their states, and sentences."""

from howsure.engine.finding import Finding
from howsure.verdict.advice import Advice, RecalibrationTrial, Trials, try_recalibrations
from howsure.verdict.family import TOLERANCE
from howsure.verdict.family import judge as judge
from howsure.verdict.words import TrustAnswer

__all__ = [
    "TOLERANCE",
    "Advice",
    "Finding",
    "RecalibrationTrial",
    "Trials",
    "TrustAnswer",
    "try_recalibrations",
]
