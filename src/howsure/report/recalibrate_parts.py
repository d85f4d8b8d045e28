"""New rows in many files, or too many to be held, recalibrated part by part."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, final

import numpy.typing as npt
import pyarrow as pa

from howsure.conformal import DELTA, RankRule, TooFew
from howsure.core.brief import brief_repr
from howsure.core.convert import check_whole
from howsure.core.errors import InputError
from howsure.core.files import check_outputs, new_folders, replacing
from howsure.core.progress import report_progress
from howsure.core.text import CountedNote
from howsure.core.threads import one_thread
from howsure.inputs.building import Crossing
from howsure.inputs.files import TEXT_ENDINGS, table_form
from howsure.inputs.new import NewRows, as_types, gap_notes, number_types
from howsure.inputs.new_parts import (
    NewBatch,
    NewFile,
    NewReading,
    parts_of,
    skipped_of,
    targets,
)
from howsure.inputs.pieces import BATCH_ROWS
from howsure.inputs.places import listed_skipped
from howsure.inputs.roles import Columns
from howsure.inputs.source import listed
from howsure.inputs.tables import Missing, NoneKeptError
from howsure.inputs.write import appending
from howsure.recalibration import Mend
from howsure.recalibration.base import kinds_of
from howsure.recalibration.kept import TaughtScale
from howsure.report.recalibrate import Recalibration, lines_of, recalibrate_tables

_MOST_NOTES: Final = 20


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class RecalibratedFiles:
    """Files of new rows with recalibrated predictions, and how they came about.

    Attributes
    ----------
    files : tuple of Path
        What was written.
    n : int
        Rows in all.
    served : int
        Those with a recalibrated prediction.
    mend : Mend
        What was learnt: it can be saved, and applied to other rows.
    labelled : bool
        Whether the first rows have y, so that the result can be assessed.
    notes : tuple of str
        What the reader must know.
    """

    files: tuple[Path, ...]
    n: int
    served: int
    mend: Mend
    labelled: bool
    notes: tuple[str, ...] = ()

    __repr__ = brief_repr

    def lines(self) -> tuple[str, ...]:
        """What was done, in words: why, how, what it guarantees, and what else to know."""
        return lines_of(self.mend, self.notes)

    def __str__(self) -> str:
        return "\n".join((*self.lines(), f"{self.served:,} rows recalibrated."))


def recalibrate_files(
    new: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    calibration: Any,
    output: str | os.PathLike[str],
    *,
    method: str | None = None,
    by: str | Sequence[str] | None = None,
    since: Any = None,
    coverage: float | None = None,
    too_few: TooFew = "infinite",
    rank: RankRule = "conformal",
    delta: float = DELTA,
    levels: npt.ArrayLike | None = None,
    seed: int = 0,
    missing: Missing = "error",
    crossing: Crossing = "error",
    encoding: str | None = None,
    decimal: str = ".",
    csv_safe: bool = False,
    batch_rows: int = BATCH_ROWS,
    **columns: Any,
) -> RecalibratedFiles:
    """Correct predictions in files of any size, some rows at a time, and write them.

    What is written is what `howsure.recalibrate` gives of all rows at once. All files appear when
    the last row is done; an error leaves none.

    Parameters
    ----------
    new : path, or sequence of paths
        Files of one model's predictions; also a folder, or a pattern such as ``preds/*.parquet``.
    calibration
        As in `howsure.recalibrate`.
    output : path
        One file for all rows; or a folder, there or with no ending, for a file of the same name
        for each of several.
    method, by, since, coverage, too_few, rank, delta, levels, seed
        As in `howsure.recalibrate`.
    missing, crossing, encoding, decimal
        As in `howsure.recalibrate`.
    csv_safe : bool
        As in `howsure.inputs.write_table`.
    batch_rows : int
        Rows that are held at once.
    **columns
        Columns of both tables by role, as in `howsure.load`.

    Returns
    -------
    RecalibratedFiles
        ``print`` tells what was done; ``.mend.save`` keeps what was learnt.

    Raises
    ------
    InputError
        If an argument or a file breaks its rule, and the message names it; or if a method that
        needs all rows at once is to serve several files.

    Examples
    --------
    >>> import tempfile
    >>> from howsure.inputs import open_table, write_table
    >>> folder = Path(tempfile.mkdtemp())
    >>> held_out = {"y": [-2.0, 2.0] * 50, "mean": [0.0] * 100, "sd": [1.0] * 100}
    >>> write_table({"mean": [5.0, 6.0], "sd": [1.0, 2.0]}, folder / "new.csv")
    >>> done = recalibrate_files(folder / "new.csv", held_out, folder / "out.parquet")
    >>> done.served
    2
    >>> open_table(folder / "out.parquet").names
    ('mean', 'sd', 'recalibrated_mean', 'recalibrated_sd')
    """
    if coverage is not None and columns.get("lower"):
        columns["coverage"] = coverage
    given: Any = columns
    return recalibrate_parts(
        new,
        calibration,
        Path(output),
        given,
        reading={
            "missing": missing,
            "crossing": crossing,
            "encoding": encoding,
            "decimal": decimal,
        },
        csv_safe=csv_safe,
        batch_rows=batch_rows,
        method=method,
        by=by,
        since=since,
        coverage=coverage,
        too_few=too_few,
        rank=rank,
        delta=delta,
        levels=levels,
        seed=seed,
    )


@one_thread()
def recalibrate_parts(
    new: Any,
    calibration: Any,
    output: Path,
    columns: Columns,
    *,
    reading: Mapping[str, Any],
    csv_safe: bool = False,
    batch_rows: int = BATCH_ROWS,
    **options: Any,
) -> RecalibratedFiles:
    """Do the work of `recalibrate_files`; `options` go to `recalibrate_tables`."""
    check_whole(batch_rows, "batch_rows", 1)
    parts = parts_of(new)
    plan = targets(parts, output)
    alone = output not in plan
    _check_plan(plan, parts, calibration, alone=alone)
    first = _first(parts, calibration, columns, reading, batch_rows, options)
    mend = first.mend
    skipped = skipped_of(new)
    beside = (f"not read: {listed_skipped(skipped)}",) if skipped else ()
    if not mend.by_rows:
        whole = _whole(parts, plan, first, columns, reading, csv_safe=csv_safe)
        return replace(whole, notes=(*whole.notes, *beside))
    needs = {"by": mend.by, "like": mend.features, "vectors": mend.embedding}
    work = _Work(
        first=first,
        reading=NewReading(needs=needs, columns=columns, options=reading, rows=batch_rows),
        total=_total(parts),
    )
    with ExitStack() as stack:
        if alone:
            stack.enter_context(new_folders(path.parent for path in plan))
        for target, held in plan.items():
            temporary = stack.enter_context(replacing(target))
            work.write(held, target, temporary, alone=alone, csv_safe=csv_safe)
    return RecalibratedFiles(
        files=tuple(plan),
        n=work.n,
        served=work.served,
        mend=mend,
        labelled=first.rows.labelled,
        notes=(*work.notes(), *beside),
    )


def _check_plan(
    plan: Mapping[Path, Sequence[NewFile]], parts: Sequence[NewFile], other: Any, *, alone: bool
) -> None:
    """Refuse outputs that cannot be written, or that would replace what is read, before work."""
    read = {os.path.realpath(part.path): Path(part.path) for part in parts}
    if isinstance(other, str | os.PathLike):
        read[os.path.realpath(other)] = Path(other)
    for path in plan:
        taken = read.get(os.path.realpath(path))
        if taken is not None:
            check_outputs([path], [taken])
    for folder, path in {path.parent: path for path in plan}.items():
        if folder.is_dir() or not alone:  # others are made, each for its files
            check_outputs([path])


def _first(
    parts: Sequence[NewFile],
    calibration: Any,
    columns: Columns,
    reading: Mapping[str, Any],
    rows: int,
    options: Mapping[str, Any],
) -> Recalibration:
    """The first batch with a prediction, recalibrated by what it takes to serve all."""
    look = NewReading(needs={}, columns=columns, options=reading, rows=rows)
    refused: NoneKeptError | None = None
    for part in parts:
        for batch in look.batches(part):
            report_progress("learning")
            try:
                look.rows_of(batch)  # which counts rows from the start of the file
                return recalibrate_tables(batch, calibration, columns, reading=reading, **options)
            except NoneKeptError as error:
                refused = error
    assert refused is not None
    raise refused


def _whole(
    parts: Sequence[NewFile],
    plan: Mapping[Path, Sequence[NewFile]],
    first: Recalibration,
    columns: Columns,
    reading: Mapping[str, Any],
    *,
    csv_safe: bool,
) -> RecalibratedFiles:
    """One file served at once, by what was learnt."""
    held = ", ".join(one.method for one in first.recalibrators if not one.by_rows)
    why = f"method {held!r} gives rows of equal content draws of their own"
    if len(parts) > 1:
        raise InputError(f"{why}, so new rows must be in one file, got {len(parts):,} files")
    if parts[0].place.remote:
        raise InputError(f"{why}, so new rows must be in a file at hand, got {parts[0].path}")
    (target,) = plan
    done = recalibrate_tables(
        parts[0].path,
        first.mend,
        columns,
        method=None,
        by=None,
        since=None,
        seed=0,
        reading=reading,
    )
    done.save(target, csv_safe=csv_safe)
    notes = (*_lasting(first), *done.notes, f"All rows were held at once, as {why}.")
    return RecalibratedFiles(
        files=(target,),
        n=done.rows.n,
        served=done.evalset.n,
        mend=first.mend,
        labelled=done.rows.labelled,
        notes=tuple(dict.fromkeys(notes)),
    )


def _lasting(first: Recalibration) -> list[str]:
    """Notes on the fit: those that hold whatever rows it serves."""
    rows = first.rows
    passing = {*rows.notes, *first.mend.apply(rows.evalset).notes}
    return [note for note in first.notes if note not in passing]


def _total(parts: Sequence[NewFile]) -> int:
    """Rows of all parts; 0 where some do not tell."""
    found = [part.rows for part in parts]
    return sum(found) if all(found) else 0


@final
@dataclass(slots=True, kw_only=True)
class _Work:
    """Rows served one batch after the other, and what is to be told of them."""

    first: Recalibration
    reading: NewReading
    total: int
    n: int = 0
    served: int = 0
    gaps: dict[str, int] = field(default_factory=dict)
    told: list[tuple[str, ...]] = field(default_factory=list)
    scales: list[TaughtScale] = field(default_factory=list)
    kinds: tuple[str, ...] = ()

    def write(
        self,
        parts: Sequence[NewFile],
        target: Path,
        temporary: Path,
        *,
        alone: bool,
        csv_safe: bool,
    ) -> None:
        """Serve the rows of some parts into one file.

        What folders say of a part is a column of the file, unless the file stands `alone` for its
        part, in a folder of the same name.
        """
        form = table_form(target)
        text = all(part.is_text for part in parts)
        as_text = text and form[0] in TEXT_ENDINGS
        mark = self.reading.options["decimal"] if as_text else "."
        types = self._types(parts) if text and not as_text else {}
        with appending(temporary, form, csv_safe=csv_safe, bare=as_text, decimal=mark) as append:
            schema: pa.Schema | None = None
            for part in parts:
                for batch, table in self._tables(part):
                    made = as_types(table, types, self.reading.options["decimal"])
                    made = made.drop_columns(batch.told) if alone else made
                    schema = schema or made.schema
                    append(_as(made, schema, part, parts[0]))

    def notes(self) -> tuple[str, ...]:
        """What the reader must know of all rows."""
        found = [
            *_lasting(self.first),
            *gap_notes(self.served, self.n, self.gaps),
            *self.first.mend.notes_on(self.kinds, TaughtScale.among(self.scales)),
            *self._fit_notes,
            *summed(self.told),
        ]
        return tuple(dict.fromkeys(found))

    @property
    def _fit_notes(self) -> tuple[str, ...]:
        """Notes on what was learnt, whose numbers are of calibration rows."""
        return tuple(note for one in self.first.recalibrators for note in one.notes)

    def _types(self, parts: Sequence[NewFile]) -> dict[int, pa.DataType]:
        """The columns of text files that are numbers in all of them, the new ones among them."""
        report_progress("looking at columns of text")
        found = (batch.whole() for part in parts for batch in self.reading.batches(part))
        types = number_types(found, self.reading.options["decimal"])
        width = len(next(self.reading.batches(parts[0])).names)
        for place, values in enumerate(self.first.predictions.values()):
            if values.dtype != object:
                types[width + place] = pa.float64()
        return types

    def _tables(self, part: NewFile) -> Iterator[tuple[NewBatch, pa.Table]]:
        """The rows of a part, as they are and recalibrated."""
        for batch in self.reading.batches(part):
            gaps: Mapping[str, int]
            try:
                rows = self.reading.rows_of(batch)
                table, gaps = self._recalibrated(rows), rows.gaps
                self.served += rows.evalset.n
            except NoneKeptError as error:
                table, gaps = self._without(batch), error.gaps
            self.n += batch.n
            for name, gone in gaps.items():
                self.gaps[name] = self.gaps.get(name, 0) + gone
            report_progress("recalibrating rows", self.n, self.total)
            yield batch, table

    def _recalibrated(self, rows: NewRows) -> pa.Table:
        mend = self.first.mend
        done = mend.apply(rows.evalset, ())
        self.told.append((*rows.notes, *(n for n in done.notes if n not in self._fit_notes)))
        self.scales += TaughtScale.of(rows.evalset)
        self.kinds = kinds_of(rows.evalset)
        return Recalibration(
            rows=rows, evalset=done.evalset, mend=mend, prefix=self.first.prefix
        ).whole()

    def _without(self, batch: NewBatch) -> pa.Table:
        """Rows of which none has a prediction, beside empty cells."""
        made = self.first.whole().schema
        table = batch.whole()
        for place in range(len(made) - len(self.first.predictions), len(made)):
            added = made.field(place)
            table = table.append_column(added.name, pa.nulls(len(table), added.type))
        return table


def _as(table: pa.Table, schema: pa.Schema, part: NewFile, first: NewFile) -> pa.Table:
    """The table with the columns of another, in their order."""
    if table.schema.equals(schema):
        return table
    lacking = [name for name in schema.names if name not in table.column_names]
    more = [name for name in table.column_names if name not in schema.names]
    if lacking or more:
        said = [
            f"{what} {listed(names)}"
            for what, names in (("without", lacking), ("with", more))
            if names
        ]
        raise InputError(
            f"{part.path} must have the columns of {first.path} to stand in one file with it, got "
            f"columns {' and '.join(said)}; a folder as output has a file for each"
        )
    made = table.select(schema.names)
    try:
        unlike = [
            f"{wanted.name!r} of {held.type}, not {wanted.type}"
            for held, wanted in zip(made.schema, schema, strict=True)
            if _family(held.type) not in (_family(wanted.type), "nothing")
        ]
        if unlike:
            raise pa.ArrowInvalid(", ".join(unlike))
        return made.cast(schema)
    except pa.ArrowInvalid as error:
        raise InputError(
            f"{part.path} must have columns of the types that those of {first.path} have, to stand "
            f"in one file with it, got {error}"
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


def summed(notes: Iterable[Iterable[str]]) -> list[str]:
    """Notes on parts as notes on the whole: those that count add up."""
    plain: dict[str, None] = {}
    counted: dict[tuple[str, str], CountedNote] = {}
    for note in (note for each in notes for note in each):
        if isinstance(note, CountedNote):
            key = note.one, note.rest
            counted[key] = counted[key].plus(note.number) if key in counted else note
        else:
            plain[note] = None
    every = [*plain, *counted.values()]
    if len(every) <= _MOST_NOTES:
        return every
    return [*every[:_MOST_NOTES], f"{len(every) - _MOST_NOTES} more notes are left out."]
