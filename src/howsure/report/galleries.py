"""Best and worst images as a page shows them: small pictures with what is known of each row."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from howsure.core import formats
from howsure.core.records import Table
from howsure.figures.text import one_line

HEADINGS = {
    "worst": "Farthest from what happened (highest CCE)",
    "best": "Nearest to what happened (lowest CCE)",
    "new": "Highest CCE",
}
_TITLES = {
    "y": "y",
    "prediction": "predicted",
    "cce": "CCE",
    "perfect": "perfect model",
    "p_value": "p",
}
_SAFE = re.compile(r"data:image/(jpeg|png);base64,[A-Za-z0-9+/]+={0,2}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Tile:
    """One picture: where it is, what it is called, what is known of it."""

    uri: str
    title: str
    name: str
    problem: str
    facts: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Strip:
    """Pictures of one kind."""

    heading: str
    tiles: tuple[Tile, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Gallery:
    """Pictures of one model's rows."""

    title: str
    strips: tuple[Strip, ...]
    notes: str


def galleries(tables: Iterable[Table]) -> list[Gallery]:
    """A gallery of each table ``cce_images``."""
    found = [table for table in tables if table.name == "cce_images" and len(table)]
    return [_gallery(table, named=len(found) > 1) for table in found]


def _gallery(table: Table, *, named: bool) -> Gallery:
    kinds = [str(kind) for kind in table.columns["kind"]]
    strips = [
        Strip(
            heading=HEADINGS.get(kind, kind),
            tiles=tuple(_tile(table, row) for row, own in enumerate(kinds) if own == kind),
        )
        for kind in dict.fromkeys(kinds)
    ]
    title = f"Images · {one_line(table.model, 60)}" if named and table.model else "Images"
    return Gallery(title=title, strips=tuple(strips), notes=table.notes)


def _tile(table: Table, row: int) -> Tile:
    columns = table.columns
    uri = str(columns["thumbnail"][row])
    facts = [
        (title, formats.cell(columns[name][row]))
        for name, title in _TITLES.items()
        if name in columns
    ]
    return Tile(
        uri=uri if _SAFE.fullmatch(uri) else "",
        title=f"Row {one_line(formats.cell(columns['row'][row]), 40)}",
        name=one_line(str(columns["image"][row]), 200),
        problem=str(columns["problem"][row]) or "there is no picture",
        facts=tuple(facts),
    )
