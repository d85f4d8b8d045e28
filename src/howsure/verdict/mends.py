"""Advice that was tried: mends fitted on some folds of the rows, and judged on the others."""

from __future__ import annotations

from dataclasses import dataclass

from howsure.predictions import EvalSet
from howsure.verdict.findings import Finding


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """One mend, tried on held-out folds.

    Attributes
    ----------
    method : str
        As in `howsure.recalibration.METHODS`.
    by : tuple of str
        Columns of groups, of the method ``group``.
    gain, lower, upper : float
        By which share the score falls on held-out rows, with its 95 % interval.
    p : float
        One-sided p-value that it falls at all.
    heals, leaves : tuple of str
        Ids of the findings that were bad and are no longer shown to be, and that still are.
    accepted : bool
        Whether its gain is proven among all that were tried, or it heals what it aims at.
    where : str
        The group or region on whose rows it was tried; all rows if empty.
    reason : str
        Why it could not be tried.
    """

    method: str
    by: tuple[str, ...] = ()
    gain: float = float("nan")
    lower: float = float("nan")
    upper: float = float("nan")
    p: float = float("nan")
    heals: tuple[str, ...] = ()
    leaves: tuple[str, ...] = ()
    accepted: bool = False
    where: str = ""
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Advice:
    """The next step: the mend with the best honest gain, or that none helps.

    Attributes
    ----------
    method : str
        As in `howsure.recalibration.METHODS`; empty where nothing that was tried helps.
    by : tuple of str
        Columns of groups, of the method ``group``.
    score : str
        What the gain is of, in words.
    gain, lower, upper : float
        By which share the score falls on held-out rows, with its 95 % interval.
    heals, leaves : tuple of str
        Ids of the findings that were bad and are no longer shown to be, and that still are.
    command : str
        What does it.
    sentence : str
        The advice in words.
    model : str
        Which model.
    """

    method: str
    by: tuple[str, ...] = ()
    score: str = ""
    gain: float = float("nan")
    lower: float = float("nan")
    upper: float = float("nan")
    heals: tuple[str, ...] = ()
    leaves: tuple[str, ...] = ()
    command: str = ""
    sentence: str = ""
    model: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trials:
    """All mends that were tried on the rows of one model, and what follows."""

    advice: Advice | None
    trials: tuple[Trial, ...]
    score: str


def try_mends(evalset: EvalSet, findings: tuple[Finding, ...] = (), *, seed: int = 0) -> Trials:
    """Try every mend that suits the predictions, by cross-fitting."""
    raise NotImplementedError
