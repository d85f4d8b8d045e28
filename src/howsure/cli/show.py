"""What a report looks like in a terminal: sentences, then tables; one way for every command."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from rich.cells import cell_len
from rich.console import JustifyMethod
from rich.table import Table
from rich.text import Text

from howsure.cli.terminal import SIGNS, Console, escape
from howsure.core.formats import MISSING
from howsure.core.text import legible
from howsure.report.document import Cell, Grid, VerdictLine

Widths = dict[int, int]
"""Columns of a table by place, and how wide each is."""

# Characters between columns: one would not part words from words.
_GAP: Final = 2
# How wide the first column, and a column of words, stay however wide the others are: three columns
# then fit into 80 characters. Chosen by eye.
_WIDTH_OF_FIRST: Final = 22
_WIDTH_OF_WORDS: Final = 12
"""How wide the first column, and a column of words, stay however wide the others are."""
_BEFORE_UNIT: Final = re.compile(r"(?<=\d) (?=%|points?\b|times\b)")
_GLUE: Final = "\ue000"
"""What stands for the blank before a unit while lines are cut: rich breaks at no-break spaces."""
# How wide the first column stays beside the widest of the others alone: a word. By eye.
_MIN_WIDTH_OF_FIRST: Final = 8


def show_lines(
    console: Console, lines: Sequence[VerdictLine], *, with_question: bool = False
) -> None:
    """Sentences, each after its mark, and the command that does what they advise.

    Where it is `with_question`, the question stands before what answers it.
    """
    for line in lines:
        question = (
            f"{line.question.rstrip('?')}: "
            if with_question and line.question and line.tone != "info"
            else ""
        )
        words = Text.assemble((legible(question), "dim"), legible(line.in_full))
        _wrapped(console, words, Text.from_markup(f"{SIGNS[line.tone]} "))
        if line.command:
            console.print(f"  [bold]{escape(line.command)}[/bold]", soft_wrap=True)


def show_note(console: Console, note: str) -> None:
    """What stands faint below a table or a verdict."""
    _wrapped(console, Text(legible(note), style="dim"), Text(""))


def _wrapped(console: Console, words: Text, begins: Text) -> None:
    """Words on as many lines as they take, the others as far in as the first.

    No line begins with a unit.
    """
    indent = Text(" " * len(begins))
    words.plain = _BEFORE_UNIT.sub(_GLUE, words.plain)
    for number, line in enumerate(words.wrap(console, max(console.width - len(indent), 1))):
        line.rstrip()
        line.plain = line.plain.replace(_GLUE, " ")
        console.print((indent if number else begins).copy().append_text(line))


def show_grid(console: Console, grid: Grid, *, bold: str = "") -> None:
    """A table, in as many blocks beside its first column as the width takes.

    The row whose first cell reads `bold` is printed so.
    """
    if not grid.size:
        return
    console.print()
    if grid.title:
        console.print(Text(legible(grid.title), style="bold"))
    for number, block in enumerate(_blocks(grid, console.width)):
        if number:
            console.print()
        console.print(_table(grid, (), block, bold, headed=True))
        for block_of_rows in grid.parts:
            if block_of_rows.title:
                console.print()
                console.print(Text(legible(block_of_rows.title), style="italic"))
            console.print(_table(grid, block_of_rows.rows, block, bold, headed=False))
    for note in (*grid.notes, *grid.footnotes):
        show_note(console, note)


def _table(
    grid: Grid, rows: Sequence[Sequence[Cell]], block: Widths, bold: str, *, headed: bool
) -> Table:
    """Some columns of some rows, each as wide as is said; or their titles."""
    table = Table(box=None, pad_edge=False, padding=(0, _GAP, 0, 0), header_style="dim")
    table.show_header = headed
    for position, width in block.items():
        column = grid.columns[position]
        justify: JustifyMethod = "right" if column.numeric else "left"
        title = Text(legible(column.title))
        table.add_column(title, justify=justify, width=width, overflow="fold")
    for row in rows:
        later_cells = [row[position] for position in block if position]
        silent = all(not cell.tone and cell.text in ("", MISSING) for cell in later_cells)
        if silent and len(block) < len(row):
            continue
        style = "bold" if bold and row[0].text == bold else ""
        table.add_row(*(_text(row[position]) for position in block), style=style)
    return table


def _text(cell: Cell) -> Text:
    """All that a cell shows: its mark, its text, and faintly what stands beside."""
    parts = [Text.from_markup(SIGNS[cell.tone])] if cell.tone else []
    parts += [Text(legible(cell.text))] if cell.text else []
    parts += [Text(legible(cell.small), style="dim")] if cell.small else []
    return Text(" ").join(parts)


def _blocks(grid: Grid, room: int) -> Iterator[Widths]:
    """Which columns stand side by side, and how wide each is; the first stands in every block."""
    cells = [max(map(_width, column)) for column in zip(*_rows(grid), strict=True)]
    full_widths = [
        max(width, cell_len(column.title))
        for width, column in zip(cells, grid.columns, strict=True)
    ]
    if sum(full_widths) + _GAP * (len(full_widths) - 1) <= room:
        yield dict(enumerate(full_widths))
        return
    least = []
    for position, (column, width) in enumerate(zip(grid.columns, cells, strict=True)):
        word = max(map(cell_len, column.title.split()), default=0)
        least_width = (
            width
            if column.numeric and position
            else min(width, _WIDTH_OF_FIRST if not position else _WIDTH_OF_WORDS)
        )
        least.append(max(least_width, word))
    remaining = list(range(1, len(least)))
    widest = max(least[1:], default=0)
    least[0] = min(least[0], max(room - widest - _GAP, _MIN_WIDTH_OF_FIRST))
    while remaining:
        shown, free = [0], room - least[0]
        while remaining and (len(shown) == 1 or free >= least[remaining[0]] + _GAP):
            shown.append(remaining.pop(0))
            free -= least[shown[-1]] + _GAP
        yield _filled({position: least[position] for position in shown}, full_widths, room)


def _filled(block: Widths, full_widths: Sequence[int], room: int) -> Widths:
    """What is left of the room, given to columns that would be wider; or taken from the last."""
    free = room - sum(block.values()) - _GAP * (len(block) - 1)
    if free < 0:
        last = max(block)
        return {**block, last: max(block[last] + free, 1)}
    while free and (
        wanting := [position for position in block if block[position] < full_widths[position]]
    ):
        for position in wanting[:free]:
            block[position] += 1
            free -= 1
    return block


def _rows(grid: Grid) -> list[tuple[Cell, ...]]:
    return [row for part in grid.parts for row in part.rows]


def _width(cell: Cell) -> int:
    return cell_len(_text(cell).plain)
