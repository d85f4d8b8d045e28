"""Files appear whole or not at all."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from howsure.core.errors import InputError
from howsure.core.files import atomic_write, cache_folder, remembered, replacing


def names(folder: Path) -> list[str]:
    return sorted(os.listdir(folder))


def test_text_and_bytes_are_written(tmp_path: Path) -> None:
    atomic_write(tmp_path / "a.txt", "é\n")
    atomic_write(tmp_path / "b.bin", b"\x00\xff")
    assert (tmp_path / "a.txt").read_bytes() == "é\n".encode()
    assert (tmp_path / "b.bin").read_bytes() == b"\x00\xff"
    assert names(tmp_path) == ["a.txt", "b.bin"]


def test_rights_are_those_of_any_new_file(tmp_path: Path) -> None:
    (tmp_path / "plain").write_text("")
    atomic_write(tmp_path / "made", "")
    assert (tmp_path / "made").stat().st_mode == (tmp_path / "plain").stat().st_mode
    (tmp_path / "made").chmod(0o600)
    atomic_write(tmp_path / "made", "again")
    assert stat.S_IMODE((tmp_path / "made").stat().st_mode) == 0o600


@pytest.mark.parametrize("error", [ValueError("bad"), KeyboardInterrupt(), OSError(28, "full")])
def test_a_failure_leaves_what_was_there(tmp_path: Path, error: BaseException) -> None:
    path = tmp_path / "report.html"
    path.write_text("before")

    def write() -> None:
        with replacing(path) as temporary:
            assert temporary.suffix == ".html"
            temporary.write_text("half")
            raise error

    expected = InputError if isinstance(error, OSError) else type(error)
    with pytest.raises(expected) as caught:
        write()
    if isinstance(error, OSError):
        assert str(caught.value) == f"{str(path)!r} cannot be written: No space left on device"
    assert path.read_text() == "before"
    assert names(tmp_path) == ["report.html"]


def test_a_link_is_followed(tmp_path: Path) -> None:
    (tmp_path / "real").write_text("before")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    atomic_write(tmp_path / "link", "after")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_text() == "after"


def test_places_that_cannot_be_written_are_named(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    for path, said in [
        (tmp_path / "folder", "must be a file, got the folder"),
        (tmp_path / "none" / "a.txt", "folder of the output must exist"),
        (tmp_path / ("a" * 300), "cannot be written: File name too long"),
        (Path("/dev/null"), "must be a regular file"),
        ("a\0b", "cannot be written: .*embedded null"),
    ]:
        with pytest.raises(InputError, match=said):
            atomic_write(path, "text")
    with pytest.raises(InputError, match="surrogates not allowed"):
        atomic_write(tmp_path / "a.txt", "\ud800")
    assert names(tmp_path) == ["folder"]


def test_a_long_name_may_be_written(tmp_path: Path) -> None:
    atomic_write(tmp_path / ("a" * 251 + ".csv"), "text")
    assert names(tmp_path) == ["a" * 251 + ".csv"]


def test_what_is_dear_to_make_is_made_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    made: list[str] = []

    def make() -> str:
        made.append("one\r\ntwo é\n")
        return made[-1]

    assert {remembered("text 1", make) for _ in range(3)} == {"one\r\ntwo é\n"}
    assert len(made) == 1
    assert remembered("text 2", make) == made[0]
    assert len(made) == 2
    path = cache_folder() / "made" / "text 1"
    for broken in (path.read_bytes()[:-1], b"", b"\xff\n"):
        path.write_bytes(broken)
        assert remembered("text 1", make) == remembered("text 1", make) == made[0]
    assert len(made) == 5


def test_what_cannot_be_kept_is_made_each_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "howsure").write_text("a file, no folder")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    made = iter("ab")
    assert [remembered("text", lambda: next(made)) for _ in range(2)] == ["a", "b"]
    monkeypatch.delenv("XDG_CACHE_HOME")

    def homeless() -> Path:
        raise RuntimeError("no home")

    monkeypatch.setattr(Path, "home", homeless)
    assert remembered("text", lambda: "c") == "c"
