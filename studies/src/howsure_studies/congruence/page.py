"""The page of the congruence study."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, TypeVar

import numpy as np

from howsure.core import formats
from howsure.core.errors import InputError
from howsure.core.records import Curve, Table
from howsure.report.document import Cell, Column, Document, Grid, GridRows, Section, Tone
from howsure.report.grids import number_cell, share_cell, sort_key
from howsure_studies.congruence.figures import (
    cce_figure,
    colours_of,
    diagnosis_choices,
    ece_figure,
    input_choices,
    over_x,
    rejection_choices,
    severity_choices,
    variation_figure,
)
from howsure_studies.congruence.measure import TRUTH
from howsure_studies.congruence.published import published_reliability
from howsure_studies.congruence.result import (
    MEASURES,
    TITLES,
    CongruenceResult,
    CongruenceStudies,
    Diagnosis,
    MonotonicityResult,
    Rejection,
    Reliability,
    Robustness,
    reliability,
    sample_sd,
    table_of,
)
from howsure_studies.congruence.sentences import (
    CORRECT,
    GLOSSARY,
    ModelFinding,
    TaskExperiments,
    Verdict,
    diagnosis_line,
    ece_lines,
    headline,
    mean_known,
    model_lines,
    monotonicity_line,
    rejection_line,
    reliability_lines,
    robustness_line,
    title_of,
)
from howsure_studies.engine import choice_of, overview, study_document

T = TypeVar("T", Rejection, Diagnosis, Robustness)
MISSING: Final = Cell(text=formats.MISSING)
_PRINTED: Final[Mapping[str, str]] = {"mae": "MAE", "cce": "CCE", "ece": "ECE", "nll": "NLL"}
_CHANGES: Final = ("NLL", "ECE", "CCE")
_STATES: Final[Mapping[Verdict, tuple[Tone, str]]] = {
    "wrong": ("bad", "Misspecified"),
    "accepted": ("undecided", "Accepted"),
    "not known": ("info", "Not known"),
}


def grid_of(
    title: str, titles: Sequence[str], parts: Iterable[GridRows], notes: Sequence[str]
) -> Grid:
    """A table of numbers whose first column is of words."""
    columns = (Column(title=titles[0]), *(Column(title=t, numeric=True) for t in titles[1:]))
    return Grid(title=title, columns=columns, parts=tuple(parts), notes=tuple(notes))


def part_of(rows: Iterable[Sequence[Cell]], title: str = "") -> GridRows:
    """Rows under a title."""
    return GridRows(title=title, rows=tuple(map(tuple, rows)))


def by_model(items: Sequence[T]) -> dict[str, list[T]]:
    """Items of each model, in order of first appearance."""
    items_of: dict[str, list[T]] = {}
    for item in items:
        items_of.setdefault(item.model, []).append(item)
    return items_of


def models_grid(world: TaskExperiments, findings: Sequence[ModelFinding]) -> Grid | None:
    """Measures of every model."""
    if not findings:
        return None
    rows = []
    for finding in findings:
        cce, (null, words) = finding.mean("cce"), finding.yardstick
        spreads = (finding.draws_sd, finding.data_sd("cce"))
        known = math.isfinite(cce) and any(map(math.isfinite, spreads))
        small = f"± {' / '.join(map(_decimals, spreads))}" if known else ""
        rows.append(
            (
                Cell(text=finding.model),
                _three(finding.mean("mae")),
                replace(_three(cce), small=small),
                replace(_three(null), small=words.replace(CORRECT, "")),
                ratio_cell(finding.ratio),
                _three(finding.mean("ece"), finding.data_sd("ece")),
                _three(finding.mean("ece_exact")),
                _three(finding.mean("nll"), finding.data_sd("nll")),
            )
        )
    units = "" if world.studies[0].units in ("", "1", "y") else f" ({world.studies[0].units})"
    titles = (f"MAE{units}", "CCE", "CCE if correct", "Ratio", "ECE", "ECE, cells", "NLL (nats)")
    notes = [
        "CCE ± its sd over sets of draws / over bootstrap samples of the rows; ECE and NLL ± the "
        "latter. CCE if correct: what these predictive distributions would have if they were "
        "correct. ECE is by P(Y ≤ y); in cells, spread over the cell of each count."
    ]
    if world.several:
        notes.append(f"Means over {len(world.studies)} sets of data; spreads are those within one.")
    notes += _missing_reasons(findings)
    notes += dict.fromkeys(note for study in world.studies for note in study.notes)
    return grid_of("Models", ("Model", *titles), [part_of(rows)], notes)


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


def published_rows(findings: Sequence[ModelFinding]) -> dict[tuple[str, str], dict[str, Any]]:
    """Numbers of the paper beside ours, by model and measure.

    Ours is the mean over sets of data (of CCE, over bootstrap samples where there are some; of NLL,
    without the double Poisson constant), its sd over sets of data, else over bootstrap samples.
    """
    rows = {}
    for finding in findings:
        for row in finding.printed:
            if row.measure not in _PRINTED:
                continue
            name = "nll_unnormalised" if row.measure == "nll" else row.measure
            spread = finding.seed_sd(name)
            rows[finding.model, row.measure] = {
                "task": finding.world,
                "model": finding.model,
                "measure": row.measure,
                "ours": finding.bootstrap_mean("cce") if name == "cce" else finding.mean(name),
                "sd": finding.data_sd(row.measure) if math.isnan(spread) else spread,
                "published": row.value,
                "note": row.note,
            }
    return rows


def published_table(worlds: Sequence[TaskExperiments]) -> Table | None:
    """Numbers of the paper beside ours as a table; None where it prints none of these."""
    rows = [row for world in worlds for row in published_rows(world.findings).values()]
    return (
        table_of(
            "congruence_published",
            rows,
            labels={"sd": "sd over sets of data, else over bootstrap samples"},
            notes="Young et al. 2025, figure 2 and table 2.",
        )
        if rows
        else None
    )


def published_grid(findings: Sequence[ModelFinding]) -> Grid | None:
    """Numbers of the paper beside ours, one row a model; None where it prints none of these."""
    rows = published_rows(findings)
    printed = [finding for finding in findings if any(model == finding.model for model, _ in rows)]
    if not printed:
        return None
    shown = [measure for measure in _PRINTED if any(m == measure for _, m in rows)]
    cells = []
    for finding in printed:
        own = {measure: rows[finding.model, measure] for measure in shown}
        sds = {row.measure: row.value for row in finding.printed}
        odd = [f"{_PRINTED[m]}: {row['note']}" for m, row in own.items() if row["note"]]
        line = [Cell(text=finding.model, small="; ".join(odd))]
        for measure, row in own.items():
            line.append(_three(row["ours"], row["sd"]))
            line.append(_three(row["published"], sds.get(f"{measure}_sd", math.nan)))
        cells.append(line)
    source = (printed[0].source or ("", ""))[0]
    notes = (
        f"Published: {source} of Young et al. 2025, with ± their standard deviations where they "
        "are printed. Ours is ± the sd over sets of data or, of one set, over bootstrap samples; "
        "CCE is the mean over those, NLL is without the double Poisson constant. Rows and networks "
        "differ: compare patterns, not values.",
    )
    titles = [title for m in shown for title in (f"{_PRINTED[m]}, here", "published")]
    return grid_of("Beside the published", ("Model", *titles), [part_of(cells)], notes)


def trends_grid(result: MonotonicityResult) -> Grid:
    """Where CCE begins and ends under each perturbation, and Page's test."""
    parts = []
    for kind in dict.fromkeys(curve.kind for curve in result.curves):
        rows = []
        own = [curve for curve in result.curves if curve.kind == kind]
        for curve in own:
            means, up = curve.values["cce"].mean(axis=0), curve.steps_up()
            steps = len(means) - 1
            rows.append(
                (
                    Cell(text=curve.model),
                    _three(float(means[0])),
                    _three(float(means[-1])),
                    Cell(text=f"{round(up * steps)} of {steps}", key=repr(up)),
                    *(p_cell(curve.page(measure)[1]) for measure in MEASURES),
                )
            )
        levels = ", ".join(formats.number(float(level), 3) for level in own[0].severities[1:])
        parts.append(part_of(rows, f"{kind.replace('_', ' ').capitalize()}: {levels}"))
    trials = sorted({len(curve.values["cce"]) for curve in result.curves})
    each = result.options.get("gamma_of_y") == "each"
    gamma = "is set anew for each" if each else "stays that of the unperturbed rows"
    notes = (
        f"Mean CCE of the unperturbed data and at the highest severity, over "
        f"{' or '.join(map(str, trials))} trials; steps between severities at which it rises; p of "
        f"Page's test of a rising trend, of each measure. γ of y {gamma}. Trials are bootstrap "
        "samples of one test part, so p does not apply to other models and data.",
    )
    titles = ("Model", "Unperturbed", "Highest", "Steps up", "p, CCE", "p, ECE", "p, NLL")
    return grid_of("Perturbed data", titles, parts, notes)


