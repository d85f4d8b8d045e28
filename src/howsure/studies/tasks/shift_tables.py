"""Real tables with a natural shift, by name."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, final

import pyarrow as pa
from pyarrow import compute as pc
from pyarrow import csv

from howsure.core.errors import InputError
from howsure.core.registry import check_known
from howsure.studies.tasks.countries import HOME
from howsure.studies.tasks.places import found
from howsure.studies.tasks.shift import Missing, ShiftTask

COAST: Final = ("<1H OCEAN", "NEAR OCEAN", "NEAR BAY", "ISLAND")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class TableFacts:
    """What is fixed of a named table.

    Attributes
    ----------
    folder : str
        Name of its folder.
    files : tuple of tuple of str
        Files that are needed, each under any of several names.
    rows : int, optional
        Rows it must have.
    make : callable
        From what is read, the columns of the task.
    """

    folder: str
    files: tuple[tuple[str, ...], ...]
    target: str
    units: str
    split_by: str
    home: tuple[Any, ...]
    make: Callable[[list[pa.Table]], pa.Table]
    rows: int | None = None
    missing: Missing = "error"
    delimiter: str = ","


def _first(tables: list[pa.Table]) -> pa.Table:
    return tables[0]


def _bike(tables: list[pa.Table]) -> pa.Table:
    return tables[0].drop_columns(["instant", "dteday", "casual", "registered"])


def _traffic(tables: list[pa.Table]) -> pa.Table:
    """Hour, weekday and month in place of the time; the year is what is split by."""
    table = tables[0]
    when = table["date_time"]
    plain = table.drop_columns(["date_time", "holiday", "weather_description"])
    for title, part in (
        ("year", pc.year),
        ("month", pc.month),
        ("weekday", pc.day_of_week),
        ("hour", pc.hour),
    ):
        plain = plain.append_column(title, part(when))
    days = when.cast(pa.date32())
    holidays = days.filter(pc.not_equal(table["holiday"], "None"))
    return plain.append_column("holiday", pc.is_in(days, value_set=holidays.combine_chunks()))


def _wine(tables: list[pa.Table]) -> pa.Table:
    colour = [
        pa.array([name] * len(part)) for name, part in zip(("red", "white"), tables, strict=True)
    ]
    return pa.concat_tables(
        [part.append_column("colour", names) for part, names in zip(tables, colour, strict=True)]
    )


def _poverty(tables: list[pa.Table]) -> pa.Table:
    return tables[0].drop_columns(["lat", "lon", "year", "urban"])


TABLES: Final[Mapping[str, TableFacts]] = MappingProxyType(
    {
        "california": TableFacts(
            folder="shift_california_housing",
            files=(("data.csv.gz", "housing.csv"),),
            target="median_house_value",
            units="USD",
            split_by="ocean_proximity",
            home=COAST,
            make=_first,
            rows=20640,
            missing="median",
        ),
        "bike-hours": TableFacts(
            folder="shift_bike_hour",
            files=(("data.csv.gz", "hour.csv"),),
            target="cnt",
            units="rentals an hour",
            split_by="yr",
            home=(0,),
            make=_bike,
            rows=17379,
        ),
        "traffic": TableFacts(
            folder="metro_traffic",
            files=(("data.csv.gz", "Metro_Interstate_Traffic_Volume.csv"),),
            target="traffic_volume",
            units="vehicles an hour",
            split_by="year",
            home=(2012, 2013, 2014),
            make=_traffic,
            rows=48204,
        ),
        "poverty": TableFacts(
            folder="preds_poverty_africa",
            files=(("dhs_ooc.csv.gz", "dhs_ooc_preds_ooc.csv"),),
            target="label",
            units="1",
            split_by="country",
            home=HOME,
            make=_poverty,
            rows=19669,
        ),
        "wine": TableFacts(
            folder="shift_wine",
            files=(("winequality-red.csv",), ("winequality-white.csv",)),
            target="quality",
            units="points",
            split_by="colour",
            home=("red",),
            make=_wine,
            rows=6497,
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


def shift_task(
    name: str, folder: str | os.PathLike[str] | None = None, *, seed: int = 0
) -> ShiftTask:
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
    ShiftTask

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
    check_known(name, TABLES, "name")
    facts = TABLES[name]
    place = found(name, facts.folder) if folder is None else Path(folder)
    tables = [_read(table_file(place, names), facts) for names in facts.files]
    held = sum(len(table) for table in tables)
    if facts.rows is not None and held != facts.rows:
        raise InputError(f"{place} must hold {facts.rows} rows of {name}, got {held}")
    try:
        table = facts.make(tables)
    except (KeyError, pa.ArrowException) as error:
        raise InputError(f"{place}: columns are not those of {name}: {error}") from error
    return ShiftTask.from_table(
        table,
        facts.target,
        split_by=facts.split_by,
        home=facts.home,
        missing=facts.missing,
        name=name,
        units=facts.units,
        seed=seed,
    )


def table_file(place: Path, names: tuple[str, ...]) -> Path:
    """The file of a table, under whichever of its names it lies.

    Raises
    ------
    InputError
        If there is none.
    """
    for name in names:
        if (place / name).is_file():
            return place / name
    raise InputError(f"{place} must hold {' or '.join(names)}, got neither")


def _read(path: Path, facts: TableFacts) -> pa.Table:
    try:
        return csv.read_csv(path, parse_options=csv.ParseOptions(delimiter=facts.delimiter))
    except (OSError, pa.ArrowException) as error:
        raise InputError(f"{path} cannot be read: {error}") from error
