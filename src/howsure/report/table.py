"""A table with the roles of its columns, or arrays with theirs: what every verb takes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any, final

import numpy as np

from howsure.core import formats
from howsure.core.arrays import as_vector
from howsure.core.errors import InputError
from howsure.core.progress import Listener
from howsure.core.registry import check_known
from howsure.inputs import ColumnUse, Loaded
from howsure.predictions import EvalSet, content_order
from howsure.predictions.columns import to_columns
from howsure.report.coercion import OF_TABLES, ROWS, is_table, opened, source_fact
from howsure.report.document import Cell, Column, Grid
from howsure.report.options import Options
from howsure.streaming import Large

if TYPE_CHECKING:
    from howsure.report.apply import RecalibratedFiles, Recalibration
    from howsure.report.assessment import Assessment
    from howsure.report.check import CheckResult
    from howsure.report.improve import Improvement
    from howsure.report.monitor import Monitored
    from howsure.topics.characteristic.curve import CharacteristicCurve

ROLES = ("y", "missing", "coverage", "levels", "common_rows", *ROWS, *OF_TABLES)
"""What may be said of a table or of arrays."""
# Twice the head of a data frame: enough to see a column that is read in the wrong role.
_MAX_ROWS_SHOWN = 10


@final
class Table:
    """Outcomes and predictions with their roles: a table with named columns, or arrays.

    Parameters
    ----------
    data : array-like of shape (n,), or a table, optional
        The outcomes y; for label sets with names, the label. Or a table with y and
        predictions: a path, several paths, a data frame, a mapping of columns, or a table of any
        size, which is read in parts beyond 2,000,000 rows: a folder, a pattern, a URL, a
        relation of DuckDB, a lazy frame of Polars, an iterator of batches. Then omit
        `prediction`; roles name columns.
    prediction : array-like, mapping, data frame, Prediction or frozen SciPy distribution, optional
        The predictions in any form; docs/what-goes-in.md shows every form. Lists, NumPy,
        pandas, polars and torch are accepted, and shape (n, 1) is treated as (n,).
        If shapes are ambiguous, the error names the argument to add.

        - (n,): the point forecast; with one of `levels`, a quantile.
        - (lower, upper), each (n,), or (n, 2), with `coverage`: intervals.
        - (n, 2, k), or (lower, upper), each (n, k), with k numbers as `coverage`: intervals.
        - (point, intervals), the intervals as above: both.
        - (mean, sd), each (n,), if means exceed sds in many rows: normal distributions.
        - (n, k), (k, n) or k arrays (n,), with `levels`: quantiles.
        - (n, m), (m, n), (n, 1, m) or (m, n, 1), with m of 5 or more: samples.
        - (chains, draws, n): samples, chains pooled.
        - A mapping of levels to arrays (n,): quantiles.
        - A mapping or frame of columns with recognised names, as in a table: one model.
        - Any other mapping of names to predictions: models, compared on these rows.
        - Intervals, Quantiles, Distribution, Samples, LabelSets, a tuple of them, frozen SciPy.
    **roles
        In a table, the name of a column; beside arrays, an array of shape (n,). Names of columns
        decide where nothing is said, and ``""`` leaves a role empty; docs/inputs.md lists all.

        - y : the outcome; or y itself, if `data` is omitted.
        - coverage : float or sequence of float. Nominal coverages; for bare arrays, it means that
          they are ends of intervals, at these coverages in this order.
        - levels : levels of bare arrays that are quantiles, in this order.
        - point, points, lower, upper, mean, sd, variance, quantiles, samples, law, softmax,
          label_set, quantile_level, sample_id, output_type, boundary : predictions in a table.
          `point` is also taken beside arrays, in place of a forecast in `prediction`.
        - uncertainty : a score, higher for less certain rows, such as the distance to the training
          rows. Selective prediction then ranks rows by it.
        - features : inputs of the model: columns, (n, d), a mapping or a data frame.
        - ease : ease score, or the feature with it; higher is easier. With access to the model,
          use ``ease=howsure.metrics.ease(model.predict_proba, X, 0.1)``: the stability of the
          prediction when noise of that standard deviation is added to its inputs.
        - embedding : (n, e), a numeric representation of the inputs, for congruence; by default it
          is computed from `features`.
        - encode : ``{"note": "transformers:FOLDER"}`` or "COLUMN=ENCODER": a column of texts or of
          paths of images and its encoder; see `howsure.inputs.encoders.encode`.
        - image : paths of images: the best and the worst are shown. Relative to the folder of the
          table, or to the current one.
        - groups : labels that divide the rows; several in a mapping.
        - weights, weights_kind : weights of rows; ``"frequency"`` (the default): a weight of two is
          a row twice; or ``"importance"``.
        - cluster, time : clusters of dependent rows; times of rows.
        - cutoff : the last time known when a row was predicted, in the units of `time`. Without
          `horizon`, the steps from `cutoff` to `time` are the horizon.
        - horizon : lead time of each row, in steps of time.
        - series : the series of each row, if each time occurs once per series.
        - rows : names of the rows.
        - model : name of the model, or the column of names.
        - common_rows : whether models are compared on the rows that all tables have, matched by
          `rows`.
        - missing : {"error", "drop"}, what to do with rows that have missing values.
        - missing_value : numbers that stand for missing values in a table, such as -9999.
        - crossing : {"error", "sort"}, for quantiles or ends of intervals that cross.
        - encoding, decimal : of text files.

    Raises
    ------
    InputError
        If a role is unknown; when the table is read, if anything in it breaks a rule.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> ends = {"low": np.full(500, -2.0), "high": np.full(500, 2.0)}
    >>> columns = {"sales": rng.normal(size=500), **ends}
    >>> table = Table(columns, y="sales", lower="low", upper="high", coverage=0.9)
    >>> [(use.column, use.role) for use in table.roles]
    [('sales', 'y'), ('low', 'lower end at 90 %'), ('high', 'upper end at 90 %')]
    >>> table.assess().value("PICP")
    0.96
    """

    def __init__(self, data: Any = None, prediction: Any = None, **roles: Any) -> None:
        for name in roles:
            check_known(name, ROLES, "a role of Table")
        self.source, self.coverages = data, as_coverages(roles.pop("coverage", ()))
        self._arguments = {"prediction": prediction, **roles}
        self._read: tuple[Large | None, int, Loaded] | None = None

    def read(self, large: Large | None = None, seed: int = 0) -> Loaded:
        """Evaluation sets, read once; of a table too large for memory, a sample and its totals.

        The seed decides the sample.
        """
        if self._read is not None:
            way, seed_of_sample, loaded = self._read
            if way == large and (seed_of_sample == seed or not loaded.totals):
                return loaded
        loaded = opened(
            self.source, coverage=self.coverages, large=large, seed=seed, **self._arguments
        )
        self._read = large, seed, loaded
        return loaded

    @property
    def named_roles(self) -> dict[str, Any]:
        """The roles that were named, and how cells are read."""
        roles = {**self._arguments, "coverage": self.coverages or None}
        return {name: value for name, value in roles.items() if value is not None}

    @property
    def evalsets(self) -> tuple[EvalSet, ...]:
        """One for each model, on the same rows in the same order."""
        return self.read().evalsets

    @property
    def roles(self) -> tuple[ColumnUse, ...]:
        """How each column is read, and which are not."""
        return self.read().explanation

    @property
    def notes(self) -> tuple[str, ...]:
        """What the reader of a result should know of how the table was read."""
        return self.read().notes

    @property
    def facts(self) -> dict[str, str]:
        """What to state of the table in a report."""
        return {**source_fact(self.source), **self.read().facts}

    def assess(
        self,
        *,
        options: Options | None = None,
        large: Large | None = None,
        progress: Listener | None = None,
    ) -> Assessment:
        """As `howsure.assess`."""
        from howsure.report.assess import assess

        return assess(self, options=options, large=large, progress=progress)

    def check(self, *, seed: int = 0, large: Large | None = None, **rules: Any) -> CheckResult:
        """Judge limits and findings, as ``howsure check`` does.

        Parameters
        ----------
        seed : int
            Fixes all draws.
        large : Large, optional
            How a table too large for memory is read.
        **rules
            Limits by name, such as ``min_coverage=0.85`` or ``max_crps=2``; and keys of a file of
            limits: `limits`, `by`, `fail_on`, `findings`, `ignore`, `tolerance`, `confidence`,
            `threshold`.

        Returns
        -------
        CheckResult
            With ``.failed``; it is printed in words.

        Examples
        --------
        >>> y = np.random.default_rng(0).normal(size=500)
        >>> table = Table(y, (np.full(500, -1.0), np.full(500, 1.0)), coverage=0.9)
        >>> [str(each.limit) for each in table.check(min_coverage=0.85).failed]
        ['empirical_coverage ≥ 0.85']
        """
        from howsure.report.check import check, limits_named, rules_from

        names = [name for name in rules if name.startswith(("min_", "max_"))]
        limits = limits_named({name: rules.pop(name) for name in names})
        wanted = rules_from(rules, "check", limits)
        loaded = self.read(large, seed)
        return check(
            loaded.evalsets, wanted, coverages=self.coverages, seed=seed, totals=loaded.totals
        )

    def characteristic(self, model: str = "", *, seed: int = 0) -> CharacteristicCurve:
        """Trace the trade-off of width and misses, as ``howsure characteristic`` does.

        Parameters
        ----------
        model : str
            Name of the model, if there are several.
        seed : int
            Fixes the samples that stand for distributions without quantiles.

        Returns
        -------
        CharacteristicCurve
            Bandwidth against miss rate; ``.on(x=…, y_axis=…)`` gives other axes, ``.at(…)``
            operating points, ``.cost(…)`` the scale of least cost.

        Raises
        ------
        InputError
            If no model or several have this name.
        UnanswerableError
            If the predictions give no intervals.

        Examples
        --------
        >>> y = np.random.default_rng(0).normal(size=500)
        >>> table = Table(y, (np.full(500, -1.0), np.full(500, 1.0)), coverage=0.9)
        >>> round(table.characteristic().at(miss_rate=0.1).knob, 2)
        1.51
        """
        from howsure.engine.view import View

        evalset = self._evalset(model)
        view = View(evalset.take(content_order([evalset])), seed=seed)
        curve: CharacteristicCurve = view.get("characteristic")
        return curve

    def monitor(self, new: Any, *, seed: int = 0) -> Monitored:
        """Judge at which new rows the model can be trusted, before their y is known.

        This table is the labelled reference, as in ``howsure assess NEW --reference TABLE``.

        Parameters
        ----------
        new : table
            New rows, with the inputs of this table; y and predictions are optional.
        seed : int
            Fixes all draws.

        Returns
        -------
        Monitored
            With ``.report``, an `howsure.Assessment`, and ``.table``, a line for each row.

        Raises
        ------
        InputError
            If this table has several models or no inputs, or `new` lacks an input.

        Examples
        --------
        >>> x = np.random.default_rng(0).normal(size=200)
        >>> table = Table({"y": x, "x": x, "mean": x, "sd": np.ones(200)}, features="x")
        >>> scored = table.monitor({"x": [0.1, 9.0]})
        >>> scored.table.columns["outside"].tolist()
        [False, True]
        """
        from howsure.inputs import load_unlabelled
        from howsure.report.monitor import fit_monitor, monitored

        loaded = self.read(seed=seed)
        source = new.source if isinstance(new, Table) else new
        reading: dict[str, Any] = {
            name: self._arguments.get(name, READING[name]) for name in _OF_TEXT
        }
        monitor = fit_monitor(self._evalset(), seed=seed)
        rows = load_unlabelled(source, loaded, **reading)
        return monitored(monitor, rows, facts=source_fact(source))

    def _evalset(self, model: str = "") -> EvalSet:
        """The one of a model, which need not be named where there is one."""
        chosen = [evalset for evalset in self.evalsets if model in ("", evalset.model)]
        if len(chosen) != 1:
            names = ", ".join(repr(evalset.model) for evalset in self.evalsets)
            raise InputError(f"model must name one of {names}, got {model!r}")
        return chosen[0]

    def recalibrate(self, new: Any, **arguments: Any) -> Recalibration | RecalibratedFiles:
        """As `howsure.recalibrate`, of new rows with this table as the calibration rows."""
        from howsure.report.recalibrate import recalibrate

        served: Recalibration | RecalibratedFiles = recalibrate(new, self, **arguments)
        return served

    def conformal(self, new: Any, **arguments: Any) -> Recalibration | RecalibratedFiles:
        """As `howsure.conformal`, of new rows with this table as the calibration rows."""
        from howsure.report.conformal import conformal

        served: Recalibration | RecalibratedFiles = conformal(new, self, **arguments)
        return served

    def improve(self, **arguments: Any) -> Improvement:
        """As `howsure.improve`, with this table as the held-out rows."""
        from howsure.report.improve import improve

        return improve(self, **arguments)

    def __repr__(self) -> str:
        sets = self.evalsets
        models = f"{len(sets)} models" if len(sets) > 1 else "1 model"
        uses = [f"  {use.column}: {use.role}" for use in self.roles]
        return "\n".join([f"Table: {sets[0].n:,} rows, {models}", *uses])

    def _repr_html_(self) -> str:
        from howsure.report.plain import html_table

        first = self.evalsets[0]
        columns = to_columns(first.take(np.arange(min(_MAX_ROWS_SHOWN, first.n))))
        uses = [(use.column, use.role, use.note) for use in self.roles]
        titles = [Column(name, numeric=cells.dtype.kind in "fi") for name, cells in columns.items()]
        notes = [f"The first {min(_MAX_ROWS_SHOWN, first.n)} of {first.n:,} rows."]
        grids = (
            Grid.of("", map(Column, ("Column", "Role", "Note")), map(_cells, uses)),
            Grid.of("", titles, map(_cells, zip(*columns.values(), strict=True)), notes),
        )
        return "".join(html_table(grid) for grid in grids if grid.size)


def as_coverages(coverage: float | Sequence[float] | None) -> list[float]:
    """One nominal coverage or several, as a list; none is an empty one."""
    if coverage is None or not np.size(coverage):
        return []
    listed: list[float] = as_vector(coverage, "coverage", scalar=True).tolist()
    return listed


def _cells(row: Iterable[object]) -> tuple[Cell, ...]:
    return tuple(Cell(formats.cell(value)) for value in row)


def load(source: Any, **roles: Any) -> Table:
    """Read a table, or several, as `howsure.Table` does, now.

    Parameters
    ----------
    source : path, data frame, mapping of str to array, or sequence of these
        Several are several models on the same rows; each is called after its file. What is known
        of the rows besides (groups, features, weights, cluster, time) comes from the first.
    **roles
        As in `howsure.Table`.

    Returns
    -------
    Table

    Raises
    ------
    InputError
        If a table cannot be read, its columns cannot be told apart, a cell is missing or is not
        what its role needs, a prediction is impossible, or models do not share their rows.

    Examples
    --------
    >>> load({"y": [1.0, 2.0], "lower_90": [0.0, 1.0], "upper_90": [2.0, 3.0]}).evalsets[0].n
    2
    """
    table = Table(source, **roles)
    table.read()
    return table


READING = {"missing": "error", "crossing": "error", "encoding": None, "decimal": "."}
"""How the cells of a table are read, where nothing is said."""
_OF_TEXT = ("encoding", "decimal")


def split_roles(
    new: Any, calibration: Any, roles: Mapping[str, Any]
) -> tuple[Any, Any, dict[str, Any], Any]:
    """New rows and held-out rows as they are read, how their cells are, and their roles."""
    roles_of_both: dict[str, Any] = {}
    for source in (calibration, new):
        if isinstance(source, Table) and not is_table(source.source):
            raise InputError(
                "a Table of arrays has no columns to recalibrate: give the arrays by name, such as "
                "{'y': y, 'lower': lower, 'upper': upper}"
            )
        for name, value in source.named_roles.items() if isinstance(source, Table) else ():
            if roles_of_both.setdefault(name, value) != value:
                raise InputError(
                    "the two tables must have the same roles, got "
                    f"{name}={roles_of_both[name]!r} and {name}={value!r}"
                )
    roles_of_both |= roles
    reading = {name: roles_of_both.pop(name, usual) for name, usual in READING.items()}
    new, calibration = (s.source if isinstance(s, Table) else s for s in (new, calibration))
    return new, calibration, reading, roles_of_both


_OPTIONS = {"slow": "also", **{field.name: field.name for field in fields(Options)}}
_LARGE = tuple(field.name for field in fields(Large))


def refuse_unknown(unknown: Mapping[str, object]) -> None:
    """Refuse keywords that a verb does not have, and say where they belong."""
    for name in unknown:
        if name == "x":
            raise InputError("x is not an argument: name the inputs with features=…")
        if name in _OPTIONS:
            raise InputError(
                f"{name} is an option: give options=howsure.Options({_OPTIONS[name]}=…)"
            )
        if name in _LARGE:
            raise InputError(f"{name} is about reading: give large=howsure.Large({name}=…)")
        if name in ROLES:
            raise InputError(f"{name} is a role: give howsure.Table(…, {name}=…) as the data")
        check_known(name, (*_ARGUMENTS, *_OPTIONS, *_LARGE, *ROLES), "an argument")


_ARGUMENTS = ("data", "prediction", "options", "large", "progress")
