"""The page of a test of coverage at every point: its sentences, tables and figures."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final, final

import numpy as np

from howsure.core import formats
from howsure.core.arrays import FloatArray
from howsure.core.classes import frozen
from howsure.core.errors import InputError
from howsure.core.records import Curve, Record, ResultTable
from howsure.core.text import distinct
from howsure.figures import Figure
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
from howsure_studies.engine import (
    OwnNumber,
    Shown,
    beside_section,
    choice_of,
    coverage_of,
    estimate_cell,
    named,
    number_grid,
    overview,
    pivot,
    published,
    record_cell,
    share_of,
    study_document,
)
from howsure_studies.pointwise.figures import (
    FigureWords,
    coverage_profile,
    intervals_along_x,
    intervals_over_truth,
    share_histogram,
    spread_figure,
)
from howsure_studies.pointwise.finding import (
    COMPONENT,
    NEAR,
    PointwiseFinding,
    PointwiseSummary,
    percent,
)
from howsure_studies.pointwise.measures import default_names
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
_PUBLISHED: Final[Mapping[str, str]] = {
    "picf_brier": "Brier score of the PICF",
    "cicf_brier": "Brier score of the CICF",
    "empirical_coverage": "mean PICP",
    "prediction_width": "width of prediction intervals",
    "confidence_width": "width of confidence intervals",
    "log_likelihood": "log-likelihood",
}
_WHY: Final = "the paper states neither the optimiser nor what is regularised"
"""Why ours differ."""
_FIRST, _SECOND, _STATED = "bootstrap", "dropout", "_as_stated"
"""Methods of the paper, and what the name of one that is run as the paper states ends with."""
_OF_ONE_RUN: Final = ("empirical_coverage", "log_likelihood")
"""What a single run tells; the paper prints it of one."""
_STATES: Final[Mapping[Tone, str]] = {"good": "Right", "bad": "Off", "undecided": "Undecided"}


def pointwise_report(
    results: Mapping[str, Sequence[PointwiseResult | PointwiseSummary]],
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
    results : mapping of str to sequence of PointwiseResult or PointwiseSummary
        By world: one result a method, or several of several seeds; summaries of one coverage.
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
    if not results or not all(results.values()):
        raise InputError("results must contain at least one result for each world, got none")
    wanted = coverage_of(_shared_coverages(results), coverage)
    worlds = [
        each
        for name, every in results.items()
        for each in _worlds(str(name), every, wanted, (names or {}).get(name))
    ]
    summaries = [summary for world in worlds for summary in world.summaries]
    methods = list(dict.fromkeys(summary.method for summary in summaries))
    on = f"{named(methods, 'method')} on {named(list(map(str, results)), 'world')}"
    return study_document(
        title=title or f"Are prediction intervals right at every x? {on}",
        headline=_headline([f for world in worlds for f in world.findings("picf")], list(results)),
        opening=_opening(worlds, wanted),
        sections=[world.section() for world in worlds],
        beside=_published_beside(summaries),
        records=tuple(record for summary in summaries for record in summary.records),
        tables=tuple(table for summary in summaries for table in summary.tables),
        curves=tuple(curve for summary in summaries for curve in _curves(summary)),
        glossary=GLOSSARY,
        facts={
            "Worlds": ", ".join(world.name for world in worlds),
            "Methods": ", ".join(methods),
            "Nominal coverage shown": formats.level(wanted),
            **(facts or {}),
        },
        command=command,
    )


def _curves(summary: PointwiseSummary) -> Iterator[Curve]:
    """Those that a result has, or of what ships those of its findings."""
    yield from summary.curves or (c for finding in summary.findings for c in finding.along)


def _shared_coverages(
    results: Mapping[str, Sequence[PointwiseResult | PointwiseSummary]],
) -> list[float]:
    """Nominal coverages that all results have."""
    levels = [
        (each.coverage,) if isinstance(each, PointwiseSummary) else each.coverages
        for every in results.values()
        for each in every
    ]
    shared = [
        c for c in levels[0] if all(min(abs(c - other) for other in own) < 1e-9 for own in levels)
    ]
    if not shared:
        raise InputError("results must share a nominal coverage, got none that all answered")
    return shared


def _published_beside(summaries: Sequence[PointwiseSummary]) -> tuple[Section, ResultTable] | None:
    """Published numbers beside ours, then which of two methods has more, there and here."""
    beside = beside_section(_own_numbers(summaries), published("pointwise"), _PUBLISHED, _WHY)
    orders = _orders(summaries)
    if beside is None or orders is None:
        return beside
    section, table = beside
    return replace(section, grids=(*section.grids, orders)), table


def _orders(summaries: Sequence[PointwiseSummary]) -> Grid | None:
    """Dropout less the bootstrap where the paper prints both; None where that was not run."""
    printed: dict[tuple[str, str, float], dict[str, float]] = {}
    for row in published("pointwise"):
        at = -1.0 if math.isnan(row.coverage) else row.coverage
        printed.setdefault((row.task, row.measure, at), {})[row.method] = row.value
    parts: dict[str, list[tuple[Cell, ...]]] = {}
    for (task, measure, at), values in printed.items():
        own = {
            str(summary.method): (record, summary)
            for summary in summaries
            for record in summary.records
            if (record.metric, record.options.get("world")) == (measure, task)
            and (at < 0 or abs(record.coverage - at) < 1e-9)
        }
        if measure not in _PUBLISHED or not {_FIRST, _SECOND} <= set(values) or _FIRST not in own:
            continue
        heading = f"{task}: {_PUBLISHED[measure]}" + (f", nominal {formats.level(at)}" * (at > 0))
        difference = values[_SECOND] - values[_FIRST]
        parts[heading] = [
            _order(label, difference, record, own[_FIRST][0], summary, own)
            for label, (record, summary) in own.items()
            if label.removesuffix(_STATED) == _SECOND
        ]
    parts = {heading: rows for heading, rows in parts.items() if rows}
    if not parts:
        return None
    grid = number_grid(
        "Dropout less the bootstrap",
        ("Here", "Published"),
        [GridRows(title=heading, rows=tuple(rows)) for heading, rows in parts.items()],
        ("± is the Monte Carlo standard error of the difference, with runs taken as independent.",),
    )
    return replace(grid, columns=(*grid.columns, Column(title="Order"), Column(title="Why")))


def _order(
    label: str,
    difference: float,
    record: Record,
    first: Record,
    summary: PointwiseSummary,
    own: Mapping[str, tuple[Record, PointwiseSummary]],
) -> tuple[Cell, ...]:
    """A method's difference from the first, and whether its sign is the published one."""
    ours = record.value - first.value
    error = math.hypot(record.standard_error, first.standard_error)
    order, why = "as published", ""
    if abs(ours) <= _APART * error:
        order = "no significant difference"
    elif ours * difference < 0:
        order = "other"
        if label.endswith(_STATED) and _SECOND in own:
            wide, narrow = (
                next(r.value for r in s.records if r.metric == "prediction_width")
                for s in (summary, own[_SECOND][1])
            )
            ratio = formats.number(wide / narrow, 2)
            why = f"as stated, intervals are {ratio} times as wide as with x kept and 240 epochs"
        elif record.metric in _OF_ONE_RUN:
            sd = error * math.sqrt(summary.trials)
            why = (
                "the paper has one run: here the difference of single runs has sd "
                f"{formats.number(sd, 2)}, and the published one is "
                f"{formats.number(abs(difference - ours) / sd, 2)} sd off the mean"
            )
    return (
        Cell(text=label),
        estimate_cell(ours, error),
        number_cell(difference),
        Cell(text=order),
        Cell(text=why),
    )


