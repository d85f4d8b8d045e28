"""Archives of all kinds: what is picked comes out whole, and nothing goes where it should not."""

from __future__ import annotations

import gzip
import io
import stat
import sys
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import pytest

from howsure_studies.tasks.archives import LayoutError, NoReaderError, listed, unpack
from howsure_studies.tasks.files import UnreadableError

ALL = (("", ""),)
FILES = {"set/a.txt": b"one", "set/more/b.txt": b"two" * 1000, "other/c.txt": b"three"}


def zipped(path: Path, files: dict[str, bytes], **told: Any) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(name, data, **told)
    return path


def tarred(path: Path, files: dict[str, bytes], mode: str = "w") -> Path:
    with tarfile.open(path, mode) as archive:  # type: ignore[call-overload]
        for name, data in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return path


def cut(path: Path, parts: int) -> list[Path]:
    """An archive in so many parts."""
    data, found = path.read_bytes(), []
    size = -(-len(data) // parts)
    for number in range(parts):
        part = path.with_name(f"{path.name}.{number + 1:03d}")
        part.write_bytes(data[number * size : (number + 1) * size])
        found.append(part)
    return found


def held(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


@pytest.fixture
def target(tmp_path: Path) -> Path:
    folder = tmp_path / "work" / "target"
    folder.mkdir(parents=True)
    return folder


@pytest.mark.parametrize("kind", ["zip", "tar", "tar.gz", "tar.xz"])
@pytest.mark.parametrize("parts", [1, 4])
def test_all_kinds_come_out_as_they_went_in(
    kind: str, parts: int, tmp_path: Path, target: Path
) -> None:
    path = tmp_path / f"x.{kind}"
    modes = {"tar": "w", "tar.gz": "w:gz", "tar.xz": "w:xz"}
    archive = zipped(path, FILES) if kind == "zip" else tarred(path, FILES, modes[kind])
    assert unpack(cut(archive, parts), ALL, target) == 3
    assert held(target) == dict(sorted(FILES.items()))


def test_only_what_is_picked_comes_out_under_its_new_name(tmp_path: Path, target: Path) -> None:
    litter = {"__MACOSX/set/._a.txt": b"x", "set/._a.txt": b"x", "set/.DS_Store": b"x"}
    archive = tarred(tmp_path / "x.tar", {f"./{k}": v for k, v in (FILES | litter).items()})
    assert unpack([archive], (("set/more/", "deep/"), ("set/", "")), target) == 2
    assert held(target) == {"a.txt": b"one", "deep/b.txt": b"two" * 1000}


def test_an_archive_that_is_all_in_another_is_unpacked_too(tmp_path: Path, target: Path) -> None:
    inner = zipped(tmp_path / "inner.zip", FILES).read_bytes()
    outer = zipped(tmp_path / "outer.zip", {"inner.zip": inner})
    assert unpack(cut(outer, 3), (("set/", ""),), target) == 2
    assert sorted(held(target)) == ["a.txt", "more/b.txt"]
    assert [path.name for path in target.parent.iterdir()] == ["target"]


@pytest.mark.parametrize("make", [zipped, tarred])
def test_another_layout_names_what_was_wanted_and_what_is_there(
    make: Any, tmp_path: Path, target: Path
) -> None:
    archive = make(tmp_path / "x", {**FILES, "readme.md": b"x"})
    said = r"x must contain images/ and list\.csv, got other/, readme\.md, set/$"
    with pytest.raises(LayoutError, match=said):
        unpack([archive], (("images/", "images/"), ("list.csv", "list.csv")), target)
    assert held(target) == {}


def test_what_is_there_is_told_in_short() -> None:
    assert listed([]) == "nothing"
    assert listed([f"{name}/x" for name in "hgfedcba"]) == "a/, b/, c/, d/, e/, f/ and 2 more"


def told_tar(path: Path, name: str, told: dict[str, Any]) -> Path:
    with tarfile.open(path, "w") as archive:
        for one, own in (("set/good.txt", {}), (name, told)):
            info = tarfile.TarInfo(one)
            info.size = 0 if own else 4
            for key, value in own.items():
                setattr(info, key, value)
            archive.addfile(info, io.BytesIO(b"text"))
    return path


def told_zip(path: Path, name: str, told: dict[str, Any]) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("set/good.txt", b"text")
        info = zipfile.ZipInfo("x")
        info.filename = name
        kinds = {tarfile.SYMTYPE: stat.S_IFLNK, tarfile.FIFOTYPE: stat.S_IFIFO}
        info.external_attr = kinds.get(told.get("type", b""), stat.S_IFREG) << 16
        archive.writestr(info, b"/etc")
    return path


LINK = {"type": tarfile.SYMTYPE, "linkname": "/etc"}
OUTSIDE, PLAIN = "paths must stay inside", "plain files and folders"


@pytest.mark.parametrize(
    ("make", "name", "told", "said"),
    [
        *(
            (make, name, {}, OUTSIDE)
            for make in (told_tar, told_zip)
            for name in ("../out.txt", "set/../../out.txt", "/tmp/out.txt", "set/..\\..\\out.txt")
        ),
        (told_tar, "C:/out.txt", {}, OUTSIDE),
        (told_tar, "set/link", LINK, PLAIN),
        (told_zip, "set/link", LINK, PLAIN),
        (told_tar, "set/link", {**LINK, "linkname": "good.txt"}, PLAIN),
        (told_tar, "set/hard", {"type": tarfile.LNKTYPE, "linkname": "../x"}, PLAIN),
        (told_tar, "set/pipe", {"type": tarfile.FIFOTYPE}, PLAIN),
        (told_zip, "set/pipe", {"type": tarfile.FIFOTYPE}, PLAIN),
        (told_tar, "set/device", {"type": tarfile.CHRTYPE}, PLAIN),
    ],
)
def test_members_that_lead_out_are_refused(
    make: Any, name: str, told: dict[str, Any], said: str, tmp_path: Path, target: Path
) -> None:
    archive = make(tmp_path / "set.bin", name, told)
    with pytest.raises(UnreadableError, match=rf"set\.bin.*{said}"):
        unpack([archive], ALL, target)
    inside = {path for path in tmp_path.rglob("*") if path.is_file()}
    assert inside <= {archive, target / "set" / "good.txt"}


def test_broken_archives_are_said(tmp_path: Path, target: Path) -> None:
    whole = tarred(tmp_path / "x.tar.gz", FILES, "w:gz").read_bytes()
    for data, said in (
        (whole[: len(whole) // 2], "cannot be unpacked: "),
        (b"<html>sign in</html>" * 40, "must be a whole ZIP, TAR or 7z archive, got a web page"),
        (b"", "must be a whole ZIP, TAR or 7z archive, got another kind of file or a part"),
        (gzip.compress(b"no archive"), "must be a whole ZIP, TAR or 7z archive"),
        (zipped(tmp_path / "x.zip", FILES).read_bytes()[:150], "must be a whole ZIP, TAR or 7z"),
    ):
        (tmp_path / "broken").write_bytes(data)
        with pytest.raises(UnreadableError, match=f"broken {said}"):
            unpack([tmp_path / "broken"], (("none", ""),), target)
    assert held(target) == {}


def test_a_damaged_member_is_found_by_its_check_sum(tmp_path: Path, target: Path) -> None:
    path = tmp_path / "x.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a", b"good words")
    path.write_bytes(path.read_bytes().replace(b"good", b"evil"))
    with pytest.raises(UnreadableError, match="cannot be unpacked: Bad CRC-32"):
        unpack([path], ALL, target)


def test_a_name_that_comes_twice_is_refused(tmp_path: Path, target: Path) -> None:
    archive = tarred(tmp_path / "x.tar", {"a/f": b"1", "b/f": b"2"})
    with pytest.raises(UnreadableError, match=r"cannot be unpacked: .*exists"):
        unpack([archive], (("a/", ""), ("b/", "")), target)


def test_7z_without_its_library_is_said(
    tmp_path: Path, target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "py7zr", None)
    (tmp_path / "x.7z.001").write_bytes(b"7z\xbc\xaf\x27\x1c" + bytes(60))
    with pytest.raises(NoReaderError, match=r"x\.7z\.001 is a 7z archive, .* without py7zr"):
        unpack([tmp_path / "x.7z.001"], ALL, target)
