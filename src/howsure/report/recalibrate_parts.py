"""New rows in many files, or too many to be held, recalibrated part by part."""

from __future__ import annotations

import json
import os
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Final, Self, final

import pyarrow as pa

from howsure.core.classes import brief_repr, frozen
from howsure.core.convert import check_whole
from howsure.core.errors import InputError
from howsure.core.files import check_outputs, new_folders, replacing
from howsure.core.progress import report_progress
from howsure.core.text import CountedNote
from howsure.core.threads import one_thread
from howsure.inputs.files import TEXT_ENDINGS, table_form
from howsure.inputs.matching import NoneKeptError
from howsure.inputs.new import (
    NewBatch,
    NewFile,
    NewReading,
    NewRows,
    gap_notes,
    new_files,
    skipped_of,
    targets,
)
from howsure.inputs.parts import FilePiece
from howsure.inputs.places import listed_skipped
from howsure.inputs.roles import Columns
from howsure.inputs.source import listed
from howsure.inputs.sources import BATCH_ROWS
from howsure.inputs.values import as_types, number_types
from howsure.inputs.write import appending
from howsure.recalibration import FittedRecalibration
from howsure.recalibration.base import kinds_of
from howsure.recalibration.dispatch import suited
from howsure.recalibration.serialization import TaughtScale
from howsure.report.recalibrate import Recalibration, ServedRows, recalibrate_tables
from howsure.streaming.engine import Kept, done_in_order
from howsure.streaming.load import Large, identity_with

# A screen of notes, whatever the number of files.
_MAX_NOTES: Final = 20
# Bytes of a file of text that is held as a whole: in memory some times that, and read only once.
_MAX_BYTES_HELD: Final = 64 << 20


@final
@frozen(kw_only=True)
class RecalibratedFiles(ServedRows):
    """Files of new rows with recalibrated predictions, and how they came about."""

    files: tuple[Path, ...]  # what was written
    n: int  # rows in all
    served: int  # those with a recalibrated prediction
    fitted: FittedRecalibration  # what was learnt: it can be saved, and applied to other rows
    labelled: bool  # whether the first rows have y, so that the result can be assessed
    notes: tuple[str, ...] = ()  # what the reader must know

    __repr__ = brief_repr


@one_thread()
def recalibrated_files(
    new: Any,
    calibration: Any,
    output: str | os.PathLike[str],
    columns: Columns,
    *,
    reading: Mapping[str, Any],
    csv_safe: bool = False,
    batch_rows: int = BATCH_ROWS,
    large: Large | None = None,
    alone: bool = False,
    **options: Any,
) -> RecalibratedFiles:
    """What `recalibrate` gives of all rows at once, written some at a time.

    `options` go to `recalibrate_tables`; with `alone` as there. All files appear when the last row
    is done; an error leaves none.
    """
    check_whole(batch_rows, "batch_rows", 1)
    large = large or Large()
    files = new_files(
        new,
        encoding=reading["encoding"],
        decimal=reading["decimal"],
        piece_rows=large.piece_rows,
    )
    plan = targets(files, Path(output))
    apart = Path(output) not in plan  # a file stands for each that was given
    _check_plan(plan, files, calibration, apart=apart)
    shared = {"reading": reading, "large": large, "alone": alone}
    look = NewReading(needs={}, columns=columns, options=reading, rows=batch_rows)
    first = _first(files, calibration, look, {**shared, **options})
    fitted = first.fitted
    skipped = skipped_of(new)
    unread = (f"not read: {listed_skipped(skipped)}",) if skipped else ()
    if not fitted.by_rows:
        done = _serve_first_file(files, plan, first, columns, shared, csv_safe=csv_safe)
        return replace(done, notes=(*done.notes, *unread))
    added = list(first.read_all().schema)[-len(first.predictions) or None :]
    needs = {"by": fitted.by, "like": fitted.features, "vectors": fitted.embedding}
    serve = _Serve(
        fitted=fitted,
        prefix=first.prefix,
        method=options.get("method") if alone else None,
        added=tuple((field.name, str(field.type)) for field in added),
        reading=NewReading(needs=needs, columns=columns, options=reading, rows=batch_rows),
    )
    counts = [file.rows for file in files]  # 0 where a file does not tell
    work = _Work(first=first, total=sum(counts) if all(counts) else 0, decimal=reading["decimal"])
    with ExitStack() as stack:
        finished = stack.enter_context(Kept.of(f"{new} {serve.identity}", resume=large.resume))
        ordered = [file for joined in plan.values() for file in joined]
        tables = _served(serve, ordered, large, finished.folder)
        stack.enter_context(closing(tables))
        if apart:
            stack.enter_context(new_folders(path.parent for path in plan))
        for target, joined in plan.items():
            form = table_form(target)
            text = all(file.is_text for file in joined) and form[0] not in TEXT_ENDINGS
            types = _types(joined, serve.reading, first) if text else {}
            temporary = stack.enter_context(replacing(target))
            work.write(joined, temporary, tables, types, form=form, apart=apart, csv_safe=csv_safe)
    return RecalibratedFiles(
        files=tuple(plan),
        n=work.account.n,
        served=work.account.served,
        fitted=fitted,
        labelled=first.rows.labelled,
        notes=(*work.notes(), *unread),
    )


