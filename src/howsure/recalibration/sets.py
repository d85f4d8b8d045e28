"""Label sets made anew from what a classifier said of each class."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field, replace
from types import MappingProxyType
from typing import Any, final

import numpy as np

from howsure.conformal import conformal_rank, rows_needed
from howsure.conformal.adapting import Binned
from howsure.conformal.labels import (
    APS,
    LAC,
    RAPS,
    SAPS,
    EaseColumn,
    LabelConformal,
    TunedLabels,
    fit_temperature,
    tempered,
)
from howsure.conformal.labels.tuning import BINS, TunedChoice
from howsure.conformal.ranks import DELTA, RankRule, coverage_range
from howsure.conformal.thresholds import TooFew, check_few
from howsure.core import formats
from howsure.core.arrays import FloatArray, IntArray, check_fraction
from howsure.core.classes import frozen
from howsure.core.errors import InputError, UnanswerableError, either, within
from howsure.core.formats import counted
from howsure.inputs.roles import name_roles
from howsure.predictions import EvalSet, LabelSets, Probabilities
from howsure.predictions.evalset import content_order
from howsure.recalibration.base import (
    FittedParameter,
    RecalibrationMethod,
    Recalibrator,
    fit_notes,
    prediction_of,
    repeated,
)
from howsure.recalibration.group import EaseCuts, ease_column, ease_of, has_ease, one_ease
from howsure.recalibration.info import MethodInfo

Score = LAC | APS | RAPS | SAPS
SCORES: Mapping[str, Callable[..., Score]] = MappingProxyType(
    {"lac": LAC, "aps": APS, "raps": RAPS, "saps": SAPS}
)
"""The conformal methods of label sets, with their scores."""
EASED_SETS: Mapping[str, str] = MappingProxyType({"o_lac": "lac", "o_saps": "saps"})
"""Those with a threshold for each bin by ease, and whose score they use."""
TEMPERATURE = "temperature"
# The usual coverage, as of a model's intervals.
_USUAL_COVERAGE = 0.9
# As Jang and Lee divide them.
SHARE_FOR_TUNING = 0.5
"""Of the calibration rows, those that tune."""


def without_probabilities() -> InputError:
    """The error for label sets that have no class probabilities."""
    return InputError(
        "label sets need class probabilities to be recalibrated: name their columns, "
        f"{name_roles(softmax='p_*')}, or give howsure.LabelSets(members, coverage, probabilities)"
    )


@final
@frozen
class ProbabilitySets(RecalibrationMethod):
    """Sets of labels made anew from class probabilities.

    Parameters
    ----------
    method : {"lac", "aps", "raps", "saps", "o_lac", "o_saps", "temperature"}
        ``temperature``: probabilities p^(1/T), scaled to sum to 1, with T of the highest
        likelihood; the set is the likeliest classes that reach the coverage together. The others
        are conformal, by the score of that name: a class is in the set if it is no stranger than
        the conformal quantile of the true classes of calibration rows. ``o_lac`` and ``o_saps``
        have one such quantile for each bin of rows by ease.
    coverage : float, optional
        Nominal coverage; that of the sets if omitted.
    rank, too_few, delta
        As in `howsure.recalibration.recalibrate`, of the conformal ones.
    bins : int, optional
        Bins by ease.
    penalty : float, optional
        λ of RAPS and SAPS.
    seed : int
        Of the draws of scores, and of the rows that tune. Both belong to rows by content.
    belief : {"label sets", "class probabilities"}
        What sets are made of; of probabilities alone they have coverage 0.9 if none is given.

    Notes
    -----
    Half of the rows choose λ and the number of bins, as far as they are not given, and the other
    half calibrates. The best has the highest T-SS where the rows have an ease, else the lowest
    SSCV. Edges of bins come from the rows that choose, or are the eases of rows that do not
    calibrate, so that coverage holds within each bin. Source: Jang and Lee 2025, Algorithm 2,
    whose edges come from the rows that calibrate.

    Examples
    --------
    >>> p = np.array([[0.9, 0.1], [0.6, 0.4]] * 20)
    >>> held_out = EvalSet.checked([0.0, 1.0] * 20, LabelSets(p > 0.5, 0.9, p))
    >>> ProbabilitySets("lac").fit(held_out).apply(held_out).predictions[0].sizes[:2]
    array([1, 2])
    """

    method: str = "lac"
    coverage: float | None = None
    rank: RankRule = "conformal"
    too_few: TooFew = "infinite"
    delta: float = DELTA
    bins: int | None = None
    penalty: float | None = None
    seed: int = 0
    belief: str = LabelSets.kind

    def fit(self, calibration: EvalSet) -> SetRecalibrator:
        """Learn a temperature or thresholds from held-out rows.

        Raises
        ------
        InputError
            If the rows have no label sets with probabilities, weights are not frequencies, a true
            class has probability 0 where a temperature is learnt, bins by ease are asked and the
            rows have none, or too few rows are refused.
        UnanswerableError
            If no choice can be judged.
        """
        methods = (*SCORES, *EASED_SETS, TEMPERATURE)
        if self.method not in methods:
            raise InputError(f"method must be one of {', '.join(methods)}, got {self.method!r}")
        if calibration.weights is not None and calibration.weights.kind != "frequency":
            raise InputError("label sets need frequency weights, got importance weights")
        if self.method in EASED_SETS:
            ease_column(calibration)
        sets = sets_of(calibration, self.coverage)
        _stated(sets)
        calibration = replace(calibration, predictions=(sets,))
        rows = repeated(calibration.take(content_order([calibration])))
        blank = SetRecalibrator(
            belief=self.belief,
            method=self.method,
            parameters=(),
            guarantee="",
            notes=fit_notes(calibration),
            coverage=check_fraction(
                sets.coverage if self.coverage is None else self.coverage, "coverage"
            ),
            labels=sets.names,
            seed=self.seed,
        )
        return self._tempered(rows, blank) if self.method == TEMPERATURE else self._cut(rows, blank)

    def _tempered(self, rows: EvalSet, blank: SetRecalibrator) -> SetRecalibrator:
        value = fit_temperature(_stated(prediction_of(rows, LabelSets)), rows.y)
        words = (
            "No finite-sample guarantee: sets reach the nominal coverage as far as the tempered "
            "probabilities are calibrated."
        )
        learnt = FittedParameter(name="temperature", value=value, n=float(rows.n))
        return replace(blank, parameters=(learnt,), guarantee=words)

    def _cut(self, rows: EvalSet, blank: SetRecalibrator) -> SetRecalibrator:
        """Thresholds of a score, chosen where it has options."""
        chosen, rows, cells, note = self._chosen(rows, blank.coverage)
        table, y = _stated(prediction_of(rows, LabelSets)), rows.y.astype(np.int64)
        how = LabelConformal(
            score=chosen,
            coverage=blank.coverage,
            rank=self.rank,
            delta=self.delta,
            too_few=self.too_few,
            seed=self.seed,
        )
        ends, parameters = [], [_option(name, chosen) for name in ("penalty", "free")]
        codes = np.zeros(rows.n, dtype=np.int64) if cells is None else cells.find(rows)
        for code, name in enumerate(("",) if cells is None else cells.names):
            in_bin = codes == code
            with within(name or "calibration"):
                end = self._end(how, table[in_bin], y[in_bin])
            ends.append(end)
            parameters.append(self._learnt(name, end, int(in_bin.sum()), blank.coverage))
        learnt = tuple(parameter for parameter in parameters if parameter is not None)
        least = min(each.expected for each in learnt if each.expected == each.expected)
        where = "" if cells is None else f", within each of {len(ends)} ease bins"
        words = (
            f"{formats.level(blank.coverage)} sets: a new row exchangeable with the {rows.n:,} "
            f"calibration rows has its class in the set with probability at least "
            f"{least:.5g}{where}."
        )
        if self.rank == "pac":
            words += (
                f" At least {formats.level(blank.coverage)} of new rows are covered for all but "
                f"{100 * self.delta:g} of 100 calibration sets."
            )
        endless = sum(bool(np.isinf(end[0])) for end in ends)
        if endless:
            needed = rows_needed(blank.coverage, self.rank, self.delta)
            some = "Sets" if cells is None else f"Sets in {counted(endless, 'bin')} by ease"
            note = (*note, f"{some} contain all classes: {needed} calibration rows are needed.")
        return replace(
            blank,
            parameters=learnt,
            guarantee=words,
            notes=(*blank.notes, *note),
            score=chosen,
            cells=cells,
            ends=np.array(ends),
        )

    def _end(self, how: LabelConformal, table: FloatArray, y: IntArray) -> tuple[float, float]:
        """The threshold of some rows, as the two numbers of a score."""
        if not len(y):
            needed = rows_needed(how.coverage, how.rank, how.delta)
            check_few(how.too_few, f"coverage {how.coverage:g} needs {needed}, got 0")
            return np.inf, 0.0
        value, rounding = how.calibrate(table, y).thresholds.at(table[:1])[0]
        return float(value), float(rounding)

    def _learnt(
        self, name: str, end: tuple[float, float], n: int, coverage: float
    ) -> FittedParameter:
        rank = conformal_rank(n, coverage, self.rank, self.delta) if n else 1
        low, high = coverage_range(rank, n)
        return FittedParameter(
            name=f"threshold, {name}" if name else "threshold",
            value=end[0],
            nominal=coverage,
            n=float(n),
            rank=float(rank),
            expected=min(rank / (n + 1.0), 1.0),
            lower=low,
            upper=high,
        )

    def _chosen(
        self, rows: EvalSet, coverage: float
    ) -> tuple[Score, EvalSet, EaseCuts | None, tuple[str, ...]]:
        """The score, the rows that calibrate, the bins, and what was chosen in words."""
        eased = self.method in EASED_SETS
        name = EASED_SETS.get(self.method, self.method)
        options = name in ("raps", "saps")
        if (options and self.penalty is None) or (eased and self.bins is None):
            return self._tuned(rows, coverage)
        score = SCORES[name](self.penalty) if options else SCORES[name]()
        if not eased:
            return score, rows, None, ()
        assert self.bins is not None
        cells, inside = EaseCuts.between(rows, self.bins)
        return score, rows.take(np.flatnonzero(inside)), cells, ()

    def _tuned(
        self, rows: EvalSet, coverage: float
    ) -> tuple[Score, EvalSet, EaseCuts | None, tuple[str, ...]]:
        """As `_chosen`, by what half of the rows say."""
        table, y = _stated(prediction_of(rows, LabelSets)), rows.y.astype(np.int64)
        classes = table.shape[1]
        easy = has_ease(rows) and bool(np.ptp(ease_of(rows)))
        if self.method in EASED_SETS and not easy:
            raise one_ease(rows)
        x = np.column_stack((table, ease_of(rows))) if easy else table
        family: Any = self.method
        tuner = TunedLabels(
            base=LabelConformal(
                model=_First(classes),
                coverage=coverage,
                rank=self.rank,
                delta=self.delta,
                seed=self.seed,
            ),
            family=family,
            criterion="t_ss" if easy else "sscv",
            share=SHARE_FOR_TUNING,
            penalties=None if self.penalty is None else (self.penalty,),
            bins=BINS if self.bins is None else (self.bins,),
            groups=EaseColumn(classes),
        )
        try:
            with within("calibration"):
                choice = tuner.choose(x, y)
        except UnanswerableError as error:
            name = "bins" if self.method == "o_lac" else "penalty"
            wanted = either(f"{name}=…", f"--{name}")
            raise UnanswerableError(f"{error}: give {wanted}, or more calibration rows") from error
        score, groups = choice.best
        assert isinstance(score, LAC | APS | RAPS | SAPS)
        cells = None
        if groups is not None:
            edges = Binned.learnt(classes, x[choice.tuning], groups.bins).edges
            cells = EaseCuts(ease_column(rows), tuple(edges.tolist()))
        return (
            score,
            rows.take(np.flatnonzero(~choice.tuning)),
            cells,
            _describe_choice(choice, easy),
        )


@final
@frozen(kw_only=True)
class SetRecalibrator(Recalibrator):
    """Fitted `ProbabilitySets`."""

    coverage: float  # nominal coverage of the sets
    labels: tuple[str, ...]  # the classes that the rows must tell of
    # whose thresholds these are; none with a temperature
    score: LAC | APS | RAPS | SAPS | None = None
    cells: EaseCuts | None = None  # bins by ease, each with its threshold
    # shape (bins, 2): thresholds, each with what rounding took from it
    ends: FloatArray = field(default_factory=lambda: np.empty((0, 2)))
    seed: int = 0  # of the draws of the score

    @property
    def by_rows(self) -> bool:
        """Not where rows of equal content get draws of their own."""
        return self.score is None or not self.score.random

    def transform(self, evalset: EvalSet) -> tuple[LabelSets, tuple[str, ...]]:
        """Sets by the thresholds or the temperature; with the latter, of tempered probabilities."""
        sets = sets_of(evalset, self.coverage)
        stated = _stated(sets)
        if sets.names != self.labels:
            raise InputError(
                f"the rows must have probabilities of the {len(self.labels)} classes of the "
                f"calibration rows ({_few(self.labels)}), got {len(sets.names)} "
                f"({_few(sets.names)})"
            )
        if self.score is None:
            tempers = tempered(stated, self.parameters[0].value)
            return LabelSets.likeliest(tempers, self.coverage, sets.labels), ()
        how = LabelConformal(score=self.score, coverage=self.coverage, seed=self.seed)
        codes = (
            np.zeros(evalset.n, dtype=np.int64) if self.cells is None else self.cells.find(evalset)
        )
        bare = replace(evalset, y=np.zeros(evalset.n), weights=None)
        order = content_order([bare])  # so that rows of one content get their draws in one order
        members = np.empty(stated.shape, dtype=np.bool_)
        members[order] = how.sets(stated[order], self.ends[codes[order]]).members
        return LabelSets(members, self.coverage, stated, sets.labels), ()


@final
@frozen
class _First:
    """The first columns of a table: class probabilities, before an ease."""

    classes: int

    def __call__(self, x: FloatArray) -> FloatArray:
        return x[:, : self.classes]


def _option(name: str, score: Score) -> FittedParameter | None:
    """An option of a score, as a number learnt; None where it has none such."""
    value = getattr(score, name, None)
    return None if value is None else FittedParameter(name=name, value=float(value))


def _describe_choice(choice: TunedChoice, easy: bool) -> tuple[str, ...]:
    """What was chosen, by what and on which rows."""
    score, groups = choice.best
    choices = [f"{formats.counted(groups.bins, 'bin')} by ease"] if groups is not None else []
    if isinstance(score, RAPS):
        choices.append(f"λ = {score.penalty:g} after {score.free} ranks")
    if isinstance(score, SAPS):
        choices.append(f"λ = {score.penalty:g}")
    by = "T-SS" if easy else "SSCV, because the rows have no varying ease scores"
    count = int(choice.tuning.sum())
    return (
        f"{count:,} calibration rows were used to choose {', '.join(choices)} by {by}; the "
        "others to calibrate.",
    )


def _few(labels: tuple[str, ...]) -> str:
    return ", ".join(labels[:6]) + (", …" if len(labels) > 6 else "")


def sets_of(evalset: EvalSet, coverage: float | None) -> LabelSets:
    """The label sets of rows; of class probabilities alone those that they claim themselves."""
    for prediction in evalset.predictions:
        if isinstance(prediction, Probabilities) and len(evalset.predictions) == 1:
            return LabelSets.likeliest(prediction, coverage or _USUAL_COVERAGE)
    return prediction_of(evalset, LabelSets)


def _stated(sets: LabelSets) -> FloatArray:
    if sets.probabilities is None:
        raise without_probabilities()
    return sets.probabilities


def _info(name: str) -> MethodInfo:
    of_probabilities = () if name == TEMPERATURE else (Probabilities.kind,)
    return MethodInfo(
        name=name,
        kinds=(LabelSets.kind, *of_probabilities),
        make=lambda kind, options: ProbabilitySets(
            name,
            *options.threshold,
            bins=options.bins,
            penalty=options.penalty,
            seed=options.seed,
            belief=kind,
        ),
        saves=(SetRecalibrator,),
        needs="ease" if name in EASED_SETS else "",
    )


METHODS = tuple(_info(name) for name in (*SCORES, *EASED_SETS, TEMPERATURE))
