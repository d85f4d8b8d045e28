"""The one description of a report: what it says, shows and rests on, whatever its form."""

from __future__ import annotations

import itertools
import math
import operator
import os
import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, field, fields, replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal, Self, final

import numpy as np

from howsure.core.arrays import AnyArray
from howsure.core.classes import frozen
from howsure.core.convert import plain
from howsure.core.errors import InputError
from howsure.core.files import atomic_write
from howsure.core.records import Curve, Record, ResultTable
from howsure.core.text import headed
from howsure.engine.catalogue import catalogue

if TYPE_CHECKING:
    from howsure.engine.finding import Standing
    from howsure.figures import Figure
    from howsure.report.images import Gallery
    from howsure.verdict import Advice, Finding, TrustAnswer

Tone = Literal["good", "caution", "bad", "negligible", "undecided", "info"]

TONES: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "good": ("✓", "good"),
        "bad": ("✗", "fault"),
        "caution": ("○", "possible problem"),
        "negligible": ("≈", "negligible"),
        "undecided": ("?", "inconclusive"),
        "info": ("→", "note"),
    }
)
"""The mark of each tone, and its name."""


@frozen
class VerdictLine:
    """One sentence of the verdict.

    Examples
    --------
    >>> VerdictLine(text="The 90 % intervals cover 83.1 %.", tone="bad").tone
    'bad'
    """

    text: str  # the sentence, without the name of its model
    # {"good", "caution", "bad", "negligible", "undecided", "info"}: the state of a finding (see
    # `howsure.topics.Finding`), or `info`
    tone: Tone = "info"
    question: str = ""  # the question that it answers, in a few words; may be empty
    command: str = ""  # what does what it advises; may be empty
    model: str = ""  # whose sentence it is, of several models
    about: str = ""  # the id of the finding, or the name of the curve or table, that it tells of

    @property
    def in_full(self) -> str:
        """The sentence after the name of its model."""
        return f"{self.model}: {self.text}" if self.model else self.text


def by_model(lines: Iterable[VerdictLine]) -> Iterator[tuple[str, list[VerdictLine]]]:
    """Neighbouring lines of a model, which need not say its name each time."""
    every_line = list(lines)
    parts = [
        (model, list(of_model)) for model, of_model in itertools.groupby(every_line, _model_of)
    ]
    if all(len(of_model) == 1 for model, of_model in parts if model):  # then none says it twice
        yield "", every_line
        return
    for model, of_model in parts:
        yield model, [replace(line, model="") for line in of_model]


_model_of = operator.attrgetter("model")


ANSWER = "answer"
"""What the first lines are about."""
STEP = "What would help?"
"""The question that the next step answers."""


@frozen(kw_only=True)
class GlossaryEntry:
    """What one measure is.

    Examples
    --------
    >>> GlossaryEntry(name="mae", title="Mean absolute error").name
    'mae'
    """

    name: str  # its name in the catalogue, as in `Record.metric`
    title: str = ""  # its name in words
    meaning: str = ""  # what it tells, in a sentence or two
    # how it is computed, and where that is defined
    formula: str = ""
    source: str = ""
    # as in `Record`
    direction: str = ""
    notion: str = ""
    units: str = ""
    # the question under which the report lists its records; by notion where empty
    question: str = ""


def slug(kind: str, name: str) -> str:
    """A safe anchor for a section or a measure."""
    return f"{kind}-{re.sub(r'[^a-z0-9]+', '-', name.lower()).strip('-')}"


def noted(facts: Mapping[str, str], notes: Sequence[str]) -> Mapping[str, str]:
    """Facts with further notes under their one heading."""
    all_notes = "; ".join(dict.fromkeys([*filter(None, [facts.get(_NOTES, "")]), *notes]))
    return {**facts, _NOTES: all_notes} if all_notes else facts


_NOTES = "Notes"


BETWEEN = " · "
"""What stands between remarks of a cell."""


@final
@frozen
class Cell:
    """One cell: what it shows, what it sorts by, what stands small beside it, where it leads.

    A cell with a tone shows that tone's mark before its text. Where several things stand small
    beside it, `remarks` holds each by its name.
    """

    text: str
    _: KW_ONLY
    key: str = ""
    small: str = ""
    link: str = ""
    tone: Tone | None = None
    remarks: tuple[tuple[str, str], ...] = ()

    def remarked(self, remarks: Iterable[tuple[str, str]], after: str = "") -> Cell:
        """The same cell with these remarks, and what follows them."""
        remaining = tuple(remarks)
        small_text = f"{BETWEEN.join(text for _, text in remaining)} {after}".strip()
        return replace(self, small=small_text, remarks=remaining)


