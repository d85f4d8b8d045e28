"""Whatever a caller gives as a table: one file, many, or what yields its rows, as one source.

A table in pieces is their concatenation, where it is read whole.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import accumulate
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from howsure.core.errors import InputError
from howsure.inputs.dialects import adapted
from howsure.inputs.files import READ_ENDINGS, TEXT_ENDINGS, arrow_reader
from howsure.inputs.frames import FrameTable, MappingTable, is_frame, is_inference, posterior_table
from howsure.inputs.parts import (
    FilePiece,
    Piece,
    PiecedTable,
    StreamPiece,
    dask_pieces,
    fragment_rows,
    identity_of,
    is_dask,
    is_lazy,
    stream_of,
)
from howsure.inputs.places import Place, is_address, is_folder, is_pattern, places
from howsure.inputs.source import COMPRESSION, Source, name_parts, refusing

if TYPE_CHECKING:
    from pyarrow.dataset import Dataset

# Two million rows, assessed at once, take about a gigabyte (500 MB for one million,
# docs/speed.md).
HUGE_ROWS = 2_000_000
"""Rows past which a table is read in parts, where nothing else is said."""
# The size of a row group of Arrow's writer; pieces are as large, so that each group is read once.
PIECE_ROWS = 1_048_576
# Bytes whose lines tell how many there are: hundreds of rows, which know the mean length to a few
# per cent; enough for a choice between millions.
_BYTES_COUNTED = 1 << 16
# Footers are waited for, not computed: 16 at a time keep an object store busy.
_MAX_THREADS = 16
# 4 MB are tens of thousands of rows, which tell how many bytes one has, and quick to unpack.
_BYTES_UNPACKED = 1 << 22
# Rows in a byte, at most, of a compressed file that is not looked at. Text has one at most, and
# tables that people make far fewer; a file of 1 MB may hold 100 million equal rows.
_MAX_ROWS_PER_BYTE = 50


class Extent(NamedTuple):
    """The size of a table, as far as it is known without reading it."""

    # its rows: as metadata says or, for text, as its size and its first rows suggest
    rows: int | None
    # whether it can be read in parts alone: a folder, a pattern, an address, or what yields its
    # rows some at a time
    parts: bool


def extent(source: Any) -> Extent:
    """How large a table is, told cheaply; nothing is refused that `load` would read or refuse."""
    if isinstance(source, list | tuple) and len(source) == 1:
        (source,) = source
    if not isinstance(source, str | PathLike):
        return Extent(None, parts=_is_dataset(source) or is_lazy(source))
    path = fspath(source)
    if _is_in_parts(path):
        return Extent(None, parts=True)
    try:
        return Extent(_rows_of(places(path).places[0]), parts=False)
    except InputError:
        return Extent(None, parts=False)


def _is_in_parts(path: str) -> bool:
    """Whether a path may stand for several files."""
    return is_address(path) or is_pattern(path) or is_folder(path)


def is_huge(source: Any, past: int) -> bool:
    """Whether a table is to be read in parts: it has more rows, or cannot be read else."""
    near = isinstance(source, str | PathLike) and not is_address(fspath(source))
    if near and os.path.isfile(source):
        _, ending, packed = name_parts(Path(source))
        plain = ending in TEXT_ENDINGS and not packed
        if os.path.getsize(source) * (1 if plain else _MAX_ROWS_PER_BYTE) <= past:
            return False
    size = extent(source)
    return size.parts or (size.rows or 0) > past


def planned(source: Any, encoding: str | None, decimal: str, piece_rows: int) -> PiecedTable:
    """The pieces of whatever is given."""
    if isinstance(source, list | tuple) and len(source) == 1:
        (source,) = source
    if isinstance(source, str | PathLike):
        return _planned_files(fspath(source), encoding, decimal, piece_rows)
    if isinstance(source, list | tuple) and any(isinstance(s, str | PathLike) for s in source):
        raise InputError(
            f"several tables ({len(source)}) are several models and cannot be read in parts: "
            "give a folder or a quoted pattern such as 'preds/*.parquet' if they are parts of "
            "one table, or put the models side by side in one table"
        )
    if _is_dataset(source):
        pieces = _fragments(source)
        if pieces:
            return PiecedTable("the dataset", pieces)
        source = source.scanner().to_reader()
    if is_dask(source):
        title = f"the table ({source.npartitions:,} partitions)"
        return PiecedTable(title, tuple(dask_pieces(source)))
    stream = stream_of(source)
    return PiecedTable(stream.title, (stream,), again=False)


def _planned_files(path: str, encoding: str | None, decimal: str, piece_rows: int) -> PiecedTable:
    listing = places(path)
    files = listing.places
    footers = tuple(_footers(files)) if files[0].form == "parquet" else ()
    pieces = tuple(file_pieces(files, encoding, decimal, piece_rows, footers))
    if not pieces:
        what = "the table has" if len(files) == 1 else "the files have"
        raise InputError(f"{listing.title}: {what} columns but no rows")
    shared = not files[0].path.startswith("memory://")  # which no other process sees
    return PiecedTable(listing.title, pieces, _model_of(path), shared, footers, listing)


def file_pieces(
    files: Sequence[Place],
    encoding: str | None = None,
    decimal: str = ".",
    piece_rows: int = PIECE_ROWS,
    footers: Sequence[pq.FileMetaData] = (),
) -> Iterator[FilePiece]:
    """Pieces of files of one form, each of about so many rows where a file can be cut."""
    counts: Sequence[Sequence[int] | None] = [None] * len(files)  # rows of each group of a file
    if files[0].form == "parquet":
        counts = [
            [footer.row_group(group).num_rows for group in range(footer.num_row_groups)]
            for footer in footers or _footers(files)
        ]
    elif files[0].form == "arrow":
        counts = [_arrow_counts(file) for file in files]
    for file, rows_of_groups in zip(files, counts, strict=True):
        if rows_of_groups is None:
            yield FilePiece(
                title=file.path,
                place=file,
                identity=identity_of(file, None),
                encoding=encoding,
                decimal=decimal,
            )
        else:
            yield from _cut_file(file, rows_of_groups, piece_rows)


def _model_of(path: str) -> str:
    """What to call the model: the file without endings, or the last folder without wildcards."""
    if is_pattern(path) or is_folder(path):
        names = [name for name in Path(path).parts if not is_pattern(name) and "=" not in name]
        return names[-1].strip("./\\") if names else ""
    return name_parts(Path(path))[0]


def _footers(files: Sequence[Place]) -> list[pq.FileMetaData]:
    with ThreadPoolExecutor(min(_MAX_THREADS, len(files))) as pool:
        return list(pool.map(_footer, files))


def _footer(file: Place) -> pq.FileMetaData:
    with refusing(file.path), file.open() as handle:
        return pq.read_metadata(handle)


def _cut_file(file: Place, counts: Sequence[int], piece_rows: int) -> Iterator[FilePiece]:
    """Pieces of a file by the rows of its groups, without those of none."""
    starts = [0, *accumulate(counts)]
    cuts: list[list[int]] = []
    size = 0
    for group, count in enumerate(counts):
        if not count:
            continue
        if not cuts or size + count > piece_rows:
            cuts.append([])
            size = 0
        cuts[-1].append(group)
        size += count
    word = "row groups" if file.form == "parquet" else "batches"
    for groups in map(tuple, cuts):
        where = f", {word} {groups[0]} to {groups[-1]}" if len(cuts) > 1 else ""
        yield FilePiece(
            title=f"{file.path}{where}",
            place=file,
            rows=sum(counts[group] for group in groups),
            first_row=starts[groups[0]],
            groups=groups,
            identity=identity_of(file, groups),
        )


def _arrow_counts(file: Place) -> list[int] | None:
    """The rows of each batch of an Arrow file, from its narrowest column.

    None of a stream, and of a file far away.
    """
    with refusing(file.path), file.open() as handle:
        reader: Any = None if file.remote else arrow_reader(handle)
        if not hasattr(reader, "num_record_batches"):
            return None

        def width(column: int) -> int:
            kind = reader.schema.field(column).type
            return kind.bit_width if pa.types.is_primitive(kind) else 1 << 20

        if len(reader.schema):
            narrowest = min(range(len(reader.schema)), key=width)
            reader = arrow_reader(handle, [narrowest])
        return [reader.get_batch(k).num_rows for k in range(reader.num_record_batches)]


def _is_dataset(source: object) -> bool:
    """Whether it is a dataset of pyarrow, which is loaded if one exists."""
    module = sys.modules.get("pyarrow.dataset")
    return module is not None and isinstance(source, module.Dataset)


def _fragments(dataset: Dataset) -> tuple[Piece, ...]:
    """A piece for each file of a dataset; none where it was filtered, or is of no files."""
    from pyarrow import dataset as ds  # it loads pandas

    if not isinstance(dataset, ds.FileSystemDataset):
        return ()
    try:
        fragments = list(dataset.get_fragments())
    except ValueError:
        return ()
    pieces: list[Piece] = []
    for fragment in fragments:
        info = fragment.filesystem.get_file_info(fragment.path)
        file = Place(fragment.path, info.size or 0, str(info.mtime_ns))
        rows = fragment.count_rows() if isinstance(fragment, ds.ParquetFileFragment) else None
        if rows != 0:
            piece = StreamPiece(
                title=fragment.path,
                names=tuple(dataset.schema.names),
                query=partial(fragment_rows, fragment, dataset.schema),
                rows=rows,
                identity=identity_of(file, None),
            )
            pieces.append(piece)
    return tuple(pieces)


def _rows_of(file: Place) -> int | None:
    """The rows of a file near by, as its metadata say or its first bytes suggest."""
    if file.form in READ_ENDINGS:
        return None
    if file.form == "parquet":
        return int(_footer(file).num_rows)
    if file.form == "arrow":
        counts = _arrow_counts(file)
        return None if counts is None else sum(counts)
    with refusing(file.path), file.open() as handle:
        packed = name_parts(Path(file.path))[2]
        if not packed:
            start = handle.read(_BYTES_COUNTED)
            lines = start.count(b"\n")
            return round(file.size * lines / len(start)) if lines else None
        unpacked = pa.CompressedInputStream(handle, COMPRESSION[packed])
        start = unpacked.read(_BYTES_UNPACKED)
        share = 1.0 if len(start) < _BYTES_UNPACKED else handle.tell() / file.size
        return round(int(start.count(b"\n")) / share)


def sources(source: Any, encoding: str | None = None, decimal: str = ".") -> Iterator[Source]:
    """The tables that a caller gives, each opened when it is asked for."""
    stated = {"encoding": encoding is not None, "decimal": decimal != "."}
    idle = " and ".join(name for name in stated if stated[name])
    for table in _opened(source, encoding, decimal):
        if idle and not table.from_text:
            table.notes = (*table.notes, f"{idle}: only for text files, so not used here")
        yield adapted(table)


def _opened(source: Any, encoding: str | None, decimal: str) -> Iterator[Source]:
    """The tables, as they are written."""
    many = source if isinstance(source, list | tuple) else [source]
    if not many:
        raise InputError("no table given")
    for number, item in enumerate(many, 1):
        title = "the table" if len(many) == 1 else f"table {number}"
        if isinstance(item, Source):
            yield item
        elif is_inference(item):
            yield posterior_table(item, title)
        elif isinstance(item, Mapping):
            yield MappingTable(item, title)
        elif isinstance(item, str | PathLike):
            yield from _files(fspath(item), encoding, decimal)
        elif not is_frame(item) and is_lazy(item):  # a frame gives the needed columns alone
            table = planned(item, encoding, decimal, PIECE_ROWS)
            table.check_names()
            yield FrameTable(table.read_all(), title)  # its rows may come once
        else:
            yield FrameTable(item, title)


def _files(path: str, encoding: str | None, decimal: str) -> Iterator[Source]:
    """One file as it is; or those that a folder, a pattern or an address stands for, as one."""
    if _is_in_parts(path):
        yield planned(path, encoding, decimal, PIECE_ROWS)
        return
    (file,) = places(path).places
    yield FilePiece(title=path, place=file, encoding=encoding, decimal=decimal).opened()
    file.check_unchanged()


def open_table(
    path: str | os.PathLike[str], *, encoding: str | None = None, decimal: str = "."
) -> Source:
    """Open a table by its path, and read its column names."""
    return next(_files(fspath(path), encoding, decimal))
