"""Getting and checking data sets: a real server on loopback, real hashes."""

from __future__ import annotations

import gzip
import shutil
import sys
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from howsure.core.errors import InputError
from howsure_studies.tasks import transfer
from howsure_studies.tasks.archives import LayoutError
from howsure_studies.tasks.catalogue import entries
from howsure_studies.tasks.download import (
    MANIFEST,
    DownloadError,
    Entry,
    Holding,
    Known,
    Remote,
    check,
    get,
    record,
)
from howsure_studies.tasks.files import UnreadableError, cache_folder, located
from howsure_studies.tasks.images import image_names
from tasks.served import Served, hash_of, serving

TABLE = b"a,b\n1,2\n"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Served]:
    with serving(tmp_path / "served") as held:
        yield held


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("HOWSURE_DATA", str(tmp_path / "data"))
    monkeypatch.setattr(transfer, "_PAUSE", 0.0)


def entry(address: str, content: bytes = TABLE) -> Entry:
    return replace(
        entries()["california"],
        folder="some_set",
        holds=(Holding(patterns=("data.csv.gz", "table.csv")),),
        known=tuple(
            Known(name=name, hashes=(hash_of(content),), packed=name.endswith(".gz"))
            for name in ("table.csv", "data.csv.gz")
        ),
        remotes=(Remote(url=f"{address}/table.csv", hash=hash_of(content), name="table.csv"),),
    )


def packed(address: str, name: str = "set.zip") -> Entry:
    """A set of three files in an archive, beside a file of its own."""
    return replace(
        entries()["california"],
        folder="some_set",
        source="https://a.page",
        holds=(Holding(patterns=("list.csv",)), Holding(patterns=("images/*.png",), count=3)),
        known=(),
        remotes=(
            Remote(url=f"{address}/list.csv", name="list.csv"),
            Remote(url=f"{address}/{name}", name=name, picks=(("top/images/", "images/"),)),
        ),
    )


def images(path: Path, top: str = "top/images", count: int = 3) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for number in range(count):
            archive.writestr(f"{top}/{number}.png", b"%d" % number)
    return path


