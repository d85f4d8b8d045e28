"""The page on congruence: its words, its numbers, what was published, what may be missing."""

from __future__ import annotations

import csv
import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from howsure.core.errors import InputError
from howsure.report.document import Document
from howsure_studies.congruence import (
    TRUTH,
    CongruenceResult,
    CongruenceRun,
    CongruenceStudies,
    congruence_report,
)
from howsure_studies.congruence.reliability import welch
from howsure_studies.congruence.result import (
    Diagnosis,
    ModelPredictions,
    Monotonicity,
    MonotonicityResult,
    Rejection,
    Robustness,
)
from howsure_studies.congruence.sentences import blind_spots, findings, worst_stretch
from howsure_studies.engine import published
from report.words import check_words, figures

HOSTILE = "</script><script>window.pwned=1</script>"
ROWS = 40
LEVELS: dict[str, dict[str, float]] = {
    "poisson": {"cce": 0.12, "cce_null": 0.06, "ece": 0.13, "ece_exact": 0.14, "nll": 2.46},
    "double_poisson": {"cce": 0.03, "cce_null": 0.025, "ece": 0.2, "ece_exact": 0.03, "nll": 1.5},
    TRUTH: {"cce": 0.02, "cce_null": 0.02, "ece": 0.21, "ece_exact": 0.03, "nll": 1.4},
}


