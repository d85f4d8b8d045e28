"""The page of a test of coverage at every point: its sentences, tables and figures."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, final

import numpy as np

from howsure.core import formats
from howsure.core.arrays import FloatArray
from howsure.core.errors import InputError, UnanswerableError
from howsure.core.records import Curve, Record
from howsure.figures import Figure
from howsure.figures.text import distinct
from howsure.report.document import (
    Cell,
    Choice,
    Column,
    Document,
    GlossaryEntry,
    Grid,
    GridRows,
    Section,
    Tone,
    VerdictLine,
)
from howsure.report.grids import number_cell, share_cell
from howsure_studies.engine import choice_of, coverage_of, named, overview, study_document
from howsure_studies.pointwise.figures import (
    FigureWords,
    coverage_profile,
    intervals_along_x,
    intervals_over_truth,
    one_run,
    share_histogram,
    spread_figure,
)
from howsure_studies.pointwise.finding import NEAR, PointwiseFinding, percent
from howsure_studies.pointwise.measures import (
    bins_for,
    curves,
    default_names,
    local_curve,
    points_table,
    principal_component,
    records,
    spread_along,
    trials_table,
)
from howsure_studies.pointwise.simulation import PointwiseResult, Which

_APART: Final = 2.0
"""Standard errors of a difference past which methods are told apart."""
_MOST_REGIONS: Final = 5  # listed of one method
_MOST_COLUMNS: Final = 12  # along which coverage is shown
_BOTH: Final[tuple[Which, ...]] = ("picf", "cicf")
_SUBJECT: Final[Mapping[Which, str]] = {
    "picf": "prediction intervals",
    "cicf": "confidence intervals",
}
_STATES: Final[Mapping[Tone, str]] = {"good": "Right", "bad": "Off", "undecided": "Undecided"}


def pointwise_report(
    results: Mapping[str, Sequence[PointwiseResult]],
    *,
    title: str = "",
    coverage: float | None = None,
    names: Mapping[str, Sequence[str]] | None = None,
    facts: Mapping[str, str] | None = None,
    command: str = "",
) -> Document:
    """A report on methods tested in worlds.

    Parameters
    ----------
    results : mapping of str to sequence of PointwiseResult
        By world: one result a method, or several of several seeds.
    title : str
        What was studied; worlds and methods are named if omitted.
    coverage : float, optional
        The nominal coverage that sentences and figures speak of; the highest up to 0.9 if omitted.
    names : mapping of str to sequence of str, optional
        By world: names of the columns of x.
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
        If there is no result, methods of one world and seed differ in their test sets, or
        results share no nominal coverage.

    Examples
    --------
    >>> from howsure_studies.methods.linear import LinearT
    >>> from howsure_studies.pointwise import pointwise
    >>> result = pointwise("linear", LinearT(), trials=50, n_test=20)
    >>> pointwise_report({"linear": [result]}).headline.tone
    'good'
    """
    test_sets = _by_test_set(results)
    whole = [result for _, shared in test_sets.values() for result in shared]
    wanted = coverage_of(_shared_coverages(whole), coverage)
    worlds = [
        _WorldFindings.of(label, shared, wanted, (names or {}).get(name))
        for label, (name, shared) in test_sets.items()
    ]
    stated = {
        "Worlds": ", ".join(test_sets),
        "Methods": ", ".join(dict.fromkeys(result.method for result in whole)),
        "Nominal coverage shown": formats.level(wanted),
    }
    judged = [finding for world in worlds for finding in world.findings["picf"]]
    return study_document(
        title=title or _title(results),
        headline=_headline(judged, len(results)),
        opening=_opening(worlds, wanted),
        sections=[world.section() for world in worlds],
        records=tuple(record for result in whole for record in records(result)),
        tables=tuple(
            make(result, wanted) for result in whole for make in (points_table, trials_table)
        ),
        curves=tuple(curve for result in whole for curve in curves(result)),
        glossary=GLOSSARY,
        facts={**stated, **(facts or {})},
        command=command,
    )


def _by_test_set(
    results: Mapping[str, Sequence[PointwiseResult]],
) -> dict[str, tuple[str, tuple[PointwiseResult, ...]]]:
    """Results that share a test set, by what to call them, with the world's name."""
    if not results or not all(results.values()):
        raise InputError("results must hold at least one result for each world, got none")
    test_sets: dict[str, tuple[str, tuple[PointwiseResult, ...]]] = {}
    for name, every in results.items():
        seeds: dict[int, list[PointwiseResult]] = {}
        for result in every:
            seeds.setdefault(result.seed, []).append(result)
        for seed, shared in seeds.items():
            first = shared[0]
            for other in shared[1:]:
                if not np.array_equal(other.y, first.y):
                    raise InputError(
                        f"methods of world {name!r} must share its test set where their seed is "
                        f"one, but {first.method} and {other.method} do not"
                    )
            labels = distinct([result.method for result in shared])
            title = f"{name}, seed {seed}" if len(seeds) > 1 else str(name)
            test_sets[title] = (
                str(name),
                tuple(
                    result if result.method == label else replace(result, method=label)
                    for result, label in zip(shared, labels, strict=True)
                ),
            )
    return test_sets


