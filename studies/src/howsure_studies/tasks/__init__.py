"""Where the data of experiments come from: tasks, and worlds.

A `Task` gives data in parts: tables whose rows shift (`shift_task`, `table_task`), images
(`howsure_studies.tasks.images`), what the congruence study takes. A world
(`howsure_studies.tasks.worlds`) draws them anew, and mostly knows their truth. `uci` gives tables
with published splits, `regression_table` any real table by name, `split_table` one with what its
rows must be split by, `read_learning_table` the rows of one's own. `howsure data` lists all sets
(`catalogue`, `download`).
"""

from typing import TYPE_CHECKING

from howsure.core.optional import exporting
from howsure_studies.tasks.files import DataNotFoundError, cache_folder, find_folder
from howsure_studies.tasks.learning import read_learning_table
from howsure_studies.tasks.regression import regression_names, regression_table
from howsure_studies.tasks.shift import shift_names, shift_task, table_task
from howsure_studies.tasks.splitting import SplitTable, split_names, split_table
from howsure_studies.tasks.tables import UciTable, uci, uci_fixed, uci_names
from howsure_studies.tasks.task import Part, Source, Space, Task

if TYPE_CHECKING:
    from howsure_studies.tasks.catalogue import entries as entries

__all__ = [
    "DataNotFoundError",
    "Part",
    "Source",
    "Space",
    "SplitTable",
    "Task",
    "UciTable",
    "cache_folder",
    "entries",
    "find_folder",
    "read_learning_table",
    "regression_names",
    "regression_table",
    "shift_names",
    "shift_task",
    "split_names",
    "split_table",
    "table_task",
    "uci",
    "uci_fixed",
    "uci_names",
]

__getattr__ = exporting(__name__, {"catalogue": "entries"})[0]
