"""How each known curve is drawn: its question, how to read it, its axes."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType

from howsure.core.records import Axis, Layout
from howsure.engine.catalogue import every_topic

INTERVALS_ORDER = -1
TABLE_ORDER = 8
MAP_ORDER = 9
PLAIN_ORDER = 10
"""Places in a report of intervals, dot plots, maps, and curves that have no layout."""

_POINTWISE = {
    f"{name}{form}": Layout(
        order=13,
        question=f"{question} ({where})",
        title=f"{name.upper()} {where}",
        reading="Correct intervals follow the dashed line, within their band.",
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
        ("_sorted", "in rising order", Axis(title="Share of points", kind="percent")),
    )
}
"""Those of curves at every point, in worlds of known truth."""


@cache
def layouts() -> Mapping[str, Layout]:
    """Layouts by the curve's name, first those of howsure's own topics."""
    own = dict(_POINTWISE)
    for topic in every_topic():
        own |= {name: layout for name, layout in topic.layouts.items() if name not in own}
    return MappingProxyType(own)


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
    return Layout(order=PLAIN_ORDER, question=words[:1].upper() + words[1:], title=words)