def run(
    model: str, seed: int = 0, *, task: str = "discrete wave", **values: float
) -> CongruenceRun:
    """CCE is higher in the second half of the rows; spreads are 0.01 over samples."""
    given = {**LEVELS.get(model, LEVELS["poisson"]), "mae": 1.0, **values}
    given = {"nll_unnormalised": given["nll"] - 0.05, **given}
    shape = np.where(np.arange(ROWS) < ROWS // 2, 0.5, 1.5)
    cce = given["cce"]
    spread = np.array([-0.01, 0.01]) / math.sqrt(2.0)
    return CongruenceRun(
        task=task,
        model=model,
        seed=seed,
        n=ROWS,
        values=given,
        repeats=cce + 0.3 * spread,
        bootstraps={
            "cce": (cce + 0.004 + spread)[:, None],
            **{name: given[name] + spread for name in ("ece", "nll", "mae")},
        },
        rows={"cce": cce * shape, "cce_sd": np.full(ROWS, 0.01), "nll": shape, "error": shape},
    )


def failed(model: str, reason: str) -> CongruenceRun:
    reasons = dict.fromkeys(("cce", "ece", "ece_exact", "nll", "mae"), reason)
    return replace(
        run(model), values={}, repeats=np.empty(0), bootstraps={}, rows={}, reasons=reasons
    )


def rejected(model: str, *, helps: bool) -> Rejection:
    loss = np.arange(ROWS, dtype=np.float64)
    scores = loss if helps else -loss
    losses = {"mae": loss, "nll": loss}
    return Rejection(
        task="discrete wave",
        model=model,
        scores=scores,
        losses=losses,
        p_values=dict.fromkeys(losses, 0.001 if helps else 1.0),
    )


def trend(model: str, kind: str, sign: float, trials: int = 3) -> Monotonicity:
    levels = np.arange(6.0)
    table = 0.1 + 0.01 * np.arange(trials)[:, None] + 0.05 * sign * levels
    values = {"cce": table, "ece": -table, "nll": np.full((trials, 6), np.nan)}
    return Monotonicity(
        task="discrete wave", model=model, kind=kind, severities=levels, values=values
    )


def spoilt(model: str) -> Robustness:
    values = {"nll": [2.0, 3.0, 2.5], "ece": [0.1, 0.1, 0.2], "cce": [0.1, 0.11, 0.09]}
    return Robustness(
        model=model,
        settings=("as they are", "outliers at 10 sd", "one sd × 0.001"),
        spoilt=np.array([0, 2, 1]),
        values={name: np.array(held) for name, held in values.items()},
        n=ROWS,
    )


def studies(
    seed: int = 0,
    *,
    task: str = "discrete wave",
    more: tuple[CongruenceRun, ...] = (),
    **parts: Any,
) -> CongruenceStudies:
    x = np.arange(ROWS, dtype=np.float64)
    models = [name for name in LEVELS if name != TRUTH]
    whole: dict[str, Any] = {
        "rejections": tuple(rejected(name, helps=name == "poisson") for name in models),
        "monotonicity": MonotonicityResult(
            curves=(trend("poisson", "mixup", 1.0), trend("double_poisson", "mixup", -1.0))
        ),
        "diagnoses": tuple(
            Diagnosis(
                task="discrete wave",
                model=name,
                x=x[:, None],
                cce=x,
                error=x**2,
                nll=np.full(ROWS, np.nan),
            )
            for name in models
        ),
        "robustness": tuple(spoilt(name) for name in models),
        "beliefs": tuple(
            ModelPredictions(
                model=name,
                y=x,
                point=x,
                lower=x - 1,
                upper=x + 1,
                x=x,
                pit=(np.arange(ROWS) + 0.5) / ROWS if name == "poisson" else None,
                seed=seed,
            )
            for name in LEVELS
        ),
    }
    return CongruenceStudies(
        task=task,
        units="counts",
        counts=True,
        result=CongruenceResult(
            runs=(*(run(name, seed, task=task) for name in LEVELS), *more), options={"draws": 5.0}
        ),
        seed=seed,
        **{**whole, **parts},
    )


@pytest.fixture(scope="module")
def page() -> Document:
    return congruence_report({"wave": [studies()]}, title="A title", command="howsure x")


def line(page: Document, question: str, part: int = 0) -> Any:
    return {one.question: one for one in page.sections[part].lines}[question]


def grid(page: Document, title: str, part: int = 0) -> Any:
    return {one.title: one for one in page.sections[part].grids}[title]


def test_the_headline_says_who_is_wrong_and_what_ece_sees(page: Document) -> None:
    assert page.headline is not None
    assert page.headline.text == (
        "Not all: CCE finds 1 of 2 models on wave misspecified at some x, by more than 2 standard "
        "errors. The worst, poisson, has 2 times the CCE of a correctly specified model."
    )
    assert page.headline.tone == "caution"
    assert page.opening.lines[1].text == (
        "Of 1 misspecified model on a task with an accepted one, ECE with P(Y ≤ y) finds none "
        "worse. Spread over the cells of counts, ECE finds 1 worse."
    )
    two = congruence_report({"wave": [studies()], "again": [studies()]})
    assert two.title == "Are predictive distributions correct at every x? 2 models on 2 tasks"
    assert two.headline is not None
    assert two.headline.text == (
        "Not all: CCE finds a model misspecified at some x in 2 of 4 tests on 2 tasks, by more "
        "than 2 standard errors. The worst, poisson on wave, has 2 times the CCE of a correctly "
        "specified model."
    )
    assert two.opening.lines[1].text.startswith(
        "Of 2 misspecified models on a task with an accepted"
    )
    check_words(two)


@pytest.mark.parametrize(
    ("change", "tone", "words"),
    [
        ({"cce_null": 0.12}, "undecided", "No significant fault: CCE finds none of 2 models on"),
        ({"cce_null": 0.01}, "bad", "No: CCE finds 2 of 2 models on wave misspecified at some x."),
        ({"cce_null": math.nan}, "info", "Inconclusive: the CCE of a correctly specified"),
    ],
)
def test_the_headline_has_an_answer_in_every_state(
    change: dict[str, float], tone: str, words: str
) -> None:
    runs = (run("poisson", **change), run("double_poisson", cce=0.12, **change))
    bare = studies(rejections=(), monotonicity=None, diagnoses=(), robustness=(), beliefs=())
    page = congruence_report({"wave": [replace(bare, result=CongruenceResult(runs=runs))]})
    assert page.headline is not None
    assert page.headline.tone == tone
    assert page.headline.text.startswith(words)
    check_words(page)
    agreed = run("poisson", ece=0.9), run("double_poisson", ece=0.1, ece_exact=0.1)
    same = congruence_report({"wave": [replace(bare, result=CongruenceResult(runs=agreed))]})
    assert same.opening.lines[1].text.endswith("ECE finds 1 worse, as CCE does.")


def test_the_first_screen_judges_every_model_on_every_task(page: Document) -> None:
    (grid,) = page.opening.grids
    (first, second) = grid.parts[0].rows
    assert [cell.text for cell in first] == ["poisson", "2.00"]
    assert (first[1].tone, second[1].tone) == ("bad", "undecided")
    (figure,) = page.opening.choices[0].options[0].figures
    assert [layer.series for layer in figure.layers] == [
        *["CCE, ± sd over bootstrap samples"] * 2,
        "a correctly specified model",
    ]


def test_sentences_say_what_is_wrong_and_where(page: Document) -> None:
    wrong = line(page, "poisson")
    assert wrong.tone == "bad"
    # The last fifth of 40 rows by x, 1.5 times the mean.
    assert wrong.text == (
        "Misspecified: its CCE of 0.120 is 2 times that of a correctly specified model (0.060). "
        "It is largest for x from 20 to 24 (0.180)."
    )
    assert line(page, "double_poisson").tone == "undecided"
    assert line(page, "double_poisson").text == (
        "CCE is 0.030, that of a correctly specified model 0.025: no significant difference."
    )
    assert "ECE of 0.210 (0.030 spread over cells)" in line(page, TRUTH).text
    assert line(page, "ECE, cells").tone == "good"
    plain = line(page, "Plain ECE")
    assert plain.tone == "bad"
    assert "poisson: 0.130 for poisson, 0.210 for the true distribution" in plain.text
    assert "in 1 of 2 curves" in line(page, "Perturbed data").text
    assert (
        "ECE in 1. CCE does not rise significantly for double_poisson under mixup."
        in line(page, "Perturbed data").text
    )
    assert "lowers the MAE in 1 of 2 and the NLL" in line(page, "Rejection").text
    assert "true error with a Spearman correlation of 1.00." in line(page, "Diagnosis").text
    assert "NLL" not in line(page, "Diagnosis").text
    assert line(page, "Outliers").text == (
        "2 outlying rows change NLL by +50 %, ECE by +0 % and CCE by +10 %."
    )


def test_tables_hold_the_numbers(page: Document) -> None:
    first = grid(page, "Models").parts[0].rows[0]
    assert [cell.text for cell in first] == [
        *("poisson", "1.000", "0.120", "0.003", "0.06", "2.00", "0.130", "0.14", "2.4600")
    ]
    assert first[2].small == "± 0.010"
    assert (float(first[5].key), first[5].tone) == (2.0, "bad")
    trends = grid(page, "Perturbed data").parts[0]
    assert trends.title == "Mixup: 1, 2, 3, 4, 5"
    assert [row[3].text for row in trends.rows] == ["5 of 5", "0 of 5"]
    gains = grid(page, "Rejection").parts[0].rows
    assert (gains[0][4].text, gains[0][5].text) == ("1", "0.0010")
    # Means of 0..39, of 0..31 and of 0..19.
    assert [cell.text for cell in gains[0][1:4]] == ["19.5", "15.5", "9.5"]
    assert gains[1][2].text == "23.5"
    assert [c.text for c in grid(page, "Diagnosis without labels").parts[0].rows[0]][1] == "1"
    outliers = grid(page, "Outliers").parts
    assert [part.title for part in outliers] == [
        *("Outliers at 10 sd, 2 rows", "One sd × 0.001, 1 row")
    ]
    assert [cell.text for cell in outliers[0].rows[0]] == [
        "poisson",
        "+50 %",
        "+0 %",
        "+10 %",
    ]


def beside(page: Document) -> dict[str, list[list[str]]]:
    """Texts of the table of published numbers, by task and measure."""
    table = grid(page, "Published numbers", part=-1)
    return {part.title: [[cell.text for cell in row] for row in part.rows] for part in table.parts}


def reasons(page: Document) -> dict[tuple[str, ...], str]:
    """Why numbers part from the published, by task, method and measure."""
    (table,) = (table for table in page.tables if table.name == "beside_published")
    names = ("task", "method", "measure")
    keys = zip(*(table.columns[name].tolist() for name in names), strict=True)
    return dict(zip(keys, table.columns["reason"].tolist(), strict=True))


def test_the_published_stand_beside_ours(page: Document) -> None:
    parts = beside(page)
    first, second = parts["discrete wave: CCE"]
    # The mean over bootstrap samples, and NLL without the constant.
    assert first[:3] == ["poisson", "0.124", "0.12"]
    assert second[:3] == ["double_poisson", "0.034", "0.029"]
    first, second = parts["discrete wave: NLL"]
    assert first[1:3] == ["2.4100", "2.461"]
    why = reasons(page)
    assert why["discrete wave", "poisson", "nll"].startswith("one set of data")
    assert why["discrete wave", "double_poisson", "nll"] == ""  # 1.450 and 1.448 ± 0.098
    assert why["discrete wave", "double_poisson", "cce"] == ""  # 0.034 ± 0.01
    (test,) = parts["all: p of Welch's test, any difference"]
    assert (test[0], test[2]) == ("all pairs", "0.378")
    held = congruence_report({"fg_net": [studies(task="faces")], "other": [studies(task="cells")]})
    parts = beside(held)
    shown = {"mae": "MAE", "cce": "CCE", "ece": "ECE", "nll": "NLL"}
    for measure, title in shown.items():
        (known,) = published(
            "congruence", table="table 2", task="FG-Net", method="poisson", measure=measure
        )
        assert float(parts[f"FG-Net: {title}"][0][2]) == pytest.approx(known.value, abs=0.01)
    (table,) = (table for table in held.tables if table.name == "beside_published")
    assert set(table.columns["task"].tolist()) == {"FG-Net", "all"}
    assert {"cce_cv", "ece_cv", "cce_draws_sd"} < set(table.columns["measure"].tolist())


def test_titles_of_heads_are_known_too() -> None:
    runs = (run("Double Poisson"), run("β-Gaussian", task="AAF"))
    bare = studies(rejections=(), monotonicity=None, diagnoses=(), robustness=(), beliefs=())
    page = congruence_report({"a": [replace(bare, result=CongruenceResult(runs=runs))]})
    parts = beside(page)
    name, _, printed, *_ = parts["discrete wave: ECE"][0]
    assert (name, printed) == ("Double Poisson", "0.119")
    assert reasons(page)["AAF", "β-Gaussian", "mae"] == "5.43 in the authors' stored run"


def test_reliability_stands_beside_the_papers(page: Document) -> None:
    ours = [0.01 / (LEVELS[m]["cce"] + 0.004) for m in ("poisson", "double_poisson")]
    theirs = [0.01 / LEVELS[m]["ece"] for m in ("poisson", "double_poisson")]
    test = welch(ours, theirs)
    rows = grid(page, "Coefficients of variation", part=1).parts[0].rows
    assert float(rows[0][5].key) == pytest.approx(test.two_sided)
    assert float(rows[0][6].key) == pytest.approx(test.greater)
    assert [cell.text for cell in rows[1][3:]] == ["25", "−0.897", "0.3766", "0.8117"]
    assert line(page, "Published", part=1).text == (
        "No significant difference: CCE varies by 8.9 % on average, ECE by 10.6 % (25 pairs of "
        "task "
        "and model; Welch's test, p = 0.38)."
    )


def test_figures_show_every_study(page: Document) -> None:
    names = [choice.options[0].figures[0].name for choice in page.sections[0].choices]
    assert names == [
        *("congruence_cce", "congruence_law", "congruence_calibration"),
        *("congruence_models_ece", "congruence_cce_by_severity", "congruence_ece_by_severity"),
        *("rejection_mae", "rejection_nll", "congruence_diagnosis"),
    ]
    labels = [[option.label for option in choice.options] for choice in page.sections[0].choices]
    assert labels[0] == ["all models", *LEVELS]
    assert labels[1] == [*LEVELS]
    assert labels[4] == labels[5] == ["mixup"]
    assert labels[6] == labels[7] == ["poisson", "double_poisson"]
    assert labels[8] == ["all models", "poisson", "double_poisson"]
    ece = page.sections[0].choices[3].options[0].figures[0]
    assert [layer.series for layer in ece.layers] == ["spread over cells", "by P(Y ≤ y)"]
    assert len(page.sections[1].choices) == 1


def test_seeds_are_put_together() -> None:
    second = replace(
        studies(1),
        result=CongruenceResult(runs=(run("poisson", 1, cce=0.2), run(TRUTH, 1))),
        beliefs=(),
    )
    page = congruence_report({"wave": [studies(0), second]})
    first = grid(page, "Models").parts[0].rows[0]
    assert first[2].text == "0.160"
    assert "over 6 trials" in grid(page, "Perturbed data").notes[0]
    table = grid(page, "Published numbers", part=-1)
    cces = next(part for part in table.parts if part.title == "discrete wave: CCE")
    assert cces.rows[0][1].small == "± 0.040"  # of the mean of two sets
    seeds = [r.options["seed"] for r in page.records if r.metric == "rejection_gain_mae"]
    assert seeds == [0.0, 0.0, 1.0, 1.0]
    layers = page.sections[1].choices[0].options[0].figures[0].layers
    assert [layer.series for layer in layers] == ["equal", "wave"]
    figure = next(f for f in figures(page) if f.name == "rejection_mae")
    assert figure.notes == ("The first of 2 sets of data with a value.",)


def test_a_right_model_may_be_unknown() -> None:
    def shown(*runs: CongruenceRun) -> Document:
        bare = CongruenceStudies(
            task="t", units="y", counts=False, result=CongruenceResult(runs=runs)
        )
        return congruence_report({"t": [bare]})

    nan = math.nan
    stated = shown(run("poisson", cce_null=nan), run(TRUTH, cce_null=nan))
    assert "6 times that of the true distribution (0.020)" in line(stated, "poisson").text
    alone = replace(run("poisson", cce_null=nan), reasons={"cce_null": "none were asked for"})
    other = shown(alone)
    assert line(other, "poisson").text == (
        "CCE is 0.120, that of a correctly specified model is not known, so it cannot be assessed."
    )
    told = "poisson, no CCE of a correctly specified model: none were asked for."
    assert told in grid(other, "Models").notes
    assert line(other, "poisson").tone == "info"
    assert other.headline is not None
    assert other.headline.text.startswith("Inconclusive")
    two = shown(run("poisson", cce_null=nan), run("gaussian", cce_null=nan, cce=0.1))
    assert line(two, "gaussian").text.startswith("CCE is 0.100, that of")
    assert line(two, "ECE compared with CCE").text.startswith("CCE is smallest for gaussian")
    still = shown(replace(run("poisson"), bootstraps={}, repeats=np.array([0.12])))
    assert line(still, "poisson").text.endswith("its variation is not known.")
    assert "Reliability" not in [part.title for part in still.sections]
    assert [part.title for part in other.sections] == [
        "t",
        "Reliability",
        "Comparison with the published numbers",
    ]
    assert "at least two pairs" in line(other, "Here", part=1).text


def test_models_without_an_answer_say_why() -> None:
    bare = CongruenceStudies(
        task="t",
        units="y",
        counts=False,
        result=CongruenceResult(runs=(failed("lost", f"it diverged {HOSTILE}"),)),
        notes=("a note",),
    )
    page = congruence_report({"t": [bare]})
    assert page.headline is None
    assert line(page, "lost").text == f"Not known: it diverged {HOSTILE}."
    assert [c.text for c in grid(page, "Models").parts[0].rows[0]] == ["lost", *["–"] * 7]
    notes = grid(page, "Models").notes
    assert sum("it diverged" in note for note in notes) == 1
    assert "a note" in notes
    assert HOSTILE not in page.to_html()
    nothing = replace(bare, result=CongruenceResult(runs=()))
    assert "Nothing could be judged" in congruence_report({"t": [nothing]}).to_html()
    joint = replace(
        studies(more=(failed("lost", "it diverged"),)),
        rejections=(),
        monotonicity=None,
        diagnoses=(),
        robustness=(),
        beliefs=(),
    )
    held = congruence_report({"wave": [joint]})
    assert [one.title for one in held.sections[0].grids] == ["Models"]
    assert held.headline is not None
    assert held.headline.text.startswith("Not all: CCE finds 1 of 2 models on wave")
    assert "For 80 % of rows it is between 0.060 and 0.180" in line(held, "poisson").text


def test_every_form_holds_the_numbers(page: Document, tmp_path: Path) -> None:
    held = json.loads(page.to_json())
    assert len(held["records"]) == len(page.records)
    metrics = {record["metric"] for record in held["records"]}
    assert {"mean_cce", "ece_exact", "cce_steps_up", "rejection_gain_nll"} <= metrics
    assert {"cce_error_spearman", "nll_relative_change", "cce_variation"} <= metrics
    assert {table["name"] for table in held["tables"]} == {
        *("congruence_models", "congruence_robustness", "congruence_diagnosis"),
        "beside_published",
    }
    assert {curve["name"] for curve in held["curves"]} == {
        *("congruence_cce", "rejection_mae", "rejection_nll"),
        *(f"congruence_{name}_by_severity" for name in ("cce", "ece", "nll")),
    }
    assert len(list(csv.reader(page.to_csv().splitlines()))) == len(page.records) + 1
    text = page.to_markdown()
    assert "## wave" in text
    assert "| poisson | 1.000 ± 0.010 | 0.120 ± 0.010 " in text
    for ending in ("html", "md", "json", "csv"):
        page.save(tmp_path / f"report.{ending}")


def test_text_from_outside_is_shown_and_never_run() -> None:
    def named(one: Any) -> Any:
        return replace(one, model=f"{one.model} {HOSTILE}")

    base = studies()
    assert base.monotonicity is not None
    spread = replace(
        base,
        task=HOSTILE,
        units=HOSTILE,
        notes=(HOSTILE,),
        result=CongruenceResult(runs=tuple(map(named, base.result.runs))),
        rejections=tuple(map(named, base.rejections)),
        monotonicity=MonotonicityResult(
            curves=tuple(replace(named(one), kind=HOSTILE) for one in base.monotonicity.curves)
        ),
        diagnoses=tuple(map(named, base.diagnoses)),
        robustness=tuple(map(named, base.robustness)),
        beliefs=tuple(map(named, base.beliefs)),
    )
    page = congruence_report({HOSTILE: [spread]}, title=HOSTILE, facts={HOSTILE: HOSTILE})
    html = page.to_html()
    assert HOSTILE not in html
    assert "window.pwned=1" in html  # escaped, in words
    assert "<script>window" not in page.to_markdown()


def test_blind_spots_are_pairs_that_ece_puts_the_wrong_way_round() -> None:
    found = findings("w", [run("poisson"), run("double_poisson"), run(TRUTH)])
    assert [one.model for one in found] == ["poisson", "double_poisson", TRUTH]
    assert blind_spots(found, "ece_exact") == []
    pairs = [(bad.model, good.model) for bad, good in blind_spots(found, "ece")]
    assert pairs == [("poisson", TRUTH), ("poisson", "double_poisson")]


@pytest.mark.parametrize(("away", "verdict"), [(0.019, "accepted"), (0.021, "wrong")])
def test_wrong_is_beyond_two_standard_errors(away: float, verdict: str) -> None:
    """The spread over bootstrap samples is 0.01; of four sets of data, half of that."""
    (one,) = findings("w", [run("poisson", cce=0.06 + away)])
    assert one.verdict == verdict
    four = [run("poisson", seed, cce=0.06 + away / 2) for seed in range(4)]
    assert findings("w", four)[0].verdict == verdict


def test_the_worst_stretch_is_that_of_the_largest_mean() -> None:
    rng = np.random.default_rng(0)
    x, cce = rng.uniform(0, 1, 80), rng.uniform(0, 1, 80)
    low, high, mean = worst_stretch(x, cce)
    inside = (x >= low) & (x <= high)
    assert inside.sum() == 10
    assert mean == pytest.approx(cce[inside].mean())
    order = np.argsort(x)
    assert mean == pytest.approx(cce[order].reshape(8, 10).mean(axis=1).max())


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: congruence_report({}), "at least one set of studies"),
        (lambda: congruence_report({"a": []}), "at least one set of studies"),
        (lambda: congruence_report({"a": [studies()]}).save("x.pdf"), "path must end"),
    ],
)
def test_bad_input_is_named(call, words: str) -> None:
    with pytest.raises(InputError, match=words):
        call()
