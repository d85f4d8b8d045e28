"""What a reader hears who does not see a figure: its finding, with its numbers."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

from figures import samples
from howsure.core.records import Curve, ResultTable
from howsure.figures import Axis, Figure, Layer, Mark, figures_of
from howsure.figures.figure import REFERENCE
from howsure.figures.layouts import companions, layouts
from howsure.figures.telling import MAX_SERIES_TOLD, describe_figure

NUMBER = re.compile(r"\d")


def tells_a_number(figure: Figure) -> bool:
    """Whether what a figure says holds a number that its title does not bring, and ends."""
    text = describe_figure(figure)
    return bool(NUMBER.search(text)) and "0 values" not in text and text.endswith(".")


def curve(name: str, **more: object) -> Curve:
    """A line from 0 to 1 that lies above its reference in the middle."""
    x = np.linspace(0.0, 1.0, 11)
    bump = np.where(np.arange(11) == 7, 0.2, 0.0)
    return Curve(name=name, x=x, y=x + bump, reference=x, model="m", **more)  # type: ignore[arg-type]


def only(*items: Curve | ResultTable) -> str:
    """What the one figure of some curves and tables says."""
    (figure,) = figures_of(
        [item for item in items if isinstance(item, Curve)],
        [item for item in items if isinstance(item, ResultTable)],
    )
    return describe_figure(figure)


@pytest.mark.parametrize("name", [name for name in layouts() if name not in companions()])
def test_every_curve_of_a_topic_tells_a_number(name: str) -> None:
    (figure,) = figures_of([curve(name)])
    assert tells_a_number(figure)


def test_every_figure_of_a_full_report_tells_a_number() -> None:
    for content in (samples.content(), samples.several_models()):
        figures = figures_of(content.curves, content.tables)
        assert len(figures) > 8
        assert [figure.title for figure in figures if not tells_a_number(figure)] == []


def test_a_figure_of_nothing_is_seen() -> None:
    assert not tells_a_number(Figure(name="new", question="New?", title="New"))


def test_a_series_without_rows_is_passed_over() -> None:
    def dots(series: str, *x: float) -> Layer:
        return Layer(mark=Mark.POINTS, x=np.array(x), y=np.zeros(len(x)), series=series)

    axis = Axis(kind="category", categories=("CP",))
    figure = Figure(name="new", question="New?", title="New", x=Axis(title="T-SS"), y=axis,
                    layers=(dots("none"), dots("seen", 0.25)))  # fmt: skip
    assert describe_figure(figure) == "seen (1): T-SS 0.25 (CP)."


def test_a_line_is_told_where_it_lies_farthest_from_what_judges_it() -> None:
    reach = np.full(11, 0.1)
    x = np.linspace(0.0, 1.0, 11)
    text = only(curve("calibration", lower=x - reach, upper=x + reach))
    assert text == (
        "Observed frequency 90 % at nominal level 70 %, farthest from perfect calibration (70 %); "
        "never below it, outside the band at 1 of 11."
    )


def test_interval_calibration_is_told_at_nine_in_ten() -> None:
    x = np.linspace(0.1, 0.9, 9)
    y = x - 0.071
    text = only(Curve(name="interval_calibration", x=x, y=y, lower=y - 0.02, upper=y + 0.02,
                      reference=x))  # fmt: skip
    assert text == (
        "Empirical coverage 82.9 % (80.9 % to 84.9 %) at nominal coverage 90 %, against perfect "
        "calibration (90 %); never above it, outside its interval at 9 of 9."
    )


def test_several_models_are_told_by_name_up_to_a_few() -> None:
    curves = [replace(curve("calibration"), model=f"lgbm {k}") for k in range(MAX_SERIES_TOLD + 2)]
    text = only(*curves)
    assert text.startswith("lgbm 0: observed frequency 90 % at nominal level 70 %")
    assert text.endswith("; 2 more in the table.")
    assert "lgbm 4" not in text


def test_a_histogram_is_told_by_its_ends_and_its_band() -> None:
    text = only(samples.pit_histogram())
    drawn = samples.pit_histogram()
    beyond = int((np.abs(drawn.y - 1.0) > 0.2).sum())
    assert text == (
        "Density from 0.506 at PIT 0.45 to 0.5 up to 1.49 at PIT 0 to 0.05, against uniform (1), "
        f"outside the band at {beyond} of 20."
    )


def test_a_dot_plot_is_told_by_the_ends_of_each_kind() -> None:
    text = only(samples.groups())
    assert text.startswith("under-covers (1): empirical coverage 71 % (North); consistent with")
    assert text.endswith("; over-covers (1): empirical coverage 97 % (City); nominal 90 %.")


def test_bins_are_told_by_their_ranges_and_their_rank_correlation() -> None:
    text = only(replace(samples.error_by_width(), reference=None))
    assert text == (
        "10 points, mean |error| (MW) 0.364 to 1.35, mean width (MW) 1 to 4, rank correlation 1.00."
    )


def test_rank_correlation_is_spearmans() -> None:
    from scipy.stats import spearmanr

    rng = np.random.default_rng(4)
    x, y = rng.integers(0, 6, (2, 50)).astype(float)
    points = Layer(mark=Mark.POINTS, x=x, y=y)
    text = describe_figure(Figure(name="a", question="b", layers=(points,)))
    assert text.endswith(f"rank correlation {spearmanr(x, y).statistic:.2f}.".replace("-", "−"))


def test_rows_beside_their_intervals_are_counted() -> None:
    text = only(samples.interval_rows())
    assert text == "Of 20 rows shown, 4 are outside (20 %), the farthest by 1.29 (row r15)."


def test_a_map_tells_its_highest_point() -> None:
    table = samples.congruence()[0]
    top = int(np.argmax(table.columns["cce"]))
    first, second = (table.columns[name][top] for name in ("first", "second"))
    text = only(table)
    assert text.startswith("CCE up to 0.054 (First principal coordinate ")
    assert f"{first:.3g}, Second {second:.3g})" in text


def test_points_inside_bands_are_counted() -> None:
    x = np.arange(4.0)
    band = Layer(mark=Mark.BAND, x=x, lower=x - 1, upper=x + 1, series="90 % band")
    dots = Layer(mark=Mark.POINTS, x=x, y=x + np.array([0, 0.5, 2, -0.9]), colour=REFERENCE)
    figure = Figure(name="a", question="b", layers=(band, dots))
    assert describe_figure(figure) == "90 % band: 3 of 4 points inside (75 %)."


def test_times_are_dates_and_names_that_tell_their_number_tell_it_once() -> None:
    line = Layer(mark=Mark.LINE, x=np.array([0.0, 86400.0]), y=np.array([0.9, 0.8]), series="m")
    rule = Layer(mark=Mark.RULE, y=np.array([0.9]), series="nominal 90 %", colour=REFERENCE)
    axes = {"x": Axis(title="Time (UTC)", kind="time"), "y": Axis(title="Coverage", kind="percent")}
    figure = Figure(name="a", question="b", layers=(rule, line), **axes)  # type: ignore[arg-type]
    assert describe_figure(figure) == (
        "Coverage 80 % at time (UTC) 1970-01-02 00:00, farthest from nominal 90 %; never above it."
    )
