"""Vega-Lite specifications, checked by its schema and by its own compiler."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

from extras import needs
from figures import samples
from howsure.core.records import Curve
from howsure.figures import Figure, Mark, figures_of, to_vega
from howsure.figures.palette import CSS
from howsure.figures.vega import MIN_DIGITS

altair = needs("altair")
vl_convert = needs("vl_convert")
CONTENT = samples.content()
FIGURES = figures_of(CONTENT.curves, CONTENT.tables)
SEVERAL = samples.several_models()
EVERY = (
    *FIGURES,
    *figures_of(SEVERAL.curves, SEVERAL.tables),
    *figures_of(tables=samples.drawn_apart()),
)


def svg_of(figure: Figure, **choices: Any) -> ElementTree.Element:
    """The drawing of a figure by Vega itself."""
    spec = to_vega(figure, width=500, **choices)
    return ElementTree.fromstring(vl_convert.vegalite_to_svg(spec))


def marks(svg: ElementTree.Element, kind: str) -> list[ElementTree.Element]:
    """Elements of one kind of mark, axes and legends left out."""
    found: list[ElementTree.Element] = []
    for group in svg.iter("{http://www.w3.org/2000/svg}g"):
        name = group.get("class", "")
        if name.startswith(f"mark-{kind}") and "layer_" in name and "voronoi" not in name:
            found += list(group)
    return found


def texts(value: Any) -> Iterator[str]:
    """Every text within plain values."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for part in value.values():
            yield from texts(part)
    elif isinstance(value, list):
        for part in value:
            yield from texts(part)


@pytest.mark.parametrize("figure", EVERY, ids=lambda figure: figure.name)
@pytest.mark.parametrize("legend", [True, False])
@pytest.mark.rate
def test_every_figure_obeys_the_schema(figure: Figure, legend: bool) -> None:
    altair.Chart.from_dict(to_vega(figure, legend=legend))


@pytest.mark.parametrize("figure", EVERY, ids=lambda figure: figure.name)
def test_every_figure_is_strict_json_and_loads_nothing(figure: Figure) -> None:
    spec = to_vega(figure, palette=CSS, legend=False)
    json.dumps(spec, allow_nan=False)
    addresses = [text for text in texts(spec) if re.search(r"https?:|//", text)]
    assert addresses == [spec["$schema"]]
    assert '"url"' not in json.dumps(spec)


def test_every_point_is_drawn() -> None:
    curve = samples.error_by_width()
    (figure,) = figures_of([curve])
    svg = svg_of(figure)
    points = marks(svg, "symbol")
    assert len(points) == 2 * len(curve.x)  # the points, and the unseen ones that are hovered
    intervals = next(layer for layer in figure.layers if layer.mark is Mark.INTERVALS)
    assert len(marks(svg, "rule")) == len(intervals)


def test_bars_reach_from_zero_to_their_height() -> None:
    (figure,) = figures_of([samples.pit_histogram()])
    heights = []
    for bar in marks(svg_of(figure), "rect"):
        path = bar.get("d", "")
        heights.append(float(re.findall(r"v([\d.]+)", path)[0]))
    y = np.array([float(f"{each:.{MIN_DIGITS}g}") for each in samples.pit_histogram().y])
    assert len(heights) == len(y)
    np.testing.assert_allclose(np.array(heights) / max(heights), y / y.max(), rtol=1e-6)


def test_rows_of_a_dot_plot_are_named_in_order() -> None:
    (figure,) = figures_of(tables=[samples.groups()])
    shown = [part.text for part in svg_of(figure).iter("{http://www.w3.org/2000/svg}text")]
    names = [text for text in shown if text in figure.y.categories]
    assert names == list(figure.y.categories)


def test_the_legend_names_each_series_once() -> None:
    (figure,) = figures_of([samples.calibration("a", 0.2), samples.calibration("b", -0.2)])
    shown = [part.text for part in svg_of(figure).iter("{http://www.w3.org/2000/svg}text")]
    for label in ("a", "b", "perfect calibration"):
        assert shown.count(label) == 1
    bare = [part.text for part in svg_of(figure, legend=False).iter()]
    assert "a" not in bare


@pytest.mark.parametrize("away", [0.0, 1e6, -3e9])
@pytest.mark.parametrize("size", [1.0, 1e-7, 1e12])
def test_marks_stand_within_a_ten_thousandth_of_their_place(away: float, size: float) -> None:
    x = size * (away + np.sort(np.random.default_rng(2).uniform(size=100)))
    curve = Curve(name="other", x=x, y=x[::-1])
    spec = to_vega(figures_of([curve])[0])
    rows = spec["datasets"]["hovered"]
    for name, exact in (("x", x), ("y", x[::-1])):
        told = np.array([row[name] for row in rows])
        assert np.abs(told - exact).max() <= 1e-4 * np.ptp(x)


def test_times_are_exact_to_the_second() -> None:
    (figure,) = figures_of([samples.rolling()])
    spec = to_vega(figure)
    told = {row["x"] for row in spec["datasets"]["hovered"]}
    assert told == {1000 * round(second) for second in samples.rolling().x}


@pytest.mark.parametrize(
    "text", ["</script><script>x</script>", "a'b\"c\\d", "datum.x", "{{x}}", "${x}", "__proto__"]
)
@pytest.mark.rate
def test_hostile_names_are_shown_as_they_are(text: str) -> None:
    figures = figures_of(
        [
            samples.calibration(text),
            samples.calibration("other"),
            Curve(name=text, x=np.arange(3.0), y=np.arange(3.0), x_label=text, y_label=text),
        ],
        [samples.groups(2, names=[text, "b"]), samples.models(text, "b")],
    )
    assert len(figures) == 4
    for figure in figures:
        altair.Chart.from_dict(to_vega(figure))
        shown = " ".join(part.text or "" for part in svg_of(figure).iter())
        assert text.casefold() in shown.casefold()


def test_drawings_are_light_whatever_the_data() -> None:
    x = np.linspace(0.0, 1.0, 100_000)
    wild = np.cumsum(np.random.default_rng(0).normal(size=len(x)))
    band = {"lower": wild - 1, "upper": wild + 1, "reference": np.zeros_like(x)}
    curves = [Curve(name="rolling_coverage", x=x, y=wild, model=m, **band) for m in ("a", "b")]
    tables = [samples.congruence(model, 20_000)[0] for model in ("a", "b")]
    tables += [samples.groups(10_000, model) for model in ("a", "b")]
    for figure in figures_of(curves, tables):
        spec = json.dumps(to_vega(figure), separators=(",", ":"))
        assert len(spec) < 45_000, figure.name
