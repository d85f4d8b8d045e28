"""Conditional congruence error at any input, and the discrepancy of two samples of pairs.

Fit once on labelled reference rows; score anywhere, with no labels.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import final

import numpy.typing as npt

from howsure.core.arrays import FloatArray, as_matrix, to_host
from howsure.core.classes import frozen
from howsure.core.errors import DegenerateError, InputError
from howsure.stats.kernels import (
    RBF,
    CustomKernel,
    Kernel,
    Laplacian,
    Polynomial,
    check_positive_definite,
    check_range,
    median_distance,
    normalize_rows,
    total_variance,
)
from howsure.stats.namespace import Array, as_rows, namespace, on_host, row_parts, same_rows
from howsure.stats.ridge import KernelSystem, Solution, kernel_system
from howsure.stats.solvers import SolverOptions
from howsure.topics.congruence.outputs import OutputFactor, as_law, fit_outputs, fit_pair
from howsure.topics.congruence.predictive import PredictiveLaw
from howsure.topics.congruence.results import (
    CCE,
    MCMD,
    diagnose,
    largest_kernel,
    lengths,
)


def cce(
    x: npt.ArrayLike,
    y: npt.ArrayLike,
    predictive: PredictiveLaw,
    grid: npt.ArrayLike | None = None,
    *,
    kernel: KernelChoice = "rbf",
    bandwidth: Bandwidth = None,
    output_kernel: KernelChoice = "rbf",
    output_bandwidth: Bandwidth = None,
    regularization: float = 0.1,
    normalize: bool | None = None,
    solver: SolverOptions | None = None,
) -> CCE:
    """Conditional congruence error of a model at given points.

    The distance, in the space of the output kernel, between the conditional law estimated from
    outcomes and the one estimated from predictions at the same reference inputs. With μᵢ the
    embedding of the prediction at xᵢ and φ(yᵢ) that of the outcome,
    CCE(x) = ‖Σᵢ αᵢ(x) (φ(yᵢ) − μᵢ)‖ with α(x) = (K + nλI)⁻¹ k(x).

    Parameters
    ----------
    x : array-like or tensor of shape (n,) or (n, d)
        Reference inputs, or embeddings of them. Where x is a PyTorch tensor the work with inputs
        is done on its device, as in `howsure.topics.congruence.mcmd`.
    y : array-like or tensor of shape (n,) or (n, p)
        Reference outcomes.
    predictive : PredictiveLaw
        What the model believes at the reference inputs. `Draws` gives the Monte-Carlo mode (ℓ
        draws a row, as published); `Normals`, `Mixtures`, `Support` and `Empirical` the exact
        mode, with no Monte-Carlo noise. The two modes give different values for one model.
    grid : array-like or tensor of shape (g, d), optional
        Where to evaluate; no labels are needed. By default the reference inputs.
    kernel, output_kernel, bandwidth, output_bandwidth, regularization, normalize, solver
        As in `howsure.topics.congruence.mcmd`. A bandwidth of ``"grid-variance"`` takes
        the variance of the grid, as published code does.

    Returns
    -------
    CCE
        Values: zero or more, lower is better, never NaN. They mean nothing alone: compare them
        with `howsure.topics.congruence.null.null_reference`, or with another model's at equal
        choices.

    Raises
    ------
    InputError
        If shapes do not match, a number is not finite, there are fewer than two rows, a
        bandwidth cannot be set (constant y), a kernel is not positive definite, or the grid is
        a tensor on another device than x.

    Notes
    -----
    ℓ draws at each xᵢ are a sample of nℓ pairs. Its regularised system has the solution of the
    n distinct inputs, spread evenly over the draws, so both samples share one system.

    References
    ----------
    Young et al. (2025), Assessing the probabilistic fit of neural regressors via conditional
    congruence, equation 3.

    Examples
    --------
    >>> import numpy as np
    >>> from howsure.topics.congruence.predictive import Normals
    >>> rng = np.random.default_rng(0)
    >>> x = rng.uniform(0.0, 6.0, 500)
    >>> y = np.cos(x) + 0.5 * rng.standard_normal(500)
    >>> right = cce(x, y, Normals(np.cos(x), np.full(500, 0.5)))
    >>> wrong = cce(x, y, Normals(np.cos(x), np.full(500, 2.0)))
    >>> right.mean < 0.05 < wrong.mean
    True
    """
    if bandwidth == "grid-variance":
        dtype = (solver or SolverOptions()).dtype
        kernel = choose_inputs(
            x, kernel, bandwidth, normalize=normalize, dtype=dtype, grid=x if grid is None else grid
        ).kernel
        bandwidth = None
    reference = CongruenceReference(
        x,
        y,
        predictive,
        kernel=kernel,
        bandwidth=bandwidth,
        output_kernel=output_kernel,
        output_bandwidth=output_bandwidth,
        regularization=regularization,
        normalize=normalize,
        solver=solver,
    )
    return reference.score(grid)


@final
class CongruenceReference:
    """A labelled reference set, fitted once, that scores any inputs without labels.

    Parameters
    ----------
    x, y, predictive, kernel, bandwidth, output_kernel, output_bandwidth, regularization, normalize
        As in `cce`.
    solver : SolverOptions, optional
        How to solve, and how accurately.

    Raises
    ------
    InputError
        As `cce`.

    Examples
    --------
    >>> import numpy as np
    >>> from howsure.topics.congruence.predictive import Normals
    >>> x = np.linspace(0.0, 1.0, 50)
    >>> reference = CongruenceReference(x, np.sin(x), Normals(np.sin(x) + 1.0, np.ones(50)))
    >>> reference.score([0.2, 0.5]).values.shape
    (2,)
    """

    __slots__ = (
        "_left_out",
        "_solution",
        "_tolerance",
        "inputs",
        "output_kernel",
        "outputs",
        "predictive",
        "system",
        "target",
        "y",
    )

    def __init__(
        self,
        x: npt.ArrayLike,
        y: npt.ArrayLike,
        predictive: PredictiveLaw,
        *,
        kernel: KernelChoice = "rbf",
        bandwidth: Bandwidth = None,
        output_kernel: KernelChoice = "rbf",
        output_bandwidth: Bandwidth = None,
        regularization: float = 0.1,
        normalize: bool | None = None,
        solver: SolverOptions | None = None,
    ) -> None:
        options = solver or SolverOptions()
        self.inputs: KernelInputs = choose_inputs(
            x, kernel, bandwidth, normalize=normalize, dtype=options.dtype
        )
        self.y: FloatArray = as_outputs(y, "y", length=len(self.inputs.rows))
        self.predictive = checked_predictive(predictive, self.y)
        peak = largest_kernel(self.inputs.kernel, self.inputs.rows)
        self.output_kernel: Kernel = choose_kernel(output_kernel, output_bandwidth, self.y, "y")
        check_outputs(self.output_kernel, self.y, predictive)
        self.system: KernelSystem = kernel_system(
            self.inputs.kernel, self.inputs.rows, regularization, options
        )
        self._tolerance = options.accuracy * regularization / (2.0 * peak)
        self.outputs, self.target, self._left_out = self.fit(predictive)
        self._solution: Solution | None = None

    @property
    def regularization(self) -> float:
        """λ."""
        return self.system.ridge / len(self.y)

    def fit(self, predictive: PredictiveLaw) -> tuple[OutputFactor, FloatArray, float]:
        """Differences of outcomes and what is believed of them, and how much is left out."""
        return fit_outputs(
            self.output_kernel,
            self.y,
            predictive,
            tolerance=self._tolerance,
            options=self.system.options,
        )

    def solution(self) -> Solution:
        """The solved system, made once."""
        if self._solution is None:
            self._solution = self.system.solve(self.target)
        return self._solution

    def points(self, grid: npt.ArrayLike | None) -> Array | None:
        """Checked evaluation points; None stands for the reference inputs."""
        return None if grid is None else self.inputs.more(grid, "grid")

    def vectors(self, points: Array | None, solution: Solution) -> Array:
        """Smoothed differences at points whose lengths are the errors, on the host, (g, r)."""
        if points is None:
            return on_host(self.system.fitted(solution))
        return on_host(self.system.predict(points, solution))

    def score(self, grid: npt.ArrayLike | None = None) -> CCE:
        """Conditional congruence error at any inputs; no labels are needed.

        Parameters
        ----------
        grid : array-like or tensor of shape (g,) or (g, d), optional
            Where to evaluate; by default the reference inputs.

        Returns
        -------
        CCE

        Raises
        ------
        InputError
            If the grid's width is not the reference's, or a number is not finite.
        """
        points = self.points(grid)
        solution = self.solution()
        values = lengths(self.vectors(points, solution))
        rows = self.inputs.rows if points is None else points
        peak = largest_kernel(self.inputs.kernel, self.inputs.rows, rows)
        left_out = self._left_out / self.regularization
        return CCE(
            values=values,
            mode=self.predictive.mode,
            draws=self.predictive.draws,
            n=len(self.y),
            regularization=self.regularization,
            kernel=self.inputs.kernel.describe(),
            output_kernel=self.output_kernel.describe(),
            diagnostics=diagnose(
                [self.system],
                [solution],
                [self.target],
                rows,
                values,
                peak=peak,
                left_out=left_out,
            ),
        )


def check_outputs(kernel: Kernel, y: FloatArray, predictive: PredictiveLaw) -> None:
    """Check that an output kernel suits the outcomes and what was believed of them."""
    atoms = predictive.atoms()
    check_range(kernel, y, "y")
    check_range(kernel, atoms.mean, "predictive")
    if atoms.sd is not None:
        check_range(kernel, atoms.sd, "predicted standard deviations")
    check_positive_definite(kernel, y, "output_kernel")


def checked_predictive(predictive: PredictiveLaw, y: FloatArray) -> PredictiveLaw:
    """Check that a prediction fits the outcomes."""
    if not isinstance(predictive, PredictiveLaw):
        raise InputError(
            "predictive must be Normals, Mixtures, Support, Empirical or Draws, got "
            f"{type(predictive).__name__}"
        )
    if len(predictive) != len(y):
        raise InputError(f"predictive must have {len(y)} rows, got {len(predictive)}")
    if predictive.outputs != y.shape[1]:
        raise InputError(
            f"predictive must have {y.shape[1]} outputs as y has, got {predictive.outputs}"
        )
    return predictive


# ---- maximum conditional mean discrepancy of two samples of pairs --------------------------------


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
        `howsure.topics.congruence.reference.choose_kernel`.
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
        _, difference, left_out_mean = fit_outputs(
            shared, first, as_law(second), tolerance=2.0 * accuracy, options=options
        )
        targets, left_out = [difference], left_out_mean / pair[0]
    else:
        systems.append(
            systems[0].with_regularization(pair[1])
            if alike
            else kernel_system(inputs.kernel, rows2, pair[1], options)
        )
        targets, residuals = fit_pair(shared, first, second, tolerance=accuracy, options=options)
        left_out = 2.0 * sum(
            residual / ridge for residual, ridge in zip(residuals, pair, strict=True)
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
            targets,
            points,
            values,
            peak=peak,
            left_out=left_out,
        ),
    )


# ---- kernels and bandwidths by name: the defaults, and the choices of published code -------------

KernelChoice = str | Kernel | Callable[[Array, Array], npt.ArrayLike]
Bandwidth = str | float | None

_NAMES = ("rbf", "laplacian", "laplacian-squared", "polynomial")


@frozen
class KernelInputs:
    """Checked inputs and their kernel."""

    kernel: Kernel  # the input kernel
    rows: Array  # shape (n, d): reference inputs, normalised where asked
    normalize: bool  # whether rows are divided by their length

    def more(self, value: npt.ArrayLike, name: str) -> Array:
        """Check further inputs and treat them alike, where the reference inputs live."""
        rows = as_rows(value, name, columns=self.rows.shape[1], reference=self.rows)
        return check_size(normalize_rows(rows, name) if self.normalize else rows, name)


def choose_inputs(
    x: npt.ArrayLike,
    kernel: KernelChoice,
    bandwidth: Bandwidth,
    *,
    normalize: bool | None,
    dtype: str,
    grid: npt.ArrayLike | None = None,
) -> KernelInputs:
    """Check reference inputs and settle their kernel.

    Parameters
    ----------
    x : array-like or tensor of shape (n,) or (n, d)
        Reference inputs; at least two rows.
    kernel : str, Kernel or callable
        See `choose_kernel`.
    bandwidth : str, float or None
        See `choose_kernel`; ``"grid-variance"`` takes the variance of `grid`.
    normalize : bool, optional
        Whether to divide rows by their length. By default that is done for the kernel *named*
        polynomial when there are several columns.
    dtype : str
        Number type.
    grid : array-like, optional
        Evaluation points, for ``"grid-variance"``.

    Returns
    -------
    Inputs
    """
    rows = at_least_two(as_rows(x, "x", dtype=dtype), "x")
    unit = kernel == "polynomial" and rows.shape[1] > 1 if normalize is None else bool(normalize)
    rows = check_size(normalize_rows(rows, "x") if unit else rows, "x")
    source, name = rows, "x"
    if bandwidth == "grid-variance":
        if grid is None:
            raise InputError("bandwidth 'grid-variance' needs a grid, got none")
        points = as_rows(grid, "grid", columns=rows.shape[1], reference=rows)
        source, name = normalize_rows(points, "grid") if unit else points, "grid"
        bandwidth = "variance"
    return KernelInputs(choose_kernel(kernel, bandwidth, source, name), rows, unit)


def choose_kernel(kernel: KernelChoice, bandwidth: Bandwidth, rows: Array, name: str) -> Kernel:
    """Settle a kernel from its name and bandwidth.

    Parameters
    ----------
    kernel : str, Kernel or callable
        ``rbf`` exp(−γ‖a−b‖²), ``laplacian`` exp(−γ‖a−b‖₁), ``polynomial`` (γ⟨a,b⟩+1)³, or
        ``laplacian-squared`` exp(−γ‖a−b‖₁²), which is what one public implementation computes
        under the name of Laplacian. A `Kernel` is taken as it is; a function is wrapped.
    bandwidth : str, float or None
        A number is γ. ``variance`` (the default but for polynomials): γ = 1/(2v) with v the
        summed sample variance of the columns; 1/√(2v) for the Laplacian, whose distance is not
        squared. ``median``: the same with the median distance in place of √v (for the
        Laplacian 1/median). ``half-variance``: γ = v/2, as the code behind one published
        figure has it. ``inverse-width``: γ = 1/d, for polynomials, whose default is 1.
    rows : ndarray of float, shape (n, d)
        Rows that set the bandwidth.
    name : str
        Their name, for messages.

    Returns
    -------
    Kernel

    Examples
    --------
    >>> import numpy as np
    >>> choose_kernel("rbf", "variance", np.array([[0.0], [1.0], [2.0]]), "y")
    RBF(gamma=0.5)
    """
    if bandwidth is not None and not isinstance(kernel, str):
        raise InputError(
            f"bandwidth must not be given with a kernel that carries its own, got {bandwidth!r}"
        )
    if isinstance(kernel, Kernel):
        return kernel
    if callable(kernel):
        return CustomKernel(kernel, getattr(kernel, "__name__", "custom"))
    if kernel not in _NAMES:
        raise InputError(f"kernel must be one of {', '.join(_NAMES)}, got {kernel!r}")
    gamma = _gamma(kernel, bandwidth, rows, name)
    if kernel == "polynomial":
        return Polynomial(gamma=gamma)
    return RBF(gamma) if kernel == "rbf" else Laplacian(gamma, squared=kernel != "laplacian")


def at_least_two(rows: Array, name: str) -> Array:
    """Refuse a sample of one row, from which no conditional law can be estimated."""
    if len(rows) < 2:
        raise DegenerateError(f"{name} must have at least 2 rows, got {len(rows)}")
    return rows


def as_outputs(
    value: npt.ArrayLike, name: str, *, length: int, columns: int | None = None
) -> FloatArray:
    """Check outputs, which are worked with on the host in 64 bits; tensors are copied there.

    Examples
    --------
    >>> as_outputs([1, 2], "y", length=2).tolist()
    [[1.0], [2.0]]
    """
    outputs = as_matrix(to_host(value, name), name, length=length, columns=columns)
    check_size(outputs, name)
    return outputs


def check_size(rows: Array, name: str) -> Array:
    """Refuse numbers so large that the sum of their squares overflows their number type."""
    xp = namespace(rows)
    largest = max(float(xp.max(xp.abs(block))) for block in row_parts(rows))
    limit = math.sqrt(float(xp.finfo(rows.dtype).max) / (8.0 * rows.shape[0] * rows.shape[1]))
    if largest > limit:
        raise DegenerateError(
            f"{name} must be numbers of at most {limit:.2g} for their squares to be added up, "
            f"got {largest:.3g}"
        )
    return rows


def _gamma(kernel: str, bandwidth: Bandwidth, rows: Array, name: str) -> float:
    if isinstance(bandwidth, (int, float)) and not isinstance(bandwidth, bool):
        return float(bandwidth)
    if kernel == "polynomial":
        if bandwidth is None:
            return 1.0
        if bandwidth == "inverse-width":
            return 1.0 / float(rows.shape[1])
        raise InputError(
            "bandwidth of a polynomial kernel must be a positive number or inverse-width, "
            f"got {bandwidth!r}"
        )
    absolute = kernel == "laplacian"
    if bandwidth is None or bandwidth == "variance":
        inverse = 1.0 / (2.0 * total_variance(rows, name))
        return math.sqrt(inverse) if absolute else inverse
    if bandwidth == "median":
        median = median_distance(rows, name, absolute=absolute)
        inverse = 1.0 / median
        return inverse if absolute else 0.5 * inverse * inverse
    if bandwidth == "half-variance":
        return total_variance(rows, name) / 2.0
    raise InputError(
        f"bandwidth must be a positive number, variance, median or half-variance, got {bandwidth!r}"
    )
