"""The page on coverage at every point: one HTML file that works offline."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import final

from howsure.figures import Figure
from howsure.report.content import PageContent, VerdictLine
from howsure.report.page.figures import Block, block_of
from howsure.report.page.pointwise_panels import Panel
from howsure.report.page.pointwise_sections import WorldPart
from howsure.report.page.render import render_template


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class _Option:
    anchor: str
    label: str
    blocks: tuple[tuple[Block, str], ...]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class _Panel:
    label: str
    options: tuple[_Option, ...]


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _World:
    anchor: str
    part: WorldPart
    panels: tuple[_Panel, ...]


def render_pointwise(
    content: PageContent, headline: VerdictLine | None, parts: Sequence[WorldPart]
) -> str:
    """The page as HTML; safe and offline as `render_page` has it."""
    return render_template(
        "pointwise_page.html",
        content,
        extra="pointwise_page",
        headline=headline,
        worlds=[_world(number, part) for number, part in enumerate(parts, 1)],
    )


def _world(number: int, part: WorldPart) -> _World:
    counter = iter(range(10_000))
    anchor = f"world-{number}"
    panels = tuple(
        _Panel(
            label=panel.label,
            options=tuple(
                _Option(
                    anchor=f"{anchor}-panel-{place}-{position}",
                    label=option.label,
                    blocks=tuple(_numbered(option.figures, panel, anchor, counter)),
                )
                for position, option in enumerate(panel.options)
            ),
        )
        for place, panel in enumerate(part.panels)
    )
    return _World(anchor=anchor, part=part, panels=panels)


def _numbered(
    figures: Sequence[Figure], panel: Panel, anchor: str, counter: Iterator[int]
) -> Iterator[tuple[Block, str]]:
    """Blocks with a number of their own; the last of an odd row is wide."""
    for place, figure in enumerate(figures):
        alone = place == len(figures) - 1 and len(figures) % 2 == 1
        yield replace(block_of(figure), wide=panel.wide or alone), f"{anchor}-{next(counter)}"


def names_of(given: Sequence[str] | None, columns: int) -> tuple[str, ...] | None:
    """Names of columns, if there are any of the right number."""
    return tuple(given) if given is not None and len(given) == columns else None
