"""Named real data sets: where they are found, how they are read, their published splits.

Tables (`uci`), tables whose rows shift (`ShiftTask`, `shift_task`), and image tasks
(`howsure.data.images`).
"""

from howsure.data.parts import Part
from howsure.data.shift import ShiftTask
from howsure.data.shift_tables import shift_names, shift_task
from howsure.data.tables import DataNotFoundError, UciTable, uci, uci_names

__all__ = [
    "DataNotFoundError",
    "Part",
    "ShiftTask",
    "UciTable",
    "shift_names",
    "shift_task",
    "uci",
    "uci_names",
]
