"""Predictions of new rows, recalibrated by a held-out table: learn from one, apply to the other."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, final, overload

import numpy as np

from howsure.conformal.ranks import DELTA
from howsure.core.classes import frozen
from howsure.core.convert import check_whole
from howsure.core.errors import InputError, within
from howsure.core.files import check_outputs
from howsure.core.progress import report_progress
from howsure.core.registry import unknown
from howsure.core.text import quoted
from howsure.core.threads import one_thread
from howsure.inputs import Loaded
from howsure.inputs.batches import BATCH_ROWS
from howsure.inputs.classes import set_coverage
from howsure.inputs.columns import RECALIBRATED
from howsure.inputs.files import table_form
from howsure.inputs.matching import NoneKeptError
from howsure.inputs.names import normal_form
from howsure.inputs.new import (
    NewFile,
    NewReading,
    NewRows,
    new_files,
    skipped_of,
    targets,
)
from howsure.inputs.places import listed_skipped
from howsure.inputs.roles import ROLES, Columns
from howsure.inputs.source import listed, no_column
from howsure.inputs.sources import HUGE_ROWS, is_huge, sources
from howsure.predictions import EvalSet, Intervals, LabelSets, Probabilities
from howsure.recalibration import FittedRecalibration
from howsure.recalibration.dispatch import (
    BEST,
    METHODS,
    fit_methods,
    method_names,
    methods_of,
    suited,
)
from howsure.recalibration.group import ease_column
from howsure.recalibration.recent import since_rows
from howsure.recalibration.serialization import TaughtScale
from howsure.recalibration.sets import without_probabilities
from howsure.report.apply import (
    Account,
    Application,
    RecalibratedFiles,
    Recalibration,
    write_files,
)
from howsure.report.coercion import columns_of
from howsure.report.table import split_roles
from howsure.streaming.load import Large, load_parts

if TYPE_CHECKING:
    from howsure.verdict import Advice

NO_HELP = "No recalibration gave a significant improvement."
UNCHANGED = "The predictions are unchanged."
_OF_METHODS = ("coverage", "too_few", "rank", "delta", "levels", "bins", "penalty")
_DEFAULTS: Final[dict[str, Any]] = {"too_few": "infinite", "rank": "conformal", "delta": DELTA}


@final
@frozen(kw_only=True)
class HeldOut:
    """Calibration rows, all of them or some of too many, and what to know of them."""

    rows: EvalSet  # the rows to learn from
    vectors: tuple[str, ...] = ()  # the columns of their embedding
    notes: tuple[str, ...] = ()  # what the reader must know of how they were read
    # what goes with the fit wherever it is kept, such as `fitted_on` tells
    facts: tuple[str, ...] = ()

    def unfitted(self, rows: EvalSet, method: str, by: tuple[str, ...]) -> FittedRecalibration:
        """What new rows must have beside their predictions for a method that these rows teach."""
        needs = METHODS[method].needs if method in METHODS else ""
        features: dict[str, Literal["number", "label"]] = {}
        if needs == "ease":
            features = {ease_column(rows): "number"}
        if needs == "inputs":
            features = {
                name: "number" if values.dtype.kind in "biuf" else "label"
                for name, values in rows.features.items()
            }
        return FittedRecalibration(
            by=(by or tuple(rows.groups)) if needs == "groups" else (),
            features=features,
            embedding=self.vectors if needs == "inputs" and not features else (),
            scales=TaughtScale.of(rows),
            facts=self.facts,
        )


def fitted_on(rows: int, of: int) -> tuple[str, ...]:
    """What to say where some of all calibration rows teach; nothing where all do."""
    return (f"Fitted on {rows:,} of {of:,} calibration rows.",) if rows < of else ()


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
    seed: int = 0,
    output: str | os.PathLike[str] | None = None,
    csv_safe: bool = False,
    batch_rows: int | None = None,
    large: Large | None = None,
    **options: Any,
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
    seed : int
        Fixes the folds of ``best``, and all draws of a method.
    output : path, optional
        Where to write the rows: one file for all rows; or a folder (existing, or a path without an
        ending), for one file of the same name per input file. Several files, and one too large for
        memory, are written in batches, which do not change the result. All files appear when the
        last row is done; after an error there are none.
    csv_safe : bool
        As in `howsure.inputs.write_table`.
    batch_rows : int, optional
        Rows per batch; a file of any size is then written in batches.
    large : Large, optional
        Memory, processes, a cluster, for the calibration rows, and for new rows written to
        `output`.
    **options
        Options of the method, as in `howsure.recalibration.recalibrate`: `coverage` (the nominal
        one to reach), `too_few`, `rank`, `delta`, `levels`, `bins`, `penalty`. And roles of both
        tables, as in `howsure.Table`. With ``missing="drop"``, new rows without a prediction stay
        in the table, without a recalibrated one.

    Returns
    -------
    Recalibration or RecalibratedFiles
        ``print`` shows what was done; ``.table`` has every column of `new` and the recalibrated
        ones, ``.predictions`` the latter; ``.fitted.save`` saves the fit. With `output`,
        ``.files`` lists the files, and ``.in_memory`` has the rows if they were read at once.

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
    return learn_and_apply(
        new,
        calibration,
        options,
        output,
        large=large or Large(),
        csv_safe=csv_safe,
        batch_rows=batch_rows,
        method=method,
        by=by,
        since=since,
        seed=seed,
    )


@one_thread()
def learn_and_apply(
    new: Any,
    calibration: Any,
    options: dict[str, Any],
    output: str | os.PathLike[str] | None,
    *,
    large: Large,
    csv_safe: bool,
    batch_rows: int | None,
    alone: bool = False,
    **choices: Any,
) -> Recalibration | RecalibratedFiles:
    """Do the work of `recalibrate`, whose arguments these are.

    With `alone` only the kind of prediction that suits the method is kept, and new columns have
    plain names where those are free.
    """
    choices |= {name: options.pop(name) for name in _OF_METHODS if name in options}
    if options.get("lower") and choices.get("coverage") is not None:
        options["coverage"] = choices["coverage"]
    new, calibration, reading, columns = split_roles(new, calibration, options)
    if alone:  # what is asked for, and not what the table has
        columns.pop("coverage", None)
        columns |= {"coverage": choices["coverage"]} if columns.get("label_set") else {}
    if (
        columns
        and isinstance(new, EvalSet)
        and isinstance(calibration, EvalSet | FittedRecalibration)
    ):
        raise InputError(f"columns apply only to tables, got {', '.join(columns)} with EvalSets")
    check_whole(batch_rows or 1, "batch_rows", 1)
    plan: dict[Path, list[NewFile]] = {}
    if given_fit(calibration) is None:
        groups = names_of(choices.get("by", ()))
        check_method(choices.get("method") or ("group" if groups else None), groups)
    if output is not None:
        if Path(output).suffix and not Path(output).is_dir():
            table_form(output)  # before any table is looked for
        plan = _plan_files(new, Path(output), calibration, reading, large.piece_rows)
    files = [file for joined in plan.values() for file in joined]
    lesson = _learn(calibration, columns, reading, large, alone=alone, **choices)
    single = isinstance(new, str | os.PathLike) and len(files) == 1 and not batch_rows
    in_batches = bool(files) and (not single or is_huge(new, large.rows))
    how = _reading(lesson.fitted, columns, reading, batch_rows or BATCH_ROWS)
    rows = _first_rows(files, how) if in_batches else _rows(new, how)
    if lesson.rows is not None:
        _check_names(rows)
    method = lesson.method or "" if alone else ""
    has_intervals = any(
        isinstance(prediction, Intervals) for prediction in rows.evalset.predictions
    )
    fitted, notes = lesson.fit(suited(rows.evalset, method) if method else rows.evalset)
    application = Application(
        fitted=fitted,
        reading=how,
        method=method,
        prefix="" if alone and not has_intervals else RECALIBRATED,
    )
    first = application.recalibrated(rows)
    if in_batches and not fitted.by_rows:
        why = _check_one_file(files, fitted)
        notes.append(f"All rows were read at once, because {why}.")
        first, in_batches = application.recalibrated(_rows(files[0].path, how)), False
    if in_batches:
        account = write_files(
            application, plan, first, output, csv_safe=csv_safe, large=large, key=str(new)
        )
    else:
        account = Account.of(first)
    skipped = skipped_of(new) if plan else ()
    notes += [f"not read: {listed_skipped(skipped)}"] if skipped else []
    served = replace(first, notes=account.all_notes(first, notes))
    if not plan:
        return served
    if not in_batches:
        served.save(next(iter(plan)), csv_safe=csv_safe)
    return RecalibratedFiles(
        files=tuple(plan),
        n=account.n,
        served=account.served,
        fitted=fitted,
        labelled=first.rows.labelled,
        notes=served.notes,
        in_memory=None if in_batches else served,
    )


def _plan_files(
    new: Any, output: Path, calibration: Any, reading: Mapping[str, Any], piece_rows: int
) -> dict[Path, list[NewFile]]:
    """The files to write, and the new ones that each holds; an error where that cannot be."""
    how = {name: reading[name] for name in ("encoding", "decimal")}
    files = new_files(new, **how, piece_rows=piece_rows)
    plan = targets(files, output)
    table = [calibration] if isinstance(calibration, str | os.PathLike) else []
    read = {os.path.realpath(path): Path(path) for path in (*(f.path for f in files), *table)}
    for path in plan:
        if taken := read.get(os.path.realpath(path)):
            check_outputs([path], [taken])
    for folder, path in {path.parent: path for path in plan}.items():
        if folder.is_dir() or output in plan:  # others are made, each for its files
            check_outputs([path])
    return plan


def _check_one_file(files: Sequence[NewFile], fitted: FittedRecalibration) -> str:
    """Refuse several files, or one far away, where all rows are needed at once; else say why."""
    methods = ", ".join(fit.method for fit in fitted.recalibrators if not fit.by_rows)
    why = f"method {methods!r} draws separately for rows of equal content"
    if len(files) > 1:
        raise InputError(f"{why}, so it needs all new rows in one file, got {len(files):,} files")
    if files[0].place.remote:
        raise InputError(f"{why}, so it needs new rows in a local file, got {files[0].path}")
    return why


@final
@frozen(kw_only=True)
class _Lesson:
    """What is to be learnt; or what was, where that is given in place of rows."""

    fitted: FittedRecalibration  # what new rows must have, before any method is fitted
    rows: EvalSet | None = None  # to fit to; None where nothing is left to fit
    method: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def fit(self, like: EvalSet) -> tuple[FittedRecalibration, list[str]]:
        """What the rows teach of the kinds of prediction that others have, and notes on that."""
        if self.rows is None:
            return self.fitted, list(self.notes)
        recalibrators, notes = fit_methods(like, self.rows, self.method, **self.options)
        return replace(self.fitted, recalibrators=recalibrators), [*self.notes, *notes]


def _learn(
    calibration: Any,
    columns: Columns,
    reading: Mapping[str, Any],
    large: Large,
    *,
    alone: bool,
    method: str | None,
    by: str | Sequence[str] | None = None,
    since: Any = None,
    seed: int,
    **options: Any,
) -> _Lesson:
    """Read the calibration rows, and choose the method."""
    fit = given_fit(calibration)
    if fit is not None:
        choices = {"method": method, "by": by, "since": since, **options}
        if alone or columns.get("coverage"):  # which tells what the intervals of the rows cover
            choices["coverage"] = None
        if alone:
            choices["too_few"] = None
        names = [
            name
            for name, value in choices.items()
            if value is not None and not np.array_equal(value, _DEFAULTS.get(name, ()))
        ]
        if names:
            raise InputError(
                f"a saved recalibration allows no further options, got {', '.join(names)}"
            )
        return _Lesson(fitted=fit)
    groups = names_of(by)
    method = method or ("group" if groups else None)
    teaching = held_out(calibration, groups, columns, reading, large)
    rows, sentence = teaching.rows, ""
    if method == BEST:
        advice, step = _advised(rows if since is None else since_rows(rows, since), seed)
        method, groups, since = advice.method, advice.by, advice.since or since
        sentence = f"Applied: {step}" if method else f"{advice.sentence or NO_HELP} {UNCHANGED}"
    if alone and method is not None:
        rows = suited(rows, method)
    fitted = replace(teaching.unfitted(rows, method or "", groups), sentence=sentence)
    options |= {"since": since, "seed": seed, "by": fitted.by and groups}
    return _Lesson(
        fitted=fitted,
        rows=None if method == "" else rows,
        method=method,
        options={name: value for name, value in options.items() if value is not None},
        notes=teaching.notes,
    )


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
    rows = _rows(new, _reading(FittedRecalibration(by=tuple(by)), columns, reading))
    if not rows.labelled:
        why = "".join(f" ({note})" for note in rows.notes)
        raise InputError(f"a comparison needs y in the new rows{why}")
    counted = rows.evalset
    if counted.weights is not None:
        counted = counted.take(np.flatnonzero(counted.weights.values))
    return counted, calibration_rows


def names_of(by: str | Sequence[str] | None) -> tuple[str, ...]:
    """Names of columns, from a text with commas or a sequence."""
    names = by.split(",") if isinstance(by, str) else () if by is None else by
    if not isinstance(names, list | tuple) or not all(
        isinstance(name, str) and name.strip() for name in names
    ):
        raise InputError(f"by must be names of columns, got {by!r}")
    return tuple(dict.fromkeys(name.strip() for name in names))


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


def _reading(
    fitted: FittedRecalibration,
    columns: Columns,
    reading: Mapping[str, Any],
    batch_rows: int = BATCH_ROWS,
) -> NewReading:
    """How new rows are read, which must hold what the recalibration needs."""
    needs = {"by": fitted.by, "like": fitted.features, "vectors": fitted.embedding}
    return NewReading(needs=needs, columns=columns, options=reading, rows=batch_rows)


def _rows(source: Any, reading: NewReading) -> NewRows:
    """All new rows of a table, and y where it is known."""
    if isinstance(source, Loaded):
        source = _only(source, "new")
    if not isinstance(source, EvalSet):
        return reading.load(source, outcomes=True)
    for needed, has in (("by", source.groups), ("like", source.features)):
        for name in reading.needs[needed]:
            if name not in has:
                raise InputError(
                    f"new needs {quoted(name)}, which the recalibration uses, got "
                    f"{listed(has) or 'none'}"
                )
    return NewRows(evalset=source, labelled=True, places=np.arange(source.n), n=source.n)


def _first_rows(files: Sequence[NewFile], reading: NewReading) -> NewRows:
    """The first batch of files that has a prediction."""
    refused: NoneKeptError | None = None
    for piece in (piece for file in files for piece in file.pieces):
        for batch in reading.batches(piece):
            report_progress("learning")
            try:
                return reading.load(batch, outcomes=True)
            except NoneKeptError as error:
                refused = error
    assert refused is not None
    raise refused


def _check_names(rows: NewRows) -> None:
    """Refuse a table with sets already, whose reader could not tell which are the new ones."""
    if rows.table is None or not any(isinstance(b, LabelSets) for b in rows.evalset.predictions):
        return
    columns_of_sets = [
        name for name in rows.table.column_names if set_coverage(normal_form(name))[0]
    ]
    if columns_of_sets:
        raise InputError(
            f"the new rows already have label sets ({listed(columns_of_sets)}): "
            "drop or rename the column"
        )


def _advised(evalset: EvalSet, seed: int) -> tuple[Advice, str]:
    """What trials advise, no method if none helps; and what that does, in words."""
    from howsure.verdict import advice

    sets = [prediction for prediction in evalset.predictions if isinstance(prediction, LabelSets)]
    if sets and sets[0].probabilities is None:
        raise without_probabilities()
    if sets and not any(isinstance(b, Probabilities) for b in evalset.predictions):
        methods = ", ".join(methods_of(LabelSets.kind))
        raise InputError(f"for label sets, method must be one of {methods}, not 'best'")
    trials = advice.try_recalibrations(evalset, seed=seed)
    return trials.advice or advice.Advice(method=""), trials.step
