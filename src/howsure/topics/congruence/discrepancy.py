"""Maximum conditional mean discrepancy of two samples of pairs."""

from __future__ import annotations

import numpy.typing as npt

from howsure.stats.kernels import check_positive_definite, check_range
from howsure.stats.namespace import same_rows
from howsure.stats.ridge import kernel_system
from howsure.stats.solvers import SolverOptions
from howsure.topics.congruence.choices import (
    Bandwidth,
    KernelChoice,
    as_outputs,
    at_least_two,
    choose_inputs,
    choose_kernel,
)
from howsure.topics.congruence.outputs import as_law, fit_outputs, fit_pair
from howsure.topics.congruence.results import MCMD
from howsure.topics.congruence.smoothing import diagnose, largest_kernel, lengths, nystrom_error


def mcmd(
    x: npt.ArrayLike,
    y: npt.ArrayLike,
    x2: npt.ArrayLike,
    y2: npt.ArrayLike,
    grid: npt.ArrayLike,
    *,
    kernel: KernelChoice = "rbf",
    bandwidth: Bandwidth = None,
    output_kernel: KernelChoice = "rbf",
    output_bandwidth: Bandwidth = None,
    regularization: float = 0.1,
    regularization2: float | None = None,
    normalize: bool | None = None,
    solver: SolverOptions | None = None,
) -> MCMD:
    """Discrepancy of two conditional distributions, each known by pairs, at given points.

    With W = (K + nλI)⁻¹ and α(x) = W k(x) for the first sample, and likewise W', α' for the
    second, MCMD²(x) = αᵀK_YY α − 2αᵀK_YY' α' + α'ᵀK_Y'Y' α': the squared distance of the two
    estimated conditional mean embeddings at x. Estimates are zero for two equal samples, and
    tend to zero for equal conditional laws.

    Parameters
    ----------
    x, y : array-like or tensor of shape (n,) or (n, d), and (n,) or (n, p)
        The first sample: inputs and outputs. It sets bandwidths that are not given. Where x is a
        PyTorch tensor the work with inputs is done on its device; see the notes.
    x2, y2 : array-like or tensor of shape (m, d) and (m, p)
        The second sample; its size and its inputs may differ.
    grid : array-like or tensor of shape (g, d)
        Where to evaluate.
    kernel, output_kernel : str, Kernel or callable
        Kernels of inputs and of outputs: ``rbf``, ``laplacian``, ``polynomial``,
        ``laplacian-squared``, or one's own; see
        `howsure.topics.congruence.choices.choose_kernel`.
    bandwidth, output_bandwidth : str, float or None
        γ of the kernels, or the rule that sets it; by default 1/(2 variance) of x and of y.
    regularization, regularization2 : float
        λ of the two samples, multiplied by their sizes; the second is the first if not given.
    normalize : bool, optional
        Whether inputs are divided by their length. By default that is done for the kernel
        named polynomial when there are several columns.
    solver : SolverOptions, optional
        How to solve, and how accurately.

    Returns
    -------
    MCMD
        Values (not squared; lower is more alike) and how they were computed. Never NaN.

    Raises
    ------
    InputError
        If shapes do not match, a number is not finite, a sample has fewer than two rows, a
        bandwidth cannot be set, a kernel is not positive definite, or inputs are tensors on
        different devices.

    Notes
    -----
    Nothing is inverted: outputs become vectors of length r whose inner products are the output
    kernel, and (K + nλI) C = L is solved for r right-hand sides.

    Samples with the same inputs, row by row, and the same λ share one system. The outputs'
    difference is then solved for at once, as `howsure.topics.congruence.cce` does.

    With x a tensor, Gram matrices and solvers run on its device (this needs array-api-compat).
    Inputs that are no tensors are moved there; tensors on another device are refused. The
    number type is the solver's `dtype`, whatever came; whole numbers and 16-bit floats are
    converted, gradients are not followed. Outputs are few numbers: they are taken to the host,
    and results come as NumPy arrays. Tests run on the CPU and, for products and solvers, on torch's
    ``meta`` device; CUDA was not run.

    References
    ----------
    Park and Muandet (2020), A measure-theoretic approach to kernel conditional mean
    embeddings, section 5. Young et al. (2025), Assessing the probabilistic fit of neural
    regressors via conditional congruence, equation 2.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.linspace(0.0, 6.0, 40)
    >>> same = mcmd(x, np.cos(x), x, np.cos(x), [3.0])
    >>> float(same.values[0])
    0.0
    >>> other = mcmd(x, np.cos(x), x, np.cos(x) + 2.0, [3.0])
    >>> bool(other.values[0] > 0.5)
    True
    """
    options = solver or SolverOptions()
    inputs = choose_inputs(
        x, kernel, bandwidth, normalize=normalize, dtype=options.dtype, grid=grid
    )
    rows, rows2 = inputs.rows, at_least_two(inputs.more(x2, "x2"), "x2")
    points = inputs.more(grid, "grid")
    first = as_outputs(y, "y", length=len(rows))
    second = as_outputs(y2, "y2", length=len(rows2), columns=first.shape[1])
    peak = largest_kernel(inputs.kernel, rows, rows2, points)
    shared = choose_kernel(output_kernel, output_bandwidth, first, "y")
    check_range(shared, first, "y")
    check_range(shared, second, "y2")
    check_positive_definite(shared, first, "output_kernel")
    pair = (regularization, regularization if regularization2 is None else regularization2)
    accuracy = options.accuracy * min(pair) / (4.0 * peak)
    systems = [kernel_system(inputs.kernel, rows, pair[0], options)]
    if (alike := same_rows(rows, rows2)) and pair[0] == pair[1]:  # W = W': one solve
        _, difference, left = fit_outputs(
            shared, first, as_law(second), tolerance=2.0 * accuracy, options=options
        )
        targets, left_out = [difference], left / pair[0]
    else:
        systems.append(
            systems[0].with_regularization(pair[1])
            if alike
            else kernel_system(inputs.kernel, rows2, pair[1], options)
        )
        targets, residuals = fit_pair(shared, first, second, tolerance=accuracy, options=options)
        left_out = 2.0 * sum(
            residual / each for residual, each in zip(residuals, pair, strict=True)
        )
    solutions = [system.solve(target) for system, target in zip(systems, targets, strict=True)]
    solved = zip(systems, solutions, strict=True)
    parts = [system.predict(points, solution) for system, solution in solved]
    values = lengths(parts[0] - parts[1] if len(parts) > 1 else parts[0])
    return MCMD(
        values=values,
        n=(len(rows), len(rows2)),
        regularization=pair,
        kernel=inputs.kernel.describe(),
        output_kernel=shared.describe(),
        diagnostics=diagnose(
            systems,
            solutions,
            values,
            rank=targets[0].shape[1],
            peak=peak,
            left_out=left_out,
            estimate=nystrom_error(systems, targets, points),
        ),
    )
