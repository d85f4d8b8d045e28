"""The columns that roles ask for, as arrays, and the evaluation sets that they become."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, replace
from itertools import zip_longest
from pathlib import Path
from typing import Any, Final, Literal, get_args

import numpy as np
import pyarrow as pa

from howsure.core.arrays import AnyArray, BoolArray, FloatArray, IntArray
from howsure.core.classes import frozen
from howsure.core.errors import HowsureError, InputError
from howsure.core.text import CountedNote, quoted
from howsure.inputs import values
from howsure.inputs.classes import MisfitError, class_predictions, read_classes
from howsure.inputs.names import KEYS, MIN_SERIES, NAMELESS, Roles, normal_form, two_readings
from howsure.inputs.roles import BY_NAME, CellKey, Kind, name_roles
from howsure.inputs.source import MISSING_WORDS, Source, counted
from howsure.inputs.values import Labels
from howsure.predictions import (
    Distribution,
    EvalSet,
    Intervals,
    Prediction,
    Quantiles,
    Samples,
)

_LAST_WINS: Final[tuple[Kind, ...]] = (
    *("key", "any", "number", "vector"),
    *("text", "time", "name", "label", "sets"),
)
"""As what a column is read that is asked for as several kinds."""
_TIMED = ("time", "cutoff", "horizon")
"""Roles that a guessed column loses where its cells cannot be read so."""
# Times that rise by more than luck (one in 20!), in a first column whose name does not say what it
# holds.
_MIN_TIMES = 20


@frozen(kw_only=True)
class ParsedColumns:
    """Rows of one table, of one model once models are split."""

    title: str  # what to call the table in messages
    folder: Path | None  # folder of its file
    model: str  # the model's name; empty where nothing tells it
    roles: Roles  # the columns' roles
    # by what it was read as, and its name; what is missing is NaN, NaT, None or no label
    columns: Mapping[CellKey, Any]
    places: IntArray  # shape (n,): where each row stands in the table
    notes: tuple[str, ...] = ()  # what the reader of a result should know
    names: tuple[str, ...] = ()  # all columns of the table
    labels: tuple[str, ...] = ()  # the classes, where y is the place of one of them
    # for each column, how many of its cells a number marked as missing
    marked: Mapping[str, int] = field(default_factory=dict)

    @property
    def n(self) -> int:
        """Number of rows."""
        return len(self.places)

    def of(self, role: str) -> dict[str, Any]:
        """The columns of a role, by name."""
        kind = BY_NAME[role].kind
        return {name: self.columns[kind, name] for name in self.roles[role] if kind is not None}

    def column(self, role: str) -> Any:
        """The one column of a role; None where there is none."""
        return next(iter(self.of(role).values()), None)

    def with_columns(
        self, columns: Mapping[CellKey, Any], roles: Mapping[str, tuple[str, ...]]
    ) -> ParsedColumns:
        """The same rows with further columns, and the roles of these."""
        joined = {
            role: tuple(dict.fromkeys((*self.roles[role], *names))) for role, names in roles.items()
        }
        return replace(self, columns={**columns, **self.columns}, roles=self.roles.having(joined))

    def take(self, rows: AnyArray) -> ParsedColumns:
        """The same of some rows, by an index or a mask."""
        columns = {
            key: column.take(rows) if isinstance(column, Labels) else column[rows]
            for key, column in self.columns.items()
        }
        return replace(self, columns=columns, places=self.places[rows])

    def missing(self) -> dict[str, BoolArray]:
        """For each column with missing cells, which rows miss them."""
        missing: dict[str, BoolArray] = {}
        for (_, name), column in self.columns.items():
            gone = values.absent(column)
            if gone.any():
                missing[name] = missing.get(name, False) | gone
        return missing

    def complete(self) -> BoolArray:
        """Which rows miss no cell."""
        gone = [np.zeros(self.n, dtype=np.bool_), *self.missing().values()]
        return np.asarray(~np.logical_or.reduce(gone))

    def check_finite(self) -> None:
        """Raise `InputError` where a number is infinite that is no end of an interval."""
        ends = {("number", name) for name in (*self.roles["lower"], *self.roles["upper"])}
        for key, column in self.columns.items():
            if key in ends or isinstance(column, Labels) or column.dtype.kind != "f":
                continue
            infinite = np.isinf(column).reshape(len(column), -1).any(axis=1)
            if infinite.any():
                raise InputError(
                    f"{self.title}: column {quoted(key[1])} must contain finite numbers, got "
                    f"{int(infinite.sum())} infinite (first at row {int(np.argmax(infinite))}, "
                    "counting from 0); only lower and upper may be infinite"
                )


def read_cells(source: Source, roles: Roles) -> ParsedColumns:
    """Read the columns that have roles; a guessed time that cannot be read loses its role."""
    classes = roles.classes
    keys = asked_of(roles)
    if roles.long:
        keys = _in_order((*keys, *(("key", name) for name in source.names)))
    kinds = kinds_of(keys)
    table = source.read(kinds)
    columns: dict[CellKey, Any] = {}
    timed: tuple[str, ...] = ()
    if len(roles["time"]) == 2:
        roles, moments = _one_time(source, roles, table)
        columns |= moments
        timed = (f"columns {' and '.join(map(quoted, roles['time']))} are read as one time",)
    for kind, name in keys:
        if (kind, name) in columns:
            continue
        try:
            column = values.as_kind(kind, table[name], name, source)
            if kind == "time" and is_index(roles, name):
                if not _is_index_of_times(column, name):
                    raise InputError("")
                timed = (
                    f"column {quoted(name)} is read as time, because it is the index of a frame",
                )
            columns[kind, name] = column
        except InputError as error:
            lost = {role for role in _TIMED if name in roles[role]}
            if not lost & roles.guessed:
                unread = name in roles["softmax"] and "softmax" in roles.guessed
                refused = MisfitError if unread else InputError
                raise refused(f"{source.title}: {error}") from error
            why = "that are not numbers or dates" if kind == "time" else "that are not numbers"
            notes = {} if is_index(roles, name) else {name: f"cells {why}"}
            roles = roles.having(dict.fromkeys(lost, ()), notes)
    marked = _marked(columns, roles.missing_values)
    labels: tuple[str, ...] = ()
    if classes:
        try:
            labels = read_classes(roles, columns)
        except InputError as error:
            raise type(error)(f"{source.title}: {error}") from error
    cluster = roles.column("cluster") or ""
    if "cluster" in roles.guessed and normal_form(cluster) == KEYS[0]:
        roles = _few_series(roles, cluster, len(columns["label", cluster].labels))
    days = [
        f"column {quoted(name)}: {remark}"
        for kind, name in keys
        if kind == "time"
        and (kind, name) in columns
        and (remark := values.told_of_days(table[name]))
    ]
    remarks = [
        f"column {quoted(name)}: {quoted(word)} is read as a label, not as a missing cell"
        for (kind, name), column in columns.items()
        if kind == "label" and source.from_text and isinstance(column, Labels)
        for word in column.labels.tolist()
        if word in MISSING_WORDS
    ]
    return ParsedColumns(
        title=source.title,
        folder=source.folder,
        model=roles.model or source.stem,
        roles=roles,
        columns=columns,
        places=np.arange(table.num_rows),
        notes=tuple(
            f"{source.title}: {remark}" for remark in (*source.notes, *timed, *days, *remarks)
        ),
        names=source.names,
        labels=labels,
        marked=marked,
    )


def is_index(roles: Roles, name: str) -> bool:
    """Whether a column is taken for times as it may be the index of a frame."""
    named = normal_form(name) == "ds" or BY_NAME["time"].matches(normal_form(name))
    return "time" in roles.guessed and name in roles["time"] and not named


def _is_index_of_times(moments: Any, name: str) -> bool:
    """Whether a column has dates and, if it has a name, increasing ones."""
    rising = len(moments) >= _MIN_TIMES and bool((moments[1:] > moments[:-1]).all())
    return moments.dtype.kind == "M" and (rising or NAMELESS.fullmatch(name) is not None)


def _marked(columns: dict[CellKey, Any], missing_values: Sequence[float]) -> dict[str, int]:
    """Make cells NaN that hold a number that stands for a missing value; how many in each column.

    A number that came in single precision is known by its rounding.
    """
    counts = Counter[str]()
    marks = marks_of(missing_values)
    for (kind, name), column in columns.items() if missing_values else ():
        if isinstance(column, Labels) or column.dtype.kind != "f" or kind == "time":
            continue
        here = np.isin(column, marks)
        if here.any():
            columns[kind, name] = np.where(here, np.nan, column)
            counts[name] = max(counts[name], int(here.sum()))
    return counts


def marks_of(missing_values: Sequence[float]) -> FloatArray:
    """Numbers that stand for missing values, in double precision and as single rounds them."""
    return np.unique([*missing_values, *np.asarray(missing_values, np.float32).astype(float)])


def told_of_marks(tables: Iterable[ParsedColumns]) -> tuple[str, ...]:
    """What to say of numbers that stand for missing values, and of the cells that held one."""
    marked: dict[tuple[str, str], int] = {}  # models of one table share its y
    stated: tuple[float, ...] = ()
    for cells in tables:
        stated = stated or cells.roles.missing_values
        marked |= {(cells.title, name): count for name, count in cells.marked.items()}
    if not stated:
        return ()
    stand = " and ".join(f"{value:.10g}".replace("e+", "e") for value in stated)
    stand += " stands for" if len(stated) == 1 else " stand for"
    counts = Counter[str]()
    for (_, name), count in marked.items():
        counts[name] += count
    total = counts.total()
    where = ", ".join(f"{quoted(name)} {count:,}" for name, count in counts.items())
    cells_told = (
        f"{total:,} cell{'s' * (total > 1)} ({where})"
        if total
        else "in no cell of a column that is used"
    )
    return (f"{stand} a missing value: {cells_told}",)


def _one_time(source: Source, roles: Roles, table: pa.Table) -> tuple[Roles, dict[CellKey, Any]]:
    """Two columns of times as one, that of dates first; an error where they are not its parts."""
    for dates, clock in (roles["time"], roles["time"][::-1]):
        moments = values.moments_of(table[dates], table[clock], dates)
        if moments is not None:
            return roles.having({"time": (dates, clock)}), {
                ("time", dates): moments[0],
                ("time", clock): moments[1],
            }
    raise InputError(f"{source.title}: {two_readings('time', roles['time'])}")


def asked_of(roles: Roles) -> list[CellKey]:
    """The columns that roles ask for, each with what it is read as."""
    return _in_order(
        ("label" if roles.classes and role.name == "y" else role.kind, name)
        for role, name, _ in roles.uses()
        if role.kind is not None
    )


def kinds_of(keys: Sequence[CellKey]) -> dict[str, Kind]:
    """As what each column leaves its source."""
    return {name: kind for wanted in _LAST_WINS for kind, name in keys if kind == wanted}


def _in_order(keys: Iterable[CellKey]) -> list[CellKey]:
    return sorted(dict.fromkeys(keys), key=lambda key: get_args(Kind).index(key[0]))


def _few_series(roles: Roles, column: str, count: int) -> Roles:
    """Series told by nixtla's name for them: a few are groups, as a few clusters prove nothing."""
    if count >= MIN_SERIES:
        return roles
    note = f"{count} series, used as groups; {MIN_SERIES} or more would be clusters"
    if count == 1:
        return roles.having({"cluster": ()}, {column: "only one series, so no groups"})
    return roles.having({"cluster": (), "groups": (*roles["groups"], column)}, {column: note})