def _own_numbers(summaries: Iterable[PointwiseSummary]) -> Iterator[OwnNumber]:
    """What may be published, by the paper's names of worlds and methods."""
    for summary in summaries:
        for record in summary.records:
            if record.metric in _PUBLISHED:
                yield OwnNumber(
                    task=str(record.options["world"]),
                    method=summary.method.removesuffix(_STATED),
                    record=record,
                )


def _worlds(
    name: str,
    results: Sequence[PointwiseResult | PointwiseSummary],
    coverage: float,
    names: Sequence[str] | None,
) -> Iterator[_TestSet]:
    """The results of a world, by the test sets that they share."""
    seeds: dict[int, list[PointwiseResult | PointwiseSummary]] = {}
    for result in results:
        seeds.setdefault(result.seed, []).append(result)
    for seed, shared in seeds.items():
        first = shared[0]
        for other in shared[1:]:
            if not np.array_equal(other.y, first.y):
                raise InputError(
                    f"methods of world {name!r} must share its test set where their seed is "
                    f"one, but {first.method} and {other.method} do not"
                )
        known = names if names is not None and len(names) == first.x.shape[1] else None
        labels = distinct([result.method for result in shared])
        yield _TestSet(
            name=f"{name}, seed {seed}" if len(seeds) > 1 else name,
            coverage=coverage,
            summaries=tuple(
                result.called(label, result.world)
                if isinstance(result, PointwiseSummary)
                else PointwiseSummary.of(replace(result, method=label), coverage, known)
                for result, label in zip(shared, labels, strict=True)
            ),
        )


