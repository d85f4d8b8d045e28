"""Case study: what moves a conditional congruence error, and what its size means.

The published studies of the measure, on laws that are known: twelve pairs of samples; the
regularisation λ, the bandwidth γ and the kernel; draws per row against the exact embedding; smaller
samples; and a model that is right on the whole and wrong everywhere. Beside each value stands its null:
what two samples of one law, or a right model, would score at the same sizes and choices.

`python examples/congruence_studies.py --help` lists what can be asked.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr

from howsure.core.optional import require
from howsure.core.rng import child
from howsure.metrics.calibration import calibration_error
from howsure.metrics.congruence import (
    Belief,
    CongruenceReference,
    Draws,
    Normals,
    mcmd,
    null_reference,
)
from howsure.stats.kernels import RBF, Kernel, Laplacian, Polynomial

FloatArray = npt.NDArray[np.float64]
Pairs = tuple[FloatArray, FloatArray]

TAU = 2.0 * np.pi
POINTS = 50
STRENGTHS = (0.001, 0.01, 0.05, 0.1, 0.5, 1.0)
GAMMAS = (0.1, 0.5, 1.0, 5.0)
KERNELS: dict[str, Kernel] = {
    "rbf, γ = 2": RBF(2.0),
    "laplacian, γ = 2": Laplacian(2.0),
    "laplacian squared, γ = 2": Laplacian(2.0, squared=True),
    "polynomial, γ = 0.02": Polynomial(degree=3, gamma=0.02, offset=1.0),
}
DRAWS = (1, 2, 5, 10, 20)
SIZES = (25, 50, 75, 100)
SUBSETS = 5


@dataclass(frozen=True, slots=True)
class Law:
    """A normal law of y given x."""

    mean: Callable[[FloatArray], FloatArray]
    sd: Callable[[FloatArray], FloatArray]

    def pairs(self, rng: np.random.Generator, rows: int, low: float, high: float) -> Pairs:
        """Pairs with x uniform between two ends."""
        x = rng.uniform(low, high, rows)
        return x, self.mean(x) + self.sd(x) * rng.standard_normal(rows)

    def belief(self, x: FloatArray) -> Normals:
        """The law as a model's belief at x."""
        return Normals(self.mean(x), self.sd(x))


def always(value: float) -> Callable[[FloatArray], FloatArray]:
    """The same at every x."""
    return lambda x: np.full_like(x, value)


def swelling(factor: float) -> Callable[[FloatArray], FloatArray]:
    """A multiple of √x, at least of √0.2."""
    return lambda x: factor * np.sqrt(np.maximum(x, 0.2))


WAVE = Law(np.cos, always(0.5))
WIDE = Law(np.cos, always(1.5))
LINE = Law(lambda x: x - 5.0, always(0.5))
COMPARISONS = (
    "same law",
    "same mean, smaller sd",
    "same mean, larger sd",
    "other mean, smaller sd",
    "other mean, larger sd",
    "other relation",
)


@dataclass(frozen=True, slots=True)
class Behaviour:
    """A truth, six laws to compare it with, and the means that are known of each.

    Attributes
    ----------
    name : str
    low, high : float
        Ends of the uniform x.
    laws : tuple of Law
        In the order of `COMPARISONS`; the first is the truth.
    published : tuple of float
        Single draws of the paper.
    checked : tuple of (float, float)
        Mean and standard deviation of ten earlier repetitions, by dense formulas.
    """

    name: str
    low: float
    high: float
    laws: tuple[Law, ...]
    published: tuple[float, ...]
    checked: tuple[tuple[float, float], ...]


