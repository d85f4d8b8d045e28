"""How far predictions are from the true conditional distribution (Young and others 2025)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from howsure.core.optional import exporting

if TYPE_CHECKING:
    from howsure_studies.congruence.measure import TRUTH as TRUTH
    from howsure_studies.congruence.measure import CongruenceMeasure as CongruenceMeasure
    from howsure_studies.congruence.measure import answer as answer
    from howsure_studies.congruence.measure import compare as compare
    from howsure_studies.congruence.measure import reference_of as reference_of
    from howsure_studies.congruence.networks import fit_methods as fit_methods
    from howsure_studies.congruence.networks import head_methods as head_methods
    from howsure_studies.congruence.options import CongruenceStudyOptions as CongruenceStudyOptions
    from howsure_studies.congruence.page import congruence_report as congruence_report
    from howsure_studies.congruence.reliability import (
        published_reliability as published_reliability,
    )
    from howsure_studies.congruence.result import CongruenceResult as CongruenceResult
    from howsure_studies.congruence.result import CongruenceRun as CongruenceRun
    from howsure_studies.congruence.result import CongruenceStudies as CongruenceStudies
    from howsure_studies.congruence.result import all_runs as all_runs
    from howsure_studies.congruence.study import CongruenceStudy as CongruenceStudy
    from howsure_studies.congruence.worlds import wave_task as wave_task

_HOMES = {
    "measure": "TRUTH CongruenceMeasure answer compare reference_of",
    "networks": "fit_methods head_methods",
    "options": "CongruenceStudyOptions",
    "page": "congruence_report",
    "reliability": "published_reliability",
    "result": "CongruenceResult CongruenceRun CongruenceStudies all_runs",
    "study": "CongruenceStudy",
    "worlds": "wave_task",
}

__getattr__, __dir__, __all__ = exporting(__name__, _HOMES)
