"""What a report is drawn from: a verdict, records, curves, tables and a glossary."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal

from howsure.core.brief import brief_repr
from howsure.core.records import Curve, Record, Table
from howsure.verdict import Advice, Finding

Tone = Literal["good", "watch", "bad", "negligible", "undecided", "info"]

TONES: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "good": ("✓", "holds"),
        "bad": ("✗", "fails"),
        "watch": ("○", "watch"),
        "negligible": ("≈", "negligible"),
        "undecided": ("?", "undecided"),
        "info": ("→", "note"),
    }
)
"""The mark of each tone, and its name."""


@dataclass(frozen=True, slots=True)
class VerdictLine:
    """One sentence of the verdict.

    Attributes
    ----------
    text : str
        The sentence.
    tone : {"good", "watch", "bad", "negligible", "undecided", "info"}
        The state of a finding (see `howsure.verdict.Finding`), or ``info``.
    question : str
        The question that it answers, in a few words; may be empty.
    command : str
        What does what it advises; may be empty.

    Examples
    --------
    >>> VerdictLine(text="The 90 % intervals cover 83.1 %.", tone="bad").tone
    'bad'
    """

    text: str
    tone: Tone = "info"
    question: str = ""
    command: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class GlossaryEntry:
    """What one measure is.

    Attributes
    ----------
    name : str
        Its name in the catalogue, as in `Record.metric`.
    title : str
        Its name in words.
    meaning : str
        What it tells, in a sentence or two.
    formula, source : str
        How it is computed, and where that is defined.
    direction, notion, units : str
        As in `Record`.
    question : str
        The question under which the report lists its records; by notion where empty.

    Examples
    --------
    >>> GlossaryEntry(name="mae", title="Mean absolute error").name
    'mae'
    """

    name: str
    title: str = ""
    meaning: str = ""
    formula: str = ""
    source: str = ""
    direction: str = ""
    notion: str = ""
    units: str = ""
    question: str = ""


def noted(facts: Mapping[str, str], notes: Sequence[str]) -> Mapping[str, str]:
    """Facts with further notes under their one heading."""
    told = "; ".join(dict.fromkeys([*filter(None, [facts.get(_NOTES, "")]), *notes]))
    return {**facts, _NOTES: told} if told else facts


_NOTES = "Notes"


@dataclass(frozen=True, slots=True, kw_only=True)
class PageContent:
    """All that a report shows, whatever its form.

    Attributes
    ----------
    title : str
        What was assessed.
    verdict : tuple of VerdictLine
        The answer, the most important line first.
    findings : tuple of Finding
        What the verdict says, as data.
    advice : Advice, optional
        The next step, as data.
    records : tuple of Record
        Every number.
    curves : tuple of Curve
        Every curve.
    tables : tuple of Table
        Every small table.
    glossary : tuple of GlossaryEntry
        What the numbers are; its order is the order of the records in the report.
    command : str
        The command that makes this report again.
    facts : mapping of str to str
        What else is known: rows, file, version, seed.

    Examples
    --------
    >>> PageContent(title="predictions.csv").records
    ()
    """

    title: str
    verdict: tuple[VerdictLine, ...] = ()
    findings: tuple[Finding, ...] = ()
    advice: Advice | None = None
    records: tuple[Record, ...] = ()
    curves: tuple[Curve, ...] = ()
    tables: tuple[Table, ...] = ()
    glossary: tuple[GlossaryEntry, ...] = ()
    command: str = ""
    facts: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))

    __repr__ = brief_repr
