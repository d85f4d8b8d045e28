"""Text that came from outside: what every encoding takes, and what a screen cannot be led by.

And notes that count something, which add up.
"""

from __future__ import annotations

import re
from typing import Self, final


@final
class CountedNote(str):
    """A note that begins with a number of things, which the notes on parts of a table add up.

    >>> note = CountedNote.of(1, "row", " without a spread: as before.")
    >>> note, note.plus(1200)
    ('1 row without a spread: as before.', '1,201 rows without a spread: as before.')
    """

    __slots__ = ("number", "one", "rest")

    number: int
    one: str
    rest: str

    @classmethod
    def of(cls, count: int, one: str, rest: str) -> Self:
        """So many of one thing, and what to say of them."""
        made = cls(f"{count:,} {one}{'s' * (count != 1)}{rest}")
        made.number, made.one, made.rest = count, one, rest
        return made

    def plus(self, count: int) -> Self:
        """The same of more of them."""
        return self.of(self.number + count, self.one, self.rest)


def clean(text: str) -> str:
    """Text that every encoding and every reader accepts: stray halves of characters replaced."""
    return _UNSOUND.sub("\ufffd", text)


def legible(text: str, *, lines: bool = False) -> str:
    """Text that is shown as it stands: nothing in it moves, hides or turns what is around it."""
    return (_LEADING_LINES if lines else _LEADING).sub("\ufffd", text)


_UNSOUND = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]")
_TURNING = "\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff"
_LEADING = re.compile(f"[\x00-\x1f{_TURNING}]")
_LEADING_LINES = re.compile(f"[\x00-\x08\x0b-\x1f{_TURNING}]")