def _check_plan(
    plan: Mapping[Path, Sequence[NewFile]], files: Sequence[NewFile], other: Any, *, apart: bool
) -> None:
    """Refuse outputs that cannot be written, or that would replace what is read, before work."""
    read = {os.path.realpath(file.path): Path(file.path) for file in files}
    if isinstance(other, str | os.PathLike):
        read[os.path.realpath(other)] = Path(other)
    for path in plan:
        taken = read.get(os.path.realpath(path))
        if taken is not None:
            check_outputs([path], [taken])
    for folder, path in {path.parent: path for path in plan}.items():
        if folder.is_dir() or not apart:  # others are made, each for its files
            check_outputs([path])


def _first(
    files: Sequence[NewFile],
    calibration: Any,
    look: NewReading,
    options: Mapping[str, Any],
) -> Recalibration:
    """The first batch with a prediction, recalibrated by what it takes to serve all."""
    refused: NoneKeptError | None = None
    for piece in (piece for file in files for piece in file.pieces):
        for batch in look.batches(piece):
            report_progress("learning")
            try:
                look.rows_of(batch)  # which counts rows from the start of the file
                return recalibrate_tables(batch, calibration, look.columns, **options)
            except NoneKeptError as error:
                refused = error
    assert refused is not None
    raise refused


def _serve_first_file(
    files: Sequence[NewFile],
    plan: Mapping[Path, Sequence[NewFile]],
    first: Recalibration,
    columns: Columns,
    shared: Mapping[str, Any],
    *,
    csv_safe: bool,
) -> RecalibratedFiles:
    """One file served at once, by what was learnt."""
    methods = ", ".join(fit.method for fit in first.recalibrators if not fit.by_rows)
    why = f"method {methods!r} draws separately for rows of equal content"
    if len(files) > 1:
        raise InputError(f"{why}, so it needs all new rows in one file, got {len(files):,} files")
    if files[0].place.remote:
        raise InputError(f"{why}, so it needs new rows in a local file, got {files[0].path}")
    (target,) = plan
    done = recalibrate_tables(files[0].path, first.fitted, columns, **shared)
    done.save(target, csv_safe=csv_safe)
    notes = (*_lasting(first), *done.notes, f"All rows were read at once, because {why}.")
    return RecalibratedFiles(
        files=(target,),
        n=done.rows.n,
        served=done.evalset.n,
        fitted=first.fitted,
        labelled=done.rows.labelled,
        notes=tuple(dict.fromkeys(notes)),
    )


def _lasting(first: Recalibration) -> list[str]:
    """Notes on the fit: those that hold whatever rows it serves."""
    rows = first.rows
    passing = {*rows.notes, *first.fitted.apply(rows.evalset).notes}
    return [note for note in first.notes if note not in passing]


@final
@dataclass(slots=True)
class _Account:
    """What became of some rows, and what is to be told of them."""

    n: int = 0
    served: int = 0
    gaps: dict[str, int] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    scales: list[TaughtScale] = field(default_factory=list)
    kinds: tuple[str, ...] = ()

    def add(self, other: _Account) -> None:
        """Take further rows in."""
        self.n += other.n
        self.served += other.served
        for name, gone in other.gaps.items():
            self.gaps[name] = self.gaps.get(name, 0) + gone
        self.notes = summed([*self.notes, *other.notes])
        self.scales += other.scales
        self.kinds = other.kinds or self.kinds

    def to_json(self) -> str:
        """It as text."""
        notes = [
            [note.number, note.one, note.rest] if isinstance(note, CountedNote) else note
            for note in self.notes
        ]
        scales = [asdict(scale) for scale in self.scales]
        return json.dumps([self.n, self.served, self.gaps, notes, scales, self.kinds])

    @classmethod
    def from_json(cls, text: str) -> Self:
        """What `to_json` told."""
        n, served, gaps, notes, scales, kinds = json.loads(text)
        plain = [note if isinstance(note, str) else CountedNote.of(*note) for note in notes]
        return cls(n, served, gaps, plain, [TaughtScale(**scale) for scale in scales], tuple(kinds))


