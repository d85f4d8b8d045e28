"""How conditional congruence behaves where the truth is known: the paper's studies, with nulls.

Twelve pairs of samples; the regularisation λ, the bandwidth γ and the kernel; draws a row against
the exact embedding; smaller samples; and figure 1, a model that is right on the whole and wrong
at nearly every x. Beside each value stands its null: what two samples of one law, or a right
model, score at the same sizes and choices. Source: Young et al. 2025, figure 1, section 5 and
appendices A.4, A.5 and C.3.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, final

import numpy as np
from scipy.special import ndtr

from howsure.core.arrays import FloatArray
from howsure.core.convert import check_whole
from howsure.core.progress import part_of, report_progress
from howsure.core.registry import check_known
from howsure.core.rng import child
from howsure.stats.kernels import RBF, Kernel, Laplacian, Polynomial
from howsure.topics.calibration.curve import calibration_error
from howsure.topics.congruence.null import null_reference
from howsure.topics.congruence.predictive import Draws, Normals, PredictiveLaw
from howsure.topics.congruence.reference import CongruenceReference, mcmd

Pairs = tuple[FloatArray, FloatArray]
Rows = tuple[FloatArray, FloatArray, Normals, PredictiveLaw]
TAU: Final = 2.0 * np.pi
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


@final
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
        cells.append(
            f"{'' if self.checked is None else '{:.3f} ± {:.3f}'.format(*self.checked):>15}"
        )
        if self.p_values:
            cells.append(f"   p {min(self.p_values):.3f} to {max(self.p_values):.3f}")
        return f"  {self.label:<32}{''.join(cells)}".rstrip()


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Sweep:
    """Cases that differ in one choice.

    Attributes
    ----------
    title : str
        What the study is of.
    cases : tuple of Case
        In order.
    """

    title: str
    cases: tuple[Case, ...]

    def __getitem__(self, label: str) -> Case:
        found = {case.label: case for case in self.cases}
        check_known(label, found, "case")
        return found[label]

    def text(self) -> str:
        """The numbers as plain text."""
        titles = ("mean", "sd data", "sd draws", "null", "ratio")
        head = "".join(f"{title:>9}" for title in titles)
        head += f"{'published':>11}{'repeated':>15}"
        return "\n".join([self.title, f"  {'':<32}{head}", *(case.line() for case in self.cases)])


@final
@dataclass(frozen=True, slots=True)
class NormalWorld:
    """Normal distributions of y given a number x, by functions of arrays of x."""

    mean: Callable[[FloatArray], FloatArray]
    sd: Callable[[FloatArray], FloatArray]

    def pairs(
        self, rng: np.random.Generator, rows: int, low: float, high: float
    ) -> tuple[FloatArray, FloatArray]:
        """Pairs (x, y), each of shape (rows,), with x uniform between two ends."""
        x = rng.uniform(low, high, rows)
        return x, self.mean(x) + self.sd(x) * rng.standard_normal(rows)

    def at(self, x: FloatArray) -> Normals:
        """The distributions at x, which embed exactly."""
        return Normals(self.mean(x), self.sd(x))


def always(value: float) -> Callable[[FloatArray], FloatArray]:
    """The same value at every x."""
    return lambda x: np.full_like(x, value)


def swelling(factor: float) -> Callable[[FloatArray], FloatArray]:
    """A multiple of √x, with x at least 0.2."""
    return lambda x: factor * np.sqrt(np.maximum(x, 0.2))


IGNORING: Final = "ignores x"
MODELS: Final[Mapping[str, Callable[[FloatArray], Normals]]] = {
    IGNORING: lambda x: Normals(np.zeros_like(x), np.full_like(x, np.sqrt(10.0))),
    "right": lambda x: Normals(3.0 * x, np.ones_like(x)),
}
"""The model of the figure, and the one that is right."""
_KNOWN: Final[Mapping[tuple[str, str, str], tuple[float | None, tuple[float, float]]]] = {
    ("half-variance", IGNORING, "ℓ = 1"): (0.209, (0.223, 0.008)),
    ("variance", IGNORING, "ℓ = 1"): (None, (0.359, 0.013)),
}


def ignoring_x(seeds: int, replicates: int) -> tuple[Sweep, Sweep]:
    """Congruence errors of both models, by two readings of γ of y, and their calibration errors.

    The text sets γ of y to 1/(2 variance), the code of the figure to variance/2.
    """
    errors, cases = [], []
    for model, law in MODELS.items():
        rows = [figure_rows(seed, law) for seed in range(seeds)]
        errors.append(calibration_case(model, rows))
        cases += [
            _congruence_case(model, rows, gamma, mode, replicates)
            for gamma in ("variance", "half-variance")
            for mode in ("ℓ = 1", "exact")
        ]
    return (
        Sweep(title="Figure 1: congruence error (γ of y by two readings)", cases=tuple(cases)),
        Sweep(title="Figure 1: calibration error", cases=tuple(errors)),
    )


def _congruence_case(
    model: str, rows: Sequence[Rows], gamma: str, mode: str, replicates: int
) -> Case:
    """One model by one reading of γ and one mode."""
    found = []
    for seed, (x, y, predictive, sampled) in enumerate(rows):
        reference = CongruenceReference(
            x, y, predictive if mode == "exact" else sampled, bandwidth=1.0, output_bandwidth=gamma
        )
        found.append(
            null_reference(reference, outcomes=predictive.draw, replicates=replicates, seed=seed)
        )
    published, checked = _KNOWN.get((gamma, model, mode), (None, None))
    return Case(
        label=f"{model}, {gamma}, {mode}",
        grid=np.array([x for x, *_ in rows]),
        values=np.array([[null.point_observed] for null in found]),
        null=np.array([null.point_expected for null in found]),
        published=published,
        checked=checked,
        p_values=tuple(null.p_value for null in found),
    )


def figure_rows(seed: int, law: Callable[[FloatArray], Normals]) -> Rows:
    """Inputs, outcomes, a model's predictive, and one draw a row of it."""
    rng = child(seed, "congruence studies", "figure 1")
    x = rng.standard_normal(500)
    y = 3.0 * x + rng.standard_normal(500)
    predictive = law(x)
    return x, y, predictive, drawn(predictive, rng, 1)


