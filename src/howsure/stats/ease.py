"""Ease of an example: how little the prediction moves when its input is disturbed."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, Literal, Self, final

import numpy as np
import numpy.typing as npt

from howsure.core.arrays import AnyArray, FloatArray, as_matrix
from howsure.core.classes import frozen
from howsure.core.convert import check_whole
from howsure.core.errors import InputError
from howsure.core.rng import KeyArray, row_keys, row_normals

Outputs = AnyArray
Similarity = Callable[[Outputs, Outputs], FloatArray]

# They do not say which they use; 20 lies within.
REPEATS = 20
"""Disturbances an example, as proposed for Jang and Lee's M; they vary it from 10 to 50."""
# Disturbed rows in one call of a model, which bounds its memory: 16 k images of 3 × 32 × 32 in 32
# bits are 200 MB.
_DISTURBED_ROWS_AT_ONCE = 16_384


def ease(
    predict: Callable[[Any], npt.ArrayLike],
    x: npt.ArrayLike,
    perturbation: Perturbation | float,
    *,
    repeats: int = REPEATS,
    similarity: Literal["cosine", "absolute", "wasserstein"] | Similarity | None = None,
    seed: int = 0,
) -> FloatArray:
    """Mean similarity of a prediction to those of disturbed inputs; higher is easier.

    E(x) = (1/M) Σ_m sim(f(x), f(t_m(x))).

    Parameters
    ----------
    predict : callable
        Maps inputs, shape (k, …), to outputs of k rows: class probabilities (k, classes), means
        (k,), or means and standard deviations (k, 2) for ``wasserstein``. Called on batches.
    x : array-like of shape (n, …)
        Inputs.
    perturbation : Perturbation or float
        How inputs are disturbed; a number is the standard deviation of Gaussian noise.
    repeats : int
        Disturbances M an example, at least 1.
    similarity : {"cosine", "absolute", "wasserstein"} or callable, optional
        ``cosine`` of two rows of outputs; ``absolute``: −|μ − μ'|; ``wasserstein``: minus the
        2-Wasserstein distance of two normal laws. A function takes two arrays of outputs and
        gives one number a row. Cosine if outputs have columns, absolute if they have none.
    seed : int
        Seed of the disturbances, which depend on a row's content and not on its place.

    Returns
    -------
    ndarray of float, shape (n,)
        Cosine: in [0, 1] for probabilities. The others: at most 0, in the units of y.

    Raises
    ------
    InputError
        If inputs or outputs are not finite, or an option breaks its rule.

    Notes
    -----
    Labels are not read, so that ease may serve to form conformal groups. Source: Jang and Lee
    2025, equation 1, where f is the softmax and t adds Gaussian noise; that it is averaged over M
    draws is inferred. For regression the paper's similarity is not known.

    Examples
    --------
    >>> x = np.array([[-3.0], [0.1], [3.0]])
    >>> def predict(x):
    ...     p = 1 / (1 + np.exp(-5 * x[:, 0]))
    ...     return np.column_stack((1 - p, p))
    >>> ease(predict, x, 0.3).round(2)
    array([1.  , 0.88, 1.  ])
    """
    check_whole(repeats, "repeats")
    if not hasattr(perturbation, "apply"):
        perturbation = GaussianNoise(perturbation)
    inputs = _inputs(x)
    keys = row_keys(inputs.reshape(len(inputs), -1))
    result = np.empty(len(inputs))
    step = max(1, _DISTURBED_ROWS_AT_ONCE // repeats)
    for start in range(0, len(inputs), step):
        rows = inputs[start : start + step]
        batch_keys = keys[start : start + step]
        plain = _outputs(predict(rows), len(rows))
        many = [perturbation.apply(rows, batch_keys, seed, m) for m in range(repeats)]
        moved = _outputs(predict(np.concatenate(many)), repeats * len(rows))
        compare = _similarity(similarity, plain)
        alike = compare(np.tile(plain, (repeats,) + (1,) * (plain.ndim - 1)), moved)
        result[start : start + step] = alike.reshape(repeats, len(rows)).mean(axis=0)
    return result


def surrogate_ease(probabilities: npt.ArrayLike, *, sd: float = 1.0, seed: int = 0) -> FloatArray:
    """Ease from class probabilities alone, by noise on their logarithms; where inputs are lost.

    Examples
    --------
    >>> sure, unsure = surrogate_ease([[0.98, 0.01, 0.01], [0.4, 0.3, 0.3]])
    >>> bool(sure > unsure)
    True
    """
    table = as_matrix(probabilities, "probabilities")
    if (table < 0).any():
        raise InputError(f"probabilities must not be negative, got {table.min():g}")
    logs = np.log(np.maximum(table, np.finfo(np.float64).tiny))
    return ease(_softmax, logs, GaussianNoise(sd), seed=seed)


def _softmax(logits: FloatArray) -> FloatArray:
    raised = np.exp(logits - logits.max(axis=1, keepdims=True))
    return np.asarray(raised / raised.sum(axis=1, keepdims=True))


def _inputs(x: npt.ArrayLike) -> Inputs:
    inputs = np.asarray(x)
    if inputs.dtype.kind not in "iufb" or inputs.ndim < 2 or not inputs.size:
        raise InputError(
            "x must be numbers of shape (n, …) with at least one row and one column, got "
            f"shape {inputs.shape} of {inputs.dtype}"
        )
    if inputs.dtype.kind != "f":
        inputs = inputs.astype(np.float64)
    if not np.isfinite(inputs).all():
        raise InputError("x must be finite")
    return inputs


def _outputs(value: npt.ArrayLike, rows: int) -> Outputs:
    outputs = np.asarray(value, dtype=np.float64)
    if outputs.ndim not in (1, 2) or len(outputs) != rows:
        raise InputError(f"predict must give {rows} rows of outputs, got shape {outputs.shape}")
    if not np.isfinite(outputs).all():
        raise InputError("predict must give finite outputs")
    return outputs


def _similarity(choice: str | Similarity | None, outputs: Outputs) -> Similarity:
    if choice is None:
        return _cosine if outputs.ndim == 2 else _absolute
    if callable(choice):
        return choice
    similarities: dict[str, tuple[Similarity, bool]] = {
        "cosine": (_cosine, outputs.ndim == 2),
        "absolute": (_absolute, outputs.ndim == 1),
        "wasserstein": (_wasserstein, outputs.ndim == 2 and outputs.shape[1] == 2),
    }
    if choice not in similarities:
        raise InputError(
            f"similarity must be one of {sorted(similarities)} or a function, got {choice!r}"
        )
    compare, fits = similarities[choice]
    if not fits:
        raise InputError(f"similarity {choice!r} does not fit outputs of shape {outputs.shape}")
    return compare


def _cosine(first: Outputs, second: Outputs) -> FloatArray:
    dots = np.einsum("ij,ij->i", first, second)
    norms = np.linalg.norm(first, axis=1) * np.linalg.norm(second, axis=1)
    if not norms.all():
        raise InputError("predict must give no row of zeros for the cosine")
    return np.asarray(np.minimum(dots / norms, 1.0))


def _absolute(first: Outputs, second: Outputs) -> FloatArray:
    return np.asarray(-np.abs(first - second))


def _wasserstein(first: Outputs, second: Outputs) -> FloatArray:
    return np.asarray(-np.hypot(*(first - second).T))


# ---- small disturbances of inputs, drawn for each row by what it holds ---------------------------

Inputs = npt.NDArray[np.floating[Any]]


class Perturbation(ABC):
    """A random disturbance of rows of inputs. Subclasses are final."""

    __slots__ = ()

    @property
    @abstractmethod
    def label(self) -> str:
        """What reports call it."""

    @abstractmethod
    def apply(self, x: Inputs, keys: KeyArray, seed: int, repeat: int) -> Inputs:
        """Disturbed copies of rows.

        Parameters
        ----------
        x : ndarray of shape (n, …)
            Inputs.
        keys : ndarray of uint64, shape (n,)
            From `howsure.core.rng.row_keys`: a row's draw depends on its key alone.
        seed : int
            The experiment's seed.
        repeat : int
            Which of several disturbances.
        """


@final
@frozen(init=False, eq=False)
class GaussianNoise(Perturbation):
    """Normal noise added to every entry.

    Parameters
    ----------
    sd : float or array-like of shape (…)
        Standard deviation of the noise, in the units of x; one for all entries or one an entry.

    Raises
    ------
    InputError
        If it is negative or not finite.

    Examples
    --------
    >>> noise = GaussianNoise.relative(np.array([[0.0], [2.0]]), 0.1)
    >>> noise.sd
    array([0.1])
    """

    sd: FloatArray

    def __init__(self, sd: npt.ArrayLike) -> None:
        value = np.asarray(sd, dtype=np.float64)
        if not (np.isfinite(value).all() and (value >= 0).all()):
            raise InputError(f"sd must be finite and not negative, got {value!r}")
        object.__setattr__(self, "sd", value)

    @classmethod
    def relative(cls, x: npt.ArrayLike, share: float, *, each_column: bool = True) -> Self:
        """Noise with a share of the standard deviation of these inputs.

        Parameters
        ----------
        x : array-like of shape (n, …)
            Inputs that give the scale; those of calibration, say.
        share : float
            Share of their standard deviation; Jang and Lee do not say theirs, 0.05 to 0.5 is
            usual.
        each_column : bool
            Whether each column has its own, as for tables; otherwise all entries share one, as
            for images and embeddings.

        Raises
        ------
        InputError
            If the share is negative or not finite.
        """
        if not (np.isfinite(share) and share >= 0):
            raise InputError(f"share must be finite and not negative, got {share!r}")
        values = np.asarray(x, dtype=np.float64)
        return cls(share * values.std(axis=0 if each_column else None))

    @property
    def label(self) -> str:
        """What reports call it."""
        return "Gaussian noise"

    def apply(self, x: Inputs, keys: KeyArray, seed: int, repeat: int) -> Inputs:
        """Rows with noise added; see `Perturbation.apply`."""
        columns = int(np.prod(x.shape[1:]))
        noise = row_normals(seed, f"gaussian noise {repeat}", keys, columns).reshape(x.shape)
        noise *= self.sd
        return np.asarray(x + noise, dtype=x.dtype if x.dtype.kind == "f" else np.float64)
