"""Rows that come without labels, watched by a labelled reference."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, final

import numpy as np
import numpy.typing as npt

from howsure.core.arrays import BoolArray, FloatArray, IntArray, as_matrix
from howsure.core.brief import brief_repr
from howsure.core.errors import InputError
from howsure.core.formats import number, percent
from howsure.core.progress import part_of, reported
from howsure.core.records import Table
from howsure.core.threads import one_thread
from howsure.metrics.congruence import CongruenceReference, NullReference
from howsure.metrics.congruence.laws import LAWS
from howsure.metrics.congruence.null import NearErrors
from howsure.metrics.congruence.view import (
    CongruenceOptions,
    Mode,
    congruence_mode,
    fitted_reference,
    reference_rows,
    right_model,
    support_rows,
)
from howsure.predictions import EvalSet, content_order
from howsure.stats.gram import tiles
from howsure.stats.neighbours import Neighbours, fit_neighbours, rank_of

if TYPE_CHECKING:
    from howsure.inputs.encoders.tabular import TabularEncoder

CHUNK = 20_000
"""Rows that are scored at once."""
OUTSIDE = 0.01
"""Share of rows from the reference's own law that lie outside it; 1/(n + 1) of few rows."""
FLAGGED = 0.03
"""Level at which a row is flagged: with rows outside, at most 5 % of right rows near an edge."""
LABELS = {
    "support_p_value": "p of lying inside",
    "distance": "Distance, in sd",
    "cce": "CCE",
    "perfect": "CCE of a perfect model",
    "upper": "Upper end of a perfect model's CCE",
    "p_value": "p-value",
    "near_p_value": "p of nearest rows",
}
"""What columns of rows are called, in every table and figure."""
_PLAIN = CongruenceOptions()


@dataclass(frozen=True, slots=True)
class Judged:
    """New rows as inputs, which of them lie inside the reference, and errors there."""

    grid: FloatArray  # shape (m, d): inputs
    # shape (m,): of lying outside; to the 10th nearest reference row, in units of the inputs
    support_p_value: FloatArray
    distance: FloatArray
    outside: BoolArray  # shape (m,): rows where the model cannot be judged
    why: npt.NDArray[Any]  # shape (m,): what sets each row outside apart; empty inside
    # errors of the k rows inside beside a right model's; None where there is no such row, or the
    # reference states no distribution
    null: NullReference | None


@final
@dataclass(frozen=True, slots=True)
class Monitor:
    """A reference that says of new inputs whether it has their like, and if the model errs there.

    Made by `fit_monitor`. The conditional congruence error needs no label at the point where it
    is evaluated, so rows can be scored as they come. It needs a predictive distribution in the
    reference; whether rows lie inside needs inputs alone.
    """

    part: EvalSet  # the reference's rows
    # fitted on them, and how beliefs are embedded; None where they state no distribution
    reference: CongruenceReference | None
    mode: Mode | None  # {"exact", "samples"}
    encoder: Any  # what turns features into inputs; None where the reference came with an embedding
    neighbours: Neighbours  # nearest rows of the reference, in units of the inputs
    # codes of the labels that the reference has, by feature; of constants too
    seen: Mapping[str, Mapping[Any, int]]
    seed: int  # of the draws
    options: CongruenceOptions = _PLAIN  # kernel, λ, draws

    __repr__ = brief_repr

    @property
    def around(self) -> int:
        """How many reference rows stand for the surroundings of a row: √(2n)."""
        return max(1, min(self.part.n - 1, math.ceil(math.sqrt(2.0 * self.part.n))))

    @property
    def chance(self) -> float:
        """Share of rows from the reference's own law that lie outside."""
        return rank_of(self.part.n, OUTSIDE) / (self.part.n + 1.0)

    def inputs(
        self,
        features: Mapping[str, npt.NDArray[Any]] | None = None,
        embedding: npt.ArrayLike | None = None,
    ) -> FloatArray:
        """The inputs of new rows, made as the reference's were."""
        if self.encoder is None:
            assert self.part.embedding is not None
            if embedding is None:
                raise InputError("embedding is needed, as the reference came with one, got none")
            return as_matrix(embedding, "embedding", columns=self.part.embedding.shape[1])
        if not features:
            raise InputError("features are needed, as the reference came with them, got none")
        return np.asarray(self.encoder.transform(features), dtype=np.float64)

    @one_thread()
    def judge(
        self,
        features: Mapping[str, npt.NDArray[Any]] | None = None,
        embedding: npt.ArrayLike | None = None,
    ) -> Judged:
        """Find which rows lie outside the reference, and the errors at the others."""
        grid = self.inputs(features, embedding)
        codes = _codes(self.seen, features or {}, len(grid))
        p, distance = self.neighbours.outside(grid, codes)
        outside = p <= self.chance
        blind = self.reference is None or outside.all()
        null = None if blind else self.compare(grid[~outside])
        why = _reasons(self, features or {}, outside)
        return Judged(grid, p, distance, outside, why, null)

    @one_thread()
    def compare(self, grid: FloatArray) -> NullReference:
        """Errors at inputs beside those of a right model there."""
        assert self.reference is not None
        assert self.mode is not None
        with part_of(f"congruence of {self.part.model}"):
            parts = [
                right_model(
                    self.reference,
                    self.part,
                    self.mode,
                    grid=grid[rows],
                    seed=self.seed,
                    near=self.neighbours.weights(grid[rows], self.around),
                )
                for rows in reported(tiles(len(grid), CHUNK), "scores of rows")
            ]
        return parts[0] if len(parts) == 1 else _joined(parts)

    def score(
        self,
        features: Mapping[str, npt.NDArray[Any]] | None = None,
        *,
        embedding: npt.ArrayLike | None = None,
    ) -> Table:
        """Score rows by their inputs."""
        judged = self.judge(features, embedding)
        return scored(self, judged, np.arange(len(judged.grid)))


