"""Tables, from files and from memory, read into evaluation sets."""

from howsure.inputs.columns import assign_roles
from howsure.inputs.files import open_table
from howsure.inputs.roles import ColumnUse, Flags, IntervalColumns, LawColumns, Roles, parse_law
from howsure.inputs.source import Source
from howsure.inputs.tables import Loaded, explain, load
from howsure.inputs.unlabelled import Unlabelled, load_inputs, load_unlabelled
from howsure.inputs.write import write_table

__all__ = [
    "ColumnUse",
    "Flags",
    "IntervalColumns",
    "LawColumns",
    "Loaded",
    "Roles",
    "Source",
    "Unlabelled",
    "assign_roles",
    "explain",
    "load",
    "load_inputs",
    "load_unlabelled",
    "open_table",
    "parse_law",
    "write_table",
]
