"""Getting and checking data sets: a real server on loopback, real hashes."""

from __future__ import annotations

import gzip
import hashlib
import io
import tarfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from extras import needs
from howsure.core.errors import InputError
from howsure.studies.tasks.catalogue import entries
from howsure.studies.tasks.download import (
    MANIFEST,
    DownloadError,
    Entry,
    Holding,
    Remote,
    check,
    get,
    record,
)
from howsure.studies.tasks.files import cache_folder, located
from howsure.studies.tasks.images import image_names

needs("pooch")

TABLE = b"a,b\n1,2\n"


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Say nothing."""


@pytest.fixture
def server(tmp_path: Path) -> Iterator[tuple[str, Path]]:
    """A server of files, its address and its folder."""
    folder = tmp_path / "served"
    folder.mkdir()
    handler = partial(Quiet, directory=str(folder))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as held:
        Thread(target=held.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{held.server_address[1]}", folder
        held.shutdown()


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("HOWSURE_DATA", str(tmp_path / "data"))


def entry(address: str, content: bytes = TABLE, *, unpack: bool = False) -> Entry:
    name = "set.tar" if unpack else "table.csv"
    remote = Remote(
        url=f"{address}/{name}",
        hash=f"sha256:{hashlib.sha256(content).hexdigest()}",
        name=name,
        unpack=unpack,
    )
    holds = (Holding(patterns=("data.csv.gz", "table.csv")),)
    return replace(entries()["california"], folder="some_set", holds=holds, remotes=(remote,))


def test_a_table_is_downloaded_checked_and_not_twice(server: tuple[str, Path]) -> None:
    address, folder = server
    (folder / "table.csv").write_bytes(TABLE)
    wanted = entry(address)
    place = get(wanted)
    assert place == cache_folder() / "some_set"
    assert (place / "table.csv").read_bytes() == TABLE
    assert [finding.good for finding in check(wanted)] == [True, True]
    (folder / "table.csv").unlink()
    assert get(wanted) == place


def test_a_changed_checksum_is_refused(server: tuple[str, Path]) -> None:
    address, folder = server
    (folder / "table.csv").write_bytes(TABLE + b"3,4\n")
    with pytest.raises(DownloadError, match="hash"):
        get(entry(address))
    assert not (cache_folder() / "some_set" / "table.csv").exists()


def test_a_server_that_fails_is_said(server: tuple[str, Path]) -> None:
    address, _ = server
    with pytest.raises(DownloadError, match="cannot be downloaded: 404"):
        get(entry(address))
    with pytest.raises(DownloadError, match="cannot be downloaded"):
        get(entry("http://127.0.0.1:9"))


def test_an_archive_is_unpacked_beside(server: tuple[str, Path]) -> None:
    address, folder = server
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        info = tarfile.TarInfo("some_set/table.csv")
        info.size = len(TABLE)
        archive.addfile(info, io.BytesIO(TABLE))
    (folder / "set.tar").write_bytes(packed.getvalue())
    wanted = entry(address, packed.getvalue(), unpack=True)
    assert (get(wanted) / "table.csv").read_bytes() == TABLE
    assert [finding.good for finding in check(wanted)] == [True]


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
    assert [finding.good for finding in check(wanted, tmp_path)] == [False, False]


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
    assert "labelsTr/BRATS_002.nii.gz: recorded, and gone" in said


def test_sets_by_hand_cannot_be_fetched() -> None:
    with pytest.raises(InputError, match="set that can be downloaded, got 'wine'"):
        get(entries()["wine"])
    with pytest.raises(InputError, match="folder must exist"):
        record(entries()["wine"])
    assert located(entries()["wine"].folder) is None
    assert "not on this machine" in check(entries()["wine"])[0].said


def test_every_task_is_listed_and_no_hash_is_made_up() -> None:
    listed = entries()
    for name in image_names():
        assert any(name == key or name.startswith(f"{key}-") for key in listed), name
    for held in listed.values():
        for remote in held.remotes:
            kind, _, digest = remote.hash.partition(":")
            assert len(digest) == {"sha256": 64, "md5": 32}[kind]
        assert held.remotes or "no hash is known" in held.how or held.kind == "drawn images"


@pytest.mark.parametrize("name", ["california", "bike-hours", "traffic", "poverty", "mnist"])
def test_known_hashes_are_those_of_the_real_tables(
    name: str, data_dir: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.undo()
    held = entries()[name]
    assert all(finding.good for finding in check(held, data_dir(held.folder)))
