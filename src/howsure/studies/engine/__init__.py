"""Plans, their trials, resumable runs of them, and the store of what they give."""

from howsure.core.convert import packed, unpacked
from howsure.studies.engine.address import address_of, canonical
from howsure.studies.engine.compare import Comparison, side_by_side
from howsure.studies.engine.entries import absolute, check_options, complete_numbers, numbers_hash
from howsure.studies.engine.loading import load_plan, plan_names
from howsure.studies.engine.methods import make_method, method_identity
from howsure.studies.engine.page import choice_of, coverage_of, named, overview, study_document
from howsure.studies.engine.plan import Plan
from howsure.studies.engine.provenance import provenance
from howsure.studies.engine.runner import RunSummary, run
from howsure.studies.engine.state import Survey, combined, survey
from howsure.studies.engine.store import FORMAT, DamagedError, OutputError, Store
from howsure.studies.engine.study import Combined, Study, Trial, studies, study_of, trials_of
from howsure.studies.engine.tables import records_table, stacked, to_arrow
from howsure.studies.engine.trials import Status, TrialEntry, TrialError, TrialOutput
from howsure.studies.engine.watcher import Watcher
from howsure.studies.engine.work import Outcome
from howsure.studies.engine.worlds import make_world, noise_of, world_identity

__all__ = [
    "FORMAT",
    "Combined",
    "Comparison",
    "DamagedError",
    "Outcome",
    "OutputError",
    "Plan",
    "RunSummary",
    "Status",
    "Store",
    "Study",
    "Survey",
    "Trial",
    "TrialEntry",
    "TrialError",
    "TrialOutput",
    "Watcher",
    "absolute",
    "address_of",
    "canonical",
    "check_options",
    "choice_of",
    "combined",
    "complete_numbers",
    "coverage_of",
    "load_plan",
    "make_method",
    "make_world",
    "method_identity",
    "named",
    "noise_of",
    "numbers_hash",
    "overview",
    "packed",
    "plan_names",
    "provenance",
    "records_table",
    "run",
    "side_by_side",
    "stacked",
    "studies",
    "study_document",
    "study_of",
    "survey",
    "to_arrow",
    "trials_of",
    "unpacked",
    "world_identity",
]
