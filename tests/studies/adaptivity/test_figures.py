"""Figures of adaptivity hold the numbers that they were given, and every renderer draws them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from extras import needs
from howsure.core.errors import InputError
from howsure.core.records import Curve
from howsure.figures import Figure, Mark, figures_of, plot, to_vega
from howsure.studies.adaptivity import methods_figure, sensitivity_figure

needs("matplotlib")


def curve(name: str, model: str, shift: float = 0.0) -> Curve:
    x = np.array([0.125, 0.375, 0.625, 0.875])
    return Curve(
        name=name,
        x=x,
        y=0.9 + shift * x,
        lower=np.full(4, 0.85),
        upper=np.full(4, 0.95),
        reference=np.full(4, 0.9),
        x_label="share of rows",
        y_label="coverage",
        band="95% band",
        model=model,
        hover={"Rows": np.full(4, 10.0)},
    )


def figures() -> list[Figure]:
    pair = [curve("coverage_by_ease", "A"), curve("coverage_by_ease", "B", 0.1)]
    bare = {"lower": None, "upper": None, "reference": None}
    sizes = [replace(curve("size_by_difficulty", m, s), **bare) for m, s in (("A", 0), ("B", 0.2))]
    return [
        *figures_of(pair),
        *figures_of(sizes),
        methods_figure(
            {"digits": {"LAC": 0.3, "APS": np.nan}, "photos": {"LAC": 0.4, "APS": 0.1}},
            "t_cv",
            rules={"perfect": 0.04, "none": np.nan},
        ),
        sensitivity_figure(
            ["noise", "contrast"], {"LAC": np.array([0.5, np.nan])}, "t_ss", title="type"
        ),
    ]


@pytest.mark.parametrize("figure", figures(), ids=lambda f: f.name)
def test_every_renderer_draws_them(figure: Figure) -> None:
    from matplotlib import pyplot

    assert to_vega(figure)
    axes = plot(figure)
    assert axes.get_xlabel() == figure.x.title
    pyplot.close("all")


def test_layers_hold_what_was_given() -> None:
    by_ease, by_size, methods, ways = figures()
    lines = [layer for layer in by_ease.layers if layer.mark is Mark.LINE]
    assert [layer.series for layer in lines] == ["nominal", "A", "B"]
    np.testing.assert_allclose(lines[2].y, 0.9 + 0.1 * lines[2].x)
    (band,) = (layer for layer in by_ease.layers if layer.mark is Mark.BAND)
    assert (band.series, band.lower.tolist()) == ("95% band", [0.85] * 4)
    assert {layer.mark for layer in by_size.layers} == {Mark.POINTS}
    assert [layer.series for layer in by_size.layers] == ["A", "B"]
    rule, digits, photos = methods.layers
    assert rule.x.tolist() == [0.04]
    assert (digits.x.tolist(), digits.labels) == ([0.3], ("LAC",))
    assert (photos.x.tolist(), photos.y.tolist()) == ([0.4, 0.1], [0.0, 1.0])
    assert ways.layers[0].labels == ("noise",)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: methods_figure({}, "t_cv"), "0 series"),
        (lambda: methods_figure({"a": {"b": 1.0}}, "nothing"), "measure be one of"),
        (lambda: sensitivity_figure(["a"], {"b": np.ones(2)}, "t_ss", title="t"), "must be 1"),
    ],
)
def test_bad_input_is_named(call, words: str) -> None:
    with pytest.raises(InputError, match=words):
        call()
