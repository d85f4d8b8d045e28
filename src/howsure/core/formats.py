"""Numbers, cells and text from outside as text for people, one way wherever they are shown."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Iterable, Sequence
from datetime import date
from typing import Self, final

import numpy as np

from howsure.core.records import Record

MISSING = "–"


def number(value: float, digits: int = 4) -> str:
    """A number with so many significant digits."""
    if math.isnan(value):
        return MISSING
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    if value == 0:
        return "0"
    size = math.floor(math.log10(abs(value)))
    if size < -4 or size >= 7:
        return minus(f"{value:.{digits}g}")
    return fixed(value, max(0, digits - 1 - size), trim=True)


def fixed(value: float, places: int, *, trim: bool = False, plus: bool = False) -> str:
    """A number with so many decimals; without the zeros at its end, or with a plus, if so asked."""
    text = f"{value:{'+' if plus else ''},.{places}f}"
    if trim and "." in text:
        text = text.rstrip("0").rstrip(".")
    if not plus and float(text.replace(",", "")) == 0:
        text = text.lstrip("-")
    return minus(text)


def minus(text: str) -> str:
    """A number's text with a true minus sign before it."""
    return f"−{text[1:]}" if text.startswith("-") else text


def short(value: float, digits: int = 3) -> str:
    """A number for a narrow table of a terminal, as Python reads it; nothing for NaN."""
    return "" if math.isnan(value) else f"{value:.{digits}g}"


def level(coverage: float) -> str:
    """A nominal coverage or confidence in percent: four digits, more where 100 % would show."""
    return f"{100 * coverage:.{10 if 0.9999 < coverage < 1.0 else 4}g} %"


def percent(value: float, digits: int = 1) -> str:
    """A share as a percentage in a sentence, without zeros at its end."""
    return MISSING if math.isnan(value) else f"{fixed(100 * value, digits, trim=True)} %"


def share(value: float) -> str:
    """A share as a percentage beside others, all with one decimal."""
    return MISSING if math.isnan(value) else f"{fixed(100 * value, 1)} %"


def between(record: Record) -> str:
    """The interval of a share in percent, to follow it in brackets; empty where none is known."""
    if math.isnan(record.lower) or math.isnan(record.upper):
        return ""
    dash = "–" if record.lower >= 0 else " to "
    return f" ({fixed(100 * record.lower, 1)}{dash}{fixed(100 * record.upper, 1)})"


def estimate(value: float, error: float) -> tuple[str, str]:
    """A number and its standard error, both to two digits of the error."""
    if not (math.isfinite(value) and math.isfinite(error) and error > 0):
        return number(value), number(error) if error == 0 else ""
    size = math.floor(math.log10(error))
    largest = max(size, math.floor(math.log10(abs(value))) if value else size)
    if largest >= 7 or size < -6:
        return number(value), number(error, 2)
    places = max(0, 1 - size)
    return fixed(value, places), fixed(error, places)


def interval(lower: float, upper: float) -> str:
    """An interval as text, its ends with as many digits as tell them apart."""
    if math.isnan(lower) or math.isnan(upper):
        return ""
    width = upper - lower
    if not math.isfinite(width) or width <= 0:
        return f"{number(lower)} to {number(upper)}"
    places = max(0, 1 - math.floor(math.log10(width)))
    largest = max(abs(lower), abs(upper))
    if largest >= 1e7 or places > 7:
        return f"{number(lower)} to {number(upper)}"
    return f"{fixed(lower, places)} to {fixed(upper, places)}"


def column(values: Sequence[object]) -> list[str]:
    """The cells of one column as text, its numbers with the same decimals."""
    cells = [plain(value) for value in values]
    sizes = [abs(c) for c in cells if isinstance(c, float) and math.isfinite(c) and c != 0]
    if not sizes or max(sizes) >= 1e7 or max(sizes) < 1e-4:
        return [cell(c) for c in cells]
    places = max(0, 3 - math.floor(math.log10(max(sizes))))
    while places and all(round(size, places) == round(size, places - 1) for size in sizes):
        places -= 1
    return [
        fixed(c, places) if isinstance(c, float) and abs(c) > 0.5 * 10.0**-places else cell(c)
        for c in cells
    ]


def p_value(value: object) -> str:
    """A p-value: four decimals, and no claim beyond them."""
    if not isinstance(value, float) or math.isnan(value):
        return cell(value)
    return "< 0.0001" if value < 0.0001 else f"{value:.4f}"


def p_words(value: float) -> str:
    """A p-value in a sentence."""
    return "p < 0.001" if value < 0.001 else f"p = {value:.2g}"


def details(record: Record) -> dict[str, str]:
    """What sets a record apart from others of its metric, by name: coverage, source, options."""
    parts: dict[str, str] = {}
    if math.isfinite(record.coverage):
        parts["coverage"] = f"at {level(record.coverage)}"
    if record.source:
        parts["source"] = f"from {record.source}"
    for name, choice in record.options.items():
        if name == "no_null":  # told where the perfect model's value would stand
            continue
        if name == "null_rows":
            parts[name] = f"of the perfect model, {choice}"
            continue
        shown = number(float(choice)) if isinstance(choice, int | float) else choice
        parts[name] = f"{name.replace('_', ' ')} {shown}"
    if math.isfinite(record.p) and record.units != "p-value":
        parts["p"] = f"p {number(record.p)}"
    if record.exact == "sample":
        parts["exact"] = f"of a sample of {record.n:,.0f} rows"
    elif record.exact == "histogram":
        parts["exact"] = "of a histogram of all rows"
    return parts


def cell(value: object) -> str:
    """A table's cell as text."""
    match plain(value):
        case None:
            return MISSING
        case bool(truth):
            return "yes" if truth else "no"
        case int(whole):
            return minus(f"{whole:,}")
        case float(real):
            return number(real)
        case other:
            return str(other)


def plain(value: object) -> bool | int | float | str | None:
    """A cell as a plain Python value: NumPy scalars unpacked, dates as ISO text."""
    if isinstance(value, np.datetime64):
        return None if np.isnat(value) else str(value)
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int | float | str):
        return value
    return value.isoformat() if isinstance(value, date) else str(value)


def counted(number: int, noun: str) -> str:
    """A number with its noun."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def listed(parts: Iterable[str], most: int | None = None, *, last: str = "and") -> str:
    """Parts as a list in words; past the most, how many more there are."""
    words = list(parts)
    if most is not None and len(words) > most:
        words = [*words[:most], f"{len(words) - most} more"]
    return f" {last} ".join(filter(None, (", ".join(words[:-1]), words[-1])))


def roughly(count: float) -> str:
    """A count to two digits."""
    if math.isnan(count):
        return "none"
    digits = 10 ** max(math.floor(math.log10(max(count, 1.0))) - 1, 0)
    return f"{round(count / digits) * digits:,}"


# ---- text that came from outside: what every encoding takes, and what a screen cannot be led by --
# And notes that count something, which add up.


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
        note = cls(f"{count:,} {one}{'s' * (count != 1)}{rest}")
        note.number, note.one, note.rest = count, one, rest
        return note

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


# ---- text that came from outside, made fit to show: one line, of a sane length, all different ----


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


_DIRECTION_MARKS = frozenset(
    map(chr, [0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A)])
)
"""Characters that turn the reading direction, and could make a label read as another."""
