"""Several beliefs as one: their mixture."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from howsure.core.arrays import FloatArray, as_matrix
from howsure.core.errors import InputError
from howsure.predictions.distribution import Distribution
from howsure.predictions.mixtures import MixtureLaw


def mixture(beliefs: Sequence[Distribution], weights: npt.ArrayLike | None = None) -> Distribution:
    """The mixture of several beliefs about the same rows, such as those of an ensemble.

    Parameters
    ----------
    beliefs : sequence of Distribution
        k beliefs of n rows each, all discrete or none. One alone comes back as it is.
    weights : array-like of shape (k,) or (n, k), optional
        Probabilities of the parts; equal if omitted.

    Returns
    -------
    Distribution

    Raises
    ------
    InputError
        If there is none, numbers of rows differ, kinds differ, or weights are no probabilities.

    Examples
    --------
    >>> both = mixture([Distribution.normal([0.0], [1.0]), Distribution.normal([4.0], [1.0])])
    >>> both.law.name, both.point(), both.quantile([0.5])
    ('norm+norm', array([2.]), array([[2.]]))
    """
    if not beliefs:
        raise InputError("beliefs must hold at least one distribution, got none")
    count, n = len(beliefs), beliefs[0].n
    if any(belief.n != n for belief in beliefs):
        raise InputError(f"beliefs must have one number of rows, got {[b.n for b in beliefs]}")
    shares = np.full((n, count), 1.0 / count)
    if weights is not None:
        given = np.asarray(weights)
        table = np.broadcast_to(given, (n, *given.shape)) if given.ndim == 1 else given
        shares = as_matrix(table, "weights", length=n, columns=count)
    if count == 1:
        return beliefs[0]
    parameters: dict[str, FloatArray] = {}
    for number, (belief, share) in enumerate(zip(beliefs, shares.T, strict=True), 1):
        parameters[f"weight_{number}"] = share
        parameters |= {f"{name}_{number}": held for name, held in belief.parameters.items()}
    return Distribution(MixtureLaw([belief.law for belief in beliefs]), parameters)
