"""Robustness: what a few outliers, or one row of false certainty, do to NLL, ECE and CCE.

NLL has no bound: one row can outweigh all others. A row enters CCE at x with the smoothing weight
αᵢ(x) and a vector of length √2 at most, so that its share is bounded however far its y is. Source:
Young et al. 2025, section 4.6 and appendix D.2.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, final

import numpy as np
import numpy.typing as npt

from howsure.core.arrays import FloatArray
from howsure.core.convert import Fraction, Positive, check_whole, checked
from howsure.core.errors import InputError
from howsure.core.records import Direction, Record, Table
from howsure.core.rng import child
from howsure.predictions import Distribution, EvalSet, NormalLaw
from howsure.studies.congruence.measure import (
    CongruenceMeasure,
    calibration_of,
    congruence_at,
    law_of,
    losses,
)

_MEASURES = ("nll", "ece", "cce")


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Robustness:
    """Measures of one model as a few rows are spoilt.

    Attributes
    ----------
    model : str
        Whose beliefs.
    settings : tuple of str
        What was done; the first is ``as they are``.
    spoilt : ndarray of int, shape (s,)
        Rows that were changed.
    values : dict of str to ndarray of float, shape (s,)
        ``nll``, ``ece`` and mean ``cce``; ``nll_top`` and ``cce_top``, the largest value of a row
        by the median of rows.
    n : int
        Rows.
    """

    model: str
    settings: tuple[str, ...]
    spoilt: npt.NDArray[np.int64]
    values: dict[str, FloatArray]
    n: int

    def relative_change(self, measure: str) -> FloatArray:
        """Change against the data as they are, by their absolute value; shape (s,).

        Raises
        ------
        InputError
            If there is no such measure.
        """
        if measure not in _MEASURES:
            raise InputError(f"measure must be one of {', '.join(_MEASURES)}, got {measure!r}")
        held = self.values[measure]
        return np.asarray((held - held[0]) / abs(held[0]))

    def records(self) -> tuple[Record, ...]:
        """The relative change of each measure in each setting."""
        return tuple(
            Record(
                metric=f"{measure}_relative_change",
                value=float(self.relative_change(measure)[place]),
                n=float(self.n),
                direction=Direction.NONE,
                model=self.model,
                group=f"setting={setting}",
                options={"rows_changed": float(self.spoilt[place])},
            )
            for place, setting in enumerate(self.settings)
            if place
            for measure in _MEASURES
        )

    def table(self) -> Table:
        """One row a setting."""
        columns: dict[str, npt.NDArray[Any]] = {
            "setting": np.array(self.settings, dtype=object),
            "rows_changed": self.spoilt,
            **self.values,
        }
        columns |= {f"{m}_change": self.relative_change(m) for m in _MEASURES}
        return Table(
            name="congruence_robustness",
            columns=columns,
            labels={
                "nll_top": "largest NLL of a row, by the median",
                "cce_top": "largest CCE at a row, by the median",
                **{f"{m}_change": f"relative change of {m.upper()}" for m in _MEASURES},
            },
            model=self.model,
        )


def robustness(
    held: EvalSet,
    *,
    outliers: Sequence[int] = (1, 2, 5),
    distance: float = 10.0,
    narrowing: float | None = 1e-3,
    counts: bool = False,
    measure: CongruenceMeasure | None = None,
    seed: int = 0,
) -> Robustness:
    """Measure a model on rows as they are, with a few outliers, and with one falsely certain law.

    Parameters
    ----------
    held : EvalSet
        Labelled rows with beliefs and embeddings.
    outliers : sequence of int
        In how many rows, chosen at random, y is put far from what is believed; those of a smaller
        number are among those of a larger one.
    distance : float
        How far, in predicted standard deviations; to a random side, or above for counts.
    narrowing : float, optional
        By what one normal law's standard deviation is multiplied, that of the row whose y lies a
        median |z| from its mean. None, or laws of another family: not done.
    counts : bool
        Whether y is rounded.
    measure : CongruenceMeasure, optional
        Kernels, λ and ℓ; γ of y stays that of the rows as they are, and so do draws.
    seed : int
        Fixes rows, sides and draws.

    Returns
    -------
    Robustness

    Raises
    ------
    InputError
        If a number of outliers is below 1 or above the number of rows, or an option leaves its
        domain.
    """
    checked(distance, Positive, "distance")
    checked(narrowing, Fraction | None, "narrowing")
    for number in outliers:
        check_whole(number, "outliers", 1)
        if number > held.n:
            raise InputError(f"outliers must be at most {held.n} rows, got {number}")
    how = measure or CongruenceMeasure()
    if how.output_bandwidth is None:
        how = replace(how, output_bandwidth=float(1.0 / (2.0 * held.y.var(ddof=1))))
    law = law_of(held)
    rng = child(seed, "congruence outliers")
    order = rng.permutation(held.n)
    side = np.ones(held.n) if counts else rng.choice([-1.0, 1.0], held.n)
    sets: list[tuple[str, int, EvalSet]] = [("as they are", 0, held)]
    for number in outliers:
        far, rows = held.y.copy(), order[:number]
        far[rows] = (law.point() + side * distance * law.sd())[rows]
        moved = replace(held, y=np.rint(far) if counts else far)
        sets.append((f"outliers at {distance:g} sd", number, moved))
    if narrowing is not None and isinstance(law, Distribution) and isinstance(law.law, NormalLaw):
        sets.append((f"one sd × {narrowing:g}", 1, _certain(held, law, narrowing)))
    found = [_values(part, how, seed) for _, _, part in sets]
    return Robustness(
        model=held.model,
        settings=tuple(name for name, _, _ in sets),
        spoilt=np.array([number for _, number, _ in sets]),
        values={name: np.array([value[name] for value in found]) for name in found[0]},
        n=held.n,
    )


def _certain(held: EvalSet, law: Distribution, narrowing: float) -> EvalSet:
    """The row of median |z| gets a law too narrow."""
    distance = np.abs(held.y - law.point()) / law.sd()
    row = int(np.argsort(distance, kind="stable")[held.n // 2])
    sd = law.sd().copy()
    sd[row] *= narrowing
    return replace(held, beliefs=(Distribution.normal(law.point(), sd),))


def _values(held: EvalSet, how: CongruenceMeasure, seed: int) -> dict[str, float]:
    points = congruence_at(held, None, how, child(seed, "congruence outlier draws", held.model))
    nll = losses(held).get("nll", np.full(held.n, np.nan))
    return {
        "nll": float(nll.mean()),
        "ece": calibration_of(held, how, exact=False),
        "cce": float(points.mean()),
        "nll_top": float(nll.max() / abs(np.median(nll))),
        "cce_top": float(points.max() / np.median(points)),
    }
