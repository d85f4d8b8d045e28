"""CSV and TSV, also compressed: checked at the door, read in blocks.

The whole text passes one door that turns any encoding into UTF-8, finds bytes that are no text,
and adds a last row of its own: if that row does not come out at the end, a quote was left open
and has swallowed rows.
"""

from __future__ import annotations

import codecs
import csv
import io
import queue
import re
import weakref
from collections.abc import Callable, Generator, Sequence
from contextlib import suppress
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

import pyarrow as pa
import pyarrow.csv as pacsv

from howsure.core.errors import InputError
from howsure.inputs.roles import Kinds, name_roles
from howsure.inputs.source import COMPRESSION, MISSING_WORDS, Source, name_parts, refusing

# As Arrow's own: a megabyte stays in the cache while it is parsed.
BLOCK = 1 << 20
# The longest row that can be read, for embeddings of thousands of numbers.
LARGE_BLOCK = 16 << 20
# Bytes; less than a large block, so that none hides a longer one.
MAX_BYTES_OF_LINE = 16_000_000
LAST_CELL = "-1234567890123456789e-300"
_DELIMITERS = (",", ";", "\t", "|")
# Seconds that threads of Arrow may take to let go: far longer than a block takes, and no wait
# without end.
_SECONDS_TO_LET_GO = 60.0
_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)

Lent = TypeVar("Lent")


