"""Fetching one file by HTTP: resumed where it broke off, and there only when it is whole.

What has come so far lies beside the wanted file as ``NAME.part``, with what the server said of it
in ``NAME.part.json``. It is gone on with while the server still has the same file. The wanted
name appears when size and hash are right, as far as they are known. A server may neither send
more than the file has nor take forever over it.

Why not pooch: all but twenty of these lines would be its downloader. It removes what has come of a
file when the downloader fails, and knows neither sizes nor git's hashes, so that resumption, caps,
least speed, redirects and those checks would stay here. Tried with pooch 1.9 and requests, this
file was two lines longer, 8 of 71 tests still failed, and eight libraries more were needed.
"""

from __future__ import annotations

import gzip
import hashlib
import http.client
import io
import json
import os
import re
import shutil
import ssl
import stat
import time
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any, Final, final
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import (
    HTTPDefaultErrorHandler,
    HTTPErrorProcessor,
    HTTPHandler,
    HTTPRedirectHandler,
    HTTPSHandler,
    OpenerDirector,
    ProxyHandler,
    Request,
)

from howsure import __version__
from howsure.core.classes import frozen
from howsure.core.errors import HowsureError, InputError
from howsure.core.files import atomic_write
from howsure.core.progress import report_progress

MOST: Final = 10**9
"""Bytes that a file may have of which nobody states how many it has."""

_BLOCK: Final = 1 << 20
_TIMEOUT: Final = 60.0  # seconds without a byte
_SPAN: Final = 60.0  # seconds, in each of which
_LEAST: Final = 60_000  # bytes come at least, else the connection ends
_TRIES: Final = 5  # connections in a row that bring less than that
_PAUSE: Final = 1.0  # seconds, longer after each of them
_RANGE: Final = re.compile(r"bytes (\d+)-\d+/(\d+|\*)")
_MARGIN: Final = 1 << 26  # bytes that are left free on the disk


class DownloadError(HowsureError):
    """A file cannot be downloaded, or is not what it was."""


