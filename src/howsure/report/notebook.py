"""What a notebook shows of an assessment: states, questions, key numbers and one figure."""

from __future__ import annotations

import importlib.util
import io
import re
from html import escape
from typing import TYPE_CHECKING, Final

from howsure.report.content import TONES
from howsure.report.key_numbers import key_numbers
from howsure.report.overview import OVERVIEW
from howsure.report.page.sections import Grid, table_grid

if TYPE_CHECKING:
    from howsure.report.assessment import Assessment

_PICTURES: Final = ("interval_calibration", "groups", "characteristic")
"""Figures in the order in which one is chosen."""


def notebook(result: Assessment) -> str:
    """The assessment as a fragment of HTML without scripts."""
    lines = "".join(
        f"<li>{TONES[line.tone][0]} {escape(line.text)}"
        + (f"<br><code>{escape(line.command)}</code>" if line.command else "")
        + "</li>"
        for line in result.lines
    )
    tables = [table for table in result.tables if table.name == OVERVIEW]
    grids = [table_grid(table) for table in (*tables, key_numbers(result.records))]
    return (
        f'<ul style="list-style:none;padding-left:0">{lines}</ul>'
        + "".join(map(_table, grids))
        + _picture(result)
    )


def _table(grid: Grid) -> str:
    (part,) = grid.parts
    if not part.rows:
        return ""
    head = "".join(f"<th>{escape(column.title)}</th>" for column in grid.columns)
    rows = "".join(
        "<tr>" + "".join(f"<td>{escape(cell.text)}</td>" for cell in row) + "</tr>"
        for row in part.rows
    )
    notes = "".join(f"<p>{escape(note)}</p>" for note in grid.notes)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>{notes}"


def _picture(result: Assessment) -> str:
    """One figure as SVG; nothing without matplotlib, or where there is none to draw."""
    names = [*(curve.name for curve in result.curves), *(table.name for table in result.tables)]
    name = next((name for name in _PICTURES if name in names), None)
    if name is None or importlib.util.find_spec("matplotlib") is None:
        return ""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.0, 4.0), layout="constrained")
    result.plot(name, ax=figure.subplots())
    stream = io.StringIO()
    figure.savefig(stream, format="svg", metadata={"Date": None})
    return re.sub(r"^.*?(?=<svg)", "", stream.getvalue(), flags=re.DOTALL)
