"""Coverage of all rows and of groups, models side by side."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from figures import samples
from howsure.core.records import Curve, ResultTable
from howsure.figures import Figure, Layer, Mark, figures_of, to_vega
from howsure.figures.figure import HIGHLIGHT, REFERENCE
from howsure.figures.groups import MAX_GROUPS
from howsure.figures.palette import SERIES_LIMIT


def only(*tables: ResultTable) -> Figure:
    """The one figure of these tables."""
    (figure,) = figures_of(tables=tables)
    return figure


def points(figure: Figure) -> list[Layer]:
    """Layers of points of what was seen."""
    found = [layer for layer in figure.layers if layer.mark is Mark.POINTS]
    return [layer for layer in found if layer.colour != REFERENCE]


def test_groups_below_the_nominal_coverage_stand_out() -> None:
    table = samples.groups()
    figure = only(table)
    shown = [layer for layer in points(figure) if layer.colour == HIGHLIGHT]
    assert [layer.labels for layer in shown] == [("North",)]
    assert (table.columns["upper"] < table.columns["nominal"]).sum() == 1
    assert figure.title == "Coverage by region"
    places = np.argsort(table.columns["empirical_coverage"])
    told = [str(name).removeprefix("region=") for name in table.columns["group"][places]]
    assert list(figure.y.categories) == told


def test_intervals_and_points_lie_where_the_table_says() -> None:
    table = samples.groups()
    figure = only(table)
    for layer in points(figure):
        for place, label in enumerate(layer.labels):
            row = list(table.columns["group"]).index(f"region={label}")
            assert layer.x[place] == table.columns["empirical_coverage"][row]
            assert layer.lower[place] == table.columns["lower"][row]
            assert layer.upper[place] == table.columns["upper"][row]
            assert layer.hover["Rows"][place] == table.columns["n"][row]
            assert figure.y.categories[int(layer.y[place])] == label


def test_all_rows_come_first() -> None:
    figure = only(samples.groups(), samples.coverage())
    assert figure.y.categories[0] == "All rows"
    assert figure.title == "Coverage overall and by region"
    whole = next(layer for layer in points(figure) if "All rows" in layer.labels)
    assert whole.x[0] == pytest.approx(0.85)
    assert whole.colour == HIGHLIGHT


def test_beside_groups_only_their_coverage_is_told() -> None:
    figure = only(samples.groups(2), samples.coverage(levels=(0.5, 0.9)))
    assert figure.y.categories == ("All rows", "North", "South")
    assert [layer.x.tolist() for layer in figure.layers if layer.mark is Mark.RULE] == [[0.9]]


def test_without_groups_each_coverage_is_a_row_with_its_claim() -> None:
    figure = only(samples.coverage(levels=(0.5, 0.9)))
    assert figure.y.categories == ("All rows, 50 %", "All rows, 90 %")
    assert figure.question == "Is coverage as stated over all rows?"
    assert not [layer for layer in figure.layers if layer.mark is Mark.RULE]
    (claims,) = (layer for layer in figure.layers if layer.colour == REFERENCE)
    assert claims.x.tolist() == [0.5, 0.9]
    assert only(samples.coverage()).y.categories == ("All rows",)


def test_a_calibration_curve_takes_the_place_of_coverage_without_groups() -> None:
    curve = samples.calibration(name="interval_calibration")
    assert [f.name for f in figures_of([curve], [samples.coverage()])] == ["interval_calibration"]
    both = figures_of([curve], [samples.coverage(), samples.groups()])
    assert [figure.name for figure in both] == ["interval_calibration", "groups"]
    assert both[1].y.categories[0] == "All rows"


def test_groups_are_judged_by_what_their_rows_claim() -> None:
    table = samples.groups(3, names=["a", "b", "c"])
    cover = np.array([0.93, 0.93, 0.93])
    claimed = np.array([0.9, 0.93, 0.97])
    columns = {"empirical_coverage": cover, "lower": cover - 0.01, "upper": cover + 0.01}
    figure = only(replace(table, columns={**table.columns, **columns, "claimed": claimed}))
    seen = {layer.series: layer.labels for layer in points(figure)}
    told = {"over-covers": ("a",), "consistent with its claim": ("b",), "under-covers": ("c",)}
    assert seen == told
    (claims,) = (
        layer for layer in figure.layers if layer.mark is Mark.POINTS and layer.colour == REFERENCE
    )
    assert dict(zip(claims.labels, claims.x, strict=True)) == {"b": 0.93, "c": 0.97}


def test_models_share_the_axis_below_one_another() -> None:
    figure = only(
        samples.groups(3, "a"), samples.coverage("a"), samples.groups(3, "b"), samples.coverage("b")
    )
    assert figure.y.categories[0] == "All rows"
    assert len(figure.y.categories) == 4
    offsets: dict[str, set[float]] = {}
    for layer in points(figure):
        offsets.setdefault(layer.series, set()).add(layer.offset)
    assert offsets == {"a": {-0.15}, "b": {0.15}}
    assert {layer.series: layer.colour for layer in points(figure)} == {"a": 0, "b": 1}
    assert any("Triangles" in note for note in figure.notes)


def test_a_group_that_one_model_lacks_is_no_mark_of_it() -> None:
    figure = only(samples.groups(2, "a"), samples.groups(3, "b"))
    shown = {
        name: sorted(
            label for layer in points(figure) if layer.series == name for label in layer.labels
        )
        for name in "ab"
    }
    assert shown == {"a": ["North", "South"], "b": ["East", "North", "South"]}


def test_models_have_the_colours_that_they_have_in_curves() -> None:
    curves = [samples.calibration("a"), samples.calibration("b")]
    figures = figures_of(curves, [samples.groups(3, "b"), samples.groups(3, "a")])
    colours = [
        {layer.series: layer.colour for layer in figure.layers if layer.series in "ab"}
        for figure in figures
    ]
    assert colours[0] == colours[1] == {"a": 0, "b": 1}


def test_thousands_of_groups_show_the_worst_and_say_so() -> None:
    table = samples.groups(10_000)
    figure = only(table)
    assert len(figure.y.categories) == MAX_GROUPS
    assert f"Shown: the worst {MAX_GROUPS} of 10,000 groups." in figure.notes
    worst = np.argsort(table.columns["upper"], kind="stable")[:MAX_GROUPS]
    told = {str(g).removeprefix("region=") for g in table.columns["group"][worst]}
    assert set(figure.y.categories) == told


def test_a_hundred_models_are_cut_and_counted() -> None:
    tables = [samples.groups(30, f"m{i}") for i in range(100)]
    figure = only(*tables)
    assert len({layer.series for layer in points(figure)}) == SERIES_LIMIT
    assert f"Shown: the first {SERIES_LIMIT} of 100 models." in figure.notes
    assert to_vega(figure)["height"] < 900


def test_groups_of_two_columns_are_headed_by_them() -> None:
    table = samples.groups(3)
    table.columns["grouping"][1:] = ["hour", "region × hour"]
    table.columns["group"][:] = ["region=a=b", "hour=3", "region=a, hour=3"]
    told = {"region: a=b", "hour: 3", "region: a, hour: 3"}
    figure = only(table)
    assert set(figure.y.categories) == told
    assert figure.title == "Coverage by group"


def test_groups_without_a_nominal_coverage_are_drawn_without_a_verdict() -> None:
    table = samples.groups()
    table.columns["nominal"][:] = math.nan
    figure = only(
        table,
        replace(
            samples.coverage(),
            columns={
                **samples.coverage().columns,
                "nominal": np.array([math.nan]),
                "claimed": np.array([math.nan]),
            },
        ),
    )
    assert not [layer for layer in figure.layers if layer.colour == REFERENCE]
    assert [item.label for item in figure.legend()] == ["empirical coverage"]
    assert figure.y.categories[0] == "All rows"


def test_long_names_that_look_alike_stay_apart() -> None:
    figure = only(samples.groups(3, names=["a" * 200 + "b", "a" * 200 + "c", ""]))
    assert len(set(figure.y.categories)) == 3


def test_models_of_a_single_curve_are_dodged_where_vega_draws_them() -> None:
    spec = to_vega(only(samples.groups(3, "a"), samples.groups(3, "b")))
    height = spec["height"] / 3
    rows = [row for row in spec["datasets"]["hovered"] if "dodge" in row]
    assert sorted({row["dodge"] for row in rows}) == pytest.approx([height * 0.35, height * 0.65])


def test_a_table_without_rows_makes_no_figure() -> None:
    empty = {name: column[:0] for name, column in samples.groups().columns.items()}
    assert figures_of(tables=[ResultTable(name="groups", columns=empty)]) == ()
    curve = Curve(name="other", x=np.arange(2.0), y=np.arange(2.0))
    assert [f.name for f in figures_of([curve], [ResultTable(name="coverage", columns={})])] == [
        "other"
    ]
