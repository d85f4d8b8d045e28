"""Rows watched by a reference: scores, and rejection once labels are there."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import stats

import oracles.congruence as oracle
from extras import needs
from howsure.core.errors import InputError
from howsure.core.records import ResultTable
from howsure.core.rng import child
from howsure.figures import Layer, Mark, to_vega
from howsure.figures.figure import Figure, Shades
from howsure.figures.mpl import draw
from howsure.figures.palette import LIGHT
from howsure.inputs import load, load_unlabelled
from howsure.inputs.new import load_bare
from howsure.report import monitor as monitoring
from howsure.report.assessment import Assessment
from howsure.report.monitor import Monitor, Monitored, fit_monitor, monitored, scored
from howsure.report.page.figures import SIGNS_OF_RAMP, block_of
from howsure.topics.congruence.view import CongruenceOptions

PUBLISHED = CongruenceOptions(bandwidth=1.0, regularization=0.1, draws=1)


def score(monitor: Monitor, features: Any = None, *, embedding: Any = None) -> ResultTable:
    judged = monitor.judge(features, embedding)
    return scored(monitor, judged, np.arange(len(judged.grid)))


def wave(n: int, seed: int, *, wrong: float = 1.5) -> dict[str, Any]:
    """A wave whose model is wrong by an offset, and too sure, where x > 1."""
    rng = child(seed, "watch")
    x = rng.uniform(-2, 2, n)
    y = np.sin(2 * x) + 0.3 * rng.normal(size=n)
    mean = np.sin(2 * x) + wrong * (x > 1)
    return {"x": x, "y": y, "mean": mean, "sd": np.full(n, 0.3)}


def test_the_published_form_by_its_dense_formula() -> None:
    """γ of x 1, λ 0.1, one draw a row; new points scored without labels."""
    held, new = wave(120, 0), wave(50, 1)
    loaded = load(held, embedding="x", features="")
    monitor = fit_monitor(loaded.evalsets[0], options=PUBLISHED)
    scores = score(monitor, embedding=new["x"][:, None]).columns["cce"]
    draws = monitor.reference.predictive.samples[:, :, 0]
    order = monitor.part.row_names()
    assert draws.shape == (120, 1)
    dense = oracle.squared_cce(
        held["x"][order, None],
        held["y"][order, None],
        draws,
        new["x"][:, None],
        inputs=oracle.rbf(1.0),
        outputs=oracle.rbf(1.0 / (2.0 * held["y"].var(ddof=1))),
        regularization=0.1,
    )
    np.testing.assert_allclose(scores**2, dense, atol=1e-9)


def test_rejection_once_labels_are_there_by_hand() -> None:
    held, new = wave(600, 0), wave(400, 1)
    loaded = load(held, embedding="x", features="")
    monitor = fit_monitor(loaded.evalsets[0], options=PUBLISHED)
    found = monitored(monitor, load_unlabelled(new, loaded))
    inside = ~found.table.columns["outside"]
    rows = int(inside.sum())
    assert 390 <= rows < 400
    scores = found.table.columns["cce"][inside]
    new = {name: value[inside] for name, value in new.items()}
    losses = {
        "rejection": np.abs(new["y"] - new["mean"]),
        "rejection_nll": -stats.norm(new["mean"], new["sd"]).logpdf(new["y"]),
    }
    curves = {curve.name: curve for curve in found.report.curves}
    order, best = np.argsort(-scores), {name: np.argsort(-v) for name, v in losses.items()}
    for name, loss in losses.items():
        for share, error, least in zip(
            curves[name].x, curves[name].y, curves[f"{name}_oracle"].y, strict=True
        ):
            cut = round(share * rows)
            assert error == pytest.approx(loss[order[cut:]].mean(), rel=1e-9)
            assert least == pytest.approx(loss[best[name][cut:]].mean(), rel=1e-9)
        assert curves[name].reference is not None
        np.testing.assert_allclose(curves[name].reference, loss.mean())
        area = np.mean([loss[order[cut:]].mean() for cut in range(rows)])
        assert curves[name].area == pytest.approx(area)
        assert area < loss.mean()
    lines = found.report.verdict
    assert f"lowers the mean |error| of {rows} labelled rows" in lines
    assert f"lowers the mean NLL of {rows} labelled rows" in lines


def test_without_labels_there_is_no_rejection() -> None:
    held, new = wave(400, 0), wave(50, 1)
    loaded = load(held)
    found = monitored(fit_monitor(loaded.evalsets[0]), load_unlabelled({"x": new["x"]}, loaded))
    assert found.report.curves == ()
    assert [line.tone for line in found.report.lines] == ["bad", "good", "info"]


def test_some_labels_serve_for_the_rows_that_have_them() -> None:
    held, new = wave(400, 0), wave(60, 1)
    loaded = load(held)
    monitor = fit_monitor(loaded.evalsets[0])
    partial = {**new, "y": [value if k % 3 == 0 else None for k, value in enumerate(new["y"])]}
    found = monitored(monitor, load_unlabelled(partial, loaded))
    some = monitored(monitor, load_unlabelled({k: v[::3] for k, v in new.items()}, loaded))
    assert len(found.table) == 60
    assert found.report.curves[0].area == pytest.approx(some.report.curves[0].area)
    assert found.report.facts["Labelled rows"] == "20"


def test_blocks_of_rows_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    held, new = wave(300, 0), wave(70, 1)
    loaded = load(held)
    monitor = fit_monitor(loaded.evalsets[0])
    whole = monitor.compare(monitor.inputs({"x": new["x"]}))
    monkeypatch.setattr(monitoring, "ROWS_AT_ONCE", 16)
    parts = monitor.compare(monitor.inputs({"x": new["x"]}))
    assert whole.near is not None
    assert parts.near is not None
    for one, other in ((whole, parts), (whole.near, parts.near)):
        for name in set(one.__slots__) - {"near"}:
            np.testing.assert_allclose(getattr(other, name), getattr(one, name), rtol=1e-9)


def test_a_model_without_density_or_mean() -> None:
    held, new = wave(300, 0), wave(40, 1)
    rng = child(0, "members")
    for table in (held, new):
        members = {f"s_{k}": table["mean"] + rng.normal(size=len(table["x"])) for k in range(20)}
        table.update(members)
        del table["mean"], table["sd"]
    loaded = load(held)
    found = monitored(fit_monitor(loaded.evalsets[0]), load_unlabelled(new, loaded))
    assert {curve.name for curve in found.report.curves} == {"rejection", "rejection_oracle"}
    heavy = load(wave(300, 0), law="cauchy:loc=mean,scale=sd", features="x")
    found = monitored(fit_monitor(heavy.evalsets[0]), load_unlabelled(wave(40, 1), heavy))
    assert np.isfinite(found.report.curves[0].y).all()


def test_an_outcome_that_cannot_be_is_told() -> None:
    held, new = wave(300, 0), wave(40, 1)
    law = "uniform:loc=low,scale=width"
    for table in (held, new):
        table |= {"low": table["mean"] - 4.5, "width": np.full(len(table["x"]), 9.0)}
    new["y"][3] = 99.0
    loaded = load(held, law=law, sd="", mean="", point="", features="x")
    found = monitored(fit_monitor(loaded.evalsets[0]), load_unlabelled(new, loaded))
    assert {curve.name for curve in found.report.curves} == {"rejection", "rejection_oracle"}
    assert "infinite at 1 row" in found.report.curves[0].notes


def test_the_report_and_the_rows() -> None:
    held, new = wave(300, 0), wave(250, 1)
    loaded = load({**held, "cce": held["x"]}, features="x,cce")
    options = CongruenceOptions(layout="t-sne")
    monitor = fit_monitor(loaded.evalsets[0], options=options)
    unlabelled = load_unlabelled({**new, "cce": new["x"], "id": new["x"]}, loaded)
    found = monitored(monitor, unlabelled)
    columns = found.columns(unlabelled)
    np.testing.assert_array_equal(columns["cce"], found.table.columns["cce"])
    np.testing.assert_array_equal(columns["cce (input)"], new["x"])
    assert isinstance(found.report, Assessment)
    tables = {table.name: table for table in found.report.tables}
    assert len(tables["monitor"]) == 200
    assert "200 of 249 rows inside" in tables["monitor"].notes
    assert len(tables["outside"]) == 1
    assert "t-SNE" in tables["cce_map"].notes
    page = found.report.to_html()
    assert "can be trusted?</h1>" in page
    assert "Rejection by CCE, likelihood" in page
    assert found.report.to_markdown()
    assert found.report.to_json()


def straight(n: int, seed: int, *, width: int = 1, wrong: float = 0.0) -> dict[str, Any]:
    """Standard normal inputs; the model is off by `wrong` sds where the first is beyond 0.7."""
    rng = child(seed, "straight", width)
    x = rng.normal(size=(n, width))
    mean = np.sin(2 * x[:, 0])
    y = mean + 0.5 * rng.normal(size=n)
    mean = mean + 0.5 * wrong * (x[:, 0] > 0.7)
    table = {f"x{k}": x[:, k] for k in range(width)}
    return {**table, "y": y, "mean": mean, "sd": np.full(n, 0.5)}


def watched(held: dict[str, Any], new: dict[str, Any]) -> Monitored:
    loaded = load(held)
    return monitored(fit_monitor(loaded.evalsets[0]), load_unlabelled(new, loaded))


def test_rows_far_away_cannot_be_judged() -> None:
    """Rows 8 sd away had a green tick, for the error falls to 0 where no reference row is."""
    found = watched(straight(400, 0), {"x0": np.linspace(8.0, 8.1, 50)})
    support, unread = found.report.lines
    assert support.tone == "bad"
    assert support.text.startswith("100 % of 50 rows are outside the reference (expected 1 %")
    assert "used only for rows with y" in unread.text
    columns = found.table.columns
    assert columns["outside"].all()
    assert not columns["flagged"].any()
    assert np.isnan(columns["cce"]).all()
    assert np.isnan(columns["p_value"]).all()
    assert found.report.facts["Rows outside"] == "50"
    assert set(columns["why"]) == {"x0 above 2.887"}
    (record,) = found.report.records
    assert np.isnan(record.value)
    assert record.reason == "every row is outside the reference"
    assert json.loads(found.report.to_json())["findings"][0]["state"] == "bad"
    assert "outside the reference" in found.report.to_html()


def test_an_error_that_grows_beyond_the_edge_is_not_a_falling_number() -> None:
    """CCE went .20, .10, .03 where the model grows worse: there is no such number any more."""
    held = straight(1000, 1)
    held["mean"] = held["mean"] + np.maximum(held["x0"] - 1.0, 0.0)
    monitor = fit_monitor(load(held).evalsets[0])
    grid = {"x0": np.array([0.0, 1.0, 2.0, 6.0, 8.0, 10.0])}
    cce = monitor.compare(monitor.inputs(grid)).point_observed
    assert cce[2] > cce[3] > cce[4] > cce[5]  # what is withheld
    columns = score(monitor, grid).columns
    assert columns["outside"].tolist() == [False] * 3 + [True] * 3
    np.testing.assert_allclose(columns["cce"][:3], cce[:3], rtol=1e-14)
    assert np.isnan(columns["cce"][3:]).all()


@pytest.mark.rate
def test_right_rows_beside_wrong_ones_are_not_flagged() -> None:
    """Smoothing carries an error to right rows: all of them lay beyond a right model's."""
    right = {"x0": np.linspace(-0.3, 0.3, 117)}
    leaked, flagged, red = [], [], 0
    for seed in range(12):
        found = watched(straight(1000, seed, wrong=4.0), right)
        columns = found.table.columns
        leaked.append((columns["p_value"] <= 0.05).mean())
        flagged.append(columns["flagged"].mean())
        red += any(finding.state == "bad" for finding in found.report.findings)
    assert np.mean(leaked) > 0.95
    assert np.mean(flagged) <= 0.05 + 2.0 * np.std(flagged, ddof=1) / np.sqrt(12)
    assert red <= 2


