"""Recalibrations one after the other: each is fitted to predictions as the last one leaves them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self, final

from howsure.predictions import EvalSet, Prediction
from howsure.recalibration.base import Recalibrator
from howsure.recalibration.dispatch import applied


@final
@dataclass(frozen=True, slots=True, kw_only=True)
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
        told: list[str] = []
        *before, last = self.steps
        for step in before:
            done = applied((step,), evalset)
            evalset = done.evalset
            told.extend(done.notes)
        made, notes = last.transform(evalset)
        return made, tuple(dict.fromkeys((*told, *notes)))

    def apply(self, evalset: EvalSet) -> EvalSet:
        """The same rows as all steps leave them."""
        for step in self.steps:
            evalset = step.apply(evalset)
        return evalset
