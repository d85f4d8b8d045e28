"""What a terminal shows of sentences and tables, at any width."""

from __future__ import annotations

import io
import re

import pytest

from howsure.cli.show import show_grid, show_lines, show_note
from howsure.cli.terminal import Console
from howsure.core.records import Record
from howsure.report.document import TONES, Cell, Column, Grid, GridRows, VerdictLine
from howsure.report.grids import record_grid

NAMES = ("boosted trees", "linear", "quantile net", "deep ensemble")


def shown(grid: Grid, width: int, bold: str = "") -> list[str]:
    stream = io.StringIO()
    show_grid(Console(width=width, file=stream), grid, bold=bold)
    return [line.rstrip() for line in stream.getvalue().splitlines()]


def numbers(parts: int = 1) -> Grid:
    """A measure of each model in each row, with its error."""
    titles = ["Empirical coverage (PICP) at 90 %", "CRPS", "Mean absolute error"]
    rows = tuple(
        (Cell(text=t, link="x"), *(Cell(text=f"{k}.{m}", small="± 0.1") for m in range(len(NAMES))))
        for k, t in enumerate(titles)
    )
    columns = (Column(title="Measure"), *(Column(title=name, numeric=True) for name in NAMES))
    made = tuple(GridRows(title=f"Is it right, question {k}?", rows=rows) for k in range(parts))
    return Grid(title="All", columns=columns, parts=made, notes=("± is the standard error.",))


@pytest.mark.parametrize("width", [100, 80, 60, 40, 25])
def test_every_cell_is_printed_whole_and_no_line_is_too_long(width: int) -> None:
    lines = shown(numbers(), width)
    assert max(map(len, lines)) <= width
    text = "\n".join(lines)
    for row in numbers().parts[0].rows:
        for cell in row[1:]:
            assert text.count(f"{cell.text} {cell.small}") == 1
    heads = [line for line in lines if line.startswith("Measure")]
    assert len(heads) == text.count("CRPS")  # the first column stands in every block
    assert len(heads) == 1 or width < 80
    assert lines[-1].endswith("error.")


def test_numbers_stand_at_the_right_and_words_at_the_left() -> None:
    lines = shown(numbers(), 100)
    head, first = (next(x for x in lines if x.startswith(w)) for w in ("Measure", "Empirical"))
    for name in NAMES:
        end = head.index(name) + len(name)
        assert re.search(r"± 0\.1$", first[:end])
        assert first[end : end + 2].strip() == ""


def test_parts_have_their_headings_below_one_head() -> None:
    lines = shown(numbers(2), 100)
    assert sum(line.startswith("Measure") for line in lines) == 1
    assert [line for line in lines if line.startswith("Is it")] == [
        "Is it right, question 0?",
        "Is it right, question 1?",
    ]


def test_words_wrap_before_a_table_is_cut_in_two() -> None:
    reason = "several intervals or quantiles in pairs are needed to answer this question"
    row = (Cell(text=reason), Cell(text="Weighted interval score, Pinball loss, and others"))
    columns = (Column(title="Reason"), Column(title="Measures"))
    lines = shown(Grid(title="", columns=columns, parts=(GridRows(rows=(row,)),)), 60)
    assert sum(line.startswith("Reason") for line in lines) == 1
    told = " ".join(" ".join(lines).split())
    assert all(word in told for word in (*reason.split(), "Pinball"))


def test_rows_that_say_nothing_in_a_block_are_left_out_of_it() -> None:
    rows = (
        (Cell(text="a"), Cell(text="1" * 30), Cell(text="")),
        (Cell(text="b"), Cell(text=""), Cell(text="2" * 30)),
    )
    columns = (Column(title="x"), *(Column(title=t, numeric=True) for t in "yz"))
    grid = Grid(title="", columns=columns, parts=(GridRows(rows=rows),))
    assert [line.split() for line in shown(grid, 40) if line] == [
        ["x", "y"],
        ["a", "1" * 30],
        ["x", "z"],
        ["b", "2" * 30],
    ]


def test_marks_are_told_and_data_are_no_markup() -> None:
    cells = tuple(Cell(text="[red]", small="\x1b[1m", tone=tone) for tone in TONES)
    grid = Grid(title="[b]", columns=(Column(title="[i]"),) * 6, parts=(GridRows(rows=(cells,)),))
    text = "\n".join(shown(grid, 100))
    for sign, _ in TONES.values():
        assert f"{sign} [red] \ufffd[1m" in text
    assert "[b]" in text
    assert "[i]" in text
    assert "\x1b" not in text


def test_nothing_is_printed_of_an_empty_table() -> None:
    columns = (Column(title="Measure"),)
    assert (
        shown(Grid(title="t", columns=columns, parts=(GridRows(rows=()),), notes=("n",)), 80) == []
    )


def test_sentences_wrap_under_themselves_and_commands_stay_whole() -> None:
    stream = io.StringIO()
    console = Console(width=40, file=stream)
    command = "howsure recalibrate new.csv --calibration held_out.csv -o recalibrated.csv"
    text = "The 90 % intervals cover 83.1 % of rows: they under-cover by 6.9 points."
    show_lines(console, [VerdictLine(text, "bad", "Why?", command)])
    show_lines(console, [VerdictLine("Two.", "good", "How?")], with_question=True)
    show_note(console, "A note.")
    lines = stream.getvalue().splitlines()
    assert lines[0].startswith("✗ The 90 %")
    assert lines[1].startswith("  ")
    assert f"  {command}" in lines
    assert lines[-2:] == ["✓ How: Two.", "A note."]
    assert max(len(line) for line in lines if command not in line) <= 40


def test_a_name_with_any_mark_in_it_stays_whole() -> None:
    """What decides a number is kept by its name, and no text is taken apart."""
    where = "at home · where load · total > 1"
    options = {"where": where, "signal": "bias"}
    record = Record(metric="a", value=1.0, coverage=0.9, p=0.01, options=options)
    grid = record_grid([record])
    assert grid is not None
    assert f"at 90 % · where {where} · signal bias" in grid.parts[0].rows[0][0].small
    narrow = record_grid([record], narrow=True)
    assert narrow is not None
    assert narrow.parts[0].rows[0][0].small == f"at 90 % · where {where}"
