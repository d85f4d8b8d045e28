"""What the documents of studies have in common."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from howsure._version import __version__
from howsure.core import formats
from howsure.core.arrays import check_fraction
from howsure.core.errors import InputError
from howsure.figures import Figure
from howsure.report.document import (
    TONES,
    Cell,
    Choice,
    Column,
    Document,
    Grid,
    Option,
    Rows,
    Section,
    Tone,
    VerdictLine,
)

FIRST_CHOICE: Final = 0.9
"""The nominal coverage that sentences speak of, where no other is asked for."""
MOST_TASKS: Final = 3
"""The most tasks that the first screen shows one by one."""


def study(
    *,
    headline: VerdictLine | None,
    opening: Section,
    sections: Iterable[Section],
    facts: Mapping[str, str],
    **rest: Any,
) -> Document:
    """The document of a study; sentences of a section are told with its title."""
    first = () if headline is None else (headline,)
    shown = _apart(sections)
    told = (
        replace(line, question=f"{part.title}, {line.question}")
        for part in shown
        for line in part.lines
    )
    return Document(
        opening=replace(opening, lines=(*first, *opening.lines)),
        sections=shown,
        lines=(*first, *opening.lines, *told),
        facts={**facts, "howsure": __version__},
        **rest,
    )


def coverage_of(levels: Iterable[float], asked: float | None) -> float:
    """The nominal coverage that is asked for, else the highest up to `FIRST_CHOICE`."""
    known = sorted(set(levels))
    if asked is None:
        return max((c for c in known if c <= FIRST_CHOICE + 1e-9), default=known[0])
    level = check_fraction(asked, "coverage")
    near = min(known, key=lambda c: abs(c - level))
    if abs(near - level) > 1e-9:
        told = ", ".join(f"{c:g}" for c in known)
        raise InputError(f"coverage must be one that was studied ({told}), got {level:g}")
    return near


def choice_of(label: str, options: Iterable[tuple[str, Figure | None]]) -> tuple[Choice, ...]:
    """A choice of the figures that there are; none where there is no figure."""
    held = tuple(Option(label=name, figures=(figure,)) for name, figure in options if figure)
    return (Choice(label=label, options=held),) if held else ()


def overview(
    title: str,
    rows: Mapping[str, Mapping[str, Cell]],
    states: Mapping[Tone, str],
    *notes: str,
) -> Grid:
    """A row a method: its state on each of a few tasks, else on how many it has each state."""
    tasks = dict.fromkeys(task for cells in rows.values() for task in cells)
    tones = [cell.tone for cells in rows.values() for cell in cells.values()]
    told = [(tone, words) for tone, words in states.items() if tone in tones]
    shown = []
    for name, cells in rows.items():
        own = [cell.tone for cell in cells.values()]
        counts = [own.count(tone) for tone, _ in told]
        found = [cells.get(task, Cell(text=formats.MISSING)) for task in tasks]
        if len(tasks) > MOST_TASKS:
            found = [Cell(text=f"{count} of {len(own)}", key=str(count)) for count in counts]
        shown.append((Cell(text=name), *found))
    titles = list(tasks)
    marks = "; ".join(f"{TONES[tone][0]} {words.lower()}" for tone, words in told)
    if len(tasks) > MOST_TASKS:
        titles, marks = [words for _, words in told], ""
    return Grid(
        title=title,
        columns=(Column(title="Method"), *(Column(title=t, numeric=True) for t in titles)),
        parts=(Rows(rows=tuple(shown)),),
        notes=(*notes, *([f"{marks}."] if marks else [])),
    )


def named(names: Sequence[str], noun: str) -> str:
    """The only name, or how many there are."""
    return names[0] if len(names) == 1 else formats.counted(len(names), noun)


def _apart(sections: Iterable[Section]) -> tuple[Section, ...]:
    """The sections, with numbers where two would have one anchor, or one would have none."""
    seen = {Section(title="").anchor}
    shown = []
    for place, section in enumerate(sections, 1):
        if section.anchor in seen:
            section = replace(section, label=f"{section.title} {place}")
        seen.add(section.anchor)
        shown.append(section)
    return tuple(shown)
