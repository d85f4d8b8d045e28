"""Rejection: do the rows that CCE flags, without their labels, hold the errors?

CCE at test inputs, with the validation part as labelled reference, orders the test rows; those of
highest CCE are withheld first. MAE and NLL of the rows kept are drawn against the share withheld,
beside random withholding and beside withholding by the losses themselves. Source: Young et al.
2025, appendix A.3.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, final

import numpy as np

from howsure.core.arrays import FloatArray
from howsure.core.convert import check_whole
from howsure.core.errors import InputError
from howsure.core.progress import part_of, tell
from howsure.core.records import Curve, Direction, Notion, Record
from howsure.core.rng import child
from howsure.methods.interface import Fitted
from howsure.metrics.congruence import RejectionCurve, rejection_at, rejection_curve
from howsure.studies.congruence.measure import (
    CongruenceMeasure,
    answer,
    congruence_at,
    losses,
)
from howsure.studies.congruence.tasks import CongruenceTask, Embedding

THRESHOLDS: Final = np.linspace(0.02, 0.06, 100)
"""Thresholds of CCE of the published study."""
_TITLES: Final = {"mae": "mean absolute error", "nll": "mean negative log likelihood"}
_BLOCK: Final = 4_000_000


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Rejection:
    """What becomes of the losses of one model as rows are withheld by CCE.

    Attributes
    ----------
    task, model : str
        Which model on what.
    scores : ndarray of float, shape (n,)
        CCE at the test rows.
    losses : mapping of str to ndarray of float, shape (n,)
        ``mae`` (absolute errors) and, where laws have a density, ``nll``.
    p_values : mapping of str to float
        Share of random orders of the rows with an area as small, the order by CCE counted in.
    units : str
        Of y.
    options : mapping of str to str or float
        The choices that decided the numbers.
    curves : mapping of str to RejectionCurve
        One a loss, made of scores and losses.
    """

    task: str
    model: str
    scores: FloatArray
    losses: Mapping[str, FloatArray]
    p_values: Mapping[str, float]
    units: str = "y"
    options: Mapping[str, str | float] = field(default_factory=dict)
    curves: Mapping[str, RejectionCurve] = field(init=False)

    def __post_init__(self) -> None:
        curves = {name: rejection_curve(self.scores, held) for name, held in self.losses.items()}
        object.__setattr__(self, "curves", curves)

    def at(
        self, loss: str = "mae", thresholds: FloatArray | None = None
    ) -> tuple[FloatArray, FloatArray]:
        """Share withheld and loss of the rows kept, at thresholds of CCE (published by default).

        Raises
        ------
        InputError
            If there is no such loss.
        """
        if loss not in self.losses:
            raise InputError(f"loss must be one of {', '.join(self.losses)}, got {loss!r}")
        levels = THRESHOLDS if thresholds is None else thresholds
        return rejection_at(self.scores, self.losses[loss], levels)

    def drawn(self) -> tuple[Curve, ...]:
        """A curve for each loss: by CCE, with random order as reference and its 95 % band."""
        found = []
        for loss, curve in self.curves.items():
            low, high = random_band(self.losses[loss])
            found.append(
                Curve(
                    name=f"rejection_{loss}",
                    x=curve.rejected,
                    y=curve.error,
                    reference=np.full(len(curve.error), curve.random),
                    lower=low,
                    upper=high,
                    band="95 % of random orders",
                    x_label="share withheld",
                    y_label=f"{_TITLES[loss]} of the rows kept",
                    model=self.model,
                    group=f"task={self.task}",
                    area=curve.area,
                    hover={"oracle": curve.oracle},
                )
            )
        return tuple(found)

    def records(self) -> tuple[Record, ...]:
        """The gain of each loss: 0 for random order, 1 for the order of the losses themselves."""
        return tuple(
            Record(
                metric=f"rejection_gain_{loss}",
                value=curve.gain,
                n=float(len(self.scores)),
                direction=Direction.HIGHER,
                notion=Notion.LOCAL,
                target=1.0,
                null=0.0,
                model=self.model,
                group=f"task={self.task}",
                reason="" if math.isfinite(curve.gain) else "all losses are equal",
                options={
                    **self.options,
                    "area": curve.area,
                    "random_area": curve.random_area,
                    "oracle_area": curve.oracle_area,
                    "p_value": self.p_values[loss],
                },
            )
            for loss, curve in self.curves.items()
        )


def random_band(loss: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Between which the mean loss of rows kept at random lies in 95 % of orders, nearly.

    The mean of m of n rows, drawn without replacement, has variance s²/m (1 − m/n), s² with
    divisor n − 1; the band takes the normal limit.

    Parameters
    ----------
    loss : ndarray of float, shape (n,)
        Losses of all rows.

    Returns
    -------
    lower, upper : ndarray of float, shape (n,)
        At shares withheld of 0, 1/n, …

    Examples
    --------
    >>> low, high = random_band(np.array([0.0, 1.0, 2.0]))
    >>> float(low[0]), float(high[0])
    (1.0, 1.0)
    """
    n = len(loss)
    kept = np.arange(n, 0, -1)
    s = float(loss.std(ddof=1)) if n > 1 else 0.0
    half = 1.959963984540054 * s * np.sqrt((1.0 - kept / n) / kept)
    return loss.mean() - half, loss.mean() + half


