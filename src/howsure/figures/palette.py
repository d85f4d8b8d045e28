"""Colours, dashes and shapes: told apart without colour vision, on light and on dark."""

from __future__ import annotations

from howsure.core.classes import frozen
from howsure.figures.figure import HIGHLIGHT, REFERENCE


@frozen(kw_only=True)
class Palette:
    """One set of colours."""

    series: tuple[str, ...]  # one colour a series
    # colours for rising numbers, from near the background to far from it: lightness changes evenly,
    # so that the order shows without colour vision and in print
    ramp: tuple[str, ...]
    # the reference, what must be seen first, text, grid lines, the background
    reference: str
    highlight: str
    ink: str
    grid: str
    surface: str

    def colour(self, index: int) -> str:
        """The colour of a layer."""
        if index == REFERENCE:
            return self.reference
        if index == HIGHLIGHT:
            return self.highlight
        return self.series[index % len(self.series)]

    def shades(self, classes: int) -> tuple[str, ...]:
        """Colours for so many classes of rising numbers, both ends of the ramp included."""
        last, steps = len(self.ramp) - 1, max(classes - 1, 1)
        return tuple(self.ramp[round(last * number / steps)] for number in range(classes))


_LIGHT_RAMP = (
    "#5492c5", "#558cc6", "#5785c6", "#5b7dc6", "#5f76c5", "#636ec3", "#6966c0", "#6d5ebc",
    "#7355b6", "#784cae", "#7c43a5", "#80399b", "#832f91", "#842784", "#822176", "#801b69",
    "#7d155b", "#7a104e", "#760b42", "#710636", "#6a062c", "#620623", "#5a061a", "#520612",
    "#49070a",
)  # fmt: skip
LIGHT = Palette(
    series=("#0061ad", "#d9500a", "#008a56", "#b8588f", "#8c922d", "#4a8fd0", "#7a4b2e", "#3b3f46"),
    ramp=_LIGHT_RAMP,
    reference="#6a737b",
    highlight="#c0381c",
    ink="#1c2126",
    grid="#e4e6e4",
    surface="#ffffff",
)
_DARK_RAMP = (
    "#3d6bb0", "#516bbc", "#656ac6", "#7a68cd", "#9165d0", "#a665cd", "#b865c7", "#c866bf",
    "#d767b6", "#e368ac", "#ec6da2", "#f37399", "#f97a90", "#fe8188", "#ff8b80", "#ff9479",
    "#ff9e74", "#ffa872", "#ffb273", "#ffbd76", "#ffc77b", "#ffd282", "#ffdb8a", "#ffe594",
    "#feefa0",
)  # fmt: skip
DARK = Palette(
    series=("#56b4e9", "#f2874e", "#3df798", "#e499aa", "#e3b23c", "#8f9dff", "#c69c7c", "#c9ced3"),
    ramp=_DARK_RAMP,
    reference="#98a3ab",
    highlight="#ff8a66",
    ink="#e8eaeb",
    grid="#2d3439",
    surface="#1b2024",
)
CSS = Palette(
    series=tuple(f"var(--series-{index})" for index in range(len(LIGHT.series))),
    ramp=tuple(f"var(--ramp-{index})" for index in range(len(LIGHT.ramp))),
    reference="var(--reference)",
    highlight="var(--highlight)",
    ink="var(--ink)",
    grid="var(--grid)",
    surface="var(--surface)",
)
"""Names of CSS properties in place of colours: one drawing serves light, dark and print."""

SERIES_LIMIT = len(LIGHT.series)
# Strokes and gaps in pixels that are told apart at the width of a line, beside their colours. By
# eye.
DASHES: tuple[tuple[int, ...], ...] = ((), (7, 3), (2, 2), (9, 3, 2, 3), (5, 2), (1, 3), (12, 4))
VEGA_SHAPES = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down")
MPL_SHAPES = ("o", "s", "^", "D", "P", "v")
# Of no series, so that a reference is not taken for one.
REFERENCE_DASH = (4, 4)
# Fainter than any other.
FAINT_DASH = (1, 3)


def dash_of(index: int, *, faint: bool) -> tuple[int, ...]:
    """The dash pattern of a line, in pixels on and off; empty for a solid line."""
    if faint:
        return FAINT_DASH
    return REFERENCE_DASH if index < 0 else DASHES[index % len(DASHES)]
