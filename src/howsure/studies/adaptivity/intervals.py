"""Conformal intervals compared by how they adapt, over random splits of a regressor's rows.

Every method wraps the same trained model. Source: Jang and Lee 2025, section 6, on data that are
not public.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Final, final

import numpy as np

from howsure.core.arrays import FloatArray
from howsure.core.convert import Bound, Checked
from howsure.core.rng import child
from howsure.methods.conformal.adapting import Adaptation, Marginal, Mondrian
from howsure.methods.conformal.inductive import SplitConformal
from howsure.methods.conformal.labels import EaseColumn
from howsure.methods.conformal.normalized import NormalizedConformal, ReconstructionLoss
from howsure.methods.conformal.ranks import DELTA
from howsure.methods.conformal.regions import Range
from howsure.methods.interface import Method
from howsure.metrics.adaptivity import EaseCells, largest_violation, signed_r2
from howsure.metrics.association import binned_r2, kendall_tau
from howsure.stats.dominance import merge_ties
from howsure.studies.adaptivity.inputs import Regressed
from howsure.studies.adaptivity.protocol import NO_SLOPE
from howsure.studies.adaptivity.result import MethodComparison
from howsure.studies.adaptivity.splits import (
    Design,
    Numbers,
    Part,
    checked_names,
    stacked_columns,
)

INTERVAL_METHODS: Final = ("CP", "CP-A", "PAC", "SSCP", "O-CPA", "O-PAC")
"""What can be compared."""
INTERVAL_MEASURES: Final = (
    *("t_cv", "t_ss", "binned_r2", "kendall_tau", "empirical_coverage", "width"),
)
"""What each is measured by."""
_UNBOUNDED: Final = "some intervals are unbounded: a group has too few calibration rows"
_MEAN, _SD, _EASE = range(3)


def compare_intervals(
    task: Regressed,
    *,
    coverages: Sequence[float] = (0.6, 0.7, 0.8),
    methods: Sequence[str] = INTERVAL_METHODS,
    repeats: int = 5,
    share: float = 0.5,
    bins: int = 10,
    groups: int = 5,
    delta: float = DELTA,
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
        O-CPA and O-PAC, a threshold for each group by ease.
    repeats : int
        Random splits, at least 1; they have five seeds.
    share : float
        Share of the rows that validate; the others test.
    bins : int
        Cells by ease.
    groups : int
        Groups by ease of O-CPA and O-PAC.
    delta : float
        δ of PAC and O-PAC.
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
    >>> from howsure.metrics.adaptivity import GaussianNoise
    >>> from howsure.studies.adaptivity.inputs import regressed
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
    >>> (found,) = compare_intervals(task, coverages=(0.8,), methods=("CP", "CP-A"), repeats=2)
    >>> bool(found.median("binned_r2")[1] > 0.5)
    True
    """
    design = Design(
        task=task.name,
        n=len(task.y),
        methods=checked_names(methods, INTERVAL_METHODS),
        measures=INTERVAL_MEASURES,
        coverages=tuple(coverages),
        repeats=repeats,
        share=share,
        bins=bins,
        seed=seed,
        units="y",
    )
    first = next(iter(task.eases.values()))
    known = stacked_columns(task.mean, task.sd, first)
    made = _Maker(tuple(design.coverages), groups, delta, clip, difficulty)

    def one(name: str, part: Part) -> list[Numbers]:
        x = task.x if name == "SSCP" else known
        method = made.sscp(task, part) if name == "SSCP" else made.named(name)
        rng = child(part.seed, "adaptivity", name)
        fitted = method.fit(x[part.validation], task.y[part.validation], rng)
        belief = fitted.predict(x[part.test]).outcome
        cells = EaseCells(first[part.test], bins)
        truth, error = task.y[part.test], task.error[part.test]
        ends = [belief.interval(coverage) for coverage in design.coverages]
        return [
            interval_numbers(*pair, truth, error, cells, coverage)
            for pair, coverage in zip(ends, design.coverages, strict=True)
        ]

    return design.run(one)


def interval_numbers(
    lower: FloatArray,
    upper: FloatArray,
    y: FloatArray,
    error: FloatArray,
    cells: EaseCells,
    coverage: float,
) -> Numbers:
    """Every measure of `INTERVAL_MEASURES`, without intervals and floors.

    Parameters
    ----------
    lower, upper : ndarray of float, shape (n,)
        Ends.
    y, error : ndarray of float, shape (n,)
        What happened, and |y − forecast|.
    cells : EaseCells
        Cells of the rows by ease.
    coverage : float
        Nominal coverage.

    Returns
    -------
    mapping of str to float or str
        A reason where a measure has no answer.

    Examples
    --------
    >>> zeros, ones = np.zeros(4), np.ones(4)
    >>> cells = EaseCells([1.0, 2.0, 3.0, 4.0], 4)
    >>> interval_numbers(zeros, ones, zeros, zeros, cells, 0.8)["t_ss"]
    'all cells agree in mean size or in mean difficulty'
    """
    covered = ((lower <= y) & (y <= upper)).astype(np.float64)
    width = upper - lower
    once = np.ones(len(y))
    found: dict[str, float | str] = {
        "t_cv": largest_violation(cells, covered, once, coverage),
        "empirical_coverage": float(covered.mean()),
    }
    if not np.isfinite(width).all():
        return {**dict.fromkeys(INTERVAL_MEASURES, _UNBOUNDED), **found}
    width = merge_ties(width, 4e-16 * np.maximum(np.abs(lower), np.abs(upper)))
    slope = signed_r2(*cells.means(np.column_stack((width, error)), once)[1].T)
    found["t_ss"] = slope if np.isfinite(slope) else NO_SLOPE
    found["width"] = float(width.mean())
    for name, measure in (("binned_r2", binned_r2), ("kendall_tau", kendall_tau)):
        answer = measure(error, width)
        found[name] = answer.value if np.isfinite(answer.value) else answer.reason
    return found


@final
@dataclass(frozen=True, slots=True)
class _Maker(Checked):
    """Methods around forecasts, spreads and eases that are known: the columns of x."""

    coverages: tuple[float, ...]
    groups: Annotated[int, Bound(2)]
    delta: float
    clip: Range | None
    difficulty: Any

    def named(self, name: str) -> Method:
        """Any but SSCP."""
        if name == "CP":
            return SplitConformal(_column_mean, coverages=self.coverages, clip=self.clip)
        adapt: Adaptation = Marginal()
        if name.startswith("O-"):
            adapt = Mondrian(EaseColumn(_EASE, self.groups))
        return NormalizedConformal(
            _column_mean,
            _column_sd,
            coverages=self.coverages,
            clip=self.clip,
            adapt=adapt,
            rank="pac" if name.endswith("PAC") else "conformal",
            delta=self.delta,
        )

    def sscp(self, task: Regressed, part: Part) -> Method:
        """The model itself, with residuals learnt from half of the validation rows."""
        model = self.difficulty
        if model is None:
            from sklearn.ensemble import RandomForestRegressor

            model = RandomForestRegressor(min_samples_leaf=5, random_state=part.seed)
        return NormalizedConformal(
            task.predict,
            model,
            errors="training",
            feature=ReconstructionLoss(),
            coverages=self.coverages,
            clip=self.clip,
        )


def _column_mean(x: FloatArray) -> FloatArray:
    return x[:, _MEAN]


def _column_sd(x: FloatArray) -> FloatArray:
    return x[:, _SD]
