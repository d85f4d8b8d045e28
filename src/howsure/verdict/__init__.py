"""What may be concluded from the numbers: findings, their states, and sentences."""

from howsure.verdict.examine import examine
from howsure.verdict.family import TOLERANCE, judge
from howsure.verdict.findings import QUESTIONS, Finding, Question

__all__ = ["QUESTIONS", "TOLERANCE", "Finding", "Question", "examine", "judge"]
