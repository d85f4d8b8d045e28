"""Rows that come without labels, watched by a labelled reference."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, final

import numpy as np
import numpy.typing as npt

from howsure.core.errors import InputError
from howsure.core.records import Table
from howsure.metrics.congruence import CongruenceReference
from howsure.metrics.evaluate import (
    congruence_mode,
    fitted_reference,
    reference_rows,
    right_model,
)
from howsure.metrics.evaluate.congruence import Mode
from howsure.predictions import EvalSet


@final
@dataclass(frozen=True, slots=True)
class Monitor:
    """A labelled reference that says of new inputs how far the model is from nature there.

    Made by `fit_monitor`. The conditional congruence error needs no label at the point where it
    is evaluated, so rows can be scored as they come.
    """

    part: EvalSet
    reference: CongruenceReference
    mode: Mode
    encoder: Any
    seed: int

    def score(self, features: Mapping[str, npt.NDArray[Any]]) -> Table:
        """Score rows by their features.

        Parameters
        ----------
        features : mapping of str to ndarray of shape (n,)
            The same features as the reference's.

        Returns
        -------
        Table
            Named ``monitor``: row, cce, perfect (of a right model there), upper (its 95 %
            quantile), p_value, flagged.
        """
        grid = np.asarray(self.encoder.transform(features), dtype=np.float64)
        null = right_model(self.reference, self.part, self.mode, grid=grid, seed=self.seed)
        return Table(
            name="monitor",
            columns={
                "row": np.arange(len(grid)),
                "cce": null.point_observed,
                "perfect": null.point_expected,
                "upper": null.point_upper,
                "p_value": null.point_p_value,
                "flagged": null.point_observed > null.point_upper,
            },
            model=self.part.model,
            notes=(
                "CCE at each row from a labelled reference; a row is flagged where a right model "
                "would score lower in 95 % of worlds. One row in twenty is flagged by chance."
            ),
        )


def fit_monitor(reference: EvalSet, *, seed: int = 0, everything: bool = False) -> Monitor:
    """Fit a monitor on labelled rows with features and a predictive law.

    Parameters
    ----------
    reference : EvalSet
        Labelled rows that the model was not trained on.
    seed : int
        Fixes draws and the choice of rows.
    everything : bool
        Use all rows; by default at most 2,000, chosen by their content.

    Returns
    -------
    Monitor

    Raises
    ------
    InputError
        If the reference has no features.
    UnanswerableError
        If it holds no predictive law, or its rows are weighted or clustered.

    Examples
    --------
    >>> from howsure.predictions import Distribution
    >>> x = np.linspace(-1.0, 1.0, 200)
    >>> held = EvalSet.checked(
    ...     3.0 * x, Distribution.normal(np.abs(3.0 * x), np.full(200, 0.5)), features={"x": x}
    ... )
    >>> scored = fit_monitor(held).score({"x": np.array([-0.9, 0.9])})
    >>> bool(scored.columns["cce"][0] > 3 * scored.columns["cce"][1])
    True
    """
    if not reference.features:
        raise InputError("the reference must hold features, got none: name them with --features")
    from howsure.inputs.encoders.tabular import tabular_encoder

    encoder = tabular_encoder(reference.features)
    embedded = replace(reference, embedding=encoder.transform(reference.features))
    part = reference_rows(embedded, seed=seed, everything=everything)
    mode = congruence_mode([part])
    return Monitor(part, fitted_reference(part, mode, seed=seed), mode, encoder, seed)
