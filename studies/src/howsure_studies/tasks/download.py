"""Getting data sets, and checking what is there.

Files are downloaded beside the set's folder, and go on from where they broke off (`transfer`).
Archives are unpacked there too (`archives`). The folder appears, or gets what it lacks, when all of
it is whole.
"""

from __future__ import annotations

import os
import shutil
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final, Literal, final

from howsure.core.classes import frozen
from howsure.core.errors import InputError
from howsure.core.files import atomic_write
from howsure_studies.tasks.archives import LayoutError, NoReaderError, Picks, listed, unpack
from howsure_studies.tasks.files import UnreadableError, cache_folder, located, places
from howsure_studies.tasks.transfer import MOST, DownloadError, check_room, digest, fetch

MANIFEST: Final = "howsure-sha256.txt"
"""Where `record` notes the hashes of a set's files, in the form of ``sha256sum``."""

Kind = Literal["drawn images", "images", "table", "table of a package"]


@final
@frozen(kw_only=True)
class Remote:
    """A file that can be downloaded: a file of the set, or an archive or a part of one."""

    url: str
    name: str  # what it is called here, with its folders in the set if it is a file of it
    hash: str = ""  # ``sha256:…``, ``md5:…`` or ``git:…`` of its bytes, if known
    size: int | None = None  # its bytes, if known
    picks: Picks = ()  # what is unpacked of an archive, and where to
    whole: str = ""  # of a part: the archive's name; its parts stand together, in order


@final
@frozen(kw_only=True)
class Holding:
    """How many files a set's folder must contain, by globs of which any may match."""

    patterns: tuple[str, ...]
    count: int = 1


@final
@frozen(kw_only=True)
class Known:
    """A file whose content is known where it is there, by the hashes of its publishers."""

    name: str
    hashes: tuple[str, ...]
    packed: bool = False  # whether the hashes are of what a gzip file holds


@final
@frozen(kw_only=True)
class Entry:
    """A data set: what it is, its licence as we know it, where it comes from, what it holds.

    Of several lists of holdings, one is enough: the ways in which its publishers pack it.
    """

    name: str
    kind: Kind  # drawn sets and packages need no file; originals of the former are read if there
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
@frozen
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
    home = folder or located(entry.folder) or cache_folder() / entry.folder
    if home.exists() and not home.is_dir():
        raise InputError(f"folder must be a folder, got the file {str(home)!r}")
    if home.is_dir() and all(finding.good for finding in check(entry, home)):
        return home
    work = home.parent / f".{home.name}.download"
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
                _move(staging, home)
            finally:
                shutil.rmtree(staging, ignore_errors=True)
        shutil.rmtree(work, ignore_errors=True)
    except OSError as error:
        raise DownloadError(f"{home} cannot be written: {error}") from error
    return home


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
            raise DownloadError(f"{work} is in use: another download of it is running") from error
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
        files = [work / remote.name for remote in parts]
        if not parts[0].picks:
            target = staging / parts[0].name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(files[0], target)
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
        f"install it (pip install py7zr) and run the command again, or unpack {files[0]} with "
        f"7z x, then the archive in it, and put {kept} in the set's folder"
    )


def _check_layout(entry: Entry, staging: Path) -> None:
    lacking = [finding for finding in _counted_all(staging, entry) if not finding.good]
    if lacking:
        names = sorted(p.relative_to(staging).as_posix() for p in staging.rglob("*") if p.is_file())
        raise LayoutError(
            f"{entry.source} has another layout than {entry.name}: "
            f"{'; '.join(finding.said for finding in lacking)}; it contains {listed(names)}"
        )


def check(entry: Entry, folder: Path | None = None) -> list[FileCheck]:
    """Say what of a set is there, what is missing, and what has changed."""
    home = folder or located(entry.folder)
    if home is None:
        looked = " and ".join(map(str, places(entry.folder)))
        return [FileCheck(False, f"not on this machine: looked for {looked}")]
    if not home.is_dir():
        return [FileCheck(False, f"{home}: no such folder")]
    checks = _counted_all(home, entry)
    checks += [
        _hashed(home / known.name, known) for known in entry.known if (home / known.name).is_file()
    ]
    return checks + _recorded(home)


def record(entry: Entry, folder: Path | None = None) -> Path:
    """Note the hashes of all files that are there, so that `check` sees later changes."""
    home = folder or located(entry.folder)
    if home is None or not home.is_dir():
        raise InputError(f"folder must exist, got {str(home or entry.folder)!r}")
    holdings = (holding for holds in (entry.holds, *entry.otherwise) for holding in holds)
    files = sorted({file for holding in holdings for file in _files(home, holding)})
    lines = [f"{digest(file, 'sha256')}  {file.relative_to(home)}\n" for file in files]
    atomic_write(home / MANIFEST, "".join(lines))
    return home / MANIFEST


def _files(home: Path, holding: Holding) -> list[Path]:
    files = {file for pattern in holding.patterns for file in home.glob(pattern)}
    return sorted(file for file in files if file.is_file() and not file.name.startswith("."))


def _counted_all(home: Path, entry: Entry) -> list[FileCheck]:
    """What is there of the set, in the way of packing of which most is."""
    ways = [
        [_counted(home, holding) for holding in holds] for holds in (entry.holds, *entry.otherwise)
    ]
    return max(ways, key=lambda checks: sum(finding.good for finding in checks) / len(checks))


def _counted(home: Path, holding: Holding) -> FileCheck:
    number = len(_files(home, holding))
    wanted = " or ".join(holding.patterns)
    if number >= holding.count:
        return FileCheck(True, f"{wanted}: {number} there")
    return FileCheck(False, f"{wanted}: {number} of {holding.count} there")


def _hashed(file: Path, known: Known) -> FileCheck:
    """Compare the content of a file, packed or not, to what its publishers gave."""
    kinds = {text.partition(":")[0] for text in known.hashes}
    try:
        hashes = {f"{kind}:{digest(file, kind, packed=known.packed)}" for kind in kinds}
    except (OSError, EOFError, zlib.error) as error:
        return FileCheck(False, f"{file.name}: cannot be read: {error}")
    same = bool(hashes & set(known.hashes))
    said = "is the source's" if same else "has changed, or is not the source's"
    return FileCheck(same, f"{file.name}: {' or '.join(sorted(kinds))} {said}")


def _recorded(home: Path) -> list[FileCheck]:
    if not (home / MANIFEST).is_file():
        return []
    checks, good = [], 0
    for line in (home / MANIFEST).read_text(encoding="utf-8").splitlines():
        wanted, _, name = line.partition("  ")
        if not (home / name).is_file():
            checks.append(FileCheck(False, f"{name}: recorded, but missing"))
        elif digest(home / name, "sha256") != wanted:
            checks.append(FileCheck(False, f"{name}: sha256 has changed since it was recorded"))
        else:
            good += 1
    return [*checks, FileCheck(True, f"{good} files are as recorded")]


def _move(source: Path, target: Path) -> None:
    """Put a folder in its place; in one that is there, its files replace those of their names."""
    if target.exists():
        shutil.copytree(source, target, copy_function=shutil.move, dirs_exist_ok=True)
    else:
        source.rename(target)