def _shared_coverages(results: Sequence[PointwiseResult]) -> list[float]:
    shared = [
        c
        for c in results[0].coverages
        if all(min(abs(c - other) for other in result.coverages) < 1e-9 for result in results)
    ]
    if not shared:
        raise InputError("results must share a nominal coverage, got none that all answered")
    return shared


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _WorldFindings:
    """What was found of the methods of one world, on one test set and at one coverage."""

    name: str
    results: tuple[PointwiseResult, ...]
    coverage: float
    names: tuple[str, ...] | None
    findings: Mapping[Which, Sequence[PointwiseFinding]]
    missing: Sequence[VerdictLine]  # why the other methods cannot be judged

    @classmethod
    def of(
        cls,
        name: str,
        results: tuple[PointwiseResult, ...],
        coverage: float,
        names: Sequence[str] | None,
    ) -> _WorldFindings:
        fits = names is not None and len(names) == results[0].x.shape[1]
        known = tuple(names) if names is not None and fits else None
        findings: dict[Which, list[PointwiseFinding]] = {which: [] for which in _BOTH}
        missing: list[VerdictLine] = []
        for result in results:
            for which in _BOTH:
                try:
                    findings[which].append(PointwiseFinding.of(result, which, coverage, known))
                except UnanswerableError as error:
                    if which == "picf":
                        missing.append(_missing_line(result, coverage, str(error)))
        return cls(
            name=name,
            results=results,
            coverage=coverage,
            names=known,
            findings=findings,
            missing=missing,
        )

    @property
    def places(self) -> dict[str, int]:
        """The colour of each method."""
        return {result.method: colour for colour, result in enumerate(self.results)}

    def section(self) -> Section:
        """Everything that a page shows of the world."""
        best = _comparison_line(self.findings["picf"])
        lines = map(_method_line, (*self.findings["picf"], *self.findings["cicf"]))
        first = self.results[0]
        numbers = [{_key(record): record for record in records(result)} for result in self.results]
        grids = [
            *(_comparison(self.results, numbers, which) for which in _BOTH),
            _trials(self.results, numbers),
            _regions(self.findings, self.coverage),
        ]
        return Section(
            title=self.name,
            facts={
                "Test points": f"{len(first.y):,}",
                "Training rows": f"{first.n_train:,}",
                "Columns of x": str(first.x.shape[1]),
                "Covariates": first.covariates,
                "Seed": str(first.seed),
            },
            lines=(*([best] if best else []), *lines, *self.missing),
            grids=tuple(grid for grid in grids if grid is not None),
            choices=(*_profiles(self), *_runs(self), *_histograms(self)),
        )


# Sentences