def test_rows_among_wrong_ones_are_flagged() -> None:
    wrong = watched(straight(1000, 2, wrong=2.0), {"x0": np.linspace(0.9, 1.5, 117)})
    assert wrong.table.columns["flagged"].all()
    assert wrong.report.lines[0].tone == "bad"
    assert "100 % are flagged" in wrong.report.verdict


@pytest.mark.parametrize(("width", "n"), [(1, 300), (3, 300), (2, 1000)])
@pytest.mark.rate
def test_right_rows_of_every_quarter_are_seldom_outside_or_flagged(width: int, n: int) -> None:
    """Quarters by distance from the centre; rows 3 sd beyond the reference are outside."""
    tables, apart = 24, []
    far = []
    for seed in range(tables):
        held, new = straight(n, 2 * seed, width=width), straight(200, 2 * seed + 1, width=width)
        monitor = fit_monitor(load(held).evalsets[0], seed=seed)
        names = [f"x{k}" for k in range(width)]
        columns = score(monitor, {name: new[name] for name in names}).columns
        reach = np.linalg.norm(np.stack([new[name] for name in names]), axis=0)
        quarter = np.argsort(np.argsort(reach)) * 4 // 200
        said = columns["outside"] | columns["flagged"]
        apart.append([said[quarter == q].mean() for q in range(4)])
        away = {name: new[name][:20] for name in names}
        away[names[-1]] = held[names[-1]].max() + 3.0 + 0.0 * away[names[-1]]
        far.append(score(monitor, away).columns["outside"].mean())
    assert np.mean(far) >= 0.99
    shares = np.array(apart)
    # Rows of one table go together: the error of a share is that of tables.
    error = shares.std(axis=0, ddof=1) / np.sqrt(tables)
    assert (shares.mean(axis=0) <= 0.05 + 2.0 * error).all()


