"""y beside its interval, row by row."""

from __future__ import annotations

import numpy as np
import pytest

from figures.samples import interval_rows as rows
from howsure.core.records import ResultTable
from howsure.figures import Figure, Layer, Mark, figures_of
from howsure.figures.figure import HIGHLIGHT
from howsure.figures.rows import INSIDE, OUTSIDE


def only(*tables: ResultTable) -> Figure:
    """The one figure of these tables."""
    (figure,) = figures_of(tables=tables)
    return figure


def points(figure: Figure) -> dict[str, Layer]:
    """Layers of points by their series."""
    return {layer.series: layer for layer in figure.layers if layer.mark is Mark.POINTS}


def test_rows_are_drawn_about_the_prediction_where_time_is_unknown() -> None:
    figure = only(rows())
    assert figure.y.title == "y − prediction"
    assert figure.x.title == "Rows, from narrow to wide"
    found = points(figure)
    half = np.linspace(1.0, 3.0, 20)
    outside = np.arange(20) % 5 == 0
    np.testing.assert_allclose(found[OUTSIDE].y, 1.5 * half[outside])
    np.testing.assert_allclose(found[INSIDE].y, 0.4 * half[~outside])
    assert found[OUTSIDE].labels == ("r0", "r5", "r10", "r15")
    bars = [layer for layer in figure.layers if layer.mark is Mark.INTERVALS]
    np.testing.assert_allclose(np.sort(np.concatenate([bar.upper for bar in bars])), half)


def test_rows_outside_differ_in_colour_and_in_shape() -> None:
    found = points(only(rows()))
    assert found[OUTSIDE].colour == HIGHLIGHT
    assert found[INSIDE].colour != HIGHLIGHT
    assert found[OUTSIDE].shaped != found[INSIDE].shaped


def test_in_time_the_ends_keep_their_units() -> None:
    when = np.datetime64("2026-01-01") + np.arange(20)
    figure = only(rows(time=when))
    assert (figure.x.kind, figure.y.title) == ("time", "y and its interval")
    found = points(figure)[OUTSIDE]
    np.testing.assert_allclose(found.x, when[::5].astype("datetime64[s]").astype(float))
    np.testing.assert_allclose(found.y, 5000.0 * np.arange(4) + 1.5 * np.linspace(1, 3, 20)[::5])


@pytest.mark.parametrize("time", [np.arange(20) + 0.5, np.array([f"w{i:02}" for i in range(20)])])
def test_time_need_not_be_a_date(time: np.ndarray) -> None:
    figure = only(rows(time=time))
    assert figure.x.kind == "number"
    assert figure.x.labelled == (time.dtype.kind == "f")


def test_models_have_a_figure_each_and_one_range() -> None:
    first, second = figures_of(tables=[rows("a"), rows("b", 4.0)])
    assert [first.title, second.title] == ["90 % intervals and y (a)", "90 % intervals and y (b)"]
    assert first.question == second.question
    assert first.y == second.y


def test_a_single_row_far_out_does_not_hide_the_others() -> None:
    table = rows()
    y = table.columns["y"].copy()
    y[0] += 1e6
    figure = only(rows(y=y))
    assert figure.y.domain is not None
    assert figure.y.domain[1] < 100
    assert points(figure)[OUTSIDE].y.max() == figure.y.domain[1]
    assert any("drawn at its edge" in note for note in figure.notes)


def test_widths_that_are_alike_are_said_to_be() -> None:
    point = np.zeros(20)
    figure = only(rows(point=point, lower=point - 1, upper=point + 1))
    assert figure.x.title == "Rows, all of one width"


def test_unbounded_ends_reach_the_edge() -> None:
    upper = rows().columns["upper"].copy()
    upper[-3:] = np.inf
    figure = only(rows(upper=upper))
    bars = [layer for layer in figure.layers if layer.mark is Mark.INTERVALS]
    assert figure.y.domain is not None
    assert sum((bar.upper == figure.y.domain[1]).sum() for bar in bars) == 3


def test_one_row_and_points_without_spread_have_a_range() -> None:
    one = ResultTable(
        name="intervals",
        columns={name: column[:1] for name, column in rows().columns.items()},
    )
    flat = np.zeros(20)
    for table in (one, rows(y=flat, point=flat, lower=flat, upper=flat)):
        low, high = only(table).y.domain or (0.0, 0.0)
        assert high > low


def test_a_table_without_its_columns_makes_no_figure() -> None:
    assert figures_of(tables=[ResultTable(name="intervals", columns={"y": np.arange(3.0)})]) == ()
