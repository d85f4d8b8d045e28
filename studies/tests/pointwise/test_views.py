"""Records, curves and tables say what the result holds, and nothing that it does not."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy import stats
from sklearn.linear_model import LinearRegression

from extras import needs
from howsure.core.errors import UnanswerableError
from howsure.core.records import Direction, Notion, Record
from howsure.figures import figures_of, plot
from howsure.inputs.distributions import located
from howsure_studies.methods.interface import Fitted, Method, Predictions
from howsure_studies.methods.linear import LinearT
from howsure_studies.methods.regressors import SplitConformal
from howsure_studies.pointwise import PointwiseResult, curves, failing_ranges, pointwise, records
from howsure_studies.pointwise.measures import _crossed, points_table, trials_table
from howsure_studies.tasks.worlds import CutWorld, world_named

AT_COVERAGE = (
    "empirical_coverage",
    "picf_mean",
    "picf_brier",
    "picf_brier_corrected",
    "picf_bias_squared",
    "picf_variance",
    "picf_points_off",
    "prediction_width",
    "cicp",
    "cicf_mean",
    "cicf_brier",
    "cicf_brier_corrected",
    "cicf_bias_squared",
    "cicf_variance",
    "cicf_points_off",
    "confidence_width",
    "cicf_simultaneous",
)


class Step(Method, Fitted):
    """Intervals right left of 0, too wide right of it; wrong altogether in trial `bad`."""

    def __init__(self, bad: int = -1) -> None:
        self.bad, self.count = bad, -1

    @property
    def name(self) -> str:
        return "step"

    def fit(self, x: Any, y: Any, rng: np.random.Generator) -> Fitted:
        self.count += 1
        if self.count == self.bad:
            raise RuntimeError("broken")
        self.wobble = 1 + 0.01 * rng.normal()
        return self

    def predict(self, x: Any) -> Predictions:
        world = world_named("toy_homoscedastic")
        sd = np.where(x[:, 0] < 0, 0.2, 0.4) * self.wobble
        mean = world.truth(x).mean
        return Predictions(located("norm", mean, sd), located("norm", mean + 0.1, 0.05 + 0 * sd))


def step(**options: Any) -> PointwiseResult:
    given: dict[str, Any] = {"coverages": (0.8, 0.9), "trials": 20, "n_train": 2, "n_test": 50}
    return pointwise("toy_homoscedastic", Step(options.pop("bad", -1)), **{**given, **options})


def found(result: PointwiseResult, coverage: float = 0.8) -> dict[str, Record]:
    return {
        record.metric: record
        for record in records(result)
        if record.coverage == coverage or math.isnan(record.coverage)
    }


def test_records_are_complete_at_every_coverage() -> None:
    result = step()
    listed = records(result)
    assert [r.metric for r in listed] == [*AT_COVERAGE * 2, "log_likelihood", "failed_trials"]
    assert [r.coverage for r in listed[: len(AT_COVERAGE)]] == [0.8] * len(AT_COVERAGE)
    for record in listed:
        assert record.model == "step"
        assert record.options["world"] == "toy_homoscedastic"
        assert (record.direction is Direction.NONE) == (record.metric == "cicf_simultaneous")
        assert math.isfinite(record.value)
        assert record.n == 20
        pointwise_notion = record.metric.split("_", 1)[-1] in (
            "brier",
            "brier_corrected",
            "bias_squared",
            "variance",
            "points_off",
            "simultaneous",
        )
        assert (record.notion == Notion.POINTWISE) == pointwise_notion


def test_records_hold_the_numbers_of_the_result() -> None:
    result = step()
    at = found(result)
    score = result.brier("picf", 0.8)
    assert at["picf_brier"].value == score.raw
    assert at["picf_brier"].null == score.noise
    assert at["picf_brier_corrected"].value == score.corrected
    assert at["picf_brier_corrected"].standard_error == score.standard_error
    assert at["picf_bias_squared"].value + at["picf_variance"].value == pytest.approx(
        score.corrected
    )
    off = result.band("picf", 0.8).verdict(0.8)
    assert at["picf_points_off"].value == (off != 0).mean()
    assert at["picf_points_off"].value == pytest.approx((result.x[:, 0] >= 0).mean())
    shares = result.picp(0.8)
    picp = at["empirical_coverage"]
    assert picp.value == shares.mean()
    assert picp.lower < shares.mean() < picp.upper
    assert picp.target == 0.8
    assert at["confidence_width"].value == pytest.approx(2 * 0.05 * stats.norm.ppf(0.9))
    assert at["confidence_width"].units == "y"
    assert at["cicp"].value == 0.0
    assert at["log_likelihood"].value == pytest.approx(result.log_likelihood.mean())


def test_a_line_through_zero_is_right_at_all_points_or_at_none() -> None:
    """So that the share of trials right at all x at once is that of a single x, and below else."""
    through, line = (
        pointwise("linear", LinearT(intercept=free), coverages=(0.8,), trials=200, n_test=30)
        for free in (False, True)
    )
    for result in (through, line):
        record = found(result)["cicf_simultaneous"]
        low, high = (ends[:, :, 0] for ends in result.mean_ends)
        inside = ((low <= result.truth.mean) & (result.truth.mean <= high)).all(axis=1)
        assert record.value == inside.mean()
        assert record.lower < record.value < record.upper
        assert record.n == 200
    assert found(through)["cicf_simultaneous"].value == found(through)["cicp"].value
    assert found(line)["cicf_simultaneous"].upper < found(line)["cicp"].value


def test_what_cannot_be_known_has_its_reason() -> None:
    draw = world_named("linear").test_set(0, 400)
    cut = pointwise(
        CutWorld.from_data(draw.x, draw.y, rows=20), LinearT(), coverages=(0.8,), trials=5
    )
    at = found(cut)
    for name in AT_COVERAGE:
        if name.startswith(("picf", "cicf", "cicp")):
            assert math.isnan(at[name].value)
            assert "does not know the distribution of y" in at[name].reason
        else:
            assert math.isfinite(at[name].value)
            assert not at[name].reason
    assert curves(cut) == ()
    assert "picf" not in points_table(cut, 0.8).columns
    assert "cicp" not in trials_table(cut, 0.8).columns
    conformal = found(pointwise("linear", SplitConformal(LinearRegression()), trials=4, n_test=9))
    assert "gives no confidence intervals" in conformal["cicf_brier"].reason
    assert "gives no confidence intervals" in conformal["confidence_width"].reason
    assert "gives no density" in conformal["log_likelihood"].reason
    assert math.isfinite(conformal["picf_brier"].value)


def test_failures_are_a_record() -> None:
    result = step(bad=3)
    record = found(result)["failed_trials"]
    assert record.value == 1 / 20
    assert record.n == 20
    assert "in fit: RuntimeError: broken" in record.reason
    assert found(result)["picf_brier"].n == 19


@pytest.mark.parametrize("trials", [1, 2])
def test_few_trials_say_so(trials: int) -> None:
    at = found(step(trials=trials))
    assert math.isnan(at["picf_brier_corrected"].standard_error)
    assert "fewer than three trials" in at["picf_brier"].reason
    assert math.isnan(at["picf_points_off"].value) == (trials == 1)
    assert math.isnan(at["empirical_coverage"].standard_error) == (trials == 1)


def test_no_trials_give_reasons_alone() -> None:
    result = step(bad=0, trials=1)
    assert result.trials == 0
    for record in records(result):
        if record.metric == "failed_trials":
            assert record.value == 1.0
        else:
            assert math.isnan(record.value)
            assert "no trial succeeded" in record.reason
    assert curves(result) == ()
    assert len(points_table(result, 0.8)) == 50
    assert len(trials_table(result, 0.8)) == 0


def test_unbounded_widths_have_no_error() -> None:
    method = SplitConformal(LinearRegression(), calibration=3, coverages=(0.9,))
    record = found(pointwise("linear", method, trials=4, n_test=5), 0.9)["prediction_width"]
    assert math.isinf(record.value)
    assert math.isnan(record.standard_error)
    assert record.reason == "some trials gave infinite values"


def test_curves_run_along_x_with_their_bands() -> None:
    result = step()
    drawn = {curve.name: curve for curve in curves(result)[:4]}
    assert list(drawn) == ["picf", "picf_sorted", "cicf", "cicf_sorted"]
    assert len(curves(result)) == 8
    band = result.band("picf", 0.8)
    order = np.argsort(result.x[:, 0])
    curve = drawn["picf"]
    assert np.array_equal(curve.x, result.x[order, 0])
    assert np.array_equal(curve.y, band.value[order])
    assert curve.lower is not None
    assert np.array_equal(curve.lower, band.lower[order])
    assert curve.reference is not None
    assert set(curve.reference.tolist()) == {0.8}
    assert "95% Monte-Carlo band over 50 points" in curve.band
    assert np.array_equal(drawn["picf_sorted"].y, np.sort(band.value))
    assert {curve.group for curve in curves(result)} == {"nominal 80 %", "nominal 90 %"}
    assert [c.group for c in curves(result, coverages=(0.9,))] == ["nominal 90 %"] * 4
    many = pointwise("friedman1", LinearT(), coverages=(0.8,), trials=3, n_train=30, n_test=9)
    assert [curve.name for curve in curves(many)] == ["picf_sorted", "cicf_sorted"]


def test_curves_are_drawn_with_the_words_of_the_field() -> None:
    needs("matplotlib").use("Agg")
    figures = figures_of([c for c in curves(step()) if c.name in ("picf", "cicf_sorted")])
    assert [figure.title for figure in figures] == ["PICF along x", "CICF in increasing order"]
    assert [item.label for item in figures[0].legend()][:2] == ["nominal 80 %", "nominal 90 %"]
    axes = plot([c for c in curves(step(), coverages=(0.8,)) if c.name == "picf"])
    assert axes.get_ylabel() == "PICF: coverage of a new y, nominal 80 %"


def test_tables_hold_points_and_trials() -> None:
    result = step()
    points = points_table(result, 0.8).columns
    band = result.band("picf", 0.8)
    assert np.array_equal(points["x0"], result.x[:, 0])
    assert np.array_equal(points["picf"], band.value)
    assert np.array_equal(points["picf_verdict"], band.verdict(0.8))
    assert np.array_equal(points["picf_width"], result.width("picf", 0.8).mean(axis=0))
    assert set(points["cicf_verdict"].tolist()) == {-1}
    trials = trials_table(result, 0.8)
    assert np.array_equal(trials.columns["picp"], result.picp(0.8))
    assert np.array_equal(trials.columns["cicp"], result.cicp(0.8))
    assert len(trials) == 20


def test_ranges_tell_where_a_method_fails() -> None:
    result = step()
    ranges = failing_ranges(result, "picf", 0.8).columns
    right = np.sort(result.x[result.x[:, 0] >= 0, 0])
    assert ranges["from"].tolist() == [right[0]]
    assert ranges["to"].tolist() == [right[-1]]
    assert ranges["points"].tolist() == [len(right)]
    assert ranges["verdict"].tolist() == [1]
    expected = 2 * stats.norm.cdf(2 * stats.norm.ppf(0.9)) - 1
    assert ranges["coverage"][0] == pytest.approx(expected, abs=0.005)
    whole = failing_ranges(result, "cicf", 0.8).columns
    assert whole["points"].tolist() == [50]
    assert whole["verdict"].tolist() == [-1]
    exact = pointwise("linear", LinearT(), coverages=(0.8,), trials=50, n_test=20)
    assert len(failing_ranges(exact, "picf", 0.8)) == 0
    many = pointwise("friedman1", LinearT(), trials=3, n_train=30, n_test=9)
    with pytest.raises(UnanswerableError, match="several columns"):
        failing_ranges(many, "picf", 0.8)


def test_the_interval_of_coverage_counts_the_rows_that_all_trials_share() -> None:
    """Every trial meets the same y: intervals of trials alone hold the coverage in some 10 %."""
    rng, held, alone, tables = np.random.default_rng(0), 0, 0, 400
    for _ in range(tables):
        y, spread = rng.normal(size=200), 1.2816 + 0.02 * rng.normal(size=(30, 1))
        covered = np.abs(y) <= spread
        share = covered.mean(axis=1)
        mean = Record(
            metric="empirical_coverage", value=float(share.mean()), confidence=0.95, n=30.0
        )
        record = _crossed(mean, covered)
        held += record.lower <= 0.8 <= record.upper
        alone += abs(share.mean() - 0.8) <= stats.t.ppf(0.975, 29) * share.std(ddof=1) / 30**0.5
    assert abs(held / tables - 0.95) < 3 * math.sqrt(0.95 * 0.05 / tables)
    assert alone / tables < 0.5


def test_the_crossed_error_is_that_of_two_ways() -> None:
    """Means of squares of the two-way table: σ² = (MS_trials + MS_rows − MS_rest)/(Sn)."""
    chance = np.linspace(0.2, 0.9, 9) + np.array([[-0.4], [-0.3], [0.0], [0.0], [0.3], [0.4]])
    covered = np.random.default_rng(1).random((6, 9)) < chance
    table = covered.astype(float)
    trial, row, mean = table.mean(axis=1), table.mean(axis=0), table.mean()
    rest = table - trial[:, None] - row + mean
    squares = (9 * trial.var(ddof=1), 6 * row.var(ddof=1), np.square(rest).sum() / (5 * 8))
    want = (squares[0] + squares[1] - squares[2]) / 54
    assert want > max(squares[0], squares[1]) / 54
    record = _crossed(Record(metric="empirical_coverage", value=float(mean), n=6.0), covered)
    assert record.standard_error == pytest.approx(math.sqrt(want), rel=1e-12)
