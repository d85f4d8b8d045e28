"""What `assess` returns: the verdict, the records behind it, and every way to show them."""

from __future__ import annotations

import itertools
import math
import re
import threading
from collections.abc import Callable, Mapping
from dataclasses import field
from typing import TYPE_CHECKING, Any, Literal, final, get_args

from howsure.core.classes import frozen
from howsure.core.errors import InputError
from howsure.core.progress import listener, subscribe
from howsure.core.records import Curve, Record, ResultTable
from howsure.core.text import one_line
from howsure.engine.catalogue import metric_named
from howsure.engine.finding import State
from howsure.report.document import TONES, Document, Formed, VerdictLine
from howsure.verdict import Advice, Finding, TrustAnswer

if TYPE_CHECKING:
    from howsure.figures import Figure


Library = Literal["pandas", "polars", "pyarrow"]
# What a notebook or a prompt shows without being asked: a few lines of a terminal's width.
_MAX_LINES = 3
_MAX_CHARACTERS = 96


@final
@frozen(kw_only=True)
class Basis:
    """What a verdict rests on."""

    records: tuple[Record, ...]  # numbers, answered or not, over all rows and in groups
    curves: tuple[Curve, ...] = ()  # trade-offs and profiles, already thinned for drawing
    tables: tuple[ResultTable, ...] = ()  # groups, worst rows, paired differences
    # what was assessed: rows, models, coverages, options
    facts: Mapping[str, str] = field(default_factory=dict)


@final
class Later:
    """A basis that is made when it is first asked for, once; a copy on disk holds it made.

    Listeners to the progress of the work before it hear of it too.
    """

    def __init__(self, make: Callable[[], Basis] | None, made: Basis | None = None) -> None:
        self._make, self._made, self._lock = make, made, threading.Lock()
        self._listener = listener()

    def __call__(self) -> Basis:
        with self._lock, subscribe(self._listener):
            if self._made is None:
                assert self._make is not None
                self._made, self._make = self._make(), None  # so that the rows can go
            return self._made

    def __reduce__(self) -> tuple[type[Later], tuple[None, Basis]]:
        return Later, (None, self())


