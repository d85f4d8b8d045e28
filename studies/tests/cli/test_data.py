"""`howsure data` as a user runs it."""

from __future__ import annotations

import gzip
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from howsure.cli.entry import Interrupted
from howsure.cli.main import app
from howsure.core.errors import InputError
from howsure_studies.cli.data import KEPT
from howsure_studies.tasks import catalogue, download, transfer
from howsure_studies.tasks.download import DownloadError, Remote
from tasks.served import Served, hash_of, serving


@pytest.fixture(autouse=True)
def nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("HOWSURE_DATA", str(tmp_path / "data"))


def command(*arguments: object) -> Any:
    return CliRunner().invoke(app, ["data", *map(str, arguments)], catch_exceptions=False)


def test_list_names_all_and_where_they_are(tmp_path: Path) -> None:
    (tmp_path / "data" / "shift_bike_hour").mkdir(parents=True)
    text = " ".join(command("list").output.split())
    for name in ("cells", "brain-tumour-pixels", "california", "wine", "boston"):
        assert name in text
    assert "generated on demand" in text
    assert "shift_bike_hour" in text.replace(" ", "")
    assert text.count("not on this machine") > 10


def test_get_says_how_and_fails_while_it_is_not_there(tmp_path: Path) -> None:
    result = command("get", "ventricular-volume")
    assert result.exit_code == 1
    for words in (
        "research use",
        "echonet.github.io",
        "no hash is known",
        "folder EchoNet-Dynamic",
    ):
        assert words in " ".join(result.output.split())
    drawn = command("get", "cells")
    assert drawn.exit_code == 0
    assert "put Cell200_64x64.h5 in the folder" in " ".join(drawn.output.split())
    faces = tmp_path / "faces"
    (faces / "image sets").mkdir(parents=True)
    assert command("get", "aaf", "--folder", faces).exit_code == 1


def served(monkeypatch: pytest.MonkeyPatch, server: Served, data: bytes) -> None:
    """The catalogue with wine alone, as a server has it."""
    remote = Remote(
        url=f"{server.address}/wine.zip",
        name="wine.zip",
        hash=hash_of(data),
        size=len(data),
        picks=(("", ""),),
    )
    wine = replace(catalogue.entries()["wine"], remotes=(remote,), known=())
    monkeypatch.setattr(catalogue, "entries", lambda: {"wine": wine})
    monkeypatch.setattr(transfer, "_PAUSE", 0.0)


def test_get_downloads_shows_how_far_it_is_and_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serving(tmp_path / "served") as server:
        path = server.folder / "wine.zip"
        with zipfile.ZipFile(path, "w") as archive:
            for colour in ("red", "white"):
                archive.writestr(f"winequality-{colour}.csv", "quality\n5\n" * 1000)
        served(monkeypatch, server, path.read_bytes())
        server.halts = [1000, 0, 0, 0, 0, 0]
        with pytest.raises(DownloadError, match="1,000 bytes have arrived, and the same command"):
            command("get", "wine")
        assert command("check", "wine").exit_code == 1
        result = command("get", "wine")
        assert result.exit_code == 0
        text = " ".join(result.output.split())
        assert f"wine.zip, {path.stat().st_size:,} bytes, sha256:" in text
        assert "checking wine.zip.part" in text
        assert "unpacking wine.zip" in text
        assert command("check", "wine").exit_code == 0
        assert command("get", "wine").exit_code == 0
        assert server.sent == path.stat().st_size


def test_an_interrupted_get_says_that_it_can_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with serving(tmp_path / "served") as server:
        served(monkeypatch, server, b"")
        monkeypatch.setattr(download, "fetch", stop)
        result = command("get", "wine")
    assert result.exit_code == 130
    assert isinstance(result.exception, Interrupted)
    assert result.exception.words == KEPT


def test_check_says_what_is_missing_or_changed(tmp_path: Path) -> None:
    assert command("check", "california").exit_code == 1
    assert "no file is needed" in command("check", "cells").output
    folder = tmp_path / "data" / "shift_california_housing"
    folder.mkdir(parents=True)
    (folder / "data.csv.gz").write_bytes(gzip.compress(b"changed"))
    result = command("check", "california")
    assert result.exit_code == 1
    assert "ok    data.csv.gz or housing.csv: 1 there" in result.output
    assert "FAIL  data.csv.gz: sha256 has changed" in result.output


def test_check_can_record(tmp_path: Path) -> None:
    folder = tmp_path / "data" / "uci_yacht"
    folder.mkdir(parents=True)
    (folder / "data.csv.gz").write_bytes(b"as it is")
    result = command("check", "yacht", "--record")
    assert result.exit_code == 0
    assert "1 files are as recorded" in result.output
    (folder / "data.csv.gz").write_bytes(b"as it was")
    assert command("check", "yacht").exit_code == 1


def test_an_unknown_name_is_bad_input() -> None:
    with pytest.raises(InputError, match="near: california"):
        command("check", "californa")
