"""Sizes of memory: as people write them, and to which what is compressed may grow."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Any, TypeVar, cast

from howsure.core.errors import InputError

T = TypeVar("T")
# 256 MB, which any machine has: so small files may be packed as well as they can.
_MIN_BYTES = 1 << 28
# Sums and names pack to a tenth or so; a hundred times is far beyond, and a bomb is a thousand.
_MAX_TIMES = 100
_SIZE = re.compile(r"\s*([0-9]{1,18}(?:\.[0-9]{1,18})?)\s*([kmgt]?)(i?)b?\s*", re.IGNORECASE)


def as_bytes(size: str | int, name: str = "memory") -> int:
    """How many bytes a size is: GB are 10^9, GiB 2^30, and a bare number bytes.

    >>> as_bytes("1.5 GB"), as_bytes("1GiB"), as_bytes(2048)
    (1500000000, 1073741824, 2048)
    """
    match = None if isinstance(size, bool) else _SIZE.fullmatch(str(size))
    if match is not None:
        number, letter, binary = match[1], match[2].lower(), match[3]
        power = " kmgt".index(letter or " ")
        wanted = int(Fraction(number) * (1024 if binary else 1000) ** power)
        if wanted > 0 and (power or not binary):
            return wanted
    raise InputError(f"{name} must be a size such as 500MB, 2GB or 1.5GiB, got {size!r}")


def check_size(size: T, name: str) -> T:
    """A size that `as_bytes` reads, as it is written."""
    as_bytes(cast(Any, size), name)
    return size


def most_inflated(size: int) -> int:
    """Bytes that so many compressed ones may take: 256 MiB, or a hundred times as many.

    Tables shrink to a tenth or a twentieth; what shrinks to a thousandth was made to fill memory.
    """
    return max(_MIN_BYTES, _MAX_TIMES * size)
