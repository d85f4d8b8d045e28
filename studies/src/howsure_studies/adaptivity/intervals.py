"""Conformal intervals compared by how they adapt, over random splits of a regressor's rows.

Every method wraps the same trained model. Source: Jang and Lee 2025, section 6, on data that are
not public.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, Literal, final

import numpy as np
import numpy.typing as npt

from howsure.conformal.adapting import Marginal, Mondrian
from howsure.conformal.labels import EaseColumn
from howsure.conformal.scores import Range
from howsure.core import formats
from howsure.core.arrays import FloatArray, as_matrix, as_vector, check_above
from howsure.core.classes import frozen
from howsure.core.convert import check_whole
from howsure.core.rng import child
from howsure.stats.cells import EaseCells, largest_violation, signed_r2
from howsure.stats.dominance import merge_ties
from howsure.stats.ease import REPEATS, GaussianNoise, Perturbation
from howsure.topics.association import binned_r2, kendall_tau
from howsure_studies.adaptivity.comparison import (
    NO_SLOPE,
    MethodComparison,
    Numbers,
    Predict,
    RandomSplit,
    Subject,
    chosen,
    compared,
    eases_of,
)
from howsure_studies.methods.conformal.inductive import SplitConformal
from howsure_studies.methods.conformal.normalized import NormalizedConformal, ReconstructionLoss
from howsure_studies.methods.interface import Method

INTERVAL_METHODS: Final = ("CP", "CP-A", "PAC", "SSCP", "O-CPA", "O-PAC")
"""The paper's methods for intervals."""
CONTROL: Final = "R-CPA"
"""O-CPA whose thresholds are each learnt from rows drawn at random: what few rows cost."""
INTERVAL_MEASURES: Final = (
    *("t_cv", "t_ss", "binned_r2", "kendall_tau", "empirical_coverage", "width"),
)
"""What each method for intervals is measured by."""
CLIPPED: Final = "Clipped to"
"""What reports call the valid range of y, where intervals are cut off."""
DRAWN: Final = "Drawn world"
"""What reports call a world of which no row was observed."""
_UNBOUNDED: Final = "some intervals are unbounded: a group has too few calibration rows"
_MEAN, _SD, _EASE, _RANDOM = range(4)
_LEAST_TREES = 30
_LEAST_SD = 0.05
"""The least sd, as a share of the mean error."""


@final
@frozen(kw_only=True, eq=False)
class Regressed(Subject):
    """A regressor's forecasts on rows that it was not trained on.

    Attributes
    ----------
    name, y, eases
        As in every subject: what reports call it, what happened, ease by the way of disturbing.
    x : ndarray of float, shape (n, d)
        Inputs as a table.
    predict : callable
        The model's forecast, a function of such inputs.
    mean, sd : ndarray of float, shape (n,)
        Forecasts and their predicted standard deviations (any positive scale).
    training : tuple of ndarray, optional
        Inputs and outcomes that the model was trained on, for methods that train their own.
    drawn : bool
        Whether rows were drawn from a law, and none observed.
    """

    x: FloatArray
    predict: Predict
    mean: FloatArray
    sd: FloatArray
    training: tuple[FloatArray, FloatArray] | None = None
    drawn: bool = False

    @property
    def error(self) -> FloatArray:
        """|y − forecast|, shape (n,)."""
        return np.asarray(np.abs(self.y - self.mean))

    @property
    def about(self) -> Mapping[str, str]:
        """R² of the forecasts, and whether rows are drawn."""
        spread = float(np.var(self.y))
        fit = 1 - float(np.square(self.error).mean()) / spread if spread else math.nan
        drawn = {DRAWN: "yes"} if self.drawn else {}
        return {"R² of the forecasts": formats.number(fit, 3), **drawn}


