"""Critical-difference diagrams, and both libraries that draw them."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import pytest

from extras import needs
from howsure.core.errors import InputError
from howsure.core.records import ResultTable
from howsure.figures import Figure, Layer, Mark, plot, to_vega
from howsure.figures.telling import describe_figure
from howsure_studies.engine.critical_difference import CRITICAL, LEADERS, TIED, rank_figure
from howsure_studies.engine.ranks import RankComparison, compare_ranks


def comparison(method: str = "nemenyi", methods: int = 5) -> RankComparison:
    rng = np.random.default_rng(0)
    shift = np.resize([0.0, 0.2, 1.2, 1.5, 3.0], methods)
    scores = rng.normal(size=(30, methods)) + shift
    return compare_ranks(scores, [f"{name}ethod" for name in "CABEDFGH"[:methods]], method=method)


def of(figure: Figure, series: str, mark: Mark) -> list[Layer]:
    return [layer for layer in figure.layers if layer.series == series and layer.mark is mark]


def segments(figure: Figure) -> tuple[list[tuple[float, ...]], list[tuple[float, ...]]]:
    """Leader lines: upright ones as (x, lower, upper), level ones as (y, left, right)."""
    upright, level = [], []
    for layer in of(figure, LEADERS, Mark.INTERVALS):
        held = upright if len(layer.x) else level
        places = layer.x if len(layer.x) else layer.y
        held += zip(places.tolist(), layer.lower.tolist(), layer.upper.tolist(), strict=True)
    return upright, level


def table_of(ranks: list[float], **columns: list[bool]) -> ResultTable:
    names = np.array([f"method {place}" for place in range(len(ranks))], dtype=object)
    cliques = {name: np.array(inside) for name, inside in columns.items()}
    return ResultTable(
        name="ranks", columns={"method": names, "mean_rank": np.array(ranks), **cliques}
    )


def test_methods_stand_at_their_mean_ranks_from_best_to_worst() -> None:
    found = comparison()
    figure = rank_figure(found.table())
    (points,) = of(figure, "mean rank", Mark.POINTS)
    order = np.argsort(found.mean_ranks)
    np.testing.assert_array_equal(points.x, found.mean_ranks[order])
    np.testing.assert_array_equal(points.y, 0.0)
    assert points.labels == tuple(found.names[i] for i in order)
    np.testing.assert_array_equal(points.hover["Shared rank"], found.shared_ranks[order])


@pytest.mark.parametrize("methods", [3, 5, 8])
def test_a_leader_line_joins_each_rank_with_the_methods_name_and_crosses_no_other(
    methods: int,
) -> None:
    found = comparison(methods=methods)
    figure = rank_figure(found.table())
    upright, level = segments(figure)
    named = of(figure, "names", Mark.TEXT)
    assert sum(len(layer) for layer in named) == len(upright) == len(level) == methods
    ranks = dict(zip(found.names, found.mean_ranks.tolist(), strict=True))
    middle = (1 + methods) / 2
    for layer in named:
        for name, x, y in zip(layer.labels, layer.x, layer.y, strict=True):
            (line,) = [one for one in level if one[0] == y and ranks[name] in one[1:]]
            assert x == (line[1] if layer.anchor == "end" else line[2])
            assert (ranks[name], y, 0.0) in upright
            assert (x < middle) == (layer.anchor == "end")
    for x, low, high in upright:
        for y, left, right in level:
            assert not (low < y < high and left < x < right)
    for one, two in combinations([layer.y for layer in named], 2):
        assert len(set(one)) == len(one)
        assert len(set(two)) == len(two)


def test_thick_bars_are_the_cliques_of_the_table_and_nothing_else() -> None:
    for method in ("nemenyi", "wilcoxon-holm"):
        found = comparison(method)
        figure = rank_figure(found.table())
        bars = of(figure, TIED, Mark.INTERVALS)
        drawn = sorted((float(bar.lower[0]), float(bar.upper[0])) for bar in bars)
        ranks = [found.mean_ranks[list(clique)] for clique in found.cliques]
        assert drawn == sorted((part.min(), part.max()) for part in ranks)
        deepest = max(low for _, low, _ in segments(figure)[0])
        assert all(deepest < bar.y[0] < 0 for bar in bars)
        others = [layer for layer in figure.layers if layer not in bars]
        assert all(layer.size <= 1.0 for layer in others if layer.mark is Mark.INTERVALS)


def test_bars_that_overlap_stand_on_rows_of_their_own() -> None:
    table = table_of(
        [1.0, 2.0, 3.0, 4.0],
        clique_1=[True, True, False, False],
        clique_2=[False, True, True, False],
        clique_3=[False, False, True, True],
    )
    first, second, third = of(rank_figure(table), TIED, Mark.INTERVALS)
    assert first.y[0] != second.y[0] != third.y[0]


def test_a_bar_that_passes_over_a_method_shows_its_members() -> None:
    table = table_of([1.0, 2.0, 3.0], clique_1=[True, False, True])
    figure = rank_figure(table)
    (members,) = of(figure, TIED, Mark.POINTS)
    assert members.x.tolist() == [1.0, 3.0]
    assert "dots" in figure.reading
    whole = rank_figure(table_of([1.0, 2.0, 3.0], clique_1=[True, True, False]))
    assert not of(whole, TIED, Mark.POINTS)
    assert "dots" not in whole.reading


def test_notes_name_the_cliques_for_those_who_do_not_see_the_bars() -> None:
    figure = rank_figure(table_of([1.0, 2.0, 3.0], clique_1=[True, True, False]))
    assert figure.notes[-1] == "Not significantly different: method 0, method 1."
    assert "Every pair" in rank_figure(table_of([1.0, 2.0])).notes[-1]


def test_the_critical_difference_is_a_bar_above_the_axis_where_the_test_has_one() -> None:
    found = comparison()
    (bar,) = of(rank_figure(found.table()), CRITICAL, Mark.INTERVALS)
    assert bar.y[0] > 0
    assert bar.lower[0] == 1.0
    assert bar.upper[0] - bar.lower[0] == pytest.approx(found.critical_difference)
    assert not of(rank_figure(comparison("wilcoxon-holm").table()), CRITICAL, Mark.INTERVALS)


def test_the_axis_runs_from_the_best_rank_on_the_left() -> None:
    figure = rank_figure(comparison().table())
    (line,) = [one for one in of(figure, "axis", Mark.INTERVALS) if not len(one.x)]
    assert (line.lower[0], line.upper[0], line.y[0]) == (1.0, 5.0, 0.0)
    numbers = [layer for layer in of(figure, "axis", Mark.TEXT) if layer.labels[0] == "1"]
    assert [layer.labels for layer in numbers] == [("1", "2", "3", "4", "5")]
    assert numbers[0].x.tolist() == [1.0, 2.0, 3.0, 4.0, 5.0]
    assert "left" in figure.x.title


def test_many_methods_have_an_axis_that_can_be_read() -> None:
    figure = rank_figure(table_of(np.linspace(1.0, 40.0, 40).tolist()))
    numbers = [layer for layer in of(figure, "axis", Mark.TEXT) if layer.labels[0] == "1"]
    assert len(numbers[0].labels) <= 9
    assert len(rank_figure(table_of([1.0])).layers) > 0


def test_long_names_take_two_lines_and_end_in_an_ellipsis() -> None:
    names = np.array(["Gaussian Ensemble + GMM", "x" * 300, "short"], dtype=object)
    table = ResultTable(name="ranks", columns={"method": names, "mean_rank": np.arange(1.0, 4.0)})
    figure = rank_figure(table)
    drawn = [name for layer in of(figure, "names", Mark.TEXT) for name in layer.labels]
    assert drawn[0] == "Gaussian\nEnsemble + GMM"
    assert drawn[1] == "x" * 19 + "…"
    (points,) = of(figure, "mean rank", Mark.POINTS)
    assert points.labels[0] == names[0]


@pytest.fixture(params=["nemenyi", "wilcoxon-holm"])
def figure(request: pytest.FixtureRequest) -> Figure:
    return rank_figure(comparison(request.param).table())


def test_vega_draws_every_name_and_bar(figure: Figure) -> None:
    vl_convert = needs("vl_convert")
    needs("altair").Chart.from_dict(to_vega(figure))
    drawn = vl_convert.vegalite_to_svg(to_vega(figure, width=500))
    for layer in figure.layers:
        for name in layer.labels if layer.mark is Mark.TEXT else ():
            assert f">{name}</text>" in drawn


def test_matplotlib_draws_every_name(figure: Figure) -> None:
    pyplot = needs("matplotlib.pyplot")
    axes = plot(figure)
    axes.figure.canvas.draw()
    drawn = [text.get_text() for text in axes.texts]
    assert all(name in drawn for name in ("Cethod", "Dethod"))
    pyplot.close("all")


@pytest.mark.parametrize(
    ("columns", "match"),
    [
        ({}, "got no column"),
        ({"method": np.array(["a"], dtype=object)}, "got method"),
        ({"method": np.zeros(0), "mean_rank": np.zeros(0)}, "must have methods"),
        ({"method": np.array(["a"]), "mean_rank": np.array([math.nan])}, "finite"),
    ],
)
def test_a_table_without_ranks_is_refused(columns: dict[str, np.ndarray], match: str) -> None:
    with pytest.raises(InputError, match=match):
        rank_figure(ResultTable(name="ranks", columns=columns))


def test_ranks_are_told_from_the_best_on() -> None:
    columns = {
        "method": np.array(["b", "a"], dtype=object),
        "mean_rank": np.array([1.8, 1.2]),
        "clique_1": np.array([True, True]),
    }
    figure = rank_figure(ResultTable(name="ranks", columns=columns))
    assert describe_figure(figure) == "Mean ranks: a 1.2, b 1.8. Not significantly different: a, b."
