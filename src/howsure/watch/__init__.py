"""Monitor a deployed model; safe to check every day."""

from howsure.watch.correction import Correction
from howsure.watch.report import WatchReport
from howsure.watch.watch import Watch

__all__ = ["Correction", "Watch", "WatchReport"]
