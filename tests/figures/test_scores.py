"""Parts of a score as bars, skill of groups as intervals, reliability and Murphy diagrams."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

import howsure
from howsure.core.errors import HowsureError, InputError, strict
from howsure.core.labels import Categories
from howsure.core.records import Curve, ResultTable
from howsure.core.rng import child
from howsure.engine.measure import curves_of, evaluate, tables_of
from howsure.figures import Figure, figures_of, plot, to_vega
from howsure.figures.figure import Layer, Mark
from howsure.predictions import EvalSet
from howsure.topics.decomposition.parts import elementary_means, elementary_quantiles

N = 900


def model(name: str, sd: float = 1.0, knows: float = 1.0, **more: object) -> EvalSet:
    """y = x + z in three groups of 500, 370 and 30 rows, the last too few for 31."""
    rng = child(0, "skill figures")
    x, y = rng.normal(size=N), rng.normal(size=N)
    y += x
    group = np.repeat(["large", "small", "tiny"], [500, 371, 29])
    spread = np.hypot(sd, 0.0 if knows else 1.0)
    law = howsure.Distribution.normal(knows * x, np.full(N, spread))
    return EvalSet.checked(y, law, groups={"size": group}, model=name, **more)


def drawn(*models: EvalSet, slow: tuple[str, ...] = ()) -> dict[str, Figure]:
    curves: list[Curve] = []
    tables: list[ResultTable] = []
    for each in models:
        found = evaluate(each, metrics=["crps_skill"], slow=slow)
        curves += curves_of(found)
        tables += tables_of(found)
    return {figure.name: figure for figure in figures_of(curves, tables)}


def layer(figure: Figure, series: str) -> Layer:
    return next(each for each in figure.layers if each.series.startswith(series))


@pytest.fixture(scope="module")
def one() -> dict[str, Figure]:
    return drawn(model("narrow", sd=0.3), slow=("miscalibration",))


@pytest.fixture(scope="module")
def two() -> dict[str, Figure]:
    return drawn(model("narrow", sd=0.3), model("blind", knows=0.0))


def test_bars_end_at_the_parts(two: dict[str, Figure]) -> None:
    figure = two["score_parts"]
    assert figure.y.categories == ("distribution of y", "narrow", "blind")
    unc, whole = layer(figure, "UNC"), layer(figure, "distribution of y")
    assert whole.upper == unc.x
    rest, mcb, dsc = (layer(figure, words) for words in ("recalibrated", "MCB", "DSC"))
    score = layer(figure, "score")
    assert mcb.upper == pytest.approx(np.maximum(score.x, rest.upper))
    assert np.maximum(dsc.upper, dsc.lower).tolist() == pytest.approx(
        np.maximum(rest.upper, unc.x[0]).tolist()
    )
    assert score.hover["MCB"] == pytest.approx(score.x - rest.upper)
    assert score.hover["UNC"] - score.hover["DSC"] == pytest.approx(rest.upper)
    assert score.hover["MCB"][0] > 0.01  # too narrow
    assert abs(score.hover["DSC"][1]) < 0.005  # knows nothing


def test_the_sum_is_told_in_numbers(one: dict[str, Figure], two: dict[str, Figure]) -> None:
    pattern = r"score [\d.]+ = UNC [\d.]+ − DSC [\d.]+ \(.+\) \+ MCB [\d.]+ \(.+\)\."
    assert re.fullmatch(pattern, one["score_parts"].finding)
    assert re.fullmatch(rf"narrow: {pattern} blind: .*", two["score_parts"].finding)
    score, unc, dsc, mcb = (
        float(re.search(rf"{name} (?:= UNC )?([\d.]+)", one["score_parts"].finding)[1])  # type: ignore[index]
        for name in ("score", "UNC", "DSC", "MCB")
    )
    assert unc - dsc + mcb == pytest.approx(score, abs=0.001)


def test_parts_without_an_interval_are_drawn_all_the_same() -> None:
    found = evaluate(model("narrow", sd=0.3), metrics=["crps_skill"])
    (table,) = (each for each in tables_of(found) if each.name == "score_parts")
    bare = {name: np.full(1, np.nan) for name in ("mcb_lower", "mcb_upper")}
    table = ResultTable(name=table.name, columns={**table.columns, **bare}, model="narrow")
    (figure,) = (each for each in figures_of((), [table]) if each.name == "score_parts")
    assert re.search(r"DSC [\d.]+ \(.+\) \+ MCB [\d.]+\.$", figure.finding)


def test_models_are_taken_apart_on_rows_of_the_same_y() -> None:
    rng = child(1, "same y")
    x = rng.normal(size=4_000)
    y = np.round(x + rng.normal(size=4_000))  # with many ties
    laws = (
        howsure.Distribution.normal(x, np.ones(4_000)),
        howsure.Distribution.normal(-x, np.full(4_000, 0.5)),
    )
    for order in (np.arange(4_000), child(2, "order").permutation(4_000)):
        parts = [
            next(
                table
                for table in tables_of(
                    evaluate(EvalSet.checked(y[order], law.take(order)), metrics=["crps_skill"])
                )
                if table.name == "score_parts"
            ).columns["unc"][0]
            for law in laws
        ]
        assert parts[0] == pytest.approx(parts[1], rel=1e-12)
    assert "Of 1,500 rows." in drawn(EvalSet.checked(y, laws[0]))["score_parts"].notes


def test_skill_of_groups_of_thirty_rows_and_more(two: dict[str, Figure]) -> None:
    figure = two["skill_by_group"]
    assert set(figure.y.categories) == {"large", "small"}  # 29 rows tell no distribution
    assert "simultaneous over 2 groups (Bonferroni)" in figure.notes[0]
    found = evaluate(model("narrow", sd=0.3), metrics=["crps_skill"])
    (table,) = (each for each in tables_of(found) if each.name == "skill_by_group")
    held = model("narrow", sd=0.3)
    for place, label in enumerate(table.columns["group"]):
        rows = np.flatnonzero(held.groups["size"].values() == label)
        own = evaluate(held.take(rows), metrics=["crps_skill"], confidence=0.975).records[0]
        assert table.columns["skill"][place] == own.value
        assert table.columns["lower"][place] == pytest.approx(own.lower, rel=1e-12)
        assert table.columns["upper"][place] == pytest.approx(own.upper, rel=1e-12)
        assert table.columns["n"][place] == len(rows)


def skill_tables(held: EvalSet) -> list[ResultTable]:
    found = evaluate(held, metrics=["crps_skill"])
    return [table for table in tables_of(found) if table.name == "skill_by_group"]


def test_intervals_of_unknown_coverage_take_no_skill_by_group_away() -> None:
    law = model("law")
    bare = howsure.Intervals(law.y - 1, law.y + 1)
    held = replace(law, predictions=(bare, *law.predictions))
    assert evaluate(held, metrics=["crps_skill"]).coverages == pytest.approx([np.nan], nan_ok=True)
    (one,), (other,) = skill_tables(held), skill_tables(law)
    assert one.columns["skill"].tolist() == other.columns["skill"].tolist()
    with strict():
        assert not skill_tables(replace(law, predictions=(bare,)))


def test_skill_by_group_of_several_coverages_is_that_of_the_headline() -> None:
    held = model("law")
    ends = np.array([0.5, 2.0])
    x = held.predictions[0].point()[:, None]
    two = replace(held, predictions=(howsure.Intervals(x - ends, x + ends, coverage=[0.5, 0.9]),))
    last = replace(held, predictions=(howsure.Intervals(x[:, 0] - 2, x[:, 0] + 2, coverage=0.9),))
    (one,), (other,) = skill_tables(two), skill_tables(last)
    assert one.columns["score"].tolist() == ["interval score"] * 2
    assert one.columns["skill"].tolist() == other.columns["skill"].tolist()


def test_rows_of_a_group_are_those_that_count() -> None:
    """Copies are rows; a few rows of great importance are few."""
    counts = np.repeat([1, 2], [500, 400])
    (table,) = skill_tables(model("copies", weights=counts))
    told = dict(zip(table.columns["group"], table.columns["n"], strict=True))
    assert told == {"large": 500, "small": 742, "tiny": 58}
    important = np.repeat([1.0, 15.0], [896, 4])  # a thirteenth of all, as 32 rows would be
    held = model("important", weights=important, weights_kind="importance")
    few = np.where(important > 1, "four", "others")
    (table,) = skill_tables(replace(held, groups={"which": Categories.checked(few, "which")}))
    assert table.columns["group"].tolist() == ["others"]


def test_columns_of_many_groups_are_left_out_and_named() -> None:
    held = model("many")
    groups = {
        name: Categories.checked(np.arange(N) % size, name)
        for name, size in (("thirty", 30), ("fifteen", 15), ("ten", 10), ("single", N))
    }
    (table,) = skill_tables(replace(held, groups=groups))
    assert set(table.columns["grouping"]) == {"thirty", "ten"}
    assert table.notes.endswith("Left out, past 40 groups: fifteen.")


def test_a_narrow_forecast_leaves_its_bands(one: dict[str, Figure]) -> None:
    """Its quantiles lie 1.28 × .7 too near to a median that is right."""
    for name, apart in (("low", -0.9), ("median", 0.0), ("high", 0.9)):
        figure = one[f"reliability_{name}"]
        line, band = layer(figure, "narrow"), layer(figure, "90 % of correct forecasts")
        inner = (line.x > np.quantile(line.x, 0.1)) & (line.x < np.quantile(line.x, 0.9))
        assert (line.y - line.x)[inner].mean() == pytest.approx(apart, abs=0.15)
        low, high = (np.interp(line.x, band.x, end) for end in (band.lower, band.upper))
        share = ((line.y < low) | (line.y > high)).mean()
        assert apart == 0 or share > 0.9, name
        assert (np.diff(line.y) >= 0).all()
        assert layer(figure, "perfect calibration").mark is Mark.LINE


def test_bands_hold_right_forecasts_nine_times_in_ten() -> None:
    inside = []
    for number in range(30):
        rng = child(number, "bands")
        x = rng.normal(size=300)
        law = howsure.Distribution.normal(x, np.ones(300))
        held = EvalSet.checked(x + rng.normal(size=300), law)
        found = evaluate(held, metrics=["crps_skill"], slow=["miscalibration"])
        inside += [
            ((curve.lower <= curve.y) & (curve.y <= curve.upper)).mean()
            for curve in curves_of(found)
            if curve.name.startswith("reliability")
        ]
    assert 0.85 < np.mean(inside) < 0.95


def test_pages_have_few_diagrams_unless_a_part_is_asked_for(
    one: dict[str, Figure], two: dict[str, Figure]
) -> None:
    names = {f"reliability_{name}" for name in ("low", "median", "high", "mean")}
    assert set(one) - set(two) == {*names, "murphy_mean"}
    assert [len(layer(each["murphy"], "narrow").x) for each in (one, two)] == [49, 33]


def test_dependent_rows_have_no_band() -> None:
    figures = drawn(model("narrow", cluster=np.arange(N) % 50), slow=("miscalibration",))
    figure = figures["reliability_low"]
    assert not any(each.mark is Mark.BAND for each in figure.layers)
    assert any("No band: rows are dependent" in note for note in figure.notes)
    assert "score_parts" in figures


def test_levels_of_a_table_are_drawn_where_they_are_nearest() -> None:
    rng = child(3, "levels")
    x = rng.normal(size=200)
    for levels, names in (
        ([0.05, 0.25, 0.5, 0.75, 0.95], ["low", "median", "high"]),
        ([0.4, 0.6], ["low", "high"]),
        ([0.9], ["low"]),
    ):
        table = howsure.Quantiles(levels, x[:, None] + np.array(levels))
        held = EvalSet.checked(x + rng.normal(size=200), table)
        figures = drawn(held, slow=("miscalibration",))
        assert [f"reliability_{name}" in figures for name in names] == [True] * len(names)
        assert figures["reliability_low"].x.title == f"Predicted {100 * levels[0]:g} % quantile"
        assert "reliability_mean" not in figures
        assert ("murphy" in figures) == (0.5 in levels)
    both = (
        howsure.Intervals(x - 1, x + 1, coverage=0.7),
        howsure.Distribution.normal(x, np.ones(200)),
    )
    held = EvalSet.checked(x + rng.normal(size=200), both)
    assert drawn(held)["murphy"].notes == ("Of the 50 % quantile.",)


def test_murphy_diagrams_are_mean_elementary_scores(one: dict[str, Figure]) -> None:
    held = model("narrow", sd=0.3)
    mean = held.predictions[0].point()
    for name, score in (
        ("murphy", lambda x, at: elementary_quantiles(held.y, x, at, level=0.5)),
        ("murphy_mean", lambda x, at: elementary_means(held.y, x, at)),
    ):
        line = layer(one[name], "narrow")
        assert line.y == pytest.approx(score(mean, line.x), abs=1e-12)
    flat = layer(one["murphy"], "distribution of y")
    middle = np.full(N, np.median(held.y))
    expected = elementary_quantiles(held.y, middle, flat.x, level=0.5)
    assert flat.y == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("unit", [1.0, 1e9, 1e-200, 1e99])
def test_where_rows_are_not_told_thresholds_are_no_row(unit: float) -> None:
    held = model("many rows")
    (law,) = held.predictions
    assert isinstance(law, howsure.Distribution)
    wide = howsure.Distribution.normal(unit * law.point(), np.full(N, unit))
    for y in (unit * held.y, np.full(N, unit)):
        other = replace(held, y=y, predictions=(wide,), fewest=10)
        with strict():
            curves = curves_of(evaluate(other, metrics=["crps_skill"]))
        (curve,) = (each for each in curves if each.name == "murphy")
        assert np.isfinite(curve.x).all()
        if len(np.unique(y)) > 1:
            assert not np.isin(curve.x, y).any()
            assert (y.min() < curve.x).all()
            assert (curve.x < y.max()).all()
            assert len(curve.x) == 33


def test_what_is_measured_otherwise_has_a_figure_of_its_own() -> None:
    law = model("law", horizon=np.arange(N) % 3)
    x = law.predictions[0].point()
    others = (
        replace(law, model="one member", predictions=(howsure.Samples(x[:, None]),)),
        replace(law, model="ends", predictions=(howsure.Intervals(x - 9, x + 9, coverage=0.9),)),
    )
    found = [evaluate(each, metrics=["crps_skill"]) for each in (law, *others)]
    curves = [curve for each in found for curve in curves_of(each)]
    tables = [table for each in found for table in tables_of(each)]
    drawn_of = {
        name: {
            (figure.x.title if along == "x" else figure.y.title): figure.label
            for figure in figures_of(curves, tables)
            if figure.name == name
        }
        for name, along in (
            ("score_parts", "x"),
            ("skill_by_group", "x"),
            ("lead_time_score", "y"),
            ("lead_time_skill", "y"),
            ("lead_time_coverage", "y"),
        )
    }
    first, last = "law and one member", "ends"
    assert drawn_of == {
        "score_parts": {"Mean pinball loss": "law", "Mean squared error": "one member"},
        "skill_by_group": {"Skill in CRPS": first, "Skill in interval score": last},
        "lead_time_score": {"CRPS": first, "Interval score (Winkler)": last},
        "lead_time_skill": {"Skill in CRPS": first, "Skill in interval score": last},
        "lead_time_coverage": {"Empirical coverage (PICP)": ""},
    }
    scores = [curve for curve in curves if curve.name == "lead_time_score"]
    with pytest.raises(InputError, match="lead_time_score law and one member, lead_time_score end"):
        plot(scores)


def test_all_can_be_drawn_on_a_page(two: dict[str, Figure]) -> None:
    for name in ("score_parts", "skill_by_group", "murphy"):
        assert to_vega(two[name])


def test_a_point_alone_has_the_parts_of_its_squared_error() -> None:
    rng = child(4, "point")
    x = rng.normal(size=100)
    held = EvalSet.checked(x + rng.normal(size=100), point=x)
    figures = drawn(held, slow=("mean_miscalibration",))
    assert figures["score_parts"].title == "Parts of the mean squared error"
    assert "reliability_mean" in figures
    assert "reliability_low" not in figures
    with pytest.raises(HowsureError):
        howsure.assess(x, x).plot("reliability_low")
