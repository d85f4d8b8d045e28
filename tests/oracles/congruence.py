"""Dense reference for the maximum conditional mean discrepancy, written from its definition.

Two general samples, explicit inverses, whole Gram matrices, 64 bits: slow and plain.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
Kernel = Callable[[Array, Array], Array]


def rbf(gamma: float) -> Kernel:
    """exp(−γ‖a−b‖²), from explicit differences."""
    return lambda a, b: np.exp(-gamma * np.square(a[:, None, :] - b[None, :, :]).sum(axis=2))


def laplacian(gamma: float) -> Kernel:
    """exp(−γ‖a−b‖₁)."""
    return lambda a, b: np.exp(-gamma * np.abs(a[:, None, :] - b[None, :, :]).sum(axis=2))


def polynomial(degree: int, gamma: float, offset: float) -> Kernel:
    """(γ⟨a,b⟩ + c)^q."""
    return lambda a, b: (gamma * a @ b.T + offset) ** degree


def squared_mcmd(
    x: Array,
    y: Array,
    x2: Array,
    y2: Array,
    grid: Array,
    *,
    inputs: Kernel,
    outputs: Kernel,
    regularization: float,
    regularization2: float,
) -> Array:
    """αᵀK_YY α − 2αᵀK_YY' α' + α'ᵀK_Y'Y' α' at every row of the grid."""
    n, m = len(x), len(x2)
    first = np.linalg.inv(inputs(x, x) + n * regularization * np.eye(n)) @ inputs(x, grid)
    second = np.linalg.inv(inputs(x2, x2) + m * regularization2 * np.eye(m)) @ inputs(x2, grid)
    own = np.einsum("ig,ij,jg->g", first, outputs(y, y), first, optimize=True)
    both = np.einsum("ig,ij,jg->g", first, outputs(y, y2), second, optimize=True)
    other = np.einsum("ig,ij,jg->g", second, outputs(y2, y2), second, optimize=True)
    return own - 2.0 * both + other


def squared_cce(
    x: Array,
    y: Array,
    samples: Array,
    grid: Array,
    *,
    inputs: Kernel,
    outputs: Kernel,
    regularization: float,
) -> Array:
    """The squared discrepancy of (xᵢ, yᵢ) and the pairs (xᵢ, sᵢⱼ), j = 1…ℓ, each xᵢ repeated."""
    draws = samples.shape[1]
    return squared_mcmd(
        x,
        y,
        np.repeat(x, draws, axis=0),
        samples.reshape(len(x) * draws, -1),
        grid,
        inputs=inputs,
        outputs=outputs,
        regularization=regularization,
        regularization2=regularization,
    )
