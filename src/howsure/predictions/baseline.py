"""Another forecast of the same rows, beside which a model is judged."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Self, final

import numpy as np

from howsure.core.arrays import BoolArray
from howsure.core.brief import brief_repr
from howsure.predictions.base import Prediction, Rows


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BaselineForecast:
    """What anyone could have predicted at the time, or another model did."""

    kind: Literal["persistence", "seasonal", "model"]
    name: str  # in sentences
    beliefs: tuple[Prediction, ...]
    known: BoolArray  # shape (n,): the rows that it predicts; what it states of others is void
    asked: bool = False  # whether the verdict is to be by it, in place of the distribution of y

    __repr__ = brief_repr

    def take(self, rows: Rows) -> Self:
        """That of some of the rows."""
        return type(self)(
            kind=self.kind,
            name=self.name,
            beliefs=tuple(belief.take(rows) for belief in self.beliefs),
            known=np.asarray(self.known[rows]),
            asked=self.asked,
        )
