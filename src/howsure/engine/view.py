"""An evaluation set seen as the named arrays that formulas ask for.

Each array is made once, when first asked for, by the topic that it belongs to. What the content
does not permit raises `UnanswerableError`, whose message becomes the reason in the record.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from copy import copy
from typing import Any, TypeVar, final

import numpy as np

from howsure.core.arrays import FloatArray, check_fraction
from howsure.core.errors import UnanswerableError, attempt
from howsure.core.rng import row_keys
from howsure.engine.catalogue import arrays
from howsure.engine.metric import MISS_RANGE, MissRange
from howsure.predictions import (
    Distribution,
    EvalSet,
    Intervals,
    LabelSets,
    Prediction,
    Probabilities,
    Quantiles,
    Samples,
)
from howsure.predictions.base import Rows
from howsure.stats.bootstrap import subsample

KIND_PRIORITY: tuple[type[Prediction], ...] = (
    Distribution,
    Samples,
    Quantiles,
    Intervals,
    Probabilities,
    LabelSets,
)
"""Kinds of prediction in the order in which they are asked: who knows most comes first."""

Kind = TypeVar("Kind", bound=Prediction)


@final
class View:
    """Named arrays of one evaluation set, made when asked for and kept.

    Parameters
    ----------
    evalset : EvalSet
        What happened and what was believed.
    seed : int
        Fixes the draws of randomised measures.
    confidence : float
        Nominal confidence of intervals.
    given : mapping of str to object, optional
        Named arrays that the set does not hold, such as ``ease``.
    slow : frozenset of str
        Slow measures that are wanted all the same past 50,000 rows.
    """

    def __init__(
        self,
        evalset: EvalSet,
        *,
        seed: int = 0,
        confidence: float = 0.95,
        slow: frozenset[str] = frozenset(),
        given: Mapping[str, Any] | None = None,
        miss_range: MissRange = MISS_RANGE,
    ) -> None:
        self.evalset: EvalSet = evalset
        self.miss_range = miss_range
        self.slow = slow
        self.seed = seed
        self.confidence = confidence
        self.given = given or {}
        self._cache: dict[tuple[str, float], Any] = {}
        self._source: dict[tuple[str, float], str] = {}

    def get(self, name: str, coverage: float = math.nan) -> Any:
        """The array of this name; arrays of intervals are those at the coverage."""
        if name in self.given:
            return self.given[name]
        if name == "coverage":
            if math.isnan(coverage):
                raise UnanswerableError("the nominal coverage of the intervals is unknown")
            return coverage
        key = _key(name, coverage)
        if key not in self._cache:
            try:
                self._cache[key] = arrays()[name].of(self, coverage)
            except Exception as error:  # it would come again; its own frames hold this view
                self._cache[key] = copy(error)
                raise
        array = self._cache[key]
        if isinstance(array, Exception):
            raise copy(array)
        return array

    def forget(self) -> None:
        """Let go of the arrays of all rows: what is asked for again is made again."""
        self._cache = {key: array for key, array in self._cache.items() if key[0] == _PART}

    @property
    def headline(self) -> float:
        """The nominal coverage that single numbers are told at; NaN where it is unknown."""
        return choose_coverages(self.evalset)[-1]

    def source(self, names: Sequence[str], coverage: float = math.nan) -> str:
        """Which predictions answered for these arrays."""
        used = [self._source.get(_key(name, coverage), "") for name in names]
        return ", ".join(dict.fromkeys(kind for kind in used if kind))

    def answered(self, name: str, coverage: float = math.nan) -> Prediction | None:
        """The prediction that answered for an array."""
        kind = self.source([name], coverage)
        return next(
            (prediction for prediction in self.evalset.predictions if prediction.kind == kind), None
        )

    def note_source(self, name: str, source: str, coverage: float = math.nan) -> None:
        """Remember what an array was made of."""
        self._source[_key(name, coverage)] = source

    def find_prediction(self, kind: type[Kind]) -> Kind | None:
        """The prediction of a kind, if there is one."""
        return next(
            (prediction for prediction in self.evalset.predictions if isinstance(prediction, kind)),
            None,
        )

    def prediction(self, kind: type[Kind]) -> Kind:
        """The prediction of a kind, or the reason why there is none."""
        prediction = self.find_prediction(kind)
        if prediction is None:
            raise UnanswerableError(f"the table has no {kind.kind}")
        return prediction

    def ask(
        self,
        name: str,
        question: str,
        *arguments: Any,
        coverage: float = math.nan,
        first: Sequence[type[Prediction]] = (),
        also: str = "",
    ) -> Any:
        """The first answer to a question that predictions of these kinds can be asked.

        Parameters
        ----------
        name : str
            The array that the answer serves; who answered is remembered.
        question : str
            A method of `Prediction`.
        arguments
            Of that method.
        coverage : float
            Nominal coverage, for arrays of intervals.
        first : sequence of kinds
            Asked before the others, which follow as in `KIND_PRIORITY`.
        also : str
            Only kinds that answer this question too are asked.
        """
        methods = [question, also] if also else [question]
        ordered = dict.fromkeys((*first, *KIND_PRIORITY))
        kinds = [kind for kind in ordered if all(map(kind.answers, methods))]
        reasons = []
        for kind in kinds:
            prediction = self.find_prediction(kind)
            if prediction is None:
                continue
            try:
                answer = getattr(prediction, question)(*arguments)
            except UnanswerableError as error:
                reasons.append(str(error))
            else:
                self.note_source(name, kind.kind, coverage)
                return answer
        lacking = f"the table has no {' or '.join(kind.kind for kind in kinds)}"
        raise UnanswerableError("; ".join(reasons) or lacking)

    def take_at_most(self, most: int) -> View:
        """The view of at most so many rows, chosen by their content; itself if there are fewer."""
        evalset = self.evalset
        if evalset.n <= most:
            return self
        key = (_PART, float(most))
        if key not in self._cache:
            numbers = [
                column
                for prediction in evalset.predictions
                for column in prediction.numbers().values()
            ]
            keys = row_keys(evalset.y, *numbers)
            rows = subsample(keys, most, seed=self.seed, name="conditional rows")
            self._cache[key] = self.of(np.sort(rows))
        view: View = self._cache[key]
        return view

    def of(self, rows: Rows) -> View:
        """The view of some of the rows."""
        return self.on(self.evalset.take(rows))

    def bounded(self) -> View:
        """The view of the rows whose intervals have two ends, which alone have a width."""
        finite = np.isfinite(self.get("uncertainty"))
        if not finite.any():
            raise UnanswerableError("no interval has two ends")
        return self if finite.all() else self.of(np.flatnonzero(finite))

    def on(self, evalset: EvalSet, given: Mapping[str, Any] | None = None) -> View:
        """The view of another evaluation set, asked alike."""
        return View(
            evalset,
            seed=self.seed,
            confidence=self.confidence,
            slow=self.slow,
            given=given,
            miss_range=self.miss_range,
        )


_PART = "part"


def _key(name: str, coverage: float) -> tuple[str, float]:
    array = arrays().get(name)
    return name, coverage if array is not None and array.per_coverage else 0.0


def _central(levels: FloatArray) -> list[float]:
    """Coverages between two of these levels that lie alike on both sides."""
    lower = levels[levels < 0.5]
    paired = np.isclose(lower[:, None], 1.0 - levels[None, :], rtol=0.0, atol=1e-9).any(axis=1)
    return [round(1.0 - 2.0 * float(level), 12) for level in lower[paired]]


def stated_coverages(evalset: EvalSet, assessed: Sequence[float]) -> tuple[float, ...]:
    """The nominal coverages that are assessed, then others that quantiles alone state.

    >>> from howsure.predictions import Quantiles
    >>> table = Quantiles([0.05, 0.25, 0.75, 0.95], [[0.0, 1.0, 2.0, 3.0]])
    >>> stated_coverages(EvalSet(y=np.ones(1), predictions=(table,)), [0.9])
    (0.9, 0.5)
    """
    further = [coverage for coverage in _stated(evalset) if coverage not in assessed]
    return (*assessed, *further)


def _stated(evalset: EvalSet) -> list[float]:
    """Coverages between two levels of quantiles, where no other prediction gives intervals."""
    tables = [prediction for prediction in evalset.predictions if isinstance(prediction, Quantiles)]
    if len(tables) < sum(prediction.answers("interval") for prediction in evalset.predictions):
        return []
    return [coverage for table in tables for coverage in _central(table.levels)]


def choose_coverages(evalset: EvalSet, wanted: Sequence[float] = ()) -> tuple[float, ...]:
    """The nominal coverages to assess: 0.9, or the highest that the predictions reach.

    Of quantiles alone, that of two given levels which is nearest to 0.9: between levels a right
    quantile is not on the line.
    """
    if len(wanted):
        return tuple(check_fraction(c, "coverage") for c in wanted)
    widest = [
        prediction.widest for prediction in evalset.predictions if prediction.answers("interval")
    ]
    for (
        prediction
    ) in evalset.predictions:  # one-sided intervals are judged where there are no others
        if prediction.own_coverages and (prediction.widest or not any(widest)):
            return prediction.own_coverages
    if 0.0 < max(widest, default=0.0) < 0.9 - 1e-9:
        return (max(widest),)
    stated = _stated(evalset)
    if stated:
        return (min(stated, key=lambda coverage: abs(coverage - 0.9)),)
    out_of_reach = attempt(
        "nominal coverages", lambda: View(evalset).get("ends", 0.9) is None, lambda _: bool(widest)
    )
    return (0.5, 0.8, 0.9) if out_of_reach else (0.9,)
