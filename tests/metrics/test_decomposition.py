"""MCB, DSC and UNC: the parts of a score, their errors, and what they rest on."""

from __future__ import annotations

import math
from functools import partial

import numpy as np
import pytest
from scipy import special

import howsure
from howsure.core.errors import InputError
from howsure.core.records import Record
from howsure.core.rng import child
from howsure.core.times import Chronology, slots
from howsure.engine.measure import evaluate
from howsure.metrics import mean_decomposition, mean_pinball, pinball_loss, quantile_decomposition
from howsure.predictions import EvalSet
from howsure.stats.isotonic import isotonic_mean
from howsure.topics.decomposition.parts import (
    FOLDS,
    SHARE_INSIDE,
    _held_out,
    elementary_means,
    elementary_quantiles,
)
from howsure.topics.skill import MIDPOINTS, climatology_pinball
from isotonic import isotonic_quantiles
from scripts import ROOT, script

NAMES = ("miscalibration", "discrimination", "outcome_uncertainty")
OF_MEANS = ("mean_miscalibration", "mean_discrimination", "mean_outcome_uncertainty")
LEVELS = np.array([0.1, 0.5, 0.8])


def table(n: int, *names: object) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """y, quantiles that are too low and too close, and the mean that they are about."""
    rng = child(0, "decomposition", *map(str, names))
    x = rng.normal(size=n)
    y = x + rng.normal(size=n)
    return y, x[:, None] - 0.5 + 0.7 * special.ndtri(LEVELS), x


def parts(found: object) -> list[float]:
    return [
        getattr(found, name).value for name in ("miscalibration", "discrimination", "uncertainty")
    ]


def records(model: EvalSet, *names: str, slow: tuple[str, ...] = ()) -> dict[str, Record]:
    found = evaluate(model, metrics=names or (*NAMES, *OF_MEANS), slow=slow)
    return {record.metric: record for record in found.records}


@pytest.mark.parametrize("n", [10, 30, 400])
def test_parts_add_up_to_the_score(n: int) -> None:
    y, quantiles, mean = table(n, "sum")
    for found, score in (
        (quantile_decomposition(y, quantiles, LEVELS), mean_pinball(y, quantiles, LEVELS).mean()),
        (mean_decomposition(y, mean), np.square(y - mean).mean()),
    ):
        mcb, dsc, unc = parts(found)
        assert found.score == pytest.approx(score, rel=1e-12)
        assert mcb - dsc + unc == pytest.approx(score, abs=1e-10)


def test_thirty_rows_by_hand() -> None:
    """Fold by fold, level by level, with plain loops."""
    y, quantiles, mean = table(30, "by hand")
    held = _held_out((y, *quantiles.T), np.ones(30), None).astype(bool)
    assert held.sum(axis=1).tolist() == [1] * 30
    losses, unc = [], []
    for column, level in zip(quantiles.T, LEVELS, strict=True):
        inside = pinball_loss(y, isotonic_quantiles(column, y, level), level=level)
        outside = np.zeros(30)
        for fold in range(FOLDS):
            out = held[:, fold]
            x, fitted = column[~out], isotonic_quantiles(column[~out], y[~out], level)
            order = np.argsort(x)
            there = np.interp(column[out], x[order], fitted[order])
            outside[out] = pinball_loss(y[out], there, level=level)
        losses.append(SHARE_INSIDE * inside + (1 - SHARE_INSIDE) * outside)
        unc.append(climatology_pinball(y, level=level))
    recalibrated, of_all = np.mean(losses), np.mean(unc)
    score = mean_pinball(y, quantiles, LEVELS).mean()
    found = quantile_decomposition(y, quantiles, LEVELS)
    assert parts(found) == pytest.approx([score - recalibrated, of_all - recalibrated, of_all])

    held = _held_out((y, mean), np.ones(30), None).astype(bool)
    outside = np.zeros(30)
    for fold in range(FOLDS):
        out = held[:, fold]
        order = np.argsort(mean[~out])
        fitted = isotonic_mean(mean[~out], y[~out])[order]
        outside[out] = np.square(y[out] - np.interp(mean[out], mean[~out][order], fitted))
    inside = np.square(y - isotonic_mean(mean, y))
    recalibrated = np.mean(SHARE_INSIDE * inside + (1 - SHARE_INSIDE) * outside)
    expected = [np.square(y - mean).mean() - recalibrated, y.var(ddof=1) - recalibrated]
    found = mean_decomposition(y, mean)
    assert parts(found) == pytest.approx([*expected, y.var(ddof=1)])


