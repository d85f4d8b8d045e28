"""Tables whose rows shift: trained at home, tested at home and elsewhere."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, Literal, final

import narwhals as nw
import numpy as np
import pyarrow as pa
from pyarrow import compute as pc

from howsure.core.arrays import AnyArray, BoolArray, FloatArray, IntArray
from howsure.core.classes import frozen
from howsure.core.errors import InputError
from howsure.core.registry import check_known, unknown
from howsure.core.rng import child
from howsure_studies.tasks.files import find_folder, read_list
from howsure_studies.tasks.task import Part, Task

Missing = Literal["error", "drop", "median"]

_MOST_CATEGORIES: Final = 50
_MOST_GROUPS: Final = 20
_SHARES: Final = (0.6, 0.2)


def table_task(
    table: Any,
    target: str,
    *,
    split_by: str,
    home: Sequence[Any] | None = None,
    up_to: float | None = None,
    features: Sequence[str] | None = None,
    missing: Missing = "error",
    name: str = "table",
    units: str = "1",
    seed: int = 0,
) -> Task:
    """A table of one's own, cut by one of its columns: home rows, and rows from elsewhere.

    Parameters
    ----------
    table : dataframe or mapping of str to array-like
        Any dataframe that narwhals knows (pandas, polars, PyArrow, …), or columns by name.
    target : str
        The column of y, of numbers.
    split_by : str
        The column that says where or when a row comes from.
    home : sequence, optional
        Values of ``split_by`` that are home; all others are elsewhere.
    up_to : float, optional
        Rows at home are those whose ``split_by`` is at most this. If neither is given, home
        is the most frequent value of a column of text, and what is at most the median of
        a column of numbers.
    features : sequence of str, optional
        Columns of x; all but the target and ``split_by`` if omitted. Text becomes one
        column of 0 and 1 for each value seen in training.
    missing : {"error", "drop", "median"}
        Missing values are an error; or drop their rows; or numbers become the median of the
        training rows, while rows without a target are dropped.
    name, units : str
        Name of the task, and units of y.
    seed : int
        Fixes which home rows are for training (60 %), validation (20 %) and test (20 %);
        a row's part does not depend on rows elsewhere.

    Returns
    -------
    Task
        Its tests: ``shift``, all rows from elsewhere; ``home``, home rows that are left; then
        each other value of ``split_by``, if there are several and at most 20.

    Raises
    ------
    InputError
        If a column is missing or of a wrong kind, a value of ``home`` does not occur, fewer
        than 5 rows are home, or none is elsewhere.

    Examples
    --------
    >>> table = {"x": np.arange(20.0), "year": [2000 + i // 5 for i in range(20)]}
    >>> table["y"] = np.ones(20)
    >>> task = table_task(table, "y", split_by="year", up_to=2001)
    >>> task.tests, task.train.ids[:2].tolist()
    (('shift', 'home', '2002', '2003'), ['0', '3'])
    """
    whole = _arrow(table)
    chosen = _features(whole, target, split_by, features)
    complete, kept = _without_missing(whole, [target, split_by], chosen, missing)
    y = _numbers(complete, target)
    at_home, kind = _home(complete, split_by, home, up_to)
    rows = _cut(at_home, seed)
    encoded = [_encoded(complete, title, rows["train"]) for title in chosen]
    x = np.column_stack([block for block, _ in encoded])
    tests = {"shift": np.flatnonzero(~at_home), "home": rows["home"], **_groups(kind, at_home)}
    ids = kept.astype(np.str_)
    columns = tuple(title for _, titles in encoded for title in titles)
    lost = len(whole) - len(kept)
    notes = (f"{lost} rows with missing values left out",) if lost else ()
    parts = {
        key: Part(x=x[at], y=y[at], ids=ids[at], in_range=at_home[at], columns=columns, notes=notes)
        for key, at in (tests | rows).items()
    }
    return Task.of(parts, name=name, target=target, units=units)


def _arrow(table: Any) -> pa.Table:
    try:
        if isinstance(table, Mapping):
            return pa.table({str(key): pa.array(value) for key, value in table.items()})
        return nw.from_native(table, eager_only=True).to_arrow()
    except (TypeError, pa.ArrowException) as error:
        raise InputError(f"table must be a dataframe or columns by name: {error}") from error


def _features(
    table: pa.Table, target: str, split_by: str, features: Sequence[str] | None
) -> list[str]:
    for title, argument in ((target, "target"), (split_by, "split_by")):
        if title not in table.column_names:
            raise InputError(unknown(title, table.column_names, argument))
    if features is None:
        chosen = [title for title in table.column_names if title not in (target, split_by)]
    else:
        chosen = list(features)
    for title in chosen:
        check_known(title, table.column_names, "features")
    if not chosen or target in chosen:
        raise InputError(f"features must be at least one column and not the target, got {chosen}")
    return chosen


def _without_missing(
    table: pa.Table, needed: list[str], chosen: list[str], missing: Missing
) -> tuple[pa.Table, IntArray]:
    """Rows that stay, and their numbers."""
    if missing not in ("error", "drop", "median"):
        raise InputError(f"missing must be error, drop or median, got {missing!r}")
    absent = {title: _absent(table[title]) for title in dict.fromkeys([*needed, *chosen])}
    if missing == "error":
        for title, mask in absent.items():
            if mask.any():
                raise InputError(
                    f"column {title!r} must have no missing value, got {int(mask.sum())} "
                    f"(first at row {int(np.argmax(mask))}); missing sets how they are treated"
                )
    stops = needed if missing == "median" else list(absent)
    lost = np.any([absent[title] for title in stops], axis=0)
    kept = np.flatnonzero(~lost)
    if len(kept) == 0:
        raise InputError("table must have at least one whole row, got none")
    return table.take(pa.array(kept)), kept


def _absent(values: pa.ChunkedArray) -> BoolArray:
    mask = pc.is_null(values, nan_is_null=pa.types.is_floating(values.type))
    return np.asarray(mask.to_numpy(zero_copy_only=False), dtype=bool)


def _is_number(kind: pa.DataType) -> bool:
    types = pa.types
    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind))


def _numbers(table: pa.Table, title: str) -> FloatArray:
    values = table[title]
    if not _is_number(values.type):
        raise InputError(f"column {title!r} must contain numbers, got {values.type}")
    array = np.asarray(values.to_numpy(zero_copy_only=False), dtype=np.float64)
    if np.isinf(array).any():
        raise InputError(f"column {title!r} must contain finite numbers, got an infinite one")
    return array


def _home(
    table: pa.Table, split_by: str, home: Sequence[Any] | None, up_to: float | None
) -> tuple[BoolArray, AnyArray]:
    """Which rows are home, and each row's value as text."""
    column = table[split_by]
    values = np.array(column.to_pylist(), dtype=object)
    kind = np.array([_label(value) for value in values], dtype=np.str_)
    if home is not None and up_to is not None:
        raise InputError("home and up_to must not be given together")
    numeric = _is_number(column.type) and not pa.types.is_boolean(column.type)
    if home is None and up_to is None and numeric:
        up_to = float(np.median(_numbers(table, split_by)))
    if up_to is not None:
        at_home = np.asarray(_numbers(table, split_by) <= up_to)
    else:
        names, counts = np.unique(kind, return_counts=True)
        wanted = [*map(_label, home)] if home is not None else [names[counts.argmax()]]
        for value in wanted:
            if value not in names:
                raise InputError(unknown(value, names[:_MOST_GROUPS].tolist(), "home"))
        at_home = np.isin(kind, wanted)
    if at_home.sum() < 5 or at_home.all():
        raise InputError(
            "split_by must leave at least 5 rows home and one elsewhere, got "
            f"{int(at_home.sum())} of {len(at_home)} home"
        )
    return at_home, kind


def _label(value: Any) -> str:
    """A value as text; whole numbers are written as such, whatever they were read as."""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def _cut(at_home: BoolArray, seed: int) -> dict[str, IntArray]:
    rows = np.flatnonzero(at_home)
    shuffled = child(seed, "shift", "split").permutation(rows)
    first, second = (int(share * len(rows)) for share in (_SHARES[0], sum(_SHARES)))
    pieces = (shuffled[:first], shuffled[first:second], shuffled[second:])
    return {
        key: np.sort(piece) for key, piece in zip(("train", "val", "home"), pieces, strict=True)
    }


def _groups(kind: AnyArray, at_home: BoolArray) -> dict[str, IntArray]:
    """Rows of each value elsewhere, where there are several but not too many."""
    names = np.unique(kind[~at_home]).tolist()
    if not 2 <= len(names) <= _MOST_GROUPS:
        return {}
    taken = {"train", "val", "home", "shift"}
    labels = {name: f"{name}_" if name in taken else name for name in names}
    return {labels[name]: np.flatnonzero(~at_home & (kind == name)) for name in names}


def _encoded(table: pa.Table, title: str, training: IntArray) -> tuple[FloatArray, list[str]]:
    """Numbers of one column, shape (n, k), and the k names."""
    values = table[title]
    if _is_number(values.type):
        numbers = _numbers(table, title)
        absent = np.isnan(numbers)
        if absent.any():
            known = numbers[training][~absent[training]]
            if len(known) == 0:
                raise InputError(f"column {title!r} has no value in training rows")
            numbers = np.where(absent, np.median(known), numbers)
        return numbers[:, None], [title]
    types = pa.types
    text = values.type if not types.is_dictionary(values.type) else values.type.value_type
    if not (types.is_string(text) or types.is_large_string(text) or types.is_string_view(text)):
        raise InputError(f"column {title!r} must contain numbers or text, got {values.type}")
    plain = np.array(values.to_pylist(), dtype=object).astype(np.str_)
    names = np.unique(plain[training]).tolist()
    if len(names) > _MOST_CATEGORIES:
        raise InputError(
            f"column {title!r} must have at most {_MOST_CATEGORIES} values, got {len(names)}: "
            "leave it out by features"
        )
    block = np.column_stack([plain == name for name in names]).astype(np.float64)
    return block, [f"{title}={name}" for name in names]


# Countries as WILDS PovertyMap's fold A parts them: of training, and of the test.
HOME: Final = (
    *("cameroon", "democratic_republic_of_congo", "ghana", "kenya", "lesotho", "malawi"),
    *("mozambique", "nigeria", "senegal", "togo", "uganda", "zambia", "zimbabwe"),
)
AWAY: Final = ("angola", "cote_d_ivoire", "ethiopia", "mali", "rwanda")


def _first(tables: list[pa.Table]) -> pa.Table:
    return tables[0]


def _traffic(tables: list[pa.Table]) -> pa.Table:
    """Hour, weekday, month and date in place of the time; the year is what is split by."""
    table = tables[0]
    when = table["date_time"]
    plain = table.drop_columns(["date_time", "holiday", "weather_description"])
    for title, extract in (
        ("year", pc.year),
        ("month", pc.month),
        ("weekday", pc.day_of_week),
        ("hour", pc.hour),
    ):
        plain = plain.append_column(title, extract(when))
    days = when.cast(pa.date32())
    holidays = days.filter(pc.not_equal(table["holiday"], "None"))
    plain = plain.append_column("holiday", pc.is_in(days, value_set=holidays.combine_chunks()))
    return plain.append_column("date", days)


def _wine(tables: list[pa.Table]) -> pa.Table:
    colours = zip(("red", "white"), tables, strict=True)
    return pa.concat_tables(
        [table.append_column("colour", pa.array([name] * len(table))) for name, table in colours]
    )


@final
@frozen(kw_only=True)
class TableFacts:
    """What is fixed of a named table, and how its task is cut."""

    folder: str
    files: tuple[tuple[str, ...], ...]  # files that are needed, each under any of several names
    rows: int
    target: str
    units: str
    split_by: str
    home: tuple[Any, ...]
    make: Callable[[list[pa.Table]], pa.Table] = _first
    left_out: tuple[str, ...] = ()  # columns that are no inputs
    missing: Missing = "error"
    delimiter: str = ","


TABLES: Final[Mapping[str, TableFacts]] = MappingProxyType(
    {
        "california": TableFacts(
            folder="shift_california_housing",
            files=(("data.csv.gz", "housing.csv"),),
            rows=20640,
            target="median_house_value",
            units="USD",
            split_by="ocean_proximity",
            home=("<1H OCEAN", "NEAR OCEAN", "NEAR BAY", "ISLAND"),
            missing="median",
        ),
        "bike-hours": TableFacts(
            folder="shift_bike_hour",
            files=(("data.csv.gz", "hour.csv"),),
            rows=17379,
            target="cnt",
            units="rentals an hour",
            split_by="yr",
            home=(0,),
            left_out=("instant", "dteday", "casual", "registered"),
        ),
        "traffic": TableFacts(
            folder="metro_traffic",
            files=(
                (
                    "data.csv.gz",
                    "Metro_Interstate_Traffic_Volume.csv",
                    "Metro_Interstate_Traffic_Volume.csv.gz",
                ),
            ),
            rows=48204,
            target="traffic_volume",
            units="vehicles an hour",
            split_by="year",
            home=(2012, 2013, 2014),
            make=_traffic,
            left_out=("date",),
        ),
        "poverty": TableFacts(
            folder="preds_poverty_africa",
            files=(("dhs_ooc.csv.gz", "dhs_ooc_preds_ooc.csv"),),
            rows=19669,
            target="label",
            units="1",
            split_by="country",
            home=HOME,
            left_out=("lat", "lon", "year", "urban"),
        ),
        "wine": TableFacts(
            folder="shift_wine",
            files=(("winequality-red.csv",), ("winequality-white.csv",)),
            rows=6497,
            target="quality",
            units="points",
            split_by="colour",
            home=("red",),
            make=_wine,
            delimiter=";",
        ),
    }
)


def shift_names() -> tuple[str, ...]:
    """Names of the tables that `shift_task` knows, whether or not they are on this machine.

    Examples
    --------
    >>> shift_names()
    ('california', 'bike-hours', 'traffic', 'poverty', 'wine')
    """
    return tuple(TABLES)


def shift_task(name: str, folder: str | os.PathLike[str] | None = None, *, seed: int = 0) -> Task:
    """A real table with a natural shift.

    ``california``: house values (1990), from districts near the coast to inland ones.
    ``bike-hours``: rentals, from 2011 to 2012. ``traffic``: road traffic, from 2012-2014 to each
    year 2015-2018. ``poverty``: asset wealth from the predictions of models that never saw the
    country, from 13 countries to ten others. ``wine``: quality, from red to white.

    Parameters
    ----------
    name : str
        One of `shift_names`.
    folder : path, optional
        Where the files lie; if omitted they are looked for under ``HOWSURE_DATA`` and in the
        user's cache.
    seed : int
        Fixes which home rows go where.

    Returns
    -------
    Task

    Raises
    ------
    InputError
        If there is no such name, or a file does not hold what it should.
    DataNotFoundError
        If the table is not on this machine.

    Examples
    --------
    >>> shift_task("bikes")
    Traceback (most recent call last):
    ...
    howsure.core.errors.InputError: name must be one of california, bike-hours, traffic, poverty,
    wine, got 'bikes'; near: bike-hours
    """
    table, facts = read_shift_table(name, folder), TABLES[name]
    return table_task(
        table,
        facts.target,
        split_by=facts.split_by,
        home=facts.home,
        missing=facts.missing,
        name=name,
        units=facts.units,
        seed=seed,
    )


def read_shift_table(name: str, folder: str | os.PathLike[str] | None = None) -> pa.Table:
    """All rows of a named table, without the columns that are no inputs."""
    return whole_shift_table(name, folder).drop_columns(list(TABLES[name].left_out))


def whole_shift_table(name: str, folder: str | os.PathLike[str] | None = None) -> pa.Table:
    """All rows and columns of a named table."""
    check_known(name, TABLES, "name")
    facts = TABLES[name]
    home = find_folder(name, facts.folder) if folder is None else Path(folder)
    paths = [_one_of(home, names) for names in facts.files]
    tables = [read_list(path, delimiter=facts.delimiter) for path in paths]
    rows = sum(len(table) for table in tables)
    if rows != facts.rows:
        raise InputError(f"{home} must contain {facts.rows} rows of {name}, got {rows}")
    try:
        whole = facts.make(tables)
        whole.select([facts.target, facts.split_by, *facts.left_out])
    except (KeyError, pa.ArrowException) as error:
        raise InputError(f"{home}: columns are not those of {name}: {error}") from error
    return whole


def _one_of(home: Path, names: tuple[str, ...]) -> Path:
    """The file of a table, under whichever of its names it lies."""
    for name in names:
        if (home / name).is_file():
            return home / name
    raise InputError(f"{home} must contain {' or '.join(names)}, got neither")
