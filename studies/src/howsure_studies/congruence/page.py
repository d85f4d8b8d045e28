"""The page of the congruence study."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

import numpy as np
import numpy.typing as npt

from howsure.core import formats
from howsure.core.errors import InputError
from howsure.core.records import Curve, Record
from howsure.report.document import Cell, Document, Grid, GridRows, Section, Tone
from howsure.report.grids import number_cell, share_cell, sort_key
from howsure_studies.congruence import figures, sentences
from howsure_studies.congruence.measure import TRUTH
from howsure_studies.congruence.reliability import Reliability, published_reliability, reliability
from howsure_studies.congruence.result import (
    MEASURES,
    TITLES,
    CongruenceResult,
    CongruenceStudies,
    MonotonicityResult,
    Rejection,
    mean_known,
    sample_sd,
)
from howsure_studies.congruence.sentences import ModelFinding, TaskExperiments, Verdict
from howsure_studies.engine import (
    OwnNumber,
    beside_section,
    choice_of,
    estimate_cell,
    number_grid,
    overview,
    pivot,
    published,
    study_document,
)

_STATES: Final[Mapping[Verdict, tuple[Tone, str]]] = {
    "wrong": ("bad", "Misspecified"),
    "accepted": ("undecided", "Accepted"),
    "not known": ("info", "Not known"),
}
_PRINTED: Final[Mapping[str, str]] = {
    "mae": "MAE",
    "cce": "CCE",
    "cce_draws_sd": "sd of CCE over sets of draws",
    "cce_cv": "coefficient of variation of CCE",
    "ece": "ECE",
    "ece_cv": "coefficient of variation of ECE",
    "nll": "NLL",
    "welch_two_sided": "p of Welch's test, any difference",
    "welch_cce_varies_more": "p of Welch's test, CCE varies more",
    "seconds": "seconds",
}
"""What is published."""
_WHY: Final = "other rows and networks; images are compared with components instead of CLIP"
"""Why ours differ."""


def models_grid(world: TaskExperiments) -> Grid | None:
    """Measures of every model."""
    findings, first = world.findings, world.studies[0]
    if not findings:
        return None

    def row(finding: ModelFinding) -> list[Cell]:
        mae, cce, ece, nll = (
            estimate_cell(finding.mean(name), finding.data_sd(name))
            for name in ("mae", "cce", "ece", "nll")
        )
        null, words = finding.yardstick
        cells = [number_cell(finding.mean("ece_exact"))] if first.counts else []
        correct = replace(number_cell(null), small=words.replace(sentences.CORRECT, ""))
        draws, model = number_cell(finding.draws_sd), Cell(text=finding.model)
        return [model, mae, cce, draws, correct, ratio_cell(finding), ece, *cells, nll]

    units = "" if first.units in ("", "1", "y") else f" ({first.units})"
    cells = ("ECE, cells",) if first.counts else ()
    titles = (f"MAE{units}", "CCE", "sd, draws", "CCE if correct", "Ratio", "ECE", *cells)
    notes = [
        "± is the sd over bootstrap samples of the rows; sd, draws: that of CCE over sets of "
        "draws. CCE if correct: the CCE that these distributions would have if correct."
    ]
    if first.counts:
        notes[0] += " ECE uses P(Y ≤ y); in cells, it is spread over the cell of each count."
    if world.several:
        notes.append(f"Means over {len(world.studies)} sets of data; spreads are within one set.")
    notes += [*_missing_reasons(findings), *world.combined.notes]
    rows = map(row, findings)
    return number_grid("Models", (*titles, "NLL (nats)"), rows, notes, words=("Model",))


def ratio_cell(finding: ModelFinding) -> Cell:
    """CCE by that of a correctly specified model, with the verdict."""
    ratio, tone = finding.ratio, _STATES[finding.verdict][0]
    text = formats.MISSING if math.isnan(ratio) else f"{ratio:,.2f}"
    return Cell(text=text, key=sort_key(ratio), tone=None if finding.is_truth else tone)


def _missing_reasons(findings: Sequence[ModelFinding]) -> list[str]:
    """Why measures are missing: each reason once, with whose and of what."""
    pairs: dict[str, list[tuple[str, str]]] = {}
    for finding in findings:
        for measure, reason in finding.reasons.items():
            pairs.setdefault(reason, []).append((finding.model, TITLES.get(measure, measure)))
    notes = []
    for reason, missing in pairs.items():
        models, measures = (dict.fromkeys(names) for names in zip(*missing, strict=True))
        whose = "All models" if len(models) == len(findings) > 1 else ", ".join(models)
        notes.append(f"{whose}, no {', '.join(measures)}: {reason}.")
    return notes


def trends_grid(result: MonotonicityResult | None) -> Grid | None:
    """Where CCE begins and ends under each perturbation, and Page's test."""
    if result is None:
        return None
    parts: dict[str, list[tuple[Cell, ...]]] = {}
    for curve in result.curves:
        up, steps = curve.steps_up(), len(curve.severities) - 1
        levels = ", ".join(formats.number(float(level), 3) for level in curve.severities[1:])
        title = f"{curve.kind.replace('_', ' ').capitalize()}: {levels}"
        cells = (
            Cell(text=curve.model),
            *(spread_cell(curve.values["cce"][:, end]) for end in (0, -1)),
            Cell(text=f"{round(up * steps)} of {steps}", key=repr(up)),
            *(p_cell(curve.pages[measure][1]) for measure in MEASURES),
        )
        parts.setdefault(title, []).append(cells)
    counts = sorted({len(curve.values["cce"]) for curve in result.curves})
    each = result.options.get("gamma_of_y") == "each"
    gamma = "is recomputed for each" if each else "stays as for the unperturbed rows"
    note = (
        "Mean CCE of the unperturbed data and at the highest severity, ± its sd over "
        f"{' or '.join(map(str, counts))} trials; steps between severities at which it rises; p of "
        f"Page's test of a rising trend, of each measure. γ of y {gamma}. Trials are bootstrap "
        "samples of one test part, so p does not apply to other models and data."
    )
    titles = ("Unperturbed", "Highest", "Steps up", "p, CCE", "p, ECE", "p, NLL")
    rows = [GridRows(title=title, rows=tuple(own)) for title, own in parts.items()]
    return number_grid("Perturbed data", titles, rows, [note], words=("Model",))


