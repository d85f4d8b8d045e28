"""Columns of an Arrow table as the arrays that the rest of howsure works on, and back.

What is missing stays in its place: NaN among numbers, NaT among dates, code −1 among labels, None
among names.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from howsure.core.arrays import AnyArray, BoolArray, FloatArray, IntArray
from howsure.core.classes import frozen
from howsure.core.errors import InputError
from howsure.core.labels import Categories
from howsure.core.text import quoted
from howsure.inputs.classes import parse_sets
from howsure.inputs.files import is_list
from howsure.inputs.roles import Kind, name_roles
from howsure.inputs.source import MISSING_WORDS, Source

# Groups by fractions are nearly always numbers that were meant as an input. By hand.
MAX_FLOAT_LABELS = 100
_NO_TIME = np.iinfo(np.int64).min  # NaT, as a number
_TIME_OF_DAY = r"^\d{1,2}:\d{2}(:\d{2}(\.\d{1,6})?)?$"
_PAIR = re.compile(
    r"[\[(][^,;\]]+[,;][^,;\]]+[\])]\s*\d*\.?\d*\s*%?"
)  # as of fable: [-1.28, 1.28]80
_COMMA = re.compile(r"\s*[-+]?\d*,\d+([eE][-+]?\d+)?\s*")


@frozen
class Labels:
    """Labels of rows, some of which may be missing."""

    codes: IntArray  # shape (n,): place of each row's label; −1 where it is missing
    labels: AnyArray  # shape (g,): distinct labels

    def missing(self) -> BoolArray:
        """Whether each row's label is missing."""
        return self.codes < 0

    def take(self, rows: AnyArray) -> Labels:
        """The labels of some rows."""
        return Labels(self.codes[rows], self.labels)

    def at(self, row: int) -> Any:
        """The label of a row."""
        return self.labels[self.codes[row]]

    def mapped(self, function: Callable[[str], float]) -> AnyArray:
        """What a function makes of the text of each row's label, none of which is missing."""
        return np.asarray([function(str(label)) for label in self.labels])[self.codes]

    def categories(self) -> Categories:
        """The same, once nothing is missing."""
        return Categories.from_codes(self.codes, self.labels)


Column = AnyArray | Labels


def numbers(column: pa.ChunkedArray, name: str, *, decimal: str = ".") -> FloatArray:
    """A column as numbers; missing ones are NaN."""
    plain = _plain(column)
    kind = plain.type
    if is_text(kind):
        return _parsed(plain, name, decimal)
    if pa.types.is_boolean(kind):
        plain = plain.cast(pa.uint8())
    elif not (is_number(kind) or pa.types.is_decimal(kind) or pa.types.is_null(kind)):
        raise InputError(f"column {quoted(name)} must contain numbers, got type {kind}")
    return np.asarray(numpy_of(pc.cast(plain, pa.float64(), safe=False)), dtype=np.float64)


def vectors(column: pa.ChunkedArray, name: str, *, decimal: str = ".") -> FloatArray:
    """A column of numbers or of lists of numbers as a matrix; what is missing is NaN."""
    plain = _plain(column)
    if is_text(plain.type):
        plain = _as_lists(plain, name)
    if not is_list(plain.type):
        return numbers(plain, name, decimal=decimal)[:, None]
    inner = plain.type.value_type
    if not is_number(inner):
        raise InputError(
            f"column {quoted(name)} must contain lists of numbers, got type {plain.type}"
        )
    if not pa.types.is_large_list(plain.type):
        plain = plain.cast(pa.large_list(inner))
    present = np.asarray(pc.is_valid(plain).to_numpy(), dtype=np.bool_)
    lengths = numpy_of(pc.list_value_length(plain.drop_null()))
    widths = np.unique(lengths)
    if len(widths) != 1 or widths[0] == 0:
        lengths_told = f"{widths[0]} to {widths[-1]}" if len(widths) else "none"
        raise InputError(
            f"column {quoted(name)} must contain lists of equal length, at least 1, got "
            f"{lengths_told}"
        )
    out = np.full((len(plain), int(widths[0])), math.nan)
    flat = numpy_of(pc.cast(pc.list_flatten(plain), pa.float64(), safe=False))
    out[present] = flat.reshape(-1, out.shape[1])
    return out


