"""Case study: what moves a conditional congruence error, and what its size means.

The published studies of the measure, on laws that are known: twelve pairs of samples; the
regularisation λ, the bandwidth γ and the kernel; draws a row against the exact embedding; smaller
samples; and a model that is right on the whole and wrong at nearly every x. Beside each value
stands its null: what two samples of one law, or a right model, score at the same sizes and choices.

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
KERNELS: dict[str, Kernel] = {  # the squared one is the Laplacian of public code
    "rbf": RBF(2.0),
    "laplacian": Laplacian(2.0),
    "squared laplacian": Laplacian(2.0, squared=True),
    "polynomial": Polynomial(degree=3, gamma=0.02, offset=1.0),
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
            Law(np.sin, swelling(1.0)),
            Law(np.sin, swelling(0.25)),
            Law(np.sin, swelling(2.0)),
            Law(lambda x: np.sin(x) - 3.0, swelling(0.25)),
            Law(lambda x: np.sin(x) - 3.0, swelling(2.0)),
            Law(lambda x: x, always(0.5)),
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


def ignoring_x(seeds: int, replicates: int) -> tuple[Study, Study]:
    """Figure 1: y ~ N(3x, 1) with x ~ N(0, 1), and a model that says N(0, 10) everywhere.

    The model that is right stands beside it; and the calibration errors of both, with the one that
    a perfect model of this size has.
    """
    models = {
        "ignores x": lambda x: Normals(np.zeros_like(x), np.full_like(x, np.sqrt(10.0))),
        "right": lambda x: Normals(3.0 * x, np.ones_like(x)),
    }
    known = {
        ("half-variance", "ignores x", "ℓ = 1"): (0.209, (0.223, 0.008)),
        ("variance", "ignores x", "ℓ = 1"): (None, (0.359, 0.013)),
    }
    errors, cases = [], []
    for model, law in models.items():
        rows = [one_figure(seed, law) for seed in range(seeds)]
        errors.append(calibration_case(model, rows))
        for gamma in ("variance", "half-variance"):
            for mode in ("ℓ = 1", "exact"):
                found = [
                    null_reference(
                        CongruenceReference(
                            x,
                            y,
                            sampled if mode == "ℓ = 1" else belief,
                            bandwidth=1.0,
                            output_bandwidth=gamma,
                        ),
                        outcomes=belief.draw,
                        replicates=replicates,
                        seed=seed,
                    )
                    for seed, (x, y, belief, sampled) in enumerate(rows)
                ]
                published, checked = known.get((gamma, model, mode), (None, None))
                cases.append(
                    Case(
                        label=f"{model}, {gamma}, {mode}",
                        grid=np.array([x for x, *_ in rows]),
                        values=np.array([[null.point_observed] for null in found]),
                        null=np.array([null.point_expected for null in found]),
                        published=published,
                        checked=checked,
                        p_values=tuple(null.p_value for null in found),
                    )
                )
    return (
        Study(title="Figure 1: congruence error (γ of y by two readings)", cases=tuple(cases)),
        Study(title="Figure 1: calibration error", cases=tuple(errors)),
    )


def one_figure(
    seed: int, law: Callable[[FloatArray], Normals]
) -> tuple[FloatArray, FloatArray, Normals, Belief]:
    """Inputs, outcomes, a model's belief, and one draw a row of it."""
    rng = child(seed, "congruence studies", "figure 1")
    x = rng.standard_normal(500)
    y = 3.0 * x + rng.standard_normal(500)
    belief = law(x)
    return x, y, belief, drawn(belief, rng, 1)


def calibration_case(
    model: str, rows: Sequence[tuple[FloatArray, FloatArray, Normals, Belief]]
) -> Case:
    """The calibration error of the same beliefs: one number for each set of data."""
    found = [
        calibration_error(ndtr((y - belief.mean[:, 0]) / belief.sd[:, 0]))
        for _, y, belief, _ in rows
    ]
    ours = model == "ignores x"
    return Case(
        label=model,
        grid=np.zeros((len(rows), 1)),
        values=np.array([[[one.value]] for one in found]),
        null=np.array([[one.null] for one in found], dtype=np.float64),
        published=0.007 if ours else None,
        checked=(0.015, 0.009) if ours else None,
    )


def main(seeds: int = 3, *, quick: bool = False, folder: Path | None = None) -> Mapping[str, Study]:
    """Run all studies on some sets of data, and draw them into a folder if asked.

    Quick: fewer draws and replicates of the null; no sample is smaller.
    """
    nulls, repeats, replicates = (4, 6, 19) if quick else (20, 20, 199)
    base = {"bandwidth": 0.5}
    studies = {setting.name: behaviour(setting, seeds) for setting in BEHAVIOURS}
    sweeps: dict[str, tuple[str, dict[str, dict[str, Any]]]] = {
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
    for name, (title, settings) in sweeps.items():
        studies[name] = sweep(title, settings, seeds, nulls)
    studies["down-sampling"] = down_sampling(seeds, nulls)
    for name, law in {"right": WAVE, "too wide": WIDE, "other relation": LINE}.items():
        studies[f"draws, {name}"] = draws_study(name, law, seeds, repeats, replicates)
    studies["figure 1"], studies["calibration"] = ignoring_x(seeds, replicates)
    if folder is not None:
        draw(folder, studies)
    return studies


def draw(folder: Path, studies: Mapping[str, Study]) -> None:
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


def _curves(axes: Any, study: Study) -> None:
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


def _figure_one(left: Any, right: Any, study: Study) -> None:
    """The data with the model's central 90 %, and the error over x with its null."""
    x, y, belief, _ = one_figure(0, lambda x: Normals(0.0 * x, np.full_like(x, np.sqrt(10.0))))
    left.plot(x, y, ".", color="0.3", markersize=2)
    left.axhspan(*(1.645 * belief.sd[0, 0] * np.array([-1.0, 1.0])), color="C0", alpha=0.25)
    left.set_title("Data, and 90 % of a model\nthat ignores x", fontsize=9)
    order = np.argsort(x)
    for number, gamma in enumerate(("variance", "half-variance")):
        case = study[f"ignores x, {gamma}, ℓ = 1"]
        right.plot(x[order], case.values[0, 0, order], color=f"C{number}", label=gamma)
        right.plot(x[order], case.null[0, order], color=f"C{number}", dashes=(3, 2), linewidth=0.8)
    right.set_title("Its CCE at x, by two readings\nof γ of y (dashes: null)", fontsize=9)
    right.set_ylim(0.0, 0.6)
    right.legend(fontsize=8, frameon=False, ncols=2)


def tables(studies: Iterable[Study]) -> str:
    """All numbers as plain text."""
    parts = []
    for study in studies:
        parts.append(study.table())
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