def scored(monitor: Monitor, judged: Judged, names: npt.NDArray[Any]) -> Table:
    """The table ``monitor``: rows that were judged."""
    null, inside = judged.null, ~judged.outside

    def spread(values: FloatArray) -> FloatArray:
        out = np.full(len(names), math.nan)
        out[inside] = values
        return out

    support = (
        f"A row is outside if it lies farther from its {monitor.neighbours.near.shape[1]} "
        f"nearest reference rows than all but {percent(monitor.chance)} of those themselves. "
        "It cannot be judged."
    )
    if monitor.reference is None:
        return Table(
            name="monitor",
            columns={
                "row": names,
                "outside": judged.outside,
                "support_p_value": judged.support_p_value,
                "distance": judged.distance,
                "why": judged.why,
            },
            labels=LABELS,
            model=monitor.part.model,
            notes=support,
        )
    none = np.zeros(0)
    p_value = spread(none if null is None else null.point_p_value)
    near = spread(none if null is None or null.near is None else null.near.point_p_value)
    return Table(
        name="monitor",
        columns={
            "row": names,
            "outside": judged.outside,
            "support_p_value": judged.support_p_value,
            "cce": spread(none if null is None else null.point_observed),
            "perfect": spread(none if null is None else null.point_expected),
            "upper": spread(none if null is None else null.point_upper),
            "p_value": p_value,
            "near_p_value": near,
            "flagged": (p_value <= FLAGGED) & (near <= FLAGGED),
            "why": judged.why,
        },
        labels=LABELS,
        model=monitor.part.model,
        notes=(
            f"{support} A row inside is flagged if two errors are significant at "
            f"{percent(FLAGGED)}: its CCE, and that of its {monitor.around} nearest reference rows "
            f"alone. Of rows without a fault, at most {percent(FLAGGED)} are flagged by chance."
        ),
    )


@one_thread()
def fit_monitor(
    reference: EvalSet,
    *,
    seed: int = 0,
    everything: bool = False,
    options: CongruenceOptions = _PLAIN,
) -> Monitor:
    """Fit a monitor on rows with features or an embedding; of errors where they state a law."""
    encoder: TabularEncoder | None = None
    reference = reference.take(content_order([reference]))
    if reference.embedding is None:
        if not reference.features:
            raise InputError(
                "the reference must hold features or an embedding, got neither: name them with "
                "--features, --embedding or --encode"
            )
        from howsure.inputs.encoders.tabular import tabular_encoder

        encoder = tabular_encoder(reference.features)
        reference = replace(reference, embedding=encoder.transform(reference.features))
    mode: Mode | None = None
    fitted: CongruenceReference | None = None
    if any(isinstance(belief, LAWS) for belief in reference.beliefs):
        part = reference_rows(reference, seed=seed, everything=everything)
        mode = congruence_mode([part], options.draws, everything=True)
        fitted = fitted_reference(part, mode, seed=seed, options=options)
    else:
        part = support_rows(reference, seed=seed, everything=everything)
    seen = {} if encoder is None else _seen(part.features, encoder.dropped)
    assert part.embedding is not None
    neighbours = fit_neighbours(part.embedding, _codes(seen, part.features, part.n))
    return Monitor(part, fitted, mode, encoder, neighbours, seen, seed, options)