def test_the_errors_of_the_nearest_rows_by_their_dense_formula() -> None:
    held, new = wave(120, 0), wave(30, 1)
    loaded = load(held, embedding="x", features="")
    monitor = fit_monitor(loaded.evalsets[0], options=PUBLISHED)
    grid = new["x"][:, None]
    near = monitor.compare(grid).near
    assert near is not None
    part, draws = monitor.part, monitor.reference.predictive.samples[:, :, 0]
    kernel = oracle.rbf(1.0 / (2.0 * held["y"].var(ddof=1)))
    y = part.y[:, None]
    gram = kernel(y, y) + kernel(draws, draws) - kernel(y, draws) - kernel(draws, y)
    assert monitor.around == 16
    for place, at in enumerate(new["x"]):
        apart = np.abs(part.embedding[:, 0] - at)
        order = np.argsort(apart)
        weights = np.zeros(120)
        weights[order[:16]] = 1.0 - np.square(apart[order[:16]] / apart[order[16]])
        weights /= weights.sum()
        assert near.point_observed[place] ** 2 == pytest.approx(weights @ gram @ weights, abs=1e-8)
    assert near.observed == pytest.approx(near.point_observed.mean())
    assert near.p_value == (1 + (near.replicates >= near.observed).sum()) / 100


