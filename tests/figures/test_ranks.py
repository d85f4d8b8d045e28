"""Critical-difference plots, and both libraries that draw them."""

from __future__ import annotations

import math

import numpy as np
import pytest

from extras import needs
from howsure.core.errors import InputError
from howsure.core.records import Table
from howsure.figures import Figure, Mark, plot, rank_figure, to_vega
from howsure.stats.ranks import RankComparison, compare_ranks


def comparison(method: str = "nemenyi") -> RankComparison:
    rng = np.random.default_rng(0)
    scores = rng.normal(size=(30, 5)) + np.array([0.0, 0.2, 1.2, 1.5, 3.0])
    return compare_ranks(scores, ["C", "A", "B", "E", "D"], method=method)


def test_methods_stand_at_their_mean_ranks_from_best_to_worst() -> None:
    found = comparison()
    figure = rank_figure(found.table())
    points = figure.layers[0]
    order = np.argsort(found.mean_ranks)
    np.testing.assert_array_equal(points.x, found.mean_ranks[order])
    assert figure.y.categories[:5] == tuple(found.names[i] for i in order)
    np.testing.assert_array_equal(points.hover["Shared rank"], found.shared_ranks[order])


def test_each_clique_is_a_bar_with_its_members() -> None:
    found = comparison()
    figure = rank_figure(found.table())
    bars = [layer for layer in figure.layers if layer.mark is Mark.INTERVALS]
    assert len(bars) == len(found.cliques) + 1
    for number, clique in enumerate(found.cliques):
        ranks = found.mean_ranks[list(clique)]
        assert (bars[number].lower[0], bars[number].upper[0]) == (ranks.min(), ranks.max())
        place = int(bars[number].y[0])
        for member in clique:
            assert found.names[member] in figure.y.categories[place]
    assert bars[-1].upper[0] - bars[-1].lower[0] == pytest.approx(found.critical_difference)


def test_a_test_without_a_critical_difference_shows_none() -> None:
    figure = rank_figure(comparison("wilcoxon-holm").table())
    assert not any("critical" in name for name in figure.y.categories)
    assert figure.x.domain is not None
    assert all(np.isfinite(figure.x.domain))


@pytest.fixture(params=["nemenyi", "wilcoxon-holm"])
def figure(request: pytest.FixtureRequest) -> Figure:
    return rank_figure(comparison(request.param).table())


def test_vega_draws_it(figure: Figure) -> None:
    altair = needs("altair")
    altair.Chart.from_dict(to_vega(figure))


def test_matplotlib_draws_it(figure: Figure) -> None:
    pyplot = needs("matplotlib.pyplot")
    axes = plot(figure)
    axes.figure.canvas.draw()
    assert [label.get_text() for label in axes.get_yticklabels()] == list(figure.y.categories)
    pyplot.close("all")


@pytest.mark.parametrize(
    ("columns", "match"),
    [
        ({}, "got no column"),
        ({"method": np.array(["a"], dtype=object)}, "got method"),
        ({"method": np.zeros(0), "mean_rank": np.zeros(0)}, "must hold methods"),
        ({"method": np.array(["a"]), "mean_rank": np.array([math.nan])}, "finite"),
    ],
)
def test_a_table_without_ranks_is_refused(columns: dict[str, np.ndarray], match: str) -> None:
    with pytest.raises(InputError, match=match):
        rank_figure(Table(name="ranks", columns=columns))