def test_a_constant_shift_is_all_miscalibration() -> None:
    """As only the order of forecasts counts, DSC and UNC know nothing of it."""
    y, quantiles, mean = table(300, "shift")
    for found, moved in (
        (
            quantile_decomposition(y, quantiles, LEVELS),
            quantile_decomposition(y, quantiles + 9, LEVELS),
        ),
        (mean_decomposition(y, mean), mean_decomposition(y, 2 * mean + 9)),
    ):
        assert parts(moved)[1:] == pytest.approx(parts(found)[1:], rel=1e-9)
        assert moved.score - found.score == pytest.approx(parts(moved)[0] - parts(found)[0])


def test_no_interval_of_the_uncertainty_reaches_below_a_score() -> None:
    y, quantiles, mean = table(200, "one huge")
    y[3] = 1e9
    for found in (quantile_decomposition(y, quantiles, LEVELS), mean_decomposition(y, mean)):
        assert found.uncertainty.lower == 0.0
        assert found.uncertainty.value < found.uncertainty.upper


def test_copies_are_weights_and_order_is_none() -> None:
    y, quantiles, mean = table(60, "weights")
    y, quantiles, mean = y.round(1), quantiles.round(1), mean.round(1)
    times = child(1, "weights").integers(0, 90, 60)  # past the copies that are drawn one by one
    times[:20] = child(2, "weights").integers(0, 4, 20)
    rows = child(3, "order").permutation(np.repeat(np.arange(60), times))
    for weighted, plain in (
        (
            quantile_decomposition(y, quantiles, LEVELS, weights=times),
            quantile_decomposition(y[rows], quantiles[rows], LEVELS),
        ),
        (mean_decomposition(y, mean, weights=times), mean_decomposition(y[rows], mean[rows])),
    ):
        for name in ("miscalibration", "discrimination", "uncertainty"):
            one, other = getattr(weighted, name), getattr(plain, name)
            assert one.value == pytest.approx(other.value, rel=1e-9, abs=1e-12)
            assert one.error == pytest.approx(other.error, rel=1e-9)
            assert one.lower == pytest.approx(other.lower, rel=1e-9, abs=1e-12)


def test_folds_are_clusters_or_times() -> None:
    y, quantiles, _ = table(600, "folds")
    mass, member = np.ones(600), np.arange(600) % 31
    held = _held_out((y, *quantiles.T), mass, member)
    for cluster in range(31):
        assert len(np.unique(np.argmax(held[member == cluster], axis=1))) == 1
    assert sorted(len(np.unique(member[held[:, fold] > 0])) for fold in range(FOLDS)) == [
        6,
        6,
        6,
        6,
        7,
    ]
    when = child(4, "when").permutation(600)
    held = _held_out((y,), mass, Chronology(slots(when)))
    fold = np.argmax(held, axis=1)[np.argsort(when)]
    assert fold.tolist() == np.repeat(np.arange(FOLDS), 120).tolist()


