"""Case study: do conformal intervals adapt to the difficulty of a row?

Two forests, one of the target and one of its errors, are trained on real tables and on small
pictures of blood cells, whose red cells are counted. CP, CP-A, PAC, SSCP, O-CPA and O-PAC wrap the
same forests and are compared over random splits of the rows that trained neither.

`python examples/adaptivity_intervals.py FOLDER`; FOLDER holds folders ``uci_…``,
``shift_california_housing`` and ``img_bccd_cell_count``.
"""

from __future__ import annotations

import argparse
import csv
import gzip
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

import numpy as np
import numpy.typing as npt
from sklearn.ensemble import RandomForestRegressor

from howsure.core.optional import require
from howsure.core.records import Table
from howsure.core.rng import child
from howsure.figures import Figure, plot
from howsure.studies.adaptivity import (
    MethodComparison,
    Regressed,
    compare_intervals,
    forest_task,
    methods_figure,
)
from howsure.studies.tasks import uci

FloatArray = npt.NDArray[np.float64]
Data = tuple[FloatArray, FloatArray]

SHARE = 0.2  # noise, as a share of each column's standard deviation
COVERAGES = (0.6, 0.7, 0.8)
TABLES = ("concrete", "kin8nm", "power", "protein")


@dataclass(frozen=True)
class Size:
    """How much is done: rows of a task and trees of a forest at most, repeats."""

    rows: int
    trees: int
    repeats: int


FULL = Size(8_000, 60, 10)
QUICK = Size(600, 40, 2)


@dataclass(frozen=True)
class Trained:
    """A task, its cells, its groups, and the range of y in the whole table."""

    task: Regressed
    bins: int
    groups: int
    clip: tuple[float, float]


def california(folder: Path) -> Data:
    """Value of houses in 100,000 USD (cut off at 5), from eight numbers of each block."""
    path = folder / "shift_california_housing" / "data.csv.gz"
    with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
        held = [row for row in csv.DictReader(file) if row["total_bedrooms"]]
    left_out = ("median_house_value", "ocean_proximity")
    inputs = [name for name in held[0] if name not in left_out]
    x = np.array([[float(row[name]) for name in inputs] for row in held])
    return x, np.array([float(row["median_house_value"]) for row in held]) / 1e5


def blood_cells(folder: Path) -> Data:
    """Red cells of 364 pictures, from their colours in 8 × 6 squares and three summaries."""
    image = require("PIL.Image", extra="vision")
    place = folder / "img_bccd_cell_count"
    with (place / "counts.csv").open(encoding="utf-8", newline="") as file:
        held = list(csv.DictReader(file))
    rows = []
    for row in held:
        with image.open(place / "images" / row["file"]) as picture:
            pixels = np.asarray(picture.convert("RGB").resize((64, 48)), dtype=np.float64) / 255
        squares = pixels.reshape(6, 8, 8, 8, 3).mean(axis=(1, 3)).ravel()
        stained = pixels[..., 0] - pixels[..., 1]
        edges = np.abs(np.diff(stained, axis=0)).mean() + np.abs(np.diff(stained, axis=1)).mean()
        rows.append([*squares, stained.mean(), stained.std(), edges])
    return np.array(rows), np.array([float(row["rbc"]) for row in held])


