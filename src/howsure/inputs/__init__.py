"""Tables, from files and from memory, read into evaluation sets; each name loads when asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from howsure.core.optional import exporting

if TYPE_CHECKING:
    from howsure.inputs.names import ColumnUse as ColumnUse
    from howsure.inputs.new import NewRows as NewRows
    from howsure.inputs.new import Unlabelled as Unlabelled
    from howsure.inputs.new import load_new as load_new
    from howsure.inputs.new import load_unlabelled as load_unlabelled
    from howsure.inputs.sources import open_table as open_table
    from howsure.inputs.tables import Loaded as Loaded
    from howsure.inputs.tables import explain as explain
    from howsure.inputs.tables import load as load
    from howsure.inputs.write import write_table as write_table

_HOMES = {
    "names": "ColumnUse",
    "new": "NewRows Unlabelled load_new load_unlabelled",
    "sources": "open_table",
    "tables": "Loaded explain load",
    "write": "write_table",
}

__getattr__, __dir__, __all__ = exporting(__name__, _HOMES)
