"""A sheet of an Excel workbook as a table; its first row that is not empty names the columns."""

from __future__ import annotations

import datetime
import functools
import io
import re
import zipfile
import zlib
from collections.abc import Sequence
from typing import Any
from xml.etree import ElementTree

import pyarrow as pa

from howsure.core.errors import InputError
from howsure.core.optional import require
from howsure.core.sizes import most_inflated
from howsure.core.text import quoted
from howsure.inputs.frames import MappingTable
from howsure.inputs.source import MISSING_WORDS, listed, split_sheet

# Whole numbers above are not all numbers of 64 bits.
_MAX_WHOLE = 2.0**53
_UNCOMPUTED = re.compile(
    rb'<c r="([A-Z]+\d+)"[^>]*>\s*<f(?:/>|[^>]*/>|[^>]*>[^<]*</f>)\s*(?:<v\s*/>|<v></v>)?\s*</c>'
)
"""A formula without its result."""
_BROKEN = (
    *(zipfile.BadZipFile, zlib.error, ElementTree.ParseError),
    *(EOFError, LookupError, NotImplementedError, RuntimeError),
)
"""What reading a broken archive raises, or one with entities: a workbook has none."""
_PLACE = re.compile(rb"""\br\s*=\s*["']([A-Z]{1,3})([0-9]{1,10})["']""", re.IGNORECASE)
"""Where a cell stands."""
# Cells of a sheet, which take 2 GB. One in the last corner of an empty sheet makes 17 billion, at
# which calamine ends the process.
_MAX_CELLS = 1 << 26
_MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
_LINK = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"


class SheetTable(MappingTable):
    """The table on a sheet, with the row numbers of the workbook."""

    lined = True

    def __init__(self, columns: dict[str, pa.Array], title: str, lines: Sequence[int]) -> None:
        super().__init__(columns, title)
        self._lines = lines

    def line(self, row: int) -> int:
        """The number that stands at its left."""
        return self._lines[row] if row < len(self._lines) else row + 2


def sheet_table(title: str, file: pa.NativeFile, *, decimal: str) -> SheetTable:
    """The table on a sheet: the one that the title says, or the only one that holds cells."""
    calamine = require("python_calamine", extra="excel")
    path, wanted = split_sheet(title)
    try:
        content = file.read()
        parts = _parts(content, path)
        book = calamine.CalamineWorkbook.from_filelike(io.BytesIO(content))
        name = wanted or _only_sheet(calamine, book, path)
        if name not in book.sheet_names:
            raise InputError(
                f"{path} has no sheet {quoted(name)}; its sheets are {listed(book.sheet_names)}"
            )
        sheet = book.get_sheet_by_name(name)
        rows = sheet.to_python(skip_empty_area=True)
        top = 1 if sheet.start is None else sheet.start[0] + 1
        merged = [first for first, last in sheet.merged_cell_ranges or () if last[1] > first[1]]
        cells = re.findall(_UNCOMPUTED, parts.read(_sheet_file(parts, name)))
    except (*_BROKEN, calamine.CalamineError) as error:
        raise InputError(f"{path} cannot be read: {error}") from error
    place = f"{path}, sheet {quoted(name)}"
    if any(row + 1 == top for row, _ in merged):
        raise InputError(
            f"{place}: line {top} must have one cell per column name, but has merged cells: "
            "delete titles above the table, and write a name above each column"
        )
    if len(rows) < 2 and not wanted and (hidden := _hidden(calamine, book)):
        raise InputError(
            f"{place}: the sheet has no rows, and hidden sheets are read only by name: give "
            f"{path + '#' + hidden[0]!r}"
        )
    columns = _columns(rows, place, decimal)
    if cells:
        raise InputError(
            f"{place}: cells must contain values, but {len(cells):,} are formulas without results "
            f"(first: {cells[0].decode()}): open the workbook in a spreadsheet program and save it"
        )
    lines = [top + place for place, row in enumerate(rows) if place and _is_filled(row)]
    table = SheetTable(columns, title, lines)
    table.decimal = decimal
    other_sheets = [other for other in book.sheet_names if other != name]
    if other_sheets and not wanted:
        table.notes = (f"sheet {quoted(name)} is read, of {listed(book.sheet_names, 6)}",)
    return table


def _hidden(calamine: Any, book: Any) -> list[str]:
    """The sheets that are hidden and hold cells."""
    return [
        sheet.name
        for sheet in book.sheets_metadata
        if sheet.visible != calamine.SheetVisibleEnum.Visible
        and book.get_sheet_by_name(sheet.name).start is not None
    ]


def _only_sheet(calamine: Any, book: Any, path: str) -> str:
    """The one sheet that is shown and holds cells."""
    shown = [
        sheet.name
        for sheet in book.sheets_metadata
        if sheet.visible == calamine.SheetVisibleEnum.Visible
        and sheet.typ == calamine.SheetTypeEnum.WorkSheet
    ]
    filled = [name for name in shown if book.get_sheet_by_name(name).start is not None]
    if len(filled) == 1:
        return str(filled[0])
    if not filled:
        raise InputError(f"{path}: the workbook has no cells (sheets: {listed(shown) or 'none'})")
    raise InputError(
        f"{path}: one sheet is one table, but {len(filled)} have cells ({listed(filled)}): "
        f"choose one with {path + '#' + filled[0]!r}"
    )


