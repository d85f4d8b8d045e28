"""Tables too large for memory: read by parts, assessed by states of parts, and merged."""

from __future__ import annotations

from typing import TYPE_CHECKING

from howsure.core.optional import exporting

if TYPE_CHECKING:
    from howsure.streaming.large import Large as Large
    from howsure.streaming.load import load_parts as load_parts
    from howsure.streaming.load import loaded_state as loaded_state
    from howsure.streaming.load import scan_table as scan_table
    from howsure.streaming.state import State as State
    from howsure.streaming.state import merged_states as merged_states

_HOMES = {
    "large": "Large",
    "load": "load_parts loaded_state scan_table",
    "state": "State merged_states",
}

__getattr__, __dir__, __all__ = exporting(__name__, _HOMES)
