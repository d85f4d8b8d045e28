"""What every table can be asked, wherever it comes from: its column names, then its rows."""

from __future__ import annotations

import os
import re
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa

from howsure.core.arrays import IntArray
from howsure.core.errors import HowsureError, InputError
from howsure.core.registry import nearest
from howsure.core.text import quoted
from howsure.inputs.roles import Kinds

COMPRESSION = {".gz": "gzip", ".zst": "zstd"}
MISSING_WORDS = (
    *("", "NA", "N/A", "n/a", "#N/A", "#NA", "<NA>", "NaN", "nan", "-NaN", "-nan"),
    *("NULL", "Null", "null", "None", "NaT"),
)
_ROW = re.compile(r"\brow (\d+)(, counting from 0)?(?=[\s,;:)]|$)")


class Source(ABC):
    """A table, or some rows of one, whose columns are read when they are asked for.

    Attributes
    ----------
    title : str
        What to call it in messages.
    names : tuple of str
        Its column names, in order.
    notes : tuple of str
        How it was read, where that is not what the ending says.
    from_text : bool
        Whether its cells are text, so that ``1`` may be a number or a label.
    decimal : str
        The decimal mark of numbers in text.
    folder : Path, optional
        The folder of its file; None where there is no file.
    rows : int, optional
        How many rows it has, where that is known without reading them.
    first_row : int
        The number of its first row in its file.
    identity : str
        What changes when its rows do; empty where nothing tells.
    """

    title: str
    names: tuple[str, ...]
    notes: tuple[str, ...] = ()
    from_text: bool = False
    decimal: str = "."
    folder: Path | None = None
    rows: int | None = None
    first_row: int = 0
    identity: str = ""

    @property
    def file(self) -> str:
        """What messages call the table that its rows are counted in."""
        return self.title

    @property
    def lined(self) -> bool:
        """Whether its rows are told by `line`, as those of files that people look at."""
        return self.from_text

    @property
    def stem(self) -> str:
        """The name of its file without endings; empty where it is none."""
        return "" if self.folder is None else name_parts(Path(self.title))[0]

    @abstractmethod
    def read(self, kinds: Kinds) -> pa.Table:
        """The columns that are asked for, each with what it shall be read as."""

    def batches(self, kinds: Kinds, rows: int) -> Generator[pa.Table]:
        """The rows of `read`, about so many at a time where they come so."""
        yield self.read(kinds)

    def read_all(self) -> pa.Table:
        """Every column with its cells as they are; those of text files are text."""
        return self.read(dict.fromkeys(self.names, "text" if self.from_text else "key"))

    def line(self, row: int) -> int | str:
        """The line of a row in its file of text, as a spreadsheet counts: the header's is 1.

        With the name of the file, if the table has several.
        """
        return row + 2

    def check_names(self) -> None:
        """Raise `InputError` where a column name repeats; columns without a name may."""
        repeated = [name for name, count in Counter(self.names).items() if count > 1 and name]
        if repeated:
            raise InputError(
                f"{self.title}: column names must differ; these occur more than once: "
                f"{listed(repeated)}"
            )


WORKBOOK_ENDINGS = (".xlsx", ".xlsm")
_SHEET = re.compile(r"(.+(?:\.xlsx|\.xlsm))#([^/\\]+)", re.IGNORECASE | re.DOTALL)


def split_sheet(path: str) -> tuple[str, str]:
    """The path of a file, and the sheet of a workbook that follows it: ``book.xlsx#May``."""
    match = _SHEET.fullmatch(path)
    return (path, "") if match is None else (match[1], match[2])


def name_parts(path: Path) -> tuple[str, str, str]:
    """A file's name without endings, its ending, and that of its compression if any.

    Of a sheet of a workbook, the name of the sheet.
    """
    book, sheet = split_sheet(path.name)
    if sheet:
        return sheet, Path(book).suffix.lower(), ""
    packed = path.suffix.lower() if path.suffix.lower() in COMPRESSION else ""
    inner = Path(path.stem) if packed else path
    return inner.stem, inner.suffix.lower(), packed


@contextmanager
def counted(
    first_row: int = 0, places: IntArray | None = None, *, lines: bool = False
) -> Iterator[None]:
    """Tell the rows of an error's message by their numbers in the table, or as lines of a file.

    The first of the rows has a number of its own in the table, and so may every row that is kept.
    """

    def number(row: int) -> int:
        numbered = places is not None and row < len(places)
        return (
            first_row + 2 * lines + (int(places[row]) if numbered and places is not None else row)
        )

    try:
        yield
    except InputError as error:
        error.args = (_numbered(str(error), number, lines=lines),)  # of whatever kind it is
        raise


def _numbered(message: str, number: Callable[[int], int | str], *, lines: bool) -> str:
    """A message with other numbers of rows in it, or with lines for them."""
    if not lines:
        return _ROW.sub(lambda match: f"row {number(int(match[1]))}{match[2] or ''}", message)
    in_lines_told = _ROW.sub(lambda match: f"line {number(int(match[1]))}", message)
    return in_lines_told.replace(", rows counted from 0", "")


@contextmanager
def in_lines(tables: Iterable[Source]) -> Iterator[Iterator[Source]]:
    """Lend tables; where those that were opened are text, tell an error's rows as lines."""
    opened: list[Source] = []

    def lent() -> Iterator[Source]:
        for table in tables:
            opened.append(table)
            yield table

    try:
        yield lent()
    except InputError as error:
        named = [table for table in opened if str(error).startswith(f"{table.title}: ")] or opened
        if not named or not all(table.lined for table in named):
            raise
        error.args = (_numbered(str(error), named[0].line, lines=True),)
        raise


@contextmanager
def refusing(title: str) -> Iterator[None]:
    """Turn what a reader raises on bad content into an `InputError` that names the table."""
    try:
        yield
    except HowsureError:
        raise
    except (
        pa.ArrowException,
        OSError,
        ValueError,
        LookupError,
        TypeError,
        RuntimeError,
        OverflowError,
        MemoryError,
    ) as error:
        raise InputError(f"{title} cannot be read: {_reason(error)}") from error


def listed(names: Iterable[str], most: int = 20) -> str:
    """Names for a message, the first ones if there are many."""
    every = list(names)
    shown = ", ".join(quoted(name) for name in every[:most])
    return shown if len(every) <= most else f"{shown} and {len(every) - most} more"


def no_column(name: str, names: Sequence[str], what: str, table: str = "the table") -> str:
    """The message for a name that no column has: the nearest one, whatever its case, and all."""
    return f"{what}: no column of {table} is called {quoted(name)}{perhaps(name, names)}"


def perhaps(name: str, names: Sequence[str]) -> str:
    """How a message goes on that names an absent column: the nearest one, and all."""
    near = nearest(name, names[:1000], most=1, cutoff=0.6)
    hint = f"; perhaps {quoted(near[0])}" if near else ""
    return f"{hint}; the columns are {listed(names)}"


def _reason(error: BaseException) -> str:
    code = getattr(error, "errno", None)  # Arrow's own words repeat the path
    text = " ".join((os.strerror(code) if code else str(error)).split())
    if "Truncated compressed stream" in text or "unexpected end" in text:
        return f"the compressed file is cut short ({text})"
    if "Empty CSV" in text:
        return "no header row found; perhaps a quote is opened and never closed"
    if "straddl" in text:
        return "a row is longer than 16 MB; perhaps a quote is opened and never closed"
    return text[:300] or type(error).__name__
