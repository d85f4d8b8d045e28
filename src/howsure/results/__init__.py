"""The store of results: written whole, read by anyone, and compared across methods."""

from howsure.results.address import address_of
from howsure.results.compare import Cell, Comparison, side_by_side
from howsure.results.provenance import provenance
from howsure.results.store import FORMAT, DamagedError, OutputError, Store
from howsure.results.tables import records_table, stacked, to_arrow
from howsure.results.trials import Status, TrialEntry, TrialError, TrialOutput

__all__ = [
    "FORMAT",
    "Cell",
    "Comparison",
    "DamagedError",
    "OutputError",
    "Status",
    "Store",
    "TrialEntry",
    "TrialError",
    "TrialOutput",
    "address_of",
    "provenance",
    "records_table",
    "side_by_side",
    "stacked",
    "to_arrow",
]