@final
@frozen
class _Part:
    """What has come of a file, and what the server said of it; links are not followed."""

    file: Path
    url: str

    @property
    def notes(self) -> Path:
        return self.file.with_name(f"{self.file.name}.json")

    def check(self) -> None:
        """Raise `DownloadError` where something else than a file lies there, such as a link."""
        for path in (self.file, self.notes):
            if os.path.lexists(path) and not stat.S_ISREG(path.lstat().st_mode):
                raise DownloadError(f"{path} must be a plain file, or not exist: remove it")

    def open(self, start: int) -> IO[bytes]:
        """The file, to be written from a place on."""
        no_link = getattr(os, "O_NOFOLLOW", 0)
        made = os.open(self.file, os.O_RDWR | os.O_CREAT | no_link, 0o666)
        file = os.fdopen(made, "r+b")
        file.truncate(start)
        file.seek(start)
        return file

    def server(self) -> Mapping[str, Any]:
        """What the server said when it began; nothing where that was of another address."""
        try:
            content = json.loads(self.notes.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        return content if isinstance(content, dict) and content.get("url") == self.url else {}

    def size(self) -> int:
        return self.file.stat().st_size if self.file.is_file() else 0

    def remove(self) -> None:
        self.file.unlink(missing_ok=True)
        self.notes.unlink(missing_ok=True)


def fetch(
    url: str, target: Path, *, size: int | None = None, known: str = "", most: int = MOST
) -> None:
    """Download a file, or the rest of it, into a folder that is there.

    By http or https; redirects are followed, but none to less than that. `known` is its hash, such
    as ``sha256:…`` or ``md5:…`` (``git:…`` is that of git's object); where the `size` in bytes is
    not known, it may have `most`.
    """
    if not url.startswith(("https://", "http://")):
        raise InputError(f"url must begin with https:// or http://, got {url!r}")
    if not _is_address(url):
        raise InputError(f"url must be an address such as https://host/file, got {url!r}")
    if target.is_file():
        if not wrong(target, size, known):
            return
        target.unlink()
    part = _Part(target.with_name(f"{target.name}.part"), url)
    part.check()
    try:
        _complete(part, target.name, size, known, most)
        said = wrong(part.file, size, known)
        if said:
            part.remove()
            raise DownloadError(f"{url} has changed: {said}; it was removed")
        part.file.replace(target)
        part.notes.unlink(missing_ok=True)
    except OSError as error:
        raise DownloadError(f"{url} cannot be saved at {target}: {error}") from error


def wrong(file: Path, size: int | None, known: str) -> str:
    """What is wrong with a file's size or hash; nothing where all that is known of it is right."""
    there = file.stat().st_size
    if size is not None and there != size:
        return f"{file.name} must have {size:,} bytes, got {there:,}"
    kind, _, wanted = known.partition(":")
    if wanted and (got := digest(file, kind)) != wanted:
        return f"{file.name} must have the {kind} hash {wanted}, got {got}"
    return ""


def digest(file: Path, kind: str, *, packed: bool = False) -> str:
    """The hash of a file (or of what it packs by gzip), by hashlib's name of it, or ``git``."""
    size = 0 if packed else file.stat().st_size
    hasher = hashlib.new("sha1" if kind == "git" else kind, usedforsecurity=False)
    if kind == "git":
        hasher.update(b"blob %d\0" % size)
    with gzip.open(file) if packed else file.open("rb") as handle:
        done = 0
        while block := handle.read(_BLOCK):
            hasher.update(block)
            done += len(block)
            report_progress(f"checking {file.name}", done, size)
    return hasher.hexdigest()


def check_room(folder: Path, wanted: int, what: str) -> None:
    """Raise `DownloadError` where the disk of a folder has less room than is wanted."""
    free = shutil.disk_usage(folder).free
    if free < wanted + _MARGIN:
        raise DownloadError(
            f"{what} needs {wanted / 1e9:,.1f} GB in {folder}, and {free / 1e9:,.1f} GB are free"
        )


def _is_address(url: str) -> bool:
    """Whether a text is an address of a host, as http wants it."""
    try:
        parts = urlsplit(url)
        wrong_port = parts.port == 0
    except ValueError:  # half an IPv6 address, or a port that is no number
        return False
    plain = url.isascii() and url.isprintable() and " " not in url
    return bool(parts.hostname) and plain and not wrong_port


def _complete(part: _Part, name: str, size: int | None, known: str, most: int) -> None:
    """Connect until all has come, or connections bring too little."""
    vain, why = 0, ""
    while vain < _TRIES:
        before = part.size()
        try:
            if _received(part, name, size, known, most):
                return
            why = "the connection ended early"
        except (http.client.HTTPException, TimeoutError, ConnectionError, ssl.SSLError) as error:
            why = str(error) or type(error).__name__
        vain = 0 if part.size() >= before + _LEAST else vain + 1
        time.sleep(_PAUSE * vain)
    so_far = f"{part.size():,} bytes have arrived"
    raise DownloadError(
        f"{part.url} cannot be downloaded: {why}; {so_far}, and the same command resumes from there"
    )


def _received(part: _Part, name: str, size: int | None, known: str, most: int) -> bool:
    """Ask for what is left and keep what comes; whether that is all."""
    server = part.server()
    have = part.size()
    if have and not (server.get("tag") or known):
        have = 0  # nothing would tell that the file has changed meanwhile
    if have and have == (size or server.get("total")):
        return True
    limit = most if size is None else size
    with _opened(part, have, server) as answer:
        start, total = _extent(answer, have)
        if size is not None and total not in (None, size):
            part.remove()
            raise DownloadError(
                f"{part.url} has changed: it must have {size:,} bytes, but the server has {total:,}"
            )
        if start not in (0, have):
            part.remove()
            raise http.client.HTTPException(f"the server began at byte {start}, not {have}")
        if total is not None:
            _check_most(part, total, limit)
            check_room(part.file.parent, total - start, name)
        notes = {"url": part.url, "tag": _tag(answer), "total": total}
        atomic_write(part.notes, json.dumps(notes))
        done = start
        with part.open(start) as file:
            report_progress(name, done, total or 0)
            while block := answer.read1(_BLOCK):
                done += len(block)
                _check_most(part, done, limit)
                file.write(block)
                report_progress(name, done, total or 0)
    return total is None or done >= total


def _check_most(part: _Part, count: int, most: int) -> None:
    """Raise `DownloadError`, and keep nothing, where a server has more than a file may have."""
    if count > most:
        part.remove()
        raise DownloadError(
            f"{part.url} has changed: it must have at most {most:,} bytes, and the "
            f"server sends {count:,} or more"
        )


def _opened(part: _Part, have: int, server: Mapping[str, Any]) -> Any:
    """The server's answer to the question for all bytes from a place on."""
    asked = {"User-Agent": f"howsure/{__version__}", "Accept-Encoding": "identity"}
    if have:
        asked["Range"] = f"bytes={have}-"
        if server.get("tag"):
            asked["If-Range"] = str(server["tag"])
    try:
        return _opener().open(Request(part.url, headers=asked), timeout=_TIMEOUT)
    except HTTPError as error:
        error.close()
        if error.code == 416:  # what is here is no beginning of what is there
            part.remove()
            raise http.client.HTTPException("the server has fewer bytes than arrived") from error
        if have and error.code in (429, 500, 502, 503, 504):
            raise http.client.HTTPException(f"{error.code} {error.reason}") from error
        raise DownloadError(
            f"{part.url} cannot be downloaded: {error.code} {error.reason}"
        ) from error
    except URLError as error:
        if have:
            raise http.client.HTTPException(str(error.reason)) from error
        raise DownloadError(f"{part.url} cannot be downloaded: {error.reason}") from error
    except ValueError as error:  # of urllib, where a redirect is to half an address
        raise DownloadError(f"{part.url} leads to an invalid address: {error}") from error


@final
class _Paced(io.RawIOBase):
    """What a socket brings, until it brings too little; that it brings nothing, its timeout tells.

    Looked at whenever something comes, so that a byte now and then does not keep it open.
    """

    def __init__(self, raw: io.RawIOBase) -> None:
        self._raw = raw
        self._come, self._since = 0, time.monotonic()

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        count = self._raw.readinto(buffer)
        self._come += count or 0
        if (now := time.monotonic()) > self._since + _SPAN:
            if self._come < _LEAST:
                raise TimeoutError(f"less than {_LEAST / _SPAN:,.0f} bytes per second arrived")
            self._come, self._since = 0, now
        return count

    def close(self) -> None:
        self._raw.close()
        super().close()


@final
class _Answer(http.client.HTTPResponse):
    """An answer whose head and body are read at a least speed."""

    def __init__(self, *given: Any, **options: Any) -> None:
        super().__init__(*given, **options)
        self.fp = io.BufferedReader(_Paced(self.fp.detach()))


@final
class _Web(HTTPHandler, HTTPSHandler):
    def do_open(self, http_class: Any, req: Request, **options: Any) -> Any:
        made: Any = type("_Connection", (http_class,), {"response_class": _Answer})
        return super().do_open(made, req, **options)


def _opener() -> OpenerDirector:
    """What speaks http and https and nothing else, so that no redirect leads elsewhere."""
    opener = OpenerDirector()
    kinds = (ProxyHandler, _Web, _Redirects, HTTPDefaultErrorHandler, HTTPErrorProcessor)
    for kind in kinds:
        opener.add_handler(kind())
    return opener


@final
class _Redirects(HTTPRedirectHandler):
    """Follows redirects by http and https, but none from https to http."""

    def redirect_request(
        self, req: Request, fp: Any, code: int, msg: str, headers: Any, newurl: str
    ) -> Request | None:
        allowed = ("https",) if req.type == "https" else ("https", "http")
        if urlsplit(newurl).scheme not in allowed or not _is_address(newurl):
            raise DownloadError(
                f"{req.full_url} cannot be downloaded: it leads to {newurl!r}, and only "
                f"{' and '.join(allowed)} are followed from there"
            )
        return super().redirect_request(req, fp, code, msg, headers, newurl)


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
