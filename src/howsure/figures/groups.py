"""Coverage of all rows and of groups, models side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from howsure.core import formats
from howsure.core.classes import frozen
from howsure.core.records import ResultTable
from howsure.core.text import distinct, one_line
from howsure.figures.figure import HIGHLIGHT, REFERENCE, Axis, Figure, Layer, Mark, number
from howsure.figures.palette import SERIES_LIMIT

# Rows of 22 pixels: 260, within a screen beside the text. By eye.
MAX_GROUPS = 12
"""The most groups, of one model; several have fewer, so that the figure fits a screen."""
# Marks of all models together, and groups however many models: what fits a screen. By eye.
_MAX_MARKS, _MIN_GROUPS = 40, 5
_ALL = "All rows"
# How far a claim must be from the nominal coverage to have a mark of its own: nearer, they
# overlap.
_MIN_DISTANCE_OF_CLAIM = 0.005
# Kinds of rows, with their words, colours (of one model) and shapes.
_KINDS = (
    ("under", "under-covers", HIGHLIGHT, 5),
    ("", "consistent with its claim", 0, 0),
    ("over", "over-covers", 2, 2),
)
_SHAPES = "Triangles pointing down: under-covers; pointing up: over-covers."


@frozen
class _Cover:
    """The coverage of some rows: seen, its interval, what is claimed, what is nominal."""

    value: float
    lower: float
    upper: float
    claimed: float
    nominal: float
    n: float

    @property
    def kind(self) -> str:
        """Whether chance explains how it departs from what is claimed."""
        if self.upper < self.claimed:
            return "under"
        return "over" if self.lower > self.claimed else ""

    @property
    def short(self) -> float:
        """How far even its upper end lies below what is claimed."""
        return self.claimed - self.upper if np.isfinite(self.claimed) else -self.upper


Name = tuple[str, str]
"""A grouping and a group; two empty texts for all rows."""


@dataclass(slots=True)
class _Model:
    """What one model's tables hold."""

    whole: dict[float, _Cover] = field(default_factory=dict)
    groups: dict[Name, _Cover] = field(default_factory=dict)


def groups_figures(tables: Sequence[ResultTable], places: Mapping[str, int]) -> list[Figure]:
    """One dot plot of the coverage of all rows and of groups, of all models.

    `places` are the colours that models have elsewhere.
    """
    models = _read(tables)
    shown = {name: models[name] for name in list(models)[:SERIES_LIMIT]}
    if not shown:
        return []
    notes = list(dict.fromkeys(one_line(table.notes, 400) for table in tables if table.notes))
    if len(shown) < len(models):
        notes.append(f"Shown: the first {len(shown)} of {len(models)} models.")
    every, count = _worst_first(shown)
    if len(every) < count:
        notes.append(f"Shown: the worst {len(every)} of {count:,} groups.")
    rows_of_all = _rows_of_all(shown, bool(every))
    rows = [*rows_of_all, *((name, None) for name in every)]
    if not rows:
        return []
    column, names = _names(every)
    heads = [_all_rows(level, rows) for name, level in rows if name == ("", "")]
    categories = distinct([*heads, *names], 60)
    cells = [[_cell(model, name, level) for name, level in rows] for model in shown.values()]
    if len(shown) > 1:
        notes.append(_SHAPES)
    parts = [
        *(["overall"] if rows_of_all else []),
        *([f"by {one_line(column, 60)}"] if every else []),
    ]
    where = "overall and in each group" if every else "over all rows"
    reading = "An interval entirely left of its line under-covers; entirely right, over-covers."
    figure = Figure(
        name="groups",
        question=f"Is coverage as stated {where}?",
        title=f"Coverage {' and '.join(parts)}",
        reading=f"Each point is an empirical coverage with its confidence interval. {reading}",
        x=Axis(title="Empirical coverage", kind="percent"),
        y=Axis(kind="category", categories=categories),
        layers=tuple(_layers(dict(zip(shown, cells, strict=True)), categories, places)),
        notes=tuple(notes),
    )
    return [figure]


def _read(tables: Sequence[ResultTable]) -> dict[str, _Model]:
    models: dict[str, _Model] = {}
    for table in tables:
        for name, cover in _covers(table):
            model = models.setdefault(table.model, _Model())
            if "group" in table.columns:
                model.groups[name] = cover
            else:
                model.whole[cover.nominal] = cover
    return models


def _covers(table: ResultTable) -> list[tuple[Name, _Cover]]:
    """The rows of a table that have a coverage, at the first nominal one where groups vary it."""
    needed = ("empirical_coverage", "lower", "upper", "nominal")
    columns = [values for name in needed if (values := number(table, name)) is not None]
    if len(columns) < len(needed) or not len(table):
        return []
    value, lower, upper, nominal = columns
    claimed, n = number(table, "claimed"), number(table, "n")
    claimed = nominal if claimed is None else np.where(np.isnan(claimed), nominal, claimed)
    n = np.full(len(table), np.nan) if n is None else n
    is_known = np.isfinite(value) & np.isfinite(lower) & np.isfinite(upper)
    if "group" in table.columns:
        is_known &= (nominal == nominal[0]) | np.isnan(nominal[0])
    names = zip(_raw(table, "grouping"), _raw(table, "group"), strict=True)
    parts = zip(value, lower, upper, claimed, nominal, n, strict=True)
    return [
        (name, _Cover(*map(float, values)))
        for name, values, has_interval in zip(names, parts, is_known, strict=True)
        if has_interval
    ]


