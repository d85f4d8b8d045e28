"""Maps of rows, and their scale of colours."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from figures import samples
from generated import examples
from howsure.core.records import ResultTable
from howsure.figures import Figure, Layer, figures_of
from howsure.figures.rows import MAX_POINTS_OF_MAP, class_edges


def maps(*tables: ResultTable) -> list[tuple[Figure, Layer]]:
    """Figures of maps, with the only layer of each."""
    found = []
    for figure in figures_of(tables=tables):
        (layer,) = figure.layers
        found.append((figure, layer))
    return found


def test_every_row_is_a_point_where_the_table_says() -> None:
    table, _, _ = samples.congruence()
    ((figure, layer),) = maps(table)
    assert figure.question == "Where is the model wrong?"
    assert (figure.x.title, figure.y.title) == ("First principal coordinate", "Second")
    assert len(layer) == len(table)
    for place, label in enumerate(layer.labels):
        row = list(table.columns["row"]).index(label)
        shown = (layer.x[place], layer.y[place], layer.shade[place])
        assert shown == tuple(table.columns[name][row] for name in ("first", "second", "cce"))
        told = (layer.hover["CCE of a perfect model"][place], layer.hover["p-value"][place])
        assert told == (table.columns["perfect"][row], table.columns["p_value"][row])
    assert (np.diff(layer.shade) >= 0).all()  # the worst lie on top


def test_a_large_map_is_thinned_from_end_to_end_and_says_so() -> None:
    table, _, _ = samples.congruence(count=9_001)
    ((figure, layer),) = maps(table)
    assert len(layer) == MAX_POINTS_OF_MAP
    assert figure.notes[-1] == "Shown: 300 of 9,001 rows, from the lowest to the highest CCE."
    cce = table.columns["cce"]
    assert (layer.shade[0], layer.shade[-1]) == (cce.min(), cce.max())
    levels = np.linspace(0.0, 1.0, 21)
    np.testing.assert_allclose(
        np.quantile(layer.shade, levels), np.quantile(cce, levels), atol=1e-4
    )


def test_maps_of_several_models_share_their_colours_and_the_points_allowed() -> None:
    tables = [samples.congruence(model, 3_000)[0] for model in "abcd"]
    tables[2].columns["cce"][:] *= 3
    found = maps(*tables)
    assert len({figure.shades for figure, _ in found}) == 1
    assert [len(layer) for _, layer in found] == [MAX_POINTS_OF_MAP] * 4
    shades = found[0][0].shades
    assert shades is not None
    assert shades.edges[-1] >= max(layer.shade.max() for _, layer in found)


def test_rows_without_a_place_or_a_colour_are_left_out() -> None:
    table, _, _ = samples.congruence(count=5)
    table.columns["first"][0], table.columns["cce"][1:3] = math.nan, (math.inf, 1e200)
    ((_, layer),) = maps(table)
    assert sorted(layer.labels) == ["r3", "r4"]
    table.columns["second"][:] = math.nan
    assert maps(table) == []
    words = np.array(["a"], dtype=object)
    assert maps(ResultTable(name="cce_map", columns={"first": words, "cce": np.ones(1)})) == []


def test_a_map_without_names_and_references_is_drawn_all_the_same() -> None:
    columns = {name: np.arange(3.0) for name in ("first", "second", "cce")}
    ((figure, layer),) = maps(ResultTable(name="cce_map", columns=columns))
    assert layer.labels == ()
    assert list(layer.hover) == ["CCE"]
    assert figure.notes == ()


finite = st.floats(-1e6, 1e6).filter(lambda value: value == 0 or abs(value) > 1e-6)


@examples(300)
@given(finite, finite)
def test_classes_hold_the_range_and_are_few_and_round(one: float, other: float) -> None:
    low, high = sorted((one, other))
    edges = np.array(class_edges(low, high))
    assert 3 <= len(edges) <= 8 + 1
    slack = 1e-9 * max(abs(low), abs(high))
    assert edges[0] <= low + slack
    assert edges[-1] >= high - slack
    steps = np.diff(edges)
    assert steps.min() > 0
    np.testing.assert_allclose(steps, steps[0], rtol=1e-5)


@pytest.mark.parametrize(
    ("low", "high", "edges"),
    [
        (0.0, 0.0, (0.0, 0.1, 0.2)),
        (0.0, 5e-324, (0.0, 0.1, 0.2)),
        (0.5, 0.5, (0.49999, 0.5, 0.50001)),
        (0.0, 1.0, (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)),
        (0.013, 0.11, (0.0, 0.02, 0.04, 0.06, 0.08, 0.1, 0.12)),
    ],
)
def test_classes_of_known_ranges(low: float, high: float, edges: tuple[float, ...]) -> None:
    assert class_edges(low, high) == edges
