"""A fitted recalibration applied to new rows: to all in memory, or in batches into files."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import asdict, dataclass, field, replace
from html import escape
from itertools import chain, islice
from pathlib import Path
from typing import Self, final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from howsure.core.arrays import AnyArray
from howsure.core.classes import frozen
from howsure.core.errors import InputError
from howsure.core.files import new_folders, replacing
from howsure.core.progress import report_progress
from howsure.core.records import ResultTable
from howsure.core.text import CountedNote
from howsure.inputs.batches import ReadRows
from howsure.inputs.columns import RECALIBRATED
from howsure.inputs.files import TEXT_ENDINGS, table_form
from howsure.inputs.frames import MappingTable
from howsure.inputs.matching import NoneKeptError
from howsure.inputs.new import NewFile, NewReading, NewRows, gap_notes
from howsure.inputs.parts import FilePiece
from howsure.inputs.source import listed
from howsure.inputs.values import as_types, number_types, together, typed, written_out
from howsure.inputs.write import appending, write_table
from howsure.predictions import EvalSet, LabelSets
from howsure.predictions.columns import prediction_columns, to_columns
from howsure.recalibration import FittedParameter, FittedRecalibration, Recalibrated, Recalibrator
from howsure.recalibration.base import kinds_of
from howsure.recalibration.dispatch import FittedMethods, suited
from howsure.recalibration.serialization import TaughtScale
from howsure.recalibration.sets import TEMPERATURE
from howsure.streaming.engine import (
    Kept,
    done_in_order,
    keep,
    read_kept,
    stream_bytes,
    stream_table,
)
from howsure.streaming.load import Large, identity_with

# Numbers learnt that a line can hold.
_MAX_NUMBERS = 4
_SET = "label_set"  # what the name of a column of label sets begins with
# A screen of notes, whatever the number of files.
_MAX_NOTES = 20
# Bytes of a file of text that is held as a whole: in memory some times that, and read only once.
_MAX_BYTES_HELD = 64 << 20


class RecalibratedRows(FittedMethods):
    """New rows that were recalibrated, and what to say of that."""

    __slots__ = ()
    fitted: FittedRecalibration
    notes: tuple[str, ...]
    served: int

    @property
    def recalibrators(self) -> tuple[Recalibrator, ...]:  # type: ignore[override]
        """The fitted methods, one for each kind of prediction."""
        return self.fitted.recalibrators

    def lines(self) -> tuple[str, ...]:
        """What was done, in words: why, how, what it guarantees, and what else to know."""
        lines = [self.fitted.sentence] if self.fitted.sentence else []
        for recalibrator in self.fitted.recalibrators:
            numbers = ", ".join(_numbers(recalibrator.parameters))
            learnt = f" ({numbers})" if numbers else ""
            lines.append(
                f"{recalibrator.belief}: {recalibrator.method}{learnt}. {recalibrator.guarantee}"
            )
        return (*lines, *(f"note: {note}" for note in self.notes))

    def __str__(self) -> str:
        return "\n".join((*self.lines(), f"{self.served:,} rows recalibrated."))


@final
@frozen(kw_only=True)
class Recalibration(RecalibratedRows):
    """New rows with recalibrated predictions, and how they came about."""

    rows: NewRows  # the rows as they were given
    evalset: EvalSet  # those that have a prediction, with it recalibrated
    fitted: FittedRecalibration  # what was learnt: it can be saved, and applied to other rows
    notes: tuple[str, ...] = ()  # what the reader must know
    # what the names of new columns begin with, but for those of label sets
    prefix: str = RECALIBRATED

    @property
    def predictions(self) -> dict[str, AnyArray]:
        """The new predictions by the names of their columns; NaN or None where none was given."""
        columns = prediction_columns(self.evalset)
        sets_alone = TEMPERATURE not in self.methods.values() and any(
            isinstance(prediction, LabelSets) for prediction in self.evalset.predictions
        )
        predictions = {}
        for name, values in columns.items():
            text = values.dtype == object
            if sets_alone and not name.startswith(_SET):
                continue
            full = np.full(self.rows.n, None if text else np.nan, dtype=object if text else float)
            full[self.rows.places] = values
            predictions[name.replace(_SET, "set", 1) if text else self.prefix + name] = full
        return predictions

    @property
    def table(self) -> pa.Table:
        """Every column of the new table, and the recalibrated predictions after them."""
        return typed(self.read_all(), self.rows.decimal) if self.rows.is_text else self.read_all()

    @property
    def served(self) -> int:  # type: ignore[override]
        """Rows with a recalibrated prediction."""
        return self.evalset.n

    @property
    def sentence(self) -> str:
        """Why these methods; empty where the caller chose them."""
        return self.fitted.sentence

    @property
    def learnt(self) -> ResultTable:
        """The fitted parameters, one per row, with their guarantees in numbers."""
        return Recalibrated(evalset=self.evalset, recalibrators=self.recalibrators).table()

    def save(self, path: str | os.PathLike[str], *, csv_safe: bool = False) -> None:
        """Write `table`; a .csv or .tsv file has the cells of such a file as they were."""
        as_text = self.rows.is_text and table_form(path)[0] in TEXT_ENDINGS
        table = self.read_all() if as_text else self.table
        mark = self.rows.decimal if as_text else "."
        write_table(table, path, csv_safe=csv_safe, bare=as_text, decimal=mark)

    def _repr_html_(self) -> str:
        return "".join(f"<p>{escape(line)}</p>" for line in str(self).splitlines())

    def read_all(self) -> pa.Table:
        """The table with cells as they are, those of a text file as text."""
        table = self.rows.table
        if table is None:
            table = MappingTable(to_columns(self.rows.evalset)).read_all()
        unserved = np.ones(self.rows.n, dtype=np.bool_)
        unserved[self.rows.places] = False
        new = self.predictions
        twice = [name for name in new if name in table.column_names]
        if twice:
            raise InputError(
                f"the new rows already have the columns to be written ({listed(twice)}): drop or "
                "rename them"
            )
        for name, values in new.items():
            text = values.dtype == object
            column = pa.array(values, pa.string() if text else None, mask=unserved)
            if self.rows.is_text and self.rows.decimal != "." and not text:
                column = pc.replace_substring(column.cast(pa.string()), ".", self.rows.decimal)
            table = table.append_column(name, column)
        return table


def _numbers(learnt: Sequence[FittedParameter]) -> list[str]:
    """What was learnt; of many numbers of one name their range."""
    if len(learnt) <= _MAX_NUMBERS:
        return [f"{parameter.name} {parameter.value:.4g}" for parameter in learnt]
    named: dict[str, list[float]] = {}
    for parameter in learnt:
        named.setdefault(parameter.name.partition(",")[0], []).append(parameter.value)
    if len(named) > _MAX_NUMBERS:
        return []
    spans = [(name, min(values), max(values)) for name, values in named.items()]
    return [
        f"{name} {low:.4g}" + (f" to {high:.4g}" if high > low else "") for name, low, high in spans
    ]


@final
@frozen(kw_only=True)
class RecalibratedFiles(RecalibratedRows):
    """Files of new rows with recalibrated predictions, and how they came about."""

    files: tuple[Path, ...]  # what was written
    n: int  # rows in all
    served: int  # those with a recalibrated prediction
    fitted: FittedRecalibration  # what was learnt: it can be saved, and applied to other rows
    labelled: bool  # whether the first rows have y, so that the result can be assessed
    in_memory: Recalibration | None = None  # the rows, where they were read at once
    notes: tuple[str, ...] = ()  # what the reader must know


@final
@dataclass(slots=True)
class Account:
    """What became of some rows, and what to say of them."""

    n: int = 0
    served: int = 0
    gaps: Counter[str] = field(default_factory=Counter)
    # what is counted in notes, and the rest of these; nothing is in others
    notes: Counter[tuple[str, str]] = field(default_factory=Counter)
    scales: list[TaughtScale] = field(default_factory=list)

    @classmethod
    def of(cls, batch: Recalibration) -> Self:
        """That of rows in memory."""
        notes = Counter[tuple[str, str]]()
        for note in batch.notes:
            if isinstance(note, CountedNote):
                notes[note.one, note.rest] += note.number
            else:
                notes["", note] += 1
        scales = list(TaughtScale.of(batch.rows.evalset))
        return cls(batch.rows.n, batch.served, Counter(batch.rows.gaps), notes, scales)

    def with_rows(self, table: pa.Table) -> pa.Table:
        """The table of these rows, with the account among its facts."""
        scales = [asdict(scale) for scale in self.scales]
        content = [self.n, self.served, self.gaps, list(self.notes.items()), scales]
        facts = {**(table.schema.metadata or {}), _ACCOUNT: json.dumps(content)}
        return table.replace_schema_metadata(facts)

    def take(self, table: pa.Table) -> pa.Table:
        """A table as it was before `with_rows`, whose rows are taken in."""
        facts = dict(table.schema.metadata)
        n, served, gaps, notes, scales = json.loads(facts.pop(_ACCOUNT))
        self.n += n
        self.served += served
        self.gaps.update(gaps)
        self.notes.update({tuple(note): count for note, count in notes})
        self.scales += [TaughtScale(**scale) for scale in scales]
        return table.replace_schema_metadata(facts or None)

    def all_notes(self, first: Recalibration, notes: Sequence[str]) -> tuple[str, ...]:
        """What the reader must know: notes on the fit, on all rows, and those of batches."""
        fitted = first.fitted
        kinds, scales = kinds_of(first.rows.evalset), TaughtScale.among(self.scales)
        on_rows = gap_notes(self.served, self.n, self.gaps), fitted.notes_on(kinds, scales)
        of_batches = [
            CountedNote.of(count, noun, text) if noun else text
            for (noun, text), count in self.notes.items()
        ]
        more = len(of_batches) - _MAX_NOTES
        of_batches[_MAX_NOTES:] = [f"{more} more notes are not shown."] if more > 0 else []
        return tuple(dict.fromkeys(chain(notes, *on_rows, _fit_notes(fitted), of_batches)))


_ACCOUNT = b"howsure"


@final
@frozen(kw_only=True)
class Application:
    """What is done with new rows, by whichever process."""

    fitted: FittedRecalibration
    reading: NewReading
    method: str = ""  # whose kind of prediction alone is kept; all if empty
    prefix: str = RECALIBRATED
    added: tuple[tuple[str, str], ...] = ()  # the new columns, and the types that they are of

    @property
    def identity(self) -> str:
        """What decides what becomes of a row."""
        reading = [self.reading.needs, self.reading.columns, self.reading.options]
        return repr((self.fitted.to_json(), self.prefix, self.method, self.added, reading))

    def recalibrated(self, rows: NewRows) -> Recalibration:
        """Rows in memory, with notes on them alone."""
        if self.method:
            rows = replace(rows, evalset=suited(rows.evalset, self.method))
        applied = self.fitted.apply(rows.evalset, ())
        of_fit = _fit_notes(self.fitted)
        notes = (*rows.notes, *(note for note in applied.notes if note not in of_fit))
        return Recalibration(
            rows=rows,
            evalset=applied.evalset,
            fitted=self.fitted,
            notes=notes,
            prefix=self.prefix,
        )

    def batches(self, piece: FilePiece, folder: Path | None = None) -> Iterator[pa.Table]:
        """The rows of a piece as they are, with new columns behind, some at a time.

        Each table has its account; with a folder, what an earlier run left there is read.
        """
        work = f"{self.reading.rows} {self.identity}" if folder else ""
        for number, batch in enumerate(self.reading.batches(piece)):
            if folder is None:
                yield self._batch(batch)
                continue
            mark = identity_with(f"{piece.identity} {number}", work)
            stream = read_kept(folder, mark)
            yield stream_table(stream or keep(folder, mark, stream_bytes(self._batch(batch))))

    def _batch(self, batch: ReadRows) -> pa.Table:
        try:
            recalibration = self.recalibrated(self.reading.load(batch, outcomes=False))
            return Account.of(recalibration).with_rows(recalibration.read_all())
        except NoneKeptError as error:
            table = batch.read_all()
            for name, kind in self.added:
                table = table.append_column(name, pa.nulls(table.num_rows, pa.type_for_alias(kind)))
            return Account(table.num_rows, gaps=Counter(error.gaps)).with_rows(table)

    def __call__(self, piece: FilePiece) -> pa.Table:
        """All rows of a piece, with their account."""
        account = Account()
        return account.with_rows(pa.concat_tables(list(map(account.take, self.batches(piece)))))

    def pieces(
        self, pieces: Sequence[FilePiece], large: Large, folder: Path
    ) -> Generator[Iterable[pa.Table]]:
        """The rows of each piece, in order.

        This process serves them, which reading and writing keep busy; others do where that is
        asked, and all files can be cut into pieces that fit into memory.
        """
        wants_processes = large.jobs or large.scheduler is not None or large.resume
        small = (piece.rows is not None or piece.place.size <= _MAX_BYTES_HELD for piece in pieces)
        if not wants_processes or not all(small):
            kept_in = folder if wants_processes else None
            yield from (self.batches(piece, kept_in) for piece in pieces)
            return
        identity = self.identity
        tables = done_in_order(
            self,
            pieces,
            identities=[identity_with(piece.identity, identity) for piece in pieces],
            jobs=large.processes,
            scheduler=large.scheduler,
            resume=folder,
            sizes=[piece.rows or 1 for piece in pieces],
        )
        with closing(tables):
            yield from ([table] for table in tables)


def write_files(
    application: Application,
    plan: Mapping[Path, Sequence[NewFile]],
    first: Recalibration,
    output: str | os.PathLike[str] | None,
    *,
    csv_safe: bool,
    large: Large,
    key: str,
) -> Account:
    """Recalibrate the rows of files into those of a plan, some at a time.

    All appear when the last row is done; an error leaves none. What folders say of a file is a
    column, unless it stands in a folder of that name.
    """
    separate = output is None or Path(output) not in plan
    added = list(first.read_all().schema)[-len(first.predictions) or None :]
    types_added = tuple((column.name, str(column.type)) for column in added)
    application = replace(application, added=types_added)
    decimal = application.reading.options["decimal"]
    files = [file for joined in plan.values() for file in joined]
    counts = [file.rows for file in files]  # 0 where a file does not tell
    total = sum(counts) if all(counts) else 0
    account = Account()
    with ExitStack() as stack:
        finished = Kept.of(f"{key} {application.identity}", resume=large.resume)
        folder = stack.enter_context(finished).folder
        pieces = [piece for file in files for piece in file.pieces]
        served = stack.enter_context(closing(application.pieces(pieces, large, folder)))
        if separate:
            stack.enter_context(new_folders(path.parent for path in plan))
        for target, joined in plan.items():
            form = table_form(target)
            is_text = all(file.is_text for file in joined)
            bare = is_text and form[0] in TEXT_ENDINGS
            types = _types(joined, application.reading, first) if is_text and not bare else {}
            temporary = stack.enter_context(replacing(target))
            mark = decimal if bare else "."
            schema: pa.Schema | None = None
            with appending(temporary, form, csv_safe=csv_safe, bare=bare, decimal=mark) as append:
                for file in joined:
                    of_folders = file.folder_columns() if separate else ()
                    batches = chain.from_iterable(islice(served, len(file.pieces)))
                    for table in map(account.take, batches):
                        columns = as_types(table, types, decimal).drop_columns(of_folders)
                        schema = schema or columns.schema
                        append(_as(columns, schema, file, joined[0]))
                        report_progress("recalibrating rows", account.n, total)
    return account


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
    for column, values in enumerate(first.predictions.values(), len(pieces[0].names)):
        if values.dtype != object:
            types[column] = pa.float64()
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
        together([written_out(schema.empty_table()), written_out(table)])
        return table.cast(schema)
    except (InputError, pa.ArrowInvalid) as error:
        raise InputError(
            f"{file.path} needs the column types of {first.path} to share one output file, got "
            f"{error}"
        ) from error
