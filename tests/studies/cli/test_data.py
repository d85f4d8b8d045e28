"""`howsure data` as a user runs it."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from howsure.cli.main import app
from howsure.core.errors import InputError


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
    result = command("get", "skin-lesion-pixels")
    assert result.exit_code == 1
    for words in ("CC BY-NC 4.0", "10.7910/DVN/DBW86T", "no hash is known", "folder HAM10000"):
        assert words in result.output
    assert command("get", "cells").exit_code == 0
    wine = tmp_path / "wine"
    wine.mkdir()
    for colour in ("red", "white"):
        (wine / f"winequality-{colour}.csv").write_text("quality\n")
    assert command("get", "wine", "--folder", wine).exit_code == 0


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
