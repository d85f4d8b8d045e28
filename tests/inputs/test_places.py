"""Which files a folder or a pattern stands for: every one once, and nothing left out in silence."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from howsure.core.errors import InputError
from howsure.inputs.parts import FilePiece
from howsure.inputs.places import Listing, places
from howsure.inputs.tables import cut
from howsure.streaming import Large, load_parts

pytestmark = pytest.mark.skipif(os.name == "nt", reason="needs links and FIFOs")


def rows(seed: int, n: int = 100) -> pa.Table:
    rng = np.random.default_rng(seed)
    return pa.table({"y": rng.normal(size=n), "mean": np.zeros(n), "sd": np.ones(n)})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """`preds` with a file, a folder with another one, and a third in a folder beside it."""
    for number, place in enumerate(("preds/a", "preds/deep/b", "beside/c")):
        path = tmp_path / f"{place}.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(rows(number), path)
    return tmp_path / "preds"


SOURCES = ("", "/", "/**", "/**/*.parquet", "/*")


def names(found: Listing) -> list[str]:
    return [os.path.basename(place.path) for place in found.places]


def skipped(found: Listing) -> dict[str, str]:
    return {os.path.basename(path.rstrip("/")): why for path, why in found.skipped}


@pytest.mark.parametrize("source", SOURCES)
def test_a_link_to_a_folder_is_followed(folder: Path, source: str) -> None:
    (folder / "link").symlink_to("../beside")
    (folder / "deep" / "d.parquet").symlink_to("../../beside/c.parquet")
    found = places(f"{folder}{source}")
    assert names(found) == ["a.parquet", "b.parquet", "d.parquet"]
    assert skipped(found) == {"c.parquet": f"the same file as {folder}/deep/d.parquet"}
    loaded = load_parts(f"{folder}{source}")
    assert loaded.evalsets[0].n == 300
    assert [each.linked for each in loaded.manifest.files] == [False, False, True]
    real = os.path.realpath(folder.parent / "beside" / "c.parquet")
    assert loaded.manifest.files[2].path == real
    assert "1 of them through links" in loaded.facts["Files"]
    assert "c.parquet (the same file as" in loaded.facts["Files"]


@pytest.mark.parametrize("source", SOURCES)
def test_two_ways_to_one_file_are_one(folder: Path, source: str) -> None:
    (folder / "0_latest.parquet").symlink_to("a.parquet")
    (folder / "0_deep").symlink_to("deep")
    os.link(folder / "a.parquet", folder / "z.parquet")
    found = places(f"{folder}{source}")
    assert names(found) == ["a.parquet", "b.parquet"]
    assert skipped(found) == {
        "0_latest.parquet": f"the same file as {folder}/a.parquet",
        "0_deep": f"the same folder as {folder}/deep",
        "z.parquet": f"the same file as {folder}/a.parquet",
    }
    assert load_parts(f"{folder}{source}").evalsets[0].n == 200


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("target", ["nowhere.parquet", "loop.parquet"])
def test_a_link_to_nothing_is_refused_by_name(folder: Path, source: str, target: str) -> None:
    (folder / "loop.parquet").symlink_to(target)
    what = "is broken; nowhere.parquet" if "no" in target else "leads to itself"
    with pytest.raises(InputError, match=rf"preds/loop\.parquet: the link {what}"):
        load_parts(f"{folder}{source}")


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("target", [".", "..", "deep/../..", "gone"])
def test_a_link_of_folders_to_those_above_is_refused(
    folder: Path, source: str, target: str
) -> None:
    (folder / "up").symlink_to(target)
    with pytest.raises(InputError, match=r"preds/up: the link (leads back|is broken)"):
        load_parts(f"{folder}{source}")


def test_a_pattern_asks_for_no_other_links(folder: Path) -> None:
    (folder / "gone.csv").symlink_to("nowhere")
    assert names(places(f"{folder}/**/*.parquet")) == ["a.parquet", "b.parquet"]
    (folder / "2024").symlink_to("nowhere")
    with pytest.raises(InputError, match=r"preds/2024: the link is broken"):
        places(f"{folder}/*/*.parquet")
    assert names(places(f"{folder}/*.parquet")) == ["a.parquet"]


def test_a_loop_of_two_links_is_refused(folder: Path) -> None:
    (folder / "deep" / "out").symlink_to("../../beside")
    assert names(places(str(folder))) == ["a.parquet", "b.parquet", "c.parquet"]
    (folder.parent / "beside" / "in").symlink_to("../preds/deep")
    with pytest.raises(InputError, match="preds/deep/out/in: the link leads back to a folder"):
        places(str(folder))


@pytest.mark.parametrize("source", ["", "/**", "/*"])
def test_what_is_no_table_is_skipped_by_name(folder: Path, source: str) -> None:
    for name in ("README.txt", "LICENSE", "_SUCCESS", ".a.parquet.crc", "_tmp.parquet"):
        (folder / name).write_text("no table")
    (folder / "_delta_log").mkdir()
    (folder / "_delta_log" / "0.parquet").write_text("")
    found = places(f"{folder}{source}")
    assert names(found) == ["a.parquet", "b.parquet"]
    assert skipped(found) == {
        "README.txt": "its ending is not one of a table",
        "LICENSE": "its ending is not one of a table",
        "_SUCCESS": "its name begins with '_'",
        ".a.parquet.crc": "its name begins with '.'",
        "_tmp.parquet": "its name begins with '_'",
        "_delta_log": "its name begins with '_'",
    }
    told = load_parts(f"{folder}{source}").facts["Files"]
    assert told.startswith("2 files, 200 rows; not read: ")
    assert "LICENSE, README.txt (its ending is not one of a table)" in told


def test_what_may_hold_rows_is_refused(folder: Path) -> None:
    (folder / "part.dat").write_bytes(b"\x00\x01")
    with pytest.raises(InputError, match=r"part\.dat: the ending must be one of"):
        places(str(folder))


def test_many_skipped_names_are_counted(folder: Path) -> None:
    for number in range(20):
        (folder / f".{number}.crc").write_text("")
    told = load_parts(folder).facts["Files"]
    assert told.endswith(".0.crc, .1.crc, .10.crc and 17 more (its name begins with '.')")


def test_a_folder_above_with_a_mark_hides_nothing(folder: Path) -> None:
    (folder / ".hidden.parquet").write_text("no table")
    assert names(places(f"{folder}/../preds/*.parquet")) == ["a.parquet"]
    marked = folder.parent / "_marked"
    folder.rename(marked)
    assert names(places(f"{marked}/**")) == ["a.parquet", "b.parquet"]
    assert names(places(str(marked))) == ["a.parquet", "b.parquet"]


@pytest.mark.parametrize("source", SOURCES)
def test_a_fifo_is_never_opened(folder: Path, source: str) -> None:
    os.mkfifo(folder / "x.parquet")
    with pytest.raises(InputError, match=r"x\.parquet: a regular file is needed, got a FIFO"):
        load_parts(f"{folder}{source}")
    (folder / "x.parquet").rename(folder / "control")
    assert names(places(str(folder))) == ["a.parquet", "b.parquet"]
    assert skipped(places(str(folder))) == {"control": "a FIFO is not a table"}
    with pytest.raises(InputError, match="control: a regular file is needed"):
        load_parts(folder / "control")


def test_a_socket_is_never_opened(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    with socket.socket(socket.AF_UNIX) as held:
        held.bind("s.csv")
        with pytest.raises(InputError, match=r"s\.csv: a regular file is needed, got a socket"):
            places(".")


def test_a_closed_folder_is_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is closed to the superuser, whom tests may run as."""
    known = os.listdir

    def listed(path: str) -> list[str]:
        if path.endswith("deep"):
            raise PermissionError(13, "Permission denied")
        return known(path)

    monkeypatch.setattr(os, "listdir", listed)
    with pytest.raises(InputError, match="deep cannot be read: Permission denied"):
        places(str(folder))


