"""Getting data sets, and checking what is there.

Files are downloaded beside the set's folder, and go on from where they broke off (`transfer`).
Archives are unpacked there too (`archives`). The folder appears, or gets what it lacks, when all of
it is whole.
"""

from __future__ import annotations

import gzip
import hashlib
import os
import shutil
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, final

from howsure.core.errors import InputError
from howsure.core.files import atomic_write
from howsure_studies.tasks.archives import LayoutError, NoReaderError, Picks, listed, unpack
from howsure_studies.tasks.files import UnreadableError, cache_folder, located, places
from howsure_studies.tasks.transfer import MOST, DownloadError, check_room, digest, fetch

MANIFEST: Final = "howsure-sha256.txt"
"""Where `record` notes the hashes of a set's files, in the form of ``sha256sum``."""

_BLOCK: Final = 1 << 20

Kind = Literal["drawn images", "images", "table"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Remote:
    """A file that can be downloaded: a file of the set, or an archive or a part of one."""

    url: str
    name: str  # what it is called here, with its folders in the set if it is a file of it
    hash: str = ""  # ``sha256:…``, ``md5:…`` or ``git:…`` of its bytes, if known
    size: int | None = None  # its bytes, if known
    picks: Picks = ()  # what is unpacked of an archive, and where to
    whole: str = ""  # of a part: the archive's name; its parts stand together, in order


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Holding:
    """How many files a set's folder must hold, by globs of which any may match."""

    patterns: tuple[str, ...]
    count: int = 1


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """A file whose content is known where it is there, by the hashes of its publishers."""

    name: str
    hashes: tuple[str, ...]
    packed: bool = False  # whether the hashes are of what a gzip file holds


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A data set: what it is, its licence as we know it, where it comes from, what it holds.

    Of several lists of holdings, one is enough: the ways in which its publishers pack it.
    """

    name: str
    kind: Kind  # drawn sets need no file; their originals are read where they are there
    what: str
    licence: str
    source: str  # the page to get it from, and
    how: str  # what to do there
    folder: str
    holds: tuple[Holding, ...]
    otherwise: tuple[tuple[Holding, ...], ...] = ()
    remotes: tuple[Remote, ...] = ()
    known: tuple[Known, ...] = ()
    about: float = 0.0  # GB that the downloads take, nearly


@final
@dataclass(frozen=True, slots=True)
class FileCheck:
    """One thing that was checked: whether it is as it must be, and what was seen."""

    good: bool
    said: str


def get(entry: Entry, folder: Path | None = None) -> Path:
    """Download a set whose address is known, where it is not there whole already.

    Without a folder it goes where the set is looked for and found, else into the cache. What
    breaks off is gone on with by the next call.
    """
    if not entry.remotes:
        raise InputError(f"name must be of a set that can be downloaded, got {entry.name!r}")
    place = folder or located(entry.folder) or cache_folder() / entry.folder
    if place.exists() and not place.is_dir():
        raise InputError(f"folder must be a folder, got the file {str(place)!r}")
    if place.is_dir() and all(finding.good for finding in check(entry, place)):
        return place
    work = place.parent / f".{place.name}.download"
    try:
        work.mkdir(parents=True, exist_ok=True)
        with _alone(work), _tidied(work):
            _fetched(entry, work)
            staging = work / "unpacked"
            shutil.rmtree(staging, ignore_errors=True)
            staging.mkdir()
            try:
                _unpacked(entry, work, staging)
                _check_layout(entry, staging)
                _move(staging, place)
            finally:
                shutil.rmtree(staging, ignore_errors=True)
        shutil.rmtree(work, ignore_errors=True)
    except OSError as error:
        raise DownloadError(f"{place} cannot be written: {error}") from error
    return place


@contextmanager
def _alone(work: Path) -> Iterator[None]:
    """Keep others from downloading to the same place meanwhile, where the system can do that."""
    try:
        import fcntl
    except ImportError:
        yield
        return
    lock = os.open(work / "lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o666)
    with os.fdopen(lock, "r+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise DownloadError(f"{work} is in use: another download of it is at work") from error
        yield


@contextmanager
def _tidied(work: Path) -> Iterator[None]:
    """Leave no folder behind in which nothing has come."""
    try:
        yield
    finally:
        if all(path.name == "lock" for path in work.iterdir()):
            shutil.rmtree(work, ignore_errors=True)


def _fetched(entry: Entry, work: Path) -> None:
    there = sum(file.stat().st_size for file in work.glob("**/*") if file.is_file())
    sizes = sum(remote.size or 0 for remote in entry.remotes)
    check_room(work, max(max(int(entry.about * 1e9), sizes) - there, 0), entry.name)
    most = max(int(2 * entry.about * 1e9), MOST)
    for remote in entry.remotes:
        target = work / remote.name
        target.parent.mkdir(parents=True, exist_ok=True)
        fetch(remote.url, target, size=remote.size, known=remote.hash, most=most)


def _unpacked(entry: Entry, work: Path, staging: Path) -> None:
    """Put what has come in its place, archives unpacked."""
    archives: dict[str, list[Remote]] = {}
    for remote in entry.remotes:
        archives.setdefault(remote.whole or remote.name, []).append(remote)
    for parts in archives.values():
        files = [work / part.name for part in parts]
        if not parts[0].picks:
            place = staging / parts[0].name
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(files[0], place)
            continue
        try:
            unpack(files, parts[0].picks, staging)
        except NoReaderError as error:
            raise NoReaderError(f"{error}; {_by_hand(files, parts[0].picks)}") from error
        except UnreadableError as error:
            raise type(error)(f"{error}; remove {work} to download it again") from error


def _by_hand(files: Sequence[Path], picks: Picks) -> str:
    """What to do with an archive that is here whole and cannot be unpacked here."""
    kept = " and ".join(f"{begin.rstrip('/')} as {to.rstrip('/') or '.'}" for begin, to in picks)
    return (
        f"install it (pip install py7zr) and run the same command again, or unpack {files[0]} with "
        f"7z x, then the archive in it, and put {kept} in the set's folder"
    )


def _check_layout(entry: Entry, staging: Path) -> None:
    lacking = [finding for finding in _counted_all(staging, entry) if not finding.good]
    if lacking:
        names = sorted(p.relative_to(staging).as_posix() for p in staging.rglob("*") if p.is_file())
        raise LayoutError(
            f"{entry.source} gave another layout than {entry.name} has: "
            f"{'; '.join(finding.said for finding in lacking)}; it holds {listed(names)}"
        )


def check(entry: Entry, folder: Path | None = None) -> list[FileCheck]:
    """Say what of a set is there, what is missing, and what has changed."""
    place = folder or located(entry.folder)
    if place is None:
        looked = " and ".join(map(str, places(entry.folder)))
        return [FileCheck(False, f"not on this machine: looked for {looked}")]
    if not place.is_dir():
        return [FileCheck(False, f"{place}: no such folder")]
    found = _counted_all(place, entry)
    found += [_hashed(place / one.name, one) for one in entry.known if (place / one.name).is_file()]
    return found + _recorded(place)


def record(entry: Entry, folder: Path | None = None) -> Path:
    """Note the hashes of all files that are there, so that `check` sees later changes."""
    place = folder or located(entry.folder)
    if place is None or not place.is_dir():
        raise InputError(f"folder must exist, got {str(place or entry.folder)!r}")
    held = (holding for holds in (entry.holds, *entry.otherwise) for holding in holds)
    files = sorted({file for holding in held for file in _files(place, holding)})
    lines = [f"{digest(file, 'sha256')}  {file.relative_to(place)}\n" for file in files]
    atomic_write(place / MANIFEST, "".join(lines))
    return place / MANIFEST


def _files(place: Path, holding: Holding) -> list[Path]:
    found = {file for pattern in holding.patterns for file in place.glob(pattern)}
    return sorted(file for file in found if file.is_file() and not file.name.startswith("."))


def _counted_all(place: Path, entry: Entry) -> list[FileCheck]:
    """What is there of the set, in the way of packing of which most is."""
    ways = [[_counted(place, one) for one in holds] for holds in (entry.holds, *entry.otherwise)]
    return max(ways, key=lambda found: sum(finding.good for finding in found) / len(found))


def _counted(place: Path, holding: Holding) -> FileCheck:
    number = len(_files(place, holding))
    wanted = " or ".join(holding.patterns)
    if number >= holding.count:
        return FileCheck(True, f"{wanted}: {number} there")
    return FileCheck(False, f"{wanted}: {number} of {holding.count} there")


def _hashed(file: Path, known: Known) -> FileCheck:
    """Compare the content of a file, packed or not, to what its publishers gave."""
    kinds = {one.partition(":")[0] for one in known.hashes}
    try:
        found = {f"{kind}:{_unpacked_digest(file, kind, known.packed)}" for kind in kinds}
    except (OSError, EOFError, zlib.error) as error:
        return FileCheck(False, f"{file.name}: cannot be read: {error}")
    same = bool(found & set(known.hashes))
    said = "is the source's" if same else "has changed, or is not the source's"
    return FileCheck(same, f"{file.name}: {' or '.join(sorted(kinds))} {said}")


def _unpacked_digest(file: Path, kind: str, packed: bool) -> str:
    if not packed:
        return digest(file, kind)
    found = hashlib.new(kind, usedforsecurity=False)
    with gzip.open(file, "rb") as handle:
        while block := handle.read(_BLOCK):
            found.update(block)
    return found.hexdigest()


def _recorded(place: Path) -> list[FileCheck]:
    if not (place / MANIFEST).is_file():
        return []
    found, good = [], 0
    for line in (place / MANIFEST).read_text(encoding="utf-8").splitlines():
        wanted, _, name = line.partition("  ")
        if not (place / name).is_file():
            found.append(FileCheck(False, f"{name}: recorded, and gone"))
        elif digest(place / name, "sha256") != wanted:
            found.append(FileCheck(False, f"{name}: sha256 has changed since it was recorded"))
        else:
            good += 1
    return [*found, FileCheck(True, f"{good} files are as recorded")]


def _move(source: Path, place: Path) -> None:
    """Put a folder in its place; in one that is there, its files replace those of their names."""
    if not place.exists():
        source.rename(place)
        return
    for path in sorted(source.rglob("*")):
        target = place / path.relative_to(source)
        if path.is_dir():
            target.mkdir(exist_ok=True)
        else:
            shutil.move(path, target)