def _title(results: Mapping[str, Sequence[PointwiseResult]]) -> str:
    methods = list(dict.fromkeys(result.method for every in results.values() for result in every))
    on = f"{named(methods, 'method')} on {named(list(map(str, results)), 'world')}"
    return f"Are prediction intervals right at every x? {on}"


def _headline(findings: Sequence[PointwiseFinding], worlds: int) -> VerdictLine | None:
    """The main message over all prediction intervals tested; None where nothing was."""
    if not findings:
        return None
    first, alone = findings[0], len(findings) == 1
    failed = [finding for finding in findings if finding.off]
    hidden = sum(abs(finding.mean - finding.coverage) <= NEAR for finding in failed)
    nominal = percent(first.coverage)
    places = f"{worlds} worlds" if worlds > 1 else f"world {first.result.world}"
    of = f"The {nominal} prediction intervals of {first.result.method}"
    near = f"average coverage, within {100 * NEAR:.0f} points of nominal, hides it."
    if not failed:
        text = (
            f"{of} do not cover significantly below or above nominal at any x."
            if alone
            else f"None of {len(findings)} methods tested in {places} covers significantly below "
            f"or above {nominal} at any x."
        )
        return VerdictLine(
            text, "good" if all(finding.near for finding in findings) else "undecided"
        )
    if alone:
        text = f"{of} under- or over-cover significantly at {percent(first.off)} of test points."
        return VerdictLine(f"{text} {near[:1].upper()}{near[1:]}" if hidden else text, "bad")
    text = (
        f"In {len(failed)} of {len(findings)} tests in {places}, {nominal} prediction intervals "
        "under- or over-cover significantly at some x."
    )
    return VerdictLine(f"{text} In {hidden} of them {near}" if hidden else text, "bad")


def _method_line(finding: PointwiseFinding) -> VerdictLine:
    """What is to be said of the intervals of one method."""
    result, subject = finding.result, _SUBJECT[finding.which]
    what = "a new y" if finding.which == "picf" else "the true mean"
    low, high = (percent(float(end)) for end in np.quantile(finding.value, [0.05, 0.95]))
    average = (
        f"The {percent(finding.coverage)} {subject} contain {what} with probability "
        f"{percent(finding.mean)} on average over x."
    )
    question = f"{result.method}: {subject}"
    spread = f"between {low} and {high} at nine in ten test points"
    if not finding.off:
        text = (
            f"{average} Coverage lies {spread}, and differs significantly from nominal at none of "
            f"{len(finding.value):,} ({result.trials:,} trials)."
        )
        if not finding.near:
            text += f" At half of them it may still be off by {percent(finding.reach)}."
        return VerdictLine(text, finding.tone, question)
    signs = {"below": -1, "above": 1}
    shares = {words: float((finding.verdict == sign).mean()) for words, sign in signs.items()}
    off = " and ".join(f"{words} at {percent(share)}" for words, share in shares.items() if share)
    text = f"{average} It lies {spread}: significantly {off} of them."
    if len(finding.where):
        where = finding.where.columns
        there = percent(float(where["coverage"][0]))
        text += f" It fails most where {where['where'][0]} ({there} there)."
    return VerdictLine(text, finding.tone, question)


def _missing_line(result: PointwiseResult, coverage: float, why: str) -> VerdictLine:
    """Why the intervals of one method cannot be judged at single x, and what is known of them."""
    if result.truth is not None or not result.trials:
        text = f"{result.method} cannot be judged: {why}."
        return VerdictLine(text, "info" if result.trials else "bad", result.method)
    covered = percent(float(result.picp(coverage).mean()))
    text = (
        f"The {percent(coverage)} prediction intervals contain {covered} of the test set's y, on "
        f"average over {result.trials:,} training sets. Coverage at single x cannot be judged: "
        f"{why}."
    )
    return VerdictLine(text, "info", result.method)