def labels(column: pa.ChunkedArray, name: str, *, from_text: bool = False) -> Labels:
    """A column as labels."""
    if _is_opaque(column.type):
        raise InputError(f"column {quoted(name)} must contain labels, got type {column.type}")
    if pa.types.is_null(column.type):
        column = column.cast(pa.string())
    coded = _coded(column)
    codes = _codes(coded, -1)
    used = np.flatnonzero(np.bincount(codes + 1, minlength=len(coded.dictionary) + 1)[1:])
    every = coded.dictionary
    if pa.types.is_string_view(every.type):  # of which Arrow takes no part
        every = every.cast(pa.large_string())
    number_of: dict[Any, int] = {}
    moved = np.full(len(every) + 1, -1)
    for code, cell in zip(used.tolist(), every.take(arrow_of(used)).to_pylist(), strict=True):
        value = _label(cell, name)
        if value is not None:
            moved[code] = number_of.setdefault(value, len(number_of))
    return Labels(moved[codes], _label_array(list(number_of), name, from_text=from_text))


def in_order_of_rows(codes: IntArray) -> tuple[IntArray, IntArray]:
    """Codes renumbered as they come first, and the row where each does."""
    _, first, codes = np.unique(codes, return_index=True, return_inverse=True)
    rank = np.empty(len(first), dtype=np.int64)
    rank[np.argsort(first)] = np.arange(len(first))
    return rank[codes], np.sort(first)


def keys(column: pa.ChunkedArray, name: str) -> Labels:
    """A column as codes of what is equal; a missing cell is None, as is every nested one."""
    if _is_opaque(column.type):
        return Labels(np.zeros(len(column), dtype=np.int64), np.array([None], dtype=object))
    coded = _coded(column)
    dictionary = coded.dictionary
    if pa.types.is_float32(dictionary.type) or pa.types.is_float16(dictionary.type):
        dictionary = (
            dictionary.cast(pa.float32()).cast(pa.string()).cast(pa.float64())
        )  # 0.05 stays 0.05
    codes = _codes(coded, len(dictionary))
    cells = dictionary.to_pylist()
    if pa.types.is_floating(dictionary.type):  # whole numbers as they are written elsewhere
        cells = [int(cell) if cell.is_integer() else cell for cell in cells]
    return Labels(codes, np.array([*cells, None], dtype=object))


def sets(column: pa.ChunkedArray, name: str) -> Labels:
    """A column as sets of labels, each a tuple of text."""
    if is_list(column.type):
        cells = [None if cell is None else tuple(cell) for cell in column.to_pylist()]
        numbers_of = {cell: number for number, cell in enumerate(dict.fromkeys(cells))}
        codes = np.array([numbers_of[cell] for cell in cells])
        distinct: list[Any] = [None if cell is None else list(cell) for cell in numbers_of]
    else:
        if _is_opaque(column.type):
            raise InputError(
                f"column {quoted(name)} must contain label sets, got type {column.type}"
            )
        coded = _coded(_plain(column))
        distinct = [*coded.dictionary.to_pylist(), None]
        codes = _codes(coded, len(distinct) - 1)
    parsed = parse_sets(distinct, name)
    present = [labels for labels in parsed if labels is not None]
    moved = np.full(len(parsed), -1)
    moved[[labels is not None for labels in parsed]] = np.arange(len(present))
    array = np.empty(len(present), dtype=object)
    array[:] = present
    return Labels(moved[codes], array)


def times(column: pa.ChunkedArray, name: str) -> AnyArray:
    """A column as moments: dates (UTC) or numbers."""
    plain = _plain(column)
    if is_text(plain.type):
        plain = _as_moments(_trimmed(plain), name)
    if pa.types.is_date(plain.type):
        plain = plain.cast(pa.timestamp("s" if pa.types.is_date32(plain.type) else "ms"))
    if pa.types.is_timestamp(plain.type):
        moments = _filled(plain.cast(pa.int64()), _NO_TIME)
        return numpy_of(moments).view(f"datetime64[{plain.type.unit}]")
    return numbers(plain, name)


