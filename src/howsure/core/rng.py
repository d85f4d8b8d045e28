"""Random numbers from names, and from what a row holds.

Two rules. A generator's seed is derived from *named parts*, so adding one consumer changes no
other consumer's draws. A draw that belongs to a row is a hash of the row's content, so it does
not depend on the order of rows.
"""

from __future__ import annotations

import hashlib

import numpy as np
import numpy.typing as npt

from howsure.core.arrays import AnyArray
from howsure.core.errors import InputError

FloatArray = npt.NDArray[np.float64]
KeyArray = npt.NDArray[np.uint64]

# The constants of SplitMix64 (Steele, Lea and Flood 2014), whose mixing is tested: with others
# every number that is drawn would change.
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
# The first of SplitMix64's.
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
# Columns that are mixed one by one; of more a sum is, which takes one pass.
_MAX_COLUMNS_MIXED = 16
# 262,144 numbers of 64 bits are 2 MB, within reach of the cache.
_NUMBERS_AT_ONCE = 1 << 18
# The second of SplitMix64's.
_MIX_2 = np.uint64(0x94D049BB133111EB)


def child(seed: int, *parts: str | int | float) -> np.random.Generator:
    """Make a generator whose stream is fixed by a seed and named parts."""
    return np.random.default_rng(np.random.SeedSequence(_entropy(seed, parts)))


def row_keys(*columns: npt.ArrayLike) -> KeyArray:
    """Hash each row's content to 64 bits, telling exact repeats apart."""
    state = row_hashes(*columns)
    ranked = np.sort(state)
    fresh = np.r_[True, ranked[1:] != ranked[:-1]]
    if fresh.all():
        return _mix(state)
    order, starts = np.argsort(state, kind="stable"), np.flatnonzero(fresh)
    occurrence = np.arange(len(ranked)) - np.repeat(starts, np.diff(np.r_[starts, len(ranked)]))
    repeat = np.empty(len(ranked), dtype=np.uint64)
    repeat[order] = occurrence.astype(np.uint64)
    return _mix(state + _GOLDEN * repeat)


def row_hashes(*columns: npt.ArrayLike) -> KeyArray:
    """Hash each row's content to 64 bits; equal rows have one hash."""
    state: KeyArray | None = None
    for column in columns:
        values = np.asarray(column)
        parts = values.reshape(len(values), -1)
        narrow = _bits(parts).T if parts.shape[1] <= _MAX_COLUMNS_MIXED else [_folded(parts)]
        for bits in narrow:
            state = _mix(bits if state is None else state ^ (_mix(bits) + _GOLDEN))
    if state is None:
        raise InputError("rows need at least one column to be distinguished")
    return state


def row_uniforms(seed: int, name: str, keys: KeyArray, columns: int | None = None) -> FloatArray:
    """Draw uniform numbers in (0, 1) for each row key."""
    if columns is None:
        return _uniform(_mix(_salted(seed, name, keys) + _GOLDEN))
    return _uniform(_spread(_salted(seed, name, keys), columns))


def row_normals(seed: int, name: str, keys: KeyArray, columns: int) -> FloatArray:
    """Draw standard normal numbers for each row key, independent over columns.

    Box and Muller (1958): one hash gives two uniform numbers of 32 bits, and these two normal
    ones, of at most 6.7 in size.
    """
    pairs = -(-columns // 2)
    mixed = _spread(_salted(seed, name, keys), pairs)
    radius = np.sqrt(-2.0 * np.log(((mixed >> np.uint64(32)) + 0.5) * 2.0**-32))
    angle = (mixed & np.uint64(0xFFFFFFFF)) * (np.pi * 2.0**-31)
    drawn = np.empty((len(keys), 2 * pairs))
    np.multiply(radius, np.cos(angle), out=drawn[:, 0::2])
    np.multiply(radius, np.sin(angle), out=drawn[:, 1::2])
    return drawn[:, :columns]


def _bits(values: AnyArray) -> KeyArray:
    """The bits of numbers; -0.0 and 0.0 are one value."""
    return np.asarray(values.astype(np.float64) + 0.0).view(np.uint64)


def _folded(rows: AnyArray) -> KeyArray:
    """One hash of many columns: a sum of their mixed bits times odd numbers, modulo 2⁶⁴."""
    factors = _mix(np.arange(1, rows.shape[1] + 1, dtype=np.uint64) * _GOLDEN) | np.uint64(1)
    step = max(1, _NUMBERS_AT_ONCE // rows.shape[1])
    blocks = [
        np.einsum("ij,j->i", _stirred(_bits(rows[start : start + step])), factors)
        for start in range(0, len(rows), step)
    ]
    return np.concatenate(blocks) if blocks else np.empty(0, dtype=np.uint64)


def _stirred(bits: KeyArray) -> KeyArray:
    """Bring high bits down, so that numbers that differ in few bits differ in many."""
    return (bits ^ (bits >> np.uint64(32))) * _MIX_1


def _salted(seed: int, name: str, keys: KeyArray) -> KeyArray:
    return _mix(keys ^ np.uint64(_entropy(seed, (name,)) & 0xFFFFFFFFFFFFFFFF))


def _spread(state: KeyArray, columns: int) -> KeyArray:
    """Independent hashes from one per row, shape (n, columns)."""
    return _mix(state[:, None] + _mix(np.arange(1, columns + 1, dtype=np.uint64) * _GOLDEN))


def _uniform(bits: KeyArray) -> FloatArray:
    return ((bits >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53


def _entropy(seed: int, parts: tuple[str | int | float, ...]) -> int:
    if not isinstance(seed, (int, np.integer)) or isinstance(seed, bool) or seed < 0:
        raise InputError(f"seed must be an integer of at least 0, got {seed!r}")
    text = "\x1f".join([str(int(seed)), *map(_name, parts)])
    digest = hashlib.sha256(text.encode(errors="surrogatepass")).digest()
    return int.from_bytes(digest[:16], "big")


def _name(part: str | int | float) -> str:
    """A part's text, the same for a number of Python and of NumPy, and never two parts' text."""
    if isinstance(part, str):
        return "str:" + part.replace("\\", "\\\\").replace("\x1f", "\\u")
    if isinstance(part, int | np.integer):
        return f"int:{int(part)}"
    return f"float:{float(part)}"


def _mix(state: KeyArray) -> KeyArray:
    """Finaliser of the SplitMix64 generator (Steele, Lea and Flood 2014), elementwise."""
    state = state ^ (state >> np.uint64(30))
    state *= _MIX_1
    state ^= state >> np.uint64(27)
    state *= _MIX_2
    state ^= state >> np.uint64(31)
    return state
