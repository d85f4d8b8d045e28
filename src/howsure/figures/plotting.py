"""Curves and tables drawn with matplotlib."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from howsure.core.errors import InputError
from howsure.core.records import Curve, Table
from howsure.figures.build import figures_of
from howsure.figures.figure import Figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot(
    item_or_items: Curve | Table | Figure | Iterable[Curve | Table], ax: Axes | None = None
) -> Axes:
    """Draw a curve, a table or several curves of one name with matplotlib.

    Parameters
    ----------
    item_or_items : Curve, Table, Figure or iterable of Curve and Table
        What to draw; together they must make one figure.
    ax : matplotlib Axes, optional
        Where to draw; new axes where absent.

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    InputError
        If the items make no figure, or more than one.
    MissingDependencyError
        If matplotlib is not installed.

    Examples
    --------
    >>> import numpy as np
    >>> levels = np.linspace(0, 1, 5)
    >>> axes = plot(Curve(name="calibration", x=levels, y=levels, reference=levels))
    >>> axes.get_xlabel()
    'Nominal level'
    """
    from howsure.figures.mpl import draw

    if isinstance(item_or_items, Figure):
        return draw(item_or_items, ax)
    if isinstance(item_or_items, Curve | Table):
        item_or_items = (item_or_items,)
    items = tuple(item_or_items)
    figures = figures_of(
        [item for item in items if not isinstance(item, Table)],
        [item for item in items if isinstance(item, Table)],
    )
    if len(figures) != 1:
        names = ", ".join(f"{each.name} {each.label}".strip() for each in figures) or "none"
        raise InputError(f"item_or_items must make one figure, got {len(figures)} ({names})")
    return draw(figures[0], ax)