def times_of_day(column: pa.ChunkedArray) -> npt.NDArray[np.timedelta64] | None:
    """A column as times since midnight; None where it holds anything else."""
    plain = _plain(column)
    if is_text(plain.type):
        text = _trimmed(plain)
        if not _all_match(text, _TIME_OF_DAY):
            return None
        parts = [pa.scalar(affix, text.type) for affix in ("1970-01-01T", "")]
        padded = pc.replace_substring_regex(text, r"^(\d):", r"0\1:")
        plain = pc.binary_join_element_wise(parts[0], padded, parts[1])
        if not _casts(plain, pa.timestamp("us")):
            return None
    elif pa.types.is_time(plain.type):
        plain = pc.cast(plain, pa.time64("us"), safe=False).cast(pa.int64())
    elif not pa.types.is_null(plain.type):
        return None
    return np.asarray(plain.cast(pa.timestamp("us")).to_numpy() - np.datetime64(0, "us"))


def moments_of(
    dates: pa.ChunkedArray, clock: pa.ChunkedArray, name: str
) -> tuple[npt.NDArray[np.datetime64], npt.NDArray[np.timedelta64]] | None:
    """Moments of two columns, and their times of day; None unless one holds dates, one these.

    Each misses what its own column misses: a date without a time of day is midnight, beside NaT.
    """
    offsets = times_of_day(clock)
    try:
        days = times(dates, name)
    except InputError:
        return None
    if days.dtype.kind == "f" and np.isnan(days).all():
        days = np.full(len(days), "NaT", dtype="datetime64[D]")
    if offsets is None or days.dtype.kind != "M":
        return None
    if (days != days.astype("datetime64[D]"))[~np.isnat(days)].any():
        return None
    since_midnight = np.where(np.isnat(offsets), np.timedelta64(0, "us"), offsets)
    return days.astype("datetime64[us]") + since_midnight, offsets


def names_zone(column: pa.ChunkedArray) -> bool | None:
    """Whether moments name a time zone, as the first of them tells; None where none is there."""
    plain = _plain(column)
    if pa.types.is_timestamp(plain.type):
        return plain.type.tz is not None
    if not is_text(plain.type):
        return None
    first = _trimmed(plain).drop_null().slice(0, 1)
    if _is_day_first(first):
        return False
    if len(first) == 0 or _casts(first, pa.float64()):
        return None
    return not (_casts(first, pa.timestamp("us")) or _casts(first, pa.timestamp("ns")))


def clock_times(column: pa.ChunkedArray, name: str) -> AnyArray | None:
    """Moments as clocks of their time zone showed them; None where none is named."""
    if not names_zone(column):
        return None
    plain = _plain(column)
    if is_text(plain.type):
        bare = pc.replace_substring_regex(_trimmed(plain), r"\s*(Z|[+-]\d{2}(:?\d{2})?)$", "")
        return times(bare, name)
    try:
        return np.asarray(pc.local_timestamp(plain).to_numpy())
    except pa.ArrowInvalid as error:
        raise InputError(f"column {quoted(name)} must have a known time zone: {error}") from error


def names(column: pa.ChunkedArray, name: str) -> AnyArray:
    """A column as names of rows: whole numbers where nothing else comes, or text."""
    plain = _plain(column)
    if pa.types.is_integer(plain.type) and plain.null_count == 0:
        return numpy_of(plain)
    if _is_opaque(plain.type):
        raise InputError(f"column {quoted(name)} must contain names, got type {plain.type}")
    if pa.types.is_floating(plain.type):
        plain = pc.if_else(pc.is_nan(plain), missing_of(plain.type), plain)
    text = plain.cast(pa.large_string())
    empty = words_of([""])[0]
    return np.asarray(
        pc.if_else(pc.equal(text, empty), missing_of(text.type), text).to_pylist(), dtype=object
    )