def test_importance_weights_change_no_fold() -> None:
    y, quantiles, _ = table(200, "importance")
    weights = child(5, "importance").exponential(size=200)
    plain = _held_out((y, *quantiles.T), np.ones(200), None)
    assert ((_held_out((y, *quantiles.T), weights, None) > 0) == (plain > 0)).all()
    halves = quantile_decomposition(y, quantiles, LEVELS, weights=weights)
    whole = quantile_decomposition(y, quantiles, LEVELS, weights=7.3 * weights)
    assert parts(halves) == pytest.approx(parts(whole))
    assert halves.discrimination.error == pytest.approx(whole.discrimination.error)


def test_equal_rows_of_importance_weights_are_in_several_folds_in_any_order() -> None:
    y, weights = np.ones(14), child(5, "equal").exponential(2.0, size=14)
    held = _held_out((y, y), weights, None)
    assert (held.sum(axis=0) < weights.sum()).all()
    assert (_held_out((y, y), weights[::-1], None) == held[::-1]).all()
    assert parts(quantile_decomposition(y, y[:, None], [0.5], weights=weights)) == [0.0, 0.0, 0.0]


def test_bad_input_is_refused() -> None:
    y, quantiles, mean = table(20, "bad")
    with pytest.raises(InputError, match="rows that count must be at least 10, got 9"):
        quantile_decomposition(y[:9], quantiles[:9], LEVELS)
    for parts_of in (mean_decomposition, partial(quantile_decomposition, levels=[0.5])):
        forecast = mean if parts_of is mean_decomposition else mean[:, None]
        for rows, weights, count in ((5, None, "5"), (20, np.full(20, 0.05), "1")):
            with pytest.raises(InputError, match=f"must be at least 10, got {count}$"):
                parts_of(y[:rows], forecast[:rows], weights=weights, cluster=np.arange(rows))
    with pytest.raises(InputError, match="at least 5 clusters, got 2"):
        mean_decomposition(y, mean, cluster=np.arange(20) % 2)
    with pytest.raises(InputError, match="cluster must have 20 rows, got 3"):
        mean_decomposition(y, mean, cluster=[1, 2, 3])
    with pytest.raises(InputError, match="levels must increase strictly"):
        quantile_decomposition(y, quantiles, [0.5, 0.1, 0.8])


def test_an_evaluation_has_six_parts_that_add_up() -> None:
    y, _, x = table(400, "evaluation")
    model = EvalSet.checked(y, howsure.Distribution.normal(x, np.full(400, 0.7)))
    found = records(model)
    mcb, dsc, unc = (found[name] for name in NAMES)
    quantiles = x[:, None] + 0.7 * special.ndtri(MIDPOINTS)
    own = quantile_decomposition(y, quantiles, MIDPOINTS)
    assert [mcb.value, dsc.value, unc.value] == pytest.approx(parts(own))
    assert mcb.value - dsc.value + unc.value == pytest.approx(own.score, abs=1e-10)
    assert mcb.lower < mcb.value < mcb.upper
    assert {record.source for record in found.values()} == {"distributions"}
    assert mcb.options["no_null"] == "shown if requested by name"
    square = np.square(y - x).mean()
    assert found[OF_MEANS[0]].value - found[OF_MEANS[1]].value + found[OF_MEANS[2]].value == (
        pytest.approx(square, abs=1e-10)
    )


def test_asked_for_by_name_a_right_forecast_stands_beside() -> None:
    rng = child(6, "null")
    x = rng.normal(size=400)
    y = x + rng.normal(size=400)
    for sd, right in ((1.0, True), (0.3, False)):
        model = EvalSet.checked(y, howsure.Distribution.normal(x, np.full(400, sd)))
        found = records(model, slow=("miscalibration",))
        mcb = found["miscalibration"]
        assert abs(mcb.null) < 0.02 * found["outcome_uncertainty"].value
        assert mcb.null_lower < mcb.null < mcb.null_upper
        assert (mcb.null_lower <= mcb.value <= mcb.null_upper) == right
        assert (mcb.p > 0.05) == right
        assert math.isnan(found["mean_miscalibration"].p)  # which was not asked for
    wide = howsure.Quantiles([0.1, 0.9], x[:, None] + [-1.3, 1.3])
    why = records(EvalSet.checked(y, wide), *NAMES, slow=NAMES)["miscalibration"].options["no_null"]
    assert why == "quantiles give no distribution beyond their outermost levels"
    alone = records(EvalSet.checked(y, point=x), *OF_MEANS, slow=OF_MEANS)["mean_miscalibration"]
    assert alone.options["no_null"] == "a point forecast alone gives no distribution of y"