def regressed(
    predict: Predict,
    x: npt.ArrayLike,
    y: npt.ArrayLike,
    perturbations: Mapping[str, Perturbation],
    *,
    spread: Predict,
    repeats: int = REPEATS,
    seed: int = 0,
    name: str = "regressor",
) -> Regressed:
    """Run a regressor on rows and on disturbed copies of them.

    Parameters
    ----------
    predict : callable
        Maps inputs, shape (k, d), to forecasts, shape (k,).
    x : array-like of shape (n, d)
        Inputs that it was not trained on.
    y : array-like of shape (n,)
        What happened.
    perturbations : mapping of str to Perturbation
        Ways of disturbing, by name; the first gives the cells of the measures.
    spread : callable
        Maps inputs to predicted standard deviations, above 0, shape (k,).
    repeats, seed
        As in `howsure.topics.adaptivity.ease`; similarity is −|μ(x) − μ(t(x))|.
    name : str
        What reports call it.

    Returns
    -------
    Regressed

    Raises
    ------
    InputError
        If there is no way of disturbing, or an array breaks its rule.

    Examples
    --------
    >>> from howsure.stats.ease import GaussianNoise
    >>> x = np.linspace(-1, 1, 9)[:, None]
    >>> task = regressed(
    ...     lambda rows: rows[:, 0] ** 2,
    ...     x,
    ...     np.zeros(9),
    ...     {"noise": GaussianNoise(0.1)},
    ...     spread=lambda rows: np.ones(len(rows)),
    ... )
    >>> int(np.argmax(task.eases["noise"]))
    4
    """
    table = as_matrix(x, "x")
    n = len(table)
    sd = as_vector(spread(table), "spread's outputs", length=n)
    check_above(sd, "spread's outputs", 0.0)
    return Regressed(
        name=name,
        x=table,
        y=as_vector(y, "y", length=n),
        predict=predict,
        mean=as_vector(predict(table), "predict's forecasts", length=n),
        sd=sd,
        eases=eases_of(predict, table, perturbations, repeats, seed),
    )


def forest_task(
    training: tuple[npt.ArrayLike, npt.ArrayLike],
    rest: tuple[npt.ArrayLike, npt.ArrayLike],
    *,
    noise: float = 0.2,
    trees: int = 60,
    repeats: int = REPEATS,
    seed: int = 0,
    name: str = "forests",
) -> Regressed:
    """Train a forest of y and a forest of its out-of-bag errors; run both on other rows.

    Parameters
    ----------
    training : (array-like of shape (k, d), array-like of shape (k,))
        Inputs and outcomes that train.
    rest : (array-like of shape (n, d), array-like of shape (n,))
        Those of the task.
    noise : float
        Noise on inputs that gives their ease, as a share of each column's standard deviation.
    trees : int
        Trees of each forest, at least 30, for every row must be out of the bag of some.
    repeats, seed
        Disturbances a row, and the seed of forests and noise.
    name : str
        What reports call it.

    Returns
    -------
    Regressed
        Its sd is the predicted absolute error, at least a twentieth of the mean one.

    Raises
    ------
    InputError
        If shapes differ, a value is not finite, or trees are too few.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> x = rng.uniform(-1, 1, (200, 2))
    >>> y = x[:, 0] + np.abs(x[:, 1]) * rng.normal(size=200)
    >>> task = forest_task((x[:120], y[:120]), (x[120:], y[120:]), trees=30, repeats=3)
    >>> bool(np.corrcoef(task.sd, np.abs(x[120:, 1]))[0, 1] > 0.5)
    True
    """
    check_whole(trees, "trees", _LEAST_TREES)
    from sklearn.ensemble import RandomForestRegressor

    x = as_matrix(training[0], "training inputs")
    y = as_vector(training[1], "training outcomes", length=len(x))

    def forest(leaf: int, shift: int) -> Any:
        return RandomForestRegressor(
            trees, min_samples_leaf=leaf, oob_score=True, random_state=seed + shift
        )

    mean = forest(2, 0).fit(x, y)
    errors = np.abs(y - mean.oob_prediction_)
    spread = forest(10, 1).fit(x, errors)
    least = max(_LEAST_SD * float(errors.mean()), np.finfo(np.float64).tiny)

    def sd(rows: FloatArray) -> FloatArray:
        return np.asarray(np.maximum(spread.predict(rows), least))

    task = regressed(
        mean.predict,
        rest[0],
        rest[1],
        {f"noise {noise:g}": GaussianNoise.relative(x, noise)},
        spread=sd,
        repeats=repeats,
        seed=seed,
        name=name,
    )
    return replace(task, training=(x, y))


