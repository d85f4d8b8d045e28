"""Long tables, a row for each level or draw of a prediction, made wide: a row for each case."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from howsure.core.arrays import AnyArray, BoolArray, FloatArray, IntArray, in_percent
from howsure.core.classes import frozen
from howsure.core.errors import InputError
from howsure.core.text import quoted
from howsure.inputs import values
from howsure.inputs.cells import ParsedColumns
from howsure.inputs.names import NAMELESS, normal_form
from howsure.inputs.roles import BY_NAME, LONG, name_roles
from howsure.inputs.source import MISSING_WORDS, Source, listed
from howsure.inputs.values import Labels, in_order_of_rows

_TYPES = ("quantile", "sample", "point", "median", "mean")
_UNREAD = ("cdf", "pmf")
_BESIDE = ", or coverages with a boundary of lower and upper"
# Share of numbers between 0 and 1 above which a column has levels, and others are errors. By hand.
_MIN_SHARE_OF_LEVELS = 0.9
# Cells of the wide table for one of the long one: 20 times is a table of few rows each with other
# levels, most of it empty. By hand; a bound of memory.
_CELLS_PER_ROW = 20


class _CaseColumns(NamedTuple):
    """The columns that identify the rows of one case."""

    names: tuple[str, ...]
    phrase: str  # how a message says how cases are distinguished


def is_long(cells: ParsedColumns) -> bool:
    """Whether the content is that of a long table, where names alone say that it is."""
    roles = cells.roles
    if any(roles[role] and role not in roles.guessed for role in LONG):
        return True
    kinds = _row_kinds(cells)
    if kinds is None:
        return False
    if roles["output_type"]:
        return True
    if roles["quantile_level"]:
        levels = _levels(cells)
        finite = levels[np.isfinite(levels)]
        sure = re.sub(r"[\s\-]+", "_", roles["quantile_level"][0].lower()) == "quantile_level"
        inside = (finite > 0) & (finite < 1)
        bounded = inside | (finite == 0) | (finite == 1)
        fair = bool(inside.any()) and bool(bounded.mean() > _MIN_SHARE_OF_LEVELS)
        y = cells.column("y")
        alone = y is not None and np.ptp(y) == 0
        return sure or (fair and (len(np.unique(finite)) < len(finite) or alone))
    draws = cells.column("sample_id").codes
    different = len(np.unique(draws))
    if different < 2:
        return False
    cases = _case_codes(cells, _case_columns(cells, draws).names)
    count = int(cases.max(initial=-1)) + 1
    if cells.column("y") is None:
        pairs = len(np.unique(cases * len(cells.column("sample_id").labels) + draws))
        return count > 1 and pairs == cells.n == count * different
    order = np.lexsort((draws, cases))
    cases, sorted_draws, y = cases[order], draws[order], _y(cells)[order]
    same = cases[1:] == cases[:-1]
    broken = same & ((y[1:] != y[:-1]) | (sorted_draws[1:] == sorted_draws[:-1]))
    several = np.bincount(cases, minlength=count) > 1
    several[cases[1:][broken]] = False
    return bool(several.mean() > 0.5) or _cases_by_position(cells, draws) is not None


def without_long(flags: Mapping[str, Any]) -> dict[str, Any]:
    """What is said of columns, and that the table is no long one."""
    return {**flags, **{role: flags.get(role) or "" for role in LONG}}


def widened(
    cells: ParsedColumns, parts: Iterable[ParsedColumns], missing: str
) -> list[ParsedColumns]:
    """The parts of a long table, one for each model, with a row for each case."""
    columns = _case_columns(cells, _part_codes(cells))
    return [_wide(model, columns, missing) for model in parts]


def refuse_long(cells: ParsedColumns, rule: str = "each row must be a case") -> None:
    """Raise `InputError` for a long table where a row must be a case."""
    for role in LONG:
        for name in cells.roles[role]:
            raise InputError(
                f"{cells.title}: {rule}, but {quoted(name)} makes this a long table, with one row "
                f"per level or draw; convert it to wide form first, or pass "
                f"{name_roles(**{role: ''})} if it is not one"
            )


def _row_kinds(cells: ParsedColumns) -> IntArray | None:
    """What each row holds, as a place in `_TYPES`, −1 for what is not read; None if untold."""
    roles = cells.roles
    if not roles["output_type"]:
        both = roles["quantile_level"] and roles["sample_id"]
        return None if both else np.full(cells.n, 1 if roles["sample_id"] else 0)
    types: Labels = cells.column("output_type")
    names = [str(label).strip().lower() for label in types.labels]
    if not {names[code] for code in np.unique(types.codes)} <= {*_TYPES, *_UNREAD}:
        return None
    numbers = [_TYPES.index(name) if name in _TYPES else -1 for name in names]
    return np.asarray(np.asarray(numbers)[types.codes])


def _levels(cells: ParsedColumns) -> FloatArray:
    """The level that each row names; NaN where it names none."""
    levels: FloatArray = cells.column("quantile_level").mapped(_level)
    if cells.roles["boundary"]:
        share = levels / 100 if (levels > 1).any() else levels
        sides = _sides(cells)
        levels = np.where(np.isfinite(sides), 0.5 + sides * share / 2, math.nan)
    return levels


def _level(text: str) -> float:
    try:
        return float(text if "." in text else text.replace(",", "."))
    except (ValueError, OverflowError):
        return math.nan


def _sides(cells: ParsedColumns) -> FloatArray:
    """−1 for the lower end of an interval, 1 for the upper one, NaN for what is neither."""
    ends: Labels = cells.column("boundary")
    sides = {"lower": -1.0, "upper": 1.0}
    return ends.mapped(lambda text: sides.get(text.strip().lower(), math.nan))


def _part_codes(cells: ParsedColumns) -> IntArray:
    """Codes of what says which part of a prediction each row holds."""
    return _case_codes(cells, [name for role in LONG for name in cells.roles[role]])


def _case_codes(cells: ParsedColumns, names: Iterable[str]) -> IntArray:
    """Codes of rows that are equal in some columns."""
    columns = [cells.columns["key", name].codes for name in names]
    return codes_of(columns) if columns else np.zeros(cells.n, dtype=np.int64)


def codes_of(columns: Sequence[AnyArray]) -> IntArray:
    """Codes from 0 on of rows that are equal in all columns."""
    codes = np.zeros(len(columns[0]), dtype=np.int64)
    for column in columns:
        if column.dtype.kind == "i":
            column = column - column.min(initial=0)
        else:
            column = np.unique(column, return_inverse=True)[1]
        codes = np.unique(codes * (int(column.max(initial=0)) + 1) + column, return_inverse=True)[1]
    return np.asarray(codes)


def _case_columns(cells: ParsedColumns, part_codes: IntArray) -> _CaseColumns:
    """Which columns distinguish cases.

    All that have no other office, but for those that number the rows, or follow the level alone.
    """
    roles = cells.roles
    taken = {name for role in ("y", "point", "model", *LONG) for name in roles[role]}
    parts = len(np.unique(part_codes))
    several = 1 < parts < cells.n
    names = []
    for kind, name in cells.columns:
        if kind != "key" or name in taken:
            continue
        labels: Labels = cells.columns["key", name]
        used = len(np.unique(labels.codes))
        if used < 2 or NAMELESS.fullmatch(name) or (several and used == cells.n):
            continue
        if several and len(np.unique(part_codes * len(labels.labels) + labels.codes)) == parts:
            continue
        names.append(name)
    row_names = [name for name in roles["rows"] if name in names]
    if row_names:
        return _CaseColumns(tuple(row_names), f"distinguished by {quoted(row_names[0])}")
    phrase = f"distinguished by {listed(names) if names else 'their order'}"
    return _CaseColumns(tuple(names), phrase)


def _cases_by_position(cells: ParsedColumns, part_codes: IntArray) -> IntArray | None:
    """Cases by the place of their rows among those of the same part, where y shows that it is so.

    The place says nothing where y hardly varies, or is not the same in every part.
    """
    order = np.argsort(part_codes, kind="stable")
    counts = np.unique(part_codes, return_counts=True)[1]
    if len(counts) < 2 or len(set(counts.tolist())) > 1:
        return None
    y = _y(cells)[order].reshape(len(counts), -1)
    if not (y == y[0]).all() or not telling(y[0]):
        return None
    return _positions(order, counts)


def _positions(order: IntArray, counts: IntArray) -> IntArray:
    """The position of each row within its group, of rows that an order sorts by groups."""
    positions = np.empty(len(order), dtype=np.int64)
    positions[order] = np.arange(len(order)) - np.repeat(np.cumsum(counts) - counts, counts)
    return positions


def _y(cells: ParsedColumns) -> FloatArray:
    """What happened; zeros where that is unknown."""
    y = cells.column("y")
    return np.zeros(cells.n) if y is None else np.asarray(y)


def telling(y: FloatArray) -> bool:
    """Whether y varies enough for rows to be known by it."""
    distinct = len(np.unique(y))
    return distinct >= 5 and 2 * distinct >= len(y)


def _wide(cells: ParsedColumns, by: _CaseColumns, missing: str) -> ParsedColumns:
    """One model's long table as one with one row per case."""
    roles, notes, title = cells.roles, list(cells.notes), cells.title
    kinds = _checked_kinds(cells)
    if roles["boundary"]:  # both ends of the interval of coverage 0 are the median
        again = (_levels(cells) == 0.5) & (_sides(cells) > 0)
        if not again.all():
            cells, kinds = cells.take(~again), kinds[~again]
    if (kinds < 0).any():
        notes.append(f"{title}: {int((kinds < 0).sum()):,} rows of {listed(_UNREAD)} are not read")
        cells, kinds = cells.take(kinds >= 0), kinds[kinds >= 0]
    if cells.n == 0:
        raise InputError(f"{title}: no row is a quantile, a draw or a point")
    codes = _case_codes(cells, by.names)
    if not by.names and (positions := _cases_by_position(cells, _part_codes(cells))) is not None:
        codes = positions
    codes, first = in_order_of_rows(codes)
    cases = _Cases(cells, by, codes, first, missing)
    _check_one_y(cases)
    _check_constant(cases)
    columns = {
        key: column
        for key, column in cells.take(first).columns.items()
        if key[0] != "key" and key[1] not in roles["point"]
    }
    assigned = {
        role: names for role, names in roles.columns.items() if role not in (*LONG, "point")
    }

    def add(role: str, names: Sequence[str], table: FloatArray) -> None:
        assigned[role] = tuple(names)
        columns.update({("number", name): table[:, k] for k, name in enumerate(names)})

    levels: tuple[float, ...] = ()
    chosen = kinds == 0
    if chosen.any():
        stated = _checked_levels(cells, chosen)[chosen]
        # 0.1 + 0.2 and 0.3 are one level
        rounded, part_codes = np.unique(np.round(stated, 12), return_inverse=True)
        least = np.full(len(rounded), 1.0)
        np.minimum.at(least, part_codes, stated)
        levels = tuple(least.tolist())
        table = _table(cases, chosen, part_codes, [f"level {level:g}" for level in levels])
        add("quantiles", [f"{roles['point'][0]} at {level:g}" for level in levels], table)
    chosen = kinds == 1
    if chosen.any():
        table = _draws(cases, chosen)
        add("samples", [f"draw {k + 1}" for k in range(table.shape[1])], table)
    for kind in (2, 3, 4):
        chosen = kinds == kind
        if chosen.any() and "point" not in assigned:
            part_codes = np.zeros(int(chosen.sum()), dtype=np.int64)
            add("point", [_TYPES[kind]], _table(cases, chosen, part_codes, [_TYPES[kind]]))
    if by.names and not roles["rows"]:
        assigned["rows"] = ("case",)
        columns["name", "case"] = cases.names()
    notes.append(
        f"{title}: {cells.n:,} rows of a long table form {len(first):,} cases, {by.phrase}"
    )
    return replace(
        cells,
        roles=replace(roles, columns=assigned, levels=levels),
        columns=columns,
        places=cells.places[first] if by.names else np.arange(len(first)),
        notes=tuple(notes),
    )


