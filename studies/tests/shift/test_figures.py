"""Figures of methods under shift hold the numbers that they were given, and all draw them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from extras import needs
from howsure.core.errors import InputError
from howsure.core.records import Curve, Direction, Record, ResultTable
from howsure.figures import Figure, Layer, Mark, plot, to_vega
from howsure_studies.shift import (
    change_figure,
    degree_figure,
    measure_figure,
    rank_scatter,
    trade_figure,
    two_ranks,
)
from howsure_studies.shift.figures import CHANCE, short_names

needs("matplotlib")

CP, GMM, LOST = "Conformal Prediction", "Gaussian + Selective GMM", "lost"


def record(
    model: str, value: float, metric: str = "test_empirical_coverage", **more: Any
) -> Record:
    return Record(
        metric=metric,
        value=value,
        lower=value - 0.1,
        upper=value + 0.05,
        model=model,
        direction=Direction.TARGET if metric == "test_empirical_coverage" else Direction.LOWER,
        target=0.9 if metric == "test_empirical_coverage" else np.nan,
        **more,
    )


def table(name: str = "averages", **columns: list[Any]) -> ResultTable:
    made = {k: np.array(v, dtype=object if k in TEXTS else float) for k, v in columns.items()}
    return ResultTable(name=name, columns=made, notes="Some notes.")


TEXTS = ("method", "task", "test")
AVERAGES: dict[str, list[Any]] = {
    "method": [CP, GMM, LOST],
    "coverage_error": [0.3, 0.01, np.nan],
    "standard_error": [0.02, 0.01, np.nan],
    "null": [0.02, 0.04, np.nan],
}
CHANGES: dict[str, list[Any]] = {
    "task": ["cells", "cells-tails", "cells-tails", "cells-tails"],
    "test": ["full", "full", "step-1", "step-2"],
    "relative_mae_change": [0.01, 2.0, 0.5, np.nan],
    "coverage_error": [0.0, 0.35, 0.1, 0.2],
}


def curve(model: str, start: float, *, rate: bool = False) -> Curve:
    x = np.arange(start, 5.0)
    return Curve(
        name="degree_of_shift",
        x=x,
        y=0.9 - 0.1 * x,
        lower=0.85 - 0.1 * x,
        upper=0.95 - 0.1 * x,
        reference=None if rate else np.full(len(x), 0.9),
        x_label="degree of shift",
        y_label="prediction rate" if rate else "coverage",
        model=model,
        group="task=cells-tails",
    )


def figures() -> list[Figure]:
    return [
        measure_figure([record(CP, 0.55), record(GMM, 0.89)]),
        measure_figure([record(CP, 3.0, "test_width", units="nuclei")]),
        trade_figure(table(**AVERAGES, prediction_rate=[1.0, 0.5, 0.5])),
        rank_scatter(table(**AVERAGES, mean_rank=[1.5, 2.5, 2.0]), "val_mae"),
        rank_scatter(table(**AVERAGES, mean_rank=[1.5, 2.5, 2.0])),
        two_ranks(table(**AVERAGES, rank_val_mae=[1, 2, 3], rank_val_width=[2, 1, 3])),
        degree_figure([curve(CP, 1.0), curve(GMM, 0.0)]),
        degree_figure([curve(GMM, 0.0, rate=True)]),
        change_figure(table(**CHANGES)),
    ]


@pytest.mark.parametrize("figure", figures(), ids=lambda f: f.name)
def test_every_renderer_draws_them(figure: Figure) -> None:
    from matplotlib import pyplot

    assert to_vega(figure)
    assert plot(figure).get_xlabel() == figure.x.title
    assert figure.question.endswith(("?", ")"))
    pyplot.close("all")


def by(figure: Figure, mark: Mark, series: str | None = None) -> list[Layer]:
    return [one for one in figure.layers if one.mark is mark and series in (None, one.series)]


def test_a_measure_has_its_intervals_and_its_level() -> None:
    figure = measure_figure([record(CP, 0.55), record(GMM, 0.89), record(LOST, np.nan)])
    (ends,) = by(figure, Mark.INTERVALS)
    assert (ends.y.tolist(), ends.lower.tolist()) == ([0, 1], [0.55 - 0.1, 0.89 - 0.1])
    assert by(figure, Mark.RULE)[0].x.tolist() == [0.9]
    (points,) = by(figure, Mark.POINTS)
    assert points.x.tolist() == [0.55, 0.89]
    assert figure.y.categories == (CP, "Gaussian + GMM", LOST)
    assert figure.x.kind == "percent"
    width = measure_figure([record(CP, 3.0, "test_width", units="nuclei")])
    assert (width.x.title, width.x.kind) == ("Mean width (nuclei)", "number")
    assert not by(width, Mark.RULE)


def test_names_stay_different() -> None:
    assert short_names(["a + Selective b", "a + b"]) == ("a + b", "a + b (2)")


def test_points_of_methods_keep_their_colours() -> None:
    given = table(**AVERAGES, prediction_rate=[1.0, 0.5, 0.5])
    figure = trade_figure(given, {CP: 4, GMM: 1})
    points = by(figure, Mark.POINTS)
    assert [(p.series, p.colour, p.x[0], p.y[0]) for p in points] == [
        (CP, 4, 1.0, 0.3),
        (GMM, 1, 0.5, 0.01),
    ]
    low, high = by(figure, Mark.INTERVALS)[1].lower, by(figure, Mark.INTERVALS)[1].upper
    assert low[0] == 0.0  # never below
    assert high[0] == pytest.approx(0.01 + 1.959964 * 0.01)
    (rule,) = by(figure, Mark.RULE, CHANCE)
    assert rule.y[0] == pytest.approx(0.03)


def test_ranks_stand_against_ranks() -> None:
    given = table(**AVERAGES, rank_val_mae=[1.0, 3.0, np.nan], rank_val_width=[2.0, 1.5, 3.0])
    figure = two_ranks(given)
    assert [(p.series, p.x[0], p.y[0]) for p in by(figure, Mark.POINTS)] == [
        (CP, 1.0, 2.0),
        (GMM, 3.0, 1.5),
    ]
    assert not by(figure, Mark.INTERVALS)  # the errors are those of coverage, not of ranks


def test_degrees_begin_where_the_curve_does() -> None:
    figure = degree_figure([curve(CP, 1.0), curve(GMM, 0.0)], {CP: 0, GMM: 5})
    assert by(figure, Mark.LINE, CP)[0].x.tolist() == [1, 2, 3, 4]
    assert by(figure, Mark.LINE, "nominal")[0].x.tolist() == [0, 1, 2, 3, 4]
    assert by(figure, Mark.POINTS, GMM)[0].colour == 5
    assert "cells-tails" in figure.question
    assert not by(degree_figure([curve(GMM, 0.0, rate=True)]), Mark.LINE, "nominal")


def test_changes_are_a_colour_a_task() -> None:
    cells, tails = change_figure(table(**CHANGES)).layers
    assert (cells.series, cells.x.tolist(), cells.y.tolist()) == ("cells", [0.01], [0.0])
    assert (tails.labels, tails.x.tolist()) == (("full", "step-1"), [2.0, 0.5])


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: measure_figure([]), "one measure, got none"),
        (lambda: measure_figure([record(CP, 1.0), record(CP, 1.0, "test_mae")]), "test_mae"),
        (lambda: trade_figure(table(**AVERAGES)), "prediction_rate"),
        (lambda: trade_figure(table(**AVERAGES, prediction_rate=[np.nan] * 3)), "got none"),
        (lambda: rank_scatter(table(**AVERAGES, mean_rank=[1, 2, 3]), "mae"), "'val_width'"),
        (lambda: two_ranks(table(**AVERAGES)), "rank_val_mae"),
        (lambda: degree_figure([]), "at least one"),
        (lambda: change_figure(table(**AVERAGES)), "task"),
    ],
)
def test_bad_input_is_named(call: Any, words: str) -> None:
    with pytest.raises(InputError, match=words):
        call()