# ---- arrays of columns become predictions, and these beside y become evaluation sets ------------

Crossing = Literal["error", "sort"]


def build(
    parts: Sequence[ParsedColumns],
    *,
    crossing: Crossing,
    embedding: FloatArray | None = None,
    bare_sets: Iterable[EvalSet | None] = (),
) -> tuple[EvalSet, ...]:
    """One evaluation set for each model; what is known of rows besides comes from the first.

    The sets of rows that lack y alone come with them.
    """
    first = parts[0]
    ease = first.column("ease")
    if isinstance(ease, Labels) and "ease" not in first.roles.guessed:
        raise InputError(
            f"{first.title}: ease must be a column of numbers, but "
            f"{quoted(str(first.roles.column('ease')))} contains text"
        )
    moved = first.places[-1] + 1 != first.n
    names = first.column("rows")
    vectors = list(first.of("embedding").values())
    plain = {role: first.column(role) for role in ("weights", "time", "cutoff", "horizon")}
    labelled = (("cluster", first.column("cluster")), ("series", first.column("series")))
    plain |= {role: labels and labels.categories() for role, labels in labelled}
    evalsets = []
    for cells in parts:
        try:
            with counted(places=cells.places):
                evalsets.append(
                    EvalSet.checked(
                        first.column("y"),
                        predictions_of(cells, crossing),
                        point=cells.column("point"),
                        uncertainty=cells.column("uncertainty"),
                        features={
                            name: column.categories().values()
                            if isinstance(column, Labels)
                            else column
                            for name, column in (first.of("features") | first.of("ease")).items()
                        },
                        ease=first.roles.column("ease") or "ease",
                        embedding=np.hstack(vectors) if vectors else embedding,
                        groups={n: group.categories() for n, group in first.of("groups").items()},
                        weights_kind=first.roles.weights_kind,
                        **plain,
                        rows=first.places if names is None and moved else names,
                        model=cells.model,
                    )
                )
        except InputError as error:
            where = f"; rows of the model {quoted(cells.model)}" if len(parts) > 1 else ""
            raise InputError(f"{cells.title}: {error}{where}") from error
    sets = zip_longest(evalsets, bare_sets)
    return tuple(
        evalset if bare is None else replace(evalset, without_y=bare) for evalset, bare in sets
    )


