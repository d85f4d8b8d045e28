"""What an entry of the catalogue says of itself, and statistics on sums over rows."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, field, replace
from enum import StrEnum
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from howsure.core.arrays import FloatArray, as_vector
from howsure.core.classes import frozen
from howsure.core.errors import InputError
from howsure.core.formats import level
from howsure.core.options import MISS_RANGE as MISS_RANGE
from howsure.core.records import Curve, Direction, Notion, ResultTable
from howsure.stats.estimate import Estimate
from howsure.stats.moments import Joint

if TYPE_CHECKING:
    from howsure.core.records import Layout, TableLayout
    from howsure.engine.finding import FindingQuestion
    from howsure.engine.measure import Evaluation
    from howsure.engine.view import View
    from howsure.predictions import Prediction

Reduce = Literal["mean", "share", "statistic"]
MissRange = tuple[float, float]
# Time and memory grow with groups, and a group of 1 in 1,000 rows is rarely judged. Not tuned.
MOST_LABELS = 1_000
"""Groups of a column, past which it is left out: its labels are names."""
Beside = Literal["", "groups", "inputs", "ease"]
Merges = Literal["sums", "histogram", "rows"]


class Question(StrEnum):
    """What the reader wants to know; measures are grouped by it."""

    COVERAGE = "Do the intervals have their nominal coverage?"
    WIDTH = "How wide are the intervals?"
    SCORE = "How good are the predictions, in one number?"
    SKILL = "Does it beat a baseline?"
    TAILS = "How good are predictions of extreme values?"
    CALIBRATION = "Are the predicted probabilities calibrated?"
    ASSOCIATION = "Are widths related to errors?"
    TRADE = "How much width does higher coverage cost?"
    TIME = "Does it change over time?"
    SERIES = "How good are predictions for each series?"
    CONDITIONAL = "Does coverage depend on the inputs?"
    CONGRUENCE = "Is the predictive distribution right for all inputs?"
    ADAPTIVITY = "Are widths and sets larger for harder rows?"
    POINT = "How good is the point forecast?"
    CLASSES = "How good are the class probabilities?"


@frozen(kw_only=True)
class Form:
    """One way to compute a metric, from one kind of content.

    Attributes
    ----------
    needs : tuple of str
        Names of the arrays that the function takes, in order.
    keywords : mapping of str to str
        Its keyword arguments, each with the name of the array that it takes.
    function : callable
        A formula on plain arrays.
    reduce : {"mean", "share", "statistic"}
        ``mean``: one score a row, averaged. ``share``: one truth value a row, averaged, with
        exact binomial intervals. ``statistic``: returns an `Estimate`, or a sequence of them.
    weighted : bool
        Whether a statistic takes the keyword ``weights``; false where its arrays hold them.
    options : mapping
        Choices passed by keyword and kept in the record.
    note : str
        What the reader must know of this form.
    squares : bool
        Whether a mean of squared errors is what it rests on: see `howsure.stats.estimate.heavy`.
    interval : str
        The array, an `Estimate`, whose interval joins that of a mean.
    """

    needs: tuple[str, ...]
    function: Callable[..., Any]
    keywords: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    reduce: Reduce = "mean"
    weighted: bool = True
    options: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    note: str = ""
    squares: bool = False
    interval: str = ""


@frozen(kw_only=True)
class Laws:
    """How a metric must behave; every entry is tested on what it declares.

    Permuting rows changes no metric, frequency weights equal repetition wherever a metric takes
    them, and the same seed gives the same answer: these hold for all, so they are not declared.

    Attributes
    ----------
    translation : {"invariant", "varies"}
        What adding a constant to y and predictions does.
    scale : float or {"log", "varies"}
        The power of s by which multiplying y and predictions by s multiplies the value; ``log``: it
        adds log s.
    reflection : str
        What negating y and predictions does: ``invariant``, ``negates``, ``varies``, or the name of
        the metric whose value it takes.
    why : str
        Why a law fails, where one does.
    """

    translation: Literal["invariant", "varies"] = "invariant"
    scale: float | Literal["log", "varies"] = 0.0
    reflection: str = "invariant"
    why: str = ""


INVARIANT = Laws()
"""Laws of a measure without units that no shift and no mirror changes."""


@frozen(kw_only=True)
class Metric:
    """One measure: what it is, which way is better, how it is computed, what laws it obeys.

    Attributes
    ----------
    name, title : str
        The name in code and the name for people.
    synonyms : tuple of str
        What else the field calls it; `howsure.engine.catalogue.metric_named` finds it by these,
        and by the title and what the title has in brackets.
    question : Question
        What it helps to answer.
    meaning, formula, source, beware : str
        What it says, its formula, where it comes from, and how it can mislead.
    direction, units, notion
        As in `Record`. Units are ``y``, ``nats``, ``%`` or ``1``.
    target : float or {"coverage", "miss", "half miss"}
        Value of a perfect model; NaN where it depends on the data.
    per_coverage : bool
        Whether it is computed at each nominal coverage.
    every_level : bool
        Whether also at those that a table of quantiles states beyond the ones that are assessed.
    calibration : bool
        Whether it needs a *known* nominal coverage.
    forms : tuple of Form
        Tried in order; the first whose needs the content meets is used.
    laws : Laws
        What it obeys.
    standard_normal : float
        Its value for the perfect model y ~ N(0, 1) at coverage 0.9; tested by simulation. NaN
        where undefined there, and then `laws.why` or `meaning` says why.
    beside : {"", "groups", "inputs", "ease"}
        What it needs of each row beside y and predictions.
    merges : {"sums", "histogram", "rows"}
        What parts of a table must keep so that the value of the whole follows: ``sums`` (exact);
        a ``histogram`` of the PIT, whose cells bound the error; or the ``rows`` themselves.
    bounds : tuple of float
        The least and the greatest value that it can take; intervals are cut there.
    slow : bool
        Too slow for tables above 50,000 rows unless requested by name.
    expected : {"", "covered", "missed", "below", "above"}
        Which of a prediction's claims, see `Prediction.claimed_misses`, the value is to meet.
    supposes : str
        Name of an array without which the target does not hold; the reason is then told.
    most_rows : float
        Rows that it is computed of at most: of more, of a sample chosen by content.
    by_size : bool
        Whether the value changes with the number of rows in no way known.
    key_number : int
        Its place among the key numbers of a report, where the first that there are have room; 0
        where it is none.
    compares : int
        Its place among the scores by the first of which a figure compares models; 0 where by none.
    """

    name: str
    title: str
    question: Question
    meaning: str
    formula: str
    direction: Direction
    forms: tuple[Form, ...]
    standard_normal: float
    source: str = "definition"
    units: str = "1"
    laws: Laws = INVARIANT
    notion: Notion = Notion.MARGINAL
    synonyms: tuple[str, ...] = ()
    target: float | Literal["coverage", "miss", "half miss"] = math.nan
    per_coverage: bool = False
    every_level: bool = False
    calibration: bool = False
    bounds: tuple[float, float] = (-math.inf, math.inf)
    beside: Beside = ""
    merges: Merges = "sums"
    slow: bool = False
    expected: Literal["", "covered", "missed", "below", "above"] = ""
    supposes: str = ""
    beware: str = ""
    most_rows: float = math.inf
    by_size: bool = False
    key_number: int = 0
    compares: int = 0

    @property
    def spellings(self) -> tuple[str, ...]:
        """Everything that it is called: name, title and synonyms."""
        short, _, bracket = self.title.partition(" (")
        short_names = (bracket.rstrip(")"),) if bracket else ()
        return (self.name, self.title, short, *short_names, *self.synonyms)

    def target_at(self, coverage: float) -> float:
        """The value of a perfect model at a nominal coverage.

        Examples
        --------
        >>> from howsure.engine.catalogue import catalogue
        >>> catalogue()["misses_below"].target_at(0.9)
        0.05
        """
        if self.target == "coverage":
            return coverage
        if self.target == "miss":
            return 1.0 - coverage
        if self.target == "half miss":
            return (1.0 - coverage) / 2.0
        return self.target


@frozen
class Array:
    """What formulas read of an evaluation set under one name.

    Attributes
    ----------
    name : str
        By which forms need it.
    of : callable
        What makes it of a view and a nominal coverage.
    per_coverage : bool
        Whether it differs from one coverage to another.
    predicted : bool
        Whether it follows from the prediction alone, whatever y is.
    by_row : bool
        Of what is predicted, whether it is one number a row, or None.
    sorts : bool
        Whether all rows are sorted for it, as no sum over parts needs.
    undrawn : str
        Why no perfect model can be drawn for what reads it.
    integrated : callable, optional
        Of which predictions it is the CRPS by an integral, which takes long.
    """

    name: str
    of: Callable[[View, float], Any]
    _: KW_ONLY
    per_coverage: bool = False
    predicted: bool = False
    by_row: bool = False
    sorts: bool = False
    undrawn: str = ""
    integrated: Callable[[Prediction], bool] | None = None


coverage_array: Callable[..., Array] = partial(Array, per_coverage=True)
"""An array that differs from one coverage to another."""


@frozen(kw_only=True)
class Topic:
    """What one topic adds to the whole.

    Attributes
    ----------
    entries : tuple of Metric
        Its measures, in the order in which reports show them.
    arrays : tuple of Array
        What its formulas read of an evaluation set.
    curves : tuple of callable
        What draws its curves of an evaluation, at a confidence.
    tables : tuple of callable
        What makes its small tables of an evaluation.
    sums : mapping of str to Sums
        Its statistics that follow from sums over rows, see `howsure.engine.metric`.
    compared : callable, optional
        Of several evaluations, pairs of their numbers, a confidence and a seed: rows of how the
        models of a pair differ, where that takes more than scores of rows.
    findings : tuple of FindingQuestion
        What the verdict concludes from its measures.
    label, title : str
        Of its section of the page, in the list of contents and above it. Topics of one label
        share a section, which has the title of the first; without a label, what does not name
        its own section stands at the end. Without a title it is the question that is answered.
    layouts : mapping of str to Layout
        How its curves are drawn, by their names.
    titles : mapping of str to str or TableLayout
        Those of its tables, by their names, or how they are shown where there is more to say.
    reports : str
        ``module:function`` of what tells more of every model than measures do; given the sets,
        the settings, and texts and images of the rows, it returns what has a `record`, `curves`
        and `tables`.
    """

    entries: tuple[Metric, ...]
    arrays: tuple[Array, ...] = ()
    curves: tuple[Callable[[Evaluation, float], list[Curve]], ...] = ()
    tables: tuple[Callable[[Evaluation], list[ResultTable]], ...] = ()
    sums: Mapping[str, Sums] = field(default_factory=lambda: MappingProxyType({}))
    compared: Callable[..., Iterable[tuple[tuple[int, int], dict[str, Any]]]] | None = None
    findings: tuple[FindingQuestion, ...] = ()
    label: str = ""
    title: str = ""
    layouts: Mapping[str, Layout] = field(default_factory=lambda: MappingProxyType({}))
    titles: Mapping[str, str | TableLayout] = field(default_factory=lambda: MappingProxyType({}))
    reports: str = ""


BY_UNIT = Laws(scale=1.0)
"""Laws of a measure in the units of y."""
BINNED = (
    "It depends on the number of bins and is above 0 for a perfect model: compare it with its "
    "reference."
)
"""What to beware of in a measure of bins."""
# Ends of what a measure may be, of a share and of what has no upper end.
SHARE = (0.0, 1.0)
POSITIVE = (0.0, math.inf)
# One point, as the tolerance of coverage: claims that differ by less are judged as one.
RANGED = 0.01
"""Gap of the most and the least that rows claim, past which a claim is no one number."""
# Slow measures take time in n² or fit trees. Chosen by hand; not tuned: higher, an assessment of a
# large table takes minutes where nobody asked for them.
SLOW_ROWS = 50_000
"""Rows past which slow measures are left out unless asked for."""


def itself(values: FloatArray) -> FloatArray:
    """Row scores that are at hand."""
    return values


def statistic(
    function: Callable[..., Any],
    *needs: str,
    weighted: bool = True,
    squares: bool = False,
    **options: Any,
) -> Form:
    """The form of a statistic of these arrays."""
    return Form(
        needs=needs,
        function=function,
        reduce="statistic",
        weighted=weighted,
        squares=squares,
        options=options,
    )


def row_mean(function: Callable[..., Any], *needs: str, **more: Any) -> Form:
    """The form of a mean of row scores, or with ``reduce="share"`` of truth values."""
    return Form(needs=needs, function=function, **more)


def estimated(array: str) -> Form:
    """The form of a measure whose estimate an array is."""
    return statistic(itself, array, weighted=False)


def stated(array: str, part: str = "estimate") -> Form:
    """The form of a measure whose estimate an array holds, or one for each of its items."""

    def read(estimates: Any) -> Any:
        if isinstance(estimates, list):
            return [getattr(item, part) for item in estimates]
        return getattr(estimates, part)

    return statistic(read, array, weighted=False)


# ---- the miss rates of partial areas: their default, their check, and how they are told ----------


def check_miss_range(value: Sequence[float], name: str = "miss_range") -> MissRange:
    """Check a range of miss rates, from one to a higher one.

    Examples
    --------
    >>> check_miss_range([0, 0.5])
    (0.0, 0.5)
    """
    return check_range(value, name, largest=1.0)


def check_range(value: Sequence[float], name: str, *, largest: float) -> tuple[float, float]:
    """Check a rising pair of numbers between 0 and a largest value."""
    ends = as_vector(value, name)
    if len(ends) != 2 or not 0.0 <= ends[0] < ends[1] <= largest:
        limit = "" if math.isinf(largest) else f" and {largest:g}"
        rule = f"between 0{limit}" if limit else "of at least 0"
        raise InputError(f"{name} must be two rising numbers {rule}, got {value!r}")
    return float(ends[0]), float(ends[1])


def in_words(miss_range: MissRange) -> str:
    """A range of miss rates within a sentence.

    Examples
    --------
    >>> in_words((0.0, 0.2)), in_words((0.05, 0.5))
    ('up to 20 %', 'from 5 % to 50 %')
    """
    low, high = miss_range
    return f"from {level(low)} to {level(high)}" if low > 0 else f"up to {level(high)}"


# ---- statistics written once, on sums over rows: of rows at hand, and of parts that are added up -
# A mean needs nothing for that. A statistic of means names row values, and says how it follows from
# their means. Its influence values are slopes times the deviations of these.

Columns = Callable[["View", float], tuple[FloatArray, ...]]
Value = Callable[[Joint], tuple[Estimate, FloatArray | None]]


def _nothing(view: View, coverage: float) -> tuple[FloatArray, ...]:
    return ()


@frozen
class Sums:
    """How a statistic follows from sums over rows."""

    columns: Columns  # of a view and a coverage, row values whose moments are kept together
    # of all means, the estimate without influence values, and its slopes in those of `columns`: a
    # row's influence is slopes · (its values − means). None where it has none.
    value: Value
    # row values of which mean, least and greatest suffice; they follow the others
    beside: Columns = _nothing
    # the place of the column whose square is kept too, as the next one. Squares lose their digits
    # far from 0, so both are about an origin near the rows.
    squared: int | None = None

    def rows(self, view: View, coverage: float, origin: float = 0.0) -> tuple[FloatArray, ...]:
        """The columns of some rows, with the squares about an origin."""
        columns = list(self.columns(view, coverage))
        if self.squared is not None:
            off = columns[self.squared] - origin
            columns[self.squared : self.squared + 1] = off, np.square(off)
        return tuple(columns)


@np.errstate(over="ignore", invalid="ignore")
def of_rows(
    value: Value,
    columns: Sequence[FloatArray],
    *,
    beside: Sequence[FloatArray] = (),
    weights: FloatArray | None = None,
    unit: float = 1.0,
    squares: FloatArray | None = None,
    cancels: bool = False,
) -> Estimate:
    """A statistic of sums, of rows at hand: with the influence of each, and its squared errors.

    Columns may be in another unit than the statistic, of which `unit` is the size.
    """
    joint = Joint.of(columns, beside, weights, cubes=False)
    estimate, slopes = value(joint)
    if slopes is None:
        return estimate
    influence = np.zeros(len(columns[0]))
    for slope, column, mean in zip(unit * slopes, columns, joint.mean, strict=False):
        off = column - mean
        off *= slope
        influence += off
    if weights is not None:
        influence[weights == 0.0] = 0.0
    return replace(
        estimate, value=unit * estimate.value, influence=influence, squares=squares, cancels=cancels
    )


def root_mean(sums: Joint) -> tuple[Estimate, FloatArray]:
    """The root of a mean."""
    root = math.sqrt(float(sums.mean[0]))
    return Estimate(root), np.array([0.5 / root if root > 0.0 else 0.0])