_ACCOUNT: Final = b"howsure"


@final
@frozen(kw_only=True)
class _Serve:
    """What is done with every piece of a file, by whichever process."""

    fitted: FittedRecalibration
    prefix: str
    method: str | None  # whose kind of prediction alone is kept
    added: tuple[tuple[str, str], ...]  # the new columns, and the types that they are of
    reading: NewReading

    @property
    def identity(self) -> str:
        """What decides what becomes of a row."""
        reading = [self.reading.needs, self.reading.columns, self.reading.options]
        return repr((self.fitted.to_json(), self.prefix, self.method, self.added, reading))

    def batches(self, piece: FilePiece) -> Iterator[tuple[pa.Table, _Account]]:
        """Its rows as they are, with new columns behind, some at a time."""
        for batch in self.reading.batches(piece):
            try:
                yield self._recalibrated(self.reading.rows_of(batch), batch.n)
            except NoneKeptError as error:
                yield self._without(batch), _Account(batch.n, gaps=dict(error.gaps))

    def __call__(self, piece: FilePiece) -> pa.Table:
        """All its rows, and their account among the facts of the table."""
        tables, account = [], _Account()
        for table, account_of_batch in self.batches(piece):
            tables.append(table)
            account.add(account_of_batch)
        whole = pa.concat_tables(tables)
        facts = {**(whole.schema.metadata or {}), _ACCOUNT: account.to_json()}
        return whole.replace_schema_metadata(facts)

    def _recalibrated(self, rows: NewRows, n: int) -> tuple[pa.Table, _Account]:
        if self.method is not None:
            rows = replace(rows, evalset=suited(rows.evalset, self.method))
        done = self.fitted.apply(rows.evalset, ())
        of_fit = _fit_notes(self.fitted)
        account = _Account(
            n=n,
            served=rows.evalset.n,
            gaps=dict(rows.gaps),
            notes=[*rows.notes, *(note for note in done.notes if note not in of_fit)],
            scales=list(TaughtScale.of(rows.evalset)),
            kinds=kinds_of(rows.evalset),
        )
        recalibration = Recalibration(
            rows=rows, evalset=done.evalset, fitted=self.fitted, prefix=self.prefix
        )
        return recalibration.read_all(), account

    def _without(self, batch: NewBatch) -> pa.Table:
        """Rows of which none has a prediction, beside empty cells."""
        table = batch.read_all()
        for name, kind in self.added:
            table = table.append_column(name, pa.nulls(len(table), pa.type_for_alias(kind)))
        return table


def _served(
    serve: _Serve, files: Iterable[NewFile], large: Large, folder: Path
) -> Generator[Iterable[tuple[pa.Table, _Account]]]:
    """The rows of every piece of the files in their order, as they are and recalibrated.

    This process serves them, which reading and writing keep busy; others do where that is asked,
    and all files can be cut into pieces that fit into memory.
    """
    pieces = [piece for file in files for piece in file.pieces]
    wants_processes = large.jobs or large.scheduler is not None or large.resume
    small = (piece.rows is not None or piece.place.size <= _MAX_BYTES_HELD for piece in pieces)
    if not wants_processes or not all(small):
        yield from map(serve.batches, pieces)
        return
    identity = serve.identity
    tables = done_in_order(
        serve,
        pieces,
        identities=[identity_with(piece.identity, identity) for piece in pieces],
        jobs=large.processes,
        scheduler=large.scheduler,
        resume=folder,
        sizes=[piece.rows or 1 for piece in pieces],
    )
    with closing(tables):
        for table in tables:
            facts = dict(table.schema.metadata)
            account = _Account.from_json(facts.pop(_ACCOUNT).decode())
            yield [(table.replace_schema_metadata(facts or None), account)]


