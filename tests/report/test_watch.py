"""Rows watched by a reference: scores, and rejection once labels are there."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import stats

import oracles.congruence as oracle
from howsure.core.errors import InputError
from howsure.core.rng import child
from howsure.inputs import load, load_unlabelled
from howsure.metrics.congruence import rejection_at
from howsure.metrics.congruence.view import CongruenceOptions
from howsure.report import monitor as monitoring
from howsure.report.assessment import Assessment
from howsure.report.monitor import fit_monitor
from howsure.report.watch import watch

PUBLISHED = CongruenceOptions(bandwidth=1.0, regularization=0.1, draws=1)


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
    scores = monitor.score(embedding=new["x"][:, None]).columns["cce"]
    draws = monitor.reference.belief.samples[:, :, 0]
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
    found = watch(monitor, load_unlabelled(new, loaded))
    scores = found.table.columns["cce"]
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
            cut = round(share * 400)
            assert error == pytest.approx(loss[order[cut:]].mean(), rel=1e-9)
            assert least == pytest.approx(loss[best[name][cut:]].mean(), rel=1e-9)
        assert curves[name].reference is not None
        np.testing.assert_allclose(curves[name].reference, loss.mean())
        area = np.mean([loss[order[cut:]].mean() for cut in range(400)])
        assert curves[name].area == pytest.approx(area)
        assert area < loss.mean()
        grid = np.linspace(0.02, 0.06, 100)
        rejected, kept = rejection_at(scores, loss, grid)
        assert kept[-1] == pytest.approx(loss[scores <= 0.06].mean())
        assert (np.diff(rejected) <= 0).all()
    lines = found.report.verdict
    assert "lowers the mean |error| of 400 labelled rows" in lines
    assert "lowers the mean NLL of 400 labelled rows" in lines


def test_without_labels_there_is_no_rejection() -> None:
    held, new = wave(400, 0), wave(50, 1)
    loaded = load(held)
    found = watch(fit_monitor(loaded.evalsets[0]), load_unlabelled({"x": new["x"]}, loaded))
    assert found.report.curves == ()
    (line,) = found.report.lines
    assert line.tone == "bad"


def test_some_labels_serve_for_the_rows_that_have_them() -> None:
    held, new = wave(400, 0), wave(60, 1)
    loaded = load(held)
    monitor = fit_monitor(loaded.evalsets[0])
    partial = {**new, "y": [value if k % 3 == 0 else None for k, value in enumerate(new["y"])]}
    found = watch(monitor, load_unlabelled(partial, loaded))
    some = watch(monitor, load_unlabelled({k: v[::3] for k, v in new.items()}, loaded))
    assert len(found.table) == 60
    assert found.report.curves[0].area == pytest.approx(some.report.curves[0].area)
    assert found.report.facts["Labelled rows"] == "20"


def test_blocks_of_rows_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    held, new = wave(300, 0), wave(70, 1)
    loaded = load(held)
    monitor = fit_monitor(loaded.evalsets[0])
    whole = monitor.compare(monitor.inputs({"x": new["x"]}))
    monkeypatch.setattr(monitoring, "CHUNK", 16)
    parts = monitor.compare(monitor.inputs({"x": new["x"]}))
    for name in whole.__slots__:
        np.testing.assert_allclose(getattr(parts, name), getattr(whole, name), rtol=1e-9)


def test_a_model_without_density_or_mean() -> None:
    held, new = wave(300, 0), wave(40, 1)
    rng = child(0, "members")
    for table in (held, new):
        members = {f"s_{k}": table["mean"] + rng.normal(size=len(table["x"])) for k in range(20)}
        table.update(members)
        del table["mean"], table["sd"]
    loaded = load(held)
    found = watch(fit_monitor(loaded.evalsets[0]), load_unlabelled(new, loaded))
    assert {curve.name for curve in found.report.curves} == {"rejection", "rejection_oracle"}
    heavy = load(wave(300, 0), law="cauchy:loc=mean,scale=sd", features="x")
    found = watch(fit_monitor(heavy.evalsets[0]), load_unlabelled(wave(40, 1), heavy))
    assert np.isfinite(found.report.curves[0].y).all()


def test_an_outcome_that_cannot_be_is_told() -> None:
    held, new = wave(300, 0), wave(40, 1)
    law = "uniform:loc=low,scale=width"
    for table in (held, new):
        table |= {"low": table["mean"] - 4.5, "width": np.full(len(table["x"]), 9.0)}
    new["y"][3] = 99.0
    loaded = load(held, law=law, sd="", mean="", point="", features="x")
    found = watch(fit_monitor(loaded.evalsets[0]), load_unlabelled(new, loaded))
    assert {curve.name for curve in found.report.curves} == {"rejection", "rejection_oracle"}
    assert "infinite at 1 row" in found.report.curves[0].notes


def test_the_report_and_the_rows() -> None:
    held, new = wave(300, 0), wave(250, 1)
    loaded = load({**held, "cce": held["x"]}, features="x,cce")
    options = CongruenceOptions(layout="t-sne")
    monitor = fit_monitor(loaded.evalsets[0], options=options)
    unlabelled = load_unlabelled({**new, "cce": new["x"], "id": new["x"]}, loaded)
    found = watch(monitor, unlabelled)
    columns = found.columns(unlabelled)
    np.testing.assert_array_equal(columns["cce"], found.table.columns["cce"])
    np.testing.assert_array_equal(columns["cce (input)"], new["x"])
    assert isinstance(found.report, Assessment)
    tables = {table.name: table for table in found.report.tables}
    assert len(tables["monitor"]) == 200
    assert "200 of 250 rows" in tables["monitor"].notes
    assert "t-SNE" in tables["cce_map"].notes
    page = found.report.to_html()
    assert "Which rows to distrust?" in page
    assert "Does it help the likelihood to withhold suspect rows?" in page
    assert found.report.to_markdown()
    assert found.report.to_json()


def test_an_embedding_must_be_the_references() -> None:
    loaded = load(wave(100, 0), embedding="x", features="")
    monitor = fit_monitor(loaded.evalsets[0])
    with pytest.raises(InputError, match="embedding is needed"):
        monitor.score({"x": np.ones(2)})
    with pytest.raises(InputError, match="embedding must have"):
        monitor.score(embedding=np.ones((2, 3)))
    bare = fit_monitor(replace(load(wave(100, 0)).evalsets[0], embedding=None))
    with pytest.raises(InputError, match="features are needed"):
        bare.score(embedding=np.ones((2, 1)))