def things(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*"))


def test_a_table_is_downloaded_checked_and_not_twice(server: Served) -> None:
    (server.folder / "table.csv").write_bytes(TABLE)
    wanted = entry(server.address)
    place = get(wanted)
    assert place == cache_folder() / "some_set"
    assert (place / "table.csv").read_bytes() == TABLE
    assert [finding.good for finding in check(wanted)] == [True, True]
    assert things(cache_folder()) == ["some_set", "some_set/table.csv"]
    (server.folder / "table.csv").unlink()
    assert get(wanted) == place
    assert len(server.asked) == 1


def test_it_goes_where_it_is_looked_for_first(server: Served, tmp_path: Path) -> None:
    (server.folder / "table.csv").write_bytes(TABLE)
    (tmp_path / "data" / "some_set").mkdir(parents=True)
    (tmp_path / "data" / "some_set" / "notes.txt").write_text("mine")
    assert get(entry(server.address)) == tmp_path / "data" / "some_set"
    assert things(tmp_path / "data") == ["some_set", "some_set/notes.txt", "some_set/table.csv"]
    mine = tmp_path / "mine"
    assert get(entry(server.address), mine) == mine
    assert things(mine) == ["table.csv"]


def test_a_changed_checksum_is_refused_and_nothing_is_left(server: Served) -> None:
    (server.folder / "table.csv").write_bytes(TABLE + b"3,4\n")
    with pytest.raises(DownloadError, match=r"has changed: .*sha256 hash"):
        get(entry(server.address))
    assert things(cache_folder()) == []


def test_a_server_that_fails_is_said(server: Served) -> None:
    with pytest.raises(DownloadError, match="cannot be downloaded: 404"):
        get(entry(server.address))
    with pytest.raises(DownloadError, match="cannot be downloaded"):
        get(entry("http://127.0.0.1:9"))
    assert things(cache_folder()) == []


def test_an_archive_is_unpacked_and_removed(server: Served) -> None:
    (server.folder / "list.csv").write_bytes(TABLE)
    images(server.folder / "set.zip")
    wanted = packed(server.address)
    assert things(get(wanted)) == [
        *("images", "images/0.png", "images/1.png", "images/2.png", "list.csv")
    ]
    assert all(finding.good for finding in check(wanted))
    assert things(cache_folder())[0] == "some_set"


def test_half_a_download_is_gone_on_with_and_shows_nothing_before(server: Served) -> None:
    (server.folder / "list.csv").write_bytes(TABLE)
    size = images(server.folder / "set.zip").stat().st_size
    server.halts = [len(TABLE), 100, 0, 0, 0, 0, 0]
    wanted = packed(server.address)
    with pytest.raises(DownloadError, match="100 bytes have arrived, and the same command resumes"):
        get(wanted)
    assert located("some_set") is None
    assert not check(wanted)[0].good
    get(wanted)
    assert all(finding.good for finding in check(wanted))
    assert server.sent == len(TABLE) + size
    assert things(cache_folder())[0] == "some_set"


@pytest.mark.skipif(sys.platform == "win32", reason="flock is of POSIX")
def test_two_downloads_to_one_place_do_not_mix(server: Served) -> None:
    import fcntl

    (server.folder / "table.csv").write_bytes(TABLE)
    work = cache_folder() / ".some_set.download"
    work.mkdir(parents=True)
    with (work / "lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        with pytest.raises(DownloadError, match="is in use: another download of it is running"):
            get(entry(server.address))
    get(entry(server.address))
    assert things(cache_folder()) == ["some_set", "some_set/table.csv"]


def test_a_file_in_place_of_the_folder_is_refused_at_once(server: Served, tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("mine")
    with pytest.raises(InputError, match="folder must be a folder, got the file"):
        get(entry(server.address), tmp_path / "mine")
    assert server.asked == []
    assert (tmp_path / "mine").read_text() == "mine"


def test_another_layout_says_what_was_wanted_and_writes_nothing(server: Served) -> None:
    (server.folder / "list.csv").write_bytes(TABLE)
    images(server.folder / "set.zip", top="other/photos")
    with pytest.raises(LayoutError, match=r"must contain top/images/, got other/; remove .* again"):
        get(packed(server.address))
    shutil.rmtree(cache_folder() / ".some_set.download")
    images(server.folder / "set.zip", count=2)
    said = r"https://a\.page has another layout than california: images/\*\.png: 2 of 3 there"
    with pytest.raises(LayoutError, match=said):
        get(packed(server.address))
    assert located("some_set") is None
    assert not any(path.is_dir() for path in (cache_folder() / ".some_set.download").iterdir())


def test_half_a_set_is_made_whole(server: Served, tmp_path: Path) -> None:
    (server.folder / "list.csv").write_bytes(TABLE)
    images(server.folder / "set.zip")
    wanted, place = packed(server.address), tmp_path / "data" / "some_set"
    (place / "images").mkdir(parents=True)
    (place / "images" / "0.png").write_bytes(b"half")
    (place / "mine.txt").write_text("mine")
    assert not all(finding.good for finding in check(wanted))
    assert get(wanted) == place
    assert (place / "images" / "0.png").read_bytes() == b"0"
    assert (place / "mine.txt").read_text() == "mine"
    assert all(finding.good for finding in check(wanted))


def test_a_page_in_place_of_an_archive_is_said(server: Served) -> None:
    (server.folder / "list.csv").write_bytes(TABLE)
    (server.folder / "set.zip").write_bytes(b"<html>please sign in</html>")
    with pytest.raises(UnreadableError, match=r"whole ZIP, TAR or 7z archive, got a web page; rem"):
        get(packed(server.address))
    assert located("some_set") is None


def test_links_in_an_archive_are_refused_and_nothing_is_left(server: Served) -> None:
    (server.folder / "list.csv").write_bytes(TABLE)
    with tarfile.open(server.folder / "set.tar", "w") as archive:
        info = tarfile.TarInfo("top/images/0.png")
        info.type, info.linkname = tarfile.SYMTYPE, "/etc/passwd"
        archive.addfile(info)
    with pytest.raises(UnreadableError, match="only plain files and folders"):
        get(packed(server.address, "set.tar"))
    assert located("some_set") is None


def test_a_set_may_be_packed_in_another_way(tmp_path: Path) -> None:
    blood = entries()["bccd"]
    (tmp_path / "images").mkdir()
    (tmp_path / "counts.csv").write_text("x")
    assert [finding.said for finding in check(blood, tmp_path)] == [
        "counts.csv: 1 there",
        "images/*.jpg: 0 of 364 there",
    ]


def test_a_packed_table_is_compared_to_its_source(tmp_path: Path) -> None:
    wanted = entry("http://nowhere")
    (tmp_path / "data.csv.gz").write_bytes(gzip.compress(TABLE))
    assert [finding.good for finding in check(wanted, tmp_path)] == [True, True]
    (tmp_path / "data.csv.gz").write_bytes(gzip.compress(TABLE + b"5,6\n"))
    assert check(wanted, tmp_path)[1].said == (
        "data.csv.gz: sha256 has changed, or is not the source's"
    )
    (tmp_path / "data.csv.gz").write_bytes(gzip.compress(TABLE)[:-9])
    assert "cannot be read" in check(wanted, tmp_path)[1].said
    (tmp_path / "data.csv.gz").unlink()
    assert [finding.good for finding in check(wanted, tmp_path)] == [False]


def test_recorded_files_that_change_or_go_are_named(tmp_path: Path) -> None:
    brain = entries()["brain-tumour-pixels"]
    for part in ("imagesTr", "labelsTr"):
        (tmp_path / part).mkdir()
        for number in range(3):
            (tmp_path / part / f"BRATS_{number:03d}.nii.gz").write_bytes(bytes([number]) * 9)
    found = check(brain, tmp_path)
    assert [finding.said for finding in found] == [
        "imagesTr/BRATS_*.nii*: 3 of 484 there",
        "labelsTr/BRATS_*.nii*: 3 of 484 there",
    ]
    assert record(brain, tmp_path) == tmp_path / MANIFEST
    assert check(brain, tmp_path)[-1].said == "6 files are as recorded"
    (tmp_path / "imagesTr" / "BRATS_001.nii.gz").write_bytes(b"other")
    (tmp_path / "labelsTr" / "BRATS_002.nii.gz").unlink()
    said = [finding.said for finding in check(brain, tmp_path) if not finding.good]
    assert "imagesTr/BRATS_001.nii.gz: sha256 has changed since it was recorded" in said
    assert "labelsTr/BRATS_002.nii.gz: recorded, but missing" in said


def test_sets_by_hand_cannot_be_fetched() -> None:
    with pytest.raises(InputError, match="set that can be downloaded, got 'aaf'"):
        get(entries()["aaf"])
    with pytest.raises(InputError, match="folder must exist"):
        record(entries()["wine"])
    assert located(entries()["wine"].folder) is None
    assert "not on this machine" in check(entries()["wine"])[0].said


def test_every_task_is_listed_and_no_hash_is_made_up() -> None:
    listed = entries()
    for name in image_names():
        assert any(name == key or name.startswith(f"{key}-") for key in listed), name
    lengths = {"sha256": 64, "md5": 32, "git": 40}
    for held in listed.values():
        hashes = [remote.hash for remote in held.remotes if remote.hash]
        hashes += [one for known in held.known for one in known.hashes]
        for one in hashes:
            kind, _, digest = one.partition(":")
            assert len(digest) == lengths[kind]
            assert set(digest) <= set("0123456789abcdef")
        assert hashes or "no hash is known" in held.how


def test_archives_of_the_catalogue_are_whole() -> None:
    """Parts of one archive are picked from alike, and every plain file is one of the set."""
    for held in entries().values():
        wholes: dict[str, set[object]] = {}
        for remote in held.remotes:
            wholes.setdefault(remote.whole or remote.name, set()).add(remote.picks)
            assert remote.url.startswith("https://")
        assert all(len(picks) == 1 for picks in wholes.values()), held.name
        assert len({remote.name for remote in held.remotes}) == len(held.remotes)


@pytest.mark.parametrize(
    "name", ["california", "bike-hours", "traffic", "poverty", "mnist", "bccd", "yacht"]
)
def test_known_hashes_are_those_of_the_real_tables(
    name: str, data_dir: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.undo()
    held = entries()[name]
    assert all(finding.good for finding in check(held, data_dir(held.folder)))