@pytest.mark.parametrize("ending", [".csv", ".parquet", ".arrow"])
@pytest.mark.parametrize("state", [False, True])
def test_a_file_that_grows_meanwhile_is_refused(
    folder: Path, ending: str, state: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last part is appended to when its rows are already handed out."""
    from howsure.inputs import write_table

    for number in range(2):
        write_table(rows(number), folder / f"t{number}{ending}")
    known = FilePiece.batches
    seen = 0

    def growing(self: FilePiece, *asked: object) -> Iterator[pa.Table]:
        nonlocal seen
        for table in known(self, *asked):  # type: ignore[arg-type]
            yield table
            seen += 1
            if self.place.path.endswith(f"t1{ending}") and seen > 2:
                with open(self.place.path, "ab") as file:
                    file.write(b"1.0,0.0,1.0\n")

    monkeypatch.setattr(FilePiece, "batches", growing)
    kept = folder.parent / "s.arrow" if state else None
    with pytest.raises(InputError, match=rf"t1{ending}: the file has changed since"):
        load_parts(f"{folder}/t*{ending}", large=Large(jobs=1, state=kept))
    assert seen
    assert not (folder.parent / "s.arrow").exists()


@pytest.mark.parametrize("ending", [".csv", ".parquet", ".arrow"])
def test_one_file_that_grows_meanwhile_is_refused(
    tmp_path: Path, ending: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from howsure.inputs import tables, write_table

    path = tmp_path / f"t{ending}"
    write_table(rows(0), path)
    known = tables.read_decided

    def growing(*asked: object) -> object:
        with path.open("ab") as file:
            file.write(b"1.0,0.0,1.0\n")
        return known(*asked)  # type: ignore[arg-type]

    assert tables.load(path).evalsets[0].n == 100
    monkeypatch.setattr(tables, "read_decided", growing)
    with pytest.raises(InputError, match=r"(has changed since|cannot be read)"):
        tables.load(path)


def test_a_change_after_a_part_is_read_is_seen(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = cut(folder)
    for piece in held.pieces:
        for _ in held.reading.batches(piece):
            pass
    assert [each.rows for each in held.manifest([]).files] == [0, 0]
    with open(folder / "a.parquet", "ab") as file:
        file.write(b"more")
    with pytest.raises(InputError, match=r"a\.parquet: the file has changed"):
        held.manifest([])


@pytest.mark.parametrize("source", ["x" * 5000, "x" * 5000 + ".csv", "x" * 5000 + "*.csv"])
def test_a_name_that_no_file_can_have(source: str) -> None:
    with pytest.raises(InputError, match=r"File name too long|no file matches"):
        load_parts(source)
