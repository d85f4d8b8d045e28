"""Drawing with matplotlib."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import numpy as np
import pytest

from extras import needs
from figures import samples
from howsure.core.errors import MissingDependencyError
from howsure.core.records import Curve
from howsure.figures import Figure, Layer, Mark, figures_of, plot
from howsure.figures.mpl import MAX_CHARACTERS

matplotlib = needs("matplotlib")
CONTENT = samples.content()
SEVERAL = samples.several_models()
EVERY = (
    *figures_of(CONTENT.curves, CONTENT.tables),
    *figures_of(SEVERAL.curves, SEVERAL.tables),
    *figures_of(tables=samples.drawn_apart()),
    Figure(
        name="words",
        question="Which?",
        layers=(
            Layer(mark=Mark.POINTS, x=np.zeros(1), y=np.ones(1), series="points"),
            Layer(mark=Mark.TEXT, x=np.zeros(1), y=np.ones(1), series="names", labels=("first",)),
        ),
    ),
)


@pytest.fixture(autouse=True)
def _close() -> Iterator[None]:
    from matplotlib import pyplot

    before = dict(matplotlib.rcParams)
    yield
    assert dict(matplotlib.rcParams) == before
    pyplot.close("all")


@pytest.mark.slow
@pytest.mark.parametrize("figure", EVERY, ids=lambda figure: figure.name)
def test_every_figure_is_drawn_with_its_titles(figure: Figure) -> None:
    axes = plot(figure)
    axes.figure.canvas.draw()
    assert axes.get_title("left") == figure.title
    assert axes.get_xlabel() == figure.x.title
    assert axes.has_data()


def test_the_axes_given_are_drawn_on() -> None:
    from matplotlib import pyplot

    _, (left, right) = pyplot.subplots(1, 2)
    assert plot(samples.calibration(), ax=right) is right
    assert not left.has_data()


def test_the_curve_is_drawn_as_given() -> None:
    curve = samples.calibration()
    axes = plot(curve)
    lines = {line.get_label(): line for line in axes.get_lines()}
    np.testing.assert_array_equal(lines["observed"].get_ydata(), curve.y)
    np.testing.assert_array_equal(lines["perfect calibration"].get_ydata(), curve.reference)
    assert axes.get_xlim() == (0.0, 1.0)


def test_steps_hold_each_value_until_the_next_point() -> None:
    axes = plot(Curve(name="other", x=np.arange(9.0), y=np.arange(9.0), step=True))
    assert {line.get_drawstyle() for line in axes.get_lines()} == {"steps-post"}


def test_bars_have_the_heights_of_the_histogram() -> None:
    axes = plot(samples.pit_histogram())
    heights = [patch.get_height() for patch in axes.patches]
    np.testing.assert_allclose(heights, samples.pit_histogram().y)


def test_the_first_row_of_a_dot_plot_is_on_top() -> None:
    axes = plot(samples.groups())
    (figure,) = figures_of(tables=[samples.groups()])
    assert [label.get_text() for label in axes.get_yticklabels()] == list(figure.y.categories)
    bottom, top = axes.get_ylim()
    assert bottom > top


def test_the_legend_names_what_the_figure_lists() -> None:
    curves = [samples.rolling("a"), samples.rolling("b")]
    legend = plot(curves).get_legend()
    assert sorted(text.get_text() for text in legend.get_texts()) == ["a", "b", "nominal"]


def test_dollars_and_underscores_are_no_mathematics() -> None:
    axes = plot([samples.calibration("$x^{"), samples.calibration("_hidden")])
    axes.figure.canvas.draw()
    told = [text.get_text() for text in axes.get_legend().get_texts()]
    assert {r"\$x^{", "hidden"} < set(told)


def test_without_matplotlib_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(MissingDependencyError, match=r"howsure\[plots\]"):
        plot(samples.calibration())


def test_models_stand_below_one_another_in_a_row() -> None:
    figure = next(f for f in figures_of(tables=samples.drawn_apart()) if f.name == "groups")
    axes = plot(figure)
    marked = [line for line in axes.get_lines() if line.get_linestyle() == "None"]
    lanes = {round(float(y - np.round(y)), 6) for line in marked for y in line.get_ydata()}
    assert lanes == {-0.15, 0.15}


def test_long_names_leave_room_for_the_drawing() -> None:
    names = [f"{letter}{'x' * 200}" for letter in "abcde"]
    axes = plot([samples.calibration(name, 0.1) for name in names])
    axes.figure.canvas.draw()
    assert axes.get_window_extent().width > 300
    assert all(len(text.get_text()) <= MAX_CHARACTERS for text in axes.get_legend().get_texts())


def test_no_mark_is_left_undrawn() -> None:
    drawn = {layer.mark for figure in EVERY for layer in figure.layers}
    assert drawn == set(Mark)
