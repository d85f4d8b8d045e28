"""Fetching one file by HTTP: resumed where it broke off, and there only when it is whole.

What has come so far lies beside the wanted file as ``NAME.part``, with what the server said of it
in ``NAME.part.json``. It is gone on with while the server still has the same file. The wanted
name appears when size and hash are right, as far as they are known. A server may neither send
more than the file has nor take forever over it.
"""

from __future__ import annotations

import hashlib
import http.client
import json
import os
import re
import shutil
import socket
import ssl
import stat
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
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
@dataclass(frozen=True, slots=True)
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
                raise DownloadError(f"{path} must be a plain file, or not be there: remove it")

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
    hasher = hashlib.new("sha1" if kind == "git" else kind, usedforsecurity=False)
    if kind == "git":
        hasher.update(b"blob %d\0" % size)
    with file.open("rb") as handle:
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
    so_far = f"{part.size():,} bytes have come"
    raise DownloadError(
        f"{part.url} cannot be downloaded: {why}; {so_far}, and the same command goes on from there"
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
    with _watched() as watch, _opened(part, have, server, watch) as answer:
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
            _check_most(part, total, limit)
            check_room(part.file.parent, total - start, name)
        notes = {"url": part.url, "tag": _tag(answer), "total": total}
        atomic_write(part.notes, json.dumps(notes))
        done = start
        with part.open(start) as file:
            report_progress(name, done, total or 0)
            while block := answer.read1(_BLOCK):
                done += len(block)
                watch.come += len(block)
                _check_most(part, done, limit)
                file.write(block)
                report_progress(name, done, total or 0)
    return total is None or done >= total


def _check_most(part: _Part, count: int, most: int) -> None:
    """Raise `DownloadError`, and keep nothing, where a server has more than a file may have."""
    if count > most:
        part.remove()
        raise DownloadError(
            f"{part.url} is not the file it was: it must have at most {most:,} bytes, and the "
            f"server sends {count:,} or more"
        )


@final
@dataclass(slots=True)
class _Watch:
    """The sockets of a download, which end where too little comes by them."""

    sockets: list[socket.socket] = field(default_factory=list)
    come: int = 0
    slow: bool = False
    over: threading.Event = field(default_factory=threading.Event)

    def watch(self) -> None:
        """Look now and then, until it is over; shut the sockets where they bring too little."""
        before = 0
        while not self.over.wait(_SPAN):
            if self.come < before + _LEAST:
                self.slow = True
                for connection in self.sockets:
                    with suppress(OSError):  # one of a redirect, which is closed
                        socket.socket.shutdown(connection, socket.SHUT_RDWR)
                return
            before = self.come


@contextmanager
def _watched() -> Iterator[_Watch]:
    """Within, a connection that brings too little ends, and is told as too slow."""
    watch = _Watch()
    thread = threading.Thread(target=watch.watch, daemon=True)
    thread.start()
    try:
        yield watch
    except (OSError, http.client.HTTPException) as error:
        if not watch.slow:
            raise
        raise http.client.HTTPException(_slowly()) from error
    finally:
        watch.over.set()
        thread.join()
    if watch.slow:
        raise http.client.HTTPException(_slowly())


def _slowly() -> str:
    return f"less than {_LEAST / _SPAN:,.0f} bytes a second came"


def _opened(part: _Part, have: int, server: Mapping[str, Any], watch: _Watch) -> Any:
    """The server's answer to the question for all bytes from a place on."""
    asked = {"User-Agent": f"howsure/{__version__}", "Accept-Encoding": "identity"}
    if have:
        asked["Range"] = f"bytes={have}-"
        if server.get("tag"):
            asked["If-Range"] = str(server["tag"])
    try:
        return _opener(watch).open(Request(part.url, headers=asked), timeout=_TIMEOUT)
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
        if have or watch.slow:
            raise http.client.HTTPException(str(error.reason)) from error
        raise DownloadError(f"{part.url} cannot be downloaded: {error.reason}") from error
    except ValueError as error:  # of urllib, where a redirect is to half an address
        raise DownloadError(f"{part.url} leads to what is no address: {error}") from error


def _opener(watch: _Watch) -> OpenerDirector:
    """What speaks http and https and nothing else, so that no redirect leads elsewhere."""

    def connect(kind: type[http.client.HTTPConnection], *given: Any, **options: Any) -> Any:
        made = kind(*given, **options)
        plain = made.connect

        def connected() -> None:
            plain()
            watch.sockets.append(made.sock)

        made.connect = connected  # type: ignore[method-assign]
        return made

    class Plain(HTTPHandler):
        def http_open(self, request: Request) -> Any:
            return self.do_open(partial(connect, http.client.HTTPConnection), request)

    class Secure(HTTPSHandler):
        def https_open(self, request: Request) -> Any:
            made = partial(connect, http.client.HTTPSConnection)
            return self.do_open(made, request, context=ssl.create_default_context())

    opener = OpenerDirector()
    kinds = (ProxyHandler, Plain, Secure, _Redirects, HTTPDefaultErrorHandler, HTTPErrorProcessor)
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
