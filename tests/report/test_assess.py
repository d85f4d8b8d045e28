"""From any prediction to a verdict, and nothing but our own errors from bad input."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats

import howsure
from extras import needs
from generated import examples
from howsure.core.errors import HowsureError, InputError
from howsure.core.rng import child
from howsure.predictions import Distribution, Intervals, LabelSets, Quantiles, Samples

pytestmark = pytest.mark.few_draws


def normal(n: int, factor: float = 1.0, seed: int = 0) -> tuple[np.ndarray, Distribution]:
    rng = child(seed, "assess")
    mean, sd = rng.normal(size=n), np.exp(rng.uniform(-0.6, 0.6, n))
    return mean + sd * rng.normal(size=n), Distribution.normal(mean, factor * sd)


def test_a_good_model_passes() -> None:
    y, prediction = normal(5_000)
    result = howsure.assess(y, prediction)
    assert "in line with the nominal coverage" in result.verdict
    assert not {"bad", "negligible"} & {finding.state for finding in result.findings}


@pytest.mark.parametrize(("factor", "word"), [(0.6, "under-cover"), (1.6, "over-cover")])
def test_a_bad_model_fails(factor: float, word: str) -> None:
    y, prediction = normal(3_000, factor)
    result = howsure.assess(y, prediction)
    assert word in result.verdict
    states = {finding.id: finding.state for finding in result.findings}
    assert states["coverage"] == states["spread"] == "bad"


@pytest.mark.parametrize(("varying", "state"), [(0.0, "good"), (1.0, "bad")])
@pytest.mark.rate
def test_equal_widths_are_a_fault_only_where_inputs_know_better(varying: float, state: str) -> None:
    rng = child(0, "flat")
    x = rng.uniform(-1, 1, size=(6_000, 2))
    y = np.exp(varying * x[:, 0]) * rng.normal(size=6_000)
    reach = np.full(6_000, np.quantile(np.abs(y), 0.9))
    result = howsure.assess(y, Intervals(-reach, reach, 0.9), features=x)
    (width,) = [finding for finding in result.findings if finding.id == "width"]
    assert width.state == state
    assert "Every row has the same width" in width.sentence


def test_the_best_models_may_be_one() -> None:
    y, prediction = normal(200)
    _, wide = normal(200, 3.0)
    told = howsure.assess(y, {"a": prediction, "wide": wide, "b": prediction}).verdict
    assert "a and b do not differ significantly in CRPS; both beat wide." in told


def test_models_are_ranked_at_a_level_that_all_have() -> None:
    y, prediction = normal(400)
    mean, sd = prediction.parameters["loc"], prediction.parameters["scale"]
    reach = np.outer(sd, stats.norm.ppf([0.75, 0.95]))
    good = Intervals(mean[:, None] - reach[:, 1:], mean[:, None] + reach[:, 1:], coverage=[0.9])
    off = {
        name: Intervals(mean[:, None] - reach + by, mean[:, None] + reach + by, coverage=[0.5, 0.9])
        for name, by in (("high", 0.9), ("low", -0.7))
    }
    told = howsure.assess(y, {**off, "good": good}).verdict
    assert "good has the lowest interval score; low and high are significantly worse." in told


def test_few_rows_are_not_judged() -> None:
    y, prediction = normal(30)
    told = howsure.assess(y, prediction)
    states = {finding.id: finding.state for finding in told.findings}
    assert states.pop("skill") == "good"  # which 30 rows show plainly
    assert set(states.values()) == {"undecided"}
    assert "more rows should decide" in told.verdict


def test_every_kind_of_prediction_is_taken() -> None:
    y, prediction = normal(200)
    mean, sd = prediction.parameters["loc"], prediction.parameters["scale"]
    levels = [0.05, 0.25, 0.5, 0.75, 0.95]
    predictions = {
        "frozen": stats.norm(mean, sd),
        "t": Distribution("t", {"df": 5.0, "loc": mean, "scale": sd}),
        "quantiles": Quantiles(levels, prediction.quantile(levels)),
        "samples": Samples(prediction.sample(child(1, "draws"), 40)),
        "both": (Intervals(mean - sd, mean + sd, 0.68), prediction),
    }
    result = howsure.assess(y, predictions, coverage=0.9)
    assert {record.model for record in result.records} == set(predictions)
    models = next(table for table in result.tables if table.name == "models")
    assert len(set(zip(models.columns["model_a"], models.columns["model_b"], strict=True))) == 10
    sets = LabelSets(np.eye(3, dtype=bool)[[0, 1, 2, 0]], coverage=0.9)
    assert howsure.assess([0, 1, 2, 1], sets).value("empirical_coverage") == 0.75


def test_a_point_forecast_alone_is_answered_as_far_as_it_goes() -> None:
    result = howsure.assess(howsure.Table([1.0, 2.0, 3.0], point=[1.5, 2.0, 2.5]))
    assert result.value("mae") == pytest.approx(1 / 3)
    assert result.answer is not None
    assert result.answer.sentence == "Inconclusive: the predictions state no uncertainty."
    told = next(table for table in result.tables if table.name == "not_judged")
    assert "coverage" in told.columns["id"]
    assert {record.metric for record in result.unanswered} >= {"empirical_coverage", "crps"}


@pytest.mark.rate
def test_forms_agree() -> None:
    y, prediction = normal(300)
    result = howsure.assess(y, prediction, groups={"g": np.arange(300) % 3}, features={"x": y})
    table = result.to_frame("pyarrow")
    assert table.num_rows == len(result.records)
    plain = json.loads(result.to_json())
    assert len(plain["records"]) == len(result.records)
    assert result.to_csv().count("\n") >= len(result.records)
    assert result.lines[0].text.split(":")[0] in result.to_markdown().replace("\\", "").replace(
        "&gt;", ">"
    )
    assert [each["id"] for each in plain["findings"]] == [each.id for each in result.findings]
    assert result.figures


@pytest.mark.slow
def test_same_seed_same_answer() -> None:
    y, prediction = normal(400)
    groups = {"g": np.arange(400) % 4}
    first, second = (
        howsure.assess(y, prediction, groups=groups, options=howsure.Options(seed=3)).to_json()
        for _ in range(2)
    )
    assert first == second


def test_plot_draws_on_given_axes() -> None:
    needs("matplotlib").use("Agg")
    import matplotlib.pyplot as plt

    y, prediction = normal(300)
    result = howsure.assess(y, prediction)
    figure, axes = plt.subplots()
    assert result.plot("risk_coverage", ax=axes) is axes
    assert axes.get_lines()
    plt.close(figure)
    legend = result.plot("characteristic").get_legend()
    words = [text.get_text() for text in legend.get_texts()]
    assert "constant band" in words
    plt.close("all")
    with pytest.raises(InputError, match="name must be one of"):
        result.plot("nonsense")


@pytest.mark.parametrize(
    ("y", "prediction", "match"),
    [
        ([1.0, math.nan], Intervals([0, 0], [1, 1], 0.9), "y must contain finite numbers"),
        ([1.0, math.inf], Intervals([0, 0], [1, 1], 0.9), "y must contain finite numbers"),
        ([], None, "y must have at least one row"),
        ([1.0], Intervals([0, 0], [1, 1], 0.9), "intervals must have 1 rows"),
        ([1.0], None, "No prediction given"),
        ([1.0], "nonsense", "prediction must be"),
        ([[1.0, 2.0]], Intervals([0], [1], 0.9), "one dimension"),
        (["a"], Intervals([0], [1], 0.9), "y must contain real numbers"),
    ],
)
def test_bad_input_is_named(y: object, prediction: object, match: str) -> None:
    with pytest.raises(InputError, match=match):
        howsure.assess(y, prediction)


ANY = st.floats(allow_nan=True, allow_infinity=True, width=64)
TABLE = st.integers(1, 12).flatmap(
    lambda n: st.tuples(*(arrays(np.float64, n, elements=ANY) for _ in range(4)))
)
TAME = st.floats(-1e3, 1e3) | st.sampled_from([0.0, 1.0, -1.0, 1e-300, 1e100, -1e150, 1e300])
TAME_TABLE = st.integers(1, 12).flatmap(
    lambda n: st.tuples(*(arrays(np.float64, n, elements=TAME) for _ in range(4)))
)


@examples(120)
@given(TABLE | TAME_TABLE, st.sampled_from(["intervals", "normal", "quantiles", "samples", "all"]))
@pytest.mark.rate
def test_only_our_own_errors_come_out(table: tuple[np.ndarray, ...], kind: str) -> None:
    y, a, b, c = table
    try:
        parts = {
            "intervals": lambda: Intervals(np.fmin(a, b), np.fmax(a, b), 0.9),
            "normal": lambda: Distribution.normal(a, np.abs(b)),
            "quantiles": lambda: Quantiles([0.1, 0.5, 0.9], np.sort([a, b, c], axis=0).T),
            "samples": lambda: Samples(np.stack([a, b, c], axis=1)),
        }
        held = tuple(make() for name, make in parts.items() if kind in (name, "all"))
        result = howsure.assess(y, held, groups={"g": np.arange(len(y)) % 2})
        json.loads(result.to_json())
    except HowsureError:
        return
    for record in result.records:
        assert not math.isnan(record.value) or record.reason, record.metric


@pytest.mark.parametrize(
    ("column", "values", "said"),
    [
        (
            "weight",
            [10**6, 1],
            "frequency, 50,000,050 rows in all; weight 2 means a row seen twice",
        ),
        (
            "importance_weight",
            [0.5, 1.5],
            "importance, effective sample size 80.0; weights are shares",
        ),
    ],
)
def test_the_sense_of_weights_is_told(column: str, values: list[float], said: str) -> None:
    rng = np.random.default_rng(0)
    table = {"y": rng.normal(size=100), "mean": np.zeros(100), "sd": np.ones(100)}
    result = howsure.assess({**table, column: np.tile(values, 50)})
    assert result.facts["Weights"].startswith(said)
    assert said in result.to_html()


@pytest.mark.slow
def test_past_ten_models_the_best_three_are_told_in_detail() -> None:
    rng = child(0, "many models")
    mean = rng.normal(size=80)
    y = mean + rng.normal(size=80)
    models = {
        f"m{k}": Distribution.normal(mean + 0.2 * abs(k - 5), np.full(80, 1.0)) for k in range(12)
    }
    result = howsure.assess(y, models)
    best = {"m4", "m5", "m6"}
    assert {record.model for record in result.records} == set(models)
    assert {curve.model for curve in result.curves} == best
    assert {table.model for table in result.tables if table.model} == best
    assert set(result.facts["In detail"].split(": ")[1].split(", ")) == best
    for name in models:
        told = [line for line in result.lines if line.model == name]
        assert len(told) > 3 if name in best else len(told) == 1
    which = next(line.text for line in result.lines if line.about == "comparison")
    assert "m5" in which
    assert "it and 2 others of 12 models do not differ" in which


def test_the_verdict_takes_a_tolerance_and_leaves_findings_out() -> None:
    y, prediction = normal(3_000, 0.8)
    states = {each.id: each.state for each in howsure.assess(y, prediction).findings}
    assert states["coverage"] == states["spread"] == "bad"
    loose = howsure.assess(y, prediction, options=howsure.Options(tolerance=0.2))
    states = {each.id: each.state for each in loose.findings}
    assert states["coverage"] == states["spread"] == "negligible"
    muted = howsure.assess(y, prediction, options=howsure.Options(ignore={"spread"}))
    assert "spread" not in {each.id for each in muted.findings}
    told = next(table for table in muted.tables if table.name == "not_judged")
    reasons = dict(zip(told.columns["id"], told.columns["reason"], strict=True))
    assert reasons["spread"] == "ignored, as asked"


def test_advice_keeps_the_line_of_a_model_on_which_nothing_can_be_judged() -> None:
    rng = np.random.default_rng(0)
    y, zero = rng.normal(size=400), np.zeros(400)
    wide = Intervals(zero - 99.0, zero + 99.0)  # of unknown coverage
    models = {name: Distribution.normal(zero + by, zero + 0.5) for name, by in (("a", 0), ("b", 1))}
    found = howsure.assess(y, {"wide": wide, **models})
    assert found.advice is not None
    assert found.advice.model == "a"
    assert sum(line.in_full.startswith("wide: Nothing can be judged") for line in found.lines) == 1
    judged = [line.in_full for line in found.lines if line.tone != "info"]
    assert len(judged) == len(set(judged)) == len(found.findings) + 3
    assert judged[2].startswith("The nominal coverage of the intervals is unknown")


def test_groups_of_a_frame_are_its_columns_and_a_name_alone_is_refused() -> None:
    pd = needs("pandas")
    y = np.random.default_rng(0).normal(size=300)
    frame = pd.DataFrame({"side": np.where(y > 0, "up", "down"), "third": np.arange(300) % 3})
    named = howsure.assess(
        y, np.zeros(300), groups=dict(frame), options=howsure.Options(trials=False)
    )
    assert (
        howsure.assess(
            y, np.zeros(300), groups=frame, options=howsure.Options(trials=False)
        ).records
        == named.records
    )
    with pytest.raises(InputError, match=r"got the text 'side'.*groups=\{'side': labels\}"):
        howsure.assess(y, np.zeros(300), groups="side")


def test_what_was_not_assessed_is_told_with_what_was() -> None:
    y = np.random.default_rng(0).normal(size=50)
    normal = Distribution.normal(np.zeros(50), np.ones(50))
    result = howsure.assess(y, {"a": normal, "b": normal}, options=howsure.Options(trials=False))
    with pytest.raises(InputError, match=r"of model 'c'; the models are 'a', 'b'$"):
        result.value("crps", model="c")
    with pytest.raises(
        InputError, match=r"assessed coverages are 0\.9: use assess\(…, coverage=0\.5\)"
    ):
        result.value("picp", coverage=0.5)
    asked = howsure.assess(y, normal, coverage=0.5, options=howsure.Options(trials=False))
    assert asked.value("picp", coverage=0.5) == np.mean(np.abs(y) <= stats.norm.ppf(0.75))
