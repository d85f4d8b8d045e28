"""Plans, their trials, and resumable runs of them."""

from howsure.bench.loading import load_plan, plan_names
from howsure.bench.plan import Plan
from howsure.bench.protocol import Adapter, Combined, Trial, adapter_of, protocols, trials_of
from howsure.bench.runner import RunSummary, run
from howsure.bench.state import Survey, combined, survey
from howsure.bench.watcher import Watcher
from howsure.bench.work import Outcome

__all__ = [
    "Adapter",
    "Combined",
    "Outcome",
    "Plan",
    "RunSummary",
    "Survey",
    "Trial",
    "Watcher",
    "adapter_of",
    "combined",
    "load_plan",
    "plan_names",
    "protocols",
    "run",
    "survey",
    "trials_of",
]