def without_y(
    parts: Sequence[ParsedColumns], lacking: BoolArray, row_with_y: int
) -> tuple[EvalSet | None, ...]:
    """What each model predicted of the rows that lack y; None where there are none.

    They are read as if their y was that of `row_with_y`. Predictions that are impossible are those
    of no row.
    """
    if not lacking.any():
        return (None,) * len(parts)
    filled = []
    for cells in parts:
        rows, columns = cells.take(lacking), {}
        for (kind, name), column in cells.columns.items():
            if name in cells.roles["y"]:
                columns[kind, name] = column.take(np.full(rows.n, row_with_y))
        filled.append(replace(rows, columns={**rows.columns, **columns}))
    try:
        evalsets = build(filled, crossing="sort")
    except InputError:
        return (None,) * len(parts)
    return tuple(replace(evalset, y=np.full(evalset.n, np.nan)) for evalset in evalsets)


def predictions_of(cells: ParsedColumns, crossing: Crossing) -> tuple[Prediction, ...]:
    """The predictions with uncertainty in the columns of one model."""
    roles = cells.roles
    predictions: list[Prediction] = []

    def table(role: str) -> FloatArray:
        return np.column_stack([cells.columns["number", name] for name in roles[role]])

    if roles.classes:
        column = cells.column("label_set")
        stated = cells.of("softmax") or cells.of("stated_confidence")
        labels = roles.labels or roles["stated_confidence"]
        predictions.extend(
            class_predictions(
                cells.labels,
                dict(zip(labels, stated.values(), strict=True)) if stated else {},
                None if column is None else (column.codes, column.labels.tolist()),
                roles.coverages[0],
            )
        )
    if roles["lower"]:
        shares = [share for share in roles.coverages if share is not None]
        predictions.append(Intervals(table("lower"), table("upper"), shares or None, crossing))
    if roles["sd"] or roles["variance"]:
        predictions.append(Distribution.normal(cells.column("mean"), _spread(cells)))
    if roles.law is not None:
        parameters = {
            name: cells.columns["number", value] if isinstance(value, str) else value
            for name, value in roles.law.parameters.items()
        }
        predictions.append(Distribution(roles.law.name, parameters, n=cells.n))
    if roles["quantiles"]:
        predictions.append(Quantiles(roles.levels, table("quantiles"), crossing))
    if roles["samples"]:
        predictions.append(Samples.owning(table("samples")))
    return tuple(predictions)


