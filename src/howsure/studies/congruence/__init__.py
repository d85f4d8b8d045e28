"""How far predictions are from the true conditional distribution (Young and others 2025)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from howsure.core.lazy import exporting

if TYPE_CHECKING:
    from howsure.studies.congruence.experiments import diagnosis as diagnosis
    from howsure.studies.congruence.experiments import monotonicity as monotonicity
    from howsure.studies.congruence.experiments import rejection as rejection
    from howsure.studies.congruence.experiments import robustness as robustness
    from howsure.studies.congruence.measure import TRUTH as TRUTH
    from howsure.studies.congruence.measure import CongruenceMeasure as CongruenceMeasure
    from howsure.studies.congruence.measure import answer as answer
    from howsure.studies.congruence.measure import compare as compare
    from howsure.studies.congruence.measure import evaluate as evaluate
    from howsure.studies.congruence.measure import reference_of as reference_of
    from howsure.studies.congruence.networks import OnFeatures as OnFeatures
    from howsure.studies.congruence.networks import fit_methods as fit_methods
    from howsure.studies.congruence.networks import head_methods as head_methods
    from howsure.studies.congruence.page import congruence_report as congruence_report
    from howsure.studies.congruence.published import Published as Published
    from howsure.studies.congruence.published import published_numbers as published_numbers
    from howsure.studies.congruence.published import published_reliability as published_reliability
    from howsure.studies.congruence.result import CongruenceResult as CongruenceResult
    from howsure.studies.congruence.result import CongruenceRun as CongruenceRun
    from howsure.studies.congruence.result import CongruenceStudies as CongruenceStudies
    from howsure.studies.congruence.result import Diagnosis as Diagnosis
    from howsure.studies.congruence.result import ModelBeliefs as ModelBeliefs
    from howsure.studies.congruence.result import Monotonicity as Monotonicity
    from howsure.studies.congruence.result import MonotonicityResult as MonotonicityResult
    from howsure.studies.congruence.result import Rejection as Rejection
    from howsure.studies.congruence.result import Reliability as Reliability
    from howsure.studies.congruence.result import Robustness as Robustness
    from howsure.studies.congruence.result import all_runs as all_runs
    from howsure.studies.congruence.result import reliability as reliability
    from howsure.studies.congruence.study import CongruenceStudy as CongruenceStudy
    from howsure.studies.congruence.study import Options as Options
    from howsure.studies.congruence.worlds import CongruenceTask as CongruenceTask
    from howsure.studies.congruence.worlds import array_task as array_task
    from howsure.studies.congruence.worlds import congruence_task as congruence_task
    from howsure.studies.congruence.worlds import law_distance as law_distance
    from howsure.studies.congruence.worlds import wave_law as wave_law
    from howsure.studies.congruence.worlds import wave_task as wave_task

_HOMES = {
    "experiments": "diagnosis monotonicity rejection robustness",
    "measure": "TRUTH CongruenceMeasure answer compare evaluate reference_of",
    "networks": "OnFeatures fit_methods head_methods",
    "page": "congruence_report",
    "published": "Published published_numbers published_reliability",
    "result": (
        "CongruenceResult CongruenceRun CongruenceStudies Diagnosis ModelBeliefs "
        "Monotonicity MonotonicityResult Rejection Reliability Robustness all_runs "
        "reliability"
    ),
    "study": "CongruenceStudy Options",
    "worlds": "CongruenceTask array_task congruence_task law_distance wave_law wave_task",
}

__getattr__, __dir__, __all__ = exporting(__name__, _HOMES)
