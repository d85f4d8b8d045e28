"""The page of repeated splits: their averages, beside coverage at single x where truth is known."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, final

import numpy as np

from howsure.core import formats
from howsure.core.arrays import FloatArray
from howsure.core.classes import frozen
from howsure.core.errors import InputError, UnanswerableError
from howsure.core.records import Record
from howsure.report.document import (
    Cell,
    Choice,
    Document,
    GlossaryEntry,
    Grid,
    Section,
    Tone,
    VerdictLine,
)
from howsure.report.grids import number_cell, share_cell
from howsure_studies.engine import (
    MISSING,
    OwnNumber,
    beside_section,
    choice_of,
    coverage_of,
    estimate_cell,
    named,
    number_grid,
    overview,
    published,
    record_cell,
    study_document,
)
from howsure_studies.pointwise.figures import FigureWords, share_histogram, spread_figure
from howsure_studies.pointwise.finding import NEAR, PointwiseFinding, percent
from howsure_studies.pointwise.page import GLOSSARY
from howsure_studies.pointwise.repeated import SplitsBesideTruth
from howsure_studies.pointwise.splits import SplitWay

_PUBLISHED: Final = {
    "rmse": "RMSE, beside MC dropout on the same splits",
    "log_score": "log score in nats, beside MC dropout on the same splits",
}
_WHY: Final = (
    "the published networks trained for 100 times the usual 40 epochs, and their precision was "
    "chosen by a search"
)
"""Why ours differ."""
_CORRECTED: Final = (
    "± is the standard error of the mean over splits, corrected for the {} that splits share "
    "(Nadeau and Bengio 2003)."
)
_ERRORS: Final[Mapping[SplitWay, str]] = {
    "random": _CORRECTED.format("rows"),
    "unit": _CORRECTED.format("units"),
    "time": (
        "No standard error is shown: splits by time differ, as later ones train on more rows and "
        "the outcome may change."
    ),
}
"""What holds of the mean over splits."""
_DIVIDED: Final[Mapping[SplitWay, str]] = {
    "unit": "by unit: all rows of a unit are on one side",
    "time": "by time: each split trains on all rows before a moment and tests those up to the next",
}
"""How a table was divided, if not at random."""
_TENTH: Final = 0.1 / 0.9
"""Rows tested for each that is trained on, in the published splits."""
_STATES: Final[Mapping[Tone, str]] = {
    "good": "No problem found at single x",
    "bad": "Off at some x",
    "undecided": "Undecided",
    "info": "Not simulated",
}


def splits_report(
    results: Mapping[str, Sequence[SplitsBesideTruth]],
    *,
    title: str = "",
    coverage: float | None = None,
    facts: Mapping[str, str] | None = None,
    command: str = "",
) -> Document:
    """A report on methods over repeated splits, beside simulations of the same tables.

    Parameters
    ----------
    results : mapping of str to sequence of SplitsBesideTruth
        By table: one result a method.
    title : str
        What was studied; tables and methods are named if omitted.
    coverage : float, optional
        The nominal coverage that sentences and figures speak of; the highest up to 0.9 if omitted.
    facts : mapping of str to str, optional
        What else is known.
    command : str
        What makes the page again.

    Returns
    -------
    Document

    Raises
    ------
    InputError
        If there is no result, or the coverage was not measured.

    Examples
    --------
    >>> from howsure_studies.methods.linear import LinearT
    >>> from howsure_studies.pointwise import SplitsBesideTruth, over_splits
    >>> x = np.linspace(0.0, 1.0, 40)[:, None]
    >>> names = ["rmse", "log_score", "empirical_coverage", "mean_width"]
    >>> splits = over_splits(x, x[:, 0] + np.sin(40 * x[:, 0]), LinearT(), metrics=names)
    >>> splits_report({"waves": [SplitsBesideTruth(splits=splits)]}).headline.tone
    'info'
    """
    if not results or not all(results.values()):
        raise InputError("results must contain at least one result for each table, got none")
    every = [result for of_table in results.values() for result in of_table]
    levels = {r.coverage for result in every for r in result.splits.records() if r.coverage > 0}
    wanted = coverage_of(levels or {0.9}, coverage)
    tables = [
        _TableFindings.of(name, tuple(of_table), wanted) for name, of_table in results.items()
    ]
    methods = list(dict.fromkeys(result.splits.method for result in every))
    on = f"{named(methods, 'method')} on {named(list(map(str, results)), 'table')}"
    return study_document(
        title=title or f"What do repeated splits show, and what do they hide? {on}",
        headline=_headline(tables, wanted),
        opening=_opening(tables, wanted),
        sections=[table.section() for table in tables],
        beside=beside_section(_own_numbers(every), published("splits"), _PUBLISHED, _WHY),
        records=tuple(_records(every)),
        glossary=_GLOSSARY,
        facts={
            "Tables": ", ".join(results),
            "Methods": ", ".join(methods),
            "Nominal coverage shown": formats.level(wanted),
            **(facts or {}),
        },
        command=command,
    )


@final
@frozen(kw_only=True, eq=False)
class _TableFindings:
    """What was found of the methods on one table, at one coverage."""

    name: str
    results: tuple[SplitsBesideTruth, ...]
    coverage: float
    findings: Mapping[str, PointwiseFinding]  # of methods that were simulated
    missing: Mapping[str, str]  # why the others have none

    @classmethod
    def of(
        cls, name: str, results: tuple[SplitsBesideTruth, ...], coverage: float
    ) -> _TableFindings:
        findings: dict[str, PointwiseFinding] = {}
        missing: dict[str, str] = {}
        for result in results:
            method, summary = result.splits.method, result.summary
            if summary is not None and abs(summary.coverage - coverage) < 1e-9:
                missing[method] = summary.missing
                if summary.picf is not None:
                    findings[method] = summary.picf
            elif result.simulated is not None:
                try:
                    findings[method] = PointwiseFinding.of(result.simulated, "picf", coverage)
                except UnanswerableError as error:
                    missing[method] = str(error)
        return cls(
            name=name, results=results, coverage=coverage, findings=findings, missing=missing
        )

    @property
    def done(self) -> list[SplitsBesideTruth]:
        """Results with a split that succeeded."""
        return [result for result in self.results if result.splits.done]

    def value(self, result: SplitsBesideTruth, metric: str) -> Record:
        """A measure averaged over the splits."""
        marginal = metric in ("rmse", "log_score")
        return result.splits.record(metric, None if marginal else self.coverage)

    def section(self) -> Section:
        """Everything that a page shows of the table."""
        first = self.results[0].splits
        facts = {"Splits": str(len(first.done) + len(first.failures)), "Seed": str(first.seed)}
        if first.way != "random":
            facts["Divided"] = _DIVIDED[first.way]
        simulated = (result.simulated or result.summary for result in self.results)
        known = next((each for each in simulated if each is not None), None)
        if known is not None:
            facts["Rows of a training set"] = f"{known.n_train:,}"
            facts["Test rows"] = f"{len(known.y):,}"
            facts["Simulations"] = str(known.trials_planned)
        likeliest = self._likeliest()
        return Section(
            title=self.name,
            facts=facts,
            lines=(
                *([likeliest] if likeliest else []),
                *map(self._line, self.done),
                *self._failures(),
            ),
            grids=tuple(filter(None, [self._numbers()])),
            choices=self._histograms(),
        )

    def _likeliest(self) -> VerdictLine | None:
        """Whether likelihood over splits points to the method that covers best at single x."""
        scores = {
            result.splits.method: self.value(result, "log_score").value for result in self.done
        }
        known = {m: score for m, score in scores.items() if m in self.findings and score == score}
        if len(known) < 2:
            return None
        likely = min(known, key=lambda method: known[method])
        near = min(known, key=lambda method: self.findings[method].score.corrected)
        question = "Does the method with the best likelihood have the best coverage at single x?"
        text = f"{likely} has the best log-likelihood over the splits"
        typical = f"{self.findings[near].typical:.1f} percentage points"
        if near == likely:
            text += f". Its coverage at single x is also closest to nominal: {typical} away."
        else:
            text += (
                f". At single x, {near} is closest to nominal coverage: typically {typical} away "
                f"({likely}: {self.findings[likely].typical:.1f})."
            )
        return VerdictLine(text, "info", question)

    def _line(self, result: SplitsBesideTruth) -> VerdictLine:
        """What the splits say of a method, and what they could not see."""
        covered = self.value(result, "empirical_coverage")
        text = (
            f"{_over(len(result.splits.done))} the {percent(self.coverage)} intervals cover "
            f"{percent(covered.value)} of test rows{_ends(covered)}."
        )
        if result.splits.way == "time" and len(result.splits.done) > 1:
            own = result.splits.values("empirical_coverage", self.coverage)
            low, high = (percent(float(end)) for end in (own.min(), own.max()))
            text += f" On single splits they cover {low} to {high}."
        finding = self.findings.get(result.splits.method)
        if finding is None:
            why = self.missing.get(result.splits.method, "")
            text += f" Coverage at single x is not known: {why}." if why else ""
            return VerdictLine(text, "info", result.splits.method)
        low, high = (percent(float(end)) for end in np.quantile(finding.value, [0.05, 0.95]))
        text += f" In the simulation, coverage is between {low} and {high} at 90 % of test points. "
        text += f"It differs significantly from nominal at {percent(finding.off)} of them."
        return VerdictLine(text, finding.tone, result.splits.method)

    def _failures(self) -> Iterator[VerdictLine]:
        for result in self.results:
            failed = result.splits.failures
            if failed:
                count = len(failed) + len(result.splits.done)
                text = f"{len(failed)} of {count} splits failed, the first with {failed[0].error}."
                yield VerdictLine(text, "bad", result.splits.method)

    def _numbers(self) -> Grid | None:
        """Averages over the splits, beside what they cannot show."""
        rows = []
        for result in self.done:
            finding = self.findings.get(result.splits.method)
            score, covered = (self.value(result, m) for m in ("log_score", "empirical_coverage"))
            simulated = [MISSING] * 3
            if finding is not None:
                simulated = [
                    share_cell(finding.mean),
                    number_cell(finding.typical),
                    replace(share_cell(finding.off), tone=finding.tone),
                ]
            known = not math.isnan(covered.standard_error)
            error = f"± {formats.fixed(100 * covered.standard_error, 1)}" if known else ""
            rows.append(
                (
                    Cell(text=result.splits.method),
                    record_cell(self.value(result, "rmse")),
                    estimate_cell(-score.value, score.standard_error),
                    share_cell(covered.value, error),
                    record_cell(self.value(result, "mean_width")),
                    *simulated,
                )
            )
        if not rows:
            return None
        at = formats.level(self.coverage)
        return number_grid(
            f"Over the splits, and where the truth is known, at {at}",
            (
                *("RMSE", "Log-likelihood", "Covered", "Width"),
                *("Simulated: covered", "Typical distance at single x", "Points that differ"),
            ),
            rows,
            (
                _ERRORS[self.results[0].splits.way],
                "Simulated: the table's own x, y drawn from two forests fitted to the table, and "
                "as many rows as a split has. The distance is in percentage points.",
            ),
        )

    def _histograms(self) -> tuple[Choice, ...]:
        """Coverage over splits, and over the points of the simulated world."""
        places = {result.splits.method: number for number, result in enumerate(self.results)}
        seen: dict[str, FloatArray] = {
            result.splits.method: result.splits.values("empirical_coverage", self.coverage)
            for result in self.done
        }
        at_points = {method: finding.value for method, finding in self.findings.items()}
        ways = (
            (
                "splits",
                seen,
                "What do single splits show?",
                "Test sets are small, so even correct intervals vary here. Their average hides "
                "coverage that varies with x.",
            ),
            (
                "points",
                at_points,
                "Is coverage the same at every x, where the truth is known?",
                "Correct intervals are close to the line. A wide spread shows that coverage varies "
                "with x.",
            ),
        )
        options = []
        for of, values, question, reading in ways:
            words = FigureWords(
                name=f"{of}_histogram",
                question=question,
                title=f"Coverage over {of}",
                reading=reading,
                x="Coverage",
            )
            if values:
                figure = share_histogram(values, self.coverage, words, places=places, of=of)
                options.append((figure.title, figure))
        return choice_of("Histogram of", options)


def _headline(tables: Sequence[_TableFindings], coverage: float) -> VerdictLine:
    """What the averages show, and what they hide."""
    tests = [(table, result) for table in tables for result in table.done]
    if not tests:
        return VerdictLine("No split succeeded.", "bad")
    nominal = percent(coverage)
    seeming = [
        table.findings.get(result.splits.method)
        for table, result in tests
        if abs(table.value(result, "empirical_coverage").value - coverage) <= NEAR
    ]
    known = [finding for finding in seeming if finding is not None]
    hidden = sum(finding.off > 0 for finding in known)
    if len(tests) == 1:
        table, result = tests[0]
        splits = result.splits
        text = f"{_over(len(splits.done))} the {nominal} intervals of {splits.method} cover "
        text += f"{percent(table.value(result, 'empirical_coverage').value)} on average."
        finding = table.findings.get(result.splits.method)
        if finding is None:
            return VerdictLine(text, "info")
        text += " In the simulation, coverage differs significantly from nominal at "
        return VerdictLine(f"{text}{percent(finding.off)} of test points.", finding.tone)
    text = (
        f"On average over splits, {nominal} intervals cover within {100 * NEAR:.0f} points of "
        f"nominal in {len(seeming)} of {len(tests)} tests."
    )
    if not known:
        return VerdictLine(text, "info")
    of = "all" if hidden == len(known) else str(hidden)
    text += f" In {of} of these {len(known)}, coverage at some x differs significantly where "
    return VerdictLine(f"{text}the truth is known.", "bad" if hidden else "undecided")


def _opening(tables: Sequence[_TableFindings], coverage: float) -> Section:
    """Every method on every table: coverage over splits, and its state at single x."""
    states: dict[str, dict[str, Cell]] = {}
    for table in tables:
        for result in table.done:
            finding = table.findings.get(result.splits.method)
            cell = share_cell(table.value(result, "empirical_coverage").value)
            tone: Tone = "info" if finding is None else finding.tone
            states.setdefault(result.splits.method, {})[table.name] = replace(cell, tone=tone)
    if not states:
        return Section(title="")
    every = [(table.name, m, finding) for table in tables for m, finding in table.findings.items()]
    figure = None
    if every:
        names = [m if len(tables) == 1 else f"{name}: {m}" for name, m, _ in every]
        figure = spread_figure(names, [finding.value for _, _, finding in every], coverage)
    title = f"Coverage over splits, nominal {formats.level(coverage)}"
    grid = overview(title, states, _STATES, "Marks: coverage at single x in the simulated table.")
    return Section(title="", grids=(grid,), choices=choice_of("", [("", figure)]))


def _own_numbers(results: Sequence[SplitsBesideTruth]) -> Iterator[OwnNumber]:
    """Every method on the tables and splits whose numbers were published, of MC dropout alone."""
    for splits in (result.splits for result in results):
        published_alike = math.isclose(splits.test_share, _TENTH, rel_tol=0.05)
        if splits.done and splits.way == "random" and published_alike:
            for record in splits.records():
                named = replace(record, model=splits.method)
                yield OwnNumber(task=splits.table, method="mc_dropout", record=named)


def _records(results: Sequence[SplitsBesideTruth]) -> Iterator[Record]:
    for result in results:
        for record in result.splits.records():
            yield replace(record, model=result.splits.method, group=f"table={result.splits.table}")


def _over(splits: int) -> str:
    """Over how many splits a sentence speaks."""
    return f"Over {splits} splits" if splits > 1 else "On the one split"


def _ends(record: Record) -> str:
    """The interval of a share; nothing where one split tells none."""
    if math.isnan(record.standard_error):
        return ""
    low, high = (percent(min(max(end, 0.0), 1.0)) for end in (record.lower, record.upper))
    return f" (95\N{NO-BREAK SPACE}% interval {low} to {high})"


_SOURCE: Final = "Sluijterman, Cator and Heskes, arXiv 2106.03395"
_OWN: Final[Sequence[Mapping[str, Any]]] = (
    {
        "name": "rmse",
        "title": "RMSE",
        "meaning": "Root mean squared error of the point forecast on the test rows of a split.",
        "direction": "lower is better",
    },
    {
        "name": "log_score",
        "title": "Log-likelihood",
        "meaning": (
            "Mean log density of a split's test rows. A wrong interval may have the better one: "
            "compare coverage at single x."
        ),
        "direction": "higher is better",
        "units": "nats",
    },
    {
        "name": "empirical_coverage",
        "title": "Covered",
        "meaning": (
            "Share of a split's test rows that the intervals contain: an average over x, on data "
            "without a known truth."
        ),
        "source": "Hernández-Lobato and Adams 2015, section 5.2, for the splits",
    },
)
_GLOSSARY: Final = (
    *(GlossaryEntry(**entry) for entry in _OWN),
    *(
        replace(entry, source=_SOURCE)
        for entry in GLOSSARY
        if entry.name in ("picf", "brier", "points_off")
    ),
)
