"""Groups by ease, and scores and groups chosen on rows held out for it: tuned RAPS and SAPS."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Annotated, Literal, final

import numpy as np
import numpy.typing as npt

from howsure.conformal.adapting import Binned, Mondrian, UniformBins
from howsure.conformal.labels.classifier import (
    CalibratedLabels,
    LabelConformal,
    Outputs,
    checked_table,
)
from howsure.conformal.labels.scores import LAC, RAPS, SAPS, LabelScore, Table
from howsure.conformal.ranks import conformal_rank, order_statistics
from howsure.core.arrays import AnyArray, BoolArray, FloatArray, IntArray
from howsure.core.classes import frozen
from howsure.core.convert import Bound, Checked, Fraction, Natural, check_fields
from howsure.core.errors import InputError, UnanswerableError
from howsure.core.rng import row_keys, row_uniforms
from howsure.core.weights import merge_rows
from howsure.predictions import LabelSets
from howsure.stats.cells import (
    TORCHCP_STRATA,
    EaseCells,
    StratumCells,
    largest_violation,
    signed_r2,
)
from howsure.stats.dominance import label_rank
from howsure.stats.ease import REPEATS, GaussianNoise, Perturbation, ease

# ---- groups by ease: rows whose prediction moves alike when their input is disturbed -------------


@final
@frozen
class EaseBins(Checked):
    """Groups of equal numbers of rows by ease, for `Mondrian`: the O- of O-LAC, O-SAPS, O-CPA.

    Parameters
    ----------
    bins : int
        Number of groups, at least 2; fewer where eases tie.
    perturbation : Perturbation or float
        How inputs are disturbed; a number stands for Gaussian noise with that share of each
        column's standard deviation.
    repeats : int
        Disturbances an example.
    seed : int
        Seed of the disturbances.

    Raises
    ------
    InputError
        If an option breaks its rule.

    Notes
    -----
    Ease reads no label, so a threshold per group gives coverage within groups: exactly if the edges
    come from rows that do not calibrate (a method that trains its own model uses those), on
    average over all rows otherwise. Source: Jang and Lee 2025, Algorithm 2.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.linspace(-2.0, 2.0, 40)[:, None]
    >>> group = EaseBins(2).learn(x, lambda rows: rows[:, 0] ** 3)
    >>> np.bincount(group(x)).tolist()
    [20, 20]
    """

    bins: Annotated[int, Bound(2)] = 10
    perturbation: Perturbation | float = 0.1
    repeats: int = REPEATS
    seed: int = 0

    def learn(self, x: FloatArray, forecast: Callable[[FloatArray], FloatArray]) -> Binned:
        """Put the edges at quantiles of the ease of these rows."""
        how = self.perturbation
        if not isinstance(how, Perturbation):
            how = GaussianNoise.relative(x, how)
        measured = partial(ease, forecast, perturbation=how, repeats=self.repeats, seed=self.seed)
        return Binned.learnt(measured, x, self.bins)


@final
@frozen
class EaseColumn(Checked):
    """Groups of equal numbers of rows by an ease that is known already: a column of x.

    Parameters
    ----------
    column : int
        Which column of x.
    bins : int
        Number of groups, at least 2; fewer where eases tie.

    Raises
    ------
    InputError
        If an option breaks its rule.

    Notes
    -----
    For studies that split the same rows again and again: ease is computed once, put beside the
    probabilities, and a model that reads the other columns is the classifier.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.arange(10.0)[:, None]
    >>> np.bincount(EaseColumn(0, 2).learn(x, lambda rows: rows[:, 0])(x)).tolist()
    [5, 5]
    """

    column: Natural
    bins: Annotated[int, Bound(2)] = 10

    def learn(self, x: FloatArray, forecast: Callable[[FloatArray], FloatArray]) -> Binned:
        """Put the edges at quantiles of the ease of these rows.

        Raises
        ------
        InputError
            If x has no such column.
        """
        return Binned.learnt(self.column, x, self.bins)


EaseGroups = EaseBins | EaseColumn
"""Groups by ease, computed or given."""


# ---- tuning --------------------------------------------------------------------------------------

Criterion = Literal["t_ss", "sscv", "size"]
Candidate = tuple[LabelScore, EaseGroups | None]
"""A score, and groups by ease; None for the base's own groups."""
_Eases = tuple[FloatArray, FloatArray]

# As published, so that results compare.
RAPS_PENALTIES = (0.0, 1e-5, 1e-4, 8e-4, 9e-4, 1e-3, 1.5e-3, 2e-3)
"""λ that the code of RAPS tries for adaptivity, and 0."""
# As published, so that results compare.
RAPS_SIZE_PENALTIES = (0.001, 0.01, 0.1, 0.2, 0.5)
"""λ that it tries for size."""
# As published, so that results compare.
SAPS_PENALTIES = (0.02, 0.05, *(round(0.05 * k, 2) for k in range(2, 13)))
"""λ that the paper of SAPS tries."""
# The paper of O-LAC and O-SAPS names no grid; this one spans from coarse to as fine as rows allow.
# Not tuned.
BINS = (5, 10, 20, 50)
"""Numbers of groups by ease that O- methods try."""