def rejected_grid(rejections: Sequence[Rejection]) -> Grid | None:
    """Losses of the rows kept, and gains with p."""
    parts = []
    for loss, title in sentences.LOSSES.items():
        groups: dict[str, list[Rejection]] = {}
        for rejection in rejections:
            if loss in rejection.curves:
                groups.setdefault(rejection.model, []).append(rejection)
        rows = []
        for model, own in groups.items():
            curves = [rejection.curves[loss] for rejection in own]
            kept = [
                [curve.error[int(share * len(curve.error))] for curve in curves]
                for share in (0.0, 0.2, 0.5)
            ]
            cells = map(spread_cell, [*kept, [curve.gain for curve in curves]])
            p = p_cell(max(rejection.p_values[loss] for rejection in own))
            rows.append((Cell(text=model), *cells, p))
        parts += [GridRows(title=title, rows=tuple(rows))] if rows else []
    note = (
        "Mean loss of the rows kept as those of highest CCE are rejected; CCE uses labels of "
        "validation rows only. Gain: 1 for the best order, 0 for a random one. p: share of random "
        "orders that are as good. Of several sets of data, ± the sd over them, and the "
        "largest p. CCE detects misspecified distributions, not large errors: a far too wide one "
        "may have small errors."
    )
    titles = ("All rows", "20 % rejected", "50 % rejected", "Gain", "p")
    return number_grid("Rejection", titles, parts, [note], words=("Model",)) if parts else None


def over_sets(records: Iterable[Record]) -> list[Record]:
    """Records of several sets of data as one each: their mean, with its spread over them."""
    groups: dict[tuple[str, ...], list[Record]] = {}
    for record in records:
        changed = str(record.options.get("rows_changed", ""))
        groups.setdefault((record.metric, record.model, record.group, changed), []).append(record)
    return [
        replace(own[0], value=mean_known(values), standard_error=sample_sd(values))
        for own in groups.values()
        for values in ([record.value for record in own],)
    ]