def _spread(cells: ParsedColumns) -> FloatArray:
    """The stated standard deviations, or the roots of the stated variances."""
    if cells.roles["sd"]:
        return np.asarray(cells.column("sd"))
    variance = np.asarray(cells.column("variance"))
    if (variance < 0).any():
        row = int(np.argmax(variance < 0))
        name = quoted(cells.roles["variance"][0])
        raise InputError(
            f"column {name} must contain variances of at least 0, got {variance[row]:g} (first "
            f"at row {row})"
        )
    return np.asarray(np.sqrt(variance))


def crossing_notes(evalsets: Sequence[EvalSet]) -> tuple[str, ...]:
    """What to say of quantiles and of ends of intervals that crossed."""
    return tuple(
        CountedNote.of(
            prediction.crossed_rows,
            "row",
            f" of the model {quoted(evalset.model)} had {_CROSSING[prediction.kind]} that crossed; "
            "each was sorted",
        )
        for evalset in evalsets
        for prediction in evalset.predictions
        if isinstance(prediction, Quantiles | Intervals) and prediction.crossed_rows
    )


_CROSSING = {Quantiles.kind: "quantiles", Intervals.kind: "ends of intervals"}


# ---- columns of texts and of paths of images: where the files lie, and what the columns become ---

Texts = AnyArray


