"""The examples of Sluijterman, Cator and Heskes (arXiv 2106.03395) that need no network.

    python examples/pointwise_paper.py [--page PAGE.html] [--figures FOLDER]

prints the numbers that docs/case-studies/pointwise.md sets beside the published ones: the linear
example of section 3.2, the two models of section 3.4, and intervals of one width under noise that
differs (figure 3, sections 3.3 and 5.3). The page shows all of them at every x; the figures are
those of the docs.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import stats

from howsure.inputs.distributions import located
from howsure_studies.methods.interface import Fitted, Method, Predictions
from howsure_studies.methods.linear import LinearT
from howsure_studies.pointwise import PointwiseResult, pointwise
from howsure_studies.tasks.worlds import KnownWorld, world_named

FloatArray = npt.NDArray[np.float64]
PRINTED = (0.9, 1.05)
FITTING = (0.8, 1.02)
"""Factors of the two models of section 3.4: those printed, and those that give its numbers."""


class OneWidth(Method, Fitted):
    """Knows the true mean, and takes the noise for equal: its sd is the root mean square over x."""

    def __init__(self, world: str) -> None:
        self.world = world_named(world)

    @property
    def name(self) -> str:
        return "true mean, one width"

    def fit(self, x: npt.ArrayLike, y: npt.ArrayLike, rng: np.random.Generator) -> Fitted:
        """Nothing is learnt."""
        return self

    def predict(self, x: npt.ArrayLike) -> Predictions:
        """The true mean, and one sd for all x."""
        inputs = np.asarray(x, dtype=np.float64)
        truth = self.world.truth(inputs)
        return Predictions(
            located("norm", truth.mean, np.full(len(inputs), root_mean_square(self.world)))
        )


def root_mean_square(world: Any) -> float:
    """Root mean square over x of a world's sd, from 200,000 draws of x."""
    assert isinstance(world, KnownWorld)
    return float(np.sqrt(np.square(world.truth(world.test_set(0, 200_000).x).sd).mean()))


def linear_example(seeds: int = 20, trials: int = 500) -> dict[str, FloatArray]:
    """Section 3.2: by seed, the mean, least and greatest PICP of its trials, and the mean PICF."""
    found: dict[str, list[float]] = {name: [] for name in ("mean", "least", "greatest", "picf")}
    for seed in range(seeds):
        result = pointwise("linear", LinearT(), coverages=(0.8,), trials=trials, seed=seed)
        shares = result.picp(0.8)
        found["mean"].append(float(shares.mean()))
        found["least"].append(float(shares.min()))
        found["greatest"].append(float(shares.max()))
        found["picf"].append(float(result.by_trial("picf", 0.8).mean()))
    return {name: np.array(values) for name, values in found.items()}


def two_models(
    factors: tuple[float, float], rows: int = 100, simulations: int = 10_000
) -> tuple[float, float, float, float]:
    """Section 3.4: coverage of each model's 68 % interval, and the log-likelihood of each.

    N numbers from N(100, 5²) are fitted twice: by their mean and their sd times the first factor,
    and by their mean times the second factor with the spread that the numbers have about it.
    Likelihoods are those of a new number.
    """
    rng = np.random.default_rng(0)
    y = rng.normal(100.0, 5.0, size=(simulations, rows))
    first, second = y.mean(axis=1), factors[1] * y.mean(axis=1)
    about = np.sqrt(np.square(y - second[:, None]).mean(axis=1))
    shown = []
    for center, sd in ((first, factors[0] * y.std(axis=1)), (second, about)):
        inside = stats.norm.cdf(center + sd, 100, 5) - stats.norm.cdf(center - sd, 100, 5)
        density = -np.log(sd) - 0.5 * math.log(2 * math.pi)
        density -= (25.0 + np.square(center - 100.0)) / (2.0 * np.square(sd))
        shown.append((float(inside.mean()), float(density.mean())))
    return shown[0][0], shown[1][0], shown[0][1], shown[1][1]


def one_width(world: str, coverage: float) -> tuple[float, float]:
    """Average coverage over x of intervals of one width, and its Brier score."""
    held = world_named(world)
    sd = held.truth(held.test_set(0, 200_000).x).sd
    value = (
        2.0 * stats.norm.cdf(stats.norm.ppf(0.5 + coverage / 2) * root_mean_square(held) / sd) - 1
    )
    return float(value.mean()), float(np.square(value - coverage).mean())