def test_labels_that_the_reference_lacks_are_outside() -> None:
    """A column that is constant in the reference is no input: a new value of it was not seen."""
    held = straight(300, 3) | {"site": np.array(["A", "B"] * 150), "unit": np.array(["m"] * 300)}
    held["kind"] = np.zeros(300)
    loaded = load(held, features="x0,site,unit,kind")
    monitor = fit_monitor(loaded.evalsets[0])
    columns = score(
        monitor,
        {
            "x0": np.zeros(5),
            "site": np.array(["A", "B", "C", "A", "A"], dtype=object),
            "unit": np.array(["m", "m", "m", "km", "m"], dtype=object),
            "kind": np.array([0.0, 0.0, 0.0, 0.0, 1.0]),
        },
    ).columns
    assert columns["outside"].tolist() == [False, False, True, True, True]
    assert columns["why"].tolist() == ["", "", "new site", "new unit", "new kind"]


@pytest.mark.rate
def test_a_tick_needs_evidence() -> None:
    """Few labelled rows show no fault, and no proof of none."""
    ticks = {40: 0, 1000: 0}
    for n in ticks:
        for seed in range(8):
            found = watched(straight(n, seed), {"x0": straight(200, 99)["x0"]})
            (state,) = (one.state for one in found.report.findings if one.id == "congruence")
            ticks[n] += state == "good"
    assert ticks[40] == 0
    assert ticks[1000] >= 6


def test_few_rows() -> None:
    held = straight(300, 6)
    near, far = watched(held, {"x0": np.zeros(1)}), watched(held, {"x0": np.full(1, 9.0)})
    assert near.report.lines[0].text == "The row is inside the reference."
    assert far.report.lines[0].text.startswith("The row is outside the reference")
    assert far.report.lines[0].tone == "bad"
    some = watched(held, {"x0": np.r_[np.linspace(-1, 1, 19), 9.0]})
    assert some.report.findings[0].state == "undecided"
    assert "5 % of 20 rows are outside the reference (expected 1 %)" in some.report.verdict


def test_sentences_are_short_and_rows_keep_their_numbers_in_any_company() -> None:
    held, new = straight(300, 7, wrong=2.0), straight(80, 8)
    new["x0"][:30] += 9.0
    loaded = load(held)
    monitor = fit_monitor(loaded.evalsets[0])
    found = monitored(monitor, load_unlabelled(new, loaded))
    for line in found.report.lines:
        for sentence in line.text.split(". "):
            assert len(sentence.split()) <= 25
    alone = score(monitor, {"x0": new["x0"][40:41]}).columns
    for name in ("support_p_value", "cce", "near_p_value", "flagged"):
        assert alone[name][0] == pytest.approx(found.table.columns[name][40])


def test_an_embedding_must_be_the_references() -> None:
    loaded = load(wave(100, 0), embedding="x", features="")
    monitor = fit_monitor(loaded.evalsets[0])
    with pytest.raises(InputError, match="need an embedding"):
        score(monitor, {"x": np.ones(2)})
    with pytest.raises(InputError, match="embedding must have"):
        score(monitor, embedding=np.ones((2, 3)))
    bare = fit_monitor(replace(load(wave(100, 0)).evalsets[0], embedding=None))
    with pytest.raises(InputError, match="need features"):
        score(bare, embedding=np.ones((2, 1)))