@frozen
class _Cases:
    """Which rows are of one case, with the first of each, and the columns that distinguish them."""

    cells: ParsedColumns
    by: _CaseColumns
    codes: IntArray
    first: IntArray
    missing: str

    def __len__(self) -> int:
        return len(self.first)

    def describe(self, case: int) -> str:
        """One case in words."""
        if not self.by.names:
            return f"case {case}, counting from 0"
        row = self.first[case]
        labels = {name: self.cells.columns["key", name].at(row) for name in self.by.names[:5]}
        return ", ".join(f"{name} {quoted(str(label))}" for name, label in labels.items())

    def names(self) -> Any:
        """All of them, by the cells of those columns."""
        columns = []
        for name in self.by.names:
            labels: Labels = self.cells.columns["key", name]
            texts = np.asarray(["" if x is None else str(x) for x in labels.labels], dtype=object)
            columns.append(texts[labels.codes[self.first]].tolist())
        rows = list(zip(*columns, strict=True))
        names = list(map(", ".join, rows))
        if len(set(names)) < len(names):
            names = [" | ".join(map(repr, row)) for row in rows]
        return np.array(names, dtype=object)


def _checked_kinds(cells: ParsedColumns) -> IntArray:
    kinds, roles = _row_kinds(cells), cells.roles
    if kinds is not None:
        for kind, role in ((0, "quantile_level"), (1, "sample_id")):
            columns = roles[role] or (roles["quantile_level"] if kind else ())
            if (kinds == kind).any() and not columns:
                raise InputError(
                    f"{cells.title}: rows of the type {_TYPES[kind]!r} need a column that "
                    f"identifies them: pass {name_roles(**{role: ...})}"
                )
        return kinds
    if roles["output_type"]:
        types: Labels = cells.column("output_type")
        texts = [str(types.labels[code]) for code in np.unique(types.codes)]
        raise InputError(
            f"{cells.title}: output_type must contain {listed((*_TYPES, *_UNREAD))}, got "
            f"{listed(texts)}"
        )
    raise InputError(
        f"{cells.title}: quantile_level ({quoted(roles['quantile_level'][0])}) and sample_id "
        f"({quoted(roles['sample_id'][0])}) both state what a row contains: pass "
        f"{name_roles(quantile_level='')}, {name_roles(sample_id='')} or "
        f"{name_roles(output_type=...)}"
    )


