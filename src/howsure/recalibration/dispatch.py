"""All ways to recalibrate, and one call that recalibrates all predictions of a test set."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from types import MappingProxyType
from typing import Any, Final, Self, final

import numpy as np
import numpy.typing as npt

from howsure.core.classes import frozen
from howsure.core.errors import InputError
from howsure.core.records import ResultTable
from howsure.core.registry import check_known, unknown
from howsure.predictions import (
    Distribution,
    EvalSet,
    Intervals,
    LabelSets,
    Prediction,
    Probabilities,
)
from howsure.predictions.laws import NormalLaw
from howsure.recalibration import (
    affine,
    conformal,
    group,
    inputs,
    intervals_from_distributions,
    probabilities,
    recent,
    scaling,
    sets,
    shape,
    variance,
)
from howsure.recalibration.base import (
    POINT,
    RecalibrationMethod,
    Recalibrator,
    kinds_of,
    prediction_of,
)
from howsure.recalibration.group import has_ease
from howsure.recalibration.info import KINDS, MethodInfo, RecalibrationOptions
from howsure.recalibration.recent import since_rows
from howsure.recalibration.sets import without_probabilities


class FittedMethods:
    """Fitted methods, one for each kind of prediction."""

    __slots__ = ()

    recalibrators: tuple[Recalibrator, ...]

    @property
    def methods(self) -> dict[str, str]:
        """The method used for each kind of prediction."""
        return {fitted.belief: fitted.method for fitted in self.recalibrators}

    @property
    def guarantees(self) -> dict[str, str]:
        """What holds in finite samples for each kind of prediction, in words."""
        return {fitted.belief: fitted.guarantee for fitted in self.recalibrators}


@frozen(kw_only=True)
class Recalibrated(FittedMethods):
    """A test set with its predictions recalibrated, and how.

    Attributes
    ----------
    evalset : EvalSet
        The test rows with new predictions.
    recalibrators : tuple of Recalibrator
        The fitted methods, one a kind: each can be applied to other rows.
    notes : tuple of str
        What the reader must know.
    """

    evalset: EvalSet
    recalibrators: tuple[Recalibrator, ...]
    notes: tuple[str, ...] = ()

    def table(self) -> ResultTable:
        """What was learnt, a row each, with what it guarantees in numbers."""
        rows = [(fitted, learnt) for fitted in self.recalibrators for learnt in fitted.parameters]
        columns: dict[str, npt.NDArray[np.generic]] = {
            "belief": np.array([fitted.belief for fitted, _ in rows]),
            "method": np.array([fitted.method for fitted, _ in rows]),
            "parameter": np.array([learnt.name for _, learnt in rows]),
        }
        figures = ("nominal", "value", "standard_error", "n", "rank", "expected", "lower", "upper")
        for name in figures:
            columns[name] = np.array([getattr(learnt, name) for _, learnt in rows])
        return ResultTable(
            name="recalibration",
            columns=columns,
            labels={
                "nominal": "nominal coverage or level",
                "n": "calibration rows",
                "expected": "expected coverage of a new row",
                "lower": "coverage: 2.5th percentile over calibration sets",
                "upper": "coverage: 97.5th percentile over calibration sets",
            },
            model=self.evalset.model,
            notes=" ".join(self.guarantees.values()),
        )


def recalibrate(
    test: EvalSet,
    calibration: EvalSet,
    *,
    method: str | None = None,
    **options: Any,
) -> Recalibrated:
    """Widen, narrow or shift the predictions of a test set, as fitted on calibration rows.

    The y of the test rows is never read. The calibration rows must be held out from training,
    and exchangeable with the test rows for a guarantee to hold.

    Parameters
    ----------
    test : EvalSet
        The rows whose predictions are recalibrated.
    calibration : EvalSet
        Held-out rows with the same kinds of prediction by the same model. A frequency weight of
        two is a row seen twice.
    method : str, optional
        A name of `methods_of` a kind of the test rows, or an alias; other kinds take their
        default.

        - Distributions and samples: ``scale`` (default), ``shift``, ``shift_scale``,
          ``multiply``, ``widths``, ``isotonic_variance``, ``shape``, ``isotonic``, ``crude``.
          Distributions that are not normal take ``isotonic`` by default, which respects their
          support.
        - Quantiles: ``conformal`` (default), ``scale``, ``shift``, ``shift_scale``,
          ``multiply``, ``widths``, ``shape``.
        - Intervals: ``cqr`` (default), ``asymmetric``, ``scale`` (alias ``ucc``), ``shift``,
          ``shift_scale``, ``multiply``, ``widths``.
        - A point forecast: ``split`` (default; alias ``cp``), ``asymmetric``, ``shift``,
          ``multiply``.
        - Class probabilities: ``platt`` (default), ``shift``, ``temperature``, ``beta``,
          ``isotonic``, ``group``; and those of label sets, which make sets of them.
        - Label sets: ``lac`` (default), ``aps``, ``raps``, ``saps``, ``o_lac``, ``o_saps``,
          ``temperature``.

        With a coverage, ``cqr``, ``asymmetric``, ``ucc`` and ``cp`` make intervals of the first
        two kinds, and of distributions and samples ``cp_a``, ``pac``, ``o_cpa`` and ``o_pac``
        too. ``group`` reads groups, ``inputs`` (of no point forecast) the features, and ``recent``
        the time of rows.
    coverage : float, optional
        Nominal coverage to reach, for intervals (each its own by default), and where intervals
        are made of something else (where it is needed).
    too_few : {"infinite", "error"}
        Where calibration rows are too few for a finite answer: infinite intervals and quantile
        levels left out, both with a note, or a refusal.
    rank : {"conformal", "paper", "pac"}
        Rank of the interval methods, see `howsure.conformal.conformal_rank`.
    delta : float
        δ of the rank ``pac``: the share of calibration sets that may fall short of the coverage.
    levels : array-like of shape (k,)
        Levels of the quantiles that ``isotonic``, ``crude`` and, of distributions, ``shape`` give.
    by : str or sequence of str
        Columns of groups that are recalibrated by their own rows, of several their crossing;
        makes ``group`` the method. Of ``group`` the only column if omitted.
    since : number, date or str, optional
        Calibration rows before this time teach nothing, whatever the method. Without it
        ``recent`` lets rows fade with age.
    bins : int, optional
        Bins by ease of the methods that have some; they choose if omitted.
    penalty : float, optional
        λ of ``raps``, ``saps`` and ``o_saps``; they choose if omitted.
    seed : int
        Fixes the draws of the scores of label sets, and the rows that tune them. Both belong to
        rows by content.

    Returns
    -------
    Recalibrated

    Raises
    ------
    InputError
        If calibration lacks a kind of prediction that the test rows have, or differs in
        coverages, levels, family or number of samples; if the method suits no kind; if a coverage
        is unknown and none is given; if too few rows are refused; if `by` goes with a method
        other than ``group``, or names no column of groups; or if no calibration row is as late as
        `since`, or cannot be compared with it.
    UnanswerableError
        If a method needs a mean or standard deviation that a law does not have.

    Examples
    --------
    >>> wide = Intervals(np.full(99, -9.0), np.full(99, 9.0), coverage=0.9)
    >>> held_out = EvalSet.checked(np.linspace(-1.0, 1.0, 99), wide)
    >>> mended = recalibrate(held_out.take(np.arange(2)), held_out)
    >>> mended.evalset.predictions[0].interval(0.9)
    (array([-0.918, -0.918]), array([0.918, 0.918]))
    >>> mended.methods
    {'intervals': 'cqr'}
    """
    fitted, notes = fit_methods(test, calibration, method, **options)
    return applied(fitted, test, notes)


def fit_methods(
    like: EvalSet, calibration: EvalSet, method: str | None = None, **options: Any
) -> tuple[tuple[Recalibrator, ...], list[str]]:
    """A fitted method for each kind of prediction of rows, and notes; options as `recalibrate`."""
    choices = _checked(options)
    if choices.by:
        if method not in (None, "group"):
            raise InputError(f"by needs the method 'group' or no method, got {method!r}")
        method = "group"
    like, calibration = (with_one_kind_of_classes(rows, method) for rows in (like, calibration))
    _check_kinds(like, calibration, method)
    notes: list[str] = []
    if choices.since is not None:
        all_rows, calibration = calibration, since_rows(calibration, choices.since)
        notes.append(
            f"{calibration.n:,} of {all_rows.n:,} calibration rows are from {choices.since!s} or "
            "later and were used."
        )
    kinds = kinds_of(like)
    chosen = [method_of(kind, method) for kind in kinds]
    fitted = tuple(
        (info or _default(kind, calibration)).make(kind, choices).fit(calibration)
        for kind, info in zip(kinds, chosen, strict=True)
    )
    kinds_using = {Intervals.kind, POINT, Probabilities.kind, LabelSets.kind}
    uses_coverage = not kinds_using.isdisjoint(kinds) or any(
        info is not None and info.gives == "intervals" for info in chosen
    )
    if choices.coverage is not None and not uses_coverage:
        notes.append(
            "The given coverage was not used: it applies only to intervals, sets and point "
            "forecasts."
        )
    if method is not None:
        notes.extend(
            f"The method {method!r} does not apply to {used.belief}; {used.method!r} was used "
            "instead."
            for used, info in zip(fitted, chosen, strict=True)
            if info is None
        )
    return fitted, notes


def applied(
    fitted: tuple[Recalibrator, ...], rows: EvalSet, notes: Sequence[str] = ()
) -> Recalibrated:
    """Rows with the prediction of each recalibrator in place of their own."""
    all_notes = list(notes)
    recalibrated: list[tuple[str, Prediction]] = []
    for recalibrator in fitted:
        if recalibrator.moves_point:
            rows = recalibrator.apply(rows)
            all_notes.extend(recalibrator.notes)
            continue
        prediction, row_notes = recalibrator.transform(rows)
        recalibrated.append((recalibrator.belief, prediction))
        all_notes.extend(
            note for note in (*recalibrator.notes, *row_notes) if note not in all_notes
        )
    predictions, lost = _joined(recalibrated)
    return Recalibrated(
        evalset=replace(rows, predictions=predictions),
        recalibrators=fitted,
        notes=(*all_notes, *lost),
    )


def suited(rows: EvalSet, method: str) -> EvalSet:
    """The rows with the one kind of prediction that a method is for, the nearest to it first."""
    suiting = [kind for kind in KINDS if method_of(kind, method) is not None]
    for kind in suiting:
        if kind == POINT and rows.point is not None:
            return replace(rows, predictions=())
        if any(prediction.kind == kind for prediction in rows.predictions):
            return replace(rows, predictions=tuple(b for b in rows.predictions if b.kind == kind))
    raise InputError(
        f"method {method!r} is for {', '.join(suiting)}, got {', '.join(kinds_of(rows))}"
    )


def with_one_kind_of_classes(rows: EvalSet, method: str | None) -> EvalSet:
    """Rows with class probabilities or with the sets made of them, whichever a method is for."""
    kinds = [prediction.kind for prediction in rows.predictions]
    if not {Probabilities.kind, LabelSets.kind} <= set(kinds):
        return rows
    sets = method is None or method_of(LabelSets.kind, method) is not None
    left_out = Probabilities.kind if sets else LabelSets.kind
    return replace(rows, predictions=tuple(p for p in rows.predictions if p.kind != left_out))


def _check_kinds(test: EvalSet, calibration: EvalSet, method: str | None) -> None:
    kinds = kinds_of(test)
    sets = [b for held in (test, calibration) for b in held.predictions if isinstance(b, LabelSets)]
    if any(label_set.probabilities is None for label_set in sets):
        raise without_probabilities()
    held = {prediction.kind for prediction in calibration.predictions}
    if calibration.point is not None:
        held.add(POINT)
    missing = [kind for kind in kinds if kind not in held]
    if missing:
        raise InputError(
            "calibration must have the same types of prediction as the new rows "
            f"({', '.join(kinds)}); missing: {', '.join(missing)}"
        )
    if method is not None and not any(method_of(kind, method) for kind in kinds):
        methods = "; ".join(f"{kind}: {', '.join(methods_of(kind))}" for kind in kinds)
        raise InputError(f"method must apply to the predictions ({methods}), got {method!r}")


def _default(kind: str, calibration: EvalSet) -> MethodInfo:
    """The method of a kind where none is asked for."""
    if kind == Distribution.kind:
        normal = isinstance(prediction_of(calibration, Distribution).law, NormalLaw)
        return METHODS["scale" if normal else "isotonic"]
    return next(iter(methods_of(kind).values()))


def _joined(recalibrated: list[tuple[str, Prediction]]) -> tuple[tuple[Prediction, ...], list[str]]:
    """One prediction of each kind: what was given as a kind goes before what became one."""
    by_kind: dict[str, Prediction] = {new.kind: new for old, new in recalibrated if old == new.kind}
    notes = []
    for old, new in recalibrated:
        if old == new.kind:
            continue
        if new.kind in by_kind:
            notes.append(
                f"The {old} were recalibrated to {new.kind}, which the rows already have: the "
                "recalibrated ones were omitted."
            )
        else:
            by_kind[new.kind] = new
    return tuple(by_kind.values()), notes


# ---- all ways to recalibrate, gathered from the files that they stand in -------------------------

_FILES = (
    scaling,
    affine,
    variance,
    shape,
    conformal,
    intervals_from_distributions,
    group,
    inputs,
    recent,
    sets,
    probabilities,
)

_LISTED = tuple(info for file in _FILES for info in file.METHODS)

METHODS: Final[Mapping[str, MethodInfo]] = MappingProxyType(
    {  # of methods of one name for several kinds, that which is listed first
        info.name: info
        for info in sorted(
            {info.name: info for info in _LISTED[::-1]}.values(),
            key=lambda info: (info.complexity or math.inf, info.turn),
        )
    }
)
"""Every way to recalibrate by its name; what is advised stands first, the simplest before all."""

BEST = "best"
"""The method that is chosen by trying all that are advised."""


def methods_of(kind: str) -> dict[str, MethodInfo]:
    """The methods of a kind of prediction by name, the default first, but see `recalibrate`.

    Examples
    --------
    >>> from howsure.recalibration.info import RecalibrationOptions
    >>> next(iter(methods_of("samples")))
    'scale'
    >>> methods_of("samples")["scale"].make("samples", RecalibrationOptions())
    SpreadScaling()
    """
    suiting = [info for info in _LISTED if kind in info.kinds]
    suiting.sort(key=lambda info: kind not in info.leads)
    return {info.name: info for info in suiting}


def method(name: str, kind: str | None = None, **options: Any) -> RecalibrationMethod:
    """A way to recalibrate by its name, not fitted yet.

    Parameters
    ----------
    name : str
        A name of `METHODS`, such as ``shape``; `recalibrate` lists them by kind of prediction.
    kind : {"intervals", "point", "distributions", "quantiles", "samples", "class probabilities",
            "label sets"}, optional
        The kind of prediction that it is for; by default the first that `METHODS` has for the name.
    **options
        ``coverage``, ``too_few``, ``rank``, ``delta``, ``levels``, ``by``, ``since``, ``bins``,
        ``penalty`` and ``seed``, as in `recalibrate`; ``coverages`` are several, for intervals made
        of another kind. Each method reads those that concern it.

    Returns
    -------
    RecalibrationMethod
        Its ``fit`` takes held-out rows and returns a `Recalibrator`.

    Raises
    ------
    InputError
        If the name or an option is unknown, if the method is not for the kind, or if an option
        leaves its domain.

    Examples
    --------
    >>> method("shape", levels=(0.1, 0.5, 0.9))
    Shape(levels=(0.1, 0.5, 0.9))
    >>> rows = EvalSet.checked(np.linspace(-1, 1, 99), Distribution.normal([0.0] * 99, [1.0] * 99))
    >>> method("scale").fit(rows).parameters[0].value < 1.0
    True
    """
    check_known(name, METHODS, "name")
    info = METHODS[name]
    kind = kind or (*info.leads, *info.kinds)[0]
    suiting = method_of(kind, name)
    if suiting is None:
        raise InputError(unknown(kind, [k for k in KINDS if method_of(k, name)], "kind"))
    return suiting.make(kind, _checked(options))


_OPTIONS = tuple(field.name for field in fields(RecalibrationOptions))


def _checked(options: Mapping[str, Any]) -> RecalibrationOptions:
    """Options of methods, the names of which are known."""
    for option in options:
        check_known(option, _OPTIONS, "option")
    by = options.get("by", ())
    return RecalibrationOptions(**{**options, "by": (by,) if isinstance(by, str) else tuple(by)})


def method_of(kind: str, name: str | None) -> MethodInfo | None:
    """The method of a kind by its name or an alias; None where the kind has none such."""
    methods = methods_of(kind)
    return methods.get(name or "") or next(
        (info for info in methods.values() if name in info.aliases), None
    )


def method_names() -> tuple[str, ...]:
    """Every name and alias, those of each kind together."""
    listed = [info for kind in KINDS for info in methods_of(kind).values()]
    return tuple(dict.fromkeys(name for info in listed for name in (info.name, *info.aliases)))


def advised(kind: str) -> tuple[MethodInfo, ...]:
    """What is tried of predictions of a kind, the simplest first."""
    return tuple(
        info
        for info in METHODS.values()
        if info.complexity and kind in info.kinds
        if kind != info.but and info.only in ("", kind)
    )


def can_teach(info: MethodInfo, calibration: EvalSet, by: Sequence[str] = ()) -> bool:
    """Whether rows have what a method needs besides predictions, without further options."""
    if info.needs == "groups":
        return bool(by) or len(calibration.groups) == 1
    if info.needs == "ease":
        return has_ease(calibration)
    if info.needs == "inputs":
        return bool(calibration.features) or calibration.embedding is not None
    return info.needs != "time" or calibration.time is not None


# ---- recalibrations one after the other: each is fitted to predictions as the last one leaves them


@final
@frozen(kw_only=True)
class InTurn(Recalibrator):
    """Fitted methods of one kind of prediction, applied in turn."""

    steps: tuple[Recalibrator, ...]

    @classmethod
    def of(cls, steps: Sequence[Recalibrator]) -> Self:
        """What all learnt, and what to know of all; the guarantee is the last one's."""
        return cls(
            belief=steps[0].belief,
            method=", then ".join(step.method for step in steps),
            parameters=tuple(learnt for step in steps for learnt in step.parameters),
            guarantee=steps[-1].guarantee,
            notes=tuple(dict.fromkeys(note for step in steps for note in step.notes)),
            steps=tuple(steps),
        )

    @property
    def by_rows(self) -> bool:
        """Whether a row's prediction is the same whatever rows stand beside it."""
        return all(step.by_rows for step in self.steps)

    @property
    def moves_point(self) -> bool:
        """Whether it leaves a bare point forecast."""
        return self.steps[-1].moves_point

    def transform(self, evalset: EvalSet) -> tuple[Prediction, tuple[str, ...]]:
        """The prediction after the last step, and notes on all. Reads no y."""
        all_notes: list[str] = []
        *before, last = self.steps
        for step in before:
            done = applied((step,), evalset)
            evalset = done.evalset
            all_notes.extend(done.notes)
        prediction, notes = last.transform(evalset)
        return prediction, tuple(dict.fromkeys((*all_notes, *notes)))

    def apply(self, evalset: EvalSet) -> EvalSet:
        """The same rows as all steps leave them."""
        for step in self.steps:
            evalset = step.apply(evalset)
        return evalset
