"""How each known curve and table is shown: its question, how to read it, its axes."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType

from howsure.core.records import Axis, Layout, TableLayout
from howsure.core.text import capitalized
from howsure.engine import measure
from howsure.engine.catalogue import every_topic
from howsure.topics import compare, groups, interval_rows, many_series

# After all that have one.
PLAIN_ORDER = 10
"""Place in a report of curves that have no layout."""

_POINTWISE = {
    f"{name}{form}": Layout(
        order=13,
        question=f"{question} ({where})",
        title=f"{name.upper()} {where}",
        reading="The curve of correct intervals follows the dashed line, within its band.",
        x=axis,
        y=Axis(title="Coverage", kind="percent"),
        reference="nominal",
        band="simultaneous band",
    )
    for name, question in (
        ("picf", "Do prediction intervals cover a new y at every x?"),
        ("cicf", "Do confidence intervals cover the mean at every x?"),
    )
    for form, where, axis in (
        ("", "along x", Axis(title="x")),
        ("_local", "in bins", Axis(title="x")),
        ("_sorted", "in increasing order", Axis(title="Share of points", kind="percent")),
    )
}
"""Those of curves at every point, in worlds of known truth."""


@cache
def layouts() -> Mapping[str, Layout]:
    """Layouts by the curve's name, first those of howsure's own topics."""
    layout_of = dict(_POINTWISE)
    for topic in every_topic():
        layout_of |= {
            name: layout for name, layout in topic.layouts.items() if name not in layout_of
        }
    return MappingProxyType(layout_of)


@cache
def table_layouts() -> Mapping[str, TableLayout]:
    """How tables are listed and drawn, by their names: those of no topic, then of topics."""
    shown: dict[str, TableLayout] = {}
    for module in (measure, compare, groups, interval_rows, many_series):
        shown |= module.TABLES
    for topic in every_topic():
        for name, layout in topic.titles.items():
            shown.setdefault(name, TableLayout(title=layout) if isinstance(layout, str) else layout)
    return MappingProxyType(shown)


def layout_of_table(name: str) -> TableLayout:
    """How a table is listed and drawn; plain for a name that is not known."""
    return table_layouts().get(name, TableLayout())


@cache
def companions() -> Mapping[str, str]:
    """Curves that are drawn behind another, never alone when that is there, and which it is."""
    behind: dict[str, str] = {}
    for name, layout in layouts().items():
        for other in (*layout.companions, *([layout.zone.curve] if layout.zone else [])):
            behind.setdefault(other, name)
    return MappingProxyType(behind)


def layout_of(name: str) -> Layout:
    """The layout of a curve; a plain one for a name that is not known."""
    if name in layouts():
        return layouts()[name]
    words = name.replace("_", " ").strip() or "Curve"
    return Layout(order=PLAIN_ORDER, question=capitalized(words), title=words)