def _comparison_line(findings: Sequence[PointwiseFinding]) -> VerdictLine | None:
    """Which method of a world covers closest to nominal at single x; None for fewer than two."""
    if len(findings) < 2:
        return None
    best, *others = sorted(findings, key=lambda finding: finding.score.corrected)
    second = others[0]
    listed = ", ".join(f"{other.result.method} {other.typical:.1f}" for other in others)
    gap = second.score.corrected - best.score.corrected
    error = math.hypot(best.score.standard_error, second.score.standard_error)
    text = (
        f"{best.result.method} covers closest to nominal {percent(best.coverage)}: at a given "
        f"x it is typically off by {best.typical:.1f} percentage points ({listed})."
    )
    question = "Which method covers best at every x?"
    if not gap > _APART * error:
        text += f" Its lead over {second.result.method} is not significant."
        return VerdictLine(text, "undecided", question)
    return VerdictLine(text, "info", question)


# Tables


def _opening(worlds: Sequence[_WorldFindings], coverage: float) -> Section:
    """How every method covers, over the points of every world; empty where none can be judged."""
    every = [(world.name, finding) for world in worlds for finding in world.findings["picf"]]
    if not every:
        return Section(title="")
    states: dict[str, dict[str, Cell]] = {}
    for name, finding in every:
        cell = replace(share_cell(finding.off), tone=finding.tone)
        states.setdefault(finding.result.method, {})[name] = cell
    note = "Share of test points significantly off nominal coverage."
    title = f"Points that depart from nominal {formats.level(coverage)}"
    names = [
        finding.result.method if len(worlds) == 1 else f"{name}: {finding.result.method}"
        for name, finding in every
    ]
    figure = spread_figure(names, [finding.value for _, finding in every], coverage)
    return Section(
        title="",
        grids=(overview(title, states, _STATES, note),),
        choices=choice_of("", [("", figure)]),
    )


_COMPARED: Final[Mapping[Which, tuple[str, Mapping[str, str]]]] = {
    "picf": (
        "Prediction intervals",
        {
            "Mean PICP": "empirical_coverage",
            "Mean PICF": "picf_mean",
            "Failing points": "picf_points_off",
            "Mean width": "prediction_width",
            "Brier, raw": "picf_brier",
            "Brier, corrected": "picf_brier_corrected",
            "Bias²": "picf_bias_squared",
            "Variance": "picf_variance",
        },
    ),
    "cicf": (
        "Confidence intervals for the mean",
        {
            "Mean CICP": "cicp",
            "Failing points": "cicf_points_off",
            "Mean width": "confidence_width",
            "Brier, raw": "cicf_brier",
            "Brier, corrected": "cicf_brier_corrected",
            "Bias²": "cicf_bias_squared",
            "Variance": "cicf_variance",
        },
    ),
}
_Numbers = Sequence[Mapping[tuple[str, float], Record]]
"""Of each method: its records by measure and coverage (−1 where there is none)."""


def _key(record: Record) -> tuple[str, float]:
    return record.metric, -1.0 if math.isnan(record.coverage) else record.coverage


def _comparison(results: Sequence[PointwiseResult], numbers: _Numbers, which: Which) -> Grid | None:
    """Methods beside each other, one part a coverage; None where nothing is known."""
    title, shown = _COMPARED[which]
    if all(result.truth is None for result in results):  # of data that are real
        kept = ("empirical_coverage", "prediction_width") if which == "picf" else ()
        shown = {name: metric for name, metric in shown.items() if metric in kept}
    parts = []
    reasons: dict[str, None] = {}
    for coverage in sorted({c for result in results for c in result.coverages}):
        rows = []
        for result, table in zip(results, numbers, strict=True):
            if coverage not in result.coverages:
                continue
            measured = [table[metric, coverage] for metric in shown.values()]
            if not measured:
                continue
            if all(math.isnan(record.value) for record in measured):
                why = measured[0].reason.removeprefix(f"{result.method} ")
                reasons[f"{result.method}: {why}."] = None
                continue
            rows.append((Cell(text=result.method), *map(_number, measured)))
        if rows:
            parts.append(GridRows(title=f"Nominal {formats.level(coverage)}", rows=tuple(rows)))
    if not parts:
        return None
    notes = (
        "± is the Monte Carlo standard error over trials; that of a raw Brier score is that of the "
        "corrected one. MC: the raw score that Monte Carlo error alone would give.",
        *reasons,
    )
    return _grid(title, ["Method"], shown, parts, notes)


