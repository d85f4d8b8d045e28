"""Short forms of a report: the key numbers, a screen of Markdown, what a notebook shows."""

from __future__ import annotations

import importlib.util
import io
import math
import re
from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING, Final

import numpy as np

from howsure.core import formats
from howsure.core.records import Record, Table
from howsure.metrics.catalogue import catalogue
from howsure.report.document import TONES, Grid
from howsure.report.grids import table_grid
from howsure.report.overview import OVERVIEW

if TYPE_CHECKING:
    from howsure.report.assessment import Assessment

KEY_NUMBERS: Final = "key_numbers"
"""The name of the table."""
_MOST: Final = 10
_MAIN: Final = 0.9  # of several coverages, that nearest to it speaks for all but coverage itself
_COVERAGES: Final = 3
_SOUGHT: Final = (
    *("empirical_coverage", "mean_width", "set_size", "interval_score", "crps", "mae", "rmse"),
    *("pit_bias", "pit_spread", "characteristic_partial_gain", "worst_region", "pinball"),
    *("weighted_interval_score", "log_score", "misses_below", "misses_above", "r_squared"),
)
"""Measures in the order in which they are looked for."""
_OF_KINDS: Final = ("crps", "pinball", "weighted_interval_score")
"""Scores that mean another thing for quantiles than for distributions: models are compared by the
score that means the same for all, which stands in their overview."""


def key_numbers(records: Sequence[Record]) -> Table:
    """At most ten measures of all rows, in the catalogue's order; a column for each model.

    Of one model, its value stands beside the interval and what a perfect model shows.
    """
    whole = [r for r in records if not r.group and not math.isnan(r.value)]
    models = list(dict.fromkeys(record.model for record in whole))
    known = {(r.metric, _at(r.coverage), r.model): r for r in reversed(whole)}
    several = len(models) != 1
    rows = _rows([r for r in whole if not (several and r.metric in _OF_KINDS)])
    entries = catalogue()
    titles = [
        entries[name].title + (f" at {formats.level(at)}" if at >= 0 else "") for name, at in rows
    ]
    columns = {"measure": titles}
    if not several:
        found = [known[name, at, models[0]] for name, at in rows]
        columns["value"] = [
            formats.estimate(record.value, record.standard_error)[0] for record in found
        ]
        columns["interval"] = [formats.interval(r.lower, r.upper) for r in found]
        columns["perfect"] = [formats.short(_perfect(record)) for record in found]
    else:
        for model in models:
            each = [known.get((name, at, model)) for name, at in rows]
            columns[model] = ["" if record is None else _estimate(record) for record in each]
    return Table(
        name=KEY_NUMBERS,
        columns={name: np.array(held, dtype=object) for name, held in columns.items()},
        labels={name: name for name in models} if several else {},
        notes="Value ± standard error." if several and rows else "",
    )


def _at(coverage: float) -> float:
    """A coverage as a key, for NaN is no number's equal."""
    return -1.0 if math.isnan(coverage) else coverage


def _rows(whole: Sequence[Record]) -> list[tuple[str, float]]:
    """Which measures at which coverages."""
    given = list(dict.fromkeys(_at(record.coverage) for record in whole))
    main = min((at for at in given if at >= 0), key=lambda at: abs(at - _MAIN), default=-1.0)
    answered = {(record.metric, _at(record.coverage)) for record in whole}
    chosen: list[tuple[str, float]] = []
    for name in _SOUGHT:
        levels = [at for at in given if (name, at) in answered]
        if name == "empirical_coverage":
            levels = sorted(sorted(levels, key=lambda at: abs(at - main))[:_COVERAGES])
        else:
            levels = [at for at in levels if at in (main, -1.0)]
        chosen += [(name, at) for at in levels]
    places = {name: place for place, name in enumerate(catalogue())}
    return sorted(chosen[:_MOST], key=lambda row: places[row[0]])


def _estimate(record: Record) -> str:
    """A value and its standard error, unless that is of rounding alone."""
    value, error = formats.estimate(record.value, record.standard_error)
    told = record.standard_error > 1e-12 * abs(record.value)
    return f"{value} ± {error}" if told else formats.number(record.value)


def _perfect(record: Record) -> float:
    return record.null if not math.isnan(record.null) else record.target


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
