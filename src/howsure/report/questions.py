"""An assessment as a document: the answer first, then one section a question."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from typing import TYPE_CHECKING, final

import numpy as np

from howsure.core import formats
from howsure.core.classes import frozen
from howsure.core.errors import attempt, collected
from howsure.core.records import Curve, Record, ResultTable
from howsure.core.text import abridged, headed
from howsure.engine.catalogue import every_topic
from howsure.engine.metric import Topic
from howsure.figures.layouts import layout_of, table_layouts
from howsure.report import grids
from howsure.report.document import (
    ANSWER,
    OVERVIEW,
    STEP,
    TONES,
    Cell,
    Choice,
    Column,
    Document,
    GlossaryEntry,
    Grid,
    Option,
    Section,
    VerdictLine,
    glossary,
    noted,
)
from howsure.report.images import Gallery, galleries
from howsure.verdict import Advice, Finding, TrustAnswer
from howsure.verdict.findings import questions

if TYPE_CHECKING:
    from howsure.figures import Figure

# Five columns of states fit into 80 characters, three with sizes.
MAX_COLUMNS = 5
"""The most models that stand side by side on the first screen."""
# Three columns with sizes, as five without, fit into 80 characters.
MAX_SIZED = 3
"""The most of them beside whose states sizes stand."""
# What a reader keeps in mind; all are below.
MAX_FAULTS = 3
"""The most faults of a model that the first screen tells."""
_CALIBRATION = {
    "class_reliability": "Probabilities",
    "interval_calibration": "Intervals",
    "calibration": "Quantiles",
    "pit_histogram": "PIT histogram",
    "pit_ecdf": "PIT ECDF",
}
"""Figures of calibration, in the order of their switch, and what it calls them."""
_WHAT = {
    "spread": "error size",
    "width": "error size",
    "trade": "gain",
    "skill": "skill",
    "dependence": "variance",
}
"""What a ratio of a finding is of, for its size."""
_TOLD = ("bad", "caution", "negligible")
"""States whose size is told beside their mark."""


@final
@frozen(kw_only=True)
class _PagePart:
    """What stands in one section."""

    label: str  # as in `Section`
    # its title; that of its only finding, or of its first figure, where it is empty
    title: str = ""
    ids: tuple[str, ...] = ()  # ids of findings
    # names; a sentence, a figure or a table without a section stands under the last
    figures: tuple[str, ...] = ()
    tables: tuple[str, ...] = ()
    # as in `Section`; one without a title of its own is folded too where no sentence answers
    folded: bool = False

    @property
    def answers(self) -> tuple[str, ...]:
        """What its sentences tell of: findings, figures and tables."""
        return (*self.ids, *self.figures, *self.tables)

    def with_topic(self, topic: Topic) -> _PagePart:
        """With what a topic has in this section."""
        layouts = {
            name: layout
            for name, layout in topic.layouts.items()
            if (layout.section or topic.label) == self.label
        }
        ids = (
            finding.id
            for finding in topic.findings
            if (finding.section or topic.label) == self.label
        )
        tables = tuple(topic.titles) if topic.label == self.label else ()
        drawn = dict.fromkeys((*self.figures, *layouts, *tables))
        return replace(
            self,
            ids=(*self.ids, *ids),
            figures=tuple(drawn),
            tables=(*self.tables, *tables),
        )


_PAGE = (
    _PagePart(
        label="Models",
        ids=("comparison",),
        figures=("models",),
        tables=("relative_skill", "models", OVERVIEW),
    ),
    _PagePart(label="Coverage", figures=("intervals",)),
    _PagePart(label="Distribution", title="Is the predictive distribution correct?"),
    _PagePart(label="Groups", figures=("groups",), tables=("groups",)),
    _PagePart(label="Inputs", ids=("outside",)),
    _PagePart(label="Ease"),
    _PagePart(label="Rows", title="Rows in detail", ids=("rows",), tables=("outside", "monitor")),
    _PagePart(label="Widths"),
    _PagePart(label="Time", ids=("dependence",)),
    _PagePart(label="Lead time"),
    _PagePart(label="Series", title="Is each series predicted well?"),
    _PagePart(label="Rejection"),
    _PagePart(label="Tried", title="Recalibration methods tried", tables=("mends",), folded=True),
    _PagePart(label="Worst", title="The worst rows", tables=("worst_rows",), folded=True),
    _PagePart(label="Others", title="Other results", folded=True),
)
"""Sections in their order, with what belongs to no topic."""
_UNLISTED = ("files", "not_judged")
"""Tables of the report that stand elsewhere: what is silent."""


@cache
def _sections_of_topics() -> tuple[_PagePart, ...]:
    """What stands in each section; sections that topics add stand before what is folded."""
    section_of = {section.label: section for section in _PAGE if not section.folded}
    for topic in every_topic():
        sections = [topic.label, *(question.section for question in topic.findings)]
        sections += [layout.section for layout in topic.layouts.values()]
        for label in filter(None, dict.fromkeys(sections)):
            new = _PagePart(label=label, title=topic.title if label == topic.label else "")
            section_of[label] = section_of.get(label, new).with_topic(topic)
    return (*section_of.values(), *(section for section in _PAGE if section.folded))


def document_of(
    *,
    title: str,
    answer: TrustAnswer | None = None,
    lines: Sequence[VerdictLine] = (),
    findings: Sequence[Finding] = (),
    advice: Advice | None = None,
    records: Sequence[Record] = (),
    curves: Sequence[Curve] = (),
    tables: Sequence[ResultTable] = (),
    facts: Mapping[str, str] | None = None,
    command: str = "",
    drawn: bool = True,
) -> Document:
    """Everything that was assessed, in the order in which a reader asks.

    What is not `drawn` has no figures.
    """
    entries = glossary(records)
    short = _shortener(findings, records)
    models = {table.model for table in tables} - {""}
    shown_tables = [replace(t, model="") for t in tables] if len(models) < 2 else tables
    with collected() as faults:
        figures = _figures(curves, tables) if drawn else []
        first = _first_figure(figures)
        shown = [f for f in figures if not first or all(f not in o.figures for o in first.options)]
        pictures: list[Gallery] = attempt("images", partial(galleries, tables), lambda _: [])
        sections = [
            *_sections(lines, shown, shown_tables, pictures),
            *_numbers(records, entries, tables),
        ]
    states = state_grid(findings, tables, {section.label: section.anchor for section in sections})
    return Document(
        title=title,
        opening=Section(
            title="Verdict",
            lines=short(_first_lines(lines, answer)),
            choices=() if first is None else (first,),
            grids=() if states is None else (states,),
        ),
        sections=tuple(replace(section, lines=short(section.lines)) for section in sections),
        lines=short(lines),
        answer=answer,
        findings=tuple(findings),
        advice=advice,
        records=tuple(records),
        curves=tuple(curves),
        tables=tuple(tables),
        facts=noted(facts or {}, faults),
        glossary=entries,
        command=command,
    )


def _figures(curves: Sequence[Curve], tables: Sequence[ResultTable]) -> list[Figure]:
    from howsure.figures import figures_of  # slow to load

    return list(figures_of(curves, tables))


def _shortener(
    findings: Sequence[Finding], records: Sequence[Record]
) -> Callable[[Iterable[VerdictLine]], tuple[VerdictLine, ...]]:
    """What cuts long names of models, groups and columns, so that a screen has room for all."""
    names = {name for finding in findings for name in (finding.model, finding.where)}
    names |= {name for record in records for name in (record.model, record.group)}
    cut = abridged(names)
    longest = sorted(cut, key=len, reverse=True)

    def shortened(text: str) -> str:
        for name in longest:
            text = text.replace(name, cut[name])
        return text

    return lambda lines: tuple(
        replace(line, text=shortened(line.text), model=shortened(line.model)) for line in lines
    )


def _first_lines(
    lines: Sequence[VerdictLine], answer: TrustAnswer | None
) -> tuple[VerdictLine, ...]:
    """The answer, the costliest faults, and the next step.

    Of several models the answer alone tells what is wrong with the best, and leaves no room.
    """
    first = [line for line in lines if line.about == ANSWER] or list(lines[:1])
    worst = [line for line in lines if line.tone == "bad" and line not in first][:MAX_FAULTS]
    if answer is not None and answer.model:
        worst = []
    return (*first, *worst, *[line for line in lines if line.about == STEP][:1])


def _first_figure(figures: Sequence[Figure]) -> Choice | None:
    """Calibration, one form of it at a time; else coverage by group, intervals, or a map."""
    named = [(label, f) for name, label in _CALIBRATION.items() for f in figures if f.name == name]
    if named:
        options = tuple(Option(label=label, figures=(figure,)) for label, figure in named)
        return Choice(label="Calibration of", options=options)
    for name in ("groups", "intervals", "cce_map"):
        alike = [figure for figure in figures if figure.name == name]
        if alike:
            return _choice(alike)
    return None


def _choice(alike: Sequence[Figure]) -> Choice:
    """Figures of one name: one at a time, where there are several."""
    cut = abridged(figure.label for figure in alike)
    options = (
        Option(label=cut.get(figure.label, figure.label), figures=(figure,)) for figure in alike
    )
    return Choice(label="Model", options=tuple(options))


def state_grid(
    findings: Sequence[Finding], tables: Sequence[ResultTable], anchors: Mapping[str, str]
) -> Grid | None:
    """Questions by models: the state of each finding, and its size where it is a fault."""
    by_model: dict[str, dict[str, Finding]] = {}
    for finding in findings:
        if finding.id != "comparison":
            by_model.setdefault(finding.model, {})[finding.id] = finding
    ranked = next((table for table in tables if table.name == OVERVIEW), None)
    order = [] if ranked is None else [str(name) for name in ranked.columns["model"]]
    models = [name for name in order if name in by_model] + [m for m in by_model if m not in order]
    if not models:
        return None
    shown = models[:MAX_COLUMNS]
    rows = [] if ranked is None else _scores(ranked, shown, anchors.get("Models", ""))
    parts = _sections_of_topics()
    question_of = {finding.id: finding.question for finding in findings}
    order_of_questions = [name for name in question_of if name not in questions()]
    order_of_questions += [name for name in questions() if name in question_of]
    for name in order_of_questions:
        if name == "comparison" or not any(name in by_model[model] for model in shown):
            continue
        label_of_section = next(
            (page_part.label for page_part in parts if name in page_part.ids), ""
        )
        label = questions()[name].label if name in questions() else headed(name)
        sized = len(shown) <= MAX_SIZED
        cells = [_state(by_model[model].get(name), sized=sized) for model in shown]
        rows.append((Cell(label, link=anchors.get(label_of_section, "")), *cells))
    states = [by_model[model][name].state for model in shown for name in by_model[model]]
    marks = [" ".join(TONES[tone]) for tone in TONES if tone in states]
    notes = ["  ".join(marks)]
    if len(order or models) > len(shown):
        notes.insert(0, f"The first {len(shown)} of {len(order or models):,} models.")
    titles = shown if len(models) > 1 else ["Finding"]
    cut = abridged(titles)
    columns = (Column("Question"), *(Column(cut.get(t, t)) for t in titles))
    return Grid.of("", columns, rows, notes)


def _state(finding: Finding | None, *, sized: bool) -> Cell:
    if finding is None:
        return Cell("")
    size = _size(finding) if sized and finding.state in _TOLD else ""
    return Cell("", small=size, tone=finding.state)


def _size(finding: Finding) -> str:
    """A departure, short: points of coverage, or percent."""
    question = questions().get(finding.id)
    if not np.isfinite(finding.effect) or (question and not question.measured):
        return ""
    if question and question.times:
        return f"{formats.fixed(1.0 + finding.effect, 1)} × {question.times}"
    what = _WHAT.get(finding.id, "")
    if finding.unit == "ratio − 1" and finding.effect > 1.0:
        return f"{formats.number(1.0 + finding.effect, 2)} × {what}".strip()
    places = 0 if abs(finding.effect) >= 0.1 else 1
    number = formats.fixed(100.0 * finding.effect, places, plus=True)
    if finding.unit == "share":
        return f"{number} points"
    if finding.unit == "mean error":
        return f"{number} % of the mean error"
    return f"{number} % {what}".strip() if finding.unit == "ratio − 1" else ""


def _scores(ranked: ResultTable, models: Sequence[str], link: str) -> list[tuple[Cell, ...]]:
    """The mean score of each model, and whether it is in the best set."""
    if "score" not in ranked.columns:
        return []
    places = {str(name): row for row, name in enumerate(ranked.columns["model"])}
    values = [grids.number_cell(float(ranked.columns["score"][places[m]])) for m in models]
    best = [Cell(str(ranked.columns["best_set"][places[m]])) for m in models]
    score = Cell(ranked.labels.get("score", "Score"), link=link)
    return [(score, *values), (Cell("In the best set", link=link), *best)]


def _sections(
    lines: Sequence[VerdictLine],
    figures: Sequence[Figure],
    tables: Sequence[ResultTable],
    pictures: Sequence[Gallery],
) -> Iterator[Section]:
    by_name: dict[str, list[Figure]] = {}
    for figure in figures:
        by_name.setdefault(figure.name, []).append(figure)
    parts = _sections_of_topics()
    drawn = {name for page_part in parts for name in page_part.figures}
    unlisted = {*_UNLISTED, *(name for name, shown in table_layouts().items() if not shown.listed)}
    titled = {name for topic in every_topic() for name in topic.titles}
    listed = {name for page_part in parts for name in page_part.tables} | unlisted
    answered = {name for page_part in parts for name in page_part.answers}
    answered |= {ANSWER, STEP}
    appeared = list(dict.fromkeys(table.name for table in tables))
    for page_part in parts:
        section_lines = [line for line in lines if line.about in page_part.answers]
        names = page_part.figures
        shown = [name for name in page_part.tables if name in appeared and name not in unlisted]
        shown.sort(key=lambda name: appeared.index(name) if name in titled else -1)
        section_tables = [table for name in shown for table in tables if table.name == name]
        if page_part is parts[-1]:
            names = tuple(name for name in by_name if name not in drawn)
            section_tables = [table for table in tables if table.name not in listed]
            section_lines = [line for line in lines if line.about not in answered]
        names = tuple(name for name in names if name in by_name)
        choices = tuple(_choice(by_name[name]) for name in names)
        section_grids = tuple(_grids(section_tables))
        section_galleries = tuple(pictures) if page_part.label == "Inputs" else ()
        if not (section_lines or choices or section_grids or section_galleries):
            continue
        section_lines.sort(key=lambda line: line.tone not in _TOLD)
        models = list(dict.fromkeys(line.model for line in section_lines))
        section_lines.sort(key=lambda line: models.index(line.model))
        yield Section(
            title=page_part.title
            or _title(section_lines, choices, (*section_grids, *section_galleries)),
            label=page_part.label,
            lines=tuple(section_lines),
            choices=choices,
            grids=section_grids,
            galleries=section_galleries,
            folded=page_part.folded or not (section_lines or page_part.title),
            opened=int(not (names and section_lines and layout_of(names[0]).folded)),
        )


def _title(
    lines: Sequence[VerdictLine], choices: Sequence[Choice], below: Sequence[Grid | Gallery]
) -> str:
    """The question of the first finding, else that of the first figure, else a title below."""
    if lines:
        positions = {name: position for position, name in enumerate(questions())}
        return min(lines, key=lambda line: positions.get(line.about, -1)).question
    if choices:
        return choices[0].options[0].figures[0].question
    return below[0].title


def _grids(tables: Sequence[ResultTable]) -> list[Grid]:
    """Tables as a reader sees them; groups of all models are one."""
    groups = [table for table in tables if table.name == "groups" and len(table)]
    plain_tables = [table for table in tables if table.name != "groups"]
    return [*([grids.groups_beside(groups)] if groups else []), *grids.table_grids(plain_tables)]


def _numbers(
    records: Sequence[Record], entries: Sequence[GlossaryEntry], tables: Sequence[ResultTable]
) -> Iterator[Section]:
    """Every number, and what has none."""
    numbers = (grids.record_grid(records, entries), grids.group_grid(records, entries))
    shown = tuple(grid for grid in numbers if grid is not None)
    if shown:
        yield Section(title="All numbers", label="Numbers", grids=shown, folded=True)
    silent = tuple(grids.silent_grids(records, entries, tables))
    if silent:
        yield Section(title="Not judged, and why", label="Silent", grids=silent, folded=True)
