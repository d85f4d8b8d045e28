"""Parts of a page on congruence: one a task, and one on reliability over all of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from howsure.protocols.congruence import TRUTH
from howsure.protocols.congruence_published import published_reliability
from howsure.protocols.congruence_reliability import Reliability, reliability
from howsure.protocols.congruence_result import CongruenceResult
from howsure.report.congruence_findings import World, mean_known
from howsure.report.congruence_panels import (
    diagnosis_panel,
    input_panel,
    models_panel,
    rejection_panel,
    severity_panel,
    variation_panel,
)
from howsure.report.congruence_tables import (
    MISSING,
    diagnosed_grid,
    grid_of,
    models_grid,
    outliers_grid,
    p_cell,
    published_grid,
    rejected_grid,
    trends_grid,
)
from howsure.report.congruence_words import (
    diagnosis_line,
    ece_lines,
    model_lines,
    monotonicity_line,
    rejection_line,
    reliability_lines,
    robustness_line,
)
from howsure.report.document import Cell
from howsure.report.grids import number_cell, share_cell
from howsure.report.pointwise_sections import WorldPart


def task_part(world: World, places: Mapping[str, int]) -> WorldPart:
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
    panels = [
        models_panel(found, counts=first.counts),
        input_panel(first, found, places),
        None if trend is None else severity_panel(trend, places),
        rejection_panel(world.rejections, places, seeds),
        diagnosis_panel(world.diagnoses, places, seeds),
    ]
    return WorldPart(
        name=world.name,
        facts=_facts(world),
        lines=tuple(line for line in lines if line is not None),
        grids=tuple(grid for grid in grids if grid is not None),
        panels=tuple(panel for panel in panels if panel is not None),
        findings=(),
        records=world.records,
    )


def reliability_of(worlds: Sequence[World]) -> Reliability | None:
    """Coefficients of variation of all models but the true law; None without bootstrap samples."""
    runs = tuple(
        replace(run, task=f"{world.name}, seed {run.seed}" if world.several else world.name)
        for world in worlds
        for run in world.result.runs
        if run.model != TRUTH
    )
    if not any(run.bootstraps.get("ece", np.empty(0)).size > 1 for run in runs):
        return None
    return reliability(CongruenceResult(runs=runs))


def reliability_part(found: Reliability, worlds: Sequence[World]) -> WorldPart:
    """How much CCE and ECE vary from sample to sample, over all tasks, beside the published."""
    theirs = published_reliability()
    rows = [
        (Cell(text=words), *_welch(held))
        for words, held in (("here", found), ("published, table 2", theirs))
    ]
    titles = ("CCE", "ECE", "Pairs", "Welch t", "p, any difference", "p, CCE varies more")
    notes = (
        "Means over pairs of a task and a model (here, also of a set of data) of sd by mean over "
        "bootstrap samples. Pairs of one task share their rows, so that p is too sure.",
    )
    return WorldPart(
        name="Reliability",
        facts={
            "Pairs": str(len(found.task)),
            "Tasks": ", ".join(world.name for world in worlds),
        },
        lines=reliability_lines(found),
        grids=(grid_of("Coefficients of variation", ("Of", *titles), rows, notes),),
        panels=tuple(panel for panel in (variation_panel(found),) if panel is not None),
        findings=(),
        records=found.records(),
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