def test_right_forecasts_of_copies_are_those_of_weights() -> None:
    y, _, x = table(80, "null of copies")
    times = child(8, "copies").integers(1, 4, 80)
    law, rows = howsure.Distribution.normal(x, np.ones(80)), np.repeat(np.arange(80), times)
    weighted = EvalSet.checked(y, law, weights=times)
    copied = EvalSet.checked(y[rows], law.take(rows))
    one, other = (
        records(each, "miscalibration", slow=NAMES)["miscalibration"] for each in (weighted, copied)
    )
    assert one.null == pytest.approx(other.null, rel=1e-9)
    assert one.p == other.p


def test_many_rows_are_measured_in_part_unless_asked_for() -> None:
    y, _, x = table(2_000, "part")
    model = EvalSet.checked(y, howsure.Distribution.normal(x, np.ones(2_000)))
    few = records(model, "miscalibration")["miscalibration"]
    assert few.n == 1_500
    assert "on 1,500 of 2,000 rows" in few.reason
    all_of_them = records(model, "miscalibration", slow=("miscalibration",))["miscalibration"]
    assert all_of_them.n == 2_000
    assert all_of_them.standard_error < few.standard_error


def test_what_has_no_quantiles_says_so() -> None:
    y, _, x = table(50, "none")
    found = records(EvalSet.checked(y, howsure.Intervals(x - 1, x + 1, coverage=0.9)))
    assert math.isnan(found["miscalibration"].value)
    assert found["miscalibration"].reason
    few = records(EvalSet.checked(y[:8], howsure.Distribution.normal(x[:8], np.ones(8))))
    assert few["miscalibration"].reason == "rows that count must be at least 10, got 8"


def test_recalibration_in_sample_finds_faults_where_none_are() -> None:
    """A right forecast of 300 rows: 6 % of UNC in-sample, −4 % in folds, near 0 together."""
    inside, outside, together = [], [], []
    for number in range(60):
        rng = child(number, "in-sample")
        x = rng.normal(size=300)
        y = x + rng.normal(size=300)
        quantiles = x[:, None] + special.ndtri(MIDPOINTS)
        score = mean_pinball(y, quantiles, MIDPOINTS).mean()
        losses = [
            pinball_loss(y, isotonic_quantiles(column, y, level), level=level).mean()
            for column, level in zip(quantiles.T, MIDPOINTS, strict=True)
        ]
        found = quantile_decomposition(y, quantiles, MIDPOINTS)
        unc = found.uncertainty.value
        bare = score - np.mean(losses)
        inside.append(bare / unc)
        together.append(found.miscalibration.value / unc)
        outside.append(
            (found.miscalibration.value - SHARE_INSIDE * bare) / (1 - SHARE_INSIDE) / unc
        )
        assert found.miscalibration.lower < 0 < found.miscalibration.upper
    assert 0.058 < np.mean(inside) < 0.068
    assert -0.042 < np.mean(outside) < -0.032
    assert abs(np.mean(together)) < 0.008