@final
@frozen(kw_only=True, eq=False)
class _TestSet:
    """Methods on one test set of a world, at one coverage."""

    name: str
    coverage: float
    summaries: tuple[PointwiseSummary, ...]

    def findings(self, which: Which) -> list[PointwiseFinding]:
        """Of the methods that can be judged."""
        found = (summary.picf if which == "picf" else summary.cicf for summary in self.summaries)
        return [finding for finding in found if finding is not None]

    @property
    def places(self) -> dict[str, int]:
        """The colour of each method."""
        return {summary.method: colour for colour, summary in enumerate(self.summaries)}

    def section(self) -> Section:
        """Everything that a page shows of the world."""
        first = self.summaries[0]
        grids = [
            *(_comparison(self.summaries, which) for which in _BOTH),
            _trials(self.summaries),
            _regions(self),
        ]
        lines = [
            _comparison_line(self.findings("picf")),
            *(_method_line(finding) for which in _BOTH for finding in self.findings(which)),
            *(_missing_line(summary) for summary in self.summaries if summary.picf is None),
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
            lines=tuple(filter(None, lines)),
            grids=tuple(filter(None, grids)),
            choices=(*_profiles(self), *_runs(self), *_histograms(self)),
        )


# Sentences


def _headline(findings: Sequence[PointwiseFinding], worlds: Sequence[str]) -> VerdictLine | None:
    """The main message over all prediction intervals tested; None where nothing was."""
    if not findings:
        return None
    first, alone = findings[0], len(findings) == 1
    failed = [finding for finding in findings if finding.off]
    hidden = sum(abs(finding.mean - finding.coverage) <= NEAR for finding in failed)
    nominal = percent(first.coverage)
    places = named(list(map(str, worlds)), "world")
    of = f"The {nominal} prediction intervals of {first.method}"
    near = f"average coverage, within {100 * NEAR:.0f} points of nominal, hides this."
    if not failed:
        shown = all(finding.near for finding in findings)
        text = (
            f"{of} do not cover significantly below or above nominal at any x."
            if alone
            else f"None of {len(findings)} methods tested on {places} has coverage significantly "
            f"below or above {nominal} at any x."
        )
        answer = "Yes: no problems found." if shown else "Inconclusive."
        return VerdictLine(f"{answer} {text}", "good" if shown else "undecided")
    if alone:
        text = (
            f"No. {of} under- or over-cover significantly at {percent(first.off)} of test points."
        )
        return VerdictLine(f"{text} {near[:1].upper()}{near[1:]}" if hidden else text, "bad")
    text = (
        f"No. In {len(failed)} of {len(findings)} tests on {places}, {nominal} prediction "
        "intervals under- or over-cover significantly at some x."
    )
    return VerdictLine(f"{text} In {hidden} of them {near}" if hidden else text, "bad")


def _method_line(finding: PointwiseFinding) -> VerdictLine:
    """What is to be said of the intervals of one method."""
    subject = _SUBJECT[finding.which]
    what = "a new y" if finding.which == "picf" else "the true mean"
    low, high = (percent(float(end)) for end in np.quantile(finding.value, [0.05, 0.95]))
    average = (
        f"The {percent(finding.coverage)} {subject} contain {what} with probability "
        f"{percent(finding.mean)} on average over x."
    )
    question = f"{finding.method}: {subject}"
    spread = f"between {low} and {high} at 90 % of test points"
    if not finding.off:
        text = (
            f"{average} Coverage is {spread}; it differs significantly from nominal at none of "
            f"{len(finding.value):,} ({finding.trials:,} trials)."
        )
        if not finding.near:
            text += f" At half of them it may still differ by up to {percent(finding.reach)}."
        return VerdictLine(text, finding.tone, question)
    signs = {"below": -1, "above": 1}
    shares = {words: float((finding.verdict == sign).mean()) for words, sign in signs.items()}
    off = " and ".join(f"{words} at {percent(share)}" for words, share in shares.items() if share)
    text = f"{average} It is {spread}: significantly {off} of them."
    for worst in finding.regions[:1]:
        way = "covers least" if worst.verdict < 0 else "over-covers most"
        text += f" It {way} where {worst.where} ({percent(worst.coverage)} there)."
    return VerdictLine(text, finding.tone, question)