def texts(column: pa.ChunkedArray, name: str) -> AnyArray:
    """A column as texts, None where there is none."""
    plain = _plain(column)
    if not (is_text(plain.type) or pa.types.is_null(plain.type)):
        raise InputError(f"column {quoted(name)} must contain texts, got type {plain.type}")
    return names(plain.cast(pa.large_string()), name)


def absent(column: Column) -> BoolArray:
    """Which rows of a column miss it: NaN, NaT, None, no label; of a matrix, any of a row."""
    if isinstance(column, Labels):
        return column.missing()
    if column.dtype.kind in "fmM":
        return np.asarray(np.isnan(column).any(axis=tuple(range(1, column.ndim))))
    if column.dtype.kind == "O":
        return np.asarray(np.equal(column, np.array(None, dtype=object)), dtype=np.bool_)
    return np.zeros(len(column), dtype=np.bool_)


def feature(
    column: pa.ChunkedArray, name: str, *, from_text: bool = False, decimal: str = "."
) -> FloatArray | Labels:
    """A column as numbers if it holds numbers, otherwise as labels."""
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    if from_text and is_text(kind):
        try:
            return numbers(column, name, decimal=decimal)
        except InputError:
            return labels(column, name)
    if is_number(kind) or pa.types.is_decimal(kind):
        return numbers(column, name)
    return labels(column, name)


def as_kind(kind: Kind, column: pa.ChunkedArray, name: str, source: Source) -> Column:
    """A column of a source as what its role needs."""
    from_text, decimal = source.from_text, source.decimal
    match kind:
        case "number":
            return numbers(column, name, decimal=decimal)
        case "label":
            return labels(column, name, from_text=from_text)
        case "any":
            return feature(column, name, from_text=from_text, decimal=decimal)
        case "vector":
            return vectors(column, name, decimal=decimal)
        case "text":
            return texts(column, name)
        case "time":
            return times(column, name)
        case "name":
            return names(column, name)
        case "key":
            return keys(column, name)
        case "sets":
            return sets(column, name)


def _coded(column: pa.ChunkedArray) -> pa.DictionaryArray:
    """A column as codes in one dictionary."""
    if not pa.types.is_dictionary(column.type):
        column = _plain(column).dictionary_encode()
    return column.unify_dictionaries().combine_chunks()


def _codes(coded: pa.DictionaryArray, missing: int) -> IntArray:
    """The code of each row in a dictionary, and another where nothing is."""
    return numpy_of(_filled(pa.chunked_array([coded.indices.cast(pa.int64())]), missing))


def _filled(column: pa.ChunkedArray, missing: int) -> pa.ChunkedArray:
    """Whole numbers, and another where nothing is."""
    return pc.coalesce(column, arrow_of(np.array([missing]))[0]) if column.null_count else column


def _plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """The column without a dictionary, an extension type or a view."""
    if isinstance(column.type, pa.BaseExtensionType):
        column = column.cast(column.type.storage_type)
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if pa.types.is_string_view(column.type):
        column = column.cast(pa.large_string())
    return column


def _without_words(text: pa.ChunkedArray) -> pa.ChunkedArray:
    """Text, the words for a missing value made null."""
    gone = pc.is_in(text, value_set=words_of(MISSING_WORDS, text.type))
    return pc.if_else(gone, missing_of(text.type), text)


def _trimmed(text: pa.ChunkedArray) -> pa.ChunkedArray:
    """The same without spaces around the cells."""
    return _without_words(pc.utf8_trim_whitespace(text))


