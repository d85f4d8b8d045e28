"""Numbers and cells as text for people, one way wherever they are shown."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import date

import numpy as np

from howsure.core.records import Record

MISSING = "–"


def number(value: float, digits: int = 4) -> str:
    """A number with so many significant digits.

    Parameters
    ----------
    value : float
        The number.
    digits : int
        Significant digits.

    Returns
    -------
    str
        ``–`` for NaN, ``∞`` for infinity; powers of ten only outside 1e-4 … 1e7.

    Examples
    --------
    >>> number(0.831234), number(1234567.8), number(float("nan")), number(1.5e-9)
    ('0.8312', '1,234,568', '–', '1.5e-09')
    """
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
    """A number with so many decimals; without the zeros at its end, or with a plus, if so asked.

    Examples
    --------
    >>> fixed(-1234.5, 2), fixed(0.5, 3, trim=True), fixed(-0.001, 1), fixed(0.25, 1, plus=True)
    ('−1,234.50', '0.5', '0.0', '+0.2')
    """
    text = f"{value:{'+' if plus else ''},.{places}f}"
    if trim and "." in text:
        text = text.rstrip("0").rstrip(".")
    if not plus and float(text.replace(",", "")) == 0:
        text = text.lstrip("-")
    return minus(text)


def minus(text: str) -> str:
    """A number's text with a true minus sign before it.

    Examples
    --------
    >>> minus("-1e-05"), minus("2")
    ('−1e-05', '2')
    """
    return f"−{text[1:]}" if text.startswith("-") else text


def short(value: float, digits: int = 3) -> str:
    """A number for a narrow table of a terminal, as Python reads it; nothing for NaN.

    Examples
    --------
    >>> short(-0.123456), short(float("nan"))
    ('-0.123', '')
    """
    return "" if math.isnan(value) else f"{value:.{digits}g}"


def level(coverage: float) -> str:
    """A nominal coverage or a confidence in percent: four digits, more where 100 % would be shown.

    Examples
    --------
    >>> level(0.9), level(0.6826894921), level(0.99999)
    ('90 %', '68.27 %', '99.999 %')
    """
    return f"{100 * coverage:.{10 if 0.9999 < coverage < 1.0 else 4}g} %"


def percent(value: float, digits: int = 1) -> str:
    """A share as a percentage in a sentence, without zeros at its end.

    Examples
    --------
    >>> percent(0.831), percent(0.9)
    ('83.1 %', '90 %')
    """
    return MISSING if math.isnan(value) else f"{fixed(100 * value, digits, trim=True)} %"


def share(value: float) -> str:
    """A share as a percentage beside others, all with one decimal.

    Examples
    --------
    >>> share(0.9), share(-0.87345), share(float("nan"))
    ('90.0 %', '−87.3 %', '–')
    """
    return MISSING if math.isnan(value) else f"{fixed(100 * value, 1)} %"


def between(record: Record) -> str:
    """The interval of a share in percent, to follow it in brackets; empty where none is known.

    Examples
    --------
    >>> between(Record(metric="test_coverage", value=0.9, lower=0.8734, upper=0.92))
    ' (87.3–92.0)'
    """
    if math.isnan(record.lower) or math.isnan(record.upper):
        return ""
    dash = "–" if record.lower >= 0 else " to "
    return f" ({fixed(100 * record.lower, 1)}{dash}{fixed(100 * record.upper, 1)})"


def estimate(value: float, error: float) -> tuple[str, str]:
    """A number and its standard error, both to two digits of the error.

    Parameters
    ----------
    value, error : float
        The number and its standard error; NaN where none is known.

    Returns
    -------
    (str, str)
        The second is empty where the error is not known.

    Examples
    --------
    >>> estimate(0.83123, 0.00312)
    ('0.8312', '0.0031')
    >>> estimate(12345.6, 321.0)
    ('12,346', '321')
    >>> estimate(2.5, float("nan"))
    ('2.5', '')
    """
    if not (math.isfinite(value) and math.isfinite(error) and error > 0):
        return number(value), number(error) if error == 0 else ""
    size = math.floor(math.log10(error))
    largest = max(size, math.floor(math.log10(abs(value))) if value else size)
    if largest >= 7 or size < -6:
        return number(value), number(error, 2)
    places = max(0, 1 - size)
    return fixed(value, places), fixed(error, places)


def interval(lower: float, upper: float) -> str:
    """An interval as text, its ends with as many digits as tell them apart.

    Parameters
    ----------
    lower, upper : float
        Its ends; NaN where none is known.

    Returns
    -------
    str

    Examples
    --------
    >>> interval(0.825123, 0.837345)
    '0.825 to 0.837'
    >>> interval(float("nan"), 1.0)
    ''
    """
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
    """The cells of one column as text, its numbers with the same decimals.

    Parameters
    ----------
    values : sequence
        As in `cell`.

    Returns
    -------
    list of str

    Examples
    --------
    >>> column([0.19, -0.0122, 0.0, 1e-9, None])
    ['0.1900', '−0.0122', '0', '1e-09', '–']
    >>> column([np.float64(1200.0), np.float64(35.0)])
    ['1,200', '35']
    """
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
    """A p-value: four decimals, and no claim beyond them.

    Parameters
    ----------
    value : object
        As in `cell`.

    Returns
    -------
    str

    Examples
    --------
    >>> p_value(0.01234), p_value(1e-9), p_value(float("nan"))
    ('0.0123', '< 0.0001', '–')
    """
    if not isinstance(value, float) or math.isnan(value):
        return cell(value)
    return "< 0.0001" if value < 0.0001 else f"{value:.4f}"


def p_words(value: float) -> str:
    """A p-value in a sentence.

    Examples
    --------
    >>> p_words(0.0213), p_words(1e-9)
    ('p = 0.021', 'p < 0.001')
    """
    return "p < 0.001" if value < 0.001 else f"p = {value:.2g}"


def details(record: Record) -> str:
    """What sets a record apart from others of its metric: coverage, belief, options.

    Parameters
    ----------
    record : Record
        The record.

    Returns
    -------
    str

    Examples
    --------
    >>> details(Record(metric="empirical_coverage", value=0.9, coverage=0.9, source="intervals"))
    'at 90 % · from intervals'
    """
    parts = []
    if math.isfinite(record.coverage):
        parts.append(f"at {level(record.coverage)}")
    if record.source:
        parts.append(f"from {record.source}")
    for name, choice in record.options.items():
        shown = number(float(choice)) if isinstance(choice, int | float) else choice
        parts.append(f"{name.replace('_', ' ')} {shown}")
    if math.isfinite(record.p) and record.units != "p-value":
        parts.append(f"p {number(record.p)}")
    return " · ".join(parts)


def cell(value: object) -> str:
    """A table's cell as text.

    Parameters
    ----------
    value : object
        A number, a text, a date, a truth value or None.

    Returns
    -------
    str

    Examples
    --------
    >>> cell(np.float64(0.123456)), cell(np.int64(12345)), cell(None), cell(True)
    ('0.1235', '12,345', '–', 'yes')
    """
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
    """A cell as a plain Python value: NumPy scalars unpacked, dates as ISO text.

    Parameters
    ----------
    value : object
        As in `cell`.

    Returns
    -------
    None, bool, int, float or str

    Examples
    --------
    >>> plain(np.datetime64("2024-01-02")), plain(np.float32(0.5))
    ('2024-01-02', 0.5)
    """
    if isinstance(value, np.datetime64):
        return None if np.isnat(value) else str(value)
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int | float | str):
        return value
    return value.isoformat() if isinstance(value, date) else str(value)
