"""Getting data sets, and checking what is there.

Pooch downloads and compares hashes. Archives are unpacked here: whole or not at all, and never a
link, a device or a file with holes, which Pooch's own unpacking lets pass.
"""

from __future__ import annotations

import gzip
import hashlib
import shutil
import tarfile
import tempfile
import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, Final, Literal, final

from howsure.core.errors import HowsureError, InputError
from howsure.core.files import atomic_write
from howsure.core.optional import require
from howsure.studies.tasks.files import BROKEN, UnreadableError, cache_folder, places

MANIFEST: Final = "howsure-sha256.txt"
"""Where `record` notes the hashes of a set's files, in the form of ``sha256sum``."""

_BLOCK: Final = 1 << 20

Kind = Literal["drawn images", "images", "table"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Remote:
    """A file that can be downloaded."""

    url: str
    hash: str  # ``sha256:…`` or ``md5:…`` of its bytes
    name: str
    unpack: bool = False  # whether it is a TAR archive of the set's folder


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Holding:
    """How many files a set's folder must hold, by globs of which any may match."""

    patterns: tuple[str, ...]
    count: int = 1


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A data set: what it is, its licence as we know it, where it comes from, what it holds."""

    name: str
    kind: Kind  # drawn sets need no file; their originals may be read instead
    what: str
    licence: str
    source: str  # the page to get it from, and
    how: str  # what to do there
    folder: str
    holds: tuple[Holding, ...]
    remotes: tuple[Remote, ...] = ()


class DownloadError(HowsureError):
    """A file cannot be downloaded, or is not what it was."""


@final
@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was checked: whether it is as it must be, and what was seen."""

    good: bool
    said: str


def located(entry: Entry) -> Path | None:
    """The folder of a set on this machine, or None."""
    return next((place for place in places(entry.folder) if place.is_dir()), None)


def get(entry: Entry, folder: Path | None = None) -> Path:
    """Download a set whose address and hash are known."""
    if not entry.remotes:
        raise InputError(f"name must be of a set that can be downloaded, got {entry.name!r}")
    place = folder or cache_folder() / entry.folder
    for remote in entry.remotes:
        _fetch(remote, place, entry.folder)
    return place


def _fetch(remote: Remote, place: Path, folder: str) -> None:
    pooch: Any = require("pooch", extra="vision")
    where = place.parent if remote.unpack else place
    try:
        where.mkdir(parents=True, exist_ok=True)
        pooch.retrieve(
            url=remote.url,
            known_hash=remote.hash,
            fname=remote.name,
            path=where,
        )
    except (OSError, ValueError) as error:
        raise DownloadError(f"{remote.url} cannot be downloaded: {error}") from error
    if remote.unpack:
        untar(where / remote.name, folder, place)


def check(entry: Entry, folder: Path | None = None) -> list[Finding]:
    """Say what of a set is there, what is missing, and what has changed."""
    place = folder or located(entry)
    if place is None:
        looked = " and ".join(map(str, places(entry.folder)))
        return [Finding(False, f"not on this machine: looked for {looked}")]
    if not place.is_dir():
        return [Finding(False, f"{place}: no such folder")]
    found = [_counted(place, holding) for holding in entry.holds]
    found += [_hashed(place, remote, entry) for remote in entry.remotes if not remote.unpack]
    return found + _recorded(place)


def record(entry: Entry, folder: Path | None = None) -> Path:
    """Note the hashes of all files that are there, so that `check` sees later changes."""
    place = folder or located(entry)
    if place is None or not place.is_dir():
        raise InputError(f"folder must exist, got {str(place or entry.folder)!r}")
    files = [file for holding in entry.holds for file in _files(place, holding)]
    lines = [f"{_digest(file, 'sha256')}  {file.relative_to(place)}\n" for file in files]
    atomic_write(place / MANIFEST, "".join(lines))
    return place / MANIFEST


def _files(place: Path, holding: Holding) -> list[Path]:
    found = {file for pattern in holding.patterns for file in place.glob(pattern)}
    return sorted(file for file in found if file.is_file() and not file.name.startswith("."))


def _counted(place: Path, holding: Holding) -> Finding:
    number = len(_files(place, holding))
    wanted = " or ".join(holding.patterns)
    if number >= holding.count:
        return Finding(True, f"{wanted}: {number} there")
    return Finding(False, f"{wanted}: {number} of {holding.count} there")


def _hashed(place: Path, remote: Remote, entry: Entry) -> Finding:
    """Compare the content of a file, packed or not, to the hash of its source."""
    kind, _, wanted = remote.hash.partition(":")
    files = [file for holding in entry.holds for file in _files(place, holding)]
    own = [file for file in files if file.name == remote.name]
    if not files:
        return Finding(False, f"{remote.name}: nothing to compare to the source")
    file = (own or files)[0]
    try:
        same = _digest(file, kind, unpack=not own and file.suffix == ".gz") == wanted
    except (OSError, EOFError, zlib.error) as error:
        return Finding(False, f"{file.name}: cannot be read: {error}")
    said = "is the source's" if same else "has changed, or is not the source's"
    return Finding(same, f"{file.name}: {kind} {said}")


def _recorded(place: Path) -> list[Finding]:
    if not (place / MANIFEST).is_file():
        return []
    found, good = [], 0
    for line in (place / MANIFEST).read_text(encoding="utf-8").splitlines():
        wanted, _, name = line.partition("  ")
        if not (place / name).is_file():
            found.append(Finding(False, f"{name}: recorded, and gone"))
        elif _digest(place / name, "sha256") != wanted:
            found.append(Finding(False, f"{name}: sha256 has changed since it was recorded"))
        else:
            good += 1
    return [*found, Finding(True, f"{good} files are as recorded")]


def _digest(file: Path, kind: str, *, unpack: bool = False) -> str:
    found = hashlib.new(kind)
    with gzip.open(file, "rb") if unpack else file.open("rb") as handle:
        while block := handle.read(_BLOCK):
            found.update(block)
    return found.hexdigest()


def untar(archive: Path, folder: str, place: Path) -> None:
    """Unpack one folder of a TAR archive as `place`, whole or not at all."""
    temporary = Path(tempfile.mkdtemp(prefix=".unpacking-", dir=place.parent))
    try:
        with tarfile.open(archive, "r:") as packed:
            members = list(_inside(packed, folder, archive))
            if not members:
                raise UnreadableError(f"{archive} must hold the folder {folder!r}, got none")
            if not all(_there(member, place) for member in members):
                packed.extractall(temporary, members, filter="data")
                _move(temporary / folder, place)
    except (*BROKEN, tarfile.TarError) as error:
        if isinstance(error, UnreadableError):
            raise
        raise UnreadableError(f"{archive} cannot be unpacked: {error}") from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _inside(packed: tarfile.TarFile, folder: str, archive: Path) -> Iterable[tarfile.TarInfo]:
    """Members of the folder; what lies beside it is left."""
    for member in packed:
        path = PurePosixPath(member.name)
        if path.is_absolute() or ".." in path.parts or "\\" in member.name:
            raise UnreadableError(
                f"{archive}: paths must stay inside the archive, got {member.name!r}"
            )
        if not (member.isfile() or member.isdir()) or member.issparse():
            raise UnreadableError(
                f"{archive} must hold plain files and folders alone, got {member.name!r}, "
                "a link, a device or a file with holes"
            )
        if path.parts[:1] == (folder,):
            yield member


def _there(member: tarfile.TarInfo, place: Path) -> bool:
    path = place.joinpath(*PurePosixPath(member.name).parts[1:])
    if member.isdir():
        return path.is_dir()
    return path.is_file() and path.stat().st_size == member.size


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
            path.replace(target)