def _parsed(text: pa.ChunkedArray, name: str, decimal: str) -> FloatArray:
    trimmed = _trimmed(text)
    if decimal == ".":
        try:
            return numpy_of(trimmed.cast(pa.float64()))
        except pa.ArrowInvalid:
            pass
    values = np.full(len(trimmed), math.nan)
    wrong = 0
    first = ""
    for row, cell in enumerate(trimmed.to_pylist()):
        if cell is None:
            continue
        try:
            values[row] = _number(cell, decimal)
        except ValueError:
            wrong += 1
            first = first or f"(first: {quoted(cell)} at row {row}, counting from 0)"
            first += _remedy(cell, decimal) * (wrong == 1)
    if wrong:
        what = "a cell that is not one" if wrong == 1 else f"{wrong:,} cells that are not"
        raise InputError(f"column {quoted(name)} must contain numbers, got {what} {first}")
    return values


def _remedy(cell: str, decimal: str) -> str:
    """How to write otherwise what stands in a cell, where that is plain."""
    if _PAIR.fullmatch(cell):
        return (
            "; each cell contains both ends of an interval: write them as two columns (in R, "
            f"fabletools::unpack_hilo), and name these with {name_roles(lower=..., upper=...)}"
        )
    if decimal == "." and _COMMA.fullmatch(cell):
        return f"; {name_roles(decimal=',')} reads a decimal comma"
    return ""


def _number(cell: str, decimal: str) -> float:
    if "_" in cell or not cell.isascii() or (decimal == "," and "." in cell):
        raise ValueError(cell)
    return float(cell.replace(",", ".") if decimal == "," else cell)


def told_of_days(column: pa.ChunkedArray) -> str:
    """What to say of dates that were read day first; nothing of others."""
    plain = _plain(column)
    if not is_text(plain.type):
        return ""
    filled = _trimmed(plain).drop_null()
    if not _is_day_first(filled):
        return ""
    mark = "." if "." in str(filled[0].as_py())[:3] else "/"
    turned = pc.replace_substring_regex(filled, r"^(\d{1,2}[./])(\d{1,2}[./])", r"\2\1")
    twofold = mark == "/" and _casts(_with_year_first(turned), _MOMENT)
    also = ", although month first would also be possible for all" if twofold else ""
    return f"dates are read day first, like 31{mark}12{mark}2025{also}"


_MOMENT = pa.timestamp("us")
_DAY_FIRST = r"^\d{1,2}([./])\d{1,2}[./]\d{4}([ T]\d{1,2}:\d{2}(:\d{2}(\.\d{1,6})?)?)?$"


def _is_day_first(filled: pa.ChunkedArray) -> bool:
    """Whether text that misses nothing begins with a date such as 31.12.2025 or 31/12/2025."""
    first = filled.slice(0, 1)
    return bool(len(first)) and _all_match(first, _DAY_FIRST)


def _with_year_first(text: pa.ChunkedArray) -> pa.ChunkedArray:
    """Dates whose day comes first as ISO writes them; what is none stays."""
    for wanted, replacement in (
        (r"^(\d)([./])", r"0\1\2"),
        (r"^(\d{2}[./])(\d)([./]\d{4})", r"\10\2\3"),
        (r"^(\d{2})[./](\d{2})[./](\d{4})", r"\3-\2-\1"),
        (r"^(\d{4}-\d{2}-\d{2}[ T])(\d):", r"\10\2:"),
    ):
        text = pc.replace_substring_regex(text, wanted, replacement)
    return text


def _as_moments(text: pa.ChunkedArray, name: str) -> pa.ChunkedArray:
    """Text as moments, or as numbers where its first cell is one."""
    filled = text.drop_null()
    if len(filled) == 0 or _casts(filled.slice(0, 1), pa.float64()):
        return pa.chunked_array([_parsed(text, name, ".")])
    written, ways = text, "2024-02-29 or 2024-02-29T12:30:00"
    if _is_day_first(filled):
        days = pc.match_substring_regex(text, _DAY_FIRST)
        text = pc.if_else(days, _with_year_first(text), words_of([""], text.type)[0])
        ways = "31.12.2025 or 31/12/2025, day first"
    kinds = (pa.timestamp("us"), pa.timestamp("us", "UTC"), pa.timestamp("ns"))
    for kind in kinds:
        if _casts(text, kind):
            return text.cast(kind)
    for row in range(len(text)):
        cell = text.slice(row, 1)
        if not any(_casts(cell, kind) for kind in kinds):
            raise InputError(
                f"column {quoted(name)} must contain numbers or dates as {ways}, got "
                f"{quoted(written[row].as_py())} at row {row}, counting from 0"
            )
    raise InputError(
        f"column {quoted(name)} must have a time zone in all of its times or in none; got both"
    )


