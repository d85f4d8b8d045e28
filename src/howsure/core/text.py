"""Text from outside, made fit to be read beside our own."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from typing import Self, final

_UNSOUND = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]")
_TURNING = "\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff"
_LEADING = re.compile(f"[\x00-\x1f{_TURNING}]")
_LEADING_LINES = re.compile(f"[\x00-\x08\x0b-\x1f{_TURNING}]")
# Characters that turn the reading direction, and could make a label read as another: all that
# Unicode has.
_DIRECTION_MARKS = frozenset(
    map(chr, [0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A)])
)


@final
class CountedNote(str):
    """A note that begins with a number of things, which the notes on parts of a table add up.

    >>> CountedNote.of(1, "row", " without a spread: as before.")
    '1 row without a spread: as before.'
    """

    __slots__ = ("number", "one", "rest")

    number: int
    one: str
    rest: str

    @classmethod
    def of(cls, count: int, one: str, rest: str) -> Self:
        """So many of one thing, and what to say of them."""
        note = cls(f"{count:,} {one}{'s' * (count != 1)}{rest}")
        note.number, note.one, note.rest = count, one, rest
        return note


def clean(text: str) -> str:
    """Text that every encoding and every reader accepts: stray halves of characters replaced."""
    return _UNSOUND.sub("\ufffd", text)


def legible(text: str, *, lines: bool = False) -> str:
    """Text that is shown as it stands: nothing in it moves, hides or turns what is around it."""
    return (_LEADING_LINES if lines else _LEADING).sub("\ufffd", text)


def one_line(text: object, limit: int = 80) -> str:
    """Text on one line: control characters become spaces, long text ends in an ellipsis."""
    raw = str(text)[: 4 * limit]
    simple = raw.isascii() and raw.isprintable()  # as most texts are
    plain = " ".join((raw if simple else "".join(map(_shown, raw))).split())
    return plain if len(plain) <= limit else plain[: limit - 1] + "…"


def capitalized(text: str) -> str:
    """Text as a sentence begins; a symbol such as y stays."""
    return text if text[1:2] in ("", " ") else text[:1].upper() + text[1:]


def headed(text: object, limit: int = 120) -> str:
    """One line that begins with a capital letter, for an axis or a column; symbols stay."""
    plain = one_line(text, limit)
    return capitalized(plain)


def distinct(texts: Iterable[object], limit: int = 80) -> tuple[str, ...]:
    """One line for each text, numbered where two would look the same."""
    names = [str(text) for text in texts]
    cut = abridged(names, limit)
    taken: set[str] = set()
    shown = []
    for name in names:
        base = cut.get(name) or one_line(name, limit) or "(empty)"
        label, count = base, 1
        while label in taken:
            count += 1
            label = f"{base} ({count})"
        taken.add(label)
        shown.append(label)
    return tuple(shown)


def abridged(names: Iterable[str], limit: int = 40) -> dict[str, str]:
    """Longer names without their middle, by name; those that would then look the same stay."""
    long = {name for name in names if len(name) > limit}
    half = limit // 2
    cut = {name: f"{one_line(name[:half])}…{one_line(name[-half:])}" for name in long}
    shown = list(cut.values())
    return {name: text for name, text in cut.items() if shown.count(text) == 1}


def _shown(char: str) -> str:
    category = unicodedata.category(char)
    if category == "Cs":
        return "\ufffd"
    return " " if category in {"Cc", "Zl", "Zp"} or char in _DIRECTION_MARKS else char


def quoted(name: str) -> str:
    """A column's name or a cell for a message: escaped, and cut where it is long."""
    return repr(name if len(name) <= 40 else name[:37] + "...")
