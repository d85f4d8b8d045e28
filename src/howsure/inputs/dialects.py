"""How libraries call and write columns, where a name or a cell alone would be misread."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from howsure.core.arrays import FloatArray, IntArray
from howsure.core.errors import InputError, within
from howsure.core.text import quoted
from howsure.inputs import values
from howsure.inputs.names import normal_form
from howsure.inputs.roles import Kinds, name_roles
from howsure.inputs.source import MISSING_WORDS, Source, in_lines, listed
from howsure.inputs.values import arrow_of, is_text

# ---- names ---------------------------------------------------------------------------------------

_PROPHET = frozenset(("ds", "yhat", "yhat_lower", "yhat_upper"))
_STATSMODELS = ("mean_ci_lower", "mean_ci_upper")
_TIDY = (".lower", ".upper", ".width")
OF_MEAN = (".epred", ".linpred", ".value")
"""What tidybayes calls the mean of y: ``.value`` is from versions that had ``add_fitted_draws``."""
_OF_Y = "in R, use add_predicted_draws instead of add_epred_draws"


def is_prophet(plain: Iterable[str]) -> bool:
    """Whether names, in normal form, are those of a forecast of Prophet's."""
    return _PROPHET.issubset(plain)


def idle_columns(names: Iterable[str]) -> dict[str, str]:
    """Columns that a library writes beside its prediction, and why they play no role in it."""
    name_of = {normal_form(name): name for name in names}
    reasons = {}
    if is_prophet(name_of):
        for plain, name in name_of.items():
            stem = re.sub("_(lower|upper)$", "", plain)
            parts = {stem, f"{stem}_lower", f"{stem}_upper"}
            if stem not in ("yhat", "y") and parts <= name_of.keys():
                reasons[name] = "a component of Prophet's forecast"
    if {*_STATSMODELS, "obs_ci_lower", "obs_ci_upper"} <= name_of.keys():
        for plain in (*_STATSMODELS, "mean_se"):
            if plain in name_of:
                reasons[name_of[plain]] = "of the mean of y; for y itself use obs_ci"
    return reasons


def usual_coverage(names: Iterable[str]) -> tuple[str, str]:
    """The coverage that a library's intervals have where nothing else was asked, and why."""
    plain = {normal_form(name) for name in names}
    if is_prophet(plain):
        return "0.8", "Prophet's default interval_width"
    if {"obs_ci_lower", "obs_ci_upper"} <= plain:
        return "0.95", "summary_frame's default (alpha=0.05)"
    return "0.9", ""


def refuse_mean_intervals(names: Iterable[str], name: str = "") -> None:
    """Refuse statsmodels' intervals where nothing tells whether they are of y or of its mean.

    `name` is what a message calls a frame beside a y of its own.
    """
    name_of = {normal_form(column): column for column in names}
    if not {*_STATSMODELS, "mean"} <= name_of.keys() or "obs_ci_lower" in name_of:
        return
    lower, upper = (name_of[plain] for plain in _STATSMODELS)
    way = name_roles(lower=lower, upper=upper, coverage=0.95)
    silent = f"then pass {name_roles(lower='')}"
    if name:
        way = f"({name}[{lower!r}], {name}[{upper!r}]) with coverage=0.95"
        silent = "give only the mean"
    raise InputError(
        f"{quoted(lower)} and {quoted(upper)} may be intervals of the mean of y (a regression's "
        "summary_frame) or of y (the forecast of a state space model, such as SARIMAX): for y "
        f"give {way}; intervals of the mean are not prediction intervals; {silent}"
    )


# ---- cells ---------------------------------------------------------------------------------------

_NUMBER = r"\s*([-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?|-?Inf)\s*"
_HILO = re.compile(rf"[\[(]{_NUMBER},{_NUMBER}[\])]\s*(\d*\.?\d+)\s*%?")
_NORMAL = re.compile(rf"N\({_NUMBER},{_NUMBER}\)")
_OTHER = re.compile(
    r"(t|lN|Pois|NB|B|Geom|Γ|Gamma|Exp|U|Beta|Student_t|sample|mixture|inflated|truncated|transformed)"
    r"[(\[].*[)\]]"
)
_PERCENT = re.compile(r"\d+(\.\d+)?%")


