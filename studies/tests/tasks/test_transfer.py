"""Files by HTTP: resumed, whole or not there, and held to size and hash."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
from collections import namedtuple
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.request import Request

import numpy as np
import pytest

from howsure.core.errors import InputError
from howsure.core.progress import subscribe
from howsure_studies.tasks import transfer
from howsure_studies.tasks.transfer import DownloadError, digest, fetch
from tasks.served import Served, hash_of, serving

DATA = np.random.default_rng(0).integers(0, 256, 300_000, dtype=np.uint8).tobytes()


@pytest.fixture(autouse=True)
def no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transfer, "_PAUSE", 0.0)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Served]:
    with serving(tmp_path / "served") as held:
        (held.folder / "a.bin").write_bytes(DATA)
        yield held


def test_a_file_comes_whole_and_is_not_asked_for_again(server: Served, tmp_path: Path) -> None:
    target = tmp_path / "a.bin"
    heard: list[tuple[str, int, int]] = []
    with subscribe(lambda *told: heard.append(told)):
        fetch(f"{server.address}/a.bin", target, size=len(DATA), known=hash_of(DATA))
    assert target.read_bytes() == DATA
    assert ("a.bin", len(DATA), len(DATA)) in heard
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.bin", "served"]
    fetch(f"{server.address}/a.bin", target, known=hash_of(DATA))
    assert len(server.asked) == 1


@pytest.mark.parametrize("kind", ["md5", "sha1", "sha256"])
def test_what_broke_off_is_gone_on_with(kind: str, server: Served, tmp_path: Path) -> None:
    server.halts = [100_000, 50_000]
    fetch(f"{server.address}/a.bin", tmp_path / "a.bin", known=hash_of(DATA, kind))
    assert (tmp_path / "a.bin").read_bytes() == DATA
    assert [asked for _, asked in server.asked] == [None, "bytes=100000-", "bytes=150000-"]
    assert server.sent == len(DATA)


def test_another_run_goes_on_where_one_gave_up(server: Served, tmp_path: Path) -> None:
    server.halts = [100_000, 0, 0, 0, 0, 0]
    target = tmp_path / "a.bin"
    with pytest.raises(
        DownloadError, match=r"100,000 bytes have arrived, and the same command res"
    ):
        fetch(f"{server.address}/a.bin", target)
    assert not target.exists()
    fetch(f"{server.address}/a.bin", target)
    assert target.read_bytes() == DATA
    assert server.asked[-1] == ("/a.bin", "bytes=100000-")
    assert server.sent == len(DATA)


def test_an_interrupt_keeps_what_has_come(server: Served, tmp_path: Path) -> None:
    def stop(_: str, done: int, __: int) -> None:
        if done:
            raise KeyboardInterrupt

    target = tmp_path / "a.bin"
    with pytest.raises(KeyboardInterrupt), subscribe(stop):
        fetch(f"{server.address}/a.bin", target)
    assert not target.exists()
    assert (tmp_path / "a.bin.part").stat().st_size > 0
    fetch(f"{server.address}/a.bin", target)
    assert target.read_bytes() == DATA


def test_a_server_without_ranges_begins_anew(server: Served, tmp_path: Path) -> None:
    server.ranges = False
    server.halts = [100_000]
    fetch(f"{server.address}/a.bin", tmp_path / "a.bin")
    assert (tmp_path / "a.bin").read_bytes() == DATA
    assert server.sent == len(DATA) + 100_000


def test_a_file_that_changed_meanwhile_is_not_mixed(server: Served, tmp_path: Path) -> None:
    server.halts = [100_000, 0, 0, 0, 0, 0]
    with pytest.raises(DownloadError):
        fetch(f"{server.address}/a.bin", tmp_path / "a.bin")
    (server.folder / "a.bin").write_bytes(DATA[::-1])
    fetch(f"{server.address}/a.bin", tmp_path / "a.bin")
    assert (tmp_path / "a.bin").read_bytes() == DATA[::-1]


def test_without_a_tag_or_a_hash_nothing_is_gone_on_with(server: Served, tmp_path: Path) -> None:
    server.tags = False
    server.halts = [100_000]
    fetch(f"{server.address}/a.bin", tmp_path / "a.bin")
    assert (tmp_path / "a.bin").read_bytes() == DATA
    assert {asked for _, asked in server.asked} == {None}
    server.halts = [100_000]
    fetch(f"{server.address}/a.bin", tmp_path / "b.bin", known=hash_of(DATA))
    assert server.asked[-1] == ("/a.bin", "bytes=100000-")
    assert (tmp_path / "b.bin").read_bytes() == DATA


def test_a_part_of_another_address_is_not_gone_on_with(server: Served, tmp_path: Path) -> None:
    (tmp_path / "a.bin.part").write_bytes(b"other" * 10)
    (tmp_path / "a.bin.part.json").write_text(json.dumps({"url": "http://x", "tag": '"1"'}))
    fetch(f"{server.address}/a.bin", tmp_path / "a.bin")
    assert (tmp_path / "a.bin").read_bytes() == DATA


def test_a_part_longer_than_the_file_is_begun_anew(server: Served, tmp_path: Path) -> None:
    (tmp_path / "a.bin.part").write_bytes(DATA + b"more")
    fetch(f"{server.address}/a.bin", tmp_path / "a.bin", known=hash_of(DATA))
    assert (tmp_path / "a.bin").read_bytes() == DATA


def test_redirects_are_followed_with_the_range(server: Served, tmp_path: Path) -> None:
    server.moved = {"/api/1": "/a.bin"}
    server.halts = [100_000]
    fetch(f"{server.address}/api/1?format=original", tmp_path / "a.bin")
    assert (tmp_path / "a.bin").read_bytes() == DATA
    assert server.asked[-1] == ("/a.bin", "bytes=100000-")


def test_a_wrong_hash_or_size_leaves_nothing(server: Served, tmp_path: Path) -> None:
    target = tmp_path / "a.bin"
    with pytest.raises(DownloadError, match=r"must have the md5 hash 0{32}, got .*was removed"):
        fetch(f"{server.address}/a.bin", target, known=f"md5:{32 * '0'}")
    with pytest.raises(DownloadError, match=r"must have 7 bytes, but the server has 300,000"):
        fetch(f"{server.address}/a.bin", target, size=7)
    assert [path.name for path in tmp_path.iterdir()] == ["served"]


def test_a_wrong_file_of_that_name_is_replaced(server: Served, tmp_path: Path) -> None:
    (tmp_path / "a.bin").write_bytes(DATA[:1000])
    fetch(f"{server.address}/a.bin", tmp_path / "a.bin", size=len(DATA))
    assert (tmp_path / "a.bin").read_bytes() == DATA


@pytest.mark.parametrize("code", [403, 404, 500])
def test_a_refusal_is_said(code: int, server: Served, tmp_path: Path) -> None:
    server.refused = {"/a.bin": code}
    with pytest.raises(DownloadError, match=f"a.bin cannot be downloaded: {code}"):
        fetch(f"{server.address}/a.bin", tmp_path / "a.bin")
    assert [path.name for path in tmp_path.iterdir()] == ["served"]


def test_no_server_and_no_http_are_said(tmp_path: Path) -> None:
    with pytest.raises(DownloadError, match=r"cannot be downloaded: .*refused"):
        fetch("http://127.0.0.1:9/a", tmp_path / "a")
    with pytest.raises(InputError, match="url must begin with https:// or http://, got 'file:"):
        fetch("file:///etc/passwd", tmp_path / "a")


def test_a_full_disk_is_said_before_it_is_full(
    server: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage(10, 9, 1 << 26))
    with pytest.raises(DownloadError, match=r"a\.bin needs 0\.0 GB in .*, and 0\.1 GB are free"):
        fetch(f"{server.address}/a.bin", tmp_path / "a.bin")
    assert [path.name for path in tmp_path.iterdir()] == ["served"]


def test_a_folder_that_cannot_be_written_is_said(server: Served, tmp_path: Path) -> None:
    with pytest.raises(DownloadError, match=r"cannot be saved at .*none"):
        fetch(f"{server.address}/a.bin", tmp_path / "none" / "a.bin")


@pytest.mark.parametrize("wanted", [hashlib.sha1, hashlib.md5])
def test_hashes_are_those_of_hashlib(wanted: Callable[..., hashlib._Hash], tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(DATA)
    assert digest(tmp_path / "a", wanted().name) == wanted(DATA).hexdigest()


def test_the_hash_of_git_is_that_of_its_object(tmp_path: Path) -> None:
    """``git hash-object`` of a file that holds ``hello`` and a new line."""
    (tmp_path / "a").write_bytes(b"hello\n")
    assert digest(tmp_path / "a", "git") == "ce013625030ba8dba906f756967f9e9ca394464a"


@pytest.mark.parametrize("head", [False, True], ids=["body", "head"])
def test_a_server_that_drips_is_left(
    head: bool, server: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transfer, "_SPAN", 0.1)
    monkeypatch.setattr(transfer, "_TRIES", 2)
    server.drip, server.slow_head = 0.01, head
    with pytest.raises(
        DownloadError, match=r"less than 600,000 bytes per second arrived; [\d,]+ bytes"
    ):
        fetch(f"{server.address}/a.bin", tmp_path / "a.bin", known=hash_of(DATA))
    assert len(server.asked) == 2
    assert not (tmp_path / "a.bin").exists()
    server.drip, server.slow_head = 0.0, False
    fetch(f"{server.address}/a.bin", tmp_path / "a.bin", known=hash_of(DATA))
    assert (tmp_path / "a.bin").read_bytes() == DATA


def test_a_connection_that_brings_a_byte_is_tried_so_often(server: Served, tmp_path: Path) -> None:
    server.halts = [1] * 100
    with pytest.raises(DownloadError, match=r"connection ended early; 5 bytes have arrived"):
        fetch(f"{server.address}/a.bin", tmp_path / "a.bin", known=hash_of(DATA))


@pytest.mark.parametrize(
    "stated", [{"size": len(DATA)}, {"most": len(DATA)}], ids=["known size", "stated cap"]
)
def test_no_more_comes_than_a_file_may_have(
    stated: dict[str, int], server: Served, tmp_path: Path
) -> None:
    server.lengths = False
    fetch(f"{server.address}/a.bin", tmp_path / "a.bin", **stated)
    assert (tmp_path / "a.bin").read_bytes() == DATA
    server.more = 1 << 30
    with pytest.raises(DownloadError, match=r"300,000 bytes, and the server sends [\d,]+ or more"):
        fetch(f"{server.address}/a.bin", tmp_path / "b.bin", **stated)
    assert server.sent < 1 << 28  # what sockets hold, and no more
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.bin", "served"]


def test_a_file_larger_than_stated_is_not_begun(server: Served, tmp_path: Path) -> None:
    with pytest.raises(DownloadError, match="at most 299,999 bytes, and the server sends 300,000"):
        fetch(f"{server.address}/a.bin", tmp_path / "a.bin", most=len(DATA) - 1)
    assert [path.name for path in tmp_path.iterdir()] == ["served"]


@pytest.mark.parametrize(
    ("to", "said"),
    [
        ("ftp://127.0.0.1/a.bin", "leads to 'ftp://127.0.0.1/a.bin', and only https and http are"),
        ("file:///etc/passwd", "not allowed"),
        ("http://[::1", "leads to an invalid address"),
        ("http://127.0.0.1:port/a", "leads to 'http://127.0.0.1:port/a'"),
    ],
)
def test_redirects_elsewhere_are_refused(
    to: str, said: str, server: Served, tmp_path: Path
) -> None:
    server.moved["/a.bin"] = to
    with pytest.raises(DownloadError, match=re.escape(said)):
        fetch(f"{server.address}/a.bin", tmp_path / "a.bin")
    assert [path.name for path in tmp_path.iterdir()] == ["served"]


def test_no_redirect_leads_from_https_to_http() -> None:
    asked = Request("https://127.0.0.1/a.bin")
    redirects = transfer._Redirects()
    with pytest.raises(DownloadError, match="only https are followed from there"):
        redirects.redirect_request(asked, None, 302, "", {}, "http://127.0.0.1/b.bin")
    followed = redirects.redirect_request(asked, None, 302, "", {}, "https://127.0.0.1/b.bin")
    assert followed is not None
    assert followed.full_url == "https://127.0.0.1/b.bin"


@pytest.mark.parametrize(
    "url", ["http://[::1", "http://", "https:///a", "http://h:port/a", "http://h/a b", "http://h/ä"]
)
def test_half_an_address_is_refused(url: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="url must be an address such as https://host/file"):
        fetch(url, tmp_path / "a.bin")


@pytest.mark.parametrize("name", ["a.bin.part", "a.bin.part.json"])
@pytest.mark.parametrize("kind", ["link", "dangling link", "pipe"])
def test_a_link_beside_the_file_is_not_followed(
    kind: str, name: str, server: Served, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    if kind == "pipe":
        os.mkfifo(tmp_path / name)
    else:
        (tmp_path / name).symlink_to(other)
    if kind == "link":
        other.write_bytes(b"precious")
    with pytest.raises(DownloadError, match=f"{name} must be a plain file, or not exist"):
        fetch(f"{server.address}/a.bin", tmp_path / "a.bin", known=hash_of(DATA))
    assert not server.asked
    assert kind != "link" or other.read_bytes() == b"precious"
    assert kind != "dangling link" or not other.exists()