_BASE = LabelConformal()
_GROUPS = EaseBins()


@final
@frozen(kw_only=True)
class TunedLabels:
    """`LabelConformal` whose score and groups are the best of several on held-out rows.

    Parameters
    ----------
    base : LabelConformal
        Everything but the score and the groups.
    family : {"raps", "saps", "o_lac", "o_saps"}
        What is tuned: λ of RAPS (with k_reg from the ranks of true labels) or of SAPS; the number
        of groups by ease of LAC; both of SAPS.
    criterion : {"t_ss", "sscv", "size"}
        The highest T-SS, the lowest SSCV or the smallest mean size on the tuning rows. Jang and
        Lee use T-SS in their text and name SSCV in an appendix.
    share : float, optional
        Share of the rows that tune; 0.3 for RAPS, 0.2 for SAPS, 0.5 for O-LAC and O-SAPS if
        omitted.
    penalties : tuple of float, optional
        λ to try.
    bins : tuple of int
        Numbers of groups to try; those that leave a group fewer than 10/α calibration rows are
        dropped, but for the smallest.
    groups : EaseBins, EaseColumn or tuple of these
        How ease is computed. Several, such as noise of several sizes, are tried in turn for the
        groups of O-LAC and O-SAPS; the first gives the cells of T-SS for all of them.
    evaluation_bins : int
        Cells of T-SS, at most a tenth of the tuning rows.

    Raises
    ------
    InputError
        If an option breaks its rule.

    Notes
    -----
    Rows are split by content, so that their order does not matter. The rows that tune do not
    calibrate: coverage keeps its guarantee. T-SS on the tuning rows uses the ease that forms the
    groups, which favours it. Source: Jang and Lee 2025, Algorithm 2.

    Examples
    --------
    >>> TunedLabels(family="o_lac").name
    'O-LAC'
    """

    base: LabelConformal = _BASE
    family: Literal["raps", "saps", "o_lac", "o_saps"] = "o_saps"
    criterion: Criterion = "t_ss"
    share: Fraction | None = None
    penalties: tuple[float, ...] | None = None
    bins: tuple[int, ...] = BINS
    groups: EaseGroups | tuple[EaseGroups, ...] = _GROUPS
    evaluation_bins: int = 50

    def __post_init__(self) -> None:
        if not self._ways or not all(isinstance(way, EaseGroups) for way in self._ways):
            raise InputError(f"groups must be EaseBins or EaseColumn, got {self.groups!r}")
        check_fields(self)

    @property
    def _ways(self) -> tuple[EaseGroups, ...]:
        return self.groups if isinstance(self.groups, tuple) else (self.groups,)

    @property
    def name(self) -> str:
        """What reports call it."""
        return {"raps": "RAPS", "saps": "SAPS", "o_lac": "O-LAC", "o_saps": "O-SAPS"}[self.family]

    def calibrate(self, x: npt.ArrayLike, y: npt.ArrayLike) -> TunedCalibration:
        """Choose on one part of the rows, and learn thresholds from the other.

        Raises
        ------
        InputError
            As `LabelConformal.calibrate`, or if a part has no rows.
        UnanswerableError
            If no candidate can be judged.
        """
        choice = self.choose(x, y)
        score, groups = choice.best
        adapt = self.base.adapt if groups is None else Mondrian(groups)
        method = replace(self.base, score=score, adapt=adapt)
        calibrating, outputs = choice.rest, Outputs(self.base.model)
        learnt = method.learnt(
            calibrating.table,
            calibrating.labels,
            calibrating.x,
            outputs=outputs,
            reference=calibrating.x[:0],
        )
        chosen = CalibratedLabels(method, outputs, learnt, calibrating.table.shape[1])
        return TunedCalibration(chosen, choice.tried)

    def choose(self, x: npt.ArrayLike, y: npt.ArrayLike) -> TunedChoice:
        """Choose on one part of the rows; see `calibrate`."""
        inputs = np.asarray(x)
        outputs = Outputs(self.base.model)
        table = checked_table(outputs(inputs), LAC())
        labels = self.base.numbers(y, table)
        tuning = _chosen(table, self.share or _SHARES_FOR_TUNING[self.family], self.base.seed)
        tuned = _TuningRows(table[tuning], labels[tuning], inputs[tuning])
        calibrating = _TuningRows(table[~tuning], labels[~tuning], inputs[~tuning])
        eases = self._eases(outputs, calibrating, tuned)
        candidates = self._candidates(tuned, len(calibrating.labels))
        judged = [
            self._judge(score, groups, calibrating, tuned, eases, number)
            for score, groups, number in candidates
        ]
        if np.isnan(judged).all():
            raise UnanswerableError(
                f"no candidate for {self.name} has a finite {self.criterion} on the tuning rows"
            )
        tried = tuple(((s, g), value) for (s, g, _), value in zip(candidates, judged, strict=True))
        return TunedChoice(tried[int(np.nanargmax(judged))][0], tried, tuning, calibrating)

    def _eases(
        self, outputs: Outputs, calibrating: _TuningRows, tuned: _TuningRows
    ) -> list[_Eases]:
        """Ease of both parts in each way; only what the family and the criterion need."""
        grouped = self.family in ("o_lac", "o_saps")
        ways = self._ways if grouped else self._ways[: self.criterion == "t_ss"]
        rules = [way.learn(calibrating.x, outputs) for way in ways]
        return [(rule.values(calibrating.x), rule.values(tuned.x)) for rule in rules]

    def _candidates(
        self, tuned: _TuningRows, rows: int
    ) -> list[tuple[LabelScore, EaseGroups | None, int]]:
        """Scores with groups, and the place of the way in which their ease is computed."""
        randomized = self.base.score.random or self.family == "o_lac"
        if self.family == "raps":
            sizes = self.criterion == "size"
            penalties = self.penalties or (RAPS_SIZE_PENALTIES if sizes else RAPS_PENALTIES)
            rank = label_rank(tuned.table, tuned.labels)
            number = min(conformal_rank(len(rank), self.base.coverage), len(rank))
            free = int(order_statistics(rank, np.array([number]))[0])
            return [(RAPS(p, free, randomized), None, 0) for p in penalties]
        penalties = self.penalties or SAPS_PENALTIES
        if self.family == "saps":
            return [(SAPS(p, randomized), None, 0) for p in penalties]
        least = 10 / (1 - self.base.coverage)
        numbers = sorted(set(self.bins))
        possible = [b for b in numbers if rows / b >= least] or numbers[:1]
        plain = self.family == "o_lac"
        scores: list[LabelScore] = [LAC()] if plain else [SAPS(p, randomized) for p in penalties]
        return [
            (score, replace(way, bins=b), number)
            for number, way in enumerate(self._ways)
            for b in possible
            for score in scores
        ]

    def _judge(
        self,
        score: LabelScore,
        groups: EaseGroups | None,
        calibrating: _TuningRows,
        tuned: _TuningRows,
        eases: list[_Eases],
        number: int,
    ) -> float:
        """How good a candidate is on the tuning rows; higher is better."""
        adapt, at, new = self.base.adapt, calibrating.x, tuned.x
        if groups is not None:  # the groups of its own rule, ease being known
            adapt = Mondrian(UniformBins(0, groups.bins))
            at, new = (eases_of_rows[:, None] for eases_of_rows in eases[number])
        method = replace(self.base, score=score, adapt=adapt)
        learnt = method.learnt(
            calibrating.table,
            calibrating.labels,
            at,
            outputs=Outputs(self.base.model),
            reference=at[:0],
        )
        sets = method.sets(tuned.table, learnt.at(new))
        size = sets.sizes.astype(np.float64)
        if self.criterion == "size":
            return -float(size.mean())
        if self.criterion == "sscv":
            covered = sets.contains(tuned.labels.astype(np.float64))
            rows, counts = merge_rows(np.column_stack((size, covered)))
            strata = StratumCells(rows[:, 0], TORCHCP_STRATA)
            return -largest_violation(strata, rows[:, 1], counts, self.base.coverage)
        bins = max(3, min(self.evaluation_bins, len(size) // 10))
        rank = label_rank(tuned.table, tuned.labels)
        rows, counts = merge_rows(np.column_stack((eases[0][1], size, rank)))
        _, means = EaseCells(rows[:, 0], bins, counts).means(rows[:, 1:], counts)
        return signed_r2(means[:, 0], means[:, 1])


@final
@frozen(eq=False)
class _TuningRows:
    table: Table
    labels: IntArray
    x: AnyArray


@final
@frozen(eq=False)
class TunedChoice:
    """What was chosen on tuning rows."""

    best: Candidate  # score and groups of the highest criterion
    tried: tuple[tuple[Candidate, float], ...]  # as in `TunedCalibration`
    tuning: BoolArray  # shape (n,): the rows that chose
    rest: _TuningRows  # the others


@final
@frozen(eq=False)
class TunedCalibration:
    """A calibrated `TunedLabels`.

    Attributes
    ----------
    chosen : CalibratedLabels
        The best candidate, calibrated.
    tried : tuple of (candidate, criterion)
        Every candidate with its criterion, higher being better (size and SSCV with a minus).
    """

    chosen: CalibratedLabels
    tried: tuple[tuple[Candidate, float], ...]

    def predict(self, x: npt.ArrayLike) -> LabelSets:
        """Sets of labels for rows of inputs; see `CalibratedLabels.predict`."""
        return self.chosen.predict(x)


# Of the calibration rows, by method: as their authors do.
_SHARES_FOR_TUNING = {"raps": 0.3, "saps": 0.2, "o_lac": 0.5, "o_saps": 0.5}


def _chosen(table: Table, share: float, seed: int) -> BoolArray:
    """Which rows tune: those of the smallest draws, so that order does not matter."""
    count = round(share * len(table))
    if not 0 < count < len(table):
        raise InputError(f"share must leave rows in both parts, got {count} of {len(table)}")
    draws = row_uniforms(seed, "tuning rows", row_keys(table))
    chosen = np.zeros(len(table), dtype=np.bool_)
    chosen[np.argsort(draws)[:count]] = True
    return chosen
