"""Case study: the calibration error of discrete laws that are right.

Data are drawn from four laws of equal mean and variance, and judged by the laws that drew them. By
P(Y ≤ y) alone the calibration error of the three laws of counts is ten times that of the Gaussian
law; by the randomised PIT, or its average over each cell, it is not.

`python examples/discrete_ece.py --help` lists what can be asked.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, final

import numpy as np
import numpy.typing as npt

from howsure.core.arrays import as_vector
from howsure.core.convert import check_whole
from howsure.core.errors import InputError
from howsure.core.optional import require
from howsure.core.progress import part_of
from howsure.core.records import Direction, Record, ResultTable
from howsure.core.rng import child
from howsure.predictions import Distribution
from howsure.topics.calibration.curve import Weighting, calibration_error
from howsure.topics.congruence.null import null_reference
from howsure.topics.congruence.predictive import Draws
from howsure.topics.congruence.reference import CongruenceReference

FloatArray = npt.NDArray[np.float64]

MEANS = (0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 100.0, 300.0)
READINGS = {"ece": "P(Y ≤ y)", "ece_exact": "average in the cell", "ece_randomised": "randomised"}


_MASS: Final = 1e-12


def _negative_binomial(x: FloatArray) -> Distribution:
    """NB with n = round(x²/0.1) and p = x/(x + 0.1): mean near x, variance near x + 0.1."""
    size = np.round(x**2 / 0.1)
    return Distribution("negative_binomial", {"mu": size * 0.1 / x, "dispersion": 1.0 / size})


LAWS: Final[Mapping[str, Callable[[FloatArray], Distribution]]] = {
    "Gaussian": lambda x: Distribution.normal(x, np.sqrt(x)),
    "Poisson": lambda x: Distribution("poisson", {"mu": x}),
    "negative binomial": _negative_binomial,
    "double Poisson": lambda x: Distribution("double_poisson", {"mu": x, "phi": np.ones_like(x)}),
}
"""The laws of figure 14 at x: mean and variance x. Double Poisson with φ = 1 *is* Poisson."""
COLUMNS: Final = ("ece", "ece_exact", "ece_randomised", "ece_null", "cce", "cce_null")
"""Measures of the study: by P(Y ≤ y); spread over cells; one uniform draw in each cell; of a right
continuous law of this n; CCE by draws, and that of a right model."""


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DiscreteErrors:
    """Errors of right laws.

    Attributes
    ----------
    laws : tuple of str
        What was drawn from, and stated.
    values : mapping of str to ndarray of float, shape (laws, seeds)
        The measures of `COLUMNS`.
    limit : ndarray of float, shape (laws,)
        Calibration error by P(Y ≤ y) for ever more rows and levels of equal weight; 0 for a
        continuous law.
    n : int
        Rows of each set of data.
    """

    laws: tuple[str, ...]
    values: Mapping[str, FloatArray]
    limit: FloatArray
    n: int
    options: Mapping[str, str | float] = field(default_factory=dict)

    def records(self) -> tuple[Record, ...]:
        """Mean of each measure and law, with its standard error over sets of data."""
        return tuple(
            Record(
                metric="mean_cce" if name == "cce" else name,
                value=float(self.values[name][place].mean()),
                standard_error=_standard_error(self.values[name][place]),
                n=float(self.n),
                direction=Direction.LOWER,
                target=0.0,
                null=float(self.values["cce_null" if name == "cce" else "ece_null"][place].mean()),
                model=law,
                options=self.options,
            )
            for place, law in enumerate(self.laws)
            for name in COLUMNS
            if not name.endswith("_null")
        )

    def table(self) -> ResultTable:
        """One row a law: means and standard deviations over sets of data."""
        columns: dict[str, npt.NDArray[Any]] = {"law": np.array(self.laws, dtype=object)}
        for name in COLUMNS:
            columns[name] = self.values[name].mean(axis=1)
            spread = self.values[name].std(axis=1, ddof=min(1, self.values[name].shape[1] - 1))
            columns[f"{name}_sd"] = spread
        columns["limit"] = self.limit
        return ResultTable(
            name="congruence_discrete",
            columns=columns,
            labels={
                "ece": "ECE by P(Y ≤ y)",
                "ece_exact": "ECE spread over cells",
                "ece_randomised": "ECE of the randomised PIT",
                "ece_null": "ECE of a right continuous law",
                "limit": "ECE by P(Y ≤ y) in the limit",
            },
        )


def discrete_errors(
    *,
    n: int = 2000,
    seeds: int = 10,
    weighting: Weighting = "frequency",
    levels: int = 50,
    bandwidth: float = 0.5,
    replicates: int = 49,
) -> DiscreteErrors:
    """Draw data from four laws with x uniform on (1, 10), and judge the laws that drew them.

    Parameters
    ----------
    n : int
        Rows of each set of data, at least 10.
    seeds : int
        Sets of data.
    weighting, levels
        Of the calibration error, as in `howsure.topics.calibration.calibration_error`.
    bandwidth : float
        γ of x in the CCE, which has one draw a row.
    replicates : int
        Data sets behind the CCE of a right model; 0 for none.

    Returns
    -------
    DiscreteErrors

    Raises
    ------
    InputError
        If a number is too small.

    Examples
    --------
    >>> found = discrete_errors(n=300, seeds=1, replicates=0)
    >>> found.laws[1], bool(found.values["ece"][1, 0] > 0.03)
    ('Poisson', True)
    """
    check_whole(n, "n", 10)
    check_whole(seeds, "seeds", 1)
    check_whole(replicates, "replicates", 0)
    values = {name: np.full((len(LAWS), seeds), np.nan) for name in COLUMNS}
    limit = np.zeros(len(LAWS))
    options: dict[str, Any] = {"levels": levels, "weighting": weighting}
    for place, (name, law_at) in enumerate(LAWS.items()):
        for seed in range(seeds):
            rng = child(seed, "congruence discrete", name)
            x = rng.uniform(1.0, 10.0, n)
            law = law_at(x)
            y = law.sample(rng, 1)[:, 0]
            high, low = law.cdf(y), law.cdf_left(y)
            plain = calibration_error(high, **options)
            values["ece"][place, seed] = plain.value
            values["ece_exact"][place, seed] = calibration_error(high, left=low, **options).value
            drawn = low + rng.random(n) * (high - low) if law.discrete else high
            values["ece_randomised"][place, seed] = calibration_error(drawn, **options).value
            values["ece_null"][place, seed] = _continuous_null(n, options)
            draws = Draws(law.sample(rng, 1))
            with part_of(f"right laws: {name}", place * seeds + seed, len(LAWS) * seeds):
                reference = CongruenceReference(x, y, draws, bandwidth=bandwidth)
                values["cce"][place, seed] = reference.score().mean
                if replicates:
                    found = null_reference(
                        reference,
                        outcomes=lambda draws, law=law: law.sample(draws, 1),
                        replicates=replicates,
                        seed=seed,
                    )
                    values["cce_null"][place, seed] = found.expected
        grid = law_at(1.0 + 9.0 * (np.arange(4000) + 0.5) / 4000)
        limit[place] = discrete_bias(grid).mean()
    return DiscreteErrors(
        laws=tuple(LAWS),
        values=values,
        limit=limit,
        n=n,
        options={"levels": float(levels), "weighting": weighting, "bandwidth": bandwidth},
    )


def discrete_bias(law: Distribution) -> FloatArray:
    """Calibration error of each row's right law by P(Y ≤ y), for ever more rows and levels.

    With π_k the probabilities of its values, P(F(Y) ≤ p) falls short of p by what p has beyond
    the last step of F below it; over the step of π_k that is π_k²/2. The error is therefore
    ½ Σ_k π_k², half the chance that two draws agree; and, since every row falls short, that of
    rows of different laws is the mean of theirs. Near 1/(4σ√π) for laws of large σ.

    Parameters
    ----------
    law : Distribution
        n laws.

    Returns
    -------
    ndarray of float, shape (n,)
        0 for continuous laws.

    Raises
    ------
    InputError
        If a discrete law spans more than a million values.

    Examples
    --------
    >>> discrete_bias(Distribution("poisson", {"mu": [1.0, 100.0]})).round(4)
    array([0.1543, 0.0141])
    """
    if not law.discrete:
        return np.zeros(law.n)
    ends = law.quantile([_MASS, 1.0 - _MASS])
    width = int((ends[:, 1] - ends[:, 0]).max()) + 1
    if width > 1_000_000:
        raise InputError(f"law must span at most a million values, got {width}")
    total = np.zeros(law.n)
    for step in range(width):
        total += np.exp(2.0 * law.log_density(ends[:, 0] + step))
    return 0.5 * total


def bias_by_mean(means: npt.ArrayLike) -> FloatArray:
    """The limit of the calibration error of right Poisson laws, by their mean.

    Examples
    --------
    >>> bias_by_mean([1.0, 10.0]).round(4)
    array([0.1543, 0.0449])
    """
    return discrete_bias(Distribution("poisson", {"mu": as_vector(means, "means")}))


def _continuous_null(n: int, options: Mapping[str, Any]) -> float:
    """The calibration error expected of a right continuous law of n rows."""
    even = (np.arange(n) + 0.5) / n
    null = calibration_error(even, **options).null
    return float("nan") if null is None else float(null)


def _standard_error(values: FloatArray) -> float:
    return float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else float("nan")


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