def studies() -> dict[str, list[PointwiseResult]]:
    """What the page shows: lines where they are right, one width where the noise differs."""
    lines = [LinearT(), LinearT(intercept=False)]
    return {
        "linear": [pointwise("linear", line, coverages=(0.8,), trials=500) for line in lines],
        "fan": [pointwise("fan", OneWidth("fan"), coverages=(0.68, 0.8), trials=5)],
        "toy_heteroscedastic": [
            pointwise("toy_heteroscedastic", OneWidth("toy_heteroscedastic"), trials=5)
        ],
    }


def draw(results: dict[str, list[PointwiseResult]], folder: Path) -> None:
    """The two figures of the docs."""
    from matplotlib import pyplot

    from howsure.figures import plot
    from howsure_studies.pointwise import (
        FigureWords,
        coverage_profile,
        curves,
        intervals_along_x,
        one_run,
        share_histogram,
    )

    line, fan = results["linear"][0], results["fan"][0]
    figure, axes = pyplot.subplots(1, 2, figsize=(10, 3.6), layout="constrained")
    words = FigureWords(name="n", question="", title="", reading="", x="PICP of one test set")
    shares = {"linear t": line.picp(0.8)}
    plot(share_histogram(shares, 0.8, words, places={}, of="trials"), axes[0])
    along = [curve for curve in curves(line) if curve.name == "picf"]
    words = FigureWords(name="n", question="", title="", reading="", x="x")
    plot(coverage_profile(along, 0.8, words, places={}), axes[1])
    axes[1].set_ylim(0.5, 1.0)
    figure.savefig(folder / "pointwise-linear.png", dpi=110)
    figure, axes = pyplot.subplots(1, 2, figsize=(10, 3.6), layout="constrained")
    run = one_run(fan, 0.68)
    assert run is not None
    plot(intervals_along_x(run, words, colour=0), axes[0])
    along = [curve for curve in curves(fan, coverages=(0.68,)) if curve.name == "picf"]
    plot(coverage_profile(along, 0.68, words, places={}), axes[1])
    figure.savefig(folder / "pointwise-one-width.png", dpi=110)
    pyplot.close("all")


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the numbers; write the page and the figures where asked."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--page", type=Path)
    parser.add_argument("--figures", type=Path)
    parser.add_argument("--seeds", type=int, default=20)
    chosen = parser.parse_args(arguments)
    found = linear_example(chosen.seeds)
    print("linear example, 80 %, 500 trials; over seeds: mean (least to greatest)")
    for name, values in found.items():
        print(f"  {name:9s} {values.mean():.3f} ({values.min():.3f} to {values.max():.3f})")
    print("two models, 68 %: coverage 1, 2; log-likelihood 1, 2")
    for factors in (PRINTED, FITTING):
        numbers = "  ".join(f"{number:.3f}" for number in two_models(factors))
        print(f"  factors {factors[0]:g}, {factors[1]:g}: {numbers}")
    print("true mean, one width for all x: average coverage, Brier score of the PICF")
    for world, coverage in (
        ("fan", 0.68),
        ("toy_heteroscedastic", 0.9),
        ("toy_heteroscedastic", 0.8),
    ):
        average, score = one_width(world, coverage)
        print(f"  {world} at {coverage:g}: {average:.3f}, {score:.4f}")
    if chosen.page is None and chosen.figures is None:
        return
    results = studies()
    share = float(np.isin(results["linear"][0].cicp(0.8), (0.0, 1.0)).mean())
    none = results["linear"][1].cicp(0.8)
    print(
        f"CICP is 0 or 1 in {share:.0%} of the trials with an intercept, "
        f"in {float(np.isin(none, (0.0, 1.0)).mean()):.0%} without; "
        f"its mean there is {none.mean():.3f} ± {none.std(ddof=1) / math.sqrt(len(none)):.3f}"
    )
    if chosen.page is not None:
        from howsure_studies.pointwise import pointwise_report

        pointwise_report(results).save(chosen.page)
        print(f"written: {chosen.page}")
    if chosen.figures is not None:
        draw(results, chosen.figures)
        print(f"written: {chosen.figures}")


if __name__ == "__main__":
    main()