@pytest.mark.parametrize("level", [0.1, 0.5, 0.9])
def test_elementary_scores_add_up_to_the_pinball_loss(level: float) -> None:
    y, quantiles, _ = table(40, "murphy")
    forecast, weights = quantiles[:, 1].round(1), child(7, "murphy").integers(1, 4, 40)
    y = y.round(1)
    edges = np.unique(np.concatenate([y, forecast]))
    scores = elementary_quantiles(y, forecast, edges, level=level, weights=weights)
    whole = float(scores[:-1] @ np.diff(edges))  # steps from one edge to the next
    expected = np.average(pinball_loss(y, forecast, level=level), weights=weights)
    assert whole == pytest.approx(expected, rel=1e-12)
    far = elementary_quantiles(y, forecast, [edges[0] - 1, edges[-1]], level=level)
    assert far == pytest.approx([0, 0], abs=1e-15)


def test_elementary_scores_add_up_to_the_squared_error() -> None:
    y, _, mean = table(40, "murphy of means")
    edges = np.unique(np.concatenate([y, mean]))
    middles = (edges[1:] + edges[:-1]) / 2  # straight lines from one edge to the next
    whole = float(elementary_means(y, mean, middles) @ np.diff(edges))
    assert whole == pytest.approx(np.square(y - mean).mean(), rel=1e-12)


def test_elementary_scores_by_definition() -> None:
    y, quantiles, mean = table(30, "definition")
    for theta in (-1.0, 0.2, y[3], mean[4]):
        rows = [
            (0.9 if b > a else 0.1) * (min(a, b) <= theta < max(a, b))
            for a, b in zip(quantiles[:, 2], y, strict=True)
        ]
        found = elementary_quantiles(y, quantiles[:, 2], theta, level=0.9)
        assert found == pytest.approx([np.mean(rows)])
        rows = [
            2 * abs(b - theta) * (min(a, b) <= theta < max(a, b))
            for a, b in zip(mean, y, strict=True)
        ]
        assert elementary_means(y, mean, theta) == pytest.approx([np.mean(rows)])


def recorded() -> dict[tuple[str, int], list[float]]:
    """What docs/verdict.md says of the parts: by forecasts and rows, in the order of columns."""
    whole = (ROOT / "docs" / "verdict.md").read_text(encoding="utf-8")
    section = whole.partition("## Parts of a score")[2].partition("<!--")[0]
    found = {}
    for line in section.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) == 8 and cells[1].replace(",", "").isdigit():
            found[cells[0], int(cells[1].replace(",", ""))] = [float(cell) for cell in cells[2:]]
    return found


def test_pages_say_what_was_recorded() -> None:
    lines = recorded()
    assert len(lines) == 59
    page = ROOT / "docs" / "explanations" / "calibrated-is-not-useful.md"
    told = page.read_text(encoding="utf-8").replace("−", "-")
    for column, words in enumerate(("learnt from all rows", "learnt from the other", "as howsure")):
        (row,) = (line for line in told.splitlines() if line.startswith(f"| {words}"))
        shown = [float(cell) for cell in row.strip("|").split("|")[1:]]
        assert shown == [lines["right", n][column] for n in (100, 300, 1_000)]
    held = [line[3] for line in lines.values()]
    assert (round(min(held)), max(held)) == (92, 100)
    assert min(line[5] for line in lines.values()) > 95
    assert max(abs(line[2]) for (_, n), line in lines.items() if n >= 300) <= 1.0


@pytest.mark.parametrize(
    "name", ["right", "noise", "right, counts", "20 clusters that share forecasts"]
)
@pytest.mark.rate
def test_intervals_of_the_parts_hold(name: str) -> None:
    """A small version of `benchmarks/intervals.py --parts`."""
    tables = 60
    found = script("benchmarks/intervals.py").off(name, 1_000, tables)
    inside, folds, mcb, dsc, mcb_held, dsc_held = np.nanmean(found, axis=0)
    assert folds < min(mcb, 0.0) < max(mcb, 0.0) < inside
    assert abs(mcb) < 0.6
    assert abs(dsc) < 1.5
    for share in (mcb_held, dsc_held):
        assert share > 0.93 - 3 * math.sqrt(0.93 * 0.07 / tables)