def test_intervals_alone_and_bare_inputs_say_which_rows_lie_outside() -> None:
    """Support needs no distribution: it is the same for every reference with the same inputs."""
    held, new = straight(300, 0, width=2), straight(80, 1, width=2)
    new["x1"][:6] += 30.0
    inputs = {name: held[name] for name in ("x0", "x1")}
    ends = {"lower": held["mean"] - 1.0, "upper": held["mean"] + 1.0}
    full = monitored(fit_monitor(load(held).evalsets[0]), load_unlabelled(new, load(held)))
    interval = load(inputs | ends | {"y": held["y"]})
    bare = load_bare(inputs)
    assert bare is not None
    for loaded in (interval, bare):
        unlabelled = load_unlabelled(new, loaded)
        found = monitored(fit_monitor(loaded.evalsets[0]), unlabelled)
        columns = found.columns(unlabelled)
        for name in ("outside", "why"):
            np.testing.assert_array_equal(columns[name], full.table.columns[name])
        assert columns["outside"][:6].all()
        assert set(columns) == {"row", "outside", "support_p_value", "distance", "why", "x0", "x1"}
        assert "has no predictive distributions" in found.report.verdict
        assert [finding.id for finding in found.report.findings] == ["outside"]
        (drawn,) = found.report.figures
        assert [item.label for item in drawn.legend()] == [
            "inside the reference",
            "outside the reference",
        ]
        assert "New rows and the reference" in found.report.to_html()


def test_a_table_with_y_and_predictions_is_no_bare_reference() -> None:
    held = straight(50, 0)
    assert load_bare(held) is None
    assert load_bare({"x0": held["x0"]}, y="y") is None
    assert load_bare({"name": np.array(["a", "b"])}) is None
    assert load_bare({"x0": held["x0"], "y": held["y"]}) is not None


def test_the_map_spans_rows_outside_and_marks_them() -> None:
    needs("matplotlib")
    held, new = straight(300, 0, width=3), straight(80, 1, width=3)
    new["x2"][:9] += 30.0
    found = watched(held, {name: new[name] for name in ("x0", "x1", "x2")})
    drawn = next(figure for figure in found.report.figures if figure.name == "cce_map")
    outside = found.table.columns["outside"]
    assert drawn.x.title == "X2"  # by which most rows lie outside
    inside, beyond = drawn.layers
    assert (len(inside), len(beyond)) == ((~outside).sum(), outside.sum())
    np.testing.assert_array_equal(np.sort(beyond.x), np.sort(new["x2"][outside]))
    spec = to_vega(drawn)
    assert spec["layer"][0]["encoding"]["color"]["field"] == "shade"
    assert spec["layer"][1]["encoding"]["color"] == {"value": LIGHT.highlight}
    draw(drawn)


def test_one_name_a_column_in_every_table_and_a_column_called_like_a_score_is_kept() -> None:
    held = straight(300, 7, wrong=2.0)
    held["cce"] = held["x0"] * 2
    new = {"x0": np.r_[held["x0"][:60], 9.0], "cce": np.r_[held["cce"][:60], 18.0]}
    loaded = load(held, features="x0,cce")
    found = monitored(fit_monitor(loaded.evalsets[0]), load_unlabelled(new, loaded))
    tables = {table.name: table for table in found.report.tables}
    assert tables["monitor"].labels == tables["outside"].labels == found.table.labels
    assert tables["outside"].columns["cce (input)"].tolist() == [18.0]
    assert tables["cce_map"].labels["perfect"] == found.table.labels["perfect"]


def test_ends_of_a_scale_of_colours_do_not_touch() -> None:
    """Nine ends such as 0.0125 below 19 rem ran into each other."""
    for edges in ([0.0025 * k for k in range(9)], [0.05 * k for k in range(8)]):
        point = Layer(mark=Mark.POINTS, x=np.ones(1), y=np.ones(1), shade=np.ones(1))
        shades = Shades(title="CCE", edges=tuple(edges))
        ramp = block_of(Figure(name="m", question="?", layers=(point,), shades=shades)).ramp
        assert ramp is not None
        written = [end for end in ramp.ends if end]
        assert written[0] == "0"
        share = ramp.ends.index(written[1]) / (len(ramp.ends) - 1)
        assert max(map(len, written)) <= share * SIGNS_OF_RAMP
        assert f"to {edges[-1]:g}," in ramp.told