def rejected_grid(world: TaskExperiments) -> Grid | None:
    """Losses of the rows kept, and gains with p."""
    if not world.rejections:
        return None
    parts = []
    for loss, title in (("mae", "MAE"), ("nll", "NLL")):
        rows = []
        known = [rejection for rejection in world.rejections if loss in rejection.curves]
        for model, own in by_model(known).items():
            curves = [rejection.curves[loss] for rejection in own]
            kept = [
                mean_known(float(curve.error[int(share * len(curve.error))]) for curve in curves)
                for share in (0.0, 0.2, 0.5)
            ]
            gain = _mean_cell([curve.gain for curve in curves])
            p = p_cell(max(rejection.p_values[loss] for rejection in own))
            rows.append((Cell(text=model), *map(_three, kept), gain, p))
        parts += [part_of(rows, title)] if rows else []
    several = "; of several sets of data, ± the sd of the gain, and the largest p"
    notes = (
        "Mean loss of the rows kept as those of highest CCE are rejected; CCE uses labels of "
        "validation rows only. Gain: 1 for the best order, 0 for a random one. p: share of "
        f"random orders that do as well{several if world.several else ''}. CCE finds wrong "
        "distributions, not large errors: a far too wide one may have small errors.",
    )
    titles = ("Model", "All rows", "20 % rejected", "50 % rejected", "Gain", "p")
    return grid_of("Rejection", titles, parts, notes)


