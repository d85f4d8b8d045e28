"""Figures: layers of data made from curves and tables, and a renderer for each library."""

from __future__ import annotations

from typing import TYPE_CHECKING

from howsure.core.optional import exporting

if TYPE_CHECKING:
    from howsure.figures.build import figures_of as figures_of
    from howsure.figures.figure import Axis as Axis
    from howsure.figures.figure import Figure as Figure
    from howsure.figures.figure import Layer as Layer
    from howsure.figures.figure import Mark as Mark
    from howsure.figures.mpl import plot as plot
    from howsure.figures.vega import to_vega as to_vega

_HOMES = {
    "build": "figures_of",
    "figure": "Axis Figure Layer Mark",
    "mpl": "plot",
    "vega": "to_vega",
}

__getattr__, __dir__, __all__ = exporting(__name__, _HOMES)
