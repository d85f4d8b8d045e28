"""What an assessment measures: first what its sentences and key numbers read, later everything."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Protocol

import numpy as np

from howsure.core.convert import check_whole
from howsure.core.errors import InputError, attempt, collected
from howsure.core.progress import report_progress
from howsure.core.records import Curve, Record, Table
from howsure.core.threads import one_thread
from howsure.engine.catalogue import asked_for, catalogue, key_measures
from howsure.engine.measure import Evaluation, curves_of, evaluate, tables_of, worst_rows
from howsure.engine.metric import MISS_RANGE, Beside, Question, check_miss_range
from howsure.predictions import EvalSet, LabelSets
from howsure.report.assessment import Basis
from howsure.report.document import noted
from howsure.stats.cells import check_cells
from howsure.streaming.from_totals import FromTotals
from howsure.streaming.totals import SufficientStatistics
from howsure.topics.compare import compare
from howsure.topics.groups import GroupReport, assess_groups, compare_groups
from howsure.topics.interval_rows import interval_tables
from howsure.topics.many_series import standing_over_series
from howsure.verdict import TOLERANCE
from howsure.verdict.dependence import Known
from howsure.verdict.family import check_judging
from howsure.verdict.findings import measures, needs_null
from howsure.verdict.nulls import with_nulls

if TYPE_CHECKING:
    from howsure.topics.congruence.view import CongruenceOptions


class TopicReport(Protocol):
    """What a topic tells of a model beside its measures."""

    @property
    def record(self) -> Record:
        """Its one number."""

    @property
    def curves(self) -> Sequence[Curve]:
        """To be drawn."""

    @property
    def tables(self) -> Sequence[Table]:
        """Small ones."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How an assessment measures, judges and advises; as in `howsure.assess`.

    `recalibration` says how the command begins that recalibrates each model; without it, it is a
    call in Python.
    """

    coverages: Sequence[float] = ()
    confidence: float = 0.95
    seed: int = 0
    slow: Collection[str] = ()
    tolerance: float = TOLERANCE
    ignore: Collection[str] = ()
    trials: bool = True
    recalibration: Mapping[str, str] | None = None
    congruence: CongruenceOptions | None = None
    miss_range: Sequence[float] = MISS_RANGE
    cells: int | None = None

    def __post_init__(self) -> None:
        check_judging(self.tolerance, self.ignore)
        check_miss_range(self.miss_range)
        if self.cells is not None:
            check_whole(self.cells, "cells", 3)
        object.__setattr__(self, "slow", frozenset(asked_for(self.slow, "slow")))


class Model:
    """One model: what its verdict and key numbers read, and later everything."""

    found: Evaluation

    def __init__(
        self,
        evalset: EvalSet,
        dependence: Known,
        totals: SufficientStatistics | None,
        how: Settings,
    ) -> None:
        self.name, self.evalset, self.how = evalset.model, evalset, how
        self.dependence, self._totals = dependence, totals
        self.groups = GroupReport((), None, ())
        self.records: tuple[Record, ...] = ()
        self.of_all: list[Curve] = []
        self._complete = False

    def answer(self, *, key_numbers: bool) -> None:
        """Measure what is read; of a sample of more rows, everything.

        What a perfect model shows is drawn where a finding asks, or for the `key_numbers`.
        """
        if self._totals is not None:
            self.complete()
            return
        entries = catalogue()
        keys = [name for name in key_measures() if not entries[name].beside]
        names = list(dict.fromkeys((*measures(), *keys)))
        found = None
        for question in (Question.CALIBRATION, Question.TRADE):  # made of much that is theirs alone
            theirs = [k for k, name in enumerate(names) if entries[name].question is question]
            if theirs:
                found = self._evaluated(names[: theirs[-1] + 1], found)
                found.view.forget()
        self.found = self._evaluated(names, found)
        self.groups = self._grouped(self.found, compare_groups)
        asked = tuple(
            record
            for record in self.found.records
            if needs_null(record) or (key_numbers and record.metric in key_measures())
        )
        told, _ = with_nulls(
            replace(self.found, records=asked), seed=self.how.seed, dependence=self.dependence
        )
        others = (record for record in self.found.records if record not in asked)
        self.records = (*told, *others, *self.groups.records)
        self.found.view.forget()

    def complete(self) -> None:
        """Measure everything; nothing is kept of what an interruption leaves half done."""
        if self._complete:
            return
        known, tests = (None, None) if self._totals is not None else (self.found, self.groups)
        found = self._evaluated(None, known)
        statistics = "group_statistics" in self.how.slow
        groups = self._grouped(found, partial(assess_groups, statistics=statistics, tests=tests))
        told, in_groups = with_nulls(
            found, groups.records, seed=self.how.seed, dependence=self.dependence
        )
        if self._totals is not None:
            sampled = replace(found, records=told)
            whole = FromTotals(
                self._totals, sampled, self.dependence, self.how.seed, self.how.confidence
            )
            told, of_all = whole.told(in_groups)
            in_groups = of_all.records
            groups = groups if of_all.table is None else replace(groups, table=of_all.table)
            self.of_all = whole.calibration_curves()
        self.found, self.groups = replace(found, records=told), groups
        self.records, self._complete = (*told, *in_groups), True

    def tables(self) -> list[Table]:
        """Groups, those of its measures, and the worst rows."""
        worst = attempt(
            f"worst rows of {self.name}", partial(worst_rows, self.found), lambda _: None
        )
        if self._totals is not None and worst is not None:
            worst = replace(worst, notes=f"{worst.notes} They are of the sample.")
        made = (self.groups.table, *tables_of(self.found), worst)
        return [table for table in made if table is not None]

    def _evaluated(self, metrics: Iterable[str] | None, known: Evaluation | None) -> Evaluation:
        return evaluate(
            self.evalset,
            coverages=self.how.coverages,
            metrics=metrics,
            confidence=self.how.confidence,
            seed=self.how.seed,
            slow=self.how.slow,
            miss_range=self.how.miss_range,
            known=known,
        )

    def _grouped(self, found: Evaluation, ask: Callable[..., GroupReport]) -> GroupReport:
        return attempt(
            f"groups of {self.name}",
            partial(ask, found, confidence=self.how.confidence, seed=self.how.seed),
            lambda _: GroupReport((), None, ()),
        )


@one_thread()
@np.errstate(over="ignore", invalid="ignore", divide="ignore")
def everything(
    brief: Basis,
    models: Sequence[Model],
    detailed: Sequence[Model],
    best: Sequence[str],
    local: Sequence[Evaluation],
    reports: Sequence[TopicReport],
    before: Sequence[Table],
    after: Sequence[Table],
) -> Basis:
    """All of it: what no sentence needed is measured now.

    Tables stand between those `before` and `after`.
    """
    how = models[0].how
    confidence, seed = how.confidence, how.seed
    steps = len(models) + len(detailed)
    tables: list[Table] = []
    told = {note for model in models for note in model.groups.notes}
    with collected() as faults:
        for place, model in enumerate(models):
            report_progress(f"all measures of {model.name}", place, steps)
            model.complete()
        notes = [n for model in models for n in model.groups.notes if n not in told]
        curves = [curve for model in models for curve in model.of_all]
        of_all = {(curve.name, curve.model) for curve in curves}
        for place, model in enumerate(detailed):
            report_progress(f"curves of {model.name}", len(models) + place, steps)
            drawn = curves_of(model.found, confidence=confidence)
            curves.extend(each for each in drawn if (each.name, each.model) not in of_all)
            tables.extend(model.tables())
        of_rows, reasons = attempt(
            "intervals beside y",
            partial(interval_tables, [model.found for model in detailed], seed=seed),
            lambda reason: ([], [reason]),
        )
        tables.extend(of_rows)
        local = given_inputs([model.evalset for model in models], how, local)
        for found in local:
            tables.extend(tables_of(found))
            curves.extend(curves_of(found, confidence=confidence))
        for report in reports:
            tables.extend(report.tables)
            curves.extend(report.curves)
        shown = {"", *(model.name for model in detailed)}
        tables = [table for table in tables if table.model in shown]
        if len(models) > 1:
            done = [model.found for model in models]
            differences = attempt(
                "comparison of models",
                partial(compare, done, order=best, confidence=confidence, seed=seed),
                lambda _: None,
            )
            ranked = attempt(
                "relative skill of models",
                partial(standing_over_series, done, confidence=confidence, seed=seed),
                lambda _: None,
            )
            tables.extend(table for table in (differences, ranked) if table is not None)
    return Basis(
        records=(
            *(record for model in models for record in model.records),
            *(record for found in local for record in found.records),
            *(report.record for report in reports),
        ),
        curves=tuple(curve for curve in curves if curve.model in shown),
        tables=(*before, *tables, *after),
        facts=noted(brief.facts, [*notes, *reasons, *faults]),
    )


def given_inputs(
    evalsets: Sequence[EvalSet], how: Settings, known: Sequence[Evaluation] | None = None
) -> list[Evaluation]:
    """What the verdict reads of coverage given inputs, of every model that has any.

    By ease or rank too, where that is known; everything, if what it reads is `known`.
    """
    eased = [evalset for evalset in evalsets if evalset.ease in evalset.features]
    if how.cells is not None:
        if not eased:
            raise InputError("cells are by ease, and the ease of each row is needed: got none")
        for held in eased:
            check_cells(how.cells, held.n)
    asked: list[tuple[EvalSet, Beside]] = []
    for held in evalsets:
        ranked = any(isinstance(b, LabelSets) and b.probabilities is not None for b in held.beliefs)
        if held.ease in held.features or ranked:
            asked.append((held, "ease"))
        if held.features or held.embedding is not None:
            asked.append((held, "inputs"))
    made = []
    for place, (held, beside) in enumerate(asked):
        report_progress(f"coverage given inputs of {held.model}", place, len(asked))
        made.append(
            evaluate(
                held,
                metrics=measures(beside) if known is None else None,
                beside=beside,
                confidence=how.confidence,
                seed=how.seed,
                slow=how.slow,
                given=None if how.cells is None else {"bins": how.cells},
                known=None if known is None else known[place],
            )
        )
    return made
