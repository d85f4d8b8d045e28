"""What `assess` returns: the verdict, the records behind it, and every way to show them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

from howsure.core.errors import InputError
from howsure.core.records import Curve, Record, Table
from howsure.report.content import PageContent, VerdictLine
from howsure.verdict import Advice, Finding

if TYPE_CHECKING:
    import pyarrow as pa

    from howsure.figures import Figure


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Assessment:
    """A verdict with everything that it rests on.

    Attributes
    ----------
    lines : tuple of VerdictLine
        The verdict in sentences, what is bad first.
    findings : tuple of Finding
        The verdict as data, in the same order.
    advice : Advice, optional
        The next step as data; None where nothing is bad and nothing helps, or nothing was tried.
    records : tuple of Record
        Every number, answered or not, over all rows and in groups.
    curves : tuple of Curve
        Trade-offs and profiles, already thinned for drawing.
    tables : tuple of Table
        Groups, worst rows, paired differences.
    facts : mapping of str to str
        What was assessed: rows, models, coverages, options.
    command : str
        What reproduces the assessment.
    title : str
        A heading.
    """

    lines: tuple[VerdictLine, ...]
    records: tuple[Record, ...]
    findings: tuple[Finding, ...] = ()
    advice: Advice | None = None
    curves: tuple[Curve, ...] = ()
    tables: tuple[Table, ...] = ()
    facts: Mapping[str, str] = field(default_factory=dict)
    command: str = ""
    title: str = "How sure, and rightly so?"

    @property
    def verdict(self) -> str:
        """The verdict in words."""
        return "\n".join(f"{line.text} {line.command}".strip() for line in self.lines)

    def value(self, metric: str, *, coverage: float | None = None, model: str = "") -> float:
        """The value of a metric over all rows.

        Parameters
        ----------
        metric : str
            Name in the catalogue.
        coverage : float, optional
            Nominal coverage; the first assessed if omitted.
        model : str
            Which model; the first if omitted.

        Raises
        ------
        InputError
            If no such record exists.
        """
        return self.record(metric, coverage=coverage, model=model).value

    def record(self, metric: str, *, coverage: float | None = None, model: str = "") -> Record:
        """The record of a metric over all rows; arguments as in `value`."""
        for record in self.records:
            if record.metric != metric or (model and record.model != model):
                continue
            if record.group and record.metric != "worst_group_shortfall":
                continue
            if coverage is None or math.isclose(record.coverage, coverage, abs_tol=1e-9):
                return record
        at = "" if coverage is None else f" at coverage {coverage:g}"
        raise InputError(f"metric must be one that was assessed, got {metric!r}{at}")

    @property
    def unanswered(self) -> tuple[Record, ...]:
        """Records that have no value; their reason says why."""
        return tuple(r for r in self.records if math.isnan(r.value) and not r.group)

    @property
    def figures(self) -> tuple[Figure, ...]:
        """One figure for each question that a picture answers."""
        from howsure.figures import figures_of

        return figures_of(self.curves, self.tables)

    def plot(self, name: str = "calibration", ax: Any = None) -> Any:
        """Draw the curve or table of this name, and what stands beside it; returns the axes."""
        from howsure.figures import plot
        from howsure.figures.layouts import layout_of

        layout = layout_of(name)
        beside = {*layout.companions, layout.points[0] if layout.points else ""}
        drawable: tuple[Curve | Table, ...] = (*self.curves, *self.tables)
        items = [item for item in drawable if item.name == name]
        if not items:
            names = sorted({item.name for item in drawable})
            raise InputError(f"name must be one of {', '.join(names)}, got {name!r}")
        items += [item for item in drawable if item.name in beside]
        return plot(items, ax=ax)

    def table(self) -> pa.Table:
        """Every record as a row of an Arrow table; ``.to_pandas()`` makes a data frame."""
        import pyarrow as pa

        rows = [record.as_dict() for record in self.records]
        for row, record in zip(rows, self.records, strict=True):
            row["options"] = "; ".join(f"{k}={v}" for k, v in record.options.items())
            row.update(
                {k: getattr(record, k) for k in row if isinstance(getattr(record, k), float)}
            )
        return pa.Table.from_pylist(rows)

    def content(self) -> PageContent:
        """Everything that a page shows, without its form."""
        from howsure.report.glossary import glossary

        return PageContent(
            title=self.title,
            verdict=self.lines,
            findings=self.findings,
            advice=self.advice,
            records=self.records,
            curves=self.curves,
            tables=self.tables,
            glossary=glossary(self.records),
            command=self.command,
            facts=self.facts,
        )

    def to_html(self) -> str:
        """One self-contained page that works offline."""
        from howsure.report.page.render import render_page

        return render_page(self.content())

    def to_json(self) -> str:
        """Every record, curve and table as JSON."""
        from howsure.report.plain import to_json

        return to_json(self.content())

    def to_markdown(self) -> str:
        """The verdict and the records as Markdown."""
        from howsure.report.plain import to_markdown

        return to_markdown(self.content())

    def to_csv(self) -> str:
        """Every record as a line of CSV."""
        from howsure.report.plain import to_csv

        return to_csv(self.content())

    def save(self, path: str | Path) -> None:
        """Write the form that the ending names: .html, .json, .md or .csv, whole or not at all.

        Raises
        ------
        InputError
            If the ending is another, or the file cannot be written.
        """
        from howsure.report import forms

        forms.save(self, path)

    def __str__(self) -> str:
        return self.verdict

    def _repr_html_(self) -> str:
        lines = "".join(f"<li>{escape(line.text)}</li>" for line in self.lines)
        rows = "".join(
            f"<tr><td>{escape(r.metric)}</td><td>{escape(r.model)}</td>"
            f"<td>{'' if math.isnan(r.coverage) else f'{r.coverage:g}'}</td>"
            f"<td>{r.value:.4g}</td><td>{r.lower:.4g} – {r.upper:.4g}</td>"
            f"<td>{escape(r.direction.value)}</td></tr>"
            for r in self.records
            if not r.group and not math.isnan(r.value)
        )
        head = "<tr><th>measure<th>model<th>coverage<th>value<th>interval<th>direction</tr>"
        return f"<ul>{lines}</ul><table><thead>{head}</thead><tbody>{rows}</tbody></table>"
