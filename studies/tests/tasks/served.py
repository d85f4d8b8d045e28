"""A server on loopback that serves files, in parts where asked to, and fails where told to."""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

BLOCK = 1 << 16


@dataclass
class Served:
    """What a server serves, how it behaves, and what it was asked."""

    folder: Path
    address: str = ""
    ranges: bool = True  # whether parts are served
    tags: bool = True  # whether files are named by what they hold
    halts: list[int] = field(default_factory=list)  # after how many bytes each answer breaks off
    moved: dict[str, str] = field(default_factory=dict)  # redirects
    refused: dict[str, int] = field(default_factory=dict)  # paths and what is answered
    lengths: bool = True  # whether the bytes to come are told
    more: int = 0  # bytes that are sent beyond the file's
    drip: float = 0.0  # seconds before each byte; of the head too, where `slow_head`
    slow_head: bool = False
    asked: list[tuple[str, str | None]] = field(default_factory=list)  # paths and ranges
    sent: int = 0


class Handler(BaseHTTPRequestHandler):
    """Answers GET, with Range and If-Range as RFC 9110 has them."""

    def do_GET(self) -> None:
        served: Served = self.server.served  # type: ignore[attr-defined]
        path = self.path.partition("?")[0]
        asked = self.headers.get("Range")
        served.asked.append((path, asked))
        if path in served.refused:
            self.send_error(served.refused[path])
            return
        if path in served.moved:
            self.send_response(302)
            moved = served.moved[path]
            self.send_header("Location", moved if ":" in moved else served.address + moved)
            self.end_headers()
            return
        file = served.folder / path.lstrip("/")
        if not file.is_file():
            self.send_error(404)
            return
        size = file.stat().st_size
        tag = f'"{size}-{file.stat().st_mtime_ns}"'
        match = re.fullmatch(r"bytes=(\d+)-", asked or "")
        start = int(match[1]) if match and served.ranges else 0
        if served.tags and self.headers.get("If-Range") not in (None, tag):
            start = 0
        if start and start >= size:
            self.send_response(416)
            self.send_header("Content-Range", f"bytes */{size}")
            self.end_headers()
            return
        self.send_response(206 if start else 200)
        if start:
            self.send_header("Content-Range", f"bytes {start}-{size - 1}/{size}")
        if served.tags:
            self.send_header("ETag", tag)
        if served.lengths:
            self.send_header("Content-Length", str(size - start))
        if served.slow_head:
            self._drip(b"X-Slow: " + 10**6 * b"x")
        self.end_headers()
        if served.drip:
            self._drip(file.read_bytes()[start:])
            return
        left = served.halts.pop(0) if served.halts else size
        with file.open("rb") as handle, suppress(ConnectionError):
            handle.seek(start)
            while left and (block := handle.read(min(left, BLOCK))):
                self.wfile.write(block)
                left -= len(block)
                served.sent += len(block)
            while served.more > 0:
                self.wfile.write(bytes(BLOCK))
                served.more -= BLOCK
                served.sent += BLOCK

    def _drip(self, data: bytes) -> None:
        served: Served = self.server.served  # type: ignore[attr-defined]
        with suppress(ConnectionError):
            for place in range(len(data)):
                if served.drip == 0:  # the server is to end
                    break
                time.sleep(served.drip)
                self.wfile.write(data[place : place + 1])
                served.sent += 1

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Say nothing."""


@contextmanager
def serving(folder: Path, **behaviour: Any) -> Iterator[Served]:
    """Serve the files of a folder for a while."""
    folder.mkdir(parents=True, exist_ok=True)
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        held = Served(folder, f"http://127.0.0.1:{server.server_address[1]}", **behaviour)
        server.served = held  # type: ignore[attr-defined]
        Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        server.daemon_threads = True
        yield held
        held.drip, held.more = 0.0, 0
        server.shutdown()


def hash_of(data: bytes, kind: str = "sha256") -> str:
    """The hash of bytes, as the catalogue writes it."""
    return f"{kind}:{hashlib.new(kind, data).hexdigest()}"