def diagnosed_grid(world: TaskExperiments) -> Grid | None:
    """Correlations of CCE and NLL with the true error."""
    columns = {
        f"{score.upper()}, {name.capitalize()}": f"{score}_error_{name}"
        for score in ("cce", "nll")
        for name in ("spearman", "pearson")
    }
    note = (
        "Correlations over test inputs with the exact distance from the true distribution. CCE "
        "uses labels of validation rows only; NLL uses those of the test rows."
    )
    return pivot(
        over_sets(
            record for diagnosis in world.combined.diagnoses for record in diagnosis.records()
        ),
        "Diagnosis without labels",
        columns=columns,
        parts=lambda _: "",  # all are of one
        words="Model",
        notes=(note, "± is the sd over sets of data." if world.several else ""),
    )


def outliers_grid(world: TaskExperiments) -> Grid | None:
    """Relative changes as rows are perturbed, means over sets of data."""

    def setting(record: Record) -> str:
        rows = formats.counted(int(record.options["rows_changed"]), "row")
        return f"{record.group.removeprefix('setting=').capitalize()}, {rows}"

    def change(record: Record) -> Cell:
        return Cell(text=sentences.change_words(record.value), key=sort_key(record.value))

    note = (
        "Relative change of each measure as a few rows are perturbed, with γ of y and draws fixed. "
        "NLL is unbounded and may be near 0, where relative changes mean little."
    )
    return pivot(
        over_sets(record for result in world.combined.robustness for record in result.records()),
        "Outliers",
        columns={m.upper(): f"{m}_relative_change" for m in ("nll", "ece", "cce")},
        parts=setting,
        show=change,
        words="Model",
        notes=(note,),
    )


def spread_cell(values: npt.ArrayLike) -> Cell:
    """The mean of numbers with their standard deviation."""
    return estimate_cell(mean_known(values), sample_sd(values))


def p_cell(value: float) -> Cell:
    """A p-value."""
    return Cell(text=formats.p_value(float(value)), key=sort_key(value))


def opening(worlds: Sequence[TaskExperiments]) -> Section:
    """CCE of every model on every task, by that of a correctly specified one."""
    findings = [finding for world in worlds for finding in world.findings]
    states: dict[str, dict[str, Cell]] = {}
    for finding in findings:
        if math.isfinite(finding.ratio) and not finding.is_truth:
            states.setdefault(finding.model, {})[finding.world] = ratio_cell(finding)
    if not states:
        return Section(title="")
    note = (
        "CCE divided by that of a correctly specified model. Misspecified: above it by more than 2 "
        "standard errors (bootstrap); accepted: not significantly above."
    )
    return Section(
        title="",
        lines=tuple(filter(None, [sentences.behind_line(findings)])),
        grids=(overview("Relative CCE", states, dict(_STATES.values()), note),),
        choices=choice_of(
            "Task", [(world.name, figures.cce_figure(world.findings)) for world in worlds]
        ),
    )


def task_section(world: TaskExperiments, places: Mapping[str, int]) -> Section:
    """Everything of one task."""
    first, whole, findings = world.studies[0], world.combined, world.findings
    sets = len(world.studies)
    seeds = f"The first of {sets} sets of data with a value." if world.several else ""
    axes = {(predictions.model, predictions.seed): predictions.x for predictions in whole.beliefs}
    lines = [
        *sentences.model_lines(findings, axes),
        *sentences.ece_lines(findings, counts=first.counts),
        sentences.monotonicity_line(whole.monotonicity),
        sentences.rejection_line(whole.rejections),
        sentences.diagnosis_line(whole.diagnoses),
        sentences.robustness_line(whole.robustness),
    ]
    grids = [
        models_grid(world),
        trends_grid(whole.monotonicity),
        rejected_grid(whole.rejections),
        diagnosed_grid(world),
        outliers_grid(world),
    ]
    return Section(
        title=world.name,
        facts=_facts(world),
        lines=tuple(filter(None, lines)),
        grids=tuple(filter(None, grids)),
        choices=(
            *figures.input_choices(first, findings, places),
            *choice_of("", [("", figures.ece_figure(findings, counts=first.counts))]),
            *figures.severity_choices(whole.monotonicity, places),
            *figures.rejection_choices(whole.rejections, places, seeds),
            *figures.diagnosis_choices(whole.diagnoses, places, seeds),
        ),
    )