def _missing_line(summary: PointwiseSummary) -> VerdictLine:
    """Why the intervals of one method cannot be judged at single x, and what is known of them."""
    if summary.simulated or not summary.trials:
        text = f"{summary.method} cannot be assessed: {summary.missing}."
        return VerdictLine(text, "info" if summary.trials else "bad", summary.method)
    text = (
        f"The {percent(summary.coverage)} prediction intervals contain "
        f"{percent(float(summary.picp.mean()))} of the test set's y, on average over "
        f"{summary.trials:,} training sets. Coverage at single x cannot be assessed: "
        f"{summary.missing}."
    )
    return VerdictLine(text, "info", summary.method)


def _comparison_line(findings: Sequence[PointwiseFinding]) -> VerdictLine | None:
    """Which method of a world covers closest to nominal at single x; None for fewer than two."""
    if len(findings) < 2:
        return None
    best, *others = sorted(findings, key=lambda finding: finding.score.corrected)
    second = others[0]
    listed = ", ".join(f"{other.method} {other.typical:.1f}" for other in others)
    gap = second.score.corrected - best.score.corrected
    error = math.hypot(best.score.standard_error, second.score.standard_error)
    text = (
        f"{best.method} is closest to nominal {percent(best.coverage)} coverage: at a given "
        f"x it typically differs by {best.typical:.1f} percentage points ({listed})."
    )
    question = "Which method has the best coverage at every x?"
    if not gap > _APART * error:
        text += f" Its lead over {second.method} is not significant."
        return VerdictLine(text, "undecided", question)
    return VerdictLine(text, "info", question)


# Tables


def _opening(worlds: Sequence[_TestSet], coverage: float) -> Section:
    """How every method covers, over the points of every world; empty where none can be judged."""
    every = [(world.name, f) for world in worlds for f in world.findings("picf")]
    if not every:
        return Section(title="")
    states: dict[str, dict[str, Cell]] = {}
    for name, finding in every:
        cell = replace(share_cell(finding.off), tone=finding.tone)
        states.setdefault(finding.method, {})[name] = cell
    note = "Share of test points significantly off nominal coverage."
    title = f"Points that differ from nominal {formats.level(coverage)}"
    names = [f.method if len(worlds) == 1 else f"{name}: {f.method}" for name, f in every]
    figure = spread_figure(names, [finding.value for _, finding in every], coverage)
    return Section(
        title="",
        grids=(overview(title, states, _STATES, note),),
        choices=choice_of("", [("", figure)]),
    )


def _points_off(record: Record) -> Cell:
    return share_cell(record.value)


_AT_ONCE: Final[Mapping[str, Shown]] = {"All points at once": ("cicf_simultaneous", share_of)}


def _raw(record: Record) -> Cell:
    """A raw Brier score with its Monte Carlo part."""
    noise = formats.number(record.null, 2) if math.isfinite(record.null) else ""
    return number_cell(record.value, f"MC {noise}" if noise else "")


_COMPARED: Final[Mapping[str, tuple[str, Mapping[str, Shown]]]] = {
    which: (
        title,
        {
            f"Mean {share}": mean,
            **({"Mean PICF": "picf_mean"} if which == "picf" else {}),
            "Failing points": (f"{which}_points_off", _points_off),
            "Mean width": width,
            "Brier, raw": (f"{which}_brier", _raw),
            "Brier, corrected": f"{which}_brier_corrected",
            "Bias²": f"{which}_bias_squared",
            "Variance": f"{which}_variance",
            **(_AT_ONCE if which == "cicf" else {}),
        },
    )
    for which, title, share, mean, width in (
        ("picf", "Prediction intervals", "PICP", "empirical_coverage", "prediction_width"),
        ("cicf", "Confidence intervals for the mean", "CICP", "cicp", "confidence_width"),
    )
}


