"""The page's colours on light and on dark, as CSS properties."""

from __future__ import annotations

from collections.abc import Mapping

from howsure.figures.palette import DARK, LIGHT, Palette

_LIGHT = {
    "paper": "#f6f6f3",
    "muted": "#59636c",
    "line": "#dddfdc",
    "accent": "#0b6688",
    "good": "#17754a",
    "bad": "#b2341a",
    "undecided": "#7d6100",
    "info": "#0b6688",
    "good-tint": "#e8f4ec",
    "bad-tint": "#fbece7",
    "undecided-tint": "#f8f1da",
    "info-tint": "#e6f1f6",
}
_DARK = {
    "paper": "#14181b",
    "muted": "#a3adb5",
    "line": "#333a40",
    "accent": "#6cc3e6",
    "good": "#5ccf97",
    "bad": "#ff9270",
    "undecided": "#e3c050",
    "info": "#6cc3e6",
    "good-tint": "#1a2e25",
    "bad-tint": "#38231c",
    "undecided-tint": "#322c17",
    "info-tint": "#17303b",
}


def properties() -> str:
    """CSS that names every colour: light at first, dark where the system or the reader says so."""
    light = _declared("light", LIGHT, _LIGHT)
    dark = _declared("dark", DARK, _DARK)
    chosen = f':root[data-theme="dark"] {{ {dark} }}'
    system = f':root:not([data-theme="light"]) {{ {dark} }}'
    return (
        f":root {{ {light} }}\n"
        f"@media screen {{ {chosen} }}\n"
        f"@media screen and (prefers-color-scheme: dark) {{ {system} }}\n"
    )


def _declared(scheme: str, palette: Palette, page: Mapping[str, str]) -> str:
    colours = {f"series-{place}": colour for place, colour in enumerate(palette.series)}
    colours |= {f"ramp-{place}": colour for place, colour in enumerate(palette.ramp)}
    colours |= {
        "reference": palette.reference,
        "highlight": palette.highlight,
        "ink": palette.ink,
        "grid": palette.grid,
        "surface": palette.surface,
        **page,
    }
    words = "; ".join(f"--{name}: {colour}" for name, colour in colours.items())
    return f"color-scheme: {scheme}; {words};"