def _raw(table: ResultTable, name: str) -> list[str]:
    """A column of names as they are: shortened ones might be one name twice."""
    column = table.columns.get(name)
    return [""] * len(table) if column is None else [str(text) for text in column.tolist()]


def _worst_first(models: Mapping[str, _Model]) -> tuple[list[Name], int]:
    """The groups that fall short by most in any model, and how many there are."""
    short: dict[Name, float] = {}
    least: dict[Name, float] = {}
    for model in models.values():
        for name, cover in model.groups.items():
            short[name] = max(short.get(name, -np.inf), cover.short)
            least[name] = min(least.get(name, np.inf), cover.value)
    chosen = sorted(short, key=lambda name: -short[name])[: most_groups(len(models))]
    return sorted(chosen, key=lambda name: least[name]), len(short)


def most_groups(models: int) -> int:
    """How many groups of so many models fit a screen."""
    return min(MAX_GROUPS, max(_MIN_GROUPS, _MAX_MARKS // models))


def lane_offset(lane: int, lanes: int) -> float:
    """The shift of one of several models within its row."""
    return (lane - (lanes - 1) / 2) * min(0.8 / lanes, 0.3)


def _rows_of_all(models: Mapping[str, _Model], grouped: bool) -> list[tuple[Name, float | None]]:
    """Rows for all rows: at the groups' coverage, or at each one where there are no groups."""
    levels = {level for model in models.values() for level in model.whole}
    if grouped:
        at = {cover.nominal for model in models.values() for cover in model.groups.values()}
        levels = {level for level in levels if level in at or np.isnan(level)}
    return [(("", ""), level) for level in sorted(levels)]


def _all_rows(level: float | None, rows: Sequence[tuple[Name, float | None]]) -> str:
    several = sum(name == ("", "") for name, _ in rows) > 1
    return f"{_ALL}, {formats.level(level)}" if several and level is not None else _ALL


def _cell(model: _Model, name: Name, level: float | None) -> _Cover | None:
    if level is None:
        return model.groups.get(name)
    same = (cover for at, cover in model.whole.items() if at == level or np.isnan(at + level))
    return next(same, None)


def _names(groups: Sequence[Name]) -> tuple[str, list[str]]:
    """What the groups are of, and their names: under that of their column where there are more."""
    columns = {grouping for grouping, _ in groups}
    if len(columns) == 1 and (column := columns.pop()):
        head = f"{column}="
        return column, [label.removeprefix(head) for _, label in groups]
    return "group", [_headed(grouping, label) for grouping, label in groups]


def _headed(grouping: str, label: str) -> str:
    """``region=north, season=winter`` as ``region: north, season: winter``."""
    first, _, second = grouping.partition(" × ")
    if second and f", {second}=" in label:
        first_label, _, second_label = label.rpartition(f", {second}=")
        return f"{_headed(first, first_label)}, {second}: {second_label}"
    head = f"{first}="
    return f"{first}: {label.removeprefix(head)}" if label.startswith(head) else label


def _layers(
    cells: Mapping[str, Sequence[_Cover | None]],
    categories: Sequence[str],
    places: Mapping[str, int],
) -> list[Layer]:
    every = [cover for row in cells.values() for cover in row if cover is not None]
    nominal = {cover.nominal for cover in every if np.isfinite(cover.nominal)}
    layers = []
    if len(nominal) == 1:
        line = np.array(list(nominal))
        layers.append(Layer(mark=Mark.RULE, x=line, series="nominal", colour=REFERENCE))
    for lane, (model, row) in enumerate(cells.items()):
        offset = lane_offset(lane, len(cells))
        colour = places.get(model, lane)
        layers += _claims(row, categories, offset, alone=len(nominal) == 1)
        for kind, words, own_colour, shape in _KINDS:
            if not np.isfinite(every[0].nominal):
                words = "empirical coverage"
            at = [i for i, cover in enumerate(row) if cover is not None and cover.kind == kind]
            covers = [cover for cover in row if cover is not None and cover.kind == kind]
            if not covers:
                continue
            several = len(cells) > 1
            bars = Layer(
                mark=Mark.INTERVALS,
                y=np.array(at, dtype=np.float64),
                lower=np.array([cover.lower for cover in covers]),
                upper=np.array([cover.upper for cover in covers]),
                series=one_line(model, 60) or "unnamed" if several else words,
                colour=colour if several else own_colour,
                shape=shape,
                offset=offset,
                size=1.4 if shape else 1.0,
                labels=tuple(categories[i] for i in at),
            )
            hover = {"Rows": np.array([cover.n for cover in covers])}
            x = np.array([cover.value for cover in covers])
            layers += [bars, replace(bars, mark=Mark.POINTS, x=x, hover=hover)]
    return layers


def _claims(
    row: Sequence[_Cover | None], categories: Sequence[str], offset: float, *, alone: bool
) -> list[Layer]:
    """Marks of what is claimed, where one line does not say it."""
    at = [
        (i, cover.claimed)
        for i, cover in enumerate(row)
        if cover is not None
        and not (alone and abs(cover.claimed - cover.nominal) <= _MIN_DISTANCE_OF_CLAIM)
    ]
    at = [(i, claimed) for i, claimed in at if np.isfinite(claimed)]
    if not at:
        return []
    return [
        Layer(
            mark=Mark.POINTS,
            x=np.array([claimed for _, claimed in at]),
            y=np.array([i for i, _ in at], dtype=np.float64),
            series="claimed",
            colour=REFERENCE,
            shape=4,
            offset=offset,
            labels=tuple(categories[i] for i, _ in at),
        )
    ]
