"""Every way to recalibrate a prediction, before and after, through every metric."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import partial

import numpy as np

from howsure.conformal.ranks import DELTA, RankRule
from howsure.conformal.thresholds import TooFew
from howsure.core.arrays import AnyArray
from howsure.core.classes import frozen
from howsure.core.convert import checked_coverages
from howsure.core.errors import HowsureError, InputError
from howsure.core.records import Key, ResultTable
from howsure.engine.catalogue import catalogue
from howsure.engine.finding import SharedScore
from howsure.engine.measure import Evaluation, evaluate
from howsure.engine.metric import Question
from howsure.predictions import EvalSet, LabelSets
from howsure.recalibration.base import POINT, kinds_of
from howsure.recalibration.dispatch import can_teach, method_of, methods_of
from howsure.recalibration.info import KINDS, RecalibrationOptions
from howsure.recalibration.levels import levels_with
from howsure.stats.estimate import weighted_mean
from howsure.topics.shared import meaning, offered, scored, shared_by_all


def compare_recalibrations(
    test: EvalSet,
    calibration: EvalSet,
    *,
    methods: Sequence[str] | None = None,
    coverages: tuple[float, ...] = (0.9,),
    metrics: Iterable[str] | None = None,
    seed: int = 0,
    rank: RankRule = "conformal",
    delta: float = DELTA,
    too_few: TooFew = "infinite",
    by: tuple[str, ...] = (),
) -> ResultTable:
    """A prediction as it is and recalibrated in every way that suits it, through every metric.

    Parameters
    ----------
    test : EvalSet
        Rows to judge by, with one kind of prediction, or a point forecast alone.
    calibration : EvalSet
        Held-out rows with the same kind by the same model.
    methods : sequence of str, optional
        Names as in `recalibrate`; if omitted all that suit the kind, and what lies beside it:
        inputs, one column of groups, times. Those around a forecast, which hardly differ from
        others, must be named.
    coverages : tuple of float
        Nominal coverages to assess, and to make intervals at; of a point forecast, intervals are
        made at the first.
    metrics : iterable of str, optional
        Names from the catalogue; all if omitted.
    seed : int
        Fixes the draws of randomised measures.
    rank, delta, too_few, by
        As in `recalibrate`.

    Returns
    -------
    ResultTable
        Named ``recalibrations``; a row for each metric and coverage that something can be said
        of: ``metric``, ``title``, ``coverage`` (NaN without one), ``perfect``, ``direction``,
        ``before``, and a column for each method. NaN where there is no answer, or where a score
        would mean something else than before; the notes say so, and which methods could not be
        used. Scores at the levels that both sides state follow at the end.

    Raises
    ------
    InputError
        If there are several kinds or none that can be recalibrated, a method does not suit it,
        or calibration lacks it.

    Examples
    --------
    >>> from howsure.predictions import Distribution
    >>> rng = np.random.default_rng(0)
    >>> made = lambda: EvalSet.checked(rng.normal(0, 2, 500), Distribution.normal([0.0] * 500, 1.0))
    >>> table = compare_recalibrations(made(), made(), metrics=["empirical_coverage"])
    >>> [name for name in table.columns][5:10]
    ['before', 'scale', 'shift', 'shift_scale', 'multiply']
    >>> [round(float(table.columns[name][0]), 2) for name in ("before", "scale", "ucc")]
    [0.6, 0.9, 0.9]
    """
    kind = _kind(test)
    suiting = methods_of(kind)
    if methods is None:
        taught = (info for info in suiting.values() if can_teach(info, calibration, by))
        chosen = {info.name: info for info in taught if info.compared}
    else:
        chosen = {}
        for name in methods:
            info = method_of(kind, name)
            if info is None:
                raise InputError(f"methods must suit {kind} ({', '.join(suiting)}), got {name!r}")
            chosen[info.name] = info
    wanted = checked_coverages(coverages)
    options = RecalibrationOptions(
        coverage=wanted[0] if kind == POINT else None,
        coverages=wanted,
        too_few=too_few,
        rank=rank,
        delta=delta,
        levels=levels_with(wanted),
        by=by,
    )
    wanted_metrics = None if metrics is None else list(metrics)
    measure = partial(evaluate, coverages=wanted, metrics=wanted_metrics, seed=seed)
    evaluations: dict[str, Evaluation | None] = {"before": measure(test)}
    notes = []
    for name, info in chosen.items():
        try:
            evaluations[name] = measure(info.make(kind, options).fit(calibration).apply(test))
        except HowsureError as error:
            notes.append(f"{name} could not be used: {error}.")
            evaluations[name] = None
    return _table(evaluations, test.model, notes)


def _kind(test: EvalSet) -> str:
    kinds = kinds_of(test)
    if len(kinds) > 1:
        raise InputError(
            f"test must have one type of prediction to compare, got {', '.join(kinds)}"
        )
    if kinds[0] not in KINDS or kinds[0] == LabelSets.kind:
        raise InputError(f"test must have a prediction that can be recalibrated, got {kinds[0]}")
    return kinds[0]


@frozen
class Line:
    """One measure of predictions before and after, where it means the same; NaN elsewhere."""

    metric: str
    title: str
    coverage: float
    perfect: float
    values: tuple[float, ...]


def side_by_side(found: Sequence[Evaluation | None]) -> tuple[list[Line], list[str]]:
    """Every measure of several evaluations of the same rows, and what else the reader must know.

    A score is told where it means what it means of the first that has it. The others are compared
    with the first by the finest score that both have. None stands for what could not be made.
    """
    lines: list[Line] = []
    unlike: dict[int, list[str]] = {}
    records = [
        {} if evaluation is None else {record.key: record for record in evaluation.records}
        for evaluation in found
    ]
    for key in dict.fromkeys(key for evaluation in records for key in evaluation):
        values, first = [], ""
        for number, (evaluation, known) in enumerate(zip(found, records, strict=True)):
            record = known.get(key)
            value = math.nan if record is None else record.value
            if evaluation is not None and not math.isnan(value):
                means = _meaning(evaluation, key)
                first = first or f"={means}"
                if first != f"={means}":
                    unlike.setdefault(number, []).append(catalogue()[key.metric].title)
                    value = math.nan
            values.append(value)
        if not all(map(math.isnan, values)):
            some = next(known[key] for known in records if key in known)
            title = catalogue()[key.metric].title
            lines.append(Line(key.metric, title, some.coverage, some.target, tuple(values)))
    more: dict[SharedScore, tuple[float, ...]] = {}
    notes = []
    for number, titles in unlike.items():
        other = found[number]
        ways = "" if other is None else offered(other)
        named = ", ".join(dict.fromkeys(titles))
        notes.append(f"Omitted, because they mean something else for {ways}: {named}.")
        both = [evaluation for evaluation in (found[0], other) if evaluation is not None]
        shared = shared_by_all(both, fair=False) if len(both) == 2 else None
        if shared is None or _is_scored(lines, shared.score, number):
            continue
        more[shared.score] = tuple(_mean(evaluation, shared.score) for evaluation in found)
    for score, means_of_score in more.items():
        title = f"{catalogue()[score.metric].title} {score.how}"
        lines.append(Line(score.metric, title, score.coverage, math.nan, means_of_score))
    return lines, list(dict.fromkeys(notes))


def _mean(evaluation: Evaluation | None, score: SharedScore) -> float:
    """The mean of a score; NaN where there is none."""
    rows = "" if evaluation is None else scored(evaluation, score, fair=False)
    if evaluation is None or isinstance(rows, str):
        return math.nan
    return weighted_mean(rows, evaluation.evalset.multiplicities)


def _is_scored(lines: Sequence[Line], score: SharedScore, number: int) -> bool:
    """Whether the score of both sides is there already."""
    return any(
        line.metric == score.metric
        and (line.coverage == score.coverage or math.isnan(score.coverage))
        and not math.isnan(line.values[0] + line.values[number])
        for line in lines
    )


def _meaning(evaluation: Evaluation, key: Key) -> str:
    """What a score measures; measures that are not scores are reported unchanged."""
    if catalogue()[key.metric].question not in (Question.SCORE, Question.POINT):
        return ""
    return meaning(evaluation, key.metric, key.at, fair=False)


def _table(found: dict[str, Evaluation | None], model: str, notes: list[str]) -> ResultTable:
    lines, further_notes = side_by_side(list(found.values()))
    kinds = {"metric": object, "title": object, "coverage": float, "perfect": float}
    columns: dict[str, AnyArray] = {
        name: np.array([getattr(line, name) for line in lines], dtype=kind)
        for name, kind in kinds.items()
    }
    directions = [catalogue()[line.metric].direction.value for line in lines]
    columns["direction"] = np.array(directions, dtype=object)
    for number, name in enumerate(found):
        columns[name] = np.array([line.values[number] for line in lines], dtype=float)
    return ResultTable(
        name="recalibrations",
        columns=columns,
        model=model,
        notes=" ".join([*notes, *further_notes]),
    )
