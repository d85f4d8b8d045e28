"""Workbooks of Excel, as a person fills them: the cells come out, or the error says what to do."""

from __future__ import annotations

import datetime
import re
import sys
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import howsure
from extras import needs
from howsure.core.errors import InputError
from howsure.core.rng import child
from howsure.inputs import load

N = 20
RNG = child(0, "workbook")
MEAN = RNG.normal(size=N).round(3)
Y = (MEAN + RNG.normal(size=N)).round(3)
DAYS = [datetime.date(2025, 1, 1) + datetime.timedelta(k) for k in range(N)]


def rows(sd: float = 1.0, days: list[Any] | None = None) -> list[list[Any]]:
    head = ["date", "y", "mean", "sd", "group", "id"]
    body = zip(
        DAYS if days is None else days,
        *(Y.tolist(), MEAN.tolist(), [sd] * N, ["a", "b"] * (N // 2), range(N)),
        strict=True,
    )
    return [head, *map(list, body)]


def book(path: Path, **sheets: list[list[Any]]) -> Path:
    openpyxl = needs("openpyxl")
    needs("python_calamine")
    made = openpyxl.Workbook()
    made.remove(made.active)
    for name, held in sheets.items():
        sheet = made.create_sheet(name)
        for row in held:
            sheet.append(row)
    made.save(path)
    return path


def test_a_sheet_is_a_table(tmp_path: Path) -> None:
    loaded = load(book(tmp_path / "may.xlsx", Sheet1=rows()))
    (held,) = loaded.evalsets
    assert np.array_equal(held.y, Y)
    assert np.array_equal(held.predictions[0].parameters["loc"], MEAN)
    assert held.time.astype("datetime64[D]").tolist() == DAYS
    assert held.groups["group"].values().tolist() == ["a", "b"] * (N // 2)
    assert held.row_names().tolist() == list(range(N))
    assert held.model == "may"
    assert loaded.notes == ()


def test_of_several_sheets_one_is_named(tmp_path: Path) -> None:
    path = book(tmp_path / "all.xlsx", ridge=rows(), **{"forest 2.1": rows(2.0)})
    with pytest.raises(InputError, match=r"2 have cells \('ridge', 'forest 2.1'\): choose one"):
        load(path)
    with pytest.raises(InputError, match=r"all.xlsx has no sheet 'oak'; its sheets are 'ridge'"):
        load(f"{path}#oak")
    (one,) = load(f"{path}#forest 2.1").evalsets
    assert one.predictions[0].parameters["scale"][0] == 2.0
    both = load([f"{path}#ridge", f"{path}#forest 2.1"]).evalsets
    assert [each.model for each in both] == ["ridge", "forest 2.1"]


def test_empty_and_hidden_sheets_do_not_count(tmp_path: Path) -> None:
    path = book(tmp_path / "one.xlsx", notes=[], data=rows(), old=rows(3.0))
    openpyxl = needs("openpyxl")
    made = openpyxl.load_workbook(path)
    made["old"].sheet_state = "hidden"
    made.save(path)
    loaded = load(path)
    assert loaded.evalsets[0].predictions[0].parameters["scale"][0] == 1.0
    assert "sheet 'data' is read, of 'notes', 'data', 'old'" in loaded.facts["Reading"]


def test_a_table_may_stand_anywhere_and_have_gaps(tmp_path: Path) -> None:
    table = [[], [], *([None, None, *row] for row in rows())]
    table.insert(5, [])
    path = book(tmp_path / "t.xlsx", data=table)
    (held,) = load(path).evalsets
    assert np.array_equal(held.y, Y)
    table[7][3] = "?"  # y, in the eighth row of the sheet
    path = book(tmp_path / "t.xlsx", data=table)
    with pytest.raises(InputError, match=r"'y' must contain numbers, .* '\?' at line 8"):
        load(path)
    table[7][3] = "#N/A"
    path = book(tmp_path / "t.xlsx", data=table)
    with pytest.raises(InputError, match=r"cells are missing: 1 in 'y' .first at line 8"):
        load(path)
    assert load(path, missing="drop").evalsets[0].n == N - 1


def test_decimal_commas_in_cells_of_text(tmp_path: Path) -> None:
    table = rows()
    for row in table[1:]:
        row[1] = str(row[1]).replace(".", ",")
    path = book(tmp_path / "t.xlsx", data=table)
    with pytest.raises(InputError, match=r"decimal=','\) reads a decimal comma"):
        load(path)
    assert np.array_equal(load(path, decimal=",").evalsets[0].y, Y)
    table[1][1] = float(Y[0])  # one of them is a number
    assert np.array_equal(load(book(tmp_path / "t.xlsx", data=table), decimal=",").evalsets[0].y, Y)


def test_levels_as_numbers_in_the_header(tmp_path: Path) -> None:
    table = [["y", 0.05, 0.95], *([float(y), float(y) - 1, float(y) + 1] for y in Y)]
    (held,) = load(book(tmp_path / "t.xlsx", data=table)).evalsets
    assert list(held.predictions[0].levels) == [0.05, 0.95]


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ([], "the workbook has no cells"),
        ([["y", "mean", "sd"]], "the sheet has column names but no rows"),
        (
            [["Forecasts of May"], *rows()],
            "must contain the names of 6 columns, got 'Forecasts of M",
        ),
        (
            [["y", "y", "sd"], [1, 2, 3]],
            "column names must differ; these occur more than once: 'y'",
        ),
    ],
)
def test_what_is_no_table_is_refused(tmp_path: Path, table: Any, said: str) -> None:
    with pytest.raises(InputError, match=said):
        load(book(tmp_path / "t.xlsx", data=table))


def test_broken_workbooks_are_refused(tmp_path: Path) -> None:
    path = book(tmp_path / "t.xlsx", data=rows())
    whole = path.read_bytes()
    for content in (whole[:2_000], b"PK\x03\x04nonsense", b"y,mean\n1,2\n", b""):
        path.write_bytes(content)
        with pytest.raises(InputError, match=r"t\.xlsx"):
            load(path)
    other = tmp_path / "t.csv"
    other.write_bytes(whole)
    with pytest.raises(InputError, match=r"zip; if it is a spreadsheet, name it \.xlsx"):
        load(other)
    with pytest.raises(InputError, match="no such file"):
        load(tmp_path / "none.xlsx#a")


def test_without_the_library_the_error_names_the_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "t.xlsx"
    path.write_bytes(b"PK\x03\x04")
    monkeypatch.setitem(sys.modules, "python_calamine", None)
    with pytest.raises(howsure.HowsureError, match=r'pip install "howsure\[excel\]"'):
        load(path)


# ---- dates with the day first --------------------------------------------------------------------


def dated(form: str, n: int = N) -> dict[str, Any]:
    days = [DAYS[0] + datetime.timedelta(k) for k in range(n)]
    return {
        "date": [day.strftime(form) for day in days],
        "y": Y[:n],
        "mean": MEAN[:n],
        "sd": Y * 0 + 1,
    }


@pytest.mark.parametrize(
    "form", ["%d.%m.%Y", "%d/%m/%Y", "%d.%m.%Y 05:30", "%d/%m/%Y 5:30:10", "%-d.%-m.%Y"]
)
def test_european_dates_are_read_day_first_and_told(form: str) -> None:
    loaded = load(dated(form))
    assert loaded.evalsets[0].time.astype("datetime64[D]").tolist() == DAYS
    told = "31.12.2025" if "." in form else "31/12/2025"  # no cell of the table: rows may be people
    assert f"column 'date': dates are read day first, like {told}" in loaded.facts["Reading"]
    assert "month first would also be possible" not in loaded.facts["Reading"]


def test_dates_that_month_first_would_fit_too_are_told() -> None:
    table = {name: held[:9] for name, held in dated("%d/%m/%Y").items()}
    loaded = load(table)
    assert "although month first would also be possible for all" in loaded.facts["Reading"]
    assert loaded.evalsets[0].time.astype("datetime64[D]").tolist() == DAYS[:9]


def test_american_dates_are_no_time_and_refused_where_asked_for() -> None:
    loaded = load(dated("%m/%d/%Y"))
    assert loaded.evalsets[0].time is None
    with pytest.raises(InputError, match=r"31/12/2025, day first, got '01/13/2025' at row 12"):
        load(dated("%m/%d/%Y"), time="date")


def test_european_dates_beside_times_of_day_and_in_parts(tmp_path: Path) -> None:
    table = dated("%d.%m.%Y") | {"time": ["12:00"] * N}
    (held,) = load(table).evalsets
    assert held.time[0] == np.datetime64("2025-01-01T12:00")
    from howsure.inputs.tables import cut

    path = tmp_path / "t.csv"
    columns = [map(str, held) for held in dated("%d.%m.%Y").values()]
    lines = [",".join(row) for row in zip(*columns, strict=False)]
    path.write_text("\n".join(["date,y,mean,sd", *lines]), encoding="utf-8")
    assert "are read day first" in " ".join(cut(path).notes)


def merged(path: Path, above: list[list[Any]], area: str) -> Path:
    """A table under further rows, with cells of the first one merged."""
    openpyxl = needs("openpyxl")
    made = openpyxl.load_workbook(book(path, Sheet1=[*above, *rows()]))
    made.active.merge_cells(area)
    made.save(path)
    return path


@pytest.mark.parametrize(
    ("above", "area"),
    [
        ([["Runoff", None, "Forecast", None]], "C1:D1"),  # a title over columns
        ([["date", "y", "90 %", None], [None, None, "lower", "upper"]], "C1:D1"),
        ([], "C1:D1"),  # one name for mean and sd
    ],
)
def test_merged_cells_above_the_table_are_refused(
    tmp_path: Path, above: list[list[Any]], area: str
) -> None:
    path = merged(tmp_path / "m.xlsx", above, area)
    with pytest.raises(
        InputError,
        match=r"sheet 'Sheet1': line 1 must have one cell per column name, but has merged",
    ):
        load(path)


def test_cells_merged_elsewhere_are_read(tmp_path: Path) -> None:
    path = merged(tmp_path / "m.xlsx", [], "E2:E3")  # one group for two rows: an empty cell
    with pytest.raises(InputError, match=r"cells are missing: 1 in 'group' .*line 3"):
        load(path)
    assert load(path, missing="drop").evalsets[0].n == N - 1


@pytest.mark.parametrize("missing", ["error", "drop"])
def test_formulas_without_results_are_no_empty_cells(tmp_path: Path, missing: Any) -> None:
    held = rows()
    for line, row in enumerate(held[1:8], 2):
        row[3] = f"=ABS(C{line})+1"
    path = book(tmp_path / "f.xlsx", notes=[], data=held)
    with pytest.raises(
        InputError,
        match=r"f.xlsx, sheet 'data': cells must contain values, but 7 are formulas without "
        r"results \(first: D2\): open the workbook in a spreadsheet program and save it",
    ):
        load(path, missing=missing)


def test_formulas_with_results_are_their_results(tmp_path: Path) -> None:
    path = book(tmp_path / "f.xlsx", Sheet1=rows())
    with zipfile.ZipFile(path) as parts:
        held = {name: parts.read(name) for name in parts.namelist()}
    sheet = "xl/worksheets/sheet1.xml"
    spelt, count = re.subn(rb'(<c r="D\d+"[^>]*>)(<v>1</v></c>)', rb"\1<f>1+0</f>\2", held[sheet])
    assert count == N
    with zipfile.ZipFile(path, "w") as parts:
        for name, content in {**held, sheet: spelt}.items():
            parts.writestr(name, content)
    (read,) = load(path).evalsets
    assert np.array_equal(read.predictions[0].parameters["scale"], np.ones(N))


def test_a_table_on_a_hidden_sheet_is_named(tmp_path: Path) -> None:
    openpyxl = needs("openpyxl")
    path = book(tmp_path / "h.xlsx", cover=[["Forecasts"]], data=rows())
    made = openpyxl.load_workbook(path)
    made["data"].sheet_state = "hidden"
    made.save(path)
    with pytest.raises(InputError, match=r"hidden sheets are read only by name: give .*#data'"):
        load(path)
    assert load(f"{path}#data").evalsets[0].n == N


def test_older_workbooks_are_told_to_be_saved_anew(tmp_path: Path) -> None:
    path = tmp_path / "old.xls"
    path.write_bytes(b"\xd0\xcf\x11\xe0")
    with pytest.raises(InputError, match=r"got '.xls'; save the workbook as .xlsx"):
        load(path)


def test_a_space_before_the_per_cent_sign_is_none(tmp_path: Path) -> None:
    head = ["y", "Lower 90 %", "Upper 90 %"]
    body = zip(Y.tolist(), (MEAN - 2).tolist(), (MEAN + 2).tolist(), strict=True)
    (held,) = load(book(tmp_path / "p.xlsx", Sheet1=[head, *map(list, body)])).evalsets
    assert held.predictions[0].coverages == (0.9,)


def altered(path: Path, member: str, change: Any) -> Path:
    """A workbook one of whose files is another."""
    with zipfile.ZipFile(path) as whole:
        files = {name: whole.read(name) for name in whole.namelist()}
    files[member] = change(files[member])
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as made:
        for name, content in files.items():
            made.writestr(name, content)
    return path


SHEET, BOOK = "xl/worksheets/sheet1.xml", "xl/workbook.xml"
_LAUGHS = b"".join(b'<!ENTITY e%d "%s">' % (k, b"&e%d;" % (k - 1) * 10) for k in range(1, 10))
_FAR = b"<row r=\"1048576\"><c r = 'xfd1048576'><v>1</v></c></row></sheetData>"


@pytest.mark.parametrize(
    ("member", "change", "said"),
    [
        (SHEET, lambda held: held.replace(b"</sheetData>", _FAR), "got 17,179,869,184 "),
        (
            BOOK,
            lambda held: (
                b'<!DOCTYPE w [<!ENTITY e0 "lol">'
                + _LAUGHS
                + b"]>"
                + held.replace(b"</w", b"&e9;</w")
            ),
            "amplification",
        ),
        (BOOK, lambda held: held[: len(held) // 2], "cannot be read"),
    ],
)
def test_hostile_workbooks_are_refused(tmp_path: Path, member: str, change: Any, said: str) -> None:
    path = altered(book(tmp_path / "t.xlsx", data=rows()), member, change)
    with pytest.raises(InputError, match=said):
        load(path)


@pytest.mark.parametrize(
    ("size", "said"), [(1 << 31, "2,147,483,648 bytes uncompressed"), (999, "Bad CRC")]
)
def test_a_sheet_that_fills_memory_is_refused_by_its_size(
    tmp_path: Path, size: int, said: str
) -> None:
    """Whether the archive states its size, or another one."""
    path = altered(book(tmp_path / "t.xlsx", data=rows()), SHEET, lambda held: held + b" " * 10**7)
    content = bytearray(path.read_bytes())
    at = content.rindex(SHEET.encode()) - 46  # its entry in the directory
    content[at + 24 : at + 28] = size.to_bytes(4, "little")
    path.write_bytes(content)
    with pytest.raises(InputError, match=said):
        load(path)