def _seen(
    features: Mapping[str, npt.NDArray[Any]], dropped: Sequence[str]
) -> dict[str, dict[Any, int]]:
    """Codes of the labels of columns of labels, and of columns that vectors leave out."""
    columns = {
        name: column.tolist()
        for name, column in features.items()
        if column.dtype.kind == "O" or name in dropped
    }
    return {
        name: {label: code for code, label in enumerate(dict.fromkeys(column))}
        for name, column in columns.items()
    }


def _codes(
    seen: Mapping[str, Mapping[Any, int]], features: Mapping[str, npt.NDArray[Any]], rows: int
) -> IntArray:
    """Labels as codes of the reference, −1 for those that it does not have."""
    out = np.zeros((rows, len(seen)), dtype=np.int64)
    for place, (name, codes) in enumerate(seen.items()):
        if name in features:  # a constant that no input is made of may be left out
            out[:, place] = [codes.get(label, -1) for label in np.asarray(features[name]).tolist()]
    return out


def _reasons(
    monitor: Monitor, features: Mapping[str, npt.NDArray[Any]], outside: BoolArray
) -> npt.NDArray[Any]:
    """For each row outside the feature that is farthest beyond the reference, or that is new."""
    told = np.full(len(outside), "", dtype=object)
    rows = np.flatnonzero(outside)
    told[rows] = "few reference rows nearby"
    farthest = np.zeros(len(rows))
    for name, held in monitor.part.features.items():
        if monitor.encoder is None or name not in features:
            continue
        values = np.asarray(features[name])[rows]
        if name in monitor.seen:
            new = [label not in monitor.seen[name] for label in values.tolist()]
            for row in rows[new]:
                told[row] = f"new {name}"
            farthest[new] = math.inf
        elif held.dtype.kind in "biuf":
            column, known = values.astype(np.float64), held.astype(np.float64)
            low, high, sd = float(known.min()), float(known.max()), float(known.std())
            for words, end, beyond in (
                ("below", low, (low - column) / sd),
                ("above", high, (column - high) / sd),
            ):
                for place in np.flatnonzero(beyond > farthest):
                    told[rows[place]] = f"{name} {words} {number(end)}"
                    farthest[place] = beyond[place]
    return told


def _joined(parts: Sequence[NullReference]) -> NullReference:
    """One comparison of several blocks of rows, whose replicates are the same worlds."""
    sizes = np.array([len(part.point_observed) for part in parts], dtype=np.float64)
    means = np.average([part.replicates for part in parts], axis=0, weights=sizes)
    observed = float(np.average([part.observed for part in parts], weights=sizes))
    level = parts[0].level
    ends = np.quantile(means, [0.5 * (1.0 - level), 0.5 * (1.0 + level)])
    near = [part.near for part in parts if part.near is not None]
    return replace(
        parts[0],
        observed=observed,
        expected=float(means.mean()),
        upper=float(np.quantile(means, level)),
        range=(float(ends[0]), float(ends[1])),
        p_value=float((1 + (means >= observed).sum()) / (len(means) + 1)),
        replicates=means,
        point_observed=np.concatenate([part.point_observed for part in parts]),
        point_expected=np.concatenate([part.point_expected for part in parts]),
        point_upper=np.concatenate([part.point_upper for part in parts]),
        point_p_value=np.concatenate([part.point_p_value for part in parts]),
        near=NearErrors(
            observed=float(np.average([part.observed for part in near], weights=sizes)),
            replicates=np.average([part.replicates for part in near], axis=0, weights=sizes),
            point_observed=np.concatenate([part.point_observed for part in near]),
            point_p_value=np.concatenate([part.point_p_value for part in near]),
            shifted=np.average([part.shifted for part in near], axis=0, weights=sizes),
        ),
    )