def read_embedding(
    cells: ParsedColumns,
) -> tuple[dict[str, Texts], FloatArray | None, Texts | None]:
    """The texts of a table, the vectors of those to encode, and the files of its images."""
    texts = {**cells.of("encode"), **cells.of("image")}
    return texts, *embedded(texts, cells.roles, folder=cells.folder, title=cells.title)


def embedded(
    texts: Mapping[str, Texts],
    roles: Roles,
    *,
    folder: Path | None,
    title: str,
) -> tuple[FloatArray | None, Texts | None]:
    """The vectors of the encoded column, and the files of the column of images.

    Paths are in the column so named, or in the encoded one if all its cells end as image files do.
    """
    column, image, encoder = roles.column("encode"), roles.column("image"), roles.encoder
    if column is None or encoder is None:
        return None, None if image is None else located(texts[image], folder)
    # slow to load
    from howsure.inputs.encoders.encode import Transformer, encode, encoder_named
    from howsure.inputs.encoders.pretrained import are_image_files

    items = texts[column]
    if image is None:
        files = are_image_files(items)
        if 0 < files < len(items):
            raise InputError(
                f"{title}: column {quoted(column)} must contain texts or paths of images, got "
                f"{files} of {len(items)} cells that end like image files: if all are paths, "
                f"also pass {name_roles(image=column)}"
            )
        image = column if files else None
    images = None if image is None else located(texts[image], folder)
    kind: str | None = "text"
    if image == column and images is not None:
        kind, items = "image", images
    try:
        meant = encoder_named(encoder)
        if not isinstance(meant, str) and (kind == "text" or isinstance(meant, Transformer)):
            kind = None
        vectors = encode(list(items), encoder, kind=kind)
    except InputError as error:
        raise InputError(f"{title}: column {quoted(column)}: {error}") from error
    except HowsureError as error:
        raise type(error)(f"column {quoted(column)}: {error}") from error
    return vectors.astype(np.float64), images


def located(paths: Sequence[Any] | Texts, folder: Path | None) -> Texts:
    """Paths as they stand in a table, made absolute: they start from the table's folder."""
    root = Path.cwd() if folder is None else folder.absolute()
    return np.array([os.path.join(root, str(path)) for path in paths], dtype=object)
