"""Numbers and cells as text for people, one way wherever they are shown."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from datetime import date

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
            parts[name] = f"of a perfect model, {choice}"
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
    return f" {last} ".join(filter(None, (joined(words[:-1]), words[-1])))


def joined(names: Iterable[str]) -> str:
    """Names in a row, apart by commas, or by semicolons where a name has one."""
    words = list(names)
    return ("; " if any(", " in word for word in words) else ", ").join(words)


def roughly(count: float) -> str:
    """A count to two digits."""
    if math.isnan(count):
        return "none"
    digits = 10 ** max(math.floor(math.log10(max(count, 1.0))) - 1, 0)
    return f"{round(count / digits) * digits:,}"