def _checked_levels(cells: ParsedColumns, chosen: BoolArray) -> FloatArray:
    levels = _levels(cells)
    wrong = chosen & ~((levels >= 0) & (levels <= 1))  # the ends bound y
    if wrong.any():
        (name,) = cells.roles["quantile_level"]
        row = int(np.argmax(wrong))
        label = cells.columns["key", name].at(row)
        got = "" if label is None else str(label)
        percent = in_percent(float(got)) if got.isdigit() else ""
        percent += " Divide the column by 100; " if percent else "; "
        points = f"; if such rows contain point forecasts, pass {name_roles(output_type=...)}"
        raise InputError(
            f"{cells.title}: quantile_level must contain levels between 0 and "
            f"1{_BESIDE * bool(cells.roles['boundary'])}, got {quoted(got)} in column "
            f"{quoted(name)} at row {int(cells.places[row])}, counting from "
            f"0{percent}{name_roles(quantile_level='')} reads the table as "
            f"wide{points * (got in MISSING_WORDS)}"
        )
    return levels


def _check_one_y(cases: _Cases) -> None:
    y = cases.cells.column("y")
    first_y = y[cases.first][cases.codes]
    wrong = (y != first_y) & ~(np.isnan(y) & np.isnan(first_y))
    if wrong.any():
        row = int(np.argmax(wrong))
        count = len(np.unique(cases.codes[wrong]))
        raise InputError(
            f"{cases.cells.title}: y must be one number for each case of a long table, got "
            f"several in {count:,} of {len(cases):,} cases {cases.by.phrase} (first: "
            f"{first_y[row]:g} and {y[row]:g}); perhaps a column that distinguishes cases is "
            "missing"
        )


