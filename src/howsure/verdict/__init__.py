"""What may be concluded from the numbers: findings, their states, and sentences."""

from howsure.core.options import TOLERANCE
from howsure.engine.finding import Finding as Finding
from howsure.verdict.advice import Advice, RecalibrationTrial, Trials, try_recalibrations
from howsure.verdict.family import judge as judge
from howsure.verdict.words import TrustAnswer

__all__ = [
    "TOLERANCE",
    "Advice",
    "RecalibrationTrial",
    "Trials",
    "TrustAnswer",
    "try_recalibrations",
]