def _parts(content: bytes, path: str) -> zipfile.ZipFile:
    """The files within a workbook, of a size that can be read."""
    parts = zipfile.ZipFile(io.BytesIO(content))
    for info in parts.infolist():
        if info.file_size > most_inflated(info.compress_size):
            raise InputError(
                f"{path}: {info.filename!r} within would take {info.file_size:,} bytes "
                f"uncompressed ({info.compress_size:,} stored): spreadsheet programs do not "
                "write such workbooks"
            )
        with parts.open(info) as file:
            area = _area(file.read(info.file_size + 1))  # without a number it takes what may come
        if area > _MAX_CELLS:
            raise InputError(
                f"{path}: a sheet must have at most {_MAX_CELLS:,} cells, got {area:,} "
                f"({info.filename!r}): delete cells far from the table"
            )
    return parts


def _area(sheet: bytes) -> int:
    """Cells from the first row and column of a sheet to the last, all of which are held."""
    columns: set[bytes] = set()
    first, last = 1 << 62, 0
    for cell in _PLACE.finditer(sheet):
        columns.add(cell[1].upper())
        row = int(cell[2])
        first, last = min(first, row), max(last, row)
    places = [
        functools.reduce(lambda at, letter: 26 * at + letter - 64, name, 0) for name in columns
    ]
    return (last - first + 1) * (max(places) - min(places) + 1) if places else 0


def _sheet_file(parts: zipfile.ZipFile, name: str) -> str:
    """The file of a sheet within the workbook."""
    book = ElementTree.fromstring(parts.read("xl/workbook.xml"))
    links = ElementTree.fromstring(parts.read("xl/_rels/workbook.xml.rels"))
    targets = {link.get("Id"): str(link.get("Target")) for link in links}
    for sheet in book.iter(f"{{{_MAIN}}}sheet"):
        if sheet.get("name") == name:
            target = targets[sheet.get(f"{{{_LINK}}}id")]
            return target.lstrip("/") if target.startswith("/") else f"xl/{target}"
    raise KeyError(name)


def _columns(rows: Sequence[Sequence[Any]], title: str, decimal: str) -> dict[str, pa.Array]:
    """The columns by name, those that are empty left out."""
    if len(rows) < 2:
        raise InputError(f"{title}: the sheet has column names but no rows")
    body = [row for row in rows[1:] if _is_filled(row)]
    names = [_text(cell, ".") for cell in rows[0]]
    cells = {column: [row[column] for row in body] for column in range(len(names))}
    filled = [column for column in cells if _is_filled(cells[column])]
    chosen = [column for column in cells if names[column] or column in filled]
    named = [names[column] for column in chosen if names[column]]
    if len(named) < 2 <= len(filled):
        raise InputError(
            f"{title}: the first row must contain the names of {len(filled)} columns, got "
            f"{listed(named) or 'none'}: delete everything above the table"
        )
    repeated = {name for name in named if named.count(name) > 1}
    if repeated:
        raise InputError(
            f"{title}: column names must differ; these occur more than once: "
            f"{listed(sorted(repeated))}"
        )
    if not body:
        raise InputError(f"{title}: the sheet has column names but no rows")
    nameless = [column for column in chosen if not names[column]]
    if len(nameless) > 1:  # one is the index of a frame, perhaps
        chosen = [column for column in chosen if names[column]]
    return {names[column]: _column(cells[column], decimal) for column in chosen}


def _is_filled(cells: Sequence[Any]) -> bool:
    return any(cell != "" for cell in cells)


def _column(cells: Sequence[Any], decimal: str) -> pa.Array:
    """One column: numbers, dates or times of day where all cells are such, else text."""
    values = [None if cell == "" or cell in MISSING_WORDS else cell for cell in cells]
    filled = [cell for cell in values if cell is not None]

    def are_all(*types: type) -> bool:
        return all(isinstance(cell, types) for cell in filled)

    if filled and are_all(bool):
        return pa.array(values, type=pa.bool_())
    if are_all(int, float):
        are_whole = all(float(cell).is_integer() and abs(cell) < _MAX_WHOLE for cell in filled)
        number, kind = (int, pa.int64()) if are_whole and filled else (float, pa.float64())
        return pa.array([None if cell is None else number(cell) for cell in values], type=kind)
    if are_all(datetime.date):
        moments = [
            cell
            if cell is None or isinstance(cell, datetime.datetime)
            else datetime.datetime.combine(cell, datetime.time())
            for cell in values
        ]
        return pa.array(moments, type=pa.timestamp("us"))
    if are_all(datetime.time):
        return pa.array(values, type=pa.time64("us"))
    texts = [None if cell is None else _text(cell, decimal) for cell in values]
    return pa.array(texts, type=pa.large_string())


def _text(cell: Any, decimal: str) -> str:
    """A cell as it would stand in a text file."""
    if isinstance(cell, float):
        shown = str(int(cell)) if cell.is_integer() and abs(cell) < _MAX_WHOLE else repr(cell)
        return shown.replace(".", decimal)
    if isinstance(cell, datetime.datetime | datetime.date | datetime.time):
        return cell.isoformat()
    return str(cell).strip()
