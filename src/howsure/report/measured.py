"""What an assessment measures: first what its sentences and key numbers read, later everything."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from howsure.core.classes import frozen
from howsure.core.errors import InputError, attempt, collected
from howsure.core.progress import report_progress
from howsure.core.records import Curve, Record, ResultTable
from howsure.core.threads import one_thread
from howsure.engine.catalogue import catalogue, key_measures
from howsure.engine.finding import Standing
from howsure.engine.measure import Evaluation, curves_of, evaluate, tables_of, worst_rows
from howsure.engine.metric import Beside, Question
from howsure.predictions import EvalSet, LabelSets
from howsure.report.assessment import Basis
from howsure.report.document import noted
from howsure.report.options import Settings
from howsure.stats.cells import check_cells
from howsure.streaming.from_totals import FromTotals
from howsure.streaming.totals import SufficientStatistics
from howsure.topics.compare import compare
from howsure.topics.groups import GroupReport, assess_groups, compare_groups
from howsure.topics.interval_rows import interval_tables
from howsure.topics.many_series import standing_over_series
from howsure.verdict.dependence import Known
from howsure.verdict.findings import measures, needs_null
from howsure.verdict.nulls import with_nulls

if TYPE_CHECKING:
    pass


class TopicReport(Protocol):
    """What a topic tells of a model beside its measures."""

    @property
    def record(self) -> Record:
        """Its one number."""

    @property
    def curves(self) -> Sequence[Curve]:
        """To be drawn."""

    @property
    def tables(self) -> Sequence[ResultTable]:
        """Small ones."""


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
        evaluation = None
        for question in (Question.CALIBRATION, Question.TRADE):  # made of much that is theirs alone
            theirs = [k for k, name in enumerate(names) if entries[name].question is question]
            if theirs:
                evaluation = self._evaluated(names[: theirs[-1] + 1], evaluation)
                evaluation.view.forget()
        self.found = self._evaluated(names, evaluation)
        self.groups = self._grouped(self.found, compare_groups)
        compared = tuple(
            record
            for record in self.found.records
            if needs_null(record) or (key_numbers and record.metric in key_measures())
        )
        with_null, _ = with_nulls(
            replace(self.found, records=compared), seed=self.how.seed, dependence=self.dependence
        )
        without_null = (record for record in self.found.records if record not in compared)
        self.records = (*with_null, *without_null, *self.groups.records)
        self.found.view.forget()

    def complete(self) -> None:
        """Measure everything; nothing is kept of what an interruption leaves half done."""
        if self._complete:
            return
        measured, tests = (None, None) if self._totals is not None else (self.found, self.groups)
        evaluation = self._evaluated(None, measured)
        statistics = "group_statistics" in self.how.also
        ask = partial(assess_groups, statistics=statistics, tests=tests)
        drawing: Any = {"seed": self.how.seed, "dependence": self.dependence}
        if self._totals is None:
            groups = self._grouped(evaluation, ask)
            records, in_groups = with_nulls(evaluation, groups.records, **drawing)
        else:
            totals = FromTotals(
                self._totals, evaluation, self.dependence, self.how.seed, self.how.confidence
            )
            of_groups, groups = totals.in_groups(self._grouped(totals.of_sample, ask))
            of_all, in_groups = with_nulls(totals.of_all, of_groups, n=totals.n, **drawing)
            of_sample, in_groups_of_sample = with_nulls(totals.of_sample, groups.records, **drawing)
            records = totals.merged(of_all, of_sample)
            in_groups = (*in_groups, *in_groups_of_sample)
            self.of_all = totals.calibration_curves()
        self.found, self.groups = replace(evaluation, records=records), groups
        self.records, self._complete = (*records, *in_groups), True

    def tables(self) -> list[ResultTable]:
        """Groups, those of its measures, and the worst rows."""
        worst = attempt(
            f"worst rows of {self.name}", partial(worst_rows, self.found), lambda _: None
        )
        if self._totals is not None and worst is not None:
            worst = replace(worst, notes=f"{worst.notes} They come from the sample.")
        tables = (self.groups.table, *tables_of(self.found), worst)
        return [table for table in tables if table is not None]

    def _evaluated(
        self, metrics: Iterable[str] | None, evaluation: Evaluation | None
    ) -> Evaluation:
        return evaluate(
            self.evalset,
            coverages=self.how.coverages,
            metrics=metrics,
            confidence=self.how.confidence,
            seed=self.how.seed,
            slow=self.how.also,
            miss_range=self.how.miss_range,
            given={"thresholds": self.how.threshold},
            known=evaluation,
        )

    def _grouped(self, evaluation: Evaluation, ask: Callable[..., GroupReport]) -> GroupReport:
        return attempt(
            f"groups of {self.name}",
            partial(ask, evaluation, confidence=self.how.confidence, seed=self.how.seed),
            lambda _: GroupReport((), None, ()),
        )


@frozen
class Measured:
    """What is measured of models, given inputs, and by topics beside them.

    At first what sentences and key numbers read, later everything.
    """

    models: Sequence[Model]
    given_inputs: Sequence[Evaluation]
    reports: Sequence[TopicReport]
    standing: Standing | None  # how models compare
    shown: set[str]  # the models that are shown in detail
    about: str  # which these are, in words, where not all

    @property
    def records(self) -> tuple[Record, ...]:
        return (
            *(record for model in self.models for record in model.records),
            *(record for evaluation in self.given_inputs for record in evaluation.records),
            *(report.record for report in self.reports),
        )

    @property
    def detailed(self) -> list[Model]:
        return [model for model in self.models if model.name in self.shown]

    @one_thread()
    @np.errstate(over="ignore", invalid="ignore", divide="ignore")
    def everything(
        self, facts: Mapping[str, str], before: Sequence[ResultTable], after: Sequence[ResultTable]
    ) -> Basis:
        """All of it: what no sentence needed is measured now.

        Tables stand between those `before` and `after`.
        """
        models, detailed, how = self.models, self.detailed, self.models[0].how
        confidence, seed = how.confidence, how.seed
        steps = len(models) + len(detailed)
        tables: list[ResultTable] = []
        known_notes = {note for model in models for note in model.groups.notes}
        with collected() as faults:
            for number, model in enumerate(models):
                report_progress(f"all measures of {model.name}", number, steps)
                model.complete()
            notes = [n for model in models for n in model.groups.notes if n not in known_notes]
            curves = [curve for model in models for curve in model.of_all]
            of_all = {(curve.name, curve.model) for curve in curves}
            for number, model in enumerate(detailed, len(models)):
                report_progress(f"curves of {model.name}", number, steps)
                drawn = curves_of(model.found, confidence=confidence)
                curves += [curve for curve in drawn if (curve.name, curve.model) not in of_all]
                tables += model.tables()
            of_rows, reasons = attempt(
                "intervals beside y",
                partial(interval_tables, [model.found for model in detailed], seed=seed),
                lambda reason: ([], [reason]),
            )
            tables += of_rows
            evalsets = [model.evalset for model in models]
            complete = replace(self, given_inputs=given_inputs(evalsets, how, self.given_inputs))
            for evaluation in complete.given_inputs:
                tables += tables_of(evaluation)
                curves += curves_of(evaluation, confidence=confidence)
            for report in self.reports:
                tables += report.tables
                curves += report.curves
            shown = {"", *self.shown}
            tables = [table for table in tables if table.model in shown]
            if len(models) > 1:
                done = [model.found for model in models]
                best = () if self.standing is None else self.standing.models
                for what, measure in (
                    ("comparison", partial(compare, done, order=best)),
                    ("relative skill", partial(standing_over_series, done)),
                ):
                    table = attempt(
                        f"{what} of models",
                        partial(measure, confidence=confidence, seed=seed),
                        lambda _: None,
                    )
                    tables += [] if table is None else [table]
        return Basis(
            records=complete.records,
            curves=tuple(curve for curve in curves if curve.model in shown),
            tables=(*before, *tables, *after),
            facts=noted(facts, [*notes, *reasons, *faults]),
        )


def given_inputs(
    evalsets: Sequence[EvalSet], how: Settings, measured: Sequence[Evaluation] | None = None
) -> list[Evaluation]:
    """What the verdict reads of coverage given inputs, of every model that has any.

    By ease or rank too, where that is known; everything, if what it reads is `measured`.
    """
    if how.cells is not None:
        eased = [evalset for evalset in evalsets if evalset.ease in evalset.features]
        if not eased:
            raise InputError("cells needs the ease score of each row; none given")
        for evalset in eased:
            check_cells(how.cells, evalset.n)
    subjects: list[tuple[EvalSet, Beside]] = []
    for evalset in evalsets:
        sets = [
            prediction for prediction in evalset.predictions if isinstance(prediction, LabelSets)
        ]
        ranked = any(prediction.probabilities is not None for prediction in sets)
        if evalset.ease in evalset.features or ranked:
            subjects.append((evalset, "ease"))
        if evalset.features or evalset.embedding is not None:
            subjects.append((evalset, "inputs"))
    evaluations = []
    for number, (evalset, inputs) in enumerate(subjects):
        report_progress(f"coverage given inputs of {evalset.model}", number, len(subjects))
        evaluations.append(
            evaluate(
                evalset,
                metrics=measures(inputs) if measured is None else None,
                beside=inputs,
                confidence=how.confidence,
                seed=how.seed,
                slow=how.also,
                given=None if how.cells is None else {"bins": how.cells},
                known=None if measured is None else measured[number],
            )
        )
    return evaluations