class TextFile(Source):
    """A delimited text file.

    The first of comma, semicolon, tab and bar that the header holds separates the cells (in a
    file named .tsv, the tab comes first). In a column of numbers, an empty cell and words such as
    NA and nan are missing; in a column of labels, only the empty cell is, so that NA may stand
    for Namibia.
    """

    from_text = True

    def __init__(self, title: str, file: pa.NativeFile, encoding: str | None, decimal: str) -> None:
        if decimal not in (".", ","):
            raise InputError(f"decimal must be '.' or ',', got {decimal!r}")
        self.title = title
        self.decimal = decimal
        self._file = file
        _, ending, self._packed = name_parts(Path(title))
        self._encoding = encoding
        with refusing(self.title):
            usual = "\t" if ending == ".tsv" else ","
            door = self._door()
            self._delimiter = _delimiter(door.head(), usual)
            if self._delimiter == decimal:
                raise InputError(
                    f"{self.title}: the decimal mark must differ from the separator of cells, "
                    f"but both are {decimal!r}"
                )
            separator_note = (
                [] if self._delimiter == usual else [f"cells are separated by {self._delimiter!r}"]
            )
            self.notes = (
                *separator_note,
                *([] if door.encoding == "utf-8" else [f"encoding {door.encoding}"]),
            )
            try:
                self.names = self._read_names(BLOCK)
            except pa.ArrowInvalid:
                self.names = self._read_names(LARGE_BLOCK)
        self.check_names()

    def read(self, kinds: Kinds) -> pa.Table:
        """The named columns, each read as its kind says.

        Columns of numbers come as text where a cell is not plainly a number: the caller looks at
        each cell and names the first that is none. Small blocks keep the room low; a row that is
        longer than one is read in large ones.
        """
        with refusing(self.title):
            try:
                return self._read(kinds, pa.float64(), BLOCK)
            except pa.ArrowInvalid:
                return self._read(kinds, pa.string(), LARGE_BLOCK)

    def batches(self, kinds: Kinds, rows: int) -> Generator[pa.Table]:
        """The rows of `read` block by block, so that a file of any size takes little room.

        A column that may hold numbers or labels comes as text: its first block binds none later.
        What no plain reading takes is read again from the start, as `read` does.
        """
        rows_given = 0
        with refusing(self.title):
            try:
                for block in self._blocks(kinds, pa.float64(), BLOCK):
                    rows_given += block.num_rows
                    yield pa.Table.from_batches([block])
            except pa.ArrowInvalid:
                for block in self._blocks(kinds, pa.string(), LARGE_BLOCK):
                    fresh = block.slice(min(rows_given, block.num_rows))
                    rows_given -= block.num_rows - fresh.num_rows
                    if fresh.num_rows:
                        yield pa.Table.from_batches([fresh])

    def line(self, row: int) -> int:
        """As a spreadsheet counts: empty lines too, and a cell of several lines as one."""
        with suppress(InputError, OSError, ValueError, pa.ArrowException, csv.Error):
            text = io.TextIOWrapper(io.BufferedReader(_Raw(self._door())), "utf-8", newline="")
            rows = csv.reader(text, delimiter=self._delimiter)
            filled = (number for number, cells in enumerate(rows, 1) if cells)
            return next(islice(filled, row + 1, None), row + 2)
        return row + 2

    def _read(self, kinds: Kinds, number: pa.DataType, block: int) -> pa.Table:
        broken: list[bool] = []
        table = self._parsed(
            pacsv.read_csv,
            pacsv.ReadOptions(block_size=block),
            self._converting(kinds, number, None),
            lambda row: broken.append(LAST_CELL in row.text),
            last_row=self._last_row(),
        )
        if any(broken):
            raise InputError(f"{self.title}: a quote is opened and never closed")
        if broken:
            self._explain_ragged()
        if not _is_last(table.column(0)):
            raise InputError(
                f"{self.title}: a quote is opened in line {self.line(table.num_rows - 1)} and "
                "never closed"
            )
        if table.num_rows == 1:
            raise InputError(f"{self.title}: the file has column names but no rows")
        return table.slice(0, table.num_rows - 1)

    def _explain_ragged(self) -> None:
        """Read again in order, for the reader of the first time does not number the rows."""
        ragged_rows: list[Any] = []
        self._parsed(
            pacsv.read_csv,
            pacsv.ReadOptions(block_size=LARGE_BLOCK, use_threads=False),
            pacsv.ConvertOptions(
                include_columns=[self.names[0]],
                column_types={self.names[0]: pa.string()},
                check_utf8=False,
            ),
            lambda row: ragged_rows.append(None if ragged_rows else row),
        )
        first, count = ragged_rows[0], len(ragged_rows)
        raise InputError(
            f"{self.title}: every row must have {first.expected_columns} cells like the header; "
            f"{count} row{'s' * (count > 1)} do{'es' * (count == 1)} not (first: line "
            f"{self.line(first.number - 2)} has {first.actual_columns})"
        )

    def _read_names(self, block: int) -> tuple[str, ...]:
        options = pacsv.ReadOptions(block_size=block, use_threads=False)
        none = pacsv.ConvertOptions()
        opened = self._parsed(pacsv.open_csv, options, none, lambda row: None)
        return tuple(opened.names)

    def _parsed(
        self,
        parser: Callable[..., Any],
        reading: pacsv.ReadOptions,
        converting: pacsv.ConvertOptions,
        on_broken: Callable[[Any], None],
        last_row: str = "",
    ) -> Any:
        """The table that Arrow makes of the text, or the schema if it is to be opened alone."""
        loan = _Loan(self._door(last_row), on_broken)
        parsed = None
        try:
            parsed = parser(
                loan.stream(),
                read_options=reading,
                parse_options=self._parsing(loan),
                convert_options=converting,
            )
            result = parsed if parser is pacsv.read_csv else parsed.schema
        except pa.ArrowException:
            if loan.door.trouble is None:
                raise
        finally:
            parsed = None
            loan.end()
        if loan.door.trouble is not None:
            raise loan.door.trouble
        return result

    def _blocks(self, kinds: Kinds, number: pa.DataType, block: int) -> Generator[pa.RecordBatch]:
        """Rows in order; a block is given once the next one is found to be whole."""
        broken: list[Any] = []
        loan = _Loan(self._door(self._last_row()), broken.append)
        reader = pending = None
        rows = 0
        try:
            reader = pacsv.open_csv(
                loan.stream(),
                read_options=pacsv.ReadOptions(block_size=block, use_threads=False),
                parse_options=self._parsing(loan),
                convert_options=self._converting(kinds, number, pa.string()),
            )
            while True:
                try:
                    batch = reader.read_next_batch()
                except StopIteration:
                    break
                if loan.door.trouble is not None or broken:
                    break
                if batch.num_rows == 0:
                    continue
                if pending is not None:
                    rows += pending.num_rows
                    yield pending
                pending = batch
        except pa.ArrowException:
            if loan.door.trouble is None and not broken:
                raise
        finally:
            reader = None
            loan.end()
        if loan.door.trouble is not None:
            raise loan.door.trouble
        self._check_end(broken, pending, rows)
        if pending is not None and pending.num_rows > 1:
            yield pending.slice(0, pending.num_rows - 1)

    def _check_end(self, broken: Sequence[Any], end: pa.RecordBatch | None, before: int) -> None:
        """Raise `InputError` for a row of other cells than the header's, or an open quote."""
        if any(LAST_CELL in row.text for row in broken):
            raise InputError(f"{self.title}: a quote is opened and never closed")
        if broken:
            first = broken[0]
            raise InputError(
                f"{self.title}: every row must have {first.expected_columns} cells like the "
                f"header, got {first.actual_columns} in line {self.line(first.number - 2)}"
            )
        if end is None or not _is_last(end.column(0)):
            rows = before + (0 if end is None else end.num_rows)
            raise InputError(
                f"{self.title}: a quote is opened in line {self.line(rows - 1)} and never closed"
            )

    def _parsing(self, loan: _Loan) -> pacsv.ParseOptions:
        return pacsv.ParseOptions(
            delimiter=self._delimiter,
            newlines_in_values=True,
            invalid_row_handler=loan.handler(),
        )

    def _converting(
        self, kinds: Kinds, number: pa.DataType, unknown: pa.DataType | None
    ) -> pacsv.ConvertOptions:
        """As what Arrow reads the columns; Arrow looks at the cells of those of an unknown type."""
        types = {
            "number": number,
            "vector": number,
            "label": pa.dictionary(pa.int32(), pa.string()),
            "key": pa.dictionary(pa.int32(), pa.string()),
            "any": unknown,
        }
        type_of = {name: types.get(kind, pa.string()) for name, kind in kinds.items()}
        return pacsv.ConvertOptions(
            include_columns=list(kinds) or [self.names[0]],
            column_types={name: kind for name, kind in type_of.items() if kind is not None},
            null_values=list(MISSING_WORDS),
            decimal_point=self.decimal,
            check_utf8=False,
        )

    def _last_row(self) -> str:
        return self._delimiter.join([LAST_CELL] * len(self.names))

    def _door(self, last_row: str = "") -> Utf8Reader:
        """The text from its start."""
        self._file.seek(0)
        stream: Any = self._file
        if self._packed:
            reopenable = pa.PythonFile(_KeptOpen(stream), mode="r")
            stream = pa.CompressedInputStream(reopenable, COMPRESSION[self._packed])
        return Utf8Reader(stream, self.title, self._encoding, last_row)