def _number(record: Record) -> Cell:
    """A number with its error; a raw Brier score with its Monte Carlo part."""
    if math.isnan(record.value):
        return Cell(text=formats.MISSING)
    if record.metric.endswith("points_off"):
        return share_cell(record.value)
    if record.metric.endswith("_brier"):
        noise = formats.number(record.null, 2) if math.isfinite(record.null) else ""
        return number_cell(record.value, f"MC {noise}" if noise else "")
    value, error = formats.estimate(record.value, record.standard_error)
    return Cell(text=value, small=f"± {error}" if error else "", key=repr(record.value))


def _trials(results: Sequence[PointwiseResult], numbers: _Numbers) -> Grid:
    """Log-likelihood, failures, and how many trials were needed."""
    rows = []
    for result, table in zip(results, numbers, strict=True):
        first = result.failures[0] if result.failures else None
        failed, warned = len(result.failures), sum(result.warnings.values())
        rows.append(
            (
                Cell(
                    text=result.method,
                    small=f"{first.stage}: {first.error}: {first.message}" if first else "",
                ),
                _number(table["log_likelihood", -1.0]),
                Cell(text=f"{result.trials:,}", key=str(result.trials)),
                Cell(text=f"{result.trials_planned:,}", key=str(result.trials_planned)),
                Cell(text=str(failed), key=str(failed)),
                Cell(text=str(warned), key=str(warned)),
                Cell(text=result.stop),
            )
        )
    counts = ("Log-likelihood", "Trials", "At most", "Failed", "Warnings")
    grid = _grid("Trials", ["Method"], counts, [GridRows(rows=tuple(rows))])
    return replace(grid, columns=(*grid.columns, Column(title="Why they ended")))


def _regions(findings: Mapping[Which, Sequence[PointwiseFinding]], coverage: float) -> Grid | None:
    """Where each method fails; None where none does."""
    parts, notes = [], []
    for which in _BOTH:
        rows = []
        for finding in findings[which]:
            where = finding.where.columns
            if finding.where.notes:
                notes.append(finding.where.notes)
            rows += [
                (
                    Cell(text=str(where["where"][row])),
                    Cell(text=finding.result.method),
                    share_cell(where["coverage"][row]),
                    Cell(text="under-covers" if where["verdict"][row] < 0 else "over-covers"),
                    Cell(text=f"{where['points'][row]:,}", key=str(int(where["points"][row]))),
                )
                for row in range(min(len(finding.where), _MOST_REGIONS))
            ]
        if rows:
            parts.append(GridRows(title=_COMPARED[which][0], rows=tuple(rows)))
    if not parts:
        return None
    columns = (
        Column(title="Where"),
        Column(title="Method"),
        Column(title="Mean coverage there", numeric=True),
        Column(title="Verdict"),
        Column(title="Test points", numeric=True),
    )
    title = f"Where coverage differs significantly from nominal {formats.level(coverage)}"
    return Grid(title=title, columns=columns, parts=tuple(parts), notes=tuple(dict.fromkeys(notes)))


def _grid(
    title: str,
    words: Sequence[str],
    numbers: Iterable[str],
    parts: Sequence[GridRows],
    notes: tuple[str, ...] = (),
) -> Grid:
    columns = (
        *(Column(title=name) for name in words),
        *(Column(title=name, numeric=True) for name in numbers),
    )
    return Grid(title=title, columns=columns, parts=tuple(parts), notes=notes)


# Figures