def _comparison(summaries: Sequence[PointwiseSummary], which: Which) -> Grid | None:
    """Methods beside each other, one part a coverage; None where nothing is known."""
    title, shown = _COMPARED[which]
    if not any(summary.simulated for summary in summaries):  # of data that are real
        kept = ("Mean PICP", "Mean width") if which == "picf" else ()
        shown = {name: shown[name] for name in kept}
    wanted = [column if isinstance(column, str) else column[0] for column in shown.values()]
    every = [r for summary in summaries for r in summary.records if r.metric in wanted]
    return pivot(
        sorted(every, key=lambda record: record.coverage),
        title,
        columns=shown,
        notes=(
            "± is the Monte Carlo standard error over trials; that of a raw Brier score is that of "
            "the corrected one. MC: the raw score that Monte Carlo error alone would give.",
        ),
    )


def _trials(summaries: Sequence[PointwiseSummary]) -> Grid:
    """Log-likelihood, failures, and how many trials were needed."""
    rows = []
    for summary in summaries:
        failures = [f"{f.stage}: {f.error}: {f.message}" for f in summary.failures[:1]]
        likelihood = next(r for r in summary.records if r.metric == "log_likelihood")
        counts = (
            *(summary.trials, summary.trials_planned),
            *(len(summary.failures), sum(summary.warnings.values())),
        )
        rows.append(
            (
                Cell(text=summary.method, small="".join(failures)),
                record_cell(likelihood),
                *(Cell(text=f"{count:,}", key=str(count)) for count in counts),
                Cell(text=summary.stop),
            )
        )
    titles = ("Log-likelihood", "Trials", "At most", "Failed", "Warnings")
    grid = number_grid("Trials", titles, rows)
    return replace(grid, columns=(*grid.columns, Column(title="Why they ended")))


def _regions(world: _TestSet) -> Grid | None:
    """Where each method fails; None where none does."""
    parts, notes = [], []
    for which in _BOTH:
        rows = []
        for finding in world.findings(which):
            notes.append(finding.note)
            rows += [
                (
                    Cell(text=region.where),
                    Cell(text=finding.method),
                    Cell(text="under-covers" if region.verdict < 0 else "over-covers"),
                    share_cell(region.coverage),
                    Cell(text=f"{region.points:,}", key=str(region.points)),
                )
                for region in finding.regions[:_MOST_REGIONS]
            ]
        if rows:
            parts.append(GridRows(title=_COMPARED[which][0], rows=tuple(rows)))
    if not parts:
        return None
    at = formats.level(world.coverage)
    return number_grid(
        f"Where coverage differs significantly from nominal {at}",
        ("Mean coverage there", "Test points"),
        parts,
        notes,
        words=("Where", "Method", "Verdict"),
    )


# Figures


def _profiles(world: _TestSet) -> Iterator[Choice]:
    """Coverage along x: its only column, or the one chosen, or the first principal component."""
    shown = _directions(world.findings("picf"))
    for which in _BOTH if world.findings("picf") else ():
        findings = world.findings(which)
        options = []
        for title, notes in shown.items():
            made = [curve for f in findings for curve in f.along if _way(curve) == title]
            name = title or (world.summaries[0].names or default_names(1))[0]
            if made:
                why = (*notes, *dict.fromkeys(curve.notes for curve in made if curve.notes))
                options.append((title, _profile(world, which, made, name, why)))
        yield from choice_of("Along", options)


def _way(curve: Curve) -> str:
    """What a curve is along; nothing where that is the only column of x."""
    return curve.group if curve.name.endswith("_local") else ""


def _directions(findings: Sequence[PointwiseFinding]) -> dict[str, tuple[str, ...]]:
    """Columns by how much coverage differs along them, then the first component; with notes."""
    spreads = [finding.spreads for finding in findings if finding.spreads is not None]
    if not spreads:
        return {"": ()}
    whole = np.sum(spreads, axis=0)
    live = np.flatnonzero(np.isfinite(whole))
    titles = [_way(curve) for curve in findings[0].along]
    ranked = sorted(range(len(live)), key=lambda place: -whole[live[place]])[:_MOST_COLUMNS]
    note = f"Shown: {len(ranked)} of {len(live)} columns, those along which coverage differs most."
    notes = (note,) if len(ranked) < len(live) else ()
    return {**{titles[place]: notes for place in ranked}, COMPONENT: ()}


