"""Does coverage survive a shift? Calibrate at home, then test at home and elsewhere.

Intervals [L, U] of a trained model are moved outward by one offset Q, learnt on validation rows,
and kept so on test rows; a score κ may refuse rows that look foreign. Source: F. K. Gustafsson,
M. Danelljan and T. B. Schön, "How reliable is your regression model's uncertainty under
real-world distribution shifts?" (TMLR 2023).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from types import MappingProxyType
from typing import Any, Final, Literal, final, get_args

import numpy as np
import numpy.typing as npt

from howsure.conformal.ranks import conformal_rank, order_statistics
from howsure.core.arrays import (
    BoolArray,
    FloatArray,
    as_vector,
    check_fraction,
    check_length,
    plain_array,
)
from howsure.core.classes import frozen
from howsure.core.errors import InputError
from howsure_studies.methods.selective import SHARE, threshold_rank

Rule = Literal["paper", "conformal", "own"]
"""Which order statistic calibrates; see `calibration_shift`."""

_Z: Final = 1.959964
"""How many standard errors off the neighbours of a cut lie: near enough for a derivative, and far
enough that it is not all chance."""


@final
@frozen(kw_only=True, eq=False)
class Answers:
    """What one model says of the rows of one part, before calibration.

    Attributes
    ----------
    y : ndarray of float, shape (n,)
        What happened; finite.
    point : ndarray of float, shape (n,)
        Point forecasts, in the units of y.
    lower, upper : ndarray of float, shape (n,)
        Ends of the intervals; they may cross, and −inf and +inf are legal.
    score : ndarray of float, shape (n,), optional
        κ: higher is more foreign. None where every row shall be predicted.

    Raises
    ------
    InputError
        If there is no row, y is not finite, or an array is not numeric or of another length.

    Notes
    -----
    A model that has diverged may answer NaN: what depends on it is then missing, with the reason.

    Examples
    --------
    >>> Answers(y=[1.0], point=[1.5], lower=[0.0], upper=[2.0]).excess()
    array([-1.])
    """

    y: FloatArray
    point: FloatArray
    lower: FloatArray
    upper: FloatArray
    score: FloatArray | None = None

    def __post_init__(self) -> None:
        """Check types and lengths."""
        object.__setattr__(self, "y", as_vector(self.y, "y"))
        for name in [item.name for item in fields(self)][1:]:
            value = getattr(self, name)
            if value is not None:
                object.__setattr__(self, name, _numbers(value, name, len(self.y)))

    def __len__(self) -> int:
        """The number of rows."""
        return len(self.y)

    def excess(self) -> FloatArray:
        """max(L − y, y − U): how far the interval must grow to hold y, shape (n,)."""
        return np.maximum(self.lower - self.y, self.y - self.upper)


def _numbers(value: npt.ArrayLike, name: str, length: int) -> FloatArray:
    """Numbers of which some may be missing or infinite, shape (n,)."""
    array = plain_array(value, name)
    if array.dtype.kind not in "biuf":
        raise InputError(f"{name} must contain real numbers, got dtype {array.dtype}")
    if array.ndim != 1:
        raise InputError(f"{name} must have one dimension, got shape {array.shape}")
    check_length(array, name, length)
    return np.asarray(array, dtype=np.float64)


@final
@frozen(kw_only=True)
class ValidationThreshold:
    """An order statistic of validation numbers, and what it might have been on other rows."""

    value: float  # +inf where its rank exceeds the rows, NaN where a row has no number
    rank: int  # counted from 1
    n: int  # how many numbers there are
    low: float  # the order statistics whose ranks lie 1.96 standard errors, √(n p(1 − p)),
    high: float  # below and above
    spacings: int  # difference of these ranks; 0 where they are one

    @property
    def step(self) -> float:
        """Difference of the levels of `low` and `high`."""
        return self.spacings / self.n

    @classmethod
    def at(cls, values: FloatArray, rank: int, share: float) -> ValidationThreshold:
        """The order statistic of this rank, shape (n,) of numbers.

        Examples
        --------
        >>> cut = ValidationThreshold.at(np.arange(100.0), 91, 0.9)
        >>> cut.value, cut.low, cut.high, cut.step
        (90.0, 84.0, 96.0, 0.12)
        """
        n = len(values)
        if np.isnan(values).any() or rank > n:
            none = math.nan if rank <= n else math.inf
            return cls(value=none, rank=rank, n=n, low=none, high=none, spacings=0)
        reach = max(round(_Z * math.sqrt(n * share * (1.0 - share))), 1)
        ranks = np.clip([rank - reach, rank, rank + reach], 1, n)
        low, value, high = map(float, order_statistics(values, ranks))
        spacings = int(ranks[2] - ranks[0])
        return cls(value=value, rank=rank, n=n, low=low, high=high, spacings=spacings)


@final
@frozen(kw_only=True, eq=False)
class ShiftTest:
    """One part's rows under one calibrated model; everything follows from four numbers a row.

    Attributes
    ----------
    excess : ndarray of float, shape (n,)
        max(L − y, y − U) of the intervals before calibration, in the units of y.
    error : ndarray of float, shape (n,)
        |y − point|, in the units of y.
    base_width : ndarray of float, shape (n,)
        U − L before calibration; negative where the ends cross.
    score : ndarray of float, shape (n,), optional
        κ: higher is more foreign. None where every row is accepted.
    q : float
        The offset Q: calibrated intervals are [L − Q, U + Q].
    threshold : float
        τ: a row is accepted where κ ≤ τ.

    Notes
    -----
    A calibrated interval holds y where the excess is at most Q, which is the same as
    L − Q ≤ y ≤ U + Q but for rounding, so that the row whose excess is Q is always held.
    """

    excess: FloatArray
    error: FloatArray
    base_width: FloatArray
    score: FloatArray | None
    q: float
    threshold: float

    @property
    def n(self) -> int:
        """Number of rows, accepted or not."""
        return len(self.excess)

    @property
    def covered(self) -> BoolArray:
        """Whether the calibrated interval holds y, shape (n,); False where it is not known."""
        return np.asarray(self.excess <= self.q)

    @property
    def accepted(self) -> BoolArray:
        """Whether the score allows a prediction, shape (n,); False where it is not known."""
        if self.score is None:
            return np.ones(self.n, dtype=np.bool_)
        return np.asarray(self.score <= self.threshold)

    @property
    def width_rows(self) -> FloatArray:
        """Width of each calibrated interval, shape (n,)."""
        return self.base_width + 2.0 * self.q

    @property
    def empirical_coverage(self) -> float:
        """Share of the accepted rows that are covered."""
        return self.mean("empirical_coverage")

    @property
    def width(self) -> float:
        """Mean width of the accepted rows, in the units of y."""
        return self.mean("width")

    @property
    def mae(self) -> float:
        """Mean |y − point| of the accepted rows, in the units of y."""
        return self.mean("mae")

    @property
    def prediction_rate(self) -> float:
        """Share of the rows that are accepted."""
        return self.mean("prediction_rate")

    @property
    def empirical_coverage_all(self) -> float:
        """Share of all rows that are covered."""
        return self.mean("empirical_coverage_all")

    @property
    def width_all(self) -> float:
        """Mean width of all rows, in the units of y."""
        return self.mean("width_all")

    @property
    def mae_all(self) -> float:
        """Mean |y − point| of all rows, in the units of y."""
        return self.mean("mae_all")

    def mean(self, name: str) -> float:
        """The mean of this name; NaN where `reason` says why."""
        if self.reason(name):
            return math.nan
        mean = _MEANS[name]
        values = mean.of(self)
        return float(np.mean(values[self.accepted] if mean.of_accepted else values))

    def reason(self, name: str) -> str:
        """Why the mean of this name is NaN; empty where it is not."""
        return next(filter(None, (why(self) for why in _MEANS[name].needs)), "")

    def at(self, *, q: float | None = None, threshold: float | None = None) -> ShiftTest:
        """The same rows at another offset or threshold."""
        return replace(
            self,
            q=self.q if q is None else q,
            threshold=self.threshold if threshold is None else threshold,
        )


@frozen
class _Mean:
    """A mean over rows: of what, what it needs (the first that fails is said), and which rows."""

    of: Callable[[ShiftTest], FloatArray | BoolArray]
    needs: tuple[Callable[[ShiftTest], str], ...]
    of_accepted: bool = False


def _lost(values: FloatArray, what: str) -> str:
    """Why values serve nothing, where some are missing."""
    count = int(np.isnan(values).sum())
    return f"{count} of {len(values)} {what} are missing or not finite" if count else ""


def _no_scores(part: ShiftTest) -> str:
    if part.score is None:
        return ""
    lost = _lost(part.score, "scores")
    return lost or ("the threshold is not known" if math.isnan(part.threshold) else "")


def _none_accepted(part: ShiftTest) -> str:
    nothing = "no row is accepted, so accepted rows have no results"
    return "" if part.accepted.any() else nothing


def _no_ends(part: ShiftTest) -> str:
    lost = _lost(part.excess, "intervals") or _lost(part.base_width, "intervals")
    known = math.isfinite(part.q) or part.q == math.inf
    return lost or ("" if known else "the calibration offset is not known")


def _no_points(part: ShiftTest) -> str:
    return _lost(np.where(np.isinf(part.error), np.nan, part.error), "point forecasts")


_ROWS: Final[Mapping[str, tuple[Callable[[ShiftTest], FloatArray | BoolArray], Any]]] = {
    "empirical_coverage": (lambda part: part.covered, _no_ends),
    "width": (lambda part: part.width_rows, _no_ends),
    "mae": (lambda part: part.error, _no_points),
}
_MEANS: Final[Mapping[str, _Mean]] = {
    **{
        name: _Mean(of, (_no_scores, _none_accepted, need), of_accepted=True)
        for name, (of, need) in _ROWS.items()
    },
    "prediction_rate": _Mean(lambda part: part.accepted, (_no_scores,)),
    "unbounded": _Mean(
        lambda part: np.isinf(part.width_rows),
        (_no_scores, _none_accepted, _no_ends),
        of_accepted=True,
    ),
    **{f"{name}_all": _Mean(of, (need,)) for name, (of, need) in _ROWS.items()},
}
"""The means of a part; a measure is one of them with ``test_``, or of all rows with ``val_``."""


@final
@frozen(kw_only=True, eq=False)
class ShiftRun:
    """One model's numbers on the validation rows and on every test part.

    Attributes
    ----------
    val : ShiftTest
        The validation rows under their own calibration.
    tests : mapping of str to ShiftTest
        The test parts by name; the first is the main one.
    offset : Cut
        Q among the validation rows' excesses.
    cut : Cut, optional
        τ among the validation rows' scores; None where every row is accepted.
    """

    val: ShiftTest
    tests: Mapping[str, ShiftTest]
    offset: ValidationThreshold
    cut: ValidationThreshold | None = None

    @property
    def q(self) -> float:
        """The calibration offset Q, in the units of y."""
        return self.offset.value

    @property
    def threshold(self) -> float:
        """τ, in the units of the score; +inf where every row is accepted."""
        return math.inf if self.cut is None else self.cut.value


def calibration_shift(val: Answers, coverage: float = 0.9, rule: Rule = "paper") -> float:
    """The offset Q by which both ends of intervals move outward.

    Parameters
    ----------
    val : Answers
        Of validation rows.
    coverage : float
        Nominal coverage 1 − α, in (0, 1).
    rule : {"paper", "conformal", "own"}
        ``paper``: the (⌊(1 − α)n⌋ + 1)-th smallest excess, as Gustafsson, Danelljan and Schön's
        code has it. ``conformal``: the ⌈(1 − α)(n + 1)⌉-th smallest, which covers 1 − α of
        exchangeable rows at least, on average over validation rows; infinite where n is less.

    Returns
    -------
    float
        In the units of y; negative where intervals shrink, NaN where an interval is missing.

    Raises
    ------
    InputError
        If the coverage leaves (0, 1) or the rule is unknown.

    Examples
    --------
    >>> y = np.arange(1.0, 10.0)
    >>> val = Answers(y=y, point=0 * y, lower=0 * y, upper=0 * y)
    >>> calibration_shift(val, 0.8), calibration_shift(val, 0.95, "conformal")
    (8.0, inf)
    """
    return _offset(val, coverage, rule).value


def _offset(val: Answers, coverage: float, rule: Rule) -> ValidationThreshold:
    if rule not in get_args(Rule):
        raise InputError(f"rule must be 'paper', 'conformal' or 'own', got {rule!r}")
    if rule == "own":
        return ValidationThreshold(value=0.0, rank=0, n=len(val), low=0.0, high=0.0, spacings=0)
    return ValidationThreshold.at(val.excess(), conformal_rank(len(val), coverage, rule), coverage)


def evaluate_shift(
    val: Answers,
    tests: Mapping[str, Answers],
    *,
    coverage: float = 0.9,
    rule: Rule = "paper",
    share: float = SHARE,
) -> ShiftRun:
    """Calibrate one model on validation rows and see what its intervals do on test parts.

    Parameters
    ----------
    val : Answers
        Of validation rows: all of them give Q, accepted or not.
    tests : mapping of str to Answers
        Of test parts by name; the first is the main one.
    coverage : float
        Nominal coverage 1 − α, in (0, 1).
    rule : {"paper", "conformal", "own"}
        See `calibration_shift`.
    share : float
        The threshold τ of the score is the (⌊share · n⌋ + 1)-th smallest κ of validation rows;
        rows with κ ≤ τ are predicted.

    Returns
    -------
    ShiftRun
        Missing answers, as of a network that diverged, leave numbers missing, with the reason.

    Raises
    ------
    InputError
        If there is no test, an option leaves its domain, or some parts have scores and others
        none.

    Examples
    --------
    >>> y = np.arange(10.0)
    >>> home = Answers(y=y, point=y, lower=y - 1, upper=y + 1, score=y)
    >>> away = Answers(y=y + 1.5, point=y, lower=y - 1, upper=y + 1, score=y + 5)
    >>> run = evaluate_shift(home, {"away": away})
    >>> run.q, run.tests["away"].empirical_coverage, run.tests["away"].prediction_rate
    (-1.0, 0.0, 0.5)
    """
    if not tests:
        raise InputError("tests must contain at least one part, got none")
    check_fraction(share, "share")
    for name, test in tests.items():
        if (test.score is None) != (val.score is None):
            has, lacks = ("val", name) if test.score is None else (name, "val")
            raise InputError(f"all parts must have scores or none, got them in {has}, not {lacks}")
    offset = _offset(val, coverage, rule)
    cut = None
    if val.score is not None:
        cut = ValidationThreshold.at(val.score, threshold_rank(len(val), share), share)
    limit = np.inf if cut is None else cut.value
    parts = {name: _test_of(test, offset.value, limit) for name, test in tests.items()}
    return ShiftRun(
        val=_test_of(val, offset.value, limit),
        tests=MappingProxyType(parts),
        offset=offset,
        cut=cut,
    )


@np.errstate(invalid="ignore")
def _test_of(answers: Answers, q: float, threshold: float) -> ShiftTest:
    return ShiftTest(
        excess=answers.excess(),
        error=np.abs(answers.y - answers.point),
        base_width=answers.upper - answers.lower,
        score=answers.score,
        q=q,
        threshold=threshold,
    )


@final
@frozen(kw_only=True, eq=False)
class RunMeasure:
    """One number of one run, and its influence values."""

    value: float  # NaN where `reason` says why
    n: float  # rows behind it
    rows: FloatArray | None = None  # how each test row moves it, with mean 0; None: they do not
    calibration: FloatArray | None = None  # and each validation row
    degrees: float = math.inf  # of freedom of what validation rows do, where below their number
    reason: str = ""


def run_measure(run: ShiftRun, measure: str, test: str) -> RunMeasure:
    """A measure of one run, ``coverage_error`` excepted, with influence values.

    A mean over accepted rows moves by a_i(s_i − mean)/rate with row i. Validation row j moves Q
    by −(1{E_j ≤ Q} − mean) in units of its level, and likewise τ; what a measure gains by level
    is read off between the order statistics one standard error below and above (the interval of
    R. S. Woodruff, JASA 47 (1952), turned into a derivative).
    """
    if measure.startswith("val_"):
        return _mean_of(run, run.val, f"{measure.removeprefix('val_')}_all")
    part, name = run.tests[test], measure.removeprefix("test_")
    if name in _MEANS:
        return _mean_of(run, part, name)
    away, home = _mean_of(run, part, "mae_all"), _mean_of(run, run.val, "mae_all")
    if math.isnan(away.value) or math.isnan(home.value):
        return RunMeasure(value=math.nan, n=float(part.n), reason=away.reason or home.reason)
    if measure == "mae_change":
        return _difference(away, home, 1.0, 1.0, away.value - home.value)
    if home.value == 0.0:
        return RunMeasure(value=math.nan, n=away.n, reason="the validation MAE is 0")
    by_home = away.value / home.value
    return _difference(away, home, 1.0 / home.value, by_home / home.value, by_home - 1.0)


def _difference(
    away: RunMeasure, home: RunMeasure, gain: float, loss: float, value: float
) -> RunMeasure:
    """A function of two means that rises by `gain` with one and falls by `loss` with the other."""
    rows = None if away.rows is None else gain * away.rows
    calibration = None if home.calibration is None else -loss * home.calibration
    return RunMeasure(value=value, n=away.n, rows=rows, calibration=calibration)


def _mean_of(run: ShiftRun, part: ShiftTest, name: str) -> RunMeasure:
    """A mean of a part, whose rows move it; those of the validation part do so as such."""
    mean, value = _MEANS[name], part.mean(name)
    counted = part.accepted if mean.of_accepted else np.ones(part.n, dtype=np.bool_)
    n = float(counted.sum())
    if not math.isfinite(value):
        unbounded = "some intervals are unbounded" if math.isinf(value) else ""
        return RunMeasure(value=value, n=n, reason=unbounded or part.reason(name))
    scores = np.asarray(mean.of(part), dtype=np.float64)
    own = np.where(counted, scores - value, 0.0) * (part.n / n)
    moved, degrees = _moved_by_val(run, name, part)
    if part is run.val:
        return RunMeasure(value=value, n=n, calibration=own + moved, degrees=degrees)
    return RunMeasure(value=value, n=n, rows=own, calibration=moved, degrees=degrees)


def _moved_by_val(run: ShiftRun, name: str, part: ShiftTest) -> tuple[FloatArray, float]:
    """How validation rows move a mean of a part through Q and τ, shape (m,), and how surely."""
    moved, degrees = np.zeros(run.val.n), math.inf
    if "width" in name or "empirical_coverage" in name:
        slope = _slope(run.offset, lambda q: part.at(q=q).mean(name))
        moved -= slope * _centred(run.val.covered)
        degrees = run.offset.spacings / 2.0
    if run.cut is not None and (_MEANS[name].of_accepted or name == "prediction_rate"):
        slope = _slope(run.cut, lambda threshold: part.at(threshold=threshold).mean(name))
        moved -= slope * _centred(run.val.accepted)
        degrees = min(degrees, run.cut.spacings / 2.0)
    return moved, degrees


def _slope(cut: ValidationThreshold, measure: Callable[[float], float]) -> float:
    """Rise of a measure by level between the neighbours of a cut; 0 where there is none."""
    if cut.spacings == 0:
        return 0.0
    low, high = measure(cut.low), measure(cut.high)
    return (high - low) / cut.step if math.isfinite(low) and math.isfinite(high) else 0.0


def _centred(flags: BoolArray) -> FloatArray:
    return np.asarray(flags - flags.mean())
