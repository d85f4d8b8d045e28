"""Unpacking what others have packed: plain files alone, and never outside the folder.

ZIP and TAR archives (packed or not) are read here; 7z by the library py7zr where it is installed.
An archive may be cut in parts, and may hold another archive and nothing else.
"""

from __future__ import annotations

import bisect
import io
import lzma
import stat
import tarfile
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path, PurePosixPath
from typing import IO, Any, Final, final
from zipfile import ZipFile, is_zipfile

from howsure.core.classes import frozen
from howsure.core.progress import report_progress
from howsure_studies.tasks.files import BROKEN, UnreadableError
from howsure_studies.tasks.transfer import check_room

Picks = tuple[tuple[str, str], ...]
"""Which members are unpacked: those whose name begins so, under a name that begins so instead."""

_BLOCK: Final = 1 << 20
_SEVEN: Final = b"7z\xbc\xaf\x27\x1c"
_SHOWN: Final = 6
_LITTER: Final = ("__MACOSX", ".DS_Store", "Thumbs.db")


class LayoutError(UnreadableError):
    """An archive holds other files than it should."""


class NoReaderError(UnreadableError):
    """An archive is of a kind that needs a library which is not installed."""


@final
@frozen
class _Member:
    name: str
    size: int
    plain: bool  # a file, and no link, device or file with holes
    folder: bool
    opened: Callable[[], IO[bytes]]


@final
class Joined(io.RawIOBase):
    """Files one after the other, as one that can be read and searched."""

    def __init__(self, files: Sequence[Path]) -> None:
        self._handles = [file.open("rb") for file in files]
        self._starts = [0]
        for file in files:
            self._starts.append(self._starts[-1] + file.stat().st_size)
        self._at = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._starts[-1]}[whence]
        if base + offset < 0:
            raise OSError("cannot go before the first byte")
        self._at = base + offset
        return self._at

    def readinto(self, buffer: Any) -> int:
        view = memoryview(buffer).cast("B")
        number = bisect.bisect_right(self._starts, self._at) - 1
        if number >= len(self._handles) or not len(view):
            return 0
        room = min(len(view), self._starts[number + 1] - self._at)
        handle = self._handles[number]
        handle.seek(self._at - self._starts[number])
        block = handle.read(room)
        view[: len(block)] = block
        self._at += len(block)
        return len(block)

    def close(self) -> None:
        for handle in self._handles:
            handle.close()
        super().close()


def unpack(parts: Sequence[Path], picks: Picks, target: Path) -> int:
    """Unpack the members that are picked from an archive, cut in parts or not; how many.

    Where it fails, what it has written by then is left in the target.
    """
    name = parts[0].name
    try:
        with ExitStack() as stack:
            source = stack.enter_context(io.BufferedReader(Joined(parts), _BLOCK))
            members = _members(source, name, picks, target, stack)
            seen: list[str] = []
            count = _written(members, name, picks, target, seen)
            if count:
                return count
            inner = _only(seen)
        if inner is not None:
            return _inner(parts, inner, picks, target)
    except UnreadableError:
        raise
    except (*BROKEN, tarfile.TarError, NotImplementedError) as error:
        raise UnreadableError(f"{parts[0]} cannot be unpacked: {error}") from error
    wanted = " and ".join(begin or "files" for begin, _ in picks)
    raise LayoutError(f"{parts[0]} must contain {wanted}, got {listed(seen)}")


def listed(names: Sequence[str]) -> str:
    """The first few of what there is, by its top folders and files."""
    tops = sorted(
        {f"{top}/" if rest else top for top, _, rest in (n.partition("/") for n in names)}
    )
    more = f" and {len(tops) - _SHOWN} more" if len(tops) > _SHOWN else ""
    return (", ".join(tops[:_SHOWN]) or "nothing") + more


def _inner(parts: Sequence[Path], name: str, picks: Picks, target: Path) -> int:
    """Unpack an archive that is all that another one holds."""
    with tempfile.TemporaryDirectory(prefix=".inner-", dir=target.parent) as folder:
        unpack(parts, ((name, name),), Path(folder))
        return unpack([Path(folder) / name], picks, target)


def _only(names: Sequence[str]) -> str | None:
    files = [name for name in names if not name.endswith("/")]
    packed = len(files) == 1 and files[0].lower().endswith((".zip", ".tar", ".tar.gz", ".tgz"))
    return files[0] if packed else None


