"""How conditional congruence behaves on laws that are known: the paper's studies, with nulls.

Twelve pairs of samples; the regularisation λ, the bandwidth γ and the kernel; draws a row against
the exact embedding; smaller samples; and figure 1, a model that is right on the whole and wrong
at nearly every x. Beside each value stands its null: what two samples of one law, or a right
model, score at the same sizes and choices. Source: Young et al. 2025, figure 1, section 5 and
appendices A.4, A.5 and C.3.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, final

import numpy as np

from howsure.core.arrays import FloatArray
from howsure.core.convert import check_whole
from howsure.core.progress import part_of, tell
from howsure.core.rng import child
from howsure.metrics.congruence import (
    CongruenceReference,
    mcmd,
    null_reference,
)
from howsure.stats.kernels import RBF, Kernel, Laplacian, Polynomial
from howsure.studies.congruence.marginal import drawn, ignoring_x
from howsure.studies.congruence.sweep import Case, Study
from howsure.studies.congruence.worlds import TAU, NormalWorld, always, swelling

Pairs = tuple[FloatArray, FloatArray]

POINTS: Final = 50
STRENGTHS: Final = (0.001, 0.01, 0.05, 0.1, 0.5, 1.0)
GAMMAS: Final = (0.1, 0.5, 1.0, 5.0)
KERNELS: Final[Mapping[str, Kernel]] = {  # the squared one is the Laplacian of public code
    "rbf": RBF(2.0),
    "laplacian": Laplacian(2.0),
    "squared laplacian": Laplacian(2.0, squared=True),
    "polynomial": Polynomial(degree=3, gamma=0.02, offset=1.0),
}
DRAWS: Final = (1, 2, 5, 10, 20)
SIZES: Final = (25, 50, 75, 100)
SUBSETS: Final = 5

WAVE: Final = NormalWorld(np.cos, always(0.5))
WIDE: Final = NormalWorld(np.cos, always(1.5))
LINE: Final = NormalWorld(lambda x: x - 5.0, always(0.5))
COMPARISONS: Final = (
    "same law",
    "same mean, smaller sd",
    "same mean, larger sd",
    "other mean, smaller sd",
    "other mean, larger sd",
    "other relation",
)


@final
@dataclass(frozen=True, slots=True)
class Behaviour:
    """A truth, six laws to compare it with, and the means that are known of each.

    Attributes
    ----------
    name : str
    low, high : float
        Ends of the uniform x.
    laws : tuple of NormalWorld
        In the order of `COMPARISONS`; the first is the truth.
    published : tuple of float
        Single draws of the paper.
    checked : tuple of (float, float)
        Mean and standard deviation of ten earlier repetitions, by dense formulas.
    """

    name: str
    low: float
    high: float
    laws: tuple[NormalWorld, ...]
    published: tuple[float, ...]
    checked: tuple[tuple[float, float], ...]


BEHAVIOURS: Final = (
    Behaviour(
        "equal spread",
        0.0,
        TAU,
        (
            WAVE,
            NormalWorld(np.cos, always(0.1)),
            WIDE,
            NormalWorld(lambda x: np.cos(x) - 2.0, always(0.1)),
            NormalWorld(lambda x: np.cos(x) - 2.0, always(1.5)),
            LINE,
        ),
        (0.0347, 0.1228, 0.2675, 0.8083, 0.5169, 0.4521),
        (
            (0.038, 0.005),
            (0.118, 0.005),
            (0.292, 0.015),
            (0.822, 0.005),
            (0.544, 0.012),
            (0.463, 0.011),
        ),
    ),
    Behaviour(
        "growing spread",
        -np.pi,
        np.pi,
        (
            NormalWorld(np.sin, swelling(1.0)),
            NormalWorld(np.sin, swelling(0.25)),
            NormalWorld(np.sin, swelling(2.0)),
            NormalWorld(lambda x: np.sin(x) - 3.0, swelling(0.25)),
            NormalWorld(lambda x: np.sin(x) - 3.0, swelling(2.0)),
            NormalWorld(lambda x: x, always(0.5)),
        ),
        (0.0375, 0.1539, 0.1636, 0.8367, 0.6381, 0.3266),
        (
            (0.041, 0.009),
            (0.149, 0.005),
            (0.169, 0.013),
            (0.842, 0.008),
            (0.642, 0.015),
            (0.316, 0.011),
        ),
    ),
)


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


def draws_study(name: str, law: NormalWorld, seeds: int, repeats: int, replicates: int) -> Study:
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


def behaviour_studies(seeds: int = 3, *, quick: bool = False) -> dict[str, Study]:
    """All studies by their names.

    Parameters
    ----------
    seeds : int
        Sets of data, at least 1.
    quick : bool
        Fewer draws and replicates of the null; no sample is smaller.

    Returns
    -------
    dict of str to Study
        ``equal spread`` and ``growing spread``; ``lambda``, ``gamma``, ``kernel`` and ``output
        kernel``; ``down-sampling``; ``draws, right``, ``draws, too wide`` and ``draws, other
        relation``; ``figure 1`` and ``calibration``.

    Raises
    ------
    InputError
        If `seeds` is below 1.
    """
    check_whole(seeds, "seeds", 1)
    nulls, repeats, replicates = (4, 6, 19) if quick else (20, 20, 199)
    makers: dict[str, Callable[[], Study]] = {
        setting.name: partial(behaviour, setting, seeds) for setting in BEHAVIOURS
    }
    makers |= {
        name: partial(sweep, title, settings, seeds, nulls)
        for name, (title, settings) in _sweeps().items()
    }
    makers["down-sampling"] = partial(down_sampling, seeds, nulls)
    makers |= {
        f"draws, {name}": partial(draws_study, name, law, seeds, repeats, replicates)
        for name, law in {"right": WAVE, "too wide": WIDE, "other relation": LINE}.items()
    }
    found = {}
    for place, (name, make) in enumerate(makers.items()):
        with part_of(name, place, len(makers) + 1):
            found[name] = make()
    with part_of("figure 1", len(makers), len(makers) + 1):
        found["figure 1"], found["calibration"] = ignoring_x(seeds, replicates)
    tell("figure 1", len(makers) + 1, len(makers) + 1)
    return found


def _sweeps() -> dict[str, tuple[str, dict[str, dict[str, Any]]]]:
    base = {"bandwidth": 0.5}
    return {
        "lambda": (
            "Regularisation (γ = 0.5)",
            {f"λ = {value:g}": {**base, "regularization": value} for value in STRENGTHS},
        ),
        "gamma": (
            "Bandwidth of x (λ = 0.1)",
            {f"γ = {value:g}": {"bandwidth": value} for value in GAMMAS},
        ),
        "kernel": (
            "Kernel of x (γ = 2, polynomial 0.02; λ = 0.1)",
            {name: {"kernel": kernel} for name, kernel in KERNELS.items()},
        ),
        "output kernel": (
            "Kernel of y (the same four; x: rbf, γ = 0.5; λ = 0.1)",
            {name: {**base, "output_kernel": kernel} for name, kernel in KERNELS.items()},
        ),
    }