def order_p_value(
    loss: FloatArray, area: float, rng: np.random.Generator, replicates: int = 999
) -> float:
    """Share of random orders whose area under the rejection curve is at most this one.

    The area is a weighted sum of the losses: the row that is withheld last but i − 1 has weight
    (1/n) Σ_{m ≥ i} 1/m.

    Parameters
    ----------
    loss : ndarray of float, shape (n,)
        Losses.
    area : float
        Of the order that is tested.
    rng : numpy.random.Generator
        Draws the orders.
    replicates : int
        How many.

    Returns
    -------
    float
        (1 + #)/(replicates + 1).
    """
    n = len(loss)
    weights = np.cumsum(1.0 / np.arange(n, 0, -1))[::-1] / n
    below, left = 0, replicates
    while left:
        block = min(left, max(1, _BLOCK // n))
        orders = rng.permuted(np.broadcast_to(loss, (block, n)), axis=1)
        below += int((orders @ weights <= area + 1e-12 * max(abs(area), 1.0)).sum())
        left -= block
    return (1 + below) / (replicates + 1)


def rejection(
    task: CongruenceTask,
    models: Mapping[str, Fitted],
    *,
    measure: CongruenceMeasure | None = None,
    embed: Embedding | None = None,
    own_features: bool = False,
    replicates: int = 999,
    seed: int = 0,
) -> dict[str, Rejection]:
    """Withhold test rows by a CCE that knows labels of the validation part alone.

    Parameters
    ----------
    task : CongruenceTask
        Its validation part is the reference S; its test part is judged.
    models : mapping of str to Fitted
        Fitted to the training part.
    measure : CongruenceMeasure, optional
        How; by default one draw a row, as published. Several sets of draws are averaged.
    embed : callable, optional
        Inputs to embeddings; the task's by default.
    own_features : bool
        Whether each model's own features are the embedding.
    replicates : int
        Random orders behind the p-values.
    seed : int
        Fixes draws and orders.

    Returns
    -------
    dict of str to Rejection

    Raises
    ------
    InputError
        If `replicates` is below 1, both embeddings are asked for, or a model has no features.
    UnanswerableError
        If a model has failed, or gives no laws of y.
    """
    check_whole(replicates, "replicates", 1)
    if own_features and embed is not None:
        raise InputError("embed must be left out where own_features is true, got both")
    how = measure or CongruenceMeasure(draws=1, bootstraps=0)
    how = how if own_features or embed is not None else how.of_task(task)
    space = None if own_features else embed or task.embed
    found = {}
    for place, (label, model) in enumerate(models.items()):
        val = answer(model, task.val, space, model=label)
        test = answer(model, task.test, space, model=label)
        draws = [child(seed, "congruence rejection", label, number) for number in range(how.sets)]
        with part_of(f"rejection by {label}", place, len(models)):
            sets = [congruence_at(val, test.embedding, how, rng) for rng in draws]
        scores, known = np.mean(sets, axis=0), losses(test)
        rows = {"mae": known["error"]} | ({"nll": known["nll"]} if "nll" in known else {})
        areas = {loss: rejection_curve(scores, values).area for loss, values in rows.items()}
        rng = child(seed, "congruence rejection orders", label)
        found[label] = Rejection(
            task=task.name,
            model=label,
            scores=scores,
            losses=rows,
            p_values={
                loss: order_p_value(rows[loss], area, rng, replicates)
                for loss, area in areas.items()
            },
            units=task.units,
            options=how.options(),
        )
    tell("rejection", len(models), len(models))
    return found