def _members(
    source: IO[bytes], name: str, picks: Picks, target: Path, stack: ExitStack
) -> Iterator[_Member]:
    """Members of an archive of any kind, once the disk is known to have room for what is picked."""
    size = source.seek(0, io.SEEK_END)
    source.seek(0)
    begin = source.read(len(_SEVEN))
    source.seek(0)
    if begin == _SEVEN:
        check_room(target, size, f"unpacking {name}")
        return _seven(source, name, target, stack)
    if begin[:2] == b"PK" and is_zipfile(source):
        packed = stack.enter_context(ZipFile(source))
        room = sum(i.file_size for i in packed.infolist() if _picked(i.filename, picks) is not None)
        check_room(target, room, f"unpacking {name}")
        return _zipped(packed, name)
    source.seek(0)
    check_room(target, size, f"unpacking {name}")
    try:
        unpacked = stack.enter_context(tarfile.open(fileobj=source, mode="r:*"))  # noqa: SIM115
    except tarfile.TarError as error:
        what = "a web page" if begin.lstrip()[:1] == b"<" else "another kind of file or a part"
        raise UnreadableError(
            f"{name} must be a whole ZIP, TAR or 7z archive, got {what}"
        ) from error
    return _tarred(unpacked)


def _zipped(packed: ZipFile, name: str) -> Iterator[_Member]:
    for info in packed.infolist():
        if info.flag_bits & 1:
            raise UnreadableError(f"{name} must be open to all, got {info.filename!r}, encrypted")
        kind = stat.S_IFMT(info.external_attr >> 16)
        plain = kind in (0, stat.S_IFREG) or (kind == stat.S_IFDIR and info.is_dir())

        def opened(info: Any = info) -> IO[bytes]:
            return packed.open(info)

        yield _Member(info.filename, info.file_size, plain, info.is_dir(), opened)


def _tarred(packed: tarfile.TarFile) -> Iterator[_Member]:
    for info in packed:
        plain = (info.isfile() and not info.issparse()) or info.isdir()

        def opened(info: tarfile.TarInfo = info) -> IO[bytes]:
            handle = packed.extractfile(info)
            assert handle is not None
            return handle

        yield _Member(info.name, info.size, plain, info.isdir(), opened)


def _seven(source: IO[bytes], name: str, target: Path, stack: ExitStack) -> Iterator[_Member]:
    """Members of a 7z archive, each unpacked beside the target first, as py7zr does it."""
    try:
        import py7zr  # type: ignore[import-not-found, unused-ignore]
    except ImportError as error:
        raise NoReaderError(
            f"{name} is a 7z archive, which this machine cannot unpack without py7zr"
        ) from error
    broken = (*BROKEN, lzma.LZMAError, py7zr.exceptions.ArchiveError)
    try:
        packed = stack.enter_context(py7zr.SevenZipFile(source, "r"))
        members = packed.list()
    except broken as error:
        raise UnreadableError(f"{name} cannot be unpacked: {error}") from error
    for info in members:
        path = info.filename
        linked = bool(getattr(info, "is_symlink", False))

        def opened(path: str = path) -> IO[bytes]:
            beside = tempfile.TemporaryDirectory(prefix=".seven-", dir=target.parent)
            folder = stack.enter_context(beside)
            try:
                packed.reset()
                packed.extract(path=folder, targets=[path])
                return (Path(folder) / path).open("rb")
            except broken as error:
                raise UnreadableError(f"{name} cannot be unpacked: {error}") from error

        yield _Member(path, info.uncompressed or 0, not linked, info.is_directory, opened)


def _written(
    members: Iterator[_Member], name: str, picks: Picks, target: Path, seen: list[str]
) -> int:
    """Write the members that are picked; how many. The names of all are noted."""
    count = 0
    for member in members:
        path = _checked(member, name)
        if any(step in _LITTER or step.startswith("._") for step in path.parts):
            continue
        own = path.as_posix() + ("/" if member.folder else "")
        seen.append(own)
        inner = _picked(own, picks)
        if inner is None or member.folder:
            continue
        count += 1
        _copied(member, target / inner)
        report_progress(f"unpacking {name}", count, 0)
    return count


def _copied(member: _Member, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    left = member.size
    with member.opened() as source, target.open("xb") as file:
        while block := source.read(_BLOCK):
            left -= len(block)
            if left < 0:
                raise UnreadableError(f"{member.name} must unpack to {member.size:,} bytes")
            file.write(block)
    if left:
        raise UnreadableError(f"{member.name} must unpack to {member.size:,} bytes, got fewer")


def _checked(member: _Member, name: str) -> PurePosixPath:
    """The path of a member, which must stay inside and be of a plain file or folder."""
    path = PurePosixPath(member.name)
    if (
        path.is_absolute()
        or ".." in path.parts
        or set(member.name) & set("\\\0")
        or (path.parts and ":" in path.parts[0])
    ):
        raise UnreadableError(f"{name}: paths must stay inside the archive, got {member.name!r}")
    if not member.plain:
        raise UnreadableError(
            f"{name} must contain only plain files and folders, got {member.name!r}, "
            "a link, a device or a file with holes"
        )
    return path


def _picked(name: str, picks: Picks) -> str | None:
    """Where a member goes, or None where it is left."""
    for begin, instead in picks:
        if name.startswith(begin):
            return instead + name[len(begin) :]
    return None