@final
@frozen
class Column:
    """One column: its title and whether it holds numbers."""

    title: str
    numeric: bool = False


@final
@frozen
class GridRows:
    """Rows that belong together; they are sorted among themselves."""

    rows: tuple[tuple[Cell, ...], ...]
    title: str = ""


@final
@frozen(kw_only=True)
class Grid:
    """A table as a reader sees it, in one part or several with a heading each."""

    title: str
    columns: tuple[Column, ...]
    parts: tuple[GridRows, ...]
    notes: tuple[str, ...] = ()
    footnotes: tuple[str, ...] = ()  # what several cells would say, each after its mark
    name: str = ""  # its title without a model, where it has one

    @classmethod
    def of(
        cls,
        title: str,
        columns: Iterable[Column],
        rows: Iterable[tuple[Cell, ...]],
        notes: Iterable[str] = (),
    ) -> Self:
        """In one part."""
        parts = (GridRows(tuple(rows)),)
        return cls(title=title, columns=tuple(columns), parts=parts, notes=tuple(notes))

    @property
    def size(self) -> int:
        """How many rows it has."""
        return sum(len(block.rows) for block in self.parts)

    @property
    def one_state_each(self) -> bool:
        """Whether each row is a question and its state, as of one model."""
        rows = [row for block in self.parts for row in block.rows]
        return bool(rows) and all(len(row) == 2 and row[1].tone and not row[1].text for row in rows)


@final
@frozen(kw_only=True, eq=False)
class Option:
    """Figures that are shown together when a reader chooses them."""

    label: str
    figures: tuple[Figure, ...]


@final
@frozen(kw_only=True, eq=False)
class Choice:
    """Figures in one place; of several options the reader chooses one, the first is shown."""

    label: str  # what is chosen, such as `Column of x`
    options: tuple[Option, ...]  # at least one


@final
@frozen(kw_only=True, eq=False)
class Section:
    """One question of a report: sentences that answer it, then figures and tables.

    A page shows the sentences and the first choice of figures (or the first table where there is
    none), and folds what follows.
    """

    title: str  # the question, or what the section holds
    # it in a word, for links, and unique in the document; the title where it is empty
    label: str = ""
    lines: tuple[VerdictLine, ...] = ()  # sentences, the most important first
    choices: tuple[Choice, ...] = ()  # figures
    grids: tuple[Grid, ...] = ()  # tables
    galleries: tuple[Gallery, ...] = ()  # pictures
    facts: Mapping[str, str] = field(default_factory=dict)  # what is known of it
    folded: bool = False  # whether a page shows nothing of it but the title
    opened: int = 1  # how many choices of figures a page shows; the others are folded

    @property
    def anchor(self) -> str:
        """Its name in the address of a page."""
        return slug("section", self.label or self.title)


CARD = ".card.md"
_ENDINGS = (".html", ".md", ".json", ".csv", CARD)


def form_of(path: str | os.PathLike[str]) -> str:
    """The ending of a file that a report may be written to; a card may be named by it alone."""
    ending = Path(path).suffix.lower()
    if f".{Path(path).name.lower()}".endswith(CARD):
        return CARD
    if ending not in _ENDINGS:
        raise InputError(f"path must end in {', '.join(_ENDINGS)}, got {os.fspath(path)!r}")
    return ending


