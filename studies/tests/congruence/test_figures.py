"""Figures hold what they were given, and every renderer draws them."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from extras import needs
from howsure.core.errors import InputError
from howsure.core.records import Curve, ResultTable
from howsure.figures import Figure, Mark, plot, to_vega
from howsure_studies.congruence import TRUTH, CongruenceMeasure, CongruenceRun, compare, wave_task
from howsure_studies.congruence.figures import (
    LAST_SHARE,
    Dots,
    calibration_figure,
    cce_over,
    diagnosis_figure,
    input_figure,
    law_figure,
    models_figure,
    rejection_figure,
    severity_figure,
    variation_figure,
)
from howsure_studies.congruence.reliability import Reliability
from howsure_studies.congruence.result import ModelPredictions, Monotonicity
from howsure_studies.methods.linear import LinearT

needs("matplotlib")

HOSTILE = '</script><b>"x"</b>\n'


def law(rows: int = 8) -> ModelPredictions:
    x = np.arange(rows, dtype=np.float64)[::-1].copy()
    return ModelPredictions(model="poisson", x=x, y=x + 1, point=x, lower=x - 2, upper=x + 2)


def over(model: str, *, band: bool = True) -> Curve:
    x = np.linspace(0.0, 1.0, 5)
    return Curve(
        name="congruence_cce",
        x=x,
        y=x,
        lower=x - 0.3 if band else None,
        upper=x + 0.3 if band else None,
        band="one sd" if band else "",
        x_label="x",
        y_label="CCE at x",
        model=model,
    )


def rejected(rows: int = 40) -> Curve:
    share = np.arange(rows) / rows
    return Curve(
        name="rejection_nll",
        x=share,
        y=2.0 - share,
        reference=np.full(rows, 2.0),
        lower=1.9 - share,
        upper=2.1 + share,
        band="95 % of random orders",
        y_label="mean negative log likelihood of the rows kept",
        model="poisson",
        hover={"oracle": 2.0 - 2 * share},
    )


def severities(kind: str = "mixup") -> list[Monotonicity]:
    levels = np.array([0.0, 0.5])
    values = {"a": [[0.09, 0.39], [0.11, 0.41]], "b": [[np.nan, 0.29], [np.nan, 0.31]]}
    return [
        Monotonicity(
            task="t", model=model, kind=kind, severities=levels, values={"cce": np.array(table)}
        )
        for model, table in values.items()
    ]


def scatter(model: str, rows: int) -> ResultTable:
    grid = np.linspace(0.0, 1.0, rows)
    return ResultTable(name="d", columns={"error": grid, "cce": grid**2}, model=model)


def variations() -> Reliability:
    return Reliability(
        task=("AAF", "EVA", "EVA", "EVA", "none"),
        model=("gaussian", "gaussian", HOSTILE, "poisson", "poisson"),
        cce=np.array([0.1, 0.2, np.nan, 0.4, np.nan]),
        ece=np.array([0.3, 0.1, 0.2, 0.5, np.nan]),
        cce_draws=np.array([0.05, 0.06, 0.07, 0.08, np.nan]),
        n=np.full(5, 100.0),
        ece_mean=np.array([0.1, 0.2, 0.3, 0.4, np.nan]),
    )


def figures() -> list[Figure]:
    return [
        law_figure(law(), units="counts", colour=2),
        calibration_figure([replace(over("a"), name="calibration", lower=None, upper=None)]),
        input_figure([over("a"), over(HOSTILE, band=False)], {"a": 3}, null=0.2),
        severity_figure(severities(), places={"b": 5}),
        rejection_figure(rejected(), colour=1, note="of the first"),
        diagnosis_figure([scatter("a", 10), scatter("b", 1000)]),
        variation_figure(variations()),
        models_figure(
            [
                Dots(series="here", values={"a": 0.1, "b": np.nan}, spreads={"a": 0.2}),
                Dots(series="nothing", values={"a": np.nan}),
                Dots(series="correct", values={"b": 0.3}, colour=1),
            ],
            note="two",
        ),
    ]


@pytest.mark.parametrize("figure", figures(), ids=lambda f: f.name)
def test_every_renderer_draws_them(figure: Figure) -> None:
    from matplotlib import pyplot

    spec = to_vega(figure)
    assert json.dumps(spec, allow_nan=False)
    assert plot(figure).get_xlabel() == figure.x.title
    pyplot.close("all")


def test_lines_over_x_rise_and_keep_their_bands() -> None:
    predictions, _, errors, *_ = figures()
    band, line, dots = predictions.layers
    np.testing.assert_array_equal(band.x, np.arange(8.0))
    np.testing.assert_array_equal(line.y, band.x)
    np.testing.assert_array_equal(band.upper - band.lower, 4.0)
    np.testing.assert_array_equal(dots.y, band.x + 1)
    assert "95 %" in predictions.reading
    assert predictions.y.title == "Counts"
    shade, rule, one, other = errors.layers
    np.testing.assert_array_equal(shade.lower, np.maximum(np.linspace(0, 1, 5) - 0.3, 0.0))
    assert rule.y.tolist() == [0.2]
    assert (one.colour, other.colour) == (3, 1)
    assert other.series == '</script><b>"x"</b>'
    assert errors.notes == ("Shaded: one sd.",)
    long = law_figure(law(1000))
    assert len(long.layers[0].x) <= 300
    assert long.notes[0].endswith("of 1,000 rows.")


def test_severities_have_their_spread_and_what_is_missing_is_left_out() -> None:
    found = figures()[3]
    spread, line, _ = [layer for layer in found.layers if layer.series == "a"]
    assert (line.x.tolist(), line.y.tolist()) == ([0.0, 0.5], [0.1, 0.4])
    sd = 0.01 * np.sqrt(2.0)
    np.testing.assert_allclose(spread.lower, [0.1 - sd, 0.4 - sd])
    np.testing.assert_allclose(spread.upper, [0.1 + sd, 0.4 + sd])
    _, line, _ = [layer for layer in found.layers if layer.series == "b"]
    assert (line.x.tolist(), line.colour) == ([0.5], 5)
    assert found.x.title == "Share of another row"
    single = [replace(c, values={"cce": c.values["cce"][:1]}) for c in severities("noise")]
    assert Mark.INTERVALS not in {layer.mark for layer in severity_figure(single).layers}


def test_rejection_stops_short_of_the_last_rows() -> None:
    found = figures()[4]
    by_name = {layer.series: layer for layer in found.layers}
    assert list(by_name) == [
        *("95 % of random orders", "random order", "oracle order", "highest CCE first")
    ]
    line = by_name["highest CCE first"]
    assert line.x[-1] == LAST_SHARE
    np.testing.assert_allclose(line.y, 2.0 - line.x)
    np.testing.assert_allclose(by_name["oracle order"].y, 2.0 - 2 * line.x)
    assert by_name["random order"].y.tolist() == [2.0] * len(line.x)
    assert found.question == "Does rejecting rows of high CCE lower the NLL? (poisson)"
    assert found.notes == ("of the first",)


def test_scatter_and_dots_hold_what_was_given() -> None:
    *_, cloud, pairs, models = figures()
    few, many = cloud.layers
    assert len(few.x) == 10
    assert len(many.x) == 250
    np.testing.assert_allclose(many.y, many.x**2)
    assert cloud.notes == ("b: Shown: 250 of 1,000 rows.",)
    equal, aaf, eva = pairs.layers
    assert (equal.x.tolist(), equal.y.tolist()) == ([0.0, 0.5], [0.0, 0.5])
    assert (aaf.series, eva.series) == ("AAF", "EVA")
    assert (eva.x.tolist(), eva.y.tolist()) == ([0.2, 0.4], [0.1, 0.5])
    assert eva.labels == ("gaussian", "poisson")
    assert eva.hover["CCE over draws alone"].tolist() == [0.06, 0.08]
    line, here, correct = models.layers
    assert line.mark is Mark.INTERVALS
    np.testing.assert_allclose([line.lower[0], line.upper[0]], [0.0, 0.3])
    assert (here.labels, correct.labels) == (("a",), ("b",))
    assert correct.y.tolist() == [1.0]
    assert models.notes == ("two",)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: law_figure(law(0)), "one length"),
        (lambda: law_figure(replace(law(), y=np.ones(2))), "one length"),
        (lambda: calibration_figure([]), "at least one"),
        (lambda: input_figure([]), "at least one"),
        (lambda: severity_figure(severities(), "mae"), "measure must be"),
        (lambda: severity_figure(severities()[:0]), "a known cce"),
        (lambda: rejection_figure(replace(rejected(), x=np.ones(40))), "a share of at most"),
        (lambda: diagnosis_figure([]), "error and cce"),
        (lambda: diagnosis_figure([ResultTable(name="d", columns={})]), "error and cce"),
        (lambda: variation_figure(replace(variations(), ece=np.full(5, np.nan))), "a pair with"),
        (lambda: models_figure([Dots(series="a", values={"b": np.nan})]), "contain a value"),
        (lambda: models_figure([Dots(series="a", values={"b": 1.0})], "mae"), "measure must be"),
    ],
)
def test_bad_input_is_named(call, words: str) -> None:
    with pytest.raises(InputError, match=words):
        call()


def test_curves_are_sorted_and_banded() -> None:
    task = wave_task(rows=100)
    how = CongruenceMeasure(grid="fixed", samplings=2, bootstraps=2)
    run = compare({"line": LinearT()}, [task], measure=how, truth=True).of(TRUTH)[0]
    curve = cce_over(run, task.test.x)
    order = np.argsort(task.test.x[:, 0])
    np.testing.assert_array_equal(curve.x, task.test.x[order, 0])
    np.testing.assert_array_equal(curve.y, run.rows["cce"][order])
    assert curve.upper is not None
    np.testing.assert_allclose(curve.upper - curve.y, run.rows["cce_sd"][order])
    with pytest.raises(InputError, match="x must have"):
        cce_over(run, task.val.x[:3])


def test_a_run_without_an_answer_has_no_curves() -> None:
    run = CongruenceRun(task="t", model="m", seed=0, n=2, reasons={"cce": "it failed"})
    with pytest.raises(InputError, match="it failed"):
        cce_over(run, np.zeros(2))
