"""Label sets compared by how they adapt, over random splits of a classifier's rows.

In every repeat the rows are split at random in a validation part and a test part. Methods without
options to choose calibrate on the whole validation part; those with some choose them on one half
of it and calibrate on the other. Source: Jang and Lee 2025, section 5.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, final

import numpy as np

from howsure.core.arrays import FloatArray, IntArray
from howsure.core.errors import UnanswerableError
from howsure.methods.conformal.labels import APS, LAC, EaseColumn, LabelConformal, TunedLabels
from howsure.methods.conformal.labels.scores import LabelScore
from howsure.methods.conformal.labels.tuning import BINS, Criterion
from howsure.metrics.adaptivity import (
    TORCHCP_STRATA,
    EaseCells,
    StratumCells,
    label_rank,
    largest_violation,
    set_deficit,
    set_excess,
    signed_r2,
)
from howsure.predictions import LabelSets
from howsure.studies.adaptivity.inputs import Classified
from howsure.studies.adaptivity.result import MethodComparison
from howsure.studies.adaptivity.splits import (
    Design,
    Numbers,
    Part,
    checked_names,
    stacked_columns,
)

LABEL_METHODS: Final = ("LAC", "APS", "RAPS", "SAPS", "O-LAC", "O-SAPS")
"""What can be compared."""
LABEL_MEASURES: Final = (
    *("t_cv", "t_ss", "sscv", "escv", "set_deficit", "set_excess"),
    *("empirical_coverage", "set_size"),
)
"""What each is measured by."""
NO_SLOPE: Final = "all cells agree in mean size or in mean difficulty"
"""Why T-SS may be missing."""

_PLAIN: Final[Mapping[str, LabelScore]] = {"LAC": LAC(), "APS": APS()}
_FAMILIES: Final[Mapping[str, Literal["raps", "saps", "o_lac", "o_saps"]]] = {
    "RAPS": "raps",
    "SAPS": "saps",
    "O-LAC": "o_lac",
    "O-SAPS": "o_saps",
}


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Tuning:
    """How options of RAPS, SAPS, O-LAC and O-SAPS are chosen; see `TunedLabels`.

    Parameters
    ----------
    criterion : {"t_ss", "sscv", "size"}
        What is best. Jang and Lee say T-SS in their text, and SSCV for RAPS and SAPS in an
        appendix.
    bins : tuple of int
        Numbers of groups by ease to try.
    penalties : tuple of float, optional
        λ to try, if not those of the papers.
    share : float
        Share of the validation rows that choose; the others calibrate.
    """

    criterion: Criterion = "t_ss"
    bins: tuple[int, ...] = BINS
    penalties: tuple[float, ...] | None = None
    share: float = 0.5


_TUNING: Final = Tuning()


def compare_label_sets(
    task: Classified,
    *,
    coverages: Sequence[float] = (0.9,),
    methods: Sequence[str] = LABEL_METHODS,
    repeats: int = 20,
    share: float = 0.6,
    bins: int = 50,
    tuning: Tuning = _TUNING,
    seed: int = 0,
) -> tuple[MethodComparison, ...]:
    """Compare methods for label sets over random splits of one classifier's rows.

    Parameters
    ----------
    task : Classified
        The classifier's outputs; the first of its eases gives the cells of T-CV and T-SS, and
        O-LAC and O-SAPS choose among all of them.
    coverages : sequence of float
        Nominal coverages.
    methods : sequence of str
        Of `LABEL_METHODS`.
    repeats : int
        Random splits, at least 1; Jang and Lee do not say theirs.
    share : float
        Share of the rows that validate; the others test. Theirs are 30,000 and 20,000.
    bins : int
        Cells by ease.
    tuning : Tuning
        How options are chosen.
    seed : int
        Fixes the splits and the draws.

    Returns
    -------
    tuple of MethodComparison
        One a coverage. A method of which no choice can be judged has no numbers in that repeat.

    Raises
    ------
    InputError
        If an option breaks its rule, or the test part has fewer rows than cells.

    Notes
    -----
    The ease that forms the groups of O-LAC and O-SAPS also forms the cells that judge them.

    Examples
    --------
    >>> from howsure.studies.adaptivity.inputs import given_probabilities
    >>> rng = np.random.default_rng(0)
    >>> p = rng.dirichlet(np.full(5, 0.3), size=600)
    >>> y = (p.cumsum(axis=1) > rng.random(600)[:, None]).argmax(axis=1)
    >>> task = given_probabilities(p, y)
    >>> (found,) = compare_label_sets(task, methods=("LAC", "APS"), repeats=3, bins=10)
    >>> found.values.shape
    (3, 2, 8)
    """
    n, classes = task.probabilities.shape
    design = Design(
        task=task.name,
        n=n,
        methods=checked_names(methods, LABEL_METHODS),
        measures=LABEL_MEASURES,
        coverages=tuple(coverages),
        repeats=repeats,
        share=share,
        bins=bins,
        seed=seed,
        surrogate=task.surrogate,
    )
    columns = stacked_columns(task.probabilities, *task.eases.values())
    groups = tuple(EaseColumn(classes + place) for place in range(len(task.eases)))
    rank = label_rank(task.probabilities, task.y)

    def one(name: str, part: Part) -> list[Numbers]:
        cells = EaseCells(columns[part.test, classes], bins)
        found: list[Numbers] = []
        for coverage in design.coverages:
            base = LabelConformal(model=_First(classes), coverage=coverage, seed=part.seed)
            method = _method(name, base, tuning, groups, bins)
            try:
                learnt = method.calibrate(columns[part.validation], task.y[part.validation])
            except UnanswerableError as error:
                found.append(dict.fromkeys(LABEL_MEASURES, str(error)))
                continue
            sets = learnt.predict(columns[part.test])
            found.append(label_numbers(sets, task.y[part.test], rank[part.test], cells))
        return found

    return design.run(one)


def label_numbers(sets: LabelSets, y: IntArray, rank: FloatArray, cells: EaseCells) -> Numbers:
    """Every measure of `LABEL_MEASURES`, without intervals and floors.

    Parameters
    ----------
    sets : LabelSets
        Sets of the test rows.
    y : ndarray of int, shape (n,)
        True classes.
    rank : ndarray of float, shape (n,)
        Ranks of the true labels.
    cells : EaseCells
        Cells of the rows by ease.

    Returns
    -------
    mapping of str to float or str
        A reason where T-SS, or ESCV, has no answer.

    Examples
    --------
    >>> sets = LabelSets([[True, False], [True, True], [True, True], [False, True]], 0.8)
    >>> cells = EaseCells([0.9, 0.2, 0.1, 0.8], 4)
    >>> found = label_numbers(
    ...     sets, np.array([0, 1, 0, 1]), np.array([1.0, 2.0, 1.0, 1.0]), cells
    ... )
    >>> found["set_size"], found["empirical_coverage"]
    (1.5, 1.0)
    """
    covered = sets.contains(y.astype(np.float64)).astype(np.float64)
    size = sets.sizes.astype(np.float64)
    once = np.ones(len(y))
    kept = size >= 1
    slope = signed_r2(*cells.means(np.column_stack((size, rank)), once)[1].T)
    exact: float | str = "all sets are empty"
    if kept.any():
        own = StratumCells(size[kept], None)
        exact = largest_violation(own, covered[kept], once[kept], sets.coverage)
    strata = StratumCells(size, TORCHCP_STRATA)
    return {
        "t_cv": largest_violation(cells, covered, once, sets.coverage),
        "t_ss": slope if np.isfinite(slope) else NO_SLOPE,
        "sscv": largest_violation(strata, covered, once, sets.coverage),
        "escv": exact,
        "set_deficit": float(set_deficit(rank, size).mean()),
        "set_excess": float(set_excess(rank, size).mean()),
        "empirical_coverage": float(covered.mean()),
        "set_size": float(size.mean()),
    }


def _method(
    name: str,
    base: LabelConformal,
    tuning: Tuning,
    groups: tuple[EaseColumn, ...],
    bins: int,
) -> LabelConformal | TunedLabels:
    if name in _PLAIN:
        return LabelConformal(
            model=base.model, score=_PLAIN[name], coverage=base.coverage, seed=base.seed
        )
    return TunedLabels(
        base=base,
        family=_FAMILIES[name],
        criterion=tuning.criterion,
        share=tuning.share,
        penalties=tuning.penalties,
        bins=tuning.bins,
        groups=groups,
        evaluation_bins=bins,
    )


@final
@dataclass(frozen=True, slots=True)
class _First:
    """The first columns: probabilities that stand before the eases."""

    columns: int

    def __call__(self, x: FloatArray) -> FloatArray:
        return x[:, : self.columns]