def diagnosed_grid(world: TaskExperiments) -> Grid | None:
    """Correlations of CCE and NLL with the true error."""
    rows = [
        [
            Cell(text=model),
            *(
                _mean_cell([diagnosis.correlation(score)[which] for diagnosis in own])
                for score in ("cce", "nll")
                for which in (0, 1)
            ),
        ]
        for model, own in by_model(world.diagnoses).items()
    ]
    if not rows:
        return None
    titles = ("Model", "CCE, Spearman", "CCE, Pearson", "NLL, Spearman", "NLL, Pearson")
    notes = (
        "Correlations over test inputs with the exact distance from the true distribution. CCE "
        "uses labels of validation rows only; NLL uses those of the test rows.",
    )
    return grid_of("Diagnosis without labels", titles, [part_of(rows)], notes)


def outliers_grid(world: TaskExperiments) -> Grid | None:
    """Relative changes as rows are perturbed, means over sets of data."""
    changes_of: dict[tuple[str, int], dict[str, list[list[float]]]] = {}
    for result in world.robustness:
        changes = np.transpose(list(result.changes.values())).tolist()
        for setting, rows, change in zip(
            result.settings, result.spoilt.tolist(), changes, strict=True
        ):
            if rows:
                changes_of.setdefault((setting, rows), {}).setdefault(result.model, []).append(
                    change
                )
    if not changes_of:
        return None
    models = by_model(world.robustness)
    parts = []
    for (setting, count), by_name in changes_of.items():
        means = {model: map(mean_known, zip(*by_name[model], strict=True)) for model in by_name}
        cells = [(Cell(text=m), *map(_percent, means[m])) for m in models if m in by_name]
        rows_of = "1 row" if count == 1 else f"{count} rows"
        parts.append(part_of(cells, f"{setting.capitalize()}, {rows_of}"))
    notes = (
        "Relative change of each measure as a few rows are perturbed, with γ of y and draws fixed. "
        "NLL has no bound, and may be near 0, where a relative change says little.",
    )
    return grid_of("Outliers", ("Model", *_CHANGES), parts, notes)


