"""Every sentence of the verdict: short, whole, in the words that `docs.test_words` allows."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

from docs.test_words import wrong_in_finding
from howsure.core.rng import child
from howsure.engine.finding import State
from howsure.predictions import Distribution, EvalSet
from howsure.verdict.family import examine
from howsure.verdict.findings import questions
from howsure.verdict.words import sentence
from verdict.drafts import STATES, drafts, finding, possible

PARTS = {
    "coverage": ("drift", "rows"),
    "bias": ("skew", "tails", "drift"),
    "spread": ("rows", "skew", "tails", "width", "drift"),
    "tails": ("width", "drift"),
}


def told(name: str, state: State, sign: float) -> list[str]:
    return [sentence(finding(each, state), each) for each in drafts(name, sign)]


def check(text: str) -> None:
    assert text.endswith("."), text
    assert "  " not in text
    assert text[0] != " "
    assert not wrong_in_finding(text), text
    for each in re.split(r"(?<=\.)\s+", text):
        words = [word for word in each.split() if any(map(str.isalnum, word))]
        assert 2 < len(words) <= 25, (len(words), each)


@pytest.mark.parametrize("name", questions())
def test_sentences_are_short_and_whole(name: str) -> None:
    for state in possible(name):
        for sign in (-1.0, 1.0):
            for text in told(name, state, sign):
                check(text)


@pytest.mark.parametrize("name", PARTS)
def test_sentences_of_what_is_part_of_another(name: str) -> None:
    for cause in PARTS[name]:
        for each in drafts(name, 1.0):
            text = sentence(finding(each, "caution"), each, cause)
            check(text)
            assert "this is part of" in text


@pytest.mark.parametrize("name", questions())
def test_no_effect_is_told_as_zero_or_in_powers(name: str) -> None:
    """Small effects keep two digits; signs and directions agree."""
    for each in (draft for size in (1e-3, 0.02, 0.4) for draft in drafts(name, size / 0.06)):
        state: State = "negligible" if "negligible" in possible(name) else possible(name)[-1]
        text = sentence(finding(each, state), each)
        assert not re.search(r"\de[-−+]\d", text), text
        assert " 0 points" not in text
        assert "by 0 " not in text
        assert "−0" not in text


def test_directions_are_those_of_the_signs() -> None:
    pairs = {
        "coverage": ("under-cover", "over-cover"),
        "bias": ("too high", "too low"),
        "spread": ("too large", "too small"),
        "skew": ("lower tail", "upper tail"),
        "tails": ("lighter", "heavier"),
        "one_sided": ("mostly below", "mostly above"),
        "width": ("overreact", "react too little"),
    }
    for name, (low, high) in pairs.items():
        assert low in told(name, "bad", -1.0)[0]
        assert high in told(name, "bad", 1.0)[0]


EXACT: dict[tuple[str, State], str] = {
    ("rows", "caution"): "Only 200 of 1,000 rows are distinct: y, inputs and predictions repeat. "
    "Copies count as one cluster; remove them, or name the column they share with "
    "howsure.Table(…, cluster=COLUMN).",
    ("coverage", "good"): "The 90 % intervals cover 84 % (82.0–86.0): in line with the nominal "
    "coverage.",
    ("coverage", "caution"): "The 90 % intervals cover 84 % (82.0–86.0). Possibly they under-cover "
    "by 6 points: p = 0.01, not significant after correction for all tests.",
    ("coverage", "bad"): "The 90 % intervals cover 84 % (82.0–86.0): they under-cover by 6 points.",
    ("coverage", "negligible"): "The 90 % intervals cover 84 % (82.0–86.0): they under-cover by 6 "
    "points. This is within the tolerance of 1 point.",
    ("coverage", "undecided"): "The 90 % intervals cover 84 % (82.0–86.0). No significant "
    "difference.",
    (
        "bias",
        "bad",
    ): "Predictions are 0.05 predicted sd too high on average: they are biased.",
    ("spread", "negligible"): "Actual errors are 0.94 × the predicted spread (0.92–0.96): the "
    "predicted spread is too large. This is within the tolerance of 2 %.",
    ("skew", "bad"): "Errors in skew shift predicted probabilities by up to 6 points: the lower "
    "tail is longer than predicted. Of y, 13 % are below the predicted 10 % quantile and 22 % "
    "above the 90 % quantile.",
    ("tails", "good"): "Tails are as predicted, to within 8 points.",
    ("ends", "caution"): "Intervals have no bounds in 24 % of rows and no upper bound in 2 % of "
    "rows; the others cover 87.3 %.",
    ("one_sided", "bad"): "y is below its interval in 10.5 % of rows and above it in 4.5 %: misses "
    "are mostly below.",
    ("level", "good"): "On average it says 50 %, 44 % happen (42–46): as it says.",
    ("level", "bad"): "On average it says 50 %, 44 % happen (42–46): too high.",
    ("sureness", "bad"): "Where it says 50 % (40–60), 44 % happen (42–46): too confident.",
    ("shape", "bad"): "Where it says 50 % (40–60), 44 % happen (42–46): too high.",
    ("class_groups", "bad"): "In site=north it says 50 %, 44 % happen (42–46): too high.",
    ("class_region", "bad"): "Where age is 0.4 to 0.6 it says 50 %, 44 % happen (42–46): too high.",
    ("impossible", "bad"): "3 of 300 rows with a class at 0 % had that class: what it calls "
    "impossible happens.",
    ("class_skill", "bad"): "The Brier score is 6 % above that of class frequencies (4.0 to 8.0): "
    "it is worse than class frequencies alone.",
    ("decision", "bad"): "Acting from 20 % on is worth 6.0 events per 100 rows less than never "
    "acting (4.0–8.0): never acting is better than acting from 20 % on. Where it says 20 %, 24 % "
    "happen (20–28).",
    ("support", "bad"): "0.6 % of y have probability 0 under their prediction: the predictive "
    "distribution rules out values that occurred.",
    (
        "groups",
        "good",
    ): "Intervals cover 82 % of 1,234 rows in season=winter, 88 % overall: no group differs by "
    "more than 3 points.",
    ("groups", "bad"): "Intervals cover 82 % of 1,234 rows in season=winter, 88 % overall: groups "
    "differ in coverage. That group under-covers by at least 8 points.",
    ("region", "caution"): "Where temperature > 21.5 and wind ≤ 3.2, coverage is 82 % (88 % "
    "expected from all rows). Possibly coverage depends on the inputs: p = 0.01, not "
    "significant after correction for all tests.",
    (
        "ease",
        "bad",
    ): "Where ease ≤ 0.9312, 82 % of 1,234 rows are covered (88 % expected from all rows): "
    "coverage depends on ease. T-CV is 0.150 (correctly specified model: 0.104).",
    ("congruence", "bad"): "Mean CCE is 0.34; a correctly specified model has 0.321: at some "
    "inputs the predictive distribution is wrong.",
    ("width", "bad"): "Actual errors are 1.17 × the predicted spread where widths are large, 1.21 "
    "× where small: widths overreact.",
    (
        "trade",
        "bad",
    ): "Adaptive widths are worse than a constant width by 6 % (miss rates up to 20 %; interval "
    "4.0–8.0): a constant width is better. Over all miss rates, adaptive widths beat a "
    "constant width by 3 %.",
    (
        "sets",
        "bad",
    ): "Sets of 1 label cover 82 % of 1,234 rows, all sets 88 %: coverage depends on the size of "
    "the set.",
    ("comparison", "good"): "forest beats linear model in CRPS by 0.06, or 12 % (p = 0.1).",
    ("skill", "bad"): "The CRPS is 6 % higher (4.0–8.0) than a climatology baseline (the "
    "distribution of y for every row): the baseline is better. Forecasts do discriminate "
    "between rows.",
    ("skill", "undecided"): "The CRPS is 6 % higher (4.0–8.0) than a climatology baseline (the "
    "distribution of y for every row). No significant gain or loss. Forecasts do discriminate "
    "between rows.",
    ("dependence", "caution"): "Errors are correlated in time (r = 0.06): effective sample size "
    "about 1,400 of 3,000.",
    ("dependence", "good"): "Errors are not correlated in time (r = 0.06).",
    ("dependence", "undecided"): "Errors may be correlated in time (r = 0.06). There are too few "
    "rows to decide.",
    ("drift", "bad"): "Around 2024-03-01 coverage fell from 93.3 % to 87.3 % (83.0–91.0): coverage "
    "drifts. It fell by at least 4 points. Over the last tenth of rows it is 95 %.",
    ("lead_time", "bad"): "Coverage falls with lead time: 93.1 % at 1 step, 87.1 % at 17–24 steps. "
    "It falls by 6 points (4.0–8.0).",
    ("lead_time", "caution"): "Coverage is 93.1 % at 1 step and 87.1 % at 17–24 steps. Possibly "
    "coverage falls with lead time by 6 points (4.0–8.0): p = 0.01, not significant "
    "after correction for all tests.",
    ("lead_time", "good"): "Coverage is 93.1 % at 1 step and 87.1 % at 17–24 steps: no lead time "
    "differs by more than 3 points.",
    (
        "drift",
        "good",
    ): "Coverage changes most around 2024-03-01, from 93.3 % to 87.3 % (83.0–91.0): changes stay "
    "within 3 points.",
}


@pytest.mark.parametrize(("name", "state"), EXACT)
def test_exact_text(name: str, state: State) -> None:
    assert told(name, state, -1.0)[0] == EXACT[name, state]


def test_every_finding_has_an_exact_text() -> None:
    assert {name for name, _ in EXACT} == set(questions())
    assert {state for _, state in EXACT} == set(STATES)


ROWS = {
    "without_y": "30 of 120 rows have no y; in all columns they are like the other rows. Coverage "
    "over all rows is between 68 and 93 %.",
    "corrected": "30 rows were delivered twice: pairs of rows with the same time differ only by "
    "small corrections. Keep one of each pair.",
    "variance": "Actual errors are 20.51 × the predicted spread and proportional to its square "
    "root: it looks like a variance. Give its square root, or that column with "
    "howsure.Table(…, variance=COLUMN).",
    "units": "Where plant=C, predictions look divided by 1,000. Use the same unit for y and "
    "predictions.",
    "leakage": "Actual errors are 0.10 × the predicted spread: the model may have seen these y, or "
    "its predicted spread is far too large. Evaluate on rows that the model never saw.",
    "target": "The input price is y itself. If it is an input of the model, this is leakage; if "
    "not, remove it from the inputs.",
    "marks": "y is −9999 in 30 rows (3 %), far from all others: this looks like a code for missing "
    "values. If so, howsure.Table(…, missing_value=[-9999], missing='drop') omits these rows.",
    "clipped": "y is 0 and never below in 30 rows (3 %): it looks clipped there. Use y before it "
    "was clipped, or predict a distribution with probability mass at that value.",
    "clipped_predictions": "Predictions are 10 and never above in 30 rows (3 %), and y is beyond "
    "in 25. They look clipped: give the model's original predictions.",
    "rounded": "y is rounded to 0.5, a step of 0.98 predicted sd. Give y unrounded, or predict a "
    "distribution of rounded values.",
    "censored": "y seems censored in 30 rows (3 %), by the column event: there it is a lower "
    "bound. No measure here accounts for that; without these rows, small y are "
    "over-represented.",
    "mean_and_sd": "The mean and the sd look swapped: exchanged, they agree. Name them with "
    "howsure.Table(…, mean=COLUMN, sd=COLUMN).",
    "swapped": "y and its prediction look swapped: exchanged, they agree. Name them with "
    "howsure.Table(…, y=COLUMN, point=COLUMN).",
    "one_prediction": "All rows have the same prediction, though y depends on age (r = 0.85). Give "
    "one prediction per row.",
    "order": "y and predictions have a correlation of 0.85 if one is reversed, but of 0.12 as "
    "given. Sort both into the same order, using an identifier per row.",
    "exchanged": "Predictions of plant=B and plant=C look swapped: exchanged, they fit y. Check "
    "how predictions were joined to rows on plant.",
    "log": "y looks like the logarithm of what was predicted. Use the same scale for both.",
    "multiple": "Predictions look divided by 1.5: y rises with them by that factor. If units "
    "differ, use the same unit for both; "
    "howsure.recalibrate(new, calibration, method='multiply') estimates it.",
}


def test_what_rows_are_not_and_what_to_do() -> None:
    seen = {}
    for each in drafts("rows", 1.0):
        seen.setdefault(each.facts["found"][0].name, sentence(finding(each, "caution"), each))
    assert seen == {"copies": EXACT["rows", "caution"], **ROWS}
    said = [sentence(finding(each, "caution"), each) for each in drafts("rows", 1.0)]
    assert (
        "y and predictions have a correlation of 0.85 if one is moved by 1 row in time within each "
        "series, but of 0.12 as given. Check that both refer to the same times, for example in one "
        "time zone."
    ) in said
    assert any(
        each.startswith("The input price predicts y to within 0.03 predicted sd. If")
        for each in said
    )
    assert (
        "What was predicted looks like the decimal logarithm of y. Use the same scale for both."
        in said
    )


def test_what_sets_rows_without_y_apart() -> None:
    drawn = [each for each in drafts("rows", 1.0) if each.facts["found"][0].name == "without_y"]
    said = [sentence(finding(each, "caution"), each) for each in drawn[1:]]
    assert [each.removeprefix("30 of 120 rows have no y") for each in said] == [
        ": 58 % of those in site=B, 3 % of the others.",
        "; their predicted sd is 1.8 times that of the rest.",
        "; their interval is 0.73 times as wide as that of the rest.",
        "; their age is above that of 78 % of the rest.",
        "; their age is less often extreme than that of the rest.",
    ]


def test_groups_that_differ_in_bias_or_spread() -> None:
    winter = "In season=winter"
    assert told("groups", "bad", 1.0)[5:9] == [
        f"{winter} predictions are 0.40 predicted sd too low on average, 0.10 overall: groups "
        "differ in bias.",
        f"{winter} predictions are 0.40 predicted sd too low on average, 0.48 too high in "
        "season=summer: groups differ in bias. The biases cancel overall.",
        f"{winter} actual errors are 1.25 × the predicted spread, 1.06 × overall: groups differ in "
        "spread.",
        f"{winter} actual errors are 1.25 × the predicted spread, 1.06 × overall, 0.80 × in "
        "season=summer: groups differ in spread.",
    ]
    assert "too high on average, 0.10 too low overall" in told("groups", "bad", -1.0)[5]


def test_whole_numbers_are_not_asked_for_unrounded() -> None:
    rate = np.exp(child(0, "rates").normal(size=300))
    held = EvalSet.checked(
        child(0, "counts").poisson(rate), Distribution.normal(rate, np.sqrt(rate))
    )
    told = next(each.sentence for each in examine(held)[0] if each.id == "rows")
    assert re.match(
        r"y contains whole numbers, in steps of [\d.]+ predicted sd\. If they are counts", told
    )


def test_ratios_have_four_digits_at_most() -> None:
    y = np.array([512_345.678, -498_765.432, 503_210.987])
    found, _ = examine(EvalSet.checked(y, Distribution.normal(np.zeros(3), np.ones(3))))
    told = {each.id: each.sentence for each in found}
    assert re.match(
        r"Actual errors are \d{3},\d00 × the predicted spread \(0.00–\d,", told["spread"]
    )
    assert re.match(r"Predictions are \d{3},\d00 predicted sd too", told["bias"])


def test_drift_names_what_changed() -> None:
    coverage, spread, bias = (told("drift", "bad", 1.0)[place] for place in (0, 4, 8))
    assert coverage.startswith("Around 2024-03-01 coverage rose from 81.3 % to 87.3 % (83.0–91.0)")
    assert spread.startswith(
        "Around 2024-03-01 actual errors changed from 0.81 to 0.87 (0.83–0.91) × the predicted"
    )
    assert bias.startswith(
        "Around 2024-03-01 y − prediction moved from 0.81 to 0.87 (0.83–0.91) predicted sd:"
    )
    assert "Predicted probabilities shifted by at least 4 points." in spread
    claimed = told("drift", "bad", 1.0)[-3]
    assert "from 81.3 % (90.1 % expected) to 87.3 % (95.3 % expected)" in claimed


def test_a_lead_time_is_named_with_what_it_claims() -> None:
    _, claimed, alone = told("lead_time", "bad", -1.0)
    assert claimed == (
        "Coverage falls with lead time: 93.1 % (90 % expected) at 1 step, 87.1 % (95 % expected) "
        "at 2 steps. It falls by 6 points (4.0–8.0)."
    )
    assert alone == (
        "At 3–4 steps, 82 % of 1,234 rows are covered (88 % expected from all rows): coverage "
        "depends on lead time."
    )
    rising = told("lead_time", "bad", 1.0)[0]
    assert rising.startswith("Coverage rises with lead time: 93.1 % at 1 step, 99.1 % at 17–24")
    assert rising.endswith("It rises by 6 points (4.0–8.0).")


def test_rows_that_would_decide() -> None:
    """An interval of ±4 points about 0 lies within 3 points from (4/3)² as many rows on."""
    (each, *_) = drafts("coverage", 0.0)
    wide = finding(each, "undecided")
    for half, text in ((0.04, "about 240 more rows should decide"), (0.02, "")):
        text_of = sentence(replace(wide, lower=-half, upper=half), each)
        assert text in text_of
        assert ("should decide" in text_of) == bool(text)


def test_skill_is_told_by_its_state() -> None:
    by_crps, by_interval, beaten, idle, behind = drafts("skill", 1.0)
    assert sentence(finding(by_crps, "good"), by_crps) == (
        "The CRPS is 6 % lower (4.0–8.0) than a climatology baseline (the distribution of y for "
        "every row)."
    )
    assert sentence(finding(by_interval, "undecided"), by_interval) == (
        "The interval score is 6 % lower (4.0–8.0) than a climatology baseline (the distribution "
        "of y for every row). No significant gain or loss."
    )
    assert sentence(finding(beaten, "good"), beaten) == (
        "The CRPS is 6 % lower (4.0–8.0) than a climatology baseline (the distribution of y for "
        "every row). The CRPS is 26 % (24.0–28.0) higher than the distribution of y in the same "
        "hour, known only in hindsight."
    )
    assert sentence(finding(idle, "caution"), idle) == (
        "Predictions are no better than a climatology baseline (skill 6 %, 4 to 8)."
    )
    assert sentence(finding(behind, "good"), behind) == (
        "The pinball loss is 6 % lower (4.0–8.0) than the seasonal naive forecast (a week before). "
        "The pinball loss is 30 % lower (28.0–32.0) than persistence (24 steps before)."
    )


def test_what_is_as_good_as_zero_is_told_so() -> None:
    (each, *_) = drafts("bias", 1e-7)
    assert sentence(finding(each, "good"), each).startswith(
        "Predictions are within 0.01 predicted sd of y on average"
    )


BEST_SETS = (
    "forest beats linear model in CRPS by 0.06, or 12 % (p = 0.1).",
    "forest and linear model do not differ significantly in CRPS (p = 0.1).",
    "forest has the lowest CRPS; linear model, boosted trees and old model are significantly "
    "worse.",
    "forest and linear model do not differ significantly in CRPS; both beat boosted trees.",
    "forest and linear model do not differ significantly in CRPS; boosted trees is significantly "
    "worse.",
    "forest, linear model and boosted trees do not differ significantly in CRPS; all beat old "
    "model.",
    "forest, linear model, boosted trees and old model do not differ significantly in CRPS.",
    "forest has the lowest CRPS; it and 6 others of 10 models do not differ significantly.",
    "forest has the lowest CRPS; the other 9 models are significantly worse.",
    "forest beats linear model in CRPS by 0.06, or 12 % (p = 0.1). ridge cannot be compared: it "
    "gives intervals at 80 %.",
    "forest beats linear model in CRPS by 0.06, or 12 % (p = 0.1). 2 models cannot be compared; "
    "the table gives the reasons.",
)


def test_every_wording_of_the_best_set() -> None:
    assert tuple(told("comparison", "good", -1.0)) == BEST_SETS
