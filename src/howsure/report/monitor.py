"""Rows that come without labels, watched by a labelled reference."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, final

import numpy as np
import numpy.typing as npt

from howsure.core.arrays import FloatArray, as_matrix
from howsure.core.errors import InputError
from howsure.core.progress import part_of, reported
from howsure.core.records import Table
from howsure.core.threads import one_thread
from howsure.metrics.congruence import CongruenceReference, NullReference
from howsure.metrics.congruence.view import (
    CongruenceOptions,
    Mode,
    congruence_mode,
    fitted_reference,
    reference_rows,
    right_model,
)
from howsure.predictions import EvalSet, content_order
from howsure.stats.gram import tiles

CHUNK = 20_000
"""Rows that are scored at once."""
_PLAIN = CongruenceOptions()


@final
@dataclass(frozen=True, slots=True)
class Monitor:
    """A labelled reference that says of new inputs how far the model is from nature there.

    Made by `fit_monitor`. The conditional congruence error needs no label at the point where it
    is evaluated, so rows can be scored as they come.

    Attributes
    ----------
    part : EvalSet
        The labelled rows.
    reference : CongruenceReference
        Fitted on them.
    mode : {"exact", "samples"}
        How beliefs are embedded.
    encoder : TabularEncoder, optional
        What turns features into inputs; None where the reference came with an embedding.
    seed : int
        Of the draws.
    options : CongruenceOptions
        Kernel, λ, draws.
    """

    part: EvalSet
    reference: CongruenceReference
    mode: Mode
    encoder: Any
    seed: int
    options: CongruenceOptions = _PLAIN

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
    def compare(self, grid: FloatArray) -> NullReference:
        """Errors at inputs beside those of a right model there."""
        with part_of(f"congruence of {self.part.model}"):
            parts = [
                right_model(self.reference, self.part, self.mode, grid=grid[rows], seed=self.seed)
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
        null = self.compare(self.inputs(features, embedding))
        return scored(null, np.arange(len(null.point_observed)), self.part.model)


def scored(null: NullReference, names: npt.NDArray[Any], model: str) -> Table:
    """The table ``monitor`` of scores that were compared with a right model's."""
    return Table(
        name="monitor",
        columns={
            "row": names,
            "cce": null.point_observed,
            "perfect": null.point_expected,
            "upper": null.point_upper,
            "p_value": null.point_p_value,
            "flagged": null.point_observed > null.point_upper,
        },
        model=model,
        notes=(
            "CCE at each row from a labelled reference; a row is flagged where a right model "
            "would score lower in 95 % of worlds. One row in twenty is flagged by chance."
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
    """Fit a monitor on labelled rows with features or an embedding, and a predictive law."""
    encoder = None
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
    part = reference_rows(reference, seed=seed, everything=everything)
    mode = congruence_mode([part], options.draws, everything=True)
    fitted = fitted_reference(part, mode, seed=seed, options=options)
    return Monitor(part, fitted, mode, encoder, seed, options)


def _joined(parts: Sequence[NullReference]) -> NullReference:
    """One comparison of several blocks of rows, whose replicates are the same worlds."""
    sizes = np.array([len(part.point_observed) for part in parts], dtype=np.float64)
    means = np.average([part.replicates for part in parts], axis=0, weights=sizes)
    observed = float(np.average([part.observed for part in parts], weights=sizes))
    level = parts[0].level
    ends = np.quantile(means, [0.5 * (1.0 - level), 0.5 * (1.0 + level)])
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
    )
