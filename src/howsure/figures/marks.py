"""Named points on a curve's figure: where a model stands, and where it might."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import numpy as np

from howsure.core.formats import distinct, one_line
from howsure.core.records import Table
from howsure.figures.columns import number, texts
from howsure.figures.figure import Layer, Mark
from howsure.figures.palette import SERIES_LIMIT, VEGA_SHAPES

POINTS = "operating points"
"""What named points are, where they are of too many kinds to be told apart."""
_COLOURS = (SERIES_LIMIT - 1, 1, 2, 3, 4, 5)
_SIZES = (1.0, 2.0, 0.7, 1.0, 1.0, 1.0)
"""By shape: a wanted miss rate and the least score nearly coincide, so one frames the other."""
_NUMBERED = re.compile(r"(.*\S)\s+([-+\d.]+)")


def mark_layers(
    tables: Sequence[Table], points: tuple[str, str, str] | None, places: Mapping[str, int]
) -> tuple[list[Layer], str]:
    """Named points to set on a curve's figure, one layer a model and kind of point."""
    layers: list[Layer] = []
    shapes: dict[str, int] = {}
    alone = len(places) == 1
    for table in tables:
        if points is None or table.name != points[0] or (table.model and table.model not in places):
            continue
        x, y, knob = (number(table, name) for name in (points[1], points[2], "k"))
        if x is None or y is None:
            continue
        names = distinct(texts(table, "point"), 60)
        model = one_line(table.model, 60)
        for words, rows in _kinds(names):
            seen = [row for row in rows if np.isfinite(x[row]) and np.isfinite(y[row])]
            if not seen:
                continue
            shape = shapes.setdefault(words, len(shapes) % len(VEGA_SHAPES))
            layers.append(
                Layer(
                    mark=Mark.POINTS,
                    x=x[seen],
                    y=y[seen],
                    series=words if alone else f"{words} · {model}",
                    colour=_COLOURS[shape] if alone else places.get(table.model, 0),
                    shape=shape,
                    size=_SIZES[shape],
                    labels=tuple(names[row] for row in seen),
                    hover={} if knob is None else {"k": knob[seen]},
                    listed=alone,
                )
            )
    if alone or not layers:
        return layers, ""
    told = (f"{VEGA_SHAPES[shape].partition('-')[0]}: {words}" for words, shape in shapes.items())
    return layers, f"Points, {'; '.join(told)}."


def _kinds(names: Sequence[str]) -> list[tuple[str, list[int]]]:
    """What the legend calls each kind of point, and the rows of the kind."""
    kinds: dict[tuple[str, bool], list[int]] = {}
    for row, name in enumerate(names):
        found = _NUMBERED.fullmatch(name)
        stem = found[1] if found else name
        kinds.setdefault((stem, found is not None), []).append(row)
    if len(kinds) > len(VEGA_SHAPES):
        return [(POINTS, list(range(len(names))))]
    return [(_words(stem, [names[row] for row in rows]), rows) for (stem, _), rows in kinds.items()]


def _words(stem: str, names: Sequence[str]) -> str:
    """The name of the only one, or what the names share with their numbers."""
    if len(names) == 1:
        return names[0]
    return one_line(f"{stem} {', '.join(name[len(stem) :].strip() for name in names)}", 60)
