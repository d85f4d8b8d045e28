"""Small pictures of the best and worst rows, for tables whose rows are images."""

from __future__ import annotations

import base64
import io
import os
import re
import warnings
from collections.abc import Iterable
from typing import Any

import numpy as np

from howsure.core import formats
from howsure.core.arrays import AnyArray
from howsure.core.classes import frozen
from howsure.core.errors import MissingDependencyError
from howsure.core.optional import require
from howsure.core.records import ResultTable
from howsure.core.text import one_line, quoted

# A thumbnail shows what it is of; larger ones, stored in the page, would make it heavy. By eye.
SIDE = 112
"""Pixels of a thumbnail's longer side."""
# One row of a page of 700 pixels.
THUMBNAILS = 6
"""Thumbnails of the best rows, and of the worst."""
# A line or two.
MAX_FILES_NAMED = 5
"""The most missing files that are named."""
# A page stores twelve thumbnails of each.
MAX_MODELS = 4
"""The most models that get thumbnails."""
# Pixels of a side up to which an image is drawn by pixels (icons, digits), which JPEG blurs;
# above, PNG is several times larger.
_MAX_SIDE_OF_PNG = 48
_KNOWN = ("kind", "row", "y", "prediction", "cce", "perfect", "p_value")
# A quality at which no square is seen at this size.
_FORMS = {"image/jpeg": ("JPEG", {"quality": 80, "optimize": True}), "image/png": ("PNG", {})}
_FAILURES = (OSError, ValueError, SyntaxError, EOFError, MemoryError, OverflowError)


def image_table(rows: ResultTable, files: AnyArray, *, most: int = THUMBNAILS) -> ResultTable:
    """Thumbnails of rows."""
    kinds = rows.columns["kind"]
    chosen = np.concatenate(
        [np.flatnonzero(kinds == kind)[:most] for kind in dict.fromkeys(kinds.tolist())]
    )
    columns = {name: rows.columns[name][chosen] for name in _KNOWN if name in rows.columns}
    paths = [str(files[row]) for row in chosen]
    uris, problems = zip(*map(thumbnail, paths), strict=True) if paths else ((), ())
    texts = {"image": map(os.path.basename, paths), "thumbnail": uris, "problem": problems}
    columns |= {name: np.array([*cells], dtype=object) for name, cells in texts.items()}
    gone = sum(map(bool, problems))
    notes = f"{gone} of {len(paths)} images cannot be shown." if gone else ""
    return ResultTable(name="cce_images", columns=columns, model=rows.model, notes=notes)


def missing_images(files: AnyArray, names: AnyArray) -> str:
    """Which rows' images are no files; empty where all are."""
    gone = [row for row, path in enumerate(files) if not os.path.isfile(path)]
    if not gone:
        return ""
    named = [
        f"row {names[row]} ({quoted(os.path.basename(files[row]))})"
        for row in gone[:MAX_FILES_NAMED]
    ]
    more = f" and {len(gone) - MAX_FILES_NAMED:,} more" if len(gone) > MAX_FILES_NAMED else ""
    return f"{len(gone):,} of {len(files):,} images: {', '.join(named)}{more}"


def thumbnail(path: str) -> tuple[str, str]:
    """A small picture of an image file."""
    try:
        pil = require("PIL.Image", extra="text")
        turned = require("PIL.ImageOps", extra="text").exif_transpose
    except MissingDependencyError as error:
        return "", str(error)
    if not os.path.isfile(path):
        return "", "file not found" if not os.path.lexists(path) else "not a file"
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of a file's size or oddities: it is shown or named
            with pil.open(path) as image:
                image.draft("RGB", (2 * SIDE, 2 * SIDE))  # decodes large JPEGs at a fraction
                small = _shrunk(turned(_eight_bits(image, pil)), pil)
    except (*_FAILURES, pil.DecompressionBombError) as error:
        words = getattr(error, "strerror", None) or str(error).replace(path, "it")
        return "", f"unreadable file: {' '.join(str(words).split())[:120]}"
    kind = "image/png" if max(small.size) <= _MAX_SIDE_OF_PNG else "image/jpeg"
    form, choices = _FORMS[kind]
    stream = io.BytesIO()
    small.save(stream, form, **choices)
    return f"data:{kind};base64,{base64.b64encode(stream.getvalue()).decode()}", ""


def _eight_bits(image: Any, pil: Any) -> Any:
    """The image; more than 8 bits a channel are stretched from the darkest to the lightest."""
    if not image.mode.startswith(("I", "F")):
        return image
    values = np.asarray(image, dtype=np.float64)
    finite = values[np.isfinite(values)]
    low, high = (finite.min(), finite.max()) if finite.size else (0.0, 0.0)
    scaled = (np.nan_to_num(values, nan=low, posinf=high, neginf=low) - low) / ((high - low) or 1.0)
    return pil.fromarray(np.rint(255 * scaled).astype(np.uint8))


def _shrunk(image: Any, pil: Any) -> Any:
    """At most so many pixels a side, as RGB on white."""
    image.thumbnail((SIDE, SIDE))
    if "A" in image.getbands() or "transparency" in image.info:
        image = image.convert("RGBA")
        ground = pil.new("RGBA", image.size, "white")
        image = pil.alpha_composite(ground, image)
    return image.convert("RGB")


# ---- best and worst images as a page shows them: small pictures with what is known of each row ---

HEADINGS = {
    "worst": "Farthest from the outcomes (highest CCE)",
    "best": "Nearest to the outcomes (lowest CCE)",
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


@frozen(kw_only=True)
class Tile:
    """One picture: where it is, what it is called, what is known of it."""

    uri: str
    title: str
    name: str
    problem: str
    facts: tuple[tuple[str, str], ...]


@frozen(kw_only=True)
class Strip:
    """Pictures of one kind."""

    heading: str
    tiles: tuple[Tile, ...]


@frozen(kw_only=True)
class Gallery:
    """Pictures of one model's rows."""

    title: str
    strips: tuple[Strip, ...]
    notes: str


def galleries(tables: Iterable[ResultTable]) -> list[Gallery]:
    """A gallery of each table ``cce_images``."""
    image_tables = [table for table in tables if table.name == "cce_images" and len(table)]
    return [_gallery(table, named=len(image_tables) > 1) for table in image_tables]


def _gallery(table: ResultTable, *, named: bool) -> Gallery:
    kinds = [str(kind) for kind in table.columns["kind"]]
    strips = [
        Strip(
            heading=HEADINGS.get(kind, kind),
            tiles=tuple(_tile(table, row) for row in range(len(kinds)) if kinds[row] == kind),
        )
        for kind in dict.fromkeys(kinds)
    ]
    title = f"Images · {one_line(table.model, 60)}" if named and table.model else "Images"
    return Gallery(title=title, strips=tuple(strips), notes=table.notes)


def _tile(table: ResultTable, row: int) -> Tile:
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
        problem=str(columns["problem"][row]) or "no picture",
        facts=tuple(facts),
    )