class DerivedTable(Source):
    """A table some of whose columns are made of others, and perhaps some of whose rows remain."""

    def __init__(
        self,
        base: Source,
        derived: Mapping[str, FloatArray],
        *,
        without: Iterable[str],
        notes: Sequence[str],
        rows: IntArray | None = None,
    ) -> None:
        gone = set(without)
        self.title, self.folder = base.title, base.folder
        self.from_text, self.decimal = base.from_text, base.decimal
        self.first_row = base.first_row
        self.notes = (*base.notes, *notes)
        self.names = (*(name for name in base.names if name not in gone), *derived)
        self._base, self._made, self._rows = base, dict(derived), rows
        self.check_names()

    @property
    def lined(self) -> bool:
        """As the table's that it is made of."""
        return self._base.lined

    @property
    def stem(self) -> str:
        """As the table's that it is made of."""
        return self._base.stem

    def read(self, kinds: Kinds) -> pa.Table:
        """The named columns."""
        base_kinds = {name: kind for name, kind in kinds.items() if name not in self._made}
        table = self._take_rows(self._base.read(base_kinds)) if base_kinds else pa.table({})
        return self._with_made(table, list(kinds))

    def read_all(self) -> pa.Table:
        """Every column."""
        table = self._take_rows(self._base.read_all())
        return self._with_made(table, list(self.names))

    def line(self, row: int) -> int | str:
        """As in the table that it is made of."""
        return self._base.line(row if self._rows is None else int(self._rows[row]))

    def _take_rows(self, table: pa.Table) -> pa.Table:
        return table if self._rows is None else table.take(pa.array(self._rows))

    def _with_made(self, table: pa.Table, names: Sequence[str]) -> pa.Table:
        return pa.table(
            {
                name: arrow_of(self._made[name]) if name in self._made else table[name]
                for name in names
            }
        )


def refuse_draws_of_mean(names: Iterable[str]) -> None:
    """Refuse draws of the mean of y, whose spread lacks the noise of y."""
    for name in names:
        if normal_form(name) in OF_MEAN:
            raise InputError(f"draws in {quoted(name)} are of the mean of y, not of y: {_OF_Y}")


def adapted(source: Source) -> Source:
    """A table in the dialect of a library as one of plain columns; any other as it is."""
    plain = {normal_form(name) for name in source.names}
    printed = plain & {".mean", "distribution", ".distribution"}
    with in_lines([source]) as lent:
        if {*_TIDY} <= plain:
            return _of_tidybayes(next(lent))
        if printed or any(map(_PERCENT.fullmatch, plain)):
            return _unpacked(next(lent))
    return source


def _of_tidybayes(source: Source) -> Source:
    """Intervals of tidybayes and ggdist: a row for each case and width."""
    name_of = {normal_form(name): name for name in source.names}
    lower, upper, width = (name_of[name] for name in _TIDY)
    of_mean = [name_of[name] for name in OF_MEAN if name in name_of]
    if of_mean:
        raise InputError(
            f"{source.title}: the intervals with {quoted(of_mean[0])} are of the mean of y, not "
            f"of y: {_OF_Y}"
        )
    table = source.read(dict.fromkeys((lower, upper, width), "number"))
    with within(source.title):
        ends = {
            name: values.numbers(table[name], name, decimal=source.decimal)
            for name in (lower, upper, width)
        }
    widths = np.unique(ends[width])
    if not ((widths > 0) & (widths < 1)).all():
        raise InputError(
            f"{source.title}: column {quoted(width)} must contain coverages between 0 and 1, got "
            f"{', '.join(f'{value:g}' for value in widths[:5])}"
        )
    coverages_told = " and ".join(f"{100 * value:g} %" for value in widths)
    note = f"{lower}, {upper} and {width} read as intervals at {coverages_told}"
    cases = _cases(source, {lower, upper, width}) if len(widths) > 1 else None
    columns: dict[str, FloatArray] = {}
    rows = None
    if cases is not None:
        rows = np.unique(cases, return_index=True)[1]
        counts = np.bincount(cases, minlength=len(rows))
        pairs = np.unique(np.column_stack([cases, np.searchsorted(widths, ends[width])]), axis=0)
        irregular = int((counts != len(widths)).sum())
        if irregular or len(pairs) < len(cases):
            raise InputError(
                f"{source.title}: each case must have one row for each of the widths "
                f"{', '.join(f'{value:g}' for value in widths)}; {irregular} of {len(rows)} "
                "cases have others. A case consists of rows that agree in all columns except "
                f"{lower}, {upper} and {width}"
            )
        note += f", {len(cases):,} rows as {len(rows):,} cases"
    for value in widths:
        here = ends[width] == value
        for side, name in (("lower", lower), ("upper", upper)):
            side_ends = ends[name][here]
            if cases is not None:
                side_ends = side_ends[np.argsort(cases[here], kind="stable")]
            columns[f"{side}_{value:g}"] = side_ends
    return DerivedTable(source, columns, without=(lower, upper, width), notes=(note,), rows=rows)