class Formed(ABC):
    """A report that can be written in every form."""

    __slots__ = ()

    @abstractmethod
    def document(self) -> Document:
        """The report that every form is made of."""

    def to_html(self) -> str:
        """One self-contained page that works offline."""
        from howsure.report.page.render import render

        return render(self.document())

    def to_markdown(self) -> str:
        """Sentences and tables as Markdown."""
        from howsure.report.plain import to_markdown

        return to_markdown(self.document())

    def to_json(self) -> str:
        """Every record, curve and table as JSON."""
        from howsure.report.plain import to_json

        return to_json(self.document())

    def to_csv(self) -> str:
        """Every record as a line of CSV."""
        from howsure.report.plain import to_csv

        return to_csv(self.document())

    def to_card(self) -> str:
        """A model card: Markdown with the key numbers as metadata that Hugging Face reads."""
        from howsure.report.plain import to_card

        return to_card(self.document())

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the form that the ending names, whole or not at all.

        Endings are .html, .md, .json, .csv, and .card.md of a model card.
        """
        makers = (self.to_html, self.to_markdown, self.to_json, self.to_csv, self.to_card)
        atomic_write(path, dict(zip(_ENDINGS, makers, strict=True))[form_of(path)]())


@final
@frozen(kw_only=True, eq=False)
class Document(Formed):
    """A report, whatever its form: every page, Markdown, JSON and CSV is made of one.

    Examples
    --------
    >>> Document(title="A table", opening=Section(title="")).to_markdown()
    '# A table\\n'
    """

    title: str  # what was studied
    # the first screen: headline, next step, states, one figure. Its title is not shown.
    opening: Section
    sections: tuple[Section, ...] = ()  # one a question, world or task
    # every sentence, the most important first; those of the opening and the sections if omitted
    lines: tuple[VerdictLine, ...] = ()
    answer: TrustAnswer | None = None  # the first of them, as data
    findings: tuple[Finding, ...] = ()  # what the sentences say, as data
    advice: Advice | None = None  # the next step, as data
    # every number, curve and small table, for the forms that programs read
    records: tuple[Record, ...] = ()
    curves: tuple[Curve, ...] = ()
    tables: tuple[ResultTable, ...] = ()
    # what else is known: rows, file, version, seed
    facts: Mapping[str, str] = field(default_factory=dict)
    glossary: tuple[GlossaryEntry, ...] = ()  # what the numbers are
    command: str = ""  # what makes this report again

    def __post_init__(self) -> None:
        if not self.lines:
            every_line = [
                *self.opening.lines,
                *(line for section in self.sections for line in section.lines),
            ]
            object.__setattr__(self, "lines", tuple(every_line))

    @property
    def headline(self) -> VerdictLine | None:
        """The main message; None where nothing could be judged."""
        return next(iter(self.opening.lines), None)

    def document(self) -> Document:
        """Itself: the report that every form is made of."""
        return self


# ---- what each number on a page is, from the catalogue -------------------------------------------


def glossary(records: Iterable[Record]) -> tuple[GlossaryEntry, ...]:
    """Entries for the metrics that have a number, in the catalogue's order."""
    named = {record.metric for record in records if not math.isnan(record.value)}
    names = [field.name for field in fields(GlossaryEntry)]
    return tuple(
        GlossaryEntry(**{name: plain(getattr(metric, name)) for name in names})
        for metric in catalogue().values()
        if metric.name in named
    )


# ---- several models at a glance: models by questions, and which of them are best -----------------

OVERVIEW = "overview"
"""The name of the table."""
LEGEND = "  ".join(" ".join(words) for tone, words in TONES.items() if tone != "info")


def overview(states: Mapping[str, Mapping[str, str]], ranked: Standing | None) -> ResultTable:
    """Models by questions: the state of each finding, the score, and whether any model is better.

    The models of the lowest score come first.
    """
    from howsure.verdict.findings import questions

    scored = () if ranked is None else ranked.models
    names = [*scored, *(name for name in states if name not in scored)]
    columns: dict[str, AnyArray] = {"model": np.array(names, dtype=object)}
    labels, notes = {}, "The models have no score in common."
    if ranked is not None:
        unscored = len(names) - len(scored)
        best = [*np.where(ranked.best, "yes", "no"), *([""] * unscored)]
        columns["best_set"] = np.array(best, dtype=object)
        scores = {"score": ranked.values, "lower": ranked.lower, "upper": ranked.upper}
        columns |= {
            name: np.append(values, np.full(unscored, np.nan)) for name, values in scores.items()
        }
        labels = {"score": headed(ranked.score.title), "best_set": "In the best set"}
        how = f" ({ranked.score.how})" if ranked.score.how else ""
        out = "".join(f" {name} is not compared: {why}." for name, why in ranked.left_out.items())
        notes = (
            f"Ordered by {ranked.score.title}{how}. Models in the best set are not "
            f"significantly worse than any other (all pairs tested jointly at 5 %).{out}"
        )
    for question in questions():
        if any(question in state for state in states.values()):
            marks = [states[name].get(question, "") for name in names]
            columns[question] = np.array(marks, dtype=object)
    return ResultTable(name=OVERVIEW, columns=columns, labels=labels, notes=notes)