BEHAVIOURS = (
    Behaviour(
        "equal spread",
        0.0,
        TAU,
        (
            WAVE,
            Law(np.cos, always(0.1)),
            WIDE,
            Law(lambda x: np.cos(x) - 2.0, always(0.1)),
            Law(lambda x: np.cos(x) - 2.0, always(1.5)),
            LINE,
        ),
        (0.0347, 0.1228, 0.2675, 0.8083, 0.5169, 0.4521),
        ((0.038, 0.005), (0.118, 0.005), (0.292, 0.015), (0.822, 0.005), (0.544, 0.012))
        + ((0.463, 0.011),),
    ),
    Behaviour(
        "growing spread",
        -np.pi,
        np.pi,
        (
            Law(np.sin, swelling(1.0)),
            Law(np.sin, swelling(0.25)),
            Law(np.sin, swelling(2.0)),
            Law(lambda x: np.sin(x) - 3.0, swelling(0.25)),
            Law(lambda x: np.sin(x) - 3.0, swelling(2.0)),
            Law(lambda x: x, always(0.5)),
        ),
        (0.0375, 0.1539, 0.1636, 0.8367, 0.6381, 0.3266),
        ((0.041, 0.009), (0.149, 0.005), (0.169, 0.013), (0.842, 0.008), (0.642, 0.015))
        + ((0.316, 0.011),),
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Case:
    """One setting of one study.

    Attributes
    ----------
    label : str
        The setting.
    grid : ndarray of float, shape (seeds, g)
        Where the measure was taken.
    values : ndarray of float, shape (seeds, draws, g)
        Its values, for each set of data and each draw or subset within it.
    null : ndarray of float, shape (seeds, g)
        Expected where the laws are equal, at the same sizes and choices.
    published : float, optional
        Mean that the paper prints.
    checked : tuple of float, optional
        Mean and standard deviation of earlier repetitions.
    p_values : tuple of float
        One for each set of data, where the study has a test.
    """

    label: str
    grid: FloatArray
    values: FloatArray
    null: FloatArray
    published: float | None = None
    checked: tuple[float, float] | None = None
    p_values: tuple[float, ...] = ()

    @property
    def means(self) -> FloatArray:
        """Mean over the grid, shape (seeds, draws)."""
        found: FloatArray = self.values.mean(axis=2)
        return found

    @property
    def mean(self) -> float:
        """Mean of all."""
        return float(self.values.mean())

    @property
    def expected(self) -> float:
        """Mean of the null."""
        return float(self.null.mean())

    @property
    def data_sd(self) -> float:
        """Standard deviation over sets of data; NaN for a single set."""
        return float(self.means.mean(axis=1).std(ddof=1)) if len(self.values) > 1 else np.nan

    @property
    def draw_sd(self) -> float:
        """Standard deviation over draws within a set of data; NaN for single draws."""
        means = self.means
        return float(np.sqrt(means.var(axis=1, ddof=1).mean())) if means.shape[1] > 1 else np.nan

    def line(self) -> str:
        """The numbers as one row of a plain table."""
        numbers = (self.mean, self.data_sd, self.draw_sd, self.expected, self.mean / self.expected)
        cells = [f"{number:9.4f}" if np.isfinite(number) else f"{'':9}" for number in numbers[:4]]
        cells.append(f"{numbers[4]:9.2f}")
        cells.append(f"{'' if self.published is None else f'{self.published:.4f}':>11}")
        cells.append(f"{'' if self.checked is None else '{:.3f} ± {:.3f}'.format(*self.checked):>15}")
        if self.p_values:
            cells.append(f"   p ≤ {max(self.p_values):.3f}")
        return f"  {self.label:<32}{''.join(cells)}".rstrip()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Study:
    """Cases that differ in one choice."""

    title: str
    cases: tuple[Case, ...]

    def __getitem__(self, label: str) -> Case:
        return next(case for case in self.cases if case.label == label)

    def table(self) -> str:
        """The numbers as plain text."""
        titles = ("mean", "sd data", "sd draws", "null", "ratio")
        head = "".join(f"{title:>9}" for title in titles)
        head += f"{'published':>11}{'repeated':>15}"
        return "\n".join([self.title, f"  {'':<32}{head}", *(case.line() for case in self.cases)])


def behaviour(setting: Behaviour, seeds: int) -> Study:
    """Six comparisons of 1,000 pairs of the truth with 500 others; the null is the first."""
    truth = setting.laws[0]
    grids, values = np.empty((6, seeds, POINTS)), np.empty((6, seeds, 1, POINTS))
    for which, law in enumerate(setting.laws):
        for seed in range(seeds):
            rng = child(seed, "congruence studies", setting.name, which)
            x, y = truth.pairs(rng, 1000, setting.low, setting.high)
            seen = (float(x.min()), float(x.max()))
            ends = seen if which == 5 else (setting.low, setting.high)
            grids[which, seed] = np.linspace(*seen, POINTS)
            other = law.pairs(rng, 500, *ends)
            values[which, seed, 0] = mcmd(x, y, *other, grids[which, seed], bandwidth=1.0).values
    return Study(
        title=f"Twelve comparisons: {setting.name}",
        cases=tuple(
            Case(
                label=label,
                grid=grids[which],
                values=values[which],
                null=values[0, :, 0],
                published=setting.published[which],
                checked=setting.checked[which],
            )
            for which, label in enumerate(COMPARISONS)
        ),
    )


def sweep(title: str, settings: Mapping[str, Mapping[str, Any]], seeds: int, nulls: int) -> Study:
    """200 pairs of the wave against 100 of the line, and against 100 of the wave as null.

    Data, and those of the null, are the same for all settings of all sweeps.
    """
    shape = (len(settings), seeds)
    grids = np.empty((seeds, POINTS))
    values, null = np.empty((*shape, 1, POINTS)), np.empty((*shape, POINTS))
    for seed in range(seeds):
        rng = child(seed, "congruence studies", "sweep")
        x, y = WAVE.pairs(rng, 200, 0.0, TAU)
        grids[seed] = grid = np.linspace(x.min(), x.max(), POINTS)
        other = LINE.pairs(rng, 100, float(x.min()), float(x.max()))
        alike = [WAVE.pairs(rng, 100, 0.0, TAU) for _ in range(nulls)]
        for which, options in enumerate(settings.values()):
            values[which, seed, 0] = mcmd(x, y, *other, grid, **options).values
            null[which, seed] = np.mean(
                [mcmd(x, y, *pair, grid, **options).values for pair in alike], axis=0
            )
    cases = tuple(
        Case(label=label, grid=grids, values=values[which], null=null[which])
        for which, label in enumerate(settings)
    )
    return Study(title=title, cases=cases)


def draws_study(name: str, law: Law, seeds: int, repeats: int, replicates: int) -> Study:
    """One model of 200 pairs of the wave, by ℓ draws a row and by its exact embedding."""
    cases = []
    for count in (*DRAWS, 0):
        sets = repeats if count else 1
        grids, null = np.empty((seeds, POINTS)), np.empty((seeds, POINTS))
        values = np.empty((seeds, sets, POINTS))
        for seed in range(seeds):
            x, y = WAVE.pairs(child(seed, "congruence studies", "draws"), 200, 0.0, TAU)
            grids[seed] = np.linspace(x.min(), x.max(), POINTS)
            law_at_x = law.belief(x)
            rng = child(seed, "congruence studies", "draws", name, count)
            for number in range(sets):
                belief = drawn(law_at_x, rng, count) if count else law_at_x
                reference = CongruenceReference(x, y, belief, bandwidth=0.5)
                values[seed, number] = reference.score(grids[seed]).values
            found = null_reference(
                reference, grids[seed], outcomes=law_at_x.draw, replicates=replicates, seed=seed
            )
            null[seed] = found.point_expected
        label = f"ℓ = {count}" if count else "exact"
        cases.append(Case(label=label, grid=grids, values=values, null=null))
    return Study(title=f"Draws a row: {name}", cases=tuple(cases))


def drawn(law: Normals, rng: np.random.Generator, count: int) -> Draws:
    """ℓ draws of a belief at each row."""
    return Draws(np.hstack([law.draw(rng) for _ in range(count)]))


def down_sampling(seeds: int, nulls: int) -> Study:
    """Random subsets of k pairs of the wave and of the line, five draws; γ of y stays fixed."""
    grids = np.empty((seeds, POINTS))
    values = {size: np.empty((seeds, SUBSETS, POINTS)) for size in SIZES}
    null = {size: np.empty((seeds, POINTS)) for size in (*SIZES, 0)}
    whole = np.empty((seeds, 1, POINTS))
    for seed in range(seeds):
        rng = child(seed, "congruence studies", "down-sampling")
        first = WAVE.pairs(rng, 1000, 0.0, TAU)
        x, y = first
        second, alike = (law.pairs(rng, 500, x.min(), x.max()) for law in (LINE, WAVE))
        grids[seed] = grid = np.linspace(x.min(), x.max(), POINTS)
        gamma = float(1.0 / (2.0 * y.var(ddof=1)))
        options: dict[str, Any] = {"bandwidth": 0.5, "output_bandwidth": gamma}
        whole[seed, 0] = mcmd(*first, *second, grid, **options).values
        null[0][seed] = mcmd(*first, *alike, grid, **options).values
        for size in SIZES:
            for number in range(SUBSETS):
                pairs = (*subset(rng, first, size), *subset(rng, second, size))
                values[size][seed, number] = mcmd(*pairs, grid, **options).values
            null[size][seed] = np.mean(
                [
                    mcmd(
                        *subset(rng, first, size), *subset(rng, alike, size), grid, **options
                    ).values
                    for _ in range(nulls)
                ],
                axis=0,
            )
    cases = [
        Case(label=f"k = {size}", grid=grids, values=values[size], null=null[size])
        for size in SIZES
    ]
    cases.append(Case(label="all", grid=grids, values=whole, null=null[0]))
    return Study(title="Down-sampling", cases=tuple(cases))


def subset(rng: np.random.Generator, pairs: Pairs, size: int) -> Pairs:
    """Some pairs, without repeats."""
    rows = rng.choice(len(pairs[0]), size, replace=False)
    return pairs[0][rows], pairs[1][rows]


def shape_kept(study: Study) -> dict[str, float]:
    """Mean correlation over the grid of the curves of subsets with that of all pairs."""
    whole = study["all"].values[:, 0]
    return {
        case.label: float(
            np.mean(
                [
                    np.corrcoef(curve, full)[0, 1]
                    for full, curves in zip(whole, case.values, strict=True)
                    for curve in curves
                ]
            )
        )
        for case in study.cases[:-1]
    }
