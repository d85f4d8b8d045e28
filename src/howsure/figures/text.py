"""Text that came from outside, made fit to show: one line, of a sane length, all different."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable


def one_line(text: object, limit: int = 80) -> str:
    """Text on one line: control characters become spaces, long text ends in an ellipsis."""
    raw = str(text)[: 4 * limit]
    simple = raw.isascii() and raw.isprintable()  # as most texts are
    plain = " ".join((raw if simple else "".join(map(_shown, raw))).split())
    return plain if len(plain) <= limit else plain[: limit - 1] + "…"


def headed(text: object, limit: int = 120) -> str:
    """One line that begins with a capital letter, for an axis or a column; symbols stay."""
    plain = one_line(text, limit)
    return plain if len(plain) == 1 else plain[:1].upper() + plain[1:]


def distinct(texts: Iterable[object], limit: int = 80) -> tuple[str, ...]:
    """One line for each text, numbered where two would look the same."""
    names = [str(text) for text in texts]
    cut = abridged(names, limit)
    seen: set[str] = set()
    shown = []
    for name in names:
        base = cut.get(name) or one_line(name, limit) or "(empty)"
        label, count = base, 1
        while label in seen:
            count += 1
            label = f"{base} ({count})"
        seen.add(label)
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


_DIRECTION_MARKS = frozenset(
    map(chr, [0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A)])
)
"""Characters that turn the reading direction, and could make a label read as another."""