def drawn(law: Normals, rng: np.random.Generator, count: int) -> Draws:
    """ℓ draws of a prediction at each row."""
    return Draws(np.hstack([law.draw(rng) for _ in range(count)]))


def calibration_case(model: str, rows: Sequence[Rows]) -> Case:
    """The calibration error of the same predictions: one number for each set of data."""
    found = [
        calibration_error(ndtr((y - predictive.mean[:, 0]) / predictive.sd[:, 0]))
        for _, y, predictive, _ in rows
    ]
    ours = model == IGNORING
    return Case(
        label=model,
        grid=np.zeros((len(rows), 1)),
        values=np.array([[[one.value]] for one in found]),
        null=np.array([[one.null] for one in found], dtype=np.float64),
        published=0.007 if ours else None,
        checked=(0.015, 0.009) if ours else None,
    )


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


def behaviour(setting: Behaviour, seeds: int) -> Sweep:
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
    return Sweep(
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


def six_means(setting: Behaviour, seeds: int, **options: Any) -> FloatArray:
    """Means over the grid of six comparisons that share one draw of the truth, (seeds, 6).

    So the authors' code has it. `behaviour` draws the truth anew for each, which leaves means as
    they are, and hides that deviations come together.
    """
    means = np.empty((seeds, 6))
    for seed in range(seeds):
        rng = child(seed, "congruence studies", setting.name, "one truth")
        x, y = setting.laws[0].pairs(rng, 1000, setting.low, setting.high)
        seen = (float(x.min()), float(x.max()))
        for which, law in enumerate(setting.laws):
            other = law.pairs(rng, 500, *(seen if which == 5 else (setting.low, setting.high)))
            given = {"bandwidth": 1.0, **options}
            means[seed, which] = mcmd(
                x, y, *other, np.linspace(*seen, POINTS), **given
            ).values.mean()
    return means


def as_far(means: FloatArray, published: Sequence[float]) -> float:
    """Share of draws that lie as far from their mean as the published six, all taken together.

    By Mahalanobis distance; a draw's own is from mean and covariance of all.
    """
    centre, covariance = means.mean(axis=0), np.cov(means.T)

    def distance(points: FloatArray) -> FloatArray:
        away = points - centre
        return np.einsum("ij,ij->i", away, np.linalg.solve(covariance, away.T).T)

    theirs = distance(np.array(published)[None])
    return float((distance(means) >= theirs).mean())


def sweep(title: str, settings: Mapping[str, Mapping[str, Any]], seeds: int, nulls: int) -> Sweep:
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
    return Sweep(title=title, cases=cases)


def draws_study(name: str, law: NormalWorld, seeds: int, repeats: int, replicates: int) -> Sweep:
    """One model of 200 pairs of the wave, by ℓ draws a row and by its exact embedding."""
    cases = []
    for count in (*DRAWS, 0):
        sets = repeats if count else 1
        grids, null = np.empty((seeds, POINTS)), np.empty((seeds, POINTS))
        values = np.empty((seeds, sets, POINTS))
        for seed in range(seeds):
            x, y = WAVE.pairs(child(seed, "congruence studies", "draws"), 200, 0.0, TAU)
            grids[seed] = np.linspace(x.min(), x.max(), POINTS)
            law_at_x = law.at(x)
            rng = child(seed, "congruence studies", "draws", name, count)
            for number in range(sets):
                predictive = drawn(law_at_x, rng, count) if count else law_at_x
                reference = CongruenceReference(x, y, predictive, bandwidth=0.5)
                values[seed, number] = reference.score(grids[seed]).values
            found = null_reference(
                reference, grids[seed], outcomes=law_at_x.draw, replicates=replicates, seed=seed
            )
            null[seed] = found.point_expected
        label = f"ℓ = {count}" if count else "exact"
        cases.append(Case(label=label, grid=grids, values=values, null=null))
    return Sweep(title=f"Draws per row: {name}", cases=tuple(cases))


def down_sampling(seeds: int, nulls: int) -> Sweep:
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
    return Sweep(title="Down-sampling", cases=tuple(cases))


def subset(rng: np.random.Generator, pairs: Pairs, size: int) -> Pairs:
    """Some pairs, without repeats."""
    rows = rng.choice(len(pairs[0]), size, replace=False)
    return pairs[0][rows], pairs[1][rows]


def shape_kept(study: Sweep) -> dict[str, float]:
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


def behaviour_studies(seeds: int = 3, *, quick: bool = False) -> dict[str, Sweep]:
    """All studies by their names.

    Parameters
    ----------
    seeds : int
        Sets of data, at least 1.
    quick : bool
        Fewer draws and replicates of the null; no sample is smaller.

    Returns
    -------
    dict of str to Sweep
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
    makers: dict[str, Callable[[], Sweep]] = {
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
    report_progress("figure 1", len(makers) + 1, len(makers) + 1)
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