def reliability_of(worlds: Sequence[TaskExperiments]) -> Reliability | None:
    """Coefficients of variation of all models; None without bootstrap samples."""
    runs = tuple(
        replace(run, task=world.name)
        for world in worlds
        for run in world.combined.result.runs
        if run.model != TRUTH
    )
    try:
        return reliability(CongruenceResult(runs=runs))
    except InputError:
        return None


def reliability_section(varied: Reliability) -> Section:
    """How much CCE and ECE vary from sample to sample, over all tasks, beside the published."""
    theirs = published_reliability()
    rows = [
        (Cell(text=words), *_welch(values))
        for words, values in (("here", varied), ("published, table 2", theirs))
    ]
    titles = ("CCE", "ECE", "Pairs", "Welch t", "p, any difference", "p, CCE varies more")
    note = (
        "Means over pairs of a task and a model (here, also of a set of data) of sd divided by "
        "mean over bootstrap samples. Pairs of one task share their rows, so p is too small."
    )
    drawn = figures.variation_figure(varied) if varied.answered.any() else None
    return Section(
        title="Reliability",
        facts={"Pairs": str(len(varied.task)), "Tasks": ", ".join(dict.fromkeys(varied.task))},
        lines=sentences.reliability_lines(varied),
        grids=(
            number_grid("Coefficients of variation", titles, rows, [note], words=("Of",)),
            sizes_grid({"Here": varied, "Published": published_reliability(unswap=True)}),
        ),
        choices=choice_of("", [("", drawn)]),
    )


def sizes_grid(given: Mapping[str, Reliability]) -> Grid:
    """Task by task how large ECE is against the noise of so many rows, and how far it varies."""
    parts = []
    for words, varied in given.items():
        tasks, known = np.array(varied.task), varied.answered
        rows = []
        for task in dict.fromkeys(tasks[known].tolist()):
            own = known & (tasks == task)
            noise = varied.ece[own] * varied.size[own]
            n, ece, size = (
                mean_known(values[own]) for values in (varied.n, varied.ece_mean, varied.size)
            )
            cells = [Cell(text=f"{n:,.0f}", key=str(n)), *map(number_cell, (ece, size))]
            cells += [number_cell(mean_known(noise)), share_cell(mean_known(varied.ece[own]))]
            cells += [share_cell(mean_known(varied.cce[own]))]
            rows.append((Cell(text=task), *cells))
        parts.append(GridRows(title=words, rows=tuple(rows)))
    note = (
        "Means over the pairs of a task. sd · √n is similar everywhere, so the coefficient of ECE "
        "depends on ECE · √n: how far ECE is above the noise of a share of n rows."
    )
    titles = ("Rows n", "ECE", "ECE · √n", "sd · √n", "Varies, ECE", "Varies, CCE")
    return number_grid("Size of ECE", titles, parts, [note], words=("Task",))


def _welch(varied: Reliability) -> list[Cell]:
    both = varied.answered
    known = int(both.sum())
    means = map(share_cell, map(mean_known, (varied.cce[both], varied.ece[both])))
    test, _ = varied.tested
    if test is None:
        return [*means, *[Cell(text=formats.MISSING)] * 4]
    tested = (number_cell(test.statistic), p_cell(test.two_sided), p_cell(test.greater))
    return [*means, Cell(text=str(known), key=str(known)), *tested]


def own_numbers(
    worlds: Sequence[TaskExperiments], varied: Reliability | None
) -> Iterator[OwnNumber]:
    """What may be published, of tasks and heads that are called as in the paper, or by titles.

    CCE is the mean over bootstrap samples where there are some, NLL without the double Poisson
    constant; errors are spreads over bootstrap samples.
    """
    printed = published("congruence")
    names = {_letters(name): name for row in printed for name in (row.task, row.method)}
    names["wave"] = names["discretewave"]
    for world in worlds:
        for run in world.combined.result.runs:
            task = names.get(_letters(run.task), names.get(_letters(world.name), ""))
            method = names.get(_letters(run.model), run.model)
            cce = run.bootstrap_mean("cce")
            numbers = {
                "mae": run.value("mae"),
                "cce": run.value("cce") if math.isnan(cce) else cce,
                "cce_draws_sd": run.monte_carlo_sd,
                "cce_cv": run.variation("cce"),
                "ece": run.value("ece"),
                "ece_cv": run.variation("ece"),
                "nll": run.value("nll_unnormalised"),
            }
            for measure, value in numbers.items():
                error = run.data_sd(measure)  # NaN of what is itself a spread
                record = Record(metric=measure, value=value, standard_error=error, model=run.model)
                if task and math.isfinite(value):
                    yield OwnNumber(task=task, method=method, record=record)
    test = None if varied is None else varied.tested[0]
    for name, p in ({} if test is None else test.p_values).items():
        yield OwnNumber(
            task="all", method="", record=Record(metric=name, value=p, model="all pairs")
        )