def _cases(source: Source, without: set[str]) -> IntArray:
    """The number of each row's case, in the order of their first rows: rows alike in the rest."""
    names = [name for name in source.names if name not in without and name]
    table = source.read(dict.fromkeys(names, "key"))
    codes = np.column_stack(
        [values.keys(table[name], name).codes for name in names]
        or [np.arange(table.num_rows, dtype=np.int64)]
    )
    codes = np.unique(codes, axis=0, return_inverse=True)[1].reshape(-1)
    return values.in_order_of_rows(codes)[0]


def _unpacked(source: Source) -> Source:
    """Columns of fable: intervals such as [1.2, 3.4]95, and distributions such as N(3.1, 2.4)."""
    columns: dict[str, FloatArray] = {}
    gone: list[str] = []
    notes: list[str] = []
    for name, cells in _texts(source).items():
        first = _first(cells)
        before = dict(columns)
        if _HILO.fullmatch(first):
            matched = _matched(_HILO, cells, name, source.title, "[1.2, 3.4]95")
            ends = np.array([[groups[k] for groups in matched] for k in (1, 2)], dtype=np.float64)
            shares = {groups[3] for groups in matched} - {"nan"}
            if len(shares) > 1:
                raise InputError(
                    f"{source.title}: column {quoted(name)} must contain intervals of one "
                    f"coverage, got {listed(sorted(shares), 3)} %"
                )
            share = f"{round(float(shares.pop()) / 100, 12):g}"
            columns |= {f"lower_{share}": ends[0], f"upper_{share}": ends[1]}
            notes.append(f"{name} split into the two ends of intervals at {100 * float(share):g} %")
        elif _OTHER.fullmatch(first):
            raise InputError(
                f"{source.title}: column {quoted(name)} contains distributions as text, and "
                f"{quoted(first)} is not a normal one: in R, write its quantiles, intervals "
                "(hilo, then unpack_hilo) or parameters as columns"
            )
        elif _NORMAL.fullmatch(first):
            matched = _matched(_NORMAL, cells, name, source.title, "N(3.1, 2.4)")
            mean, variance = (
                np.array([groups[k] for groups in matched], dtype=np.float64) for k in (1, 2)
            )
            with np.errstate(invalid="ignore"):
                columns |= {"mean": mean, "sd": np.sqrt(variance)}
            notes.append(
                f"{name} read as normal distributions, the second number of {first} as the "
                "variance; text has few digits: in R, use mean(.) and sqrt(variance(.)) for all "
                "digits"
            )
        else:
            continue
        gone.append(name)
        if twice := [
            column
            for column in columns
            if before.get(column, columns[column]) is not columns[column]
        ]:
            raise InputError(
                f"{source.title}: columns {listed(gone)} define {' and '.join(twice)} more than "
                "once: keep one of them"
            )
    if not gone:
        return source
    return DerivedTable(source, columns, without=gone, notes=notes)


def _texts(source: Source) -> dict[str, pa.ChunkedArray]:
    """The columns of text."""
    try:
        table = source.read(dict.fromkeys([name for name in source.names if name], "text"))
    except InputError:
        return {}  # lists in cells, as of embeddings
    return {name: table[name] for name in table.column_names if is_text(table[name].type)}


def _first(cells: pa.ChunkedArray) -> str:
    """The first cell that is not empty."""
    texts = (cell.as_py() for chunk in cells.chunks for cell in chunk)
    return next((text.strip() for text in texts if text and text.strip() not in MISSING_WORDS), "")


_GONE = ("", "nan", "nan", "nan")


def _matched(
    pattern: re.Pattern[str], cells: pa.ChunkedArray, name: str, title: str, such: str
) -> list[Any]:
    """Each cell taken apart; a missing one is NaN."""
    matches: list[Any] = []
    for row, text in enumerate(cells.to_pylist()):
        cell = "" if text is None else text.strip()
        match = pattern.fullmatch(cell)
        if match is None and cell not in MISSING_WORDS:
            raise InputError(
                f"{title}: column {quoted(name)} must contain cells such as {such}, got "
                f"{quoted(cell)} at row {row}, counting from 0"
            )
        matches.append(_GONE if match is None else match)
    return matches
