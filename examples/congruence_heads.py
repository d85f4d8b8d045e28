"""Case study: heads for counts on the discrete wave, where the variance is a fifth of Poisson's.

x is uniform on (0, 2π) and y = 30 − K, where K has p(k) ∝ (λᵏ/k!)⁵ with λ = 10 sin x + 10. Four
networks that differ by their head alone say what they believe of y: Poisson, negative binomial,
Gaussian, double Poisson. Beside them stands the law that the data came from. All networks of one
shape, whatever their head and their set of data, train as one.

`python examples/congruence_heads.py --help` lists what can be asked (needs howsure[deep]).
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from howsure.core.optional import require
from howsure.predictions import Distribution
from howsure.topics.congruence.null import null_reference
from howsure_studies.congruence import (
    TRUTH,
    CongruenceMeasure,
    CongruenceResult,
    answer,
    compare,
    fit_methods,
    head_methods,
    reference_of,
    wave_task,
)
from howsure_studies.engine import published
from howsure_studies.methods.deep import head_named
from howsure_studies.methods.interface import Fitted
from howsure_studies.tasks import Task

FloatArray = npt.NDArray[np.float64]
WIDEST = 150.0

HEADS = ("poisson", "negative_binomial", "gaussian", "double_poisson")
SCORES = ("NLL", "NLL published", "ECE", "ECE exact", "CCE", "CCE exact", "CCE null")
PRINTED = {"nll": "NLL published", "ece": "ECE", "cce": "CCE"}
SETTINGS: Mapping[str, Mapping[str, Any]] = {
    "ours": {},
    "raw scale": {"standardise": False, "initial": "torch"},
    "cold start": {"warm": False},
    "torch's first weights": {"initial": "torch"},
    "last epoch": {"keep": "last"},
    "all as published": {"standardise": False, "warm": False, "initial": "torch"},
}
TITLES = {**{name: head_named(name).title for name in HEADS}, TRUTH: TRUTH}
PUBLISHED = {
    TITLES[name]: {
        PRINTED[row.measure]: row.value
        for row in published("congruence", table="figure 2", method=name)
        if row.measure in PRINTED
    }
    for name in HEADS
}


@dataclass(frozen=True, slots=True)
class Effort:
    """How often the congruence error is sampled, bootstrapped, and drawn under its null."""

    samplings: int = 5
    bootstraps: int = 10
    replicates: int = 49


@dataclass(frozen=True, slots=True, eq=False)
class Result:
    """One setting: scores of each head, and of the truth, for each set of data.

    ECE: 50 levels, power 1, weights by frequency, from P(Y ≤ y) as published and, exact, spread
    over the cell of a discrete law. CCE: the test set, bootstrapped, beside 5 draws a row; exact:
    the test set as it is beside the laws themselves, with what a right model would score; NaN
    for laws that span too many counts, which heads that were hardly trained state.

    Attributes
    ----------
    name : str
    drawn, exact : CongruenceResult
        By draws and by exact embeddings.
    tasks : list of Task
    fits : list of dict of str to Fitted
        One for each set of data.
    seconds : float
        Training alone.
    """

    name: str
    drawn: CongruenceResult
    exact: CongruenceResult
    tasks: Sequence[Task]
    fits: Sequence[Mapping[str, Fitted]]
    seconds: float

    @property
    def table(self) -> dict[str, FloatArray]:
        """Scores by head, shape (seeds, scores)."""
        return {TITLES[model]: self._scores(model) for model in self.drawn.models}

    def _scores(self, model: str) -> FloatArray:
        drawn, exact = self.drawn, self.exact
        return np.stack(
            [
                drawn.values(model, "nll"),
                drawn.values(model, "nll_unnormalised"),
                drawn.values(model, "ece"),
                drawn.values(model, "ece_exact"),
                np.array([run.bootstrap_mean("cce") for run in drawn.of(model)]),
                exact.values(model, "cce"),
                exact.values(model, "cce_null"),
            ],
            axis=1,
        )

    def mean(self, head: str, score: str) -> float:
        """Mean over the sets of data."""
        return float(self.table[head][:, SCORES.index(score)].mean())

    def text(self) -> str:
        """The numbers as plain text."""
        head = "".join(f"{score:>17}" for score in SCORES)
        lines = [f"{self.name} (training {self.seconds:.0f} s)", f"  {'':<18}{head}"]
        for name, numbers in self.table.items():
            spread = numbers.std(axis=0, ddof=1) if len(numbers) > 1 else np.full(len(SCORES), 0.0)
            cells = zip(numbers.mean(axis=0), spread, strict=True)
            lines.append(f"  {name:<18}" + "".join(f"  {m:7.3f} ± {s:5.3f}" for m, s in cells))
            if name in PUBLISHED:
                known = [PUBLISHED[name].get(score) for score in SCORES]
                cells_ = "".join(f"{'' if v is None else f'({v:.3f})':>17}" for v in known)
                lines.append(f"  {'  published':<18}{cells_}")
        return "\n".join(lines)


def run(name: str, options: Mapping[str, Any], seeds: int, effort: Effort) -> Result:
    """Train all heads on all sets of data at once, and judge them."""
    tasks = [wave_task(seed) for seed in range(seeds)]
    methods = head_methods(HEADS, **options)
    begun = time.perf_counter()
    fits = fit_methods(methods, tasks)
    seconds = time.perf_counter() - begun
    by_draws = CongruenceMeasure(
        draws=5, samplings=effort.samplings, bootstraps=effort.bootstraps, grid="fixed"
    )
    exactly = CongruenceMeasure(draws=None, bootstraps=0, replicates=effort.replicates)
    drawn, exact = (
        compare(methods, tasks, fits=fits, measure=measure, truth=True)
        for measure in (by_draws, exactly)
    )
    return Result(name, drawn, exact, tasks, fits, seconds)


def draw(folder: Path, result: Result) -> None:
    """Above: what each head believes of the first test set. Below: its congruence error over x."""
    matplotlib = require("matplotlib.figure", extra="plots")
    sheet = matplotlib.Figure(figsize=(12.0, 5.0), layout="constrained", dpi=72)
    panels = sheet.subplots(2, len(HEADS), sharex=True, sharey="row")
    grid = np.linspace(0.0, 2.0 * np.pi, 200)[:, None]
    task = result.tasks[0]
    exactly = CongruenceMeasure(draws=None).of_task(task)
    for column, name in zip(panels.T, HEADS, strict=True):
        fitted = result.fits[0][name]
        law = fitted.predict(grid).outcome
        lower, upper = law.interval(0.9)
        column[0].fill_between(grid[:, 0], lower, upper, color="C0", alpha=0.25, linewidth=0)
        column[0].plot(grid[:, 0], law.point(), color="C0")
        column[0].plot(task.test.x[:, 0], task.test.y, ".", color="0.3", markersize=3)
        column[0].set_title(TITLES[name], fontsize=9)
        held = answer(fitted, task.test, task.space.embed, model=name)
        if wide(held.predictions[0]):
            continue
        reference = reference_of(held, exactly, np.random.default_rng(0))
        found = null_reference(reference, grid, replicates=49)
        column[1].plot(grid[:, 0], found.point_observed, color="C0")
        column[1].plot(grid[:, 0], found.point_expected, color="0.5", dashes=(3, 2))
    panels[0, 0].set_ylabel("y: mean, 90 %, test rows", fontsize=8)
    panels[1, 0].set_ylabel("CCE at x (grey: a right model)", fontsize=8)
    sheet.savefig(folder / "heads-wave.png")


def wide(law: Any) -> bool:
    """Whether laws of counts span so many that their exact embedding would take minutes."""
    assert isinstance(law, Distribution)
    ends = law.quantile([1e-12, 1.0 - 1e-12])
    return law.discrete and float((ends[:, 1] - ends[:, 0]).max()) > WIDEST


def main(
    seeds: int = 3,
    settings: Sequence[str] = ("ours",),
    *,
    quick: bool = False,
    folder: Path | None = None,
) -> Mapping[str, Result]:
    """Train and judge under each setting, on as many sets of data; draw the first into a folder.

    Quick: a few epochs and few draws, to see that it runs.
    """
    effort = Effort(1, 2, 4) if quick else Effort()
    few = {"epochs": 6} if quick else {}
    results = {name: run(name, {**SETTINGS[name], **few}, seeds, effort) for name in settings}
    if folder is not None:
        draw(folder, next(iter(results.values())))
    return results


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=3, help="sets of data")
    parser.add_argument(
        "--settings", nargs="+", choices=[*SETTINGS, "all"], default=["ours"], help="of training"
    )
    parser.add_argument("--quick", action="store_true", help="a few epochs, to see that it runs")
    parser.add_argument("--plot", type=Path, metavar="FOLDER", help="draw here")
    given = parser.parse_args()
    wanted = list(SETTINGS) if "all" in given.settings else given.settings
    start = time.perf_counter()
    for place, setting in enumerate(wanted):
        where = given.plot if place == 0 else None
        (outcome,) = main(given.seeds, [setting], quick=given.quick, folder=where).values()
        print(outcome.text(), end="\n\n", flush=True)
    print(f"{time.perf_counter() - start:.0f} s in all")