class _Loan:
    """What Arrow's threads are lent while they read, and the wait until they have let go of it.

    The threads read ahead, and may do so or hold a block when a call of Arrow has come back; one
    that calls into an interpreter that is gone, be it to give a block back, aborts the process. So
    all that they are lent is watched, and no reading ends before they have let go of it. No frame
    of Python's may hold what is lent, for an error keeps its frames.
    """

    def __init__(self, door: Utf8Reader, on_broken: Callable[[Any], None]) -> None:
        self.door = door
        self._on_broken = on_broken
        self._lent: list[weakref.ref[Any]] = []
        self._gone: queue.SimpleQueue[Any] = queue.SimpleQueue()

    def stream(self) -> _ArrowSource:
        """What to read from."""
        door, watched = self.door, self._watched
        return watched(_ArrowSource(lambda size: watched(memoryview(door.read(size)))))

    def handler(self) -> Callable[[Any], str]:
        """What to call for a row of too many cells or too few."""
        return self._watched(partial(_skip, self._on_broken))

    def end(self) -> None:
        """Wait until all is given back."""
        self.door.over = True
        with suppress(queue.Empty):
            for _ in self._lent:  # which may still grow, by blocks, until the stream is gone
                self._gone.get(timeout=_SECONDS_TO_LET_GO)

    def _watched(self, item: Lent) -> Lent:
        # A method in C runs whole before its thread lets another run, unlike Python's code.
        self._lent.append(weakref.ref(item, self._gone.put))
        return item


def _is_last(column: pa.Array | pa.ChunkedArray) -> bool:
    """Whether a column ends with the cell that the door adds."""
    return str(column[-1].as_py()) in (LAST_CELL, str(float(LAST_CELL)))


def _skip(on_broken: Callable[[Any], None], row: Any) -> str:
    on_broken(row)
    return "skip"


class _ArrowSource:
    """What Arrow reads from; its method is no bound one, so that no frame of a read holds this."""

    closed = False

    def __init__(self, read: Callable[[int], memoryview]) -> None:
        self.read = read


class _Raw(io.RawIOBase):
    """The text that a door gives, for readers of Python's own."""

    def __init__(self, door: Utf8Reader) -> None:
        self._text = door
        self._left = b""

    def readable(self) -> bool:
        return True

    def readinto(self, room: Any) -> int:
        self._left = self._left or bytes(self._text.read(len(room)))
        chunk = self._left[: len(room)]
        self._left = self._left[len(room) :]
        room[: len(chunk)] = chunk
        return len(chunk)


class _KeptOpen:
    """A file that stays open when what decompresses it closes it."""

    closed = False

    def __init__(self, file: pa.NativeFile) -> None:
        self.read = file.read

    def close(self) -> None:
        """Keep it for the next reading."""


