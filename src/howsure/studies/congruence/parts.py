"""Parts of a page on congruence: one a task, and one on reliability over all of them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from howsure.report.document import Cell, Section, Tone
from howsure.report.grids import number_cell, share_cell
from howsure.studies.congruence.figures import variation_figure
from howsure.studies.congruence.findings import Verdict, World, mean_known
from howsure.studies.congruence.panels import (
    cce_figure,
    diagnosis_choices,
    ece_figure,
    input_choices,
    rejection_choices,
    severity_choices,
)
from howsure.studies.congruence.published import published_reliability
from howsure.studies.congruence.reliability import Reliability, reliability
from howsure.studies.congruence.result import CongruenceResult
from howsure.studies.congruence.suite import TRUTH
from howsure.studies.congruence.tables import (
    MISSING,
    diagnosed_grid,
    grid_of,
    models_grid,
    outliers_grid,
    p_cell,
    published_grid,
    ratio_cell,
    rejected_grid,
    trends_grid,
)
from howsure.studies.congruence.words import (
    diagnosis_line,
    ece_lines,
    model_lines,
    monotonicity_line,
    rejection_line,
    reliability_lines,
    robustness_line,
)
from howsure.studies.engine import choice_of, overview

_STATES: Final[Mapping[Verdict, tuple[Tone, str]]] = {
    "wrong": ("bad", "Misspecified"),
    "accepted": ("undecided", "Accepted"),
    "not known": ("info", "Not known"),
}


def opening(worlds: Sequence[World]) -> Section:
    """CCE of every model on every task, by that of a correctly specified one."""
    states: dict[str, dict[str, Cell]] = {}
    for one in (one for world in worlds for one in world.found if not one.is_truth):
        if math.isfinite(one.ratio):
            cell = replace(ratio_cell(one.ratio), tone=_STATES[one.verdict][0])
            states.setdefault(one.model, {})[one.world] = cell
    if not states:
        return Section(title="")
    told = "CCE divided by that of a correctly specified model."
    grid = overview("Relative CCE", states, dict(_STATES.values()), told)
    options = [(world.name, cce_figure(world.found)) for world in worlds]
    return Section(title="", grids=(grid,), choices=choice_of("Task", options))


def task_section(world: World, places: Mapping[str, int]) -> Section:
    """Everything of one task."""
    first, found = world.studies[0], world.found
    seeds = _seed_note(world)
    axes = {(one.model, part.seed): one.x for part in world.studies for one in part.beliefs}
    trend = world.monotonicity
    lines = [
        *model_lines(found, axes),
        *ece_lines(found, counts=first.counts),
        None if trend is None else monotonicity_line(trend),
        rejection_line(world.rejections),
        diagnosis_line(world.diagnoses),
        robustness_line(world.robustness),
    ]
    grids = [
        models_grid(world, found),
        published_grid(found),
        None if trend is None else trends_grid(trend),
        rejected_grid(world),
        diagnosed_grid(world),
        outliers_grid(world),
    ]
    return Section(
        title=world.name,
        facts=_facts(world),
        lines=tuple(line for line in lines if line is not None),
        grids=tuple(grid for grid in grids if grid is not None),
        choices=(
            *input_choices(first, found, places),
            *choice_of("", [("", ece_figure(found, counts=first.counts))]),
            *(() if trend is None else severity_choices(trend, places)),
            *rejection_choices(world.rejections, places, seeds),
            *diagnosis_choices(world.diagnoses, places, seeds),
        ),
    )


def reliability_of(worlds: Sequence[World]) -> Reliability | None:
    """Coefficients of variation of all models; None without bootstrap samples."""
    runs = tuple(
        replace(run, task=f"{world.name}, seed {run.seed}" if world.several else world.name)
        for world in worlds
        for run in world.result.runs
        if run.model != TRUTH
    )
    if not any(run.bootstraps.get("ece", np.empty(0)).size > 1 for run in runs):
        return None
    return reliability(CongruenceResult(runs=runs))


def reliability_section(found: Reliability, worlds: Sequence[World]) -> Section:
    """How much CCE and ECE vary from sample to sample, over all tasks, beside the published."""
    theirs = published_reliability()
    rows = [
        (Cell(text=words), *_welch(held))
        for words, held in (("here", found), ("published, table 2", theirs))
    ]
    titles = ("CCE", "ECE", "Pairs", "Welch t", "p, any difference", "p, CCE varies more")
    notes = (
        "Means over pairs of a task and a model (here, also of a set of data) of sd by mean over "
        "bootstrap samples. Pairs of one task share their rows, so p is too small.",
    )
    known = (np.isfinite(found.cce) & np.isfinite(found.ece)).any()
    return Section(
        title="Reliability",
        facts={
            "Pairs": str(len(found.task)),
            "Tasks": ", ".join(world.name for world in worlds),
        },
        lines=reliability_lines(found),
        grids=(grid_of("Coefficients of variation", ("Of", *titles), rows, notes),),
        choices=choice_of("", [("", variation_figure(found.table()) if known else None)]),
    )


def _welch(found: Reliability) -> list[Cell]:
    known = np.isfinite(found.cce) & np.isfinite(found.ece)
    if known.sum() < 2:
        return [*map(share_cell, map(mean_known, (found.cce, found.ece))), *[MISSING] * 4]
    test = found.test
    return [
        *map(share_cell, test.means),
        Cell(text=str(int(known.sum())), key=str(int(known.sum()))),
        number_cell(test.statistic),
        *map(p_cell, (test.two_sided, test.greater)),
    ]


def _facts(world: World) -> dict[str, str]:
    first, result = world.studies[0], world.result
    sizes = sorted({run.n for run in result.runs})
    draws, sets = (result.options.get(name) for name in ("draws", "samplings"))
    exact = "none, exact" if result.options else ""
    told = {
        "Task": first.task if first.task != world.name else "",
        "Test rows": " or ".join(f"{n:,}" for n in sizes),
        "Sets of data": str(len(world.studies)),
        "y": f"{first.units}{', counted' if first.counts and first.units != 'counts' else ''}",
        "Draws a row": exact if draws is None else f"{float(draws):g}",
        "Sets of draws": "" if draws is None or sets is None else f"{float(sets):g}",
    }
    return {name: fact for name, fact in told.items() if fact}


def _seed_note(world: World) -> str:
    return f"Of {len(world.studies)} sets of data, the first that has it." if world.several else ""