def _check_constant(cases: _Cases) -> None:
    """Raise where what is known of rows differs within a case."""
    cells = cases.cells
    for role, name, _ in cells.roles.uses():
        if role.kind in (None, "key") or role.name in ("y", "point", "model"):
            continue
        if name in cases.by.names or ("key", name) not in cells.columns:
            continue
        codes = cells.columns["key", name].codes
        if (codes != codes[cases.first][cases.codes]).any():
            raise InputError(
                f"{cells.title}: {role.name} must be the same in all rows of a case, but "
                f"{quoted(name)} differs within cases {cases.by.phrase}; pass "
                f"{name_roles(**{role.name: ''})} to ignore it"
            )


def _table(cases: _Cases, chosen: BoolArray, part_codes: IntArray, words: list[str]) -> FloatArray:
    """A row for each case and a column for each part, of the rows that are chosen."""
    codes = cases.codes[chosen]
    width = len(words)
    pair = codes * width + part_codes
    ordered = np.sort(pair)
    twice = ordered[1:][ordered[1:] == ordered[:-1]]
    title, phrase = cases.cells.title, cases.by.phrase
    if len(twice):
        case, column = divmod(int(twice[0]), width)
        raise InputError(
            f"{title}: a case must have each level once, got {words[column]} twice for "
            f"{cases.describe(case)}; cases are {phrase}: perhaps a column that distinguishes "
            f"them is missing; name one with {name_roles(rows=...)}"
        )
    short = np.flatnonzero(np.bincount(codes, minlength=len(cases)) < width)
    if len(short) and (
        cases.missing == "error" or len(cases) * width > _CELLS_PER_ROW * len(codes) + 1_000_000
    ):
        present = np.bincount(part_codes[codes == short[0]], minlength=width)
        lacking = words[int(np.argmin(present > 0))]
        every = f"its {words[0]}" if width == 1 else f"all {width} {words[0].split()[0]}s"
        raise InputError(
            f"{title}: every case must have {every}, but {len(short):,} of {len(cases):,} cases "
            f"are incomplete (first: {lacking} of {cases.describe(int(short[0]))}); cases are "
            f"{phrase}. {name_roles(missing='drop')} omits such cases"
        )
    table = np.full((len(cases), width), math.nan)
    table.reshape(-1)[pair] = cases.cells.column("point")[chosen]
    return table


