"""A law for each row, mixtures of several, and families of laws by their names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Self, final

import numpy as np
import numpy.typing as npt

from howsure.core.arrays import FloatArray, as_matrix, as_vector, check_length
from howsure.core.classes import frozen
from howsure.core.errors import InputError, UnanswerableError
from howsure.predictions.base import Prediction, Rows, tail_levels, wanted_levels
from howsure.predictions.counts.family import COUNT_FAMILIES, CountFamily
from howsure.predictions.laws import Law, NormalLaw, Parameters, ScipyLaw, StudentLaw
from howsure.predictions.mixtures import MixtureLaw


@final
@frozen(init=False, eq=False, repr=False)
class Distribution(Prediction):
    """One distribution of one family for each row.

    Parameters
    ----------
    law : Law or str
        The family, or its name: one of `howsure.predictions.counts.CountFamily`, or of
        ``scipy.stats``.
    parameters : mapping of str to float or array-like of shape (n,)
        The family's parameters; ``loc`` and ``scale`` default to 0 and 1.
    n : int, optional
        Number of rows, needed where every parameter is a single number.

    Raises
    ------
    InputError
        If a parameter is unknown, missing, not finite or outside its domain, or lengths differ.

    Examples
    --------
    >>> prediction = Distribution.normal(mean=[0.0, 1.0], sd=[1.0, 2.0])
    >>> prediction.cdf(np.array([0.0, 1.0]))
    array([0.5, 0.5])
    >>> from scipy import stats
    >>> Distribution.from_scipy(stats.poisson([1.0, 2.0])).point()
    array([1., 2.])
    """

    kind: ClassVar[str] = "distributions"
    point_is: ClassVar[str] = "mean"
    law: Law
    parameters: Parameters

    def __init__(
        self,
        law: Law | str,
        parameters: Mapping[str, npt.ArrayLike],
        n: int | None = None,
    ) -> None:
        family = law_named(law) if isinstance(law, str) else law
        if not isinstance(family, Law):
            raise InputError(
                f"law must be a family of distributions or the name of one, got {law!r}"
            )
        numbers = {
            name: as_vector(
                value,
                f"{family.name} parameter {name}",
                finite=name not in family.shapes,
                scalar=True,
            )
            for name, value in parameters.items()
        }
        unknown = sorted(set(numbers) - set(family.parameters))
        if unknown:
            raise InputError(
                f"parameters of {family.name} must be among {', '.join(family.parameters)}, "
                f"got {', '.join(unknown)}"
            )
        length = max((len(value) for value in numbers.values()), default=1) if n is None else n
        if length < 1:
            raise InputError(f"n must be at least 1, got {n}")
        defaults = {"loc": 0.0, "scale": 1.0}
        checked: dict[str, FloatArray] = {}
        for name in family.parameters:
            if name not in numbers and name not in defaults:
                raise InputError(f"parameters of {family.name} must include {name}")
            value = numbers.get(name, np.atleast_1d(defaults.get(name, np.nan)))
            value = np.full(length, value) if value.shape == (1,) else value
            check_length(value, f"{family.name} parameter {name}", length)
            checked[name] = value
        family.check(checked)
        object.__setattr__(self, "law", family)
        object.__setattr__(self, "parameters", checked)

    @classmethod
    def normal(cls, mean: npt.ArrayLike, sd: npt.ArrayLike) -> Self:
        """Normal laws with these means and standard deviations."""
        return cls(NormalLaw(), {"loc": mean, "scale": sd})

    @classmethod
    def from_scipy(cls, frozen: Any, n: int | None = None) -> Self:
        """Wrap a frozen law of ``scipy.stats``, such as ``stats.gamma(a, scale=b)``.

        Parameters
        ----------
        frozen : scipy.stats frozen distribution
            Its parameters are numbers or arrays of shape (n,).
        n : int, optional
            Number of rows, needed where every parameter is a single number.

        Returns
        -------
        Distribution

        Raises
        ------
        InputError
            If it is not a frozen law, or its parameters are not one per row.
        """
        family = getattr(frozen, "dist", None)
        if family is None or not hasattr(frozen, "args") or not hasattr(family, "_parse_args"):
            raise InputError(f"law must be a frozen scipy.stats distribution, got {frozen!r}")
        shapes, loc, scale = family._parse_args(*frozen.args, **frozen.kwds)
        law = law_of_scipy(family)
        values = dict(zip(law.parameters, (*shapes, loc, scale), strict=False))
        return cls(law, values, n=n)

    def __repr__(self) -> str:
        ranges = [f"{name} {_range(value)}" for name, value in self.parameters.items()]
        shown = [*ranges[:6], *(["…"] if len(ranges) > 6 else [])]
        return f"{type(self).__name__}({self.law.name}, n={self.n:,}: {', '.join(shown)})"

    def described(self) -> str:
        """What it is, in words."""
        return "a distribution"

    @property
    def n(self) -> int:
        """Number of rows."""
        return len(next(iter(self.parameters.values())))

    @property
    def discrete(self) -> bool:
        """Whether the law lives on points."""
        return self.law.discrete

    def numbers(self) -> Mapping[str, FloatArray]:
        """The numbers that the prediction holds, by name."""
        return self.parameters

    def take(self, rows: Rows) -> Self:
        """The same prediction for the rows chosen by an index or a mask."""
        return type(self)(self.law, {name: value[rows] for name, value in self.parameters.items()})

    def check_outcomes(self, y: FloatArray) -> None:
        """Raise `InputError` where a y is none that the law speaks of."""
        self.law.check_outcomes(y, self.parameters)

    def quantile(self, levels: npt.ArrayLike) -> FloatArray:
        """Quantiles at the levels, shape (n, k)."""
        return self.law.quantiles(wanted_levels(levels), self.parameters)

    def interval(self, coverage: float) -> tuple[FloatArray, FloatArray]:
        """Central interval between two quantiles."""
        ends = self.quantile(tail_levels(coverage))
        return ends[:, 0], ends[:, 1]

    def intervals(self, coverages: Sequence[float]) -> tuple[FloatArray, FloatArray]:
        """Central intervals at several coverages, shape (n, c) each."""
        ends = self.quantile([level for c in coverages for level in tail_levels(c)])
        return ends[:, 0::2], ends[:, 1::2]

    def claimed_misses(self, y: FloatArray, coverage: float) -> tuple[FloatArray, FloatArray]:
        """Half the nominal misses; of a discrete law, what lies beyond its own interval."""
        if not self.discrete:
            return Prediction.claimed_misses(self, y, coverage)
        lower, upper = self.interval(coverage)
        below, above = self.cdf_left(lower), 1.0 - self.cdf(upper)
        return np.stack([below, below], axis=1), np.stack([above, above], axis=1)

    def cdf(self, y: FloatArray) -> FloatArray:
        """P(Y ≤ y)."""
        return self.law.cdf(y, self.parameters)

    def cdf_left(self, y: FloatArray) -> FloatArray:
        """P(Y < y)."""
        if not self.discrete:
            return self.cdf(y)
        return self.law.cdf(np.ceil(y) - 1.0, self.parameters)

    def log_density(self, y: FloatArray) -> FloatArray:
        """Log density, or log probability of a discrete law, in nats."""
        return self.law.log_density(y, self.parameters)

    def point(self) -> FloatArray:
        """The mean."""
        return self._moment(self.law.mean(self.parameters), "mean")

    def sd(self) -> FloatArray:
        """The standard deviation."""
        return self._moment(self.law.sd(self.parameters), "standard deviation")

    def sample(self, rng: np.random.Generator, size: int) -> FloatArray:
        """Draws, shape (n, size)."""
        return self.law.sample(rng, size, self.parameters)

    def redrawn(self, y: FloatArray, uniforms: FloatArray) -> tuple[FloatArray, Self]:
        """Quantiles at the uniforms; the prediction stays."""
        return self.law.quantile(uniforms, self.parameters), self

    def _moment(self, value: FloatArray, name: str) -> FloatArray:
        if not np.isfinite(value).all():
            raise UnanswerableError(f"some {self.law.name} distributions have no {name}")
        return value


def _range(values: FloatArray) -> str:
    """The least and the greatest of some numbers."""
    low, high = f"{values.min():.3g}", f"{values.max():.3g}"
    return low if low == high else f"{low} to {high}"


# ---- several predictions as one: their mixture ---------------------------------------------------


def mixture(
    predictions: Sequence[Distribution], weights: npt.ArrayLike | None = None
) -> Distribution:
    """The mixture of several distributions of the same rows, such as those of an ensemble.

    Parts that are mixtures themselves are taken apart: the outcome is one mixture of plain laws.

    Parameters
    ----------
    predictions : sequence of Distribution
        k distributions of n rows each, all discrete or none. One alone comes back as it is.
    weights : array-like of shape (k,) or (n, k), optional
        Probabilities of the parts; equal if omitted.

    Returns
    -------
    Distribution

    Raises
    ------
    InputError
        If there is none, numbers of rows differ, kinds differ, or weights are no probabilities.

    Examples
    --------
    >>> both = mixture([Distribution.normal([0.0], [1.0]), Distribution.normal([4.0], [1.0])])
    >>> both.law.name, both.point(), both.quantile([0.5])
    ('norm+norm', array([2.]), array([[2.]]))
    """
    if not predictions:
        raise InputError("predictions must contain at least one distribution")
    count, n = len(predictions), predictions[0].n
    if any(prediction.n != n for prediction in predictions):
        raise InputError(
            f"predictions must have equal numbers of rows, got {[b.n for b in predictions]}"
        )
    shares = np.full((n, count), 1.0 / count)
    if weights is not None:
        stated = np.asarray(weights)
        table = np.broadcast_to(stated, (n, *stated.shape)) if stated.ndim == 1 else stated
        shares = as_matrix(table, "weights", length=n, columns=count)
    if count == 1:
        return predictions[0]
    parameters: dict[str, FloatArray] = {}
    laws: list[Law] = []
    for prediction, share in zip(predictions, shares.T, strict=True):
        family, components = (
            prediction.law,
            [(prediction.law, np.ones(prediction.n), prediction.parameters)],
        )
        if isinstance(family, MixtureLaw):  # a mixture of mixtures is one mixture
            components = family.split(prediction.parameters)
        for law, weight, numbers in components:
            laws.append(law)
            parameters[f"weight_{len(laws)}"] = share * weight
            parameters |= {f"{name}_{len(laws)}": column for name, column in numbers.items()}
    return Distribution(MixtureLaw(laws), parameters)


# ---- families of laws by their names -------------------------------------------------------------


def law_named(name: str) -> Law:
    """The family of this name.

    Parameters
    ----------
    name : str
        ``poisson``, ``negative_binomial`` or ``double_poisson`` (see `CountFamily`), or a name
        of ``scipy.stats``, such as ``norm``, ``t`` or ``nbinom``. Several
        with plus signs between them are a mixture: ``norm+norm`` (see `MixtureLaw`).

    Returns
    -------
    Law

    Raises
    ------
    InputError
        If there is no such family.

    Examples
    --------
    >>> law_named("norm").parameters
    ('loc', 'scale')
    >>> law_named("nbinom").parameters
    ('n', 'p', 'loc')
    >>> law_named("negative_binomial").parameters
    ('mu', 'dispersion')
    """
    if "+" in name:
        return MixtureLaw([law_named(family) for family in name.split("+")])
    if name in ("norm", "normal", "gaussian"):
        return NormalLaw()
    if name == "t":
        return StudentLaw()
    return CountFamily(name) if name in COUNT_FAMILIES else ScipyLaw(name)


def law_of_scipy(family: Any) -> Law:
    """The family that answers for a distribution object of ``scipy.stats``.

    Examples
    --------
    >>> from scipy import stats
    >>> type(law_of_scipy(stats.norm)).__name__, type(law_of_scipy(stats.gamma)).__name__
    ('NormalLaw', 'ScipyLaw')
    """
    if family.name == "norm":
        return NormalLaw()
    if family.name == "t":
        return StudentLaw()
    return CountFamily("poisson") if family.name == "poisson" else ScipyLaw(family)