def ratio_cell(value: float) -> Cell:
    """A ratio."""
    return MISSING if math.isnan(value) else Cell(text=f"{value:,.2f}", key=sort_key(value))


def _mean_cell(values: Sequence[float]) -> Cell:
    """The mean over sets of data, and the spread over them."""
    spread = sample_sd(values)
    small = "" if math.isnan(spread) else f"± {formats.number(spread, 2)}"
    return number_cell(mean_known(values), small, digits=2)


def p_cell(value: float) -> Cell:
    """A p-value."""
    return Cell(text=formats.p_value(float(value)), key=sort_key(value))


def _percent(value: float) -> Cell:
    if math.isnan(value):
        return MISSING
    text = f"{100 * value:+.1f}" if abs(value) < 1 else f"{100 * value:+,.0f}"
    return Cell(text=f"{formats.minus(text)} %", key=sort_key(value))


def _three(value: float, spread: float = math.nan) -> Cell:
    """A number with three decimals, as the paper has them."""
    if math.isnan(value):
        return MISSING
    small = "" if math.isnan(spread) else f"± {_decimals(spread)}"
    return Cell(text=_decimals(value), small=small, key=sort_key(value))


def _decimals(value: float) -> str:
    """Three decimals; three digits where those would say nothing, or too much."""
    if math.isnan(value) or abs(value) >= 1000 or 0 < abs(value) < 0.0005:
        return formats.number(value, 3)
    return f"{value:.3f}".replace("-", "−")


def opening(worlds: Sequence[TaskExperiments]) -> Section:
    """CCE of every model on every task, by that of a correctly specified one."""
    states: dict[str, dict[str, Cell]] = {}
    for finding in (
        finding for world in worlds for finding in world.findings if not finding.is_truth
    ):
        if math.isfinite(finding.ratio):
            cell = replace(ratio_cell(finding.ratio), tone=_STATES[finding.verdict][0])
            states.setdefault(finding.model, {})[finding.world] = cell
    if not states:
        return Section(title="")
    note = "CCE divided by that of a correctly specified model."
    grid = overview("Relative CCE", states, dict(_STATES.values()), note)
    options = [(world.name, cce_figure(world.findings)) for world in worlds]
    return Section(title="", grids=(grid,), choices=choice_of("Task", options))


def task_section(world: TaskExperiments, places: Mapping[str, int]) -> Section:
    """Everything of one task."""
    first, findings = world.studies[0], world.findings
    seeds = _seed_note(world)
    axes = {
        (beliefs.model, study.seed): beliefs.x
        for study in world.studies
        for beliefs in study.beliefs
    }
    trend, table = world.monotonicity, world.trends
    lines = [
        *model_lines(findings, axes),
        *ece_lines(findings, counts=first.counts),
        None if trend is None else monotonicity_line(trend),
        rejection_line(world.rejections),
        diagnosis_line(world.diagnoses),
        robustness_line(world.robustness),
    ]
    grids = [
        models_grid(world, findings),
        published_grid(findings),
        None if trend is None else trends_grid(trend),
        rejected_grid(world),
        diagnosed_grid(world),
        outliers_grid(world),
    ]
    return Section(
        title=world.name,
        facts=_facts(world),
        lines=tuple(filter(None, lines)),
        grids=tuple(filter(None, grids)),
        choices=(
            *input_choices(first, findings, places),
            *choice_of("", [("", ece_figure(findings, counts=first.counts))]),
            *(() if trend is None or table is None else severity_choices(trend, table, places)),
            *rejection_choices(world.rejections, places, seeds),
            *diagnosis_choices(world.scatters, places, seeds),
        ),
    )


def reliability_of(worlds: Sequence[TaskExperiments]) -> Reliability | None:
    """Coefficients of variation of all models; None without bootstrap samples."""
    runs = tuple(
        replace(run, task=f"{world.name}, seed {run.seed}" if world.several else world.name)
        for world in worlds
        for run in world.result.runs
        if run.model != TRUTH
    )
    try:
        return reliability(CongruenceResult(runs=runs))
    except InputError:
        return None


