"""Named real data sets: where they are found, how they are read, their published splits.

Tables (`uci`), tables whose rows shift (`ShiftTask`, `shift_task`), and image tasks
(`howsure.studies.tasks.images`).
"""

from howsure.studies.tasks.learning import LearningTable, read_learning_table
from howsure.studies.tasks.parts import Part
from howsure.studies.tasks.places import cache_folder
from howsure.studies.tasks.shift import ShiftTask
from howsure.studies.tasks.shift_tables import shift_names, shift_task
from howsure.studies.tasks.tables import DataNotFoundError, UciTable, uci, uci_names

__all__ = [
    "DataNotFoundError",
    "LearningTable",
    "Part",
    "ShiftTask",
    "UciTable",
    "cache_folder",
    "read_learning_table",
    "shift_names",
    "shift_task",
    "uci",
    "uci_names",
]