def _casts(text: pa.ChunkedArray, kind: pa.DataType) -> bool:
    try:
        text.cast(kind)
    except pa.ArrowInvalid:
        return False
    return True


def _label(value: Any, name: str) -> Any:
    if value is None or value == "" or (isinstance(value, float) and math.isnan(value)):
        return None
    if isinstance(value, bool | int | float | str):
        if isinstance(value, float) and not math.isfinite(value):
            raise InputError(f"column {quoted(name)} must contain finite labels, got {value}")
        return value
    return str(value)


def _label_array(items: list[Any], name: str, *, from_text: bool) -> AnyArray:
    if from_text and items and all(_is_whole(item) for item in items):
        return np.asarray([int(item) for item in items])
    if all(isinstance(item, float) for item in items) and items:
        are_whole = all(item.is_integer() and abs(item) < 2**53 for item in items)
        if not are_whole and len(items) > MAX_FLOAT_LABELS:
            raise InputError(
                f"column {quoted(name)} must contain labels, got {len(items)} different "
                f"fractional numbers (at most {MAX_FLOAT_LABELS}): bin them first"
            )
        return np.asarray(items, dtype=np.int64 if are_whole else np.float64)
    if not any(isinstance(item, str) for item in items) and items:
        return np.asarray(items)
    return np.array(items, dtype=object)


def _as_lists(text: pa.ChunkedArray, name: str) -> pa.ChunkedArray:
    """Text that holds a list in JSON in each cell as lists; other text as it came."""
    trimmed = _trimmed(text)
    filled = trimmed.drop_null()
    if len(filled) == 0 or not str(filled[0].as_py()).startswith("["):
        return text
    lists: list[Any] = []
    for row, cell in enumerate(trimmed.to_pylist()):
        try:
            values = None if cell is None else json.loads(cell)
        except (ValueError, RecursionError):
            values = cell
        plain = isinstance(values, list) and all(type(item) in (int, float) for item in values)
        if values is not None and not plain:
            raise InputError(
                f"column {quoted(name)} must contain lists of numbers such as [0.5, -1], got "
                f"{quoted(str(cell))} at row {row}, counting from 0"
            )
        lists.append(values)
    return pa.chunked_array([pa.array(lists, type=pa.large_list(pa.float64()))])


def _is_whole(text: str) -> bool:
    """Whether text is a whole number written in the one plain way."""
    digits = text.removeprefix("-")
    plain = digits.isascii() and digits.isdigit() and len(digits) < 16
    return plain and (digits == "0" or not digits.startswith("0")) and text != "-0"


# ---- columns between NumPy and Arrow by ways that do not load pandas, which is slow --------------


def numpy_of(column: pa.ChunkedArray) -> AnyArray:
    """A column as an array: as `to_numpy` makes it, where missing numbers are NaN.

    >>> numpy_of(pa.chunked_array([[1.5, None], [2.5]]))
    array([1.5, nan, 2.5])
    """
    plain = column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
    if pa.types.is_floating(plain.type):
        if plain.null_count:
            plain = pc.coalesce(plain, arrow_of(np.array([np.nan])).cast(plain.type)[0])
        return np.from_dlpack(plain)
    if pa.types.is_integer(plain.type) and not plain.null_count:
        return np.from_dlpack(plain)
    return np.asarray(column.to_numpy())


def arrow_of(numbers: AnyArray) -> pa.Array:
    """Numbers as a column that misses nothing; NaN stays NaN.

    >>> arrow_of(np.array([1.5, 2.5])).to_pylist()
    [1.5, 2.5]
    """
    contiguous = np.ascontiguousarray(numbers)
    kind = pa.from_numpy_dtype(contiguous.dtype)
    return pa.Array.from_buffers(kind, len(contiguous), [None, pa.py_buffer(contiguous)])