def reliability_section(reliability: Reliability, worlds: Sequence[TaskExperiments]) -> Section:
    """How much CCE and ECE vary from sample to sample, over all tasks, beside the published."""
    theirs = published_reliability()
    rows = [
        (Cell(text=words), *_welch(values))
        for words, values in (("here", reliability), ("published, table 2", theirs))
    ]
    titles = ("Of", "CCE", "ECE", "Pairs", "Welch t", "p, any difference", "p, CCE varies more")
    notes = (
        "Means over pairs of a task and a model (here, also of a set of data) of sd by mean over "
        "bootstrap samples. Pairs of one task share their rows, so p is too small.",
    )
    drawn = variation_figure(reliability.table()) if reliability.known.any() else None
    return Section(
        title="Reliability",
        facts={
            "Pairs": str(len(reliability.task)),
            "Tasks": ", ".join(world.name for world in worlds),
        },
        lines=reliability_lines(reliability),
        grids=(grid_of("Coefficients of variation", titles, [part_of(rows)], notes),),
        choices=choice_of("", [("", drawn)]),
    )


def _welch(reliability: Reliability) -> list[Cell]:
    known = int(reliability.known.sum())
    if known < 2:
        return [
            *map(share_cell, map(mean_known, (reliability.cce, reliability.ece))),
            *[MISSING] * 4,
        ]
    test = reliability.test
    return [
        *map(share_cell, test.means),
        Cell(text=str(known), key=str(known)),
        number_cell(test.statistic),
        *map(p_cell, (test.two_sided, test.greater)),
    ]


def _facts(world: TaskExperiments) -> dict[str, str]:
    first, result = world.studies[0], world.result
    sizes = sorted({run.n for run in result.runs})
    draws, sets = (result.options.get(name) for name in ("draws", "samplings"))
    exact = "none, exact" if result.options else ""
    facts = {
        "Task": first.task if first.task != world.name else "",
        "Test rows": " or ".join(f"{n:,}" for n in sizes),
        "Sets of data": str(len(world.studies)),
        "y": f"{first.units}{', counted' if first.counts and first.units != 'counts' else ''}",
        "Draws a row": exact if draws is None else f"{float(draws):g}",
        "Sets of draws": "" if draws is None or sets is None else f"{float(sets):g}",
    }
    return {name: fact for name, fact in facts.items() if fact}


def _seed_note(world: TaskExperiments) -> str:
    return f"Of {len(world.studies)} sets of data, the first that has it." if world.several else ""


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
        raise InputError("results must hold at least one set of studies for each task, got none")
    worlds = [
        TaskExperiments(name=str(name), studies=tuple(studies)) for name, studies in results.items()
    ]
    models = list(dict.fromkeys(name for world in worlds for name in world.result.models))
    places = colours_of(models)
    varied = reliability_of(worlds)
    beside = published_table(worlds)
    known = [name for name in models if name != TRUTH]
    return study_document(
        title=title or title_of(len(known), [world.name for world in worlds]),
        headline=headline([finding for world in worlds for finding in world.findings]),
        opening=opening(worlds),
        sections=[
            *(task_section(world, places) for world in worlds),
            *([] if varied is None else [reliability_section(varied, worlds)]),
        ],
        records=(
            *(record for world in worlds for record in world.records),
            *(() if varied is None else varied.records()),
        ),
        tables=(
            *(table for world in worlds for table in world.tables),
            *([] if varied is None else [varied.table()]),
            *([] if beside is None else [beside]),
        ),
        curves=tuple(curve for world in worlds for curve in _curves(world)),
        glossary=GLOSSARY,
        facts={
            "Tasks": ", ".join(world.name for world in worlds),
            "Models": ", ".join(known),
            **(facts or {}),
        },
        command=command,
    )


def _curves(world: TaskExperiments) -> list[Curve]:
    """What the page draws as lines, named by task and set of data."""
    curves = []
    for study in world.studies:
        group = f"task={world.name}, seed={study.seed}"
        own = [
            *over_x(study).values(),
            *(c for rejection in study.rejections for c in rejection.drawn),
        ]
        curves += [replace(curve, group=group) for curve in own]
    return curves