def _letters(name: str) -> str:
    """What is left of a name where only letters and digits count."""
    return "".join(filter(str.isalnum, name.casefold().replace("β", "beta")))


def _facts(world: TaskExperiments) -> dict[str, str]:
    first, result = world.studies[0], world.combined.result
    sizes = sorted({run.n for run in result.runs})
    draws, sets = (result.options.get(name) for name in ("draws", "samplings"))
    exact = "none, exact" if result.options else ""
    facts = {
        "Task": first.task if first.task != world.name else "",
        "Test rows": " or ".join(f"{n:,}" for n in sizes),
        "Sets of data": str(len(world.studies)),
        "y": f"{first.units}{', counted' if first.counts and first.units != 'counts' else ''}",
        "Draws per row": exact if draws is None else f"{float(draws):g}",
        "Sets of draws": "" if draws is None or sets is None else f"{float(sets):g}",
    }
    return {name: fact for name, fact in facts.items() if fact}


def congruence_report(
    results: Mapping[str, Sequence[CongruenceStudies]],
    *,
    title: str = "",
    facts: Mapping[str, str] | None = None,
    command: str = "",
) -> Document:
    """A report on the congruence study, beside what was published.

    Published numbers stand beside those of models called by the key or the title of a head, on
    tasks called discrete wave, wave, AAF, EVA, FG-Net and COCO-People.

    Parameters
    ----------
    results : mapping of str to sequence of CongruenceStudies
        By task: one a set of data.
    title : str
        In place of what it says of itself.
    facts : mapping of str to str, optional
        What else is known.
    command : str
        What makes the report again.

    Raises
    ------
    InputError
        If a task has no results.

    Examples
    --------
    >>> one = CongruenceStudies(
    ...     task="wave", units="counts", counts=True, result=CongruenceResult(runs=())
    ... )
    >>> congruence_report({"wave": [one]}).title
    'Are predictive distributions correct at every x? 0 models on wave'
    """
    if not results or not all(results.values()):
        raise InputError("results must contain at least one set of studies for each task, got none")
    worlds = [
        TaskExperiments(name=str(name), studies=tuple(studies)) for name, studies in results.items()
    ]
    models = list(dict.fromkeys(name for world in worlds for name in world.combined.result.models))
    places = figures.colours_of(models)
    varied = reliability_of(worlds)
    known = [name for name in models if name != TRUTH]
    return study_document(
        title=title or sentences.title_of(len(known), [world.name for world in worlds]),
        headline=sentences.headline([finding for world in worlds for finding in world.findings]),
        opening=opening(worlds),
        sections=[
            *(task_section(world, places) for world in worlds),
            *([] if varied is None else [reliability_section(varied)]),
        ],
        records=(
            *(record for world in worlds for record in world.records),
            *(() if varied is None else varied.records()),
        ),
        beside=beside_section(own_numbers(worlds, varied), published("congruence"), _PRINTED, _WHY),
        tables=tuple(table for world in worlds for table in world.tables),
        curves=tuple(curve for world in worlds for curve in _curves(world)),
        glossary=sentences.GLOSSARY,
        facts={
            "Tasks": ", ".join(world.name for world in worlds),
            "Models": ", ".join(known),
            **(facts or {}),
        },
        command=command,
    )


def _curves(world: TaskExperiments) -> list[Curve]:
    """What the page draws as lines, named by task and, where it is of one, by set of data."""
    trend = world.combined.monotonicity
    curves = [curve.drawn(m) for curve in (trend.curves if trend else ()) for m in MEASURES]
    for study in world.studies:
        group = f"task={world.name}, seed={study.seed}"
        own = [
            *figures.over_x(study).values(),
            *(c for rejection in study.rejections for c in rejection.drawn),
        ]
        curves += [replace(curve, group=group) for curve in own]
    return curves
