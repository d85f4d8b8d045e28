"""Case study: what moves a conditional congruence error, and what its size means.

The published studies of the measure, on laws that are known: twelve pairs of samples; the
regularisation λ, the bandwidth γ and the kernel; draws a row against the exact embedding; smaller
samples; and a model that is right on the whole and wrong at nearly every x. Beside each value
stands its null: what two samples of one law, or a right model, score at the same sizes and choices.

`python examples/congruence_studies.py --help` lists what can be asked.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from congruence_sweeps import (
    BEHAVIOURS,
    IGNORING,
    MODELS,
    Case,
    Sweep,
    behaviour_studies,
    figure_rows,
    shape_kept,
)

from howsure.core.optional import require


def main(seeds: int = 3, *, quick: bool = False, folder: Path | None = None) -> Mapping[str, Sweep]:
    """Run all studies on some sets of data, and draw them into a folder if asked.

    Quick: fewer draws and replicates of the null; no sample is smaller.
    """
    studies = behaviour_studies(seeds, quick=quick)
    if folder is not None:
        draw(folder, studies)
    return studies


def draw(folder: Path, studies: Mapping[str, Sweep]) -> None:
    """Three figures of small panels; grey is the null."""
    sheet, panels = _sheet(2, 6, (12.0, 4.2), sharey=True)
    for row, setting in zip(panels, BEHAVIOURS, strict=True):
        for axes, case in zip(row, studies[setting.name].cases, strict=True):
            axes.plot(case.grid.T, case.values[:, 0].T, color="C0", alpha=0.35, linewidth=0.8)
            axes.plot(case.grid.mean(axis=0), case.values.mean(axis=(0, 1)), color="C0")
            axes.plot(case.grid.mean(axis=0), case.null.mean(axis=0), color="0.5", dashes=(3, 2))
            axes.set_title(case.label, fontsize=9)
        row[0].set_ylabel(f"{setting.name}\nMCMD")
    sheet.savefig(folder / "congruence-behaviours.png")

    sheet, panels = _sheet(2, 5, (13.0, 5.4))
    names = ("lambda", "gamma", "kernel", "output kernel", "down-sampling")
    for column, name in zip(panels.T, names, strict=True):
        _curves(column[0], studies[name])
        _levels(column[1], studies[name].cases)
    panels[0, 0].set_ylabel("MCMD at x")
    sheet.savefig(folder / "congruence-choices.png")

    sheet, panels = _sheet(1, 5, (13.0, 3.2))
    for axes, name in zip(panels[0], ("right", "too wide", "other relation"), strict=False):
        _levels(axes, studies[f"draws, {name}"].cases)
        axes.set_title(f"Model: {name}", fontsize=9)
    _figure_one(panels[0, 3], panels[0, 4], studies["figure 1"])
    sheet.savefig(folder / "congruence-draws.png")


def _sheet(rows: int, columns: int, size: tuple[float, float], *, sharey: bool = False) -> Any:
    matplotlib = require("matplotlib.figure", extra="plots")
    sheet = matplotlib.Figure(figsize=size, layout="constrained", dpi=72)
    panels = sheet.subplots(rows, columns, squeeze=False, sharey=sharey)
    for axes in panels.flat:
        axes.tick_params(labelsize=8)
        axes.spines[["top", "right"]].set_visible(False)
    return sheet, panels


def _curves(axes: Any, study: Sweep) -> None:
    """Values over x, one colour a setting, with the null of each in dashes."""
    for number, case in enumerate(study.cases):
        x, shade = case.grid.mean(axis=0), f"C{number}"
        axes.plot(x, case.values.mean(axis=(0, 1)), color=shade)
        axes.plot(x, case.null.mean(axis=0), color=shade, linewidth=0.8, dashes=(3, 2))
    axes.set_title(study.title.split(" (")[0], fontsize=9)
    axes.set_yscale("log")
    axes.set_ylim(0.015, 1.8)


def _levels(axes: Any, cases: Sequence[Case]) -> None:
    """Mean of each setting, with its spread over sets of data, and its null as a ring."""
    rows = np.arange(len(cases))
    for row, case in zip(rows, cases, strict=True):
        spread = np.nan_to_num(case.data_sd)
        axes.errorbar(case.mean, row, xerr=spread, fmt="o", color=f"C{row}", markersize=5)
    axes.plot([case.expected for case in cases], rows, "o", color="0.5", fillstyle="none")
    axes.set_yticks(rows, [case.label for case in cases])
    axes.invert_yaxis()
    axes.set_xlim(left=0.0)
    axes.set_xlabel("mean (ring: null)", fontsize=8)


def _figure_one(left: Any, right: Any, study: Sweep) -> None:
    """The data with the model's central 90 %, and the error over x with its null."""
    x, y, predictive, _ = figure_rows(0, MODELS[IGNORING])
    left.plot(x, y, ".", color="0.3", markersize=2)
    left.axhspan(*(1.645 * predictive.sd[0, 0] * np.array([-1.0, 1.0])), color="C0", alpha=0.25)
    left.set_title("Data, and 90 % of a model\nthat ignores x", fontsize=9)
    order = np.argsort(x)
    for number, gamma in enumerate(("variance", "half-variance")):
        case = study[f"{IGNORING}, {gamma}, ℓ = 1"]
        right.plot(x[order], case.values[0, 0, order], color=f"C{number}", label=gamma)
        right.plot(x[order], case.null[0, order], color=f"C{number}", dashes=(3, 2), linewidth=0.8)
    right.set_title("Its CCE at x, by two readings\nof γ of y (dashes: null)", fontsize=9)
    right.set_ylim(0.0, 0.6)
    right.legend(fontsize=8, frameon=False, ncols=2)


def tables(studies: Iterable[Sweep]) -> str:
    """All numbers as plain text."""
    parts = []
    for study in studies:
        parts.append(study.text())
        if study.title == "Down-sampling":
            kept = ", ".join(f"{label}: {value:.3f}" for label, value in shape_kept(study).items())
            parts.append(f"  correlation over x with the curve of all pairs: {kept}")
        parts.append("")
    return "\n".join(parts)


def command() -> None:
    """Read the command line, print the tables, draw the figures."""
    parser = argparse.ArgumentParser(description="Studies of the conditional congruence error.")
    parser.add_argument("--seeds", type=int, default=3, help="sets of data")
    parser.add_argument("--quick", action="store_true", help="few draws and replicates")
    parser.add_argument("--plot", type=Path, metavar="FOLDER", help="draw the figures there")
    asked = parser.parse_args()
    print(tables(main(asked.seeds, quick=asked.quick, folder=asked.plot).values()))


if __name__ == "__main__":
    command()