@final
@dataclass(slots=True, kw_only=True)
class _Work:
    """Rows written one after the other, and what is to be told of them."""

    first: Recalibration
    total: int
    decimal: str
    account: _Account = field(default_factory=_Account)

    def write(
        self,
        files: Sequence[NewFile],
        temporary: Path,
        served: Iterator[Iterable[tuple[pa.Table, _Account]]],
        types: Mapping[int, pa.DataType],
        *,
        form: tuple[str, str],
        apart: bool,
        csv_safe: bool,
    ) -> None:
        """Write the rows of some files into one.

        What folders say of a file is a column, unless it stands `apart` in a folder of that name.
        """
        as_text = all(file.is_text for file in files) and form[0] in TEXT_ENDINGS
        mark = self.decimal if as_text else "."
        with appending(temporary, form, csv_safe=csv_safe, bare=as_text, decimal=mark) as append:
            schema: pa.Schema | None = None
            for file in files:
                folder_columns = file.told() if apart else ()
                for _ in file.pieces:
                    for table, account in next(served):
                        typed_table = as_types(table, types, self.decimal).drop_columns(
                            folder_columns
                        )
                        schema = schema or typed_table.schema
                        append(_as(typed_table, schema, file, files[0]))
                        self.account.add(account)
                        report_progress("recalibrating rows", self.account.n, self.total)

    def notes(self) -> tuple[str, ...]:
        """What the reader must know of all rows."""
        fitted, account = self.first.fitted, self.account
        notes = [
            *_lasting(self.first),
            *gap_notes(account.served, account.n, account.gaps),
            *fitted.notes_on(account.kinds, TaughtScale.among(account.scales)),
            *_fit_notes(fitted),
            *few_notes(account.notes),
        ]
        return tuple(dict.fromkeys(notes))


def _fit_notes(fitted: FittedRecalibration) -> tuple[str, ...]:
    """Notes on what was learnt, whose numbers are of calibration rows."""
    return tuple(note for fitted in fitted.recalibrators for note in fitted.notes)


def _types(
    files: Sequence[NewFile], reading: NewReading, first: Recalibration
) -> dict[int, pa.DataType]:
    """The columns of text files that are numbers in all of them, the new ones among them."""
    report_progress("looking at columns of text")
    pieces = [piece for file in files for piece in file.pieces]
    tables = (batch.read_all() for piece in pieces for batch in reading.batches(piece))
    types = number_types(tables, reading.options["decimal"])
    width = len(pieces[0].names())
    for column, values in enumerate(first.predictions.values()):
        if values.dtype != object:
            types[width + column] = pa.float64()
    return types


def _as(table: pa.Table, schema: pa.Schema, file: NewFile, first: NewFile) -> pa.Table:
    """The table with the columns of another, in their order."""
    if table.schema.equals(schema):
        return table
    names = {
        "without": [name for name in schema.names if name not in table.column_names],
        "with": [name for name in table.column_names if name not in schema.names],
    }
    unlike = [f"{what} {listed(columns)}" for what, columns in names.items() if columns]
    if unlike:
        raise InputError(
            f"{file.path} needs the columns of {first.path} to share one output file, got columns "
            f"{' and '.join(unlike)}; use a folder as output for one file each"
        )
    table = table.select(schema.names)
    try:
        unlike = [
            f"{wanted.name!r} of {column.type}, not {wanted.type}"
            for column, wanted in zip(table.schema, schema, strict=True)
            if _family(column.type) not in (_family(wanted.type), "nothing")
        ]
        if unlike:
            raise pa.ArrowInvalid(", ".join(unlike))
        return table.cast(schema)
    except pa.ArrowInvalid as error:
        raise InputError(
            f"{file.path} needs the column types of {first.path} to share one output file, got "
            f"{error}"
        ) from error


def _family(kind: pa.DataType) -> str:
    """What values of a type are, however long they are stored."""
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    if pa.types.is_null(kind):
        return "nothing"
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return "numbers"
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return "text"
    return "moments" if pa.types.is_timestamp(kind) or pa.types.is_date(kind) else str(kind)


def summed(notes: Iterable[str]) -> list[str]:
    """Notes on parts as notes on the whole: those that count add up."""
    plain: dict[str, None] = {}
    counted: dict[tuple[str, str], CountedNote] = {}
    for note in notes:
        if isinstance(note, CountedNote):
            key = note.one, note.rest
            counted[key] = counted[key].plus(note.number) if key in counted else note
        else:
            plain[note] = None
    return [*plain, *counted.values()]


def few_notes(notes: Sequence[str]) -> list[str]:
    """The first notes, and how many more there are."""
    if len(notes) <= _MAX_NOTES:
        return list(notes)
    return [*notes[:_MAX_NOTES], f"{len(notes) - _MAX_NOTES} more notes are not shown."]
