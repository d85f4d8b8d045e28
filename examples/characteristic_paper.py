"""The two problems of the characteristics curve's paper: run, told in lines, and drawn.

    python examples/characteristic_paper.py gap --plot gap.png        # needs howsure[bayes,plots]
    python examples/characteristic_paper.py traffic --plot traffic.png

The same runs are `howsure bench run characteristic --profile gap`; the same numbers stand on the
page of `howsure bench report`. Results are kept in a folder, so what was run is not run again.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from howsure.core.optional import require
from howsure.figures import plot
from howsure.studies.characteristic import MethodResult, bands_figure, curves_figure
from howsure.studies.engine import Store, combined, load_plan, run, survey


def main(
    plan: str, store: Path, changes: Sequence[str] = (), figure: Path | None = None
) -> list[MethodResult]:
    """Run what is left of a plan; draw the first data set of its first world if asked."""
    told, kept = load_plan("characteristic", changes, profile=plan), Store(store)
    run(told, kept)
    results = next(iter(combined(told, survey(told, kept), kept).results.values()))
    if figure is not None:
        draw(figure, [result for result in results if result.seed == results[0].seed])
    return list(results)


def lines(results: Sequence[MethodResult]) -> list[str]:
    """Gains of each method, and how many data sets show the pattern."""
    told = []
    for method in dict.fromkeys(result.method for result in results):
        own = [result for result in results if result.method == method]
        names = ("characteristic_gain", "characteristic_partial_gain", "left_gain", "crossing")
        for name in names:
            records = [result.record(name) for result in own]
            low, middle, high = np.quantile([r.value for r in records], [0.05, 0.5, 0.95])
            spread = f"5 % to 95 %: {low:.2f} to {high:.2f}"
            if len(own) == 1:
                spread = f"± {records[0].standard_error:.3g}"
                spread += f"; well specified {records[0].null:.1f}"
                spread += f" [{records[0].null_lower:.1f}, {records[0].null_upper:.1f}]"
            told.append(f"{method:<22}{name:<30}{middle:7.2f}  {spread}")
        told.append(f"{method:<22}{'pattern':<30}{sum(map(shown, own)):>4} of {len(own)}")
    return told


def shown(result: MethodResult) -> bool:
    """Whether the curves cross, and the gain is positive at low miss rates and above the whole."""
    whole = result.record("characteristic_gain").value
    low = result.record("characteristic_partial_gain").value
    return low > max(whole, 0.0) and 0.0 < result.record("crossing").value < 1.0


def draw(path: Path, results: Sequence[MethodResult]) -> None:
    """One row a method: its bands, its curve beside the constant band's, and the constant band."""
    matplotlib = require("matplotlib.figure", extra="plots")
    sheet = matplotlib.Figure(figsize=(13.0, 3.6 * len(results)), layout="constrained", dpi=72)
    for axes, result in zip(sheet.subplots(len(results), 3, squeeze=False), results, strict=True):
        for place, made in enumerate(
            (bands_figure(result), curves_figure([result]), bands_figure(result, constant=True))
        ):
            if made is not None:
                plot(made, axes[place])
        axes[0].set_title(result.method, loc="left")
    sheet.savefig(path)


def command() -> None:
    """Read the command line, print the lines, draw the figure."""
    parser = argparse.ArgumentParser(description="The two problems of the paper.")
    parser.add_argument("plan", choices=("gap", "traffic", "small"))
    parser.add_argument(
        "--store", type=Path, default=Path("results"), help="where results are kept"
    )
    parser.add_argument("--set", action="append", default=[], help="a change, such as seeds=[0]")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="draw the figure")
    asked = parser.parse_args()
    print("\n".join(lines(main(asked.plan, asked.store, asked.set, asked.plot))))


if __name__ == "__main__":
    command()
