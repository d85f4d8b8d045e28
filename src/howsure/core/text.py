"""Text that came from outside: what every encoding takes, and what a screen cannot be led by."""

from __future__ import annotations

import re


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
