"""Case study: the calibration error of discrete laws that are right.

Data are drawn from four laws of equal mean and variance, and judged by the laws that drew them. By
P(Y ≤ y) alone the calibration error of the three laws of counts is ten times that of the Gaussian
law; by the randomised PIT, or its average over each cell, it is not.

`python examples/discrete_ece.py --help` lists what can be asked.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from howsure.core.optional import require
from howsure.core.rng import child
from howsure.metrics.calibration import calibration_error
from howsure.predictions import Distribution
from howsure.studies.congruence.discrete import DiscreteErrors, bias_by_mean, discrete_errors

FloatArray = npt.NDArray[np.float64]

MEANS = (0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 100.0, 300.0)
READINGS = {"ece": "P(Y ≤ y)", "ece_exact": "average in the cell", "ece_randomised": "randomised"}


def by_mean(n: int, seeds: int) -> dict[str, FloatArray]:
    """Calibration errors of right Poisson laws of one mean: the limit, and means over sets."""
    found = {"limit": bias_by_mean(MEANS)}
    for name in ("ece", "ece_exact"):
        found[name] = np.zeros(len(MEANS))
    for place, mean in enumerate(MEANS):
        law = Distribution("poisson", {"mu": np.full(n, mean)})
        for seed in range(seeds):
            y = law.sample(child(seed, "discrete ece", mean), 1)[:, 0]
            high, low = law.cdf(y), law.cdf_left(y)
            found["ece"][place] += calibration_error(high).value / seeds
            found["ece_exact"][place] += calibration_error(high, left=low).value / seeds
    return found


def text(errors: DiscreteErrors, means: dict[str, FloatArray]) -> str:
    """All numbers as plain text."""
    table = errors.table().columns
    names = (*READINGS, "ece_null", "cce", "cce_null")
    lines = [f"{'':<20}" + "".join(f"{name:>18}" for name in names) + f"{'limit':>10}"]
    for place, law in enumerate(errors.laws):
        cells = [
            f"{table[name][place]:9.4f} ± {table[f'{name}_sd'][place]:.4f}"
            if not name.endswith("null")
            else f"{table[name][place]:18.4f}"
            for name in names
        ]
        lines.append(f"{law:<20}" + "".join(f"{cell:>18}" for cell in cells))
        lines[-1] += f"{errors.limit[place]:10.4f}"
    lines += [
        "",
        "Poisson laws of one mean",
        f"{'mean':>8}{'limit':>10}{'ECE':>10}{'in cells':>10}",
    ]
    for place, mean in enumerate(MEANS):
        row = (means[name][place] for name in ("limit", "ece", "ece_exact"))
        lines.append(f"{mean:>8g}" + "".join(f"{value:10.4f}" for value in row))
    return "\n".join(lines)


def draw(path: Path, errors: DiscreteErrors, means: dict[str, FloatArray], n: int) -> None:
    """Why, how much, and by which mean."""
    matplotlib = require("matplotlib.figure", extra="plots")
    sheet = matplotlib.Figure(figsize=(11.0, 3.4), layout="constrained", dpi=80)
    why, how_much, when = sheet.subplots(1, 3)
    _staircase(why)
    rows = np.arange(len(errors.laws))
    for number, (name, title) in enumerate(READINGS.items()):
        values = errors.values[name]
        how_much.errorbar(
            values.mean(axis=1),
            rows + 0.2 * (number - 1),
            xerr=values.std(axis=1),
            fmt="o",
            color=f"C{number}",
            markersize=4,
            label=title,
        )
    how_much.axvline(errors.values["ece_null"][0].mean(), color="0.5", dashes=(3, 2), linewidth=1)
    how_much.set_yticks(rows, errors.laws, fontsize=8)
    how_much.invert_yaxis()
    how_much.set_xlim(left=0.0)
    how_much.set_title(f"Right laws, {n:,} rows (dashes: floor)", fontsize=9)
    how_much.set_xlabel("calibration error", fontsize=8)
    how_much.legend(fontsize=7, frameon=False, loc="center right")
    when.plot(MEANS, means["limit"], color="C0", label="limit, ½ Σ π²")
    when.plot(MEANS, means["ece"], "o", color="C0", markersize=4, label="P(Y ≤ y)")
    when.plot(MEANS, means["ece_exact"], "o", color="C1", markersize=4, label="average in the cell")
    when.set_xscale("log")
    when.set_yscale("log")
    when.set_title("Right Poisson laws by their mean", fontsize=9)
    when.set_xlabel("mean count", fontsize=8)
    when.legend(fontsize=7, frameon=False)
    for axes in (why, how_much, when):
        axes.tick_params(labelsize=8)
        axes.spines[["top", "right"]].set_visible(False)
    sheet.savefig(path)


def _staircase(axes: Any) -> None:
    """Shares of P(Y ≤ y) at or below p, for a right Poisson law of mean 2."""
    grid = np.linspace(0.0, 1.0, 1001)
    law = Distribution("poisson", {"mu": np.full(12, 2.0)})
    steps = law.cdf(np.arange(12.0))
    reached = np.concatenate([[0.0], steps])[np.searchsorted(steps, grid, side="right")]
    axes.plot(grid, grid, color="0.5", dashes=(3, 2), linewidth=1)
    axes.plot(grid, reached, color="C0")
    axes.fill_between(grid, reached, grid, color="C0", alpha=0.2, linewidth=0)
    axes.set_title(
        "Right Poisson law of mean 2:\nthe shaded area is its calibration error", fontsize=9
    )
    axes.set_xlabel("level p", fontsize=8)
    axes.set_ylabel("share with P(Y ≤ y) at most p", fontsize=8)


def main(
    n: int = 2000, seeds: int = 10, *, replicates: int = 49, path: Path | None = None
) -> tuple[DiscreteErrors, dict[str, FloatArray]]:
    """Draw, judge, and draw the figure if asked."""
    errors = discrete_errors(n=n, seeds=seeds, replicates=replicates)
    means = by_mean(n, seeds)
    if path is not None:
        draw(path, errors, means, n)
    return errors, means


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=2000, help="rows of a set of data")
    parser.add_argument("--seeds", type=int, default=10, help="sets of data")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="draw the figure there")
    given = parser.parse_args()
    print(text(*main(given.rows, given.seeds, path=given.plot)))
