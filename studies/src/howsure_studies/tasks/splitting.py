"""Real regression tables with what a fair split must know: units, and rows from later or elsewhere.

A test that rows of one person, school or day stand in on both sides of is too kind, and a test
with rows like those of training says nothing of the next year or of another country. Here each
table of `regression_table` that is large enough says which rows belong together, and which were
seen later or elsewhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any, Final, Literal, final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from howsure.core.arrays import BoolArray
from howsure.core.classes import frozen
from howsure.core.errors import InputError
from howsure.core.registry import check_known
from howsure_studies.tasks.learning import read_learning_table
from howsure_studies.tasks.regression import whole_table
from howsure_studies.tasks.task import Part

Shift = Literal["", "late", "foreign"]


@final
@frozen(kw_only=True, eq=False)
class SplitTable:
    """A table whose rows can be split fairly.

    Attributes
    ----------
    part : Part
        Inputs and target of all complete rows; its ids are numbers of rows in the source.
    units : ndarray of str, shape (n,), optional
        To whom a row belongs: rows of one unit must not stand in both training and test. None
        where each row stands alone.
    shifted : ndarray of bool, shape (n,), optional
        Whether a row is late or foreign, so that training must not see it. None where no row is.
        No unit has rows of both kinds.
    shift : {"late", "foreign", ""}
        Which of these it is.
    by : str
        By what, in words, such as "the years after 1984"; "" where no row is shifted.

    Raises
    ------
    InputError
        If lengths differ, all rows or none are shifted, a unit has rows of both kinds or a third
        of all rows, or the words do not fit the rows.

    Examples
    --------
    >>> part = Part(x=np.eye(4), y=[1, 2, 3, 4], ids=["0", "1", "2", "3"])
    >>> late = np.array([False, False, False, True])
    >>> table = SplitTable(part=part, shifted=late, shift="late", by="the last year")
    >>> int(table.shifted.sum()), table.units is None
    (1, True)
    """

    part: Part
    units: npt.NDArray[np.str_] | None = None
    shifted: BoolArray | None = None
    shift: Shift = ""
    by: str = ""

    def __post_init__(self) -> None:
        """Check that no unit stands on both sides."""
        n = len(self.part)
        check_known(self.shift, ("", "late", "foreign"), "shift")
        if not (self.shifted is None) == (not self.shift) == (not self.by):
            raise InputError("shifted, shift and by must be given together")
        for name, value in (("units", self.units), ("shifted", self.shifted)):
            if value is not None and np.shape(value) != (n,):
                raise InputError(f"{name} must have {n} rows, got {np.shape(value)}")
        if self.shifted is not None and (self.shifted.all() or not self.shifted.any()):
            raise InputError(f"shifted must be some of {n} rows, got {int(self.shifted.sum())}")
        if self.units is None:
            return
        names, place, counts = np.unique(self.units, return_inverse=True, return_counts=True)
        if 3 * counts.max() >= n:
            raise InputError(
                f"a unit must have less than a third of {n} rows, "
                f"got {counts.max()} of {names[counts.argmax()]}"
            )
        if self.shifted is not None:
            beyond = np.bincount(place, weights=self.shifted)
            divided = (beyond > 0) & (beyond < counts)
            if divided.any():
                raise InputError(f"a unit must not be on both sides, got {names[divided][0]}")


@final
@frozen(kw_only=True)
class SplitFacts:
    """How a table is split: by raw columns, which are no inputs unless they are kept."""

    units: tuple[str, ...] = ()  # columns that name a unit together
    letters: int | None = None  # how many letters of their text do
    shift: Shift = ""
    column: str = ""  # what tells shifted rows
    after: float | str = ""  # rows above this are late; dates are ISO text
    kinds: tuple[str, ...] = ()  # rows of these are foreign
    by: str = ""
    kept: tuple[str, ...] = ()  # of these columns, those that are inputs all the same
    left_out: tuple[str, ...] = ()  # further columns that are no inputs
    every: int = 1  # one row in so many is taken, from the first on


def _late(column: str, after: float | str, by: str, **more: Any) -> SplitFacts:
    return SplitFacts(shift="late", column=column, after=after, by=by, **more)


def _foreign(column: str, kinds: str, by: str, **more: Any) -> SplitFacts:
    return SplitFacts(shift="foreign", column=column, kinds=(kinds,), by=by, **more)


def _units(*columns: str) -> SplitFacts:
    return SplitFacts(units=columns)


_ALONE: Final = SplitFacts()
_MIX: Final = (
    *("cement", "blast_furnace_slag", "fly_ash", "water", "superplasticizer"),
    *("coarse_aggregate", "fine_aggregate"),
)

# Left out of the list: tables of under 500 complete rows (yacht, diabetes) or over 60,000 (year,
# earnings), of targets with few values (wine_red), a second table of one survey (atlantic-wages),
# one with a column on race that was made for the table (boston), one of predictions (poverty).
SPLITS: Final[Mapping[str, SplitFacts]] = MappingProxyType(
    {
        "concrete": SplitFacts(units=_MIX, kept=_MIX),  # a mix is tested at several ages
        "energy": _ALONE,
        "kin8nm": _ALONE,
        "naval": _ALONE,
        "power": _ALONE,
        "protein": _ALONE,
        "california": _foreign("ocean_proximity", "INLAND", "districts inland"),
        "bike-hours": _late("yr", 0, "the year 2012", units=("dteday",)),
        "traffic": _late("year", 2017, "the year 2018", units=("date",)),
        "diamonds": _ALONE,
        "wages-1988": _ALONE,
        "deliveries": _ALONE,
        "hotel-rates": _late(
            "arrival_date",
            "2017-05-31",
            "arrivals from June 2017 on",
            left_out=("arrival_date_num",),
        ),
        "ames": _late("Year_Sold", 2008, "houses sold after 2008", kept=("Year_Sold",)),
        "chicago-trains": _late("date", "2013-06-30", "the days after June 2013"),
        "weather": _late("month", 10, "November and December", units=("month", "day")),
        "flights": _late("month", 10, "November and December", units=("month", "day"), every=10),
        "storms": _late("year", 2013, "the years after 2013", units=("year", "name")),
        "movies": _late("year", 2000, "films after 2000", left_out=("votes",)),
        "food-budgets": _ALONE,
        "vietnam": _units("commune"),
        "computers": _late("trend", 23, "the last twelve months", kept=("trend",)),
        "young-women": SplitFacts(units=("idcode",), left_out=("year",)),
        "gss-incomes": _late("year", 2008, "the years after 2008"),
        "star": _units("id"),
        "gapminder": _foreign(
            "continent", "Africa", "countries of Africa", units=("country",), left_out=("region",)
        ),
        "rain": _late(
            "rownames", "2010-12-31", "the years after 2010", units=("rownames",), letters=7
        ),
        "rodents": _late("year", 1996, "the years after 1996"),
        "nitrogen-oxides": _late("julday", 655, "the last fifth of the days", units=("julday",)),
        "biomass": _units("sample"),
        "developers": _foreign("Country", "India", "developers in India"),
        "loans": _ALONE,
        "package-checks": _ALONE,
        "newborns": _ALONE,
        "teenagers": _ALONE,
        "daily-births": _late("year", 1984, "the years after 1984", kept=("year",)),
        "rice-farms": _foreign("region", "ciwangi", "farms of the village Ciwangi", units=("id",)),
        "liver": _units("id"),
        "polls": _late("enddate", "2016-10-31", "polls that ended in November"),
        "heights": _units("family"),
        "injuries": _foreign("ky", "0", "workers in Michigan"),
        "colleges": _foreign("Private", "No", "public colleges"),
        "schools": _foreign("sector", "Catholic", "Catholic schools", units=("school",)),
        "health-costs": _units("zper"),
        "companies": _foreign("country", "Japan", "companies of Japan"),
        "remifentanil": _units("ID"),
    }
)


def split_names() -> tuple[str, ...]:
    """Names of the tables that `split_table` knows, whether or not they are here.

    Examples
    --------
    >>> names = split_names()
    >>> len(names), names[:2]
    (46, ('concrete', 'energy'))
    """
    return tuple(SPLITS)


def split_table(name: str) -> SplitTable:
    """A real table with its units, and with which of its rows are late or foreign.

    All complete rows are there, but for `flights`, of which each tenth is taken. Columns that name
    a unit, and that by which rows are shifted, are no inputs, but for times that go on and that a
    user would keep: `Year_Sold`, `trend`, and `year` of daily births.

    Parameters
    ----------
    name : str
        One of `split_names`.

    Returns
    -------
    SplitTable

    Raises
    ------
    InputError
        If there is no such name, or the table is not the one that is known.
    DataNotFoundError
        If it is not on this machine.

    Examples
    --------
    >>> split_table("concret")
    Traceback (most recent call last):
    ...
    howsure.core.errors.InputError: name must be one of concrete, ..., got 'concret'; near: ...
    """
    check_known(name, SPLITS, "name")
    facts = SPLITS[name]
    whole, target, inputs = whole_table(name)
    whole = whole.take(pa.array(np.arange(0, len(whole), facts.every)))
    told = {facts.column, *facts.units, *facts.left_out} - set(facts.kept)
    features = [title for title in inputs if title not in told]
    part = read_learning_table(whole, target, features=features, missing="drop")
    rows = part.ids.astype(np.int64)
    raw = whole.take(pa.array(rows))
    units = [
        "/".join(map(str, row))[: facts.letters]
        for row in zip(*(raw[title].to_pylist() for title in facts.units), strict=True)
    ]
    notes = part.notes
    if facts.every > 1:
        notes = (f"one row in {facts.every} is used", *notes)
    return SplitTable(
        part=replace(part, ids=(rows * facts.every).astype(np.str_), notes=notes),
        units=np.asarray(units, dtype=np.str_) if units else None,
        shifted=_shifted(raw, facts),
        shift=facts.shift,
        by=facts.by,
    )


def _shifted(raw: pa.Table, facts: SplitFacts) -> BoolArray | None:
    """Which rows are late or foreign."""
    if not facts.shift:
        return None
    values = raw[facts.column].to_pylist()
    if facts.kinds:
        return np.isin([str(value) for value in values], facts.kinds)
    after = facts.after
    if isinstance(after, str):
        return np.array([str(value) > after for value in values])
    return np.array([value > after for value in values])