@final
@frozen(kw_only=True, repr=False)
class Assessment(Formed):
    """A verdict with all numbers, curves and tables behind it.

    Results that no sentence needs are computed on first use of `records`, `curves`, `tables`,
    `to_frame`, `save` and similar.

    Attributes
    ----------
    lines : tuple of VerdictLine
        The verdict in sentences: the answer, faults, the next step, the rest.
    answer : TrustAnswer, optional
        Whether to trust the uncertainty, in a sentence; for several models, also which to use.
    findings : tuple of Finding
        The verdict as data, in the same order.
    advice : Advice, optional
        The next step as data; None if there is no fault and nothing helps, or nothing was tried.
    brief : Basis
        Data of sentences and key numbers.
    whole : callable
        Returns all data, including `brief`.
    command : str
        What reproduces the assessment.
    title : str
        A heading.
    """

    lines: tuple[VerdictLine, ...]
    brief: Basis
    whole: Callable[[], Basis]
    answer: TrustAnswer | None = None
    findings: tuple[Finding, ...] = ()
    advice: Advice | None = None
    command: str = ""
    title: str = "Can this uncertainty be trusted?"

    @property
    def records(self) -> tuple[Record, ...]:
        """All numbers, over all rows and in groups; those without a value have a reason."""
        return self.whole().records

    @property
    def curves(self) -> tuple[Curve, ...]:
        """Trade-offs and profiles, already thinned for drawing."""
        return self.whole().curves

    @property
    def tables(self) -> tuple[ResultTable, ...]:
        """Groups, worst rows, paired differences."""
        return self.whole().tables

    @property
    def facts(self) -> Mapping[str, str]:
        """What was assessed: rows, models, coverages, options."""
        return self.whole().facts

    @property
    def verdict(self) -> str:
        """The verdict in words."""
        return "\n".join(f"{line.in_full} {line.command}".strip() for line in self.lines)

    def value(self, metric: str, *, coverage: float | None = None, model: str = "") -> float:
        """The value of a metric over all rows.

        Parameters
        ----------
        metric : str
            Name in the catalogue, or what else the field calls it: ``"picp"``, ``"MPIW"``.
        coverage : float, optional
            Nominal coverage; the first assessed if omitted.
        model : str
            Which model; it may be omitted where only one has the metric.

        Raises
        ------
        InputError
            If no such record exists, or several models have one and none is named.

        Examples
        --------
        >>> import howsure
        >>> result = howsure.assess([1.0, 5.0], howsure.Intervals([0.0, 0.0], [2.0, 4.0], 0.9))
        >>> result.value("PICP"), result.value("mean-width")
        (0.5, 3.0)
        """
        return self.record(metric, coverage=coverage, model=model).value

    def record(self, metric: str, *, coverage: float | None = None, model: str = "") -> Record:
        """The record of a metric over all rows; arguments as in `value`."""
        metrics = {record.metric for record in self.records}
        name = metric if metric in metrics else metric_named(metric).name
        records = [
            record
            for record in self.records
            if record.metric == name
            and (not model or record.model == model)
            and (not record.group or name == "worst_group_shortfall")
            and (coverage is None or math.isclose(record.coverage, coverage, abs_tol=1e-9))
        ]
        models = dict.fromkeys(record.model for record in records)
        if len(models) > 1:
            listed = ", ".join(map(repr, models))
            raise InputError(f"model must be one of {listed} for {metric!r}, got none")
        if records:
            return records[0]
        what = f"{metric!r}" if metric == name else f"{metric!r} ({name})"
        at = "" if coverage is None else f" at coverage {coverage:g}"
        of = f" of model {model!r}" if model else ""
        elsewhere = self._elsewhere(name, coverage)
        raise InputError(f"metric was not assessed: {what}{at}{of}{elsewhere}")

    def _elsewhere(self, name: str, coverage: float | None) -> str:
        """How a message goes on of a metric that was not assessed so: at what it was."""
        of = [record for record in self.records if record.metric == name]
        models = ", ".join(dict.fromkeys(repr(record.model) for record in of))
        if coverage is None or not of:
            return f"; the models are {models}" if of else ""
        coverages = sorted({record.coverage for record in of if not math.isnan(record.coverage)})
        shares = ", ".join(f"{share:g}" for share in coverages)
        return (
            f"; assessed coverages are {shares}: use assess(…, coverage={coverage:g})"
            if coverages
            else ""
        )

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
        """Draw the curve or table of this name, with its companions; returns the axes."""
        from howsure.figures import plot
        from howsure.figures.layouts import layout_of

        layout = layout_of(name)
        companions = {*layout.companions, layout.points[0] if layout.points else ""}
        drawable: tuple[Curve | ResultTable, ...] = (*self.curves, *self.tables)
        items = [item for item in drawable if item.name == name]
        if not items:
            names = sorted({item.name for item in drawable})
            raise InputError(f"name must be one of {', '.join(names)}, got {name!r}")
        items += [item for item in drawable if item.name in companions]
        return plot(items, ax=ax)

    def to_frame(self, library: Library = "pandas") -> Any:
        """Every record as a row of a data frame.

        Parameters
        ----------
        library : {"pandas", "polars", "pyarrow"}
            Whose frame. pyarrow comes with howsure.

        Returns
        -------
        pandas.DataFrame, polars.DataFrame or pyarrow.Table
            Columns as the attributes of `Record`; ``options`` as text.

        Raises
        ------
        InputError
            If the library is another.
        MissingDependencyError
            If it is not installed.

        Examples
        --------
        >>> import howsure
        >>> result = howsure.assess([1.0, 5.0], howsure.Intervals([0.0, 0.0], [2.0, 4.0], 0.9))
        >>> result.to_frame("pyarrow").slice(0, 1)["metric"].to_pylist()
        ['empirical_coverage']
        """
        from howsure.report.plain import to_frame

        return to_frame(self.records, library)

    def numbers(self) -> dict[str, float]:
        """Every finite number over all rows, flat, as MLflow and W&B log them.

        Returns
        -------
        dict of str to float
            By measure, then its coverage where it has one, as ``empirical_coverage_0.9``, after
            ``model/`` for several models. Findings are counted by state, as ``findings_bad``.
            Names contain only letters, digits and ``_ - . /``.

        Examples
        --------
        >>> import howsure
        >>> result = howsure.assess([1.0, 5.0], howsure.Intervals([0.0, 0.0], [2.0, 4.0], 0.9))
        >>> result.numbers()["empirical_coverage_0.9"]
        0.5
        >>> mlflow.log_metrics(result.numbers())  # doctest: +SKIP
        >>> wandb.log(result.numbers())  # doctest: +SKIP
        """
        models = list(dict.fromkeys(record.model for record in self.records))
        prefixes = dict(zip(models, _safe(models), strict=True))
        numbers: dict[str, float] = {}
        for record in self.records:
            is_of_all = not record.group or record.metric == "worst_group_shortfall"
            if not (is_of_all and math.isfinite(record.value)):
                continue
            at = "" if math.isnan(record.coverage) else f"_{record.coverage:g}"
            before = f"{prefixes[record.model]}/" if len(models) > 1 else ""
            numbers.setdefault(f"{before}{record.metric}{at}", float(record.value))
        for state in get_args(State):
            count = sum(finding.state == state for finding in self.findings)
            numbers[f"findings_{state}"] = float(count)
        return numbers

    def document(self) -> Document:
        """The report that every form is made of."""
        return self._document(self.whole(), drawn=True)

    def brief_document(self) -> Document:
        """The report of the verdict and the key numbers, without further computation."""
        return self._document(self.brief, drawn=False)

    def _document(self, basis: Basis, *, drawn: bool) -> Document:
        from howsure.report.questions import document_of

        return document_of(
            title=self.title,
            answer=self.answer,
            lines=self.lines,
            findings=self.findings,
            advice=self.advice,
            records=basis.records,
            curves=basis.curves,
            tables=basis.tables,
            facts=basis.facts,
            command=self.command,
            drawn=drawn,
        )

    def to_markdown(self) -> str:
        """A screen or two of Markdown, as for a pull request: the verdict and the key numbers."""
        from howsure.report.plain import pull_request

        return pull_request(self.brief_document())

    def __str__(self) -> str:
        return self.verdict

    def __repr__(self) -> str:
        lines = [
            f"  {TONES[line.tone][0]} {one_line(line.in_full, _MAX_CHARACTERS)}"
            for line in self.lines[:_MAX_LINES]
        ]
        more = len(self.lines) - len(lines)
        names = "print(result), result.value(name), result.to_frame(), result.save(path)"
        ending = f"  … {more} more: {names}" if more > 0 else f"  {names}"
        return "\n".join([f"Assessment: {self.title}", *lines, ending])

    def _repr_html_(self) -> str:
        from howsure.report.plain import notebook

        return notebook(self.document())


def _safe(names: list[str]) -> list[str]:
    """Names of letters, digits and ``_ - .``, still distinct."""
    safe_names: list[str] = []
    for name in names:
        plain = re.sub(r"[^A-Za-z0-9_.-]+", "_", name) or "model"
        copies = (plain if k == 1 else f"{plain}_{k}" for k in itertools.count(1))
        safe_names.append(next(copy for copy in copies if copy not in safe_names))
    return safe_names