def compare_intervals(
    task: Regressed,
    *,
    coverages: Sequence[float] = (0.6, 0.7, 0.8),
    methods: Sequence[str] = INTERVAL_METHODS,
    own: Mapping[str, Method] | None = None,
    repeats: int = 5,
    share: float = 0.5,
    bins: int = 10,
    groups: int = 5,
    clip: Range | None = None,
    difficulty: Any = None,
    seed: int = 0,
) -> tuple[MethodComparison, ...]:
    """Compare methods for intervals over random splits of one regressor's rows.

    Parameters
    ----------
    task : Regressed
        The regressor's forecasts; the first of its eases gives groups and cells.
    coverages : sequence of float
        Nominal coverages; Jang and Lee have these three.
    methods : sequence of str
        Of `INTERVAL_METHODS`: CP, score |y − μ|; CP-A, |y − μ|/σ; PAC, the same with a guarantee
        for nearly every calibration set; SSCP, a residual model with a self-supervised feature;
        O-CPA and O-PAC, a threshold for each group by ease. Or `CONTROL`, R-CPA: as O-CPA, but
        the threshold of a group is learnt from as many validation rows drawn at random.
    own : mapping of str to Method, optional
        Further methods by name. Each is fitted to the task's inputs: to the validation rows and,
        where they are known, to those that trained the regressor.
    repeats : int
        Random splits, at least 1; they have five seeds.
    share : float
        Share of the rows that validate; the others test.
    bins : int
        Cells by ease.
    groups : int
        Groups by ease of O-CPA, O-PAC and R-CPA.
    clip : tuple of float, optional
        The valid range of y, at which intervals are cut off.
    difficulty : scikit-learn regressor, optional
        What learns residuals for SSCP; a forest with leaves of five rows if omitted.
    seed : int
        Fixes the splits and the draws.

    Returns
    -------
    tuple of MethodComparison
        One a coverage. Intervals of one width have no T-SS; unbounded ones neither T-SS nor
        width.

    Raises
    ------
    InputError
        If an option breaks its rule, or the test part has fewer rows than cells.

    Examples
    --------
    >>> from howsure.stats.ease import GaussianNoise
    >>> rng = np.random.default_rng(0)
    >>> x = rng.uniform(-1, 1, (400, 1))
    >>> y = rng.normal(0, 0.2 + x[:, 0] ** 2)
    >>> task = regressed(
    ...     lambda rows: 0 * rows[:, 0],
    ...     x,
    ...     y,
    ...     {"noise": GaussianNoise(0.1)},
    ...     spread=lambda rows: 0.2 + rows[:, 0] ** 2,
    ... )
    >>> (comparison,) = compare_intervals(task, coverages=(0.8,), methods=("CP", "CP-A"), repeats=2)
    >>> bool(comparison.median("binned_r2")[1] > 0.5)
    True
    """
    known = np.column_stack((task.mean, task.sd, task.ease))
    columns = {"O-": _EASE, "R-": _RANDOM}
    check_whole(groups, "groups", 2)
    alike: dict[str, Any] = {"coverages": tuple(coverages), "clip": clip}

    def method_of(name: str, split: RandomSplit) -> Method:
        """SSCP learns residuals from half of the validation rows; the others read `known`."""
        if name == "CP":
            return SplitConformal(_column_mean, **alike)
        if name == "SSCP":
            residuals = _residual_forest(split.seed) if difficulty is None else difficulty
            feature = ReconstructionLoss()
            return NormalizedConformal(
                task.predict, residuals, errors="training", feature=feature, **alike
            )
        column = columns.get(name[:2])
        adapt = Marginal() if column is None else Mondrian(EaseColumn(column, groups))
        rank: Literal["pac", "conformal"] = "pac" if name.endswith("PAC") else "conformal"
        return NormalizedConformal(_column_mean, _column_sd, adapt=adapt, rank=rank, **alike)

    def numbers_of(name: str, split: RandomSplit) -> list[Numbers]:
        other = (own or {}).get(name)
        table = known if other is None and name != "SSCP" else task.x
        if name == CONTROL:
            table = np.column_stack((known, _control_ease(task.ease, split)))
        x, y = table[split.validation], task.y[split.validation]
        if other is not None and task.training is not None:
            x, y = np.vstack((task.training[0], x)), np.r_[task.training[1], y]
        method = method_of(name, split) if other is None else other
        fitted = method.fit(x, y, child(split.seed, "adaptivity", name))
        predicted = fitted.predict(table[split.test]).outcome
        cells = EaseCells(task.ease[split.test], bins)
        truth, error = task.y[split.test], task.error[split.test]
        return [
            interval_numbers(*predicted.interval(coverage), truth, error, cells, coverage)
            for coverage in coverages
        ]

    results = compared(
        task,
        numbers_of,
        methods=chosen(methods, (*INTERVAL_METHODS, CONTROL), own),
        measures=INTERVAL_MEASURES,
        coverages=coverages,
        repeats=repeats,
        share=share,
        bins=bins,
        seed=seed,
        units="y",
    )
    if clip is None:
        return results
    valid = f"{clip[0]:g} to {clip[1]:g}"
    return tuple(replace(r, about={**r.about, CLIPPED: valid}) for r in results)


