"""Named tables: found where they may be, read as they are, and refused where they are not."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from howsure.core.errors import InputError
from howsure_studies.tasks import DataNotFoundError, tables, uci, uci_fixed, uci_names
from howsure_studies.tasks.catalogue import entries
from howsure_studies.tasks.download import check

FACTS = {
    "boston": (506, 13, 22.5328),
    "concrete": (1030, 8, 35.818),
    "energy": (768, 8, 22.3072),
    "kin8nm": (8192, 8, 0.714283),
    "naval": (11934, 16, 0.975),
    "power": (9568, 4, 454.365),
    "protein": (45730, 9, 7.74853),
    "wine_red": (1599, 11, 5.63602),
    "yacht": (308, 6, 10.4954),
}
"""Rows, inputs and mean of the target, as the data's own notes state them."""


def written(folder: Path, text: str) -> Path:
    """A folder with such a table."""
    folder.mkdir(parents=True)
    (folder / "data.csv.gz").write_bytes(gzip.compress(text.encode()))
    return folder


def yacht(rows: int = 308, last: str = "1.5") -> str:
    """Text of a table that looks like the yacht one."""
    lines = [
        "LC,PC,LD,BDr,LB,Fr,resistance",
        *["1,2,3,4,5,6,0.5"] * (rows - 1),
        f"1,2,3,4,5,6,{last}",
    ]
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("name", FACTS)
def test_tables_are_as_their_notes_say(name: str, data_dir: Callable[[str], Path]) -> None:
    data_dir(f"uci_{name}")
    table = uci(name)
    rows, inputs, mean = FACTS[name]
    assert table.x.shape == (rows, inputs)
    assert len(table.columns) == inputs
    assert table.target not in table.columns
    assert table.y.mean() == pytest.approx(mean, rel=1e-5)
    assert len(table.splits) == (5 if name == "protein" else 20)
    for train, test in table.splits:
        assert len(test) == round(rows / 10)
        assert np.array_equal(np.sort(np.r_[train, test]), np.arange(rows))
    assert {len(part) for part in table.reference.values()} == {len(table.splits)}


def test_the_second_target_of_naval_is_no_input(data_dir: Callable[[str], Path]) -> None:
    data_dir("uci_naval")
    assert "kMt" not in uci("naval").columns


def test_the_environment_comes_before_the_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written(tmp_path / "set" / "uci_yacht", yacht(last="7.5"))
    written(tmp_path / "cache" / "howsure" / "uci_yacht", yacht(last="2.5"))
    monkeypatch.setenv("HOWSURE_DATA", str(tmp_path / "set"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert uci("yacht").y[-1] == 7.5
    monkeypatch.setenv("HOWSURE_DATA", str(tmp_path / "empty"))
    assert uci("yacht").y[-1] == 2.5
    assert uci("yacht").splits == ()
    assert dict(uci("yacht").reference) == {}


def test_what_is_not_there_is_said_with_the_places(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("HOWSURE_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with pytest.raises(DataNotFoundError, match=r"not on this machine.*uci_boston.*not set"):
        uci("boston")
    with pytest.raises(InputError, match=r"near: wine_red"):
        uci("wine-red")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (yacht(100), "308 rows of 6 inputs"),
        (yacht().replace("resistance", "drag"), "must contain 308 rows"),
        (yacht(last="wet"), "must contain numbers"),
        (yacht(last=""), "must have no missing value, got 1"),
    ],
)
def test_a_table_that_is_another_is_refused(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(InputError, match=words):
        uci("yacht", written(tmp_path / "t", text))


def test_files_that_cannot_be_read_are_refused(tmp_path: Path) -> None:
    (tmp_path / "data.csv.gz").write_bytes(b"not a gzip file")
    with pytest.raises(InputError, match="cannot be read"):
        uci("yacht", tmp_path)
    with pytest.raises(InputError, match=r"nowhere must contain data\.csv\.gz or data/data\.txt"):
        uci("yacht", tmp_path / "nowhere")


def test_splits_that_are_no_partition_are_refused(tmp_path: Path) -> None:
    folder = written(tmp_path / "t", yacht())
    rows = np.arange(308)
    np.savez(folder / "splits.npz", train_0=rows[:277], test_0=rows[276:307])
    with pytest.raises(InputError, match="split 0 must contain each of 308 rows once"):
        uci("yacht", folder)


def song(year: int) -> str:
    """A line of the table of songs, in the form in which UCI serves it."""
    return ",".join([str(year), *(f"{0.5 * k:.5f}" for k in range(90))])


def test_the_tenth_table_is_read_as_uci_serves_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No header, the year first, and the one division that UCI asks for, the last rows testing."""
    assert set(uci_names()) == {*FACTS, "year"}
    fixed = uci_fixed("year")
    assert fixed is not None
    assert [len(part) for part in fixed] == [463_715, 51_630]
    assert fixed[0][-1] + 1 == fixed[1][0]
    assert uci_fixed("boston") is None

    folder = tmp_path / "uci_year"
    folder.mkdir()
    lines = [song(1922 + k) for k in range(60)]
    (folder / "YearPredictionMSD.txt").write_text("\n".join(lines) + "\n", "utf-8")
    with pytest.raises(InputError, match="must contain 515345 rows of 90 inputs"):
        uci("year", folder)
    few = replace(tables._FACTS["year"], rows=60, tests=6)
    monkeypatch.setattr(tables, "_FACTS", {**tables._FACTS, "year": few})
    table = uci("year", folder)
    assert table.x.shape == (60, 90)
    assert np.array_equal(table.x[7], 0.5 * np.arange(90))
    assert np.array_equal(table.y, 1922 + np.arange(60))
    assert table.columns[0] == "mean_1"
    assert table.columns[-1] == "covariance_78"
    ((train, test),) = table.splits
    assert np.array_equal(test, np.arange(54, 60))
    assert np.array_equal(np.r_[train, test], np.arange(60))
    assert dict(table.reference) == {}
    assert all(seen.good for seen in check(entries()["year"], folder))

    (folder / "YearPredictionMSD.txt").write_text("\n".join([*lines[:-1], "1999,1"]), "utf-8")
    with pytest.raises(InputError, match="cannot be read"):
        uci("year", folder)


def test_the_tenth_table_is_fetched_from_uci_and_its_hash_is_not_made_up() -> None:
    entry = entries()["year"]
    (remote,) = entry.remotes
    assert remote.url == "https://archive.ics.uci.edu/static/public/203/yearpredictionmsd.zip"
    assert remote.hash == ""
    assert entry.known == ()
    assert "no hash is known" in entry.how
