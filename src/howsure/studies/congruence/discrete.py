"""The calibration error of right discrete laws: how large it is, and how it goes away.

By P(Y ≤ y) alone a right discrete law has a calibration error above 0, on any number of rows. With
the PIT spread over the cell of each count, or drawn within it, it has none. Source: Young et al.
2025, appendix D.1 and figure 14; the formula of the limit is derived here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, final

import numpy as np
import numpy.typing as npt

from howsure.core.arrays import FloatArray, as_vector
from howsure.core.convert import check_whole
from howsure.core.errors import InputError
from howsure.core.progress import part_of
from howsure.core.records import Direction, Record, Table
from howsure.core.rng import child
from howsure.metrics.calibration import Weighting, calibration_error
from howsure.metrics.congruence import CongruenceReference, Draws, null_reference
from howsure.predictions import Distribution

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
                standard_error=_error(self.values[name][place]),
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

    def table(self) -> Table:
        """One row a law: means and standard deviations over sets of data."""
        columns: dict[str, npt.NDArray[Any]] = {"law": np.array(self.laws, dtype=object)}
        for name in COLUMNS:
            columns[name] = self.values[name].mean(axis=1)
            spread = self.values[name].std(axis=1, ddof=min(1, self.values[name].shape[1] - 1))
            columns[f"{name}_sd"] = spread
        columns["limit"] = self.limit
        return Table(
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
        Of the calibration error, as in `howsure.metrics.calibration.calibration_error`.
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


def _error(values: FloatArray) -> float:
    return float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else float("nan")