def _draws(cases: _Cases, chosen: BoolArray) -> FloatArray:
    """Draws of each case in the order of their numbers, which need not be those of another."""
    roles = cases.cells.roles
    (name,) = roles["sample_id"] or roles["quantile_level"]
    labels: Labels = cases.cells.columns["key", name]
    used = np.unique(labels.codes[chosen])
    in_order = sorted(used.tolist(), key=lambda code: _numbered(labels.labels[code]))
    rank = np.zeros(len(labels.labels), dtype=np.int64)
    rank[in_order] = np.arange(len(used))
    codes, draw = cases.codes[chosen], rank[labels.codes[chosen]]
    order = np.lexsort((draw, codes))
    same = (codes[order][1:] == codes[order][:-1]) & (draw[order][1:] == draw[order][:-1])
    counts = np.bincount(codes, minlength=len(cases))
    width = int(counts.max())
    part_codes = _positions(order, counts)
    if same.any():
        part_codes = draw  # so that the same draw is met twice
        width = len(used)
    return _table(cases, chosen, part_codes, [f"draw {k + 1}" for k in range(width)])


def _numbered(label: Any) -> tuple[float, str]:
    """Labels in the order of the numbers in them."""
    text = str(label)
    digits = re.search(r"\d+", text)
    return (float(digits[0]) if digits else math.inf), text


