"""Numbers that papers printed: one file a study's folder, ``published.csv``, of one form.

Its columns are paper, table (or figure), task, method, measure, value, sd and note. A measure at a
nominal coverage is written ``test_empirical_coverage@0.9``; a value that the paper tells in words
alone is left empty, with the words as the note.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable
from functools import cache
from importlib.resources import files
from typing import Any, final

from howsure.core.classes import frozen
from howsure.core.errors import InputError
from howsure.core.records import Key, Record
from howsure.core.registry import check_known
from howsure_studies.engine.study import Study, study_of

_COLUMNS = ("paper", "table", "task", "method", "measure", "value", "sd", "note")


@final
@frozen(kw_only=True)
class Published:
    """One printed number.

    Attributes
    ----------
    paper, table : str
        Where it stands: the paper, and its table or figure.
    task, method, measure : str
        What it is of, by the names of the study.
    value : float
        The number; NaN where the paper tells it in words alone.
    sd : float
        Its printed standard deviation; NaN where there is none.
    note : str
        What is to be known of it, such as why it is not reached.
    coverage : float
        Nominal coverage; NaN where it belongs to none.
    """

    paper: str
    table: str
    task: str
    method: str
    measure: str
    value: float
    sd: float = math.nan
    note: str = ""
    coverage: float = math.nan


@final
@frozen(kw_only=True)
class OwnNumber:
    """A number of ours that may have been published: its record, under the paper's names."""

    task: str
    method: str
    record: Record


def published(
    study: str | Study,
    *,
    table: str | None = None,
    task: str | None = None,
    method: str | None = None,
    measure: str | None = None,
    coverage: float | None = None,
) -> tuple[Published, ...]:
    """Numbers that the paper of a study printed, all or those of a table, a task and so on.

    Parameters
    ----------
    study : str or Study
        It, or its name; none are known of a study without a file ``published.csv`` in its folder.
    table, task, method, measure : str, optional
        As in `Published`.
    coverage : float, optional
        Nominal coverage.

    Returns
    -------
    tuple of Published
        In the order of the paper; empty where it has none of these.

    Raises
    ------
    InputError
        If there is no such study, table, task, method or measure.

    Examples
    --------
    >>> for row in published("shift", task="cells-tails", method="gaussian_gmm", coverage=0.9):
    ...     print(row.table, row.measure, row.value, row.sd)
    table A2 val_mae 4.05446 1.33153
    table A2 val_width 15.4321 4.98796
    table A2 test_empirical_coverage 0.889825 0.0193021
    table A2 prediction_rate 0.53654 0.0101012
    >>> published("shift", task="cell")
    Traceback (most recent call last):
    ...
    howsure.core.errors.InputError: task must be one of cells, ..., got 'cell'; near: ...
    """
    found = study_of(study) if isinstance(study, str) else study
    every = _read(type(found).__module__.rpartition(".")[0])
    wanted = {"table": table, "task": task, "method": method, "measure": measure}
    for name, value in wanted.items():
        if value is not None:
            check_known(value, dict.fromkeys(getattr(row, name) for row in every), name)
    return tuple(
        row
        for row in every
        if all(value in (None, getattr(row, name)) for name, value in wanted.items())
        and (coverage is None or abs(row.coverage - coverage) < 1e-9)
    )


@cache
def _read(package: str) -> tuple[Published, ...]:
    """Every number of a package's file; none where it has no such file."""
    file = files(package).joinpath("published.csv") if package else None
    if file is None or not file.is_file():
        return ()
    rows = csv.DictReader(file.read_text("utf-8").splitlines())
    if tuple(rows.fieldnames or ()) != _COLUMNS:
        raise InputError(
            f"published.csv of {package} must have the columns {', '.join(_COLUMNS)}, got "
            f"{', '.join(rows.fieldnames or ())}"
        )
    every: dict[tuple[Any, ...], Published] = {}
    for row in map(_published, rows):  # what a paper prints twice counts once
        every.setdefault((row.paper, *_key(row.task, row.method, row.measure, row.coverage)), row)
    return tuple(every.values())


def _published(row: dict[str, str]) -> Published:
    value, sd = (float(row.pop(name) or "nan") for name in ("value", "sd"))
    measure, _, coverage = row.pop("measure").partition("@")
    return Published(**row, measure=measure, value=value, sd=sd, coverage=float(coverage or "nan"))


def pairs(
    own: Iterable[OwnNumber], published: Iterable[Published]
) -> list[tuple[tuple[OwnNumber, ...], Published]]:
    """Each published number with ours of the same task, method, measure and coverage, if any.

    Ours are several where there are several seeds; methods that share one published name are
    pairs of their own. Names are compared without regard to case.
    """
    ours: dict[tuple[str, str, Key], dict[str, list[OwnNumber]]] = {}
    for number in own:
        record = number.record
        key = _key(number.task, number.method, record.metric, record.coverage)
        ours.setdefault(key, {}).setdefault(record.model, []).append(number)
    return [
        (tuple(numbers), printed)
        for printed in published
        for numbers in ours.get(
            _key(printed.task, printed.method, printed.measure, printed.coverage), {}
        ).values()
    ]


def _key(task: str, method: str, measure: str, coverage: float) -> tuple[str, str, Key]:
    return task.casefold(), method.casefold(), Key.of(measure, round(coverage, 9))
