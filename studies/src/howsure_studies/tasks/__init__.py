"""Where the data of experiments come from: tasks in parts, published tables, simulated worlds.

Tables whose rows shift (`shift_task`, `table_task`) and images (`howsure_studies.tasks.images`)
are one `Task`; `uci` gives tables with published splits, `howsure_studies.tasks.worlds`
simulators that know their truth. `howsure data` lists them all (`catalogue`, `download`).
"""

from howsure_studies.tasks.files import DataNotFoundError, cache_folder, find_folder
from howsure_studies.tasks.learning import LearningTable, read_learning_table
from howsure_studies.tasks.shift import shift_names, shift_task, table_task
from howsure_studies.tasks.tables import UciTable, uci, uci_names
from howsure_studies.tasks.task import Part, Source, Task

__all__ = [
    "DataNotFoundError",
    "LearningTable",
    "Part",
    "Source",
    "Task",
    "UciTable",
    "cache_folder",
    "find_folder",
    "read_learning_table",
    "shift_names",
    "shift_task",
    "table_task",
    "uci",
    "uci_names",
]
