"""The best of a few methods, or of one method's settings, by the loss on rows held out."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast, final

import numpy as np
import numpy.typing as npt

from howsure.core.arrays import FloatArray
from howsure.core.classes import frozen
from howsure.core.convert import Coverages, check_fields
from howsure.core.errors import InputError
from howsure.predictions.base import tail_levels
from howsure.topics.scores import pinball
from howsure_studies.methods.interface import (
    COVERAGES,
    Fitted,
    Method,
    checked_rows,
    held_out,
)
from howsure_studies.methods.regressors import as_method


@final
@frozen(kw_only=True)
class Searched(Method):
    """The candidate with the lowest loss on held-out rows, then fitted to all rows.

    Parameters
    ----------
    candidates : sequence of Method or scikit-learn regressor
        At least two; a regressor is wrapped by `as_method`. Those that fix their coverages have
        `coverages`.
    validation : int or float
        Rows, or the share of rows, held out to choose by.
    coverages : tuple of float
        The loss is the mean pinball loss at the ends of these central intervals.

    Raises
    ------
    InputError
        If an option breaks its rule.

    Examples
    --------
    >>> from howsure_studies.methods.linear import BayesianRidge, LinearT
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=(60, 1))
    >>> method = Searched(candidates=[LinearT(), BayesianRidge()], coverages=(0.8,))
    >>> method.fit(x, x[:, 0] + rng.normal(size=60), rng).predict([[0.0]]).outcome.kind
    'distributions'
    """

    candidates: Any = ()
    validation: float = 0.25
    coverages: Coverages = COVERAGES

    def __post_init__(self) -> None:
        check_fields(self)
        given = tuple(self.candidates) if isinstance(self.candidates, list | tuple) else ()
        if len(given) < 2:
            raise InputError(f"candidates must be at least 2 methods, got {self.candidates!r}")
        methods = tuple(self._at(as_method(each, self.coverages)) for each in given)
        object.__setattr__(self, "candidates", methods)

    def _at(self, method: Any) -> Method:
        """A candidate at the coverages of the search, where it fixes them."""
        if method.fixed_coverages is None or not hasattr(method, "coverages"):
            return cast(Method, method)
        return cast(Method, replace(method, coverages=self.coverages))

    @property
    def name(self) -> str:
        return f"{self.candidates[0].name}, searched"

    @property
    def fixed_coverages(self) -> tuple[float, ...] | None:
        fixed = any(each.fixed_coverages is not None for each in self.candidates)
        return self.coverages if fixed else None

    def fit(self, x: npt.ArrayLike, y: npt.ArrayLike, rng: np.random.Generator) -> Fitted:
        """Choose on held-out rows, and fit what is chosen to all."""
        inputs, targets = checked_rows(x, y, least=4)
        away = held_out(rng, len(targets), self.validation, "validation")
        losses = [
            self._loss(each.fit(inputs[~away], targets[~away], rng), inputs[away], targets[away])
            for each in self.candidates
        ]
        chosen = self.candidates[int(np.argmin(losses))]
        fitted: Fitted = chosen.fit(inputs, targets, rng)
        return fitted

    def _loss(self, fitted: Fitted, x: FloatArray, y: FloatArray) -> float:
        """The mean pinball loss over rows and ends of intervals."""
        outcome = fitted.predict(x).outcome
        losses = [
            pinball(y, end, level)
            for coverage in self.coverages
            for end, level in zip(outcome.interval(coverage), tail_levels(coverage), strict=True)
        ]
        return float(np.mean(losses))
