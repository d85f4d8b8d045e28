"""Predictions of new rows, recalibrated by a held-out table, and what became of them."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, final, overload

import numpy as np
import numpy.typing as npt

from howsure.conformal.ranks import DELTA, RankRule
from howsure.conformal.thresholds import TooFew
from howsure.core.arrays import AnyArray
from howsure.core.classes import brief_repr, frozen
from howsure.core.errors import InputError, within
from howsure.core.records import ResultTable
from howsure.core.registry import unknown
from howsure.core.threads import one_thread
from howsure.inputs import Loaded
from howsure.inputs.classes import set_coverage
from howsure.inputs.columns import RECALIBRATED
from howsure.inputs.names import normal_form
from howsure.inputs.new import NewRows, load_new
from howsure.inputs.roles import ROLES, Columns
from howsure.inputs.source import listed, no_column, quoted
from howsure.inputs.sources import BATCH_ROWS, HUGE_ROWS, is_huge, sources
from howsure.inputs.values import typed
from howsure.predictions import EvalSet, Intervals, LabelSets
from howsure.predictions.columns import prediction_columns, to_columns
from howsure.recalibration import FittedParameter, FittedRecalibration, Recalibrated, Recalibrator
from howsure.recalibration import recalibrate as fitted_and_applied
from howsure.recalibration.dispatch import BEST, METHODS, method_names, methods_of, suited
from howsure.recalibration.group import ease_column
from howsure.recalibration.levels import DEFAULT_LEVELS
from howsure.recalibration.recent import since_rows
from howsure.recalibration.serialization import TaughtScale
from howsure.recalibration.sets import NO_PROBABILITIES, TEMPERATURE
from howsure.report.coercion import columns_of
from howsure.report.table import split_roles
from howsure.streaming.load import Large, load_parts

if TYPE_CHECKING:
    import pyarrow as pa

    from howsure.report.recalibrate_parts import RecalibratedFiles
    from howsure.verdict import Advice

NO_HELP: Final = "No recalibration gave a significant improvement."
UNCHANGED: Final = "The predictions are unchanged."
# Numbers learnt that a line can hold.
_MAX_NUMBERS: Final = 4
_SET: Final = "label_set"  # what the name of a column of label sets begins with


@final
@frozen(kw_only=True)
class HeldOut:
    """Calibration rows, all of them or some of too many, and what to know of them."""

    rows: EvalSet  # the rows to learn from
    vectors: tuple[str, ...] = ()  # the columns of their embedding
    notes: tuple[str, ...] = ()  # what the reader must know of how they were read
    # what goes with the fit wherever it is kept, such as `fitted_on` tells
    facts: tuple[str, ...] = ()

    __repr__ = brief_repr


def fitted_on(rows: int, of: int) -> tuple[str, ...]:
    """What to say where some of all calibration rows teach; nothing where all do."""
    return (f"Fitted on {rows:,} of {of:,} calibration rows.",) if rows < of else ()


class ServedRows:
    """New rows that were served, however many at a time, and what to say of that."""

    __slots__ = ()
    fitted: FittedRecalibration
    notes: tuple[str, ...]
    served: int

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
class Recalibration(ServedRows):
    """New rows with recalibrated predictions, and how they came about."""

    rows: NewRows  # the rows as they were given
    evalset: EvalSet  # those that have a prediction, with it recalibrated
    fitted: FittedRecalibration  # what was learnt: it can be saved, and applied to other rows
    notes: tuple[str, ...] = ()  # what the reader must know
    # what the names of new columns begin with, but for those of label sets
    prefix: str = RECALIBRATED

    __repr__ = brief_repr

    @property
    def predictions(self) -> dict[str, AnyArray]:
        """The new predictions by the names of their columns; NaN or None where none was given."""
        columns = prediction_columns(self.evalset)
        sets_alone = LabelSets.kind in self.methods and TEMPERATURE not in self.methods.values()
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
    def recalibrators(self) -> tuple[Recalibrator, ...]:
        """The fitted methods, one for each kind of prediction."""
        return self.fitted.recalibrators

    @property
    def methods(self) -> dict[str, str]:
        """The method used for each kind of prediction."""
        return self.fitted.methods

    @property
    def guarantees(self) -> dict[str, str]:
        """What holds in finite samples for each kind of prediction, in words."""
        return self.fitted.guarantees

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
        from howsure.inputs.files import TEXT_ENDINGS, table_form
        from howsure.inputs.write import write_table

        as_text = self.rows.is_text and table_form(path)[0] in TEXT_ENDINGS
        table = self.read_all() if as_text else self.table
        mark = self.rows.decimal if as_text else "."
        write_table(table, path, csv_safe=csv_safe, bare=as_text, decimal=mark)

    def _repr_html_(self) -> str:
        return "".join(f"<p>{escape(line)}</p>" for line in str(self).splitlines())

    def read_all(self) -> pa.Table:
        """The table with cells as they are, those of a text file as text."""
        import pyarrow as pa
        import pyarrow.compute as pc

        table = self.rows.table
        if table is None:
            from howsure.inputs.frames import MappingTable

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


@overload
def recalibrate(
    new: Any, calibration: Any, *, output: None = None, **options: Any
) -> Recalibration: ...


@overload
def recalibrate(
    new: Any, calibration: Any, *, output: str | os.PathLike[str], **options: Any
) -> RecalibratedFiles: ...


def recalibrate(
    new: Any,
    calibration: Any,
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
    output: str | os.PathLike[str] | None = None,
    csv_safe: bool = False,
    batch_rows: int = BATCH_ROWS,
    large: Large | None = None,
    **columns: Any,
) -> Recalibration | RecalibratedFiles:
    """Recalibrate predictions of new rows with held-out data. It does not use y of new rows.

    Parameters
    ----------
    new : path, sequence of paths, data frame, mapping of arrays, or EvalSet
        Predictions of one model, for rows with or without y. A path may be a folder, or a pattern
        such as ``preds/*.parquet``; several paths belong to one model.
    calibration : path, data frame, mapping of arrays, EvalSet, or FittedRecalibration
        Rows held out from training, with y and the same kinds of prediction by the same model.
        Or a saved fit: a `FittedRecalibration`, or its .json file.
    method : str, optional
        As in `howsure.recalibration.recalibrate`; ``best`` tries every method on folds of the
        calibration rows, and uses the one with a significant gain, or none.
    by : str or sequence of str, optional
        Columns of groups; the method is then ``group`` if omitted.
    since : number, date or str, optional
        First time of the calibration rows to use.
    coverage : float, optional
        Nominal coverage to reach.
    too_few, rank, delta, levels
        As in `howsure.recalibration.recalibrate`.
    seed : int
        Fixes the folds of ``best``, and all draws of a method.
    output : path, optional
        Where to write the rows, in batches, so that files of any size fit in memory: one file for
        all rows; or a folder (existing, or a path without an ending), for one file of the same name
        per input file. Batches do not change the result. All files appear when the last row is
        done; after an error there are none.
    csv_safe : bool
        As in `howsure.inputs.write_table`.
    batch_rows : int
        Rows per batch.
    large : Large, optional
        Memory, processes, a cluster, for the calibration rows, and for new rows written to
        `output`.
    **columns
        Roles of both tables, as in `howsure.Table`. With ``missing="drop"``, new rows without a
        prediction stay in the table, without a recalibrated one.

    Returns
    -------
    Recalibration or RecalibratedFiles
        ``print`` shows what was done; ``.table`` has every column of `new` and the recalibrated
        ones, ``.predictions`` the latter; ``.fitted.save`` saves the fit. With `output`,
        ``.files`` lists the files, and no rows stay in memory.

    Raises
    ------
    InputError
        If an argument or a table is invalid; the message names it. Or if a method that needs all
        rows at once is applied to several files.

    Examples
    --------
    >>> held_out = {"y": [-2.0, 2.0] * 50, "mean": [0.0] * 100, "sd": [1.0] * 100}
    >>> new = {"id": ["007", "008"], "mean": [5.0, 6.0], "sd": [1.0, 2.0]}
    >>> found = recalibrate(new, held_out, method="scale")
    >>> found.table.column_names
    ['id', 'mean', 'sd', 'recalibrated_mean', 'recalibrated_sd']
    >>> found.predictions["recalibrated_sd"]
    array([2., 4.])

    Files, written in batches of rows:

    >>> import tempfile
    >>> from howsure.inputs import open_table, write_table
    >>> folder = Path(tempfile.mkdtemp())
    >>> write_table(new, folder / "new.csv")
    >>> done = recalibrate(folder / "new.csv", held_out, output=folder / "out.parquet")
    >>> done.served
    2
    >>> open_table(folder / "out.parquet").names
    ('id', 'mean', 'sd', 'recalibrated_mean', 'recalibrated_sd')
    """
    if coverage is not None and columns.get("lower"):
        columns["coverage"] = coverage
    new, calibration, reading, roles = split_roles(new, calibration, columns)
    return served(
        output,
        new,
        calibration,
        roles,
        method=method,
        by=by,
        since=since,
        coverage=coverage,
        too_few=too_few,
        rank=rank,
        delta=delta,
        levels=levels,
        seed=seed,
        reading=reading,
        large=large,
        csv_safe=csv_safe,
        batch_rows=batch_rows,
    )


def served(
    output: str | os.PathLike[str] | None,
    new: Any,
    calibration: Any,
    columns: Columns,
    *,
    csv_safe: bool = False,
    batch_rows: int = BATCH_ROWS,
    **options: Any,
) -> Recalibration | RecalibratedFiles:
    """All rows at once; or with an output some at a time."""
    if output is None:
        return recalibrate_tables(new, calibration, columns, **options)
    from howsure.report.recalibrate_parts import recalibrated_files

    return recalibrated_files(
        new,
        calibration,
        output,
        columns,
        csv_safe=csv_safe,
        batch_rows=batch_rows,
        **options,
    )


@one_thread()
def recalibrate_tables(
    new: Any,
    calibration: Any,
    columns: Columns,
    *,
    reading: Mapping[str, Any],
    method: str | None = None,
    by: str | Sequence[str] | None = None,
    since: Any = None,
    seed: int = 0,
    large: Large | None = None,
    alone: bool = False,
    **options: Any,
) -> Recalibration:
    """Do the work of `recalibrate`, whose arguments these are; `columns` are roles of both.

    With `alone` only the kind of prediction that suits the method is kept, and new columns have
    plain names where those are free.
    """
    if (
        columns
        and isinstance(new, EvalSet)
        and isinstance(calibration, EvalSet | FittedRecalibration)
    ):
        raise InputError(f"columns apply only to tables, got {', '.join(columns)} with EvalSets")
    fit = given_fit(calibration)
    groups = names_of(by)
    if fit is not None:
        choices = {"method": method, "by": by, "since": since, **options}
        if columns.get("coverage"):  # which tells what the intervals of the rows cover
            choices["coverage"] = None
        names = [
            name
            for name, value in choices.items()
            if value is not None and value != () and value != _DEFAULTS.get(name)
        ]
        if names:
            raise InputError(
                f"a saved recalibration allows no further options, got {', '.join(names)}"
            )
        rows = _rows(new, fit, columns, reading)
        done = fit.apply(rows.evalset)
        return Recalibration(
            rows=rows,
            evalset=done.evalset,
            fitted=fit,
            notes=(*rows.notes, *done.notes),
            prefix=_prefix(rows, alone=alone),
        )
    method = method or ("group" if groups else None)
    check_method(method, groups)
    teaching = held_out(calibration, groups, columns, reading, large)
    calibration_rows = teaching.rows
    sentence = ""
    if method == BEST:
        advice, step = _advised(
            calibration_rows if since is None else since_rows(calibration_rows, since), seed
        )
        method, groups, since = advice.method, advice.by, advice.since or since
        sentence = f"Applied: {step}" if method else f"{advice.sentence or NO_HELP} {UNCHANGED}"
    if alone and method is not None:
        calibration_rows = suited(calibration_rows, method)
    needs = METHODS[method].needs if method and method in METHODS else ""
    fitted = replace(
        unfitted(calibration_rows, method or "", groups),
        scales=TaughtScale.of(calibration_rows),
        sentence=sentence,
        facts=teaching.facts,
    )
    if (
        needs == "inputs"
        and not calibration_rows.features
        and not isinstance(new, EvalSet | Loaded)
    ):
        if calibration_rows.embedding is not None and not teaching.vectors:
            raise InputError("method 'inputs' needs features, or columns of the embedding")
        fitted = replace(fitted, embedding=teaching.vectors)
    rows = _rows(new, fitted, columns, reading)
    prefix = _prefix(rows, alone=alone)
    if alone and method is not None:
        rows = replace(rows, evalset=suited(rows.evalset, method))
    _check_names(rows, method)
    if method == "":
        done = fitted.apply(rows.evalset)
    else:
        if options.get("levels") is None:
            options["levels"] = DEFAULT_LEVELS
        if groups and needs == "groups":
            options["by"] = groups
        if since is not None:
            options["since"] = since
        done = fitted_and_applied(
            rows.evalset, calibration_rows, method=method, seed=seed, **options
        )
        fitted = replace(fitted, recalibrators=done.recalibrators)
    notes = (*teaching.notes, *rows.notes, *fitted.notes(rows.evalset), *done.notes)
    return Recalibration(
        rows=rows,
        evalset=done.evalset,
        fitted=fitted,
        notes=tuple(dict.fromkeys(notes)),
        prefix=prefix,
    )


def unfitted(evalset: EvalSet, method: str, by: tuple[str, ...]) -> FittedRecalibration:
    """What new rows must hold beside their predictions for a method that these rows teach."""
    needs = METHODS[method].needs if method in METHODS else ""
    if needs == "groups":
        return FittedRecalibration(by=by or tuple(evalset.groups))
    if needs == "ease":
        return FittedRecalibration(features={ease_column(evalset): "number"})
    if needs == "inputs":
        return FittedRecalibration(
            features={
                name: "number" if values.dtype.kind in "biuf" else "label"
                for name, values in evalset.features.items()
            }
        )
    return FittedRecalibration()


def rows_to_compare(
    new: Any,
    calibration: Any,
    by: Sequence[str],
    since: Any,
    columns: Columns,
    reading: Mapping[str, Any],
    large: Large | None = None,
) -> tuple[EvalSet, EvalSet]:
    """Rows to judge ways to recalibrate by, whose y must be known, and those to learn from."""
    calibration_rows = held_out(calibration, by, columns, reading, large).rows
    calibration_rows = calibration_rows if since is None else since_rows(calibration_rows, since)
    rows = _rows(new, FittedRecalibration(by=tuple(by)), columns, reading)
    if not rows.labelled:
        why = "".join(f" ({note})" for note in rows.notes)
        raise InputError(f"a comparison needs y in the new rows{why}")
    counted = rows.evalset
    if counted.weights is not None:
        counted = counted.take(np.flatnonzero(counted.weights.values))
    return counted, calibration_rows


_DEFAULTS: Final = {"too_few": "infinite", "rank": "conformal", "delta": DELTA}


def names_of(by: str | Sequence[str] | None) -> tuple[str, ...]:
    """Names of columns, from a text with commas or a sequence."""
    if by is None:
        return ()
    columns = by.split(",") if isinstance(by, str) else by
    if not isinstance(columns, list | tuple) or not all(isinstance(name, str) for name in columns):
        raise InputError(f"by must be names of columns, got {by!r}")
    names = tuple(dict.fromkeys(name.strip() for name in columns))
    if not all(names):
        raise InputError(f"by must be names of columns, got {by!r}")
    return names


def check_method(method: str | None, by: Sequence[str]) -> None:
    """Refuse a method that is unknown, or groups that it does not take."""
    allowed = [BEST, *method_names()]
    if method is not None and method not in allowed:
        raise InputError(unknown(method, allowed, "method"))
    if by and method not in ("group", BEST):
        raise InputError(f"by needs the method group or best, got {method!r}")


def given_fit(calibration: Any) -> FittedRecalibration | None:
    """What was learnt once, where that is given in place of a table."""
    if isinstance(calibration, FittedRecalibration):
        return calibration
    if isinstance(calibration, str | os.PathLike) and Path(calibration).suffix.lower() == ".json":
        return FittedRecalibration.load(calibration)
    return None


def held_out(
    source: Any,
    by: Sequence[str],
    columns: Columns,
    reading: Mapping[str, Any],
    large: Large | None = None,
) -> HeldOut:
    """The calibration rows, and what to know of them."""
    if isinstance(source, EvalSet):
        source = HeldOut(rows=source)
    if isinstance(source, HeldOut):
        _check_groups(source.rows, by)
        return source
    if not isinstance(source, Loaded):
        if by:
            if not is_huge(source, HUGE_ROWS):
                table = next(sources(source, reading["encoding"], reading["decimal"]))
                for name in by:
                    if name not in table.names:
                        raise InputError(no_column(name, table.names, "by", table.title))
            columns = {**columns, "groups": columns_of(columns.get("groups"), *by)}
        with within("calibration"):
            source = load_parts(source, large=large, **reading, **columns)
    calibration_rows = _only(source, "calibration")
    recalibrated = [
        column
        for role in ROLES
        if role.of == "prediction" and role.name in source.roles.guessed
        for column in source.roles[role.name]
        if column.startswith(RECALIBRATED)
    ]
    if recalibrated:
        raise InputError(
            "calibration contains predictions that are already recalibrated "
            f"({listed(recalibrated)}): name the columns of the model's own predictions"
        )
    _check_groups(calibration_rows, by)
    note = f"{source.dropped:,} calibration rows with missing values are omitted."
    return HeldOut(
        rows=calibration_rows,
        vectors=source.roles["embedding"],
        notes=(note,) if source.dropped else (),
        facts=fitted_on(calibration_rows.n, source.totals[0].n) if source.totals else (),
    )


def _only(loaded: Loaded, name: str) -> EvalSet:
    """The rows of the one model of a table."""
    if len(loaded.evalsets) != 1:
        models = ", ".join(evalset.model for evalset in loaded.evalsets)
        raise InputError(f"{name} must have exactly one model, got {models}")
    return loaded.evalsets[0]


def _check_groups(evalset: EvalSet, by: Sequence[str]) -> None:
    for name in by:
        if name not in evalset.groups:
            raise InputError(unknown(name, evalset.groups, "by"))


def _rows(
    source: Any, fitted: FittedRecalibration, columns: Columns, reading: Mapping[str, Any]
) -> NewRows:
    """The new rows, which must hold what the recalibration needs."""
    if isinstance(source, Loaded):
        source = _only(source, "new")
    if not isinstance(source, EvalSet):
        needs: dict[str, Any] = {
            "by": fitted.by,
            "like": fitted.features,
            "vectors": fitted.embedding,
        }
        return load_new(source, **needs, **reading, **columns)
    for needed, columns_of_rows in ((fitted.by, source.groups), (fitted.features, source.features)):
        for name in needed:
            if name not in columns_of_rows:
                raise InputError(
                    f"new needs {quoted(name)}, which the recalibration uses, got "
                    f"{listed(columns_of_rows) or 'none'}"
                )
    return NewRows(evalset=source, labelled=True, places=np.arange(source.n), n=source.n)


def _prefix(rows: NewRows, *, alone: bool) -> str:
    """What new columns begin with: nothing where nothing else could be taken for them."""
    has_intervals = any(
        isinstance(prediction, Intervals) for prediction in rows.evalset.predictions
    )
    return "" if alone and not has_intervals else RECALIBRATED


def _check_names(rows: NewRows, method: str | None) -> None:
    """Refuse a table with sets already, whose reader could not tell which are the new ones."""
    if rows.table is None or not any(isinstance(b, LabelSets) for b in rows.evalset.predictions):
        return
    columns_of_sets = [
        name for name in rows.table.column_names if set_coverage(normal_form(name))[0]
    ]
    if columns_of_sets and method != "":
        raise InputError(
            f"the new rows already have label sets ({listed(columns_of_sets)}): "
            "drop or rename the column"
        )


def _advised(evalset: EvalSet, seed: int) -> tuple[Advice, str]:
    """What trials advise, no method if none helps; and what that does, in words."""
    from howsure.verdict.advice import Advice, try_recalibrations

    sets = [prediction for prediction in evalset.predictions if isinstance(prediction, LabelSets)]
    if sets and sets[0].probabilities is None:
        raise InputError(NO_PROBABILITIES)
    if sets:
        methods = ", ".join(methods_of(LabelSets.kind))
        raise InputError(f"for label sets, method must be one of {methods}, not 'best'")
    trials = try_recalibrations(evalset, seed=seed)
    return trials.advice or Advice(method=""), trials.step