def _control_ease(ease: FloatArray, split: RandomSplit) -> FloatArray:
    """For validation rows a uniform draw, for others where their ease stands among theirs.

    Groups of a fifth by this number are groups by ease where intervals are made, and random rows
    where their thresholds are learnt.
    """
    known = np.sort(ease[split.validation])
    lots = (np.searchsorted(known, ease) + 0.5) / (len(known) + 1.0)
    rng = child(split.seed, "adaptivity", "random groups")
    lots[split.validation] = (rng.permutation(len(known)) + 0.5) / len(known)
    return np.asarray(lots)


def interval_numbers(
    lower: FloatArray,
    upper: FloatArray,
    y: FloatArray,
    error: FloatArray,
    cells: EaseCells,
    coverage: float,
) -> Numbers:
    """Every measure of `INTERVAL_MEASURES`; `error` is |y − forecast|."""
    covered = ((lower <= y) & (y <= upper)).astype(np.float64)
    width = upper - lower
    once = np.ones(len(y))
    numbers: dict[str, float | str] = {
        "t_cv": largest_violation(cells, covered, once, coverage),
        "empirical_coverage": float(covered.mean()),
    }
    if not np.isfinite(width).all():
        return {**dict.fromkeys(INTERVAL_MEASURES, _UNBOUNDED), **numbers}
    width = merge_ties(width, 4e-16 * np.maximum(np.abs(lower), np.abs(upper)))
    slope = signed_r2(*cells.means(np.column_stack((width, error)), once)[1].T)
    numbers["t_ss"] = slope if np.isfinite(slope) else NO_SLOPE
    numbers["width"] = float(width.mean())
    for name, measure in (("binned_r2", binned_r2), ("kendall_tau", kendall_tau)):
        answer = measure(error, width)
        numbers[name] = answer.value if np.isfinite(answer.value) else answer.reason
    return numbers


def _residual_forest(seed: int) -> Any:
    from sklearn.ensemble import RandomForestRegressor

    return RandomForestRegressor(min_samples_leaf=5, random_state=seed)


def _column_mean(x: FloatArray) -> FloatArray:
    return x[:, _MEAN]


def _column_sd(x: FloatArray) -> FloatArray:
    return x[:, _SD]