def trained(name: str, data: Data, size: Size) -> Trained:
    """Train both forests on a third of the rows, 120 at least; the rest is the task."""
    x, y = data
    order = child(0, "adaptivity", name).permutation(len(y))[: size.rows + size.rows // 2]
    few = max(len(order) // 3, min(120, len(order) // 2))
    own, rest = order[:few], order[few:]

    task = forest_task(
        (x[own], y[own]), (x[rest], y[rest]), noise=SHARE, trees=size.trees, name=name
    )
    tested = len(rest) // 2
    bins = 50 if tested > 2500 else 10 if tested > 300 else 5
    return Trained(task, bins, 3 if bins == 5 else 5, (float(y.min()), float(y.max())))


def tasks(folder: Path, size: Size) -> list[Trained]:
    """Every table with its forests."""
    data = {"California": california(folder), "blood cells": blood_cells(folder)}
    for name in TABLES:
        held = uci(name, folder / f"uci_{name}")
        data[name] = held.x, held.y
    return [trained(name, pair, size) for name, pair in data.items()]


def markdown(table: Table) -> str:
    """A table as Markdown, numbers to three digits."""

    def shown(value: object) -> str:
        if isinstance(value, float | np.floating):
            return "—" if np.isnan(value) else f"{value:.3g}"
        return str(value)

    names = list(table.columns)
    lines = [names, [":--", *["--:"] * (len(names) - 1)]]
    lines += [list(map(shown, row)) for row in zip(*table.columns.values(), strict=True)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def figures(found: Mapping[str, MethodComparison]) -> list[Figure]:
    """T-CV and T-SS of every task."""
    made = []
    for measure in ("t_cv", "t_ss", "binned_r2"):
        values = {name: result.medians(measure) for name, result in found.items()}
        worst = max(result.floor.median for result in found.values())
        rules = {"perfect, at most": worst} if measure == "t_cv" else {}
        made.append(methods_figure(values, measure, rules=rules))
    return made


def study(folder: Path, size: Size, picture: Path | None) -> None:
    """Everything, printed as Markdown."""
    start = perf_counter()
    widest: dict[str, MethodComparison] = {}
    for item in tasks(folder, size):
        task = item.task
        fit = 1 - np.mean((task.y - task.mean) ** 2) / task.y.var()
        print(f"\n## {task.name}: {len(task.y):,} rows, R² {fit:.2f}")
        found = compare_intervals(
            task,
            coverages=COVERAGES,
            repeats=size.repeats,
            bins=item.bins,
            groups=item.groups,
            difficulty=RandomForestRegressor(size.trees, min_samples_leaf=5, random_state=2),
        )
        for result in found:
            print(f"\n### {task.name}, coverage {result.coverage:g}\n")
            print(f"{markdown(result.table())}\n\n{result.table().notes}")
        widest[task.name] = found[-1]
        (cut,) = compare_intervals(
            task,
            coverages=COVERAGES[-1:],
            methods=("CP", "CP-A", "O-CPA"),
            repeats=size.repeats,
            bins=item.bins,
            groups=item.groups,
            clip=item.clip,
        )
        ends = f"[{item.clip[0]:.3g}, {item.clip[1]:.3g}]"
        print(f"\n### {task.name}, coverage {cut.coverage:g}, clipped to {ends}\n")
        print(markdown(cut.table()))
    print(f"\n{perf_counter() - start:.0f} seconds")
    if picture is not None:
        draw(figures(widest), picture)


def draw(made: Sequence[Figure], path: Path) -> None:
    """Figures side by side in one file."""
    pyplot = require("matplotlib.pyplot", extra="plots")
    whole, axes = pyplot.subplots(
        1, len(made), figsize=(5.6 * len(made), 4.2), layout="constrained", squeeze=False
    )
    for figure, ax in zip(made, axes[0], strict=True):
        plot(figure, ax)
        ax.get_legend().set_loc("upper left")
        ax.get_legend().set_bbox_to_anchor((1.0, 1.0))
    whole.savefig(path, dpi=110)
    pyplot.close(whole)


def main(arguments: Sequence[str] | None = None) -> None:
    """Read the command line and run the study."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="holds the folders of data")
    parser.add_argument("--quick", action="store_true", help="few rows, trees and splits")
    parser.add_argument("--picture", type=Path, help="file for the figure")
    chosen = parser.parse_args(arguments)
    study(chosen.folder, QUICK if chosen.quick else FULL, chosen.picture)


if __name__ == "__main__":
    main()