def _profiles(world: _WorldFindings) -> Iterator[Choice]:
    """Coverage along x: its only column, or the one chosen, or the first principal component."""
    if not world.findings["picf"]:
        return
    x = world.results[0].x
    alone = (world.names or default_names(1))[0] if x.shape[1] == 1 else ""
    ways = [] if alone else _directions(world, x)
    for which in (which for which in _BOTH if world.findings[which]):
        findings = world.findings[which]
        options = []
        if alone:
            options.append(("", _profile(world, which, map(_along_x, findings), alone, ())))
        for title, values, notes in ways:
            made = (
                local_curve(
                    finding.result,
                    which,
                    world.coverage,
                    values,
                    name=title,
                    bins=bins_for(len(values)),
                )
                for finding in findings
            )
            options.append((title, _profile(world, which, made, title, notes)))
        yield from choice_of("Along", options)


def _along_x(finding: PointwiseFinding) -> Curve:
    """The method's coverage at each point, in rising x."""
    every = curves(finding.result, coverages=(finding.coverage,))
    return next(curve for curve in every if curve.name == finding.which)


def _directions(
    world: _WorldFindings, x: FloatArray
) -> list[tuple[str, FloatArray, tuple[str, ...]]]:
    """Columns by how much coverage differs along them, then the first principal component."""
    titles = world.names or default_names(x.shape[1])
    live = [column for column in range(x.shape[1]) if np.ptp(x[:, column]) > 0]
    spread = {
        column: sum(
            spread_along(finding.result, finding.which, finding.coverage, x[:, column])
            for finding in world.findings["picf"]
        )
        for column in live
    }
    ranked = sorted(live, key=lambda column: -spread[column])[:_MOST_COLUMNS]
    note = f"Shown: {len(ranked)} of {len(live)} columns, those along which coverage differs most."
    notes = (note,) if len(ranked) < len(live) else ()
    directions = [(titles[column], x[:, column], notes) for column in ranked]
    values, share, loadings = principal_component(x)
    heavy = np.argsort(-np.abs(loadings))[:4]
    made_of = ", ".join(f"{loadings[j]:+.2f} {titles[j]}" for j in heavy)
    note = f"The component holds {share:.0%} of the variance; heaviest: "
    note += f"{made_of.replace('-', '−')}."
    return [*directions, ("first principal component", values, (note,))]


def _profile(
    world: _WorldFindings, which: Which, made: Iterable[Curve], title: str, notes: tuple[str, ...]
) -> Figure:
    whole = "prediction intervals" if which == "picf" else "confidence intervals for the mean"
    words = FigureWords(
        name=f"{which}_profile",
        question=f"Where along {title} do {whole} under- or over-cover?",
        title=f"Coverage of {whole} along {title}",
        reading=(
            "Correct intervals follow the dashed line. Where a band lies below it they "
            "under-cover significantly, where it lies above they over-cover."
        ),
        x=title,
        notes=notes,
    )
    return coverage_profile(list(made), world.coverage, words, places=world.places)


def _runs(world: _WorldFindings) -> tuple[Choice, ...]:
    """The intervals of the first trial over the truth, one method at a time."""
    options = []
    for result in (finding.result for finding in world.findings["picf"]):
        run = one_run(result, world.coverage)
        if run is None:
            continue
        alone = result.x.shape[1] == 1
        words = FigureWords(
            name="one_run",
            question=f"What do the intervals of one trial look like? ({result.method})",
            title=f"{formats.level(world.coverage)} intervals from one training set",
            reading=(
                "Shaded: the intervals. Dashed: the true mean; dotted: the true interval."
                if alone
                else "Each interval belongs to one test point, placed by its true mean. The dashed "
                "line is that mean."
            ),
            x=(world.names or default_names(1))[0] if alone else "",
        )
        draw = intervals_along_x if alone else intervals_over_truth
        options.append((result.method, draw(run, words, colour=world.places[result.method])))
    return choice_of("Method", options)


