"""Figures and numbers of the shift benchmark's small profile, as they stand in the docs.

python examples/shift_small.py docs/case-studies
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path

import pyarrow as pa
from pyarrow import compute as pc
from pyarrow import csv

from howsure.core.optional import require
from howsure.figures import Figure, plot
from howsure_studies.engine import load_plan, study_shipped
from howsure_studies.shift import (
    INTERVAL_METHODS,
    SHIFT_METHODS,
    ShiftResult,
    degree_curves,
    degree_figure,
    measure_figure,
)

TITLES = {method.title: key for key, method in SHIFT_METHODS.items()}
STEPS = ("step-1", "step-2", "step-3", "full")
COLUMNS = ["world", "method", "metric", "value", "lower", "upper", "n", "units"]
DEGREES = {"cells-tails": "cells", "chair-angle-gap": "chair-angle"}


def coverage_figure(results: Sequence[ShiftResult]) -> Figure:
    """Empirical coverage of the ten methods on the main test."""
    own = [result for result in results if result.method in TITLES]
    return measure_figure([result.record("test_empirical_coverage") for result in own])


def degrees(results: Mapping[str, Sequence[ShiftResult]]) -> list[Figure]:
    """Empirical coverage of the methods that predict every row, by degree of shift."""

    def whole(task: str) -> list[ShiftResult]:
        return [r for r in results[task] if TITLES.get(r.method) in INTERVAL_METHODS]

    return [
        degree_figure(degree_curves(whole(task), STEPS, home=whole(home)))
        for task, home in DEGREES.items()
        if task in results and home in results
    ]


def save(figures: Mapping[str, Figure], columns: int, path: Path, *, shared: bool) -> None:
    """Figures side by side, each under its title; shared ones have one set of names and limits."""
    pyplot = require("matplotlib.pyplot", extra="plots")
    rows = -(-len(figures) // columns)
    sheet, axes = pyplot.subplots(
        rows,
        columns,
        figsize=(4.2 * columns + 2.0, 3.3 * rows),
        layout="constrained",
        squeeze=False,
        sharex=shared,
        sharey=shared,
    )
    for place, (ax, (title, figure)) in enumerate(zip(axes.flat, figures.items(), strict=False)):
        plot(figure, ax)
        ax.set_title(title, loc="left")
        if shared:
            ax.label_outer()
        if place and ax.get_legend() is not None:
            ax.get_legend().remove()
    for ax in axes.flat[len(figures) :]:
        ax.set_axis_off()
    sheet.savefig(path, dpi=90)
    pyplot.close(sheet)


def main() -> None:
    """Write two pictures, and a table of every measure on the main tests, of what ships."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    given = parser.parse_args()
    found, sets = study_shipped("shift"), load_plan("shift").worlds
    results: Mapping[str, Sequence[ShiftResult]] = {task: found.results[task] for task in sets}
    save(
        {task: coverage_figure(own) for task, own in results.items()},
        3,
        given.folder / "shift-coverage.png",
        shared=True,
    )
    curves = degrees(results)
    if curves:
        named = dict(zip(DEGREES, curves, strict=False))
        save(named, 2, given.folder / "shift-degrees.png", shared=False)
    main_tests = pc.is_in(found.table["world"], value_set=pa.array(list(results)))
    table = found.table.filter(main_tests).select(COLUMNS)
    csv.write_csv(table, given.folder / "shift-small.csv")


if __name__ == "__main__":
    main()
