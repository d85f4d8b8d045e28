"""Fetching one file by HTTP: resumed where it broke off, and there only when it is whole.

What has come so far lies beside the wanted file as ``NAME.part``, with what the server said of it
in ``NAME.part.json``. It is gone on with while the server still has the same file. The wanted
name appears when size and hash are right, as far as they are known.
"""

from __future__ import annotations

import hashlib
import http.client
import json
import re
import shutil
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, final
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

from howsure import __version__
from howsure.core.errors import HowsureError, InputError
from howsure.core.progress import tell

_BLOCK: Final = 1 << 20
_TIMEOUT: Final = 60.0  # seconds without a byte
_TRIES: Final = 5  # connections in a row that bring nothing
_PAUSE: Final = 1.0  # seconds, longer after each of them
_RANGE: Final = re.compile(r"bytes (\d+)-\d+/(\d+|\*)")
_MARGIN: Final = 1 << 26  # bytes that are left free on the disk


class DownloadError(HowsureError):
    """A file cannot be downloaded, or is not what it was."""


@final
@dataclass(frozen=True, slots=True)
class _Part:
    """What has come of a file, and what the server said of it."""

    file: Path
    url: str

    @property
    def notes(self) -> Path:
        return self.file.with_name(f"{self.file.name}.json")

    def told(self) -> Mapping[str, Any]:
        """What the server said when it began; nothing where that was of another address."""
        try:
            told = json.loads(self.notes.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        return told if isinstance(told, dict) and told.get("url") == self.url else {}

    def size(self) -> int:
        return self.file.stat().st_size if self.file.is_file() else 0

    def remove(self) -> None:
        self.file.unlink(missing_ok=True)
        self.notes.unlink(missing_ok=True)


def fetch(url: str, target: Path, *, size: int | None = None, known: str = "") -> None:
    """Download a file, or the rest of it.

    Parameters
    ----------
    url : str
        Where it is, by http or https; redirects are followed.
    target : Path
        What to call it; in a folder that is there.
    size : int, optional
        Its bytes, where they are known.
    known : str
        Its hash, such as ``sha256:…`` or ``md5:…`` (``git:…`` is that of git's object), if known.

    Raises
    ------
    DownloadError
        If the server refuses, breaks off, or gives another file; or if the disk is too small.
    """
    if not url.startswith(("https://", "http://")):
        raise InputError(f"url must begin with https:// or http://, got {url!r}")
    if target.is_file():
        if not wrong(target, size, known):
            return
        target.unlink()
    part = _Part(target.with_name(f"{target.name}.part"), url)
    try:
        _complete(part, target.name, size, known)
        said = wrong(part.file, size, known)
        if said:
            part.remove()
            raise DownloadError(f"{url} is not the file it was: {said}; it was removed")
        part.file.replace(target)
        part.notes.unlink(missing_ok=True)
    except OSError as error:
        raise DownloadError(f"{url} cannot be kept at {target}: {error}") from error


def wrong(file: Path, size: int | None, known: str) -> str:
    """What is wrong with a file's size or hash; nothing where all that is known of it is right."""
    there = file.stat().st_size
    if size is not None and there != size:
        return f"{file.name} must have {size:,} bytes, got {there:,}"
    kind, _, wanted = known.partition(":")
    if wanted and (got := digest(file, kind)) != wanted:
        return f"{file.name} must have the {kind} hash {wanted}, got {got}"
    return ""


def digest(file: Path, kind: str) -> str:
    """The hash of a file, by a name that hashlib knows, or ``git``."""
    size = file.stat().st_size
    found = hashlib.new("sha1" if kind == "git" else kind, usedforsecurity=False)
    if kind == "git":
        found.update(b"blob %d\0" % size)
    with file.open("rb") as handle:
        done = 0
        while block := handle.read(_BLOCK):
            found.update(block)
            done += len(block)
            tell(f"checking {file.name}", done, size)
    return found.hexdigest()


def check_room(folder: Path, wanted: int, what: str) -> None:
    """Raise `DownloadError` where the disk of a folder has less room than is wanted."""
    free = shutil.disk_usage(folder).free
    if free < wanted + _MARGIN:
        raise DownloadError(
            f"{what} needs {wanted / 1e9:,.1f} GB in {folder}, and {free / 1e9:,.1f} GB are free"
        )


def _complete(part: _Part, name: str, size: int | None, known: str) -> None:
    """Connect until all has come, or connections bring nothing any more."""
    vain, why = 0, ""
    while vain < _TRIES:
        before = part.size()
        try:
            if _received(part, name, size, known):
                return
            why = "the connection ended early"
        except (http.client.HTTPException, TimeoutError, ConnectionError) as error:
            why = str(error) or type(error).__name__
        vain = 0 if part.size() > before else vain + 1
        time.sleep(_PAUSE * vain)
    so_far = f"{part.size():,} bytes have come"
    raise DownloadError(
        f"{part.url} cannot be downloaded: {why}; {so_far}, and the same command goes on from there"
    )


def _received(part: _Part, name: str, size: int | None, known: str) -> bool:
    """Ask for what is left and keep what comes; whether that is all."""
    told = part.told()
    have = part.size()
    if have and not (told.get("tag") or known):
        have = 0  # nothing would tell that the file has changed meanwhile
    if have and have == (size or told.get("total")):
        return True
    with _opened(part, have, told) as answer:
        start, total = _extent(answer, have)
        if size is not None and total not in (None, size):
            part.remove()
            raise DownloadError(
                f"{part.url} is not the file it was: it must have {size:,} bytes, and the server "
                f"has {total:,}"
            )
        if start not in (0, have):
            part.remove()
            raise http.client.HTTPException(f"the server began at byte {start}, not {have}")
        if total is not None:
            check_room(part.file.parent, total - start, name)
        notes = {"url": part.url, "tag": _tag(answer), "total": total}
        part.notes.write_text(json.dumps(notes), encoding="utf-8")
        done = start
        with part.file.open("r+b" if start else "wb") as file:
            file.seek(start)
            tell(name, done, total or 0)
            while block := answer.read(_BLOCK):
                file.write(block)
                done += len(block)
                tell(name, done, total or 0)
    return total is None or done >= total


def _opened(part: _Part, have: int, told: Mapping[str, Any]) -> Any:
    """The server's answer to the question for all bytes from a place on."""
    asked = {"User-Agent": f"howsure/{__version__}", "Accept-Encoding": "identity"}
    if have:
        asked["Range"] = f"bytes={have}-"
        if told.get("tag"):
            asked["If-Range"] = str(told["tag"])
    try:
        return urlopen(Request(part.url, headers=asked), timeout=_TIMEOUT)
    except HTTPError as error:
        error.close()
        if error.code == 416:  # what is here is no beginning of what is there
            part.remove()
            raise http.client.HTTPException("the server has less than has come") from error
        if have and error.code in (429, 500, 502, 503, 504):
            raise http.client.HTTPException(f"{error.code} {error.reason}") from error
        raise DownloadError(
            f"{part.url} cannot be downloaded: {error.code} {error.reason}"
        ) from error
    except URLError as error:
        if have:
            raise http.client.HTTPException(str(error.reason)) from error
        raise DownloadError(f"{part.url} cannot be downloaded: {error.reason}") from error


def _extent(answer: Any, have: int) -> tuple[int, int | None]:
    """Where an answer begins in the file, and the bytes of the whole, if the server says."""
    length = answer.length  # of what is to come; None where the server says nothing or nonsense
    if answer.status == 206:
        match = _RANGE.fullmatch(answer.headers.get("Content-Range", "").strip())
        if match is None:
            return have, None if length is None else have + length
        return int(match[1]), None if match[2] == "*" else int(match[2])
    return 0, length


def _tag(answer: Any) -> str:
    """By what the server will know this very file again."""
    tag = str(answer.headers.get("ETag", ""))
    strong = tag and not tag.startswith("W/")
    return tag if strong else str(answer.headers.get("Last-Modified", ""))