def _profile(
    world: _TestSet, which: Which, made: Sequence[Curve], title: str, notes: tuple[str, ...]
) -> Figure:
    whole = "prediction intervals" if which == "picf" else "confidence intervals for the mean"
    words = FigureWords(
        name=f"{which}_profile",
        question=f"Where along {title} do {whole} under- or over-cover?",
        title=f"Coverage of {whole} along {title}",
        reading=(
            "Correct intervals follow the dashed line. They under-cover significantly where a "
            "band is below it, and over-cover where it is above."
        ),
        x=title,
        notes=notes,
    )
    return coverage_profile(made, world.coverage, words, places=world.places)


def _runs(world: _TestSet) -> tuple[Choice, ...]:
    """The intervals of the first trial over the truth, one method at a time."""
    options = []
    for summary in world.summaries:
        run = summary.run
        if run is None or summary.picf is None:
            continue
        alone = summary.x.shape[1] == 1
        words = FigureWords(
            name="one_run",
            question=f"What do the intervals of one trial look like? ({summary.method})",
            title=f"{formats.level(world.coverage)} intervals from one training set",
            reading=(
                "Shaded: the intervals. Dashed: the true mean; dotted: the true interval."
                if alone
                else "Each interval belongs to one test point, at its true mean: the dashed line."
            ),
            x=(summary.names or default_names(1))[0] if alone else "",
        )
        draw = intervals_along_x if alone else intervals_over_truth
        options.append((summary.method, draw(run, words, colour=world.places[summary.method])))
    return choice_of("Method", options)


_POINTS: Final = (
    "Correct intervals are close to the line, apart from Monte Carlo error. A wide spread shows "
    "that coverage varies with x."
)
_SPREADS: Final[Mapping[str, tuple[str, str, str]]] = {
    "PICF": ("points", "Is coverage the same at every x?", _POINTS),
    "CICF": ("points", "Do confidence intervals cover the mean at every x?", _POINTS),
    "PICP": (
        "trials",
        "What would a single test set show?",
        "Even correct intervals vary here. An average at the line can hide coverage that "
        "varies with x.",
    ),
    "CICP": (
        "trials",
        "What would a single test set show about confidence intervals?",
        "Errors at neighbouring x are correlated. Even correct intervals cover the mean at most "
        "points in some trials and at few in others.",
    ),
}
"""By measure: over what it is spread, the question, and how to read it."""


def _histograms(world: _TestSet) -> tuple[Choice, ...]:
    """Coverage over test points, and over trials, for new y and for the mean."""
    coverage = world.coverage
    shares: dict[str, dict[str, FloatArray]] = {
        **{which.upper(): {f.method: f.value for f in world.findings(which)} for which in _BOTH},
        "PICP": {summary.method: summary.picp for summary in world.summaries if summary.trials},
        "CICP": {s.method: s.cicp for s in world.summaries if s.cicp is not None},
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
            "intervals of one trial contain. One number per trial, averaged over x."
        ),
        formula="PICP_s = mean_i 1{l_si ≤ y_i ≤ u_si}",
        source="Sluijterman, Cator and Heskes, arXiv 2106.03395, definition 5",
    ),
    GlossaryEntry(
        name="picf",
        title="PICF",
        meaning=(
            "Prediction interval coverage fraction: the probability that the interval at x "
            "contains a new y there, over training sets. One number per test point."
        ),
        formula="PICF(x) = mean_s P(l_s(x) ≤ Y ≤ u_s(x)), exact from the world's distribution of Y",
        source="the same, equation 6",
    ),
    GlossaryEntry(
        name="cicp",
        title="CICP",
        meaning=(
            "Share of the test points whose true mean the confidence intervals of one trial "
            "contain. Errors at neighbouring x are correlated, so single trials are far from "
            "nominal even for correct intervals."
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
        name="cicf_simultaneous",
        title="All points at once",
        meaning=(
            "Share of the trials whose confidence intervals contain the true mean at every test "
            "point. Intervals for single x are not simultaneous, so it is below nominal."
        ),
        source="the same, footnote 1",
        direction="descriptive",
    ),
    GlossaryEntry(
        name="brier",
        title="Brier score of coverage",
        meaning=(
            "Squared distance of coverage at single x from nominal, averaged; 0 is perfect. The "
            "raw score includes Monte Carlo error, shown beside it; the corrected one does not, "
            "and may be negative. Bias² is the error of average coverage; variance is the "
            "variation over x. The root of the score is the typical distance."
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
