"""Pieces of a ledger as they are stored: each with its form, its size, and a hash of all of it.

So damage is seen before anything is read from it, by whatever it came. A hash keeps nobody out who
wants to write another: what is read is checked all the same, and nothing in it names code.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from hashlib import blake2b
from typing import Final, final

import pyarrow as pa

from howsure.core.errors import InputError
from howsure.core.files import NamedBytes
from howsure.core.sizes import most_inflated

FORM: Final = 3
"""Version of what is written. `tests/kept` holds a ledger of each, which opens or is refused."""
ANEW: Final = "begin another by howsure watch init NEW --reference TABLE"
"""What to do about a ledger that cannot be read."""
_HASH: Final = 16  # bytes of the hash
_LONGEST_LINE: Final = 64  # bytes of the first line


@final
@dataclass(frozen=True, slots=True)
class SealedPlace:
    """A place of named bytes, all of which are sealed."""

    place: NamedBytes

    @property
    def location(self) -> str:
        return self.place.location

    def read(self, name: str) -> bytes | None:
        data = self.place.read(self._checked(name))
        return None if data is None else self._opened(name, data)

    def write(self, name: str, data: bytes) -> None:
        self.place.write(self._checked(name), _sealed(name, data))

    def create(self, name: str, data: bytes) -> bool:
        return self.place.create(self._checked(name), _sealed(name, data))

    def remove(self, name: str) -> None:
        self.place.remove(self._checked(name))

    def names(self, name: str = "") -> tuple[str, ...]:
        return self.place.names(name)

    def _checked(self, name: str) -> str:
        """A name that leads to no other place."""
        if not re.fullmatch(r"\w[\w.-]*", name):
            raise self._refusal(f"is damaged: {name!r} is no name of a piece")
        return name

    def _refusal(self, words: str) -> InputError:
        return InputError(f"{self.location!r} {words}: {ANEW}")

    def _opened(self, name: str, data: bytes) -> bytes:
        """What was sealed."""
        line = data[:_LONGEST_LINE].partition(b"\n")[0]
        found = re.fullmatch(rb"howsure ledger (\d{1,9}) (zstd|none) (\d{1,18})", line)
        if found is None or int(found[1]) != FORM:
            raise self._refusal("is no ledger of this version of howsure")
        start = len(line) + 1 + _HASH
        check, held, size = data[len(line) + 1 : start], memoryview(data)[start:], int(found[3])
        if check != _hash(name, line, held):
            raise self._refusal(f"is damaged: {name!r} was changed since it was written")
        if found[2] == b"none":
            return bytes(held)
        if size > most_inflated(len(held)):
            raise self._refusal(
                f"is damaged: the {len(held):,} bytes of {name!r} would take {size:,}"
            )
        try:
            return bytes(pa.decompress(held, decompressed_size=size, codec="zstd", asbytes=True))
        except OSError as error:
            raise self._refusal(f"is damaged: {name!r} cannot be read ({error})") from error


def _sealed(name: str, data: bytes) -> bytes:
    held = pa.compress(data, codec="zstd", asbytes=True)
    # what repeats more than may grow again is stored as it is
    packed = len(data) <= most_inflated(len(held))
    held = held if packed else data
    line = f"howsure ledger {FORM} {'zstd' if packed else 'none'} {len(data)}".encode()
    return b"".join((line, b"\n", _hash(name, line, held), held))


def _hash(name: str, line: bytes, held: bytes | memoryview) -> bytes:
    made = blake2b(name.encode() + b"\n" + line + b"\n", digest_size=_HASH)
    made.update(held)
    return made.digest()