class Utf8Reader:
    """A stream of checked UTF-8 made from a stream of bytes, with a row of its own at the end."""

    def __init__(
        self,
        stream: BinaryIO,
        title: str,
        encoding: str | None = None,
        last_row: str = "",
    ) -> None:
        self.trouble: Exception | None = None  # no error shall cross the threads of who reads
        self.over = False  # set to end the text early
        self._stream = stream
        self._title = title
        self._tail = f"\n{last_row}\n".encode()
        self._bytes = 0
        self._lines = 0
        self._line = 0  # bytes of the line that is not at its end
        start = b""
        while len(start) < 4 and (more := stream.read(4 - len(start))):
            start += more
        if not start:
            raise InputError(f"{title}: the file is empty")
        self.encoding, mark = _encoding(start, encoding, title)
        self._decoder = codecs.getincrementaldecoder(self.encoding)()
        if self.encoding == "utf-8":
            start = start[mark:]
            self._bytes = mark
        self._ready = self._checked(start)

    def head(self) -> bytes:
        """The first block, to be read again."""
        while len(self._ready) < 1 << 16:
            block = self._stream.read(1 << 16)
            if not block:
                break
            self._ready += self._checked(block)
        return self._ready

    def read(self, size: int) -> bytes:
        """`size` bytes of UTF-8, fewer at the end."""
        if self.over or self.trouble is not None:
            return b""
        try:
            while len(self._ready) < size:
                block = self._stream.read(size)
                self._ready += self._checked(block)
                if not block:
                    self._ready += self._tail
                    self._tail = b""
                    break
        except (InputError, OSError, ValueError, MemoryError) as error:
            self.trouble = error
            return b""
        out, self._ready = self._ready[:size], self._ready[size:]
        return out

    def _checked(self, block: bytes) -> bytes:
        pending = len(self._decoder.getstate()[0])
        try:
            text = self._decoder.decode(block, final=not block)
            clean = block if self.encoding == "utf-8" else text.encode()
        except UnicodeError as error:
            raise self._not_text(error, self._bytes - pending) from error
        if "\0" in text:
            line = self._lines + text[: text.index("\0")].count("\n") + 1
            raise InputError(
                f"{self._title}: text must not contain NUL bytes, got one in line {line}; if the "
                f"file is UTF-16, pass {name_roles(encoding='utf-16-le')}"
            )
        self._measure(clean)
        self._bytes += len(block)
        self._lines += text.count("\n")
        return clean

    def _measure(self, clean: bytes) -> None:
        """Raise `InputError` where a line that this block goes on with is too long.

        Lines within a block are shorter than it.
        """
        first = clean.find(b"\n")
        start = clean.find(b"\r", 0, first if first >= 0 else len(clean))
        start = start if start >= 0 else first
        if self._line + (start if start >= 0 else len(clean)) > MAX_BYTES_OF_LINE:
            raise InputError(
                f"{self._title}: a line must be at most {MAX_BYTES_OF_LINE // 1_000_000} MB long, "
                f"got a longer one, line {self._lines + 1}; perhaps this is not a table, or a "
                "quote is opened and never closed"
            )
        last = clean.rfind(b"\n")
        end = max(last, clean.rfind(b"\r", last + 1))
        self._line = len(clean) - 1 - end + (0 if end >= 0 else self._line)

    def _not_text(self, error: UnicodeError, offset: int) -> InputError:
        where, what = "", ""
        if isinstance(error, UnicodeDecodeError):
            before = error.object[: error.start]
            line = self._lines + before.count(b"\n") + 1
            what = f" 0x{error.object[error.start]:02x}" if error.start < len(error.object) else ""
            where = f" in line {line}, byte {offset + error.start} of the file"
        return InputError(
            f"{self._title}: the text is not valid {self.encoding}: invalid byte{what}{where}; "
            f"name the correct encoding, such as {name_roles(encoding='latin-1')}"
        )


def _encoding(start: bytes, wanted: str | None, title: str) -> tuple[str, int]:
    """The encoding's own name, and the length of its mark."""
    marked = next(((name, len(mark)) for mark, name in _MARKS if start.startswith(mark)), None)
    if wanted is None:
        return marked or ("utf-8", 0)
    try:
        "".encode(wanted)
        name = codecs.lookup(wanted).name.removesuffix("-sig")
        codecs.getincrementaldecoder(name)
    except (LookupError, ValueError, TypeError, AttributeError) as error:
        raise InputError(
            f"encoding must be one that Python supports, such as 'latin-1', got {wanted!r}"
        ) from error
    if marked is not None and not name.startswith(marked[0]):
        raise InputError(
            f"{title}: its byte order mark is that of {marked[0]}, but encoding is {name}"
        )
    return (marked[0], marked[1]) if marked is not None else (name, 0)


def _delimiter(head: bytes, usual: str) -> str:
    bare = re.sub(r'"[^"]*"', "", head.decode(errors="ignore")).lstrip("\r\n")
    header = re.split(r"[\r\n]", bare, maxsplit=1)[0]
    return next((mark for mark in (usual, *_DELIMITERS) if mark in header), usual)
