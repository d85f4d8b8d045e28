"""Figures from curves and tables."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from figures import samples
from generated import examples
from howsure.core.errors import InputError
from howsure.core.records import Curve, ResultTable
from howsure.engine.metric import MISS_RANGE
from howsure.figures import Figure, Layer, Mark, figures_of, plot
from howsure.figures.figure import HIGHLIGHT, REFERENCE, sample_points
from howsure.figures.palette import SERIES_LIMIT
from howsure.figures.tables import DIFFER


def only(*items: Curve | ResultTable) -> Figure:
    """The one figure of these items."""
    curves = [item for item in items if isinstance(item, Curve)]
    figures = figures_of(curves, [item for item in items if isinstance(item, ResultTable)])
    assert len(figures) == 1
    return figures[0]


def layers(figure: Figure, mark: Mark) -> list[Layer]:
    """The layers of one mark."""
    return [layer for layer in figure.layers if layer.mark is mark]


def labels(figure: Figure) -> list[str]:
    """What the legend says."""
    return [item.label for item in figure.legend()]


def test_calibration_comes_first_whatever_the_order_given() -> None:
    content = samples.content()
    names = [figure.name for figure in figures_of(content.curves, content.tables)]
    assert names == [
        "calibration",
        "interval_calibration",
        "pit_ecdf",
        "pit_histogram",
        "error_by_width",
        "risk_coverage",
        "characteristic",
        "characteristic_deficit",
        "groups",
        "models",
        "cce_map",
        "cce_tree",
        "rolling_coverage",
    ]


def test_the_curve_and_its_band_are_drawn_as_given() -> None:
    curve = samples.calibration()
    figure = only(curve)
    (band,) = layers(figure, Mark.BAND)
    reference, line = layers(figure, Mark.LINE)
    np.testing.assert_array_equal(line.y, curve.y)
    np.testing.assert_array_equal(band.lower, curve.lower)
    np.testing.assert_array_equal(band.upper, curve.upper)
    np.testing.assert_array_equal(reference.y, curve.reference)
    assert reference.colour == band.colour == REFERENCE
    assert labels(figure) == ["observed", "perfect calibration", "95 % simultaneous band"]


def test_models_share_a_figure_and_one_reference() -> None:
    figure = only(samples.calibration("a", 0.3), samples.calibration("b", -0.3))
    assert labels(figure) == ["a", "b", "perfect calibration", "95 % simultaneous band"]
    assert len(layers(figure, Mark.BAND)) == 1


def test_bands_about_each_model_are_named_once_in_words() -> None:
    figure = only(samples.rolling("a"), samples.rolling("b"))
    assert len(layers(figure, Mark.BAND)) == 2
    assert labels(figure) == ["a", "b", "nominal"]
    assert figure.notes == ("Shaded: 95 % band, 500 rows a window.",)


def test_groups_of_one_model_are_the_series() -> None:
    x = np.array([0.0, 1.0])
    curves = [Curve(name="calibration", x=x, y=x, group=group) for group in ("", "r=N", "r=S")]
    assert labels(only(*curves)) == ["all rows", "r=N", "r=S"]


def test_models_in_groups_make_one_figure_a_group() -> None:
    x = np.array([0.0, 1.0])
    curves = [
        Curve(name="calibration", x=x, y=x, group=group, model=model)
        for group in ("r=N", "r=S")
        for model in "ab"
    ]
    figures = figures_of(curves)
    assert [figure.title for figure in figures] == [
        "Reliability diagram (calibration curve) (r=N)",
        "Reliability diagram (calibration curve) (r=S)",
    ]
    assert all(labels(figure) == ["a", "b"] for figure in figures)


def test_a_companion_stands_behind_its_host_and_alone_without_it() -> None:
    told, oracle = samples.risk_coverage()
    figure = only(told, oracle)
    assert labels(figure) == ["most certain first", "random order", "oracle order"]
    assert only(oracle).name == "risk_coverage_oracle"


@pytest.mark.parametrize("taken", ["perfect calibration", "95 % simultaneous band"])
def test_a_model_named_like_the_reference_stays_apart(taken: str) -> None:
    figure = only(samples.calibration(taken))
    assert labels(figure)[0] == f"{taken} (2)"
    assert len(labels(figure)) == 3


def test_more_series_than_colours_are_left_out_and_said() -> None:
    count = SERIES_LIMIT + 3
    figure = only(*(samples.calibration(f"m{i}", i / 30) for i in range(count)))
    assert len([layer for layer in layers(figure, Mark.LINE) if layer.colour >= 0]) == SERIES_LIMIT
    assert figure.notes == (f"Shown: the first {SERIES_LIMIT} of {count}.",)


def test_points_without_a_place_are_dropped() -> None:
    y = np.array([0.1, math.nan, math.inf, 0.4])
    (line,) = only(Curve(name="other", x=np.arange(4.0), y=y)).layers
    np.testing.assert_array_equal(line.x, [0.0, 3.0])
    assert figures_of([Curve(name="other", x=np.arange(1.0), y=np.array([math.nan]))]) == ()
    assert figures_of([Curve(name="other", x=np.zeros(0), y=np.zeros(0))]) == ()


@examples(100)
@given(
    st.lists(st.floats(-1e9, 1e9), min_size=1, max_size=300).map(sorted),
    st.integers(4, 50),
)
def test_sampled_points_are_rising_few_and_keep_the_ends(x: list[float], limit: int) -> None:
    index = sample_points(np.array(x), limit)
    assert len(index) <= max(limit, 0) or len(x) <= limit
    assert index[0] == 0
    assert index[-1] == len(x) - 1
    assert (np.diff(index) > 0).all()


@pytest.mark.parametrize(
    ("x", "y"),
    [
        (np.array([0.125, 0.375, 0.625, 0.875]), np.array([1.0, 2.0, 0.5, 0.5])),
        (np.array([0.0, 0.25, 0.5, 0.75]), np.array([1.0, 2.0, 0.5, 0.5])),
        (np.array([0.0, 0.25, 0.5, 0.75, 1.0]), np.array([1.0, 2.0, 0.5, 0.5, 0.5])),
    ],
    ids=["centres", "left edges", "edges"],
)
def test_bars_fill_the_unit_interval_whichever_way_x_is_given(x: np.ndarray, y: np.ndarray) -> None:
    figure = only(Curve(name="pit_histogram", x=x, y=y))
    (bars,) = layers(figure, Mark.BARS)
    np.testing.assert_allclose(bars.lower, [0, 0.25, 0.5, 0.75])
    np.testing.assert_allclose(bars.upper, [0.25, 0.5, 0.75, 1])
    assert float(np.sum((bars.upper - bars.lower) * bars.y)) == pytest.approx(1.0)


def test_histograms_of_several_models_are_outlines_not_bars_over_bars() -> None:
    figure = only(samples.pit_histogram("a"), samples.pit_histogram("b"))
    assert not layers(figure, Mark.BARS)
    first, second = layers(figure, Mark.STEP)
    assert (first.x[0], first.x[-1]) == (0.0, pytest.approx(1.0))
    assert len(second) == 21


def test_seconds_make_a_time_axis() -> None:
    assert only(samples.rolling()).x.kind == "time"
    curve = Curve(name="rolling_coverage", x=np.arange(3.0), y=np.ones(3), x_label="row number")
    assert only(curve).x.kind == "number"
    assert only(curve).x.title == "Row number"


def test_a_deficit_axis_is_no_percentage() -> None:
    x = np.array([0.0, 1.0])
    curve = Curve(name="characteristic", x=x, y=1 - x, y_label="deficit (units of y)")
    figure = only(curve)
    assert (figure.y.kind, figure.y.domain) == ("number", None)


def test_a_long_tail_is_cut_and_said() -> None:
    x = np.append(np.linspace(0, 1, 110), 50.0)
    curve = Curve(name="characteristic", x=x, y=np.linspace(1, 0, 111), step=True)
    figure = only(curve)
    assert figure.x.domain is not None
    assert figure.x.domain[1] == pytest.approx(1.04, abs=0.02)
    assert figure.notes == ("The last 1% of the decrease, up to 50, is not shown.",)
    (line,) = layers(figure, Mark.STEP)
    assert line.x[-1] == figure.x.domain[1]
    assert line.y[-1] == line.y[-2]
    compact = Curve(name="characteristic", x=x[:-1], y=np.linspace(1, 0, 110))
    assert only(compact).x.domain is None


def test_both_names_of_the_characteristics_curve_are_known() -> None:
    x = np.array([0.0, 1.0])
    question = only(Curve(name="characteristic", x=x, y=1 - x)).question
    assert only(Curve(name="characteristic_curve", x=x, y=1 - x)).question == question


def test_operating_points_are_marked_on_the_curve() -> None:
    curve, constant, marks = samples.characteristic()
    figure = only(curve, constant, marks)
    points = layers(figure, Mark.POINTS)
    names = ["as predicted", "miss rate 0.1", "least interval score at 0.9"]
    assert [layer.labels for layer in points] == [(name,) for name in names]
    assert labels(figure)[1:4] == names
    assert len({(layer.shaped, layer.colour) for layer in points}) == 3
    for place, layer in enumerate(points):
        assert layer.x == marks.columns["bandwidth"][place]
        assert layer.y == marks.columns["miss_rate"][place]
        assert layer.hover["k"] == marks.columns["k"][place]


def test_operating_points_of_several_models_have_their_models_colours() -> None:
    parts = [part for model in "ab" for part in samples.characteristic(model)]
    figure = only(*parts)
    assert labels(figure) == ["a", "b", "miss rate at most 20 %"]
    points = layers(figure, Mark.POINTS)
    assert [layer.colour for layer in points] == [0, 0, 0, 1, 1, 1]
    assert [layer.shaped for layer in points] == [0, 1, 2, 0, 1, 2]
    assert figure.notes[:2] == (
        "Dotted: constant band.",
        "Points, circle: as predicted; square: miss rate 0.1; "
        "triangle: least interval score at 0.9.",
    )


@pytest.mark.parametrize(
    ("names", "told"),
    [
        (["miss rate 0.2", "miss rate 0.7"], ["miss rate 0.2, 0.7"]),
        (["miss rate 0.2", "now", "miss rate"], ["miss rate 0.2", "now", "miss rate"]),
        ([f"kind{letter}" for letter in "abcdefg"], ["operating points"]),
        (["a", "a"], ["a", "a (2)"]),
        (["", ""], ["(empty)", "(empty) (2)"]),
    ],
)
def test_points_of_one_kind_share_a_shape(names: list[str], told: list[str]) -> None:
    curve, _, _ = samples.characteristic()
    place = np.linspace(0.1, 0.9, len(names))
    columns = {"point": np.array(names, dtype=object), "bandwidth": place, "miss_rate": place}
    figure = only(curve, ResultTable(name="characteristic_points", columns=columns))
    assert [layer.series for layer in layers(figure, Mark.POINTS)] == told
    assert sum(len(layer.labels) for layer in layers(figure, Mark.POINTS)) == len(names)


def test_points_without_a_place_are_left_out() -> None:
    curve, _, marks = samples.characteristic()
    marks.columns["bandwidth"][1] = math.nan
    shown = [layer.series for layer in layers(only(curve, marks), Mark.POINTS)]
    assert shown == ["as predicted", "least interval score at 0.9"]
    bare = ResultTable(
        name="characteristic_points", columns={"point": np.array(["a"], dtype=object)}
    )
    assert not layers(only(curve, bare), Mark.POINTS)


def test_low_miss_rates_are_shaded_and_said() -> None:
    figure = only(samples.characteristic()[0])
    (zone,) = layers(figure, Mark.ZONE)
    assert (zone.lower, zone.upper) == MISS_RANGE
    assert "miss rate at most 20 %" in labels(figure)
    x = np.array([0.0, 1.0])
    deficit = Curve(name="characteristic_curve", x=x, y=1 - x, y_label="deficit (units of y)")
    assert not layers(only(deficit), Mark.ZONE)


def test_the_deficit_stands_above_a_line_of_equal_interval_score() -> None:
    _, _, marks = samples.characteristic()
    figure = only(*samples.deficit(), marks)
    assert figure.question == "Would scaling the intervals improve their score?"
    line, constant = (layer for layer in layers(figure, Mark.LINE) if layer.colour == REFERENCE)
    if line.faint:
        line, constant = constant, line
    assert (line.series, constant.series) == ("equal interval score", "constant band")
    (curve,) = (layer for layer in layers(figure, Mark.LINE) if layer.colour == 0)
    gap = curve.y - np.interp(curve.x, line.x, line.y)
    assert gap[curve.x <= line.x[-1]].min() >= -1e-9
    points = layers(figure, Mark.POINTS)
    assert [float(layer.y[0]) for layer in points] == list(marks.columns["deficit"])
    assert any(note.startswith("Along the line the interval score is") for note in figure.notes)


def test_several_models_have_a_line_of_equal_score_each_under_their_names() -> None:
    figure = only(*samples.deficit("net"), *samples.deficit("trees"))
    faint = [layer.series for layer in layers(figure, Mark.LINE) if layer.faint]
    assert faint == ["equal interval score · net", "equal interval score · trees"]
    assert [note.partition(":")[0] for note in figure.notes[:3]] == ["net", "trees", "Dotted"]


def test_numbers_of_the_points_travel_to_the_hover_text() -> None:
    curve, _, _ = samples.characteristic()
    (line,) = layers(only(curve), Mark.LINE)
    inside = np.isin(line.x, curve.x)
    np.testing.assert_allclose(line.hover["k"][inside], line.x[inside] / curve.x[300])
    assert np.isnan(line.hover["k"][~inside]).all()
    assert not inside.all()  # the point at the cut edge is none of the curve's own


def test_a_wild_band_does_not_stretch_the_risk_axis() -> None:
    told, oracle = samples.risk_coverage()
    wild = replace(told, lower=told.y - 50, upper=told.y + 50)
    figure = only(wild, oracle)
    assert figure.y.domain == pytest.approx((0.0, 1.08))


def test_milliseconds_are_drawn_at_the_same_times_as_seconds() -> None:
    seconds = samples.rolling()
    thousandths = replace(seconds, x=seconds.x * 1000, x_label="Time (ms since 1970)")
    (one,), (other,) = (layers(only(curve), Mark.LINE)[1:] for curve in (seconds, thousandths))
    np.testing.assert_allclose(one.x, other.x)
    assert only(thousandths).x.kind == "time"


@pytest.mark.parametrize(
    ("difference", "direction", "favoured"),
    [
        (-1.0, "lower is better", "favours a"),
        (1.0, "lower is better", "favours b"),
        (-1.0, "higher is better", "favours b"),
        (1.0, "higher is better", "favours a"),
        (1.0, "closer to the target is better", DIFFER),
    ],
)
def test_a_difference_favours_the_better_model(
    difference: float, direction: str, favoured: str
) -> None:
    table = ResultTable(
        name="models",
        columns={
            "metric": np.array(["crps"], dtype=object),
            "model_a": np.array(["a"], dtype=object),
            "model_b": np.array(["b"], dtype=object),
            "difference": np.array([difference]),
            "lower": np.array([difference - 0.5]),
            "upper": np.array([difference + 0.5]),
            "direction": np.array([direction], dtype=object),
        },
    )
    assert labels(only(table)) == [favoured, "no difference"]
    assert only(table).x.title == "Difference"


def test_differences_in_several_units_share_an_axis_of_half_widths() -> None:
    table = samples.models()
    figure = only(table)
    width = [
        upper - lower
        for layer in layers(figure, Mark.INTERVALS)
        for lower, upper in zip(layer.lower, layer.upper, strict=True)
    ]
    np.testing.assert_allclose(width, 2.0)
    assert figure.title == "Paired differences: boosted trees − linear"
    undecided = next(x for x in layers(figure, Mark.POINTS) if x.series == "undecided")
    assert undecided.labels == ("MAE",)


def test_a_model_keeps_its_colour_whichever_is_favoured_first() -> None:
    table = samples.models("net", "trees")
    table.columns["difference"][:] *= -1
    table.columns["lower"][:], table.columns["upper"][:] = (
        -table.columns["upper"],
        -table.columns["lower"],
    )
    shown = {layer.series: layer.colour for layer in layers(only(table), Mark.POINTS)}
    assert shown["favours trees"] == 1
    table.columns["difference"][0] *= -1
    table.columns["lower"][0], table.columns["upper"][0] = -0.17, -0.09
    shown = {layer.series: layer.colour for layer in layers(only(table), Mark.POINTS)}
    assert shown["favours net"] == 0


def test_a_difference_without_spread_is_left_out_and_said() -> None:
    table = samples.models()
    for name in ("difference", "lower", "upper"):
        table.columns[name][3] = 0.3
    table.columns["upper"][3] += 1e-15
    figure = only(table)
    assert len(figure.y.categories) == 3
    assert figure.notes[-1] == "Left out, as the same in every row: bias."
    assert figure.x.domain is None


def test_far_differences_are_drawn_at_the_edge_and_said() -> None:
    table = samples.models()
    table.columns["difference"][1], table.columns["lower"][1] = -1900.0, -1900.7
    table.columns["upper"][1] = -1899.3
    figure = only(table)
    assert (figure.x.domain, figure.x.clamp) == ((-20.0, 20.0), True)
    assert figure.notes[-1] == "At the edge, beyond 20 half-widths: interval score."
    values = {
        label: value
        for layer in layers(figure, Mark.POINTS)
        for label, value in zip(layer.labels, layer.hover["In its own units"], strict=True)
    }
    assert values["interval score"] == -1900.0


def test_leaves_above_the_mean_stand_out() -> None:
    _, _, tree = samples.congruence()
    figure = only(tree)
    (rule,) = layers(figure, Mark.RULE)
    assert rule.x[0] == pytest.approx((20 * 0.04 + 60 * 0.012 + 70 * 0.009) / 150)
    (high,) = (layer for layer in layers(figure, Mark.POINTS) if layer.colour == HIGHLIGHT)
    assert high.labels == ("wind > 7.3",)
    assert high.lower[0] == pytest.approx(0.04 - 1.96 * 0.002)
    assert figure.y.categories == tuple(tree.columns["where"])
    tree.columns["cce"][:] = math.nan
    assert figures_of(tables=[tree]) == ()


def test_the_model_is_named_where_there_are_several() -> None:
    alone = figures_of(tables=[*samples.congruence("net"), samples.groups(model="net")])
    assert not any("(net)" in figure.title for figure in alone)
    both = figures_of(tables=[*samples.congruence("net"), *samples.congruence("trees")])
    assert [figure.title.partition("(")[2] for figure in both] == ["net)", "trees)"] * 2
    assert len({figure.question for figure in both}) == 2


def test_other_tables_and_tables_without_the_columns_make_no_figure() -> None:
    bare = {"group": np.array(["a"], dtype=object)}
    assert figures_of(tables=[samples.worst_rows(), ResultTable(name="groups", columns=bare)]) == ()
    assert figures_of(tables=[ResultTable(name="models", columns=bare)]) == ()


def test_what_is_no_curve_is_refused() -> None:
    with pytest.raises(InputError, match="curves must be Curve objects, got int"):
        figures_of([1])
    with pytest.raises(InputError, match="tables must be ResultTable objects, got str"):
        figures_of(tables=["groups"])
    with pytest.raises(InputError, match=r"must make one figure, got 0 \(none\)"):
        plot(samples.worst_rows())
    with pytest.raises(InputError, match="got 2"):
        plot([samples.calibration(), samples.pit_ecdf()])


def test_a_model_keeps_its_colour_where_another_has_no_curve() -> None:
    calibration = [samples.calibration(model, 0.1) for model in "abc"]
    widths = [samples.error_by_width(model) for model in "ac"]
    lone = samples.pit_histogram("c")
    figures = figures_of([*calibration, *widths, lone])
    told = [
        {layer.series: layer.colour for layer in figure.layers if layer.series in "abc"}
        for figure in figures
    ]
    assert told == [{"a": 0, "b": 1, "c": 2}, {"c": 2}, {"a": 0, "c": 2}]


@pytest.mark.parametrize(("count", "bands"), [(1, 1), (3, 3), (4, 0)])
def test_at_most_three_bands_lie_over_each_other(count: int, bands: int) -> None:
    curves = [samples.rolling(f"m{i}") for i in range(count)]
    curves = [replace(c, y=c.y - 0.01 * i, lower=c.y - 0.02 * i) for i, c in enumerate(curves)]
    figure = only(*curves)
    assert len(layers(figure, Mark.BAND)) == bands
    assert ("Bands are shown for at most 3 models." in figure.notes) == (bands == 0)


def test_more_than_two_models_are_compared_by_one_score() -> None:
    pairs = [samples.models(a, b) for a, b in ("ab", "ac", "bc")]
    columns = {
        name: np.concatenate([table.columns[name] for table in pairs]) for name in pairs[0].columns
    }
    columns["coverage"] = np.where(columns["metric"] == "interval_score", 0.9, math.nan)
    figure = only(ResultTable(name="models", columns=columns))
    assert figure.title == "Paired differences in CRPS"
    assert figure.y.categories == ("a − b", "a − c", "b − c")
    assert figure.x.title == "Difference"
    points = np.concatenate([layer.x for layer in layers(figure, Mark.POINTS)])
    np.testing.assert_allclose(points, -0.13)
    rest = columns["metric"] != "crps"
    columns = {name: column[rest] for name, column in columns.items()}
    assert (
        only(ResultTable(name="models", columns=columns)).title
        == "Paired differences in interval score"
    )


def test_notes_of_several_models_say_whose_they_are() -> None:
    curves = [replace(samples.rolling(model), notes=f"change of {model}.") for model in "ab"]
    assert only(*curves).notes[:2] == ("a: Change of a.", "b: Change of b.")
    same = [replace(curve, notes="One thing.") for curve in curves]
    assert only(*same).notes[0] == "One thing."
    assert only(replace(curves[0], notes="A thing.")).notes[0] == "A thing."


def test_diagrams_with_a_diagonal_are_square() -> None:
    curves = [samples.calibration(), samples.calibration(name="interval_calibration")]
    assert [figure.square for figure in figures_of(curves)] == [True, True]
    assert not only(samples.pit_ecdf()).square


def test_no_two_figures_ask_the_same_but_of_models() -> None:
    for content in (samples.content(), samples.several_models()):
        figures = figures_of(content.curves, content.tables)
        asked: dict[str, set[str]] = {}
        for figure in figures:
            asked.setdefault(figure.question, set()).add(figure.name)
            assert all(len(part.split()) <= 25 for part in figure.reading.split(". "))
            assert figure.reading.count(". ") <= 1
        assert all(len(names) == 1 for names in asked.values())
