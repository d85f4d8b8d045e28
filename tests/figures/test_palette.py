"""Colours that everyone can tell apart, on light and on dark."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from howsure.core.arrays import FloatArray
from howsure.figures.palette import CSS, DARK, DASHES, LIGHT, Palette

# Machado, Oliveira and Fernandes 2009, table 1, severity 1.0, in linear RGB.
VISION = {
    "usual": np.eye(3),
    "protanopia": np.array(
        [
            [0.152286, 1.052583, -0.204868],
            [0.114503, 0.786281, 0.099216],
            [-0.003882, -0.048116, 1.051998],
        ]
    ),
    "deuteranopia": np.array(
        [
            [0.367322, 0.860646, -0.227968],
            [0.280085, 0.672501, 0.047413],
            [-0.011820, 0.042940, 0.968881],
        ]
    ),
}


def linear(colour: str) -> FloatArray:
    """Linear RGB of a hexadecimal colour (IEC 61966-2-1)."""
    part = np.array([int(colour[place : place + 2], 16) for place in (1, 3, 5)]) / 255
    return np.where(part <= 0.04045, part / 12.92, ((part + 0.055) / 1.055) ** 2.4)


def luminance(colour: str) -> float:
    """Relative luminance, as the Web Content Accessibility Guidelines define it."""
    return float(linear(colour) @ [0.2126, 0.7152, 0.0722])


def contrast(one: str, other: str) -> float:
    """Contrast ratio of two colours."""
    low, high = sorted([luminance(one), luminance(other)])
    return (high + 0.05) / (low + 0.05)


def lab(rgb: FloatArray) -> FloatArray:
    """CIE L*a*b* of linear RGB under D65."""
    to_xyz = np.array(
        [[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]
    )
    ratio = to_xyz @ np.clip(rgb, 0, 1) / np.array([0.9505, 1.0, 1.089])
    root = np.where(ratio > 0.008856, np.cbrt(ratio), 7.787 * ratio + 16 / 116)
    return np.array([116 * root[1] - 16, 500 * (root[0] - root[1]), 200 * (root[1] - root[2])])


@pytest.mark.parametrize("palette", [LIGHT, DARK], ids=["light", "dark"])
def test_colours_stand_out_from_the_surface(palette: Palette) -> None:
    for colour in (*palette.series, palette.reference, palette.highlight):
        assert contrast(colour, palette.surface) >= 3.0, colour
    assert contrast(palette.ink, palette.surface) >= 7.0


@pytest.mark.parametrize("vision", VISION)
@pytest.mark.parametrize("palette", [LIGHT, DARK], ids=["light", "dark"])
def test_colours_are_told_apart_by_every_kind_of_sight(palette: Palette, vision: str) -> None:
    seen = [lab(VISION[vision] @ linear(colour)) for colour in palette.series]
    pairs = itertools.combinations(range(len(seen)), 2)
    distance = {(a, b): float(np.linalg.norm(seen[a] - seen[b])) for a, b in pairs}
    first = {pair: d for pair, d in distance.items() if max(pair) < 4}
    assert min(first.values()) > 20, first
    assert min(distance.values()) > 12, distance


def test_neighbours_differ_in_dash_too() -> None:
    assert len(set(DASHES)) == len(DASHES)
    assert len(CSS.series) == len(LIGHT.series) == len(DARK.series)


@pytest.mark.parametrize("palette", [LIGHT, DARK], ids=["light", "dark"])
def test_the_ramp_leaves_the_surface_step_by_step_for_every_kind_of_sight(palette: Palette) -> None:
    away = 1 if palette is DARK else -1
    for vision in VISION.values():
        for classes in (5, 8, len(palette.ramp)):
            seen = np.array([lab(vision @ linear(c)) for c in palette.shades(classes)])
            rise = away * np.diff(seen[:, 0])
            assert rise.min() > 0.3 * rise.mean() > 0
            if classes == 8:
                assert np.linalg.norm(np.diff(seen, axis=0), axis=1).min() > 5
    usual = np.array([lab(linear(colour)) for colour in palette.ramp])
    rise = away * np.diff(usual[:, 0])
    assert rise.max() < 2 * rise.min()  # lightness changes evenly
    assert all(contrast(colour, palette.surface) >= 3.0 for colour in palette.ramp)
    assert len(set(palette.ramp)) == len(palette.ramp) == len(CSS.ramp)


@pytest.mark.parametrize("classes", [1, 2, 7, 25])
def test_shades_span_the_ramp(classes: int) -> None:
    shades = LIGHT.shades(classes)
    assert len(shades) == classes
    assert shades[0] == LIGHT.ramp[0]
    assert shades[-1] == LIGHT.ramp[-1] or classes == 1
