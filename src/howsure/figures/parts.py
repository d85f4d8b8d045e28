"""The layers of a curve's figure: the curve, its band, what it is judged against."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

import numpy as np

from howsure.core.arrays import FloatArray
from howsure.core.formats import level
from howsure.core.layouts import Layout
from howsure.core.records import Curve
from howsure.figures.figure import REFERENCE, Axis, Layer, Mark
from howsure.figures.text import distinct, headed, one_line

BANDS_LIMIT = 3
"""The most bands that can be told apart where they lie over each other."""


def data_layers(
    curve: Curve, label: str, colour: int, layout: Layout, *, alone: bool
) -> list[Layer]:
    """The curve itself, with its intervals where it is made of points."""
    mark = Mark.STEP if curve.step and layout.mark is not Mark.BARS else layout.mark
    whole = Layer(mark=mark, x=curve.x, y=curve.y, series=label, colour=colour)
    if mark is Mark.BARS:
        left, right = _bar_ends(curve.x)
        middle, tops = (left + right) / 2, curve.y[: len(left)]
        if not alone:
            edges, outline = np.append(left, right[-1]), np.append(tops, tops[-1])
            return [replace(whole, mark=Mark.STEP, x=edges, y=outline)]
        return [replace(whole, x=middle, y=tops, lower=left, upper=right)]
    titles = distinct(map(headed, curve.hover), 40)
    whole = replace(whole, hover=dict(zip(titles, curve.hover.values(), strict=True)))
    if layout.band_about == "reference" or curve.lower is None or curve.upper is None:
        return [whole]
    whole = replace(whole, lower=curve.lower, upper=curve.upper)
    if mark is Mark.POINTS:
        return [replace(whole, mark=Mark.INTERVALS), whole]
    return [whole]


def _bar_ends(x: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Ends of the bars: x holds their centres, or (where it begins at 0) their edges."""
    if len(x) > 1 and x[0] == 0.0:
        edges = x if x[-1] >= 1.0 else np.append(x, 1.0)
    elif len(x) > 1:
        middle = (x[1:] + x[:-1]) / 2
        edges = np.concatenate([[2 * x[0] - middle[0]], middle, [2 * x[-1] - middle[-1]]])
        edges = np.where(np.abs(edges) < 1e-12, 0.0, edges)
    else:
        edges = np.array([0.0, 1.0])
    return edges[:-1], edges[1:]


def band_layers(
    curves: Sequence[Curve], labels: Sequence[str], layout: Layout, colours: Sequence[int]
) -> list[Layer]:
    """The bands; one neutral band where it surrounds the reference and all curves share it."""
    bands: list[tuple[FloatArray, FloatArray, FloatArray, str, int]] = []
    for place, (curve, label) in enumerate(zip(curves, labels, strict=True)):
        if curve.lower is None or curve.upper is None or layout.mark is Mark.POINTS:
            continue
        keep = np.isfinite(curve.lower) & np.isfinite(curve.upper)
        bands.append((curve.x[keep], curve.lower[keep], curve.upper[keep], label, place))
    if len(bands) > BANDS_LIMIT and not _same([band[:3] for band in bands]):
        return []
    about_reference = layout.band_about == "reference"
    shared = about_reference and _same([band[:3] for band in bands])
    layers = []
    for x, lower, upper, label, place in bands[:1] if shared else bands:
        words = one_line(curves[place].band, 120) or layout.band
        if layout.mark is Mark.BARS and len(x):
            left, right = _bar_ends(x)
            x = np.append(left, right[-1])
            lower, upper = (np.append(end, end[-1])[: len(x)] for end in (lower, upper))
        layers.append(
            Layer(
                mark=Mark.BAND,
                x=x,
                lower=lower,
                upper=upper,
                series=words if shared or len(curves) == 1 else f"{words} · {label}",
                colour=REFERENCE if shared else colours[place],
                listed=shared or len(curves) == 1,
            )
        )
    return layers


def reference_layers(
    curves: Sequence[Curve], labels: Sequence[str], layout: Layout, colours: Sequence[int]
) -> list[Layer]:
    """What the curves are judged against; one neutral line where all share it."""
    judged = [
        (curve.x, curve.reference, label, place)
        for place, (curve, label) in enumerate(zip(curves, labels, strict=True))
        if curve.reference is not None
    ]
    shared = _same([(x[[0, -1]], reference[[0, -1]]) for x, reference, _, _ in judged])
    stepped = all(curve.step for curve in curves) and layout.mark is not Mark.BARS
    layers = []
    for x, reference, label, place in judged[:1] if shared else judged:
        if layout.mark is Mark.BARS:
            x, reference = np.array([0.0, 1.0]), reference[[0, -1]]
        layers.append(
            Layer(
                mark=Mark.STEP if stepped else Mark.LINE,
                x=x,
                y=reference,
                series=layout.reference if shared else f"{layout.reference} · {label}",
                colour=REFERENCE if shared else colours[place],
                faint=not shared,
                listed=shared,
            )
        )
    return layers


def companion_layers(
    curves: Sequence[Curve],
    labels: Sequence[str],
    layout: Layout,
    colours: Sequence[int],
    others: Mapping[str, Sequence[Curve]],
) -> list[Layer]:
    """Curves that stand behind those of their model and group."""
    alone = len(curves) == 1
    layers = []
    for name, companion in layout.companions.items():
        if not (alone or companion.crowd):
            continue
        for curve, label, colour in zip(curves, labels, colours, strict=True):
            for other in others.get(name, ()):
                if (other.model, other.group) != (curve.model, curve.group):
                    continue
                layers.append(
                    Layer(
                        mark=Mark.STEP if other.step else Mark.LINE,
                        x=other.x,
                        y=other.y,
                        series=companion.words if alone else f"{companion.words} · {label}",
                        colour=REFERENCE if alone else colour,
                        faint=not (alone and companion.dashed),
                        listed=alone,
                    )
                )
    return layers


def zone_layers(
    layout: Layout, y: Axis, families: Mapping[str, Sequence[Curve]] = MappingProxyType({})
) -> list[Layer]:
    """The range of y that a layout shades, where the figure has the layout's axis."""
    if layout.zone is None or y.kind != layout.y.kind:
        return []
    zone = layout.zone
    told = families.get(zone.curve)
    low, high = np.sort(told[0].y[[0, -1]]).tolist() if told else zone.ends
    ends = f"at most {level(high)}" if low == 0 else f"{level(low)} to {level(high)}"
    return [
        Layer(
            mark=Mark.ZONE,
            lower=np.array([low]),
            upper=np.array([high]),
            series=f"{zone.of} {ends}",
            colour=REFERENCE,
        )
    ]


def _same(parts: Sequence[tuple[FloatArray, ...]]) -> bool:
    """Whether every curve brings the same arrays, so that one drawing stands for all."""
    return all(
        a.shape == b.shape and np.allclose(a, b)
        for part in parts[1:]
        for a, b in zip(part, parts[0], strict=True)
    )