# ---- rows of several models under one another, where no column was taken for the model's name ----

# More labels than that are rarely models, and each is assessed. By hand.
MAX_MODELS = 100
# That labels at random share out rows that are k times there as k models would, at most: a refusal
# by mistake must be rare.
_MAX_CHANCE = 1e-3
# Share of rows that must be those of every label: a few that some model lacks hide no stack.
_MIN_SHARE_OF_ROWS = 0.9


def check_unstacked(table: Source, cells: ParsedColumns) -> None:
    """Raise `InputError` where the labels of a column evidently are models on the same rows.

    They are where each label has the same rows: the same names of rows or, without names, the
    same y and inputs, as often and varied enough for that to be no chance. Where a column was
    taken for the model's name, it is asked of the first model, and of levels of quantiles alone.
    """
    models = cells.column("model")
    if models is not None and _is_wide(cells):
        return
    rows = np.flatnonzero(np.isfinite(cells.column("y")))
    if models is not None:
        rows = rows[models.codes[rows] == models.codes[0]]
    cells = cells if len(rows) == cells.n else cells.take(rows)
    roles, y = cells.roles, cells.column("y")
    stated = {name for role, name, _ in roles.uses() if role.name not in roles.guessed}
    taken = stated | {name for role, name, _ in roles.uses() if role.name != "groups"}
    free = [name for name in table.names if name and name not in taken]
    names = cells.column("rows")
    if not free or len(y) < 10:
        return
    units = codes_of([y])
    if names is not None:
        units = codes_of([names.astype(str)])
        if len(np.unique(units)) == len(units) or not _one_y(units, y):
            return
    elif not _repeats(units):
        return
    inputs = [column for role in ("features", "time") for column in cells.of(role).values()]
    columns = table.read(dict.fromkeys(free, "key"))
    stacked = []
    for name in free:
        labels = values.keys(columns[name], name).take(rows)
        used = np.unique(labels.codes)
        if not 2 <= len(used) <= MAX_MODELS:
            continue
        shown = [str(labels.labels[code]) for code in used]
        if models is not None:  # beside which per cent are levels where the name helps
            percent = BY_NAME["quantile_level"].matches(normal_form(name))
            if not _lie_within(shown, 100 if percent else 1):
                continue
        other_inputs = [
            c for c in inputs if not (isinstance(c, Labels) and _same(c.codes, labels.codes))
        ]
        if names is not None:
            sure = _names_again(units, labels.codes)
        else:
            sure = _rows_again(y, other_inputs, labels.codes, len(used))
        if sure:
            stacked.append((name, shown))
    if not stacked:
        return
    name, shown = stacked[0]
    if models is not None:
        raise InputError(
            f"{cells.title}: the labels of {quoted(name)} ({listed(shown, 3)}) each have the "
            f"same rows of one model, like levels of quantiles: pass "
            f"{name_roles(quantile_level=name)}, or {name_roles(quantile_level='')} if they are not"
        )
    more = f" (as do those of {listed(n for n, _ in stacked[1:])})" * (len(stacked) > 1)
    levels = ""
    if not _is_wide(cells) and _lie_within(shown, 100):
        levels = f"; for levels of quantiles, as shares, pass {name_roles(quantile_level=name)}"
    raise InputError(
        f"{cells.title}: the labels of {quoted(name)} ({listed(shown, 3)}) each have the same "
        f"rows{more}, like models one below the other: pass {name_roles(model=name)}, or "
        f"{name_roles(model='')} if they are not models{levels}"
    )


