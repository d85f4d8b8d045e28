"""Follow a model after the gate: a promise that may be looked at every day."""

from howsure.watch.correction import Correction
from howsure.watch.report import WatchReport
from howsure.watch.watch import Booked, Watch

__all__ = ["Booked", "Correction", "Watch", "WatchReport"]
