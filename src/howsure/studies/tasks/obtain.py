"""Getting data sets, and checking what is there."""

from __future__ import annotations

import gzip
import hashlib
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, final

from howsure.core.errors import HowsureError, InputError
from howsure.core.files import atomic_write
from howsure.core.optional import require
from howsure.studies.tasks.catalogue import Entry, Holding, Remote
from howsure.studies.tasks.places import cache_folder, places
from howsure.studies.tasks.unpack import untar

MANIFEST: Final = "howsure-sha256.txt"
"""Where `record` notes the hashes of a set's files, in the form of ``sha256sum``."""


_BLOCK: Final = 1 << 20


class DownloadError(HowsureError):
    """A file cannot be downloaded, or is not what it was."""


@final
@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was checked.

    Attributes
    ----------
    good : bool
        Whether it is as it must be.
    said : str
        What was found.
    """

    good: bool
    said: str


def located(entry: Entry) -> Path | None:
    """The folder of a set on this machine, or None.

    Examples
    --------
    >>> from dataclasses import replace
    >>> from howsure.studies.tasks.catalogue import entries
    >>> located(replace(entries()["cells"], folder="no_such_folder")) is None
    True
    """
    return next((place for place in places(entry.folder) if place.is_dir()), None)


def get(entry: Entry, folder: Path | None = None) -> Path:
    """Download a set whose address and hash are known.

    Parameters
    ----------
    entry : Entry
        Which.
    folder : Path, optional
        Where to; its folder in the user's cache if omitted.

    Returns
    -------
    Path
        The folder.

    Raises
    ------
    InputError
        If the set has no known address and hash.
    DownloadError
        If the download fails, or its hash is another than the one known.
    UnreadableError
        If what was downloaded cannot be unpacked.
    """
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
    """Say what of a set is there, what is missing, and what has changed.

    Parameters
    ----------
    entry : Entry
        Which.
    folder : Path, optional
        Its folder; looked for if omitted.

    Returns
    -------
    list of Finding
        One for each kind of file, for each known hash, and for the hashes noted by `record`.

    Examples
    --------
    >>> from pathlib import Path
    >>> from howsure.studies.tasks.catalogue import entries
    >>> check(entries()["california"], Path("no_such_folder"))
    [Finding(good=False, said='no_such_folder: no such folder')]
    """
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
    """Note the hashes of all files that are there, so that `check` sees later changes.

    Parameters
    ----------
    entry : Entry
        Which.
    folder : Path, optional
        Its folder; looked for if omitted.

    Returns
    -------
    Path
        The file of hashes, in the set's folder.

    Raises
    ------
    InputError
        If the set is not there, or the folder cannot be written to.
    """
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