def _lie_within(labels: Sequence[str], most: float) -> bool:
    """Whether all labels are numbers between 0 and another."""
    try:
        return all(0 < float(label) < most for label in labels)
    except ValueError:
        return False


def _is_wide(cells: ParsedColumns) -> bool:
    """Whether a row holds more than a point forecast."""
    wide = ("lower", "sd", "variance", "quantiles", "samples", "law")
    return any(cells.roles[role] for role in wide)


def _same(first: IntArray, other: IntArray) -> bool:
    """Whether two columns of codes divide rows alike."""
    pairs = len(np.unique(codes_of([first, other])))
    return pairs == len(np.unique(first)) == len(np.unique(other))


def _repeats(units: IntArray) -> bool:
    """Whether models may repeat values of y: all alike, or nearly all where y tells rows."""
    counts = np.unique(units, return_counts=True)[1]
    alike = (counts > 1).mean() >= _MIN_SHARE_OF_ROWS and len(counts) * MAX_MODELS >= len(units)
    return alike or math.gcd(*counts.tolist()) > 1


def _one_y(units: IntArray, y: FloatArray) -> bool:
    """Whether rows of one name have one y, those of its most frequent value aside, and y varies."""
    first = np.unique(units, return_index=True)[1]
    distinct, counts = np.unique(y, return_counts=True)
    same = (y[first][units] == y)[y != distinct[np.argmax(counts)]]
    return len(distinct) >= 5 and bool(same.mean() >= _MIN_SHARE_OF_ROWS)


def _names_again(units: IntArray, labels: IntArray) -> bool:
    """Whether most names of rows stand under several labels, and few twice under one."""
    if len(np.unique(codes_of([units, labels]))) < _MIN_SHARE_OF_ROWS * len(units):
        return False
    return bool((np.bincount(units) > 1).mean() > 0.5)


def _under_every_label(units: IntArray, labels: IntArray, used: int) -> BoolArray:
    """Which rows are of units that stand under every label, equally often."""
    pairs = codes_of([units, labels])
    _, first, counts = np.unique(pairs, return_index=True, return_counts=True)
    pair_units = units[first]
    least, most = np.full(units.max() + 1, len(units)), np.zeros(units.max() + 1, dtype=np.int64)
    np.minimum.at(least, pair_units, counts)
    np.maximum.at(most, pair_units, counts)
    return np.asarray(((np.bincount(pair_units) == used) & (least == most))[units])


def _rows_again(y: FloatArray, inputs: Sequence[Any], labels: IntArray, used: int) -> bool:
    """Whether all labels hold nearly the same rows, told by y and by what is known of inputs."""
    plain = [column.codes if isinstance(column, Labels) else column for column in inputs]
    units = codes_of([y, *plain])
    shared = _under_every_label(units, labels, used)
    if shared.mean() < _MIN_SHARE_OF_ROWS or shared.sum() < 5 * used:
        return False
    y, units, labels = y[shared], units[shared], labels[shared]
    blocks = units[np.lexsort((units, labels))].reshape(used, -1)
    sequence = y[np.argsort(labels, kind="stable")].reshape(used, -1)
    in_blocks = np.count_nonzero(np.diff(labels)) == used - 1 and (sequence == sequence[0]).all()
    chance = (math.factorial(min(used, 20)) / min(used, 20) ** min(used, 20)) ** blocks.shape[1]
    if chance > _MAX_CHANCE and not in_blocks:
        return False
    if telling(blocks[0]) if inputs else telling(sequence[0]):
        return True
    steps = np.diff(sequence[0])
    varied = len(np.unique(sequence[0])) >= max(5, len(steps) / 4)
    sorted_ = (steps >= 0).all() or (steps <= 0).all()
    return bool((sequence == sequence[0]).all() and varied and not sorted_)
