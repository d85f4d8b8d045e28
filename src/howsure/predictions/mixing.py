"""Several beliefs as one: their mixture."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from howsure.core.arrays import FloatArray, as_matrix
from howsure.core.errors import InputError
from howsure.predictions.distribution import Distribution
from howsure.predictions.laws import Law, Parameters
from howsure.predictions.mixtures import MixtureLaw


def mixture(beliefs: Sequence[Distribution], weights: npt.ArrayLike | None = None) -> Distribution:
    """The mixture of several distributions of the same rows, such as those of an ensemble.

    Parts that are mixtures themselves are taken apart: the outcome is one mixture of plain laws.

    Parameters
    ----------
    beliefs : sequence of Distribution
        k distributions of n rows each, all discrete or none. One alone comes back as it is.
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
    laws: list[Law] = []
    for belief, share in zip(beliefs, shares.T, strict=True):
        for law, weight, own in _parts(belief):
            laws.append(law)
            parameters[f"weight_{len(laws)}"] = share * weight
            parameters |= {f"{name}_{len(laws)}": held for name, held in own.items()}
    return Distribution(MixtureLaw(laws), parameters)


def _parts(belief: Distribution) -> list[tuple[Law, FloatArray, Parameters]]:
    """The law itself, or, of a mixture, its parts: a mixture of mixtures is one mixture."""
    if isinstance(belief.law, MixtureLaw):
        return belief.law.split(belief.parameters)
    return [(belief.law, np.ones(belief.n), belief.parameters)]