_POINTS: Final = (
    "Correct intervals stand close to the line, apart from Monte Carlo error. A wide spread is "
    "coverage that varies with x."
)
_SPREADS: Final[Mapping[str, tuple[str, str, str]]] = {
    "PICF": ("points", "Is coverage the same at every x?", _POINTS),
    "CICF": ("points", "Do confidence intervals cover the mean at every x?", _POINTS),
    "PICP": (
        "trials",
        "What would a single test set show?",
        "Even correct intervals scatter here. An average at the line can hide coverage that "
        "varies with x.",
    ),
    "CICP": (
        "trials",
        "What would a single test set show of confidence intervals?",
        "Errors at neighbouring x go together. Even correct intervals cover the mean at most "
        "points in some trials and at few in others.",
    ),
}
"""By measure: over what it is spread, the question, and how to read it."""


def _histograms(world: _WorldFindings) -> tuple[Choice, ...]:
    """Coverage over test points, and over trials, for new y and for the mean."""
    coverage, means = world.coverage, world.findings["cicf"]
    shares = {
        "PICF": {finding.result.method: finding.value for finding in world.findings["picf"]},
        "CICF": {finding.result.method: finding.value for finding in means},
        "PICP": {r.method: r.picp(coverage) for r in world.results if r.trials},
        "CICP": {finding.result.method: finding.result.cicp(coverage) for finding in means},
    }
    options = []
    for name, values in shares.items():
        of, question, reading = _SPREADS[name]
        words = FigureWords(
            name=f"{name.lower()}_histogram",
            question=question,
            title=f"{name} over {'test points' if of == 'points' else of}",
            reading=reading,
            x=name,
        )
        if values:
            figure = share_histogram(values, coverage, words, places=world.places, of=of)
            options.append((figure.title, figure))
    return choice_of("Histogram of", options)


GLOSSARY: Final = (
    GlossaryEntry(
        name="picp",
        title="PICP",
        meaning=(
            "Prediction interval coverage probability: the share of one test set's y that the "
            "intervals of one trial contain. One number a trial, and an average over x."
        ),
        formula="PICP_s = mean_i 1{l_si ≤ y_i ≤ u_si}",
        source="Sluijterman, Cator and Heskes, arXiv 2106.03395, definition 5",
    ),
    GlossaryEntry(
        name="picf",
        title="PICF",
        meaning=(
            "Prediction interval coverage fraction: the probability that the interval at x "
            "contains a new y there, over training sets. One number a test point."
        ),
        formula="PICF(x) = mean_s P(l_s(x) ≤ Y ≤ u_s(x)), exact from the world's distribution of Y",
        source="the same, equation 6",
    ),
    GlossaryEntry(
        name="cicp",
        title="CICP",
        meaning=(
            "Share of the test points whose true mean the confidence intervals of one trial "
            "contain. Errors at neighbouring x go together, so single trials lie far from nominal "
            "even for correct intervals."
        ),
        formula="CICP_s = mean_i 1{l_si ≤ f(x_i) ≤ u_si}",
        source="the same, definition 6",
    ),
    GlossaryEntry(
        name="cicf",
        title="CICF",
        meaning="Share of the trials whose confidence interval at x contains the true mean there.",
        formula="CICF(x) = mean_s 1{l_s(x) ≤ f(x) ≤ u_s(x)}",
        source="the same, section 4",
    ),
    GlossaryEntry(
        name="brier",
        title="Brier score of coverage",
        meaning=(
            "Squared distance of coverage at single x from nominal, averaged; 0 is perfect. The "
            "raw score includes Monte Carlo error, shown beside it; the corrected one does not, "
            "and may be negative. Bias² is what average coverage accounts for, variance what "
            "differs between x. Its root is the typical distance."
        ),
        formula="mean_i (PICF(x_i) − (1 − α))²",
        source="the same, equation 8; the correction is howsure's",
        direction="lower is better",
    ),
    GlossaryEntry(
        name="points_off",
        title="Failing points",
        meaning=(
            "Share of the test points where coverage differs significantly from nominal: outside a "
            "simultaneous Monte Carlo band."
        ),
        direction="lower is better",
    ),
    GlossaryEntry(
        name="log_likelihood",
        title="Log-likelihood",
        meaning=(
            "Mean log density of the test set's y. A wrong interval may have the better one: "
            "compare coverage too."
        ),
        direction="higher is better",
        units="nats",
    ),
)