def words_of(texts: Sequence[str], kind: pa.DataType | None = None) -> pa.Array:
    """Texts as a column of some type of text.

    >>> words_of(["a", "", "bc"]).to_pylist()
    ['a', '', 'bc']
    """
    parts = [text.encode() for text in texts]
    starts = np.cumsum([0, *map(len, parts)], dtype=np.int64)
    buffers = [None, pa.py_buffer(starts), pa.py_buffer(b"".join(parts))]
    column = pa.Array.from_buffers(pa.large_string(), len(parts), buffers)
    return column if kind is None else column.cast(kind)


def missing_of(kind: pa.DataType) -> pa.Scalar:
    """What is missing of a type."""
    return pa.nulls(1, kind)[0]


def written_out(table: pa.Table) -> pa.Table:
    """The table without dictionaries."""
    for position, column in enumerate(table.columns):
        if pa.types.is_dictionary(column.type):
            name = table.column_names[position]
            table = table.set_column(position, name, column.cast(column.type.value_type))
    return table


def together(tables: Sequence[pa.Table]) -> pa.Table:
    """The rows of all; an error where a column is of types that do not go together."""
    try:
        return pa.concat_tables(tables, promote_options="permissive")
    except pa.ArrowException as error:
        raise InputError(f"columns must have compatible types in all parts, got {error}") from error


def is_number(kind: pa.DataType) -> bool:
    """Whether a type is of numbers, whole or not."""
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind))


def _is_opaque(kind: pa.DataType) -> bool:
    """Whether a type is of lists, records or bytes."""
    return bool(pa.types.is_nested(kind) or pa.types.is_binary(kind))


def is_text(kind: pa.DataType) -> bool:
    """Whether a type is of text, long or short."""
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


# ---- columns of text as numbers, where they hold plain ones alone --------------------------------


def typed(table: pa.Table, decimal: str) -> pa.Table:
    """A table of text with its columns of plain numbers as numbers; names such as 007 stay."""
    return as_types(table, number_types([table], decimal), decimal)


def number_types(tables: Iterable[pa.Table], decimal: str) -> dict[int, pa.DataType]:
    """The types of those columns of text, by position, that hold plain numbers in all tables."""
    mark = re.escape(decimal)
    plain = rf"^-?(0|[1-9][0-9]*)({mark}[0-9]+)?([eE][+-]?[0-9]+)?$"
    types: dict[int, pa.DataType] = {}  # of columns that hold plain numbers so far, or null
    fits: dict[tuple[int, pa.DataType], bool] = {}
    for table in tables:
        for position, column in enumerate(table.columns):
            wanted = types.get(position, pa.int64())
            if not pa.types.is_string(column.type) or wanted == pa.null():
                continue
            cells = _without_words(column)
            if cells.null_count == len(cells):
                continue
            if not _all_match(cells, plain):
                types[position] = pa.null()
                continue
            are_whole = wanted == pa.int64() and _all_match(cells, r"^-?[0-9]+$")
            types[position] = pa.int64() if are_whole else pa.float64()
            for kind in (pa.int64(), pa.float64()) if are_whole else (pa.float64(),):
                fits[position, kind] = fits.get((position, kind), True) and _casts(
                    pc.replace_substring(cells, decimal, "."), kind
                )
    return {position: kind for position, kind in types.items() if fits.get((position, kind))}


def as_types(table: pa.Table, types: Mapping[int, pa.DataType], decimal: str) -> pa.Table:
    """A table of text with some of its columns, by position, as numbers."""
    for position, kind in types.items():
        column = table.column(position)
        if pa.types.is_string(column.type):
            plain = pc.replace_substring(_without_words(column), decimal, ".")
            name = table.column_names[position]
            table = table.set_column(position, name, plain.cast(kind))
    return table


def _all_match(column: pa.ChunkedArray, pattern: str) -> bool:
    return bool(pc.all(pc.match_substring_regex(column, pattern)).as_py())
